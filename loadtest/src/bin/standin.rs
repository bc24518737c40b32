//! The provider stand-in as a process.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    loadtest::standin::main_from_args()
}
