//! `serve` from a file: ready, a call, the metrics, a signal, the exit code.

use crate::program::{Program, ask, chat, connect, folder, get, tollgate};
use loadtest::standin::{Config, Standin};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// The key whose digest stands in [`configuration`].
pub(crate) const KEY: &str = "tg-example-key";

pub(crate) fn configuration(standin: SocketAddr, driver: &str) -> String {
    format!(
        r#"state_dir = "state"

[listen]
data = "127.0.0.1:0"
admin = "127.0.0.1:0"

[shards]
count = 2
driver = "{driver}"

[[provider]]
name = "standin"
kind = "openai"
base_url = "http://{standin}/v1"
credentials = [{{ name = "main", key = "file:credential" }}]
models = ["*"]

[retry]
attempts = 1

[breaker]
cooldown = "0s"

[[key]]
name = "tests"
sha256 = "25aeda2f87ab9341ed6436c2232885d8d196ad8c01718a188b8f0a15f881fcf0"
"#
    )
}

pub(crate) struct Served {
    pub(crate) program: Program,
    pub(crate) data: SocketAddr,
    pub(crate) admin: SocketAddr,
}

fn serve(name: &str, standin: &Standin, driver: &str, arguments: &[&str]) -> Served {
    serve_with(name, "", standin, driver, arguments)
}

/// With `more` behind the usual configuration.
pub(crate) fn serve_with(
    name: &str,
    more: &str,
    standin: &Standin,
    driver: &str,
    arguments: &[&str],
) -> Served {
    serve_in(&folder(name), more, standin, driver, arguments)
}

/// The same in a folder that is there.
pub(crate) fn serve_in(
    folder: &Path,
    more: &str,
    standin: &Standin,
    driver: &str,
    arguments: &[&str],
) -> Served {
    write_configuration(folder, &(configuration(standin.addr(), driver) + more));
    let mut program = Program::start(command(folder, arguments));
    let admin = program.err.wait_for("admin").replace("http://", "");
    let data = program.err.wait_for("data");
    let data = data.trim_start_matches("https://").trim_start_matches("http://").to_owned();
    program.err.wait_for("ready");
    let parse = |text: &str| text.parse().expect("an address");
    Served { data: parse(&data), admin: parse(&admin), program }
}

/// The usual configuration with `more` behind it, for whoever starts a program in another way.
pub(crate) fn write_usual(folder: &Path, more: &str, standin: &Standin) {
    write_configuration(folder, &(configuration(standin.addr(), "auto") + more));
}

pub(crate) fn write_configuration(folder: &Path, text: &str) {
    std::fs::write(folder.join("tollgate.toml"), text).expect("it can be written");
    std::fs::write(folder.join("credential"), "sk-secret-of-the-provider\n").expect("likewise");
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut all = vec!["serve"];
    all.extend(arguments);
    tollgate(folder, &all)
}

#[test]
fn a_call_is_served_counted_and_printed_and_a_signal_drains() {
    let standin = Standin::start(Config::default()).unwrap();
    for (driver, signal) in [("auto", Signal::TERM), ("epoll", Signal::INT)] {
        let name = format!("serve-{driver}");
        let mut served = serve(&name, &standin, driver, &["--print-records", "--no-pin"]);
        let answer = ask(served.data, &chat(KEY, "ok"));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let refused = ask(served.data, &chat("tg-nobody", "ok"));
        assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");

        let metrics = get(served.admin, "/metrics");
        for line in [
            "tollgate_requests_total{route=\"chat_completions\",class=\"2xx\"} 1",
            "tollgate_refusals_total{code=\"invalid_api_key\"} 1",
            "tollgate_attempts_total 1",
            "tollgate_records_total 1",
            "tollgate_records_lost_total 0",
            "tollgate_panics_total 0",
            "tollgate_shards 2",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
        }
        for path in ["/healthz", "/readyz", "/startupz"] {
            for port in [served.admin, served.data] {
                assert!(get(port, path).starts_with("HTTP/1.1 200 "), "{path}");
            }
        }

        served.program.signal(signal);
        assert_eq!(served.program.wait(), Some(0));
        let lines = served.program.out.wait_for_end();
        assert_eq!(lines.len(), 1, "{lines:#?}");
        let record: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(record["key"], "tests");
        assert_eq!(record["ending"], "succeeded");
        assert_eq!(record["tokens"]["input_fresh"], 512);
        assert_eq!(record["tokens"]["output"], 64);
        assert!(answer.contains(record["request_id"].as_str().unwrap()), "{answer}");
        let said = served.program.err.wait_for_end().join("\n");
        assert!(said.contains("provider    standin (openai) at http://127.0.0.1:"), "{said}");
        assert!(said.contains("keys        1\n"), "{said}");
        assert!(said.contains("descriptors "), "{said}");
        assert!(!said.contains("sk-secret"), "{said}");
        let expected = if driver == "epoll" { "0, driver epoll" } else { "0, driver " };
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_call_under_way_ends_before_the_process_does() {
    let standin = Standin::start(Config::default()).unwrap();
    let mut served = serve("serve-drain", &standin, "auto", &["--no-pin"]);
    let mut client = connect(served.data);
    client.write_all(chat(KEY, "slow-700").as_bytes()).unwrap();
    wait_for_attempt(&standin, &served);
    served.program.signal(Signal::TERM);
    served.program.err.wait_for("draining");
    assert!(get(served.admin, "/readyz").starts_with("HTTP/1.1 503 "));
    assert!(get(served.admin, "/healthz").starts_with("HTTP/1.1 200 "));
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(served.program.wait(), Some(0));
}

#[test]
fn a_hangup_without_certificates_is_told_and_ends_no_call() {
    let standin = Standin::start(Config::default()).unwrap();
    let mut served = serve("serve-hangup", &standin, "auto", &["--no-pin"]);
    let mut client = connect(served.data);
    client.write_all(chat(KEY, "hang").as_bytes()).unwrap();
    wait_for_attempt(&standin, &served);
    let ignored = "SIGHUP: there is no certificate to read again";
    served.program.signal(Signal::HUP);
    assert_eq!(served.program.err.wait_for("ignored"), ignored);
    assert!(get(served.data, "/readyz").starts_with("HTTP/1.1 200 "));
    served.program.signal(Signal::TERM);
    served.program.err.wait_for("draining");
    served.program.signal(Signal::HUP);
    assert_eq!(served.program.err.wait_for("ignored"), ignored, "while it drains too");
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(3));
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("shutting_down"), "the second of the others has cut it: {answer}");
}

#[test]
fn a_drain_ends_with_its_time_and_says_what_was_cut() {
    let standin = Standin::start(Config::default()).unwrap();
    let short = "[deadlines]\ndrain = \"100ms\"\n";
    let mut served = serve_with("serve-drain-end", short, &standin, "auto", &["--no-pin"]);
    let mut client = connect(served.data);
    client.write_all(chat(KEY, "hang").as_bytes()).unwrap();
    wait_for_attempt(&standin, &served);
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(3));
    assert!(served.program.err.wait_for_end().iter().any(|line| line.contains("are cut")));
}

#[test]
fn a_host_without_an_address_is_told_and_the_rest_is_served() {
    let standin = Standin::start(Config::default()).unwrap();
    let lost = "[[provider]]\nname = \"lost\"\nkind = \"openai\"\n\
        base_url = \"http://no-such-host.invalid/v1\"\n\
        credentials = [{ name = \"main\", key = \"file:credential\" }]\n";
    let served = serve_with("serve-lost", lost, &standin, "auto", &["--no-pin"]);
    let said = served.program.err.seen();
    let warned = |line: &String| line.starts_with("warning     lost: no address of no-such-host");
    assert!(said.iter().any(warned), "{said:#?}");
    assert!(ask(served.data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 "));
    assert!(ask(served.data, &chat(KEY, "lost/ok")).starts_with("HTTP/1.1 502 "));
}

#[test]
fn a_second_signal_stops_at_once_and_says_so() {
    let standin = Standin::start(Config::default()).unwrap();
    let mut served = serve("serve-cut", &standin, "auto", &["--no-pin"]);
    let mut client = connect(served.data);
    client.write_all(chat(KEY, "hang").as_bytes()).unwrap();
    wait_for_attempt(&standin, &served);
    served.program.signal(Signal::TERM);
    served.program.err.wait_for("draining");
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(3));
}

/// Until the provider has the call: asked of the metrics, which change without a wait of ours.
pub(crate) fn wait_for_attempt(standin: &Standin, served: &Served) {
    let begun = |metrics: &str| metrics.contains("\ntollgate_attempts_total 1\n");
    while !begun(&get(served.admin, "/metrics")) {
        assert_eq!(standin.counts().whole, 0, "it is answered already");
    }
    // An attempt begins before it has a connection; now the provider has it.
    while standin.tally().is_empty() {}
}

#[test]
fn what_cannot_be_served_is_told_and_nothing_is_started() {
    let standin = Standin::start(Config::default()).unwrap();
    let good = configuration(standin.addr(), "auto");
    for (name, text, arguments, code, part) in [
        ("bad-key", good.replace("count", "cuont"), &[][..], 2, "tollgate.toml:8:1: unknown key"),
        ("no-file", String::new(), &["absent.toml"], 2, "absent.toml: cannot be read"),
        ("bad-flag", good.clone(), &["--print-record"], 2, "--print-records"),
        (
            "admin-taken",
            good.replace("admin = \"127.0.0.1:0\"", &format!("admin = \"{}\"", standin.addr())),
            &[],
            1,
            "in use",
        ),
    ] {
        let folder = folder(&format!("serve-{name}"));
        write_configuration(&folder, &text);
        let mut program = Program::start(command(&folder, arguments));
        assert_eq!(program.wait(), Some(code), "{name}");
        let said = program.err.wait_for_end().join("\n");
        assert!(said.contains(part), "{name}: {said}");
        assert!(program.out.wait_for_end().is_empty(), "{name}");
    }
}

#[test]
fn a_second_node_on_the_data_port_is_refused_until_the_first_has_ended() {
    let standin = Standin::start(Config::default()).unwrap();
    let mut first = serve("serve-port-first", &standin, "auto", &["--no-pin"]);
    let same = format!("data = \"{}\"", first.data);
    let text = configuration(standin.addr(), "auto").replace("data = \"127.0.0.1:0\"", &same);
    let folder = folder("serve-port-second");
    write_configuration(&folder, &text);
    let mut second = Program::start(command(&folder, &["--no-pin"]));
    assert_eq!(second.wait(), Some(1));
    let said = second.err.wait_for_end().join("\n");
    assert!(said.contains(&format!("data {}: in use", first.data)), "{said}");

    // A call whose end the node has spoken first; the kernel remembers it for a minute.
    let mut client = connect(first.data);
    client.write_all(chat(KEY, "hang").as_bytes()).unwrap();
    wait_for_attempt(&standin, &first);
    assert!(ask(first.data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 "));
    first.program.signal(Signal::KILL);
    assert_eq!(first.program.wait(), None);
    let mut next = Program::start(command(&folder, &["--no-pin"]));
    next.err.wait_for("ready");
    assert!(ask(first.data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 "));

    // Draining, with a call under way: the port is free, and the call is not given up.
    let mut client = connect(first.data);
    client.write_all(chat(KEY, "hang").as_bytes()).unwrap();
    while standin.tally().iter().filter(|entry| entry.model == "hang").count() < 2 {}
    next.signal(Signal::TERM);
    next.err.wait_for("draining");
    while std::net::TcpStream::connect(first.data).is_ok() {}
    let other = crate::program::folder("serve-port-third");
    write_configuration(&other, &text);
    let mut third = Program::start(command(&other, &["--no-pin"]));
    third.err.wait_for("ready");
    assert!(ask(first.data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 "));
    next.signal(Signal::TERM);
    assert_eq!(next.wait(), Some(3));
}

#[test]
fn with_no_file_and_no_provider_it_points_to_the_demo() {
    let mut bare = command(&folder("serve-nothing"), &[]);
    // A provider in the environment of whoever runs this is one.
    bare.env_clear();
    let mut program = Program::start(bare);
    assert_eq!(program.wait(), Some(2));
    let said = program.err.wait_for_end().join("\n");
    assert!(said.contains("tollgate demo") && said.contains("docs/"), "{said}");
}

#[test]
fn a_reader_of_records_that_is_gone_stops_nothing() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("serve-deaf");
    write_configuration(&folder, &configuration(standin.addr(), "auto"));
    let mut command = command(&folder, &["--print-records", "--no-pin"]);
    // The reading end is closed at once: the first record meets a broken pipe.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(std::process::Stdio::piped());
    let mut program = Program::adopt(command);
    let data = program.err.wait_for("data").replace("http://", "").parse().unwrap();
    for _ in 0..2 {
        assert!(ask(data, &chat(KEY, "ok")).starts_with("HTTP/1.1 200 "));
    }
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
}
