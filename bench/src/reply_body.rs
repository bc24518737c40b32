//! A chat answer of about 800 bytes as providers write it: compact, one choice, a usage with
//! both details. Wording is our own; nothing is random.

/// The body.
pub const CHAT_ANSWER: &str = concat!(
    r#"{"id":"chatcmpl-standin","object":"chat.completion","created":1700000000,"#,
    r#""model":"gpt-5-mini","choices":[{"index":0,"message":{"role":"assistant","content":"#,
    r#""The toll is counted once and the road stays open. The toll is counted once and the "#,
    r#"road stays open. The toll is counted once and the road stays open. The toll is counted "#,
    r#"once and the road stays open. The toll is counted once and the road stays open. The toll "#,
    r#"is counted once and the road stays open. The toll is counted once and the road is open","#,
    r#""refusal":null},"logprobs":null,"finish_reason":"stop"}],"#,
    r#""usage":{"prompt_tokens":512,"completion_tokens":64,"total_tokens":576,"#,
    r#""prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"#,
    r#""completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}},"#,
    r#""service_tier":"default","system_fingerprint":"fp_standin"}"#,
);
