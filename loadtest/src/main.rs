//! Load from outside: `loadtest mix`, `loadtest rig`, `loadtest floor`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    loadtest::main_from_args()
}
