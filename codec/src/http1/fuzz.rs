//! What must hold for every input, as entries for the fuzz targets and for the corpus tests.
//!
//! Each entry panics when it does not hold, so nothing on the data path may call them; they
//! allocate.

use super::{
    BodyStep, ChunkError, Chunked, Fields, HEAD_BYTES_MAX, HeadError, HeadScan, RequestHead,
    ResponseHead, TrailerRule, parse_request, parse_response,
};

/// Inputs longer than this are cut in a few places only: the work is quadratic.
const EVERY_CUT_BYTES_MAX: usize = 1024;

/// A head has one meaning however it arrives, and everything said about it lies inside it.
pub fn fuzz_head(data: &[u8]) {
    check_head(data, parse_request, HeadScan::request, |head| head.head_len);
    for was_head in [false, true] {
        check_head(
            data,
            |buf, fields| parse_response(buf, fields, was_head),
            |scan, buf, fields| scan.response(buf, fields, was_head),
            |head| head.head_len,
        );
    }
    let mut fields = Fields::new();
    if let Ok(Some(head)) = parse_request(data, &mut fields) {
        check_request(data, &head, &fields);
    }
    if let Ok(Some(head)) = parse_response(data, &mut fields, false) {
        check_response(data, &head, &fields);
    }
}

/// A chunked body has one meaning however it arrives, whether stepped through or compacted.
pub fn fuzz_body(data: &[u8]) {
    let Some((&choice, input)) = data.split_first() else { return };
    let rule = if choice & 1 == 0 { TrailerRule::RefuseReserved } else { TrailerRule::DropAll };
    let whole = decode(input, input.len().max(1), rule);
    assert_eq!(whole, compacted(input, input.len().max(1), rule), "compacted whole");
    for piece in [1, 2, 3, usize::from(choice >> 1) + 4] {
        assert_eq!(whole, decode(input, piece, rule), "pieces of {piece}");
        assert_eq!(whole, compacted(input, piece, rule), "compacted pieces of {piece}");
    }
    for cut in cuts(input.len()) {
        assert_eq!(whole, decode_cut(input, cut, rule), "cut at {cut}");
    }
    if let Ok(Decoded { end: Some(end), body }) = &whole {
        assert!(body.len() + LAST_CHUNK_BYTES_MIN <= *end && *end <= input.len());
    }
}

/// `0`, CR LF, CR LF.
const LAST_CHUNK_BYTES_MIN: usize = 5;

fn check_head<H: Copy + PartialEq + core::fmt::Debug>(
    data: &[u8],
    parse: impl Fn(&[u8], &mut Fields) -> Result<Option<H>, HeadError>,
    scan: impl Fn(&mut HeadScan, &[u8], &mut Fields) -> Result<Option<H>, HeadError>,
    head_len: impl Fn(&H) -> usize,
) {
    let (mut fields, mut again) = (Fields::new(), Fields::new());
    let whole = parse(data, &mut fields);
    if let Ok(Some(head)) = &whole {
        let len = head_len(head);
        assert!(len <= data.len() && len <= HEAD_BYTES_MAX);
        let exact = data.get(..len).unwrap_or_default();
        assert_eq!(parse(exact, &mut again), whole, "the head alone");
        assert_eq!(again.lines(), fields.lines());
        let short = exact.get(..len - 1).unwrap_or_default();
        assert_eq!(parse(short, &mut again), Ok(None), "one byte short");
    } else {
        assert!(fields.is_empty());
    }
    let mut arriving = |lens: &mut dyn Iterator<Item = usize>| {
        let mut state = HeadScan::new();
        let outcome = lens
            .map(|len| scan(&mut state, data.get(..len).unwrap_or_default(), &mut again))
            .find(|outcome| *outcome != Ok(None));
        // Garbage is looked at each time the bytes double, so it may still be unjudged at the end.
        let outcome = outcome.unwrap_or_else(|| {
            let late = parse(data, &mut again);
            assert!(!matches!(late, Ok(Some(_))), "a complete head was not seen");
            late
        });
        assert_eq!(again.lines(), fields.lines());
        outcome
    };
    for cut in cuts(data.len()) {
        assert_eq!(arriving(&mut [cut, data.len()].into_iter()), whole, "cut at {cut}");
    }
    assert_eq!(arriving(&mut (1..=data.len())), whole, "byte by byte");
}

fn check_request(data: &[u8], head: &RequestHead, fields: &Fields) {
    check_fields(data, head.head_len, fields);
    assert!(head.method_text.end() <= head.head_len && !head.method_text.is_empty());
    if let Some(path) = head.target.path() {
        assert!(path.end() <= head.head_len);
        assert!(path.of(data).iter().all(|&byte| byte.is_ascii_graphic() && byte != b'#'));
    }
    assert!(head.minor == 0 || head.host);
    assert_eq!(fields.all(data, "authorization").count(), usize::from(head.authorizations));
}

fn check_response(data: &[u8], head: &ResponseHead, fields: &Fields) {
    check_fields(data, head.head_len, fields);
    assert!((100..600).contains(&head.status));
    assert!(head.reason.end() <= head.head_len);
    assert!(head.reason.of(data).iter().all(|byte| !b"\r\n\0".contains(byte)));
}

fn check_fields(data: &[u8], head_len: usize, fields: &Fields) {
    let mut end = 0;
    for line in fields.lines() {
        assert!(end < line.name.start() && !line.name.is_empty());
        assert!(line.name.end() < line.value.start() || line.value.is_empty());
        end = line.name.end().max(line.value.end());
        assert!(end + 4 <= head_len, "a field ends before the blank line");
    }
    for (name, value) in fields.iter(data) {
        assert!(name.iter().all(|&byte| super::bytes::is_token(byte)));
        assert!(value.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)));
        assert!(!matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']));
    }
    assert!(fields.all(data, "host").count() <= 1);
    assert!(
        fields.all(data, "content-length").count() + fields.all(data, "transfer-encoding").count()
            <= 1
    );
}

/// Every place to cut a short input in two; a spread of them for a long one.
fn cuts(len: usize) -> impl Iterator<Item = usize> {
    (0..=len).step_by(len / EVERY_CUT_BYTES_MAX * 61 + 1)
}

#[derive(Debug, PartialEq, Eq)]
struct Decoded {
    body: Vec<u8>,
    /// Where the surplus begins, when the body is complete.
    end: Option<usize>,
}

fn decode(input: &[u8], piece: usize, rule: TrailerRule) -> Result<Decoded, ChunkError> {
    let mut chunked = Chunked::new(rule);
    let mut decoded = Decoded { body: Vec::new(), end: None };
    let mut base = 0;
    for part in input.chunks(piece) {
        decoded.end = feed(&mut chunked, part, &mut decoded.body)?.map(|at| base + at);
        if decoded.end.is_some() {
            break;
        }
        base += part.len();
    }
    assert_eq!(chunked.is_finished(), decoded.end.is_some());
    Ok(decoded)
}

fn decode_cut(input: &[u8], cut: usize, rule: TrailerRule) -> Result<Decoded, ChunkError> {
    let mut chunked = Chunked::new(rule);
    let mut body = Vec::new();
    let (first, second) = input.split_at(cut);
    let end = match feed(&mut chunked, first, &mut body)? {
        Some(end) => Some(end),
        None => feed(&mut chunked, second, &mut body)?.map(|at| cut + at),
    };
    Ok(Decoded { body, end })
}

fn feed(
    chunked: &mut Chunked,
    part: &[u8],
    body: &mut Vec<u8>,
) -> Result<Option<usize>, ChunkError> {
    let mut taken = 0;
    loop {
        let rest = part.get(taken..).unwrap_or_default();
        match chunked.step(rest)? {
            BodyStep::Data { start, end } => {
                assert!(start < end && end <= rest.len(), "data is never empty");
                body.extend_from_slice(rest.get(start..end).unwrap_or_default());
                taken += end;
            }
            BodyStep::NeedMore => return Ok(None),
            BodyStep::End { consumed } => return Ok(Some(taken + consumed)),
        }
    }
}

/// As [`decode`], by compaction behind a few bytes that must stay as they are.
fn compacted(input: &[u8], piece: usize, rule: TrailerRule) -> Result<Decoded, ChunkError> {
    const BEFORE: &[u8] = b"head";
    let mut chunked = Chunked::new(rule);
    let mut buf = BEFORE.to_vec();
    let (mut from, mut read) = (buf.len(), 0);
    for part in input.chunks(piece) {
        buf.extend_from_slice(part);
        read += part.len();
        let state = chunked.compact(&mut buf, from)?;
        from = state.decoded_end;
        if state.finished {
            let surplus = buf.len() - from;
            assert_eq!(buf.get(from..), input.get(read - surplus..read), "surplus is kept");
            buf.truncate(from);
            let body = buf.split_off(BEFORE.len());
            assert_eq!(buf, BEFORE);
            return Ok(Decoded { body, end: Some(read - surplus) });
        }
        assert_eq!(buf.len(), from, "nothing undecoded is left over");
    }
    assert_eq!(buf.get(..BEFORE.len()), Some(BEFORE));
    let body = buf.split_off(BEFORE.len());
    Ok(Decoded { body, end: None })
}
