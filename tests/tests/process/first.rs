//! The first minute of an operator: no file, a provider in the environment, a key that is shown
//! once, lines that can be pasted.

use crate::program::{Program, ask, chat, folder, tollgate};
use loadtest::standin::{Config, Standin};
use rustix::process::Signal;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// `serve` without a file, and with nothing of this test's own environment.
fn bare(folder: &Path, variables: &[(&str, String)]) -> Command {
    let mut command = tollgate(folder, &["serve", "--no-pin"]);
    command.env_clear().env("TOLLGATE_STATE_DIR", folder.join("state"));
    command.env("TOLLGATE_LISTEN_DATA", "127.0.0.1:0").env("TOLLGATE_LISTEN_ADMIN", "127.0.0.1:0");
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    command
}

fn both(standin: SocketAddr) -> [(&'static str, String); 4] {
    [
        ("OPENAI_API_KEY", "sk-of-openai".to_owned()),
        ("OPENAI_BASE_URL", format!("http://{standin}/v1")),
        ("ANTHROPIC_API_KEY", "sk-of-anthropic".to_owned()),
        ("ANTHROPIC_BASE_URL", format!("http://{standin}")),
    ]
}

fn messages(key: &str) -> String {
    let body = "{\"model\":\"ok\",\"max_tokens\":9,\
                \"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
    format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn start(folder: &Path, standin: SocketAddr) -> (Program, SocketAddr) {
    let mut program = Program::start(bare(folder, &both(standin)));
    let data = program.err.wait_for("data").replace("http://", "");
    program.err.wait_for("ready");
    (program, data.parse().expect("an address"))
}

/// What a pipe holds on Linux, unless its size was changed.
const PIPE_BYTES: usize = 64 * 1024;

/// The node serves, and ends when it is told to; the operator is told what to do about the key.
#[test]
fn a_first_key_that_nobody_reads_holds_up_neither_calls_nor_the_end() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("first-unread");
    let (unread, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b'x'; PIPE_BYTES]).unwrap();
    let mut command = bare(&folder, &both(standin.addr()));
    command.stdout(writer).stderr(Stdio::piped());
    let mut program = Program::adopt(command);
    let data = program.err.wait_for("data").replace("http://", "").parse().unwrap();
    program.err.wait_for("key ");
    let answer = ask(data, &chat("tg-wrong", "ok"));
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    let said = program.err.wait_for_end().join("\n");
    assert!(said.contains("warning     nobody reads the standard output"), "{said}");
    drop(unread);
}

/// Whether a text stands in any file below a folder.
fn kept(folder: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("it is there").path()).any(|path| {
        let within = |bytes: Vec<u8>| bytes.windows(text.len()).any(|at| at == text.as_bytes());
        if path.is_dir() { kept(&path, text) } else { std::fs::read(&path).is_ok_and(within) }
    })
}

#[test]
fn a_first_key_is_shown_once_and_serves_what_the_environment_has() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("first");
    let (mut program, data) = start(&folder, standin.addr());
    let key = program.out.wait_for("export TOLLGATE_KEY=");
    assert!(key.starts_with("tg-") && key.len() == 35, "{key}");
    assert!(ask(data, &chat(&key, "ok")).starts_with("HTTP/1.1 200 "));
    assert!(ask(data, &messages(&key)).starts_with("HTTP/1.1 200 "));
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    // A shell takes both lines; whoever sees the output alone is told what it is.
    let [comment, _] = program.out.wait_for_end() else { panic!("more than the key") };
    assert!(comment.starts_with("# the first key of this node"), "{comment}");
    let said = program.err.wait_for_end().join("\n");
    for part in [
        "config      environment, snapshot 1",
        "provider    openai (openai) at http://127.0.0.1:",
        "provider    anthropic (anthropic) at http://127.0.0.1:",
        "keys        1\n",
        "\nstate       /",
        "/state/admin.sock\n",
        "client      Claude Code    ANTHROPIC_BASE_URL=http://127.0.0.1:",
        "ANTHROPIC_AUTH_TOKEN=$TOLLGATE_KEY claude",
        "client      OpenAI SDK     export OPENAI_BASE_URL=http://127.0.0.1:",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    for secret in [&*key, "sk-of-openai", "sk-of-anthropic"] {
        assert!(!said.contains(secret), "{said}");
        assert!(!kept(&folder, secret), "{secret} is in a file");
    }

    let (mut program, data) = start(&folder, standin.addr());
    assert!(ask(data, &chat(&key, "ok")).starts_with("HTTP/1.1 200 "), "it still holds");
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    assert!(program.out.wait_for_end().is_empty(), "it is never shown again");
    assert!(!program.err.wait_for_end().join("\n").contains(&key));
}

#[test]
fn a_first_key_that_was_revoked_is_no_reason_for_another() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("first-revoked");
    let (mut program, _) = start(&folder, standin.addr());
    let key = program.out.wait_for("export TOLLGATE_KEY=");
    let state = folder.join("state").display().to_string();
    let arguments = ["keys", "revoke", "first", "--state-dir", &*state];
    let revoked = tollgate(&folder, &arguments).output().unwrap();
    assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    let (mut program, data) = start(&folder, standin.addr());
    assert!(ask(data, &chat(&key, "ok")).starts_with("HTTP/1.1 403 "));
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
    assert!(program.out.wait_for_end().is_empty());
}

#[test]
fn a_provider_of_the_environment_that_cannot_be_called_is_told_without_its_secret() {
    let folder = folder("first-bad");
    let variables =
        [("OPENAI_API_KEY", "sk-secret".to_owned()), ("OPENAI_BASE_URL", "nowhere".to_owned())];
    let mut program = Program::start(bare(&folder, &variables));
    assert_eq!(program.wait(), Some(2));
    let said = program.err.wait_for_end().join("\n");
    assert!(said.contains("environment") && said.contains("base_url"), "{said}");
    assert!(!said.contains("sk-secret"), "{said}");
}
