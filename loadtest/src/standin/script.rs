//! A scenario made ready: bytes to send and what to do between them. Immutable and shared by all
//! requests that name the same model.

use std::rc::Rc;

use serde::Serialize;

/// Usage an answer reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// All tokens of the prompt, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// Those of the prompt that were read from a cache.
    pub cached_tokens: u64,
}

/// One thing done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Send(Rc<[u8]>),
    WaitMs(u64),
    Close,
    CloseHard,
    Reset,
    Hang,
}

/// What one request gets.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) actions: Vec<Action>,
    /// Bytes of the body after which it begins; `None` waits for the whole request.
    pub(super) early: Option<u64>,
    /// The status the peer can have read; 0 if no whole head is sent.
    pub(super) status: u16,
    /// What the answer reports; `None` if nothing or if it is cut before its end.
    pub(super) usage: Option<Usage>,
    /// Whether a whole answer is sent.
    pub(super) whole: bool,
    /// Most bytes of one write.
    pub(super) split: Option<usize>,
    pub(super) pace_ms: u64,
}

/// Whom the rounds are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    /// Every request gets the same.
    Same,
    /// By attempts of one call.
    Call,
    /// By requests on one connection.
    Connection,
    /// By requests that name the same model.
    Model,
}

/// All scripts of one model name.
#[derive(Debug)]
pub(super) struct Play {
    /// The scenario's name, which may differ from the model's.
    pub(super) name: Rc<str>,
    pub(super) rounds: Rounds,
    pub(super) scripts: Vec<Rc<Script>>,
}

impl Play {
    /// The script of the `n`th request, counted from 0; the last one repeats.
    pub(super) fn round(&self, n: usize) -> Option<&Rc<Script>> {
        self.scripts.get(n).or_else(|| self.scripts.last())
    }

    /// The least number of body bytes after which some round begins.
    pub(super) fn early(&self) -> Option<u64> {
        self.scripts.iter().filter_map(|script| script.early).min()
    }
}
