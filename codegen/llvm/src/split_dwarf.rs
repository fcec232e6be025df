//! Objects whose debugging information is in a file of its own (split DWARF, `.dwo`): the object keeps the
//! table of lines and a skeleton that names the file. `split_dwarf.cpp` is the emission, since LLVM's C
//! interface knows neither the name nor a second output.

use std::ffi::{CString, c_char};

use inkwell::llvm_sys::prelude::{LLVMMemoryBufferRef, LLVMModuleRef};
use inkwell::llvm_sys::target_machine::LLVMTargetMachineRef;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::targets::TargetMachine;

use super::{Error, Result};

unsafe extern "C" {
    fn hlo_emit_split_dwarf(
        machine: LLVMTargetMachineRef,
        module: LLVMModuleRef,
        name: *const c_char,
        object: *mut LLVMMemoryBufferRef,
        dwarf: *mut LLVMMemoryBufferRef,
    ) -> bool;
}

/// The object of a module that was optimized, and its DWARF file, which the object calls `name`.
pub(super) fn emit(machine: &TargetMachine, module: &Module<'_>, name: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let Ok(name) = CString::new(name) else {
        return Err(Error::Target("a file's name has no zero byte".to_owned()));
    };
    let (mut object, mut dwarf) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: machine, module and name live during the call, which keeps none of them and does not unwind
    // (LLVM is built without exceptions); the buffers are set if it returns true.
    let emitted = unsafe {
        hlo_emit_split_dwarf(
            machine.as_mut_ptr(),
            module.as_mut_ptr(),
            name.as_ptr(),
            &raw mut object,
            &raw mut dwarf,
        )
    };
    if !emitted {
        return Err(Error::Target("the target has no objects".to_owned()));
    }
    // SAFETY: the call gave both away.
    let [object, dwarf] = [object, dwarf].map(|buffer| unsafe { MemoryBuffer::new(buffer) });
    Ok((object.as_slice().to_vec(), dwarf.as_slice().to_vec()))
}
