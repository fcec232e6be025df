//! The reference interpreter for HLO.
//!
//! [`Interpreter`] runs a verified module and gives the value that the program has by its own definition:
//! SEMANTICS.md says opcode by opcode and to the bit what that is. **Invariants:** the result depends on the
//! program, the arguments and [`Options`] alone, not on the machine or the number of threads; no verified
//! program makes it panic, overflow the stack, or allocate past its limit.
//!
//! | part | holds |
//! |---|---|
//! | [`value`] | arrays, tuples, tokens |
//! | [`engine`] | plans and runs computations: control flow, fuel, memory |
//! | [`observe`] | watching a run |
//! | [`attempt`] | allocations that may fail |
//! | [`columns`] | the same arithmetic over columns, for expressions of another IR |
//! | [`device`] | several devices in one process: what they exchange, deadlocks, hosts |
//! | `ops` | one file per family of opcodes |
//! | `region` | computations that are applied to elements, as bytecode over blocks of lanes |
//!
//! What elements, sums, slices and matrices compute is in `hlo-arithmetic`, `hlo-products` and
//! `hlo-matrices`; how work is divided among threads and cancelled, in `hlo-threads`.

#![forbid(unsafe_code)]

pub mod attempt;
pub mod columns;
pub mod custom_call;
pub mod device;
mod endless;
pub mod engine;
pub mod error;
mod memory;
pub mod observe;
mod ops;
mod order;
mod plan;
mod region;
pub mod value;

pub use device::{Device, Devices};
pub use endless::repeats;
pub use engine::{Interpreter, Options, RunStats};
pub use error::{ErrorKind, REFUSAL, RunError};
pub use memory::{Beside, Held};
pub use observe::{Flow, Observer};
pub use region::binary_of;
pub use value::{Tensor, Value};

pub use hlo_arithmetic::sum::Accumulate;
