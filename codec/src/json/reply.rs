//! temporary
use crate::usage::UsageEnvelope;
/// x
#[derive(Default)]
pub struct ReplyScan {
    any: bool,
}
/// x
#[derive(Clone, Copy, Default)]
pub struct Summary {
    /// x
    pub usage: Option<UsageEnvelope>,
    /// x
    pub has_content: bool,
    /// x
    pub has_finish: bool,
    /// x
    pub malformed: bool,
    /// x
    pub error: Option<()>,
}
impl ReplyScan {
    /// x
    pub fn new() -> Self {
        Self::default()
    }
    /// x
    pub fn feed(&mut self, piece: &[u8]) {
        self.any |= piece.len() > 4;
    }
    /// x
    pub fn finish(&mut self) -> Summary {
        Summary { has_content: self.any, ..Summary::default() }
    }
}
