//! Shardings that JAX asks for (`jax.debug.inspect_array_sharding`): a custom call of a program for several
//! devices, whose configuration says a function of the caller's process. XLA's partitioner calls it; here it
//! is called when the program is read, with the sharding that was found by following axes
//! ([`crate::propagate`]), and taken out.
//!
//! **Invariant:** no program that is kept or given back has such a call: what it points at is gone by then.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{InstrId, Module, Opcode};

use crate::error::{Failure, Result};
use crate::propagate::{self, Known};
use crate::sharding::{Tiles, op_sharding};

/// What the caller's function takes (`xla/python/inspect_sharding.h`).
#[repr(C)]
struct Inspected {
    /// An `OpSharding`.
    sharding: *const c_char,
    sharding_size: usize,
    /// Set by the function if it fails.
    error: *const c_char,
    error_object: *mut c_void,
    free_error: Option<unsafe extern "C" fn(*mut Inspected)>,
}

type Function = unsafe extern "C" fn(*mut c_void, *mut Inspected);

/// Calls who inspects values of a program, and takes the calls out of it.
///
/// # Errors
/// A call is none of JAX's, or its function fails.
pub(crate) fn inspect(module: &mut Module) -> Result<()> {
    let is_one = |module: &Module, id: InstrId| {
        let instr = module.instr(id);
        instr.opcode == Opcode::CustomCall
            && instr.attrs.str(AttrKey::CustomCallTarget) == Some(hlo_mlir::convert::INSPECT_SHARDING)
    };
    let mut calls = Vec::new();
    for &computation in module.computations() {
        calls.extend(module.instructions(computation).filter(|&id| is_one(module, id)));
    }
    if calls.is_empty() {
        return Ok(());
    }
    let (known, meshes) = propagate::values(module);
    for id in calls {
        let instr = module.instr(id);
        let Some(&x) = instr.operands().first() else {
            return Err(Failure::invalid("an inspection of no value"));
        };
        let tiles = match (known.get(&x), module.instr(x).shape.as_array()) {
            (Some(Known::Array(cut)), Some(array)) => propagate::tiling(&meshes[cut.mesh], &cut.axes, array),
            _ => None,
        };
        let config = match instr.attrs.get(AttrKey::BackendConfig) {
            Some(AttrValue::BackendConfig(config)) => Some(config.text().to_owned()),
            _ => None,
        };
        let [function, data] = config.as_deref().and_then(addresses).ok_or_else(|| {
            Failure::invalid("an inspection says no function to call: it is read in one process alone")
        })?;
        call(function, data, &tiles)?;
        module.replace_all_uses(id, x);
        module.remove(id);
    }
    Ok(())
}

/// The addresses of a function and of its data, as 16 bytes in hexadecimal digits.
fn addresses(digits: &str) -> Option<[usize; 2]> {
    if digits.len() != 4 * size_of::<usize>() || !digits.is_ascii() {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect::<Option<_>>()?;
    let (function, data) = bytes.split_first_chunk::<{ size_of::<usize>() }>()?;
    let all = [usize::from_ne_bytes(*function), usize::from_ne_bytes(data.try_into().ok()?)];
    all.iter().all(|&address| address != 0).then_some(all)
}

fn call(function: usize, data: usize, tiles: &Tiles) -> Result<()> {
    let message = op_sharding(tiles);
    let mut inspected = Inspected {
        sharding: message.as_ptr().cast(),
        sharding_size: message.len(),
        error: ptr::null(),
        error_object: ptr::null_mut(),
        free_error: None,
    };
    // SAFETY: JAX's custom call of this name has the addresses of such a function, and of data that it takes,
    // of this process; both live until the program is compiled, and the program is read only while that is
    // done.
    unsafe {
        let function: Function =
            std::mem::transmute::<*const (), Function>(ptr::with_exposed_provenance(function));
        function(ptr::with_exposed_provenance_mut(data), &raw mut inspected);
    }
    if inspected.error.is_null() {
        return Ok(());
    }
    // SAFETY: an error is a C string until it is freed, by the function that comes with it.
    let text = unsafe { CStr::from_ptr(inspected.error) }.to_string_lossy().into_owned();
    if let Some(free) = inspected.free_error {
        // SAFETY: as above, once.
        unsafe { free(&raw mut inspected) };
    }
    Err(Failure::internal(format!("an inspection of a sharding failed: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what it is called with where its data points.
    unsafe extern "C" fn keep(data: *mut c_void, inspected: *mut Inspected) {
        // SAFETY: the test below hands in a vector, and `call` a message.
        unsafe {
            let message =
                std::slice::from_raw_parts((*inspected).sharding.cast::<u8>(), (*inspected).sharding_size);
            *data.cast::<Vec<u8>>() = message.to_vec();
        }
    }

    unsafe extern "C" fn fail(_: *mut c_void, inspected: *mut Inspected) {
        // SAFETY: `call` hands in what it is to be written to.
        unsafe { (*inspected).error = c"it is wrong".as_ptr() }
    }

    fn program(function: Function, data: &mut Vec<u8>) -> Module {
        let mut bytes = ((function as *const ()).expose_provenance()).to_ne_bytes().to_vec();
        bytes.extend(ptr::from_mut(data).expose_provenance().to_ne_bytes());
        let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let text = format!(
            "HloModule m, num_partitions=2, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[\"a\"=2]>}}}}
             ENTRY e {{
               x = f32[4] parameter(0), frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding<@mesh, [{{\\\"a\\\"}}]>\"}}
               y = f32[4] sine(x)
               i = f32[4] custom-call(y), custom_call_target=\"InspectSharding\", custom_call_has_side_effect=true, backend_config=\"{digits}\"
               ROOT z = f32[4] negate(i)
             }}"
        );
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        parsed.module.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics))
    }

    #[test]
    fn who_inspects_is_called_and_the_call_is_gone() {
        let mut seen = Vec::new();
        let mut module = program(keep, &mut seen);
        inspect(&mut module).unwrap();
        let tiling = hlo_interp::device::tiling::Tiling { tiles: vec![2], groups: vec![vec![0, 1]] };
        assert_eq!(seen, op_sharding(&Some(tiling)));
        let opcodes: Vec<Opcode> =
            module.instructions(module.entry()).map(|id| module.instr(id).opcode).collect();
        assert_eq!(opcodes, [Opcode::Parameter, Opcode::Sine, Opcode::Negate]);
        let error = inspect(&mut program(fail, &mut seen)).unwrap_err();
        assert!(error.message.contains("it is wrong"), "{}", error.message);
        assert_eq!(addresses("00"), None);
        assert_eq!(addresses(&"0".repeat(32)), None);
    }
}
