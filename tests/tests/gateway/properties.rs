//! Random well-formed traffic, cut at random on both sides and run in a random order: the bytes
//! that come out are those of the same traffic uncut.

use crate::{COMPLETION, post};
use gateway_tests::outcome::{End, Outcome};
use gateway_tests::scenario::{Act, Manner, Scenario, Split, Step};
use gateway_tests::{script, setting};
use proptest::prelude::*;
use proptest::test_runner::Config;
use tollgate::io::script::{Chop, LinkOptions, Order, ScriptWorld};

/// A call of random traffic.
#[derive(Clone, Debug)]
struct Call {
    body: String,
    /// Sizes of chunks; a length if there is none.
    chunks: Vec<usize>,
    answer: String,
    answer_chunks: Vec<usize>,
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -!#-\\[\\]-~]{0,40}",
        Just("\\\\ \\\" \\n \\u00e9 \\ud83d".to_owned()),
        Just("\u{e9}\u{96e8}\u{1f600}".to_owned()),
        (1usize..9000).prop_map(|count| "x".repeat(count)),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn call() -> impl Strategy<Value = Call> {
    let sizes = || prop_oneof![Just(Vec::new()), prop::collection::vec(1usize..3000, 1..6)];
    (text(), any::<bool>(), prop_oneof![Just("a"), Just("nick")], sizes(), text(), sizes())
        .prop_map(|(said, model_first, model, chunks, answer, answer_chunks)| {
            let messages = format!("\"messages\":[{{\"content\":\"{said}\"}}]");
            let model = format!("\"model\" :\t\"{model}\"");
            let (one, other) = if model_first { (model, messages) } else { (messages, model) };
            let answer = COMPLETION.replacen("hi", &format!("hi{answer}"), 1);
            Call { body: format!("{{{one}, {other}}}"), chunks, answer, answer_chunks }
        })
}

/// A body in chunks of these sizes, again and again; each with an extension now and then.
fn chunked(body: &str, sizes: &[usize]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), body.as_bytes());
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, tail) = rest.split_at(rest.len().min(*size));
        out.extend_from_slice(format!("{:X}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
        rest = tail;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

impl Call {
    fn request(&self) -> Vec<u8> {
        if self.chunks.is_empty() {
            return post("", &self.body).into_bytes();
        }
        let head = post("Transfer-Encoding: chunked\r\n", "").replace("Content-Length: 0\r\n", "");
        [head.into_bytes(), chunked(&self.body, &self.chunks)].concat()
    }

    fn response(&self) -> Vec<u8> {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        if self.answer_chunks.is_empty() {
            let length = self.answer.len();
            return format!("{head}Content-Length: {length}\r\n\r\n{}", self.answer).into_bytes();
        }
        let head = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        [head, chunked(&self.answer, &self.answer_chunks)].concat()
    }
}

/// The calls in turn on one connection, pipelined or not, cut at `places` of what is sent.
fn scenario(calls: &[Call], pipelined: bool, places: &[u16]) -> Scenario {
    let cuts = |len: usize| {
        let mut cuts: Vec<usize> = places.iter().map(|at| usize::from(*at) % len).collect();
        cuts.sort_unstable();
        Split::At(cuts)
    };
    let mut client = Vec::new();
    if pipelined {
        let all: Vec<u8> = calls.iter().flat_map(Call::request).collect();
        client.push(Step::Send(all.clone(), cuts(all.len())));
        client.extend(vec![Step::Answer; calls.len()]);
    } else {
        for call in calls {
            let request = call.request();
            client.extend([Step::Send(request.clone(), cuts(request.len())), Step::Answer]);
        }
    }
    client.extend([Step::Fin, Step::End]);
    let turns = calls.iter().map(|call| {
        let response = call.response();
        Manner::once(vec![Act::Send(response.clone(), cuts(response.len()))]).turns.remove(0)
    });
    let upstream = vec![Manner { turns: turns.collect(), repeats: false }];
    Scenario { clients: vec![client], upstream, ..Scenario::default() }
        .under("[alias]\nnick = \"a\"")
}

type Seen = (Vec<(u16, String)>, Vec<String>, Vec<String>, usize);

fn seen(outcome: &Outcome) -> Seen {
    outcome.assert_clean();
    assert_eq!(outcome.clients[0].end, End::Fin);
    let answers = outcome.clients[0].answers.iter().map(|answer| (answer.status, answer.text()));
    let bodies = outcome.requests().map(|asked| asked.text()).collect();
    (answers.collect(), bodies, outcome.endings(), outcome.upstream.len())
}

proptest! {
    #![proptest_config(Config { cases: 96, ..Config::default() })]

    #[test]
    fn no_cut_and_no_order_changes_a_byte(
        calls in prop::collection::vec(call(), 1..4),
        pipelined in any::<bool>(),
        places in prop::collection::vec(any::<u16>(), 0..8),
        (seed, most) in (any::<u64>(), 1usize..5000),
    ) {
        let plain = scenario(&calls, pipelined, &[]);
        let expected = seen(&script::run(&plain));
        let bodies: Vec<String> =
            calls.iter().map(|call| call.body.replace("\"nick\"", "\"a\"")).collect();
        let answers: Vec<(u16, String)> =
            calls.iter().map(|call| (200, call.answer.clone())).collect();
        prop_assert_eq!(&expected.0, &answers);
        prop_assert_eq!(&expected.1, &bodies);
        let world = ScriptWorld::new(seed);
        world.set_order(Order::Seeded);
        world.set_link(LinkOptions {
            to_acceptor: Chop::Random(most),
            to_dialer: Chop::Random(most),
            ..LinkOptions::default()
        });
        let config = setting::config(script::upstream_at(), &plain.config);
        let outcome = script::run_in(&world, &config, &scenario(&calls, pipelined, &places));
        prop_assert_eq!(seen(&outcome), expected);
    }
}
