//! `tollgate ledger …`: the log, read beside a running server or without one. Nothing is changed.

use super::output;
use super::place::{Home, Known, Place};
use super::table::table;
use super::{EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE, socket};
use crate::control::desk;
use crate::control::keys::Selector;
use crate::control::receipt;
use crate::exchange::ids::RequestId;
use crate::exchange::rfc3339;
use crate::exchange::time::UnixMs;
use clap::{Args, Subcommand};
use codec::trace_context::{self, Trace};
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use store::ending::Ending;
use store::record::{Head, Record, Settled};

mod amounts;
mod show;
mod sum;
mod verify;

/// Records that `tail` shows unless told otherwise.
const TAIL: usize = 20;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// The last records
    Tail {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        wanted: Wanted,
        /// How many
        #[arg(short = 'n', long, default_value_t = TAIL)]
        lines: usize,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Everything about a request, or about those of a trace, in plain words
    Show {
        #[command(flatten)]
        place: Place,
        /// Its id, as in x-tollgate-request-id; or a trace's, as in traceparent
        #[arg(value_name = "REQUEST|TRACE")]
        asked: String,
        /// One JSON object for each
        #[arg(long)]
        json: bool,
    },
    /// Sums of money and tokens
    Sum {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        wanted: Wanted,
        /// A row for each
        #[arg(long, value_enum)]
        by: Option<sum::By>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Prove the log: frames, chain, sequences, totals, checkpoint
    Verify {
        #[command(flatten)]
        place: Place,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Which records are asked for.
#[derive(Args, Debug)]
struct Wanted {
    /// Of this key: `key_7`, 7, its name, or the beginning of its text
    #[arg(long)]
    key: Option<String>,
    /// With this ending, as `succeeded` or `orphaned`
    #[arg(long)]
    ending: Option<String>,
    /// Closed at or after an instant (RFC 3339), or a time ago: 90s, 30m, 12h, 7d
    #[arg(long)]
    since: Option<String>,
}

/// The same, read.
#[derive(Clone, Copy, Default)]
struct Filter {
    key: Option<u64>,
    ending: Option<Ending>,
    since: u64,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let done = match &arguments.what {
        What::Tail { place, wanted, lines, json } => tail(place, wanted, *lines, *json),
        What::Show { place, asked, json } => show(place, asked, *json),
        What::Sum { place, wanted, by, json } => sums(place, wanted, *by, *json),
        What::Verify { place, json } => return verify::run(place, *json),
    };
    done.unwrap_or_else(|Failure { code, why }| {
        output::tell(&format!("tollgate: {why}"));
        code
    })
}

fn tail(place: &Place, wanted: &Wanted, lines: usize, json: bool) -> Result<u8, Failure> {
    let home = place.home()?;
    let (filter, known) = wanted.read(&home)?;
    let names = home.names(&known);
    let found = store::query::tail(&home.log, home.node, lines, |head| filter.takes(head));
    let mut rows = vec![amounts::HEADINGS.map(str::to_owned).to_vec()];
    for entry in found.map_err(damaged)? {
        let record = entry.record().map_err(damaged)?;
        let record = Settled::from(&record);
        if json {
            let mut value = receipt::json(&record, &names);
            value["seq"] = entry.seq.into();
            output::say(&value.to_string());
        } else {
            rows.push(amounts::row(&record, &names));
        }
    }
    if !json {
        table(&rows).iter().for_each(|line| output::say(line));
    }
    Ok(EXIT_OK)
}

fn show(place: &Place, asked: &str, json: bool) -> Result<u8, Failure> {
    let home = place.home()?;
    let asked = Asked::read(asked)?;
    let names = home.names(&home.known(None)?);
    let mut found = 0_usize;
    let scanned = store::query::scan(&home.log, home.node, 1, |seq, _, record| {
        if !asked.takes(record) {
            return true;
        }
        if json {
            output::say(&show::json(seq, record, &names).to_string());
        } else {
            let space = (found > 0).then(String::new);
            let rows = show::rows(seq, record, &names);
            space.iter().chain(&rows).for_each(|line| output::say(line));
        }
        found += 1;
        asked.has_more()
    });
    scanned.map_err(damaged)?;
    if found == 0 {
        let why = "not in the log: under way, not settled yet, refused unknown, or another node's";
        output::tell(&format!("tollgate: {asked} is {why}"));
        return Ok(EXIT_FAILED);
    }
    Ok(EXIT_OK)
}

fn sums(place: &Place, wanted: &Wanted, by: Option<sum::By>, json: bool) -> Result<u8, Failure> {
    let home = place.home()?;
    let (filter, known) = wanted.read(&home)?;
    let names = home.names(&known);
    let mut sums = sum::Sums::new(by);
    let scanned = store::query::scan(&home.log, home.node, 1, |_, _, record| {
        if filter.takes(&record.head) {
            sums.add(record, &names);
        }
        true
    });
    scanned.map_err(damaged)?;
    if json {
        output::say(&sums.json().to_string());
    } else {
        sums.lines().iter().for_each(|line| output::say(line));
    }
    Ok(EXIT_OK)
}

impl Wanted {
    fn read(&self, home: &Home) -> Result<(Filter, Known), Failure> {
        let key = self.key.as_deref().map(Meant::read).transpose()?;
        let known = home.known(key.as_ref().and_then(Meant::selector))?;
        let key = key.map(|key| key.id(home, &known)).transpose()?;
        let ending = self.ending.as_ref().map(|name| ending_of(name)).transpose()?;
        let now = crate::shard::clock::now().wall;
        let since = self.since.as_ref().map(|text| instant(text, now)).transpose()?;
        Ok((Filter { key, ending, since: since.map_or(0, |at| at.0) }, known))
    }
}

impl Filter {
    fn takes(&self, head: &Head) -> bool {
        self.key.is_none_or(|key| head.key_id == key)
            && self.ending.is_none_or(|ending| head.ending == ending)
            && head.closed_unix_ms >= self.since
    }
}

/// What `show` is asked for.
#[derive(Clone, Copy)]
enum Asked {
    Request(RequestId),
    Trace([u8; 16]),
}

impl Asked {
    /// A request's id; a trace's, alone or in the whole value of `traceparent`.
    fn read(text: &str) -> Result<Asked, &'static str> {
        if let Some(id) = RequestId::parse(text) {
            return Ok(Asked::Request(id));
        }
        let whole = || Trace::parse(text.as_bytes()).map(|trace| trace.id);
        let trace = trace_context::id(text.as_bytes()).or_else(whole).map(Asked::Trace);
        trace.ok_or("a request id is tgr_ and 32 letters from a to p, a trace id 32 hex digits")
    }

    fn takes(self, record: &Record<'_>) -> bool {
        match self {
            Asked::Request(id) => record.head.request_id == id.0,
            Asked::Trace(id) => record.tail.trace_id == Some(id),
        }
    }

    /// Whether there can be more than one record of it.
    fn has_more(self) -> bool {
        matches!(self, Asked::Trace(_))
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::Request(id) => id.fmt(f),
            Asked::Trace(id) => write!(f, "trace {}", receipt::trace(*id)),
        }
    }
}

/// A key as a command names it: by its number, which need not be known to anybody, or as `keys`
/// takes it.
enum Meant {
    Number(u64),
    Other(Selector),
}

impl Meant {
    fn read(text: &str) -> Result<Meant, String> {
        let number = text.strip_prefix("key_").unwrap_or(text);
        if let Ok(id) = number.parse() {
            return Ok(Meant::Number(id));
        }
        Selector::read(text).map(Meant::Other).map_err(|fault| fault.to_string())
    }

    fn selector(&self) -> Option<&Selector> {
        match self {
            Meant::Number(_) => None,
            Meant::Other(selector) => Some(selector),
        }
    }

    fn id(&self, home: &Home, known: &Known) -> Result<u64, Failure> {
        let selector = match self {
            Meant::Number(id) => return Ok(*id),
            Meant::Other(selector) => selector,
        };
        match known {
            Known::Server(_) => {
                let target = format!("/keys/{}", desk::encoded(selector));
                let answer = socket::ask(&home.state_dir, "GET", &target, "")?;
                let answer = answer.ok_or("the server has just ended; ask again")?.body;
                let told = answer["error"]["message"].as_str();
                let told = told.unwrap_or("it does not say which key").to_owned();
                answer["id"].as_u64().ok_or(Failure { code: EXIT_FAILED, why: told })
            }
            Known::Store(store) => match &store.meant {
                Some(Ok(id)) => Ok(*id),
                Some(Err(why)) => Err(Failure { code: EXIT_FAILED, why: why.clone() }),
                None => Err("which key is meant was not asked".into()),
            },
            Known::Nobody => {
                Err("nobody answers who knows the names of keys: give its number".into())
            }
        }
    }
}

/// Why a command is not done, and its exit code.
struct Failure {
    code: u8,
    why: String,
}

impl<T: Into<String>> From<T> for Failure {
    fn from(why: T) -> Failure {
        Failure { code: EXIT_UNUSABLE, why: why.into() }
    }
}

/// The log itself says no.
fn damaged(error: store::error::Error) -> Failure {
    Failure { code: EXIT_FAILED, why: error.to_string() }
}

fn ending_of(name: &str) -> Result<Ending, String> {
    let found = Ending::ALL.iter().find(|ending| ending.name() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = Ending::ALL.iter().map(|ending| ending.name()).collect();
        format!("{name:?} is no ending; there are {}", names.join(", "))
    })
}

/// An instant, or a time before now.
fn instant(text: &str, now: UnixMs) -> Result<UnixMs, String> {
    if let Some(at) = rfc3339::parse(text) {
        return Ok(at);
    }
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let ago = units.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs(count.checked_mul(*seconds)?))
    });
    let ago = ago.ok_or_else(|| {
        format!("{text:?} is neither an instant such as 2026-11-30T12:00:00Z nor a time such as 7d")
    })?;
    let ago = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
    Ok(UnixMs(now.0.saturating_sub(ago)))
}

/// A number as JSON: whole, and as text where it is beyond 64 bits.
fn whole(number: u128) -> Value {
    u64::try_from(number).map_or_else(|_| number.to_string().into(), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_one_or_lies_so_long_ago() {
        let now = UnixMs(1_000_000_000_000);
        for (text, at) in [
            ("1970-01-01T00:00:01Z", Some(1_000)),
            ("90s", Some(now.0 - 90_000)),
            ("2m", Some(now.0 - 120_000)),
            ("1h", Some(now.0 - 3_600_000)),
            ("1d", Some(now.0 - 86_400_000)),
            ("99999999999999999999d", None),
            ("9999999999999999d", None),
            ("-1d", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(instant(text, now).ok().map(|at| at.0), at, "{text}");
        }
    }

    #[test]
    fn endings_are_known_by_name() {
        assert_eq!(ending_of("orphaned"), Ok(Ending::Orphaned));
        assert!(ending_of("lost").unwrap_err().contains("succeeded"));
    }
}
