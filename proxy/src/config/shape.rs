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

const fn later(name: &'static str, missing: &'static str) -> Key {
    Key { name, state: State::Later(missing) }
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
        later("state_dir", "state on disk"),
        later("retry", "a configurable retry"),
        later("breaker", "a circuit breaker"),
        later("endings", "charging by ending"),
        later("ledger", "the ledger"),
    ],
};

/// `[listen]`.
pub const LISTEN: Shape = Shape { label: "[listen]", keys: &[read("data"), read("admin")] };

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
        later("ca_file", "TLS to upstreams"),
    ],
};

/// An entry of `credentials`.
pub const CREDENTIAL: Shape = Shape {
    label: "credentials of [[provider]]",
    keys: &[read("name"), read("key"), later("weight", "choosing between credentials")],
};

/// `[[model]]`.
pub const MODEL: Shape = Shape { label: "[[model]]", keys: &[read("name"), read("candidates")] };

/// An entry of `candidates`.
pub const CANDIDATE: Shape = Shape {
    label: "candidates of [[model]]",
    keys: &[
        read("provider"),
        read("model"),
        later("priority", "failover"),
        later("weight", "failover"),
    ],
};

/// `[alias]`: every key is an alias.
pub const ALIAS: Shape = Shape { label: "[alias]", keys: &[] };

/// `[[key]]`.
pub const KEY: Shape = Shape { label: "[[key]]", keys: &[read("name"), read("sha256")] };

/// `[price]`.
pub const PRICE: Shape = Shape { label: "[price]", keys: &[read("file")] };

/// `[limits]`.
pub const LIMITS: Shape =
    Shape { label: "[limits]", keys: &[read("request_bytes"), read("held_bytes")] };

/// `[deadlines]`.
pub const DEADLINES: Shape = Shape {
    label: "[deadlines]",
    keys: &[
        read("connect"),
        read("first_byte"),
        read("between_bytes"),
        read("header"),
        read("body"),
        read("client_idle"),
        read("write_stall"),
        read("pooled"),
        read("drain"),
    ],
};

/// Every table there is.
pub const SHAPES: &[&Shape] = &[
    &ROOT,
    &LISTEN,
    &SHARDS,
    &PROVIDER,
    &CREDENTIAL,
    &MODEL,
    &CANDIDATE,
    &ALIAS,
    &KEY,
    &PRICE,
    &LIMITS,
    &DEADLINES,
];

impl Shape {
    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}
