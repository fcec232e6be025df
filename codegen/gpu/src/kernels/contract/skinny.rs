//! Skinny GEMM (a matrix and a few vectors): bound by the bandwidth at which the matrix is read, once, in
//! wide accesses.
//!
//! Where terms of a row of the matrix are contiguous, warps run along rows and reduce across lanes. Where
//! rows are, each thread has some contiguous rows, and the warps of a block take every n-th term each
//! (split-K within the block). Sums of warps are exchanged through shared memory and added in the order of
//! the warps.

use hlo::{InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Axis, Emit, IntPredicate, Prim, Result, Shuffle, Special, Value};

use super::epilogue::Epilogue;
use super::source::{Along, Source};
use super::tile::{LAUNCH_SECONDS, Tiled, ceil, emit_sum, has_tiles};
use super::{Words, simple};
use crate::arch::Arch;
use crate::code;
use crate::kernel::{Argument, Kernel, Stage};
use crate::kernels::{Unit, launch};

/// The maximum number of vectors.
const MAX_VECTORS: i64 = 8;
/// Fewer rows of the matrix are not worth it.
const MIN_ROWS: i64 = 32;
/// Words of sums in shared memory.
const MAX_SHARED_WORDS: i64 = 4096;
/// Lanes of a warp.
const LANES: i64 = 32;
/// Accesses to the matrix that a thread has in flight.
const AHEAD: i64 = 4;
/// The number of warps that saturates the memory of a multiprocessor.
const BUSY_WARPS: i64 = 16;

/// How it is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// The operand that is the matrix.
    matrix: usize,
    /// Whether terms are contiguous.
    by_terms: bool,
    /// Elements per access to the matrix.
    width: i64,
    /// Rows of a team of warps if terms are contiguous.
    rows: i64,
    /// Warps that share rows.
    team: i64,
    /// Warps of a block.
    warps: i64,
    /// Split-K: parts of the terms.
    split: i64,
}

/// Words of the matrix and of the vectors, by rows.
type Factors<'ctx> = (Vec<Vec<Val<'ctx>>>, Vec<Vec<Val<'ctx>>>);

/// The plan, if it is such a product.
pub(crate) fn plan(arch: Arch, tiled: &Tiled<'_>) -> Option<Plan> {
    let [batch, m, n] = tiled.magnitudes;
    let (matrix, rows, vectors) = if n <= m { (0, m, n) } else { (1, n, m) };
    let is_one = m == 1 || n == 1;
    if vectors > MAX_VECTORS || rows < MIN_ROWS && !is_one || !has_tiles(tiled.words.field) {
        return None;
    }
    let processors = i64::from(arch.figures().multiprocessors);
    let busy = processors * BUSY_WARPS;
    let bytes = tiled.words.word().storage_bytes() as i64;
    let plan = match tiled.sources[matrix].along() {
        Along::Terms(width) => {
            // Words are kept in registers: of narrow integers not too many.
            let width = width.min(8);
            let own = if batch * rows / 4 >= busy && vectors <= 4 { 4 } else { 1 };
            let teams = batch * ceil(rows, own);
            let steps = |team: i64| ceil(tiled.terms, width * LANES * team);
            let team = if teams < busy && steps(1) >= 8 { 8 } else { 1 };
            let blocks = if team == 8 { teams } else { ceil(teams, 8) };
            let split = split_of(blocks, processors, steps(team), batch * rows * vectors * bytes, arch);
            Plan { matrix, by_terms: true, width, rows: own, team, warps: 8, split }
        }
        Along::Rows(width) => {
            let mut width = width.min(8);
            let blocks = |width: i64| batch * ceil(rows, LANES * width);
            while width > 1 && blocks(width) < processors {
                width /= 2;
            }
            let mut warps = if blocks(width) < 2 * processors { 32 } else { 8 };
            while warps > 1
                && (warps * LANES * width * vectors > MAX_SHARED_WORDS * 4 / bytes || warps > tiled.terms)
            {
                warps /= 2;
            }
            let steps = ceil(tiled.terms, warps * AHEAD);
            let split = split_of(blocks(width), processors, steps, batch * rows * vectors * bytes, arch);
            Plan { matrix, by_terms: false, width, rows: width, team: warps, warps, split }
        }
    };
    Some(plan)
}

/// The number of parts of the terms (split-K): one block for each multiprocessor, if a second kernel costs
/// less than it gains.
fn split_of(blocks: i64, processors: i64, steps: i64, bytes: i64, arch: Arch) -> i64 {
    let split = (2 * processors / blocks.max(1)).clamp(1, 64).min(steps / 4).max(1);
    // A block of 256 threads reads some 4 KiB at once, every microsecond or so.
    let saved = steps as f64 * (1.0 - 1.0 / split as f64) * 0.5e-6;
    let costs = LAUNCH_SECONDS + (2 * split * bytes) as f64 / arch.figures().bytes_per_second;
    if split > 1 && saved > costs { split } else { 1 }
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
    kernel: &mut Kernel,
) -> Result<()> {
    let Tiled { words, sources, magnitudes: [batch, m, n], terms, .. } = *tiled;
    let Plan { matrix, by_terms, width, rows: own, team, warps, split } = plan;
    let (rows, vectors) = if matrix == 0 { (m, n) } else { (n, m) };
    let [big, small] = [sources[matrix], sources[1 - matrix]];
    let is_split = split > 1;
    let all_arrays = arrays + u32::from(is_split);
    let threads = warps * LANES;
    // Rows of a block.
    let of_block = if by_terms { warps / team * own } else { LANES * own };
    let groups = ceil(rows, of_block);
    let blocks = split * batch * groups;
    let (e, arguments) = unit.begin_apart(symbol, tiled.reads, all_arrays - tiled.reads, threads as u32)?;
    let of = |x: i64| e.i32(x as i32);
    let prim = scalar::register(words.word());
    let word_bytes = prim.bytes() as i64;
    let thread = e.special(Special::Tid(Axis::X))?;
    let block = e.special(Special::Ctaid(Axis::X))?;
    let (group, rest) = (e.urem(block, of(groups))?, e.udiv(block, of(groups))?);
    let (at, part) = (e.urem(rest, of(batch))?, e.udiv(rest, of(batch))?);
    let (warp, lane) = (e.lshr(thread, of(5))?, e.and(thread, of(31))?);
    let first_row = e.mul(group, of(of_block))?;

    // The first row of this thread, and its number among those that share its rows.
    let (own_row, number, sharing) = if by_terms {
        let inside = e.mul(e.udiv(warp, of(team))?, of(own))?;
        let number = e.add(e.mul(e.urem(warp, of(team))?, of(LANES))?, lane)?;
        (e.add(first_row, inside)?, number, team * LANES)
    } else {
        (e.add(first_row, e.mul(lane, of(own))?)?, warp, warps)
    };
    let clamped =
        |row: Value<'ctx>, last: i64| e.select(e.icmp(IntPredicate::ULT, row, of(last))?, row, of(last));
    let matrix_rows = if by_terms {
        let rows = (0..own).map(|r| big.row(&e, at, clamped(e.add(own_row, of(r))?, rows - 1)?));
        rows.collect::<Result<Vec<_>>>()?
    } else {
        vec![big.row(&e, at, clamped(own_row, rows - own)?)?]
    };
    let vector_rows = (0..vectors).map(|v| small.row(&e, at, of(v))).collect::<Result<Vec<_>>>()?;

    // A step is an access of each thread to each of its rows, or, of neighbouring rows, to one term of all.
    let of_step = if by_terms { sharing * width } else { sharing };
    let steps = ceil(terms, of_step);
    let full = terms / of_step;
    let per = ceil(steps, split);
    let begin = e.mul(part, of(per))?;
    let least = |a: Value<'ctx>, b: Value<'ctx>| e.select(e.icmp(IntPredicate::SLT, a, b)?, a, b);
    let end = least(e.add(begin, of(per))?, of(steps))?;
    let whole = e.sub(least(end, of(full))?, begin)?;
    let ahead = if by_terms { (AHEAD / own).max(1) } else { AHEAD };
    let middle = e.add(begin, e.mul(e.sdiv(whole, of(ahead))?, of(ahead))?)?;

    let load =
        |source: &dyn Source, row: &[Value<'ctx>], term: Value<'ctx>, count: i64| -> Result<Vec<Val<'ctx>>> {
            load_terms(&e, &words, source, &arguments, row, term, count, by_terms)
        };
    let count = own * vectors;
    let step = |index: Value<'ctx>, is_guarded: bool| -> Result<Factors<'ctx>> {
        let mut term = e.add(e.mul(index, of(sharing))?, number)?;
        if by_terms {
            term = e.mul(term, of(width))?;
        }
        let mut holds = None;
        if is_guarded {
            holds = Some(e.icmp(IntPredicate::ULT, term, of(terms))?);
            term = clamped(term, terms - if by_terms { width } else { 1 })?;
        }
        let there = |all: Vec<Val<'ctx>>| -> Result<Vec<Val<'ctx>>> {
            let Some(holds) = holds else { return Ok(all) };
            let zero = words.zero(&e);
            all.iter().map(|x| scalar::select(&e, holds, x, &zero)).collect()
        };
        let matrix = matrix_rows.iter().map(|row| there(load(big, row, term, width)?));
        let matrix = matrix.collect::<Result<Vec<_>>>()?;
        let each = if by_terms { width } else { 1 };
        let vector = vector_rows.iter().map(|row| there(load(small, row, term, each)?));
        Ok((matrix, vector.collect::<Result<Vec<_>>>()?))
    };
    let add = |sums: &mut [Value<'ctx>], (matrix, vector): &Factors<'ctx>| -> Result<()> {
        for row in 0..own as usize {
            for v in 0..vectors as usize {
                let sum = &mut sums[row * vectors as usize + v];
                let pairs: Vec<(Val<'ctx>, Val<'ctx>)> = if by_terms {
                    matrix[row].iter().copied().zip(vector[v].iter().copied()).collect()
                } else {
                    vec![(matrix[0][row], vector[v][0])]
                };
                for (x, y) in pairs {
                    let next = words.multiply_add(&e, &words.of_registers(&[*sum]), &x, &y)?;
                    *sum = next.registers()[0];
                }
            }
        }
        Ok(())
    };
    let zero = words.zero(&e).registers()[0];
    let sums = e.for_carried(begin, middle, of(ahead), &vec![zero; count as usize], |index, carried| {
        let mut sums = carried.to_vec();
        let loaded = (0..ahead).map(|i| step(e.add(index, of(i))?, false)).collect::<Result<Vec<_>>>()?;
        for some in &loaded {
            add(&mut sums, some)?;
        }
        Ok(sums)
    })?;
    let mut sums = e.for_carried(middle, end, of(1), &sums, |index, carried| {
        let mut sums = carried.to_vec();
        add(&mut sums, &step(index, true)?)?;
        Ok(sums)
    })?;

    // Sums of warps meet in shared memory: of lanes that share rows what they have together.
    if by_terms {
        for sum in &mut sums {
            for distance in [16, 8, 4, 2, 1] {
                let other = e.shuffle_sync(e.full_warp(), Shuffle::Bfly, *sum, e.i32(distance))?;
                let both = words.add(&e, &words.of_registers(&[*sum]), &words.of_registers(&[other]))?;
                *sum = both.registers()[0];
            }
        }
    }
    // Of each warp `per_warp` words.
    let per_warp = if by_terms { count } else { LANES * count };
    let shared: Value<'ctx> =
        e.shared_array(&format!("{symbol}_sums"), prim, (warps * per_warp) as u32, 16)?.into();
    let word = |index: Value<'ctx>| e.address(shared, e.mul(e.zext(index, Prim::I64)?, e.i64(word_bytes))?);
    let store_all = |first: Value<'ctx>| -> Result<()> {
        for (i, &sum) in (0..).zip(&sums) {
            e.store(sum, word(e.add(first, of(i))?)?, word_bytes as u32)?;
        }
        Ok(())
    };
    let own_words = e.mul(warp, of(per_warp))?;
    if by_terms {
        let is_first = e.icmp(IntPredicate::EQ, lane, of(0))?;
        e.if_then(is_first, || store_all(own_words))?;
    } else {
        store_all(e.add(own_words, e.mul(lane, of(count))?)?)?;
    }
    e.barrier()?;
    // Results of a block: of each team its words, of rows and vectors in them.
    let results = warps / team * per_warp;
    let own_epilogue = if is_split { None } else { Some(epilogue(1)?) };
    for pass in 0..ceil(results, threads) {
        let index = e.add(thread, of(pass * threads))?;
        let finish = || -> Result<()> {
            let (of_team, inside) = (e.udiv(index, of(per_warp))?, e.urem(index, of(per_warp))?);
            let first = e.add(e.mul(of_team, of(team * per_warp))?, inside)?;
            let mut sum = words.of_registers(&[e.load(prim, word(first)?, word_bytes as u32)?]);
            if team > 1 {
                let last = e.for_carried(of(1), of(team), of(1), &sum.registers(), |w, carried| {
                    let address = word(e.add(first, e.mul(w, of(per_warp))?)?)?;
                    let other = words.of_registers(&[e.load(prim, address, word_bytes as u32)?]);
                    Ok(words.add(&e, &words.of_registers(carried), &other)?.registers())
                })?;
                sum = words.of_registers(&last);
            }
            let teams_row = if by_terms { e.mul(of_team, of(own))? } else { of(0) };
            let row = e.add(e.add(first_row, teams_row)?, e.udiv(inside, of(vectors))?)?;
            let vector = e.urem(inside, of(vectors))?;
            let is_there = e.icmp(IntPredicate::ULT, row, of(rows))?;
            let (i, j) = if matrix == 0 { (row, vector) } else { (vector, row) };
            e.if_then(is_there, || match &own_epilogue {
                Some(epilogue) => epilogue.store(e, &arguments, [at, i, j], &[words.finish(&e, sum)?]),
                None => {
                    let wide = |x| e.zext(x, Prim::I64);
                    let line = e.add(e.mul(part, of(batch))?, at)?;
                    let line = e.add(e.mul(wide(line)?, e.i64(m))?, wide(i)?)?;
                    let offset = e.add(e.mul(line, e.i64(n))?, wide(j)?)?;
                    let address = e.address(arguments[arrays as usize], e.mul(offset, e.i64(word_bytes))?)?;
                    e.store(sum.registers()[0], address, word_bytes as u32).map(|_| ())
                }
            })
        };
        if (pass + 1) * threads <= results {
            finish()?;
        } else {
            e.if_then(e.icmp(IntPredicate::ULT, index, of(results))?, finish)?;
        }
    }
    e.return_void()?;
    let all: Vec<Argument> = (0..all_arrays).map(Argument::Array).collect();
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, threads as u32, all.clone())?));
    if is_split {
        kernel.scratch_bytes = (split * batch * m * n * word_bytes).cast_unsigned();
        let symbol = format!("{symbol}_sum");
        let blocks = emit_sum(unit, &symbol, all_arrays, tiled, split, &epilogue(1)?, None)?;
        kernel.stages.push(Stage::Launch(launch(module, id, &symbol, blocks, simple::THREADS, all)?));
    }
    Ok(())
}

/// Words from an element on, along terms or along rows: in one access where the source says so.
#[expect(clippy::too_many_arguments, reason = "what an access is made of")]
fn load_terms<'ctx>(
    e: &Emit<'_, 'ctx>,
    words: &Words,
    source: &dyn Source,
    arguments: &[Value<'ctx>],
    row: &[Value<'ctx>],
    term: Value<'ctx>,
    count: i64,
    by_terms: bool,
) -> Result<Vec<Val<'ctx>>> {
    let ty = source.ty();
    let array = arguments[source.argument() as usize];
    let (prim, _) = code::storage(ty);
    let bytes = prim.bytes() as i64;
    let width = match (source.along(), by_terms) {
        (Along::Terms(width), true) | (Along::Rows(width), false) => width.min(count),
        (Along::Terms(_), false) | (Along::Rows(_), true) => 1,
    };
    let mut all = Vec::new();
    for first in (0..count).step_by(width as usize) {
        let (offset, _) = source.at(e, row, e.add(term, e.i32(first as i32))?)?;
        let offset = e.mul(e.resize(offset, Prim::I64, false)?, e.i64(bytes))?;
        let address = e.address(array, offset)?;
        let loaded = e.with_lanes(width as u32).load(prim, address, (width * bytes) as u32)?;
        for lane in 0..width as u32 {
            let x = Val::of_storage(e, ty, &[e.extract(loaded, lane)?])?;
            let x = words.of(e, x)?;
            all.push(words.of_registers(&x.registers()));
        }
    }
    Ok(all)
}
