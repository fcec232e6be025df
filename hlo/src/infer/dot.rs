//! `dot`, `ragged-dot`, `scaled-dot`.
//!
//! Dimensions of either side are batch (present in both, kept), contracting (present in both, summed over) or
//! free. The result has the batch dimensions, then the free ones of the left, then the free ones of the right
//! side. Its element type is the declared one, whatever that is; undeclared, the operands' (the one that
//! holds more).

use smallvec::SmallVec;

use super::InferError;
use super::cx::{Cx, DimList, Inferred, count, show_array, size, size_list};
use super::types::{Classes, higher_precision, same_size};
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::shape::{ArrayShape, Shape};

type Indices = SmallVec<[usize; 4]>;

/// The dimension numbers of a contraction, found to be sound.
struct DotDims<'a> {
    lhs: &'a ArrayShape,
    rhs: &'a ArrayShape,
    lhs_batch: Indices,
    rhs_batch: Indices,
    lhs_contracting: Indices,
    rhs_contracting: Indices,
}

const SIDES: [&str; 2] = ["left", "right"];

/// Batch and contracting dimensions of one side: in range, none twice.
fn side(cx: &Cx, i: usize, batch: AttrKey, contracting: AttrKey) -> Result<(Indices, Indices), InferError> {
    let rank = cx.array(i)?.rank();
    let at = |e: InferError| e.at(i, format!("the {} operand has {}", SIDES[i], count(rank, "dimension")));
    let b = cx.dimensions(batch.text(), cx.attrs.ints_or_empty(batch), rank).map_err(at)?;
    let c = cx.dimensions(contracting.text(), cx.attrs.ints_or_empty(contracting), rank).map_err(at)?;
    if let Some(both) = b.iter().find(|d| c.contains(d)) {
        return Err(cx.error(
            codes::DOT_DIMENSION_TWICE,
            format!("dimension {both} of the {} operand is both batch and contracting", SIDES[i]),
        ));
    }
    Ok((b, c))
}

/// Fails if paired dimensions differ in number or size.
fn pairs(cx: &Cx, kind: &str, lhs: &[usize], rhs: &[usize]) -> Result<(), InferError> {
    let (a, b) = (cx.array(0)?, cx.array(1)?);
    if lhs.len() != rhs.len() {
        return Err(cx.error(
            codes::DOT_DIMENSION_PAIRS,
            format!(
                "{} of the left operand, {} of the right",
                count(lhs.len(), &format!("{kind} dimension")),
                rhs.len()
            ),
        ));
    }
    for (&l, &r) in lhs.iter().zip(rhs) {
        let (m, n) = (a.dims[l], b.dims[r]);
        if !same_size(m, n) {
            let code = if kind == "batch" { codes::BATCH_SIZES } else { codes::CONTRACTING_SIZES };
            return Err(cx
                .error(code, format!("{kind} dimensions have different sizes"))
                .at(0, format!("{kind} dimension {l} of the left operand has size {}", size(m)))
                .at(1, format!("{kind} dimension {r} of the right operand has size {}", size(n)))
                .label(format!("{} and {} must be equal", size(m), size(n))));
        }
    }
    Ok(())
}

fn dot_dims<'a>(cx: &Cx<'a>) -> Result<DotDims<'a>, InferError> {
    let (lhs, rhs) = (cx.array(0)?, cx.array(1)?);
    let (lhs_batch, lhs_contracting) = side(cx, 0, AttrKey::LhsBatchDims, AttrKey::LhsContractingDims)?;
    let (rhs_batch, rhs_contracting) = side(cx, 1, AttrKey::RhsBatchDims, AttrKey::RhsContractingDims)?;
    pairs(cx, "contracting", &lhs_contracting, &rhs_contracting)?;
    pairs(cx, "batch", &lhs_batch, &rhs_batch)?;
    Ok(DotDims { lhs, rhs, lhs_batch, rhs_batch, lhs_contracting, rhs_contracting })
}

impl DotDims<'_> {
    fn push_result(&self, out: &mut DimList, groups: &[usize]) {
        self.lhs_batch.iter().for_each(|&i| out.push_from(self.lhs, i));
        self.lhs_free().for_each(|i| out.push_from(self.lhs, i));
        for i in 0..self.rhs.rank() {
            if !self.rhs_contracting.contains(&i) && !self.rhs_batch.contains(&i) && !groups.contains(&i) {
                out.push_from(self.rhs, i);
            }
        }
    }

    fn lhs_free(&self) -> impl Iterator<Item = usize> {
        (0..self.lhs.rank()).filter(|i| !self.lhs_contracting.contains(i) && !self.lhs_batch.contains(i))
    }
}

/// The element type of the result.
pub(super) fn result_type(cx: &Cx) -> Result<ElementType, InferError> {
    if cx.declared.is_some() {
        return Ok(cx.declared_array()?.element_type);
    }
    Ok(higher_precision(cx.array(0)?.element_type, cx.array(1)?.element_type))
}

/// `dot`
pub(super) fn dot(cx: &Cx) -> Inferred {
    if cx.operands.len() != 2 {
        return Err(cx
            .error(codes::WRONG_ARITY, format!("{} given", count(cx.operands.len(), "operand")))
            .label("takes 2 operands"));
    }
    let dims = dot_dims(cx)?;
    let mut out = DimList::new();
    dims.push_result(&mut out, &[]);
    cx.build(result_type(cx)?, out)
}

/// `scaled-dot(lhs, rhs, lhs_scale, rhs_scale)`: a scale has the dimensions of its operand, each divided by a
/// block size; an operand that has no scale has a dummy one, bf16 of one element. Complex numbers have no
/// meaning here.
pub(super) fn scaled_dot(cx: &Cx) -> Inferred {
    for i in 0..4 {
        cx.require_type(i, Classes::ORDERED)?;
    }
    let dims = dot_dims(cx)?;
    for (i, contracting) in [(0, &dims.lhs_contracting), (1, &dims.rhs_contracting)] {
        let (operand, scale) = (cx.array(i)?, cx.array(i + 2)?);
        let fail = |what: String| {
            Err(cx
                .error(codes::SCALED_DOT, what)
                .at(i, format!("this is {}", show_array(operand)))
                .at(i + 2, format!("this is {}", show_array(scale))))
        };
        let dummy = operand.element_type == ElementType::BF16
            && scale.element_type == ElementType::BF16
            && scale.dims.iter().all(|&d| d == 1)
            && operand.dims.iter().any(|&d| d != 1);
        if dummy {
            continue;
        }
        if scale.rank() != operand.rank() {
            return fail(format!(
                "the {} scale has {}, its operand {}",
                SIDES[i],
                count(scale.rank(), "dimension"),
                operand.rank()
            ));
        }
        if contracting.len() != 1 {
            return fail(format!(
                "a scaled operand must have one contracting dimension, not {}",
                contracting.len()
            ));
        }
        for d in 0..operand.rank() {
            let (n, blocks) = (operand.dims[d], scale.dims[d]);
            // A remainder by zero: an empty scale fits only an empty operand.
            let fits = if blocks == 0 { n == 0 } else { n.checked_rem(blocks) == Some(0) };
            if !fits {
                return fail(format!(
                    "dimension {d} of the {} operand has size {}, which is no multiple of its scale's {}",
                    SIDES[i],
                    size(n),
                    size(blocks)
                ));
            }
        }
    }
    if cx.operands[2].is_scalar() && cx.operands[3].is_scalar() {
        return Err(cx.error(codes::SCALED_DOT, "one of the scales must have dimensions"));
    }
    let mut out = DimList::new();
    dims.push_result(&mut out, &[]);
    cx.build(result_type(cx)?, out)
}

/// Which dimension of the left operand a ragged dot cuts into groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ragged {
    /// A free one: `[b,m,k], [g,b,k,n], [b,g] -> [b,m,n]`.
    Free,
    /// A contracting one: `[b,m,k], [b,k,n], [b,g] -> [g,b,m,n]`.
    Contracting,
    /// A batch one: `[b,m,k], [b,k,n], [g] -> [b,m,n]`.
    Batch,
}

/// `ragged-dot(lhs, rhs, group_sizes)`. Group sizes are `[g]`, or have before that the batch dimensions and
/// those of the ragged dimension's kind that stand before it.
pub(super) fn ragged_dot(cx: &Cx) -> Inferred {
    let sizes = cx.array(2)?;
    cx.require_type(2, Classes::INTEGER)?;
    let dims = dot_dims(cx)?;
    let ragged = cx.ints(AttrKey::LhsRaggedDims)?;
    let [ragged] = *ragged else {
        return Err(cx.error(
            codes::RAGGED_DOT,
            format!("the left operand must have exactly one ragged dimension, not {}", ragged.len()),
        ));
    };
    let ragged = cx.dimension("lhs_ragged_dims", ragged, dims.lhs.rank())?;
    let kind = if dims.lhs_batch.contains(&ragged) {
        Ragged::Batch
    } else if dims.lhs_contracting.contains(&ragged) {
        Ragged::Contracting
    } else {
        Ragged::Free
    };
    let before =
        |dims: &[usize]| -> Vec<usize> { dims.iter().copied().take_while(|&d| d != ragged).collect() };
    let mut prefix: Vec<usize> = match kind {
        Ragged::Batch => before(&dims.lhs_batch),
        Ragged::Contracting | Ragged::Free => dims.lhs_batch.to_vec(),
    };
    match kind {
        Ragged::Batch => {}
        Ragged::Contracting => prefix.extend(before(&dims.lhs_contracting)),
        Ragged::Free => prefix.extend(dims.lhs_free().take_while(|&d| d != ragged)),
    }
    let prefix: Vec<i64> = prefix.into_iter().map(|d| dims.lhs.dims[d]).collect();
    let Some((&groups, sizes_before)) = sizes.dims.split_last() else {
        return Err(cx
            .error(codes::RAGGED_DOT, "group sizes cannot be a scalar")
            .at(2, format!("this is {}", show_array(sizes))));
    };
    if !sizes_before.is_empty() && sizes_before != prefix.as_slice() {
        let mut expected = prefix;
        expected.push(groups);
        return Err(cx
            .error(codes::RAGGED_DOT, format!("group sizes have dimensions {}", size_list(&sizes.dims)))
            .at(2, format!("this is {}", show_array(sizes)))
            .label(format!("must have {{{}}} or {}", size(groups), size_list(&expected))));
    }
    let group_dims =
        cx.dimensions("rhs_group_dims", cx.attrs.ints_or_empty(AttrKey::RhsGroupDims), dims.rhs.rank())?;
    if let Some(d) =
        group_dims.iter().find(|d| dims.rhs_batch.contains(d) || dims.rhs_contracting.contains(d))
    {
        return Err(cx.error(
            codes::RAGGED_DOT,
            format!("group dimension {d} of the right operand is also batch or contracting"),
        ));
    }
    let expected = usize::from(kind == Ragged::Free);
    if group_dims.len() != expected {
        return Err(cx.error(
            codes::RAGGED_DOT,
            format!(
                "{} of the right operand, where the ragged dimension asks for {expected}",
                count(group_dims.len(), "group dimension")
            ),
        ));
    }
    if let Some(&d) = group_dims.first()
        && !same_size(dims.rhs.dims[d], groups)
    {
        return Err(cx
            .error(
                codes::RAGGED_DOT,
                format!(
                    "the group dimension has size {}, but there are {}",
                    size(dims.rhs.dims[d]),
                    size(groups)
                ),
            )
            .at(1, format!("dimension {d} of the right operand has size {}", size(dims.rhs.dims[d])))
            .at(2, format!("this is {}", show_array(sizes))));
    }
    let mut out = DimList::new();
    if kind == Ragged::Contracting {
        out.push_from(sizes, sizes.rank() - 1);
    }
    dims.push_result(&mut out, &group_dims);
    let shape: Shape = cx.build(result_type(cx)?, out)?;
    Ok(shape)
}
