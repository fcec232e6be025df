//! What a matrix product computes with: one [`Algebra`] for each accumulation rule. The blocked loops around
//! it are in [`super::engine`].

mod exact;
mod literal;

pub(super) use exact::{ExactF32, ExactF64};
pub(super) use literal::{RegionComplex, RegionReal, Saturating, Wrapping};

/// Element arithmetic of a blocked matrix product.
///
/// The engine packs operands into panels, in which the `W` words of each of `MR` rows (or `NR` columns) of
/// one `k` lie together, as `W` groups of `MR` words. It calls [`Algebra::step`] for each `MR` x `NR` tile
/// and each block of `k`, in increasing order of `k`; a tile's accumulators live on between blocks. Rows and
/// columns that pad a tile are zeros and ignored.
pub trait Algebra: Sync {
    /// Operand elements; the default is zero.
    type In: Copy + Default + Send + Sync;
    /// What panels are made of.
    type Word: Copy + Default + Send + Sync;
    /// Words for each packed element.
    const W: usize;
    /// Accumulators of a tile.
    type Tile: Copy + Send;
    /// Sums before they are rounded.
    type Sum: Send;
    /// Rows of a tile.
    const MR: usize;
    /// Columns of a tile.
    const NR: usize;
    /// Whether [`Algebra::sum`] uses sums of squares.
    const NORMS: bool;

    /// Accumulators at zero.
    fn zero() -> Self::Tile;

    /// Packs successive terms of row `lane` of a panel.
    fn pack_row(terms: &[Self::In], lane: usize, panel: &mut [Self::Word]);

    /// Packs the columns of one term into successive panels, `panel` words apart.
    fn pack_columns(columns: &[Self::In], words: &mut [Self::Word], panel: usize);

    /// The square of `x` in `f64`, rounded; not finite if `x` is not.
    fn square(x: Self::In) -> f64;

    /// `tile += a * b` over one block of `k`, in order.
    fn step(a: &[Self::Word], b: &[Self::Word], tile: &mut Self::Tile);

    /// The sum at `(i, j)` of a tile, of `k` products of a row and a column with these computed sums of
    /// squares.
    fn sum(tile: &Self::Tile, i: usize, j: usize, k: usize, squares: (f64, f64)) -> Self::Sum;

    /// The sum if its computation was exact because every product is a multiple of 2^`quantum` (`None`: every
    /// product is zero). Asked after [`Algebra::sum`] did not decide.
    fn sum_on_grid(
        _tile: &Self::Tile,
        _at: (usize, usize),
        _quantum: Option<i32>,
        _squares: (f64, f64),
    ) -> Option<Self::Sum> {
        None
    }

    /// The exponent of the lowest set bit of `x`; `None` if it is zero or not finite.
    fn lowest_bit(_x: Self::In) -> Option<i32> {
        None
    }

    /// Whether products with vectors have loops of their own: [`Algebra::line`], [`Algebra::across`].
    const THIN: bool = false;

    /// The sum of products of two lines of one length, not empty.
    fn line(_a: &[Self::In], _b: &[Self::In]) -> Self::Sum {
        unreachable!("invariant: asked for only if THIN")
    }

    /// Adds the products of a line with one number to running sums, and their absolute values.
    fn across(_a: &[Self::In], _b: Self::In, _s: &mut [f64], _abs: &mut [f64]) {
        unreachable!("invariant: asked for only if THIN")
    }

    /// A sum of `k` products by [`Algebra::across`].
    fn across_sum(_s: f64, _abs: f64, _k: usize) -> Self::Sum {
        unreachable!("invariant: asked for only if THIN")
    }

    /// The sum from its terms, in order, closer than [`Algebra::sum`] and far quicker than
    /// [`Algebra::slowly`].
    fn closely(_terms: &[(Self::In, Self::In)]) -> Option<Self::Sum> {
        None
    }

    /// One sum of products on its own, outside of tiles.
    type Acc: Copy;

    /// The empty sum.
    fn empty() -> Self::Acc;

    /// `acc + a * b`.
    fn add(acc: Self::Acc, a: Self::In, b: Self::In) -> Self::Acc;

    /// A sum of `k` products.
    fn finish(acc: Self::Acc, k: usize) -> Self::Sum;

    /// The sum from its terms, in order; it decides every rounding.
    fn slowly(terms: impl Iterator<Item = (Self::In, Self::In)>) -> Self::Sum {
        Self::finish(terms.fold(Self::empty(), |acc, (a, b)| Self::add(acc, a, b)), 0)
    }
}

/// `tile[i][j] = mac(tile[i][j], a[i], b[j])` for each `k`.
#[inline(always)]
fn plain_step<W: Copy, T: Copy, const M: usize, const N: usize>(
    a: &[W],
    b: &[W],
    tile: &mut [[T; N]; M],
    mac: impl Fn(T, W, W) -> T,
) {
    let mut acc = *tile;
    for (a, b) in a.as_chunks::<M>().0.iter().zip(b.as_chunks::<N>().0) {
        for i in 0..M {
            for j in 0..N {
                acc[i][j] = mac(acc[i][j], a[i], b[j]);
            }
        }
    }
    *tile = acc;
}

/// [`Algebra::pack_row`] for `M` rows of one word.
#[inline(always)]
fn pack_row<T: Copy, W, const M: usize>(terms: &[T], lane: usize, panel: &mut [W], word: impl Fn(T) -> W) {
    for (words, &x) in panel.as_chunks_mut::<M>().0.iter_mut().zip(terms) {
        words[lane] = word(x);
    }
}

/// [`Algebra::pack_columns`] for `N` columns of one word.
#[inline(always)]
fn pack_columns<T: Copy, W, const N: usize>(
    columns: &[T],
    words: &mut [W],
    panel: usize,
    word: impl Fn(T) -> W,
) {
    let (chunks, rest) = columns.as_chunks::<N>();
    let mut panels = words.chunks_mut(panel);
    for (chunk, words) in chunks.iter().zip(&mut panels) {
        for (to, &from) in words[..N].iter_mut().zip(chunk) {
            *to = word(from);
        }
    }
    if let Some(words) = panels.next() {
        for (to, &from) in words.iter_mut().zip(rest) {
            *to = word(from);
        }
    }
}
