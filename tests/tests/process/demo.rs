//! `demo`: the library entry and the command.

use crate::program::{Program, folder, tollgate};

/// What a person must be able to read in it.
const KEY_LINES: [&str; 20] = [
    "demo (key_1)",
    "fast → openai/gpt-4o-mini",
    "512 in, 64 out (reported)",
    "$0.0001152",
    "succeeded, status 200",
    "refused before it was sent",
    "claude-haiku-4-5 → anthropic/claude-haiku-4-5",
    "content_block_stop, message_delta, message_stop",
    "every byte is the provider's",
    "2, 1 fallback, overhead",
    "crowded: server, then openai: success",
    "× \": keep-alive\" before the first of them",
    "(the configured fall-back price)",
    "client_left, status 200",
    "charged by the provider's own count",
    "upstream_error, status 503",
    "402 ",
    "refused budget_exceeded",
    "every frame checks out",
    LAST_LINE,
];

const LAST_LINE: &str =
    "10 calls, 2 refused, 8 settled, $0.0015232 in all; every check above held.";

#[test]
fn the_library_shows_its_calls_and_holds_its_own_checks() {
    let mut said = Vec::new();
    let outcome =
        tollgate::demo::run(&mut |line: &str| said.extend(line.lines().map(str::to_owned)));
    outcome.unwrap_or_else(|failure| panic!("{failure} after {said:#?}"));
    for part in KEY_LINES {
        assert!(said.iter().any(|line| line.contains(part)), "{part} in {said:#?}");
    }
    let widest = said.iter().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}");
}

#[test]
fn the_command_ends_with_0_and_leaves_nothing_behind() {
    let folder = folder("demo");
    let mut program = Program::start(tollgate(&folder, &["demo"]));
    assert_eq!(program.wait(), Some(0));
    assert!(program.out.wait_for_end().iter().any(|line| line.contains(LAST_LINE)));
    assert!(program.err.wait_for_end().is_empty());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_reader_that_is_gone_makes_no_failure_of_it() {
    let mut command = tollgate(&folder("demo-deaf"), &["demo"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(std::process::Stdio::piped());
    let mut program = Program::adopt(command);
    assert_eq!(program.wait(), Some(0));
    assert!(program.err.wait_for_end().is_empty());
}
