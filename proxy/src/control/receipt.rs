//! A settled record as JSON: what `serve --print-records` prints as it happens, and what `ledger`
//! shows of the log. The fields are described in `docs/OPERATING.md`. No header, body or prompt is
//! in it.

use crate::config::snapshot::Snapshot;
use crate::exchange::call::{Dialect, Route};
use crate::exchange::codes;
use crate::exchange::ids::RequestId;
use crate::exchange::keys::KeyTable;
use crate::exchange::money::PicoUsd;
use serde_json::{Value, json};
use std::collections::HashMap;
use store::record::{Attempt, Settled, flag};

/// The names of what a record only has the numbers of.
#[derive(Clone, Debug)]
pub struct Names {
    keys: HashMap<u64, Box<str>>,
    providers: Vec<Box<str>>,
}

impl Names {
    /// The names of a configuration and of the keys there are now.
    pub fn of(snapshot: &Snapshot, keys: &KeyTable) -> Names {
        let mut names = HashMap::new();
        keys.each(|bundle| drop(names.insert(bundle.key.0, bundle.name.clone())));
        let providers = snapshot.providers.iter().map(|provider| provider.name.clone());
        Names { keys: names, providers: providers.collect() }
    }

    /// Names that were told: of keys by number, of providers by place.
    pub fn told(
        keys: impl IntoIterator<Item = (u64, Box<str>)>,
        providers: Vec<Box<str>>,
    ) -> Names {
        Names { keys: keys.into_iter().collect(), providers }
    }

    /// The name of the key that pays.
    pub fn key(&self, record: &Settled) -> Option<&str> {
        self.keys.get(&record.key_id).map(|name| &**name)
    }

    /// The attempts a record lists, with the names of their providers.
    pub fn listed<'r>(
        &'r self,
        record: &'r Settled,
    ) -> impl Iterator<Item = (Option<&'r str>, &'r Attempt)> {
        let begun = usize::from(record.attempts).min(record.listed.len());
        record.listed.iter().take(begun).map(|attempt| {
            let name = self.providers.get(usize::from(attempt.provider_id));
            (name.map(|name| &**name), attempt)
        })
    }

    /// The name of the provider that served or was tried last; of a record without an attempt
    /// none, for its number is that of the first.
    pub fn provider(&self, record: &Settled) -> Option<&str> {
        if record.attempts == 0 {
            return None;
        }
        self.providers.get(usize::from(record.provider_id)).map(|name| &**name)
    }
}

/// Names of a record's token buckets, in its order.
pub const BUCKETS: [&str; 8] = [
    "input_fresh",
    "cache_read",
    "cache_write_5m",
    "cache_write_1h",
    "output",
    "audio_in",
    "audio_out",
    "reasoning_of_output",
];

/// Where the token counts come from.
pub fn provenance(record: &Settled) -> &'static str {
    record.provenance.name()
}

/// The record as one JSON object, without a line break.
pub fn json_line(record: &Settled, names: &Names) -> String {
    json(record, names).to_string()
}

/// The record as JSON.
pub fn json(record: &Settled, names: &Names) -> Value {
    let tokens: serde_json::Map<String, Value> = BUCKETS
        .iter()
        .zip(record.tokens)
        .map(|(bucket, count)| ((*bucket).to_owned(), count.into()))
        .collect();
    let windows = record.windows.iter().filter(|window| window.budget_id != 0);
    let windows: Vec<Value> = windows
        .map(|window| json!({"budget_id": window.budget_id, "window_id": window.window_id}))
        .collect();
    let flags: Vec<&str> =
        FLAGS.iter().filter(|(bit, _)| record.has(*bit)).map(|(_, name)| *name).collect();
    json!({
        "request_id": RequestId(record.request_id).to_string(),
        "trace_id": record.trace_id.map(trace),
        "key_id": record.key_id,
        "key": names.key(record),
        "project_id": record.project_id,
        "route": Route::name_of(record.route_id),
        "dialect": Dialect::name_of(record.dialect),
        "stream": record.has(flag::STREAM),
        "provider": names.provider(record),
        "model": record.model.as_str(),
        "served_model": record.served_model.as_str(),
        "opened_unix_ms": record.opened_unix_ms,
        "closed_unix_ms": record.closed_unix_ms,
        "duration_ms": record.duration_ms(),
        "status": record.status,
        "ending": record.ending.name(),
        "code": codes::name(record.error_code),
        "count": record.count,
        "attempts": record.attempts,
        "fallbacks": record.fallbacks,
        "attempts_listed": attempts(record, names),
        "tokens": tokens,
        "provenance": provenance(record),
        "priced": record.has(flag::PRICED),
        "flags": flags,
        "cost": PicoUsd(record.cost_picousd).to_string(),
        "cost_picousd": record.cost_picousd,
        "upstream_cost_picousd": record.upstream_cost_picousd,
        "mode": record.mode.name(),
        "markup_ppm": record.markup_ppm,
        "hold_picousd": record.hold_picousd,
        "overrun_picousd": record.overrun_picousd,
        "release": record.release.name(),
        "windows": windows,
        "request_bytes": record.request_bytes,
        "relayed_bytes": record.relayed_bytes,
        "overhead_us": record.overhead_us,
        "first_content_us": record.first_content_us,
        "upstream_us": record.upstream_us,
        "snapshot_version": record.snapshot_version,
        "price_version": record.price_version,
    })
}

/// A trace's id as `traceparent` spells it.
pub fn trace(id: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(id))
}

/// Names of the flags of a record.
const FLAGS: [(u32, &str); 14] = [
    (flag::TAIL_CUT, "tail_cut"),
    (flag::PRICED, "priced"),
    (flag::PRICE_FALLBACK, "price_fallback"),
    (flag::PRICE_HINT, "price_hint"),
    (flag::USAGE_AMBIGUOUS, "usage_ambiguous"),
    (flag::USAGE_UNREADABLE, "usage_unreadable"),
    (flag::TERMINATED, "terminated"),
    (flag::STREAM, "stream"),
    (flag::CHARGED_NOTED, "charged_noted"),
    (flag::CHARGED_HOLD, "charged_hold"),
    (flag::STRICT, "strict"),
    (flag::COUNTED, "counted"),
    (flag::OWN_CREDENTIAL, "own_credential"),
    (flag::USAGE_IMPOSSIBLE, "usage_impossible"),
];

/// The attempts a record lists.
fn attempts(record: &Settled, names: &Names) -> Vec<Value> {
    let listed = names.listed(record).map(|(provider, attempt)| {
        json!({
            "provider": provider,
            "result": attempt.class.name(),
            "possibly_billed": attempt.possibly_billed == 1,
        })
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ending::Provenance;
    use store::record::Head;
    use store::text::Text;

    #[test]
    fn a_line_is_one_object_with_names_and_exact_money() {
        let names = Names {
            keys: HashMap::from([(7, "agents".into())]),
            providers: vec!["first".into(), "second".into()],
        };
        let record = Settled {
            head: Head {
                key_id: 7,
                provider_id: 1,
                attempts: 1,
                tokens: [10, 0, 0, 0, 20, 0, 0, 5],
                provenance: Provenance::Reported,
                cost_picousd: 18_446_744_073_709_551_615,
                ..Head::default()
            },
            model: Text::from("a\"\nb"),
            trace_id: Some([0x0A; 16]),
            ..Settled::default()
        };
        let line = json_line(&record, &names);
        assert!(!line.contains('\n'));
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["key"], "agents");
        assert_eq!(read["provider"], "second");
        assert_eq!(read["trace_id"], "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a");
        assert_eq!(read["model"], "a\"\nb");
        assert_eq!(read["tokens"]["output"], 20);
        assert_eq!(read["tokens"]["reasoning_of_output"], 5);
        assert_eq!(read["cost_picousd"], 18_446_744_073_709_551_615_u64);
        assert_eq!(read["provenance"], "reported");
    }

    #[test]
    fn who_was_not_asked_is_not_named() {
        let names = Names { keys: HashMap::new(), providers: vec!["first".into()] };
        let named = |attempts: u8| {
            let head = Head { attempts, ..Head::default() };
            json(&Settled { head, ..Settled::default() }, &names)["provider"].clone()
        };
        assert_eq!((named(0), named(1)), (Value::Null, "first".into()));
    }

    #[test]
    fn a_number_without_a_name_is_null() {
        let names = Names { keys: HashMap::new(), providers: Vec::new() };
        let read: Value = serde_json::from_str(&json_line(&Settled::default(), &names)).unwrap();
        assert!(["key", "provider", "trace_id"].iter().all(|name| read[name].is_null()));
    }
}
