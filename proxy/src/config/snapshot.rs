//! The compiled configuration: immutable, indexed, versioned. What a shard reads.

use crate::exchange::breaker::{Breaker, BreakerRules, CredentialHealth};
use crate::exchange::call::Dialect;
use crate::exchange::ids::{CredentialIx, ProviderId};
use crate::exchange::plan::Choices;
use crate::exchange::price::{Mode, MoneyTerms, PriceList};
use crate::exchange::retry::RetryRules;
use crate::exchange::rules::{Endings, WhenFull};
use crate::io::tls::ClientTls;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Published whole, validated whole, never mutated.
#[derive(Debug)]
pub struct Snapshot {
    /// Rises with every published configuration.
    pub version: u64,
    /// In the order of the file.
    pub providers: Box<[Provider]>,
    /// Public model name → its candidates.
    pub models: HashMap<Box<str>, Choices>,
    /// Other spellings of a public model name, or of `provider/model`.
    pub aliases: HashMap<Box<str>, Box<str>>,
    /// What tokens cost.
    pub prices: PriceList,
    /// How money is held and priced.
    pub terms: MoneyTerms,
    /// What happens to new exchanges that cannot be recorded.
    pub when_full: WhenFull,
    /// Every deadline, named.
    pub deadlines: Deadlines,
    /// Every configurable bound.
    pub bounds: Bounds,
    /// When a candidate is tried again.
    pub retry: RetryRules,
    /// When a host or a credential rests.
    pub breaker: BreakerRules,
    /// What endings mean for an answer and its money.
    pub endings: Endings,
}

/// Somebody who serves models.
#[derive(Debug)]
pub struct Provider {
    /// Its name in the configuration; the part before the slash of an explicit model.
    pub name: Box<str>,
    /// The dialect and the credential's header.
    pub kind: ProviderKind,
    /// What goes into `Host`.
    pub authority: Box<str>,
    /// Where to connect: a name for the resolver, or an address.
    pub host: Host,
    /// TCP port.
    pub port: u16,
    /// How it is called over TLS; none if it is called plainly.
    pub tls: Option<Arc<ClientTls>>,
    /// The path of `base_url`, without a trailing slash.
    pub base_path: Box<str>,
    /// At least one.
    pub credentials: Box<[Credential]>,
    /// Names of models it serves when none is configured: exact, or ending in `*`.
    pub serves: Box<[Box<str>]>,
    /// Who pays it, and what a key pays for that.
    pub mode: Mode,
    /// How the host does that it is on; shared with others on the same host and port.
    pub breaker: Arc<Breaker>,
    /// The candidates of a name that is not configured: one a credential, sent as it was asked
    /// for.
    pub choices: Choices,
}

/// Where a provider lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Resolved off the shards.
    Name(Box<str>),
    /// As written in the URL.
    Address(SocketAddr),
}

/// What a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// `Authorization: Bearer`, base URL with `/v1`.
    OpenAi,
    /// `x-api-key`, base URL without `/v1`.
    Anthropic,
}

impl ProviderKind {
    /// The dialect it takes as it comes; others would have to be translated.
    pub fn dialect(self) -> Dialect {
        match self {
            ProviderKind::OpenAi => Dialect::Chat,
            ProviderKind::Anthropic => Dialect::Messages,
        }
    }
}

/// A provider's credential: usable, never printable.
pub struct Credential {
    /// For people.
    pub name: Box<str>,
    /// The secret.
    pub secret: Secret,
    /// Its share of the provider's calls.
    pub weight: u32,
    /// How it does.
    pub health: Arc<CredentialHealth>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Text that must not be shown.
pub struct Secret(Box<str>);

impl Secret {
    /// Takes charge of a secret.
    pub fn new(text: &str) -> Secret {
        Secret(text.into())
    }

    /// For the one place that writes it into an upstream request's head.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Every deadline of an exchange (DESIGN §6); each has its own name and none is a total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// TCP connection to an upstream.
    pub connect: Duration,
    /// A handshake, with an upstream or a client.
    pub tls: Duration,
    /// From the request's last byte to the answer's first.
    pub first_byte: Duration,
    /// Between two reads of an answer.
    pub between_bytes: Duration,
    /// A request head, from its first byte to its last.
    pub header: Duration,
    /// Between two reads of a request body.
    pub body: Duration,
    /// A keep-alive connection without a byte; longer than any heartbeat.
    pub client_idle: Duration,
    /// A client that has ended its side and been sent nothing: longer than most answers take to
    /// begin, shorter than a place in line is worth to one that is gone.
    pub half_closed: Duration,
    /// A peer that takes no bytes.
    pub write_stall: Duration,
    /// Oldest pooled upstream connection that is used again.
    pub pooled: Duration,
    /// How long a stopping node still takes connections while it says that it is not ready; zero
    /// if nobody asks it.
    pub drain_notice: Duration,
    /// How long a stopping node waits for exchanges in flight.
    pub drain: Duration,
    /// A stream without a byte to the client, until a heartbeat is sent; shorter than
    /// `client_idle`.
    pub heartbeat: Duration,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        let s = Duration::from_secs;
        Deadlines {
            connect: s(5),
            tls: s(5),
            first_byte: s(600),
            between_bytes: s(600),
            header: s(10),
            body: s(30),
            client_idle: s(300),
            half_closed: s(10),
            write_stall: s(60),
            pooled: s(60),
            drain_notice: s(0),
            drain: s(900),
            heartbeat: s(10),
        }
    }
}

/// Every configurable bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest request body of a governed route.
    pub request_bytes: u64,
    /// Body bytes one shard may hold.
    pub held_bytes: u64,
}

/// Largest request body unless configured: what the reference systems take.
pub const REQUEST_BYTES: u64 = 32 * 1024 * 1024;

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { request_bytes: REQUEST_BYTES, held_bytes: 8 * REQUEST_BYTES }
    }
}

impl Snapshot {
    /// The provider at a place of this snapshot.
    pub fn provider(&self, id: ProviderId) -> &Provider {
        &self.providers[usize::from(id.0)]
    }

    /// The provider of this name.
    pub fn provider_named(&self, name: &str) -> Option<ProviderId> {
        let at = self.providers.iter().position(|p| &*p.name == name)?;
        Some(ProviderId(at as u16))
    }
}

impl Provider {
    /// The credential at a place of this provider.
    pub fn credential(&self, index: CredentialIx) -> &Credential {
        &self.credentials[usize::from(index.0)]
    }

    /// Whether the provider says it serves a model of this name.
    pub fn serves(&self, model: &str) -> bool {
        self.serves.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => model.starts_with(prefix),
            None => &**pattern == model,
        })
    }
}
