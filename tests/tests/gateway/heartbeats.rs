//! A call is told that it is alive: after a while without a byte, in the form its dialect's clients
//! take, between two events and nowhere else.

use crate::events::{
    CHAT, LAST_CHUNK, MESSAGES, ask, ask_messages, ask_with_usage, chunk, chunked, events, head,
};
use crate::streams::gzip;
use crate::{BODY, json, post};
use gateway_tests::corpus::{CASES, row};
use gateway_tests::outcome::{End, Outcome};
use gateway_tests::scenario::{Act, Host, Manner, Reach, Scenario, Step, say, send};
use gateway_tests::{script, transports};
use serde_json::Value;
use std::time::Duration;
use store::ending::{Ending, Provenance};

const CHAT_BEAT: &str = ": keep-alive\n\n";
const MESSAGES_BEAT: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";

fn s(seconds: u64) -> Act {
    Act::Pause(Duration::from_secs(seconds))
}

/// One client that reads its answer, over an upstream that does this.
fn over(request: &str, acts: Vec<Act>) -> Scenario {
    let client = vec![send(request), Step::Answer, Step::Fin, Step::End];
    Scenario { clients: vec![client], upstream: vec![Manner::once(acts)], ..Scenario::default() }
}

/// The events of a stream before the first that contains this, and the others.
fn parts(body: &'static str, at: &str) -> (&'static str, &'static str) {
    let whole = events(body.as_bytes());
    let before = whole.iter().take_while(|event| !String::from_utf8_lossy(event).contains(at));
    body.split_at(before.map(|event| event.len()).sum())
}

/// When the client heard something, in whole seconds and what there is beyond them.
fn times(outcome: &Outcome) -> Vec<u64> {
    outcome.clients[0].heard.iter().map(|(ms, _)| *ms).collect()
}

/// At these seconds, a timer's coarseness later at most.
fn assert_at(outcome: &Outcome, seconds: &[u64]) {
    let times = times(outcome);
    assert_eq!(times.len(), seconds.len(), "{times:?}");
    for (at, due) in times.iter().zip(seconds) {
        assert!((due * 1_000..due * 1_000 + 400).contains(at), "{times:?} for {seconds:?}");
    }
}

#[test]
fn silence_in_a_stream_is_broken_every_ten_seconds() {
    for (request, body, at, beat) in [
        (ask_with_usage(), CHAT, "finish_reason", CHAT_BEAT),
        (ask_messages(), MESSAGES, "content_block_stop", MESSAGES_BEAT),
    ] {
        let (begun, rest) = parts(body, at);
        let acts = vec![
            say(chunked()),
            say(chunk(begun)),
            s(35),
            say([chunk(rest).as_slice(), LAST_CHUNK].concat()),
        ];
        let outcome = script::run(&over(&request, acts));
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), format!("{begun}{}{rest}", beat.repeat(3)));
        assert_at(&outcome, &[0, 10, 20, 30, 35]);
        assert_eq!((outcome.counters.heartbeats.get(), outcome.endings().len()), (3, 1));
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.provenance), (Ending::Succeeded, Provenance::Reported));
    }
}

/// The same on the drivers, with a shorter interval.
#[test]
fn silence_is_broken_on_the_drivers_too() {
    let mut scenarios = Vec::new();
    for (request, body, at, beat) in [
        (ask_with_usage(), CHAT, "finish_reason", CHAT_BEAT),
        (ask_messages(), MESSAGES, "content_block_stop", MESSAGES_BEAT),
    ] {
        let (begun, rest) = parts(body, at);
        let acts = vec![
            say(chunked()),
            say(chunk(begun)),
            Act::Wait("beaten"),
            say([chunk(rest).as_slice(), LAST_CHUNK].concat()),
        ];
        let mut scenario = over(&request, acts).under("[deadlines]\nheartbeat = \"300ms\"");
        // A head, the beginning, and at least one beat with its chunk.
        scenario.clients[0].insert(1, Step::Bytes(begun.len() + 450));
        scenario.clients[0].insert(2, Step::Signal("beaten"));
        scenarios.push(((begun, beat, rest), scenario));
    }
    transports::each_of(&scenarios, |(begun, beat, rest), outcome| {
        outcome.assert_clean();
        let text = outcome.answer().text();
        let beats = text.strip_prefix(begun).and_then(|text| text.strip_suffix(rest)).unwrap();
        assert!(!beats.is_empty() && beats.replace(beat, "").is_empty(), "{beats}");
    });
}

/// Case `sse-heartbeat-boundary`: inside an event nothing is put in, however long it takes.
#[test]
fn nothing_is_put_into_an_event() {
    assert_eq!(row(CASES, "sse-heartbeat-boundary")["area"], "sse");
    let (begun, rest) = parts(MESSAGES, "content_block_stop");
    // What is certain of an event has gone to the client; the silence is inside it.
    let inside = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,";
    let end = "\"delta\":{\"type\":\"text_delta\",\"text\":\"!\"}}\n\n";
    let acts = vec![
        say(chunked()),
        say(chunk(begun)),
        say(chunk(inside)),
        s(45),
        say(chunk(end)),
        s(15),
        say([chunk(rest).as_slice(), LAST_CHUNK].concat()),
    ];
    let outcome = script::run(&over(&ask_messages(), acts));
    outcome.assert_clean();
    assert_eq!(outcome.answer().text(), format!("{begun}{inside}{end}{MESSAGES_BEAT}{rest}"));
}

/// What is held back has not been sent: a beat goes before it.
#[test]
fn a_beat_goes_before_what_is_held_back() {
    let (begun, rest) = parts(CHAT, "[DONE]");
    let (held, end) = rest.split_at(9);
    let acts = vec![
        say(chunked()),
        say(chunk(begun)),
        say(chunk(held)),
        s(15),
        say([chunk(end).as_slice(), LAST_CHUNK].concat()),
    ];
    let outcome = script::run(&over(&ask_with_usage(), acts));
    outcome.assert_clean();
    assert_eq!(outcome.answer().text(), format!("{begun}{CHAT_BEAT}{rest}"));
    // The same for the chunk of usage that is not shown.
    let (begun, rest) = parts(CHAT, "\"choices\":[],");
    let (held, end) = rest.split_at(60);
    let acts = vec![
        say(chunked()),
        say(chunk(begun)),
        say(chunk(held)),
        s(15),
        say([chunk(end).as_slice(), LAST_CHUNK].concat()),
    ];
    let outcome = script::run(&over(&ask(""), acts));
    outcome.assert_clean();
    assert_eq!(outcome.answer().text(), format!("{begun}{CHAT_BEAT}data: [DONE]\n\n"));
}

/// Bytes that nobody here can read, or that would no longer be what they are: nothing is put in.
#[test]
fn nothing_is_put_into_a_coded_stream() {
    let coded = gzip(CHAT.as_bytes());
    for coding in ["gzip", "br"] {
        let (begun, rest) = coded.split_at(coded.len() / 2);
        let fields = format!("Content-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n");
        let acts = vec![
            say(head(&fields)),
            say(chunk(begun)),
            s(45),
            say([chunk(rest).as_slice(), LAST_CHUNK].concat()),
        ];
        let outcome = script::run(&over(&ask(""), acts));
        outcome.assert_clean();
        assert_eq!(outcome.answer().body, coded);
        assert_eq!(outcome.counters.heartbeats.get(), 0);
    }
}

/// Before the upstream has answered a byte would settle the status (case `sse-heartbeat-commit`).
#[test]
fn nothing_is_said_before_the_upstream_has_answered() {
    assert_eq!(row(CASES, "sse-heartbeat-commit")["area"], "sse");
    let body = r#"{"error":{"message":"m","code":"slow_down"}}"#;
    let answer = json("429 Too Many", "Retry-After: 7\r\n", body);
    let outcome = script::run(&over(&ask(""), vec![s(40), say(answer)]));
    outcome.assert_clean();
    let answer = outcome.answer();
    assert_eq!((answer.status, answer.text().as_str()), (429, body));
    assert_eq!(answer.field("retry-after").as_deref(), Some("7"));
    assert_at(&outcome, &[40]);
    // Nor in an answer that is no stream.
    let whole = vec![s(40), say(crate::ok())];
    let outcome = script::run(&over(&post("", BODY), whole));
    outcome.assert_clean();
    assert_at(&outcome, &[40]);
}

/// Silence is counted in bytes to the client: pings that are held back do not postpone a beat. The
/// head that goes out with the first one is ours, nothing of it is the candidate's.
#[test]
fn what_is_held_back_does_not_postpone_a_beat() {
    let (begun, rest) = parts(MESSAGES, "content_block_start");
    let fields = "Transfer-Encoding: chunked\r\nX-Of-Theirs: 1\r\nrequest-id: req_1\r\n";
    let mut acts = vec![say(head(fields)), say(chunk(begun))];
    for _ in 0..5 {
        acts.extend([s(5), say(chunk(MESSAGES_BEAT))]);
    }
    acts.push(say([chunk(rest).as_slice(), LAST_CHUNK].concat()));
    let outcome = script::run(&over(&ask_messages(), acts));
    outcome.assert_clean();
    let answer = outcome.answer();
    let text = format!("{}{begun}{}{rest}", MESSAGES_BEAT.repeat(2), MESSAGES_BEAT.repeat(5));
    assert_eq!((answer.status, answer.text()), (200, text));
    assert_at(&outcome, &[10, 20, 25]);
    assert_eq!(answer.field("content-type").as_deref(), Some("text/event-stream"));
    assert_eq!(answer.field("cache-control").as_deref(), Some("no-cache, no-transform"));
    assert_eq!(answer.field("x-tollgate-attempts").as_deref(), Some("1"));
    assert_eq!((answer.count("x-of-theirs"), answer.count("x-tollgate-request-id")), (0, 1));
    let record = &outcome.records[0];
    assert_eq!((record.ending, record.provenance), (Ending::Succeeded, Provenance::Reported));
}

/// A byte order mark stands first or nowhere.
#[test]
fn a_mark_that_comes_after_a_beat_is_left_out() {
    let mark = "\u{feff}";
    let acts = vec![say(chunked()), s(15), say(chunk(format!("{mark}{CHAT}"))), say(LAST_CHUNK)];
    let outcome = script::run(&over(&ask_with_usage(), acts));
    outcome.assert_clean();
    assert_eq!(outcome.answer().text(), format!("{CHAT_BEAT}{CHAT}"));
    let acts = vec![say(chunked()), say(chunk(format!("{mark}{CHAT}"))), say(LAST_CHUNK)];
    let outcome = script::run(&over(&ask_with_usage(), acts));
    assert_eq!(outcome.answer().text(), format!("{mark}{CHAT}"));
}

/// A second provider, `b`, behind the usual one; both have the model `a`.
const TWO: &str = r#"
[[provider]]
name = "b"
kind = "openai"
base_url = "http://{1}/v1"
credentials = [{ name = "main", key = "${UPSTREAM_KEY}" }]
[[model]]
name = "a"
candidates = [{ provider = "up", priority = 1 }, { provider = "b", priority = 2 }]
[price]
"#;

fn two_hosts(first: Vec<Act>, second: Host) -> Scenario {
    let mut scenario = over(&ask_with_usage(), first);
    scenario.hosts = vec![second];
    scenario.under(&TWO.replace("[price]\n", ""))
}

/// Between the two points another candidate may still answer, and the beats go on while it is
/// awaited and while nobody is asked.
#[test]
fn beats_go_on_while_another_candidate_is_awaited() {
    let error = "data: {\"error\":{\"message\":\"busy\",\"code\":\"overloaded\"}}\n\n";
    let first = vec![say(chunked()), s(15), say(chunk(error))];
    let fields = "Retry-After: 4\r\nConnection: close\r\n";
    let second = vec![say(json("503 Busy", fields, "{}"))];
    let third = vec![s(26), say(chunked()), say(chunk(CHAT)), say(LAST_CHUNK)];
    let host = Host::open(vec![Manner::once(second), Manner::once(third)]);
    let outcome = script::run(&two_hosts(first, host).under("[retry]\nattempts = 2"));
    outcome.assert_clean();
    let answer = outcome.answer();
    let text = answer.text();
    let beats = text.strip_suffix(CHAT).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(beats.replace(CHAT_BEAT, ""), "", "nothing of the first one's");
    assert_eq!(answer.status, 200);
    // Twice 15 s of the first one, four of waiting for the second, and 26 for its answer.
    assert_eq!(beats.len(), CHAT_BEAT.len() * 6);
    assert_eq!(outcome.requests_of(0).count(), 2);
    let record = &outcome.records[0];
    assert_eq!((record.ending, record.fallbacks), (Ending::Succeeded, 1));
    let gaps: Vec<u64> = times(&outcome).windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps.iter().all(|gap| *gap <= 10_400), "{gaps:?}");
}

/// After the status point a failure can only be told in the stream.
#[test]
fn a_failure_after_a_beat_is_told_in_the_stream() {
    let busy = r#"{"error":{"message":"busy","type":"server_error","code":"overloaded"}}"#;
    let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(300 << 10));
    let lines = busy.replace(',', ",\n");
    let refused = "upstream_invalid";
    let cases: Vec<(&str, Host, &str)> = vec![
        (
            "its error",
            Host::open(vec![Manner::always(json("400 Bad", "", busy).as_bytes())]),
            "overloaded",
        ),
        (
            "an error of lines",
            Host::open(vec![Manner::always(json("400 Bad", "", &lines).as_bytes())]),
            refused,
        ),
        (
            "a long error",
            Host::open(vec![Manner::always(json("400 Bad", "", &long).as_bytes())]),
            refused,
        ),
        ("a whole answer", Host::open(vec![Manner::always(crate::ok().as_bytes())]), refused),
        ("nobody", Host::unreachable(Reach::Refused), "upstream_unreachable"),
    ];
    for (name, host, code) in cases {
        // A stream of comments is no answer, and says so only when it ends.
        let first = vec![say(chunked()), say(chunk(": wait\n\n")), s(15), say(LAST_CHUNK)];
        let outcome = script::run(&two_hosts(first, host));
        assert_eq!(outcome.clients[0].faults, Vec::<String>::new(), "{name}");
        let answer = outcome.answer();
        let text = answer.text();
        let data = text.strip_prefix(CHAT_BEAT).and_then(|text| text.strip_prefix("data: "));
        let data = data.unwrap_or_else(|| panic!("{name}: {text}"));
        let told: Value = serde_json::from_str(data.trim_end()).unwrap();
        assert_eq!((answer.status, told["error"]["code"].as_str()), (200, Some(code)), "{name}");
        assert_eq!((outcome.clients[0].end, outcome.records.len()), (End::Fin, 1));
        let record = &outcome.records[0];
        assert_eq!((record.cost_picousd, record.fallbacks, record.status), (0, 1, 200), "{name}");
    }
}

/// Whoever leaves between two beats is seen gone all the same.
#[test]
fn a_client_that_leaves_after_a_beat_is_gone() {
    let acts = vec![say(chunked()), Act::Hang];
    let mut scenario = over(&ask(""), acts);
    scenario.clients[0] = vec![
        send(ask("")),
        Step::Bytes(100),
        Step::Pause(Duration::from_secs(1)),
        Step::Reset,
        Step::Pause(Duration::from_secs(20)),
    ];
    let outcome = script::run(&scenario);
    let record = &outcome.records[0];
    assert_eq!((record.ending, record.status), (Ending::ClientLeft, 0));
    let ms = record.closed_unix_ms - record.opened_unix_ms;
    assert!((16_000..16_600).contains(&ms), "ten, one, and a drain of five seconds: {ms}");
}
