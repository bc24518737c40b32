//! Heads and chunk lines that we write, appended to a `Vec<u8>`.
//!
//! A field that would break out of its line cannot be written: names are tokens, values hold
//! neither CR, LF nor NUL, whatever their source. Deliberately no order, no defaults and no `Date`:
//! the caller knows what belongs in its head. Allocates nothing but the growth of the `Vec`.

use super::bytes::is_token;

/// Behind the data of a chunk.
pub const CHUNK_CLOSE: &[u8] = b"\r\n";

/// The last chunk with an empty trailer. Written once, when the body is complete, and only then.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The bytes would break out of their line; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritable;

impl core::fmt::Display for Unwritable {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("bytes that cannot stand in a head line")
    }
}

impl core::error::Error for Unwritable {}

/// `method SP target SP HTTP/1.1` with CR LF.
///
/// # Errors
/// When the method is no token, or the target is empty or not visible ASCII.
pub fn request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8]) -> Result<(), Unwritable> {
    let target_is_clean = !target.is_empty() && target.iter().all(u8::is_ascii_graphic);
    if !is_name(method) || !target_is_clean {
        return Err(Unwritable);
    }
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    Ok(())
}

/// `HTTP/1.1 SP status SP reason` with CR LF. A status that has not three digits is a fault of ours
/// and goes out as 500.
pub fn status_line(out: &mut Vec<u8>, status: u16) {
    let status = if (100..1000).contains(&status) { status } else { 500 };
    out.extend_from_slice(b"HTTP/1.1 ");
    decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(CHUNK_CLOSE);
}

/// `name: value` with CR LF, for text of ours and of the configuration.
///
/// # Errors
/// When the name is no token, or the value holds anything but visible ASCII, space and tab.
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), Unwritable> {
    if !is_name(name) || !value.iter().all(|&byte| is_text(byte)) {
        return Err(Unwritable);
    }
    line(out, name, value);
    Ok(())
}

/// [`field`], leaving out the bytes that may not stand in a value. For texts where a shorter value
/// is better than none.
///
/// # Errors
/// When the name is no token.
pub fn field_stripped(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), Unwritable> {
    if !is_name(name) {
        return Err(Unwritable);
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend(value.iter().copied().filter(|&byte| is_text(byte)));
    out.extend_from_slice(CHUNK_CLOSE);
    Ok(())
}

/// [`field`], with bytes above 0x7f as they are: for values that are forwarded from a parsed head.
///
/// # Errors
/// When the name is no token, or the value holds a control byte other than tab.
pub fn field_opaque(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), Unwritable> {
    if !is_name(name) || !value.iter().all(|&byte| is_text(byte) || byte >= 0x80) {
        return Err(Unwritable);
    }
    line(out, name, value);
    Ok(())
}

/// `content-length` with its CR LF.
pub fn content_length(out: &mut Vec<u8>, len: u64) {
    out.extend_from_slice(b"content-length: ");
    decimal(out, len);
    out.extend_from_slice(CHUNK_CLOSE);
}

/// A number in decimal digits.
pub fn decimal(out: &mut Vec<u8>, number: u64) {
    digits::<10>(out, number);
}

/// The line before the data of a chunk. Zero writes nothing: an empty part is not the end of a
/// body, and only [`LAST_CHUNK`] is.
pub fn chunk_size(out: &mut Vec<u8>, len: usize) {
    if len == 0 {
        return;
    }
    digits::<16>(out, len as u64);
    out.extend_from_slice(CHUNK_CLOSE);
}

/// A whole chunk. Empty data writes nothing.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    chunk_size(out, data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(CHUNK_CLOSE);
}

/// The usual reason phrase; empty for a status without one.
#[must_use]
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        424 => "Failed Dependency",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        508 => "Loop Detected",
        529 => "Overloaded",
        _ => "",
    }
}

fn line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(CHUNK_CLOSE);
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| is_token(byte))
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || byte == b' ' || byte.is_ascii_graphic()
}

fn digits<const BASE: u64>(out: &mut Vec<u8>, mut number: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0_u8; U64_DIGITS_MAX];
    let mut first = text.len();
    for slot in text.iter_mut().rev() {
        let digit = usize::try_from(number % BASE).unwrap_or(0);
        *slot = DIGITS.get(digit).copied().unwrap_or(b'0');
        first -= 1;
        number /= BASE;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(text.get(first..).unwrap_or_default());
}

/// Decimal digits of the largest `u64`.
const U64_DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests;
