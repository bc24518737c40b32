//! A request as the upstream sees it, read strictly: one length, nothing to argue about.

use crate::fields::{self, Pairs};

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Method, target and version.
    pub line: String,
    /// Names in lower case, in order.
    pub fields: Pairs,
    /// The body.
    pub body: Vec<u8>,
}

impl Asked {
    /// The first value of a name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        let first = fields::all(&self.fields, name).first().copied();
        first.map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// How often a name occurs.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        fields::all(&self.fields, name).len()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The request at the front of `bytes` and its length; nothing while it is incomplete.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Asked, usize)>, String> {
    let Some((line, fields, start)) = fields::head(bytes)? else { return Ok(None) };
    let parts: Vec<&str> = line.split(' ').collect();
    if parts.len() != 3 || parts[2] != "HTTP/1.1" {
        return Err(format!("request line {line:?}"));
    }
    if !fields::all(&fields, "transfer-encoding").is_empty() {
        return Err("a request with chunks".into());
    }
    if fields::all(&fields, "host").len() != 1 {
        return Err("not one host".into());
    }
    let length = fields::length(&fields)?.ok_or("a request without a length")?;
    let Some(body) = bytes.get(start..start + length) else { return Ok(None) };
    Ok(Some((Asked { line, fields, body: body.to_vec() }, start + length)))
}
