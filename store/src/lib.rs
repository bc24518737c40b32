//! Durable records. Knows nothing of HTTP, providers or policy.
