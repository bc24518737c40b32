//! Model name → scripts. A name may be a scenario, one of a family (`slow-50`), either with
//! numbers behind it (`+split=N`, `+pace=MS`; of streams `+events`, `+text`, `+every`, `+batch`),
//! or anything else, which plays `ok`. Bound: `PLAYS_MAX` names are kept compiled; beyond that a
//! name is compiled each time.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use super::ask::{Dialect, Form};
use super::call::Call;
use super::compile::{self, ScenarioError};
use super::scenario::{File, Scenario};
use super::script::Play;

/// The scenarios that come with the package.
const BUILT_IN: [(&str, &str); 5] = [
    ("whole.toml", include_str!("../../scenarios/whole.toml")),
    ("status.toml", include_str!("../../scenarios/status.toml")),
    ("framing.toml", include_str!("../../scenarios/framing.toml")),
    ("broken.toml", include_str!("../../scenarios/broken.toml")),
    ("stream.toml", include_str!("../../scenarios/stream.toml")),
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

/// The plays of one name, by form.
type Forms = [Option<Rc<Play>>; Form::COUNT];

/// All scenarios.
#[derive(Debug)]
pub(super) struct Library {
    scenarios: Vec<Scenario>,
    by_name: HashMap<String, usize>,
    plays: HashMap<Box<[u8]>, Forms>,
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
                check(&scenario).map_err(LibraryError::Scenario)?;
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

    /// What `model` plays to a request of this form.
    pub(super) fn play(&mut self, model: &[u8], form: Form) -> Rc<Play> {
        let found = self.plays.get(model).and_then(|forms| forms[form.index()].as_ref());
        if let Some(play) = found {
            return Rc::clone(play);
        }
        let play = Rc::new(self.compile(model, form));
        if self.plays.len() < PLAYS_MAX || self.plays.contains_key(model) {
            let forms = self.plays.entry(model.into()).or_default();
            forms[form.index()] = Some(Rc::clone(&play));
        }
        play
    }

    fn compile(&self, model: &[u8], form: Form) -> Play {
        let text = String::from_utf8_lossy(model);
        let (scenario, call) = self.find(&text);
        compile::play(scenario, Call { form, ..call })
            .or_else(|_| {
                // a number out of bounds in a family's name: as any unknown name
                let call = Call { model: &text, form, ..Call::default() };
                compile::play(&self.scenarios[self.default], call)
            })
            .unwrap_or_else(|error| unreachable!("checked when loaded: {error}"))
    }

    fn find<'a>(&'a self, model: &'a str) -> (&'a Scenario, Call<'a>) {
        let none = Call { model, ..Call::default() };
        let mut parts = model.split('+');
        let name = parts.next().unwrap_or(model);
        let mut call = none;
        for part in parts {
            match part.split_once('=').map(|(key, n)| (key, n.parse::<u64>())) {
                Some((key, Ok(n))) if call.set(key, n) => {}
                _ => return (&self.scenarios[self.default], none),
            }
        }
        if let Some(&at) = self.by_name.get(name) {
            return (&self.scenarios[at], call);
        }
        let numbered = |name: &'a str| {
            let (name, digits) = name.rsplit_once('-')?;
            Some((name, number(digits)?))
        };
        let Some((name, last)) = numbered(name) else {
            return (&self.scenarios[self.default], none);
        };
        if let Some(&at) = self.by_name.get(&format!("{name}-{{n}}")) {
            return (&self.scenarios[at], Call { n: Some(last), ..call });
        }
        if let Some((name, first)) = numbered(name)
            && let Some(&at) = self.by_name.get(&format!("{name}-{{n}}-{{m}}"))
        {
            return (&self.scenarios[at], Call { n: Some(first), m: Some(last), ..call });
        }
        (&self.scenarios[self.default], call)
    }
}

/// Whether a scenario can be played, whole and as a stream.
fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    let number = |name: &str| scenario.name.contains(name).then_some(1);
    let call =
        Call { model: &scenario.name, n: number("{n}"), m: number("{m}"), ..Call::default() };
    // whole, and as the stream with the most in it: the other forms leave something out of these
    for stream in [false, true] {
        let form = Form { dialect: Dialect::Chat, stream, include_usage: true };
        compile::play(scenario, Call { form, ..call })?;
    }
    Ok(())
}

/// `k` and `m` behind the digits are powers of 1,024.
fn number(digits: &str) -> Option<u64> {
    let (digits, shift) = match digits.as_bytes().last()? {
        b'k' => (&digits[..digits.len() - 1], 10),
        b'm' => (&digits[..digits.len() - 1], 20),
        _ => (digits, 0),
    };
    crate::wire::number(digits.as_bytes())?.checked_mul(1 << shift)
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

#[cfg(test)]
mod tests {
    use super::{Call, Form, Library, compile};

    #[test]
    fn every_scenario_can_be_played_in_every_form() {
        let library = Library::load(None, &[]).unwrap();
        for scenario in &library.scenarios {
            for form in Form::all() {
                let (n, m) = (Some(2), Some(2));
                let call = Call { model: &scenario.name, form, n, m, ..Call::default() };
                let play = compile::play(scenario, call);
                assert!(play.is_ok(), "{form:?}: {play:?}");
            }
        }
    }
}
