//! `state_dir` and `[ledger]`: where records and keys are kept, and what happens when they cannot
//! be.
//!
//! A relative path starts at the configuration's folder. Without `state_dir` the state is where
//! the environment says: `$TOLLGATE_STATE_DIR`, else `$STATE_DIRECTORY` (systemd), else
//! `$XDG_STATE_HOME/tollgate`, else `~/.local/state/tollgate`. Relative paths in these variables
//! are not followed.

use super::env::Env;
use super::file::{self, File};
use super::findings::{Findings, Text};
use super::names::choice;
use crate::exchange::rules::{OrphanRule, WhenFull};
use std::path::{Path, PathBuf};

/// Size of a segment, unless configured: a new one every few minutes at full load.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// Smallest segment: below it a busy node would begin a file for every commit.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;

/// Largest segment: the log is given back to the disk by whole ones.
const SEGMENT_BYTES_MAX: u64 = 4 << 30;

/// Where and how records are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// Keys, checkpoints and the log.
    pub state_dir: PathBuf,
    /// Where the slabs go, which must be on tmpfs, if the file says so.
    pub slab_dir: Option<PathBuf>,
    /// The folder that systemd made (`RuntimeDirectory=`), if it did: the next best place.
    pub runtime_dir: Option<PathBuf>,
    /// Size of a segment of the log.
    pub segment_bytes: u64,
    /// What exchanges of a dead process cost.
    pub orphans: OrphanRule,
    /// What happens to new exchanges that cannot be recorded.
    pub when_full: WhenFull,
}

/// Compiles `when_full`, which a node without a ledger has too.
pub(super) fn when_full(written: &file::Ledger, findings: &mut Findings<'_>) -> WhenFull {
    let text = written.when_full.as_ref();
    let chosen =
        text.and_then(|text| choice(text, "\"when_full\" in [ledger]", &WhenFull::NAMES, findings));
    chosen.unwrap_or_default()
}

/// Compiles the rest; `None` if no ledger is kept.
pub(super) fn settings(
    file: &File,
    when_full: WhenFull,
    folder: &Path,
    env: &dyn Env,
    findings: &mut Findings<'_>,
) -> Option<LedgerSettings> {
    let written = &file.ledger;
    let orphans = written
        .orphans
        .as_ref()
        .and_then(|text| choice(text, "\"orphans\" in [ledger]", &OrphanRule::NAMES, findings));
    let segment = written.segment_bytes.as_ref();
    if let Some(size) = segment
        && !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&size.value)
    {
        findings.error(size.at, "\"segment_bytes\" in [ledger] must be between 1MiB and 4GiB");
    }
    let slab_dir = path(written.slab_dir.as_ref(), "\"slab_dir\" in [ledger]", folder, findings);
    let state_dir = path(file.state_dir.as_ref(), "\"state_dir\"", folder, findings);
    if let Some(enabled) = written.enabled.as_ref().filter(|enabled| !enabled.value) {
        let what = "no record is kept: nobody can bill by this node, and budgets begin anew with \
                    every start";
        findings.warn(enabled.at, what);
        return None;
    }
    let state_dir = match (state_dir, &file.state_dir) {
        (None, None) => default_state_dir(env).or_else(|| {
            let what = "there is no \"state_dir\", and neither TOLLGATE_STATE_DIR, \
                        STATE_DIRECTORY, XDG_STATE_HOME nor HOME says where state is kept";
            findings.error(0, what);
            None
        }),
        (found, _) => found,
    }?;
    if let Err(why) = env.takes_files(&state_dir) {
        let what = format!("no state can be kept in {}: {why}", state_dir.display());
        findings.error(file.state_dir.as_ref().map_or(0, |text| text.at), what);
    }
    Some(LedgerSettings {
        state_dir,
        slab_dir,
        runtime_dir: first_of(env.var("RUNTIME_DIRECTORY")),
        segment_bytes: segment.map_or(SEGMENT_BYTES, |size| size.value),
        orphans: orphans.unwrap_or_default(),
        when_full,
    })
}

/// Where state is kept unless a file says so; `None` if the environment does not say.
pub fn default_state_dir(env: &dyn Env) -> Option<PathBuf> {
    let below = |name: &str, rest: &str| {
        let folder = env.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        folder.map(|path| path.join(rest))
    };
    let unit = first_of(env.var("STATE_DIRECTORY"));
    let own = env.var("TOLLGATE_STATE_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    own.or(unit)
        .or_else(|| below("XDG_STATE_HOME", "tollgate"))
        .or_else(|| below("HOME", ".local/state/tollgate"))
}

/// systemd lists several folders with a colon between them.
fn first_of(list: Option<String>) -> Option<PathBuf> {
    let first = PathBuf::from(list?.split(':').next()?);
    first.is_absolute().then_some(first)
}

/// A path as it is written, from the configuration's folder on.
pub(super) fn path(
    written: Option<&Text>,
    what: &str,
    folder: &Path,
    findings: &mut Findings<'_>,
) -> Option<PathBuf> {
    let text = written?;
    if text.value.is_empty() || text.value.contains('\0') {
        findings.error(text.at, format!("{what} must be a path"));
        return None;
    }
    Some(folder.join(&*text.value))
}
