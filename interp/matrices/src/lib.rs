//! Factorizations of matrices, in the conventions of LAPACK and in arithmetic wider than the element types.
//!
//! These are kernels: they know matrices over a wide [`Field`], not the IR. [`Decompose`] has them for who
//! has matrices; [`routines`] are LAPACK's, on slices of elements. Each does its arithmetic in one fixed
//! order with correctly rounded IEEE 754 operations, so that its bits depend on its operands alone. They are
//! fast where that order allows it: elements of blocks side by side in registers ([`product`]), reflectors
//! together ([`householder`]), rotations gathered ([`rotations`]), columns on all threads.
//!
//! What mathematics leaves free (signs, order) follows LAPACK's algorithms. Where that depends on the number
//! of rounds of an iteration, the iteration runs as LAPACK's does, up to what is negligible in the element
//! type (`coarse`, twice its unit of rounding), and again up to what is negligible in the wide field (beside
//! it: [`chase`]), and takes from the first run signs and order, nothing else. Where halves are merged, what
//! is left out up to the coarser unit tells the signs without such a run ([`secular::Decisions`]). Of f64
//! (and complex numbers of f64) the first run of symmetric matrices and singular values is all of the
//! algorithm, in f64: what compiled programs compute has the signs of what is computed here, whatever
//! rounding does ([`crate::routines`]).
//!
//! **Invariants:** every iteration has a limit, so that no operand makes a kernel run forever; what is not
//! finite ends as a failure that the kernel reports, or as NaN; no size, 0 included, makes a kernel panic.

#![forbid(unsafe_code)]

mod balance;
mod bidiagonal;
mod chase;
mod cholesky;
mod decompose;
mod divide;
mod divide_bidiagonal;
mod dqds;
pub mod eigen_general;
pub mod eigen_symmetric;
mod hessenberg;
mod householder;
mod implicit_ql;
mod implicit_qr;
mod lu;
mod matrix;
mod product;
mod qr;
mod qr_pivoted;
mod rotation;
mod rotations;
pub mod routines;
mod schur;
mod secular;
pub mod svd;
#[cfg(test)]
mod tests;
pub mod triangular;
pub mod tridiagonal;
pub mod wide;

pub use decompose::Decompose;
pub use hessenberg::Hessenberg;
pub use lu::Lu;
pub use matrix::Matrix;
pub use qr::Qr;
pub use schur::Schur;

use hlo_threads::parallel;

use wide::{Field, Real};

/// Into how many parts a step over that many elements is partitioned: by their number alone, whose results
/// are added in order.
fn parts(elements: usize) -> usize {
    /// Elements that are worth a part.
    const PART: usize = 1 << 13;
    /// Parts at most.
    const PARTS: usize = 4;
    (elements / PART).clamp(1, PARTS)
}

/// Does something to each part of a step, which takes some microseconds: on other threads if these start at
/// once, or arithmetic is slow.
fn each_part<F: Field, P: Send>(parts: &mut [P], f: &(dyn Fn(&mut P) + Sync)) {
    if parallel::starts_at_once() || F::Real::ULP < f64::ULP {
        parallel::pieces(parts, 1, 1, &|_, parts| parts.iter_mut().for_each(f));
    } else {
        parts.iter_mut().for_each(f);
    }
}

/// Which triangle of a matrix holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// The elements below the diagonal, and the diagonal.
    Lower,
    /// The elements above the diagonal, and the diagonal.
    Upper,
}
