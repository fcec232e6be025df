//! One thread for each element of the result, one term after the other: the fallback.

use hlo_llvm::scalar::Val;
use hlo_llvm::{Axis, Emit, IntPredicate, Prim, Result, Special, Value};

use super::Words;

/// Threads of a block.
pub(crate) const THREADS: u32 = 256;

/// Blocks for that many threads.
pub(crate) fn blocks(threads: i64) -> i64 {
    (threads + i64::from(THREADS) - 1) / i64::from(THREADS)
}

/// Runs a piece in each of the first `threads` threads, giving it the number of the thread.
pub(crate) fn each_thread<'ctx>(
    e: &Emit<'_, 'ctx>,
    threads: i64,
    prim: Prim,
    body: impl FnOnce(Value<'ctx>) -> Result<()>,
) -> Result<()> {
    let block = e.resize(e.special(Special::Ctaid(Axis::X))?, prim, false)?;
    let lane = e.resize(e.special(Special::Tid(Axis::X))?, prim, false)?;
    let thread = e.add(e.mul(block, e.int(prim, u64::from(THREADS)))?, lane)?;
    let inside = e.icmp(IntPredicate::ULT, thread, e.int(prim, threads.cast_unsigned()))?;
    e.if_then(inside, || body(thread))?;
    e.return_void()
}

/// The sum of `count` products (an `i32` or `i64`), of which a piece gives the factors, added to a sum.
pub(crate) fn sum<'ctx>(
    e: &Emit<'_, 'ctx>,
    words: &Words,
    count: Value<'ctx>,
    start: &Val<'ctx>,
    factors: impl FnOnce(Value<'ctx>) -> Result<[Val<'ctx>; 2]>,
) -> Result<Val<'ctx>> {
    let prim = e.prim_of(count);
    let of = |x| e.int(prim, x);
    let last = e.for_carried(of(0), count, of(1), &start.registers(), |t, carried| {
        let [x, y] = factors(t)?;
        let sum = words.multiply_add(e, &words.of_registers(carried), &words.of(e, x)?, &words.of(e, y)?)?;
        Ok(sum.registers())
    })?;
    Ok(words.of_registers(&last))
}
