//! A TLS session between bytes and bytes: records in, plaintext out, and the way back. rustls'
//! unbuffered connections do the work, so that no byte is held here: what is not yet a whole
//! record stays with the caller.
//!
//! It deliberately does no I/O and owns no buffer. Renegotiation does not exist in rustls and
//! early data is off, so the bytes of a session are read and written once, in order.
//!
//! Bound: one record at a time, 16 KiB of plaintext.

use super::settings::{ClientTls, ServerTls};
use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{CommonState, Error};

/// Plaintext that one record carries at most.
pub(super) const RECORD_PLAIN: usize = 16 * 1024;

/// What a record needs beside its plaintext, whatever the cipher: 5 bytes of head, an explicit
/// nonce of 8 in TLS 1.2, the content type in TLS 1.3, a tag of 16.
const RECORD_EXTRA: usize = 32;

/// Room for a record of the session's own that goes out with data: the answer to a key update.
const OWN_RECORD: usize = 64;

/// Bytes of a record's head.
const HEAD: usize = 5;

/// One end of a session.
pub(super) struct Session {
    end: End,
    /// The peer has ended its direction, as TLS ends one.
    heard_end: bool,
    /// A message of the handshake is not whole: rustls has read its first records and keeps only
    /// their place in the bytes it was given.
    fragment: bool,
}

enum End {
    /// We dialled.
    Client(UnbufferedClientConnection),
    /// We accepted.
    Server(UnbufferedServerConnection),
}

/// How far a handshake has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// What was appended has to reach the peer.
    Send,
    /// The peer has to say more.
    Wait,
    /// Both sides may send data.
    Open,
}

/// What a reading of records came to.
#[derive(Debug)]
pub(super) struct Opened {
    /// Bytes at the front that are not needed any more.
    pub(super) consumed: usize,
    /// What was wrong with the last one.
    pub(super) fault: Option<Error>,
}

/// What a step is to do if the session lets it.
enum Want<'a> {
    /// Say what there is to say.
    Nothing,
    /// Hand out plaintext.
    Read(&'a mut dyn FnMut(&[u8])),
    /// Append this as records.
    Seal(&'a [u8]),
    /// Append the end of our direction.
    Bye,
}

/// What a step came to.
enum Step {
    /// Something was done: there may be more at once.
    More,
    /// What was appended has to reach the peer.
    Send,
    /// The peer has to say more.
    Wait,
    /// Data may pass, and there is none to be read.
    Open,
    /// What was asked for is done.
    Done,
    /// The peer has ended its direction.
    HeardEnd,
    /// Both directions have ended.
    Closed,
    Failed(Error),
}

// === impl Session ===

impl Session {
    /// Begins as the side that dialled.
    pub(super) fn client(tls: &ClientTls) -> Result<Session, Error> {
        let (config, name) = tls.parts();
        Ok(Session::new(End::Client(UnbufferedClientConnection::new(config, name)?)))
    }

    /// Begins as the side that was called.
    pub(super) fn server(tls: &ServerTls) -> Result<Session, Error> {
        Ok(Session::new(End::Server(UnbufferedServerConnection::new(tls.config())?)))
    }

    fn new(end: End) -> Session {
        Session { end, heard_end: false, fragment: false }
    }

    /// Whether the peer has ended its direction, as TLS ends one.
    pub(super) fn heard_end(&self) -> bool {
        self.heard_end
    }

    /// Whether the bytes that are left of the last reading have to be there for whatever is done
    /// next: in them lies the beginning of a message.
    pub(super) fn keeps_place(&self) -> bool {
        self.fragment
    }

    /// Goes on with the handshake over what has come, appending what is to go out. What has been
    /// used is taken from the front of `inbox`. Data may have come right behind the last message:
    /// the first record of it is handed to `early`.
    pub(super) fn shake(
        &mut self,
        inbox: &mut Vec<u8>,
        out: &mut Vec<u8>,
        mut early: impl FnMut(&[u8]),
    ) -> Result<Progress, Error> {
        let mut used = 0;
        let result = loop {
            let mut data = false;
            let mut read = |plain: &[u8]| {
                data = true;
                early(plain);
            };
            let (discard, step) = self.step(rest(inbox, used), out, Want::Read(&mut read));
            used += discard;
            match step {
                Step::Failed(error) => break Err(error),
                Step::Send => break Ok(Progress::Send),
                Step::Wait => break Ok(Progress::Wait),
                Step::Open | Step::Closed => {
                    self.fragment = has_record(rest(inbox, used));
                    break Ok(Progress::Open);
                }
                Step::More | Step::Done | Step::HeardEnd if !data => {}
                Step::More | Step::Done | Step::HeardEnd => break Ok(Progress::Open),
            }
        };
        // While it waits it is given all there is anyway.
        inbox.drain(..used.min(inbox.len()));
        match result {
            Ok(Progress::Open) if !out.is_empty() => Ok(Progress::Send),
            result => result,
        }
    }

    /// Reads whole records at the front of `cipher` and hands their plaintext to `take`, until
    /// that says it is full. What the session has to say itself is appended to `out`.
    pub(super) fn open(
        &mut self,
        cipher: &mut [u8],
        out: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]) -> Room,
    ) -> Opened {
        let mut opened = Opened { consumed: 0, fault: None };
        let mut room = Room::Left;
        // Between two records of data no message is under way.
        self.fragment = false;
        while room == Room::Left {
            let mut read = |plain: &[u8]| room = take(plain);
            let left = rest(cipher, opened.consumed);
            let (discard, step) = self.step(left, out, Want::Read(&mut read));
            opened.consumed += discard;
            match step {
                Step::More | Step::Done | Step::Send | Step::HeardEnd => {}
                Step::Wait | Step::Open | Step::Closed => {
                    self.fragment = has_record(rest(cipher, opened.consumed)) && !self.heard_end;
                    break;
                }
                Step::Failed(error) => {
                    opened.fault = Some(error);
                    break;
                }
            }
        }
        opened
    }

    /// Appends `plain` to `out` as records. `held` is what the last reading left, if the session
    /// [keeps its place](Session::keeps_place) there.
    pub(super) fn seal(
        &mut self,
        held: &mut [u8],
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.write(held, Some(plain), out)
    }

    /// Appends the end of our direction.
    pub(super) fn bye(&mut self, held: &mut [u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.write(held, None, out)
    }

    /// Appends the alert that tells the peer what was wrong.
    pub(super) fn alert(&mut self, out: &mut Vec<u8>) {
        // No further: rustls would look for what it has read of the bytes that were wrong.
        while self.state().wants_write() {
            let (_, Step::More) = self.step(&mut [], out, Want::Nothing) else { return };
        }
    }

    fn write(
        &mut self,
        held: &mut [u8],
        plain: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        loop {
            match self.step(held, out, plain.map_or(Want::Bye, Want::Seal)).1 {
                Step::Done => return Ok(()),
                Step::More | Step::Send | Step::HeardEnd => {}
                Step::Wait | Step::Open | Step::Closed => return Err(Error::HandshakeNotComplete),
                Step::Failed(error) => return Err(error),
            }
        }
    }

    fn step(&mut self, cipher: &mut [u8], out: &mut Vec<u8>, want: Want<'_>) -> (usize, Step) {
        let (discard, step) = match &mut self.end {
            End::Client(session) => done(session.process_tls_records(cipher), out, want),
            End::Server(session) => done(session.process_tls_records(cipher), out, want),
        };
        self.heard_end |= matches!(step, Step::HeardEnd);
        (discard, step)
    }

    fn state(&self) -> &CommonState {
        match &self.end {
            End::Client(session) => session,
            End::Server(session) => session,
        }
    }
}

/// Whether whoever takes plaintext takes more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Left,
    Full,
}

/// Room that `plain` bytes need as records.
pub(super) fn sealed_room(plain: usize) -> usize {
    plain + plain.div_ceil(RECORD_PLAIN) * RECORD_EXTRA + OWN_RECORD
}

/// Whether a whole record lies at the front.
pub(super) fn has_record(cipher: &[u8]) -> bool {
    record_len(cipher).is_some_and(|len| cipher.len() >= len)
}

/// Bytes of the record that begins at the front, by its head.
pub(super) fn record_len(cipher: &[u8]) -> Option<usize> {
    let Some(&[_, _, _, high, low]) = cipher.get(..HEAD) else { return None };
    Some(HEAD + usize::from(u16::from_be_bytes([high, low])))
}

fn rest(bytes: &mut [u8], used: usize) -> &mut [u8] {
    bytes.get_mut(used..).unwrap_or_default()
}

/// Does what a state of rustls asks for, and what is wanted where it allows that.
fn done<D>(
    status: UnbufferedStatus<'_, '_, D>,
    out: &mut Vec<u8>,
    want: Want<'_>,
) -> (usize, Step) {
    let step = match status.state {
        Err(error) => Step::Failed(error),
        Ok(ConnectionState::ReadTraffic(mut traffic)) => match want {
            Want::Read(take) => match traffic.next_record() {
                Some(Ok(record)) => {
                    take(record.payload);
                    Step::More
                }
                Some(Err(error)) => Step::Failed(error),
                None => Step::More,
            },
            // It stays where it is until it is asked for.
            Want::Nothing | Want::Seal(_) | Want::Bye => Step::Open,
        },
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let encoded = append(out, OWN_RECORD, |room| match data.encode(room) {
                Ok(count) => Ok(count),
                Err(EncodeError::InsufficientSize(size)) => Err(Some(size.required_size)),
                Err(EncodeError::AlreadyEncoded) => Err(None),
            });
            if encoded { Step::More } else { Step::Failed(Error::EncryptError) }
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Step::Send
        }
        Ok(ConnectionState::BlockedHandshake) => Step::Wait,
        Ok(ConnectionState::PeerClosed) => Step::HeardEnd,
        Ok(ConnectionState::Closed) => Step::Closed,
        Ok(ConnectionState::WriteTraffic(mut traffic)) => {
            let (room, sealed) = match want {
                Want::Nothing | Want::Read(_) => return (status.discard, Step::Open),
                Want::Seal(plain) => (sealed_room(plain.len()), Some(plain)),
                Want::Bye => (OWN_RECORD, None),
            };
            let written = append(out, room, |room| {
                let written = match sealed {
                    Some(plain) => traffic.encrypt(plain, room),
                    None => traffic.queue_close_notify(room),
                };
                written.map_err(|error| match error {
                    EncryptError::InsufficientSize(size) => Some(size.required_size),
                    EncryptError::EncryptExhausted => None,
                })
            });
            if written { Step::Done } else { Step::Failed(Error::EncryptError) }
        }
        // Early data is off.
        Ok(_) => Step::Failed(Error::General("a state that nobody asked for".into())),
    };
    (status.discard, step)
}

/// Appends what `write` writes into the room it is given; asked for more, it is given that.
fn append(
    out: &mut Vec<u8>,
    room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> bool {
    let begin = out.len();
    let mut room = room;
    loop {
        out.resize(begin + room, 0);
        match write(rest(out, begin)) {
            Ok(count) => {
                out.truncate(begin + count);
                return true;
            }
            Err(Some(required)) if required > room => room = required,
            Err(_) => {
                out.truncate(begin);
                return false;
            }
        }
    }
}
