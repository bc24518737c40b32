//! The corpora of event streams, through the gateway: whatever a stream has in it, and however it
//! is cut, the client gets it byte for byte, and the account of it does not depend on the cut.

use crate::events::{
    FRAMINGS, Framing, LAST_CHUNK, ask_messages, ask_with_usage, chunk, framed, sent,
};
use gateway_tests::corpus::{CASES, bytes, rows, text};
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Act, Manner, Scenario, Split, Step, say, send};
use gateway_tests::script;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::Value;
use store::ending::Provenance;
use tollgate::io::script::{Chop, LinkOptions, Order, ScriptWorld};

const CORPORA: [&str; 3] = [
    include_str!("../../corpus/sse/own.jsonl"),
    include_str!("../../corpus/sse/eventsource_parser.jsonl"),
    include_str!("../../corpus/sse/wpt_eventsource.jsonl"),
];

/// What stands before a row, so that it is passed on as it comes, and behind it, so that it ends.
const BEFORE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
const BEHIND: &str = concat!(
    "\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n",
    "data: [DONE]\n\n"
);

/// Places at which a row is cut.
const CUTS_MAX: usize = 16;

/// Rows up to this long are sent byte by byte too.
const BYTEWISE_MAX: usize = 1024;

/// The reads of a row of the corpora.
fn reads(row: &Value) -> Vec<Vec<u8>> {
    let decoded = |value: &Value| bytes(&serde_json::json!({ "b64": value }));
    if let Some(chunks) = row["chunks_b64"].as_array() {
        return chunks.iter().map(decoded).collect();
    }
    let mut all = Vec::new();
    for read in row["gen"]["reads"].as_array().expect("reads") {
        match read.as_str() {
            Some(text) => all.push(text.as_bytes().to_vec()),
            None => {
                let times = usize::try_from(read["times"].as_u64().unwrap()).unwrap();
                all.extend(vec![text(read, "repeat_read").as_bytes().to_vec(); times]);
            }
        }
    }
    all
}

/// One stream, asked for like this and sent like that.
fn stream(request: &str, acts: Vec<Act>) -> Scenario {
    let client = vec![send(request), Step::Answer, Step::Fin, Step::End];
    Scenario { clients: vec![client], upstream: vec![Manner::once(acts)], ..Scenario::default() }
}

#[test]
fn every_row_passes_byte_for_byte_however_it_is_cut() {
    let mut count = 0;
    for row in CORPORA.iter().flat_map(|corpus| rows(corpus)) {
        let (id, reads) = (text(&row, "id"), reads(&row));
        println!("{id}");
        count += 1;
        let body = [BEFORE.as_bytes(), &reads.concat(), BEHIND.as_bytes()].concat();
        // Overridden by DESIGN §6: nothing behind a terminator within the row is passed on.
        let shown = &body[..ends_at(&body)];
        let judge = |outcome: &Outcome| {
            outcome.assert_clean();
            assert!(outcome.answer().body == shown, "{}", outcome.answer().text());
            let record = &outcome.records[0];
            (outcome.endings(), record.provenance, record.tokens, record.cost_picousd)
        };
        // As the row says, a chunk a read.
        let mut acts = vec![say(crate::events::chunked()), say(chunk(BEFORE))];
        acts.extend(reads.iter().filter(|read| !read.is_empty()).map(|read| say(chunk(read))));
        acts.extend([say(chunk(BEHIND)), say(LAST_CHUNK)]);
        let as_said = judge(&script::run(&stream(&ask_with_usage(), acts)));
        // A terminator within the row ends the account there.
        let early = reads.concat().windows(6).any(|six| six == b"[DONE]");
        let provenance = if early { Provenance::Estimated } else { Provenance::Reported };
        assert_eq!((as_said.0.clone(), as_said.1), (vec!["succeeded".to_owned()], provenance));
        // Cut within the row; at every place it is cut in the codec's own tests.
        let bytes = framed(Framing::Length, &body);
        let head = bytes.len() - body.len() + BEFORE.len();
        let (row, step) = (reads.concat().len(), reads.concat().len() / CUTS_MAX + 1);
        let mut splits: Vec<Split> =
            (head..=head + row).step_by(step).map(|cut| Split::At(vec![cut])).collect();
        splits.extend((row <= BYTEWISE_MAX).then_some(Split::Bytes));
        for split in splits {
            let acts = vec![Act::Send(bytes.clone(), split.clone())];
            let cut = judge(&script::run(&stream(&ask_with_usage(), acts)));
            assert_eq!(cut, as_said, "{split:?}");
        }
    }
    assert_eq!(count, 79);
}

/// Where the event ends that ends a stream.
fn ends_at(body: &[u8]) -> usize {
    let done = body.windows(6).position(|six| six == b"[DONE]").expect("an end");
    let blank = body[done..].windows(2).position(|two| two == b"\n\n").expect("a blank line");
    done + blank + 2
}

/// The field cases that are streams of a dialect that is served: as they are cut there, as a whole,
/// and in every framing.
#[test]
fn every_field_case_passes_byte_for_byte_and_is_booked_as_it_says() {
    let mut played = Vec::new();
    for row in rows(CASES) {
        let id = text(&row, "id").to_owned();
        if !["sse", "usage", "cost"].contains(&text(&row, "area")) {
            continue;
        }
        for reads in field_reads(&row) {
            let body = reads.concat();
            let all = String::from_utf8_lossy(&body).into_owned();
            let Some(request) = request_for(&all) else { continue };
            played.push(id.clone());
            let mut acts = vec![say(crate::events::chunked())];
            acts.extend(reads.iter().map(|read| say(chunk(read))));
            acts.push(say(LAST_CHUNK));
            let mut ways = vec![acts];
            ways.extend(FRAMINGS.map(|framing| sent(framing, &body)));
            for acts in ways {
                let mut scenario = stream(&request, acts);
                scenario.clients[0].truncate(2);
                let outcome = script::run(&scenario);
                let record = &outcome.records[0];
                let Some(answer) = outcome.clients[0].answers.first() else {
                    // It ends inside an event: then the body is broken off.
                    assert_eq!(outcome.endings(), ["upstream_cut"], "{id}");
                    continue;
                };
                // Overridden by DESIGN §6: nothing behind a terminator is passed on.
                let shown = if all.contains("[DONE]") { ends_at(&body) } else { body.len() };
                // Some end without an end: then the client is told behind it.
                assert!(answer.body.starts_with(&body[..shown]), "{id}: {}", answer.text());
                let rest = &answer.text()[shown..];
                assert!(
                    rest.is_empty() || rest.contains("upstream_cut") || rest.contains("api_error"),
                    "{id}: {rest}"
                );
                booked(&id, &row["expect"], &record.tokens);
            }
        }
    }
    played.dedup();
    assert_eq!(played.len(), 21, "{played:?}");
}

/// The counts a row names are those of the record.
fn booked(id: &str, expect: &Value, tokens: &[u32; 8]) {
    let usage = if expect["usage"].is_object() { &expect["usage"] } else { &expect["each"] };
    let Some(named) = usage.as_object() else { return };
    let [fresh, read, short, long, output, ..] = *tokens;
    for (name, count) in named {
        let found = match name.as_str() {
            "input" => fresh + read + short + long,
            "input_uncached" => fresh,
            "cache_read" => read,
            "cache_write" => short + long,
            "output" => output,
            _ => continue,
        };
        if let Some(count) = count.as_u64() {
            assert_eq!(u64::from(found), count, "{id} {name}");
        }
    }
}

/// The reads of a row, once for each of its variants; none if it is no stream.
fn field_reads(row: &Value) -> Vec<Vec<Vec<u8>>> {
    let texts = |value: &Value| -> Vec<Vec<u8>> {
        value.as_array().expect("texts").iter().map(|text| text.as_str().unwrap().into()).collect()
    };
    if row["reads_text"].is_array() {
        return vec![texts(&row["reads_text"])];
    }
    if let Some(reads) = row["reads_b64"].as_array() {
        let decoded = |value: &Value| bytes(&serde_json::json!({ "b64": value }));
        return vec![reads.iter().map(decoded).collect()];
    }
    if let Some(size) = row["reads_of"].as_u64() {
        let size = usize::try_from(size).unwrap();
        return vec![bytes(row).chunks(size).map(<[u8]>::to_vec).collect()];
    }
    if row["variants_text"].is_array() {
        return texts(&row["variants_text"]).into_iter().map(|text| vec![text]).collect();
    }
    match row["text"].is_string() || row["b64"].is_string() {
        true => vec![vec![bytes(row)]],
        false => Vec::new(),
    }
}

/// A request to which this is an answer, if it is one that is served and has something in it.
fn request_for(body: &str) -> Option<String> {
    let says = |word: &str| body.contains(word);
    if !says("data:") || says("\"response.") || says("usageMetadata") || says("\"error\"") {
        return None;
    }
    if says("event: message_") || says("content_block") {
        return Some(ask_messages());
    }
    (says("\"choices\"") || says("\"usage\"")).then(ask_with_usage)
}

/// An event of a random stream.
fn event() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[ -!#-\\[\\]-~]{0,60}",
        Just("\\n\\\" \u{e9}\u{96e8}\u{1f600} \\ud83d\\ude00 data: [DONE]".to_owned()),
        (1usize..9000).prop_map(|count| "x".repeat(count)),
    ];
    let content = |text: String| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let tool = |text: String| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\
             \"function\":{{\"arguments\":\"{text}\"}}}}]}}}}]}}\n\n"
        )
    };
    prop_oneof![
        4 => text.clone().prop_map(content),
        2 => text.clone().prop_map(tool),
        1 => Just(": ping\n\n".to_owned()),
        1 => Just("\n".to_owned()),
        1 => Just("id: 7\nevent: x\nretry: 10\ndata:{}\n\n".to_owned()),
        1 => text.prop_map(|text| format!("data: {{\"x\":[\ndata: \"{text}\"\ndata: ]}}\n\n")),
        1 => Just("data: {\"choices\":[],\"usage\":null}\n\n".to_owned()),
    ]
}

/// A random stream: its text, and what a client sees of it that did not ask for usage.
fn random_stream() -> impl Strategy<Value = (String, String)> {
    let ends = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    (prop::collection::vec(event(), 0..12), ends, any::<bool>()).prop_map(
        |(events, end, marked)| {
            let role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
            let finish =
                "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
            let usage = concat!(
                "data: {\"choices\":[],",
                "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n"
            );
            let mark = if marked { "\u{feff}" } else { "" };
            let begun = format!("{mark}{role}{BEFORE}{}{finish}", events.concat());
            let with = |usage: &str| format!("{begun}{usage}data: [DONE]\n\n").replace('\n', end);
            (with(usage), with(""))
        },
    )
}

/// A body in chunks of these sizes, again and again.
fn in_chunks(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let (mut out, mut rest) = (crate::events::chunked().into_bytes(), body);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, tail) = rest.split_at(rest.len().min(*size));
        out.extend(chunk(piece));
        rest = tail;
    }
    [out.as_slice(), LAST_CHUNK].concat()
}

proptest! {
    #![proptest_config(Config { cases: 128, ..Config::default() })]

    #[test]
    fn no_cut_of_a_random_stream_changes_a_byte_or_a_token(
        (body, shown) in random_stream(),
        asks in any::<bool>(),
        framing in prop_oneof![Just(None), Just(Some(Framing::Length)), Just(Some(Framing::Close))],
        sizes in prop::collection::vec(1usize..3000, 1..5),
        places in prop::collection::vec(any::<u32>(), 0..10),
        (seed, most) in (any::<u64>(), 1usize..5000),
    ) {
        let bytes = match framing {
            Some(framing) => framed(framing, body.as_bytes()),
            None => in_chunks(body.as_bytes(), &sizes),
        };
        let mut cuts: Vec<usize> =
            places.iter().map(|at| *at as usize % bytes.len()).collect();
        cuts.sort_unstable();
        let mut acts = vec![Act::Send(bytes, Split::At(cuts))];
        acts.extend((framing == Some(Framing::Close)).then_some(Act::Fin));
        let request = if asks { ask_with_usage() } else { crate::events::ask("") };
        let scenario = stream(&request, acts);
        let world = ScriptWorld::new(seed);
        world.set_order(Order::Seeded);
        world.set_link(LinkOptions {
            to_acceptor: Chop::Random(most),
            to_dialer: Chop::Random(most),
            ..LinkOptions::default()
        });
        let outcome = script::run_in(&world, &script::config(&scenario), &scenario);
        outcome.assert_clean();
        let text = outcome.answer().text();
        prop_assert!(text == if asks { body.as_str() } else { shown.as_str() }, "{}", text);
        let record = &outcome.records[0];
        prop_assert_eq!((record.tokens[0], record.tokens[4], record.cost_picousd), (1, 2, 210));
        prop_assert_eq!(outcome.endings(), ["succeeded"]);
    }
}
