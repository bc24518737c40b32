//! `[log]`, and the notice of a drain.

use super::*;
use crate::config::log::Access;
use std::path::PathBuf;

#[test]
fn logs_go_where_they_are_told_to() {
    for (lines, access, errors) in [
        ("", Access::Off, true),
        ("[log]\naccess = \"off\"\nerrors = \"off\"", Access::Off, false),
        ("[log]\naccess = \"stdout\"", Access::Output, true),
        ("[log]\naccess = \"file:/a/b\"", Access::File(PathBuf::from("/a/b")), true),
    ] {
        let log = good(&format!("{MINIMAL}{lines}\n")).log;
        assert_eq!((log.access, log.errors), (access, errors), "{lines}");
    }
    for (lines, wanted) in [
        ("[log]\naccess = \"stderr\"", "must be off, stdout or \"file:PATH\""),
        ("[log]\naccess = \"file:\"", "\"access\" in [log] must be a path"),
        ("[log]\nerrors = \"stdout\"", "\"errors\" in [log] must be stderr or off"),
        ("[log]\nacess = \"off\"", "did you mean \"access\"?"),
    ] {
        let found = errors(&format!("{MINIMAL}{lines}\n"));
        assert!(found.len() == 1 && found[0].contains(wanted), "{lines}: {found:#?}");
    }
}

#[test]
fn a_notice_may_be_none_and_no_other_deadline_may() {
    let notice = |span: &str| format!("{MINIMAL}[deadlines]\ndrain_notice = \"{span}\"\n");
    let of = |text: &str| good(text).snapshot.deadlines.drain_notice;
    assert_eq!(of(MINIMAL), Duration::ZERO);
    assert_eq!((of(&notice("0s")), of(&notice("5s"))), (Duration::ZERO, Duration::from_secs(5)));
    for text in [notice("50ms"), notice("25h"), notice("0s").replace("drain_notice", "drain")] {
        assert!(errors(&text)[0].contains("must be between 100ms"), "{text}");
    }
}

/// A world on a disk that nothing can be written to.
struct Locked(World);

impl Env for Locked {
    fn var(&self, name: &str) -> Option<String> {
        self.0.var(name)
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        self.0.read_file(path)
    }

    fn takes_files(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn takes_lines(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

#[test]
fn what_cannot_be_kept_is_told_with_the_rest_of_the_file() {
    let told = |before: &str, behind: &str| {
        let text = format!("{before}{MINIMAL}{behind}");
        match parse("/etc/tollgate/tollgate.toml", &text, &Locked(World::usual())) {
            Ok(_) => String::new(),
            Err(errors) => errors.to_string().replace("/etc/tollgate/", ""),
        }
    };
    let full = "read-only filesystem or storage medium";
    assert_eq!(
        told("state_dir = \"state\"", "[log]\naccess = \"file:access.log\"\n"),
        format!(
            "tollgate.toml:1:13: no state can be kept in state: {full}\n\
             tollgate.toml:9:10: \"access\" in [log]: no line can be added to access.log: {full}"
        )
    );
    let home = "/home/op/.local/state/tollgate";
    let default = format!("tollgate.toml:1:1: no state can be kept in {home}: {full}");
    assert_eq!(told("", "[log]\naccess = \"stdout\"\n"), default);
    assert_eq!(told("", "[ledger]\nenabled = false\n"), "", "nothing is kept");
}
