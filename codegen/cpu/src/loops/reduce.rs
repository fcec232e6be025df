//! Reductions with fused producers and epilogues.
//!
//! Row reductions (the innermost variable is reduced) keep vector accumulators in registers, which are
//! reduced across lanes at the end of a row; in column reductions (it is kept) each lane is a reduction of
//! its own ([`super::columns`]). With fewer units than threads could use, the largest reduced variable is
//! split into chunks (split-K) by its size alone, whose partial results a second phase combines in order;
//! long rows of columns are split by columns instead. Short reductions are vectorized over a kept dimension,
//! if that is nearly contiguous. **Invariant:** what may not be reassociated is combined element by element
//! in the interpreter's order.

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, ComputationId, InstrId, Module};
use hlo_codegen::kernel::Strategy;
use hlo_library_base::{Unsupported, sizes};
use hlo_llvm::scalar::Val;
use hlo_llvm::{IntPredicate, Result, Target};
use hlo_opt::expr::index::{Affine, AtomId, Def, Index};
use hlo_opt::expr::{Bound, Expr, Op, array_leaves, leaf_root};
use hlo_opt::fusion::folds::{self, Space};

use super::code::Code;
use super::columns::UNIT_COLUMNS;
use super::lanes::{self, over_lanes};
use super::nest::{self, Nest, Output, bind_parameters, decode, loops, variables};
use super::ordered_rows::blocks_of_rows;
use super::region::{Combine, order_of, registers, values};
use super::sweep::{self, Fold, Folds, Range, Sweep};
use super::{Cost, Function};

/// Variables: the chunk, the block of columns, and the end of a unit's range.
const CHUNK_VAR: u32 = 64;
pub(super) const BLOCK_VAR: u32 = 65;
pub(super) const END_VAR: u32 = 67;

/// The maximum number of columns that become separate reductions, over at least this many rows, and the
/// maximum number of instructions of all.
const MAX_SEPARATE_COLUMNS: i64 = 4;
const MIN_SEPARATE_ROWS: i64 = 64;
const MAX_SEPARATE_INSTRUCTIONS: i64 = 256;

/// The minimum number of elements of a chunk.
const CHUNK_ELEMENTS: i64 = 1 << 15;

/// Reductions of at most this many elements are vectorized over a kept dimension, if that has at least so
/// many elements.
const MAX_FOLDED_FOR_KEPT_LANES: i64 = 48;
const MIN_KEPT_LANES: i64 = 16;

/// Enough units for any number of threads.
const ENOUGH_UNITS: i64 = 64;

/// Fewer chunks are not worth a second phase.
const MIN_CHUNKS: i64 = 4;

/// Slabs: the minimum number of contiguous elements, and the maximum number of results.
const MIN_SLAB_RUN_ELEMENTS: i64 = 128;
const MAX_SLAB_RESULTS: i64 = 4096;

/// Reductions over the same dimensions of operands of the same dimensions.
pub(super) struct Reduction<'m> {
    pub(super) vars: Vec<(u32, i64)>,
    reduced: Vec<u32>,
    pub(super) folds: Folds<'m>,
    outputs: Vec<Output>,
    /// The row-major offset of the result, and the number of results.
    kept: Affine,
    results: i64,
    /// Chunks (split-K): the variable that is split, the length of a chunk, and the number of chunks.
    pub(super) chunks: Option<(u32, i64, i64)>,
    /// Arrays of partial results: one per accumulator.
    partial: Vec<u32>,
    /// Chunks are slabs of the outermost variable, for which all results are accumulated at once in memory.
    slabs: bool,
    /// Columns per unit of a column reduction, and the number of consecutive units that are reduced at once.
    pub(super) unit_columns: i64,
    pub(super) stripe_units: i64,
}

/// The reduction of a fusion.
pub(super) fn fusion(
    module: &Module,
    id: InstrId,
) -> std::result::Result<(Expr<'_>, Vec<Reduction<'_>>, u64), Unsupported> {
    let Some(computation) = module.instr(id).attrs.computation(AttrKey::Calls) else {
        return Err(Unsupported::new(module, id, "a fusion of nothing"));
    };
    let mut expr = Expr::new(module);
    let first_result = bind_parameters(&mut expr, computation, 0);
    let all = folds::all(module, computation);
    let Some((_, over)) = all.first() else {
        return Err(Unsupported::new(module, id, "a reduction without a reduce"));
    };
    if let Some(&(reduce, _)) = all.iter().find(|(_, other)| other != over) {
        return Err(Unsupported::new(module, reduce, "reductions of different dimensions in a fusion"));
    }
    let stored_order = folds::stored_order(module, computation, &all)?;
    let (index, mut vars) = variables(&mut expr, &over.dims, 0);
    let reduced: Vec<u32> = over.along.iter().map(|&d| d as u32).collect();
    // In the order in which the results are stored.
    let mut kept_dims = over.kept_dims();
    if let Some(order) = &stored_order {
        kept_dims = order.iter().map(|&d| kept_dims[d]).collect();
    }
    let stored_at = |index: &[Affine]| -> Index {
        let kept = kept_of(over, index);
        match &stored_order {
            Some(order) => order.iter().map(|&d| kept[d].clone()).collect(),
            None => kept,
        }
    };
    let elements: i64 = kept_dims.iter().product();
    // The index of an element, or of one in each column.
    let mut seen = vec![index.clone()];
    let mut kept = expr.space.linear(&stored_at(&index), &kept_dims);
    let mut results = elements;
    if let Some(columns) = separate_columns(module, computation, &all).filter(|_| stored_order.is_none()) {
        vars.pop();
        seen = (0..columns).map(|column| in_column(&index, column)).collect();
        // The column is the last kept dimension.
        let row = &stored_at(&index)[..kept_dims.len() - 1];
        kept = expr.space.linear(row, &kept_dims[..row.len()]);
        results /= columns;
    }
    let (mut folds, mut given) = (Vec::new(), 0);
    for index in &seen {
        for (reduce, _) in &all {
            let fold = Fold::new(&mut expr, id, *reduce, index, given, order_of)?;
            given += fold.given.len() as u32;
            folds.push(fold);
        }
    }
    let root = module.root(computation);
    let shapes: Vec<&ArrayShape> = array_leaves(&module.instr(root).shape).collect();
    let mut arrays = Vec::new();
    for (leaf, shape) in (0..).zip(&shapes) {
        arrays.push(expr.array(shape, first_result + leaf));
        if shape.elements() != usize::try_from(elements).unwrap_or(usize::MAX) {
            return Err(Unsupported::new(module, id, "a result of other dimensions than the reduction's"));
        }
    }
    if elements == 0 {
        return Ok((expr, Vec::new(), 0));
    }
    let mut outputs = Vec::new();
    for (index, folds) in seen.iter().zip(folds.chunks(all.len())) {
        // Bound only now: results of the same pass cannot be operands.
        for (fold, (reduce, _)) in folds.iter().zip(&all) {
            fold.bind(&mut expr, *reduce, &kept_of(over, index));
        }
        let kept = stored_at(index);
        for (leaf, (shape, &array)) in (0..).zip(shapes.iter().zip(&arrays)) {
            let (instr, leaf) = leaf_root(module, root, leaf);
            let at = expr.space.reshape(&kept, &kept_dims, &shape.dims);
            let node = expr.node(instr, leaf, &at)?;
            outputs.push(Output { node, array, at: expr.space.linear(&kept, &kept_dims) });
        }
    }
    let arguments = first_result + arrays.len() as u32;
    let folds = Folds::new(folds);
    // Kept and reduced variables are never collapsed into one: the offset of the result tells them apart.
    let mut more: Vec<&mut Affine> = outputs.iter_mut().map(|o| &mut o.at).chain([&mut kept]).collect();
    collapse_vars(&mut expr, &mut vars, &reduced, &folds, &mut more);
    let mut plan = Reduction {
        vars,
        reduced,
        folds,
        outputs,
        kept,
        results,
        chunks: None,
        partial: Vec::new(),
        slabs: false,
        unit_columns: UNIT_COLUMNS,
        stripe_units: 1,
    };
    let scratch = plan.cut(&mut expr, arguments, 0);
    Ok((expr, vec![plan], scratch))
}

/// The kept components of an element's index, in the order of the result.
fn kept_of(space: &Space, index: &[Affine]) -> Index {
    space.kept.iter().map(|d| d.map_or_else(Affine::default, |d| index[d].clone())).collect()
}

/// The number of columns of a column reduction with few of them: each then is a reduction of its own,
/// vectorized across rows, since columns would fill a part of a register and form one dependence chain.
fn separate_columns(
    module: &Module,
    computation: ComputationId,
    reduces: &[(InstrId, Space)],
) -> Option<i64> {
    let (_, space) = reduces.first()?;
    let dims = &space.dims;
    let (&columns, outer) = dims.split_last()?;
    let rows = (0..outer.len()).rev().take_while(|&d| space.is_reduced(d) || dims[d] == 1);
    let rows: i64 = rows.map(|d| dims[d]).product();
    let size = i64::try_from(module.instructions(computation).count()).ok()?;
    let free = |reduce| Combine::of(module, reduce, false).is_ok_and(|combine| combine.free());
    let fits = (2..=MAX_SEPARATE_COLUMNS).contains(&columns)
        && space.in_order()
        && !space.is_reduced(outer.len())
        && rows >= MIN_SEPARATE_ROWS
        && size * columns <= MAX_SEPARATE_INSTRUCTIONS
        && reduces.iter().all(|&(reduce, _)| free(reduce));
    fits.then_some(columns)
}

/// An index whose last component is a column's.
fn in_column(index: &[Affine], column: i64) -> Index {
    let mut index: Index = index.iter().cloned().collect();
    if let Some(last) = index.last_mut() {
        *last = Affine::constant(column);
    }
    index
}

/// Fallback for any fusion with reductions: each is a reduction of its own into scratch memory, from which
/// the results are computed element by element. Returns the size of scratch memory too.
pub(super) fn separate_reductions(
    module: &Module,
    id: InstrId,
) -> std::result::Result<(Expr<'_>, Vec<Reduction<'_>>, Vec<Nest>, u64), Unsupported> {
    let Some(computation) = module.instr(id).attrs.computation(AttrKey::Calls) else {
        return Err(Unsupported::new(module, id, "a fusion of nothing"));
    };
    let mut expr = Expr::new(module);
    let first_result = bind_parameters(&mut expr, computation, 0);
    let leaves = array_leaves(&module.instr(id).shape).count() as u32;
    let argument = first_result + leaves;
    let (mut plans, mut scratch, mut given, mut first) = (Vec::new(), 0u64, 0, 200);
    for (reduce, over) in folds::all(module, computation) {
        let instr = module.instr(reduce);
        let (index, mut vars) = variables(&mut expr, &over.dims, first);
        let reduced: Vec<u32> = over.along.iter().map(|&d| first + d as u32).collect();
        first += 100;
        let fold = Fold::new(&mut expr, id, reduce, &index, given, order_of)?;
        given += fold.given.len() as u32;
        let kept_dims = over.kept_dims();
        let mut kept = expr.space.linear(&kept_of(&over, &index), &kept_dims);
        let results: i64 = kept_dims.iter().product();
        let mut outputs = Vec::new();
        let shapes: Vec<&ArrayShape> = array_leaves(&instr.shape).collect();
        for (leaf, shape) in shapes.into_iter().enumerate() {
            let array = expr.array(shape, argument);
            expr.arrays[array as usize].offset = scratch;
            let bytes = shape.elements() as u64 * shape.element_type.storage_bytes() as u64;
            scratch += bytes.next_multiple_of(64);
            let node = fold.result(&mut expr, leaf, shape.element_type);
            expr.bind(reduce, leaf as u32, Bound::Array(array));
            outputs.push(Output { node, array, at: kept.clone() });
        }
        if results == 0 {
            continue;
        }
        let mut more: Vec<&mut Affine> = outputs.iter_mut().map(|o| &mut o.at).chain([&mut kept]).collect();
        let folds = Folds::new(vec![fold]);
        collapse_vars(&mut expr, &mut vars, &reduced, &folds, &mut more);
        let mut plan = Reduction {
            vars,
            reduced,
            folds,
            outputs,
            kept,
            results,
            chunks: None,
            partial: Vec::new(),
            slabs: false,
            unit_columns: UNIT_COLUMNS,
            stripe_units: 1,
        };
        scratch += plan.cut(&mut expr, argument, scratch);
        plans.push(plan);
    }
    let nests = nest::roots(&mut expr, computation, first_result, first)?;
    Ok((expr, plans, nests, scratch))
}

/// Loop interchange: puts variables in the storage order of most of what is read, if elements may come in any
/// order (strided accesses are not the innermost). Kept variables stay in the order of the result.
fn vectorize_kept(expr: &Expr<'_>, vars: &mut Vec<(u32, i64)>, reduced: &[u32]) {
    let step = |var: u32| -> u64 {
        let Some(atom) = expr.space.atom_of(var) else { return 0 };
        let loads = expr.nodes.iter().filter_map(|node| match &node.op {
            Op::Load { array, at, .. } => {
                let bytes = expr.arrays[*array as usize].shape.element_type.storage_bytes() as u64;
                Some(at.factor(atom).unsigned_abs().saturating_mul(bytes))
            }
            _ => None,
        });
        loads.fold(0, u64::saturating_add)
    };
    let mut sorted = vars.clone();
    sorted.sort_by_cached_key(|v| std::cmp::Reverse(step(v.0)));
    let kept = |vars: &[(u32, i64)]| -> Vec<u32> {
        vars.iter().map(|v| v.0).filter(|v| !reduced.contains(v)).collect()
    };
    if kept(&sorted) == kept(vars) {
        *vars = sorted;
    }
}

/// Makes the innermost kept variable the vectorized one, if so few elements are folded that reducing across
/// lanes would take longer, and lanes over it are contiguous or uniform in every load, and contiguous in the
/// results. The order in which a result is folded stays.
fn lanes_over_kept(expr: &Expr<'_>, vars: &mut Vec<(u32, i64)>, reduced: &[u32], results: &[&mut Affine]) {
    let Some(at) = vars.iter().rposition(|v| !reduced.contains(&v.0)) else { return };
    let (var, lanes) = vars[at];
    let folded = vars[at + 1..].iter().fold(1i64, |n, v| n.saturating_mul(v.1));
    let Some(atom) = expr
        .space
        .atom_of(var)
        .filter(|_| lanes >= MIN_KEPT_LANES && (2..=MAX_FOLDED_FOR_KEPT_LANES).contains(&folded))
    else {
        return;
    };
    let is_variable = |atom: AtomId| matches!(expr.space.atoms[atom.0 as usize].def, Def::Var(_));
    let near = results.iter().all(|at| at.factor(atom) == 1);
    let near = near
        && expr.nodes.iter().all(|node| match &node.op {
            Op::Load { at, .. } | Op::Constant { at, .. } => {
                matches!(at.factor(atom), 0 | 1) && at.terms.iter().all(|t| is_variable(t.0))
            }
            _ => true,
        });
    if near {
        let kept = vars.remove(at);
        vars.push(kept);
    }
}

/// [`nest::join`] of variables in the best order that the folds allow, which keeps kept ones apart from
/// reduced ones, also where the result has one element.
fn collapse_vars(
    expr: &mut Expr<'_>,
    vars: &mut Vec<(u32, i64)>,
    reduced: &[u32],
    folds: &Folds<'_>,
    more: &mut [&mut Affine],
) {
    if folds.in_any_order() {
        vectorize_kept(expr, vars, reduced);
    }
    lanes_over_kept(expr, vars, reduced, more);
    let mut done: Vec<(u32, i64)> = Vec::new();
    let mut run: Vec<(u32, i64)> = Vec::new();
    for v in std::mem::take(vars) {
        if run.last().is_some_and(|l| reduced.contains(&l.0) != reduced.contains(&v.0)) {
            nest::join(expr, &mut run, more);
            done.append(&mut run);
        }
        run.push(v);
    }
    nest::join(expr, &mut run, more);
    done.append(&mut run);
    *vars = done;
}

/// The size of an input, in bytes, above which it is read from memory rather than from caches.
const UNCACHED_BYTES: u64 = 8 << 20;

/// The prefetch distance, in bytes, for rows that are read once: a few streams of one core do not saturate
/// memory by themselves.
const PREFETCH_DISTANCE_BYTES: u64 = 1024;

impl<'m> Reduction<'m> {
    fn is_reduced(&self, var: u32) -> bool {
        self.reduced.contains(&var)
    }

    /// The number of elements that are combined in all.
    pub(super) fn total(&self) -> i64 {
        self.vars.iter().fold(1i64, |n, v| n.saturating_mul(v.1))
    }

    /// Whether inputs come from memory rather than from caches.
    pub(super) fn is_memory_bound(&self, expr: &Expr<'_>) -> bool {
        self.cost(expr).bytes > sizes::from(UNCACHED_BYTES)
    }

    /// Whether it is a row reduction: the innermost variable is reduced.
    pub(super) fn over_rows(&self) -> bool {
        self.vars.last().is_none_or(|v| self.is_reduced(v.0))
    }

    pub(super) fn kept_vars(&self) -> Vec<(u32, i64)> {
        self.vars.iter().copied().filter(|v| !self.is_reduced(v.0)).collect()
    }

    pub(super) fn reduced_vars(&self) -> Vec<(u32, i64)> {
        self.vars.iter().copied().filter(|v| self.is_reduced(v.0)).collect()
    }

    /// Kept variables in the order in which units enumerate them: the order of the results, so that threads
    /// store to separate lines; rows that are in cache are read in any order.
    fn unit_vars(&self, expr: &Expr<'_>) -> Vec<(u32, i64)> {
        let mut vars = self.kept_vars();
        if self.over_rows() && !self.is_ordered_rows() && !self.is_memory_bound(expr) {
            let apart = |var| expr.space.atom_of(var).map(|atom| self.kept.factor(atom));
            vars.sort_by_key(|v| std::cmp::Reverse(apart(v.0)));
        }
        vars
    }

    /// The number of units of the whole phase without chunks.
    fn plain_units(&self) -> i64 {
        if self.slabs {
            return 1;
        }
        let kept = self.kept_vars();
        if self.over_rows() && !self.is_ordered_rows() {
            return kept.iter().map(|v| v.1).product();
        }
        let blocks = |n| if self.over_rows() { blocks_of_rows(n) } else { self.blocks_of_columns(n) };
        let (last, outer) = kept.split_last().map_or((1, &kept[..]), |(l, o)| (l.1, o));
        outer.iter().map(|v| v.1).product::<i64>() * blocks(last)
    }

    /// Splits the largest reduced variable if there are few units; returns the size of scratch memory, of
    /// which `begin` bytes are taken already.
    fn cut(&mut self, expr: &mut Expr<'m>, argument: u32, begin: u64) -> u64 {
        if let Some((var, n)) = self.in_slabs(expr) {
            self.slabs = true;
            return self.cut_variable(expr, (var, (n + ENOUGH_UNITS - 1) / ENOUGH_UNITS, n), argument, begin);
        }
        if let Some((columns, units)) = self.stripes(expr) {
            (self.unit_columns, self.stripe_units) = (columns, units);
            return 0;
        }
        let units = self.plain_units();
        let total = self.total();
        let Some(&(var, n)) = self.reduced_vars().iter().max_by_key(|v| v.1) else { return 0 };
        let wanted = (ENOUGH_UNITS / units.max(1)).min(total / sizes::from(CHUNK_ELEMENTS));
        if self.folds.literal || wanted < MIN_CHUNKS || self.results > 1 << 20 {
            return 0;
        }
        let inner = self.vars.last().is_some_and(|v| v.0 == var);
        let unit = if inner { 256 } else { 4 };
        let size = ((n + wanted - 1) / wanted + unit - 1) / unit * unit;
        if size >= n {
            return 0;
        }
        self.cut_variable(expr, (var, size, n), argument, begin)
    }

    /// Splits a variable of that many values into chunks.
    fn cut_variable(
        &mut self,
        expr: &mut Expr<'m>,
        (var, size, n): (u32, i64, i64),
        argument: u32,
        begin: u64,
    ) -> u64 {
        let count = (n + size - 1) / size;
        self.chunks = Some((var, size, count));
        expr.space.var(CHUNK_VAR, count);
        let mut offset = begin;
        for fold in &self.folds.all {
            for &ty in &fold.types {
                let array = expr.array(&ArrayShape::new(ty, &[count, self.results]), argument);
                expr.arrays[array as usize].offset = offset;
                let bytes = (count * self.results).unsigned_abs() * ty.storage_bytes() as u64;
                offset += bytes.next_multiple_of(64);
                self.partial.push(array);
            }
        }
        offset - begin
    }

    /// The outermost variable, if each of its values reads long contiguous pieces of memory of its own: in
    /// the order of the results, the pieces of one result would be far apart.
    fn in_slabs(&self, expr: &Expr<'_>) -> Option<(u32, i64)> {
        let (&(var, n), rest) = self.vars.split_first()?;
        let inner = rest.iter().rev().take_while(|v| self.is_reduced(v.0));
        let long = inner.fold(1i64, |n, v| n.saturating_mul(v.1)) >= MIN_SLAB_RUN_ELEMENTS;
        let few = (2..=MAX_SLAB_RESULTS).contains(&self.results);
        let fits = !self.folds.literal && self.over_rows() && self.is_reduced(var) && few && long && n > 1;
        (fits && self.is_memory_bound(expr)).then_some((var, n))
    }

    /// Whether there is a second phase.
    pub(super) fn in_chunks(&self) -> bool {
        self.chunks.is_some()
    }

    /// Units of the first phase.
    pub(super) fn units(&self) -> (u64, u64) {
        let units = self.plain_units() * self.chunks.map_or(1, |c| c.2);
        let units = u64::try_from(units).unwrap_or(1);
        (units, (units / ENOUGH_UNITS.unsigned_abs()).max(1))
    }

    /// Consecutive units that one thread should execute.
    pub(super) fn run(&self) -> u64 {
        self.stripe_units.unsigned_abs()
    }

    /// What the first phase reads and computes.
    pub(super) fn cost(&self, expr: &Expr<'_>) -> Cost {
        let total = self.vars.iter().fold(1u64, |n, v| n.saturating_mul(v.1.unsigned_abs()));
        let operands = self.folds.all.iter().flat_map(|f| &f.operands).copied();
        let mut cost = super::cost::read(expr, operands, total);
        for o in &self.outputs {
            let bytes = expr.arrays[o.array as usize].shape.element_type.storage_bytes() as u64;
            cost.bytes = cost.bytes.saturating_add(bytes * self.results.unsigned_abs());
        }
        cost
    }

    /// Stores the results of these accumulators.
    pub(super) fn finish<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>, total: &[Val<'ctx>]) -> Result<()> {
        self.folds.give(c, total)?;
        let mut stored = Vec::new();
        for o in &self.outputs {
            stored.push(c.value(o.node)?);
        }
        for (o, value) in self.outputs.iter().zip(&stored) {
            c.store_value(value, o.array, &o.at, false)?;
        }
        Ok(())
    }

    /// Stores accumulators as those of the chunk.
    pub(super) fn store_partial<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        total: &[Val<'ctx>],
    ) -> Result<()> {
        let at = self.partial_at(c.expr);
        for (&array, value) in self.partial.iter().zip(total) {
            c.store_value(value, array, &at, false)?;
        }
        Ok(())
    }

    fn partial_at(&self, expr: &Expr<'_>) -> Affine {
        let chunk = expr.space.atom_of(CHUNK_VAR).map(Affine::atom).unwrap_or_default();
        expr.space.add(&chunk.times(self.results), &self.kept)
    }

    /// The range of a reduced variable in the current unit, and its length if all units have the same.
    pub(super) fn range<'ctx>(&self, c: &Code<'_, '_, 'ctx, '_>, var: (u32, i64)) -> Result<Range<'ctx>> {
        let e = c.e;
        match self.chunks {
            Some((cut, size, _)) if cut == var.0 => {
                let chunk = c.var(CHUNK_VAR)?;
                let low = e.mul(chunk, e.i64(size))?;
                let high = e.add(low, e.i64(size))?;
                if var.1 % size == 0 {
                    return Ok((low, high, Some(size)));
                }
                let high = e.select(e.icmp(IntPredicate::SLT, high, e.i64(var.1))?, high, e.i64(var.1))?;
                Ok((low, high, None))
            }
            _ => Ok((e.i64(0), e.i64(var.1), Some(var.1))),
        }
    }

    /// The name of how it is emitted.
    pub(super) fn strategy(&self) -> Strategy {
        if self.chunks.is_some() {
            Strategy::SplitReduction
        } else if self.is_ordered_rows() {
            Strategy::OrderedRows
        } else if self.over_rows() {
            Strategy::RowReduction
        } else {
            Strategy::ColumnReduction
        }
    }

    /// Emits the first phase.
    pub(super) fn emit(&self, f: &Function<'_, '_>, expr: &Expr<'m>, target: &Target) -> Result<()> {
        let [arguments, begin, end] = f.parameters;
        let rows = self.over_rows();
        let last = self.vars.last().map_or(1, |v| v.1);
        let mut lanes = self.folds.lanes(expr, target, &[], &|_| false, self.inner_run(&self.vars));
        if !rows && last > 2 || self.is_ordered_rows() {
            // Results are independent: they need not come in the order of the elements.
            lanes = self.folds.lanes_of_columns(expr, target);
        }
        let ordered = self.is_ordered_rows();
        if ordered {
            lanes = self.ordered_row_lanes(lanes, target);
        }
        let mut code = Code::new(f.e, expr, lanes, arguments)?;
        let c = &mut code;
        if rows && self.is_memory_bound(expr) {
            c.ahead = PREFETCH_DISTANCE_BYTES;
        }
        let mut units = Vec::new();
        if let Some((.., count)) = self.chunks {
            units.push((CHUNK_VAR, count));
        }
        if !self.slabs {
            units.extend(self.unit_vars(expr));
        }
        if !rows || ordered {
            let last = units.pop().map_or(1, |v| v.1);
            units
                .push((BLOCK_VAR, if ordered { blocks_of_rows(last) } else { self.blocks_of_columns(last) }));
        }
        let e = c.e;
        c.mark()?;
        e.for_range(begin, end, e.i64(self.stripe_units), |unit| {
            c.enter()?;
            decode(c, unit, &units)?;
            if !rows {
                let mut after = e.add(c.var(BLOCK_VAR)?, e.i64(self.stripe_units))?;
                if self.stripe_units > 1 {
                    after = e.select(e.icmp(IntPredicate::SLT, after, end)?, after, end)?;
                }
                c.set_var(END_VAR, after, false, 1);
            }
            if self.slabs {
                self.slab(c, target)?
            } else if ordered {
                self.emit_ordered_rows(c, target, BLOCK_VAR)?
            } else if rows {
                self.row(c, target)?
            } else {
                self.columns(c, target)?
            }
            c.leave();
            Ok(())
        })?;
        e.return_void()
    }

    /// A unit of a row reduction.
    pub(super) fn row<'c, 'a, 'ctx>(&self, c: &mut Code<'c, 'a, 'ctx, 'm>, target: &Target) -> Result<()> {
        let vars = self.reduced_vars();
        let sweep = Sweep {
            folds: &self.folds,
            vars: &vars,
            copies: self.copies_of_rows(c.expr, c.lanes, &vars),
            range: &|c, var| self.range(c, var),
            before: &sweep::nothing,
            after: &sweep::nothing,
        };
        let total = sweep.emit(c, target)?;
        let lanes = std::mem::replace(&mut c.lanes, 1);
        if self.chunks.is_some() {
            self.store_partial(c, &total)?
        } else {
            self.finish(c, &total)?
        }
        c.lanes = lanes;
        Ok(())
    }

    /// A slab: partial results are in memory, in cache.
    fn slab<'c, 'a, 'ctx>(&self, c: &mut Code<'c, 'a, 'ctx, 'm>, target: &Target) -> Result<()> {
        let reduced = self.reduced_vars();
        let Some((&first, inner)) = reduced.split_first() else { return Ok(()) };
        let kept = self.kept_vars();
        let lanes = std::mem::replace(&mut c.lanes, 1);
        loops(c, &kept, &|c| {
            let start = self.folds.starts(c)?;
            self.store_partial(c, &start)
        })?;
        c.lanes = lanes;
        let (low, high, _) = self.range(c, first)?;
        c.for_var(first.0, low, high, 1, false, 1, |c| {
            loops(c, &kept, &|c| {
                let sweep = Sweep {
                    folds: &self.folds,
                    vars: inner,
                    copies: self.copies_of_rows(c.expr, c.lanes, inner),
                    range: &|c, var| sweep::whole(c, var),
                    before: &sweep::nothing,
                    after: &sweep::nothing,
                };
                let total = sweep.emit(c, target)?;
                let lanes = std::mem::replace(&mut c.lanes, 1);
                let at = self.partial_at(c.expr);
                let before = self.partial.iter().map(|&array| c.load_here(array, &at));
                let before = before.collect::<Result<Vec<_>>>()?;
                let all = self.folds.joined(c, 1, &before, &total)?;
                self.store_partial(c, &all)?;
                c.lanes = lanes;
                Ok(())
            })
        })
    }

    fn copies_of_rows(&self, expr: &Expr<'_>, lanes: u32, vars: &[(u32, i64)]) -> i64 {
        self.folds.copies_of(expr, lanes, self.inner_run(vars).1)
    }

    /// The innermost of some variables, and the number of its values in a unit.
    fn inner_run(&self, vars: &[(u32, i64)]) -> (u32, i64) {
        let &(var, n) = vars.last().unwrap_or(&(0, 1));
        match self.chunks {
            Some((cut, size, _)) if cut == var => (var, size),
            _ => (var, n),
        }
    }

    // ---- the second phase

    /// Units of the phase that combines chunks.
    pub(super) fn finish_units(&self) -> (u64, u64) {
        let kept = self.kept_vars();
        let outer = kept.split_last().map_or(1, |(_, o)| o.iter().map(|v| v.1).product());
        let units = u64::try_from(outer).unwrap_or(1);
        (units, (units / ENOUGH_UNITS.unsigned_abs()).max(1))
    }

    /// What that phase reads and computes.
    pub(super) fn finish_cost(&self) -> Cost {
        let count = self.chunks.map_or(0, |c| c.2).unsigned_abs();
        let flops = count.saturating_mul(self.results.unsigned_abs());
        Cost { bytes: flops.saturating_mul(4), flops }
    }

    /// Emits the phase that combines chunks.
    pub(super) fn emit_finish<'c, 'a, 'ctx>(
        &self,
        f: &Function<'a, 'ctx>,
        expr: &'c Expr<'m>,
        target: &Target,
    ) -> Result<()> {
        let [arguments, begin, end] = f.parameters;
        let kinds = self.folds.carried();
        let kept = self.kept_vars();
        let bits = self.folds.widest();
        let lanes = lanes::lanes(expr, target, self.outputs.iter().map(|o| o.node));
        let lanes = lanes.min(target.vector_bytes() * 8 / bits);
        let lanes = if kept.last().is_none_or(|v| v.1 <= 2) { 1 } else { lanes };
        let mut code = Code::new(f.e, expr, lanes, arguments)?;
        let c = &mut code;
        let e = c.e;
        let count = self.chunks.map_or(0, |k| k.2);
        let at = self.partial_at(expr);
        let body = |c: &mut Code<'c, 'a, 'ctx, 'm>| -> Result<()> {
            let start = self.folds.starts(c)?;
            let ends = c.fold_var(
                CHUNK_VAR,
                e.i64(0),
                e.i64(count),
                1,
                false,
                1,
                &registers(&start),
                |c, carried| {
                    let mine = values(&kinds, carried);
                    let mut elements = Vec::new();
                    for &array in &self.partial {
                        elements.push(c.load(array, &at)?);
                    }
                    let lanes = c.lanes;
                    Ok(registers(&self.folds.joined(c, lanes, &mine, &elements)?))
                },
            )?;
            self.finish(c, &values(&kinds, &ends))
        };
        match kept.split_last() {
            None => body(c)?,
            Some((&(inner, n), outer)) => {
                c.mark()?;
                e.for_range(begin, end, e.i64(1), |unit| {
                    c.enter()?;
                    decode(c, unit, outer)?;
                    over_lanes(c, target, inner, e.i64(0), e.i64(n), Some(n), i64::from(lanes), &body)?;
                    c.leave();
                    Ok(())
                })?;
            }
        }
        e.return_void()
    }
}
