//! Peers that mean harm, or are broken in the ways that look like it.

use crate::{BODY, ONE_ATTEMPT, call, json, ok, post};
use gateway_tests::scenario::{Act, Manner, Read, Scenario, Step, Turn, say, send};
use gateway_tests::transports;
use std::time::Duration;

/// Servers that hand fields on as variables read `x_forwarded_for` as `x-forwarded-for`: what is
/// not passed on under one spelling is not under the other, in either direction.
#[test]
fn an_underscore_smuggles_no_field() {
    let names = [
        "Transfer_Encoding",
        "Content_Length",
        "X_Api_Key",
        "X-Api_Key",
        "X_Forwarded_For",
        "X_Tollgate_Request_Id",
        "X_Tollgate-Key",
        "Proxy_Authorization",
        "Cookie",
        "Set_Cookie2",
    ];
    let lines: String = names.iter().map(|name| format!("{name}: probe\r\n")).collect();
    let fields = "set_cookie: a=b\r\nx_tollgate_attempts: 9\r\ntransfer_encoding: chunked\r\n\
                  x_ratelimit-limit: 1\r\nx_other: kept\r\n";
    let answer = json("200 OK", fields, crate::COMPLETION);
    let request = post(&format!("{lines}X_Other: kept\r\n"), BODY);
    let scenario = Scenario::plain(call(request), answer.as_bytes());
    transports::each(&scenario, |outcome| {
        assert_eq!(outcome.statuses(0), [200]);
        let asked = &outcome.upstream[0].requests[0];
        for name in names.iter().filter(|name| **name != "Set_Cookie2") {
            assert_eq!(asked.field(name), None, "{name}");
        }
        assert_eq!(asked.field("x_other").unwrap(), "kept");
        let answer = outcome.answer();
        for name in ["set_cookie", "x_tollgate_attempts", "transfer_encoding", "x_ratelimit-limit"]
        {
            assert_eq!(answer.field(name), None, "{name}");
        }
        assert_eq!(answer.field("x_other").unwrap(), "kept");
        assert_eq!(answer.field("x-tollgate-attempts").unwrap(), "1");
    });
}

/// Two values under one credential's name leave open who is asking, wherever they stand.
#[test]
fn a_credential_given_twice_is_refused_in_any_order() {
    let (good, twice) = ("Authorization: Bearer sk-test\r\n", "x-api-key: a\r\nX-Api-Key: b\r\n");
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: gw.test\r\n\
                Content-Type: application/json\r\n";
    let orders = [
        format!("{good}{twice}"),
        format!("{twice}{good}"),
        format!("x-api-key: a\r\n{good}x-api-key: a\r\n"),
        format!("x-tollgate-key: sk-test\r\napi-key: a\r\n{good}api-key: b\r\n"),
    ];
    let scenarios: Vec<(String, Scenario)> = orders
        .into_iter()
        .map(|fields| {
            let length = BODY.len();
            let request = format!("{head}{fields}Content-Length: {length}\r\n\r\n{BODY}");
            (fields, Scenario::plain(call(request), ok().as_bytes()))
        })
        .collect();
    transports::each_of(&scenarios, |_, outcome| {
        assert_eq!((outcome.answer().status, outcome.forwarded()), (400, 0));
        assert_eq!(outcome.answer().code(), "invalid_request");
    });
}

/// Codings before `chunked` are not spoken here; without it at the end, and there alone, nobody can
/// say where the body ends.
#[test]
fn codings_that_are_not_spoken_are_told_from_bodies_without_an_end() {
    let posted = post("", BODY).replacen("Content-Length: 27\r\n", "{}\r\n", 1);
    assert!(posted.contains("{}"), "{posted}");
    for (coding, status, code) in [
        ("deflate,GZIP , Chunked", 501, "not_implemented"),
        ("chunked, gzip", 400, "invalid_request"),
        ("gzip", 400, "invalid_request"),
        ("chunked, chunked", 400, "invalid_request"),
        ("gzip;q=1, chunked", 400, "invalid_request"),
    ] {
        let request = posted.replacen("{}", &format!("Transfer-Encoding: {coding}"), 1);
        let client = vec![send(&request), Step::Answer, Step::End];
        transports::each(&Scenario::plain(client, b""), |outcome| {
            outcome.assert_clean();
            let answer = outcome.answer();
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{coding}");
            assert!(answer.closes() && outcome.forwarded() == 0, "{coding}");
        });
    }
}

/// The write stall is about a peer that takes nothing. One that takes a large body slowly, for
/// longer than the stall in all, is no such peer.
#[test]
fn a_slow_upload_that_moves_is_no_stall() {
    const STEP: usize = 256 << 10;
    let body = format!(r#"{{"model":"a","messages":["{}"]}}"#, "x".repeat(20 * STEP));
    let slow = |nth: usize| Turn {
        read: Read::Bytes(nth * STEP),
        acts: vec![Act::Pause(Duration::from_millis(300))],
    };
    let mut turns: Vec<Turn> = (1..=20).map(slow).collect();
    turns.push(Turn::answer(ok().as_bytes()));
    let upstream = vec![Manner { turns, repeats: false }];
    let client = call(post("", &body));
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() }
        .under("[deadlines]\nwrite_stall = \"1s\"");
    transports::on_script(&[("slow", scenario)], |_, outcome| {
        assert_eq!(outcome.statuses(0), [200]);
        assert!(outcome.inside.unwrap().clients_ms >= 6_000, "longer than the stall");
        assert!(outcome.upstream[0].requests[0].text() == body, "every byte, once");
    });
}

/// And one that takes nothing more still is.
#[test]
fn an_upload_that_stops_is_a_stall() {
    let body = format!(r#"{{"model":"a","messages":["{}"]}}"#, "x".repeat(8 << 20));
    let acts = vec![Act::Wait("answered"), Act::Close];
    let turns = vec![Turn { read: Read::Bytes(300 << 10), acts }];
    let mut client = call(post("", &body));
    client.push(Step::Signal("answered"));
    let upstream = vec![Manner { turns, repeats: false }];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() }
        .under("[deadlines]\nwrite_stall = \"1s\"")
        .under(ONE_ATTEMPT);
    transports::on_script(&[("stops", scenario)], |_, outcome| {
        assert_eq!(
            (outcome.answer().status, outcome.answer().code()),
            (504, "upstream_timeout".into())
        );
        assert!(outcome.inside.unwrap().clients_ms < 2_000);
    });
}

/// Interim answers are dropped, and have a bound: without one an upstream that sends nothing else
/// keeps a core busy for as long as a first byte may take.
#[test]
fn interim_answers_without_end_are_no_answer() {
    const MOST: usize = 256;
    let interims = |count: usize| "HTTP/1.1 102 Processing\r\n\r\n".repeat(count) + &ok();
    for (count, status) in [(MOST, 200), (MOST + 1, 502)] {
        let scenario = Scenario::plain(call(post("", BODY)), interims(count).as_bytes());
        transports::each(&scenario, |outcome| {
            assert_eq!(outcome.statuses(0), [status], "{count}");
        });
    }
}

/// A thousand requests in one write come back as a thousand answers, in order.
#[test]
fn a_thousand_pipelined_requests_are_answered_in_order() {
    const COUNT: usize = 1_000;
    let request = |nth: usize| post(&format!("X-Request-Id: id-{nth}\r\n"), BODY);
    let all: String = (0..COUNT).map(request).collect();
    let mut client = vec![send(all), Step::Fin];
    client.extend((0..COUNT).map(|_| Step::Answer));
    client.push(Step::End);
    transports::each(&Scenario::plain(client, ok().as_bytes()), |outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.clients[0].answers.len(), outcome.forwarded()), (COUNT, COUNT));
        for (nth, answer) in outcome.clients[0].answers.iter().enumerate() {
            assert_eq!(answer.status, 200);
            assert_eq!(answer.field("x-request-id").unwrap(), format!("id-{nth}"));
        }
    });
}

/// No line of an answer's head can be made to end early.
#[test]
fn nothing_in_an_upstreams_head_becomes_a_field_of_its_own() {
    let heads = [
        "HTTP/1.1 200 OK\rSet-Cookie: a\r\nContent-Type: application/json\r\n",
        "HTTP/1.1 200 OK\0\r\nContent-Type: application/json\r\n",
        "HTTP/1.1 200 OK\nX-Evil: 1\r\nContent-Type: application/json\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-A: b\rX-Evil: 1\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-A: b\0\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-A : b\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-A: b\r\n X-Evil: 1\r\n",
    ];
    let scenarios: Vec<(&str, Scenario)> = heads
        .into_iter()
        .map(|head| {
            let answer = format!("{head}Content-Length: 2\r\n\r\n{{}}");
            let manner = Manner::once(vec![say(answer), Act::Hang]);
            let clients = vec![call(post("", BODY))];
            (head, Scenario { clients, upstream: vec![manner], ..Scenario::default() })
        })
        .collect();
    transports::each_of(&scenarios, |_, outcome| {
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code()), (502, "upstream_invalid".into()));
        assert_eq!((answer.field("x-evil"), answer.field("x-a")), (None, None));
    });
}
