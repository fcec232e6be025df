//! Radix sorts of long lines by one key: least significant digit first, each pass stable.
//!
//! A pass is three launches: tiles count the digits of their elements; the counts of each digit are summed
//! over the tiles before; and tiles put their elements where these sums, the sums of lesser digits and the
//! rank in the tile say. Ranks are found warp by warp: the lanes that have a digit are found by `match.any`,
//! and the first of them adds their number to the warp's counter of that digit. **Invariants:** there are at
//! least two passes, so that operands are read by the first one alone and results written by the last;
//! positions do not depend on the order of atomic operations, because in each warp one lane adds to a counter
//! at a time.

use hlo::{ElementType, TypeClass};
use hlo_library::{FloatOrder, Part, SortKey};
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Atomic, Emit, FloatPredicate, IntPredicate, Prim, Result, Scope, Shuffle, Value};

use super::{Area, Sorter, THREADS, aligned};
use crate::kernel::Kernel;
use crate::kernels::threads::{block, thread};

/// The maximum number of bits of a digit: a thread of a block has a digit.
const MAX_DIGIT_BITS: u32 = 8;
/// Elements of a tile that a thread has.
const ITEMS: u32 = 8;
/// Elements of a tile.
const TILE: i64 = (THREADS * ITEMS) as i64;
/// Lanes of a warp.
const WARP: u32 = 32;
/// Warps of a block.
const WARPS: u32 = THREADS / WARP;
/// Lines with at least this many elements per pass are sorted faster by radix than by merging.
const MIN_ELEMENTS_A_PASS: i64 = 4096;

/// A key that is sorted by its digits.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernels) struct Digits {
    key: SortKey,
    /// Low bits of encoded keys that differ.
    bits: u32,
}

impl Digits {
    /// The digits of a key of an operand of a type, if there are such.
    pub(super) fn of(key: SortKey, ty: ElementType) -> Option<Self> {
        let bits = ty.bits();
        (key.part == Part::Whole && (8..=64).contains(&bits)).then_some(Self { key, bits })
    }

    /// Those of unsigned integers below `2^bits` in the first column, the smallest one first.
    pub(in crate::kernels) fn unsigned(bits: u32) -> Self {
        let key = SortKey { operand: 0, part: Part::Whole, descending: false, floats: FloatOrder::Total };
        Self { key, bits: bits.max(1) }
    }

    fn passes(self) -> u32 {
        self.bits.div_ceil(MAX_DIGIT_BITS).max(2)
    }

    /// Bits of a digit.
    fn width(self) -> u32 {
        self.bits.div_ceil(self.passes())
    }

    /// Digits that there are.
    fn bins(self) -> u32 {
        1 << self.width()
    }

    /// Whether lines of a length are sorted so.
    pub(super) fn suits(self, len: i64) -> bool {
        len >= MIN_ELEMENTS_A_PASS * i64::from(self.passes()) && len <= i64::from(i32::MAX) / 2
    }

    /// The key of an element as an unsigned integer of 32 or 64 bits.
    fn encoded<'ctx>(self, e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Value<'ctx>> {
        let ty = x.ty();
        let bits = match ty.class() {
            TypeClass::Float => scalar::order_key(e, x)?,
            TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned | TypeClass::Complex => {
                scalar::pattern(e, *x)?
            }
        };
        let prim = e.prim_of(bits);
        let top = 1 << (prim.bits() - 1);
        let mut key = bits;
        if ty.is_float() && self.key.floats != FloatOrder::Total {
            let number = match ty {
                ElementType::F64 => x.registers()[0],
                _ => scalar::convert(e, *x, ElementType::F32)?.registers()[0],
            };
            let zero = e.float(e.prim_of(number), 0.0);
            let is_zero = e.fcmp(FloatPredicate::OEQ, number, zero)?;
            key = e.select(is_zero, e.int(prim, 0), key)?;
            if self.key.floats == FloatOrder::Merged {
                let is_nan = e.fcmp(FloatPredicate::UNO, number, number)?;
                key = e.select(is_nan, e.int(prim, top - 1), key)?;
            }
        }
        let is_signed = match ty.class() {
            TypeClass::Signed => true,
            TypeClass::Float => ty != ElementType::F8E8M0FNU,
            TypeClass::Pred | TypeClass::Unsigned | TypeClass::Complex => false,
        };
        if is_signed {
            key = e.xor(key, e.int(prim, top))?;
        }
        if self.key.descending {
            key = e.not(key)?;
        }
        if prim.bits() < 32 { e.zext(key, Prim::I32) } else { Ok(key) }
    }

    /// A digit of an element: an `i32`.
    fn digit<'ctx>(self, e: &Emit<'_, 'ctx>, x: &Val<'ctx>, pass: u32) -> Result<Value<'ctx>> {
        let key = self.encoded(e, x)?;
        let shift = e.int(e.prim_of(key), u64::from(pass * self.width()));
        let digit = e.resize(e.lshr(key, shift)?, Prim::I32, false)?;
        e.and(digit, e.int(Prim::I32, u64::from(self.bins() - 1)))
    }
}

/// The offsets of a sort's counts in scratch memory.
#[derive(Clone, Copy, Debug)]
struct Counts {
    /// For each line and digit those of the tiles.
    tiles: u64,
    /// For each line those of the digits.
    totals: u64,
}

impl<'ctx> Sorter<'_, '_, 'ctx, '_> {
    /// Sorts the lines of an area into another one by the digits of their keys; scratch memory is used from
    /// `offset` on.
    pub(super) fn sort_digits(
        &self,
        kernel: &mut Kernel,
        digits: Digits,
        from: &Area,
        to: &Area,
        offset: u64,
    ) -> Result<()> {
        let bytes = self.area_bytes(from.len);
        let areas = [self.area(from.len, offset), self.area(from.len, offset + bytes)];
        let tiles = (from.len + TILE - 1) / TILE;
        let bins = u64::from(digits.bins()) * self.lines.unsigned_abs();
        let counts = offset + 2 * bytes;
        let totals = counts + aligned(4 * bins * tiles.unsigned_abs());
        kernel.scratch_bytes = kernel.scratch_bytes.max(totals + aligned(4 * bins));
        let counts = Counts { tiles: counts, totals };
        let mut source = from;
        for pass in 0..digits.passes() {
            let target = if pass + 1 == digits.passes() { to } else { &areas[pass as usize % 2] };
            self.count(kernel, digits, pass, source, tiles, counts)?;
            self.sum(kernel, digits, pass, tiles, counts)?;
            self.distribute(kernel, digits, pass, [source, target], tiles, counts)?;
            source = target;
        }
        Ok(())
    }

    /// The address of a count.
    fn count_at(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        offset: u64,
        number: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let base = e.address_at(arguments[self.scratch as usize], offset)?;
        Self::at(e, base, number, ElementType::U32)
    }

    /// Counts the digits of each tile.
    fn count(
        &self,
        kernel: &mut Kernel,
        digits: Digits,
        pass: u32,
        from: &Area,
        tiles: i64,
        counts: Counts,
    ) -> Result<()> {
        let symbol = format!("{}_count{pass}", self.symbol);
        let (e, arguments) = self.unit.begin(&symbol, self.arrays, 0, THREADS)?;
        let e = &e;
        let prim = self.prim([from, from]);
        let int = |x: i64| e.int(prim, x.cast_unsigned());
        let (own, lane) = (block(e, prim)?, thread(e, Prim::I32)?);
        let (line, tile) = (e.udiv(own, int(tiles))?, e.urem(own, int(tiles))?);
        let bins = digits.bins();
        let table: Value<'ctx> = e.shared_array(&format!("{symbol}_counts"), Prim::I32, bins, 4)?.into();
        let has_bin = e.icmp(IntPredicate::ULT, lane, e.int(Prim::I32, u64::from(bins)))?;
        e.if_then(has_bin, || {
            e.store(e.i32(0), Self::at(e, table, lane, ElementType::U32)?, 4)?;
            Ok(())
        })?;
        e.barrier()?;
        let begin = e.add(e.mul(tile, int(TILE))?, e.resize(lane, prim, false)?)?;
        for item in 0..ITEMS {
            let position = e.add(begin, int(i64::from(item * THREADS)))?;
            e.if_then(e.icmp(IntPredicate::SLT, position, int(from.len))?, || {
                let value = self.load(e, &arguments, from, digits.key.operand, line, position)?;
                let digit = digits.digit(e, &value, pass)?;
                e.atomic(Atomic::Add, Self::at(e, table, digit, ElementType::U32)?, e.i32(1), Scope::Block)?;
                Ok(())
            })?;
        }
        e.barrier()?;
        e.if_then(has_bin, || {
            let count = e.load(Prim::I32, Self::at(e, table, lane, ElementType::U32)?, 4)?;
            let bin = e.add(e.mul(line, int(bins.into()))?, e.resize(lane, prim, false)?)?;
            let number = e.add(e.mul(bin, int(tiles))?, tile)?;
            e.store(count, self.count_at(e, &arguments, counts.tiles, number)?, 4)?;
            Ok(())
        })?;
        e.return_void()?;
        self.launch(kernel, symbol, self.lines * tiles, THREADS)
    }

    /// The exclusive sum of a value over the threads of a block, and the sum over all. `sums`: shared memory
    /// for a number of each warp.
    fn block_sum(
        e: &Emit<'_, 'ctx>,
        sums: Value<'ctx>,
        lane: Value<'ctx>,
        value: Value<'ctx>,
    ) -> Result<(Value<'ctx>, Value<'ctx>)> {
        let (warp, in_warp) = (e.lshr(lane, e.i32(5))?, e.and(lane, e.i32(31))?);
        let mut inclusive = value;
        for step in [1, 2, 4, 8, 16] {
            let before = e.shuffle_sync(e.full_warp(), Shuffle::Up, inclusive, e.i32(step))?;
            let is_there = e.icmp(IntPredicate::SGE, in_warp, e.i32(step))?;
            inclusive = e.add(inclusive, e.select(is_there, before, e.i32(0))?)?;
        }
        e.if_then(e.icmp(IntPredicate::EQ, in_warp, e.i32(31))?, || {
            e.store(inclusive, Self::at(e, sums, warp, ElementType::U32)?, 4)?;
            Ok(())
        })?;
        e.barrier()?;
        let (mut before, mut all) = (e.i32(0), e.i32(0));
        for other in 0..WARPS {
            let sum = e.load(Prim::I32, e.address_at(sums, u64::from(4 * other))?, 4)?;
            let is_before = e.icmp(IntPredicate::ULT, e.int(Prim::I32, u64::from(other)), warp)?;
            before = e.add(before, e.select(is_before, sum, e.i32(0))?)?;
            all = e.add(all, sum)?;
        }
        e.barrier()?;
        Ok((e.add(before, e.sub(inclusive, value)?)?, all))
    }

    /// Sums the counts of each digit over the tiles before.
    fn sum(&self, kernel: &mut Kernel, digits: Digits, pass: u32, tiles: i64, counts: Counts) -> Result<()> {
        let symbol = format!("{}_sum{pass}", self.symbol);
        let (e, arguments) = self.unit.begin(&symbol, self.arrays, 0, THREADS)?;
        let e = &e;
        let (own, lane) = (block(e, Prim::I64)?, thread(e, Prim::I32)?);
        let sums: Value<'ctx> = e.shared_array(&format!("{symbol}_sums"), Prim::I32, WARPS, 4)?.into();
        let first = e.mul(own, e.i64(tiles))?;
        let wide = e.zext(lane, Prim::I64)?;
        let step = e.i64(THREADS.into());
        let total = e.for_carried(e.i64(0), e.i64(tiles), step, &[e.i32(0)], |begin, before| {
            let tile = e.add(begin, wide)?;
            let inside = e.icmp(IntPredicate::SLT, tile, e.i64(tiles))?;
            let at = self.count_at(e, &arguments, counts.tiles, e.add(first, tile)?)?;
            let count = e.if_else(inside, || Ok(vec![e.load(Prim::I32, at, 4)?]), || Ok(vec![e.i32(0)]))?[0];
            let (sum, all) = Self::block_sum(e, sums, lane, count)?;
            e.if_then(inside, || {
                e.store(e.add(before[0], sum)?, at, 4)?;
                Ok(())
            })?;
            Ok(vec![e.add(before[0], all)?])
        })?[0];
        e.if_then(e.icmp(IntPredicate::EQ, lane, e.i32(0))?, || {
            e.store(total, self.count_at(e, &arguments, counts.totals, own)?, 4)?;
            Ok(())
        })?;
        e.return_void()?;
        self.launch(kernel, symbol, self.lines * i64::from(digits.bins()), THREADS)
    }

    /// Puts elements where their digits say.
    fn distribute(
        &self,
        kernel: &mut Kernel,
        digits: Digits,
        pass: u32,
        [from, to]: [&Area; 2],
        tiles: i64,
        counts: Counts,
    ) -> Result<()> {
        let symbol = format!("{}_distribute{pass}", self.symbol);
        let (e, arguments) = self.unit.begin(&symbol, self.arrays, 0, THREADS)?;
        let e = &e;
        let prim = self.prim([from, to]);
        let int = |x: i64| e.int(prim, x.cast_unsigned());
        let word = |x: u32| e.int(Prim::I32, u64::from(x));
        let (own, lane) = (block(e, prim)?, thread(e, Prim::I32)?);
        let (line, tile) = (e.udiv(own, int(tiles))?, e.urem(own, int(tiles))?);
        let bins = digits.bins();
        let table: Value<'ctx> =
            e.shared_array(&format!("{symbol}_counts"), Prim::I32, bins * WARPS, 4)?.into();
        let sums: Value<'ctx> = e.shared_array(&format!("{symbol}_sums"), Prim::I32, WARPS, 4)?.into();
        for at in (0..bins * WARPS).step_by(THREADS as usize) {
            let number = e.add(lane, word(at))?;
            e.if_then(e.icmp(IntPredicate::ULT, number, word(bins * WARPS))?, || {
                e.store(e.i32(0), Self::at(e, table, number, ElementType::U32)?, 4)?;
                Ok(())
            })?;
        }
        e.barrier()?;
        // A warp has elements that follow one another, each of its items those of neighbouring lanes.
        let (warp, in_warp) = (e.lshr(lane, e.i32(5))?, e.and(lane, e.i32(31))?);
        let counters = Self::at(e, table, e.mul(warp, word(bins))?, ElementType::U32)?;
        let in_tile = e.add(e.mul(warp, word(WARP * ITEMS))?, in_warp)?;
        let begin = e.add(e.mul(tile, int(TILE))?, e.resize(in_tile, prim, false)?)?;
        let lower = e.sub(e.shl(e.i32(1), in_warp)?, e.i32(1))?;
        let key_column = digits.key.operand;
        let mut items = Vec::new();
        for item in 0..ITEMS {
            let position = e.add(begin, int(i64::from(item * WARP)))?;
            let inside = e.icmp(IntPredicate::SLT, position, int(from.len))?;
            let digit = e.if_else(
                inside,
                || {
                    let value = self.load(e, &arguments, from, key_column, line, position)?;
                    Ok(vec![digits.digit(e, &value, pass)?])
                },
                || Ok(vec![word(bins)]),
            )?[0];
            items.push((position, inside, digit));
        }
        let mut ranks = Vec::new();
        for &(_, inside, digit) in &items {
            let equal = e.intrinsic("llvm.nvvm.match.any.sync.i32", &[], &[e.full_warp(), digit])?;
            let before = e.and(equal, lower)?;
            let count = |bits: Value<'ctx>| e.intrinsic("llvm.ctpop", &[bits.get_type()], &[bits]);
            let leads = e.and(inside, e.icmp(IntPredicate::EQ, before, e.i32(0))?)?;
            let old = e.if_else(
                leads,
                || {
                    let counter = Self::at(e, counters, digit, ElementType::U32)?;
                    Ok(vec![e.atomic(Atomic::Add, counter, count(equal)?, Scope::Block)?])
                },
                || Ok(vec![e.i32(0)]),
            )?[0];
            let leader = e.intrinsic("llvm.cttz", &[equal.get_type()], &[equal, e.bool(true)])?;
            let old = e.shuffle_sync(e.full_warp(), Shuffle::Idx, old, leader)?;
            // The next item adds behind this one.
            e.intrinsic_call("llvm.nvvm.bar.warp.sync", &[], &[e.full_warp()])?;
            ranks.push(e.add(old, count(before)?)?);
        }
        e.barrier()?;
        // A thread makes the counters of a digit the first positions of its elements of each warp.
        let has_bin = e.icmp(IntPredicate::ULT, lane, word(bins))?;
        let bin = e.add(e.mul(line, int(bins.into()))?, e.resize(lane, prim, false)?)?;
        let total = e.if_else(
            has_bin,
            || Ok(vec![e.load(Prim::I32, self.count_at(e, &arguments, counts.totals, bin)?, 4)?]),
            || Ok(vec![e.i32(0)]),
        )?[0];
        let (lesser, _) = Self::block_sum(e, sums, lane, total)?;
        e.if_then(has_bin, || {
            let number = e.add(e.mul(bin, int(tiles))?, tile)?;
            let in_tiles = e.load(Prim::I32, self.count_at(e, &arguments, counts.tiles, number)?, 4)?;
            let mut first = e.add(lesser, in_tiles)?;
            for warp in 0..WARPS {
                let at = Self::at(e, table, e.add(lane, word(warp * bins))?, ElementType::U32)?;
                let count = e.load(Prim::I32, at, 4)?;
                e.store(first, at, 4)?;
                first = e.add(first, count)?;
            }
            Ok(())
        })?;
        e.barrier()?;
        for (&(position, inside, digit), &rank) in items.iter().zip(&ranks) {
            e.if_then(inside, || {
                let first = e.load(Prim::I32, Self::at(e, counters, digit, ElementType::U32)?, 4)?;
                let target = e.resize(e.add(first, rank)?, prim, false)?;
                for k in 0..self.types.len() {
                    let value = self.load(e, &arguments, from, k, line, position)?;
                    self.store(e, &arguments, to, k, line, target, &value)?;
                }
                Ok(())
            })?;
        }
        e.return_void()?;
        self.launch(kernel, symbol, self.lines * tiles, THREADS)
    }
}
