//! The binary: arguments in, exit code out.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate::cli::main_from_args()
}
