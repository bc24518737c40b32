//! Certificates as they are made, and elements as nobody makes them.

use super::*;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

const DAY_MS: u64 = 24 * 3_600_000;

fn made((from, to): ((i32, u8, u8), (i32, u8, u8))) -> Vec<u8> {
    let mut params = CertificateParams::new(vec!["gateway.test".to_owned()]).unwrap();
    params.not_before = date_time_ymd(from.0, from.1, from.2);
    params.not_after = date_time_ymd(to.0, to.1, to.2);
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

fn ms(text: &str) -> UnixMs {
    rfc3339::parse(text).unwrap()
}

/// An element with a short length.
fn short(tag: u8, contents: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(contents.len()).unwrap()], contents].concat()
}

/// A certificate of the first version with these two times.
fn with_times(first: &[u8], second: &[u8]) -> Vec<u8> {
    let validity = short(SEQUENCE, &[first, second].concat());
    let before = [short(INTEGER, &[7]), short(SEQUENCE, &[]), short(SEQUENCE, &[])].concat();
    short(SEQUENCE, &short(SEQUENCE, &[before, validity].concat()))
}

#[test]
fn both_ends_are_read_in_either_form_of_time() {
    for (days, from, to) in [
        (((2020, 1, 31), (2026, 2, 28)), "2020-01-31T00:00:00Z", "2026-02-28T00:00:00Z"),
        // From 2050 on years have four digits.
        (((2049, 12, 31), (2050, 1, 1)), "2049-12-31T00:00:00Z", "2050-01-01T00:00:00Z"),
        (((1975, 1, 1), (4096, 1, 1)), "1975-01-01T00:00:00Z", "4096-01-01T00:00:00Z"),
        (((1960, 1, 1), (9999, 12, 31)), "1970-01-01T00:00:00Z", "9999-12-31T00:00:00Z"),
    ] {
        let validity = Validity { not_before: ms(from), not_after: ms(to) };
        assert_eq!(of_der(&made(days)), Some(validity), "{from} to {to}");
    }
}

#[test]
fn times_that_are_none_and_elements_that_do_not_fit_are_nothing() {
    let good = short(UTC_TIME, b"260228235959Z");
    let end = ms("2026-02-28T23:59:59Z");
    let read = of_der(&with_times(&good, &good));
    assert_eq!(read, Some(Validity { not_before: end, not_after: end }), "of version 1 too");
    for (tag, text) in [
        (UTC_TIME, &b"260229000000Z"[..]),
        (UTC_TIME, b"261301000000Z"),
        (UTC_TIME, b"260228240000Z"),
        (UTC_TIME, b"2602282359Z"),
        (UTC_TIME, b"260228235959+0100"),
        (UTC_TIME, b"26022823595aZ"),
        (UTC_TIME, b"+60228235959Z"),
        (UTC_TIME, b""),
        (UTC_TIME, b"20260228235959Z"),
        (UTC_TIME, b"26022823595\xffZ"),
        (GENERALIZED_TIME, b"260228235959Z"),
        (GENERALIZED_TIME, b"20260228235959.5Z"),
        (GENERALIZED_TIME, b"00000228235959"),
        (INTEGER, b"260228235959Z"),
    ] {
        let text_shown = String::from_utf8_lossy(text).into_owned();
        assert_eq!(of_der(&with_times(&good, &short(tag, text))), None, "{text_shown}");
    }
    let third = [&good[..], &good].concat();
    assert_eq!(of_der(&with_times(&good, &third)), None, "a third time");
    for der in [
        &[][..],
        &[SEQUENCE],
        &[SEQUENCE, 0],
        &[SEQUENCE, 0x80, 0, 0],
        &[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff],
        &[SEQUENCE, 0x85, 0, 0, 0, 0, 1, 0],
        &[SEQUENCE, 0xff],
        &[INTEGER, 1, 0],
    ] {
        assert_eq!(of_der(der), None, "{der:x?}");
    }
}

#[test]
fn no_end_and_no_byte_of_a_certificate_upsets_the_reader() {
    let der = made(((2020, 1, 1), (2050, 1, 1)));
    let whole = of_der(&der);
    assert!(whole.is_some());
    for end in 0..der.len() {
        assert_eq!(of_der(&der[..end]), None, "cut at {end}");
    }
    let mut read = 0;
    for at in 0..der.len() {
        for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
            let mut other = der.clone();
            other[at] = byte;
            read += usize::from(of_der(&other) == whole);
        }
    }
    assert!(read > der.len(), "most of it is none of our business: {read}");
}

#[test]
fn what_clients_mind_is_told_and_nothing_else() {
    let from = UnixMs(10 * DAY_MS);
    let validity = Validity { not_before: from, not_after: UnixMs(20 * DAY_MS) };
    for (now, doubt) in [
        (UnixMs(from.0 - 1), Some("holds from 1970-01-11T00:00:00Z on, and not yet")),
        (from, None),
        (validity.not_after, None),
        (UnixMs(20 * DAY_MS + 1), Some("has ended, 1970-01-21T00:00:00Z")),
    ] {
        assert_eq!(validity.doubt(now).as_deref(), doubt, "{now:?}");
    }
}
