//! The logs of a running node: a line a record, a line a trouble, nothing of a head or a body, and
//! nobody waits for who reads them.

use crate::program::{Program, ask, chat, folder, get};
use crate::serve::{KEY, Served, serve_in};
use loadtest::standin::{Config, Standin};
use rustix::process::{Resource, Rlimit, Signal, prlimit};
use serde_json::Value;
use std::io::PipeReader;
use std::process::Stdio;

/// A text of a head and one of a body that must not be found again.
const HEADER: &str = "zebra-in-a-header";
const PROMPT: &str = "zebra-in-a-prompt";

fn marked(path: &str, model: &str, stream: bool) -> String {
    let body = format!(
        "{{\"model\":\"{model}\",\"max_tokens\":9,\"stream\":{stream},\
         \"messages\":[{{\"role\":\"user\",\"content\":\"{PROMPT}\"}}]}}"
    );
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\nx-mine: {HEADER}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn each_record_is_a_line_of_the_access_log() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("logs-access");
    let log = "[log]\naccess = \"file:access.log\"\n";
    let mut served = serve_in(&folder, log, &standin, "auto", &["--no-pin"]);
    let path = folder.join("access.log");
    let first = ask(served.data, &marked("/v1/chat/completions", "ok", false));
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    // It is written as it happens; whoever rotates it moves it away.
    while std::fs::read_to_string(&path).expect("it is there").is_empty() {}
    std::fs::rename(&path, folder.join("access.log.1")).unwrap();
    let whole = ask(served.data, &marked("/v1/chat/completions", "stream-3", true));
    assert!(whole.contains("data: [DONE]"), "{whole}");
    assert!(ask(served.data, &marked("/v1/chat/completions", "s429", false)).contains("429"));
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
    assert!(served.program.out.wait_for_end().is_empty(), "the output is not the log's");

    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it is there");
    let lines = read("access.log.1") + &read("access.log");
    assert!(!lines.contains("zebra") && !lines.contains(KEY), "{lines}");
    assert_eq!((read("access.log.1").lines().count(), lines.lines().count()), (1, 3));
    let mut records: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // Each shard has an order of its own.
    let models = ["ok", "stream-3", "s429"];
    records.sort_by_key(|record| models.iter().position(|model| record["model"] == *model));
    for (record, (model, stream, status, ending)) in records.iter().zip([
        ("ok", false, 200, "succeeded"),
        ("stream-3", true, 200, "succeeded"),
        ("s429", false, 429, "upstream_error"),
    ]) {
        for (field, value) in [
            ("key", Value::from("tests")),
            ("key_id", 1.into()),
            ("route", "chat_completions".into()),
            ("dialect", "chat".into()),
            ("provider", "standin".into()),
            ("model", model.into()),
            ("stream", stream.into()),
            ("status", status.into()),
            ("ending", ending.into()),
            ("attempts", 1.into()),
            ("fallbacks", 0.into()),
        ] {
            assert_eq!(record[field], value, "{field} of {record}");
        }
        let request_id = record["request_id"].as_str().expect("an id");
        assert!([&first, &whole].iter().any(|a| a.contains(request_id)) || status == 429);
        for number in ["duration_ms", "first_content_us", "cost_picousd", "overhead_us"] {
            assert!(record[number].is_u64(), "{number} of {record}");
        }
        assert!(record["tokens"]["output"].is_u64());
    }
    assert!(records[0]["first_content_us"].as_u64() > Some(0));
}

#[test]
fn trouble_is_told_by_its_category_and_no_storm_fills_the_log() {
    const CALLS: usize = 40;
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("logs-trouble");
    let Served { mut program, data, .. } = serve_in(&folder, "", &standin, "auto", &["--no-pin"]);
    for _ in 0..CALLS {
        let answer = ask(data, &marked("/v1/chat/completions", "s429", false));
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    }
    assert!(ask(data, &marked("/v1/chat/completions", "ok", false)).starts_with("HTTP/1.1 200 "));
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    let said = program.err.wait_for_end();
    let errors: Vec<&String> = said.iter().filter(|line| line.starts_with("error ")).collect();
    let mut counted = 0;
    for line in &errors {
        let rest = line.strip_prefix("error       upstream_limited ").expect("the only trouble");
        match rest.strip_prefix("more=") {
            Some(more) => counted += more.parse::<usize>().expect("a number"),
            None => {
                assert!(rest.starts_with("provider=standin attempt=1 request=tgr_"), "{line}");
                assert!(rest.contains(" ending=upstream_error status=429 ms="), "{line}");
                counted += 1;
            }
        }
    }
    assert_eq!(counted, CALLS, "{errors:#?}");
    assert!(!said.join("\n").contains("zebra"), "{said:#?}");
}

#[test]
fn a_reader_of_the_access_log_that_takes_nothing_costs_it_lines_and_calls_nothing() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("logs-slow");
    let (unread, program, [admin, data]) = with_unread_output(&folder, &standin);
    let mut program = program;
    let mut calls = 0;
    while get(admin, "/metrics").contains("\ntollgate_log_lines_lost_total 0\n") {
        for _ in 0..20 {
            assert!(ask(data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 "));
        }
        calls += 20;
        assert!(calls < 50_000, "nothing is lost, and nobody reads");
    }
    assert!(get(admin, "/metrics").contains("\ntollgate_records_lost_total 0\n"));
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    let said = program.err.wait_for_end().join("\n");
    assert!(said.contains("warning     nobody reads the records"), "{said}");
    drop(unread);
}

/// A node whose access log goes to an output that stays open and unread.
fn with_unread_output(
    folder: &std::path::Path,
    standin: &Standin,
) -> (PipeReader, Program, [std::net::SocketAddr; 2]) {
    crate::serve::write_usual(folder, "[log]\naccess = \"stdout\"\n", standin);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = crate::program::tollgate(folder, &["serve", "--no-pin"]);
    command.stdout(writer).stderr(Stdio::piped());
    let mut program = Program::adopt(command);
    let address = |text: String| text.replace("http://", "").parse().expect("an address");
    let admin = address(program.err.wait_for("admin"));
    let data = address(program.err.wait_for("data"));
    program.err.wait_for("ready");
    (reader, program, [admin, data])
}

fn pipe_at(path: &std::path::Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}

#[test]
fn an_access_log_that_is_a_pipe_without_a_reader_is_a_reason_not_to_start() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("logs-pipe");
    crate::serve::write_usual(&folder, "[log]\naccess = \"file:access.log\"\n", &standin);
    pipe_at(&folder.join("access.log"));
    let mut program = Program::start(crate::program::tollgate(&folder, &["serve", "--no-pin"]));
    assert_eq!(program.wait(), Some(1));
    let said = program.err.wait_for_end().join("\n");
    assert!(said.contains("access log ") && !said.contains("ready"), "{said}");
}

#[test]
fn a_pipe_in_the_place_of_the_access_log_costs_its_lines_and_a_file_again_has_the_next() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("logs-swapped");
    let log = "[log]\naccess = \"file:access.log\"\n";
    let mut served = serve_in(&folder, log, &standin, "auto", &["--no-pin"]);
    let path = folder.join("access.log");
    std::fs::remove_file(&path).unwrap();
    pipe_at(&path);
    assert!(ask(served.data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 "));
    while get(served.admin, "/metrics").contains("\ntollgate_log_lines_lost_total 0\n") {}
    std::fs::remove_file(&path).unwrap();
    assert!(ask(served.data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 "));
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
}

/// What a pipe holds on Linux, unless its size was changed.
const PIPE_BYTES: usize = 64 * 1024;

#[test]
fn an_error_output_that_nobody_reads_holds_up_neither_calls_nor_the_end() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("logs-deaf");
    crate::serve::write_usual(&folder, "", &standin);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = crate::program::tollgate(&folder, &["serve", "--no-pin"]);
    command.stdout(Stdio::null()).stderr(writer.try_clone().unwrap());
    let mut program = Program::adopt(command);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(reader));
    let mut wait_for = |word: &str| loop {
        let line = lines.next().expect("it goes on").expect("a line");
        if let Some(rest) = line.strip_prefix(word) {
            return rest.trim().replace("http://", "");
        }
    };
    let admin = wait_for("admin").parse().expect("an address");
    let data = wait_for("data").parse().expect("an address");
    wait_for("ready");
    // Not read from here on, and full: the next line finds no room.
    std::io::Write::write_all(&mut writer, &[b'x'; PIPE_BYTES]).unwrap();
    for _ in 0..20 {
        let answer = ask(data, &marked("/v1/chat/completions", "s429", false));
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    }
    let metrics = get(admin, "/metrics");
    assert!(metrics.contains("\ntollgate_records_lost_total 0\n"), "{metrics}");
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    drop(lines);
}

/// `ulimit -f`: the kernel ends a process that writes beyond it, unless the process asks.
#[test]
fn an_access_log_as_large_as_the_process_may_write_costs_lines_and_no_calls() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("logs-limit");
    let log = "[log]\naccess = \"file:access.log\"\n[ledger]\nsegment_bytes = \"1MiB\"\n";
    // The ledger's files are far from it.
    let most = 4 << 20;
    std::fs::write(folder.join("access.log"), vec![b'\n'; most]).unwrap();
    let mut served = serve_in(&folder, log, &standin, "auto", &["--no-pin"]);
    let limit = Rlimit { current: Some(most as u64), maximum: Some(most as u64) };
    prlimit(Some(served.program.pid()), Resource::Fsize, limit).unwrap();
    for _ in 0..3 {
        let answer = ask(served.data, &chat(KEY, "ok"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    let lost = "tollgate_log_lines_lost_total 3";
    while !get(served.admin, "/metrics").lines().any(|line| line == lost) {}
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
}
