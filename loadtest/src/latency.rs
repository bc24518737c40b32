//! Latencies of answers: one histogram while a run lasts, a few quantiles once it is over. Bound:
//! latencies above `LATENCY_US_MAX` count as that.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest latency told apart, in microseconds: ten minutes.
const LATENCY_US_MAX: u64 = 600_000_000;

/// Latencies of answers in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

impl Latency {
    /// The quantiles of `histogram`; zeros without one.
    pub(crate) fn of(histogram: Option<&Histogram<u64>>) -> Latency {
        histogram.filter(|histogram| !histogram.is_empty()).map_or_else(
            Latency::default,
            |latency| Latency {
                count: latency.len(),
                p50: latency.value_at_quantile(0.5),
                p90: latency.value_at_quantile(0.9),
                p99: latency.value_at_quantile(0.99),
                p999: latency.value_at_quantile(0.999),
                max: latency.max(),
            },
        )
    }
}

/// Three significant digits up to the longest latency.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LATENCY_US_MAX, 3)
        .unwrap_or_else(|error| unreachable!("constant bounds: {error}"))
}

/// Adds one answer.
pub(crate) fn record(histogram: &mut Histogram<u64>, latency: Duration) {
    histogram.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
}
