//! A stream in the messages dialect, as Claude Code and Anthropic's SDKs ask for it.

use super::client::{self, Ask};
use super::world::World;
use super::{Failure, charged, events, expect, noted, receipt, same, settled, show_stream};
use store::ending::Ending;

const BODY: &str = r#"{"model":"claude-haiku-4-5","max_tokens":256,"stream":true,
    "messages":[{"role":"user","content":"hello"}]}"#;

/// Asks for it, and shows that every byte of it is the provider's; what it cost.
pub(super) fn show(world: &World, say: &mut dyn FnMut(&str)) -> Result<u64, Failure> {
    say("3. A stream on /v1/messages, as Claude Code asks for it: claude-haiku-4-5");
    let ask = Ask { at: world.node.data, path: "/v1/messages", key: &world.key, body: BODY };
    let answer = client::post(&ask).map_err(|error| Failure::new(format!("call 3: {error}")))?;
    show_stream(&answer, say);
    expect(answer.status == 200, "call 3 is answered with 200")?;
    expect(events::words(&answer.body).starts_with("The toll"), "the words are the provider's")?;
    let record = settled(world, &answer)?;
    receipt(world, &record, say);
    expect(record.ending == Ending::Succeeded, "call 3 succeeds")?;
    let entry = noted(world, &answer)?;
    expect(entry.events_sent == events::count(&answer.body) as u64, "no event is missing")?;
    same(&answer.body, &entry)?;
    charged(&record, &entry)?;
    say(" ✓ every byte is the provider's, and the price was written before the last one\n");
    Ok(record.cost_picousd)
}
