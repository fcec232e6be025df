//! The caller's side of the PJRT C API: loads the plugin of any vendor, compiles programs with it, runs them
//! on its first device.
//!
//! | module | holds |
//! |---|---|
//! | [`plugin`] | the shared library and its table of functions |
//! | [`client`] | a client: compiling, arrays to the device |
//! | [`executable`] | a compiled program, its runs, arrays from the device |
//!
//! Structs, numbers, messages and failures are those of [`hlo_pjrt_abi`].
//!
//! **Invariants:** objects of a plugin are destroyed once, before the client that they belong to; a library
//! that was loaded stays. A plugin is code in this process: whoever names one trusts it, and if it aborts,
//! the process does.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod client;
mod dispatch;
pub mod executable;
pub mod plugin;

pub use client::Client;
pub use dispatch::Dispatch;
pub use executable::Executable;
pub use hlo_pjrt_abi::{Code, Failure};
pub use plugin::Plugin;
