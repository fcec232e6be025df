//! The process may end while threads of the library compile, in the background or for another thread of its host.
//!
//! `exit` destroys static objects of C++ then, LLVM's among them, each by a handler that its constructor gave to
//! `__cxa_atexit`; a thread that uses one of them crashes the process, whose exit status is lost. This library is never unloaded, and
//! its static objects hold nothing but memory. So it has a `__cxa_atexit` of its own, which LLVM's constructors are linked with, and
//! which forgets the handler. The symbol is hidden: other libraries of the process have the C library's.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
std::arch::global_asm!(
    ".text",
    ".globl __cxa_atexit",
    ".hidden __cxa_atexit",
    ".type __cxa_atexit, @function",
    "__cxa_atexit:",
    "xor eax, eax",
    "ret",
    ".size __cxa_atexit, . - __cxa_atexit",
);

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
std::arch::global_asm!(
    ".text",
    ".globl __cxa_atexit",
    ".hidden __cxa_atexit",
    ".type __cxa_atexit, @function",
    "__cxa_atexit:",
    "mov w0, wzr",
    "ret",
    ".size __cxa_atexit, . - __cxa_atexit",
);
