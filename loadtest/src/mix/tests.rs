//! The load against the stand-in itself, where every outcome is known.

use std::time::Duration;

use super::class::{self, Class};
use super::report::Report;
use super::schedule::Faults;
use super::{Settings, run};
use crate::floor::Floor;
use crate::standin::{Config, Standin};
use crate::tls::{Identity, Papers, Trust};

const STREAMS: &str = include_str!("../../mixes/streams.toml");

fn settings(standin: &Standin, faults: &str, requests: u64) -> Settings {
    let mut classes: Vec<Class> = class::built_in().unwrap();
    let class = faults.split('=').next().unwrap();
    if STREAMS.contains(&format!("name = \"{class}\"")) {
        classes = class::load(STREAMS).unwrap();
    }
    Settings {
        target: standin.addr(),
        trust: None,
        key: "tg-test".to_owned(),
        connections: 4,
        time: Duration::from_secs(20),
        requests_max: requests,
        weights: Faults::parse(faults).unwrap().weights(&classes).unwrap(),
        classes,
        model: "ok".to_owned(),
        model_prefix: String::new(),
        messages_prefix: String::new(),
        check: true,
        body_bytes: 2048,
        rate: None,
        timeout: Duration::from_secs(10),
        seed: 7,
    }
}

fn only(class: &str, requests: u64) -> Report {
    let standin = Standin::start(Config::default()).unwrap();
    run(&settings(&standin, &format!("{class}=100"), requests)).unwrap()
}

/// The same over TCP and over TLS.
fn both(class: &str, requests: u64) -> [Report; 2] {
    let papers = Papers::made().unwrap();
    let identity = Some(Identity::of_pem(&papers.chain, &papers.key).unwrap());
    let standin = Standin::start(Config { identity, ..Config::default() }).unwrap();
    let mut settings = settings(&standin, &format!("{class}=100"), requests);
    settings.trust = Some(Trust::of_pem(&papers.ca).unwrap());
    [only(class, requests), run(&settings).unwrap()]
}

fn outcomes(report: &Report) -> Vec<(&str, u64)> {
    report.classes[0].outcomes.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}

#[test]
fn a_plain_run_is_answered_whole_on_its_connections() {
    let standin = Standin::start(Config { captured_max: 1, ..Config::default() }).unwrap();
    let report = run(&settings(&standin, "0", 1000)).unwrap();
    assert_eq!((report.requests, report.answered, report.unexpected), (1000, 1000, 0));
    assert_eq!((report.connects, report.latency_us.count), (4, 1000));
    assert!(report.latency_us.p50 <= report.latency_us.p99);
    assert!(report.latency_us.p99 <= report.latency_us.max);
    let counts = standin.counts();
    assert_eq!((counts.requests, counts.whole, counts.connections), (1000, 1000, 4));
    let entry = &standin.tally()[0];
    assert_eq!((entry.body_bytes, entry.model.as_str()), (2048, "ok"));
}

#[test]
fn outcomes_are_told_apart() {
    for (class, expected) in [
        ("up-429", ("429", 20)),
        ("up-cut-body", ("cut", 20)),
        ("up-cut-head", ("cut", 20)),
        ("up-fin", ("closed", 20)),
        ("up-rst", ("closed", 20)),
        ("up-rst-body", ("cut", 20)),
        ("up-cl-te", ("invalid", 20)),
        ("up-bad-chunk", ("invalid", 20)),
        ("up-close-delimited", ("200", 20)),
        ("up-interim", ("200", 20)),
        ("bad-chunk", ("400", 20)),
        ("two-lengths", ("400", 20)),
        ("http10", ("200", 20)),
        ("chunked-request", ("200", 20)),
        ("last-of-connection", ("200", 20)),
        ("pair", ("200", 40)),
        ("leave-in-head", ("left", 20)),
        ("leave-in-body", ("left", 20)),
        ("leave-before-answer", ("left", 20)),
        ("leave-before-answer-reset", ("left", 20)),
        ("leave-in-answer", ("left", 20)),
        ("slow-head", ("200", 20)),
        ("slow-body", ("200", 20)),
        ("body-1m", ("200", 20)),
        ("answer-1m", ("200", 20)),
        ("up-split", ("200", 20)),
    ] {
        for report in both(class, 20) {
            assert_eq!(outcomes(&report), [expected], "{class}");
        }
    }
}

#[test]
fn streams_are_told_apart_by_their_end() {
    for (class, expected) in [
        ("stream", ("stream", 12)),
        ("stream-usage", ("stream", 12)),
        ("messages-stream", ("stream", 12)),
        ("messages", ("200", 12)),
        ("count-tokens", ("200", 12)),
        ("stream-bytes", ("stream", 12)),
        ("messages-ping", ("stream", 12)),
        ("stream-cr", ("stream", 12)),
        ("stream-utf8", ("stream", 12)),
        ("stream-gzip", ("stream-open", 12)),
        ("stream-close-delimited", ("stream", 12)),
        ("stream-http10", ("stream", 12)),
        ("stream-1m", ("stream", 12)),
        ("messages-giant", ("stream", 12)),
        ("stream-pair", ("stream", 24)),
        ("stream-400", ("400", 12)),
        ("stream-html", ("200", 12)),
        ("stream-empty", ("stream-open", 12)),
        ("stream-no-done", ("stream-open", 12)),
        ("stream-cut", ("cut", 12)),
        ("messages-rst-in-event", ("cut", 12)),
        ("stream-rst-after-done", ("cut", 12)),
        ("stream-err-mid", ("stream-error", 12)),
        ("messages-err-mid", ("stream-error", 12)),
        ("leave-stream", ("left", 12)),
        ("leave-messages-reset", ("left", 12)),
        ("leave-stream-at-once", ("left", 12)),
        ("leave-stalled-stream", ("left", 12)),
        ("leave-before-stream", ("left", 12)),
    ] {
        for report in both(class, 12) {
            assert_eq!(outcomes(&report), [expected], "{class}");
        }
    }
}

#[test]
fn other_content_than_the_stand_ins_is_told() {
    let changed = "[[scenario]]\nname = \"stream-20\"\nabout = \"another\"\n\
                   steps = [{ stream = { events = 19 } }]\n\
                   [[scenario]]\nname = \"ok\"\nabout = \"another\"\n\
                   steps = [{ answer = { body = { completion = { size = 822 } } } }]\n";
    let scenarios = vec![changed.to_owned()];
    let standin = Standin::start(Config { scenarios, ..Config::default() }).unwrap();
    for class in ["stream", "messages-stream", "messages", "small"] {
        let mut settings = settings(&standin, &format!("{class}=100"), 6);
        let report = run(&settings).unwrap();
        assert_eq!((outcomes(&report), report.unexpected), (vec![("differs", 6)], 6), "{class}");
        settings.check = false;
        assert_eq!(run(&settings).unwrap().unexpected, 0, "{class}");
    }
}

#[test]
fn outcomes_that_no_class_expects_are_told() {
    // the stand-in knows no keys: a gateway must refuse what it answers
    let report = only("bad-key", 9);
    assert_eq!((outcomes(&report), report.unexpected), (vec![("200", 9)], 9));
    assert_eq!(report.classes[0].examples.len(), 3);
    assert!(report.to_string().contains("UNEXPECTED 9, expected 401: 200 after"), "{report}");
    let surplus = only("up-two-answers", 3);
    assert!(surplus.surplus_bytes > 0 && surplus.unexpected > 0);
    let cut = only("stream-rst-after-done", 3);
    assert_eq!(cut.unexpected, 3, "{cut}");
}

#[test]
fn an_answer_that_does_not_come_times_out() {
    let standin = Standin::start(Config::default()).unwrap();
    let mut settings = settings(&standin, "0", 4);
    settings.model = "hang".to_owned();
    settings.timeout = Duration::from_millis(50);
    let report = run(&settings).unwrap();
    assert_eq!(outcomes(&report), [("timed-out", 4)]);
}

#[test]
fn a_rate_is_kept_and_latency_counts_from_the_plan() {
    let standin = Standin::start(Config::default()).unwrap();
    let mut settings = settings(&standin, "0", 40);
    settings.connections = 1;
    settings.rate = Some(1000.0);
    settings.model = "slow-10".to_owned();
    let report = run(&settings).unwrap();
    // one connection takes 10 ms an answer where one is due each millisecond: the last waits long
    assert_eq!(report.answered, 40);
    assert!(report.latency_us.max > 300_000, "{:?}", report.latency_us);
}

#[test]
fn clients_that_leave_at_once_do_not_outlast_the_run() {
    let standin = Standin::start(Config::default()).unwrap();
    let mut settings = settings(&standin, "leave-in-head=100", u64::MAX);
    settings.time = Duration::from_millis(50);
    let report = run(&settings).unwrap();
    assert!(report.seconds < 5.0 && report.requests > 4, "{report}");
}

#[test]
fn a_target_that_is_not_there_ends_the_run() {
    let standin = Standin::start(Config::default()).unwrap();
    let settings = settings(&standin, "0", u64::MAX);
    standin.stop().unwrap();
    let outcome = run(&settings).map(|report| report.classes);
    match outcome {
        Err(error) => assert!(error.to_string().contains("does not accept"), "{error}"),
        Ok(classes) => panic!("{classes:?}"),
    }
}

#[test]
fn through_the_floor_all_is_as_without_it() {
    let standin = Standin::start(Config::default()).unwrap();
    let floor = Floor::start(([127, 0, 0, 1], 0).into(), standin.addr()).unwrap();
    let spec = "body-1m=5,answer-1m=5,chunked-request=10,pair=10,up-chunked=10,slow-body=2";
    let mut settings = settings(&standin, spec, 600);
    settings.target = floor.addr();
    let report = run(&settings).unwrap();
    assert_eq!(report.unexpected, 0, "{report}");
    assert_eq!(standin.counts().whole, report.answered);
}
