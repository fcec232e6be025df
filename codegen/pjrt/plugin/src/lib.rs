//! The shared library of the PJRT plugin, which is [`hlo_pjrt`]: one symbol. It is a crate of its own so that
//! programs that use that crate's structs do not link a library beside.

mod exit;

use hlo_pjrt::api::table::{API, Api};

/// The one symbol of a plugin: its table.
#[allow(non_snake_case, reason = "the name is the C API's")]
#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const Api {
    &raw const API
}
