//! Windows folded by any computation: a lane for each result.

use std::ops::Range;

use hlo::{ComputationId, InstrId, Module};
use hlo_library_base::memory::Shared;
use hlo_library_base::{Call, Operation, Sent, Unsupported};
use smallvec::SmallVec;

use super::{TASKS, associative, tasks};
use crate::lanes::{Applied, LANES, Lanes};
use crate::width::with_width;
use crate::window::{self, Axes, Axis, Form, Run, coordinates, locate, outputs, positions};

/// The operation: arguments are the operands, as many initial values, as many results.
#[derive(Clone, Debug)]
pub(crate) struct General {
    applied: Applied,
    axes: Axes,
    /// Bytes of the elements of each operand.
    bytes: SmallVec<[usize; 4]>,
    /// Growing windows by a parallel scan, where the computation may be taken in any order.
    shared: Option<associative::Growing>,
}

/// [`window::single`], if its windows all begin at the first element.
fn growing(axes: &[Axis]) -> Option<(Axis, [usize; 2])> {
    window::single(axes).filter(|(axis, _)| matches!(axis.form(), Form::Prefix | Form::Growing))
}

impl General {
    pub(super) fn new(
        module: &Module,
        id: InstrId,
        computation: ComputationId,
        mut axes: Axes,
    ) -> Result<General, Unsupported> {
        if axes.is_empty() {
            axes.push(Axis::identity(1));
        }
        let instr = module.instr(id);
        let n = instr.operands().len() / 2;
        let given = instr.operands().iter().map(|&o| module.instr(o).shape.expect_array().element_type);
        let results = instr.shape.leaves();
        let accumulators = results.iter().map(|s| s.expect_array().element_type);
        let parameters = accumulators.clone().chain(given.clone().take(n));
        let applied = Applied::new(module, id, computation, parameters, accumulators)?;
        if !given.clone().take(n).eq(given.clone().skip(n))
            || !given.clone().take(n).eq(results.iter().map(|s| s.expect_array().element_type))
        {
            return Err(Unsupported::new(
                module,
                id,
                "with initial values or results of other types than the operands",
            ));
        }
        let bytes = given.take(n).map(hlo::ElementType::storage_bytes).collect();
        let in_any_order = hlo::folds_in_any_order(module, computation);
        let shared = in_any_order.then(|| associative::Growing::new(&axes)).flatten();
        Ok(General { applied, axes, bytes, shared })
    }

    /// Sets a result's elements at these indices to its initial value.
    unsafe fn begin(&self, call: &Call<'_>, k: usize, indices: impl Iterator<Item = usize>) {
        let n = self.bytes.len();
        with_width!(self.bytes[k], T => {
            let (init, out) = (call.arguments[n + k].cast::<T>(), call.arguments[2 * n + k].cast::<T>());
            for at in indices {
                // SAFETY: the caller says that the indices are in the result and its own; an initial value is
                // one element.
                unsafe { *out.add(at) = *init };
            }
        });
    }

    /// Folds elements into accumulators in the results.
    unsafe fn fold(&self, call: &Call<'_>, lanes: &mut Lanes<'_>, to: &[usize], from: &[usize]) {
        let n = self.bytes.len();
        // SAFETY: the caller says that the indices are in the arrays, and those of the results its own.
        unsafe {
            for k in 0..n {
                lanes.take(k, call.arguments[2 * n + k], to.iter().copied());
                lanes.take(n + k, call.arguments[k], from.iter().copied());
            }
            lanes.apply(to.len());
            for k in 0..n {
                lanes.put(2 * n + k, Shared::new(call.arguments[2 * n + k]), to.iter().copied());
            }
        }
    }

    /// Folds the elements at one position of windows into accumulators in the first columns of `n` lanes.
    unsafe fn fold_rows(&self, call: &Call<'_>, lanes: &mut Lanes<'_>, (rows, run): (&[Row], Run), n: usize) {
        let (count, input) = (self.bytes.len(), self.axes.last().map_or(1, |line| line.input));
        let mut there: SmallVec<[Range<usize>; 16]> = SmallVec::new();
        for (row, lane, outputs) in rows {
            let Some(run) = run.within(outputs) else { continue };
            let (first, size) = (lane + run.first - outputs.start, (run.count, [run.step, run.distance]));
            for k in 0..count {
                // SAFETY: the caller says that the elements are there; a segment's lanes are those of its
                // outputs.
                unsafe {
                    lanes.take_run(count + k, first, call.arguments[k], row * input + run.element, size)
                };
            }
            if run.step == 1 {
                there.push(first..first + run.count);
            } else {
                there.extend((0..run.count).map(|i| first + i * run.step).map(|lane| lane..lane + 1));
            }
        }
        if there.iter().map(Range::len).sum::<usize>() == n {
            lanes.apply(n);
            (0..count).for_each(|k| lanes.exchange(k, 2 * count + k));
            return;
        }
        for there in there {
            lanes.apply_to(there.clone());
            (0..count).for_each(|k| lanes.copy(2 * count + k, k, there.clone()));
        }
    }
}

impl Operation for General {
    fn strategy(&self) -> &'static str {
        "windows by the reducer's kernel"
    }

    fn scratch_bytes(&self) -> u64 {
        self.applied.scratch_bytes() * TASKS as u64
    }

    fn regions(&self) -> Vec<ComputationId> {
        vec![self.applied.computation]
    }

    fn cost(&self) -> (u64, u64) {
        let input: usize = self.axes.iter().map(|a| a.input).product();
        let (output, bytes): (usize, usize) = (outputs(&self.axes), self.bytes.iter().sum());
        let each = if self.shared.is_some() { 2 } else { positions(&self.axes) };
        (((input + output) * bytes) as u64, (output as u64).saturating_mul(each as u64))
    }

    unsafe fn run(&self, call: Call<'_>) {
        let Some(kernel) = call.regions.first() else { return };
        let (n, count) = (outputs(&self.axes), self.bytes.len());
        let scratch = Shared::<u8>::new(call.scratch);
        let call = Sent(call);
        if let Some(growing) = &self.shared {
            // SAFETY: the arguments are those of one operand, and the kernel is for the computation.
            unsafe { growing.run(&call, &self.applied, kernel, self.bytes[0]) };
            return;
        }
        let lanes = |task: usize| {
            // SAFETY: each task has its own memory.
            let memory = unsafe { scratch.offset(task * self.applied.scratch_bytes() as usize) }.pointer();
            self.applied.lanes(kernel, memory)
        };
        if let Some((axis, [outer, inner])) = growing(&self.axes) {
            tasks(call.get().pool, outer * inner, axis.output.saturating_mul(16), &|task, range| {
                let (call, mut lanes) = (call.get(), lanes(task));
                for first in range.clone().step_by(LANES) {
                    let lines = first..range.end.min(first + LANES);
                    let index =
                        |line: usize, n: usize, i: usize| (line / inner * n + i) * inner + line % inner;
                    let mut taken = 0;
                    for o in 0..axis.output {
                        let to: SmallVec<[usize; LANES]> =
                            lines.clone().map(|line| index(line, axis.output, o)).collect();
                        // SAFETY: indices are in the arrays; tasks have different lines.
                        unsafe {
                            for k in 0..count {
                                if o == 0 {
                                    self.begin(call, k, to.iter().copied());
                                } else {
                                    let out = call.arguments[2 * count + k];
                                    lanes.take(
                                        k,
                                        out,
                                        lines.clone().map(|line| index(line, axis.output, o - 1)),
                                    );
                                    with_width!(self.bytes[k], T => {
                                        let (from, out) = (lanes.column(k).cast::<T>(), out.cast::<T>());
                                        to.iter().enumerate().for_each(|(lane, &at)| *out.add(at) = *from.add(lane));
                                    });
                                }
                            }
                            let end = axis.range(o).end;
                            for i in taken..end {
                                let from: SmallVec<[usize; LANES]> =
                                    lines.clone().map(|line| index(line, axis.input, i)).collect();
                                self.fold(call, &mut lanes, &to, &from);
                            }
                            taken = end.max(taken);
                        }
                    }
                }
            });
            return;
        }
        let Some((line, leading)) = self.axes.split_last() else { return };
        let runs: Vec<Option<Run>> =
            (0..line.window.min(MAX_LISTED_POSITIONS)).map(|w| line.run(w, &(0..line.output))).collect();
        let each = positions(&self.axes).min(1 << 16).saturating_mul(16);
        tasks(call.get().pool, n, each, &|task, range| {
            let (call, mut lanes) = (call.get(), lanes(task));
            for first in range.clone().step_by(LANES) {
                let block = first..range.end.min(first + LANES);
                let segments = segments(leading, line, &block);
                for k in 0..count {
                    // SAFETY: an initial value is one element.
                    unsafe { lanes.take(k, call.arguments[count + k], block.clone().map(|_| 0)) };
                }
                for before in 0..positions(leading) {
                    let row =
                        |s: &Segment| Some((locate(leading, &s.at, before)?, s.lane, s.outputs.clone()));
                    let rows: SmallVec<[_; 16]> = segments.iter().filter_map(row).collect();
                    for w in 0..line.window {
                        let run = runs.get(w).map_or_else(|| line.run(w, &(0..line.output)), |run| *run);
                        let Some(run) = run else { continue };
                        // SAFETY: windows' elements that are there are in the arrays.
                        unsafe { self.fold_rows(call, &mut lanes, (&rows, run), block.len()) };
                    }
                }
                for k in 0..count {
                    // SAFETY: tasks have different results.
                    unsafe { lanes.put(k, Shared::new(call.arguments[2 * count + k]), block.clone()) };
                }
            }
        });
    }
}

/// The maximum of window positions along a line whose runs are tabulated once.
const MAX_LISTED_POSITIONS: usize = 1 << 10;

/// The index of a row of an operand, the first lane, and the outputs that its elements are folded into.
type Row = (usize, usize, Range<usize>);

/// Consecutive results of one line, and the first one's lane.
struct Segment {
    lane: usize,
    /// The line's coordinates.
    at: SmallVec<[usize; 6]>,
    outputs: Range<usize>,
}

/// Results that follow each other, cut where a line ends.
fn segments(leading: &[Axis], line: &Axis, block: &Range<usize>) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut o = block.start;
    while o < block.end {
        let (row, first) = (o / line.output, o % line.output);
        let last = line.output.min(first + block.end - o);
        let at = coordinates(leading.iter().map(|a| a.output), row);
        segments.push(Segment { lane: o - block.start, at, outputs: first..last });
        o += last - first;
    }
    segments
}
