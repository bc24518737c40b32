//! Exceptions to the sizes, each with a number that may only fall.
//!
//! `tests/tidy-ratchet.toml` has a table for each rule (`[file]`, `[function]`, `[columns]`) and
//! one line an exception: `"path" = number`. The number is the measured one exactly: a value
//! above it fails, a value below it fails too until the file says the lower number. A number
//! that went up is seen in the diff of that file.

use std::collections::BTreeMap;

use crate::size::Measure;
use crate::source::Finding;

/// (rule, what) → number.
pub(crate) type Ratchet = BTreeMap<(String, String), usize>;

pub(crate) fn parse(text: &str) -> Result<Ratchet, String> {
    let mut ratchet = Ratchet::new();
    let mut rule = String::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let fault = || format!("line {}: expected [rule] or \"path\" = number", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            rule = name.to_owned();
            continue;
        }
        let (what, number) = line.split_once('=').ok_or_else(fault)?;
        let number = number.trim().parse().map_err(|_| fault())?;
        let what = what.trim().trim_matches('"').to_owned();
        if rule.is_empty() || ratchet.insert((rule.clone(), what), number).is_some() {
            return Err(fault());
        }
    }
    Ok(ratchet)
}

pub(crate) fn compare(measures: &[Measure], ratchet: &Ratchet) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut open = ratchet.clone();
    for measure in measures.iter().filter(|measure| measure.value > measure.limit) {
        let key = (measure.rule.to_owned(), measure.what.clone());
        let excepted = open.remove(&key);
        let Measure { rule, value, limit, .. } = measure;
        let message = match excepted {
            None => format!("{rule} of {value}, the limit is {limit}"),
            Some(number) if *value > number => {
                format!("{rule} of {value}, the ratchet stands at {number} and may only fall")
            }
            Some(number) if *value < number => {
                format!("{rule} of {value}: lower its ratchet from {number}")
            }
            Some(_) => continue,
        };
        findings.push(Finding { path: measure.path.clone(), line: measure.line, message });
    }
    for (rule, what) in open.into_keys() {
        let message = format!("[{rule}] \"{what}\" is within the limit or gone: remove the line");
        findings.push(Finding { path: "tests/tidy-ratchet.toml".to_owned(), line: 1, message });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(value: usize, ratchet: &str) -> Vec<String> {
        let measure = Measure {
            rule: "file",
            what: "a.rs".to_owned(),
            path: "a.rs".to_owned(),
            line: 1,
            value,
            limit: 400,
        };
        let ratchet = parse(ratchet).unwrap();
        compare(&[measure], &ratchet).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn without_an_exception_the_limit_holds() {
        assert!(verdict(400, "").is_empty());
        assert_eq!(verdict(401, ""), ["file of 401, the limit is 400"]);
    }

    #[test]
    fn an_exception_holds_exactly_and_may_only_fall() {
        let at_450 = "# why\n[file]\n\"a.rs\" = 450\n";
        assert!(verdict(450, at_450).is_empty());
        assert!(verdict(451, at_450)[0].contains("may only fall"));
        assert!(verdict(449, at_450)[0].contains("lower its ratchet from 450"));
        assert!(verdict(400, at_450)[0].contains("remove the line"));
    }

    #[test]
    fn an_exception_of_one_rule_is_none_of_another() {
        assert_eq!(verdict(450, "[function]\n\"a.rs\" = 450").len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in ["\"a.rs\" = 1", "[file]\na.rs", "[file]\na = x", "[file]\na = 1\na = 2"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
