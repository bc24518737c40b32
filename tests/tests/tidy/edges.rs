//! Who may know whom: the import edges of `proxy/src`, and those between packages.
//!
//! The table is the architecture; an edge that is missing here is a design decision, taken by
//! adding a row with its reason, not by adding an import.

use crate::code;
use crate::source::{Finding, Source};

struct Row {
    module: &'static str,
    may_know: &'static [&'static str],
}

const EVERYTHING: &str = "*";

/// Entries are modules of the crate or packages of ours, with `::part` where only that part is
/// meant. No row names `pipeline`: only those who assemble the program know it.
const TABLE: &[Row] = &[
    Row {
        module: "pipeline",
        may_know: &[
            "govern",
            "exchange",
            "shard",
            "control",
            "upstream",
            "observe",
            "codec",
            "store",
            // The stages are generic over the transport: `Io`, `Turn`.
            "io",
            // A stage reads the configuration its exchange is pinned to.
            "config::snapshot",
        ],
    },
    Row { module: "govern", may_know: &["exchange", "codec::event", "codec::usage"] },
    Row { module: "exchange", may_know: &["codec::dialect", "codec::usage"] },
    // Which drivers can be asked for, the step that deadlines are multiples of, and what secures
    // connections: certificates are read and refused with the rest of the file.
    Row { module: "config", may_know: &CONFIG },
    // `exchange` has the newtypes of time, which every signature with `now` in it needs.
    Row { module: "shard", may_know: &SHARD },
    // The transport hands out the clock of its shard: real here, virtual in the scripted twin.
    Row { module: "io", may_know: &["exchange::time", "shard::clock"] },
    Row { module: "upstream", may_know: &["io", "codec", "exchange", "config::snapshot"] },
    Row {
        module: "control",
        // It takes new certificates up while the node runs, and tells whose breaker is open.
        may_know: &[
            "exchange",
            "config",
            "store",
            "observe",
            "upstream::addresses",
            "io::tls",
            "govern::breaker",
        ],
    },
    Row { module: "admin", may_know: &["control", "observe", "store"] },
    // Counters are labelled by refusals and endings, which are nouns of the exchange.
    Row { module: "observe", may_know: &["exchange"] },
    Row { module: "server", may_know: &[EVERYTHING] },
    Row { module: "main", may_know: &[EVERYTHING] },
    Row { module: "cli", may_know: &[EVERYTHING] },
    Row { module: "demo", may_know: &[EVERYTHING] },
];

const CONFIG: [&str; 5] = ["exchange", "codec::usage", "io::runtime", "io::TICK", "io::tls"];

/// A core owns its pool and counters, and hands settled records out: to some only those that ended
/// badly.
const SHARD: [&str; 8] = [
    "config::snapshot",
    "io",
    "exchange",
    "upstream",
    "observe",
    "store::record",
    "store::ending",
    "store::slab",
];

const PROXY: &str = "proxy/src/";

/// Packages of ours that a path in `proxy/src` can begin with.
const PACKAGES: &[&str] = &["codec", "store", "loadtest", "bench", "tollgate"];

/// What each package may depend on; a package that is not here may depend on nothing of ours.
const PACKAGE_TABLE: &[(&str, &[&str])] = &[
    // `demo` runs the stand-in of `loadtest` on a thread of its own.
    ("proxy", &["codec", "store", "loadtest"]),
    ("bench", &["codec", "store", "tollgate"]),
    ("tests", &["codec", "store", "tollgate", "loadtest", "bench"]),
    ("codec/fuzz", &["codec"]),
    ("store/fuzz", &["store"]),
];

pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let Some(inside) = source.path.strip_prefix(PROXY) else { return Vec::new() };
    let position = modules(inside);
    let Some(module) = position.first() else { return Vec::new() };
    let Some(row) = TABLE.iter().find(|row| row.module == module) else {
        return vec![source.finding(0, format!("module `{module}` is not in the table"))];
    };
    if row.may_know.contains(&EVERYTHING) {
        return Vec::new();
    }
    let named = code::paths(&source.code);
    let edges = named.iter().filter_map(|path| Some((path.at, target(&path.segments, &position)?)));
    let refused = edges.filter(|(_, target)| target[0] != *module && !allowed(row, target));
    let mut findings: Vec<Finding> =
        refused.map(|(at, target)| source.finding(at, refusal(module, &target))).collect();
    findings.dedup();
    findings
}

fn refusal(module: &str, target: &[String]) -> String {
    let shown = &target[..target.len().min(2)];
    format!("`{module}` may not know `{}`", shown.join("::"))
}

/// `relay/whole.rs` → `[relay, whole]`; `mod.rs` is its folder; `lib.rs` is the root itself.
fn modules(inside: &str) -> Vec<String> {
    let stem = inside.trim_end_matches(".rs");
    let parts = stem.split('/').map(str::to_owned);
    parts.filter(|part| part != "mod" && part != "lib").collect()
}

/// What a path leads to outside its own module, if it does: `[module or package, part…]`.
fn target(segments: &[String], position: &[String]) -> Option<Vec<String>> {
    let first = segments.first()?.as_str();
    if first == "crate" {
        return Some(segments[1..].to_vec());
    }
    if PACKAGES.contains(&first) {
        return Some(segments.to_vec());
    }
    // `super` as often as the file is deep reaches the root. Inside an inline module it reaches
    // less far, so only names of the table count.
    let supers = segments.iter().take_while(|segment| *segment == "super").count();
    let beyond = segments.get(supers)?;
    let known = TABLE.iter().any(|row| row.module == beyond);
    (supers > 0 && supers == position.len() && known).then(|| segments[supers..].to_vec())
}

fn allowed(row: &Row, target: &[String]) -> bool {
    row.may_know.iter().any(|entry| {
        let wanted = entry.split("::");
        wanted.clone().count() <= target.len()
            && wanted.zip(target).all(|(wanted, found)| wanted == found)
    })
}

/// Dependencies of a `Cargo.toml` on packages of ours.
pub(crate) fn check_manifest(source: &Source) -> Vec<Finding> {
    let package = source.path.trim_end_matches("Cargo.toml").trim_end_matches('/');
    if package.is_empty() {
        return Vec::new();
    }
    let row = PACKAGE_TABLE.iter().find(|(name, _)| *name == package);
    let may = row.map_or(&[][..], |(_, may)| may);
    let mut section = "";
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
        if section.ends_with("dependencies]") && PACKAGES.contains(&name) && !may.contains(&name) {
            let message = format!("package `{package}` may not depend on `{name}`");
            findings.push(Finding { path: source.path.clone(), line: index + 1, message });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text)).into_iter().map(|found| found.to_string()).collect()
    }

    #[test]
    fn edges_of_the_table_pass() {
        let cases = [
            ("proxy/src/pipeline/relay.rs", "use crate::{govern::walk, io::Turn}; use codec::sse;"),
            ("proxy/src/io/ring.rs", "use crate::exchange::time::{MonoNs, Now};"),
            ("proxy/src/govern/price.rs", "use crate::exchange::money; use codec::usage::Usage;"),
            ("proxy/src/shard/mod.rs", "use crate::config::snapshot::Snapshot; use super::io;"),
            ("proxy/src/demo/mod.rs", "use crate::pipeline; use loadtest::standin;"),
            ("proxy/src/lib.rs", "mod pipeline; use crate::pipeline::run;"),
            ("proxy/src/io/tcp.rs", "use super::wheel::Wheel; use crate::io::Turn;"),
            ("store/src/slab.rs", "use crate::record::Head;"),
        ];
        for (path, text) in cases {
            assert_eq!(messages(path, text), Vec::<String>::new(), "{path}: {text}");
        }
    }

    #[test]
    fn edges_outside_the_table_fail() {
        let cases = [
            ("proxy/src/govern/walk.rs", "use crate::{exchange::plan, shard::clock};"),
            ("proxy/src/govern/walk.rs", "fn f() { codec::http1::parse(); }"),
            ("proxy/src/shard/start.rs", "use crate::config::compile;"),
            ("proxy/src/shard/start.rs", "use crate::config;"),
            ("proxy/src/upstream/pool.rs", "use super::super::pipeline::run;"),
            ("proxy/src/io/mod.rs", "use super::shard::Shard;"),
            ("proxy/src/io/mod.rs", "use crate::exchange::{bundle::Bundle, time::Now};"),
            ("proxy/src/exchange/call.rs", "let x = store::record::Head::default();"),
            ("proxy/src/control/mod.rs", "use crate::{store, pipeline::relay::{pump, close}};"),
        ];
        for (path, text) in cases {
            assert_eq!(messages(path, text).len(), 1, "{path}: {text}");
        }
    }

    #[test]
    fn the_message_names_the_place_and_the_edge() {
        let found = messages("proxy/src/config/file.rs", "//! x\nuse crate::shard::mailbox::Box;");
        assert_eq!(found, ["proxy/src/config/file.rs:2: `config` may not know `shard::mailbox`"]);
    }

    #[test]
    fn a_folder_that_nobody_put_in_the_table_fails() {
        assert_eq!(messages("proxy/src/extras/mod.rs", "").len(), 1);
    }

    #[test]
    fn comments_and_strings_are_no_edges() {
        let text = "// see crate::pipeline::run\nconst A: &str = \"crate::shard::x\";";
        assert_eq!(messages("proxy/src/govern/mod.rs", text), Vec::<String>::new());
    }

    #[test]
    fn packages_point_down() {
        let manifest = |path: &str, text: &str| check_manifest(&Source::new(path, text)).len();
        assert_eq!(
            manifest("proxy/Cargo.toml", "[dependencies]\ncodec = {}\nloadtest.path = 1"),
            0
        );
        assert_eq!(manifest("Cargo.toml", "[workspace.dependencies]\ncodec = {}"), 0);
        assert_eq!(manifest("codec/Cargo.toml", "[dependencies]\nstore = {}\nmemchr = {}"), 1);
        assert_eq!(manifest("store/Cargo.toml", "[dev-dependencies]\ncodec = {}"), 1);
        assert_eq!(manifest("loadtest/Cargo.toml", "[dependencies]\ntollgate.workspace = true"), 1);
        assert_eq!(manifest("codec/Cargo.toml", "[package]\nname = \"codec\""), 0);
    }
}
