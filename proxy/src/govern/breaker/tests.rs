use super::*;
use crate::exchange::breaker::{Breaker, CredentialHealth};
use crate::exchange::ids::{CredentialIx, ProviderId};
use crate::exchange::time::MonoNs;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};

/// So long after the start of the clock as a machine may run.
const START_MS: u64 = 40_000_000;

fn rules() -> BreakerRules {
    BreakerRules::default()
}

/// A word that opened at an instant.
fn opened(at_ms: u64) -> u64 {
    (0..5).fold(0, |word, _| failed(word, false, at_ms, &rules()).unwrap())
}

fn at(ms: u64) -> At {
    At { mono: MonoNs(ms * NS_PER_MS), chance: 0 }
}

fn candidate() -> Candidate {
    Candidate {
        provider: ProviderId(0),
        credential: CredentialIx(0),
        model: None,
        price: None,
        priority: 1,
        weight: 1,
        host: Arc::new(Breaker::default()),
        health: Arc::new(CredentialHealth::default()),
    }
}

fn report(pass: Pass, host: Health, credential: Health) -> Report {
    Report { place: 0, pass, host, credential, cool_ms: 0 }
}

#[test]
fn five_failures_in_a_minute_open_it_for_half_a_minute() {
    let mut word = 0;
    for n in 1..=5_u64 {
        assert_eq!(lets(word, n * 10_000, &rules()), Lets::All, "{n}");
        word = failed(word, false, n * 10_000, &rules()).unwrap();
    }
    for (now_ms, wanted) in [
        (50_000, Lets::Nothing),
        (79_999, Lets::Nothing),
        (80_000, Lets::One),
        (9_000_000, Lets::One),
    ] {
        assert_eq!(lets(word, now_ms, &rules()), wanted, "{now_ms}");
    }
    let drip = (0..1_000_u64).try_fold(0, |word, n| failed(word, false, n * 16_000, &rules()));
    assert_eq!(lets(drip.unwrap(), 16_000_000, &rules()), Lets::All, "a slow drip never opens it");
}

#[test]
fn one_probe_goes_and_what_it_finds_decides() {
    let open = opened(START_MS);
    let due = START_MS + 30_000;
    assert_eq!(probing(open, due - 1, &rules()), None);
    let probe = probing(open, due, &rules()).unwrap();
    assert_eq!(lets(probe, due, &rules()), Lets::Nothing);
    assert_eq!(probing(probe, due + 29_999, &rules()), None, "one is out");
    assert!(probing(probe, due + 30_000, &rules()).is_some(), "it was lost");

    let again = failed(probe, true, due + 5, &rules()).unwrap();
    assert_eq!(lets(again, due + 30_004, &rules()), Lets::Nothing);
    assert_eq!(lets(again, due + 30_005, &rules()), Lets::One);

    let free = released(probe, due + 5, &rules()).unwrap();
    assert_eq!(lets(free, due + 5, &rules()), Lets::One, "another may go at once");

    let warm = passed(probe, due + 5).unwrap();
    for (age, wanted) in [
        (0, Lets::Share(429_496_729)),
        (1_000, Lets::Share(429_496_729)),
        (5_000, Lets::Share(1 << 31)),
        (9_999, Lets::Share(4_294_537_799)),
        (10_000, Lets::All),
    ] {
        assert_eq!(lets(warm, due + 5 + age, &rules()), wanted, "{age}");
    }
    let reopened = failed(warm, false, due + 6_000, &rules()).unwrap();
    assert_eq!(lets(reopened, due + 6_000, &rules()), Lets::Nothing, "the first failure");
    let counted = failed(warm, false, due + 11_000, &rules()).unwrap();
    assert_eq!(lets(counted, due + 11_000, &rules()), Lets::All, "one of five");
    let at_once = BreakerRules { slow_start_ms: 0, ..rules() };
    assert_eq!(lets(warm, due + 5, &at_once), Lets::All);
}

#[test]
fn what_was_begun_before_it_opened_changes_nothing() {
    let open = opened(START_MS);
    let probe = probing(open, START_MS + 30_000, &rules()).unwrap();
    for word in [open, probe] {
        assert_eq!(failed(word, false, START_MS + 31_000, &rules()), None);
    }
    for word in [0, open, passed(probe, START_MS + 31_000).unwrap()] {
        assert_eq!(passed(word, START_MS + 32_000), None, "nobody was out");
        assert_eq!(released(word, START_MS + 32_000, &rules()), None);
    }
}

#[test]
fn a_clock_that_was_read_a_moment_earlier_does_no_harm() {
    let mut word = 0;
    for now_ms in [60_000, 59_000, 60_010, 52_600] {
        word = failed(word, false, now_ms, &rules()).unwrap();
        assert_eq!(lets(word, now_ms, &rules()), Lets::All);
    }
    word = failed(word, false, 60_001, &rules()).unwrap();
    assert_eq!(lets(word, 60_000, &rules()), Lets::Nothing);
}

#[test]
fn failures_are_forgotten_however_long_the_clock_has_run() {
    let quick = BreakerRules { failures: 2, window_ms: 1_000, ..rules() };
    for start in [0, 1 << 35, 1 << 36, 134_217_727 * 1_000, 1 << 41] {
        let once = failed(0, false, start, &quick).unwrap();
        let later = failed(once, false, start + 1_000, &quick).unwrap();
        assert_eq!(lets(later, start + 1_000, &quick), Lets::All, "{start}");
        let soon = failed(later, false, start + 1_500, &quick).unwrap();
        assert_eq!(lets(soon, start + 1_500, &quick), Lets::Nothing, "{start}");
    }
}

#[test]
fn one_that_needs_no_failures_never_opens() {
    let never = BreakerRules { failures: 0, ..rules() };
    let mut word = 0;
    for now_ms in 60_000..61_000 {
        word = failed(word, false, now_ms, &never).unwrap();
        assert_eq!(lets(word, now_ms, &never), Lets::All);
    }
}

#[test]
fn what_goes_well_writes_nothing() {
    let candidates = [candidate()];
    let rules = rules();
    let mut breakers = Breakers::new(&candidates, &rules, at(START_MS));
    let pass = breakers.enter(0).unwrap();
    assert_eq!(pass, Pass::default());
    breakers.tell(report(pass, Health::Ill, Health::Ill));
    let before = (candidates[0].host.read(), candidates[0].health.read());
    assert!(before.0 != 0 && before.1 != 0);
    breakers.tell(report(pass, Health::Well, Health::Well));
    breakers.tell(report(pass, Health::Unknown, Health::Unknown));
    assert_eq!((candidates[0].host.read(), candidates[0].health.read()), before);
}

/// The word after these ends, in order, one every so many milliseconds: `!` failed, `.` went well.
/// `None` once it is open.
fn after(ends: &str, every_ms: u64) -> Option<u64> {
    let mut word = 0;
    for (nth, end) in ends.bytes().enumerate() {
        let now = START_MS + nth as u64 * every_ms;
        let next = match end {
            b'!' => failed(word, false, now, &rules()),
            _ => ended_well(word, now, &rules()),
        };
        word = next.unwrap_or(word);
        if lets(word, now, &rules()) == Lets::Nothing {
            return None;
        }
    }
    Some(word)
}

#[test]
fn it_opens_where_as_many_calls_fail_as_go_well() {
    for (ends, every_ms, opens) in [
        ("!!!!!".to_owned(), 1_000, true),
        // Every other one.
        ("!.".repeat(5), 1_000, true),
        (".!".repeat(6), 1_000, true),
        ("!.".repeat(400), 10, true),
        // In bursts, and after many that went well: those before the first failure do not count.
        (".".repeat(9_000) + &"!!..".repeat(4), 1, true),
        // Two of three, one of three, one of ten.
        ("!!.".repeat(5), 1_000, true),
        ("!..".repeat(900), 10, false),
        (("!".to_owned() + &".".repeat(9)).repeat(900), 10, false),
        // A host that has died, while a hundred answers from before still come to their end.
        ("!.".repeat(4) + &".".repeat(60) + &"!".repeat(65), 1, true),
        // Half of them, but too seldom.
        ("!.".repeat(400), 8_000, false),
    ] {
        let name = &ends[..ends.len().min(40)];
        assert_eq!(after(&ends, every_ms).is_none(), opens, "{name} every {every_ms} ms");
    }
}

#[test]
fn an_upstream_that_seldom_fails_is_not_written_to() {
    let quick = after(&("!".to_owned() + &".".repeat(64)), 1);
    assert_eq!(quick, Some(0), "forgiven");
    assert_ne!(after(&("!".to_owned() + &".".repeat(63)), 1), Some(0));
    // Five in a minute among thousands.
    let seldom = ("!".to_owned() + &".".repeat(2_000)).repeat(30);
    assert_eq!(after(&seldom, 1), Some(0));
    assert_eq!(ended_well(0, START_MS, &rules()), None);
    // What is a window old is forgotten with the next end.
    let old = failed(0, false, START_MS, &rules()).unwrap();
    assert_eq!(ended_well(old, START_MS + 60_000, &rules()), Some(0));
}

#[test]
fn a_good_end_changes_nothing_of_a_breaker_that_is_not_closed() {
    let (rules, candidates) = (rules(), [candidate()]);
    let breakers = Breakers::new(&candidates, &rules, at(START_MS));
    let ill = || breakers.tell(report(Pass::default(), Health::Ill, Health::Ill));
    breakers.went_well(0);
    breakers.went_well(9);
    assert_eq!((candidates[0].host.read(), candidates[0].health.read()), (0, 0));
    assert!(is_untroubled(&candidates, 0) && is_untroubled(&candidates, 9));
    for _ in 0..4 {
        ill();
        assert!(!is_untroubled(&candidates, 0));
        breakers.went_well(0);
        assert_eq!(breakers.standing(0), Standing::Ready);
    }
    ill();
    let open = (candidates[0].host.read(), candidates[0].health.read());
    breakers.went_well(0);
    assert_eq!((candidates[0].host.read(), candidates[0].health.read()), open, "it stays open");
    assert_eq!(breakers.standing(0), Standing::Resting);
    let probe = probing(open.0, START_MS + 30_000, &rules).unwrap();
    for word in [probe, passed(probe, START_MS + 31_000).unwrap(), 0] {
        assert_eq!(ended_well(word, START_MS + 32_000, &rules), None);
    }
}

#[test]
fn how_long_it_rests_is_the_longest_of_its_words() {
    let (rules, candidates) = (rules(), [candidate()]);
    let rests = |now_ms: u64| Breakers::new(&candidates, &rules, at(START_MS + now_ms)).rests_ms(0);
    assert_eq!(rests(0), 0);
    for _ in 0..5 {
        let breakers = Breakers::new(&candidates, &rules, at(START_MS));
        breakers.tell(report(Pass::default(), Health::Ill, Health::Unknown));
    }
    assert_eq!((rests(0), rests(12_000), rests(31_000)), (30_000, 18_000, 0));
    candidates[0].health.cool(START_MS + 40_000);
    assert_eq!((rests(0), rests(12_000), rests(31_000), rests(50_000)), (40_000, 28_000, 9_000, 0));
    assert_eq!(Breakers::new(&candidates, &rules, at(START_MS)).rests_ms(9), u64::MAX);
}

#[test]
fn host_and_credential_rest_for_themselves() {
    let (rules, shared) = (rules(), candidate());
    let other = Candidate { health: Arc::default(), ..shared.clone() };
    let elsewhere = candidate();
    let candidates = [shared, other, elsewhere];
    let mut breakers = Breakers::new(&candidates, &rules, at(START_MS));
    let standing = |breakers: &Breakers<'_>| [0, 1, 2].map(|place| breakers.standing(place));
    for _ in 0..5 {
        breakers.tell(report(Pass::default(), Health::Well, Health::Ill));
    }
    let (ready, resting) = (Standing::Ready, Standing::Resting);
    assert_eq!(standing(&breakers), [resting, ready, ready]);
    for _ in 0..5 {
        breakers.tell(Report { place: 1, ..report(Pass::default(), Health::Ill, Health::Unknown) });
    }
    assert_eq!(standing(&breakers), [resting, resting, ready]);
    assert_eq!((breakers.enter(0), breakers.enter(1)), (None, None));
    assert_eq!((breakers.standing(9), breakers.enter(9)), (resting, None), "no such place");
}

#[test]
fn the_probe_of_a_host_is_given_back_where_the_credential_rests() {
    let (rules, candidates) = (rules(), [candidate()]);
    for _ in 0..5 {
        Breakers::new(&candidates, &rules, at(START_MS)).tell(report(
            Pass::default(),
            Health::Ill,
            Health::Unknown,
        ));
        Breakers::new(&candidates, &rules, at(START_MS + 20_000)).tell(report(
            Pass::default(),
            Health::Unknown,
            Health::Ill,
        ));
    }
    let mut due = Breakers::new(&candidates, &rules, at(START_MS + 30_000));
    assert_eq!((due.standing(0), due.enter(0)), (Standing::Resting, None));
    assert_eq!(lets(candidates[0].host.read(), START_MS + 30_000, &rules), Lets::One);
    let mut both = Breakers::new(&candidates, &rules, at(START_MS + 50_000));
    assert_eq!(both.enter(0), Some(Pass { host: true, credential: true }));
    assert_eq!(both.enter(0), None);
}

#[test]
fn a_credential_cools_for_what_was_asked_up_to_the_most() {
    let rules = rules();
    for (asked, most) in
        [(2_000, 2_000), (60_000, 60_000), (86_400_000, 60_000), (u64::MAX, 60_000)]
    {
        let candidates = [candidate()];
        let breakers = Breakers::new(&candidates, &rules, at(START_MS));
        let cools =
            |cool_ms| Report { cool_ms, ..report(Pass::default(), Health::Well, Health::Unknown) };
        breakers.tell(cools(asked));
        breakers.tell(cools(1));
        for (now_ms, wanted) in [(most - 1, Standing::Resting), (most, Standing::Ready)] {
            let mut later = Breakers::new(&candidates, &rules, at(START_MS + now_ms));
            assert_eq!(later.standing(0), wanted, "{asked} {now_ms}");
            assert_eq!(later.enter(0).is_some(), wanted == Standing::Ready);
        }
        assert_eq!((candidates[0].host.read(), candidates[0].health.read()), (0, 0));
    }
}

/// A shard that was held up between its clock and its look is not turned away.
#[test]
fn without_a_cool_down_nobody_rests_not_even_a_moment_before() {
    let candidates = [candidate()];
    let rules = BreakerRules { cool_max_ms: 0, ..rules() };
    let asked = Report { cool_ms: 1_000, ..report(Pass::default(), Health::Well, Health::Unknown) };
    Breakers::new(&candidates, &rules, at(START_MS)).tell(asked);
    let mut late = Breakers::new(&candidates, &rules, at(START_MS - 9));
    assert_eq!(late.standing(0), Standing::Ready);
    assert_eq!(late.enter(0), Some(Pass::default()));
}

#[test]
fn a_slow_start_spares_all_but_a_growing_share() {
    let (rules, candidates) = (rules(), [candidate()]);
    for _ in 0..5 {
        Breakers::new(&candidates, &rules, at(START_MS)).tell(report(
            Pass::default(),
            Health::Ill,
            Health::Unknown,
        ));
    }
    let mut due = Breakers::new(&candidates, &rules, at(START_MS + 30_000));
    let pass = due.enter(0).unwrap();
    due.tell(report(pass, Health::Well, Health::Well));
    for (age, least, most) in
        [(0, 70, 130), (5_000, 450, 550), (9_000, 860, 940), (10_000, 1_000, 1_000)]
    {
        let ready = (0..1_000_u32).filter(|n| {
            let moment = At { chance: n.wrapping_mul(4_294_967), ..at(START_MS + 30_000 + age) };
            Breakers::new(&candidates, &rules, moment).standing(0) == Standing::Ready
        });
        let count = ready.count();
        assert!((least..=most).contains(&count), "{age}: {count}");
    }
    let mut warm = Breakers::new(&candidates, &rules, at(START_MS + 30_000));
    assert_eq!(warm.enter(0), Some(Pass::default()), "who has no other candidate passes");
}

#[test]
fn of_many_threads_one_probes() {
    const THREADS: usize = 8;
    let (rules, candidates) = (rules(), [candidate()]);
    let (probes, barrier) = (AtomicUsize::new(0), Barrier::new(THREADS));
    let rounds = 200_u64;
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 1..=rounds {
                    let now = at(START_MS + round * 100_000);
                    let mut breakers = Breakers::new(&candidates, &rules, now);
                    barrier.wait();
                    // All fail at once: it opens, whoever is last.
                    breakers.tell(report(Pass::default(), Health::Ill, Health::Unknown));
                    barrier.wait();
                    assert_eq!(breakers.standing(0), Standing::Resting);
                    let due = at(START_MS + round * 100_000 + 30_000);
                    breakers = Breakers::new(&candidates, &rules, due);
                    barrier.wait();
                    let pass = breakers.enter(0);
                    probes.fetch_add(usize::from(pass.is_some()), Relaxed);
                    barrier.wait();
                    if let Some(pass) = pass {
                        assert!(pass.host && !pass.credential);
                        breakers.tell(report(pass, Health::Well, Health::Well));
                    }
                }
            });
        }
    });
    assert_eq!(probes.load(Relaxed), rounds as usize);
}

#[test]
fn failures_of_many_threads_are_all_counted() {
    const THREADS: u64 = 4;
    let few = BreakerRules { failures: 15, ..rules() };
    for round in 0..200 {
        let breaker = Breaker::default();
        let barrier = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (breaker, barrier, few) = (&breaker, &barrier, &few);
                scope.spawn(move || {
                    barrier.wait();
                    // 14 together: one below the limit.
                    for _ in 0..(if thread < 2 { 4 } else { 3 }) {
                        breaker.update(|word| failed(word, false, START_MS, few));
                    }
                });
            }
        });
        assert_eq!(lets(breaker.read(), START_MS, &few), Lets::All, "{round}");
        breaker.update(|word| failed(word, false, START_MS, &few));
        assert_eq!(lets(breaker.read(), START_MS, &few), Lets::Nothing, "{round}");
    }
}

proptest! {
    /// Against a list of failures: it never opens with fewer than its number in the window, and
    /// always with so many in seven eighths of it.
    #[test]
    fn the_window_is_right_to_an_eighth(
        limit in 1_u8..=15,
        window_s in 1_u32..600,
        start in 0_u64..1 << 40,
        gaps in proptest::collection::vec(0_u64..40_000, 1..60),
    ) {
        let rules = BreakerRules { failures: limit, window_ms: window_s * 1_000, ..rules() };
        let window = u64::from(rules.window_ms);
        let (mut word, mut now, mut seen) = (0, start, Vec::new());
        for gap in gaps {
            now += gap;
            seen.push(now);
            word = failed(word, false, now, &rules).unwrap();
            let within = |span: u64| seen.iter().filter(|then| now - **then < span).count();
            match lets(word, now, &rules) {
                Lets::All => prop_assert!(within(window / 8 * 7) < usize::from(limit)),
                Lets::Nothing => {
                    prop_assert!(within(window) >= usize::from(limit));
                    word = 0;
                    seen.clear();
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }

    /// No order of events lets two probes out, or loses the breaker for good.
    #[test]
    fn one_probe_at_a_time_in_any_order(
        events in proptest::collection::vec((0_u8..6, 0_u64..40_000), 1..200),
    ) {
        let rules = rules();
        let (mut word, mut now, mut out) = (0, START_MS, None::<u64>);
        for (event, gap) in events {
            now += gap;
            let change = match event {
                0 | 1 => failed(word, false, now, &rules),
                2 => {
                    let next = probing(word, now, &rules);
                    if next.is_some() {
                        let lost = |since| now - since >= u64::from(rules.open_ms);
                        prop_assert!(out.is_none_or(lost), "two are out");
                        out = Some(now);
                    }
                    next
                }
                _ if out.is_none() => None,
                3 => { out = None; passed(word, now) }
                4 => { out = None; failed(word, true, now, &rules) }
                _ => { out = None; released(word, now, &rules) }
            };
            word = change.unwrap_or(word);
        }
        // Left alone for as long as it stays open, somebody may call.
        prop_assert_ne!(lets(word, now + u64::from(rules.open_ms), &rules), Lets::Nothing);
    }
}

#[test]
fn who_watches_sees_the_state_that_calls_meet() {
    let rules = rules();
    let open = opened(START_MS);
    let probing = probing(open, START_MS + 30_000, &rules).unwrap();
    let warming = passed(probing, START_MS + 31_000).unwrap();
    for (word, after_ms, seen) in [
        (0, 0, Phase::Closed),
        (failed(0, false, START_MS, &rules).unwrap(), 0, Phase::Closed),
        (open, 0, Phase::Open),
        (open, 60_000, Phase::Open),
        (probing, 30_000, Phase::Probing),
        (warming, 31_000, Phase::SlowStart),
        (warming, 41_000, Phase::Closed),
    ] {
        assert_eq!(phase(word, START_MS + after_ms, &rules), seen, "{word:x} after {after_ms}");
    }
}
