//! Batches of products of little matrices: each is computed by one thread from where its operands lie; nothing is packed.
//!
//! | operands | how |
//! |---|---|
//! | columns of the right one are neighbours | rows of the result are vectors of columns, a few rows at a time |
//! | terms are neighbours in both | the right ones are transposed for that; or, for a few rows, sixteen elements of the result at a time, of several matrices if these have fewer: vectors of terms are summed, then turned over and added |
//! | of a vector of a few terms | one element after the other, the vector in registers |
//! | matrices are neighbours in one of them | sixteen matrices at a time, one a lane |
//! | anywhere, of a few products | one element after the other, from lists of places |
//!
//! **Invariant:** how an element is summed depends on the shape alone.

use hlo::ElementType;
use smallvec::SmallVec;

use super::operand::{Field, Operand};
use super::product::{Extents, with_workspace};
use super::steps::Steps;
use super::{Call, Dot};
use crate::isa::Features;
use crate::runtime::native::Sent;
use crate::runtime::native::floats::Narrow;
use crate::runtime::native::memory::Shared;
use crate::runtime::native::simd::vectorized;

/// Multiplications of a matrix, at most: larger ones are worth packing.
const LARGEST: usize = 1 << 15;
/// Elements of a result, at most, that are sums over vectors of terms.
const ELEMENTS: usize = 64;
/// Columns, at most, where these are neighbours.
const COLUMNS: usize = 64;
/// Matrices, at least.
const MATRICES: usize = 8;
/// Elements that several matrices are taken for, at most, and terms of each.
const FLAT: usize = 15;
const FLAT_TERMS: usize = 64;
/// Terms of a vector in registers, at most.
const FEW: usize = 8;
/// Rows, at least, for which right matrices are transposed, of twice as many columns if there is another way.
const TURNED: usize = 4;
/// Multiplications of a matrix, at most, whose places are listed.
const LISTED: usize = 1024;
/// Elements from a matrix to the next, at most, for lanes to hold one each.
const NEAR: usize = 1 << 24;
/// Multiplications of a chunk.
const CHUNK: usize = 1 << 16;

/// How operands lie.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    Columns,
    Terms,
    Vectors,
    /// There is one step from a matrix to the next, in both operands.
    Lanes,
    /// Places of rows and terms of the left operand, of columns and terms of the right one.
    Listed(Box<[Vec<isize>; 4]>),
}

/// What to do. Distances are in elements.
#[derive(Clone, Debug)]
pub(super) struct Little {
    extents: Extents,
    form: Form,
    /// Of rows and terms of the left operand.
    left: [isize; 2],
    /// Of columns and terms of the right one.
    right: [isize; 2],
    /// The operands change places: the result is a vector either way.
    swapped: bool,
    /// The terms of columns are neighbours: the right matrices of a chunk are transposed before, each to its place after these steps.
    turned: Option<Steps>,
    /// Of operands and of the result that are no `f32`: matrices of a chunk are widened before, and results rounded after.
    narrow: [Option<Narrow>; 3],
}

/// Whether the matrices of an operand lie one behind the other, without gaps.
fn is_dense(of: &Operand) -> bool {
    let (rows, terms) = (of.rows.size() as isize, of.terms.size() as isize);
    let (Some(row), Some(term)) = (of.rows.single(), of.terms.single()) else { return false };
    let by_rows = (term == 1 || terms == 1) && (row == terms || rows == 1);
    let by_terms = (row == 1 || rows == 1) && (term == rows || terms == 1);
    (by_rows || by_terms) && of.batch.single() == Some(rows * terms) && of.offset >= 0
}

/// Where the operands of each matrix begin: those of the first one, and either steps in elements from one to the next or any places.
#[derive(Clone, Copy)]
struct Operands<'a> {
    first: [*const f32; 2],
    batch: [&'a Steps; 2],
    steps: Option<[isize; 2]>,
}

impl<'a> Operands<'a> {
    fn new(first: [*const f32; 2], batch: [&'a Steps; 2]) -> Self {
        let [a, b] = batch.map(Steps::single);
        Self { first, batch, steps: a.zip(b).map(|(a, b)| [a, b]) }
    }

    fn swapped(self) -> Self {
        let ([a, b], [x, y]) = (self.first, self.batch);
        Self::new([b, a], [y, x])
    }

    #[inline]
    fn of(&self, matrix: usize) -> [*const f32; 2] {
        let offsets = match self.steps {
            Some(steps) => steps.map(|step| step * matrix as isize),
            None => self.batch.map(|batch| batch.offset(matrix)),
        };
        [self.first[0].wrapping_offset(offsets[0]), self.first[1].wrapping_offset(offsets[1])]
    }
}

impl Little {
    /// For these operands; `None` if they are large, few, of other types or lie in another way.
    pub(super) fn new(
        field: Field,
        extents: Extents,
        lhs: &Operand,
        rhs: &Operand,
        result: ElementType,
    ) -> Option<Little> {
        let Extents { batch, m, n, k } = extents;
        let types = [lhs.ty, rhs.ty, result];
        let floats =
            types.iter().all(|ty| matches!(ty, ElementType::F32 | ElementType::BF16 | ElementType::F16));
        let narrow = types.map(|ty| (ty != ElementType::F32).then(|| Narrow::new(ty)));
        let widened = [lhs, rhs].iter().zip(&narrow).all(|(of, narrow)| narrow.is_none() || is_dense(of));
        let work = m.saturating_mul(n).saturating_mul(k);
        if field != Field::F32 || !floats || !widened || !(1..=LARGEST).contains(&work) || batch < MATRICES {
            return None;
        }
        if lhs.conversion.is_some() || rhs.conversion.is_some() || !Features::here().avx512 {
            return None;
        }
        let singles = |of: &Operand| Some([of.rows.single()?, of.terms.single()?]);
        let (Some(left), Some(right)) = (singles(lhs), singles(rhs)) else {
            if work > LISTED || m * n > FLAT {
                return None;
            }
            let offsets = |of: &Steps| (0..of.size()).map(|i| of.offset(i)).collect::<Vec<_>>();
            let lists = [&lhs.rows, &lhs.terms, &rhs.rows, &rhs.terms].map(offsets);
            let form = Form::Listed(Box::new(lists));
            return Some(Little {
                extents,
                form,
                left: [0; 2],
                right: [0; 2],
                swapped: false,
                turned: None,
                narrow,
            });
        };
        // A vector by a matrix whose columns are neighbours.
        let swapped = n == 1 && m > 3 && left[0] == 1;
        let (extents, left, mut right) =
            if swapped { (Extents { batch, m: 1, n: m, k }, right, left) } else { (extents, left, right) };
        let Extents { m, n, .. } = extents;
        let terms = left[1] == 1 && right[1] == 1 || k == 1;
        let mut turned = None;
        let form = if n == 1 && k <= FEW {
            Form::Vectors
        } else if terms && m * n <= FLAT && n == 1 {
            Form::Terms
        } else if (right[0] == 1 || n == 1) && n <= COLUMNS {
            Form::Columns
        } else if terms && n <= COLUMNS && m >= TURNED && (n >= 2 * TURNED || m * n > ELEMENTS) {
            right = [1, n as isize];
            turned = Some(Steps::new([(batch, (n * k) as isize)]));
            Form::Columns
        } else if terms && m * n <= ELEMENTS {
            Form::Terms
        } else {
            let steps = [lhs.batch.single()?, rhs.batch.single()?];
            let near = |step: &isize| step.unsigned_abs() <= NEAR;
            if m * n > ELEMENTS || k > FLAT_TERMS || !steps.contains(&1) || !steps.iter().all(near) {
                return None;
            }
            Form::Lanes
        };
        Some(Little { extents, form, left, right, swapped, turned, narrow })
    }

    /// Whether it is better than a product of a matrix and a vector at a time.
    pub(super) fn is_flat(&self) -> bool {
        let Extents { m, n, k, .. } = self.extents;
        m * n <= FLAT && k <= FLAT_TERMS || self.swapped
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
            unsafe { self.chunk_of(dot, call, matrices.clone()) };
            if let Some((epilogue, each)) = call.epilogue.zip(dot.result_rows) {
                let rows = |matrix: usize| (matrix * m) as u64 * each;
                epilogue(rows(matrices.start), rows(matrices.end));
            }
        });
        if let (Some(epilogue), None) = (call.epilogue, dot.result_rows) {
            dot.report_all(epilogue, call);
        }
    }

    /// Computes the products of a chunk.
    unsafe fn chunk_of(&self, dot: &Dot, call: &Call<'_>, matrices: std::ops::Range<usize>) {
        let Extents { m, n, .. } = dot.extents;
        let operands = [&dot.lhs, &dot.rhs];
        let matrix = operands.map(|operand| operand.rows.size() * operand.terms.size());
        let elements = [matrix[0], matrix[1], m * n].map(|n| n * matrices.len());
        let wide = elements.iter().zip(&self.narrow).filter(|(_, narrow)| narrow.is_some());
        let turned = if self.turned.is_some() { elements[1] } else { 0 };
        let room = wide.map(|(n, _)| n).sum::<usize>() + turned;
        with_workspace(room * size_of::<f32>(), |memory| {
            let (mut memory, mut first) = (Shared::<f32>::new(memory), [std::ptr::null(); 2]);
            for (i, operand) in operands.into_iter().enumerate() {
                let argument = call.arguments[i].cast_const();
                first[i] = match &self.narrow[i] {
                    None => argument.cast::<f32>().wrapping_offset(operand.offset),
                    // SAFETY: the matrices are dense, and there is room for them.
                    Some(narrow) => unsafe {
                        let at = operand.offset.unsigned_abs() + matrices.start * matrix[i];
                        let to = memory;
                        vectorized(|| narrow.widen(argument, at, to.slice_mut(0, elements[i])));
                        memory = memory.offset(elements[i]);
                        to.pointer().cast_const().wrapping_sub(matrices.start * matrix[i])
                    },
                };
            }
            let mut batches = operands.map(|operand| &operand.batch);
            if let Some(turned) = &self.turned {
                let (n, k) = (self.extents.n, self.extents.k);
                let (row, from) = (dot.rhs.rows.single().unwrap_or(1), Operands::new(first, batches));
                for (place, matrix) in matrices.clone().enumerate() {
                    let [_, b] = from.of(matrix);
                    let rows = (0..n as isize).map(|i| b.wrapping_offset(i * row).cast::<u8>());
                    let rows: SmallVec<[*const u8; COLUMNS]> = rows.collect();
                    // SAFETY: the rows are there, and there is room for them; the machine has AVX-512, or this would not have been made.
                    unsafe {
                        let to = memory.offset(place * n * k).pointer().cast();
                        super::transpose::columns(&rows, k, to, n * size_of::<f32>());
                    }
                }
                first[1] = memory.pointer().cast_const().wrapping_sub(matrices.start * n * k);
                batches[1] = turned;
                // SAFETY: as above.
                memory = unsafe { memory.offset(elements[1]) };
            }
            let operands = Operands::new(first, batches);
            let (place, result) = (matrices.start * m * n, call.arguments[2]);
            // SAFETY: the caller's; there is room for results that are rounded after.
            unsafe {
                match &self.narrow[2] {
                    None => self.products(matrices, operands, result.cast::<f32>().add(place)),
                    Some(narrow) => {
                        self.products(matrices, operands, memory.pointer());
                        vectorized(|| narrow.narrow(memory.slice(0, elements[2]), result, place));
                    }
                }
            }
        });
    }

    /// Matrices of a chunk.
    fn chunk(&self) -> usize {
        let Extents { batch, m, n, k } = self.extents;
        (CHUNK / (m * n * k)).clamp(1, batch)
    }

    /// Computes the products of these matrices, whose operands begin where `operands` says.
    ///
    /// # Safety
    /// They are there, and `to`, the place of the first one's result, has room for all results one after the other.
    unsafe fn products(&self, matrices: std::ops::Range<usize>, operands: Operands<'_>, to: *mut f32) {
        let operands = if self.swapped { operands.swapped() } else { operands };
        // SAFETY: the caller's; the machine has AVX-512, or this would not have been made.
        unsafe {
            match &self.form {
                Form::Columns => wide::columns(self, matrices, operands, to),
                Form::Terms if self.extents.m * self.extents.n <= FLAT => {
                    wide::flat_terms(self, matrices, operands, to)
                }
                Form::Terms => wide::terms(self, matrices, operands, to),
                Form::Vectors => wide::vectors(self, matrices, operands, to),
                Form::Lanes => wide::lanes(self, matrices, operands, to),
                Form::Listed(lists) => wide::listed(lists, matrices, operands, to),
            }
        }
    }
}

mod wide {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use super::{Extents, FLAT_TERMS, Little, Operands};

    /// The first `n` lanes of a vector, all if there are more.
    fn first(n: usize) -> __mmask16 {
        ((1u32 << n.min(16)) - 1) as __mmask16
    }

    /// # Safety
    /// As [`Little::products`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn columns(
        little: &Little,
        matrices: Range<usize>,
        operands: Operands<'_>,
        to: *mut f32,
    ) {
        let Extents { m, n, .. } = little.extents;
        let start = matrices.start;
        for matrix in matrices {
            let [a, b] = operands.of(matrix);
            let mut row = 0;
            while row < m {
                let rows = (m - row).min(4);
                let a = a.wrapping_offset(row as isize * little.left[0]);
                // SAFETY: the caller's: the rows are there.
                unsafe {
                    let to = to.add(((matrix - start) * m + row) * n);
                    macro_rules! tile {
                        ($($vectors:literal),*) => {
                            match (n.div_ceil(16), rows) {
                                $(
                                    ($vectors, 4) => tile::<4, $vectors>(little, a, b, to),
                                    ($vectors, 3) => tile::<3, $vectors>(little, a, b, to),
                                    ($vectors, 2) => tile::<2, $vectors>(little, a, b, to),
                                    ($vectors, _) => tile::<1, $vectors>(little, a, b, to),
                                )*
                                (_, _) => {}
                            }
                        };
                    }
                    tile!(1, 2, 3, 4);
                }
                row += rows;
            }
        }
    }

    /// Some rows by all columns.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn tile<const ROWS: usize, const VECTORS: usize>(
        little: &Little,
        a: *const f32,
        b: *const f32,
        to: *mut f32,
    ) {
        let Extents { n, k, .. } = little.extents;
        let mask = |v: usize| first(n - 16 * v);
        let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
        for term in 0..k as isize {
            let (a, b) =
                (a.wrapping_offset(term * little.left[1]), b.wrapping_offset(term * little.right[1]));
            // SAFETY: the caller's; what is masked is not touched.
            unsafe {
                let mut line = [_mm512_setzero_ps(); VECTORS];
                for (v, line) in line.iter_mut().enumerate() {
                    *line = _mm512_maskz_loadu_ps(mask(v), b.add(16 * v));
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*a.offset(row as isize * little.left[0]));
                    for (sum, &line) in sums.iter_mut().zip(&line) {
                        *sum = _mm512_fmadd_ps(x, line, *sum);
                    }
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                // SAFETY: as above.
                unsafe { _mm512_mask_storeu_ps(to.add(row * n + 16 * v), mask(v), sum) };
            }
        }
    }

    /// # Safety
    /// As [`Little::products`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn terms(
        little: &Little,
        matrices: Range<usize>,
        operands: Operands<'_>,
        to: *mut f32,
    ) {
        let Extents { m, n, k, .. } = little.extents;
        let all = m * n;
        let mut begin = 0;
        while begin < all {
            let count = (all - begin).min(16);
            // Beyond the last element the last one again.
            let mut rows = [[0isize; 2]; 16];
            for (i, [a, b]) in rows.iter_mut().enumerate() {
                let element = begin + i.min(count - 1);
                (*a, *b) =
                    ((element / n) as isize * little.left[0], (element % n) as isize * little.right[0]);
            }
            let start = matrices.start;
            for matrix in matrices.clone() {
                let [a, b] = operands.of(matrix);
                let places = rows.map(|[row, column]| [a.wrapping_offset(row), b.wrapping_offset(column)]);
                let to = to.wrapping_add((matrix - start) * all + begin);
                // SAFETY: the caller's.
                unsafe { _mm512_mask_storeu_ps(to, first(count), sixteen(&places, k)) };
            }
            begin += count;
        }
    }

    /// Sixteen elements of as many matrices as it takes.
    ///
    /// # Safety
    /// As [`Little::products`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn flat_terms(
        little: &Little,
        matrices: Range<usize>,
        operands: Operands<'_>,
        to: *mut f32,
    ) {
        let Extents { m, n, k, .. } = little.extents;
        let all = matrices.len() * m * n;
        let (mut matrix, mut row, mut column) = (matrices.start, 0, 0);
        let mut at = [std::ptr::null(); 2];
        let mut places = [at; 16];
        let mut done = 0;
        while done < all {
            let count = (all - done).min(16);
            // Beyond the last element the last one again.
            for place in &mut places[..count] {
                if row == 0 && column == 0 {
                    at = operands.of(matrix);
                }
                *place = [
                    at[0].wrapping_offset(row as isize * little.left[0]),
                    at[1].wrapping_offset(column as isize * little.right[0]),
                ];
                column += 1;
                if column == n {
                    (row, column) = (row + 1, 0);
                }
                if row == m {
                    (matrix, row) = (matrix + 1, 0);
                }
            }
            let last = places[count - 1];
            places[count..].fill(last);
            // SAFETY: the caller's.
            unsafe { _mm512_mask_storeu_ps(to.add(done), first(count), sixteen(&places, k)) };
            done += count;
        }
    }

    /// # Safety
    /// As [`Little::products`]; there are at most [`super::FEW`] terms, and one column.
    #[target_feature(enable = "avx512f,fma")]
    pub(super) unsafe fn vectors(
        little: &Little,
        matrices: Range<usize>,
        operands: Operands<'_>,
        to: *mut f32,
    ) {
        // SAFETY: the caller's.
        unsafe {
            match little.extents.k {
                1 => vectors_of::<1>(little, matrices, operands, to),
                2 => vectors_of::<2>(little, matrices, operands, to),
                3 => vectors_of::<3>(little, matrices, operands, to),
                4 => vectors_of::<4>(little, matrices, operands, to),
                5 => vectors_of::<5>(little, matrices, operands, to),
                6 => vectors_of::<6>(little, matrices, operands, to),
                7 => vectors_of::<7>(little, matrices, operands, to),
                _ => vectors_of::<8>(little, matrices, operands, to),
            }
        }
    }

    #[target_feature(enable = "avx512f,fma")]
    #[inline]
    unsafe fn vectors_of<const K: usize>(
        little: &Little,
        matrices: Range<usize>,
        operands: Operands<'_>,
        to: *mut f32,
    ) {
        let m = little.extents.m;
        for (number, matrix) in matrices.enumerate() {
            let [a, b] = operands.of(matrix);
            // SAFETY: the caller's.
            let x: [f32; K] =
                std::array::from_fn(|term| unsafe { *b.offset(term as isize * little.right[1]) });
            for row in 0..m {
                let a = a.wrapping_offset(row as isize * little.left[0]);
                let mut sum = 0.0;
                for (term, &x) in x.iter().enumerate() {
                    // SAFETY: the caller's.
                    sum = x.mul_add(unsafe { *a.offset(term as isize * little.left[1]) }, sum);
                }
                // SAFETY: the caller's.
                unsafe { *to.add(number * m + row) = sum };
            }
        }
    }

    /// An element of each of sixteen matrices.
    #[derive(Clone, Copy)]
    struct Lanes {
        step: isize,
        /// In elements, from that of the first matrix.
        places: __m512i,
    }

    impl Lanes {
        #[target_feature(enable = "avx512f")]
        #[inline]
        fn new(step: isize) -> Self {
            let number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            Self { step, places: _mm512_mullo_epi32(number, _mm512_set1_epi32(step as i32)) }
        }

        /// # Safety
        /// Elements of the lanes that `some` names are there, at least one.
        #[target_feature(enable = "avx512f")]
        #[inline]
        unsafe fn load(self, some: __mmask16, first: *const f32) -> __m512 {
            // SAFETY: the caller's; what is masked is not touched.
            unsafe {
                match self.step {
                    0 => _mm512_set1_ps(*first),
                    1 => _mm512_maskz_loadu_ps(some, first),
                    _ => _mm512_mask_i32gather_ps::<4>(_mm512_setzero_ps(), some, self.places, first),
                }
            }
        }
    }

    /// # Safety
    /// As [`Little::products`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn lanes(
        little: &Little,
        matrices: Range<usize>,
        operands: Operands<'_>,
        to: *mut f32,
    ) {
        let Extents { m, n, k, .. } = little.extents;
        let steps = operands.steps.expect("invariant: this form is of single steps");
        let [left, right] = [Lanes::new(steps[0]), Lanes::new(steps[1])];
        let results = Lanes::new((m * n) as isize);
        let mut row = [_mm512_setzero_ps(); FLAT_TERMS];
        for matrix in matrices.clone().step_by(16) {
            let some = first(matrices.end - matrix);
            let [a, b] = operands.of(matrix);
            let to = to.wrapping_add((matrix - matrices.start) * m * n);
            for i in 0..m {
                let a = a.wrapping_offset(i as isize * little.left[0]);
                for (term, x) in (0..).zip(&mut row[..k]) {
                    // SAFETY: the caller's: the row is there in each of these matrices.
                    *x = unsafe { left.load(some, a.wrapping_offset(term * little.left[1])) };
                }
                for j in 0..n {
                    let b = b.wrapping_offset(j as isize * little.right[0]);
                    let mut sum = _mm512_setzero_ps();
                    for (term, &x) in (0..).zip(&row[..k]) {
                        // SAFETY: the caller's: the column is there in each of these matrices.
                        let y = unsafe { right.load(some, b.wrapping_offset(term * little.right[1])) };
                        sum = _mm512_fmadd_ps(x, y, sum);
                    }
                    let to = to.wrapping_add(i * n + j);
                    // SAFETY: the caller's: there is room for the results of these matrices.
                    unsafe { _mm512_mask_i32scatter_ps::<4>(to, some, results.places, sum) };
                }
            }
        }
    }

    /// # Safety
    /// As [`Little::products`].
    #[target_feature(enable = "avx512f,fma")]
    pub(super) unsafe fn listed(
        [rows, left, columns, right]: &[Vec<isize>; 4],
        matrices: Range<usize>,
        operands: Operands<'_>,
        mut to: *mut f32,
    ) {
        for matrix in matrices {
            let [a, b] = operands.of(matrix);
            for &row in rows {
                for &column in columns {
                    let (a, b) = (a.wrapping_offset(row), b.wrapping_offset(column));
                    // Four sums, which do not wait for one another.
                    let mut sums = [0.0f32; 4];
                    for (left, right) in left.chunks(4).zip(right.chunks(4)) {
                        for ((sum, &x), &y) in sums.iter_mut().zip(left).zip(right) {
                            // SAFETY: the caller's.
                            *sum = unsafe { *a.offset(x) }.mul_add(unsafe { *b.offset(y) }, *sum);
                        }
                    }
                    // SAFETY: the caller's: there is room for the results of all of these matrices.
                    unsafe {
                        *to = (sums[0] + sums[1]) + (sums[2] + sums[3]);
                        to = to.add(1);
                    }
                }
            }
        }
    }

    /// Sums of so many products, of neighbouring terms from these places on.
    ///
    /// # Safety
    /// The terms are there.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn sixteen(places: &[[*const f32; 2]; 16], k: usize) -> __m512 {
        let mut sums = [_mm512_setzero_ps(); 16];
        let mut term = 0;
        while term < k {
            let mask = first(k - term);
            for (sum, [a, b]) in sums.iter_mut().zip(places) {
                // SAFETY: the caller's; what is masked is not touched.
                unsafe {
                    let x = _mm512_maskz_loadu_ps(mask, a.add(term));
                    let y = _mm512_maskz_loadu_ps(mask, b.add(term));
                    *sum = _mm512_fmadd_ps(x, y, *sum);
                }
            }
            term += 16;
        }
        added(sums)
    }

    /// The sum of the lanes of each vector.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn added(x: [__m512; 16]) -> __m512 {
        let zero = _mm512_setzero_ps();
        let (mut pairs, mut fours, mut eights) = ([zero; 8], [zero; 4], [zero; 2]);
        for (i, pair) in pairs.iter_mut().enumerate() {
            let (a, b) = (x[2 * i], x[2 * i + 1]);
            *pair = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        }
        for (i, four) in fours.iter_mut().enumerate() {
            let (a, b) = (_mm512_castps_pd(pairs[2 * i]), _mm512_castps_pd(pairs[2 * i + 1]));
            let (low, high) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
            *four = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
        }
        for (i, eight) in eights.iter_mut().enumerate() {
            let (a, b) = (fours[2 * i], fours[2 * i + 1]);
            *eight = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
        }
        let [a, b] = eights;
        _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b))
    }
}
