//! What a secured connection promises beyond what every connection does, on the scripted
//! transport. The peer is rustls' own buffered connection, played by hand.

mod ends;
mod records;
mod trust;
mod world;

use super::Link;
use crate::io::ring::RingStream;

#[test]
fn a_plain_connection_is_no_larger_for_what_could_be_secured() {
    assert!(size_of::<Link<RingStream>>() <= size_of::<RingStream>() + size_of::<usize>());
}
