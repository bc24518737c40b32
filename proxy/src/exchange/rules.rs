//! Choices an operator makes about money where both answers are defensible.

use super::call::Dialect;
use super::outcome::Ending;

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

/// What becomes of an answer whose client has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientLeft {
    /// It is read on for a short while, for the usage at its end.
    #[default]
    DrainShort,
    /// It is read to its end.
    Drain,
    /// The upstream is left at once.
    Abort,
}

/// What a call costs whose upstream did not say what it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unreported {
    /// The estimate, flagged.
    #[default]
    Charge,
    /// Nothing.
    Release,
}

/// What the endings of a route mean for its answer and its money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndingRules {
    /// When the client has left.
    pub client_left: ClientLeft,
    /// How long a short drain reads on.
    pub drain_ms: u32,
    /// How much a short drain reads on.
    pub drain_bytes: u64,
    /// Of an answer that came to its end as it should.
    pub succeeded_unreported: Unreported,
    /// Of an answer that failed, was cut, or met a deadline, a stop or a client that stalled.
    pub broken_unreported: Unreported,
    /// Of an answer whose client had left.
    pub left_unreported: Unreported,
}

impl EndingRules {
    /// What an answer costs that did not say what it used, by how it ended.
    pub fn unreported(&self, ending: Ending) -> Unreported {
        match ending {
            Ending::Succeeded => self.succeeded_unreported,
            Ending::ClientLeft => self.left_unreported,
            _ => self.broken_unreported,
        }
    }
}

impl Default for EndingRules {
    fn default() -> EndingRules {
        EndingRules {
            client_left: ClientLeft::DrainShort,
            drain_ms: 5_000,
            drain_bytes: 256 * 1024,
            succeeded_unreported: Unreported::Charge,
            broken_unreported: Unreported::Charge,
            left_unreported: Unreported::Charge,
        }
    }
}

/// The rules of every route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endings {
    /// Of `POST /v1/chat/completions`, and of routes without rules of their own.
    pub chat_completions: EndingRules,
    /// Of `POST /v1/messages`.
    pub messages: EndingRules,
}

impl Endings {
    /// The rules of a dialect's route.
    pub fn of(&self, dialect: Dialect) -> &EndingRules {
        match dialect {
            Dialect::Messages => &self.messages,
            Dialect::Chat | Dialect::Responses | Dialect::Gemini => &self.chat_completions,
        }
    }
}

impl ClientLeft {
    /// The names in the configuration.
    pub const NAMES: [(&'static str, ClientLeft); 3] = [
        ("drain_short", ClientLeft::DrainShort),
        ("drain", ClientLeft::Drain),
        ("abort", ClientLeft::Abort),
    ];
}

impl Unreported {
    /// The names in the configuration.
    pub const NAMES: [(&'static str, Unreported); 2] =
        [("charge", Unreported::Charge), ("release", Unreported::Release)];
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules of which one releases, under its name in the configuration.
    fn releasing() -> [(&'static str, EndingRules); 3] {
        let rules = EndingRules::default();
        let free = Unreported::Release;
        [
            ("succeeded_unreported", EndingRules { succeeded_unreported: free, ..rules }),
            ("broken_unreported", EndingRules { broken_unreported: free, ..rules }),
            ("left_unreported", EndingRules { left_unreported: free, ..rules }),
        ]
    }

    #[test]
    fn the_page_about_endings_names_the_rule_of_each() {
        let page = include_str!("../../../docs/reference/endings.md");
        let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains("` | `"));
        let rows: Vec<Vec<&str>> =
            rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect();
        for ending in Ending::ALL {
            let name = format!("`{}`", ending.name());
            let row = rows.iter().find(|row| row.get(1) == Some(&&*name));
            let row = row.unwrap_or_else(|| panic!("no row about {name}"));
            assert_eq!(row[2], format!("`{ending:?}`"), "{name}");
            let rule =
                releasing().into_iter().find(|(_, r)| r.unreported(ending) != Unreported::Charge);
            let (rule, _) = rule.expect("every ending has a rule");
            // No answer has begun, so there is nothing that could have been left out.
            let wanted =
                if ending == Ending::Exhausted { "–".to_owned() } else { format!("`{rule}`") };
            assert_eq!(row[4], wanted, "{name}");
        }
    }
}
