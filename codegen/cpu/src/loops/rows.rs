//! Chains of row reductions and of what depends on them (softmax, normalizations and their gradients): one
//! row at a time, while it is in cache.
//!
//! Reductions that do not depend on one another share a sweep over the row; per-element results are the last
//! sweep, or are stored by the last one that folds, if that computes them anyway. Values that are expensive and
//! used in several sweeps are kept in a buffer on the stack; the others are recomputed. **Invariant:** as in
//! [`super::nest`], an element is stored in the iteration that loads the element at the same offset, in the
//! last sweep of its row.

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, ElementType, InstrId, Module};
use hlo_codegen::kernel::Strategy;
use hlo_library_base::{Unsupported, sizes};
use hlo_llvm::scalar::{Val, register};
use hlo_llvm::{Prim, Result, Target, Value};
use hlo_opt::expr::index::{Affine, Index};
use hlo_opt::expr::{ALWAYS, Expr, NodeId, Op, array_leaves, leaf_root};
use hlo_opt::fusion::folds;
use rustc_hash::{FxHashMap, FxHashSet};

use super::code::Code;
use super::lanes::{self, over_lanes};
use super::nest::{self, Output, STREAMING_BYTES, bind_parameters, decode, variables};
use super::prefetch::DISTANT_BYTES;
use super::region::{narrowed, order_of, widened};
use super::row_blocks::{self, RowBlocks};
use super::short_rows::{self, Columns};
use super::sweep::{self, Fold, Folds, Sweep};
use super::{Cost, Function};

/// The maximum size of what is kept of a row on the stack, in bytes.
const KEPT_ROW_BYTES: i64 = 128 << 10;

/// Enough units for any number of threads.
const ENOUGH_UNITS: u64 = 64;

/// The maximum size of a row that is prefetched while the previous one is computed, in bytes.
const MAX_NEXT_ROW_BYTES: i64 = 64 << 10;

/// A chain of sweeps.
pub(super) struct Chain<'m> {
    /// Variables of rows, which are the units.
    pub(super) rows: Vec<(u32, i64)>,
    /// Variables within a row.
    pub(super) inner: Vec<(u32, i64)>,
    /// The offset of an element in its row.
    pub(super) offset: Affine,
    /// The row-major offset of an element among all rows.
    pub(super) whole: Affine,
    /// Elements of a row.
    pub(super) length: i64,
    /// Sweeps with folds.
    pub(super) sweeps: Vec<Folds<'m>>,
    /// For each sweep the nodes that it computes and keeps in a buffer.
    keeps: Vec<Vec<NodeId>>,
    /// Per-element outputs.
    pub(super) elements: Vec<Output>,
    /// Per-row outputs.
    pub(super) singles: Vec<Output>,
    /// The last sweep that folds stores the per-element outputs: it computes them anyway.
    stores_in_last: bool,
    /// Results are stored non-temporally.
    pub(super) streaming: bool,
    /// Arrays whose next row is prefetched during the last sweep: it arrives while this one is computed, so
    /// the first sweep does not wait for it.
    next: Vec<u32>,
    /// Short rows, vectorized across rows: the variable that lanes hold.
    short: Option<(u32, i64)>,
    /// Medium-length rows in blocks, which run sweep by sweep.
    row_blocks: Option<RowBlocks>,
}

/// The chain of a fusion.
pub(super) fn fusion(
    module: &Module,
    id: InstrId,
) -> std::result::Result<(Expr<'_>, Option<Chain<'_>>), Unsupported> {
    let refuse = |at: InstrId, reason: &str| Err(Unsupported::new(module, at, reason));
    let Some(computation) = module.instr(id).attrs.computation(AttrKey::Calls) else {
        return refuse(id, "a fusion of nothing");
    };
    let mut expr = Expr::new(module);
    let first_result = bind_parameters(&mut expr, computation, 0);
    let reduces = folds::all(module, computation);
    let Some((first, over)) = reduces.first() else {
        return refuse(id, "a chain of rows without a reduction");
    };
    let Some((row_dims, inner_dims)) = over.rows() else {
        return refuse(*first, "a reduction of what are no rows");
    };
    let dims = &over.dims;
    let (index, mut vars) = variables(&mut expr, dims, 0);
    let at_row: Index = index[..row_dims.len()].into();
    let count = |d: &[i64]| d.iter().product::<i64>();
    let (rows, length) = (count(row_dims), count(inner_dims));

    // Each reduction goes into the first sweep for which everything that it needs is known.
    let mut given: FxHashMap<u32, usize> = FxHashMap::default();
    let mut sweeps: Vec<Vec<Fold<'_>>> = Vec::new();
    let mut next = 0;
    for &(reduce, ref over) in &reduces {
        let same = |of: &(&[i64], &[i64])| count(of.0) == rows && count(of.0) * count(of.1) == rows * length;
        let Some((own_rows, own_row)) = over.rows().filter(same) else {
            return refuse(reduce, "reductions of different rows in a fusion");
        };
        let mut at = expr.space.reshape(&at_row, row_dims, own_rows);
        let result_at = at.clone();
        at.extend(expr.space.reshape(&index[row_dims.len()..], inner_dims, own_row));
        let fold = Fold::new(&mut expr, id, reduce, &at, next, order_of)?;
        next += fold.given.len() as u32;
        let needs = expr.reachable(fold.operands.iter().chain(&fold.initial).copied());
        let sweep = needs.iter().filter_map(|&n| match expr.nodes[n as usize].op {
            Op::Given { number } => given.get(&number).map(|s| s + 1),
            _ => None,
        });
        let sweep = sweep.max().unwrap_or(0);
        fold.bind(&mut expr, reduce, &result_at);
        given.extend(fold.given.iter().map(|&g| (g, sweep)));
        if sweeps.len() <= sweep {
            sweeps.resize_with(sweep + 1, Vec::new);
        }
        sweeps[sweep].push(fold);
    }
    let root = module.root(computation);
    let (mut elements, mut singles) = (Vec::new(), Vec::new());
    let mut offset = expr.space.linear(&index[row_dims.len()..], inner_dims);
    let mut whole = expr.space.linear(&index, dims);
    let row = expr.space.linear(&at_row, row_dims);
    let shapes: Vec<&ArrayShape> = array_leaves(&module.instr(root).shape).collect();
    for (leaf, shape) in shapes.into_iter().enumerate() {
        let array = expr.array(shape, first_result + leaf as u32);
        let (instr, leaf) = leaf_root(module, root, leaf as u32);
        let total = count(&shape.dims);
        if total == rows * length && (length != 1 || shape.dims.len() == dims.len()) {
            let at = expr.space.reshape(&index, dims, &shape.dims);
            let node = expr.node(instr, leaf, &at)?;
            elements.push(Output { node, array, at: whole.clone() });
        } else if total == rows {
            let at = expr.space.reshape(&at_row, row_dims, &shape.dims);
            let node = expr.node(instr, leaf, &at)?;
            singles.push(Output { node, array, at: row.clone() });
        } else {
            return refuse(id, "a result of other dimensions than its rows'");
        }
    }
    if rows == 0 {
        return Ok((expr, None));
    }
    // Variables of rows and variables within a row are never collapsed into one.
    let outer = vars.iter().filter(|v| (v.0 as usize) < row_dims.len()).count();
    let mut inner = vars.split_off(outer);
    let all = elements.iter_mut().chain(&mut singles).map(|o| &mut o.at);
    let mut more: Vec<&mut Affine> = all.chain([&mut offset, &mut whole]).collect();
    nest::join(&mut expr, &mut vars, &mut more);
    nest::join(&mut expr, &mut inner, &mut more);
    let sweeps: Vec<Folds<'_>> = sweeps.into_iter().map(Folds::new).collect();
    let short = short_rows::rows(&expr, &vars, length, &sweeps, &elements);
    let row_blocks = match short {
        Some(_) => None,
        None => row_blocks::rows(&expr, &vars, length, &sweeps, [&elements, &singles], &|number| {
            given.get(&number).copied().unwrap_or(0)
        }),
    };
    let at_once = row_blocks.as_ref().map_or(1, |t| t.rows);
    let stores_in_last = short.is_none()
        && row_blocks.is_none()
        && stores_in_last(&expr, &sweeps, [&elements, &singles], length);
    let keeps = keep(&expr, &sweeps, &elements, stores_in_last, length.saturating_mul(at_once));
    let streaming = streams(&expr, &elements);
    let next = distant(&expr, &sweeps, &whole, length);
    let rows = vars;
    let chain = Chain {
        rows,
        inner,
        offset,
        whole,
        length,
        sweeps,
        keeps,
        elements,
        singles,
        stores_in_last,
        streaming,
        next,
        short,
        row_blocks,
    };
    Ok((expr, Some(chain)))
}

/// Whether the last of `sweeps` can store per-element results: it computes them anyway, and nothing is read
/// after it, whose place a result may have.
fn stores_in_last(
    expr: &Expr<'_>,
    sweeps: &[Folds<'_>],
    [elements, singles]: [&[Output]; 2],
    length: i64,
) -> bool {
    let last = sweeps.iter().rev().take(1).flat_map(|s| &s.all).flat_map(|f| f.operands.iter().copied());
    let computed: FxHashSet<NodeId> = expr.reachable(last).into_iter().collect();
    let per_row = expr.reachable(singles.iter().map(|o| o.node));
    let reads = per_row.into_iter().any(|n| matches!(expr.nodes[n as usize].op, Op::Load { .. }));
    length > 1 && !reads && !elements.is_empty() && elements.iter().all(|o| computed.contains(&o.node))
}

/// Large arrays that the first sweep reads row by row.
fn distant(expr: &Expr<'_>, sweeps: &[Folds<'_>], whole: &Affine, length: i64) -> Vec<u32> {
    let first = sweeps.iter().take(1).flat_map(|s| &s.all).flat_map(|f| f.operands.iter().copied());
    let mut arrays: Vec<u32> = Vec::new();
    for node in expr.reachable(first) {
        let Op::Load { array, at, guard: ALWAYS } = &expr.nodes[node as usize].op else { continue };
        let shape = &expr.arrays[*array as usize].shape;
        let bytes = |elements: i64| elements.saturating_mul(shape.element_type.storage_bytes() as i64);
        let large = shape.checked_elements().is_some_and(|n| bytes(n) >= sizes::from(DISTANT_BYTES))
            && bytes(length) <= MAX_NEXT_ROW_BYTES;
        if at == whole && large && !arrays.contains(array) {
            arrays.push(*array);
        }
    }
    arrays
}

/// Whether results are so large that they are stored non-temporally.
fn streams(expr: &Expr<'_>, elements: &[Output]) -> bool {
    let bytes = elements.iter().map(|o| {
        let shape = &expr.arrays[o.array as usize].shape;
        shape.dims.iter().fold(shape.element_type.storage_bytes() as i64, |n, &d| n.saturating_mul(d))
    });
    bytes.fold(0, i64::saturating_add) > sizes::from(STREAMING_BYTES)
}

/// The nodes that each sweep keeps of rows of that length: those that a later sweep needs, and that cost more
/// than a load and a store.
fn keep(
    expr: &Expr<'_>,
    sweeps: &[Folds<'_>],
    elements: &[Output],
    stores_in_last: bool,
    length: i64,
) -> Vec<Vec<NodeId>> {
    // A node costs its own and its operands' operations; per-row nodes cost nothing here.
    let mut by_element = vec![false; expr.nodes.len()];
    let mut cost = vec![0u64; expr.nodes.len()];
    for n in 0..expr.nodes.len() {
        let mut inside = matches!(
            &expr.nodes[n].op,
            Op::Load { .. } | Op::Iota { .. } | Op::Unpack { .. } | Op::Select { .. }
        );
        let mut sum = expr.flops(n as u32);
        expr.for_each_operand(n as u32, &mut |m| {
            inside |= by_element[m as usize];
            sum = sum.saturating_add(if by_element[m as usize] { cost[m as usize] } else { 0 });
        });
        by_element[n] = inside;
        cost[n] = sum;
    }
    let mut keeps: Vec<Vec<NodeId>> = sweeps.iter().map(|_| Vec::new()).collect();
    let mut made: FxHashMap<NodeId, usize> = FxHashMap::default();
    let mut kept: FxHashSet<NodeId> = FxHashSet::default();
    let mut budget = KEPT_ROW_BYTES;
    let roots = sweeps.iter().map(|s| s.all.iter().flat_map(|f| f.operands.clone()).collect::<Vec<_>>());
    let stored = elements.iter().filter(|_| !stores_in_last).map(|o| o.node);
    let roots = roots.chain([stored.collect()]);
    for (sweep, roots) in roots.enumerate() {
        let mut seen = FxHashSet::default();
        let mut pending: Vec<NodeId> = roots;
        while let Some(n) = pending.pop() {
            if !seen.insert(n) || kept.contains(&n) {
                continue;
            }
            let node = &expr.nodes[n as usize];
            if let Some(&before) = made.get(&n) {
                let bytes = length.saturating_mul(node.ty.storage_bytes() as i64);
                if by_element[n as usize] && cost[n as usize] >= 16 && bytes <= budget {
                    budget -= bytes;
                    keeps[before].push(n);
                    kept.insert(n);
                    continue;
                }
            }
            expr.for_each_operand(n, &mut |m| pending.push(m));
        }
        for n in seen {
            made.entry(n).or_insert(sweep);
        }
    }
    keeps
}

/// A buffer for a value of each element of a row: the address of each of its registers.
pub(super) struct Buffer<'ctx> {
    pub(super) node: NodeId,
    pub(super) ty: ElementType,
    /// The sweep that fills it; `None`: it is loaded before all sweeps.
    pub(super) sweep: Option<usize>,
    starts: Vec<(Prim, Value<'ctx>)>,
    /// The code level at which the addresses are known.
    level: usize,
    /// Lanes hold one element each of several rows, not several elements of one.
    across: bool,
    /// Whether values may hold NaNs that were only moved: they are canonicalized when stored.
    moved: bool,
}

impl<'ctx> Buffer<'ctx> {
    /// Whether it is loaded from memory.
    pub(super) fn is_of_memory(&self) -> bool {
        self.sweep.is_none()
    }

    pub(super) fn get(&self, c: &mut Code<'_, '_, 'ctx, '_>, offset: &Affine) -> Result<Val<'ctx>> {
        let mut all = Vec::new();
        for &(prim, start) in &self.starts {
            let address = self.address(c, start, prim, offset)?;
            let e = c.e.with_lanes(c.lanes);
            all.push(narrowed(&e, self.ty, e.load(prim, address, prim.bytes() as u32)?)?);
        }
        Ok(Val::of_registers(self.ty, &all, self.moved))
    }

    pub(super) fn put(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        offset: &Affine,
        value: &Val<'ctx>,
    ) -> Result<()> {
        let e = c.e.with_lanes(c.lanes);
        let value = value.settled_if(&e, self.moved)?;
        for (x, &(prim, start)) in value.registers().into_iter().zip(&self.starts) {
            let address = self.address(c, start, prim, offset)?;
            e.store(widened(&e, x)?, address, prim.bytes() as u32)?;
        }
        Ok(())
    }

    fn address(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        start: Value<'ctx>,
        prim: Prim,
        offset: &Affine,
    ) -> Result<Value<'ctx>> {
        let lanes = if self.across { i64::from(c.lanes) } else { 1 };
        Ok(c.addresses_from(start, self.level, offset, lanes * prim.bytes() as i64)?.address)
    }

    /// The same buffer from an element on.
    pub(super) fn from(&self, c: &Code<'_, '_, 'ctx, '_>, element: Value<'ctx>) -> Result<Buffer<'ctx>> {
        let moved = |&(prim, start): &(Prim, Value<'ctx>)| {
            let at = c.e.mul(element, c.e.i64(prim.bytes() as i64))?;
            Ok((prim, c.e.address(start, at)?))
        };
        let starts = self.starts.iter().map(moved).collect::<Result<Vec<_>>>()?;
        Ok(Buffer { starts, level: c.level(), ..*self })
    }

    pub(super) fn load(&self, c: &mut Code<'_, '_, 'ctx, '_>, offset: &Affine) -> Result<()> {
        let value = self.get(c, offset)?;
        c.know(self.node, value);
        Ok(())
    }

    pub(super) fn store(&self, c: &mut Code<'_, '_, 'ctx, '_>, offset: &Affine) -> Result<()> {
        let value = c.value(self.node)?;
        self.put(c, offset, &value)
    }
}

impl<'m> Chain<'m> {
    /// Whether it is vectorized across rows.
    pub(super) fn is_short(&self) -> bool {
        self.short.is_some()
    }

    /// The name of how it is emitted.
    pub(super) fn strategy(&self) -> Strategy {
        match (&self.short, &self.row_blocks) {
            (Some(_), _) => Strategy::ShortRows,
            (None, Some(_)) => Strategy::RowBlocks,
            (None, None) => Strategy::RowFusion,
        }
    }

    /// Whether rows are blocked.
    #[cfg(test)]
    pub(super) fn is_blocked(&self) -> bool {
        self.row_blocks.is_some()
    }

    /// Whether the last sweep that folds stores the per-element results.
    #[cfg(test)]
    pub(super) fn stores_in_last(&self) -> bool {
        self.stores_in_last
    }

    /// The number of units, and how many of them a chunk should have.
    pub(super) fn units(&self) -> (u64, u64) {
        let vars = match (&self.short, &self.row_blocks) {
            (&Some((_, n)), _) => self.blocks(n),
            (None, Some(row_blocks)) => self.block_variables(row_blocks),
            (None, None) => self.rows.clone(),
        };
        let units: i64 = vars.iter().map(|v| v.1).product();
        let units = u64::try_from(units).unwrap_or(1);
        (units, (units / ENOUGH_UNITS).max(1))
    }

    /// What it reads, writes and computes.
    pub(super) fn cost(&self, expr: &Expr<'_>) -> Cost {
        let rows: i64 = self.rows.iter().map(|v| v.1).product();
        let total = rows.saturating_mul(self.length).unsigned_abs();
        let operands = self.sweeps.iter().flat_map(|s| &s.all).flat_map(|f| &f.operands).copied();
        let nodes = operands.chain(self.elements.iter().map(|o| o.node));
        let mut cost = super::cost::read(expr, nodes, total);
        let counted = self
            .elements
            .iter()
            .map(|o| (o, total))
            .chain(self.singles.iter().map(|o| (o, rows.unsigned_abs())));
        for (o, n) in counted {
            let bytes = expr.arrays[o.array as usize].shape.element_type.storage_bytes() as u64;
            cost.bytes = cost.bytes.saturating_add(n.saturating_mul(bytes));
        }
        cost
    }

    /// Emits the function.
    pub(super) fn emit<'c, 'a, 'ctx>(
        &self,
        f: &Function<'a, 'ctx>,
        expr: &'c Expr<'m>,
        target: &Target,
    ) -> Result<()> {
        let [arguments, begin, end] = f.parameters;
        let stored: Vec<NodeId> = self.elements.iter().map(|o| o.node).collect();
        let widths = self.widths(expr, target, &stored);
        let mut code = Code::new(f.e, expr, widths.iter().copied().max().unwrap_or(1), arguments)?;
        let c = &mut code;
        let e = c.e;
        let mut buffers = Vec::new();
        for (sweep, nodes) in self.keeps.iter().enumerate() {
            for &node in nodes {
                buffers.push(self.buffer(c, node, Some(sweep))?);
            }
        }
        let mut results = Vec::new();
        if self.short.is_some() {
            let roots = self.sweeps.iter().flat_map(|s| &s.all).flat_map(|f| f.operands.iter().copied());
            for node in expr.reachable(roots.chain(stored.iter().copied())) {
                if self.picks(c, node) {
                    buffers.push(self.buffer(c, node, None)?);
                }
            }
            for o in &self.elements {
                results.push(Columns::new(c, o, self.length)?);
            }
        }
        if let Some(row_blocks) = &self.row_blocks {
            self.emit_row_blocks(c, target, [begin, end], row_blocks, &buffers, &widths)?;
        } else {
            c.mark()?;
            e.for_range(begin, end, e.i64(1), |unit| {
                c.enter()?;
                match self.short {
                    Some(rows) => self.block(c, unit, rows, &buffers, &results)?,
                    None => self.row(c, target, unit, &buffers, &widths)?,
                }
                c.leave();
                Ok(())
            })?;
        }
        if self.streaming {
            e.fence()?;
        }
        e.return_void()
    }

    /// The lanes of each sweep and, last, of the one that stores; with rows in lanes all have the same.
    fn widths(&self, expr: &Expr<'_>, target: &Target, stored: &[NodeId]) -> Vec<u32> {
        if self.short.is_some() {
            let all = lanes::lanes(expr, target, stored.iter().copied());
            let width = |s: &Folds<'_>| s.lanes_of_columns(expr, target).min(all);
            return vec![self.sweeps.iter().map(width).min().unwrap_or(1)];
        }
        let inner = self.inner.last().copied().unwrap_or((0, 1));
        let of = |sweep: usize| {
            let known = |node: NodeId| self.keeps[..sweep].iter().flatten().any(|&kept| kept == node);
            match self.sweeps.get(sweep) {
                Some(folds) => folds.lanes(expr, target, &self.keeps[sweep], &known, inner),
                None if inner.1 <= 2 => 1,
                None => lanes::full(expr, target, &|| stored.iter().copied(), &known, inner, u32::MAX),
            }
        };
        (0..=self.sweeps.len()).map(of).collect()
    }

    /// Allocates a buffer for a node, for the rows that are computed at a time.
    fn buffer<'ctx>(
        &self,
        c: &Code<'_, '_, 'ctx, '_>,
        node: NodeId,
        sweep: Option<usize>,
    ) -> Result<Buffer<'ctx>> {
        let ty = c.expr.nodes[node as usize].ty;
        let prim = match register(ty) {
            Prim::I1 => Prim::I8,
            other => other,
        };
        let lanes = i64::from(c.lanes);
        let across = self.short.is_some();
        let elements = if across { self.length * lanes } else { self.length * self.rows_at_once() + lanes };
        let elements = u32::try_from(elements).unwrap_or(0);
        let mut starts = Vec::new();
        for _ in 0..1 + u32::from(ty.is_complex()) {
            starts.push((prim, c.e.stack(prim, elements)?.into()));
        }
        Ok(Buffer { node, ty, sweep, starts, level: 0, across, moved: c.expr.moves(node) })
    }

    /// The number of rows that go through a sweep before the next one begins.
    fn rows_at_once(&self) -> i64 {
        self.row_blocks.as_ref().map_or(1, |t| t.rows)
    }

    /// Emits a unit: one row.
    fn row<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        target: &Target,
        unit: Value<'ctx>,
        buffers: &[Buffer<'ctx>],
        widths: &[u32],
    ) -> Result<()> {
        decode(c, unit, &self.rows)?;
        let lanes = c.lanes;
        for ((number, folds), &width) in self.sweeps.iter().enumerate().zip(widths) {
            c.lanes = width;
            self.sweep(c, target, number, folds, buffers)?;
        }
        self.store_row(c, target, buffers, widths)?;
        c.lanes = lanes;
        Ok(())
    }

    /// Stores the outputs of a row, after all sweeps.
    pub(super) fn store_row<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        target: &Target,
        buffers: &[Buffer<'ctx>],
        widths: &[u32],
    ) -> Result<()> {
        if !self.singles.is_empty() {
            c.lanes = 1;
            let values = self.singles.iter().map(|o| c.value(o.node)).collect::<Result<Vec<_>>>()?;
            for (o, value) in self.singles.iter().zip(&values) {
                c.store_value(value, o.array, &o.at, false)?;
            }
        }
        if !self.elements.is_empty() && !self.stores_in_last {
            c.lanes = widths.last().copied().unwrap_or(1);
            self.results(c, target, buffers)?;
        }
        Ok(())
    }

    pub(super) fn sweep<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        target: &Target,
        number: usize,
        folds: &Folds<'m>,
        buffers: &[Buffer<'ctx>],
    ) -> Result<()> {
        let n = self.inner.last().map_or(1, |v| v.1);
        let sweep = Sweep {
            folds,
            vars: &self.inner,
            copies: folds.copies_of(c.expr, c.lanes, n),
            range: &|c, var| sweep::whole(c, var),
            before: &|c| {
                buffers.iter().filter(|b| b.sweep < Some(number)).try_for_each(|b| b.load(c, &self.offset))
            },
            after: &|c| {
                let last = number + 1 == self.sweeps.len();
                if (self.elements.is_empty() || self.stores_in_last) && number > 0 && last {
                    self.prefetch(c)?;
                }
                if self.stores_in_last && last {
                    nest::store_all(c, &self.elements, self.streaming)?;
                }
                buffers.iter().filter(|b| b.sweep == Some(number)).try_for_each(|b| b.store(c, &self.offset))
            },
        };
        let total = sweep.emit(c, target)?;
        let lanes = std::mem::replace(&mut c.lanes, 1);
        folds.give(c, &total)?;
        c.lanes = lanes;
        Ok(())
    }

    /// Prefetches the next row (or block of rows) at the current element.
    fn prefetch(&self, c: &mut Code<'_, '_, '_, '_>) -> Result<()> {
        for &array in &self.next {
            let next = c.addresses(array, &self.whole.plus(self.length * self.rows_at_once()))?;
            let bytes = c.expr.arrays[array as usize].shape.element_type.storage_bytes() as u64;
            c.e.prefetch_far(next.address, u64::from(c.lanes) * bytes)?;
        }
        Ok(())
    }

    fn results<'c, 'a, 'ctx>(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        target: &Target,
        buffers: &[Buffer<'ctx>],
    ) -> Result<()> {
        let e = c.e;
        let last = |c: &mut Code<'c, 'a, 'ctx, 'm>| -> Result<()> {
            self.prefetch(c)?;
            for b in buffers {
                b.load(c, &self.offset)?;
            }
            nest::store_all(c, &self.elements, self.streaming)
        };
        match self.inner.split_last() {
            None => {
                let lanes = std::mem::replace(&mut c.lanes, 1);
                c.enter()?;
                last(c)?;
                c.leave();
                c.lanes = lanes;
                Ok(())
            }
            Some((&(var, n), outer)) => {
                let w = i64::from(c.lanes);
                nest::loops(c, outer, &|c| over_lanes(c, target, var, e.i64(0), e.i64(n), Some(n), w, &last))
            }
        }
    }
}
