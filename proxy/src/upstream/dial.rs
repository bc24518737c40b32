//! A new connection to a provider: to its address, then the handshake if it is called over TLS.
//! Each has a deadline of its own.
//!
//! It tries one address; which ones there are, and what follows from a failure, is the caller's.

use crate::io::tls::{ClientTls, Side};
use crate::io::turn::{Connected, Secured};
use crate::io::wheel::Timer;
use crate::io::{Io, Stream};
use std::net::SocketAddr;
use std::time::Duration;

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undialled {
    /// The address cannot be reached.
    Refused,
    /// Time was over before it was.
    Late,
    /// Whoever answers is not who was called, or does not speak TLS.
    Unsecured,
    /// Time was over before that was known.
    LateUnsecured,
}

/// Dials `to`. The time for connecting is armed by the caller, for all addresses together;
/// `handshake` is that of the handshake.
pub async fn dial<I: Io>(
    io: &I,
    to: SocketAddr,
    tls: Option<&ClientTls>,
    timer: &Timer,
    handshake: Duration,
) -> Result<I::Stream, Undialled> {
    let mut stream = io.connect(to).map_err(|_| Undialled::Refused)?;
    match Connected::new(&mut stream, timer).await {
        Some(Ok(())) => {}
        Some(Err(_)) => return Err(Undialled::Refused),
        None => {
            stream.shutdown();
            return Err(Undialled::Late);
        }
    }
    let Some(tls) = tls else { return Ok(stream) };
    let mut stream = io.secure(stream, Side::Client(tls)).map_err(|_| Undialled::Unsecured)?;
    timer.arm(handshake);
    match Secured::new(&mut stream, timer).await {
        Some(Ok(())) => Ok(stream),
        ended => {
            stream.shutdown();
            Err(if ended.is_some() { Undialled::Unsecured } else { Undialled::LateUnsecured })
        }
    }
}
