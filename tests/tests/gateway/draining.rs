//! A drain: what is under way finishes, nobody new is taken, who only waits does not hold it.

use crate::{BODY, COMPLETION, ok, post};
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Act, Manner, Scenario, Step, say, send};
use gateway_tests::{script, transports};
use std::time::Duration;

#[test]
fn a_call_under_way_is_finished() {
    let client = vec![
        send(post("", BODY)),
        Step::Wait("asked"),
        Step::Drain,
        Step::Pause(Duration::from_millis(400)),
        Step::Signal("drained"),
        Step::Answer,
        Step::End,
    ];
    let acts = vec![Act::Signal("asked"), Act::Wait("drained"), say(ok())];
    let upstream = vec![Manner::once(acts)];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(
            (outcome.answer().text().as_str(), outcome.clients[0].end),
            (COMPLETION, End::Fin)
        );
        assert_eq!(outcome.endings(), ["succeeded"]);
    });
}

/// Fresh, after a call, long asleep: told at once, and the default deadline of 900 s is not used.
#[test]
fn idle_connections_end_with_the_drain_and_do_not_hold_it() {
    let fresh = vec![Step::Signal("fresh"), Step::End];
    let used = vec![send(post("", BODY)), Step::Answer, Step::Signal("used"), Step::End];
    let draining = |pause: u64| {
        vec![
            Step::Wait("fresh"),
            Step::Wait("used"),
            Step::Pause(Duration::from_millis(pause)),
            Step::Drain,
            Step::End,
        ]
    };
    let upstream = vec![Manner::always(ok().as_bytes())];
    let scenario = |pause: u64| Scenario {
        clients: vec![fresh.clone(), used.clone(), draining(pause)],
        upstream: upstream.clone(),
        ..Scenario::default()
    };
    transports::each(&scenario(50), |outcome| {
        outcome.assert_clean();
        assert!(outcome.clients.iter().all(|client| client.end == End::Fin));
    });
    let asleep = script::run(&scenario(20_000));
    asleep.assert_clean();
    let ms = asleep.inside.unwrap().clients_ms;
    assert!((20_000..20_400).contains(&ms), "{ms}");
}

/// A client whose request is half here is waited for, but not longer than its deadline.
#[test]
fn half_a_request_holds_the_drain_for_its_deadline_only() {
    let request = post("", BODY);
    let slow = vec![
        send(&request[..40]),
        Step::Drain,
        Step::Pause(Duration::from_millis(300)),
        Step::Answer,
        Step::End,
    ];
    let scenario = Scenario::plain(slow, ok().as_bytes()).under("[deadlines]\nheader = \"600ms\"");
    // In virtual time only: on sockets nobody knows when these bytes are read.
    let outcome = script::run(&scenario);
    outcome.assert_clean();
    assert_eq!((outcome.answer().status, outcome.clients[0].end), (408, End::Fin));
}

/// What came before the drain and is not read whole yet is told to go elsewhere.
#[test]
fn a_body_that_ends_after_the_drain_began_is_refused() {
    let request = post("", BODY);
    let most = request.len() - 5;
    let client = vec![
        send(&request[..most]),
        Step::Pause(Duration::from_millis(30)),
        Step::Drain,
        Step::Pause(Duration::from_millis(300)),
        send(&request[most..]),
        Step::Answer,
        Step::End,
    ];
    // In virtual time only: on sockets nobody knows when these bytes are read.
    let outcome = script::run(&Scenario::plain(client, ok().as_bytes()));
    outcome.assert_clean();
    let answer = outcome.answer();
    assert_eq!((answer.status, answer.code().as_str()), (503, "shutting_down"));
    assert_eq!((answer.field("retry-after").as_deref(), outcome.forwarded()), (Some("1"), 0));
}

/// An upstream that never answers ends with the drain's own deadline.
#[test]
fn a_drain_ends_whatever_hangs() {
    let client = vec![
        send(post("", BODY)),
        Step::Wait("asked"),
        Step::Drain,
        Step::Signal("drained"),
        Step::Pause(Duration::from_millis(600)),
    ];
    let upstream = vec![Manner::once(vec![Act::Signal("asked"), Act::Hang])];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
    let outcome = script::run(&scenario.under("[deadlines]\ndrain = \"300ms\""));
    assert_eq!(outcome.clients[0].faults, Vec::<String>::new());
    assert_eq!(outcome.endings(), ["shutdown"], "what is cut is settled");
    assert_eq!((outcome.records[0].status, outcome.records[0].cost_picousd), (503, 0));
}
