//! The command line's side of `admin.sock`: one request, one JSON answer.

use crate::control::desk::Answer;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest wait for a server that is there.
const PATIENCE: Duration = Duration::from_secs(15);

/// Longest answer: names of a million keys.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Asks a running server; `None` if there is none. An error says what failed: whether the server
/// has done what was asked is then unknown.
pub(super) fn ask(
    state_dir: &Path,
    method: &str,
    target: &str,
    body: &str,
) -> Result<Option<Answer>, String> {
    let socket = state_dir.join("admin.sock");
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!(
            "{}: no answer within {} s: too many ask, or the disk is slow; whether it was done is \
             not known",
            socket.display(),
            PATIENCE.as_secs(),
        ),
        _ => format!("{}: {error}", socket.display()),
    };
    let mut stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    let request = format!(
        "{method} {target} HTTP/1.1\r\nhost: tollgate\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).map_err(failed)?;
    let unreadable = || format!("{}: an answer that is none", socket.display());
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(unreadable)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(unreadable)?;
    let body = serde_json::from_str(body).map_err(|_| unreadable())?;
    Ok(Some(Answer { status, body }))
}
