//! The models a key may use.
//!
//! Letter case says nothing, and a client's suffix (`[1m]`) is taken off on both sides. A pattern
//! is a whole name or, with a `*` at its end, the beginning of one; it is met by the name as asked
//! for, the name as sent, or either behind its provider (`provider/model`). An empty list allows
//! nothing; no list at all allows everything. Bound: [`MODELS_MAX`] patterns.

/// Patterns of one key: more than any provider has models.
pub const MODELS_MAX: usize = 256;

/// What some clients add to a model's name to say how much context they want.
const CLIENT_SUFFIX: &str = "[1m]";

/// A list of patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList(Box<[Pattern]>);

/// More than [`MODELS_MAX`] patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyModels;

/// A name in lower case without suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    text: Box<str>,
    /// It is the beginning of a name.
    open: bool,
}

impl AllowList {
    /// A list of patterns as written.
    pub fn new<'a>(
        patterns: impl IntoIterator<Item = &'a str>,
    ) -> Result<AllowList, TooManyModels> {
        let list: Box<[Pattern]> =
            patterns.into_iter().take(MODELS_MAX + 1).map(Pattern::new).collect();
        if list.len() > MODELS_MAX { Err(TooManyModels) } else { Ok(AllowList(list)) }
    }

    /// The patterns as they are compared: in lower case, without a client's suffix.
    pub fn patterns(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|pattern| {
            let end = if pattern.open { "*" } else { "" };
            format!("{}{end}", pattern.text)
        })
    }

    /// Whether a bare name is allowed.
    pub fn allows(&self, name: &str) -> bool {
        let name = plain(name).as_bytes();
        self.0.iter().any(|pattern| fits(pattern.text.as_bytes(), pattern.open, name))
    }

    /// Whether a model is allowed, by its own name or behind its provider.
    pub fn allows_at(&self, provider: &str, model: &str) -> bool {
        let (provider, model) = (provider.as_bytes(), plain(model).as_bytes());
        self.0.iter().any(|Pattern { text, open }| {
            let text = text.as_bytes();
            fits(text, *open, model)
                || match text.split_at_checked(provider.len()) {
                    // The pattern ends within the provider's name.
                    None => *open && fits(text, true, provider),
                    Some((before, b"")) => *open && before.eq_ignore_ascii_case(provider),
                    Some((before, behind)) => {
                        before.eq_ignore_ascii_case(provider)
                            && behind
                                .strip_prefix(b"/")
                                .is_some_and(|rest| fits(rest, *open, model))
                    }
                }
        })
    }
}

impl Pattern {
    fn new(written: &str) -> Pattern {
        let written = written.trim();
        let (text, open) = match written.strip_suffix('*') {
            Some(beginning) => (beginning, true),
            None => (plain(written), false),
        };
        Pattern { text: text.to_ascii_lowercase().into(), open }
    }
}

/// Whether a pattern's text is the name, or its beginning where it is open.
fn fits(text: &[u8], open: bool, name: &[u8]) -> bool {
    let Some((begin, rest)) = name.split_at_checked(text.len()) else { return false };
    (open || rest.is_empty()) && begin.eq_ignore_ascii_case(text)
}

/// A name without the client's suffix.
pub fn plain(name: &str) -> &str {
    let Some(at) = name.len().checked_sub(CLIENT_SUFFIX.len()) else { return name };
    match name.split_at_checked(at) {
        Some((stem, suffix)) if suffix.eq_ignore_ascii_case(CLIENT_SUFFIX) => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_against_names() {
        for (patterns, provider, model, allowed) in [
            (&["gpt-4o"][..], "openai", "gpt-4o", true),
            (&["GPT-4o"], "openai", "gpt-4O", true),
            (&["gpt-4o"], "openai", "gpt-4o-mini", false),
            (&["gpt-4o*"], "openai", "gpt-4o-mini", true),
            (&["gpt-4o-mini"], "openai", "gpt-4o", false),
            (&["openai/gpt-4o"], "openai", "gpt-4o", true),
            (&["azure/gpt-4o"], "openai", "gpt-4o", false),
            (&["OpenAI/*"], "openai", "anything", true),
            (&["openai/*"], "openai2", "anything", false),
            (&["open*"], "openai", "anything", true),
            (&["openai*"], "openai", "anything", true),
            (&["openai"], "openai", "anything", false),
            (&["openaix*"], "openai", "anything", false),
            (&["openai/a*"], "OpenAI", "Anything", true),
            (&["openai/b*"], "openai", "anything", false),
            (&["*"], "p", "", true),
            (&["a", "b"], "p", "b", true),
            (&[], "p", "b", false),
            (&["claude-x"], "anthropic", "claude-x[1m]", true),
            (&["claude-x[1M]"], "anthropic", "claude-x", true),
            (&["claude-x[1m]"], "anthropic", "claude-x[1M]", true),
            (&["claude-x"], "anthropic", "claude-x[2m]", false),
            (&["[1m]"], "p", "", true),
            (&[" gpt-4o "], "openai", "gpt-4o", true),
            (&["ß"], "p", "ß", true),
            (&["x"], "p", "é[1m", false),
        ] {
            let list = AllowList::new(patterns.iter().copied()).unwrap();
            assert_eq!(list.allows_at(provider, model), allowed, "{patterns:?} {provider}/{model}");
        }
    }

    #[test]
    fn written_down_and_read_again_it_is_the_same_list() {
        let list = AllowList::new(["GPT-4o*", " Claude-x[1M] ", "p/*", "*"]).unwrap();
        let written: Vec<String> = list.patterns().collect();
        assert_eq!(written, ["gpt-4o*", "claude-x", "p/*", "*"]);
        assert_eq!(AllowList::new(written.iter().map(String::as_str)), Ok(list));
    }

    #[test]
    fn a_bare_name_is_met_by_bare_patterns_and_as_it_is_written() {
        let list = AllowList::new(["fast", "openai/gpt-4o"]).unwrap();
        assert!(list.allows("FAST") && list.allows("openai/gpt-4o"));
        assert!(!list.allows("gpt-4o"), "whose it is is not known yet");
    }

    #[test]
    fn a_list_has_a_bound() {
        assert!(AllowList::new(std::iter::repeat_n("m", MODELS_MAX)).is_ok());
        assert_eq!(AllowList::new(std::iter::repeat("m")), Err(TooManyModels));
    }
}
