//! Sums of records, over all or by key, model or day.

use super::amounts::{money, shown};
use super::whole;
use crate::cli::table::table;
use crate::control::receipt::{BUCKETS, Names};
use crate::exchange::ids::KeyId;
use crate::exchange::rfc3339;
use crate::exchange::time::UnixMs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::balance::Total;
use store::ending::Ending;
use store::record::{Record, Settled};

/// What rows are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum By {
    /// The key that pays.
    Key,
    /// The model as it was sent.
    Model,
    /// The day, UTC, on which it closed.
    Day,
}

/// One row.
#[derive(Default)]
struct Row {
    total: Total,
    refused: u64,
    tokens: [u128; BUCKETS.len()],
}

/// Rows by name, and all of them together.
pub(super) struct Sums {
    by: Option<By>,
    rows: BTreeMap<String, Row>,
    all: Row,
}

impl Row {
    fn add(&mut self, record: &Record<'_>) {
        if record.head.ending == Ending::Refused {
            self.refused += u64::from(record.head.count);
            return;
        }
        self.total.add(&record.head);
        for (sum, count) in self.tokens.iter_mut().zip(record.head.tokens) {
            *sum += u128::from(count);
        }
    }

    fn json(&self) -> Value {
        let tokens: serde_json::Map<String, Value> = BUCKETS
            .iter()
            .zip(self.tokens)
            .map(|(bucket, count)| ((*bucket).to_owned(), whole(count)))
            .collect();
        json!({
            "exchanges": self.total.exchanges,
            "refusals": self.refused,
            "cost_picousd": whole(self.total.cost_picousd),
            "upstream_cost_picousd": whole(self.total.upstream_cost_picousd),
            "overrun_picousd": whole(self.total.overrun_picousd),
            "tokens": tokens,
        })
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let [fresh, read, short, long, output, audio_in, audio_out, _] = self.tokens;
        vec![
            name.to_owned(),
            self.total.exchanges.to_string(),
            self.refused.to_string(),
            (fresh + read + short + long + audio_in).to_string(),
            (output + audio_out).to_string(),
            money(self.total.upstream_cost_picousd),
            money(self.total.cost_picousd),
            money(self.total.overrun_picousd),
        ]
    }
}

impl Sums {
    pub(super) fn new(by: Option<By>) -> Sums {
        Sums { by, rows: BTreeMap::new(), all: Row::default() }
    }

    pub(super) fn add(&mut self, record: &Record<'_>, names: &Names) {
        self.all.add(record);
        let name = match self.by {
            None => return,
            Some(By::Key) => {
                let settled = Settled::from(record);
                let id = KeyId(settled.key_id);
                let name = names.key(&settled);
                name.map_or_else(|| id.to_string(), |name| format!("{name} ({id})"))
            }
            Some(By::Model) if record.tail.model_sent.is_empty() => "(none)".to_owned(),
            Some(By::Model) => shown(record.tail.model_sent),
            Some(By::Day) => {
                rfc3339::text(UnixMs(record.head.closed_unix_ms)).chars().take(10).collect()
            }
        };
        self.rows.entry(name).or_default().add(record);
    }

    pub(super) fn json(&self) -> Value {
        let mut value = self.all.json();
        if self.by.is_some() {
            let rows = self.rows.iter().map(|(name, row)| (name.clone(), row.json()));
            value["rows"] = Value::Object(rows.collect());
        }
        value
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let headings = ["", "exchanges", "refusals", "in", "out", "upstream", "cost", "overrun"];
        let mut rows = vec![headings.map(str::to_owned).to_vec()];
        rows.extend(self.rows.iter().map(|(name, row)| row.cells(name)));
        rows.push(self.all.cells("all"));
        table(&rows)
    }
}
