//! A framing that goes wrong behind bytes of an answer: they have come, whoever wrote them has done
//! the work, and it makes no difference whether the fault is in the same read.

use crate::events::{
    CHAT, CHAT_COST, MESSAGES, MESSAGES_COST, ask_messages, ask_with_usage, chunk, chunked,
};
use crate::{BODY, COMPLETION, call, ok, post};
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Act, Manner, Scenario, Step, say};
use gateway_tests::transports;
use std::time::Duration;
use store::ending::{Ending, Provenance};

/// What is no framing behind a chunk.
const FAULTS: [&str; 4] =
    ["zz\r\n", "0\r\nno field\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "-1\r\nx\r\n0\r\n\r\n"];

/// This head and body, then the fault: in one read, apart, and a byte at a time.
fn ways(begun: &[u8], fault: &str) -> [Vec<Act>; 3] {
    let both = [begun, fault.as_bytes()].concat();
    let bytes: Vec<Act> = both.iter().map(|byte| say([*byte])).collect();
    let apart = vec![say(begun), Act::Pause(Duration::from_millis(20)), say(fault), Act::Hang];
    [vec![say(&both), Act::Hang], apart, bytes.into_iter().chain([Act::Hang]).collect()]
}

/// One call, while another upstream connection would answer a second attempt.
fn once(request: &str, acts: Vec<Act>) -> Scenario {
    let mut client = call(request);
    client.extend([Step::Fin, Step::End]);
    let upstream = vec![Manner::once(acts), Manner::always(ok().as_bytes())];
    Scenario { clients: vec![client], upstream, ..Scenario::default() }
        .under("[retry]\nattempts = 2\nbackoff = \"0ms\"\n")
}

#[test]
fn a_stream_that_has_ended_is_whole_whatever_its_framing_does_then() {
    let mut scenarios = Vec::new();
    for (request, body, cost) in
        [(ask_with_usage(), CHAT, CHAT_COST), (ask_messages(), MESSAGES, MESSAGES_COST)]
    {
        let begun = [chunked().into_bytes(), chunk(body)].concat();
        for fault in FAULTS {
            for acts in ways(&begun, fault) {
                scenarios.push(((body, cost), once(&request, acts)));
            }
        }
    }
    transports::each_of(&scenarios, |(body, cost), outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), *body);
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.cost_picousd), (Ending::Succeeded, *cost));
        assert_eq!((record.provenance, outcome.forwarded()), (Provenance::Reported, 1));
        assert_ne!(outcome.upstream[0].end, End::Open, "nobody asks there again");
    });
}

#[test]
fn a_stream_that_had_begun_is_told_as_broken_and_asked_of_nobody_else() {
    // Role and one word.
    let content: String = CHAT.split_inclusive("\n\n").take(2).collect();
    let mut scenarios = Vec::new();
    for fault in FAULTS {
        let begun = [chunked().into_bytes(), chunk(&content)].concat();
        for acts in ways(&begun, fault) {
            scenarios.push((fault, once(&ask_with_usage(), acts)));
        }
    }
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        let text = outcome.answer().text();
        assert!(text.starts_with(&content) && text.contains("upstream_cut"), "{text}");
        assert!(!text.contains("[DONE]"), "{text}");
        let record = &outcome.records[0];
        assert_eq!(
            (record.ending, record.provenance),
            (Ending::UpstreamCut, Provenance::Estimated)
        );
        assert!(record.cost_picousd > 0 && outcome.forwarded() == 1);
    });
}

#[test]
fn an_answer_whose_framing_goes_wrong_is_charged_by_what_it_reported() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let head = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let begun = [head.as_bytes(), &chunk(COMPLETION)].concat();
    let mut scenarios = Vec::new();
    let cut = vec![say(&begun), Act::Fin];
    for acts in FAULTS.iter().flat_map(|fault| ways(&begun, fault)).chain([cut]) {
        scenarios.push(((), once(&post("", BODY), acts)));
    }
    transports::each_of(&scenarios, |(), outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().status, outcome.forwarded()), (502, 1));
        let record = &outcome.records[0];
        // One token in, two out, as in the stream.
        assert_eq!((record.provenance, record.cost_picousd), (Provenance::Reported, CHAT_COST));
    });
}

/// A success that is an error is one, whatever it says of its usage; and zeros are no usage.
#[test]
fn zeros_beside_an_error_are_no_work_that_was_done() {
    let body = r#"{"error":{"message":"busy","type":"server_error","code":503},
        "usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}"#;
    let mut scenarios = Vec::new();
    for status in ["200 OK", "503 Busy"] {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n");
        let answer = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        scenarios.push(((), once(&post("", BODY), vec![say(answer), Act::Fin])));
    }
    transports::each_of(&scenarios, |(), outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().status, outcome.forwarded()), (200, 2), "tried again");
        assert_eq!(outcome.answer().text(), COMPLETION);
    });
}
