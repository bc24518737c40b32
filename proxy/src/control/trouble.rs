//! What went wrong, as lines for an operator: of settled records their failed attempts and bad
//! endings, of what has no record how much of it there was in a second. Each line has a category of
//! a closed list and numbers or names of ours; never a header, a body or a text of a client's or a
//! provider's.
//!
//! Bound: [`LINES_MAX`] lines of a category and second, and one more that counts the others.

use super::receipt::Names;
use crate::exchange::ids::RequestId;
use store::ending::{Ending, StatusClass};
use store::record::Settled;

/// Lines of one category in a second.
pub const LINES_MAX: u32 = 10;

/// A kind of trouble. Its name is what a line begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// A provider could not be reached: no address, no connection, no handshake.
    UpstreamUnreachable,
    /// It was late.
    UpstreamTimeout,
    /// It broke off.
    UpstreamCut,
    /// It answered with a status of 500 and above.
    UpstreamStatus,
    /// It answered 429.
    UpstreamLimited,
    /// It refuses a credential of ours, or the account is used up.
    UpstreamAccount,
    /// What it sent is no answer.
    UpstreamInvalid,
    /// It is not asked for a while; or a call found nobody who is.
    UpstreamResting,
    /// A client took no bytes.
    WriteStall,
    /// A defect of ours: a connection's task has panicked.
    Panic,
    /// Connections to providers that came to no handshake.
    UpstreamTls,
    /// Connections of clients that came to no handshake.
    ClientTls,
    /// Connections that could not be taken.
    Accept,
    /// Writes, syncs and checkpoints of the ledger that failed.
    Ledger,
    /// Exchanges and refusals that no slot was free for.
    Unrecorded,
    /// Copies of records that were to be told and found no room.
    RecordsLost,
}

/// All of them, in their order.
pub const CATEGORIES: [(Category, &str); 16] = [
    (Category::UpstreamUnreachable, "upstream_unreachable"),
    (Category::UpstreamTimeout, "upstream_timeout"),
    (Category::UpstreamCut, "upstream_cut"),
    (Category::UpstreamStatus, "upstream_status"),
    (Category::UpstreamLimited, "upstream_limited"),
    (Category::UpstreamAccount, "upstream_account"),
    (Category::UpstreamInvalid, "upstream_invalid"),
    (Category::UpstreamResting, "upstream_resting"),
    (Category::WriteStall, "write_stall"),
    (Category::Panic, "panic"),
    (Category::UpstreamTls, "upstream_tls"),
    (Category::ClientTls, "client_tls"),
    (Category::Accept, "accept"),
    (Category::Ledger, "ledger"),
    (Category::Unrecorded, "unrecorded"),
    (Category::RecordsLost, "records_lost"),
];

/// What a failed attempt is called.
fn of_attempt(class: StatusClass) -> Option<Category> {
    match class {
        StatusClass::Unreachable => Some(Category::UpstreamUnreachable),
        StatusClass::Timeout => Some(Category::UpstreamTimeout),
        StatusClass::Cut => Some(Category::UpstreamCut),
        StatusClass::Server => Some(Category::UpstreamStatus),
        StatusClass::Limited => Some(Category::UpstreamLimited),
        StatusClass::Account => Some(Category::UpstreamAccount),
        StatusClass::Invalid => Some(Category::UpstreamInvalid),
        // The caller's fault, or nobody's.
        StatusClass::None
        | StatusClass::Success
        | StatusClass::Capability
        | StatusClass::Client
        | StatusClass::BreakerOpen => None,
    }
}

/// What an ending is called that is trouble of its own.
fn of_ending(ending: Ending) -> Option<Category> {
    match ending {
        Ending::UpstreamCut => Some(Category::UpstreamCut),
        Ending::Deadline => Some(Category::UpstreamTimeout),
        Ending::WriteStall => Some(Category::WriteStall),
        Ending::Internal | Ending::LocalFailure => Some(Category::Panic),
        _ => None,
    }
}

/// The lines of a second, and what there was no line for.
#[derive(Debug, Default)]
pub struct Trouble {
    second: u64,
    told: [u32; CATEGORIES.len()],
    /// Figures at the last look, in the order of [`CATEGORIES`].
    seen: [u64; CATEGORIES.len()],
}

impl Trouble {
    /// Looks at a record.
    pub fn record(&mut self, record: &Settled, names: &Names, tell: &mut impl FnMut(&str)) {
        let mut told = None;
        for (number, (provider, attempt)) in names.listed(record).enumerate() {
            let Some(category) = of_attempt(attempt.class) else { continue };
            told = Some(category);
            let provider = provider.unwrap_or("?");
            self.line(category, tell, || {
                format!("provider={provider} attempt={} {}", number + 1, facts(record))
            });
        }
        if let Some(category) = of_ending(record.ending)
            && told != Some(category)
        {
            let provider = names.provider(record).unwrap_or("?");
            self.line(category, tell, || format!("provider={provider} {}", facts(record)));
        }
        if record.ending == Ending::Exhausted && record.attempts == 0 {
            self.line(Category::UpstreamResting, tell, || facts(record));
        }
    }

    /// Looks at a figure that only rises.
    pub fn figure(&mut self, category: Category, figure: u64, tell: &mut impl FnMut(&str)) {
        let Some(seen) = self.seen.get_mut(category as usize) else { return };
        let count = figure.saturating_sub(*seen);
        *seen = figure;
        if count > 0 {
            self.line(category, tell, || format!("count={count}"));
        }
    }

    /// A second begins: what the last one had no line for is counted.
    pub fn turn(&mut self, second: u64, tell: &mut impl FnMut(&str)) {
        if second == self.second {
            return;
        }
        self.second = second;
        for ((_, name), told) in CATEGORIES.iter().zip(&mut self.told) {
            let more = std::mem::take(told).saturating_sub(LINES_MAX);
            if more > 0 {
                tell(&format!("{name} more={more}"));
            }
        }
    }

    /// Tells a line of a category, or counts it.
    pub(super) fn line(
        &mut self,
        category: Category,
        tell: &mut impl FnMut(&str),
        facts: impl FnOnce() -> String,
    ) {
        let at = category as usize;
        let (Some(told), Some((_, name))) = (self.told.get_mut(at), CATEGORIES.get(at)) else {
            return;
        };
        *told = told.saturating_add(1);
        if *told <= LINES_MAX {
            tell(&format!("{name} {}", facts()));
        }
    }
}

/// Of a record, what leads to the rest of it.
fn facts(record: &Settled) -> String {
    format!(
        "request={} ending={} status={} ms={}",
        RequestId(record.request_id),
        record.ending.name(),
        record.status,
        record.duration_ms(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::record::{Attempt, Head};

    fn failed(class: StatusClass, ending: Ending) -> Settled {
        let mut head = Head { ending, status: 502, ..Head::default() };
        head.attempt(Attempt::default());
        head.attempt_ended(class, false);
        Settled { head, ..Settled::default() }
    }

    fn names() -> Names {
        Names::told([], vec!["first".into()])
    }

    #[test]
    fn every_category_stands_at_its_place() {
        for (at, (category, name)) in CATEGORIES.iter().enumerate() {
            assert_eq!(*category as usize, at, "{name}");
        }
    }

    #[test]
    fn a_failed_attempt_is_a_line_and_a_client_s_own_fault_is_none() {
        let mut lines = Vec::new();
        let mut trouble = Trouble::default();
        let mut tell = |line: &str| lines.push(line.to_owned());
        for (class, ending) in [
            (StatusClass::Client, Ending::UpstreamError),
            (StatusClass::Success, Ending::Succeeded),
            (StatusClass::Timeout, Ending::Deadline),
            (StatusClass::Success, Ending::UpstreamCut),
            (StatusClass::Success, Ending::Internal),
        ] {
            trouble.record(&failed(class, ending), &names(), &mut tell);
        }
        let head = Head { ending: Ending::Exhausted, status: 503, ..Head::default() };
        trouble.record(&Settled { head, ..Settled::default() }, &names(), &mut tell);
        let id = RequestId([0; 16]);
        let wanted = [
            format!("upstream_timeout provider=first attempt=1 request={id} ending=deadline"),
            format!("upstream_cut provider=first request={id} ending=upstream_cut"),
            format!("panic provider=first request={id} ending=internal"),
        ];
        let mut wanted = Vec::from(wanted.map(|line| line + " status=502 ms=0"));
        wanted.push(format!("upstream_resting request={id} ending=exhausted status=503 ms=0"));
        assert_eq!(lines, wanted);
    }

    #[test]
    fn of_a_storm_ten_lines_a_second_are_told_and_the_rest_is_counted() {
        let mut lines = Vec::new();
        let mut trouble = Trouble::default();
        let mut tell = |line: &str| lines.push(line.to_owned());
        trouble.turn(7, &mut tell);
        for _ in 0..1_000 {
            let record = failed(StatusClass::Server, Ending::Exhausted);
            trouble.record(&record, &names(), &mut tell);
        }
        trouble.record(&failed(StatusClass::Cut, Ending::Exhausted), &names(), &mut tell);
        trouble.turn(7, &mut tell);
        trouble.turn(8, &mut tell);
        trouble.turn(9, &mut tell);
        assert_eq!(lines.len(), 12, "{lines:#?}");
        assert_eq!(lines.last().unwrap(), "upstream_status more=990");
    }

    #[test]
    fn of_a_figure_what_it_rose_by_is_told() {
        let mut lines = Vec::new();
        let mut trouble = Trouble::default();
        let mut tell = |line: &str| lines.push(line.to_owned());
        for figure in [0, 3, 3, 4] {
            trouble.figure(Category::ClientTls, figure, &mut tell);
        }
        assert_eq!(lines, ["client_tls count=3", "client_tls count=1"]);
    }
}
