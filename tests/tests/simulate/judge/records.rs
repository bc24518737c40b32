//! Records: each exchange has one, each says what the world saw of it, and its cost is what the
//! usage it names costs.

use super::{Case, Index, brief, is_exchange, text};
use crate::reply::{Kind, Reply, Usage};
use crate::world::{Model, debit, key_id};
use std::collections::{BTreeMap, BTreeSet};
use store::ending::{Ending, Provenance, Release, StatusClass};
use store::record::{ATTEMPTS_LISTED, Settled, flag};
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
    check_lives(case, faults);
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

fn check_lives(case: &Case<'_>, faults: &mut Vec<String>) {
    for life in case.lives.iter().filter(|life| life.killed.is_none()) {
        let of_life = |record: &&Settled| {
            SlabId::from_number(record.slab).is_some_and(|id| id.start == life.start)
        };
        let records: Vec<&Settled> = case.records.iter().filter(of_life).collect();
        let exchanges = records.iter().filter(|record| is_exchange(record)).count() as u64;
        if exchanges != life.records {
            faults.push(format!(
                "start {}: {} settled, {exchanges} recorded",
                life.start, life.records
            ));
        }
        let ids = |records: &mut dyn Iterator<Item = [u8; 16]>| -> BTreeSet<[u8; 16]> {
            records.collect()
        };
        let told = ids(&mut life.told.iter().map(|record| record.request_id));
        let recorded = ids(&mut records.iter().map(|record| record.request_id));
        if told != recorded || life.told.len() != records.len() {
            let (told, recorded) = (life.told.len(), records.len());
            faults.push(format!("start {}: {told} told of, {recorded} recorded", life.start));
        }
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
        let Some(record) = index.by_id.get(&first.id).filter(|record| is_exchange(record)) else {
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
        for (nth, attempt) in record.listed.iter().enumerate().take(record.attempts.into()) {
            let seen = attempts.iter().find(|asked| usize::from(asked.attempt) == nth + 1);
            let billed = attempt.possibly_billed == 1;
            match seen {
                None if billed && case.life_of(record).is_none_or(|life| life.killed.is_none()) => {
                    fault(format!("attempt {} may be billed and reached nobody", nth + 1));
                }
                Some(asked) if usize::from(attempt.provider_id) != asked.provider => {
                    fault(format!("attempt {} went to another provider than recorded", nth + 1));
                }
                Some(asked) if asked.whole && !billed && needs_flag(attempt.class) => {
                    let reply = &case.call(number).replies[asked.reply];
                    // A connection that was used before and ends without a byte is taken for one
                    // that was dead before the request: the one gap, and by design.
                    if !reply.can.replay || !case.was_used(asked) {
                        fault(format!("attempt {} may be billed and is not marked", nth + 1));
                    }
                }
                _ => {}
            }
        }
        check_times(case, number, attempts.iter().map(|asked| asked.begun_ns), faults);
    }
    check_unseen(index, case, faults);
}

/// An answer with an error bills nothing; whatever else was wholly sent may.
fn needs_flag(class: StatusClass) -> bool {
    matches!(class, StatusClass::Cut | StatusClass::Timeout | StatusClass::None)
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
        let at_once = standing.contains(&at);
        if before % 2 == 1 && !at_once {
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
        let listed = usize::from(record.attempts).min(ATTEMPTS_LISTED);
        let known = |nth: usize| seen.iter().any(|asked| usize::from(asked.attempt) == nth + 1);
        for (nth, attempt) in record.listed[..listed].iter().enumerate().filter(|(n, _)| !known(*n))
        {
            let nobody = matches!(attempt.class, StatusClass::Unreachable | StatusClass::Cut);
            let ended = matches!(record.ending, Ending::ClientLeft | Ending::Shutdown);
            if !nobody && !killed && !ended {
                faults.push(format!("{id}: attempt {} is {:?} and unseen", nth + 1, attempt.class));
            }
        }
        if usize::from(record.attempts) < seen.len() {
            faults.push(format!("{id}: {} attempts seen, {}", seen.len(), brief(record)));
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
        if record.release != Release::None
            && (record.cost_picousd != 0 || record.overrun_picousd != 0)
        {
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
        let model = &case.plan.world.models[plan.model];
        if record.model.as_str() != model.asked || record.served_model.as_str() != model.sent {
            fault("another model is named");
        }
        let hold = case.plan.world.keys[key].hold(
            &case.plan.world,
            model,
            plan.input,
            plan.cap,
            plan.answers,
        );
        if record.hold_picousd != hold {
            fault(&format!("{hold} should be held"));
        }
        let holds = record.windows.iter().any(|window| window.budget_id != 0);
        let above = record.cost_picousd.saturating_sub(hold);
        if record.overrun_picousd != if holds { above } else { 0 } {
            fault("its overrun is not what is above its hold");
        }
        if record.release == Release::None
            && let Err(why) = check_tokens(record, model, case, *call, index)
        {
            fault(&why);
        }
    }
}

fn check_tokens(
    record: &Settled,
    model: &Model,
    case: &Case<'_>,
    call: usize,
    index: &Index<'_>,
) -> Result<(), String> {
    let [fresh, cached, write_5m, write_1h, output, audio_in, audio_out, _] = record.tokens;
    if [write_5m, write_1h, audio_in, audio_out] != [0; 4] {
        return Err("tokens of a kind nobody used".to_owned());
    }
    let [rate_fresh, rate_cached, rate_output] = model.rates.unwrap_or_default();
    let sum = u64::from(fresh) * rate_fresh
        + u64::from(cached) * rate_cached
        + u64::from(output) * rate_output;
    let provider = &case.plan.world.providers[model.provider];
    if record.upstream_cost_picousd != sum || record.cost_picousd != debit(provider.ppm, sum) {
        let cost = debit(provider.ppm, sum);
        return Err(format!("its tokens cost {sum} upstream and {cost} here"));
    }
    if record.has(flag::PRICED) != model.rates.is_some() {
        return Err("priced, or not, against the list".to_owned());
    }
    let attempts = &index.attempts[call];
    let replies = attempts.iter().map(|asked| &case.call(call).replies[asked.reply]);
    let tokens = (fresh, cached, output);
    match record.provenance {
        Provenance::Reported => {
            let known = replies.clone().filter_map(|reply| reply.usage).map(split);
            match known.clone().any(|usage| usage == tokens) {
                true => Ok(()),
                false => Err(format!("reported were {:?}", known.collect::<Vec<_>>())),
            }
        }
        Provenance::Estimated => {
            let input = case.call(call).input as u32;
            let relayed = u32::try_from(record.relayed_bytes.div_ceil(4)).unwrap_or(u32::MAX);
            let mut right = vec![(input, 0, relayed)];
            // An answer that broke off inside its usage has told a part of it.
            for usage in replies.filter(|reply| breaks(reply)).filter_map(|reply| reply.usage) {
                let (fresh, cached, output) = split(usage);
                let most = relayed.max(output);
                let input = [(usage.prompt, 0), (fresh, cached)];
                let told =
                    input.map(|(fresh, cached)| [relayed, most].map(|out| (fresh, cached, out)));
                right.extend(told.into_iter().flatten());
            }
            match right.contains(&tokens) {
                true => Ok(()),
                false => Err(format!("estimated are {right:?}")),
            }
        }
        Provenance::Missing if tokens == (0, 0, 0) => Ok(()),
        Provenance::Missing => Err("tokens that come from nowhere".to_owned()),
    }
}

fn breaks(reply: &Reply) -> bool {
    matches!(reply.kind, Kind::CutBody | Kind::StallBody)
}

/// Fresh and cached input, and output.
fn split(usage: Usage) -> (u32, u32, u32) {
    (usage.prompt - usage.cached, usage.cached, usage.completion)
}
