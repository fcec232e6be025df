//! Control flow that kernels share: what each thread of a block does of that many elements, binary searches.

use hlo_llvm::{Axis, Emit, IntPredicate, Prim, Result, Special, Value};

/// Up to this many steps of a loop over elements are emitted one after the other.
const MAX_UNROLLED: u32 = 4;

/// `ctaid.x` as an integer of a width.
pub(super) fn block<'ctx>(e: &Emit<'_, 'ctx>, prim: Prim) -> Result<Value<'ctx>> {
    e.resize(e.special(Special::Ctaid(Axis::X))?, prim, false)
}

/// `tid.x` as an integer of a width.
pub(super) fn thread<'ctx>(e: &Emit<'_, 'ctx>, prim: Prim) -> Result<Value<'ctx>> {
    e.resize(e.special(Special::Tid(Axis::X))?, prim, false)
}

/// Runs the body for `thread, thread + threads, ...` below `count`, where `threads` are those of a block.
pub(super) fn strided<'ctx>(
    e: &Emit<'_, 'ctx>,
    thread: Value<'ctx>,
    threads: u32,
    count: u32,
    mut body: impl FnMut(Value<'ctx>) -> Result<()>,
) -> Result<()> {
    let prim = e.prim_of(thread);
    let constant = |x: u32| e.int(prim, u64::from(x));
    let steps = count.div_ceil(threads);
    if steps > MAX_UNROLLED {
        return e.for_range(thread, constant(count), constant(threads), body);
    }
    for step in 0..steps {
        let at = if step == 0 { thread } else { e.add(thread, constant(step * threads))? };
        if (step + 1) * threads <= count {
            body(at)?;
        } else {
            let inside = e.icmp(IntPredicate::ULT, at, constant(count))?;
            e.if_then(inside, || body(at))?;
        }
    }
    Ok(())
}

/// The first number of `low..high` for which a monotonic condition holds; `high` if there is none. Ends
/// whatever the condition says.
pub(super) fn search<'ctx>(
    e: &Emit<'_, 'ctx>,
    low: Value<'ctx>,
    high: Value<'ctx>,
    holds: impl FnOnce(Value<'ctx>) -> Result<Value<'ctx>>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(low);
    let some = e.icmp(IntPredicate::SLT, low, high)?;
    let found = e.if_else(
        some,
        || {
            let last = e.do_while(&[low, high], |state| {
                let (low, high) = (state[0], state[1]);
                let middle = e.lshr(e.add(low, high)?, e.int(prim, 1))?;
                let holds = holds(middle)?;
                let above = e.add(middle, e.int(prim, 1))?;
                let (low, high) = (e.select(holds, low, above)?, e.select(holds, middle, high)?);
                Ok((e.icmp(IntPredicate::SLT, low, high)?, vec![low, high]))
            })?;
            Ok(vec![last[0]])
        },
        || Ok(vec![low]),
    )?;
    Ok(found[0])
}

/// [`search`] by all lanes of a warp, which try a position each: all of them give the same.
pub(super) fn warp_search<'ctx>(
    e: &Emit<'_, 'ctx>,
    low: Value<'ctx>,
    high: Value<'ctx>,
    holds: impl FnOnce(Value<'ctx>) -> Result<Value<'ctx>>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(low);
    let int = |x: u64| e.int(prim, x);
    let number = e.zext(e.special(Special::LaneId)?, prim)?;
    let some = e.icmp(IntPredicate::SLT, low, high)?;
    let found = e.if_else(
        some,
        || {
            let last = e.do_while(&[low, high], |state| {
                let (low, high) = (state[0], state[1]);
                // Lane k tries the last position of the k-th of 33 parts.
                let step = e.add(e.udiv(e.sub(high, low)?, int(33))?, int(1))?;
                let behind = e.add(low, e.mul(step, e.add(number, int(1))?)?)?;
                let position = e.sub(behind, int(1))?;
                let is_below = e.if_else(
                    e.icmp(IntPredicate::SLT, position, high)?,
                    || Ok(vec![e.not(holds(position)?)?]),
                    || Ok(vec![e.bool(false)]),
                )?[0];
                let below = e.ballot_sync(e.full_warp(), is_below)?;
                let count = e.intrinsic("llvm.ctpop", &[below.get_type()], &[below])?;
                let low = e.add(low, e.mul(step, e.resize(count, prim, false)?)?)?;
                let high = min(e, high, e.sub(e.add(low, step)?, int(1))?)?;
                Ok((e.icmp(IntPredicate::SLT, low, high)?, vec![low, high]))
            })?;
            Ok(vec![last[0]])
        },
        || Ok(vec![low]),
    )?;
    Ok(found[0])
}

/// The lesser of two signed integers.
pub(super) fn min<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    e.select(e.icmp(IntPredicate::SLT, a, b)?, a, b)
}

/// The greater of two signed integers.
pub(super) fn max<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    e.select(e.icmp(IntPredicate::SGT, a, b)?, a, b)
}
