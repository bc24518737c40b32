//! Messages as named events.

use serde_json::json;

use super::event::{Event, Kind};
use super::facts::Facts;
use super::shape::{Fault, Padded};
use crate::standin::completion::stop_reason;
use crate::standin::script::Usage;
use crate::standin::tool;

/// All events of a stream that goes well.
pub(super) fn events(facts: &Facts<'_>) -> Vec<Event> {
    let mut events = Vec::with_capacity(facts.texts.len() + facts.arguments.len() + 16);
    if facts.stream.opening {
        events.push(message_start(facts));
        if !facts.texts.is_empty() || facts.calls == 0 {
            let block = r#"{"type":"text","text":""}"#;
            events.push(block_start(0, block));
        }
        events.push(ping());
    }
    events.extend((0..facts.pings).map(|_| ping()));
    for (n, text) in facts.texts.iter().enumerate() {
        if facts.ping_before(n) {
            events.push(ping());
        }
        if facts.middle == Some(n) {
            let usage = facts.running();
            let told = format!(r#","usage":{}"#, told(usage));
            let event = message_delta("null", "", &told);
            events.push(event.with_usage(Some(usage), false));
        }
        let padding = if n == 0 { facts.padding(Padded::Content).unwrap_or("") } else { "" };
        events.push(delta(0, &format!(r#"{{"type":"text_delta","text":"{text}{padding}"}}"#)));
    }
    let mut block = 0;
    if facts.stream.opening && (!facts.texts.is_empty() || facts.calls == 0) {
        events.push(block_stop(0));
        block = 1;
    }
    for call in 0..facts.calls {
        tool_use(facts, call, block + call, &mut events);
    }
    if !facts.stream.finish_reason.is_empty() {
        events.push(finish(facts));
    }
    if facts.stream.terminator {
        let data = r#"{"type":"message_stop"}"#;
        events.push(Event::named(Kind::Terminator, "message_stop", data));
    }
    events
}

fn message_start(facts: &Facts<'_>) -> Event {
    let usage = facts.at_start().then_some(Usage { completion_tokens: 1, ..facts.usage });
    let told = usage.map_or_else(String::new, |usage| format!(r#","usage":{}"#, told(usage)));
    let data = format!(
        "{{\"type\":\"message_start\",\"message\":{{\"id\":\"msg_standin\",\"type\":\"message\",\
         \"role\":\"assistant\",\"model\":{},\"content\":[],\"stop_reason\":null,\
         \"stop_sequence\":null{told}}}}}",
        facts.model
    );
    Event::named(Kind::Preamble, "message_start", &data).with_usage(usage, false)
}

fn tool_use(facts: &Facts<'_>, call: usize, block: usize, events: &mut Vec<Event>) {
    let start = json!({
        "type": "tool_use", "id": tool::id("toolu", call), "name": facts.stream.tool, "input": {},
    });
    events.push(block_start(block, &start.to_string()));
    for part in &facts.arguments {
        let part = json!(part);
        let inner = format!(r#"{{"type":"input_json_delta","partial_json":{part}}}"#);
        events.push(delta(block, &inner));
    }
    events.push(block_stop(block));
}

fn finish(facts: &Facts<'_>) -> Event {
    let reason = json!(stop_reason(&facts.stream.finish_reason)).to_string();
    let giant = facts.padding(Padded::Finish).or_else(|| facts.padding(Padded::Usage));
    let usage = (giant.is_some() || facts.at_end(true)).then_some(facts.usage);
    let padding = giant.map_or_else(String::new, |padding| format!(r#","padding":"{padding}""#));
    let told = usage.map_or_else(String::new, |usage| format!(r#","usage":{}"#, told(usage)));
    message_delta(&reason, &padding, &told).with_usage(usage, true)
}

/// An error in place of an event.
pub(super) fn error(fault: &Fault) -> Event {
    let error = json!({
        "type": "error",
        "error": { "type": fault.kind, "message": fault.message },
        "request_id": "req_standin",
    });
    Event::named(Kind::Closing, "error", &error.to_string())
}

fn ping() -> Event {
    Event::named(Kind::Preamble, "ping", r#"{"type":"ping"}"#)
}

fn block_start(index: usize, block: &str) -> Event {
    let data =
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#);
    Event::named(Kind::Preamble, "content_block_start", &data)
}

fn delta(index: usize, inner: &str) -> Event {
    let data = format!(r#"{{"type":"content_block_delta","index":{index},"delta":{inner}}}"#);
    Event::named(Kind::Content, "content_block_delta", &data)
}

fn block_stop(index: usize) -> Event {
    let data = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
    Event::named(Kind::Closing, "content_block_stop", &data)
}

fn message_delta(reason: &str, padding: &str, told: &str) -> Event {
    let data = format!(
        "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":{reason},\
         \"stop_sequence\":null}}{padding}{told}}}"
    );
    Event::named(Kind::Closing, "message_delta", &data)
}

/// Usage in this dialect: what was read from a cache stands beside the rest of the input.
fn told(usage: Usage) -> String {
    format!(
        "{{\"input_tokens\":{},\"cache_creation_input_tokens\":0,\
         \"cache_read_input_tokens\":{},\"output_tokens\":{}}}",
        usage.prompt_tokens.saturating_sub(usage.cached_tokens),
        usage.cached_tokens,
        usage.completion_tokens,
    )
}
