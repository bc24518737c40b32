//! A client's connection: kept alive, pipelined, half closed, reset, lingering.

use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Act, Manner, Read, Scenario, Step, Turn, say, send};
use gateway_tests::{script, transports};
use std::time::Duration;

/// Answers that can be told apart, in the order of the requests.
fn numbered(count: usize) -> Manner {
    let answer = |nth: usize| ok().replace("\"id\":\"c\"", &format!("\"id\":\"{}\"", nth % 10));
    let turns = (0..count).map(|nth| Turn::answer(answer(nth).as_bytes())).collect();
    Manner { turns, repeats: false }
}

fn ids(answers: &[gateway_tests::answer::Answer]) -> Vec<String> {
    answers.iter().map(|answer| answer.text()[7..8].to_owned()).collect()
}

#[test]
fn one_connection_serves_many_calls_over_one_upstream_connection() {
    let mut client = Vec::new();
    for _ in 0..20 {
        client.extend(call(post("", BODY)));
    }
    client.extend([Step::Fin, Step::End]);
    let scenario =
        Scenario { clients: vec![client], upstream: vec![numbered(20)], ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let expected: Vec<String> = (0..20).map(|nth| (nth % 10).to_string()).collect();
        assert_eq!(ids(&outcome.clients[0].answers), expected);
        assert_eq!((outcome.upstream.len(), outcome.counters.upstream_reused.get()), (1, 19));
        assert!(outcome.clients[0].answers.iter().all(|answer| answer.count("connection") == 0));
        let mut seen: Vec<String> =
            outcome.requests().filter_map(|asked| asked.field("x-tollgate-request-id")).collect();
        seen.dedup();
        assert_eq!(seen.len(), 20, "ids");
    });
}

#[test]
fn an_old_client_is_kept_alive_only_if_it_asks() {
    let old = |fields: &str| post(fields, BODY).replace("HTTP/1.1", "HTTP/1.0");
    let keep = old("Connection: keep-alive\r\n");
    let client = vec![send(&keep), Step::Answer, send(old("")), Step::Answer, Step::End];
    transports::each(&Scenario::plain(client, ok().as_bytes()), |outcome| {
        outcome.assert_clean();
        let answers = &outcome.clients[0].answers;
        assert_eq!(answers[0].field("connection").as_deref(), Some("keep-alive"));
        assert_eq!((answers[1].closes(), outcome.clients[0].end), (true, End::Fin));
    });
}

#[test]
fn pipelined_calls_are_answered_in_order_each_with_its_own() {
    let many = post("", BODY).repeat(30);
    let mut client = vec![send(many)];
    client.extend(vec![Step::Answer; 30]);
    client.extend([Step::Fin, Step::End]);
    let scenario =
        Scenario { clients: vec![client], upstream: vec![numbered(30)], ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let expected: Vec<String> = (0..30).map(|nth| (nth % 10).to_string()).collect();
        assert_eq!(ids(&outcome.clients[0].answers), expected);
        assert_eq!((outcome.upstream.len(), outcome.forwarded()), (1, 30));
    });
}

/// While a call is under way what comes behind it is not read without bound.
#[test]
fn a_flood_behind_a_call_is_not_buffered() {
    const FLOOD: usize = 64 << 20;
    let client = vec![
        send(post("", BODY)),
        Step::Wait("asked"),
        Step::Flood(post("", BODY).repeat(300).into_bytes(), FLOOD),
        Step::Signal("flooded"),
        Step::Reset,
    ];
    let acts = vec![Act::Signal("asked"), Act::Wait("flooded"), say(ok())];
    let upstream = vec![Manner::once(acts)];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        // What sockets hold on both sides, and one buffer of ours.
        let held = outcome.clients[0].flooded;
        assert!(held < FLOOD / 4, "{held} bytes were taken");
        if outcome.inside.is_some() {
            assert!(held < (256 << 10) + (64 << 10), "{held} bytes were taken");
        }
        assert_eq!(outcome.counters.panics.get(), 0);
    });
}

#[test]
fn a_half_closed_client_gets_its_answers() {
    let two = post("", BODY).repeat(2);
    let acts = |answer: String| vec![Act::Wait("ended"), say(answer)];
    let turn = |answer: String| Turn { read: Read::Whole, acts: acts(answer) };
    let large = json("200 OK", "", &COMPLETION.replace("hi", &"x".repeat(300 << 10)));
    let manner = Manner { turns: vec![turn(ok()), turn(large)], repeats: false };
    let client =
        vec![send(two), Step::Fin, Step::Signal("ended"), Step::Answer, Step::Answer, Step::End];
    let scenario =
        Scenario { clients: vec![client], upstream: vec![manner], ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.statuses(0), outcome.clients[0].end), (vec![200, 200], End::Fin));
        assert_eq!(outcome.endings(), ["succeeded", "succeeded"]);
    });
}

/// A reset is an end of the call: the upstream is let go, at once where that is configured, and it
/// is booked as that.
#[test]
fn a_client_that_resets_ends_its_call() {
    let body = "x".repeat(300 << 10);
    let long = json("200 OK", "", &COMPLETION.replace("hi", &body));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{";
    let ways: [(&str, Vec<Act>); 3] = [
        ("before the head", vec![]),
        ("before the first byte out", vec![say(head)]),
        ("inside a long answer", vec![say(&long[..200 << 10])]),
    ];
    let scenarios: Vec<(&str, Scenario)> = ways
        .into_iter()
        .map(|(name, mut acts)| {
            acts.extend([Act::Signal("asked"), Act::Hang]);
            let mut client = vec![send(post("", BODY)), Step::Wait("asked")];
            if name == "inside a long answer" {
                client.push(Step::Bytes(1000));
            }
            client.extend([Step::Pause(Duration::from_millis(20)), Step::Reset]);
            let upstream = vec![Manner::once(acts)];
            let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
            (name, scenario.under("[endings]\nclient_left = \"abort\""))
        })
        .collect();
    transports::each_of(&scenarios, |_, outcome| {
        assert_eq!(outcome.endings(), ["client_left"]);
        assert_ne!(outcome.upstream[0].end, End::Open, "the upstream is let go");
        assert_eq!((outcome.counters.panics.get(), outcome.upstream.len()), (0, 1));
        if let Some(inside) = outcome.inside {
            assert_eq!((inside.allowance_left, inside.pooled), (8 * (32 << 20), 0));
        }
    });
}

/// A refusal can be read although the client goes on sending what nobody wants.
#[test]
fn a_refusal_is_readable_by_a_client_that_keeps_sending() {
    let head = post("", "").replace("Content-Length: 0", "Content-Length: 900000");
    let bad_key = head.replace("sk-test", "sk-other");
    let too_long = head.replace("900000", "99999999");
    let bad_json = format!("{head}[]");
    for (request, status) in [(bad_key, 401), (too_long, 413), (bad_json, 400)] {
        let client = vec![
            send(request),
            Step::Pause(Duration::from_millis(30)),
            Step::Offer(vec![b' '; 800_000]),
            Step::Answer,
            Step::Fin,
            Step::End,
        ];
        transports::each(&Scenario::plain(client, b""), |outcome| {
            outcome.assert_clean();
            assert_eq!((outcome.answer().status, outcome.clients[0].end), (status, End::Fin));
            assert_eq!(outcome.forwarded(), 0);
        });
    }
}

/// It is not read for ever, though: neither in bytes nor in time.
#[test]
fn lingering_has_its_bounds() {
    let head = post("", "").replace("Length: 0", "Length: 9000000").replace("sk-test", "sk-no");
    let flooding = vec![send(&head), Step::Answer, Step::Flood(vec![b' '; 64 << 10], 9 << 20)];
    let outcome = script::run(&Scenario::plain(flooding, b""));
    assert!(outcome.clients[0].flooded < 2 << 20, "{}", outcome.clients[0].flooded);
    let silent = vec![send(&head), Step::Answer, Step::End, Step::Pause(Duration::from_secs(3))];
    let outcome = script::run(&Scenario::plain(silent, b""));
    outcome.assert_clean();
}

/// Several clients share what the pool holds and nothing else.
#[test]
fn clients_do_not_get_each_others_answers() {
    let mut clients = Vec::new();
    for nth in 0..8 {
        let mut client = Vec::new();
        for round in 0..12 {
            let body = format!(r#"{{"model":"a","messages":["{nth}-{round}"]}}"#);
            client.extend(call(post(&format!("X-Tag: {nth}-{round}\r\n"), &body)));
        }
        clients.push(client);
    }
    let upstream = vec![Manner::always(ok().as_bytes())];
    transports::each(&Scenario { clients, upstream, ..Scenario::default() }, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.forwarded(), 96);
        assert!(outcome.upstream.len() <= 8, "{} connections", outcome.upstream.len());
        for asked in outcome.requests() {
            let tag = asked.field("x-tag").unwrap();
            assert!(asked.text().contains(&format!("\"{tag}\"")), "{tag}");
        }
        for client in &outcome.clients {
            assert!(client.answers.iter().all(|answer| answer.text() == COMPLETION));
        }
    });
}
