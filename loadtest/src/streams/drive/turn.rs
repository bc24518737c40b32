//! Whom an event of the poller concerns, and what is written because of it.

use std::io::{self, ErrorKind};
use std::time::Duration;

use super::{Drive, LISTENER, Sending};
use crate::clock;
use crate::latency::record;
use crate::loopback;
use crate::poll::Ready;
use crate::streams::client::State;
use crate::streams::pace::Pace;
use crate::streams::provider::Provider;
use crate::tls::Socket;

/// Tokens of upstream connections; those of clients are below.
const PROVIDERS: u64 = 1 << 32;

impl Drive {
    /// Handles what is ready.
    pub(in crate::streams) fn turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let mut ready = Vec::new();
        self.poller.wait(&mut ready, timeout)?;
        for Ready { token, writable, .. } in ready {
            match token {
                LISTENER => self.accept(),
                token if token < PROVIDERS => {
                    self.client(usize::try_from(token).unwrap_or(usize::MAX));
                }
                token => {
                    let at = usize::try_from(token - PROVIDERS).unwrap_or(usize::MAX);
                    if self.provider(at, writable).is_none() {
                        self.close(at);
                    }
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            // a connection that cannot be kept is closed by being dropped
            let socket = loopback::tune(&stream)
                .and_then(|()| Socket::called(stream, self.identity.as_ref()));
            let Ok(provider) = socket.map(Provider::new) else { continue };
            let at = self.free.pop().unwrap_or(self.providers.len());
            if at == self.providers.len() {
                self.providers.push(None);
            }
            let token = PROVIDERS + at as u64;
            if self.poller.add(&provider.stream, token, provider.interest).is_err() {
                self.free.push(at);
                continue;
            }
            self.providers[at] = Some(provider);
        }
    }

    /// Reads a request and begins its stream; `None` ends the connection.
    fn provider(&mut self, at: usize, writable: bool) -> Option<()> {
        // an event of a connection closed a moment ago finds none, or finds nothing to read
        let Some(Some(provider)) = self.providers.get_mut(at) else { return Some(()) };
        if writable {
            provider.flush().ok()?;
        }
        let n = match provider.stream.read(&mut self.scratch) {
            Ok(0) => return None,
            Ok(n) => n,
            Err(error) if would_wait(&error) => return self.watch(at),
            Err(_) => return None,
        };
        let Some(stream) = provider.feed(&self.scratch[..n]).ok()? else { return Some(()) };
        provider.of = Some(stream);
        *self.sendings.get_mut(stream)? = Sending { provider: Some(at), ..Sending::default() };
        provider.send(&self.text.opening).ok()?;
        self.watch(at)?;
        if self.prompt {
            self.event(stream, 1);
        } else {
            self.preluded.push(stream);
        }
        Some(())
    }

    fn close(&mut self, at: usize) {
        if let Some(provider) = self.providers[at].take() {
            if let Some(sending) = provider.of.and_then(|of| self.sendings.get_mut(of)) {
                sending.provider = None;
            }
            self.free.push(at);
        }
    }

    fn watch(&mut self, at: usize) -> Option<()> {
        let provider = self.providers.get_mut(at)?.as_mut()?;
        let wanted = provider.wanted();
        if provider.interest != wanted {
            self.poller.change(&provider.stream, PROVIDERS + at as u64, wanted).ok()?;
            provider.interest = wanted;
        }
        Some(())
    }

    /// Writes the next events of a stream.
    pub(in crate::streams) fn send(&mut self, stream: usize) {
        match self.pace {
            Pace::Even { batch, .. } => self.event(stream, batch),
            Pace::PingPong | Pace::Held => self.event(stream, 1),
        }
    }

    fn event(&mut self, stream: usize, events: u32) {
        let Some(sending) = self.sendings.get_mut(stream) else { return };
        let Some(at) = sending.provider else { return };
        let Some(Some(provider)) = self.providers.get_mut(at) else { return };
        // a delay is that of an event which nothing is in front of
        let alone = sending.events == self.clients[stream].events;
        sending.since = (self.timed && alone).then(clock::now);
        sending.events += u64::from(events);
        self.counts.sent += u64::from(events);
        let bytes = if events == 1 { &self.text.event } else { &self.batch };
        if provider.send(bytes).is_err() || self.watch(at).is_none() {
            self.close(at);
        }
    }

    /// Ends a stream.
    pub(in crate::streams) fn finish(&mut self, stream: usize) {
        let Some(sending) = self.sendings.get_mut(stream) else { return };
        let Some(at) = sending.provider.take() else { return };
        self.clients[stream].total = Some(sending.events);
        let Some(Some(provider)) = self.providers.get_mut(at) else { return };
        provider.of = None;
        if provider.send(&self.text.tail).is_err() || self.watch(at).is_none() {
            self.close(at);
        }
    }

    /// Sends the request of a stream.
    pub(in crate::streams) fn ask(&mut self, stream: usize) {
        let request = self.text.request(stream);
        let client = &mut self.clients[stream];
        client.ask();
        self.opening += 1;
        self.fates.opened += 1;
        // a request fits into an empty send buffer; a connection that is gone takes none
        let sent = client.stream.as_mut().map_or(Ok(0), |stream| stream.write(&request));
        if !matches!(sent, Ok(n) if n == request.len()) {
            self.fail(stream);
        }
    }

    /// Reads of a stream; in ping-pong what was read is answered by the next event.
    fn client(&mut self, at: usize) {
        let Some(client) = self.clients.get_mut(at) else { return };
        let Some(stream) = &mut client.stream else { return };
        let n = match stream.read(&mut self.scratch) {
            Err(error) if would_wait(&error) => return,
            Ok(n) if n > 0 => n,
            Ok(_) | Err(_) => return self.fail(at),
        };
        let before = client.state;
        let events = client.feed(&self.scratch[..n], &self.text);
        let after = client.state;
        if before == State::Asked && after != State::Asked {
            self.opening -= 1;
        }
        if events > 0 {
            self.counts.delivered += events;
            self.stamp(at);
        }
        match after {
            State::Failed => self.fail(at),
            State::Done => {
                self.fates.whole += 1;
                self.clients[at].state = State::Idle;
            }
            State::Open if self.pace == Pace::PingPong => {
                for _ in 0..events {
                    self.send(at);
                }
            }
            State::Idle | State::Asked | State::Open => {}
        }
    }

    /// Notes the delay of an event that has come.
    fn stamp(&mut self, stream: usize) {
        let since = self.sendings[stream].since.take();
        if let (Some(since), Some(delay)) = (since, &mut self.counts.delay) {
            record(delay, clock::now().saturating_duration_since(since));
        }
    }

    /// The connection of a client is over, or no longer to be trusted.
    fn fail(&mut self, at: usize) {
        let client = &mut self.clients[at];
        if client.state == State::Asked {
            self.opening -= 1;
        }
        self.fates.failed += u64::from(client.state != State::Idle);
        client.state = State::Idle;
        client.stream = None;
    }
}

fn would_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
