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
//! | [`cancel`] | ending a run from outside, in whatever instruction it is |
//! | [`baseline`] | the instruction set that the C parts need |
//! | [`device`] | several devices in one process: what they exchange, deadlocks, hosts |
//! | `ops` | one file per family of opcodes |
//! | [`scalar`] | every operation on one element, for every element type |
//! | [`kernels`], [`sum`] | numeric kernels over slices; exact sums |
//! | [`matrices`] | LAPACK's routines on one matrix |
//! | `region` | computations that are applied to elements, as bytecode over blocks of lanes |

#![forbid(unsafe_code)]

pub mod attempt;
pub mod baseline;
pub mod cancel;
pub mod columns;
pub mod custom_call;
pub mod device;
mod endless;
pub mod engine;
pub mod error;
pub mod kernels;
mod linalg;
pub mod matrices;
mod memory;
pub mod observe;
mod ops;
mod order;
mod parallel;
mod plan;
mod region;
pub mod scalar;
pub mod sum;
pub mod value;

pub use device::{Device, Devices};
pub use endless::repeats;
pub use engine::{Interpreter, Options, RunStats};
pub use error::{ErrorKind, REFUSAL, RunError};
pub use memory::{Beside, Held};
pub use observe::{Flow, Observer};
pub use parallel::{Threads, with_threads};
pub use region::binary_of;
pub use sum::Accumulate;
pub use value::{Tensor, Value};
