//! Bodies of answers, built once per script. Pure; sizes are bounded by `BODY_BYTES_MAX` in
//! `compile`.

use serde_json::json;

use super::scenario::{Body, Completion, ErrorBody, Text};
use super::script::Usage;

/// A body and the usage it reports.
pub(super) struct Built {
    pub(super) bytes: Vec<u8>,
    pub(super) usage: Option<Usage>,
}

/// Builds the body of `size` bytes (completions only) for `model`.
pub(super) fn build(body: &Body, model: &str, size: usize) -> Built {
    match body {
        Body::Completion(completion) => completion_body(completion, model, size),
        Body::Error(error) => error_body(error),
        Body::Text(text) => Built { bytes: text_bytes(text), usage: None },
        Body::Gzip(inner) => {
            let Built { bytes, usage } = build(inner, model, size);
            Built { bytes: gzip_stored(&bytes), usage }
        }
    }
}

/// The completion of `ok`, padded to `size` bytes.
pub(crate) fn usual(size: usize) -> Vec<u8> {
    build(&Body::default(), "ok", size).bytes
}

/// The bytes of a text.
pub(super) fn text_bytes(text: &Text) -> Vec<u8> {
    match text {
        Text::Plain(text) => text.clone().into_bytes(),
        Text::Repeated { repeat, times } => repeat.repeat(*times).into_bytes(),
    }
}

fn completion_body(completion: &Completion, model: &str, size: usize) -> Built {
    let usage = completion.usage.then_some(Usage {
        prompt_tokens: completion.prompt_tokens,
        completion_tokens: completion.completion_tokens,
        cached_tokens: completion.cached_tokens,
    });
    let model = json!(model).to_string();
    let (before, after) = around_content(completion, &model, usage.as_ref());
    // words, not one letter repeated: what reads the content should meet ordinary text
    const WORDS: &[u8] = b"The toll is counted once and the road stays open. ";
    let pad = size.saturating_sub(before.len() + after.len());
    let mut bytes = before.into_bytes();
    bytes.extend(WORDS.iter().cycle().take(pad));
    bytes.extend_from_slice(after.as_bytes());
    Built { bytes, usage }
}

fn around_content(completion: &Completion, model: &str, usage: Option<&Usage>) -> (String, String) {
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
    let after = format!(
        "\",\"refusal\":null}},\"logprobs\":null,\"finish_reason\":{}}}]{usage},\
         \"service_tier\":\"default\",\"system_fingerprint\":\"fp_standin\"{}}}",
        json!(completion.finish_reason),
        completion.members,
    );
    (before, after)
}

fn error_body(error: &ErrorBody) -> Built {
    let mut body = json!({ "error": {
        "message": error.message, "type": error.kind, "param": null, "code": error.code,
    }});
    let usage = Usage { prompt_tokens: 512, completion_tokens: 8, cached_tokens: 0 };
    if error.usage {
        body["usage"] = json!({
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        });
    }
    Built { bytes: body.to_string().into_bytes(), usage: error.usage.then_some(usage) }
}

/// A valid gzip member of stored blocks: nothing here needs it smaller, only compressed in name.
fn gzip_stored(bytes: &[u8]) -> Vec<u8> {
    const BLOCK_MAX: usize = 0xffff;
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut rest = bytes;
    loop {
        let (block, after) = rest.split_at(rest.len().min(BLOCK_MAX));
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(after.is_empty()));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    out.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    out.extend_from_slice(&((bytes.len() & 0xffff_ffff) as u32).to_le_bytes());
    out
}
