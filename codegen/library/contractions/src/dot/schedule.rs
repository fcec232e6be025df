//! How a batch of products is divided into chunks and blocks, and where its operands are read: by its shape,
//! and by the machine and the number of threads where that changes no bit.

use std::sync::atomic::AtomicU32;

use hlo_library_base::{sizes, tuning};

use super::tile::{Arithmetic, MAX_ALONG_ROWS};

/// Extents of a batch of products: `batch` times `m` x `k` by `k` x `n`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extents {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    /// Terms, or words of terms.
    pub(crate) k: usize,
}

impl Extents {
    /// Multiplications.
    fn work(&self) -> usize {
        self.batch.saturating_mul(self.m).saturating_mul(self.n).saturating_mul(self.k)
    }
}

/// Where the right operand is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Right {
    /// Where it is stored.
    InPlace,
    /// Each chunk packs what it needs.
    Own,
    /// Each thread packs the columns of a chunk, unless it packed them for its last one.
    Kept,
    /// Packed before any run, all panels with all of their terms one after the other
    /// ([`super::product::pack_ahead`]).
    Ahead,
}

/// Rows whose stride is a multiple of that many bytes begin at the same offset in a page, and so fall into
/// the same sets of the first-level cache.
const PAGE_BYTES: usize = 4096;

/// How the left operand is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// Where it is stored.
    InPlace,
    /// In panels.
    Packed,
}

impl Left {
    /// For an operand whose words can be read in place, by the strides of rows and of terms in bytes. Rows
    /// that begin at the same offset in a page are packed: a set of the first-level cache holds few lines.
    pub(crate) fn readable(row: isize, term: isize, word: usize) -> Left {
        let word = word as isize;
        let apart = if term == word { row } else { term };
        let contiguous = term == word || row == word;
        if contiguous && (!apart.unsigned_abs().is_multiple_of(PAGE_BYTES) || apart == 0) {
            Left::InPlace
        } else {
            Left::Packed
        }
    }
}

/// How the work of a product is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Schedule {
    /// Matrices of a chunk.
    pub(super) batches: usize,
    /// Rows of a chunk.
    pub(super) rows: usize,
    /// Columns of a chunk: a multiple of a tile's, or all.
    pub(super) columns: usize,
    /// Words of terms of a block.
    pub(super) depth: usize,
    pub(super) left: Left,
    pub(super) right: Right,
    /// Whether all chunks of a block of terms are computed before the next one is packed: sums so far are in
    /// the result.
    pub(super) blocked: bool,
    /// Time to pack 32 bits of the left operand, in quarters of the time in which a vector is multiplied.
    left_cost: usize,
    /// Whether there are so few multiplications that the calling thread does them alone.
    pub(super) alone: bool,
    /// Whether the right operand is read along its rows, in place, for few rows: it comes from memory, or its
    /// rows collide in the cache.
    pub(super) along: bool,
    /// Whether the first tile of a panel that is read in place packs it for the tiles below, since its rows
    /// collide in the cache.
    pub(super) copied: bool,
}

/// The most multiplications that the calling thread does alone.
const MAX_SERIAL_MULTIPLICATIONS: usize = 1 << 16;
/// The fewest multiplications of a chunk, and of each of the first few chunks, which waiting threads take at
/// once.
const MIN_CHUNK_MULTIPLICATIONS: usize = 1 << 20;
const MIN_FIRST_CHUNK_MULTIPLICATIONS: usize = 1 << 17;
const FIRST_CHUNKS: usize = 8;
/// The fewest rows of a chunk, except for the last one and in matrices of fewer rows.
const MIN_CHUNK_ROWS: usize = 4;
/// Rows of a left operand that are packed at a time.
pub(super) const ROWS: usize = 96;

/// The most bytes of a right operand that a thread packs and keeps.
const MAX_KEPT_BYTES: usize = 4 << 20;
/// Quarters of the time in which a vector is multiplied: to pack 32 bits of a right operand, and to fetch
/// what another core wrote of a row that is written or read from end to end.
const RIGHT_PACK_QUARTERS: usize = 3;
const REMOTE_FETCH_QUARTERS: usize = 8;
/// The most columns of a stripe whose sums are not elements of the result.
const MAX_SUMS_COLUMNS: usize = 1024;
/// The most bytes of counters that are kept in the workspace of the calling thread.
pub(super) const MAX_COUNTER_BYTES: usize = 1 << 20;

/// Bytes of a right operand above which rows that begin at the same few offsets in pages are evicted from the
/// first-level cache before the next columns are read (conflict misses).
const CONFLICT_MISS_BYTES: usize = 64 << 10;

/// The same for what a tile packs as it reads it: operands that the second-level cache holds have fewer
/// offsets in pages to collide at than those that it does not.
const COPIED_PAGE_PARTS: [usize; 2] = [4, 2];
/// The most bytes of a right operand that is read down its columns for more rows than along its rows: with
/// more, each panel of columns takes as many pages as the machine has translations of.
const MAX_DOWN_BYTES: usize = 16 << 20;

/// The fewest and the most columns of a chunk of a right operand that is read along its rows: their sums stay
/// in the first-level and second-level caches.
const MIN_ALONG_COLUMNS: usize = 256;
const MAX_ALONG_COLUMNS: usize = 1024;

impl Schedule {
    /// For these extents (`k` in words), operands that can be read in place or not (the right one: how far
    /// apart its terms are, in words), and the arithmetic's tiles; `forced` says how the right operand is
    /// read.
    pub(crate) fn new<A: Arithmetic>(
        extents: Extents,
        left: Option<Left>,
        right_terms: Option<isize>,
        forced: Option<Right>,
    ) -> Schedule {
        let tiles = A::tiles();
        let word = size_of::<A::Word>();
        let Extents { batch, m, n, k } = extents;
        let work = extents.work();
        let right_bytes = k.saturating_mul(n).saturating_mul(word);
        let right = if let Some(right) = forced {
            right
        } else if right_terms.is_some()
            && (m <= tuning::here().rows_in_place.min(24)
                || m <= 64 && right_bytes <= 1 << 20
                || m <= 192 && right_bytes <= 256 << 10
                || m <= tuning::here().rows_in_place
                    && right_bytes > sizes::from(1 << 20)
                    && n >= MIN_ALONG_COLUMNS
                    && batch == 1
                || m <= tuning::here().rows_down && right_bytes <= MAX_DOWN_BYTES)
        {
            Right::InPlace
        } else if batch > 1 && right_bytes <= 2 << 20 {
            Right::Own
        } else {
            Right::Kept
        };
        let apart = right_terms.map_or(0, isize::unsigned_abs).saturating_mul(word);
        let copied = tiles.copies && forced.is_none() && right == Right::InPlace && m > tiles.rows && {
            let [near, far] = COPIED_PAGE_PARTS;
            let parts = if right_bytes <= sizes::from(1 << 20) { near } else { far };
            apart > 0 && apart.is_multiple_of(PAGE_BYTES / parts)
        };
        let depth = {
            let most = match word {
                0..=4 if right == Right::Kept => tuning::here().depth,
                0..=8 if copied => tuning::here().depth,
                0..=8 => 512,
                9.. => 256,
            };
            k.div_ceil(k.div_ceil(most).max(1)).max(1)
        };
        // Down its columns, tiles of more rows hide what it takes to fetch what collided.
        let colliding = match apart {
            0 => false,
            apart if apart.is_multiple_of(PAGE_BYTES) => m <= 6,
            apart if apart.is_multiple_of(PAGE_BYTES / 2) => m <= 4,
            _ => false,
        };
        let streamed = right == Right::InPlace
            && (right_bytes > sizes::from(1 << 20)
                || colliding && right_bytes > sizes::from(CONFLICT_MISS_BYTES));
        let at_once = n <= tiles.columns || m <= 64 && k * word <= 256 || streamed;
        let left_cost = match left {
            Some(Left::InPlace) => 0,
            Some(Left::Packed) => 4,
            None => 8,
        };
        let left = match left {
            Some(_) if at_once => Left::InPlace,
            Some(left) => left,
            None => Left::Packed,
        };
        let alone = work <= sizes::from(MAX_SERIAL_MULTIPLICATIONS);
        let wanted = (work / sizes::from(MIN_CHUNK_MULTIPLICATIONS))
            .max((work / sizes::from(MIN_FIRST_CHUNK_MULTIPLICATIONS)).min(FIRST_CHUNKS))
            .clamp(1, 64);
        // Whole matrices, then rows, then columns.
        let (mut batches, mut rows, mut columns) = (batch, m, n);
        if right == Right::Own && forced.is_some() {
            // Packing the right operand is the work: it is cut, not the left one.
            batches = 1;
            let parts = n.div_ceil(512).max(wanted.min(16).div_ceil(batch.max(1)));
            columns = n.div_ceil(parts).max(2 * tiles.columns).next_multiple_of(tiles.columns).min(n);
        } else if right == Right::Kept {
            batches = 1;
        } else if !alone {
            batches = batch.div_ceil(wanted).max(1);
            let matrices = batch.div_ceil(batches);
            if batches == 1 && (matrices < 16 || m > 4 * ROWS) {
                let parts = wanted.div_ceil(matrices).max(m.div_ceil(4 * ROWS));
                rows = m.div_ceil(parts).max(ROWS).min(m);
                let parts = m.div_ceil(rows).next_multiple_of(if m >= 8 * ROWS { 8 } else { 1 });
                rows = m.div_ceil(parts);
                let row_parts = m.div_ceil(rows);
                if matrices * row_parts < 16 {
                    let parts = wanted.min(16).div_ceil(matrices * row_parts);
                    columns = n.div_ceil(parts).max(2 * tiles.columns).next_multiple_of(tiles.columns).min(n);
                }
            }
        }
        let along = streamed && m <= tuning::here().rows_in_place && forced.is_none();
        if along {
            // Rows beyond those of a tile read the same columns again, from a cache: long lines are read
            // fastest.
            let parts = if m > MAX_ALONG_ROWS && n < 2 * MAX_ALONG_COLUMNS { 2 } else { 4 };
            (rows, columns) = (
                m,
                n.div_ceil(parts)
                    .clamp(MIN_ALONG_COLUMNS, MAX_ALONG_COLUMNS)
                    .next_multiple_of(tiles.columns)
                    .min(n),
            );
        }
        let copied = copied && !along;
        Schedule {
            batches,
            rows,
            columns,
            depth,
            left,
            right,
            blocked: false,
            left_cost,
            alone,
            along,
            copied,
        }
    }

    /// The same for this many threads, and whether rows are reported: the number of stripes whose time is
    /// least, as far as it can be told.
    pub(super) fn for_threads<A: Arithmetic>(
        self,
        extents: Extents,
        threads: usize,
        reported: bool,
    ) -> Schedule {
        if self.alone || self.right != Right::Kept {
            return self;
        }
        let tiles = A::tiles();
        let Extents { batch, m, n, k } = extents;
        let word = size_of::<A::Word>();
        // Columns whose words are kept, and whose sums are in the workspace if they are not in the result.
        let words = if self.blocked { self.depth } else { k };
        let kept = MAX_KEPT_BYTES / words.saturating_mul(word).max(1);
        // Too long to be kept: chunks pack blocks of terms.
        let right = if kept >= 2 * tiles.columns { Right::Kept } else { Right::Own };
        let most = if self.blocked { kept } else { kept.min(MAX_SUMS_COLUMNS) };
        let most = (most / tiles.columns).max(2);
        let panels = n.div_ceil(tiles.columns);
        let least = panels.div_ceil(most);
        let wanted = (extents.work() / sizes::from(MIN_CHUNK_MULTIPLICATIONS)).clamp(1, 8 * threads);
        let cut = |stripes: usize| {
            let columns = (panels.div_ceil(stripes) * tiles.columns).min(n);
            let stripes = n.div_ceil(columns);
            let parts = wanted.div_ceil(stripes.saturating_mul(batch)).min(m.div_ceil(6 * tiles.rows));
            // As many for each thread.
            let mut parts = parts.max(m.div_ceil(4 * ROWS)).max(1);
            let alike = |parts: usize| (parts * stripes).saturating_mul(batch).is_multiple_of(threads);
            if let Some(more) =
                (parts..parts + threads).find(|&p| alike(p)).filter(|_| m >= 2 * threads * tiles.rows)
            {
                parts = more;
            }
            let rows = m.div_ceil(parts);
            let parts = m.div_ceil(rows);
            let each = (parts * stripes).saturating_mul(batch).div_ceil(threads);
            // In quarters of the time of a vector.
            let vectors = (columns * word).div_ceil(64);
            let multiplied = each * rows * vectors * 4;
            let packed =
                (each.div_ceil(parts) * columns * RIGHT_PACK_QUARTERS + each * rows * self.left_cost) * word
                    / 4;
            let streamed = if columns * words * word > sizes::from(tuning::here().near) {
                each * vectors * 4
            } else {
                0
            };
            let far = stripes > 1 && (reported || !self.blocked);
            let fetched =
                if far { (batch * m * n / threads).saturating_mul(REMOTE_FETCH_QUARTERS) } else { 0 };
            let time = (multiplied + packed + streamed).saturating_mul(k).saturating_add(fetched);
            (time, Schedule { rows, columns, right, ..self })
        };
        let more = (0..6).map(|i| (4 * threads) >> i).filter(|&stripes| stripes > least && stripes <= panels);
        let (_, best) = std::iter::once(least)
            .chain(more)
            .map(cut)
            .min_by_key(|&(time, _)| time)
            .expect("invariant: one at least");
        best
    }

    /// The same with chunks of whole rows of the right operand's columns: needs no scratch memory.
    pub(crate) fn whole(self, extents: Extents) -> Schedule {
        Schedule { columns: extents.n, ..self }
    }

    /// The same for a result whose elements are sums as they are: only a block of terms of a right operand is
    /// packed at a time.
    pub(crate) fn blocked(self) -> Schedule {
        Schedule { blocked: self.right == Right::Kept, ..self }
    }

    /// Bytes of scratch memory.
    pub(crate) fn scratch(&self, extents: Extents) -> usize {
        let bytes = self.counters(extents) * size_of::<AtomicU32>();
        if bytes <= sizes::from(MAX_COUNTER_BYTES) { 0 } else { bytes }
    }

    /// Blocks of rows whose finished chunks are counted, as an epilogue needs whole rows: at most this many,
    /// for any number of threads.
    pub(super) fn counters(&self, extents: Extents) -> usize {
        if self.right == Right::Kept {
            extents.batch * extents.m.div_ceil(MIN_CHUNK_ROWS)
        } else if self.columns < extents.n || self.may_be_ahead() {
            extents.batch * extents.m.div_ceil(self.rows.max(1))
        } else {
            0
        }
    }

    /// Whether the right operand may be read from where it was packed ahead of runs: not if it is packed
    /// where the batch needs it, or is the patches of a convolution.
    pub(crate) fn may_be_ahead(&self) -> bool {
        self.right != Right::Own
    }

    /// The same for a right operand that was packed ahead, and this many threads. Each chunk goes through all
    /// terms; it has many columns where the left operand is to be packed, and few rows of them only if there
    /// is nothing else to divide.
    pub(super) fn ahead<A: Arithmetic>(self, extents: Extents, threads: usize) -> Schedule {
        let Extents { batch, m, n, .. } = extents;
        let tiles = A::tiles();
        let panels = n.div_ceil(tiles.columns);
        let wanted = match self.alone {
            true => 1,
            false => (extents.work() / sizes::from(MIN_CHUNK_MULTIPLICATIONS)).clamp(1, 8 * threads),
        };
        let rows = if self.right == Right::InPlace {
            self.rows
        } else {
            let parts = m.div_ceil(2 * ROWS).max(1);
            let parts = match parts.next_multiple_of(threads) {
                more if more * batch <= wanted && m.div_ceil(more) >= ROWS / 2 => more,
                _ => parts,
            };
            m.div_ceil(parts).max(MIN_CHUNK_ROWS).min(m.max(1))
        };
        let in_rows = m.div_ceil(rows.max(1)).max(1) * batch.max(1);
        // Sums that are not elements of the result are in the workspace.
        let most = if self.blocked { panels } else { MAX_SUMS_COLUMNS / tiles.columns };
        let least = if self.left_cost == 0 { 1 } else { 4 };
        // Who has other columns packs the left operand again.
        let wanted = if self.left_cost == 0 { wanted } else { wanted.min(2 * threads) };
        let parts = wanted.div_ceil(in_rows).min(panels / least).max(panels.div_ceil(most.max(1))).max(1);
        let parts = match parts.next_multiple_of(threads) {
            more if parts > 1 && panels >= more => more,
            _ => parts,
        };
        let columns = (panels.div_ceil(parts) * tiles.columns).min(n);
        Schedule { batches: 1, rows, columns, right: Right::Ahead, blocked: false, along: false, ..self }
    }
}
