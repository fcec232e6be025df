//! Eigenvalues and eigenvectors of Hermitian matrices, singular values and vectors: how far roundings and
//! what is off in the operand move them.
//!
//! What is computed is exact for a matrix that is off by an `E` of a known norm ([`rounding`]). Then values
//! are off by no more than that norm (Weyl), and the sine of the angle between an eigenvector and its own is
//! at most the norm of `E` divided by the distance from what the value is then to all others (Davis and
//! Kahan, The rotation of eigenvectors by a perturbation III, SIAM J. Numer. Anal. 7, 1970). Singular vectors
//! `u` and `v` are, one below the other, eigenvectors of the matrix with `A` and its adjoint beside a
//! diagonal of zeros, whose values are the singular values, their negatives, and 0 as often as there are more
//! rows than columns or the contrary.
//!
//! Signs are the reference's where nothing that decides them hangs on rounding, which soft radii assume; the
//! phases of complex vectors make one component real (that which LAPACK's reductions leave alone). Hard radii
//! are over all orthonormal vectors.
//!
//! **Invariant:** where values are too near to one another, soft radii of their vectors are infinite.

use hlo_execution::format::Format;
use hlo_matrices::routines::{gap, rounding};
use hlo_perturbation::UNKNOWN;
use hlo_perturbation::balls::Unit;

use super::Radii;
use super::linear::{settled, unit};
use super::number::Numbers;
use super::rules::{Case, Mode};
use hlo_perturbation::disc::SQRT_2;

/// Who computes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// The reference's algorithm, in f64 at least.
    Own,
    /// One of a library, in the element type, with signs of its own.
    Library,
}

/// The operand, and what it is off by.
struct Operand<'a> {
    off: &'a Radii,
    rows: usize,
    columns: usize,
    complex: bool,
    unit: Unit,
    /// [`rounding`], relative to the matrix.
    rounded: f64,
}

impl<'a> Operand<'a> {
    fn of(case: &'a Case<'_>, algorithm: Algorithm, mode: Mode) -> Option<Operand<'a>> {
        let arg = case.args.first()?;
        let [.., rows, columns] = *arg.tensor.sizes() else { return None };
        let ty = arg.tensor.element_type();
        let off = arg.leaf.bounds.radii(mode);
        let times = match algorithm {
            Algorithm::Own => 1.0,
            Algorithm::Library => Format::of(ty)?.unit_roundoff() / (f64::EPSILON / 2.0),
        };
        let rounded = rounding(rows, columns, ty.is_complex()) * times;
        Some(Operand { off, rows, columns, complex: ty.is_complex(), unit: unit(case, ty)?, rounded })
    }

    /// The norm of what matrix `m` is off by in effect; its values are given.
    fn effect(&self, m: usize, values: &[f64]) -> f64 {
        let size = self.rows * self.columns;
        let root = if self.complex { SQRT_2 } else { 1.0 };
        let square: f64 = (m * size..(m + 1) * size).map(|i| (self.off.at(i) * root).powi(2)).sum();
        // Of a Hermitian matrix one triangle is read, and stands for both.
        let off = (2.0 * square).sqrt();
        let norm = values.iter().map(|x| x * x).sum::<f64>().sqrt();
        let own = self.rounded * (norm + off) + self.unit.small(size);
        (off + own) * (1.0 + (size as f64 + 16.0) * f64::EPSILON)
    }

    /// The error of unit vectors of a value that is `gap` away from all others: the norm, at most `times` the
    /// sine of the angle; and the rotation of phases, where the component that is real has this modulus.
    fn vector(
        &self,
        algorithm: Algorithm,
        gap: f64,
        effect: f64,
        times: f64,
        real: Option<f64>,
    ) -> (f64, f64) {
        // From what the value may have become, whatever the reference's own rounding is.
        let left = gap - 2.0 * effect;
        if algorithm == Algorithm::Library || left.is_nan() || left <= 2.0 * effect {
            return (UNKNOWN, UNKNOWN);
        }
        let off = (times * effect / left + self.rounded) * (1.0 + 16.0 * f64::EPSILON);
        match real {
            None => (off, 0.0),
            Some(real) if off <= real / 2.0 => (off, 1.6 * off / (real - off)),
            Some(_near_zero) => (UNKNOWN, UNKNOWN),
        }
    }
}

/// Radii of the elements of vectors, before the last rounding; `off` is what each of those that have a value
/// is off by ([`Operand::vector`]).
fn elements(
    v: &Numbers,
    (first, count): (usize, usize),
    number: impl Fn(usize) -> usize,
    off: &[(f64, f64)],
    (mode, rounded): (Mode, f64),
) -> impl Iterator<Item = f64> {
    (first..first + count).map(move |i| {
        let size = v.modulus(i);
        let (norm, phase) = off.get(number(i - first)).copied().unwrap_or((UNKNOWN, UNKNOWN));
        let known = norm + phase * (size + norm);
        // Any unit vector has elements of a modulus of at most 1.
        if mode == Mode::Hard && known.is_finite() { known.max(size + 1.0 + rounded) } else { known }
    })
}

/// `(eigenvectors, eigenvalues, info) = syevd(a)`; without vectors the first is the operand.
pub(super) fn eigen(
    case: &Case<'_>,
    algorithm: Algorithm,
    (vectors, lower): (bool, bool),
    mode: Mode,
) -> Option<Vec<Radii>> {
    let operand = Operand::of(case, algorithm, mode)?;
    let [z, w, info] = case.results[..] else { return None };
    let (z, w, info) = (Numbers::of(z), Numbers::of(w), Numbers::of(info));
    let n = operand.rows;
    // The reduction leaves that row alone.
    let row = if lower { 0 } else { n.saturating_sub(1) };
    let (mut off_z, mut off_w, mut off_info) = (Vec::new(), Vec::new(), Vec::new());
    for (m, &info) in info.re.iter().enumerate() {
        let values = &w.re[m * n..(m + 1) * n];
        let effect = if info == 0.0 { operand.effect(m, values) } else { UNKNOWN };
        off_info.push(if effect.is_finite() { 0.0 } else { UNKNOWN });
        off_w.extend(std::iter::repeat_n(effect, n));
        if vectors {
            let offset = m * n * n;
            let real = |j| operand.complex.then(|| z.modulus(offset + row * n + j));
            let off: Vec<_> =
                (0..n).map(|j| operand.vector(algorithm, gap(values, j), effect, SQRT_2, real(j))).collect();
            off_z.extend(elements(&z, (offset, n * n), |i| i % n, &off, (mode, operand.rounded)));
        }
    }
    let z = if vectors { settled(case, 0, &off_z, mode) } else { operand.off.clone() };
    Some(vec![z, settled(case, 1, &off_w, mode), Radii::new(off_info)])
}

/// `(overwritten, singular values, u, vt, info) = gesdd(a)` and `gesvd(a)`; the first is the operand, without
/// vectors u and vt are 0.
pub(super) fn singular(
    case: &Case<'_>,
    algorithm: Algorithm,
    vectors: bool,
    mode: Mode,
) -> Option<Vec<Radii>> {
    let operand = Operand::of(case, algorithm, mode)?;
    let [_, s, u, vt, info] = case.results[..] else { return None };
    let (sizes_of_u, sizes_of_vt) = (u.sizes(), vt.sizes());
    let (&[.., m, of_u], &[.., of_v, n]) = (&sizes_of_u[..], &sizes_of_vt[..]) else { return None };
    let (s, u, vt, info) = (Numbers::of(s), Numbers::of(u), Numbers::of(vt), Numbers::of(info));
    let size = m.min(n);
    let (mut off_s, mut off_u, mut off_vt, mut off_info) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (k, &info) in info.re.iter().enumerate() {
        let values = &s.re[k * size..(k + 1) * size];
        let effect = if info == 0.0 { operand.effect(k, values) } else { UNKNOWN };
        off_info.push(if effect.is_finite() { 0.0 } else { UNKNOWN });
        off_s.extend(std::iter::repeat_n(effect, size));
        if vectors {
            let (of_left, of_right) = ((k * m * of_u, m * of_u), (k * of_v * n, of_v * n));
            let off: Vec<_> = (0..size)
                .map(|j| {
                    // The least is next to its negative, or to 0.
                    let least = if m == n { 2.0 * values[j] } else { values[j] };
                    let gap = gap(values, j).min(least);
                    let real = if m < n { u.modulus(of_left.0 + j) } else { vt.modulus(of_right.0 + j * n) };
                    operand.vector(algorithm, gap, effect, 2.0, operand.complex.then_some(real))
                })
                .collect();
            let how = (mode, operand.rounded);
            off_u.extend(elements(&u, of_left, |i| i % of_u, &off, how));
            off_vt.extend(elements(&vt, of_right, |i| i / n, &off, how));
        }
    }
    let [u, vt] = match vectors {
        true => [settled(case, 2, &off_u, mode), settled(case, 3, &off_vt, mode)],
        false => [Radii::Zero, Radii::Zero],
    };
    Some(vec![operand.off.clone(), settled(case, 1, &off_s, mode), u, vt, Radii::new(off_info)])
}
