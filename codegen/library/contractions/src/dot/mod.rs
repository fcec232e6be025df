//! `dot`: contractions over any dimensions of any element types.
//!
//! | file | holds |
//! |---|---|
//! | `steps` | indices along several dimensions as offsets |
//! | `operand` | the numbers a product is computed in, and its operands |
//! | `convert` | elements to words, sums to elements |
//! | `source`, `lines` | packing |
//! | `step`, `tile` | vector instructions and register tiles |
//! | `schedule` | how products are cut, and where operands are read |
//! | `product` | blocks, chunks, threads |
//! | `strategy` | which of the following computes a contraction |
//! | `grouped` | instructions that take several terms at a time: `bf16`, bytes |
//! | `gemv` | GEMV: products of a matrix and a vector (`narrow`: for AVX2) |
//! | `skinny` | skinny GEMM: products of a matrix and 2 to 16 vectors |
//! | `batched_small` | batched small GEMM |
//! | `outer_product` | outer products: products of one term |
//! | `unavailable` | stands for `skinny`, `grouped`, `batched_small` and `outer_product` on machines other than x86-64 |
//! | `split_k` | split-K GEMM: few rows and columns, very many terms |
//! | `view` | operands that are moved or widened on the way |
//! | `ragged`, `scaled` | `ragged-dot`, `scaled-dot` |
//!
//! **Numerics** (SEMANTICS.md, "Sums"): floats of at most 32 bits are summed in `f32`, with `f64` among them
//! in `f64`, and rounded once into the result; integers are computed modulo 2^32 or 2^64 and cut; `pred` is
//! an or of ands.

#![allow(clippy::too_many_arguments, reason = "panels are packed from and to many addresses")]
#![allow(clippy::needless_range_loop, reason = "lanes and rows of several arrays go together")]

#[cfg(target_arch = "x86_64")]
mod batched_small;
pub(super) mod convert;
mod gemv;
#[cfg(target_arch = "x86_64")]
pub(super) mod grouped;
#[cfg(target_arch = "x86_64")]
mod lines;
pub(super) mod operand;
#[cfg(target_arch = "x86_64")]
mod outer_product;
pub(super) mod product;
pub(super) mod ragged;
pub(super) mod scaled;
pub(super) mod schedule;
#[cfg(target_arch = "x86_64")]
mod skinny;
pub(super) mod source;
mod split_k;
pub(super) mod step;
pub(super) mod steps;
mod strategy;
pub(super) mod tile;
#[cfg(not(target_arch = "x86_64"))]
mod unavailable;
pub(super) mod view;

#[cfg(test)]
pub(super) mod tests;

use hlo::attrs::Precision;
use hlo::{ArrayShape, AttrKey, ElementType, InstrId, Module};
use smallvec::SmallVec;

use gemv::Gemv;
use hlo_library_base::pool::Pool;
use hlo_library_base::{Call, Operation, PREPARED_OPERAND, Prepared, Unsupported};
use operand::{Field, Operand};
use product::{Extents, Finished, Left, Narrow, Product, Schedule, Target, pack_ahead, words_ahead};
#[cfg(target_arch = "x86_64")]
use skinny::Skinny;
use source::{Readable, Reader, Source, Strided, Typed};
use steps::Steps;
use strategy::Strategy;
use tile::Arithmetic;
use view::View;

/// A contraction.
#[derive(Clone, Debug)]
pub(super) struct Dot {
    field: Field,
    extents: Extents,
    schedule: Schedule,
    strategy: Strategy,
    lhs: Operand,
    rhs: Operand,
    /// Batch, rows, columns of the result.
    result: [Steps; 3],
    result_type: ElementType,
    /// Rows of the result (all dimensions but the last) for each row of a matrix; `None`: rows of matrices
    /// are parts of the result's.
    result_rows: Option<u64>,
    /// All rows of the result.
    all_rows: u64,
}

/// As what a right operand is packed ahead of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ahead {
    /// Words of one term.
    Words,
    /// Words of two `bf16`.
    Pairs,
}

/// Dimensions of one operand by their part in a contraction.
struct Parts {
    batch: SmallVec<[usize; 4]>,
    contracting: SmallVec<[usize; 4]>,
    free: SmallVec<[usize; 4]>,
}

impl Parts {
    fn of(module: &Module, id: InstrId, rank: usize, batch: AttrKey, contracting: AttrKey) -> Parts {
        let list = |key| -> SmallVec<[usize; 4]> {
            let ints = module.instr(id).attrs.ints_or_empty(key).iter();
            ints.map(|&d| usize::try_from(d).expect("invariant: the verifier checked dimension numbers"))
                .collect()
        };
        let (batch, contracting) = (list(batch), list(contracting));
        let free = (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect();
        Parts { batch, contracting, free }
    }
}

/// The dimensions of an array of static shape.
pub(super) fn sizes(
    module: &Module,
    id: InstrId,
    shape: &ArrayShape,
) -> Result<SmallVec<[usize; 4]>, Unsupported> {
    if shape.is_dynamic() {
        return Err(Unsupported::new(module, id, "dynamic dimensions"));
    }
    shape
        .dims
        .iter()
        .map(|&d| usize::try_from(d).map_err(|_| Unsupported::new(module, id, "unbounded dimensions")))
        .collect()
}

/// Row-major strides.
pub(super) fn strides(sizes: &[usize]) -> SmallVec<[isize; 4]> {
    let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(1, sizes.len());
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d].wrapping_mul(sizes[d].max(1) as isize);
    }
    strides
}

/// Some dimensions as steps.
fn steps(sizes: &[usize], strides: &[isize], dims: &[usize]) -> Steps {
    Steps::new(dims.iter().map(|&d| (sizes[d], strides[d])))
}

/// Puts contracted dimensions in the order in which they are in memory, where both operands do not agree by
/// how far they jump in each: any order of the terms of a sum is as good, and this one goes through memory
/// line by line, and is fewer steps where the dimensions are one in both operands.
fn order_terms([l, r]: [&mut Parts; 2], [left, right]: [&View; 2]) {
    let mut pairs: SmallVec<[(usize, usize); 4]> =
        l.contracting.iter().copied().zip(r.contracting.iter().copied()).collect();
    let jump = |view: &View, d: usize| {
        let far = view.strides[d].unsigned_abs().max(1).ilog2();
        (view.elements as u64).saturating_mul(u64::from(far))
    };
    let jumps = |&(i, j): &(usize, usize)| jump(left, i).saturating_add(jump(right, j));
    let before = pairs.last().map(jumps);
    pairs.sort_by_key(|pair| std::cmp::Reverse(jumps(pair)));
    let after = pairs.last().map(jumps);
    // A slightly better locality is not worth another order.
    if before.zip(after).is_some_and(|(before, after)| after <= before / 2) {
        (l.contracting, r.contracting) = pairs.into_iter().unzip();
    }
}

/// Refuses what changes the meaning of operands.
pub(super) fn check_precision(module: &Module, id: InstrId) -> Result<(), Unsupported> {
    match module.instr(id).attrs.precisions() {
        Some(p) if p.contains(&Precision::PackedNibble) => {
            Err(Unsupported::new(module, id, "operand_precision=packed_nibble"))
        }
        Some(_) | None => Ok(()),
    }
}

impl Dot {
    /// Of a `dot`.
    pub(super) fn of(module: &Module, id: InstrId) -> Result<Dot, Unsupported> {
        Self::of_views(module, id, View::operands(module, id)?)
    }

    /// Of a `dot` whose operands are these views of arrays in memory.
    pub(super) fn of_views(
        module: &Module,
        id: InstrId,
        [left, right]: [View; 2],
    ) -> Result<Dot, Unsupported> {
        check_precision(module, id)?;
        let result = module.instr(id).shape.expect_array();
        sizes(module, id, result)?;
        let mut l =
            Parts::of(module, id, left.sizes.len(), AttrKey::LhsBatchDims, AttrKey::LhsContractingDims);
        let mut r =
            Parts::of(module, id, right.sizes.len(), AttrKey::RhsBatchDims, AttrKey::RhsContractingDims);
        order_terms([&mut l, &mut r], [&left, &right]);
        let (field, ty) = Field::of(left.ty, right.ty, result.element_type);
        let operand = |view: &View, parts: &Parts| {
            let conversion = field.seen(view.memory, view.ty, ty);
            let conversion = conversion
                .map_err(|()| Unsupported::new(module, id, "an operand that is converted twice"))?;
            Ok(Operand {
                ty: view.memory,
                conversion,
                elements: view.elements,
                offset: view.offset,
                batch: steps(&view.sizes, &view.strides, &parts.batch),
                rows: steps(&view.sizes, &view.strides, &parts.free),
                terms: steps(&view.sizes, &view.strides, &parts.contracting),
            })
        };
        let (lhs, rhs) = (operand(&left, &l)?, operand(&right, &r)?);
        let extents =
            Extents { batch: lhs.batch.size(), m: lhs.rows.size(), n: rhs.rows.size(), k: lhs.terms.size() };
        let Extents { batch, m, n, .. } = extents;
        let matrix = m.wrapping_mul(n) as isize;
        let last = result.dims.last().map_or(1, |&d| d as usize);
        let all_rows = batch.wrapping_mul(m).wrapping_mul(n).checked_div(last).unwrap_or(0);
        let mut dot = Dot {
            field,
            extents,
            schedule: Schedule::new::<tile::F32>(extents, None, None, None),
            strategy: Strategy::of(field, extents, [&lhs, &rhs], result.element_type),
            lhs,
            rhs,
            result: [Steps::new([(batch, matrix)]), Steps::new([(m, n as isize)]), Steps::new([(n, 1)])],
            result_type: result.element_type,
            result_rows: (!r.free.is_empty() && last > 0).then(|| (n / last.max(1)) as u64),
            all_rows: all_rows as u64,
        };
        let schedule = match field {
            Field::F32 => scheduled::<tile::F32>(extents, &dot.lhs, &dot.rhs),
            Field::F64 => scheduled::<tile::F64>(extents, &dot.lhs, &dot.rhs),
            Field::I32 => scheduled::<tile::I32>(extents, &dot.lhs, &dot.rhs),
            Field::I64 => scheduled::<tile::I64>(extents, &dot.lhs, &dot.rhs),
            Field::C64 => scheduled::<tile::C64>(extents, &dot.lhs, &dot.rhs),
            Field::C128 => scheduled::<tile::C128>(extents, &dot.lhs, &dot.rhs),
        };
        dot.schedule = if sums_are_elements(field, dot.result_type) { schedule.blocked() } else { schedule };
        Ok(dot)
    }

    /// Computes it in this way, which is that of the contraction or the other one of that.
    ///
    /// # Safety
    /// As of [`Operation::run`].
    unsafe fn run_by(&self, strategy: &Strategy, call: Call<'_>) {
        // SAFETY: the caller's.
        unsafe {
            match strategy {
                Strategy::Gemv(gemv) => self.run_gemv(*gemv, call),
                Strategy::BatchedSmall(batched_small) => batched_small.run(self, call),
                #[cfg(target_arch = "x86_64")]
                Strategy::Skinny(skinny) => self.run_skinny(*skinny, call),
                #[cfg(not(target_arch = "x86_64"))]
                Strategy::Skinny(skinny) => match *skinny {},
                Strategy::Grouped(grouped, other) => {
                    if !grouped.run(self, call) {
                        self.run_by(other, call);
                    }
                }
                Strategy::SplitK(split_k) => {
                    split_k.run(convert::from_f32(self.result_type), self.result_type.storage_bytes(), call);
                    self.report_all(call);
                }
                Strategy::OuterProduct(outer_product) if call.epilogue.is_none() => {
                    let [lhs, rhs] = self.sources::<tile::F32>(call);
                    outer_product.run(&lhs, &rhs, call.arguments[2].cast(), call.pool);
                }
                Strategy::OuterProduct(_) | Strategy::Packed => match self.field {
                    Field::F32 => self.run_in::<tile::F32>(call, convert::from_f32(self.result_type)),
                    Field::F64 => self.run_in::<tile::F64>(call, convert::from_f64(self.result_type)),
                    Field::I32 => self.run_in::<tile::I32>(call, convert::from_i32(self.result_type)),
                    Field::I64 => self.run_in::<tile::I64>(call, None),
                    Field::C64 => self.run_in::<tile::C64>(call, None),
                    Field::C128 => self.run_in::<tile::C128>(call, None),
                },
            }
        }
    }

    unsafe fn run_gemv(&self, gemv: Gemv, call: Call<'_>) {
        // SAFETY: the caller's.
        unsafe {
            match gemv.field {
                Field::F32 => self.gemv_in::<tile::F32, f32>(gemv, call, convert::from_f32(self.result_type)),
                Field::F64 => self.gemv_in::<tile::F64, f64>(gemv, call, convert::from_f64(self.result_type)),
                Field::I32 => self.gemv_in::<tile::I32, i32>(gemv, call, convert::from_i32(self.result_type)),
                Field::I64 => self.gemv_in::<tile::I64, i64>(gemv, call, None),
                Field::C64 | Field::C128 => unreachable!("invariant: no kernel reads a matrix of these"),
            }
        }
        self.report_all(call);
    }

    /// The arrays of a product of a matrix and vectors; the vectors, and their argument.
    fn matrix_and_vectors<'a>(
        &'a self,
        matrix_left: bool,
        call: Call<'_>,
    ) -> (gemv::Arrays<'a>, &'a Operand, *mut u8) {
        let first = |operand: &Operand, argument: *mut u8| {
            argument.cast_const().wrapping_offset(operand.offset * operand.ty.storage_bytes() as isize)
        };
        let (lhs, rhs) = ((&self.lhs, call.arguments[0]), (&self.rhs, call.arguments[1]));
        let ((matrix, of_matrix), (x, of_x)) = if matrix_left { (lhs, rhs) } else { (rhs, lhs) };
        let arrays = gemv::Arrays {
            matrix: first(matrix, of_matrix),
            matrix_batch: &matrix.batch,
            vector: first(x, of_x),
            vector_batch: &x.batch,
            out: call.arguments[2],
            scratch: call.scratch,
        };
        (arrays, x, of_x)
    }

    unsafe fn gemv_in<A, S>(&self, gemv: Gemv, call: Call<'_>, narrow: Option<Narrow<S>>)
    where
        A: Arithmetic<Word = S, Sum = S>,
        S: Readable + step::Number,
    {
        let (arrays, x, of_x) = self.matrix_and_vectors(gemv.matrix_left, call);
        let packed = typed(x, of_x, reader::<A>(x));
        // SAFETY: the caller's.
        unsafe { gemv.run(arrays, &packed, narrow, self.result_type.storage_bytes(), call.pool) };
    }

    #[cfg(target_arch = "x86_64")]
    unsafe fn run_skinny(&self, skinny: Skinny, call: Call<'_>) {
        // SAFETY: the caller's.
        unsafe {
            match skinny.field {
                Field::F32 => self.skinny_in::<tile::F32, skinny::Floats>(
                    skinny,
                    call,
                    convert::from_f32(self.result_type),
                ),
                Field::I32 => self.skinny_in::<tile::I32, skinny::Pairs>(
                    skinny,
                    call,
                    convert::from_i32(self.result_type),
                ),
                Field::F64 | Field::I64 | Field::C64 | Field::C128 => {
                    unreachable!("invariant: no kernel multiplies these with a few vectors")
                }
            }
        }
        self.report_all(call);
    }

    #[cfg(target_arch = "x86_64")]
    unsafe fn skinny_in<A, L>(&self, skinny: Skinny, call: Call<'_>, narrow: Option<Narrow<L::Word>>)
    where
        A: Arithmetic<Word = L::Word>,
        L: skinny::Lanes<Word: Readable>,
    {
        let (arrays, x, of_x) = self.matrix_and_vectors(skinny.matrix_left, call);
        let packed = typed(x, of_x, reader::<A>(x));
        // SAFETY: the caller's.
        unsafe { skinny.run::<L>(arrays, &packed, narrow, self.result_type.storage_bytes(), call.pool) };
    }

    /// Whether the right operand can be packed ahead of runs, and as what: of products of blocks of floats,
    /// whose kernels read panels.
    fn ahead(&self) -> Option<Ahead> {
        let floats = matches!(self.field, Field::F32 | Field::F64);
        let Extents { batch, m, n, k } = self.extents;
        if !floats || self.rhs.conversion.is_some() || [batch, m, n, k].contains(&0) {
            return None;
        }
        match &self.strategy {
            Strategy::Grouped(grouped, _) => grouped.may_be_ahead().then_some(Ahead::Pairs),
            Strategy::Packed => self.schedule.may_be_ahead().then_some(Ahead::Words),
            Strategy::Gemv(_)
            | Strategy::BatchedSmall(_)
            | Strategy::Skinny(_)
            | Strategy::SplitK(_)
            | Strategy::OuterProduct(_) => None,
        }
    }

    unsafe fn prepare_words<A: Arithmetic<Word: Readable>>(&self, rhs: *const u8, to: *mut u8, pool: &Pool) {
        let right = typed(&self.rhs, rhs, reader::<A>(&self.rhs));
        // SAFETY: the caller's.
        unsafe { pack_ahead::<A>(self.extents, &right, to.cast(), pool) };
    }

    unsafe fn run_in<A: Arithmetic<Word: Readable>>(&self, call: Call<'_>, narrow: Option<Narrow<A::Sum>>) {
        // SAFETY: the caller's; the scratch memory is cut as `scratch_bytes` added it up.
        unsafe {
            let [lhs, rhs] = self.sources::<A>(call);
            let scratch = call.scratch.add(self.lhs.scratch() + self.rhs.scratch());
            let ahead = match self.ahead() {
                Some(Ahead::Words) => call.prepared.cast::<A::Word>(),
                Some(Ahead::Pairs) | None => std::ptr::null(),
            };
            let zero = std::ptr::null();
            self.product::<A>(self.extents, self.schedule, [&lhs, &rhs], ahead, narrow, zero, scratch, call);
        }
    }

    /// Both operands, converted if need be.
    unsafe fn sources<A: Arithmetic<Word: Readable>>(&self, call: Call<'_>) -> [Typed<'_, A::Word>; 2] {
        // SAFETY: the caller's; the scratch memory is cut as `scratch_bytes` added it up.
        unsafe {
            let scratch = call.scratch.add(self.lhs.scratch());
            [
                self.source::<A>(&self.lhs, call.arguments[0], call.scratch, call),
                self.source::<A>(&self.rhs, call.arguments[1], scratch, call),
            ]
        }
    }

    unsafe fn product<A: Arithmetic>(
        &self,
        extents: Extents,
        schedule: Schedule,
        [left, right]: [&dyn Source<A::Word>; 2],
        ahead: *const A::Word,
        narrow: Option<Narrow<A::Sum>>,
        start: *const A::Sum,
        scratch: *mut u8,
        call: Call<'_>,
    ) {
        let [batch, rows, columns] = &self.result;
        let bytes = self.result_type.storage_bytes();
        let target = Target { base: call.arguments[2], bytes, batch, rows, columns, narrow };
        let m = self.extents.m as u64;
        let finished = call.epilogue.zip(self.result_rows).map(|(epilogue, each)| {
            move |batch: usize, first: usize, end: usize| {
                epilogue((batch as u64 * m + first as u64) * each, (batch as u64 * m + end as u64) * each);
            }
        });
        let finished = finished.as_ref().map(|f| f as Finished<'_>);
        let product = Product::<A> {
            extents,
            schedule,
            left,
            right,
            target,
            finished,
            ahead,
            start,
            scratch,
            pool: call.pool,
        };
        // SAFETY: the caller's.
        unsafe { product.run() };
        if self.result_rows.is_none() {
            self.report_all(call);
        }
    }

    /// Calls the epilogue, if there is one, for all rows.
    fn report_all(&self, call: Call<'_>) {
        let Some(epilogue) = call.epilogue else { return };
        let each = self.all_rows.div_ceil(64).max(64);
        call.pool.run(self.all_rows.div_ceil(each) as usize, &|chunk| {
            let first = chunk as u64 * each;
            epilogue(first, self.all_rows.min(first + each));
        });
    }

    /// An operand, converted if need be.
    unsafe fn source<'a, A: Arithmetic<Word: Readable>>(
        &self,
        operand: &'a Operand,
        argument: *const u8,
        scratch: *mut u8,
        call: Call<'_>,
    ) -> Typed<'a, A::Word> {
        let base = match operand.conversion {
            Some(conversion) => {
                // SAFETY: the caller's.
                unsafe { conversion.run(argument, operand.elements, scratch, call.pool) };
                scratch.cast_const()
            }
            None => argument,
        };
        typed(operand, base, reader::<A>(operand))
    }
}

/// How a product of these operands is cut.
fn scheduled<A: Arithmetic<Word: Readable>>(extents: Extents, lhs: &Operand, rhs: &Operand) -> Schedule {
    let readable = |operand: &Operand| {
        reader::<A>(operand).same() && operand.rows.single().is_some() && operand.terms.single().is_some()
    };
    let contiguous = rhs.rows.single() == Some(1) || extents.n == 1;
    let left = readable(lhs).then(|| {
        let bytes = size_of::<A::Word>() as isize;
        let (rows, terms) = (lhs.rows.single(), lhs.terms.single());
        Left::readable(rows.unwrap_or(0) * bytes, terms.unwrap_or(0) * bytes, size_of::<A::Word>())
    });
    let right = rhs.terms.single().filter(|_| contiguous && readable(rhs));
    Schedule::new::<A>(extents, left, right, None)
}

/// An operand whose (converted) elements are at `base`.
fn typed<W>(operand: &Operand, base: *const u8, reader: Reader<W>) -> Typed<'_, W> {
    let base = base.wrapping_offset(operand.offset * operand.packed_type().storage_bytes() as isize);
    let view = Strided { base, batch: &operand.batch, rows: &operand.rows, terms: &operand.terms };
    Typed { view, reader }
}

/// Whether elements of the result are sums as they are.
fn sums_are_elements(field: Field, result: ElementType) -> bool {
    match field {
        Field::F32 => convert::from_f32(result).is_none(),
        Field::F64 => convert::from_f64(result).is_none(),
        Field::I32 => convert::from_i32(result).is_none(),
        Field::I64 | Field::C64 | Field::C128 => true,
    }
}

impl Operation for Dot {
    fn strategy(&self) -> &'static str {
        self.strategy.name(self.schedule.along)
    }

    fn scratch_bytes(&self) -> u64 {
        let strategy = self.strategy.scratch(self.schedule.scratch(self.extents));
        (self.lhs.scratch() + self.rhs.scratch() + strategy) as u64
    }

    fn prepared_bytes(&self, constant: &[bool]) -> Option<u64> {
        if constant.get(PREPARED_OPERAND) != Some(&true) {
            return None;
        }
        let bytes = match (self.ahead()?, &self.strategy) {
            (Ahead::Pairs, Strategy::Grouped(grouped, _)) => grouped.prepared_bytes(),
            (Ahead::Pairs | Ahead::Words, _) => match self.field {
                Field::F32 => 4 * words_ahead::<tile::F32>(self.extents),
                Field::F64 => 8 * words_ahead::<tile::F64>(self.extents),
                Field::I32 | Field::I64 | Field::C64 | Field::C128 => return None,
            },
        };
        Some(bytes as u64)
    }

    unsafe fn prepare(&self, arguments: &[*const u8], to: *mut u8, pool: &Pool) -> Prepared {
        let rhs = arguments[PREPARED_OPERAND];
        // SAFETY: the caller's; there is space for the words, and what cannot be packed as it is is not
        // packed ahead.
        unsafe {
            match (self.ahead(), &self.strategy, self.field) {
                (Some(Ahead::Pairs), Strategy::Grouped(grouped, _), _) => {
                    grouped.prepare(&self.rhs, rhs, to, pool);
                    return Prepared::Beside;
                }
                (Some(Ahead::Words), _, Field::F32) => self.prepare_words::<tile::F32>(rhs, to, pool),
                (Some(Ahead::Words), _, Field::F64) => self.prepare_words::<tile::F64>(rhs, to, pool),
                (Some(_), _, _) | (None, _, _) => return Prepared::Beside,
            }
        }
        Prepared::Instead
    }

    fn cost(&self) -> (u64, u64) {
        let Extents { batch, m, n, k } = self.extents;
        let bytes = self.lhs.elements * self.lhs.ty.storage_bytes()
            + self.rhs.elements * self.rhs.ty.storage_bytes()
            + batch * m * n * self.result_type.storage_bytes();
        let complex = if self.result_type.is_complex() { 8 } else { 2 };
        (bytes as u64, [batch, m, n, k].iter().fold(complex, |work: u64, &n| work.saturating_mul(n as u64)))
    }

    unsafe fn run(&self, call: Call<'_>) {
        // SAFETY: the caller's.
        unsafe { self.run_by(&self.strategy, call) };
    }
}

fn reader<A: Arithmetic<Word: Readable>>(operand: &Operand) -> Reader<A::Word> {
    source::reader(operand.packed_type()).expect("invariant: what cannot be packed is converted")
}
