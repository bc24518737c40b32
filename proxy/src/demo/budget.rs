//! A key with a budget: served while there is room, then stopped, and told why.

use super::world::World;
use super::{Failure, call, expect, noted, receipt, settled, show};
use crate::control::keys::NewKey;
use crate::exchange::limits::KeyLimits;
use crate::exchange::money::PicoUsd;
use crate::exchange::words::MoneyLimit;
use crate::shard::clock;
use store::ending::Ending;

/// What the key may spend in all: room for two calls, of which each holds about six hundred
/// micro-dollars and costs a hundred.
const BUDGET: PicoUsd = PicoUsd(800_000_000);

/// Makes the key, spends its budget, and shows the refusal; what was spent.
pub(super) fn stop(world: &World, say: &mut dyn FnMut(&str)) -> Result<u64, Failure> {
    say(&format!("8. A key that may spend {BUDGET} in all, until it is stopped"));
    let books = world.node.books.as_ref().ok_or_else(|| Failure::new("there is no ledger"))?;
    let limit = MoneyLimit::new(BUDGET).map_err(|_| Failure::new("a budget that is too high"))?;
    let limits = KeyLimits { budget_total: Some(limit), ..KeyLimits::default() };
    let new = NewKey { name: "small".to_owned(), limits, ..NewKey::default() };
    let made = books.keys.create(&new, clock::now().wall);
    let (_, key) = made.map_err(|fault| Failure::new(format!("making a key: {fault}")))?;
    let before = world.standin.counts().requests;
    let (mut spent, mut served) = (0, 0);
    let refused = loop {
        let answer = call(world, key.reveal(), "fast")?;
        if answer.status != 200 {
            break answer;
        }
        served += 1;
        let record = settled(world, &answer)?;
        let (hold, cost) = (PicoUsd(record.hold_picousd), PicoUsd(record.cost_picousd));
        say(&format!("   200  held {hold}, cost {cost}"));
        expect(record.overrun_picousd == 0, "the call cost no more than was held for it")?;
        noted(world, &answer)?;
        spent += record.cost_picousd;
        expect(spent <= BUDGET.0, "no more is spent than the budget")?;
    };
    show(&refused, say);
    expect(served == 2, "the budget has room for two calls")?;
    expect(refused.status == 402, "the third is refused with 402")?;
    expect(refused.body.contains("total budget of this API key"), "it says whose budget it is")?;
    expect(refused.field("x-should-retry") == Some("false"), "no client repeats it")?;
    let record = settled(world, &refused)?;
    receipt(world, &record, say);
    expect(record.ending == Ending::Refused, "the refusal has a record")?;
    expect(world.standin.counts().requests == before + served, "the provider hears nothing of it")?;
    say(" ✓ the key is stopped before its budget is passed, and the answer says why\n");
    Ok(spent)
}
