//! The binary: arguments in, exit code out.

use std::process::ExitCode;
use tollgate::server::{Node, Options};

fn main() -> ExitCode {
    let path = std::env::args().last().unwrap_or_default();
    let config = tollgate::config::load(path.as_ref(), &tollgate::config::ProcessEnv)
        .map_err(|e| eprintln!("{e}"))
        .unwrap();
    let node = Node::start(&config, &Options { keep_records: false, pin: false }).unwrap();
    eprintln!("{:?} on {}", node.drivers, node.data);
    loop {
        std::thread::park();
    }
}
