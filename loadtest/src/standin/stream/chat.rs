//! Chat completions as chunks.

use serde_json::json;

use super::event::{Event, Kind};
use super::facts::Facts;
use super::shape::{Fault, Padded};
use crate::standin::script::Usage;
use crate::standin::tool;

/// All events of a stream that goes well.
pub(super) fn events(facts: &Facts<'_>) -> Vec<Event> {
    let mut events = Vec::with_capacity(facts.texts.len() + facts.arguments.len() + 8);
    if facts.stream.opening {
        let delta = r#"{"role":"assistant","content":"","refusal":null}"#;
        events.push(chunk(facts, Kind::Preamble, delta, "null"));
    }
    events.extend((0..facts.pings).map(|n| ping(n + 1)));
    for (n, text) in facts.texts.iter().enumerate() {
        if facts.ping_before(n) {
            events.push(ping(facts.pings + n));
        }
        let padding = if n == 0 { facts.padding(Padded::Content).unwrap_or("") } else { "" };
        let delta = format!(r#"{{"content":"{text}{padding}"}}"#);
        if facts.middle == Some(n) {
            let usage = facts.running();
            let event = chunk_with(facts, Kind::Content, &choice(&delta, "null"), &told(usage));
            events.push(event.with_usage(Some(usage), false));
        } else {
            events.push(chunk(facts, Kind::Content, &delta, "null"));
        }
    }
    for call in 0..facts.calls {
        let parts = (0..facts.arguments.len()).map(|n| tool(call, n, facts));
        events.extend(parts.map(|delta| chunk(facts, Kind::Content, &delta, "null")));
    }
    finish(facts, &mut events);
    if facts.stream.terminator {
        events.push(Event::data(Kind::Terminator, "[DONE]"));
    }
    events
}

fn finish(facts: &Facts<'_>, events: &mut Vec<Event>) {
    let reason = facts.stream.finish_reason.as_str();
    let giant = facts.padding(Padded::Finish);
    if !reason.is_empty() {
        let choice = choice("{}", &json!(reason).to_string());
        match giant {
            Some(padding) => {
                let rest = format!(r#","padding":"{padding}"{}"#, told(facts.usage));
                let event = chunk_with(facts, Kind::Closing, &choice, &rest);
                events.push(event.with_usage(Some(facts.usage), true));
            }
            None => events.push(chunk(facts, Kind::Closing, "{}", &json!(reason).to_string())),
        }
    }
    if giant.is_none() && facts.at_end(facts.asked) {
        let padding = facts
            .padding(Padded::Usage)
            .map_or_else(String::new, |padding| format!(r#","padding":"{padding}""#));
        let rest = format!("{padding}{}", told(facts.usage));
        let mut event = chunk_with(facts, Kind::Closing, "", &rest);
        event.hidden = true;
        events.push(event.with_usage(Some(facts.usage), true));
    }
}

/// An error in place of a chunk.
pub(super) fn error(fault: &Fault) -> Event {
    let error = json!({ "error": {
        "message": fault.message, "type": fault.kind, "param": null, "code": fault.code,
    }});
    Event::data(Kind::Closing, &error.to_string())
}

/// A comment.
fn ping(n: usize) -> Event {
    Event::text(Kind::Comment, format!(": ping - {n}\n\n"))
}

fn chunk(facts: &Facts<'_>, kind: Kind, delta: &str, reason: &str) -> Event {
    // who asked for usage is told on every chunk that there is none yet
    let rest = if facts.asked { r#","usage":null"# } else { "" };
    chunk_with(facts, kind, &choice(delta, reason), rest)
}

fn chunk_with(facts: &Facts<'_>, kind: Kind, choices: &str, rest: &str) -> Event {
    let model = &facts.model;
    Event::data(
        kind,
        &format!(
            "{{\"id\":\"chatcmpl-standin\",\"object\":\"chat.completion.chunk\",\
             \"created\":1700000000,\"model\":{model},\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_standin\",\"choices\":[{choices}]{rest}}}"
        ),
    )
}

fn choice(delta: &str, reason: &str) -> String {
    format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason}}}"#)
}

/// Usage as the last member.
fn told(usage: Usage) -> String {
    format!(
        ",\"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{},\
         \"prompt_tokens_details\":{{\"cached_tokens\":{},\"audio_tokens\":0}},\
         \"completion_tokens_details\":{{\"reasoning_tokens\":0,\"audio_tokens\":0}}}}",
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.prompt_tokens + usage.completion_tokens,
        usage.cached_tokens,
    )
}

/// The `n`th delta of a tool call, whose arguments are JSON once all are there.
fn tool(call: usize, n: usize, facts: &Facts<'_>) -> String {
    let part = json!(facts.arguments[n]);
    if n == 0 {
        let (id, name) = (json!(tool::id("call", call)), json!(facts.stream.tool));
        return format!(
            "{{\"tool_calls\":[{{\"index\":{call},\"id\":{id},\"type\":\"function\",\
             \"function\":{{\"name\":{name},\"arguments\":{part}}}}}]}}"
        );
    }
    format!(r#"{{"tool_calls":[{{"index":{call},"function":{{"arguments":{part}}}}}]}}"#)
}
