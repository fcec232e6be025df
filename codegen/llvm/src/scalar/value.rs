//! [`Val`]: elements in registers, and their form in memory.
//!
//! | type | in registers | in memory |
//! |---|---|---|
//! | `pred` | `i1` | a byte, 0 or 1 |
//! | `s1` to `u4` | `i8`, extended by sign or zeros | the same |
//! | `s8` to `u64` | an integer of the width | the same |
//! | `f32`, `f64` | itself | the same |
//! | narrower floats | the pattern, in `i8` or `i16` | the same |
//! | `c64`, `c128` | two floats | pairs, real part first |
//!
//! Narrow floats are patterns between any two operations; widening what was just rounded is left to LLVM,
//! which sees that shifts and masks cancel. **Invariant:** what is only moved keeps all bits; a value that
//! arithmetic made is marked, and its NaNs are made canonical where bits are observed: in memory, in
//! `bitcast-convert`, in the total order.

use hlo::literal::Bits;
use hlo::{Buffer, ElementType, with_buffer};

use super::format_of;
use crate::{Emit, IntPredicate, Prim, Result, Value};

/// Elements of one type on the lanes of an [`Emit`].
#[derive(Clone, Copy, Debug)]
pub struct Val<'ctx> {
    pub(super) ty: ElementType,
    pub(super) parts: Parts<'ctx>,
    pub(super) computed: Computed<'ctx>,
}

/// Where arithmetic made a value: a NaN there may have any sign and payload.
#[derive(Clone, Copy, Debug)]
pub(super) enum Computed<'ctx> {
    Nowhere,
    Everywhere,
    /// Where this holds: an `i1` of each lane, or of all.
    Where(Value<'ctx>),
}

impl<'ctx> Computed<'ctx> {
    /// Of a selection by a condition.
    pub(super) fn select(
        e: &Emit<'_, 'ctx>,
        condition: Value<'ctx>,
        a: Computed<'ctx>,
        b: Computed<'ctx>,
    ) -> Result<Computed<'ctx>> {
        let e = e.with_lanes(e.lanes_of(condition));
        let mask = |computed| match computed {
            Computed::Nowhere => Ok(e.bool(false)),
            Computed::Everywhere => Ok(e.bool(true)),
            Computed::Where(mask) if e.lanes_of(mask) < e.lanes => e.splat(mask),
            Computed::Where(mask) => Ok(mask),
        };
        Ok(match (a, b) {
            (Computed::Nowhere, Computed::Nowhere) => Computed::Nowhere,
            (Computed::Everywhere, Computed::Everywhere) => Computed::Everywhere,
            (Computed::Everywhere, Computed::Nowhere) => Computed::Where(condition),
            (Computed::Nowhere, Computed::Everywhere) => Computed::Where(e.not(condition)?),
            (Computed::Where(mask), _) | (_, Computed::Where(mask)) if e.lanes_of(mask) > e.lanes => {
                let e = e.with_lanes(e.lanes_of(mask));
                return Self::select(&e, e.splat(condition)?, a, b);
            }
            (Computed::Where(_), _) | (_, Computed::Where(_)) => {
                Computed::Where(e.select(condition, mask(a)?, mask(b)?)?)
            }
        })
    }
}

/// The registers of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Parts<'ctx> {
    One(Value<'ctx>),
    /// Real and imaginary part.
    Two(Value<'ctx>, Value<'ctx>),
}

/// What a register of a type holds: of complex types, of each part.
pub fn register(ty: ElementType) -> Prim {
    match ty {
        ElementType::Pred => Prim::I1,
        ElementType::S1
        | ElementType::S2
        | ElementType::S4
        | ElementType::S8
        | ElementType::U1
        | ElementType::U2
        | ElementType::U4
        | ElementType::U8
        | ElementType::F8E5M2
        | ElementType::F8E4M3
        | ElementType::F8E4M3FN
        | ElementType::F8E4M3B11FNUZ
        | ElementType::F8E3M4
        | ElementType::F8E5M2FNUZ
        | ElementType::F8E4M3FNUZ
        | ElementType::F8E8M0FNU
        | ElementType::F4E2M1FN
        | ElementType::F6E3M2FN
        | ElementType::F6E2M3FN => Prim::I8,
        ElementType::S16 | ElementType::U16 | ElementType::F16 | ElementType::BF16 => Prim::I16,
        ElementType::S32 | ElementType::U32 => Prim::I32,
        ElementType::S64 | ElementType::U64 => Prim::I64,
        ElementType::F32 | ElementType::C64 => Prim::F32,
        ElementType::F64 | ElementType::C128 => Prim::F64,
    }
}

/// What an element of a type is in memory: of complex types, each part.
pub fn storage(ty: ElementType) -> Prim {
    match register(ty) {
        Prim::I1 => Prim::I8,
        other => other,
    }
}

impl<'ctx> Val<'ctx> {
    /// Of one register.
    pub(super) fn one(ty: ElementType, value: Value<'ctx>) -> Self {
        Self { ty, parts: Parts::One(value), computed: Computed::Nowhere }
    }

    /// That arithmetic made.
    pub(super) fn arithmetic(ty: ElementType, value: Value<'ctx>) -> Self {
        let wide = matches!(ty, ElementType::F32 | ElementType::F64 | ElementType::F16 | ElementType::BF16);
        let computed = if wide { Computed::Everywhere } else { Computed::Nowhere };
        Self { ty, parts: Parts::One(value), computed }
    }

    /// A complex number that arithmetic made.
    pub(super) fn complex(ty: ElementType, re: Value<'ctx>, im: Value<'ctx>) -> Self {
        Self { ty, parts: Parts::Two(re, im), computed: Computed::Everywhere }
    }

    /// The element type.
    pub fn ty(&self) -> ElementType {
        self.ty
    }

    /// Its registers: two for complex types, otherwise one. For values that pass through control flow or
    /// memory; see [`Val::of_registers`].
    pub fn registers(&self) -> Vec<Value<'ctx>> {
        match self.parts {
            Parts::One(x) => vec![x],
            Parts::Two(re, im) => vec![re, im],
        }
    }

    /// The value of such registers. `moved`: it was [`Val::settled`]; otherwise all of it was made by
    /// arithmetic.
    ///
    /// # Panics
    /// If their number is not that of `registers`.
    pub fn of_registers(ty: ElementType, registers: &[Value<'ctx>], moved: bool) -> Self {
        let made = match *registers {
            [x] if !ty.is_complex() => Self::arithmetic(ty, x),
            [re, im] if ty.is_complex() => Self::complex(ty, re, im),
            _ => panic!("invariant: {} registers hold no {ty}", registers.len()),
        };
        if moved { Self { computed: Computed::Nowhere, ..made } } else { made }
    }

    /// The same, made by arithmetic only where a condition holds.
    pub fn computed_where(self, condition: Value<'ctx>) -> Self {
        match self.computed {
            Computed::Everywhere => Self { computed: Computed::Where(condition), ..self },
            Computed::Nowhere | Computed::Where(_) => self,
        }
    }

    /// With registers (and what is known of their lanes) mapped.
    pub fn map(&self, f: impl Fn(Value<'ctx>) -> Result<Value<'ctx>>) -> Result<Self> {
        let parts = match self.parts {
            Parts::One(x) => Parts::One(f(x)?),
            Parts::Two(re, im) => Parts::Two(f(re)?, f(im)?),
        };
        let computed = match self.computed {
            Computed::Where(mask) => Computed::Where(f(mask)?),
            known @ (Computed::Nowhere | Computed::Everywhere) => known,
        };
        Ok(Self { ty: self.ty, parts, computed })
    }

    /// The only register.
    pub(super) fn single(&self) -> Value<'ctx> {
        match self.parts {
            Parts::One(x) => x,
            Parts::Two(re, _) => re,
        }
    }

    /// Real and imaginary part.
    pub(super) fn pair(&self) -> (Value<'ctx>, Value<'ctx>) {
        match self.parts {
            Parts::One(x) => (x, x),
            Parts::Two(re, im) => (re, im),
        }
    }

    /// The value in memory form ([`storage`]): what [`Val::of_storage`] takes. NaNs that arithmetic made are
    /// canonical.
    pub fn to_storage(&self, e: &Emit<'_, 'ctx>) -> Result<Vec<Value<'ctx>>> {
        if self.ty == ElementType::Pred {
            return Ok(vec![e.zext(self.single(), Prim::I8)?]);
        }
        Ok(self.settled(e)?.registers())
    }

    /// A value from memory form: one value, or the parts of complex numbers.
    ///
    /// # Panics
    /// If there are not as many as that.
    pub fn of_storage(e: &Emit<'_, 'ctx>, ty: ElementType, stored: &[Value<'ctx>]) -> Result<Self> {
        if ty == ElementType::Pred {
            let bits =
                e.icmp(IntPredicate::NE, stored[0], e.with_lanes(e.lanes_of(stored[0])).int(Prim::I8, 0))?;
            return Ok(Self::one(ty, bits));
        }
        Ok(Self::of_registers(ty, stored, true))
    }

    /// Whether arithmetic made all of it.
    pub fn is_arithmetic(&self) -> bool {
        matches!(self.computed, Computed::Everywhere)
    }

    /// With every NaN that arithmetic made canonical.
    pub fn settled(&self, e: &Emit<'_, 'ctx>) -> Result<Self> {
        let within = match self.computed {
            Computed::Nowhere => return Ok(*self),
            Computed::Everywhere => None,
            Computed::Where(mask) => Some(mask),
        };
        let parts = match self.parts {
            Parts::One(x) => Parts::One(canonical(e, self.ty, x, within)?),
            Parts::Two(re, im) => {
                Parts::Two(canonical(e, self.ty, re, within)?, canonical(e, self.ty, im, within)?)
            }
        };
        Ok(Self { ty: self.ty, parts, computed: Computed::Nowhere })
    }

    /// The same if asked for.
    pub fn settled_if(&self, e: &Emit<'_, 'ctx>, wanted: bool) -> Result<Self> {
        if wanted { self.settled(e) } else { Ok(*self) }
    }

    /// Of scalars, on all lanes.
    pub fn splat(&self, e: &Emit<'_, 'ctx>) -> Result<Self> {
        self.map(|x| e.splat(x))
    }

    /// Consecutive elements from memory, one per lane. `align` is what the address is known to be a multiple
    /// of, in bytes.
    pub fn load(e: &Emit<'_, 'ctx>, ty: ElementType, address: Value<'ctx>, align: u32) -> Result<Self> {
        let prim = storage(ty);
        if !ty.is_complex() {
            return Self::of_storage(e, ty, &[e.load(prim, address, align)?]);
        }
        let both = e.with_lanes(2 * e.lanes).load(prim, address, align)?;
        let part = |first: u32| -> Result<Value<'ctx>> {
            if e.lanes == 1 {
                return e.extract(both, first);
            }
            e.shuffle(both, both, &(0..e.lanes).map(|i| 2 * i + first).collect::<Vec<_>>())
        };
        Self::of_storage(e, ty, &[part(0)?, part(1)?])
    }

    /// To memory. Streaming stores ask that the address is aligned to what is stored, and a fence
    /// ([`Emit::store_streaming`]).
    pub fn store(&self, e: &Emit<'_, 'ctx>, address: Value<'ctx>, align: u32, streaming: bool) -> Result<()> {
        let stored = self.to_storage(e)?;
        let all = match stored[..] {
            [re, im] if e.lanes == 1 => {
                let pair = e.with_lanes(2);
                pair.insert(pair.insert(pair.poison(storage(self.ty)), re, 0)?, im, 1)?
            }
            [re, im] => {
                let order: Vec<u32> = (0..e.lanes).flat_map(|i| [i, e.lanes + i]).collect();
                e.shuffle(re, im, &order)?
            }
            _ => stored[0],
        };
        if streaming { e.store_streaming(all, address) } else { e.store(all, address, align).map(|_| ()) }
    }

    /// Element `index` of a literal's buffer on all lanes.
    pub fn constant(e: &Emit<'_, 'ctx>, buffer: &Buffer, index: usize) -> Self {
        let bits: u128 = with_buffer!(buffer, v => v[index].bits());
        Self::of_bits(e, buffer.element_type(), bits)
    }

    /// The element with this pattern ([`Bits`]) on all lanes.
    pub fn of_bits(e: &Emit<'_, 'ctx>, ty: ElementType, bits: u128) -> Self {
        let low = bits as u64;
        let parts = match ty {
            ElementType::F32 => Parts::One(e.f32(f32::from_bits(low as u32))),
            ElementType::F64 => Parts::One(e.f64(f64::from_bits(low))),
            ElementType::C64 => {
                Parts::Two(e.f32(f32::from_bits(low as u32)), e.f32(f32::from_bits((low >> 32) as u32)))
            }
            ElementType::C128 => {
                Parts::Two(e.f64(f64::from_bits(low)), e.f64(f64::from_bits((bits >> 64) as u64)))
            }
            ElementType::S1 | ElementType::S2 | ElementType::S4 => {
                let unused = 64 - ty.bits();
                Parts::One(e.int(Prim::I8, ((low << unused).cast_signed() >> unused).cast_unsigned() & 0xff))
            }
            ElementType::Pred
            | ElementType::S8
            | ElementType::S16
            | ElementType::S32
            | ElementType::S64
            | ElementType::U1
            | ElementType::U2
            | ElementType::U4
            | ElementType::U8
            | ElementType::U16
            | ElementType::U32
            | ElementType::U64
            | ElementType::F16
            | ElementType::BF16
            | ElementType::F8E5M2
            | ElementType::F8E4M3
            | ElementType::F8E4M3FN
            | ElementType::F8E4M3B11FNUZ
            | ElementType::F8E3M4
            | ElementType::F8E5M2FNUZ
            | ElementType::F8E4M3FNUZ
            | ElementType::F8E8M0FNU
            | ElementType::F4E2M1FN
            | ElementType::F6E3M2FN
            | ElementType::F6E2M3FN => Parts::One(e.int(register(ty), low)),
        };
        Self { ty, parts, computed: Computed::Nowhere }
    }

    /// An integer (an index, an iota) of a scalar or lanes of `i64`, converted to a type as `convert` of
    /// `s64` does.
    pub fn of_index(e: &Emit<'_, 'ctx>, ty: ElementType, index: Value<'ctx>) -> Result<Self> {
        super::convert::convert(e, Val::one(ElementType::S64, index), ty)
    }

    /// An integer as a signed index: extended by its sign or by zeros; a `u64` beyond `i64` becomes the
    /// largest.
    pub fn to_index(&self, e: &Emit<'_, 'ctx>) -> Result<Value<'ctx>> {
        let x = self.single();
        if self.ty == ElementType::U64 {
            let most = e.with_lanes(e.lanes_of(x)).i64(i64::MAX);
            return e.intrinsic("llvm.umin", &[x.get_type()], &[x, most]);
        }
        e.resize(x, Prim::I64, self.ty.is_signed_integer())
    }

    /// The truth value of a `pred`: an `i1`.
    pub fn to_bool(&self) -> Value<'ctx> {
        self.single()
    }

    /// A `pred` of an `i1`.
    pub fn of_bool(x: Value<'ctx>) -> Self {
        Self::one(ElementType::Pred, x)
    }
}

/// A register of a float with every NaN (`within` where a condition holds) the canonical one. Decided on
/// integers: LLVM takes the sign and payload of a NaN for undetermined and would drop a selection between
/// floats.
fn canonical<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    x: Value<'ctx>,
    within: Option<Value<'ctx>>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let (bits, infinity, nan) = match prim {
        Prim::F32 => (Prim::I32, 0x7f80_0000, 0x7fc0_0000),
        Prim::F64 => (Prim::I64, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000),
        Prim::I8 | Prim::I16 => match format_of(ty) {
            Some(f) => (prim, u64::from(f.max_bits()) + 1, u64::from(f.converted_nan_bits())),
            None => return Ok(x),
        },
        Prim::I1 | Prim::I32 | Prim::I64 | Prim::I128 | Prim::F16 | Prim::Ptr => return Ok(x),
    };
    let raw = e.bitcast(x, bits)?;
    let magnitude = e.and(raw, e.int(bits, u64::MAX >> (65 - bits.bits())))?;
    let is_nan = e.icmp(IntPredicate::UGT, magnitude, e.int(bits, infinity))?;
    let is_nan = match within {
        None => is_nan,
        Some(mask) if e.lanes_of(mask) < e.lanes_of(x) => e.and(is_nan, e.splat(mask)?)?,
        Some(mask) => e.and(is_nan, mask)?,
    };
    let settled = e.select(is_nan, e.int(bits, nan), raw)?;
    e.bitcast(settled, prim)
}
