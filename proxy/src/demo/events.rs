//! The events of a stream as a person reads them: how many of which kind, and the words in them.
//! Both dialects of the demo; it knows no other.

use serde_json::Value;

/// A heartbeat of the chat dialect, as it stands in a stream.
pub(super) const BEAT: &str = ": keep-alive\n\n";

/// The names of a stream's events in their order, equal neighbours as one: `delta ×8`.
pub(super) fn names(body: &str) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for event in events(body) {
        let unnamed = if event.ends_with("[DONE]") { "[DONE]" } else { "chunk" };
        let name = event.lines().find_map(|line| line.strip_prefix("event: ")).unwrap_or(unnamed);
        match names.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => names.push((name, 1)),
        }
    }
    let shown = names.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        _ => format!("{name} ×{count}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// How many there are; comments are none.
pub(super) fn count(body: &str) -> usize {
    events(body).count()
}

/// How many of them have words in them.
pub(super) fn spoken(body: &str) -> usize {
    events(body).filter_map(words_of).count()
}

/// The words of a stream.
pub(super) fn words(body: &str) -> String {
    events(body).filter_map(words_of).collect()
}

/// The whole events of a stream, comments left out.
fn events(body: &str) -> impl Iterator<Item = &str> {
    let whole = body.rfind("\n\n").and_then(|end| body.get(..end)).unwrap_or_default();
    whole.split("\n\n").filter(|event| event.lines().any(|line| line.starts_with("data:")))
}

fn words_of(event: &str) -> Option<String> {
    let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
    let data: Value = serde_json::from_str(data).ok()?;
    let chat = data.pointer("/choices/0/delta/content");
    let words = chat.or_else(|| data.pointer("/delta/text"))?.as_str()?;
    (!words.is_empty()).then(|| words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_when_they_are_whole_and_comments_are_none() {
        let chat = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
                    : keep-alive\n\n\
                    data: {\"choices\":[{\"delta\":{\"content\":\"The \"}}]}\n\n\
                    data: {\"choices\":[{\"delta\":{\"content\":\"toll\"}}]}\n\n\
                    data: [DONE]\n\n\
                    data: {\"cho";
        assert_eq!((count(chat), spoken(chat)), (4, 2));
        assert_eq!(words(chat), "The toll");
        assert_eq!(names(chat), "chunk ×3, [DONE]");
        let messages = "event: ping\ndata: {\"type\":\"ping\"}\n\n\
                        event: content_block_delta\n\
                        data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"The\"}}\n\n";
        assert_eq!(words(messages), "The");
        assert_eq!(names(messages), "ping, content_block_delta");
        assert_eq!(count(""), 0);
    }
}
