//! Short text with a fixed place: a record must not point anywhere.

use std::fmt;

/// At most `N` bytes of UTF-8; longer text is cut at a character boundary and says so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    len: u16,
    cut: bool,
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Text<N> {
        Text { bytes: [0; N], len: 0, cut: false }
    }
}

impl<const N: usize> From<&str> for Text<N> {
    fn from(text: &str) -> Text<N> {
        let mut end = text.len().min(N).min(usize::from(u16::MAX));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().zip(text.as_bytes().iter().take(end)) {
            *to = *from;
        }
        // `end` is at most u16::MAX, see above.
        Text { bytes, len: u16::try_from(end).unwrap_or(u16::MAX), cut: end < text.len() }
    }
}

impl<const N: usize> Text<N> {
    /// The text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Whether something was cut off.
    pub fn is_cut(&self) -> bool {
        self.cut
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_character_and_says_so() {
        for (given, kept, cut) in [
            ("", "", false),
            ("abcd", "abcd", false),
            ("abcde", "abcd", true),
            ("abcé", "abc", true),
        ] {
            let text = Text::<4>::from(given);
            assert_eq!((text.as_str(), text.is_cut()), (kept, cut), "{given}");
        }
    }
}
