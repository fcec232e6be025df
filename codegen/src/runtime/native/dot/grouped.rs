//! Products whose terms an instruction takes several at a time: pairs of `bf16`, pairs of 16-bit integers, four bytes.
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
    /// Four bytes; whether the left ones are signed, and whether the right ones are.
    Bytes(bool, bool),
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
        let byte = |ty| ty == ElementType::S8 || ty == ElementType::U8;
        let fours = rhs.terms.single().is_some() || rhs.terms.fastest().0.is_multiple_of(4);
        let kind = if kind == Kind::I16 && byte(l) && byte(r) && lhs.terms.single() == Some(1) && fours {
            Kind::Bytes(l == ElementType::S8, r == ElementType::S8)
        } else {
            kind
        };
        // Pairs must not lie across the end of a run.
        let pairs = |operand: &Operand| {
            operand.terms.single().is_some() || operand.terms.fastest().0.is_multiple_of(2)
        };
        if !pairs(lhs) || !pairs(rhs) || extents.m < 8 || extents.n < 16 || extents.k < 16 {
            return None;
        }
        let group = if matches!(kind, Kind::Bytes(_, _)) { 4 } else { 2 };
        let left = in_place(lhs, extents.k, group);
        let extents = Extents { k: extents.k.div_ceil(group), ..extents };
        let schedule = match kind {
            Kind::Bf16 => Schedule::new::<tile::Bf16>(extents, left, false, None),
            Kind::I16 => Schedule::new::<tile::I16>(extents, left, false, None),
            Kind::Bytes(_, _) => Schedule::new::<tile::BytesUS>(extents, left, false, None),
        };
        let schedule = if direct { schedule.blocked() } else { schedule };
        Some(Grouped { kind, extents, schedule })
    }

    /// Bytes of scratch memory.
    pub(super) fn scratch(&self) -> usize {
        self.schedule.scratch(self.extents) + self.starts()
    }

    /// Bytes of the sums that rows begin with.
    pub(super) fn starts(&self) -> usize {
        let Extents { batch, m, .. } = self.extents;
        match self.kind {
            Kind::Bytes(left, right) if left == right => (batch * m * size_of::<i32>()).next_multiple_of(64),
            Kind::Bytes(_, _) | Kind::Bf16 | Kind::I16 => 0,
        }
    }

    /// Writes what the sums of rows begin with: the instruction multiplies unsigned bytes with signed ones, so if all have the same sign the right ones are
    /// packed as others by 128, and 128 times the sum of the left row is taken back.
    ///
    /// # Safety
    /// The operand is there, and so is room for [`Grouped::starts`] bytes.
    pub(super) unsafe fn write_starts(&self, lhs: &Operand, base: *const u8, to: *mut i32, pool: &Pool) {
        let Extents { batch, m, .. } = self.extents;
        let (base, to) = (base.expose_provenance(), to.expose_provenance());
        let k = lhs.terms.size();
        let signed = lhs.ty == ElementType::S8;
        let rows = (CHUNK / k.max(1)).max(1);
        pool.run((batch * m).div_ceil(rows), &|chunk| {
            for row in chunk * rows..(batch * m).min((chunk + 1) * rows) {
                let at = lhs.offset + lhs.batch.offset(row / m) + lhs.rows.offset(row % m);
                // SAFETY: the caller's; terms are neighbours.
                unsafe {
                    let from = std::ptr::with_exposed_provenance::<u8>(base).offset(at);
                    let bytes = std::slice::from_raw_parts(from, k);
                    let sum: i32 = if signed {
                        -bytes.iter().fold(0, |sum: i32, &x| sum.wrapping_add(i32::from(x as i8)))
                    } else {
                        bytes.iter().fold(0, |sum: i32, &x| sum.wrapping_add(i32::from(x)))
                    };
                    *std::ptr::with_exposed_provenance_mut::<i32>(to).add(row) = sum.wrapping_mul(128);
                }
            }
        });
    }

    /// Whether these operands can be multiplied so: see the top of this file.
    ///
    /// # Safety
    /// They are there.
    pub(super) unsafe fn suits(&self, lhs: (*const u8, usize), rhs: (*const u8, usize), pool: &Pool) -> bool {
        match self.kind {
            Kind::I16 | Kind::Bytes(_, _) => true,
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

/// How words of `group` terms of a left operand can be read where they lie, if they can: none is cut.
fn in_place(lhs: &Operand, terms: usize, group: usize) -> Option<Left> {
    let bytes = lhs.ty.storage_bytes();
    let whole = bytes * group == 4
        && [ElementType::BF16, ElementType::S16, ElementType::S8, ElementType::U8].contains(&lhs.ty)
        && lhs.terms.single() == Some(1)
        && terms.is_multiple_of(group)
        && lhs.offset % group as isize == 0
        && lhs.batch.all_multiples_of(group);
    let row = lhs.rows.single().filter(|row| whole && (row % group as isize == 0 || lhs.rows.size() == 1))?;
    Some(Left::readable(bytes as isize * row, 4, 4))
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
