//! Rewritings that a correct compiler may do although they change the bits: other orders of sums, contraction.

use hlo_codegen::passes::Pass;

use crate::engine::Allowances;

/// All variants, each with the liberties that it takes.
pub fn all() -> Vec<(Box<dyn Pass>, Allowances)> {
    Vec::new()
}
