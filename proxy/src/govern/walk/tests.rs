use super::*;
use crate::exchange::ids::{CredentialIx, ProviderId};
use crate::govern::fault::Answered;
use proptest::prelude::*;
use std::sync::Arc;
use std::vec;

/// A candidate of a priority and weight.
fn candidate(priority: u16, weight: u32) -> Candidate {
    Candidate {
        provider: ProviderId(0),
        credential: CredentialIx(0),
        model: None,
        price: None,
        priority,
        weight,
        host: Arc::default(),
        health: Arc::default(),
    }
}

/// Two candidates, the second one to fall back to.
fn two() -> Vec<Candidate> {
    vec![candidate(1, 1), candidate(2, 1)]
}

/// Breakers as a test sets them.
#[derive(Clone, Default)]
struct Doors {
    resting: Places,
    spared: Places,
    probes: Places,
    /// Somebody else is quicker.
    taken: Places,
    /// How long each rests.
    rests_ms: Vec<u64>,
    entered: Vec<u8>,
}

impl Gate for Doors {
    fn standing(&self, place: u8) -> Standing {
        if self.resting.has(place) {
            Standing::Resting
        } else if self.spared.has(place) {
            Standing::Spared
        } else {
            Standing::Ready
        }
    }

    fn rests_ms(&self, place: u8) -> u64 {
        self.rests_ms.get(usize::from(place)).copied().unwrap_or(0)
    }

    fn enter(&mut self, place: u8) -> Option<Pass> {
        if self.resting.has(place) || self.taken.has(place) {
            return None;
        }
        self.entered.push(place);
        Some(Pass { host: self.probes.has(place), credential: false })
    }
}

fn set(places: &[u8]) -> Places {
    let mut set = Places::NONE;
    places.iter().for_each(|place| set.insert(*place));
    set
}

/// What a walk did, told shortly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Tried(u8),
    Replayed(u8),
    Waited(u64),
    Told(u8, u16),
    Reworded(u8, u16),
    Refused(Refusal),
    /// An attempt gave an answer.
    Answered(u8),
}

use Did::{Refused, Replayed, Reworded, Told, Tried, Waited};

/// Plays ends against a walk, chance always at its lowest: half of each back-off is waited.
fn play(
    rules: &RetryRules,
    candidates: &[Candidate],
    doors: &mut Doors,
    ends: &[AttemptEnd],
) -> (Vec<Did>, Vec<Report>, Walk) {
    let mut walk = Walk::new(Places::first(candidates.len()), 0);
    let (mut did, mut reports, mut ends) = (Vec::new(), Vec::new(), ends.iter());
    let mut at = At::default();
    loop {
        match walk.next(at, rules, candidates, doors) {
            Step::Try { place, fresh } => {
                did.push(if fresh { Replayed(place) } else { Tried(place) });
                match ends.next() {
                    Some(end) => reports.extend(walk.end(*end, at, rules).report),
                    None => {
                        did.push(Did::Answered(place));
                        reports.push(walk.answered());
                    }
                }
                if did.last() == Some(&Did::Answered(place)) {
                    break;
                }
            }
            Step::Wait { until } => {
                did.push(Waited(until.since(at.mono) / NS_PER_MS));
                at.mono = until;
            }
            Step::Over(Over::Answer(Answer { place, status, reworded: false })) => {
                did.push(Told(place, status));
                break;
            }
            Step::Over(Over::Answer(Answer { place, status, .. })) => {
                did.push(Reworded(place, status));
                break;
            }
            Step::Over(Over::Refuse(refusal)) => {
                did.push(Refused(refusal));
                break;
            }
        }
    }
    assert_eq!(ends.next(), None, "ended too early: {did:?}");
    (did, reports, walk)
}

/// The end by an answer of a status.
fn status(status: u16) -> AttemptEnd {
    AttemptEnd::Fault(Fault::of(&Answered { status, ..Answered::default() }))
}

fn of_kind(status: u16, kind: &str) -> AttemptEnd {
    let kind = kind.as_bytes();
    AttemptEnd::Fault(Fault::of(&Answered { status, kind, ..Answered::default() }))
}

fn with_usage(status: u16) -> AttemptEnd {
    AttemptEnd::Fault(Fault::of(&Answered { status, usage: true, ..Answered::default() }))
}

fn after(status: u16, retry_after_s: u64) -> AttemptEnd {
    let retry_after_ms = Some(retry_after_s * 1_000);
    AttemptEnd::Fault(Fault::of(&Answered { status, retry_after_ms, ..Answered::default() }))
}

/// One row: what happens at the first candidate, what the walk does until the second answers or
/// the client is told, and what health hears of the first: host, credential, cool-down.
type Line = (&'static str, AttemptEnd, &'static [Did], (Health, Health, u64));

/// Same candidate again, then the next.
const AGAIN: &[Did] =
    &[Tried(0), Waited(250), Tried(0), Waited(500), Tried(0), Tried(1), Did::Answered(1)];

/// The next at once.
const NEXT: &[Did] = &[Tried(0), Tried(1), Did::Answered(1)];

fn plays(rules: &RetryRules, table: &[Line]) {
    for (name, end, wanted, (host, credential, cool_ms)) in table {
        let times = wanted.iter().filter(|did| **did == Tried(0)).count();
        let (did, reports, _) = play(rules, &two(), &mut Doors::default(), &vec![*end; times]);
        assert_eq!(did, *wanted, "{name}");
        let pass = Pass::default();
        let (host, credential, cool_ms) = (*host, *credential, *cool_ms);
        let wanted = Report { place: 0, pass, host, credential, cool_ms };
        assert_eq!(reports[0], wanted, "{name}: one outcome for health");
    }
}

#[test]
fn the_table_of_what_happened_and_what_is_done_about_it() {
    use Health::{Ill, Unknown, Well};
    let exhausted = of_kind(429, "insufficient_quota");
    let (cut, timeout) = (AttemptEnd::Cut { sent: true }, AttemptEnd::Timeout { sent: true });
    let (half_sent, stalled) =
        (AttemptEnd::Cut { sent: false }, AttemptEnd::Timeout { sent: false });
    let (invalid, empty) = (AttemptEnd::Fault(Fault::INVALID), AttemptEnd::Fault(Fault::EMPTY));
    let none = u64::MAX;
    let table: &[Line] = &[
        ("connect failure", AttemptEnd::Unreachable, AGAIN, (Ill, Ill, 0)),
        ("429 plain", status(429), AGAIN, (Well, Unknown, 0)),
        ("503", status(503), AGAIN, (Well, Ill, 0)),
        ("529", status(529), AGAIN, (Well, Ill, 0)),
        ("500", status(500), AGAIN, (Well, Ill, 0)),
        ("429 with usage", with_usage(429), &[Tried(0), Told(0, 429)], (Well, Unknown, 0)),
        ("500 with usage", with_usage(500), &[Tried(0), Told(0, 500)], (Well, Ill, 0)),
        ("502 with usage", with_usage(502), &[Tried(0), Told(0, 502)], (Well, Ill, 0)),
        ("timeout, not wholly sent", stalled, AGAIN, (Ill, Unknown, 0)),
        ("cut, not wholly sent", half_sent, AGAIN, (Ill, Unknown, 0)),
        ("timeout", timeout, &[Tried(0), Refused(Refusal::UpstreamTimeout)], (Ill, Unknown, 0)),
        ("cut", cut, &[Tried(0), Refused(Refusal::UpstreamCut)], (Ill, Unknown, 0)),
        ("502", status(502), &[Tried(0), Told(0, 502)], (Well, Ill, 0)),
        ("504", status(504), &[Tried(0), Told(0, 504)], (Well, Ill, 0)),
        ("other 5xx", status(520), &[Tried(0), Told(0, 520)], (Well, Ill, 0)),
        ("3xx", status(302), NEXT, (Well, Unknown, 0)),
        ("101", status(101), NEXT, (Well, Unknown, 0)),
        ("429 insufficient_quota", exhausted, NEXT, (Well, Unknown, none)),
        ("402", status(402), NEXT, (Well, Unknown, none)),
        ("403", status(403), NEXT, (Well, Unknown, none)),
        ("401", status(401), NEXT, (Well, Unknown, none)),
        ("405", status(405), NEXT, (Well, Well, 0)),
        ("501", status(501), NEXT, (Well, Well, 0)),
        ("404", status(404), NEXT, (Well, Well, 0)),
        ("400", status(400), &[Tried(0), Told(0, 400)], (Well, Well, 0)),
        ("413", status(413), &[Tried(0), Told(0, 413)], (Well, Well, 0)),
        ("422", status(422), &[Tried(0), Told(0, 422)], (Well, Well, 0)),
        ("529 within a 200", of_kind(200, "overloaded_error"), AGAIN, (Well, Ill, 0)),
        ("429 within a 200", of_kind(200, "rate_limit_error"), AGAIN, (Well, Unknown, 0)),
        ("504 within a 200", of_kind(200, "timeout_error"), NEXT, (Well, Ill, 0)),
        ("400 within a 200", of_kind(200, "invalid_request_error"), NEXT, (Well, Well, 0)),
        ("401 within a 200", of_kind(200, "authentication_error"), NEXT, (Well, Unknown, none)),
        ("usage beside an error", with_usage(200), &[Tried(0), Told(0, 502)], (Well, Ill, 0)),
        ("an error nobody knows", of_kind(200, "strange"), NEXT, (Well, Ill, 0)),
        ("not the media type", invalid, NEXT, (Well, Ill, 0)),
        ("nothing in it", empty, NEXT, (Well, Unknown, 0)),
    ];
    plays(&RetryRules::default(), table);
}

#[test]
fn what_may_be_billed_is_sent_again_only_where_the_operator_lets_it() {
    use Health::{Ill, Unknown, Well};
    let rules = RetryRules { possibly_billed: true, ..RetryRules::default() };
    let (cut, timeout) = (AttemptEnd::Cut { sent: true }, AttemptEnd::Timeout { sent: true });
    let (invalid, empty) = (AttemptEnd::Fault(Fault::INVALID), AttemptEnd::Fault(Fault::EMPTY));
    let table: &[Line] = &[
        ("timeout", timeout, AGAIN, (Ill, Unknown, 0)),
        ("cut", cut, AGAIN, (Ill, Unknown, 0)),
        ("502", status(502), AGAIN, (Well, Ill, 0)),
        ("504", status(504), AGAIN, (Well, Ill, 0)),
        ("other 5xx", status(520), AGAIN, (Well, Ill, 0)),
        ("not the media type", invalid, AGAIN, (Well, Ill, 0)),
        ("nothing in it", empty, AGAIN, (Well, Unknown, 0)),
        ("502 with usage", with_usage(502), &[Tried(0), Told(0, 502)], (Well, Ill, 0)),
        ("400", status(400), &[Tried(0), Told(0, 400)], (Well, Well, 0)),
        ("401", status(401), NEXT, (Well, Unknown, u64::MAX)),
    ];
    plays(&rules, table);
}

/// What the client sees when the first ends so, and the second, if it is asked, so.
#[test]
fn the_end_is_the_last_answer_else_the_last_end_else_unavailable() {
    let one = |end: AttemptEnd| vec![end];
    let thrice = |end: AttemptEnd| vec![end; 3];
    let unreachable = || thrice(AttemptEnd::Unreachable);
    let empty = || one(AttemptEnd::Fault(Fault::EMPTY));
    let invalid = || one(AttemptEnd::Fault(Fault::INVALID));
    let timeout = AttemptEnd::Timeout { sent: true };
    let credit = AttemptEnd::Fault(Fault::of(&Answered {
        status: 400,
        kind: b"invalid_request_error",
        text: b"{\"error\":{\"message\":\"Your credit balance is too low\"}}",
        ..Answered::default()
    }));
    for (ends, wanted) in [
        ([unreachable(), unreachable()], Refused(Refusal::UpstreamUnreachable)),
        ([unreachable(), one(timeout)], Refused(Refusal::UpstreamTimeout)),
        ([thrice(status(503)), unreachable()], Told(0, 503)),
        ([thrice(status(503)), one(timeout)], Told(0, 503)),
        ([thrice(status(503)), thrice(status(429))], Told(1, 429)),
        ([vec![status(503), timeout], vec![]], Told(0, 503)),
        ([one(status(302)), one(status(302))], Refused(Refusal::UpstreamInvalid)),
        ([one(status(401)), one(status(401))], Refused(Refusal::UpstreamAuth)),
        ([one(status(401)), unreachable()], Refused(Refusal::UpstreamUnreachable)),
        ([unreachable(), one(status(401))], Refused(Refusal::UpstreamAuth)),
        ([one(status(403)), one(status(401))], Told(0, 403)),
        ([one(status(402)), one(status(401))], Reworded(0, 402)),
        ([one(credit), one(status(404))], Told(1, 404)),
        ([one(status(404)), one(credit)], Reworded(1, 400)),
        ([one(of_kind(429, "insufficient_quota")), unreachable()], Reworded(0, 429)),
        ([empty(), empty()], Refused(Refusal::EmptyCompletion)),
        ([invalid(), invalid()], Refused(Refusal::UpstreamInvalid)),
        ([thrice(of_kind(200, "overloaded_error")), unreachable()], Told(0, 529)),
        ([one(status(404)), one(status(400))], Told(1, 400)),
    ] {
        let (did, ..) = play(&RetryRules::default(), &two(), &mut Doors::default(), &ends.concat());
        assert_eq!(did.last(), Some(&wanted), "{ends:?}: {did:?}");
    }
}

#[test]
fn a_callers_own_credential_is_told_what_became_of_it() {
    for (status, kind, wanted) in [
        (401, "", Told(0, 401)),
        (402, "", Told(0, 402)),
        (403, "", Told(0, 403)),
        (429, "insufficient_quota", Told(0, 429)),
    ] {
        let kind = kind.as_bytes();
        let answer = Answered { status, kind, own_key: true, ..Answered::default() };
        let ends = [AttemptEnd::Fault(Fault::of(&answer))];
        let (did, reports, _) = play(&RetryRules::default(), &two(), &mut Doors::default(), &ends);
        assert_eq!(did, [Tried(0), wanted]);
        assert_eq!((reports[0].credential, reports[0].cool_ms), (Health::Unknown, 0));
    }
    let busy = Answered { status: 429, own_key: true, ..Answered::default() };
    let ends = [AttemptEnd::Fault(Fault::of(&busy)); 3];
    let (did, ..) = play(&RetryRules::default(), &two(), &mut Doors::default(), &ends);
    assert_eq!(did, AGAIN);
}

#[test]
fn a_dead_reused_connection_is_replayed_once_and_counts_nowhere() {
    let rules = RetryRules::default();
    let (did, reports, walk) =
        play(&rules, &two(), &mut Doors::default(), &[AttemptEnd::Stale, status(400)]);
    assert_eq!(did, [Tried(0), Replayed(0), Told(0, 400)]);
    assert_eq!((reports.len(), walk.attempts(), walk.fallbacks()), (1, 2, 0));

    // The replay is the attempt: three of them, each after a stale one.
    let ends = [AttemptEnd::Stale, status(503)].repeat(3);
    let (did, reports, walk) = play(&rules, &two(), &mut Doors::default(), &ends);
    let round = [Tried(0), Replayed(0)];
    let wanted =
        [&round[..], &[Waited(250)], &round, &[Waited(500)], &round, &[Tried(1), Did::Answered(1)]];
    assert_eq!(did, wanted.concat());
    assert_eq!((reports.len(), walk.attempts(), walk.fallbacks()), (2, 7, 1));

    // A connection nobody used before cannot be stale; if a driver says so, once is enough.
    let (did, reports, _) =
        play(&rules, &two()[..1], &mut Doors::default(), &[AttemptEnd::Stale; 2]);
    assert_eq!(did, [Tried(0), Replayed(0), Refused(Refusal::UpstreamCut)]);
    assert_eq!((reports[0].host, reports[0].credential), (Health::Unknown, Health::Unknown));
}

#[test]
fn a_retry_after_that_fits_is_waited_for_and_one_that_does_not_lets_the_credential_cool() {
    for (end, wanted, cool_ms) in [
        (after(429, 0), AGAIN, 0),
        (after(503, 2), &[Waited(2_000), Waited(2_000)][..], 2_000),
        (after(429, 5), &[Waited(5_000), Waited(5_000)], 5_000),
        (after(429, 6), NEXT, 6_000),
        (after(529, 86_400), NEXT, 86_400_000),
        (after(402, 30), NEXT, 30_000),
    ] {
        let waits =
            [Tried(0), wanted[0], Tried(0), wanted[1], Tried(0), Tried(1), Did::Answered(1)];
        let wanted = if wanted.len() == 2 { &waits[..] } else { wanted };
        let times = wanted.iter().filter(|did| **did == Tried(0)).count();
        let ends = vec![end; times];
        let (did, reports, _) = play(&RetryRules::default(), &two(), &mut Doors::default(), &ends);
        assert_eq!((did.as_slice(), reports[0].cool_ms), (wanted, cool_ms), "{end:?}");
    }
    // Alone, it is told as it came.
    let (did, ..) =
        play(&RetryRules::default(), &two()[..1], &mut Doors::default(), &[after(429, 86_400)]);
    assert_eq!(did, [Tried(0), Told(0, 429)]);
}

#[test]
fn the_wait_doubles_to_its_most_and_half_of_it_is_chance() {
    let rules = RetryRules::default();
    for (tries, least, most) in
        [(1, 250, 500), (2, 500, 1_000), (4, 2_000, 4_000), (5, 2_500, 5_000), (9, 2_500, 5_000)]
    {
        assert_eq!(backoff_ms(tries, 0, &rules), least, "{tries}");
        let highest = backoff_ms(tries, u32::MAX, &rules);
        assert!(highest < most && highest + 1 >= most, "{tries} {highest}");
    }
    assert_eq!(backoff_ms(u8::MAX, u32::MAX, &rules), 4_999);
    let none = RetryRules { backoff_ms: 0, ..rules };
    assert_eq!(backoff_ms(3, u32::MAX, &none), 0);
}

#[test]
fn no_attempt_begins_after_the_budget() {
    let rules = RetryRules { attempts: 10, budget_ms: 3_000, ..RetryRules::default() };
    // 250 + 500 + 1000 have passed when 2000 more would be beyond it: the next is asked instead.
    let ends = vec![status(503); 4];
    let (did, ..) = play(&rules, &two(), &mut Doors::default(), &ends);
    let waits: u64 = did.iter().map(|did| if let Waited(ms) = did { *ms } else { 0 }).sum();
    assert_eq!((waits, did.last()), (1_750, Some(&Did::Answered(1))));

    // An attempt that itself outlasts it is the last.
    let mut walk = Walk::new(Places::first(2), 0);
    let (candidates, mut doors, mut at) = (two(), Doors::default(), At::default());
    let rules = RetryRules::default();
    assert_eq!(
        walk.next(at, &rules, &candidates, &mut doors),
        Step::Try { place: 0, fresh: false }
    );
    at.mono = later(at.mono, 240_000);
    walk.end(status(401), at, &rules);
    let mut late = walk;
    assert_eq!(
        walk.next(at, &rules, &candidates, &mut doors),
        Step::Try { place: 1, fresh: false },
        "at its last instant one may begin"
    );
    at.mono.0 += 1;
    let over = Step::Over(Over::Refuse(Refusal::UpstreamAuth));
    assert_eq!(late.next(at, &rules, &candidates, &mut doors), over);
    // Whoever slept beyond it is not tried again either.
    let mut asleep = Walk::new(Places::first(2), 0);
    let start = At::default();
    asleep.next(start, &rules, &candidates, &mut doors);
    asleep.end(status(503), start, &rules);
    let told = Over::Answer(Answer { place: 0, status: 503, reworded: false });
    assert_eq!(asleep.next(at, &rules, &candidates, &mut doors), Step::Over(told));
}

#[test]
fn who_rests_is_passed_over_and_nobody_left_is_unavailable() {
    let rules = RetryRules::default();
    let mut first_rests = Doors { resting: set(&[0]), ..Doors::default() };
    let (did, _, walk) = play(&rules, &two(), &mut first_rests, &[]);
    assert_eq!((did, walk.fallbacks()), (vec![Tried(1), Did::Answered(1)], 0));
    let mut all_rest = Doors { resting: set(&[0, 1]), ..Doors::default() };
    let (did, ..) = play(&rules, &two(), &mut all_rest, &[]);
    assert_eq!(did, [Refused(Refusal::UpstreamUnavailable { retry_after_s: 1 })]);
    for (rests_ms, retry_after_s) in [
        (vec![30_000, 1_001], 2),
        (vec![4_000, 30_000], 4),
        (vec![0, 30_000], 1),
        (vec![3_600_000, u64::MAX], 60),
    ] {
        let mut all_rest = Doors { resting: set(&[0, 1]), rests_ms, ..Doors::default() };
        let (did, ..) = play(&rules, &two(), &mut all_rest, &[]);
        assert_eq!(did, [Refused(Refusal::UpstreamUnavailable { retry_after_s })]);
    }
    let (did, ..) = play(&rules, &[], &mut Doors::default(), &[]);
    assert_eq!(did, [Refused(Refusal::ModelUnavailable)]);
    // The answer of the one that was asked counts more than that the other rests.
    let mut second_rests = Doors { resting: set(&[1]), ..Doors::default() };
    let (did, ..) = play(&rules, &two(), &mut second_rests, &[status(404)]);
    assert_eq!(did, [Tried(0), Told(0, 404)]);
}

#[test]
fn a_candidate_whose_breaker_opened_meanwhile_is_not_tried_again() {
    let (rules, candidates) = (RetryRules::default(), two());
    let mut doors = Doors::default();
    let mut walk = Walk::new(Places::first(2), 0);
    let mut at = At::default();
    walk.next(at, &rules, &candidates, &mut doors);
    assert_eq!(walk.end(status(503), at, &rules), Ended { report: None, keep: true });
    let Step::Wait { until } = walk.next(at, &rules, &candidates, &mut doors) else { panic!() };
    at.mono = until;
    doors.resting = set(&[0]);
    let next = walk.next(at, &rules, &candidates, &mut doors);
    assert_eq!(next, Step::Try { place: 1, fresh: false });
}

#[test]
fn the_spared_are_taken_only_when_nobody_is_ready() {
    let rules = RetryRules::default();
    let mut doors = Doors { spared: set(&[0]), ..Doors::default() };
    assert_eq!(play(&rules, &two(), &mut doors, &[]).0[0], Tried(1), "of a worse priority, ready");
    let mut doors = Doors { spared: set(&[0, 1]), ..Doors::default() };
    assert_eq!(play(&rules, &two(), &mut doors, &[]).0[0], Tried(0));
    let mut doors = Doors { spared: set(&[0]), resting: set(&[1]), ..Doors::default() };
    assert_eq!(play(&rules, &two(), &mut doors, &[]).0[0], Tried(0));
}

#[test]
fn a_probe_is_one_attempt_and_says_how_it_went() {
    let rules = RetryRules::default();
    let probing = || Doors { probes: set(&[0]), ..Doors::default() };
    let pass = Pass { host: true, credential: false };
    let (did, reports, _) = play(&rules, &two(), &mut probing(), &[AttemptEnd::Unreachable]);
    assert_eq!(did, NEXT, "it is not tried again");
    assert_eq!((reports[0].pass, reports[0].host), (pass, Health::Ill));
    assert_eq!(reports[1].pass, Pass::default());
    let (_, reports, _) = play(&rules, &two(), &mut probing(), &[]);
    assert_eq!((reports[0].pass, reports[0].host), (pass, Health::Well));
    // The replay of a stale connection belongs to it.
    let (did, reports, _) = play(&rules, &two(), &mut probing(), &[AttemptEnd::Stale]);
    assert_eq!(did, [Tried(0), Replayed(0), Did::Answered(0)]);
    assert_eq!((reports[0].pass, reports[0].host), (pass, Health::Well));
    // Whoever loses the race for it goes on.
    let mut doors = Doors { taken: set(&[0]), ..Doors::default() };
    assert_eq!(play(&rules, &two(), &mut doors, &[]).0, [Tried(1), Did::Answered(1)]);
}

#[test]
fn a_probe_that_nobody_waits_for_says_so_once() {
    let (rules, candidates) = (RetryRules::default(), two());
    let mut doors = Doors { probes: set(&[0]), ..Doors::default() };
    let mut walk = Walk::new(Places::first(2), 0);
    let mut unasked = walk;
    assert_eq!(unasked.abandoned(), None);
    walk.next(At::default(), &rules, &candidates, &mut doors);
    let mut gone = walk;
    let report = gone.abandoned().unwrap();
    assert_eq!((report.pass.host, report.host), (true, Health::Unknown));
    assert_eq!(gone.abandoned(), None);
    walk.end(AttemptEnd::Stale, At::default(), &rules);
    assert!(walk.abandoned().is_some(), "before its replay");
    let mut walk = Walk::new(Places::first(2), 0);
    walk.next(At::default(), &rules, &candidates, &mut doors);
    walk.end(status(401), At::default(), &rules);
    assert_eq!(walk.abandoned(), None, "it has said already how it went");
}

#[test]
fn an_answer_that_breaks_off_is_replayed_nowhere_and_counts() {
    let (rules, candidates) = (RetryRules::default(), two());
    let mut doors = Doors { probes: set(&[0]), ..Doors::default() };
    let mut walk = Walk::new(Places::first(2), 0);
    walk.next(At::default(), &rules, &candidates, &mut doors);
    assert!(walk.answered().pass.host);
    for (end, host, credential) in [
        (AttemptEnd::Cut { sent: true }, Health::Ill, Health::Unknown),
        (AttemptEnd::Timeout { sent: true }, Health::Ill, Health::Unknown),
        (of_kind(200, "api_error"), Health::Well, Health::Ill),
        (of_kind(200, "rate_limit_error"), Health::Well, Health::Unknown),
    ] {
        let Report { pass, host: of_host, credential: of_credential, .. } = walk.broke_off(end);
        assert_eq!((of_host, of_credential), (host, credential), "{end:?}");
        assert_eq!(pass, Pass::default(), "the probe is over");
    }
    let next = walk.next(At::default(), &rules, &candidates, &mut doors);
    assert!(matches!(next, Step::Over(_)), "{next:?}");
}

#[test]
fn equals_share_the_calls_by_weight() {
    let candidates = [candidate(1, 3), candidate(1, 1), candidate(2, 9)];
    let mut counts = [0; 3];
    for turn in 0..400 {
        let mut walk = Walk::new(Places::first(3), turn);
        let step =
            walk.next(At::default(), &RetryRules::default(), &candidates, &mut Doors::default());
        let Step::Try { place, .. } = step else { panic!("{step:?}") };
        counts[usize::from(place)] += 1;
    }
    assert_eq!(counts, [300, 100, 0]);
}

#[test]
fn it_is_small_enough_to_be_part_of_every_connection() {
    assert_eq!(size_of::<Walk>(), 112);
}

fn any_end() -> impl Strategy<Value = AttemptEnd> {
    let answer = (100_u16..600, any::<bool>(), proptest::option::of(0_u64..90_000));
    prop_oneof![
        Just(AttemptEnd::Unreachable),
        Just(AttemptEnd::Stale),
        any::<bool>().prop_map(|sent| AttemptEnd::Cut { sent }),
        any::<bool>().prop_map(|sent| AttemptEnd::Timeout { sent }),
        Just(AttemptEnd::Fault(Fault::EMPTY)),
        Just(AttemptEnd::Fault(Fault::INVALID)),
        answer.prop_map(|(status, usage, retry_after_ms)| {
            let answer = Answered { status, usage, retry_after_ms, ..Answered::default() };
            AttemptEnd::Fault(Fault::of(&answer))
        }),
    ]
}

proptest! {
    /// Whatever comes: the walk ends, within its numbers, and health hears of every candidate
    /// that was tried and left exactly once.
    #[test]
    fn every_walk_ends_within_its_bounds(
        ends in proptest::collection::vec((any_end(), 0_u64..120_000), 900),
        count in 0_usize..130,
        rests in any::<u128>(),
        rules in (1_u8..5, 0_u32..2_000, any::<bool>()),
        chance in any::<u32>(),
    ) {
        let (attempts, backoff_ms, possibly_billed) = rules;
        let rules = RetryRules { attempts, backoff_ms, possibly_billed, ..RetryRules::default() };
        let candidates: Vec<Candidate> =
            (0..count.min(128)).map(|n| candidate(n as u16 / 4, 1 + n as u32 % 3)).collect();
        let resting = (0..128).filter(|place| rests >> place & 1 == 1).collect::<Vec<u8>>();
        let mut doors = Doors { resting: set(&resting), ..Doors::default() };
        let mut walk = Walk::new(Places::first(candidates.len()), 7);
        let (mut at, mut begun) = (At { chance, ..At::default() }, Vec::new());
        let mut ends = ends.into_iter();
        let mut reported = Places::NONE;
        let mut first = None;
        loop {
            match walk.next(at, &rules, &candidates, &mut doors) {
                Step::Over(_) => break,
                Step::Wait { until } => {
                    prop_assert!(until > at.mono);
                    let most = u64::from(rules.backoff_max_ms) * NS_PER_MS;
                    prop_assert!(until.since(at.mono) <= most);
                    at.mono = until;
                }
                Step::Try { place, fresh } => {
                    prop_assert!(!doors.resting.has(place) && !reported.has(place));
                    begun.push((place, fresh));
                    let start = *first.get_or_insert(at.mono);
                    prop_assert!(at.mono.since(start) <= u64::from(rules.budget_ms) * NS_PER_MS);
                    let (end, took) = ends.next().unwrap();
                    // What is sent again at once takes no time.
                    if end != AttemptEnd::Stale {
                        at.mono = later(at.mono, took);
                    }
                    if let Some(report) = walk.end(end, at, &rules).report {
                        prop_assert_eq!(report.place, place);
                        reported.insert(place);
                    }
                }
            }
        }
        for place in 0..128 {
            let of = |fresh| begun.iter().filter(|tried| **tried == (place, fresh)).count();
            prop_assert!(of(false) <= usize::from(attempts) && of(true) <= of(false));
        }
        prop_assert_eq!(usize::from(walk.attempts()), begun.len());
        let changes = begun.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        prop_assert_eq!(usize::from(walk.fallbacks()), changes);
    }
}
