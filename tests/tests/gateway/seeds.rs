//! What the simulation found, as small as it gets. The seeds themselves are in `simulate`.

use crate::{BODY, post};
use gateway_tests::scenario::{Act, Manner, Scenario, Split, Step, say, send};
use gateway_tests::transports;
use std::time::Duration;
use store::ending::{Ending, Provenance, Release, StatusClass};

/// The head of a stream whose end the connection tells.
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

const WORD: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"12345678\"}}]}\n\n";

const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}\n\n";

const BUSY: &str = "data: {\"error\":{\"message\":\"x\",\"code\":\"rate_limit_exceeded\"}}\n\n";

/// The usual call, as a stream.
fn ask() -> String {
    post("", &BODY.replace("\"messages\"", "\"stream\":true,\"messages\""))
}

/// Tells at once what one attempt brought.
const ONCE: &str = "[retry]\nattempts = 1\n";

fn of(acts: Vec<Act>, client: Vec<Step>) -> Scenario {
    Scenario { clients: vec![client], upstream: vec![Manner::once(acts)], ..Scenario::default() }
}

#[test]
fn an_error_that_comes_first_and_in_pieces_is_a_failed_attempt() {
    let splits = [1, 20, BUSY.len() - 1].map(|at| Split::At(vec![at]));
    let scenarios: Vec<_> = [Split::Whole, Split::Bytes].into_iter().chain(splits).collect();
    let scenarios = scenarios.into_iter().map(|split| {
        let acts = vec![say(HEAD), Act::Send(BUSY.into(), split.clone()), Act::Fin];
        (split, of(acts, vec![send(ask()), Step::Answer]).under(ONCE))
    });
    transports::each_of(&scenarios.collect::<Vec<_>>(), |_, outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (429, "rate_limit_exceeded"));
        assert_eq!(outcome.records[0].listed[0].class, StatusClass::Limited);
    });
}

#[test]
fn a_client_that_leaves_a_stream_has_its_answer_read_on_for_the_usage() {
    let acts = vec![
        say(HEAD),
        say(WORD),
        Act::Wait("left"),
        Act::Pause(Duration::from_millis(300)),
        say(WORD),
        say(USAGE),
        say("data: [DONE]\n\n"),
        Act::Fin,
    ];
    let client = vec![send(ask()), Step::Bytes(200), Step::Reset, Step::Signal("left")];
    transports::each(&of(acts, client), |outcome| {
        assert_eq!(outcome.counters.panics.get(), 0);
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.provenance), (Ending::ClientLeft, Provenance::Reported));
        assert_eq!((record.tokens[0], record.tokens[4]), (3, 5));
    });
}

#[test]
fn an_attempt_that_told_its_usage_and_broke_off_may_be_billed() {
    let body = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}"#;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n";
    let acts = vec![say(head), say(body), Act::Fin];
    let scenario = of(acts, vec![send(post("", BODY)), Step::Answer]).under(ONCE);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!((outcome.answer().status, record.provenance), (502, Provenance::Reported));
        let attempt = record.listed[0];
        assert_eq!((attempt.class, attempt.possibly_billed), (StatusClass::Cut, 1));
    });
}

#[test]
fn a_stream_that_fails_late_is_charged_by_the_rule_of_what_broke() {
    let acts = || vec![say(HEAD), say(WORD), say(BUSY), Act::Fin];
    for (rules, release) in [
        ("broken_unreported = \"release\"", Release::Rule),
        ("succeeded_unreported = \"release\"", Release::None),
    ] {
        let scenario = of(acts(), vec![send(ask()), Step::Answer]);
        transports::each(&scenario.under(&format!("[endings]\n{rules}\n")), |outcome| {
            outcome.assert_clean();
            let record = &outcome.records[0];
            assert_eq!((record.ending, record.release), (Ending::UpstreamError, release));
            assert_eq!(record.cost_picousd == 0, release == Release::Rule);
        });
    }
}

#[test]
fn who_left_before_an_answer_is_let_off_where_the_rule_says_so() {
    let body = BODY.replace("[]", r#"[{"role":"user","content":"12345678"}]"#);
    for (rule, release) in [("release", Release::Rule), ("charge", Release::None)] {
        let acts = vec![Act::Signal("asked"), Act::Hang];
        let client = vec![send(post("", &body)), Step::Wait("asked"), Step::Reset];
        let rules = format!("[endings]\nclient_left = \"abort\"\nleft_unreported = \"{rule}\"\n");
        transports::each(&of(acts, client).under(&rules), |outcome| {
            let record = &outcome.records[0];
            assert_eq!((record.ending, record.release), (Ending::ClientLeft, release));
            assert_eq!(record.cost_picousd == 0, release == Release::Rule);
        });
    }
}

/// Two candidates: the first one rests for longer than a client may hear nothing, and then fails.
fn after_a_heartbeat(second: Vec<Act>) -> Scenario {
    let first = vec![say(HEAD), Act::Pause(Duration::from_millis(900)), say(BUSY), Act::Fin];
    let config = "[retry]\nattempts = 2\nbackoff = \"0ms\"\n[deadlines]\nheartbeat = \"500ms\"\n";
    let upstream = vec![Manner::once(first), Manner::once(second)];
    let client = vec![send(ask()), Step::Answer];
    Scenario { clients: vec![client], upstream, ..Scenario::default() }.under(config)
}

#[test]
fn behind_a_heartbeat_an_error_is_still_what_its_status_says() {
    let body = r#"{"error":{"message":"no","code":"x"}}"#;
    let second = format!(
        "HTTP/1.1 529 Busy\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    transports::each(&after_a_heartbeat(vec![say(second)]), |outcome| {
        outcome.assert_clean();
        let text = outcome.answer().text();
        assert_eq!(text, format!(": keep-alive\n\ndata: {body}\n\n"));
        let [first, second, ..] = outcome.records[0].listed;
        assert_eq!((first.class, second.class), (StatusClass::Limited, StatusClass::Server));
    });
}

#[test]
fn behind_a_heartbeat_a_coded_stream_is_none() {
    let head = HEAD.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n");
    let scenario = after_a_heartbeat(vec![say(head), say(b"\x1f\x8b\x08\x00"), Act::Fin]);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let text = outcome.answer().text();
        // Where time is real there may be more of them.
        let told = text.trim_start_matches(": keep-alive\n\n");
        assert_eq!(told, BUSY, "the first one's words are told");
        assert!(text.len() > told.len(), "behind a heartbeat");
    });
}

#[test]
fn a_node_that_stops_asks_nobody_else_for_a_stream_that_it_has_cut() {
    let role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    let acts = vec![say(HEAD), say(role), Act::Signal("asked"), Act::Hang];
    let client = vec![send(ask()), Step::Wait("asked"), Step::Drain, Step::Answer];
    let rules = "[deadlines]\ndrain = \"500ms\"\n\
        [retry]\nattempts = 2\nbackoff = \"0ms\"\npossibly_billed = true\n";
    transports::each(&of(acts, client).under(rules), |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (503, "shutting_down"));
        assert_eq!((outcome.forwarded(), outcome.records[0].ending), (1, Ending::Shutdown));
    });
}
