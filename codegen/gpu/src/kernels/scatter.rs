//! Scatters in the order of the interpreter: each element gets its updates in the order of the index vectors.
//!
//! The result begins as a copy of the operand. Then: *independent* updates (those of one index vector, those
//! declared unique, those that commute exactly and have an atomic operation) take a thread each; a few
//! windows that are equal or disjoint are *walked*, one thread for each element of the window; all others are
//! *sorted* stably by their offsets, and for each run of equal keys one thread (for each element of the
//! window) applies the updates in order. **Invariant:** no element is written by two threads of a launch
//! except by atomic operations on integers, so results do not depend on a schedule.

use hlo::attrs::AttrKey;
use hlo::{ElementType, InstrId, Module, Opcode, TypeClass};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::Val;
use hlo_llvm::{Atomic, Emit, IntPredicate, Prim, Result, Scope, Value};
use hlo_opt::expr::index::{Affine, Index};
use hlo_opt::expr::{ALWAYS, Condition, Expr, GuardId, NodeId, Op};

use super::applied::Applied;
use super::sort::{Area, Digits, Order, Sorter, Storage, aligned};
use super::threads::{block, thread};
use super::{Unit, launch};
use crate::code::{Code, load, store};
use crate::kernel::{Argument, Kernel, Stage};
use crate::subject::Subject;

/// Threads of a block.
const THREADS: u32 = 256;
/// Up to this many windows are walked.
const MAX_WALKED: i64 = 64;
/// The variable that counts index vectors.
const BATCH: u32 = 0;
/// The variable that counts elements of a window.
const WINDOW: u32 = 1;
/// The variable that counts elements of the result.
const ELEMENT: u32 = 2;

/// A scatter.
struct Scatter<'m> {
    expr: Expr<'m>,
    /// The updates at an index vector and an element of its window.
    updates: Vec<NodeId>,
    /// The arrays of the results.
    results: Vec<u32>,
    /// The operands at an element of the result.
    operands: Vec<NodeId>,
    /// The offset of the element that an update goes to.
    at: Affine,
    /// The offset of the first element of a window.
    base: Affine,
    /// The offset of an element within the window.
    offset: Affine,
    /// Holds where the window is within bounds; `None`: it never is.
    inside: Option<GuardId>,
    /// Index vectors.
    batch: i64,
    /// Elements of a window.
    window: i64,
    /// Elements of a result.
    elements: i64,
    /// Windows are equal or disjoint.
    aligned: bool,
    applied: Applied<'m>,
    /// No two updates go to one element.
    unique: bool,
}

/// The scatter whose results the roots are.
fn of_roots(module: &Module, id: InstrId, roots: &[InstrId]) -> std::result::Result<InstrId, Unsupported> {
    let through = |root: InstrId| match module.instr(root).opcode {
        Opcode::GetTupleElement => module.instr(root).operands()[0],
        _ => root,
    };
    let first = roots.first().copied().map(through);
    first
        .filter(|&s| module.instr(s).opcode == Opcode::Scatter && roots.iter().all(|&r| through(r) == s))
        .ok_or_else(|| Unsupported::new(module, id, "a scatter with other results beside its own"))
}

impl<'m> Scatter<'m> {
    fn new(module: &'m Module, id: InstrId, subject: Subject<'m>) -> std::result::Result<Self, Unsupported> {
        let Subject { mut expr, roots, .. } = subject;
        let scatter = of_roots(module, id, &roots.iter().map(|r| r.instr).collect::<Vec<_>>())?;
        let instr = module.instr(scatter);
        let count = instr.operands().len() / 2;
        if roots.len() != count {
            return Err(Unsupported::new(module, id, "some of the results of a scatter"));
        }
        let (operands, rest) = instr.operands().split_at(count);
        let (indices, updates) = (rest[0], &rest[1..]);
        let of = &module.instr(operands[0]).shape.expect_array().dims;
        let update_dims = &module.instr(updates[0]).shape.expect_array().dims;
        let a = &instr.attrs;
        let list = |key| a.ints_or_empty(key);
        let (window_dims, inserted) = (list(AttrKey::UpdateWindowDims), list(AttrKey::InsertedWindowDims));
        let batching = list(AttrKey::InputBatchingDims);
        let indices_batching = list(AttrKey::ScatterIndicesBatchingDims);
        let vector = a.int(AttrKey::IndexVectorDim).unwrap_or(0);
        let map = list(AttrKey::ScatterDimsToOperandDims);
        let elements: i64 = of.iter().product();

        let in_window = |d: usize| window_dims.contains(&(d as i64));
        let size = |d: &i64| update_dims[*d as usize];
        let batch_dims: Vec<i64> =
            (0..update_dims.len()).filter(|&d| !in_window(d)).map(|d| update_dims[d]).collect();
        let window_sizes: Vec<i64> = window_dims.iter().map(size).collect();
        let (batch, window) = (batch_dims.iter().product::<i64>(), window_sizes.iter().product::<i64>());
        let batch_var = expr.space.var(BATCH, batch);
        let window_var = expr.space.var(WINDOW, window);
        let batch_index = expr.space.delinear(&batch_var, &batch_dims);
        let window_index = expr.space.delinear(&window_var, &window_sizes);
        let (mut of_batch, mut of_window) = (batch_index.iter(), window_index.iter());
        let index: Index = (0..update_dims.len())
            .map(|d| {
                if in_window(d) { of_window.next() } else { of_batch.next() }.cloned().unwrap_or_default()
            })
            .collect();

        let starts = expr.index_vector(indices, &batch_index, vector, map)?;
        let mut offsets = window_index.iter().cloned().zip(window_sizes.iter().copied());
        let (mut first, mut behind, mut conditions) = (Index::new(), Index::new(), Vec::new());
        let (mut fits, mut is_aligned) = (true, true);
        for (d, &n) in of.iter().enumerate() {
            let dim = d as i64;
            if let Some(b) = batching.iter().position(|&x| x == dim) {
                // The component of the index vectors' index that runs along this dimension.
                let s = indices_batching.get(b).copied().unwrap_or(0);
                let dimension = usize::try_from(if s > vector { s - 1 } else { s }).unwrap_or(0);
                first.push(batch_index.get(dimension).cloned().unwrap_or_default());
                behind.push(Affine::default());
                continue;
            }
            let own = if inserted.contains(&dim) { None } else { offsets.next() };
            let (offset, size) = own.unwrap_or((Affine::default(), 1));
            behind.push(offset);
            fits &= size <= n;
            match starts.iter().find(|s| s.0 == dim) {
                Some(&(_, node)) if size <= n => {
                    // The range is extended by one on either side, which stands for everything out of bounds.
                    let start = expr.space.value(node, -1, n - size + 1);
                    conditions.push(Condition { value: start.clone(), low: 0, high: n - size + 1 });
                    first.push(start);
                    is_aligned &= size == 1 || size == n;
                }
                Some(_) | None => first.push(Affine::default()),
            }
        }
        let base = expr.space.linear(&first, of);
        let offset = expr.space.linear(&behind, of);
        let at = expr.space.add(&base, &offset);
        let inside = expr.guard(ALWAYS, &conditions).filter(|_| fits);
        let element = expr.space.var(ELEMENT, elements);
        let element = expr.space.delinear(&element, of);
        let mut nodes = |of: &[InstrId], index: &Index| {
            of.iter().map(|&o| expr.node(o, 0, index)).collect::<std::result::Result<Vec<_>, _>>()
        };
        // Where there is none there is no node: what is padded or concatenated of nothing has no elements to
        // choose from.
        let updates = if batch * window == 0 { Vec::new() } else { nodes(updates, &index)? };
        let operand_nodes = if elements == 0 { Vec::new() } else { nodes(operands, &element)? };
        let types: Vec<ElementType> = roots.iter().map(|r| r.shape.element_type).collect();
        let both: Vec<ElementType> = types.iter().chain(&types).copied().collect();
        let applied = a.computation(AttrKey::ToApply);
        let applied = applied.ok_or_else(|| Unsupported::new(module, id, "a scatter by nothing"))?;
        let mut results: Vec<(u32, u32)> = roots
            .iter()
            .map(|r| {
                let own = module.instr(r.instr).opcode == Opcode::GetTupleElement;
                let leaf = if own { hlo_opt::expr::first_leaf(module, r.instr) } else { r.leaf };
                (leaf, r.array)
            })
            .collect();
        results.sort_unstable();
        Ok(Self {
            updates,
            operands: operand_nodes,
            results: results.into_iter().map(|r| r.1).collect(),
            at,
            base,
            offset,
            inside,
            batch,
            window,
            elements,
            aligned: is_aligned,
            applied: Applied::new(module, id, applied, &both)?,
            unique: batch == 1 || a.bool(AttrKey::UniqueIndices),
            expr,
        })
    }

    /// The atomic operation that combines an update, if the order of updates does not matter to it.
    fn atomic(&self) -> Option<Atomic> {
        let &[result] = &self.results[..] else { return None };
        let ty = self.expr.arrays[result as usize].shape.element_type;
        if !ty.is_integer() || ty.bits() < 32 {
            return None;
        }
        let signed = ty.class() == TypeClass::Signed;
        // Not a dispatch: other operations have no atomic form.
        match self.applied.operation()? {
            Opcode::Add => Some(Atomic::Add),
            Opcode::And => Some(Atomic::And),
            Opcode::Or => Some(Atomic::Or),
            Opcode::Xor => Some(Atomic::Xor),
            Opcode::Maximum => Some(if signed { Atomic::Max } else { Atomic::UMax }),
            Opcode::Minimum => Some(if signed { Atomic::Min } else { Atomic::UMin }),
            _ => None,
        }
    }

    /// The combination of values with the current update.
    fn combined<'ctx>(
        &self,
        code: &mut Code<'_, 'm, '_, 'ctx>,
        values: Vec<Val<'ctx>>,
    ) -> Result<Vec<Val<'ctx>>> {
        let mut arguments: Vec<Option<Val<'ctx>>> = values.into_iter().map(Some).collect();
        for (k, &update) in self.updates.iter().enumerate() {
            let used = self.applied.uses(self.updates.len() + k);
            arguments.push(used.then(|| code.value(update)).transpose()?);
        }
        self.applied.call(code.e, &arguments)
    }

    /// Combines the current update with memory.
    fn update<'ctx>(&self, code: &mut Code<'_, 'm, '_, 'ctx>) -> Result<()> {
        let e = code.e;
        let mut addresses = Vec::new();
        for &array in &self.results {
            addresses.push((array, code.address(array, &self.at)?));
        }
        let ty = |array: u32| self.expr.arrays[array as usize].shape.element_type;
        let before = addresses.iter().map(|&(array, at)| load(&e, ty(array), at)).collect::<Result<_>>()?;
        let after = self.combined(code, before)?;
        addresses.iter().zip(&after).try_for_each(|(&(_, at), value)| store(&e, value, at))
    }
}

/// Emission of the launches of a scatter.
struct Emitter<'a, 'u, 'ctx, 'm> {
    unit: &'a Unit<'u, 'ctx>,
    module: &'m Module,
    id: InstrId,
    scatter: &'a Scatter<'m>,
    symbol: &'a str,
    arrays: u32,
}

impl<'ctx, 'm> Emitter<'_, '_, 'ctx, 'm> {
    /// A function that does something for each number below `count`, a thread each.
    fn each(
        &self,
        kernel: &mut Kernel,
        suffix: &str,
        arrays: u32,
        count: i64,
        body: impl FnOnce(&mut Code<'_, 'm, '_, 'ctx>, &[Value<'ctx>], Value<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let symbol = format!("{}{suffix}", self.symbol);
        let (e, arguments) = self.unit.begin(&symbol, arrays, 0, THREADS)?;
        let blocks = (count + i64::from(THREADS) - 1) / i64::from(THREADS);
        let narrow = blocks.saturating_mul(i64::from(THREADS)) <= i64::from(i32::MAX);
        let prim = if narrow { Prim::I32 } else { Prim::I64 };
        let first = e.mul(block(&e, prim)?, e.int(prim, u64::from(THREADS)))?;
        let number = e.add(first, thread(&e, prim)?)?;
        let inside = e.icmp(IntPredicate::ULT, number, e.int(prim, count.cast_unsigned()))?;
        let mut code = Code::new(e, &self.scatter.expr, &arguments);
        e.if_then(inside, || body(&mut code, &arguments, number))?;
        e.return_void()?;
        let arguments = (0..arrays).map(Argument::Array).collect();
        let launch = launch(self.module, self.id, &symbol, blocks, THREADS, arguments)?;
        kernel.stages.push(Stage::Launch(launch));
        Ok(())
    }

    /// Quotient and remainder by the number of elements of a window.
    fn parts(&self, e: &Emit<'_, 'ctx>, number: Value<'ctx>) -> Result<(Value<'ctx>, Value<'ctx>)> {
        let window = e.int(e.prim_of(number), self.scatter.window.cast_unsigned());
        Ok((e.udiv(number, window)?, e.urem(number, window)?))
    }

    /// Emits code under the condition that the current window is within bounds.
    fn if_inside(
        &self,
        code: &mut Code<'_, 'm, '_, 'ctx>,
        body: impl FnOnce(&mut Code<'_, 'm, '_, 'ctx>) -> Result<()>,
    ) -> Result<()> {
        let inside = self.scatter.inside.map_or(Ok(None), |guard| code.guard(guard))?;
        let e = code.e;
        match inside {
            Some(inside) => e.if_then(inside, || code.scoped(body)),
            None => body(code),
        }
    }

    /// Copies the operands to the results.
    fn begin(&self, kernel: &mut Kernel) -> Result<()> {
        let s = self.scatter;
        let mut computed = Vec::new();
        for (&operand, &result) in s.operands.iter().zip(&s.results) {
            let node = &s.expr.nodes[operand as usize];
            let element = s.expr.space.atom_of(ELEMENT).map(Affine::atom).unwrap_or_default();
            match &node.op {
                Op::Load { array, at, guard: ALWAYS } if *at == element => {
                    let argument = |array: u32| s.expr.arrays[array as usize].argument;
                    kernel.stages.push(Stage::Copy { from: argument(*array), to: argument(result) });
                }
                _ => computed.push((operand, result, element)),
            }
        }
        if computed.is_empty() {
            return Ok(());
        }
        self.each(kernel, "_operand", self.arrays, s.elements, |code, _, number| {
            code.set_var(ELEMENT, number);
            let values = computed.iter().map(|c| code.value(c.0)).collect::<Result<Vec<_>>>()?;
            values
                .iter()
                .zip(&computed)
                .try_for_each(|(value, (_, result, at))| code.store(value, *result, at))
        })
    }

    /// Independent updates.
    fn independent(&self, kernel: &mut Kernel, atomic: Option<Atomic>) -> Result<()> {
        let s = self.scatter;
        self.each(kernel, "", self.arrays, s.batch * s.window, |code, _, number| {
            let (batch, window) = self.parts(&code.e, number)?;
            code.set_var(BATCH, batch);
            code.set_var(WINDOW, window);
            self.if_inside(code, |code| match atomic {
                Some(op) => {
                    let address = code.address(s.results[0], &s.at)?;
                    let update = code.value(s.updates[0])?;
                    code.e.atomic(op, address, update.registers()[0], Scope::Device)?;
                    Ok(())
                }
                None => s.update(code),
            })
        })
    }

    /// All windows one after the other, one thread for each of their elements.
    fn walked(&self, kernel: &mut Kernel) -> Result<()> {
        let s = self.scatter;
        self.each(kernel, "", self.arrays, s.window, |code, _, number| {
            code.set_var(WINDOW, number);
            let e = code.e;
            e.for_range(e.i32(0), e.i32(s.batch as i32), e.i32(1), |batch| {
                code.scoped(|code| {
                    code.set_var(BATCH, batch);
                    self.if_inside(code, |code| s.update(code))
                })
            })
        })
    }

    /// Updates sorted by their offsets: whole windows that are equal or disjoint, otherwise element by
    /// element.
    fn sorted(&self, kernel: &mut Kernel) -> Result<()> {
        let s = self.scatter;
        let (items, per_item) = if s.aligned { (s.batch, s.window) } else { (s.batch * s.window, 1) };
        let key = if s.elements < i64::from(u32::MAX) { ElementType::U32 } else { ElementType::U64 };
        let item = if items < i64::from(u32::MAX) { ElementType::U32 } else { ElementType::U64 };
        let key_prim = if key == ElementType::U32 { Prim::I32 } else { Prim::I64 };
        // The key of what is out of bounds is past all elements: keys have as few bits as possible.
        let nowhere = s.elements.unsigned_abs();
        let scratch = self.arrays;
        let arrays = scratch + 1;
        let order = Order::First { descending: false };
        let sorter = Sorter {
            unit: self.unit,
            module: self.module,
            id: self.id,
            symbol: &format!("{}_sort", self.symbol),
            types: &[key, item],
            order: &order,
            digits: Some(Digits::unsigned(nowhere.ilog2() + 1)),
            lines: 1,
            arrays,
            scratch,
        };
        // Keys, then what is sorted, then what sorting takes.
        let keys = aligned(items.unsigned_abs() * key.storage_bytes() as u64);
        let from = Area {
            storage: vec![Storage::Array { argument: scratch, offset: 0 }, Storage::Position],
            len: items,
            stride: 1,
        };
        let to = sorter.area(items, keys);
        let used = keys + sorter.area_bytes(items);
        kernel.scratch_bytes = kernel.scratch_bytes.max(used);
        let item_offset = match to.storage[1] {
            Storage::Array { offset, .. } => offset,
            Storage::Position => 0,
        };
        let stand = |code: &mut Code<'_, 'm, '_, 'ctx>, item: Value<'ctx>| -> Result<()> {
            let e = code.e;
            let (batch, window) = if s.aligned { (item, e.i32(0)) } else { self.parts(&e, item)? };
            code.set_var(BATCH, batch);
            if !s.aligned {
                code.set_var(WINDOW, window);
            }
            Ok(())
        };
        self.each(kernel, "_keys", arrays, items, |code, arguments, number| {
            stand(code, number)?;
            let e = code.e;
            let key_of = code.number(if s.aligned { &s.base } else { &s.at })?;
            let key_of = e.resize(key_of, key_prim, true)?;
            let inside = s.inside.map_or(Ok(None), |guard| code.guard(guard))?;
            let key_of = match inside {
                Some(inside) => e.select(inside, key_of, e.int(key_prim, nowhere))?,
                None => key_of,
            };
            let at = element(&e, arguments[scratch as usize], number, key_prim)?;
            e.store(key_of, at, key_prim.bytes() as u32)?;
            Ok(())
        })?;
        sorter.sort(kernel, &from, &to, used)?;
        let item_prim = if item == ElementType::U32 { Prim::I32 } else { Prim::I64 };
        self.each(kernel, "", arrays, items * per_item, |code, arguments, number| {
            let e = code.e;
            let prim = e.prim_of(number);
            let (first, window) = if s.aligned { self.parts(&e, number)? } else { (number, e.int(prim, 0)) };
            let sorted = e.address_at(arguments[scratch as usize], keys)?;
            let numbers = e.address_at(arguments[scratch as usize], item_offset)?;
            let key_at = |position: Value<'ctx>| -> Result<Value<'ctx>> {
                e.load(key_prim, element(&e, sorted, position, key_prim)?, key_prim.bytes() as u32)
            };
            let own = key_at(first)?;
            let somewhere = e.icmp(IntPredicate::NE, own, e.int(key_prim, nowhere))?;
            let begins = e.if_else(
                e.icmp(IntPredicate::NE, first, e.int(prim, 0))?,
                || {
                    let before = key_at(e.sub(first, e.int(prim, 1))?)?;
                    Ok(vec![e.icmp(IntPredicate::NE, before, own)?])
                },
                || Ok(vec![e.bool(true)]),
            )?[0];
            e.if_then(e.and(somewhere, begins)?, || {
                let mut to = e.resize(own, Prim::I64, false)?;
                if s.aligned {
                    code.set_var(WINDOW, window);
                    let offset = code.number(&s.offset)?;
                    to = e.add(to, e.resize(offset, Prim::I64, true)?)?;
                }
                let (mut addresses, mut before) = (Vec::new(), Vec::new());
                for &array in &s.results {
                    let ty = s.expr.arrays[array as usize].shape.element_type;
                    let base = code.address(array, &Affine::default())?;
                    let at = e.address(base, e.mul(to, e.i64(ty.storage_bytes() as i64))?)?;
                    before.extend(load(&e, ty, at)?.to_storage(&e)?);
                    addresses.push((ty, at));
                }
                // Values in memory form: each step is rounded, and its NaNs are canonical.
                let values = |mut stored: &[Value<'ctx>]| -> Result<Vec<Val<'ctx>>> {
                    let one = |&(ty, _): &(ElementType, Value<'ctx>)| {
                        let (own, rest) = stored.split_at(1 + usize::from(ty.is_complex()));
                        stored = rest;
                        Val::of_storage(&e, ty, own)
                    };
                    addresses.iter().map(one).collect()
                };
                let state: Vec<Value<'ctx>> = std::iter::once(first).chain(before).collect();
                let last = e.do_while(&state, |state| {
                    code.scoped(|code| {
                        let position = state[0];
                        let at = element(&e, numbers, position, item_prim)?;
                        stand(code, e.load(item_prim, at, item_prim.bytes() as u32)?)?;
                        let after = self.scatter.combined(code, values(&state[1..])?)?;
                        let next = e.add(position, e.int(prim, 1))?;
                        let more = e.if_else(
                            e.icmp(IntPredicate::ULT, next, e.int(prim, items.cast_unsigned()))?,
                            || Ok(vec![e.icmp(IntPredicate::EQ, key_at(next)?, own)?]),
                            || Ok(vec![e.bool(false)]),
                        )?[0];
                        let mut state = vec![next];
                        for value in &after {
                            state.extend(value.to_storage(&e)?);
                        }
                        Ok((more, state))
                    })
                })?;
                let after = values(&last[1..])?;
                addresses.iter().zip(&after).try_for_each(|(&(_, at), value)| store(&e, value, at))
            })
        })
    }
}

/// The address of an integer of an array.
fn element<'ctx>(
    e: &Emit<'_, 'ctx>,
    base: Value<'ctx>,
    number: Value<'ctx>,
    prim: Prim,
) -> Result<Value<'ctx>> {
    let number = e.resize(number, Prim::I64, false)?;
    e.address(base, e.mul(number, e.i64(prim.bytes() as i64))?)
}

/// Emits a scatter, or a fusion whose root is one.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    let subject = Subject::new(module, id)?;
    let arrays = subject.arrays;
    let scatter = Scatter::new(module, id, subject)?;
    let emitter = Emitter { unit, module, id, scatter: &scatter, symbol, arrays };
    let mut kernel = Kernel::default();
    if scatter.elements == 0 {
        return Ok(kernel);
    }
    emitter.begin(&mut kernel)?;
    if scatter.batch * scatter.window == 0
        || scatter.inside.is_none()
        || scatter.applied.selected() == Some(0)
    {
        return Ok(kernel);
    }
    let atomic = scatter.atomic();
    if scatter.unique || atomic.is_some() {
        emitter.independent(&mut kernel, if scatter.unique { None } else { atomic })?;
    } else if scatter.aligned && scatter.batch <= MAX_WALKED {
        emitter.walked(&mut kernel)?;
    } else {
        emitter.sorted(&mut kernel)?;
    }
    Ok(kernel)
}
