//! Tiled transposes: loop fusions that read an operand along another dimension than the one they write along.
//!
//! Such a load has a factor other than 0 and 1 for the innermost variable `x` of the result, and the factor 1
//! for another one, `y`. A block takes a tile of both: it loads such operands along `y` into shared memory,
//! and computes the results along `x` from there, so that memory is accessed in whole sectors both ways.
//! **Invariants:** a transposed operand shares no memory with a result (`hlo_opt::buffers::in_place`);
//! everything else is loaded by the thread that stores the result at its offset, before that.

use hlo::{InstrId, Module};
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Value};
use hlo_opt::expr::index::{Affine, AtomId, Def, Index};
use hlo_opt::expr::{Expr, NodeId, Op};

use super::loops::in_place_update;
use super::threads::{block, thread};
use super::{Unit, launch};
use crate::code::{Code, load, store};
use crate::kernel::{Argument, Kernel, Stage};
use crate::subject::{Root, Subject};

/// Threads of a block: rows of a warp each.
const THREADS: u32 = 256;
/// Threads along the fast dimension of a tile.
const LANES: i64 = 32;
/// Rows that the threads of a block take at once.
const ROWS: i64 = THREADS as i64 / LANES;
/// The side of a tile in elements, of elements of 4 bytes or more.
const TILE: i64 = 32;
/// The same of narrower ones.
const NARROW_TILE: i64 = 64;
/// Dimensions with fewer elements leave too much of a tile unused.
const MIN_DIM: i64 = 8;
/// The maximum number of nodes for which a thread's elements are unrolled.
const MAX_UNROLLED_NODES: usize = 64;

/// The value of an expression at an index of one variable per dimension of `dims`.
struct Computed<'m> {
    expr: Expr<'m>,
    /// The results, and where they are stored.
    outputs: Vec<(NodeId, u32, Affine)>,
    /// All nodes that are needed.
    needed: Vec<NodeId>,
}

/// Groups of collapsed dimensions of the results.
type Groups = Vec<Vec<i64>>;

impl<'m> Computed<'m> {
    fn new(
        expr: &Expr<'m>,
        roots: &[Root<'m>],
        groups: &Groups,
    ) -> std::result::Result<Self, hlo_codegen::Unsupported> {
        let mut expr = expr.clone();
        let mut index = Index::new();
        for (v, dims) in groups.iter().enumerate() {
            let var = expr.space.var(v as u32, dims.iter().product());
            index.extend(expr.space.delinear(&var, dims));
        }
        let mut outputs = Vec::new();
        for root in roots {
            let node = expr.node(root.instr, root.leaf, &index)?;
            outputs.push((node, root.array, expr.space.linear(&index, &root.shape.dims)));
        }
        let needed = expr.reachable(outputs.iter().map(|o| o.0));
        Ok(Self { expr, outputs, needed })
    }

    /// All affine expressions of the nodes.
    fn numbers(&self) -> Vec<Affine> {
        let mut numbers = Vec::new();
        let guarded = |guard: u32, numbers: &mut Vec<Affine>| {
            numbers.extend(self.expr.guards[guard as usize].iter().map(|c| c.value.clone()));
        };
        for &node in &self.needed {
            match &self.expr.nodes[node as usize].op {
                Op::Load { at, guard, .. } => {
                    numbers.push(at.clone());
                    guarded(*guard, &mut numbers);
                }
                Op::Select { guard, .. } => guarded(*guard, &mut numbers),
                Op::Constant { at: x, .. } | Op::Iota { value: x } | Op::Unpack { part: x, .. } => {
                    numbers.push(x.clone());
                }
                Op::Elementwise { .. }
                | Op::Convert { .. }
                | Op::BitcastConvert { .. }
                | Op::ToOrderedInt { .. }
                | Op::FromOrderedInt { .. }
                | Op::Pack { .. }
                | Op::SumOfProducts { .. }
                | Op::Sum { .. }
                | Op::Given { .. } => {}
            }
        }
        numbers
    }

    /// The factor of a variable in an affine expression; `None`: it occurs in a quotient or remainder.
    fn factor(&self, x: &Affine, var: u32) -> Option<i64> {
        let mut factor = 0;
        for &(a, f) in &x.terms {
            let atom: AtomId = a;
            match &self.expr.space.atom(atom).def {
                Def::Var(v) if *v == var => factor = f,
                Def::Var(_) | Def::Value(_) => {}
                Def::Div(y, _) | Def::Mod(y, _) => {
                    if !self.expr.vars_in(y, &mut |v| v != var) {
                        return None;
                    }
                }
            }
        }
        Some(factor)
    }
}

/// Collapses adjacent dimensions wherever all affine expressions allow that.
fn joined(c: &Computed<'_>, dims: &[i64]) -> Groups {
    let numbers = c.numbers();
    let mut groups: Groups = Vec::new();
    for (d, &n) in dims.iter().enumerate() {
        let joins = d > 0
            && numbers.iter().all(|x| {
                // Variables of one value are dropped.
                let outer = if dims[d - 1] == 1 { Some(None) } else { c.factor(x, d as u32 - 1).map(Some) };
                let inner = if n == 1 { Some(None) } else { c.factor(x, d as u32).map(Some) };
                match (outer, inner) {
                    (Some(Some(outer)), Some(Some(inner))) => outer == inner.wrapping_mul(n),
                    (Some(None), _) | (_, Some(None)) => true,
                    (_, _) => false,
                }
            });
        match groups.last_mut() {
            Some(group) if joins => group.push(n),
            Some(_) | None => groups.push(vec![n]),
        }
    }
    groups
}

/// The tiling of a fusion.
struct Tiled<'m> {
    computed: Computed<'m>,
    groups: Groups,
    /// The variable along which transposed operands are contiguous; the last one is that along which results
    /// are.
    y: usize,
    /// Transposed loads.
    across: Vec<NodeId>,
    tile: i64,
}

impl<'m> Tiled<'m> {
    /// The number of elements along a variable.
    fn size(&self, v: usize) -> i64 {
        self.groups[v].iter().product()
    }

    /// The variable along which results are written.
    fn x(&self) -> usize {
        self.groups.len() - 1
    }

    /// `None`: there are no transposed loads, or tiles would be mostly empty.
    fn new(unit: &Unit<'_, '_>, module: &'m Module, id: InstrId) -> Option<(Self, u32)> {
        let Subject { expr, roots, arrays } = Subject::new(module, id).ok()?;
        let dims = roots.first()?.shape.dims.to_vec();
        let whole = |r: &Root<'_>| {
            r.shape.dims[..] == dims[..] && in_place_update(module, r.instr, r.instr == id).is_none()
        };
        if dims.len() < 2 || dims.contains(&0) || !roots.iter().all(whole) {
            return None;
        }
        let single: Groups = dims.iter().map(|&n| vec![n]).collect();
        let groups = joined(&Computed::new(&expr, &roots, &single).ok()?, &dims);
        let computed = Computed::new(&expr, &roots, &groups).ok()?;
        let size = |v: usize| groups[v].iter().product::<i64>();
        let x = groups.len() - 1;
        if size(x) < MIN_DIM {
            return None;
        }
        let mut y = None;
        let mut across = Vec::new();
        let mut bytes = 0;
        let mut narrow = true;
        for &node in &computed.needed {
            let Op::Load { at, .. } = &computed.expr.nodes[node as usize].op else { continue };
            if matches!(computed.factor(at, x as u32), None | Some(-1..=1)) {
                continue;
            }
            let along = (0..x).find(|&v| size(v) >= MIN_DIM && computed.factor(at, v as u32) == Some(1));
            if along.is_none() || y.is_some() && y != along {
                continue;
            }
            let own = computed.expr.nodes[node as usize].ty.storage_bytes() as i64;
            let tile = if own >= 4 || !narrow { TILE } else { NARROW_TILE };
            if bytes + tile * (tile + 2) * own > i64::from(unit.arch.figures().shared_bytes) {
                continue;
            }
            (y, narrow) = (along, narrow && own < 4);
            bytes += tile * (tile + 2) * own;
            across.push(node);
        }
        let tile = if narrow && size(x) >= NARROW_TILE { NARROW_TILE } else { TILE };
        let y = y?;
        Some((Self { computed, groups, y, across, tile }, arrays))
    }
}

/// A tile of a load in shared memory.
struct Buffer<'ctx> {
    node: NodeId,
    base: Value<'ctx>,
    /// The pitch: elements from one row, along y, to the next.
    pitch: i64,
    bytes: i64,
}

/// The tile of a block.
struct Block<'t, 'm, 'ctx> {
    tiled: &'t Tiled<'m>,
    buffers: Vec<Buffer<'ctx>>,
    /// The smallest x and y of the tile.
    first: [Value<'ctx>; 2],
    /// The thread's lane and row.
    column: Value<'ctx>,
    row: Value<'ctx>,
}

impl<'t, 'm, 'ctx> Block<'t, 'm, 'ctx> {
    fn set(&self, code: &mut Code<'t, 'm, '_, 'ctx>, x: Value<'ctx>, y: Value<'ctx>) -> Result<()> {
        let e = code.e;
        code.set_var(self.tiled.x() as u32, e.add(self.first[0], x)?);
        code.set_var(self.tiled.y as u32, e.add(self.first[1], y)?);
        Ok(())
    }

    fn at(
        &self,
        e: &Emit<'_, 'ctx>,
        b: &Buffer<'ctx>,
        x: Value<'ctx>,
        y: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let number = e.add(e.mul(x, e.int(e.prim_of(x), b.pitch.cast_unsigned()))?, y)?;
        let number = e.resize(number, Prim::I64, false)?;
        e.address(b.base, e.mul(number, e.i64(b.bytes))?)
    }

    /// Loads an element of each transposed load.
    fn read(&self, code: &mut Code<'t, 'm, '_, 'ctx>, y: Value<'ctx>, x: Value<'ctx>) -> Result<()> {
        self.set(code, x, y)?;
        for b in &self.buffers {
            let value = code.value(b.node)?;
            store(&code.e, &value, self.at(&code.e, b, x, y)?)?;
        }
        Ok(())
    }

    /// Computes and stores an element of each result.
    fn write(&self, code: &mut Code<'t, 'm, '_, 'ctx>, x: Value<'ctx>, y: Value<'ctx>) -> Result<()> {
        self.set(code, x, y)?;
        for b in &self.buffers {
            let ty = self.tiled.computed.expr.nodes[b.node as usize].ty;
            let value = load(&code.e, ty, self.at(&code.e, b, x, y)?)?;
            code.set_value(b.node, value);
        }
        let outputs = &self.tiled.computed.outputs;
        let mut values = Vec::with_capacity(outputs.len());
        for (node, _, _) in outputs {
            values.push(code.value(*node)?);
        }
        // Addresses too before anything is stored: they may depend on what is read.
        for (_, array, at) in outputs {
            code.address(*array, at)?;
        }
        values.iter().zip(outputs).try_for_each(|(value, (_, array, at))| code.store(value, *array, at))
    }

    /// [`Block::each`], without limits if the tile is whole: `None`, all are.
    fn all(
        &self,
        code: &mut Code<'t, 'm, '_, 'ctx>,
        whole: Option<Value<'ctx>>,
        limits: [Value<'ctx>; 2],
        body: &dyn Fn(&mut Code<'t, 'm, '_, 'ctx>, Value<'ctx>, Value<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let e = code.e;
        let Some(whole) = whole else { return self.each(code, None, body) };
        e.if_then(whole, || self.each(code, None, body))?;
        e.if_then(e.not(whole)?, || self.each(code, Some(limits), body))
    }

    /// Runs a body for each of the thread's elements of the tile, the first coordinate along lanes; with
    /// limits for those below them alone.
    fn each(
        &self,
        code: &mut Code<'t, 'm, '_, 'ctx>,
        limits: Option<[Value<'ctx>; 2]>,
        body: &dyn Fn(&mut Code<'t, 'm, '_, 'ctx>, Value<'ctx>, Value<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let e = code.e;
        let int = |n: i64| e.int(e.prim_of(self.row), n.cast_unsigned());
        let tile = self.tiled.tile;
        let one = |code: &mut Code<'t, 'm, '_, 'ctx>, fast: Value<'ctx>, slow: Value<'ctx>| -> Result<()> {
            let Some(limits) = limits else { return code.scoped(|code| body(code, fast, slow)) };
            let inside = e.and(
                e.icmp(IntPredicate::SLT, fast, limits[0])?,
                e.icmp(IntPredicate::SLT, slow, limits[1])?,
            )?;
            e.if_then(inside, || code.scoped(|code| body(code, fast, slow)))
        };
        for lane in (0..tile).step_by(LANES as usize) {
            let fast = e.add(self.column, int(lane))?;
            if self.tiled.computed.needed.len() > MAX_UNROLLED_NODES {
                e.for_range(self.row, int(tile), int(ROWS), |slow| one(code, fast, slow))?;
                continue;
            }
            for row in (0..tile).step_by(ROWS as usize) {
                one(code, fast, e.add(self.row, int(row))?)?;
            }
        }
        Ok(())
    }
}

/// Emits an instruction with transposed loads; `None`: it has none.
pub(super) fn emit<'ctx>(
    unit: &Unit<'_, 'ctx>,
    module: &Module,
    id: InstrId,
    symbol: &str,
) -> Result<Option<Kernel>> {
    let Some((tiled, arrays)) = Tiled::new(unit, module, id) else { return Ok(None) };
    let tile = tiled.tile;
    let size = |v: usize| tiled.size(v);
    let (x, y) = (tiled.x(), tiled.y);
    let tiles = |v: usize| (size(v) + tile - 1) / tile;
    let others: Vec<usize> = (0..x).filter(|&v| v != y).collect();
    let blocks = others.iter().map(|&v| size(v)).product::<i64>() * tiles(x) * tiles(y);
    let (e, arguments) = unit.begin(symbol, arrays, 0, THREADS)?;
    let wide = blocks > i64::from(i32::MAX) || (0..=x).any(|v| size(v) > i64::from(i32::MAX) - NARROW_TILE);
    let prim = if wide { Prim::I64 } else { Prim::I32 };
    let int = |n: i64| e.int(prim, n.cast_unsigned());
    let mut code = Code::new(e, &tiled.computed.expr, &arguments);
    let mut rest = block(&e, prim)?;
    let mut part = |n: i64| -> Result<Value<'ctx>> {
        let own = e.urem(rest, int(n))?;
        rest = e.udiv(rest, int(n))?;
        Ok(own)
    };
    let first = [e.mul(part(tiles(x))?, int(tile))?, e.mul(part(tiles(y))?, int(tile))?];
    for &v in others.iter().rev() {
        code.set_var(v as u32, part(size(v))?);
    }
    let mut buffers = Vec::new();
    for (n, &node) in tiled.across.iter().enumerate() {
        let bytes = tiled.computed.expr.nodes[node as usize].ty.storage_bytes() as u32;
        let align = bytes.min(8);
        // Padded so that successive elements of a column are in different banks.
        let pitch = tile + if bytes < 4 { 2 } else { 1 };
        let words = u32::try_from(tile * pitch).unwrap_or(0) * (bytes / align);
        let base = e.shared_array(&format!("{symbol}_tile{n}"), Prim::int(8 * align), words, align)?;
        buffers.push(Buffer { node, base: base.into(), pitch, bytes: bytes.into() });
    }
    let lane = thread(&e, prim)?;
    let (column, row) = (e.urem(lane, int(LANES))?, e.udiv(lane, int(LANES))?);
    let at = Block { tiled: &tiled, buffers, first, column, row };
    // Tiles at the edges are partly empty.
    let mut whole = None;
    let mut limits = [int(tile); 2];
    for ((v, first), limit) in [x, y].into_iter().zip(first).zip(&mut limits) {
        *limit = e.sub(int(size(v)), first)?;
        if size(v) % tile != 0 {
            let fits = e.icmp(IntPredicate::SGE, *limit, int(tile))?;
            whole = Some(whole.map_or(Ok(fits), |whole| e.and(whole, fits))?);
        }
    }
    let [limit_x, limit_y] = limits;
    at.all(&mut code, whole, [limit_y, limit_x], &|code, fast, slow| at.read(code, fast, slow))?;
    e.barrier()?;
    at.all(&mut code, whole, [limit_x, limit_y], &|code, fast, slow| at.write(code, fast, slow))?;
    e.return_void()?;
    let mut kernel = Kernel::default();
    let arguments = (0..arrays).map(Argument::Array).collect();
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, THREADS, arguments)?));
    Ok(Some(kernel))
}
