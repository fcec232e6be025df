//! Short rows: a [`Chain`] over rows that would leave most of a register empty is vectorized across rows, one
//! row per lane.
//!
//! Elements are processed column by column; accumulators are one per row and never reduced across lanes.
//! Values kept of a row, and its results, are columns on the stack; results are interleaved into memory order
//! when all are computed. **Invariant:** rows are combined in the order of their elements, and nothing is
//! stored before all loads of the same rows.

use hlo::attrs::AttrKey;
use hlo::{InstrId, Module};

use super::access::{self, storage};
use super::code::{Code, Table};
use super::cost;
use super::nest::{self, Output, decode};
use super::region::{registers, values};
use super::rows::{Buffer, Chain};
use super::sweep::Folds;
use hlo_llvm::scalar::Val;
use hlo_llvm::{IntPredicate, Prim, Result, Value};
use hlo_opt::expr::index::Affine;
use hlo_opt::expr::{ALWAYS, Expr, NodeId, Op};
use hlo_opt::fusion::folds;

/// The maximum length of a short row: longer ones are worth registers of their own, since the cost of
/// shuffles grows with it.
const MAX_ROW_ELEMENTS: i64 = 20;
/// The maximum length if little is done with each element of a single array: a reduction across lanes then is
/// cheaper than shuffles. One more per this many operations on an element.
const MAX_CHEAP_ROW_ELEMENTS: i64 = 10;
const OPS_PER_EXTRA_ELEMENT: i64 = 4;
/// This many elements fill a register that is then reduced across lanes: a row per lane pays only with more
/// than one operation per step.
const FULL_REGISTER_ELEMENTS: i64 = 16;
/// Up to this many columns are interleaved by shuffles of their own.
const MAX_INTERLEAVED_COLUMNS: i64 = 4;
/// The maximum number of columns without table lookups in registers.
const MAX_COLUMNS_WITHOUT_TABLES: i64 = 8;
/// The minimum number of rows worth vectorizing across.
const MIN_ROWS: i64 = 64;
/// Rows of a unit: a multiple of all numbers of lanes.
const BLOCK_ROWS: i64 = 64;
/// The variable of blocks of rows.
const BLOCK_VAR: u32 = 65;

/// Emission of code at a column, with loop-carried values.
type Column<'s, 'c, 'a, 'ctx, 'm> =
    &'s dyn Fn(&mut Code<'c, 'a, 'ctx, 'm>, &[Value<'ctx>]) -> Result<Vec<Value<'ctx>>>;

/// The variable of adjacent rows of that length and their number, if they are short and many.
pub(super) fn rows(
    expr: &Expr<'_>,
    rows: &[(u32, i64)],
    length: i64,
    sweeps: &[Folds<'_>],
    elements: &[Output],
) -> Option<(u32, i64)> {
    let complex = |o: &Output| expr.nodes[o.node as usize].ty.is_complex();
    let complex = elements.iter().any(complex) || sweeps.iter().any(Folds::any_complex);
    let single = sweeps.iter().flat_map(|s| &s.all).all(|f| f.types.len() == 1);
    let operands = sweeps.iter().flat_map(|s| &s.all).flat_map(|f| f.operands.iter().copied());
    let nodes: Vec<NodeId> = operands.chain(elements.iter().map(|o| o.node)).collect();
    let operations = i64::try_from(cost::read(expr, nodes.iter().copied(), 1).flops).unwrap_or(i64::MAX);
    let is_load = |n: &&NodeId| matches!(expr.nodes[**n as usize].op, Op::Load { .. });
    let loads = expr.reachable(nodes.iter().copied()).iter().filter(is_load).count().max(1) as i64;
    let cheap = MAX_CHEAP_ROW_ELEMENTS / loads + operations / OPS_PER_EXTRA_ELEMENT;
    let most = if single { cheap.min(MAX_ROW_ELEMENTS) } else { MAX_ROW_ELEMENTS };
    let short = (2..=most).contains(&length) && !(single && length == FULL_REGISTER_ELEMENTS);
    rows.last().copied().filter(|&(_, n)| n >= MIN_ROWS && short && !complex)
}

/// Whether a fusion may be such rows: they are as long as the reduction of the first `reduce`. That is all
/// that is known before planning.
pub(super) fn may_be_short_rows(module: &Module, fusion: InstrId) -> bool {
    let computation = module.instr(fusion).attrs.computation(AttrKey::Calls);
    let reduces = computation.map(|c| folds::all(module, c)).unwrap_or_default();
    reduces.first().and_then(|(_, over)| over.rows()).is_some_and(|(rows, row)| {
        let count = |dims: &[i64]| dims.iter().fold(1i64, |n, &d| n.saturating_mul(d));
        (2..=MAX_ROW_ELEMENTS).contains(&count(row)) && count(rows) >= MIN_ROWS
    })
}

impl<'m> Chain<'m> {
    /// Variables of units: blocks of short rows, of which there are that many in a dimension.
    pub(super) fn blocks(&self, rows: i64) -> Vec<(u32, i64)> {
        let outer = self.rows.split_last().map_or(&[][..], |(_, outer)| outer);
        outer.iter().copied().chain([(BLOCK_VAR, (rows + BLOCK_ROWS - 1) / BLOCK_ROWS)]).collect()
    }

    /// Emits a unit: a block of short rows.
    pub(super) fn block<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        unit: Value<'ctx>,
        (var, n): (u32, i64),
        buffers: &[Buffer<'ctx>],
        results: &[Columns<'ctx>],
    ) -> Result<()> {
        let e = c.e;
        decode(c, unit, &self.blocks(n))?;
        let low = e.mul(c.var(BLOCK_VAR)?, e.i64(BLOCK_ROWS))?;
        let high = e.add(low, e.i64(BLOCK_ROWS))?;
        let high = e.select(e.icmp(IntPredicate::SLT, high, e.i64(n))?, high, e.i64(n))?;
        let body = |c: &mut Code<'c, 'a, 'ctx, 'm>| self.rows_of_lanes(c, buffers, results);
        let lanes = i64::from(c.lanes);
        if lanes == 1 {
            return c.for_var(var, low, high, 1, false, 1, body);
        }
        let main = e.add(low, e.and(e.sub(high, low)?, e.i64(-lanes))?)?;
        c.for_var(var, low, main, lanes, true, lanes, body)?;
        if n % lanes != 0 {
            // The remaining rows are not worth the same code again with masked lanes.
            let lanes = std::mem::replace(&mut c.lanes, 1);
            c.for_var(var, main, high, 1, false, 1, body)?;
            c.lanes = lanes;
        }
        Ok(())
    }

    /// One row per lane.
    fn rows_of_lanes<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        buffers: &[Buffer<'ctx>],
        results: &[Columns<'ctx>],
    ) -> Result<()> {
        if c.lanes > 1 {
            for b in buffers.iter().filter(|b| b.is_of_memory()) {
                self.load_rows(c, b)?;
            }
        }
        for (number, folds) in self.sweeps.iter().enumerate() {
            let start = folds.starts(c)?;
            let total = self.columns(c, &self.inner, &registers(&start), &|c, carried| {
                self.load(c, buffers, number)?;
                let next = folds.step(c, &start, &values(&folds.carried(), carried))?;
                for b in buffers.iter().filter(|b| b.sweep == Some(number)) {
                    b.store(c, &self.offset)?;
                }
                Ok(registers(&next))
            })?;
            folds.give(c, &values(&folds.carried(), &total))?;
        }
        let singles = self.singles.iter().map(|o| c.value(o.node)).collect::<Result<Vec<_>>>()?;
        self.block_results(c, buffers, results)?;
        for (o, value) in self.singles.iter().zip(&singles) {
            c.store_value(value, o.array, &o.at, false)?;
        }
        Ok(())
    }

    /// Loads what is in buffers before a sweep.
    fn load<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, 'm>,
        buffers: &[Buffer<'ctx>],
        number: usize,
    ) -> Result<()> {
        let wide = c.lanes > 1;
        let filled = |b: &&Buffer<'_>| b.sweep.map_or(wide, |sweep| sweep < number);
        buffers.iter().filter(filled).try_for_each(|b| b.load(c, &self.offset))
    }

    /// Emits code at the first column.
    fn at_first<'c, 'a, 'ctx, T>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        f: impl FnOnce(&mut Code<'c, 'a, 'ctx, 'm>) -> Result<T>,
    ) -> Result<T> {
        c.enter()?;
        for &(var, _) in &self.inner {
            c.set_var(var, c.e.i64(0), false, BLOCK_ROWS << 20);
        }
        let result = f(c)?;
        c.leave();
        Ok(result)
    }

    /// Contiguous rows as columns: loaded as full registers, from which the lanes are shuffled.
    fn load_rows<'c, 'a, 'ctx>(&self, c: &mut Code<'c, 'a, 'ctx, 'm>, buffer: &Buffer<'ctx>) -> Result<()> {
        let Op::Load { array, at, .. } = &c.expr.nodes[buffer.node as usize].op else { return Ok(()) };
        let e = c.e.with_lanes(c.lanes);
        let (prim, _) = storage(buffer.ty);
        let from = self.at_first(c, |c| Ok(c.addresses(*array, at)?.address))?;
        let table = Table::new(&e, prim, from, self.length as u32 * c.lanes)?;
        let first: Vec<u64> = (0..u64::from(c.lanes)).map(|l| l * self.length.unsigned_abs()).collect();
        let first = e.int_lanes(Prim::I32, &first);
        self.columns(c, &self.inner, &[], &|c, _| {
            let column = c.number(&self.offset)?.base;
            let index = e.add(first, e.splat(c.e.trunc(column, Prim::I32)?)?)?;
            let value = Val::of_storage(&e, buffer.ty, &[table.pick(&e, index)?])?;
            buffer.put(c, &self.offset, &value)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Whether the elements that a node loads are shuffled from registers of rows.
    pub(super) fn picks(&self, c: &Code<'_, '_, '_, '_>, node: NodeId) -> bool {
        let Op::Load { at, guard, .. } = &c.expr.nodes[node as usize].op else { return false };
        let (prim, parts) = storage(c.expr.nodes[node as usize].ty);
        let whole = *at == self.whole && *guard == ALWAYS && parts == 1;
        whole && self.length > MAX_INTERLEAVED_COLUMNS && Table::suits(&c.e.with_lanes(c.lanes), prim)
    }

    /// Loops over the columns of rows with loop-carried values.
    fn columns<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        vars: &[(u32, i64)],
        carried: &[Value<'ctx>],
        body: Column<'_, 'c, 'a, 'ctx, 'm>,
    ) -> Result<Vec<Value<'ctx>>> {
        let Some((&(var, n), rest)) = vars.split_first() else { return body(c, carried) };
        let e = c.e;
        c.fold_var(var, e.i64(0), e.i64(n), 1, false, 1, carried, |c, carried| {
            self.columns(c, rest, carried, body)
        })
    }

    /// The per-element results of rows.
    fn block_results<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        buffers: &[Buffer<'ctx>],
        results: &[Columns<'ctx>],
    ) -> Result<()> {
        if self.elements.is_empty() {
            return Ok(());
        }
        let at_once = c.lanes == 1 || results.iter().any(|r| !r.is_worth_it(c, self.length));
        self.columns(c, &self.inner, &[], &|c, _| {
            self.load(c, buffers, self.sweeps.len())?;
            let all = self.elements.iter().map(|o| c.value(o.node)).collect::<Result<Vec<Val<'ctx>>>>()?;
            for ((o, value), columns) in self.elements.iter().zip(&all).zip(results) {
                if at_once {
                    c.store_value(value, o.array, &o.at, false)?;
                } else {
                    columns.put(c, &self.offset, value)?;
                }
            }
            Ok(Vec::new())
        })?;
        if at_once {
            return Ok(());
        }
        self.at_first(c, |c| {
            let mut all = self.elements.iter().zip(results);
            all.try_for_each(|(o, columns)| columns.store(c, o, self.length, self.streaming))
        })
    }
}

/// Columns of the rows that lanes hold, on the stack.
pub(super) struct Columns<'ctx> {
    prim: Prim,
    start: Value<'ctx>,
}

impl<'ctx> Columns<'ctx> {
    /// Allocates that many columns.
    pub(super) fn new(c: &Code<'_, '_, 'ctx, '_>, o: &Output, length: i64) -> Result<Self> {
        let (prim, _) = storage(c.expr.arrays[o.array as usize].shape.element_type);
        let elements = u32::try_from(length * i64::from(c.lanes)).unwrap_or(0);
        Ok(Self { prim, start: c.e.stack(prim, elements)?.into() })
    }

    /// Whether interleaving that many columns is cheaper than storing each to its addresses.
    fn is_worth_it(&self, c: &Code<'_, '_, 'ctx, '_>, length: i64) -> bool {
        length <= MAX_COLUMNS_WITHOUT_TABLES || Table::suits(&c.e.with_lanes(c.lanes), self.prim)
    }

    fn put(&self, c: &mut Code<'_, '_, 'ctx, '_>, offset: &Affine, value: &Val<'ctx>) -> Result<()> {
        let e = c.e.with_lanes(c.lanes);
        let bytes = self.prim.bytes();
        let address = c.addresses_from(self.start, 0, offset, i64::from(c.lanes) * bytes as i64)?.address;
        e.store(value.to_storage(&e)?[0], address, bytes as u32)?;
        Ok(())
    }

    /// Stores them as rows, whose first column is at the current position.
    fn store(&self, c: &mut Code<'_, '_, 'ctx, '_>, o: &Output, length: i64, streaming: bool) -> Result<()> {
        let past = streaming && nest::in_whole_registers(c, o);
        let e = c.e.with_lanes(c.lanes);
        let (lanes, bytes) = (i64::from(c.lanes), self.prim.bytes());
        if length <= MAX_INTERLEAVED_COLUMNS || !Table::suits(&e, self.prim) {
            let mut columns = Vec::new();
            for column in 0..length {
                let at = c.e.address_at(self.start, (column * lanes).unsigned_abs() * bytes)?;
                columns.push(e.load(self.prim, at, bytes as u32)?);
            }
            return c.store_interleaved_parts(&columns, o.array, &o.at, past);
        }
        // One step for each register of rows: unrolled, the code would grow with the square of the number of
        // columns.
        let rows = c.addresses(o.array, &o.at)?;
        let table = Table::new(&e, self.prim, self.start, (length * lanes) as u32)?;
        let number = |at: i64| (at % length * lanes + at / length) as i32;
        let numbers = access::global(&e, &hlo::Buffer::S32((0..length * lanes).map(number).collect()))?;
        c.mark()?;
        c.e.for_range(c.e.i64(0), c.e.i64(length), c.e.i64(1), |i| {
            let register = c.e.mul(i, c.e.i64(lanes))?;
            let index = c.e.address(numbers, c.e.mul(register, c.e.i64(4))?)?;
            let row = table.pick(&e, e.load(Prim::I32, index, 4)?)?;
            let to = c.e.address(rows.address, c.e.mul(register, c.e.i64(bytes as i64))?)?;
            if past {
                e.store_streaming(row, to)?;
            } else {
                e.store(row, to, bytes as u32)?;
            }
            Ok(())
        })?;
        c.mark()
    }
}

#[cfg(test)]
pub(super) mod tests;
