//! What a run came to, for people and for scripts.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::book::{Book, Page};
use super::class::{Class, Group};
use super::drive::Settings;
use crate::latency::{Latency, histogram};

/// One class.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClassReport {
    pub(crate) name: String,
    pub(crate) group: &'static str,
    pub(crate) expected: Vec<String>,
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) unexpected: u64,
    pub(crate) examples: Vec<String>,
    pub(crate) latency_us: Latency,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) target: String,
    pub(crate) connections: usize,
    pub(crate) body_bytes: usize,
    pub(crate) model: String,
    /// Requests a second asked for; 0 for a closed loop.
    pub(crate) rate: f64,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) requests: u64,
    pub(crate) answered: u64,
    pub(crate) answered_per_second: f64,
    /// Connections made.
    pub(crate) connects: u64,
    /// Bytes that came when no answer was due.
    pub(crate) surplus_bytes: u64,
    pub(crate) unexpected: u64,
    /// Answers of the good classes.
    pub(crate) latency_us: Latency,
    pub(crate) classes: Vec<ClassReport>,
}

impl Report {
    pub(super) fn new(
        settings: &Settings,
        book: &Book,
        elapsed: Duration,
        requests: u64,
    ) -> Report {
        let used = || settings.classes.iter().zip(&book.pages).filter(|(_, page)| used(page));
        let answered = used().map(|(_, page)| answers(page)).sum();
        let mut good = histogram();
        for (class, page) in used() {
            if let (Group::Good, Some(latency)) = (class.group, &page.latency_us) {
                // histograms of the same bounds always add
                let _added = good.add(latency).is_ok();
            }
        }
        let surplus_unexpected = u64::from(book.surplus > 0);
        let seconds = elapsed.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let answered_per_second = answered as f64 / seconds.max(1e-9);
        Report {
            target: settings.target.to_string(),
            connections: settings.connections,
            body_bytes: settings.body_bytes,
            model: settings.model.clone(),
            rate: settings.rate.unwrap_or(0.0),
            seed: settings.seed,
            seconds,
            requests,
            answered,
            answered_per_second,
            connects: book.connections,
            surplus_bytes: book.surplus,
            unexpected: used().map(|(_, page)| page.unexpected).sum::<u64>() + surplus_unexpected,
            latency_us: Latency::of(Some(&good)),
            classes: used().map(|(class, page)| class_report(class, page)).collect(),
        }
    }
}

fn used(page: &Page) -> bool {
    !page.outcomes.is_empty()
}

fn answers(page: &Page) -> u64 {
    page.outcomes.iter().filter(|(outcome, _)| outcome.answered()).map(|(_, count)| count).sum()
}

fn class_report(class: &Class, page: &Page) -> ClassReport {
    ClassReport {
        name: class.name.clone(),
        group: class.group.name(),
        expected: class.expect.clone(),
        outcomes: page
            .outcomes
            .iter()
            .map(|(outcome, n)| (outcome.name().into_owned(), *n))
            .collect(),
        unexpected: page.unexpected,
        examples: page.examples.clone(),
        latency_us: Latency::of(page.latency_us.as_ref()),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{}: {} requests in {:.1} s, {} answers ({:.0}/s), {} connections ({} made), seed {}",
            self.target,
            self.requests,
            self.seconds,
            self.answered,
            self.answered_per_second,
            self.connections,
            self.connects,
            self.seed,
        )?;
        let latency = &self.latency_us;
        writeln!(
            out,
            "good answers, us: p50 {} p90 {} p99 {} p99.9 {} max {}",
            latency.p50, latency.p90, latency.p99, latency.p999, latency.max,
        )?;
        writeln!(out, "{:<22} {:<10} {:>10}  outcomes", "class", "group", "p99 us")?;
        for class in &self.classes {
            let outcomes: Vec<String> =
                class.outcomes.iter().map(|(name, count)| format!("{name}: {count}")).collect();
            let (name, group, p99) = (&class.name, class.group, class.latency_us.p99);
            writeln!(out, "{name:<22} {group:<10} {p99:>10}  {}", outcomes.join(", "))?;
            if class.unexpected > 0 {
                let (expected, examples) = (class.expected.join(" or "), class.examples.join(", "));
                let count = class.unexpected;
                writeln!(out, "    UNEXPECTED {count}, expected {expected}: {examples}")?;
            }
        }
        if self.surplus_bytes > 0 {
            writeln!(out, "UNEXPECTED {} bytes when no answer was due", self.surplus_bytes)?;
        }
        writeln!(out, "unexpected outcomes: {}", self.unexpected)
    }
}
