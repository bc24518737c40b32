//! A settled record as one line of JSON: what `serve --print-records` prints until there is a
//! ledger. The fields are described in `docs/OPERATING.md`. No header, body or prompt is in it.

use crate::config::snapshot::Snapshot;
use crate::exchange::ids::RequestId;
use crate::exchange::keys::KeyTable;
use crate::exchange::money::PicoUsd;
use serde_json::{Value, json};
use std::collections::HashMap;
use store::record::{Settled, flag};

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

    /// The name of the key that pays.
    pub fn key(&self, record: &Settled) -> Option<&str> {
        self.keys.get(&record.key_id).map(|name| &**name)
    }

    /// The name of the provider that served.
    pub fn provider(&self, record: &Settled) -> Option<&str> {
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
    let tokens: serde_json::Map<String, Value> = BUCKETS
        .iter()
        .zip(record.tokens)
        .map(|(bucket, count)| ((*bucket).to_owned(), count.into()))
        .collect();
    json!({
        "request_id": RequestId(record.request_id).to_string(),
        "key_id": record.key_id,
        "key": names.key(record),
        "provider": names.provider(record),
        "model": record.model.as_str(),
        "served_model": record.served_model.as_str(),
        "opened_unix_ms": record.opened_unix_ms,
        "closed_unix_ms": record.closed_unix_ms,
        "status": record.status,
        "ending": record.ending.name(),
        "attempts": record.attempts,
        "tokens": tokens,
        "provenance": provenance(record),
        "priced": record.has(flag::PRICED),
        "cost": PicoUsd(record.cost_picousd).to_string(),
        "cost_picousd": record.cost_picousd,
        "upstream_cost_picousd": record.upstream_cost_picousd,
        "markup_ppm": record.markup_ppm,
        "overhead_us": record.overhead_us,
        "snapshot_version": record.snapshot_version,
        "price_version": record.price_version,
    })
    .to_string()
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
                tokens: [10, 0, 0, 0, 20, 0, 0, 5],
                provenance: Provenance::Reported,
                cost_picousd: 18_446_744_073_709_551_615,
                ..Head::default()
            },
            model: Text::from("a\"\nb"),
            ..Settled::default()
        };
        let line = json_line(&record, &names);
        assert!(!line.contains('\n'));
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["key"], "agents");
        assert_eq!(read["provider"], "second");
        assert_eq!(read["model"], "a\"\nb");
        assert_eq!(read["tokens"]["output"], 20);
        assert_eq!(read["tokens"]["reasoning_of_output"], 5);
        assert_eq!(read["cost_picousd"], 18_446_744_073_709_551_615_u64);
        assert_eq!(read["provenance"], "reported");
    }

    #[test]
    fn a_number_without_a_name_is_null() {
        let names = Names { keys: HashMap::new(), providers: Vec::new() };
        let read: Value = serde_json::from_str(&json_line(&Settled::default(), &names)).unwrap();
        assert!(read["key"].is_null() && read["provider"].is_null());
    }
}
