//! Durable records. Knows nothing of HTTP, providers or policy.
//!
//! In this landing it holds the settlement record as a value; the slab it will live in and the
//! log it will be appended to come with the money core.

pub mod record;
pub mod text;
