//! `tollgate demo`: a stand-in provider and a gateway in this process, three governed calls, and
//! what each of them cost. It checks what it shows against the provider's own tally.
//!
//! It reads no file and writes none, listens on loopback only, and is over in a second.

mod client;
mod receipt;
mod world;

use crate::control::receipt::Names;
use crate::exchange::ids::RequestId;
use crate::exchange::money::PicoUsd;
use client::Answer;
use std::fmt;
use std::time::Duration;
use store::ending::Ending;
use store::record::{Settled, flag};
use world::World;

/// How long the stand-in may take to note a call that the client has seen end.
const TALLY_TIME_MAX: Duration = Duration::from_secs(2);

/// Characters of an answer that are shown.
const SHOWN_CHARS: usize = 68;

/// Why the demo is no proof.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    fn start(error: impl fmt::Display) -> Failure {
        Failure(format!("it did not start: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Shows the three calls, line by line; an error if one is not what it should be.
pub fn run(say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let mut world = World::start()?;
    introduce(&world, say);
    let paid = paid_call(&world, say)?;
    refused_call(&world, say)?;
    failed_call(&world, say)?;
    let cost = PicoUsd(paid.cost_picousd);
    say(&format!("3 calls, 1 refused, 2 settled, {cost} in all; every check above held."));
    say("Next: README.md, \"A first configuration\".");
    world.node.drain().map_err(|error| Failure::new(format!("the ledger: {error}")))?;
    world.standin.stop().map_err(|error| Failure::new(format!("the stand-in: {error}")))
}

fn introduce(world: &World, say: &mut dyn FnMut(&str)) {
    let drivers: Vec<&str> = world.node.drivers.iter().map(|driver| driver.name()).collect();
    let shown: String = world.key.chars().take(9).collect();
    say("tollgate demo: a provider, a gateway before it, three calls\n");
    say(&format!("  provider  openai, played by a stand-in on {}", world.standin.addr()));
    let shards = drivers.len();
    say(&format!("  gateway   {}, {shards} shards ({})", world.node.data, drivers.join(", ")));
    say(&format!("  key       {shown}…, made up for this run, named \"demo\"\n"));
}

/// A call that is served: the tokens and the price are what the provider says it answered.
fn paid_call(world: &World, say: &mut dyn FnMut(&str)) -> Result<Settled, Failure> {
    say("1. A call by an alias: \"fast\" is openai/gpt-4o-mini");
    let answer = call(world, &world.key, "fast")?;
    show(&answer, say);
    expect(answer.status == 200, "call 1 is answered with 200")?;
    let record = settled(world, &answer)?;
    receipt(world, &record, say);
    let entry = noted(world, &answer, 1)?;
    let [fresh, cached, _, _, output, ..] = record.tokens.map(u64::from);
    expect(entry.usage.prompt_tokens == fresh + cached, "input tokens are the provider's")?;
    expect(entry.usage.cached_tokens == cached, "cached tokens are the provider's")?;
    expect(entry.usage.completion_tokens == output, "output tokens are the provider's")?;
    expect(record.has(flag::PRICED) && record.cost_picousd > 0, "call 1 has a price")?;
    let leaked = entry.headers.iter().any(|(_, value)| value.contains(&world.key));
    expect(!leaked, "the provider never sees the caller's key")?;
    say(" ✓ the provider's own tally has the same tokens under this request id\n");
    Ok(record)
}

/// A call that is refused: the provider never hears of it, and nobody is charged.
fn refused_call(world: &World, say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    say("2. The same call with a key that nobody issued");
    let before = world.standin.counts().requests;
    let answer = call(world, "tg-nobody-issued-this-key", "fast")?;
    show(&answer, say);
    expect(answer.status == 401, "call 2 is refused with 401")?;
    expect(answer.body.contains("\"code\":\"invalid_api_key\""), "the refusal has its code")?;
    expect(take(world).is_empty(), "a refusal of a stranger leaves no record")?;
    expect(world.standin.counts().requests == before, "the provider hears nothing of call 2")?;
    let id = answer.field("x-tollgate-request-id").unwrap_or_default().to_owned();
    let rows = [
        ("who", "unknown: counted, not recorded".to_owned()),
        ("price", format!("{} (refused before it was sent)", PicoUsd(0))),
        ("request", id),
    ];
    receipt::lines(&rows).iter().for_each(|line| say(line));
    say(" ✓ the provider has not heard of it\n");
    Ok(())
}

/// A call that the provider refuses: its answer passes as it is.
fn failed_call(world: &World, say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    say("3. A provider that is out of capacity: openai/s503");
    let answer = call(world, &world.key, "openai/s503")?;
    show(&answer, say);
    expect(answer.status == 503, "call 3 ends with the provider's 503")?;
    let record = settled(world, &answer)?;
    receipt(world, &record, say);
    expect(record.ending == Ending::UpstreamError, "call 3 ends as the upstream's error")?;
    expect(record.cost_picousd == 0, "an error without usage costs nothing")?;
    noted(world, &answer, 2)?;
    let body = r#"{"model":"s503","messages":[{"role":"user","content":"hello"}]}"#;
    let direct = client::post(world.standin.addr(), "none", body)
        .map_err(|error| Failure::new(format!("asking the stand-in directly: {error}")))?;
    expect(direct.body == answer.body, "the provider's error passes byte for byte")?;
    expect(
        direct.field("retry-after") == answer.field("retry-after"),
        "the provider's retry-after passes",
    )?;
    say(" ✓ asked directly, the provider says the same, byte for byte\n");
    Ok(())
}

fn call(world: &World, key: &str, model: &str) -> Result<Answer, Failure> {
    let body = format!(
        "{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}"
    );
    client::post(world.node.data, key, &body)
        .map_err(|error| Failure::new(format!("a call of {model}: {error}")))
}

fn show(answer: &Answer, say: &mut dyn FnMut(&str)) {
    let mut shown: String = answer.body.chars().take(SHOWN_CHARS).collect();
    if shown.len() < answer.body.len() {
        shown.push('…');
    }
    say(&format!("   {}  {shown}", answer.status));
}

fn receipt(world: &World, record: &Settled, say: &mut dyn FnMut(&str)) {
    let names = Names::of(&world.config.snapshot, &world.node.keys);
    let rows = receipt::rows(record, &names);
    receipt::lines(&rows).iter().for_each(|line| say(line));
}

fn take(world: &World) -> Vec<Settled> {
    let mut records = Vec::new();
    world.node.records.take(|record| records.push(record));
    records
}

/// The one record of the call that was answered so. A record is settled before its connection
/// ends, and the client has read to that end.
fn settled(world: &World, answer: &Answer) -> Result<Settled, Failure> {
    let records = take(world);
    let [record] = records[..] else {
        return Err(Failure::new(format!("one call left {} records", records.len())));
    };
    let id = RequestId(record.request_id).to_string();
    expect(answer.field("x-tollgate-request-id") == Some(&id), "the client got the record's id")?;
    Ok(record)
}

/// What the provider has noted about the call, found by our request id.
fn noted(
    world: &World,
    answer: &Answer,
    calls: usize,
) -> Result<loadtest::standin::Entry, Failure> {
    let id = answer.field("x-tollgate-request-id");
    let entries = world.standin.tally_of(calls, TALLY_TIME_MAX);
    let entry = entries.into_iter().find(|entry| entry.request_id.as_deref() == id);
    entry.ok_or_else(|| Failure::new("the provider has not noted the call under its id"))
}

fn expect(held: bool, what: &str) -> Result<(), Failure> {
    if held { Ok(()) } else { Err(Failure(format!("this does not hold: {what}"))) }
}
