//! Loop nests that compute values and store them: loop fusions, epilogues, maps.
//!
//! **Invariant** (buffer assignment rests on it): in each iteration of the innermost body all loads come
//! before all stores, and an element is stored in the iteration that loads the element at the same offset; so
//! an operand that is read only at the offset being written may share memory with the result.

use hlo::{ArrayShape, attrs::AttrKey};
use hlo::{ComputationId, InstrId, Module, Opcode};
use hlo_codegen::kernel::Strategy;
use hlo_library_base::{Unsupported, sizes};
use hlo_llvm::{IntPredicate, REGISTER, Result, Target, Value};
use hlo_opt::expr::index::{Affine, Index, gcd};
use hlo_opt::expr::{Bound, Expr, NodeId, Op, array_leaves, leaf_root, leaf_shape};
use hlo_opt::passes::facts::MAX_INTERLEAVED_COLUMNS;

use super::code::Code;
use super::collapse;
use super::compaction::CompactedSelect;
use super::lanes::{MAX_REGISTERS, lanes, over_lanes, registers, scatters};
use super::partition::{DOMINANT_FACTOR, EDGE_DECISION_FACTOR, partition, unroll_and_jam};
use super::prefetch::{ElementPrefetch, RowPrefetch};
use super::roots::{Root, Way};
use super::tile::{self, Tiles};
use super::widen;
use super::{Cost, Function};

/// A value and where it is stored.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// The value.
    pub(super) node: NodeId,
    /// The array.
    pub(super) array: u32,
    /// The row-major offset of the element.
    pub(super) at: Affine,
}

/// A perfect loop nest, and what is stored in its innermost body.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    /// Numbers and sizes of the loop variables, outermost first; the last one is vectorized.
    pub(super) vars: Vec<(u32, i64)>,
    /// The number of outer variables that the units range over.
    pub(super) prefix: usize,
    /// With one variable: elements per unit.
    pub(super) block: i64,
    /// Stored in this order.
    pub(super) outputs: Vec<Output>,
    /// Loads that go through tiles.
    pub(super) tiles: Option<Tiles>,
    /// The number of elements of all nests that store parts of the same array.
    pub(super) space: i64,
    /// Columns of short rows: groups of this many outputs are the adjacent columns of one array, and lanes
    /// hold rows.
    pub(super) columns: usize,
}

impl Nest {
    /// A nest over arrays of these dimensions, or over a part of them.
    pub(super) fn over(vars: Vec<(u32, i64)>, outputs: Vec<Output>, dims: &[i64], columns: usize) -> Self {
        let space = dims.iter().fold(1, |n: i64, &d| n.saturating_mul(d));
        Self { vars, prefix: 0, block: UNIT_ELEMENTS, outputs, tiles: None, space, columns }
    }

    /// The name of how it is emitted.
    pub(super) fn strategy(&self) -> Strategy {
        match (&self.tiles, self.columns) {
            (Some(_), _) => Strategy::TiledTranspose,
            (None, 0 | 1) => Strategy::LoopNest,
            (None, _) => Strategy::AcrossRows,
        }
    }

    /// [`join`] of its variables, where it is the only nest.
    pub(super) fn join(&mut self, expr: &mut Expr<'_>) {
        let mut more: Vec<&mut Affine> = self.outputs.iter_mut().map(|o| &mut o.at).collect();
        join(expr, &mut self.vars, &mut more);
    }
}

/// Results larger than this are stored past the caches (non-temporal stores),
pub(super) const STREAMING_BYTES: i64 = 16 << 20;

/// unless everything that is read and written fits into the last-level cache of most machines, where its
/// reader finds it.
const LAST_CACHE_BYTES: u64 = 40 << 20;

/// Half a register, in bytes: the minimum size of a non-temporal store.
pub(super) const HALF_REGISTER_BYTES: i64 = REGISTER as i64 / 2;

/// Enough units for any number of threads.
const ENOUGH_UNITS: i64 = 64;

/// Elements per unit of a nest with one loop.
const UNIT_ELEMENTS: i64 = 4096;

/// Rows of fewer elements do not fill vector lanes.
const SHORT_ROW_ELEMENTS: i64 = 16;

/// The minimum length of a row for which several passes may pay (compaction).
const MIN_COMPACTED_ROW_ELEMENTS: i64 = 256;

/// The multi-dimensional index with one variable per dimension, numbered from `first`.
pub(super) fn variables(expr: &mut Expr<'_>, dims: &[i64], first: u32) -> (Index, Vec<(u32, i64)>) {
    let mut vars = Vec::new();
    let mut index = Index::new();
    for (i, &d) in dims.iter().enumerate() {
        let number = first + i as u32;
        index.push(expr.space.var(number, d));
        if d != 1 {
            vars.push((number, d));
        }
    }
    (index, vars)
}

/// [`variables`] of a box of a space; the index is that in the space.
pub(super) fn variables_of(
    expr: &mut Expr<'_>,
    piece: &[(i64, i64)],
    first: u32,
) -> (Index, Vec<(u32, i64)>) {
    let sizes: Vec<i64> = piece.iter().map(|(low, high)| high - low).collect();
    let (index, vars) = variables(expr, &sizes, first);
    (index.iter().zip(piece).map(|(x, p)| x.plus(p.0)).collect(), vars)
}

/// Collapses adjacent loop variables wherever every index depends on them as on one. `more` are affine
/// expressions outside of the expression IR.
pub(super) fn join(expr: &mut Expr<'_>, vars: &mut Vec<(u32, i64)>, more: &mut [&mut Affine]) {
    let mut d = vars.len();
    while d >= 2 {
        d -= 1;
        let [(outer, size), (inner, n)] = [vars[d - 1], vars[d]];
        let atoms = (expr.space.atom_of(outer), expr.space.atom_of(inner));
        let (Some(outer), Some(inner)) = atoms else { continue };
        let Some(total) = size.checked_mul(n) else { continue };
        let mut one = true;
        let mut look = |x: &mut Affine| one &= x.factor(outer) == x.factor(inner).wrapping_mul(n);
        expr.for_each_affine(&mut look);
        more.iter_mut().for_each(|x| look(x));
        if !one {
            continue;
        }
        let mut drop = |x: &mut Affine| x.terms.retain(|t| t.0 != outer);
        expr.for_each_affine(&mut drop);
        more.iter_mut().for_each(|x| drop(x));
        expr.space.atoms[inner.0 as usize].high = total - 1;
        vars[d].1 = total;
        vars.remove(d - 1);
    }
}

/// Binds the parameters of a computation to arrays, the first being argument `first`; returns the number of
/// the next argument.
pub(super) fn bind_parameters(expr: &mut Expr<'_>, computation: ComputationId, first: u32) -> u32 {
    let module = expr.module;
    let mut argument = first;
    for &p in module.computation(computation).parameters().iter().flatten() {
        for (leaf, shape) in array_leaves(&module.instr(p).shape).enumerate() {
            let array = expr.array(shape, argument);
            expr.bind(p, leaf as u32, Bound::Array(array));
            argument += 1;
        }
    }
    argument
}

/// The maximum number of columns of a contraction's result whose epilogue is vectorized across rows; the
/// result is in cache, computed by blocks of rows.
const MAX_HERO_COLUMNS: i64 = 8;

/// The nests of a loop fusion: one for each group of roots of the same dimensions, or for each part of these.
pub(super) fn fusion(
    module: &Module,
    id: InstrId,
) -> std::result::Result<(Expr<'_>, Vec<Nest>), Unsupported> {
    let instr = module.instr(id);
    let Some(computation) = instr.attrs.computation(AttrKey::Calls) else {
        return Err(Unsupported::new(module, id, "a fusion of nothing"));
    };
    let mut expr = Expr::new(module);
    let first_result = bind_parameters(&mut expr, computation, 0);
    let nests = roots(&mut expr, computation, first_result, 0)?;
    Ok((expr, nests))
}

/// The nests of the roots of a computation, which are arguments from `first_result` on; variables are
/// numbered from `first`.
pub(super) fn roots(
    expr: &mut Expr<'_>,
    computation: ComputationId,
    first_result: u32,
    first: u32,
) -> std::result::Result<Vec<Nest>, Unsupported> {
    let module = expr.module;
    let root = module.root(computation);
    let mut spaces: Vec<(Vec<i64>, Vec<Root<'_>>)> = Vec::new();
    for (leaf, shape) in array_leaves(&module.instr(root).shape).enumerate() {
        let (instr, at_leaf) = leaf_root(module, root, leaf as u32);
        let array = expr.array(shape, first_result + leaf as u32);
        let window = in_place_update(module, instr);
        let dims: Vec<i64> = match window {
            Some(update) => module.instr(update).shape.expect_array().dims.to_vec(),
            None => shape.dims.to_vec(),
        };
        if dims.contains(&0) {
            continue;
        }
        let root = Root { instr, leaf: at_leaf, array, window, shape };
        match spaces.iter_mut().find(|s| s.0 == dims) {
            Some(space) => space.1.push(root),
            None => spaces.push((dims, vec![root])),
        }
    }
    let pieces = |id: InstrId| matches!(module.instr(id).opcode, Opcode::Concatenate | Opcode::Pad);
    let pieces = module.instructions(computation).any(pieces);
    let mut nests: Vec<Nest> = Vec::new();
    for (dims, roots) in &spaces {
        let whole: Vec<(i64, i64)> = dims.iter().map(|&n| (0, n)).collect();
        let number = |nests: &[Nest]| first + 100 * nests.len() as u32;
        let boxes = if pieces {
            let mut trial = expr.clone();
            let (known, before) = (trial.guards.len(), trial.nodes.len());
            Root::nest(roots, &mut trial, dims, &whole, number(&nests))?;
            let decided = trial.nodes.len() - before;
            let lighter = |piece: &[(i64, i64)]| {
                let mut trial = expr.clone();
                let made = Root::nest(roots, &mut trial, dims, piece, number(&nests));
                made.is_ok() && (trial.nodes.len() - before) * EDGE_DECISION_FACTOR <= decided
            };
            partition(&trial, known, dims, number(&nests), lighter)
        } else {
            vec![whole.clone()]
        };
        let inner = Root::narrow(roots, expr, dims, number(&nests), pieces)?;
        // How the partition cuts the outer dimensions of short rows, whose columns come from different
        // sources.
        let mut outer: Vec<&[(i64, i64)]> = Vec::new();
        if let Some(inner) = inner {
            outer.extend(boxes.iter().map(|b| &b[..dims.len() - inner]));
            outer.dedup();
        }
        if outer.len() > 1 {
            let rows = |piece: &[(i64, i64)]| piece.iter().map(|(low, high)| high - low).product::<i64>();
            let most = outer.iter().map(|piece| rows(piece)).max().unwrap_or(0);
            let row = &dims[outer[0].len()..];
            for piece in outer {
                let first = number(&nests);
                let whole: Vec<_> = piece.iter().copied().chain(row.iter().map(|&n| (0, n))).collect();
                // Small boxes select the source per element; in others rows may be one with their neighbours,
                // as the columns are not the same everywhere.
                let is_one = || -> std::result::Result<bool, Unsupported> {
                    let mut trial = expr.clone();
                    let mut alone = Root::nest(roots, &mut trial, dims, &whole, first)?;
                    alone.join(&mut trial);
                    Ok(alone.vars.last().is_some_and(|&(_, n)| n > row.iter().product()))
                };
                let nest = if rows(piece) * DOMINANT_FACTOR < most || is_one()? {
                    Root::nest(roots, expr, dims, &whole, first)?
                } else {
                    Root::columns(roots, expr, dims, piece, first, None)?
                };
                nests.push(nest);
            }
            continue;
        }
        let first = number(&nests);
        if boxes.len() == 1
            && let Some(nest) = widen::nest(roots, expr, dims, first)?
        {
            nests.push(nest);
            continue;
        }
        // Rows that are short because an input of a transposed access was cut.
        if boxes.len() == 1 && dims.last().is_some_and(|&n| n < SHORT_ROW_ELEMENTS) {
            let mut trial = expr.clone();
            let mut nest = Root::nest(roots, &mut trial, dims, &whole, first)?;
            if tile::split(&mut trial, &mut nest) {
                *expr = trial;
                nests.push(nest);
                continue;
            }
        }
        if let Some(way) = Root::collapsed(roots, expr, dims, first, inner)? {
            nests.push(Root::columns(
                roots,
                expr,
                dims,
                &whole[..dims.len() - way.columns],
                first,
                way.collapsed,
            )?);
            continue;
        }
        if let Some(inner) = inner {
            let nest = Root::columns(roots, expr, dims, &whole[..dims.len() - inner], first, None)?;
            nests.push(nest);
            continue;
        }
        let made = |expr: &mut Expr<'_>, piece: &[(i64, i64)]| {
            Root::nest(roots, expr, dims, piece, first).map(|nest| (nest.vars, nest.outputs))
        };
        if boxes.len() * roots.len() <= MAX_INTERLEAVED_COLUMNS as usize
            && let Some((vars, outputs)) = unroll_and_jam(expr, &boxes, made)?
        {
            nests.push(Nest::over(vars, outputs, dims, 1));
            continue;
        }
        for piece in boxes {
            let nest = Root::nest(roots, expr, dims, &piece, number(&nests))?;
            nests.push(nest);
        }
    }
    for n in 0..nests.len() {
        if nests[n].columns == 1 {
            let _ = tile::split(expr, &mut nests[n]);
        }
        let mut vars = std::mem::take(&mut nests[n].vars);
        let mut more: Vec<&mut Affine> =
            nests.iter_mut().flat_map(|n| &mut n.outputs).map(|o| &mut o.at).collect();
        join(expr, &mut vars, &mut more);
        nests[n].vars = vars;
        if nests[n].columns == 1 {
            tile::merge(expr, &mut nests[n]);
        }
        nests[n].divide();
        nests[n].tiles = if nests[n].columns == 1 { Tiles::of(expr, &nests[n]) } else { None };
    }
    Ok(nests)
}

/// The `dynamic-update-slice` (or scatter) update of a root that is written into its operand in place: a
/// parameter without other readers.
pub(super) fn in_place_update(module: &Module, root: InstrId) -> Option<InstrId> {
    let instr = module.instr(root);
    if instr.opcode != Opcode::DynamicUpdateSlice {
        return None;
    }
    let &[of, update, ..] = instr.operands() else { return None };
    let sole = module.users(of).len() == 1;
    let empty = module.instr(of).shape.expect_array().elements() == 0;
    (module.instr(of).opcode == Opcode::Parameter && sole && !empty).then_some(update)
}

/// The nest of an epilogue: variables are rows and columns of the hero's result.
pub(super) fn epilogue(
    module: &Module,
    id: InstrId,
    hero: InstrId,
) -> std::result::Result<(Expr<'_>, Vec<Nest>), Unsupported> {
    let Some(computation) = module.instr(id).attrs.computation(AttrKey::Calls) else {
        return Err(Unsupported::new(module, id, "a fusion of nothing"));
    };
    let mut expr = Expr::new(module);
    let Some(result) = leaf_shape(&module.instr(hero).shape, 0) else {
        return Err(Unsupported::new(module, hero, "a hero without a result"));
    };
    let given = expr.array(result, 0);
    expr.bind(hero, 0, Bound::Array(given));
    let first_result = bind_parameters(&mut expr, computation, 1);
    let columns = result.dims.last().copied().unwrap_or(1);
    let rows: i64 = result.dims.iter().rev().skip(1).product();
    if rows * columns == 0 {
        return Ok((expr, Vec::new()));
    }
    let (index, mut vars) = variables(&mut expr, &[rows, columns], 0);
    let here = expr.space.linear(&index, &[rows, columns]);
    let root = module.root(computation);
    let (mut roots, mut outputs) = (Vec::new(), Vec::new());
    let shapes: Vec<&ArrayShape> = array_leaves(&module.instr(root).shape).collect();
    for (leaf, shape) in shapes.into_iter().enumerate() {
        if shape.elements() != result.elements() {
            return Err(Unsupported::new(
                module,
                id,
                "an epilogue whose result has other dimensions than its hero's",
            ));
        }
        let at = expr.space.reshape(&index, &[rows, columns], &shape.dims);
        let node = expr.node(root, leaf as u32, &at)?;
        let array = expr.array(shape, first_result + leaf as u32);
        roots.push(Root { instr: root, leaf: leaf as u32, array, window: None, shape });
        outputs.push(Output { node, array, at: here.clone() });
    }
    for node in &expr.nodes {
        if matches!(&node.op, Op::Load { array, at, .. } if *array == given && *at != here) {
            return Err(Unsupported::new(
                module,
                id,
                "an epilogue that needs other elements than those of its row",
            ));
        }
    }
    let space = rows.saturating_mul(columns);
    let mut more: Vec<&mut Affine> = outputs.iter_mut().map(|o| &mut o.at).collect();
    join(&mut expr, &mut vars, &mut more);
    if vars.len() == 2
        && let Some(nest) = short_rows(&mut expr, &roots, (rows, columns))?
    {
        return Ok((expr, vec![nest]));
    }
    // A row is a unit: rows that are collapsed with their columns are blocks of one loop.
    let prefix = usize::from(vars.len() == 2);
    if rows > 1 && vars.len() == 1 && columns == 1 {
        return Ok((
            expr,
            vec![Nest { vars, prefix: 0, block: 1, outputs, tiles: None, space: rows, columns: 1 }],
        ));
    }
    Ok((expr, vec![Nest { vars, prefix, block: columns, outputs, tiles: None, space, columns: 1 }]))
}

/// The nest of an epilogue over rows that are too short to vectorize: lanes hold elements of several rows, or
/// a column of many rows. `None`: they are long enough.
fn short_rows(
    expr: &mut Expr<'_>,
    roots: &[Root<'_>],
    (rows, columns): (i64, i64),
) -> std::result::Result<Option<Nest>, Unsupported> {
    /// The number of the first variable that an epilogue over rows and columns does not have.
    const OWN: u32 = 2;
    if !(2..=MAX_HERO_COLUMNS).contains(&columns) {
        return Ok(None);
    }
    let dims = [rows, columns];
    let complex = roots.iter().any(|root| root.shape.element_type.is_complex());
    let together = Way { columns: 0, collapsed: Some(0) };
    let apart = Way { columns: 1, collapsed: None };
    let ways = [(together, columns, columns.unsigned_abs().is_power_of_two()), (apart, 1, !complex)];
    let mut best: Option<(f64, Expr<'_>, Nest)> = None;
    for (way, block, _) in ways.into_iter().filter(|way| way.2) {
        let mut trial = expr.clone();
        let outer = &[(0, rows), (0, columns)][..dims.len() - way.columns];
        let nest = Root::columns(roots, &mut trial, &dims, outer, OWN, way.collapsed)?;
        let cost = collapse::cost(&trial, &nest);
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            best = Some((cost, trial, Nest { block, ..nest }));
        }
    }
    let Some((_, made, nest)) = best else { return Ok(None) };
    *expr = made;
    Ok(Some(nest))
}

/// The nest of a computation applied to arrays whose number of elements is that of the units.
pub(super) fn map(
    module: &Module,
    computation: ComputationId,
) -> std::result::Result<(Expr<'_>, Vec<Nest>), Unsupported> {
    /// More elements than any array has.
    const ANY: i64 = 1 << 50;
    let mut expr = Expr::new(module);
    let at = expr.space.var(0, ANY);
    let mut arguments = Vec::new();
    for &p in module.computation(computation).parameters().iter().flatten() {
        for shape in array_leaves(&module.instr(p).shape) {
            let ty = shape.element_type;
            let array = expr.array(&ArrayShape::new(ty, &[ANY]), arguments.len() as u32);
            let load = Op::Load { array, at: at.clone(), guard: hlo_opt::expr::ALWAYS };
            arguments.push(expr.push(load, ty));
        }
    }
    let results = expr.apply(computation, &arguments)?;
    let mut outputs = Vec::new();
    for (i, node) in results.into_iter().enumerate() {
        let ty = expr.nodes[node as usize].ty;
        let array = expr.array(&ArrayShape::new(ty, &[ANY]), (arguments.len() + i) as u32);
        outputs.push(Output { node, array, at: at.clone() });
    }
    Ok((
        expr,
        vec![Nest {
            vars: vec![(0, ANY)],
            prefix: 0,
            block: 1,
            outputs,
            tiles: None,
            space: ANY,
            columns: 1,
        }],
    ))
}

impl Nest {
    /// A nest that stores an instruction in an array of its dimensions, which are not empty; variables are
    /// numbered from `first`.
    pub(super) fn of(
        expr: &mut Expr<'_>,
        instr: InstrId,
        array: u32,
        first: u32,
    ) -> std::result::Result<Self, Unsupported> {
        let dims = expr.arrays[array as usize].shape.dims.clone();
        let (index, mut vars) = variables(expr, &dims, first);
        let node = expr.node(instr, 0, &index)?;
        let mut at = expr.space.linear(&index, &dims);
        join(expr, &mut vars, &mut [&mut at]);
        let space = dims.iter().fold(1, |n: i64, &d| n.saturating_mul(d));
        let outputs = vec![Output { node, array, at }];
        let mut nest =
            Self { vars, prefix: 0, block: UNIT_ELEMENTS, outputs, tiles: None, space, columns: 1 };
        nest.divide();
        Ok(nest)
    }

    /// Chooses the units.
    fn divide(&mut self) {
        let Some((_, inner)) = self.vars.split_last() else { return };
        let mut units = 1i64;
        self.prefix = 0;
        for v in inner {
            if units >= ENOUGH_UNITS {
                break;
            }
            units = units.saturating_mul(v.1);
            self.prefix += 1;
        }
    }

    /// The number of units, and how many of them a chunk should have.
    pub(super) fn units(&self) -> (u64, u64) {
        if let Some(tiles) = &self.tiles {
            let units = tiles.units(self);
            return (units, (units / ENOUGH_UNITS.unsigned_abs()).max(1));
        }
        let last = self.vars.last().map_or(1, |v| v.1);
        let units = if self.prefix == 0 && self.vars.len() <= 1 {
            // A dimension may be as large as the integer type allows.
            last / self.block.max(1) + i64::from(last % self.block.max(1) != 0)
        } else {
            self.vars[..self.prefix].iter().map(|v| v.1).product()
        };
        let units = u64::try_from(units).unwrap_or(1);
        (units, (units / ENOUGH_UNITS.unsigned_abs()).max(1))
    }

    /// What it reads, writes and computes.
    pub(super) fn cost(&self, expr: &Expr<'_>) -> Cost {
        let elements = self.vars.iter().fold(1u64, |n, v| n.saturating_mul(v.1.unsigned_abs()));
        super::cost::of(expr, self.outputs.iter().map(|o| (o.node, o.array)), elements)
    }

    /// An expensive side of a selection that is computed by compaction.
    fn compacted_select(&self, expr: &Expr<'_>, target: &Target, lanes: u32) -> Option<CompactedSelect> {
        let &(inner, n) = self.vars.last()?;
        if !matches!(lanes, 8 | 16)
            || target.vector_bytes() < 64
            || self.columns > 1
            || n < MIN_COMPACTED_ROW_ELEMENTS
        {
            return None;
        }
        let inner = expr.space.atom_of(inner)?;
        let roots: Vec<NodeId> = self.outputs.iter().map(|o| o.node).collect();
        CompactedSelect::of(expr, &roots, inner)
    }

    /// Emits the function.
    pub(super) fn emit(&self, f: &Function<'_, '_>, expr: &Expr<'_>, target: &Target) -> Result<()> {
        let last = self.vars.last().map_or(1, |v| v.1);
        let known = last < 1 << 50;
        // The size of an array, not of each of its columns.
        let bytes: i64 = self
            .outputs
            .iter()
            .step_by(self.columns)
            .map(|o| {
                let shape = &expr.arrays[o.array as usize].shape;
                (shape.element_type.storage_bytes() as i64).saturating_mul(self.space)
            })
            .fold(0, i64::saturating_add);
        let streaming = known
            && bytes > sizes::from(STREAMING_BYTES)
            && self.cost(expr).bytes > sizes::from(LAST_CACHE_BYTES);
        if let Some(tiles) = &self.tiles {
            return tiles.emit(self, f, expr, target, streaming);
        }
        let [arguments, begin, end] = f.parameters;
        let lanes = lanes(expr, target, self.outputs.iter().map(|o| o.node));
        let lanes = if self.vars.is_empty() || last == 1 { 1 } else { lanes };
        // Short rows fill a part of a register: no more lanes than that.
        let lanes = match u32::try_from(last) {
            Ok(last) if last < lanes && self.columns == 1 => last.next_power_of_two(),
            Ok(_) | Err(_) => lanes,
        };
        let together = match self.vars.last() {
            Some(&inner) if self.columns == 1 && lanes > 1 => {
                registers(expr, target, self.outputs.iter().map(|o| o.node), &|_| false, inner, lanes)
            }
            Some(_) | None => 1,
        };
        // One long dependence chain gains more from several registers per iteration than from compaction.
        let compacted =
            if together < MAX_REGISTERS { self.compacted_select(expr, target, lanes) } else { None };
        let lanes = if compacted.is_none() { lanes * together } else { lanes };
        let mut code = Code::new(f.e, expr, lanes, arguments)?;
        let c = &mut code;
        let e = c.e;
        let roots = || self.outputs.iter().map(|o| o.node);
        let picked = match &self.vars[..] {
            &[.., (outer, _), inner] => ElementPrefetch::of(expr, roots(), outer, inner),
            [] | [_] => ElementPrefetch::default(),
        };
        let row = Row { target, streaming, outputs: &self.outputs, columns: self.columns, compacted, picked };
        match &self.vars[..] {
            [] => row.body(c)?,
            &[(var, n)] if self.prefix == 0 => {
                if known && n <= self.block {
                    row.emit(c, var, e.i64(0), e.i64(n), Some(n), i64::from(lanes))?;
                } else {
                    let block = e.i64(self.block);
                    let (low, high) = (e.mul(begin, block)?, e.mul(end, block)?);
                    let high = if known {
                        e.select(e.icmp(IntPredicate::SLT, high, e.i64(n))?, high, e.i64(n))?
                    } else {
                        high
                    };
                    let w = i64::from(lanes);
                    let multiple = gcd(self.block, w);
                    let count = (self.block % w == 0 && n % w == 0 && known).then_some(w << 20);
                    row.emit(c, var, low, high, count, multiple)?;
                }
            }
            vars => {
                let (&(inner, n), outer) = vars.split_last().unwrap_or((&(0, 1), &[]));
                let e = c.e;
                let rows_ahead =
                    (outer.len() == self.prefix).then(|| RowPrefetch::of(expr, roots(), (inner, n)));
                c.mark()?;
                e.for_range(begin, end, e.i64(1), |unit| {
                    c.enter()?;
                    if let Some(rows_ahead) = &rows_ahead {
                        rows_ahead.prefetch(c, (unit, end), outer)?;
                    }
                    decode(c, unit, &outer[..self.prefix])?;
                    let body = |c: &mut Code<'_, '_, '_, '_>| {
                        let e = c.e;
                        row.emit(c, inner, e.i64(0), e.i64(n), Some(n), i64::from(lanes))
                    };
                    loops(c, &outer[self.prefix..], &body)?;
                    c.leave();
                    Ok(())
                })?;
            }
        }
        if streaming {
            e.fence()?;
        }
        e.return_void()
    }
}

/// Decodes variables from their row-major linear index.
pub(super) fn decode<'ctx>(
    c: &mut Code<'_, '_, 'ctx, '_>,
    unit: Value<'ctx>,
    vars: &[(u32, i64)],
) -> Result<()> {
    let e = c.e;
    let mut rest = unit;
    for (i, &(var, n)) in vars.iter().enumerate().rev() {
        let value = match (i, n) {
            (_, 1) => e.i64(0),
            (0, _) => rest,
            _ => e.urem(rest, e.i64(n))?,
        };
        c.set_var(var, value, false, 1);
        if i > 0 && n > 1 {
            rest = e.udiv(rest, e.i64(n))?;
        }
    }
    Ok(())
}

/// Loops over all values of variables.
pub(super) fn loops<'c, 'a, 'ctx, 'm>(
    c: &mut Code<'c, 'a, 'ctx, 'm>,
    vars: &[(u32, i64)],
    body: &dyn Fn(&mut Code<'c, 'a, 'ctx, 'm>) -> Result<()>,
) -> Result<()> {
    match vars.split_first() {
        None => body(c),
        Some((&(var, n), rest)) => {
            let e = c.e;
            c.for_var(var, e.i64(0), e.i64(n), 1, false, 1, |c| loops(c, rest, body))
        }
    }
}

/// The innermost loop.
struct Row<'r> {
    target: &'r Target,
    streaming: bool,
    outputs: &'r [Output],
    columns: usize,
    compacted: Option<CompactedSelect>,
    picked: ElementPrefetch,
}

impl Row<'_> {
    fn body(&self, c: &mut Code<'_, '_, '_, '_>) -> Result<()> {
        self.picked.prefetch(c)?;
        store_columns(c, self.outputs, self.columns, self.streaming)
    }

    fn emit<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        var: u32,
        low: Value<'ctx>,
        high: Value<'ctx>,
        count: Option<i64>,
        multiple: i64,
    ) -> Result<()> {
        if let Some(compacted) = &self.compacted {
            return compacted.emit(c, self.target, var, (low, high, count), multiple, &|c| self.body(c));
        }
        let expr = c.expr;
        let scattered = |o: &Output| scatters(expr, expr.nodes[o.node as usize].ty, &o.at, var);
        c.scatters = self.outputs.iter().any(scattered);
        over_lanes(c, self.target, var, low, high, count, multiple, &|c| self.body(c))?;
        c.scatters = false;
        Ok(())
    }
}

/// Stores values: all loads come before.
pub(super) fn store_all(c: &mut Code<'_, '_, '_, '_>, outputs: &[Output], streaming: bool) -> Result<()> {
    store_columns(c, outputs, 1, streaming)
}

/// The same for outputs that are columns: rows are interleaved in registers and stored contiguously.
fn store_columns(
    c: &mut Code<'_, '_, '_, '_>,
    outputs: &[Output],
    columns: usize,
    streaming: bool,
) -> Result<()> {
    let mut values = Vec::new();
    for o in outputs {
        values.push(c.value(o.node)?);
    }
    for (all, values) in outputs.chunks(columns).zip(values.chunks(columns)) {
        let o = &all[0];
        let past = streaming && in_whole_registers(c, o);
        if columns > 1 && c.lanes > 1 && c.active.is_none() {
            c.store_interleaved(values, o.array, &o.at, past)?;
            continue;
        }
        for (o, value) in all.iter().zip(values) {
            c.store_value(value, o.array, &o.at, past && columns == 1)?;
        }
    }
    Ok(())
}

/// Whether all lanes of an output start where full registers may be stored non-temporally.
pub(super) fn in_whole_registers(c: &Code<'_, '_, '_, '_>, o: &Output) -> bool {
    let size = c.expr.arrays[o.array as usize].shape.element_type.storage_bytes() as i64;
    let all = size * i64::from(c.lanes);
    c.active.is_none()
        && c.lanes > 1
        && all >= HALF_REGISTER_BYTES
        && c.aligned(&o.at, size, all.min(i64::from(REGISTER)))
}
