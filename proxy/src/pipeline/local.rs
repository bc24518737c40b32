//! Routes that are answered here: health and the model list.

use super::body::{self, Rest};
use super::client::Client;
use super::held::Held;
use super::parse::Request;
use super::refuse::{self, Origin};
use super::{After, Unserved, authenticate, resolve, settle, tracing};
use crate::config::snapshot::Snapshot;
use crate::exchange::call::{Call, Dialect, Health, Route};
use crate::exchange::demand::Demand;
use crate::exchange::models::{AllowList, plain};
use crate::exchange::refusal::Refusal;
use crate::govern::Passing;
use crate::govern::layer::Layer;
use crate::io::Io;
use crate::shard::Shard;
use codec::json::write_string;

/// Answers a request of such a route.
pub(super) async fn answer<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    held: &mut Held,
    request: &Request,
    origin: Origin,
) -> After {
    held.record.trace_id = tracing::id(&client.forward);
    match body_of(shard, client, held, request).await {
        Ok((status, body)) => {
            settle::let_go(shard, held);
            let mut out = shard.buffers.take();
            let write = |out: &mut Vec<u8>| out.extend_from_slice(body.as_bytes());
            refuse::write_json(&mut out, status, &origin, client.told(), write);
            refuse::send(shard, client, out, status, origin).await
        }
        Err(Unserved::Refused(refusal, rest)) => {
            settle::refused(shard, held, refusal, &origin);
            refuse::answer(shard, client, refusal, origin.with(rest)).await
        }
        Err(Unserved::ClientGone) => {
            settle::let_go(shard, held);
            After::Close
        }
    }
}

async fn body_of<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    held: &mut Held,
    request: &Request,
) -> Result<(u16, String), Unserved> {
    let snapshot = shard.snapshot.pin();
    match request.route {
        Route::Health(health) => {
            body::discard(shard, client, request).await?;
            Ok(self::health(health, shard.noticed.get()))
        }
        Route::Models => {
            let bundle = authenticate::identify(client, &shard.keys, held)?;
            body::discard(shard, client, request).await?;
            let call = Call { bundle: &bundle, demand: Demand::default() };
            let admitted = Passing::default().admit(&call, &mut held.passing, shard.now());
            admitted.map_err(|refusal| Unserved::Refused(refusal, Rest::Read))?;
            Ok((200, models(&snapshot, bundle.limits.models.as_ref(), request.anthropic)))
        }
        Route::ChatCompletions
        | Route::Messages
        | Route::CountTokens
        | Route::Responses
        | Route::Unserved(_) => Err(Unserved::Refused(Refusal::NotImplemented, Rest::Unread)),
    }
}

/// Whether the list has the name itself, or what it stands for on some route that is served.
fn may_use(snapshot: &Snapshot, list: &AllowList, name: &str) -> bool {
    list.allows(name)
        || [Dialect::Chat, Dialect::Messages].into_iter().any(|dialect| {
            resolve::find(snapshot, name, Some(dialect)).is_ok_and(|found| {
                found.left().any(|(_, candidate)| {
                    let provider = snapshot.provider(candidate.provider);
                    list.allows_at(&provider.name, found.sent(candidate))
                })
            })
        })
}

/// Every name that leads somewhere, once, in order. The patterns of providers have no end of names;
/// one with a client's suffix is asked for without it.
fn public_names(snapshot: &Snapshot) -> Vec<&str> {
    let served = snapshot.providers.iter().flat_map(|provider| &provider.serves);
    let exact = served.filter(|name| !name.ends_with('*') && plain(name) == &***name);
    let names = snapshot.models.keys().chain(snapshot.aliases.keys()).chain(exact);
    let mut names: Vec<&str> = names.map(|name| &**name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn health(health: Health, noticed: bool) -> (u16, String) {
    match health {
        Health::Ready if noticed => (503, "{\"status\":\"draining\"}".into()),
        Health::Live | Health::Ready | Health::Started => (200, "{\"status\":\"ok\"}".into()),
    }
}

/// Every public name that the key may use, in the shape the client knows.
fn models(snapshot: &Snapshot, allowed: Option<&AllowList>, anthropic: bool) -> String {
    let mut names = public_names(snapshot);
    names.retain(|name| allowed.is_none_or(|list| may_use(snapshot, list, name)));
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
