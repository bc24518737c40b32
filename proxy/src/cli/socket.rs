//! The command line's side of `admin.sock`: one request, one JSON answer.

use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest wait for a server that is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest answer: names of a hundred thousand keys.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Asks a running server; `None` if there is none.
pub(super) fn get(state_dir: &Path, path: &str) -> Result<Option<Value>, String> {
    let socket = state_dir.join("admin.sock");
    let failed = |error: std::io::Error| format!("{}: {error}", socket.display());
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
    let request = format!("GET {path} HTTP/1.1\r\nhost: tollgate\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).map_err(failed)?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let value = serde_json::from_str(body);
    value.map(Some).map_err(|_| format!("{}: an answer that is no JSON", socket.display()))
}
