//! Prefix scans along a dimension: `scan`, and `reduce-window` whose windows are all prefixes or all suffixes
//! of a line.
//!
//! What may be reassociated is scanned by blocks: a few contiguous elements per thread, the lanes of a warp
//! by shuffles, warps through shared memory, and one tile of a line after the other with a carry. Long lines
//! are split into chunks: a first launch reduces each, and a second one starts each chunk from the reduction
//! of the previous chunks. Many adjacent lines, and what may not be reassociated, take one thread per line.
//! **Invariant:** the order is decided by shapes and types alone.

use hlo::attrs::{AttrKey, WindowDim};
use hlo::elementwise::{Binary, Kind, kind};
use hlo::{ArrayShape, ComputationId, ElementType, InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Axis, Emit, IntPredicate, Prim, Result, Shuffle, Special, Value};
use hlo_opt::expr::fold::Fold;
use hlo_opt::expr::index::Affine;
use hlo_opt::expr::{Expr, NodeId, array_leaves};
use hlo_opt::fusion::combine::Combine;

use super::folds::{Folds, Item, SharedArray, apply, registers};
use super::reduce::{KEPT, STEP, scratch_array};
use super::reduce_window::thread_number;
use super::{Unit, launch};
use crate::arch::WARP;
use crate::code::Code;
use crate::kernel::{Argument, Kernel, Stage};
use crate::subject::Subject;

/// Threads of a block.
const THREADS: u32 = 256;
/// Warps of a block.
const WARPS: u32 = THREADS / WARP;
/// The number of adjacent lines that is worth a thread each, and the length below which a line is not worth a
/// block.
const MANY_LINES: i64 = 1 << 13;
const SHORT_LINE: i64 = 64;
/// The minimum number of tiles of a chunk, and the number of blocks that keeps a device busy.
const CHUNK_TILES: i64 = 4;
const BUSY_BLOCKS: i64 = 256;

/// The dimension that windows go along: elements before, along and after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    outer: i64,
    length: i64,
    inner: i64,
}

impl Line {
    fn of(dims: &[i64], d: usize) -> Self {
        let size = |dims: &[i64]| dims.iter().product();
        Self { outer: size(&dims[..d]), length: dims[d], inner: size(&dims[d + 1..]) }
    }

    fn lines(&self) -> i64 {
        self.outer * self.inner
    }
}

/// The line of windows that are all prefixes (or suffixes: `true`) of it.
pub(super) fn line(window: &[WindowDim], operand: &[i64], result: &[i64]) -> Option<(Line, bool)> {
    let identity = WindowDim::default();
    let mut busy = (0..window.len()).filter(|&d| window[d] != identity);
    let (d, None) = (busy.next()?, busy.next()) else { return None };
    let w = &window[d];
    let plain = w.stride == 1 && w.base_dilation == 1 && w.window_dilation == 1 && !w.reversal;
    let whole = plain && operand == result && w.size >= operand[d];
    let is_prefix = whole && w.pad_low.checked_add(1) == Some(w.size);
    let is_suffix = whole && w.pad_low == 0;
    (is_prefix || is_suffix).then(|| (Line::of(operand, d), !is_prefix))
}

/// The offset of an element of a line.
fn number(expr: &mut Expr<'_>, line: &Line, of: &Affine, position: &Affine, reverse: bool) -> Affine {
    let at = expr.space.delinear(of, &[line.outer, line.inner]);
    let position = if reverse { position.times(-1).plus(line.length - 1) } else { position.clone() };
    expr.space.linear(&[at[0].clone(), position, at[1].clone()], &[line.outer, line.length, line.inner])
}

/// Emits prefix or suffix reductions of one operand.
#[expect(clippy::too_many_arguments, reason = "what a kernel is made of")]
pub(super) fn emit<'m>(
    unit: &Unit<'_, '_>,
    module: &'m Module,
    id: InstrId,
    subject: Subject<'m>,
    (line, reverse): (Line, bool),
    combine: Combine<'m>,
    symbol: &str,
    kernel: &mut Kernel,
) -> Result<()> {
    let &[x, init] = module.instr(id).operands() else {
        return Err(Unsupported::new(module, id, "prefixes of several operands").into());
    };
    let result = subject.roots[0].array;
    let operation = Operation { x, init, is_carried: false, line, reverse, combine, result, last: None };
    operation.emit(unit, module, id, subject, symbol, kernel)
}

/// A prefix or suffix scan.
struct Operation<'m> {
    /// The combiner and its start: a scalar, or a value per line.
    x: InstrId,
    init: InstrId,
    is_carried: bool,
    line: Line,
    /// From the end of the line.
    reverse: bool,
    combine: Combine<'m>,
    /// The array of results, and that of the totals of lines.
    result: u32,
    last: Option<u32>,
}

impl<'m> Operation<'m> {
    fn emit(
        self,
        unit: &Unit<'_, '_>,
        module: &'m Module,
        id: InstrId,
        subject: Subject<'m>,
        symbol: &str,
        kernel: &mut Kernel,
    ) -> Result<()> {
        let Operation { x, init, is_carried, line, reverse, combine, result, last } = self;
        let Subject { mut expr, arrays, .. } = subject;
        let is_free = combine.free();
        let by_thread = !is_free || line.lines() >= MANY_LINES || line.length <= SHORT_LINE;
        let mut each = 1;
        while !by_thread && each < 4 && line.length % (each * 2) == 0 {
            each *= 2;
        }
        let of = expr.space.var(KEPT, line.lines());
        let step = expr.space.var(STEP, line.length / each);
        let operand = module.instr(x).shape.expect_array();
        let ty = expr.arrays[result as usize].shape.element_type;
        let (mut elements, mut indices) = (Vec::new(), Vec::new());
        let mut fold = None;
        let begin = match is_carried {
            true => {
                let slice = &module.instr(init).shape.expect_array().dims;
                let at = expr.space.delinear(&of, slice);
                expr.node(init, 0, &at)?
            }
            false => expr.node(init, 0, &[])?,
        };
        let mut combine = Some(combine);
        for i in 0..each {
            let at = number(&mut expr, &line, &of, &step.times(each).plus(i), reverse);
            let index = expr.space.delinear(&at, &operand.dims);
            let node = expr.node(x, 0, &index)?;
            match (&mut fold, combine.take()) {
                (None, Some(combine)) => {
                    fold = Some(Fold::of_nodes(&mut expr, combine, &[node], &[begin], &[ty], 0));
                    elements.extend(fold.iter().flat_map(|f| f.operands.clone()));
                }
                (Some(fold), _) => elements.push(expr.convert(node, fold.types[0])),
                (None, None) => {}
            }
            indices.push(at);
        }
        let Some(fold) = fold else { return Ok(()) };
        let accumulator = fold.types[0];
        let item = Item { elements: elements.iter().map(|&n| vec![n]).collect(), fold };
        let mut scan = Scan {
            folds: Folds { items: vec![item], literal: !is_free || by_thread, partial: false },
            expr,
            line,
            elements,
            indices,
            each,
            of,
            result,
            last,
            ty,
            arrays,
            chunks: None,
            partial: None,
        };
        if by_thread {
            kernel.stages.push(scan.by_thread(unit, module, id, symbol)?);
            return Ok(());
        }
        let tile = i64::from(THREADS) * each;
        let wanted = (BUSY_BLOCKS / line.lines()).min(line.length / (tile * CHUNK_TILES));
        if wanted >= 2 {
            let tiles = (line.length + tile - 1) / tile;
            let size = (tiles + wanted - 1) / wanted;
            let count = (tiles + size - 1) / size;
            scan.chunks = Some((size * i64::from(THREADS), count));
            let shape = ArrayShape::new(accumulator, &[line.lines(), count]);
            scan.partial = Some(scratch_array(&mut scan.expr, &shape, arrays, &mut kernel.scratch_bytes));
            kernel.stages.push(scan.by_block(unit, module, id, &format!("{symbol}_chunks"), true)?);
        }
        kernel.stages.push(scan.by_block(unit, module, id, symbol, false)?);
        Ok(())
    }
}

/// A scan that is being emitted.
struct Scan<'m> {
    expr: Expr<'m>,
    folds: Folds<'m>,
    line: Line,
    /// Contiguous elements that a thread takes at a time, and their offsets.
    elements: Vec<NodeId>,
    indices: Vec<Affine>,
    each: i64,
    /// The number of the line.
    of: Affine,
    /// The array of results, and that of the totals of lines.
    result: u32,
    last: Option<u32>,
    ty: ElementType,
    arrays: u32,
    /// Steps (of a thread's elements) of a chunk, and the number of chunks of a line.
    chunks: Option<(i64, i64)>,
    /// The totals of chunks.
    partial: Option<u32>,
}

impl<'m> Scan<'m> {
    fn combine(&self) -> &Combine<'m> {
        &self.folds.items[0].fold.combine
    }

    fn store<'ctx>(&self, c: &mut Code<'_, 'm, '_, 'ctx>, value: &Val<'ctx>, at: &Affine) -> Result<()> {
        let value = scalar::convert(&c.e, *value, self.ty)?;
        c.store(&value, self.result, at)
    }

    /// The address of a chunk's total.
    fn partial_address<'ctx>(
        &self,
        c: &mut Code<'_, 'm, '_, 'ctx>,
        accumulator: ElementType,
        number: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let base = c.address(self.partial.unwrap_or(0), &Affine::default())?;
        let number = c.e.resize(number, Prim::I64, false)?;
        c.e.address(base, c.e.mul(number, c.e.i64(accumulator.storage_bytes() as i64))?)
    }

    /// Stores a line's total, if it is wanted.
    fn store_last<'ctx>(&self, c: &mut Code<'_, 'm, '_, 'ctx>, value: &Val<'ctx>) -> Result<()> {
        let Some(array) = self.last else { return Ok(()) };
        let value = scalar::convert(&c.e, *value, self.ty)?;
        c.store(&value, array, &self.of)
    }

    /// A line by one thread.
    fn by_thread(&self, unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Stage> {
        let lines = self.line.lines();
        let blocks = (lines + i64::from(THREADS) - 1) / i64::from(THREADS);
        let (e, arguments) = unit.begin(symbol, self.arrays, 0, THREADS)?;
        let wide = (blocks * i64::from(THREADS)).max(self.line.length + 1) > i64::from(i32::MAX);
        let prim = if wide { Prim::I64 } else { Prim::I32 };
        let thread = thread_number(&e, prim, THREADS)?;
        let inside = e.icmp(IntPredicate::ULT, thread, e.int(prim, lines.cast_unsigned()))?;
        e.if_then(inside, || {
            let mut code = Code::new(e, &self.expr, &arguments);
            let c = &mut code;
            c.set_var(KEPT, thread);
            let start = registers(&self.folds.starts(c)?);
            let end = e.int(prim, self.line.length.cast_unsigned());
            let last = e.for_carried(e.int(prim, 0), end, e.int(prim, 1), &start, |step, carried| {
                c.scoped(|c| {
                    c.set_var(STEP, step);
                    let next = self.folds.step(c, &self.folds.values(carried), None)?;
                    self.store(c, &next[0], &self.indices[0])?;
                    Ok(registers(&next))
                })
            })?;
            self.store_last(c, &self.folds.values(&last)[0])
        })?;
        e.return_void()?;
        let arguments = (0..self.arrays).map(Argument::Array).collect();
        Ok(Stage::Launch(launch(module, id, symbol, blocks, THREADS, arguments)?))
    }

    /// A line, or a chunk of it, by a block. `only_sums`: it stores the chunk's total.
    fn by_block(
        &self,
        unit: &Unit<'_, '_>,
        module: &Module,
        id: InstrId,
        symbol: &str,
        only_sums: bool,
    ) -> Result<Stage> {
        let arrays = self.arrays + u32::from(self.partial.is_some());
        let steps = self.line.length / self.each;
        let (chunk_steps, chunks) = self.chunks.unwrap_or((steps, 1));
        let blocks = self.line.lines() * chunks;
        let (e, arguments) = unit.begin(symbol, arrays, 0, THREADS)?;
        let wide = blocks.max(self.line.length + 2 * i64::from(THREADS)) > i64::from(i32::MAX);
        let prim = if wide { Prim::I64 } else { Prim::I32 };
        let int = |n: i64| e.int(prim, n.cast_unsigned());
        let thread = e.special(Special::Tid(Axis::X))?;
        let own = e.resize(thread, prim, false)?;
        let block = e.resize(e.special(Special::Ctaid(Axis::X))?, prim, false)?;
        let (of, chunk) = (e.udiv(block, int(chunks))?, e.urem(block, int(chunks))?);
        let mut code = Code::new(e, &self.expr, &arguments);
        let c = &mut code;
        c.set_var(KEPT, of);
        let low = e.mul(chunk, int(chunk_steps))?;
        let mut high = e.add(low, int(chunk_steps))?;
        if steps % chunk_steps != 0 {
            high = e.select(e.icmp(IntPredicate::SLT, high, int(steps))?, high, int(steps))?;
        }
        let start = self.folds.starts(c)?;
        let arguments = (0..arrays).map(Argument::Array).collect();
        let done = Stage::Launch(launch(module, id, symbol, blocks, THREADS, arguments)?);
        let accumulator = start[0].ty();
        if only_sums {
            let first = e.add(low, own)?;
            let sums =
                e.for_carried(first, high, int(i64::from(THREADS)), &registers(&start), |step, sums| {
                    c.scoped(|c| {
                        c.set_var(STEP, step);
                        c.load_runs(self.folds.elements())?;
                        Ok(registers(&self.folds.step(c, &self.folds.values(sums), None)?))
                    })
                })?;
            let sums = self.folds.values(&sums);
            let total =
                self.folds.across_lanes(e, thread, THREADS, THREADS, &format!("{symbol}_shared"), &sums)?;
            let leads = e.icmp(IntPredicate::EQ, thread, e.i32(0))?;
            e.if_then(leads, || {
                let address = self.partial_address(c, accumulator, block)?;
                crate::code::store(&e, &total[0], address)
            })?;
            e.return_void()?;
            return Ok(done);
        }
        // The reduction of the previous chunks.
        let fold = &self.folds.items[0].fold;
        let mut before = vec![c.value(fold.initial[0])?];
        if chunks > 1 {
            let all =
                e.for_carried(own, chunk, int(i64::from(THREADS)), &registers(&start), |other, sums| {
                    c.scoped(|c| {
                        let address =
                            self.partial_address(c, accumulator, e.add(e.mul(of, int(chunks))?, other)?)?;
                        let loaded = crate::code::load(&e, accumulator, address)?;
                        Ok(registers(&self.folds.joined(e, &self.folds.values(sums), &[loaded])?))
                    })
                })?;
            let all = self.folds.values(&all);
            let total =
                self.folds.across_lanes(e, thread, THREADS, THREADS, &format!("{symbol}_before"), &all)?;
            before = self.folds.joined(e, &before, &total)?;
        }
        let shared = start_arrays(&e, &format!("{symbol}_warps"), &registers(&start))?;
        let pace = int(i64::from(THREADS));
        let total = e.for_carried(low, high, pace, &registers(&before), |tile, before| {
            c.scoped(|c| {
                let step = e.add(tile, own)?;
                let exists = e.icmp(IntPredicate::SLT, step, high)?;
                let at = e.select(exists, step, e.sub(high, int(1))?)?;
                c.set_var(STEP, at);
                c.load_runs(self.elements.iter().copied())?;
                let mut running: Vec<Val<'_>> = Vec::new();
                for &node in &self.elements {
                    let value = scalar::select(&e, exists, &c.value(node)?, &start[0])?;
                    let next = match running.last() {
                        Some(last) => apply(e, self.combine(), &[*last], &[value])?[0],
                        None => value,
                    };
                    running.push(next);
                }
                let mine = running[running.len() - 1];
                let (inclusive, total) = self.across_block(e, thread, &shared, &start[0], mine)?;
                let before = self.folds.values(before);
                let prefix = apply(e, self.combine(), &before, &[inclusive])?;
                e.if_then(exists, || {
                    let mut stored = Vec::new();
                    for (value, at) in running.iter().zip(&self.indices) {
                        let value = apply(e, self.combine(), &prefix, &[*value])?[0];
                        stored.push((scalar::convert(&e, value, self.ty)?, self.result, at.clone()));
                    }
                    stored.sort_by_key(|s| s.2.constant);
                    c.store_runs(&stored)
                })?;
                Ok(registers(&apply(e, self.combine(), &before, &[total])?))
            })
        })?;
        if self.last.is_some() {
            let is_last = e.icmp(IntPredicate::EQ, chunk, int(chunks - 1))?;
            let is_first_thread = e.icmp(IntPredicate::EQ, thread, e.i32(0))?;
            e.if_then(e.and(is_last, is_first_thread)?, || {
                c.scoped(|c| self.store_last(c, &self.folds.values(&total)[0]))
            })?;
        }
        e.return_void()?;
        Ok(done)
    }

    /// An exclusive scan over the threads of a block, and the total. `neutral` is the neutral element.
    fn across_block<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        thread: Value<'ctx>,
        shared: &[SharedArray<'ctx>],
        neutral: &Val<'ctx>,
        mine: Val<'ctx>,
    ) -> Result<(Val<'ctx>, Val<'ctx>)> {
        let lane = e.and(thread, e.i32(31))?;
        let warp = e.lshr(thread, e.i32(5))?;
        let within = self.across_warp(e, lane, mine, WARP)?;
        let is_last = e.icmp(IntPredicate::EQ, lane, e.i32(31))?;
        e.if_then(is_last, || {
            shared.iter().zip(within.registers()).try_for_each(|(array, x)| array.store(&e, warp, x))
        })?;
        e.barrier()?;
        let from = e.and(lane, e.i32(WARPS as i32 - 1))?;
        let of_warp = shared.iter().map(|array| array.load(&e, from)).collect::<Result<Vec<_>>>()?;
        // Before a warp writes its total for the next tile.
        e.barrier()?;
        let warps = self.across_warp(e, from, self.folds.values(&of_warp)[0], WARPS)?;
        let total = self.shuffled(e, Shuffle::Idx, &warps, e.i32(WARPS as i32 - 1))?;
        let before_warp = self.shuffled(e, Shuffle::Idx, &warps, e.sub(warp, e.i32(1))?)?;
        let some_warp = e.icmp(IntPredicate::NE, warp, e.i32(0))?;
        let before_warp = scalar::select(&e, some_warp, &before_warp, neutral)?;
        let before_lane = self.shuffled(e, Shuffle::Up, &within, e.i32(1))?;
        let some_lane = e.icmp(IntPredicate::NE, lane, e.i32(0))?;
        let before_lane = scalar::select(&e, some_lane, &before_lane, neutral)?;
        Ok((apply(e, self.combine(), &[before_warp], &[before_lane])?[0], total))
    }

    fn shuffled<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        how: Shuffle,
        x: &Val<'ctx>,
        n: Value<'ctx>,
    ) -> Result<Val<'ctx>> {
        let mut moved = Vec::new();
        for register in x.registers() {
            moved.push(e.shuffle_sync(e.full_warp(), how, register, n)?);
        }
        Ok(self.folds.values(&moved)[0])
    }

    /// An inclusive scan over the lanes of groups of that many. `lane`: the lane's number in its group.
    fn across_warp<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        lane: Value<'ctx>,
        mine: Val<'ctx>,
        lanes: u32,
    ) -> Result<Val<'ctx>> {
        let mut all = mine;
        let mut distance = 1;
        while distance < lanes {
            let other = self.shuffled(e, Shuffle::Up, &all, e.i32(distance as i32))?;
            let joined = apply(e, self.combine(), &[other], &[all])?[0];
            let some = e.icmp(IntPredicate::UGE, lane, e.i32(distance as i32))?;
            all = scalar::select(&e, some, &joined, &all)?;
            distance *= 2;
        }
        Ok(all)
    }
}

fn start_arrays<'ctx>(
    e: &Emit<'_, 'ctx>,
    name: &str,
    registers: &[Value<'ctx>],
) -> Result<Vec<SharedArray<'ctx>>> {
    let of =
        |(i, &x): (usize, &Value<'ctx>)| SharedArray::new(e, &format!("{name}_{i}"), e.prim_of(x), WARPS);
    registers.iter().enumerate().map(of).collect()
}

/// The operation of a computation `s = op(x, carry); (s, s)` of slices of a type, as the reference recognizes
/// sums.
fn running(module: &Module, computation: ComputationId) -> Option<(Binary, ElementType)> {
    let root = module.instr(module.root(computation));
    let (Opcode::Tuple, &[a, b]) = (root.opcode, root.operands()) else { return None };
    let step = module.instr(a);
    let ty = step.shape.element_type()?;
    let is_of_parameters = step.operands().iter().all(|&o| {
        let of = module.instr(o);
        of.opcode == Opcode::Parameter && of.shape.element_type() == Some(ty)
    });
    let &[x, carry] = step.operands() else { return None };
    let Some(Kind::Binary(op)) = kind(step.opcode) else { return None };
    (a == b && is_of_parameters && x != carry && step.opcode.commutes(ty)).then_some((op, ty))
}

/// Emits a `scan`: a running operation that may be reassociated, or one thread per element of a slice, step
/// by step.
pub(super) fn emit_scan(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    let refuse = |why: &str| Err(Unsupported::new(module, id, why).into());
    let subject = Subject::new(module, id)?;
    let instr = module.instr(id);
    let d = instr.attrs.ints_or_empty(AttrKey::Dimensions).first().and_then(|&d| usize::try_from(d).ok());
    let carries = instr.attrs.int(AttrKey::NumCarries).and_then(|n| usize::try_from(n).ok());
    let (Some(d), Some(carries)) = (d, carries) else { return refuse("a scan along nothing") };
    let Some(computation) = instr.attrs.computation(AttrKey::ToApply) else {
        return refuse("a scan without a computation");
    };
    let split = |n: usize| n.checked_sub(carries);
    let (Some(inputs), Some(outputs)) = (split(instr.operands().len()), split(subject.roots.len())) else {
        return refuse("more carries than arrays");
    };
    let Some(&first) = instr.operands().first().filter(|_| inputs > 0) else {
        return refuse("a scan of nothing");
    };
    let dims = module.instr(first).shape.expect_array().dims.to_vec();
    let reverse = instr.attrs.bool(AttrKey::IsReverse);
    let mut kernel = Kernel::default();
    if let (&[x, init], [stacked, last]) = (instr.operands(), &subject.roots[..])
        && let Some(combine) = running(module, computation).map(|(op, ty)| Combine::of_operation(op, ty))
        && combine.free()
        && !dims.contains(&0)
        && [stacked.shape, module.instr(init).shape.expect_array()]
            .iter()
            .all(|a| Some(a.element_type) == module.instr(x).shape.element_type())
    {
        let (line, result, last) = (Line::of(&dims, d), stacked.array, Some(last.array));
        let operation = Operation { x, init, is_carried: true, line, reverse, combine, result, last };
        operation.emit(unit, module, id, subject, symbol, &mut kernel)?;
        return Ok(kernel);
    }
    let Subject { mut expr, roots, arrays } = subject;
    let mut slice = dims.clone();
    let length = slice.remove(d);
    let slices: i64 = slice.iter().product();
    if slices == 0 {
        return Ok(kernel);
    }
    let number = expr.space.var(KEPT, slices);
    let step = expr.space.var(STEP, length);
    let position = if reverse { step.times(-1).plus(length - 1) } else { step };
    let at = expr.space.delinear(&number, &slice);
    let mut whole = at.clone();
    whole.insert(d, position);
    let whole_number = expr.space.linear(&whole, &dims);
    let mut nodes = Vec::new();
    for (i, &operand) in instr.operands().iter().enumerate() {
        nodes.push(expr.node(operand, 0, if i < inputs { &whole } else { &at })?);
    }
    // The computation, of slices, at one element of them.
    let mut region = Expr::new(module);
    let in_region = region.space.var(KEPT, slices);
    let in_region = region.space.delinear(&in_region, &slice);
    for (i, &p) in module.computation(computation).parameters().iter().flatten().enumerate() {
        let Some(shape) = module.instr(p).shape.as_array() else {
            return refuse("a computation of what is no array");
        };
        let node = region.given(i as u32, shape.element_type);
        region.bind_at(p, 0, node, &in_region);
    }
    let root = module.root(computation);
    let results: Vec<NodeId> = (0..array_leaves(&module.instr(root).shape).count())
        .map(|leaf| region.node(root, leaf as u32, &in_region))
        .collect::<std::result::Result<_, _>>()?;
    if results.len() != roots.len() {
        return refuse("a computation of other results");
    }
    let types: Vec<ElementType> = results[outputs..].iter().map(|&n| region.nodes[n as usize].ty).collect();
    let blocks = (slices + i64::from(THREADS) - 1) / i64::from(THREADS);
    let (e, arguments) = unit.begin(symbol, arrays, 0, THREADS)?;
    let wide = (blocks * i64::from(THREADS)).max(length + 1) > i64::from(i32::MAX);
    let prim = if wide { Prim::I64 } else { Prim::I32 };
    let thread = thread_number(&e, prim, THREADS)?;
    let inside = e.icmp(IntPredicate::ULT, thread, e.int(prim, slices.cast_unsigned()))?;
    e.if_then(inside, || {
        let mut code = Code::new(e, &expr, &arguments);
        let c = &mut code;
        c.set_var(KEPT, thread);
        let start = nodes[inputs..].iter().map(|&n| c.value(n)).collect::<Result<Vec<_>>>()?;
        let end = e.int(prim, length.cast_unsigned());
        let last =
            e.for_carried(e.int(prim, 0), end, e.int(prim, 1), &registers(&start), |step, carried| {
                c.scoped(|c| {
                    c.set_var(STEP, step);
                    let mut applied = Code::new(e, &region, &[]);
                    applied.set_var(KEPT, thread);
                    for (i, &n) in nodes[..inputs].iter().enumerate() {
                        applied.give(i as u32, c.value(n)?);
                    }
                    for (i, value) in carried_values(&types, carried).into_iter().enumerate() {
                        applied.give((inputs + i) as u32, value);
                    }
                    let all = results.iter().map(|&n| applied.value(n)).collect::<Result<Vec<_>>>()?;
                    for (root, value) in roots.iter().zip(&all[..outputs]) {
                        c.store(value, root.array, &whole_number)?;
                    }
                    let settled = all[outputs..].iter().map(|x| x.settled(&e)).collect::<Result<Vec<_>>>()?;
                    Ok(registers(&settled))
                })
            })?;
        for (root, value) in roots[outputs..].iter().zip(carried_values(&types, &last)) {
            c.store(&value, root.array, &number)?;
        }
        Ok(())
    })?;
    e.return_void()?;
    let arguments = (0..arrays).map(Argument::Array).collect();
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, THREADS, arguments)?));
    Ok(kernel)
}

/// Settled values of these types in registers.
fn carried_values<'ctx>(types: &[ElementType], registers: &[Value<'ctx>]) -> Vec<Val<'ctx>> {
    let mut rest = registers;
    let of = |&ty: &ElementType| {
        let (mine, more) = rest.split_at(1 + usize::from(ty.is_complex()));
        rest = more;
        Val::of_registers(ty, mine, true)
    };
    types.iter().map(of).collect()
}
