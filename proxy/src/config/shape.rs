//! The keys `tollgate.toml` may have: the one list that reading, suggestions and the test of
//! `docs/reference/config.md` share. No behaviour.
//!
//! A key that would change nothing is not accepted: planned ones are listed as [`State::Later`]
//! and refused with their reason, so that nobody believes in a setting that does nothing.

/// A table and its keys.
pub struct Shape {
    /// How errors and the reference name the table.
    pub label: &'static str,
    /// Its keys; empty where any name is a key.
    pub keys: &'static [Key],
}

/// A key of a table.
pub struct Key {
    /// As written.
    pub name: &'static str,
    /// Whether it is read.
    pub state: State,
}

/// Whether a key is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is.
    Read,
    /// Part of the design, without effect in this version: what is missing.
    Later(&'static str),
}

const fn read(name: &'static str) -> Key {
    Key { name, state: State::Read }
}

/// The top level.
pub const ROOT: Shape = Shape {
    label: "the top level",
    keys: &[
        read("node"),
        read("listen"),
        read("shards"),
        read("provider"),
        read("model"),
        read("alias"),
        read("key"),
        read("price"),
        read("limits"),
        read("deadlines"),
        read("state_dir"),
        read("ledger"),
        read("log"),
        read("retry"),
        read("breaker"),
        read("endings"),
    ],
};

/// `[listen]`.
pub const LISTEN: Shape =
    Shape { label: "[listen]", keys: &[read("data"), read("admin"), read("tls")] };

/// `tls` of `[listen]`.
pub const LISTEN_TLS: Shape =
    Shape { label: "tls of [listen]", keys: &[read("cert_file"), read("key_file")] };

/// `[shards]`.
pub const SHARDS: Shape = Shape { label: "[shards]", keys: &[read("count"), read("driver")] };

/// `[[provider]]`.
pub const PROVIDER: Shape = Shape {
    label: "[[provider]]",
    keys: &[
        read("name"),
        read("kind"),
        read("base_url"),
        read("credentials"),
        read("models"),
        read("mode"),
        read("markup"),
        read("ca_file"),
    ],
};

/// An entry of `credentials`.
pub const CREDENTIAL: Shape = Shape {
    label: "credentials of [[provider]]",
    keys: &[read("name"), read("key"), read("weight")],
};

/// `[[model]]`.
pub const MODEL: Shape = Shape { label: "[[model]]", keys: &[read("name"), read("candidates")] };

/// An entry of `candidates`.
pub const CANDIDATE: Shape = Shape {
    label: "candidates of [[model]]",
    keys: &[read("provider"), read("model"), read("priority"), read("weight")],
};

/// `[alias]`: every key is an alias.
pub const ALIAS: Shape = Shape { label: "[alias]", keys: &[] };

/// `[[key]]`.
pub const KEY: Shape = Shape {
    label: "[[key]]",
    keys: &[
        read("name"),
        read("sha256"),
        read("requests_per_minute"),
        read("concurrent"),
        read("budget_total"),
        read("budget_month"),
        read("strict"),
        read("expires"),
        read("models"),
    ],
};

/// `[price]`.
pub const PRICE: Shape = Shape {
    label: "[price]",
    keys: &[read("file"), read("order"), read("fallback"), read("mode"), read("markup")],
};

/// `fallback` of `[price]`.
pub const FALLBACK: Shape = Shape {
    label: "fallback of [price]",
    keys: &[
        read("input"),
        read("cache_read"),
        read("cache_write_5m"),
        read("cache_write_1h"),
        read("output"),
        read("audio_in"),
        read("audio_out"),
    ],
};

/// `[limits]`.
pub const LIMITS: Shape = Shape {
    label: "[limits]",
    keys: &[read("request_bytes"), read("held_bytes"), read("hold_output_max")],
};

/// `[ledger]`.
pub const LEDGER: Shape = Shape {
    label: "[ledger]",
    keys: &[
        read("enabled"),
        read("slab_dir"),
        read("segment_bytes"),
        read("when_full"),
        read("orphans"),
    ],
};

/// `[log]`.
pub const LOG: Shape = Shape { label: "[log]", keys: &[read("access"), read("errors")] };

/// `[deadlines]`.
pub const DEADLINES: Shape = Shape {
    label: "[deadlines]",
    keys: &[
        read("connect"),
        read("tls"),
        read("first_byte"),
        read("between_bytes"),
        read("header"),
        read("body"),
        read("client_idle"),
        read("half_closed"),
        read("write_stall"),
        read("pooled"),
        read("drain_notice"),
        read("drain"),
        read("heartbeat"),
    ],
};

/// `[retry]`.
pub const RETRY: Shape = Shape {
    label: "[retry]",
    keys: &[
        read("attempts"),
        read("backoff"),
        read("backoff_max"),
        read("budget"),
        read("possibly_billed"),
    ],
};

/// `[breaker]`.
pub const BREAKER: Shape = Shape {
    label: "[breaker]",
    keys: &[read("failures"), read("window"), read("open"), read("slow_start"), read("cooldown")],
};

/// `[endings]`.
pub const ENDINGS: Shape = Shape {
    label: "[endings]",
    keys: &[
        read("client_left"),
        read("drain_time"),
        read("drain_bytes"),
        read("succeeded_unreported"),
        read("broken_unreported"),
        read("left_unreported"),
        read("chat_completions"),
        read("messages"),
    ],
};

/// `[endings.chat_completions]` and its like.
pub const ROUTE_ENDINGS: Shape = Shape {
    label: "a route of [endings]",
    keys: &[
        read("client_left"),
        read("drain_time"),
        read("drain_bytes"),
        read("succeeded_unreported"),
        read("broken_unreported"),
        read("left_unreported"),
    ],
};

/// Every table there is.
pub const SHAPES: &[&Shape] = &[
    &ROOT,
    &LISTEN,
    &LISTEN_TLS,
    &SHARDS,
    &PROVIDER,
    &CREDENTIAL,
    &MODEL,
    &CANDIDATE,
    &ALIAS,
    &KEY,
    &PRICE,
    &FALLBACK,
    &LIMITS,
    &LEDGER,
    &LOG,
    &DEADLINES,
    &RETRY,
    &BREAKER,
    &ENDINGS,
    &ROUTE_ENDINGS,
];

impl Shape {
    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}
