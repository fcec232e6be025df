//! Programs as objects that others link with: the compiler to them ([`compile`](mod@compile), with the
//! feature `llvm`), and the run-time library of what is not generated code.
//!
//! An object calls the library by the C functions of [`calls`], whose interface docs/ahead-of-time.md
//! describes, and by those of [`functions`], which generated code calls for numbers that are rare. Which
//! operations there are an object says by a [`description`]: its module, and which instructions are the
//! library's; they are made of it as they were when it was compiled. **Invariants:** nothing but the compiler
//! needs LLVM, and the library is built without it; the interface has a version, and an object of another one
//! is refused before anything of it is read; an operation is the one that the compiler would have put into a
//! program, so it gives the same bits.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod calls;
#[cfg(feature = "llvm")]
pub mod compile;
pub mod description;
pub mod functions;
pub mod threads;

/// The version of the binary interface: of the entry point of objects, of their tables, and of the functions
/// of the library.
pub const ABI_VERSION: u64 = 2;
