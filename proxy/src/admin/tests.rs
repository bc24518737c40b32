use super::metrics::{SERIES, render};
use super::*;
use crate::observe::upstreams::UpstreamState;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::SocketAddr;

const REFERENCE: &str = include_str!("../../../docs/reference/metrics.md");

fn watched(shards: usize) -> Arc<Watched> {
    let counters = (0..shards).map(|_| Arc::default()).collect();
    let watched = Watched::new(counters, 1_700_000_000_123).with_ledger(Arc::default());
    watched.certificate_ends(Some(1_800_000_000));
    Arc::new(watched.with_upstreams(Box::new(|| {
        let one = UpstreamState {
            provider: "one".into(),
            host: 1,
            credentials: [3, 0, 0, 2],
            cooling: 4,
        };
        vec![one, UpstreamState { provider: "other".into(), ..UpstreamState::default() }]
    })))
}

/// `series{labels}` → figure; what is not of the format fails.
fn figures(text: &str) -> BTreeMap<&str, u64> {
    let mut figures = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with("# ")) {
        let (series, figure) = line.rsplit_once(' ').expect(line);
        let name = series.split('{').next().unwrap();
        assert!(text.contains(&format!("# TYPE {name} ")), "{line}");
        assert!(figures.insert(series, figure.parse().expect(line)).is_none(), "{line}");
    }
    assert!(text.ends_with('\n'));
    figures
}

/// The labels of a series' first row.
fn labels(text: &str, name: &str) -> String {
    let row = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    let Some((labels, _)) = row.strip_prefix('{').and_then(|row| row.split_once('}')) else {
        return String::new();
    };
    let names: Vec<&str> = labels.split(',').filter_map(|label| label.split('=').next()).collect();
    names.join(", ")
}

/// Sends `request` to a serving admin port and reads to the end of the connection.
async fn ask(watched: Arc<Watched>, request: &str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, watched));
    let request = request.to_owned();
    tokio::task::spawn_blocking(move || ask_blocking(addr, &request)).await.unwrap()
}

fn ask_blocking(addr: SocketAddr, request: &str) -> String {
    let mut stream = std::net::TcpStream::connect(addr).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A server that answers before it has read all may end with a reset after its answer.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn shards_are_summed_or_shown_apart() {
    let watched = watched(2);
    watched.counters[0].attempts.add(2);
    watched.counters[1].attempts.add(3);
    watched.counters[0].snapshot_version.set(4);
    watched.counters[1].snapshot_version.set(3);
    watched.counters[1].driver.set(3);
    watched.counters[1].refused("invalid_api_key");
    watched.counters[1].answered(None, 401);
    let text = render(&watched);
    let figures = figures(&text);
    for (series, figure) in [
        ("tollgate_attempts_total", 5),
        ("tollgate_snapshot_version{shard=\"0\"}", 4),
        ("tollgate_snapshot_version_min", 3),
        ("tollgate_driver_info{shard=\"1\",driver=\"epoll\"}", 1),
        ("tollgate_refusals_total{code=\"invalid_api_key\"}", 1),
        ("tollgate_requests_total{route=\"unknown\",class=\"4xx\"}", 1),
        ("tollgate_requests_total{route=\"unknown\",class=\"5xx\"}", 0),
        ("tollgate_start_time_seconds", 1_700_000_000),
        ("tollgate_shards", 2),
        ("tollgate_host_breaker{provider=\"one\",state=\"open\"}", 1),
        ("tollgate_host_breaker{provider=\"one\",state=\"closed\"}", 0),
        ("tollgate_host_breaker{provider=\"other\",state=\"closed\"}", 1),
        ("tollgate_credential_breakers{provider=\"one\",state=\"slow_start\"}", 2),
        ("tollgate_credentials_cooling{provider=\"one\"}", 4),
        ("tollgate_certificate_not_after_seconds", 1_800_000_000),
    ] {
        assert_eq!(figures.get(series), Some(&figure), "{series}");
    }
}

#[test]
fn the_ledger_is_shown_where_there_is_one() {
    let ledger = Arc::new(LedgerGauges::default());
    ledger.committed(7, 300, 5_000);
    ledger.committed(1, 100, 2_000);
    ledger.slots[4].store(9, Ordering::Relaxed);
    ledger.fail();
    let counters = vec![Arc::default()];
    let with = render(&Watched::new(counters.clone(), 0).with_ledger(ledger));
    let figures = figures(&with);
    for (series, figure) in [
        ("tollgate_ledger_records_total", 8),
        ("tollgate_ledger_commits_total", 2),
        ("tollgate_ledger_commit_nanoseconds_total", 7_000),
        ("tollgate_ledger_commit_nanoseconds_max", 5_000),
        ("tollgate_ledger_health{state=\"good\"}", 0),
        ("tollgate_ledger_health{state=\"failing\"}", 1),
        ("tollgate_slots{state=\"done\"}", 9),
        ("tollgate_slots{state=\"free\"}", 0),
    ] {
        assert_eq!(figures.get(series), Some(&figure), "{series}");
    }
    let without = render(&Watched::new(counters, 0));
    assert!(!without.lines().any(|line| line.starts_with("tollgate_ledger_")));
}

#[test]
fn a_node_without_a_certificate_says_nothing_of_its_end() {
    let watched = watched(1);
    let has_row = |watched: &Watched| {
        let row = "tollgate_certificate_not_after_seconds ";
        render(watched).lines().any(|line| line.starts_with(row))
    };
    assert!(has_row(&watched));
    watched.certificate_ends(None);
    assert!(!has_row(&watched));
}

#[test]
fn the_reference_has_exactly_these_series() {
    let told: BTreeSet<String> = REFERENCE
        .lines()
        .filter(|line| line.starts_with("| `tollgate_"))
        .map(str::to_owned)
        .collect();
    let text = render(&watched(1));
    let made: BTreeSet<String> = SERIES
        .iter()
        .map(|s| {
            let labels = labels(&text, s.name);
            format!("| `{}` | {} | {labels} | {} |", s.name, s.kind.name(), s.help)
        })
        .collect();
    assert_eq!(told, made);
    assert_eq!(made.len(), SERIES.len(), "a series stands there twice");
    for series in SERIES {
        let counts = series.kind == metrics::Kind::Counter;
        assert_eq!(series.name.ends_with("_total"), counts, "{}", series.name);
    }
}

#[tokio::test]
async fn pages_are_read_and_nothing_else() {
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    for (request, status, part) in [
        (get("/metrics"), "200 OK", "tollgate_shards 1\n"),
        (get("/metrics?x=1"), "200 OK", "text/plain; version=0.0.4"),
        (get("/healthz"), "200 OK", "{\"status\":\"ok\"}"),
        (get("/readyz"), "200 OK", "{\"status\":\"ok\"}"),
        (get("/startupz"), "200 OK", "{\"status\":\"ok\"}"),
        (get("/"), "404 Not Found", "\"code\":\"not_found\""),
        (get("/metrics/"), "404 Not Found", "\"code\":\"not_found\""),
        (
            "POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nx".into(),
            "405 Method Not Allowed",
            "allow: GET, HEAD",
        ),
        ("POST /x HTTP/1.1\r\nhost: x\r\n\r\n".into(), "404 Not Found", "not_found"),
        ("nonsense\r\n\r\n".into(), "400 Bad Request", ""),
        (
            format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(2 * HEAD_BYTES_MAX)),
            "431 Request Header Fields Too Large",
            "",
        ),
    ] {
        let answer = ask(watched(1), &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {answer}");
        assert!(answer.contains(part), "{request}: {answer}");
    }
}

#[tokio::test]
async fn head_has_the_length_and_no_body() {
    let answer = ask(watched(1), "HEAD /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.contains("content-length: 15\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_draining_node_lives_and_is_not_ready() {
    let watched = watched(1);
    watched.drain();
    for (path, status) in [("/readyz", 503), ("/healthz", 200), ("/startupz", 200)] {
        let answer = ask(watched.clone(), &format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_head_that_never_ends_does_not_keep_its_place() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let slow = move || ask_blocking(addr, "GET /metrics HTTP/1.1\r\nhost");
    let client = tokio::task::spawn_blocking(slow);
    let (stream, _) = listener.accept().await.unwrap();
    let ended = answer(stream, watched(1), Duration::from_millis(20)).await;
    assert!(ended.is_err());
    assert!(!client.await.unwrap().contains("tollgate_"));
}
