//! Answers of every size, in every framing, to clients of both versions; the last KiB waits for
//! the price; a broken upstream never becomes a clean end.

use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::answer::Framed;
use gateway_tests::outcome::{End, Outcome};
use gateway_tests::scenario::{Act, Manner, Scenario, Split, Step, say, send};
use gateway_tests::{script, transports};
use std::time::Duration;

/// How an upstream frames its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upstream {
    Length,
    Chunked,
    Close,
}

const FRAMINGS: [Upstream; 3] = [Upstream::Length, Upstream::Chunked, Upstream::Close];

/// Below and above one buffer, the flat bound, the look-ahead, and far above all of them.
const SIZES: [usize; 6] = [2 << 10, 9 << 10, 17 << 10, 64 << 10, 70 << 10, 1 << 20];

/// A completion of exactly `size` bytes, its usage at the end.
fn completion(size: usize) -> String {
    let padding = "0123456789abcdef".repeat(size / 16 + 1);
    COMPLETION.replacen("hi", &format!("hi{}", &padding[..size - COMPLETION.len()]), 1)
}

fn acts(framing: Upstream, body: &str) -> Vec<Act> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    match framing {
        Upstream::Length => vec![say(json("200 OK", "", body))],
        Upstream::Chunked => {
            let mut out = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
            for (at, piece) in body.as_bytes().chunks(5000).enumerate() {
                let text = String::from_utf8_lossy(piece);
                let extension = if at == 0 { ";a=b" } else { "" };
                out.push_str(&format!("{:X}{extension}\r\n{text}\r\n", piece.len()));
            }
            out.push_str("0\r\nX-Trailer: 1\r\n\r\n");
            vec![say(out)]
        }
        Upstream::Close => vec![say(format!("{head}\r\n{body}")), Act::Fin],
    }
}

fn once(framing: Upstream, body: &str, minor: u8) -> Scenario {
    let request = post("", BODY).replace("HTTP/1.1", &format!("HTTP/1.{minor}"));
    let mut client = call(request);
    if minor == 1 {
        client.push(Step::Fin);
    }
    client.push(Step::End);
    let mut turns = Manner::once(acts(framing, body));
    turns.repeats = framing != Upstream::Close;
    Scenario { clients: vec![client], upstream: vec![turns], ..Scenario::default() }
}

#[test]
fn a_call_goes_through_and_leaves_a_record() {
    let scenario = Scenario::plain(call(post("", BODY)), ok().as_bytes());
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.framed), (200, Framed::Length));
        assert_eq!(answer.text(), COMPLETION);
        assert_eq!(outcome.asked().text(), BODY);
        assert_eq!(outcome.endings(), ["succeeded"]);
        let record = &outcome.records[0];
        assert_eq!((record.tokens[0], record.tokens[4], record.cost_picousd), (1, 2, 210));
        assert_eq!((record.status, record.attempts, record.key_id), (200, 1, 1));
        assert_eq!((record.model.as_str(), record.served_model.as_str()), ("a", "a"));
    });
}

#[test]
fn every_size_and_framing_arrives_byte_for_byte() {
    let mut scenarios = Vec::new();
    for (size, framing) in SIZES.iter().flat_map(|size| FRAMINGS.map(|framing| (*size, framing))) {
        let body = completion(size);
        assert_eq!(body.len(), size);
        for minor in [0, 1] {
            scenarios.push(((size, framing, minor), once(framing, &body, minor)));
        }
    }
    transports::each_of(&scenarios, |&(size, framing, minor), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!(answer.status, 200);
        assert!(answer.text() == completion(size), "{} bytes differ", answer.body.len());
        // What is wholly here within the look-ahead has a length, whatever the upstream's framing.
        let expected = match (framing, minor) {
            (Upstream::Length, _) => Framed::Length,
            _ if size < 60 << 10 => Framed::Length,
            (_, 0) if size > 256 << 10 => Framed::Close,
            (_, 1) if size > 256 << 10 => Framed::Chunked,
            _ => answer.framed,
        };
        assert_eq!(answer.framed, expected);
        assert_eq!((outcome.clients[0].end, answer.closes()), (End::Fin, minor == 0));
        assert_eq!((outcome.records[0].cost_picousd, outcome.endings()), (210, succeeded()));
    });
}

fn succeeded() -> Vec<String> {
    vec!["succeeded".to_owned()]
}

#[test]
fn long_answers_do_not_depend_on_how_they_are_cut() {
    let body = completion(66 << 10);
    for framing in FRAMINGS {
        let scenario = |split: Split| {
            let mut one = once(framing, &body, 1);
            if let Act::Send(_, cut) = &mut one.upstream[0].turns[0].acts[0] {
                *cut = split;
            }
            one
        };
        script::run_splits(scenario, body.len(), |outcome: &Outcome| {
            outcome.assert_clean();
            assert!(outcome.answer().text() == body, "{framing:?}");
            outcome.endings()
        });
    }
}

/// The client stops before the end, on a long answer and on a short one; the record is there.
#[test]
fn nobody_has_the_whole_answer_before_its_price_is_noted() {
    for size in [70 << 10, 300 << 10] {
        let body = completion(size);
        let all = json("200 OK", "", &body);
        let most = all.len() - 1;
        let acts = vec![say(&all[..most]), Act::Signal("most"), Act::Wait("seen"), say("}")];
        let client = vec![
            send(post("", BODY)),
            Step::Wait("most"),
            Step::Bytes(size - 2048),
            Step::Pause(Duration::from_millis(50)),
            Step::Mark,
            Step::Signal("seen"),
            Step::Answer,
        ];
        let upstream = vec![Manner::once(acts)];
        let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            assert!(outcome.answer().text() == body);
            let head = outcome.clients[0].marks[0] - (size - 1024 - 1);
            assert!(
                head < 1024,
                "{} bytes of {size} before the last one",
                outcome.clients[0].marks[0]
            );
        });
    }
}

/// What the upstream breaks off in the middle of never looks whole, whatever its framing and the
/// client's version.
#[test]
fn a_broken_answer_never_becomes_a_clean_end() {
    let mut scenarios = Vec::new();
    for framing in FRAMINGS {
        let body = completion(200 << 10);
        let Act::Send(bytes, _) = &acts(framing, &body)[0] else { continue };
        let cut = bytes[..bytes.len() / 2].to_vec();
        for minor in [0, 1] {
            // A body that the close delimits is cut by a reset only.
            let ends: &[Act] = match framing {
                Upstream::Close => &[Act::Reset],
                _ => &[Act::Reset, Act::Fin],
            };
            for end in ends {
                let mut one = once(framing, &body, minor);
                one.clients[0].truncate(1);
                one.clients[0].push(Step::End);
                let taken = Act::Pause(Duration::from_millis(150));
                one.upstream[0] = Manner::once(vec![say(&cut), taken, end.clone()]);
                scenarios.push(((framing, minor, format!("{end:?}")), one));
            }
        }
    }
    transports::each_of(&scenarios, |(framing, minor, _), outcome| {
        let client = &outcome.clients[0];
        assert_eq!(client.faults, Vec::<String>::new());
        assert_eq!(outcome.endings(), ["upstream_cut"]);
        let text = String::from_utf8_lossy(&client.surplus);
        let last_chunk = text.ends_with("\r\n0\r\n\r\n");
        match (framing, minor) {
            // The length tells.
            (Upstream::Length, _) => assert!(text.len() < 200 << 10),
            (_, 1) => assert!(!last_chunk && text.contains("transfer-encoding: chunked")),
            _ => assert_eq!(client.end, End::Reset),
        }
        assert_eq!(outcome.forwarded(), 1, "nothing is replayed");
    });
}
