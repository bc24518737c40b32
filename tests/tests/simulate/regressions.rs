//! Seeds that once failed, named by what was wrong.

use crate::seeds::must_hold;

#[test]
fn a_first_seed() {
    must_hold(1);
}
