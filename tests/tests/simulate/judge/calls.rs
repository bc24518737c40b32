//! Calls as clients saw them: an answer is the upstream's own bytes or an error of ours that had a
//! reason, whoever stays gets one, and whoever has a whole one has its record.

use super::{Case, Index, brief, is_exchange};
use crate::call::{Call, Expect, Kind as Calls};
use crate::client::is_closed_by_end;
use crate::notes::{Asked, Got};
use crate::plan::{Reading, Turn};
use crate::reply::{Kind, Reply, Told};
use crate::stream::{self, Event};
use crate::world::{Dialect, Reach, key_id};
use gateway_tests::answer::Answer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use store::ending::{Ending, Provenance, Release};
use store::record::{Settled, flag};
use tollgate::exchange::codes;

/// What a client is told instead of what a provider says of our account.
const REWORDED: &str = "The upstream account behind this gateway cannot serve this call now.";

/// How much later than due a heartbeat may be: two ticks, and what goes on meanwhile.
const BEAT_LATE: Duration = Duration::from_millis(300);

/// Every call.
pub(super) fn check(case: &Case<'_>, index: &Index<'_>, faults: &mut Vec<String>) {
    for client in &case.plan.clients {
        for turn in &client.turns {
            let view = View {
                case,
                index,
                turn,
                reading: client.reading,
                number: turn.call,
                call: case.call(turn.call),
                got: &case.got[turn.call],
                attempts: &index.attempts[turn.call],
            };
            if let Err(why) = view.check() {
                let got = view.got;
                let answer = got.answer.as_ref().or(got.partial.as_ref());
                let shown = answer.map(|a| (a.status, a.code(), a.body.len()));
                let record = index.record(turn.call).map(brief);
                let record = record.unwrap_or_else(|| "no record".to_owned());
                faults.push(format!("call {}: {why}; it has {shown:?}; {record}", turn.call));
            }
        }
    }
}

struct View<'v, 'c> {
    case: &'v Case<'c>,
    index: &'v Index<'v>,
    turn: &'v Turn,
    reading: Reading,
    number: usize,
    call: &'v Call,
    got: &'v Got,
    attempts: &'v [&'v Asked],
}

impl View<'_, '_> {
    fn check(&self) -> Result<(), String> {
        if self.got.connection.is_none() {
            return match self.attempts.is_empty() {
                true => Ok(()),
                false => Err("it was never made, and an upstream was asked".to_owned()),
            };
        }
        match (&self.got.answer, &self.got.partial) {
            (Some(answer), _) => self.whole(answer),
            (None, Some(partial)) => self.part(partial),
            (None, None) => self.nothing(),
        }
    }

    fn dialect(&self) -> Dialect {
        self.call.kind.dialect()
    }

    fn record(&self) -> Option<&Settled> {
        self.index.record(self.number)
    }

    fn replies(&self) -> impl DoubleEndedIterator<Item = &Reply> {
        self.attempts.iter().map(move |asked| &self.call.replies[asked.reply])
    }

    fn kinds(&self) -> Vec<Kind> {
        self.replies().map(|reply| reply.kind).collect()
    }

    fn killed(&self) -> bool {
        self.case.killed_between(self.got.begun_ns, self.got.over_ns)
    }

    fn drained(&self) -> bool {
        self.case.drained_between(self.got.begun_ns, self.got.over_ns)
    }

    /// Whether the client has stopped reading for too long.
    fn stalled(&self) -> bool {
        self.reading != Reading::Fast
    }

    /// Whether something else than the upstream may have ended it.
    fn disturbed(&self) -> bool {
        self.got.left || self.killed() || self.drained() || self.stalled()
    }

    /// An answer that came to its end.
    fn whole(&self, answer: &Answer) -> Result<(), String> {
        if is_stream(answer) {
            return self.streamed(answer, true);
        }
        if answer.field("x-of-provider").is_some() {
            return self.passed_on(answer);
        }
        if self.call.expect == Expect::Local && answer.status == 200 {
            return Ok(());
        }
        self.own(answer)
    }

    /// An upstream's answer: its status, its bytes, and its price in the record.
    fn passed_on(&self, answer: &Answer) -> Result<(), String> {
        if answer.field("set-cookie").is_some() {
            return Err("a cookie came through".to_owned());
        }
        let last = self.replies().last().ok_or("no upstream was asked")?;
        if last.can.succeed && last.events.is_none() && answer.status == last.status {
            let cut_by_kill = is_closed_by_end(answer) && self.killed();
            if last.body != answer.body {
                let (had, sent) = (answer.body.len(), last.body.len());
                return match cut_by_kill && last.body.starts_with(&answer.body) {
                    true => Ok(()),
                    false => Err(format!("its body is not the upstream's: {had} of {sent} B")),
                };
            }
            return self.confirmed(last.usage.is_some(), true, Some(answer.body.len()));
        }
        // The last upstream's answer is told, whatever came to nothing after it.
        let reply = self.replies().rfind(|reply| reply.can.told.is_some());
        let reply = reply.ok_or_else(|| format!("{:?} came through", self.kinds()))?;
        let told = reply.can.told.as_ref().ok_or("nothing to tell")?;
        if !is_told(answer, told) {
            return Err(format!("it was told otherwise than {:?} said it", reply.kind));
        }
        let len = (!told.reworded).then_some(answer.body.len());
        self.confirmed(reply.usage.is_some(), false, len)
    }

    /// Whoever has the whole answer has paid for it.
    fn confirmed(&self, counted: bool, success: bool, len: Option<usize>) -> Result<(), String> {
        if self.call.kind.is_free() {
            return Ok(());
        }
        let record = self.record().ok_or("a whole answer has no record")?;
        let ending = if success { Ending::Succeeded } else { Ending::UpstreamError };
        if record.ending != ending && record.ending != Ending::Unknown {
            return Err(format!("a whole answer ended as {:?}", record.ending));
        }
        let off = success && !counted && self.case.plan.world.endings.succeeded_free;
        let (provenance, release) = match (counted, success) {
            (true, _) => (Provenance::Reported, Release::None),
            (false, true) if off => (Provenance::Missing, Release::Rule),
            (false, true) => (Provenance::Estimated, Release::None),
            (false, false) => (Provenance::Missing, Release::None),
        };
        // An attempt before may have told what it used, and broken off.
        let before = !success && self.replies().any(|reply| reply.usage.is_some());
        if (record.provenance, record.release) != (provenance, release) && !before {
            return Err(format!(
                "a whole answer that {} counted",
                if counted { "was" } else { "was not" }
            ));
        }
        if len.is_some_and(|len| record.relayed_bytes != len as u64) {
            return Err("bytes are not those of the answer".to_owned());
        }
        Ok(())
    }

    /// A stream, to its end or as far as it came.
    fn streamed(&self, answer: &Answer, whole: bool) -> Result<(), String> {
        if answer.status != 200 || !self.call.kind.is_stream() {
            return Err(format!("a stream with {} that nobody asked for", answer.status));
        }
        let whole = whole && !(is_closed_by_end(answer) && self.killed());
        let last = self.replies().last().ok_or("no upstream was asked")?;
        let record = self.record();
        // Behind a heartbeat it is none: the head that went says nothing of its coding.
        let coded = answer.field("content-encoding").is_some();
        if coded {
            return match last.body.starts_with(&answer.body) {
                true if whole && last.body.len() == answer.body.len() => {
                    self.confirmed(true, true, Some(answer.body.len()))
                }
                true if !whole && self.disturbed() => Ok(()),
                _ => Err("a coded stream is not as it came".to_owned()),
            };
        }
        let none = Vec::new();
        let shows = !matches!(last.kind, Kind::StreamErrorFirst | Kind::StreamGzip);
        let all = last.events.as_ref().filter(|_| shows).unwrap_or(&none);
        let visible: Vec<&Event> = all.iter().filter(|event| !event.hidden).collect();
        let torn = !whole && self.disturbed();
        let body = if torn { stream::untorn(&answer.body, self.dialect()) } else { &answer.body };
        let seen = stream::read(body, &visible, self.dialect())?;
        let bytes = seen.bytes;
        let ended = visible[..seen.events].iter().any(|event| event.ends);
        if let Some(error) = &seen.error {
            return self.broken(error, &visible[..seen.events], whole);
        }
        if whole && !seen.is_all_of(&visible) {
            let (came, more, all) = (seen.events, seen.within, visible.len());
            return Err(format!("{came} of {all} events and {more} B, and a clean end"));
        }
        // Behind its terminator a stream is over, whatever its framing says.
        if whole && !last.can.succeed && !ended {
            return Err(format!("a stream that is {:?} ended cleanly", last.kind));
        }
        self.beats(last, seen.beats, whole)?;
        let record = record.ok_or("a stream has no record")?;
        if whole || ended {
            self.paid(record, last, whole, bytes)?;
        } else if !last.can.partial && !self.disturbed() {
            return Err(format!("a stream that is {:?} broke off", last.kind));
        }
        if record.relayed_bytes < (bytes + seen.within) as u64 && record.ending != Ending::Orphaned
        {
            let came = bytes + seen.within;
            return Err(format!("{} B are recorded, {came} came", record.relayed_bytes));
        }
        Ok(())
    }

    /// Whoever has the end of a stream has paid for all of it.
    fn paid(
        &self,
        record: &Settled,
        reply: &Reply,
        whole: bool,
        bytes: usize,
    ) -> Result<(), String> {
        let late = reply.kind == Kind::StreamErrorLate;
        let ending = if late { Ending::UpstreamError } else { Ending::Succeeded };
        use Ending::{ClientLeft, Shutdown, WriteStall};
        let away = !whole && matches!(record.ending, ClientLeft | WriteStall | Shutdown);
        if record.ending != ending && record.ending != Ending::Unknown && !away {
            return Err(format!("a stream to its end ended as {:?}", record.ending));
        }
        let rules = self.case.plan.world.endings;
        let off = if late { rules.broken_free } else { rules.succeeded_free };
        let provenance = match reply.usage {
            Some(_) => Provenance::Reported,
            None if off => Provenance::Missing,
            None => Provenance::Estimated,
        };
        if record.provenance != provenance {
            return Err(format!("a stream to its end is {:?}", record.provenance));
        }
        if whole && record.relayed_bytes != bytes as u64 {
            return Err(format!("{} B are recorded, {bytes} came", record.relayed_bytes));
        }
        Ok(())
    }

    /// A stream in which the gateway told of an error.
    fn broken(&self, error: &Value, events: &[&Event], whole: bool) -> Result<(), String> {
        let record = self.record().ok_or("a stream has no record")?;
        if !whole && !self.disturbed() {
            return Err("an error and no end behind it".to_owned());
        }
        let last = self.replies().last().ok_or("no upstream was asked")?;
        if events.iter().any(|event| event.ends) {
            return Err("an error behind the end".to_owned());
        }
        // The answer of an upstream, told inside.
        let told = self.replies().rfind(|reply| reply.can.told.is_some());
        if let Some(told) =
            told.and_then(|reply| reply.can.told.as_ref()).filter(|_| events.is_empty())
            && says(error, told)
        {
            return Ok(());
        }
        let ending = record.ending;
        let right = match ending {
            Ending::UpstreamCut => last.can.codes.contains(&"upstream_cut"),
            Ending::Deadline => self.replies().any(|r| r.can.codes.contains(&"upstream_timeout")),
            Ending::Shutdown => self.drained(),
            Ending::Exhausted => events.is_empty(),
            // It was told of, and the process did not live to write how it ended.
            Ending::Orphaned | Ending::Unknown => self.killed(),
            Ending::ClientLeft | Ending::WriteStall => self.got.left || self.stalled(),
            _ => false,
        };
        let fits = match self.dialect() {
            Dialect::Chat => {
                codes::number(error["error"]["code"].as_str().unwrap_or_default()) != 0
            }
            Dialect::Messages => error["type"] == "error" && error["error"]["type"].is_string(),
        };
        if !fits {
            return Err(format!("an error in no dialect: {error}"));
        }
        match right {
            true => Ok(()),
            false => Err(format!("{error} for {:?}", self.kinds())),
        }
    }

    /// A client that hears nothing for too long is told that its call is alive.
    fn beats(&self, reply: &Reply, beats: usize, whole: bool) -> Result<(), String> {
        let due = self.case.plan.world.heartbeat + BEAT_LATE;
        let must =
            whole && !self.disturbed() && reply.longest_rest > due && self.attempts.len() == 1;
        match must && beats == 0 {
            true => Err(format!("{:?} of silence and no heartbeat", reply.longest_rest)),
            false => Ok(()),
        }
    }

    /// The code of an error of ours: told by chat, recorded for both.
    fn code(&self, answer: &Answer) -> Option<&'static str> {
        match self.dialect() {
            Dialect::Chat => codes::name(codes::number(&answer.code())),
            Dialect::Messages => {
                self.record().and_then(|record| codes::name(record.error_code)).or_else(|| {
                    // Counted, or of nobody: any code of this status that there is a reason for.
                    let known = CODES.iter().filter(|(_, status)| *status == answer.status);
                    let mut known = known.map(|(code, _)| *code);
                    let own = match self.call.expect {
                        Expect::Own(_, code) => Some(code),
                        Expect::Upstream | Expect::Local => None,
                    };
                    let fits = |code: &&'static str| match self.attempts.is_empty() {
                        true => Some(*code) == own || self.reason(answer, code).is_ok(),
                        false => self.reason_upstream(code).is_ok(),
                    };
                    known.find(fits)
                })
            }
        }
    }

    /// An error of ours: one that there was a reason for, in the caller's dialect.
    fn own(&self, answer: &Answer) -> Result<(), String> {
        let code = self.code(answer);
        let code = code.ok_or_else(|| format!("an error without a code: {}", answer.text()))?;
        if CODES.iter().any(|(known, status)| *known == code && *status != answer.status) {
            return Err(format!("{code} with status {}", answer.status));
        }
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let named = body["error"]["message"].is_string() && body["error"]["type"].is_string();
        let shaped = match self.dialect() {
            Dialect::Chat => named,
            Dialect::Messages => named && body["type"] == "error" && body["request_id"].is_string(),
        };
        // A head that did not come in time does not always say in which one.
        let late = named && code == "request_timeout";
        if !shaped && !late {
            return Err(format!("an error in no dialect: {}", answer.text()));
        }
        if let Some(record) = self.record() {
            if record.status != answer.status || codes::name(record.error_code) != Some(code) {
                return Err("its record tells another error".to_owned());
            }
            // It is settled before it is told.
            if matches!(record.ending, Ending::Orphaned | Ending::Unknown) {
                return Err("it was told before it was settled".to_owned());
            }
        }
        if self.attempts.is_empty() {
            self.reason(answer, code)
        } else {
            self.reason_upstream(code)
        }
    }

    /// Why a call was refused that no upstream has seen.
    fn reason(&self, answer: &Answer, code: &str) -> Result<(), String> {
        let told = (answer.status, code);
        if matches!(self.call.expect, Expect::Own(status, own) if (status, own) == told) {
            return Ok(());
        }
        let world = &self.case.plan.world;
        let key = self.call.key().map(|key| (key, &world.keys[key]));
        let governed = self.call.kind.is_governed();
        let asks = governed || self.call.kind.is_free();
        let dead = self
            .call
            .candidates(world)
            .any(|(_, one)| world.providers[one.provider].reach != Reach::Open);
        let right = match code {
            "rate_limited" => governed && key.is_some_and(|(_, key)| key.rpm.is_some()),
            "concurrency_limited" => key.is_some_and(|(_, key)| key.concurrent.is_some()),
            "budget_exceeded" | "budget_reserved" => {
                governed && key.is_some_and(|(_, key)| key.has_budget())
            }
            "key_revoked" => key.is_some_and(|(key, _)| self.was_off(key)),
            // The disk hung or failed, or the slots were few.
            "ledger_busy" => governed,
            "shutting_down" => self.drained(),
            "request_timeout" => self.turn.is_slow(),
            "upstream_unreachable" => asks && dead,
            // Breakers are open, or credentials cool.
            "upstream_unavailable" => asks,
            // The request went to a connection that ended before it was looked at.
            "upstream_cut" => asks,
            "invalid_request" => self.got.sent_ns.is_none(),
            _ => false,
        };
        if right { Ok(()) } else { Err(format!("no reason for {} {code}", answer.status)) }
    }

    /// Why a call has an error of ours that an upstream was asked about.
    fn reason_upstream(&self, code: &str) -> Result<(), String> {
        let world = &self.case.plan.world;
        let revoked = self.call.key().is_some_and(|key| self.was_off(key));
        let dead = self
            .call
            .candidates(world)
            .any(|(_, one)| world.providers[one.provider].reach != Reach::Open);
        let surplus = self.attempts.iter().any(|asked| self.case.is_behind_surplus(asked));
        let right = match code {
            "shutting_down" => self.drained(),
            "key_revoked" => revoked,
            "upstream_unreachable" => dead,
            "upstream_invalid" if surplus => true,
            // A reused connection that was dead already is nobody's reply.
            "upstream_cut" => self.attempts.len() > 1 || self.last_can(code),
            _ => self.replies().any(|reply| reply.can.codes.contains(&code)),
        };
        if !right {
            return Err(format!("{code} for {:?}", self.kinds()));
        }
        // An upstream's answer is told rather than words of ours.
        let told = self.replies().any(|reply| reply.can.told.is_some()) && !surplus;
        if told && !matches!(code, "shutting_down" | "key_revoked") {
            return Err(format!("{code}, and an answer could be told of {:?}", self.kinds()));
        }
        if self.call.kind.is_free() {
            return Ok(());
        }
        let record = self.record().ok_or("an upstream was asked, and the error has no record")?;
        if !matches!(record.ending, Ending::Exhausted | Ending::Deadline | Ending::Shutdown) {
            return Err("an error of ours ended otherwise".to_owned());
        }
        let used = self.replies().any(|reply| reply.usage.is_some());
        match record.cost_picousd != 0 && (!used || record.provenance != Provenance::Reported) {
            true => Err("an error of ours that costs without a word of usage".to_owned()),
            false => Ok(()),
        }
    }

    fn last_can(&self, code: &str) -> bool {
        self.replies().last().is_some_and(|reply| reply.can.codes.contains(&code))
    }

    /// Whether the key was not good at some time since the call began.
    fn was_off(&self, key: usize) -> bool {
        let turns = &self.case.standing[key];
        let stops = turns.iter().step_by(2);
        let goes = turns.iter().skip(1).step_by(2).copied().chain([u64::MAX]);
        stops.zip(goes).any(|(stop, go)| *stop <= self.got.over_ns && self.got.begun_ns <= go)
    }

    /// An answer that broke off: for all to see, and for a reason.
    fn part(&self, partial: &Answer) -> Result<(), String> {
        if is_stream(partial) {
            return self.streamed(partial, false);
        }
        if partial.field("x-of-provider").is_none() {
            return match self.disturbed() {
                true => Ok(()),
                false => Err("an answer of ours broke off".to_owned()),
            };
        }
        let last = self.replies().last().ok_or("no upstream was asked")?;
        let told = self.replies().filter_map(|reply| reply.can.told.as_ref());
        let mut told = told.filter(|told| !told.reworded || self.disturbed());
        let known = last.body.starts_with(&partial.body)
            || told.any(|told| told.reworded || told.body.starts_with(&partial.body));
        if !known {
            return Err("what came of its body is not the upstream's".to_owned());
        }
        if !(last.can.partial || self.disturbed()) {
            return Err(format!("a reply that is {:?} broke off", last.kind));
        }
        if self.call.kind.is_free() {
            return Ok(());
        }
        let record = self.record().ok_or("part of an answer has no record")?;
        let relayed = record.relayed_bytes;
        // The bytes are counted before they are handed over; a kill can fall in between two notes.
        let killed = matches!(record.ending, Ending::Unknown | Ending::Orphaned);
        if relayed < partial.body.len() as u64 && !killed {
            return Err(format!("{relayed} B are recorded, {} came", partial.body.len()));
        }
        Ok(())
    }

    /// No byte of an answer.
    fn nothing(&self) -> Result<(), String> {
        let wholly = self.got.sent_ns.is_some();
        let excused = !wholly
            || self.got.idled
            || self.got.after_close
            || self.disturbed()
            || self.turn.is_slow();
        if excused || self.behind_a_break() {
            return Ok(());
        }
        Err("it was wholly sent, and its client stayed, and nothing came".to_owned())
    }

    /// A call that was sent behind one whose answer broke off, in words or not, or that was never
    /// wholly sent.
    fn behind_a_break(&self) -> bool {
        let before = self.case.got.iter().enumerate().take(self.number);
        let same = before.filter(|(_, got)| got.connection == self.got.connection);
        let broken = |number: usize, answer: &Answer| {
            let record = self.index.record(number);
            is_stream(answer) && record.is_some_and(|record| record.ending != Ending::Succeeded)
        };
        let mut breaks = same
            .map(|(number, got)| got.answer.as_ref().is_none_or(|answer| broken(number, answer)));
        breaks.any(|breaks| breaks)
    }
}

/// Codes of errors of ours that say something of the moment, and their statuses.
const CODES: [(&str, u16); 22] = [
    ("invalid_request", 400),
    ("model_missing", 400),
    ("model_unavailable", 400),
    ("price_unknown", 400),
    ("invalid_api_key", 401),
    ("budget_exceeded", 402),
    ("key_revoked", 403),
    ("model_not_allowed", 403),
    ("model_not_found", 404),
    ("request_timeout", 408),
    ("rate_limited", 429),
    ("concurrency_limited", 429),
    ("budget_reserved", 429),
    ("upstream_unreachable", 502),
    ("upstream_cut", 502),
    ("upstream_invalid", 502),
    ("empty_completion", 502),
    ("upstream_auth", 502),
    ("upstream_unavailable", 503),
    ("ledger_busy", 503),
    ("shutting_down", 503),
    ("upstream_timeout", 504),
];

fn is_stream(answer: &Answer) -> bool {
    let media = answer.field("content-type").unwrap_or_default();
    answer.status == 200 && media.starts_with("text/event-stream")
}

/// Whether an answer is this error, as it came or with our words in its message.
fn is_told(answer: &Answer, told: &Told) -> bool {
    if answer.status != told.status {
        return false;
    }
    if !told.reworded {
        return answer.body == told.body;
    }
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    says(&body, told)
}

/// The same of an error that is read.
fn says(error: &Value, told: &Told) -> bool {
    let mut wanted: Value = serde_json::from_slice(&told.body).unwrap_or_default();
    if told.reworded {
        wanted["error"]["message"] = REWORDED.into();
    }
    *error == wanted
}

/// Refusals of known keys leave a record each, or are counted in one.
pub(super) fn check_refusals(case: &Case<'_>, index: &Index<'_>, faults: &mut Vec<String>) {
    let mut told: BTreeMap<(u64, u16), u64> = BTreeMap::new();
    for (number, got) in case.got.iter().enumerate() {
        let call = case.call(number);
        let Some(answer) = got.answer.as_ref().filter(|a| a.field("x-of-provider").is_none())
        else {
            continue;
        };
        let Some(key) = call.key().filter(|_| answer.status >= 400) else { continue };
        let opened = index.record(number).is_some_and(is_exchange);
        let asked = !index.attempts[number].is_empty();
        if opened || asked || is_before_the_key(call.kind) || call.kind.is_free() {
            continue;
        }
        let code = answer.code();
        // A head that does not come in time is nobody's; a body that does not has a record. Those
        // of messages have no code, and are found by their ids only.
        if code != "request_timeout" && call.kind.dialect() == Dialect::Chat {
            *told.entry((key_id(key), codes::number(&code))).or_default() += 1;
        }
    }
    let mut recorded: BTreeMap<(u64, u16), u64> = BTreeMap::new();
    for record in case.records.iter().filter(|record| !is_exchange(record)) {
        let count = if record.has(flag::COUNTED) { record.count } else { 1 };
        *recorded.entry((record.key_id, record.error_code)).or_default() += u64::from(count);
    }
    let unrecorded: u64 = case.lives.iter().map(|life| life.refusals_unrecorded).sum();
    let killed = case.lives.iter().any(|life| life.killed.is_some());
    for ((key, code), count) in told {
        let found = recorded.get(&(key, code)).copied().unwrap_or_default();
        let name = codes::name(code).unwrap_or_default();
        if found < count && !killed && unrecorded == 0 {
            faults.push(format!("key {key}: {count} were told {name}, {found} are recorded"));
        }
    }
}

/// Refusals of these are told before anybody knows whose they are.
fn is_before_the_key(kind: Calls) -> bool {
    matches!(
        kind,
        Calls::NoRoute
            | Calls::NotServed
            | Calls::WrongMethod
            | Calls::TooLarge
            | Calls::NoLength
            | Calls::BrokenHead
            | Calls::Health
    )
}
