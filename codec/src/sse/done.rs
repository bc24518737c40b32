//! `[DONE]`, recognised while it arrives.

const DONE: &[u8] = b"[DONE]";

/// How much of the data of an event is `[DONE]`, blanks around it allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// This many bytes of it.
    Match(usize),
    /// Something else.
    Not,
}

impl Done {
    pub(super) fn new() -> Self {
        Self::Match(0)
    }

    /// The data goes on.
    #[inline(always)]
    pub(super) fn push(&mut self, data: &[u8]) {
        for &byte in data {
            let Self::Match(seen) = *self else { return };
            let around = seen == 0 || seen == DONE.len();
            *self = match DONE.get(seen) {
                Some(&next) if next == byte => Self::Match(seen + 1),
                _ if around && matches!(byte, b' ' | b'\t') => Self::Match(seen),
                _ => Self::Not,
            };
        }
    }

    /// The data, so far, is it.
    pub(super) fn is_whole(self) -> bool {
        self == Self::Match(DONE.len())
    }
}
