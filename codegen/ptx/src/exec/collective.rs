//! What the lanes of a warp do together: shuffles, votes, matches, reductions, and the barrier of a warp.
//!
//! An instruction with a member mask executes when every member that has not ended is there: in this
//! fragment, or waiting at such an instruction in another. Then the lanes of all these fragments see each
//! other's values.

use super::integer::{low, signed};
use super::warp::{Next, Wait, lanes};
use super::{Block, Machine, Step, Warp};
use crate::float::ops::float2;
use crate::ir::{Float2, FloatMode, FloatType, Inst, Op, PredSrc, Redux, Round, Shuffle, Src, Vote};
use crate::report::Fault;
use crate::types::Type;

/// The value that lanes contribute.
fn contributed(op: &Op) -> (Option<Src>, Option<PredSrc>, Option<Src>) {
    match op {
        Op::Shfl { a, members, .. } => (Some(*a), None, *members),
        Op::Vote { a, members, .. } | Op::Ballot { a, members, .. } => (None, Some(*a), *members),
        Op::Match { a, members, .. } | Op::Redux { a, members, .. } => (Some(*a), None, Some(*members)),
        Op::Elect { members, .. } | Op::WarpSync { members } => (None, None, Some(*members)),
        _ => (None, None, None),
    }
}

struct Gathered {
    values: [u64; 32],
    defined: u32,
    truth: u32,
    /// Lanes that are there.
    present: u32,
}

impl Warp {
    pub(super) fn collective(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        inst: &Inst,
        active: u32,
        wait: Wait,
    ) -> Step<Next> {
        let (.., mask) = contributed(&inst.op);
        let Some(mask) = mask else {
            // The forms without mask: the lanes that are there.
            let mut g = Gathered { values: [0; 32], defined: 0, truth: 0, present: 0 };
            self.gather(m, i, inst, active, &mut g);
            self.exchange(m, i, inst, active, &g);
            return Ok(Next::Advance);
        };
        let f = self.fragments[i];
        let members = self.first_value(m, i, mask, active) as u32;
        if m.options.check_initialized && self.defined(&f, mask) & active != active {
            self.undefined(m, b, inst, active & !self.defined(&f, mask), "the member mask");
        }
        let different = lanes(active).find(|&l| self.get(m, &f, mask)[l as usize] as u32 != members);
        if let Some(lane) = different {
            let what = "Barrier error detected. Invalid arguments: lanes of the warp name different members"
                .to_owned();
            return Err(Box::new(self.fault(m, b, inst, lane, Fault::InvalidMask, what)));
        }
        if active & !members != 0 {
            let lane = (active & !members).trailing_zeros();
            let what = format!(
                "Barrier error detected. Invalid arguments: the member mask {members:#010x} does not name lane {lane}, which executes it"
            );
            return Err(Box::new(self.fault(m, b, inst, lane, Fault::InvalidMask, what)));
        }
        if !matches!(wait, Wait::Members(_)) {
            if members & self.live() & !active != 0 {
                return Ok(Next::Wait(Wait::Members(members)));
            }
            let mut g = Gathered { values: [0; 32], defined: 0, truth: 0, present: 0 };
            self.gather(m, i, inst, active, &mut g);
            self.exchange(m, i, inst, active, &g);
            return Ok(Next::Advance);
        }
        // The others wait in fragments of their own: they all go on now.
        let module = m.module;
        let mut group = vec![(i, inst, active)];
        for (j, g) in self.fragments.iter().enumerate() {
            if j != i && matches!(g.wait, Wait::Members(x) if x == members) {
                let other = &module.functions[g.function as usize].code[g.pc as usize];
                let bits = other.guard.map_or(u32::MAX, |(p, negated)| {
                    let bits = self.pred(g, p);
                    if negated { !bits } else { bits }
                });
                group.push((j, other, g.mask & bits));
            }
        }
        for &(_, other, there) in &group {
            if std::mem::discriminant(&other.op) != std::mem::discriminant(&inst.op) {
                let lane = there.trailing_zeros().min(31);
                let thread = m.thread(self.index, active.trailing_zeros().min(31), b.ctaid);
                let what = format!(
                    "Barrier error detected. Divergent thread(s) in warp: {thread} executes another instruction of the same members at line {}",
                    inst.line
                );
                return Err(Box::new(self.fault(m, b, other, lane, Fault::InvalidMask, what)));
            }
        }
        let mut g = Gathered { values: [0; 32], defined: 0, truth: 0, present: 0 };
        for &(j, other, there) in &group {
            self.gather(m, j, other, there, &mut g);
        }
        for &(j, other, there) in &group {
            self.exchange(m, j, other, there, &g);
            if j != i {
                self.fragments[j].wait = Wait::No;
                self.fragments[j].pc += 1;
            }
        }
        Ok(Next::Advance)
    }

    fn gather(&self, m: &Machine<'_>, i: usize, inst: &Inst, active: u32, to: &mut Gathered) {
        let f = &self.fragments[i];
        let (value, truth, _) = contributed(&inst.op);
        to.present |= active;
        if let Some(s) = value {
            let values = self.get(m, f, s);
            for lane in lanes(active) {
                to.values[lane as usize] = values[lane as usize];
            }
            to.defined |= self.defined(f, s) & active;
        }
        if let Some(p) = truth {
            to.truth |= self.pred_src(f, p) & active;
            to.defined |= self.pred_defined(f, p) & active;
        }
    }

    fn exchange(&mut self, m: &Machine<'_>, i: usize, inst: &Inst, active: u32, g: &Gathered) {
        let f = self.fragments[i];
        let all_defined = if g.defined & g.present == g.present { u32::MAX } else { 0 };
        match &inst.op {
            Op::Shfl { mode, d, p, b, c, .. } => {
                let (by, clamp) = (*self.get(m, &f, *b), *self.get(m, &f, *c));
                let (mut out, mut inside, mut defined) = ([0; 32], 0, 0);
                for lane in lanes(active) {
                    let l = lane as usize;
                    let (source, valid) = shuffle_source(*mode, lane, by[l] as u32, clamp[l] as u32);
                    out[l] = low(g.values[source as usize], 32);
                    inside |= u32::from(valid) << lane;
                    // The value of a lane that is not there is not defined.
                    defined |= ((g.present & g.defined) >> source & 1) << lane;
                }
                self.set(&f, *d, active, defined, &out);
                if let Some(p) = p {
                    self.set_pred(&f, *p, active, active, inside);
                }
            }
            Op::Vote { mode, d, .. } => {
                let truth = match mode {
                    Vote::All => g.truth == g.present,
                    Vote::Any => g.truth != 0,
                    Vote::Uni => g.truth == 0 || g.truth == g.present,
                };
                self.set_pred(&f, *d, active, all_defined, if truth { u32::MAX } else { 0 });
            }
            Op::Ballot { d, .. } => self.set(&f, *d, active, all_defined, &[u64::from(g.truth); 32]),
            Op::Match { all, d, p, bits, .. } => {
                let mut out = [0; 32];
                let same = |lane: u32| {
                    let x = low(g.values[lane as usize], *bits);
                    lanes(g.present)
                        .filter(|&l| low(g.values[l as usize], *bits) == x)
                        .fold(0_u32, |m, l| m | 1 << l)
                };
                let mut every = 0;
                for lane in lanes(active) {
                    let mask = same(lane);
                    let equal = mask == g.present;
                    every |= u32::from(equal) << lane;
                    out[lane as usize] = u64::from(if *all && !equal { 0 } else { mask });
                }
                self.set(&f, *d, active, all_defined, &out);
                if let Some(p) = p {
                    self.set_pred(&f, *p, active, all_defined, every);
                }
            }
            Op::Redux { op, ty, abs, nan, d, .. } => {
                let v = reduce(*op, *ty, *abs, *nan, lanes(g.present).map(|l| low(g.values[l as usize], 32)));
                self.set(&f, *d, active, all_defined, &[v; 32]);
            }
            Op::Elect { d, p, .. } => {
                let leader = g.present.trailing_zeros();
                if let Some(d) = d {
                    self.set(&f, *d, active, active, &[u64::from(leader); 32]);
                }
                self.set_pred(&f, *p, active, active, 1 << leader.min(31));
            }
            Op::WarpSync { .. } => self.synchronize(g.present),
            // An instruction that did nothing here would be a wrong result that goes unnoticed.
            elsewhere => unreachable!("{elsewhere:?} is executed elsewhere"),
        }
    }
}

/// The lane that a shuffle reads, and whether it is in the segment (CUDA's and the ISA's definition).
fn shuffle_source(mode: Shuffle, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let b = b & 0x1F;
    let (clamp, segment) = (c & 0x1F, (c >> 8) & 0x1F);
    let max_lane = (lane & segment) | (clamp & !segment);
    let min_lane = lane & segment;
    let (source, valid) = match mode {
        Shuffle::Up => {
            let j = lane as i32 - b as i32;
            (j as u32, j >= max_lane as i32)
        }
        Shuffle::Down => (lane + b, lane + b <= max_lane),
        Shuffle::Bfly => (lane ^ b, (lane ^ b) <= max_lane),
        Shuffle::Idx => {
            let j = min_lane | (b & !segment & 0x1F);
            (j, j <= max_lane)
        }
    };
    if valid { (source & 31, true) } else { (lane, false) }
}

fn reduce(op: Redux, ty: Type, abs: bool, nan: bool, values: impl Iterator<Item = u64>) -> u64 {
    let mode = FloatMode {
        ty: FloatType::F32,
        lanes: 1,
        round: Round::Nearest,
        ftz: false,
        sat: false,
        relu: false,
        nan,
        abs,
        xorsign: false,
    };
    let less = |a: u64, b: u64| if ty.is_signed() { signed(a, 32) < signed(b, 32) } else { a < b };
    let step = |x: u64, y: u64| match op {
        Redux::Add => low(x.wrapping_add(y), 32),
        Redux::Min if ty == Type::F32 => float2(Float2::Min, mode, x, y),
        Redux::Max if ty == Type::F32 => float2(Float2::Max, mode, x, y),
        Redux::Min => {
            if less(y, x) {
                y
            } else {
                x
            }
        }
        Redux::Max => {
            if less(x, y) {
                y
            } else {
                x
            }
        }
        Redux::And => x & y,
        Redux::Or => x | y,
        Redux::Xor => x ^ y,
    };
    values.reduce(step).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_by_cuda_s_definition() {
        // __shfl_up_sync(.., 1): c = 0; __shfl_down_sync and xor and idx: c = 31. Width 8: segment mask 24.
        assert_eq!(shuffle_source(Shuffle::Up, 0, 1, 0), (0, false));
        assert_eq!(shuffle_source(Shuffle::Up, 5, 2, 0), (3, true));
        assert_eq!(shuffle_source(Shuffle::Down, 30, 2, 31), (30, false));
        assert_eq!(shuffle_source(Shuffle::Down, 3, 16, 31), (19, true));
        assert_eq!(shuffle_source(Shuffle::Bfly, 5, 16, 31), (21, true));
        assert_eq!(shuffle_source(Shuffle::Idx, 9, 3, 31), (3, true));
        assert_eq!(shuffle_source(Shuffle::Idx, 9, 3, 0x181F), (11, true));
        assert_eq!(shuffle_source(Shuffle::Down, 7, 1, 0x1807), (7, false));
        assert_eq!(shuffle_source(Shuffle::Up, 8, 1, 0x1800), (8, false));
    }

    #[test]
    fn reductions() {
        assert_eq!(reduce(Redux::Min, Type::S32, false, false, [5, 0xFFFF_FFFF, 3].into_iter()), 0xFFFF_FFFF);
        assert_eq!(reduce(Redux::Min, Type::U32, false, false, [5, 0xFFFF_FFFF, 3].into_iter()), 3);
        assert_eq!(reduce(Redux::Add, Type::U32, false, false, [5, 0xFFFF_FFFF].into_iter()), 4);
    }
}
