//! Loops over lanes: how many there are, and what remains at the end of a row.

use hlo::ElementType;

use super::code::{Code, Mask};
use super::tape::{NodeId, Op, Tape};
use crate::cpu::llvm::{IntPredicate, Prim, Result, Target, Value};

/// A loop whose variable goes over lanes, from `low` (a multiple of `multiple`) to `high`, and what remains at the end: on lanes that are partly
/// enabled, or one by one where the target cannot do that. `count` is the number of elements if it is known.
#[expect(clippy::too_many_arguments, reason = "a loop has that many parts")]
pub(super) fn over_lanes<'c, 'a, 'ctx, 'm>(
    c: &mut Code<'c, 'a, 'ctx, 'm>,
    target: &Target,
    var: u32,
    low: Value<'ctx>,
    high: Value<'ctx>,
    count: Option<i64>,
    multiple: i64,
    body: &dyn Fn(&mut Code<'c, 'a, 'ctx, 'm>) -> Result<()>,
) -> Result<()> {
    let e = c.e;
    let w = i64::from(c.lanes);
    if w == 1 {
        return c.for_var(var, low, high, 1, false, 1, body);
    }
    let rest = count.map(|n| n % w);
    let main = match count {
        Some(n) if n % w == 0 => high,
        Some(n) => e.add(low, e.i64(n - n % w))?,
        None => {
            let n = e.sub(high, low)?;
            e.add(low, e.and(n, e.i64(-w))?)?
        }
    };
    if count.is_none_or(|n| n >= w) {
        c.for_var(var, low, main, w, true, multiple, body)?;
    }
    if rest == Some(0) {
        return Ok(());
    }
    if target.vector_bytes() < 64 {
        let lanes = std::mem::replace(&mut c.lanes, 1);
        c.for_var(var, main, high, 1, false, 1, body)?;
        c.lanes = lanes;
        return Ok(());
    }
    let tail = |c: &mut Code<'c, 'a, 'ctx, 'm>| {
        c.enter()?;
        c.set_var(var, main, true, multiple);
        let value = enabled(c, main, high, count)?;
        c.active = Some(Mask { value, level: c.level() });
        body(c)?;
        c.active = None;
        c.leave();
        Ok(())
    };
    c.mark()?;
    if rest.is_some() {
        tail(c)?;
    } else {
        e.if_then(e.icmp(IntPredicate::SLT, main, high)?, || tail(c))?;
    }
    c.mark()
}

/// The lanes that hold what lies before `high`, lane 0 holding `first`; of a loop of so many elements if that is known.
pub(super) fn enabled<'ctx>(
    c: &Code<'_, '_, 'ctx, '_>,
    first: Value<'ctx>,
    high: Value<'ctx>,
    count: Option<i64>,
) -> Result<Value<'ctx>> {
    let (e, w) = (c.e, i64::from(c.lanes));
    let wide = e.with_lanes(c.lanes);
    if let Some(n) = count {
        let lanes: Vec<u64> = (0..w).map(|l| u64::from(l < n % w)).collect();
        return Ok(wide.int_lanes(Prim::I1, &lanes));
    }
    let n = wide.splat(e.trunc(e.sub(high, first)?, Prim::I32)?)?;
    wide.icmp(IntPredicate::ULT, wide.lane_numbers(Prim::I32), n)
}

/// The number of lanes on which nodes are computed: a vector register full of the widest type in them.
pub(super) fn lanes(tape: &Tape<'_>, target: &Target, roots: impl Iterator<Item = NodeId>) -> u32 {
    let mut widest = 8;
    let mut seen = rustc_hash::FxHashSet::default();
    let mut pending: Vec<NodeId> = roots.collect();
    while let Some(n) = pending.pop() {
        if !seen.insert(n) {
            continue;
        }
        let node = &tape.nodes[n as usize];
        let computes = matches!(node.op, Op::Elementwise { .. } | Op::Convert { .. });
        widest = widest.max(lane_bits(node.ty, computes));
        tape.for_each_operand(n, &mut |m| pending.push(m));
    }
    (target.vector_bytes() * 8 / widest).max(1)
}

/// Bits that a lane of a type takes while it is computed with.
pub(super) fn lane_bits(ty: ElementType, computes: bool) -> u32 {
    let part = ty.real_part();
    if part.is_float() && computes { part.bits().max(32) } else { part.storage_bytes() as u32 * 8 }
}
