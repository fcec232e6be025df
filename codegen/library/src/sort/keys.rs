//! What a comparator orders by, and elements as integers in that order.

use hlo::attrs::Direction;
use hlo::half::{bf16, f16};
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};
use hlo::{Bits, Element, ElementType, Opcode, TypeClass};
use hlo_arithmetic::scalar::Float;
use hlo_library_base::simd::{self, Work};

use crate::region::{Node, Scalars};

/// What floats compare by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatOrder {
    /// `<` of IEEE 754: nothing is less or greater than a NaN, and the zeros are equal.
    Partial,
    /// -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
    Total,
    /// As `Total`, but all NaNs are equal and largest, and the zeros are equal.
    Merged,
}

/// Which part of an element is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// The real part of a complex number.
    Real,
    /// Its imaginary part.
    Imag,
}

/// One key that a comparator orders rows by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SortKey {
    /// The operand of the sort.
    pub operand: usize,
    /// The part of its elements.
    pub part: Part,
    /// Larger ones first.
    pub descending: bool,
    /// How floats compare; integers are [`FloatOrder::Total`].
    pub floats: FloatOrder,
}

/// How the raw bits of a key become an unsigned integer that compares as the key does.
#[derive(Clone, Debug)]
enum Encoding {
    /// One byte: by table. [`INCOMPARABLE`]: a NaN that does not compare.
    Table(Box<[u16; 256]>),
    /// Flipping these bits.
    Flip(u64),
    /// IEEE floats by TOTALORDER; then these bits flipped.
    Total(u64),
    /// IEEE floats, NaNs (anything beyond these bits of infinity) and zeros merged; then bits flipped.
    Merged { infinity: u64, flip: u64 },
}

/// The table's entry for a NaN that does not compare.
const INCOMPARABLE: u16 = 0x100;

/// One key of a comparator.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The operand of the sort.
    pub(crate) operand: usize,
    /// Larger ones first.
    descending: bool,
    floats: FloatOrder,
    /// Bytes of the part that is compared.
    bytes: usize,
    /// Parts in an element, and which one it is.
    parts: usize,
    part: usize,
    encoding: Encoding,
}

/// [`Key::load_row`], whose caller says that there are such elements.
struct Row<'a, T, F> {
    key: &'a Key,
    array: *const u8,
    first: usize,
    keys: &'a mut [T],
    narrow: F,
}

impl<T: Copy, F: Fn(u64) -> T> Work for Row<'_, T, F> {
    type Out = Met;

    #[inline(always)]
    fn run(self) -> Met {
        let Row { key, array, first, keys, narrow } = self;
        // SAFETY: as whoever constructed it says.
        unsafe { key.load(array, 0..keys.len(), |i| first + i, |i, key| keys[i] = narrow(key)) }
    }
}

/// [`Key::decode_row`], whose caller says that there are such keys.
struct Decoded<'a> {
    key: &'a Key,
    keys: *mut u8,
    n: usize,
}

impl Work for Decoded<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        macro_rules! decode {
            ($W:ty, $S:ty) => {{
                // SAFETY: as whoever constructed it says.
                let keys = unsafe { std::slice::from_raw_parts_mut(self.keys.cast::<$W>(), self.n) };
                match &self.key.encoding {
                    Encoding::Flip(flip) => {
                        let flip = *flip as $W;
                        keys.iter_mut().for_each(|key| *key ^= flip);
                    }
                    Encoding::Total(flip) | Encoding::Merged { flip, .. } => {
                        let flip = *flip as $W;
                        for key in keys {
                            let ordered = *key ^ flip;
                            *key = ordered
                                ^ ((!ordered as $S >> (<$W>::BITS - 1)) as $W | 1 << (<$W>::BITS - 1));
                        }
                    }
                    // Not [`Key::is_decoded`].
                    Encoding::Table(_) => {}
                }
            }};
        }
        match self.key.bytes {
            1 => decode!(u8, i8),
            2 => decode!(u16, i16),
            4 => decode!(u32, i32),
            _wide => decode!(u64, i64),
        }
    }
}

impl Key {
    /// What it orders by.
    pub(super) fn described(&self) -> SortKey {
        let part = match (self.parts, self.part) {
            (1, _) => Part::Whole,
            (_, 0) => Part::Real,
            (_, _) => Part::Imag,
        };
        SortKey { operand: self.operand, part, descending: self.descending, floats: self.floats }
    }

    /// Whether its order is total, NaNs included.
    pub(super) fn orders_nans(&self) -> bool {
        self.floats != FloatOrder::Partial
    }
}

/// What keys were encountered while loading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    /// A float that may be equal to one of other bits: a NaN or a zero that is merged.
    pub(crate) merged: bool,
    /// A NaN.
    pub(crate) nan: bool,
}

/// The keys that a comparator orders rows of these types by, the first one first; `None` if it is not of that
/// kind.
pub(super) fn of_comparator(scalars: &Scalars, types: &[ElementType]) -> Option<Vec<Key>> {
    let &[result] = &scalars.results[..] else { return None };
    let mut keys = Vec::new();
    let mut node = Some(result);
    while let Some(at) = node {
        let (less, rest) = split(scalars, at)?;
        keys.push(key(scalars, less, types)?);
        node = rest;
        if keys.len() > 64 {
            return None;
        }
    }
    Some(keys)
}

/// `less`, or `less or (equal and rest)` in one of its forms: returns `less` and `rest`.
fn split(s: &Scalars, node: usize) -> Option<(usize, Option<usize>)> {
    if let Node::Compare(Direction::Lt | Direction::Gt, ..) = s.get(node) {
        return Some((node, None));
    }
    if let Some((x, y)) = s.binary(node, Opcode::Or) {
        return [(x, y), (y, x)].into_iter().find_map(|(less, both)| {
            let (a, b) = s.binary(both, Opcode::And)?;
            [(a, b), (b, a)].into_iter().find_map(|(equal, rest)| {
                is_equality(s, equal, less, Direction::Eq).then_some((less, Some(rest)))
            })
        });
    }
    if let Node::Op(Opcode::Select, _, operands) = s.get(node) {
        let &[condition, on_true, on_false] = &operands[..] else { return None };
        if is_equality(s, condition, on_false, Direction::Eq) {
            return Some((on_false, Some(on_true)));
        }
        if is_equality(s, condition, on_true, Direction::Ne) {
            return Some((on_true, Some(on_false)));
        }
    }
    None
}

/// Whether `equal` compares for equality (or difference) what `less` compares.
fn is_equality(s: &Scalars, equal: usize, less: usize, direction: Direction) -> bool {
    match (s.get(equal), s.get(less)) {
        (&Node::Compare(d, total, a, b), &Node::Compare(Direction::Lt | Direction::Gt, less_total, x, y)) => {
            let alike = total == less_total || !s.element_type(a).is_float();
            // With NaNs "not different" is equality, and "not equal" difference, only by TOTALORDER; but for
            // EQ itself.
            d == direction && alike && ((a, b) == (x, y) || (a, b) == (y, x))
        }
        (_, _) => false,
    }
}

/// The key that `less` compares.
fn key(s: &Scalars, less: usize, types: &[ElementType]) -> Option<Key> {
    let &Node::Compare(direction, total, a, b) = s.get(less) else { return None };
    let descending = match direction {
        Direction::Lt => false,
        Direction::Gt => true,
        Direction::Eq | Direction::Ne | Direction::Ge | Direction::Le => return None,
    };
    let ((x, part, merged), (y, other, other_merged)) = (side(s, a)?, side(s, b)?);
    if x / 2 != y / 2 || x == y || (part, merged) != (other, other_merged) {
        return None;
    }
    let floats = match (total, merged) {
        (true, true) => FloatOrder::Merged,
        (true, false) => FloatOrder::Total,
        (false, _) => FloatOrder::Partial,
    };
    let operand = x / 2;
    // Parameters 2k and 2k + 1 are operand k of the two rows. Swapped, the order is the reverse.
    Key::new(operand, *types.get(operand)?, part, descending != (x > y), floats)
}

/// A parameter, or a part of one, perhaps with NaNs and zeros merged.
fn side(s: &Scalars, node: usize) -> Option<(usize, Part, bool)> {
    match merged(s, node) {
        Some(x) => part(s, x).map(|(p, part)| (p, part, true)),
        None => part(s, node).map(|(p, part)| (p, part, false)),
    }
}

fn part(s: &Scalars, node: usize) -> Option<(usize, Part)> {
    if let Some(p) = s.parameter(node) {
        return Some((p, Part::Whole));
    }
    if let Node::Op(op @ (Opcode::Real | Opcode::Imag), _, operands) = s.get(node) {
        let &[x] = &operands[..] else { return None };
        let part = if *op == Opcode::Real { Part::Real } else { Part::Imag };
        return Some((s.parameter(x)?, part));
    }
    None
}

/// `x`, if the value is `select(x != x, nan, select(x == 0, 0, x))` or the same inside out: what JAX puts
/// before a comparison by total order so that all NaNs are one and largest, and the zeros one.
fn merged(s: &Scalars, node: usize) -> Option<usize> {
    let select = |node: usize| match s.get(node) {
        Node::Op(Opcode::Select, _, operands) => <[usize; 3]>::try_from(&operands[..]).ok(),
        Node::Op(..) | Node::Parameter(_) | Node::Constant(..) | Node::Compare(..) => None,
    };
    let [c1, v1, inner] = select(node)?;
    let [c2, v2, x] = select(inner)?;
    let is_nan = |c: usize, v: usize| {
        let &Node::Constant(ty, bits) = s.get(v) else { return false };
        let positive_nan =
            infinity(ty).is_some_and(|inf| bits > u128::from(inf) && bits >> (ty.bits() - 1) == 0);
        *s.get(c) == Node::Compare(Direction::Ne, false, x, x) && positive_nan
    };
    let is_zero = |c: usize, v: usize| {
        let zero = |n: usize| matches!(s.get(n), &Node::Constant(ty, bits) if infinity(ty).is_some() && bits & ((1 << (ty.bits() - 1)) - 1) == 0);
        matches!(s.get(c), &Node::Compare(Direction::Eq, false, a, b) if (a == x && zero(b)) || (b == x && zero(a)))
            && zero(v)
    };
    ((is_nan(c1, v1) && is_zero(c2, v2)) || (is_zero(c1, v1) && is_nan(c2, v2))).then_some(x)
}

/// The bits of infinity of a float type of at least 16 bits.
fn infinity(ty: ElementType) -> Option<u64> {
    if ty == ElementType::F16 {
        Some(u64::from(f16::INFINITY.to_bits()))
    } else if ty == ElementType::BF16 {
        Some(u64::from(bf16::INFINITY.to_bits()))
    } else if ty == ElementType::F32 {
        Some(u64::from(f32::INFINITY.to_bits()))
    } else {
        (ty == ElementType::F64).then_some(f64::INFINITY.to_bits())
    }
}

/// A key of a float of 8 bits or fewer; `None` if it does not compare.
fn small_float(ty: ElementType, raw: u8, floats: FloatOrder) -> Option<u16> {
    fn of<T: Float + Bits>(raw: u8, floats: FloatOrder) -> Option<u16> {
        let x = <T as Bits>::from_bits(u128::from(raw));
        // Keys are from -SIGN up to the largest pattern without sign, but for the merged NaN, which takes
        // that one: no other NaN does.
        let largest = (1i64 << <T as Float>::BITS) - 1 - T::SIGN as i64;
        let key = match floats {
            FloatOrder::Total => x.total_order_key(),
            FloatOrder::Merged if x.is_nan() => largest,
            FloatOrder::Partial if x.is_nan() => return None,
            FloatOrder::Partial | FloatOrder::Merged if x.to_f64() == 0.0 => 0,
            FloatOrder::Partial | FloatOrder::Merged => x.total_order_key(),
        };
        Some((key.min(largest) + T::SIGN as i64) as u16)
    }
    macro_rules! types {
        ($($t:ty),*) => {{
            $(if ty == <$t as Element>::TYPE {
                return of::<$t>(raw, floats);
            })*
        }};
    }
    types!(
        F8E5M2,
        F8E4M3,
        F8E4M3FN,
        F8E4M3B11FNUZ,
        F8E3M4,
        F8E5M2FNUZ,
        F8E4M3FNUZ,
        F8E8M0FNU,
        F4E2M1FN,
        F6E3M2FN,
        F6E2M3FN
    );
    None
}

impl Key {
    /// The order of whole elements of a real type. `None`: complex.
    pub(crate) fn whole(
        operand: usize,
        ty: ElementType,
        descending: bool,
        floats: FloatOrder,
    ) -> Option<Key> {
        Key::new(operand, ty, Part::Whole, descending, floats)
    }

    fn new(operand: usize, ty: ElementType, part: Part, descending: bool, floats: FloatOrder) -> Option<Key> {
        let (ty, parts) = match (part, ty.class()) {
            (Part::Whole, TypeClass::Complex) => return None,
            (Part::Whole, _) => (ty, 1),
            (Part::Real | Part::Imag, TypeClass::Complex) if ty == ElementType::C64 => (ElementType::F32, 2),
            (Part::Real | Part::Imag, TypeClass::Complex) => (ElementType::F64, 2),
            // The real part of a real number.
            (Part::Real | Part::Imag, _) => return None,
        };
        let bytes = ty.storage_bytes();
        let flip = if descending { u64::MAX >> (64 - 8 * bytes) } else { 0 };
        let top = 1 << (8 * bytes - 1);
        let encoding = match (ty.class(), floats, infinity(ty)) {
            (TypeClass::Complex, _, _) => return None,
            (TypeClass::Pred | TypeClass::Unsigned, _, _) => Encoding::Flip(flip),
            (TypeClass::Signed, _, _) => Encoding::Flip(flip ^ top),
            (TypeClass::Float, FloatOrder::Total, Some(_)) => Encoding::Total(flip),
            (TypeClass::Float, FloatOrder::Partial | FloatOrder::Merged, Some(infinity)) => {
                Encoding::Merged { infinity, flip }
            }
            (TypeClass::Float, _, None) => {
                let mut table = Box::new([INCOMPARABLE; 256]);
                for (raw, entry) in (0..=u8::MAX).zip(table.iter_mut()) {
                    *entry = small_float(ty, raw, floats).map_or(INCOMPARABLE, |key| key ^ flip as u16);
                }
                Encoding::Table(table)
            }
        };
        let floats = if ty.is_float() { floats } else { FloatOrder::Total };
        let part = usize::from(part == Part::Imag);
        Some(Key { operand, descending, floats, bytes, parts, part, encoding })
    }

    /// Bits that encoded keys need.
    pub(crate) fn bits(&self) -> u32 {
        8 * self.bytes as u32
    }

    /// Whether a NaN does not compare.
    pub(super) fn is_partial(&self) -> bool {
        self.floats == FloatOrder::Partial
    }

    /// Whether keys determine elements, but for those that [`Met::merged`] reports.
    pub(super) fn is_whole(&self) -> bool {
        self.parts == 1
    }

    /// The encoded key of a NaN that does not compare.
    pub(super) fn incomparable(&self) -> u64 {
        let all = u64::MAX >> (64 - self.bits());
        match &self.encoding {
            Encoding::Table(_) => u64::from(INCOMPARABLE),
            Encoding::Flip(_) | Encoding::Total(_) | Encoding::Merged { .. } => {
                if self.descending {
                    0
                } else {
                    all
                }
            }
        }
    }

    /// Calls `sink` with the keys of elements `at(i)` of an array for each `i` of a range.
    ///
    /// # Safety
    /// `array` holds elements of the key's operand, `at` returns indices within it.
    #[inline(always)]
    pub(crate) unsafe fn load(
        &self,
        array: *const u8,
        range: std::ops::Range<usize>,
        at: impl Fn(usize) -> usize,
        sink: impl FnMut(usize, u64),
    ) -> Met {
        // SAFETY: the caller's.
        unsafe {
            if self.parts == 1 {
                self.load_at(array, range, at, sink)
            } else {
                self.load_at(array, range, |i| at(i) * self.parts + self.part, sink)
            }
        }
    }

    /// The keys of contiguous elements from an index on.
    ///
    /// # Safety
    /// `array` holds elements of the key's operand, those among them.
    pub(crate) unsafe fn load_row<T: Copy>(
        &self,
        array: *const u8,
        first: usize,
        keys: &mut [T],
        narrow: impl Fn(u64) -> T,
    ) -> Met {
        simd::vectorized(Row { key: self, array, first, keys, narrow })
    }

    /// [`Key::load`], at indices of parts of elements.
    #[inline(always)]
    unsafe fn load_at(
        &self,
        array: *const u8,
        range: std::ops::Range<usize>,
        at: impl Fn(usize) -> usize,
        mut sink: impl FnMut(usize, u64),
    ) -> Met {
        let mut met = Met::default();
        macro_rules! each {
            ($W:ty, $S:ty, |$x:ident| $key:expr) => {
                for i in range {
                    // SAFETY: the caller says that the index is in the array, which is aligned for its
                    // elements.
                    let $x = unsafe { *array.cast::<$W>().add(at(i)) };
                    sink(i, $key as u64);
                }
            };
        }
        macro_rules! widths {
            ($W:ty, $S:ty) => {
                match &self.encoding {
                    Encoding::Flip(flip) => {
                        let flip = *flip as $W;
                        each!($W, $S, |x| x ^ flip)
                    }
                    Encoding::Total(flip) => {
                        let flip = *flip as $W;
                        each!($W, $S, |x| ordered!($W, $S, x) ^ flip)
                    }
                    Encoding::Merged { infinity, flip } => {
                        let (infinity, flip) = (*infinity as $W, *flip as $W);
                        let (mut nan, mut zero) = (false, false);
                        each!($W, $S, |x| {
                            let magnitude = x & (<$W>::MAX >> 1);
                            nan |= magnitude > infinity;
                            zero |= x == 1 << (<$W>::BITS - 1);
                            let x = if magnitude == 0 { 0 } else { x };
                            (if magnitude > infinity { <$W>::MAX } else { ordered!($W, $S, x) }) ^ flip
                        });
                        met = Met { merged: nan | zero, nan };
                    }
                    // One byte only.
                    Encoding::Table(_) => {}
                }
            };
        }
        macro_rules! ordered {
            ($W:ty, $S:ty, $x:expr) => {
                $x ^ (($x as $S >> (<$W>::BITS - 1)) as $W | 1 << (<$W>::BITS - 1))
            };
        }
        match (self.bytes, &self.encoding) {
            (_, Encoding::Table(table)) => {
                let mut nan = false;
                each!(u8, i8, |x| {
                    let key = table[usize::from(x)];
                    nan |= key == INCOMPARABLE;
                    key
                });
                met = Met { merged: self.floats != FloatOrder::Total, nan };
            }
            (1, _) => widths!(u8, i8),
            (2, _) => widths!(u16, i16),
            (4, _) => widths!(u32, i32),
            (_, _) => widths!(u64, i64),
        }
        met
    }

    /// Decodes `n` contiguous keys to elements in place. Keys are as large as elements and determine them
    /// ([`Key::is_decoded`]).
    ///
    /// # Safety
    /// There are `n` keys, aligned for elements, which are this call's alone.
    pub(super) unsafe fn decode_row(&self, keys: *mut u8, n: usize) {
        simd::vectorized(Decoded { key: self, keys, n });
    }

    /// Whether [`Key::decode_row`] restores elements, but for those that [`Met::merged`] reports.
    pub(super) fn is_decoded(&self) -> bool {
        self.is_whole() && !matches!(self.encoding, Encoding::Table(_))
    }

    /// The keys that several elements have, if these all compare.
    pub(super) fn shared_keys(&self) -> [u64; 2] {
        match &self.encoding {
            Encoding::Merged { flip, .. } => {
                let bits = self.bits();
                [u64::MAX >> (64 - bits) ^ flip, 1 << (bits - 1) ^ flip]
            }
            Encoding::Table(_) | Encoding::Flip(_) | Encoding::Total(_) => [u64::MAX; 2],
        }
    }
}
