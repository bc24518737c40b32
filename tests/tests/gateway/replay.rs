//! A pooled connection that turns out to be dead is replaced once, and only where nothing can have
//! been done twice.

use crate::{BODY, COMPLETION, ok, post};
use gateway_tests::corpus::{CASES, row};
use gateway_tests::outcome::{End, Outcome};
use gateway_tests::scenario::{Act, Manner, Read, Scenario, Step, Turn, say, send};
use gateway_tests::transports;

/// How the upstream ends the connection that carries the second request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// An end of stream once the request is here.
    Eof,
    /// A reset once the request is here.
    Reset,
    /// A reset before the second request was read, while it is still being written.
    WhileWriting,
    /// An end, or a reset, in the middle of an answer's head.
    InHead { reset: bool },
    /// An end, or a reset, behind a whole head.
    AfterHead { reset: bool },
}

/// A body that does not fit into what a socket holds: its write is under way when the end comes.
fn large() -> String {
    format!(r#"{{"messages":["{}"],"model":"a"}}"#, "x".repeat(4 << 20))
}

fn dying(death: Death) -> Turn {
    let end = |reset: bool| if reset { Act::Reset } else { Act::Fin };
    let (read, acts) = match death {
        Death::Eof => (Read::Whole, vec![Act::Close]),
        Death::Reset => (Read::Whole, vec![Act::Reset]),
        Death::WhileWriting => (Read::Bytes(1), vec![Act::Reset]),
        Death::InHead { reset } => (Read::Whole, vec![say("HTTP/1.1 2"), end(reset)]),
        Death::AfterHead { reset } => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                        Content-Length: 90\r\n\r\n";
            (Read::Whole, vec![say(head), end(reset)])
        }
    };
    Turn { read, acts }
}

/// Two calls; the first one's connection is dead for the second.
fn second_dies(death: Death, next: Vec<Manner>) -> Scenario {
    let second = if death == Death::WhileWriting { large() } else { BODY.to_owned() };
    let first = Manner { turns: vec![Turn::answer(ok().as_bytes()), dying(death)], repeats: false };
    Scenario {
        clients: vec![vec![
            send(post("", BODY)),
            Step::Answer,
            send(post("", &second)),
            Step::Answer,
            Step::Fin,
            Step::End,
        ]],
        upstream: std::iter::once(first).chain(next).collect(),
        ..Scenario::default()
    }
}

#[test]
fn a_dead_pooled_connection_is_replaced_once() {
    assert_eq!(row(CASES, "pool-three-ways")["expect"]["first_three"], "one replay on fresh");
    assert_eq!(row(CASES, "pool-stale")["expect"]["booked"], "once");
    let fresh = vec![Manner::always(ok().as_bytes())];
    let deaths = [Death::Eof, Death::Reset, Death::WhileWriting];
    let scenarios: Vec<(Death, Scenario)> =
        deaths.into_iter().map(|death| (death, second_dies(death, fresh.clone()))).collect();
    transports::each_of(&scenarios, |death, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 200]);
        assert_eq!(outcome.clients[0].answers[1].text(), COMPLETION);
        assert_eq!(outcome.clients[0].answers[1].field("x-tollgate-attempts").unwrap(), "2");
        assert_eq!(outcome.upstream.len(), 2);
        let replayed = &outcome.upstream[1].requests[0];
        let sent = if *death == Death::WhileWriting { large() } else { BODY.to_owned() };
        assert!(replayed.text() == sent, "the body is whole again");
        assert_eq!(replayed.field("x-tollgate-attempt").unwrap(), "2");
        if *death != Death::WhileWriting {
            let first = outcome.upstream[0].requests[1].field("x-tollgate-request-id");
            assert_eq!(replayed.field("x-tollgate-request-id"), first, "one exchange, one id");
        }
        booked_once(outcome);
    });
}

fn booked_once(outcome: &Outcome) {
    assert_eq!(outcome.endings(), ["succeeded", "succeeded"]);
    assert_eq!((outcome.records[0].attempts, outcome.records[1].attempts), (1, 2));
    assert_eq!(outcome.records[1].cost_picousd, 210);
    assert_eq!(outcome.counters.replays.get(), 1);
}

#[test]
fn once_means_once() {
    let again = Manner { turns: vec![dying(Death::Eof)], repeats: false };
    let scenario = second_dies(Death::Eof, vec![again, Manner::always(ok().as_bytes())]);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 502]);
        assert_eq!(outcome.clients[0].answers[1].code(), "upstream_cut");
        assert_eq!((outcome.upstream.len(), outcome.counters.replays.get()), (2, 1));
        assert_eq!(outcome.endings(), ["succeeded", "exhausted"]);
    });
}

#[test]
fn nothing_is_replayed_after_a_byte_of_an_answer() {
    assert_eq!(
        row(CASES, "pool-three-ways")["expect"]["last_two"],
        "no replay, 502 or failover rule"
    );
    let fresh = vec![Manner::always(ok().as_bytes())];
    let ways = [false, true].into_iter();
    let deaths = ways.flat_map(|reset| [Death::InHead { reset }, Death::AfterHead { reset }]);
    let scenarios: Vec<(Death, Scenario)> =
        deaths.map(|death| (death, second_dies(death, fresh.clone()))).collect();
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 502]);
        assert_eq!(outcome.clients[0].answers[1].code(), "upstream_cut");
        assert_eq!((outcome.forwarded(), outcome.counters.replays.get()), (2, 0));
    });
}

#[test]
fn nothing_is_replayed_from_a_fresh_connection() {
    let deaths = [Death::Eof, Death::Reset, Death::WhileWriting];
    let scenarios: Vec<(Death, Scenario)> = deaths
        .into_iter()
        .map(|death| {
            let body = if death == Death::WhileWriting { large() } else { BODY.to_owned() };
            let manner = Manner { turns: vec![dying(death)], repeats: false };
            let client = vec![send(post("", &body)), Step::Answer, Step::Fin, Step::End];
            let upstream = vec![manner, Manner::always(ok().as_bytes())];
            (death, Scenario { clients: vec![client], upstream, ..Scenario::default() })
        })
        .collect();
    transports::each_of(&scenarios, |death, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.counters.replays.get(), 0);
        if *death == Death::WhileWriting {
            // What was never wholly sent can be sent again: a retry, with its wait before it.
            assert_eq!(outcome.answer().text(), COMPLETION);
            assert!(outcome.upstream[1].requests[0].text() == large(), "the body is whole again");
            assert_eq!((outcome.upstream.len(), outcome.records[0].attempts), (2, 2));
            assert_eq!(outcome.records[0].listed[0].possibly_billed, 0, "not wholly sent");
            return;
        }
        assert_eq!(
            (outcome.answer().status, outcome.answer().code()),
            (502, "upstream_cut".into())
        );
        assert_eq!(outcome.upstream.len(), 1);
        assert_eq!(outcome.endings(), ["exhausted"]);
    });
}

/// An idle connection whose end was seen in the pool is not even tried.
#[test]
fn an_end_seen_in_the_pool_costs_no_attempt() {
    for end in [Act::Fin, Act::Reset] {
        let first = Manner { turns: vec![Turn::answer(ok().as_bytes())], repeats: false };
        let mut first = first;
        first.turns[0].acts.extend([Act::Wait("answered"), end, Act::Signal("ended")]);
        let client = vec![
            send(post("", BODY)),
            Step::Answer,
            Step::Signal("answered"),
            Step::Wait("ended"),
            send(post("", BODY)),
            Step::Answer,
            Step::Fin,
            Step::End,
        ];
        let upstream = vec![first, Manner::always(ok().as_bytes())];
        let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
        transports::each(&scenario, |outcome| {
            assert_eq!(outcome.statuses(0), [200, 200]);
            assert_eq!(outcome.clients[0].end, End::Fin);
            assert_eq!((outcome.upstream.len(), outcome.counters.replays.get()), (2, 0));
        });
    }
}
