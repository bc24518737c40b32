//! Which class comes next, and when. Pure: randomness from a seed, time as an argument.

use std::fmt;
use std::time::{Duration, Instant};

use super::class::{Class, Group};

/// Part of the traffic that is faulty.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Faults {
    /// Percent, spread over all classes but the good ones by their weights.
    Percent(f64),
    /// Percent by class.
    Named(Vec<(String, f64)>),
}

/// What is wrong with `--faults`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FaultsError(String);

impl fmt::Display for FaultsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "--faults: {}", self.0)
    }
}

impl std::error::Error for FaultsError {}

impl Faults {
    /// Reads `30` or `bad-key=5,cut-body=2.5`.
    pub(super) fn parse(text: &str) -> Result<Faults, FaultsError> {
        let percent = |text: &str| match text.parse::<f64>() {
            Ok(part) if (0.0..=100.0).contains(&part) => Ok(part),
            _ => Err(FaultsError(format!("{text:?} is not a percentage"))),
        };
        if !text.contains('=') {
            return percent(text).map(Faults::Percent);
        }
        let named = text.split(',').map(|part| match part.split_once('=') {
            Some((name, part)) => Ok((name.to_owned(), percent(part)?)),
            None => Err(FaultsError(format!("{part:?} is not class=percent"))),
        });
        named.collect::<Result<_, _>>().map(Faults::Named)
    }

    /// The part of each class, summing up to 1.
    pub(super) fn weights(&self, classes: &[Class]) -> Result<Vec<f64>, FaultsError> {
        let mut parts: Vec<f64> = vec![0.0; classes.len()];
        let mut faulty = 0.0;
        match self {
            Faults::Percent(percent) => {
                faulty = percent / 100.0;
                spread(&mut parts, classes, faulty, |group| group != Group::Good);
            }
            Faults::Named(named) => {
                for (name, percent) in named {
                    let at = classes
                        .iter()
                        .position(|class| class.name == *name)
                        .ok_or_else(|| FaultsError(format!("no class named {name:?}")))?;
                    parts[at] += percent / 100.0;
                    faulty += percent / 100.0;
                }
            }
        }
        if faulty > 1.0 {
            return Err(FaultsError("more than 100 percent".to_owned()));
        }
        spread(&mut parts, classes, 1.0 - faulty, |group| group == Group::Good);
        Ok(parts)
    }
}

fn spread(parts: &mut [f64], classes: &[Class], part: f64, of: impl Fn(Group) -> bool) {
    let sum: u32 = classes.iter().filter(|class| of(class.group)).map(|class| class.weight).sum();
    if sum == 0 {
        return;
    }
    for (own, class) in parts.iter_mut().zip(classes).filter(|(_, class)| of(class.group)) {
        *own += part * f64::from(class.weight) / f64::from(sum);
    }
}

/// The order of classes and, at a rate, their instants.
#[derive(Debug)]
pub(super) struct Schedule {
    /// Upper ends of the classes' parts.
    ends: Vec<f64>,
    random: u64,
    rate: Option<f64>,
    start: Instant,
    begun: u64,
}

impl Schedule {
    pub(super) fn new(weights: &[f64], seed: u64, rate: Option<f64>, start: Instant) -> Schedule {
        let mut sum = 0.0;
        let ends = weights
            .iter()
            .map(|part| {
                sum += part;
                sum
            })
            .collect();
        // the generator stands still at 0
        Schedule { ends, random: seed | 1 << 63, rate, start, begun: 0 }
    }

    /// How many requests have been given out.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// When the next request is due; `None` means at once.
    pub(super) fn due(&self) -> Option<Instant> {
        let rate = self.rate?;
        #[expect(clippy::cast_precision_loss, reason = "2^52 requests do not fit into a run")]
        let after = Duration::try_from_secs_f64(self.begun as f64 / rate).ok()?;
        Some(self.start + after)
    }

    /// The next class and the instant its latency counts from: when it was due, not when a
    /// connection was free, so that a stall is not left out of the figures.
    pub(super) fn next(&mut self, now: Instant) -> (usize, Instant) {
        let from = self.due().unwrap_or(now);
        self.begun += 1;
        let at = self.uniform();
        let class = self.ends.partition_point(|&end| end <= at).min(self.ends.len() - 1);
        (class, from)
    }

    /// xorshift64*: enough to mix traffic, and the same on every machine.
    fn uniform(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let bits = self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let part = bits as f64 / (1_u64 << 53) as f64;
        part
    }
}

#[cfg(test)]
mod tests {
    use super::{Faults, Schedule};
    use crate::clock;
    use crate::mix::class;

    #[test]
    fn parts_sum_up_and_are_kept() {
        let classes = class::built_in().unwrap();
        for text in ["0", "30", "100", "bad-key=5,up-cut-body=2.5"] {
            let weights = Faults::parse(text).unwrap().weights(&classes).unwrap();
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{text}");
            let mut schedule = Schedule::new(&weights, 1, None, clock::now());
            let mut counts = vec![0_u32; classes.len()];
            for _ in 0..200_000 {
                counts[schedule.next(clock::now()).0] += 1;
            }
            for (at, (count, weight)) in counts.iter().zip(&weights).enumerate() {
                let part = f64::from(*count) / 200_000.0;
                assert!((part - weight).abs() < 0.005, "{text} {}", classes[at].name);
                assert!(*weight > 0.0 || *count == 0, "{text} {}", classes[at].name);
            }
        }
    }

    #[test]
    fn wrong_parts_are_refused() {
        let classes = class::built_in().unwrap();
        for text in ["", "x", "101", "-1", "NaN", "bad-key=x", "bad-key=5,x"] {
            assert!(Faults::parse(text).is_err(), "{text}");
        }
        for text in ["nobody=5", "bad-key=60,up-cut-body=60"] {
            assert!(Faults::parse(text).unwrap().weights(&classes).is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_sets_the_instants_whatever_happens() {
        let start = clock::now();
        let mut schedule = Schedule::new(&[1.0], 1, Some(1000.0), start);
        let late = start + std::time::Duration::from_secs(5);
        for n in 0..10_u64 {
            assert_eq!(schedule.next(late).1, start + std::time::Duration::from_millis(n));
        }
    }
}
