//! Register tiles: a few rows by a few vectors of columns of a product, summed over a run of terms.
//!
//! [`Arithmetic`] names the ways to sum; [`Tiles`] is the fastest implementation of one that this machine
//! has. **Invariant:** a tile reads no word and writes no sum outside of its rows and columns, except that
//! packed operands are read in whole vectors.

use hlo::num_complex::Complex;

use super::step::{self, Step};
#[cfg(target_arch = "x86_64")]
use hlo_library_base::isa::Features;
use hlo_library_base::memory::{prefetch, prefetch_far};

/// What a register tile is told.
#[derive(Clone, Copy)]
pub(crate) struct Tile<W, S> {
    /// The word of the first row and term of the left operand.
    pub(crate) a: *const W,
    /// Distance of its rows, in words; 1 is fastest.
    pub(crate) a_row: isize,
    /// Distance of its terms.
    pub(crate) a_term: isize,
    /// The word of the first term and column of the right operand. Columns are contiguous.
    pub(crate) b: *const W,
    /// Distance of its terms.
    pub(crate) b_term: isize,
    /// Number of terms (words).
    pub(crate) terms: usize,
    /// Rows; any number.
    pub(crate) rows: usize,
    /// Columns, at most [`Tiles::columns`] unless `along`.
    pub(crate) columns: usize,
    /// The first sum. Columns are contiguous.
    pub(crate) c: *mut S,
    /// Distance of its rows.
    pub(crate) c_row: isize,
    /// Whether to add to what is there.
    pub(crate) accumulate: bool,
    /// What the sums of each row begin with, if not zero. Not for tiles that accumulate.
    pub(crate) start: *const S,
    /// Whether the right operand is read in place: the stride of its terms may be large.
    pub(crate) far: bool,
    /// Whether it is read along its rows, a few terms at a time and any number of columns: sequential access,
    /// which is fastest for an operand in memory.
    pub(crate) along: bool,
    /// Where the words of the right operand are packed as they are read, for tiles of the rows below; null:
    /// nowhere. Only of [`Tiles::copies`] and at most [`Tiles::rows`].
    pub(crate) copy: *mut W,
    /// What is prefetched during this tile, because it is read next: the address, and the bytes that each
    /// term of a block of rows advances by. A block continues where the previous one ended.
    pub(crate) next: *const u8,
    pub(crate) next_step: usize,
}

/// A way to sum products: what words and sums are.
pub(crate) trait Arithmetic: Copy + Send + Sync + 'static {
    /// What operands are packed as.
    type Word: Copy + Default + Send + Sync + 'static;
    /// What is summed.
    type Sum: Copy + Default + Send + Sync + 'static;
    /// The best implementation here.
    fn tiles() -> &'static Tiles<Self>;
}

/// An implementation of register tiles.
pub(crate) struct Tiles<A: Arithmetic> {
    /// Computes a tile, whatever its rows.
    pub(crate) run: unsafe fn(&Tile<A::Word, A::Sum>),
    /// The most rows that are computed at once: panels of the left operand have as many.
    pub(crate) rows: usize,
    /// The most columns: panels of the right operand have as many.
    pub(crate) columns: usize,
    /// Whether a tile packs words of the right operand as it reads them, if it is told to.
    pub(crate) copies: bool,
}

/// Adds all terms to the sums of [`block`]. `WHOLE`: the last vector of columns is loaded as a whole one. `C`:
/// words of the right operand are packed.
#[inline(always)]
unsafe fn add_terms<
    S: Step,
    const R: usize,
    const V: usize,
    const P: bool,
    const WHOLE: bool,
    const C: bool,
>(
    t: &Tile<S::Word, S::Sum>,
    sums: &mut [[S::C; V]; R],
) {
    // SAFETY: the caller's.
    unsafe {
        let (mut a, mut b, mut next, mut copy) = (t.a, t.b, t.next, t.copy);
        for _ in 0..t.terms / S::UNROLLED {
            for _ in 0..S::UNROLLED {
                add_term::<S, R, V, P, WHOLE, C>(t, a, b, next, copy, sums);
                (a, b, next) = (a.offset(t.a_term), b.offset(t.b_term), next.wrapping_add(t.next_step));
                copy = copy.wrapping_add(2 * S::N);
            }
        }
        for _ in 0..t.terms % S::UNROLLED {
            add_term::<S, R, V, P, WHOLE, C>(t, a, b, next, copy, sums);
            (a, b, next) = (a.offset(t.a_term), b.offset(t.b_term), next.wrapping_add(t.next_step));
            copy = copy.wrapping_add(2 * S::N);
        }
    }
}

/// Adds the term at `a` and `b`, packs it at `copy`, and asks for what is read next.
#[inline(always)]
unsafe fn add_term<
    S: Step,
    const R: usize,
    const V: usize,
    const P: bool,
    const WHOLE: bool,
    const C: bool,
>(
    t: &Tile<S::Word, S::Sum>,
    a: *const S::Word,
    b: *const S::Word,
    next: *const u8,
    copy: *mut S::Word,
    sums: &mut [[S::C; V]; R],
) {
    // SAFETY: the caller's.
    unsafe {
        let last = t.columns - (V - 1) * S::N;
        if t.far {
            // The right operand may be far away, too, and rows of it far apart.
            let ahead = b.wrapping_offset(t.b_term * (96 / (R * V)).max(6) as isize);
            for v in 0..V {
                prefetch(ahead.wrapping_add(v * S::N).cast());
            }
        } else {
            // A tile of one block of rows advances by a line of a panel with each term.
            prefetch_far(next);
            if 2 * S::N * size_of::<S::Word>() > CACHE_LINE_BYTES {
                prefetch_far(next.wrapping_add(t.next_step / 2));
            }
        }
        let from = b.add((V - 1) * S::N);
        let mut words = [if WHOLE { S::load(from) } else { S::load_part(from, last) }; V];
        for v in 0..V - 1 {
            words[v] = S::load(b.add(v * S::N));
        }
        if C {
            const { assert!(!C || size_of::<S::B>() == S::N * size_of::<S::Word>()) };
            for v in 0..V {
                copy.add(v * S::N).cast::<S::B>().write_unaligned(words[v]);
            }
        }
        for r in 0..R {
            let x = S::splat(*if P { a.add(r) } else { a.offset(r as isize * t.a_row) });
            for v in 0..V {
                sums[r][v] = S::madd(x, words[v], sums[r][v]);
            }
        }
    }
}

const CACHE_LINE_BYTES: usize = 64;

/// Sums `R` rows by `V` vectors. `P`: the rows of the left operand are contiguous. `C`: words of the right
/// operand are packed.
#[inline(always)]
unsafe fn block<S: Step, const R: usize, const V: usize, const P: bool, const C: bool>(
    t: &Tile<S::Word, S::Sum>,
) {
    // SAFETY: the caller's: the tile's pointers are valid for `R` rows, its terms, and more than `V - 1`
    // vectors of columns.
    unsafe {
        let last = t.columns - (V - 1) * S::N;
        let mut sums = [[S::zero(); V]; R];
        if !t.start.is_null() {
            for r in 0..R {
                sums[r] = [S::all(*t.start.add(r)); V];
            }
        }
        // Terms are added to sums one after the other, however many of them a tile has at a time.
        let mut add = t.accumulate;
        if t.accumulate {
            for r in 0..R {
                let c = t.c.offset(r as isize * t.c_row);
                for v in 0..V {
                    let n = if v + 1 == V { last } else { S::N };
                    if let Some(sum) = S::go_on(c.add(v * S::N), n) {
                        (sums[r][v], add) = (sum, false);
                    }
                }
            }
        }
        if !t.far {
            // Sums so far have left the cache since the last block of terms.
            for r in 0..R {
                let c = t.c.wrapping_offset(r as isize * t.c_row);
                for v in 0..V {
                    prefetch(c.wrapping_add(v * S::N).cast());
                }
            }
        }
        // Packed operands are read in whole vectors.
        if S::MASKED || last < S::N && t.far {
            add_terms::<S, R, V, P, false, C>(t, &mut sums);
        } else {
            add_terms::<S, R, V, P, true, C>(t, &mut sums);
        }
        for r in 0..R {
            let c = t.c.offset(r as isize * t.c_row);
            for v in 0..V {
                let n = if v + 1 == V { last } else { S::N };
                S::store(sums[r][v], c.add(v * S::N), n, add);
            }
        }
    }
}

/// The most rows of a tile whose right operand is read along its rows.
pub(crate) const MAX_ALONG_ROWS: usize = 24;

/// Terms that are read as parallel streams: as many as the hardware prefetchers track, and as the first-level
/// cache has ways, since lines of different streams may fall into one set.
const STREAMS: usize = 8;

/// Software prefetch: tiles of at most this many rows are bound by memory, and hardware prefetchers have to
/// recognize the streams again with each group of [`STREAMS`] terms.
const MAX_PREFETCHED_ROWS: usize = 12;

/// The prefetch distance, in groups of [`STREAMS`] terms.
const GROUPS_AHEAD: usize = 2;

/// Sums any number of columns, a few terms at a time, reading rows of the right operand sequentially: each
/// load of the innermost loop belongs to one row, which hardware prefetchers follow as a stream.
#[inline(always)]
unsafe fn along<S: Step>(t: &Tile<S::Word, S::Sum>) {
    // SAFETY: the caller's: the tile's pointers are valid for its rows, terms and columns.
    unsafe {
        let fetched = t.rows <= MAX_PREFETCHED_ROWS;
        let mut some = [[S::Word::default(); STREAMS]; MAX_ALONG_ROWS];
        for first in (0..t.terms).step_by(STREAMS) {
            let (terms, accumulate) = (STREAMS.min(t.terms - first), t.accumulate || first > 0);
            let a = t.a.offset(first as isize * t.a_term);
            let b = t.b.offset(first as isize * t.b_term);
            for (row, all) in (0..t.rows as isize).zip(&mut some) {
                for (term, word) in (0..terms as isize).zip(all) {
                    *word = *a.offset(row * t.a_row + term * t.a_term);
                }
            }
            for column in (0..t.columns).step_by(S::N) {
                let n = S::N.min(t.columns - column);
                let b = b.add(column);
                let load = |term: usize| {
                    let from = b.offset(term as isize * t.b_term);
                    if n == S::N { S::load(from) } else { S::load_part(from, n) }
                };
                let mut words = [load(0); STREAMS];
                if fetched && first + (1 + GROUPS_AHEAD) * STREAMS <= t.terms {
                    for term in 0..STREAMS {
                        prefetch_far(b.offset((GROUPS_AHEAD * STREAMS + term) as isize * t.b_term).cast());
                    }
                }
                if terms == STREAMS {
                    for term in 1..STREAMS {
                        words[term] = load(term);
                    }
                } else {
                    for term in 1..terms {
                        words[term] = load(term);
                    }
                }
                for (row, all) in some.iter().enumerate().take(t.rows) {
                    let c = t.c.offset(row as isize * t.c_row).add(column);
                    let so_far = if accumulate { S::go_on(c, n) } else { None };
                    let mut sum = so_far.unwrap_or(S::zero());
                    if terms == STREAMS {
                        for term in 0..STREAMS {
                            sum = S::madd(S::splat(all[term]), words[term], sum);
                        }
                    } else {
                        for term in 0..terms {
                            sum = S::madd(S::splat(all[term]), words[term], sum);
                        }
                    }
                    S::store(sum, c, n, accumulate && so_far.is_none());
                }
            }
        }
    }
}

/// The same tile without its first `rows`, which have asked for their share of what is next.
#[inline(always)]
unsafe fn below<W: Copy, S: Copy>(t: &Tile<W, S>, rows: usize) -> Tile<W, S> {
    // SAFETY: the caller's: the tile has more rows.
    unsafe {
        Tile {
            a: t.a.offset(rows as isize * t.a_row),
            c: t.c.offset(rows as isize * t.c_row),
            start: if t.start.is_null() { t.start } else { t.start.add(rows) },
            rows: t.rows - rows,
            next: t.next.wrapping_add(t.terms * t.next_step),
            ..*t
        }
    }
}

/// Computes a tile of a number of rows and vectors of columns that it was made for.
type Block<W, S> = unsafe fn(&Tile<W, S>);

/// Makes a function over tiles of any number of rows, for vectors of a [`Step`]: as many rows at once as the
/// list says, which goes from 1 to the most. Each block is a function of its own, so that a short one does
/// not pay for what a long one holds in registers. Before the list: whether there are blocks that pack words
/// of the right operand.
macro_rules! tiles {
    ($($(#[$meta:meta])* $name:ident: $step:ty, $most:literal, $copies:literal, [$($rows:literal),*];)*) => {$(
        unsafe fn $name(t: &Tile<<$step as Step>::Word, <$step as Step>::Sum>) {
            $(#[$meta])*
            unsafe fn one<const R: usize, const V: usize, const P: bool, const C: bool>(t: &Tile<<$step as Step>::Word, <$step as Step>::Sum>) {
                // SAFETY: the caller's.
                unsafe { block::<$step, R, V, P, C>(t) }
            }
            $(#[$meta])*
            unsafe fn from_memory(t: &Tile<<$step as Step>::Word, <$step as Step>::Sum>) {
                // SAFETY: the caller's.
                unsafe { along::<$step>(t) }
            }
            /// By rows, whether there are two vectors, and whether rows of the left operand are contiguous.
            const BLOCKS: [[Block<<$step as Step>::Word, <$step as Step>::Sum>; 4]; $most] =
                [$([one::<$rows, 1, false, false>, one::<$rows, 1, true, false>, one::<$rows, 2, false, false>, one::<$rows, 2, true, false>]),*];
            /// The same, packing words of the right operand.
            const COPIES: [[Block<<$step as Step>::Word, <$step as Step>::Sum>; 4]; $most] =
                [$([one::<$rows, 1, false, $copies>, one::<$rows, 1, true, $copies>, one::<$rows, 2, false, $copies>, one::<$rows, 2, true, $copies>]),*];
            // SAFETY: the caller's, of the whole tile and so of each part.
            unsafe {
                if t.along {
                    return from_memory(t);
                }
                let which = usize::from(t.columns > <$step>::N) * 2 + usize::from(t.a_row == 1);
                if t.rows <= $most {
                    if t.rows > 0 {
                        let blocks = if t.copy.is_null() { &BLOCKS } else { &COPIES };
                        blocks[t.rows - 1][which](t);
                    }
                    return;
                }
                // Blocks of about the same height.
                let mut t = *t;
                let mut blocks = t.rows.div_ceil($most);
                while blocks > 0 {
                    let rows = t.rows.div_ceil(blocks);
                    BLOCKS[rows - 1][which](&Tile { rows, ..t });
                    t = below(&t, rows);
                    blocks -= 1;
                }
            }
        }
    )*};
}

// Twelve vectors of sums, two of the right operand and one of the left one are fifteen of sixteen registers.
#[cfg(target_arch = "x86_64")]
tiles! {
    #[target_feature(enable = "avx2,fma")]
    narrow_f32: step::Avx2F32, 6, true, [1, 2, 3, 4, 5, 6];
    #[target_feature(enable = "avx2,fma")]
    narrow_f64: step::Avx2F64, 6, true, [1, 2, 3, 4, 5, 6];
}

tiles! {
    plain_f32: step::PlainF32, 4, false, [1, 2, 3, 4];
    plain_f64: step::PlainF64, 4, false, [1, 2, 3, 4];
    plain_i32: step::PlainI32, 4, false, [1, 2, 3, 4];
    plain_i64: step::PlainI64, 4, false, [1, 2, 3, 4];
    plain_c64: step::PlainC64, 4, false, [1, 2, 3, 4];
    plain_c128: step::PlainC128, 4, false, [1, 2, 3, 4];
}

#[cfg(target_arch = "x86_64")]
tiles! {
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    wide_f32: step::WideF32, 12, false, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    wide_f64: step::WideF64, 12, false, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    wide_i32: step::WideI32, 8, false, [1, 2, 3, 4, 5, 6, 7, 8];
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    wide_i64: step::WideI64, 8, false, [1, 2, 3, 4, 5, 6, 7, 8];
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    wide_c64: step::WideC64, 6, false, [1, 2, 3, 4, 5, 6];
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    wide_c128: step::WideC128, 6, false, [1, 2, 3, 4, 5, 6];
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512bf16")]
    pair_bf16: step::PairBf16, 12, false, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")]
    pair_i16: step::PairI16, 12, false, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")]
    bytes_us: step::BytesUS, 12, false, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")]
    bytes_su: step::BytesSU, 12, false, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
}

/// Declares an arithmetic of one element a word, with its plain and its AVX-512 implementation, and that by AVX2
/// where it has one of its own.
macro_rules! arithmetics {
    ($($(#[$doc:meta])* $name:ident $word:ty: $plain:ident [$prows:literal, $pcolumns:literal], $wide:ident [$wrows:literal, $wcolumns:literal] $(, by AVX2 $narrow:ident [$nrows:literal, $ncolumns:literal])?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(in crate) struct $name;

        impl Arithmetic for $name {
            type Word = $word;
            type Sum = $word;

            fn tiles() -> &'static Tiles<Self> {
                static PLAIN: Tiles<$name> = Tiles { run: $plain, rows: $prows, columns: $pcolumns, copies: false };
                #[cfg(target_arch = "x86_64")]
                {
                    static WIDE: Tiles<$name> = Tiles { run: $wide, rows: $wrows, columns: $wcolumns, copies: false };
                    if Features::here().avx512 {
                        return &WIDE;
                    }
                    $(
                        static NARROW: Tiles<$name> = Tiles { run: $narrow, rows: $nrows, columns: $ncolumns, copies: true };
                        if Features::here().avx2 {
                            return &NARROW;
                        }
                    )?
                }
                &PLAIN
            }
        }
    )*};
}

arithmetics! {
    /// Floats of at most 32 bits, summed in `f32`.
    F32 f32: plain_f32 [4, 16], wide_f32 [12, 32], by AVX2 narrow_f32 [6, 16];
    /// `f64`.
    F64 f64: plain_f64 [4, 8], wide_f64 [12, 16], by AVX2 narrow_f64 [6, 8];
    /// Integers modulo 2^32.
    I32 i32: plain_i32 [4, 16], wide_i32 [8, 32];
    /// Integers modulo 2^64.
    I64 i64: plain_i64 [4, 8], wide_i64 [8, 16];
    /// `c64`.
    C64 Complex<f32>: plain_c64 [4, 8], wide_c64 [6, 16];
    /// `c128`.
    C128 Complex<f64>: plain_c128 [4, 4], wide_c128 [6, 8];
}

/// Declares an arithmetic of several terms a word, for machines that have the instruction.
#[cfg(target_arch = "x86_64")]
macro_rules! grouped {
    ($($(#[$doc:meta])* $name:ident => $sum:ty: $run:ident [$rows:literal, $columns:literal];)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(in crate) struct $name;

        impl Arithmetic for $name {
            type Word = u32;
            type Sum = $sum;

            fn tiles() -> &'static Tiles<Self> {
                static TILES: Tiles<$name> = Tiles { run: $run, rows: $rows, columns: $columns, copies: false };
                &TILES
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
grouped! {
    /// Pairs of `bf16`, summed in `f32`. Only for operands whose products and sums cannot be subnormal.
    Bf16 => f32: pair_bf16 [12, 32];
    /// Pairs of 16-bit integers modulo 2^32.
    I16 => i32: pair_i16 [12, 32];
    /// Four unsigned bytes by four signed ones, modulo 2^32.
    BytesUS => i32: bytes_us [12, 32];
    /// Four signed bytes by four unsigned ones, modulo 2^32.
    BytesSU => i32: bytes_su [12, 32];
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use hlo_library_base::configuration::Configuration;
    use hlo_library_base::isa::Isa;

    use super::{Arithmetic, F32, F64, Tile};
    use crate::dot::step::Number;
    use crate::dot::tests::Random;

    /// Tiles of every height and width, with vectors of either length: each sum is one chain of multiply-adds
    /// that goes on from what is there or from the row's start, and nothing beside it is read or written.
    #[test]
    fn sums_are_chains_in_tiles_of_any_size() {
        for isa in [Isa::Avx2, Isa::Avx512] {
            Configuration::new(Some(isa), None, NonZeroU32::MIN).with(|| {
                all_sizes::<F32, f32>(|x| x as f32);
                all_sizes::<F64, f64>(|x| x);
            });
        }
    }

    fn all_sizes<A: Arithmetic<Word = S, Sum = S>, S: Number + PartialEq + std::fmt::Debug>(
        of: impl Fn(f64) -> S,
    ) {
        let tiles = A::tiles();
        let mut r = Random(12);
        let mut numbers =
            |n: usize| -> Vec<S> { (0..n).map(|_| of(r.below(1 << 20) as f64 / 3e5 - 1.7)).collect() };
        for rows in 1..=13 {
            for columns in 1..=tiles.columns {
                for (terms, far, accumulate, a_contiguous) in [
                    (1, false, false, true),
                    (4, true, true, true),
                    (7, false, true, false),
                    (9, true, false, false),
                ] {
                    // What is packed is in whole panels, what is not ends with its last column.
                    let b_term = if far { columns } else { tiles.columns };
                    let (a, b) = (numbers(rows * terms), numbers(b_term * terms));
                    let before = numbers(rows * columns);
                    let start = numbers(rows);
                    let started = !accumulate && rows % 2 == 0;
                    let mut c = before.clone();
                    let (a_row, a_term) = if a_contiguous { (1, rows) } else { (terms, 1) };
                    let tile = Tile {
                        a: a.as_ptr(),
                        a_row: a_row as isize,
                        a_term: a_term as isize,
                        b: b.as_ptr(),
                        b_term: b_term as isize,
                        terms,
                        rows,
                        columns,
                        c: c.as_mut_ptr(),
                        c_row: columns as isize,
                        accumulate,
                        start: if started { start.as_ptr() } else { std::ptr::null() },
                        far,
                        along: false,
                        copy: std::ptr::null_mut(),
                        next: b.as_ptr().cast(),
                        next_step: 0,
                    };
                    // SAFETY: operands and sums are as large as the tile says.
                    unsafe { (tiles.run)(&tile) };
                    if tiles.copies && rows <= tiles.rows {
                        let (mut same, mut packed) = (before.clone(), numbers(tiles.columns * terms));
                        let tile = Tile { c: same.as_mut_ptr(), copy: packed.as_mut_ptr(), ..tile };
                        // SAFETY: as above, and there is space for all words of a panel.
                        unsafe { (tiles.run)(&tile) };
                        assert_eq!(same, c, "{rows} x {columns} x {terms}, packed");
                        for (from, to) in b.chunks(b_term).zip(packed.chunks(tiles.columns)) {
                            assert_eq!(from[..columns], to[..columns], "{rows} x {columns} x {terms}");
                        }
                    }
                    for (i, &sum) in c.iter().enumerate() {
                        let (row, column) = (i / columns, i % columns);
                        let first = match (accumulate, started) {
                            (true, _) => before[i],
                            (false, true) => start[row],
                            (false, false) => S::default(),
                        };
                        let chain = (0..terms).fold(first, |sum, t| {
                            sum.plus_product(a[row * a_row + t * a_term], b[t * b_term + column])
                        });
                        assert_eq!(sum, chain, "{rows} x {columns} x {terms}, element {i}");
                    }
                }
            }
        }
    }
}
