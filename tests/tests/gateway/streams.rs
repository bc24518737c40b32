//! Streams pass byte for byte, however they are cut and framed: what the client gets is what the
//! upstream sent, but for the chunk of usage that only the gateway asked for.

use crate::events::{
    CHAT, CHAT_COST, FRAMINGS, Framing, LAST_CHUNK, MESSAGES, MESSAGES_COST, ask, ask_messages,
    ask_with_usage, chunk, chunked, framed, head, named, sent, without_usage,
};
use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::answer::Framed;
use gateway_tests::corpus::{CASES, row};
use gateway_tests::outcome::{End, Outcome};
use gateway_tests::scenario::{Act, Manner, Scenario, Split, Step, say, send};
use gateway_tests::script::{self, Faults};
use gateway_tests::transports;
use serde_json::Value;
use std::time::Duration;
use store::ending::{Ending, Provenance};

/// One call over an upstream that sends this.
fn once(request: &str, acts: Vec<Act>) -> Scenario {
    let minor = request.contains(" HTTP/1.1\r\n");
    let mut client = call(request);
    client.extend(minor.then_some(Step::Fin));
    client.push(Step::End);
    let upstream = vec![Manner::once(acts)];
    Scenario { clients: vec![client], upstream, ..Scenario::default() }
}

/// The same lines, ended in another way.
fn with_ends(body: &str, end: &str) -> String {
    body.replace('\n', end)
}

/// Request, stream, what the client sees of it, and what it costs.
fn dialects(end: &str) -> [(&'static str, String, String, String, u64); 3] {
    let chat = with_ends(CHAT, end);
    let shown = with_ends(&without_usage(CHAT), end);
    let messages = with_ends(MESSAGES, end);
    [
        ("chat", ask(""), chat.clone(), shown, CHAT_COST),
        ("chat with usage", ask_with_usage(), chat.clone(), chat, CHAT_COST),
        ("messages", ask_messages(), messages.clone(), messages, MESSAGES_COST),
    ]
}

#[test]
fn a_stream_arrives_byte_for_byte_whatever_its_lines_and_framing() {
    let mut scenarios = Vec::new();
    for end in ["\n", "\r\n", "\r"] {
        for (dialect, request, body, shown, cost) in dialects(end) {
            for (framing, minor) in FRAMINGS.iter().flat_map(|f| [(*f, 1), (*f, 0)]) {
                let request = request.replacen("HTTP/1.1", &format!("HTTP/1.{minor}"), 1);
                let scenario = once(&request, sent(framing, body.as_bytes()));
                scenarios.push(((dialect, framing, minor, shown.clone(), cost), scenario));
            }
        }
    }
    transports::each_of(&scenarios, |(dialect, _, minor, shown, cost), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.text()), (200, shown.clone()));
        let framed = if *minor == 1 { Framed::Chunked } else { Framed::Close };
        assert_eq!((answer.framed, outcome.clients[0].end), (framed, End::Fin));
        assert_eq!(answer.field("content-type").as_deref(), Some("text/event-stream"));
        assert_eq!(answer.field("cache-control").as_deref(), Some("no-cache, no-transform"));
        assert_eq!((answer.count("content-length"), answer.count("x-tollgate-request-id")), (0, 1));
        assert_eq!(answer.field("x-tollgate-attempts").as_deref(), Some("1"));
        assert_eq!(answer.field("x-tollgate-fallbacks").as_deref(), Some("0"));
        assert_eq!(outcome.endings(), ["succeeded"]);
        let record = &outcome.records[0];
        let tokens = if *dialect == "messages" { (3, 2) } else { (1, 2) };
        assert_eq!((record.tokens[0], record.tokens[4]), tokens);
        assert_eq!((record.provenance, record.cost_picousd), (Provenance::Reported, *cost));
        assert_eq!(record.relayed_bytes, shown.len() as u64);
        assert_eq!(outcome.counters.usage_missing.get(), 0);
    });
}

#[test]
fn no_stream_depends_on_how_it_is_cut() {
    for end in ["\n", "\r\n", "\r"] {
        for (dialect, request, body, shown, cost) in dialects(end) {
            let framings = if end == "\n" { &FRAMINGS[..] } else { &[Framing::Chunked] };
            for framing in framings {
                println!("{dialect} {framing:?} {end:?}");
                let bytes = framed(*framing, body.as_bytes());
                let scenario = |split: Split| {
                    let mut acts = vec![Act::Send(bytes.clone(), split)];
                    acts.extend((*framing == Framing::Close).then_some(Act::Fin));
                    once(&request, acts)
                };
                let judge = |outcome: &Outcome| {
                    outcome.assert_clean();
                    assert_eq!(outcome.answer().text(), shown);
                    assert_eq!(outcome.records[0].cost_picousd, cost);
                    outcome.endings()
                };
                script::run_splits(scenario, bytes.len(), judge);
                // Over TLS each piece is a record; what one framing is cut to, all are.
                if end == "\n" && *framing == Framing::Chunked {
                    script::run_splits(|split| scenario(split).secured(), bytes.len(), judge);
                }
            }
        }
    }
}

/// A connection that carried a stream carries the next call, on both sides.
#[test]
fn a_stream_keeps_both_connections() {
    let mut client = Vec::new();
    for request in [ask(""), post("", BODY), ask_messages(), ask("")] {
        client.extend(call(request));
    }
    client.extend([Step::Fin, Step::End]);
    for framing in [Framing::Chunked, Framing::Length] {
        let answers = [
            framed(framing, CHAT.as_bytes()),
            ok().into_bytes(),
            framed(framing, MESSAGES.as_bytes()),
            framed(framing, CHAT.as_bytes()),
        ];
        let answers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
        let upstream = vec![Manner::after(&answers, vec![])];
        let clients = vec![client.clone()];
        transports::each(&Scenario { clients, upstream, ..Scenario::default() }, |outcome| {
            outcome.assert_clean();
            assert_eq!(outcome.statuses(0), [200; 4]);
            assert_eq!((outcome.upstream.len(), outcome.counters.upstream_reused.get()), (1, 3));
            assert!(outcome.clients[0].answers.iter().all(|answer| !answer.closes()));
        });
    }
}

/// DESIGN §5.5: usage is asked for whatever the body says, and shown to whoever asked for it.
#[test]
fn usage_is_asked_for_in_every_form_of_the_options() {
    assert_eq!(row(CASES, "use-injected")["expect"]["usage"]["input"], 11);
    let mut scenarios = Vec::new();
    for (more, shown) in [
        ("", false),
        (r#","stream_options":null"#, false),
        (r#","stream_options":{}"#, false),
        (r#","stream_options":{ }"#, false),
        (r#","stream_options":{"include_usage":false}"#, false),
        (r#","stream_options":{"include_usage" : null , "x":[1]}"#, false),
        (r#","stream_options":{"include_obfuscation":false}"#, false),
        (r#","stream_options":{"x":{"include_usage":true}}"#, false),
        (r#","stream_options":{"include_usage":true}"#, true),
        (r#","stream_options":{"x":"}","include_usage":true,"y":0}"#, true),
    ] {
        for (model, alias) in [("a", ""), ("nick", "[alias]\nnick = \"a\"")] {
            let request = named(&ask(more), model);
            let body = request.split_once("\r\n\r\n").unwrap().1.to_owned();
            let scenario = once(&request, sent(Framing::Chunked, CHAT.as_bytes())).under(alias);
            scenarios.push(((body, shown), scenario));
        }
    }
    transports::each_of(&scenarios, |(body, shown), outcome| {
        outcome.assert_clean();
        let mut wanted: Value = serde_json::from_str(body).unwrap();
        wanted["model"] = "a".into();
        if wanted["stream_options"].is_null() {
            wanted["stream_options"] = serde_json::json!({});
        }
        wanted["stream_options"]["include_usage"] = true.into();
        let asked: Value = serde_json::from_slice(&outcome.asked().body).unwrap();
        assert_eq!(asked, wanted, "{}", outcome.asked().text());
        let text = if *shown { CHAT.to_owned() } else { without_usage(CHAT) };
        assert_eq!(outcome.answer().text(), text);
        assert_eq!(outcome.records[0].cost_picousd, CHAT_COST);
    });
}

/// A large body, of which only the name and the option change, is one the kernel gets in pieces.
#[test]
fn a_large_request_for_a_stream_goes_on_with_two_edits() {
    let text = "x".repeat(300 << 10);
    for body in [
        format!(r#"{{"model":"nick","messages":["{text}"],"stream":true}}"#),
        format!(r#"{{"stream_options":{{}},"messages":["{text}"],"stream":true,"model":"nick"}}"#),
    ] {
        let scenario = once(&post("", &body), sent(Framing::Chunked, CHAT.as_bytes()));
        transports::each(&scenario.under("[alias]\nnick = \"a\""), |outcome| {
            outcome.assert_clean();
            let asked: Value = serde_json::from_slice(&outcome.asked().body).unwrap();
            assert_eq!((&asked["model"], &asked["stream"]), (&"a".into(), &true.into()));
            assert_eq!(asked["stream_options"]["include_usage"], true);
            assert!(asked["messages"][0].as_str() == Some(&text));
            assert_eq!(outcome.answer().text(), without_usage(CHAT));
        });
    }
}

/// Usage beside a choice is no chunk of its own: it passes.
#[test]
fn only_the_chunk_that_was_asked_for_is_hidden() {
    let usage = r#""usage":{"prompt_tokens":1,"completion_tokens":2}"#;
    let content =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}}}}],{usage}}}\n\n");
    let finish = format!(
        "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}],{usage}}}\n\n"
    );
    let null = "data: {\"choices\":[],\"usage\":null}\n\n";
    let filter = "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n";
    let done = "data: [DONE]\n\n";
    let body = format!(": hi\n\n{filter}{content}{null}{finish}{done}");
    let scenario = once(&ask(""), sent(Framing::Chunked, body.as_bytes()));
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), body);
        assert_eq!(outcome.records[0].cost_picousd, CHAT_COST);
    });
}

/// A last chunk that counts the input alone: the output is what the text counts.
#[test]
fn an_output_that_the_usage_leaves_out_is_counted_by_its_text() {
    let usage = r#""usage":{"prompt_tokens":3}"#;
    for (text, output) in [("twelve bytes", 3), ("", 0)] {
        let body = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n\
             data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n\
             data: {{\"choices\":[],{usage}}}\n\ndata: [DONE]\n\n"
        );
        let scenario = once(&ask(""), sent(Framing::Chunked, body.as_bytes()));
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            let record = &outcome.records[0];
            assert_eq!((record.tokens[0], record.tokens[4]), (3, output));
            let told = (record.ending, record.provenance);
            assert_eq!(told, (Ending::Succeeded, Provenance::Estimated));
        });
    }
}

/// Events of any size pass as they come, and the usage at their end is read.
#[test]
fn a_giant_event_passes_as_it_comes_and_its_last_key_counts() {
    assert_eq!(row(CASES, "sse-giant-line")["expect"]["usage"]["output"], 20);
    let text = "QUJD".repeat(800 << 10);
    let first = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    let usage = r#""usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}"#;
    let in_choice = format!("{first}data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},");
    let end = format!("\"finish_reason\":\"stop\"}}],{usage}}}\n\ndata: [DONE]\n\n");
    // Nothing in the giant one says what it is until its end.
    let unknown = format!("{first}data: {{\"blob\":\"{text}");
    let unknown_end = format!("\",\"choices\":[],{usage}}}\n\ndata: [DONE]\n\n");
    let block = format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"delta\":\
         {{\"type\":\"text_delta\",\"text\":\"{text}"
    );
    let (start, stop) = MESSAGES.split_at(MESSAGES.find("event: content_block_stop").unwrap());
    let mut scenarios = Vec::new();
    for (request, most, rest, cost) in [
        (ask(""), in_choice, end, CHAT_COST),
        (ask(""), unknown, unknown_end, CHAT_COST),
        (ask_messages(), format!("{start}{block}"), format!("\"}}}}\n\n{stop}"), MESSAGES_COST),
    ] {
        let acts = vec![
            say(chunked()),
            say(chunk(&most)),
            Act::Wait("seen"),
            say(chunk(&rest)),
            say(LAST_CHUNK),
        ];
        let client = vec![
            send(&request),
            // All of it but what is held back while it may be something else.
            Step::Bytes(most.len() - (100 << 10)),
            Step::Signal("seen"),
            Step::Answer,
        ];
        let upstream = vec![Manner::once(acts)];
        let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
        scenarios.push(((format!("{most}{rest}").len(), cost), scenario));
    }
    // Names of three megabytes would fill the log of a failure.
    let named: Vec<(usize, Scenario)> =
        scenarios.iter().enumerate().map(|(nth, (_, scenario))| (nth, scenario.clone())).collect();
    transports::each_of(&named, |nth, outcome| {
        let (len, cost) = scenarios[*nth].0;
        outcome.assert_clean();
        assert_eq!((outcome.answer().body.len(), outcome.records[0].cost_picousd), (len, cost));
        assert_eq!(outcome.endings(), ["succeeded"]);
    });
}

/// The first byte of the terminator is not sent before the price is in the record: all of the
/// stream but its last byte is here, and the client has nothing of its end.
#[test]
fn nobody_has_a_terminator_before_its_price_is_noted() {
    let done = CHAT.len() - "data: [DONE]\n\n".len();
    let stop = MESSAGES.find("event: message_stop").unwrap();
    let mut scenarios = Vec::new();
    for (request, body, before) in
        [(ask_with_usage(), CHAT, done), (ask_messages(), MESSAGES, stop)]
    {
        // A second line end ends the event; the first one may be the whole of a CR LF.
        for missing in [1, 2, 3, 9] {
            let most = body.len() - missing;
            let acts = vec![
                say(chunked()),
                say(chunk(&body[..most])),
                Act::Signal("most"),
                Act::Wait("seen"),
                say(chunk(&body[most..])),
                say(LAST_CHUNK),
            ];
            let client = vec![
                send(&request),
                Step::Wait("most"),
                Step::Bytes(before),
                Step::Pause(Duration::from_millis(50)),
                Step::Mark,
                Step::Signal("seen"),
                Step::Answer,
            ];
            let upstream = vec![Manner::once(acts)];
            let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
            scenarios.push(((before, missing), scenario));
        }
    }
    transports::each_of(&scenarios, |(before, _), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        // A head, the framing of one or two chunks, and the events before the end.
        let framing = outcome.clients[0].marks[0] - before;
        let text: usize = answer.fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(framing < text + 100, "{framing} bytes beside the {before} before the end");
        assert!([CHAT, MESSAGES].contains(&answer.text().as_str()));
    });
}

/// When the write that has the end begins, the price is in the record: a defect at that very
/// moment finds it there.
#[test]
fn a_defect_at_the_last_write_is_charged_what_was_reported() {
    for (request, body, at, cost) in [
        (ask(""), CHAT, CHAT.find("data: [DONE]").unwrap(), CHAT_COST),
        (ask_messages(), MESSAGES, MESSAGES.find("event: message_stop").unwrap(), MESSAGES_COST),
    ] {
        let (most, end) = body.split_at(at);
        let acts = vec![
            say(chunked()),
            say(chunk(most)),
            Act::Pause(Duration::from_millis(300)),
            say(chunk(end)),
        ];
        let client = vec![send(&request), Step::End];
        let scenario = Scenario {
            clients: vec![client],
            upstream: vec![Manner::once(acts)],
            ..Scenario::default()
        };
        let outcome = script::run_with_faults(
            &scenario,
            Faults { client_write: Some(2), ..Faults::default() },
        );
        assert_eq!(outcome.counters.panics.get(), 1);
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.cost_picousd), (Ending::Internal, cost));
        let client = String::from_utf8_lossy(&outcome.clients[0].surplus).into_owned();
        assert!(!client.contains("[DONE]") && !client.contains("message_stop"), "{client}");
        assert!(client.contains("data: "), "the first write was before it: {client}");
    }
}

/// Up to the first content event nothing is sent, then all of it.
#[test]
fn nothing_reaches_the_client_before_the_first_content() {
    let content = |body: &str, at: &str| body.find(at).unwrap();
    let comments = ": OPENROUTER PROCESSING\n\n".repeat(40);
    let mut scenarios = Vec::new();
    for (request, body, at) in [
        (
            ask_with_usage(),
            CHAT,
            content(CHAT, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"c"),
        ),
        (ask_messages(), MESSAGES, content(MESSAGES, "event: content_block_start")),
    ] {
        let (preamble, rest) = body.split_at(at);
        let acts = vec![
            say(chunked()),
            say(chunk(&comments)),
            say(chunk(preamble)),
            Act::Signal("announced"),
            Act::Wait("looked"),
            say(chunk(rest)),
            say(LAST_CHUNK),
        ];
        let client = vec![
            send(&request),
            Step::Wait("announced"),
            Step::Pause(Duration::from_millis(50)),
            Step::Signal("looked"),
            Step::Answer,
        ];
        let upstream = vec![Manner::once(acts)];
        let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
        scenarios.push((format!("{comments}{body}"), scenario));
    }
    transports::each_of(&scenarios, |body, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), *body);
        if let Some((first, _)) = outcome.clients[0].heard.first() {
            assert!(*first >= 50, "at {first} ms");
        }
    });
}

/// At most 64 KiB are kept for it: then they go, whatever they are.
#[test]
fn withholding_ends_at_its_bound() {
    let preamble = ": waiting for the model\n\n".repeat(3_000);
    assert!(preamble.len() > 64 << 10);
    let acts = vec![
        say(chunked()),
        say(chunk(&preamble)),
        Act::Signal("announced"),
        Act::Wait("heard"),
        say(chunk(CHAT)),
        say(LAST_CHUNK),
    ];
    let client = vec![
        send(ask_with_usage()),
        Step::Wait("announced"),
        Step::Bytes(60 << 10),
        Step::Signal("heard"),
        Step::Answer,
    ];
    let upstream = vec![Manner::once(acts)];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), format!("{preamble}{CHAT}"));
    });
}

/// Each of many small events is passed on when it comes, in one write.
#[test]
fn events_are_passed_on_as_they_come() {
    let event =
        |nth: usize| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{nth}\"}}}}]}}\n\n");
    let mut acts = vec![say(chunked())];
    for nth in 0..20 {
        acts.extend([say(chunk(event(nth))), Act::Pause(Duration::from_millis(700))]);
    }
    acts.push(say([chunk("data: [DONE]\n\n").as_slice(), LAST_CHUNK].concat()));
    let client = vec![send(ask("")), Step::Answer];
    let upstream = vec![Manner::once(acts)];
    let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
    let outcome = script::run(&scenario);
    outcome.assert_clean();
    let heard = &outcome.clients[0].heard;
    assert_eq!(heard.len(), 21, "one write each");
    for (nth, (at, bytes)) in heard.iter().enumerate().take(20) {
        let text = String::from_utf8_lossy(bytes);
        assert!(text.contains(&event(nth)), "{text}");
        let due = 700 * nth as u64;
        assert!((due..due + 10).contains(at), "{nth} at {at} ms");
    }
}

/// gzip is passed as it comes, with its usage read aside; what nobody can read is estimated by its
/// bytes and flagged.
#[test]
fn a_stream_in_a_coding_passes_untouched() {
    let coded = gzip(CHAT.as_bytes());
    let strange = b"\x28\xb5\x2f\xfd not really zstd".repeat(10);
    let mut scenarios = Vec::new();
    for (coding, body, cost) in [
        ("gzip", coded, CHAT_COST),
        ("zstd", strange.clone(), (strange.len() as u64).div_ceil(4) * 100),
    ] {
        let fields = format!("Content-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n");
        let mut acts = vec![say(head(&fields))];
        for piece in body.chunks(29) {
            acts.extend([say(chunk(piece)), Act::Pause(Duration::from_millis(1))]);
        }
        acts.push(say(LAST_CHUNK));
        scenarios.push(((coding, body, cost), once(&ask(""), acts)));
    }
    transports::each_of(&scenarios, |(coding, body, cost), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!(answer.field("content-encoding").as_deref(), Some(*coding));
        assert_eq!((&answer.body, outcome.records[0].cost_picousd), (body, *cost));
        assert_eq!(outcome.endings(), ["succeeded"]);
    });
}

/// What stands behind the end of a gzip stream and is none costs nobody the usage that was read.
#[test]
fn bytes_behind_a_gzip_stream_change_nothing_of_its_price() {
    let junk = "no gzip".repeat(20);
    let body = [gzip(CHAT.as_bytes()), junk.into_bytes()].concat();
    let fields = "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n";
    let acts = vec![say(head(fields)), say(chunk(&body)), say(LAST_CHUNK)];
    transports::each(&once(&ask(""), acts), |outcome| {
        outcome.assert_clean();
        assert_eq!((&outcome.answer().body, outcome.records[0].cost_picousd), (&body, CHAT_COST));
        assert_eq!(outcome.endings(), ["succeeded"]);
    });
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An upstream that does not stream is passed on as it is.
#[test]
fn a_whole_answer_to_a_call_for_a_stream_passes() {
    let scenario = once(&ask(""), vec![say(json("200 OK", "", COMPLETION))]);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, COMPLETION));
        assert_eq!(outcome.records[0].cost_picousd, CHAT_COST);
    });
}

/// And a stream is no answer to a call that did not ask for one.
#[test]
fn a_stream_nobody_asked_for_is_refused() {
    let scenario = once(&post("", BODY), sent(Framing::Chunked, CHAT.as_bytes()));
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().code(), "upstream_invalid");
    });
}

#[test]
fn the_model_in_a_stream_is_not_rewritten() {
    let case = row(CASES, "json-response-model");
    assert_eq!(case["expect"]["if_off"], "relay untouched");
    let body = CHAT.replace("\"id\":\"c\"", "\"id\":\"c\",\"model\":\"a-2026\"");
    let request = named(&ask_with_usage(), "nick");
    let scenario = once(&request, sent(Framing::Chunked, body.as_bytes()));
    transports::each(&scenario.under("[alias]\nnick = \"a\""), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), body);
        assert_eq!(outcome.records[0].served_model.as_str(), "a");
    });
}
