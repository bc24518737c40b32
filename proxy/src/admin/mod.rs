//! The admin port: metrics and health over HTTP/1.1, on loopback, without a token. It only reads
//! what shards count; nothing here is awaited by a shard.
//!
//! A connection carries one request and has one deadline. Bounds: the constants below.

mod metrics;
mod pages;
pub mod socket;

use crate::observe::counters::Counters;
use crate::observe::ledger::LedgerGauges;
use crate::observe::upstreams::AskUpstreams;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections served at once: a few scrapers and probes, and an operator.
const CONNECTIONS_MAX: usize = 64;

/// Longest head of a request; the least the server can be told.
const HEAD_BYTES_MAX: usize = 8192;

/// Most fields of a request.
const FIELDS_MAX: usize = 64;

/// From connecting to the end of the head.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);

/// From connecting to the last byte of the answer.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);

/// Wait after a failed accept: out of descriptors mostly, which passes.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What the admin port shows.
pub struct Watched {
    counters: Vec<Arc<Counters>>,
    ledger: Option<Arc<LedgerGauges>>,
    upstreams: Option<Box<AskUpstreams>>,
    started_unix_ms: u64,
    draining: AtomicBool,
    lines_lost: Arc<AtomicU64>,
    /// In seconds since 1970; 0 if there is none, or if that is not known.
    certificate_end: AtomicU64,
}

impl Watched {
    /// The counters of every shard, and when the node has started.
    pub fn new(counters: Vec<Arc<Counters>>, started_unix_ms: u64) -> Watched {
        let draining = AtomicBool::new(false);
        Watched {
            counters,
            ledger: None,
            upstreams: None,
            started_unix_ms,
            draining,
            lines_lost: Arc::default(),
            certificate_end: AtomicU64::new(0),
        }
    }

    /// The same with upstreams that can be asked how they do.
    pub fn with_upstreams(self, upstreams: Box<AskUpstreams>) -> Watched {
        Watched { upstreams: Some(upstreams), ..self }
    }

    /// The same with a ledger.
    pub fn with_ledger(self, ledger: Arc<LedgerGauges>) -> Watched {
        Watched { ledger: Some(ledger), ..self }
    }

    /// Where lines of the log are counted that nobody takes.
    pub fn lines_lost(&self) -> &Arc<AtomicU64> {
        &self.lines_lost
    }

    /// When the certificate ends that the listener shows from now on, in seconds since 1970.
    pub fn certificate_ends(&self, at: Option<u64>) {
        self.certificate_end.store(at.unwrap_or(0), Ordering::Relaxed);
    }

    /// From now on the node is not ready.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// Serves for as long as the process lives.
pub async fn serve(listener: TcpListener, watched: Arc<Watched>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let watched = watched.clone();
                tokio::spawn(async move {
                    // Too slow or malformed: the connection ends, and nobody has to hear of it.
                    let _ = tokio::time::timeout(
                        CONNECTION_TIME_MAX,
                        answer(stream, watched, HEAD_TIME_MAX),
                    )
                    .await;
                    drop(permit);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

async fn answer(
    stream: TcpStream,
    watched: Arc<Watched>,
    head_time_max: Duration,
) -> hyper::Result<()> {
    let service = service_fn(move |request| {
        let answer = pages::answer(&watched, &request);
        async move { Ok::<_, Infallible>(answer) }
    });
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(FIELDS_MAX)
        .timer(TokioTimer::new())
        .header_read_timeout(head_time_max)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

#[cfg(test)]
mod tests;
