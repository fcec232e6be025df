//! `select-and-scatter`: for each window of the operand one element is selected, and the source's element for
//! that window is combined into the result there, windows in row-major order.
//!
//! Maxima (or minima) of floats into which sources are added, as in gradients of pooling, have specialized
//! code ([`Sums`]). All other computations are kernels over lanes: first every window selects, then sources
//! are combined in order, as many at once as go to different elements.

mod lines;
#[cfg(target_arch = "x86_64")]
mod sides;
mod sums;

use hlo::{AttrKey, ComputationId, ElementType, InstrId, Module};
use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::{Call, Operation, Sent, Unsupported};
use smallvec::SmallVec;

use self::sums::Sums;
use super::lanes::{Applied, LANES};
use super::width::with_width;
use super::window::{self, Axes, coordinates, locate, outputs, positions};

/// The maximum of tasks.
const TASKS: usize = 64;

/// The operation: arguments are the operand, the source, the initial value, the result.
#[derive(Clone, Debug)]
pub(crate) struct SelectAndScatter {
    axes: Axes,
    bytes: usize,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    /// Maxima or minima of floats are selected; sources are added.
    Sums(Sums),
    /// By kernels.
    General { select: Applied, scatter: Applied },
}

impl SelectAndScatter {
    /// For a `select-and-scatter` instruction.
    pub(super) fn of(module: &Module, id: InstrId) -> Result<SelectAndScatter, Unsupported> {
        let unsupported = |why: &str| Unsupported::new(module, id, why);
        let instr = module.instr(id);
        let shapes: Option<Vec<_>> =
            instr.operands().iter().map(|&o| module.instr(o).shape.as_array()).collect();
        let (Some(&[x, source, init]), Some(out)) = (shapes.as_deref(), instr.shape.as_array()) else {
            return Err(unsupported("of something that is no array"));
        };
        if [x, source, init, out].iter().any(|s| s.is_dynamic()) {
            return Err(unsupported("of dynamic sizes"));
        }
        let axes = window::axes(module, id, &x.dims, &source.dims)?;
        let computation =
            |key| instr.attrs.computation(key).ok_or_else(|| unsupported("without a computation"));
        let (select, scatter) = (computation(AttrKey::Select)?, computation(AttrKey::Scatter)?);
        let (ty, result_type) = (x.element_type, source.element_type);
        if out.element_type != result_type || init.element_type != result_type {
            return Err(unsupported("of a source of another type than the result"));
        }
        // ScratchLayout are counted in 32 bits.
        let near = ty == result_type && u32::try_from(x.elements()).is_ok();
        let how = match near.then(|| Sums::new(module, [select, scatter], ty)).flatten() {
            Some(sums) => How::Sums(sums),
            None => How::General {
                select: Applied::new(
                    module,
                    id,
                    select,
                    [ty; 2].into_iter(),
                    [ElementType::Pred].into_iter(),
                )?,
                scatter: Applied::new(
                    module,
                    id,
                    scatter,
                    [result_type; 2].into_iter(),
                    [result_type].into_iter(),
                )?,
            },
        };
        let bytes = result_type.storage_bytes();
        Ok(SelectAndScatter { axes, bytes, how })
    }

    fn input(&self) -> usize {
        self.axes.iter().map(|a| a.input).product()
    }

    /// # Safety
    /// As [`Operation::run`].
    unsafe fn general(&self, call: &Call<'_>, select: &Applied, scatter: &Applied) {
        let [select_kernel, scatter_kernel] = call.regions else { return };
        let (windows, input) = (outputs(&self.axes), self.input());
        let mut layout = self.layout(select, scatter);
        let bytes = select.scratch_bytes();
        // SAFETY: the layout has these parts.
        let memory_at = |at: u64| unsafe { Shared::<u8>::new(call.scratch).offset(at as usize) };
        let chosen = Shared::<u64>::new(memory_at(layout.chosen).pointer());
        let all = positions(&self.axes);
        let memory = memory_at(layout.select);
        let sent = Sent(*call);
        call.pool.run(TASKS, &|task| {
            let call = sent.get();
            // SAFETY: each task has its own memory.
            let mut lanes =
                select.lanes(select_kernel, unsafe { memory.offset(task * bytes as usize) }.pointer());
            let range = windows * task / TASKS..windows * (task + 1) / TASKS;
            for first in range.clone().step_by(LANES) {
                let count = LANES.min(range.end - first);
                let at: Vec<_> = (first..first + count)
                    .map(|o| coordinates(self.axes.iter().map(|a| a.output), o))
                    .collect();
                // SAFETY: tasks have different windows.
                let chosen = unsafe { chosen.slice_mut(first, count) };
                chosen.fill(u64::MAX);
                for w in 0..all {
                    let mut here = SmallVec::<[(usize, usize); LANES]>::new();
                    for (lane, at) in at.iter().enumerate() {
                        if let Some(element) = locate(&self.axes, at, w) {
                            if chosen[lane] == u64::MAX {
                                chosen[lane] = element as u64;
                            } else {
                                here.push((lane, element));
                            }
                        }
                    }
                    if here.is_empty() {
                        continue;
                    }
                    // SAFETY: indices are in the operand; the result of a comparison is a byte.
                    let stays = unsafe {
                        lanes.take(0, call.arguments[0], here.iter().map(|&(lane, _)| chosen[lane] as usize));
                        lanes.take(1, call.arguments[0], here.iter().map(|&(_, element)| element));
                        lanes.apply(here.len());
                        Shared::<u8>::new(lanes.column(2)).slice(0, here.len())
                    };
                    for (&(lane, element), &stays) in here.iter().zip(stays) {
                        if stays == 0 {
                            chosen[lane] = element as u64;
                        }
                    }
                }
            }
        });
        let out = Shared::<u8>::new(call.arguments[3]);
        with_width!(self.bytes, T => {
            // SAFETY: the initial value is one element; no task runs.
            unsafe {
                let init = *call.arguments[2].cast::<T>();
                Shared::<T>::new(out.pointer()).slice_mut(0, input).fill(init);
            }
        });
        // SAFETY: the layout has these parts, and no task runs.
        let (chosen, seen) = unsafe {
            (
                chosen.slice(0, windows),
                Shared::<u32>::new(memory_at(layout.seen).pointer()).slice_mut(0, BUCKETS),
            )
        };
        seen.fill(0);
        layout.number = 1;
        let mut lanes = scatter.lanes(scatter_kernel, memory_at(layout.scatter).pointer());
        let (mut to, mut from) = (SmallVec::<[usize; LANES]>::new(), SmallVec::<[usize; LANES]>::new());
        let mut flush = |to: &mut SmallVec<[usize; LANES]>, from: &mut SmallVec<[usize; LANES]>| {
            // SAFETY: indices are in the arrays.
            unsafe {
                lanes.take(0, call.arguments[1], from.iter().copied());
                lanes.take(1, out.pointer(), to.iter().copied());
                lanes.apply(to.len());
                lanes.put(2, out, to.iter().copied());
            }
            to.clear();
            from.clear();
        };
        for (window, &element) in chosen.iter().enumerate().filter(|(_, element)| **element != u64::MAX) {
            // An index that this batch has already (or one of the same bucket) begins another batch.
            let bucket = element as usize % BUCKETS;
            if to.len() == LANES || seen[bucket] == layout.number {
                flush(&mut to, &mut from);
                layout.number = layout.number.wrapping_add(1);
                if layout.number == 0 {
                    seen.fill(0);
                    layout.number = 1;
                }
            }
            seen[bucket] = layout.number;
            to.push(element as usize);
            from.push(window);
        }
        flush(&mut to, &mut from);
    }

    fn layout(&self, select: &Applied, scatter: &Applied) -> ScratchLayout {
        let mut layout = Layout::default();
        ScratchLayout {
            chosen: layout.add(outputs(&self.axes) as u64, 8),
            seen: layout.add(BUCKETS as u64, 4),
            scatter: layout.add(scatter.scratch_bytes(), 1),
            select: layout.add(select.scratch_bytes(), TASKS as u64),
            bytes: layout.bytes(),
            number: 0,
        }
    }
}

/// Buckets of the indices that a batch of sources goes to.
const BUCKETS: usize = 1 << 14;

/// Offsets in scratch memory, its size, and the number of the batch.
struct ScratchLayout {
    chosen: u64,
    seen: u64,
    scatter: u64,
    select: u64,
    bytes: u64,
    number: u32,
}

impl Operation for SelectAndScatter {
    fn strategy(&self) -> &'static str {
        match &self.how {
            How::Sums(_) => "selection of extremes, sums scattered",
            How::General { .. } => "by the kernels of select and scatter",
        }
    }

    fn scratch_bytes(&self) -> u64 {
        match &self.how {
            How::Sums(_) => 0,
            How::General { select, scatter } => self.layout(select, scatter).bytes,
        }
    }

    fn regions(&self) -> Vec<ComputationId> {
        match &self.how {
            How::Sums(_) => Vec::new(),
            How::General { select, scatter } => vec![select.computation, scatter.computation],
        }
    }

    fn cost(&self) -> (u64, u64) {
        let (input, windows) = (self.input(), outputs(&self.axes));
        (
            ((2 * input + windows) * self.bytes) as u64,
            (windows as u64).saturating_mul(positions(&self.axes) as u64),
        )
    }

    unsafe fn run(&self, call: Call<'_>) {
        match &self.how {
            // SAFETY: as the caller says.
            How::Sums(sums) => unsafe { sums.run(&self.axes, &call) },
            // SAFETY: as the caller says.
            How::General { select, scatter } => unsafe { self.general(&call, select, scatter) },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    const WINDOWS: &[(&str, &str, &str)] = &[
        ("2,8,8,3", "2,4,4,3", "size=1x2x2x1 stride=1x2x2x1"),
        ("2,3,9,9", "2,3,5,5", "size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1"),
        ("2,9,70", "2,7,70", "size=1x3x1"),
        ("12", "6", "size=3 stride=2 pad=0_1"),
        ("5,6", "7,8", "size=1x1 pad=1_1x1_1"),
        ("6,6", "2,2", "size=2x2 stride=2x2 rhs_dilate=2x2"),
        ("4,4,4", "3,3,3", "size=2x2x2"),
        ("37,9,6", "37,5,3", "size=1x3x3 stride=1x2x2 pad=0_0x1_1x1_0"),
        ("7,6,6,3", "7,3,3,3", "size=1x2x2x1 stride=1x2x2x1"),
        ("3,7,48", "3,3,48", "size=1x3x1 stride=1x2x1"),
        ("2,3,9,41", "2,3,5,21", "size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1"),
        ("3,11,50,2", "3,9,24,2", "size=1x3x4x1 stride=1x1x2x1"),
        ("2,400", "2,133", "size=1x3 stride=1x3 pad=0_0x1_-2"),
        ("5,90", "4,17", "size=2x3 stride=1x5 rhs_dilate=1x4"),
        ("40000", "39998", "size=3"),
        ("2,20,0", "2,10,0", "size=1x2x1 stride=1x2x1"),
        ("200,180", "201,178", "size=3x3 pad=2_1x0_0"),
        ("2,5,5,64", "2,2,3,64", "size=1x2x2x1 stride=1x3x2x1 pad=0_0x0_0x0_1x0_0"),
    ];

    fn text(ty: &str, select: &str, scatter: &str, (operand, source, window): (&str, &str, &str)) -> String {
        format!(
            "HloModule m\ns {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  {select}\n}}\nc {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  {scatter}\n}}\nENTRY main {{\n  x = {ty}[{operand}] parameter(0)\n  y = {ty}[{source}] parameter(1)\n  i = {ty}[] parameter(2)\n  ROOT r = {ty}[{operand}] select-and-scatter(x, y, i), window={{{window}}}, select=s, scatter=c\n}}\n"
        )
    }

    #[test]
    fn gradients_of_pooling() {
        for &window in WINDOWS {
            for (ty, select) in [
                ("f32", "a, b), direction=GE"),
                ("f32", "b, a), direction=GT"),
                ("f64", "a, b), direction=LE"),
                ("f64", "b, a), direction=GE"),
                ("bf16", "a, b), direction=GE"),
                ("bf16", "b, a), direction=LE"),
                ("f16", "a, b), direction=LT"),
                ("f16", "a, b), direction=GE"),
            ] {
                let select = format!("ROOT r = pred[] compare({select}");
                for seed in 0..3 {
                    check(
                        &text(ty, &select, "ROOT r = TY[] add(a, b)".replace("TY", ty).as_str(), window),
                        seed,
                        seed > 0,
                        false,
                        &[],
                    );
                }
            }
        }
    }

    /// `a >= b` of s32.
    unsafe extern "C" fn select(arguments: *const *mut u8, begin: u64, end: u64) {
        // SAFETY: two arrays of s32 and one of bytes.
        unsafe {
            let x = |k: usize| (*arguments.add(k)).cast::<i32>();
            for i in begin as usize..end as usize {
                *(*arguments.add(2)).add(i) = u8::from(*x(0).add(i) >= *x(1).add(i));
            }
        }
    }

    /// `a - b` of s32, the source first.
    unsafe extern "C" fn scatter(arguments: *const *mut u8, begin: u64, end: u64) {
        // SAFETY: three arrays of s32.
        unsafe {
            let x = |k: usize| (*arguments.add(k)).cast::<i32>();
            for i in begin as usize..end as usize {
                *x(2).add(i) = (*x(0).add(i)).wrapping_sub(*x(1).add(i));
            }
        }
    }

    #[test]
    fn any_computations() {
        for &window in WINDOWS {
            let text = text(
                "s32",
                "ROOT r = pred[] compare(a, b), direction=GE",
                "ROOT r = s32[] subtract(a, b)",
                window,
            );
            check(&text, 3, true, true, &[select, scatter]);
        }
    }
}
