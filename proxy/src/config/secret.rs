//! Where a secret comes from: `"${ENV}"` or `"file:/path"`, never the configuration itself.
//!
//! No error repeats the text it is about: it may be the secret.

use super::env::Env;
use super::snapshot::Secret;
use std::path::{Path, PathBuf};

/// Longest secret: a quarter of the longest head there is (32 KiB).
const SECRET_BYTES_MAX: usize = 8 * 1024;

/// What stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SecretRef {
    /// An environment variable.
    Variable(Box<str>),
    /// A file; a relative one is next to the configuration.
    File(PathBuf),
}

impl SecretRef {
    /// Reads a reference; the error does not show the text.
    pub(super) fn parse(text: &str) -> Result<SecretRef, &'static str> {
        if let Some(path) = text.strip_prefix("file:") {
            return if path.is_empty() || path.contains('\0') {
                Err("a secret's \"file:\" needs a path")
            } else {
                Ok(SecretRef::File(path.into()))
            };
        }
        match text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            Some(name) if is_variable(name) => Ok(SecretRef::Variable(name.into())),
            Some(_) => Err("the name in \"${…}\" is not that of an environment variable"),
            None => Err("a secret does not belong in this file: write \"${VARIABLE}\" or \
                     \"file:/path\""),
        }
    }

    /// Fetches the secret.
    pub(super) fn fetch(&self, folder: &Path, env: &dyn Env) -> Result<Secret, String> {
        match self {
            SecretRef::Variable(name) => {
                let Some(text) = env.var(name) else {
                    return Err(format!("environment variable {name} is not set"));
                };
                usable(&text).map_err(|why| format!("the secret in {name} {why}"))
            }
            SecretRef::File(path) => {
                let path = folder.join(path);
                let shown = path.display();
                let text = env
                    .read_file(&path)
                    .map_err(|error| format!("secret file {shown} cannot be read: {error}"))?;
                // Editors and `echo` end a file with a line break; it is not the secret's.
                let line = text.strip_suffix('\n').unwrap_or(&text);
                let line = line.strip_suffix('\r').unwrap_or(line);
                usable(line).map_err(|why| format!("the secret in {shown} {why}"))
            }
        }
    }
}

fn is_variable(name: &str) -> bool {
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    starts && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Only what can stand in a header's value as it is: a line break there would be a header more.
fn usable(text: &str) -> Result<Secret, &'static str> {
    if text.is_empty() {
        return Err("is empty");
    }
    if text.len() > SECRET_BYTES_MAX {
        return Err("is longer than 8 KiB");
    }
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("has a space, a control character or a letter outside ASCII in it");
    }
    Ok(Secret::new(text))
}
