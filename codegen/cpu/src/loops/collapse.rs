//! Loop collapsing of short inner dimensions: one vectorized loop over elements that are contiguous in
//! memory; the dimensions' indices are quotients and remainders of its variable.
//!
//! If the dimensions are powers of two, lanes begin at multiples of them, so the offsets of all lanes are
//! known at compile time: whole registers are loaded and shuffled. A cost estimate decides between that and
//! vectorization across rows (a column per lane), which shares what all columns of a row need.

use super::access;
use super::nest::Nest;
use hlo_opt::expr::index::{Affine, Index};
use hlo_opt::expr::{Expr, GuardId, Op};

/// The number of lanes that estimates assume.
const LANES: i64 = 16;

/// The minimum number of elements of the collapsed dimensions: a multiple of the lanes of the narrowest
/// types.
const MIN_COLLAPSED_ELEMENTS: i64 = 64;

/// The number of leading registers that are compared.
const CHECKED_REGISTERS: i64 = 8;

/// The cost of a gather, in operations.
const GATHER_OPS: f64 = 24.0;

/// The first dimension to be collapsed with the inner ones, if those end short and lanes' offsets in them are
/// known at compile time.
pub(super) fn from(dims: &[i64]) -> Option<usize> {
    let mut product = 1i64;
    for (d, &n) in dims.iter().enumerate().rev() {
        if product == 1 && n >= LANES || n == 0 {
            return None;
        }
        product = product.saturating_mul(n);
        if product >= MIN_COLLAPSED_ELEMENTS {
            return Some(d);
        }
        if !product.unsigned_abs().is_power_of_two() {
            return None;
        }
    }
    None
}

/// As [`super::nest::variables_of`], with one variable for a range of dimensions.
pub(super) fn variables_of(
    expr: &mut Expr<'_>,
    piece: &[(i64, i64)],
    first: u32,
    joined: std::ops::Range<usize>,
) -> (Index, Vec<(u32, i64)>) {
    let sizes: Vec<i64> = piece.iter().map(|(low, high)| high - low).collect();
    let number = |d: usize| first + d as u32;
    let all: i64 = sizes[joined.clone()].iter().product();
    let flat = expr.space.var(number(joined.start), all);
    let digits = expr.space.delinear(&flat, &sizes[joined.clone()]);
    let mut index = Index::new();
    let mut vars = Vec::new();
    for (d, &n) in sizes.iter().enumerate() {
        if d == joined.start {
            vars.push((number(d), all));
        } else if !joined.contains(&d) && n != 1 {
            vars.push((number(d), n));
        }
        let x =
            if joined.contains(&d) { digits[d - joined.start].clone() } else { expr.space.var(number(d), n) };
        index.push(x.plus(piece[d].0));
    }
    (index, vars)
}

/// The estimated number of operations per element of a nest.
pub(super) fn cost(expr: &Expr<'_>, nest: &Nest) -> f64 {
    let Some(&(inner, n)) = nest.vars.last() else { return f64::INFINITY };
    let lanes = LANES.min(n);
    let sight = LaneView { expr, inner, lanes, registers: n / lanes };
    let mut guards: Vec<GuardId> = Vec::new();
    let mut sum = 0.0;
    // Only what differs between lanes counts: the rest is computed once.
    let mut differs = vec![false; expr.nodes.len()];
    for node in expr.reachable(nest.outputs.iter().map(|o| o.node)) {
        let mut all_same = expr.vars_of(node, &mut |v| v != inner);
        expr.for_each_operand(node, &mut |m| all_same &= !differs[m as usize]);
        differs[node as usize] = !all_same;
        if all_same {
            continue;
        }
        sum += match &expr.nodes[node as usize].op {
            Op::Load { at, guard, .. } => {
                guards.push(*guard);
                sight.load_ops(at)
            }
            Op::Constant { at, .. } => sight.load_ops(at),
            Op::Select { guard, .. } => {
                guards.push(*guard);
                1.0
            }
            Op::Elementwise { .. }
            | Op::Convert { .. }
            | Op::Iota { .. }
            | Op::BitcastConvert { .. }
            | Op::ToOrderedInt { .. }
            | Op::FromOrderedInt { .. }
            | Op::Pack { .. }
            | Op::Unpack { .. }
            | Op::SumOfProducts { .. }
            | Op::Sum { .. }
            | Op::Given { .. } => expr.flops(node) as f64,
        };
    }
    guards.sort_unstable();
    guards.dedup();
    let conditions = guards.iter().flat_map(|&g| &expr.guards[g as usize]);
    sum += conditions.map(|c| sight.decision_ops(&c.value)).sum::<f64>();
    // Interleaving of columns.
    sum += (nest.outputs.len() * nest.columns) as f64;
    sum / (lanes * nest.columns as i64) as f64
}

/// The values that lanes over a variable see of affine expressions.
struct LaneView<'t, 'm> {
    expr: &'t Expr<'m>,
    inner: u32,
    lanes: i64,
    /// The number of registers of the loop.
    registers: i64,
}

impl LaneView<'_, '_> {
    /// The value on each lane, where lane 0 has `first` for the variable and all other variables are 0;
    /// `None`: it is known at run time only.
    fn lanes_at(&self, x: &Affine, first: i64) -> Option<Vec<i64>> {
        (first..first + self.lanes)
            .map(|n| self.expr.space.at(x, &|v| if v == self.inner { n } else { 0 }))
            .collect()
    }

    /// What `seen` makes of the lanes of the first register, if it makes the same of a few others.
    fn same_steps(&self, x: &Affine, seen: impl Fn(&[i64]) -> Vec<i64>) -> Option<Vec<i64>> {
        let first = seen(&self.lanes_at(x, 0)?);
        let last = self.registers - 1;
        let others = (1..CHECKED_REGISTERS.min(last)).chain([last]);
        let mut lanes = others.map(|register| self.lanes_at(x, register * self.lanes));
        lanes.all(|lanes| lanes.is_some_and(|lanes| seen(&lanes) == first)).then_some(first)
    }

    fn load_ops(&self, at: &Affine) -> f64 {
        let steps = |lanes: &[i64]| lanes.iter().map(|n| n - lanes[0]).collect();
        let Some(steps) = self.same_steps(at, steps) else { return GATHER_OPS };
        let step = steps.get(1).copied().unwrap_or(0);
        let linear = steps.iter().zip(0..).all(|(&n, l)| n == step * l);
        let (low, high) =
            (steps.iter().min().copied().unwrap_or(0), steps.iter().max().copied().unwrap_or(0));
        match step.abs() {
            n @ 0..=1 if linear => n as f64,
            n @ 2..=8 if linear => (2 * n - 1) as f64,
            _ if access::is_near(&steps, self.lanes as u32) => (2 * ((high - low) / LANES + 1)) as f64,
            _ => GATHER_OPS,
        }
    }

    /// The cost of evaluating a condition.
    fn decision_ops(&self, x: &Affine) -> f64 {
        if self.same_steps(x, <[i64]>::to_vec).is_some() { 0.0 } else { 2.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_joined() {
        assert_eq!(from(&[16384, 8, 2]), Some(0));
        assert_eq!(from(&[5, 100, 8]), Some(1));
        assert_eq!(from(&[7, 128, 1, 4, 1]), Some(1));
        // Lanes would begin in the middle of a row of these.
        assert_eq!(from(&[16384, 6]), None);
        assert_eq!(from(&[1000, 3, 2]), None);
        // Long enough already, or too short for lanes.
        assert_eq!(from(&[1000, 16]), None);
        assert_eq!(from(&[4, 2, 2]), None);
        assert_eq!(from(&[0, 4]), None);
    }

    #[test]
    fn variables_give_every_element_its_index() {
        let text = "HloModule m\nENTRY e { ROOT p = f32[2,5,4,2] parameter(0) }";
        let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
        let module = parsed.module.expect("the text is a module");
        let mut expr = Expr::new(&module);
        let (index, vars) = variables_of(&mut expr, &[(0, 2), (1, 5), (0, 4), (0, 2)], 10, 1..4);
        assert_eq!(vars, [(10, 2), (11, 32)]);
        for n in 0..32 {
            let at = |d: usize| expr.space.at(&index[d], &|v| if v == 11 { n } else { 0 });
            assert_eq!([at(1), at(2), at(3)], [Some(1 + n / 8), Some(n / 2 % 4), Some(n % 2)]);
        }
    }
}
