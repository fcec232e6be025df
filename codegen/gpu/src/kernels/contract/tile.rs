//! Tiled GEMM: a block of threads computes a tile of the result, and each thread a register tile of it, from
//! tiles of the operands in shared memory. While one pair of tiles is multiplied the next one is loaded into
//! registers (software pipelining).
//!
//! A tile of an operand is in shared memory term by term, whatever its layout in memory, so that a thread
//! reads its rows or columns in accesses of 16 bytes. What is past the last row or column repeats another one
//! that exists, and is never stored; the terms that fill no tile come first, padded with zeros, so no access
//! of the loop has a condition. With split-K, blocks take a part of the terms each, their sums go to scratch
//! memory, and a second kernel adds them, in order.

use hlo::{InstrId, Module};
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Axis, Emit, FloatPredicate, IntPredicate, Prim, Result, Special, Value};
use inkwell::attributes::AttributeLoc;

use super::epilogue::Epilogue;
use super::loader::{Loader, joined};
use super::source::Source;
use super::{Field, Words, simple};
use crate::arch::Arch;
use crate::compile::Products;
use crate::kernel::{Argument, Kernel, Stage};
use crate::kernels::{Unit, launch};

/// Sizes of tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tile {
    /// Rows of a block's tile.
    pub(crate) rows: i64,
    /// Its columns.
    pub(crate) columns: i64,
    /// Terms per tile in shared memory.
    pub(crate) terms: i64,
    /// Rows and columns of a thread's tile.
    pub(crate) own: [i64; 2],
    /// The efficiency of a multiprocessor that is full of such blocks, in percent.
    efficiency: i64,
}

impl Tile {
    /// Threads of a block.
    pub(crate) fn threads(&self) -> i64 {
        self.rows / self.own[0] * (self.columns / self.own[1])
    }
}

/// Tiles of words of 4 bytes.
const TILES: [Tile; 3] = [
    Tile { rows: 128, columns: 128, terms: 8, own: [8, 8], efficiency: 80 },
    Tile { rows: 64, columns: 64, terms: 16, own: [4, 4], efficiency: 55 },
    Tile { rows: 32, columns: 32, terms: 16, own: [4, 4], efficiency: 35 },
];

/// Tiles of words of 8 bytes.
const WIDE_TILES: [Tile; 2] = [
    Tile { rows: 64, columns: 64, terms: 16, own: [4, 4], efficiency: 70 },
    Tile { rows: 32, columns: 32, terms: 16, own: [4, 4], efficiency: 40 },
];

/// The lanes of a warp are arranged in that many rows and columns of threads.
const LANES: [i64; 2] = [4, 8];

/// The overhead of a launch, in seconds.
pub(crate) const LAUNCH_SECONDS: f64 = 3e-6;

/// The rate of a multiprocessor, in multiply-adds per second.
const FMA_PER_SECOND: f64 = 128.0 * 1.7e9;

/// Products of matrices as tiles.
pub(crate) struct Tiled<'a> {
    /// The arithmetic: of real numbers.
    pub(crate) words: Words,
    /// Left and right operand.
    pub(crate) sources: [&'a dyn Source; 2],
    /// Batch, rows, columns.
    pub(crate) magnitudes: [i64; 3],
    /// Terms of each sum.
    pub(crate) terms: i64,
    /// Arguments of the kernel that are only read: the first ones.
    pub(crate) reads: u32,
}

/// The plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) tile: Tile,
    /// Split-K: parts of the terms.
    pub(crate) split: i64,
}

/// Computes elements of the result another way where they are NaN.
pub(crate) type Repair<'a> = &'a dyn Repairs;

/// See [`Repair`].
pub(crate) trait Repairs {
    /// The sum at a batch, row and column (all `i32`).
    fn sum<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        at: [Value<'ctx>; 3],
    ) -> Result<Val<'ctx>>;
}

pub(crate) fn ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

/// Whether words of a field are multiplied in tiles.
pub(crate) fn has_tiles(field: Field) -> bool {
    match field {
        Field::F32 | Field::F64 | Field::I32 | Field::I64 => true,
        Field::Pred | Field::C64 | Field::C128 => false,
    }
}

/// The fastest plan, by a cost estimate, and its time in seconds.
pub(crate) fn plan(
    arch: Arch,
    products: Products,
    words: &Words,
    [batch, m, n]: [i64; 3],
    terms: i64,
) -> (Plan, f64) {
    let figures = arch.figures();
    let word_bytes = words.word().storage_bytes() as i64;
    let tiles: &[Tile] = if word_bytes == 8 { &WIDE_TILES } else { &TILES };
    let processors = i64::from(figures.multiprocessors);
    let mut best: Option<(Plan, f64)> = None;
    let is_wanted = |tile: &&Tile| {
        products.tile == Some(tile.rows) || tiles.iter().all(|t| products.tile != Some(t.rows))
    };
    for &tile in tiles.iter().filter(is_wanted) {
        let blocks = batch * ceil(m, tile.rows) * ceil(n, tile.columns);
        let steps = ceil(terms, tile.terms).max(1);
        let splits = match products.split {
            Some(split) => vec![split],
            None => vec![1, 2, 4, 8, 16, 32, 64],
        };
        // What fills the device is not split.
        let most = if blocks >= 2 * processors { 1 } else { steps };
        for split in splits.into_iter().filter(|&s| s <= most || products.split.is_some()) {
            let per = ceil(steps, split.clamp(1, steps));
            let parts = ceil(steps, per);
            let waves = ceil(blocks * parts, processors);
            let wide = if word_bytes == 8 { 0.5 } else { 1.0 };
            let rate = FMA_PER_SECOND * wide * tile.efficiency as f64 / 100.0;
            // One block alone does not keep a multiprocessor busy.
            let alone = if waves == 1 { 1.5 } else { 1.0 };
            let work = (tile.rows * tile.columns * tile.terms * (per + 2)) as f64;
            let mut seconds = waves as f64 * work * alone / rate;
            if parts > 1 {
                let bytes = (2 * parts * batch * m * n * word_bytes) as f64;
                seconds += LAUNCH_SECONDS + bytes / figures.bytes_per_second;
            }
            if best.is_none_or(|(_, least)| seconds < least) {
                best = Some((Plan { tile, split: parts }, seconds));
            }
        }
    }
    best.expect("invariant: there are tiles")
}

/// Tells ptxas how many blocks a multiprocessor is to hold.
pub(crate) fn set_blocks_per_processor(e: &Emit<'_, '_>, blocks: u32) {
    let attribute = e.context.create_string_attribute("nvvm.minctasm", &blocks.to_string());
    e.function.add_attribute(AttributeLoc::Function, attribute);
}

/// Rasterization: blocks of columns of the result in groups of that many rows of blocks, which share the
/// right operand in the cache.
const GROUP: i64 = 8;

/// The tile of a block: part of the terms, batch, row and column of tiles. All are `i32`.
pub(crate) fn block_tile<'ctx>(
    e: &Emit<'_, 'ctx>,
    [rows, columns]: [i64; 2],
    batch: i64,
) -> Result<[Value<'ctx>; 4]> {
    let of = |x: i64| e.i32(x as i32);
    let block = e.special(Special::Ctaid(Axis::X))?;
    let (number, rest) = (e.urem(block, of(rows * columns))?, e.udiv(block, of(rows * columns))?);
    let (at, part) = (e.urem(rest, of(batch))?, e.udiv(rest, of(batch))?);
    if rows == 1 || columns == 1 {
        return Ok([part, at, e.udiv(number, of(columns))?, e.urem(number, of(columns))?]);
    }
    let in_group = of(GROUP * columns);
    let first = e.mul(e.udiv(number, in_group)?, of(GROUP))?;
    let inside = e.urem(number, in_group)?;
    let left = e.sub(of(rows), first)?;
    let size = e.select(e.icmp(IntPredicate::ULT, left, of(GROUP))?, left, of(GROUP))?;
    let row = e.add(first, e.urem(inside, size)?)?;
    Ok([part, at, row, e.udiv(inside, size)?])
}

/// Emits it.
#[expect(clippy::too_many_arguments, reason = "what a kernel is made of")]
pub(crate) fn emit<'m>(
    unit: &Unit<'_, '_>,
    module: &Module,
    id: InstrId,
    symbol: &str,
    arrays: u32,
    tiled: &Tiled<'_>,
    plan: Plan,
    epilogue: &dyn Fn(u32) -> std::result::Result<Epilogue<'m>, hlo_codegen::Unsupported>,
    repair: Option<Repair<'_>>,
    kernel: &mut Kernel,
) -> Result<()> {
    let Tiled { words, sources, magnitudes: [batch, m, n], terms, .. } = *tiled;
    let Plan { tile, split } = plan;
    let prim = scalar::register(words.word());
    let word_bytes = prim.bytes() as i64;
    let threads = tile.threads();
    let steps = ceil(terms, tile.terms);
    let per = ceil(steps, split);
    let grid = [ceil(m, tile.rows), ceil(n, tile.columns)];
    let blocks = split * batch * grid[0] * grid[1];
    let is_split = split > 1;
    let all_arrays = arrays + u32::from(is_split);
    let (e, arguments) = unit.begin_apart(symbol, tiled.reads, all_arrays - tiled.reads, threads as u32)?;
    if threads == 256 && word_bytes == 4 {
        set_blocks_per_processor(&e, 2);
    }
    let of = |x: i64| e.i32(x as i32);
    let loaders = [
        Loader::new(sources[0], tile.rows, tile.terms, m, threads, word_bytes),
        Loader::new(sources[1], tile.columns, tile.terms, n, threads, word_bytes),
    ];
    let sizes = loaders.each_ref().map(Loader::words);
    let stage = (sizes[0] + sizes[1]) * word_bytes;
    let shared: Value<'_> =
        e.shared_array(&format!("{symbol}_tiles"), Prim::I8, (2 * stage) as u32, 16)?.into();

    let thread = e.special(Special::Tid(Axis::X))?;
    let [part, at, block_row, block_column] = block_tile(&e, grid, batch)?;
    let first_row = e.mul(block_row, of(tile.rows))?;
    let first_column = e.mul(block_column, of(tile.columns))?;
    // The terms that fill no tile come first.
    let rest = terms - (steps - 1) * tile.terms;
    let (begin, valid, count) = if is_split {
        let first = e.mul(part, of(per))?;
        let is_first = e.icmp(IntPredicate::EQ, part, of(0))?;
        let begin = e.sub(e.mul(first, of(tile.terms))?, of(tile.terms - rest))?;
        let begin = e.select(is_first, of(0), begin)?;
        let valid = e.select(is_first, of(rest), of(tile.terms))?;
        let left = e.sub(of(steps), first)?;
        let count = e.select(e.icmp(IntPredicate::ULT, left, of(per))?, left, of(per))?;
        (begin, valid, count)
    } else {
        (of(0), of(rest), of(steps))
    };
    let is_ragged = rest < tile.terms;

    // The position of a thread: lanes of a warp in 4 rows and 8 columns.
    let across = tile.columns / tile.own[1] / LANES[1];
    let (warp, lane) = (e.lshr(thread, of(5))?, e.and(thread, of(31))?);
    let row_of = e.add(e.mul(e.udiv(warp, of(across))?, of(LANES[0]))?, e.udiv(lane, of(LANES[1]))?)?;
    let column_of = e.add(e.mul(e.urem(warp, of(across))?, of(LANES[1]))?, e.urem(lane, of(LANES[1]))?)?;
    // Own rows are groups of as many as an access has.
    let wide = 16 / word_bytes;
    let own = Own {
        tile,
        wide,
        prim,
        row: row_of,
        column: column_of,
        pitches: [loaders[0].pitch, loaders[1].pitch],
    };

    let loading = [
        loaders[0].begin(&e, thread, at, first_row, &arguments)?,
        loaders[1].begin(&e, thread, at, first_column, &arguments)?,
    ];
    let second = e.address_at(shared, (sizes[0] * word_bytes).cast_unsigned())?;
    let bases = [shared, second];
    let mut pointers = Vec::new();
    let next = e.add(begin, valid)?;
    for side in 0..2 {
        let ragged = is_ragged.then_some(valid);
        let loaded = loaders[side].load_first(&e, &words, &loading[side], begin, ragged)?;
        loaders[side].store(&e, &loading[side], bases[side], &loaded)?;
        pointers.push(loaders[side].pointers(&e, &loading[side], next)?);
    }
    e.barrier()?;
    let starts: Vec<Value<'_>> = own.starts(&e, bases)?.to_vec();
    let zero = words.zero(&e).registers()[0];
    let sums = vec![zero; (tile.own[0] * tile.own[1]) as usize];
    let (left, right) = (pointers[0].len(), pointers[1].len());
    let carried: Vec<Value<'_>> = pointers.concat().into_iter().chain(sums).collect();
    let last = e.sub(count, of(1))?;
    let after = e.for_carried(of(0), last, of(1), &carried, |step, carried| {
        let (pointers, sums) = carried.split_at(left + right);
        let which = e.and(step, of(1))?;
        let from = e.mul(e.zext(which, Prim::I64)?, e.i64(stage))?;
        let to = e.sub(e.i64(stage), from)?;
        let begin = e.add(next, e.mul(step, of(tile.terms))?)?;
        let loaded = [
            loaders[0].load_tile(&e, &words, &loading[0], &pointers[..left], begin)?,
            loaders[1].load_tile(&e, &words, &loading[1], &pointers[left..], begin)?,
        ];
        let here = [e.address(starts[0], from)?, e.address(starts[1], from)?];
        let sums = own.multiply(&e, &words, here, sums)?;
        for side in 0..2 {
            loaders[side].store(&e, &loading[side], e.address(bases[side], to)?, &loaded[side])?;
        }
        e.barrier()?;
        let mut all = Vec::with_capacity(carried.len());
        for (i, &pointer) in pointers.iter().enumerate() {
            let loader = &loaders[usize::from(i >= left)];
            all.push(e.address(pointer, e.i64(loader.advance()))?);
        }
        all.extend(sums);
        Ok(all)
    })?;
    let which = e.zext(e.and(last, of(1))?, Prim::I64)?;
    let from = e.mul(which, e.i64(stage))?;
    let here = [e.address(starts[0], from)?, e.address(starts[1], from)?];
    let sums = own.multiply(&e, &words, here, &after[left + right..])?;

    let width = if n % wide == 0 { wide } else { 1 };
    let result = Results { words, magnitudes: [batch, m, n], tile, wide, width };
    let firsts = [first_row, first_column];
    if is_split {
        let partials = arguments[arrays as usize];
        result.each(&e, &own, firsts, &sums, false, &mut |e, row, column, sums| {
            let line = e.add(e.mul(part, of(batch))?, at)?;
            let wide = |x| e.zext(x, Prim::I64);
            let line = e.add(e.mul(wide(line)?, e.i64(m))?, wide(row)?)?;
            let offset = e.add(e.mul(line, e.i64(n))?, wide(column)?)?;
            let address = e.address(partials, e.mul(offset, e.i64(word_bytes))?)?;
            e.store(joined(e, sums)?, address, (sums.len() as i64 * word_bytes) as u32).map(|_| ())
        })?;
    } else {
        let epilogue = epilogue(width as u32)?;
        let sums = match repair {
            Some(repair) => result.repaired(&e, &own, firsts, sums, at, repair, &arguments)?,
            None => sums,
        };
        let is_long = epilogue.is_long();
        result.each(&e, &own, firsts, &sums, is_long, &mut |e, row, column, sums| {
            let group = e.udiv(column, of(width))?;
            let sums = sums.iter().map(|&x| words.finish(e, words.of_registers(&[x])));
            let elements = sums.collect::<Result<Vec<_>>>()?;
            epilogue.store(*e, &arguments, [at, row, group], &elements)
        })?;
    }
    e.return_void()?;
    let all: Vec<Argument> = (0..all_arrays).map(Argument::Array).collect();
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, threads as u32, all.clone())?));
    if is_split {
        kernel.scratch_bytes = (split * batch * m * n * word_bytes).cast_unsigned();
        let symbol = format!("{symbol}_sum");
        let blocks = emit_sum(unit, &symbol, all_arrays, tiled, split, &epilogue(width as u32)?, repair)?;
        kernel.stages.push(Stage::Launch(launch(module, id, &symbol, blocks, simple::THREADS, all)?));
    }
    Ok(())
}

/// Emits the kernel that adds the sums of parts, in order; returns its blocks.
pub(crate) fn emit_sum(
    unit: &Unit<'_, '_>,
    symbol: &str,
    arrays: u32,
    tiled: &Tiled<'_>,
    split: i64,
    epilogue: &Epilogue<'_>,
    repair: Option<Repair<'_>>,
) -> Result<i64> {
    let Tiled { words, magnitudes: [batch, m, n], .. } = *tiled;
    let width = i64::from(epilogue.width);
    let prim = scalar::register(words.word());
    let elements = batch * m * n;
    let threads = elements / width;
    let (e, arguments) = unit.begin_apart(symbol, tiled.reads, arrays - tiled.reads, simple::THREADS)?;
    let partials = arguments[arrays as usize - 1];
    let bytes = prim.bytes() as i64;
    simple::each_thread(&e, threads, Prim::I32, |thread| {
        let of = |x: i64| e.i32(x as i32);
        let first = e.mul(e.zext(thread, Prim::I64)?, e.i64(width * bytes))?;
        let pointer = e.address(partials, first)?;
        let v = e.with_lanes(width as u32);
        let load = |pointer| -> Result<Vec<Value<'_>>> {
            let all = v.load(prim, pointer, (width * bytes) as u32)?;
            (0..width as u32).map(|lane| e.extract(all, lane)).collect()
        };
        let carried = [vec![pointer], load(pointer)?].concat();
        let sums = e.for_carried(of(1), of(split), of(1), &carried, |_, carried| {
            let pointer = e.address(carried[0], e.i64(elements * bytes))?;
            let mut next = vec![pointer];
            for (&sum, x) in carried[1..].iter().zip(load(pointer)?) {
                let of = |x| words.of_registers(&[x]);
                next.push(words.add(&e, &of(sum), &of(x))?.registers()[0]);
            }
            Ok(next)
        })?;
        let groups = of(n / width);
        let (group, line) = (e.urem(thread, groups)?, e.udiv(thread, groups)?);
        let (row, at) = (e.urem(line, of(m))?, e.udiv(line, of(m))?);
        let mut elements = Vec::new();
        for (c, &sum) in (0..).zip(&sums[1..]) {
            let mut sum = words.of_registers(&[sum]);
            if let Some(repair) = repair {
                let column = e.add(e.mul(group, of(width))?, of(c))?;
                let x = sum.registers()[0];
                let is_nan = e.fcmp(FloatPredicate::UNO, x, x)?;
                let again = || Ok(repair.sum(&e, &arguments, [at, row, column])?.registers());
                sum = words.of_registers(&e.if_else(is_nan, again, || Ok(vec![x]))?);
            }
            elements.push(words.finish(&e, sum)?);
        }
        epilogue.store(e, &arguments, [at, row, group], &elements)
    })?;
    Ok(simple::blocks(threads))
}

/// The tile of a thread.
struct Own<'ctx> {
    tile: Tile,
    /// Words of an access.
    wide: i64,
    prim: Prim,
    row: Value<'ctx>,
    column: Value<'ctx>,
    pitches: [i64; 2],
}

impl<'ctx> Own<'ctx> {
    /// Groups of own rows and columns, and how far they are apart.
    fn groups(&self) -> [(i64, i64); 2] {
        let of = |own: i64, all: i64| (own / self.wide, all / (own / self.wide));
        [of(self.tile.own[0], self.tile.rows), of(self.tile.own[1], self.tile.columns)]
    }

    /// Addresses of the first own row and column in the tiles.
    fn starts(&self, e: &Emit<'_, 'ctx>, bases: [Value<'ctx>; 2]) -> Result<[Value<'ctx>; 2]> {
        let bytes = self.wide * self.prim.bytes() as i64;
        let at = |base, x| e.address(base, e.mul(e.zext(x, Prim::I64)?, e.i64(bytes))?);
        Ok([at(bases[0], self.row)?, at(bases[1], self.column)?])
    }

    /// Adds the products of the tiles at these addresses.
    fn multiply(
        &self,
        e: &Emit<'_, 'ctx>,
        words: &Words,
        starts: [Value<'ctx>; 2],
        sums: &[Value<'ctx>],
    ) -> Result<Vec<Value<'ctx>>> {
        let mut sums = sums.to_vec();
        let bytes = self.prim.bytes() as i64;
        let v = e.with_lanes(self.wide as u32);
        for term in 0..self.tile.terms {
            let mut own = [Vec::new(), Vec::new()];
            for (side, (groups, far)) in self.groups().into_iter().enumerate() {
                for group in 0..groups {
                    let offset = (term * self.pitches[side] + group * far) * bytes;
                    let address = e.address_at(starts[side], offset.cast_unsigned())?;
                    let all = v.load(self.prim, address, 16)?;
                    for lane in 0..self.wide as u32 {
                        own[side].push(e.extract(all, lane)?);
                    }
                }
            }
            let [rows, columns] = own;
            for (i, &a) in rows.iter().enumerate() {
                for (j, &b) in columns.iter().enumerate() {
                    let sum = &mut sums[i * columns.len() + j];
                    *sum = match words.field {
                        Field::F32 | Field::F64 => e.fma(a, b, *sum)?,
                        Field::I32 | Field::I64 | Field::Pred | Field::C64 | Field::C128 => {
                            e.add(*sum, e.mul(a, b)?)?
                        }
                    };
                }
            }
        }
        Ok(sums)
    }
}

/// Takes row, first column, and the sums of some neighbouring columns.
type Store<'f, 'ctx> =
    &'f mut dyn FnMut(&Emit<'_, 'ctx>, Value<'ctx>, Value<'ctx>, &[Value<'ctx>]) -> Result<()>;

/// The destination of sums.
struct Results {
    words: Words,
    magnitudes: [i64; 3],
    tile: Tile,
    /// Neighbouring columns of a thread.
    wide: i64,
    /// The number of them that are taken at once.
    width: i64,
}

impl Results {
    /// Calls with row, first column, and the sums of some neighbouring columns, inside of the result.
    /// `is_rolled`: in a loop over rows, where sums move to the registers of those that were taken.
    fn each<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        own: &Own<'ctx>,
        [first_row, first_column]: [Value<'ctx>; 2],
        sums: &[Value<'ctx>],
        is_rolled: bool,
        f: Store<'_, 'ctx>,
    ) -> Result<()> {
        let [_, m, n] = self.magnitudes;
        let [own_rows, columns] = self.tile.own;
        let mut line = |i: Value<'ctx>, sums: &[Value<'ctx>]| -> Result<()> {
            let row = e.add(first_row, self.index(e, own, 0, i)?)?;
            guarded(e, m, self.tile.rows, row, &mut || {
                for j in (0..columns).step_by(self.width as usize) {
                    let column = e.add(first_column, self.index(e, own, 1, e.i32(j as i32))?)?;
                    let some = &sums[j as usize..(j + self.width) as usize];
                    guarded(e, n, self.tile.columns, column, &mut || f(e, row, column, some))?;
                }
                Ok(())
            })
        };
        if is_rolled {
            e.for_carried(e.i32(0), e.i32(own_rows as i32), e.i32(1), sums, |i, sums| {
                line(i, sums)?;
                Ok(rotated(sums, columns as usize))
            })?;
            return Ok(());
        }
        for (i, sums) in (0..).zip(sums.chunks(columns as usize)) {
            line(e.i32(i), sums)?;
        }
        Ok(())
    }

    /// The row or column in the block's tile of an own one: groups of own ones are apart.
    fn index<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        own: &Own<'ctx>,
        side: usize,
        index: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let of = |x: i64| e.i32(x as i32);
        let (_, far) = own.groups()[side];
        let position = e.mul([own.row, own.column][side], of(self.wide))?;
        let group = e.mul(e.udiv(index, of(self.wide))?, of(far))?;
        e.add(position, e.add(group, e.urem(index, of(self.wide))?)?)
    }

    /// With those that are NaN computed again: rarely, so in a loop over all of them.
    #[expect(clippy::too_many_arguments, reason = "what a kernel is made of")]
    fn repaired<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        own: &Own<'ctx>,
        [first_row, first_column]: [Value<'ctx>; 2],
        sums: Vec<Value<'ctx>>,
        at: Value<'ctx>,
        repair: Repair<'_>,
        arguments: &[Value<'ctx>],
    ) -> Result<Vec<Value<'ctx>>> {
        let of = |x: i64| e.i32(x as i32);
        let [_, own_columns] = self.tile.own;
        let [_, m, n] = self.magnitudes;
        repaired(e, &sums, &mut |number| {
            let (i, j) = (e.udiv(number, of(own_columns))?, e.urem(number, of(own_columns))?);
            let row = e.add(first_row, self.index(e, own, 0, i)?)?;
            let column = e.add(first_column, self.index(e, own, 1, j)?)?;
            let inside =
                e.and(e.icmp(IntPredicate::ULT, row, of(m))?, e.icmp(IntPredicate::ULT, column, of(n))?)?;
            let zero = self.words.zero(e).registers();
            let again = || Ok(repair.sum(e, arguments, [at, row, column])?.registers());
            Ok(e.if_else(inside, again, || Ok(zero))?[0])
        })
    }
}

/// Values rotated: the first ones moved to the end.
pub(crate) fn rotated<'ctx>(values: &[Value<'ctx>], by: usize) -> Vec<Value<'ctx>> {
    let (first, others) = values.split_at(by);
    [others, first].concat()
}

/// Runs a piece where an index is below a limit; tiles of a size that divides it have no others.
pub(crate) fn guarded<'ctx>(
    e: &Emit<'_, 'ctx>,
    limit: i64,
    size: i64,
    index: Value<'ctx>,
    body: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    if limit % size == 0 {
        return body();
    }
    e.if_then(e.icmp(IntPredicate::ULT, index, e.i32(limit as i32))?, body)
}

/// Sums with those that are NaN computed again, by their number: rarely, so in a loop over all of them.
pub(crate) fn repaired<'ctx>(
    e: &Emit<'_, 'ctx>,
    sums: &[Value<'ctx>],
    again: &mut dyn FnMut(Value<'ctx>) -> Result<Value<'ctx>>,
) -> Result<Vec<Value<'ctx>>> {
    let is_nan = |x| e.fcmp(FloatPredicate::UNO, x, x);
    let mut any = is_nan(sums[0])?;
    for &x in &sums[1..] {
        any = e.or(any, is_nan(x)?)?;
    }
    let all = || {
        e.for_carried(e.i32(0), e.i32(sums.len() as i32), e.i32(1), sums, |number, sums| {
            let sum = again(number)?;
            let mut next = Vec::with_capacity(sums.len());
            for (k, &x) in (0..).zip(sums) {
                let here = e.icmp(IntPredicate::EQ, number, e.i32(k))?;
                next.push(e.select(e.and(here, is_nan(x)?)?, sum, x)?);
            }
            Ok(next)
        })
    };
    e.if_else(any, all, || Ok(sums.to_vec()))
}
