//! A head, read strictly and with nothing of the gateway's own code: what it lets through here
//! must be beyond doubt for any reader.

/// Name in lower case and value, in order.
pub type Pairs = Vec<(String, Vec<u8>)>;

/// First line and fields of the head at the front of `bytes`, and its length; nothing while it is
/// incomplete.
///
/// # Errors
///
/// What is not beyond doubt, in words.
pub fn head(bytes: &[u8]) -> Result<Option<(String, Pairs, usize)>, String> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let mut lines = bytes[..end].split(|byte| *byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.contains(&b'\r') { Err("a bare CR".to_owned()) } else { Ok(line) }
    });
    let first = lines.next().ok_or("no first line")??;
    let first = String::from_utf8(first.to_vec()).map_err(|_| "first line is not ASCII")?;
    let mut pairs = Vec::new();
    for line in lines {
        pairs.push(field(line?)?);
    }
    Ok(Some((first, pairs, end + 4)))
}

fn field(line: &[u8]) -> Result<(String, Vec<u8>), String> {
    let shown = String::from_utf8_lossy(line);
    let colon = line.iter().position(|byte| *byte == b':');
    let colon = colon.ok_or_else(|| format!("no colon in {shown:?}"))?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(byte);
    if name.is_empty() || !name.iter().all(token) {
        return Err(format!("no token before the colon of {shown:?}"));
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    Ok((name, value.trim_ascii().to_vec()))
}

/// The values of a name.
#[must_use]
pub fn all<'a>(pairs: &'a Pairs, name: &str) -> Vec<&'a [u8]> {
    pairs.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_slice()).collect()
}

/// The one `Content-Length`, if there is any.
///
/// # Errors
///
/// Where there is more than one, or it is not digits.
pub fn length(pairs: &Pairs) -> Result<Option<usize>, String> {
    match all(pairs, "content-length").as_slice() {
        [] => Ok(None),
        [value] if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
            let text = String::from_utf8_lossy(value);
            text.parse().map(Some).map_err(|_| format!("content-length {text}"))
        }
        values => Err(format!("content-length {values:?}")),
    }
}
