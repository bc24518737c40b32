//! `kill -9` under load, again and again, over TCP and with TLS on both sides: whoever got a whole
//! answer has exactly one confirm, and the money of these answers is what the provider's own tally
//! says.
//!
//! [`ROUNDS`] rounds, [`ROUNDS_TLS`] over TLS, unless `TOLLGATE_KILLS` says otherwise. The moment
//! of a kill is a number of answers, drawn from a seed that is printed; nothing waits for a time.

use crate::over::{Line, Over};
use crate::program::{Program, connect, folder, tollgate};
use loadtest::standin::{Config, Entry, Standin};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use store::disk::Folder;
use store::ending::{Ending, Provenance};
use store::record::{Head, flag};

/// Kills unless the environment says otherwise.
const ROUNDS: u32 = 10;

/// Those over TLS: what differs lies below what a record is about.
const ROUNDS_TLS: u32 = 4;

/// Connections that call without a pause.
const CLIENTS: usize = 8;

/// Answers of a round before its kill: from a few to some hundreds.
const ANSWERS_MAX: u64 = 400;

/// What the clients ask for, in turn: whole answers short and long, counted and not, errors, and
/// upstreams that break off.
const MODELS: [&str; 8] =
    ["ok", "ok-cached", "big-64k", "ok", "s429", "cut-body", "slow-5", "no-usage"];

pub(crate) const KEY: &str = "tg-example-key";

/// Pico-dollars a token: input, cached input, output. The key pays half as much again.
pub(crate) const RATES: [u64; 3] = [1_001, 101, 10_007];

/// What a client saw of one call.
struct Answered {
    id: String,
    status: u16,
}

/// A node's files, and the folder of its slabs, which goes with the test.
pub(crate) struct Home {
    pub(crate) folder: PathBuf,
    pub(crate) slabs: PathBuf,
}

impl Drop for Home {
    fn drop(&mut self) {
        // A failed test may have left slabs; they are of no use to anybody.
        let _ = std::fs::remove_dir_all(&self.slabs);
    }
}

/// A price list that has these models at both providers.
fn prices(models: &[&str]) -> String {
    let [input, cached, output] = RATES;
    let models: BTreeSet<&str> = models.iter().copied().collect();
    let both = models.into_iter().flat_map(|model| [("standin", model), ("claude", model)]);
    let models = both.map(|(provider, model)| {
        format!(
            r#"{{"provider": "{provider}", "model": "{model}", "tiers": [{{"above_input": 0,
                "input": {input}, "cache_read": {cached}, "output": {output}}}]}}"#
        )
    });
    format!(r#"{{"version": 3, "models": [{}]}}"#, models.collect::<Vec<_>>().join(","))
}

pub(crate) fn home(name: &str, over: Over, standin: SocketAddr, models: &[&str]) -> Home {
    let name = &format!("{name}{}", over.suffix());
    let folder = folder(name);
    over.write(&folder);
    let [scheme, listen, provider] = over.configured();
    let slabs = PathBuf::from(format!("/dev/shm/tollgate-{name}-{}", std::process::id()));
    let prices = prices(models);
    let digest = "25aeda2f87ab9341ed6436c2232885d8d196ad8c01718a188b8f0a15f881fcf0";
    let text = format!(
        r#"state_dir = "{state}"

[listen]
data = "127.0.0.1:0"
admin = "127.0.0.1:0"
{listen}

[shards]
count = 2

[ledger]
slab_dir = "{slabs}"

[price]
file = "prices.json"
markup = "1.5"

[[provider]]
name = "standin"
kind = "openai"
{provider}
base_url = "{scheme}://{standin}/v1"
credentials = [{{ name = "main", key = "file:credential" }}]
models = ["*"]

[[provider]]
name = "claude"
kind = "anthropic"
{provider}
base_url = "{scheme}://{standin}"
credentials = [{{ name = "main", key = "file:credential" }}]
models = ["*"]

[retry]
attempts = 1

[breaker]
failures = 15
cooldown = "0s"

[[key]]
name = "tests"
sha256 = "{digest}"
budget_total = "1000.00"
concurrent = 1000
"#,
        state = folder.join("state").display(),
        slabs = slabs.display(),
    );
    std::fs::write(folder.join("tollgate.toml"), text).expect("it can be written");
    std::fs::write(folder.join("prices.json"), prices).expect("likewise");
    std::fs::write(folder.join("credential"), "sk-upstream").expect("likewise");
    Home { folder, slabs }
}

pub(crate) fn serve(folder: &Path) -> (Program, SocketAddr) {
    let mut program = Program::start(tollgate(folder, &["serve", "--no-pin"]));
    let data = program.err.wait_for("data");
    let data = data.trim_start_matches("https://").trim_start_matches("http://").to_owned();
    program.err.wait_for("ready");
    (program, data.parse().expect("an address"))
}

/// Numbers that differ from seed to seed, and not from run to run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % most
    }
}

/// One call on a connection that lives on; `None` when the gateway is gone before its end.
fn call(stream: &mut dyn Line, model: &str) -> Option<Answered> {
    let body = format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"hi"}}]}}"#);
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut got = Vec::new();
    let (head, start) = loop {
        if let Some(at) = got.windows(4).position(|four| four == b"\r\n\r\n") {
            break (String::from_utf8(got[..at].to_vec()).expect("a head is text"), at + 4);
        }
        more(stream, &mut got)?;
    };
    let field = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
        line.and_then(|line| line.split_once(": ")).map(|(_, value)| value.to_owned())
    };
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let length: usize = field("content-length:").and_then(|n| n.parse().ok()).expect("a length");
    while got.len() < start + length {
        more(stream, &mut got)?;
    }
    Some(Answered { id: field("x-tollgate-request-id:").expect("our id"), status })
}

pub(crate) fn more(stream: &mut dyn Line, got: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 16 * 1024];
    match stream.read(&mut piece) {
        Ok(n) if n > 0 => got.extend_from_slice(&piece[..n]),
        _ => return None,
    }
    Some(())
}

/// Calls until the gateway is gone.
fn client(over: Over, data: SocketAddr, first: usize, answers: &Sender<Answered>) {
    // The kill may be first.
    let Some(mut stream) = over.try_dial(data) else { return };
    for model in MODELS.iter().cycle().skip(first) {
        let Some(answer) = call(&mut *stream, model) else { return };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// One life: load until so many answers are in, then the kill. All answers got whole.
fn life(over: Over, folder: &Path, until: u64) -> Vec<Answered> {
    let (mut program, data) = serve(folder);
    let (send, answers) = channel();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|first| {
            let send = send.clone();
            std::thread::spawn(move || client(over, data, first, &send))
        })
        .collect();
    drop(send);
    let mut got: Vec<Answered> = answers.iter().take(until as usize).collect();
    program.signal(Signal::KILL);
    program.wait();
    got.extend(answers.iter());
    clients.into_iter().for_each(|client| client.join().expect("a client ends"));
    got
}

/// Every record of the ledger, by request id as the client saw it.
pub(crate) fn ledger(folder: &Path) -> Vec<Head> {
    let disk = Folder::existing(&folder.join("state/ledger")).expect("a ledger");
    let node = std::fs::read_to_string(folder.join("state/node")).expect("an identity");
    let node = u64::from_str_radix(node.trim(), 16).expect("hexadecimal");
    let mut heads = Vec::new();
    store::query::scan(&disk, node, 1, |_, _, record| {
        heads.push(record.head);
        true
    })
    .expect("a sound ledger");
    heads
}

pub(crate) fn text(id: [u8; 16]) -> String {
    tollgate::exchange::ids::RequestId(id).to_string()
}

fn upstream_cost(entry: &Entry) -> u64 {
    let usage = entry.usage;
    let [input, cached, output] = RATES;
    (usage.prompt_tokens - usage.cached_tokens) * input
        + usage.cached_tokens * cached
        + usage.completion_tokens * output
}

/// How many kills.
pub(crate) fn rounds(over: Over) -> u32 {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is not configuration")]
    let rounds = std::env::var("TOLLGATE_KILLS").ok().and_then(|n| n.parse().ok());
    rounds.unwrap_or(match over {
        Over::Tcp => ROUNDS,
        Over::Tls => ROUNDS_TLS,
    })
}

#[test]
fn whoever_got_a_whole_answer_has_one_confirm_through_kills() {
    kills(Over::Tcp);
}

#[test]
fn over_tls_whoever_got_a_whole_answer_has_one_confirm_through_kills() {
    kills(Over::Tls);
}

fn kills(over: Over) {
    let rounds = rounds(over);
    let seed = 20_261_130;
    println!("{rounds} kills over {over:?}, seed {seed}");
    let standin = over.standin();
    let home = home("kill", over, standin.addr(), &MODELS);
    let mut dice = Dice(seed);
    let mut answered = Vec::new();
    for round in 0..rounds {
        let until = 1 + dice.below(ANSWERS_MAX);
        let got = life(over, &home.folder, until);
        assert!(got.len() as u64 >= until, "round {round}: {} of {until}", got.len());
        answered.extend(got);
    }
    // A last life without a kill: it recovers, serves, and leaves nothing in its slabs.
    let (mut program, data) = serve(&home.folder);
    let last = call(&mut *over.dial(data), "ok").expect("it serves");
    answered.push(last);
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0), "{:#?}", program.err.seen());
    let left = std::fs::read_dir(&home.slabs).map_or(0, Iterator::count);
    assert_eq!(left, 0, "slabs left after a drain");

    let records = ledger(&home.folder);
    let mut by_id: HashMap<String, Head> = HashMap::new();
    for head in &records {
        let before = by_id.insert(text(head.request_id), *head);
        assert!(before.is_none(), "two records of {}", text(head.request_id));
    }
    let tally: HashMap<String, Entry> =
        standin.tally().into_iter().filter_map(|e| Some((e.request_id.clone()?, e))).collect();
    let sums = confirm(&answered, &by_id, &tally);
    let orphans = check_orphans(&records, &answered);
    println!("{} answers, {} records, {orphans} orphans, {sums:?}", answered.len(), records.len());
    let verify = tollgate(&home.folder, &["ledger", "verify", "--json"]).output().unwrap();
    assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
}

/// Each whole answer has its one record, at the tally's price; sums of both.
fn confirm(
    answered: &[Answered],
    records: &HashMap<String, Head>,
    tally: &HashMap<String, Entry>,
) -> [u128; 2] {
    let (mut told, mut recorded, mut debited) = (0_u128, 0_u128, 0_u128);
    let mut seen = BTreeSet::new();
    let mut endings: BTreeMap<&str, u32> = BTreeMap::new();
    for Answered { id, status } in answered {
        assert!(seen.insert(id), "two answers with the id {id}");
        let head = records.get(id).unwrap_or_else(|| panic!("{status} {id} has no record"));
        *endings.entry(head.ending.name()).or_default() += 1;
        let whole = [Ending::Succeeded, Ending::UpstreamError, Ending::Exhausted, Ending::Unknown];
        assert!(whole.contains(&head.ending), "{status} {id}: {:?}", head.ending);
        if *status != 200 {
            assert_eq!(head.cost_picousd, 0, "{status} {id}");
            continue;
        }
        assert!(head.has(flag::PRICED), "{id}");
        let entry = tally.get(id).unwrap_or_else(|| panic!("{id} is not in the tally"));
        if head.provenance == Provenance::Reported {
            assert_eq!(head.upstream_cost_picousd, upstream_cost(entry), "{id}");
            told += u128::from(upstream_cost(entry));
            recorded += u128::from(head.upstream_cost_picousd);
        } else {
            assert_eq!(entry.model, "no-usage", "{id}");
        }
        assert_eq!(head.cost_picousd, (head.upstream_cost_picousd * 3).div_ceil(2), "{id}");
        debited += u128::from(head.cost_picousd);
    }
    assert_eq!(told, recorded);
    assert!(told > 0 && debited > recorded);
    println!("endings of whole answers: {endings:?}");
    [recorded, debited]
}

/// What no client got whole is there at most once, and charged by the rule for its state.
fn check_orphans(records: &[Head], answered: &[Answered]) -> usize {
    let whole: BTreeSet<&str> = answered.iter().map(|answer| &*answer.id).collect();
    let orphans = records.iter().filter(|head| head.ending == Ending::Orphaned);
    let orphans: Vec<&Head> = orphans.collect();
    for head in &orphans {
        assert!(!whole.contains(&*text(head.request_id)), "an orphan that was delivered");
        let sent = head.has(flag::CHARGED_NOTED);
        assert_eq!(head.cost_picousd > 0, sent, "{}", text(head.request_id));
        let input_alone = head.upstream_cost_picousd % RATES[0] == 0;
        assert_eq!(input_alone, head.relayed_bytes == 0, "what has passed is charged too");
    }
    orphans.len()
}

/// A time-out of a client is far above what a call takes.
#[test]
fn a_second_node_on_the_same_state_is_told_whose_it_is() {
    let standin = Standin::start(Config::default()).unwrap();
    let home = home("second", Over::Tcp, standin.addr(), &["ok"]);
    let (mut first, data) = serve(&home.folder);
    let mut second = Program::start(tollgate(&home.folder, &["serve", "--no-pin"]));
    assert_eq!(second.wait(), Some(1));
    let said = second.err.seen().join("\n");
    assert!(said.contains("another tollgate"), "{said}");
    let mut stream = connect(data);
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(call(&mut stream, "ok").map(|answer| answer.status), Some(200));
    drop(stream);
    first.signal(Signal::TERM);
    assert_eq!(first.wait(), Some(0));
}
