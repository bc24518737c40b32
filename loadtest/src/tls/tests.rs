//! Sockets against each other, and the rigs over TLS against themselves.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};

use super::{Identity, Papers, Socket, Trust};
use crate::loopback;

const FREE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// Far more turns than any exchange here takes.
const TURNS_MAX: usize = 1_000_000;

struct Pair {
    calling: Socket,
    called: Socket,
    room: Vec<u8>,
}

fn pair(trust: Option<&Trust>, identity: Option<&Identity>) -> Pair {
    let listener = TcpListener::bind(std::net::SocketAddr::from(FREE)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        loopback::tune(stream).unwrap();
    }
    let whom = listener.local_addr().unwrap().ip();
    Pair {
        calling: Socket::calling(near, whom, trust).unwrap(),
        called: Socket::called(far, identity).unwrap(),
        room: vec![0; 64 << 10],
    }
}

fn known() -> (Trust, Identity) {
    let papers = Papers::made().unwrap();
    let identity = Identity::of_pem(&papers.chain, &papers.key).unwrap();
    (Trust::of_pem(&papers.ca).unwrap(), identity)
}

/// What a read or a write came to, if it did not have to wait.
fn now<T>(result: std::io::Result<T>) -> Option<std::io::Result<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        result => Some(result),
    }
}

impl Pair {
    /// Both take turns until they can speak, or one of them cannot.
    fn shake(&mut self) -> std::io::Result<()> {
        for _ in 0..TURNS_MAX {
            if !self.calling.shaking() && !self.called.shaking() {
                return Ok(());
            }
            for socket in [&mut self.called, &mut self.calling] {
                if let Some(Err(error)) = now(socket.read(&mut self.room)) {
                    return Err(error);
                }
            }
        }
        panic!("no handshake");
    }
}

#[test]
fn bytes_pass_whole_both_ways_plain_and_secured() {
    let (trust, identity) = known();
    let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    for secured in [false, true] {
        let mut pair = pair(secured.then_some(&trust), secured.then_some(&identity));
        pair.shake().unwrap();
        for turned in [false, true] {
            let Pair { calling, called, room } = &mut pair;
            let (from, to) = if turned { (called, calling) } else { (calling, called) };
            let (mut at, mut got) = (0, Vec::new());
            for _ in 0..TURNS_MAX {
                if at < sent.len()
                    && let Some(count) = now(from.write(&sent[at..]))
                {
                    at += count.unwrap();
                }
                if let Some(count) = now(to.read(room)) {
                    got.extend_from_slice(&room[..count.unwrap()]);
                }
                if got.len() == sent.len() {
                    break;
                }
            }
            assert!(got == sent, "{} of {}", got.len(), sent.len());
        }
    }
}

#[test]
fn an_end_is_one_only_if_it_was_said() {
    let (trust, identity) = known();
    for said in [false, true] {
        let mut pair = pair(Some(&trust), Some(&identity));
        pair.shake().unwrap();
        assert!(!pair.called.peer_left());
        if said {
            pair.calling.end().unwrap();
            assert!(pair.called.peer_left());
        } else {
            drop(pair.calling);
        }
        let end = std::iter::repeat_with(|| now(pair.called.read(&mut pair.room)));
        let end = end.take(TURNS_MAX).flatten().next().expect("an end");
        assert_eq!(end.is_ok_and(|count| count == 0), said);
    }
}

#[test]
fn a_stranger_is_not_believed() {
    let ((trust, _), (_, identity)) = (known(), known());
    let error = pair(Some(&trust), Some(&identity)).shake().expect_err("a stranger");
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn who_is_called_without_tls_is_told_so() {
    let (_, identity) = known();
    let mut pair = pair(None, Some(&identity));
    pair.calling.write(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let error = pair.shake().expect_err("no TLS");
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let mut alert = [0];
    pair.calling.stream().read_exact(&mut alert).unwrap();
    assert_eq!(alert, [21]);
}

#[test]
fn papers_are_of_use_from_their_folder() {
    let folder = std::env::temp_dir().join(format!("loadtest-papers-{}", std::process::id()));
    Papers::made().unwrap().write(&folder).unwrap();
    let trust = Trust::of_file(&folder.join(super::CA_FILE)).unwrap();
    let identity = Identity::of_folder(&folder).unwrap();
    pair(Some(&trust), Some(&identity)).shake().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(Identity::of_folder(&folder).unwrap_err().to_string().contains("chain.pem"));
}
