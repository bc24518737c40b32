use super::*;
use crate::slab::tests::Memory;

fn row(n: u8) -> KeyRow {
    KeyRow {
        digest: [n; 32],
        name: format!("key {n}"),
        prefix: "tg-abcdef".to_owned(),
        project_id: 4,
        declared: true,
        strict: n.is_multiple_of(2),
        expires_unix_ms: Some(99),
        limits: Limits { requests_per_minute: Some(0), concurrent: Some(5), ..Limits::default() },
        budgets: vec![
            Budget { budget_id: 0, period: Period::Total, limit_picousd: 10 },
            Budget { budget_id: 0, period: Period::Month, limit_picousd: u64::MAX },
        ],
        models: Some(vec!["fable-*".to_owned()]),
        ..KeyRow::default()
    }
}

fn path(memory: &Memory) -> std::path::PathBuf {
    std::fs::create_dir_all(&memory.0).unwrap();
    memory.0.join("state.redb")
}

#[test]
fn the_identity_is_minted_once_and_starts_only_go_up() {
    let memory = Memory::new();
    let path = path(&memory);
    {
        let state = State::open(&path, || 77).unwrap();
        assert_eq!((state.node(), state.start(0).unwrap(), state.start(0).unwrap()), (77, 1, 2));
        assert!(state.checkpoint().unwrap().is_none() && state.position().unwrap().is_none());
        assert_eq!(state.total(Account::key(1)).unwrap(), Total::default());
    }
    let state = State::open(&path, || 78).unwrap();
    assert_eq!(state.node(), 77);
    // A store that was lost would begin at 1 again; the log knows better.
    assert_eq!((state.start(40).unwrap(), state.start(0).unwrap()), (41, 42));
}

#[test]
fn keys_come_back_as_they_were_given() {
    let memory = Memory::new();
    let path = path(&memory);
    let state = State::open(&path, || 1).unwrap();
    assert!(state.key(1).unwrap().is_none());
    let (mut one, mut two) = (row(1), KeyRow { digest: [2; 32], ..KeyRow::default() });
    state.add_key(&mut one).unwrap();
    state.add_key(&mut two).unwrap();
    assert_eq!((one.id, two.id), (1, 2));
    assert_eq!((one.budgets[0].budget_id, one.budgets[1].budget_id), (1, 2));
    assert!(state.add_key(&mut row(1)).is_err(), "one digest, one key");
    one.state = KeyState::Revoked;
    let altered = state.alter_key(1, |row| row.state = KeyState::Revoked).unwrap();
    assert_eq!(altered.as_ref(), Some(&one));
    assert_eq!(state.alter_key(9, |_| {}).unwrap(), None);
    assert!(state.alter_key(1, |row| row.digest = [2; 32]).is_err(), "another key's digest");
    assert!(state.write_keys(&mut [KeyRow { id: 9, ..row(9) }]).is_err(), "no such key");
    assert!(state.add_key(&mut KeyRow { id: 9, ..row(9) }).is_err(), "a number is given");
    let namesake = |known: &KeyRow| known.name == two.name;
    assert_eq!(state.add_key_unless(&mut row(9), namesake).unwrap(), Some(2));
    assert_eq!(state.key_of(&[9; 32]).unwrap(), None, "and nothing was written");
    assert_eq!(state.key_of(&[1; 32]).unwrap().as_ref(), Some(&one));
    assert_eq!(state.key_of(&[3; 32]).unwrap(), None);
    drop(state);
    let state = State::open(&path, || 1).unwrap();
    let mut rows = Vec::new();
    state.keys(|row| rows.push(row)).unwrap();
    assert_eq!(rows, [one, two]);
}

#[test]
fn keys_are_written_all_or_none_and_read_in_pages() {
    let memory = Memory::new();
    let state = State::open(&path(&memory), || 1).unwrap();
    assert!(state.write_keys(&mut [row(1), row(2), row(1)]).is_err(), "one digest twice");
    let mut count = 0;
    state.keys(|_| count += 1).unwrap();
    assert_eq!(count, 0);
    let mut rows: Vec<KeyRow> = (1..=9).map(row).collect();
    state.write_keys(&mut rows).unwrap();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
    let mut page = Vec::new();
    let each = |row: KeyRow| {
        page.push(row.id);
        page.len() < 3
    };
    state.keys_after(4, each).unwrap();
    assert_eq!(page, [5, 6, 7]);
    state.keys_after(u64::MAX, |_| panic!("nothing is above it")).unwrap();
    let known = rows[3].budgets.clone();
    let more = Budget { budget_id: 0, period: Period::Day, limit_picousd: 1 };
    let altered = state.alter_key(4, |row| row.budgets.push(more)).unwrap().unwrap();
    assert_eq!((&altered.budgets[..2], altered.budgets[2].budget_id), (&known[..], 19));
}

#[test]
fn numbers_that_the_log_knows_are_passed() {
    let memory = Memory::new();
    let state = State::open(&path(&memory), || 1).unwrap();
    state.pass_numbers(70, 900).unwrap();
    let mut first = row(1);
    state.add_key(&mut first).unwrap();
    assert_eq!((first.id, first.budgets[0].budget_id), (71, 901));
    state.pass_numbers(5, 5).unwrap();
    let mut second = row(2);
    state.add_key(&mut second).unwrap();
    assert_eq!((second.id, second.budgets[0].budget_id), (72, 903));
}

#[test]
fn a_key_has_its_bounds() {
    let long = KeyRow { name: "x".repeat(257), ..row(1) };
    let many = KeyRow { models: Some(vec!["m".to_owned(); 257]), ..row(1) };
    let rich = KeyRow { budgets: vec![Budget::default(); 7], ..row(1) };
    assert!([long, many, rich].iter().all(|row| row.encode().is_err()));
    let bytes = row(1).encode().unwrap();
    assert_eq!(KeyRow::decode(0, &bytes), Some(row(1)));
    for len in 0..bytes.len() {
        assert_eq!(KeyRow::decode(0, &bytes[..len]), None, "{len}");
    }
    let mut long = KeyRow { name: "x".repeat(256), ..row(1) }.encode().unwrap();
    long[35..37].copy_from_slice(&257_u16.to_le_bytes());
    long.insert(37, b'x');
    assert_eq!(KeyRow::decode(0, &long), None, "what cannot be written is not read");
    let mut unused = KeyRow::default().encode().unwrap();
    unused[56] = 1;
    assert_eq!(KeyRow::decode(0, &unused), None, "nothing has no value");
    let none = KeyRow { models: Some(Vec::new()), ..row(1) };
    assert_eq!(KeyRow::decode(0, &none.encode().unwrap()), Some(none), "none is not all");
}

#[test]
fn a_checkpoint_is_one_unit_and_adds_up() {
    let memory = Memory::new();
    let path = path(&memory);
    let total = |n| Total { exchanges: n, cost_picousd: u128::MAX, ..Total::default() };
    let changes = |segment, accounts: &[u64]| Changes {
        position: Position { segment, next_seq: segment * 10, ..Position::default() },
        slabs: vec![SlabMark { slab: segment, settle_sequence: 5 }],
        totals: accounts
            .iter()
            .map(|id| Stated { account: Account::key(*id), total: total(segment) })
            .collect(),
    };
    {
        let state = State::open(&path, || 1).unwrap();
        state.save(&changes(1, &[1, 2])).unwrap();
        state.save(&changes(2, &[2, 3])).unwrap();
    }
    let state = State::open(&path, || 1).unwrap();
    assert_eq!(state.position().unwrap(), Some(changes(2, &[]).position));
    assert_eq!(state.total(Account::key(3)).unwrap(), total(2));
    assert_eq!(state.total(Account::key(4)).unwrap(), Total::default());
    let read = state.checkpoint().unwrap().unwrap();
    assert_eq!((read.position, &read.slabs), (changes(2, &[]).position, &changes(2, &[]).slabs));
    let counts = [1, 2, 3].map(|id| read.balances.total(Account::key(id)).exchanges);
    assert_eq!((counts, read.balances.len()), ([1, 2, 2], 3));
}

/// Places in the file that are damaged in turn.
const FLIPS: usize = 96;

#[test]
fn a_damaged_file_is_an_error_and_no_panic() {
    let memory = Memory::new();
    let path = path(&memory);
    {
        let state = State::open(&path, || 77).unwrap();
        for start in 0..20 {
            state.start(start).unwrap();
        }
    }
    let sound = std::fs::read(&path).unwrap();
    let mut refused = 0;
    for flip in 0..FLIPS {
        let mut bytes = sound.clone();
        let at = sound.len() / FLIPS * flip + 37;
        bytes[at] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        let state = State::open(&path, || 78);
        let read = state.and_then(|state| {
            state.checkpoint()?;
            state.keys(|_| {})
        });
        refused += usize::from(read.is_err());
    }
    assert!(refused > 0, "nothing of {FLIPS} is damage");
}
