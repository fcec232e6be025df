//! The conventions from before the typed interface: `void target(void* out, const void** in)`, and those with
//! a status.
//!
//! `out` is the buffer of the result, or of a tuple the list of its buffers.

use std::ffi::c_char;
use std::sync::Arc;

use hlo::attrs::ApiVersion;
use hlo_client::custom_call::{CallSite, Context, Instance, Leaf};
use hlo_client::{Code, Error};

use crate::abi::Handler as Function;
use crate::frame::Operand;
use crate::guard;

/// `XlaCustomCallStatus`: success, or a message.
#[derive(Debug, Default)]
pub(crate) struct Status(Option<String>);

/// Sets a status to success.
///
/// # Safety
/// `status` is the one that a function was called with.
#[allow(non_snake_case, reason = "the name is XLA's")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn XlaCustomCallStatusSetSuccess(status: *mut Status) {
    // SAFETY: as this function's.
    if let Some(status) = unsafe { status.as_mut() } {
        status.0 = None;
    }
}

/// Sets a status to a failure.
///
/// # Safety
/// `status` is the one that a function was called with; the message has `length` bytes.
#[allow(non_snake_case, reason = "the name is XLA's")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn XlaCustomCallStatusSetFailure(
    status: *mut Status,
    message: *const c_char,
    length: usize,
) {
    // SAFETY: as this function's.
    let Some(status) = (unsafe { status.as_mut() }) else { return };
    let bytes = match message.is_null() || isize::try_from(length).is_err() {
        true => &[][..],
        // SAFETY: as this function's.
        false => unsafe { std::slice::from_raw_parts(message.cast::<u8>(), length) },
    };
    // The text may end before its length says so.
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    status.0 = Some(String::from_utf8_lossy(&bytes[..end]).into_owned());
}

/// A call of a program to such a function.
pub(crate) struct Untyped {
    function: Function,
    site: Arc<CallSite>,
}

impl Untyped {
    pub(crate) fn new(function: Function, site: Arc<CallSite>) -> Self {
        Self { function, site }
    }
}

impl Instance for Untyped {
    fn execute(&self, _context: &Context<'_>, operands: &[Leaf], results: &mut [Leaf]) -> Result<(), Error> {
        let site = &*self.site;
        let (given, memory) = Operand::of_call(site, operands, results)?;
        let inputs: Vec<*const std::ffi::c_void> = given.iter().map(|o| o.data.cast_const()).collect();
        let mut outputs: Vec<*mut std::ffi::c_void> = memory.iter().map(|o| o.data).collect();
        let output = match (site.result_is_tuple, outputs.first()) {
            (false, Some(&only)) => only,
            (true, _) | (false, None) => outputs.as_mut_ptr().cast(),
        };
        let mut status = Status::default();
        let (output, inputs, status_at) =
            (output as usize, inputs.as_ptr() as usize, &raw mut status as usize);
        let arguments = match site.api_version {
            ApiVersion::Original | ApiVersion::Unspecified => [output, inputs, 0, 0, 0],
            ApiVersion::StatusReturning => [output, inputs, status_at, 0, 0],
            ApiVersion::StatusReturningUnified | ApiVersion::TypedFfi => {
                [output, inputs, site.opaque.as_ptr() as usize, site.opaque.len(), status_at]
            }
        };
        // SAFETY: who bound it promised that it is a function of the convention that programs ask for; the
        // buffers have the sizes that their shapes say.
        let returned = unsafe { guard::call(self.function as *const (), arguments) };
        returned.map_err(|thrown| site.error(thrown.code, thrown.text()))?;
        if let Some(message) = status.0 {
            return Err(site.error(Code::Aborted, message));
        }
        for ((shape, result), memory) in site.results.iter().zip(results).zip(&memory) {
            memory.written(shape, result);
        }
        Ok(())
    }
}
