//! Load from outside and the provider stand-in. Depends on nothing of ours, so that a mistake in
//! the gateway's codec cannot hide behind the same mistake here.
//!
//! - [`standin`]: an HTTP/1.1 provider whose answers are scripts, chosen by the model name.
//! - [`mix`]: a client that sends mixed and faulty traffic and states every outcome.
//! - [`rig`]: the cheapest load, clients and upstream on one thread, to saturate what lies between.
//! - [`streams`]: the same for streams.
//! - [`tls`]: certificates, and connections that are plain or secured.
//! - [`floor`]: a raw epoll relay, the least a proxy can cost on this machine.
//!
//! Each is one thread on one epoll instance, safe code only, loopback only.
#![forbid(unsafe_code)]

mod args;
mod clock;
pub mod floor;
mod latency;
mod loopback;
pub mod mix;
mod poll;
pub mod rig;
mod slots;
pub mod standin;
pub mod streams;
mod timers;
pub mod tls;
mod wire;

pub use args::main_from_args;
