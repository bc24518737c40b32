//! What a stream has said so far, over its events: usage, text, how it ended.
//!
//! Events behind the terminator count for nothing: the exchange is priced by then. Only gemini
//! goes on, because its terminator may turn out not to have been the last chunk.

use super::Dialect;
use super::part::Kind;
use super::verdict::Verdict;
use crate::json::{ErrorFacts, ReplyFacts, SaidText, ShortText};
use crate::usage::{ReportedUsage, UsageField};

/// The account of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) usage: ReportedUsage,
    pub(super) said: SaidText,
    /// The first error.
    pub(super) error: Option<ErrorFacts>,
    /// The last reason to finish.
    pub(super) finish: Option<ShortText>,
    pub(super) content: bool,
    pub(super) terminated: bool,
    pub(super) success: bool,
    pub(super) reported: bool,
}

impl Tally {
    /// Takes an event. `counts` says whether what it says of the end does: not if the stream
    /// ended inside it and its data is no whole document.
    pub(super) fn take(
        &mut self,
        dialect: Dialect,
        verdict: &Verdict,
        facts: &ReplyFacts,
        counts: bool,
    ) {
        if self.terminated && dialect != Dialect::Gemini {
            return;
        }
        self.said = self.said.with(facts.said);
        self.content |= facts.content || verdict.kind == Kind::Content;
        if verdict.kind == Kind::Error {
            self.error.get_or_insert_with(|| error(facts));
        }
        if counts {
            if facts.finish.is_some() {
                self.finish = facts.finish;
            }
            self.terminated |= verdict.terminator;
            self.success |= verdict.success;
        }
        if !facts.usage.is_empty() {
            self.usage.update(&facts.usage);
            self.reported |= facts.complete && self.is_final(dialect, verdict, facts);
        }
    }

    /// Whether the usage of an event is the final count (DESIGN §5.6).
    fn is_final(&self, dialect: Dialect, verdict: &Verdict, facts: &ReplyFacts) -> bool {
        let has = |field| facts.usage.count(field).is_some();
        let output = has(UsageField::Completion) || has(UsageField::Output);
        match dialect {
            // Some servers write running totals into every chunk: those before the end are none.
            Dialect::Chat => output && (!facts.choice || self.finish.is_some()),
            Dialect::Messages => output && verdict.kind == Kind::Finish,
            Dialect::Responses => output && verdict.terminator,
            // A count of 0 is left out.
            Dialect::Gemini => self.finish.is_some(),
        }
    }
}

/// What an event says about its error. Responses events have the code beside the type.
fn error(facts: &ReplyFacts) -> ErrorFacts {
    let error = facts.error.unwrap_or_default();
    ErrorFacts { code: error.code.or(facts.code), ..error }
}
