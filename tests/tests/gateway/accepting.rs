//! Taking connections: out of descriptors, in the middle of cancelled reads, on several shards.

use crate::{BODY, COMPLETION, call, ok, post};
use gateway_tests::corpus::{CASES, row};
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Manner, Scenario, Step, send};
use gateway_tests::{script, setting, transports};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use tollgate::io::script::ScriptWorld;
use tollgate::server::{Keep, Node, Options};

/// `rt-accept-emfile`: no spin while it lasts, and afterwards everybody is served.
#[test]
fn running_out_of_descriptors_is_waited_out() {
    assert_eq!(row(CASES, "rt-accept-emfile")["expect"]["after"], "request is served");
    let world = ScriptWorld::new(1);
    let config = setting::config(script::upstream_at(), "");
    let clients = vec![call(post("", BODY)); 3];
    let upstream = vec![Manner::always(ok().as_bytes())];
    let scenario = Scenario { clients, upstream, ..Scenario::default() };
    let failures = |world: &ScriptWorld| {
        world.fail_accepts(script::gateway_at(), 20, libc::EMFILE).unwrap();
    };
    let outcome = script::run_prepared(&world, &config, &scenario, failures);
    outcome.assert_clean();
    assert!((0..3).all(|client| outcome.statuses(client) == [200]));
    assert_eq!(outcome.counters.accept_errors.get(), 20);
    // One look a tick, not one a turn.
    let ms = outcome.inside.unwrap().clients_ms;
    assert!((1_900..2_300).contains(&ms), "{ms}");
}

/// `rt-uring-buffer`: reads that end by their deadline, by a reset and by bytes at about the same
/// time, again and again, while others' bodies stay what they are.
#[test]
fn cancelled_reads_never_leave_bytes_to_others() {
    assert_eq!(row(CASES, "rt-uring-buffer")["expect"]["pattern"], "no foreign bytes ever");
    let good = post("", &format!(r#"{{"model":"a","messages":["{}"]}}"#, "g".repeat(6000)));
    let bad = post("", &format!(r#"{{"model":"a","messages":["{}"]}}"#, "#".repeat(6000)));
    let mut clients = Vec::new();
    for nth in 0..60 {
        let pause = Step::Pause(Duration::from_millis(80 + 5 * (nth % 9)));
        clients.push(match nth % 3 {
            0 => vec![send(&bad[..3000]), pause, Step::Reset],
            1 => vec![
                send(&bad[..3000]),
                pause,
                Step::Offer(bad.as_bytes()[3000..5000].to_vec()),
                Step::Reset,
            ],
            _ => {
                let mut steps = Vec::new();
                for _ in 0..4 {
                    steps.extend(call(&good));
                }
                steps
            }
        });
    }
    let upstream = vec![Manner::always(ok().as_bytes())];
    let scenario = Scenario { clients, upstream, ..Scenario::default() };
    transports::each(&scenario.under("[deadlines]\nbody = \"100ms\""), |outcome| {
        assert_eq!(
            (outcome.counters.panics.get(), outcome.counters.connections_open.get()),
            (0, 0)
        );
        for client in outcome.clients.iter().skip(2).step_by(3) {
            assert_eq!(client.faults, Vec::<String>::new());
            assert!(client.answers.iter().all(|answer| answer.text() == COMPLETION));
        }
        assert_eq!(outcome.forwarded(), 80);
        assert!(
            outcome
                .requests()
                .all(|asked| good.ends_with(&asked.text()) && asked.body.len() > 6000)
        );
    });
}

/// A whole node of four shards: ids are unique over all of them, and nobody is accepted any more
/// once it drains.
#[test]
fn request_ids_are_unique_over_shards() {
    let upstream = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    // Nobody listens any more: every call is refused at once, with an id of its own.
    let at = upstream.local_addr().unwrap();
    drop(upstream);
    let more = "[shards]\ncount = 4\n[listen]\ndata = \"127.0.0.1:0\"\n[retry]\nattempts = 1";
    let mut config = setting::config(at, more);
    config.ledger = None;
    let mut node = Node::start(&config, &Options { keep_records: Keep::All, pin: false }).unwrap();
    assert_eq!(node.counters.len(), 4);
    let mut ids = BTreeSet::new();
    let request = post("Connection: close\r\n", BODY);
    for _ in 0..64 {
        let mut stream = TcpStream::connect(node.data).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        // Until the breaker is open, and then.
        let status = answer.get(9..12);
        assert!(matches!(status, Some("502" | "503")), "{answer}");
        let id = answer.split("x-tollgate-request-id: ").nth(1).and_then(|rest| rest.get(..36));
        assert!(ids.insert(id.unwrap().to_owned()), "{id:?} twice");
    }
    let used = node.counters.iter().filter(|shard| shard.connections.get() > 0).count();
    assert!(used > 1, "the kernel used one shard only");
    let mut recorded = BTreeSet::new();
    node.records.take(|record| assert!(recorded.insert(record.request_id)));
    assert_eq!(recorded.len(), 64);
    node.drain().unwrap();
    assert!(TcpStream::connect(node.data).is_err(), "a drained node takes nobody");
}

/// Opening and closing without a word costs nothing and is no error.
#[test]
fn connections_without_a_request_are_let_go() {
    let clients = vec![
        vec![Step::Fin, Step::End],
        vec![Step::Reset],
        vec![send("\r\n"), Step::Fin, Step::End],
        vec![send("POST /v1/chat"), Step::Fin, Step::End],
        call(post("", BODY)),
    ];
    let upstream = vec![Manner::always(ok().as_bytes())];
    transports::each(&Scenario { clients, upstream, ..Scenario::default() }, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(4), [200]);
        assert!([0, 2, 3].iter().all(|nth| outcome.clients[*nth].end == End::Fin));
        assert_eq!(outcome.counters.connections.get(), 5);
    });
}
