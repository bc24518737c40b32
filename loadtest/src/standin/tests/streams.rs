//! Each stream sends what its name says, in both dialects. The events are read by a reader of the
//! plainest kind, which shares nothing with what wrote them.

use std::io::{Read, Write};

use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::net::TcpStream;

use super::{End, LIMIT, ask, connect, read_answer, read_to_end, standin};
use crate::standin::{Config, Dialect, Entry, Standin};
use crate::wire::{BodyReader, Framing, Head};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const COUNT: &str = "/v1/messages/count_tokens?beta=true";

/// A request for `model`; `more` stands behind the model in the body.
fn request(path: &str, model: &str, more: &str, fields: &str) -> Vec<u8> {
    let body = format!("{{\"model\":\"{model}\"{more},\"messages\":[]}}");
    format!(
        "POST {path} HTTP/1.1\r\nHost: standin.test\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The members that ask for a stream, with chat's usage if `usage`.
fn asking(usage: bool) -> &'static str {
    if usage {
        ",\"stream\":true,\"stream_options\":{\"include_usage\":true}"
    } else {
        ",\"stream\":true"
    }
}

/// What a client got.
#[derive(Debug)]
struct Got {
    status: u16,
    head: String,
    content: Vec<u8>,
    /// The body ended by its framing.
    whole: bool,
    end: End,
}

impl Got {
    fn of(bytes: &[u8], end: End) -> Got {
        let head = Head::find(bytes).expect("a whole head");
        let status = head.status().expect("a status line");
        let mut reader = BodyReader::new(Framing::of_answer(&head, status).expect("framed"));
        let mut content = Vec::new();
        let rest = &bytes[head.len()..];
        let used = reader.feed(rest, |piece| content.extend_from_slice(piece)).expect("framed");
        assert_eq!(used, rest.len(), "bytes behind the answer");
        let head = String::from_utf8(head.bytes().to_vec()).unwrap();
        Got { status, head, content, whole: reader.done(), end }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.content).unwrap()
    }

    /// Name and data of each event; comments are left out.
    fn events(&self) -> Vec<(String, String)> {
        let text = self.text().replace("\r\n", "\n").replace('\r', "\n");
        let (mut events, mut name, mut data) = (Vec::new(), String::new(), None);
        for line in text.split('\n') {
            if let Some(value) = line.strip_prefix("event: ") {
                name = value.to_owned();
            } else if let Some(value) = line.strip_prefix("data: ") {
                assert!(data.replace(value.to_owned()).is_none(), "two lines of data");
            } else if line.is_empty() {
                if let Some(data) = data.take() {
                    events.push((std::mem::take(&mut name), data));
                }
            } else {
                assert!(line.starts_with(':') || !self.whole, "{line:?}");
            }
        }
        events
    }

    /// The data of all events that are JSON.
    fn json(&self) -> Vec<Value> {
        let events = self.events();
        events.iter().filter_map(|(_, data)| serde_json::from_str(data).ok()).collect()
    }

    /// All text and tool arguments.
    fn told(&self) -> (String, String) {
        let (mut text, mut tool) = (String::new(), String::new());
        for event in self.json() {
            let (chat, messages) = (&event["choices"][0]["delta"], &event["delta"]);
            text += chat["content"].as_str().or_else(|| messages["text"].as_str()).unwrap_or("");
            let part = &chat["tool_calls"][0]["function"]["arguments"];
            tool += part.as_str().or_else(|| messages["partial_json"].as_str()).unwrap_or("");
        }
        (text, tool)
    }

    /// Input, output and cached tokens of every report.
    fn usages(&self) -> Vec<[u64; 3]> {
        let usage = |event: &Value| {
            let usage = [&event["usage"], &event["message"]["usage"]];
            let usage = usage.into_iter().find(|usage| usage.is_object())?;
            if let Some(prompt) = usage["prompt_tokens"].as_u64() {
                let cached = &usage["prompt_tokens_details"]["cached_tokens"];
                let output = &usage["completion_tokens"];
                return Some([prompt, output.as_u64()?, cached.as_u64()?]);
            }
            let cached = usage["cache_read_input_tokens"].as_u64()?;
            let input = usage["input_tokens"].as_u64()? + cached;
            Some([input, usage["output_tokens"].as_u64()?, cached])
        };
        self.json().iter().filter_map(usage).collect()
    }

    fn ends_with_terminator(&self) -> bool {
        self.events().last().is_some_and(|(name, data)| data == "[DONE]" || name == "message_stop")
    }
}

/// The stream of `model`, and its entry in the tally.
fn stream(standin: &Standin, path: &str, model: &str, usage: bool) -> (Got, Entry) {
    let before = standin.tally().len();
    let mut stream = connect(standin);
    let bytes = request(path, model, asking(usage), "Connection: close\r\n");
    stream.write_all(&bytes).unwrap();
    let (bytes, end) = read_to_end(&mut stream);
    let entry = standin.tally_of(before + 1, LIMIT).pop().unwrap();
    (Got::of(&bytes, end), entry)
}

/// What the tally says was sent must be what the client got.
fn agrees(got: &Got, entry: &Entry, model: &str) {
    assert_eq!(entry.content.bytes, got.content.len() as u64, "{model}");
    assert_eq!(entry.content.crc32, crc32fast::hash(&got.content), "{model}");
    assert_eq!(entry.sent_whole, got.whole || entry.sent_whole, "{model}");
    assert_eq!(entry.terminator_sent, got.ends_with_terminator(), "{model}");
    assert!(entry.stream, "{model}");
}

/// A whole stream of `content` text events.
fn whole(standin: &Standin, path: &str, model: &str, content: usize) -> Got {
    let (got, entry) = stream(standin, path, model, path == CHAT);
    agrees(&got, &entry, model);
    assert_eq!((got.status, got.whole, got.end == End::Fin), (200, true, true), "{model}");
    assert!(got.head.contains("content-type: text/event-stream"), "{}", got.head);
    assert!(entry.sent_whole && entry.ended && !entry.peer_left, "{entry:?}");
    assert_eq!(entry.events_sent, got.events().len() as u64, "{model}");
    assert_eq!(entry.content_events_sent, content as u64, "{model}");
    assert!(got.ends_with_terminator(), "{model}");
    got
}

#[test]
fn a_model_answers_whole_or_as_a_stream_as_asked() {
    let standin = standin();
    for model in ["ok", "gpt-4o-mini", "slow-5", "chunked", "http10", "big-64k", "close-after"] {
        for (path, dialect) in [(CHAT, Dialect::Chat), (MESSAGES, Dialect::Messages)] {
            let (got, entry) = stream(&standin, path, model, true);
            agrees(&got, &entry, model);
            assert_eq!((entry.dialect, entry.include_usage), (dialect, true));
            assert_eq!(got.usages().last(), Some(&[512, 64, 0]), "{model}");
            assert_eq!(entry.usage_sent, entry.usage, "{model}");
            assert!(entry.usage_final && got.ends_with_terminator(), "{model}");

            let mut client = connect(&standin);
            client
                .write_all(&request(path, model, ",\"stream\":false", "Connection: close\r\n"))
                .unwrap();
            let (bytes, end) = read_to_end(&mut client);
            let got = Got::of(&bytes, end);
            let json: Value = serde_json::from_slice(&got.content).unwrap();
            let kind = if path == CHAT { "chat.completion" } else { "message" };
            assert!(json["object"] == kind || json["type"] == kind, "{json}");
            let entry = standin.tally().pop().unwrap();
            assert!(!entry.stream && entry.usage_final && !entry.terminator_sent, "{entry:?}");
            assert_eq!(entry.usage_sent.completion_tokens, 64);
            assert_eq!(entry.content.crc32, crc32fast::hash(&got.content));
        }
    }
}

#[test]
fn usage_comes_in_a_chunk_of_its_own_if_chat_asks() {
    let standin = standin();
    let (with, asked) = stream(&standin, CHAT, "ok", true);
    let (without, unasked) = stream(&standin, CHAT, "ok", false);
    assert!(asked.include_usage && !unasked.include_usage);
    assert_eq!((with.usages(), without.usages()), (vec![[512, 64, 0]], vec![]));
    let events = with.json();
    assert_eq!(events.last().unwrap()["choices"], serde_json::json!([]));
    assert!(events[0].get("usage").is_some_and(Value::is_null));
    assert!(without.json().iter().all(|event| event.get("usage").is_none()));
    assert_eq!((unasked.usage_final, unasked.usage.completion_tokens), (false, 0));
    // what a client sees that did not ask: all but that one event
    let chunk = with.text().split_inclusive("\n\n").find(|text| text.contains("\"choices\":[]"));
    let shown = with.text().replace(chunk.unwrap(), "");
    assert_eq!(asked.shown.bytes, shown.len() as u64);
    assert_eq!(asked.shown.crc32, crc32fast::hash(shown.as_bytes()));
    assert_eq!(unasked.shown, unasked.content);
}

#[test]
fn streams_have_their_events_their_text_and_their_usage() {
    let standin = standin();
    for path in [CHAT, MESSAGES] {
        for (model, content) in [
            ("stream-1", 1),
            ("stream-40", 40),
            ("stream-slow-1", 8),
            ("kill-mix-6-1", 6),
            ("kill-mix-6-1+events=9+every=0", 9),
            ("stream-burst-1", 100),
            ("stream-bytes", 8),
            ("stream-at-once", 8),
            ("stream-5+split=7+batch=2+text=100", 5),
            ("stream-crlf", 8),
            ("stream-cr", 8),
            ("stream-utf8", 8),
            ("stream-length", 8),
            ("stream-ping", 8),
            ("stream-ping-3-1", 8),
            ("stream-usage-always", 8),
            ("stream-giant-100", 8),
            ("stream-giant-usage-100", 8),
            ("stream-giant-content-100", 8),
            ("stream-silent-ms-5", 8),
            ("stream-gap-ms-5", 8),
        ] {
            let got = whole(&standin, path, model, content);
            let (text, _) = got.told();
            assert!(text.len() >= content * 24, "{model}: {text}");
            assert_eq!(got.usages().last(), Some(&[512, 64, 0]), "{model}");
            let last = got.usages().len();
            assert_eq!(last, if path == CHAT { 1 } else { 2 }, "{model}");
        }
        let cached = whole(&standin, path, "stream-cached", 8);
        assert_eq!(cached.usages().last(), Some(&[512, 64, 384]));
        let tools = whole(&standin, path, "stream-tools", 8);
        assert_eq!(tools.told().1, "{\"road\":\"toll toll toll toll \"}");
        let reason = if path == CHAT { "\"tool_calls\"" } else { "\"tool_use\"" };
        assert!(tools.text().contains(reason), "{}", tools.text());
    }
}

/// Id, name and arguments of each tool call of a stream.
fn streamed_calls(got: &Got) -> Vec<(String, String, Value)> {
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for event in got.json() {
        for call in event["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let at = call["index"].as_u64().unwrap();
            if at == calls.len() as u64 {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                calls.push((text(&call["id"]), text(&call["function"]["name"]), String::new()));
            }
            let called = &mut calls[usize::try_from(at).unwrap()];
            called.2 += call["function"]["arguments"].as_str().unwrap();
        }
        if event["content_block"]["type"] == "tool_use" {
            assert_eq!(event["index"], calls.len() + 1, "behind the text, one by one");
            let text = |key: &str| event["content_block"][key].as_str().unwrap().to_owned();
            calls.push((text("id"), text("name"), String::new()));
        }
        if let Some(part) = event["delta"]["partial_json"].as_str() {
            calls.last_mut().unwrap().2 += part;
        }
    }
    let read = |(id, name, text): (String, String, String)| {
        (id, name, serde_json::from_str(&text).unwrap())
    };
    calls.into_iter().map(read).collect()
}

/// The same of a whole answer.
fn whole_calls(answer: &Value) -> Vec<(String, String, Value)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let chat = answer["choices"][0]["message"]["tool_calls"].as_array().into_iter().flatten();
    let messages = answer["content"].as_array().into_iter().flatten();
    chat.map(|call| {
        let function = &call["function"];
        let input = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
        (text(&call["id"]), text(&function["name"]), input)
    })
    .chain(
        messages
            .filter(|block| block["type"] == "tool_use")
            .map(|block| (text(&block["id"]), text(&block["name"]), block["input"].clone())),
    )
    .collect()
}

#[test]
fn tool_calls_are_the_same_whole_and_streamed() {
    let standin = standin();
    for path in [CHAT, MESSAGES] {
        for (model, count, content) in
            [("stream-8", 0, 8), ("stream-tools", 1, 8), ("stream-tools-3", 3, 20)]
        {
            let streamed = streamed_calls(&whole(&standin, path, model, content));
            let mut client = connect(&standin);
            client.write_all(&request(path, model, "", "")).unwrap();
            let answer: Value = serde_json::from_slice(&read_answer(&mut client).2).unwrap();
            assert_eq!(whole_calls(&answer), streamed, "{model} {path}");
            let ids: std::collections::HashSet<_> = streamed.iter().map(|call| &call.0).collect();
            assert_eq!((streamed.len(), ids.len()), (count, count), "{model} {path}");
            for (_, name, input) in &streamed {
                assert_eq!((name.as_str(), input["road"].is_string()), ("look_up", true));
            }
            let reason = [&answer["choices"][0]["finish_reason"], &answer["stop_reason"]]
                .into_iter()
                .find_map(Value::as_str);
            let asks = ["tool_calls", "tool_use"].contains(&reason.unwrap());
            assert_eq!(asks, count > 0, "{model} {path}");
        }
    }
}

#[test]
fn the_tool_and_its_input_can_be_given() {
    let scenario =
        |body: &str| format!("[[scenario]]\nname = \"x\"\nabout = \"a\"\nsteps = [{{ {body} }}]");
    let given = "calls = 2, tool = \"Bash\", input = '{\"command\":\"é 雨\"}'";
    for body in [
        format!("stream = {{ events = 1, tools = 5, finish-reason = \"tool_calls\", {given} }}"),
        format!("answer = {{ body = {{ completion = {{ {given} }} }} }}"),
    ] {
        let config = Config { scenarios: vec![scenario(&body)], ..Config::default() };
        let standin = Standin::start(config).unwrap();
        for path in [CHAT, MESSAGES] {
            let streamed = streamed_calls(&stream(&standin, path, "x", true).0);
            let mut client = connect(&standin);
            client.write_all(&request(path, "x", "", "")).unwrap();
            let answer: Value = serde_json::from_slice(&read_answer(&mut client).2).unwrap();
            assert_eq!(whole_calls(&answer), streamed, "{body}");
            assert_eq!(streamed.len(), 2, "{body}");
            for (_, name, input) in &streamed {
                assert_eq!((name.as_str(), &input["command"]), ("Bash", &Value::from("é 雨")));
            }
        }
    }
}

#[test]
fn odd_lines_pings_and_giants_are_as_named() {
    let standin = standin();
    let has = |model: &str, path: &str, part: &str, times: usize| {
        let got = stream(&standin, path, model, true).0;
        assert_eq!(got.text().matches(part).count(), times, "{model}: {}", got.text());
    };
    has("stream-crlf", CHAT, "\r\n\r\n", 12);
    has("stream-cr", CHAT, "\n", 0);
    has("stream-cr", CHAT, "\r\r", 12);
    has("stream-ping", CHAT, ": ping - ", 43);
    has("stream-ping", MESSAGES, "event: ping\n", 44);
    let (text, _) = stream(&standin, MESSAGES, "stream-utf8+text=600", true).0.told();
    assert!(text.contains("雨の道 é \"quoted\" \\ 😀 \u{2028} data: x\n\n"), "{text}");
    let usage_last = |text: &str, kib: usize| {
        text.split("\n\n").any(|event| event.len() > kib << 10 && event.ends_with("}}}"))
    };
    for path in [CHAT, MESSAGES] {
        for (model, kib) in [("stream-giant-3000", 3000), ("stream-giant-usage-70", 70)] {
            let got = stream(&standin, path, model, true).0;
            assert!(usage_last(got.text(), kib) || path == MESSAGES, "{model}");
            let giant = got.json().into_iter().find(|event| event.get("padding").is_some());
            assert!(giant.unwrap()["usage"].is_object(), "{model}");
        }
        // a giant finish tells its usage even if nobody asked
        let (got, entry) = stream(&standin, path, "stream-giant-64", false);
        assert_eq!(got.usages().last(), Some(&[512, 64, 0]));
        assert!(entry.usage_final && entry.shown == entry.content);
    }
}

#[test]
fn a_compressed_stream_can_be_read_as_far_as_it_came() {
    let standin = standin();
    for path in [CHAT, MESSAGES] {
        let (got, entry) = stream(&standin, path, "stream-gzip", true);
        let plain = stream(&standin, path, "stream-8", true).0;
        assert!(got.head.contains("content-encoding: gzip"), "{}", got.head);
        assert_eq!((entry.content.bytes, got.whole), (got.content.len() as u64, true));
        assert!(entry.terminator_sent && entry.usage_final);
        let (bytes, mut rest, mut blocks) = (&got.content, &got.content[10..], Vec::new());
        let mut last = false;
        while !last {
            last = rest[0] == 1;
            let length = usize::from(u16::from_le_bytes([rest[1], rest[2]]));
            blocks.push(rest[5..5 + length].to_vec());
            rest = &rest[5 + length..];
        }
        let events = plain.text().replace("stream-8", "stream-gzip");
        assert_eq!(blocks.concat(), events.as_bytes());
        // an event a block, and the empty last one
        assert_eq!(blocks.len(), events.matches("\n\n").count() + 1);
        assert_eq!(bytes[..3], [0x1f, 0x8b, 8]);
        assert_eq!(rest[..4], crc32fast::hash(events.as_bytes()).to_le_bytes());
        assert_eq!(rest[4..], u32::try_from(events.len()).unwrap().to_le_bytes());
    }
}

#[test]
fn usage_is_where_the_name_says() {
    let standin = standin();
    let usages = |path, model| stream(&standin, path, model, true);
    for (model, chat, messages, last) in [
        ("stream-no-usage", vec![], vec![], false),
        ("no-usage", vec![], vec![], false),
        ("stream-usage-start", vec![], vec![[512, 1, 0]], false),
        (
            "stream-usage-mid",
            vec![[512, 32, 0], [512, 64, 0]],
            vec![[512, 1, 0], [512, 32, 0], [512, 64, 0]],
            true,
        ),
        ("stream-usage-mid-cut", vec![[512, 32, 0]], vec![[512, 1, 0], [512, 32, 0]], false),
    ] {
        for (path, expected) in [(CHAT, chat), (MESSAGES, messages)] {
            let (got, entry) = usages(path, model);
            agrees(&got, &entry, model);
            assert_eq!(got.usages(), expected, "{model} {path}");
            assert_eq!(entry.usage_final, last, "{model} {path}");
            let told = expected.last().map_or(0, |usage| usage[1]);
            assert_eq!(entry.usage_sent.completion_tokens, told, "{model} {path}");
        }
    }
    assert!(stream(&standin, CHAT, "stream-usage-always", false).1.usage_final);
}

#[test]
fn streams_that_end_too_early_end_as_named() {
    let standin = standin();
    for path in [CHAT, MESSAGES] {
        for (model, content, end, framed, done) in [
            ("stream-no-done", 8, End::Fin, true, false),
            ("stream-no-finish", 8, End::Fin, true, true),
            ("stream-trunc", 8, End::Fin, true, false),
            ("stream-cut-0", 0, End::Fin, false, false),
            ("stream-cut-5", 5, End::Fin, false, false),
            ("stream-rst-5", 5, End::Reset, false, false),
            ("stream-cut-in-event", 2, End::Fin, false, false),
            ("stream-rst-in-event", 2, End::Reset, false, false),
            ("stream-close-delimited", 8, End::Fin, false, true),
            ("stream-close-delimited-cut", 2, End::Fin, false, false),
            ("stream-close-delimited-rst", 2, End::Reset, false, false),
            ("stream-rst-after-done", 8, End::Reset, false, true),
            ("stream-cut-after-done", 8, End::Fin, false, true),
        ] {
            let (got, entry) = stream(&standin, path, model, true);
            agrees(&got, &entry, model);
            assert_eq!((got.end, got.whole), (end, framed), "{model}");
            assert_eq!(entry.content_events_sent, content, "{model}");
            assert_eq!(entry.terminator_sent, done, "{model}");
            let finished = got.text().contains("reason\":\"");
            let ends = ["stream-no-done", "stream-close-delimited"].contains(&model)
                || model.ends_with("after-done");
            assert_eq!(finished, ends, "{model}");
            if model.contains("in-event") {
                assert!(!got.text().ends_with("\n\n"), "{model}: half an event");
            } else {
                assert!(got.text().ends_with("\n\n"), "{model}: whole events");
            }
        }
    }
}

/// The kernel keeps back what a peer's window has no room for, and a reset would throw it away: a
/// gateway that was late to read would be blamed for it.
#[test]
fn a_reset_behind_the_end_waits_for_the_end_to_leave() {
    let standin = standin();
    let slow = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    slow.set_recv_buffer_size(1024).unwrap();
    slow.connect(&standin.addr().into()).unwrap();
    let mut slow = TcpStream::from(slow);
    slow.set_read_timeout(Some(LIMIT)).unwrap();
    slow.write_all(&request(CHAT, "stream-rst-after-done", asking(true), "")).unwrap();
    // An answer that takes longer than the pause before the reset: it would have come by then.
    ask(&mut connect(&standin), "slow-100", "");
    let (bytes, end) = read_to_end(&mut slow);
    assert!(String::from_utf8(bytes).unwrap().contains("[DONE]"));
    assert_eq!(end, End::Reset);
}

#[test]
fn answers_that_are_cut_are_cut_as_streams_too() {
    let standin = standin();
    for (model, end) in [
        ("cut-body", End::Fin),
        ("cut-last", End::Fin),
        ("cut-after-head", End::Fin),
        ("rst-body", End::Reset),
        ("rst-head", End::Reset),
        ("cut-terminator", End::Fin),
    ] {
        let (got, entry) = stream(&standin, CHAT, model, true);
        agrees(&got, &entry, model);
        assert_eq!((got.status, got.whole, got.end), (200, false, end), "{model}");
        assert!(!entry.sent_whole, "{model}");
        assert_eq!(entry.content.bytes == 0, model.contains("head"), "{model}");
    }
}

#[test]
fn silences_leave_the_stream_open() {
    let standin = standin();
    for (model, content, done) in [
        ("stream-stall", 2, false),
        ("stream-stall-0", 0, false),
        ("stream-stall-7", 7, false),
        ("stream-stall-in-event", 2, false),
        ("stream-hang-after-done", 8, true),
    ] {
        standin.clear();
        let mut client = connect(&standin);
        client.write_all(&request(CHAT, model, asking(false), "")).unwrap();
        let entry = standin.tally_of(1, LIMIT).pop().unwrap();
        assert!(entry.ended && !entry.sent_whole && !entry.peer_left, "{model}");
        assert_eq!((entry.content_events_sent, entry.terminator_sent), (content, done), "{model}");
        let mut bytes = vec![0; usize::try_from(entry.sent_bytes).unwrap()];
        client.read_exact(&mut bytes).unwrap();
        drop(client);
        // who leaves a stream that hangs is noted, with the time
        let until = crate::clock::now() + LIMIT;
        while standin.tally()[0].left_after_ms.is_none() {
            assert!(crate::clock::now() < until, "{model}");
        }
    }
}

#[test]
fn what_comes_before_a_silence_comes_before_it() {
    let standin = standin();
    for (model, text) in [("stream-silent-900", "\"role\""), ("stream-gap-ms-900000", "The toll")] {
        let mut client = connect(&standin);
        client.write_all(&request(CHAT, model, asking(false), "")).unwrap();
        let mut seen = String::new();
        while !seen.contains(text) {
            let mut piece = [0; 4096];
            let n = client.read(&mut piece).unwrap();
            seen += std::str::from_utf8(&piece[..n]).unwrap();
        }
        assert_eq!(seen.contains("The toll"), model.contains("gap"), "{seen}");
        let entry = standin.tally().pop().unwrap();
        assert!(!entry.ended && !entry.peer_left);
    }
}

#[test]
fn errors_come_where_named_and_in_the_dialect() {
    let standin = standin();
    for path in [CHAT, MESSAGES] {
        for (model, content, preamble) in [
            ("stream-err-first", 0, false),
            ("stream-err-rate", 0, false),
            ("stream-err-opening", 0, true),
            ("stream-err-mid", 4, true),
        ] {
            let (got, entry) = stream(&standin, path, model, true);
            agrees(&got, &entry, model);
            assert!(got.whole && !entry.terminator_sent && !entry.usage_final, "{model}");
            assert_eq!(entry.content_events_sent, content, "{model}");
            let events = got.events();
            assert_eq!(events.len() > 1, preamble, "{model}");
            let (name, data) = events.last().unwrap();
            let error: Value = serde_json::from_str(data).unwrap();
            assert!(error["error"]["message"].is_string(), "{data}");
            assert_eq!(
                (name == "error", error["type"] == "error"),
                (path == MESSAGES, path == MESSAGES)
            );
        }
        let error = stream(&standin, path, "stream-json-error", true).0;
        assert!(error.head.contains("content-type: application/json"), "{}", error.head);
        assert!(serde_json::from_slice::<Value>(&error.content).unwrap()["error"].is_object());
        let html = stream(&standin, path, "stream-html", true).0;
        assert!(html.head.contains("content-type: text/html") && html.status == 200);
        for (model, events, bytes) in
            [("stream-empty", 0, 0), ("stream-comment-only", 0, 28), ("stream-done-only", 1, 14)]
        {
            let (got, entry) = stream(&standin, path, model, true);
            assert_eq!((got.whole, got.content.len()), (true, bytes), "{model}");
            assert_eq!(entry.events_sent, events, "{model}");
            assert!(got.head.contains("text/event-stream"), "{}", got.head);
        }
    }
}

#[test]
fn the_second_attempt_of_a_call_is_a_whole_stream() {
    let standin = standin();
    for path in [CHAT, MESSAGES] {
        for (model, status) in [
            ("s429-once", 429),
            ("s500-once", 500),
            ("s503-once", 503),
            ("stream-err-first-once", 200),
            ("stream-err-opening-once", 200),
            ("stream-cut-once", 200),
            ("stream-cut-head-once", 200),
        ] {
            let id = format!("x-tollgate-request-id: {path}\r\nConnection: close\r\n");
            for attempt in 0..2 {
                let mut client = connect(&standin);
                client.write_all(&request(path, model, asking(true), &id)).unwrap();
                let (bytes, end) = read_to_end(&mut client);
                let got = Got::of(&bytes, end);
                assert_eq!(got.status, if attempt == 0 { status } else { 200 }, "{model}");
                let whole = got.status == 200 && got.ends_with_terminator();
                assert_eq!(whole, attempt == 1, "{model}");
            }
        }
    }
}

#[test]
fn errors_with_a_status_speak_the_dialect() {
    let standin = standin();
    for (model, status, kind) in [
        ("s400", 400, "invalid_request_error"),
        ("s401", 401, "authentication_error"),
        ("s429", 429, "rate_limit_error"),
        ("s500", 500, "api_error"),
        ("s529", 529, "overloaded_error"),
    ] {
        for (path, more) in [(MESSAGES, asking(true)), (MESSAGES, ""), (COUNT, "")] {
            let mut client = connect(&standin);
            client.write_all(&request(path, model, more, "")).unwrap();
            let (got, _, body) = read_answer(&mut client);
            let json: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((got, json["type"].as_str()), (status, Some("error")), "{model}");
            assert_eq!(json["error"]["type"], kind, "{model}");
        }
    }
    // asked for whole, a stream's error is an answer with a status
    let mut client = connect(&standin);
    client.write_all(&request(CHAT, "stream-err-first", "", "")).unwrap();
    assert_eq!(read_answer(&mut client).0, 529);
}

#[test]
fn tokens_are_counted_by_a_path_of_its_own() {
    let standin = standin();
    let mut client = connect(&standin);
    client.write_all(&request(COUNT, "ok", "", "")).unwrap();
    let (status, _, body) = read_answer(&mut client);
    assert_eq!((status, body), (200, b"{\"input_tokens\":512}".to_vec()));
    let entry = standin.tally().pop().unwrap();
    assert_eq!((entry.dialect, entry.usage.completion_tokens), (Dialect::CountTokens, 0));
    let text = serde_json::to_string(&entry).unwrap();
    assert!(text.contains("\"dialect\":\"count_tokens\"") && text.contains("\"stream\":false"));
}

#[test]
fn a_client_that_leaves_a_stream_is_noted_with_what_it_was_sent() {
    let standin = standin();
    let mut client = connect(&standin);
    client.write_all(&request(MESSAGES, "kill-mix-1000-20", asking(false), "")).unwrap();
    let mut seen = String::new();
    while seen.matches("content_block_delta\n").count() < 2 {
        let mut piece = [0; 4096];
        let n = client.read(&mut piece).unwrap();
        seen += std::str::from_utf8(&piece[..n]).unwrap();
    }
    crate::loopback::reset_on_close(&client).unwrap();
    drop(client);
    let entry = standin.tally_of(1, LIMIT).pop().unwrap();
    assert!(entry.peer_left && entry.left_after_ms.is_some() && !entry.sent_whole);
    assert!((2..1000).contains(&entry.content_events_sent), "{entry:?}");
    assert_eq!((entry.usage_sent.prompt_tokens, entry.usage_final), (512, false));
    assert!(!entry.terminator_sent && entry.content.bytes > 0);
}
