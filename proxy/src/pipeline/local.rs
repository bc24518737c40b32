//! Routes that are answered here: health and the model list.

use super::body::{self, Rest};
use super::client::Client;
use super::parse::Request;
use super::refuse::{self, Origin};
use super::{After, Unserved};
use crate::config::snapshot::Snapshot;
use crate::exchange::call::{Health, Route};
use crate::exchange::refusal::Refusal;
use crate::io::Io;
use crate::shard::Shard;
use codec::json::write_string;

/// Answers a request of such a route.
pub(super) async fn answer<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    request: &Request,
    origin: Origin,
) -> After {
    match body_of(shard, client, request).await {
        Ok((status, body)) => {
            let mut out = shard.buffers.take();
            let write = |out: &mut Vec<u8>| out.extend_from_slice(body.as_bytes());
            refuse::write_json(&mut out, status, &origin, client.caller_id(), write);
            refuse::send(shard, client, out, status, origin).await
        }
        Err(Unserved::Refused(refusal, rest)) => {
            refuse::answer(shard, client, refusal, origin.with(rest)).await
        }
        Err(Unserved::ClientGone) => After::Close,
    }
}

async fn body_of<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    request: &Request,
) -> Result<(u16, String), Unserved> {
    let snapshot = shard.snapshot.pin();
    match request.route {
        Route::Health(health) => {
            body::discard(shard, client, request).await?;
            Ok(self::health(health, shard.draining.get()))
        }
        Route::Models => {
            client.caller.identify(&shard.keys)?;
            body::discard(shard, client, request).await?;
            Ok((200, models(&snapshot, request.anthropic)))
        }
        Route::ChatCompletions | Route::Responses | Route::Unserved(_) => {
            Err(Unserved::Refused(Refusal::NotImplemented, Rest::Unread))
        }
    }
}

fn health(health: Health, draining: bool) -> (u16, String) {
    match health {
        Health::Ready if draining => (503, "{\"status\":\"draining\"}".into()),
        Health::Live | Health::Ready | Health::Started => (200, "{\"status\":\"ok\"}".into()),
    }
}

/// Every public name, in the shape the client knows.
fn models(snapshot: &Snapshot, anthropic: bool) -> String {
    let mut names: Vec<&str> = snapshot.models.keys().map(|name| &**name).collect();
    names.extend(snapshot.aliases.keys().map(|name| &**name));
    names.sort_unstable();
    names.dedup();
    let mut data = Vec::new();
    for name in &names {
        if !data.is_empty() {
            data.push(b',');
        }
        if anthropic {
            data.extend_from_slice(b"{\"type\":\"model\",\"id\":");
            write_string(name, &mut data);
            data.extend_from_slice(b",\"display_name\":");
            write_string(name, &mut data);
            data.extend_from_slice(b",\"created_at\":\"1970-01-01T00:00:00Z\"}");
        } else {
            data.extend_from_slice(b"{\"id\":");
            write_string(name, &mut data);
            data.extend_from_slice(
                b",\"object\":\"model\",\"created\":0,\"owned_by\":\"tollgate\"}",
            );
        }
    }
    let data = String::from_utf8(data).unwrap_or_default();
    if !anthropic {
        return format!("{{\"object\":\"list\",\"data\":[{data}]}}");
    }
    let quoted = |name: Option<&&str>| {
        let mut out = Vec::new();
        match name {
            Some(name) => write_string(name, &mut out),
            None => out.extend_from_slice(b"null"),
        }
        String::from_utf8(out).unwrap_or_default()
    };
    let (first, last) = (quoted(names.first()), quoted(names.last()));
    format!("{{\"data\":[{data}],\"has_more\":false,\"first_id\":{first},\"last_id\":{last}}}")
}
