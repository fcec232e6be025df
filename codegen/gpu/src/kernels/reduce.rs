//! Reductions with fused producers and epilogues.
//!
//! The threads of a block are `lanes x rows` over kept and reduced dimensions: where reduced elements are
//! contiguous, neighbouring threads read them (row reduction, [`Mapping::Rows`]) and combine by shuffles,
//! then through shared memory; where kept elements are, each thread reduces columns of its own (column
//! reduction, [`Mapping::Columns`]) and those of a block combine through shared memory. Where that leaves the
//! device idle, the reduced elements are split into chunks, whose accumulators go to scratch memory and are
//! reduced by a second launch. **Invariants:** the order of combination is decided by shapes and types alone;
//! what may not be reassociated is combined by one thread per result, in the interpreter's order.

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_llvm::{Axis, IntPredicate, Prim, Result, Special};
use hlo_opt::expr::fold::{Fold, wide_extremes};
use hlo_opt::expr::index::{Affine, Index};
use hlo_opt::expr::{ALWAYS, Bound, Expr, Op, array_leaves};
use hlo_opt::fusion::folds::{self as spaces, Space};
use hlo_opt::fusion::is_fold;

use super::folds::{Folds, Item, Steps, registers};
use super::loops::{self, Output};
use super::{Unit, launch};
use crate::arch::{MAX_THREADS, WARP};
use crate::code::{ACCESS_BYTES, Code};
use crate::kernel::{Argument, Kernel, Launch, Stage};
use crate::subject::{Root, Subject};

/// Variables of the expression: the kept unit of a thread, the step of its loop, and the chunk of its block.
pub(super) const KEPT: u32 = 0;
pub(super) const STEP: u32 = 1;
const CHUNK: u32 = 2;

/// The default number of threads of a block.
const THREADS: i64 = 256;
/// Steps per thread of a long row.
const STEPS: i64 = 4;
/// The number of threads that keep a device busy.
const BUSY_THREADS: i64 = 1 << 17;
/// The number of blocks that do, and of a launch that is split into chunks.
const BUSY_BLOCKS: i64 = 256;
const CHUNKED_BLOCKS: i64 = 512;
/// The minimum number of steps of a thread in a chunk.
const CHUNK_STEPS: i64 = 8;
/// The maximum number of elements that a thread loads before it combines any.
const MAX_LOADED_ELEMENTS: i64 = 32;
/// Shared memory for accumulators, in bytes.
const SHARED_BYTES: i64 = 32 << 10;
/// The maximum number of nodes of an expression that are computed for several elements in a step.
const MAX_NODES: usize = 4096;

/// The layout of the threads of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mapping {
    /// Row reduction: `width` neighbouring threads reduce to one result.
    Rows { width: i64 },
    /// Column reduction: neighbouring threads have kept elements, and that many rows of them share the
    /// reduced ones.
    Columns { rows: i64 },
}

/// The strategy of a reduction.
#[derive(Clone, Copy, Debug)]
struct Scheme {
    mapping: Mapping,
    /// Kept units of a block.
    units: i64,
    /// Contiguous kept elements of a unit, contiguous reduced elements of a step.
    kept: i64,
    reduced: i64,
    /// Steps of a chunk, and the number of chunks.
    chunks: Option<(i64, i64)>,
}

/// The sizes of reduced and kept dimensions.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    results: i64,
    terms: i64,
}

/// Reductions over one space, planned for a scheme.
struct Built<'m> {
    expr: Expr<'m>,
    folds: Folds<'m>,
    /// The outputs of each unit.
    outputs: Vec<Output>,
    /// The arrays for the accumulators of chunks.
    partial: Vec<(u32, Affine)>,
    sizes: Sizes,
    scheme: Scheme,
}

/// The uses of the results of reductions over one space.
enum Results<'a, 'm> {
    /// Roots of the fusion.
    Roots(&'a [Root<'m>]),
    /// Each leaf of the only reduction is stored to an array.
    Arrays(&'a [u32]),
}

/// Reductions over one space.
struct Group<'a, 'm> {
    module: &'m Module,
    id: InstrId,
    expr: &'a Expr<'m>,
    reductions: &'a [(InstrId, Space)],
    /// The order in which results are stored, if it is transposed.
    order: Option<Vec<usize>>,
    results: Results<'a, 'm>,
}

/// Emits an instruction.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    let subject = Subject::new(module, id)?;
    let (reductions, order) = if module.instr(id).opcode == Opcode::Fusion {
        let computation = module.instr(id).attrs.computation(AttrKey::Calls);
        let computation = computation.ok_or_else(|| Unsupported::new(module, id, "a fusion of nothing"))?;
        let all = spaces::all(module, computation);
        let order = spaces::stored_order(module, computation, &all);
        (all, order.ok())
    } else {
        if !is_fold(module, id) {
            return loops::emit(unit, module, id, symbol);
        }
        (spaces::space(module, id).map(|space| (id, space)).into_iter().collect(), Some(None))
    };
    let is_one = reductions.windows(2).all(|pair| pair[0].1 == pair[1].1);
    if let (true, Some(order)) = (is_one, order) {
        let results = Results::Roots(&subject.roots);
        let group = Group { module, id, expr: &subject.expr, reductions: &reductions, order, results };
        match group.plan() {
            Ok(built) => {
                let mut kernel = Kernel::default();
                let mut scratch = 0;
                group.emit(unit, built, subject.arrays, symbol, &mut scratch, &mut kernel)?;
                kernel.scratch_bytes = scratch;
                return Ok(kernel);
            }
            Err(why) if module.instr(id).opcode != Opcode::Fusion => return Err(why.into()),
            // What it refuses may be computed as separate reductions.
            Err(_) => {}
        }
    }
    apart(unit, module, id, subject, symbol)
}

/// Fallback for any fusion with reductions: each into scratch memory, from which the results are then
/// computed element by element.
pub(super) fn apart<'m>(
    unit: &Unit<'_, '_>,
    module: &'m Module,
    id: InstrId,
    subject: Subject<'m>,
    symbol: &str,
) -> Result<Kernel> {
    let Subject { mut expr, roots, arrays } = subject;
    let computation = module.instr(id).attrs.computation(AttrKey::Calls);
    let computation = computation.ok_or_else(|| Unsupported::new(module, id, "a fusion of nothing"))?;
    let mut kernel = Kernel::default();
    let mut scratch = 0;
    for (n, (reduce, space)) in spaces::all(module, computation).into_iter().enumerate() {
        let mut leaves = Vec::new();
        let shapes: Vec<&ArrayShape> = array_leaves(&module.instr(reduce).shape).collect();
        for shape in &shapes {
            leaves.push(scratch_array(&mut expr, shape, arrays, &mut scratch));
        }
        let reductions = [(reduce, space)];
        let results = Results::Arrays(&leaves);
        let group = Group { module, id, expr: &expr, reductions: &reductions, order: None, results };
        let built = group.plan()?;
        group.emit(unit, built, arrays, &format!("{symbol}_r{n}"), &mut scratch, &mut kernel)?;
        for (leaf, &array) in leaves.iter().enumerate() {
            expr.bind(reduce, leaf as u32, Bound::Array(array));
        }
    }
    kernel.scratch_bytes = scratch;
    let arguments = arrays + u32::from(scratch > 0);
    loops::roots(unit, module, id, &expr, roots, arguments, symbol, &mut kernel)?;
    Ok(kernel)
}

/// Stores the values of nodes, those of one array together.
pub(super) fn store_outputs(c: &mut Code<'_, '_, '_, '_>, outputs: &[Output]) -> Result<()> {
    let mut stored = Vec::new();
    for output in outputs {
        stored.push((c.value(output.node)?, output.array, output.at.clone()));
    }
    stored.sort_by_key(|s| s.1);
    c.store_runs(&stored)
}

/// An array in scratch memory, which is the last argument.
pub(super) fn scratch_array(
    expr: &mut Expr<'_>,
    shape: &ArrayShape,
    argument: u32,
    scratch: &mut u64,
) -> u32 {
    let array = expr.array(shape, argument);
    expr.arrays[array as usize].offset = *scratch;
    let bytes = shape.elements() as u64 * shape.element_type.storage_bytes() as u64;
    *scratch += bytes.next_multiple_of(u64::from(super::ALIGNMENT));
    array
}

/// The smallest power of two that is not less.
pub(super) fn power_from(n: i64) -> i64 {
    n.max(1).unsigned_abs().next_power_of_two().cast_signed()
}

/// The largest power of two that is not more.
pub(super) fn power_to(n: i64) -> i64 {
    1 << n.max(1).ilog2()
}

pub(super) fn div_up(n: i64, by: i64) -> i64 {
    (n + by - 1) / by
}

/// Contiguous bytes that loads read along kept and along reduced elements, and the widest element of either.
#[derive(Clone, Copy, Default, Debug)]
struct Neighbours {
    kept: i64,
    reduced: i64,
    widest: [i64; 2],
}

/// Along which dimensions loads are contiguous.
fn neighbours(expr: &Expr<'_>, folds: &Folds<'_>) -> Neighbours {
    let mut found = Neighbours::default();
    for n in expr.reachable(folds.elements()) {
        let Op::Load { array, at, .. } = &expr.nodes[n as usize].op else { continue };
        let number = |kept: i64, step: i64| {
            expr.space.at(at, &|var| match var {
                KEPT => kept,
                STEP => step,
                _ => 0,
            })
        };
        let bytes = expr.arrays[*array as usize].shape.element_type.storage_bytes() as i64;
        let (Some(first), Some(kept), Some(reduced)) = (number(0, 0), number(1, 0), number(0, 1)) else {
            continue;
        };
        if reduced.abs_diff(first) == 1 {
            found.reduced += bytes;
            found.widest[1] = found.widest[1].max(bytes);
        } else if kept.abs_diff(first) == 1 {
            found.kept += bytes;
            found.widest[0] = found.widest[0].max(bytes);
        }
    }
    found
}

/// The scheme of reductions of these sizes. `accumulators`: how many each result takes; `bytes`: their size.
fn scheme(sizes: Sizes, near: Neighbours, is_inner: bool, (accumulators, bytes): (i64, i64)) -> Scheme {
    let Sizes { results, terms } = sizes;
    let over_columns = match near.kept.cmp(&near.reduced) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => !is_inner,
    };
    let over_columns = over_columns && results > 1 || terms == 1;
    let access =
        |widest: i64| if widest == 0 { 1 } else { (ACCESS_BYTES.cast_signed() / widest).clamp(1, 8) };
    // Splits steps of blocks into chunks, in each of which a thread takes every `stride`-th step.
    let cut = |blocks: i64, steps: i64, stride: i64| {
        let wanted = (CHUNKED_BLOCKS / blocks).min(steps / (stride * CHUNK_STEPS));
        if blocks >= BUSY_BLOCKS || wanted < 2 {
            return None;
        }
        let size = div_up(div_up(steps, wanted), stride * STEPS) * stride * STEPS;
        Some((size, div_up(steps, size))).filter(|&(_, count)| count > 1)
    };
    if over_columns {
        let mut kept = access(near.widest[0]);
        let few = |kept: i64| {
            let units = results / kept;
            results % kept != 0 || units < i64::from(WARP) || units.saturating_mul(terms) < BUSY_THREADS
        };
        while kept > 1 && (few(kept) || kept * accumulators > MAX_LOADED_ELEMENTS) {
            kept /= 2;
        }
        let units = results / kept;
        let mut lanes = power_from(units).min(i64::from(WARP));
        let mut rows = (THREADS / lanes).min(power_to(terms / STEPS));
        // Where columns alone keep the device busy, each thread has one.
        while rows > 1 && units * (rows / 2) >= BUSY_THREADS {
            rows /= 2;
        }
        while lanes * rows * 2 <= THREADS && lanes * 2 <= power_from(units) {
            lanes *= 2;
        }
        while rows > 1 && lanes * rows * kept * bytes > SHARED_BYTES {
            rows /= 2;
        }
        lanes = lanes.max(i64::from(WARP) / rows);
        let chunks = cut(div_up(units, lanes), terms, rows);
        return Scheme { mapping: Mapping::Columns { rows }, units: lanes, kept, reduced: 1, chunks };
    }
    let mut reduced = access(near.widest[1]);
    while reduced > 1 && (terms % reduced != 0 || reduced * accumulators > MAX_LOADED_ELEMENTS) {
        reduced /= 2;
    }
    let steps = terms / reduced;
    let mut width = power_to(steps / STEPS).min(THREADS);
    while width < i64::from(MAX_THREADS) && width * 2 <= steps && results.saturating_mul(width) < BUSY_THREADS
    {
        width *= 2;
    }
    let is_cut = |width: i64| cut(div_up(results, (THREADS / width).max(1)), steps, width);
    if is_cut(THREADS.min(width)).is_some() {
        width = width.min(THREADS);
    }
    let most = power_from(results).min((THREADS / width).max(1));
    let units = most.max(i64::from(WARP) / width);
    let chunks = cut(div_up(results, units), steps, width);
    Scheme { mapping: Mapping::Rows { width }, units, kept: 1, reduced, chunks }
}

/// One thread per result, an element after the other.
fn sequential(sizes: Sizes) -> Scheme {
    let units = power_from(sizes.results).clamp(i64::from(WARP), THREADS / 2);
    Scheme { mapping: Mapping::Columns { rows: 1 }, units, kept: 1, reduced: 1, chunks: None }
}

impl<'m> Group<'_, 'm> {
    fn space(&self) -> std::result::Result<&Space, Unsupported> {
        let first = self.reductions.first().map(|(_, space)| space);
        first.ok_or_else(|| Unsupported::new(self.module, self.id, "a reduction without a reduce"))
    }

    /// The dimension of the elements that each stored dimension is.
    fn stored(&self, space: &Space) -> Vec<Option<usize>> {
        match &self.order {
            Some(order) => order.iter().map(|&d| space.kept[d]).collect(),
            None => space.kept.to_vec(),
        }
    }

    /// Chooses a scheme and plans for it.
    fn plan(&self) -> std::result::Result<Built<'m>, Unsupported> {
        let space = self.space()?;
        let size = |dims: &mut dyn Iterator<Item = i64>| dims.fold(1i64, i64::saturating_mul);
        let stored = self.stored(space);
        let results = size(&mut stored.iter().map(|d| d.map_or(1, |d| space.dims[d])));
        let terms = size(&mut space.along.iter().map(|&d| space.dims[d]));
        let sizes = Sizes { results, terms };
        let built = self.build(sizes, sequential(sizes))?;
        // Empty results, or empty sums.
        if built.folds.literal || results == 0 || terms == 0 {
            return Ok(built);
        }
        let near = neighbours(&built.expr, &built.folds);
        let last = (0..space.dims.len()).rev().find(|&d| space.dims[d] != 1);
        let is_inner = last.is_some_and(|d| space.is_reduced(d));
        let accumulators = (built.folds.items.len() as i64, i64::from(built.folds.bytes()));
        let mut scheme = scheme(sizes, near, is_inner, accumulators);
        loop {
            let built = self.build(sizes, scheme)?;
            if built.expr.nodes.len() <= MAX_NODES || scheme.kept * scheme.reduced == 1 {
                return Ok(built);
            }
            scheme.kept = 1;
            scheme.reduced = 1;
        }
    }

    fn build(&self, sizes: Sizes, scheme: Scheme) -> std::result::Result<Built<'m>, Unsupported> {
        let Sizes { results, terms } = sizes;
        let space = self.space()?;
        let mut expr = self.expr.clone();
        let stored = self.stored(space);
        let stored_dims: Vec<i64> = stored.iter().map(|d| d.map_or(1, |d| space.dims[d])).collect();
        let mut along: Vec<usize> = space.along.to_vec();
        along.sort_unstable();
        let reduced_dims: Vec<i64> = along.iter().map(|&d| space.dims[d]).collect();
        let unit = expr.space.var(KEPT, results / scheme.kept);
        let step = expr.space.var(STEP, terms / scheme.reduced);
        let (mut items, mut given) = (Vec::new(), 0);
        let mut kept_at: Vec<(Affine, Index, Index)> = Vec::new();
        for column in 0..scheme.kept {
            let number = unit.times(scheme.kept).plus(column);
            let at = expr.space.delinear(&number, &stored_dims);
            let mut index: Index = space.dims.iter().map(|_| Affine::default()).collect();
            for (x, d) in at.iter().zip(&stored) {
                if let Some(d) = *d {
                    index[d] = x.clone();
                }
            }
            let own: Index =
                space.kept.iter().map(|d| d.map_or_else(Affine::default, |d| index[d].clone())).collect();
            let from = items.len();
            for term in 0..scheme.reduced {
                let number = step.times(scheme.reduced).plus(term);
                let reduced = expr.space.delinear(&number, &reduced_dims);
                for (x, &d) in reduced.into_iter().zip(&along) {
                    index[d] = x;
                }
                for (n, &(reduce, _)) in self.reductions.iter().enumerate() {
                    let first = if term == 0 { given } else { 0 };
                    let mut fold = Fold::new(&mut expr, self.id, reduce, &index, first, wide_extremes)?;
                    let element = std::mem::take(&mut fold.operands);
                    if term == 0 {
                        given += fold.given.len() as u32;
                        items.push(Item { fold, elements: vec![element] });
                    } else {
                        items[from + n].elements.push(element);
                    }
                }
            }
            kept_at.push((number, at, own));
        }
        let literal = terms == 0 || items.iter().any(|item: &Item<'_>| !item.fold.combine.free());
        let mut outputs = Vec::new();
        let n = self.reductions.len();
        for (of, (number, at, own)) in kept_at.into_iter().enumerate() {
            let folds = &items[of * n..(of + 1) * n];
            match self.results {
                Results::Roots(roots) => {
                    // Bound only now: results of the same pass cannot be operands.
                    for (item, (reduce, _)) in folds.iter().zip(self.reductions) {
                        item.fold.bind(&mut expr, *reduce, &own);
                    }
                    for root in roots {
                        if root.shape.checked_elements() != Some(results) {
                            let what = "a result of other dimensions than the reduction's";
                            return Err(Unsupported::new(self.module, self.id, what));
                        }
                        let at = expr.space.reshape(&at, &stored_dims, &root.shape.dims);
                        let node = expr.node(root.instr, root.leaf, &at)?;
                        outputs.push(Output { node, array: root.array, at: number.clone() });
                    }
                }
                Results::Arrays(arrays) => {
                    for item in folds {
                        for (leaf, &array) in arrays.iter().enumerate() {
                            let ty = expr.arrays[array as usize].shape.element_type;
                            let node = item.fold.result(&mut expr, leaf, ty);
                            outputs.push(Output { node, array, at: number.clone() });
                        }
                    }
                }
            }
        }
        let folds = Folds { items, literal, partial: false };
        Ok(Built { expr, folds, outputs, partial: Vec::new(), sizes, scheme })
    }

    /// Emits the launches: two if it is split into chunks.
    fn emit(
        &self,
        unit: &Unit<'_, '_>,
        mut built: Built<'m>,
        arrays: u32,
        symbol: &str,
        scratch: &mut u64,
        kernel: &mut Kernel,
    ) -> Result<()> {
        if built.sizes.results == 0 {
            return Ok(());
        }
        let is_scratch = |expr: &Expr<'_>| expr.arrays.iter().any(|a| a.argument == arrays);
        let Some((_, count)) = built.scheme.chunks else {
            let arguments = arrays + u32::from(is_scratch(&built.expr));
            kernel.stages.push(Stage::Launch(built.emit(unit, self.module, self.id, arguments, symbol)?));
            return Ok(());
        };
        // Accumulators of each chunk, chunks outermost.
        let results = built.sizes.results;
        let per_column = built.folds.items.len() / built.scheme.kept as usize;
        let types: Vec<_> =
            built.folds.items[..per_column].iter().flat_map(|i| i.fold.types.clone()).collect();
        let chunk = built.expr.space.var(CHUNK, count);
        let unit_number = built.expr.space.var(KEPT, results / built.scheme.kept);
        let mut shapes = Vec::new();
        let mut ids = Vec::new();
        for &ty in &types {
            let shape = ArrayShape::new(ty, &[count, results]);
            ids.push(scratch_array(&mut built.expr, &shape, arrays, scratch));
            shapes.push((shape, built.expr.arrays[ids[ids.len() - 1] as usize].offset));
        }
        for column in 0..built.scheme.kept {
            let number = unit_number.times(built.scheme.kept).plus(column);
            let at = built.expr.space.add(&chunk.times(results), &number);
            built.partial.extend(ids.iter().map(|&array| (array, at.clone())));
        }
        let first = built.emit(unit, self.module, self.id, arrays + 1, &format!("{symbol}_chunks"))?;
        kernel.stages.push(Stage::Launch(first));
        let sizes = Sizes { results, terms: count };
        let mut near = Neighbours::default();
        let widest = types.iter().map(|ty| ty.storage_bytes() as i64).max().unwrap_or(1);
        if results == 1 {
            near.reduced = 1
        } else {
            near.kept = 1
        }
        near.widest = [widest; 2];
        let bytes = types.iter().map(|ty| ty.storage_bytes() as i64).sum();
        let mut scheme = scheme(sizes, near, results == 1, (per_column as i64, bytes));
        scheme.chunks = None;
        // The same folds, over the accumulators of the chunks.
        let reduced = std::mem::replace(&mut scheme.reduced, 1);
        let mut last = self.build(Sizes { results, terms: built.sizes.terms }, scheme)?;
        scheme.reduced = reduced;
        last.scheme = scheme;
        last.sizes = sizes;
        last.folds.partial = true;
        let steps = last.expr.space.var(STEP, count / reduced);
        let unit_number = last.expr.space.var(KEPT, results / scheme.kept);
        let ids: Vec<u32> = shapes
            .iter()
            .map(|(shape, offset)| {
                let array = last.expr.array(shape, arrays);
                last.expr.arrays[array as usize].offset = *offset;
                array
            })
            .collect();
        for (n, item) in last.folds.items.iter_mut().enumerate() {
            let column = n / per_column;
            let before: usize = built.folds.items[..n % per_column].iter().map(|i| i.fold.types.len()).sum();
            let number = unit_number.times(scheme.kept).plus(column as i64);
            item.elements.clear();
            for term in 0..reduced {
                let chunk = steps.times(reduced).plus(term);
                let at = last.expr.space.add(&chunk.times(results), &number);
                let of = |(i, &ty): (usize, &hlo::ElementType)| {
                    let array = ids[before + i];
                    last.expr.push(Op::Load { array, at: at.clone(), guard: ALWAYS }, ty)
                };
                item.elements.push(item.fold.types.iter().enumerate().map(of).collect());
            }
        }
        let last = last.emit(unit, self.module, self.id, arrays + 1, symbol)?;
        kernel.stages.push(Stage::Launch(last));
        Ok(())
    }
}

impl<'m> Built<'m> {
    /// Emits one launch.
    fn emit(
        &self,
        unit: &Unit<'_, '_>,
        module: &Module,
        id: InstrId,
        arrays: u32,
        symbol: &str,
    ) -> Result<Launch> {
        let Built { expr, folds, outputs, partial, sizes, scheme } = self;
        let (kept, steps) = (sizes.results / scheme.kept, sizes.terms / scheme.reduced);
        let (stride, rows) = match scheme.mapping {
            Mapping::Rows { width } => (width, 1),
            Mapping::Columns { rows } => (scheme.units, rows),
        };
        let threads = match scheme.mapping {
            Mapping::Rows { width } => width * scheme.units,
            Mapping::Columns { rows } => rows * scheme.units,
        };
        let threads = threads as u32;
        let blocks = div_up(kept, scheme.units);
        let (chunk_steps, chunks) = scheme.chunks.unwrap_or((steps, 1));
        let (e, arguments) = unit.begin(symbol, arrays, 0, threads)?;
        // 32-bit indices, where everything that is counted, and a step past it, fits.
        let most = (steps + i64::from(threads) * STEPS * 2).max(blocks * chunks * i64::from(threads));
        let prim = if most > i64::from(i32::MAX) { Prim::I64 } else { Prim::I32 };
        let int = |n: i64| e.int(prim, n.cast_unsigned());
        let thread = e.special(Special::Tid(Axis::X))?;
        let block = e.resize(e.special(Special::Ctaid(Axis::X))?, prim, false)?;
        let (block, chunk) = match chunks {
            1 => (block, None),
            _ => (e.urem(block, int(blocks))?, Some(e.udiv(block, int(blocks))?)),
        };
        let outer = e.resize(e.udiv(thread, e.i32(stride as i32))?, prim, false)?;
        let inner = e.resize(e.urem(thread, e.i32(stride as i32))?, prim, false)?;
        // The unit of the block, and the thread among those that reduce it.
        let (own, row) = match scheme.mapping {
            Mapping::Rows { .. } => (outer, inner),
            Mapping::Columns { .. } => (inner, outer),
        };
        let number = e.add(e.mul(block, int(scheme.units))?, own)?;
        let mut leads = e.icmp(IntPredicate::EQ, row, int(0))?;
        let mut at = number;
        if kept % scheme.units != 0 {
            // Threads of units that do not exist repeat the last one, and store nothing.
            let exists = e.icmp(IntPredicate::ULT, number, int(kept))?;
            leads = e.and(leads, exists)?;
            at = e.select(exists, number, int(kept - 1))?;
        }
        let mut code = Code::new(e, expr, &arguments);
        let c = &mut code;
        c.set_var(KEPT, at);
        let (mut low, mut high) = (int(0), int(steps));
        if let Some(chunk) = chunk {
            c.set_var(CHUNK, chunk);
            low = e.mul(chunk, int(chunk_steps))?;
            high = e.add(low, int(chunk_steps))?;
            if steps % chunk_steps != 0 {
                high = e.select(e.icmp(IntPredicate::SLT, high, int(steps))?, high, int(steps))?;
            }
        }
        // The stride between steps of a thread.
        let pace = match scheme.mapping {
            Mapping::Rows { width } => width,
            Mapping::Columns { .. } => rows,
        };
        let start = folds.starts(c)?;
        let mut carried = registers(&start);
        if sizes.terms > 0 {
            c.hoist(folds.elements(), STEP)?;
            let per_step =
                (scheme.kept * scheme.reduced).max(1) * (folds.items.len() as i64 / scheme.kept).max(1);
            let mut copies = if folds.literal { 1 } else { STEPS.min(MAX_LOADED_ELEMENTS / per_step).max(1) };
            copies = power_to(copies);
            while copies > 1 && chunk_steps < copies * pace {
                copies /= 2;
            }
            let low = e.add(low, row)?;
            let remain = chunk_steps % (copies * pace) != 0 || steps % chunk_steps != 0;
            carried = folds.over(c, &Steps { var: STEP, low, high, pace, copies, remain }, carried)?;
        }
        let total = folds.values(&carried);
        let shared = format!("{symbol}_shared");
        let total = match scheme.mapping {
            Mapping::Rows { width } => {
                folds.across_lanes(e, thread, threads, width as u32, &shared, &total)?
            }
            Mapping::Columns { rows } => {
                folds.across_rows(e, thread, (scheme.units as u32, rows as u32), &shared, &total)?
            }
        };
        e.if_then(leads, || {
            c.scoped(|c| {
                if !partial.is_empty() {
                    let stored = partial.iter().zip(&total).map(|((array, at), x)| (*x, *array, at.clone()));
                    let mut stored: Vec<_> = stored.collect();
                    stored.sort_by_key(|s| s.1);
                    return c.store_runs(&stored);
                }
                folds.give(c, &total)?;
                store_outputs(c, outputs)
            })
        })?;
        e.return_void()?;
        let arguments = (0..arrays).map(Argument::Array).collect();
        Ok(launch(module, id, symbol, blocks * chunks, threads, arguments)?)
    }
}
