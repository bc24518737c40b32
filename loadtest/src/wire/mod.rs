//! As much HTTP/1.1 as a peer of the gateway needs: where a head ends, its fields, where a body
//! ends. Independent of the gateway's codec on purpose. Keeps no bytes; bounds are the callers'.

mod body;
mod head;

pub(crate) use body::{BodyReader, Fault, Framing};
pub(crate) use head::{Head, number};
