//! What the command line of a rig says of TLS. Deliberately not: files are read when asked for.

use std::io;
use std::path::PathBuf;

use clap::Args;

use super::{Identity, Trust};

/// Which of a rig's sides speak TLS.
#[derive(Debug, Args)]
pub(crate) struct Secured {
    /// Clients speak TLS and believe whom a certificate of this PEM file has signed
    #[arg(long)]
    ca: Option<PathBuf>,
    /// The upstream speaks TLS and shows chain.pem of this folder
    #[arg(long)]
    identity: Option<PathBuf>,
}

impl Secured {
    /// Whom clients believe.
    pub(crate) fn trust(&self) -> io::Result<Option<Trust>> {
        self.ca.as_deref().map(Trust::of_file).transpose()
    }

    /// Who the upstream is.
    pub(crate) fn identity(&self) -> io::Result<Option<Identity>> {
        self.identity.as_deref().map(Identity::of_folder).transpose()
    }
}
