//! `tollgate demo`: three governed calls and what they cost. See [`crate::demo`].

use super::{EXIT_FAILED, EXIT_OK, output};
use crate::demo;

pub(super) fn run() -> u8 {
    match demo::run(&mut output::say) {
        Ok(()) => EXIT_OK,
        Err(failure) => {
            output::tell(&format!("demo: {failure}"));
            EXIT_FAILED
        }
    }
}
