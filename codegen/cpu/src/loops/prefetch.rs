//! Software prefetch for gathered rows: indices say where rows are, which the hardware prefetcher cannot
//! foresee, so they are prefetched some rows ahead. So are rows from which indices pick elements: a part of a
//! later row with each element of the current one.
//!
//! **Invariant:** a prefetch changes no value: indices are loaded only for rows that the kernel is called
//! for, and a prefetched address may be invalid.

use hlo_library_base::sizes;
use hlo_llvm::{IntPredicate, Result, Value};
use hlo_opt::expr::index::{Affine, Def};
use hlo_opt::expr::{Expr, NodeId, Op};

use super::code::Code;
use super::lanes::is_plain;
use super::nest::decode;

/// Arrays from this size on are distant: not in the near caches.
pub(super) const DISTANT_BYTES: i64 = 1 << 20;
/// The maximum size of a row, in bytes: of longer ones the hardware prefetches the rest.
const MAX_ROW_BYTES: i64 = 1 << 10;
/// The prefetch distance in bytes; and its minimum and maximum in rows.
const AHEAD_BYTES: i64 = 2 << 10;
const MIN_MAX_ROWS_AHEAD: (i64, i64) = (4, 32);
/// The maximum number of operations of an index, since it is computed twice.
const MAX_INDEX_OPS: u64 = 16;

/// Arrays from this size on are in no cache; and the minimum and maximum size of their rows from which
/// elements are picked. Shorter rows are prefetched into the L1 cache: gathering from rows that are not there
/// takes several times as long, even though the rows are consecutive.
const UNCACHED_BYTES: i64 = 8 << 20;
const MIN_PICKED_ROW_BYTES: i64 = 4 << 10;
const MAX_PICKED_ROW_BYTES: i64 = 128 << 10;
/// The maximum number of bytes of a row for each element that is picked of it.
const MAX_BYTES_PER_PICK: i64 = 64;

/// Prefetch of rows of large arrays at computed offsets.
pub(super) struct RowPrefetch {
    /// For each such load: the array, the offset of an element, and the size of a row in bytes.
    loads: Vec<(u32, Affine, i64)>,
    /// The variable that counts elements of a row.
    inner: u32,
}

impl RowPrefetch {
    /// Finds such loads among the nodes, over all `n` values of the innermost variable.
    pub(super) fn of(expr: &Expr<'_>, nodes: impl Iterator<Item = NodeId>, (inner, n): (u32, i64)) -> Self {
        let mut found = Self { loads: Vec::new(), inner };
        for node in expr.reachable(nodes) {
            let Op::Load { array, at, .. } = &expr.nodes[node as usize].op else { continue };
            let shape = &expr.arrays[*array as usize].shape;
            let size = shape.element_type.storage_bytes() as i64;
            let row = n.saturating_mul(size);
            let distant = shape
                .checked_elements()
                .is_some_and(|n| n.saturating_mul(size) >= sizes::from(DISTANT_BYTES));
            let mut values = Vec::new();
            expr.values_in(at, &mut |value| values.push(value));
            let cheap = |values: Vec<NodeId>| {
                let all = expr.reachable(values.into_iter());
                all.iter().map(|&n| expr.flops(n)).sum::<u64>() <= MAX_INDEX_OPS
                    && !all.iter().any(|&n| expr.branches(n))
            };
            if !values.is_empty()
                && distant
                && row <= MAX_ROW_BYTES
                && is_plain(expr, at, inner)
                && cheap(values)
            {
                found.loads.push((*array, at.clone(), row));
            }
        }
        found
    }

    /// Prefetches what a later unit (before `end`) needs; units are the values of `vars`.
    pub(super) fn prefetch<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        (unit, end): (Value<'ctx>, Value<'ctx>),
        vars: &[(u32, i64)],
    ) -> Result<()> {
        let Some(longest) = self.loads.iter().map(|(_, _, bytes)| *bytes).max() else { return Ok(()) };
        let e = c.e;
        let rows = (AHEAD_BYTES / longest.max(1)).clamp(MIN_MAX_ROWS_AHEAD.0, MIN_MAX_ROWS_AHEAD.1);
        let (later, last) = (e.add(unit, e.i64(rows))?, e.sub(end, e.i64(1))?);
        let later = e.select(e.icmp(IntPredicate::SLT, later, last)?, later, last)?;
        let lanes = std::mem::replace(&mut c.lanes, 1);
        c.enter()?;
        decode(c, later, vars)?;
        c.set_var(self.inner, e.i64(0), false, 1);
        for (array, at, bytes) in &self.loads {
            let row = c.addresses(*array, at)?;
            e.prefetch(row.address, bytes.unsigned_abs())?;
        }
        c.leave();
        c.lanes = lanes;
        Ok(())
    }
}

/// Prefetch of rows of large arrays from which elements at computed offsets are picked.
#[derive(Default)]
pub(super) struct ElementPrefetch {
    rows: Vec<Row>,
}

/// A load that is prefetched a few rows ahead.
struct Row {
    array: u32,
    at: Affine,
    /// Bytes to prefetch for each element that is picked.
    bytes: u64,
    /// Into the L1 cache.
    near: bool,
}

impl ElementPrefetch {
    /// Finds such loads among the nodes, from rows that `outer` counts, over all `n` values of the innermost
    /// variable.
    pub(super) fn of(
        expr: &Expr<'_>,
        nodes: impl Iterator<Item = NodeId>,
        outer: u32,
        (inner, n): (u32, i64),
    ) -> Self {
        let mut rows = Vec::new();
        let (Some(outer), Some(inner_atom)) = (expr.space.atom_of(outer), expr.space.atom_of(inner)) else {
            return Self { rows };
        };
        for node in expr.reachable(nodes) {
            let Op::Load { array, at, .. } = &expr.nodes[node as usize].op else { continue };
            let shape = &expr.arrays[*array as usize].shape;
            let size = shape.element_type.storage_bytes() as i64;
            let (elements, row) = (shape.checked_elements().unwrap_or(0), at.factor(outer));
            let (picks, mut next): (Vec<_>, Vec<_>) =
                at.terms.iter().partition(|t| !matches!(expr.space.atom(t.0).def, Def::Var(_)));
            let whole = |terms: Vec<_>| Affine { terms: terms.into_iter().collect(), constant: 0 };
            let (low, high) = expr.space.range(&whole(picks));
            next.retain(|t| t.0 != inner_atom);
            // Most cache lines of a row are read, and all of them fit into the L2 cache.
            let each = row / n.max(1);
            let near = row.saturating_mul(size) < MIN_PICKED_ROW_BYTES;
            let fits = (0..row).contains(&high.saturating_sub(low))
                && elements.saturating_mul(size)
                    >= sizes::from(if near { DISTANT_BYTES } else { UNCACHED_BYTES })
                && (MAX_BYTES_PER_PICK..=MAX_PICKED_ROW_BYTES).contains(&row.saturating_mul(size))
                && each * size <= MAX_BYTES_PER_PICK;
            if fits && !is_plain(expr, at, inner) {
                let ahead = if near { (AHEAD_BYTES / (row * size)).max(1) } else { 1 };
                let next = whole(next).plus(at.constant.wrapping_add(row * ahead));
                let each = each.max(1);
                let at = next.merged(&Affine::atom(inner_atom).times(each));
                rows.push(Row { array: *array, at, bytes: (each * size).unsigned_abs(), near });
            }
        }
        Self { rows }
    }

    /// Prefetches parts of later rows.
    pub(super) fn prefetch(&self, c: &mut Code<'_, '_, '_, '_>) -> Result<()> {
        for row in &self.rows {
            let address = c.addresses(row.array, &row.at)?.address;
            let bytes = row.bytes * u64::from(c.lanes);
            if row.near { c.e.prefetch(address, bytes)? } else { c.e.prefetch_far(address, bytes)? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::fused;
    use crate::kernel_tests::check;

    /// Rows of a distant table at given and at computed indices, some of which are out of bounds.
    #[test]
    fn rows_of_a_large_table() {
        let gather = |name: &str, at: &str| {
            format!(
                "  {name}i = s32[300,1] reshape({at})\n  {name} = f32[300,40] gather(p0, {name}i), offset_dims={{1}}, collapsed_slice_dims={{0}}, \
                 start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,40}}\n"
            )
        };
        let body = format!(
            "  c = s32[] constant(7)\n  b = s32[300] broadcast(c), dimensions={{}}\n  m = s32[300] multiply(p1, b)\n{}{}  \
             ROOT r = f32[300,40] subtract(g, h)",
            gather("g", "m"),
            gather("h", "p1")
        );
        check(&fused("kLoop", &["f32[8192,40]", "s32[300]"], "f32[300,40]", &body, ""));
    }

    /// Elements of rows of an uncached table.
    #[test]
    fn elements_of_rows() {
        let body = "  i = s32[300,1] reshape(p1)\n  ROOT g = f32[2100,300] gather(p0, i), offset_dims={0}, collapsed_slice_dims={1}, \
                    start_index_map={1}, index_vector_dim=1, slice_sizes={2100,1}";
        check(&fused("kLoop", &["f32[2100,1030]", "s32[300]"], "f32[2100,300]", body, ""));
        let body = "  i = s32[33000,50,1] reshape(p1)\n  ROOT g = f32[33000,50] gather(p0, i), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, \
                    operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}";
        check(&fused("kLoop", &["f32[33000,70]", "s32[33000,50]"], "f32[33000,50]", body, ""));
    }
}
