//! CUDA for executing compiled programs: devices, memory, modules, launches, graphs.
//!
//! It knows no HLO. The driver's library is loaded at run time, so that everything builds and tests without
//! CUDA; what is missing is an [`Error`] that says what.
//!
//! ```no_run
//! # fn main() -> hlo_cuda::Result<()> {
//! use hlo_cuda::{DEFAULT_TIMEOUT, Driver, Launch};
//!
//! let driver = Driver::load()?;
//! let device = driver.open(0, DEFAULT_TIMEOUT)?;
//! let stream = device.stream()?;
//! let ptx = "...";
//! let twice = device.module(ptx)?.function("twice")?;
//! let x = stream.upload(&[1, 0, 0, 0, 2, 0, 0, 0])?;
//! stream.launch(&twice, &Launch::new([1, 1, 1], [2, 1, 1], 0, &[x.address()]))?;
//! let result = stream.download(&x)?;
//! # Ok(()) }
//! ```
//!
//! | file | what |
//! |---|---|
//! | `api` | the driver's functions: the one list of symbols |
//! | `error` | what can go wrong |
//! | `device` | driver, devices, the context of one |
//! | `module` | PTX compiled by the driver, functions |
//! | `stream` | work in order: launches, events, waiting with a limit |
//! | `memory` | buffers, copies through page-locked memory |
//! | `graph` | graphs of the driver |
//! | `policy` | which instance of a graph serves which launch, as a state machine without a device |
//!
//! # Promises
//!
//! - No call panics, and none waits longer than the time limit of [`Driver::open`]: waiting is polling.
//!   Copies between host and device go through page-locked memory, because the driver waits in copies of
//!   other memory.
//! - After a kernel failed (an illegal address, a trap) or did not end in time, every call gives
//!   [`Error::Broken`], and dropping things waits for nothing. The process keeps the context until it ends.
//! - A launch is checked against the kernel's parameters before the driver reads arguments. What kernels do
//!   with addresses is theirs: buffers may be freed while a kernel that was launched on another stream uses
//!   them, and an address may be any number.
#![deny(unsafe_op_in_unsafe_fn)]

mod api;
mod device;
mod error;
mod graph;
mod memory;
mod module;
pub mod policy;
mod stream;

pub use api::SYMBOLS;
pub use device::{DEFAULT_TIMEOUT, Device, DeviceInfo, Driver, OLDEST_DRIVER};
pub use error::{Error, Result};
pub use graph::{DriverGraphs, Graph, Instance, Step};
pub use memory::Buffer;
pub use module::{Function, FunctionAttributes, Module};
pub use stream::{Event, Launch, Stream};

/// What belongs to the driver shows its name alone.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })*
    };
}

opaque! { Driver Device Stream Event Buffer Module Function Graph Instance Step DriverGraphs }
