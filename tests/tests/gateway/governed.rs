//! What a key may do, through the pipeline: limits, money, and the records that tell of both.
//!
//! The model `a` costs 10 pico-dollars a token in and 100 out; the usual answer has one and two.

use crate::{BODY, COMPLETION, ONE_ATTEMPT, call, json, ok, post};
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Act, Manner, Reach, Read, Scenario, Split, Step, Turn, say, send};
use gateway_tests::{script, transports};
use std::time::Duration;
use store::ending::{Ending, Provenance, Release, StatusClass};
use store::record::{Settled, flag};
use tollgate::exchange::codes;

/// A second key, `sk-poor`, with these limits.
fn poor(limits: &str) -> String {
    let digest = "0fb7a9381d67a12c97848d48cf5afb221bcc12268161fb10f0b51bf18ead6ae3";
    format!("[[key]]\nname = \"poor\"\nsha256 = \"{digest}\"\n{limits}\n")
}

/// The usual request, by that key.
fn ask(body: &str) -> String {
    post("", body).replacen("sk-test", "sk-poor", 1)
}

/// A budget in pico-dollars, as the configuration has it.
fn pico(amount: u64) -> String {
    format!("budget_total = \"0.{amount:012}\"")
}

/// What a call of [`BODY`] holds: no text in, a thousand tokens out.
const HOLD: u64 = 100_000;

/// What it costs.
const COST: u64 = 210;

/// An upstream that takes a while over every answer.
fn slow(pause: Duration) -> Vec<Manner> {
    let acts = vec![Act::Pause(pause), Act::Send(ok().into_bytes(), Split::Whole)];
    vec![Manner { turns: vec![Turn { read: Read::Whole, acts }], repeats: true }]
}

/// What the text of [`COMPLETION`] is estimated at.
const HI_TOKENS: u32 = 1;

fn codes_of(outcome: &Outcome) -> Vec<(u16, String)> {
    let answers = outcome.clients.iter().flat_map(|client| &client.answers);
    let mut codes: Vec<_> = answers.map(|a| (a.status, a.code())).collect();
    codes.sort();
    codes
}

#[test]
fn fifty_calls_at_once_and_room_for_three() {
    let clients = vec![call(ask(BODY)); 50];
    let upstream = slow(Duration::from_millis(1_500));
    // One pico-dollar short of a fourth.
    let config = poor(&pico(4 * HOLD - 1));
    let scenario = Scenario { config, clients, upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let codes = codes_of(outcome);
        assert_eq!(codes.iter().filter(|(status, _)| *status == 200).count(), 3);
        let reserved = (429, reserved());
        assert_eq!(codes.iter().filter(|code| **code == reserved).count(), 47);
        assert_eq!(outcome.forwarded(), 3);
        for record in &outcome.records {
            assert_eq!((record.hold_picousd, record.cost_picousd), (HOLD, COST));
            assert_eq!((record.overrun_picousd, record.ending), (0, Ending::Succeeded));
        }
        for record in &outcome.refusals {
            // One that stands for many has the status of all, and no hold of any.
            let hold = if record.has(flag::COUNTED) { 0 } else { HOLD };
            assert_eq!((record.status, record.hold_picousd), (429, hold));
        }
        assert!(outcome.refusals.iter().any(|record| record.has(flag::COUNTED)));
        let refused: u32 = outcome.refusals.iter().map(|record| record.count).sum();
        assert_eq!((outcome.records.len(), refused), (3, 47), "each is recorded or counted");
    });
}

#[test]
fn a_spent_budget_is_final_and_says_why() {
    // Room for one hold; what the first call costs leaves no room for another.
    let month = format!("budget_month = \"0.{HOLD:012}\"");
    for (limits, text) in [
        (pico(HOLD), "The total budget of this API key has no room for this call; it does not"),
        (month, "The monthly budget of this API key has no room for this call; it resets at"),
    ] {
        let mut client = call(ask(BODY));
        client.extend(call(ask(BODY)));
        let scenario = Scenario::plain(client, ok().as_bytes()).under(&poor(&limits));
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            let [first, second] = &outcome.clients[0].answers[..] else { panic!("two answers") };
            assert_eq!((first.status, second.status, outcome.forwarded()), (200, 402, 1));
            let warned = first.field("x-tollgate-budget-warning");
            assert!(warned.is_some_and(|text| text.contains("80 percent")), "all of it was held");
            assert_eq!(second.code(), "budget_exceeded");
            assert!(second.text().contains(text), "{}", second.text());
            assert_eq!(second.field("x-should-retry").as_deref(), Some("false"));
            assert_eq!(second.field("retry-after"), None);
            let [refusal] = &outcome.refusals[..] else { panic!("{:?}", outcome.refusals) };
            let id = tollgate::exchange::ids::RequestId(refusal.request_id).to_string();
            assert_eq!(second.field("x-tollgate-request-id"), Some(id));
            assert_eq!(codes::name(refusal.error_code), Some("budget_exceeded"));
            assert_eq!((refusal.status, refusal.release), (402, Release::Refused));
            assert_eq!(refusal.hold_picousd, HOLD, "what would have been held");
            assert_eq!((refusal.model.as_str(), refusal.cost_picousd), ("a", 0));
        });
    }
}

#[test]
fn an_overrun_is_booked_in_full_and_ends_the_budget() {
    // 3,000 tokens out where 1,000 were held.
    let body = COMPLETION.replace("\"completion_tokens\":2", "\"completion_tokens\":3000");
    let body = body.replace("\"total_tokens\":3", "\"total_tokens\":3001");
    let mut client = call(ask(BODY));
    client.extend(call(ask(BODY)));
    let scenario = Scenario::plain(client, json("200 OK", "", &body).as_bytes());
    transports::each(&scenario.under(&poor(&pico(2 * HOLD))), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 402]);
        let record = &outcome.records[0];
        assert_eq!((record.hold_picousd, record.cost_picousd), (HOLD, 300_010));
        assert_eq!(record.overrun_picousd, 200_010);
        assert_eq!(outcome.counters.overrun_picousd.get(), 200_010);
    });
}

#[test]
fn under_a_budget_a_model_needs_a_price() {
    let body = r#"{"model":"up/unheard-of","messages":[]}"#;
    let scenario = Scenario::plain(call(ask(body)), ok().as_bytes());
    transports::each(&scenario.clone().under(&poor(&pico(HOLD))), |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (400, "price_unknown"));
        assert_eq!(outcome.forwarded(), 0);
    });
    transports::each(&scenario.under(&poor("")), |outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!((outcome.answer().status, record.cost_picousd), (200, 0));
        assert!(!record.has(flag::PRICED));
        assert_eq!(outcome.counters.price_missing.get(), 1);
    });
}

/// Found by the simulation: without a price its input was estimated at nothing.
#[test]
fn what_a_model_without_a_price_used_is_estimated_all_the_same() {
    let body = r#"{"model":"up/unheard-of","messages":[{"role":"user","content":"12345678"}]}"#;
    let uncounted = COMPLETION.split(",\"usage\"").next().unwrap().to_owned() + "}";
    let scenario = Scenario::plain(call(ask(body)), json("200 OK", "", &uncounted).as_bytes());
    transports::each(&scenario.under(&poor("")), |outcome| {
        let record = &outcome.records[0];
        assert_eq!((record.tokens[0], record.tokens[4]), (3, HI_TOKENS));
        assert_eq!((record.provenance, record.cost_picousd), (Provenance::Estimated, 0));
    });
}

/// Found by the simulation: an answer that breaks off inside its usage has not said what it used.
#[test]
fn a_usage_that_breaks_off_is_charged_by_the_rule_and_not_as_reported() {
    let cut = COMPLETION.find(",\"completion_tokens").unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n";
    let acts = vec![say(head), say(&COMPLETION[..=cut]), Act::Fin];
    let upstream = vec![Manner::once(acts)];
    let clients = vec![call(ask(BODY))];
    let scenario = Scenario { config: poor(&pico(HOLD)), clients, upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!((outcome.answer().status, record.ending), (502, Ending::Exhausted));
        assert_eq!((record.cost_picousd, record.tokens), (0, [0; 8]));
        assert_eq!(
            (record.provenance, record.release),
            (Provenance::Missing, Release::NothingReceived)
        );
    });
}

#[test]
fn as_many_calls_are_in_flight_as_may_be() {
    let clients = vec![call(ask(BODY)); 5];
    let upstream = slow(Duration::from_millis(1_500));
    let config = poor("concurrent = 2");
    let scenario = Scenario { config, clients, upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let limited = (429, "concurrency_limited".to_owned());
        assert_eq!(codes_of(outcome)[..2], [(200, String::new()), (200, String::new())]);
        assert_eq!(codes_of(outcome)[2..], [limited.clone(), limited.clone(), limited]);
        assert_eq!(outcome.forwarded(), 2);
    });
}

/// Case `lim-cancel-leak`: a client that goes away takes no place and no hold with it.
#[test]
fn a_client_that_leaves_gives_its_place_and_its_hold_back() {
    let leaver = vec![send(ask(BODY)), Step::Wait("asked"), Step::Reset, Step::Signal("left")];
    let mut next = vec![Step::Wait("left"), Step::Pause(Duration::from_millis(500))];
    next.extend(call(ask(BODY)));
    let upstream = vec![
        Manner::once(vec![Act::Signal("asked"), Act::Hang]),
        Manner::once(vec![Act::Send(ok().into_bytes(), Split::Whole)]),
    ];
    let config = poor(&format!("concurrent = 1\n{}", pico(HOLD + 50)));
    let config = config + "[endings]\nclient_left = \"abort\"\n";
    let scenario =
        Scenario { config, clients: vec![leaver, next], upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        let [left, served] = &outcome.records[..] else { panic!("{:?}", outcome.records) };
        assert_eq!((left.ending, served.ending), (Ending::ClientLeft, Ending::Succeeded));
        // Nothing of an answer was seen: the input is what it is estimated at, which is nothing.
        assert_eq!((left.provenance, left.cost_picousd), (Provenance::Estimated, 0));
        assert_eq!(outcome.clients[1].answers[0].status, 200);
    });
}

/// While its answer is read on for nobody its place is free, and its hold is not.
#[test]
fn a_drain_keeps_the_hold_and_not_the_place() {
    let leaver = vec![send(ask(BODY)), Step::Wait("asked"), Step::Reset, Step::Signal("left")];
    let after = |ms: u64| {
        let mut next = vec![Step::Wait("left"), Step::Pause(Duration::from_millis(ms))];
        next.extend(call(ask(BODY)));
        next
    };
    let upstream =
        vec![Manner::once(vec![Act::Signal("asked"), Act::Hang]), Manner::always(ok().as_bytes())];
    // Another call is told of the hold, not of the place; once the drain is over it fits.
    let tight = poor(&format!("concurrent = 1\n{}", pico(HOLD + 50)));
    let clients = vec![leaver.clone(), after(500), after(4_700), after(5_300)];
    let scenario =
        Scenario { config: tight, clients, upstream: upstream.clone(), ..Scenario::default() };
    let outcome = script::run(&scenario);
    let told = |client: usize| outcome.clients[client].answers[0].code();
    assert_eq!((told(1), told(2), told(3)), (reserved(), reserved(), String::new()));
    // With money for both it is served while the drain goes on.
    let config = poor(&format!("concurrent = 1\n{}", pico(2 * HOLD)));
    let clients = vec![leaver, after(500)];
    let scenario = Scenario { config, clients, upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        assert_eq!(outcome.clients[1].answers[0].status, 200);
        let [served, left] = &outcome.records[..] else { panic!("{:?}", outcome.records) };
        assert_eq!((left.ending, served.ending), (Ending::ClientLeft, Ending::Succeeded));
        assert_eq!((outcome.counters.drains.get(), left.cost_picousd), (1, 0));
    });
}

fn reserved() -> String {
    "budget_reserved".to_owned()
}

#[test]
fn requests_of_a_minute_are_counted_and_the_wait_is_told() {
    let mut client = call(ask(BODY));
    client.extend(call(ask(BODY)));
    client.extend(call(ask(BODY)));
    let scenario = Scenario::plain(client, ok().as_bytes());
    transports::each(&scenario.under(&poor("requests_per_minute = 2")), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 200, 429]);
        let left =
            |at: usize| outcome.clients[0].answers[at].field("x-ratelimit-remaining-requests");
        assert_eq!((left(0).as_deref(), left(1).as_deref()), (Some("1"), Some("0")));
        let last = &outcome.clients[0].answers[2];
        assert_eq!(last.code(), "rate_limited");
        let wait: u32 = last.field("retry-after").and_then(|wait| wait.parse().ok()).unwrap();
        assert!((1..=30).contains(&wait), "{wait}");
    });
}

#[test]
fn a_key_that_is_over_is_refused_and_recorded() {
    let request = ask(BODY);
    let scenario = Scenario::plain(call(request), ok().as_bytes());
    let expired = poor("expires = \"1970-01-01T00:00:00Z\"");
    transports::each(&scenario.under(&expired), |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (403, "key_expired"));
        let [refusal] = &outcome.refusals[..] else { panic!("{:?}", outcome.refusals) };
        assert_eq!(codes::name(refusal.error_code), Some("key_expired"));
        assert_eq!((refusal.key_id, outcome.records.len()), (2, 0));
    });
}

#[test]
fn models_off_the_list_are_refused_and_not_shown() {
    let config = poor("models = [\"A\", \"fast\"]") + "[alias]\nfast = \"up/a\"\nslow = \"up/b\"\n";
    let list = "GET /v1/models HTTP/1.1\r\nHost: gw.test\r\nAuthorization: Bearer sk-poor\r\n\r\n";
    for (model, status) in
        [("a", 200), ("up/a", 200), ("fast", 200), ("a[1m]", 200), ("slow", 403), ("b", 403)]
    {
        let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
        let mut client = call(ask(&body));
        client.extend(call(list));
        let scenario = Scenario::plain(client, ok().as_bytes()).under(&config);
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            let [answer, list] = &outcome.clients[0].answers[..] else { panic!("two answers") };
            assert_eq!(answer.status, status, "{model}");
            if status == 403 {
                assert_eq!(answer.code(), "model_not_allowed");
            }
            assert!(list.text().contains("\"fast\"") && !list.text().contains("slow"));
        });
    }
}

/// What a client adds to say how much context it wants is no part of the name.
#[test]
fn a_clients_suffix_is_no_part_of_a_models_name() {
    let body = r#"{"model":"fast[1m]","messages":[]}"#;
    let config = poor(&pico(HOLD)) + "[alias]\nfast = \"up/a\"\n";
    let scenario = Scenario::plain(call(ask(body)), ok().as_bytes()).under(&config);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, 200);
        assert!(outcome.asked().text().contains(r#""model":"a""#), "{}", outcome.asked().text());
        let record = &outcome.records[0];
        let models = (record.model.as_str(), record.served_model.as_str());
        assert_eq!(models, ("fast[1m]", "a"));
    });
}

/// The first ten refusals of a key and second have records, the others one together.
#[test]
fn a_flood_of_refusals_leaves_few_records_and_loses_no_count() {
    let mut client: Vec<Step> = Vec::new();
    for _ in 0..40 {
        client.extend(call(ask(BODY)));
    }
    let scenario = Scenario::plain(client, b"").under(&poor("requests_per_minute = 0"));
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert!(outcome.statuses(0).iter().all(|status| *status == 429));
        let counted = |record: &&Settled| record.has(flag::COUNTED);
        let (together, own): (Vec<&Settled>, Vec<&Settled>) =
            outcome.refusals.iter().partition(counted);
        let seconds = own.len().div_ceil(10);
        assert!(together.len() <= seconds, "{} for {seconds} s", together.len());
        let count: u32 = outcome.refusals.iter().map(|record| record.count).sum();
        assert_eq!(count, 40);
        assert!(own.iter().all(|record| record.count == 1));
        for record in together {
            assert_eq!(codes::name(record.error_code), Some("rate_limited"));
        }
    });
}

#[test]
fn a_node_that_cannot_record_serves_nothing_unless_told_to() {
    let scenario =
        Scenario { ledger_fails: true, ..Scenario::plain(call(post("", BODY)), ok().as_bytes()) };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (503, "ledger_busy"));
        assert_eq!(answer.field("retry-after").as_deref(), Some("1"));
        assert_eq!((outcome.forwarded(), outcome.records.len()), (0, 0));
    });
    let told = "[ledger]\nwhen_full = \"serve_unrecorded\"\n";
    transports::each(&scenario.under(told), |outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().status, outcome.forwarded()), (200, 1));
        assert_eq!(outcome.counters.unrecorded.get(), 1);
    });
}

#[test]
fn an_answer_that_does_not_say_what_it_used_is_estimated() {
    let text = "x".repeat(400);
    let ask_body = format!(r#"{{"model":"a","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let silent = COMPLETION.replacen(
        ",\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}",
        "",
        1,
    );
    let out = u64::from(HI_TOKENS);
    let scenario =
        Scenario::plain(call(post("", &ask_body)), json("200 OK", "", &silent).as_bytes());
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!(record.provenance, Provenance::Estimated);
        // 400 letters of content, and the four of the role.
        assert_eq!(record.tokens[0], 101);
        assert_eq!(u64::from(record.tokens[4]), out);
        assert_eq!(record.cost_picousd, 1_010 + 100 * out);
        assert_eq!(outcome.counters.usage_missing.get(), 1);
    });
}

/// A count without an output is not one of 0: the input stands, the output is estimated.
#[test]
fn an_output_that_is_left_out_is_estimated_and_one_of_nothing_is_not() {
    let counted = r#","completion_tokens":2,"total_tokens":3"#;
    let absent = COMPLETION.replace(counted, "");
    let zero = COMPLETION.replace(counted, r#","completion_tokens":0"#);
    let silent = absent.replace("\"hi\"", "null");
    for (body, output, provenance) in [
        (&absent, HI_TOKENS, Provenance::Estimated),
        (&zero, 0, Provenance::Reported),
        (&silent, 0, Provenance::Reported),
    ] {
        let answer = json("200 OK", "", body);
        let scenario = Scenario::plain(call(post("", BODY)), answer.as_bytes());
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            let record = &outcome.records[0];
            assert_eq!((record.tokens[0], record.tokens[4]), (1, output), "{body}");
            assert_eq!((record.provenance, record.release), (provenance, Release::None));
            assert_eq!(record.cost_picousd, 10 + 100 * u64::from(output));
            let missing = u64::from(provenance == Provenance::Estimated);
            assert_eq!(outcome.counters.usage_missing.get(), missing);
        });
    }
}

/// What a refusal's record says of the model is of its own request.
#[test]
fn a_refusal_is_recorded_with_its_own_model() {
    let mut client = call(ask(BODY));
    client.extend(call(ask(r#"{"model":"b","messages":[]}"#)));
    client.extend(call(ask("[]")));
    let scenario = Scenario::plain(client, ok().as_bytes());
    transports::each(&scenario.under(&poor("requests_per_minute = 1")), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 429, 400]);
        let models: Vec<&str> = outcome.refusals.iter().map(|r| r.model.as_str()).collect();
        assert_eq!(models, ["b", ""]);
    });
}

/// What an attempt that brought nothing may have cost is noted, and nobody is charged for it.
#[test]
fn nothing_received_is_nothing_charged() {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"id\"";
    for (acts, status, class, billed) in [
        (vec![say("HTTP/1.1 200"), Act::Fin], 502, StatusClass::Cut, 1),
        (vec![say(head), Act::Fin], 502, StatusClass::Cut, 1),
        (vec![say(json("503 Busy", "", "{}"))], 503, StatusClass::Server, 0),
        (vec![say(json("200 OK", "", "{}"))], 502, StatusClass::Invalid, 1),
    ] {
        let scenario = Scenario {
            clients: vec![call(ask(BODY))],
            upstream: vec![Manner::once(acts)],
            config: poor(&pico(HOLD)),
            ..Scenario::default()
        };
        transports::each(&scenario.under(ONE_ATTEMPT), |outcome| {
            let record = &outcome.records[0];
            assert_eq!((outcome.answer().status, record.status), (status, status));
            assert_eq!((record.cost_picousd, record.overrun_picousd), (0, 0));
            let attempt = record.listed[0];
            assert_eq!((attempt.class, attempt.possibly_billed), (class, billed), "{status}");
        });
    }
}

/// An error that says what it used is paid for like an answer.
#[test]
fn an_error_with_usage_is_booked() {
    let body = r#"{"error":{"message":"m"},"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let scenario = Scenario::plain(call(post("", BODY)), json("500 Oh", "", body).as_bytes());
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.cost_picousd), (Ending::UpstreamError, COST));
        assert_eq!(record.provenance, Provenance::Reported);
    });
}

/// Case `lim-timeout-leak`: whatever fails gives its place back, so the next call fails the same
/// way and not for want of a place.
#[test]
fn no_failure_keeps_a_place() {
    let hang =
        Manner { turns: vec![Turn { read: Read::Whole, acts: vec![Act::Hang] }], repeats: true };
    let garbage = Manner::always(b"HTTP/1.1 two hundred\r\n\r\n");
    let config = poor("concurrent = 1") + "[deadlines]\nfirst_byte = \"200ms\"\n";
    for (upstream, reach, body, status, code) in [
        (hang.clone(), Reach::Refused, BODY, 502, "upstream_unreachable"),
        (hang, Reach::Open, BODY, 504, "upstream_timeout"),
        (garbage, Reach::Open, BODY, 502, "upstream_invalid"),
        (Manner::default(), Reach::Open, r#"{"model":"a","messages":[}"#, 400, "invalid_request"),
    ] {
        let client = || {
            let request = ask(body).replacen("\r\n", "\r\nConnection: close\r\n", 1);
            vec![send(request), Step::Answer, Step::End]
        };
        let mut second = vec![Step::Wait("first done")];
        second.extend(client());
        let mut first = client();
        first.push(Step::Signal("first done"));
        let scenario = Scenario {
            config: config.clone(),
            clients: vec![first, second],
            upstream: vec![upstream],
            reach,
            ..Scenario::default()
        };
        transports::each(&scenario, |outcome| {
            assert_eq!(codes_of(outcome), vec![(status, code.to_owned()); 2]);
        });
    }
}
