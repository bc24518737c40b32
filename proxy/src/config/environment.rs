//! A configuration without a file: the providers whose variables are set, as their own SDKs name
//! them. It is written as the text of a file and compiled like one, so that what holds of a file
//! holds here; of secrets the text has only the variables' names.
//!
//! It deliberately knows no more providers than the built-in prices do: what nobody can price is
//! configured by someone who says so. Bounds: those of the file.

use super::compile::Config;
use super::env::Env;
use super::findings::{ConfigErrors, Finding};
use super::round::leads_here;
use std::fmt::Write as _;

/// A provider that the environment may have.
struct Known {
    /// Its name and its kind.
    kind: &'static str,
    /// The variable of its credential.
    key: &'static str,
    /// The variable of another place to call it at.
    base_url: &'static str,
    /// Where it is called otherwise.
    home: &'static str,
}

/// In the order of their numbers.
const KNOWN: [Known; 2] = [
    Known {
        kind: "openai",
        key: "OPENAI_API_KEY",
        base_url: "OPENAI_BASE_URL",
        home: "https://api.openai.com/v1",
    },
    Known {
        kind: "anthropic",
        key: "ANTHROPIC_API_KEY",
        base_url: "ANTHROPIC_BASE_URL",
        home: "https://api.anthropic.com",
    },
];

/// The variables that stand for keys of `[listen]`: a container has no file to write them into.
const LISTEN: [(&str, &str); 2] =
    [("data", "TOLLGATE_LISTEN_DATA"), ("admin", "TOLLGATE_LISTEN_ADMIN")];

/// What errors and the summary call it.
pub const ENVIRONMENT: &str = "environment";

/// A variable that says something: compose files set what is not there to nothing.
fn said(env: &dyn Env, name: &str) -> Option<String> {
    env.var(name).filter(|value| !value.is_empty())
}

/// The names of the providers that the environment has, in the order of their numbers.
pub(super) fn providers(env: &dyn Env) -> Vec<Box<str>> {
    let there = KNOWN.iter().filter(|known| said(env, known.key).is_some());
    there.map(|known| known.kind.into()).collect()
}

/// The configuration of the environment; `None` if it has no provider.
pub fn from_environment(env: &dyn Env) -> Option<Result<Config, ConfigErrors>> {
    if providers(env).is_empty() {
        return None;
    }
    let text = text(env);
    let told = |findings: Vec<Finding>| -> Vec<Finding> {
        findings.into_iter().map(|finding| by_variable(&text, finding)).collect()
    };
    Some(match super::parse(ENVIRONMENT, &text, env) {
        Ok(config) => leads_elsewhere(Config { warnings: told(config.warnings), ..config }, env),
        Err(ConfigErrors { file, errors }) => Err(ConfigErrors { file, errors: told(errors) }),
    })
}

/// Nobody has written this text, and a place in it says nothing: the variable at the end of the
/// line does.
fn by_variable(text: &str, finding: Finding) -> Finding {
    let line = finding.line.checked_sub(1).and_then(|line| text.lines().nth(line));
    let text = match line.and_then(|line| line.rsplit_once(" # ")) {
        Some((_, variable)) => format!("{variable}: {}", finding.text),
        None => finding.text,
    };
    Finding { line: 0, column: 0, text }
}

fn text(env: &dyn Env) -> String {
    let mut text = String::new();
    // Formatting into a String cannot fail.
    let _ = writeln!(text, "[listen]");
    for (key, variable) in LISTEN {
        if let Some(address) = said(env, variable) {
            let _ = writeln!(text, "{key} = {} # {variable}", quoted(&address));
        }
    }
    for Known { kind, key, base_url, home } in &KNOWN {
        if said(env, key).is_none() {
            continue;
        }
        let url = said(env, base_url);
        let url = quoted(url.as_deref().unwrap_or(home));
        let _ = write!(
            text,
            "\n[[provider]]\nname = \"{kind}\"\nkind = \"{kind}\"\n\
             base_url = {url} # {base_url}\nmodels = [\"*\"]\n\
             credentials = [{{ name = \"{key}\", key = \"${{{key}}}\" }}] # {key}\n"
        );
    }
    text
}

/// A text of JSON is one of TOML.
fn quoted(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

/// Who has pasted a client's lines into this shell has made the gateway its own provider: every
/// call would go round for ever.
fn leads_elsewhere(config: Config, env: &dyn Env) -> Result<Config, ConfigErrors> {
    let here = config.listen_data;
    let mut providers = config.snapshot.providers.iter();
    let itself = providers.find(|provider| leads_here(provider, here, env));
    let known = itself.and_then(|provider| KNOWN.iter().find(|k| *k.kind == *provider.name));
    let Some(known) = known.filter(|known| said(env, known.base_url).is_some()) else {
        return Ok(config);
    };
    let variable = known.base_url;
    let why = format!("{variable} leads to this gateway itself, {here}: unset it for `serve`");
    Err(ConfigErrors::whole(ENVIRONMENT, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::Path;

    struct Variables(&'static [(&'static str, &'static str)]);

    impl Env for Variables {
        fn var(&self, name: &str) -> Option<String> {
            let found = self.0.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        }

        fn read_file(&self, _: &Path) -> io::Result<String> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn cores(&self) -> usize {
            1
        }
    }

    const HOME: (&str, &str) = ("HOME", "/home/ann");
    const KEY: (&str, &str) = ("OPENAI_API_KEY", "sk-secret");
    const PLAIN: (&str, &str) = ("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1");

    fn compiled(variables: &'static [(&'static str, &'static str)]) -> Option<String> {
        Some(match from_environment(&Variables(variables))? {
            Ok(config) => {
                let lines = config.snapshot.providers.iter().map(|provider| {
                    let (name, at) = (&provider.name, &provider.authority);
                    format!("{name} {at}{} {}", provider.base_path, provider.serves.join(","))
                });
                lines.collect::<Vec<_>>().join("; ")
            }
            Err(errors) => errors.to_string(),
        })
    }

    #[test]
    fn a_provider_is_there_if_its_key_is() {
        assert_eq!(compiled(&[HOME]), None);
        assert_eq!(compiled(&[HOME, ("OPENAI_API_KEY", "")]), None, "set to nothing");
        assert_eq!(compiled(&[HOME, PLAIN]), None, "a place without a key");
        assert_eq!(compiled(&[HOME, KEY, PLAIN]).unwrap(), "openai 127.0.0.1:8000/v1 *");
        let both = compiled(&[
            HOME,
            ("ANTHROPIC_API_KEY", "sk-ant"),
            ("ANTHROPIC_BASE_URL", "http://10.0.0.7"),
            KEY,
            PLAIN,
        ]);
        assert_eq!(both.unwrap(), "openai 127.0.0.1:8000/v1 *; anthropic 10.0.0.7 *");
    }

    #[test]
    fn without_a_place_of_its_own_a_provider_is_called_at_home_and_over_tls() {
        for known in &KNOWN {
            assert!(known.home.starts_with("https://"));
        }
        // No roots here: that they are asked for is enough.
        let refused = compiled(&[HOME, KEY]).unwrap();
        assert!(refused.contains("root certificates"), "{refused}");
    }

    #[test]
    fn what_is_wrong_is_told_without_a_secret() {
        for (variables, part) in [
            (&[HOME, KEY, ("OPENAI_BASE_URL", "ftp://x\"\n")][..], ": OPENAI_BASE_URL: base_url"),
            (&[HOME, ("OPENAI_API_KEY", "sk zebra"), PLAIN], "OPENAI_API_KEY has a space"),
            (&[KEY, PLAIN], "STATE_DIRECTORY"),
            (
                &[HOME, KEY, PLAIN, ("TOLLGATE_LISTEN_DATA", "here")],
                "environment: TOLLGATE_LISTEN_DATA: \"data\" in [listen]",
            ),
        ] {
            let told = compiled(variables).unwrap();
            assert!(told.contains(part) && told.starts_with(ENVIRONMENT), "{told}");
            assert!(!told.contains("sk-secret") && !told.contains("zebra"), "{told}");
        }
    }

    #[test]
    fn a_gateway_is_not_its_own_provider() {
        let round = |url| {
            let variables = vec![HOME, KEY, ("OPENAI_BASE_URL", url)];
            compiled(Box::leak(variables.into_boxed_slice())).unwrap()
        };
        for url in [
            "http://127.0.0.1:4180/v1",
            "http://localhost:4180/v1",
            "http://0.0.0.0:4180/v1",
            "http://[::ffff:127.0.0.1]:4180/v1",
        ] {
            assert!(round(url).contains("OPENAI_BASE_URL leads to this gateway itself"), "{url}");
        }
        assert!(round("http://127.0.0.1:4182/v1").starts_with("openai "));
    }

    #[test]
    fn where_it_listens_can_be_said() {
        let variables = Variables(&[
            HOME,
            KEY,
            PLAIN,
            ("TOLLGATE_LISTEN_DATA", "127.0.0.1:5180"),
            ("TOLLGATE_LISTEN_ADMIN", "127.0.0.1:5181"),
        ]);
        let config = from_environment(&variables).unwrap().unwrap();
        assert_eq!((config.listen_data.port(), config.listen_admin.port()), (5180, 5181));
        assert_eq!(&*config.file, ENVIRONMENT);
    }

    #[test]
    fn a_warning_names_its_variable() {
        let variables = Variables(&[
            HOME,
            KEY,
            ("OPENAI_BASE_URL", "http://127.0.0.1:8000"),
            ("TOLLGATE_LISTEN_DATA", "0.0.0.0:5180"),
        ]);
        let config = from_environment(&variables).unwrap().unwrap();
        let told: Vec<String> =
            config.warnings.iter().map(|warning| warning.located(&config.file)).collect();
        assert_eq!(
            told,
            [
                "environment: TOLLGATE_LISTEN_DATA: \"data\" in [listen] is reachable from other \
                 machines, without TLS",
                "environment: OPENAI_BASE_URL: base_url has no path: providers of kind openai \
                 mostly want /v1 at its end",
            ]
        );
    }
}
