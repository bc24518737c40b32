//! `docs/reference/config.md` lists every key, with the defaults that hold, and its examples
//! work.

use super::super::shape::{SHAPES, State};
use super::*;

const PAGE: &str = include_str!("../../../../docs/reference/config.md");

/// The rows of the section about a table, as cells.
fn rows(label: &str) -> Vec<Vec<&'static str>> {
    let heading = format!("\n## {label}\n");
    let at = PAGE.find(&heading).unwrap_or_else(|| panic!("no section about {label}"));
    let section = &PAGE[at + heading.len()..];
    let section = section.split("\n## ").next().unwrap_or(section);
    let lines = section.lines().filter(|line| line.starts_with("| `"));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn every_key_has_a_row_with_all_cells_and_no_row_lacks_its_key() {
    for shape in SHAPES {
        let rows = rows(shape.label);
        let named: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
        let mut wanted: Vec<&str> = shape.keys.iter().map(|key| key.name).collect();
        let mut found = named.clone();
        wanted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, wanted, "{}", shape.label);
        for (row, name) in rows.iter().zip(named) {
            assert_eq!(row.len(), 5, "{name}");
            assert!(!row[1].is_empty() && !row[3].is_empty(), "{name}");
            let later = shape.key(name).is_some_and(|key| key.state != State::Read);
            assert_eq!(row[4].contains("always:"), later, "{name}");
        }
    }
}

#[test]
fn the_defaults_on_the_page_are_the_defaults() {
    let mut text = MINIMAL.to_owned();
    let tables = ["[listen]", "[limits]", "[deadlines]", "[ledger]", "[retry]", "[breaker]"];
    for label in tables.into_iter().chain(["[endings]"]) {
        text += &format!("{label}\n");
        for row in rows(label) {
            // The one default that depends on the machine; the test's has 1.5 GiB and three cores.
            let share = row[2].starts_with("an eighth of memory");
            let value = if share { "\"64MiB\"" } else { row[2].trim_matches('`') };
            // Absent, it depends on the node; a route's table has no default of its own.
            if row[0] == "`slab_dir`" || row[1] == "table" {
                continue;
            }
            text += &format!("{} = {value}\n", row[0].trim_matches('`'));
        }
    }
    let (written, absent) = (good(&text), good(MINIMAL));
    assert_eq!(written.snapshot.deadlines, absent.snapshot.deadlines);
    assert_eq!(written.snapshot.bounds, absent.snapshot.bounds);
    assert_eq!(written.snapshot.retry, absent.snapshot.retry);
    assert_eq!(written.snapshot.breaker, absent.snapshot.breaker);
    assert_eq!(written.snapshot.endings, absent.snapshot.endings);
    assert_eq!(written.snapshot.when_full, absent.snapshot.when_full);
    assert_eq!(written.ledger, absent.ledger);
    let most = written.snapshot.terms.hold_output_max;
    assert_eq!(most, absent.snapshot.terms.hold_output_max);
    assert_eq!(written.listen_data, absent.listen_data);
    assert_eq!(written.listen_admin, absent.listen_admin);
}

fn examples(page: &str) -> Vec<&str> {
    let fenced = page.split("```toml\n").skip(1);
    fenced.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn the_examples_work() {
    let [example] = examples(PAGE)[..] else { panic!("one example") };
    let config = good(example);
    assert_eq!(&*config.snapshot.aliases["fast"], "local/llama-3.1-8b");
    let digest = ring::digest::digest(&ring::digest::SHA256, b"tg-example-key");
    assert!(config.keys.iter().any(|key| key.digest == digest.as_ref()));
    let pages = [
        include_str!("../../../../docs/quick-start.md"),
        include_str!("../../../../docs/claude-code.md"),
    ];
    // The test's world has one key and no roots.
    let example = |text: &str| {
        good(&text.replace("ANTHROPIC_API_KEY", "LOCAL_API_KEY").replace("https://", "http://"))
    };
    let configs: Vec<Config> = pages.into_iter().flat_map(examples).map(example).collect();
    assert_eq!(configs.len(), 3);
    // The README is not part of this package: a copy of the package alone has none.
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    for example in std::fs::read_to_string(readme).iter().flat_map(|page| examples(page)) {
        good(example);
    }
}
