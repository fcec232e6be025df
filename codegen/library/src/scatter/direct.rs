//! Scatters of one operand by a well-known operation, on all threads.
//!
//! Index vectors become offsets of windows in the operand, a block at a time. Dimensions along which neither
//! index vectors nor windows overlap (batching dimensions, those that windows cover) are tasks of their own;
//! otherwise each task has a range of offsets, reads all index vectors and keeps those of its range, or, if
//! there are few offsets with long windows, a part of all windows. So each element gets its updates in the
//! order of the index vectors, whatever the number of tasks.
//!
//! Where many updates go to few offsets, and their order does not matter, operands are privatized: updates
//! are divided into parts (whose number depends on shapes alone), each has a copy of the operand's elements,
//! and the copies are combined in order.

use std::ops::Range;

use hlo::{ElementType, Opcode, TypeClass};
use hlo_library_base::memory::Shared;
use hlo_library_base::simd::vectorized;
use hlo_library_base::workspace::with_workspace;
use hlo_library_base::{Call, Sent, sizes};

use super::ops::{self, List, Rows};
use super::{Dimension, odometer};
use crate::reduce_window::fold::{self, Fold};
use crate::width::with_width;

/// Index vectors of a block.
const BLOCK_VECTORS: usize = 512;

/// Index vectors that are compared at a time.
const LANES: usize = 16;

/// Elements of updates from which on several threads are used.
const PARALLEL_ELEMENTS: usize = 1 << 13;

/// The maximum of private copies.
const MAX_COPIES: usize = 16;

/// Offsets for each thread below which updates may be unevenly divided among threads.
const MIN_OFFSETS_PER_THREAD: usize = 16;

/// The maximum of bytes of an operand that stays in a near cache.
const NEAR_BYTES: usize = 1 << 18;

/// Bytes of a cache line.
const CACHE_LINE_BYTES: usize = 64;

/// The minimum of bytes of a part of a window.
const MIN_PART_BYTES: usize = 1 << 10;

/// Elements of a piece in which copies are combined.
const PIECE_ELEMENTS: usize = 1 << 12;

/// The numbers of the index vectors of a block, if all are kept.
const IN_ORDER: [u32; BLOCK_VECTORS] = {
    let mut numbers = [0; BLOCK_VECTORS];
    let mut i = 0;
    while i < BLOCK_VECTORS {
        numbers[i] = i as u32;
        i += 1;
    }
    numbers
};

/// The offset of an index vector whose window does not fit.
const OUT_OF_BOUNDS: u32 = u32::MAX;

/// The offsets of a block of index vectors, those that are kept, and the runs of their windows.
struct Block {
    found: [u32; BLOCK_VECTORS],
    to: [u32; BLOCK_VECTORS + LANES],
    from: [u32; BLOCK_VECTORS + LANES],
    runs: [[u32; BLOCK_VECTORS]; 2],
}

/// Calls `f` with this thread's block, which is reused: a small scatter takes less time than clearing one.
fn with_block(f: impl FnOnce(&mut Block)) {
    with_workspace(size_of::<Block>(), |memory| {
        // SAFETY: the workspace is as large as a block, initialized, aligned to 64 and `f`'s alone; any bits
        // are numbers.
        f(unsafe { &mut *memory.cast::<Block>() });
    });
}

/// A dimension of operand, indices and updates that divides the work: its size, and its strides in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outer {
    pub(super) size: usize,
    pub(super) strides: [usize; 3],
}

/// A component of index vectors: the last start at which the window fits, and the strides in the operand and
/// among the components.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component {
    pub(super) last: usize,
    pub(super) stride: usize,
    pub(super) step: usize,
}

/// The operation.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    bytes: usize,
    elements: usize,
    index_type: ElementType,
    outer: Vec<Outer>,
    /// Index vectors: sizes, and strides in the indices and the updates.
    batch: Vec<Dimension>,
    components: Vec<Component>,
    /// The other dimensions of the window: of runs, whose elements are contiguous in both arrays.
    window: Vec<Dimension>,
    run: usize,
    /// Windows whose offsets are between different multiples of this are disjoint; 0: windows may overlap in
    /// any way.
    row: usize,
    /// Windows of different offsets are disjoint.
    apart: bool,
    rows: Rows,
    copies: Option<Copies>,
}

#[derive(Clone, Copy, Debug)]
struct Copies {
    number: usize,
    identity: u128,
    fold: Fold,
}

/// The facts that a [`Direct`] is built from.
pub(super) struct Parts {
    pub(super) ty: ElementType,
    /// `None`: updates replace elements.
    pub(super) op: Option<Opcode>,
    pub(super) elements: usize,
    pub(super) index_type: ElementType,
    pub(super) outer: Vec<Outer>,
    pub(super) batch: Vec<Dimension>,
    pub(super) components: Vec<Component>,
    pub(super) window: Vec<Dimension>,
    pub(super) run: usize,
    pub(super) row: usize,
    pub(super) apart: bool,
}

/// Collapses dimensions whose outer stride is the extent of the inner one.
pub(super) fn join(dimensions: &mut Vec<Dimension>) {
    dimensions.retain(|d| d.size != 1);
    let mut joined: Vec<Dimension> = Vec::with_capacity(dimensions.len());
    for &d in dimensions.iter() {
        match joined.last_mut() {
            Some(last)
                if last.strides[0] == d.strides[0] * d.size && last.strides[1] == d.strides[1] * d.size =>
            {
                *last = Dimension { size: last.size * d.size, strides: d.strides };
            }
            Some(_) | None => joined.push(d),
        }
    }
    *dimensions = joined;
}

fn size(dimensions: &[Dimension]) -> usize {
    dimensions.iter().map(|d| d.size).product()
}

impl Direct {
    /// `None`: the general algorithm executes it.
    pub(super) fn of(parts: Parts) -> Option<Direct> {
        let Parts { ty, op, elements, index_type, outer, mut batch, components, window, run, row, apart } =
            parts;
        let rows = match op {
            Some(op) => ops::of(ty, op)?,
            None => ops::replace(ty.storage_bytes()),
        };
        if u32::try_from(elements).is_err() {
            return None;
        }
        join(&mut batch);
        // Places in the updates of a block are numbers of 32 bits.
        let reach = window.iter().map(|d| d.size.saturating_sub(1).saturating_mul(d.strides[1]));
        let step = batch.last().map_or(0, |d| d.strides[1].saturating_mul(BLOCK_VECTORS));
        if u32::try_from(reach.fold(step, usize::saturating_add)).is_err() && !window.is_empty() {
            return None;
        }
        let updates = size(&batch).checked_mul(run)?;
        // Powers of two: as many for each thread of most machines.
        let number = updates / elements.saturating_mul(4).max(4 * sizes::from(PARALLEL_ELEMENTS));
        let number = number.min(MAX_COPIES).next_power_of_two();
        let plain = matches!(ty.class(), TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned)
            || matches!(ty, ElementType::F32 | ElementType::F64);
        let fold = op.filter(|_| plain && number >= 2 && outer.is_empty() && window.is_empty());
        let copies = fold
            .and_then(|op| fold::of(ty, op))
            .filter(|(_, fold)| fold.bytes == ty.storage_bytes())
            .and_then(|(_, fold)| Some(Copies { number, identity: fold.identity?, fold }));
        let bytes = ty.storage_bytes();
        Some(Direct {
            bytes,
            elements,
            index_type,
            outer,
            batch,
            components,
            window,
            run,
            row,
            apart,
            rows,
            copies,
        })
    }

    pub(super) fn scratch_bytes(&self) -> u64 {
        self.copies.map_or(0, |c| (c.number * self.elements * self.bytes) as u64)
    }

    /// The bound of offsets.
    fn extent(&self) -> usize {
        self.components.iter().map(|c| c.last * c.stride).sum::<usize>() + 1
    }

    /// Computes the offsets of the windows of index vectors that are `step` elements apart.
    ///
    /// # Safety
    /// There are as many index vectors as offsets.
    #[inline(always)]
    unsafe fn offsets(&self, indices: *const u8, step: usize, offsets: &mut [u32]) {
        offsets.fill(0);
        let signed = self.index_type.class() == TypeClass::Signed;
        macro_rules! component {
            ($c:expr, $from:ty, $wide:ty, $unsigned:ty) => {{
                let (last, stride) = ($c.last.min(<$from>::MAX as usize) as $unsigned, $c.stride as u32);
                // SAFETY: the components are those of the index array.
                let from = unsafe { indices.cast::<$from>().add($c.step) };
                // A negative index is larger than any last start.
                let one = |offset: &mut u32, x: $from| {
                    let x = x as $wide as $unsigned;
                    let sum = offset.wrapping_add((x as u32).wrapping_mul(stride));
                    *offset = if (x <= last) & (*offset != OUT_OF_BOUNDS) { sum } else { OUT_OF_BOUNDS };
                };
                // Constant steps are vectorized.
                macro_rules! each {
                    ($step:expr) => {
                        for (i, offset) in offsets.iter_mut().enumerate() {
                            // SAFETY: as the caller says.
                            one(offset, unsafe { *from.add(i * $step) });
                        }
                    };
                }
                match step {
                    1 => each!(1),
                    2 => each!(2),
                    3 => each!(3),
                    _ => each!(step),
                }
            }};
        }
        for c in &self.components {
            match (self.index_type.storage_bytes(), signed) {
                (1, true) => component!(c, i8, i32, u32),
                (1, false) => component!(c, u8, u32, u32),
                (2, true) => component!(c, i16, i32, u32),
                (2, false) => component!(c, u16, u32, u32),
                (4, true) => component!(c, i32, i32, u32),
                (4, false) => component!(c, u32, u32, u32),
                (_, true) => component!(c, i64, i64, u64),
                (_, false) => component!(c, u64, u64, u64),
            }
        }
    }

    /// Carries out the updates of these index vectors whose offsets are in a range, in order. `at`: the
    /// offsets in the three arrays of the dimensions that divide the work, `run`: elements of each run from
    /// there. The contents of the block do not matter.
    ///
    /// # Safety
    /// The arrays are those of the call, and the offsets not aliased.
    unsafe fn scan(
        &self,
        vectors: Range<usize>,
        offsets: Range<u32>,
        (at, run): ([usize; 3], usize),
        [indices, updates, result]: [*mut u8; 3],
        Block { found, to, from, runs: [runs_to, runs_from] }: &mut Block,
    ) {
        let index_bytes = self.index_type.storage_bytes();
        let one = Dimension { size: 1, strides: [0, 0] };
        let (&inner, outer) = self.batch.split_last().unwrap_or((&one, &[]));
        // Whether the range covers all offsets.
        let whole = offsets.start == 0 && offsets.end as usize >= self.extent();
        let mut begin = vectors.start;
        while begin < vectors.end {
            let n = BLOCK_VECTORS.min(vectors.end - begin).min(inner.size - begin % inner.size);
            let (mut index, mut update) = (at[1], at[2]);
            let mut rest = begin / inner.size;
            index += begin % inner.size * inner.strides[0];
            update += begin % inner.size * inner.strides[1];
            for d in outer.iter().rev() {
                index += rest % d.size * d.strides[0];
                update += rest % d.size * d.strides[1];
                rest /= d.size;
            }
            begin += n;
            // SAFETY: the vectors are in the arrays.
            let (kept, all) = vectorized(|| unsafe {
                self.offsets(indices.add(index * index_bytes), inner.strides[0], &mut found[..n]);
                if whole && found[..n].iter().fold(true, |all, &offset| all & (offset != OUT_OF_BOUNDS)) {
                    (n, true)
                } else {
                    (select(&found[..n], &offsets, to, from), false)
                }
            });
            let (to, from) = if all { (&found[..], &IN_ORDER[..]) } else { (&to[..], &from[..]) };
            // SAFETY: the windows that were kept are in the operand, at every position of the other
            // dimensions.
            unsafe {
                let (result, updates) = (result.add(at[0] * self.bytes), updates.add(update * self.bytes));
                let list = List {
                    to: &to[..kept],
                    from: &from[..kept],
                    stride: inner.strides[1],
                    run,
                    near: self.elements * self.bytes <= sizes::from(NEAR_BYTES),
                };
                if self.window.is_empty() {
                    (self.rows)(result, updates, list);
                    continue;
                }
                // All runs of one window after those of another.
                let mut count = 0;
                for i in 0..kept {
                    let start = [to[i] as usize, from[i] as usize * list.stride];
                    odometer(&self.window, &mut |_, [to, from]| {
                        runs_to[count] = (start[0] + to) as u32;
                        runs_from[count] = (start[1] + from) as u32;
                        count += 1;
                        if count == BLOCK_VECTORS {
                            (self.rows)(
                                result,
                                updates,
                                List { to: runs_to, from: runs_from, stride: 1, ..list },
                            );
                            count = 0;
                        }
                    });
                }
                let (to, from) = (&runs_to[..count], &runs_from[..count]);
                (self.rows)(result, updates, List { to, from, stride: 1, ..list });
            }
        }
    }

    /// Executes it, in place or not.
    ///
    /// # Safety
    /// As [`super::super::LibraryCall::run`], but that the result may be the operand.
    pub(super) unsafe fn run(&self, call: Call<'_>) {
        let &[operand, indices, updates, result] = call.arguments else { return };
        let (total, in_place) = (self.elements * self.bytes, operand == result);
        let sent = Sent(call);
        // SAFETY: operand and result are arrays of the same size; the range is not aliased.
        let copy = |range: Range<usize>| unsafe {
            let _all = &sent;
            if !in_place && !range.is_empty() {
                let (from, to) = (sent.get().arguments[0], sent.get().arguments[3]);
                std::ptr::copy_nonoverlapping(from.add(range.start), to.add(range.start), range.len());
            }
        };
        let vectors = size(&self.batch);
        let outer: usize = self.outer.iter().map(|o| o.size).product();
        let window = size(&self.window).saturating_mul(self.run);
        let work = vectors.saturating_mul(outer).saturating_mul(window);
        if work == 0 {
            copy(0..total);
            return;
        }
        if let Some(copies) = &self.copies {
            // SAFETY: as the caller says.
            return unsafe { self.by_copies(copies, call, vectors) };
        }
        let arrays = Pointers([indices, updates, result]);
        let extent = self.extent();
        // What is divided among threads is no cache line, to avoid false sharing.
        let key = self.row.max(1) * (CACHE_LINE_BYTES / self.bytes).div_ceil(self.row.max(1));
        let keys = extent.div_ceil(key);
        let threads = if work < sizes::from(PARALLEL_ELEMENTS) { 1 } else { call.pool.threads() };
        let pieces = if self.row == 0 || outer >= 2 * threads { 1 } else { threads.div_ceil(outer) };
        let long = self.apart
            && self.window.is_empty()
            && self.run * self.bytes >= sizes::from(MIN_PART_BYTES) * pieces;
        let (ranges, parts) =
            if long && keys < MIN_OFFSETS_PER_THREAD * pieces { (1, pieces) } else { (pieces.min(keys), 1) };
        let together = outer == 1 && ranges > 1;
        if !together {
            let pieces = total.div_ceil(1 << 18);
            let piece = |n: usize| copy(n << 18..((n + 1) << 18).min(total));
            call.pool.run(pieces, &piece);
        }
        let one = |n: usize, block: &mut Block| {
            let (mut rest, range, part) = (n / ranges / parts, n / parts % ranges, n % parts);
            let columns = self.run * part / parts..self.run * (part + 1) / parts;
            let mut at = [columns.start, 0, columns.start];
            for o in self.outer.iter().rev() {
                for (at, stride) in at.iter_mut().zip(o.strides) {
                    *at += rest % o.size * stride;
                }
                rest /= o.size;
            }
            let bound = |range: usize| keys * range / ranges * key;
            let last = range + 1 == ranges;
            let offsets = bound(range)..if last { extent } else { bound(range + 1) };
            if together {
                let end = if last { total } else { offsets.end * self.bytes };
                copy(offsets.start * self.bytes..end);
            }
            // SAFETY: as the caller says; tasks have disjoint ranges of offsets.
            unsafe {
                let offsets = offsets.start as u32..offsets.end as u32;
                self.scan(0..vectors, offsets, (at, columns.len()), arrays.get(), block);
            }
        };
        // Tasks of a few updates each go together.
        let tasks = outer * ranges * parts;
        let each = if threads == 1 {
            tasks
        } else {
            (PARALLEL_ELEMENTS / 8 / vectors.saturating_mul(window)).max(1)
        };
        let several = |n: usize| {
            with_block(|block| (n * each..tasks.min((n + 1) * each)).for_each(|n| one(n, block)));
        };
        call.pool.run(tasks.div_ceil(each), &several);
    }

    /// # Safety
    /// As [`Direct::run`].
    unsafe fn by_copies(&self, copies: &Copies, call: Call<'_>, vectors: usize) {
        let arrays = Pointers([call.arguments[1], call.arguments[2], call.scratch]);
        let bytes = self.elements * self.bytes;
        call.pool.run(copies.number, &|n| {
            let [indices, updates, scratch] = arrays.get();
            let part = |n: usize| vectors / copies.number * n + vectors % copies.number * n / copies.number;
            // SAFETY: the scratch memory has space for the copies, of which this one is not aliased.
            unsafe {
                let own = scratch.add(n * bytes);
                with_width!(self.bytes, T => {
                    let identity = *std::ptr::from_ref(&copies.identity).cast::<T>();
                    Shared::<T>::new(own).slice_mut(0, self.elements).fill(identity);
                });
                let offsets = 0..self.elements as u32;
                let all = ([0; 3], self.run);
                let vectors = part(n)..part(n + 1);
                with_block(|block| self.scan(vectors, offsets, all, [indices, updates, own], block));
            }
        });
        let sent = Sent(call);
        call.pool.run(self.elements.div_ceil(PIECE_ELEMENTS), &|n| {
            let call = sent.get();
            let (begin, end) = (n * PIECE_ELEMENTS, ((n + 1) * PIECE_ELEMENTS).min(self.elements));
            let at = begin * self.bytes;
            // SAFETY: this piece is not aliased, and no task writes copies.
            unsafe {
                let (operand, result) = (call.arguments[0].add(at), call.arguments[3].add(at));
                if operand != result {
                    std::ptr::copy_nonoverlapping(operand, result, (end - begin) * self.bytes);
                }
                let mut sources = [std::ptr::null::<u8>(); MAX_COPIES];
                for (k, source) in sources.iter_mut().enumerate().take(copies.number) {
                    *source = call.scratch.add(k * bytes + at);
                }
                copies.fold.rows(result, end - begin, &sources[..copies.number]);
            }
        });
    }
}

/// Pointers that tasks use, each for its own range of offsets.
#[derive(Clone, Copy)]
struct Pointers([*mut u8; 3]);

impl Pointers {
    /// The pointers, as a whole: so that closures capture what may be sent.
    fn get(&self) -> [*mut u8; 3] {
        self.0
    }
}

// SAFETY: threads use the pointers for different elements, as [`Direct`] says.
unsafe impl Send for Pointers {}
// SAFETY: as above.
unsafe impl Sync for Pointers {}

/// Compacts the offsets that are in a range, and their numbers, both in order. Returns how many there are.
#[inline(always)]
fn select(
    offsets: &[u32],
    range: &Range<u32>,
    to: &mut [u32; BLOCK_VECTORS + LANES],
    from: &mut [u32; BLOCK_VECTORS + LANES],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        fn wide(
            offsets: &[u32],
            range: &Range<u32>,
            to: &mut [u32; BLOCK_VECTORS + LANES],
            from: &mut [u32; BLOCK_VECTORS + LANES],
        ) -> usize {
            use std::arch::x86_64::{
                _mm512_add_epi32, _mm512_loadu_epi32, _mm512_mask_cmplt_epu32_mask,
                _mm512_maskz_compress_epi32, _mm512_maskz_loadu_epi32, _mm512_set1_epi32, _mm512_setr_epi32,
                _mm512_storeu_epi32, _mm512_sub_epi32,
            };
            let begin = _mm512_set1_epi32(range.start as i32);
            let length = _mm512_set1_epi32((range.end - range.start) as i32);
            let mut number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let mut kept = 0;
            for chunk in offsets.chunks(LANES) {
                let all = if chunk.len() == LANES { u16::MAX } else { (1 << chunk.len()) - 1 };
                // SAFETY: loads are masked to the chunk; stores fit, since `kept` is at most the number of
                // offsets before.
                unsafe {
                    let offset = if chunk.len() == LANES {
                        _mm512_loadu_epi32(chunk.as_ptr().cast())
                    } else {
                        _mm512_maskz_loadu_epi32(all, chunk.as_ptr().cast())
                    };
                    let inside = _mm512_mask_cmplt_epu32_mask(all, _mm512_sub_epi32(offset, begin), length);
                    // Compressing in registers: `vpcompressd` into memory is microcoded on some machines.
                    let offset = _mm512_maskz_compress_epi32(inside, offset);
                    let which = _mm512_maskz_compress_epi32(inside, number);
                    _mm512_storeu_epi32(to.as_mut_ptr().add(kept).cast(), offset);
                    _mm512_storeu_epi32(from.as_mut_ptr().add(kept).cast(), which);
                    kept += inside.count_ones() as usize;
                }
                number = _mm512_add_epi32(number, _mm512_set1_epi32(LANES as i32));
            }
            kept
        }
        if hlo_library_base::isa::Features::here().avx512 {
            // SAFETY: the machine has what the function was compiled for.
            return unsafe { wide(offsets, range, to, from) };
        }
    }
    let mut kept = 0;
    for (i, &offset) in (0..).zip(offsets) {
        // Branch-free, since a branch would be unpredictable.
        (to[kept], from[kept]) = (offset, i);
        kept += usize::from(offset.wrapping_sub(range.start) < range.end - range.start);
    }
    kept
}
