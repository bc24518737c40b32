//! The attribution tail: who asked, for which model, on whose behalf. Text and bytes of others,
//! each item length-prefixed and bounded, the most important first: where a size class has no
//! room, the end is cut and the record says so.
//!
//! Nothing here is interpreted. Bounds: the constants below; together they fit the largest slot.

/// A model's name. The longest in use have about 100 bytes.
pub const MODEL_BYTES_MAX: usize = 256;
/// A session's or end user's name; clients send ids and digests.
pub const NAME_BYTES_MAX: usize = 256;
/// Labels of one record.
pub const LABELS_MAX: usize = 64;
/// One label.
pub const LABEL_BYTES_MAX: usize = 256;
/// Metadata, as the caller sent it.
pub const METADATA_BYTES_MAX: usize = 4096;

/// Tag and length before each item.
const ITEM_HEAD: usize = 3;

const _: () = assert!(
    2 * (MODEL_BYTES_MAX + NAME_BYTES_MAX + 2 * ITEM_HEAD)
        + LABELS_MAX * (LABEL_BYTES_MAX + ITEM_HEAD)
        + (16 + ITEM_HEAD)
        + (METADATA_BYTES_MAX + ITEM_HEAD)
        + crate::record::PRELUDE_BYTES
        + crate::record::HEAD_BYTES
        <= crate::record::RECORD_BYTES_MAX,
    "a tail with every item at its bound fits the largest slot"
);

/// Tags of the items, in the order they are written. Fixed for ever, as the enums' numbers.
mod tag {
    pub(super) const MODEL_ASKED: u8 = 1;
    pub(super) const MODEL_SENT: u8 = 2;
    pub(super) const TRACE_ID: u8 = 3;
    pub(super) const SESSION: u8 = 4;
    pub(super) const END_USER: u8 = 5;
    pub(super) const LABEL: u8 = 6;
    pub(super) const METADATA: u8 = 7;
}

/// Who asked, for what. Empty text is the same as none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tail<'b> {
    /// The model as the caller named it.
    pub model_asked: &'b str,
    /// The model as sent upstream.
    pub model_sent: &'b str,
    /// The trace the exchange belongs to.
    pub trace_id: Option<[u8; 16]>,
    /// The session.
    pub session: &'b str,
    /// The end user.
    pub end_user: &'b str,
    /// Labels of key, project and caller.
    pub labels: Labels<'b>,
    /// Metadata as sent: bytes, nobody here reads them.
    pub metadata: &'b [u8],
}

/// Labels, given one by one or as they stand in a record.
#[derive(Clone, Copy, Debug)]
pub enum Labels<'b> {
    /// To be written.
    Given(&'b [&'b str]),
    /// As read: whole items, checked.
    Read(&'b [u8]),
}

// === impl Tail ===

impl<'b> Tail<'b> {
    /// Bytes it takes when nothing is cut.
    pub fn bytes(&self) -> usize {
        self.items().map(|(_, bytes)| ITEM_HEAD + bytes.len()).sum()
    }

    /// Writes it; how many bytes were used, and whether something was cut.
    pub(crate) fn encode(&self, room: &mut [u8]) -> (u16, bool) {
        let (mut used, mut cut) = (0_usize, self.over_bounds());
        for (tag, bytes) in self.items() {
            let left = room.len().min(usize::from(u16::MAX)).saturating_sub(used + ITEM_HEAD);
            let kept = if tag == tag::TRACE_ID || tag == tag::METADATA {
                // Half an id or half a document is none.
                if bytes.len() <= left { bytes } else { &[] }
            } else {
                cut_text(bytes, left)
            };
            cut |= kept.len() < bytes.len();
            let Ok(len) = u16::try_from(kept.len()) else { continue };
            let Some(to) = room.get_mut(used..used + ITEM_HEAD + kept.len()) else { continue };
            if kept.is_empty() {
                continue;
            }
            let (head, place) = to.split_at_mut(ITEM_HEAD);
            let [low, high] = len.to_le_bytes();
            head.copy_from_slice(&[tag, low, high]);
            place.copy_from_slice(kept);
            used += ITEM_HEAD + kept.len();
        }
        // `left` keeps `used` below u16::MAX.
        (u16::try_from(used).unwrap_or(0), cut)
    }

    /// Reads it; `None` if it is not made of whole, known items in their order.
    pub(crate) fn decode(bytes: &'b [u8]) -> Option<Tail<'b>> {
        let mut tail = Tail::default();
        let (mut rest, mut before) = (bytes, 0);
        let mut labels_from = None;
        while !rest.is_empty() {
            let here = bytes.len() - rest.len();
            let (tag, item, after) = item(rest)?;
            // Only labels repeat.
            if tag < before || (tag == before && tag != tag::LABEL) {
                return None;
            }
            match tag {
                tag::MODEL_ASKED => tail.model_asked = std::str::from_utf8(item).ok()?,
                tag::MODEL_SENT => tail.model_sent = std::str::from_utf8(item).ok()?,
                tag::TRACE_ID => tail.trace_id = Some(item.try_into().ok()?),
                tag::SESSION => tail.session = std::str::from_utf8(item).ok()?,
                tag::END_USER => tail.end_user = std::str::from_utf8(item).ok()?,
                tag::LABEL => {
                    std::str::from_utf8(item).ok()?;
                    let from = *labels_from.get_or_insert(here);
                    tail.labels = Labels::Read(bytes.get(from..bytes.len() - after.len())?);
                }
                tag::METADATA => tail.metadata = item,
                _ => return None,
            }
            (rest, before) = (after, tag);
        }
        Some(tail)
    }

    fn over_bounds(&self) -> bool {
        self.model_asked.len().max(self.model_sent.len()) > MODEL_BYTES_MAX
            || self.session.len().max(self.end_user.len()) > NAME_BYTES_MAX
            || self.metadata.len() > METADATA_BYTES_MAX
            || self.labels.iter().count() > LABELS_MAX
            || self.labels.iter().any(|label| label.len() > LABEL_BYTES_MAX)
    }

    /// Every item that is there, bounded, in the order of the tags.
    fn items(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let text = |tag, text: &'b str, max| (tag, cut_text(text.as_bytes(), max));
        let metadata = if self.metadata.len() <= METADATA_BYTES_MAX { self.metadata } else { &[] };
        let labels = self.labels.iter().take(LABELS_MAX);
        [
            text(tag::MODEL_ASKED, self.model_asked, MODEL_BYTES_MAX),
            text(tag::MODEL_SENT, self.model_sent, MODEL_BYTES_MAX),
            (tag::TRACE_ID, self.trace_id.as_ref().map_or(&[][..], |id| id)),
            text(tag::SESSION, self.session, NAME_BYTES_MAX),
            text(tag::END_USER, self.end_user, NAME_BYTES_MAX),
        ]
        .into_iter()
        .chain(labels.map(move |label| text(tag::LABEL, label, LABEL_BYTES_MAX)))
        .chain([(tag::METADATA, metadata)])
        .filter(|(_, bytes)| !bytes.is_empty())
    }
}

// === impl Labels ===

impl Default for Labels<'_> {
    fn default() -> Self {
        Labels::Given(&[])
    }
}

impl PartialEq for Labels<'_> {
    fn eq(&self, other: &Labels<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'b> Labels<'b> {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &'b str> + use<'b> {
        let (given, mut read) = match *self {
            Labels::Given(given) => (given, &[][..]),
            Labels::Read(read) => (&[][..], read),
        };
        given.iter().copied().chain(std::iter::from_fn(move || {
            let (_, label, after) = item(read)?;
            read = after;
            std::str::from_utf8(label).ok()
        }))
    }
}

/// The first item: its tag, its bytes, what follows.
fn item(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([tag, low, high], rest) = bytes.split_first_chunk::<ITEM_HEAD>()?;
    let (item, after) = rest.split_at_checked(usize::from(u16::from_le_bytes([*low, *high])))?;
    Some((*tag, item, after)).filter(|_| !item.is_empty())
}

/// At most `max` bytes of UTF-8, cut at a character.
fn cut_text(text: &[u8], max: usize) -> &[u8] {
    let mut end = text.len().min(max);
    // A continuation byte never begins a character; four steps back at most.
    while end < text.len() && text.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
        let Some(before) = end.checked_sub(1) else { break };
        end = before;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
