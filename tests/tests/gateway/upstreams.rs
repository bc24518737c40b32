//! Upstreams that are allowed to be odd, and when their connections are used again.

use crate::{BODY, COMPLETION, ONE_ATTEMPT, call, json, ok, post};
use gateway_tests::answer::Framed;
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Act, Manner, Read, Scenario, Step, Turn, say, send};
use gateway_tests::{script, transports};
use std::time::Duration;

/// Two calls; whether the second one found the first one's connection in the pool.
fn twice(answer: &str) -> Scenario {
    let first = Manner {
        turns: vec![Turn::answer(answer.as_bytes()), Turn::answer(ok().as_bytes())],
        repeats: true,
    };
    let mut client = call(post("", BODY));
    client.push(Step::Pause(Duration::from_millis(5)));
    client.extend(call(post("", BODY)));
    let upstream = vec![first, Manner::always(ok().as_bytes())];
    Scenario { clients: vec![client], upstream, ..Scenario::default() }
}

#[test]
fn a_connection_is_used_again_only_if_both_sides_can_go_on() {
    let version = |text: String| text.replace("HTTP/1.1", "HTTP/1.0");
    let close = "Connection: close\r\n";
    let cases = [
        ("plain", ok(), true),
        ("error", json("500 Oops", "", "{}"), true),
        ("empty error", json("429 Busy", "", ""), true),
        ("says close", json("200 OK", close, COMPLETION), false),
        ("says close in a list", json("200 OK", "Connection: x, Close\r\n", COMPLETION), false),
        ("old", version(ok()), false),
        ("old, kept", version(json("200 OK", "Connection: keep-alive\r\n", COMPLETION)), true),
        ("bytes behind it", format!("{}x", ok()), false),
        ("an answer behind it", ok().repeat(2), false),
        ("our own credential", json("401 No", "", "{}"), true),
        ("interim first", format!("HTTP/1.1 102 Wait\r\n\r\n{}", ok()), true),
    ];
    let config = format!("{ONE_ATTEMPT}\n[breaker]\ncooldown = \"0s\"");
    let scenarios =
        cases.map(|(name, answer, reused)| ((name, reused), twice(&answer).under(&config)));
    transports::each_of(&scenarios, |(_, reused), outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.clients[0].answers[1].text(), COMPLETION);
        assert_eq!(outcome.upstream.len(), if *reused { 1 } else { 2 });
        assert!(outcome.clients[0].answers.iter().all(|answer| !answer.closes()));
        assert_eq!(outcome.counters.replays.get(), 0);
    });
}

#[test]
fn a_pooled_connection_grows_old() {
    for (pause, connections) in [(58, 1), (62, 2)] {
        let mut client = call(post("", BODY));
        client.push(Step::Pause(Duration::from_secs(pause)));
        client.extend(call(post("", BODY)));
        let outcome = script::run(&Scenario::plain(client, ok().as_bytes()));
        outcome.assert_clean();
        assert_eq!((outcome.upstream.len(), outcome.counters.replays.get()), (connections, 0));
    }
}

/// Heads beyond one buffer, both ways, up to the bound.
#[test]
fn large_heads_pass_and_larger_ones_do_not() {
    let field = |len: usize| format!("X-Large: {}\r\n", "v".repeat(len));
    let many = |count: usize| "X-Many: 1\r\n".repeat(count);
    let cases = [
        ("large request", post(&field(30_000), BODY), ok(), 200),
        ("large answer", post("", BODY), json("200 OK", &field(30_000), COMPLETION), 200),
        ("both", post(&field(20_000), BODY), json("200 OK", &field(20_000), COMPLETION), 200),
        ("too large a request", post(&field(33_000), BODY), ok(), 431),
        ("too large an answer", post("", BODY), json("200 OK", &field(33_000), COMPLETION), 502),
        ("many fields", post(&many(90), BODY), json("200 OK", &many(90), COMPLETION), 200),
        ("too many fields", post(&many(101), BODY), ok(), 431),
        ("too many back", post("", BODY), json("200 OK", &many(101), COMPLETION), 502),
        ("empty error", post("", BODY), json("503 Busy", "", ""), 503),
        (
            "interims",
            post("", BODY),
            "HTTP/1.1 103 Hint\r\nLink: x\r\n\r\n".repeat(250) + &ok(),
            200,
        ),
    ];
    let scenarios = cases.map(|(name, request, answer, status)| {
        let client = vec![Step::Offer(request.into_bytes()), Step::Answer];
        ((name, status), Scenario::plain(client, answer.as_bytes()))
    });
    transports::each_of(&scenarios, |(name, status), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!(answer.status, *status, "{}", answer.text());
        if *status == 200 {
            assert_eq!(answer.text(), COMPLETION);
        }
        let length = |count: usize, name: &str| format!("{count} {name}");
        let sent =
            |name: &str| length(outcome.requests().map(|asked| asked.count(name)).sum(), name);
        match *name {
            "many fields" => {
                assert_eq!((sent("x-many"), answer.count("x-many")), (length(90, "x-many"), 90));
            }
            "both" => assert_eq!(answer.field("x-large").map(|value| value.len()), Some(20_000)),
            _ => {}
        }
    });
}

/// An old client that wants its connection kept gets it closed where only the close delimits.
#[test]
fn keep_alive_yields_to_an_answer_without_a_length() {
    let body = COMPLETION.replace("hi", &"h".repeat(1 << 20));
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let old = post("Connection: keep-alive\r\n", BODY).replace("HTTP/1.1", "HTTP/1.0");
    let client = vec![send(old), Step::Answer, Step::End];
    transports::each(&Scenario::plain(client, answer.as_bytes()), |outcome| {
        outcome.assert_clean();
        let got = outcome.answer();
        assert_eq!(
            (got.framed, got.closes(), outcome.clients[0].end),
            (Framed::Close, true, End::Fin)
        );
        assert!(got.text() == body);
        assert_eq!(outcome.upstream[0].end, End::Fin);
    });
}

/// A body that broke its own framing after bytes went out is cut off, not completed.
#[test]
fn a_broken_chunk_late_in_an_answer_breaks_it_off() {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let data = "x".repeat(200 << 10);
    let acts = vec![
        say(format!("{head}{:x}\r\n{data}\r\n", data.len())),
        Act::Pause(Duration::from_millis(100)),
        say("nonsense\r\n"),
        Act::Hang,
    ];
    let turns = vec![Turn { read: Read::Whole, acts }];
    let client = vec![send(post("", BODY)), Step::End];
    let upstream = vec![Manner { turns, repeats: false }];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        assert_eq!(outcome.clients[0].faults, Vec::<String>::new());
        assert!(!outcome.clients[0].surplus.ends_with(b"\r\n0\r\n\r\n"));
        assert_eq!(outcome.endings(), ["upstream_cut"]);
        assert_ne!(outcome.upstream[0].end, End::Open);
    });
}
