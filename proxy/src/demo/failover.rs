//! A provider that fails before its first word, and another one that answers in its place.

use super::client::{self, Ask};
use super::world::World;
use super::{
    CHAT, Failure, attempts_noted, charged, counted, expect, receipt, same, settled, show_stream,
    streamed,
};
use store::ending::Ending;

/// Asks for it, and shows that the client sees the second one alone; what it cost.
pub(super) fn show(world: &World, say: &mut dyn FnMut(&str)) -> Result<u64, Failure> {
    say("4. A stream that fails before its first word: \"steady\" is");
    say("   crowded/stream-err-first, and where that fails openai/gpt-4o-mini");
    let ask = Ask { at: world.node.data, path: CHAT, key: &world.key, body: &streamed("steady") };
    let answer = client::post(&ask).map_err(|error| Failure::new(format!("call 4: {error}")))?;
    show_stream(&answer, say);
    expect(answer.status == 200, "call 4 is answered with 200")?;
    expect(!answer.body.contains("error"), "nothing of the failure reaches the client")?;
    expect(answer.field("x-tollgate-attempts") == Some("2"), "the client is told of two attempts")?;
    expect(answer.field("x-tollgate-fallbacks") == Some("1"), "and of one fallback")?;
    let record = settled(world, &answer)?;
    receipt(world, &record, say);
    expect(record.ending == Ending::Succeeded, "call 4 succeeds")?;
    expect((record.attempts, record.fallbacks) == (2, 1), "so does the record")?;
    expect(counted(world, |counters| &counters.fallbacks) == 1, "and the node has counted one")?;
    let entries = attempts_noted(world, &answer);
    let [first, second] = &entries[..] else {
        return Err(Failure::new(format!("the provider noted {} attempts of two", entries.len())));
    };
    let numbers = [first, second].map(|entry| entry.attempt.as_deref());
    expect(numbers == [Some("1"), Some("2")], "each attempt has its number")?;
    expect(first.content_events_sent == 0, "the first one said nothing")?;
    expect(second.model == "gpt-4o-mini", "the second is asked by its own name of the model")?;
    expect(second.include_usage, "usage is asked for, though the client did not")?;
    same(&answer.body, second)?;
    charged(&record, second)?;
    say(" ✓ the client sees the second provider alone, and pays for it alone\n");
    Ok(record.cost_picousd)
}
