//! Choices an operator makes about money where both answers are defensible.

/// What happens to a new exchange that no slot can be had for, or while the ledger takes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused: nothing is served that is not recorded.
    #[default]
    Refuse,
    /// It is served without a record, and counted.
    ServeUnrecorded,
}

/// What an exchange costs whose process died after it had been sent upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrphanRule {
    /// What was noted so far; before anything was, the estimate of its input.
    #[default]
    ChargeNoted,
    /// Nothing.
    Release,
    /// The whole hold.
    ChargeHold,
}

impl WhenFull {
    /// The names in the configuration.
    pub const NAMES: [(&'static str, WhenFull); 2] =
        [("refuse", WhenFull::Refuse), ("serve_unrecorded", WhenFull::ServeUnrecorded)];
}

impl OrphanRule {
    /// The names in the configuration.
    pub const NAMES: [(&'static str, OrphanRule); 3] = [
        ("charge_noted", OrphanRule::ChargeNoted),
        ("release", OrphanRule::Release),
        ("charge_hold", OrphanRule::ChargeHold),
    ];
}

/// The name of a choice in the configuration.
pub fn name<T: Copy + PartialEq>(names: &[(&'static str, T)], choice: T) -> &'static str {
    names.iter().find(|(_, named)| *named == choice).map_or("", |(name, _)| name)
}
