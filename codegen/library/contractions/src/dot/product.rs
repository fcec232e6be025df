//! Batches of matrix products over packed operands.
//!
//! The result is divided into chunks of rows and columns (of some matrices of the batch); a chunk is computed
//! by one thread, a block of terms after the other, and register tiles add up in the result, or in the
//! workspace of the thread if the result has other elements than sums or they are added to every few terms
//! (`along`). Where operands are read:
//!
//! | left | when |
//! |---|---|
//! | [`Left::InPlace`] | its words lie there, rows or terms side by side, and not all at the same offset in a page: no tile gains from a copy |
//! | [`Left::Packed`] | otherwise: a chunk packs the rows that it multiplies |
//!
//! | right | when |
//! |---|---|
//! | [`Right::InPlace`] | there are few rows to multiply it with; if it is large too, or its rows begin at the same offsets in pages, a few of its rows from end to end, not down its columns (`along`), or the first tile of a panel of columns packs it for the tiles below (`copied`) |
//! | [`Right::Own`] | there are many small ones: a chunk packs the one that it needs |
//! | [`Right::Kept`] | otherwise: a thread packs a stripe of its columns, and keeps it for the chunks that follow |
//! | [`Right::Ahead`] | it is known before any run, and was packed then |
//!
//! What is packed is in workspaces of threads. No thread reads what another one packed: cores may be far from
//! each other, and then it takes several times as long to fetch a word that another core wrote as to pack it.
//! How many stripes there are weighs what is packed more than once against what threads have to do one after
//! the other ([`Schedule::for_threads`]).
//!
//! **Invariant:** each element is summed term by term, from the first to the last: neither the blocks of
//! terms, which depend on the machine, nor which chunk it is in, where operands are read or how many threads
//! there are changes a bit. (Complex numbers are added up in blocks that the shape fixes.)

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hlo_library_base::memory::Shared;
use hlo_library_base::pool::Pool;
use hlo_library_base::workspace::{Workspace, with_counters, with_workspace};
use hlo_library_base::{sizes, tuning};

pub(crate) use super::schedule::{Extents, Left, Right, Schedule};
use super::schedule::{MAX_COUNTER_BYTES, ROWS};
use super::source::Source;
use super::steps::Steps;
use super::tile::{Arithmetic, MAX_ALONG_ROWS, Tile, Tiles};

/// Lines of a right operand that are packed side by side.
pub(super) const LINES: usize = 8;

/// Words of a right operand that is packed ahead.
pub(crate) fn words_ahead<A: Arithmetic>(extents: Extents) -> usize {
    let Extents { batch, n, k, .. } = extents;
    let columns = n.next_multiple_of(A::tiles().columns);
    batch.saturating_mul(columns).saturating_mul(k)
}

/// Packs a right operand ahead of all runs: for each matrix its panels, each with all of its terms.
///
/// # Safety
/// The operand is valid for the extents, and there is space for [`words_ahead`].
pub(crate) unsafe fn pack_ahead<A: Arithmetic>(
    extents: Extents,
    right: &dyn Source<A::Word>,
    to: *mut A::Word,
    pool: &Pool,
) {
    let Extents { batch, n, k, .. } = extents;
    let width = A::tiles().columns;
    let panels = n.div_ceil(width);
    let to = Shared::<A::Word>::new(to.cast());
    pool.run(batch * panels, &|number| {
        let (batch, first) = (number / panels, number % panels * width);
        // SAFETY: the caller's; panels are disjoint.
        unsafe {
            let to = to.offset(number * width * k).pointer();
            right.pack(batch, first, width.min(n - first), 0, k, to, width);
        }
    });
}

/// Puts `n` sums into elements of the result that are `step` (elements) apart.
pub(crate) type Narrow<S> = unsafe fn(from: *const S, n: usize, to: *mut u8, step: isize);

/// The result.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a, S> {
    pub(crate) base: *mut u8,
    /// Size of an element.
    pub(crate) bytes: usize,
    pub(crate) batch: &'a Steps,
    pub(crate) rows: &'a Steps,
    pub(crate) columns: &'a Steps,
    /// `None`: elements are sums as they are.
    pub(crate) narrow: Option<Narrow<S>>,
}

// SAFETY: chunks write disjoint parts of it.
unsafe impl<S> Sync for Target<'_, S> {}

impl<S: Copy> Target<'_, S> {
    /// Puts one sum into the result.
    ///
    /// # Safety
    /// The indices are inside of the result.
    pub(crate) unsafe fn put(&self, batch: usize, row: usize, column: usize, sum: &S) {
        let at = self.batch.offset(batch) + self.rows.offset(row) + self.columns.offset(column);
        // SAFETY: the caller's.
        unsafe {
            let to = self.base.offset(at * self.bytes as isize);
            match self.narrow {
                Some(narrow) => narrow(sum, 1, to, 1),
                None => *to.cast::<S>() = *sum,
            }
        }
    }
}

/// What is called for finished rows of a matrix: matrix, first row, end.
pub(crate) type Finished<'a> = &'a (dyn Fn(usize, usize, usize) + Sync);

/// A batch of products, ready to be computed.
pub(crate) struct Product<'a, A: Arithmetic> {
    pub(crate) extents: Extents,
    pub(crate) schedule: Schedule,
    pub(crate) left: &'a dyn Source<A::Word>,
    pub(crate) right: &'a dyn Source<A::Word>,
    pub(crate) target: Target<'a, A::Sum>,
    pub(crate) finished: Option<Finished<'a>>,
    /// The right operand as [`pack_ahead`] left it; null: it was not packed.
    pub(crate) ahead: *const A::Word,
    /// What the sums of each row of each matrix begin with; null: zero.
    pub(crate) start: *const A::Sum,
    pub(crate) scratch: *mut u8,
    pub(crate) pool: &'a Pool,
}

// SAFETY: its pointer is to scratch memory that threads write disjoint parts of (or atomically).
unsafe impl<A: Arithmetic> Sync for Product<'_, A> {}

/// The part of the result that a chunk computes.
#[derive(Clone, Copy)]
struct Part {
    /// The terms, in words.
    first: usize,
    end: usize,
    batch: usize,
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

thread_local! {
    /// What this thread packed last of a right operand.
    static STRIPE: RefCell<Stripe> = const { RefCell::new(Stripe { of: (0, 0), packed: Workspace::new() }) };
}

/// Packed columns of a right operand.
struct Stripe {
    /// The number of the job, and which of its stripes.
    of: (u64, usize),
    packed: Workspace,
}

/// The number of the next job that packs stripes.
static JOB: AtomicU64 = AtomicU64::new(1);

/// Rows in panels of about the same height, at most `most`: the first row and the number of each.
fn panels(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(most.max(1)).max(1);
    let at = move |panel: usize| rows / count * panel + (rows % count).min(panel);
    (0..count).map(move |panel| (at(panel), at(panel + 1) - at(panel)))
}

impl<A: Arithmetic> Product<'_, A> {
    /// Computes it.
    ///
    /// # Safety
    /// Operands and result are valid for the extents; the scratch memory has [`Schedule::scratch`] bytes.
    pub(crate) unsafe fn run(&self) {
        let reported = self.finished.is_some();
        let threads = self.pool.threads();
        let schedule = if self.ahead.is_null() {
            self.schedule.for_threads::<A>(self.extents, threads, reported)
        } else {
            self.schedule.ahead::<A>(self.extents, threads)
        };
        let bytes = self.schedule.counters(self.extents) * size_of::<AtomicU32>();
        // SAFETY: the caller's; there are counters for the rows of any schedule.
        let run = |scratch: *mut u8| unsafe { Product { schedule, scratch, ..*self }.run_scheduled() };
        if !reported || bytes > sizes::from(MAX_COUNTER_BYTES) {
            run(self.scratch)
        } else {
            with_counters(bytes, run);
        }
    }

    unsafe fn run_scheduled(&self) {
        let Extents { batch, m, n, k } = self.extents;
        if batch == 0 || m == 0 || n == 0 {
            return;
        }
        if k == 0 {
            return self.zeros();
        }
        if self.finished.is_some() && self.schedule.columns < n {
            for i in 0..batch * m.div_ceil(self.schedule.rows) {
                // SAFETY: there is space for them, and no other thread is at work yet.
                unsafe { self.counters().add(i).write(AtomicU32::new(0)) };
            }
        }
        let each = if self.schedule.blocked { self.schedule.depth } else { k };
        for word in (0..k).step_by(each) {
            // SAFETY: the caller's, for each part.
            unsafe { self.parts(word, k.min(word + each)) };
        }
    }

    fn zeros(&self) {
        let zeros = [A::Sum::default(); 64];
        for b in 0..self.extents.batch {
            for row in 0..self.extents.m {
                for column in (0..self.extents.n).step_by(zeros.len()) {
                    let columns = zeros.len().min(self.extents.n - column);
                    let part = Part { first: 0, end: 0, batch: b, row, rows: 1, column, columns };
                    // SAFETY: the part is inside of the result.
                    unsafe { self.narrow(part, zeros.as_ptr(), zeros.len()) };
                }
            }
            if let Some(finished) = self.finished {
                finished(b, 0, self.extents.m);
            }
        }
    }

    /// Where the counters are, if rows are reported.
    fn counters(&self) -> *mut AtomicU32 {
        self.scratch.cast()
    }

    /// Computes all matrices, chunk by chunk, with words of terms from `first` to `end`.
    unsafe fn parts(&self, first: usize, end: usize) {
        let Extents { batch: matrices, m, n, k } = self.extents;
        let s = &self.schedule;
        let (row_parts, column_parts) = (m.div_ceil(s.rows), n.div_ceil(s.columns));
        let in_matrix = row_parts * column_parts;
        let job = JOB.fetch_add(1, Ordering::Relaxed);
        let work = |chunk: usize| {
            // A thread that goes on has the same columns.
            let at = chunk % in_matrix;
            let (row, column) = if matches!(s.right, Right::Kept | Right::Ahead) {
                (at % row_parts * s.rows, at / row_parts * s.columns)
            } else {
                (at / column_parts * s.rows, at % column_parts * s.columns)
            };
            let (rows, columns) = (s.rows.min(m - row), s.columns.min(n - column));
            let batch = chunk / in_matrix * s.batches;
            for batch in batch..matrices.min(batch + s.batches) {
                let part = Part { first, end, batch, row, rows, column, columns };
                // SAFETY: the part is inside of the result, and no other chunk has any of it.
                unsafe {
                    match s.right {
                        Right::Kept => {
                            self.part_of_stripe(part, (job, batch * column_parts + column / s.columns));
                        }
                        Right::Ahead => {
                            let panels = n.next_multiple_of(A::tiles().columns);
                            let first = (batch * panels + column) * k + first * A::tiles().columns;
                            self.part(part, self.ahead.add(first));
                        }
                        Right::Own | Right::InPlace => self.part(part, std::ptr::null()),
                    }
                }
                if let Some(finished) = self.finished.filter(|_| end == k) {
                    let last = column_parts == 1 || {
                        let counter = batch * row_parts + row / s.rows;
                        // SAFETY: counters were written before the chunks began.
                        let counter = unsafe { &*self.counters().add(counter) };
                        counter.fetch_add(1, Ordering::AcqRel) + 1 == column_parts as u32
                    };
                    if last {
                        finished(batch, row, row + rows);
                    }
                }
            }
        };
        let chunks = matrices.div_ceil(s.batches) * in_matrix;
        if s.alone {
            (0..chunks).for_each(work);
        } else {
            self.pool.run(chunks, &work);
        }
    }

    /// Computes a part of the result whose columns are a stripe, which is packed if it is not the one that
    /// this thread packed last.
    unsafe fn part_of_stripe(&self, part: Part, of: (u64, usize)) {
        let tiles = A::tiles();
        let words = part.end - part.first;
        let panels = part.columns.div_ceil(tiles.columns);
        STRIPE.with_borrow_mut(|stripe| {
            let packed = stripe.packed.reserve(panels * tiles.columns * words * size_of::<A::Word>());
            let packed = packed.cast::<A::Word>();
            if stripe.of != of {
                stripe.of = (0, 0);
                let pack = |panel: usize, word: usize, count: usize| {
                    let first = panel * tiles.columns;
                    let columns = tiles.columns.min(part.columns - first);
                    // SAFETY: the caller's; panels lie one after the other.
                    unsafe {
                        let to = packed.add(first * words + word * tiles.columns);
                        let (first, word) = (part.column + first, part.first + word);
                        self.right.pack(part.batch, first, columns, word, count, to, tiles.columns);
                    }
                };
                if self.right.rows_are_contiguous() {
                    // Lines of the matrix are read side by side, as many as the processor can follow.
                    // Of narrow panels twice as many, so that a call has as much to do.
                    let lines = if tiles.columns * size_of::<A::Word>() > 64 { LINES } else { 2 * LINES };
                    for word in (0..words).step_by(lines) {
                        (0..panels).for_each(|panel| pack(panel, word, lines.min(words - word)));
                    }
                } else {
                    (0..panels).for_each(|panel| pack(panel, 0, words));
                }
                stripe.of = of;
            }
            // SAFETY: the caller's.
            unsafe { self.part(part, packed) };
        });
    }

    /// Computes a part of the result; `kept` is the packed stripe of its columns, if that is kept.
    unsafe fn part(&self, part: Part, kept: *const A::Word) {
        let tiles = A::tiles();
        let s = &self.schedule;
        let word = size_of::<A::Word>();
        let left = if s.left == Left::InPlace { self.left.in_place(part.batch) } else { None };
        let right = if s.right == Right::InPlace { self.right.in_place(part.batch) } else { None };
        // Words of a panel that was packed.
        let panel_words = if s.right == Right::Ahead { self.extents.k } else { part.end - part.first };
        // Blocks of rows of about the same height.
        let height = match s.right {
            Right::Ahead => {
                // The right operand comes from memory once for each: as many as stay in the second-level
                // cache.
                let most = (tuning::here().near / (s.depth * word)).max(ROWS);
                part.rows.div_ceil(part.rows.div_ceil(most).max(1))
            }
            Right::Own | Right::InPlace | Right::Kept => ROWS,
        };
        let direct =
            self.target.narrow.is_none().then(|| self.target.rows.single().zip(self.target.columns.single()));
        let along = s.along && self.start.is_null();
        // Rows of sums are updated repeatedly, so they must not alias in the cache by beginning at the same
        // offset in a page.
        let direct = direct.flatten().filter(|&(_, column)| !along && (column == 1 || part.columns == 1));
        let apart = if along { 64_usize.div_ceil(size_of::<A::Sum>()) } else { 0 };
        let width = part.columns.next_multiple_of(tiles.columns) + apart;
        let left_bytes = if left.is_some() { 0 } else { height.min(part.rows) * s.depth * word };
        let copied = s.copied && right.is_some() && !along && part.rows > tiles.rows;
        let right_bytes = match s.right {
            Right::Own => width * s.depth * word,
            Right::InPlace if copied => tiles.columns * s.depth * word,
            Right::InPlace | Right::Kept | Right::Ahead => 0,
        };
        let sum_bytes = if direct.is_some() { 0 } else { part.rows * width * size_of::<A::Sum>() };
        let (left_bytes, right_bytes) = (left_bytes.next_multiple_of(64), right_bytes.next_multiple_of(64));
        let run = |workspace: *mut u8| {
            // SAFETY: the workspace has space for the three; the caller's of the rest.
            unsafe {
                let packed_left = workspace.cast::<A::Word>();
                let packed_right = workspace.add(left_bytes).cast::<A::Word>();
                let sums = workspace.add(left_bytes + right_bytes).cast::<A::Sum>();
                let (c, c_row) = match direct {
                    Some((row, _)) => {
                        let at = self.target.batch.offset(part.batch)
                            + self.target.rows.offset(part.row)
                            + self.target.columns.offset(part.column);
                        (self.target.base.cast::<A::Sum>().offset(at), row)
                    }
                    None => (sums, width as isize),
                };
                for word in (part.first..part.end).step_by(s.depth) {
                    let words = s.depth.min(part.end - word);
                    // The first word of the part's first column, and the distances of words and of panels of
                    // columns.
                    let (b, b_term, b_panel) = match (right, s.right) {
                        (Some((b, _, term)), Right::InPlace) => {
                            let column = self.right_column(right, part.column);
                            (b.offset(column + word as isize * term), term, tiles.columns)
                        }
                        (_, Right::Kept | Right::Ahead) => {
                            let at = kept.add((word - part.first) * tiles.columns);
                            (at, tiles.columns as isize, tiles.columns * panel_words)
                        }
                        (_, Right::Own | Right::InPlace) => {
                            self.pack_right(part, word, words, packed_right, tiles);
                            (packed_right.cast_const(), tiles.columns as isize, tiles.columns * words)
                        }
                    };
                    let panel_bytes = tiles.columns * words * size_of::<A::Word>();
                    for first in (0..part.rows).step_by(height.max(1)) {
                        let rows = height.min(part.rows - first);
                        let mut tile = Tile {
                            a: packed_left.cast_const(),
                            a_row: 1,
                            a_term: 0,
                            b,
                            b_term,
                            terms: words,
                            rows,
                            columns: 0,
                            c,
                            c_row,
                            accumulate: word > 0,
                            start: std::ptr::null(),
                            far: right.is_some(),
                            along,
                            copy: std::ptr::null_mut(),
                            next: b.cast(),
                            next_step: 0,
                        };
                        let most = match left {
                            Some((a, row, term)) => {
                                tile.a = a.offset((part.row + first) as isize * row + word as isize * term);
                                (tile.a_row, tile.a_term) = (row, term);
                                rows
                            }
                            None => {
                                self.pack_left(part, first, rows, word, words, packed_left, tiles);
                                tiles.rows
                            }
                        };
                        let most = match (along, copied) {
                            (true, _) => most.min(MAX_ALONG_ROWS),
                            (false, true) => tiles.rows,
                            (false, false) => most,
                        };
                        let from = tile.a;
                        if along {
                            for (row, count) in panels(rows, most) {
                                tile.rows = count;
                                tile.columns = part.columns;
                                tile.c = c.offset((first + row) as isize * c_row);
                                match left {
                                    Some((_, a_row, _)) => tile.a = from.offset(row as isize * a_row),
                                    None => {
                                        tile.a = packed_left.add(row * words);
                                        tile.a_term = count as isize;
                                    }
                                }
                                (tiles.run)(&tile);
                            }
                            continue;
                        }
                        for column in (0..part.columns).step_by(tiles.columns) {
                            tile.b = b.add(column / tiles.columns * b_panel);
                            tile.columns = tiles.columns.min(part.columns - column);
                            // The next panel of the right operand comes from farther away: each block of rows
                            // of a tile asks for its share with each term.
                            let last = column + tiles.columns >= part.columns;
                            let next = match (last, copied) {
                                (false, _) => tile.b.wrapping_add(b_panel),
                                (true, false) => b,
                                (true, true) => b.wrapping_offset(words as isize * b_term),
                            };
                            let share = match s.right {
                                Right::Kept | Right::Ahead => {
                                    panel_bytes.div_ceil(rows.div_ceil(tiles.rows)).div_ceil(words)
                                }
                                Right::Own | Right::InPlace => 0,
                            };
                            for (i, (row, count)) in panels(rows, most).enumerate() {
                                tile.next = next.cast::<u8>().wrapping_add(i * words * share);
                                tile.next_step = share;
                                tile.rows = count;
                                if copied {
                                    // The first tile packs the panel, the second one asks for the next.
                                    let (term, columns) = (size_of::<A::Word>(), tiles.columns as isize);
                                    (tile.far, tile.copy) = (false, std::ptr::null_mut());
                                    (tile.next, tile.next_step) = (next.cast(), 0);
                                    match i {
                                        0 => {
                                            (tile.far, tile.copy, tile.b_term) = (true, packed_right, b_term)
                                        }
                                        _ => (tile.b, tile.b_term) = (packed_right.cast_const(), columns),
                                    }
                                    if i == 1 {
                                        tile.next_step = b_term.unsigned_abs() * term;
                                    }
                                    if let Some((_, a_row, _)) = left {
                                        tile.a = from.offset(row as isize * a_row);
                                    }
                                }
                                if !self.start.is_null() && word == 0 {
                                    let at = part.batch * self.extents.m + part.row + first + row;
                                    tile.start = self.start.add(at);
                                }
                                tile.c = c.offset((first + row) as isize * c_row + column as isize);
                                if left.is_none() {
                                    tile.a = packed_left.add(row * words);
                                    tile.a_term = tile.rows as isize;
                                }
                                (tiles.run)(&tile);
                            }
                        }
                    }
                }
                if direct.is_none() {
                    self.narrow(part, sums, width);
                }
            }
        };
        match left_bytes + right_bytes + sum_bytes {
            0 => run(std::ptr::without_provenance_mut(64)),
            bytes => with_workspace(bytes, run),
        }
    }

    /// The offset of a column of a right operand that is read in place.
    fn right_column(&self, right: Option<(*const A::Word, isize, isize)>, column: usize) -> isize {
        right.map_or(0, |(_, row, _)| row * column as isize)
    }

    unsafe fn pack_left(
        &self,
        part: Part,
        first: usize,
        rows: usize,
        word: usize,
        words: usize,
        to: *mut A::Word,
        tiles: &Tiles<A>,
    ) {
        for (row, count) in panels(rows, tiles.rows) {
            // SAFETY: the caller's; a panel of `count` rows takes `count * words`.
            unsafe {
                self.left.pack(
                    part.batch,
                    part.row + first + row,
                    count,
                    word,
                    words,
                    to.add(row * words),
                    count,
                );
            }
        }
    }

    unsafe fn pack_right(&self, part: Part, word: usize, words: usize, to: *mut A::Word, tiles: &Tiles<A>) {
        for column in (0..part.columns).step_by(tiles.columns) {
            let count = tiles.columns.min(part.columns - column);
            // SAFETY: the caller's; a panel takes `tiles.columns * words`.
            unsafe {
                let to = to.add(column * words);
                self.right.pack(part.batch, part.column + column, count, word, words, to, tiles.columns);
            }
        }
    }

    /// Puts sums, `width` of them a row, into the result.
    unsafe fn narrow(&self, part: Part, sums: *const A::Sum, width: usize) {
        let target = &self.target;
        for row in 0..part.rows {
            let base = target.batch.offset(part.batch) + target.rows.offset(part.row + row);
            target.columns.runs(part.column, part.columns, |position, offset, step, length| {
                // SAFETY: the caller's: the part is inside of the result, and the sums are there.
                unsafe {
                    let from = sums.add(row * width + position);
                    let to = target.base.offset((base + offset) * target.bytes as isize);
                    match target.narrow {
                        Some(narrow) => narrow(from, length, to, step),
                        None => {
                            let to = to.cast::<A::Sum>();
                            for i in 0..length {
                                *to.offset(i as isize * step) = *from.add(i);
                            }
                        }
                    }
                }
            });
        }
    }
}
