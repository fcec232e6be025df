//! Reduction spaces: `reduce`, and contractions that are evaluated as reductions (weighted sums).
//!
//! GEMM kernels use each element of both operands many times. Where one operand contributes nothing but batch
//! dimensions to the result, each element of the other is used once (a batched GEMV): that is a reduction of
//! products over the space of the other operand, vectorized along its innermost dimension, and fusible like
//! any reduction. Shapes for which the GEMV kernels of the library are faster stay with them.
//!
//! **Invariant:** whether a `dot` is evaluated as a reduction depends on it and on the shapes of its operands
//! alone, so it is the same inside a fusion as before.

use hlo::attrs::{AttrKey, Precision};
use hlo::{ArrayShape, ComputationId, ElementType, InstrId, Module, Opcode, TypeClass};
use hlo_library_base::Unsupported;
use smallvec::SmallVec;

use super::kinds::dims;
use super::small_k::{self, SIDES};
use crate::cost_model::CostModel;
use crate::passes::facts::{is_ieee, is_product, short_reduction_len};

/// GEMV kernels are faster for 16-bit floats: rows of that many contiguous terms if there are enough rows, or
/// that many contiguous rows.
const GEMV16_MIN_TERMS: i64 = CostModel::CPU.gemv16_min_terms;
const GEMV16_MIN_ROWS: i64 = CostModel::CPU.gemv16_min_rows;
const GEMV16_MIN_CONTIGUOUS_ROWS: i64 = CostModel::CPU.gemv16_min_contiguous_rows;
/// Batched matrices of up to this many elements go to the batched small-matrix kernel.
const SMALL_MATRIX_ELEMENTS: i64 = CostModel::CPU.small_matrix_elements;
/// Up to this K a product is computed as a sum of outer products.
const MAX_OUTER_PRODUCT_TERMS: i64 = CostModel::CPU.max_outer_product_terms;

/// The iteration space of a reduction, and which of its dimensions the result keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    /// The dimensions of the elements.
    pub dims: SmallVec<[i64; 4]>,
    /// The reduced dimensions.
    pub along: SmallVec<[usize; 4]>,
    /// The dimension that each one of the result is; `None` for one of size 1 that is none of them.
    pub kept: SmallVec<[Option<usize>; 4]>,
}

impl Space {
    /// Whether a dimension is reduced.
    pub fn is_reduced(&self, d: usize) -> bool {
        self.along.contains(&d)
    }

    /// Whether the result keeps the other dimensions in their order.
    pub fn in_order(&self) -> bool {
        let kept = (0..self.dims.len()).filter(|&d| !self.is_reduced(d));
        self.kept.iter().copied().eq(kept.map(Some))
    }

    /// The dimensions of the result.
    pub fn kept_dims(&self) -> SmallVec<[i64; 4]> {
        self.kept.iter().map(|d| d.map_or(1, |d| self.dims[d])).collect()
    }

    /// The outer (row) dimensions and the dimensions of a row, if the reduced dimensions are the innermost
    /// ones.
    pub fn rows(&self) -> Option<(&[i64], &[i64])> {
        let rows = self.dims.len().checked_sub(self.along.len())?;
        (self.in_order() && self.along.iter().all(|&d| d >= rows)).then(|| self.dims.split_at(rows))
    }
}

/// The space of a reduction. `None`: the instruction is no reduction.
pub fn space(module: &Module, id: InstrId) -> Option<Space> {
    let instr = module.instr(id);
    match instr.opcode {
        Opcode::Reduce if short_reduction_len(module, id).is_none() => {
            let of: SmallVec<[i64; 4]> = dims(module, *instr.operands().first()?).into();
            let along = instr.attrs.ints_or_empty(AttrKey::Dimensions).iter();
            let along: SmallVec<[usize; 4]> = along.map(|&d| d as usize).collect();
            let kept = (0..of.len()).filter(|d| !along.contains(d)).map(Some).collect();
            Some(Space { dims: of, along, kept })
        }
        Opcode::Dot => WeightedSum::of(module, id).filter(|w| w.is_fold(module, id)).map(|w| w.space),
        _ => None,
    }
}

/// The reductions of a fusion's computation, in program order, with their spaces.
pub fn all(module: &Module, computation: ComputationId) -> Vec<(InstrId, Space)> {
    module.instructions(computation).filter_map(|i| Some((i, space(module, i)?))).collect()
}

/// The order in which the result of a fusion's only reduction, a contraction, is stored, if it is transposed:
/// the dimension that each stored one is.
pub fn stored_order(
    module: &Module,
    computation: ComputationId,
    reductions: &[(InstrId, Space)],
) -> Result<Option<Vec<usize>>, Unsupported> {
    let &[(dot, _)] = reductions else { return Ok(None) };
    let transposes = |user: InstrId| module.instr(user).opcode == Opcode::Transpose;
    let Some(transpose) = module.users(dot).iter().map(|u| u.user).find(|&u| transposes(u)) else {
        return Ok(None);
    };
    // The result cannot be stored both transposed and not.
    if module.users(dot).len() != 1 || module.root(computation) == dot {
        return Err(Unsupported::new(module, dot, "a result in two orders"));
    }
    let order = module.instr(transpose).attrs.ints_or_empty(AttrKey::Dimensions);
    Ok(Some(order.iter().map(|&d| d as usize).collect()))
}

/// The operand slot whose elements a reduction goes over.
pub fn operand(module: &Module, id: InstrId) -> usize {
    let is_dot = module.instr(id).opcode == Opcode::Dot;
    if is_dot { WeightedSum::of(module, id).map_or(0, |w| w.side) } else { 0 }
}

/// The type in which the products of a contraction are accumulated, if it can be a reduction at all.
pub fn accumulator_type(module: &Module, id: InstrId) -> Option<ElementType> {
    let instr = module.instr(id);
    let type_of = |id: InstrId| module.instr(id).shape.element_type();
    let [lhs, rhs] = instr.operands() else { return None };
    let (lhs, rhs, result) = (type_of(*lhs)?, type_of(*rhs)?, instr.shape.element_type()?);
    let all = [lhs, rhs, result];
    match result.class() {
        TypeClass::Float if all.iter().all(|&ty| is_ieee(ty)) => {
            let wide = all.contains(&ElementType::F64);
            Some(if wide { ElementType::F64 } else { ElementType::F32 })
        }
        TypeClass::Complex if lhs == result && rhs == result => Some(result),
        TypeClass::Signed | TypeClass::Unsigned => {
            let whole = all.iter().all(|ty| ty.is_integer() && ty.bits() >= 8);
            whole.then_some(result)
        }
        TypeClass::Float | TypeClass::Complex | TypeClass::Pred => None,
    }
}

/// A contraction as a weighted sum: one operand, the weights, contributes nothing but batch dimensions to the
/// result.
pub struct WeightedSum {
    /// The slot of the other operand: 0 is the left one.
    pub side: usize,
    /// The dimension of the other operand that each one of the weights is; `None` for those of size 1 that
    /// only the weights have.
    pub weights: SmallVec<[Option<usize>; 4]>,
    /// The space of the other operand.
    space: Space,
    /// The free dimensions of that space.
    free: SmallVec<[usize; 4]>,
}

impl WeightedSum {
    /// A `dot` as a weighted sum, if it is one.
    pub fn of(module: &Module, id: InstrId) -> Option<WeightedSum> {
        let instr = module.instr(id);
        let operands: [InstrId; 2] = instr.operands().try_into().ok()?;
        let list = |side: usize, which: usize| -> SmallVec<[usize; 4]> {
            let ints = instr.attrs.ints_or_empty(SIDES[side][which]).iter();
            ints.map(|&d| d as usize).collect()
        };
        let of = operands.map(|o| dims(module, o));
        let free = [0, 1].map(|side: usize| -> SmallVec<[usize; 4]> {
            let (batch, contracted) = (list(side, 0), list(side, 1));
            (0..of[side].len()).filter(|d| !batch.contains(d) && !contracted.contains(d)).collect()
        });
        let spare = |side: usize| free[side].iter().all(|&d| of[side][d] == 1);
        let side = (0..2).find(|&side| spare(1 - side))?;
        let mut kept: SmallVec<[Option<usize>; 4]> = list(side, 0).into_iter().map(Some).collect();
        for (from, free) in free.iter().enumerate() {
            kept.extend(free.iter().map(|&d| (from == side).then_some(d)));
        }
        let mut along = list(side, 1);
        along.sort_unstable();
        let space = Space { dims: of[side].into(), along, kept };
        let free = free[side].iter().copied().filter(|&d| of[side][d] != 1).collect();
        let mut weights: SmallVec<[Option<usize>; 4]> = SmallVec::from_elem(None, of[1 - side].len());
        for which in 0..SIDES[side].len() {
            for (d, weight) in list(side, which).into_iter().zip(list(1 - side, which)) {
                weights[weight] = Some(d);
            }
        }
        Some(WeightedSum { side, weights, space, free })
    }

    fn is_fold(&self, module: &Module, id: InstrId) -> bool {
        let plain = module.instr(id).attrs.precisions().is_none_or(|p| !p.contains(&Precision::PackedNibble));
        plain
            && accumulator_type(module, id).is_some()
            && !self.space.dims.contains(&0)
            && !is_product(module, id)
            && !small_k::is_fused_in_loops(module, id)
            && !self.prefers_gemv_kernel(module, id)
    }

    /// Whether a GEMV kernel of the library is the better strategy.
    fn prefers_gemv_kernel(&self, module: &Module, id: InstrId) -> bool {
        let dims = &self.space.dims;
        let long: SmallVec<[usize; 4]> = (0..dims.len()).filter(|&d| dims[d] != 1).collect();
        let is_free = |d: usize| self.free.contains(&d);
        // Counts runs of dimensions: adjacent ones collapse.
        let runs = |of: &dyn Fn(usize) -> bool| {
            let firsts = long.iter().enumerate().filter(|&(i, &d)| of(d) && (i == 0 || !of(long[i - 1])));
            firsts.count()
        };
        let count = |of: &dyn Fn(usize) -> bool| -> i64 {
            long.iter().filter(|&&d| of(d)).fold(1, |n, &d| n.saturating_mul(dims[d]))
        };
        let (rows, terms) = (count(&is_free), count(&|d| self.space.is_reduced(d)));
        if terms <= MAX_OUTER_PRODUCT_TERMS {
            return true;
        }
        if runs(&is_free) != 1 || runs(&|d| self.space.is_reduced(d)) != 1 {
            return false;
        }
        let batch = long.iter().any(|&d| !is_free(d) && !self.space.is_reduced(d));
        let first = long.iter().position(|&d| is_free(d) || self.space.is_reduced(d)).unwrap_or(0);
        let leading = long[first..].iter().all(|&d| is_free(d) || self.space.is_reduced(d));
        if !batch || leading && rows.saturating_mul(terms) <= SMALL_MATRIX_ELEMENTS {
            return true;
        }
        let operands = module.instr(id).operands();
        let of = module.instr(operands[self.side]).shape.as_array().map(|a: &ArrayShape| a.element_type);
        let narrow = of.is_some_and(|ty| ty.is_float() && ty.bits() == 16);
        let innermost = long.last().copied();
        narrow
            && innermost.is_some_and(|d| {
                let long = self.space.is_reduced(d) && terms >= GEMV16_MIN_TERMS && rows >= GEMV16_MIN_ROWS;
                long || is_free(d) && rows >= GEMV16_MIN_CONTIGUOUS_ROWS
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space_of(lhs: &str, rhs: &str, result: &str, attrs: &str) -> Option<Space> {
        let text = format!(
            "HloModule m\nENTRY e {{ a = {lhs} parameter(0)\n b = {rhs} parameter(1)\n ROOT d = {result} dot(a, b), {attrs} }}"
        );
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        let module = parsed.module.expect("the texts here are modules");
        space(&module, module.root(module.entry()))
    }

    /// Contracting and batch dimensions of the left, then of the right operand.
    fn attrs(lists: [&str; 4]) -> String {
        let [lc, lb, rc, rb] = lists;
        format!(
            "lhs_contracting_dims={{{lc}}}, lhs_batch_dims={{{lb}}}, rhs_contracting_dims={{{rc}}}, rhs_batch_dims={{{rb}}}"
        )
    }

    #[test]
    fn products_without_free_dimensions_are_reductions() {
        let innermost = attrs(["0,1", "2", "0,1", "2"]);
        let space = space_of("f32[64,96,48]", "f32[64,96,48]", "f32[48]", &innermost).unwrap();
        assert_eq!((&space.dims[..], &space.along[..]), (&[64, 96, 48][..], &[0, 1][..]));
        assert!(space.in_order() && space.rows().is_none());
        let rows = attrs(["1,2", "0", "1,2", "0"]);
        assert_eq!(
            space_of("bf16[64,96,48]", "bf16[64,96,48]", "bf16[64]", &rows).unwrap().rows(),
            Some((&[64][..], &[96, 48][..]))
        );
        let all = "lhs_contracting_dims={0}, rhs_contracting_dims={0}";
        assert_eq!(
            space_of("f32[1000]", "f32[1000]", "f32[]", all).unwrap().rows(),
            Some((&[][..], &[1000][..]))
        );
    }

    #[test]
    fn results_may_be_in_another_order_and_of_more_dimensions() {
        // The batch is innermost in the elements and first in the result; the other operand has a row of its
        // own.
        let batched = attrs(["1", "2", "1", "2"]);
        let space = space_of("f32[64,96,48]", "f32[1,96,48]", "f32[48,64,1]", &batched).unwrap();
        assert_eq!(&space.kept[..], &[Some(2), Some(0), None]);
        assert_eq!(&space.kept_dims()[..], &[48, 64, 1]);
        assert!(!space.in_order());
        // Elements are those of the right operand.
        let space = space_of("f32[96,48]", "f32[64,96,48]", "f32[48,64]", &attrs(["0", "1", "1", "2"]));
        assert_eq!(&space.unwrap().kept[..], &[Some(2), Some(0)]);
    }

    #[test]
    fn products_of_matrices_are_none() {
        let plain = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        for (lhs, rhs, result) in [
            ("f32[64,96]", "f32[96,48]", "f32[64,48]"),
            // GEMV.
            ("f32[64,96]", "f32[96]", "f32[64]"),
            ("f32[1,96]", "f32[96,64]", "f32[1,64]"),
            ("f32[64,0]", "f32[0]", "f32[64]"),
        ] {
            assert!(space_of(lhs, rhs, result, plain).is_none(), "{lhs} by {rhs}");
        }
        let batched = attrs(["2", "0", "1", "0"]);
        // Contiguous terms: for 16-bit floats the GEMV kernel is faster.
        assert!(space_of("bf16[16,64,256]", "bf16[16,256]", "bf16[16,64]", &batched).is_none());
        assert!(space_of("f32[16,64,256]", "f32[16,256]", "f32[16,64]", &batched).is_some());
        assert!(space_of("f8e5m2[16,64,256]", "f8e5m2[16,256]", "f8e5m2[16,64]", &batched).is_none());
        assert!(space_of("pred[16,64,256]", "pred[16,256]", "pred[16,64]", &batched).is_none());
    }
}
