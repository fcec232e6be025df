//! Vectorization of loops: the number of lanes, interleaving (several registers per iteration), and the
//! remainder of a row.

use hlo::ElementType;

use super::code::{Code, Mask};
use hlo_llvm::{IntPredicate, Prim, Result, Target, Value};
use hlo_opt::expr::index::{Affine, Def};
use hlo_opt::expr::{Expr, Node, NodeId, Op};

/// A vector loop from `low` (a multiple of `multiple`) to `high`, and its remainder: on masked lanes, or one
/// by one where the target cannot mask, or not well. `count` is the number of elements if it is known, or one
/// with the same remainder.
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
    if target.vector_bytes() < 64 || prefers_scalar_lanes(c, var, count) {
        let lanes = std::mem::replace(&mut c.lanes, 1);
        c.for_var(var, main, high, 1, false, 1, body)?;
        c.lanes = lanes;
        return Ok(());
    }
    let tail = |c: &mut Code<'c, 'a, 'ctx, 'm>| {
        c.enter()?;
        c.set_var(var, main, true, multiple);
        c.active = Some(enabled(c, main, high, count)?);
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

/// The mask of lanes before `high`, where lane 0 holds `first`; for a loop of that many elements if it is
/// known.
pub(super) fn enabled<'ctx>(
    c: &Code<'_, '_, 'ctx, '_>,
    first: Value<'ctx>,
    high: Value<'ctx>,
    count: Option<i64>,
) -> Result<Mask<'ctx>> {
    let (e, w) = (c.e, i64::from(c.lanes));
    let wide = e.with_lanes(c.lanes);
    let level = c.level();
    if let Some(n) = count {
        let lanes: Vec<u64> = (0..w).map(|l| u64::from(l < n % w)).collect();
        let known = (w <= 64).then(|| lanes.iter().rev().fold(0, |bits, bit| bits << 1 | bit));
        return Ok(Mask { value: wide.int_lanes(Prim::I1, &lanes), level, known });
    }
    let n = wide.splat(e.trunc(e.sub(high, first)?, Prim::I32)?)?;
    let value = wide.icmp(IntPredicate::ULT, wide.lane_numbers(Prim::I32), n)?;
    Ok(Mask { value, level, known: None })
}

/// The number of lanes for nodes: a vector register full of the widest type in them.
pub(super) fn lanes(expr: &Expr<'_>, target: &Target, roots: impl Iterator<Item = NodeId>) -> u32 {
    lanes_except(expr, target, roots, &|_| false)
}

/// The same, without nodes that are known.
pub(super) fn lanes_except(
    expr: &Expr<'_>,
    target: &Target,
    roots: impl Iterator<Item = NodeId>,
    known: &dyn Fn(NodeId) -> bool,
) -> u32 {
    let mut widest = 8;
    for n in expr.reachable_except(roots, known) {
        let node = &expr.nodes[n as usize];
        let computes = matches!(node.op, Op::Elementwise { .. } | Op::Convert { .. });
        widest = widest.max(lane_bits(node.ty, computes));
    }
    (target.vector_bytes() * 8 / widest).max(1)
}

/// The maximum number of registers per iteration: for an expression that is little more than a dependence
/// chain.
pub(super) const MAX_REGISTERS: u32 = 4;
/// A dependence chain of that many operations overlaps with the next iterations in the processor's reorder
/// window.
const MIN_CHAIN_OPS: u64 = 16;
/// An iteration with more operations does not overlap with the next one.
const LONG_CHAIN_OPS: u64 = 24;
/// The maximum number of operations for all registers: registers and compile time are limited.
const MAX_TOTAL_OPS: u64 = 1000;

/// The interleaving factor: how many registers full of lanes an iteration of a loop over `inner`, of that
/// many elements, computes. A dependence chain leaves the processor waiting unless it finds independent
/// operations; its reorder window is an iteration or two of a long expression, so they should be within the
/// iteration. Known nodes are loaded.
pub(super) fn registers(
    expr: &Expr<'_>,
    target: &Target,
    roots: impl Iterator<Item = NodeId>,
    known: &dyn Fn(NodeId) -> bool,
    (inner, elements): (u32, i64),
    lanes: u32,
) -> u32 {
    if !(8..=32).contains(&lanes) {
        return 1;
    }
    let mut depths = rustc_hash::FxHashMap::default();
    let (mut all, mut deepest) = (0, 0);
    let mut halves = false;
    let mut widest = 0;
    for n in expr.reachable_except(roots, known) {
        let node = &expr.nodes[n as usize];
        if let Op::Load { at, .. } | Op::Constant { at, .. } = &node.op
            && !is_plain(expr, at, inner)
        {
            return 1;
        }
        let half = matches!(node.ty, ElementType::BF16 | ElementType::F16);
        halves |= half && matches!(node.op, Op::Elementwise { .. });
        widest = widest.max(lane_bits(node.ty, false));
        let work = expr.flops(n);
        let mut depth = 0;
        expr.for_each_operand(n, &mut |m| depth = depths.get(&m).copied().unwrap_or(0).max(depth));
        // Functions have some parallelism of their own.
        depth += if work > 4 { work * 3 / 4 } else { work };
        depths.insert(n, depth);
        all += work;
        deepest = deepest.max(depth);
    }
    let halves = halves && widest == 16;
    let wanted = match () {
        () if target.vector_bytes() < 64 && !halves => 1,
        () if deepest > LONG_CHAIN_OPS && 2 * all <= 5 * deepest => MAX_REGISTERS,
        () if deepest > MIN_CHAIN_OPS && all <= 6 * deepest => 2,
        // Elements fill one register, and their wider intermediate type two.
        () if halves => 2,
        () => 1,
    };
    let fits = |&n: &u32| all * u64::from(n) <= MAX_TOTAL_OPS && elements % i64::from(lanes * n) == 0;
    [MAX_REGISTERS, 2].into_iter().filter(|&n| n <= wanted).find(fits).unwrap_or(1)
}

/// The lanes for nodes in a loop over that many elements of a variable, all registers together; at most a
/// given number per register, and not more than there are elements. `known` nodes are left out.
pub(super) fn full<I: Iterator<Item = NodeId>>(
    expr: &Expr<'_>,
    target: &Target,
    nodes: &dyn Fn() -> I,
    known: &dyn Fn(NodeId) -> bool,
    inner: (u32, i64),
    most: u32,
) -> u32 {
    let elements = u32::try_from(inner.1).ok().and_then(u32::checked_next_power_of_two);
    let lanes = lanes_except(expr, target, nodes(), known).min(most).min(elements.unwrap_or(most));
    lanes * registers(expr, target, nodes(), known, inner, lanes)
}

/// Whether many lanes over a variable load or store narrow elements that are not contiguous. No processor
/// does that in one instruction: if not even whole vectors of everything in between can be loaded, it is code
/// per lane, which takes as long as scalar code and much longer to compile.
fn prefers_scalar_lanes(c: &Code<'_, '_, '_, '_>, inner: u32, count: Option<i64>) -> bool {
    let picks = |node: &Node| matches!(&node.op, Op::Load { at, .. } if scatters(c.expr, node.ty, at, inner));
    // Where all lanes are active, everything in between exists, too.
    c.lanes >= 32 && (c.scatters || count.is_none() && c.expr.nodes.iter().any(picks))
}

/// Whether lanes over a variable access narrow elements there that are not contiguous.
pub(super) fn scatters(expr: &Expr<'_>, ty: ElementType, at: &Affine, inner: u32) -> bool {
    ty.storage_bytes() < 4 && !is_plain(expr, at, inner)
}

/// Whether lanes over a variable read the same element there, or contiguous ones.
pub(super) fn is_plain(expr: &Expr<'_>, at: &Affine, inner: u32) -> bool {
    at.terms.iter().all(|&(atom, factor)| match &expr.space.atom(atom).def {
        Def::Var(var) => *var != inner || factor == 1,
        Def::Div(..) | Def::Mod(..) | Def::Value(_) => is_same(expr, &Affine::atom(atom), inner),
    })
}

/// Whether an affine expression is uniform over a variable.
fn is_same(expr: &Expr<'_>, x: &Affine, inner: u32) -> bool {
    let others = &mut |var| var != inner;
    let mut values = Vec::new();
    expr.values_in(x, &mut |node| values.push(node));
    expr.vars_in(x, others) && expr.reachable(values.into_iter()).into_iter().all(|n| expr.vars_of(n, others))
}

/// The width in bits of a lane of a type during computation.
pub(super) fn lane_bits(ty: ElementType, computes: bool) -> u32 {
    let part = ty.real_part();
    if part.is_float() && computes { part.bits().max(32) } else { part.storage_bytes() as u32 * 8 }
}
