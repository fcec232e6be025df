//! Products whose terms an instruction takes several at a time: pairs of `bf16`, pairs of 16-bit integers.
//!
//! `vdpbf16ps` takes subnormal numbers for zero, on the way in and out. So products of `bf16` are computed with it only if nothing subnormal can occur: all operands that
//! are not zero are so large that every product, and with it every sum of products, is a multiple of the smallest normal number. [`Grouped::suits`] finds that out by a look at the
//! operands; others are computed in `f32`.

use hlo::{ElementType, TypeClass};
use std::sync::atomic::{AtomicU32, Ordering};

use super::operand::{Field, Operand};
use super::product::{Extents, Left, Schedule};
use super::tile::{self, Features};
use crate::runtime::pool::Pool;

/// Which instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Pairs of `bf16`.
    Bf16,
    /// Pairs of 16-bit integers.
    I16,
}

/// A product that can be computed by such an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grouped {
    pub(super) kind: Kind,
    pub(super) extents: Extents,
    pub(super) schedule: Schedule,
}

/// Elements of a chunk that is looked at.
const CHUNK: usize = 1 << 16;

impl Grouped {
    /// If the operands fit and it is worth it. `direct`: elements of the result are sums as they are.
    pub(super) fn new(
        field: Field,
        extents: Extents,
        lhs: &Operand,
        rhs: &Operand,
        direct: bool,
    ) -> Option<Grouped> {
        let here = Features::here();
        let in_memory = |operand: &Operand| operand.conversion.is_none().then_some(operand.ty);
        let (l, r) = (in_memory(lhs)?, in_memory(rhs)?);
        let half = |ty: ElementType| match ty.class() {
            TypeClass::Signed => ty.bits() <= 16,
            TypeClass::Unsigned => ty.bits() <= 8,
            TypeClass::Pred | TypeClass::Float | TypeClass::Complex => false,
        };
        let kind = if here.bf16 && field == Field::F32 && l == ElementType::BF16 && r == ElementType::BF16 {
            Kind::Bf16
        } else if here.vnni && field == Field::I32 && half(l) && half(r) && readable(l) && readable(r) {
            Kind::I16
        } else {
            return None;
        };
        // Pairs must not lie across the end of a run.
        let pairs = |operand: &Operand| {
            operand.terms.single().is_some() || operand.terms.fastest().0.is_multiple_of(2)
        };
        if !pairs(lhs) || !pairs(rhs) || extents.m < 8 || extents.n < 16 || extents.k < 16 {
            return None;
        }
        let left = in_place(lhs, extents.k);
        let extents = Extents { k: extents.k.div_ceil(2), ..extents };
        let schedule = match kind {
            Kind::Bf16 => Schedule::new::<tile::Bf16>(extents, left, false, None),
            Kind::I16 => Schedule::new::<tile::I16>(extents, left, false, None),
        };
        let schedule = if direct { schedule.blocked() } else { schedule };
        Some(Grouped { kind, extents, schedule })
    }

    /// Bytes of scratch memory.
    pub(super) fn scratch(&self) -> usize {
        match self.kind {
            Kind::Bf16 => self.schedule.scratch::<tile::Bf16>(self.extents),
            Kind::I16 => self.schedule.scratch::<tile::I16>(self.extents),
        }
    }

    /// Whether these operands can be multiplied so: see the top of this file.
    ///
    /// # Safety
    /// They are there.
    pub(super) unsafe fn suits(&self, lhs: (*const u8, usize), rhs: (*const u8, usize), pool: &Pool) -> bool {
        match self.kind {
            Kind::I16 => true,
            Kind::Bf16 => {
                // SAFETY: the caller's.
                let (a, b) = unsafe { (smallest(lhs, pool), smallest(rhs, pool)) };
                // Biased exponents of the smallest numbers. With 8 bits of significand each a product is a multiple of 2^(a + b - 2 * 127 - 14).
                let (a, b) = (a >> 7, b >> 7);
                a > 0 && b > 0 && a + b >= 254 - 126 + 14
            }
        }
    }
}

/// How pairs of a left operand can be read where they lie, if they can: none is cut in two.
fn in_place(lhs: &Operand, terms: usize) -> Option<Left> {
    let whole = [ElementType::BF16, ElementType::S16].contains(&lhs.ty)
        && lhs.terms.single() == Some(1)
        && terms.is_multiple_of(2)
        && lhs.offset % 2 == 0
        && lhs.batch.all_even();
    let row = lhs.rows.single().filter(|row| whole && (row % 2 == 0 || lhs.rows.size() == 1))?;
    Some(Left::readable(2 * row, 4, 4))
}

/// Whether there is a way to pack pairs of it.
fn readable(ty: ElementType) -> bool {
    [ElementType::S8, ElementType::U8, ElementType::S16].contains(&ty)
}

/// The smallest magnitude that is not zero, as its bits.
unsafe fn smallest((x, n): (*const u8, usize), pool: &Pool) -> u32 {
    let x = x.expose_provenance();
    let least = AtomicU32::new(u32::MAX);
    pool.run(n.div_ceil(CHUNK), &|chunk| {
        let first = chunk * CHUNK;
        // SAFETY: the caller's, of a part.
        let part = unsafe {
            std::slice::from_raw_parts(
                std::ptr::with_exposed_provenance::<u16>(x).add(first),
                CHUNK.min(n - first),
            )
        };
        // Zero becomes the largest number.
        let small = part.iter().fold(u16::MAX, |least, &x| least.min((x & 0x7fff).wrapping_sub(1)));
        least.fetch_min(u32::from(small), Ordering::Relaxed);
    });
    least.into_inner().saturating_add(1)
}
