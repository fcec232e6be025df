//! Reflectors: geqrf, orgqr, ormqr. `H = I - tau v v^H` with `v = (1, tail)`, as LAPACK's larfg makes them;
//! this many at a time are one block `I - V T V^H`.

use faer::dyn_stack::{DynArray, MemStack, StackReq};
use faer::linalg::matmul::{matmul, matmul_with_conj};
use faer::{Accum, Conj, MatMut, MatRef, Par};
use num_traits::Float;

use crate::field::{Field, Part, dot, matrix, norm, subtract, transpose};
use crate::{MARGIN, Side};

/// Reflectors of a block.
const BLOCK_REFLECTORS: usize = 32;

pub(crate) fn scratch<T: Field>(m: usize, n: usize, others: usize) -> StackReq {
    let size = BLOCK_REFLECTORS.min(n);
    StackReq::all_of(&[
        StackReq::new::<T>(m.saturating_mul(size)),
        StackReq::new::<T>(size * size),
        StackReq::new::<T>(others.max(n).saturating_mul(size)),
        StackReq::new::<T>(others.max(n).saturating_mul(size)),
    ])
    .or(StackReq::all_of(&[StackReq::new::<f64>(m.min(n)); 2]))
}

/// Scratch memory of a block.
struct Scratch<'a, T> {
    /// V: column-major, its rows those that the block has.
    v: DynArray<'a, T>,
    /// T: column-major.
    t: DynArray<'a, T>,
    /// Two products of a block and a matrix.
    products: [DynArray<'a, T>; 2],
}

impl<'a, T: Field> Scratch<'a, T> {
    fn new(m: usize, n: usize, others: usize, stack: &'a mut MemStack) -> Self {
        let (size, zero) = (BLOCK_REFLECTORS.min(n), |_| T::default());
        let (v, stack) = stack.make_with(m * size, zero);
        let (t, stack) = stack.make_with(size * size, zero);
        let (first, stack) = stack.make_with(others.max(n) * size, zero);
        let (second, _) = stack.make_with(others.max(n) * size, zero);
        Self { v, t, products: [first, second] }
    }

    /// Reads V of `size` reflectors of m rows, the first at the beginning of `a`, of which rows are `stride`
    /// apart; and makes T.
    fn block(&mut self, a: &[T], stride: usize, m: usize, taus: &[T]) {
        let size = taus.len();
        transpose(a, stride, m, size, &mut self.v[..m * size]);
        self.finish(m, taus);
    }

    /// Makes V of a column-major panel in place, and T.
    fn finish(&mut self, m: usize, taus: &[T]) {
        let size = taus.len();
        for j in 0..size {
            let column = &mut self.v[j * m..][..m];
            column[..j].fill(T::default());
            column[j] = T::one();
        }
        let t = &mut self.t[..size * size];
        t.fill(T::default());
        for (j, &tau) in taus.iter().enumerate() {
            // -tau T (V^H v), over the columns before.
            let own = &self.v[j * m + j..(j + 1) * m];
            for i in 0..j {
                t[j * size + i] = -(tau * dot(&self.v[i * m + j..(i + 1) * m], own));
            }
            for i in 0..j {
                let sum = (i..j).fold(T::default(), |sum, k| sum + t[k * size + i] * t[j * size + k]);
                t[j * size + i] = sum;
            }
            t[j * size + j] = tau;
        }
    }

    /// `c -= V T V^H c`, or with T^H; c has the block's rows.
    fn apply_left(&mut self, size: usize, c: MatMut<'_, T>, adjoint: bool) {
        let (m, n) = (c.nrows(), c.ncols());
        let v = MatRef::from_column_major_slice(&self.v[..m * size], m, size);
        let t = MatRef::from_column_major_slice(&self.t[..size * size], size, size);
        let [first, second] = &mut self.products;
        let mut first = matrix(first, size, n);
        let mut second = matrix(second, size, n);
        let mut c = c;
        matmul(first.as_mut(), Accum::Replace, v.adjoint(), c.as_ref(), T::one(), Par::Seq);
        let (t, conj) = if adjoint { (t.transpose(), Conj::Yes) } else { (t, Conj::No) };
        matmul_with_conj(
            second.as_mut(),
            Accum::Replace,
            t,
            conj,
            first.as_ref(),
            Conj::No,
            T::one(),
            Par::Seq,
        );
        matmul(c.as_mut(), Accum::Add, v, second.as_ref(), -T::one(), Par::Seq);
    }

    /// `c -= c V T V^H`, or with T^H; c has the block's rows as columns.
    fn apply_right(&mut self, size: usize, c: MatMut<'_, T>, adjoint: bool) {
        let (m, n) = (c.nrows(), c.ncols());
        let v = MatRef::from_column_major_slice(&self.v[..n * size], n, size);
        let t = MatRef::from_column_major_slice(&self.t[..size * size], size, size);
        let [first, second] = &mut self.products;
        let mut first = matrix(first, m, size);
        let mut second = matrix(second, m, size);
        let mut c = c;
        matmul(first.as_mut(), Accum::Replace, c.as_ref(), v, T::one(), Par::Seq);
        let (t, conj) = if adjoint { (t.transpose(), Conj::Yes) } else { (t, Conj::No) };
        matmul_with_conj(
            second.as_mut(),
            Accum::Replace,
            first.as_ref(),
            Conj::No,
            t,
            conj,
            T::one(),
            Par::Seq,
        );
        matmul(c.as_mut(), Accum::Add, second.as_ref(), v.adjoint(), -T::one(), Par::Seq);
    }
}

/// Factors an m by n matrix in place.
pub(crate) fn factor<T: Field>(a: &mut [T], m: usize, n: usize, taus: &mut [T], stack: &mut MemStack) {
    let steps = m.min(n);
    let mut scratch = Scratch::new(m, n, n, stack);
    for k in (0..steps).step_by(BLOCK_REFLECTORS) {
        let (rows, size) = (m - k, BLOCK_REFLECTORS.min(steps - k));
        let taus = &mut taus[k..k + size];
        let panel = &mut scratch.v[..rows * size];
        transpose(&a[k * n + k..], n, rows, size, panel);
        for j in 0..size {
            let (own, after) = panel[j * rows..].split_at_mut(rows);
            taus[j] = reflector(&mut own[j..]);
            let tail = &own[j + 1..];
            for column in after.chunks_exact_mut(rows) {
                let sum = taus[j].conjugate() * (column[j] + dot(tail, &column[j + 1..]));
                column[j] -= sum;
                subtract(&mut column[j + 1..], sum, tail);
            }
        }
        for i in 0..rows {
            let row = &mut a[(k + i) * n + k..][..size];
            row.iter_mut().enumerate().for_each(|(j, x)| *x = panel[j * rows + i]);
        }
        if k + size < n {
            scratch.finish(rows, taus);
            let rest = matrix(a, m, n).submatrix_mut(k, k + size, rows, n - k - size);
            scratch.apply_left(size, rest, true);
        }
    }
}

/// How many times what roundings make of a column must be in what the columns before it leave of it.
const LEFT: f64 = 4096.0;

/// Whether wider arithmetic would choose the signs of these reflectors, too, and what it computes is near:
/// each column has something of its own, something below its diagonal, and something there to take the sign
/// from. `rounding` are the units that a reflector is off by.
pub(crate) fn is_decided<T: Field>(
    factors: &[T],
    m: usize,
    n: usize,
    taus: &[T],
    rounding: f64,
    stack: &mut MemStack,
) -> bool {
    if !factors.iter().all(|x| x.finite()) {
        return false;
    }
    let real = T::of(num_traits::zero(), num_traits::one()) == T::default();
    let depth = m.min(n);
    let (mut sizes, stack) = stack.make_with(depth, |_| 0.0f64);
    let (mut tails, _) = stack.make_with(depth, |_| 0.0f64);
    for (i, row) in factors.chunks_exact(n.max(1)).enumerate() {
        for (j, x) in row[..depth].iter().enumerate() {
            let (re, im) = (x.re().wide(), x.im().wide());
            let sum = if i <= j { &mut sizes[j] } else { &mut tails[j] };
            *sum += re * re + im * im;
        }
    }
    let rounding = LEFT * rounding * T::Part::epsilon().wide() / 2.0;
    // Squares in range, so that comparisons mean something.
    let fits = |square: f64| (1e-270..1e270).contains(&square);
    (0..depth).all(|k| {
        let steps = k as f64 + 1.0;
        let own = factors[k * n + k].re().wide().abs();
        let apart = own > sizes[k].sqrt() * (rounding * steps * steps.sqrt()).max(MARGIN);
        let (re, im) = (taus[k].re().wide(), taus[k].im().wide());
        let last = real && k + 1 == m && re == 0.0;
        let below = tails[k].sqrt().hypot(im) > MARGIN;
        fits(sizes[k]) && apart && (last || (1.0 - re).abs() > MARGIN && below)
    })
}

/// Replaces a vector by (beta, tail) and gives tau, which is 0 if it is (real, 0, ..., 0) already.
fn reflector<T: Field>(x: &mut [T]) -> T {
    let Some((first, tail)) = x.split_first_mut() else { return T::default() };
    let size = norm(tail);
    if size == 0.0 && first.im() == num_traits::zero() {
        return T::default();
    }
    let (re, im) = (first.re().wide(), first.im().wide());
    let beta = -re.hypot(im).hypot(size).copysign(re);
    let part = <T::Part as Part>::narrow;
    let tau = T::of(part((beta - re) / beta), part(-(im / beta)));
    let bottom = T::of(part(re - beta), part(im));
    if bottom.size() < T::Part::min_positive_value() * part(16.0) {
        // Too small for a reciprocal, or to be exact.
        for x in tail.iter_mut() {
            let (a, b) = (x.re().wide(), x.im().wide());
            let (c, d) = (re - beta, im);
            let q = c * c + d * d;
            *x = T::of(part((a * c + b * d) / q), part((b * c - a * d) / q));
        }
    } else {
        tail.iter_mut().for_each(|x| *x = x.over(bottom));
    }
    *first = T::real(part(beta));
    tau
}

pub(crate) fn form<T: Field>(
    reflectors: &[T],
    m: usize,
    n: usize,
    taus: &[T],
    q: &mut [T],
    stack: &mut MemStack,
) {
    q.fill(T::default());
    for i in 0..m.min(n) {
        q[i * n + i] = T::one();
    }
    let mut scratch = Scratch::new(m, n, n, stack);
    for k in (0..taus.len()).step_by(BLOCK_REFLECTORS).rev() {
        let size = BLOCK_REFLECTORS.min(taus.len() - k);
        scratch.block(&reflectors[k * n + k..], n, m - k, &taus[k..k + size]);
        let rest = matrix(q, m, n).submatrix_mut(k, k, m - k, n - k);
        scratch.apply_left(size, rest, false);
    }
}

pub(crate) fn multiply<T: Field>(
    reflectors: &[T],
    n: usize,
    taus: &[T],
    c: &mut [T],
    (rows, columns): (usize, usize),
    Side { left, adjoint }: Side,
    stack: &mut MemStack,
) {
    let (order, others) = if left { (rows, columns) } else { (columns, rows) };
    let mut scratch = Scratch::new(order, n, others, stack);
    let mut apply = |k: usize| {
        let size = BLOCK_REFLECTORS.min(taus.len() - k);
        scratch.block(&reflectors[k * n + k..], n, order - k, &taus[k..k + size]);
        let c = matrix(c, rows, columns);
        if left {
            scratch.apply_left(size, c.subrows_mut(k, rows - k), adjoint);
        } else {
            scratch.apply_right(size, c.subcols_mut(k, columns - k), adjoint);
        }
    };
    let blocks = (0..taus.len()).step_by(BLOCK_REFLECTORS);
    if left == adjoint { blocks.for_each(&mut apply) } else { blocks.rev().for_each(&mut apply) }
}
