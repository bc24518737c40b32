//! Properties of the source itself: what is not enforced by a tool decays.
//!
//! Every rule is a pure function over a [`source::Source`] and sits in the module named after
//! its subject, beside samples that must pass and samples that must fail. The tests here only
//! run those functions over the tree and print `file:line` of everything they find.
//!
//! What it deliberately does not do: no type information, no macro expansion, no network. Code
//! that wants to trick these rules can; review is for that.

mod code;
mod docs;
mod edges;
mod names;
mod order;
mod purity;
mod ratchet;
mod safety;
mod size;
mod source;
mod suite;

use source::{Finding, Source, Tree};

/// Fails with one line per finding; the first words say which rule was broken.
fn assert_clean(rule: &str, findings: &[Finding]) {
    let listed: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(listed.is_empty(), "{rule}:\n  {}\n", listed.join("\n  "));
}

fn over_rust(rule: &str, check: impl Fn(&Source) -> Vec<Finding>) {
    let tree = Tree::read();
    let findings: Vec<Finding> = tree.rust().flat_map(check).collect();
    assert_clean(rule, &findings);
}

#[test]
fn the_tree_is_really_read() {
    let tree = Tree::read();
    let packages = ["proxy", "codec", "store", "bench", "loadtest", "tests"];
    for package in packages {
        let inside = format!("{package}/");
        let any = tree.rust().any(|source| source.path.starts_with(&inside));
        assert!(
            any,
            "no source of {package} was found: the other rules would pass by reading nothing"
        );
    }
}

#[test]
fn files_functions_and_lines_stay_small() {
    let tree = Tree::read();
    let measured: Vec<size::Measure> = tree.rust().flat_map(size::measure).collect();
    let ratchet = ratchet::parse(tree.text("tests/tidy-ratchet.toml").unwrap_or_default());
    let ratchet = ratchet.unwrap_or_else(|problem| panic!("tests/tidy-ratchet.toml: {problem}"));
    assert_clean("size", &ratchet::compare(&measured, &ratchet));
}

#[test]
fn modules_import_only_what_the_table_allows() {
    over_rust("import edge not in the table of tests/tests/tidy/edges.rs", edges::check);
}

#[test]
fn packages_depend_only_downwards() {
    let tree = Tree::read();
    let findings: Vec<Finding> = tree
        .all()
        .filter(|source| source.path.ends_with("Cargo.toml"))
        .flat_map(edges::check_manifest)
        .collect();
    assert_clean("package edge", &findings);
}

#[test]
fn govern_exchange_and_codec_stay_pure() {
    over_rust("I/O, waiting or chance in pure code", purity::check);
}

#[test]
fn the_data_path_never_drops_an_operation_in_flight() {
    over_rust("a dropped in-flight read loses bytes on io_uring", safety::check_dropped_reads);
}

#[test]
fn unsafe_stays_in_its_places() {
    over_rust("unsafe", safety::check_unsafe);
}

#[test]
fn lints_are_expected_never_allowed() {
    over_rust("lint attribute", safety::check_allow);
}

#[test]
fn every_module_says_what_it_is() {
    over_rust("module header", names::check_header);
}

#[test]
fn names_are_nouns_of_the_domain() {
    over_rust("name that says nothing", names::check_names);
}

#[test]
fn nothing_is_left_for_later() {
    let tree = Tree::read();
    let findings: Vec<Finding> = tree.all().flat_map(names::check_leftovers).collect();
    assert_clean("left-over", &findings);
}

#[test]
fn no_path_of_one_machine_is_committed() {
    let tree = Tree::read();
    let findings: Vec<Finding> = tree.all().flat_map(names::check_machine_paths).collect();
    assert_clean("path of one machine", &findings);
}

#[test]
fn imports_name_what_they_take() {
    over_rust("glob import outside tests", suite::check_globs);
}

#[test]
fn tests_neither_sleep_nor_hide() {
    over_rust("test", suite::check_tests);
}

#[test]
fn the_order_of_a_request_is_told_once() {
    let tree = Tree::read();
    let Some(page) = tree.source("proxy/src/pipeline/mod.rs") else {
        println!("skipped: proxy/src/pipeline/mod.rs does not exist yet");
        return;
    };
    let drawing = tree.text("docs/ARCHITECTURE.md").unwrap_or_default();
    assert_clean("order of the stages", &order::check(page, drawing));
}

#[test]
fn the_reference_names_every_refusal_ending_key_and_metric() {
    let tree = Tree::read();
    let reference: Vec<&str> = tree
        .all()
        .filter(|source| source.path.starts_with("docs/reference/"))
        .map(|source| source.text.as_str())
        .collect();
    let words = docs::words(&reference);
    let mut findings = Vec::new();
    for subject in docs::SUBJECTS {
        let sources: Vec<&Source> =
            tree.rust().filter(|source| subject.covers(&source.path)).collect();
        if sources.is_empty() {
            println!("skipped: no file under {} yet", subject.place);
            continue;
        }
        findings.extend(docs::check(subject, &sources, &words));
    }
    assert_clean("missing in docs/reference", &findings);
}
