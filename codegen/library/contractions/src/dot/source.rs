//! Operands of products, as what packs them.
//!
//! A packed panel holds, term by term, the words of a fixed number of rows (of the left operand; of the right
//! one: columns), so that a register tile reads it in order. Packing reads any strides and several element
//! types, so a transposed or narrower operand costs no pass of its own.

use hlo::ElementType;
use hlo::half::{bf16, f16};
use hlo::num_complex::Complex;
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use hlo::small_int::{S1, S2, S4, U1, U2, U4};

#[cfg(target_arch = "x86_64")]
use hlo_library_base::{
    isa::Features,
    transpose::{self, Terms},
};

#[cfg(target_arch = "x86_64")]
use super::lines::{self, Lines};
use super::steps::Steps;

/// The widest panel.
pub(crate) const MAX_PANEL_WIDTH: usize = 64;

/// An operand of a batch of products; "rows" are its indices that are not summed over.
pub(crate) trait Source<W>: Sync {
    /// Writes the words of `count` rows from `first` on and of `words` words of terms from `word` on: word
    /// `t` of row `i` goes to `out[t * width + i]`. Rows from `count` to `width` are zero, and so are terms
    /// beyond the last.
    ///
    /// # Safety
    /// The operand's memory is valid, the indices are inside, and `out` has space for `words * width`.
    unsafe fn pack(
        &self,
        batch: usize,
        first: usize,
        count: usize,
        word: usize,
        words: usize,
        out: *mut W,
        width: usize,
    );

    /// Whether rows are contiguous in memory: then a few terms of many rows are packed faster than many terms
    /// of a few rows.
    fn rows_are_contiguous(&self) -> bool {
        false
    }

    /// Where a batch begins and the strides of rows and terms, if the words can be read in place.
    fn in_place(&self, batch: usize) -> Option<(*const W, isize, isize)>;
}

/// An element type that is packed as words of type `W`, of [`Load::GROUP`] terms each.
pub(crate) trait Load<W>: Copy {
    /// Terms in a word.
    const GROUP: usize;
    /// Whether a word is an element as it is.
    const SAME: bool;
    /// Whether a word is its terms' bits, one after the other.
    const RAW: bool = Self::SAME;
    /// What the bits of a word are changed by.
    const FLIP: u32 = 0;
    /// How whole lines are packed, if vectors do that.
    #[cfg(target_arch = "x86_64")]
    const LINES: Option<Lines> = None;
    /// How contiguous terms become columns, if vector instructions do that.
    #[cfg(target_arch = "x86_64")]
    const TERMS: Option<Terms> = match Self::LINES {
        Some(Lines::Bf16) => Some(Terms::Bf16),
        Some(Lines::F16) => Some(Terms::F16),
        Some(_) | None if Self::RAW && size_of::<W>() == 4 => Some(Terms::Words { flip: Self::FLIP }),
        Some(_) | None => None,
    };

    /// The word of `present` (at least 1, at most [`Load::GROUP`]) terms that are `step` apart.
    ///
    /// # Safety
    /// They are there.
    unsafe fn word(from: *const Self, step: isize, present: usize) -> W;
}

macro_rules! loads {
    ($($from:ty => $to:ty, $same:literal $([$lines:expr])?: |$x:ident| $convert:expr;)*) => {$(
        impl Load<$to> for $from {
            const GROUP: usize = 1;
            const SAME: bool = $same;
            $(#[cfg(target_arch = "x86_64")]
            const LINES: Option<Lines> = Some($lines);)?

            #[inline(always)]
            unsafe fn word(from: *const Self, _step: isize, _present: usize) -> $to {
                // SAFETY: the caller's.
                let $x = unsafe { *from };
                $convert
            }
        }
    )*};
}

loads! {
    f32 => f32, true [Lines::Same(1)]: |x| x;
    f64 => f64, true [Lines::Same(2)]: |x| x;
    f32 => f64, false: |x| f64::from(x);
    i32 => i32, true [Lines::Same(1)]: |x| x;
    i64 => i64, true [Lines::Same(2)]: |x| x;
    Complex<f32> => Complex<f32>, true [Lines::Same(2)]: |x| x;
    Complex<f64> => Complex<f64>, true [Lines::Same(4)]: |x| x;
    bf16 => f32, false [Lines::Bf16]: |x| f32::from_bits(u32::from(x.to_bits()) << 16);
    f16 => f32, false [Lines::F16]: |x| x.to_f32();
    F8E5M2 => f32, false: |x| x.to_f32();
    F8E4M3 => f32, false: |x| x.to_f32();
    F8E4M3FN => f32, false: |x| x.to_f32();
    F8E4M3B11FNUZ => f32, false: |x| x.to_f32();
    F8E3M4 => f32, false: |x| x.to_f32();
    F8E5M2FNUZ => f32, false: |x| x.to_f32();
    F8E4M3FNUZ => f32, false: |x| x.to_f32();
    F8E8M0FNU => f32, false: |x| x.to_f32();
    F4E2M1FN => f32, false: |x| x.to_f32();
    F6E3M2FN => f32, false: |x| x.to_f32();
    F6E2M3FN => f32, false: |x| x.to_f32();
    bool => i32, false: |x| i32::from(x);
    i8 => i32, false: |x| i32::from(x);
    u8 => i32, false: |x| i32::from(x);
    i16 => i32, false: |x| i32::from(x);
    u16 => i32, false: |x| i32::from(x);
    u32 => i32, true [Lines::Same(1)]: |x| x as i32;
    u64 => i64, true [Lines::Same(2)]: |x| x as i64;
    S1 => i32, false: |x| i32::from(x.get());
    S2 => i32, false: |x| i32::from(x.get());
    S4 => i32, false: |x| i32::from(x.get());
    U1 => i32, false: |x| i32::from(x.get());
    U2 => i32, false: |x| i32::from(x.get());
    U4 => i32, false: |x| i32::from(x.get());
}

/// A strided operand of elements of type `T`.
pub(crate) struct Strided<'a, T> {
    pub(crate) base: *const T,
    pub(crate) batch: &'a Steps,
    pub(crate) rows: &'a Steps,
    pub(crate) terms: &'a Steps,
}

// SAFETY: it is only read.
unsafe impl<T: Sync> Sync for Strided<'_, T> {}

impl<W: Copy + Default, T: Load<W> + Sync> Source<W> for Strided<'_, T> {
    unsafe fn pack(
        &self,
        batch: usize,
        first: usize,
        count: usize,
        word: usize,
        words: usize,
        out: *mut W,
        width: usize,
    ) {
        #[cfg(target_arch = "x86_64")]
        if let (Some(lines), Some(1)) = (T::LINES.filter(|lines| lines.are_packed_here()), self.rows.single())
        {
            // SAFETY: the caller's.
            unsafe {
                let base = self.base.offset(self.batch.offset(batch) + first as isize);
                let term = word * T::GROUP;
                let terms = (words * T::GROUP).min(self.terms.size() - term);
                self.terms.runs(term, terms, |position, offset, step, length| {
                    let (from, to) =
                        (base.offset(offset).cast(), out.add(position / T::GROUP * width).cast());
                    // Terms of one row, side by side, are a line, too.
                    let (step, length, count, width) = if T::GROUP == 1 && width == 1 && step == 1 {
                        (0, 1, length, length)
                    } else {
                        (step, length, count, width)
                    };
                    lines::pack(lines, from, step * size_of::<T>() as isize, length, count, to, width);
                });
            }
            return;
        }
        let mut rows = [0isize; MAX_PANEL_WIDTH];
        let rows = &mut rows[..count];
        self.rows.fill(first, rows);
        // SAFETY: the caller's.
        unsafe {
            let base = self.base.offset(self.batch.offset(batch));
            let term = word * T::GROUP;
            let count = (words * T::GROUP).min(self.terms.size() - term);
            self.terms.runs(term, count, |position, offset, step, length| {
                let run = Run { base: base.offset(offset), rows, step, length, width };
                run.pack(out.add(position / T::GROUP * width));
            });
        }
    }

    fn in_place(&self, batch: usize) -> Option<(*const W, isize, isize)> {
        if !T::SAME {
            return None;
        }
        let (row, term) = (self.rows.single()?, self.terms.single()?);
        // SAFETY: a batch is inside of the operand.
        Some((unsafe { self.base.offset(self.batch.offset(batch)) }.cast(), row, term))
    }
}

/// Terms a constant step apart, of some rows.
pub(crate) struct Run<'a, T> {
    /// The first term of a row at offset 0.
    pub(crate) base: *const T,
    /// Offsets of the rows.
    pub(crate) rows: &'a [isize],
    /// Distance of terms.
    pub(crate) step: isize,
    /// Number of terms.
    pub(crate) length: usize,
    /// Width of the panel.
    pub(crate) width: usize,
}

impl<T> Run<'_, T> {
    /// Packs it.
    ///
    /// # Safety
    /// The elements are there, and `out` has space for the panel.
    #[inline]
    pub(crate) unsafe fn pack<W: Copy + Default>(&self, out: *mut W)
    where
        T: Load<W>,
    {
        let words = self.length.div_ceil(T::GROUP);
        let (whole, rest) = (self.length / T::GROUP, self.length % T::GROUP);
        let contiguous = self.rows.windows(2).all(|pair| pair[1] == pair[0] + 1);
        #[cfg(target_arch = "x86_64")]
        if let (Some(lines), true, Some(&first)) =
            (T::LINES.filter(|lines| lines.are_packed_here()), contiguous, self.rows.first())
        {
            // SAFETY: the caller's.
            unsafe {
                let (from, step) = (self.base.offset(first).cast(), self.step * size_of::<T>() as isize);
                lines::pack(lines, from, step, self.length, self.rows.len(), out.cast(), self.width);
            }
            return;
        }
        #[cfg(target_arch = "x86_64")]
        let transposed = {
            let several = self.step == 1 && self.rows.len() > 1 && !contiguous;
            let terms = T::TERMS.filter(|_| several && Features::here().avx2);
            if let Some(terms) = terms {
                let (from, out) = (self.base.cast(), out.cast());
                // SAFETY: the caller's.
                unsafe {
                    transpose::pack(from, self.rows, size_of::<T>(), whole, terms, out, self.width);
                }
            }
            terms.is_some()
        };
        #[cfg(not(target_arch = "x86_64"))]
        let transposed = false;
        // SAFETY: the caller's.
        unsafe {
            let from = |row: usize, word: usize| {
                self.base.offset(self.rows[row] + (word * T::GROUP) as isize * self.step)
            };
            if transposed {
                // Whole words are there.
            } else if contiguous && !self.rows.is_empty() {
                for word in 0..whole {
                    let (from, line) = (from(0, word), out.add(word * self.width));
                    for i in 0..self.rows.len() {
                        *line.add(i) = T::word(from.add(i), self.step, T::GROUP);
                    }
                }
            } else {
                // A few words of all rows at a time: the lines that are written stay in the first-level
                // cache.
                const LINES: usize = 16;
                for first in (0..whole).step_by(LINES) {
                    let last = whole.min(first + LINES);
                    for i in 0..self.rows.len() {
                        for word in first..last {
                            *out.add(word * self.width + i) = T::word(from(i, word), self.step, T::GROUP);
                        }
                    }
                }
            }
            if rest > 0 {
                for i in 0..self.rows.len() {
                    *out.add(whole * self.width + i) = T::word(from(i, whole), self.step, rest);
                }
            }
            for word in 0..words {
                for i in self.rows.len()..self.width {
                    *out.add(word * self.width + i) = W::default();
                }
            }
        }
    }
}

/// A function that packs a [`Strided`] operand of some element type.
pub(crate) type Packer<W> = unsafe fn(&Strided<'_, u8>, usize, usize, usize, usize, usize, *mut W, usize);

unsafe fn pack_as<W: Copy + Default, T: Load<W> + Sync>(
    s: &Strided<'_, u8>,
    batch: usize,
    first: usize,
    count: usize,
    word: usize,
    words: usize,
    out: *mut W,
    width: usize,
) {
    let typed = Strided::<T> { base: s.base.cast(), batch: s.batch, rows: s.rows, terms: s.terms };
    // SAFETY: the caller's.
    unsafe { typed.pack(batch, first, count, word, words, out, width) };
}

/// A strided operand of an element type that is known only when the program runs.
pub(crate) struct Typed<'a, W> {
    pub(crate) view: Strided<'a, u8>,
    pub(crate) reader: Reader<W>,
}

/// How elements of a type are packed as words.
#[derive(Debug)]
pub(crate) struct Reader<W> {
    pack: Packer<W>,
    /// Size of an element, if a word is one, or is as many one after the other.
    same: Option<usize>,
    /// How many.
    group: usize,
}

impl<W> Clone for Reader<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Reader<W> {}

impl<W> Reader<W> {
    /// Whether words can be read in place; words of several terms only if those are contiguous and words
    /// begin at multiples of their number.
    pub(crate) fn same(&self) -> bool {
        self.same.is_some()
    }
}

impl<W: Sync> Source<W> for Typed<'_, W> {
    unsafe fn pack(
        &self,
        batch: usize,
        first: usize,
        count: usize,
        word: usize,
        words: usize,
        out: *mut W,
        width: usize,
    ) {
        // SAFETY: the caller's.
        unsafe { (self.reader.pack)(&self.view, batch, first, count, word, words, out, width) };
    }

    fn rows_are_contiguous(&self) -> bool {
        self.view.rows.single() == Some(1)
    }

    fn in_place(&self, batch: usize) -> Option<(*const W, isize, isize)> {
        let bytes = self.reader.same?;
        let (row, term) = (self.view.rows.single()?, self.view.terms.single()?);
        let at = self.view.batch.offset(batch) * bytes as isize;
        let (row, term) = match self.reader.group {
            1 => (row, term),
            group => (row / group as isize, (term == 1).then_some(1)?),
        };
        Some((self.view.base.wrapping_offset(at).cast(), row, term))
    }
}

/// Something that is chosen by an element type that can be packed as words of type `W`.
pub(crate) trait Choose<W> {
    /// What.
    type Out;
    /// For elements of type `T`.
    fn of<T: Load<W> + Sync + 'static>() -> Self::Out;
}

/// Chooses a [`Reader`].
pub(crate) struct Reads;

impl<W: Copy + Default> Choose<W> for Reads {
    type Out = Reader<W>;

    fn of<T: Load<W> + Sync + 'static>() -> Reader<W> {
        let same = T::SAME || T::RAW && T::FLIP == 0 && T::GROUP * size_of::<T>() == size_of::<W>();
        Reader { pack: pack_as::<W, T>, same: same.then_some(size_of::<T>()), group: T::GROUP }
    }
}

/// What packs elements of a type as words, if they can be.
pub(crate) fn reader<W: Readable>(ty: ElementType) -> Option<Reader<W>> {
    W::choose::<Reads>(ty)
}

/// Words of one term.
pub(crate) trait Readable: Copy + Default + Sync + 'static {
    /// What is chosen for elements of this type, if they can be packed.
    fn choose<C: Choose<Self>>(ty: ElementType) -> Option<C::Out>;
}

macro_rules! readable {
    ($($word:ty: $($variant:ident $from:ty),*;)*) => {$(
        impl Readable for $word {
            fn choose<C: Choose<Self>>(ty: ElementType) -> Option<C::Out> {
                $(if ty == ElementType::$variant {
                    return Some(C::of::<$from>());
                })*
                None
            }
        }
    )*};
}

readable! {
    f32: F32 f32, BF16 bf16, F16 f16, F8E5M2 F8E5M2, F8E4M3 F8E4M3, F8E4M3FN F8E4M3FN, F8E4M3B11FNUZ F8E4M3B11FNUZ, F8E3M4 F8E3M4,
        F8E5M2FNUZ F8E5M2FNUZ, F8E4M3FNUZ F8E4M3FNUZ, F8E8M0FNU F8E8M0FNU, F4E2M1FN F4E2M1FN, F6E3M2FN F6E3M2FN, F6E2M3FN F6E2M3FN;
    f64: F64 f64, F32 f32;
    i32: S32 i32, U32 u32, S16 i16, U16 u16, S8 i8, U8 u8, Pred bool, S1 S1, S2 S2, S4 S4, U1 U1, U2 U2, U4 U4;
    i64: S64 i64, U64 u64;
    Complex<f32>: C64 Complex<f32>;
    Complex<f64>: C128 Complex<f64>;
}
