//! `dot`: contractions over any dimensions, with batch dimensions anywhere. Arithmetic is that of
//! [`super::contract`]; terms are ordered by the contracting dimensions as listed, the last one fastest.
//! `operand_precision` and `algorithm` ask for less than what is computed, and change nothing.

use hlo::attrs::Precision;
use hlo::{AttrKey, ElementType, with_buffer};
use hlo_arithmetic::kernels::gemm::Gemm;
use hlo_products::{Contraction, Product};

use super::common::{arrays, dims, list, others};
use super::contract;
use super::strided::{collapse, pack, select, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value};

/// The dimension numbers of one operand.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) batch: Sizes,
    pub(super) contracting: Sizes,
}

impl Side {
    /// The dimensions that are neither.
    pub(super) fn free(&self, rank: usize) -> Sizes {
        others(rank, &[&self.batch, &self.contracting])
    }
}

/// The dimension numbers of an instruction of the dot family.
pub(super) fn sides(cx: &Cx<'_>) -> (Side, Side) {
    let side = |batch, contracting| Side { batch: list(cx, batch), contracting: list(cx, contracting) };
    (
        side(AttrKey::LhsBatchDims, AttrKey::LhsContractingDims),
        side(AttrKey::RhsBatchDims, AttrKey::RhsContractingDims),
    )
}

/// Refuses what changes the meaning of the operands.
pub(super) fn check_precision(cx: &Cx<'_>) -> Result<()> {
    if cx.attrs().precisions().is_some_and(|p| p.contains(&Precision::PackedNibble)) {
        return Err(cx.unsupported("with operand_precision=packed_nibble"));
    }
    Ok(())
}

/// `dot(lhs, rhs)`.
pub(super) fn dot(cx: &Cx<'_>, args: Args) -> Result<Value> {
    check_precision(cx)?;
    let [lhs, rhs] = arrays(args);
    let (left, right) = sides(cx);
    Ok(product(cx, lhs, &left, rhs, &right, super::contract::sum_type(cx))?.into())
}

/// A contraction with a result of type `ty` and dimensions (batch, free of lhs, free of rhs).
pub(super) fn product(
    cx: &Cx<'_>,
    lhs: Tensor,
    left: &Side,
    rhs: Tensor,
    right: &Side,
    ty: ElementType,
) -> Result<Tensor> {
    let (lhs_sizes, rhs_sizes) = (lhs.sizes(), rhs.sizes());
    let (lhs_free, rhs_free) = (left.free(lhs_sizes.len()), right.free(rhs_sizes.len()));
    let batch = select(&lhs_sizes, &left.batch);
    let (rows, columns) = (select(&lhs_sizes, &lhs_free), select(&rhs_sizes, &rhs_free));
    let extents = Gemm {
        batch: batch.iter().product(),
        m: rows.iter().product(),
        k: select(&lhs_sizes, &left.contracting).iter().product(),
        n: columns.iter().product(),
    };
    let (lhs, lhs_steps) = laid_out(cx, lhs, [&left.batch, &lhs_free, &left.contracting])?;
    let (rhs, rhs_steps) = laid_out(cx, rhs, [&right.batch, &right.contracting, &rhs_free])?;
    let contraction = Contraction::Product(Product { extents, lhs: lhs_steps, rhs: rhs_steps });
    let n = extents.batch * extents.m * extents.n;
    let buffer = contract::run(cx, &contraction, lhs, rhs, n, ty)?;
    let sizes: Sizes = batch.into_iter().chain(rows).chain(columns).collect();
    Ok(Tensor::new(dims(&sizes), buffer))
}

/// An operand, and the strides of three groups of its dimensions, each as one; copied if a group has no
/// single stride.
fn laid_out(cx: &Cx<'_>, x: Tensor, groups: [&[usize]; 3]) -> Result<(Tensor, [usize; 3])> {
    let sizes = x.sizes();
    let steps = strides(&sizes);
    let single = groups.map(|group| {
        let (_, steps) = collapse(&select(&sizes, group), &select(&steps, group));
        match steps[..] {
            [] => Some(0),
            [step] => Some(step),
            [_, _, ..] => None,
        }
    });
    if let [Some(a), Some(b), Some(c)] = single {
        return Ok((x, [a, b, c]));
    }
    let order: Sizes = groups.iter().flat_map(|group| group.iter().copied()).collect();
    cx.session.check_memory(cx.instr, Some(x.bytes()))?;
    let (packed_sizes, packed_steps) = (select(&sizes, &order), select(&steps, &order));
    let buffer =
        with_buffer!(x.buffer(), v => hlo::literal::BufferOf::wrap(pack(v, &packed_sizes, &packed_steps)));
    let size = |group: &[usize]| select(&sizes, group).iter().product::<usize>();
    let (second, third) = (size(groups[1]), size(groups[2]));
    Ok((Tensor::new(dims(&packed_sizes), buffer), [second * third, third, 1]))
}
