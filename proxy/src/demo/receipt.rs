//! A toll receipt: what a call was and what it cost, as a box of 78 columns.

use crate::control::receipt::{Names, provenance};
use crate::exchange::codes;
use crate::exchange::ids::RequestId;
use crate::exchange::money::PicoUsd;
use store::ending::Provenance;
use store::record::{Settled, flag};

/// Columns of a box: an 80-column terminal with a column to spare on each side.
const WIDTH: usize = 78;

/// Columns of the words on the left.
const WORDS: usize = 10;

/// The lines of a receipt.
pub(super) fn lines(rows: &[(&str, String)]) -> Vec<String> {
    let rule = "─".repeat(WIDTH - 3 - TITLE.chars().count());
    let mut lines = vec![format!(" ┌{TITLE}{rule}┐")];
    for (word, value) in rows {
        let room = WIDTH - WORDS - 6;
        let value: String = value.chars().take(room).collect();
        lines.push(format!(" │ {word:<WORDS$} {value:<room$} │"));
    }
    lines.push(format!(" └{}┘", "─".repeat(WIDTH - 3)));
    lines
}

const TITLE: &str = "─ toll receipt ";

/// What a settled record says.
pub(super) fn rows(record: &Settled, names: &Names) -> Vec<(&'static str, String)> {
    let provider = names.provider(record).unwrap_or("?");
    let key = names.key(record).unwrap_or("?");
    let mut rows = vec![
        ("who", format!("{key} (key_{})", record.key_id)),
        ("model", model(record, provider)),
        ("tokens", tokens(record)),
        ("price", price(record)),
        ("attempts", attempts(record)),
    ];
    rows.extend(tried(record, names).map(|tried| ("tried", tried)));
    rows.extend([
        ("ending", ending(record)),
        ("request", RequestId(record.request_id).to_string()),
    ]);
    rows
}

fn attempts(record: &Settled) -> String {
    let fallbacks = match record.fallbacks {
        0 => String::new(),
        1 => ", 1 fallback".to_owned(),
        more => format!(", {more} fallbacks"),
    };
    format!("{}{fallbacks}, overhead {} µs", record.attempts, record.overhead_us)
}

/// What came of each attempt, if there were several.
fn tried(record: &Settled, names: &Names) -> Option<String> {
    let listed = names.listed(record).map(|(provider, attempt)| {
        format!("{}: {}", provider.unwrap_or("?"), attempt.class.name())
    });
    (record.attempts > 1).then(|| listed.collect::<Vec<_>>().join(", then "))
}

fn model(record: &Settled, provider: &str) -> String {
    if record.attempts == 0 {
        return format!("{} → nobody", record.model);
    }
    format!("{} → {provider}/{}", record.model, record.served_model)
}

fn ending(record: &Settled) -> String {
    let code = codes::name(record.error_code).map(|code| format!(" {code}")).unwrap_or_default();
    format!("{}{code}, status {}", record.ending.name(), record.status)
}

fn tokens(record: &Settled) -> String {
    if record.provenance == Provenance::Missing {
        return "none reported".to_owned();
    }
    let [fresh, cached, short, long, output, ..] = record.tokens;
    let mut text = format!("{fresh} in");
    for (count, what) in [(cached, "from cache"), (short, "cached 5 min"), (long, "cached 1 h")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    format!("{text}, {output} out ({})", provenance(record))
}

fn price(record: &Settled) -> String {
    let cost = PicoUsd(record.cost_picousd);
    if record.cost_picousd == 0 {
        return format!("{cost} (nothing to pay for)");
    }
    match (record.has(flag::PRICED), record.has(flag::PRICE_FALLBACK)) {
        (_, true) => format!("{cost} (the configured fall-back price)"),
        (true, false) => format!("{cost} (price list {})", record.price_version),
        (false, false) => format!("{cost} (no price known)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_as_wide_as_the_box() {
        let rows = [("who", "x".repeat(200)), ("tokens", "µ → 3".to_owned())];
        let lines = lines(&rows);
        assert!(lines.iter().all(|line| line.chars().count() == WIDTH), "{lines:#?}");
    }
}
