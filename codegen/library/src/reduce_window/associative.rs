//! Growing windows (prefixes or suffixes) along one axis, by a computation that may be taken in any order: a
//! parallel scan.
//!
//! Few lines are divided into chunks (three-phase scan): each chunk is scanned in a lane of its own; the last
//! elements of the chunks are scanned sequentially; then the carry is combined with every element of its
//! chunk. That is twice the work, in full registers. If there are many lines, each has a lane.
//! **Invariant:** chunks depend on shapes alone.

use hlo_library_base::Sent;
use hlo_library_base::memory::Shared;
use hlo_library_base::portable::Function;
use smallvec::SmallVec;

use super::tasks;
use crate::lanes::{Applied, LANES, Lanes};
use crate::width::with_width;
use crate::window::{Axis, Form, single};

/// Lanes that fill some registers of every task.
const FULL_LANES: usize = 1 << 12;

/// The minimum of elements of a chunk: the carries of chunks are folded sequentially.
const MIN_CHUNK_ELEMENTS: usize = 32;

/// How such windows are folded.
#[derive(Clone, Debug)]
pub(super) struct Growing {
    /// Sizes before the axis, of it, and behind it.
    outer: usize,
    n: usize,
    inner: usize,
    /// Windows end with the last element.
    down: bool,
    /// Elements of a chunk; `n` if lines are not partitioned.
    chunk: usize,
}

impl Growing {
    /// If windows are of that form along one axis and single elements along the others.
    pub(super) fn new(axes: &[Axis]) -> Option<Growing> {
        let (axis, [outer, inner]) = single(axes)?;
        let down = match axis.form() {
            Form::Prefix => false,
            Form::Suffix => true,
            Form::Identity | Form::Growing | Form::Any => return None,
        };
        let n = axis.input;
        let lines = outer * inner;
        let chunk = if lines >= FULL_LANES {
            n
        } else {
            (n * lines).div_ceil(FULL_LANES).max(MIN_CHUNK_ELEMENTS).min(n)
        };
        Some(Growing { outer, n, inner, down, chunk })
    }

    fn chunks(&self) -> usize {
        self.n.div_ceil(self.chunk.max(1))
    }

    /// The index of element `i` of a line, in the order of folding.
    fn index(&self, line: usize, i: usize) -> usize {
        let i = if self.down { self.n - 1 - i } else { i };
        (line / self.inner * self.n + i) * self.inner + line % self.inner
    }

    /// The index of the element after this one.
    fn after(&self, index: usize) -> usize {
        if self.down { index.wrapping_sub(self.inner) } else { index + self.inner }
    }

    /// The indices of a chunk's elements: the first, and how many.
    fn chunk(&self, line: usize, c: usize) -> (usize, usize) {
        let first = c * self.chunk;
        (self.index(line, first), self.chunk.min(self.n - first))
    }

    /// Folds; arguments are the operand, the initial value and the result, of elements of `bytes` bytes.
    ///
    /// # Safety
    /// The arguments have these sizes, `kernel` is for the computation of `applied`, and there is memory for
    /// each task in `scratch`.
    pub(super) unsafe fn run(&self, call: &Sent<'_>, applied: &Applied, kernel: &Function, bytes: usize) {
        let (lines, chunks) = (self.outer * self.inner, self.chunks());
        if lines * chunks == 0 {
            return;
        }
        let scratch = Shared::<u8>::new(call.get().scratch);
        let pool = call.get().pool;
        let lanes = |task: usize| {
            // SAFETY: each task has its own memory.
            let memory = unsafe { scratch.offset(task * applied.scratch_bytes() as usize) }.pointer();
            Folded { lanes: applied.lanes(kernel, memory), arguments: call.get().arguments, bytes }
        };
        // Chunks of a line follow each other, so that neighbouring lanes read neighbouring memory.
        tasks(pool, lines * chunks, self.chunk.saturating_mul(16), &|task, range| {
            let mut lanes = lanes(task);
            for first in range.clone().step_by(LANES) {
                let block = first..range.end.min(first + LANES);
                // SAFETY: tasks have different lanes; a lane's indices are those of its chunk.
                unsafe { self.fold_chunks(&mut lanes, block, chunks) };
            }
        });
        if chunks == 1 {
            return;
        }
        // The last element of each chunk but the first becomes the prefix up to there; then the chunk's other
        // elements follow.
        tasks(pool, lines, chunks.saturating_mul(16), &|task, range| {
            let mut lanes = lanes(task);
            for first in range.clone().step_by(LANES) {
                let block = first..range.end.min(first + LANES);
                for c in 1..chunks {
                    let end = |c: usize| self.n.min((c + 1) * self.chunk) - 1;
                    let at = |c: usize| -> Indices {
                        block.clone().map(|line| self.index(line, end(c))).collect()
                    };
                    // SAFETY: tasks have different lines.
                    unsafe { lanes.fold(&at(c - 1), Source::Result, &at(c)) };
                }
            }
        });
        tasks(pool, lines * (chunks - 1), self.chunk.saturating_mul(16), &|task, range| {
            let mut lanes = lanes(task);
            let (mut before, mut to) = (Indices::new(), Indices::new());
            for one in range {
                let (line, c) = (one / (chunks - 1), one % (chunks - 1) + 1);
                let last = self.index(line, c * self.chunk - 1);
                let (mut at, n) = self.chunk(line, c);
                // A chunk's last element is finished.
                for _ in 1..n {
                    before.push(last);
                    to.push(at);
                    at = self.after(at);
                    if to.len() == LANES {
                        // SAFETY: tasks have different chunks, whose last elements nothing writes any more.
                        unsafe { lanes.fold(&before, Source::Result, &to) };
                        before.clear();
                        to.clear();
                    }
                }
            }
            // SAFETY: as above.
            unsafe { lanes.fold(&before, Source::Result, &to) };
        });
    }

    /// Folds chunks, a lane each: the first of a line from the initial value, others from their first
    /// element.
    ///
    /// # Safety
    /// Nobody else uses the results of these chunks.
    unsafe fn fold_chunks(&self, lanes: &mut Folded<'_, '_>, block: std::ops::Range<usize>, chunks: usize) {
        let all: SmallVec<[(usize, usize); LANES]> =
            block.clone().map(|lane| self.chunk(lane / chunks, lane % chunks)).collect();
        let first = |begun: bool| -> Indices {
            let these = block.clone().zip(&all).filter(|(lane, _)| lane.is_multiple_of(chunks) == begun);
            these.map(|(_, &(at, _))| at).collect()
        };
        // SAFETY: as the caller says.
        unsafe {
            lanes.begin(&first(true));
            lanes.copy(&first(false));
        }
        let mut before: Indices = all.iter().map(|&(at, _)| at).collect();
        for s in 1..self.chunk {
            // The last chunk of a line may have fewer elements.
            let mut to = Indices::new();
            let mut from = Indices::new();
            for (at, &(_, n)) in before.iter_mut().zip(&all) {
                if s < n {
                    from.push(*at);
                    *at = self.after(*at);
                    to.push(*at);
                }
            }
            // SAFETY: as the caller says.
            unsafe { lanes.fold(&from, Source::Operand, &to) };
        }
    }
}

/// The indices of the elements of a task's lanes.
type Indices = SmallVec<[usize; LANES]>;

/// The source of the second operand.
#[derive(Clone, Copy)]
enum Source {
    Operand,
    Result,
}

/// A task's lanes over the arrays.
struct Folded<'a, 'b> {
    lanes: Lanes<'a>,
    arguments: &'b [*mut u8],
    bytes: usize,
}

impl Folded<'_, '_> {
    /// Elements from the initial value and theirs of the operand.
    unsafe fn begin(&mut self, to: &[usize]) {
        if to.is_empty() {
            return;
        }
        // SAFETY: the caller says that the indices are in the arrays; the initial value is one element.
        unsafe {
            self.lanes.take(0, self.arguments[1], to.iter().map(|_| 0));
            self.lanes.take(1, self.arguments[0], to.iter().copied());
            self.lanes.apply(to.len());
            self.lanes.put(2, Shared::new(self.arguments[2]), to.iter().copied());
        }
    }

    /// Elements that are those of the operand.
    unsafe fn copy(&self, to: &[usize]) {
        with_width!(self.bytes, T => {
            let (from, out) = (self.arguments[0].cast::<T>(), self.arguments[2].cast::<T>());
            for &at in to {
                // SAFETY: as for `begin`.
                unsafe { *out.add(at) = *from.add(at) };
            }
        });
    }

    /// Elements from results at `before` and theirs of a source.
    unsafe fn fold(&mut self, before: &[usize], source: Source, to: &[usize]) {
        if to.is_empty() {
            return;
        }
        let own = match source {
            Source::Operand => self.arguments[0],
            Source::Result => self.arguments[2],
        };
        // SAFETY: as for `begin`.
        unsafe {
            self.lanes.take(0, self.arguments[2], before.iter().copied());
            self.lanes.take(1, own, to.iter().copied());
            self.lanes.apply(to.len());
            self.lanes.put(2, Shared::new(self.arguments[2]), to.iter().copied());
        }
    }
}
