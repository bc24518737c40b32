//! What all connections of a stand-in share: scripts, tally, timers. Chooses the script of a
//! request. Bound: `CALLS_MAX` calls are remembered for scripts that count attempts.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::ask::{self, Ask, Dialect, Form};
use super::library::Library;
use super::pages;
use super::request::Request;
use super::script::{Play, Rounds, Script};
use super::tally::{Note, Tally};
use crate::poll::Poller;
use crate::timers::Timers;
use crate::wire::{Fault, Framing, Head};

/// Calls remembered: attempts of one call follow each other within minutes.
const CALLS_MAX: usize = 4096;

/// Shared state of one thread.
pub(super) struct Context {
    pub(super) poller: Poller,
    pub(super) timers: Timers,
    pub(super) tally: Tally,
    pub(super) library: Library,
    /// Operations of our own that failed and have no one to report to.
    pub(super) trouble: u64,
    calls: Calls,
    none: Rc<str>,
    models: Rc<str>,
    malformed: Rc<str>,
}

impl Context {
    pub(super) fn new(poller: Poller, library: Library, tally: Tally) -> Context {
        Context {
            poller,
            timers: Timers::default(),
            tally,
            library,
            trouble: 0,
            calls: Calls::default(),
            none: "none".into(),
            models: "models".into(),
            malformed: "malformed".into(),
        }
    }

    /// After how many bytes of its body the request is answered, if before the end.
    pub(super) fn early(&mut self, request: &Request<'_>) -> Option<u64> {
        // the same in every form
        self.library.play(ask::model(request.body)?, Form::default()).early()
    }

    /// The script of a call, and its number in the tally.
    pub(super) fn call(
        &mut self,
        dialect: Dialect,
        request: &Request<'_>,
        connection: u64,
        on_connection: u64,
    ) -> (Rc<Script>, u64) {
        let Ask { model, stream, include_usage } = Ask::read(request.body);
        let form = Form { dialect, stream, include_usage };
        let play = self.library.play(model, form);
        let round = match play.rounds {
            Rounds::Same => 0,
            Rounds::Connection => usize::try_from(on_connection).unwrap_or(usize::MAX),
            Rounds::Model => self.calls.count(&play, Some(model)),
            Rounds::Call => self.calls.count(&play, request.head.field("x-tollgate-request-id")),
        };
        let script = play.round(round).map_or_else(pages::not_found, Rc::clone);
        let sequence = self.tally.note(
            request,
            &Note {
                connection,
                on_connection,
                form,
                model,
                script: &play.name,
                played: Some(&script),
                status: script.read.status,
            },
        );
        (script, sequence)
    }

    /// A request that no scenario answers: for the list of models, or to a path that is none.
    pub(super) fn other(
        &mut self,
        models: bool,
        request: &Request<'_>,
        connection: u64,
        on_connection: u64,
    ) -> (Rc<Script>, u64) {
        let (script, name) = if models {
            (pages::models(request), &self.models)
        } else {
            (pages::not_found(), &self.none)
        };
        let note = Note {
            connection,
            on_connection,
            form: Form::default(),
            model: b"",
            script: name,
            played: None,
            status: script.read.status,
        };
        let sequence = self.tally.note(request, &note);
        (script, sequence)
    }

    /// Bytes that are no request: a relay that sends them is broken, so they are noted.
    pub(super) fn malformed(
        &mut self,
        bytes: &[u8],
        fault: Fault,
        connection: u64,
        on_connection: u64,
    ) -> (Rc<Script>, u64) {
        let head = Head::find(bytes).unwrap_or_else(|| Head::kept(bytes));
        let request =
            Request { head, raw: bytes, body: &bytes[head.len()..], framing: Framing::None };
        let script = pages::malformed(fault);
        let note = Note {
            connection,
            on_connection,
            form: Form::default(),
            model: b"",
            script: &self.malformed,
            played: None,
            status: script.read.status,
        };
        let sequence = self.tally.note(&request, &note);
        (script, sequence)
    }
}

/// How often each call has asked for a script that counts attempts.
#[derive(Debug, Default)]
struct Calls {
    counts: HashMap<(Rc<str>, Box<[u8]>), usize>,
    order: VecDeque<(Rc<str>, Box<[u8]>)>,
}

impl Calls {
    fn count(&mut self, play: &Play, call: Option<&[u8]>) -> usize {
        let key = (Rc::clone(&play.name), call.unwrap_or_default().into());
        if let Some(count) = self.counts.get_mut(&key) {
            *count += 1;
            return *count;
        }
        if self.order.len() >= CALLS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.counts.insert(key, 0);
        0
    }
}
