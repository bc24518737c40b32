//! An upstream in trouble is left alone: how many tries it costs until it is, who is not concerned,
//! and how one probe finds that it is well again. In virtual time, but for one node of four shards.

use crate::failover::{host, of};
use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Act, Host, Manner, Reach, Read, Scenario, Step, Turn, say, send};
use gateway_tests::{script, setting};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use tollgate::server::{Keep, Node, Options};

fn pause(seconds: u64) -> Step {
    Step::Pause(Duration::from_secs(seconds))
}

/// A provider `many` on the first host with so many credentials, and one, `spare`, on the second;
/// the model `m` is the first one's, `safe` has the other behind it.
fn many(credentials: usize) -> String {
    let mut list = String::new();
    for nth in 0..credentials {
        write!(list, "{{ name = \"c{nth}\", key = \"${{KEY_C{nth}}}\" }}, ").unwrap();
    }
    format!(
        r#"
[[provider]]
name = "many"
kind = "openai"
base_url = "http://{{1}}/v1"
credentials = [{list}]
[[provider]]
name = "spare"
kind = "openai"
base_url = "http://{{2}}/v1"
credentials = [{{ name = "one", key = "${{KEY_SPARE}}" }}]
[[model]]
name = "m"
candidates = [{{ provider = "many", model = "real" }}]
[[model]]
name = "safe"
candidates = [
  {{ provider = "many", model = "real", priority = 1 }},
  {{ provider = "spare", model = "real", priority = 2 }},
]
"#
    )
}

fn played(clients: Vec<Vec<Step>>, hosts: Vec<Host>, config: &str) -> Outcome {
    let outcome = script::run(&Scenario { clients, hosts, ..Scenario::default() }.under(config));
    for client in &outcome.clients {
        assert_eq!(client.faults, Vec::<String>::new());
    }
    assert_eq!(outcome.counters.panics.get(), 0);
    outcome
}

/// So many calls of a model, one behind the other.
fn calls(model: &str, count: usize) -> Vec<Step> {
    (0..count).flat_map(|_| call(of(model))).collect()
}

fn refused() -> Host {
    Host::unreachable(Reach::Refused)
}

/// A host that is dead is dead with every credential: five of a hundred find out, three tries each,
/// and nobody asks again for half a minute. Then one try finds that it still is.
#[test]
fn a_dead_host_with_a_hundred_keys_costs_few_tries() {
    let mut client = call(of("m"));
    client.extend(calls("m", 20));
    client.push(pause(25));
    client.extend(calls("m", 5));
    client.push(pause(10));
    client.extend(calls("m", 5));
    let outcome = played(vec![client], vec![refused(), refused()], &many(100));
    let statuses = outcome.statuses(0);
    assert_eq!((statuses[0], &statuses[1..26]), (502, &[503; 25][..]), "{statuses:?}");
    // One probe, and its answer is that of whoever sent it; the others are not asked.
    assert_eq!(statuses[26..], [502, 503, 503, 503, 503]);
    assert_eq!(outcome.counters.attempts.get(), 15 + 1);
    assert_eq!(outcome.records[0].attempts, 15);
    assert!(outcome.records[1..26].iter().all(|record| record.attempts == 0));
}

/// Fifty calls at once, at a dead host and a good one behind it: each is served, and what they
/// waste
/// is bounded by what was begun before the first have failed.
#[test]
fn many_calls_at_once_at_a_dead_host_are_all_served() {
    let mut clients: Vec<Vec<Step>> = vec![[call(of("safe")), call(of("safe"))].concat(); 50];
    clients.push([vec![pause(20)], calls("safe", 10)].concat());
    let outcome = played(clients, vec![refused(), host(ok())], &many(100));
    for client in 0..51 {
        assert!(outcome.statuses(client).iter().all(|status| *status == 200));
    }
    let served = 110;
    let wasted = outcome.counters.attempts.get() - served;
    // Three tries of each of the first fifty, and nobody's second candidate of that host.
    assert!(wasted <= 150, "{wasted} wasted tries");
    let late: Vec<u64> = outcome.records[100..].iter().map(|r| u64::from(r.attempts)).collect();
    assert_eq!(late, [1; 10], "those who came later tried it not once");
}

/// Every call fails at first, but the breaker counts what is left of them after the retries.
#[test]
fn a_host_that_flaps_is_not_given_up() {
    let bad = json("503 Busy", "", "{}");
    let good = ok();
    let flapping = Manner {
        turns: (0..200)
            .map(|nth| Turn::answer(if nth % 2 == 0 { bad.as_bytes() } else { good.as_bytes() }))
            .collect(),
        repeats: false,
    };
    let client = calls("m", 60);
    let outcome = played(vec![client], vec![Host::open(vec![flapping]), refused()], &many(1));
    assert_eq!(outcome.statuses(0), [200; 60]);
    assert_eq!(outcome.counters.attempts.get(), 120);
}

/// Up and down for a while each: while it is down it is asked little, and it is found again.
#[test]
fn a_host_that_goes_and_comes_back_is_found_again() {
    // Down for the first connections, up from then on.
    let down = Manner::once(vec![Act::Reset]);
    let up = Manner::always(ok().as_bytes());
    let mut manners = vec![down; 7];
    manners.push(up);
    let one = || [call(of("safe")), vec![pause(1)]].concat();
    let client: Vec<Step> = (0..120).flat_map(|_| one()).collect();
    let outcome = played(vec![client], vec![Host::open(manners), host(ok())], &many(1));
    let asked = outcome.requests_of(0).count();
    // A cut after the request was sent is not repeated elsewhere: the client is told of each.
    let cut = outcome.statuses(0).iter().filter(|status| **status == 502).count();
    assert_eq!(cut, 7, "five until it opens, and two probes");
    assert_eq!(outcome.statuses(0).iter().filter(|status| **status == 200).count(), 113);
    assert!(asked > 15, "it serves again: {asked}");
    let last = outcome.records.last().unwrap();
    assert_eq!((last.provider_id, last.fallbacks), (2, 0));
}

/// Every other call fails for good: after five it is left alone, and the client is told when one is
/// tried again. One that fails a tenth of its calls goes on being asked.
#[test]
fn a_host_that_fails_by_halves_is_given_up_and_one_that_fails_seldom_is_not() {
    let bad = json("502 Bad", "", "{}");
    let good = ok();
    let every = |nth: usize| Manner {
        turns: (0..200)
            .map(|at| Turn::answer(if at % nth == 0 { bad.as_bytes() } else { good.as_bytes() }))
            .collect(),
        repeats: false,
    };
    let mut client = calls("m", 12);
    client.extend([vec![pause(10)], calls("m", 1), vec![pause(18)], calls("m", 1)].concat());
    let outcome = played(vec![client], vec![Host::open(vec![every(2)]), refused()], &many(1));
    let statuses = outcome.statuses(0);
    assert_eq!(statuses[..9], [502, 200, 502, 200, 502, 200, 502, 200, 502]);
    assert_eq!(statuses[9..], [503; 5]);
    let wait = |nth: usize| {
        let answer = &outcome.clients[0].answers[nth];
        assert_eq!(answer.code(), "upstream_unavailable");
        answer.field("retry-after").unwrap().parse::<u64>().unwrap()
    };
    assert_eq!((wait(9), wait(12)), (30, 20));
    assert!((1..=2).contains(&wait(13)), "{}", wait(13));
    let outcome =
        played(vec![calls("m", 200)], vec![Host::open(vec![every(10)]), refused()], &many(1));
    let failed = outcome.statuses(0).iter().filter(|status| **status == 502).count();
    assert_eq!((failed, outcome.counters.attempts.get()), (20, 200));
}

/// The wait of a credential that cools down is told too, up to a minute.
#[test]
fn who_finds_all_candidates_resting_is_told_how_long() {
    for (asked, told) in [("20", "20"), ("45", "45"), ("4000", "60")] {
        let limited = json("429 Slow", &format!("Retry-After: {asked}\r\n"), "{}");
        let hosts = vec![Host::open(vec![Manner::always(limited.as_bytes())]), refused()];
        let outcome = played(vec![calls("m", 2)], hosts, &many(1));
        assert_eq!(outcome.statuses(0), [429, 503]);
        let last = &outcome.clients[0].answers[1];
        assert_eq!(last.field("retry-after").as_deref(), Some(told), "{asked}");
    }
}

/// Two tenants, one host, a credential each: that one is limited concerns the other in nothing.
#[test]
fn a_storm_of_429s_on_one_credential_concerns_nobody_else() {
    let config = r#"
[[provider]]
name = "of-a"
kind = "openai"
base_url = "http://{1}/v1"
credentials = [{ name = "a", key = "${KEY_A}" }]
[[provider]]
name = "of-b"
kind = "openai"
base_url = "http://{1}/v1"
credentials = [{ name = "b", key = "${KEY_B}" }]
"#;
    let limited = json("429 Slow", "Retry-After: 30\r\n", "{}");
    let a = BODY.replace("\"a\"", "\"of-a/x\"");
    let b = BODY.replace("\"a\"", "\"of-b/x\"");
    // The host tells them apart by the credential; here each has connections of its own.
    let mut clients = vec![[call(post("", &a)), vec![Step::Signal("limited")]].concat()];
    for _ in 0..20 {
        let one = |body: &str| [call(post("", body)), vec![pause(1)]].concat();
        let storm: Vec<Step> = (0..50).flat_map(|_| one(&a)).collect();
        let calm: Vec<Step> = (0..50).flat_map(|_| one(&b)).collect();
        clients.push([vec![Step::Wait("limited")], storm].concat());
        clients.push([vec![Step::Wait("limited")], calm].concat());
    }
    let manner = Manner {
        turns: vec![Turn {
            read: Read::Whole,
            acts: vec![Act::ByField {
                name: "authorization",
                value: "Bearer sk-a",
                then: limited.into_bytes(),
                otherwise: ok().into_bytes(),
            }],
        }],
        repeats: true,
    };
    let outcome = played(clients, vec![Host::open(vec![manner])], config);
    for (client, saw) in outcome.clients.iter().enumerate().skip(1) {
        let of_b = client % 2 == 0;
        for answer in &saw.answers {
            if of_b {
                assert_eq!((answer.status, answer.text().as_str()), (200, COMPLETION));
            } else {
                assert!(matches!(answer.status, 429 | 503), "{}", answer.status);
            }
        }
        assert_eq!(saw.answers.len(), 50);
    }
    let limited = outcome
        .requests_of(0)
        .filter(|asked| asked.field("authorization").as_deref() == Some("Bearer sk-a"))
        .count();
    // A thousand calls in fifty seconds: it is asked at the beginning and after half a minute.
    assert!(limited <= 1 + 20, "{limited} of 1001 calls reached the limited account");
}

/// A credential whose answers are 5xx opens its own breaker; after half a minute one call is let
/// through to see, whoever else waits.
#[test]
fn one_probe_finds_that_an_upstream_is_well_again() {
    let bad = json("502 Bad", "Connection: close\r\n", "{}");
    let good = ok();
    let closing = json("200 OK", "Connection: close\r\n", COMPLETION);
    let slow = vec![Act::Pause(Duration::from_secs(2)), say(closing), Act::Fin];
    let manners = |probe: Vec<Act>| {
        let mut manners = vec![Manner::once(vec![say(&bad), Act::Fin]); 5];
        manners.push(Manner::once(probe));
        manners.push(Manner::always(good.as_bytes()));
        manners
    };
    let opener = calls("m", 6);
    // Ten come at once when it is due, ten while the probe is out, ten when it is back.
    let mut clients = vec![opener.clone()];
    for after in [31, 32, 34] {
        clients.extend(vec![[vec![pause(after)], call(of("m"))].concat(); 10]);
    }
    let outcome = played(clients, vec![Host::open(manners(slow)), refused()], &many(1));
    assert_eq!(outcome.statuses(0), [502, 502, 502, 502, 502, 503]);
    let of_group = |nth: usize| -> Vec<u16> {
        (0..10).map(|at| outcome.statuses(1 + nth * 10 + at)[0]).collect()
    };
    let served = |nth: usize| of_group(nth).iter().filter(|status| **status == 200).count();
    assert_eq!((served(0), served(1), served(2)), (1, 0, 10));
    assert_eq!(outcome.counters.attempts.get(), 5 + 1 + 10);
    // A probe that fails is one more half minute.
    let mut clients = vec![opener];
    for after in [31, 50, 62] {
        clients.extend(vec![[vec![pause(after)], call(of("m"))].concat(); 10]);
    }
    let failing = vec![say(&bad), Act::Fin];
    let outcome = played(clients, vec![Host::open(manners(failing)), refused()], &many(1));
    let attempts = outcome.counters.attempts.get();
    assert_eq!(outcome.requests_of(0).count() as u64, attempts);
    let told = |nth: usize, wanted: u16| {
        (0..10).filter(|at| outcome.statuses(1 + nth * 10 + at)[0] == wanted).count()
    };
    assert_eq!((told(0, 502), told(0, 503), told(1, 503)), (1, 9, 10));
    assert!(told(2, 200) >= 1);
}

/// A probe that nobody waits for any more says nothing: another may go at once.
#[test]
fn a_probe_whose_client_left_makes_room_for_another() {
    let bad = json("502 Bad", "Connection: close\r\n", "{}");
    let mut manners = vec![Manner::once(vec![say(&bad), Act::Fin]); 5];
    manners.push(Manner::once(vec![Act::Signal("probed"), Act::Hang]));
    manners.push(Manner::always(ok().as_bytes()));
    let leaver = [calls("m", 5), vec![pause(31), send(of("m")), Step::Wait("probed"), Step::Reset]];
    let next = [vec![Step::Wait("probed"), pause(1)], call(of("m"))];
    let clients = vec![leaver.concat(), next.concat()];
    let config = many(1) + "[endings]\nclient_left = \"abort\"\n";
    let outcome = played(clients, vec![Host::open(manners), refused()], &config);
    assert_eq!(outcome.statuses(1), [200]);
}

/// The words are the node's: what one shard has found out the others know.
#[test]
fn a_breaker_is_open_on_every_shard() {
    let upstream = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let at = upstream.local_addr().unwrap();
    drop(upstream);
    let more = "[shards]\ncount = 4\n[listen]\ndata = \"127.0.0.1:0\"\n[retry]\nattempts = 1";
    let mut config = setting::config(at, more);
    config.ledger = None;
    let mut node = Node::start(&config, &Options { keep_records: Keep::None, pin: false }).unwrap();
    let request = post("Connection: close\r\n", BODY);
    let mut statuses = Vec::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(node.data).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        statuses.push(answer.get(9..12).unwrap().to_owned());
    }
    assert_eq!(statuses[..5], ["502"; 5]);
    assert_eq!(statuses[5..], ["503"; 59]);
    let used = node.counters.iter().filter(|shard| shard.connections.get() > 0).count();
    assert!(used > 1, "the kernel used one shard only");
    let attempts: u64 = node.counters.iter().map(|shard| shard.attempts.get()).sum();
    assert_eq!(attempts, 5);
    node.drain().unwrap();
}
