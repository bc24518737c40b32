//! Records and sums as lines of a table.

use crate::control::receipt::Names;
use crate::exchange::codes;
use crate::exchange::ids::{KeyId, RequestId};
use crate::exchange::money::{PICO_PER_USD, PicoUsd};
use crate::exchange::rfc3339;
use crate::exchange::time::UnixMs;
use store::record::Settled;

/// Columns of a list of records.
pub(super) const HEADINGS: [&str; 8] =
    ["closed", "key", "model", "ending", "in", "out", "cost", "request"];

/// A record in these columns.
pub(super) fn row(record: &Settled, names: &Names) -> Vec<String> {
    let [fresh, read, short, long, output, audio_in, audio_out, _] = record.tokens.map(u64::from);
    let key = names.key(record).map_or_else(|| KeyId(record.key_id).to_string(), str::to_owned);
    let mut ending = record.ending.name().to_owned();
    if let Some(code) = codes::name(record.error_code) {
        ending = format!("{ending} {code}");
    }
    if record.count > 1 {
        ending = format!("{ending} × {}", record.count);
    }
    vec![
        rfc3339::text(UnixMs(record.closed_unix_ms)),
        key,
        record.model.to_string(),
        ending,
        (fresh + read + short + long + audio_in).to_string(),
        (output + audio_out).to_string(),
        PicoUsd(record.cost_picousd).to_string(),
        RequestId(record.request_id).to_string(),
    ]
}

/// Rows as lines, each column as wide as its widest value.
pub(super) fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A sum of money, which can be beyond what one record can say.
pub(super) fn money(sum: u128) -> String {
    match u64::try_from(sum) {
        Ok(sum) => PicoUsd(sum).to_string(),
        Err(_) => format!("${}", sum / u128::from(PICO_PER_USD)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_value() {
        let rows = [vec!["a".to_owned(), "bb".to_owned()], vec!["µµµ".to_owned(), "c".to_owned()]];
        assert_eq!(table(&rows), ["a    bb", "µµµ  c"]);
        assert_eq!(money(1_500_000_000_000), "$1.50");
        assert_eq!(money(u128::from(u64::MAX) * 2), "$36893488");
    }
}
