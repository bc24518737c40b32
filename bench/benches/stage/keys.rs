//! Who calls, out of a hundred thousand keys: what a credential costs that a connection shows for
//! the first time, and what it costs from then on.
//!
//! What a connection remembers is private to the pipeline; [`Keys::remembered`] is the same four
//! steps (the credential is copied, the table's version read, the two texts compared, the state
//! word read) over the same table.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use tollgate::control::keys::KeyText;
use tollgate::exchange::bundle::Bundle;
use tollgate::exchange::ids::KeyId;
use tollgate::exchange::keys::KeyTable;

/// What the start of a large node is measured with too.
pub(crate) const KEYS: usize = 100_000;

/// From one key to the next: far enough that neither the text nor its place in the table is in a
/// cache because of the one before. Shares no factor with [`KEYS`], so every key has its turn.
const STEP: usize = 40_503;

/// As a connection holds it: the outer count is its thread's own.
type Payer = Rc<Arc<Bundle>>;

/// The keys of a node and the connection of one of them.
pub(crate) struct Keys {
    table: KeyTable,
    texts: Vec<KeyText>,
    next: usize,
    presented: Vec<u8>,
    known: Vec<u8>,
    bundle: Payer,
    version: u64,
}

impl Keys {
    /// `None` where there is nothing random to make them of.
    pub(crate) fn new() -> Option<Keys> {
        let texts: Vec<KeyText> = (0..KEYS).map(|_| KeyText::mint().ok()).collect::<Option<_>>()?;
        let bundles = texts.iter().zip(1..);
        let bundles = bundles.map(|(text, id)| {
            (text.digest(), Arc::new(Bundle::new(KeyId(id), "one of a hundred thousand")))
        });
        let table = KeyTable::of(bundles);
        let bundle = Rc::new(table.find(&texts[0].digest())?);
        let known = texts[0].reveal().as_bytes().to_vec();
        let (presented, version) = (Vec::with_capacity(known.len()), table.version());
        Some(Keys { table, texts, next: 0, presented, known, bundle, version })
    }

    /// SHA-256 of the next key's text, and its bundle out of the table.
    pub(crate) fn look_up(&mut self) -> bool {
        self.next = (self.next + STEP) % KEYS;
        let digest = black_box(&self.texts[self.next]).digest();
        self.table.find(&digest).is_some_and(|bundle| bundle.standing().is_ok())
    }

    /// The same key once more on its connection.
    pub(crate) fn remembered(&mut self) -> bool {
        self.presented.clear();
        self.presented.extend_from_slice(black_box(self.texts[0].reveal().as_bytes()));
        let known = self.version == self.table.version() && self.known == self.presented;
        let bundle = self.bundle.clone();
        known && bundle.standing().is_ok()
    }
}
