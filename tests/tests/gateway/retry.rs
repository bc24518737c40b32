//! When the same candidate is asked again, after how long, and what the attempts leave behind.

use crate::events::{CHAT, CHAT_COST, Framing, ask, framed};
use crate::failover::{attempts, host, of, walked};
use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::corpus::{CASES, row, variants};
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Act, Manner, Reach, Read, Scenario, Step, Turn, say, send};
use gateway_tests::{script, transports};
use std::time::Duration;
use store::ending::{Ending, Provenance, Release, StatusClass};

/// One client over an upstream whose connections are treated like this, in order.
fn over(request: &str, connections: Vec<Vec<Act>>) -> Scenario {
    let client = vec![send(request), Step::Answer, Step::Fin, Step::End];
    let upstream = connections.into_iter().map(Manner::once).collect();
    Scenario { clients: vec![client], upstream, ..Scenario::default() }
}

/// An error whose connection is not used again.
fn error(status: &str, fields: &str) -> Vec<Act> {
    vec![say(json(status, &format!("Connection: close\r\n{fields}"), "{}")), Act::Fin]
}

fn elapsed(outcome: &Outcome) -> u64 {
    outcome.inside.expect("virtual time").clients_ms
}

#[test]
fn what_was_not_done_is_asked_for_again() {
    use StatusClass::{Limited, Server, Success, Unreachable};
    let mut scenarios = Vec::new();
    for (status, class) in
        [("429 No", Limited), ("500 No", Server), ("503 No", Server), ("529 No", Server)]
    {
        let connections = vec![error(status, ""), error(status, ""), vec![say(ok())]];
        scenarios.push((class, over(&post("", BODY), connections)));
    }
    transports::each_of(&scenarios, |class, outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, COMPLETION));
        assert_eq!(answer.field("x-tollgate-attempts").as_deref(), Some("3"));
        assert_eq!(answer.field("x-tollgate-fallbacks").as_deref(), Some("0"));
        assert_eq!(attempts(outcome), [(*class, 0), (*class, 0), (Success, 1)]);
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.cost_picousd), (Ending::Succeeded, CHAT_COST));
        let numbers: Vec<String> =
            outcome.requests().filter_map(|asked| asked.field("x-tollgate-attempt")).collect();
        assert_eq!(numbers, ["1", "2", "3"]);
        assert!(outcome.requests().all(|asked| asked.text() == BODY));
        if outcome.inside.is_some() {
            // Half a second and a whole one, half of each by chance.
            assert!((750..1_750).contains(&elapsed(outcome)), "{}", elapsed(outcome));
        }
    });
    // Three times, and no more.
    let mut refused = over(&post("", BODY), vec![]);
    refused.reach = Reach::Refused;
    transports::each(&refused, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().code(), "upstream_unreachable");
        assert_eq!(attempts(outcome), [(Unreachable, 0); 3]);
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.release), (Ending::Exhausted, Release::NeverSent));
        assert_eq!(outcome.counters.attempts.get(), 3);
    });
}

/// A host that cannot be reached is one to be asked again, then left for the next.
#[test]
fn a_host_that_cannot_be_reached_is_left_for_the_next() {
    for reach in [Reach::Refused, Reach::BlackHole] {
        let mut scenario = walked(&of("two"), vec![], vec![host(ok())]);
        scenario.reach = reach;
        let scenario = scenario.under("[deadlines]\nconnect = \"200ms\"");
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            let answer = outcome.answer();
            assert_eq!((answer.status, answer.text().as_str()), (200, COMPLETION));
            assert_eq!(answer.field("x-tollgate-attempts").as_deref(), Some("4"));
            assert_eq!(answer.field("x-tollgate-fallbacks").as_deref(), Some("1"));
        });
    }
}

/// Before the first byte of its answer a stream is as any other call.
#[test]
fn a_stream_is_asked_for_again_like_any_other_call() {
    let stream = vec![say(framed(Framing::Chunked, CHAT.as_bytes()))];
    let scenario = over(&ask(""), vec![error("503 No", ""), stream]);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().status, outcome.records[0].attempts), (200, 2));
        assert_eq!(outcome.records[0].cost_picousd, CHAT_COST);
    });
}

#[test]
fn a_retry_after_that_fits_is_waited_for() {
    for (fields, least) in [
        ("Retry-After: 4\r\n", 4_000),
        ("Retry-After: 9\r\nretry-after-ms: 3100\r\n", 3_100),
        ("Retry-After: 0\r\n", 250),
        ("Retry-After: Thu, 15 Jan 2026 12:00:00 GMT\r\n", 250),
    ] {
        let connections = vec![error("429 No", fields), vec![say(ok())]];
        let outcome = script::run(&over(&post("", BODY), connections));
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, 200, "{fields}");
        let ms = elapsed(&outcome);
        assert!((least..least + 400).contains(&ms), "{fields}: {ms} ms");
    }
}

/// One that does not is told as it came, and the credential is left alone meanwhile: for as long as
/// it said, at most a minute.
#[test]
fn a_retry_after_that_does_not_fit_is_told_and_the_credential_rests() {
    for (value, rests_s, final_for) in [("20", 20, false), ("86400", 60, true)] {
        let answer = json("429 No", &format!("Retry-After: {value}\r\n"), "{}");
        let mut client = call(post("", BODY));
        client.extend(call(post("", BODY)));
        client.push(Step::Pause(Duration::from_secs(rests_s - 2)));
        client.extend(call(post("", BODY)));
        client.push(Step::Pause(Duration::from_secs(3)));
        client.extend(call(post("", BODY)));
        let turns = vec![Turn::answer(answer.as_bytes()), Turn::answer(ok().as_bytes())];
        let upstream = vec![Manner { turns, repeats: true }, Manner::always(ok().as_bytes())];
        let clients = vec![client];
        let outcome = script::run(&Scenario { clients, upstream, ..Scenario::default() });
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [429, 503, 503, 200], "{value}");
        let [first, second, ..] = &outcome.clients[0].answers[..] else { panic!() };
        assert_eq!(first.field("retry-after").as_deref(), Some(value));
        let told = first.field("x-should-retry");
        assert_eq!(told.as_deref(), final_for.then_some("false"));
        assert_eq!(second.code(), "upstream_unavailable");
        assert_eq!((outcome.forwarded(), outcome.counters.attempts.get()), (2, 2));
    }
}

/// Cases `retry-after-date` and `retry-after-huge`: whatever it says, it is told unchanged, and
/// nobody waits for longer than a back-off.
#[test]
fn no_retry_after_is_too_strange_to_be_told() {
    assert_eq!(row(CASES, "retry-after-date")["expect"]["client"], "header passed on unchanged");
    let dates = variants(&row(CASES, "retry-after-date"));
    let huge = variants(&row(CASES, "retry-after-huge"));
    assert_eq!((dates.len(), huge.len()), (4, 6));
    let other = ["Fri, 31 Dec 9999 23:59:59 GMT", "٣", "5, 6"].map(|text| text.as_bytes().to_vec());
    for value in dates.into_iter().chain(huge).chain(other) {
        let text = String::from_utf8(value).unwrap();
        let connections = vec![error("429 No", &format!("Retry-After: {text}\r\n"))];
        let outcome = script::run(&over(&post("", BODY), connections));
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!(answer.status, 429, "{text}");
        assert_eq!(answer.field("retry-after").as_deref(), Some(text.as_str()));
        assert!(elapsed(&outcome) < 2_000, "{text}: {} ms", elapsed(&outcome));
    }
}

/// Cases `retry-gateway-codes` and `retry-double-bill`: what an upstream may have served and billed
/// is not sent again, unless the operator says so; then each attempt is marked, and one charged.
#[test]
fn what_may_be_billed_is_sent_again_only_where_the_operator_lets_it() {
    use StatusClass::{Cut, Server, Success, Timeout};
    assert_eq!(row(CASES, "retry-gateway-codes")["expect"]["502_504"], "by policy only");
    assert_eq!(row(CASES, "retry-double-bill")["area"], "retry");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{";
    let ways: Vec<(&str, Vec<Act>, StatusClass, u16)> = vec![
        ("502", error("502 Bad", ""), Server, 502),
        ("504", error("504 Late", ""), Server, 504),
        ("599", error("599 Odd", ""), Server, 599),
        ("silence", vec![Act::Hang], Timeout, 504),
        ("cut", vec![Act::Close], Cut, 502),
        ("cut in the head", vec![say("HTTP/1.1 20"), Act::Fin], Cut, 502),
        ("cut in the body", vec![say(head), Act::Fin], Cut, 502),
    ];
    let mut scenarios = Vec::new();
    for (name, acts, class, status) in ways {
        for may in [false, true] {
            let connections = vec![acts.clone(), acts.clone(), vec![say(ok())]];
            let scenario = over(&post("", BODY), connections)
                .under("[deadlines]\nfirst_byte = \"300ms\"")
                .under(&format!("[retry]\npossibly_billed = {may}"));
            scenarios.push(((name, class, status, may), scenario));
        }
    }
    transports::each_of(&scenarios, |(_, class, status, may), outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        if *may {
            assert_eq!((outcome.answer().status, record.cost_picousd), (200, CHAT_COST));
            assert_eq!(attempts(outcome), [(*class, 1), (*class, 1), (Success, 1)]);
        } else {
            assert_eq!((outcome.answer().status, record.cost_picousd), (*status, 0));
            assert_eq!((attempts(outcome), outcome.forwarded()), (vec![(*class, 1)], 1));
        }
    });
}

/// The time in which an attempt may begin is bounded, whatever the number of attempts.
#[test]
fn no_attempt_begins_after_the_budget() {
    let config = "[retry]\nattempts = 10\nbudget = \"4s\"";
    let connections = vec![error("503 No", ""); 12];
    let outcome = script::run(&over(&post("", BODY), connections).under(config));
    outcome.assert_clean();
    assert_eq!(outcome.answer().status, 503);
    // 0.5 + 1 + 2 s, half of each by chance: the fourth wait of up to 4 s does not fit.
    let forwarded = outcome.forwarded();
    assert!((4..=5).contains(&forwarded), "{forwarded}");
    assert!(elapsed(&outcome) <= 4_100, "{}", elapsed(&outcome));
}

/// DESIGN §6: whether the key still holds is read anew before each attempt.
#[test]
fn a_key_revoked_meanwhile_ends_the_walk() {
    let revoked = vec![say(json("503 No", "Connection: close\r\n", "{}")), Act::Revoke, Act::Fin];
    let same = over(&post("", BODY), vec![revoked.clone(), vec![say(ok())]]);
    let next = [say(json("404 None", "", "{}")), Act::Revoke];
    let next = vec![Act::Revoke, next[0].clone()];
    let scenarios =
        [("the same again", same), ("the next", walked(&of("two"), next, vec![host(ok())]))];
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (403, "key_revoked"));
        assert_eq!((outcome.forwarded(), outcome.counters.attempts.get()), (1, 1));
        assert!(outcome.hosts.iter().flatten().all(|connection| connection.requests.is_empty()));
        let record = &outcome.records[0];
        assert_eq!(
            (record.ending, record.cost_picousd, record.status),
            (Ending::Exhausted, 0, 403)
        );
    });
}

/// A node that stops does not wait for a back-off.
#[test]
fn a_stop_ends_a_wait_for_the_next_attempt() {
    let acts = vec![say(json("503 No", "Retry-After: 4\r\n", "{}")), Act::Signal("busy")];
    let client = vec![
        send(post("", BODY)),
        Step::Wait("busy"),
        Step::Pause(Duration::from_millis(200)),
        Step::Drain,
        Step::Answer,
        Step::End,
    ];
    let scenario = Scenario {
        clients: vec![client],
        upstream: vec![Manner::once(acts)],
        ..Scenario::default()
    };
    transports::each(&scenario.under("[deadlines]\ndrain = \"500ms\""), |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (503, "shutting_down"));
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.cost_picousd), (Ending::Shutdown, 0));
        assert_eq!(outcome.forwarded(), 1);
    });
}

/// A pooled connection that turns out dead is replaced at once and counts for nothing; what the
/// fresh one brings is an attempt like any other.
#[test]
fn a_stale_connection_costs_no_attempt_of_the_walk() {
    let first = Manner {
        turns: vec![
            Turn::answer(ok().as_bytes()),
            Turn { read: Read::Whole, acts: vec![Act::Close] },
        ],
        repeats: false,
    };
    let mut client = call(post("", BODY));
    client.extend(call(post("", BODY)));
    let upstream = vec![
        first,
        Manner::once(error("503 No", "")),
        Manner::once(error("503 No", "")),
        Manner::always(ok().as_bytes()),
    ];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 200]);
        let record = &outcome.records[1];
        // The dead one, its replay, and two more after a wait each.
        assert_eq!((record.attempts, outcome.counters.replays.get()), (4, 1));
        assert_eq!(
            (record.listed[0].class, record.listed[0].possibly_billed),
            (StatusClass::Cut, 0)
        );
        assert_eq!(record.provenance, Provenance::Reported);
    });
}

/// Case `retry-cross-client`: a client's own idempotency is the provider's affair; it is passed on
/// with every attempt.
#[test]
fn a_clients_idempotency_key_goes_on_with_every_attempt() {
    assert_eq!(
        row(CASES, "retry-cross-client")["expect"]["if_not_supported"],
        "header is passed on, never half done"
    );
    let request = post("Idempotency-Key: k1\r\n", BODY);
    let scenario = over(&request, vec![error("503 No", ""), vec![say(ok())]]);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let keys: Vec<_> = outcome.requests().map(|asked| asked.field("idempotency-key")).collect();
        assert_eq!(keys, [Some("k1".to_owned()), Some("k1".to_owned())]);
    });
}
