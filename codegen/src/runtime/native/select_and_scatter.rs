//! `select-and-scatter`: for each window of the operand one element is selected, and the source's element for that window is combined into the result there,
//! windows in row-major order.
//!
//! Maxima (or minima) into which sources are added, as gradients of pooling are, run a row of neighbours at a time. Small arrays one behind the other, without
//! neighbours, become each other's: elements at the same place of sixteen of them. All other computations are kernels over lanes:
//! first every window selects, then sources are combined in order, as many at once as go to different places.

use hlo::attrs::Direction;
use hlo::{AttrKey, ComputationId, ElementType, InstrId, Module, Opcode};
use smallvec::SmallVec;

#[cfg(target_arch = "x86_64")]
use super::dot::{product::with_workspace, transpose};
use super::lanes::{Applied, LANES};
use super::memory::{Layout, Shared, with_width};
use super::region::{Node, Scalars};
use super::simd::vectorized;
use super::window::{self, Axes, Axis, coordinates, locate, outputs, positions};
use super::{Call, Operation, Sent};
use crate::Unsupported;
#[cfg(target_arch = "x86_64")]
use crate::isa::Features;

/// Neighbours that select together.
const WIDE: usize = 64;

/// Tasks that work is cut into.
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
    /// The selected element stays if it compares so with a later one; sources are added.
    Sums { double: bool, stays: Direction },
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
        let (ty, made) = (x.element_type, source.element_type);
        if out.element_type != made || init.element_type != made {
            return Err(unsupported("of a source of another type than the result"));
        }
        let sums = Scalars::of(module, scatter).and_then(|s| s.reducer()) == Some(Opcode::Add);
        let stays = Scalars::of(module, select).and_then(|s| stays(&s));
        let float = ty == made && matches!(ty, ElementType::F32 | ElementType::F64);
        let how = match stays {
            // Places are counted in 32 bits.
            Some(stays) if sums && float && u32::try_from(x.elements()).is_ok() => {
                How::Sums { double: ty == ElementType::F64, stays }
            }
            Some(_) | None => How::General {
                select: Applied::new(
                    module,
                    id,
                    select,
                    [ty; 2].into_iter(),
                    [ElementType::Pred].into_iter(),
                )?,
                scatter: Applied::new(module, id, scatter, [made; 2].into_iter(), [made].into_iter())?,
            },
        };
        let bytes = made.storage_bytes();
        Ok(SelectAndScatter { axes, bytes, how })
    }

    fn input(&self) -> usize {
        self.axes.iter().map(|a| a.input).product()
    }

    /// # Safety
    /// As [`Operation::run`].
    unsafe fn general(&self, call: &Call<'_>, select: &Applied, scatter: &Applied) {
        let &[select_kernel, scatter_kernel] = call.regions else { return };
        let (windows, input) = (outputs(&self.axes), self.input());
        let mut layout = self.layout(select, scatter);
        let bytes = select.scratch_bytes();
        // SAFETY: the layout has these places.
        let place = |at: u64| unsafe { Shared::<u8>::new(call.scratch).offset(at as usize) };
        let chosen = Shared::<u64>::new(place(layout.chosen).pointer());
        let all = positions(&self.axes);
        let memory = place(layout.select);
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
                    // SAFETY: places are in the operand; the result of a comparison is a byte.
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
        // SAFETY: the layout has these places, and no task runs.
        let (chosen, seen) = unsafe {
            (chosen.slice(0, windows), Shared::<u32>::new(place(layout.seen).pointer()).slice_mut(0, SEEN))
        };
        seen.fill(0);
        layout.number = 1;
        let mut lanes = scatter.lanes(scatter_kernel, place(layout.scatter).pointer());
        let (mut to, mut from) = (SmallVec::<[usize; LANES]>::new(), SmallVec::<[usize; LANES]>::new());
        let mut flush = |to: &mut SmallVec<[usize; LANES]>, from: &mut SmallVec<[usize; LANES]>| {
            // SAFETY: places are in the arrays.
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
            // A place that this lot has already (or one that looks like it) begins another lot.
            let bucket = element as usize % SEEN;
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

    fn layout(&self, select: &Applied, scatter: &Applied) -> Places {
        let mut layout = Layout::default();
        Places {
            chosen: layout.add(outputs(&self.axes) as u64, 8),
            seen: layout.add(SEEN as u64, 4),
            scatter: layout.add(scatter.scratch_bytes(), 1),
            select: layout.add(select.scratch_bytes(), TASKS as u64),
            bytes: layout.bytes(),
            number: 0,
        }
    }
}

/// Buckets of places that a lot of sources goes to.
const SEEN: usize = 1 << 14;

/// Where things are in scratch memory, its size, and the number of the lot.
struct Places {
    chosen: u64,
    seen: u64,
    scatter: u64,
    select: u64,
    bytes: u64,
    number: u32,
}

/// How the selected element (parameter 0) compares with one that does not replace it, if the computation is such a comparison.
fn stays(s: &Scalars) -> Option<Direction> {
    let &[result] = &s.results[..] else { return None };
    let &Node::Compare(direction, false, a, b) = s.get(result) else { return None };
    let turned = match direction {
        Direction::Ge => Direction::Le,
        Direction::Gt => Direction::Lt,
        Direction::Le => Direction::Ge,
        Direction::Lt => Direction::Gt,
        Direction::Eq | Direction::Ne => return None,
    };
    match (s.parameter(a), s.parameter(b)) {
        (Some(0), Some(1)) => Some(direction),
        (Some(1), Some(0)) => Some(turned),
        (_, _) => None,
    }
}

/// A float type, with the index type of its lanes' selection.
trait Number: Copy + PartialOrd + std::ops::Add<Output = Self> + Send + Sync + Default {}
impl Number for f32 {}
impl Number for f64 {}

/// The windows of one outer index, of neighbours `lanes`.
///
/// # Safety
/// The pointers are to the outer index's parts of the arrays, whose innermost dimension is `inner`.
#[inline(always)]
unsafe fn plane<T: Number>(
    axes: &[Axis],
    [x, source, out]: [Shared<T>; 3],
    init: T,
    inner: usize,
    lanes: std::ops::Range<usize>,
    stays: impl Fn(T, T) -> bool + Copy,
) {
    let n = lanes.len();
    let sizes: usize = axes.iter().map(|a| a.input).product();
    // SAFETY: as the caller says, here and below.
    unsafe {
        for i in 0..sizes {
            out.slice_mut(i * inner + lanes.start, n).fill(init);
        }
        let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, axes.len());
        let (mut best, mut place) = ([T::default(); WIDE], [0u32; WIDE]);
        for window in 0..outputs(axes) {
            let mut any = false;
            visit(axes, &at, 0, &mut |i| {
                let row = x.slice(i * inner + lanes.start, n);
                if any {
                    for l in 0..n {
                        let keep = stays(best[l], row[l]);
                        best[l] = if keep { best[l] } else { row[l] };
                        place[l] = if keep { place[l] } else { i as u32 };
                    }
                } else {
                    any = true;
                    best[..n].copy_from_slice(row);
                    place[..n].fill(i as u32);
                }
            });
            if any {
                let source = source.slice(window * inner + lanes.start, n);
                for l in 0..n {
                    let to = out.pointer().add(place[l] as usize * inner + lanes.start + l);
                    *to = source[l] + *to;
                }
            }
            for (at, axis) in at.iter_mut().zip(axes).rev() {
                *at += 1;
                if *at < axis.output {
                    break;
                }
                *at = 0;
            }
        }
    }
}

/// The most elements of arrays that are put side by side, and so many of them are.
#[cfg(target_arch = "x86_64")]
const PLACES: usize = 1 << 14;
#[cfg(target_arch = "x86_64")]
const SIDES: usize = 16;

/// All windows of `outer` arrays of f32, of so many elements and windows each, without neighbours.
///
/// # Safety
/// As [`Operation::run`]; the machine has AVX-512.
#[cfg(target_arch = "x86_64")]
unsafe fn side_by_side(
    call: &Call<'_>,
    axes: &[Axis],
    arrays: [Shared<f32>; 3],
    [outer, elements, windows]: [usize; 3],
    stays: Direction,
) {
    let pitch = SIDES * size_of::<f32>();
    // SAFETY: the initial value is one element.
    let init = unsafe { *call.arguments[2].cast::<f32>() };
    call.pool.run(outer.div_ceil(SIDES), &|group| {
        let planes = group * SIDES..outer.min((group + 1) * SIDES);
        with_workspace((2 * elements + windows) * pitch, |memory| {
            let memory = Shared::<f32>::new(memory);
            // SAFETY: planes are in the arrays, those of the result are this task's, and there is memory for them.
            unsafe {
                let (x, out) = (memory, memory.offset(elements * SIDES));
                let source = out.offset(elements * SIDES);
                let plane_of = |array: Shared<f32>, n: usize, i: usize| array.offset(i * n).pointer().cast::<u8>();
                for (array, n, to) in [(arrays[0], elements, x), (arrays[1], windows, source)] {
                    let parts: SmallVec<[*const u8; SIDES]> =
                        planes.clone().map(|i| plane_of(array, n, i).cast_const()).collect();
                    transpose::columns(&parts, n, to.pointer().cast(), pitch);
                }
                macro_rules! run {
                    ($op:tt) => {
                        vectorized(|| plane(axes, [x, source, out], init, SIDES, 0..planes.len(), |a, b| a $op b))
                    };
                }
                match stays {
                    Direction::Ge => run!(>=),
                    Direction::Gt => run!(>),
                    Direction::Le => run!(<=),
                    _ => run!(<),
                }
                let parts: SmallVec<[*mut u8; SIDES]> =
                    planes.clone().map(|i| plane_of(arrays[2], elements, i)).collect();
                transpose::apart(out.pointer().cast_const().cast(), pitch, elements, &parts);
            }
        });
    });
}

/// Calls `each` with the index of every element of a window that exists, row-major.
#[inline(always)]
fn visit(axes: &[Axis], output: &[usize], base: usize, each: &mut impl FnMut(usize)) {
    match (axes, output) {
        ([a], [o]) if a.is_plain() => a.range(*o).for_each(|p| each(base * a.input + p)),
        ([a, b], [o, q]) if a.is_plain() && b.is_plain() => {
            for p in a.range(*o) {
                b.range(*q).for_each(|r| each((base * a.input + p) * b.input + r));
            }
        }
        (axes, output) => (0..positions(axes)).filter_map(|w| locate(axes, output, w)).for_each(each),
    }
}

impl Operation for SelectAndScatter {
    fn scratch_bytes(&self) -> u64 {
        match &self.how {
            How::Sums { .. } => 0,
            How::General { select, scatter } => self.layout(select, scatter).bytes,
        }
    }

    fn regions(&self) -> Vec<ComputationId> {
        match &self.how {
            How::Sums { .. } => Vec::new(),
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
        let (double, stays) = match &self.how {
            // SAFETY: as the caller says.
            How::General { select, scatter } => return unsafe { self.general(&call, select, scatter) },
            How::Sums { double, stays } => (*double, *stays),
        };
        let leading = self.axes.iter().take_while(|a| a.is_identity()).count();
        let trailing = self.axes[leading..].iter().rev().take_while(|a| a.is_identity()).count();
        let middle = &self.axes[leading..self.axes.len() - trailing];
        let size = |axes: &[Axis]| axes.iter().map(|a| a.input).product::<usize>();
        let (outer, inner) = (size(&self.axes[..leading]), size(&self.axes[self.axes.len() - trailing..]));
        let (elements, windows) = (size(middle) * inner, outputs(middle) * inner);
        #[cfg(target_arch = "x86_64")]
        if inner == 1 && !double && outer > 1 && elements.max(windows) <= PLACES && Features::here().avx512 {
            let [x, source, out] = [call.arguments[0], call.arguments[1], call.arguments[3]].map(Shared::new);
            // SAFETY: as the caller says; the machine has the instructions.
            return unsafe {
                side_by_side(&call, middle, [x, source, out], [outer, elements, windows], stays);
            };
        }
        let blocks = inner.div_ceil(WIDE);
        let items = outer * blocks;
        let tasks = items.min(4 * TASKS);
        let sent = Sent(call);
        call.pool.run(tasks, &|task| {
            let call = sent.get();
            for item in items * task / tasks..items * (task + 1) / tasks {
                let (o, first) = (item / blocks, item % blocks * WIDE);
                let lanes = first..inner.min(first + WIDE);
                macro_rules! run {
                    ($t:ty, $op:tt) => {
                        // SAFETY: as the caller says; items have different places in the result.
                        vectorized(|| unsafe {
                            let part = |i: usize, n: usize| Shared::<$t>::new(call.arguments[i]).offset(o * n);
                            let arrays = [part(0, elements), part(1, windows), part(3, elements)];
                            plane(middle, arrays, *call.arguments[2].cast::<$t>(), inner, lanes.clone(), |a, b| a $op b)
                        })
                    };
                }
                match (double, stays) {
                    (false, Direction::Ge) => run!(f32, >=),
                    (false, Direction::Gt) => run!(f32, >),
                    (false, Direction::Le) => run!(f32, <=),
                    (false, _) => run!(f32, <),
                    (true, Direction::Ge) => run!(f64, >=),
                    (true, Direction::Gt) => run!(f64, >),
                    (true, Direction::Le) => run!(f64, <=),
                    (true, _) => run!(f64, <),
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::runtime::native::testing::check;

    const WINDOWS: &[(&str, &str, &str)] = &[
        ("2,8,8,3", "2,4,4,3", "size=1x2x2x1 stride=1x2x2x1"),
        ("2,3,9,9", "2,3,5,5", "size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1"),
        ("2,9,70", "2,7,70", "size=1x3x1"),
        ("12", "6", "size=3 stride=2 pad=0_1"),
        ("5,6", "7,8", "size=1x1 pad=1_1x1_1"),
        ("6,6", "2,2", "size=2x2 stride=2x2 rhs_dilate=2x2"),
        ("4,4,4", "3,3,3", "size=2x2x2"),
        ("37,9,6", "37,5,3", "size=1x3x3 stride=1x2x2 pad=0_0x1_1x1_0"),
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
