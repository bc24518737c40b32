//! A defect of ours in one connection: it closes, it is counted, its record says so, and nobody
//! else notices. The defect is a stream that panics; what ships has no way to ask for one.

use crate::{BODY, call, ok, post};
use gateway_tests::outcome::{End, Outcome};
use gateway_tests::scenario::{Act, Manner, Scenario, Step, Turn, say, send};
use gateway_tests::script::{self, Faults};

/// Clients that find nothing odd, beside the first one.
fn beside(first: Vec<Step>, acts: Vec<Act>) -> Scenario {
    let mut others = vec![Step::Wait("broken")];
    others.extend(call(post("", BODY)));
    let mut first = first;
    first.extend([Step::End, Step::Signal("broken")]);
    let mut manner = Manner::once(acts);
    manner.turns.push(Turn::answer(ok().as_bytes()));
    manner.repeats = true;
    Scenario {
        clients: vec![first, others.clone(), others],
        upstream: vec![manner, Manner::always(ok().as_bytes())],
        ..Scenario::default()
    }
}

fn judge(outcome: &Outcome, endings: &[&str]) {
    assert_eq!(outcome.counters.panics.get(), 1);
    assert_eq!(outcome.counters.connections_open.get(), 0);
    assert_eq!((outcome.clients[0].answers.len(), outcome.clients[0].surplus.len()), (0, 0));
    assert_ne!(outcome.clients[0].end, End::Open);
    assert_eq!((outcome.statuses(1), outcome.statuses(2)), (vec![200], vec![200]));
    assert_eq!(outcome.endings(), endings);
    let inside = outcome.inside.unwrap();
    assert_eq!((inside.allowance_left, inside.left_open), (8 * (32 << 20), 0));
    assert!(inside.drain_ms < 1_000, "the broken connection does not hold the drain");
}

#[test]
fn a_panic_before_a_request_closes_one_connection() {
    let scenario = beside(vec![send(post("", BODY))], vec![say(ok())]);
    let outcome =
        script::run_with_faults(&scenario, Faults { client_read: Some(1), ..Faults::default() });
    judge(&outcome, &["succeeded", "succeeded"]);
}

#[test]
fn a_panic_inside_a_call_is_settled_as_internal() {
    // The second read watches the client while the upstream thinks.
    let first = vec![send(post("", BODY)), Step::Wait("asked"), send("x")];
    let acts = vec![Act::Signal("asked"), Act::Hang];
    let faults = Faults { client_read: Some(2), ..Faults::default() };
    let outcome = script::run_with_faults(&beside(first, acts), faults);
    judge(&outcome, &["internal", "succeeded", "succeeded"]);
    assert_eq!((outcome.records[0].status, outcome.records[0].attempts), (0, 1));
    assert_ne!(outcome.upstream[0].end, End::Open, "the upstream is let go");
}

#[test]
fn a_panic_while_answering_is_settled_as_internal() {
    let faults = Faults { client_write: Some(1), ..Faults::default() };
    let outcome =
        script::run_with_faults(&beside(vec![send(post("", BODY))], vec![say(ok())]), faults);
    judge(&outcome, &["internal", "succeeded", "succeeded"]);
    assert_eq!(outcome.records[0].cost_picousd, 210, "priced before the last bytes");
}
