//! The stand-in provider, for tests that need its process.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    loadtest::standin::main_from_args()
}
