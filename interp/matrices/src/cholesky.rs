//! A = L L^H or A = U^H U: `potrf`.

use hlo_threads::cancel;

use super::{Matrix, Triangle};
use crate::wide::{Field, Real};

/// Factors the matrix that one triangle holds, in that triangle; of its diagonal only real parts count. The
/// other triangle stays as it is. `positive` says whether the square of a diagonal element will do: the first
/// step for which it will not is the error, and the columns (rows) after that step's stay as they are.
pub(crate) fn factor<F: Field>(
    a: &mut Matrix<F>,
    triangle: Triangle,
    positive: impl Fn(F::Real) -> bool,
) -> Result<(), usize> {
    let n = a.rows();
    if triangle == Triangle::Upper {
        // The lower triangle of the adjoint is the upper triangle adjoint.
        let mut adjoint = a.adjoint();
        let done = factor(&mut adjoint, Triangle::Lower, positive);
        for j in 0..n {
            for i in 0..=j {
                a[(i, j)] = adjoint[(j, i)].conj();
            }
        }
        return done;
    }
    for j in 0..n {
        cancel::poll();
        for k in 0..j {
            let (left, right) = a.two_columns_mut(k, j);
            let factor = left[j].conj();
            for (&l, x) in left[j..].iter().zip(&mut right[j..]) {
                *x = *x - l * factor;
            }
        }
        let square = a[(j, j)].real();
        if !positive(square) {
            return Err(j);
        }
        let root = F::from_real(square.root());
        let column = a.column_mut(j);
        column[j] = root;
        for x in &mut column[j + 1..] {
            *x = *x / root;
        }
    }
    Ok(())
}
