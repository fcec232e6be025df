//! Column reductions: the innermost variable is kept, so each lane is a reduction of its own.
//!
//! Accumulators of a few columns stay in registers, those of many are a block of memory that stays in the L1
//! cache. **Invariant:** what may not be reassociated is combined row by row.

use hlo::ElementType;
use hlo_library_base::sizes;
use hlo_llvm::scalar::Val;
use hlo_llvm::{IntPredicate, Prim, Result, Target, Value};
use hlo_opt::expr::Expr;
use hlo_opt::expr::index::Affine;

use super::code::Code;
use super::lanes::{self, over_lanes};
use super::nest::loops;
use super::reduce::{BLOCK_VAR, END_VAR, Reduction};
use super::region::{Carried, narrowed, registers, values, widened};

/// Columns of a unit of whole rows.
pub(super) const UNIT_COLUMNS: i64 = 4096;

/// Bytes of accumulators of a stripe, the columns that a thread reduces at a time. Stripes are narrower
/// where there would be fewer of them than threads.
const STRIPE_BYTES: i64 = 4096;

/// The same for a unit: whole vectors of any processor, and cache lines.
const UNIT_BYTES: i64 = 512;

/// With at least this many stripes, rows from memory are split by columns rather than into chunks.
const MIN_STRIPES: i64 = 4;

/// The minimum number of elements that is worth several units.
const MIN_ELEMENTS_FOR_UNITS: i64 = 1 << 16;

/// Rows of a stripe from memory that are read at a time: each is a stream for the hardware prefetcher, as it
/// is in a page of its own.
const STRIPE_ROWS: i64 = 8;

/// Rows from memory up to this size are read one after the other: several at once would be streams within a
/// page, which no prefetcher follows.
const MAX_SHORT_ROW_BYTES: i64 = 8 << 10;

/// The maximum number of accumulators held in registers, for all rows that are processed at a time.
const MAX_ACCUMULATOR_REGISTERS: usize = 8;

impl<'m> Reduction<'m> {
    /// The number of units of that many columns.
    pub(super) fn blocks_of_columns(&self, columns: i64) -> i64 {
        (columns + self.unit_columns - 1) / self.unit_columns
    }

    /// Columns per unit and units per stripe, where threads split the columns and not the rows: if the
    /// reduction is ordered, and for long rows in memory. There, parts of rows are read at the bandwidth of
    /// whole rows, and no partial results are stored.
    pub(super) fn stripes(&self, expr: &Expr<'_>) -> Option<(i64, i64)> {
        let &(_, columns) = self.vars.last().filter(|_| !self.over_rows())?;
        let bytes = self.accumulator_bytes();
        let row = columns.saturating_mul(bytes);
        let worth = if self.folds.literal {
            row >= 2 * UNIT_BYTES && self.total() >= sizes::from(MIN_ELEMENTS_FOR_UNITS)
        } else {
            row >= MIN_STRIPES * STRIPE_BYTES && self.is_simple(expr) && self.is_memory_bound(expr)
        };
        (worth && self.kept_vars().len() == 1).then_some((UNIT_BYTES / bytes, STRIPE_BYTES / UNIT_BYTES))
    }

    /// The size of the widest accumulator, in bytes.
    fn accumulator_bytes(&self) -> i64 {
        i64::from(self.folds.widest() / 8).max(1)
    }

    /// Whether memory takes longer than the arithmetic.
    fn is_simple(&self, expr: &Expr<'_>) -> bool {
        self.folds.copies(expr) >= 4
    }

    /// Whether rows of that many columns come from memory and are short.
    fn has_short_rows(&self, expr: &Expr<'_>, columns: i64) -> bool {
        columns.saturating_mul(self.accumulator_bytes()) <= MAX_SHORT_ROW_BYTES && self.is_memory_bound(expr)
    }

    /// Emits a unit of a column reduction.
    pub(super) fn columns<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        target: &Target,
    ) -> Result<()> {
        let Some(&column) = self.vars.last() else { return Ok(()) };
        let start = self.folds.starts(c)?;
        let pieces = column.1.unsigned_abs().div_ceil(u64::from(c.lanes)) as usize;
        let size = pieces.saturating_mul(registers(&start).len());
        // Only targets with the widest vectors can mask lanes.
        let whole = column.1 % i64::from(c.lanes) == 0 || target.vector_bytes() >= 64;
        if !whole || size > MAX_ACCUMULATOR_REGISTERS {
            return self.columns_in_memory(c, target);
        }
        let vars = self.reduced_vars();
        let apart = !self.folds.literal && !vars.is_empty();
        let worth = self.folds.copies(c.expr).unsigned_abs() as usize;
        let copies = if apart { (MAX_ACCUMULATOR_REGISTERS / size).min(worth) } else { 1 };
        let few = RegisterColumns { column, pieces, copies, start };
        let total = self.fold_in_registers(c, &few, &vars, few.initial())?;
        let kinds = self.folds.carried();
        for piece in 0..pieces {
            few.in_piece(c, piece, |c| {
                let mut all = values(&kinds, few.of(&total, 0, piece));
                for copy in 1..copies {
                    let more = values(&kinds, few.of(&total, copy, piece));
                    all = self.folds.joined(c, c.lanes, &all, &more)?;
                }
                if self.chunks.is_some() { self.store_partial(c, &all) } else { self.finish(c, &all) }
            })?;
        }
        Ok(())
    }

    /// Folds rows into accumulators in registers, those of each copy after those of the previous one.
    fn fold_in_registers<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        few: &RegisterColumns<'ctx>,
        vars: &[(u32, i64)],
        carried: Vec<Value<'ctx>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let Some((&first, rest)) = vars.split_first() else { return self.fold_row(c, few, 0, &carried) };
        let (low, high, count) = self.range(c, first)?;
        if !rest.is_empty() {
            return c.fold_var(first.0, low, high, 1, false, 1, &carried, |c, carried| {
                self.fold_in_registers(c, few, rest, carried.to_vec())
            });
        }
        let e = c.e;
        let copies = few.copies as i64;
        let whole = match count {
            Some(n) => e.add(low, e.i64(n - n % copies))?,
            None => e.add(low, e.and(e.sub(high, low)?, e.i64(-copies))?)?,
        };
        let carried = c.fold_var(first.0, low, whole, copies, false, 1, &carried, |c, carried| {
            let row = c.var(first.0)?;
            let mut next = Vec::new();
            for copy in 0..few.copies {
                c.enter()?;
                // At this level also for the first copy: values that depend on the variable are forgotten
                // with it.
                let row = if copy == 0 { row } else { e.add(row, e.i64(copy as i64))? };
                c.set_var(first.0, row, false, 1);
                next.extend(self.fold_row(c, few, copy, carried)?);
                c.leave();
            }
            Ok(next)
        })?;
        if count.is_some_and(|n| n % copies == 0) {
            return Ok(carried);
        }
        // The remaining rows, in the first copy.
        let of_copy = carried.len() / few.copies;
        let mut all = c.fold_var(first.0, whole, high, 1, false, 1, &carried[..of_copy], |c, carried| {
            self.fold_row(c, few, 0, carried)
        })?;
        all.extend_from_slice(&carried[of_copy..]);
        Ok(all)
    }

    /// Combines a row into the accumulators of a copy.
    fn fold_row<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        few: &RegisterColumns<'ctx>,
        copy: usize,
        carried: &[Value<'ctx>],
    ) -> Result<Vec<Value<'ctx>>> {
        let kinds = self.folds.carried();
        let mut next = Vec::new();
        for piece in 0..few.pieces {
            let mine = values(&kinds, few.of(carried, copy, piece));
            next.extend(few.in_piece(c, piece, |c| Ok(registers(&self.folds.step(c, &few.start, &mine)?)))?);
        }
        Ok(next)
    }

    /// Accumulators are in memory, and are held in registers for a few rows at a time.
    fn columns_in_memory<'c, 'a, 'ctx>(&self, c: &mut Code<'c, 'a, 'ctx, 'm>, target: &Target) -> Result<()> {
        let e = c.e;
        let kinds = self.folds.carried();
        let Some(&(column, n)) = self.vars.last() else { return Ok(()) };
        let w = i64::from(c.lanes);
        let (unit, most) = (self.unit_columns, self.unit_columns * self.stripe_units);
        let (low, high, count) = if n <= unit {
            (e.i64(0), e.i64(n), Some(n))
        } else {
            let low = e.mul(c.var(BLOCK_VAR)?, e.i64(unit))?;
            let high = e.mul(c.var(END_VAR)?, e.i64(unit))?;
            let high = e.select(e.icmp(IntPredicate::SLT, high, e.i64(n))?, high, e.i64(n))?;
            (low, high, (n % unit == 0).then_some(unit))
        };
        // A slot for each register of an accumulator and column.
        let elements = u32::try_from(n.min(most) + w).unwrap_or(0);
        let mut slots = Vec::new();
        for &Carried { ty, .. } in &kinds {
            let (prim, parts) = super::access::storage(ty);
            for _ in 0..parts {
                let start: Value<'ctx> = e.stack(prim, elements)?.into();
                let offset = e.mul(low, e.i64(-(prim.bytes() as i64)))?;
                slots.push((ty, prim, e.address(start, offset)?));
            }
        }
        let accumulators = MemoryAccumulators { slots, column, known_at: c.level() };
        over_lanes(c, target, column, low, high, count, w, &|c| {
            let start = self.folds.starts(c)?;
            accumulators.store(c, &start)
        })?;
        let vars = self.reduced_vars();
        let (&last, outer) = vars.split_last().unwrap_or((&(BLOCK_VAR + 1, 1), &[]));
        let copies = if self.has_short_rows(c.expr, n) {
            1
        } else if self.stripe_units > 1 && self.is_memory_bound(c.expr) && self.is_simple(c.expr) {
            STRIPE_ROWS
        } else {
            self.folds.copies(c.expr)
        };
        let rows = |c: &mut Code<'c, 'a, 'ctx, 'm>, first, end, copies| {
            c.for_var(last.0, first, end, copies, false, 1, |c| {
                let row = c.var(last.0)?;
                // Values that depend on it are known for one copy at a time.
                c.hide_var(last.0);
                over_lanes(c, target, column, low, high, count, w, &|c| {
                    let mut all = accumulators.load(c, &kinds)?;
                    let start = self.folds.starts(c)?;
                    for copy in 0..copies {
                        c.enter()?;
                        let r = if copy == 0 { row } else { e.add(row, e.i64(copy))? };
                        c.set_var(last.0, r, false, 1);
                        all = self.folds.step(c, &start, &all)?;
                        c.leave();
                    }
                    accumulators.store(c, &all)
                })
            })
        };
        let body = |c: &mut Code<'c, 'a, 'ctx, 'm>| -> Result<()> {
            let (first, end, length) = self.range(c, last)?;
            if copies == 1 || length.is_some_and(|n| n % copies == 0) {
                return rows(c, first, end, copies);
            }
            let whole = e.add(first, e.and(e.sub(end, first)?, e.i64(-copies))?)?;
            rows(c, first, whole, copies)?;
            rows(c, whole, end, 1)
        };
        if let Some((cut, ..)) = self.chunks.filter(|k| outer.iter().any(|v| v.0 == k.0)) {
            // The variable that is split is not the last one.
            let at = outer.iter().position(|v| v.0 == cut).unwrap_or(0);
            let (before, after) = (&outer[..at], &outer[at + 1..]);
            let var = outer[at];
            loops(c, before, &|c| {
                let (first, end, _) = self.range(c, var)?;
                c.for_var(var.0, first, end, 1, false, 1, |c| loops(c, after, &body))
            })?;
        } else {
            loops(c, outer, &body)?;
        }
        over_lanes(c, target, column, low, high, count, w, &|c| {
            let all = accumulators.load(c, &kinds)?;
            if self.chunks.is_some() { self.store_partial(c, &all) } else { self.finish(c, &all) }
        })
    }
}

/// Accumulators of a few columns in registers.
struct RegisterColumns<'ctx> {
    /// The variable of columns, and their number.
    column: (u32, i64),
    /// Registers full of columns.
    pieces: usize,
    /// Multi-accumulator: rows at a time, with accumulators of their own; a power of two.
    copies: usize,
    /// The values that accumulators start from.
    start: Vec<Val<'ctx>>,
}

impl<'ctx> RegisterColumns<'ctx> {
    fn initial(&self) -> Vec<Value<'ctx>> {
        registers(&self.start).repeat(self.pieces * self.copies)
    }

    /// The registers of a piece of a copy; of all copies or of the first ones.
    fn of<'v>(&self, all: &'v [Value<'ctx>], copy: usize, piece: usize) -> &'v [Value<'ctx>] {
        let width = registers(&self.start).len();
        &all[(copy * self.pieces + piece) * width..][..width]
    }

    /// Emits code at the columns of a piece.
    fn in_piece<'c, 'a, 'm, T>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        piece: usize,
        body: impl FnOnce(&mut Code<'c, 'a, 'ctx, 'm>) -> Result<T>,
    ) -> Result<T> {
        let (var, n) = self.column;
        let w = i64::from(c.lanes);
        let first = piece as i64 * w;
        c.enter()?;
        let low = c.e.i64(first);
        c.set_var(var, low, w > 1, w);
        if first + w > n {
            c.active = Some(lanes::enabled(c, low, c.e.i64(n), Some(n))?);
        }
        let result = body(c)?;
        c.active = None;
        c.leave();
        Ok(result)
    }
}

/// Accumulators of a block of columns in memory.
struct MemoryAccumulators<'ctx> {
    /// For each register of an accumulator its types, and the address for column 0.
    slots: Vec<(ElementType, Prim, Value<'ctx>)>,
    column: u32,
    known_at: usize,
}

impl<'ctx> MemoryAccumulators<'ctx> {
    fn address(&self, c: &mut Code<'_, '_, 'ctx, '_>, slot: Value<'ctx>, prim: Prim) -> Result<Value<'ctx>> {
        let at = c.expr.space.atom_of(self.column).map(Affine::atom).unwrap_or_default();
        Ok(c.addresses_from(slot, self.known_at, &at, prim.bytes() as i64)?.address)
    }

    fn load(&self, c: &mut Code<'_, '_, 'ctx, '_>, kinds: &[Carried]) -> Result<Vec<Val<'ctx>>> {
        let mut all = Vec::new();
        for &(ty, prim, slot) in &self.slots {
            let address = self.address(c, slot, prim)?;
            let e = c.e.with_lanes(c.lanes);
            all.push(narrowed(&e, ty, e.load(prim, address, prim.bytes() as u32)?)?);
        }
        Ok(values(kinds, &all))
    }

    fn store(&self, c: &mut Code<'_, '_, 'ctx, '_>, all: &[Val<'ctx>]) -> Result<()> {
        for (register, &(_, prim, slot)) in registers(all).into_iter().zip(&self.slots) {
            let address = self.address(c, slot, prim)?;
            let e = c.e.with_lanes(c.lanes);
            e.store(widened(&e, register)?, address, prim.bytes() as u32)?;
        }
        Ok(())
    }
}
