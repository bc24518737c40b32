//! Calls as clients saw them: an answer is the upstream's own bytes or an error of ours that had a
//! reason, whoever stays gets one, and whoever has a whole one has its record.

use super::{Case, Index, brief, is_exchange};
use crate::call::{Expect, Kind as Calls};
use crate::client::is_closed_by_end;
use crate::notes::{Asked, Got};
use crate::plan::Turn;
use crate::reply::{Kind, Reply};
use crate::world::{Reach, key_id};
use gateway_tests::answer::Answer;
use std::collections::BTreeMap;
use store::ending::{Ending, Provenance, Release};
use store::record::{Settled, flag};
use tollgate::exchange::codes;

/// Every call.
pub(super) fn check(case: &Case<'_>, index: &Index<'_>, faults: &mut Vec<String>) {
    for client in &case.plan.clients {
        for turn in &client.turns {
            let view = View {
                case,
                index,
                turn,
                number: turn.call,
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
    number: usize,
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

    fn replies(&self) -> impl Iterator<Item = &Reply> {
        let call = self.case.call(self.number);
        self.attempts.iter().map(move |asked| &call.replies[asked.reply])
    }

    fn killed(&self) -> bool {
        self.case.killed_between(self.got.begun_ns, self.got.over_ns)
    }

    fn drained(&self) -> bool {
        self.case.drained_between(self.got.begun_ns, self.got.over_ns)
    }

    /// An answer that came to its end.
    fn whole(&self, answer: &Answer) -> Result<(), String> {
        if answer.field("x-of-provider").is_some() {
            return self.passed_on(answer);
        }
        let call = self.case.call(self.number);
        if call.expect == Expect::Local && answer.status == 200 {
            return Ok(());
        }
        self.own(answer)
    }

    /// An upstream's answer: its status, its bytes, and its price in the record.
    fn passed_on(&self, answer: &Answer) -> Result<(), String> {
        let last = self.attempts.last().ok_or("no upstream was asked")?;
        let reply = &self.case.call(self.number).replies[last.reply];
        let cut_by_kill = is_closed_by_end(answer) && self.killed();
        let whole = reply.body == answer.body;
        if !whole && (!cut_by_kill || !reply.body.starts_with(&answer.body)) {
            let (had, sent) = (answer.body.len(), reply.body.len());
            return Err(format!("its body is not the upstream's: {had} of {sent} B"));
        }
        if answer.status != reply.status {
            return Err(format!("status {} became {}", reply.status, answer.status));
        }
        if answer.field("set-cookie").is_some() {
            return Err("a cookie came through".to_owned());
        }
        if !whole {
            return Ok(());
        }
        if !reply.can.verbatim {
            return Err(format!("a reply that is {:?} came through", reply.kind));
        }
        let record = self.index.record(self.number).ok_or("a whole answer has no record")?;
        self.confirmed(record, reply, answer)
    }

    /// Whoever has the whole answer has paid for it.
    fn confirmed(&self, record: &Settled, reply: &Reply, answer: &Answer) -> Result<(), String> {
        let success = (200..300).contains(&reply.status);
        let ending = if success { Ending::Succeeded } else { Ending::UpstreamError };
        if record.ending != ending && record.ending != Ending::Unknown {
            return Err(format!("a whole answer ended as {:?}", record.ending));
        }
        let provenance = match (reply.usage, success) {
            (Some(_), _) => Provenance::Reported,
            (None, true) => Provenance::Estimated,
            (None, false) => Provenance::Missing,
        };
        if record.provenance != provenance || record.release != Release::None {
            return Err(format!("a whole answer with usage {:?}", reply.usage));
        }
        if record.status != answer.status || record.relayed_bytes != answer.body.len() as u64 {
            return Err("status or bytes are not those of the answer".to_owned());
        }
        Ok(())
    }

    /// An error of ours: one that there was a reason for, in the caller's dialect.
    fn own(&self, answer: &Answer) -> Result<(), String> {
        let code = answer.code();
        if codes::number(&code) == 0 {
            return Err(format!("an error without a known code: {}", answer.text()));
        }
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if !body["error"]["message"].is_string() || !body["error"]["type"].is_string() {
            return Err(format!("an error in no dialect: {}", answer.text()));
        }
        let record = self.index.record(self.number);
        if let Some(record) = record {
            if record.status != answer.status || codes::name(record.error_code) != Some(&*code) {
                return Err("its record tells another error".to_owned());
            }
            // It is settled before it is told.
            if matches!(record.ending, Ending::Orphaned | Ending::Unknown) {
                return Err("it was told before it was settled".to_owned());
            }
        }
        if self.attempts.is_empty() {
            self.reason(answer, &code)
        } else {
            self.reason_upstream(&code, record)
        }
    }

    /// Why a call was refused that no upstream has seen.
    fn reason(&self, answer: &Answer, code: &str) -> Result<(), String> {
        let call = self.case.call(self.number);
        if call.expect == Expect::Own(answer.status, self.known(code)) {
            return Ok(());
        }
        let key = call.key().map(|key| (key, &self.case.plan.world.keys[key]));
        let model = &self.case.plan.world.models[call.model];
        let reach = self.case.plan.world.providers[model.provider].reach;
        // Models are looked up behind the layers that need no plan.
        let governed = matches!(call.kind, Calls::Chat | Calls::UnknownModel);
        let limited = |has: bool| has && governed;
        let right = match code {
            "rate_limited" => limited(key.is_some_and(|(_, key)| key.rpm.is_some())),
            "concurrency_limited" => key.is_some_and(|(_, key)| key.concurrent.is_some()),
            "budget_exceeded" | "budget_reserved" => {
                limited(key.is_some_and(|(_, key)| key.has_budget()))
            }
            "key_revoked" => key.is_some_and(|(key, _)| self.was_off(key)),
            // The disk hung or failed, or the slots were few.
            "ledger_busy" => governed,
            "shutting_down" => self.drained(),
            "request_timeout" => self.turn.is_slow(),
            "upstream_unreachable" => governed && reach != Reach::Open,
            // The request went to a connection that ended before it was looked at.
            "upstream_cut" => governed,
            "invalid_request" => self.got.sent_ns.is_none(),
            _ => false,
        };
        if right { Ok(()) } else { Err(format!("no reason for {} {code}", answer.status)) }
    }

    fn known(&self, code: &str) -> &'static str {
        codes::name(codes::number(code)).unwrap_or_default()
    }

    /// Why a call has an error of ours that an upstream was asked about.
    fn reason_upstream(&self, code: &str, record: Option<&Settled>) -> Result<(), String> {
        let record = record.ok_or("an upstream was asked, and the error has no record")?;
        if !matches!(record.ending, Ending::Exhausted | Ending::Deadline | Ending::Shutdown) {
            return Err("an error of ours ended otherwise".to_owned());
        }
        let revoked = self.case.call(self.number).key().is_some_and(|key| self.was_off(key));
        let reach = self.case.plan.world.providers.iter().any(|one| one.reach != Reach::Open);
        let right = match code {
            "shutting_down" => self.drained(),
            "key_revoked" => revoked,
            "upstream_unreachable" => reach,
            "upstream_timeout" => self.replies().any(|reply| reply.can.codes.contains(&code)),
            "upstream_invalid" if self.behind_surplus() => true,
            _ => self.replies().last().is_some_and(|reply| reply.can.codes.contains(&code)),
        };
        if !right {
            let kinds: Vec<Kind> = self.replies().map(|reply| reply.kind).collect();
            return Err(format!("{code} for {kinds:?}"));
        }
        let used = self.replies().any(|reply| reply.usage.is_some());
        match record.cost_picousd != 0 && (!used || record.provenance != Provenance::Reported) {
            true => Err("an error of ours that costs without a word of usage".to_owned()),
            false => Ok(()),
        }
    }

    /// Whether the last attempt came on a connection whose answer before had bytes behind its end.
    /// Those that come once the request is on its way are taken for the beginning of its answer.
    fn behind_surplus(&self) -> bool {
        let Some(last) = self.attempts.last() else { return false };
        let same =
            |asked: &&Asked| asked.provider == last.provider && asked.connection == last.connection;
        let before = self.case.asked.iter().filter(same).filter(|asked| asked.id != last.id);
        let reply = |asked: &Asked| self.case.call(asked.call).replies[asked.reply].kind;
        before.map(reply).any(|kind| kind == Kind::Surplus)
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
        if partial.field("x-of-provider").is_none() {
            return match self.got.left || self.killed() || self.drained() || self.stalled() {
                true => Ok(()),
                false => Err("an answer of ours broke off".to_owned()),
            };
        }
        let last = self.attempts.last().ok_or("no upstream was asked")?;
        let reply = &self.case.call(self.number).replies[last.reply];
        if !reply.body.starts_with(&partial.body) {
            return Err("what came of its body is not the upstream's".to_owned());
        }
        if !(reply.can.partial
            || self.got.left
            || self.killed()
            || self.drained()
            || self.stalled())
        {
            return Err(format!("a reply that is {:?} broke off", reply.kind));
        }
        let record = self.index.record(self.number).ok_or("part of an answer has no record")?;
        let relayed = record.relayed_bytes;
        // The bytes are counted before they are handed over; a kill can fall in between two notes.
        if relayed < partial.body.len() as u64 && record.ending != Ending::Unknown {
            return Err(format!("{relayed} B are recorded, {} came", partial.body.len()));
        }
        Ok(())
    }

    /// Whether the client has stopped reading for too long.
    fn stalled(&self) -> bool {
        let client = self.got.connection.unwrap_or_default() / 1_000;
        self.case.plan.clients[client].reading != crate::plan::Reading::Fast
    }

    /// No byte of an answer.
    fn nothing(&self) -> Result<(), String> {
        let wholly = self.got.sent_ns.is_some();
        let excused = self.got.left
            || !wholly
            || self.got.idled
            || self.got.after_close
            || self.killed()
            || self.drained()
            || self.stalled()
            || self.turn.is_slow();
        if excused || self.behind_a_break() {
            return Ok(());
        }
        Err("it was wholly sent, and its client stayed, and nothing came".to_owned())
    }

    /// A call that was sent behind one whose answer broke off, or was never wholly sent.
    fn behind_a_break(&self) -> bool {
        let same = |got: &&Got| got.connection == self.got.connection && got.answer.is_none();
        self.case.got.iter().take(self.number).any(|got| same(&got))
    }
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
        if index.record(number).is_some_and(is_exchange) || is_before_the_key(call.kind) {
            continue;
        }
        let code = answer.code();
        // A head that does not come in time is nobody's; a body that does not has a record.
        if code != "request_timeout" {
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
