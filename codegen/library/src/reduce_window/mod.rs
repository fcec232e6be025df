//! `reduce-window`: one operation over windows, or any computation.
//!
//! Windows that do not share much are folded one by one, a row of results at a time ([`direct`]); that keeps
//! the order of elements. Where it does not matter (sums of floats may be taken in any), long or growing
//! windows cost a few operations a result, axis by axis ([`running`]); lines of elements of 4 and 8 bytes are
//! folded within registers (`prefix`). Products of floats are folded directly, since intermediate overflow
//! depends on the order, unless windows grow along one axis: then every intermediate product is a result
//! itself. Narrow floats are computed in f32 and rounded once. Of other computations one may be taken in any
//! order, too: log-sum-exp ([`associative`]).

mod associative;
mod direct;
pub(super) mod fold;
mod general;
mod line;
mod planes;
#[cfg(target_arch = "x86_64")]
mod prefix;
mod running;
mod scan;
#[cfg(test)]
mod tests;

use hlo::{AttrKey, ElementType, InstrId, Module, Opcode, TypeClass};
use hlo_library_base::floats::Narrow;
use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::pool::Pool;
use hlo_library_base::simd::vectorized;
use hlo_library_base::{Call, Operation, Unsupported, sizes};
use smallvec::SmallVec;

use self::fold::{Carrier, Fold};
pub(crate) use self::general::General;
pub(crate) use self::scan::Scan;
use super::region::Scalars;
use super::window::{self, Axes, Axis, Form, outputs, positions};
use crate::window::FEW_NEIGHBOURS;
use hlo::facts::splat;

/// Positions of a window from which on overlapping windows share their work.
const LONG_WINDOW: usize = 32;

/// About how many elements a task has.
const TASK_ELEMENTS: usize = 1 << 14;

/// Bytes of results that are folded at a time: they stay in the nearest cache.
const ROW_BYTES: usize = 1 << 12;

/// The maximum of tasks.
const TASKS: usize = 64;

/// The operation: arguments are the operand, the initial value, the result.
#[derive(Clone, Debug)]
pub(crate) struct ReduceWindow {
    ty: ElementType,
    op: Opcode,
    /// With one more axis for the parts of complex numbers that are summed.
    axes: Axes,
    narrow: Option<Narrow>,
    /// The axes to fold along, one after the other, with the elements before and behind each by then; empty:
    /// directly.
    passes: Vec<(usize, [usize; 2])>,
    /// Or in small arrays; or else directly.
    planes: Option<planes::Plan>,
    direct: direct::Plan,
    /// Offsets in the scratch memory: of the whole operand and result in f32, if they are converted, of two
    /// arrays between passes, and of each task's own memory.
    wide: [u64; 2],
    between: [u64; 2],
    tasks: u64,
    task_bytes: u64,
    /// What results of passes begin with, and many others do.
    identity: Box<Row>,
    /// What results begin with if that is a constant.
    known: Option<Box<Row>>,
}

/// A `reduce-window` of either kind.
pub(super) fn of(module: &Module, id: InstrId) -> Result<super::Kind, Unsupported> {
    let unsupported = |why: &str| Unsupported::new(module, id, why);
    let instr = module.instr(id);
    let n = instr.operands().len() / 2;
    let shapes: Option<Vec<_>> = instr.operands().iter().map(|&o| module.instr(o).shape.as_array()).collect();
    let results: Option<Vec<_>> = instr.shape.leaves().into_iter().map(hlo::Shape::as_array).collect();
    let (Some(shapes), Some(results)) = (shapes, results) else {
        return Err(unsupported("of something that is no array"));
    };
    if shapes.iter().chain(&results).any(|s| s.is_dynamic()) || n == 0 || results.len() != n {
        return Err(unsupported("of dynamic sizes"));
    }
    let axes = window::axes(module, id, &shapes[0].dims, &results[0].dims)?;
    let computation =
        instr.attrs.computation(AttrKey::ToApply).ok_or_else(|| unsupported("without a computation"))?;
    let scalars = Scalars::of(module, computation);
    let ty = shapes[0].element_type;
    let same = shapes.iter().chain(&results).all(|s| s.element_type == ty);
    if let (1, true, Some(op)) = (n, same, scalars.and_then(|s| s.reducer()))
        && let Some((carrier, fold)) = fold::of(ty, op)
    {
        let initial = splat(module, instr.operands()[1]).map(|(_, bits)| bits);
        let window = ReduceWindow::new(ty, op, axes, carrier, fold, initial);
        return Ok(super::Kind::ReduceWindow(Box::new(window)));
    }
    General::new(module, id, computation, axes).map(super::Kind::GeneralReduceWindow)
}

impl ReduceWindow {
    fn new(
        ty: ElementType,
        op: Opcode,
        mut axes: Axes,
        carrier: Carrier,
        fold: Fold,
        initial: Option<u128>,
    ) -> ReduceWindow {
        let parts = matches!(carrier, Carrier::C64 | Carrier::C128) && op == Opcode::Add;
        if parts {
            axes.push(Axis::identity(2));
        }
        let narrow = (carrier == Carrier::F32 && ty != ElementType::F32).then(|| Narrow::new(ty));
        let busy: Vec<usize> = (0..axes.len()).filter(|&i| !axes[i].is_identity()).collect();
        let form = |i: &usize| axes[*i].form();
        let grows = |i: &usize| matches!(form(i), Form::Prefix | Form::Suffix | Form::Growing);
        let shares = busy.iter().any(|&i| axes[i].is_plain() && axes[i].overlaps() && axes[i].window > 4);
        let in_passes = match (&busy[..], fold.identity) {
            ([one], None) => grows(one),
            (_, None) | ([], _) => false,
            (busy, Some(_)) => busy.iter().any(grows) || (shares && positions(&axes) >= LONG_WINDOW),
        };
        let one_by_one = if in_passes { busy } else { Vec::new() };

        let mut layout = Layout::default();
        let bytes = fold.bytes as u64;
        let input: usize = axes.iter().map(|a| a.input).product();
        // The parts of a complex number begin with different values. Few neighbours are iterated with their
        // element, in one line.
        let few = FEW_NEIGHBOURS as usize;
        let lines = if parts { axes.clone() } else { window::without_few_neighbours(&axes, few) };
        let direct = direct::Plan::new(&lines, fold.identity.is_some(), narrow.is_some());
        let planes =
            if one_by_one.is_empty() { planes::Plan::new(&lines, fold.identity.is_some()) } else { None };
        let lines = one_by_one.is_empty() && (planes.is_some() || direct.narrows());
        let wide = match narrow {
            Some(_) if !lines => [layout.add(input as u64, 4), layout.add(outputs(&axes) as u64, 4)],
            Some(_) | None => [0; 2],
        };
        // After each pass but the last.
        let mut sizes: Vec<usize> = axes.iter().map(|a| a.input).collect();
        let (mut largest, mut task_elements) = (0, 0);
        let mut passes = Vec::with_capacity(one_by_one.len());
        for (k, &i) in one_by_one.iter().enumerate() {
            let [outer, inner] = [&sizes[..i], &sizes[i + 1..]].map(|sizes| sizes.iter().product());
            passes.push((i, [outer, inner]));
            task_elements = task_elements.max(running::scratch(&axes[i], inner));
            sizes[i] = axes[i].output;
            if k + 1 < one_by_one.len() {
                largest = largest.max(sizes.iter().product());
            }
        }
        let between = match passes.len() {
            0 | 1 => [0; 2],
            2 => [layout.add(largest as u64, bytes); 2],
            _ => [layout.add(largest as u64, bytes), layout.add(largest as u64, bytes)],
        };
        let tasks = layout.bytes();
        let mut task = Layout::default();
        task.add(task_elements as u64, bytes);
        let identity = Box::new(Row::of(&fold.identity.unwrap_or(0).to_ne_bytes()[..fold.bytes]));
        let initial = initial.map(|bits| carried(narrow.as_ref(), &bits.to_ne_bytes()[..ty.storage_bytes()]));
        let known = initial.filter(|first| !identity.0.starts_with(first));
        let known = known.map(|first| Box::new(Row::of(&first)));
        ReduceWindow {
            ty,
            op,
            axes,
            narrow,
            passes,
            planes,
            direct,
            wide,
            between,
            tasks,
            task_bytes: task.bytes(),
            identity,
            known,
        }
    }

    fn input(&self) -> usize {
        self.axes.iter().map(|a| a.input).product()
    }
}

/// [`ROW_BYTES`] bytes of results that nothing was folded into.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Row([u8; ROW_BYTES]);

impl Row {
    /// Of results that begin with this.
    fn of(first: &[u8]) -> Row {
        let mut row = Row([0; ROW_BYTES]);
        fill(&mut row.0, first);
        row
    }
}

/// The bytes of an initial value in the type that it is computed in.
fn carried(narrow: Option<&Narrow>, initial: &[u8]) -> SmallVec<[u8; 16]> {
    let Some(narrow) = narrow else { return SmallVec::from_slice(initial) };
    let mut wide = [0f32];
    // SAFETY: the initial value is one element of the narrow type.
    unsafe { narrow.widen(initial.as_ptr(), 0, &mut wide) };
    SmallVec::from_slice(&wide[0].to_ne_bytes())
}

/// Bytes of an operand from which on its elements are prefetched.
const CACHED_BYTES: usize = 8 << 20;

/// The state that the algorithms over windows share.
#[derive(Clone, Copy)]
struct Work<'a> {
    fold: &'a Fold,
    pool: &'a Pool,
    /// What accumulators begin with.
    first: &'a Row,
    /// Memory for each of [`TASKS`] tasks.
    scratch: Shared<u8>,
    scratch_bytes: usize,
    /// The operand is too large to be in a cache.
    far: bool,
}

impl Work<'_> {
    /// The memory of a task.
    fn scratch(&self, task: usize) -> *mut u8 {
        // SAFETY: there is memory for every task.
        unsafe { self.scratch.offset(task * self.scratch_bytes) }.pointer()
    }

    /// Begins `n` accumulators.
    ///
    /// # Safety
    /// They are not aliased.
    unsafe fn begin(&self, accumulators: *mut u8, n: usize) {
        // SAFETY: as the caller says.
        let bytes = unsafe { Shared::<u8>::new(accumulators).slice_mut(0, n * self.fold.bytes) };
        for some in bytes.chunks_mut(ROW_BYTES) {
            some.copy_from_slice(&self.first.0[..some.len()]);
        }
    }
}

/// Repeats a pattern of a power of two bytes.
fn fill(bytes: &mut [u8], pattern: &[u8]) {
    fn repeat<const N: usize>(bytes: &mut [u8], pattern: &[u8]) {
        let Ok(pattern) = <[u8; N]>::try_from(pattern) else { return };
        bytes.as_chunks_mut::<N>().0.fill(pattern);
    }
    match pattern.len() {
        1 => bytes.fill(pattern[0]),
        2 => repeat::<2>(bytes, pattern),
        4 => repeat::<4>(bytes, pattern),
        8 => repeat::<8>(bytes, pattern),
        length => {
            debug_assert_eq!(length, 16, "invariant: elements are of 1 to 16 bytes");
            repeat::<16>(bytes, pattern);
        }
    }
}

/// Divides `n` items of `size` elements each into tasks; `work` gets the number of a task, below [`TASKS`],
/// and a range of items.
fn tasks(pool: &Pool, n: usize, size: usize, work: &(dyn Fn(usize, std::ops::Range<usize>) + Sync)) {
    let count = (n.saturating_mul(size.max(1)) / sizes::from(TASK_ELEMENTS)).clamp(1, TASKS).min(n.max(1));
    let each = |task: usize| work(task, n * task / count..n * (task + 1) / count);
    if count == 1 { each(0) } else { pool.run(count, &each) }
}

impl Operation for ReduceWindow {
    fn strategy(&self) -> &'static str {
        let grows =
            |&(i, _): &(usize, _)| matches!(self.axes[i].form(), Form::Prefix | Form::Suffix | Form::Growing);
        match &self.passes[..] {
            [] if self.planes.is_some() => "direct windows, by planes",
            [] => "direct windows",
            passes if passes.iter().all(grows) => "prefix scan",
            _some_slide => "sliding windows",
        }
    }

    fn scratch_bytes(&self) -> u64 {
        self.tasks.saturating_add(self.task_bytes.saturating_mul(TASKS as u64))
    }

    fn cost(&self) -> (u64, u64) {
        let (input, output) = (self.input(), outputs(&self.axes));
        let parts =
            if self.ty.is_complex() && self.axes.last().is_some_and(Axis::is_identity) { 2 } else { 1 };
        let positions = if self.passes.is_empty() { positions(&self.axes) } else { 4 };
        let flops = (output as u64).saturating_mul(positions as u64);
        (((input + output) / parts * self.ty.storage_bytes()) as u64, flops)
    }

    unsafe fn run(&self, call: Call<'_>) {
        let Some((carrier, fold)) = fold::of(self.ty, self.op) else { return };
        let (input, output) = (self.input(), outputs(&self.axes));
        if output == 0 {
            return;
        }
        // SAFETY: the layout has these parts.
        let scratch = |at: u64| unsafe { Shared::<u8>::new(call.scratch).offset(at as usize) };
        let (mut x, result) = (Shared::<u8>::new(call.arguments[0]), Shared::<u8>::new(call.arguments[2]));
        let mut out = result;
        // SAFETY: the initial value is one element.
        let init =
            unsafe { std::slice::from_raw_parts(call.arguments[1].cast_const(), self.ty.storage_bytes()) };
        let (mut lines, mut whole) = (None, self.narrow.as_ref());
        if self.passes.is_empty() && (self.planes.is_some() || self.direct.narrows()) {
            std::mem::swap(&mut lines, &mut whole);
        }
        if let Some(narrow) = whole {
            let to = scratch(self.wide[0]);
            tasks(call.pool, input, 1, &|_, range| {
                // SAFETY: tasks widen different elements.
                unsafe {
                    let to = Shared::<f32>::new(to.pointer()).slice_mut(range.start, range.len());
                    vectorized(|| narrow.widen(x.pointer(), range.start, to));
                }
            });
            (x, out) = (to, scratch(self.wide[1]));
        }
        let first = carried(self.narrow.as_ref(), init);
        let scratch_bytes = self.task_bytes as usize;
        let own;
        let rows = [Some(&self.identity), self.known.as_ref()];
        let first = match rows.into_iter().flatten().find(|row| row.0.starts_with(&first)) {
            Some(row) => row,
            None => {
                own = Row::of(&first);
                &own
            }
        };
        let work = Work {
            fold: &fold,
            pool: call.pool,
            first,
            scratch: scratch(self.tasks),
            scratch_bytes,
            far: input * self.ty.storage_bytes() > sizes::from(CACHED_BYTES),
        };
        // SAFETY: the operand, the result and what is between have these sizes and do not overlap.
        unsafe {
            if let Some(plan) = &self.planes {
                planes::windows(work, plan, lines, x, out);
            } else if self.passes.is_empty() {
                direct::windows(work, &self.direct, lines, x, out);
            } else {
                let mut from = x;
                for (k, &(i, sizes)) in self.passes.iter().enumerate() {
                    let last = k + 1 == self.passes.len();
                    let to = if last { out } else { scratch(self.between[k % 2]) };
                    let first = if last { first } else { &*self.identity };
                    running::along(Work { first, ..work }, &self.axes[i], sizes, from, to);
                    from = to;
                }
            }
        }
        if let Some(narrow) = whole {
            tasks(call.pool, output, 1, &|_, range| {
                // SAFETY: tasks narrow different elements.
                unsafe {
                    let from = Shared::<f32>::new(out.pointer()).slice(range.start, range.len());
                    vectorized(|| narrow.narrow(from, result.pointer(), range.start));
                }
            });
        } else if let Carrier::Integer { .. } = carrier
            && self.ty.bits() < 8
        {
            let unused = 8 - self.ty.bits();
            let signed = self.ty.class() == TypeClass::Signed;
            tasks(call.pool, output, 1, &|_, range| {
                // SAFETY: tasks normalize different elements.
                for x in unsafe { out.slice_mut(range.start, range.len()) } {
                    *x = if signed { ((*x << unused) as i8 >> unused) as u8 } else { *x << unused >> unused };
                }
            });
        }
    }
}
