//! How streams end, and what each end costs: the table of DESIGN §5.6, case by case.
//!
//! A broken upstream never becomes a clean end: between two events the client is told in its
//! dialect, inside one the body is broken off.

use crate::events::{
    CHAT, CHAT_COST, Framing, LAST_CHUNK, MESSAGES, MESSAGES_COST, ask, ask_messages,
    ask_with_usage, chunk, chunked, events, framed, head,
};
use crate::{BODY, COMPLETION, call, ok, post};
use gateway_tests::corpus::{CASES, OWN, bytes, row, variants};
use gateway_tests::outcome::{ClientSaw, End};
use gateway_tests::scenario::{Act, Manner, Scenario, Split, Step, say, send};
use gateway_tests::{script, transports};
use serde_json::Value;
use std::time::Duration;
use store::ending::{Ending, Provenance, Release, StatusClass};
use store::record::Settled;

/// A client that reads to the end of its connection, over an upstream that does this.
fn to_the_end(request: &str, acts: Vec<Act>) -> Scenario {
    let client = vec![send(request), Step::End];
    Scenario { clients: vec![client], upstream: vec![Manner::once(acts)], ..Scenario::default() }
}

/// The same with one answer read.
fn one_answer(request: &str, acts: Vec<Act>) -> Scenario {
    let client = vec![send(request), Step::Answer, Step::End];
    Scenario { clients: vec![client], upstream: vec![Manner::once(acts)], ..Scenario::default() }
}

/// The events of a stream up to the first that contains this.
fn until(body: &str, at: &str) -> String {
    let whole = events(body.as_bytes());
    let before = whole.iter().take_while(|event| !String::from_utf8_lossy(event).contains(at));
    String::from_utf8(before.copied().collect::<Vec<_>>().concat()).unwrap()
}

/// Each dialect's request, its events up to the end of its content, and what they are charged:
/// the input that was noted, and the text.
fn cut_short() -> [(&'static str, String, String, u64); 2] {
    [
        // No input, one token of text.
        ("chat", ask(""), until(CHAT, "finish_reason"), 100),
        // Three tokens of input, one of text.
        ("messages", ask_messages(), until(MESSAGES, "content_block_stop"), 103_000),
    ]
}

/// An error of ours as the last event of a stream, and the code or type in it.
fn told(dialect: &str, text: &str) -> String {
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    let data = last.split("data: ").nth(1).unwrap_or_else(|| panic!("{last}"));
    let data: Value = serde_json::from_str(data).unwrap_or_else(|why| panic!("{why}: {data}"));
    assert_eq!(last.starts_with("event: error\n"), dialect == "messages", "{last}");
    let name = if dialect == "messages" { "type" } else { "code" };
    data["error"][name].as_str().unwrap().to_owned()
}

/// The dialect's name for a cut.
fn cut(dialect: &str) -> &'static str {
    if dialect == "messages" { "api_error" } else { "upstream_cut" }
}

/// Pieces of a stream in chunks.
fn pieces(parts: &[&str]) -> Act {
    let mut out = chunked().into_bytes();
    parts.iter().for_each(|part| out.extend(chunk(part)));
    say(out)
}

/// Time for what was sent to be passed on, before a reset would overtake it.
fn taken() -> Act {
    Act::Pause(Duration::from_millis(150))
}

#[test]
fn a_break_between_events_is_told_in_the_dialect_and_ends_the_connection() {
    let mut scenarios = Vec::new();
    for (dialect, request, body, cost) in cut_short() {
        let short = head(&format!("Content-Length: {}\r\n", body.len() + 50)) + &body;
        let ways: Vec<(&str, Vec<Act>)> = vec![
            ("ends without a last chunk", vec![pieces(&[&body]), Act::Fin]),
            ("is reset", vec![pieces(&[&body]), taken(), Act::Reset]),
            ("ends cleanly", vec![pieces(&[&body]), say(LAST_CHUNK)]),
            ("is short of its length", vec![say(short), Act::Fin]),
            ("ends with the connection", vec![say(head("") + &body), Act::Fin]),
            ("breaks its framing", vec![pieces(&[&body]), taken(), say("zz\r\n"), Act::Hang]),
        ];
        for (way, acts) in ways {
            for minor in [0, 1] {
                let request = request.replacen("HTTP/1.1", &format!("HTTP/1.{minor}"), 1);
                let name = (dialect, way, minor, body.clone(), cost);
                scenarios.push((name, one_answer(&request, acts.clone())));
            }
        }
    }
    transports::each_of(&scenarios, |(dialect, _, _, body, cost), outcome| {
        outcome.assert_clean();
        let text = outcome.answer().text();
        let error = text.strip_prefix(body.as_str()).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(
            (told(dialect, error).as_str(), outcome.clients[0].end),
            (cut(dialect), End::Fin)
        );
        assert!(!text.contains("[DONE]") && !text.contains("message_stop"), "{text}");
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.status), (Ending::UpstreamCut, 200));
        assert_eq!((record.provenance, record.cost_picousd), (Provenance::Estimated, *cost));
        assert_eq!(
            (record.attempts, outcome.counters.attempts.get()),
            (1, 1),
            "nothing is replayed"
        );
        assert_ne!(outcome.upstream[0].end, End::Open);
    });
}

#[test]
fn a_break_inside_an_event_breaks_the_body_off() {
    let mut scenarios = Vec::new();
    for (dialect, request, body, _) in cut_short() {
        // What is certain of the event has been passed on.
        let begun = match dialect {
            "chat" => "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"more and mo",
            _ => concat!(
                "event: content_block_delta\n",
                "data: {\"type\":\"content_block_delta\",\"delta\":{\"te"
            ),
        };
        for (way, end) in [("ends", Act::Fin), ("is reset", Act::Reset)] {
            for minor in [0, 1] {
                let request = request.replacen("HTTP/1.1", &format!("HTTP/1.{minor}"), 1);
                let acts = vec![pieces(&[&body, begun]), taken(), end.clone()];
                let name = (minor, way, begun, body.clone());
                scenarios.push((name, to_the_end(&request, acts)));
            }
        }
    }
    transports::each_of(&scenarios, |(minor, _, begun, _), outcome| {
        let client = &outcome.clients[0];
        assert_eq!(client.faults, Vec::<String>::new());
        let text = String::from_utf8_lossy(&client.surplus);
        assert!(text.contains(begun), "{text}");
        assert!(!text.contains("error") && !text.ends_with("\r\n0\r\n\r\n"), "{text}");
        // Where only the end of the connection delimits, a reset says that it is not the end.
        assert_eq!(client.end, if *minor == 0 { End::Reset } else { End::Fin });
        assert_eq!(outcome.endings(), ["upstream_cut"]);
    });
}

/// What may still be the terminator is held back: when the stream breaks in it, the client has
/// whole events only, and can be told.
#[test]
fn a_break_in_what_is_held_back_is_told_between_events() {
    let mut scenarios = Vec::new();
    for (dialect, request, body, _) in cut_short() {
        let begun =
            if dialect == "chat" { "data: [DO" } else { "event: message_stop\ndata: {\"ty" };
        let acts = vec![pieces(&[&body, begun]), taken(), Act::Reset];
        scenarios.push(((dialect, body), one_answer(&request, acts)));
    }
    transports::each_of(&scenarios, |(dialect, body), outcome| {
        outcome.assert_clean();
        let text = outcome.answer().text();
        let error = text.strip_prefix(body.as_str()).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(told(dialect, error), cut(dialect));
        assert!(!text.contains("[DO") && !text.contains("message_stop"), "{text}");
    });
}

/// Case `life-no-done-ok`, and an end of the connection instead of a last chunk.
#[test]
fn a_reason_to_finish_or_a_terminator_is_an_end() {
    let mut scenarios = Vec::new();
    for (nth, body) in variants(&row(CASES, "life-no-done-ok")).into_iter().enumerate() {
        let body = String::from_utf8(body).unwrap();
        let request = if nth == 1 { ask_messages() } else { ask("") };
        for (framing, fin) in
            [(Framing::Chunked, false), (Framing::Length, false), (Framing::Close, true)]
        {
            let mut acts = vec![say(framed(framing, body.as_bytes()))];
            acts.extend(fin.then_some(Act::Fin));
            let mut scenario = one_answer(&request, acts);
            scenario.clients[0].insert(2, Step::Fin);
            scenarios.push((body.clone(), scenario));
        }
    }
    assert_eq!(scenarios.len(), 9);
    transports::each_of(&scenarios, |body, outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().text(), outcome.endings()), (body.clone(), succeeded()));
        assert!(!outcome.answer().closes());
    });
}

fn succeeded() -> Vec<String> {
    vec!["succeeded".to_owned()]
}

/// Case `sse-late-rst`: what comes of the upstream after the end does not matter, and the client's
/// connection goes on. The upstream's does not.
#[test]
fn nothing_that_follows_a_terminator_matters() {
    assert_eq!(row(CASES, "sse-late-rst")["expect"]["retry"], "none");
    let mut scenarios = Vec::new();
    for (request, body, cost) in
        [(ask_with_usage(), CHAT, CHAT_COST), (ask_messages(), MESSAGES, MESSAGES_COST)]
    {
        for (way, end) in [
            ("reset", Act::Reset),
            ("end", Act::Fin),
            ("nothing", Act::Hang),
            ("zz", say("zz\r\n")),
        ] {
            let acts = vec![pieces(&[body]), taken(), end];
            let client = vec![
                send(&request),
                Step::Answer,
                send(post("", BODY)),
                Step::Answer,
                Step::Fin,
                Step::End,
            ];
            let upstream = vec![Manner::once(acts), Manner::always(ok().as_bytes())];
            let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
            scenarios.push(((body, way, cost), scenario));
        }
    }
    transports::each_of(&scenarios, |(body, way, cost), outcome| {
        outcome.assert_clean();
        let [stream, whole] = &outcome.clients[0].answers[..] else { panic!("{outcome:?}") };
        assert_eq!((stream.text().as_str(), whole.text().as_str()), (*body, COMPLETION));
        assert_eq!(outcome.endings(), ["succeeded", "succeeded"]);
        assert_eq!((outcome.records[0].cost_picousd, outcome.upstream.len()), (*cost, 2));
        if let Some(inside) = outcome.inside {
            let most = if *way == "nothing" { 1_500 } else { 500 };
            assert!(inside.clients_ms < most, "{way}: {} ms", inside.clients_ms);
        }
    });
}

/// Case `life-mid-error`: after content an error is the answer's own: it passes, nobody else is
/// asked, and what was used is charged.
#[test]
fn an_error_after_content_passes_and_is_charged() {
    let body = String::from_utf8(bytes(&row(CASES, "life-mid-error"))).unwrap();
    let chat =
        until(CHAT, "finish_reason") + "data: {\"error\":{\"message\":\"x\",\"code\":502}}\n\n";
    let mut scenarios = Vec::new();
    for (request, body, tokens, cost) in [
        (ask_messages(), body, [50, 1], 150_000),
        (ask(""), chat.clone(), [0, 1], 100),
        (ask(""), chat + "data: [DONE]\n\n", [0, 1], 100),
    ] {
        for (way, end) in [("ends", say(LAST_CHUNK)), ("is cut", Act::Reset), ("fin", Act::Fin)] {
            let mut scenario = one_answer(&request, vec![pieces(&[&body]), taken(), end]);
            scenario.clients[0].insert(2, Step::Fin);
            scenario.upstream.push(Manner::always(ok().as_bytes()));
            scenarios.push(((way, body.clone(), tokens, cost), scenario));
        }
    }
    transports::each_of(&scenarios, |(_, body, tokens, cost), outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), *body);
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.status), (Ending::UpstreamError, 200));
        assert_eq!([record.tokens[0], record.tokens[4]], *tokens);
        assert_eq!((record.provenance, record.cost_picousd), (Provenance::Estimated, *cost));
        assert_eq!(outcome.forwarded(), 1, "nothing is replayed");
    });
}

#[test]
fn silence_is_told_as_what_it_is() {
    let mut scenarios = Vec::new();
    for (dialect, request, body, cost) in cut_short() {
        let acts = vec![pieces(&[&body]), Act::Hang];
        let scenario = one_answer(&request, acts).under("[deadlines]\nbetween_bytes = \"300ms\"");
        scenarios.push(((dialect, body, cost), scenario));
    }
    transports::each_of(&scenarios, |(dialect, body, cost), outcome| {
        outcome.assert_clean();
        let text = outcome.answer().text();
        let error = text.strip_prefix(body.as_str()).unwrap_or_else(|| panic!("{text}"));
        let code = if *dialect == "messages" { "api_error" } else { "upstream_timeout" };
        assert_eq!(told(dialect, error), code);
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.cost_picousd), (Ending::Deadline, *cost));
    });
}

/// Pings are bytes: an upstream that sends them is not silent.
#[test]
fn an_upstream_that_pings_is_not_silent() {
    let mut acts = vec![pieces(&[&until(MESSAGES, "content_block_stop")])];
    for _ in 0..8 {
        acts.push(Act::Pause(Duration::from_millis(200)));
        acts.push(say(chunk("event: ping\ndata: {\"type\": \"ping\"}\n\n")));
    }
    acts.push(say(chunk(&MESSAGES[until(MESSAGES, "content_block_stop").len()..])));
    acts.push(say(LAST_CHUNK));
    let mut scenario = one_answer(&ask_messages(), acts);
    scenario.clients[0].insert(2, Step::Fin);
    transports::each(&scenario.under("[deadlines]\nbetween_bytes = \"500ms\""), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text().matches("event: ping").count(), 9);
        assert_eq!(outcome.endings(), ["succeeded"]);
    });
}

/// Case `life-slow-reader`: a client that takes nothing holds the upstream up, not the memory; then
/// it is let go.
#[test]
fn a_client_that_takes_nothing_holds_the_upstream_up_and_is_let_go() {
    const ALL: usize = 50 << 20;
    assert_eq!(row(CASES, "life-slow-reader")["area"], "stream-life");
    let event = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(60 << 10)
    );
    let body = chunk(event).repeat(ALL >> 16);
    let bytes = [chunked().into_bytes(), body].concat();
    let cuts = (0..bytes.len()).step_by(16 << 10).skip(1).collect();
    let acts = vec![Act::Send(bytes, Split::At(cuts)), Act::Hang];
    let client = vec![
        send(ask("")),
        Step::Bytes(1 << 10),
        Step::Pause(Duration::from_millis(2_500)),
        Step::End,
    ];
    let upstream = vec![Manner::once(acts)];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() }
        .under("[deadlines]\nwrite_stall = \"300ms\"");
    transports::each(&scenario, |outcome| {
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.provenance), (Ending::WriteStall, Provenance::Estimated));
        assert_ne!(outcome.upstream[0].end, End::Open, "the upstream is let go");
        assert!(outcome.clients[0].surplus.len() < ALL / 2);
        assert_eq!(outcome.counters.connections_open.get(), 0);
        if outcome.inside.is_some() {
            // What two links and our two buffers hold.
            let taken = outcome.upstream[0].sent;
            assert!(taken < 1 << 20, "{taken} bytes were taken of the upstream");
        }
    });
}

/// Case `life-halfclose`: who only ends its side still gets all of the stream.
#[test]
fn a_half_closed_client_gets_its_stream() {
    assert_eq!(row(CASES, "life-halfclose")["area"], "stream-life");
    let body = until(CHAT, "finish_reason");
    let acts = vec![
        pieces(&[&body]),
        Act::Wait("ended"),
        Act::Pause(Duration::from_millis(400)),
        say(chunk(&CHAT[body.len()..])),
        say(LAST_CHUNK),
    ];
    let client =
        vec![send(ask_with_usage()), Step::Fin, Step::Signal("ended"), Step::Answer, Step::End];
    let upstream = vec![Manner::once(acts)];
    transports::each(
        &Scenario { clients: vec![client], upstream, ..Scenario::default() },
        |outcome| {
            outcome.assert_clean();
            assert_eq!((outcome.answer().text(), outcome.endings()), (CHAT.into(), succeeded()));
        },
    );
}

/// A client that resets its connection behind its third event, over an upstream that goes on with
/// `rest`, under these endings.
fn leaving(rest: Vec<Act>, endings: &str) -> Scenario {
    let begun = until(CHAT, "finish_reason");
    let mut acts = vec![pieces(&[&begun]), Act::Wait("left")];
    acts.extend(rest);
    let client = vec![
        send(ask("")),
        Step::Bytes(begun.len()),
        Step::Reset,
        Step::Signal("left"),
        Step::Pause(Duration::from_millis(300)),
    ];
    let upstream = vec![Manner::once(acts)];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
    scenario.under(endings)
}

fn rest_of_chat() -> Vec<u8> {
    [chunk(&CHAT[until(CHAT, "finish_reason").len()..]).as_slice(), LAST_CHUNK].concat()
}

/// Case `life-client-gone`. The default reads on for the usage: the client's place is given back
/// at once, the upstream connection is of use again, and the price is what was reported.
#[test]
fn an_answer_whose_client_left_is_read_on_for_its_usage() {
    assert_eq!(row(CASES, "life-client-gone")["area"], "stream-life");
    let rest = vec![Act::Pause(Duration::from_millis(400)), say(rest_of_chat())];
    let drains = [
        "",
        "[endings]\nclient_left = \"drain\"",
        "[endings]\nclient_left = \"abort\"\nchat_completions = { client_left = \"drain_short\" }",
    ];
    let scenarios = drains.map(|endings| (endings, leaving(rest.clone(), endings)));
    transports::each_of(&scenarios, |_, outcome| {
        assert_eq!(outcome.clients[0].faults, Vec::<String>::new());
        let [record] = &outcome.records[..] else { panic!("{:?}", outcome.records) };
        assert_eq!((record.ending, record.cost_picousd), (Ending::ClientLeft, CHAT_COST));
        assert_eq!(record.provenance, Provenance::Reported);
        assert_eq!((outcome.counters.drains.get(), outcome.counters.panics.get()), (1, 0));
        if let Some(inside) = outcome.inside {
            assert_eq!((inside.pooled, inside.allowance_left), (1, 8 * (32 << 20)));
        }
    });
}

/// How long an exchange took whose client left at once, and its record.
fn drained(rest: Vec<Act>, endings: &str) -> (u64, Settled) {
    let mut scenario = leaving(rest, endings);
    scenario.clients[0].push(Step::Pause(Duration::from_secs(700)));
    let outcome = script::run(&scenario);
    assert_eq!(outcome.clients[0].faults, Vec::<String>::new());
    assert_eq!(outcome.counters.panics.get(), 0);
    let record = outcome.records[0];
    assert_eq!(record.ending, Ending::ClientLeft);
    (record.closed_unix_ms - record.opened_unix_ms, record)
}

#[test]
fn a_drain_has_its_bounds_in_time_and_bytes() {
    let within = |ms: u64, about: u64| (about..about + 400).contains(&ms);
    let drip = |ms: u64, count: usize| {
        let event = chunk("data: {\"choices\":[{\"delta\":{\"content\":\"yyyy\"}}]}\n\n");
        let one = [Act::Pause(Duration::from_millis(ms)), say(event)];
        let mut rest: Vec<Act> = (0..count).flat_map(|_| one.clone()).collect();
        rest.push(Act::Hang);
        rest
    };
    // Time: five seconds, or what is configured; what came meanwhile counts.
    let (ms, record) = drained(drip(1_100, 20), "");
    assert!(within(ms, 5_000), "{ms}");
    assert_eq!((record.provenance, record.tokens[4]), (Provenance::Estimated, 5));
    let (ms, record) = drained(vec![Act::Hang], "[endings]\ndrain_time = \"1s\"");
    assert!(within(ms, 1_000), "{ms}");
    assert_eq!((record.cost_picousd, record.provenance), (100, Provenance::Estimated));
    // Bytes.
    let flood = |bytes: usize| {
        let event = chunk(format!("data: {{\"x\":\"{}\"}}\n\n", "x".repeat(1_000)));
        vec![say(event.repeat(bytes / 1_000)), say(rest_of_chat())]
    };
    let (_, record) = drained(flood(200_000), "");
    assert_eq!((record.cost_picousd, record.provenance), (CHAT_COST, Provenance::Reported));
    let (ms, record) = drained(flood(300_000), "");
    assert!(ms < 500, "{ms}");
    assert_eq!(record.provenance, Provenance::Estimated);
    let (_, record) = drained(flood(30_000), "[endings]\ndrain_bytes = \"20KiB\"");
    assert_eq!(record.provenance, Provenance::Estimated);
    // To the end: as long as it takes, but not for ever.
    let mut slow = drip(10_000, 12);
    slow.pop();
    slow.push(say(rest_of_chat()));
    let (_, record) = drained(slow, "[endings]\nclient_left = \"drain\"");
    assert_eq!((record.cost_picousd, record.provenance), (CHAT_COST, Provenance::Reported));
    let (ms, record) = drained(drip(10_000, 90), "[endings]\nclient_left = \"drain\"");
    assert!(within(ms, 600_000), "{ms}");
    assert_eq!(record.provenance, Provenance::Estimated);
    // Not at all.
    let (ms, record) = drained(vec![Act::Hang], "[endings]\nclient_left = \"abort\"");
    assert!(ms < 1_000, "{ms}");
    assert_eq!((record.cost_picousd, record.provenance), (100, Provenance::Estimated));
}

/// A fleet that is stopped leaves all at once: so many are read on, the others are not.
#[test]
fn not_more_than_so_many_answers_are_read_on() {
    const DRAINS: usize = 256;
    let begun = until(CHAT, "finish_reason");
    let mut clients = vec![
        vec![
            send(ask("")),
            Step::Bytes(begun.len()),
            Step::Wait("go"),
            Step::Reset,
            Step::Pause(Duration::from_secs(8)),
        ];
        DRAINS + 10
    ];
    clients.push(vec![Step::Pause(Duration::from_secs(1)), Step::Signal("go")]);
    let acts = vec![pieces(&[&begun]), Act::Hang];
    let outcome = script::run(&Scenario {
        clients,
        upstream: vec![Manner::once(acts)],
        ..Scenario::default()
    });
    let early = |upstream: &&gateway_tests::outcome::UpstreamSaw| {
        upstream.ended_ms.is_some_and(|ms| ms < 2_000)
    };
    assert_eq!(outcome.counters.drains.get(), DRAINS as u64);
    assert_eq!(outcome.upstream.iter().filter(early).count(), 10);
    assert!(outcome.records.iter().all(|record| record.ending == Ending::ClientLeft));
    assert!(outcome.records.iter().all(|record| record.cost_picousd == 100));
}

/// Where the operator says so, what is not reported is not charged: each ending by its own rule.
#[test]
fn what_is_not_reported_is_charged_by_the_rule_of_its_ending() {
    let unreported = CHAT.replace(
        "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,\
         \"total_tokens\":3}}\n\n",
        "",
    );
    assert!(!unreported.contains("usage"));
    assert_eq!(row(CASES, "use-missing")["expect"]["budget"], "the estimate is charged");
    let begun = until(CHAT, "finish_reason");
    let good = || vec![pieces(&[&unreported]), say(LAST_CHUNK)];
    let broken = || vec![pieces(&[&begun]), say(LAST_CHUNK)];
    let rule = |name: &str| format!("[endings]\n{name} = \"release\"");
    let ended = |acts: Vec<Act>, config: &str| {
        let mut scenario = one_answer(&ask(""), acts).under(config);
        scenario.clients[0].insert(2, Step::Fin);
        script::run(&scenario)
    };
    let rules = ["succeeded_unreported", "broken_unreported", "left_unreported"];
    for (nth, name) in rules.iter().enumerate() {
        let config = rule(name);
        let outcomes = [
            ended(good(), &config),
            ended(broken(), &config),
            script::run(&leaving(vec![Act::Fin], &config)),
        ];
        for (at, outcome) in outcomes.iter().enumerate() {
            let record = &outcome.records[0];
            let charged = if at == nth { (0, Release::Rule) } else { (100, Release::None) };
            assert_eq!((record.cost_picousd, record.release), charged, "{name} {at}");
        }
        let endings = outcomes.map(|outcome| outcome.records[0].ending);
        assert_eq!(endings, [Ending::Succeeded, Ending::UpstreamCut, Ending::ClientLeft]);
    }
    // What is reported is charged whatever the rules say.
    let all = "[endings]\nsucceeded_unreported = \"release\"\nbroken_unreported = \"release\"\n\
               left_unreported = \"release\"";
    let outcome = ended(vec![pieces(&[CHAT]), say(LAST_CHUNK)], all);
    assert_eq!(outcome.records[0].cost_picousd, CHAT_COST);
    let usage_seen = until(CHAT, "[DONE]");
    let outcome = ended(vec![pieces(&[&usage_seen]), taken(), Act::Reset], all);
    let record = &outcome.records[0];
    assert_eq!((record.ending, record.cost_picousd), (Ending::UpstreamCut, CHAT_COST));
    let outcome = script::run(&leaving(vec![say(rest_of_chat())], all));
    assert_eq!(outcome.records[0].cost_picousd, CHAT_COST);
}

/// The budget is charged what the record says, however the stream ended.
#[test]
fn a_stream_that_did_not_say_what_it_used_is_estimated_and_counted() {
    let stored = bytes(&row(CASES, "use-missing"));
    let text = String::from_utf8(stored).unwrap();
    let mut scenario = one_answer(&ask(""), vec![pieces(&[&text]), say(LAST_CHUNK)]);
    scenario.clients[0].insert(2, Step::Fin);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        // "helloworld": ten bytes, four to a token.
        assert_eq!((record.provenance, record.tokens[4]), (Provenance::Estimated, 3));
        assert_eq!((record.cost_picousd, outcome.counters.usage_missing.get()), (300, 1));
    });
}

/// A drain of the node waits for streams under way; its own end is told in them.
#[test]
fn a_stop_waits_for_streams_and_tells_those_it_cuts() {
    let begun = until(CHAT, "finish_reason");
    let pause = Duration::from_millis(700);
    let ending = vec![
        pieces(&[&begun]),
        Act::Signal("begun"),
        Act::Pause(pause),
        say(chunk(&CHAT[begun.len()..])),
        say(LAST_CHUNK),
    ];
    let hanging = vec![pieces(&[&begun]), Act::Signal("begun"), Act::Hang];
    let client = vec![
        send(ask_with_usage()),
        Step::Wait("begun"),
        Step::Bytes(begun.len()),
        Step::Drain,
        Step::Answer,
        Step::End,
    ];
    for (acts, whole) in [(ending, true), (hanging, false)] {
        let upstream = vec![Manner::once(acts)];
        let scenario = Scenario { clients: vec![client.clone()], upstream, ..Scenario::default() };
        transports::each(&scenario.under("[deadlines]\ndrain = \"1500ms\""), |outcome| {
            outcome.assert_clean();
            let (text, record) = (outcome.answer().text(), &outcome.records[0]);
            assert_eq!(outcome.clients[0].end, End::Fin);
            if whole {
                assert_eq!((text.as_str(), record.ending), (CHAT, Ending::Succeeded));
            } else {
                let error = text.strip_prefix(begun.as_str()).unwrap();
                assert_eq!(told("chat", error), "shutting_down");
                assert_eq!((record.ending, record.cost_picousd), (Ending::Shutdown, 100));
            }
        });
    }
}

/// Row `h1-o-resp-trunc-chunk`, as the answer to a call for a stream: nothing of it was content, so
/// nothing of it was passed on.
#[test]
fn a_stream_that_breaks_before_its_content_is_no_answer() {
    let row = row(OWN, "h1-o-resp-trunc-chunk");
    assert_eq!(row["expect"]["verdict"], "relay_then_abort");
    let scenario = one_answer(&ask(""), vec![say(bytes(&row)), Act::Fin]);
    transports::each(&scenario.under("[deadlines]\nclient_idle = \"500ms\""), |outcome| {
        outcome.assert_clean();
        assert_eq!(
            (outcome.answer().status, outcome.answer().code()),
            (502, "upstream_cut".into())
        );
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.release), (Ending::Exhausted, Release::NothingReceived));
        assert_eq!(
            (record.listed[0].class, record.listed[0].possibly_billed),
            (StatusClass::Cut, 1)
        );
    });
}

/// Case `lim-cancel-leak` with streams: a hundred clients that leave take no place with them.
#[test]
fn a_hundred_that_leave_keep_no_place() {
    let digest = "0fb7a9381d67a12c97848d48cf5afb221bcc12268161fb10f0b51bf18ead6ae3";
    let config = format!("[[key]]\nname = \"poor\"\nsha256 = \"{digest}\"\nconcurrent = 1\n");
    let request = |text: String| text.replacen("sk-test", "sk-poor", 1);
    let begun = until(CHAT, "finish_reason");
    let mut clients: Vec<Vec<Step>> = (0..100)
        .map(|nth| {
            vec![
                Step::Pause(Duration::from_secs(nth)),
                send(request(ask(""))),
                Step::Bytes(begun.len()),
                Step::Reset,
            ]
        })
        .collect();
    clients.push([vec![Step::Pause(Duration::from_secs(100))], call(request(ask("")))].concat());
    let mut upstream = vec![Manner::once(vec![pieces(&[&begun]), Act::Hang]); 100];
    upstream.push(Manner::always(&framed(Framing::Chunked, CHAT.as_bytes())));
    let outcome = script::run(&Scenario { config, clients, upstream, ..Scenario::default() });
    let faults: Vec<&ClientSaw> =
        outcome.clients.iter().filter(|client| !client.faults.is_empty()).collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(outcome.statuses(100), [200]);
    assert_eq!(outcome.records.len(), 101);
}
