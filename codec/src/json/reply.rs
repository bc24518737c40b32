//! Stands in for the reply scan until that is merged: keeps the answer and looks for names in it.
use crate::usage::{Provenance, UsageEnvelope};
/// What passed.
#[derive(Default)]
pub struct ReplyScan {
    seen: Vec<u8>,
}
/// What was found.
#[derive(Clone, Copy, Default)]
pub struct Summary {
    /// Counts.
    pub usage: Option<UsageEnvelope>,
    /// Something was said.
    pub has_content: bool,
    /// It was said to be over.
    pub has_finish: bool,
    /// It is no JSON.
    pub malformed: bool,
    /// It is an error.
    pub error: Option<()>,
}
impl ReplyScan {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// The next bytes.
    pub fn feed(&mut self, piece: &[u8]) {
        self.seen.extend_from_slice(piece);
    }
    /// What was found.
    pub fn finish(&mut self) -> Summary {
        let text = String::from_utf8_lossy(&self.seen);
        let count = |name: &str| {
            let at = text.find(name)? + name.len();
            let digits: String = text.get(at..)?.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        let usage = count("\"prompt_tokens\":").map(|input_fresh| UsageEnvelope {
            input_fresh,
            output: count("\"completion_tokens\":").unwrap_or_default(),
            provenance: Provenance::Reported,
            ..UsageEnvelope::default()
        });
        Summary {
            usage,
            has_content: text.contains("\"content\":\"") && !text.contains("\"content\":\"\""),
            has_finish: text.contains("\"finish_reason\":\""),
            malformed: !text.trim_start().starts_with('{'),
            error: text.contains("\"error\":").then_some(()),
        }
    }
}
