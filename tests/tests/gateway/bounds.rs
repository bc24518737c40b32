//! What a request may take of the node, and that every path gives it back.

use crate::{BODY, call, ok, post};
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Act, Manner, Scenario, Step, say, send};
use gateway_tests::transports;

const SMALL: &str = "[limits]\nrequest_bytes = \"64KiB\"\nheld_bytes = \"96KiB\"";

const HELD: u64 = 96 << 10;

fn body(len: usize) -> String {
    let frame = r#"{"model":"a","x":""}"#;
    frame.replace("\"\"", &format!("\"{}\"", "x".repeat(len - frame.len())))
}

fn chunked(body: &str) -> String {
    let head = post("Transfer-Encoding: chunked\r\n", "").replace("Content-Length: 0\r\n", "");
    let pieces = body
        .as_bytes()
        .chunks(9000)
        .map(|piece| format!("{:x}\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece)));
    format!("{head}{}0\r\n\r\n", pieces.collect::<String>())
}

#[test]
fn a_body_over_the_cap_is_refused_unread() {
    let announced = post("", "").replace("Length: 0", "Length: 65537");
    let cases = [
        ("announced", announced, 413),
        ("arrived in chunks", chunked(&body(200_000)), 413),
        ("at the cap", post("", &body(65_536)), 200),
        ("at the cap in chunks", chunked(&body(65_536)), 200),
    ];
    let scenarios = cases.map(|(name, request, status)| {
        let mut client = vec![Step::Offer(request.into_bytes()), Step::Answer];
        client.extend((status == 413).then_some(Step::End));
        ((name, status), Scenario::plain(client, ok().as_bytes()).under(SMALL))
    });
    transports::each_of(&scenarios, |(_, status), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.closes()), (*status, *status == 413));
        assert_eq!(outcome.forwarded(), usize::from(*status == 200));
        if *status == 413 {
            assert_eq!(answer.code(), "request_too_large");
            assert_eq!(outcome.clients[0].end, End::Fin);
        }
        assert!(outcome.inside.is_none_or(|inside| inside.allowance_left == HELD));
    });
}

/// One call holds nearly all of the allowance while the upstream thinks; the next large one is
/// told to come again, a small one is served, and afterwards all of it is there again.
#[test]
fn a_spent_allowance_is_a_503_and_comes_back() {
    let large = post("", &body(60_000));
    let first = vec![send(&large), Step::Answer, Step::Signal("answered")];
    let second = vec![
        Step::Wait("held"),
        Step::Offer(large.clone().into_bytes()),
        Step::Answer,
        Step::Signal("refused"),
        Step::End,
    ];
    let third =
        vec![Step::Wait("refused"), send(post("", BODY)), Step::Answer, Step::Signal("small")];
    let fourth = vec![Step::Wait("answered"), send(&large), Step::Answer];
    let acts = vec![Act::Signal("held"), Act::Wait("small"), say(ok())];
    let mut thinking = Manner::once(acts);
    thinking.repeats = true;
    let scenario = Scenario {
        clients: vec![first, second, third, fourth],
        upstream: vec![thinking, Manner::always(ok().as_bytes())],
        ..Scenario::default()
    };
    transports::each(&scenario.under(SMALL), |outcome| {
        outcome.assert_clean();
        let statuses: Vec<u16> = (0..4).map(|client| outcome.statuses(client)[0]).collect();
        assert_eq!(statuses, [200, 503, 200, 200]);
        let busy = &outcome.clients[1].answers[0];
        assert_eq!(
            (busy.code().as_str(), busy.field("retry-after").as_deref()),
            ("node_busy", Some("1"))
        );
        assert!(outcome.inside.is_none_or(|inside| inside.allowance_left == HELD));
    });
}

/// A key that may make one call at once has one body on its way that takes room: uploads that
/// never end do not keep others out. What takes none is not counted, nor is what has arrived.
#[test]
fn a_key_has_no_more_bodies_on_their_way_than_it_may_make_calls() {
    let poor = |body: &str| post("", body).replacen("sk-test", "sk-poor", 1);
    let large = poor(&body(60_000));
    let (half, rest) = large.split_at(30_000);
    let first = vec![
        send(half),
        Step::Signal("half"),
        Step::Wait("judged"),
        send(rest),
        Step::Answer,
        Step::Signal("whole"),
    ];
    let second = vec![
        Step::Wait("half"),
        Step::Offer(large.clone().into_bytes()),
        Step::Answer,
        Step::Signal("refused"),
        Step::End,
    ];
    let third = vec![Step::Wait("refused"), send(poor(BODY)), Step::Answer, Step::Signal("judged")];
    let fourth = vec![Step::Wait("whole"), send(&large), Step::Answer];
    let clients = vec![first, second, third, fourth];
    let upstream = vec![Manner::always(ok().as_bytes())];
    let scenario = Scenario { clients, upstream, ..Scenario::default() };
    let digest = "0fb7a9381d67a12c97848d48cf5afb221bcc12268161fb10f0b51bf18ead6ae3";
    let key = format!("[[key]]\nname = \"poor\"\nsha256 = \"{digest}\"\nconcurrent = 1");
    let limited = format!("{SMALL}\n{key}");
    transports::on_script(&[("one at once", scenario.under(&limited))], |_, outcome| {
        outcome.assert_clean();
        let statuses: Vec<u16> = (0..4).map(|client| outcome.statuses(client)[0]).collect();
        assert_eq!(statuses, [200, 429, 200, 200]);
        assert_eq!(outcome.clients[1].answers[0].code(), "concurrency_limited");
        assert!(outcome.inside.is_none_or(|inside| inside.allowance_left == HELD));
    });
}

/// Refused, reset, cut, relayed: whatever the end, nothing stays leased.
#[test]
fn every_ending_gives_the_allowance_back() {
    let request = post("", &body(50_000));
    let half = &request[..30_000];
    let bad = request.replace("\"a\"", "nope");
    let rest = |steps: &[Step]| steps.to_vec();
    let endings: Vec<(&str, Vec<Step>, Vec<Act>)> = vec![
        ("served", call(&request), vec![say(ok())]),
        ("bad json", vec![Step::Offer(bad.into_bytes()), Step::Answer, Step::End], vec![]),
        ("ended in the body", rest(&[send(half), Step::Fin, Step::Answer, Step::End]), vec![]),
        ("reset in the body", rest(&[send(half), Step::Reset]), vec![]),
        ("upstream cut", call(&request), vec![Act::Reset]),
        ("upstream silent", call(&request), vec![Act::Hang]),
        ("upstream nonsense", call(&request), vec![say("NONSENSE\r\n\r\n")]),
        (
            "reset while waiting",
            vec![send(&request), Step::Wait("asked"), Step::Reset],
            vec![Act::Signal("asked"), Act::Hang],
        ),
    ];
    // A client that leaves an answer which is read on for its usage gives its request up at once.
    let rules = ["abort", "drain_short"].into_iter();
    let scenarios: Vec<((&str, &str), Scenario)> = endings
        .into_iter()
        .flat_map(|ending| rules.clone().map(move |rule| (rule, ending.clone())))
        .map(|(rule, (name, client, acts))| {
            let upstream = vec![Manner::once(acts)];
            let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
            let more =
                format!("[deadlines]\nfirst_byte = \"300ms\"\n[endings]\nclient_left = \"{rule}\"");
            ((name, rule), scenario.under(SMALL).under(&more))
        })
        .collect();
    transports::each_of(&scenarios, |_, outcome| {
        assert_eq!(
            (outcome.counters.panics.get(), outcome.counters.connections_open.get()),
            (0, 0)
        );
        assert_eq!(outcome.clients[0].faults, Vec::<String>::new());
        assert!(outcome.inside.is_none_or(|inside| inside.allowance_left == HELD));
    });
}
