//! An upstream that answers before it has read the request.

use crate::{ok, post};
use gateway_tests::corpus::{CASES, OWN, bytes, row};
use gateway_tests::scenario::{Act, Manner, Read, Scenario, Step, Turn, say, send};
use gateway_tests::transports;
use std::time::Duration;

/// Five megabytes.
fn large() -> String {
    format!(r#"{{"model":"a","messages":["{}"]}}"#, "x".repeat(5 << 20))
}

fn scenario(answer: &[u8], read: usize, then: Act) -> Scenario {
    // Where a reset throws away what was not read yet, it has to be read first.
    let acts = vec![say(answer), Act::Pause(Duration::from_millis(20)), then];
    let turns = vec![Turn { read: Read::Bytes(read), acts }];
    Scenario {
        clients: vec![vec![
            send(post("", &large())),
            Step::Answer,
            send(post("", r#"{"model":"a"}"#)),
            Step::Answer,
            Step::Fin,
            Step::End,
        ]],
        upstream: vec![Manner { turns, repeats: false }, Manner::always(ok().as_bytes())],
        ..Scenario::default()
    }
}

#[test]
fn an_early_answer_is_relayed_whatever_becomes_of_the_write() {
    assert_eq!(
        row(CASES, "http-early-413")["expect"]["client"],
        "gets the 413 with its body, not 502"
    );
    let stored = bytes(&row(OWN, "h1-o-resp-early-413"));
    let mut scenarios = Vec::new();
    for read in [4 << 10, 64 << 10] {
        for then in [Act::Close, Act::Reset, Act::Hang, Act::Fin] {
            scenarios.push((format!("{read} {then:?}"), scenario(&stored, read, then)));
        }
    }
    transports::each_of(&scenarios, |_, outcome| {
        assert_eq!(outcome.clients[0].faults, Vec::<String>::new());
        assert_eq!(outcome.statuses(0), [413, 200]);
        let first = &outcome.clients[0].answers[0];
        assert_eq!(
            (first.text().as_str(), first.reason.as_str()),
            (r#"{"error":"x"}"#, "Payload Too Large")
        );
        assert!(!first.closes(), "what the upstream does with its connection is not the client's");
        assert_eq!((outcome.upstream.len(), outcome.counters.replays.get()), (2, 0));
        assert_eq!(outcome.endings(), ["upstream_error", "succeeded"]);
        assert_eq!(outcome.counters.panics.get(), 0);
    });
}
