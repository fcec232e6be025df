//! The tile of an operand: from memory to registers, and from there to shared memory, term by term.

use hlo_llvm::scalar::Val;
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Value};

use super::Words;
use super::source::{Along, Source};
use crate::code;

/// The tile of an operand in shared memory, and who loads what of it.
pub(super) struct Loader<'s> {
    source: &'s dyn Source,
    /// Of the tile.
    rows: i64,
    terms: i64,
    /// Of the whole matrix.
    all_rows: i64,
    along: Along,
    /// Accesses of a thread.
    slots: i64,
    /// Rows and terms between those of a thread.
    row_step: i64,
    term_step: i64,
    /// Words between terms in shared memory.
    pub(super) pitch: i64,
}

/// A thread's state of the operand tile that it loads.
pub(super) struct Loading<'ctx> {
    /// Row in the tile and term in the tile of the first access.
    row: Value<'ctx>,
    term: Value<'ctx>,
    /// The source's state of the row of each access.
    rows: Vec<Vec<Value<'ctx>>>,
    array: Value<'ctx>,
}

/// Words between terms in shared memory beyond the rows: neighbouring terms are 4 banks apart.
const PAD_BYTES: i64 = 16;

impl<'s> Loader<'s> {
    pub(super) fn new(
        source: &'s dyn Source,
        rows: i64,
        terms: i64,
        all_rows: i64,
        threads: i64,
        word_bytes: i64,
    ) -> Self {
        let along = source.along();
        // As wide as leaves an access for each thread.
        let mut width = along.width();
        while rows * terms / width < threads {
            width /= 2;
        }
        let (along, row_step, term_step) = match along {
            Along::Terms(_) => (Along::Terms(width), threads / (terms / width).min(threads), 0),
            Along::Rows(_) => (Along::Rows(width), 0, threads / (rows / width).min(threads)),
        };
        let slots = rows * terms / width / threads;
        let pitch = rows + PAD_BYTES / word_bytes;
        Self { source, rows, terms, all_rows, along, slots, row_step, term_step, pitch }
    }

    /// Words of the tile in shared memory.
    pub(super) fn words(&self) -> i64 {
        self.pitch * self.terms
    }

    pub(super) fn begin<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        thread: Value<'ctx>,
        batch: Value<'ctx>,
        first: Value<'ctx>,
        arguments: &[Value<'ctx>],
    ) -> Result<Loading<'ctx>> {
        let of = |x: i64| e.i32(x as i32);
        let width = self.along.width();
        let (row, term) = match self.along {
            Along::Terms(_) => {
                let per_row = self.terms / width;
                (e.udiv(thread, of(per_row))?, e.mul(e.urem(thread, of(per_row))?, of(width))?)
            }
            Along::Rows(_) => {
                let per_term = self.rows / width;
                (e.mul(e.urem(thread, of(per_term))?, of(width))?, e.udiv(thread, of(per_term))?)
            }
        };
        let mut rows = Vec::new();
        for slot in 0..self.slots {
            if slot > 0 && self.row_step == 0 {
                break;
            }
            let mut at = e.add(first, e.add(row, of(slot * self.row_step))?)?;
            if self.all_rows % self.rows != 0 {
                let width = if matches!(self.along, Along::Rows(_)) { width } else { 1 };
                let last = of(self.all_rows - width);
                at = e.select(e.icmp(IntPredicate::ULT, at, last)?, at, last)?;
            }
            rows.push(self.source.row(e, batch, at)?);
        }
        let array = arguments[self.source.argument() as usize];
        Ok(Loading { row, term, rows, array })
    }

    /// The address of an access at a first term, and whether its elements are there.
    pub(super) fn address<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        loading: &Loading<'ctx>,
        slot: i64,
        term: Value<'ctx>,
    ) -> Result<(Value<'ctx>, Option<Value<'ctx>>)> {
        let row = if self.row_step == 0 { &loading.rows[0] } else { &loading.rows[slot as usize] };
        let (mut offset, is_there) = self.source.at(e, row, term)?;
        if let Some(is_there) = is_there {
            // The first element of the array is read instead of what is absent.
            offset = e.select(is_there, offset, e.int(e.prim_of(offset), 0))?;
        }
        let bytes = self.source.ty().storage_bytes() as i64;
        let offset = e.mul(e.resize(offset, Prim::I64, false)?, e.i64(bytes))?;
        Ok((e.address(loading.array, offset)?, is_there))
    }

    /// The words at an address.
    pub(super) fn load<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        words: &Words,
        address: Value<'ctx>,
    ) -> Result<Vec<Value<'ctx>>> {
        let ty = self.source.ty();
        let width = self.along.width() as u32;
        let (prim, _) = code::storage(ty);
        let all = e.with_lanes(width).load(prim, address, width * prim.bytes() as u32)?;
        (0..width)
            .map(|lane| {
                let x = Val::of_storage(e, ty, &[e.extract(all, lane)?])?;
                Ok(words.of(e, x)?.registers()[0])
            })
            .collect()
    }

    /// Zeros where a condition does not hold.
    pub(super) fn where_it_holds<'ctx>(
        e: &Emit<'_, 'ctx>,
        holds: Option<Value<'ctx>>,
        words: Vec<Value<'ctx>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let Some(holds) = holds else { return Ok(words) };
        let zero = code::zero(e, e.prim_of(words[0]));
        words.into_iter().map(|x| e.select(holds, x, zero)).collect()
    }

    /// Loads the first tile, from a term on: a number of terms, padded with zeros.
    pub(super) fn load_first<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        words: &Words,
        loading: &Loading<'ctx>,
        begin: Value<'ctx>,
        valid: Option<Value<'ctx>>,
    ) -> Result<Vec<Vec<Value<'ctx>>>> {
        let mut all = Vec::new();
        for slot in 0..self.slots {
            let mut term = e.add(loading.term, e.i32((slot * self.term_step) as i32))?;
            let mut holds = None;
            if let Some(valid) = valid {
                let width = if matches!(self.along, Along::Terms(_)) { self.along.width() } else { 1 };
                let last = e.sub(valid, e.i32(width as i32))?;
                holds = Some(e.icmp(IntPredicate::ULT, term, valid)?);
                term = e.select(e.icmp(IntPredicate::ULT, term, last)?, term, last)?;
            }
            let (address, is_there) = self.address(e, loading, slot, e.add(begin, term)?)?;
            let loaded = self.load_there(e, words, address, is_there)?;
            all.push(Self::where_it_holds(e, holds, loaded)?);
        }
        Ok(all)
    }

    /// Loads what may be absent.
    pub(super) fn load_there<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        words: &Words,
        address: Value<'ctx>,
        is_there: Option<Value<'ctx>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let loaded = self.load(e, words, address)?;
        Self::where_it_holds(e, is_there, loaded)
    }

    /// Loads a whole tile.
    pub(super) fn load_tile<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        words: &Words,
        loading: &Loading<'ctx>,
        pointers: &[Value<'ctx>],
        begin: Value<'ctx>,
    ) -> Result<Vec<Vec<Value<'ctx>>>> {
        (0..self.slots)
            .map(|slot| {
                let (address, is_there) = if pointers.is_empty() {
                    let term = e.add(loading.term, e.i32((slot * self.term_step) as i32))?;
                    self.address(e, loading, slot, e.add(begin, term)?)?
                } else if self.row_step == 0 {
                    let stride = self.source.term_stride().unwrap_or(0);
                    let bytes = self.source.ty().storage_bytes() as i64;
                    let far = slot * self.term_step * stride * bytes;
                    (e.address_at(pointers[0], far.cast_unsigned())?, None)
                } else {
                    (pointers[slot as usize], None)
                };
                self.load_there(e, words, address, is_there)
            })
            .collect()
    }

    /// Addresses of the accesses to the tile that begins at a term, to be moved along; none if the source has
    /// to be asked each time.
    pub(super) fn pointers<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        loading: &Loading<'ctx>,
        begin: Value<'ctx>,
    ) -> Result<Vec<Value<'ctx>>> {
        if self.source.term_stride().is_none() {
            return Ok(Vec::new());
        }
        let term = e.add(begin, loading.term)?;
        (0..loading.rows.len() as i64).map(|slot| Ok(self.address(e, loading, slot, term)?.0)).collect()
    }

    /// Bytes between tiles.
    pub(super) fn advance(&self) -> i64 {
        let bytes = self.source.ty().storage_bytes() as i64;
        self.source.term_stride().unwrap_or(0) * self.terms * bytes
    }

    /// Stores what was loaded to the tile in shared memory.
    pub(super) fn store<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        loading: &Loading<'ctx>,
        shared: Value<'ctx>,
        loaded: &[Vec<Value<'ctx>>],
    ) -> Result<()> {
        let prim = e.prim_of(loaded[0][0]);
        let bytes = prim.bytes() as i64;
        let at = e.add(e.mul(loading.term, e.i32(self.pitch as i32))?, loading.row)?;
        let at = e.mul(e.zext(at, Prim::I64)?, e.i64(bytes))?;
        let first = e.address(shared, at)?;
        for (slot, words) in (0..).zip(loaded) {
            let offset = (slot * self.term_step * self.pitch + slot * self.row_step) * bytes;
            match self.along {
                Along::Terms(_) => {
                    for (i, &word) in (0..).zip(words) {
                        let offset = offset + i * self.pitch * bytes;
                        e.store(word, e.address_at(first, offset.cast_unsigned())?, bytes as u32)?;
                    }
                }
                Along::Rows(width) => {
                    let most = (16 / bytes).min(width) as usize;
                    for (i, part) in (0..).zip(words.chunks(most)) {
                        let offset = offset + i * most as i64 * bytes;
                        let value = joined(e, part)?;
                        let align = (most as i64 * bytes) as u32;
                        e.store(value, e.address_at(first, offset.cast_unsigned())?, align)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Scalars as a vector.
pub(crate) fn joined<'ctx>(e: &Emit<'_, 'ctx>, all: &[Value<'ctx>]) -> Result<Value<'ctx>> {
    if let [one] = all {
        return Ok(*one);
    }
    let v = e.with_lanes(all.len() as u32);
    let mut vector = v.poison(e.prim_of(all[0]));
    for (lane, &x) in (0..).zip(all) {
        vector = v.insert(vector, x, lane)?;
    }
    Ok(vector)
}
