//! Keys from the command line: of a node that runs, and of one that does not.

use crate::program::{ask, chat, connect, folder, tollgate};
use crate::serve::{KEY, Served, serve_in};
use loadtest::standin::{Config, Standin};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Exit code, standard output and standard error of a `keys` command.
fn keys(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["keys"];
    all.extend(arguments);
    let output = tollgate(folder, &all).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (code, said, error) = keys(folder, arguments);
    assert_eq!(code, Some(0), "{said}{error}");
    serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}"))
}

/// The text of a new key.
fn made(folder: &Path, arguments: &[&str]) -> String {
    let mut all = vec!["create"];
    all.extend(arguments);
    let (code, said, error) = keys(folder, &all);
    assert_eq!(code, Some(0), "{error}");
    said.trim().to_owned()
}

/// Keys of a node that has never run, then of the same node at work.
#[test]
fn a_key_made_without_a_server_works_when_there_is_one() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("keys-resting");
    std::fs::write(folder.join("tollgate.toml"), "state_dir = \"state\"\n").unwrap();
    let text = made(&folder, &["--name", "ci", "--rpm", "60", "--budget-month", "2.50"]);
    assert!(text.starts_with("tg-") && text.len() == 35, "{text}");
    let shown = json(&folder, &["show", "ci", "--json"]);
    assert_eq!((&shown["key"], &shown["state"]), (&"key_1".into(), &"active".into()));
    assert_eq!(shown["budgets"][0]["limit_picousd"], 2_500_000_000_000_u64);
    assert!(!shown.to_string().contains(&text), "the text is shown once");
    let more = "\n[price]\nfallback = { input = 1, output = 1 }\n";
    let Served { mut program, data, .. } = serve_in(&folder, more, &standin, "auto", &["--no-pin"]);
    let answer = ask(data, &chat(&text, "ok"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // The key of the file came second.
    let (code, said, _) = keys(&folder, &["list"]);
    assert_eq!((code, said.lines().count()), (Some(0), 3), "{said}");
    assert!(said.contains("key_2  tests"), "{said}");
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    let socket = folder.join("state/admin.sock");
    assert!(!socket.exists(), "a node that ends takes its socket with it");
}

#[test]
fn a_running_node_makes_shows_and_revokes_keys_at_once() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("keys-running");
    let Served { mut program, data, .. } = serve_in(&folder, "", &standin, "auto", &["--no-pin"]);
    let mode = std::fs::metadata(folder.join("state/admin.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only its own user may ask");
    let text = made(&folder, &["--name", "agents", "--models", "ok*", "--concurrent", "3"]);
    // One connection, so that the key is remembered there.
    let mut stream = connect(data);
    let mut call = |model: &str| {
        let request = chat(&text, model).replace("connection: close\r\n", "");
        stream.write_all(request.as_bytes()).unwrap();
        let mut got = Vec::new();
        let mut piece = [0; 4096];
        // An answer of these sizes comes with its head or right after it, and ends with a brace.
        while !got.ends_with(b"}") && !got.ends_with(b"}\n") {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "the connection lives on");
            got.extend_from_slice(&piece[..read]);
        }
        String::from_utf8(got).unwrap()
    };
    let answer = call("ok");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = call("big-2k");
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("model_not_allowed"),
        "{answer}"
    );
    let (code, said, _) = keys(&folder, &["show", "agents"]);
    assert_eq!(code, Some(0));
    for part in
        ["agents, key_2", "state       active", "models      ok*", "3, 0 in flight", " upstream; "]
    {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("1 calls"), "{said}");
    // Named by its whole text, which goes no further than the command.
    let revoked = json(&folder, &["revoke", &text, "--json"]);
    assert_eq!(revoked["state"], "revoked");
    let answer = call("ok");
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("key_revoked"), "{answer}");
    let answer = ask(data, &chat(KEY, "ok"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "another key goes on: {answer}");
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    // And it is still revoked for whoever asks the store.
    assert_eq!(json(&folder, &["show", "key_2", "--json"])["state"], "revoked");
    let said = program.err.seen().join("\n");
    assert!(!said.contains(&text), "{said}");
}

#[test]
fn a_budget_of_the_command_line_stops_its_key_over_restarts() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("keys-budget");
    // 1,000 pico-dollars a token: a call holds 1,000,001,000 or so and costs 576,000.
    let more = "\n[price]\nfallback = { input = 1000, output = 1000000 }\n";
    let Served { mut program, data, .. } = serve_in(&folder, more, &standin, "auto", &["--no-pin"]);
    let text = made(&folder, &["--name", "small", "--budget-total", "0.001100"]);
    let statuses = |data| {
        let mut statuses = Vec::new();
        for _ in 0..3 {
            let answer = ask(data, &chat(&text, "ok"));
            statuses.push(answer.get(9..12).unwrap_or_default().to_owned());
        }
        statuses
    };
    // 64 tokens out are 64,000,000, and 512 in 512,000: after two calls there is no room.
    assert_eq!(statuses(data), ["200", "200", "402"]);
    program.signal(Signal::KILL);
    program.wait();
    let served = serve_in(&folder, more, &standin, "auto", &["--no-pin"]);
    let (mut program, data) = (served.program, served.data);
    assert_eq!(statuses(data), ["402", "402", "402"], "what is spent is spent");
    let shown = json(&folder, &["show", "small", "--json"]);
    assert_eq!(shown["budgets"][0]["spent_picousd"], 2 * 64_512_000);
    assert_eq!(shown["budgets"][0]["held_picousd"], 0);
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
}

#[test]
fn what_cannot_be_a_key_is_told_and_changes_nothing() {
    let folder = folder("keys-wrong");
    std::fs::write(folder.join("tollgate.toml"), "state_dir = \"state\"\n").unwrap();
    made(&folder, &["--name", "one"]);
    for (arguments, code, part) in [
        (&["create", "--name", "one"][..], 1, "has this name"),
        (&["create", "--name", ""], 2, "the name"),
        (&["create", "--name", "x", "--budget-total", "-1"], 2, "budget"),
        (&["create", "--name", "x", "--budget-total", "9000001"], 2, "9 million"),
        (&["create", "--name", "x", "--budget-month", "1e3"], 2, "budget_month"),
        (&["create", "--name", "x", "--rpm", "many"], 2, "invalid value"),
        (&["create", "--name", "x", "--expires", "tomorrow"], 2, "expires"),
        (&["create", "--name", "x", "--expires", "999999999d"], 2, "after the year 9999"),
        (&["show", "two"], 1, "no such key"),
        (&["revoke", "key_9"], 1, "no such key"),
        (&["show", ""], 2, "named by"),
    ] {
        let (found, said, error) = keys(&folder, arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {said}{error}");
        assert!(error.contains(part), "{part} in {error}");
    }
    let (_, said, _) = keys(&folder, &["list"]);
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[test]
fn asking_about_keys_where_no_node_has_run_makes_nothing() {
    let folder = folder("keys-nowhere");
    std::fs::write(folder.join("tollgate.toml"), "state_dir = \"state\"\n").unwrap();
    for arguments in [&["list"][..], &["show", "1"], &["revoke", "1"]] {
        let (code, said, error) = keys(&folder, arguments);
        assert_eq!((code, said.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(error.contains("no tollgate has run here"), "{error}");
    }
    assert!(!folder.join("state").exists());
}
