//! How secured connections end: an end that was not said is an error, and nothing that was cut is
//! made to look whole.

use super::world::{NAME, Stage, read, read_some, secured, write};
use crate::io::contract::{both, once};
use crate::io::script::{Chop, Gone, LinkOptions};
use crate::io::{Chunk, Recall, Stream};
use rustls::AlertDescription;
use std::io::ErrorKind;
use std::time::Duration;

#[test]
fn the_end_of_a_session_is_an_end_and_that_of_a_connection_alone_an_error() {
    for said in [true, false] {
        let stage = Stage::new();
        stage.run(async {
            let (mut near, mut far) = stage.open().await;
            far.say(b"all of it").await;
            if said {
                far.session.send_close_notify();
                far.flush().await;
            }
            far.peer.fin();
            assert_eq!(read_some(&mut near).await.unwrap(), b"all of it");
            for _ in 0..2 {
                match read_some(&mut near).await {
                    Ok(bytes) => assert!(said && bytes.is_empty()),
                    Err(error) => assert!(!said && error.kind() == ErrorKind::UnexpectedEof),
                }
            }
        });
    }
}

#[test]
fn a_cut_inside_a_record_is_an_error_behind_what_was_whole() {
    let stage = Stage::new();
    stage.run(async {
        let (mut near, mut far) = stage.open().await;
        far.say(b"whole").await;
        std::io::Write::write_all(&mut far.session.writer(), b"cut in two").unwrap();
        let mut record = Vec::new();
        far.session.write_tls(&mut record).unwrap();
        far.peer.send(&record[..record.len() - 1]).await.unwrap();
        far.peer.fin();
        assert_eq!(read_some(&mut near).await.unwrap(), b"whole");
        let error = read_some(&mut near).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    });
    assert_eq!(stage.buffers.lent(), 0);
}

#[test]
fn our_end_is_said_once_and_behind_all_we_wrote() {
    for both_ways in [true, false] {
        let stage = Stage::new();
        stage.run(async {
            let (mut near, mut far) = stage.open().await;
            write(&mut near, b"last words").await.result.unwrap();
            near.shutdown_write();
            if both_ways {
                near.shutdown();
            }
            assert_eq!(far.hear(100).await, b"last words");
            assert!(far.heard_end().await);
            let error = write(&mut near, b"more").await.result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        });
        assert_eq!(stage.buffers.lent(), 0);
    }
}

#[test]
fn a_dropped_an_aborted_and_a_cut_connection_say_no_end() {
    for how in ["dropped", "aborted", "cut in a write"] {
        let stage = Stage::new();
        stage.run(async {
            let (mut near, mut far) = stage.open().await;
            write(&mut near, b"part").await.result.unwrap();
            assert_eq!(far.hear(4).await, b"part", "{how}");
            match how {
                "dropped" => {}
                "aborted" => near.abort(),
                _ => {
                    near.start_write(Chunk::whole(vec![7; 8 * 1024 * 1024]));
                    assert!(once(|cx| near.poll_write(cx)).await.is_pending());
                    near.shutdown();
                }
            }
            drop(near);
            assert!(!far.heard_end().await, "{how}");
        });
    }
}

#[test]
fn bytes_that_are_no_record_are_answered_by_an_alert_and_end_the_connection() {
    let stage = Stage::new();
    stage.run(async {
        let (mut near, mut far) = stage.open().await;
        far.say(b"before").await;
        let mut forged = vec![23, 3, 3, 0, 32];
        forged.extend([9; 32]);
        far.peer.send(&forged).await.unwrap();
        assert_eq!(read_some(&mut near).await.unwrap(), b"before");
        let error = read_some(&mut near).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        let alert = far.take().await.unwrap_err();
        assert_eq!(alert, rustls::Error::AlertReceived(AlertDescription::BadRecordMac));
        assert!(write(&mut near, b"x").await.result.is_err());
        assert!(read_some(&mut near).await.is_err());
    });
    assert_eq!(stage.buffers.lent(), 0);
}

#[test]
fn a_peer_that_speaks_no_tls_is_an_error_of_the_handshake() {
    let stage = Stage::new();
    stage.run(async {
        let tls = stage.papers.trust().of_name("provider.test").unwrap();
        let (mut near, far) = stage.dial(&tls, stage.papers.far_server()).await;
        far.peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let error = secured(&mut near).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    });
    assert_eq!(stage.buffers.lent(), 0);
}

#[test]
fn a_handshake_that_hangs_is_ended_by_a_shutdown() {
    let stage = Stage::new();
    stage.run(async {
        let tls = stage.papers.trust().of_name("provider.test").unwrap();
        let (mut near, far) = stage.dial(&tls, stage.papers.far_server()).await;
        assert!(once(|cx| near.poll_secured(cx)).await.is_pending());
        stage.world.sleep(Duration::from_secs(5)).await;
        assert!(once(|cx| near.poll_secured(cx)).await.is_pending());
        near.shutdown();
        assert!(secured(&mut near).await.is_err());
        assert_eq!(far.peer.closed().await.unwrap(), Gone::Fin);
        assert!(secured(&mut near).await.is_err(), "it stays failed");
        let done = read(&mut near, Vec::with_capacity(8)).await;
        assert!(done.result.is_err());
    });
    assert_eq!(stage.buffers.lent(), 0);
}

#[test]
fn a_recall_leaves_a_record_that_came_in_part_for_the_next_read() {
    let stage = Stage::new();
    stage.run(async {
        let (mut near, mut far) = stage.open().await;
        std::io::Write::write_all(&mut far.session.writer(), b"in two parts").unwrap();
        let mut record = Vec::new();
        far.session.write_tls(&mut record).unwrap();
        let (first, second) = record.split_at(9);
        near.start_read(stage.buffers.take(), Recall::Able);
        assert!(once(|cx| near.poll_read(cx)).await.is_pending());
        far.peer.send(first).await.unwrap();
        assert!(once(|cx| near.poll_read(cx)).await.is_pending());
        near.recall_read();
        let done = std::future::poll_fn(|cx| near.poll_read(cx)).await;
        assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Interrupted);
        stage.buffers.give(done.buffer);
        near.start_watch();
        assert!(once(|cx| near.poll_watch(cx)).await.is_pending());
        let (sent, watched) =
            both(far.peer.send(second), std::future::poll_fn(|cx| near.poll_watch(cx))).await;
        sent.unwrap();
        watched.unwrap();
        assert_eq!(read_some(&mut near).await.unwrap(), b"in two parts");
    });
}

/// Which end the other side is.
#[derive(Clone, Copy, Debug)]
enum Role {
    Server,
    Client,
}

/// A conversation in which the other side's byte at `place` arrives spoilt. What it came to.
fn spoilt(role: Role, place: usize, bits: u8, chop: usize) -> std::io::Result<Vec<u8>> {
    let stage = Stage::new();
    let chop = Chop::AtMost(chop);
    let (to_dialer, to_acceptor) = (chop.clone(), chop);
    stage.world.set_link(LinkOptions { to_dialer, to_acceptor, ..LinkOptions::default() });
    let got = stage.run(async {
        let (mut near, mut far) = match role {
            Role::Server => {
                let tls = stage.papers.trust().of_name(NAME).unwrap();
                stage.dial(&tls, stage.papers.far_server()).await
            }
            Role::Client => stage.accept(&stage.papers.server(), stage.papers.far_client()).await,
        };
        far.spoils = Some((place, bits));
        let theirs = async {
            if far.shake().await.is_ok() {
                far.say(b"a word").await;
            }
            far.peer.fin();
            while let Ok(true) = far.take().await {}
        };
        let ours = async move {
            secured(&mut near).await?;
            let got = read_some(&mut near).await;
            near.shutdown();
            got
        };
        both(ours, theirs).await.0
    });
    assert_eq!(stage.buffers.lent(), 0);
    got
}

#[test]
fn one_spoilt_byte_is_an_error_wherever_it_lies_and_never_another_word() {
    for role in [Role::Server, Role::Client] {
        // Behind all there is: nothing is spoilt.
        assert_eq!(spoilt(role, usize::MAX, 1, 4096).unwrap(), b"a word", "{role:?}");
    }
    let mut faults = 0;
    for round in 0..400_usize {
        let role = if round % 2 == 0 { Role::Server } else { Role::Client };
        let place = round * 7 % 1_500;
        let bits = 1 << (round % 8);
        match spoilt(role, place, bits, [1, 9, 4096][round % 3]) {
            // A byte that means nothing, as a record's old version; or one behind the word.
            Ok(got) => assert!(got == b"a word" || got.is_empty(), "{role:?} {place}: {got:?}"),
            Err(_) => faults += 1,
        }
    }
    assert!(faults > 200, "{faults} of 400");
}
