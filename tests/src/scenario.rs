//! A scenario: what clients send, how the upstream behaves, and under which configuration. Data
//! only, so that one list serves every transport.

use std::time::Duration;

/// Everything that happens around one shard.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// TOML behind the usual provider and key: deadlines, limits, models, aliases.
    pub config: String,
    /// One list of steps a client connection; all begin at once.
    pub clients: Vec<Vec<Step>>,
    /// How the upstream treats each connection, in order; the last one's manner is that of all
    /// further ones.
    pub upstream: Vec<Manner>,
    /// Whether the upstream can be reached.
    pub reach: Reach,
    /// Further upstreams. In the configuration `{1}` is the address of the first of them.
    pub hosts: Vec<Host>,
    /// Whether clients and upstreams speak TLS; the steps and acts are what is spoken inside.
    pub tls: bool,
    /// What an upstream is to whoever calls it over TLS.
    pub guise: Guise,
    /// Whether the log takes no records.
    pub ledger_fails: bool,
}

/// One more upstream.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// How it treats each connection.
    pub manners: Vec<Manner>,
    /// Whether it can be reached.
    pub reach: Reach,
}

/// What an upstream is to whoever calls it over TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guise {
    /// Who was called.
    #[default]
    Itself,
    /// Somebody with a certificate of an unknown root.
    Stranger,
    /// Somebody who speaks no TLS.
    Bare,
}

/// Whether the upstream can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// It listens.
    #[default]
    Open,
    /// Its port is closed.
    Refused,
    /// A connect hangs.
    BlackHole,
}

/// What a client does next.
#[derive(Clone, Debug)]
pub enum Step {
    /// Speaks no TLS on this connection. The first step.
    Bare,
    /// Sends bytes, cut as said.
    Send(Vec<u8>, Split),
    /// Sends as much as is taken; what is not is no fault.
    Offer(Vec<u8>),
    /// Sends the piece again and again until nobody takes it, or so many bytes were taken.
    Flood(Vec<u8>, usize),
    /// Reads one final answer to its last byte; interim ones before it are noted.
    Answer,
    /// The same for the answer to `HEAD`.
    HeadAnswer,
    /// Reads one interim answer.
    Interim,
    /// Reads until so many bytes are here that belong to no answer yet.
    Bytes(usize),
    /// Notes how many bytes are here that belong to no answer yet, reading nothing.
    Mark,
    /// Tells the shard to drain.
    Drain,
    /// Revokes every key.
    Revoke,
    /// Reads until the connection ends; what comes before is kept as surplus.
    End,
    /// Ends its sending direction.
    Fin,
    /// Resets the connection.
    Reset,
    /// Lets time pass, virtual where there is such a thing.
    Pause(Duration),
    /// Tells everybody that something has happened.
    Signal(&'static str),
    /// Waits until it has.
    Wait(&'static str),
}

/// How bytes are cut on their way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// Not at all.
    Whole,
    /// Into single bytes.
    Bytes,
    /// At these places, ascending.
    At(Vec<usize>),
}

/// How the upstream treats a connection: one turn a request. A connection whose turns are used up
/// is read to its end.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// The turns.
    pub turns: Vec<Turn>,
    /// The last turn is that of all further requests.
    pub repeats: bool,
}

/// What happens on one request.
#[derive(Clone, Debug)]
pub struct Turn {
    /// How much of the request is read first.
    pub read: Read,
    /// What is done then.
    pub acts: Vec<Act>,
}

/// How much of a request is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// All of it.
    Whole,
    /// At least so many bytes, and no request is noted.
    Bytes(usize),
}

/// What an upstream does next.
#[derive(Clone, Debug)]
pub enum Act {
    /// Sends bytes, cut as said.
    Send(Vec<u8>, Split),
    /// Sends one of two things, as the last request's field of this name says.
    ByField {
        /// The field.
        name: &'static str,
        /// The value for which `then` is sent.
        value: &'static str,
        /// For that value.
        then: Vec<u8>,
        /// For any other.
        otherwise: Vec<u8>,
    },
    /// Ends its sending direction.
    Fin,
    /// Ends its sending direction without saying that this is the end, where that can be said.
    Cut,
    /// Closes at once, whatever is unread.
    Close,
    /// Resets the connection.
    Reset,
    /// Reads on until the gateway is gone.
    Hang,
    /// Reads nothing more until something has happened.
    Wait(&'static str),
    /// Tells everybody that something has happened.
    Signal(&'static str),
    /// Lets time pass.
    Pause(Duration),
    /// Revokes every key of the gateway's.
    Revoke,
}

// === impl Split ===

impl Split {
    /// Where `len` bytes are cut.
    #[must_use]
    pub fn cuts(&self, len: usize) -> Vec<usize> {
        match self {
            Split::Whole => Vec::new(),
            Split::Bytes => (1..len).collect(),
            Split::At(cuts) => cuts.clone(),
        }
    }
}

// === impl Scenario ===

impl Scenario {
    /// One client over an upstream that answers every request alike.
    #[must_use]
    pub fn plain(client: Vec<Step>, answer: &[u8]) -> Scenario {
        let upstream = vec![Manner::always(answer)];
        Scenario { clients: vec![client], upstream, ..Scenario::default() }
    }

    /// The same over TLS.
    #[must_use]
    pub fn secured(mut self) -> Scenario {
        self.tls = true;
        self
    }

    /// The same with more configuration.
    #[must_use]
    pub fn under(mut self, config: &str) -> Scenario {
        self.config.push_str(config);
        self.config.push('\n');
        self
    }
}

// === impl Host ===

impl Host {
    /// One that listens.
    #[must_use]
    pub fn open(manners: Vec<Manner>) -> Host {
        Host { manners, reach: Reach::Open }
    }

    /// One that cannot be reached.
    #[must_use]
    pub fn unreachable(reach: Reach) -> Host {
        Host { manners: Vec::new(), reach }
    }
}

// === impl Manner ===

impl Manner {
    /// Every request gets the same answer.
    #[must_use]
    pub fn always(answer: &[u8]) -> Manner {
        Manner { turns: vec![Turn::answer(answer)], repeats: true }
    }

    /// One request, treated like this.
    #[must_use]
    pub fn once(acts: Vec<Act>) -> Manner {
        Manner { turns: vec![Turn { read: Read::Whole, acts }], repeats: false }
    }

    /// These answers in turn, then these acts on the request after them.
    #[must_use]
    pub fn after(answers: &[&[u8]], acts: Vec<Act>) -> Manner {
        let mut turns: Vec<Turn> = answers.iter().map(|answer| Turn::answer(answer)).collect();
        turns.push(Turn { read: Read::Whole, acts });
        Manner { turns, repeats: false }
    }
}

// === impl Turn ===

impl Turn {
    /// Reads the request and sends this.
    #[must_use]
    pub fn answer(answer: &[u8]) -> Turn {
        Turn { read: Read::Whole, acts: vec![Act::Send(answer.to_vec(), Split::Whole)] }
    }
}

/// Bytes, whole.
#[must_use]
pub fn send(bytes: impl AsRef<[u8]>) -> Step {
    Step::Send(bytes.as_ref().to_vec(), Split::Whole)
}

/// Bytes of an upstream, whole.
#[must_use]
pub fn say(bytes: impl AsRef<[u8]>) -> Act {
    Act::Send(bytes.as_ref().to_vec(), Split::Whole)
}
