use super::*;
use crate::exchange::bundle::KeyState as Standing;
use crate::exchange::limits::KeyLimits;
use crate::exchange::models::AllowList;
use crate::exchange::money::PicoUsd;
use crate::exchange::time::{MonoNs, Now};
use crate::exchange::window::Period;
use crate::exchange::words::MoneyLimit;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// 2026-11-30T12:00:00Z and the first of December.
const NOW: UnixMs = UnixMs(1_796_040_000_000);
const DECEMBER: UnixMs = UnixMs(1_796_083_200_000);

/// A state store of this test's own, gone when it ends.
struct Home(PathBuf);

impl Home {
    fn new() -> Home {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("keys-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    fn state(&self) -> Arc<State> {
        Arc::new(State::open(&self.0.join("state.redb"), || 7).unwrap())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn key(name: &str, byte: u8, limits: KeyLimits) -> DeclaredKey {
    DeclaredKey { name: name.into(), digest: [byte; 32], limits }
}

fn dollars(text: &str) -> Option<MoneyLimit> {
    MoneyLimit::new(PicoUsd::from_decimal(text).unwrap()).ok()
}

fn load(state: &Arc<State>, declared: &[DeclaredKey]) -> (Keys, Declared) {
    Keys::load(state.clone(), &Balances::default(), declared, NOW).unwrap()
}

fn named(name: &str) -> NewKey {
    NewKey { name: name.to_owned(), ..NewKey::default() }
}

fn standing(keys: &Keys, digest: &Digest) -> Option<Standing> {
    keys.table().find(digest).map(|bundle| bundle.state())
}

fn find(keys: &Keys, text: &str) -> Result<u64, KeyFault> {
    keys.find(&Selector::read(text)?).map(|row| row.id)
}

#[test]
fn a_made_key_is_found_by_its_text_and_its_text_is_nowhere() {
    let home = Home::new();
    let text = {
        let (keys, _) = load(&home.state(), &[]);
        let (row, text) = keys.create(&named("ci"), NOW).unwrap();
        assert_eq!((row.id, row.name.as_str(), row.declared), (1, "ci", false));
        assert_eq!((row.prefix.as_str(), row.created_unix_ms), (text.prefix(), NOW.0));
        assert_eq!(standing(&keys, &text.digest()), Some(Standing::Active));
        text
    };
    let (keys, told) = load(&home.state(), &[]);
    assert_eq!(told, Declared::default());
    assert_eq!(standing(&keys, &text.digest()), Some(Standing::Active));
    drop(keys);
    let bytes = std::fs::read(home.0.join("state.redb")).unwrap();
    let secret = &text.reveal().as_bytes()[PREFIX_BYTES..];
    assert!(!bytes.windows(secret.len()).any(|window| window == secret));
}

#[test]
fn a_revoked_key_is_refused_at_once_and_for_good() {
    let home = Home::new();
    let state = home.state();
    let (keys, _) = load(&state, &[]);
    let (row, text) = keys.create(&named("ci"), NOW).unwrap();
    // Whoever has the bundle already sees it too.
    let bundle = keys.table().find(&text.digest()).unwrap();
    let revoked = keys.revoke(row.id).unwrap();
    assert_eq!(revoked.state, KeyState::Revoked);
    assert_eq!(bundle.state(), Standing::Revoked);
    assert_eq!(keys.revoke(row.id).unwrap(), revoked, "twice is once");
    assert!(matches!(keys.revoke(99), Err(KeyFault::NotFound)));
    let (keys, _) = load(&state, &[]);
    assert_eq!(standing(&keys, &text.digest()), Some(Standing::Revoked));
}

#[test]
fn a_key_revoked_while_it_is_made_is_not_left_active() {
    let home = Home::new();
    let state = home.state();
    let (keys, _) = load(&state, &[]);
    for round in 1..=50_u8 {
        let id = u64::from(round);
        std::thread::scope(|scope| {
            // As soon as it can be found at all, which may be before it is in the table.
            let revoking = scope.spawn(|| while keys.revoke(id).is_err() {});
            keys.insert(&named(&format!("k{id}")), [round; 32], "", NOW).unwrap();
            revoking.join().unwrap();
        });
        assert_eq!(standing(&keys, &[round; 32]), Some(Standing::Revoked), "{round}");
    }
}

#[test]
fn two_who_ask_for_one_name_get_it_once() {
    let home = Home::new();
    let (keys, _) = load(&home.state(), &[]);
    let made: usize = std::thread::scope(|scope| {
        let asking = |n: u8| {
            let keys = &keys;
            scope.spawn(move || usize::from(keys.insert(&named("ci"), [n; 32], "", NOW).is_ok()))
        };
        let asked: Vec<_> = (1..=8).map(asking).collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(made, 1);
}

#[test]
fn declared_keys_follow_the_file() {
    let home = Home::new();
    let state = home.state();
    let limits = KeyLimits {
        requests_per_minute: Some(3),
        budget_total: dollars("1.00"),
        models: AllowList::new(["GPT-*"]).ok(),
        strict: true,
        ..KeyLimits::default()
    };
    let (a, b) = (key("a", 1, limits.clone()), key("b", 2, KeyLimits::default()));
    let (keys, told) = load(&state, &[a.clone(), b.clone()]);
    assert_eq!((told.added.len(), told.changed.len()), (2, 0));
    let row = state.key_of(&[1; 32]).unwrap().unwrap();
    assert!(row.declared && row.strict && row.prefix.is_empty());
    assert_eq!((row.id, row.models.as_deref()), (1, Some(&["gpt-*".to_owned()][..])));
    let bundle = keys.table().find(&[1; 32]).unwrap();
    assert_eq!(bundle.limits.budgets[0].id.0, row.budgets[0].budget_id);
    assert!(bundle.limits.strict && bundle.limits.models == limits.models);

    // The same file again writes nothing.
    let (_, told) = load(&state, &[a.clone(), b.clone()]);
    assert_eq!(told, Declared::default());

    // One is gone, one has another name and limit.
    let changed = KeyLimits { budget_total: dollars("2.00"), ..limits.clone() };
    let (keys, told) = load(&state, &[key("a2", 1, changed)]);
    assert_eq!((&*told.changed, &*told.disabled), (&["a2".into()][..], &["b".into()][..]));
    assert_eq!(standing(&keys, &[2; 32]), Some(Standing::Disabled));
    let again = state.key_of(&[1; 32]).unwrap().unwrap();
    assert_eq!((again.id, again.budgets[0].budget_id), (1, row.budgets[0].budget_id));
    assert_eq!(again.budgets[0].limit_picousd, 2_000_000_000_000);

    // It comes back; the other was revoked meanwhile and does not.
    keys.revoke(1).unwrap();
    let (keys, told) = load(&state, &[a, b]);
    assert_eq!(
        (&*told.changed, &*told.revoked),
        (&["a".into(), "b".into()][..], &["a2".into()][..])
    );
    assert_eq!(standing(&keys, &[2; 32]), Some(Standing::Active));
    assert_eq!(standing(&keys, &[1; 32]), Some(Standing::Revoked));
}

#[test]
fn a_key_made_by_hand_can_become_a_declared_one() {
    let home = Home::new();
    let state = home.state();
    let (keys, _) = load(&state, &[]);
    let made = keys.insert(&named("by hand"), [9; 32], "tg-abcdef", NOW).unwrap();
    let (_, told) = load(&state, &[key("in the file", 9, KeyLimits::default())]);
    assert_eq!(&*told.changed, &["in the file".into()][..]);
    let row = state.key(made.id).unwrap().unwrap();
    assert!(row.declared && row.prefix == "tg-abcdef" && row.name == "in the file");
}

#[test]
fn what_was_spent_stands_in_the_window_in_force_after_a_restart() {
    let home = Home::new();
    let state = home.state();
    let limits = KeyLimits {
        budget_total: dollars("9"),
        budget_month: dollars("5"),
        ..KeyLimits::default()
    };
    let declared = [key("a", 1, limits)];
    load(&state, &declared);
    let row = state.key_of(&[1; 32]).unwrap().unwrap();
    let [total, month] = &row.budgets[..] else { panic!("{:?}", row.budgets) };
    let mut balances = Balances::default();
    let mut spend = |budget_id, window, dollars: u128| {
        let cost_picousd = dollars * 1_000_000_000_000;
        let total = Total { cost_picousd, ..Total::default() };
        balances.set(Account::window(budget_id, window), total);
    };
    spend(total.budget_id, 0, 3);
    spend(month.budget_id, Period::Month.window(NOW).id.0, 2);
    spend(month.budget_id, Period::Month.window(NOW).id.0 - 1, 4);
    for (now, spent) in [(NOW, [3, 2]), (DECEMBER, [3, 0])] {
        let (keys, _) = Keys::load(state.clone(), &balances, &declared, now).unwrap();
        let bundle = keys.table().find(&[1; 32]).unwrap();
        let found: Vec<u64> =
            bundle.limits.budgets.iter().map(|b| b.current(now).spent().0).collect();
        assert_eq!(found, spent.map(|dollars| dollars * 1_000_000_000_000));
    }
}

#[test]
fn a_budget_that_comes_back_remembers_what_was_spent() {
    let home = Home::new();
    let state = home.state();
    let with = KeyLimits { budget_total: dollars("1.00"), ..KeyLimits::default() };
    load(&state, &[key("a", 1, with.clone())]);
    let before = state.key_of(&[1; 32]).unwrap().unwrap().budgets;
    let (keys, _) = load(&state, &[key("a", 1, KeyLimits::default())]);
    assert!(keys.table().find(&[1; 32]).unwrap().limits.budgets.is_empty());
    let (keys, _) = load(&state, &[key("a", 1, with)]);
    assert_eq!(state.key_of(&[1; 32]).unwrap().unwrap().budgets, before);
    assert_eq!(keys.table().find(&[1; 32]).unwrap().limits.budgets[0].id.0, before[0].budget_id);
}

#[test]
fn new_keys_do_not_inherit_what_a_lost_store_had_numbered() {
    let home = Home::new();
    let mut balances = Balances::default();
    balances.set(Account::key(40), Total::default());
    balances.set(Account::window(70, 3), Total::default());
    let limits = KeyLimits { budget_total: dollars("1"), ..KeyLimits::default() };
    let state = home.state();
    Keys::load(state.clone(), &balances, &[key("a", 1, limits)], NOW).unwrap();
    let row = state.key_of(&[1; 32]).unwrap().unwrap();
    assert_eq!((row.id, row.budgets[0].budget_id), (41, 71));
}

#[test]
fn a_selector_means_one_key_or_none() {
    let home = Home::new();
    let (keys, _) = load(&home.state(), &[]);
    let text = KeyText::read("tg-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").unwrap();
    for (name, digest, prefix) in [
        ("one", text.digest(), "tg-aaaaaa"),
        ("two", [2; 32], "tg-aaabbb"),
        ("2", [3; 32], "tg-cccccc"),
        ("tg-cccccc", [4; 32], ""),
        ("a/b c", [5; 32], ""),
    ] {
        keys.insert(&named(name), digest, prefix, NOW).unwrap();
    }
    let hex: String = text.digest().iter().map(|byte| format!("{byte:02x}")).collect();
    for (selector, id) in [
        ("1", 1),
        ("key_1", 1),
        ("one", 1),
        ("tg-aaaa", 1),
        (text.reveal(), 1),
        (&format!("sha256:{hex}"), 1),
        ("two", 2),
        ("key_2", 2),
        ("tg-aaab", 2),
        ("a/b c", 5),
    ] {
        assert_eq!(find(&keys, selector).unwrap(), id, "{selector}");
    }
    for (selector, ids) in [("tg-aaa", vec![1, 2]), ("2", vec![2, 3]), ("tg-cccccc", vec![3, 4])] {
        let Err(KeyFault::Ambiguous(found)) = find(&keys, selector) else { panic!("{selector}") };
        assert_eq!(found, ids, "{selector}");
    }
    for selector in ["6", "key_", "ONE", "tg-", "on", "tg-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"] {
        assert!(matches!(find(&keys, selector), Err(KeyFault::NotFound)), "{selector}");
    }
    for selector in ["", "sha256:00", "sha256:xyz"] {
        assert!(matches!(find(&keys, selector), Err(KeyFault::Invalid(_))), "{selector}");
    }
}

#[test]
fn a_name_is_free_again_once_its_key_is_revoked() {
    let home = Home::new();
    let (keys, _) = load(&home.state(), &[]);
    let first = keys.create(&named("ci"), NOW).unwrap().0.id;
    assert!(matches!(keys.create(&named("ci"), NOW), Err(KeyFault::Taken(_))));
    keys.revoke(first).unwrap();
    assert_eq!(find(&keys, "ci").unwrap(), first);
    let second = keys.create(&named("ci"), NOW).unwrap().0.id;
    assert_eq!(find(&keys, "ci").unwrap(), second);
    keys.revoke(second).unwrap();
    assert!(matches!(find(&keys, "ci"), Err(KeyFault::Ambiguous(_))));
    let twice = keys.insert(&named("x"), [1; 32], "", NOW).map(|_| ());
    assert!(twice.is_ok());
    let twice = keys.insert(&named("y"), [1; 32], "", NOW);
    assert!(matches!(twice, Err(KeyFault::Taken(_))), "a digest is one key's");
}

#[test]
fn what_is_asked_for_is_read_or_refused_with_a_reason() {
    let read = |json: &str| NewKey::parse(json.as_bytes(), NOW);
    let new = read(
        r#"{"name": "ci", "project": 4, "models": ["gpt-4o*"], "requests_per_minute": 0,
            "concurrent": 4, "budget_total": "25.00", "budget_month": "0", "strict": true,
            "expires": "30d"}"#,
    )
    .unwrap();
    assert_eq!((new.name.as_str(), new.project), ("ci", 4));
    assert_eq!(new.limits.requests_per_minute, Some(0));
    assert_eq!(new.limits.budget_month, dollars("0"));
    assert_eq!(new.limits.expires, Some(UnixMs(NOW.0 + 30 * 86_400_000)));
    assert!(new.limits.models.unwrap().allows("gpt-4o-mini"));
    let bare = read(r#"{"name": "x", "models": null}"#).unwrap();
    assert!(bare.limits.models.is_none() && bare.limits.budget_total.is_none());
    let none = read(r#"{"name": "x", "models": []}"#).unwrap();
    assert!(!none.limits.models.unwrap().allows("anything"));
    for (json, part) in [
        ("", "this is no key"),
        ("{}", "the name must have"),
        (r#"{"name": " x"}"#, "the name must have"),
        (r#"{"name": "x", "budget": "1"}"#, "unknown field `budget`"),
        (r#"{"name": "x", "requests_per_minute": -1}"#, "invalid value"),
        (r#"{"name": "x", "budget_total": 1.0}"#, "invalid type"),
        (r#"{"name": "x", "budget_total": "-1"}"#, "budget_total is dollars"),
        (r#"{"name": "x", "budget_month": "9000001"}"#, "above 9 million"),
        (r#"{"name": "x", "expires": "soon"}"#, "expires is an instant"),
        (r#"{"name": "x", "expires": "+3d"}"#, "expires is an instant"),
        (r#"{"name": "x", "expires": "99999999999999999d"}"#, "expires is an instant"),
        (r#"{"name": "x", "expires": "2020-01-01T00:00:00Z"}"#, "2020-01-01T00:00:00Z is over"),
        (r#"{"name": "x", "expires": "0d"}"#, "is over"),
        (r#"{"name": "x", "models": ["*x"]}"#, "is no model's name"),
    ] {
        let error = read(json).unwrap_err();
        assert!(error.to_string().contains(part), "{json}: {error}");
        assert_eq!(error.status(), 400);
    }
}

#[test]
fn a_shown_key_says_how_its_limits_stand() {
    let home = Home::new();
    let (keys, _) = load(&home.state(), &[]);
    let json = r#"{"name": "ci", "requests_per_minute": 5, "concurrent": 2,
        "budget_month": "2.00", "budget_total": "1.00", "expires": "1h"}"#;
    let new = NewKey::parse(json.as_bytes(), NOW).unwrap();
    let (row, text) = keys.create(&new, NOW).unwrap();
    let bundle = keys.table().find(&text.digest()).unwrap();
    let concurrent = bundle.limits.concurrent.as_ref().unwrap();
    assert!(concurrent.inside.enter(concurrent.max));
    let window = bundle.limits.budgets[0].current(NOW);
    assert!(window.take(250_000_000_000));
    window.book(PicoUsd(100_000_000_000));
    let now = Now { mono: MonoNs(5), wall: NOW };
    let shown = keys.show(&row, now).unwrap();
    assert_eq!((&shown["key"], &shown["state"]), (&"key_1".into(), &"active".into()));
    assert_eq!((&shown["requests_left"], &shown["in_flight"]), (&5.into(), &1.into()));
    let [total, month] = &shown["budgets"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!((&total["limit"], &total["spent"]), (&"$1.00".into(), &"$0.10".into()));
    assert_eq!((&total["held"], &total["remaining"]), (&"$0.15".into(), &"$0.75".into()));
    assert!(total["resets"].is_null());
    assert_eq!(month["resets"], "2026-12-01T00:00:00Z");
    assert_eq!(shown["settled"]["exchanges"], 0);
    assert_eq!(shown["settled"]["refusals"], 0);
    assert_eq!(shown["expires"], "2026-11-30T13:00:00Z");
    assert!(!shown.to_string().contains(text.reveal()));
    let later = Now { wall: UnixMs(NOW.0 + 3_600_000), ..now };
    assert_eq!(keys.show(&row, later).unwrap()["state"], "expired");
}

#[test]
fn windows_are_prepared_for_every_budget() {
    let home = Home::new();
    let (keys, _) = load(&home.state(), &[]);
    let json = r#"{"name": "ci", "budget_month": "2.00"}"#;
    let new = NewKey::parse(json.as_bytes(), NOW).unwrap();
    let (_, text) = keys.create(&new, UnixMs(NOW.0 - 20 * 86_400_000)).unwrap();
    let bundle = keys.table().find(&text.digest()).unwrap();
    let budget = &bundle.limits.budgets[0];
    let november = budget.current(NOW).id();
    assert_eq!(budget.current(DECEMBER).id(), november, "nobody has prepared it");
    keys.prepare(NOW);
    assert_eq!(budget.current(DECEMBER).id().0, november.0 + 1);
}

#[test]
fn keys_are_listed_in_pages() {
    let home = Home::new();
    let (keys, _) = load(&home.state(), &[]);
    for n in 1..=5 {
        keys.insert(&named(&format!("k{n}")), [n; 32], "", NOW).unwrap();
    }
    let page = |after, count| {
        let (rows, next) = keys.page(after, count).unwrap();
        (rows.iter().map(|row| row.id).collect::<Vec<_>>(), next)
    };
    assert_eq!(page(0, 2), (vec![1, 2], Some(2)));
    assert_eq!(page(2, 2), (vec![3, 4], Some(4)));
    assert_eq!(page(4, 2), (vec![5], None));
    assert_eq!(page(0, 5), (vec![1, 2, 3, 4, 5], None));
    assert_eq!(page(5, 0), (vec![], None));
    let mut names = keys.names();
    names.sort();
    assert_eq!(names[4], (5, "k5".into()));
}
