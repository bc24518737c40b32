//! The body bytes a shard may hold. Every body leases what it occupies beyond the first buffer;
//! a lease gives everything back when it is dropped, on whatever path that happens.

use std::cell::Cell;
use std::rc::Rc;

/// What is left to lease.
#[derive(Debug)]
pub struct Allowance {
    left: Cell<u64>,
}

/// A body's share of the allowance.
#[derive(Debug)]
pub struct Lease {
    from: Rc<Allowance>,
    bytes: u64,
}

/// The allowance has no such room now.
#[derive(Debug, PartialEq, Eq)]
pub struct Spent;

impl Allowance {
    /// An allowance of `bytes`.
    pub fn new(bytes: u64) -> Rc<Allowance> {
        Rc::new(Allowance { left: Cell::new(bytes) })
    }

    /// What is left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// A lease of nothing, to grow later.
    pub fn lease(self: &Rc<Allowance>) -> Lease {
        Lease { from: self.clone(), bytes: 0 }
    }
}

impl Lease {
    /// Grows the lease to `bytes` in all; smaller ones stay as they are.
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), Spent> {
        let Some(more) = bytes.checked_sub(self.bytes) else { return Ok(()) };
        let left = self.from.left.get().checked_sub(more).ok_or(Spent)?;
        self.from.left.set(left);
        self.bytes = bytes;
        Ok(())
    }

    /// Gives everything back.
    pub fn give_up(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.from.left.set(self.from.left.get() + bytes);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_gives_back_what_was_leased() {
        let allowance = Allowance::new(100);
        let mut first = allowance.lease();
        let mut second = allowance.lease();
        assert_eq!(first.grow_to(60), Ok(()));
        assert_eq!(second.grow_to(41), Err(Spent));
        assert_eq!(second.grow_to(40), Ok(()));
        assert_eq!(first.grow_to(10), Ok(()), "a lease never shrinks");
        assert_eq!(allowance.left(), 0);
        drop(first);
        assert_eq!(allowance.left(), 60);
        drop(second);
        assert_eq!(allowance.left(), 100);
    }
}
