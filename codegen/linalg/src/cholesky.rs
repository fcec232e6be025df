//! Cholesky factors: blocks of columns from the left, each finished before what is to its right is updated.

use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatRef, Par};
use num_traits::Float;

use crate::field::{Field, matrix, transpose};
use crate::solve::{self, Plan};

/// Columns of a block.
const BLOCK: usize = 48;

pub(crate) fn scratch<T: Field>(n: usize) -> StackReq {
    let rest = n.saturating_sub(BLOCK).saturating_mul(BLOCK);
    StackReq::all_of(&[
        StackReq::new::<T>(BLOCK * BLOCK),
        StackReq::new::<T>(BLOCK),
        StackReq::new::<T>(rest),
        solve::scratch::<T>(0, 0),
    ])
}

pub(crate) fn factor<T: Field>(
    a: &mut [T],
    n: usize,
    positive: fn(T::Part) -> bool,
    stack: &mut MemStack,
) -> Result<(), usize> {
    let (mut block, stack) = stack.make_with(BLOCK * BLOCK, |_| T::default());
    let (mut column, stack) = stack.make_with(BLOCK, |_| T::default());
    let (mut below, stack) = stack.make_with(n.saturating_sub(BLOCK) * BLOCK, |_| T::default());
    let (mut square, _) = stack.make_with(solve::SQUARE, |_| T::default());
    for k in (0..n).step_by(BLOCK) {
        let size = BLOCK.min(n - k);
        let block = &mut block[..size * size];
        for i in 0..size {
            block[i * size..][..size].copy_from_slice(&a[(k + i) * n + k..][..size]);
        }
        let done = factor_block(block, size, positive, &mut column);
        for i in 0..size {
            a[(k + i) * n + k..][..=i].copy_from_slice(&block[i * size..][..=i]);
        }
        done.map_err(|step| k + step)?;
        let rest = n - k - size;
        if rest == 0 {
            break;
        }
        // x l^H = a is conj(l) x^T = a^T.
        let first = (k + size) * n + k;
        let below = &mut below[..size * rest];
        transpose(&a[first..], n, rest, size, below);
        let plan = Plan { forward: true, unit: false, conjugated: true };
        plan.solve(MatRef::from_row_major_slice(block, size, size), below, rest, &mut square);
        for i in 0..rest {
            let row = &mut a[first + i * n..][..size];
            row.iter_mut().enumerate().for_each(|(j, x)| *x = below[j * rest + i]);
        }
        let (_, _, _, corner) = matrix(a, n, n).split_at_mut(k + size, k + size);
        let left = MatRef::from_column_major_slice(below, rest, size);
        matmul(
            corner,
            BlockStructure::TriangularLower,
            Accum::Add,
            left,
            BlockStructure::Rectangular,
            left.adjoint(),
            BlockStructure::Rectangular,
            -T::one(),
            Par::Seq,
        );
    }
    Ok(())
}

/// The same of a small matrix, one column after the other.
fn factor_block<T: Field>(
    a: &mut [T],
    n: usize,
    positive: fn(T::Part) -> bool,
    column: &mut [T],
) -> Result<(), usize> {
    for k in 0..n {
        let square = a[k * n + k].re();
        if !positive(square) {
            return Err(k);
        }
        let root = Float::sqrt(square);
        a[k * n + k] = T::real(root);
        for i in k + 1..n {
            let x = a[i * n + k].over_real(root);
            a[i * n + k] = x;
            column[i] = x.conjugate();
        }
        for i in k + 1..n {
            let factor = a[i * n + k];
            crate::field::subtract(&mut a[i * n + k + 1..=i * n + i], factor, &column[k + 1..=i]);
        }
    }
    Ok(())
}
