//! A register tile of sums: rows that are numbers of one operand, columns that are vectors of the other, over
//! runs of terms that both operands have somewhere.

use hlo_library_base::isa::Features;
use hlo_library_base::memory::{prefetch, prefetch_far};

use crate::dot::step::{Avx2F32, Step};

/// The most rows and columns of a register tile.
pub(super) const MAX_ROWS: usize = 12;
pub(super) const MAX_COLUMNS: usize = 32;

/// Elements of the widest vector.
pub(super) const WIDTH: usize = 16;

/// The size of register tiles. No bit of a sum depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TileSize {
    pub(super) rows: usize,
    /// Columns of two vectors.
    pub(super) columns: usize,
}

impl TileSize {
    /// Of the tiles of this machine.
    pub(super) fn here() -> TileSize {
        if Features::here().avx512 {
            TileSize { rows: MAX_ROWS, columns: MAX_COLUMNS }
        } else {
            TileSize { rows: 6, columns: 2 * Avx2F32::N }
        }
    }

    /// The most columns of a tile of so few rows, which are adjacent; `None`: it has too many rows.
    pub(super) fn columns_of_few_rows(self, rows: usize) -> Option<usize> {
        let vectors = match (self.rows, rows) {
            (_, 0) => return None,
            (MAX_ROWS, 1..=4) | (_, 1..=3) => 4,
            (most, _) if rows <= most => 2,
            (_, _) => return None,
        };
        Some(self.columns / 2 * vectors)
    }

    /// Divides `n` rows into tiles that are about equal: the first row of each, and how many.
    pub(super) fn tiles(self, n: usize) -> impl Iterator<Item = (usize, usize)> {
        let count = n.div_ceil(self.rows);
        (0..count).map(move |i| (n * i / count, n * (i + 1) / count - n * i / count))
    }
}

/// Terms that are one after the other in both operands.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) a: *const f32,
    pub(super) b: *const f32,
    pub(super) terms: usize,
}

/// A register tile: rows by columns, summed over segments.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub(super) segments: &'a [Segment],
    /// What is added to where segments are, in `a` and in `b`.
    pub(super) at: [isize; 2],
    /// Distances of rows and terms in `a`, of terms in `b`.
    pub(super) a_row: isize,
    pub(super) a_term: isize,
    pub(super) b_term: isize,
    pub(super) c: *mut f32,
    pub(super) c_row: isize,
    /// Rows and columns: at most those of the size; more columns of few adjacent rows.
    pub(super) size: TileSize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Whether to add to what is there.
    pub(super) add: bool,
    /// The prefetch distance of `b`, in elements; 0: it is in a near cache. Only tiles that multiplications
    /// bound prefetch ([`ROWS_OF_FEW_LOADS`]).
    pub(super) ahead: usize,
    /// What is prefetched for the tiles after it.
    pub(super) next: Next,
}

/// What is read after a tile, and prefetched by it while it sums, if its rows are not adjacent (tiles of AVX2:
/// only the rows). Addresses need not be valid.
#[derive(Clone, Copy)]
pub(super) struct Next {
    /// Where the rows of the next tile are in `a`, in elements from those of this one; 0: in a near cache.
    pub(super) rows: isize,
    /// The next of `b`, and how many cache lines of it are fetched for every [`LINE_TERMS`] terms.
    pub(super) panel: *const f32,
    pub(super) panel_lines: usize,
}

impl Next {
    /// Nothing.
    pub(super) const NONE: Next = Next { rows: 0, panel: std::ptr::null(), panel_lines: 0 };
}

/// Terms of a row of `a` in a cache line.
pub(super) const LINE_TERMS: usize = 16;

/// Rows from which a tile of two vectors is bound by multiplications, not by loads.
const ROWS_OF_FEW_LOADS: usize = 4;

/// Prefetches [`LINE_TERMS`] terms of the rows of the next tile, where this one is at `a`. A prefetch never
/// faults: an address beyond the operand is harmless.
#[inline(always)]
fn fetch_rows<const R: usize>(t: &Tile<'_>, a: *const f32) {
    for r in 0..R {
        prefetch_far(a.wrapping_offset(t.next.rows + r as isize * t.a_row).cast());
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn tile<const R: usize, const V: usize, const CONTIGUOUS: bool>(t: &Tile<'_>) {
    use std::arch::x86_64::*;
    let last = (1u32 << (t.columns - (V - 1) * WIDTH)) - 1;
    let mask = |v: usize| if v + 1 == V { last as __mmask16 } else { __mmask16::MAX };
    // SAFETY: the caller says that rows, columns and segments are there; columns beyond are masked.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); V]; R];
        // Rows of the result may be far apart.
        for r in 0..R {
            for v in 0..V {
                let c = t.c.wrapping_offset(r as isize * t.c_row).wrapping_add(v * WIDTH);
                _mm_prefetch::<_MM_HINT_ET0>(c.cast());
            }
        }
        let mut panel = t.next.panel;
        for segment in t.segments {
            let (mut a, mut b) = (segment.a.offset(t.at[0]), segment.b.offset(t.at[1]));
            for first in (0..segment.terms).step_by(LINE_TERMS) {
                if !CONTIGUOUS && t.next.rows != 0 {
                    fetch_rows::<R>(t, a);
                }
                if !CONTIGUOUS {
                    for _ in 0..t.next.panel_lines {
                        prefetch_far(panel.cast());
                        panel = panel.wrapping_add(WIDTH);
                    }
                }
                for _ in first..segment.terms.min(first + LINE_TERMS) {
                    if R >= ROWS_OF_FEW_LOADS && V == 2 {
                        for v in 0..V {
                            prefetch(b.wrapping_add(t.ahead + v * WIDTH).cast());
                        }
                    }
                    let mut words = [_mm512_maskz_loadu_ps(mask(V - 1), b.add((V - 1) * WIDTH)); V];
                    for v in 0..V - 1 {
                        words[v] = _mm512_loadu_ps(b.add(v * WIDTH));
                    }
                    for r in 0..R {
                        let x = if CONTIGUOUS { *a.add(r) } else { *a.offset(r as isize * t.a_row) };
                        for v in 0..V {
                            sums[r][v] = _mm512_fmadd_ps(_mm512_set1_ps(x), words[v], sums[r][v]);
                        }
                    }
                    a = a.offset(t.a_term);
                    b = b.offset(t.b_term);
                }
            }
        }
        for r in 0..R {
            for v in 0..V {
                let c = t.c.offset(r as isize * t.c_row).add(v * WIDTH);
                let sum = if t.add {
                    _mm512_add_ps(sums[r][v], _mm512_maskz_loadu_ps(mask(v), c))
                } else {
                    sums[r][v]
                };
                _mm512_mask_storeu_ps(c, mask(v), sum);
            }
        }
    }
}

/// Adds terms at `a` and `b` to the sums of a tile of AVX2; gives where the next ones are. `WHOLE`: there are
/// all columns of the last vector.
///
/// # Safety
/// As of [`Tile::run`].
#[inline(always)]
unsafe fn add_terms<const R: usize, const V: usize, const CONTIGUOUS: bool, const WHOLE: bool>(
    t: &Tile<'_>,
    (mut a, mut b): (*const f32, *const f32),
    terms: usize,
    sums: &mut [[<Avx2F32 as Step>::C; V]; R],
) -> (*const f32, *const f32) {
    const N: usize = Avx2F32::N;
    let last = t.columns - (V - 1) * N;
    // SAFETY: the caller says that rows, columns and segments are there; columns beyond are masked.
    unsafe {
        for _ in 0..terms {
            if R >= ROWS_OF_FEW_LOADS && V == 2 {
                // Both vectors are a line.
                prefetch(b.wrapping_add(t.ahead).cast());
            }
            let from = b.add((V - 1) * N);
            let mut words = [if WHOLE { Avx2F32::load(from) } else { Avx2F32::load_part(from, last) }; V];
            for v in 0..V - 1 {
                words[v] = Avx2F32::load(b.add(v * N));
            }
            for r in 0..R {
                let x = Avx2F32::splat(if CONTIGUOUS { *a.add(r) } else { *a.offset(r as isize * t.a_row) });
                for v in 0..V {
                    sums[r][v] = Avx2F32::madd(x, words[v], sums[r][v]);
                }
            }
            a = a.offset(t.a_term);
            b = b.offset(t.b_term);
        }
    }
    (a, b)
}

/// The same by AVX2.
///
/// # Safety
/// As of [`Tile::run`].
#[inline(always)]
unsafe fn narrow_tile<const R: usize, const V: usize, const CONTIGUOUS: bool, const WHOLE: bool>(
    t: &Tile<'_>,
) {
    const N: usize = Avx2F32::N;
    let last = t.columns - (V - 1) * N;
    // SAFETY: the caller says that rows, columns and segments are there; columns beyond are masked.
    unsafe {
        let mut sums = [[Avx2F32::zero(); V]; R];
        // Rows of the result may be far apart.
        for r in 0..R {
            prefetch(t.c.wrapping_offset(r as isize * t.c_row).cast());
        }
        for segment in t.segments {
            let mut at = (segment.a.offset(t.at[0]), segment.b.offset(t.at[1]));
            // Register pressure: sums take 12 of 16 registers, and a nested loop is a twentieth slower. So only
            // tiles whose next rows come from memory have one.
            if !CONTIGUOUS && t.next.rows != 0 {
                for first in (0..segment.terms).step_by(LINE_TERMS) {
                    fetch_rows::<R>(t, at.0);
                    let terms = LINE_TERMS.min(segment.terms - first);
                    at = add_terms::<R, V, CONTIGUOUS, WHOLE>(t, at, terms, &mut sums);
                }
            } else {
                add_terms::<R, V, CONTIGUOUS, WHOLE>(t, at, segment.terms, &mut sums);
            }
        }
        for r in 0..R {
            for v in 0..V {
                let c = t.c.offset(r as isize * t.c_row).add(v * N);
                Avx2F32::store(sums[r][v], c, if v + 1 == V { last } else { N }, t.add);
            }
        }
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn narrow<const R: usize, const V: usize, const CONTIGUOUS: bool>(t: &Tile<'_>) {
    // SAFETY: the caller's.
    unsafe {
        if t.columns == V * Avx2F32::N {
            narrow_tile::<R, V, CONTIGUOUS, true>(t);
        } else {
            narrow_tile::<R, V, CONTIGUOUS, false>(t);
        }
    }
}

impl Tile<'_> {
    /// # Safety
    /// What it points to is there.
    unsafe fn run_narrow(&self) {
        macro_rules! rows {
            ([$($few:literal),*], [$($rows:literal),*]) => {
                match (self.rows, self.columns.div_ceil(Avx2F32::N), self.a_row == 1) {
                    // SAFETY: of all, the caller's.
                    $(($few, 3, true) => unsafe { narrow::<$few, 3, true>(self) },
                    // SAFETY: as above.
                    ($few, 4, true) => unsafe { narrow::<$few, 4, true>(self) },)*
                    // SAFETY: as above.
                    $(($rows, 1, false) => unsafe { narrow::<$rows, 1, false>(self) },
                    // SAFETY: as above.
                    ($rows, 1, true) => unsafe { narrow::<$rows, 1, true>(self) },
                    // SAFETY: as above.
                    ($rows, 2, false) => unsafe { narrow::<$rows, 2, false>(self) },
                    // SAFETY: as above.
                    ($rows, 2, true) => unsafe { narrow::<$rows, 2, true>(self) },)*
                    (rows, _, _) => debug_assert_eq!(rows, 0, "invariant: tiles are no larger than their size"),
                }
            };
        }
        rows!([1, 2, 3], [1, 2, 3, 4, 5, 6]);
    }

    /// # Safety
    /// What it points to is there; the size is [`TileSize::here`].
    pub(super) unsafe fn run(&self) {
        if self.size.rows != MAX_ROWS {
            // SAFETY: the caller's.
            return unsafe { self.run_narrow() };
        }
        macro_rules! wide {
            ($($rows:literal),*) => {
                match (self.rows, self.columns.div_ceil(WIDTH)) {
                    // SAFETY: the caller's; there are such kinds only where the machine has the vectors.
                    $(($rows, 3) => return unsafe { tile::<$rows, 3, true>(self) },
                    // SAFETY: as above.
                    ($rows, 4) => return unsafe { tile::<$rows, 4, true>(self) },)*
                    (_, columns) => debug_assert!(columns <= 2, "invariant: tiles of many rows have 32 columns"),
                }
            };
        }
        wide!(1, 2, 3, 4);
        macro_rules! rows {
            ($($rows:literal),*) => {
                match (self.rows, self.columns > WIDTH, self.a_row == 1) {
                    // SAFETY: the caller's; there are such kinds only where the machine has the vectors.
                    $(($rows, false, false) => unsafe { tile::<$rows, 1, false>(self) },
                    // SAFETY: as above.
                    ($rows, false, true) => unsafe { tile::<$rows, 1, true>(self) },
                    // SAFETY: as above.
                    ($rows, true, false) => unsafe { tile::<$rows, 2, false>(self) },
                    // SAFETY: as above.
                    ($rows, true, true) => unsafe { tile::<$rows, 2, true>(self) },)*
                    (rows, _, _) => debug_assert_eq!(rows, 0, "invariant: tiles have at most 12 rows"),
                }
            };
        }
        rows!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    }
}
