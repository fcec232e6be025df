//! The choice of how a contraction is computed, made once, when the program is compiled.
//!
//! **Invariant:** execution, size of scratch memory, packing ahead of execution and the name in profiles all
//! follow from this one value.

use hlo::ElementType;

#[cfg(target_arch = "x86_64")]
use super::batched_small::BatchedSmall;
use super::gemv::Gemv;
#[cfg(target_arch = "x86_64")]
use super::grouped::Grouped;
use super::operand::{Field, Operand};
#[cfg(target_arch = "x86_64")]
use super::outer_product::OuterProduct;
use super::product::Extents;
#[cfg(target_arch = "x86_64")]
use super::skinny::Skinny;
use super::split_k::SplitK;
use super::sums_are_elements;
#[cfg(not(target_arch = "x86_64"))]
use super::unavailable::{BatchedSmall, Grouped, OuterProduct, Skinny};

/// How a contraction is computed.
#[derive(Clone, Debug)]
pub(super) enum Strategy {
    /// GEMV.
    Gemv(Gemv),
    /// Batched small GEMM.
    BatchedSmall(BatchedSmall),
    /// Skinny GEMM.
    Skinny(Skinny),
    /// Packed GEMM with an instruction that adds products of several terms at a time (`vdpbf16ps`, VNNI). If
    /// operand values turn out not to suit the instruction, an execution takes the other strategy.
    Grouped(Grouped, Box<Strategy>),
    /// Split-K GEMM.
    SplitK(SplitK),
    /// Outer product: K is 1, so that products are stored without a sum. [`Strategy::Packed`] if the call
    /// has an epilogue.
    OuterProduct(OuterProduct),
    /// Packed GEMM, by the contraction's schedule.
    Packed,
}

impl Strategy {
    /// The first that takes a contraction, in the order of the variants.
    pub(super) fn of(
        field: Field,
        extents: Extents,
        [lhs, rhs]: [&Operand; 2],
        result: ElementType,
    ) -> Strategy {
        let batched_small = BatchedSmall::new(field, extents, lhs, rhs, result);
        let flat = batched_small.as_ref().is_some_and(BatchedSmall::is_flat);
        if let Some(gemv) = Gemv::new(field, extents, lhs, rhs, result).filter(|_| !flat) {
            return Strategy::Gemv(gemv);
        }
        if let Some(batched_small) = batched_small {
            return Strategy::BatchedSmall(batched_small);
        }
        if let Some(skinny) = Skinny::new(field, extents, lhs, rhs) {
            return Strategy::Skinny(skinny);
        }
        let streamed = field == Field::F32 && result == ElementType::F32;
        let other = if let Some(split_k) = SplitK::new(field, extents, lhs, rhs) {
            Strategy::SplitK(split_k)
        } else if let Some(outer_product) = streamed.then(|| OuterProduct::new(extents)).flatten() {
            Strategy::OuterProduct(outer_product)
        } else {
            Strategy::Packed
        };
        match Grouped::new(field, extents, lhs, rhs, sums_are_elements(field, result)) {
            Some(grouped) => Strategy::Grouped(grouped, Box::new(other)),
            None => other,
        }
    }

    /// Its name, as docs/compiler.md has it; `along`: the schedule of a packed GEMM streams its right
    /// operand.
    pub(super) fn name(&self, along: bool) -> &'static str {
        match self {
            Strategy::Gemv(_) => "GEMV",
            Strategy::BatchedSmall(_) => "batched small GEMM",
            Strategy::Skinny(_) => "skinny GEMM",
            Strategy::Grouped(_, _) => "packed GEMM on groups of terms",
            Strategy::SplitK(_) => "split-K GEMM",
            Strategy::OuterProduct(_) => "outer product",
            Strategy::Packed if along => "streamed GEMM",
            Strategy::Packed => "packed GEMM",
        }
    }

    /// Bytes of scratch memory, beside those of converted operands, where that of the packed GEMM is given.
    pub(super) fn scratch(&self, packed: usize) -> usize {
        match self {
            Strategy::Gemv(gemv) => gemv.scratch(),
            Strategy::BatchedSmall(_) => 0,
            Strategy::Skinny(skinny) => skinny.scratch(),
            Strategy::Grouped(grouped, other) => grouped.scratch().max(other.scratch(packed)),
            Strategy::SplitK(split_k) => split_k.scratch(),
            Strategy::OuterProduct(_) | Strategy::Packed => packed,
        }
    }
}
