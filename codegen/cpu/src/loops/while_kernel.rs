//! Single-kernel loops: a `while` in one function, with scalar state in registers and array state in memory.
//!
//! An array of the state is loop invariant, or gets windows updated in place, or is recomputed: into scratch
//! memory, which is then copied to the state. A window of an array that nothing else reads is computed in
//! place; others wait in scratch memory (those of one element in registers) until everything is computed.
//! **Invariant:** in each iteration everything is computed from the old state before any of it is
//! overwritten. Iterations are the units: a call continues from the state that the previous one left, so that
//! a loop can be ended from outside.

use std::mem::offset_of;

use hlo::attrs::AttrKey;
use hlo::{ElementType, InstrId, Module, Opcode};
use hlo_codegen::kernel::Progress;
use hlo_library_base::Unsupported;
use hlo_llvm::scalar::Val;
use hlo_llvm::{IntPredicate, Prim, Result, Target, Value};
use hlo_opt::expr::index::{Affine, Index, components};
use hlo_opt::expr::{ALWAYS, Bound, Expr, NodeId, Op, array_leaves, is_leaf_of, leaf_root};
use hlo_opt::fusion::update_slice_chain;

use super::code::Code;
use super::lanes::{self, over_lanes};
use super::nest::{self, Output, loops, store_all, variables};
use super::partition::{partition, unroll_and_jam};
use super::region::{Carried, registers, values};
use super::{Cost, Function};

/// Bytes of scratch memory before arrays: [`hlo_codegen::kernel::Progress`].
const PROGRESS_BYTES: u64 = 64;

/// The maximum number of elements that an iteration may compute here: more are worth kernels of their own, on
/// several threads.
const MAX_ELEMENTS: i64 = 1 << 14;

/// Arrays (or windows) of up to this many elements are unrolled: their elements are computed from shared
/// values, and stored at once,
const MAX_UNROLLED_ELEMENTS: i64 = 16;

/// unless an element takes at least this many operations, and this many times as many as when vectorized.
const MIN_ELEMENT_OPS: u64 = 64;
const MIN_VECTOR_GAIN: u64 = 4;

/// The maximum number of unrolled elements in all.
const MAX_UNROLLED_TOTAL: i64 = 64;

/// A nest of the body.
struct Piece {
    vars: Vec<(u32, i64)>,
    outputs: Vec<Output>,
}

/// A planned loop.
pub(super) struct WhileKernel {
    /// Leaves of the state that are scalars: their numbers and types.
    scalars: Vec<(u32, ElementType)>,
    /// The loop's condition.
    condition: NodeId,
    /// The next scalars.
    next: Vec<NodeId>,
    /// Leaves of the state that are arrays: the arrays of the operand and of the result.
    arrays: Vec<(u32, u32)>,
    /// Arrays that are recomputed into scratch memory, and the copies into the state: from, to, bytes.
    fresh: Vec<Piece>,
    copies: Vec<(u32, u32, i64)>,
    /// Windows that are computed in place.
    windows: Vec<Piece>,
    /// Values and offsets of windows that others read too: computed before anything is overwritten.
    early: Vec<NodeId>,
    /// Those windows, in the order in which they are written.
    late: Vec<Piece>,
    /// The argument number of the scratch memory.
    scratch: u32,
}

fn parameter(module: &Module, c: hlo::ComputationId) -> Option<InstrId> {
    module.computation(c).parameters().first().copied().flatten()
}

/// Plans a loop; returns the size of scratch memory too.
pub(super) fn plan(
    module: &Module,
    id: InstrId,
) -> std::result::Result<(Expr<'_>, WhileKernel, u64), Unsupported> {
    let refuse = |at: InstrId, reason: &str| Err(Unsupported::new(module, at, reason));
    let instr = module.instr(id);
    let part = |key| instr.attrs.computation(key);
    let (Some(condition), Some(body)) = (part(AttrKey::Condition), part(AttrKey::Body)) else {
        return refuse(id, "a loop without its computations");
    };
    let (Some(in_condition), Some(in_body)) = (parameter(module, condition), parameter(module, body)) else {
        return refuse(id, "a loop without state");
    };
    let mut expr = Expr::new(module);
    let leaves = array_leaves(&instr.shape).count() as u32;
    let (mut scalars, mut arrays, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    for (leaf, shape) in array_leaves(&instr.shape).enumerate() {
        let leaf = leaf as u32;
        shapes.push(shape);
        let from = expr.array(shape, leaf);
        let to = expr.array(shape, leaves + leaf);
        expr.arrays[to as usize].written = true;
        arrays.push((from, to));
        let bound = if shape.dims.is_empty() {
            scalars.push((leaf, shape.element_type));
            Bound::Node(expr.given(leaf, shape.element_type))
        } else {
            Bound::Array(to)
        };
        expr.bind(in_condition, leaf, bound);
        expr.bind(in_body, leaf, bound);
    }
    let condition = expr.node(module.root(condition), 0, &[])?;
    let root = module.root(body);
    let mut plan = WhileKernel {
        scalars,
        condition,
        next: Vec::new(),
        arrays,
        fresh: Vec::new(),
        copies: Vec::new(),
        windows: Vec::new(),
        early: Vec::new(),
        late: Vec::new(),
        scratch: 2 * leaves,
    };
    let (mut offset, mut work) = (PROGRESS_BYTES, 0i64);
    let mut few = Vec::new();
    for (leaf, shape) in shapes.iter().enumerate() {
        let leaf = leaf as u32;
        let (at, at_leaf) = leaf_root(module, root, leaf);
        if shape.dims.is_empty() {
            plan.next.push(expr.node(root, leaf, &[])?);
            continue;
        }
        if is_leaf_of(module, root, leaf, in_body, leaf) || shape.elements() == 0 {
            continue;
        }
        let to = plan.arrays[leaf as usize].1;
        let first = 100 * (leaf + 1);
        let window = update(module, at, in_body, leaf);
        if window.is_none()
            && let Some(chain) = updates(module, at, in_body, leaf)
        {
            for update in chain {
                let elements = plan.late(&mut expr, update, shape, to, &mut offset)?;
                work = work.saturating_add(elements);
            }
            if work > MAX_ELEMENTS {
                return refuse(id, "a loop of large arrays in one function");
            }
            continue;
        }
        let dims = window.map_or(&shape.dims, |u| &module.instr(u).shape.expect_array().dims);
        work = work.saturating_add(dims.iter().fold(1, |n: i64, &d| n.saturating_mul(d)));
        if work > MAX_ELEMENTS {
            return refuse(id, "a loop of large arrays in one function");
        }
        if dims.contains(&0) {
            continue;
        }
        let starts = match window {
            Some(_) => Some(expr.window_starts(at, 2, &shape.dims, dims)?),
            None => None,
        };
        let count: i64 = dims.iter().product();
        let of = window.map_or((at, at_leaf), |update| (update, 0));
        if count <= MAX_UNROLLED_ELEMENTS
            && few.len() as i64 + count <= MAX_UNROLLED_TOTAL
            && !is_busy(&expr, of, dims, first)?
        {
            for number in 0..count {
                let index = element(number, dims);
                let position: Index = match &starts {
                    Some(starts) => index.iter().zip(starts).map(|(x, s)| expr.space.add(x, s)).collect(),
                    None => index.clone(),
                };
                let at_offset = expr.space.linear(&position, &shape.dims);
                few.push(Output { node: expr.node(of.0, of.1, &index)?, array: to, at: at_offset });
            }
            continue;
        }
        if let (Some(update), Some(starts)) = (window, starts) {
            let (index, vars) = variables(&mut expr, dims, first);
            let position: Index = index.iter().zip(&starts).map(|(x, s)| expr.space.add(x, s)).collect();
            let linear = expr.space.linear(&position, &shape.dims);
            let node = expr.node(update, 0, &index)?;
            plan.windows.push(Piece { vars, outputs: vec![Output { node, array: to, at: linear }] });
            continue;
        }
        let scratch = expr.array(shape, 2 * leaves);
        expr.arrays[scratch as usize].offset = offset;
        let bytes = shape.elements() as u64 * shape.element_type.storage_bytes() as u64;
        offset += bytes.next_multiple_of(64);
        let made = |expr: &mut Expr<'_>, part: &[(i64, i64)], first: u32| {
            let (index, vars) = nest::variables_of(expr, part, first);
            let node = expr.node(at, at_leaf, &index)?;
            let linear = expr.space.linear(&index, &shape.dims);
            Ok((vars, vec![Output { node, array: scratch, at: linear }]))
        };
        let parts = parts(&expr, (at, at_leaf), dims, first)?;
        match unroll_and_jam(&mut expr, &parts, |expr, part| made(expr, part, first))? {
            Some((vars, outputs)) => plan.fresh.push(Piece { vars, outputs }),
            None => {
                for (number, part) in (0..).zip(parts) {
                    let (vars, outputs) = made(&mut expr, &part, first + number * dims.len() as u32)?;
                    plan.fresh.push(Piece { vars, outputs });
                }
            }
        }
        plan.copies.push((scratch, to, i64::try_from(bytes).unwrap_or(0)));
    }
    // After everything else that reads the old state, and before recomputed arrays are copied into it.
    if !few.is_empty() {
        plan.windows.push(Piece { vars: Vec::new(), outputs: few });
    }
    let mut pieces: Vec<Vec<(u32, i64)>> = plan.pieces_mut().map(|p| std::mem::take(&mut p.vars)).collect();
    for vars in &mut pieces {
        let mut more: Vec<&mut Affine> =
            plan.pieces_mut().flat_map(|p| &mut p.outputs).map(|o| &mut o.at).collect();
        nest::join(&mut expr, vars, &mut more);
    }
    for (piece, vars) in plan.pieces_mut().zip(pieces) {
        piece.vars = vars;
    }
    Ok((expr, plan, offset))
}

/// A partition of an array such that each element's source is known in each part; variables are numbered from
/// `first`, a hundred at most.
fn parts(
    expr: &Expr<'_>,
    (at, leaf): (InstrId, u32),
    dims: &[i64],
    first: u32,
) -> std::result::Result<Vec<Vec<(i64, i64)>>, Unsupported> {
    let (mut trial, known) = (expr.clone(), expr.guards.len());
    let (index, _) = variables(&mut trial, dims, first);
    trial.node(at, leaf, &index)?;
    let parts = partition(&trial, known, dims, first, |_| false);
    if parts.len() * dims.len() > 100 {
        return Ok(vec![dims.iter().map(|&n| (0, n)).collect()]);
    }
    Ok(parts)
}

/// The index of an element, from its row-major offset.
fn element(number: i64, dims: &[i64]) -> Index {
    components(number, dims).into_iter().map(Affine::constant).collect()
}

/// Whether so many identical operations are done with each of a few elements that vectorizing is
/// worth the way through memory.
fn is_busy(
    expr: &Expr<'_>,
    (at, leaf): (InstrId, u32),
    dims: &[i64],
    first: u32,
) -> std::result::Result<bool, Unsupported> {
    let work = |expr: &Expr<'_>, nodes: Vec<NodeId>| {
        expr.reachable(nodes.into_iter()).into_iter().map(|n| expr.flops(n)).sum::<u64>()
    };
    let mut trial = expr.clone();
    let (index, _) = variables(&mut trial, dims, first);
    let any = trial.node(at, leaf, &index)?;
    let as_vectors = work(&trial, vec![any]);
    let mut each = Vec::new();
    for number in 0..dims.iter().product() {
        each.push(trial.node(at, leaf, &element(number, dims))?);
    }
    Ok(work(&trial, each) > MIN_ELEMENT_OPS + MIN_VECTOR_GAIN * as_vectors)
}

/// The chain of `dynamic-update-slice`s, first one first, that computes the next value of an array of the
/// state, if they replace less than half of it.
fn updates(module: &Module, at: InstrId, state: InstrId, leaf: u32) -> Option<Vec<InstrId>> {
    let chain = update_slice_chain(module, at, &|id| is_leaf_of(module, id, 0, state, leaf))?;
    let elements = |id: InstrId| module.instr(id).shape.expect_array().elements();
    let replaced =
        chain.iter().fold(0i64, |n, &u| n.saturating_add(elements(module.instr(u).operands()[1]) as i64));
    (replaced.saturating_mul(2) <= elements(chain[0]) as i64).then_some(chain)
}

/// The update of a `dynamic-update-slice` of an array of the state that has no other reader.
fn update(module: &Module, at: InstrId, state: InstrId, leaf: u32) -> Option<InstrId> {
    let instr = module.instr(at);
    if instr.opcode != Opcode::DynamicUpdateSlice {
        return None;
    }
    let &[of, update, ..] = instr.operands() else { return None };
    let alone = module.users(of).len() == 1 && module.instr(of).opcode == Opcode::GetTupleElement;
    if !alone || !is_leaf_of(module, of, 0, state, leaf) {
        return None;
    }
    // The state is read through get-tuple-element alone, once for this leaf, and the condition does not read
    // it.
    let looks = |state: InstrId| {
        module.users(state).iter().filter(|u| {
            let user = module.instr(u.user);
            user.opcode != Opcode::GetTupleElement || hlo_opt::expr::first_leaf(module, u.user) == leaf
        })
    };
    let condition = module.computations().iter().flat_map(|&c| module.instructions(c)).find_map(|i| {
        let attrs = &module.instr(i).attrs;
        let mine = module.instr(i).opcode == Opcode::While
            && attrs.computation(AttrKey::Body) == Some(module.instr(at).parent());
        mine.then(|| attrs.computation(AttrKey::Condition)).flatten()
    })?;
    let others = looks(parameter(module, condition)?).count();
    (looks(state).count() == 1 && others == 0).then_some(update)
}

impl WhileKernel {
    /// Plans a `dynamic-update-slice` that is done once everything is computed; returns its number of
    /// elements.
    fn late(
        &mut self,
        expr: &mut Expr<'_>,
        replacement: InstrId,
        shape: &hlo::ArrayShape,
        to: u32,
        offset: &mut u64,
    ) -> std::result::Result<i64, Unsupported> {
        let module = expr.module;
        let update = module.instr(replacement).operands()[1];
        let own = module.instr(update).shape.expect_array();
        if own.elements() == 0 {
            return Ok(0);
        }
        // Numbered after those of the state's leaves.
        let first = 100 * (self.arrays.len() + 1 + self.late.len()) as u32;
        let starts = expr.window_starts(replacement, 2, &shape.dims, &own.dims)?;
        for start in &starts {
            expr.values_in(start, &mut |n| self.early.push(n));
        }
        let (index, vars) = variables(expr, &own.dims, first);
        let mut node = expr.node(update, 0, &index)?;
        if vars.is_empty() {
            self.early.push(node);
        } else {
            let scratch = expr.array(own, self.scratch);
            expr.arrays[scratch as usize].offset = *offset;
            expr.arrays[scratch as usize].written = true;
            let bytes = own.elements() as u64 * own.element_type.storage_bytes() as u64;
            *offset += bytes.next_multiple_of(64);
            let at = expr.space.linear(&index, &own.dims);
            self.fresh.push(Piece { vars, outputs: vec![Output { node, array: scratch, at }] });
        }
        // Variables of its own: those of the piece above are collapsed as that one allows.
        let (index, vars) = variables(expr, &own.dims, first + 50);
        if !vars.is_empty() {
            let scratch = expr.arrays.len() as u32 - 1;
            let at = expr.space.linear(&index, &own.dims);
            node = expr.push(Op::Load { array: scratch, at, guard: ALWAYS }, own.element_type);
        }
        let position: Index = index.iter().zip(&starts).map(|(x, s)| expr.space.add(x, s)).collect();
        let at = expr.space.linear(&position, &shape.dims);
        self.late.push(Piece { vars, outputs: vec![Output { node, array: to, at }] });
        Ok(own.elements() as i64)
    }

    fn pieces_mut(&mut self) -> impl Iterator<Item = &mut Piece> {
        self.fresh.iter_mut().chain(&mut self.windows).chain(&mut self.late)
    }

    /// What an iteration reads and computes.
    pub(super) fn cost(&self, expr: &Expr<'_>) -> Cost {
        let mut cost = super::cost::read(expr, self.next.iter().copied().chain([self.condition]), 1);
        for piece in self.fresh.iter().chain(&self.windows).chain(&self.late) {
            let elements = piece.vars.iter().fold(1u64, |n, v| n.saturating_mul(v.1.unsigned_abs()));
            let more = super::cost::read(expr, piece.outputs.iter().map(|o| o.node), elements);
            cost.bytes = cost.bytes.saturating_add(more.bytes);
            cost.flops = cost.flops.saturating_add(more.flops);
        }
        cost
    }

    /// Emits the function.
    pub(super) fn emit<'c, 'a, 'ctx, 'm>(
        &self,
        f: &Function<'a, 'ctx>,
        expr: &'c Expr<'m>,
        target: &Target,
    ) -> Result<()> {
        let mut code = Code::new(f.e, expr, 1, f.parameters[0])?;
        let c = &mut code;
        let e = c.e;
        let [arguments, begin, end] = f.parameters;
        // Before the first iteration the state is as given; NaNs in state that arithmetic computes are then
        // canonical in each iteration, and need not be canonicalized again.
        let kinds: Vec<Carried> = self
            .scalars
            .iter()
            .zip(&self.next)
            .map(|(&(_, ty), &next)| Carried { ty, moved: expr.moves(next) })
            .collect();
        let begins = e.icmp(IntPredicate::EQ, begin, e.i64(0))?;
        let mut initial = Vec::new();
        for &(leaf, ty) in &self.scalars {
            let (from, to) = self.arrays[leaf as usize];
            let from = e.select(begins, c.pointers[from as usize], c.pointers[to as usize])?;
            initial.push(super::access::load_one(&e, ty, from, from, None)?);
        }
        for (leaf, &(from, to)) in self.arrays.iter().enumerate() {
            if self.scalars.iter().any(|s| s.0 as usize == leaf) {
                continue;
            }
            let shape = &expr.arrays[from as usize].shape;
            let bytes = shape.elements() as i64 * shape.element_type.storage_bytes() as i64;
            let (from, to) = (c.pointers[from as usize], c.pointers[to as usize]);
            let apart = e.and(begins, e.icmp(IntPredicate::NE, from, to)?)?;
            e.if_then(apart, || e.copy_bytes(to, from, 1, e.i64(bytes)))?;
        }
        c.mark()?;
        let first = self.goes_on(c, &initial)?;
        let results: Vec<Value<'ctx>> =
            self.scalars.iter().map(|s| c.pointers[self.arrays[s.0 as usize].1 as usize]).collect();
        let store = |all: &[Val<'ctx>]| -> Result<()> {
            for (value, &to) in all.iter().zip(&results) {
                super::access::store_one(&e, value, to)?;
            }
            Ok(())
        };
        let progress = e.argument(arguments, self.scratch as usize)?;
        let wide = registers(&initial).len();
        let ended = e.if_else(
            first,
            || {
                let mut carried = registers(&initial);
                carried.extend([begin, e.bool(true)]);
                let last = e.do_while(&carried, |carried| {
                    c.enter()?;
                    let later = e.icmp(IntPredicate::NE, carried[wide], begin)?;
                    let state = values(&kinds, &carried[..wide]);
                    let state: Vec<Val<'ctx>> = state.into_iter().map(|x| x.computed_where(later)).collect();
                    self.give(c, &state);
                    c.written = c.level();
                    let next = self.next.iter().map(|&n| c.value(n)).collect::<Result<Vec<_>>>()?;
                    for &node in &self.early {
                        c.value(node)?;
                    }
                    for piece in self.fresh.iter().chain(&self.windows).chain(&self.late) {
                        piece.emit(c, target)?;
                    }
                    for &(from, to, bytes) in &self.copies {
                        e.copy_bytes(c.pointers[to as usize], c.pointers[from as usize], 64, e.i64(bytes))?;
                    }
                    c.leave();
                    let more = self.goes_on(c, &next)?;
                    let done = e.add(carried[wide], e.i64(1))?;
                    let again = e.and(more, e.icmp(IntPredicate::SLT, done, end)?)?;
                    let settled = next.iter().zip(&kinds).map(|(x, kind)| x.settled_if(&e, kind.moved));
                    let mut next = registers(&settled.collect::<Result<Vec<_>>>()?);
                    next.extend([done, more]);
                    Ok((again, next))
                })?;
                store(&values(&kinds, &last[..wide]))?;
                Ok(last[wide..].to_vec())
            },
            || {
                store(&initial)?;
                Ok(vec![begin, e.bool(false)])
            },
        )?;
        let goes_on = e.zext(ended[1], Prim::I64)?;
        e.store(goes_on, e.address_at(progress, offset_of!(Progress, goes_on) as u64)?, 8)?;
        e.store(ended[0], e.address_at(progress, offset_of!(Progress, iterations) as u64)?, 8)?;
        e.return_void()
    }

    fn give<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>, state: &[Val<'ctx>]) {
        for (&(leaf, _), value) in self.scalars.iter().zip(state) {
            c.give(leaf, *value, true);
        }
    }

    fn goes_on<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>, state: &[Val<'ctx>]) -> Result<Value<'ctx>> {
        c.enter()?;
        self.give(c, state);
        c.written = c.level();
        let more = c.value(self.condition)?.to_bool();
        c.leave();
        Ok(more)
    }
}

impl Piece {
    fn emit<'c, 'a, 'ctx, 'm>(&self, c: &mut Code<'c, 'a, 'ctx, 'm>, target: &Target) -> Result<()> {
        let last = self.vars.last().map_or(1, |v| v.1);
        let lanes = lanes::lanes(c.expr, target, self.outputs.iter().map(|o| o.node));
        c.mark()?;
        match self.vars.split_last() {
            None => {
                c.enter()?;
                store_all(c, &self.outputs, false)?;
                c.leave();
            }
            Some((&(var, n), outer)) => {
                c.lanes = if last <= 2 { 1 } else { lanes };
                let (e, w) = (c.e, i64::from(c.lanes));
                loops(c, outer, &|c| {
                    over_lanes(c, target, var, e.i64(0), e.i64(n), Some(n), w, &|c| {
                        store_all(c, &self.outputs, false)
                    })
                })?;
                c.lanes = 1;
            }
        }
        c.mark()
    }
}
