//! tollgate, for tests that need its process.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate::cli::main_from_args()
}
