//! Records and sums as cells of a table.

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
    let key = names.key(record).map_or_else(|| KeyId(record.key_id).to_string(), shown);
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
        shown(record.model.as_str()),
        ending,
        (fresh + read + short + long + audio_in).to_string(),
        (output + audio_out).to_string(),
        PicoUsd(record.cost_picousd).to_string(),
        RequestId(record.request_id).to_string(),
    ]
}

/// Text of others: nothing in it moves the cursor, turns the line round or cannot be seen.
pub(super) fn shown(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).collect()
}

/// The same with quotes and backslashes as they stand: what clients say of themselves is JSON,
/// which has escapes of its own.
pub(super) fn readable(text: &str) -> String {
    let mut readable = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => readable.push(c),
            c => readable.extend(c.escape_debug()),
        }
    }
    readable
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
    fn readable_text_keeps_json_and_nothing_that_acts() {
        assert_eq!(readable("{\"a\":'\\\"'}"), "{\"a\":'\\\"'}");
        for c in ['\0', '\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2028}'] {
            let told = readable(&format!("a{c}b"));
            assert!(!told.contains(c) && told.starts_with("a\\"), "{told}");
        }
    }

    #[test]
    fn a_sum_beyond_one_record_is_told_in_dollars() {
        assert_eq!(shown("a\u{202e}b\u{200b}\u{2028}é"), "a\\u{202e}b\\u{200b}\\u{2028}é");
        assert_eq!(money(1_500_000_000_000), "$1.50");
        assert_eq!(money(u128::from(u64::MAX) * 2), "$36893488");
    }
}
