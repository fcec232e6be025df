//! Lookup tables in registers: loads from small arrays, from which each lane selects by a permutation.
//!
//! Processors gather one lane after the other; they permute the lanes of two registers in one instruction. A
//! larger table takes several of them, selected by bits of the index.

use hlo::ElementType;

use super::{Addresses, Code, Known, Spread};
use crate::loops::access::{is_near, storage, zero};
use hlo_llvm::scalar::Val;
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Value};
use hlo_opt::expr::GuardId;
use hlo_opt::expr::index::Affine;

/// The maximum number of registers of a table.
const MAX_TABLE_REGISTERS: i64 = 16;

/// The maximum number of registers for elements that are near each other: what one permutation takes.
const MAX_NEAR_REGISTERS: i64 = 2;

/// Lanes of a register of 64- or 32-bit elements, which are what is permuted.
const fn lanes_of(prim: Prim) -> u32 {
    if prim.bits() == 64 { 8 } else { 16 }
}

impl<'ctx> Code<'_, '_, 'ctx, '_> {
    /// Elements of a read-only array, if it is small enough for a table and the lanes' indices are not known
    /// at compile time.
    pub(super) fn table_lookup(
        &mut self,
        (ty, elements): (ElementType, i64),
        pointer: Value<'ctx>,
        at: &Affine,
        guard: GuardId,
    ) -> Result<Option<Known<'ctx>>> {
        let (prim, parts) = storage(ty);
        let fits = (1..=MAX_TABLE_REGISTERS * i64::from(lanes_of(prim))).contains(&elements) && parts == 1;
        let suits = Table::suits(&self.e.with_lanes(self.lanes), prim);
        if !fits || !suits || self.expr.space.is_of_variables(at) {
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
        let table = self.at(0, |c| Table::new(&c.e.with_lanes(c.lanes), prim, pointer, elements as u32))?;
        let level = mask.map_or(number.level, |m| m.level.max(number.level));
        let lanes = self.at(level, |c| {
            let e = c.e.with_lanes(c.lanes);
            let index = e.resize(index, Prim::I32, false)?;
            let mut value = table.pick(&e, index)?;
            if let Some(mask) = mask {
                value = e.select(e.splat(mask.value)?, value, zero(&e, prim))?;
            }
            Val::of_storage(&e, ty, &[value])
        })?;
        Ok(Some(Known { lanes, uniform: false, splat: None, level }))
    }

    /// A masked gather as a table lookup: where lanes read at constant byte offsets from the first one, the
    /// registers that span these offsets are loaded and permuted. Masked-off lanes may be out of bounds, so
    /// the loads are shifted until they are in bounds. `None`: the offsets span more registers than a table
    /// has, or the size of the array is unknown.
    pub(super) fn table_lookup_near(
        &self,
        ty: ElementType,
        addresses: &Addresses<'ctx>,
        steps: &[i64],
        mask: Value<'ctx>,
    ) -> Result<Option<Val<'ctx>>> {
        let ((prim, parts), bytes) = (storage(ty), ty.storage_bytes() as i64);
        let (e, w) = (self.e.with_lanes(self.lanes), i64::from(self.lanes));
        let (Some(&low), Some(&high)) = (steps.iter().min(), steps.iter().max()) else { return Ok(None) };
        let registers = (high - low) / bytes / w + 1;
        let elements = registers * w;
        let suits = parts == 1 && Table::suits(&e, prim);
        if !suits || registers > MAX_NEAR_REGISTERS || elements > addresses.elements {
            return Ok(None);
        }
        let scalar = e.scalar();
        let clamp = |x, to, when| scalar.select(scalar.icmp(when, x, to)?, to, x);
        let wanted =
            scalar.distance(scalar.address(addresses.address, scalar.i64(low))?, addresses.origin)?;
        let first = clamp(wanted, scalar.i64((addresses.elements - elements) * bytes), IntPredicate::SGT)?;
        let first = clamp(first, scalar.i64(0), IntPredicate::SLT)?;
        let table = Table::new(&e, prim, scalar.address(addresses.origin, first)?, elements as u32)?;
        // The element size is a power of two; masked-off lanes may be anywhere.
        let moved = scalar.sub(wanted, first)?;
        let moved = scalar.ashr(moved, scalar.i64(i64::from(bytes.ilog2())))?;
        let own: Vec<u64> = steps.iter().map(|step| ((step - low) / bytes).cast_unsigned()).collect();
        let index = e.add(e.splat(scalar.trunc(moved, Prim::I32)?)?, e.int_lanes(Prim::I32, &own))?;
        let value = e.select(mask, table.pick(&e, index)?, zero(&e, prim))?;
        Val::of_storage(&e, ty, &[value]).map(Some)
    }
}

/// Elements in registers.
pub(in crate::loops) struct Table<'ctx> {
    prim: Prim,
    registers: Vec<Value<'ctx>>,
}

impl<'ctx> Table<'ctx> {
    /// Whether there are tables of such elements on the current target.
    pub(in crate::loops) fn suits(e: &Emit<'_, '_>, prim: Prim) -> bool {
        e.avx512 && e.lanes == lanes_of(prim) && (prim.bits() >= 32 || !prim.is_float())
    }

    /// A table of that many elements from memory.
    pub(in crate::loops) fn new(
        e: &Emit<'_, 'ctx>,
        prim: Prim,
        pointer: Value<'ctx>,
        elements: u32,
    ) -> Result<Self> {
        let mut registers = Vec::new();
        for first in (0..elements).step_by(e.lanes as usize) {
            let (bytes, count) = (prim.bytes(), e.lanes.min(elements - first));
            let at = e.scalar().address_at(pointer, u64::from(first) * bytes)?;
            let part = if count == e.lanes {
                e.load(prim, at, bytes as u32)?
            } else {
                let there: Vec<u64> = (0..e.lanes).map(|l| u64::from(l < count)).collect();
                e.load_masked(at, bytes as u32, e.int_lanes(Prim::I1, &there), zero(e, prim))?
            };
            let wide = prim.is_float() || prim.bits() >= 32;
            registers.push(if wide { part } else { e.zext(part, Prim::I32)? });
        }
        Ok(Self { prim, registers })
    }

    /// Looks up an element per lane, by 32-bit indices.
    pub(in crate::loops) fn pick(&self, e: &Emit<'_, 'ctx>, index: Value<'ctx>) -> Result<Value<'ctx>> {
        let (float, long) = (self.prim.is_float(), self.prim.bits() == 64);
        let (one, two) = match (long, float) {
            (false, true) => ("permvar.sf", "vpermi2var.ps"),
            (false, false) => ("permvar.si", "vpermi2var.d"),
            (true, true) => ("permvar.df", "vpermi2var.pd"),
            (true, false) => ("permvar.di", "vpermi2var.q"),
        };
        let [one, two] = [one, two].map(|name| format!("llvm.x86.avx512.{name}.512"));
        let whole = if long { Prim::I64 } else { Prim::I32 };
        let index = e.resize(index, whole, false)?;
        let mut all = Vec::new();
        for pair in self.registers.chunks(2) {
            all.push(match *pair {
                [a, b] => e.intrinsic(&two, &[], &[a, index, b])?,
                [a, ..] => e.intrinsic(&one, &[], &[a, index])?,
                [] => continue,
            });
        }
        let mut bit = 2 * e.lanes;
        while all.len() > 1 {
            let bits = e.and(index, e.int(whole, u64::from(bit)))?;
            let set = e.icmp(IntPredicate::NE, bits, e.int(whole, 0))?;
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
