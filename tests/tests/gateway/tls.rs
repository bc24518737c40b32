//! What is said of TLS at the gateway's edges: who is believed, how long a handshake may take, and
//! that an answer that was cut is never taken for whole.

use crate::{BODY, COMPLETION, ONE_ATTEMPT, call, ok, post};
use gateway_tests::outcome::{End, Outcome};
use gateway_tests::scenario::{Act, Guise, Manner, Read, Scenario, Step, Turn, say, send};
use gateway_tests::{script, transports};
use std::time::Duration;

/// Over TLS, with one attempt.
fn scenario(clients: Vec<Vec<Step>>, upstream: Manner) -> Scenario {
    let upstream = vec![upstream];
    Scenario { clients, upstream, ..Scenario::default() }.under(ONE_ATTEMPT).secured()
}

fn everywhere(scenario: Scenario, judge: impl Fn(&Outcome) + Sync) {
    transports::over_tls(&[("", scenario)], |_, outcome| judge(outcome));
}

#[test]
fn a_call_passes_and_its_connection_is_used_again() {
    let mut client = call(post("", BODY));
    client.push(Step::Pause(Duration::from_millis(5)));
    client.extend(call(post("", BODY)));
    everywhere(scenario(vec![client], Manner::always(ok().as_bytes())), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 200]);
        assert_eq!((outcome.upstream.len(), outcome.forwarded()), (1, 2));
        assert_eq!(outcome.upstream[0].end, End::Fin, "our end is said");
        let counters = &outcome.counters;
        let failures = (counters.client_tls_failures.get(), counters.upstream_tls_failures.get());
        assert_eq!(failures, (0, 0));
    });
}

#[test]
fn an_upstream_that_is_not_who_was_called_gets_no_byte_of_the_call() {
    let answers = Manner { turns: vec![turn(vec![say(ok())])], repeats: false };
    for guise in [Guise::Stranger, Guise::Bare] {
        let scenario = scenario(vec![call(post("", BODY))], answers.clone());
        everywhere(Scenario { guise, ..scenario }, |outcome| {
            assert_eq!(outcome.answer().status, 502, "{guise:?}");
            assert_eq!(outcome.answer().code(), "upstream_unreachable");
            assert_eq!(outcome.counters.upstream_tls_failures.get(), 1);
            for connection in &outcome.upstream {
                let got = String::from_utf8_lossy(&connection.surplus).into_owned();
                assert!(connection.requests.is_empty() && !got.contains("sk-of-the-provider"));
            }
        });
    }
}

/// Anything, then these acts.
fn turn(acts: Vec<Act>) -> Turn {
    Turn { read: Read::Bytes(1), acts }
}

#[test]
fn a_handshake_has_a_deadline_of_its_own_toward_upstreams() {
    let hangs = Manner { turns: vec![turn(vec![Act::Hang])], repeats: false };
    let scenario = scenario(vec![call(post("", BODY))], hangs).under("[deadlines]\ntls = \"1s\"");
    let outcome = script::run(&Scenario { guise: Guise::Bare, ..scenario });
    assert_eq!(outcome.answer().code(), "upstream_unreachable");
    assert_eq!(outcome.counters.upstream_tls_failures.get(), 1);
    let took = outcome.inside.unwrap().clients_ms;
    assert!((1_000..1_300).contains(&took), "{took}");
}

#[test]
fn a_client_that_does_not_finish_its_handshake_is_let_go_and_others_are_served() {
    let record = vec![22, 3, 1, 2, 0, 1, 0, 1, 252];
    for first in [vec![], record, post("", BODY).into_bytes()] {
        let told = !first.is_empty() && first[0] != 22;
        let mut slow = vec![Step::Bare];
        if !first.is_empty() {
            slow.push(send(first));
        }
        slow.push(Step::End);
        let clients = vec![slow, call(post("", BODY))];
        let scenario = scenario(clients, Manner::always(ok().as_bytes()));
        let outcome = script::run(&scenario.under("[deadlines]\ntls = \"2s\""));
        assert_eq!(outcome.statuses(1), [200]);
        assert!(outcome.clients[0].faults.is_empty(), "{:?}", outcome.clients[0]);
        assert_eq!(outcome.counters.client_tls_failures.get(), 1);
        // Whoever speaks no TLS is told at once, in its words: an alert.
        let took = outcome.inside.unwrap().clients_ms;
        assert_eq!(took < 1_000, told, "{took}");
        assert!((2_000..2_300).contains(&took) || told, "{took}");
        assert_eq!(outcome.clients[0].surplus.first(), told.then_some(&21));
    }
}

#[test]
fn a_drain_does_not_wait_for_a_handshake() {
    let slow = vec![Step::Bare, Step::Pause(Duration::from_millis(100)), Step::Drain, Step::End];
    let outcome = script::run(&scenario(vec![slow], Manner::default()));
    assert!(outcome.clients[0].faults.is_empty(), "{:?}", outcome.clients[0]);
    assert!(outcome.inside.unwrap().clients_ms < 1_000);
}

#[test]
fn an_answer_that_ends_with_the_connection_is_whole_only_if_that_was_said() {
    // Longer than what is looked at before the first byte goes out.
    let body = COMPLETION.replace("hi", &"hi".repeat(100_000));
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{body}");
    for (end, ending) in [(Act::Fin, "succeeded"), (Act::Cut, "upstream_cut")] {
        let whole = matches!(end, Act::Fin);
        let upstream = Manner::once(vec![say(&answer), end]);
        everywhere(scenario(vec![call(post("", BODY))], upstream), |outcome| {
            assert_eq!(outcome.endings(), [ending]);
            assert_eq!(outcome.statuses(0) == [200], whole, "{:?}", outcome.clients);
        });
    }
}

#[test]
fn only_providers_that_trust_alike_share_connections() {
    let at = script::upstream_at();
    let provider = |name: &str, url: &str| {
        format!(
            "[[provider]]\nname = \"{name}\"\nkind = \"openai\"\n{url}{at}/v1\"\n\
             credentials = [{{ name = \"main\", key = \"${{UPSTREAM_KEY}}\" }}]\n",
        )
    };
    // The first gets the root that all providers of a scenario have.
    let alike = provider("alike", "base_url = \"http://");
    let other = provider("other", "ca_file = \"ca-too.pem\"\nbase_url = \"https://");
    let ask = |model: &str| call(post("", &BODY.replace("\"a\"", &format!("\"{model}\""))));
    let client = ["up/a", "alike/a", "other/a", "up/a"].into_iter().flat_map(ask).collect();
    let scenario = scenario(vec![client], Manner::always(ok().as_bytes()));
    let outcome = script::run(&scenario.under(&alike).under(&other));
    outcome.assert_clean();
    assert_eq!(outcome.statuses(0), [200; 4]);
    let asked: Vec<usize> = outcome.upstream.iter().map(|saw| saw.requests.len()).collect();
    assert_eq!(asked, [3, 1]);
}
