//! The ledger of a node that has served, asked and damaged: what `ledger` says of it.

use crate::program::{ask, chat, connect, folder, get, tollgate};
use crate::serve::{KEY, Served, serve_in, wait_for_attempt};
use loadtest::standin::{Config, Standin};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A folder in which a node has served some calls and ended.
fn served(name: &str) -> (PathBuf, Vec<String>) {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder(name);
    let Served { mut program, data, .. } = serve_in(&folder, "", &standin, "auto", &["--no-pin"]);
    let mut ids = Vec::new();
    for model in ["ok", "s429", "ok-cached", "no-usage", "ok"] {
        let answer = ask(data, &chat(KEY, model));
        let id = answer.split("x-tollgate-request-id: ").nth(1).and_then(|rest| rest.get(..36));
        ids.push(id.expect("our id").to_owned());
    }
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0), "{:#?}", program.err.seen());
    (folder, ids)
}

/// Exit code and standard output of a `ledger` command.
fn ledger(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut all = vec!["ledger"];
    all.extend(arguments);
    let output = tollgate(folder, &all).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), said + &error)
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (code, said) = ledger(folder, arguments);
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}"))
}

#[test]
fn a_request_is_told_in_plain_words_and_as_json() {
    let (folder, ids) = served("ledger-show");
    let (code, said) = ledger(&folder, &["show", &ids[2]]);
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "tests (key_1)",
        "went to     standin/ok-cached",
        "ending      succeeded, status 200",
        "128 input_fresh, 384 cache_read, 64 output, as the provider reported",
        "none in price list",
        "nothing: no budget applied",
        "1: standin success",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let value = json(&folder, &["show", &ids[1], "--json"]);
    assert_eq!((&value["status"], &value["ending"]), (&429.into(), &"upstream_error".into()));
    assert_eq!(value["attempts_listed"][0]["result"], "limited");
    let (code, said) = ledger(&folder, &["show", "tgr_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]);
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = ledger(&folder, &["show", "nonsense"]);
    assert_eq!(code, Some(2), "{said}");
}

/// A node of before its records had traces and its frames stated refusals.
#[test]
fn a_ledger_of_before_is_read() {
    let folder = folder("ledger-before");
    let before = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/golden/log-v1");
    let segment = "ledger/seg-00000000000000000001.log";
    std::fs::create_dir_all(folder.join("state/ledger")).unwrap();
    for name in ["node", "state.redb", segment] {
        std::fs::copy(before.join(name), folder.join("state").join(name)).unwrap();
    }
    let place = ["--state-dir", "state"];
    let told = |what: &[&str]| json(&folder, &[what, &place, &["--json"]].concat());
    let sums = told(&["sum"]);
    assert_eq!((&sums["exchanges"], &sums["refusals"]), (&3.into(), &2.into()));
    assert_eq!(told(&["verify"])["sound"], true);
    let record = told(&["show", "tgr_abkccngbckdhbmmphjaaaaabaaaaaaad"]);
    assert_eq!((&record["code"], &record["seq"]), (&"budget_exceeded".into(), &4.into()));
    assert!(record["trace_id"].is_null());
    let mut keys = tollgate(&folder, &["keys", "show", "tests", "--state-dir", "state"]);
    let said = String::from_utf8(keys.output().expect("it runs").stdout).unwrap();
    let settled = "settled     3 calls, $0.001728, $0.001728 upstream; 2 refusals\n";
    assert!(said.contains(settled), "{said}");
}

#[test]
fn a_trace_leads_to_its_records() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("ledger-trace");
    let Served { mut program, data, .. } = serve_in(&folder, "", &standin, "auto", &["--no-pin"]);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let value = format!("00-{trace}-00f067aa0ba902b7-01");
    let traced = |model: &str| {
        let fields = format!("\r\ntraceparent: {value}\r\n");
        ask(data, &chat(KEY, model).replacen("\r\n", &fields, 1))
    };
    let ids = ["ok", "ok-cached"].map(|model| {
        let answer = traced(model);
        assert!(answer.contains(&format!("traceparent: 00-{trace}-")), "{answer}");
        let id = answer.split("x-tollgate-request-id: ").nth(1).and_then(|rest| rest.get(..36));
        id.expect("our id").to_owned()
    });
    ask(data, &chat(KEY, "ok"));
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0), "{:#?}", program.err.seen());
    for asked in [trace, &value] {
        let (code, said) = ledger(&folder, &["show", asked]);
        assert_eq!((code, said.matches("request     ").count()), (Some(0), 2), "{said}");
        assert!(ids.iter().all(|id| said.contains(id)), "{said}");
        assert_eq!(said.matches(&format!("trace       {trace}\n")).count(), 2, "{said}");
    }
    let (_, said) = ledger(&folder, &["tail", "--json"]);
    let traces: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["trace_id"].clone())
        .collect();
    assert_eq!(traces.len(), 3);
    assert_eq!(traces.iter().filter(|id| *id == trace).count(), 2);
    assert!(traces.iter().all(|id| id.as_str().is_some_and(|id| id.len() == 32)), "{traces:?}");
    let (code, said) = ledger(&folder, &["show", &trace.replace('4', "5")]);
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn the_last_records_and_their_sums_are_listed() {
    let (folder, ids) = served("ledger-list");
    let (code, said) = ledger(&folder, &["tail", "-n", "2"]);
    assert_eq!((code, said.lines().count()), (Some(0), 3), "{said}");
    // Two shards settle in no order of their own.
    assert_eq!(ids.iter().filter(|id| said.contains(*id)).count(), 2, "{said}");
    let (_, said) = ledger(&folder, &["tail", "--ending", "upstream_error", "--json"]);
    let value: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(value["request_id"], ids[1].as_str());
    for (key, count) in [("tests", 5), ("key_1", 5), ("9", 0)] {
        let sum = json(&folder, &["sum", "--key", key, "--json"]);
        assert_eq!(sum["exchanges"], count, "{key}");
    }
    let by = json(&folder, &["sum", "--by", "model", "--since", "1h", "--json"]);
    assert_eq!(by["rows"]["ok"]["exchanges"], 2);
    assert_eq!(by["rows"]["ok"]["tokens"]["input_fresh"], 1_024);
    let (code, said) = ledger(&folder, &["sum", "--by", "day"]);
    assert_eq!(code, Some(0));
    assert!(said.lines().last().unwrap_or_default().starts_with("all"), "{said}");
    let (code, said) = ledger(&folder, &["tail", "--key", "nobody"]);
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn a_ledger_is_read_beside_its_running_node() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("ledger-beside");
    let Served { mut program, data, .. } = serve_in(&folder, "", &standin, "auto", &["--no-pin"]);
    let answer = ask(data, &chat(KEY, "ok"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // The record is durable within a commit's wait; asked again until then, for as long as a
    // line may take.
    let mut tries = 0;
    let last = loop {
        let report = json(&folder, &["verify", "--json"]);
        tries += 1;
        if report["last_seq"] == 1 || tries == 1_000 {
            break report;
        }
    };
    assert_eq!((&last["last_seq"], &last["sound"]), (&1.into(), &true.into()));
    let (code, said) = ledger(&folder, &["tail"]);
    assert!(code == Some(0) && said.contains("tests"), "{said}");
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
}

/// Every segment with its bytes up to the last that is not zero.
fn segments(folder: &Path) -> Vec<(PathBuf, usize)> {
    let entries = std::fs::read_dir(folder.join("state/ledger")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let used = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
    };
    let named = paths.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seg-"))
    });
    named.map(|path| (path.clone(), used(&path))).filter(|(_, used)| *used > 0).collect()
}

fn change(path: &Path, at: usize, change: impl Fn(u8) -> u8) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).unwrap();
    file.write_all_at(&[change(byte[0])], at as u64).unwrap();
}

#[test]
fn a_flipped_byte_is_named_or_carried_nothing() {
    let (folder, _) = served("ledger-flip");
    let sound = json(&folder, &["verify", "--json"]);
    assert_eq!((&sound["sound"], &sound["last_seq"]), (&true.into(), &5.into()));
    let (mut named, mut silent) = (0, 0);
    for (path, used) in segments(&folder) {
        // Places far and near, in header and frames, without a pattern of the format's own.
        for at in (0..used).step_by(37) {
            change(&path, at, |byte| byte ^ 0x40);
            let (code, said) = ledger(&folder, &["verify", "--json"]);
            let report: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
            match code {
                Some(1) => {
                    assert!(report["fault"].is_string(), "{said}");
                    let first = report["first_unproved_seq"].as_u64();
                    assert!(first.is_some_and(|first| (1..=6).contains(&first)), "{said}");
                    named += 1;
                }
                Some(0) => {
                    let same = ["last_seq", "chain", "cost_picousd", "endings"];
                    assert!(
                        same.iter().all(|key| report[*key] == sound[*key]),
                        "byte {at}: {said}"
                    );
                    silent += 1;
                }
                other => panic!("byte {at}: {other:?} {said}"),
            }
            change(&path, at, |byte| byte ^ 0x40);
        }
    }
    println!("{named} flips named, {silent} carried nothing");
    assert!(named > 40, "{named}");
    assert_eq!(json(&folder, &["verify", "--json"]), sound, "and all is as it was");
}

#[test]
fn a_tail_cut_below_the_checkpoint_alarms_and_nothing_starts_on_it() {
    let (folder, _) = served("ledger-cut");
    let [(path, used)] = &segments(&folder)[..] else { panic!("one segment") };
    for at in used / 2..*used {
        change(path, at, |_| 0);
    }
    let (code, said) = ledger(&folder, &["verify"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("was acknowledged: records are gone"), "{said}");
    assert!(said.contains("on nothing is proved"), "{said}");
    let output = tollgate(&folder, &["serve"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("records are gone"), "{said}");
}

#[test]
fn a_key_is_named_alike_beside_a_node_and_without_one() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("ledger-names");
    let Served { mut program, data, .. } = serve_in(&folder, "", &standin, "auto", &["--no-pin"]);
    let output = tollgate(&folder, &["keys", "create", "--name", "ci", "--json"]).output();
    let made: Value = serde_json::from_slice(&output.expect("it runs").stdout).unwrap();
    let text = made["text"].as_str().unwrap();
    let prefix = made["prefix"].as_str().unwrap();
    assert!(ask(data, &chat(text, "ok")).starts_with("HTTP/1.1 200 "));
    let selectors = ["ci", "key_2", "2", prefix, text];
    let wrong = [("nobody", 1, "no such key"), ("sha256:0", 2, "64 hexadecimal digits")];
    for (selector, exit, part) in wrong {
        let (code, said) = ledger(&folder, &["tail", "--key", selector]);
        assert!(code == Some(exit) && said.contains(part), "{selector}: {said}");
    }
    for selector in selectors {
        let (code, said) = ledger(&folder, &["sum", "--key", selector]);
        assert_eq!(code, Some(0), "{selector}: {said}");
    }
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    for selector in selectors {
        let sum = json(&folder, &["sum", "--key", selector, "--json"]);
        assert_eq!(sum["exchanges"], 1, "{selector}");
    }
    let (code, said) = ledger(&folder, &["tail", "--key", "nobody"]);
    assert!(code == Some(1) && said.contains("no such key"), "{said}");
}

#[test]
fn what_a_killed_node_left_is_listed_and_settled_by_the_next_start() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("ledger-unrecovered");
    let mut served = serve_in(&folder, "", &standin, "auto", &["--no-pin"]);
    let mut client = connect(served.data);
    client.write_all(chat(KEY, "hang").as_bytes()).unwrap();
    wait_for_attempt(&standin, &served);
    served.program.signal(Signal::KILL);
    served.program.wait();
    // Looked at twice: looking changes nothing.
    for _ in 0..2 {
        let report = json(&folder, &["verify", "--json"]);
        assert_eq!((&report["sound"], &report["last_seq"]), (&true.into(), &0.into()));
        let [slot] = &report["unrecovered"].as_array().unwrap()[..] else { panic!("{report}") };
        assert_eq!((&slot["key_id"], &slot["state"]), (&1.into(), &"sent".into()));
    }
    let mut again = serve_in(&folder, "", &standin, "auto", &["--no-pin"]).program;
    again.signal(Signal::TERM);
    assert_eq!(again.wait(), Some(0));
    let report = json(&folder, &["verify", "--json"]);
    assert_eq!(report["endings"]["orphaned"], 1);
    assert_eq!(report["unrecovered"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_lock_that_is_no_file_is_told_and_nothing_is_taken_for_proved() {
    let (folder, _) = served("ledger-lock");
    let lock = folder.join("state/lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let said = tollgate(&folder, &["ledger", "verify"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    let said = String::from_utf8_lossy(&said.stderr);
    assert!(said.contains("opening the lock"), "{said}");
}

#[test]
fn a_log_that_is_removed_beside_its_node_is_told_and_calls_are_refused() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("ledger-removed");
    let mut served = serve_in(&folder, "", &standin, "auto", &["--no-pin"]);
    assert!(ask(served.data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 "));
    std::fs::remove_dir_all(folder.join("state/ledger")).unwrap();
    // The first finds nothing amiss, and its record stays in its slab.
    while ask(served.data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 ") {}
    let refused = ask(served.data, &chat(KEY, "ok"));
    assert!(refused.contains("\"code\":\"ledger_busy\""), "{refused}");
    let metrics = get(served.admin, "/metrics");
    assert!(metrics.contains("\ntollgate_ledger_health{state=\"failing\"} 1\n"), "{metrics}");
    served.program.err.wait_for("error       ledger ");
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(1));
}
