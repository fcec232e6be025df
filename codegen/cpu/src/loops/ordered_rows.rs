//! Ordered row reductions, vectorized across rows: where the order of elements must be kept, each lane folds
//! a row of its own.
//!
//! Elements are computed along rows in square blocks (as many columns as lanes, of as many rows); each block
//! is transposed in registers and its columns are combined one after the other. So each row is combined in
//! the order of its elements, whatever the vector length.

use super::code::Code;
use super::lanes;
use super::reduce::Reduction;
use super::region::{Carried, narrowed, registers, values, widened};
use super::sweep::EmitFold as _;
use super::tile::transposed;
use hlo_llvm::scalar::Val;
use hlo_llvm::{IntPredicate, Prim, Result, Target, Value};

/// Rows of a unit.
const UNIT_ROWS: i64 = 16;

/// The variable of the row of a block where elements are computed.
const ROW_VAR: u32 = 66;

/// The number of units of that many rows.
pub(super) fn blocks_of_rows(rows: i64) -> i64 {
    (rows + UNIT_ROWS - 1) / UNIT_ROWS
}

/// The lanes of accumulators in memory: the type and address of each register.
type Lanes<'ctx> = Vec<(Prim, Value<'ctx>)>;

impl<'m> Reduction<'m> {
    /// Whether it is an ordered row reduction.
    pub(super) fn is_ordered_rows(&self) -> bool {
        let rows = self.kept_vars().last().map_or(1, |v| v.1);
        let length = self.vars.last().map_or(1, |v| v.1);
        self.folds.literal && self.over_rows() && rows >= UNIT_ROWS && length >= UNIT_ROWS
    }

    /// The number of rows in lanes: no more than a unit has rows; 1 where the remainder of a row would need
    /// masked lanes and the target has none.
    pub(super) fn ordered_row_lanes(&self, lanes: u32, target: &Target) -> u32 {
        let lanes = lanes.min(UNIT_ROWS as u32);
        let length = self.vars.last().map_or(1, |v| v.1);
        if target.vector_bytes() < 64 && length % i64::from(lanes) != 0 { 1 } else { lanes }
    }

    /// Emits a unit: consecutive rows from a multiple of that number on.
    pub(super) fn emit_ordered_rows<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        target: &Target,
        block: u32,
    ) -> Result<()> {
        let e = c.e;
        let Some(&row) = self.kept_vars().last() else { return Ok(()) };
        let lanes = i64::from(c.lanes);
        let first = e.mul(c.var(block)?, e.i64(UNIT_ROWS))?;
        let end = e.add(first, e.i64(UNIT_ROWS))?;
        let end = e.select(e.icmp(IntPredicate::SLT, end, e.i64(row.1))?, end, e.i64(row.1))?;
        if lanes == 1 {
            return c.for_var(row.0, first, end, 1, false, 1, |c| self.row(c, target));
        }
        let vars = self.reduced_vars();
        let kinds = self.folds.carried();
        let mut slots = Lanes::new();
        for &Carried { ty, .. } in &kinds {
            let (prim, parts) = super::access::storage(ty);
            for _ in 0..parts {
                slots.push((prim, e.stack(prim, UNIT_ROWS as u32)?.into()));
            }
        }
        for group in 0..UNIT_ROWS / lanes {
            let from = e.add(first, e.i64(group * lanes))?;
            let start = self.folds.starts(c)?;
            let square = Square { reduction: self, row, from, start: &start };
            let total = square.over(c, &vars, &registers(&start))?;
            for (x, &(prim, slot)) in total.into_iter().zip(&slots) {
                let wide = e.with_lanes(c.lanes);
                let at = e.address_at(slot, (group * lanes).unsigned_abs() * prim.bytes())?;
                wide.store(widened(&wide, x)?, at, prim.bytes() as u32)?;
            }
        }
        let lanes = std::mem::replace(&mut c.lanes, 1);
        c.for_var(row.0, first, end, 1, false, 1, |c| {
            let at = e.sub(c.var(row.0)?, first)?;
            let mut all = Vec::new();
            let mut parts = slots.iter();
            for &Carried { ty, .. } in &kinds {
                for &(prim, slot) in parts.by_ref().take(1 + usize::from(ty.is_complex())) {
                    let address = e.address(slot, e.mul(at, e.i64(prim.bytes() as i64))?)?;
                    all.push(narrowed(&e, ty, e.load(prim, address, prim.bytes() as u32)?)?);
                }
            }
            self.finish(c, &values(&kinds, &all))
        })?;
        c.lanes = lanes;
        Ok(())
    }
}

/// Square blocks of consecutive rows.
struct Square<'r, 'm, 'ctx> {
    reduction: &'r Reduction<'m>,
    row: (u32, i64),
    from: Value<'ctx>,
    start: &'r [Val<'ctx>],
}

impl<'m, 'ctx> Square<'_, 'm, 'ctx> {
    /// The accumulators, one row per lane, after all values of these variables.
    fn over<'c, 'a>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        vars: &[(u32, i64)],
        carried: &[Value<'ctx>],
    ) -> Result<Vec<Value<'ctx>>> {
        let e = c.e;
        let Some((&(var, n), rest)) = vars.split_first() else { return Ok(carried.to_vec()) };
        if !rest.is_empty() {
            return c.fold_var(var, e.i64(0), e.i64(n), 1, false, 1, carried, |c, carried| {
                self.over(c, rest, carried)
            });
        }
        let w = i64::from(c.lanes);
        let main = e.i64(n - n % w);
        let carried = c.fold_var(var, e.i64(0), main, w, true, w, carried, |c, carried| {
            self.columns(c, carried, w as usize)
        })?;
        if n % w == 0 {
            return Ok(carried);
        }
        c.mark()?;
        c.enter()?;
        c.set_var(var, main, true, w);
        c.active = Some(lanes::enabled(c, main, e.i64(n), Some(n))?);
        let ends = self.columns(c, &carried, (n % w) as usize)?;
        c.active = None;
        c.leave();
        c.mark()?;
        Ok(ends)
    }

    /// Combines that many columns of the current block.
    fn columns<'c, 'a>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        carried: &[Value<'ctx>],
        count: usize,
    ) -> Result<Vec<Value<'ctx>>> {
        let (e, lanes) = (c.e, c.lanes);
        let wide = e.with_lanes(lanes);
        let folds = &self.reduction.folds;
        let kinds = folds.carried();
        // The rows of all registers of elements, in memory; values that several folds read are stored once.
        let mut memory: Lanes<'ctx> = Vec::new();
        let mut found: Vec<Value<'ctx>> = Vec::new();
        let mut numbers: Vec<usize> = Vec::new();
        c.for_var(ROW_VAR, e.i64(0), e.i64(i64::from(lanes)), 1, false, 1, |c| {
            let r = c.var(ROW_VAR)?;
            let at = e.add(self.from, r)?;
            // Rows past the last one repeat it, and are dropped.
            let last = e.i64(self.row.1 - 1);
            let at = e.select(e.icmp(IntPredicate::SLT, at, last)?, at, last)?;
            c.set_var(self.row.0, at, false, 1);
            let mut all = Vec::new();
            let mut begin = 0;
            for f in &folds.all {
                let end = begin + f.types.len();
                all.extend(f.elements(c, &self.start[begin..end])?);
                begin = end;
            }
            for (x, kind) in all.iter_mut().zip(&kinds) {
                *x = x.settled_if(&wide, kind.moved)?;
            }
            for x in registers(&all) {
                if let Some(before) = found.iter().position(|&y| y == x) {
                    numbers.push(before);
                    continue;
                }
                numbers.push(found.len());
                found.push(x);
                let x = widened(&wide, x)?;
                let prim = e.prim_of(x);
                let slot = e.stack(prim, lanes * lanes)?.into();
                let bytes = e.mul(r, e.i64(i64::from(lanes) * prim.bytes() as i64))?;
                wide.store(x, e.address(slot, bytes)?, prim.bytes() as u32)?;
                memory.push((prim, slot));
            }
            Ok(())
        })?;
        let mut transposed_rows = Vec::new();
        for &(prim, slot) in &memory {
            let mut rows = Vec::new();
            for r in 0..u64::from(lanes) {
                let at = e.address_at(slot, r * u64::from(lanes) * prim.bytes())?;
                rows.push(wide.load(prim, at, prim.bytes() as u32)?);
            }
            transposed(&wide, &mut rows)?;
            transposed_rows.push(rows);
        }
        let squares: Vec<&Vec<Value<'ctx>>> = numbers.iter().map(|&n| &transposed_rows[n]).collect();
        let mut all = values(&kinds, carried);
        for column in 0..count {
            let mut elements = Vec::new();
            let mut parts = squares.iter().copied();
            for &Carried { ty, .. } in &kinds {
                for square in parts.by_ref().take(1 + usize::from(ty.is_complex())) {
                    elements.push(narrowed(&wide, ty, square[column])?);
                }
            }
            all = folds.joined(c, lanes, &all, &values(&kinds, &elements))?;
        }
        Ok(registers(&all))
    }
}
