//! The closed lists a record speaks in. A number on the disk is for ever: new ones are added at
//! the end, old ones keep their place, none is used twice.

use crate::wire::wire_enum;

wire_enum! {
    /// How an exchange ended. Exactly one of these for every one that was opened.
    pub enum Ending {
        /// Not ended: only in a slot, never in the log.
        None = 0 "none",
        /// The answer was delivered whole.
        Succeeded = 1 "succeeded",
        /// Refused before anything was sent upstream.
        Refused = 2 "refused",
        /// No answer could be had from any candidate.
        Exhausted = 3 "exhausted",
        /// The upstream answered with an error, which the client got.
        UpstreamError = 4 "upstream_error",
        /// The upstream broke off or failed inside its answer.
        UpstreamCut = 5 "upstream_cut",
        /// A guardrail of ours cut or blocked the answer.
        GuardrailCut = 6 "guardrail_cut",
        /// A deadline ended it.
        Deadline = 7 "deadline",
        /// The node was stopping.
        Shutdown = 8 "shutdown",
        /// The client stopped taking bytes for too long.
        WriteStall = 9 "write_stall",
        /// The client went away.
        ClientLeft = 10 "client_left",
        /// Something of ours failed after the upstream had answered.
        LocalFailure = 11 "local_failure",
        /// A defect of ours: the connection's task panicked.
        Internal = 12 "internal",
        /// The process died before the exchange was priced.
        Orphaned = 13 "orphaned",
        /// The process died after the exchange was priced: the answer may have been delivered.
        Unknown = 14 "unknown",
    }
}

wire_enum! {
    /// Where the token counts come from.
    pub enum Provenance {
        /// The upstream said so.
        Reported = 0 "reported",
        /// Counted by us from what passed.
        Estimated = 1 "estimated",
        /// Nobody knows.
        Missing = 2 "missing",
    }
}

wire_enum! {
    /// What the key pays of what the upstream takes.
    pub enum Mode {
        /// The upstream's cost times the markup.
        Managed = 0 "managed",
        /// The customer's own credential: a fee.
        PlatformFee = 1 "platform_fee",
        /// Recorded, nothing debited.
        None = 2 "none",
    }
}

wire_enum! {
    /// Why a hold was given back without a charge.
    pub enum Release {
        /// It was not: the exchange was charged, or held nothing.
        None = 0 "none",
        /// Refused before dispatch.
        Refused = 1 "refused",
        /// Every attempt failed with nothing received.
        NothingReceived = 2 "nothing_received",
        /// The process died before anything was sent.
        NeverSent = 3 "never_sent",
        /// The rule of this ending says so.
        Rule = 4 "rule",
        /// The price was unknown.
        PriceUnknown = 5 "price_unknown",
    }
}

wire_enum! {
    /// What came of one attempt.
    pub enum StatusClass {
        /// Nothing yet: under way, or the process died.
        None = 0 "none",
        /// A 2xx.
        Success = 1 "success",
        /// A 3xx, 101 or anything that is no answer.
        Invalid = 2 "invalid",
        /// A 429.
        Limited = 3 "limited",
        /// 401, 402, 403 or 429 that speaks of the account.
        Account = 4 "account",
        /// The candidate cannot do what was asked.
        Capability = 5 "capability",
        /// Any other 4xx.
        Client = 6 "client",
        /// A 5xx.
        Server = 7 "server",
        /// No connection.
        Unreachable = 8 "unreachable",
        /// No answer in time.
        Timeout = 9 "timeout",
        /// The connection ended before or inside the answer.
        Cut = 10 "cut",
        /// Not tried: its breaker was open.
        BreakerOpen = 11 "breaker_open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_one_to_one() {
        for (index, ending) in Ending::ALL.iter().enumerate() {
            assert_eq!(usize::from(ending.number()), index);
            assert_eq!(Ending::from_number(ending.number()), Some(*ending));
            assert_eq!(Ending::ALL.iter().filter(|e| e.name() == ending.name()).count(), 1);
        }
        assert_eq!(Ending::from_number(15), None);
        assert_eq!(StatusClass::from_number(12), None);
    }

    /// Number and name of each row below a heading of the page about endings.
    fn rows(heading: &str) -> Vec<(u8, &'static str)> {
        let page = include_str!("../../docs/reference/endings.md");
        let section = page.split("\n## ").find(|section| section.starts_with(heading));
        let lines = section.into_iter().flat_map(str::lines);
        let row = |line: &'static str| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            Some((cells.next()?.parse().ok()?, cells.next()?.trim_matches('`')))
        };
        lines.filter_map(row).collect()
    }

    #[test]
    fn the_page_about_endings_has_every_number_and_name() {
        let endings: Vec<_> = Ending::ALL.iter().map(|e| (e.number(), e.name())).collect();
        let releases: Vec<_> = Release::ALL.iter().map(|r| (r.number(), r.name())).collect();
        let results: Vec<_> = StatusClass::ALL.iter().map(|c| (c.number(), c.name())).collect();
        // What has not ended, and what was not released, is in no log as such.
        assert_eq!(rows("The list"), endings[1..]);
        assert_eq!(rows("Why nothing was charged"), releases[1..]);
        assert_eq!(rows("Results of attempts"), results);
    }
}
