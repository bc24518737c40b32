//! The judgement. Pure: time, randomness and counters come in as arguments; no async, no I/O, no
//! clock.
//!
//! [`Governance`] is the list of layers, outermost first: what is cheapest to know and refuses for
//! longest stands outside. The driver has one [`Held`] an exchange and settles it exactly once.

pub mod balance;
pub mod bank;
pub mod breaker;
pub mod estimate;
pub mod fault;
pub mod gate;
pub mod layer;
pub mod layers;
pub mod price;
pub mod retry_after;
pub mod walk;

use bank::MoneyHold;
use layer::{Layer, stack};
use layers::budget::Money;
use layers::concurrency::InFlight;
use layers::expiry::Expiry;
use layers::models::Models;
use layers::requests::Requests;

/// The layers; this line is their order.
pub type Governance = stack![Expiry, InFlight, Requests, Models, Money];

/// The layers of routes that cost nothing: the model list, and counting tokens. A client asks for
/// dozens of counts within a blink, so they have no part in the requests of the minute.
pub type Passing = stack![Expiry, InFlight, Models];

/// What those took.
pub type PassingHeld = <Passing as Layer>::Hold;

/// What the layers took for one exchange.
pub type Held = <Governance as Layer>::Hold;

/// The money among it: what a record says about the hold.
pub fn money(held: &Held) -> &MoneyHold {
    let (_expiry, (_in_flight, (_requests, (_models, (money, ()))))) = held;
    money
}

#[cfg(test)]
mod tests;
