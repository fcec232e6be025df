//! Sums of products taken literally, term by term: the region mode of floats, and integers.

use std::marker::PhantomData;

use num_complex::Complex;
use num_traits::{WrappingAdd, WrappingMul};

use super::{Algebra, pack_columns, pack_row, plain_step};
use crate::kernels::{Integer, Real};
use crate::sum::fast::Total;

/// `acc = fl(acc + fl(a b))` from +0 in the operands' type.
pub(in crate::kernels) struct RegionReal<T>(PhantomData<T>);

impl<T: Real> Algebra for RegionReal<T> {
    type In = T;
    type Word = T;
    const W: usize = 1;
    type Tile = [[T; 8]; 4];
    type Sum = Total;
    const MR: usize = 4;
    const NR: usize = 8;
    const NORMS: bool = false;

    fn zero() -> Self::Tile {
        [[T::default(); 8]; 4]
    }

    #[inline(always)]
    fn pack_row(terms: &[T], lane: usize, panel: &mut [T]) {
        pack_row::<_, _, 4>(terms, lane, panel, |x| x);
    }

    #[inline(always)]
    fn pack_columns(columns: &[T], words: &mut [T], panel: usize) {
        pack_columns::<_, _, 8>(columns, words, panel, |x| x);
    }

    #[inline(always)]
    fn square(x: T) -> f64 {
        x.widen() * x.widen()
    }

    #[inline]
    fn step(a: &[T], b: &[T], tile: &mut Self::Tile) {
        plain_step(a, b, tile, |acc, a, b| acc + a * b);
    }

    #[inline]
    fn sum(tile: &Self::Tile, i: usize, j: usize, _k: usize, _squares: (f64, f64)) -> Self::Sum {
        Total::of(tile[i][j].widen())
    }

    type Acc = T;

    #[inline(always)]
    fn empty() -> T {
        T::default()
    }

    #[inline(always)]
    fn add(acc: T, a: T, b: T) -> T {
        acc + a * b
    }

    #[inline]
    fn finish(acc: T, _k: usize) -> Self::Sum {
        Total::of(acc.widen())
    }
}

/// The same for complex numbers: `a b` is `(fl(fl(ar br) - fl(ai bi)), fl(fl(ar bi) + fl(ai br)))`.
pub(in crate::kernels) struct RegionComplex<T>(PhantomData<T>);

#[inline(always)]
fn complex_mac<T: Real>(acc: Complex<T>, a: Complex<T>, b: Complex<T>) -> Complex<T> {
    let re = a.re * b.re - a.im * b.im;
    let im = a.re * b.im + a.im * b.re;
    Complex { re: acc.re + re, im: acc.im + im }
}

fn totals<T: Real>(x: Complex<T>) -> Complex<Total> {
    Complex { re: Total::of(x.re.widen()), im: Total::of(x.im.widen()) }
}

impl<T: Real> Algebra for RegionComplex<T> {
    type In = Complex<T>;
    type Word = Complex<T>;
    const W: usize = 1;
    type Tile = [[Complex<T>; 2]; 2];
    type Sum = Complex<Total>;
    const MR: usize = 2;
    const NR: usize = 2;
    const NORMS: bool = false;

    fn zero() -> Self::Tile {
        Self::Tile::default()
    }

    #[inline(always)]
    fn pack_row(terms: &[Complex<T>], lane: usize, panel: &mut [Complex<T>]) {
        pack_row::<_, _, 2>(terms, lane, panel, |x| x);
    }

    #[inline(always)]
    fn pack_columns(columns: &[Complex<T>], words: &mut [Complex<T>], panel: usize) {
        pack_columns::<_, _, 2>(columns, words, panel, |x| x);
    }

    #[inline(always)]
    fn square(x: Complex<T>) -> f64 {
        x.re.widen() * x.re.widen() + x.im.widen() * x.im.widen()
    }

    #[inline]
    fn step(a: &[Complex<T>], b: &[Complex<T>], tile: &mut Self::Tile) {
        plain_step(a, b, tile, complex_mac);
    }

    #[inline]
    fn sum(tile: &Self::Tile, i: usize, j: usize, _k: usize, _squares: (f64, f64)) -> Self::Sum {
        totals(tile[i][j])
    }

    type Acc = Complex<T>;

    #[inline(always)]
    fn empty() -> Complex<T> {
        Complex::default()
    }

    #[inline(always)]
    fn add(acc: Complex<T>, a: Complex<T>, b: Complex<T>) -> Complex<T> {
        complex_mac(acc, a, b)
    }

    #[inline]
    fn finish(acc: Complex<T>, _k: usize) -> Self::Sum {
        totals(acc)
    }
}

/// Integers modulo 2^width.
pub(in crate::kernels) struct Wrapping<T>(PhantomData<T>);

impl<T: Integer> Algebra for Wrapping<T> {
    type In = T;
    type Word = T;
    const W: usize = 1;
    type Tile = [[T; 8]; 4];
    type Sum = T;
    const MR: usize = 4;
    const NR: usize = 8;
    const NORMS: bool = false;

    fn zero() -> Self::Tile {
        Self::Tile::default()
    }

    #[inline(always)]
    fn pack_row(terms: &[T], lane: usize, panel: &mut [T]) {
        pack_row::<_, _, 4>(terms, lane, panel, |x| x);
    }

    #[inline(always)]
    fn pack_columns(columns: &[T], words: &mut [T], panel: usize) {
        pack_columns::<_, _, 8>(columns, words, panel, |x| x);
    }

    #[inline(always)]
    fn square(_x: T) -> f64 {
        0.0
    }

    #[inline]
    fn step(a: &[T], b: &[T], tile: &mut Self::Tile) {
        plain_step(a, b, tile, |acc: T, a, b| acc.wrapping_add(&a.wrapping_mul(&b)));
    }

    #[inline]
    fn sum(tile: &Self::Tile, i: usize, j: usize, _k: usize, _squares: (f64, f64)) -> Self::Sum {
        tile[i][j]
    }

    type Acc = T;

    #[inline(always)]
    fn empty() -> T {
        T::default()
    }

    #[inline(always)]
    fn add(acc: T, a: T, b: T) -> T {
        acc.wrapping_add(&a.wrapping_mul(&b))
    }

    #[inline]
    fn finish(acc: T, _k: usize) -> Self::Sum {
        acc
    }
}

/// Integers accumulated in 64 bits (which wrap) and saturated to the result type at the end: convolution.
pub(in crate::kernels) struct Saturating<T>(PhantomData<T>);

impl<T: Integer> Algebra for Saturating<T> {
    type In = T;
    type Word = T::Wide;
    const W: usize = 1;
    type Tile = [[T::Wide; 4]; 4];
    type Sum = T;
    const MR: usize = 4;
    const NR: usize = 4;
    const NORMS: bool = false;

    fn zero() -> Self::Tile {
        Self::Tile::default()
    }

    #[inline(always)]
    fn pack_row(terms: &[T], lane: usize, panel: &mut [T::Wide]) {
        pack_row::<_, _, 4>(terms, lane, panel, T::wide);
    }

    #[inline(always)]
    fn pack_columns(columns: &[T], words: &mut [T::Wide], panel: usize) {
        pack_columns::<_, _, 4>(columns, words, panel, T::wide);
    }

    #[inline(always)]
    fn square(_x: T) -> f64 {
        0.0
    }

    #[inline]
    fn step(a: &[T::Wide], b: &[T::Wide], tile: &mut Self::Tile) {
        plain_step(a, b, tile, |acc: T::Wide, a, b| acc.wrapping_add(&a.wrapping_mul(&b)));
    }

    #[inline]
    fn sum(tile: &Self::Tile, i: usize, j: usize, _k: usize, _squares: (f64, f64)) -> Self::Sum {
        T::saturate(tile[i][j])
    }

    type Acc = T::Wide;

    #[inline(always)]
    fn empty() -> T::Wide {
        T::Wide::default()
    }

    #[inline(always)]
    fn add(acc: T::Wide, a: T, b: T) -> T::Wide {
        acc.wrapping_add(&a.wide().wrapping_mul(&b.wide()))
    }

    #[inline]
    fn finish(acc: T::Wide, _k: usize) -> Self::Sum {
        T::saturate(acc)
    }
}
