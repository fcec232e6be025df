//! Static destructors of this library never run.
//!
//! `exit` runs the destructors of C++ static objects, LLVM's among them, while other threads of the process may
//! still compile: a thread that uses such an object afterwards crashes the process, and its exit status is lost.
//! Constructors register destructors by `__cxa_atexit`. The definition here registers none; LLVM's constructors
//! are linked with it. Nothing is lost: frameworks do not unload plugins, and LLVM's static objects own memory
//! alone. The symbol is hidden, so other libraries of the process keep the C library's.

#[cfg(target_arch = "x86_64")]
macro_rules! set_result_to_zero {
    () => {
        "xor eax, eax"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! set_result_to_zero {
    () => {
        "mov w0, wzr"
    };
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
std::arch::global_asm!(
    ".text",
    ".globl __cxa_atexit",
    ".hidden __cxa_atexit",
    ".type __cxa_atexit, @function",
    "__cxa_atexit:",
    set_result_to_zero!(),
    "ret",
    ".size __cxa_atexit, . - __cxa_atexit",
);
