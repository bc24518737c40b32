//! Bodies of answers, built once per script. Pure; sizes are bounded by `BODY_BYTES_MAX` in
//! `compile`.

use serde_json::json;

use super::ask::Dialect;
use super::gzip;
use super::scenario::{Body, Completion, ErrorBody, Text};
use super::script::Usage;
use super::tool;

/// A body and the usage it reports.
pub(super) struct Built {
    pub(super) bytes: Vec<u8>,
    pub(super) usage: Option<Usage>,
}

/// What a body is built for.
pub(super) struct Wanted<'a> {
    pub(super) model: &'a str,
    pub(super) dialect: Dialect,
    /// The status it comes with.
    pub(super) status: u16,
    /// Bytes of a completion.
    pub(super) size: usize,
    /// Tool calls in it.
    pub(super) calls: usize,
}

/// Builds the body.
pub(super) fn build(body: &Body, wanted: &Wanted<'_>) -> Built {
    match body {
        Body::Completion(completion) if wanted.dialect == Dialect::CountTokens => {
            // the count is the answer and no usage of anything
            let count = json!({ "input_tokens": completion.prompt_tokens });
            Built { bytes: count.to_string().into_bytes(), usage: None }
        }
        Body::Completion(completion) => completion_body(completion, wanted),
        Body::Error(error) => error_body(error, wanted),
        Body::Text(text) => Built { bytes: text_bytes(text), usage: None },
        Body::Gzip(inner) => {
            let Built { bytes, usage } = build(inner, wanted);
            Built { bytes: gzip::whole(&bytes), usage }
        }
    }
}

/// The completion of `ok`, padded to `size` bytes.
pub(crate) fn usual(size: usize) -> Vec<u8> {
    let wanted = Wanted { model: "ok", dialect: Dialect::Chat, status: 200, size, calls: 0 };
    build(&Body::default(), &wanted).bytes
}

/// The bytes of a text.
pub(super) fn text_bytes(text: &Text) -> Vec<u8> {
    match text {
        Text::Plain(text) => text.clone().into_bytes(),
        Text::Repeated { repeat, times } => repeat.repeat(*times).into_bytes(),
    }
}

fn completion_body(completion: &Completion, wanted: &Wanted<'_>) -> Built {
    let usage = completion.usage.then_some(Usage {
        prompt_tokens: completion.prompt_tokens,
        completion_tokens: completion.completion_tokens,
        cached_tokens: completion.cached_tokens,
    });
    let model = json!(wanted.model).to_string();
    let (before, after) = match wanted.dialect {
        Dialect::Messages => around_text(completion, wanted.calls, &model, usage.as_ref()),
        Dialect::Chat | Dialect::CountTokens | Dialect::None => {
            around_content(completion, wanted.calls, &model, usage.as_ref())
        }
    };
    // words, not one letter repeated: what reads the content should meet ordinary text
    const WORDS: &[u8] = b"The toll is counted once and the road stays open. ";
    let pad = wanted.size.saturating_sub(before.len() + after.len());
    let mut bytes = before.into_bytes();
    bytes.extend(WORDS.iter().cycle().take(pad));
    bytes.extend_from_slice(after.as_bytes());
    Built { bytes, usage }
}

fn around_content(
    completion: &Completion,
    calls: usize,
    model: &str,
    usage: Option<&Usage>,
) -> (String, String) {
    let before = format!(
        "{{\"id\":\"chatcmpl-standin\",\"object\":\"chat.completion\",\"created\":1700000000,\
         \"model\":{model},\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\
         \"content\":\""
    );
    let usage = usage.map_or_else(String::new, |usage| {
        format!(
            ",\"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{},\
             \"prompt_tokens_details\":{{\"cached_tokens\":{},\"audio_tokens\":0}},\
             \"completion_tokens_details\":{{\"reasoning_tokens\":0,\"audio_tokens\":0}}}}",
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.prompt_tokens + usage.completion_tokens,
            usage.cached_tokens,
        )
    });
    let given = completion.input.as_deref();
    let call = |n| {
        json!({
            "id": tool::id("call", n),
            "type": "function",
            "function": { "name": completion.tool, "arguments": tool::whole(given) },
        })
    };
    let called: Vec<_> = (0..calls).map(call).collect();
    let called =
        if calls == 0 { String::new() } else { format!(",\"tool_calls\":{}", json!(called)) };
    let after = format!(
        "\",\"refusal\":null{called}}},\"logprobs\":null,\"finish_reason\":{}}}]{usage},\
         \"service_tier\":\"default\",\"system_fingerprint\":\"fp_standin\"{}}}",
        json!(completion.finish_reason),
        completion.members,
    );
    (before, after)
}

/// The same as a message.
fn around_text(
    completion: &Completion,
    calls: usize,
    model: &str,
    usage: Option<&Usage>,
) -> (String, String) {
    let before = format!(
        "{{\"id\":\"msg_standin\",\"type\":\"message\",\"role\":\"assistant\",\"model\":{model},\
         \"content\":[{{\"type\":\"text\",\"text\":\""
    );
    let usage = usage.map_or_else(String::new, |usage| {
        format!(
            ",\"usage\":{{\"input_tokens\":{},\"cache_creation_input_tokens\":0,\
             \"cache_read_input_tokens\":{},\"output_tokens\":{},\"service_tier\":\"standard\"}}",
            usage.prompt_tokens.saturating_sub(usage.cached_tokens),
            usage.cached_tokens,
            usage.completion_tokens,
        )
    });
    let call = |n| {
        let input = tool::whole(completion.input.as_deref());
        let (id, name) = (json!(tool::id("toolu", n)), json!(completion.tool));
        format!(r#",{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
    };
    let called: String = (0..calls).map(call).collect();
    let after = format!(
        "\"}}{called}],\"stop_reason\":{},\"stop_sequence\":null{usage}{}}}",
        json!(stop_reason(&completion.finish_reason)),
        completion.members,
    );
    (before, after)
}

/// A finish reason of chat in the words of messages.
pub(super) fn stop_reason(finish_reason: &str) -> &str {
    match finish_reason {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
}

fn error_body(error: &ErrorBody, wanted: &Wanted<'_>) -> Built {
    let usage = Usage { prompt_tokens: 512, completion_tokens: 8, cached_tokens: 0 };
    let messages = matches!(wanted.dialect, Dialect::Messages | Dialect::CountTokens);
    let mut body = if messages {
        json!({
            "type": "error",
            "error": { "type": error_type(wanted.status), "message": error.message },
            "request_id": "req_standin",
        })
    } else {
        json!({ "error": {
            "message": error.message, "type": error.kind, "param": null, "code": error.code,
        }})
    };
    if error.usage && messages {
        body["usage"] = json!({
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
        });
    } else if error.usage {
        body["usage"] = json!({
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        });
    }
    Built { bytes: body.to_string().into_bytes(), usage: error.usage.then_some(usage) }
}

/// The type that messages give an error of a status.
fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        504 => "timeout_error",
        200 | 503 | 529 => "overloaded_error",
        _ => "api_error",
    }
}
