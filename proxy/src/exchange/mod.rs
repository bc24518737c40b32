//! The nouns of an exchange: values only, no async, no I/O, no locks. The word for the whole is
//! *exchange*; it is deliberately not a struct, so that no stage can reach a fact that is not
//! known yet.

pub mod breaker;
pub mod budget;
pub mod bundle;
pub mod call;
pub mod codes;
pub mod demand;
pub mod ids;
pub mod keys;
pub mod limits;
pub mod models;
pub mod money;
pub mod outcome;
pub mod places;
pub mod plan;
pub mod price;
pub mod refusal;
pub mod retry;
pub mod rfc3339;
pub mod rules;
pub mod time;
pub mod weights;
pub mod window;
pub mod words;
