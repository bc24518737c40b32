//! `admin.sock`: the desk of a running node, over HTTP/1.1 on a Unix socket in its state folder.
//! Whoever asks is the node's own user or root: the socket's mode says so, and the kernel's word
//! about the peer is checked beside it.
//!
//! A connection carries one request and has one deadline. Bounds: the constants below.

use crate::control::desk::{Answer, Desk};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// Connections served at once: operators and their scripts.
const CONNECTIONS_MAX: usize = 16;

/// Longest head of a request; the least the server can be told.
const HEAD_BYTES_MAX: usize = 8192;

/// Largest body: a key with as many models as it may have.
const BODY_BYTES_MAX: usize = 128 * 1024;

/// From connecting to the end of the head.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);

/// From connecting to the last byte of the answer; a write to a slow disk is in it.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(30);

/// Wait after a failed accept: out of descriptors mostly, which passes.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The socket, removed when this is dropped.
pub struct Socket {
    listener: std::os::unix::net::UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Binds it in a folder that is this process's own: a socket that is there already belongs to
    /// a process that is gone.
    pub fn bind(state_dir: &Path) -> io::Result<Socket> {
        let path = state_dir.join("admin.sock");
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = std::os::unix::net::UnixListener::bind(&path)?;
        // Until here the folder, which is private, has kept others away.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Socket { listener, path })
    }

    /// Serves for as long as the process lives; needs a runtime.
    pub async fn serve(self, desk: Arc<Desk>) -> io::Result<()> {
        let listener = UnixListener::from_std(self.listener.try_clone()?)?;
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(permit) = room.clone().acquire_owned().await else { return Ok(()) };
            match listener.accept().await {
                Ok((stream, _)) if is_ours(&stream) => {
                    let desk = desk.clone();
                    tokio::spawn(async move {
                        // Too slow or malformed: the connection ends, and nobody has to hear of it.
                        let _ =
                            tokio::time::timeout(CONNECTION_TIME_MAX, answer(stream, desk)).await;
                        drop(permit);
                    });
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // One that is left is replaced by the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether the peer is this process's user, or root.
fn is_ours(stream: &UnixStream) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours || peer.uid() == 0)
}

async fn answer(stream: UnixStream, desk: Arc<Desk>) -> hyper::Result<()> {
    let service = service_fn(move |request| {
        let desk = desk.clone();
        async move { Ok::<_, Infallible>(respond(desk, request).await) }
    });
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn respond(desk: Arc<Desk>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        return response(&Answer::error(413, "request_too_large", "the body is too large"));
    };
    let body = body.to_bytes();
    // A key is durable before its answer: the disk is waited for on a thread that may.
    let done = tokio::task::spawn_blocking(move || {
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        desk.answer(head.method.as_str(), target, &body)
    });
    match done.await {
        Ok(answer) => response(&answer),
        Err(_) => response(&Answer::error(500, "internal", "a defect ended the request")),
    }
}

fn response(answer: &Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body.to_string())));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
