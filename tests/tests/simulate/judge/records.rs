//! Records: each exchange has one, each says what the world saw of it, and its cost is what the
//! usage it names costs.

use super::{Case, Index, brief, is_exchange, text};
use crate::call::Call;
use crate::notes::{Asked, Life};
use crate::reply::{Kind, May, Reply};
use crate::stream::Event;
use crate::usage::Usage;
use crate::world::{Candidate, debit, key_id};
use std::collections::{BTreeMap, BTreeSet};
use store::ending::{Ending, Provenance, Release, StatusClass};
use store::record::{ATTEMPTS_LISTED, Attempt, Settled, flag};
use store::slab::{SlabId, State};

/// Ids are unique, each life's sequence is without a gap, and the log has what a life's own
/// counters and listeners have heard of. Returns the records by id.
pub(super) fn check<'c>(
    case: &'c Case<'_>,
    faults: &mut Vec<String>,
) -> BTreeMap<String, &'c Settled> {
    let mut by_id = BTreeMap::new();
    let mut sequences: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for record in case.records {
        if by_id.insert(text(record.request_id), record).is_some() {
            faults.push(format!("two records of {}", text(record.request_id)));
        }
        sequences.entry(record.slab).or_default().push(record.settle_sequence);
    }
    for (slab, mut sequence) in sequences {
        sequence.sort_unstable();
        if !sequence.iter().copied().eq(1..=sequence.len() as u64) {
            faults.push(format!("settle sequences of slab {slab:x} have a gap: {sequence:?}"));
        }
    }
    case.lives.iter().filter(|life| life.killed.is_none()).for_each(|life| {
        check_life(case, life, faults);
    });
    for left in case.left {
        let id = text(left.head.request_id);
        let Some(record) = by_id.get(&id) else {
            faults.push(format!("{id} was left in {:?} and has no record", left.state));
            continue;
        };
        let wanted = match left.state {
            State::Open | State::Sent => Ending::Orphaned,
            State::Priced => Ending::Unknown,
            State::Done | State::Free => left.head.ending,
        };
        let same_cost = left.state == State::Open || left.head.cost_picousd == record.cost_picousd;
        if record.ending != wanted || !same_cost {
            faults.push(format!("{id} was left in {:?} and became {}", left.state, brief(record)));
        }
        if left.state == State::Open && record.cost_picousd != 0 {
            faults.push(format!("{id} was never sent and costs {}", record.cost_picousd));
        }
    }
    by_id
}

fn check_life(case: &Case<'_>, life: &Life, faults: &mut Vec<String>) {
    let of_life = |record: &&Settled| {
        SlabId::from_number(record.slab).is_some_and(|id| id.start == life.start)
    };
    let records: Vec<&Settled> = case.records.iter().filter(of_life).collect();
    let exchanges = records.iter().filter(|record| is_exchange(record)).count() as u64;
    if exchanges != life.records {
        faults
            .push(format!("start {}: {} settled, {exchanges} recorded", life.start, life.records));
    }
    let told: BTreeSet<[u8; 16]> = life.told.iter().map(|record| record.request_id).collect();
    let recorded: BTreeSet<[u8; 16]> = records.iter().map(|record| record.request_id).collect();
    if told != recorded || life.told.len() != records.len() {
        let (told, recorded) = (life.told.len(), records.len());
        faults.push(format!("start {}: {told} told of, {recorded} recorded", life.start));
    }
}

/// What upstreams saw of an exchange, and what its record says of its attempts.
pub(super) fn check_attempts(case: &Case<'_>, index: &Index<'_>, faults: &mut Vec<String>) {
    for (number, attempts) in index.attempts.iter().enumerate() {
        let Some(first) = attempts.first() else { continue };
        let mut fault = |what: String| faults.push(format!("call {number} ({}): {what}", first.id));
        if attempts.iter().any(|asked| asked.id != first.id) {
            fault("its attempts have several ids".to_owned());
        }
        let record = index.by_id.get(&first.id).filter(|record| is_exchange(record));
        if case.call(number).kind.is_free() {
            if record.is_some() {
                fault("it is free, and has a record".to_owned());
            }
            continue;
        }
        let Some(record) = record else {
            fault("an upstream was asked, and it has no record".to_owned());
            continue;
        };
        if record.release == Release::NeverSent {
            fault("an upstream was asked, and it counts as never sent".to_owned());
        }
        let numbers: Vec<u8> = attempts.iter().map(|asked| asked.attempt).collect();
        if !numbers.windows(2).all(|two| two[0] < two[1]) || numbers.last() > Some(&record.attempts)
        {
            fault(format!("attempts {numbers:?} were seen, {} recorded", record.attempts));
        }
        let listed = &record.listed[..listed(record)];
        for (nth, attempt) in listed.iter().enumerate() {
            let seen = attempts.iter().find(|asked| usize::from(asked.attempt) == nth + 1).copied();
            let one = One { case, call: case.call(number), record, nth, attempt, seen };
            if let Err(why) = one.check() {
                fault(format!("attempt {}: {why}; {}", nth + 1, brief(record)));
            }
        }
        check_times(case, number, attempts.iter().map(|asked| asked.begun_ns), faults);
    }
    check_unseen(index, case, faults);
}

fn listed(record: &Settled) -> usize {
    usize::from(record.attempts).min(ATTEMPTS_LISTED)
}

/// One attempt, as it is listed and as it was seen.
struct One<'o, 'c> {
    case: &'o Case<'c>,
    call: &'o Call,
    record: &'o Settled,
    nth: usize,
    attempt: &'o Attempt,
    seen: Option<&'o Asked>,
}

impl One<'_, '_> {
    fn check(&self) -> Result<(), String> {
        let billed = self.attempt.possibly_billed == 1;
        let Some(asked) = self.seen else {
            let killed = self.case.life_of(self.record).is_none_or(|life| life.killed.is_some());
            let left = matches!(self.record.ending, Ending::ClientLeft | Ending::Shutdown);
            return match billed && !killed && !left {
                true => Err("may be billed and reached nobody".to_owned()),
                false => Ok(()),
            };
        };
        if usize::from(self.attempt.provider_id) != asked.provider {
            return Err("went to another provider than recorded".to_owned());
        }
        let place = usize::from(self.attempt.candidate);
        if asked.whole && !asked.candidates.contains(&place) {
            let meant = &asked.candidates;
            return Err(format!("was meant for {meant:?}, recorded is {place}"));
        }
        let reply = &self.call.replies[asked.reply];
        // A connection that was used before and ends without a byte is taken for one that was
        // dead before the request: the one gap, and by design.
        let stale = reply.can.replay && self.case.was_used(asked);
        let doubtful = matches!(
            self.attempt.class,
            StatusClass::Cut | StatusClass::Timeout | StatusClass::None
        );
        if asked.whole && !billed && doubtful && !stale {
            return Err("may be billed and is not marked".to_owned());
        }
        self.check_next(reply, asked, stale)
    }

    /// Whether another attempt was right to follow.
    fn check_next(&self, reply: &Reply, asked: &Asked, stale: bool) -> Result<(), String> {
        let Some(next) = self.record.listed[..listed(self.record)].get(self.nth + 1) else {
            return Ok(());
        };
        let same = next.candidate == self.attempt.candidate;
        let may = if same { reply.can.again } else { reply.can.next };
        let right = match may {
            May::Yes => true,
            May::No => false,
            May::Twice => self.case.plan.world.retry.billed_twice || !asked.whole,
        };
        // Whoever was told that a stream comes can be given nothing else.
        let coded = reply.events.is_none() || reply.kind == Kind::StreamGzip;
        let invalid = self.call.kind.is_stream() && coded;
        let right = right || invalid && (!same || self.case.plan.world.retry.billed_twice);
        // What lies behind an answer's end is taken for the beginning of the next one.
        let right = right || stale && same || self.case.is_behind_surplus(asked);
        if right { Ok(()) } else { Err(format!("{:?} was followed by another", reply.kind)) }
    }
}

/// No attempt begins once its key has ceased to be good.
fn check_times(
    case: &Case<'_>,
    number: usize,
    begun_ns: impl Iterator<Item = u64>,
    faults: &mut Vec<String>,
) {
    let Some(key) = case.call(number).key() else { return };
    let standing = &case.standing[key];
    for at in begun_ns {
        // Turns before this instant; at the same instant either order is right.
        let before = standing.iter().filter(|turn| **turn < at).count();
        if before % 2 == 1 && !standing.contains(&at) {
            faults.push(format!("call {number}: an attempt began while its key was not good"));
        }
    }
}

/// Attempts that no upstream saw are those that could reach none.
fn check_unseen(index: &Index<'_>, case: &Case<'_>, faults: &mut Vec<String>) {
    for record in case.records.iter().filter(|record| is_exchange(record)) {
        let id = text(record.request_id);
        let seen = index.calls.get(&id).map_or(&[][..], |call| &index.attempts[*call][..]);
        let killed = case.life_of(record).is_some_and(|life| life.killed.is_some());
        let known = |nth: usize| seen.iter().any(|asked| usize::from(asked.attempt) == nth + 1);
        let each = record.listed[..listed(record)].iter().enumerate();
        for (nth, attempt) in each.filter(|(nth, _)| !known(*nth)) {
            let nobody = matches!(attempt.class, StatusClass::Unreachable | StatusClass::Cut);
            let ended = matches!(record.ending, Ending::ClientLeft | Ending::Shutdown);
            if !nobody && !killed && !ended {
                faults.push(format!("{id}: attempt {} is {:?} and unseen", nth + 1, attempt.class));
            }
        }
        if usize::from(record.attempts) < seen.len() {
            faults.push(format!("{id}: {} attempts seen, {}", seen.len(), brief(record)));
        }
        let candidates: BTreeSet<u8> =
            record.listed[..listed(record)].iter().map(|one| one.candidate).collect();
        let most = case.plan.world.retry.attempts * candidates.len() as u64;
        // Each candidate can be given one replay more.
        let replays = candidates.len() as u64 * case.plan.world.retry.attempts;
        if usize::from(record.attempts) <= ATTEMPTS_LISTED
            && u64::from(record.attempts) > most + replays
        {
            faults.push(format!("{id}: more attempts than may be: {}", brief(record)));
        }
    }
}

/// Costs are what the tokens cost, and the tokens are what was reported, or what the rule says.
pub(super) fn check_charges(case: &Case<'_>, index: &Index<'_>, faults: &mut Vec<String>) {
    for record in case.records {
        let id = text(record.request_id);
        let about = index.calls.get(&id).map_or(String::new(), |call| format!("call {call} "));
        let mut fault =
            |what: &str| faults.push(format!("{about}({id}): {what}: {}", brief(record)));
        if !is_exchange(record) {
            let nothing =
                record.cost_picousd == 0 && record.tokens == [0; 8] && record.attempts == 0;
            if !nothing || record.release != Release::Refused {
                fault("a refusal that costs");
            }
            continue;
        }
        let free = record.cost_picousd == 0 && record.overrun_picousd == 0;
        if record.release != Release::None && !free {
            fault("released and charged");
        }
        let Some(call) = index.calls.get(&id) else { continue };
        let plan = case.call(*call);
        let Some(key) = plan.key() else {
            fault("an exchange of nobody");
            continue;
        };
        if record.key_id != key_id(key) {
            fault("another key pays");
        }
        let world = &case.plan.world;
        let model = &world.models[plan.model];
        let Some(candidate) = model.candidates.get(usize::from(record.candidate)) else {
            fault("a candidate that is none");
            continue;
        };
        // The name of the next candidate is written before it is tried: a kill can fall in between.
        let next = record.ending == Ending::Orphaned
            && model.candidates.iter().any(|one| record.served_model.as_str() == one.sent);
        let named = record.served_model.as_str() == candidate.sent || next;
        if record.model.as_str() != model.asked || !named {
            fault("another model is named");
        }
        let left = plan.candidates(world).map(|(_, candidate)| candidate);
        let hold = world.keys[key].hold(world, left, (plan.input, plan.cap, plan.answers));
        if record.hold_picousd != hold {
            fault(&format!("{hold} should be held"));
        }
        let holds = record.windows.iter().any(|window| window.budget_id != 0);
        let above = record.cost_picousd.saturating_sub(hold);
        if record.overrun_picousd != if holds { above } else { 0 } {
            fault("its overrun is not what is above its hold");
        }
        let bill = Bill { case, call: *call, record, candidate, attempts: &index.attempts[*call] };
        if let Err(why) = bill.check() {
            fault(&why);
        }
    }
}

/// What an exchange is charged.
struct Bill<'b, 'c> {
    case: &'b Case<'c>,
    call: usize,
    record: &'b Settled,
    candidate: &'b Candidate,
    attempts: &'b [&'b Asked],
}

impl Bill<'_, '_> {
    fn check(&self) -> Result<(), String> {
        let record = self.record;
        match record.release {
            Release::None => {}
            Release::Rule => return self.check_rule(),
            _ => return Ok(()),
        }
        let [fresh, cached, written, write_1h, output, audio_in, audio_out, _] = record.tokens;
        if [write_1h, audio_in, audio_out] != [0; 3] {
            return Err("tokens of a kind nobody used".to_owned());
        }
        let [rate_fresh, rate_cached, rate_output] = self.candidate.rates.unwrap_or_default();
        let sum = u64::from(fresh) * rate_fresh
            + u64::from(cached) * rate_cached
            + u64::from(written) * rate_fresh
            + u64::from(output) * rate_output;
        let provider = &self.case.plan.world.providers[self.candidate.provider];
        let cost = debit(provider.ppm, sum);
        if record.upstream_cost_picousd != sum || record.cost_picousd != cost {
            return Err(format!("its tokens cost {sum} upstream and {cost} here"));
        }
        if record.has(flag::PRICED) != self.candidate.rates.is_some() {
            return Err("priced, or not, against the list".to_owned());
        }
        let tokens = (fresh, cached, written, output);
        match record.provenance {
            Provenance::Reported => {
                let known: Vec<_> = self.usages().map(Usage::buckets).collect();
                match known.contains(&tokens) {
                    true => Ok(()),
                    false => Err(format!("reported were {known:?}")),
                }
            }
            Provenance::Estimated => self.check_estimate(),
            Provenance::Missing if tokens == (0, 0, 0, 0) => Ok(()),
            Provenance::Missing => Err("tokens that come from nowhere".to_owned()),
        }
    }

    fn replies(&self) -> impl Iterator<Item = &Reply> {
        let call = self.case.call(self.call);
        self.attempts.iter().map(move |asked| &call.replies[asked.reply])
    }

    fn usages(&self) -> impl Iterator<Item = Usage> {
        self.replies().filter_map(|reply| reply.usage)
    }

    /// Whoever is let off by a rule is let off by one that is set.
    fn check_rule(&self) -> Result<(), String> {
        let rules = self.case.plan.world.endings;
        let set = match self.record.ending {
            Ending::Succeeded => rules.succeeded_free,
            // Priced as one that ends well, before its last bytes went to nobody.
            Ending::ClientLeft => rules.left_free || rules.succeeded_free,
            // What a kill found priced was to end well, or was about to break.
            Ending::Unknown => rules.succeeded_free || rules.broken_free || rules.left_free,
            _ => rules.broken_free,
        };
        if set { Ok(()) } else { Err("let off by a rule that is not set".to_owned()) }
    }

    /// Whether all of an answer was on its way to the client.
    fn is_whole(&self) -> bool {
        let Some(last) = self.replies().last() else { return false };
        let visible = |events: &Vec<Event>| {
            let shown = events.iter().filter(|event| !event.hidden);
            shown.map(|event| event.bytes.len()).sum::<usize>()
        };
        let all = last.events.as_ref().map_or(last.body.len(), visible);
        self.record.relayed_bytes == all as u64
    }

    /// What the text of a whole answer counts: of what was relayed, and of all that came. Of what
    /// cannot be read every byte relayed is one of text.
    fn whole_text(&self) -> (u32, u32) {
        let relayed = self.record.relayed_bytes;
        let every = tokens((relayed, 0));
        let Some(last) = self.replies().last().filter(|reply| reply.events.is_none()) else {
            return (every, every);
        };
        let part = usize::try_from(relayed).unwrap_or(usize::MAX).min(last.body.len());
        let part = text_in(&last.body[..part]).unwrap_or_default();
        text_in(&last.body).map_or((every, every), |all| (tokens(part), tokens(all)))
    }

    /// The input as its text counts, or as a report that broke off had told; the output as what
    /// was relayed counts, of a stream what the model said in it.
    fn check_estimate(&self) -> Result<(), String> {
        let record = self.record;
        let call = self.case.call(self.call);
        let [fresh, cached, written, _, output, ..] = record.tokens;
        let mut inputs = vec![(call.input as u32, 0, 0)];
        let (mut least, mut most) = self.whole_text();
        for reply in self.replies() {
            let left = record.ending == Ending::ClientLeft;
            if let Some(usage) = reply.noted.or_else(|| reply.usage.filter(|_| left)) {
                inputs.extend(usage.parts());
                most = most.max(usage.output);
            }
            if let Some(events) = &reply.events {
                let said = events.iter().fold((0, 0), |(ascii, other), event| {
                    (ascii + event.said.0, other + event.said.1)
                });
                least = 0;
                most = most.max(tokens(said)).max(1);
            }
        }
        let rules = self.case.plan.world.endings;
        let off = match record.ending {
            Ending::Succeeded => rules.succeeded_free,
            // Priced as a success before its last bytes went, if all of it was there.
            Ending::ClientLeft => rules.left_free && !self.is_whole(),
            Ending::UpstreamError | Ending::UpstreamCut | Ending::Deadline => rules.broken_free,
            _ => false,
        };
        if off {
            return Err("estimated, where the rule of its ending lets it off".to_owned());
        }
        if !inputs.contains(&(fresh, cached, written)) || !(least..=most).contains(&output) {
            return Err(format!("estimated are {inputs:?} in and {least}..={most} out"));
        }
        Ok(())
    }
}

/// Bytes of text in a completion as `reply.rs` makes them, or in its beginning: below 0x80, and
/// from there on.
fn text_in(body: &[u8]) -> Option<(u64, u64)> {
    let begins = |mark: &[u8]| {
        let at = body.windows(mark.len()).position(|bytes| bytes == mark)?;
        Some(at + mark.len())
    };
    let from = begins(b"\"text\":\"").or_else(|| begins(b"\"content\":\""))?;
    let mut text = Vec::new();
    let mut rest = body.get(from..)?.iter();
    while let Some(byte) = rest.next().filter(|byte| **byte != b'"') {
        text.push(*byte);
        // An escape counts as it is written, a quote behind its backslash too.
        text.extend((*byte == b'\\').then(|| rest.next()).flatten());
    }
    let ascii = text.iter().filter(|byte| byte.is_ascii()).count() as u64;
    Some((ascii, text.len() as u64 - ascii))
}

fn tokens((ascii, other): (u64, u64)) -> u32 {
    u32::try_from(ascii.div_ceil(4) + other.div_ceil(2)).unwrap_or(u32::MAX)
}
