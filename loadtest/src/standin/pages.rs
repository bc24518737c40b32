//! The paths of the stand-in's port: calls under any prefix, and its own pages. Own
//! pages are built whole in memory; the tally's bound is theirs.

use std::rc::Rc;

use serde_json::json;

use super::ask::Dialect;
use super::context::Context;
use super::request::Request;
use super::script::{self, Action, Script};
use crate::wire::{Fault, number};

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// A call in this dialect.
    Call(Dialect),
    /// The list of models.
    Models,
    Own(Own),
    Unknown,
}

/// A page about the stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    Health,
    /// Entries from this number on.
    Tally(u64),
    Clear,
    Counts,
    Scenarios,
}

/// How the paths of calls end.
const CALLS: [(&[u8], Dialect); 3] = [
    (b"/chat/completions", Dialect::Chat),
    (b"/messages", Dialect::Messages),
    (b"/messages/count_tokens", Dialect::CountTokens),
];

/// Finds the page.
pub(super) fn page(method: &[u8], target: &[u8]) -> Page {
    let mut parts = target.splitn(2, |&byte| byte == b'?');
    let path = parts.next().unwrap_or_default();
    let query = parts.next().unwrap_or_default();
    if method == b"POST" {
        for (end, dialect) in CALLS {
            if path.ends_with(end) {
                return Page::Call(dialect);
            }
        }
    }
    if method == b"GET" && path.ends_with(b"/models") {
        return Page::Models;
    }
    let own = match (method, path) {
        (b"GET", b"/healthz") => Own::Health,
        (b"GET", b"/tally") => {
            Own::Tally(query.strip_prefix(b"from=").and_then(number).unwrap_or(0))
        }
        (b"DELETE", b"/tally") => Own::Clear,
        (b"GET", b"/counts") => Own::Counts,
        (b"GET", b"/scenarios") => Own::Scenarios,
        _ => return Page::Unknown,
    };
    Page::Own(own)
}

/// Answers a page of our own.
pub(super) fn answer(page: Own, context: &mut Context) -> Rc<Script> {
    match page {
        Own::Health => whole(200, "text/plain", b"ok\n"),
        Own::Tally(from) => {
            let mut lines = Vec::new();
            for entry in context.tally.entries(from) {
                line(&mut lines, &entry);
            }
            whole(200, "application/jsonl", &lines)
        }
        Own::Clear => {
            context.tally.clear();
            whole(200, "text/plain", b"cleared\n")
        }
        Own::Counts => {
            let mut lines = Vec::new();
            line(&mut lines, &context.tally.counts());
            whole(200, "application/json", &lines)
        }
        Own::Scenarios => {
            let mut lines = Vec::new();
            for (name, about) in context.library.list() {
                line(&mut lines, &json!({ "name": name, "about": about }));
            }
            whole(200, "application/jsonl", &lines)
        }
    }
}

/// The two names that every dialect's list has; which one is spoken tells the version field.
pub(super) fn models(request: &Request<'_>) -> Rc<Script> {
    const NAMES: [&str; 2] = ["ok", "claude-haiku-4-5"];
    let messages = request.head.field("anthropic-version").is_some();
    let model = |name: &str| {
        if messages {
            let made = "2023-11-14T22:13:20Z";
            return json!({
                "type": "model", "id": name, "display_name": name, "created_at": made,
            });
        }
        json!({ "id": name, "object": "model", "created": 1_700_000_000, "owned_by": "standin" })
    };
    let mut list = json!({ "data": NAMES.map(model) });
    if messages {
        (list["has_more"], list["first_id"], list["last_id"]) =
            (json!(false), json!(NAMES[0]), json!(NAMES[1]));
    } else {
        list["object"] = json!("list");
    }
    whole(200, "application/json", list.to_string().as_bytes())
}

/// 404 for a path that is none.
pub(super) fn not_found() -> Rc<Script> {
    whole(
        404,
        "application/json",
        b"{\"error\":{\"message\":\"no such path\",\"type\":\"standin\"}}",
    )
}

/// 400 for bytes that are no request.
pub(super) fn malformed(fault: Fault) -> Rc<Script> {
    let reason = match fault {
        Fault::Line => "a line of the head",
        Fault::Length => "the length",
        Fault::Coding => "the transfer coding",
        Fault::Chunk => "the chunks",
    };
    let body = format!("{{\"error\":{{\"message\":\"{reason}\",\"type\":\"standin_malformed\"}}}}");
    page_with(400, "application/json", "connection: close\r\n", body.as_bytes())
}

fn line(lines: &mut Vec<u8>, value: &impl serde::Serialize) {
    // into memory, of types that always serialise: nothing can fail
    if serde_json::to_writer(&mut *lines, value).is_ok() {
        lines.push(b'\n');
    }
}

fn whole(status: u16, content_type: &str, body: &[u8]) -> Rc<Script> {
    page_with(status, content_type, "", body)
}

fn page_with(status: u16, content_type: &str, fields: &str, body: &[u8]) -> Rc<Script> {
    let mut bytes = format!(
        "HTTP/1.1 {status} Standin\r\ncontent-type: {content_type}\r\n{fields}\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    let actions = vec![Action::Send(bytes.into())];
    Rc::new(Script {
        read: script::read(&actions, u64::MAX, None),
        actions,
        marks: Vec::new(),
        hidden: None,
        early: None,
        usage: None,
        split: None,
        pace_ms: 0,
    })
}
