//! The field cases of HTTP, encoding, net and runtime, through the pipeline.

use crate::events::{CHAT, Framing, streamed, without_usage};
use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::answer::Framed;
use gateway_tests::corpus::{CASES, bytes, row, rows, text, variants};
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Act, Manner, Scenario, Split, Step, Turn, say, send};
use gateway_tests::transports;

/// Where each case is played.
const PLAYED: &[(&str, &str)] = &[
    ("enc-gzip", "compressed_answers_pass_untouched"),
    ("http-cl-te", "refused_heads_and_bodies_end_the_connection"),
    ("http-double-terminator", "a_terminator_is_written_once"),
    ("http-trailer", "refused_heads_and_bodies_end_the_connection"),
    ("http-chunk-ext-lf", "refused_heads_and_bodies_end_the_connection"),
    ("http-fold", "refused_heads_and_bodies_end_the_connection"),
    ("http-fold-response", "odd_answers_are_dropped_or_refused"),
    ("http-huge-head", "a_huge_head_is_refused_at_its_bound"),
    ("http-case", "names_and_schemes_are_known_in_any_case"),
    ("http-10", "an_old_client_gets_no_chunks"),
    ("http-10-upstream", "odd_answers_are_dropped_or_refused"),
    ("http-pipeline", "pipelined_requests_are_answered_in_order"),
    ("http-hop", "a_clients_connection_fields_do_not_reach_the_pool"),
    ("http-upgrade", "an_upgrade_opens_no_tunnel"),
    ("http-bodyless", "odd_answers_are_dropped_or_refused"),
    ("http-1xx", "odd_answers_are_dropped_or_refused"),
    ("http-expect", "continue_comes_after_the_key"),
    ("http-early-413", "in `early`"),
    ("http-slowloris", "in `deadlines`"),
    ("http-dup-cl", "refused_heads_and_bodies_end_the_connection"),
    ("net-ipv6-zone", "the URLs of the configuration: proxy/src/config/base_url"),
    ("pool-stale", "in `replay`"),
    ("pool-three-ways", "in `replay`"),
    ("rt-accept-emfile", "in `accepting`"),
    ("rt-uring-buffer", "in `accepting`, and the contract of the transports"),
    ("json-response-model", "in `bodies`"),
];

#[test]
fn every_case_is_played_somewhere() {
    let areas = ["http", "net", "encoding", "pool", "runtime", "model"];
    let ids: Vec<String> = rows(CASES)
        .iter()
        .filter(|row| areas.contains(&text(row, "area")))
        .map(|row| text(row, "id").to_owned())
        .collect();
    for id in &ids {
        assert!(PLAYED.iter().any(|(known, _)| known == id), "{id} is played nowhere");
    }
    assert_eq!(ids.len(), PLAYED.len(), "a case that is not there");
}

#[test]
fn refused_heads_and_bodies_end_the_connection() {
    let mut scenarios = Vec::new();
    let ids = ["http-cl-te", "http-trailer", "http-chunk-ext-lf", "http-fold", "http-dup-cl"];
    for id in ids {
        for (at, input) in variants(&row(CASES, id)).into_iter().enumerate() {
            let client = vec![send(input), Step::Answer, Step::End];
            scenarios.push((format!("{id} {at}"), Scenario::plain(client, ok().as_bytes())));
        }
    }
    assert_eq!(scenarios.len(), 11);
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_request"));
        assert_eq!((answer.closes(), outcome.clients[0].end), (true, End::Fin));
        assert_eq!((outcome.forwarded(), outcome.records.len()), (0, 0));
    });
}

/// Not the caller's mistake, and not worth another try: the status says which of the two it is.
#[test]
fn what_of_http_is_not_spoken_here_is_told_apart_from_what_is_malformed() {
    let head = |version: &str, coding: &str| {
        format!(
            "POST /v1/chat/completions {version}\r\nHost: gw.test\r\n\
             Authorization: Bearer sk-test\r\nTransfer-Encoding: {coding}\r\n\r\n"
        )
    };
    let scenarios = [
        ((505, "http_version_not_supported"), head("HTTP/3.0", "chunked")),
        ((505, "http_version_not_supported"), head("HTTP/1.2", "chunked")),
        ((505, "http_version_not_supported"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        ((501, "not_implemented"), head("HTTP/1.1", "gzip, chunked")),
        ((400, "invalid_request"), head("HTTP/11", "chunked")),
    ]
    .map(|(told, head)| {
        (told, Scenario::plain(vec![send(head), Step::Answer, Step::End], ok().as_bytes()))
    });
    transports::each_of(&scenarios, |&(status, code), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (status, code));
        let retry = answer.field("x-should-retry");
        assert_eq!(retry.as_deref(), (status >= 500).then_some("false"));
        assert_eq!((answer.closes(), outcome.clients[0].end), (true, End::Fin));
        assert_eq!((outcome.forwarded(), outcome.records.len()), (0, 0));
    });
}

#[test]
fn a_terminator_is_written_once() {
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: gw.test\r\nAuthorization: Bearer sk-test\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{BODY}\r\n0\r\n\r\n",
        BODY.len()
    );
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{COMPLETION}\r\n0\r\n\r\n",
        COMPLETION.len()
    );
    let cut = |bytes: &str| Split::At(vec![bytes.len() - 5]);
    let sent = Step::Send(request.clone().into_bytes(), cut(&request));
    let client = vec![sent.clone(), Step::Answer, sent, Step::Answer, Step::Fin, Step::End];
    let mut manner = Manner::always(b"");
    manner.turns[0].acts = vec![Act::Send(answer.clone().into_bytes(), cut(&answer))];
    let scenario =
        Scenario { clients: vec![client], upstream: vec![manner], ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 200]);
        assert_eq!((outcome.upstream.len(), outcome.upstream[0].surplus.len()), (1, 0));
        let bodies: Vec<String> = outcome.requests().map(|asked| asked.text()).collect();
        assert_eq!(bodies, [BODY, BODY]);
    });
}

#[test]
fn odd_answers_are_dropped_or_refused() {
    let stored = |id: &str, at: usize| variants(&row(CASES, id)).remove(at);
    let interim = String::from_utf8(stored("http-1xx", 0)).unwrap();
    let interim = interim
        .replace("Content-Length: 2", &format!("Content-Length: {}", COMPLETION.len()))
        .replace("{}", COMPLETION);
    let usage = r#"{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
    let (gone, nothing) = ("upstream_invalid", "empty_completion");
    for (input, fin, code, body) in [
        (stored("http-fold-response", 0), false, gone, ""),
        (stored("http-10-upstream", 0), true, "", usage),
        // Overridden by DESIGN §15: 204, 304 and {} are no answers to a governed call. No route
        // sends HEAD upstream; the third variant is an empty answer to POST here.
        (stored("http-bodyless", 0), false, gone, ""),
        (stored("http-bodyless", 1), false, gone, ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(), false, "", ""),
        (stored("http-1xx", 0), false, nothing, ""),
        (interim.into_bytes(), false, "", COMPLETION),
    ] {
        let mut acts = vec![say(&input)];
        acts.extend(fin.then_some(Act::Fin));
        let mut first = Manner::once(acts);
        first.turns.push(Turn::answer(ok().as_bytes()));
        let upstream = vec![first, Manner::always(ok().as_bytes())];
        let mut client = call(post("", BODY));
        client.extend(call(post("", BODY)));
        let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            let [first, second] = outcome.clients[0].answers.as_slice() else {
                panic!("{outcome:?}")
            };
            let shown = String::from_utf8_lossy(&input);
            if body.is_empty() {
                assert_eq!(first.status, 502, "{shown}");
                assert!(code.is_empty() || first.code() == code, "{shown} {}", first.text());
            } else {
                assert_eq!((first.status, first.text().as_str()), (200, body), "{shown}");
            }
            assert_eq!((second.status, outcome.clients[0].interim.len()), (200, 0));
            if fin {
                assert_eq!((first.framed, outcome.upstream.len()), (Framed::Length, 2));
                let tokens = outcome.records[0].tokens;
                assert_eq!((tokens[0], tokens[4]), (1, 1), "usage");
            }
        });
    }
}

#[test]
fn a_huge_head_is_refused_at_its_bound() {
    let whole = bytes(&row(CASES, "http-huge-head"));
    // What is behind the bound is never sent: the answer comes all the same.
    let kilobytes: Vec<usize> = (1024..33 << 10).step_by(1024).collect();
    let beginning = whole[..33 << 10].to_vec();
    let client = vec![Step::Send(beginning, Split::At(kilobytes)), Step::Answer, Step::End];
    transports::each(&Scenario::plain(client, b""), |outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().status, outcome.forwarded()), (431, 0));
        assert_eq!(outcome.answer().code(), "header_too_large");
    });
}

#[test]
fn names_and_schemes_are_known_in_any_case() {
    let scenario = Scenario::plain(call(bytes(&row(CASES, "http-case"))), ok().as_bytes());
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, 200);
        let asked = outcome.asked();
        assert_eq!(asked.count("authorization"), 1);
        assert_eq!(asked.field("authorization").unwrap(), "Bearer sk-of-the-provider");
    });
}

/// Stored as streams; the same as whole calls.
fn stored_and_whole(id: &str) -> [(&'static str, Vec<u8>); 2] {
    let stored = bytes(&row(CASES, id));
    let whole = String::from_utf8(stored.clone()).unwrap();
    let whole = whole.replace("\"stream\":true", "\"stream\":null").into_bytes();
    assert_ne!(whole, stored);
    [("stored", stored), ("whole", whole)]
}

#[test]
fn an_old_client_gets_no_chunks() {
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{COMPLETION}\r\n0\r\n\r\n",
        COMPLETION.len()
    );
    let scenarios = stored_and_whole("http-10").map(|(name, input)| {
        let client = vec![send(input), Step::Answer, Step::End];
        let answer =
            if name == "stored" { streamed(Framing::Chunked, CHAT) } else { chunked.clone() };
        (name, Scenario::plain(client, answer.as_bytes()))
    });
    transports::each_of(&scenarios, |name, outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, outcome.forwarded()), (200, 1));
        assert_eq!((answer.count("transfer-encoding"), answer.closes()), (0, true));
        assert_eq!(outcome.clients[0].end, End::Fin);
        let (text, framed) = match *name {
            "stored" => (without_usage(CHAT), Framed::Close),
            _ => (COMPLETION.to_owned(), Framed::Length),
        };
        assert_eq!((answer.text(), answer.framed), (text, framed));
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let scenarios = stored_and_whole("http-pipeline").map(|(name, input)| {
        let client = vec![send(input), Step::Answer, Step::Answer, Step::Fin, Step::End];
        let answer = if name == "stored" { streamed(Framing::Chunked, CHAT) } else { ok() };
        (name, Scenario::plain(client, answer.as_bytes()))
    });
    transports::each_of(&scenarios, |name, outcome| {
        outcome.assert_clean();
        let answers = &outcome.clients[0].answers;
        assert_eq!(outcome.statuses(0), [200, 200]);
        let text = if *name == "stored" { without_usage(CHAT) } else { COMPLETION.to_owned() };
        assert_eq!(answers[0].text(), text);
        assert!(answers[1].text().starts_with("{\"object\":\"list\""));
        assert_eq!(outcome.forwarded(), 1);
    });
}

#[test]
fn a_clients_connection_fields_do_not_reach_the_pool() {
    let case = row(CASES, "http-hop");
    let first = vec![send(bytes(&case)), Step::Answer, Step::End, Step::Signal("first")];
    let second = vec![Step::Wait("first"), send(post("", BODY)), Step::Answer];
    let upstream = vec![Manner::always(ok().as_bytes())];
    let scenario = Scenario { clients: vec![first, second], upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.statuses(0), outcome.statuses(1)), (vec![200], vec![200]));
        assert!(outcome.clients[0].answers[0].closes());
        assert_eq!((outcome.upstream.len(), outcome.forwarded()), (1, 2), "reused");
        for name in case["expect"]["upstream_lacks"].as_array().unwrap() {
            let name = name.as_str().unwrap().split(':').next().unwrap().to_lowercase();
            assert_eq!(outcome.requests().next().unwrap().count(&name), 0, "{name}");
        }
    });
}

#[test]
fn an_upgrade_opens_no_tunnel() {
    let mut client = vec![send(bytes(&row(CASES, "http-upgrade")))];
    client.extend([Step::Answer, Step::Answer, Step::Fin, Step::End]);
    transports::each(&Scenario::plain(client, ok().as_bytes()), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 401]);
        assert!(outcome.upstream.is_empty());
    });
}

#[test]
fn continue_comes_after_the_key() {
    let head = String::from_utf8(bytes(&row(CASES, "http-expect"))).unwrap();
    let scenarios = [
        ((100, 200), vec![send(&head), Step::Interim, send(BODY), Step::Answer]),
        ((0, 401), vec![send(head.replace("sk-test", "sk-other")), Step::Answer, Step::End]),
        ((0, 413), vec![send(head.replace(": 27", ": 99999999")), Step::Answer, Step::End]),
        // The body did not wait: nobody needs to be told to send it.
        ((0, 200), vec![send(format!("{head}{BODY}")), Step::Answer]),
    ];
    let scenarios =
        scenarios.map(|(expected, client)| (expected, Scenario::plain(client, ok().as_bytes())));
    transports::each_of(&scenarios, |&(interim, status), outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, status);
        assert_eq!(outcome.clients[0].interim, if interim > 0 { vec![interim] } else { vec![] });
        assert_eq!(outcome.forwarded(), usize::from(status == 200));
        assert!(outcome.requests().all(|asked| asked.count("expect") == 0));
    });
}

#[test]
fn compressed_answers_pass_untouched() {
    assert_eq!(row(CASES, "enc-gzip")["area"], "encoding");
    let stored = bytes(&row(CASES, "enc-gzip"));
    let answer = |body: &[u8]| {
        let mut out = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        out.extend_from_slice(body);
        out
    };
    let as_stored = Scenario::plain(call(&stored), &answer(GZIP));
    transports::each(&as_stored, |outcome| {
        assert_eq!((outcome.answer().status, outcome.forwarded()), (401, 0), "it has no key");
    });
    let request = post("Accept-Encoding: gzip, br\r\n", BODY);
    transports::each(&Scenario::plain(call(request), &answer(GZIP)), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.asked().field("accept-encoding").unwrap(), "identity");
        assert_eq!(outcome.asked().count("accept-encoding"), 1);
        let answer = outcome.answer();
        assert_eq!(answer.field("content-encoding").unwrap(), "gzip");
        assert_eq!((answer.status, answer.body.as_slice()), (200, GZIP));
        assert_eq!(outcome.endings(), ["succeeded"]);
        // Decoded aside: the usage is read all the same.
        let record = &outcome.records[0];
        assert_eq!((record.tokens[0], record.tokens[4], record.cost_picousd), (1, 2, 210));
    });
}

/// `{"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`, compressed.
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0x56, 0x2a, 0x2d, 0x4e, 0x4c,
    0x4f, 0x55, 0xb2, 0xaa, 0x56, 0x2a, 0x28, 0xca, 0xcf, 0x2d, 0x28, 0x89, 0x2f, 0xc9, 0xcf, 0x4e,
    0xcd, 0x2b, 0x56, 0xb2, 0x32, 0xd4, 0x51, 0x4a, 0x06, 0x0a, 0xe4, 0xa4, 0x96, 0x64, 0xe6, 0xe7,
    0xc1, 0x45, 0x8d, 0x74, 0x94, 0x4a, 0xf2, 0x4b, 0x12, 0x73, 0xe0, 0x02, 0xc6, 0xb5, 0xb5, 0x00,
    0xd9, 0xfa, 0x83, 0x3f, 0x44, 0x00, 0x00, 0x00,
];

#[test]
fn the_model_list_and_health_are_answered_here() {
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer sk-test\r\n\r\n")
    };
    let mut client = Vec::new();
    for path in ["/healthz", "/readyz", "/startupz", "/v1/models", "/v1/embeddings", "/none"] {
        client.extend(call(get(path)));
    }
    client.extend([send(get("/healthz").replace("GET", "HEAD")), Step::HeadAnswer]);
    let scenario = Scenario::plain(client, b"").under("[alias]\nnick = \"a\"");
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 200, 200, 200, 501, 404, 200]);
        assert!(outcome.clients[0].answers[3].text().contains("\"id\":\"nick\""));
        assert!(outcome.upstream.is_empty());
    });
    let unserved = json("200 OK", "", COMPLETION);
    let client = vec![send(get("/v1/chat/completions")), Step::Answer];
    transports::each(&Scenario::plain(client, unserved.as_bytes()), |outcome| {
        assert_eq!(outcome.answer().field("allow").as_deref(), Some("POST"));
    });
}
