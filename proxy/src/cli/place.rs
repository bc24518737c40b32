//! Where a node's state is, for commands that ask about it, and who knows more: a running server
//! over its socket, else the state store itself, if nobody has it.

use super::{EXIT_UNUSABLE, FILE, output, socket};
use crate::config::ProcessEnv;
use crate::config::outline::Outline;
use crate::control::keys::Selector;
use crate::control::ledger::identity;
use crate::control::receipt::Names;
use clap::Args;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use store::appender::Checkpoint;
use store::disk::Folder;
use store::error::Error;
use store::lock::Lock;
use store::state::State;

/// Where a node's state is.
#[derive(Args, Debug)]
pub(super) struct Place {
    /// The folder of the node's state [default: the configuration's, else the environment's]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// The configuration [default: ./tollgate.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A state folder that is there.
pub(super) struct Home {
    /// Its path.
    pub(super) state_dir: PathBuf,
    /// What the configuration says of it.
    pub(super) outline: Outline,
    /// The node's identity.
    pub(super) node: u64,
    /// The log.
    pub(super) log: Folder,
}

/// Who knows what the log does not say.
pub(super) enum Known {
    /// A server is running.
    Server(Value),
    /// Nobody is: what the state store says. It is closed again, since a node may want to start.
    Store(Box<Store>),
    /// Neither answers: another process has the lock and no socket.
    Nobody,
}

/// What a state store says.
pub(super) struct Store {
    pub(super) checkpoint: Option<Checkpoint>,
    /// The number and name of every key.
    pub(super) keys: Vec<(u64, Box<str>)>,
    /// The key that was asked about, as its number.
    pub(super) meant: Option<Result<u64, String>>,
}

impl Place {
    /// Where it is, by arguments, configuration and environment.
    pub(super) fn outline(&self) -> Result<Outline, String> {
        let file = match &self.config {
            Some(file) => Some(file.as_path()),
            None => Some(Path::new(FILE)).filter(|file| file.exists()),
        };
        let outline = match file {
            Some(file) => Outline::load(file, &ProcessEnv).map_err(|errors| errors.to_string())?,
            None => Outline::without_file(&ProcessEnv),
        };
        let state_dir = self.state_dir.clone().or(outline.state_dir);
        Ok(Outline { state_dir, ..outline })
    }

    /// The state folder with its log, if there is one.
    pub(super) fn home(&self) -> Result<Home, String> {
        let outline = self.outline()?;
        let state_dir = outline.state_dir.clone().ok_or("no state_dir is configured")?;
        let shown = state_dir.display();
        let node = identity(&state_dir).map_err(|error| error.to_string())?;
        let node = node.ok_or_else(|| format!("{shown}: no tollgate has run here"))?;
        let log = Folder::existing(&state_dir.join("ledger"));
        let log = log.map_err(|error| format!("{shown}/ledger: {error}"))?;
        Ok(Home { state_dir, outline, node, log })
    }
}

impl Home {
    /// Asks whoever knows more than the log; also which key is meant, if one is asked about.
    pub(super) fn known(&self, meant: Option<&Selector>) -> Result<Known, String> {
        if let Some(answer) = socket::ask(&self.state_dir, "GET", "/ledger", "")? {
            return Ok(Known::Server(answer.body));
        }
        let failed = |error: Error| format!("{}: {error}", self.state_dir.display());
        let _lock = match Lock::take(&self.state_dir.join("lock")) {
            Ok(lock) => lock,
            // Not what a node has made, and no node starts beside it.
            Err(Error::Io { what, source }) if source.kind() == ErrorKind::IsADirectory => {
                return Err(failed(Error::Io { what, source }));
            }
            // Another has it, or it is another user's: the log alone is read.
            Err(_) => return Ok(Known::Nobody),
        };
        let state = State::open(&self.state_dir.join("state.redb"), || self.node);
        let state = state.map_err(failed)?;
        let checkpoint = state.checkpoint().map_err(failed)?;
        let mut keys = Vec::new();
        state.keys(|row| keys.push((row.id, row.name.into()))).map_err(failed)?;
        let found = |selector: &Selector| selector.find(&state).map(|row| row.id);
        let meant = meant.map(|selector| found(selector).map_err(|fault| fault.to_string()));
        Ok(Known::Store(Box::new(Store { checkpoint, keys, meant })))
    }

    /// The names of keys and providers, as far as somebody knows them.
    pub(super) fn names(&self, known: &Known) -> Names {
        let mut keys: Vec<(u64, Box<str>)> = Vec::new();
        match known {
            Known::Server(answer) => {
                let told = answer["keys"].as_object().into_iter().flatten();
                keys.extend(
                    told.filter_map(|(id, name)| Some((id.parse().ok()?, name.as_str()?.into()))),
                );
            }
            Known::Store(store) => keys.clone_from(&store.keys),
            Known::Nobody => {}
        }
        let told = match known {
            Known::Server(answer) => answer["providers"].as_array(),
            Known::Store(_) | Known::Nobody => None,
        };
        let told =
            told.map(|told| told.iter().map(|name| name.as_str().unwrap_or("?").into()).collect());
        Names::told(keys, told.unwrap_or_else(|| self.outline.providers.clone()))
    }
}

/// Says why a command cannot be done here.
pub(super) fn unusable(why: &str) -> u8 {
    output::tell(&format!("tollgate: {why}"));
    EXIT_UNUSABLE
}
