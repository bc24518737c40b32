//! Reads one table of the file after its [`Shape`]: every value with its place, every fault
//! noted instead of thrown, so that one pass tells them all.
//!
//! It never repeats a value: a secret may stand where a number was meant.

use super::findings::{At, Findings, Text, quoted};
use super::quantity;
use super::shape::{SHAPES, Shape, State};
use crate::exchange::money::{NotMoney, PicoUsd};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What a rate is: whoever writes a float has a price list by the million in front of them.
const RATE: &str = "whole pico-dollars a token ($0.20 a million tokens is 200000)";

/// One table, its keys already checked.
pub(super) struct Reader<'a, 't> {
    shape: &'static Shape,
    table: &'a DeTable<'t>,
    /// Where the table begins.
    pub(super) at: usize,
}

impl<'a, 't> Reader<'a, 't> {
    /// Checks the names of a table's keys.
    pub(super) fn open(
        shape: &'static Shape,
        table: &'a DeTable<'t>,
        at: usize,
        findings: &mut Findings<'_>,
    ) -> Reader<'a, 't> {
        for name in table.keys() {
            let place = name.span().start;
            match shape.key(name.get_ref()).map(|key| key.state) {
                Some(State::Read) => {}
                Some(State::Later(what)) => {
                    let key = quoted(name.get_ref());
                    let label = shape.label;
                    findings.error(place, format!("{key} in {label}: {what} is not built yet"));
                }
                None if shape.keys.is_empty() => {}
                None => findings.error(place, unknown(shape, name.get_ref())),
            }
        }
        Reader { shape, table, at }
    }

    fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'t>>> {
        debug_assert!(
            self.shape.key(key).is_some_and(|k| k.state == State::Read),
            "{key} is read and not in the shape"
        );
        self.table.get(key)
    }

    /// A text, if it is there.
    pub(super) fn text(&self, key: &str, findings: &mut Findings<'_>) -> Option<Text> {
        let value = self.value(key)?;
        self.as_text(key, value, findings)
    }

    /// A text that must be there.
    pub(super) fn required(&self, key: &str, findings: &mut Findings<'_>) -> Option<Text> {
        if self.value(key).is_none() {
            self.missing(key, findings);
        }
        self.text(key, findings)
    }

    /// Notes that a key is missing.
    pub(super) fn missing(&self, key: &str, findings: &mut Findings<'_>) {
        findings.error(self.at, format!("{} lacks \"{key}\"", self.shape.label));
    }

    /// Where the value of a key stands; the table's place if it is not there.
    pub(super) fn place(&self, key: &str) -> usize {
        self.value(key).map_or(self.at, |value| value.span().start)
    }

    /// Whether a key is there at all.
    pub(super) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// A list of texts; empty when it is not there.
    pub(super) fn texts(&self, key: &str, findings: &mut Findings<'_>) -> Vec<Text> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.wrong(key, "a list of texts", value, findings);
            return Vec::new();
        };
        array.iter().filter_map(|item| self.as_text(key, item, findings)).collect()
    }

    /// A whole number.
    pub(super) fn integer(&self, key: &str, findings: &mut Findings<'_>) -> Option<At<i64>> {
        self.number(key, "a whole number", findings)
    }

    fn number(&self, key: &str, wanted: &str, findings: &mut Findings<'_>) -> Option<At<i64>> {
        let value = self.value(key)?;
        let at = value.span().start;
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong(key, wanted, value, findings);
            return None;
        };
        match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) => Some(At { value, at }),
            Err(_) => {
                findings.error(at, format!("\"{key}\" in {} is too large", self.shape.label));
                None
            }
        }
    }

    /// Whether a key says yes.
    pub(super) fn boolean(&self, key: &str, findings: &mut Findings<'_>) -> Option<At<bool>> {
        let value = self.value(key)?;
        let Some(yes) = value.get_ref().as_bool() else {
            self.wrong(key, "true or false", value, findings);
            return None;
        };
        Some(At { value: yes, at: value.span().start })
    }

    /// A limit of how many; 0 is one.
    pub(super) fn count(&self, key: &str, findings: &mut Findings<'_>) -> Option<At<u32>> {
        let count = self.integer(key, findings)?;
        let value = u32::try_from(count.value).ok();
        if value.is_none() {
            let label = self.shape.label;
            let what = format!("\"{key}\" in {label} must be from 0 to {}", u32::MAX);
            findings.error(count.at, what);
        }
        Some(At { value: value?, at: count.at })
    }

    /// Tokens: a whole number.
    pub(super) fn tokens(&self, key: &str, findings: &mut Findings<'_>) -> Option<At<u64>> {
        self.unsigned(key, "tokens", "a whole number", findings)
    }

    /// A rate of whole pico-dollars a token.
    pub(super) fn rate(&self, key: &str, findings: &mut Findings<'_>) -> Option<At<u64>> {
        self.unsigned(key, "pico-dollars a token", RATE, findings)
    }

    fn unsigned(
        &self,
        key: &str,
        of: &str,
        wanted: &str,
        findings: &mut Findings<'_>,
    ) -> Option<At<u64>> {
        let number = self.number(key, wanted, findings)?;
        let value = u64::try_from(number.value).ok();
        if value.is_none() {
            let label = self.shape.label;
            let what = format!("\"{key}\" in {label} is in whole {of}, at least 0");
            findings.error(number.at, what);
        }
        Some(At { value: value?, at: number.at })
    }

    /// Dollars as a decimal text: a float could not say which amount was meant.
    pub(super) fn money(&self, key: &str, findings: &mut Findings<'_>) -> Option<At<PicoUsd>> {
        let value = self.value(key)?;
        let at = value.span().start;
        let Some(text) = value.get_ref().as_str() else {
            self.wrong(key, "dollars as a text such as \"1.00\"", value, findings);
            return None;
        };
        let amount = PicoUsd::from_decimal(text);
        if let Err(why) = amount {
            let why = match why {
                NotMoney::Form => {
                    "must be dollars as a text such as \"1.00\", without sign or unit"
                }
                NotMoney::TooFine => "has more than the twelve decimals of a pico-dollar",
                NotMoney::TooMuch => "is more than any budget can be",
            };
            findings.error(at, format!("\"{key}\" in {} {why}", self.shape.label));
        }
        Some(At { value: amount.ok()?, at })
    }

    /// Bytes: a whole number, or a text such as `"32MiB"`.
    pub(super) fn size(&self, key: &str, findings: &mut Findings<'_>) -> Option<At<u64>> {
        let value = self.value(key)?;
        let at = value.span().start;
        let bytes = match value.get_ref() {
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok(),
            DeValue::String(text) => quantity::size(text),
            _ => None,
        };
        if bytes.is_none() {
            let what = "must be bytes as a whole number or a text such as \"32MiB\"";
            findings.error(at, format!("\"{key}\" in {} {what}", self.shape.label));
        }
        Some(At { value: bytes?, at })
    }

    /// A time span such as `"10s"`; a bare number is refused, since it has no unit.
    pub(super) fn duration(&self, key: &str, findings: &mut Findings<'_>) -> Option<At<Duration>> {
        let value = self.value(key)?;
        let at = value.span().start;
        let span = value.get_ref().as_str().and_then(quantity::duration);
        if span.is_none() {
            let what = "must be a whole number with a unit, such as \"500ms\", \"10s\" or \"2m\"";
            findings.error(at, format!("\"{key}\" in {} {what}", self.shape.label));
        }
        Some(At { value: span?, at })
    }

    /// A table inside this one.
    pub(super) fn table(
        &self,
        key: &str,
        shape: &'static Shape,
        findings: &mut Findings<'_>,
    ) -> Option<Reader<'a, 't>> {
        let value = self.value(key)?;
        let Some(table) = value.get_ref().as_table() else {
            self.wrong(key, &format!("the table {}", shape.label), value, findings);
            return None;
        };
        Some(Reader::open(shape, table, value.span().start, findings))
    }

    /// A list of tables inside this one; empty when it is not there.
    pub(super) fn tables(
        &self,
        key: &str,
        shape: &'static Shape,
        findings: &mut Findings<'_>,
    ) -> Vec<Reader<'a, 't>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.wrong(key, "a list of tables", value, findings);
            return Vec::new();
        };
        let mut readers = Vec::new();
        for item in array.iter() {
            match item.get_ref().as_table() {
                Some(table) => {
                    readers.push(Reader::open(shape, table, item.span().start, findings));
                }
                None => self.wrong(key, "a list of tables", item, findings),
            }
        }
        readers
    }

    /// Every key with its text, where any name is a key; in the order of the file.
    pub(super) fn entries(&self, findings: &mut Findings<'_>) -> Vec<(Text, Text)> {
        let mut entries = Vec::new();
        for (name, value) in self.table.iter() {
            let key = At { value: name.get_ref().as_ref().into(), at: name.span().start };
            if let Some(text) = self.as_text(name.get_ref(), value, findings) {
                entries.push((key, text));
            }
        }
        entries.sort_by_key(|(key, _)| key.at);
        entries
    }

    fn as_text(
        &self,
        key: &str,
        value: &Spanned<DeValue<'t>>,
        findings: &mut Findings<'_>,
    ) -> Option<Text> {
        let Some(text) = value.get_ref().as_str() else {
            self.wrong(key, "a text", value, findings);
            return None;
        };
        Some(At { value: text.into(), at: value.span().start })
    }

    fn wrong(
        &self,
        key: &str,
        wanted: &str,
        value: &Spanned<DeValue<'t>>,
        findings: &mut Findings<'_>,
    ) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let (key, label) = (quoted(key), self.shape.label);
        findings
            .error(value.span().start, format!("{key} in {label} must be {wanted}, not {found}"));
    }
}

fn unknown(shape: &Shape, name: &str) -> String {
    let key = quoted(name);
    let label = shape.label;
    let known = shape.keys.iter().map(|key| key.name);
    if let Some(near) = nearest(name, known.clone()) {
        return format!("unknown key {key} in {label}; did you mean \"{near}\"?");
    }
    if let Some(other) = SHAPES.iter().find(|other| other.key(name).is_some()) {
        return format!("unknown key {key} in {label}; it belongs to {}", other.label);
    }
    let known: Vec<&str> = known.collect();
    format!("unknown key {key} in {label}; its keys are {}", known.join(", "))
}

/// The known name that was probably meant: at most a third of its letters differ.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    /// A longer text is no misspelling of any name of ours, and distances cost its length.
    const NAME_BYTES_MAX: usize = 64;
    /// Names compared, so that many misspellings of many names stay quick.
    const KNOWN_MAX: usize = 1_000;
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    known
        .take(KNOWN_MAX)
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
