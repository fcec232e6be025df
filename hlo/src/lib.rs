//! The HLO intermediate representation.
//!
//! HLO is what XLA compiles: a module is a set of computations, one of them the entry; a computation is a
//! sequence of instructions without control flow of its own; an instruction applies an opcode to the results
//! of earlier instructions of the same computation and yields one value, which never changes. This crate
//! holds that, and what follows from it alone: names and numbers of types and opcodes, text output, shape
//! inference, the verifier, diagnostics.
//!
//! **What a program means.** A value is an array, a tuple of values, or a token. An array has an element type
//! and dimensions and is addressed by logical indices; a layout is its order in memory and changes no value
//! (only `bitcast` looks at it). Instructions run in an order that respects operands and control
//! predecessors; the order in the text is one such order, and in a scheduled module it is the schedule.
//! Tokens order side effects. A fusion or call means what its computation means. Dimensions written `<=N`
//! have a run-time size of at most `N`. Which bits arithmetic gives is in SEMANTICS.md.
//!
//! **Verified means no panic.** What [`verify`](verify::verify) accepts may be handed to any later stage,
//! which runs it or refuses it with an error; none may panic on it. The accessors named `expect_*` and the
//! typed attribute getters rest on that.
//!
//! **Absent on purpose:** input and output, unsafe code, any knowledge of engines.

#![forbid(unsafe_code)]

pub mod attrs;
pub mod builder;
mod clone;
pub mod cost;
pub mod diag;
pub mod element_type;
pub mod elementwise;
pub mod elided;
pub mod equal;
pub mod facts;
mod ids;
pub mod infer;
pub mod layout;
pub mod literal;
mod log_add_exp;
pub mod memory_order;
mod module;
mod names;
pub mod opcode;
pub mod print;
pub mod rng_ordinal;
pub mod shape;
pub mod shardy;
pub mod small_float;
pub mod small_int;
pub mod span;
pub mod verify;

pub use half;
pub use num_complex;

pub use attrs::{AttrKey, AttrKind, AttrValue, Attrs};
pub use diag::{Diagnostic, Diagnostics};
pub use element_type::{Element, ElementType, TypeClass};
pub use equal::{Difference, fingerprint, modules_equal};
pub use ids::{ComputationId, InstrId};
pub use layout::Layout;
pub use literal::{ArrayLiteral, Bits, Buffer, BufferOf, ConstantValue, Literal};
pub use log_add_exp::{folds_in_any_order, log_add_exp};
pub use module::{
    Computation, DeclaredSignature, Instruction, InstructionIter, MAX_PARAMETERS, Module, ModuleHeader, Name,
    NewInstruction, PropagationFlags, TextStyle, Use,
};
pub use opcode::Opcode;
pub use shape::{ArrayShape, Dims, ProgramShape, Shape, UNBOUNDED};
pub use span::{LineIndex, Span};
