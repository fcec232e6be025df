//! Whether the PTX interpreter computes what the hardware computes.
//!
//! Kernels of one instruction each are written from the interpreter's own table of forms, executed on many
//! operands by the interpreter and by a device, and their results compared bit by bit; approximate
//! instructions are compared with the interval that the ISA states. What the ISA leaves open (the arithmetic
//! of `mma.sync`) is compared with the published model that the interpreter implements.
//!
//! | file | what |
//! |---|---|
//! | `target` | what executes kernels: the interpreter, a CUDA device |
//! | `operands` | bits that instructions are tried on |
//! | `case` | a kernel with its memory, and what its results have to be |
//! | `families/` | the cases, one file a family |
//! | `judge` | comparison of results |
//! | `report` | what was found, as text and as data |
//! | `run` | all cases on both targets, in parallel, within a time |
//!
//! **Invariants:** a case depends on its name and the scale alone, never on time or threads; every kernel
//! writes all bytes of its outputs, so that what is compared is what it computed.
#![forbid(unsafe_code)]

pub mod case;
pub mod families;
pub mod judge;
pub mod operands;
pub mod report;
pub mod run;
pub mod target;
