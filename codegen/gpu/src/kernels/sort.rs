//! Stable sorts of lines by any comparator.
//!
//! What is known to be a strict weak order has one stable result, whatever the algorithm; other comparators,
//! and lines with NaNs that do not compare, are sorted literally ([`literal`]).
//!
//! Chunks of a line are sorted by a bitonic network (Batcher 1968) in shared memory, on the positions of
//! elements: of two that are compared, the later one comes first exactly if the comparator says that it is
//! before the earlier one, so the order is total and the sort stable. Longer lines are then merged by merge
//! path (Green, McColl and Bader 2012) through scratch memory, run by run, or, by one key, sorted by its
//! digits ([`radix`]). **Invariants:** a line that one block sorts is read whole before anything of it is
//! written, and a longer one is read whole by the first launch and written by the last, so results may share
//! the memory of operands; a comparator that is no strict weak order decides about the order alone: no access
//! and no loop bound depends on its consistency.

mod literal;
mod radix;

use hlo::attrs::{AttrKey, Direction};
use hlo::{ElementType, InstrId, Module, TypeClass};
use hlo_codegen::Unsupported;
use hlo_library::{FloatOrder, SortKey, sort_keys};
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Value};

pub(super) use self::radix::Digits;
use super::applied::Applied;
use super::threads::{block, max, min, search, strided, thread, warp_search};
use super::{Unit, launch};
use crate::code::{load, store, zero};
use crate::kernel::{Argument, Kernel, Stage};

/// The maximum number of elements that a block sorts.
const MAX_SLOTS: u32 = 2048;
/// The smallest number of elements for which a block has threads enough to merge, two warps.
const MIN_SLOTS: u32 = 64;
/// The maximum number of bytes of an element that are compared: [`MIN_SLOTS`] of them fit in 48 KiB next to
/// what each column takes for its alignment.
const MAX_COMPARED_BYTES: u32 = 512;
/// Elements of short lines that a block sorts together.
const GROUP_SLOTS: u32 = 512;
/// The maximum number of elements that a block merges.
const MAX_TILE: u32 = 1024;
/// The maximum number of threads of a block.
const THREADS: u32 = 256;

/// The order of elements.
pub(super) enum Order<'m> {
    /// The comparator of a sort, of `a0, b0, a1, b1, ...`.
    Comparator(Box<Applied<'m>>),
    /// The first column, floats by TOTALORDER.
    First {
        /// Greater ones first.
        descending: bool,
    },
}

impl Order<'_> {
    /// Whether it depends on a column.
    fn uses(&self, column: usize) -> bool {
        match self {
            Order::Comparator(applied) => applied.uses(2 * column) || applied.uses(2 * column + 1),
            Order::First { .. } => column == 0,
        }
    }

    /// Whether the elements `a` come before `b`: an `i1`. Columns that it does not depend on may be missing.
    fn before<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        a: &[Option<Val<'ctx>>],
        b: &[Option<Val<'ctx>>],
    ) -> Result<Value<'ctx>> {
        match self {
            Order::Comparator(applied) => {
                let arguments: Vec<_> = a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect();
                Ok(applied.result(*e, &arguments)?.registers()[0])
            }
            Order::First { descending } => {
                let key = |x: &[Option<Val<'ctx>>]| {
                    let x = x[0].as_ref().expect("invariant: the first column is loaded");
                    match x.ty().is_float() {
                        true => scalar::order_key(e, x),
                        false => Ok(x.registers()[0]),
                    }
                };
                let ty = a[0].as_ref().map(Val::ty);
                let signed = ty.is_some_and(|ty| match ty.class() {
                    TypeClass::Signed => true,
                    TypeClass::Float => ty != ElementType::F8E8M0FNU,
                    TypeClass::Pred | TypeClass::Unsigned | TypeClass::Complex => false,
                });
                let direction = if *descending { Direction::Gt } else { Direction::Lt };
                scalar::compare_integers(e, direction, signed, key(a)?, key(b)?)
            }
        }
    }
}

/// The storage of a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Storage {
    /// In an argument, at a byte offset.
    Array {
        /// The argument.
        argument: u32,
        /// Bytes before the first element.
        offset: u64,
    },
    /// Not stored: it is the position in the line.
    Position,
}

/// Columns of lines in memory.
#[derive(Clone, Debug)]
pub(super) struct Area {
    /// Each column.
    pub(super) storage: Vec<Storage>,
    /// Elements of a line.
    pub(super) len: i64,
    /// Distance of neighbours in a line.
    pub(super) stride: i64,
}

impl Area {
    /// The row-major number of an element.
    fn number<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        line: Value<'ctx>,
        position: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let prim = e.prim_of(line);
        let constant = |x: i64| e.int(prim, x.cast_unsigned());
        if self.stride == 1 {
            return e.add(e.mul(line, constant(self.len))?, position);
        }
        let (outer, inner) = (e.udiv(line, constant(self.stride))?, e.urem(line, constant(self.stride))?);
        let row = e.add(e.mul(outer, constant(self.len))?, position)?;
        e.add(e.mul(row, constant(self.stride))?, inner)
    }
}

/// Sorts lines of several columns.
pub(super) struct Sorter<'a, 'u, 'ctx, 'm> {
    pub(super) unit: &'a Unit<'u, 'ctx>,
    pub(super) module: &'m Module,
    pub(super) id: InstrId,
    /// The prefix of the symbols of its functions.
    pub(super) symbol: &'a str,
    /// The columns' types.
    pub(super) types: &'a [ElementType],
    pub(super) order: &'a Order<'m>,
    /// Radix keys for long lines, if that sorts them as well.
    pub(super) digits: Option<Digits>,
    /// The number of lines.
    pub(super) lines: i64,
    /// Arrays that functions take, the scratch memory included.
    pub(super) arrays: u32,
    /// The argument that is the scratch memory.
    pub(super) scratch: u32,
}

/// Columns in shared memory; `None`: not there.
type Shared<'ctx> = Vec<Option<Value<'ctx>>>;

/// Bytes, up to what arrays are aligned to.
pub(super) fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(u64::from(super::ALIGNMENT))
}

impl<'ctx> Sorter<'_, '_, 'ctx, '_> {
    /// Bytes of the columns that are compared, of one element.
    fn used_bytes(&self) -> u32 {
        let used = self.types.iter().enumerate().filter(|(k, _)| self.order.uses(*k));
        used.map(|(_, ty)| ty.storage_bytes() as u32).sum()
    }

    /// The maximum number of elements that a block sorts: a power of two.
    pub(super) fn max_slots(&self) -> u32 {
        // They share it with two numbers of a merge, and with alignment padding.
        let beside = 64 * (1 + self.types.len() as u32);
        let bytes = self.unit.arch.figures().shared_bytes.saturating_sub(beside);
        let fits = |slots: &u32| slots * (4 + self.used_bytes()) <= bytes;
        let fewer = |slots: &u32| (*slots > MIN_SLOTS).then_some(slots / 2);
        std::iter::successors(Some(MAX_SLOTS), fewer).find(fits).unwrap_or(MIN_SLOTS)
    }

    /// Bytes of an area of lines of a length in scratch memory.
    pub(super) fn area_bytes(&self, len: i64) -> u64 {
        let elements = (len * self.lines).unsigned_abs();
        self.types.iter().map(|ty| aligned(elements * ty.storage_bytes() as u64)).sum()
    }

    /// An area of lines of a length in scratch memory.
    pub(super) fn area(&self, len: i64, mut offset: u64) -> Area {
        let elements = (len * self.lines).unsigned_abs();
        let storage = |ty: &ElementType| {
            let storage = Storage::Array { argument: self.scratch, offset };
            offset += aligned(elements * ty.storage_bytes() as u64);
            storage
        };
        Area { storage: self.types.iter().map(storage).collect(), len, stride: 1 }
    }

    /// Sorts the lines of an area into another one, or as many of their first elements as that has; scratch
    /// memory is used from `offset` on.
    pub(super) fn sort(&self, kernel: &mut Kernel, from: &Area, to: &Area, offset: u64) -> Result<()> {
        if self.lines == 0 || from.len == 0 || to.len == 0 {
            return Ok(());
        }
        let slots = self.max_slots();
        if from.len <= i64::from(slots) {
            let slots = u32::try_from(from.len).unwrap_or(1).next_power_of_two();
            return self.sort_chunks(kernel, "", from, to, slots, to.len);
        }
        if let Some(digits) = self.digits.filter(|d| to.len == from.len && d.suits(from.len)) {
            return self.sort_digits(kernel, digits, from, to, offset);
        }
        let bytes = self.area_bytes(from.len);
        let areas = [self.area(from.len, offset), self.area(from.len, offset + bytes)];
        kernel.scratch_bytes = kernel.scratch_bytes.max(offset + 2 * bytes);
        self.sort_chunks(kernel, "_chunks", from, &areas[0], slots, i64::from(slots))?;
        let (mut width, mut pass) = (i64::from(slots), 0);
        while width < from.len {
            let last = 2 * width >= from.len;
            let (source, target) = (&areas[pass % 2], if last { to } else { &areas[(pass + 1) % 2] });
            self.merge(kernel, &format!("_merge{pass}"), source, target, width, slots.min(MAX_TILE))?;
            width *= 2;
            pass += 1;
        }
        Ok(())
    }

    /// The integer width of element numbers.
    fn prim(&self, areas: [&Area; 2]) -> Prim {
        let most = areas.iter().map(|a| a.len.saturating_mul(self.lines)).max().unwrap_or(0);
        if most <= i64::from(i32::MAX) / 4 { Prim::I32 } else { Prim::I64 }
    }

    /// Shared memory for the columns that are compared.
    fn shared(&self, e: &Emit<'_, 'ctx>, symbol: &str, elements: u32) -> Result<Shared<'ctx>> {
        let one = |(k, &ty): (usize, &ElementType)| -> Result<Option<Value<'ctx>>> {
            if !self.order.uses(k) {
                return Ok(None);
            }
            let bytes = ty.storage_bytes() as u32;
            let align = bytes.min(16);
            let prim = Prim::int(8 * align.min(8));
            let count = elements * bytes.div_ceil(8).max(1);
            Ok(Some(e.shared_array(&format!("{symbol}_column{k}"), prim, count, align)?.into()))
        };
        self.types.iter().enumerate().map(one).collect()
    }

    /// The address of an element in shared or global memory.
    fn at(
        e: &Emit<'_, 'ctx>,
        base: Value<'ctx>,
        number: Value<'ctx>,
        ty: ElementType,
    ) -> Result<Value<'ctx>> {
        let number = e.resize(number, Prim::I64, true)?;
        e.address(base, e.mul(number, e.i64(ty.storage_bytes() as i64))?)
    }

    /// The compared columns of an element in shared memory.
    fn shared_row(
        &self,
        e: &Emit<'_, 'ctx>,
        shared: &Shared<'ctx>,
        slot: Value<'ctx>,
    ) -> Result<Vec<Option<Val<'ctx>>>> {
        let one = |(base, &ty): (&Option<Value<'ctx>>, &ElementType)| {
            base.map(|base| load(e, ty, Self::at(e, base, slot, ty)?)).transpose()
        };
        shared.iter().zip(self.types).map(one).collect()
    }

    /// An element of a column in memory.
    fn load(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        area: &Area,
        column: usize,
        line: Value<'ctx>,
        position: Value<'ctx>,
    ) -> Result<Val<'ctx>> {
        let ty = self.types[column];
        match area.storage[column] {
            Storage::Array { argument, offset } => {
                let base = e.address_at(arguments[argument as usize], offset)?;
                load(e, ty, Self::at(e, base, area.number(e, line, position)?, ty)?)
            }
            Storage::Position => {
                let from = if e.prim_of(position) == Prim::I32 { ElementType::S32 } else { ElementType::S64 };
                scalar::convert(e, Val::of_storage(e, from, &[position])?, ty)
            }
        }
    }

    /// Stores an element of a column.
    #[expect(clippy::too_many_arguments, reason = "an element and where it goes")]
    fn store(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        area: &Area,
        column: usize,
        line: Value<'ctx>,
        position: Value<'ctx>,
        value: &Val<'ctx>,
    ) -> Result<()> {
        let Storage::Array { argument, offset } = area.storage[column] else { return Ok(()) };
        let base = e.address_at(arguments[argument as usize], offset)?;
        store(e, value, Self::at(e, base, area.number(e, line, position)?, self.types[column])?)
    }

    fn launch(&self, kernel: &mut Kernel, symbol: String, blocks: i64, threads: u32) -> Result<()> {
        let arguments = (0..self.arrays).map(Argument::Array).collect();
        let launch = launch(self.module, self.id, &symbol, blocks, threads, arguments)?;
        kernel.stages.push(Stage::Launch(launch));
        Ok(())
    }

    /// Sorts chunks of `slots` elements of each line. The first `keep` elements of each chunk go to the
    /// target, consecutively.
    pub(super) fn sort_chunks(
        &self,
        kernel: &mut Kernel,
        suffix: &str,
        from: &Area,
        to: &Area,
        slots: u32,
        keep: i64,
    ) -> Result<()> {
        let symbol = format!("{}{suffix}", self.symbol);
        let chunks = (from.len + i64::from(slots) - 1) / i64::from(slots);
        let group_slots = self.max_slots().min(GROUP_SLOTS);
        // Short chunks are sorted several in a block.
        let units = self.lines * chunks;
        let group = (group_slots / slots).max(1).min(u32::try_from(units).unwrap_or(u32::MAX));
        let blocks = (units + i64::from(group) - 1) / i64::from(group);
        let all = slots * group;
        let threads = (all / 2).next_multiple_of(32).clamp(32, 2 * THREADS);
        let (e, arguments) = self.unit.begin(&symbol, self.arrays, 0, threads)?;
        let prim = self.prim([from, to]);
        let int = |x: i64| e.int(prim, x.cast_unsigned());
        let slot_count = int(i64::from(slots));
        let first = e.mul(block(&e, prim)?, int(i64::from(group)))?;
        let lane = thread(&e, Prim::I32)?;
        let order: Value<'ctx> = e.shared_array(&format!("{symbol}_order"), Prim::I32, all, 4)?.into();
        let shared = self.shared(&e, &symbol, all)?;
        // For each slot the line, the first position of its chunk, the number of elements of the chunk, and
        // the slot in it.
        let position = |slot: Value<'ctx>| -> Result<[Value<'ctx>; 4]> {
            let wide = e.resize(slot, prim, false)?;
            let (own, at) = match group {
                1 => (first, wide),
                _ => (e.add(first, e.udiv(wide, slot_count)?)?, e.urem(wide, slot_count)?),
            };
            let (line, begin) = match chunks {
                1 => (own, int(0)),
                _ => (e.udiv(own, int(chunks))?, e.mul(e.urem(own, int(chunks))?, slot_count)?),
            };
            let mut count = min(&e, slot_count, e.sub(int(from.len), begin)?)?;
            if units % i64::from(group) != 0 {
                count = e.select(e.icmp(IntPredicate::SLT, own, int(units))?, count, int(0))?;
            }
            Ok([line, begin, count, at])
        };
        // Neighbouring threads move contiguous elements: for lines along an outer dimension those of adjacent
        // lines.
        let moved_slot = |n: Value<'ctx>| -> Result<Value<'ctx>> {
            if from.stride == 1 || group == 1 {
                return Ok(n);
            }
            let lines = e.int(Prim::I32, u64::from(group));
            e.add(e.mul(e.urem(n, lines)?, e.int(Prim::I32, u64::from(slots)))?, e.udiv(n, lines)?)
        };
        strided(&e, lane, threads, all, |slot| {
            let slot = moved_slot(slot)?;
            let [line, begin, count, at] = position(slot)?;
            let own = e.resize(at, Prim::I32, false)?;
            e.store(own, Self::at(&e, order, slot, ElementType::S32)?, 4)?;
            e.if_then(e.icmp(IntPredicate::SLT, at, count)?, || {
                for (k, base) in shared.iter().enumerate() {
                    let Some(base) = *base else { continue };
                    let value = self.load(&e, &arguments, from, k, line, e.add(begin, at)?)?;
                    store(&e, &value, Self::at(&e, base, slot, self.types[k])?)?;
                }
                Ok(())
            })
        })?;
        e.barrier()?;
        self.network(&e, order, &shared, slots, all, threads, lane, &position)?;
        // All is read before anything is written.
        let steps = all.div_ceil(threads);
        let mut moved = Vec::new();
        for step in 0..steps {
            let slot = e.add(lane, e.i32((step * threads).cast_signed()))?;
            let inside = e.icmp(IntPredicate::ULT, slot, e.i32(all.cast_signed()))?;
            let slot = moved_slot(slot)?;
            let [line, begin, count, at] = position(slot)?;
            let here = e.and(inside, e.icmp(IntPredicate::SLT, at, min(&e, count, int(keep))?)?)?;
            let zeros = || -> Vec<Value<'ctx>> {
                let of = |ty: &ElementType| {
                    let (prim, parts) = crate::code::storage(*ty);
                    std::iter::repeat_n(zero(&e, prim), parts as usize)
                };
                self.types.iter().flat_map(of).collect()
            };
            let values = e.if_else(
                here,
                || {
                    let own = e.load(Prim::I32, Self::at(&e, order, slot, ElementType::S32)?, 4)?;
                    let in_block = e.add(e.sub(slot, e.resize(at, Prim::I32, false)?)?, own)?;
                    let position = e.add(begin, e.resize(own, prim, false)?)?;
                    let mut values = Vec::new();
                    for (k, base) in shared.iter().enumerate() {
                        let value = match *base {
                            Some(base) => {
                                load(&e, self.types[k], Self::at(&e, base, in_block, self.types[k])?)?
                            }
                            None => self.load(&e, &arguments, from, k, line, position)?,
                        };
                        values.extend(value.to_storage(&e)?);
                    }
                    Ok(values)
                },
                || Ok(zeros()),
            )?;
            // After the elements kept of the previous chunks.
            let before = match chunks {
                1 => int(0),
                _ => e.mul(e.udiv(begin, slot_count)?, int(keep))?,
            };
            moved.push((here, line, e.add(before, at)?, values));
        }
        if chunks == 1 {
            e.barrier()?;
        }
        for (here, line, position, values) in moved {
            e.if_then(here, || {
                let mut rest = &values[..];
                for (k, &ty) in self.types.iter().enumerate() {
                    let (own, others) = rest.split_at(1 + usize::from(ty.is_complex()));
                    rest = others;
                    let value = Val::of_storage(&e, ty, own)?;
                    self.store(&e, &arguments, to, k, line, position, &value)?;
                }
                Ok(())
            })?;
        }
        e.return_void()?;
        self.launch(kernel, symbol, blocks, threads)
    }

    /// The bitonic network on the positions in `order`, all comparisons in one direction: the first step of
    /// each stage compares mirrored positions.
    #[expect(clippy::too_many_arguments, reason = "what a block has at hand")]
    fn network(
        &self,
        e: &Emit<'_, 'ctx>,
        order: Value<'ctx>,
        shared: &Shared<'ctx>,
        slots: u32,
        all: u32,
        threads: u32,
        lane: Value<'ctx>,
        position: &dyn Fn(Value<'ctx>) -> Result<[Value<'ctx>; 4]>,
    ) -> Result<()> {
        let one = e.i32(1);
        let stages = e.i32(slots.ilog2().cast_signed() + 1);
        e.for_range(one, stages, one, |stage| {
            e.for_range(e.i32(0), stage, one, |step| {
                let span = e.shl(one, e.sub(e.sub(stage, one)?, step)?)?;
                let is_first = e.icmp(IntPredicate::EQ, step, e.i32(0))?;
                let mirror = e.sub(e.shl(span, one)?, one)?;
                let flip = e.select(is_first, mirror, span)?;
                strided(e, lane, threads, all / 2, |pair| {
                    let low = e.and(pair, e.sub(span, one)?)?;
                    let x = e.sub(e.shl(pair, one)?, low)?;
                    let y = e.xor(x, flip)?;
                    let [_, _, count, at] = position(x)?;
                    let base = e.sub(x, e.resize(at, Prim::I32, false)?)?;
                    let to_x = Self::at(e, order, x, ElementType::S32)?;
                    let to_y = Self::at(e, order, y, ElementType::S32)?;
                    let (a, b) = (e.load(Prim::I32, to_x, 4)?, e.load(Prim::I32, to_y, 4)?);
                    let (early, late) = (min(e, a, b)?, max(e, a, b)?);
                    let exists = e.icmp(IntPredicate::SLT, late, e.resize(count, Prim::I32, false)?)?;
                    let late_first = e.if_else(
                        exists,
                        || {
                            let late = self.shared_row(e, shared, e.add(base, late)?)?;
                            let early = self.shared_row(e, shared, e.add(base, early)?)?;
                            Ok(vec![self.order.before(e, &late, &early)?])
                        },
                        || Ok(vec![e.bool(false)]),
                    )?[0];
                    e.store(e.select(late_first, late, early)?, to_x, 4)?;
                    e.store(e.select(late_first, early, late)?, to_y, 4)?;
                    Ok(())
                })?;
                e.barrier()
            })
        })
    }

    /// Merges pairs of neighbouring sorted runs of `width` elements, a block `tile` elements of the result.
    fn merge(
        &self,
        kernel: &mut Kernel,
        suffix: &str,
        from: &Area,
        to: &Area,
        width: i64,
        tile: u32,
    ) -> Result<()> {
        let symbol = format!("{}{suffix}", self.symbol);
        let len = from.len;
        // What is not asked for is not merged.
        let tiles = (to.len.min(len) + i64::from(tile) - 1) / i64::from(tile);
        let threads = THREADS.min(tile);
        let each = tile / threads;
        let (e, arguments) = self.unit.begin(&symbol, self.arrays, 0, threads)?;
        let e = &e;
        let prim = self.prim([from, to]);
        let int = |x: i64| e.int(prim, x.cast_unsigned());
        let own = block(e, prim)?;
        let lane = thread(e, Prim::I32)?;
        let (line, begin) = (e.udiv(own, int(tiles))?, e.mul(e.urem(own, int(tiles))?, int(tile.into()))?);
        let end = min(e, e.add(begin, int(tile.into()))?, int(len))?;
        let pair = e.and(begin, int(-(2 * width)))?;
        let left_count = min(e, int(width), e.sub(int(len), pair)?)?;
        let right = e.add(pair, left_count)?;
        let right_count = min(e, int(width), e.sub(int(len), right)?)?;
        let row = |position: Value<'ctx>| -> Result<Vec<Option<Val<'ctx>>>> {
            let one = |k: usize| {
                let used = self.order.uses(k);
                used.then(|| self.load(e, &arguments, from, k, line, position)).transpose()
            };
            (0..self.types.len()).map(one).collect()
        };
        // The number of elements of the left run before each end of the tile (merge path).
        let wide = ElementType::S64;
        let splits: Value<'ctx> = e.shared_array(&format!("{symbol}_splits"), Prim::I64, 2, 8)?.into();
        let warp = e.lshr(lane, e.i32(5))?;
        e.if_then(e.icmp(IntPredicate::ULT, warp, e.i32(2))?, || {
            let is_begin = e.icmp(IntPredicate::EQ, warp, e.i32(0))?;
            let diagonal = e.sub(e.select(is_begin, begin, end)?, pair)?;
            let low = max(e, int(0), e.sub(diagonal, right_count)?)?;
            let high = min(e, diagonal, left_count)?;
            let last = e.add(right, e.sub(diagonal, int(1))?)?;
            let split = warp_search(e, low, high, |middle| {
                let left = row(e.add(pair, middle)?)?;
                let right = row(e.sub(last, middle)?)?;
                self.order.before(e, &right, &left)
            })?;
            let split = e.resize(split, Prim::I64, false)?;
            let is_first = e.icmp(IntPredicate::EQ, e.and(lane, e.i32(31))?, e.i32(0))?;
            e.if_then(is_first, || {
                e.store(split, Self::at(e, splits, warp, wide)?, 8)?;
                Ok(())
            })
        })?;
        e.barrier()?;
        let split = |n: u64| -> Result<Value<'ctx>> {
            e.resize(e.load(Prim::I64, e.address_at(splits, 8 * n)?, 8)?, prim, false)
        };
        let count = e.sub(end, begin)?;
        let left_begin = split(0)?;
        // Clamped to the tile whatever the comparator said.
        let left_end = min(e, max(e, split(1)?, left_begin)?, e.add(left_begin, count)?)?;
        let right_begin = e.sub(e.sub(begin, pair)?, left_begin)?;
        let from_left = e.resize(e.sub(left_end, left_begin)?, Prim::I32, false)?;
        let count = e.resize(count, Prim::I32, false)?;
        let from_right = e.sub(count, from_left)?;
        let position = |slot: Value<'ctx>| -> Result<Value<'ctx>> {
            let is_left = e.icmp(IntPredicate::SLT, slot, from_left)?;
            let in_left = e.add(e.add(pair, left_begin)?, e.resize(slot, prim, true)?)?;
            let past = e.resize(e.sub(slot, from_left)?, prim, true)?;
            e.select(is_left, in_left, e.add(e.add(right, right_begin)?, past)?)
        };
        let shared = self.shared(e, &symbol, tile)?;
        let sources: Value<'ctx> = e.shared_array(&format!("{symbol}_sources"), Prim::I32, tile, 4)?.into();
        strided(e, lane, threads, tile, |slot| {
            e.if_then(e.icmp(IntPredicate::SLT, slot, count)?, || {
                let position = position(slot)?;
                for (k, base) in shared.iter().enumerate() {
                    let Some(base) = *base else { continue };
                    let value = self.load(e, &arguments, from, k, line, position)?;
                    store(e, &value, Self::at(e, base, slot, self.types[k])?)?;
                }
                Ok(())
            })
        })?;
        e.barrier()?;
        let first = e.mul(lane, e.i32(each.cast_signed()))?;
        let diagonal = min(e, first, count)?;
        let low = max(e, e.i32(0), e.sub(diagonal, from_right)?)?;
        let high = min(e, diagonal, from_left)?;
        let right_before = |right: Value<'ctx>, left: Value<'ctx>| -> Result<Value<'ctx>> {
            let right = self.shared_row(e, &shared, e.add(from_left, right)?)?;
            let left = self.shared_row(e, &shared, left)?;
            self.order.before(e, &right, &left)
        };
        let split =
            search(e, low, high, |middle| right_before(e.sub(e.sub(diagonal, e.i32(1))?, middle)?, middle))?;
        let start = [split, e.sub(diagonal, split)?];
        let last = min(e, e.add(first, e.i32(each.cast_signed()))?, count)?;
        e.for_carried(first, last, e.i32(1), &start, |slot, state| {
            let (left, right) = (state[0], state[1]);
            let some_left = e.icmp(IntPredicate::SLT, left, from_left)?;
            let some_right = e.icmp(IntPredicate::SLT, right, from_right)?;
            let is_right = e.if_else(
                e.and(some_left, some_right)?,
                || Ok(vec![right_before(right, left)?]),
                || Ok(vec![e.not(some_left)?]),
            )?[0];
            let source = e.select(is_right, e.add(from_left, right)?, left)?;
            e.store(source, Self::at(e, sources, slot, ElementType::S32)?, 4)?;
            let step = e.zext(is_right, Prim::I32)?;
            Ok(vec![e.add(left, e.sub(e.i32(1), step)?)?, e.add(right, step)?])
        })?;
        e.barrier()?;
        strided(e, lane, threads, tile, |slot| {
            let target = e.add(begin, e.resize(slot, prim, false)?)?;
            let inside = e.icmp(IntPredicate::SLT, target, min(e, end, int(to.len))?)?;
            e.if_then(inside, || {
                let source = e.load(Prim::I32, Self::at(e, sources, slot, ElementType::S32)?, 4)?;
                let position = position(source)?;
                for k in 0..self.types.len() {
                    let value = self.load(e, &arguments, from, k, line, position)?;
                    self.store(e, &arguments, to, k, line, target, &value)?;
                }
                Ok(())
            })
        })?;
        e.return_void()?;
        self.launch(kernel, symbol, self.lines * tiles, threads)
    }
}

/// Emits a sort.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    let instr = module.instr(id);
    let refuse = |why: &str| Unsupported::new(module, id, why);
    let shapes: Option<Vec<_>> = instr.operands().iter().map(|&o| module.instr(o).shape.as_array()).collect();
    let shapes = shapes.ok_or_else(|| refuse("a sort of what is no array"))?;
    let first = *shapes.first().ok_or_else(|| refuse("a sort of nothing"))?;
    let dimension = instr.attrs.ints_or_empty(AttrKey::Dimensions).first().copied().unwrap_or(0);
    let dimension = usize::try_from(dimension).unwrap_or(0);
    let len = first.dims.get(dimension).copied().unwrap_or(1);
    let stride: i64 = first.dims.iter().skip(dimension + 1).product();
    let elements: i64 = first.dims.iter().product();
    let types: Vec<ElementType> = shapes.iter().map(|s| s.element_type).collect();
    let comparator = instr.attrs.computation(AttrKey::ToApply);
    let comparator = comparator.ok_or_else(|| refuse("a sort without a comparator"))?;
    let twice: Vec<ElementType> = types.iter().flat_map(|&ty| [ty, ty]).collect();
    let order = Order::Comparator(Box::new(Applied::new(module, id, comparator, &twice)?));
    let count = types.len() as u32;
    let area = |first: u32| Area {
        storage: (0..count).map(|k| Storage::Array { argument: first + k, offset: 0 }).collect(),
        len,
        stride: stride.max(1),
    };
    let mut kernel = Kernel::default();
    if elements == 0 {
        return Ok(kernel);
    }
    let mut sorter = Sorter {
        unit,
        module,
        id,
        symbol,
        types: &types,
        order: &order,
        digits: None,
        lines: elements / len,
        arrays: 2 * count,
        scratch: 2 * count,
    };
    let (from, to) = (area(0), area(count));
    let Some(keys) = sort_keys(module, comparator, &types) else {
        sorter.arrays += 1;
        sorter.sort_literally(&mut kernel, &from, &to)?;
        return Ok(kernel);
    };
    if sorter.used_bytes() > MAX_COMPARED_BYTES {
        return Err(refuse("a comparator whose columns do not fit into shared memory").into());
    }
    if let [key] = keys[..] {
        sorter.digits = Digits::of(key, types[key.operand]);
    }
    let partial: Vec<SortKey> = keys.into_iter().filter(|k| k.floats == FloatOrder::Partial).collect();
    if len > i64::from(sorter.max_slots()) || !partial.is_empty() {
        sorter.arrays += 1;
    }
    if partial.is_empty() {
        sorter.sort(&mut kernel, &from, &to, 0)?;
        return Ok(kernel);
    }
    let apart = sorter.sort_apart(&mut kernel, &partial, &from, 0)?;
    sorter.sort(&mut kernel, &from, &to, apart.end)?;
    sorter.put_back(&mut kernel, &apart, &to)?;
    Ok(kernel)
}
