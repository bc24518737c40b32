//! The options of `Connection`: what they say about this connection, and which fields they list.
//!
//! A field that `Connection` lists must not be forwarded. That is where a sender could make a proxy
//! drop the field that frames the body, so lists naming one are refused instead of obeyed.

use super::bytes::is_name;
use super::{Fields, HeadError};

/// What the options of all `Connection` lines say together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    pub(super) close: bool,
    pub(super) keep_alive: bool,
    pub(super) upgrade: bool,
}

impl Options {
    /// Reads one `Connection` line. Unknown options are names of fields, looked up later on demand.
    pub(super) fn note(&mut self, value: &[u8]) -> Result<(), HeadError> {
        // What nearly every head says, alone.
        if is_name(value, b"keep-alive") {
            self.keep_alive = true;
            return Ok(());
        }
        for option in options(value) {
            match option.len() {
                5 if is_name(option, b"close") => self.close = true,
                10 if is_name(option, b"keep-alive") => self.keep_alive = true,
                7 if is_name(option, b"upgrade") => self.upgrade = true,
                4 if is_name(option, b"host") => return Err(HeadError::ConnectionListsFraming),
                14 if is_name(option, b"content-length") => {
                    return Err(HeadError::ConnectionListsFraming);
                }
                17 if is_name(option, b"transfer-encoding") => {
                    return Err(HeadError::ConnectionListsFraming);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a `Connection` line lists this field, so that it must not be forwarded. `name` in any
/// case.
#[must_use]
pub fn connection_lists(buf: &[u8], fields: &Fields, name: &[u8]) -> bool {
    fields.connection_and_later().iter().any(|line| {
        line.name.len() == CONNECTION.len()
            && line.name.of(buf).eq_ignore_ascii_case(CONNECTION)
            && options(line.value.of(buf)).any(|option| option.eq_ignore_ascii_case(name))
    })
}

const CONNECTION: &[u8] = b"connection";

/// The members of a comma list without white space; empty members are skipped.
fn options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trimmed).filter(|option| !option.is_empty())
}

fn trimmed(mut option: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = option {
        option = rest;
    }
    option
}
