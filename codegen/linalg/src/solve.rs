//! Triangular systems by substitution: blocks of unknowns one by one, what is between blocks by products.

use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::matmul::matmul_with_conj;
use faer::prelude::IntoConst;
use faer::{Accum, Conj, MatRef, Par};

use crate::field::{Field, matrix, subtract};

/// The unknowns of a block, which are solved one by one.
const BLOCK: usize = 24;

/// Elements of the square that a block is copied to.
pub(crate) const SQUARE: usize = BLOCK * BLOCK;

/// A triangular system `op(a) x = b`.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// The triangle of `a` that is read is the lower one.
    pub lower: bool,
    /// The diagonal of `a` counts as 1.
    pub unit: bool,
    /// op transposes.
    pub transposed: bool,
    /// op conjugates.
    pub conjugated: bool,
}

pub(crate) fn scratch<T: Field>(_: usize, _: usize) -> StackReq {
    StackReq::new::<T>(SQUARE)
}

/// Solves in place; b is n by columns.
pub(crate) fn solve<T: Field>(
    a: &[T],
    n: usize,
    b: &mut [T],
    columns: usize,
    system: System,
    stack: &mut MemStack,
) {
    if n == 0 || columns == 0 {
        return;
    }
    let a = MatRef::from_row_major_slice(&a[..n * n], n, n);
    let a = if system.transposed { a.transpose() } else { a };
    let forward = system.lower != system.transposed;
    let (mut block, _) = stack.make_with(SQUARE, |_| T::default());
    let plan = Plan { forward, unit: system.unit, conjugated: system.conjugated };
    plan.solve(a, &mut b[..n * columns], columns, &mut block);
}

/// A system of which op is in the strides.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// The matrix is lower triangular: the first unknown first.
    pub(crate) forward: bool,
    pub(crate) unit: bool,
    pub(crate) conjugated: bool,
}

impl Plan {
    /// `x` has the rows of `a`, each of that many columns.
    pub(crate) fn solve<T: Field>(self, a: MatRef<'_, T>, x: &mut [T], columns: usize, block: &mut [T]) {
        let n = a.nrows();
        if n <= BLOCK {
            return self.substitute(a, x, columns, block);
        }
        // Half of the blocks, the rest in the second part.
        let half = (n.div_ceil(BLOCK) / 2) * BLOCK;
        let (first, second) = x.split_at_mut(half * columns);
        let (a00, a01, a10, a11) = a.split_at(half, half);
        let conj = if self.conjugated { Conj::Yes } else { Conj::No };
        let minus = -T::one();
        if self.forward {
            self.solve(a00, first, columns, block);
            let (x0, x1) = (matrix(first, half, columns), matrix(second, n - half, columns));
            matmul_with_conj(x1, Accum::Add, a10, conj, x0.into_const(), Conj::No, minus, Par::Seq);
            self.solve(a11, second, columns, block);
        } else {
            self.solve(a11, second, columns, block);
            let (x0, x1) = (matrix(first, half, columns), matrix(second, n - half, columns));
            matmul_with_conj(x0, Accum::Add, a01, conj, x1.into_const(), Conj::No, minus, Par::Seq);
            self.solve(a00, first, columns, block);
        }
    }

    fn substitute<T: Field>(self, a: MatRef<'_, T>, x: &mut [T], columns: usize, block: &mut [T]) {
        let n = a.nrows();
        for i in 0..n {
            for j in 0..n {
                let x = a[(i, j)];
                block[i * n + j] = if self.conjugated { x.conjugate() } else { x };
            }
        }
        for step in 0..n {
            let i = if self.forward { step } else { n - 1 - step };
            let row = &block[i * n..][..n];
            let (before, rest) = x.split_at_mut(i * columns);
            let (own, after) = rest.split_at_mut(columns);
            if self.forward {
                for (&f, x) in row[..i].iter().zip(before.chunks_exact(columns)) {
                    subtract(own, f, x);
                }
            } else {
                for (&f, x) in row[i + 1..].iter().zip(after.chunks_exact(columns)) {
                    subtract(own, f, x);
                }
            }
            if !self.unit {
                own.iter_mut().for_each(|x| *x = x.over(row[i]));
            }
        }
    }
}
