//! Load from outside and the provider stand-in. Depends on nothing of ours.
