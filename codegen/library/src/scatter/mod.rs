//! `scatter`: of one operand by a well-known operation ([`direct`]); or by any computation, of any number of
//! operands, index vectors in order and, within a window, elements in row-major order, both literally;
//! updates of different elements are combined in lanes.

mod direct;
mod ops;

use hlo::{AttrKey, ComputationId, ElementType, InstrId, Module, TypeClass};
use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::{Call, Operation, Unsupported};
use smallvec::SmallVec;

use self::direct::{Component, Direct, Outer, Parts};
use super::lanes::{Applied, LANES, Lanes};
use super::region::Scalars;
use super::width::with_width;

type Sizes = SmallVec<[usize; 6]>;

/// Buckets of the offsets that a batch of updates goes to.
const BUCKETS: usize = 1 << 14;

/// The operation: arguments are the operands, the indices, the updates, the results.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    /// Bytes of the elements of each operand.
    bytes: SmallVec<[usize; 4]>,
    /// Elements of each.
    elements: usize,
    index_type: ElementType,
    /// Dimensions of the batch: sizes, and strides in the indices and in the updates.
    batch: Vec<Dimension>,
    /// Dimensions of the window: sizes, and strides in the operands and in the updates.
    window: Vec<Dimension>,
    /// For each component of an index vector the last start at which the window fits, and the stride in the
    /// operands.
    components: Vec<(usize, usize)>,
    component_stride: usize,
    /// Batching dimensions: which of the batch, and its stride in the operands.
    batching: Vec<(usize, usize)>,
    /// Whether some window fits.
    fits: bool,
    how: How,
    direct: Option<Direct>,
}

/// A dimension of two arrays at once.
#[derive(Clone, Copy, Debug)]
struct Dimension {
    size: usize,
    /// Strides in both.
    strides: [usize; 2],
}

#[derive(Clone, Debug)]
enum How {
    /// The operand stays.
    Keep,
    /// The update replaces it.
    Replace,
    /// By a kernel.
    Apply(Applied),
}

fn strides(sizes: &[usize]) -> Sizes {
    let mut strides: Sizes = SmallVec::from_elem(1, sizes.len());
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d];
    }
    strides
}

impl Scatter {
    /// For a `scatter` instruction.
    pub(super) fn of(module: &Module, id: InstrId) -> Result<Scatter, Unsupported> {
        let unsupported = |why: &str| Unsupported::new(module, id, why);
        let instr = module.instr(id);
        let shapes: Option<Vec<_>> =
            instr.operands().iter().map(|&o| module.instr(o).shape.as_array()).collect();
        let shapes = shapes
            .filter(|s| s.len() % 2 == 1 && s.len() > 2)
            .ok_or_else(|| unsupported("of other than arrays"))?;
        let n = shapes.len() / 2;
        let (operands, index, updates) = (&shapes[..n], shapes[n], &shapes[n + 1..]);
        if shapes.iter().any(|s| s.is_dynamic()) {
            return Err(unsupported("of dynamic sizes"));
        }
        let sizes = |dims: &[i64]| dims.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect::<Sizes>();
        let list = |key| sizes(instr.attrs.ints_or_empty(key));
        let (x, i, u) = (sizes(&operands[0].dims), sizes(&index.dims), sizes(&updates[0].dims));
        let (x_strides, i_strides, u_strides) = (strides(&x), strides(&i), strides(&u));
        let vector =
            instr.attrs.int(AttrKey::IndexVectorDim).and_then(|d| usize::try_from(d).ok()).unwrap_or(i.len());
        let (window_dims, inserted) = (list(AttrKey::UpdateWindowDims), list(AttrKey::InsertedWindowDims));
        let (batching, indices_batching) =
            (list(AttrKey::InputBatchingDims), list(AttrKey::ScatterIndicesBatchingDims));
        // Dimensions of the operands that windows have, and of the updates that they do not.
        let kept = (0..x.len()).filter(|d| !inserted.contains(d) && !batching.contains(d));
        let mut window_sizes: Sizes = SmallVec::from_elem(1, x.len());
        let mut window = Vec::new();
        for (to, &from) in kept.zip(&window_dims) {
            window_sizes[to] = u[from];
            window.push(Dimension { size: u[from], strides: [x_strides[to], u_strides[from]] });
        }
        let scattered = (0..u.len()).filter(|d| !window_dims.contains(d));
        let index_dims: Sizes = (0..i.len()).filter(|&d| d != vector).collect();
        let batch: Vec<Dimension> = index_dims
            .iter()
            .zip(scattered)
            .map(|(&d, from)| Dimension { size: i[d], strides: [i_strides[d], u_strides[from]] })
            .collect();
        if batch.len() != index_dims.len() || window.len() != window_dims.len() {
            return Err(unsupported("with such dimension numbers"));
        }
        let last = |d: usize| x[d].checked_sub(window_sizes[d]);
        let map = list(AttrKey::ScatterDimsToOperandDims);
        let components: Vec<(usize, usize)> = list(AttrKey::ScatterDimsToOperandDims)
            .iter()
            .map(|&d| (last(d).unwrap_or(0), x_strides[d]))
            .collect();
        let batch_dimension = |d: &usize| index_dims.iter().position(|i| i == d);
        let batching: Option<Vec<_>> = batching
            .iter()
            .zip(&indices_batching)
            .map(|(&d, from)| Some((batch_dimension(from)?, x_strides[d])))
            .collect();
        let batching = batching.ok_or_else(|| unsupported("with such batching dimensions"))?;
        let fits = (0..x.len()).all(|d| last(d).is_some());
        let computation =
            instr.attrs.computation(AttrKey::ToApply).ok_or_else(|| unsupported("without a computation"))?;
        let types = |shapes: &[&hlo::ArrayShape]| shapes.iter().map(|s| s.element_type).collect::<Vec<_>>();
        let (given, more) = (types(operands), types(updates));
        let scalars = Scalars::of(module, computation).filter(|_| n == 1 && given == more);
        let selected = scalars.as_ref().and_then(Scalars::selected);
        let op = scalars.as_ref().and_then(Scalars::reducer);
        let component_stride = i_strides.get(vector).copied().unwrap_or(0);
        let integral = matches!(index.element_type.class(), TypeClass::Signed | TypeClass::Unsigned);
        let known = n == 1 && fits && integral && (op.is_some() || selected == Some(1));
        let direct = known.then(|| {
            let components =
                components.iter().zip(0..).map(|(&(last, stride), k): (&(usize, usize), usize)| Component {
                    last,
                    stride,
                    step: k * component_stride,
                });
            let numbers = Numbers { sizes: &x, window: &window_sizes, indexed: &map, batching: &batching };
            let divided = numbers.divide(&x_strides, &window, &batch);
            Direct::of(Parts {
                ty: given[0],
                op,
                elements: x.iter().product(),
                index_type: index.element_type,
                outer: divided.outer,
                batch: divided.batch,
                components: components.collect(),
                window: divided.window,
                run: divided.run,
                row: divided.row,
                apart: divided.apart,
            })
        });
        let how = match selected {
            Some(0) => How::Keep,
            Some(_) => How::Replace,
            None => How::Apply(Applied::new(
                module,
                id,
                computation,
                given.iter().chain(&more).copied(),
                given.iter().copied(),
            )?),
        };
        if !matches!(index.element_type.class(), TypeClass::Signed | TypeClass::Unsigned) {
            return Err(unsupported("with indices that are no integers"));
        }
        Ok(Scatter {
            bytes: given.iter().map(|ty| ty.storage_bytes()).collect(),
            elements: x.iter().product(),
            index_type: index.element_type,
            batch,
            window,
            components,
            component_stride,
            batching,
            fits,
            how,
            direct: direct.flatten(),
        })
    }

    /// A `scatter` in a fusion of nothing else, if it is of a kind that is faster than a kernel of its own:
    /// its result may be its operand.
    pub(super) fn of_fusion(module: &Module, id: InstrId) -> Option<Scatter> {
        let known = |scatter: &Scatter| scatter.direct.is_some();
        Scatter::of(module, id).ok().filter(known)
    }

    /// The index at an offset of the index array; `None`: it is negative or too large.
    unsafe fn index(&self, indices: *const u8, at: usize) -> Option<usize> {
        let signed = self.index_type.class() == TypeClass::Signed;
        macro_rules! read {
            ($s:ty, $u:ty) => {{
                // SAFETY: the caller says that the offset is in the array.
                let x = unsafe { *indices.cast::<$u>().add(at) };
                if signed { usize::try_from(x as $s).ok() } else { usize::try_from(x).ok() }
            }};
        }
        match self.index_type.storage_bytes() {
            1 => read!(i8, u8),
            2 => read!(i16, u16),
            4 => read!(i32, u32),
            _ => read!(i64, u64),
        }
    }

    /// Calls `each` with offsets in the operands and in the updates, in order.
    ///
    /// # Safety
    /// `indices` is the index array.
    unsafe fn pairs(&self, indices: *const u8, each: &mut impl FnMut(usize, usize)) {
        if !self.fits {
            return;
        }
        odometer(&self.batch, &mut |at, [index, update]| {
            let mut base = 0;
            for (k, &(last, stride)) in self.components.iter().enumerate() {
                // SAFETY: the batch and the components are those of the index array.
                match unsafe { self.index(indices, index + k * self.component_stride) } {
                    Some(start) if start <= last => base += start * stride,
                    Some(_) | None => return,
                }
            }
            for &(dimension, stride) in &self.batching {
                base += at[dimension] * stride;
            }
            odometer(&self.window, &mut |_, [to, from]| each(base + to, update + from));
        });
    }

    fn layout(&self, applied: &Applied) -> [u64; 3] {
        let mut layout = Layout::default();
        let (lanes, seen) = (layout.add(applied.scratch_bytes(), 1), layout.add(BUCKETS as u64, 4));
        [lanes, seen, layout.bytes()]
    }
}

/// Dimension numbers: how index vectors and windows are mapped to the operand.
struct Numbers<'a> {
    /// Sizes of the operand and of windows in it.
    sizes: &'a [usize],
    window: &'a [usize],
    /// The dimensions of the components of index vectors.
    indexed: &'a [usize],
    /// Dimensions of the batch that are dimensions of the operand, and their strides in that.
    batching: &'a [(usize, usize)],
}

/// The work of a scatter, divided as [`Parts`] says.
struct Divided {
    outer: Vec<Outer>,
    batch: Vec<Dimension>,
    window: Vec<Dimension>,
    run: usize,
    row: usize,
    apart: bool,
}

impl Numbers<'_> {
    fn divide(&self, strides: &[usize], window: &[Dimension], batch: &[Dimension]) -> Divided {
        let mut outer = Vec::new();
        for &(dimension, stride) in self.batching {
            let Dimension { size, strides: [index, from] } = batch[dimension];
            outer.push(Outer { size, strides: [stride, index, from] });
        }
        let batched = |d: usize| self.batching.iter().any(|b| b.0 == d);
        let batch =
            batch.iter().enumerate().filter(|(d, _)| !batched(*d)).map(|(_, &dimension)| dimension).collect();
        // The dimension of the operand that each dimension of the window is: they are in its order.
        let dimension = |w: &Dimension| {
            (0..strides.len()).rfind(|&d| strides[d] == w.strides[0] && self.window[d] == w.size)
        };
        let mut joined: Vec<Dimension> = window.to_vec();
        direct::join(&mut joined);
        let run = match joined.last() {
            Some(&Dimension { size, strides: [1, 1] }) => size,
            Some(_) | None => 1,
        };
        // What is not in the run.
        let mut rest: Vec<Dimension> = window.iter().copied().filter(|w| w.size != 1).collect();
        let mut inner = 1;
        while inner < run {
            inner *= rest.pop().map_or(run, |w| w.size);
        }
        let free = |w: &Dimension| dimension(w).is_some_and(|d| !self.indexed.contains(&d));
        let (free, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(free);
        outer.extend(free.iter().map(|w| Outer { size: w.size, strides: [w.strides[0], 0, w.strides[1]] }));
        let mut row = 0;
        for (d, &stride) in strides.iter().enumerate() {
            if self.indexed.contains(&d) {
                if self.window[d] != 1 {
                    break;
                }
                row = stride;
            } else if self.window[d] != 1 && stride < run {
                break;
            }
        }
        // A window along a dimension that it does not cover may begin inside of another one.
        let apart = self.indexed.iter().all(|&d| self.window[d] == 1 || self.window[d] == self.sizes[d]);
        let row = if self.sizes.is_empty() { 0 } else { row };
        Divided { outer, batch, window: rest, run, row, apart }
    }
}

/// Iterates over all positions of dimensions, row-major: their coordinates, and offsets in both arrays.
fn odometer(dimensions: &[Dimension], each: &mut impl FnMut(&[usize], [usize; 2])) {
    if dimensions.iter().any(|d| d.size == 0) {
        return;
    }
    let mut at: Sizes = SmallVec::from_elem(0, dimensions.len());
    let mut offsets = [0usize; 2];
    loop {
        each(&at, offsets);
        let mut moved = false;
        for (at, d) in at.iter_mut().zip(dimensions).rev() {
            *at += 1;
            if *at < d.size {
                offsets = [offsets[0] + d.strides[0], offsets[1] + d.strides[1]];
                moved = true;
                break;
            }
            offsets = [offsets[0] - (d.size - 1) * d.strides[0], offsets[1] - (d.size - 1) * d.strides[1]];
            *at = 0;
        }
        if !moved {
            return;
        }
    }
}

impl Operation for Scatter {
    fn strategy(&self) -> &'static str {
        match (&self.direct, &self.how) {
            (Some(_), _) => "scatter by a known operation",
            (None, How::Keep | How::Replace) => "scatter by copies",
            (None, How::Apply(_)) => "scatter by the combiner's kernel",
        }
    }

    fn scratch_bytes(&self) -> u64 {
        if let Some(direct) = &self.direct {
            return direct.scratch_bytes();
        }
        match &self.how {
            How::Keep | How::Replace => 0,
            How::Apply(applied) => self.layout(applied)[2],
        }
    }

    fn regions(&self) -> Vec<ComputationId> {
        match &self.how {
            How::Apply(_) if self.direct.is_some() => Vec::new(),
            How::Keep | How::Replace => Vec::new(),
            How::Apply(applied) => vec![applied.computation],
        }
    }

    fn cost(&self) -> (u64, u64) {
        let updates = self.batch.iter().chain(&self.window).fold(1usize, |n, d| n.saturating_mul(d.size));
        let bytes: usize = self.bytes.iter().sum();
        let moved = self.elements.saturating_mul(2).saturating_add(updates.saturating_mul(3));
        (moved.saturating_mul(bytes) as u64, updates as u64)
    }

    unsafe fn run(&self, call: Call<'_>) {
        if let Some(direct) = &self.direct {
            // SAFETY: as the caller says.
            return unsafe { direct.run(call) };
        }
        let n = self.bytes.len();
        let (indices, updates, results) =
            (call.arguments[n], &call.arguments[n + 1..], &call.arguments[2 * n + 1..]);
        for (k, &bytes) in self.bytes.iter().enumerate() {
            // SAFETY: operand and result are arrays of the same size that do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(call.arguments[k], results[k], bytes * self.elements) };
        }
        match &self.how {
            How::Keep => {}
            How::Replace => with_width!(self.bytes[0], T => {
                let (from, to) = (updates[0].cast::<T>(), results[0].cast::<T>());
                // SAFETY: pairs are offsets in the arrays.
                unsafe { self.pairs(indices, &mut |at, update| *to.add(at) = *from.add(update)) };
            }),
            How::Apply(applied) => {
                let Some(kernel) = call.regions.first() else { return };
                let [lanes, seen, _] = self.layout(applied);
                // SAFETY: the layout has these parts, and no task runs.
                let (mut lanes, seen) = unsafe {
                    (
                        applied.lanes(kernel, call.scratch.add(lanes as usize)),
                        Shared::<u32>::new(call.scratch.add(seen as usize)).slice_mut(0, BUCKETS),
                    )
                };
                seen.fill(0);
                let (mut to, mut from) =
                    (SmallVec::<[usize; LANES]>::new(), SmallVec::<[usize; LANES]>::new());
                let mut lot = 1u32;
                // SAFETY: pairs are offsets in the arrays.
                unsafe {
                    self.pairs(indices, &mut |at, update| {
                        // An offset that this batch has already (or one of the same bucket) begins
                        // another lot.
                        if to.len() == LANES || seen[at % BUCKETS] == lot {
                            combine(&mut lanes, n, results, updates, &to, &from);
                            to.clear();
                            from.clear();
                            lot = lot.wrapping_add(1);
                            if lot == 0 {
                                seen.fill(0);
                                lot = 1;
                            }
                        }
                        seen[at % BUCKETS] = lot;
                        to.push(at);
                        from.push(update);
                    });
                    combine(&mut lanes, n, results, updates, &to, &from);
                }
            }
        }
    }
}

/// Combines updates into different elements of the results.
unsafe fn combine(
    lanes: &mut Lanes<'_>,
    n: usize,
    results: &[*mut u8],
    updates: &[*mut u8],
    to: &[usize],
    from: &[usize],
) {
    // SAFETY: the caller says that the offsets are in the arrays.
    unsafe {
        for k in 0..n {
            lanes.take(k, results[k], to.iter().copied());
            lanes.take(n + k, updates[k], from.iter().copied());
        }
        lanes.apply(to.len());
        for (k, &result) in results.iter().enumerate().take(n) {
            lanes.put(2 * n + k, Shared::new(result), to.iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{check, close};

    /// `a - 2 b` of s32.
    unsafe extern "C" fn twice(arguments: *const *mut u8, begin: u64, end: u64) {
        // SAFETY: three arrays of s32.
        unsafe {
            let x = |k: usize| (*arguments.add(k)).cast::<i32>();
            for i in begin as usize..end as usize {
                *x(2).add(i) = (*x(0).add(i)).wrapping_sub((*x(1).add(i)).wrapping_mul(2));
            }
        }
    }

    /// Operand, indices, updates, dimension numbers.
    const CASES: &[(&str, &str, &str, &str)] = &[
        (
            "9",
            "s32[20,1]",
            "20",
            "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            "9",
            "u8[20]",
            "20",
            "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            "5,4",
            "s64[7,1]",
            "7,4",
            "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            "6,7",
            "s32[2,3,4]",
            "3,2,3,4",
            "update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0",
        ),
        (
            "3,5,4",
            "s16[3,6,1]",
            "3,6,2",
            "update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2",
        ),
        (
            "4",
            "s32[0,1]",
            "0",
            "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
    ];

    fn text((operand, indices, updates, numbers): (&str, &str, &str, &str), ty: &str, body: &str) -> String {
        format!(
            "HloModule m\nf {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n{body}}}\nENTRY main {{\n  x = {ty}[{operand}] parameter(0)\n  i = {indices} parameter(1)\n  u = {ty}[{updates}] parameter(2)\n  ROOT r = {ty}[{operand}] scatter(x, i, u), {numbers}, to_apply=f\n}}\n"
        )
    }

    #[test]
    fn literally_in_order() {
        for &case in CASES {
            for seed in 0..4 {
                check(
                    &text(
                        case,
                        "s32",
                        "  two = s32[] constant(2)\n  t = s32[] multiply(b, two)\n  ROOT r = s32[] subtract(a, t)\n",
                    ),
                    seed,
                    true,
                    true,
                    &[twice],
                );
                check(&text(case, "f64", "  ROOT r = f64[] copy(b)\n"), seed, true, true, &[]);
                check(&text(case, "s4", "  ROOT r = s4[] copy(a)\n"), seed, true, true, &[]);
            }
        }
    }

    /// Enough updates for several threads: few offsets with long windows, disjoint windows, windows that
    /// overlap, dimensions beside, few offsets.
    const LARGE: &[(&str, &str, &str, &str)] = &[
        (
            "5,2501",
            "s32[20]",
            "20,2501",
            "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            "40000",
            "u16[20000,1]",
            "20000",
            "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            "300,37",
            "u8[1000]",
            "1000,37",
            "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            "250,250,2",
            "u8[6,90,50,2]",
            "6,90,50,2",
            "update_window_dims={3}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=3",
        ),
        (
            "120,90,5",
            "s8[50,2]",
            "50,100,40,3",
            "update_window_dims={1,2,3}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,2}, index_vector_dim=1",
        ),
        (
            "40,200",
            "s8[2,300]",
            "40,2,300",
            "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=2",
        ),
        (
            "30,100,7",
            "s64[50,30,1]",
            "50,30,7",
            "update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, index_vector_dim=2",
        ),
        (
            "11",
            "s32[140000,1]",
            "140000",
            "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            "500,8",
            "u8[3000,1]",
            "3000,8",
            "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            "200,16",
            "u8[2000,1]",
            "2000,16",
            "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            "50,3",
            "s8[3,10000]",
            "3,10000,3",
            "update_window_dims={2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2",
        ),
    ];

    #[test]
    fn by_known_operations() {
        let ops = [
            ("s32", "add"),
            ("u8", "maximum"),
            ("s16", "minimum"),
            ("u64", "xor"),
            ("pred", "add"),
            ("s8", "add"),
            ("bf16", "maximum"),
            ("f16", "minimum"),
            ("f32", "minimum"),
            ("f64", "maximum"),
            ("s4", "replace"),
            ("c128", "replace"),
        ];
        for (seed, &case) in LARGE.iter().chain(CASES).enumerate() {
            for (ty, op) in ops {
                let body = match op {
                    "replace" => format!("  ROOT r = {ty}[] copy(b)\n"),
                    op => format!("  ROOT r = {ty}[] {op}(b, a)\n"),
                };
                check(&text(case, ty, &body), seed as u64, true, op == "replace", &[]);
            }
        }
    }

    #[test]
    fn by_sums_of_floats() {
        for (seed, &case) in LARGE.iter().enumerate() {
            let sum = |ty: &str| text(case, ty, &format!("  ROOT r = {ty}[] add(a, b)\n"));
            close(&sum("f32"), seed as u64, 64.0);
            close(&sum("c64"), seed as u64, 0.0);
            // One after the other, each rounded.
            check(&sum("bf16"), seed as u64, false, false, &[]);
            check(&sum("f16"), seed as u64, false, false, &[]);
        }
    }
}
