//! `check`: exit codes, places, JSON, and no secret in any of it.

use crate::program::{Program, folder, tollgate};
use serde_json::Value;

const GOOD: &str = "[[provider]]\nname = \"local\"\nkind = \"openai\"\n\
    base_url = \"http://127.0.0.1:8000/v1\"\n\
    credentials = [{ name = \"main\", key = \"${TOLLGATE_TEST_CREDENTIAL}\" }]\n";

/// Exit code, output, error.
fn check(name: &str, text: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = folder(name);
    std::fs::write(folder.join("tollgate.toml"), text).unwrap();
    let mut all = vec!["check"];
    all.extend(arguments);
    let mut command = tollgate(&folder, &all);
    command.env("TOLLGATE_TEST_CREDENTIAL", "sk-secret");
    let mut program = Program::start(command);
    let code = program.wait();
    let joined = |lines: &[String]| lines.join("\n");
    (code, joined(program.out.wait_for_end()), joined(program.err.wait_for_end()))
}

#[test]
fn a_usable_file_is_told_without_its_secrets() {
    let (code, out, _) = check("check-good", GOOD, &[]);
    assert_eq!(code, Some(0));
    assert!(out.contains("local (openai) at http://127.0.0.1:8000/v1"), "{out}");
    let (code, json, err) = check("check-good-json", GOOD, &["--json", "tollgate.toml"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let read: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["usable"], true);
    assert_eq!(read["providers"][0]["name"], "local");
    assert!(!out.contains("sk-secret") && !json.contains("sk-secret"));
}

#[test]
fn every_fault_has_its_place() {
    let bad = GOOD.replace("kind", "knid");
    let (code, out, err) = check("check-bad", &bad, &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("tollgate.toml:3:1: unknown key"), "{err}");
    let (code, json, _) = check("check-bad-json", &bad, &["--json"]);
    assert_eq!(code, Some(2));
    let read: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["usable"], false);
    let errors = read["errors"].as_array().unwrap();
    let at_3 = errors.iter().find(|error| error["line"] == 3).expect("an error at its line");
    assert!(at_3["text"].as_str().unwrap().contains("knid"), "{json}");
}

#[test]
fn what_cannot_be_kept_is_refused_as_serve_would_and_nothing_is_made() {
    for (name, text, part) in [
        ("log", format!("{GOOD}[log]\naccess = \"file:logs/access.log\"\n"), "logs is not there"),
        ("state", format!("state_dir = \"tollgate.toml/state\"\n{GOOD}"), "Not a directory"),
    ] {
        let name = format!("check-kept-{name}");
        let (code, out, err) = check(&name, &text, &[]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains(part), "{err}");
        let folder = folder(&format!("{name}-serve"));
        std::fs::write(folder.join("tollgate.toml"), text).unwrap();
        let mut command = tollgate(&folder, &["serve"]);
        command.env("TOLLGATE_TEST_CREDENTIAL", "sk-secret");
        let mut program = Program::start(command);
        assert_eq!(program.wait(), Some(2));
        let said = program.err.wait_for_end().join("\n");
        assert_eq!(said.replace(&format!("{name}-serve"), &name), err);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is made");
    }
    let (code, out, err) = check("check-kept", &format!("state_dir = \"state\"\n{GOOD}"), &[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("state is not there: the first start makes it"), "{out}");
}

/// The same words, and the same exit code, as `serve` has for them.
#[test]
fn without_a_file_the_environment_is_told_as_serve_would_take_it() {
    let folder = folder("check-environment");
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = tollgate(&folder, arguments);
        command.env_clear().env("TOLLGATE_STATE_DIR", folder.join("state"));
        command.envs(variables.iter().copied());
        let output = command.output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let variables =
        [("OPENAI_API_KEY", "sk-secret"), ("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")];
    let (code, out, err) = run(&["check"], &variables);
    assert_eq!(code, Some(0), "{err}");
    for part in ["environment: usable", "openai (openai) at http://127.0.0.1:8000/v1"] {
        assert!(out.contains(part), "{part} in {out}");
    }
    assert!(!out.contains("sk-secret") && !err.contains("sk-secret"), "{out}{err}");
    assert!(!folder.join("state").exists(), "nothing is written");

    let (code, out, err) = run(&["check"], &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert_eq!((code, err), {
        let (code, _, err) = run(&["serve"], &[]);
        (code, err)
    });
    let (code, json, _) = run(&["check", "--json"], &[]);
    let read: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &read["usable"]), (Some(2), &false.into()));
    let (code, _, err) = run(&["check", "other.toml"], &variables);
    assert_eq!(code, Some(2));
    assert!(err.contains("other.toml"), "a file that was named is not left out: {err}");
}
