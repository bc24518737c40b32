//! Values kept under tokens that are never valid twice: an event or timer of a closed connection
//! finds nothing instead of its successor. Bound: the caller's; tokens wrap after 2³² uses of one
//! place.

/// Marks the upper half of the token space, which callers use for listeners and wake-ups.
pub(crate) const RESERVED: u64 = 1 << 63;

#[derive(Debug)]
struct Place<T> {
    uses: u32,
    value: Option<T>,
}

/// Values by token.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Place<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    /// No values yet.
    pub(crate) fn new() -> Slots<T> {
        Slots { places: Vec::new(), free: Vec::new() }
    }

    /// Keeps what `make` builds from its own token.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(u64) -> T) -> u64 {
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.places.push(Place { uses: 0, value: None });
                self.places.len() - 1
            }
        };
        let place = &mut self.places[at];
        let token = (at as u64) | (u64::from(place.uses & (u32::MAX >> 1)) << 32);
        place.value = Some(make(token));
        token
    }

    /// The value of `token`, unless it was removed.
    pub(crate) fn get_mut(&mut self, token: u64) -> Option<&mut T> {
        let place = self.places.get_mut((token & 0xffff_ffff) as usize)?;
        if u64::from(place.uses & (u32::MAX >> 1)) != token >> 32 {
            return None;
        }
        place.value.as_mut()
    }

    /// Takes the value of `token` out.
    pub(crate) fn remove(&mut self, token: u64) -> Option<T> {
        let value = {
            self.get_mut(token)?;
            let place = self.places.get_mut((token & 0xffff_ffff) as usize)?;
            place.uses = place.uses.wrapping_add(1);
            place.value.take()
        };
        self.free.push((token & 0xffff_ffff) as usize);
        value
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn a_token_of_a_removed_value_finds_nothing() {
        let mut slots = Slots::new();
        let first = slots.insert_with(|_| "first");
        assert_eq!(slots.remove(first), Some("first"));
        let second = slots.insert_with(|_| "second");
        assert_ne!(first, second);
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get_mut(second), Some(&mut "second"));
        assert_eq!(slots.len(), 1);
    }
}
