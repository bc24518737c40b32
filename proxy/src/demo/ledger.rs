//! The ledger of the demo, closed and proved.

use super::world::World;
use super::{Failure, expect};
use crate::control::ledger::identity;
use crate::exchange::money::PicoUsd;
use store::disk::Folder;
use store::state::State;
use store::verify::{Known, Report, examine};

/// Proves the log, and that it has what was paid, once each.
pub(super) fn prove(world: &World, paid: u64, say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    say("9. The ledger, read from the disk and proved");
    let state_dir = world.home.path();
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("the ledger: {error}"));
    let node = identity(state_dir).map_err(|error| failed(&error))?;
    let node = node.ok_or_else(|| Failure::new("the ledger has no node"))?;
    let disk = Folder::existing(&state_dir.join("ledger")).map_err(|error| failed(&error))?;
    let state = State::open(&state_dir.join("state.redb"), || node);
    let checkpoint = state.and_then(|state| state.checkpoint()).map_err(|error| failed(&error))?;
    let known = Known {
        position: checkpoint.as_ref().map(|known| known.position),
        balances: checkpoint.as_ref().map(|known| &known.balances),
        first_seq: 1,
    };
    let mut report = Report::default();
    examine(&disk, node, known, &mut report).map_err(|error| failed(&error))?;
    let chain: String = report.chain.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let frames = report.frames;
    say(&format!("   records 1 to {}, {frames} frames, chained to {chain}…", report.last_seq));
    say(&format!("   {} in all, {} upstream", PicoUsd(paid), PicoUsd(paid)));
    expect(report.checkpoint_totals, "the state store's totals are those of the log")?;
    expect(report.last_seq == 9, "eight calls and one refusal of a known key have records")?;
    expect(report.sum.cost_picousd == u128::from(paid), "the log has what was paid, once each")?;
    say(" ✓ every frame checks out, and every total is the sum of its records\n");
    Ok(())
}
