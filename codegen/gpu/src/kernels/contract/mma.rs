//! Products of matrices on tensor cores: `mma.sync` of 16-bit floats (16 x 8 x 16), summed in `f32`, and of
//! bytes (16 x 8 x 32), summed in 32 bits.
//!
//! A block has tiles of both operands for several steps in shared memory: while one is multiplied, the next
//! ones are copied (`cp.async`). A tile has the layout that it has in memory, term by term or row by row, in
//! chunks of 16 bytes, whose numbers are swizzled by an exclusive or with that of their line, so that neither
//! copies nor `ldmatrix` meet in a bank; `ldmatrix` transposes what is stored term by term. Borders, and
//! terms that fill no tile, are those of [`super::tile`]; what is absent is copied as zeros. Chunks that are
//! not aligned in memory, or not in one piece, are gathered in registers, and stored when the tile before has
//! been multiplied.

use hlo::{ElementType, InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::{Axis, Emit, IntPredicate, Prim, Result, Space, Special, Value};

use super::epilogue::Epilogue;
use super::loader::joined;
use super::source::{Along, Source};
use super::tile::{LAUNCH_SECONDS, Repair, Tiled, block_tile, ceil, emit_sum, guarded, repaired, rotated};
use super::{Field, Words, simple};
use crate::arch::Arch;
use crate::compile::Products;
use crate::kernel::{Argument, Kernel, Stage};
use crate::kernels::{Unit, launch};

/// Sizes of tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tile {
    rows: i64,
    columns: i64,
    /// Bytes of terms of a step.
    term_bytes: i64,
    /// Rows and columns of a warp.
    warp: [i64; 2],
    /// Steps in shared memory at once.
    stages: i64,
    /// Blocks per multiprocessor.
    resident: i64,
    /// The efficiency of a multiprocessor, in percent.
    efficiency: i64,
}

impl Tile {
    fn threads(&self) -> i64 {
        self.rows / self.warp[0] * (self.columns / self.warp[1]) * 32
    }
}

/// How it is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    tile: Tile,
    split: i64,
}

/// Bytes of a chunk.
const CHUNK_BYTES: i64 = 16;

/// Rows and columns of an instruction, and bytes of its terms.
const M: i64 = 16;
const N: i64 = 8;
const K_BYTES: i64 = 32;

/// The type of both operands, if tensor cores multiply them: bytes may have signs or not.
fn bytes_of(words: &Words, [lhs, rhs]: [ElementType; 2]) -> Option<i64> {
    let is_byte = |ty| matches!(ty, ElementType::S8 | ElementType::U8);
    match words.field {
        Field::F32 if lhs == rhs && matches!(lhs, ElementType::BF16 | ElementType::F16) => Some(2),
        Field::I32 if is_byte(lhs) && is_byte(rhs) && words.keeps_bytes() => Some(1),
        Field::F32 | Field::F64 | Field::I32 | Field::I64 | Field::Pred | Field::C64 | Field::C128 => None,
    }
}

fn tiles(arch: Arch) -> [Tile; 4] {
    // Where two blocks of longer steps fit into shared memory.
    let is_large = arch.figures().shared_bytes_opt_in >= 200 << 10;
    let (term_bytes, stages) = if is_large { (128, 3) } else { (64, 4) };
    [
        Tile { rows: 128, columns: 256, term_bytes, warp: [64, 64], stages, resident: 1, efficiency: 90 },
        Tile { rows: 128, columns: 128, term_bytes, warp: [64, 64], stages, resident: 2, efficiency: 80 },
        Tile {
            rows: 128,
            columns: 64,
            term_bytes: 64,
            warp: [64, 32],
            stages: 4,
            resident: 3,
            efficiency: 65,
        },
        Tile {
            rows: 64,
            columns: 64,
            term_bytes: 64,
            warp: [32, 32],
            stages: 4,
            resident: 4,
            efficiency: 50,
        },
    ]
}

/// The plan, if tensor cores can multiply these matrices, and its estimated time in seconds.
pub(crate) fn plan(arch: Arch, products: Products, tiled: &Tiled<'_>) -> Option<(Plan, f64)> {
    let bytes = bytes_of(&tiled.words, tiled.sources.map(|s| s.ty()))?;
    let width = |s: &dyn Source| s.along().width() * bytes;
    // Bytes are neither transposed nor gathered.
    let can =
        |s: &&dyn Source| bytes == 2 || matches!(s.along(), Along::Terms(_)) && width(*s) == CHUNK_BYTES;
    if !products.tensor_cores || arch < Arch::Sm80 || !tiled.sources.iter().all(can) {
        return None;
    }
    // Gathered elements go through registers.
    let gathered = match tiled.sources.map(width).into_iter().min() {
        Some(CHUNK_BYTES) | None => 1.0,
        Some(2) => 0.3,
        Some(_) => 0.5,
    };
    let figures = arch.figures();
    let processors = i64::from(figures.multiprocessors);
    let [batch, m, n] = tiled.magnitudes;
    let per_clock = if arch >= Arch::Sm90 { 1300.0 } else { 1000.0 };
    let mut best: Option<(Plan, f64)> = None;
    let all = tiles(arch);
    let fits = |tile: &&Tile| gathered == 1.0 || tile.columns < 256;
    let is_wanted = |tile: &&Tile| {
        products.tile == Some(tile.columns) || all.iter().all(|t| products.tile != Some(t.columns))
    };
    for &tile in all.iter().filter(is_wanted).filter(fits) {
        let blocks = batch * ceil(m, tile.rows) * ceil(n, tile.columns);
        let step_terms = tile.term_bytes / bytes;
        let steps = ceil(tiled.terms, step_terms);
        let splits = match products.split {
            Some(split) => vec![split],
            None => vec![1, 2, 4, 8, 16, 32, 64],
        };
        // What fills the device is not split.
        let most = if blocks >= tile.resident * processors { 1 } else { steps };
        for split in splits.into_iter().filter(|&s| s <= most || products.split.is_some()) {
            let per = ceil(steps, split.clamp(1, steps));
            let parts = ceil(steps, per);
            let at_once = processors * tile.resident;
            let waves = ceil(blocks * parts, at_once);
            let own = tile.resident.min(ceil(blocks * parts, processors));
            let rate = per_clock * 1.7e9 * gathered * tile.efficiency as f64 / 100.0;
            // Fewer blocks than a multiprocessor can hold do not keep it busy.
            let alone = if own < tile.resident { 1.3 } else { 1.0 };
            let work = (tile.rows * tile.columns * tile.term_bytes / 2 * (per + tile.stages)) as f64;
            let mut seconds = (waves * own) as f64 * work * alone / rate;
            if parts > 1 {
                let moved = (2 * parts * batch * m * n * 4) as f64;
                seconds += LAUNCH_SECONDS + moved / figures.bytes_per_second;
            }
            if best.is_none_or(|(_, least)| seconds < least) {
                best = Some((Plan { tile, split: parts }, seconds));
            }
        }
    }
    best
}

/// The tile of an operand in shared memory.
struct Loader<'s> {
    source: &'s dyn Source,
    /// Of the tile.
    rows: i64,
    terms: i64,
    all_rows: i64,
    /// Copies of a thread.
    slots: i64,
    /// Rows and terms between those of a thread.
    row_step: i64,
    term_step: i64,
    /// Bytes of a line: a row of terms, or a term of rows.
    pitch: i64,
    by_rows: bool,
    /// Bytes of an element, and elements of a chunk.
    element: i64,
    chunk: i64,
    /// Elements of an access to memory: fewer than a chunk if that is not aligned, or not in one piece.
    group: i64,
}

/// A thread's state of the tile that it copies.
struct Loading<'ctx> {
    term: Value<'ctx>,
    rows: Vec<Vec<Value<'ctx>>>,
    array: Value<'ctx>,
    /// The offset of the first chunk in the tile, in bytes: an `i64`.
    to: Value<'ctx>,
}

impl<'s> Loader<'s> {
    fn new(source: &'s dyn Source, rows: i64, terms: i64, all_rows: i64, threads: i64) -> Self {
        let by_rows = matches!(source.along(), Along::Terms(_));
        let element = source.ty().storage_bytes() as i64;
        let chunk = CHUNK_BYTES / element;
        let group = source.along().width().min(chunk);
        let per_line = if by_rows { terms } else { rows } / chunk;
        let lines = threads / per_line;
        let slots = rows * terms / chunk / threads;
        let (row_step, term_step) = if by_rows { (lines, 0) } else { (0, lines) };
        Self {
            source,
            rows,
            terms,
            all_rows,
            slots,
            row_step,
            term_step,
            pitch: per_line * CHUNK_BYTES,
            by_rows,
            element,
            chunk,
            group,
        }
    }

    fn bytes(&self) -> i64 {
        self.rows * self.terms * self.element
    }

    /// The swizzle: what the number of a chunk is xored with in a line.
    fn swizzle<'ctx>(&self, e: &Emit<'_, 'ctx>, line: Value<'ctx>) -> Result<Value<'ctx>> {
        match self.pitch / CHUNK_BYTES {
            // Two lines are as long as all banks.
            4 => e.and(e.lshr(line, e.i32(1))?, e.i32(3)),
            _ => e.and(line, e.i32(7)),
        }
    }

    fn begin<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        thread: Value<'ctx>,
        batch: Value<'ctx>,
        first: Value<'ctx>,
        arguments: &[Value<'ctx>],
    ) -> Result<Loading<'ctx>> {
        let of = |x: i64| e.i32(x as i32);
        let per_line = of(self.pitch / CHUNK_BYTES);
        let (line, chunk) = (e.udiv(thread, per_line)?, e.urem(thread, per_line)?);
        let first_of = e.mul(chunk, of(self.chunk))?;
        let (row, term) = if self.by_rows { (line, first_of) } else { (first_of, line) };
        // Of each access: one a slot, or, of rows that are neighbours, those of a chunk.
        let (accesses, far, last) = match self.by_rows {
            true => (self.slots, self.row_step, self.all_rows - 1),
            false => (self.chunk / self.group, self.group, self.all_rows - self.group),
        };
        let mut rows = Vec::new();
        for access in 0..accesses {
            let mut at = e.add(first, e.add(row, of(access * far))?)?;
            if self.all_rows % self.rows != 0 {
                at = e.select(e.icmp(IntPredicate::ULT, at, of(last))?, at, of(last))?;
            }
            rows.push(self.source.row(e, batch, at)?);
        }
        let swizzled = e.xor(chunk, self.swizzle(e, line)?)?;
        let to = e.add(e.mul(line, of(self.pitch))?, e.mul(swizzled, of(CHUNK_BYTES))?)?;
        let array = arguments[self.source.argument() as usize];
        Ok(Loading { term, rows, array, to: e.zext(to, Prim::I64)? })
    }

    /// Whether chunks are copied as they are; they go through registers otherwise.
    fn is_whole(&self) -> bool {
        self.group == self.chunk
    }

    /// The address of some contiguous elements of a chunk at a first term, of that many if it has not all of
    /// them, and whether they are there.
    fn address<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        loading: &Loading<'ctx>,
        [slot, part]: [i64; 2],
        begin: Value<'ctx>,
        valid: Option<Value<'ctx>>,
    ) -> Result<(Value<'ctx>, Option<Value<'ctx>>)> {
        let inside = if self.by_rows { part * self.group } else { 0 };
        let mut term = e.add(loading.term, e.i32((slot * self.term_step + inside) as i32))?;
        let mut holds = None;
        if let Some(valid) = valid {
            let last = e.sub(valid, e.i32(if self.by_rows { self.group as i32 } else { 1 }))?;
            holds = Some(e.icmp(IntPredicate::ULT, term, valid)?);
            term = e.select(e.icmp(IntPredicate::ULT, term, last)?, term, last)?;
        }
        let row = &loading.rows[if self.by_rows { slot } else { part } as usize];
        let (mut offset, is_there) = self.source.at(e, row, e.add(begin, term)?)?;
        if let Some(is_there) = is_there {
            // Nothing is taken from there, but the address is one of the array.
            offset = e.select(is_there, offset, e.int(e.prim_of(offset), 0))?;
            holds = Some(holds.map_or(Ok(is_there), |holds| e.and(holds, is_there))?);
        }
        let offset = e.mul(e.zext(offset, Prim::I64)?, e.i64(self.element))?;
        Ok((e.address(loading.array, offset)?, holds))
    }

    /// The shared-memory address of a chunk.
    fn chunk_address<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        loading: &Loading<'ctx>,
        slot: i64,
        to: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let far = slot * (self.row_step + self.term_step) * self.pitch;
        e.address_at(e.address(to, loading.to)?, far.cast_unsigned())
    }

    /// Copies the tile that begins at a term, if chunks are whole; if it has fewer terms than others, those
    /// and zeros.
    fn copy<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        loading: &Loading<'ctx>,
        begin: Value<'ctx>,
        valid: Option<Value<'ctx>>,
        to: Value<'ctx>,
    ) -> Result<()> {
        for slot in 0..self.slots {
            let (from, holds) = self.address(e, loading, [slot, 0], begin, valid)?;
            let to = self.chunk_address(e, loading, slot, to)?;
            match holds {
                None => e.intrinsic_call("llvm.nvvm.cp.async.cg.shared.global.16", &[], &[to, from])?,
                Some(holds) => {
                    let bytes = e.select(holds, e.i32(CHUNK_BYTES as i32), e.i32(0))?;
                    let name = "llvm.nvvm.cp.async.cg.shared.global.16.s";
                    e.intrinsic_call(name, &[], &[to, from, bytes])?
                }
            };
        }
        Ok(())
    }

    /// Registers of the chunks that [`Loader::fetch`] gives.
    fn fetched(&self) -> i64 {
        self.slots * CHUNK_BYTES / 4
    }

    /// Loads the chunks of the tile that begins at a term, of 16-bit elements, in accesses of a group; each
    /// in four registers of 32 bits.
    fn fetch<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        loading: &Loading<'ctx>,
        begin: Value<'ctx>,
        valid: Option<Value<'ctx>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let mut all = Vec::new();
        for slot in 0..self.slots {
            let mut halves = Vec::new();
            for part in 0..self.chunk / self.group {
                let (from, holds) = self.address(e, loading, [slot, part], begin, valid)?;
                let (prim, count) =
                    if self.group == 1 { (Prim::I16, 1) } else { (Prim::I32, self.group / 2) };
                let loaded = e.with_lanes(count as u32).load(prim, from, (self.group * 2) as u32)?;
                for lane in 0..count as u32 {
                    let x = e.extract(loaded, lane)?;
                    halves.push(match holds {
                        Some(holds) => e.select(holds, x, e.int(prim, 0))?,
                        None => x,
                    });
                }
            }
            if self.group > 1 {
                all.extend(halves);
                continue;
            }
            for pair in halves.chunks_exact(2) {
                let (low, high) = (e.zext(pair[0], Prim::I32)?, e.zext(pair[1], Prim::I32)?);
                all.push(e.or(low, e.shl(high, e.i32(16))?)?);
            }
        }
        Ok(all)
    }

    /// Stores what [`Loader::fetch`] gave.
    fn put<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        loading: &Loading<'ctx>,
        fetched: &[Value<'ctx>],
        to: Value<'ctx>,
    ) -> Result<()> {
        for (slot, chunk) in (0..).zip(fetched.chunks_exact(4)) {
            let to = self.chunk_address(e, loading, slot, to)?;
            e.store(joined(e, chunk)?, to, CHUNK_BYTES as u32)?;
        }
        Ok(())
    }

    /// The addresses at which a lane reads 16 rows and 16 terms for `ldmatrix`: for each of `count` groups of
    /// rows and of the `terms / 16` of terms the offset in bytes, an `i64`, and a constant one. `first`: the
    /// first row of the warp. `is_left`: which of the four matrices have the later rows, and which the later
    /// terms.
    fn reads<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        lane: Value<'ctx>,
        first: Value<'ctx>,
        count: i64,
        is_left: bool,
    ) -> Result<Vec<Vec<(Value<'ctx>, i64)>>> {
        let of = |x: i64| e.i32(x as i32);
        let inner = e.and(lane, of(7))?;
        let odd = e.and(e.lshr(lane, of(3))?, of(1))?;
        let high = e.lshr(lane, of(4))?;
        // Of the left operand matrices are numbered rows first, of the right one terms first.
        let (row_half, term_half) = if is_left { (odd, high) } else { (high, odd) };
        let k = K_BYTES / self.element;
        let steps = self.terms / k;
        let mut all = Vec::new();
        for group in 0..count {
            let mut of_group = Vec::new();
            for step in 0..steps {
                let (line, chunk, constant) = if self.by_rows {
                    let line = e.add(first, e.add(e.mul(row_half, of(8))?, inner)?)?;
                    (line, e.add(of(step * K_BYTES / CHUNK_BYTES), term_half)?, group * M * self.pitch)
                } else {
                    let line = e.add(e.mul(term_half, of(8))?, inner)?;
                    let chunk =
                        e.add(e.udiv(first, of(self.chunk))?, e.add(of(group * M / self.chunk), row_half)?)?;
                    (line, chunk, step * k * self.pitch)
                };
                // Lines are a multiple of 8 and the lane's own.
                let swizzled = e.xor(chunk, self.swizzle(e, inner)?)?;
                let at = e.add(e.mul(line, of(self.pitch))?, e.mul(swizzled, of(CHUNK_BYTES))?)?;
                of_group.push((e.zext(at, Prim::I64)?, constant));
            }
            all.push(of_group);
        }
        Ok(all)
    }

    /// Four matrices of 8 x 8.
    fn read<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        tile: Value<'ctx>,
        (offset, constant): (Value<'ctx>, i64),
    ) -> Result<Vec<Value<'ctx>>> {
        let name = match self.by_rows {
            true => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
            false => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16",
        };
        let pointer = e.context.ptr_type(Space::Shared.address_space()).into();
        let address = e.address_at(e.address(tile, offset)?, constant.cast_unsigned())?;
        let all = e.intrinsic(name, &[pointer], &[address])?.into_struct_value();
        (0..4).map(|i| Ok(e.builder.build_extract_value(all, i, "")?)).collect()
    }
}

/// `c + a * b` of matrices of 16 rows and 8 columns.
fn multiply<'ctx>(
    e: &Emit<'_, 'ctx>,
    types: [ElementType; 2],
    a: &[Value<'ctx>],
    b: &[Value<'ctx>],
    c: &[Value<'ctx>],
) -> Result<Vec<Value<'ctx>>> {
    let name = match types {
        [ElementType::BF16, _] => "llvm.nvvm.mma.m16n8k16.row.col.bf16",
        [ElementType::S8, ElementType::S8] => "llvm.nvvm.mma.m16n8k32.row.col.s8",
        [ElementType::S8, _] => "llvm.nvvm.mma.m16n8k32.row.col.s8.u8",
        [ElementType::U8, ElementType::S8] => "llvm.nvvm.mma.m16n8k32.row.col.u8.s8",
        [ElementType::U8, _] => "llvm.nvvm.mma.m16n8k32.row.col.u8",
        [_, _] => "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
    };
    let halves = e.vector_type(Prim::F16, 2).into();
    let factor = |&x: &Value<'ctx>| match types[0] {
        ElementType::F16 => e.bitcast_to(x, halves),
        _ => Ok(x),
    };
    let factors = a.iter().chain(b).map(factor).collect::<Result<Vec<_>>>()?;
    let operands: Vec<Value<'ctx>> = factors.into_iter().chain(c.iter().copied()).collect();
    let all = e.intrinsic(name, &[], &operands)?.into_struct_value();
    (0..4).map(|i| Ok(e.builder.build_extract_value(all, i, "")?)).collect()
}

/// Emits it.
#[expect(clippy::too_many_arguments, reason = "what a kernel is made of")]
#[expect(clippy::too_many_lines, reason = "one kernel from its beginning to its end")]
pub(crate) fn emit<'m, 'ctx>(
    unit: &Unit<'_, 'ctx>,
    module: &Module,
    id: InstrId,
    symbol: &str,
    arrays: u32,
    tiled: &Tiled<'_>,
    plan: Plan,
    epilogue: &dyn Fn(u32) -> std::result::Result<Epilogue<'m>, Unsupported>,
    repair: Option<Repair<'_>>,
    kernel: &mut Kernel,
) -> Result<()> {
    let Tiled { words, sources, magnitudes: [batch, m, n], terms, .. } = *tiled;
    let Plan { tile, split } = plan;
    let threads = tile.threads();
    let types = sources.map(|s| s.ty());
    let step_terms = tile.term_bytes / types[0].storage_bytes() as i64;
    let steps = ceil(terms, step_terms);
    let per = ceil(steps, split);
    let grid = [ceil(m, tile.rows), ceil(n, tile.columns)];
    let blocks = split * batch * grid[0] * grid[1];
    let is_split = split > 1;
    let all_arrays = arrays + u32::from(is_split);
    let (e, arguments) = unit.begin_apart(symbol, tiled.reads, all_arrays - tiled.reads, threads as u32)?;
    let of = |x: i64| e.i32(x as i32);
    let loaders = [
        Loader::new(sources[0], tile.rows, step_terms, m, threads),
        Loader::new(sources[1], tile.columns, step_terms, n, threads),
    ];
    let stage_bytes = loaders[0].bytes() + loaders[1].bytes();
    let shared_bytes = (tile.stages * stage_bytes) as u32;
    let is_dynamic = shared_bytes > unit.arch.figures().shared_bytes;
    let shared: Value<'ctx> = if is_dynamic {
        e.dynamic_shared("dynamic_shared", 128)?.into()
    } else {
        e.shared_array(&format!("{symbol}_tiles"), Prim::I8, shared_bytes, 128)?.into()
    };

    let thread = e.special(Special::Tid(Axis::X))?;
    let [part, at, block_row, block_column] = block_tile(&e, grid, batch)?;
    let first_row = e.mul(block_row, of(tile.rows))?;
    let first_column = e.mul(block_column, of(tile.columns))?;
    // The terms that fill no tile come first.
    let rest = terms - (steps - 1) * step_terms;
    let (begin, valid, count) = if is_split {
        let first = e.mul(part, of(per))?;
        let is_first = e.icmp(IntPredicate::EQ, part, of(0))?;
        let begin = e.sub(e.mul(first, of(step_terms))?, of(step_terms - rest))?;
        let begin = e.select(is_first, of(0), begin)?;
        let valid = e.select(is_first, of(rest), of(step_terms))?;
        let left = e.sub(of(steps), first)?;
        let count = e.select(e.icmp(IntPredicate::ULT, left, of(per))?, left, of(per))?;
        (begin, valid, count)
    } else {
        (of(0), of(rest), of(steps))
    };
    let ragged = (rest < step_terms).then_some(valid);
    let next = e.sub(e.add(begin, valid)?, of(step_terms))?;

    let (warp, lane) = (e.lshr(thread, of(5))?, e.and(thread, of(31))?);
    let across = of(tile.columns / tile.warp[1]);
    let warp_row = e.mul(e.udiv(warp, across)?, of(tile.warp[0]))?;
    let warp_column = e.mul(e.urem(warp, across)?, of(tile.warp[1]))?;
    let loading = [
        loaders[0].begin(&e, thread, at, first_row, &arguments)?,
        loaders[1].begin(&e, thread, at, first_column, &arguments)?,
    ];
    let second = loaders[0].bytes();
    let base = |side: usize, stage| e.address_at(stage, if side == 0 { 0 } else { second.cast_unsigned() });
    let copy = |begin: Value<'ctx>, valid: Option<Value<'ctx>>, stage: Value<'ctx>| -> Result<()> {
        for side in (0..2).filter(|&side| loaders[side].is_whole()) {
            loaders[side].copy(&e, &loading[side], begin, valid, base(side, stage)?)?;
        }
        Ok(())
    };
    let fetch = |begin: Value<'ctx>, valid: Option<Value<'ctx>>| -> Result<Vec<Value<'ctx>>> {
        let mut all = Vec::new();
        for side in (0..2).filter(|&side| !loaders[side].is_whole()) {
            all.extend(loaders[side].fetch(&e, &loading[side], begin, valid)?);
        }
        Ok(all)
    };
    let put = |fetched: &[Value<'ctx>], stage: Value<'ctx>| -> Result<()> {
        let mut rest = fetched;
        for side in (0..2).filter(|&side| !loaders[side].is_whole()) {
            let (own, others) = rest.split_at(loaders[side].fetched() as usize);
            loaders[side].put(&e, &loading[side], own, base(side, stage)?)?;
            rest = others;
        }
        Ok(())
    };
    let gathered: i64 = loaders.iter().filter(|l| !l.is_whole()).map(Loader::fetched).sum();
    let load = |begin: Value<'ctx>, valid: Option<Value<'ctx>>, stage: Value<'ctx>| -> Result<()> {
        copy(begin, valid, stage)?;
        put(&fetch(begin, valid)?, stage)
    };
    let commit = || e.intrinsic_call("llvm.nvvm.cp.async.commit.group", &[], &[]).map(|_| ());
    let ahead = tile.stages - 1;
    for stage in 0..ahead {
        let to = e.address_at(shared, (stage * stage_bytes).cast_unsigned())?;
        if stage == 0 {
            load(begin, ragged, to)?;
        } else {
            let there = e.icmp(IntPredicate::SLT, of(stage), count)?;
            e.if_then(there, || load(e.add(next, of(stage * step_terms))?, None, to))?;
        }
        commit()?;
    }
    let [warp_rows, warp_columns] = tile.warp;
    let left = loaders[0].reads(&e, lane, warp_row, warp_rows / M, true)?;
    let right = loaders[1].reads(&e, lane, warp_column, warp_columns / M, false)?;
    let (down, along) = (warp_rows / M, warp_columns / N);
    let zero = words.zero(&e).registers()[0];
    let sums = vec![zero; (down * along * 4) as usize];
    // The stage that is multiplied, and the one that is copied to, in bytes.
    let carried = [vec![e.i32(0), of(ahead * stage_bytes)], sums].concat();
    let after = e.for_carried(of(0), count, of(1), &carried, |step, carried| {
        let wait = e.i32((ahead - 1) as i32);
        e.intrinsic_call("llvm.nvvm.cp.async.wait.group", &[], &[wait])?;
        e.barrier()?;
        let (here, to) = (carried[0], carried[1]);
        let later = e.add(step, of(ahead))?;
        let there = e.icmp(IntPredicate::SLT, later, count)?;
        let to_stage = e.address(shared, e.zext(to, Prim::I64)?)?;
        let fetched = e.if_else(
            there,
            || {
                let begin = e.add(next, e.mul(later, of(step_terms))?)?;
                copy(begin, None, to_stage)?;
                fetch(begin, None)
            },
            || Ok(vec![of(0); gathered as usize]),
        )?;
        commit()?;
        let first = e.address(shared, e.zext(here, Prim::I64)?)?;
        let other = e.address_at(first, second.cast_unsigned())?;
        let mut sums = carried[2..].to_vec();
        for k in 0..(tile.term_bytes / K_BYTES) as usize {
            let a = left.iter().map(|of| loaders[0].read(&e, first, of[k])).collect::<Result<Vec<_>>>()?;
            let b = right.iter().map(|of| loaders[1].read(&e, other, of[k])).collect::<Result<Vec<_>>>()?;
            for (i, a) in a.iter().enumerate() {
                for j in 0..along as usize {
                    let own = 4 * (i * along as usize + j);
                    let b = &b[j / 2][2 * (j % 2)..][..2];
                    let c = multiply(&e, types, a, b, &sums[own..own + 4])?;
                    sums[own..own + 4].copy_from_slice(&c);
                }
            }
        }
        if gathered > 0 {
            e.if_then(there, || put(&fetched, to_stage))?;
        }
        let wrapped = |x| -> Result<Value<'ctx>> {
            let x = e.add(x, of(stage_bytes))?;
            let is_last = e.icmp(IntPredicate::EQ, x, of(tile.stages * stage_bytes))?;
            e.select(is_last, of(0), x)
        };
        Ok([vec![wrapped(here)?, wrapped(to)?], sums].concat())
    })?;
    // In the order of rows, as a thread has them: two rows of each instruction, and of each two columns.
    let mut sums = Vec::new();
    for i in 0..down * 2 {
        for j in 0..along {
            let first = (2 + 4 * (i / 2 * along + j) + i % 2 * 2) as usize;
            sums.extend_from_slice(&after[first..first + 2]);
        }
    }

    let width = if n % 2 == 0 { 2 } else { 1 };
    let epilogue_of = || epilogue(width as u32);
    let own_epilogue = if is_split { None } else { Some(epilogue_of()?) };
    let lane_row = e.add(e.add(first_row, warp_row)?, e.lshr(lane, of(2))?)?;
    let lane_column = e.add(e.add(first_column, warp_column)?, e.mul(e.and(lane, of(3))?, of(2))?)?;
    let store = |row: Value<'ctx>, column: Value<'ctx>, sums: &[Value<'ctx>]| -> Result<()> {
        let Some(epilogue) = &own_epilogue else {
            let line = e.add(e.mul(part, of(batch))?, at)?;
            let wide = |x| e.zext(x, Prim::I64);
            let line = e.add(e.mul(wide(line)?, e.i64(m))?, wide(row)?)?;
            let offset = e.add(e.mul(line, e.i64(n))?, wide(column)?)?;
            let address = e.address(arguments[arrays as usize], e.mul(offset, e.i64(4))?)?;
            return e.store(joined(&e, sums)?, address, 4 * sums.len() as u32).map(|_| ());
        };
        let elements = sums.iter().map(|&x| words.finish(&e, words.of_registers(&[x])));
        let elements = elements.collect::<Result<Vec<_>>>()?;
        epilogue.store(e, &arguments, [at, row, e.udiv(column, of(width))?], &elements)
    };
    // The row of a line of a thread's sums, and the column of one of them.
    let row_of = |line: Value<'ctx>| e.add(lane_row, e.mul(line, of(M / 2))?);
    let column_of = |number: Value<'ctx>| {
        let pair = e.mul(e.udiv(number, of(2))?, of(N))?;
        e.add(lane_column, e.add(pair, e.urem(number, of(2))?)?)
    };
    let of_line = 2 * along;
    if let Some(repair) = repair.filter(|_| !is_split) {
        sums = repaired(&e, &sums, &mut |number| {
            let row = row_of(e.udiv(number, of(of_line))?)?;
            let column = column_of(e.urem(number, of(of_line))?)?;
            let inside =
                e.and(e.icmp(IntPredicate::ULT, row, of(m))?, e.icmp(IntPredicate::ULT, column, of(n))?)?;
            let again = || Ok(repair.sum(&e, &arguments, [at, row, column])?.registers());
            Ok(e.if_else(inside, again, || Ok(vec![zero]))?[0])
        })?;
    }
    let store_line = |line: Value<'ctx>, sums: &[Value<'ctx>]| -> Result<()> {
        let row = row_of(line)?;
        guarded(&e, m, tile.rows, row, &mut || {
            for (j, some) in (0..).zip(sums.chunks(width as usize)) {
                let column = column_of(of(j * width))?;
                guarded(&e, n, tile.columns, column, &mut || store(row, column, some))?;
            }
            Ok(())
        })
    };
    if own_epilogue.as_ref().is_some_and(Epilogue::is_long) {
        e.for_carried(of(0), of(2 * down), of(1), &sums, |line, sums| {
            store_line(line, &sums[..of_line as usize])?;
            Ok(rotated(sums, of_line as usize))
        })?;
    } else {
        for (line, sums) in (0..).zip(sums.chunks(of_line as usize)) {
            store_line(of(line), sums)?;
        }
    }
    e.return_void()?;
    let all: Vec<Argument> = (0..all_arrays).map(Argument::Array).collect();
    let mut first = launch(module, id, symbol, blocks, threads as u32, all.clone())?;
    first.shared_bytes = if is_dynamic { shared_bytes } else { 0 };
    kernel.stages.push(Stage::Launch(first));
    if is_split {
        kernel.scratch_bytes = (split * batch * m * n * 4).cast_unsigned();
        let symbol = format!("{symbol}_sum");
        let blocks = emit_sum(unit, &symbol, all_arrays, tiled, split, &epilogue_of()?, repair)?;
        kernel.stages.push(Stage::Launch(launch(module, id, &symbol, blocks, simple::THREADS, all)?));
    }
    Ok(())
}
