//! HLO to StableHLO: the opposite of [`convert`](mod@crate::convert).
//!
//! A computation that is called becomes a function, one that is applied becomes a region. HLO's tuples are
//! not values here: an instruction stands for the list of the arrays and tokens in it (its *leaves*), so
//! `tuple` and `get-tuple-element` are no operations. Tuple types remain where something outside of the
//! program sees them: arguments and results of the entry computation, operands and results of custom calls.
//!
//! What only says how a program is compiled or laid out in memory has no StableHLO and is left out
//! ([`Exported::left_out`]); what would change results and has none is an error, one for each instruction.
//!
//! **Invariants:** nothing recurses on the nesting of computations: regions are filled from a list of work.
//! The number of operations is bounded ([`MAX_OPERATIONS`]), because a computation that is applied several
//! times is inlined each time.

mod bitcast;
mod collective;
mod contraction;
mod control;
mod custom_call;
mod cx;
mod dispatch;
mod elementwise;
mod header;
mod indexing;
mod linalg;
mod literal;
mod movement;
mod reduction;
mod transfer;
mod types;

use std::collections::BTreeSet;

use hlo::Diagnostics;

use crate::ir::Module;
use cx::Exporter;

/// The maximum number of operations of a module.
pub const MAX_OPERATIONS: usize = 1 << 24;

/// A module of StableHLO.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The module; its entry function is `@main`.
    pub module: Module,
    /// What the HLO says and StableHLO cannot, none of which changes a result: `layouts`,
    /// `control-predecessors`.
    pub left_out: BTreeSet<&'static str>,
}

/// Converts a verified module. Errors: an instruction has no StableHLO (`U0006`), or there would be more than
/// [`MAX_OPERATIONS`] operations.
pub fn from_hlo(module: &hlo::Module) -> Result<Exported, Diagnostics> {
    Exporter::new(module).run()
}
