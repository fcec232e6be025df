//! Loop tiling with transposition: where the innermost variable of a nest strides through an array that
//! another variable reads contiguously, a tile of the array is transposed in registers into a buffer in the
//! L1 cache, and the nest runs over the tile.

use inkwell::values::BasicValueEnum;

use super::code::Code;
use super::lanes::{self, over_lanes};
use super::nest::{Nest, decode, store_all};
use super::{Function, access};
use hlo_llvm::scalar::Val;
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Target, Value};
use hlo_opt::expr::index::{Affine, AtomId, Def};
use hlo_opt::expr::{ALWAYS, Expr, NodeId, Op};

/// Variables: the block of rows, the first column of a tile.
const BLOCK_VAR: u32 = 70;
const FIRST_COLUMN_VAR: u32 = 71;
/// Variables: the first row and column of a register block.
const CORNER: [u32; 2] = [72, 73];

/// Numbers of variables that other kinds of loops use.
const RESERVED_VARS: std::ops::Range<u32> = 60..100;

/// The maximum number of rows of a tile, i.e. of contiguous elements per read. Long pieces of few rows go
/// through memory faster than short pieces of many, which collide in few cache sets if the array's rows are a
/// power of two.
const MAX_TILE_ROWS: i64 = 256;

/// The minimum number of rows of a tile, if there are as many.
const MIN_TILE_ROWS: i64 = 64;

/// The elements of a tile.
const TILE_ELEMENTS: i64 = 8192;

/// Enough units for any number of threads.
const ENOUGH_UNITS: i64 = 16;

/// The number of rows and columns of the largest register block; what is shorter is not transposed.
const REGISTER_BLOCK_ELEMENTS: u32 = 16;

/// The maximum number of operations of an expression that is emitted for each row of a register block.
const MAX_OPS: u64 = 6;

/// The size of a cache line, in bytes.
const CACHE_LINE_BYTES: i64 = 64;

/// The total size of tiles, in bytes.
const TILE_BYTES: i64 = 128 << 10;

/// The loads of a nest that go through tiles.
#[derive(Clone, Debug)]
pub(super) struct Tiles {
    /// The index, among the nest's variables, of the one along which the array is contiguous.
    along: usize,
    /// The loads.
    loads: Vec<NodeId>,
    /// The atoms of the innermost variable and of that one.
    atoms: [AtomId; 2],
    /// Rows and columns of a tile.
    sides: [i64; 2],
}

/// Rows and columns of a tile of elements of that many bytes, for a nest with `others` times that many rows
/// and columns: multiples of the register block, and of the elements of a cache line.
fn sides(others: i64, rows: i64, columns: i64, bytes: i64) -> [i64; 2] {
    let unit = (CACHE_LINE_BYTES / bytes).max(i64::from(REGISTER_BLOCK_ELEMENTS));
    let up = |n: i64| (n + unit - 1) / unit * unit;
    let mut tall = MAX_TILE_ROWS.min(up(rows));
    while tall > MIN_TILE_ROWS && others.saturating_mul(blocks(rows, tall)) < ENOUGH_UNITS {
        tall = up(tall / 2);
    }
    [tall, (TILE_ELEMENTS / tall / unit * unit).clamp(unit, up(columns))]
}

/// Collapses the variables along which an array is contiguous, if the array is to be transposed and the first
/// of them is short: of `x[columns, a, b]` into `y[b, a, columns]` with small `b`. Everything else that
/// depends on one of them computes it from the collapsed variable.
pub(super) fn merge(expr: &mut Expr<'_>, nest: &mut Nest) {
    while let Some([(near, few), (far, many)]) = short_rows(expr, nest) {
        let (Some(first), Some(second)) = (expr.space.atom_of(near), expr.space.atom_of(far)) else { return };
        let Some(total) = few.checked_mul(many) else { return };
        // The contiguous variable's number becomes the collapsed variable's.
        let one = expr.space.next_atom();
        let mut join = |x: &mut Affine| {
            let factor = x.factor(first);
            if factor != 0 && x.factor(second) == factor.wrapping_mul(few) {
                x.terms.retain(|t| t.0 != first && t.0 != second);
                // It has the greatest number, so it comes after all other terms.
                x.terms.push((one, factor));
            }
        };
        expr.for_each_affine(&mut join);
        nest.outputs.iter_mut().for_each(|o| join(&mut o.at));
        let merged = Affine::atom(one);
        expr.space.redefine(first, Def::Mod(merged.clone(), few));
        expr.space.redefine(second, Def::Div(merged.clone(), few));
        let made = expr.space.var(near, total);
        debug_assert_eq!(made, merged, "the atom that follows");
        nest.vars.retain(|v| v.0 != far);
        for v in nest.vars.iter_mut().filter(|v| v.0 == near) {
            v.1 = total;
        }
    }
}

/// The maximum number of variables of a nest that are split.
const MAX_SPLITS: usize = 4;

/// Splits variables by whose quotients and remainders arrays are read, if loads can go through tiles then:
/// for a result in which the dimensions of a transposed array are collapsed. Returns whether they can.
pub(super) fn split(expr: &mut Expr<'_>, nest: &mut Nest) -> bool {
    if divided(expr, nest).is_none() || has_tiles(expr, nest) {
        return false;
    }
    let (mut trial, mut parts) = (expr.clone(), nest.clone());
    for _ in 0..MAX_SPLITS {
        let Some((position, by)) = divided(&trial, &parts) else { break };
        if split_variable(&mut trial, &mut parts, position, by).is_none() {
            break;
        }
    }
    let found = has_tiles(&trial, &parts);
    if found {
        (*expr, *nest) = (trial, parts);
    }
    found
}

/// Whether a nest has tiles once its variables are final.
fn has_tiles(expr: &Expr<'_>, nest: &Nest) -> bool {
    let (mut expr, mut nest) = (expr.clone(), nest.clone());
    nest.join(&mut expr);
    merge(&mut expr, &mut nest);
    Tiles::of(&expr, &nest).is_some()
}

/// A variable's index, and a divisor of all of its values by which some index divides it.
fn divided(expr: &Expr<'_>, nest: &Nest) -> Option<(usize, i64)> {
    nest.vars.iter().enumerate().find_map(|(position, &(var, size))| {
        let all = Affine::atom(expr.space.atom_of(var)?);
        expr.space.atoms.iter().find_map(|atom| match &atom.def {
            Def::Div(x, by) | Def::Mod(x, by) if *x == all && size > *by && size % by == 0 => {
                Some((position, *by))
            }
            Def::Div(..) | Def::Mod(..) | Def::Var(_) | Def::Value(_) => None,
        })
    })
}

/// Splits a variable into its quotient and remainder by a number (strip-mining).
fn split_variable(expr: &mut Expr<'_>, nest: &mut Nest, position: usize, by: i64) -> Option<()> {
    let (var, size) = nest.vars[position];
    let old = expr.space.atom_of(var)?;
    let all = Affine::atom(old);
    let atom_of = |def: Def| expr.space.atoms.iter().position(|a| a.def == def).map(|i| AtomId(i as u32));
    let (quotient, rest) = (atom_of(Def::Div(all.clone(), by)), atom_of(Def::Mod(all, by)));
    // The numbers of variables in use, by this nest or another one, are those of the atoms.
    let mut free = (var + 1..).filter(|&n| !RESERVED_VARS.contains(&n) && expr.space.atom_of(n).is_none());
    let (far, near) = (free.next()?, free.next()?);
    let (outer, inner) = (expr.space.var(far, size / by), expr.space.var(near, by));
    let whole = outer.times(by).merged(&inner);
    let mut replace = |x: &mut Affine| {
        let parts = x.terms.iter().map(|&(atom, factor)| match Some(atom) {
            a if a == Some(old) => whole.times(factor),
            a if a == quotient => outer.times(factor),
            a if a == rest => inner.times(factor),
            _other => Affine::atom(atom).times(factor),
        });
        *x = parts.fold(Affine::constant(x.constant), |sum, part| sum.merged(&part));
    };
    expr.for_each_affine(&mut replace);
    nest.outputs.iter_mut().for_each(|o| replace(&mut o.at));
    // Nothing depends on these any more: redefined, so that they do not keep variables from being collapsed.
    for atom in [quotient, rest].into_iter().flatten() {
        expr.space.redefine(atom, Def::Mod(Affine::default(), by));
    }
    nest.vars.splice(position..=position, [(far, size / by), (near, by)]);
    Some(())
}

/// The variable along which a load to be transposed has a short contiguous run, less than a cache line, and
/// the variable that continues the run, with their sizes, if both together are long enough for a register
/// block.
fn short_rows(expr: &Expr<'_>, nest: &Nest) -> Option<[(u32, i64); 2]> {
    let (&(inner, columns), outer) = nest.vars.split_last()?;
    let inner = expr.space.atom_of(inner)?;
    let found = |n: &NodeId| {
        let Op::Load { array, at, guard: ALWAYS } = &expr.nodes[*n as usize].op else { return None };
        let ty = expr.arrays[*array as usize].shape.element_type;
        if ty.is_complex() || !expr.space.is_of_variables(at) {
            return None;
        }
        let with = |factor: i64| {
            outer
                .iter()
                .copied()
                .find(|&(v, _)| expr.space.atom_of(v).is_some_and(|a| at.factor(a) == factor))
        };
        let near =
            with(1).filter(|near| near.1.saturating_mul(ty.storage_bytes() as i64) < CACHE_LINE_BYTES)?;
        let far = with(near.1)?;
        let apart = at.factor(inner).unsigned_abs() >= near.1.saturating_mul(far.1).unsigned_abs();
        (apart && near.1.saturating_mul(far.1) >= i64::from(REGISTER_BLOCK_ELEMENTS)).then_some([near, far])
    };
    let needed = expr.reachable(nest.outputs.iter().map(|o| o.node));
    (columns >= i64::from(REGISTER_BLOCK_ELEMENTS)).then(|| needed.iter().find_map(found)).flatten()
}

impl Tiles {
    /// The tiles of a nest, if there is something to transpose.
    pub(super) fn of(expr: &Expr<'_>, nest: &Nest) -> Option<Tiles> {
        let (&(inner, columns), outer) = nest.vars.split_last()?;
        let inner = expr.space.atom_of(inner)?;
        if columns < i64::from(REGISTER_BLOCK_ELEMENTS) {
            return None;
        }
        let mut found: Option<Tiles> = None;
        let mut budget = TILE_BYTES;
        for n in expr.reachable(nest.outputs.iter().map(|o| o.node)) {
            let Op::Load { array, at, guard: ALWAYS } = &expr.nodes[n as usize].op else { continue };
            let ty = expr.arrays[*array as usize].shape.element_type;
            if ty.is_complex() || !expr.space.is_of_variables(at) || at.factor(inner).unsigned_abs() < 2 {
                continue;
            }
            let along = outer.iter().position(|&(v, size)| {
                size >= i64::from(REGISTER_BLOCK_ELEMENTS)
                    && expr.space.atom_of(v).is_some_and(|a| at.factor(a) == 1)
            });
            let Some(along) = along else { continue };
            let others = outer.iter().enumerate().filter(|(i, _)| *i != along).map(|(_, v)| v.1);
            let bytes = ty.storage_bytes() as i64;
            let sides = sides(others.fold(1, i64::saturating_mul), outer[along].1, columns, bytes);
            let bytes = sides[0] * sides[1] * bytes;
            if bytes > budget || found.as_ref().is_some_and(|f| f.along != along) {
                continue;
            }
            budget -= bytes;
            let atoms = [inner, expr.space.atom_of(outer[along].0)?];
            found.get_or_insert(Tiles { along, loads: Vec::new(), atoms, sides }).loads.push(n);
        }
        found
    }

    /// The number of units: blocks of rows, for all values of the other variables.
    pub(super) fn units(&self, nest: &Nest) -> u64 {
        let others =
            nest.vars.iter().enumerate().filter(|(i, _)| *i != self.along && *i + 1 != nest.vars.len());
        let others: i64 = others.map(|(_, v)| v.1).product();
        u64::try_from(others * blocks(nest.vars[self.along].1, self.sides[0])).unwrap_or(1)
    }

    /// Emits the function of a nest.
    pub(super) fn emit<'c, 'a, 'ctx, 'm>(
        &self,
        nest: &Nest,
        f: &Function<'a, 'ctx>,
        expr: &'c Expr<'m>,
        target: &Target,
        streaming: bool,
    ) -> Result<()> {
        let [arguments, begin, end] = f.parameters;
        let lanes = lanes::lanes(expr, target, nest.outputs.iter().map(|o| o.node));
        let mut code = Code::new(f.e, expr, lanes, arguments)?;
        let c = &mut code;
        let e = c.e;
        let (row, rows) = nest.vars[self.along];
        let &(column, columns) = nest.vars.last().expect("invariant: a nest with tiles has variables");
        let mut units: Vec<(u32, i64)> = nest.vars[..nest.vars.len() - 1].to_vec();
        units.remove(self.along);
        let [tall, wide] = self.sides;
        units.push((BLOCK_VAR, blocks(rows, tall)));
        let direct = streaming && self.is_direct(nest, expr, lanes, [rows, columns]);
        let mut tiles = Vec::new();
        for &load in &self.loads {
            let Op::Load { array, at, .. } = &expr.nodes[load as usize].op else { continue };
            let ty = expr.arrays[*array as usize].shape.element_type;
            let prim = access::storage(ty).0;
            let step = i64::from(block(lanes));
            let bytes = prim.bytes() as i64;
            let before = if direct || (rows % step == 0 && columns % step == 0) {
                0
            } else {
                ((step + 1) * wide * bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES
                    / bytes
            };
            let elements = if direct { 1 } else { (before + tall * wide) as u32 };
            let start = e.address(e.stack(prim, elements)?.into(), e.i64(before * bytes))?;
            tiles.push(Tile { load, array: *array, at, prim, start, pitch: wide });
        }
        c.mark()?;
        e.for_range(begin, end, e.i64(1), |unit| {
            c.enter()?;
            decode(c, unit, &units)?;
            let low = e.mul(c.var(BLOCK_VAR)?, e.i64(tall))?;
            let high = least(&e, e.add(low, e.i64(tall))?, e.i64(rows))?;
            c.for_var(FIRST_COLUMN_VAR, e.i64(0), e.i64(columns), wide, false, wide, |c| {
                let first = c.var(FIRST_COLUMN_VAR)?;
                let last = least(&e, e.add(first, e.i64(wide))?, e.i64(columns))?;
                let corner = Corner { row, column, low, high, first, last };
                if direct {
                    return self.store_transposed(c, nest, &tiles, &corner, [rows, columns]);
                }
                tiles.iter().try_for_each(|tile| self.fill(c, target, tile, &corner, [rows, columns]))?;
                let count = (columns % wide == 0 || columns < wide).then_some(wide.min(columns));
                let w = i64::from(c.lanes);
                let later =
                    if streaming { self.later(c, &tiles, &corner, [rows, columns])? } else { Vec::new() };
                c.for_var(row, low, high, 1, false, 1, |c| {
                    for (tile, from) in tiles.iter().zip(&later) {
                        let lines = wide * tile.prim.bytes() as i64 / CACHE_LINE_BYTES;
                        let before = e.mul(e.sub(c.var(row)?, low)?, e.i64(lines))?;
                        self.prefetch(&e, tile, *from, before, lines)?;
                    }
                    let starts = tiles.iter().map(|t| t.row(c, &corner)).collect::<Result<Vec<_>>>()?;
                    let level = c.level();
                    over_lanes(c, target, column, first, last, count, w, &|c| {
                        for (tile, &start) in tiles.iter().zip(&starts) {
                            tile.know(c, start, level, self.atoms[0])?;
                        }
                        store_all(c, &nest.outputs, streaming)
                    })
                })
            })?;
            c.leave();
            Ok(())
        })?;
        if streaming {
            e.fence()?;
        }
        e.return_void()
    }

    /// Whether register blocks are transposed and stored from registers, past the caches, a whole cache line
    /// at a time.
    fn is_direct(&self, nest: &Nest, expr: &Expr<'_>, lanes: u32, sides: [i64; 2]) -> bool {
        let bytes = |array: u32| expr.arrays[array as usize].shape.element_type.storage_bytes() as u32;
        let (mut work, mut lines) = (0, true);
        for n in expr.reachable(nest.outputs.iter().map(|o| o.node)) {
            work += expr.flops(n);
            lines &= !expr.branches(n);
        }
        lines &= nest.outputs.iter().all(|o| i64::from(bytes(o.array) * lanes) == CACHE_LINE_BYTES);
        let fills_line = |n: &NodeId| matches!(&expr.nodes[*n as usize].op, Op::Load { array, .. } if i64::from(bytes(*array) * lanes) == CACHE_LINE_BYTES);
        lines
            && self.loads.iter().all(fills_line)
            && work <= MAX_OPS
            && sides.iter().chain(&self.sides).all(|n| n % i64::from(lanes) == 0)
    }

    /// Computes and stores a tile, a register block at a time, and prefetches with each a part of the next
    /// tile: requests issued all at once fill the queue that non-temporal stores wait in.
    fn store_transposed<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        nest: &Nest,
        tiles: &[Tile<'_, 'ctx>],
        corner: &Corner<'ctx>,
        [rows, columns]: [i64; 2],
    ) -> Result<()> {
        let (e, step) = (c.e, i64::from(c.lanes));
        let strides: Vec<i64> = tiles.iter().map(|t| t.stride(self.atoms[0])).collect();
        let later = self.later(c, tiles, corner, [rows, columns])?;
        c.for_var(CORNER[0], corner.low, corner.high, step, false, step, |c| {
            c.for_var(CORNER[1], corner.first, corner.last, step, false, step, |c| {
                let wide = e.with_lanes(c.lanes);
                let (row, column) = (c.var(CORNER[0])?, c.var(CORNER[1])?);
                let mut squares = Vec::new();
                for ((tile, from), stride) in
                    tiles.iter().zip(corner.at_corner(c, tiles, row, column)?).zip(&strides)
                {
                    let mut all = Vec::new();
                    for r in 0..step {
                        let at = e.address(from, e.i64(stride.wrapping_mul(r)))?;
                        all.push(wide.load(tile.prim, at, tile.prim.bytes() as u32)?);
                    }
                    transposed(&wide, &mut all)?;
                    squares.push(all);
                }
                let before = e.mul(e.sub(row, corner.low)?, e.i64(self.sides[1] / step))?;
                let before = e.add(before, e.sub(column, corner.first)?)?;
                for (tile, from) in tiles.iter().zip(&later) {
                    self.prefetch(&e, tile, *from, before, step)?;
                }
                for r in 0..step {
                    c.enter()?;
                    c.set_var(corner.row, e.add(row, e.i64(r))?, false, 1);
                    c.set_var(corner.column, column, true, step);
                    for (tile, square) in tiles.iter().zip(&squares) {
                        let ty = c.expr.nodes[tile.load as usize].ty;
                        let value = Val::of_storage(&wide, ty, &[square[r as usize]])?;
                        c.know(tile.load, value);
                    }
                    store_all(c, &nest.outputs, true)?;
                    c.leave();
                }
                Ok(())
            })
        })
    }

    /// The start of the loads of the next tile: the adjacent one, else in the next block of rows; after the
    /// last tile, this tile again.
    fn later<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        tiles: &[Tile<'_, 'ctx>],
        corner: &Corner<'ctx>,
        [rows, columns]: [i64; 2],
    ) -> Result<Vec<Value<'ctx>>> {
        let e = c.e;
        let beside = e.icmp(IntPredicate::SLT, corner.last, e.i64(columns))?;
        let below = e.icmp(IntPredicate::SLT, corner.high, e.i64(rows))?;
        let next = e.select(below, corner.high, corner.low)?;
        let first = e.select(below, e.i64(0), corner.first)?;
        let row = e.select(beside, corner.low, next)?;
        let column = e.select(beside, corner.last, first)?;
        corner.at_corner(c, tiles, row, column)
    }

    /// Prefetches that many cache lines of the next tile, after the first `before`, one contiguous piece
    /// after the other, which is the fastest order for memory.
    fn prefetch<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        tile: &Tile<'_, 'ctx>,
        from: Value<'ctx>,
        before: Value<'ctx>,
        lines: i64,
    ) -> Result<()> {
        // Elements narrower than those that the tiles were sized for may be less than a line.
        let piece = e.i64((self.sides[0] * tile.prim.bytes() as i64 / CACHE_LINE_BYTES).max(1));
        let stride = tile.stride(self.atoms[0]);
        e.for_range(e.i64(0), e.i64(lines), e.i64(1), |line| {
            let line = e.add(before, line)?;
            let column = e.udiv(line, piece)?;
            let along = e.mul(e.sub(line, e.mul(column, piece)?)?, e.i64(CACHE_LINE_BYTES))?;
            let at = e.address(from, e.add(e.mul(column, e.i64(stride))?, along)?)?;
            e.prefetch_far(at, 1)
        })
    }

    /// Fills a tile of an array of that many rows and columns, register block by register block. The last
    /// block of a row or column may begin before the tile: it ends where the tile ends, and its elements from
    /// before the tile go where no other element is.
    fn fill<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        target: &Target,
        tile: &Tile<'_, 'ctx>,
        corner: &Corner<'ctx>,
        sizes: [i64; 2],
    ) -> Result<()> {
        let (e, block) = (c.e, block(c.lanes));
        let step = i64::from(block);
        if block == 1 || sizes.iter().any(|&n| n < step) {
            return gather(c, target, tile, corner, self.atoms[0]);
        }
        let bytes = tile.prim.bytes() as i64;
        let stride = tile.stride(self.atoms[0]);
        c.for_var(CORNER[1], corner.first, corner.last, step, false, step, |c| {
            c.for_var(CORNER[0], corner.low, corner.high, step, false, step, |c| {
                c.enter()?;
                let ends = [corner.high, corner.last];
                for (i, var) in [corner.row, corner.column].into_iter().enumerate() {
                    let at = c.var(CORNER[i])?;
                    if sizes[i] % step == 0 {
                        c.set_var(var, at, false, step);
                    } else {
                        let latest = e.sub(ends[i], e.i64(step))?;
                        c.set_var(var, least(&e, at, latest)?, false, 1);
                    }
                }
                let from = c.addresses(tile.array, tile.at)?.address;
                let wide = e.with_lanes(block);
                let mut all = Vec::new();
                for r in 0..step {
                    let at = e.address(from, e.i64(stride.wrapping_mul(r)))?;
                    all.push(wide.load(tile.prim, at, bytes as u32)?);
                }
                transposed(&wide, &mut all)?;
                let (row, column) = (c.var(corner.row)?, c.var(corner.column)?);
                let down = e.mul(e.sub(row, corner.low)?, e.i64(tile.pitch))?;
                let at = e.mul(e.add(down, e.sub(column, corner.first)?)?, e.i64(bytes))?;
                let to = e.address(tile.start, at)?;
                for (r, x) in all.into_iter().enumerate() {
                    wide.store(x, e.address(to, e.i64(r as i64 * tile.pitch * bytes))?, bytes as u32)?;
                }
                c.leave();
                Ok(())
            })
        })
    }
}

/// Rows and columns of a register block.
fn block(lanes: u32) -> u32 {
    lanes.min(REGISTER_BLOCK_ELEMENTS)
}

/// The minimum of two numbers.
fn least<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    e.select(e.icmp(IntPredicate::SLT, a, b)?, a, b)
}

fn blocks(rows: i64, tall: i64) -> i64 {
    (rows + tall - 1) / tall
}

/// The position of a tile: variables and their values.
struct Corner<'ctx> {
    row: u32,
    column: u32,
    low: Value<'ctx>,
    high: Value<'ctx>,
    first: Value<'ctx>,
    last: Value<'ctx>,
}

impl<'ctx> Corner<'ctx> {
    /// The addresses of the loads of tiles at a row and a column.
    fn at_corner(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        tiles: &[Tile<'_, 'ctx>],
        row: Value<'ctx>,
        column: Value<'ctx>,
    ) -> Result<Vec<Value<'ctx>>> {
        c.enter()?;
        c.set_var(self.row, row, false, 1);
        c.set_var(self.column, column, false, 1);
        let all = tiles.iter().map(|t| Ok(c.addresses(t.array, t.at)?.address)).collect();
        c.leave();
        all
    }
}

/// A load and the buffer of its tile.
struct Tile<'t, 'ctx> {
    load: NodeId,
    array: u32,
    at: &'t Affine,
    prim: Prim,
    start: Value<'ctx>,
    /// Elements from one row to the next.
    pitch: i64,
}

impl<'ctx> Tile<'_, 'ctx> {
    /// Bytes from an element to the one that the next column needs.
    fn stride(&self, column: AtomId) -> i64 {
        self.at.factor(column).wrapping_mul(self.prim.bytes() as i64)
    }

    /// The address of column 0 in the current row.
    fn row(&self, c: &Code<'_, '_, 'ctx, '_>, corner: &Corner<'ctx>) -> Result<Value<'ctx>> {
        let e = c.e;
        let down = e.mul(e.sub(c.var(corner.row)?, corner.low)?, e.i64(self.pitch))?;
        let at = e.mul(e.sub(down, corner.first)?, e.i64(self.prim.bytes() as i64))?;
        e.address(self.start, at)
    }

    /// Defines the value of the load.
    fn know(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        row: Value<'ctx>,
        level: usize,
        column: AtomId,
    ) -> Result<()> {
        let bytes = self.prim.bytes() as i64;
        let address = c.addresses_from(row, level, &Affine::atom(column), bytes)?.address;
        let ty = c.expr.nodes[self.load as usize].ty;
        let e = c.e.with_lanes(c.lanes);
        let value = Val::of_storage(&e, ty, &[e.load(self.prim, address, bytes as u32)?])?;
        c.know(self.load, value);
        Ok(())
    }
}

/// Fills a tile element by element.
fn gather<'c, 'a, 'ctx, 'm>(
    c: &mut Code<'c, 'a, 'ctx, 'm>,
    target: &Target,
    tile: &Tile<'_, 'ctx>,
    corner: &Corner<'ctx>,
    column: AtomId,
) -> Result<()> {
    let w = i64::from(c.lanes);
    let &Corner { low, high, first, last, .. } = corner;
    c.for_var(corner.row, low, high, 1, false, 1, |c| {
        let start = tile.row(c, corner)?;
        let level = c.level();
        over_lanes(
            c,
            target,
            corner.column,
            first,
            last,
            None,
            w.min(i64::from(REGISTER_BLOCK_ELEMENTS)),
            &|c| {
                let value = c.load(tile.array, tile.at)?;
                let address =
                    c.addresses_from(start, level, &Affine::atom(column), tile.prim.bytes() as i64)?.address;
                let e = c.e.with_lanes(c.lanes);
                let stored = value.to_storage(&e)?[0];
                match c.active {
                    Some(active) => e.store_masked(stored, address, tile.prim.bytes() as u32, active.value),
                    None => e.store(stored, address, tile.prim.bytes() as u32).map(|_| ()),
                }
            },
        )
    })
}

/// A register transpose: lane `l` of vector `v` becomes lane `v` of vector `l`, of as many vectors as each
/// has lanes.
pub(super) fn transposed<'ctx>(e: &Emit<'_, 'ctx>, rows: &mut [BasicValueEnum<'ctx>]) -> Result<()> {
    let n = rows.len() as u32;
    let halves = std::iter::successors(Some(n / 2), |s| Some(s / 2)).take_while(|&s| s > 0);
    for (depth, s) in (0..).zip(halves) {
        for row in rows.iter_mut() {
            *row = e.after_shuffles(*row, depth)?;
        }
        let low: Vec<u32> = (0..n).map(|l| if l & s == 0 { l } else { n + l - s }).collect();
        let high: Vec<u32> = (0..n).map(|l| if l & s == 0 { l + s } else { n + l }).collect();
        for r in (0..n).filter(|r| r & s == 0) {
            let (a, b) = (rows[r as usize], rows[(r + s) as usize]);
            rows[r as usize] = e.shuffle(a, b, &low)?;
            rows[(r + s) as usize] = e.shuffle(a, b, &high)?;
        }
    }
    Ok(())
}
