//! `kill -9` under a load of streams in both dialects, over TCP and with TLS on both sides, some of
//! which their clients leave half-way: every stream that came to its end has exactly one confirm at
//! the price of the provider's own count, and what did not is charged by the rule of its ending,
//! once.
//!
//! As many rounds as the kill test of whole answers, the moments drawn from a seed.

use crate::kill::{Dice, KEY, RATES, home, ledger, more, rounds, serve, text};
use crate::over::{Line, Over};
use crate::program::tollgate;
use loadtest::standin::{Entry, hashed};
use rustix::process::Signal;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use store::ending::{Ending, Provenance};
use store::record::{Head, flag};

/// Connections that call without a pause.
const CLIENTS: u64 = 8;

/// Ended streams of a round before its kill.
const STREAMS_MAX: u64 = 150;

/// What is asked for: streams of every length and speed, by every way they can end.
const MODELS: [&str; 14] = [
    "stream-3",
    "kill-mix-12-2",
    "kill-mix-40-1",
    "stream-crlf",
    "stream-giant-200",
    "stream-cached",
    "stream-no-usage",
    "stream-cut-4",
    "stream-cut-in-event",
    "stream-err-mid",
    "stream-trunc",
    "stream-rst-after-done",
    "stream-usage-mid-cut",
    "s429",
];

/// How a stream ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Saw {
    /// The whole body, to its last chunk.
    Whole,
    /// The connection ended inside it.
    Cut,
    /// It went away itself.
    Left,
}

struct Streamed {
    id: String,
    status: u16,
    saw: Saw,
    body: Vec<u8>,
}

/// One call on a connection of its own, left after `patience` bytes of its answer. `None` when the
/// gateway is gone before the head.
fn stream(
    over: Over,
    data: SocketAddr,
    model: &str,
    messages: bool,
    patience: Option<usize>,
) -> Option<Streamed> {
    let mut wire = over.try_dial(data)?;
    let wire = &mut *wire;
    let path = if messages { "messages" } else { "chat/completions" };
    let body = format!(
        "{{\"model\":\"{model}\",\"max_tokens\":100,\"stream\":true,\
         \"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}"
    );
    let request = format!(
        "POST /v1/{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    wire.write_all(request.as_bytes()).ok()?;
    let mut got = Vec::new();
    let start = loop {
        if let Some(at) = got.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        more(wire, &mut got)?;
    };
    let head = String::from_utf8(got.drain(..start).collect()).expect("a head is text");
    let field = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
        line.and_then(|line| line.split_once(": ")).map(|(_, value)| value.to_owned())
    };
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let id = field("x-tollgate-request-id:").expect("our id");
    let length = field("content-length:").and_then(|n| n.parse().ok());
    let (saw, body) = read(wire, got, length, patience);
    Some(Streamed { id, status, saw, body })
}

/// The body behind a head, to its end, the end of the connection, or of the client's patience.
fn read(
    wire: &mut dyn Line,
    mut got: Vec<u8>,
    length: Option<usize>,
    patience: Option<usize>,
) -> (Saw, Vec<u8>) {
    loop {
        if let Some(body) = whole(&got, length) {
            return (Saw::Whole, body);
        }
        if patience.is_some_and(|patience| got.len() >= patience) {
            return (Saw::Left, Vec::new());
        }
        if more(wire, &mut got).is_none() {
            return (Saw::Cut, Vec::new());
        }
    }
}

/// The decoded body, if all of it is here.
fn whole(got: &[u8], length: Option<usize>) -> Option<Vec<u8>> {
    if let Some(length) = length {
        return got.get(..length).map(<[u8]>::to_vec);
    }
    let (mut body, mut rest) = (Vec::new(), got);
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size is hexadecimal");
        body.extend_from_slice(rest.get(line + 2..line + 2 + size)?);
        rest = rest.get(line + 4 + size..)?;
        if size == 0 {
            return Some(body);
        }
    }
}

/// Calls until the gateway is gone.
fn client(over: Over, data: SocketAddr, seed: u64, streams: &Sender<Streamed>) {
    let mut dice = Dice(seed);
    loop {
        let model = MODELS[dice.below(MODELS.len() as u64) as usize];
        let patience = (dice.below(4) == 0).then(|| dice.below(4_000) as usize);
        let Some(streamed) = stream(over, data, model, dice.below(2) == 0, patience) else {
            return;
        };
        if streams.send(streamed).is_err() {
            return;
        }
    }
}

/// One life: load until so many streams have ended, then the kill.
fn life(over: Over, folder: &Path, until: u64, seed: u64) -> Vec<Streamed> {
    let (mut program, data) = serve(folder);
    let (send, streams) = channel();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let send = send.clone();
            std::thread::spawn(move || client(over, data, seed * CLIENTS + number, &send))
        })
        .collect();
    drop(send);
    let mut got: Vec<Streamed> = streams.iter().take(until as usize).collect();
    program.signal(Signal::KILL);
    program.wait();
    got.extend(streams.iter());
    clients.into_iter().for_each(|client| client.join().expect("a client ends"));
    got
}

fn price(prompt: u64, cached: u64, output: u64) -> u64 {
    let [input, read, out] = RATES;
    (prompt - cached) * input + cached * read + output * out
}

#[test]
fn whoever_got_a_whole_stream_has_one_confirm_through_kills() {
    kills(Over::Tcp);
}

#[test]
fn over_tls_whoever_got_a_whole_stream_has_one_confirm_through_kills() {
    kills(Over::Tls);
}

fn kills(over: Over) {
    let seed = 20_261_130;
    let rounds = rounds(over);
    println!("{rounds} kills over {over:?}, seed {seed}");
    let standin = over.standin();
    let home = home("kill-streams", over, standin.addr(), &MODELS);
    let mut dice = Dice(seed);
    let mut streams = Vec::new();
    for round in 0..rounds {
        let until = 1 + dice.below(STREAMS_MAX);
        let got = life(over, &home.folder, until, u64::from(round));
        assert!(got.len() as u64 >= until, "round {round}: {} of {until}", got.len());
        streams.extend(got);
    }
    // A last life without a kill: one leaves, one stays, and nothing is left in the slabs.
    let (mut program, data) = serve(&home.folder);
    for patience in [Some(1), None] {
        streams.extend(stream(over, data, "kill-mix-12-2", true, patience));
    }
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0), "{:#?}", program.err.seen());
    let left = std::fs::read_dir(&home.slabs).map_or(0, Iterator::count);
    assert_eq!(left, 0, "slabs left after a drain");
    let verify = tollgate(&home.folder, &["ledger", "verify", "--json"]).output().unwrap();
    assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));

    let records = ledger(&home.folder);
    let mut by_id: HashMap<String, Head> = HashMap::new();
    for head in &records {
        let before = by_id.insert(text(head.request_id), *head);
        assert!(before.is_none(), "two records of {}", text(head.request_id));
    }
    let tally: HashMap<String, Entry> =
        standin.tally().into_iter().filter_map(|e| Some((e.request_id.clone()?, e))).collect();
    let mut endings: BTreeMap<(Saw, &str), u32> = BTreeMap::new();
    let mut sums = (0_u128, 0_u128);
    for streamed in &streams {
        let id = &streamed.id;
        if streamed.saw == Saw::Cut && !by_id.contains_key(id) {
            panic!("{id}: a head went out and there is no record");
        }
        let head = &by_id[id];
        *endings.entry((streamed.saw, head.ending.name())).or_default() += 1;
        // A refusal of ours never reached the provider.
        let Some(entry) = tally.get(id) else {
            assert!(streamed.status != 200, "{id} is not in the tally: {head:?}");
            continue;
        };
        check(streamed, head, entry, &mut sums);
    }
    println!("{} streams, {} records, {endings:?}, {sums:?}", streams.len(), records.len());
    assert_eq!(sums.0, sums.1, "the provider's counts and ours");
    assert!(endings.keys().any(|(saw, _)| *saw == Saw::Left), "nobody left");
    assert!(endings.keys().all(|(_, ending)| *ending != "internal"), "a task panicked");
}

/// A stream, its record, and what the provider says of it.
fn check(streamed: &Streamed, head: &Head, entry: &Entry, sums: &mut (u128, u128)) {
    let Streamed { id, status, saw, body } = streamed;
    let about = || format!("{id} {} {saw:?} {head:?} {entry:?}", entry.model);
    if *status != 200 {
        assert_eq!(head.cost_picousd, 0, "{}", about());
        return;
    }
    let usage = entry.usage_sent;
    let told = price(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens);
    if head.provenance == Provenance::Reported {
        // Whatever its ending: what was counted is what is charged. A `message_delta` is a final
        // count wherever it stands.
        let delta = head.dialect == 2 && entry.model == "stream-usage-mid-cut";
        assert!(entry.usage_final || delta, "{}", about());
        assert_eq!(head.upstream_cost_picousd, told, "{}", about());
        sums.0 += u128::from(told);
        sums.1 += u128::from(head.upstream_cost_picousd);
    }
    match saw {
        Saw::Whole => {
            let priced = [Ending::Succeeded, Ending::UpstreamError, Ending::Unknown];
            let broken = [Ending::UpstreamCut];
            assert!(priced.contains(&head.ending) || broken.contains(&head.ending), "{}", about());
            if head.ending == Ending::Succeeded {
                assert!(head.has(flag::PRICED), "{}", about());
                let shown = if head.dialect == 1 { entry.shown } else { entry.content };
                assert_eq!(body.len() as u64, shown.bytes, "{}", about());
                assert_eq!(hashed(body), format!("crc32:{:08x}", shown.crc32), "{}", about());
                let counted = head.provenance == Provenance::Reported;
                assert_eq!(counted, entry.usage_final, "{}", about());
            }
        }
        Saw::Cut | Saw::Left => {}
    }
    if head.provenance == Provenance::Estimated {
        // Never more than a token for each byte of text that was sent, and the estimated input.
        let most = entry.content.bytes + 600;
        let tokens: u64 = head.tokens.iter().map(|count| u64::from(*count)).sum();
        assert!(tokens <= most, "{}", about());
    }
    assert_eq!(head.cost_picousd, (head.upstream_cost_picousd * 3).div_ceil(2), "{}", about());
}
