//! Time as a value. The shell reads the clock once per stage and hands it down; nothing in
//! `exchange` or `govern` can read one itself.

/// Nanoseconds of a monotonic clock with an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonoNs(pub u64);

impl MonoNs {
    /// Nanoseconds since `earlier`; zero when the order is reversed.
    pub fn since(self, earlier: MonoNs) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixMs(pub u64);

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// For intervals and deadlines.
    pub mono: MonoNs,
    /// For records and calendar windows.
    pub wall: UnixMs,
}
