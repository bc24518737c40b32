use super::*;
use crate::exchange::time::{MonoNs, Now, UnixMs};
use store::balance::Balances;
use store::state::State;

fn clock() -> Now {
    Now { mono: MonoNs(1), wall: UnixMs(1_796_040_000_000) }
}

/// The desk of a node, and the folder of its state, gone with it.
struct Office {
    desk: Desk,
    folder: std::path::PathBuf,
}

impl Office {
    fn new(name: &str, running: bool) -> Office {
        let folder = std::env::temp_dir().join(format!("desk-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let state = Arc::new(State::open(&folder.join("state.redb"), || 0x2a).unwrap());
        let (keys, _) = Keys::load(state, &Balances::default(), &[], clock().wall).unwrap();
        let log = running.then(|| Log {
            node: 0x2a,
            position: Box::new(|| {
                let durable = reader::Position { next_seq: 8, ..Default::default() };
                Position { durable, ..Position::default() }
            }),
            gauges: Arc::default(),
            providers: vec!["openai".into()],
        });
        Office { desk: Desk::new(Arc::new(keys), log, clock), folder }
    }

    fn ask(&self, method: &str, target: &str, body: &str) -> (u16, Value) {
        let answer = self.desk.answer(method, target, body.as_bytes());
        (answer.status, answer.body)
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_key_is_made_shown_listed_and_revoked() {
    let office = Office::new("life", false);
    let (status, made) = office.ask("POST", "/keys", r#"{"name": "a/b c", "concurrent": 0}"#);
    assert_eq!(status, 201);
    let text = made["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("tg-") && text.len() == 35);
    let (_, shown) = office.ask("GET", "/keys/a%2Fb%20c", "");
    assert_eq!((&shown["id"], &shown["concurrent"]), (&1.into(), &0.into()));
    let (_, list) = office.ask("GET", "/keys?after=0&limit=1", "");
    assert_eq!((list["keys"][0]["name"].as_str(), &list["next"]), (Some("a/b c"), &Value::Null));
    let selector = Selector::read(&text).unwrap();
    let target = format!("/keys/{}/revoke", encoded(&selector));
    assert!(!target.contains(&text), "a key's text is in no path");
    assert_eq!(office.ask("POST", &target, "").1["state"], "revoked");
    for (_, body) in [office.ask("GET", "/keys/1", ""), office.ask("GET", "/keys", "")] {
        assert!(!body.to_string().contains(&text), "shown once");
        assert!(body.to_string().contains("revoked"));
    }
}

#[test]
fn the_ledger_of_a_running_node_is_told() {
    let office = Office::new("ledger", true);
    office.ask("POST", "/keys", r#"{"name": "ci"}"#);
    let (status, told) = office.ask("GET", "/ledger", "");
    assert_eq!((status, &told["node"]), (200, &"000000000000002a".into()));
    assert_eq!((&told["durable"]["last_seq"], &told["keys"]["1"]), (&7.into(), &"ci".into()));
    assert_eq!(
        (&told["providers"][0], &told["gauges"]["health"]),
        (&"openai".into(), &"good".into())
    );
    assert_eq!(told["gauges"]["slots"]["priced"], 0);
}

#[test]
fn what_cannot_be_answered_has_a_code() {
    let office = Office::new("faults", false);
    office.ask("POST", "/keys", r#"{"name": "one"}"#);
    office.ask("POST", "/keys", r#"{"name": "k"}"#);
    // A name is free again once its key is revoked; of two that were, neither is meant.
    for _ in 0..2 {
        office.ask("POST", "/keys", r#"{"name": "old"}"#);
        office.ask("POST", "/keys/old/revoke", "");
    }
    for (method, target, body, status, code) in [
        ("GET", "/", "", 404, "not_found"),
        ("GET", "/keys/1/revoke", "", 405, "method_not_allowed"),
        ("DELETE", "/keys/1", "", 405, "method_not_allowed"),
        ("POST", "/ledger", "", 405, "method_not_allowed"),
        ("GET", "/keys/1/2", "", 404, "not_found"),
        ("GET", "/ledger", "", 404, "no_ledger"),
        ("GET", "/keys/nobody", "", 404, "key_not_found"),
        ("POST", "/keys/nobody/revoke", "", 404, "key_not_found"),
        ("GET", "/keys/old", "", 409, "key_ambiguous"),
        ("POST", "/keys", r#"{"name": "2"}"#, 400, "invalid_request"),
        ("POST", "/keys", r#"{"name": "key_2"}"#, 400, "invalid_request"),
        ("GET", "/keys/%2", "", 400, "invalid_request"),
        ("GET", "/keys/%ff", "", 400, "invalid_request"),
        ("GET", "/keys/", "", 400, "invalid_request"),
        ("GET", "/keys?after=x", "", 400, "invalid_request"),
        ("GET", "/keys?all=1", "", 400, "invalid_request"),
        ("POST", "/keys", "{", 400, "invalid_request"),
        ("POST", "/keys", r#"{"name": "k"}"#, 409, "key_taken"),
    ] {
        let (got, answer) = office.ask(method, target, body);
        assert_eq!((got, answer["error"]["code"].as_str()), (status, Some(code)), "{target}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| !text.is_empty()));
    }
    assert_eq!(office.ask("GET", "/keys/1", "").0, 200, "by number");
    assert_eq!(office.ask("GET", "/keys/one", "").0, 200, "by name");
}
