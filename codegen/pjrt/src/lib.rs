//! A PJRT plugin: frameworks that speak PJRT, JAX above all, compile and run programs with `hlo-client`. How
//! it is used: docs/pjrt.md. The shared library that they load is the crate in `plugin/`; `host/` is the
//! caller's side; `abi/` is what both sides share.
//!
//! | module | holds |
//! |---|---|
//! | [`api`] | the C API: its table of functions; its structs and numbers are those of `abi/` |
//! | `border` | how calls come in, and how foreign memory is read and written |
//! | [`handles`] | objects as callers hold them |
//! | [`error`], [`event`] | failures; what has happened or will |
//! | [`client`], [`device`], [`memory`], [`topology`] | the plugin, a client, its devices and their memories |
//! | [`buffer`], [`transfer`], [`strides`] | arrays, from the host and to it |
//! | [`options`] with `xla_options`, [`program`], [`executable`], [`execute`] | compiling and executing |
//! | [`placement`], [`sharding`], `propagate`, `parts` | several devices: who runs what, and who has which part of an array |
//! | `callbacks`, `inspect` | what programs for several devices tell their caller of parts and shardings |
//! | [`layout`] | how arrays are laid out in memory |
//! | `dump` | programs that are dumped where XLA's options ask for it |
//! | [`check`] | executions judged by the reference |
//! | [`ffi`] | handlers of XLA's FFI |
//! | [`values`], [`serialized`] | attributes and bytes that callers read |
//!
//! **Invariants:** unsafe code is at the border to C alone, and each block says which promise of the C API it
//! rests on. Whatever a caller does that C can notice ends in an error with a code and a message: no panic
//! crosses the border, no object is used after it was destroyed.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod api;
mod border;
pub mod buffer;
mod callbacks;
#[cfg(feature = "check")]
pub mod check;
#[cfg(not(feature = "check"))]
#[path = "unchecked.rs"]
pub mod check;
pub mod client;
pub mod device;
mod dump;
mod emit;
pub mod error;
pub mod event;
pub mod executable;
pub mod execute;
pub mod ffi;
pub mod handles;
mod inspect;
pub mod layout;
mod log;
pub mod memory;
pub mod options;
mod parts;
pub mod placement;
pub mod program;
mod propagate;
pub mod serialized;
pub mod sharding;
pub mod strides;
pub mod topology;
pub mod transfer;
pub mod values;
mod xla_options;

pub use hlo_pjrt_abi::opaque;
