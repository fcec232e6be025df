//! Barriers of a block and mbarrier objects.

use super::warp::{Next, Wait};
use super::{Block, Machine, Step, Warp};
use crate::ir::{Address, BarrierOp, Inst, MbarrierOp, Space, Src};
use crate::report::{Fault, Severity};

/// A barrier of a block.
#[derive(Clone, Default)]
pub(crate) struct Barrier {
    /// How often it completed.
    pub(crate) generation: u64,
    /// Threads that arrived; of a counted barrier, whole warps count as 32.
    arrived: u32,
    /// Threads that it waits for, where an arrival says so.
    expected: Option<u32>,
    /// Warp, lanes and instruction of each arrival.
    arrivals: Vec<(u32, u32, u32, bool)>,
    /// What those who arrived know of other warps.
    clocks: Vec<u32>,
    count: u32,
    all: bool,
    any: bool,
    /// The recent generations, for threads that have not gone on yet.
    completed: Vec<Completed>,
}

/// A generation of a barrier that is complete.
#[derive(Clone, Default)]
struct Completed {
    generation: u64,
    arrivals: Vec<(u32, u32, u32, bool)>,
    clocks: Vec<u32>,
    count: u32,
    all: bool,
    any: bool,
}

/// Generations that are kept: a thread goes on before this many later ones are complete.
const KEPT_GENERATIONS: usize = 64;

fn live_threads(b: &Block, warp: &Warp) -> u32 {
    b.warps.iter().map(|w| w.live().count_ones()).sum::<u32>() + warp.live().count_ones()
}

impl Barrier {
    fn complete(&mut self) {
        self.generation += 1;
        if self.completed.len() == KEPT_GENERATIONS {
            self.completed.remove(0);
        }
        self.completed.push(Completed {
            generation: self.generation,
            arrivals: std::mem::take(&mut self.arrivals),
            clocks: std::mem::take(&mut self.clocks),
            count: self.count,
            all: self.all,
            any: self.any,
        });
        (self.arrived, self.expected) = (0, None);
    }
}

/// Threads ended: barriers that wait for all threads may be complete.
pub(crate) fn recheck(b: &mut Block, warp: &Warp) {
    let live = live_threads(b, warp);
    for barrier in &mut b.barriers {
        if barrier.expected.is_none() && barrier.arrived > 0 && barrier.arrived >= live {
            barrier.complete();
        }
    }
}

/// Joins what the barrier's arrivals know into a warp's clock, and orders its own lanes.
fn pass(b: &mut Block, warp: &mut Warp, id: usize, generation: u64) -> (u32, bool, bool) {
    let Some(done) = b.barriers[id].completed.iter().find(|c| c.generation == generation) else {
        return (0, true, false);
    };
    let w = warp.index as usize;
    for (mine, theirs) in b.clocks[w].iter_mut().zip(&done.clocks) {
        *mine = (*mine).max(*theirs);
    }
    let mask = done.arrivals.iter().filter(|a| a.0 == warp.index).fold(0, |m, a| m | a.1);
    warp.synchronize(mask);
    (done.count, done.all, done.any)
}

impl Warp {
    #[allow(clippy::too_many_arguments, reason = "the operands of the instruction and its context")]
    pub(super) fn barrier(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        inst: &Inst,
        active: u32,
        wait: Wait,
        (op, id, count, aligned): (BarrierOp, Src, Option<Src>, bool),
    ) -> Step<Next> {
        let f = self.fragments[i];
        let first = active.trailing_zeros() as usize;
        let number = self.get(m, &f, id)[first] as u32;
        if number > 16 {
            let what = format!("Barrier error detected. Invalid arguments: barrier {number}");
            return Err(Box::new(self.fault(m, b, inst, first as u32, Fault::InvalidBarrier, what)));
        }
        let id = number as usize;
        if let Wait::Barrier(_, generation) = wait {
            self.pass_with_result(b, i, active, (id, generation + 1), &op);
            return Ok(Next::Advance);
        }
        let expected = match count {
            Some(c) => {
                let n = self.get(m, &f, c)[first] as u32;
                if n == 0 || !n.is_multiple_of(32) || n > 1024 {
                    let what = format!("Barrier error detected. Invalid arguments: {n} threads");
                    return Err(Box::new(self.fault(m, b, inst, first as u32, Fault::InvalidBarrier, what)));
                }
                Some(n)
            }
            None => None,
        };
        let whole = active == self.live();
        if b.barriers[id].arrived > 0 && b.barriers[id].expected != expected {
            let what =
                "Barrier error detected. Invalid arguments: threads expect different numbers of threads";
            return Err(Box::new(self.fault(m, b, inst, first as u32, Fault::InvalidBarrier, what.into())));
        }
        let live = live_threads(b, self);
        let w = self.index as usize;
        let predicate = match op {
            BarrierOp::Popc(_, q) | BarrierOp::Combine(_, _, q) => self.pred_src(&f, q) & active,
            BarrierOp::Sync | BarrierOp::Arrive => 0,
        };
        let barrier = &mut b.barriers[id];
        if barrier.arrivals.is_empty() {
            (barrier.count, barrier.all, barrier.any) = (0, true, false);
        }
        barrier.expected = expected;
        barrier.arrived += if expected.is_some() && whole { 32 } else { active.count_ones() };
        barrier.arrivals.push((self.index, active, f.pc, aligned));
        barrier.count += predicate.count_ones();
        barrier.all &= predicate == active;
        barrier.any |= predicate != 0;
        barrier.clocks.resize(b.clocks.len(), 0);
        for (theirs, mine) in barrier.clocks.iter_mut().zip(&b.clocks[w]) {
            *theirs = (*theirs).max(*mine);
        }
        b.clocks[w][w] += 1;
        // Later accesses of an arriving warp are not ordered by this generation.
        if matches!(op, BarrierOp::Arrive) {
            self.syncs += 1;
        }
        let barrier = &mut b.barriers[id];
        let needed = expected.unwrap_or(live);
        if barrier.arrived > needed {
            let what = format!(
                "Barrier error detected. Invalid arguments: {} threads arrived, {needed} are expected",
                barrier.arrived
            );
            return Err(Box::new(self.fault(m, b, inst, first as u32, Fault::InvalidBarrier, what)));
        }
        let generation = barrier.generation;
        if barrier.arrived == needed {
            barrier.complete();
            self.check_aligned(m, b, inst, id);
            if !matches!(op, BarrierOp::Arrive) {
                self.pass_with_result(b, i, active, (id, generation + 1), &op);
            }
            return Ok(Next::Advance);
        }
        Ok(if matches!(op, BarrierOp::Arrive) {
            Next::Advance
        } else {
            Next::Wait(Wait::Barrier(id as u8, generation))
        })
    }

    fn pass_with_result(
        &mut self,
        b: &mut Block,
        i: usize,
        active: u32,
        (id, generation): (usize, u64),
        op: &BarrierOp,
    ) {
        let f = self.fragments[i];
        let (count, every, some) = pass(b, self, id, generation);
        match *op {
            BarrierOp::Popc(d, _) => self.set(&f, d, active, active, &[u64::from(count); 32]),
            BarrierOp::Combine(d, all, _) => {
                let v = if all { every } else { some };
                self.set_pred(&f, d, active, active, if v { u32::MAX } else { 0 });
            }
            BarrierOp::Sync | BarrierOp::Arrive => {}
        }
    }

    /// Lanes of one warp came to an aligned barrier by different instructions.
    fn check_aligned(&self, m: &mut Machine<'_>, b: &Block, inst: &Inst, id: usize) {
        let Some(Completed { arrivals: last, .. }) = b.barriers[id].completed.last() else { return };
        for (n, a) in last.iter().enumerate() {
            if a.3 && last[..n].iter().any(|o| o.0 == a.0 && o.2 != a.2) {
                let thread = m.thread(a.0, a.1.trailing_zeros().min(31), b.ctaid);
                let what = "Barrier error detected. Divergent thread(s) in warp".to_owned();
                let r = m.report(Fault::DivergentWarp, Severity::Error, what, inst.line, thread);
                m.keep(r);
                return;
            }
        }
    }
}

/// An mbarrier object.
#[derive(Clone, Default)]
pub(crate) struct Mbarrier {
    /// Arrivals of each phase.
    expected: u32,
    /// Arrivals that are missing.
    pending: u32,
    phase: u64,
    /// Bytes of transactions that are missing.
    transactions: i64,
    clocks: Vec<u32>,
}

/// Arrivals of an mbarrier at most.
const MAX_ARRIVALS: u32 = (1 << 20) - 1;

impl Mbarrier {
    fn settle(&mut self) {
        if self.pending == 0 && self.transactions == 0 {
            self.phase += 1;
            self.pending = self.expected;
        }
    }
}

impl Warp {
    #[allow(clippy::too_many_arguments, reason = "the operands of the instruction and its context")]
    pub(super) fn mbarrier(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        inst: &Inst,
        active: u32,
        op: &MbarrierOp,
        (space, address): (Space, &Address),
    ) -> Step<()> {
        let f = self.fragments[i];
        let mut passed = 0;
        for lane in super::warp::lanes(active) {
            let l = lane as usize;
            let at = self.shared_address(m, b, i, inst, lane, (space, address), 8)?;
            b.shared_written[at as usize..at as usize + 8].fill(1);
            let value = |s: Src, w: &Warp| w.get(m, &f, s)[l];
            let w = self.index as usize;
            if let MbarrierOp::Init(count) = op {
                let count = value(*count, self) as u32;
                if count == 0 || count > MAX_ARRIVALS {
                    let what = format!("an mbarrier of {count} arrivals");
                    return Err(Box::new(self.fault(m, b, inst, lane, Fault::InvalidMbarrier, what)));
                }
                b.mbarriers.insert(at, Mbarrier { expected: count, pending: count, ..Mbarrier::default() });
                continue;
            }
            let threads = b.clocks.len();
            let clocks = b.clocks[w].clone();
            let Some(bar) = b.mbarriers.get_mut(&at) else {
                let what = "an mbarrier that was not initialized".to_owned();
                return Err(Box::new(self.fault(m, b, inst, lane, Fault::InvalidMbarrier, what)));
            };
            match op {
                MbarrierOp::Init(_) => {}
                MbarrierOp::Inval => {
                    b.mbarriers.remove(&at);
                }
                MbarrierOp::ExpectTx(n) => bar.transactions += (value(*n, self) as u32) as i64,
                MbarrierOp::CompleteTx(n) => {
                    bar.transactions -= (value(*n, self) as u32) as i64;
                    bar.settle();
                }
                MbarrierOp::Arrive { .. } | MbarrierOp::CopyArrive(_) => {
                    let (mut n, mut expect, mut drop, mut destination) = (1, 0, false, None);
                    if let MbarrierOp::Arrive { state, count, drop: d, expect_tx, .. } = op {
                        let c = count.map(|c| value(c, self) as u32);
                        (drop, destination) = (*d, *state);
                        if *expect_tx {
                            expect = i64::from(c.unwrap_or(0));
                        } else {
                            n = c.unwrap_or(1);
                        }
                    } else if matches!(op, MbarrierOp::CopyArrive(false)) {
                        // The pending count grows by the arrival, so that the copy's own arrival is not one
                        // of the expected.
                        bar.pending += 1;
                    }
                    if n > bar.pending {
                        let what = format!("{n} arrivals at an mbarrier that waits for {}", bar.pending);
                        return Err(Box::new(self.fault(m, b, inst, lane, Fault::InvalidMbarrier, what)));
                    }
                    bar.clocks.resize(threads, 0);
                    for (theirs, mine) in bar.clocks.iter_mut().zip(&clocks) {
                        *theirs = (*theirs).max(*mine);
                    }
                    let token = bar.phase << 32 | u64::from(bar.pending);
                    bar.transactions += expect;
                    bar.pending -= n;
                    if drop {
                        bar.expected -= n.min(bar.expected);
                    }
                    bar.settle();
                    b.clocks[w][w] += 1;
                    self.syncs += 1;
                    if matches!(op, MbarrierOp::CopyArrive(_)) {
                        self.complete_copies(m, b, lane, 0);
                    }
                    if let Some(d) = destination {
                        self.set_lane(&f, d, l, token);
                    }
                }
                MbarrierOp::Test { state, parity, .. } => {
                    let s = value(*state, self);
                    let done = if *parity { bar.phase & 1 != s & 1 } else { bar.phase != s >> 32 };
                    if done {
                        passed |= 1 << lane;
                        let theirs = bar.clocks.clone();
                        for (mine, theirs) in b.clocks[w].iter_mut().zip(&theirs) {
                            *mine = (*mine).max(*theirs);
                        }
                    }
                }
            }
        }
        if let MbarrierOp::Test { result, .. } = op {
            if passed == active {
                // All arrived, so lanes of this warp that wait here are ordered behind them.
                self.synchronize(active);
            }
            self.set_pred(&f, *result, active, active, passed);
        }
        Ok(())
    }
}
