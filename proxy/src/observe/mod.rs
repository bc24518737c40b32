//! What can be seen from outside: counters that a shard writes and others only read.

pub mod counters;
pub mod ledger;
pub mod upstreams;
