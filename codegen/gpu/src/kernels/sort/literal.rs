//! Bottom-up merge sorts, for comparators that are no strict weak order.
//!
//! What such a comparator makes of a line depends on which pairs it is asked about, so a line is sorted as
//! SEMANTICS.md defines: runs of 1, 2, 4, ... elements are merged from the left, and the head of the right
//! run is taken exactly if it comes before that of the left one. A block sorts a line; each of its threads
//! merges whole pairs of runs, one element after the other. `<` and `>` of floats are strict weak orders of
//! what is no NaN: a launch before the parallel sort finds lines with NaNs and sorts them into scratch
//! memory, and a launch behind it puts them where the results are. **Invariant:** a line is copied to scratch
//! memory before anything is written to results, which may share the memory of operands.

use hlo::ElementType;
use hlo_library::{Part, SortKey};
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Atomic, Emit, FloatPredicate, IntPredicate, Prim, Result, Scope, Value};

use super::{Area, Sorter, Storage, THREADS, aligned};
use crate::code::{load, store};
use crate::kernel::Kernel;
use crate::kernels::threads::{block, min, thread};

/// Elements of a line in which a block looks for NaNs.
const CHUNK: i64 = 4096;
/// Bytes of a flag.
const FLAG_BYTES: u64 = 4;

/// Lines with NaNs, sorted apart.
pub(super) struct Apart {
    /// The area that they are in.
    area: Area,
    /// In scratch memory: a flag for each line.
    flags: u64,
    /// The first byte of scratch memory behind all that.
    pub(super) end: u64,
}

/// A kernel in which a block has a line.
struct InBlock<'a, 'ctx> {
    e: Emit<'a, 'ctx>,
    arguments: Vec<Value<'ctx>>,
    /// The type of indices.
    prim: Prim,
    /// The index of the thread, of that type.
    lane: Value<'ctx>,
    threads: u32,
}

impl<'ctx> InBlock<'_, 'ctx> {
    fn int(&self, x: i64) -> Value<'ctx> {
        self.e.int(self.prim, x.cast_unsigned())
    }

    /// Runs the body for each index of `begin..end`, each by one thread.
    fn each(
        &self,
        begin: Value<'ctx>,
        end: Value<'ctx>,
        body: impl FnOnce(Value<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let first = self.e.add(begin, self.lane)?;
        self.e.for_range(first, end, self.int(self.threads.into()), body)
    }

    /// Whether a condition holds at an index of `begin..end`: the same for all threads.
    fn any(
        &self,
        symbol: &str,
        begin: Value<'ctx>,
        end: Value<'ctx>,
        condition: impl FnOnce(Value<'ctx>) -> Result<Value<'ctx>>,
    ) -> Result<Value<'ctx>> {
        let e = &self.e;
        let word: Value<'ctx> = e.shared_array(&format!("{symbol}_any"), Prim::I32, 1, 4)?.into();
        self.first(|| {
            e.store(e.i32(0), word, 4)?;
            Ok(())
        })?;
        e.barrier()?;
        self.each(begin, end, |at| {
            e.if_then(condition(at)?, || {
                e.atomic(Atomic::Or, word, e.i32(1), Scope::Block)?;
                Ok(())
            })
        })?;
        e.barrier()?;
        e.icmp(IntPredicate::NE, e.load(Prim::I32, word, 4)?, e.i32(0))
    }

    /// Does something in the first thread.
    fn first(&self, body: impl FnOnce() -> Result<()>) -> Result<()> {
        self.e.if_then(self.e.icmp(IntPredicate::EQ, self.lane, self.int(0))?, body)
    }

    /// The address of a flag.
    fn flag(&self, scratch: u32, offset: u64, number: Value<'ctx>) -> Result<Value<'ctx>> {
        let base = self.e.address_at(self.arguments[scratch as usize], offset)?;
        let number = self.e.resize(number, Prim::I64, false)?;
        self.e.address(base, self.e.mul(number, self.e.i64(FLAG_BYTES.cast_signed()))?)
    }
}

impl<'ctx> Sorter<'_, '_, 'ctx, '_> {
    /// Sorts all lines so.
    pub(super) fn sort_literally(&self, kernel: &mut Kernel, from: &Area, to: &Area) -> Result<()> {
        let bytes = self.area_bytes(from.len);
        let areas = [self.area(from.len, 0), self.area(from.len, bytes)];
        kernel.scratch_bytes = kernel.scratch_bytes.max(2 * bytes);
        let symbol = format!("{}_literal", self.symbol);
        let b = self.begin_lines(&symbol, from)?;
        let line = block(&b.e, b.prim)?;
        let sorted = self.literal_line(&b, from, &areas, line)?;
        self.copy_line(&b, &areas[sorted], to, line)?;
        b.e.return_void()?;
        self.launch(kernel, symbol, self.lines, b.threads)
    }

    /// Sorts lines where a key is a NaN into scratch memory, which is used from `offset` on.
    pub(super) fn sort_apart(
        &self,
        kernel: &mut Kernel,
        keys: &[SortKey],
        from: &Area,
        offset: u64,
    ) -> Result<Apart> {
        let chunks = (from.len + CHUNK - 1) / CHUNK;
        let bytes = self.area_bytes(from.len);
        let flags = offset + bytes;
        let chunk_flags = flags + aligned(self.lines.unsigned_abs() * FLAG_BYTES);
        let end = match chunks {
            1 => chunk_flags,
            _ => chunk_flags + aligned((self.lines * chunks).unsigned_abs() * FLAG_BYTES),
        };
        // Sorting in parallel takes the second area's memory later.
        kernel.scratch_bytes = kernel.scratch_bytes.max(end + bytes);
        let buffers = [self.area(from.len, offset), self.area(from.len, end)];
        // The sorted line is in the first area.
        let areas = match passes(from.len) % 2 {
            0 => buffers.clone(),
            _ => [buffers[1].clone(), buffers[0].clone()],
        };
        let has_nan = |b: &InBlock<'_, 'ctx>, line: Value<'ctx>, at: Value<'ctx>| -> Result<Value<'ctx>> {
            let mut any = b.e.bool(false);
            for key in keys {
                let value = self.load(&b.e, &b.arguments, from, key.operand, line, at)?;
                any = b.e.or(any, is_nan(&b.e, &value, key.part)?)?;
            }
            Ok(any)
        };
        if chunks > 1 {
            let symbol = format!("{}_nans", self.symbol);
            let b = self.begin_lines(&symbol, from)?;
            let own = block(&b.e, b.prim)?;
            let (line, chunk) = (b.e.udiv(own, b.int(chunks))?, b.e.urem(own, b.int(chunks))?);
            let begin = b.e.mul(chunk, b.int(CHUNK))?;
            let end = min(&b.e, b.e.add(begin, b.int(CHUNK))?, b.int(from.len))?;
            let found = b.any(&symbol, begin, end, |at| has_nan(&b, line, at))?;
            b.first(|| {
                let flag = b.flag(self.scratch, chunk_flags, own)?;
                b.e.store(b.e.zext(found, Prim::I32)?, flag, 4)?;
                Ok(())
            })?;
            b.e.return_void()?;
            self.launch(kernel, symbol, self.lines * chunks, b.threads)?;
        }
        let symbol = format!("{}_literal", self.symbol);
        let b = self.begin_lines(&symbol, from)?;
        let line = block(&b.e, b.prim)?;
        let found = match chunks {
            1 => b.any(&symbol, b.int(0), b.int(from.len), |at| has_nan(&b, line, at))?,
            _ => b.any(&symbol, b.int(0), b.int(chunks), |chunk| {
                let number = b.e.add(b.e.mul(line, b.int(chunks))?, chunk)?;
                let flag = b.e.load(Prim::I32, b.flag(self.scratch, chunk_flags, number)?, 4)?;
                b.e.icmp(IntPredicate::NE, flag, b.e.i32(0))
            })?,
        };
        b.first(|| {
            b.e.store(b.e.zext(found, Prim::I32)?, b.flag(self.scratch, flags, line)?, 4)?;
            Ok(())
        })?;
        b.e.if_then(found, || self.literal_line(&b, from, &areas, line).map(|_| ()))?;
        b.e.return_void()?;
        self.launch(kernel, symbol, self.lines, b.threads)?;
        Ok(Apart { area: buffers[0].clone(), flags, end })
    }

    /// Puts the lines that were sorted apart where the results are.
    pub(super) fn put_back(&self, kernel: &mut Kernel, apart: &Apart, to: &Area) -> Result<()> {
        let symbol = format!("{}_back", self.symbol);
        let b = self.begin_lines(&symbol, &apart.area)?;
        let line = block(&b.e, b.prim)?;
        let flag = b.e.load(Prim::I32, b.flag(self.scratch, apart.flags, line)?, 4)?;
        let found = b.e.icmp(IntPredicate::NE, flag, b.e.i32(0))?;
        b.e.if_then(found, || self.copy_line(&b, &apart.area, to, line))?;
        b.e.return_void()?;
        self.launch(kernel, symbol, self.lines, b.threads)
    }

    /// Begins a kernel whose blocks have a line, or a chunk of one, each.
    fn begin_lines(&self, symbol: &str, area: &Area) -> Result<InBlock<'_, 'ctx>> {
        let threads = u32::try_from(area.len).map_or(THREADS, |n| n.next_multiple_of(32).min(THREADS));
        let (e, arguments) = self.unit.begin(symbol, self.arrays, 0, threads)?;
        let prim = self.prim([area, area]);
        let lane = thread(&e, prim)?;
        Ok(InBlock { e, arguments, prim, lane, threads })
    }

    /// Copies as many elements of a line as the target has.
    fn copy_line(&self, b: &InBlock<'_, 'ctx>, from: &Area, to: &Area, line: Value<'ctx>) -> Result<()> {
        b.each(b.int(0), b.int(from.len.min(to.len)), |at| {
            for k in 0..self.types.len() {
                let value = self.load(&b.e, &b.arguments, from, k, line, at)?;
                self.store(&b.e, &b.arguments, to, k, line, at, &value)?;
            }
            Ok(())
        })
    }

    /// Sorts the line of a block. Returns the number of the area where it is then.
    fn literal_line(
        &self,
        b: &InBlock<'_, 'ctx>,
        from: &Area,
        areas: &[Area; 2],
        line: Value<'ctx>,
    ) -> Result<usize> {
        let (e, len) = (&b.e, b.int(from.len));
        self.copy_line(b, from, &areas[0], line)?;
        e.barrier()?;
        let first = e.mul(line, len)?;
        let offset = |area: &Area, k: usize| match area.storage[k] {
            Storage::Array { offset, .. } => e.i64(offset.cast_signed()),
            Storage::Position => e.i64(0),
        };
        let passes = passes(from.len);
        e.for_range(e.i32(0), e.i32(passes), e.i32(1), |pass| {
            let is_even = e.icmp(IntPredicate::EQ, e.and(pass, e.i32(1))?, e.i32(0))?;
            let mut bases = Vec::new();
            for k in 0..self.types.len() {
                let (a, b_) = (offset(&areas[0], k), offset(&areas[1], k));
                let (source, target) = (e.select(is_even, a, b_)?, e.select(is_even, b_, a)?);
                let scratch = b.arguments[self.scratch as usize];
                bases.push((e.address(scratch, source)?, e.address(scratch, target)?));
            }
            let at = |base: Value<'ctx>, position: Value<'ctx>, ty: ElementType| {
                Self::at(e, base, e.add(first, position)?, ty)
            };
            let row = |position: Value<'ctx>| -> Result<Vec<Option<Val<'ctx>>>> {
                let one = |(k, &ty): (usize, &ElementType)| {
                    let used = self.order.uses(k);
                    used.then(|| load(e, ty, at(bases[k].0, position, ty)?)).transpose()
                };
                self.types.iter().enumerate().map(one).collect()
            };
            let width = e.shl(b.int(1), e.resize(pass, b.prim, false)?)?;
            let both = e.shl(width, b.int(1))?;
            let pairs = e.udiv(e.sub(e.add(len, both)?, b.int(1))?, both)?;
            b.each(b.int(0), pairs, |pair| {
                let begin = e.mul(pair, both)?;
                let middle = min(e, e.add(begin, width)?, len)?;
                let end = min(e, e.add(begin, both)?, len)?;
                e.for_carried(begin, end, b.int(1), &[begin, middle], |target, heads| {
                    let (left, right) = (heads[0], heads[1]);
                    let some_left = e.icmp(IntPredicate::SLT, left, middle)?;
                    let some_right = e.icmp(IntPredicate::SLT, right, end)?;
                    let is_right = e.if_else(
                        e.and(some_left, some_right)?,
                        || Ok(vec![self.order.before(e, &row(right)?, &row(left)?)?]),
                        || Ok(vec![e.not(some_left)?]),
                    )?[0];
                    let source = e.select(is_right, right, left)?;
                    for (&ty, base) in self.types.iter().zip(&bases) {
                        let value = load(e, ty, at(base.0, source, ty)?)?;
                        store(e, &value, at(base.1, target, ty)?)?;
                    }
                    let step = e.zext(is_right, b.prim)?;
                    Ok(vec![e.add(left, e.sub(b.int(1), step)?)?, e.add(right, step)?])
                })?;
                Ok(())
            })?;
            e.barrier()
        })?;
        Ok(passes as usize % 2)
    }
}

/// The number of merge passes until one run is left.
fn passes(len: i64) -> i32 {
    len.unsigned_abs().next_power_of_two().ilog2().cast_signed()
}

/// Whether a part of a float or complex number is a NaN.
fn is_nan<'ctx>(e: &Emit<'_, 'ctx>, value: &Val<'ctx>, part: Part) -> Result<Value<'ctx>> {
    let ty = value.ty();
    let number = match part {
        Part::Whole if ty == ElementType::F64 => value.registers()[0],
        Part::Whole => scalar::convert(e, *value, ElementType::F32)?.registers()[0],
        Part::Real => value.registers()[0],
        Part::Imag => value.registers()[1],
    };
    e.fcmp(FloatPredicate::UNO, number, number)
}
