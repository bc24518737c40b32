//! As much HTTP/1.1 as a peer of the gateway needs: where a head ends, its fields, where a body
//! ends. Independent of the gateway's codec on purpose. Keeps no bytes but those a shape
//! compares; bounds are the callers'.

mod body;
mod head;
mod shape;

pub(crate) use body::{BodyReader, Fault, Framing};
pub(crate) use head::{Head, number};
pub(crate) use shape::Shape;
