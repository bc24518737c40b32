//! A client's query as it goes on: every parameter but credentials, in order and as written.
//!
//! A credential is known by its name, however that is spelled: what a provider's server may take
//! for the same name after decoding is the same name here. It deliberately looks at no value.
//!
//! Bound: the first [`NAME_MAX`] letters of a name.

/// Names of credentials, without what stands between words: the fields that are one, as someone
/// might move them into a query, and what providers themselves take there.
const SECRETS: [&[u8]; 10] = [
    b"key",
    b"apikey",
    b"accesstoken",
    b"token",
    b"auth",
    b"authorization",
    b"xapikey",
    b"xgoogapikey",
    b"xtollgatekey",
    b"subscriptionkey",
];

/// Letters of a name that are looked at: one more than any of [`SECRETS`] has.
const NAME_MAX: usize = 16;

/// Appends what goes on of a query, with its `?`. Parameters are parted by `&`, and by `;` as old
/// servers have it.
pub(super) fn write(query: &[u8], forward: &mut Vec<u8>) {
    let parameters = query.strip_prefix(b"?").unwrap_or_default();
    let mut mark = b'?';
    for piece in parameters.split_inclusive(|byte| matches!(byte, b'&' | b';')) {
        let (parameter, next) = match piece.split_last() {
            Some((last @ (b'&' | b';'), parameter)) => (parameter, *last),
            _ => (piece, b'&'),
        };
        if !parameter.is_empty() && !is_secret(parameter) {
            forward.push(mark);
            forward.extend_from_slice(parameter);
            mark = next;
        }
    }
}

/// Whether a parameter is a credential, by its name.
fn is_secret(parameter: &[u8]) -> bool {
    let mut name = [0; NAME_MAX];
    let mut count = 0;
    let mut rest = parameter;
    while let Some((byte, after)) = decoded(rest) {
        rest = after;
        if byte == b'=' {
            break;
        }
        // Dashes, spaces, brackets: what some take for a part of a name and others do not.
        if byte.is_ascii_alphanumeric() {
            let Some(place) = name.get_mut(count) else { return false };
            *place = byte.to_ascii_lowercase();
            count += 1;
        }
    }
    let name = name.get(..count).unwrap_or_default();
    SECRETS.contains(&name)
}

/// The first byte, with an escape undone, and what follows it.
fn decoded(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if let [b'%', high, low, rest @ ..] = bytes
        && let (Some(high), Some(low)) = (digit(*high), digit(*low))
    {
        return Some((high << 4 | low, rest));
    }
    let (first, rest) = bytes.split_first()?;
    Some((*first, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(query: &str) -> String {
        let mut forward = Vec::new();
        write(query.as_bytes(), &mut forward);
        String::from_utf8(forward).unwrap()
    }

    #[test]
    fn a_credential_goes_nowhere_however_its_name_is_spelled() {
        for name in [
            "key",
            "KEY",
            "%6bey",
            "k%65y",
            "%4B%45%59",
            "api_key",
            "api-key",
            "apikey",
            "apiKey",
            "access_token",
            "token",
            "x-api-key",
            "x%2dapi%2dkey",
            "x_api_key",
            "X-Goog-Api-Key",
            "x-tollgate-key",
            "authorization",
            "key[]",
            "+key",
            "key%20",
            "%00key",
            "key%3d1",
            "subscription-key",
        ] {
            assert_eq!(written(&format!("?{name}=secret")), "", "{name}");
            let among = written(&format!("?beta=true&{name}=secret&a=1"));
            assert_eq!(among, "?beta=true&a=1", "{name}");
            let among = written(&format!("?{name}=secret;beta=true;{name}=secret;a=1;{name}"));
            assert_eq!(among, "?beta=true;a=1", "{name}");
        }
    }

    #[test]
    fn whatever_else_goes_on_as_it_was_written() {
        for query in [
            "",
            "?beta=true",
            "?a=1&b=2;c=3",
            "?api-version=2024-10-21",
            "?alt=sse&%zz=%",
            "?monkey=1",
            "?keys=1",
            "?a=key",
            "?a=b?key=c",
            "?%256bey=1",
            "?a%3d=1",
            "?x-api-keys-and-more=1",
        ] {
            assert_eq!(written(query), query);
        }
        assert_eq!(written("?&&a=1&;&b&"), "?a=1&b");
        assert_eq!(written("?"), "");
    }
}
