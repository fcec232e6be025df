//! QR factors, and products of reflectors: how far roundings and what is off in operands move them.
//!
//! What is computed are the factors of a matrix each of whose columns is off by a known norm. With
//! `X = E R^-1` the factor of that matrix is `(I + M)^H R`, where `I + M` is the lower Cholesky factor of
//! `I + Q^H X + X^H Q + X^H X`, and its orthonormal columns are `(Q + X)(I + M)^-H`. Reflectors are the unit
//! lower factor of what `Q` is beyond the identity: `Q = I - V T V^H` (Ballard et al., Reconstructing
//! Householder vectors from tall-skinny QR, 2014), `-tau` being the diagonal of the other factor. So what
//! they are off by follows from what `Q` is off by as for any factors ([`Factors`]).
//!
//! Who multiplies by the reflectors of a factorization has `Q` again: what that is off by is far less than
//! the reflectors' own radii could say, so it is handed on beside them ([`Basis`]).
//!
//! **Invariant:** soft radii assume the reference's signs (of what is to be made 0 below, and whether there
//! is anything); hard ones are infinite where these hang on rounding.

use std::sync::Arc;

use hlo::Opcode;
use hlo::num_complex::Complex;
use hlo_execution::format::Format;
use hlo_matrices::routines::reflector_units;
use hlo_perturbation::UNKNOWN;
use hlo_perturbation::balls::Unit;
use hlo_perturbation::factors::{Factors, Magnitudes, inverse, rooted};

use super::decompositions::Algorithm;
use super::linear::{settled, unit};
use super::number::Numbers;
use super::rules::{Case, Mode};
use super::{Bounds, Radii};
use hlo_perturbation::disc::SQRT_2;

type C = Complex<f64>;

/// That an array holds the reflectors (or their taus) of a factorization, and what the columns of Q are off
/// by, by their norms.
#[derive(Debug)]
pub(super) struct Basis {
    /// Of each matrix of the batch.
    columns: usize,
    soft: Vec<f64>,
    hard: Vec<f64>,
}

impl Basis {
    fn of(&self, mode: Mode, matrix: usize) -> &[f64] {
        let each = if mode == Mode::Soft { &self.soft } else { &self.hard };
        &each[matrix * self.columns..][..self.columns]
    }
}

/// What the result of an instruction has of its operand's: where it is copied, or its first columns are.
pub(super) fn carried(case: &Case<'_>) -> Option<Arc<Basis>> {
    let basis = || case.args.first()?.leaf.basis.clone();
    if case.opcode() == Opcode::Copy {
        return basis();
    }
    if case.opcode() != Opcode::Slice {
        return None;
    }
    let basis = basis()?;
    let slices = case.instr.attrs.slices()?;
    let dims = case.args.first()?.tensor.dims();
    let (last, before) = slices.split_last()?;
    let whole = before.iter().zip(dims).all(|(s, &n)| s.start == 0 && s.limit == n && s.stride == 1);
    (whole && last.start == 0 && last.stride == 1).then_some(basis)
}

/// The roundings of an element type.
#[derive(Clone, Copy)]
struct Roundings {
    unit: Unit,
    /// The relative error of one step of the arithmetic.
    step: f64,
    /// That of a result.
    last: f64,
    complex: bool,
}

impl Roundings {
    fn of(case: &Case<'_>, algorithm: Algorithm) -> Option<Roundings> {
        let ty = case.args.first()?.tensor.element_type();
        let last = Format::of(ty)?.unit_roundoff();
        let times = if ty.is_complex() { 4.0 } else { 1.0 };
        let step = match algorithm {
            Algorithm::Own => f64::EPSILON / 2.0,
            Algorithm::Library => last,
        };
        let complex = ty.is_complex();
        Some(Roundings { unit: unit(case, ty)?, step: step * times, last: last * times, complex })
    }

    /// The error of one reflector with `m` elements, and of applying it, relative to the norm of the operand.
    fn reflector(self, m: usize) -> f64 {
        reflector_units(m) * self.step
    }

    /// Of radii of parts, the norm.
    fn norm(self, radii: impl Iterator<Item = f64>) -> f64 {
        let root = if self.complex { SQRT_2 } else { 1.0 };
        radii.map(|r| (r * root).powi(2)).sum::<f64>().sqrt() * (1.0 + 16.0 * f64::EPSILON)
    }
}

/// A factored matrix.
struct Factored {
    m: usize,
    n: usize,
    packed: Vec<C>,
    taus: Vec<C>,
    /// The norms of what the columns of the operand are off by.
    off: Vec<f64>,
}

/// Radii before the last rounding.
struct Moved {
    packed: Vec<f64>,
    taus: Vec<f64>,
    basis: Vec<f64>,
}

impl Factored {
    fn depth(&self) -> usize {
        self.m.min(self.n)
    }

    fn at(&self, i: usize, j: usize) -> C {
        self.packed[i * self.n + j]
    }

    fn upper(&self, i: usize, j: usize) -> C {
        if i <= j { self.at(i, j) } else { C::ZERO }
    }

    /// Reflectors that are not the identity for want of rows.
    fn steps(&self) -> usize {
        let d = self.depth();
        let trivial = d == self.m && self.taus.last() == Some(&C::ZERO);
        d - usize::from(trivial)
    }

    fn nothing(&self) -> Moved {
        let unknown = |n: usize| vec![UNKNOWN; n];
        Moved { packed: unknown(self.m * self.n), taus: unknown(self.depth()), basis: unknown(self.depth()) }
    }

    fn moved(&self, by: Roundings, mode: Mode) -> Option<Moved> {
        let (m, n, d) = (self.m, self.n, self.depth());
        let sizes: Vec<f64> = (0..n)
            .map(|j| {
                (0..=j.min(m.saturating_sub(1))).map(|i| self.upper(i, j).norm_sqr()).sum::<f64>().sqrt()
            })
            .collect();
        // What columns are off by in effect.
        let effect: Vec<f64> = (0..n)
            .map(|j| {
                let rounded = (d.min(j + 1) as f64) * by.reflector(m) + 4.0 * by.last;
                (self.off[j] + rounded * (sizes[j] + self.off[j]) + by.unit.small(m))
                    * (1.0 + (m as f64 + 16.0) * f64::EPSILON)
            })
            .collect();
        let left = inverse(d, |i, j| self.upper(j, i).conj())?;
        let x: Vec<f64> = (0..d)
            .map(|j| {
                (0..=j).map(|k| effect[k] * left.at(j, k)).sum::<f64>() * (1.0 + d as f64 * f64::EPSILON)
            })
            .collect();
        let moved = rooted(&Magnitudes::of(d, |i, j| x[i] + x[j] + x[i] * x[j]))?;
        let upper = Magnitudes::of(d, |i, j| self.upper(i, j).norm());
        let triangle = moved.transposed().times(&upper);
        let more = 1.0 + (d as f64 + 16.0) * 4.0 * f64::EPSILON;
        let mut basis: Vec<f64> = Vec::with_capacity(d);
        for (j, x) in x.iter().enumerate() {
            let row = |k: usize| moved.at(j, k);
            let own = x + (0..=j).map(|k| row(k) * row(k)).sum::<f64>().sqrt();
            let before: f64 = basis.iter().enumerate().map(|(k, off)| off * row(k)).sum();
            let left = 1.0 - row(j);
            if left.is_nan() || left <= 0.0 {
                return None;
            }
            basis.push((own + before) / left * more);
        }
        let (tails, taus) = self.reflectors(&basis, by).unwrap_or_else(|| {
            (vec![UNKNOWN; m * d], (0..d).map(|k| if k < self.steps() { UNKNOWN } else { 0.0 }).collect())
        });
        let decided = |k: usize| (1.0 - self.taus[k].re).abs() > taus[k];
        // Of complex numbers also whether the last one is real.
        let some = by.complex && self.steps() < d;
        if mode == Mode::Hard && (some || !(0..self.steps()).all(decided)) {
            return None;
        }
        let packed = (0..m * n)
            .map(|at| match (at / n, at % n) {
                (i, j) if i > j => tails[i * d + j],
                (i, j) if j < d => triangle.at(i, j),
                (i, j) => (basis[i] * (sizes[j] + effect[j]) + effect[j]) * more,
            })
            .collect();
        // Rounded reflectors, the engine's and the reference's, are those of another basis.
        let rounded = |j: usize| 16.0 * (j as f64 + 1.0) * by.last;
        let basis = basis.into_iter().enumerate().map(|(j, off)| off + rounded(j)).collect();
        Some(Moved { packed, taus, basis })
    }

    /// The errors of tails (row by row) and taus for errors `basis` of the columns of Q. `None`: nothing is
    /// known.
    fn reflectors(&self, basis: &[f64], by: Roundings) -> Option<(Vec<f64>, Vec<f64>)> {
        let (m, d, steps) = (self.m, self.depth(), self.steps());
        if self.taus[..steps].contains(&C::ZERO) {
            return None;
        }
        let v = |i: usize, j: usize| match i.cmp(&j) {
            std::cmp::Ordering::Less => C::ZERO,
            std::cmp::Ordering::Equal => C::ONE,
            std::cmp::Ordering::Greater => self.at(i, j),
        };
        // T of I - V T V^H, column by column.
        let mut t = vec![C::ZERO; steps * steps];
        for j in 0..steps {
            let products: Vec<C> =
                (0..j).map(|i| (j..m).map(|r| v(r, i).conj() * v(r, j)).sum::<C>()).collect();
            for i in 0..j {
                let sum: C = (i..j).map(|k| t[i * steps + k] * products[k]).sum();
                t[i * steps + j] = -(self.taus[j] * sum);
            }
            t[j * steps + j] = self.taus[j];
        }
        let other =
            |i: usize, j: usize| -> C { -(i..=j).map(|k| t[i * steps + k] * v(j, k).conj()).sum::<C>() };
        let packed: Vec<C> = (0..m * steps)
            .map(|at| match (at / steps, at % steps) {
                (i, j) if i > j => v(i, j),
                (i, j) => other(i, j),
            })
            .collect();
        // The factors computed here are those of a basis that is off by this.
        let own = 64.0 * (m as f64 + 8.0) * (steps as f64) * f64::EPSILON + 16.0 * steps as f64 * by.last;
        let off: Vec<f64> = (0..m * steps).map(|at| basis[at % steps] + own).collect();
        let radii = Factors { rows: m, columns: steps, packed: &packed, off: &off }.radii(Unit::NONE)?;
        let of = |size: f64| by.reflector(m) * size;
        let tails = (0..m * d).map(|at| match (at / d, at % d) {
            (i, j) if j < steps && i > j => radii[i * steps + j] + of(v(i, j).norm()),
            (_, _) => 0.0,
        });
        let taus = (0..d).map(|k| match k < steps {
            true => radii[k * steps + k] + of(self.taus[k].norm()),
            false => 0.0,
        });
        Some((tails.collect(), taus.collect()))
    }
}

/// `(factors, taus) = geqrf(a)`, and what Q is off by.
pub(super) fn geqrf(case: &Case<'_>, algorithm: Algorithm) -> Option<(Vec<Bounds>, Basis)> {
    let by = Roundings::of(case, algorithm)?;
    let ([arg], [packed, taus]) = (&case.args[..], &case.results[..]) else { return None };
    let [.., m, n] = *arg.tensor.sizes() else { return None };
    let d = m.min(n);
    let (factors, all_taus) = (Numbers::of(packed), Numbers::of(taus));
    let (size, count) = (m * n, factors.len() / (m * n).max(1));
    let mut found = Vec::new();
    for mode in [Mode::Soft, Mode::Hard] {
        let given = arg.leaf.bounds.radii(mode);
        let (mut off, mut off_taus, mut basis) = (Vec::new(), Vec::new(), Vec::new());
        for k in 0..count {
            let factored = Factored {
                m,
                n,
                packed: (k * size..(k + 1) * size).map(|i| factors.complex(i)).collect(),
                taus: (k * d..(k + 1) * d).map(|i| all_taus.complex(i)).collect(),
                off: (0..n).map(|j| by.norm((0..m).map(|i| given.at(k * size + i * n + j)))).collect(),
            };
            let moved = factored.moved(by, mode).unwrap_or_else(|| factored.nothing());
            off.extend(moved.packed);
            off_taus.extend(moved.taus);
            basis.extend(moved.basis);
        }
        found.push((settled(case, 0, &off, mode), settled(case, 1, &off_taus, mode), basis));
    }
    let [(soft, soft_taus, basis), (hard, hard_taus, hard_basis)] = found.try_into().ok()?;
    let bounds = vec![Bounds::of(soft, hard), Bounds::of(soft_taus, hard_taus)];
    Some((bounds, Basis { columns: d, soft: basis, hard: hard_basis }))
}

/// Products of reflectors, by norms: what they are at most, and what they are off by, of the first one, of
/// the first two, and so on.
struct Products {
    sizes: Vec<f64>,
    off: Vec<f64>,
    /// By roundings alone.
    rounded: Vec<f64>,
}

impl Products {
    /// Of the reflectors of a matrix of a batch, with what they are off by.
    fn of(case: &Case<'_>, by: Roundings, matrix: usize, mode: Mode) -> Option<Products> {
        let [reflectors, taus, ..] = &case.args[..] else { return None };
        let (matrices, lines) = (reflectors.tensor.sizes(), taus.tensor.sizes());
        let (&[.., m, n], &[.., count]) = (&matrices[..], &lines[..]) else { return None };
        let radii = |k: usize| case.args[k].leaf.bounds.radii(mode);
        let (v, tau) = (Numbers::of(reflectors.tensor), Numbers::of(taus.tensor));
        let root = if by.complex { SQRT_2 } else { 1.0 };
        let (mut sizes, mut off, mut rounded) = (Vec::new(), Vec::new(), Vec::new());
        let (mut size, mut moved, mut steps) = (1.0, 0.0, 0.0);
        for k in 0..count {
            let at = |i: usize| matrix * m * n + i * n + k;
            let square = 1.0 + (k + 1..m).map(|i| v.complex(at(i)).norm_sqr()).sum::<f64>();
            let (norm, tau_at) = (square.sqrt(), matrix * count + k);
            let t = tau.complex(tau_at);
            let dv = by.norm((k + 1..m).map(|i| radii(0).at(at(i))));
            let dt = radii(1).at(tau_at) * root;
            let more = 1.0 + (m as f64 + 16.0) * 4.0 * f64::EPSILON;
            let own = by.reflector(m) * (1.0 + t.norm() * square);
            let h = (dt * (norm + dv).powi(2) + t.norm() * (2.0 * norm * dv + dv * dv) + own) * more;
            let longest = (C::ONE - t * square).norm().max(1.0) * more;
            moved = (longest + h) * moved + h * size;
            steps = (longest + own) * steps + own * size;
            size *= longest;
            sizes.push(size);
            off.push(if moved.is_nan() { UNKNOWN } else { moved });
            rounded.push(steps);
        }
        Some(Products { sizes, off, rounded })
    }
}

/// The basis that both the reflectors and the taus are of.
fn basis_of<'a>(case: &'a Case<'_>) -> Option<&'a Arc<Basis>> {
    let [reflectors, taus, ..] = &case.args[..] else { return None };
    let (basis, other) = (reflectors.leaf.basis.as_ref()?, taus.leaf.basis.as_ref()?);
    Arc::ptr_eq(basis, other).then_some(basis)
}

/// `q = orgqr(reflectors, taus)`.
pub(super) fn orgqr(case: &Case<'_>, algorithm: Algorithm, mode: Mode) -> Option<Vec<Radii>> {
    let by = Roundings::of(case, algorithm)?;
    let [result] = case.results[..] else { return None };
    let [.., m, n] = *result.sizes() else { return None };
    let basis = basis_of(case);
    let mut off = Vec::with_capacity(result.len());
    for matrix in 0..result.len() / (m * n).max(1) {
        let products = Products::of(case, by, matrix, mode)?;
        let columns: Vec<f64> = (0..n)
            .map(|j| {
                // Later reflectors leave the column alone.
                let Some(last) = products.off.len().checked_sub(1).map(|last| last.min(j)) else {
                    return 0.0;
                };
                let direct = products.off[last];
                let known = basis.map(|basis| basis.of(mode, matrix)).filter(|_| j == last);
                let known = known.and_then(|known| known.get(j)).map(|known| known + products.rounded[last]);
                known.map_or(direct, |known| known.min(direct))
            })
            .collect();
        (0..m).for_each(|_| off.extend(&columns));
    }
    Some(vec![settled(case, 0, &off, mode)])
}

/// `ormqr(reflectors, taus, c)`, c being to the right of Q or to the left.
pub(super) fn ormqr(case: &Case<'_>, algorithm: Algorithm, left: bool, mode: Mode) -> Option<Vec<Radii>> {
    let by = Roundings::of(case, algorithm)?;
    let ([result], [.., c]) = (&case.results[..], &case.args[..]) else { return None };
    let [.., rows, columns] = *result.sizes() else { return None };
    let given = c.leaf.bounds.radii(mode);
    let numbers = Numbers::of(c.tensor);
    let order = if left { rows } else { columns };
    let mut off = Vec::with_capacity(result.len());
    for matrix in 0..result.len() / (rows * columns).max(1) {
        let products = Products::of(case, by, matrix, mode)?;
        let direct = products.off.last().copied().unwrap_or(0.0);
        let known = basis_of(case).map(|basis| basis.of(mode, matrix));
        let known = known.filter(|known| known.len() == order && products.off.len() == order);
        let moved = known.zip(products.rounded.last()).map_or(direct, |(known, rounded)| {
            (known.iter().map(|x| x * x).sum::<f64>().sqrt() + rounded).min(direct)
        });
        let size = products.sizes.last().copied().unwrap_or(1.0);
        let offset = matrix * rows * columns;
        // A vector of c, by its number, and its element.
        let at = |k: usize, i: usize| offset + if left { i * columns + k } else { k * columns + i };
        let radii: Vec<f64> = (0..if left { columns } else { rows })
            .map(|k| {
                let length = (0..order).map(|i| numbers.modulus(at(k, i)).powi(2)).sum::<f64>().sqrt();
                let own = by.norm((0..order).map(|i| given.at(at(k, i))));
                let carried = if own == 0.0 { 0.0 } else { (size + moved) * own };
                (carried + if length == 0.0 { 0.0 } else { moved * length })
                    * (1.0 + (order as f64 + 16.0) * f64::EPSILON)
            })
            .collect();
        off.extend((0..rows * columns).map(|i| radii[if left { i % columns } else { i / columns }]));
    }
    Some(vec![settled(case, 0, &off, mode)])
}
