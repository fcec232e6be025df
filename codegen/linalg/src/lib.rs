//! Dense linear algebra for compiled programs: one matrix at a time, on the calling thread, in the element
//! type's own arithmetic.
//!
//! Matrices are row-major slices. Results have LAPACK's conventions: pivots, signs of reflectors, `info`.
//! Blocks are multiplied by [`faer`], which also decomposes; factorizations are written here, because
//! LAPACK's packed forms are part of what programs see.
//!
//! **Invariants:** nothing is allocated: working memory is the [`MemStack`] that the caller gives, of the
//! size that the routine's `_scratch` says; the same operands give the same bits. This is a crate of its own
//! so that generic code is compiled once, optimized in every profile: all that callers use are methods of
//! [`Element`], compiled here for four types.

#![forbid(unsafe_code)]

mod cholesky;
mod decompose;
mod field;
mod lu;
mod qr;
mod solve;

pub use faer::dyn_stack::{MemStack, StackReq};
pub use field::{Field, Part};
pub use solve::System;

/// By how much, relatively, what decides a pivot or a sign differs from what would decide otherwise, if there
/// is no doubt about it. Far above the roundings of well conditioned matrices, far below what elements that
/// nobody chose differ by.
const MARGIN: f64 = 1.0 / (1 << 26) as f64;

/// What comes before and after the multiplication by Q.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    /// Q c rather than c Q.
    pub left: bool,
    /// The adjoint of Q rather than Q.
    pub adjoint: bool,
}

/// Which singular vectors are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vectors {
    /// None.
    No,
    /// As many as there are singular values.
    Thin,
    /// All.
    Full,
}

/// An element type, and what is done to matrices of it.
pub trait Element: Field {
    /// Working memory of [`Element::cholesky`].
    fn cholesky_scratch(n: usize) -> StackReq;
    /// `a = l l^H`, n by n, in place: reads and writes the lower triangle (of the diagonal the real part).
    /// Error: the first step whose pivot `positive` does not take; rows and columns from there on are
    /// unspecified.
    fn cholesky(
        a: &mut [Self],
        n: usize,
        positive: fn(Self::Part) -> bool,
        stack: &mut MemStack,
    ) -> Result<(), usize>;

    /// Working memory of [`Element::solve`].
    fn solve_scratch(n: usize, columns: usize) -> StackReq;
    /// Solves `op(a) x = b` in place, b of n rows; reads one triangle of a.
    fn solve(a: &[Self], n: usize, b: &mut [Self], columns: usize, system: System, stack: &mut MemStack);

    /// A transposed copy: `to` (columns by rows) of `from` (rows by columns).
    fn transpose(from: &[Self], rows: usize, columns: usize, to: &mut [Self]);

    /// Working memory of [`Element::lu`] and [`Element::lu_is_decided`].
    fn lu_scratch(m: usize, n: usize) -> StackReq;
    /// `p a = l u`, m by n, in place: getrf. `pivots` from 1; the result is `info`.
    fn lu(a: &mut [Self], m: usize, n: usize, pivots: &mut [i32], stack: &mut MemStack) -> i32;
    /// Whether wider arithmetic would choose the pivots of these factors, too, as far as they tell.
    fn lu_is_decided(factors: &[Self], m: usize, n: usize, stack: &mut MemStack) -> bool;

    /// Working memory of [`Element::qr`], [`Element::qr_is_decided`], [`Element::form_q`] and
    /// [`Element::multiply_q`] of m by n reflectors and as many columns (rows) of what is multiplied.
    fn qr_scratch(m: usize, n: usize, others: usize) -> StackReq;
    /// `a = q r`, m by n, in place: geqrf.
    fn qr(a: &mut [Self], m: usize, n: usize, taus: &mut [Self], stack: &mut MemStack);
    /// Whether wider arithmetic would choose the signs of these reflectors, too, as far as they tell; each is
    /// off by this many units of `rounding`.
    fn qr_is_decided(
        factors: &[Self],
        m: usize,
        n: usize,
        taus: &[Self],
        rounding: f64,
        stack: &mut MemStack,
    ) -> bool;
    /// The first columns of Q, as many as `reflectors` (m by n) has: orgqr. Writes all of `q`.
    fn form_q(reflectors: &[Self], m: usize, n: usize, taus: &[Self], q: &mut [Self], stack: &mut MemStack);
    /// Multiplies `c` (rows by columns) by Q of reflectors (n columns): ormqr.
    fn multiply_q(
        reflectors: &[Self],
        n: usize,
        taus: &[Self],
        c: &mut [Self],
        size: (usize, usize),
        side: Side,
        stack: &mut MemStack,
    );

    /// Working memory of [`Element::eigen`].
    fn eigen_scratch(n: usize, vectors: bool) -> StackReq;
    /// Eigenvalues, ascending, of the matrix that the lower triangle (or the upper) holds, and the
    /// eigenvectors as columns of `z`, if it is not empty. False: it is not finite, or no end was found.
    fn eigen(
        a: &[Self],
        n: usize,
        lower: bool,
        values: &mut [Self::Part],
        z: &mut [Self],
        stack: &mut MemStack,
    ) -> bool;

    /// Working memory of [`Element::svd`].
    fn svd_scratch(m: usize, n: usize, vectors: Vectors) -> StackReq;
    /// Singular values, descending, and `u`, `vt` (empty without [`Vectors`]). False: as of
    /// [`Element::eigen`].
    fn svd(
        a: &[Self],
        size: (usize, usize),
        values: &mut [Self::Part],
        vectors: Vectors,
        u: &mut [Self],
        vt: &mut [Self],
        stack: &mut MemStack,
    ) -> bool;
}

macro_rules! elements {
    ($($t:ty),*) => {$(
        impl Element for $t {
            fn cholesky_scratch(n: usize) -> StackReq {
                cholesky::scratch::<$t>(n)
            }

            fn cholesky(
                a: &mut [$t],
                n: usize,
                positive: fn(Self::Part) -> bool,
                stack: &mut MemStack,
            ) -> Result<(), usize> {
                cholesky::factor(a, n, positive, stack)
            }

            fn solve_scratch(n: usize, columns: usize) -> StackReq {
                solve::scratch::<$t>(n, columns)
            }

            fn solve(a: &[$t], n: usize, b: &mut [$t], columns: usize, system: System, stack: &mut MemStack) {
                solve::solve(a, n, b, columns, system, stack);
            }

            fn transpose(from: &[$t], rows: usize, columns: usize, to: &mut [$t]) {
                field::transpose(from, columns, rows, columns, to);
            }

            fn lu_scratch(m: usize, n: usize) -> StackReq {
                lu::scratch::<$t>(m, n)
            }

            fn lu(a: &mut [$t], m: usize, n: usize, pivots: &mut [i32], stack: &mut MemStack) -> i32 {
                lu::factor(a, m, n, pivots, stack)
            }

            fn lu_is_decided(factors: &[$t], m: usize, n: usize, stack: &mut MemStack) -> bool {
                lu::is_decided(factors, m, n, stack)
            }

            fn qr_scratch(m: usize, n: usize, others: usize) -> StackReq {
                qr::scratch::<$t>(m, n, others)
            }

            fn qr(a: &mut [$t], m: usize, n: usize, taus: &mut [$t], stack: &mut MemStack) {
                qr::factor(a, m, n, taus, stack);
            }

            fn qr_is_decided(
                factors: &[$t],
                m: usize,
                n: usize,
                taus: &[$t],
                rounding: f64,
                stack: &mut MemStack,
            ) -> bool {
                qr::is_decided(factors, m, n, taus, rounding, stack)
            }

            fn form_q(
                reflectors: &[$t],
                m: usize,
                n: usize,
                taus: &[$t],
                q: &mut [$t],
                stack: &mut MemStack,
            ) {
                qr::form(reflectors, m, n, taus, q, stack);
            }

            fn multiply_q(
                reflectors: &[$t],
                n: usize,
                taus: &[$t],
                c: &mut [$t],
                size: (usize, usize),
                side: Side,
                stack: &mut MemStack,
            ) {
                qr::multiply(reflectors, n, taus, c, size, side, stack);
            }

            fn eigen_scratch(n: usize, vectors: bool) -> StackReq {
                decompose::eigen_scratch::<$t>(n, vectors)
            }

            fn eigen(
                a: &[$t],
                n: usize,
                lower: bool,
                values: &mut [Self::Part],
                z: &mut [$t],
                stack: &mut MemStack,
            ) -> bool {
                decompose::eigen(a, n, lower, values, z, stack)
            }

            fn svd_scratch(m: usize, n: usize, vectors: Vectors) -> StackReq {
                decompose::svd_scratch::<$t>(m, n, vectors)
            }

            fn svd(
                a: &[$t],
                size: (usize, usize),
                values: &mut [Self::Part],
                vectors: Vectors,
                u: &mut [$t],
                vt: &mut [$t],
                stack: &mut MemStack,
            ) -> bool {
                decompose::svd(a, size, values, vectors, (u, vt), stack)
            }
        }
    )*};
}
elements!(f32, f64, num_complex::Complex<f32>, num_complex::Complex<f64>);
