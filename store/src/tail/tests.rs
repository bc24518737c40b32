use super::*;
use proptest::prelude::*;

fn encoded(tail: &Tail<'_>, room: usize) -> (Vec<u8>, bool) {
    let mut bytes = vec![0; room];
    let (used, cut) = tail.encode(&mut bytes);
    bytes.truncate(usize::from(used));
    (bytes, cut)
}

fn full() -> Tail<'static> {
    Tail {
        model_asked: "fable-large",
        model_sent: "fable-large-2026-01-01",
        trace_id: Some([7; 16]),
        session: "session 1",
        end_user: "somebody",
        labels: Labels::Given(&["team=a", "stage=é"]),
        metadata: b"{\"a\":1}",
    }
}

#[test]
fn every_item_comes_back() {
    let (bytes, cut) = encoded(&full(), 512);
    assert!(!cut);
    assert_eq!(bytes.len(), full().bytes());
    assert_eq!(Tail::decode(&bytes), Some(full()));
    assert_eq!(Tail::decode(&[]), Some(Tail::default()));
}

#[test]
fn what_does_not_fit_is_cut_from_the_end_and_said() {
    let whole = full().bytes();
    for room in 0..whole {
        let (bytes, cut) = encoded(&full(), room);
        assert!(cut && bytes.len() <= room, "{room}");
        let read = Tail::decode(&bytes).expect("a cut tail is a tail");
        assert!(full().model_asked.starts_with(read.model_asked));
        assert!(full().model_sent.starts_with(read.model_sent));
        assert!(read.metadata.is_empty(), "half a document is none");
    }
}

#[test]
fn each_item_has_its_bound() {
    let long = "é".repeat(3000);
    let labels = vec![long.as_str(); LABELS_MAX + 1];
    let tail = Tail {
        model_asked: &long,
        model_sent: &long,
        session: &long,
        end_user: &long,
        labels: Labels::Given(&labels),
        metadata: long.as_bytes(),
        trace_id: Some([1; 16]),
    };
    let (bytes, cut) = encoded(&tail, 24 * 1024);
    assert!(cut);
    let read = Tail::decode(&bytes).expect("bounded");
    assert_eq!(read.model_asked.len(), MODEL_BYTES_MAX);
    assert_eq!(read.labels.iter().count(), LABELS_MAX);
    assert!(read.labels.iter().all(|label| label.len() == LABEL_BYTES_MAX));
    assert!(read.metadata.is_empty(), "6,000 bytes are more than a record keeps");
}

#[test]
fn items_out_of_order_twice_or_unknown_are_no_tail() {
    for bytes in [
        &[2, 1, 0, b'a', 1, 1, 0, b'a'][..],
        &[1, 1, 0, b'a', 1, 1, 0, b'a'],
        &[8, 1, 0, b'a'],
        &[0, 1, 0, b'a'],
        &[1, 2, 0, b'a'],
        &[1, 0, 0],
        &[1, 1],
        &[1, 1, 0, 0xFF],
        &[3, 1, 0, 7],
    ] {
        assert_eq!(Tail::decode(bytes), None, "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_tail_or_none(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Some(tail) = Tail::decode(&bytes) {
            prop_assert_eq!(encoded(&tail, 64).0, bytes);
        }
    }

    #[test]
    fn any_text_comes_back_or_is_cut(
        asked in ".{0,40}", sent in ".{0,40}", label in ".{1,20}", room in 0_usize..200,
    ) {
        let labels = [label.as_str()];
        let tail = Tail {
            model_asked: &asked,
            model_sent: &sent,
            labels: Labels::Given(&labels),
            ..Tail::default()
        };
        let (bytes, cut) = encoded(&tail, room);
        let read = Tail::decode(&bytes);
        prop_assert!(read.is_some());
        prop_assert_eq!(read == Some(tail), !cut);
        prop_assert_eq!(cut, tail.bytes() > room);
    }
}
