//! The judgement. Pure: time, randomness and counters come in as arguments; no async, no I/O, no
//! clock. The layers (limits, budgets) come with the money core.

pub mod walk;
