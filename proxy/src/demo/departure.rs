//! A client that hangs up half-way: what it had asked for is counted to the end all the same.

use super::client::{self, Ask};
use super::world::World;
use super::{
    CHAT, Failure, INDENT, charged, counted, events, expect, noted, receipt, settled_within,
    streamed,
};
use std::time::Duration;
use store::ending::{Ending, Provenance};

/// The provider's script: so many content events, so many milliseconds apart.
const PACED: &str = "openai/stream-24+every=15";

/// Events with words after which the client hangs up.
const ENOUGH: usize = 6;

/// How long the rest of the answer may take to be read and settled.
const SETTLED_WITHIN: Duration = Duration::from_secs(3);

/// Asks for it, hangs up, and shows what becomes of the call; what it cost.
pub(super) fn show(world: &World, say: &mut dyn FnMut(&str)) -> Result<u64, Failure> {
    say(&format!("6. A client that hangs up half-way: {PACED}"));
    let ask = Ask { at: world.node.data, path: CHAT, key: &world.key, body: &streamed(PACED) };
    let answer = client::post_and_leave(&ask, |so_far| events::spoken(&so_far.body) >= ENOUGH);
    let answer = answer.map_err(|error| Failure::new(format!("call 6: {error}")))?;
    let (seen, bytes) = (events::spoken(&answer.body), answer.body.len());
    say(&format!(
        "   {}  {seen} of 24 pieces of text, {bytes} bytes, then it is gone;",
        answer.status
    ));
    say(&format!("{INDENT}the rest is read for its count alone, at most 5 s and 256 KiB of it"));
    let record = settled_within(world, &answer, SETTLED_WITHIN)?;
    receipt(world, &record, say);
    expect(record.ending == Ending::ClientLeft, "call 6 ends as left by its client")?;
    expect(record.provenance == Provenance::Reported, "its usage is what the provider reports")?;
    expect(counted(world, |counters| &counters.drains) == 1, "its answer was read on")?;
    let entry = noted(world, &answer)?;
    expect(entry.terminator_sent, "the provider could say all of it")?;
    expect(record.relayed_bytes < entry.content.bytes, "the client was sent a part")?;
    charged(&record, &entry)?;
    say(" ✓ charged by the provider's own count, though the client never saw it\n");
    Ok(record.cost_picousd)
}
