//! Events of about 200 bytes as providers stream them, one of each dialect, each a few words of
//! an answer. Wording is our own; nothing is random.

/// A chat chunk.
pub const CHAT: &str = concat!(
    r#"data: {"id":"chatcmpl-standin","object":"chat.completion.chunk","created":1700000000,"#,
    r#""model":"gpt-5-mini","choices":[{"index":0,"delta":{"content":" the road"},"#,
    r#""logprobs":null,"finish_reason":null}]}"#,
    "\n\n",
);

/// A messages delta.
pub const MESSAGES: &str = concat!(
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"#,
    r#""delta":{"type":"text_delta","text":" the road stays open"}}"#,
    "\n\n",
);

/// A responses delta.
pub const RESPONSES: &str = concat!(
    "event: response.output_text.delta\n",
    r#"data: {"type":"response.output_text.delta","sequence_number":17,"item_id":"msg_standin","#,
    r#""output_index":0,"content_index":0,"delta":" the road","logprobs":[]}"#,
    "\n\n",
);

/// A gemini chunk, with the blanks and line ends that it has.
pub const GEMINI: &str = concat!(
    r#"data: {"candidates": [{"content": {"parts": [{"text": " the road stays open"}],"#,
    r#""role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 7,"#,
    r#""candidatesTokenCount": 4,"totalTokenCount": 11},"modelVersion": "gemini-3"}"#,
    "\r\n\r\n",
);
