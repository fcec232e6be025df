//! Calls of handlers, which end in an error where a C++ exception leaves them, instead of ending the process.
//!
//! Rust cannot catch an exception of another language. So handlers are called by a few instructions whose
//! frame says, in the tables that unwinders read (Itanium C++ ABI, level 1), that it catches whatever is no
//! panic of Rust's. No C++ runtime is linked; that which threw is asked for the exception's type and text, if
//! it can be found.
//!
//! **Invariants:** a panic of Rust's, and what ends a thread, pass; an exception is given back to the runtime
//! that made it. On other processors than x86-64 an exception ends the process, as a function of C's that
//! throws does.

use std::ffi::CStr;

use hlo_client::Code;

use crate::error::Error;

/// The most arguments of a handler.
pub(crate) const ARGUMENTS: usize = 5;

/// Calls a function with up to five numbers or pointers; what it returns.
///
/// # Errors
/// It threw something.
///
/// # Safety
/// It is a C function with this many parameters, and may be called with these arguments.
pub(crate) unsafe fn call(function: *const (), arguments: [usize; ARGUMENTS]) -> Result<usize, Error> {
    // SAFETY: by the caller's word.
    unsafe { platform::call(function, arguments) }.map_err(|thrown| {
        let what = match thrown {
            Some(what) => format!("the handler threw a C++ exception: {what}"),
            None => "the handler threw an exception".to_owned(),
        };
        Error::new(Code::Internal, what)
    })
}

/// Exceptions of the standard library whose first virtual functions are those of `std::exception`, by their
/// types' names in object files.
const STANDARD: [&CStr; 12] = [
    c"St9exception",
    c"St9bad_alloc",
    c"St8bad_cast",
    c"St11logic_error",
    c"St12domain_error",
    c"St16invalid_argument",
    c"St12length_error",
    c"St12out_of_range",
    c"St13runtime_error",
    c"St11range_error",
    c"St14overflow_error",
    c"St15underflow_error",
];

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod platform {
    use super::ARGUMENTS;

    /// # Safety
    /// As [`super::call`].
    pub(super) unsafe fn call(function: *const (), a: [usize; ARGUMENTS]) -> Result<usize, Option<String>> {
        type Any = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> usize;
        let _ = super::STANDARD;
        // SAFETY: by the caller's word; functions of C's may be given more arguments than they look at.
        Ok(unsafe { std::mem::transmute::<*const (), Any>(function)(a[0], a[1], a[2], a[3], a[4]) })
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod platform {
    use std::ffi::{CStr, c_char, c_int, c_void};

    use libloading::os::unix::{Library, RTLD_NOW};

    use super::{ARGUMENTS, STANDARD};

    // `rbx` keeps where an exception goes. The unwinder comes to the landing with the registers and the stack
    // as they were at the call, and the exception in `rax`.
    std::arch::global_asm!(
        ".section .data.rel.ro.hlo_ffi_guard,\"aw\",@progbits",
        ".p2align 3",
        "hlo_ffi_guard_personality: .quad {personality}",
        ".text",
        ".p2align 4",
        ".globl hlo_ffi_guarded_call",
        ".hidden hlo_ffi_guarded_call",
        ".type hlo_ffi_guarded_call, @function",
        "hlo_ffi_guarded_call:",
        ".cfi_startproc",
        ".cfi_personality 0x9b, hlo_ffi_guard_personality",
        "push rbx",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbx, -16",
        "mov rbx, rdx",
        "mov rax, rdi",
        "mov r10, rsi",
        "mov rdi, [r10]",
        "mov rsi, [r10 + 8]",
        "mov rdx, [r10 + 16]",
        "mov rcx, [r10 + 24]",
        "mov r8, [r10 + 32]",
        "call rax",
        "pop rbx",
        ".cfi_remember_state",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_restore_state",
        ".globl hlo_ffi_guarded_landing",
        ".hidden hlo_ffi_guarded_landing",
        "hlo_ffi_guarded_landing:",
        "mov [rbx], rax",
        "xor eax, eax",
        "pop rbx",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        ".size hlo_ffi_guarded_call, . - hlo_ffi_guarded_call",
        personality = sym personality,
    );

    unsafe extern "C-unwind" {
        fn hlo_ffi_guarded_call(
            function: *const (),
            arguments: *const [usize; ARGUMENTS],
            caught: *mut *mut c_void,
        ) -> usize;
    }

    unsafe extern "C" {
        static hlo_ffi_guarded_landing: u8;
        fn _Unwind_SetGR(context: *mut c_void, register: c_int, value: usize);
        fn _Unwind_SetIP(context: *mut c_void, address: usize);
        fn _Unwind_DeleteException(exception: *mut c_void);
    }

    /// `_Unwind_Action`.
    const SEARCH_PHASE: c_int = 1;
    const HANDLER_FRAME: c_int = 4;
    const FORCE_UNWIND: c_int = 8;
    /// `_Unwind_Reason_Code`.
    const HANDLER_FOUND: c_int = 6;
    const INSTALL_CONTEXT: c_int = 7;
    const CONTINUE_UNWIND: c_int = 8;
    /// DWARF's number of `rax`.
    const RAX: c_int = 0;
    /// What panics of Rust's are marked by.
    const RUST: u64 = u64::from_be_bytes(*b"MOZ\0RUST");
    /// What exceptions of C++ are marked by: those of GNU's runtime and of LLVM's.
    const GNU_CXX: u64 = u64::from_be_bytes(*b"GNUCC++\0");
    const LLVM_CXX: u64 = u64::from_be_bytes(*b"CLNGC++\0");

    /// `sizeof(_Unwind_Exception)`: a class, a function and two words, aligned to 16 bytes.
    const HEADER_BYTES: usize = 32;

    /// What an unwinder asks about the frame of a guarded call.
    extern "C" fn personality(
        _version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut c_void,
        context: *mut c_void,
    ) -> c_int {
        if class == RUST || actions & FORCE_UNWIND != 0 {
            return CONTINUE_UNWIND;
        }
        if actions & SEARCH_PHASE != 0 {
            return HANDLER_FOUND;
        }
        if actions & HANDLER_FRAME == 0 {
            return CONTINUE_UNWIND;
        }
        // SAFETY: the unwinder's context of this frame, in which it may be continued at the landing.
        unsafe {
            _Unwind_SetGR(context, RAX, exception as usize);
            _Unwind_SetIP(context, (&raw const hlo_ffi_guarded_landing) as usize);
        }
        INSTALL_CONTEXT
    }

    /// # Safety
    /// As [`super::call`].
    pub(super) unsafe fn call(
        function: *const (),
        arguments: [usize; ARGUMENTS],
    ) -> Result<usize, Option<String>> {
        let mut caught = std::ptr::null_mut();
        // SAFETY: by the caller's word.
        let returned = unsafe { hlo_ffi_guarded_call(function, &raw const arguments, &raw mut caught) };
        if caught.is_null() {
            return Ok(returned);
        }
        // SAFETY: what was caught is an exception, whose class comes first, and nobody else handles it.
        unsafe {
            let class = caught.cast::<u64>().read();
            let described = if class == GNU_CXX || class == LLVM_CXX { end(caught) } else { None };
            if described.is_none() {
                _Unwind_DeleteException(caught);
            }
            Err(described)
        }
    }

    /// Has the runtime of C++ end an exception, and says what it was. `None`: that cannot be found, and
    /// nothing was done.
    ///
    /// # Safety
    /// An exception of C++ that was caught.
    unsafe fn end(exception: *mut c_void) -> Option<String> {
        type Begin = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
        type TypeOf = unsafe extern "C" fn() -> *const *const c_char;
        type End = unsafe extern "C" fn();
        /// `RTLD_NOLOAD`: only what is loaded.
        const ONLY_LOADED: i32 = 4;
        let loaded = |name: &str| {
            // SAFETY: nothing is loaded, so nothing runs.
            unsafe { Library::open(Some(name), RTLD_NOW | ONLY_LOADED) }.ok()
        };
        let runtime = loaded("libstdc++.so.6").or_else(|| loaded("libc++abi.so.1"))?;
        // SAFETY: the Itanium C++ ABI has these functions, of these types.
        let (begin, type_of, end) = unsafe {
            (
                *runtime.get::<Begin>(b"__cxa_begin_catch").ok()?,
                *runtime.get::<TypeOf>(b"__cxa_current_exception_type").ok()?,
                *runtime.get::<End>(b"__cxa_end_catch").ok()?,
            )
        };
        // SAFETY: the ABI: the thrown object is behind the header, and lives while it is handled; a type's
        // name is the second word of what describes it. Of the standard exceptions the third virtual
        // function, after two destructors, is `what`.
        unsafe {
            begin(exception);
            // The runtime would give the object's address had it searched for a handler. The object is behind
            // the header.
            let thrown = exception.byte_add(HEADER_BYTES);
            let described = type_of();
            let mut text = String::from("of an unknown type");
            if !described.is_null() {
                let name = CStr::from_ptr(described.add(1).read());
                text = name.to_string_lossy().into_owned();
                if STANDARD.contains(&name) {
                    type What = unsafe extern "C" fn(*const c_void) -> *const c_char;
                    let functions = thrown.cast::<*const What>().read();
                    let what = functions.add(2).read()(thrown);
                    if !what.is_null() {
                        text = format!(
                            "{}: {}",
                            &text[2..].trim_start_matches(|c: char| c.is_ascii_digit()),
                            CStr::from_ptr(what).to_string_lossy()
                        );
                    }
                }
            }
            end();
            Some(text)
        }
    }
}
