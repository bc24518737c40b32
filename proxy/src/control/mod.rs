//! The control thread: ordinary tokio, beside the shards. It may be slow; traffic goes on with
//! what the shards hold.

pub mod certificates;
pub mod desk;
pub mod keys;
pub mod ledger;
pub mod logfile;
pub mod printing;
pub mod receipt;
pub mod resolver;
pub mod resting;
pub mod signals;
pub mod trouble;
