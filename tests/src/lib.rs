//! What crosses a package: the simulated world and the corpus readers.
