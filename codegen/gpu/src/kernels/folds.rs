//! Accumulators of reductions in the registers of a thread, and their combination across the threads of a
//! block.
//!
//! **Invariants:** the threads that combine execute the same code together, so every shuffle has all lanes
//! and every barrier all threads; threads without elements hold neutral elements. What may not be
//! reassociated is never combined across threads.

use hlo::ElementType;
use hlo_llvm::scalar::{self, Val, combine};
use hlo_llvm::{Emit, Error, IntPredicate, Prim, Result, Shuffle, Value};
use hlo_opt::expr::NodeId;
use hlo_opt::expr::fold::Fold;
use hlo_opt::fusion::combine::Combine;

use crate::arch::WARP;
use crate::code::Code;

/// A reduction, and the elements that a thread combines per step.
pub(crate) struct Item<'m> {
    /// The combiner.
    pub(crate) fold: Fold<'m>,
    /// The elements of a step, in order: for each a node per operand.
    pub(crate) elements: Vec<Vec<NodeId>>,
}

/// Reductions that are computed at the same time.
pub(crate) struct Folds<'m> {
    /// In the order of their instructions.
    pub(crate) items: Vec<Item<'m>>,
    /// Elements are combined one after the other in the interpreter's order, starting from the initial value.
    pub(crate) literal: bool,
    /// Elements are accumulators of other threads.
    pub(crate) partial: bool,
}

/// The steps of a thread.
pub(crate) struct Steps<'ctx> {
    /// The variable that counts them.
    pub(crate) var: u32,
    /// The first one, and the exclusive end.
    pub(crate) low: Value<'ctx>,
    pub(crate) high: Value<'ctx>,
    /// The stride between them.
    pub(crate) pace: i64,
    /// Steps per iteration (unrolling).
    pub(crate) copies: i64,
    /// Whether there may be steps after the last full iteration.
    pub(crate) remain: bool,
}

/// Values as loop-carried registers.
pub(crate) fn registers<'ctx>(values: &[Val<'ctx>]) -> Vec<Value<'ctx>> {
    values.iter().flat_map(Val::registers).collect()
}

/// Combines accumulators with elements, or with accumulators of later elements.
pub(crate) fn apply<'ctx>(
    e: Emit<'_, 'ctx>,
    how: &Combine<'_>,
    a: &[Val<'ctx>],
    b: &[Val<'ctx>],
) -> Result<Vec<Val<'ctx>>> {
    let Combine::General { expr, results } = how else {
        let combined = combine::combined(&e, how, a, b)?;
        return combined.ok_or_else(|| Error::Llvm("a combination without an operation".into()));
    };
    let mut code = Code::new(e, expr, &[]);
    for (i, x) in a.iter().chain(b).enumerate() {
        code.give(i as u32, *x);
    }
    results.iter().map(|&r| code.value(r)?.settled_if(&e, expr.moves(r))).collect()
}

/// A register in its memory type: bits as bytes.
fn widened<'ctx>(e: &Emit<'_, 'ctx>, register: Value<'ctx>) -> Result<Value<'ctx>> {
    if e.prim_of(register) == Prim::I1 { e.zext(register, Prim::I8) } else { Ok(register) }
}

/// The inverse of [`widened`].
fn narrowed<'ctx>(e: &Emit<'_, 'ctx>, prim: Prim, stored: Value<'ctx>) -> Result<Value<'ctx>> {
    if prim == Prim::I1 { e.icmp(IntPredicate::NE, stored, e.int(Prim::I8, 0)) } else { Ok(stored) }
}

impl<'m> Folds<'m> {
    /// Types of all accumulators, and whether one may hold a NaN that was only moved.
    fn carried(&self) -> impl Iterator<Item = (ElementType, bool)> {
        self.items.iter().flat_map(|item| {
            let fold = &item.fold;
            fold.types.iter().enumerate().map(|(i, &ty)| (ty, fold.combine.moves(i)))
        })
    }

    /// The values in registers.
    pub(crate) fn values<'ctx>(&self, registers: &[Value<'ctx>]) -> Vec<Val<'ctx>> {
        let mut rest = registers;
        let of = |(ty, moved): (ElementType, bool)| {
            let (mine, more) = rest.split_at(1 + usize::from(ty.is_complex()));
            rest = more;
            Val::of_registers(ty, mine, moved)
        };
        self.carried().map(of).collect()
    }

    /// The nodes of all elements of a step.
    pub(crate) fn elements(&self) -> impl Iterator<Item = NodeId> {
        self.items.iter().flat_map(|item| item.elements.iter().flatten().copied())
    }

    /// The size of all accumulators of a thread, in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.carried().map(|(ty, _)| ty.storage_bytes() as u32).sum()
    }

    /// The values that accumulators start from.
    pub(crate) fn starts<'ctx>(&self, c: &mut Code<'_, 'm, '_, 'ctx>) -> Result<Vec<Val<'ctx>>> {
        let mut all = Vec::new();
        for Item { fold, .. } in &self.items {
            for (i, (&node, &ty)) in fold.initial.iter().zip(&fold.types).enumerate() {
                all.push(if self.literal || fold.combine.idempotent(ty) {
                    c.value(node)?.settled_if(&c.e, fold.combine.moves(i))?
                } else {
                    combine::neutral(&c.e, &fold.combine, ty)
                });
            }
        }
        Ok(all)
    }

    /// Combines the elements of a step into accumulators; where a condition does not hold, the start values
    /// instead.
    pub(crate) fn step<'ctx>(
        &self,
        c: &mut Code<'_, 'm, '_, 'ctx>,
        accumulators: &[Val<'ctx>],
        within: Option<(Value<'ctx>, &[Val<'ctx>])>,
    ) -> Result<Vec<Val<'ctx>>> {
        let (mut all, mut at) = (Vec::new(), 0);
        for Item { fold, elements } in &self.items {
            let n = fold.types.len();
            let mut mine = accumulators[at..at + n].to_vec();
            for element in elements {
                let mut values = element.iter().map(|&n| c.value(n)).collect::<Result<Vec<_>>>()?;
                if let Some((condition, starts)) = within {
                    for (value, start) in values.iter_mut().zip(&starts[at..]) {
                        *value = scalar::select(&c.e, condition, value, start)?;
                    }
                }
                let in_order = match self.partial {
                    true => None,
                    false => combine::combined_in_order(&c.e, &fold.combine, &mine, &values)?,
                };
                mine = match in_order {
                    Some(combined) => combined,
                    None => apply(c.e, &fold.combine, &mine, &values)?,
                };
            }
            all.extend(mine);
            at += n;
        }
        Ok(all)
    }

    /// Combines the steps `low`, `low + pace`, ... below `high` into accumulators (registers), `copies` of
    /// them per iteration. `remain`: there may be steps after the last full iteration.
    pub(crate) fn over<'ctx>(
        &self,
        c: &mut Code<'_, 'm, '_, 'ctx>,
        steps: &Steps<'ctx>,
        accumulators: Vec<Value<'ctx>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let &Steps { var, low, high, pace, copies, remain } = steps;
        let e = c.e;
        let prim = e.prim_of(low);
        let int = |n: i64| e.int(prim, n.cast_unsigned());
        let (mut next, mut carried) = (low, accumulators);
        if copies > 1 {
            let last = e.sub(high, int((copies - 1) * pace))?;
            let all: Vec<_> = [next].into_iter().chain(carried).collect();
            let all = e.for_carried(next, last, int(copies * pace), &all, |step, all| {
                c.scoped(|c| {
                    let mut mine = all[1..].to_vec();
                    let mut scopes = Vec::new();
                    for copy in 0..copies {
                        let at = if copy == 0 { step } else { e.add(step, int(copy * pace))? };
                        scopes.push(c.begun(|c| {
                            c.set_var(var, at);
                            c.load_runs(self.elements())
                        })?);
                    }
                    for mut scope in scopes {
                        mine = c.resumed(&mut scope, |c| {
                            Ok(registers(&self.step(c, &self.values(&mine), None)?))
                        })?;
                    }
                    Ok([e.add(step, int(copies * pace))?].into_iter().chain(mine).collect())
                })
            })?;
            next = all[0];
            carried = all[1..].to_vec();
        }
        if copies > 1 && !remain {
            return Ok(carried);
        }
        e.for_carried(next, high, int(pace), &carried, |step, mine| {
            c.scoped(|c| {
                c.set_var(var, step);
                c.load_runs(self.elements())?;
                Ok(registers(&self.step(c, &self.values(mine), None)?))
            })
        })
    }

    /// Combines accumulators with accumulators of other elements.
    pub(crate) fn joined<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        a: &[Val<'ctx>],
        b: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        let (mut all, mut at) = (Vec::new(), 0);
        for Item { fold, .. } in &self.items {
            let mine = at..at + fold.types.len();
            all.extend(apply(e, &fold.combine, &a[mine.clone()], &b[mine.clone()])?);
            at = mine.end;
        }
        Ok(all)
    }

    /// Defines the results of these accumulators in the expression.
    pub(crate) fn give<'ctx>(&self, c: &mut Code<'_, 'm, '_, 'ctx>, total: &[Val<'ctx>]) -> Result<()> {
        let mut at = 0;
        for Item { fold, .. } in &self.items {
            let mine = &total[at..at + fold.types.len()];
            at += fold.types.len();
            let closed = if self.literal || fold.combine.idempotent(fold.types[0]) {
                mine.to_vec()
            } else {
                let initial = fold.initial.iter().map(|&n| c.value(n)).collect::<Result<Vec<_>>>()?;
                apply(c.e, &fold.combine, &initial, mine)?
            };
            for (&number, value) in fold.given.iter().zip(closed) {
                c.give(number, value);
            }
        }
        Ok(())
    }

    /// Combines accumulators across groups of `width` neighbouring threads; every thread of a group gets the
    /// result. `width` is a power of two; groups of more than a warp exchange through shared memory of this
    /// name, which nothing else may use.
    pub(crate) fn across_lanes<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        thread: Value<'ctx>,
        threads: u32,
        width: u32,
        name: &str,
        accumulators: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        let mut all = self.across_warp(e, (1, width.min(WARP)), accumulators)?;
        if width <= WARP {
            return Ok(all);
        }
        let warps = width / WARP;
        let warp = e.lshr(thread, e.i32(5))?;
        let lane = e.and(thread, e.i32(31))?;
        let registers = registers(&all);
        let arrays = self.shared(e, name, threads / WARP, &registers)?;
        let is_first = e.icmp(IntPredicate::EQ, lane, e.i32(0))?;
        e.if_then(is_first, || {
            for (array, &x) in arrays.iter().zip(&registers) {
                array.store(&e, warp, x)?;
            }
            Ok(())
        })?;
        e.barrier()?;
        // The first warp of the group has a lane for each of its warps.
        let first = e.and(warp, e.i32(-(warps as i32)))?;
        let from = e.add(first, e.and(lane, e.i32(warps as i32 - 1))?)?;
        let loaded = arrays.iter().map(|array| array.load(&e, from)).collect::<Result<Vec<_>>>()?;
        all = self.values(&loaded);
        self.across_warp(e, (1, warps), &all)
    }

    /// Combines accumulators of lanes that are `stride` apart, within groups of `width`.
    fn across_warp<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        (stride, width): (u32, u32),
        accumulators: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        let mut all = accumulators.to_vec();
        let mut distance = width / 2;
        while distance >= stride {
            let mut other = Vec::new();
            for x in registers(&all) {
                other.push(e.shuffle_sync(e.full_warp(), Shuffle::Bfly, x, e.i32(distance as i32))?);
            }
            all = self.joined(e, &all, &self.values(&other))?;
            distance /= 2;
        }
        Ok(all)
    }

    /// Shared memory for that many values of each register.
    fn shared<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        name: &str,
        elements: u32,
        registers: &[Value<'ctx>],
    ) -> Result<Vec<SharedArray<'ctx>>> {
        let of = |(i, &x): (usize, &Value<'ctx>)| {
            SharedArray::new(&e, &format!("{name}_{i}"), e.prim_of(x), elements)
        };
        registers.iter().enumerate().map(of).collect()
    }

    /// Combines accumulators of threads that are `stride` (a power of two) apart, `rows` of them; the first
    /// `stride` threads get the results, the others unspecified values. `stride * rows` threads are all of
    /// the block. Nothing else may use shared memory of this name.
    pub(crate) fn across_rows<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        thread: Value<'ctx>,
        (stride, rows): (u32, u32),
        name: &str,
        accumulators: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        if rows == 1 {
            return Ok(accumulators.to_vec());
        }
        // First across the rows of a warp, if there are several.
        let mut accumulators = accumulators.to_vec();
        let of_warp = (WARP / stride).clamp(1, rows);
        if of_warp > 1 {
            accumulators = self.across_warp(e, (stride, stride * of_warp), &accumulators)?;
        }
        let rows = rows / of_warp;
        if rows == 1 {
            return Ok(accumulators);
        }
        let mine = registers(&accumulators);
        let arrays = self.shared(e, name, stride * rows, &mine)?;
        let is_first = e.icmp(IntPredicate::ULT, thread, e.i32(stride as i32))?;
        let (mut slot, mut stores) = (thread, e.not(is_first)?);
        if of_warp > 1 {
            let (lane, warp) = (e.and(thread, e.i32(31))?, e.lshr(thread, e.i32(5))?);
            slot = e.add(e.mul(warp, e.i32(stride as i32))?, lane)?;
            stores = e.and(stores, e.icmp(IntPredicate::ULT, lane, e.i32(stride as i32))?)?;
        }
        e.if_then(stores, || arrays.iter().zip(&mine).try_for_each(|(array, &x)| array.store(&e, slot, x)))?;
        e.barrier()?;
        let all = e.if_else(
            is_first,
            || {
                e.for_carried(e.i32(1), e.i32(rows as i32), e.i32(1), &mine, |row, carried| {
                    let from = e.add(e.mul(row, e.i32(stride as i32))?, thread)?;
                    let other =
                        arrays.iter().map(|array| array.load(&e, from)).collect::<Result<Vec<_>>>()?;
                    let all = self.joined(e, &self.values(carried), &self.values(&other))?;
                    Ok(registers(&all))
                })
            },
            || Ok(mine.clone()),
        )?;
        Ok(self.values(&all))
    }
}

/// An array in shared memory, of registers of a kind.
pub(crate) struct SharedArray<'ctx> {
    prim: Prim,
    base: Value<'ctx>,
}

impl<'ctx> SharedArray<'ctx> {
    /// With that many elements.
    pub(crate) fn new(e: &Emit<'_, 'ctx>, name: &str, prim: Prim, elements: u32) -> Result<Self> {
        let stored = if prim == Prim::I1 { Prim::I8 } else { prim };
        let base = e.shared_array(name, stored, elements, 16)?;
        Ok(Self { prim, base: base.into() })
    }

    fn bytes(&self) -> u64 {
        self.prim.bytes().max(1)
    }

    fn address(&self, e: &Emit<'_, 'ctx>, at: Value<'ctx>) -> Result<Value<'ctx>> {
        let at = e.mul(e.resize(at, Prim::I32, true)?, e.i32(self.bytes() as i32))?;
        e.address(self.base, at)
    }

    /// Stores an element.
    pub(crate) fn store(&self, e: &Emit<'_, 'ctx>, at: Value<'ctx>, x: Value<'ctx>) -> Result<()> {
        e.store(widened(e, x)?, self.address(e, at)?, self.bytes() as u32)?;
        Ok(())
    }

    /// Loads an element.
    pub(crate) fn load(&self, e: &Emit<'_, 'ctx>, at: Value<'ctx>) -> Result<Value<'ctx>> {
        let stored = if self.prim == Prim::I1 { Prim::I8 } else { self.prim };
        narrowed(e, self.prim, e.load(stored, self.address(e, at)?, self.bytes() as u32)?)
    }
}
