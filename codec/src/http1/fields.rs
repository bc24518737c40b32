//! The field lines of one head, as offsets in an array that the caller owns.
//!
//! Deliberately keeps neither pointers nor copies, and does not merge repeated fields: order and
//! repetition stay visible. Bound: [`FIELDS_MAX`] lines; the head parser refuses the line after
//! that.

use super::Span;

/// Field lines a head may have. Real clients send under 40; a head of tiny lines must not make
/// every later look-up slow.
pub const FIELDS_MAX: usize = 100;

/// One field line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The name as it was written; compare without regard to case.
    pub name: Span,
    /// The value without the white space around it; may be empty, may hold bytes above 0x7f.
    pub value: Span,
}

/// The field lines of one head. Filled by the parser, read together with the buffer.
#[derive(Clone, Debug)]
pub struct Fields {
    lines: [Field; FIELDS_MAX],
    len: u8,
    /// First line named `Connection`; `len` when there is none.
    connection: u8,
}

// === impl Fields ===

impl Default for Fields {
    fn default() -> Self {
        Self::new()
    }
}

impl Fields {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        const EMPTY: Span = Span::EMPTY;
        Self { lines: [Field { name: EMPTY, value: EMPTY }; FIELDS_MAX], len: 0, connection: 0 }
    }

    /// Number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether the head had no field line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The lines as offsets, in order.
    #[must_use]
    pub fn lines(&self) -> &[Field] {
        self.lines.get(..self.len()).unwrap_or_default()
    }

    /// Name and value of every line, in order.
    pub fn iter<'a>(&'a self, buf: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.lines().iter().map(move |line| (line.name.of(buf), line.value.of(buf)))
    }

    /// The values of all lines of that name, in order. `name` in any case.
    pub fn all<'a>(&'a self, buf: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.lines()
            .iter()
            .filter(move |line| line.name.len() == name.len())
            .filter(move |line| line.name.of(buf).eq_ignore_ascii_case(name.as_bytes()))
            .map(move |line| line.value.of(buf))
    }

    /// The value of the first line of that name.
    #[must_use]
    pub fn first<'a>(&'a self, buf: &'a [u8], name: &'a str) -> Option<&'a [u8]> {
        self.all(buf, name).next()
    }

    /// The lines from the first `Connection` on; none when there is no such line.
    pub(super) fn connection_and_later(&self) -> &[Field] {
        self.lines.get(usize::from(self.connection)..self.len()).unwrap_or_default()
    }

    pub(super) fn slots(&mut self) -> &mut [Field; FIELDS_MAX] {
        &mut self.lines
    }

    /// Makes the first `len` slots the table. `connection`: index of the first such line.
    pub(super) fn seal(&mut self, len: usize, connection: Option<usize>) {
        let len = u8::try_from(len.min(FIELDS_MAX)).unwrap_or(0);
        self.len = len;
        self.connection = connection.and_then(|at| u8::try_from(at).ok()).unwrap_or(len);
    }
}
