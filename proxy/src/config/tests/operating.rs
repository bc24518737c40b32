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
