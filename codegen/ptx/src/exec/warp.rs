//! A warp: registers of 32 lanes, its fragments, and control flow.
//!
//! Invariant: the masks of the fragments and of the lanes that wait in joins are disjoint, and together with
//! the lanes that ended they are the lanes of the warp.

use super::{Block, Machine, Step};
use crate::ir::{Callee, Function, Inst, Op, Passed, Pred, PredSrc, Reg, Src};
use crate::report::{Fault, Report, Severity};

/// A value for each lane.
pub(crate) type Lanes = [u64; 32];

/// What a fragment waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Nothing.
    No,
    /// The generation of a barrier after this one.
    Barrier(u8, u64),
    /// The other lanes of the member mask.
    Members(u32),
}

/// Lanes at one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub(crate) function: u32,
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    /// The first register, predicate and byte of local memory of the frame.
    pub(crate) base: u32,
    pub(crate) pred_base: u32,
    pub(crate) local_base: u32,
    pub(crate) join: u32,
    pub(crate) depth: u32,
    pub(crate) wait: Wait,
}

const NO_JOIN: u32 = u32::MAX;
/// Calls nest at most this deep.
const MAX_CALLS: u32 = 512;
/// Bytes of local memory of a thread.
const MAX_LOCAL_BYTES: u32 = 1 << 20;
/// Instructions of a fragment's time slice (round robin).
const FRAGMENT_SLICE: u32 = 512;
/// Instructions of a warp's time slice (round robin).
const WARP_SLICE: u32 = 2048;

/// Where lanes become one fragment again.
#[derive(Clone, Copy, Debug)]
struct Join {
    expected: u32,
    arrived: u32,
    /// How the joined fragment goes on.
    resume: Fragment,
    /// The call whose callee returns here.
    call: Option<u32>,
    is_free: bool,
}

/// A synchronization of lanes of the warp: which lanes, and its number.
#[derive(Clone, Copy, Debug, Default)]
struct Sync {
    mask: u32,
    number: u32,
}

#[derive(Default)]
pub(crate) struct Warp {
    pub(crate) index: u32,
    /// Lanes that exist.
    pub(crate) lanes: u32,
    /// Lanes that ended.
    pub(crate) exited: u32,
    registers: Vec<Lanes>,
    defined: Vec<u32>,
    predicates: Vec<u32>,
    predicates_defined: Vec<u32>,
    pub(crate) carry: u32,
    pub(crate) fragments: Vec<Fragment>,
    joins: Vec<Join>,
    /// Local memory of each lane, and which bytes were written.
    pub(crate) local: Vec<Vec<u8>>,
    pub(crate) local_written: Vec<Vec<u8>>,
    /// Synchronizations so far.
    pub(crate) syncs: u32,
    recent: [Sync; 8],
    /// Copies of `cp.async` of each lane that are not complete, by group; the last group is open.
    pub(crate) copies: Vec<Vec<Vec<super::memory::Copy>>>,
}

/// What follows an instruction.
pub(crate) enum Next {
    Advance,
    Wait(Wait),
}

impl Warp {
    pub(crate) fn new(index: u32, threads: u32, kernel: u32, f: &Function) -> Self {
        let count = (threads - index * 32).min(32);
        let lanes = if count == 32 { u32::MAX } else { (1 << count) - 1 };
        let start = Fragment {
            function: kernel,
            pc: 0,
            mask: lanes,
            base: 0,
            pred_base: 0,
            local_base: 0,
            join: NO_JOIN,
            depth: 0,
            wait: Wait::No,
        };
        let frame = vec![0; f.frame_bytes as usize];
        Warp {
            index,
            lanes,
            registers: vec![[0; 32]; f.registers as usize],
            defined: vec![0; f.registers as usize],
            predicates: vec![0; f.predicates as usize],
            predicates_defined: vec![0; f.predicates as usize],
            fragments: vec![start],
            local: vec![frame.clone(); if f.frame_bytes > 0 { 32 } else { 0 }],
            local_written: vec![frame; if f.frame_bytes > 0 { 32 } else { 0 }],
            ..Warp::default()
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.fragments.is_empty()
    }

    /// Lanes that have not ended.
    pub(crate) fn live(&self) -> u32 {
        self.lanes & !self.exited
    }

    /// The warp's lanes in the mask synchronized: what they did before is ordered before what they do now.
    pub(crate) fn synchronize(&mut self, mask: u32) {
        self.syncs += 1;
        let number = self.syncs;
        // A synchronization of more lanes makes older ones of fewer superfluous.
        let at = self
            .recent
            .iter()
            .position(|s| s.mask & !mask == 0)
            .unwrap_or_else(|| (0..8).min_by_key(|&i| self.recent[i].number).unwrap_or(0));
        self.recent[at] = Sync { mask, number };
    }

    /// Whether all lanes of the mask that did not end synchronized after the number.
    pub(crate) fn synchronized_since(&self, number: u32, mask: u32) -> bool {
        self.recent.iter().any(|s| s.number > number && mask & !s.mask == 0)
    }

    #[inline]
    pub(crate) fn get<'a>(&'a self, m: &'a Machine<'_>, f: &Fragment, s: Src) -> &'a Lanes {
        match s {
            Src::Reg(Reg(r)) => &self.registers[(f.base + r) as usize],
            Src::Const(c) => &m.constants[c as usize],
        }
    }

    #[inline]
    pub(crate) fn defined(&self, f: &Fragment, s: Src) -> u32 {
        match s {
            Src::Reg(Reg(r)) => self.defined[(f.base + r) as usize],
            Src::Const(_) => u32::MAX,
        }
    }

    /// Writes the lanes of the mask; `defined` says which of the values are.
    #[inline]
    pub(crate) fn set(&mut self, f: &Fragment, d: Reg, mask: u32, defined: u32, values: &Lanes) {
        let at = (f.base + d.0) as usize;
        let to = &mut self.registers[at];
        if mask == u32::MAX {
            *to = *values;
        } else {
            for (lane, (to, v)) in to.iter_mut().zip(values).enumerate() {
                if mask >> lane & 1 == 1 {
                    *to = *v;
                }
            }
        }
        let known = &mut self.defined[at];
        *known = (*known & !mask) | (defined & mask);
    }

    pub(crate) fn set_lane(&mut self, f: &Fragment, d: Reg, lane: usize, value: u64) {
        let at = (f.base + d.0) as usize;
        self.registers[at][lane] = value;
        self.defined[at] |= 1 << lane;
    }

    pub(crate) fn set_undefined(&mut self, f: &Fragment, d: Reg, lane: u32) {
        self.defined[(f.base + d.0) as usize] &= !(1 << lane);
    }

    #[inline]
    pub(crate) fn pred(&self, f: &Fragment, p: Pred) -> u32 {
        self.predicates[(f.pred_base + p.0) as usize]
    }

    pub(crate) fn pred_src(&self, f: &Fragment, p: PredSrc) -> u32 {
        match p {
            PredSrc::Reg(p, negated) => {
                let v = self.pred(f, p);
                if negated { !v } else { v }
            }
            PredSrc::Const(true) => u32::MAX,
            PredSrc::Const(false) => 0,
        }
    }

    pub(crate) fn pred_defined(&self, f: &Fragment, p: PredSrc) -> u32 {
        match p {
            PredSrc::Reg(p, _) => self.predicates_defined[(f.pred_base + p.0) as usize],
            PredSrc::Const(_) => u32::MAX,
        }
    }

    pub(crate) fn set_pred(&mut self, f: &Fragment, p: Pred, mask: u32, defined: u32, bits: u32) {
        let at = (f.pred_base + p.0) as usize;
        let to = &mut self.predicates[at];
        *to = (*to & !mask) | (bits & mask);
        let known = &mut self.predicates_defined[at];
        *known = (*known & !mask) | (defined & mask);
    }

    /// Runs fragments round robin until each waits or the slice is over. `true`: something was executed.
    pub(crate) fn run(&mut self, m: &mut Machine<'_>, b: &mut Block) -> Step<bool> {
        let mut budget = WARP_SLICE;
        let mut progress = false;
        loop {
            let mut any = false;
            let mut i = 0;
            while i < self.fragments.len() {
                if self.is_ready(b, i) {
                    any = true;
                    let used = self.run_fragment(m, b, i)?;
                    budget = budget.saturating_sub(used);
                    if budget == 0 {
                        return Ok(true);
                    }
                }
                i += 1;
            }
            progress |= any;
            if !any || budget == 0 {
                return Ok(progress);
            }
        }
    }

    fn is_ready(&self, b: &Block, i: usize) -> bool {
        match self.fragments[i].wait {
            Wait::No => true,
            Wait::Barrier(id, generation) => b.barriers[usize::from(id)].generation > generation,
            Wait::Members(members) => {
                // The lanes that wait at such an instruction, this one's included.
                let mut there = 0;
                for f in &self.fragments {
                    if matches!(f.wait, Wait::Members(x) if x == members) {
                        there |= f.mask;
                    }
                }
                members & self.live() & !there == 0
            }
        }
    }

    /// Runs fragment `i` until it waits, separates, joins, ends, or its slice is over. Returns executed
    /// instructions.
    fn run_fragment(&mut self, m: &mut Machine<'_>, b: &mut Block, i: usize) -> Step<u32> {
        let module = m.module;
        let mut used = 0;
        loop {
            let f = self.fragments[i];
            if self.at_join(&f) {
                self.arrive(i);
                return Ok(used);
            }
            let function = &module.functions[f.function as usize];
            let inst = &function.code[f.pc as usize];
            let mut active = f.mask;
            if let Some((p, negated)) = inst.guard {
                let bits = self.pred(&f, p);
                if m.options.check_initialized
                    && self.pred_defined(&f, PredSrc::Reg(p, false)) & f.mask != f.mask
                {
                    self.undefined(
                        m,
                        b,
                        inst,
                        f.mask & !self.pred_defined(&f, PredSrc::Reg(p, false)),
                        "the guard",
                    );
                }
                active &= if negated { !bits } else { bits };
            }
            used += 1;
            m.warp_instructions += 1;
            m.thread_instructions += u64::from(active.count_ones());
            if m.warp_instructions & 0xFFF == 0
                && m.thread_instructions.max(m.warp_instructions) > m.options.fuel
            {
                return Err(self.out_of_fuel(m, b, inst, &f));
            }
            match &inst.op {
                Op::Bra { target } => {
                    if active == f.mask {
                        self.fragments[i].pc = *target;
                    } else if active == 0 {
                        self.fragments[i].pc += 1;
                    } else {
                        let meet = function.reconverge[f.pc as usize];
                        self.separate(i, &[(*target, active), (f.pc + 1, f.mask & !active)], meet);
                        return Ok(used);
                    }
                }
                Op::BrxIdx { index, targets } => {
                    let values = *self.get(m, &f, *index);
                    let mut parts: Vec<(u32, u32)> = Vec::new();
                    let mut part = |pc: u32, lane: u32| match parts.iter_mut().find(|p| p.0 == pc) {
                        Some(p) => p.1 |= 1 << lane,
                        None => parts.push((pc, 1 << lane)),
                    };
                    for lane in lanes(f.mask) {
                        if active >> lane & 1 == 0 {
                            part(f.pc + 1, lane);
                            continue;
                        }
                        let Some(&t) = targets.get(values[lane as usize] as u32 as usize) else {
                            let what = format!(
                                "brx.idx with index {} of {} targets",
                                values[lane as usize] as u32,
                                targets.len()
                            );
                            return Err(Box::new(self.fault(m, b, inst, lane, Fault::InvalidCall, what)));
                        };
                        part(t, lane);
                    }
                    if let [(pc, _)] = parts.as_slice() {
                        self.fragments[i].pc = *pc;
                    } else {
                        let meet = function.reconverge[f.pc as usize];
                        self.separate(i, &parts, meet);
                        return Ok(used);
                    }
                }
                Op::Ret | Op::Exit => {
                    let ends = f.depth == 0 || matches!(inst.op, Op::Exit);
                    if active == 0 {
                        self.fragments[i].pc += 1;
                    } else {
                        self.end(m, b, i, active, ends);
                        return Ok(used);
                    }
                }
                Op::Trap if active != 0 => {
                    let lane = active.trailing_zeros();
                    return Err(Box::new(self.fault(
                        m,
                        b,
                        inst,
                        lane,
                        Fault::Trap,
                        "trap was executed".into(),
                    )));
                }
                Op::Call(call) => {
                    if active == 0 {
                        self.fragments[i].pc += 1;
                    } else {
                        self.call(m, b, i, active, inst, call)?;
                        return Ok(used);
                    }
                }
                Op::Unsupported(what) if active != 0 => {
                    let what = format!("`{what}` is not executed by this implementation");
                    return Err(Box::new(self.fault(
                        m,
                        b,
                        inst,
                        active.trailing_zeros(),
                        Fault::Unsupported,
                        what,
                    )));
                }
                _ => {
                    if active == 0 {
                        self.fragments[i].pc += 1;
                    } else {
                        // The waiting is over: what the instruction does then sees it.
                        let wait = std::mem::replace(&mut self.fragments[i].wait, Wait::No);
                        match self.execute(m, b, i, inst, active, wait)? {
                            Next::Advance => self.fragments[i].pc += 1,
                            Next::Wait(w) => {
                                self.fragments[i].wait = w;
                                return Ok(used);
                            }
                        }
                    }
                }
            }
            if used >= FRAGMENT_SLICE {
                return Ok(used);
            }
        }
    }

    /// Splits a fragment. `meet` is where the parts meet again.
    fn separate(&mut self, i: usize, parts: &[(u32, u32)], meet: u32) {
        let f = self.fragments[i];
        let mut join = f.join;
        let known = join != NO_JOIN
            && self.joins[join as usize].call.is_none()
            && self.joins[join as usize].resume.pc == meet;
        if meet != u32::MAX && !known {
            let resume = Fragment { pc: meet, ..f };
            join = self.new_join(Join { expected: f.mask, arrived: 0, resume, call: None, is_free: false });
        }
        self.fragments.swap_remove(i);
        for &(pc, mask) in parts {
            let part = Fragment { pc, mask, join, ..f };
            self.fragments.push(part);
        }
    }

    /// Whether a fragment is where its lanes meet others.
    fn at_join(&self, f: &Fragment) -> bool {
        f.join != NO_JOIN
            && self.joins[f.join as usize].call.is_none()
            && self.joins[f.join as usize].resume.pc == f.pc
    }

    fn new_join(&mut self, join: Join) -> u32 {
        match self.joins.iter().position(|j| j.is_free) {
            Some(i) => {
                self.joins[i] = join;
                i as u32
            }
            None => {
                self.joins.push(join);
                self.joins.len() as u32 - 1
            }
        }
    }

    /// Fragment `i` is at its join: it ends, and the join goes on when all are there.
    fn arrive(&mut self, i: usize) {
        let f = self.fragments.swap_remove(i);
        self.joins[f.join as usize].arrived |= f.mask;
        self.complete(f.join);
    }

    fn complete(&mut self, mut join: u32) {
        while join != NO_JOIN {
            let j = self.joins[join as usize];
            if j.arrived != j.expected {
                return;
            }
            self.joins[join as usize].is_free = true;
            let parent = j.resume.join;
            if j.expected == 0 {
                join = parent;
                continue;
            }
            let f = Fragment { mask: j.expected, wait: Wait::No, ..j.resume };
            // The parent may meet at the same instruction: the fragment finds out when it runs.
            self.fragments.push(f);
            return;
        }
    }

    /// Lanes of fragment `i` end, or return from a call.
    fn end(&mut self, m: &Machine<'_>, b: &mut Block, i: usize, active: u32, ends: bool) {
        let f = self.fragments[i];
        if f.mask == active {
            self.fragments.swap_remove(i);
        } else {
            self.fragments[i].mask &= !active;
            self.fragments[i].pc += 1;
        }
        if ends {
            self.exited |= active;
        }
        // Leave the joins up to that of the call, or all.
        let mut join = f.join;
        let mut left = Vec::new();
        while join != NO_JOIN {
            let j = self.joins[join as usize];
            if let Some(call) = j.call
                && !ends
            {
                self.give_back(m, &f, &j.resume, call, active);
                self.joins[join as usize].arrived |= active;
                left.push(join);
                break;
            }
            self.joins[join as usize].expected &= !active;
            left.push(join);
            join = j.resume.join;
        }
        for join in left {
            if !self.joins[join as usize].is_free {
                self.complete(join);
            }
        }
        if ends {
            barrier_exit(b, self);
        }
    }

    fn call(
        &mut self,
        m: &Machine<'_>,
        b: &Block,
        i: usize,
        active: u32,
        inst: &Inst,
        call: &crate::ir::Call,
    ) -> Step<()> {
        let f = self.fragments[i];
        // Lanes of an indirect call may call different functions: one of them now, the others from the same
        // instruction.
        let mut now = active;
        let callee = match call.callee {
            Callee::Direct(c) => c,
            Callee::Indirect(s) => {
                let values = self.get(m, &f, s);
                let lane = active.trailing_zeros();
                let first = values[lane as usize];
                now = lanes(active).filter(|&l| values[l as usize] == first).fold(0, |a, l| a | 1 << l);
                match m.module.functions.get(first as usize) {
                    Some(c)
                        if c.is_defined
                            && !c.is_kernel
                            && c.params.len() == call.arguments.len()
                            && c.returns.len() == call.results.len() =>
                    {
                        first as u32
                    }
                    _ => {
                        let what = format!("{first:#x} is no function with the parameters of this call");
                        return Err(Box::new(self.fault(m, b, inst, lane, Fault::InvalidCall, what)));
                    }
                }
            }
        };
        if now != f.mask {
            // The lanes that do not call go on behind the call; those that call another function call it
            // next.
            let skip = f.mask & !active;
            let later = active & !now;
            self.fragments[i].mask = now;
            let join = self.new_join(Join {
                expected: f.mask,
                arrived: skip,
                resume: Fragment { pc: f.pc + 1, ..f },
                call: None,
                is_free: false,
            });
            self.fragments[i].join = join;
            if later != 0 {
                self.fragments.push(Fragment { mask: later, join, ..f });
            }
            return self.call(m, b, i, now, inst, call);
        }
        let (caller, target) =
            (&m.module.functions[f.function as usize], &m.module.functions[callee as usize]);
        let local_base = (f.local_base + caller.frame_bytes).next_multiple_of(16);
        if f.depth >= MAX_CALLS || local_base + target.frame_bytes > MAX_LOCAL_BYTES {
            let what = "calls nest too deep: the stack of the thread is exhausted".to_owned();
            return Err(Box::new(self.fault(m, b, inst, active.trailing_zeros(), Fault::InvalidCall, what)));
        }
        let join = self.new_join(Join {
            expected: f.mask,
            arrived: 0,
            resume: Fragment { pc: f.pc + 1, ..f },
            call: Some(f.pc),
            is_free: false,
        });
        let g = Fragment {
            function: callee,
            pc: 0,
            base: f.base + caller.registers,
            pred_base: f.pred_base + caller.predicates,
            local_base,
            join,
            depth: f.depth + 1,
            ..f
        };
        self.fragments[i] = g;
        let grow = |v: usize, need: u32| v.max(need as usize);
        let (registers, predicates) = (g.base + target.registers, g.pred_base + target.predicates);
        self.registers.resize(grow(self.registers.len(), registers), [0; 32]);
        self.defined.resize(grow(self.defined.len(), registers), 0);
        self.predicates.resize(grow(self.predicates.len(), predicates), 0);
        self.predicates_defined.resize(grow(self.predicates_defined.len(), predicates), 0);
        // A frame begins undefined.
        for r in &mut self.defined[g.base as usize..registers as usize] {
            *r &= !f.mask;
        }
        for p in &mut self.predicates_defined[g.pred_base as usize..predicates as usize] {
            *p &= !f.mask;
        }
        let local = (local_base + target.frame_bytes) as usize;
        self.local.resize(32, Vec::new());
        self.local_written.resize(32, Vec::new());
        for lane in lanes(f.mask) {
            let (bytes, written) = (&mut self.local[lane as usize], &mut self.local_written[lane as usize]);
            bytes.resize(bytes.len().max(local), 0);
            written.resize(written.len().max(local), 0);
            written[local_base as usize..].fill(0);
        }
        for (p, a) in target.params.iter().zip(&call.arguments) {
            self.pass(m, &f, &g, p, a);
        }
        Ok(())
    }

    /// Copies an argument into the callee's frame.
    fn pass(&mut self, m: &Machine<'_>, f: &Fragment, g: &Fragment, p: &crate::ir::Param, a: &Passed) {
        let to = (g.local_base + p.offset) as usize;
        match *a {
            Passed::Param(offset, bytes) => {
                let (from, n) = ((f.local_base + offset) as usize, bytes.min(p.bytes) as usize);
                if let Some(r) = p.register {
                    for lane in lanes(f.mask) {
                        let v = self.local[lane as usize][from..from + n.min(8)]
                            .iter()
                            .rev()
                            .fold(0, |v, &b| v << 8 | u64::from(b));
                        self.set_lane(g, r, lane as usize, v);
                    }
                    return;
                }
                for lane in lanes(f.mask) {
                    self.local[lane as usize].copy_within(from..from + n, to);
                    self.local_written[lane as usize].copy_within(from..from + n, to);
                }
            }
            Passed::Value(s, bytes) => {
                let (values, defined) = (*self.get(m, f, s), self.defined(f, s));
                if let Some(r) = p.register {
                    self.set(g, r, f.mask, defined, &values);
                    return;
                }
                let n = bytes.min(p.bytes).min(8) as usize;
                for lane in lanes(f.mask & defined) {
                    let l = lane as usize;
                    self.local[l][to..to + n].copy_from_slice(&values[l].to_le_bytes()[..n]);
                    self.local_written[l][to..to + n].fill(1);
                }
            }
            Passed::Result(_) => {}
        }
    }

    /// Copies results into the caller's frame.
    fn give_back(&mut self, m: &Machine<'_>, g: &Fragment, f: &Fragment, call: u32, active: u32) {
        let Op::Call(call) = &m.module.functions[f.function as usize].code[call as usize].op else { return };
        let returns = &m.module.functions[g.function as usize].returns;
        for (p, r) in returns.iter().zip(&call.results) {
            let from = (g.local_base + p.offset) as usize;
            for lane in lanes(active) {
                let l = lane as usize;
                let value = match p.register {
                    Some(reg) => self.registers[(g.base + reg.0) as usize][l],
                    None => self.local[l][from..from + (p.bytes as usize).min(8)]
                        .iter()
                        .rev()
                        .fold(0, |v, &b| v << 8 | u64::from(b)),
                };
                match *r {
                    Passed::Result(reg) => self.set_lane(f, reg, l, value),
                    Passed::Param(offset, bytes) => {
                        let (to, n) = ((f.local_base + offset) as usize, bytes.min(p.bytes) as usize);
                        if p.register.is_some() {
                            let n = n.min(8);
                            self.local[l][to..to + n].copy_from_slice(&value.to_le_bytes()[..n]);
                            self.local_written[l][to..to + n].fill(1);
                        } else {
                            self.local[l].copy_within(from..from + n, to);
                            self.local_written[l].copy_within(from..from + n, to);
                        }
                    }
                    Passed::Value(..) => {}
                }
            }
        }
    }

    /// A report of an instruction.
    pub(crate) fn fault(
        &self,
        m: &Machine<'_>,
        b: &Block,
        inst: &Inst,
        lane: u32,
        fault: Fault,
        message: String,
    ) -> Report {
        m.report(fault, Severity::Error, message, inst.line, m.thread(self.index, lane.min(31), b.ctaid))
    }

    /// Reports that a register decides something before it is written.
    pub(crate) fn undefined(&self, m: &mut Machine<'_>, b: &Block, inst: &Inst, lanes: u32, what: &str) {
        let message = format!("Uninitialized register: {what} was never written");
        let r = self.fault(m, b, inst, lanes.trailing_zeros(), Fault::UninitializedRegister, message);
        m.keep(r);
    }

    fn out_of_fuel(&self, m: &Machine<'_>, b: &Block, inst: &Inst, f: &Fragment) -> Box<Report> {
        let what = format!("the kernel did not end within {} instructions of threads", m.options.fuel);
        Box::new(self.fault(m, b, inst, f.mask.trailing_zeros(), Fault::OutOfFuel, what))
    }
}

/// The lanes of a mask, in order.
#[inline]
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let lane = left.trailing_zeros();
        left &= left - 1;
        Some(lane)
    })
}

/// Threads that ended are expected at no barrier any more.
fn barrier_exit(b: &mut Block, warp: &Warp) {
    super::barrier::recheck(b, warp);
}
