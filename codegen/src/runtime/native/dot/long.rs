//! Products of few rows and columns of very many terms: parts of the terms are products of a batch, which threads share, and their results are added up
//! in order. **Invariant:** the shape alone says how terms are cut.

use super::operand::{Field, Operand};
use super::product::{Extents, Narrow, Product, Schedule, Target};
use super::source::{Strided, Typed};
use super::steps::Steps;
use super::{reader, tile};
use crate::runtime::native::Call;

/// The least number of terms, and the least for each row and column.
const TERMS: usize = 1 << 13;
const TIMES: usize = 32;
/// The most elements of the result.
const ELEMENTS: usize = 1 << 13;
/// Multiplications of a part, about, and the most parts.
const PART: usize = 4 << 20;
const PARTS: usize = 16;
/// Elements of the result that are added up at a time.
const PIECE: usize = 1 << 10;

/// How the terms are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Long {
    /// Whole parts, and the terms of each.
    parts: usize,
    each: usize,
    /// What is left of the terms.
    rest: usize,
}

impl Long {
    /// For these operands; `None` if other ways are better.
    pub(super) fn new(field: Field, extents: Extents, lhs: &Operand, rhs: &Operand) -> Option<Long> {
        let Extents { batch, m, n, k } = extents;
        let plain = |o: &Operand| o.conversion.is_none() && o.terms.single().is_some();
        let suits = field == Field::F32
            && plain(lhs)
            && plain(rhs)
            && batch == 1
            && k >= TERMS.max(m.max(n).saturating_mul(TIMES))
            && m.saturating_mul(n) <= ELEMENTS;
        let parts = (m.saturating_mul(n).saturating_mul(k) / PART).min(PARTS);
        if !suits || parts < 2 {
            return None;
        }
        let each = k / parts / 16 * 16;
        Some(Long { parts, each, rest: k - parts * each })
    }

    /// The products: the first part, how many, and the terms of each.
    fn products(self) -> impl Iterator<Item = (usize, usize, usize)> {
        [(0, self.parts, self.each), (self.parts, 1, self.rest)].into_iter().filter(|p| p.2 > 0)
    }

    fn extents(extents: Extents, parts: usize, terms: usize) -> Extents {
        Extents { batch: parts, k: terms, ..extents }
    }

    /// Bytes of the results of all parts.
    fn sums(self, extents: Extents) -> usize {
        ((self.parts + 1) * extents.m * extents.n * size_of::<f32>()).next_multiple_of(64)
    }

    /// Bytes of scratch memory, by the schedule of a product.
    pub(super) fn scratch(self, extents: Extents, schedule: impl Fn(Extents) -> Schedule) -> usize {
        let products = self.products().map(|(_, parts, terms)| {
            let extents = Self::extents(extents, parts, terms);
            schedule(extents).scratch(extents)
        });
        self.sums(extents) + products.max().unwrap_or(0)
    }

    /// Computes it.
    ///
    /// # Safety
    /// The arguments are the operands and the result, whose elements lie one after the other; the scratch memory has [`Long::scratch`] bytes.
    pub(super) unsafe fn run(
        self,
        extents: Extents,
        [lhs, rhs]: [&Operand; 2],
        schedule: impl Fn(Extents) -> Schedule,
        narrow: Option<Narrow<f32>>,
        result_bytes: usize,
        call: Call<'_>,
    ) {
        let Extents { m, n, .. } = extents;
        let elements = m * n;
        let sums = call.scratch.cast::<f32>();
        let scratch = call.scratch.wrapping_add(self.sums(extents));
        let (rows, columns) = (Steps::new([(m, n as isize)]), Steps::new([(n, 1)]));
        let mut all = 0;
        for (first, parts, terms) in self.products() {
            let steps = |o: &Operand| {
                let stride = o.terms.single().expect("invariant: `new` saw that it is one");
                (
                    first as isize * self.each as isize * stride,
                    Steps::new([(parts, self.each as isize * stride)]),
                )
            };
            let [left, right] = [(lhs, 0), (rhs, 1)].map(|(o, k)| {
                let (before, batch) = steps(o);
                let at = (o.offset + before) * o.ty.storage_bytes() as isize;
                (o, call.arguments[k].cast_const().wrapping_offset(at), batch)
            });
            let (batch, part) =
                (Steps::new([(parts, elements as isize)]), Self::extents(extents, parts, terms));
            let [left, right] = [&left, &right].map(|(o, base, batch)| Typed {
                view: Strided { base: *base, batch, rows: &o.rows, terms: &o.terms },
                reader: reader::<tile::F32>(o),
            });
            let base = sums.wrapping_add(first * elements).cast();
            let product = Product::<tile::F32> {
                extents: part,
                schedule: schedule(part),
                left: &left,
                right: &right,
                target: Target {
                    base,
                    bytes: 4,
                    batch: &batch,
                    rows: &rows,
                    columns: &columns,
                    narrow: None,
                },
                finished: None,
                start: std::ptr::null(),
                scratch,
                pool: call.pool,
            };
            // SAFETY: the caller's; the parts are in the operands.
            unsafe { product.run() };
            all = first + parts;
        }
        let sent = super::Sent(call);
        call.pool.run(elements.div_ceil(PIECE), &|piece| {
            let call = sent.get();
            let (first, end) = (piece * PIECE, elements.min((piece + 1) * PIECE));
            // SAFETY: the parts are done; pieces are disjoint, and the first part's results take the others'.
            unsafe {
                let sums = call.scratch.cast::<f32>();
                let own = std::slice::from_raw_parts_mut(sums.add(first), end - first);
                for part in 1..all {
                    let more = std::slice::from_raw_parts(sums.add(part * elements + first), end - first);
                    own.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                }
                let to = call.arguments[2].add(first * result_bytes);
                match narrow {
                    Some(narrow) => narrow(own.as_ptr(), own.len(), to, 1),
                    None => std::ptr::copy_nonoverlapping(own.as_ptr(), to.cast(), own.len()),
                }
            }
        });
    }
}
