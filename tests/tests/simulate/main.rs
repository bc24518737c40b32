//! The shipping pipeline over the scripted transport and virtual clock, by seed: random traffic,
//! splits, faults, leaving clients, kills; what must hold is checked after each.
//!
//! `TOLLGATE_SEED=n` plays one seed and prints its trace, `TOLLGATE_SEEDS=count` so many of them.
//! A seed that fails prints itself, what is wrong, and the trace of the calls it is wrong about;
//! it becomes a test of its own in `regressions`.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod call;
#[cfg(test)]
mod client;
#[cfg(test)]
mod dice;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod mutants;
#[cfg(test)]
mod notes;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod process;
#[cfg(test)]
mod regressions;
#[cfg(test)]
mod reply;
#[cfg(test)]
mod run;
#[cfg(test)]
mod seeds;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod upstream;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod world;
