//! Batched small GEMM: small matrices, many or one. Each product is computed by one thread from operands in
//! place; nothing is packed.
//!
//! | operands | how |
//! |---|---|
//! | columns of the right one are contiguous, or become so by transposing it | rows of the result are vectors of columns, a few rows at a time (`columns`) |
//! | terms are contiguous in both | for a few rows, sixteen elements of the result at a time, of several matrices if these have fewer: vectors of terms are summed, then transposed and added |
//! | of a vector of a few terms | one element after the other, the vector in registers (`vectors`) |
//! | the batch is contiguous in one of them | sixteen matrices at a time, one per lane |
//! | any strides, few products | one element after the other, from lists of offsets |
//!
//! Floats of at most 32 bits are computed in all of these ways, other numbers in those of `columns` and
//! `vectors`.
//!
//! **Invariant:** how an element is summed depends on the shape alone.

mod columns;
mod vectors;
mod wide;

use hlo::ElementType;
use hlo_library_base::Sent;
use hlo_library_base::floats::Narrow;
use hlo_library_base::isa::Features;
use hlo_library_base::memory::Shared;
use hlo_library_base::simd::vectorized;
use hlo_library_base::workspace::with_workspace;
use smallvec::SmallVec;

use super::operand::{Field, Operand};
use super::product::Extents;
use super::step::{self, Number, Step};
use super::steps::Steps;
use super::{Call, Dot, sums_are_elements};

/// The most multiplications of a product: larger ones are worth packing.
const MAX_MULTIPLICATIONS: usize = 1 << 15;
/// The most elements of a result that are sums over vectors of terms.
const MAX_SUMMED_ELEMENTS: usize = 64;
/// The most bytes of a row of the result where columns are contiguous. (Complex numbers have two sums each.)
const MAX_ROW_BYTES: usize = 256;
/// The same in columns of `f32`.
const MAX_F32_COLUMNS: usize = MAX_ROW_BYTES / size_of::<f32>();
/// Smaller batches gain nothing over packed products from being widened, rounded or, from so many
/// multiplications on, transposed.
const MIN_CONVERTED_MATRICES: usize = 8;
const MIN_TRANSPOSED_MULTIPLICATIONS: usize = 1 << 12;
/// The most elements of a result for which a vector has elements of several matrices, and the most terms of
/// each.
const MAX_FLAT_ELEMENTS: usize = 15;
const MAX_FLAT_TERMS: usize = 64;
/// The most terms of a vector that is kept in registers.
const MAX_REGISTER_TERMS: usize = 8;
/// The fewest rows for which right matrices of more than [`MAX_REGISTER_TERMS`] terms are transposed; if
/// there is another way, twice as many columns are needed as well.
const MIN_TRANSPOSED_ROWS: usize = 4;
/// The most multiplications of a product whose operands have lists of offsets.
const MAX_LISTED_MULTIPLICATIONS: usize = 1024;
/// The largest stride of matrices, in elements, for gathers of one element of each of sixteen matrices.
const MAX_MATRIX_STRIDE: usize = 1 << 24;
/// The most elements of a matrix that are transposed by scalar code.
const MAX_SCALAR_ELEMENTS: usize = 32;
/// Columns and terms of bytes from which instructions that multiply several terms are faster.
const MIN_GROUPED_EXTENT: usize = 32;
/// Multiplications of a chunk.
const CHUNK_MULTIPLICATIONS: usize = 1 << 16;
/// Elements of the transposed right matrices of a chunk: they are read from the first-level cache.
const CHUNK_TRANSPOSED_ELEMENTS: usize = 1 << 11;

/// How operands are laid out.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    Columns,
    Terms,
    Vectors,
    /// Both operands have one batch stride.
    Lanes,
    /// Offsets of rows and terms of the left operand, of columns and terms of the right one.
    Listed(Box<[Vec<isize>; 4]>),
}

/// What to do. Strides are in elements.
#[derive(Clone, Debug)]
pub(super) struct BatchedSmall {
    field: Field,
    extents: Extents,
    form: Form,
    /// Strides of rows and terms of the left operand.
    left: [isize; 2],
    /// Strides of columns and terms of the right one.
    right: [isize; 2],
    /// The operands are swapped: the result is a vector either way.
    swapped: bool,
    /// The terms of columns are contiguous: the right matrices of a chunk are transposed first, to these
    /// offsets.
    transposed: Option<Steps>,
    /// Of operands that are no words: matrices of a chunk are widened before.
    wider: [Option<Wider>; 2],
    /// Of a result that is no word: elements of a chunk are rounded after.
    rounded: Option<Narrow>,
}

/// How elements become words.
#[derive(Clone, Debug)]
enum Wider {
    /// Floats `f32`.
    Floats(Narrow),
    /// Integers of these types `i32`.
    S8,
    U8,
    S16,
    U16,
}

impl Wider {
    /// For integers that words hold; `None` if that is something else.
    fn of_integers(ty: ElementType) -> Option<Wider> {
        match ty {
            ElementType::S8 => Some(Wider::S8),
            ElementType::U8 => Some(Wider::U8),
            ElementType::S16 => Some(Wider::S16),
            ElementType::U16 => Some(Wider::U16),
            _other => None,
        }
    }

    /// Reads `n` elements.
    ///
    /// # Safety
    /// `from` has elements `at..at + n` of the type, and there is space for as many words.
    unsafe fn widen(&self, from: *const u8, at: usize, to: *mut u8, n: usize) {
        macro_rules! integers {
            ($t:ty) => {{
                // SAFETY: the caller's.
                let (from, to) = unsafe {
                    (Shared::<$t>::new(from.cast_mut()).slice(at, n), Shared::<i32>::new(to).slice_mut(0, n))
                };
                vectorized(|| to.iter_mut().zip(from).for_each(|(to, &x)| *to = i32::from(x)));
            }};
        }
        match self {
            // SAFETY: the caller's.
            Wider::Floats(narrow) => unsafe {
                let to = Shared::<f32>::new(to).slice_mut(0, n);
                vectorized(|| narrow.widen(from, at, to));
            },
            Wider::S8 => integers!(i8),
            Wider::U8 => integers!(u8),
            Wider::S16 => integers!(i16),
            Wider::U16 => integers!(u16),
        }
    }
}

/// Whether the matrices of an operand are contiguous, without gaps.
fn is_dense(of: &Operand) -> bool {
    let (rows, terms) = (of.rows.size() as isize, of.terms.size() as isize);
    let (Some(row), Some(term)) = (of.rows.single(), of.terms.single()) else { return false };
    let by_rows = (term == 1 || terms == 1) && (row == terms || rows == 1);
    let by_terms = (row == 1 || rows == 1) && (term == rows || terms == 1);
    (by_rows || by_terms) && of.batch.single() == Some(rows * terms) && of.offset >= 0
}

/// Where the operands of each matrix begin: those of the first one, and either batch strides in elements or
/// lists of offsets.
struct Operands<'a, W> {
    first: [*const W; 2],
    batch: [&'a Steps; 2],
    steps: Option<[isize; 2]>,
}

impl<W> Clone for Operands<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Operands<'_, W> {}

impl<'a, W> Operands<'a, W> {
    fn new(first: [*const W; 2], batch: [&'a Steps; 2]) -> Self {
        let [a, b] = batch.map(Steps::single);
        Self { first, batch, steps: a.zip(b).map(|(a, b)| [a, b]) }
    }

    fn swapped(self) -> Self {
        let ([a, b], [x, y]) = (self.first, self.batch);
        Self::new([b, a], [y, x])
    }

    /// The same memory as words of another type.
    fn cast<V>(self) -> Operands<'a, V> {
        Operands { first: self.first.map(<*const W>::cast), batch: self.batch, steps: self.steps }
    }

    #[inline]
    fn of(&self, matrix: usize) -> [*const W; 2] {
        let offsets = match self.steps {
            Some(steps) => steps.map(|step| step * matrix as isize),
            None => self.batch.map(|batch| batch.offset(matrix)),
        };
        [self.first[0].wrapping_offset(offsets[0]), self.first[1].wrapping_offset(offsets[1])]
    }
}

/// Sums that an element of the result takes while it is computed.
fn sums(word: ElementType) -> usize {
    if word.is_complex() { 2 } else { 1 }
}

impl BatchedSmall {
    /// For these operands; `None` if they are large, few, of other types or are in another way.
    pub(super) fn new(
        field: Field,
        extents: Extents,
        lhs: &Operand,
        rhs: &Operand,
        result: ElementType,
    ) -> Option<BatchedSmall> {
        let Extents { batch, m, n, k } = extents;
        let work = m.saturating_mul(n).saturating_mul(k);
        let converted = lhs.conversion.is_some() || rhs.conversion.is_some();
        if converted || !(1..=MAX_MULTIPLICATIONS).contains(&work) || !Features::here().avx512 {
            return None;
        }
        if field != Field::F32 {
            let small = Self::of_words(field, extents, [lhs, rhs], result)?;
            let transposed = small.transposed.is_some() && work >= MIN_TRANSPOSED_MULTIPLICATIONS;
            return (batch >= MIN_CONVERTED_MATRICES || !small.converts() && !transposed).then_some(small);
        }
        let types = [lhs.ty, rhs.ty, result];
        let floats =
            types.iter().all(|ty| matches!(ty, ElementType::F32 | ElementType::BF16 | ElementType::F16));
        let widened = [lhs, rhs].iter().all(|of| of.ty == ElementType::F32 || is_dense(of));
        if !floats || !widened {
            return None;
        }
        if batch < MIN_CONVERTED_MATRICES && types.iter().any(|&ty| ty != ElementType::F32) {
            return None;
        }
        let [left, right, rounded] = types.map(|ty| (ty != ElementType::F32).then(|| Narrow::new(ty)));
        let wider = [left, right].map(|narrow| narrow.map(Wider::Floats));
        let singles = |of: &Operand| Some([of.rows.single()?, of.terms.single()?]);
        let (Some(left), Some(right)) = (singles(lhs), singles(rhs)) else {
            if work > MAX_LISTED_MULTIPLICATIONS || m * n > MAX_FLAT_ELEMENTS {
                return None;
            }
            let offsets = |of: &Steps| (0..of.size()).map(|i| of.offset(i)).collect::<Vec<_>>();
            let lists = [&lhs.rows, &lhs.terms, &rhs.rows, &rhs.terms].map(offsets);
            let form = Form::Listed(Box::new(lists));
            return Some(BatchedSmall {
                field,
                extents,
                form,
                left: [0; 2],
                right: [0; 2],
                swapped: false,
                transposed: None,
                wider,
                rounded,
            });
        };
        // A vector by a matrix whose columns are contiguous.
        let swapped = n == 1 && m > 3 && left[0] == 1;
        let (extents, left, mut right) =
            if swapped { (Extents { batch, m: 1, n: m, k }, right, left) } else { (extents, left, right) };
        let Extents { m, n, .. } = extents;
        let terms = left[1] == 1 && right[1] == 1 || k == 1;
        let mut transposed = None;
        let form = if n == 1 && k <= MAX_REGISTER_TERMS {
            Form::Vectors
        } else if terms && m * n <= MAX_FLAT_ELEMENTS && n == 1 {
            Form::Terms
        } else if (right[0] == 1 || n == 1) && n <= MAX_F32_COLUMNS {
            Form::Columns
        } else if terms
            && n <= MAX_F32_COLUMNS
            && (k <= MAX_REGISTER_TERMS
                || m >= MIN_TRANSPOSED_ROWS && (n >= 2 * MIN_TRANSPOSED_ROWS || m * n > MAX_SUMMED_ELEMENTS))
        {
            right = [1, n as isize];
            transposed = Some(Steps::new([(batch, (n * k) as isize)]));
            Form::Columns
        } else if terms && m * n <= MAX_SUMMED_ELEMENTS {
            Form::Terms
        } else {
            let steps = [lhs.batch.single()?, rhs.batch.single()?];
            let near = |step: &isize| step.unsigned_abs() <= MAX_MATRIX_STRIDE;
            if m * n > MAX_SUMMED_ELEMENTS
                || k > MAX_FLAT_TERMS
                || !steps.contains(&1)
                || !steps.iter().all(near)
            {
                return None;
            }
            Form::Lanes
        };
        Some(BatchedSmall { field, extents, form, left, right, swapped, transposed, wider, rounded })
    }

    /// For operands that are no floats of at most 32 bits, if the result is words of the field, and they are
    /// or hold smaller integers.
    fn of_words(
        field: Field,
        extents: Extents,
        [lhs, rhs]: [&Operand; 2],
        result: ElementType,
    ) -> Option<BatchedSmall> {
        let word = field.word();
        let is_word = |ty: ElementType| ty.storage_bytes() == word.storage_bytes();
        let smaller = |of: &Operand| {
            let integers = field == Field::I32 && result != ElementType::Pred && is_dense(of);
            Wider::of_integers(of.ty).filter(|_| integers)
        };
        let bytes = [lhs, rhs].iter().all(|of| of.ty.storage_bytes() == 1);
        if bytes && extents.n >= MIN_GROUPED_EXTENT && extents.k >= MIN_GROUPED_EXTENT {
            return None;
        }
        let wider = [lhs, rhs].map(|of| if is_word(of.ty) { None } else { smaller(of) });
        let plain = is_word(result)
            && [lhs, rhs].iter().zip(&wider).all(|(of, wider)| is_word(of.ty) || wider.is_some());
        let [left, right] = [lhs, rhs].map(|of| of.rows.single().zip(of.terms.single()));
        let (left, right): ([_; 2], [_; 2]) = (left?.into(), right?.into());
        let Extents { batch, m, n, k } = extents;
        // A vector by a matrix whose columns are contiguous.
        let swapped = n == 1 && m > 1 && left[0] == 1;
        let (extents, left, mut right) =
            if swapped { (Extents { batch, m: 1, n: m, k }, right, left) } else { (extents, left, right) };
        let n = extents.n;
        if !plain
            || !sums_are_elements(field, result)
            || n > MAX_ROW_BYTES / word.storage_bytes() / sums(word)
        {
            return None;
        }
        let transposed = (right[0] != 1 && n > 1).then(|| Steps::new([(batch, (n * k) as isize)]));
        if transposed.is_some() {
            right = [1, n as isize];
        }
        let form = if n == 1 && k <= MAX_REGISTER_TERMS { Form::Vectors } else { Form::Columns };
        Some(BatchedSmall { field, extents, form, left, right, swapped, transposed, wider, rounded: None })
    }

    /// Whether elements are no words.
    fn converts(&self) -> bool {
        self.wider.iter().any(Option::is_some) || self.rounded.is_some()
    }

    /// Whether it is better than a product of a matrix and a vector at a time.
    pub(super) fn is_flat(&self) -> bool {
        let Extents { m, n, k, .. } = self.extents;
        m * n <= MAX_FLAT_ELEMENTS && k <= MAX_FLAT_TERMS || self.swapped
    }

    /// Computes the products.
    ///
    /// # Safety
    /// As of [`Operation::run`](super::Operation::run) of `dot`, of which this was made.
    pub(super) unsafe fn run(&self, dot: &Dot, call: Call<'_>) {
        let Extents { batch, m, .. } = dot.extents;
        let chunk = self.chunk();
        let sent = Sent(call);
        call.pool.run(batch.div_ceil(chunk), &|number| {
            let call = sent.get();
            let matrices = number * chunk..batch.min((number + 1) * chunk);
            // SAFETY: the caller's; chunks are different parts of the result.
            unsafe {
                let matrices = matrices.clone();
                match self.field {
                    Field::F32 => self.chunk_of::<step::WideF32>(dot, call, matrices),
                    Field::F64 => self.chunk_of::<step::WideF64>(dot, call, matrices),
                    Field::I32 => self.chunk_of::<step::WideI32>(dot, call, matrices),
                    Field::I64 => self.chunk_of::<step::WideI64>(dot, call, matrices),
                    Field::C64 => self.chunk_of::<step::WideC64>(dot, call, matrices),
                    Field::C128 => self.chunk_of::<step::WideC128>(dot, call, matrices),
                }
            }
            if let Some((epilogue, each)) = call.epilogue.zip(dot.result_rows) {
                let rows = |matrix: usize| (matrix * m) as u64 * each;
                epilogue(rows(matrices.start), rows(matrices.end));
            }
        });
        if dot.result_rows.is_none() {
            dot.report_all(call);
        }
    }

    /// Computes the products of a chunk.
    unsafe fn chunk_of<S: Step<Word: Number, Sum = <S as Step>::Word>>(
        &self,
        dot: &Dot,
        call: &Call<'_>,
        matrices: std::ops::Range<usize>,
    ) {
        let Extents { m, n, .. } = dot.extents;
        let operands = [&dot.lhs, &dot.rhs];
        let matrix = operands.map(|operand| operand.rows.size() * operand.terms.size());
        let elements = [matrix[0], matrix[1], m * n].map(|n| n * matrices.len());
        let widened = |i: usize| if self.wider[i].is_some() { elements[i] } else { 0 };
        let rounded = if self.rounded.is_some() { elements[2] } else { 0 };
        let right = self.extents.n * self.extents.k;
        let transposed = if self.transposed.is_some() { right * matrices.len() } else { 0 };
        let words = widened(0) + widened(1) + rounded + transposed;
        with_workspace(words * size_of::<S::Word>(), |memory| {
            let (mut memory, mut first) = (Shared::<S::Word>::new(memory), [std::ptr::null(); 2]);
            for (i, operand) in operands.into_iter().enumerate() {
                let argument = call.arguments[i].cast_const();
                first[i] = match &self.wider[i] {
                    None => argument.cast::<S::Word>().wrapping_offset(operand.offset),
                    // SAFETY: words are what elements become, the matrices are dense, and there is space for
                    // them.
                    Some(wider) => unsafe {
                        let at = operand.offset.unsigned_abs() + matrices.start * matrix[i];
                        let to = memory.pointer();
                        wider.widen(argument, at, to.cast(), elements[i]);
                        memory = memory.offset(elements[i]);
                        to.cast_const().wrapping_sub(matrices.start * matrix[i])
                    },
                };
            }
            let mut operands = Operands::new(first, operands.map(|operand| &operand.batch));
            if self.swapped {
                operands = operands.swapped();
            }
            if let Some(steps) = &self.transposed {
                // SAFETY: the caller's; there is space for them.
                unsafe { self.transpose_right(dot, matrices.clone(), operands, memory.pointer()) };
                operands.first[1] = memory.pointer().cast_const().wrapping_sub(right * matrices.start);
                operands = Operands::new(operands.first, [operands.batch[0], steps]);
                // SAFETY: as above.
                memory = unsafe { memory.offset(transposed) };
            }
            let (offset, result) = (matrices.start * m * n, call.arguments[2]);
            // SAFETY: the caller's; there is space for results that are rounded after, of sums that are
            // `f32`.
            unsafe {
                match &self.rounded {
                    None => self.products::<S>(matrices, operands, result.cast::<S::Sum>().add(offset)),
                    Some(narrow) => {
                        let to = memory.pointer();
                        self.products::<S>(matrices, operands, to);
                        let sums = Shared::<f32>::new(to.cast());
                        vectorized(|| narrow.narrow(sums.slice(0, elements[2]), result, offset));
                    }
                }
            }
        });
    }

    /// Transposes the right matrices of a chunk: columns become contiguous.
    ///
    /// # Safety
    /// They are there, and so is space for them at `to`.
    unsafe fn transpose_right<W: Copy>(
        &self,
        dot: &Dot,
        matrices: std::ops::Range<usize>,
        operands: Operands<'_, W>,
        to: *mut W,
    ) {
        let Extents { n, k, .. } = self.extents;
        // The columns of swapped operands are contiguous.
        let [column, term] = [&dot.rhs.rows, &dot.rhs.terms].map(|steps| steps.single().unwrap_or(1));
        let blocks = size_of::<W>() == size_of::<f32>() && term == 1 && n * k > MAX_SCALAR_ELEMENTS;
        for (index, matrix) in matrices.enumerate() {
            let [_, b] = operands.of(matrix);
            let to = to.wrapping_add(index * n * k);
            if blocks {
                let rows = (0..n as isize).map(|i| b.wrapping_offset(i * column).cast::<u8>());
                let rows: SmallVec<[*const u8; MAX_F32_COLUMNS]> = rows.collect();
                // SAFETY: the caller's: the rows are there, and there is space for them; the machine has
                // AVX-512, or this would not have been made.
                unsafe { hlo_library_base::transpose::columns(&rows, k, to.cast(), n * size_of::<W>()) };
                continue;
            }
            for t in 0..k {
                for i in 0..n {
                    // SAFETY: the caller's.
                    unsafe { *to.add(t * n + i) = *b.offset(i as isize * column + t as isize * term) };
                }
            }
        }
    }

    /// Matrices of a chunk.
    fn chunk(&self) -> usize {
        let Extents { batch, m, n, k } = self.extents;
        let transposed = if self.transposed.is_some() { CHUNK_TRANSPOSED_ELEMENTS / (n * k) } else { batch };
        (CHUNK_MULTIPLICATIONS / (m * n * k)).min(transposed).clamp(1, batch.max(1))
    }

    /// Computes the products of these matrices, whose operands begin where `operands` says.
    ///
    /// # Safety
    /// They are there, and `to`, the address of the first result, has space for all results one after the
    /// other.
    unsafe fn products<S: Step<Word: Number, Sum = <S as Step>::Word>>(
        &self,
        matrices: std::ops::Range<usize>,
        operands: Operands<'_, S::Word>,
        to: *mut S::Sum,
    ) {
        let (floats, result) = (operands.cast::<f32>(), to.cast::<f32>());
        // SAFETY: the caller's; the machine has AVX-512, or this would not have been made; the other forms
        // are of `f32` alone.
        unsafe {
            match &self.form {
                Form::Columns => columns::columns::<S>(self, matrices, operands, to),
                Form::Vectors => vectors::vectors(self, matrices, operands, to),
                Form::Terms if self.extents.m * self.extents.n <= MAX_FLAT_ELEMENTS => {
                    wide::flat_terms(self, matrices, floats, result)
                }
                Form::Terms => wide::terms(self, matrices, floats, result),
                Form::Lanes => wide::lanes(self, matrices, floats, result),
                Form::Listed(lists) => wide::listed(lists, matrices, floats, result),
            }
        }
    }
}
