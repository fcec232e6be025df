//! Split-K GEMM: few rows and columns, very many terms. Parts of the terms are a batch of products, which
//! threads share; their results are added in order. **Invariant:** the split depends on the shape alone.

use hlo_library_base::Call;

use super::gemv::add_up;
use super::operand::{Field, Operand};
use super::product::{Extents, Narrow, Product, Schedule, Target};
use super::steps::Steps;
use super::{reader, scheduled, tile, typed};

/// The fewest terms, and the fewest for each row and column.
const MIN_TERMS: usize = 1 << 13;
const MIN_TERMS_PER_ROW_AND_COLUMN: usize = 32;
/// The most elements of the result.
const MAX_ELEMENTS: usize = 1 << 13;
/// The approximate number of multiplications of a part, and the most parts.
const PART_MULTIPLICATIONS: usize = 4 << 20;
const MAX_PARTS: usize = 16;

/// What to do.
#[derive(Clone, Debug)]
pub(super) struct SplitK {
    /// A batch of parts of the same number of terms; and, if that leaves some over, a part of these.
    batches: Vec<Batch>,
    /// All parts.
    parts: usize,
    /// Elements of the result, of which there are sums for each part.
    elements: usize,
}

/// Parts that are products of a batch.
#[derive(Clone, Debug)]
struct Batch {
    /// The first part.
    first: usize,
    extents: Extents,
    schedule: Schedule,
    /// Both operands, a part each matrix.
    operands: [Operand; 2],
    /// Batch, rows, columns of the sums.
    sums: [Steps; 3],
}

impl SplitK {
    /// For these operands; `None` if other ways are better.
    pub(super) fn new(field: Field, extents: Extents, lhs: &Operand, rhs: &Operand) -> Option<SplitK> {
        let Extents { batch, m, n, k } = extents;
        let (left, right) = (lhs.terms.single()?, rhs.terms.single()?);
        let plain = lhs.conversion.is_none() && rhs.conversion.is_none();
        let elements = m.saturating_mul(n);
        let least = MIN_TERMS.max(m.max(n).saturating_mul(MIN_TERMS_PER_ROW_AND_COLUMN));
        if field != Field::F32 || !plain || batch != 1 || k < least || elements > MAX_ELEMENTS {
            return None;
        }
        let parts = (elements.saturating_mul(k) / PART_MULTIPLICATIONS).min(MAX_PARTS);
        if parts < 2 {
            return None;
        }
        let each = k / parts / 16 * 16;
        let cut = |o: &Operand, stride: isize, first: usize, parts: usize| {
            let step = each as isize * stride;
            let (offset, batch) = (o.offset + first as isize * step, Steps::new([(parts, step)]));
            Operand { offset, batch, ..o.clone() }
        };
        let batch = |first: usize, parts: usize, terms: usize| {
            let extents = Extents { batch: parts, k: terms, ..extents };
            let operands = [cut(lhs, left, first, parts), cut(rhs, right, first, parts)];
            let schedule = scheduled::<tile::F32>(extents, &operands[0], &operands[1]);
            let sums = [(parts, elements as isize), (m, n as isize), (n, 1)]
                .map(|dimension| Steps::new([dimension]));
            Batch { first, extents, schedule, operands, sums }
        };
        let rest = k - parts * each;
        let mut batches = vec![batch(0, parts, each)];
        batches.extend((rest > 0).then(|| batch(parts, 1, rest)));
        let parts = parts + usize::from(rest > 0);
        Some(SplitK { batches, parts, elements })
    }

    /// Bytes of the sums of all parts.
    fn sums(&self) -> usize {
        (self.parts * self.elements * size_of::<f32>()).next_multiple_of(64)
    }

    /// Bytes of scratch memory.
    pub(super) fn scratch(&self) -> usize {
        let products = self.batches.iter().map(|b| b.schedule.scratch(b.extents));
        self.sums() + products.max().unwrap_or(0)
    }

    /// Computes it.
    ///
    /// # Safety
    /// The arguments are the operands and the result, whose elements lie one after the other; the scratch
    /// memory has [`SplitK::scratch`] bytes.
    pub(super) unsafe fn run(&self, narrow: Option<Narrow<f32>>, result_bytes: usize, call: Call<'_>) {
        let sums = call.scratch.cast::<f32>();
        for Batch { first, extents, schedule, operands: [lhs, rhs], sums: [batch, rows, columns] } in
            &self.batches
        {
            let left = typed(lhs, call.arguments[0], reader::<tile::F32>(lhs));
            let right = typed(rhs, call.arguments[1], reader::<tile::F32>(rhs));
            let base = sums.wrapping_add(first * self.elements).cast();
            let target = Target { base, bytes: size_of::<f32>(), batch, rows, columns, narrow: None };
            let product = Product::<tile::F32> {
                extents: *extents,
                schedule: *schedule,
                left: &left,
                right: &right,
                target,
                finished: None,
                ahead: std::ptr::null(),
                start: std::ptr::null(),
                scratch: call.scratch.wrapping_add(self.sums()),
                pool: call.pool,
            };
            // SAFETY: the caller's; the parts are in the operands.
            unsafe { product.run() };
        }
        // SAFETY: the caller's; all parts are done.
        unsafe {
            add_up(sums, [1, self.parts, self.elements], call.arguments[2], narrow, result_bytes, call.pool);
        }
    }
}
