//! Which (opcode, element type) pairs are legal HLO, which of them the verifier accepts, and which the tests run.
//!
//! **Invariants:** what is legal is data (`coverage/legal.txt`), written from XLA's sources and the StableHLO specification,
//! never derived from the code that it is compared with. A pair counts as interpreted only if a test that passes executed such
//! an instruction and compared with values that come from elsewhere.

mod legal;
mod probe;

pub use legal::{Key, Legal, key_of};
pub use probe::probe;
