//! Model name → scripts. A name may be a scenario, one of a family (`slow-50`), either with
//! `+split=N` and `+pace=MS` behind it, or anything else, which plays `ok`. Bound: `PLAYS_MAX`
//! names are kept compiled; beyond that a name is compiled each time.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use super::compile::{self, Call, ScenarioError};
use super::scenario::{File, Scenario};
use super::script::Play;

/// The scenarios that come with the package.
const BUILT_IN: [(&str, &str); 4] = [
    ("whole.toml", include_str!("../../scenarios/whole.toml")),
    ("status.toml", include_str!("../../scenarios/status.toml")),
    ("framing.toml", include_str!("../../scenarios/framing.toml")),
    ("broken.toml", include_str!("../../scenarios/broken.toml")),
];

/// Compiled names kept: more than there are scenarios and families in use at once.
const PLAYS_MAX: usize = 1024;

/// The scenario of every name that is no scenario.
const DEFAULT: &str = "ok";

/// Why scenarios could not be loaded.
#[derive(Debug)]
pub enum LibraryError {
    /// A file could not be read.
    Io(String, std::io::Error),
    /// A file is not of the shape.
    Shape(String, toml::de::Error),
    /// A scenario has no meaning.
    Scenario(ScenarioError),
    /// There is no scenario `ok`.
    NoDefault,
}

impl fmt::Display for LibraryError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LibraryError::Io(path, error) => write!(out, "{path}: {error}"),
            LibraryError::Shape(path, error) => write!(out, "{path}: {error}"),
            LibraryError::Scenario(error) => error.fmt(out),
            LibraryError::NoDefault => write!(out, "no scenario named {DEFAULT}"),
        }
    }
}

impl std::error::Error for LibraryError {}

/// All scenarios.
#[derive(Debug)]
pub(super) struct Library {
    scenarios: Vec<Scenario>,
    by_name: HashMap<String, usize>,
    plays: HashMap<Box<[u8]>, Rc<Play>>,
    default: usize,
}

impl Library {
    /// The built-in scenarios, then those of `folder`, then those of `texts`; a later one replaces
    /// an earlier one of its name. Every scenario is compiled once, so that none fails later.
    pub(super) fn load(folder: Option<&Path>, texts: &[String]) -> Result<Library, LibraryError> {
        let mut files: Vec<(String, String)> =
            BUILT_IN.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        if let Some(folder) = folder {
            files.extend(read_folder(folder)?);
        }
        let given = texts.iter().map(|text| ("scenarios given".to_owned(), text.clone()));
        files.extend(given);
        let (mut scenarios, mut by_name) = (Vec::new(), HashMap::new());
        for (path, text) in files {
            let file: File =
                toml::from_str(&text).map_err(|error| LibraryError::Shape(path, error))?;
            for scenario in file.scenario {
                let n = scenario.name.contains("{n}").then_some(1);
                let call = Call { model: &scenario.name, n, ..Call::default() };
                compile::play(&scenario, call).map_err(LibraryError::Scenario)?;
                by_name.insert(scenario.name.clone(), scenarios.len());
                scenarios.push(scenario);
            }
        }
        let default = *by_name.get(DEFAULT).ok_or(LibraryError::NoDefault)?;
        Ok(Library { scenarios, by_name, plays: HashMap::new(), default })
    }

    /// Names and descriptions, in order of name.
    pub(super) fn list(&self) -> Vec<(&str, &str)> {
        let mut list: Vec<_> = self
            .by_name
            .values()
            .map(|&at| (self.scenarios[at].name.as_str(), self.scenarios[at].about.as_str()))
            .collect();
        list.sort_unstable();
        list
    }

    /// What `model` plays.
    pub(super) fn play(&mut self, model: &[u8]) -> Rc<Play> {
        if let Some(play) = self.plays.get(model) {
            return Rc::clone(play);
        }
        let play = Rc::new(self.compile(model));
        if self.plays.len() < PLAYS_MAX {
            self.plays.insert(model.into(), Rc::clone(&play));
        }
        play
    }

    fn compile(&self, model: &[u8]) -> Play {
        let text = String::from_utf8_lossy(model);
        let (scenario, call) = self.find(&text);
        compile::play(scenario, call)
            .or_else(|_| {
                // a number out of bounds in a family's name: as any unknown name
                let call = Call { model: &text, ..Call::default() };
                compile::play(&self.scenarios[self.default], call)
            })
            .unwrap_or_else(|error| unreachable!("checked when loaded: {error}"))
    }

    fn find<'a>(&'a self, model: &'a str) -> (&'a Scenario, Call<'a>) {
        let mut parts = model.split('+');
        let name = parts.next().unwrap_or(model);
        let mut call = Call { model, ..Call::default() };
        for part in parts {
            match part.split_once('=').map(|(key, n)| (key, n.parse::<u64>())) {
                Some(("split", Ok(n @ 1..))) => call.split = usize::try_from(n).ok(),
                Some(("pace", Ok(n))) => call.pace_ms = Some(n),
                _ => return (&self.scenarios[self.default], Call { model, ..Call::default() }),
            }
        }
        if let Some(&at) = self.by_name.get(name) {
            return (&self.scenarios[at], call);
        }
        if let Some((family, n)) = name.rsplit_once('-').and_then(family)
            && let Some(&at) = self.by_name.get(&family)
        {
            return (&self.scenarios[at], Call { n: Some(n), ..call });
        }
        (&self.scenarios[self.default], call)
    }
}

/// `("slow", "50")` → (`slow-{n}`, 50); `k` and `m` are powers of 1,024.
fn family((name, digits): (&str, &str)) -> Option<(String, u64)> {
    let (digits, shift) = match digits.as_bytes().last()? {
        b'k' => (&digits[..digits.len() - 1], 10),
        b'm' => (&digits[..digits.len() - 1], 20),
        _ => (digits, 0),
    };
    let n = crate::wire::number(digits.as_bytes())?;
    Some((format!("{name}-{{n}}"), n.checked_mul(1 << shift)?))
}

fn read_folder(folder: &Path) -> Result<Vec<(String, String)>, LibraryError> {
    let shown = |path: &Path| path.display().to_string();
    let failed = |path: &Path, error| LibraryError::Io(shown(path), error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
            Ok((shown(&path), text))
        })
        .collect()
}
