//! Bytes through records: all of them, in order, in as few records as will do, with nothing held
//! while nothing is on its way.

use super::world::{NAME, Stage, read, read_some, secured, shake, write};
use crate::io::buffers::BUFFER_BYTES;
use crate::io::contract::{both, once};
use crate::io::script::{Chop, LinkOptions};
use crate::io::tls::session::RECORD_PLAIN;
use crate::io::{Chunk, Recall, Stream};
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use std::future::poll_fn;

fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// An echo of `len` bytes over a link that cuts as `chop` says.
fn echo(version: &'static SupportedProtocolVersion, chop: Chop, len: usize) {
    let stage = Stage::new();
    let (to_dialer, to_acceptor) = (chop.clone(), chop);
    stage.world.set_link(LinkOptions { to_dialer, to_acceptor, ..LinkOptions::default() });
    stage.run(async {
        let tls = stage.papers.trust().of_name(NAME).unwrap();
        let config = stage.papers.far_server_of(version);
        let (mut near, mut far) = stage.dial(&tls, config).await;
        shake(&mut near, &mut far).await.unwrap();
        let bytes = pattern(len);
        let (written, heard) = both(write(&mut near, &bytes), far.hear(len)).await;
        written.result.unwrap();
        assert!(heard == bytes);
        let reading = async {
            let mut got = Vec::new();
            for room in [1, 7, 1_000, BUFFER_BYTES, 40_000].into_iter().cycle() {
                if got.len() == len {
                    return got;
                }
                let done = read(&mut near, Vec::with_capacity(room)).await;
                assert!(done.result.unwrap() > 0);
                got.extend(done.buffer);
            }
            got
        };
        let ((), got) = both(far.say(&bytes), reading).await;
        assert!(got == bytes);
    });
}

#[test]
fn bytes_pass_whole_however_they_are_cut_on_their_way() {
    for (chop, len) in [
        (Chop::Whole, 1),
        (Chop::Whole, 1_000_000),
        (Chop::AtMost(1), 3_000),
        (Chop::AtMost(5), 40_000),
        (Chop::Random(2_000), 300_000),
        (Chop::Random(40_000), 1_000_000),
    ] {
        echo(&TLS13, chop.clone(), len);
        echo(&TLS12, chop, len);
    }
}

#[test]
fn a_write_is_as_few_records_as_hold_it() {
    for len in [1, RECORD_PLAIN, RECORD_PLAIN + 1, 10 * RECORD_PLAIN - 1] {
        let stage = Stage::new();
        stage.run(async {
            let (mut near, far) = stage.open().await;
            write(&mut near, &pattern(len)).await.result.unwrap();
            near.shutdown_write();
            let wire = far.peer.read_until_eof().await.unwrap();
            let (mut records, mut at) = (0, 0);
            while at < wire.len() {
                at += 5 + usize::from(u16::from_be_bytes([wire[at + 3], wire[at + 4]]));
                records += 1;
            }
            // The last one says the end.
            assert_eq!(records, len.div_ceil(RECORD_PLAIN) + 1, "{len}");
        });
        assert_eq!(stage.buffers.lent(), 0);
    }
}

#[test]
fn only_the_named_part_of_a_chunk_goes_out_and_the_chunk_comes_back() {
    let stage = Stage::new();
    stage.run(async {
        let (mut near, mut far) = stage.open().await;
        near.start_write(Chunk { bytes: b"0123456789".to_vec(), start: 3, end: 7 });
        let done = poll_fn(|cx| near.poll_write(cx)).await;
        done.result.unwrap();
        assert_eq!((done.chunk.start, done.chunk.end, done.chunk.bytes.len()), (3, 7, 10));
        assert_eq!(far.hear(4).await, b"3456");
    });
}

#[test]
fn a_connection_that_waits_holds_one_buffer_and_an_idle_one_none() {
    let stage = Stage::new();
    stage.run(async {
        let (mut near, mut far) = stage.open().await;
        assert_eq!(stage.buffers.lent(), 0, "after a handshake");
        near.start_read(stage.buffers.take(), Recall::Able);
        assert!(once(|cx| near.poll_read(cx)).await.is_pending());
        assert_eq!(stage.buffers.lent(), 1, "in a read that waits");
        far.say(b"here").await;
        let done = poll_fn(|cx| near.poll_read(cx)).await;
        assert_eq!((done.buffer.as_slice(), done.buffer.capacity()), (&b"here"[..], BUFFER_BYTES));
        assert_eq!(stage.buffers.lent(), 1, "after it");
        stage.buffers.give(done.buffer);
        near.start_watch();
        assert!(once(|cx| near.poll_watch(cx)).await.is_pending());
        assert_eq!(stage.buffers.lent(), 0, "in a watch");
        far.say(b"again").await;
        poll_fn(|cx| near.poll_watch(cx)).await.unwrap();
        assert_eq!(read_some(&mut near).await.unwrap(), b"again");
        write(&mut near, &pattern(100_000)).await.result.unwrap();
        assert_eq!(far.hear(100_000).await.len(), 100_000);
    });
}

/// A client may speak as soon as it has said its last word of the handshake, before our tickets are
/// out; what it says may come with that word.
#[test]
fn records_right_behind_the_handshake_are_read_whole_and_in_order() {
    for records in 1..=4_u8 {
        let stage = Stage::new();
        stage.run(async {
            let tls = stage.papers.server();
            let (mut near, mut far) = stage.accept(&tls, stage.papers.far_client()).await;
            let theirs = async {
                far.shake().await.unwrap();
                for record in 0..records {
                    far.say(&[record]).await;
                }
            };
            both(secured(&mut near), theirs).await.0.unwrap();
            let mut got = Vec::new();
            while got.len() < usize::from(records) {
                let done = read(&mut near, stage.buffers.take()).await;
                done.result.unwrap();
                got.extend_from_slice(&done.buffer);
                stage.buffers.give(done.buffer);
            }
            assert_eq!(got, (0..records).collect::<Vec<u8>>());
            write(&mut near, b"answer").await.result.unwrap();
            assert_eq!(far.hear(6).await, b"answer");
        });
        assert_eq!(stage.buffers.lent(), 0, "{records} records");
    }
}

#[test]
fn a_message_of_the_session_in_many_records_does_not_mix_with_our_data() {
    let stage = Stage::new();
    stage.world.set_link(LinkOptions { to_dialer: Chop::AtMost(11), ..LinkOptions::default() });
    stage.run(async {
        let tls = stage.papers.trust().of_name(NAME).unwrap();
        let mut config = stage.papers.far_server();
        // The smallest that rustls allows: each ticket comes in several records.
        config.max_fragment_size = Some(32);
        config.send_tls13_tickets = 8;
        let (mut near, mut far) = stage.dial(&tls, config).await;
        shake(&mut near, &mut far).await.unwrap();
        near.start_read(stage.buffers.take(), Recall::Never);
        let mut got = None;
        for round in 0..2_000_u32 {
            if let std::task::Poll::Ready(done) = once(|cx| near.poll_read(cx)).await {
                got = Some(done);
                break;
            }
            write(&mut near, &round.to_be_bytes()).await.result.unwrap();
            assert_eq!(far.hear(4).await, round.to_be_bytes());
            if round == 100 {
                far.say(b"data").await;
            }
        }
        let done = got.unwrap();
        assert_eq!(done.buffer, b"data");
        stage.buffers.give(done.buffer);
    });
    assert_eq!(stage.buffers.lent(), 0);
}

#[test]
fn new_keys_are_taken_and_answered() {
    let stage = Stage::new();
    stage.run(async {
        let (mut near, mut far) = stage.open().await;
        for round in 0..3_u8 {
            far.session.refresh_traffic_keys().unwrap();
            far.say(&[round]).await;
            assert_eq!(read_some(&mut near).await.unwrap(), [round]);
            write(&mut near, b"still here").await.result.unwrap();
            assert_eq!(far.hear(10).await, b"still here");
        }
    });
    assert_eq!(stage.buffers.lent(), 0);
}
