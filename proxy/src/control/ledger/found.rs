//! What opening a ledger found, and how an operator is told.

use std::fmt;
use store::reader::End;
use store::recover::Recovered;
use store::slab::SlabId;

/// What opening found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Records of the log that the state store did not know yet.
    pub replayed: u64,
    /// What followed the last whole frame.
    pub end: End,
    /// Slabs of processes that are gone, and what was done with them.
    pub recovered: Vec<(SlabId, Recovered)>,
    /// Slabs of processes that are still draining: they are collected.
    pub live: Vec<SlabId>,
    /// Slabs that were never recovered and are gone: the machine has lost its power, or their
    /// tmpfs went with the process, and with them what was in flight.
    pub lost: Vec<SlabId>,
    /// Slabs of this start that could not be locked into memory.
    pub unlocked: usize,
    /// The state store knows nothing of a log that has records: it was lost.
    pub fresh: bool,
}

// === impl Found ===

impl Found {
    /// What an operator should hear of, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.fresh {
            warnings.push(
                "the state store is new and the log is not: keys made before are unknown, and keys \
                 made or declared anew begin with their whole budgets"
                    .to_owned(),
            );
        }
        if !self.lost.is_empty() {
            warnings.push(format!(
                "slabs of earlier starts are gone with what was in flight: {}; see \"What survives \
                 what\" in docs/OPERATING.md",
                self.lost.len()
            ));
        }
        if self.unlocked > 0 {
            warnings.push(format!(
                "slabs not locked into memory: {}; raise the limit (LimitMEMLOCK=)",
                self.unlocked
            ));
        }
        warnings
    }
}

/// One line: what the start had to make good.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sum = Recovered::default();
        for (_, recovered) in &self.recovered {
            sum.settled += recovered.settled;
            sum.confirmed += recovered.confirmed;
            sum.charged += recovered.charged;
            sum.released += recovered.released;
        }
        let Recovered { settled, confirmed, charged, released, .. } = sum;
        write!(f, "replayed {}", self.replayed)?;
        if self.end == End::Torn {
            f.write_str(", an unfinished write behind them")?;
        }
        write!(f, "; slabs recovered {}", self.recovered.len())?;
        if settled + confirmed + charged + released > 0 {
            write!(
                f,
                ": {settled} settled, {confirmed} confirmed, {charged} orphans that were sent, \
                 {released} that were not"
            )?;
        }
        if !self.live.is_empty() {
            write!(f, "; of a process still running {}", self.live.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_says_what_it_made_good() {
        let id = SlabId { shard: 0, start: 1 };
        let clean = Found {
            replayed: 0,
            end: End::Clean,
            recovered: Vec::new(),
            live: Vec::new(),
            lost: Vec::new(),
            unlocked: 0,
            fresh: false,
        };
        assert_eq!(clean.to_string(), "replayed 0; slabs recovered 0");
        assert!(clean.warnings().is_empty());
        let one = Recovered { known: 9, settled: 1, confirmed: 2, charged: 3, released: 4 };
        let found = Found {
            replayed: 5,
            end: End::Torn,
            recovered: vec![(id, one), (id, one)],
            live: vec![id],
            lost: vec![id],
            unlocked: 2,
            fresh: true,
        };
        assert_eq!(
            found.to_string(),
            "replayed 5, an unfinished write behind them; slabs recovered 2: 2 settled, \
             4 confirmed, 6 orphans that were sent, 8 that were not; of a process still running 1"
        );
        assert_eq!(found.warnings().len(), 3);
    }
}
