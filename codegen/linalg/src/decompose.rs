//! Eigenvalues of Hermitian matrices and singular values, by [`faer`].

use faer::diag::DiagMut;
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::svd::{self, ComputeSvdVectors};
use faer::linalg::{temp_mat_scratch, temp_mat_zeroed};
use faer::mat::AsMatMut;
use faer::{MatRef, Par, Spec};

use crate::Vectors;
use crate::field::{Field, matrix};

pub(crate) fn eigen_scratch<T: Field>(n: usize, vectors: bool) -> StackReq {
    if n == 0 {
        return StackReq::EMPTY;
    }
    let wanted = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    StackReq::all_of(&[
        temp_mat_scratch::<T>(n, n),
        temp_mat_scratch::<T>(n, n),
        StackReq::new::<T>(n),
        self_adjoint_evd_scratch::<T>(n, wanted, Par::Seq, Spec::default()),
    ])
}

pub(crate) fn eigen<T: Field>(
    a: &[T],
    n: usize,
    lower: bool,
    values: &mut [T::Part],
    z: &mut [T],
    stack: &mut MemStack,
) -> bool {
    if n == 0 {
        return true;
    }
    let source = MatRef::from_row_major_slice(&a[..n * n], n, n);
    let (mut copy, stack) = temp_mat_zeroed::<T, _, _>(n, n, stack);
    let mut copy = copy.as_mat_mut();
    let mut finite = true;
    for j in 0..n {
        for i in j..n {
            let x = if lower { source[(i, j)] } else { source[(j, i)].conjugate() };
            let x = if i == j { T::real(x.re()) } else { x };
            finite &= x.finite();
            copy[(i, j)] = x;
        }
    }
    if !finite {
        return false;
    }
    let (mut u, stack) = temp_mat_zeroed::<T, _, _>(n, n, stack);
    let mut u = u.as_mat_mut();
    let (mut found, stack) = stack.make_with(n, |_| T::default());
    let vectors = !z.is_empty();
    let done = self_adjoint_evd(
        copy.as_ref(),
        DiagMut::from_slice_mut(&mut found),
        vectors.then(|| u.as_mut()),
        Par::Seq,
        stack,
        Spec::default(),
    );
    values.iter_mut().zip(&*found).for_each(|(to, x)| *to = x.re());
    if vectors {
        matrix(z, n, n).copy_from(u.as_ref());
    }
    done.is_ok()
}

fn wanted(vectors: Vectors) -> ComputeSvdVectors {
    match vectors {
        Vectors::No => ComputeSvdVectors::No,
        Vectors::Thin => ComputeSvdVectors::Thin,
        Vectors::Full => ComputeSvdVectors::Full,
    }
}

/// Columns of u and of v.
fn columns(m: usize, n: usize, vectors: Vectors) -> (usize, usize) {
    match vectors {
        Vectors::No => (0, 0),
        Vectors::Thin => (m.min(n), m.min(n)),
        Vectors::Full => (m, n),
    }
}

pub(crate) fn svd_scratch<T: Field>(m: usize, n: usize, vectors: Vectors) -> StackReq {
    let (of_u, of_v) = columns(m, n, vectors);
    let both = wanted(vectors);
    StackReq::all_of(&[
        temp_mat_scratch::<T>(m, n),
        temp_mat_scratch::<T>(m, of_u),
        temp_mat_scratch::<T>(n, of_v),
        StackReq::new::<T>(m.min(n)),
        svd::svd_scratch::<T>(m, n, both, both, Par::Seq, Spec::default()),
    ])
}

pub(crate) fn svd<T: Field>(
    a: &[T],
    (m, n): (usize, usize),
    values: &mut [T::Part],
    vectors: Vectors,
    (u, vt): (&mut [T], &mut [T]),
    stack: &mut MemStack,
) -> bool {
    if !a.iter().all(|x| x.finite()) {
        return false;
    }
    let (of_u, of_v) = columns(m, n, vectors);
    let (mut copy, stack) = temp_mat_zeroed::<T, _, _>(m, n, stack);
    let mut copy = copy.as_mat_mut();
    copy.copy_from(MatRef::from_row_major_slice(&a[..m * n], m, n));
    let (mut left, stack) = temp_mat_zeroed::<T, _, _>(m, of_u, stack);
    let mut left = left.as_mat_mut();
    let (mut right, stack) = temp_mat_zeroed::<T, _, _>(n, of_v, stack);
    let mut right = right.as_mat_mut();
    let (mut found, stack) = stack.make_with(m.min(n), |_| T::default());
    let some = vectors != Vectors::No;
    let done = svd::svd(
        copy.as_ref(),
        DiagMut::from_slice_mut(&mut found),
        some.then(|| left.as_mut()),
        some.then(|| right.as_mut()),
        Par::Seq,
        stack,
        Spec::default(),
    );
    values.iter_mut().zip(&*found).for_each(|(to, x)| *to = x.re());
    if some {
        matrix(u, m, of_u).copy_from(left.as_ref());
        matrix(vt, of_v, n).copy_from(right.as_ref().adjoint().to_owned());
    }
    done.is_ok()
}
