//! The routines by the interpreter's code on the program's memory, in its arithmetic or in the element
//! type's, so that what rounding decides is decided alike.

use std::sync::Arc;

use hlo_library_base::memory::Shared;
use hlo_library_base::{Call, Sent};
use hlo_linalg::Vectors;
use hlo_matrices::eigen_symmetric::Eigenvectors;
use hlo_matrices::routines::{self, Arithmetic, Element, Side, Singular};
use hlo_threads::parallel::Threads;

use super::{Linalg, Routine, TASKS};

/// The maximum of elements of a matrix; larger ones are the interpreter's, which accounts for memory.
const MAX_ELEMENTS: usize = 1 << 26;

impl Routine {
    /// Whether this computes it too.
    pub(super) fn is_own(self) -> bool {
        let size = |m: usize, n: usize| m.checked_mul(n).is_some_and(|n| n <= MAX_ELEMENTS);
        match self {
            Routine::Cholesky { .. } | Routine::Solve { .. } | Routine::Potrf { .. } => false,
            Routine::Lu { m, n } | Routine::Qr { m, n } | Routine::FormQ { m, n, .. } => size(m, n),
            Routine::MultiplyQ { n, rows, columns, side, .. } => {
                size(rows, columns) && size(if side.left { rows } else { columns }, n)
            }
            Routine::Eigen { n, .. } => size(n, n),
            Routine::Svd { m, n, full, .. } => size(if full { m.max(n) } else { n }, m.max(n)) && size(m, n),
        }
    }
}

/// Executes the routine for some matrices, or all: each in a task, or one on all threads.
///
/// # Safety
/// As [`super::Operation::run`].
pub(super) unsafe fn run<T: Element>(
    op: &Linalg,
    call: Call<'_>,
    some: Option<&[usize]>,
    arithmetic: Arithmetic,
) {
    let threads: Arc<dyn Threads> = Arc::<hlo_library_base::pool::Pool>::clone(call.pool);
    let call = Sent(call);
    let count = some.map_or(op.count, <[usize]>::len);
    let tasks = count.min(TASKS);
    hlo_threads::parallel::with_threads(threads, || {
        routines::each(tasks, &|task| {
            for i in count * task / tasks..count * (task + 1) / tasks {
                let i = some.map_or(i, |some| some[i]);
                // SAFETY: each matrix of each argument is one task's.
                unsafe { one::<T>(op, call.get(), i, arithmetic) };
            }
        });
    });
}

/// Executes it for one matrix.
///
/// # Safety
/// As [`run`]; nothing else has results of this matrix.
unsafe fn one<T: Element>(op: &Linalg, call: &Call<'_>, i: usize, arithmetic: Arithmetic) {
    let Linalg { routine, arguments, .. } = op;
    // The address of matrix i of an argument, and the number of its elements.
    let part = |k: usize| {
        let (elements, bytes) = arguments[k];
        // SAFETY: the argument has as many elements for each matrix.
        (unsafe { call.arguments[k].add(i * elements * bytes) }, elements)
    };
    // SAFETY: operands are arrays of these types (`call::read`), which nothing writes now.
    let read = |k: usize| unsafe { Shared::<T>::new(part(k).0).slice(0, part(k).1) };
    // SAFETY: results are arrays of these types, and each is asked for once.
    let write = |k: usize| unsafe { Shared::<T>::new(part(k).0).slice_mut(0, part(k).1) };
    // SAFETY: as above.
    let real = |k: usize| unsafe { Shared::<T::Real>::new(part(k).0).slice_mut(0, part(k).1) };
    // SAFETY: as above.
    let ints = |k: usize| unsafe { Shared::<i32>::new(part(k).0).slice_mut(0, part(k).1) };
    match *routine {
        Routine::Cholesky { .. } | Routine::Solve { .. } | Routine::Potrf { .. } => {
            unreachable!("invariant: the library's alone")
        }
        Routine::Lu { m, n } => ints(3)[0] = T::getrf(read(0), (m, n), write(1), ints(2)),
        Routine::Qr { m, n } => T::geqrf(read(0), (m, n), write(1), write(2)),
        Routine::FormQ { m, n, .. } => T::orgqr(read(0), (m, n), read(1), write(2)),
        Routine::MultiplyQ { n, rows, columns, side, .. } => {
            let side = Side { left: side.left, adjoint: side.adjoint };
            let order = if side.left { rows } else { columns };
            T::ormqr((read(0), order, n), read(1), (read(2), rows, columns), side, write(3));
        }
        Routine::Eigen { n, wanted, lower } => {
            let z = write(1);
            if wanted == Eigenvectors::No {
                z.copy_from_slice(read(0));
            }
            ints(3)[0] = T::syevd((read(0), n, lower), wanted, arithmetic, z, real(2));
        }
        Routine::Svd { m, n, vectors, iteration, .. } => {
            write(1).copy_from_slice(read(0));
            let singular = match vectors {
                Vectors::No => Singular::No,
                Vectors::Thin => Singular::Thin,
                Vectors::Full => Singular::Full,
            };
            let (s, u, vt) = (real(2), write(3), write(4));
            ints(5)[0] = T::gesdd((read(0), m, n), singular, iteration, arithmetic, s, (u, vt));
        }
    }
}
