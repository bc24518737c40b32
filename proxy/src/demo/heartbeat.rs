//! A provider that says nothing for a while, and a client that hears all the same that its call is
//! alive.

use super::client::{self, Ask};
use super::events::BEAT;
use super::world::World;
use super::{
    CHAT, Failure, INDENT, charged, counted, expect, noted, receipt, same, settled, show_stream,
    streamed,
};
use store::ending::Ending;

/// The provider's script: a head, a preamble, and nothing for so many milliseconds.
const SILENT: &str = "openai/stream-silent-ms-900";

/// Asks for it, and shows the heartbeats and what is left without them; what it cost.
pub(super) fn show(world: &World, say: &mut dyn FnMut(&str)) -> Result<u64, Failure> {
    say(&format!("5. A stream that is silent before its first word: {SILENT}"));
    let ask = Ask { at: world.node.data, path: CHAT, key: &world.key, body: &streamed(SILENT) };
    let answer = client::post(&ask).map_err(|error| Failure::new(format!("call 5: {error}")))?;
    show_stream(&answer, say);
    let beats = answer.body.matches(BEAT).count();
    say(&format!("{INDENT}and {beats} × \"{}\" before the first of them", BEAT.trim_end()));
    expect(answer.status == 200, "call 5 is answered with 200")?;
    expect(beats >= 2, "the client hears more than once that its call is alive")?;
    expect(answer.body.starts_with(BEAT), "it hears so before the provider's first byte")?;
    let told = counted(world, |counters| &counters.heartbeats);
    expect(told == beats as u64, "the node has counted each of them")?;
    let record = settled(world, &answer)?;
    receipt(world, &record, say);
    expect(record.ending == Ending::Succeeded, "call 5 succeeds")?;
    let entry = noted(world, &answer)?;
    same(&answer.body.replace(BEAT, ""), &entry)?;
    charged(&record, &entry)?;
    say(" ✓ without the heartbeats it is the provider's stream, byte for byte\n");
    Ok(record.cost_picousd)
}
