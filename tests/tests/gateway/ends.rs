//! The end of an answer is where its dialect says it is: nothing behind it is passed on, and the
//! upstream connection lives on only if its framing ended too. And what an answer cannot have used
//! is never taken for what it used.

use crate::events::{
    CHAT, CHAT_COST, LAST_CHUNK, MESSAGES, MESSAGES_COST, ask, ask_messages, ask_with_usage, chunk,
    chunked, framed, head, without_usage,
};
use crate::streams::gzip;
use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Act, Manner, Scenario, Step, say, send};
use gateway_tests::transports;
use std::time::Duration;
use store::ending::{Ending, Provenance};
use store::record::flag;
use tollgate::exchange::codes::number;

/// A stream, then another call on the same connection, over an upstream that does this on its
/// first connection.
fn twice(request: &str, acts: Vec<Act>) -> Scenario {
    let mut client = call(request);
    client.extend(call(post("", BODY)));
    client.extend([Step::Fin, Step::End]);
    let upstream = vec![Manner::once(acts), Manner::always(ok().as_bytes())];
    Scenario { clients: vec![client], upstream, ..Scenario::default() }
}

/// What an upstream may send behind the end of its stream.
const BEHIND: [&str; 4] = [
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"for free\"}}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":900,\"completion_tokens\":900}}\n\n",
    ": bye\n\n",
    "data: [DONE]\n\n",
];

#[test]
fn nothing_behind_the_terminator_is_passed_on() {
    let mut scenarios = Vec::new();
    for (request, body, cost) in
        [(ask_with_usage(), CHAT, CHAT_COST), (ask_messages(), MESSAGES, MESSAGES_COST)]
    {
        for behind in BEHIND {
            for end in ["\n", "\r\n", "\r"] {
                let (body, behind) = (body.replace('\n', end), behind.replace('\n', end));
                let both = [chunked().into_bytes(), chunk(body.clone() + &behind)].concat();
                let apart = [chunked().into_bytes(), chunk(&body)].concat();
                let much = behind.repeat(2_000);
                for acts in [
                    vec![say(&both), Act::Hang],
                    vec![say(&apart), Act::Pause(Duration::from_millis(20)), say(chunk(&much))],
                ] {
                    scenarios.push(((body.clone(), cost), twice(&request, acts)));
                }
            }
        }
    }
    transports::each_of(&scenarios, |(body, cost), outcome| {
        outcome.assert_clean();
        let [stream, next] = &outcome.clients[0].answers[..] else { panic!("{outcome:?}") };
        assert_eq!((stream.text(), next.text()), (body.clone(), COMPLETION.to_owned()));
        assert_eq!(outcome.endings(), ["succeeded", "succeeded"]);
        let record = &outcome.records[0];
        assert_eq!((record.cost_picousd, record.relayed_bytes), (*cost, body.len() as u64));
        // Nobody knows where the next answer would begin.
        assert_eq!((outcome.upstream.len(), outcome.counters.upstream_reused.get()), (2, 0));
        assert_ne!(outcome.upstream[0].end, End::Open);
    });
}

/// The end of the framing may be a packet of its own: that is worth a moment, and the connection.
#[test]
fn an_end_of_the_framing_behind_the_terminator_keeps_the_connection() {
    let body = without_usage(CHAT);
    let begun = [chunked().into_bytes(), chunk(CHAT)].concat();
    let whole = framed(crate::events::Framing::Chunked, CHAT.as_bytes());
    let mut scenarios = Vec::new();
    for (name, acts) in [
        ("one read", vec![say(&whole)]),
        ("apart", vec![say(&begun), Act::Pause(Duration::from_millis(50)), say(LAST_CHUNK)]),
    ] {
        let mut scenario = twice(&ask(""), acts);
        scenario.upstream[0].turns.push(gateway_tests::scenario::Turn::answer(ok().as_bytes()));
        scenarios.push((name, scenario));
    }
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.clients[0].answers[0].text(), body);
        assert_eq!((outcome.upstream.len(), outcome.counters.upstream_reused.get()), (1, 1));
    });
}

/// However slowly it trickles in: the client has its answer, and soon the end of it.
#[test]
fn a_framing_that_never_ends_is_not_waited_for() {
    let mut acts = vec![say([chunked().into_bytes(), chunk(CHAT)].concat()), say("0;")];
    for _ in 0..40 {
        acts.extend([Act::Pause(Duration::from_millis(200)), say("x")]);
    }
    let mut scenario = twice(&ask(""), acts);
    scenario.clients[0].insert(2, Step::Signal("read"));
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.endings(), ["succeeded", "succeeded"]);
        let record = &outcome.records[0];
        let took = record.closed_unix_ms - record.opened_unix_ms;
        assert!(took < 1_500, "{took} ms");
    });
}

/// DESIGN's table: a success with neither content, usage nor a reason to finish is none.
#[test]
fn a_stream_with_nothing_but_its_terminator_is_no_answer() {
    let mut scenarios = Vec::new();
    let stop = &MESSAGES[MESSAGES.find("event: message_stop").unwrap()..];
    for (request, body) in [
        (ask(""), "data: [DONE]\n\n"),
        (ask_with_usage(), "data: [DONE]"),
        (ask(""), ": hi\n\ndata:[DONE]\r\n\r\n"),
        (ask_messages(), stop),
    ] {
        for acts in [
            vec![say([chunked().into_bytes(), chunk(body), LAST_CHUNK.to_vec()].concat())],
            vec![say(head("") + body), Act::Fin],
        ] {
            let mut scenario = Scenario {
                clients: vec![call(&request)],
                upstream: vec![Manner::once(acts)],
                ..Scenario::default()
            };
            scenario.clients[0].extend([Step::Fin, Step::End]);
            scenarios.push((body, scenario));
        }
    }
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!((outcome.answer().status, record.error_code), (502, number("empty_completion")));
        assert_eq!((record.ending, record.cost_picousd), (Ending::Exhausted, 0));
    });
}

/// A usage object with these counts.
fn usage(input: &str, output: &str) -> String {
    format!(r#""usage":{{"prompt_tokens":{input},"completion_tokens":{output}}}"#)
}

/// Counts that no answer can have.
const IMPOSSIBLE: [&str; 7] =
    ["-5", "1.5", "1e300", "9007199254740993", "100000001", "\"7\"", "18446744073709551616"];

/// "hi" is one token of output; the body of the request has none of input.
#[test]
fn counts_that_cannot_be_are_never_charged_as_reported() {
    let reported = r#""usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}"#;
    assert!(CHAT.contains(reported) && COMPLETION.contains(reported));
    let mut scenarios = Vec::new();
    for odd in IMPOSSIBLE {
        for (input, output) in [(odd, "2"), ("1", odd), (odd, odd)] {
            let with = |text: &str| text.replace(reported, &usage(input, output));
            let stream = [chunked().into_bytes(), chunk(with(CHAT)), LAST_CHUNK.to_vec()].concat();
            let whole = json("200 OK", "", &with(COMPLETION)).into_bytes();
            for (request, answer) in [(ask(""), stream), (post("", BODY), whole)] {
                let scenario = Scenario::plain(call(request), &answer);
                scenarios.push(((input, output), scenario));
            }
        }
    }
    transports::each_of(&scenarios, |(input, output), outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().status, outcome.endings()), (200, vec!["succeeded".into()]));
        let record = &outcome.records[0];
        assert_eq!(record.provenance, Provenance::Estimated, "{input} {output}");
        assert!(record.has(flag::USAGE_IMPOSSIBLE), "{input} {output}");
        // What could be is noted; what could not be is estimated, by at most the bytes relayed.
        let most = record.relayed_bytes / 4 + 1;
        assert_eq!(record.tokens[0], if *input == "1" { 1 } else { 0 });
        assert!((1..=most).contains(&u64::from(record.tokens[4])), "{:?}", record.tokens);
        assert_eq!(outcome.counters.usage_missing.get(), 1);
    });
}

/// What a model said is text; the JSON around it is none.
#[test]
fn a_whole_answer_without_a_count_is_charged_for_its_text_alone() {
    let usage = r#","usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}"#;
    assert!(COMPLETION.contains(usage));
    let chat = COMPLETION.replace(usage, "");
    let said = |text: &str| chat.replace("\"hi\"", &format!("\"{text}\""));
    let calls = r#""content":null,"tool_calls":[{"id":"call_1","type":"function","function":
        {"name":"weather","arguments":"{\"place\":\"a\"}"}}]"#;
    let called = chat.replace("\"content\":\"hi\"", calls);
    let mut scenarios = Vec::new();
    for (body, tokens) in [
        (chat.clone(), 1),
        (said("eight bytes more or less"), 6),
        (said("Grüße"), 1 + 2),
        (called, 5),
        (said(&"toll ".repeat(40_000)), 50_000),
    ] {
        let answer = json("200 OK", "", &body);
        scenarios.push((tokens, Scenario::plain(call(post("", BODY)), answer.as_bytes())));
    }
    transports::each_of(&scenarios, |tokens, outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!(record.provenance, Provenance::Estimated);
        assert_eq!((record.tokens[4], record.has(flag::USAGE_UNREADABLE)), (*tokens, false));
    });
}

/// What nobody can read may be text: a stream that breaks off behind it is charged for its bytes.
#[test]
fn data_that_is_no_json_counts_as_text_when_a_stream_breaks_off() {
    let text = "lorem ipsum ".repeat(20_000);
    let said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hihi\"}}]}\n\n";
    let mut scenarios = Vec::new();
    for end in ["\n\n", ""] {
        let body = format!("{said}data: {text}{end}");
        let acts = vec![
            say([chunked().into_bytes(), chunk(&body)].concat()),
            Act::Pause(Duration::from_millis(150)),
            Act::Fin,
        ];
        let client = vec![send(ask("")), Step::End];
        let upstream = vec![Manner::once(acts)];
        scenarios.push((end, Scenario { clients: vec![client], upstream, ..Scenario::default() }));
    }
    let tokens = text.len() as u32 / 4;
    transports::each_of(&scenarios, |_, outcome| {
        assert_eq!(outcome.endings(), ["upstream_cut"]);
        let record = &outcome.records[0];
        assert_eq!(record.provenance, Provenance::Estimated);
        assert!((tokens..=tokens + 2).contains(&record.tokens[4]), "{:?}", record.tokens);
    });
}

/// A body that is called gzip and is none cannot be read: it passes, and the record says so.
#[test]
fn an_answer_that_is_no_gzip_though_it_says_so_is_flagged() {
    let whole = json("200 OK", "Content-Encoding: gzip\r\n", COMPLETION);
    let fields = "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n";
    let stream = [head(fields).into_bytes(), chunk(CHAT), LAST_CHUNK.to_vec()].concat();
    let scenarios = [
        ("whole", Scenario::plain(call(post("", BODY)), whole.as_bytes())),
        ("stream", Scenario::plain(call(ask("")), &stream)),
    ];
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().status, outcome.endings()), (200, vec!["succeeded".into()]));
        let record = &outcome.records[0];
        assert!(record.has(flag::USAGE_UNREADABLE));
        assert_eq!(record.provenance, Provenance::Estimated);
        assert_eq!(u64::from(record.tokens[4]), record.relayed_bytes.div_ceil(4));
        assert_eq!(outcome.counters.usage_missing.get(), 1);
    });
}

/// Found by the simulation: what decodes a stream takes one without its checksum for broken.
#[test]
fn the_checksum_of_a_coded_stream_may_come_a_while_behind_its_events() {
    let coded = gzip(CHAT.as_bytes());
    let (events, checksum) = coded.split_at(coded.len() - 8);
    let fields = "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n";
    let acts = vec![
        say([head(fields).into_bytes(), chunk(events)].concat()),
        Act::Pause(Duration::from_millis(900)),
        say([chunk(checksum), LAST_CHUNK.to_vec()].concat()),
    ];
    let upstream = vec![Manner::once(acts)];
    let scenario = Scenario { clients: vec![call(ask(""))], upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.endings(), ["succeeded"]);
        assert!(outcome.answer().body == coded, "every byte");
        assert_eq!(outcome.records[0].provenance, Provenance::Reported);
    });
}

/// A client that ends its side at once, over an upstream that takes so long.
fn half_closed(request: &str, silent: Vec<Act>, config: &str) -> Scenario {
    let mut acts = silent;
    acts.push(Act::Hang);
    let client = vec![send(request), Step::Fin, Step::End];
    let upstream = vec![Manner::once(acts)];
    Scenario { clients: vec![client], upstream, ..Scenario::default() }
        .under("[deadlines]\nhalf_closed = \"400ms\"")
        .under(config)
}

/// A closed socket looks like one whose sending side has ended: without a byte of the answer it is
/// not waited for longer than a while, and its place is free again.
#[test]
fn a_client_that_has_ended_its_side_is_not_waited_for_for_ever() {
    let abort = "[endings]\nclient_left = \"abort\"";
    let drain = "[endings]\ndrain_time = \"500ms\"";
    let begun = json("200 OK", "", COMPLETION);
    let (begun, _) = begun.split_at(begun.len() - 20);
    let retried = vec![say(json("503 Busy", "Retry-After: 4\r\n", "{}"))];
    let mut scenarios = Vec::new();
    for (name, request, silent, config) in [
        ("before the head", post("", BODY), vec![], abort),
        ("before the head of a stream", ask(""), vec![], abort),
        ("read on for a while", post("", BODY), vec![], drain),
        ("within what is withheld", post("", BODY), vec![say(begun)], abort),
        ("between two attempts", post("", BODY), retried, abort),
    ] {
        scenarios.push(((name, config == drain), half_closed(&request, silent, config)));
    }
    transports::each_of(&scenarios, |(_, drained), outcome| {
        assert_eq!(outcome.clients[0].faults, Vec::<String>::new());
        assert!(outcome.clients[0].surplus.is_empty() && outcome.clients[0].answers.is_empty());
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.attempts), (Ending::ClientLeft, 1));
        let took = record.closed_unix_ms - record.opened_unix_ms;
        let least = if *drained { 900 } else { 400 };
        assert!((least..least + 1_500).contains(&took), "{took} ms");
        assert_eq!(outcome.counters.drains.get(), u64::from(*drained));
        assert_eq!(outcome.counters.connections_open.get(), 0);
    });
}

/// Who waits for an answer that comes in time gets it, however long it then takes.
#[test]
fn a_half_closed_client_of_a_slow_upstream_is_answered() {
    let slow = Act::Pause(Duration::from_millis(300));
    let (first, rest) = CHAT.split_at(
        CHAT.find("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},").unwrap(),
    );
    let mut scenarios = Vec::new();
    for (name, request, acts, text) in [
        ("whole", post("", BODY), vec![slow.clone(), say(ok())], COMPLETION.to_owned()),
        (
            "stream",
            ask_with_usage(),
            vec![
                slow.clone(),
                say([chunked().into_bytes(), chunk(first)].concat()),
                slow.clone(),
                slow,
                say([chunk(rest), LAST_CHUNK.to_vec()].concat()),
            ],
            CHAT.to_owned(),
        ),
    ] {
        let mut scenario = half_closed(&request, acts, "[endings]\nclient_left = \"abort\"");
        scenario.clients[0] = vec![send(&request), Step::Fin, Step::Answer, Step::End];
        scenarios.push(((name, text), scenario));
    }
    transports::each_of(&scenarios, |(_, text), outcome| {
        outcome.assert_clean();
        assert_eq!(
            (outcome.answer().text(), outcome.endings()),
            (text.clone(), vec!["succeeded".into()])
        );
    });
}

/// However long the chunk is, if what it is stands before what makes it long.
#[test]
fn a_usage_chunk_of_any_length_stays_hidden() {
    let usage = r#""usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}"#;
    assert!(CHAT.contains(usage));
    let long = CHAT.replace(usage, &format!("{usage},\"x\":\"{}\"", "y".repeat(300 << 10)));
    let in_pieces: Vec<u8> = long.as_bytes().chunks(7_000).flat_map(chunk).collect();
    let answer = [chunked().as_bytes(), &in_pieces, LAST_CHUNK].concat();
    let answered =
        [("asked", ask_with_usage(), long.as_str()), ("not", ask(""), &without_usage(CHAT))].map(
            |(name, request, text)| {
                ((name, text.to_owned()), Scenario::plain(call(request), &answer))
            },
        );
    // Names of such a length would fill the log of a failure.
    for ((name, text), scenario) in answered {
        transports::each_of(&[(name, scenario)], |_, outcome| {
            outcome.assert_clean();
            assert!(outcome.answer().text() == text, "{} bytes", outcome.answer().body.len());
            let record = &outcome.records[0];
            assert_eq!((record.cost_picousd, record.provenance), (CHAT_COST, Provenance::Reported));
        });
    }
}
