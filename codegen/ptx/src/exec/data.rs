//! One instruction of a fragment: the dispatch, and movement, selection and comparison.

use super::convert::{convert, convert_pair, is_float, pack};
use super::integer::{low, signed};
use super::warp::{Lanes, Next, Wait, lanes};
use super::{Block, Machine, Step, Warp};
use crate::float::{F32, F64};
use crate::ir::{Compare, Comparison, FloatType, Inst, Logic, Op, PredSrc, Space, Special, Src, Testp};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use crate::types::Type;

impl Warp {
    /// Executes an instruction that is not control flow for the active lanes of fragment `i`. `wait`: what it
    /// waited for.
    pub(super) fn execute(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        inst: &Inst,
        active: u32,
        wait: Wait,
    ) -> Step<Next> {
        let f = self.fragments[i];
        match &inst.op {
            Op::Nop
            | Op::Bra { .. }
            | Op::BrxIdx { .. }
            | Op::Call(_)
            | Op::Ret
            | Op::Exit
            | Op::Trap
            | Op::Unsupported(_) => {}
            Op::Mov { d, s } => {
                let (values, defined) = (*self.get(m, &f, *s), self.defined(&f, *s));
                self.set(&f, *d, active, defined, &values);
            }
            Op::MovPred { d, s } => {
                let (bits, defined) = (self.pred_src(&f, *s), self.pred_defined(&f, *s));
                self.set_pred(&f, *d, active, defined, bits);
            }
            Op::Pack { d, parts, bits } => {
                let (mut out, mut defined) = ([0; 32], u32::MAX);
                for (n, &p) in parts.iter().enumerate() {
                    defined &= self.defined(&f, p);
                    for (o, v) in out.iter_mut().zip(self.get(m, &f, p)) {
                        *o |= low(*v, *bits) << (n as u32 * bits);
                    }
                }
                self.set(&f, *d, active, defined, &out);
            }
            Op::Unpack { parts, s, bits } => {
                let (values, defined) = (*self.get(m, &f, *s), self.defined(&f, *s));
                for (n, p) in parts.iter().enumerate() {
                    if let Some(d) = p {
                        let out = values.map(|v| low(v >> (n as u32 * bits), *bits));
                        self.set(&f, *d, active, defined, &out);
                    }
                }
            }
            Op::Special { d, which } => {
                let out = self.special(m, b, *which);
                self.set(&f, *d, active, u32::MAX, &out);
            }
            Op::FrameAddress { d, offset } => {
                let out = [u64::from(f.local_base + offset); 32];
                self.set(&f, *d, active, u32::MAX, &out);
            }
            Op::Cvta { d, s, space, to, bits } => {
                let window = match space {
                    Space::Shared => SHARED_WINDOW,
                    Space::Local => LOCAL_WINDOW,
                    Space::Param => {
                        if m.module.functions[f.function as usize].is_kernel {
                            PARAM_WINDOW
                        } else {
                            LOCAL_WINDOW
                        }
                    }
                    Space::Global | Space::Const | Space::Generic => 0,
                };
                let window = if *to { window.wrapping_neg() } else { window };
                self.map1(m, i, *d, *s, active, |x| low(x.wrapping_add(window), *bits));
            }
            Op::Isspacep { d, s, space } => {
                let defined = self.defined(&f, *s);
                let mut bits = 0;
                for (lane, &x) in self.get(m, &f, *s).iter().enumerate() {
                    let inside = |w: u64| (w..w + WINDOW_BYTES).contains(&x);
                    let windows = inside(SHARED_WINDOW) || inside(LOCAL_WINDOW) || inside(PARAM_WINDOW);
                    let constant = || m.memory.find(x).is_some_and(|a| m.memory.allocations[a].read_only);
                    let hit = match space {
                        Space::Shared => inside(SHARED_WINDOW),
                        Space::Local => inside(LOCAL_WINDOW),
                        Space::Param => inside(PARAM_WINDOW),
                        Space::Const => !windows && constant(),
                        Space::Global | Space::Generic => !windows && !constant(),
                    };
                    bits |= u32::from(hit) << lane;
                }
                self.set_pred(&f, *d, active, defined, bits);
            }
            Op::Int1 { .. }
            | Op::Int2 { .. }
            | Op::Int3 { .. }
            | Op::Bfi { .. }
            | Op::Carry { .. }
            | Op::Lop3Pred { .. }
            | Op::Float1 { .. }
            | Op::Float2 { .. }
            | Op::Fma { .. }
            | Op::Widen { .. } => self.arithmetic(m, i, &inst.op, active),
            Op::Testp { d, class, bits, a } => {
                let format = if *bits == 32 { F32 } else { F64 };
                let defined = self.defined(&f, *a);
                let mut out = 0;
                for (lane, &x) in self.get(m, &f, *a).iter().enumerate() {
                    let x = low(x, *bits);
                    let magnitude = low(x, *bits - 1);
                    let (nan, inf) = (format.is_nan(x), magnitude == format.infinity());
                    let subnormal = format.is_subnormal(x);
                    let hit = match class {
                        Testp::Finite => !nan && !inf,
                        Testp::Infinite => inf,
                        Testp::Number => !nan,
                        Testp::NotANumber => nan,
                        // Zero counts as normal: measured on an H100, the ISA does not say.
                        Testp::Normal => !nan && !inf && !subnormal,
                        Testp::Subnormal => subnormal,
                    };
                    out |= u32::from(hit) << lane;
                }
                self.set_pred(&f, *d, active, defined, out);
            }
            Op::Setp { cmp, p, q, a, b: rhs } => {
                let (mut defined, high) = (self.defined(&f, *a) & self.defined(&f, *rhs), is_pair(cmp.ty));
                let (x, y) = (self.get(m, &f, *a), self.get(m, &f, *rhs));
                let (mut first, mut second) =
                    (compare(cmp, x, y, 0), if high { compare(cmp, x, y, 16) } else { 0 });
                if !high {
                    second = !first;
                }
                if let Some((logic, with)) = cmp.combine {
                    let c = self.pred_src(&f, with);
                    (first, second) = (combine(logic, first, c), combine(logic, second, c));
                    defined &= self.pred_defined(&f, with);
                }
                if let Some(p) = p {
                    self.set_pred(&f, *p, active, defined, first);
                }
                if let Some(q) = q {
                    self.set_pred(&f, *q, active, defined, second);
                }
            }
            Op::Set { cmp, to, d, a, b: rhs } => {
                let mut defined = self.defined(&f, *a) & self.defined(&f, *rhs);
                let (x, y) = (self.get(m, &f, *a), self.get(m, &f, *rhs));
                let pair = is_pair(cmp.ty) && is_pair(*to);
                let mut parts = [compare(cmp, x, y, 0), if pair { compare(cmp, x, y, 16) } else { 0 }];
                if let Some((logic, with)) = cmp.combine {
                    let c = self.pred_src(&f, with);
                    parts[0] = combine(logic, parts[0], c);
                    // A scalar has no second element: it stays false whatever the operator makes of it.
                    if pair {
                        parts[1] = combine(logic, parts[1], c);
                    }
                    defined &= self.pred_defined(&f, with);
                }
                let one = match to {
                    Type::F32 => 0x3F80_0000,
                    Type::F16 | Type::F16x2 => 0x3C00,
                    Type::Bf16 | Type::Bf16x2 => 0x3F80,
                    other => low(u64::MAX, other.bits()),
                };
                let mut out = [0; 32];
                for (lane, o) in out.iter_mut().enumerate() {
                    let v = |p: u32| if p >> lane & 1 == 1 { one } else { 0 };
                    *o = v(parts[0]) | v(parts[1]) << 16;
                }
                self.set(&f, *d, active, defined, &out);
            }
            Op::Selp { bits, d, a, b: rhs, c } => {
                let p = self.pred_src(&f, *c);
                // Only what is selected counts.
                let defined =
                    ((self.defined(&f, *a) & p) | (self.defined(&f, *rhs) & !p)) & self.pred_defined(&f, *c);
                let (x, y) = (self.get(m, &f, *a), self.get(m, &f, *rhs));
                let mut out = [0; 32];
                for (lane, o) in out.iter_mut().enumerate() {
                    *o = low(if p >> lane & 1 == 1 { x[lane] } else { y[lane] }, *bits);
                }
                self.set(&f, *d, active, defined, &out);
            }
            Op::Slct { float, ftz, d, a, b: rhs, c } => {
                let defined = self.defined(&f, *a) & self.defined(&f, *rhs) & self.defined(&f, *c);
                let (x, y, z) = (self.get(m, &f, *a), self.get(m, &f, *rhs), self.get(m, &f, *c));
                let mut out = [0; 32];
                for (lane, o) in out.iter_mut().enumerate() {
                    let first = if *float {
                        let v = if *ftz { F32.flush(low(z[lane], 32)) } else { z[lane] };
                        f32::from_bits(v as u32) >= 0.0
                    } else {
                        z[lane] as u32 as i32 >= 0
                    };
                    *o = if first { x[lane] } else { y[lane] };
                }
                self.set(&f, *d, active, defined, &out);
            }
            Op::PredLogic { logic, d, a, b: rhs } => {
                let (x, y) = (self.pred_src(&f, *a), self.pred_src(&f, *rhs));
                let (dx, dy) = (self.pred_defined(&f, *a), self.pred_defined(&f, *rhs));
                // A side that decides alone makes the result defined.
                let defined = match logic {
                    Logic::And => (dx & dy) | (dx & !x) | (dy & !y),
                    Logic::Or => (dx & dy) | (dx & x) | (dy & y),
                    Logic::Xor => dx & dy,
                };
                self.set_pred(&f, *d, active, defined, combine(*logic, x, y));
            }
            Op::Cvt { conversion, d, a } => self.map1(m, i, *d, *a, active, |x| convert(conversion, x)),
            Op::CvtPacked { conversion, d, a, b: rhs } => {
                self.map2(m, i, *d, *a, *rhs, active, |x, y| convert_pair(conversion, x, y));
            }
            Op::CvtPack { to, d, a, b: rhs, c } => match c {
                None => self.map2(m, i, *d, *a, *rhs, active, |x, y| pack(*to, x, y, None)),
                Some(c) => self.map3(m, i, *d, (*a, *rhs, *c), active, |x, y, z| pack(*to, x, y, Some(z))),
            },
            Op::Ld { .. }
            | Op::St { .. }
            | Op::Atom { .. }
            | Op::Fence { .. }
            | Op::CpAsync { .. }
            | Op::CpAsyncCommit
            | Op::CpAsyncWait { .. }
            | Op::LdMatrix { .. }
            | Op::StMatrix { .. } => self.memory(m, b, i, inst, active)?,
            Op::Mbarrier { op, space, address } => {
                self.mbarrier(m, b, i, inst, active, op, (*space, address))?
            }
            Op::PendingCount { d, a } => self.map1(m, i, *d, *a, active, |x| low(x, 20)),
            Op::Shfl { .. }
            | Op::Vote { .. }
            | Op::Ballot { .. }
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Elect { .. }
            | Op::WarpSync { .. } => return self.collective(m, b, i, inst, active, wait),
            Op::Activemask { d } => self.set(&f, *d, active, u32::MAX, &[u64::from(f.mask); 32]),
            Op::Barrier { op, id, count, aligned } => {
                return self.barrier(m, b, i, inst, active, wait, (*op, *id, *count, *aligned));
            }
            Op::MovMatrix { .. } | Op::Mma { .. } => self.matrix(m, b, i, inst, active)?,
        }
        Ok(Next::Advance)
    }

    pub(super) fn map1(
        &mut self,
        m: &Machine<'_>,
        i: usize,
        d: crate::ir::Reg,
        a: Src,
        active: u32,
        op: impl Fn(u64) -> u64,
    ) {
        let f = self.fragments[i];
        let defined = self.defined(&f, a);
        let out = self.get(m, &f, a).map(op);
        self.set(&f, d, active, defined, &out);
    }

    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the operands of the instruction and its context")]
    pub(super) fn map2(
        &mut self,
        m: &Machine<'_>,
        i: usize,
        d: crate::ir::Reg,
        a: Src,
        b: Src,
        active: u32,
        op: impl Fn(u64, u64) -> u64,
    ) {
        let f = self.fragments[i];
        let defined = self.defined(&f, a) & self.defined(&f, b);
        let (x, y) = (self.get(m, &f, a), self.get(m, &f, b));
        let mut out = [0; 32];
        for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
            *o = op(*x, *y);
        }
        self.set(&f, d, active, defined, &out);
    }

    #[inline]
    pub(super) fn map3(
        &mut self,
        m: &Machine<'_>,
        i: usize,
        d: crate::ir::Reg,
        (a, b, c): (Src, Src, Src),
        active: u32,
        op: impl Fn(u64, u64, u64) -> u64,
    ) {
        let f = self.fragments[i];
        let defined = self.defined(&f, a) & self.defined(&f, b) & self.defined(&f, c);
        let (x, y, z) = (self.get(m, &f, a), self.get(m, &f, b), self.get(m, &f, c));
        let mut out = [0; 32];
        for (((o, x), y), z) in out.iter_mut().zip(x).zip(y).zip(z) {
            *o = op(*x, *y, *z);
        }
        self.set(&f, d, active, defined, &out);
    }

    fn special(&self, m: &Machine<'_>, b: &Block, which: Special) -> Lanes {
        let launch = m.launch;
        let all = |v: u32| [u64::from(v); 32];
        let by_lane = |v: &dyn Fn(u32) -> u32| {
            let mut out = [0; 32];
            for (lane, o) in out.iter_mut().enumerate() {
                *o = u64::from(v(lane as u32));
            }
            out
        };
        let axis = |d: [u32; 3], a: u8| d[usize::from(a)];
        match which {
            Special::Tid(a) => {
                let [x, y, _] = launch.block;
                by_lane(&|lane| {
                    let t = self.index * 32 + lane;
                    axis([t % x, t / x % y, t / x / y], a)
                })
            }
            Special::Ntid(a) => all(axis(launch.block, a)),
            Special::Ctaid(a) | Special::Clusterid(a) => all(axis(b.ctaid, a)),
            Special::Nctaid(a) | Special::Nclusterid(a) => all(axis(launch.grid, a)),
            Special::Laneid => by_lane(&|lane| lane),
            Special::Warpid => all(self.index),
            Special::Nwarpid => all(64),
            // One multiprocessor that runs everything.
            Special::Smid => all(0),
            Special::Nsmid => all(1),
            Special::Gridid | Special::Zero | Special::ClusterCtaid(_) | Special::ClusterCtarank => all(0),
            Special::ClusterNctaid(_) | Special::ClusterNctarank => all(1),
            Special::LanemaskEq => by_lane(&|lane| 1 << lane),
            Special::LanemaskLt => by_lane(&|lane| (1 << lane) - 1),
            Special::LanemaskLe => by_lane(&|lane| ((1 << lane) - 1) | 1 << lane),
            Special::LanemaskGt => by_lane(&|lane| !(((1 << lane) - 1) | 1 << lane)),
            Special::LanemaskGe => by_lane(&|lane| !((1 << lane) - 1)),
            // Deterministic clocks: instructions of warps.
            Special::Clock => all(m.warp_instructions as u32),
            Special::ClockHi => all((m.warp_instructions >> 32) as u32),
            Special::Clock64 | Special::Globaltimer => [m.warp_instructions; 32],
            Special::DynamicSmemSize => all(launch.shared_bytes as u32),
            Special::TotalSmemSize => all((m.shared.fixed_bytes + launch.shared_bytes) as u32),
        }
    }

    /// Lanes for which a predicate operand is true.
    pub(super) fn truth(&self, i: usize, p: PredSrc) -> u32 {
        self.pred_src(&self.fragments[i], p)
    }

    /// Members of a mask operand: the value of the first active lane.
    pub(super) fn first_value(&self, m: &Machine<'_>, i: usize, s: Src, active: u32) -> u64 {
        let lane = lanes(active).next().unwrap_or(0);
        self.get(m, &self.fragments[i], s)[lane as usize]
    }
}

fn is_pair(ty: Type) -> bool {
    matches!(ty, Type::F16x2 | Type::Bf16x2)
}

fn combine(logic: Logic, a: u32, b: u32) -> u32 {
    match logic {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

/// The lanes for which a comparison holds, of the elements at `shift`.
fn compare(c: &Comparison, x: &Lanes, y: &Lanes, shift: u32) -> u32 {
    let mut out = 0;
    let mut each = |op: &dyn Fn(u64, u64) -> bool| {
        for (lane, (x, y)) in x.iter().zip(y).enumerate() {
            out |= u32::from(op(*x, *y)) << lane;
        }
    };
    if is_float(c.ty) {
        let ty = match c.ty {
            Type::F16 | Type::F16x2 => FloatType::F16,
            Type::Bf16 | Type::Bf16x2 => FloatType::Bf16,
            Type::F64 => FloatType::F64,
            _ => FloatType::F32,
        };
        each(&|x, y| crate::float::ops::compare(c.compare, ty, c.ftz, x >> shift, y >> shift));
        return out;
    }
    let bits = c.ty.bits();
    let holds = |o: std::cmp::Ordering| match c.compare {
        Compare::Eq | Compare::Equ => o.is_eq(),
        Compare::Ne | Compare::Neu => o.is_ne(),
        Compare::Lt | Compare::Ltu => o.is_lt(),
        Compare::Le | Compare::Leu => o.is_le(),
        Compare::Gt | Compare::Gtu => o.is_gt(),
        Compare::Ge | Compare::Geu => o.is_ge(),
        Compare::Num => true,
        Compare::Nan => false,
    };
    if c.ty.is_signed() {
        each(&|x, y| holds(signed(x, bits).cmp(&signed(y, bits))));
    } else {
        each(&|x, y| holds(low(x, bits).cmp(&low(y, bits))));
    }
    out
}
