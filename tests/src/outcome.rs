//! What was seen of a scenario.

use crate::answer::Answer;
use crate::asked::Asked;
use std::sync::Arc;
use store::record::Settled;
use tollgate::observe::counters::Counters;

/// How a connection ended for whoever watched it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// It had not ended when the steps were done.
    #[default]
    Open,
    /// With an end of stream.
    Fin,
    /// With a reset.
    Reset,
}

/// What a client saw.
#[derive(Clone, Debug, Default)]
pub struct ClientSaw {
    /// Final answers.
    pub answers: Vec<Answer>,
    /// Statuses of interim answers.
    pub interim: Vec<u16>,
    /// Bytes that belong to no answer.
    pub surplus: Vec<u8>,
    /// How the connection ended.
    pub end: End,
    /// Bytes a flood got rid of.
    pub flooded: usize,
    /// Bytes that were there at each mark.
    pub marks: Vec<usize>,
    /// What each read brought, and when, in virtual milliseconds; nothing on sockets.
    pub heard: Vec<(u64, Vec<u8>)>,
    /// Steps that could not be played.
    pub faults: Vec<String>,
}

/// What the upstream saw on one connection.
#[derive(Clone, Debug, Default)]
pub struct UpstreamSaw {
    /// Whole requests.
    pub requests: Vec<Asked>,
    /// Bytes that belong to no whole request.
    pub surplus: Vec<u8>,
    /// Bytes that were taken of what it sent, as far as whole pieces of them were.
    pub sent: usize,
    /// How the connection ended.
    pub end: End,
    /// When it ended, in virtual milliseconds; nothing on sockets.
    pub ended_ms: Option<u64>,
    /// Acts that could not be played, requests that could not be read.
    pub faults: Vec<String>,
}

/// What was seen.
#[derive(Debug)]
pub struct Outcome {
    /// By client, in the order of the scenario.
    pub clients: Vec<ClientSaw>,
    /// By connection, in the order they were taken.
    pub upstream: Vec<UpstreamSaw>,
    /// The same of each further host.
    pub hosts: Vec<Vec<UpstreamSaw>>,
    /// The shard's counters after its end.
    pub counters: Arc<Counters>,
    /// Records of exchanges, in the order they were settled.
    pub records: Vec<Settled>,
    /// Records of refusals.
    pub refusals: Vec<Settled>,
    /// What only the scripted transport shows.
    pub inside: Option<Inside>,
}

/// The state of the shard once every client was done and before it was drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Bytes left of the allowance.
    pub allowance_left: u64,
    /// Idle upstream connections.
    pub pooled: usize,
    /// Virtual milliseconds the drain took.
    pub drain_ms: u64,
    /// Client connections that the end of the drain left open.
    pub left_open: u64,
    /// Virtual milliseconds until the last client was done.
    pub clients_ms: u64,
}

impl Outcome {
    /// All requests the upstream got, connection by connection.
    pub fn requests(&self) -> impl Iterator<Item = &Asked> {
        self.upstream.iter().flat_map(|connection| &connection.requests)
    }

    /// All requests a further host got.
    pub fn requests_of(&self, host: usize) -> impl Iterator<Item = &Asked> {
        self.hosts[host].iter().flat_map(|connection| &connection.requests)
    }

    /// How many the upstream got.
    #[must_use]
    pub fn forwarded(&self) -> usize {
        self.requests().count()
    }

    /// The only answer of the only client.
    #[must_use]
    pub fn answer(&self) -> &Answer {
        let all = &self.clients[0].answers;
        assert!(all.len() == 1 && self.clients.len() == 1, "not one answer: {:?}", self.clients);
        &all[0]
    }

    /// The only request.
    #[must_use]
    pub fn asked(&self) -> &Asked {
        assert_eq!(self.forwarded(), 1, "requests upstream: {:?}", self.upstream);
        self.requests().next().unwrap()
    }

    /// Names of the endings of the settled records.
    #[must_use]
    pub fn endings(&self) -> Vec<String> {
        self.records.iter().map(|record| record.ending.name().to_owned()).collect()
    }

    /// Statuses of all answers of a client.
    #[must_use]
    pub fn statuses(&self, client: usize) -> Vec<u16> {
        self.clients[client].answers.iter().map(|answer| answer.status).collect()
    }

    /// Everything was played, nothing surplus came, no task panicked.
    pub fn assert_clean(&self) {
        for client in &self.clients {
            assert_eq!(client.faults, Vec::<String>::new(), "{client:?}");
            let surplus = String::from_utf8_lossy(&client.surplus);
            assert!(client.surplus.is_empty(), "surplus {surplus:?} in {client:?}");
        }
        for connection in self.upstream.iter().chain(self.hosts.iter().flatten()) {
            assert_eq!(connection.faults, Vec::<String>::new(), "{connection:?}");
        }
        assert!(self.inside.is_none_or(|inside| inside.left_open == 0), "left by the drain");
        assert_eq!(self.counters.panics.get(), 0, "panics");
        assert_eq!(self.counters.connections_open.get(), 0, "connections left open");
    }
}
