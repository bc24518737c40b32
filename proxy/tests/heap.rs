//! The allocator's settings, in a process of their own: what other tests have left in a heap would
//! serve pieces that a fresh one maps.
#![cfg(target_env = "gnu")]

use tollgate::io::heap::{MAPPED_BYTES_MIN, settle};

/// A piece with a mapping of its own begins behind two words at the beginning of a page.
fn is_mapped(piece: &[u8]) -> bool {
    piece.as_ptr() as usize % 4096 == 2 * size_of::<usize>()
}

#[test]
fn freed_mappings_do_not_move_large_pieces_into_the_heap() {
    assert!(settle());
    for _ in 0..2 {
        let mapped = [8, 1, 2, 4].map(|n| vec![1_u8; n << 20]);
        assert!(mapped.iter().all(|piece| is_mapped(piece)));
    }
    let half = usize::try_from(MAPPED_BYTES_MIN).unwrap() / 2;
    let small = [0; 16].map(|_: i32| vec![1_u8; half]);
    assert!(!small.iter().all(|piece| is_mapped(piece)));
}
