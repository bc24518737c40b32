//! How many file descriptors the process may have open: every connection is one, and the limit a
//! login gets (1,024 mostly) is for programs that use `select`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Below this a node that was meant to serve will run out: a line says so.
const FEW: u64 = 8192;

/// Raises the soft limit to the hard one; the line for the start.
pub(super) fn raise() -> String {
    let before = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: before.maximum, maximum: before.maximum };
    let refused = before.current != before.maximum && setrlimit(Resource::Nofile, wanted).is_err();
    let after = getrlimit(Resource::Nofile);
    let shown =
        |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |n| n.to_string());
    let mut line = shown(after.current);
    if after.current != before.current {
        line.push_str(&format!(", raised from {}", shown(before.current)));
    }
    if refused {
        line.push_str(&format!(", the hard limit of {} was refused", shown(before.maximum)));
    }
    if after.current.is_some_and(|limit| limit < FEW) {
        line.push_str(", which is few: raise the hard limit (LimitNOFILE)");
    }
    line
}
