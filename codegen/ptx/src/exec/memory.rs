//! Loads, stores, atomics and copies, with their checks: bounds by allocation, alignment, what was written,
//! races.

use super::integer::{low, signed};
use super::warp::lanes;
use super::{Block, Machine, Step, Warp};
use crate::float::F64;
use crate::float::ops::{float2, quiet_f64};
use crate::ir::{
    Address, AtomOp, Float2, FloatMode, FloatType, Inst, Op, Order, Round, Scope, Space, Strength,
};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use crate::race::{Access, Conflict, WEAK};
use crate::report::{Fault, Report, Severity};
use crate::types::Type;

/// A copy of `cp.async` that was issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    shared: u64,
    global: (usize, usize),
    bytes: u32,
    /// Bytes that are read; the others become zero.
    source: u32,
    line: u32,
}

/// Where an access goes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Location {
    Global(usize, usize),
    Shared(usize),
    Local(usize),
    Param(usize),
}

/// How an access is done.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    pub(crate) write: bool,
    pub(crate) strength: u8,
    pub(crate) atomic: bool,
}

impl Location {
    pub(crate) fn space(self) -> Space {
        match self {
            Location::Global(..) => Space::Global,
            Location::Shared(_) => Space::Shared,
            Location::Local(_) => Space::Local,
            Location::Param(_) => Space::Param,
        }
    }
}

fn strength_of(s: Strength) -> u8 {
    match s {
        Strength::Weak => WEAK,
        Strength::Strong(scope, _) => scope_strength(scope),
    }
}

fn scope_strength(scope: Scope) -> u8 {
    match scope {
        Scope::Block => 2,
        Scope::Gpu | Scope::Sys => 3,
    }
}

impl Warp {
    /// The address that a lane accesses.
    fn effective(&self, m: &Machine<'_>, i: usize, a: &Address, lane: u32) -> u64 {
        let base = self.get(m, &self.fragments[i], a.base)[lane as usize];
        let base = if a.narrow { low(base, 32) } else { base };
        let sum = base.wrapping_add(a.offset as u64);
        if a.narrow { low(sum, 32) } else { sum }
    }

    /// Finds the memory of an address and checks bounds and alignment.
    #[allow(clippy::too_many_arguments, reason = "the operands of the instruction and its context")]
    #[inline]
    fn locate(
        &self,
        m: &mut Machine<'_>,
        b: &Block,
        i: usize,
        inst: &Inst,
        lane: u32,
        space: Space,
        address: u64,
        (bytes, align): (u64, u64),
        mode: Mode,
    ) -> Step<Location> {
        let fault = |m: &Machine<'_>, space: Space, fault: Fault, why: &str| {
            let what = if mode.atomic {
                "atomic"
            } else if mode.write {
                "write"
            } else {
                "read"
            };
            let message =
                format!("Invalid __{}__ {what} of size {bytes} bytes: the address {why}", space.name());
            let mut r = self.fault(m, b, inst, lane, fault, message);
            (r.address, r.space) = (Some(address), Some(space));
            Err(Box::new(r))
        };
        let (space, offset) = match space {
            Space::Generic => {
                let inside = |w: u64| (w..w + WINDOW_BYTES).contains(&address);
                if inside(SHARED_WINDOW) {
                    (Space::Shared, address - SHARED_WINDOW)
                } else if inside(LOCAL_WINDOW) {
                    (Space::Local, address - LOCAL_WINDOW)
                } else if inside(PARAM_WINDOW) {
                    (Space::Param, address - PARAM_WINDOW)
                } else {
                    (Space::Global, address)
                }
            }
            Space::Const => (Space::Global, address),
            other => (other, address),
        };
        if offset % align != 0 {
            return fault(m, space, Fault::Misaligned, "is misaligned");
        }
        match space {
            Space::Global | Space::Const | Space::Generic => {
                let hit = |a: &crate::memory::Allocation| {
                    offset >= a.base && offset - a.base + bytes <= a.bytes.len() as u64
                };
                let mut at = m.last_allocation;
                if !m.memory.allocations.get(at).is_some_and(hit) {
                    at = match m.memory.find(offset) {
                        Some(at) if hit(&m.memory.allocations[at]) => at,
                        near => {
                            let why = match near.map(|n| &m.memory.allocations[n]) {
                                Some(a) if a.is_freed => format!("is in `{}`, which was freed", a.name),
                                Some(a) => format!(
                                    "is out of bounds: {} bytes behind the end of the nearest allocation `{}` of {} bytes at {:#x}",
                                    offset
                                        .saturating_add(bytes)
                                        .saturating_sub(a.base + a.bytes.len() as u64),
                                    a.name,
                                    a.bytes.len(),
                                    a.base
                                ),
                                None => "is in no allocation".to_owned(),
                            };
                            return fault(m, space, Fault::OutOfBounds, &why);
                        }
                    };
                    m.last_allocation = at;
                }
                let a = &m.memory.allocations[at];
                if mode.write && a.read_only {
                    return fault(m, Space::Const, Fault::ReadOnly, "is constant");
                }
                Ok(Location::Global(at, (offset - a.base) as usize))
            }
            Space::Shared => {
                if !m.shared.contains(offset, bytes) {
                    let near = m.shared.ranges.partition_point(|r| r.0 <= offset);
                    let why = match near.checked_sub(1).map(|n| m.shared.ranges[n]) {
                        Some((start, end, v)) => format!(
                            "is out of bounds: {} bytes behind the end of `{}` of {} bytes",
                            offset.saturating_add(bytes).saturating_sub(end),
                            m.module.variables[v as usize].name,
                            end - start
                        ),
                        None => "is in no shared variable".to_owned(),
                    };
                    return fault(m, space, Fault::OutOfBounds, &why);
                }
                Ok(Location::Shared(offset as usize))
            }
            Space::Local => {
                let f = &self.fragments[i];
                let end = f.local_base + m.module.functions[f.function as usize].frame_bytes;
                if offset.saturating_add(bytes) > u64::from(end) || self.local.is_empty() {
                    return fault(
                        m,
                        space,
                        Fault::OutOfBounds,
                        "is out of bounds of the thread's local memory",
                    );
                }
                Ok(Location::Local(offset as usize))
            }
            Space::Param => {
                if mode.write {
                    return fault(m, space, Fault::ReadOnly, "is a parameter");
                }
                if offset.saturating_add(bytes) > m.params.len() as u64 {
                    return fault(m, space, Fault::OutOfBounds, "is out of bounds of the parameters");
                }
                Ok(Location::Param(offset as usize))
            }
        }
    }

    fn load_bytes(
        &self,
        m: &Machine<'_>,
        b: &Block,
        lane: u32,
        at: Location,
        bytes: usize,
        offset: usize,
    ) -> u64 {
        let from: &[u8] = match at {
            _ if bytes == 0 => return 0,
            Location::Global(a, at) => &m.memory.allocations[a].bytes[at + offset..at + offset + bytes],
            Location::Shared(at) => &b.shared[at + offset..at + offset + bytes],
            Location::Local(at) => &self.local[lane as usize][at + offset..at + offset + bytes],
            Location::Param(at) => &m.params[at + offset..at + offset + bytes],
        };
        match *from {
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => from.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b)),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "where, what, and whether it is defined")]
    fn store_bytes(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        lane: u32,
        at: Location,
        bytes: usize,
        offset: usize,
        value: u64,
        defined: bool,
    ) {
        let (to, written) = match at {
            Location::Global(a, at) => {
                let a = &mut m.memory.allocations[a];
                (&mut a.bytes[at + offset..][..bytes], &mut a.written[at + offset..][..bytes])
            }
            Location::Shared(at) => {
                (&mut b.shared[at + offset..][..bytes], &mut b.shared_written[at + offset..][..bytes])
            }
            Location::Local(at) => {
                let l = lane as usize;
                (
                    &mut self.local[l][at + offset..][..bytes],
                    &mut self.local_written[l][at + offset..][..bytes],
                )
            }
            Location::Param(_) => return,
        };
        to.copy_from_slice(&value.to_le_bytes()[..bytes]);
        written.fill(u8::from(defined));
    }

    fn is_written(&self, m: &Machine<'_>, b: &Block, lane: u32, at: Location, bytes: usize) -> bool {
        let written: &[u8] = match at {
            Location::Global(a, at) => &m.memory.allocations[a].written[at..at + bytes],
            Location::Shared(at) => &b.shared_written[at..at + bytes],
            Location::Local(at) => &self.local_written[lane as usize][at..at + bytes],
            Location::Param(_) => return true,
        };
        written.iter().all(|&w| w == 1)
    }

    #[allow(clippy::too_many_arguments, reason = "the access and its context")]
    fn check_written(
        &self,
        m: &mut Machine<'_>,
        b: &Block,
        inst: &Inst,
        lane: u32,
        at: Location,
        bytes: usize,
        address: u64,
    ) -> bool {
        if !m.options.check_initialized || self.is_written(m, b, lane, at, bytes) {
            return true;
        }
        // A value that was never defined and spilled is the register's matter, not the memory's.
        let space = at.space();
        let message = format!("Uninitialized __{}__ memory read of size {bytes} bytes", space.name());
        let mut r = self.fault(m, b, inst, lane, Fault::UninitializedMemory, message);
        (r.address, r.space) = (Some(address), Some(space));
        m.keep(r);
        false
    }

    /// Records an access for races. `same`: the write changes nothing.
    #[allow(clippy::too_many_arguments, reason = "the access and its context")]
    fn check_race(
        &self,
        m: &mut Machine<'_>,
        b: &mut Block,
        inst: &Inst,
        lane: u32,
        at: Location,
        bytes: usize,
        mode: Mode,
        same: bool,
        address: u64,
    ) {
        if !m.options.check_races {
            return;
        }
        let w = self.index as usize;
        let access = Access {
            block: b.index,
            clock: b.clocks[w][w],
            sync: self.syncs,
            lanes: 1 << lane,
            line: inst.line,
            release: b.release,
            warp: self.index as u8,
            strength: mode.strength,
        };
        let conflict: Option<Conflict> = {
            let (clocks, acquired, index) = (&b.clocks, &b.acquired, b.index);
            let ordered = |prev: &Access| {
                if prev.block != index {
                    return acquired.get(&prev.block).is_some_and(|&r| r >= prev.release);
                }
                if usize::from(prev.warp) != w {
                    return clocks[w][usize::from(prev.warp)] >= prev.clock;
                }
                let others = prev.lanes & !(1 << lane);
                others == 0 || self.synchronized_since(prev.sync, others | 1 << lane)
            };
            match at {
                Location::Global(a, at) => m.races[a].access(at, bytes, access, mode.write, same, ordered),
                Location::Shared(at) => b.races.access(at, bytes, access, mode.write, same, ordered),
                Location::Local(_) | Location::Param(_) => None,
            }
        };
        if let Some(c) = conflict {
            let r = self.race(m, b, inst, lane, at.space(), bytes, mode.write, &c, address);
            // A weak read and an atomic write: wrong unless the reader goes on to compare and swap there.
            let reader = match (mode.write, c.wrote) {
                (true, false) if mode.atomic => Some((c.with.block, u32::from(c.with.warp))),
                (false, true) if c.with.strength > WEAK => Some((b.index, self.index)),
                _ => None,
            };
            match reader {
                Some((block, warp)) => {
                    m.pending.entry((block, warp, address)).or_insert(r);
                }
                None => m.keep(r),
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the access and its context")]
    fn race(
        &self,
        m: &Machine<'_>,
        b: &Block,
        inst: &Inst,
        lane: u32,
        space: Space,
        bytes: usize,
        write: bool,
        c: &Conflict,
        address: u64,
    ) -> Report {
        let (fault, kind) = match (c.wrote, write) {
            (true, true) => (Fault::WriteAfterWrite, "WAW"),
            (false, _) => (Fault::WriteAfterRead, "WAR"),
            (true, false) => (Fault::ReadAfterWrite, "RAW"),
        };
        let message = format!(
            "Race reported: {kind} hazard at __{}__ memory, access of size {bytes} bytes",
            space.name()
        );
        let mut r = self.fault(m, b, inst, lane, fault, message);
        // Lanes of one warp that count on running in step.
        let in_warp =
            c.with.block == b.index && u32::from(c.with.warp) == self.index && c.with.line != inst.line;
        r.severity = if in_warp { Severity::Warning } else { Severity::Error };
        (r.address, r.space) = (Some(address), Some(space));
        r.other = Some(m.other(&c.with, c.wrote));
        r
    }

    /// The address of an object in shared memory.
    #[allow(clippy::too_many_arguments, reason = "the operands of the instruction and its context")]
    pub(super) fn shared_address(
        &self,
        m: &mut Machine<'_>,
        b: &Block,
        i: usize,
        inst: &Inst,
        lane: u32,
        (space, address): (Space, &Address),
        bytes: u64,
    ) -> Step<u64> {
        let mut a = self.effective(m, i, address, lane);
        if space == Space::Shared && a >= SHARED_WINDOW {
            a -= SHARED_WINDOW;
        }
        let mode = Mode { write: false, strength: 2, atomic: true };
        match self.locate(m, b, i, inst, lane, space, a, (bytes, bytes), mode)? {
            Location::Shared(at) => Ok(at as u64),
            Location::Global(..) | Location::Local(_) | Location::Param(_) => {
                let what = "the address is not in shared memory".to_owned();
                Err(Box::new(self.fault(m, b, inst, lane, Fault::OutOfBounds, what)))
            }
        }
    }

    fn check_address(&self, m: &mut Machine<'_>, b: &Block, i: usize, inst: &Inst, a: &Address, active: u32) {
        if m.options.check_initialized {
            let unknown = active & !self.defined(&self.fragments[i], a.base);
            if unknown != 0 {
                self.undefined(m, b, inst, unknown, "the address");
            }
        }
    }

    pub(super) fn memory(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        inst: &Inst,
        active: u32,
    ) -> Step<()> {
        let f = self.fragments[i];
        match &inst.op {
            Op::Ld { space, ty, strength, d, address, used, .. } => {
                self.check_address(m, b, i, inst, address, active);
                let element = ty.bytes() as usize;
                let all = element * d.len();
                // Up to the last byte that is used.
                let bytes = all.min(32 - used.leading_zeros() as usize).max(1);
                let mode = Mode { write: false, strength: strength_of(*strength), atomic: false };
                for lane in lanes(active) {
                    let a = self.effective(m, i, address, lane);
                    let at = self.locate(m, b, i, inst, lane, *space, a, (bytes as u64, all as u64), mode)?;
                    // Spilled values that were not defined stay so.
                    let local = matches!(at, Location::Local(_));
                    let defined = if local { self.is_written(m, b, lane, at, bytes) } else { true };
                    if !local {
                        self.check_written(m, b, inst, lane, at, bytes, a);
                        self.check_race(m, b, inst, lane, at, bytes, mode, false, a);
                    }
                    for (n, d) in d.iter().enumerate() {
                        let Some(d) = d else { continue };
                        let there = bytes.saturating_sub(n * element).min(element);
                        let v = self.load_bytes(m, b, lane, at, there, n * element);
                        let v = if ty.is_signed() { signed(v, ty.bits()) as u64 } else { v };
                        self.set_lane(&f, *d, lane as usize, v);
                        if !defined {
                            self.set_undefined(&f, *d, lane);
                        }
                    }
                }
                if mode.strength > WEAK {
                    let now = matches!(strength, Strength::Strong(_, Order::Acquire));
                    self.acquire(m, b, i, address, *space, active, now);
                }
            }
            Op::St { space, ty, strength, s, address } => {
                self.check_address(m, b, i, inst, address, active);
                let element = ty.bytes() as usize;
                let bytes = element * s.len();
                let mode = Mode { write: true, strength: strength_of(*strength), atomic: false };
                let releases = matches!(strength, Strength::Strong(_, Order::Release))
                    || (mode.strength > WEAK && b.fenced);
                if releases {
                    self.release(m, b, i, address, *space, active);
                }
                for lane in lanes(active) {
                    let a = self.effective(m, i, address, lane);
                    let at =
                        self.locate(m, b, i, inst, lane, *space, a, (bytes as u64, bytes as u64), mode)?;
                    let mut same = true;
                    for (n, &s) in s.iter().enumerate() {
                        let v = low(self.get(m, &f, s)[lane as usize], ty.bits());
                        same = same && self.load_bytes(m, b, lane, at, element, n * element) == v;
                    }
                    self.check_race(m, b, inst, lane, at, bytes, mode, same, a);
                    for (n, &s) in s.iter().enumerate() {
                        let v = self.get(m, &f, s)[lane as usize];
                        let defined = self.defined(&f, s) >> lane & 1 == 1;
                        self.store_bytes(m, b, lane, at, element, n * element, v, defined);
                    }
                }
            }
            Op::Atom { .. } => self.atomic(m, b, i, inst, active)?,
            Op::Fence { .. } => {
                b.fenced = true;
                for (block, r) in std::mem::take(&mut b.observed) {
                    let e = b.acquired.entry(block).or_insert(0);
                    *e = (*e).max(r);
                }
            }
            Op::CpAsync { shared, global, bytes, source_bytes, ignore } => {
                self.check_address(m, b, i, inst, shared, active);
                self.check_address(m, b, i, inst, global, active);
                self.copies.resize(32, vec![Vec::new()]);
                let skip = ignore.map_or(0, |p| self.truth(i, p));
                for lane in lanes(active) {
                    let n = match source_bytes {
                        Some(s) => (self.get(m, &f, *s)[lane as usize] as u32).min(*bytes),
                        None => *bytes,
                    };
                    let n = if skip >> lane & 1 == 1 { 0 } else { n };
                    let mode = Mode { write: true, strength: WEAK, atomic: false };
                    let s = self.effective(m, i, shared, lane);
                    let whole = u64::from(*bytes);
                    let to = match self.locate(m, b, i, inst, lane, Space::Shared, s, (whole, whole), mode)? {
                        Location::Shared(to) => to,
                        Location::Global(..) | Location::Local(_) | Location::Param(_) => continue,
                    };
                    let g = self.effective(m, i, global, lane);
                    let mut from = (0, 0);
                    if n > 0 {
                        // Only the bytes that are read must be there; the address is aligned to the copy all
                        // the same.
                        let mode = Mode { write: false, ..mode };
                        let read = (u64::from(n), whole);
                        if let Location::Global(a, start) =
                            self.locate(m, b, i, inst, lane, Space::Global, g, read, mode)?
                        {
                            from = (a, start);
                            let at = Location::Global(a, start);
                            self.check_written(m, b, inst, lane, at, n as usize, g);
                            self.check_race(m, b, inst, lane, at, n as usize, mode, false, g);
                        }
                    }
                    let copy =
                        Copy { shared: to as u64, global: from, bytes: *bytes, source: n, line: inst.line };
                    if let Some(open) = self.copies[lane as usize].last_mut() {
                        open.push(copy);
                    }
                }
            }
            Op::CpAsyncCommit => {
                self.copies.resize(32, vec![Vec::new()]);
                for lane in lanes(active) {
                    self.copies[lane as usize].push(Vec::new());
                }
            }
            Op::CpAsyncWait { pending } => {
                for lane in lanes(active) {
                    self.complete_copies(m, b, lane, *pending);
                }
            }
            Op::LdMatrix { d, trans, address } => {
                self.load_matrix(m, b, i, inst, active, d, *trans, address)?
            }
            Op::StMatrix { s, trans, address } => {
                self.store_matrix(m, b, i, inst, active, s, *trans, address)?
            }
            // An instruction that did nothing here would be a wrong result that goes unnoticed.
            elsewhere => unreachable!("{elsewhere:?} is executed elsewhere"),
        }
        Ok(())
    }

    /// Completes the copies of a lane but for the last `pending` groups.
    pub(super) fn complete_copies(&mut self, m: &mut Machine<'_>, b: &mut Block, lane: u32, pending: u32) {
        let Some(groups) = self.copies.get_mut(lane as usize) else { return };
        // The last entry is the open group, which `wait_all` and an mbarrier complete too.
        let whole = groups.len().saturating_sub(1);
        let done = whole.saturating_sub(pending as usize);
        let mut copies: Vec<Copy> = groups.drain(..done).flatten().collect();
        if pending == 0
            && let Some(open) = groups.last_mut()
        {
            copies.append(open);
        }
        for c in copies {
            let mode = Mode { write: true, strength: WEAK, atomic: false };
            let at = c.shared as usize;
            let here = Inst { op: Op::Nop, guard: None, line: c.line };
            let mut data = vec![0_u8; c.bytes as usize];
            let n = c.source as usize;
            data[..n].copy_from_slice(&m.memory.allocations[c.global.0].bytes[c.global.1..c.global.1 + n]);
            let same = b.shared[at..at + data.len()] == data;
            self.check_race(m, b, &here, lane, Location::Shared(at), data.len(), mode, same, c.shared);
            b.shared[at..at + data.len()].copy_from_slice(&data);
            b.shared_written[at..at + data.len()].fill(1);
        }
    }

    fn key(&self, m: &Machine<'_>, i: usize, address: &Address, space: Space, lane: u32) -> Option<u64> {
        let a = self.effective(m, i, address, lane);
        match space {
            Space::Global => Some(a),
            Space::Generic if a >= crate::memory::GLOBAL_BASE => Some(a),
            Space::Generic | Space::Shared | Space::Local | Space::Const | Space::Param => None,
        }
    }

    /// What this block did so far happens before what acquires from the addresses.
    fn release(
        &self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        address: &Address,
        space: Space,
        active: u32,
    ) {
        for lane in lanes(active) {
            if let Some(k) = self.key(m, i, address, space, lane) {
                let to = m.released.entry(k).or_default();
                to.insert(b.index, b.release);
                for (&block, &r) in &b.acquired {
                    let e = to.entry(block).or_insert(0);
                    *e = (*e).max(r);
                }
                b.release += 1;
            }
        }
    }

    /// What was released at the addresses happens before what this block does now, or behind its next fence.
    #[allow(clippy::too_many_arguments, reason = "the operands of the instruction and its context")]
    fn acquire(
        &self,
        m: &Machine<'_>,
        b: &mut Block,
        i: usize,
        address: &Address,
        space: Space,
        active: u32,
        now: bool,
    ) {
        if m.released.is_empty() {
            return;
        }
        for lane in lanes(active) {
            if let Some(from) = self.key(m, i, address, space, lane).and_then(|k| m.released.get(&k)) {
                let to = if now { &mut b.acquired } else { &mut b.observed };
                for (&block, &r) in from {
                    let e = to.entry(block).or_insert(0);
                    *e = (*e).max(r);
                }
            }
        }
    }

    fn atomic(&mut self, m: &mut Machine<'_>, b: &mut Block, i: usize, inst: &Inst, active: u32) -> Step<()> {
        let Op::Atom { op, space, ty, scope, order, d, address, b: value, c } = &inst.op else {
            return Ok(());
        };
        let f = self.fragments[i];
        self.check_address(m, b, i, inst, address, active);
        let element = ty.bytes() as usize;
        let bytes = element * value.len();
        let mode = Mode { write: true, strength: scope_strength(*scope), atomic: true };
        // A relaxed operation behind a fence orders what was before the fence.
        let orders = *order != Order::Relaxed || b.fenced;
        if orders && *order != Order::Acquire {
            self.release(m, b, i, address, *space, active);
        }
        for lane in lanes(active) {
            let l = lane as usize;
            let a = self.effective(m, i, address, lane);
            let at = self.locate(m, b, i, inst, lane, *space, a, (bytes as u64, bytes as u64), mode)?;
            self.check_written(m, b, inst, lane, at, bytes, a);
            self.check_race(m, b, inst, lane, at, bytes, mode, false, a);
            if *op == AtomOp::Cas {
                m.pending.remove(&(b.index, self.index, a));
            }
            for (n, &v) in value.iter().enumerate() {
                let old = self.load_bytes(m, b, lane, at, element, n * element);
                let operand = low(self.get(m, &f, v)[l], ty.bits());
                let third = c.map_or(0, |c| low(self.get(m, &f, c)[l], ty.bits()));
                let new = read_modify_write(*op, *ty, old, operand, third, at.space());
                self.store_bytes(m, b, lane, at, element, n * element, new, true);
                if let Some(Some(d)) = d.get(n) {
                    self.set_lane(&f, *d, l, old);
                }
            }
        }
        let now = matches!(order, Order::Acquire | Order::AcqRel) || b.fenced;
        self.acquire(m, b, i, address, *space, active, now);
        Ok(())
    }

    /// One row of 8 elements of 16 bits of a matrix in shared memory.
    #[allow(clippy::too_many_arguments, reason = "the operands of the instruction and its context")]
    pub(super) fn matrix_row(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        inst: &Inst,
        lane: u32,
        address: &Address,
        write: Option<[u16; 8]>,
    ) -> Step<[u16; 8]> {
        let mode = Mode { write: write.is_some(), strength: WEAK, atomic: false };
        let mut a = self.effective(m, i, address, lane);
        if a >= SHARED_WINDOW {
            a -= SHARED_WINDOW;
        }
        let Location::Shared(at) = self.locate(m, b, i, inst, lane, Space::Shared, a, (16, 16), mode)? else {
            return Ok([0; 8]);
        };
        let location = Location::Shared(at);
        let mut row = [0; 8];
        if let Some(new) = write {
            let same = (0..8).all(|n| self.load_bytes(m, b, lane, location, 2, 2 * n) as u16 == new[n]);
            self.check_race(m, b, inst, lane, location, 16, mode, same, a);
            for (n, v) in new.iter().enumerate() {
                self.store_bytes(m, b, lane, location, 2, 2 * n, u64::from(*v), true);
            }
            return Ok(new);
        }
        self.check_written(m, b, inst, lane, location, 16, a);
        self.check_race(m, b, inst, lane, location, 16, mode, false, a);
        for (n, v) in row.iter_mut().enumerate() {
            *v = self.load_bytes(m, b, lane, location, 2, 2 * n) as u16;
        }
        Ok(row)
    }
}

fn plain(ty: FloatType, lanes: u8, ftz: bool) -> FloatMode {
    FloatMode {
        ty,
        lanes,
        round: Round::Nearest,
        ftz,
        sat: false,
        relu: false,
        nan: false,
        abs: false,
        xorsign: false,
    }
}

/// The sum of two f64 of which one is NaN. The ISA leaves its bits open; measured on an H100: the unit that
/// adds in global memory keeps the operand's bits before the memory's and quiets neither. Shared memory is
/// added to by instructions: the memory's before the operand's, quieted.
fn add_nan(old: u64, x: u64, space: Space) -> u64 {
    let first = |a: u64, b: u64| if F64.is_nan(a) { a } else { b };
    if space == Space::Global { first(x, old) } else { quiet_f64(first(old, x)) }
}

/// The new value of a read-modify-write operation.
fn read_modify_write(op: AtomOp, ty: Type, old: u64, x: u64, c: u64, space: Space) -> u64 {
    let bits = ty.bits();
    let less = |a: u64, b: u64| if ty.is_signed() { signed(a, bits) < signed(b, bits) } else { a < b };
    let float = |op: Float2| {
        let mode = match ty {
            Type::F16 => plain(FloatType::F16, 1, false),
            Type::F16x2 => plain(FloatType::F16, 2, false),
            Type::Bf16 => plain(FloatType::Bf16, 1, false),
            Type::Bf16x2 => plain(FloatType::Bf16, 2, false),
            // The ISA: in global memory subnormals are flushed, in shared memory not.
            Type::F32 => plain(FloatType::F32, 1, space == Space::Global),
            Type::F64 => plain(FloatType::F64, 1, false),
            _ => return None,
        };
        if ty == Type::F64 && op == Float2::Add && (F64.is_nan(old) || F64.is_nan(x)) {
            return Some(add_nan(old, x, space));
        }
        Some(float2(op, mode, old, x))
    };
    let r = match op {
        AtomOp::And => old & x,
        AtomOp::Or => old | x,
        AtomOp::Xor => old ^ x,
        AtomOp::Exch => x,
        AtomOp::Cas => {
            if old == x {
                c
            } else {
                old
            }
        }
        AtomOp::Add => float(Float2::Add).unwrap_or(old.wrapping_add(x)),
        AtomOp::Inc => {
            if old >= x {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > x {
                x
            } else {
                old - 1
            }
        }
        AtomOp::Min => float(Float2::Min).unwrap_or(if less(x, old) { x } else { old }),
        AtomOp::Max => float(Float2::Max).unwrap_or(if less(old, x) { x } else { old }),
    };
    low(r, bits)
}
