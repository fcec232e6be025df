//! The routines on one matrix.

use hlo_library_base::memory::Shared;
use hlo_linalg::{Element, MemStack, Part, StackReq, Vectors};

use super::{Eigenvectors, Routine, solve};

/// The parts of one matrix's arguments.
struct Parts<'a> {
    pointers: &'a [*mut u8],
    /// Elements and bytes of an element.
    sizes: &'a [(usize, usize)],
}

impl<'a> Parts<'a> {
    /// An operand.
    ///
    /// # Safety
    /// Its elements are of this type, and nothing writes it.
    unsafe fn read<T>(&self, i: usize) -> &'a [T] {
        // SAFETY: as the caller says.
        unsafe { Shared::<T>::new(self.pointers[i]).slice(0, self.sizes[i].0) }
    }

    /// A result.
    ///
    /// # Safety
    /// Its elements are of this type, and nothing else accesses it.
    unsafe fn write<T>(&self, i: usize) -> &'a mut [T] {
        // SAFETY: as the caller says.
        unsafe { Shared::<T>::new(self.pointers[i]).slice_mut(0, self.sizes[i].0) }
    }
}

impl Routine {
    /// Whether arguments have these elements each.
    pub(super) fn sizes(self, arguments: &[(usize, usize)]) -> bool {
        let given = arguments.iter().map(|a| a.0);
        match self {
            Routine::Cholesky { n, .. } => given.eq([n * n; 2]),
            Routine::Solve { n, rows, columns, .. } => given.eq([n * n, rows * columns, rows * columns]),
            Routine::Potrf { n, .. } => given.eq([n * n, n * n, 1]),
            Routine::Lu { m, n } => given.eq([m * n, m * n, m.min(n), 1]),
            Routine::Qr { m, n } => given.eq([m * n, m * n, m.min(n)]),
            Routine::FormQ { m, n, taus } => given.eq([m * n, taus, m * n]),
            Routine::MultiplyQ { n, taus, rows, columns, side } => {
                let order = if side.left { rows } else { columns };
                given.eq([order * n, taus, rows * columns, rows * columns])
            }
            Routine::Eigen { n, .. } => given.eq([n * n, n * n, n, 1]),
            Routine::Svd { m, n, full, .. } => {
                let size = m.min(n);
                let (u, vt) = if full { (m * m, n * n) } else { (m * size, size * n) };
                given.eq([m * n, m * n, size, u, vt, 1])
            }
        }
    }

    /// Working memory.
    pub(super) fn scratch<T: Element>(self) -> StackReq {
        match self {
            Routine::Cholesky { n, .. } | Routine::Potrf { n, .. } => {
                StackReq::all_of(&[StackReq::new::<T>(n * n), T::cholesky_scratch(n)])
            }
            Routine::Solve { n, rows, columns, left, .. } => {
                let count = if left { columns } else { rows };
                StackReq::all_of(&[
                    StackReq::new::<T>(n * solve::copied(count, left)),
                    T::solve_scratch(n, solve::width(count)),
                ])
            }
            Routine::Lu { m, n } => T::lu_scratch(m, n),
            Routine::Qr { m, n } | Routine::FormQ { m, n, .. } => T::qr_scratch(m, n, n),
            Routine::MultiplyQ { n, rows, columns, side, .. } => {
                let (order, others) = if side.left { (rows, columns) } else { (columns, rows) };
                T::qr_scratch(order, n, others)
            }
            Routine::Eigen { n, wanted, .. } => T::eigen_scratch(n, wanted == Eigenvectors::All),
            Routine::Svd { m, n, vectors, .. } => T::svd_scratch(m, n, vectors),
        }
    }

    /// Panels of a matrix, which are computed independently: 1, but of a triangular system.
    pub(super) fn panels(self) -> usize {
        match self {
            Routine::Solve { rows, columns, left, .. } => solve::panels(if left { columns } else { rows }),
            Routine::Cholesky { .. }
            | Routine::Potrf { .. }
            | Routine::Lu { .. }
            | Routine::Qr { .. }
            | Routine::FormQ { .. }
            | Routine::MultiplyQ { .. }
            | Routine::Eigen { .. }
            | Routine::Svd { .. } => 1,
        }
    }

    /// Arithmetic operations, about.
    pub(super) fn flops(self) -> f64 {
        let cube = |n: usize| (n as f64).powi(3);
        match self {
            Routine::Cholesky { n, .. } | Routine::Potrf { n, .. } => cube(n) / 3.0,
            Routine::Solve { n, rows, columns, .. } => n as f64 * (rows * columns) as f64,
            Routine::Lu { m, n } => (m * n * m.min(n)) as f64 - cube(m.min(n)) / 3.0,
            Routine::Qr { m, n } => 2.0 * (m * n * m.min(n)) as f64,
            Routine::FormQ { m, n, taus } => 4.0 * (m * n) as f64 * taus as f64,
            Routine::MultiplyQ { taus, rows, columns, .. } => 4.0 * (rows * columns) as f64 * taus as f64,
            Routine::Eigen { n, wanted, .. } => {
                cube(n) * if wanted == Eigenvectors::All { 9.0 } else { 4.0 / 3.0 }
            }
            Routine::Svd { m, n, .. } => 8.0 * (m * n * m.min(n)) as f64,
        }
    }

    /// Computes a panel of the routine. Returns false if `doubt` is set and pivots or signs depend on rounding
    /// ([`Element::lu_is_decided`], [`Element::qr_is_decided`]).
    ///
    /// # Safety
    /// Pointers and sizes are those of one matrix of the arguments of the instruction, whose elements are of
    /// this type; nothing else accesses this panel of its results.
    pub(super) unsafe fn run<T: Element>(
        self,
        pointers: &[*mut u8],
        sizes: &[(usize, usize)],
        panel: usize,
        stack: &mut MemStack,
        doubt: bool,
    ) -> bool {
        let parts = Parts { pointers, sizes };
        let (zero, nan) = (T::default(), T::real(T::Part::narrow(f64::NAN)));
        // SAFETY: operands and results are arrays of these types (`call::read`).
        unsafe {
            match self {
                Routine::Cholesky { n, lower } => {
                    let (a, out) = (parts.read::<T>(0), parts.write::<T>(1));
                    // The root of 0 is 0, that of a negative number or of NaN is none.
                    let done = factor(
                        a,
                        n,
                        lower,
                        |square| square.wide() >= 0.0,
                        stack,
                        |factor, _| {
                            for i in 0..n {
                                for j in 0..n {
                                    let there = if lower { j <= i } else { i <= j };
                                    out[i * n + j] = if there { factor(i, j) } else { zero };
                                }
                            }
                        },
                    );
                    // A pivot of 0 may have made NaN of what came after it.
                    if done.is_err() {
                        out.fill(nan);
                    }
                }
                Routine::Potrf { n, lower } => {
                    let (a, out) = (parts.read::<T>(0), parts.write::<T>(1));
                    out.copy_from_slice(a);
                    let done = factor(
                        a,
                        n,
                        lower,
                        |square| square.wide() > 0.0,
                        stack,
                        |factor, done| {
                            // Columns (rows of an upper factor) from the failed step on stay as they are.
                            let finished = done.err().unwrap_or(n);
                            for i in 0..n {
                                for j in 0..n {
                                    let (row, column) = if lower { (i, j) } else { (j, i) };
                                    if column <= row && column < finished {
                                        // Also of the diagonal an upper factor is the conjugate.
                                        let x = factor(i, j);
                                        out[i * n + j] = if lower || i != j { x } else { x.conjugate() };
                                    }
                                }
                            }
                        },
                    );
                    parts.write::<i32>(2)[0] = done.err().map_or(0, |k| k as i32 + 1);
                }
                Routine::Solve { n, rows, columns, left, system } => {
                    let (a, b) = (parts.read::<T>(0), parts.read::<T>(1));
                    let b = solve::Sides { b, left, count: if left { columns } else { rows } };
                    solve::panel((a, n), b, Shared::new(pointers[2]), panel, system, stack);
                }
                Routine::Lu { m, n } => {
                    let out = parts.write::<T>(1);
                    out.copy_from_slice(parts.read::<T>(0));
                    let info = T::lu(out, m, n, parts.write::<i32>(2), stack);
                    parts.write::<i32>(3)[0] = info;
                    return !doubt || (info == 0 && T::lu_is_decided(out, m, n, stack));
                }
                Routine::Qr { m, n } => {
                    let out = parts.write::<T>(1);
                    out.copy_from_slice(parts.read::<T>(0));
                    let taus = parts.write::<T>(2);
                    T::qr(out, m, n, taus, stack);
                    let units = hlo_matrices::routines::reflector_units(m);
                    return !doubt || T::qr_is_decided(out, m, n, taus, units, stack);
                }
                Routine::FormQ { m, n, .. } => {
                    T::form_q(parts.read::<T>(0), m, n, parts.read::<T>(1), parts.write::<T>(2), stack);
                }
                Routine::MultiplyQ { n, rows, columns, side, .. } => {
                    let out = parts.write::<T>(3);
                    out.copy_from_slice(parts.read::<T>(2));
                    T::multiply_q(
                        parts.read::<T>(0),
                        n,
                        parts.read::<T>(1),
                        out,
                        (rows, columns),
                        side,
                        stack,
                    );
                }
                Routine::Eigen { n, wanted, lower } => {
                    let vectors = wanted == Eigenvectors::All;
                    let (a, z, w) = (parts.read::<T>(0), parts.write::<T>(1), parts.write::<T::Part>(2));
                    let found = T::eigen(a, n, lower, w, if vectors { &mut *z } else { &mut [] }, stack);
                    if !found {
                        w.fill(T::Part::narrow(f64::NAN));
                    }
                    if !vectors {
                        z.copy_from_slice(a);
                    } else if !found {
                        z.fill(nan);
                    }
                    parts.write::<i32>(3)[0] = if found { 0 } else { n as i32 };
                }
                Routine::Svd { m, n, vectors, .. } => {
                    let (a, s) = (parts.read::<T>(0), parts.write::<T::Part>(2));
                    let (u, vt) = (parts.write::<T>(3), parts.write::<T>(4));
                    parts.write::<T>(1).copy_from_slice(a);
                    let found = T::svd(a, (m, n), s, vectors, u, vt, stack);
                    if vectors == Vectors::No {
                        u.fill(zero);
                        vt.fill(zero);
                    }
                    if !found {
                        s.fill(T::Part::narrow(f64::NAN));
                        if vectors != Vectors::No {
                            u.fill(nan);
                            vt.fill(nan);
                        }
                    }
                    let has_nan = a.iter().any(|x| x.re().wide().is_nan() || x.im().wide().is_nan());
                    parts.write::<i32>(5)[0] = match (found, has_nan) {
                        (true, _) => 0,
                        (false, true) => -4,
                        (false, false) => m.min(n) as i32,
                    };
                }
            }
        }
        true
    }
}

/// Factors a matrix of which one triangle is given; `done` is called with the elements of the factor (if it
/// failed, those before the failed step) and the result.
fn factor<T: Element>(
    a: &[T],
    n: usize,
    lower: bool,
    positive: fn(T::Part) -> bool,
    stack: &mut MemStack,
    done: impl FnOnce(&dyn Fn(usize, usize) -> T, Result<(), usize>),
) -> Result<(), usize> {
    let (mut l, stack) = stack.make_with(n * n, |_| T::default());
    for i in 0..n {
        for j in 0..=i {
            // The lower triangle of the adjoint is the upper one, adjoint.
            l[i * n + j] = if lower { a[i * n + j] } else { a[j * n + i].conjugate() };
        }
    }
    let result = T::cholesky(&mut l, n, positive, stack);
    let element = |i: usize, j: usize| match (lower, i == j) {
        (_, true) => T::real(l[i * n + i].re()),
        (true, false) => l[i * n + j],
        (false, false) => l[j * n + i].conjugate(),
    };
    done(&element, result);
    result
}
