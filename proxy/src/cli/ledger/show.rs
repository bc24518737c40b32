//! One record in plain words: who, what, how much, and why.

use super::amounts::{money, readable, shown};
use crate::cli::counted::counted;
use crate::control::receipt::{self, BUCKETS, Names};
use crate::exchange::codes;
use crate::exchange::ids::{KeyId, RequestId};
use crate::exchange::money::PicoUsd;
use crate::exchange::rfc3339;
use crate::exchange::time::UnixMs;
use serde_json::Value;
use store::ending::{Ending, Mode, Provenance, Release};
use store::record::{Record, Settled, flag};

/// Columns of the words on the left.
const WORDS: usize = 12;

/// The record as JSON, with all of its tail.
pub(super) fn json(seq: u64, record: &Record<'_>, names: &Names) -> Value {
    let mut value = receipt::json(&Settled::from(record), names);
    value["seq"] = seq.into();
    value["model"] = record.tail.model_asked.into();
    value["served_model"] = record.tail.model_sent.into();
    value["session"] = record.tail.session.into();
    value["end_user"] = record.tail.end_user.into();
    value["metadata"] = String::from_utf8_lossy(record.tail.metadata).into();
    value["slab"] = record.head.slab.into();
    value["settle_sequence"] = record.head.settle_sequence.into();
    value
}

/// The record as lines, a word and its value each.
pub(super) fn rows(seq: u64, record: &Record<'_>, names: &Names) -> Vec<String> {
    let settled = Settled::from(record);
    let mut rows = vec![
        ("request", format!("{}, record {seq}", RequestId(settled.request_id))),
        ("key", key(&settled, names)),
        ("asked for", shown(record.tail.model_asked)),
        ("went to", went(record, &settled, names)),
        ("time", time(&settled)),
        ("ending", ending(&settled)),
        ("why", why(&settled)),
        ("tokens", tokens(&settled)),
        ("price", price(&settled)),
        ("cost", cost(&settled)),
        ("held", held(&settled)),
        ("attempts", attempts(&settled, names)),
    ];
    if let Some(id) = settled.trace_id {
        rows.push(("trace", receipt::trace(id)));
    }
    for (word, text) in [("session", record.tail.session), ("end user", record.tail.end_user)] {
        if !text.is_empty() {
            rows.push((word, readable(text)));
        }
    }
    if !record.tail.metadata.is_empty() {
        rows.push(("metadata", readable(&String::from_utf8_lossy(record.tail.metadata))));
    }
    let told = rows.iter().filter(|(_, value)| !value.is_empty());
    told.map(|(word, value)| format!("{word:<WORDS$}{value}")).collect()
}

fn key(record: &Settled, names: &Names) -> String {
    let id = KeyId(record.key_id);
    names.key(record).map_or_else(|| id.to_string(), |name| format!("{} ({id})", shown(name)))
}

fn went(record: &Record<'_>, settled: &Settled, names: &Names) -> String {
    if settled.attempts == 0 {
        return "nobody".to_owned();
    }
    let provider = names.provider(settled).map_or_else(|| "?".to_owned(), shown);
    format!("{provider}/{}", shown(record.tail.model_sent))
}

fn time(record: &Settled) -> String {
    let opened = rfc3339::text(UnixMs(record.opened_unix_ms));
    let took = record.duration_ms();
    let (own, upstream) = (record.overhead_us, record.upstream_us / 1_000);
    format!("{opened}, {took} ms in all, {upstream} ms of it the provider, {own} µs here")
}

fn ending(record: &Settled) -> String {
    let mut text = format!("{}, status {}", record.ending.name(), record.status);
    if let Some(code) = codes::name(record.error_code) {
        text = format!("{text}, refused with {code}");
    }
    if record.has(flag::COUNTED) {
        let refusals = counted(record.count.into(), "refusal");
        text = format!("{text}; stands for {refusals} of the same second");
    }
    text
}

/// What the owner of a key that was refused can do about it; nothing where the code says it all.
fn why(record: &Settled) -> String {
    let why = match codes::name(record.error_code).unwrap_or_default() {
        "budget_exceeded" | "insufficient_quota" => {
            "the budget: what is spent and this call's hold are above its limit; see `keys show`"
        }
        "budget_reserved" => "the budget: calls under way hold the rest of it for the moment",
        "price_unknown" => {
            "the key has a budget, and neither the price list nor [price] fallback knows the model"
        }
        "model_not_allowed" => "the key's list of models; `keys show` has it",
        "rate_limited" => "the key's requests a minute; `keys show` has the limit",
        "concurrency_limited" => "the key's calls in flight; `keys show` has the limit",
        "upstream_unavailable" if record.attempts == 0 => {
            "every candidate rests: its credential cools, or its breaker is open; the error log's \
             `upstream_resting` lines name them"
        }
        "key_revoked" | "key_expired" => "the key; `keys show` has its state",
        _ => "",
    };
    // Of an exchange that was opened it is what it did hold.
    match record.hold_picousd {
        hold if hold > 0 && record.ending == Ending::Refused => {
            format!("{why}; it would have held {}", PicoUsd(hold))
        }
        _ => why.to_owned(),
    }
}

fn tokens(record: &Settled) -> String {
    let counts = BUCKETS.iter().zip(record.tokens).filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(bucket, count)| format!("{count} {bucket}")).collect();
    let from = match record.provenance {
        Provenance::Reported => "as the provider reported",
        Provenance::Estimated => "estimated here: the provider did not say",
        Provenance::Missing => "nobody knows",
    };
    let doubt = if record.has(flag::USAGE_AMBIGUOUS) {
        "; two readings were possible, the cheaper one counts"
    } else if record.has(flag::USAGE_UNREADABLE) {
        "; the answer was coded in a way nobody here reads"
    } else if record.has(flag::USAGE_IMPOSSIBLE) {
        "; it said counts that cannot be"
    } else {
        ""
    };
    if counts.is_empty() {
        return format!("none{doubt}");
    }
    format!("{}, {from}{doubt}", counts.join(", "))
}

fn price(record: &Settled) -> String {
    if record.ending == Ending::Refused {
        return "none: nothing was sent".to_owned();
    }
    let list = record.price_version;
    let from = if record.has(flag::PRICE_HINT) {
        "the provider's own figure".to_owned()
    } else if record.has(flag::PRICE_FALLBACK) {
        "the configured fall-back price".to_owned()
    } else if record.has(flag::PRICED) {
        format!("price list {list}")
    } else {
        format!("none in price list {list}")
    };
    format!("{from}, configuration {}", record.snapshot_version)
}

fn cost(record: &Settled) -> String {
    let (cost, upstream) = (PicoUsd(record.cost_picousd), PicoUsd(record.upstream_cost_picousd));
    let why = match (record.release, record.mode) {
        (Release::Refused, _) => "it was refused before anything was sent".to_owned(),
        (Release::NeverSent, _) => "nothing was sent to a provider".to_owned(),
        (Release::NothingReceived, _) => "no attempt brought an answer".to_owned(),
        (Release::Rule, _) => "the rule for this ending charges nothing".to_owned(),
        (Release::PriceUnknown, _) => "the price is not known".to_owned(),
        (Release::None, Mode::None) => format!("the provider takes {upstream}, debited to nobody"),
        (Release::None, mode) => format!("{upstream} for the provider, {}", factor(mode, record)),
    };
    let orphan = match record.ending {
        Ending::Orphaned if record.has(flag::CHARGED_HOLD) => {
            "; the process died, and the whole hold is charged"
        }
        Ending::Orphaned if record.has(flag::CHARGED_NOTED) => {
            "; the process died, and what had been noted is charged"
        }
        Ending::Unknown => "; the process died with the answer under way: it may have arrived",
        _ => "",
    };
    format!("{cost}: {why}{orphan}")
}

fn factor(mode: Mode, record: &Settled) -> String {
    let (whole, parts) = (record.markup_ppm / 1_000_000, record.markup_ppm % 1_000_000);
    let factor = format!("{whole}.{parts:06}");
    let factor = factor.trim_end_matches('0').trim_end_matches('.');
    match mode {
        Mode::Managed => format!("times the markup {factor}"),
        Mode::PlatformFee => format!("of which a fee of {factor} is charged"),
        Mode::None => String::new(),
    }
}

fn held(record: &Settled) -> String {
    if record.ending == Ending::Refused {
        return "nothing: it was refused".to_owned();
    }
    if record.windows.iter().all(|window| window.budget_id == 0) && record.hold_picousd == 0 {
        return "nothing: no budget applied".to_owned();
    }
    let strict = if record.has(flag::STRICT) { ", strict: the whole cap" } else { "" };
    let over = match record.overrun_picousd {
        0 => String::new(),
        over => format!("; it cost {} more than that, booked in full", money(over.into())),
    };
    format!("{}{strict}{over}", PicoUsd(record.hold_picousd))
}

fn attempts(record: &Settled, names: &Names) -> String {
    let listed = receipt::json(record, names)["attempts_listed"].clone();
    let listed: Vec<String> = listed
        .as_array()
        .into_iter()
        .flatten()
        .map(|attempt| {
            let provider = attempt["provider"].as_str().unwrap_or("?");
            let result = attempt["result"].as_str().unwrap_or("?");
            let billed = attempt["possibly_billed"] == true && result != "success";
            let billed = if billed { " (possibly billed)" } else { "" };
            format!("{} {result}{billed}", shown(provider))
        })
        .collect();
    match listed.is_empty() {
        true => "none".to_owned(),
        false => format!("{}: {}", record.attempts, listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::record::Head;
    use store::tail::Tail;

    fn told(head: Head) -> String {
        let names = Names::told([(1, "me".into())], Vec::new());
        rows(7, &Record { head, tail: Tail::default() }, &names).join("\n")
    }

    #[test]
    fn a_refusal_says_why() {
        for (code, part) in [
            ("budget_exceeded", "above its limit"),
            ("insufficient_quota", "above its limit"),
            ("budget_reserved", "calls under way hold the rest"),
            ("price_unknown", "[price] fallback"),
            ("model_not_allowed", "list of models"),
            ("rate_limited", "requests a minute"),
            ("concurrency_limited", "calls in flight"),
            ("upstream_unavailable", "every candidate rests"),
            ("key_revoked", "its state"),
            ("key_expired", "its state"),
        ] {
            let error_code = codes::number(code);
            assert_ne!(error_code, 0, "{code}");
            let ending = Ending::Refused;
            let said = told(Head { error_code, ending, key_id: 1, status: 402, ..Head::default() });
            let why = said.lines().find(|line| line.starts_with("why "));
            assert!(why.is_some_and(|why| why.contains(part)), "{code}: {said}");
            for part in
                ["me (key_1)", "held        nothing: it was refused", "none: nothing was sent"]
            {
                assert!(said.contains(part), "{part} in {said}");
            }
        }
    }

    #[test]
    fn a_budgets_refusal_says_what_would_have_been_held() {
        let refused = |code, hold_picousd| {
            let error_code = codes::number(code);
            told(Head { error_code, hold_picousd, ending: Ending::Refused, ..Head::default() })
        };
        for code in ["budget_exceeded", "budget_reserved"] {
            let said = refused(code, 156_680_000_000);
            assert!(said.contains("; it would have held $0.15668\n"), "{said}");
            assert!(said.contains("held        nothing: it was refused"), "{said}");
        }
        assert!(!refused("rate_limited", 0).contains("would have held"));
    }

    #[test]
    fn a_counted_refusal_is_in_the_number_it_stands_for() {
        for (count, part) in [(1, "for 1 refusal of"), (2, "for 2 refusals of")] {
            let flags = flag::COUNTED;
            let said = told(Head { count, flags, ending: Ending::Refused, ..Head::default() });
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn what_a_client_says_of_itself_is_readable_and_moves_no_cursor() {
        let tail = Tail {
            end_user: "{\"device_id\":\"d\"}\u{1b}[2J",
            metadata: br#"{"user_id":"{\"device_id\":\"d\"}"}"#,
            ..Tail::default()
        };
        let names = Names::told([], Vec::new());
        let rows = rows(1, &Record { head: Head::default(), tail }, &names);
        let wanted = [
            r#"end user    {"device_id":"d"}\u{1b}[2J"#,
            r#"metadata    {"user_id":"{\"device_id\":\"d\"}"}"#,
        ];
        assert_eq!(rows[rows.len() - 2..], wanted);
    }

    #[test]
    fn what_was_served_has_nothing_to_explain() {
        let said = told(Head { ending: Ending::Succeeded, status: 200, ..Head::default() });
        assert!(!said.contains("why "), "{said}");
        assert!(said.contains("nothing: no budget applied"), "{said}");
    }
}
