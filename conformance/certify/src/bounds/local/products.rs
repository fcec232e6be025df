//! Sums of products of f32.
//!
//! What an engine gives is within `gamma` times the sum of magnitudes of the exact sum
//! ([`super::super::sums`]), and the sum of magnitudes is no less than the magnitude of the sum. So an
//! element that is off by no more than `gamma` times itself needs nothing else; of the others the magnitudes
//! are added up one by one. A convolution ([`super::windows`]) differs in which products it adds up.

use hlo::{AttrKey, ElementType, InstrId, Instruction, Opcode};
use hlo_execution::format::Format;
use hlo_execution::verdict::same;
use hlo_interp::{Tensor, Value};
use rayon::prelude::*;

use super::super::sums::gamma;
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
    /// The sum of the magnitudes of a result's terms.
    fn magnitude(&self, lhs: &[f32], rhs: &[f32], result: usize) -> f64;
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

    /// The sum of magnitudes of a result.
    fn magnitude(&self, lhs: &[f32], rhs: &[f32], result: usize) -> f64 {
        let (row, column) = self.of(result);
        let (row, column) = (self.lhs[0][row], self.rhs[0][column]);
        let each = self.lhs[1].iter().zip(&self.rhs[1]);
        each.map(|(&i, &j)| f64::from(lhs[row + i]).abs() * f64::from(rhs[column + j]).abs()).sum()
    }
}

/// The factor of the sum of magnitudes of `k` products in the error bound.
fn growth(k: usize) -> f64 {
    let unit = Format::of(ElementType::F32).map_or(f64::INFINITY, Format::unit);
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
    let float = |t: &Tensor| t.element_type() == ElementType::F32;
    if ![lhs, rhs, *expected].into_iter().all(float) {
        return None;
    }
    if instr.opcode == Opcode::Convolution {
        return judged(&Windows::new(instr, lhs, rhs, expected)?, local, [lhs, rhs], expected, actual);
    }
    judged(&Matrices::new(instr, lhs, rhs)?, local, [lhs, rhs], expected, actual)
}

fn judged(
    products: &impl Products,
    local: &Local<'_>,
    [lhs, rhs]: [&Tensor; 2],
    expected: &Tensor,
    actual: &Tensor,
) -> Option<Worst> {
    if products.terms() < 2 || products.results() != expected.len() {
        return None;
    }
    // Less by more than what these sums in f64 lose.
    let growth = growth(products.terms()) * (1.0 - 1e-9);
    let (lhs, rhs) = (lhs.slice::<f32>(), rhs.slice::<f32>());
    let (expected, actual) = (expected.slice::<f32>(), actual.slice::<f32>());
    let task = |(task, (expected, actual)): (usize, (&[f32], &[f32]))| {
        let mut worst = Worst::NONE;
        for (i, (&e, &a)) in expected.iter().zip(actual).enumerate() {
            if same(e, a, local.nan_bits) {
                continue;
            }
            let error = (f64::from(e) - f64::from(a)).abs();
            let own = growth * f64::from(e).abs() * (1.0 - f64::from(f32::EPSILON));
            let bound = if error > 0.0 && error <= own {
                own
            } else {
                growth * products.magnitude(lhs, rhs, task * TASK + i)
            };
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
