//! `tollgate demo`: a stand-in provider and a gateway in this process, governed calls, whole and as
//! streams, what each of them cost, and the ledger that says so. It checks what it shows against
//! the provider's own tally.
//!
//! It reads no file, writes its ledger below the folder for what is temporary, listens on loopback
//! only, and is over in a few seconds, most of which a scripted provider is silent in.

mod budget;
mod client;
mod departure;
mod events;
mod failover;
mod heartbeat;
mod ledger;
mod receipt;
mod stream;
mod world;

use crate::control::receipt::Names;
use crate::exchange::ids::RequestId;
use crate::exchange::money::PicoUsd;
use crate::observe::counters::{Counter, Counters};
use crate::shard::clock;
use client::{Answer, Ask};
use flate2::Crc;
use loadtest::standin::{Digest, Entry};
use std::fmt;
use std::time::Duration;
use store::ending::Ending;
use store::record::{Settled, flag};
use world::{HEARTBEAT, World};

/// The route of the chat dialect.
const CHAT: &str = "/v1/chat/completions";

/// How long the stand-in may take to note a call that the client has seen end.
const TALLY_TIME_MAX: Duration = Duration::from_secs(2);

/// How long until it is looked again for a record that is not there yet.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Characters of an answer that are shown, and of one line of what is.
const SHOWN_CHARS: usize = 68;

/// What stands before those lines of an answer that are not its first.
const INDENT: &str = "        ";

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

/// Shows the calls and the ledger, line by line; an error if one is not what it should be.
pub fn run(say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let mut world = World::start()?;
    introduce(&world, say);
    let mut cost = paid_call(&world, say)?.cost_picousd;
    refused_call(&world, say)?;
    cost += stream::show(&world, say)?;
    cost += failover::show(&world, say)?;
    cost += heartbeat::show(&world, say)?;
    cost += departure::show(&world, say)?;
    failed_call(&world, say)?;
    cost += budget::stop(&world, say)?;
    world.node.drain().map_err(|error| Failure::new(format!("the ledger: {error}")))?;
    ledger::prove(&world, cost, say)?;
    let cost = PicoUsd(cost);
    say(&format!("10 calls, 2 refused, 8 settled, {cost} in all; every check above held."));
    say("Next: README.md, \"A first configuration\".");
    world.standin.stop().map_err(|error| Failure::new(format!("the stand-in: {error}")))
}

fn introduce(world: &World, say: &mut dyn FnMut(&str)) {
    let drivers: Vec<&str> = world.node.drivers.iter().map(|driver| driver.name()).collect();
    let shown: String = world.key.chars().take(9).collect();
    say("tollgate demo: three providers, a gateway before them, ten calls\n");
    let standin = world.standin.addr();
    say(&format!("  providers openai, anthropic, crowded: all a stand-in on {standin}"));
    let shards = drivers.len();
    say(&format!("  gateway   {}, {shards} shards ({})", world.node.data, drivers.join(", ")));
    let beat = HEARTBEAT.as_millis();
    say(&format!("  settings  a heartbeat after {beat} ms of silence (else 10 s) and one attempt"));
    say("            at a candidate (else three), so that this is over in seconds");
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
    let entry = noted(world, &answer)?;
    charged(&record, &entry)?;
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
    say("7. A provider that is out of capacity, and nobody else to ask: crowded/s503");
    let answer = call(world, &world.key, "crowded/s503")?;
    show(&answer, say);
    expect(answer.status == 503, "call 7 ends with the provider's 503")?;
    let record = settled(world, &answer)?;
    receipt(world, &record, say);
    expect(record.ending == Ending::UpstreamError, "call 7 ends as the upstream's error")?;
    expect(record.cost_picousd == 0, "an error without usage costs nothing")?;
    noted(world, &answer)?;
    let body = r#"{"model":"s503","messages":[{"role":"user","content":"hello"}]}"#;
    let ask = Ask { at: world.standin.addr(), path: CHAT, key: "none", body };
    let direct = client::post(&ask)
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
    client::post(&Ask { at: world.node.data, path: CHAT, key, body: &body })
        .map_err(|error| Failure::new(format!("a call of {model}: {error}")))
}

/// A stream in the chat dialect that does not ask for usage.
fn streamed(model: &str) -> String {
    format!(
        "{{\"model\":\"{model}\",\"stream\":true,\
         \"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}"
    )
}

/// A stream's answer in the words of a person: its kind, its events, its first words.
fn show_stream(answer: &Answer, say: &mut dyn FnMut(&str)) {
    let media = answer.field("content-type").unwrap_or("no media type");
    let (events, bytes) = (events::count(&answer.body), answer.body.len());
    say(&format!("   {}  {media}, {events} events, {bytes} bytes", answer.status));
    let mut line = String::new();
    for part in events::names(&answer.body).split_inclusive(", ") {
        if line.chars().count() + part.chars().count() > SHOWN_CHARS {
            say(&format!("{INDENT}{}", line.trim_end()));
            line.clear();
        }
        line.push_str(part);
    }
    say(&format!("{INDENT}{line}"));
    say(&format!("{INDENT}\"{}\"", shortened(&events::words(&answer.body), SHOWN_CHARS - 3)));
}

fn shortened(text: &str, chars: usize) -> String {
    let mut shown: String = text.chars().take(chars).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

fn show(answer: &Answer, say: &mut dyn FnMut(&str)) {
    say(&format!("   {}  {}", answer.status, shortened(&answer.body, SHOWN_CHARS)));
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
    only(&take(world), answer)
}

fn only(records: &[Settled], answer: &Answer) -> Result<Settled, Failure> {
    let [record] = *records else {
        return Err(Failure::new(format!("one call left {} records", records.len())));
    };
    let id = RequestId(record.request_id).to_string();
    expect(answer.field("x-tollgate-request-id") == Some(&id), "the client got the record's id")?;
    Ok(record)
}

/// The same of a call that goes on when its client is gone: waits for the record.
fn settled_within(world: &World, answer: &Answer, limit: Duration) -> Result<Settled, Failure> {
    let begun = clock::mono();
    loop {
        let late = u128::from(clock::mono().since(begun)) > limit.as_nanos();
        let records = take(world);
        if late || !records.is_empty() {
            return only(&records, answer);
        }
        std::thread::park_timeout(LOOK_AGAIN);
    }
}

/// What the provider has noted about the call, found by our request id; of several attempts that
/// it got, the last one.
fn noted(world: &World, answer: &Answer) -> Result<Entry, Failure> {
    let missing = || Failure::new("the provider has not noted the call under its id");
    attempts_noted(world, answer).pop().ok_or_else(missing)
}

/// Every attempt of the call that the provider got.
fn attempts_noted(world: &World, answer: &Answer) -> Vec<Entry> {
    let id = answer.field("x-tollgate-request-id");
    let requests = usize::try_from(world.standin.counts().requests).unwrap_or(usize::MAX);
    let mut entries = world.standin.tally_of(requests, TALLY_TIME_MAX);
    entries.retain(|entry| entry.request_id.as_deref() == id);
    entries
}

/// The tokens of a record are those its provider says it answered, and they have a price.
fn charged(record: &Settled, entry: &Entry) -> Result<(), Failure> {
    let [fresh, cached, _, _, output, ..] = record.tokens.map(u64::from);
    expect(entry.usage.prompt_tokens == fresh + cached, "input tokens are the provider's")?;
    expect(entry.usage.cached_tokens == cached, "cached tokens are the provider's")?;
    expect(entry.usage.completion_tokens == output, "output tokens are the provider's")?;
    expect(record.has(flag::PRICED) && record.cost_picousd > 0, "the call has a price")
}

/// The client has read what the provider sent, by the length and checksum in the provider's tally.
fn same(body: &str, entry: &Entry) -> Result<(), Failure> {
    let mut crc = Crc::new();
    crc.update(body.as_bytes());
    let read = Digest { bytes: body.len() as u64, crc32: crc.sum() };
    expect(entry.shown == read, "the client has every byte of the provider's, and no other")
}

/// One of the node's counters, over all shards.
fn counted(world: &World, counter: impl Fn(&Counters) -> &Counter) -> u64 {
    world.node.counters.iter().map(|counters| counter(counters).get()).sum()
}

fn expect(held: bool, what: &str) -> Result<(), Failure> {
    if held { Ok(()) } else { Err(Failure(format!("this does not hold: {what}"))) }
}
