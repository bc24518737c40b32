//! Why something about a key cannot be done: whose fault, and what to do.

use crate::exchange::ids::KeyId;
use std::fmt;
use store::error::Error;

/// Keys that an ambiguity names: an operator sees what to write, not a catalogue.
const NAMED_MAX: usize = 10;

/// What was asked about keys cannot be done.
#[derive(Debug)]
pub enum KeyFault {
    /// There is no such key.
    NotFound,
    /// Several keys fit.
    Ambiguous(Vec<u64>),
    /// What was asked is not well-formed.
    Invalid(String),
    /// Something else has what must be unique.
    Taken(String),
    /// The key is refused from now on, but the store does not say so yet: a restart would forget.
    NotStored(String),
    /// The system gives no random bytes.
    Random,
    /// A row holds what no key can have.
    Row(u64),
    /// The store refused.
    Store(Error),
}

// === impl KeyFault ===

impl KeyFault {
    /// The stable code of an answer.
    pub fn code(&self) -> &'static str {
        match self {
            KeyFault::NotFound => "key_not_found",
            KeyFault::Ambiguous(_) => "key_ambiguous",
            KeyFault::Invalid(_) => "invalid_request",
            KeyFault::Taken(_) => "key_taken",
            KeyFault::NotStored(_) => "not_stored",
            KeyFault::Random | KeyFault::Row(_) | KeyFault::Store(_) => "store_failed",
        }
    }

    /// The status of an answer.
    pub fn status(&self) -> u16 {
        match self {
            KeyFault::NotFound => 404,
            KeyFault::Ambiguous(_) | KeyFault::Taken(_) => 409,
            KeyFault::Invalid(_) => 400,
            KeyFault::NotStored(_) | KeyFault::Random | KeyFault::Row(_) | KeyFault::Store(_) => {
                500
            }
        }
    }
}

impl From<Error> for KeyFault {
    fn from(error: Error) -> KeyFault {
        KeyFault::Store(error)
    }
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFault::NotFound => f.write_str("there is no such key"),
            KeyFault::Ambiguous(ids) => {
                let named = ids.iter().take(NAMED_MAX).map(|id| KeyId(*id).to_string());
                let named = named.collect::<Vec<_>>().join(", ");
                let more = if ids.len() > NAMED_MAX { " and others" } else { "" };
                write!(f, "several keys fit: {named}{more}; say which one by its number")
            }
            KeyFault::Invalid(why) | KeyFault::Taken(why) => f.write_str(why),
            KeyFault::NotStored(why) => write!(
                f,
                "the key is refused from now on, but the state store did not take it ({why}): \
                 repeat it, or a restart forgets"
            ),
            KeyFault::Random => f.write_str("the system gives no random bytes"),
            KeyFault::Row(id) => {
                write!(f, "the row of {} holds what no key can have", KeyId(*id))
            }
            KeyFault::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for KeyFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            KeyFault::Store(error) => Some(error),
            KeyFault::NotFound
            | KeyFault::Ambiguous(_)
            | KeyFault::Invalid(_)
            | KeyFault::Taken(_)
            | KeyFault::NotStored(_)
            | KeyFault::Random
            | KeyFault::Row(_) => None,
        }
    }
}
