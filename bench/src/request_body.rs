//! A chat body of about 2 KB as an agent sends it: a system text, three turns, two tools,
//! compact as the SDKs write it. Wording is our own; nothing is random.

/// The body.
pub const CHAT_2K: &str = concat!(
    r#"{"model":"gpt-5-mini","stream":false,"temperature":0.2,"max_completion_tokens":1024,"#,
    r#""messages":[{"role":"system","content":"You are a careful assistant for a small online "#,
    r#"shop. Answer briefly, in the language of the customer.\nNever promise a delivery date "#,
    r#"that a tool has not confirmed. If an order number is missing, ask for it first. Amounts "#,
    r#"are in euros and include VAT.\nWhen a customer is upset, say what happens next before "#,
    r#"you say why it happened."},{"role":"user","content":"Hello, my parcel was meant to come "#,
    r#"on Tuesday and it is Friday now. The order is A-20931. Where is it?"},"#,
    r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_7f3a91c2","type":"function","#,
    r#""function":{"name":"find_order","arguments":"{\"order\":\"A-20931\"}"}}]},"#,
    r#"{"role":"tool","tool_call_id":"call_7f3a91c2","content":"{\"status\":\"in_transit\","#,
    r#"\"carrier\":\"DHL\",\"last_scan\":\"2026-11-19T06:12:00Z\",\"place\":\"Köln\"}"},"#,
    r#"{"role":"assistant","content":"Your parcel is on its way: it was scanned in Köln "#,
    r#"yesterday at 6:12. It left two days late, I am sorry for that. Shall I ask the carrier "#,
    r#"for a firm date?"},{"role":"user","content":"Yes please, and refund the express fee."}],"#,
    r#""tools":[{"type":"function","function":{"name":"find_order","description":"Looks up one "#,
    r#"order and its last carrier scan.","parameters":{"type":"object","properties":{"order":"#,
    r#"{"type":"string","description":"Order number, a letter, a dash and five digits"}},"#,
    r#""required":["order"],"additionalProperties":false},"strict":true}},{"type":"function","#,
    r#""function":{"name":"refund","description":"Refunds a part of an order.","parameters":"#,
    r#"{"type":"object","properties":{"order":{"type":"string"},"amount_cents":{"type":"integer","#,
    r#""minimum":1,"maximum":50000},"reason":{"type":"string","enum":["late","broken","other"]}},"#,
    r#""required":["order","amount_cents","reason"],"additionalProperties":false},"strict":true}}],"#,
    r#""tool_choice":"auto","parallel_tool_calls":true,"user":"customer-5531"}"#,
);
