//! Products whose terms an instruction takes several at a time: pairs of `bf16`, pairs of 16-bit integers,
//! four bytes.
//!
//! `vdpbf16ps` takes subnormal numbers for zero, on the way in and out. So products of `bf16` are computed
//! with it only if nothing subnormal can occur: all operands that are not zero are so large that every
//! product, and with it every sum of products, is a multiple of the smallest normal number.
//! [`Grouped::suits`] finds that out by a look at the operands; others are computed in `f32`.

use hlo::{ElementType, TypeClass};
use hlo_library_base::isa::Features;
use hlo_library_base::pool::Pool;
use hlo_library_base::{PREPARED_HEADER_BYTES, tuning};
use std::sync::atomic::{AtomicU32, Ordering};

use super::lines::Lines;
use super::operand::{Field, Operand};
use super::product::{Extents, Left, Schedule, pack_ahead, words_ahead};
use super::source::{Choose, Load, Reader, Reads, Source};
use super::tile;
use super::{Call, Dot, convert, typed};

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

/// Elements of a chunk.
const CHUNK_ELEMENTS: usize = 1 << 16;

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
        let of_bf16 = here.bf16 && tuning::here().pairs_of_bf16;
        let kind = if of_bf16 && field == Field::F32 && l == ElementType::BF16 && r == ElementType::BF16 {
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
        // For few rows or columns floats have ways of their own; other integers would be widened one by one.
        let (rows, columns) = if kind == Kind::Bf16 { (8, 16) } else { (2, 2) };
        // Pairs must not lie across the end of a run.
        let pairs = |operand: &Operand| {
            operand.terms.single().is_some() || operand.terms.fastest().0.is_multiple_of(2)
        };
        if !pairs(lhs) || !pairs(rhs) || extents.m < rows || extents.n < columns || extents.k < 16 {
            return None;
        }
        let group = if matches!(kind, Kind::Bytes(_, _)) { 4 } else { 2 };
        let left = in_place(lhs, extents.k, group);
        let extents = Extents { k: extents.k.div_ceil(group), ..extents };
        let schedule = match kind {
            Kind::Bf16 => Schedule::new::<tile::Bf16>(extents, left, None, None),
            Kind::I16 => Schedule::new::<tile::I16>(extents, left, None, None),
            Kind::Bytes(_, _) => Schedule::new::<tile::BytesUS>(extents, left, None, None),
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

    /// Writes what the sums of rows begin with: the instruction multiplies unsigned bytes with signed ones,
    /// so if all have the same sign the right ones are packed as others by 128, and 128 times the sum of the
    /// left row is taken back.
    ///
    /// # Safety
    /// The operand is there, and so is space for [`Grouped::starts`] bytes.
    pub(super) unsafe fn write_starts(&self, lhs: &Operand, base: *const u8, to: *mut i32, pool: &Pool) {
        let Extents { batch, m, .. } = self.extents;
        let (base, to) = (base.expose_provenance(), to.expose_provenance());
        let k = lhs.terms.size();
        let signed = lhs.ty == ElementType::S8;
        let rows = (CHUNK_ELEMENTS / k.max(1)).max(1);
        pool.run((batch * m).div_ceil(rows), &|chunk| {
            for row in chunk * rows..(batch * m).min((chunk + 1) * rows) {
                let at = lhs.offset + lhs.batch.offset(row / m) + lhs.rows.offset(row % m);
                // SAFETY: the caller's; terms are contiguous.
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
                unsafe { suit(smallest(lhs, pool), smallest(rhs, pool)) }
            }
        }
    }

    /// Whether a right operand can be packed ahead of runs.
    pub(super) fn may_be_ahead(&self) -> bool {
        self.kind == Kind::Bf16 && self.schedule.may_be_ahead()
    }

    /// Bytes of a right operand that is packed ahead: its smallest number, then its pairs.
    pub(super) fn prepared_bytes(&self) -> usize {
        PREPARED_HEADER_BYTES + 4 * words_ahead::<tile::Bf16>(self.extents)
    }

    /// Packs a right operand of `bf16` ahead.
    ///
    /// # Safety
    /// It is there, and so is space for [`Grouped::prepared_bytes`].
    pub(super) unsafe fn prepare(&self, operand: &Operand, rhs: *const u8, to: *mut u8, pool: &Pool) {
        let right = typed(operand, rhs, pairs(operand.ty).expect("invariant: its pairs can be packed"));
        // SAFETY: the caller's.
        unsafe {
            *to.cast::<u32>() = smallest((rhs, operand.elements), pool);
            pack_ahead::<tile::Bf16>(self.extents, &right, to.add(PREPARED_HEADER_BYTES).cast(), pool);
        }
    }

    /// Computes the product, if the operands are such that it can be computed so; says whether they are.
    ///
    /// # Safety
    /// As of [`Operation::run`](super::Operation::run) of `dot`, of which this was made.
    pub(super) unsafe fn run(&self, dot: &Dot, call: Call<'_>) -> bool {
        let (lhs, rhs) = (call.arguments[0].cast_const(), call.arguments[1].cast_const());
        // SAFETY: the caller's.
        unsafe {
            // The smallest number of the right operand, and its words.
            let prepared = (!call.prepared.is_null()).then(|| *call.prepared.cast::<u32>());
            let suits = match prepared {
                Some(least) => suit(smallest((lhs, dot.lhs.elements), call.pool), least),
                None => self.suits((lhs, dot.lhs.elements), (rhs, dot.rhs.elements), call.pool),
            };
            if !suits {
                return false;
            }
            let reader = |ty, right: bool| match self.kind {
                // Bytes of the same sign: the right ones are packed as others.
                Kind::Bytes(left, other) => bytes(right && left == other),
                Kind::Bf16 | Kind::I16 => pairs(ty).expect("invariant: its pairs can be packed"),
            };
            let (starts, scratch) = (call.scratch.cast::<i32>(), call.scratch.add(self.starts()));
            if self.starts() > 0 {
                self.write_starts(&dot.lhs, lhs, starts, call.pool);
            }
            let start = if self.starts() > 0 { starts.cast_const() } else { std::ptr::null() };
            let lhs = typed(&dot.lhs, lhs, reader(dot.lhs.ty, false));
            let rhs = typed(&dot.rhs, rhs, reader(dot.rhs.ty, true));
            let both: [&dyn Source<u32>; 2] = [&lhs, &rhs];
            let ahead = match prepared {
                Some(_) => call.prepared.add(PREPARED_HEADER_BYTES).cast::<u32>(),
                None => std::ptr::null(),
            };
            let (extents, schedule) = (self.extents, self.schedule);
            match self.kind {
                Kind::Bf16 => {
                    let narrow = convert::from_f32(dot.result_type);
                    let zero = std::ptr::null();
                    dot.product::<tile::Bf16>(extents, schedule, both, ahead, narrow, zero, scratch, call);
                }
                Kind::I16 => {
                    let narrow = convert::from_i32(dot.result_type);
                    dot.product::<tile::I16>(extents, schedule, both, ahead, narrow, start, scratch, call);
                }
                // The right bytes are signed as they are packed, if the left ones are not.
                Kind::Bytes(false, _) => {
                    let narrow = convert::from_i32(dot.result_type);
                    dot.product::<tile::BytesUS>(
                        extents, schedule, both, ahead, narrow, start, scratch, call,
                    );
                }
                Kind::Bytes(true, _) => {
                    let narrow = convert::from_i32(dot.result_type);
                    dot.product::<tile::BytesSU>(
                        extents, schedule, both, ahead, narrow, start, scratch, call,
                    );
                }
            }
        }
        true
    }
}

/// Whether products of numbers that are no smaller than these are no subnormal numbers, and multiples of the
/// smallest normal one.
fn suit(a: u32, b: u32) -> bool {
    // Biased exponents. With 8 bits of significand each a product is a multiple of 2^(a + b - 2 * 127 - 14).
    let (a, b) = (a >> 7, b >> 7);
    a > 0 && b > 0 && a + b >= 254 - 126 + 14
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
    pool.run(n.div_ceil(CHUNK_ELEMENTS), &|chunk| {
        let first = chunk * CHUNK_ELEMENTS;
        // SAFETY: the caller's, of a part.
        let part = unsafe {
            std::slice::from_raw_parts(
                std::ptr::with_exposed_provenance::<u16>(x).add(first),
                CHUNK_ELEMENTS.min(n - first),
            )
        };
        // Zero becomes the largest number.
        let small = part.iter().fold(u16::MAX, |least, &x| least.min((x & 0x7fff).wrapping_sub(1)));
        least.fetch_min(u32::from(small), Ordering::Relaxed);
    });
    least.into_inner().saturating_add(1)
}

/// Elements that are packed several terms a word.
macro_rules! groups {
    ($($(#[$doc:meta])* $name:ident: $from:ty, $group:literal, $bits:literal, $raw:literal, $flip:literal, $lines:expr, |$x:ident| $convert:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(in crate) struct $name($from);

        impl Load<u32> for $name {
            const GROUP: usize = $group;
            const SAME: bool = false;
            const RAW: bool = $raw;
            const FLIP: u32 = $flip;
            const LINES: Option<Lines> = Some($lines);

            #[inline(always)]
            unsafe fn word(from: *const Self, step: isize, present: usize) -> u32 {
                let mut word = 0;
                for i in 0..present {
                    // SAFETY: the caller's: the terms are there.
                    let $x = unsafe { (*from.offset(i as isize * step)).0 };
                    word |= u32::from($convert) << ($bits * i);
                }
                word
            }
        }
    )*};
}

groups! {
    /// A `bf16`, two to a word.
    PairOfBf16: u16, 2, 16, true, 0, Lines::Pairs, |x| x;
    /// A signed byte, two to a word as 16-bit integers.
    PairOfI8: i8, 2, 16, false, 0, Lines::PairsOfI8, |x| i16::from(x) as u16;
    /// An unsigned byte, two to a word as 16-bit integers.
    PairOfU8: u8, 2, 16, false, 0, Lines::PairsOfU8, |x| u16::from(x);
    /// A byte, four to a word.
    FourBytes: u8, 4, 8, true, 0, Lines::Bytes(0), |x| x;
    /// A byte whose sign bit is changed, four to a word: a signed one and 128, or an unsigned one less 128.
    FourFlipped: u8, 4, 8, true, 0x8080_8080, Lines::Bytes(0x8080_8080), |x| x ^ 0x80;
    /// A 16-bit integer, two to a word.
    PairOfI16: u16, 2, 16, true, 0, Lines::Pairs, |x| x;
}

/// What packs pairs of elements of a type.
pub(crate) fn pairs(ty: ElementType) -> Option<Reader<u32>> {
    let all = [
        (ElementType::BF16, <Reads as Choose<u32>>::of::<PairOfBf16>()),
        (ElementType::S8, <Reads as Choose<u32>>::of::<PairOfI8>()),
        (ElementType::U8, <Reads as Choose<u32>>::of::<PairOfU8>()),
        (ElementType::S16, <Reads as Choose<u32>>::of::<PairOfI16>()),
    ];
    all.into_iter().find(|(of, _)| *of == ty).map(|(_, reader)| reader)
}

/// What packs bytes, four to a word, with sign bits as they are or changed.
fn bytes(flipped: bool) -> Reader<u32> {
    if flipped {
        <Reads as Choose<u32>>::of::<FourFlipped>()
    } else {
        <Reads as Choose<u32>>::of::<FourBytes>()
    }
}
