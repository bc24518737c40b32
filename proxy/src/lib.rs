//! tollgate: the toll station in front of a fleet of AI agents.
