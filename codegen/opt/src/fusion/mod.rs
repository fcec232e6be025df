//! Fusion: which instructions run as one kernel.
//!
//! What is fused is outlined into a computation of its own, which a `fusion` calls: still HLO, so the
//! interpreter gives the same bits before and after, and a module of any number of applications is a program.
//! The kind says how it is computed (contract: `hlo_codegen::kernel`):
//! - `kLoop`: every root element by element over one iteration space;
//! - `kInput`: reductions of one operand space (`reduce`, and sums of weighted elements), producers as index
//!   expressions;
//! - `kOutput`: a contraction, and what is done to each element of its result;
//! - `kCustom`: rows: everything that happens to a row between reductions over it, while it is in cache.
//!
//! **Invariants:** an instruction with control edges, effects or run-time sizes is never in a fusion; a
//! fusion's computation is called once, holds no fusion, and stands before its caller in the text.

pub mod combine;
pub mod folds;
mod graph;
mod index_map;
pub mod kinds;
mod loops;
mod maps;
mod outline;
mod output;
mod rows;
mod small_k;
mod while_kernel;
mod wrapper;

use crate::passes::Pipeline;

pub use kinds::applies_loops;
pub use while_kernel::{is_while_kernel, update_slice_chain};

/// Whether an instruction folds dimensions of what it reads ([`folds`]).
pub fn is_fold(module: &hlo::Module, id: hlo::InstrId) -> bool {
    folds::space(module, id).is_some()
}

pub(crate) use loops::run as fuse_loops;
pub(crate) use output::run as fuse_outputs;
pub(crate) use rows::run as fuse_rows;
pub(crate) use small_k::run as transpose_thin_dots;
pub use wrapper::run as wrap;

/// What lowering needs, and nothing that only makes programs faster.
const LOWERING: &[&str] = &[
    "elided-constants",
    "mixed-precision",
    "async-to-call",
    "layout-normalization",
    "call-inliner",
    "unfuse",
    "layout-normalization",
    "batch-norm-expander",
];

/// The alternative to fusion passes at level 0.
const UNFUSED: &[&str] = &["nan-canonicalizer", "fusion-wrapper", "dce"];

/// Fusions, in order.
const FUSION: &[&str] = &[
    "reduce-simplifier",
    "degenerate-dimensions",
    "algebraic-simplifier",
    "movement-simplifier",
    "reshape-simplifier",
    "transpose-folding",
    "thin-dot-transposer",
    "cse",
    "nan-canonicalizer",
    "tuple-simplifier",
    "dce",
    "row-fusion",
    "output-fusion",
    "loop-fusion",
    "fusion-wrapper",
    "dce",
];

/// Fusions for GPUs, in order.
const GPU_FUSION: &[&str] = &[
    "while-loop-trip-count-annotator",
    "reduce-simplifier",
    "degenerate-dimensions",
    "algebraic-simplifier",
    "movement-simplifier",
    "reshape-simplifier",
    "transpose-folding",
    "cse",
    "nan-canonicalizer",
    "tuple-simplifier",
    "dce",
    "row-fusion",
    "output-fusion",
    "loop-fusion",
    "fusion-wrapper",
    "dce",
];

/// What buffer assignment needs.
pub const ORDER: &[&str] = &["flatten-call-graph", "schedule"];

impl Pipeline {
    /// What a program goes through before it is scheduled and lowered for this machine: at `opt_level` 0 only
    /// what lowering needs, else the passes of [`crate::passes::DEFAULT`] and fusion.
    pub fn cpu(opt_level: u8) -> Pipeline {
        Self::fusing(opt_level, FUSION)
    }

    /// The same for a GPU.
    pub fn gpu(opt_level: u8) -> Pipeline {
        Self::fusing(opt_level, GPU_FUSION)
    }

    fn fusing(opt_level: u8, fusion: &[&str]) -> Pipeline {
        let of = Pipeline::declared;
        if opt_level == 0 {
            return of(LOWERING).followed_by(of(UNFUSED)).followed_by(of(ORDER));
        }
        of(LOWERING).followed_by(Pipeline::standard()).followed_by(of(fusion)).followed_by(of(ORDER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::by_name;

    #[test]
    fn pipelines_are_made_of_declared_passes() {
        assert!(
            LOWERING
                .iter()
                .chain(UNFUSED)
                .chain(FUSION)
                .chain(GPU_FUSION)
                .chain(ORDER)
                .all(|name| by_name(name).is_some())
        );
        assert_eq!(Pipeline::cpu(0).passes().len(), LOWERING.len() + UNFUSED.len() + ORDER.len());
    }
}
