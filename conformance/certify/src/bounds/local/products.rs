//! Sums of products of f32, bf16 and f16.
//!
//! What an engine gives is within `gamma` times the sum of magnitudes of the exact sum
//! ([`super::super::sums`]), and the sum of magnitudes is no less than the magnitude of the sum. So an
//! element of f32 that is off by no more than `gamma` times itself needs nothing else; of the others the
//! magnitudes are added up one by one. A result of a narrower type is accumulated in f32 and rounded: what it
//! may be is between the roundings of the ends around the exact sum, which is added up as well. A convolution
//! ([`super::windows`]) differs in which products it adds up.

use hlo::half::{bf16, f16};
use hlo::{AttrKey, ElementType, InstrId, Instruction, Opcode};
use hlo_execution::element::Number;
use hlo_execution::format::Format;
use hlo_execution::verdict::same;
use hlo_interp::{Tensor, Value};
use hlo_perturbation::gamma;
use rayon::prelude::*;

use super::rows::concluded;
use super::windows::Windows;
use super::{Local, Worst};

/// Results of a task.
const TASK: usize = 1 << 10;

/// Columns whose sums are added up together.
const PANEL: usize = 16;

/// Sums of products: results, and the number of terms of each.
pub(super) trait Products: Sync {
    /// How many results there are.
    fn results(&self) -> usize;
    /// The most terms of a result.
    fn terms(&self) -> usize;
    /// Calls `add` with the indices of the factors of each of a result's terms.
    fn each(&self, result: usize, add: impl FnMut(usize, usize));
}

/// Elements of an operand, which f32 holds.
#[derive(Clone, Copy)]
enum Elements<'a> {
    Single(&'a [f32]),
    Brain(&'a [bf16]),
    Half(&'a [f16]),
}

impl<'a> Elements<'a> {
    fn of(t: &'a Tensor) -> Option<Elements<'a>> {
        match t.element_type() {
            ElementType::F32 => Some(Elements::Single(t.slice())),
            ElementType::BF16 => Some(Elements::Brain(t.slice())),
            ElementType::F16 => Some(Elements::Half(t.slice())),
            _ => None,
        }
    }

    #[inline(always)]
    fn at(self, i: usize) -> f64 {
        match self {
            Elements::Single(x) => f64::from(x[i]),
            Elements::Brain(x) => f64::from(x[i].to_f32()),
            Elements::Half(x) => f64::from(x[i].to_f32()),
        }
    }
}

/// The operands of a `dot` as matrices: for each batch `m` rows of `k` on the left, and as many columns of
/// `k` as `n` on the right.
struct Matrices {
    batches: usize,
    m: usize,
    n: usize,
    k: usize,
    /// Where each row begins, and each of its elements from there on.
    lhs: [Vec<usize>; 2],
    /// The same of each column.
    rhs: [Vec<usize>; 2],
}

impl Matrices {
    fn new(instr: &Instruction, lhs: &Tensor, rhs: &Tensor) -> Option<Matrices> {
        let list = |key: AttrKey| -> Option<Vec<usize>> {
            instr.attrs.ints_or_empty(key).iter().map(|&d| usize::try_from(d).ok()).collect()
        };
        let batch = [list(AttrKey::LhsBatchDims)?, list(AttrKey::RhsBatchDims)?];
        let contracted = [list(AttrKey::LhsContractingDims)?, list(AttrKey::RhsContractingDims)?];
        // Offsets of all combinations of some dimensions, in order.
        let offsets = |t: &Tensor, dims: &[usize]| -> Option<Vec<usize>> {
            let sizes = t.sizes();
            let stride = |d: usize| sizes[d + 1..].iter().product::<usize>();
            let mut all = vec![0];
            for &d in dims {
                let (size, stride) = (*sizes.get(d)?, stride(d));
                all = all.iter().flat_map(|&at| (0..size).map(move |i| at + i * stride)).collect();
            }
            Some(all)
        };
        let free = |t: &Tensor, side: usize| -> Vec<usize> {
            (0..t.rank()).filter(|d| !batch[side].contains(d) && !contracted[side].contains(d)).collect()
        };
        let side = |t: &Tensor, side: usize| -> Option<([Vec<usize>; 2], usize, usize)> {
            let (outer, own) = (offsets(t, &batch[side])?, offsets(t, &free(t, side))?);
            let starts = outer.iter().flat_map(|&at| own.iter().map(move |&i| at + i)).collect();
            Some(([starts, offsets(t, &contracted[side])?], outer.len(), own.len()))
        };
        let (lhs, batches, m) = side(lhs, 0)?;
        let (rhs, others, n) = side(rhs, 1)?;
        let k = lhs[1].len();
        (batches == others && k == rhs[1].len()).then_some(Matrices { batches, m, n, k, lhs, rhs })
    }

    /// The row and the column of a result.
    fn of(&self, result: usize) -> (usize, usize) {
        let (row, column) = (result / self.n, result % self.n);
        (row, row / self.m * self.n + column)
    }
}

impl Products for Matrices {
    fn results(&self) -> usize {
        self.batches * self.m * self.n
    }

    fn terms(&self) -> usize {
        self.k
    }

    fn each(&self, result: usize, mut add: impl FnMut(usize, usize)) {
        let (row, column) = self.of(result);
        let (row, column) = (self.lhs[0][row], self.rhs[0][column]);
        let each = self.lhs[1].iter().zip(&self.rhs[1]);
        each.for_each(|(&i, &j)| add(row + i, column + j));
    }
}

/// The factor of the sum of magnitudes of `k` products in the error bound.
fn growth(k: usize) -> f64 {
    let unit = Format::of(ElementType::F32).map_or(f64::INFINITY, Format::unit_roundoff);
    gamma(k as f64 + 1.0, unit)
}

/// The worst of the results of a `dot` or `convolution`, which it has to be, that differ, if all of them are
/// explained.
pub(super) fn explained(
    local: &Local<'_>,
    id: InstrId,
    operands: &[Value],
    expected: &[&Tensor],
    actual: &[&Tensor],
) -> Option<Worst> {
    let instr = local.module.instr(id);
    let ([lhs, rhs], [expected], [actual]) = (operands, expected, actual) else { return None };
    let (lhs, rhs) = (lhs.as_array()?, rhs.as_array()?);
    if instr.opcode == Opcode::Convolution {
        return typed(&Windows::new(instr, lhs, rhs, expected)?, local, [lhs, rhs], expected, actual);
    }
    typed(&Matrices::new(instr, lhs, rhs)?, local, [lhs, rhs], expected, actual)
}

fn typed(
    products: &impl Products,
    local: &Local<'_>,
    operands: [&Tensor; 2],
    expected: &Tensor,
    actual: &Tensor,
) -> Option<Worst> {
    match expected.element_type() {
        ElementType::F32 => judged::<f32>(products, local, operands, expected, actual),
        ElementType::BF16 => judged::<bf16>(products, local, operands, expected, actual),
        ElementType::F16 => judged::<f16>(products, local, operands, expected, actual),
        _ => None,
    }
}

fn judged<T: Number + Sync>(
    products: &impl Products,
    local: &Local<'_>,
    [lhs, rhs]: [&Tensor; 2],
    expected: &Tensor,
    actual: &Tensor,
) -> Option<Worst> {
    if products.terms() < 2 || products.results() != expected.len() {
        return None;
    }
    let (lhs, rhs) = (Elements::of(lhs)?, Elements::of(rhs)?);
    // An engine may convert operands to the type of the result first: those of other types are left to rules.
    let holds = |x: Elements<'_>| match x {
        Elements::Single(_) => T::TYPE == ElementType::F32,
        Elements::Brain(_) => matches!(T::TYPE, ElementType::F32 | ElementType::BF16),
        Elements::Half(_) => matches!(T::TYPE, ElementType::F32 | ElementType::F16),
    };
    if !holds(lhs) || !holds(rhs) {
        return None;
    }
    // Less by more than what these sums in f64 lose.
    let growth = growth(products.terms()) * (1.0 - 1e-7);
    let (expected, actual) = (expected.slice::<T>(), actual.slice::<T>());
    let sums = |result: usize| {
        let (mut sum, mut magnitude) = (0.0, 0.0);
        products.each(result, |i, j| {
            let product = lhs.at(i) * rhs.at(j);
            sum += product;
            magnitude += product.abs();
        });
        (sum, magnitude)
    };
    let value = |x: T| x.parts().0.value();
    let bound = |result: usize, e: f64, a: f64| {
        let error = (e - a).abs();
        if T::TYPE == ElementType::F32 {
            let own = growth * e.abs() * (1.0 - f64::from(f32::EPSILON));
            return if error > 0.0 && error <= own { own } else { growth * sums(result).1 };
        }
        let (sum, magnitude) = sums(result);
        let off = growth * magnitude;
        let end = |x: f64| value(T::from_f64(x));
        let (low, high) = (end(sum - off), end(sum + off));
        if low <= a && a <= high { (high - e).max(e - low) } else { 0.0 }
    };
    let task = |(task, (expected, actual)): (usize, (&[T], &[T]))| {
        let mut worst = Worst::NONE;
        for (i, (&e, &a)) in expected.iter().zip(actual).enumerate() {
            if same(e, a, local.nan_bits) {
                continue;
            }
            let (error, bound) = ((value(e) - value(a)).abs(), bound(task * TASK + i, value(e), value(a)));
            if !(error > 0.0 && error <= bound && bound.is_finite()) {
                return None;
            }
            worst = worst.or(Worst::of(e, a, error, bound));
        }
        Some(worst)
    };
    let tasks = expected.par_chunks(TASK).zip(actual.par_chunks(TASK)).enumerate();
    tasks.map(task).try_reduce(|| Worst::NONE, |a, b| Some(a.or(b)))
}

/// The ends of the results of a `dot`.
pub(super) fn intervals(instr: &Instruction, args: &[Tensor]) -> Option<(Vec<f32>, Vec<f32>)> {
    let [lhs, rhs] = args else { return None };
    let matrices = Matrices::new(instr, lhs, rhs)?;
    let Matrices { m, n, k, .. } = matrices;
    if k < 2 || n == 0 || m == 0 {
        return None;
    }
    let (left, right) = (lhs.slice::<f32>(), rhs.slice::<f32>());
    // Some columns at a time, element by element of k what each of them has there; the columns of the last
    // panel that are too many are 0.
    let panels = n.div_ceil(PANEL);
    let mut packed = vec![[0f32; PANEL]; matrices.batches * panels * k];
    packed.par_chunks_mut(k).enumerate().for_each(|(at, panel)| {
        let first = at % panels * PANEL;
        let columns = &matrices.rhs[0][at / panels * n..][..n][first..n.min(first + PANEL)];
        for (to, &offset) in panel.iter_mut().zip(&matrices.rhs[1]) {
            to.iter_mut().zip(columns).for_each(|(to, &column)| *to = right[column + offset]);
        }
    });
    let (mut low, mut high) = (vec![0f32; matrices.results()], vec![0f32; matrices.results()]);
    let rows = low.par_chunks_mut(n).zip(high.par_chunks_mut(n)).enumerate();
    rows.for_each_init(
        || vec![0f32; k],
        |own, (row, (low, high))| {
            let first = matrices.lhs[0][row];
            own.iter_mut().zip(&matrices.lhs[1]).for_each(|(x, &at)| *x = left[first + at]);
            let panels = packed[row / m * panels * k..][..panels * k].chunks_exact(k);
            for (panel, (low, high)) in panels.zip(low.chunks_mut(PANEL).zip(high.chunks_mut(PANEL))) {
                let (sum, magnitude) = sums(own, panel);
                let ends = low.iter_mut().zip(high).zip(sum.iter().zip(&magnitude));
                for ((low, high), (&sum, &magnitude)) in ends {
                    (*low, *high) = concluded(sum, sum, magnitude, k as f64 + 1.0);
                }
            }
        },
    );
    Some((low, high))
}

/// The sums of the products of a row and some columns, and of their magnitudes: all in registers.
#[allow(clippy::needless_range_loop, reason = "three arrays in step")]
fn sums(row: &[f32], panel: &[[f32; PANEL]]) -> ([f64; PANEL], [f64; PANEL]) {
    let (mut sum, mut magnitude) = ([0.0; PANEL], [0.0; PANEL]);
    for (&x, ys) in row.iter().zip(panel) {
        let x = f64::from(x);
        for c in 0..PANEL {
            let product = x * f64::from(ys[c]);
            sum[c] += product;
            magnitude[c] += product.abs();
        }
    }
    (sum, magnitude)
}
