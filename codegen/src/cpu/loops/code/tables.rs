//! Loads from tables of a few elements: they are in registers, and each lane picks its own from there.
//!
//! Processors gather one lane after the other; they permute the lanes of two registers in one step. A larger table is several such steps, of which bits of the index select.

use hlo::ElementType;

use super::{Code, Known, Spread};
use crate::cpu::llvm::{Emit, IntPredicate, Prim, Result, Value};
use crate::cpu::loops::access::{is_near, storage, zero};
use crate::cpu::loops::index::Affine;
use crate::cpu::loops::tape::GuardId;
use crate::cpu::scalar::Val;

/// The most elements of a table.
const MOST: i64 = 256;

/// Lanes of a register of 32 bits each, which is what is permuted.
const LANES: u32 = 16;

impl<'ctx> Code<'_, '_, 'ctx, '_> {
    /// Elements of an array that nothing writes, if it is a table and the lanes' places are not known before.
    pub(super) fn look_up(
        &mut self,
        (ty, elements): (ElementType, i64),
        pointer: Value<'ctx>,
        at: &Affine,
        guard: GuardId,
    ) -> Result<Option<Known<'ctx>>> {
        let (prim, parts) = storage(ty);
        let fits = (1..=MOST).contains(&elements) && parts == 1;
        let suits = Table::suits(&self.e.with_lanes(self.lanes), prim);
        if !fits || !suits || self.tape.space.is_of_variables(at) {
            return Ok(None);
        }
        let number = self.number(at)?;
        let is_vector = match number.lanes {
            Spread::Linear(_) => false,
            Spread::Steps(_) => self.steps_of(number.lanes).is_none_or(|steps| !is_near(&steps, self.lanes)),
            Spread::Vector(_) => true,
        };
        if !is_vector {
            return Ok(None);
        }
        let index = self.vector_number(&number)?;
        let mask = self.mask(guard)?;
        let table = self.at(0, |c| Table::new(&c.e.with_lanes(LANES), prim, pointer, elements as u32))?;
        let level = mask.map_or(number.level, |m| m.level.max(number.level));
        let lanes = self.at(level, |c| {
            let e = c.e.with_lanes(LANES);
            let index = e.resize(index, Prim::I32, false)?;
            let mut value = table.pick(&e, index)?;
            if let Some(mask) = mask {
                value = e.select(e.splat(mask.value)?, value, zero(&e, prim))?;
            }
            Val::of_storage(&e, ty, &[value])
        })?;
        Ok(Some(Known { lanes, uniform: false, splat: None, level }))
    }
}

/// Elements in registers of 32 bits a lane.
pub(in crate::cpu::loops) struct Table<'ctx> {
    prim: Prim,
    registers: Vec<Value<'ctx>>,
}

impl<'ctx> Table<'ctx> {
    /// Whether there are tables of such elements where code is emitted.
    pub(in crate::cpu::loops) fn suits(e: &Emit<'_, '_>, prim: Prim) -> bool {
        e.avx512 && e.lanes == LANES && (prim.bits() == 32 || prim.bits() < 32 && !prim.is_float())
    }

    /// Of so many elements from memory.
    pub(in crate::cpu::loops) fn new(
        e: &Emit<'_, 'ctx>,
        prim: Prim,
        pointer: Value<'ctx>,
        elements: u32,
    ) -> Result<Self> {
        let mut registers = Vec::new();
        for first in (0..elements).step_by(LANES as usize) {
            let (bytes, count) = (prim.bytes(), LANES.min(elements - first));
            let at = e.scalar().address_at(pointer, u64::from(first) * bytes)?;
            let part = if count == LANES {
                e.load(prim, at, bytes as u32)?
            } else {
                let there: Vec<u64> = (0..LANES).map(|l| u64::from(l < count)).collect();
                e.load_masked(at, bytes as u32, e.int_lanes(Prim::I1, &there), zero(e, prim))?
            };
            let wide = prim.is_float() || prim.bits() == 32;
            registers.push(if wide { part } else { e.zext(part, Prim::I32)? });
        }
        Ok(Self { prim, registers })
    }

    /// For each lane the element of its index, which has 32 bits.
    pub(in crate::cpu::loops) fn pick(&self, e: &Emit<'_, 'ctx>, index: Value<'ctx>) -> Result<Value<'ctx>> {
        let float = self.prim.is_float();
        let one = if float { "llvm.x86.avx512.permvar.sf.512" } else { "llvm.x86.avx512.permvar.si.512" };
        let two =
            if float { "llvm.x86.avx512.vpermi2var.ps.512" } else { "llvm.x86.avx512.vpermi2var.d.512" };
        let mut all = Vec::new();
        for pair in self.registers.chunks(2) {
            all.push(match *pair {
                [a, b] => e.intrinsic(two, &[], &[a, index, b])?,
                [a, ..] => e.intrinsic(one, &[], &[a, index])?,
                [] => continue,
            });
        }
        let mut bit = 2 * LANES;
        while all.len() > 1 {
            let bits = e.and(index, e.int(Prim::I32, u64::from(bit)))?;
            let set = e.icmp(IntPredicate::NE, bits, e.int(Prim::I32, 0))?;
            let mut half = Vec::new();
            for pair in all.chunks(2) {
                half.push(match *pair {
                    [a, b] => e.select(set, b, a)?,
                    [a, ..] => a,
                    [] => continue,
                });
            }
            all = half;
            bit *= 2;
        }
        if !float && self.prim.bits() < 32 { e.trunc(all[0], self.prim) } else { Ok(all[0]) }
    }
}
