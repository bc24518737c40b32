use super::super::tests::Scratch;
use super::*;

fn node_of(scratch: &Scratch) -> Result<u64, LedgerError> {
    Home::enter(&scratch.options().state_dir)?.state().map(|state| state.node())
}

#[test]
fn the_identity_is_minted_once_and_outlives_either_of_its_files() {
    let scratch = Scratch::new();
    let state_dir = scratch.options().state_dir;
    assert_eq!(identity(&scratch.disk).unwrap(), None);
    let node = node_of(&scratch).unwrap();
    let other = Scratch::new();
    assert_ne!(node_of(&other).unwrap(), node);
    for lost in ["node", "state.redb", "lock"] {
        std::fs::remove_file(state_dir.join(lost)).unwrap();
        assert_eq!(node_of(&scratch).unwrap(), node, "{lost}");
        assert_eq!(identity(&state_dir).unwrap(), Some(node), "{lost}");
    }
}

#[test]
fn files_of_two_nodes_are_refused() {
    let (one, other) = (Scratch::new(), Scratch::new());
    node_of(&one).unwrap();
    node_of(&other).unwrap();
    let node = |scratch: &Scratch| scratch.options().state_dir.join("node");
    std::fs::copy(node(&other), node(&one)).unwrap();
    assert!(matches!(node_of(&one), Err(LedgerError::Identity { .. })));
    for text in ["", "12", "zzzzzzzzzzzzzzzz\n", "+123456789abcdef", "00112233445566778\n"] {
        std::fs::write(node(&one), text).unwrap();
        assert!(matches!(node_of(&one), Err(LedgerError::Identity { .. })), "{text:?}");
    }
}

/// As a disk that was full, or a copy that was cut, leaves it.
#[test]
fn a_state_store_with_nothing_in_it_is_no_new_one() {
    let scratch = Scratch::new();
    let node = node_of(&scratch).unwrap();
    let store = scratch.options().state_dir.join("state.redb");
    std::fs::write(&store, "").unwrap();
    assert!(matches!(node_of(&scratch), Err(LedgerError::Identity { .. })));
    assert_eq!(std::fs::metadata(&store).unwrap().len(), 0, "nothing was made of it");
    std::fs::remove_file(&store).unwrap();
    assert_eq!(node_of(&scratch).unwrap(), node);
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let home = Home::enter(&scratch.options().state_dir).unwrap();
    home.write("x", b"one").unwrap();
    home.write("x", b"2").unwrap();
    assert_eq!(std::fs::read(home.path("x")).unwrap(), b"2");
    std::fs::create_dir(home.path("new.tmp")).unwrap();
    assert!(home.write("x", b"three").is_err());
    assert_eq!(std::fs::read(home.path("x")).unwrap(), b"2");
}
