//! What the tests of the whole gateway share: scenarios as data, one player for each side, and
//! the three transports they run on.
//!
//! It asserts nothing about behaviour: an [`outcome::Outcome`] says what was seen, tests judge it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a stage for tests: what does not fit ends the test, and skips are said aloud"
)]

pub mod answer;
pub mod asked;
pub mod books;
pub mod corpus;
pub mod counted;
pub mod fields;
pub mod outcome;
pub mod scenario;
pub mod secured;
pub mod script;
pub mod setting;
pub mod sockets;
pub mod transports;

mod faulty;
mod play;
mod wire;
