//! Usage as it is priced (placeholder until the reply scan lands in this branch).
