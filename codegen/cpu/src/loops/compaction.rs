//! Stream compaction of expensive sides of selections: computed only for the elements that take them.
//!
//! Functions that a program spells out (`erfc`, `lgamma` and the like) compute a formula for each of several
//! ranges and select. A strip of elements at a time, the inputs of the formula are compacted where the
//! selection takes it, the formula is evaluated on full vectors of them, and its results are expanded again.
//! **Invariant:** the bits of a lane do not depend on the other lanes of its vector.

use rustc_hash::FxHashSet;

use super::access::zero;
use super::code::Code;
use super::lanes::over_lanes;
use hlo::attrs::Direction;
use hlo::{ElementType, Opcode};
use hlo_llvm::scalar::{Val, register};
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Target, Value};
use hlo_opt::expr::index::AtomId;
use hlo_opt::expr::{ALWAYS, Expr, NodeId, Op};

/// Elements of a strip, a multiple of all numbers of lanes.
const STRIP_ELEMENTS: i64 = 1024;

/// The variables of strips and of packed elements.
const STRIP_VAR: u32 = 74;
const PACKED_VAR: u32 = 75;

/// The minimum operations of a side, and the minimum as a multiple of those of its condition, which is
/// computed three times.
const MIN_SIDE_OPS: u64 = 48;
const MIN_OPS_PER_CONDITION_OP: u64 = 6;

/// And as a multiple of those that the side shares with others.
const MIN_OPS_PER_SHARED_OP: u64 = 4;

/// The maximum number of nodes and of selections that are analyzed.
const MAX_NODES: usize = 4096;
const MAX_SELECTIONS: usize = 64;

/// The maximum number of inputs that are packed.
const MAX_PACKED_VALUES: usize = 3;

/// One or both sides of a selection.
#[derive(Clone, Debug)]
pub(super) struct CompactedSelect {
    condition: NodeId,
    sides: Vec<Side>,
}

/// A side of a selection.
#[derive(Clone, Debug)]
struct Side {
    /// The value of the condition that takes it.
    taken: bool,
    node: NodeId,
    /// Its inputs that differ from element to element.
    loads: Vec<NodeId>,
}

/// The nodes that these need, where node `but.0` needs all operands except number `but.1`.
fn needed(expr: &Expr<'_>, roots: &[NodeId], but: Option<(NodeId, usize)>) -> FxHashSet<NodeId> {
    let mut seen = FxHashSet::default();
    let mut pending = roots.to_vec();
    while let Some(n) = pending.pop() {
        if !seen.insert(n) {
            continue;
        }
        let mut slot = 0;
        expr.for_each_operand(n, &mut |m| {
            if but != Some((n, slot)) {
                pending.push(m);
            }
            slot += 1;
        });
    }
    seen
}

impl CompactedSelect {
    /// The most expensive side for which compaction pays among what these nodes need; `inner` is the
    /// innermost variable.
    pub(super) fn of(expr: &Expr<'_>, roots: &[NodeId], inner: AtomId) -> Option<Self> {
        let all = needed(expr, roots, None);
        let weight = |nodes: &FxHashSet<NodeId>| nodes.iter().map(|&n| expr.flops(n)).sum::<u64>();
        if all.len() > MAX_NODES || weight(&all) < MIN_SIDE_OPS || expr.arrays.iter().any(|a| a.written) {
            return None;
        }
        let mut selections: Vec<(NodeId, &[NodeId])> = Vec::new();
        for &n in &all {
            if let Op::Elementwise { instr, operands } = &expr.nodes[n as usize].op
                && expr.module.instr(*instr).opcode == Opcode::Select
            {
                selections.push((n, operands));
            }
        }
        selections.sort_unstable();
        if selections.len() > MAX_SELECTIONS {
            return None;
        }
        let mut best: Option<(u64, Self)> = None;
        for (n, operands) in selections {
            let condition = operands[0];
            let to_know = needed(expr, &[condition], None);
            let least = MIN_SIDE_OPS.max(MIN_OPS_PER_CONDITION_OP * weight(&to_know));
            let (mut sum, mut sides) = (0, Vec::new());
            for slot in [1, 2] {
                let (node, taken) = (operands[slot], slot == 1);
                let ty = expr.nodes[node as usize].ty;
                let own = needed(expr, &[node], None);
                if ty.is_complex() || register(ty).bits() < 32 || weight(&own) < least {
                    continue;
                }
                let others = needed(expr, roots, Some((n, slot)));
                let spared: u64 = own.difference(&others).map(|&m| expr.flops(m)).sum();
                // What others need, too, is computed twice.
                let shared = weight(&own) - spared;
                if spared >= least
                    && spared >= MIN_OPS_PER_SHARED_OP * shared
                    && let Some(loads) = loads(expr, own.union(&to_know).copied(), inner)
                {
                    sum += spared;
                    sides.push(Side { taken, node, loads });
                }
            }
            // Alone, a side that almost all elements take is better computed in place.
            let alone =
                matches!(sides[..], [Side { taken, .. }] if likely_value(expr, condition) == Some(taken));
            if !sides.is_empty() && !alone && best.as_ref().is_none_or(|b| b.0 < sum) {
                best = Some((sum, Self { condition, sides }));
            }
        }
        best.map(|b| b.1)
    }

    /// Emits a row, iterated as [`over_lanes`] does, with `body` at each position.
    pub(super) fn emit<'c, 'a, 'ctx, 'm>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        target: &Target,
        var: u32,
        (low, high, count): (Value<'ctx>, Value<'ctx>, Option<i64>),
        multiple: i64,
        body: &dyn Fn(&mut Code<'c, 'a, 'ctx, 'm>) -> Result<()>,
    ) -> Result<()> {
        let e = c.e;
        let lanes = i64::from(c.lanes);
        let wide = e.with_lanes(c.lanes);
        let count = count.filter(|n| n % lanes == 0).map(|_| lanes << 20);
        let elements = (STRIP_ELEMENTS + 2 * lanes) as u32;
        let mut sides = Vec::new();
        for side in &self.sides {
            let memory = |n: NodeId| -> Result<Packed<'ctx>> {
                let ty = c.expr.nodes[n as usize].ty;
                Ok(Packed { node: n, ty, buffer: e.stack(register(ty), elements)?.into() })
            };
            let packed = side.loads.iter().map(|&n| memory(n)).collect::<Result<Vec<_>>>()?;
            let next = e.stack(Prim::I64, 1)?.into();
            sides.push(Work { taken: side.taken, packed, result: memory(side.node)?, next });
        }
        let begin = || sides.iter().try_for_each(|s| e.store(e.i64(0), s.next, 8).map(|_| ()));
        c.for_var(STRIP_VAR, low, high, STRIP_ELEMENTS, false, multiple, |c| {
            let first = c.var(STRIP_VAR)?;
            let end = e.add(first, e.i64(STRIP_ELEMENTS))?;
            let end = e.select(e.icmp(IntPredicate::SLT, end, high)?, end, high)?;
            begin()?;
            over_lanes(c, target, var, first, end, count, multiple, &|c| {
                let condition = c.value(self.condition)?.registers()[0];
                for side in &sides {
                    let [mask, at] = side.taken(c, condition)?;
                    for p in &side.packed {
                        let value = c.value(p.node)?.to_storage(&wide)?[0];
                        let zero = p.zero(&wide);
                        let name = "llvm.experimental.vector.compress";
                        let value = wide.intrinsic(name, &[value.get_type()], &[value, mask, zero])?;
                        p.store(c, value, at)?;
                    }
                }
                Ok(())
            })?;
            for side in &sides {
                let total = e.load(Prim::I64, side.next, 8)?;
                for p in side.packed.iter().chain([&side.result]) {
                    p.store(c, p.zero(&wide), total)?;
                }
                c.for_var(PACKED_VAR, e.i64(0), total, lanes, true, lanes, |c| {
                    let at = c.var(PACKED_VAR)?;
                    for p in &side.packed {
                        let raw = wide.load(register(p.ty), p.address(&e, at)?, p.bytes() as u32)?;
                        c.know(p.node, Val::of_storage(&wide, p.ty, &[raw])?);
                    }
                    // With the NaNs that it has in memory: some may have been moved only.
                    let value = c.value(side.result.node)?.to_storage(&wide)?[0];
                    side.result.store(c, value, at)
                })?;
            }
            begin()?;
            over_lanes(c, target, var, first, end, count, multiple, &|c| {
                let condition = c.value(self.condition)?.registers()[0];
                for side in &sides {
                    let [mask, at] = side.taken(c, condition)?;
                    let (result, zero) = (&side.result, side.result.zero(&wide));
                    let operands = [result.address(&e, at)?, mask, zero];
                    let spread = wide.intrinsic("llvm.masked.expandload", &[zero.get_type()], &operands)?;
                    c.know(result.node, Val::of_storage(&wide, result.ty, &[spread])?);
                }
                body(c)
            })
        })
    }
}

/// The likely value of a condition for almost all elements, as far as its form says: equality is rare.
fn likely_value(expr: &Expr<'_>, condition: NodeId) -> Option<bool> {
    let Op::Elementwise { instr, .. } = &expr.nodes[condition as usize].op else { return None };
    match expr.module.instr(*instr).attrs.direction()? {
        Direction::Eq => Some(false),
        Direction::Ne => Some(true),
        Direction::Ge | Direction::Gt | Direction::Le | Direction::Lt => None,
    }
}

/// A side that is being computed.
struct Work<'ctx> {
    taken: bool,
    packed: Vec<Packed<'ctx>>,
    result: Packed<'ctx>,
    /// The number of elements so far, in memory.
    next: Value<'ctx>,
}

impl<'ctx> Work<'ctx> {
    /// The lanes that take the side, and the number of elements before them; advances that number.
    fn taken(&self, c: &Code<'_, '_, 'ctx, '_>, condition: Value<'ctx>) -> Result<[Value<'ctx>; 2]> {
        let e = c.e;
        let wide = e.with_lanes(c.lanes);
        let mut mask = if self.taken { condition } else { wide.not(condition)? };
        if let Some(active) = c.active {
            mask = wide.and(mask, active.value)?;
        }
        let at = e.load(Prim::I64, self.next, 8)?;
        let bits = e.bitcast_to(mask, e.ty(Prim::int(c.lanes)))?;
        let bits = e.zext(bits, Prim::I64)?;
        let set = e.intrinsic("llvm.ctpop", &[bits.get_type()], &[bits])?;
        e.store(e.add(at, set)?, self.next, 8)?;
        Ok([mask, at])
    }
}

/// The inputs that differ from element to element among nodes: loads, if they are few and nothing else
/// differs.
fn loads(expr: &Expr<'_>, nodes: impl Iterator<Item = NodeId>, inner: AtomId) -> Option<Vec<NodeId>> {
    let mut loads = Vec::new();
    for n in nodes {
        let node = &expr.nodes[n as usize];
        match &node.op {
            Op::Load { at, guard: ALWAYS, .. } => {
                if !expr.space.is_of_variables(at) {
                    return None;
                }
                if at.factor(inner) != 0 {
                    let plain = !node.ty.is_complex() && register(node.ty).bits() >= 32;
                    if !plain || loads.contains(&n) {
                        return None;
                    }
                    loads.push(n);
                }
            }
            Op::Constant { at, .. } if at.as_constant().is_some() => {}
            Op::Elementwise { .. } | Op::Convert { .. } | Op::BitcastConvert { .. } => {}
            Op::Load { .. }
            | Op::Constant { .. }
            | Op::Iota { .. }
            | Op::ToOrderedInt { .. }
            | Op::FromOrderedInt { .. }
            | Op::Select { .. }
            | Op::Pack { .. }
            | Op::SumOfProducts { .. }
            | Op::Sum { .. }
            | Op::Unpack { .. }
            | Op::Given { .. } => return None,
        }
    }
    loads.sort_unstable();
    (1..=MAX_PACKED_VALUES).contains(&loads.len()).then_some(loads)
}

/// The packed elements of a node, contiguous in memory.
struct Packed<'ctx> {
    node: NodeId,
    ty: ElementType,
    buffer: Value<'ctx>,
}

impl<'ctx> Packed<'ctx> {
    fn bytes(&self) -> i64 {
        register(self.ty).bytes().cast_signed()
    }

    fn address(&self, e: &Emit<'_, 'ctx>, at: Value<'ctx>) -> Result<Value<'ctx>> {
        e.address(self.buffer, e.mul(at, e.i64(self.bytes()))?)
    }

    fn zero(&self, wide: &Emit<'_, 'ctx>) -> Value<'ctx> {
        zero(wide, register(self.ty))
    }

    fn store(&self, c: &Code<'_, '_, 'ctx, '_>, value: Value<'ctx>, at: Value<'ctx>) -> Result<()> {
        let wide = c.e.with_lanes(c.lanes);
        wide.store(value, self.address(&c.e, at)?, self.bytes() as u32).map(|_| ())
    }
}
