//! Blocked rows: a [`Chain`] over many medium-length rows runs each sweep over a block of rows before the
//! next sweep (strip-mining of rows, loop distribution of sweeps), and what depends on a row's folds alone is
//! computed for the whole block at once, one row per lane.
//!
//! Row by row, the next sweep would wait for the end of the fold, for scalar work on its result (a quotient,
//! a root, some roundings) and for a broadcast, with hardly any independent work to overlap. **Invariant:** a
//! row is folded, and stored, as it would be alone; lanes without a row (the end of the last block) compute
//! on stale values of an earlier block, or on zeros.

use super::code::Code;
use super::nest::{Output, decode};
use super::region::{narrowed, widened};
use super::rows::{Buffer, Chain};
use super::sweep::Folds;
use hlo_llvm::scalar::{Val, register};
use hlo_llvm::{IntPredicate, Prim, Result, Target, Value};
use hlo_opt::expr::{Expr, Node, NodeId, Op};

/// The maximum length of a row for which it pays, in elements: longer ones hide the latency between sweeps.
const MAX_ROW_ELEMENTS: i64 = 1024;
/// The approximate size of the elements of a block, in bytes: they and what is kept of them stay in the L1
/// cache.
const BLOCK_BYTES: i64 = 16 << 10;
/// The maximum and minimum number of rows of a block.
const MAX_MIN_BLOCK_ROWS: [i64; 2] = [16, 4];
/// The minimum number of blocks, so that each thread has some.
const MIN_BLOCKS: i64 = 32;
/// The variable of blocks of rows.
const BLOCK_VAR: u32 = 74;

/// How rows are blocked.
#[derive(Clone, Debug)]
pub(super) struct RowBlocks {
    /// The variable of adjacent rows, and the number of rows.
    row: (u32, i64),
    /// Rows per block.
    pub(super) rows: i64,
    /// Per-row values and the sweep after which each is known: results of folds, and what of that alone the
    /// rest of the row needs.
    values: Vec<(NodeId, usize)>,
}

/// The blocking of rows of that length, if it pays. `given` is the sweep after which a given value is known.
pub(super) fn rows(
    expr: &Expr<'_>,
    rows: &[(u32, i64)],
    length: i64,
    sweeps: &[Folds<'_>],
    results: [&[Output]; 2],
    given: &dyn Fn(u32) -> usize,
) -> Option<RowBlocks> {
    let &row = rows.last()?;
    if length > MAX_ROW_ELEMENTS || sweeps.iter().any(|s| s.literal) {
        return None;
    }
    // For each node: the sweep after which it is known, if it depends on results of folds and constants
    // alone.
    let mut known: Vec<Option<Option<usize>>> = Vec::with_capacity(expr.nodes.len());
    let mut needed = vec![false; expr.nodes.len()];
    let mut widest = 1;
    for (n, node) in expr.nodes.iter().enumerate() {
        let n = n as NodeId;
        widest = widest.max(node.ty.storage_bytes() as i64);
        let plain = match &node.op {
            Op::Given { number } => {
                known.push(Some(Some(given(*number))));
                continue;
            }
            Op::Constant { at, .. } => at.terms.is_empty(),
            Op::Elementwise { .. }
            | Op::Convert { .. }
            | Op::ToOrderedInt { .. }
            | Op::FromOrderedInt { .. }
            | Op::BitcastConvert { .. }
            | Op::Pack { .. }
            | Op::SumOfProducts { .. }
            | Op::Sum { .. } => true,
            Op::Load { .. } | Op::Iota { .. } | Op::Select { .. } | Op::Unpack { .. } => false,
        };
        let mut after = Some(None);
        expr.for_each_operand(n, &mut |m| {
            after = after.zip(known[m as usize]).map(|(a, b)| a.max(b));
        });
        known.push(after.filter(|_| plain));
        if known[n as usize].is_none() {
            expr.for_each_operand(n, &mut |m| needed[m as usize] = true);
        }
    }
    let folded =
        sweeps.iter().flat_map(|s| &s.all).flat_map(|f| f.operands.iter().chain(&f.initial)).copied();
    let stored = results.into_iter().flatten().map(|o| o.node);
    for root in folded.chain(stored) {
        needed[root as usize] = true;
    }
    let value = |n: usize| known[n].flatten().map(|after| (n as NodeId, after));
    let is_given = |n: usize| matches!(expr.nodes[n].op, Op::Given { .. });
    let values = (0..expr.nodes.len()).filter(|&n| needed[n] || is_given(n)).filter_map(value).collect();
    let [mut block, least] = MAX_MIN_BLOCK_ROWS;
    while block > least && block * length * widest > BLOCK_BYTES {
        block /= 2;
    }
    let complex = expr.nodes.iter().any(|n| n.ty.is_complex());
    let computed = (0..expr.nodes.len()).any(|n| needed[n] && !is_given(n) && value(n).is_some());
    let worth =
        computed && !complex && row.1 >= block * MIN_BLOCKS && block * length * widest <= 2 * BLOCK_BYTES;
    worth.then_some(RowBlocks { row, rows: block, values })
}

/// A per-row value of the rows of a block, in memory.
struct Column<'ctx> {
    node: NodeId,
    after: usize,
    /// Whether a fold computes it row by row (and not the code for the whole block).
    given: bool,
    prim: Prim,
    start: Value<'ctx>,
    /// Whether it may hold NaNs of elements, not of arithmetic (not canonical).
    moved: bool,
}

impl<'ctx> Column<'ctx> {
    /// The values of this row, or of this and the following rows in lanes.
    fn get(&self, c: &Code<'_, '_, 'ctx, '_>, row: Value<'ctx>) -> Result<Val<'ctx>> {
        let (e, ty) = (c.e.with_lanes(c.lanes), c.expr.nodes[self.node as usize].ty);
        let from = self.address(c, row)?;
        let x = e.load(self.prim, from, self.prim.bytes() as u32)?;
        Ok(Val::of_registers(ty, &[narrowed(&e, ty, x)?], self.moved))
    }

    fn put(&mut self, c: &Code<'_, '_, 'ctx, '_>, row: Value<'ctx>, value: &Val<'ctx>) -> Result<()> {
        let e = c.e.with_lanes(c.lanes);
        self.moved = !value.is_arithmetic();
        let to = self.address(c, row)?;
        for x in value.settled_if(&e, self.moved)?.registers() {
            e.store(widened(&e, x)?, to, self.prim.bytes() as u32)?;
        }
        Ok(())
    }

    fn address(&self, c: &Code<'_, '_, 'ctx, '_>, row: Value<'ctx>) -> Result<Value<'ctx>> {
        c.e.address(self.start, c.e.mul(row, c.e.i64(self.prim.bytes() as i64))?)
    }
}

impl<'m> Chain<'m> {
    /// Variables of units: blocks of rows.
    pub(super) fn block_variables(&self, row_blocks: &RowBlocks) -> Vec<(u32, i64)> {
        let outer = self.rows.split_last().map_or(&[][..], |(_, outer)| outer);
        let blocks = (row_blocks.row.1 + row_blocks.rows - 1) / row_blocks.rows;
        outer.iter().copied().chain([(BLOCK_VAR, blocks)]).collect()
    }

    /// Emits the loop over blocks of rows.
    pub(super) fn emit_row_blocks<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        target: &Target,
        [begin, end]: [Value<'ctx>; 2],
        row_blocks: &RowBlocks,
        buffers: &[Buffer<'ctx>],
        widths: &[u32],
    ) -> Result<()> {
        let e = c.e;
        let mut columns = Vec::new();
        for &(node, after) in &row_blocks.values {
            let Node { op, ty } = &c.expr.nodes[node as usize];
            let prim = match register(*ty) {
                Prim::I1 => Prim::I8,
                other => other,
            };
            let start: Value<'ctx> = e.stack(prim, row_blocks.rows as u32)?.into();
            let wide = e.with_lanes(row_blocks.rows as u32 * prim.bytes() as u32);
            wide.store(wide.int(Prim::I8, 0), start, 1)?;
            let given = matches!(op, Op::Given { .. });
            columns.push(Column { node, after, given, prim, start, moved: false });
        }
        c.mark()?;
        e.for_range(begin, end, e.i64(1), |unit| {
            c.enter()?;
            decode(c, unit, &self.block_variables(row_blocks))?;
            let first = e.mul(c.var(BLOCK_VAR)?, e.i64(row_blocks.rows))?;
            let last = e.add(first, e.i64(row_blocks.rows))?;
            let n = e.i64(row_blocks.row.1);
            let last = e.select(e.icmp(IntPredicate::SLT, last, n)?, last, n)?;
            for (number, folds) in self.sweeps.iter().enumerate() {
                c.for_var(row_blocks.row.0, first, last, 1, false, 1, |c| {
                    let row = e.sub(c.var(row_blocks.row.0)?, first)?;
                    self.recall(c, &columns, number, row)?;
                    c.lanes = widths[number];
                    self.sweep(c, target, number, folds, &self.of_row(c, buffers, row)?)?;
                    c.lanes = 1;
                    for column in columns.iter_mut().filter(|v| v.given && v.after == number) {
                        let value = c.value(column.node)?;
                        column.put(c, row, &value)?;
                    }
                    Ok(())
                })?;
                self.of_block(c, &mut columns, number, row_blocks.rows)?;
            }
            c.for_var(row_blocks.row.0, first, last, 1, false, 1, |c| {
                let row = e.sub(c.var(row_blocks.row.0)?, first)?;
                self.recall(c, &columns, self.sweeps.len(), row)?;
                self.store_row(c, target, &self.of_row(c, buffers, row)?, widths)
            })?;
            c.leave();
            Ok(())
        })
    }

    /// Defines what earlier sweeps left of a row.
    fn recall<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, 'm>,
        columns: &[Column<'ctx>],
        number: usize,
        row: Value<'ctx>,
    ) -> Result<()> {
        c.lanes = 1;
        for column in columns.iter().filter(|v| v.after < number) {
            let value = column.get(c, row)?;
            c.know(column.node, value);
        }
        Ok(())
    }

    /// Computes the per-row values of all rows of a block after a sweep.
    fn of_block<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, 'm>,
        columns: &mut [Column<'ctx>],
        number: usize,
        rows: i64,
    ) -> Result<()> {
        let zero = c.e.i64(0);
        c.lanes = rows as u32;
        c.enter()?;
        for column in columns.iter().filter(|v| v.after < number || v.given && v.after == number) {
            let value = column.get(c, zero)?;
            c.know(column.node, value);
        }
        for column in columns.iter_mut().filter(|v| !v.given && v.after == number) {
            let value = c.value(column.node)?;
            column.put(c, zero, &value)?;
        }
        c.leave();
        c.mark()?;
        c.lanes = 1;
        Ok(())
    }

    /// The buffers of kept elements, at a row of the block.
    fn of_row<'ctx>(
        &self,
        c: &Code<'_, '_, 'ctx, 'm>,
        buffers: &[Buffer<'ctx>],
        row: Value<'ctx>,
    ) -> Result<Vec<Buffer<'ctx>>> {
        let at = c.e.mul(row, c.e.i64(self.length))?;
        buffers.iter().map(|b| b.from(c, at)).collect()
    }
}

#[cfg(test)]
mod tests;
