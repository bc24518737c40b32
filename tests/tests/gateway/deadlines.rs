//! Every deadline, each with its own answer. On sockets they are short; nobody sleeps.

use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::corpus::{CASES, row};
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Act, Manner, Reach, Scenario, Split, Step, say, send};
use gateway_tests::{script, transports};
use std::time::Duration;

fn under(deadlines: &str, client: Vec<Step>, upstream: Vec<Manner>) -> Scenario {
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
    scenario.under(&format!("[deadlines]\n{deadlines}"))
}

#[test]
fn the_head_has_one_limit_from_its_first_byte() {
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost";
    let dripping = |gap: u64, count: usize| {
        let mut client = Vec::new();
        for byte in head.bytes().take(count) {
            client.push(Step::Offer(vec![byte]));
            client.push(Step::Pause(Duration::from_millis(gap)));
        }
        client.extend([Step::Answer, Step::End]);
        client
    };
    let once = vec![send(head), Step::Answer, Step::End];
    let limits = "header = \"300ms\"\nclient_idle = \"20s\"";
    transports::each_of(
        &[
            ("dripping", under(limits, dripping(60, 12), vec![])),
            ("once", under(limits, once, vec![])),
        ],
        |_, outcome| {
            outcome.assert_clean();
            let answer = outcome.answer();
            assert_eq!(
                (answer.status, answer.closes(), outcome.clients[0].end),
                (408, true, End::Fin)
            );
            assert_eq!(answer.code(), "request_timeout");
        },
    );
    // The case's own figures, in virtual time: one byte each five seconds, and others beside.
    let case = row(CASES, "http-slowloris");
    assert_eq!(case["area"], "http");
    let mut slow = under("", dripping(5_000, 3), vec![Manner::always(ok().as_bytes())]);
    for _ in 0..200 {
        slow.clients.push(dripping(5_000, 3));
    }
    let other = vec![Step::Pause(Duration::from_secs(7)), send(post("", BODY)), Step::Answer];
    slow.clients.push(other);
    let outcome = script::run(&slow);
    outcome.assert_clean();
    assert_eq!(outcome.statuses(201), [200]);
    assert!((0..=200).all(|client| outcome.statuses(client) == [408]));
    // Fifteen seconds of dripping, and nothing is waited for beyond it: no byte renewed the limit.
    assert!((15_000..15_100).contains(&outcome.inside.unwrap().clients_ms));
}

#[test]
fn a_silent_connection_is_under_the_idle_limit() {
    // Shorter and longer than the time that a read stays posted.
    for (idle, after) in [("2s", 2_000), ("60s", 60_000)] {
        for before in [vec![], call(post("", BODY))] {
            let mut client = before;
            client.push(Step::End);
            let upstream = vec![Manner::always(ok().as_bytes())];
            let limit = format!("client_idle = \"{idle}\"\nheader = \"1s\"");
            let outcome = script::run(&under(&limit, client, upstream));
            outcome.assert_clean();
            assert_eq!(outcome.clients[0].end, End::Fin);
            let ms = outcome.inside.unwrap().clients_ms;
            assert!((after..after + 400).contains(&ms), "{ms}");
        }
    }
    let client = vec![send(post("", BODY)), Step::Answer, Step::End];
    let upstream = vec![Manner::always(ok().as_bytes())];
    transports::each(&under("client_idle = \"300ms\"", client, upstream), |outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.statuses(0), outcome.clients[0].end), (vec![200], End::Fin));
    });
}

/// After five seconds an idle connection holds no buffer; it is served all the same.
#[test]
fn an_idle_connection_is_served_whenever_it_wakes() {
    for pause in [4_900, 5_000, 5_050, 5_100, 5_200, 5_300, 7_000, 100_000] {
        let request = post("", BODY);
        let client = vec![
            send(&request),
            Step::Answer,
            Step::Pause(Duration::from_millis(pause)),
            Step::Send(request.clone().into_bytes(), Split::At(vec![1, 50])),
            Step::Answer,
            Step::Pause(Duration::from_millis(pause)),
            send(format!("{request}{request}")),
            Step::Answer,
            Step::Answer,
            Step::Fin,
            Step::End,
        ];
        let outcome = script::run(&Scenario::plain(client, ok().as_bytes()));
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200; 4]);
    }
}

/// The same once on sockets, where the read is really asked back.
#[test]
fn an_idle_connection_gives_its_buffer_back_on_the_drivers_too() {
    let client = vec![
        send(post("", BODY)),
        Step::Answer,
        Step::Pause(Duration::from_millis(5_400)),
        send(post("", BODY)),
        Step::Answer,
        Step::Fin,
        Step::End,
    ];
    let scenario = Scenario::plain(client, ok().as_bytes());
    transports::on_sockets(&[("idle", scenario)], |_, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 200]);
    });
}

#[test]
fn a_body_has_a_limit_between_its_bytes() {
    let request = post("", BODY);
    let most = &request[..request.len() - 5];
    let stuck = vec![send(most), Step::Answer, Step::End];
    let slow = vec![
        send(most),
        Step::Pause(Duration::from_millis(150)),
        send(&request[most.len()..most.len() + 2]),
        Step::Pause(Duration::from_millis(150)),
        send(&request[most.len() + 2..]),
        Step::Answer,
    ];
    let upstream = || vec![Manner::always(ok().as_bytes())];
    let limit = "body = \"250ms\"";
    transports::each_of(
        &[(408, under(limit, stuck, upstream())), (200, under(limit, slow, upstream()))],
        |status, outcome| {
            outcome.assert_clean();
            assert_eq!(outcome.answer().status, *status);
            assert_eq!(outcome.answer().closes(), *status == 408);
            assert_eq!(outcome.forwarded(), usize::from(*status == 200));
        },
    );
}

#[test]
fn an_upstream_that_says_nothing_is_a_504() {
    let mut scenarios = Vec::new();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{";
    let silences: [(&str, &str, Vec<Act>); 3] = [
        ("nothing", "first_byte", vec![Act::Hang]),
        ("half a head", "first_byte", vec![say("HTTP/1.1 20"), Act::Hang]),
        ("half a body", "between_bytes", vec![say(head), Act::Hang]),
    ];
    for (name, limit, acts) in silences {
        let mut client = call(post("", BODY));
        client.extend(call(post("", BODY)));
        let upstream = vec![Manner::once(acts), Manner::always(ok().as_bytes())];
        scenarios.push((name, under(&format!("{limit} = \"300ms\""), client, upstream)));
    }
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [504, 200]);
        assert_eq!(outcome.clients[0].answers[0].code(), "upstream_timeout");
        assert_eq!((outcome.upstream.len(), outcome.counters.replays.get()), (2, 0));
        assert_ne!(outcome.upstream[0].end, End::Open, "the connection is not kept");
        assert_eq!(outcome.endings(), ["deadline", "succeeded"]);
    });
}

/// A slow answer is no silent one: the limit is between bytes.
#[test]
fn a_slow_answer_is_waited_for() {
    let answer = ok();
    let mut acts = Vec::new();
    for piece in answer.as_bytes().chunks(90) {
        acts.extend([say(piece), Act::Pause(Duration::from_millis(120))]);
    }
    let limits = "first_byte = \"400ms\"\nbetween_bytes = \"300ms\"";
    let scenario = under(limits, call(post("", BODY)), vec![Manner::once(acts)]);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), COMPLETION);
    });
}

/// Once bytes have gone out a deadline can only break the answer off.
#[test]
fn silence_in_a_long_answer_breaks_it_off() {
    let whole = json("200 OK", "", &"x".repeat(300 << 10));
    let acts = vec![say(&whole[..200 << 10]), Act::Hang];
    let client = vec![send(post("", BODY)), Step::End];
    let scenario = under("between_bytes = \"300ms\"", client, vec![Manner::once(acts)]);
    transports::each(&scenario, |outcome| {
        assert_eq!(outcome.clients[0].faults, Vec::<String>::new());
        let got = outcome.clients[0].surplus.len();
        assert!((100 << 10..250 << 10).contains(&got), "{got}");
        assert_eq!(outcome.endings(), ["deadline"]);
    });
}

#[test]
fn an_upstream_that_cannot_be_reached_is_a_502() {
    for reach in [Reach::Refused, Reach::BlackHole] {
        let client = vec![send(post("", BODY)), Step::Answer, Step::Fin, Step::End];
        let mut scenario = under("connect = \"300ms\"", client, vec![]);
        scenario.reach = reach;
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            assert_eq!(outcome.answer().status, 502);
            assert_eq!(outcome.answer().code(), "upstream_unreachable");
            assert_eq!(outcome.endings(), ["exhausted"]);
        });
    }
}

/// A client that takes no bytes is let go, and so is the upstream it held.
#[test]
fn a_client_that_takes_nothing_is_let_go() {
    let body = "x".repeat(16 << 20);
    let client = vec![send(post("", BODY)), Step::Wait("stalled"), Step::End];
    let acts = vec![say(json("200 OK", "", &body)), Act::Hang];
    let mut manner = Manner::once(acts);
    manner.turns[0].acts.truncate(1);
    manner.turns[0].acts.push(Act::Signal("stalled"));
    let scenario = under("write_stall = \"300ms\"", client, vec![manner]);
    transports::each(&scenario, |outcome| {
        assert_eq!(outcome.endings(), ["write_stall"]);
        assert_eq!(outcome.counters.connections_open.get(), 0);
        assert!(outcome.clients[0].surplus.len() < 16 << 20);
    });
}
