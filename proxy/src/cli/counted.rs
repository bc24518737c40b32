//! A count and its noun, for people. Nouns are those with an `s` for many.

/// `1 call`, `2 calls`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    let many = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{many}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "call")), ["0 calls", "1 call", "2 calls"]);
    }
}
