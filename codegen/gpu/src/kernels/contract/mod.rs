//! Sums of products: what contractions and convolutions share.
//!
//! **Numerics** (SEMANTICS.md, "Sums"): floats of at most 32 bits are summed in `f32`, with `f64` among them
//! in `f64`, by fused multiply-adds, and rounded once into the result; integers are computed modulo 2^32 or
//! 2^64; `pred` is an or of ands.

pub(super) mod epilogue;
mod loader;
pub(super) mod mma;
pub(super) mod operand;
pub(super) mod simple;
pub(super) mod skinny;
pub(super) mod source;
pub(super) mod tile;

use hlo::attrs::Precision;
use hlo::elementwise::Binary;
use hlo::{ElementType, InstrId, Module, TypeClass};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Emit, Error, IntPredicate, Prim, Result, Value};

/// The arithmetic (field) of sums of products.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    /// Floats of at most 32 bits.
    F32,
    /// Floats of which one is `f64`; those that become `f8e8m0fnu`, whose range is that of `f32` without a
    /// zero.
    F64,
    /// Integers modulo 2^32.
    I32,
    /// Integers modulo 2^64.
    I64,
    /// Truth values: or of ands.
    Pred,
    /// Pairs of `f32`.
    C64,
    /// Pairs of `f64`.
    C128,
}

/// The conversions of elements to words of a field, and of sums to elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// The field.
    pub(super) field: Field,
    /// The type that operands are converted to first, unless they are floats in sums of floats.
    through: ElementType,
    /// The type of the result.
    result: ElementType,
    /// Whether sums of integers saturate to the result's type; they wrap otherwise.
    saturating: bool,
}

impl Words {
    /// For operands and a result of these types.
    pub(super) fn new(lhs: ElementType, rhs: ElementType, result: ElementType) -> Self {
        // Products of floats that are wanted as integers are summed in f32.
        let floats = lhs.is_float() && rhs.is_float();
        let through = if floats && result.is_integer() { ElementType::F32 } else { result };
        let field = match through.class() {
            TypeClass::Float => {
                let wide = [through, lhs, rhs].contains(&ElementType::F64);
                if wide || through == ElementType::F8E8M0FNU { Field::F64 } else { Field::F32 }
            }
            TypeClass::Pred => Field::Pred,
            TypeClass::Signed | TypeClass::Unsigned if through.bits() == 64 => Field::I64,
            TypeClass::Signed | TypeClass::Unsigned => Field::I32,
            TypeClass::Complex if through.bits() == 64 => Field::C64,
            TypeClass::Complex => Field::C128,
        };
        Self { field, through, result, saturating: false }
    }

    /// The same with sums of integers in 64 bits that saturate.
    pub(super) fn saturating(self) -> Self {
        match self.field {
            Field::I32 | Field::I64 => Self { field: Field::I64, saturating: true, ..self },
            Field::F32 | Field::F64 | Field::Pred | Field::C64 | Field::C128 => self,
        }
    }

    /// The same in `f64`.
    pub(super) fn wide(self) -> Self {
        Self { field: Field::F64, ..self }
    }

    /// Whether integers of a byte are themselves in sums, modulo 2^32, of which the low bits are the result.
    pub(super) fn keeps_bytes(&self) -> bool {
        self.through.is_integer() && self.through.bits() >= 8 && !self.saturating
    }

    /// The element type of words.
    pub(super) fn word(&self) -> ElementType {
        match self.field {
            Field::F32 => ElementType::F32,
            Field::F64 => ElementType::F64,
            Field::I32 => ElementType::S32,
            Field::I64 => ElementType::S64,
            Field::Pred => ElementType::Pred,
            Field::C64 => ElementType::C64,
            Field::C128 => ElementType::C128,
        }
    }

    /// An element of an operand as a word.
    pub(super) fn of<'ctx>(&self, e: &Emit<'_, 'ctx>, x: Val<'ctx>) -> Result<Val<'ctx>> {
        let floats = x.ty().is_float() && self.through.is_float();
        let x = if floats { x } else { scalar::convert(e, x, self.through)? };
        scalar::convert(e, x, self.word())
    }

    /// The sum of no products.
    pub(super) fn zero<'ctx>(&self, e: &Emit<'_, 'ctx>) -> Val<'ctx> {
        Val::of_bits(e, self.word(), 0)
    }

    /// A sum from registers.
    pub(super) fn of_registers<'ctx>(&self, registers: &[Value<'ctx>]) -> Val<'ctx> {
        Val::of_registers(self.word(), registers, false)
    }

    /// `sum + x * y`.
    pub(super) fn multiply_add<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        sum: &Val<'ctx>,
        x: &Val<'ctx>,
        y: &Val<'ctx>,
    ) -> Result<Val<'ctx>> {
        if self.field == Field::Pred {
            let both = e.and(x.to_bool(), y.to_bool())?;
            return Ok(Val::of_bool(e.or(sum.to_bool(), both)?));
        }
        scalar::multiply_add(e, Some(sum), x, y)?.ok_or_else(|| Error::Llvm("products of no numbers".into()))
    }

    /// The sum of two sums.
    pub(super) fn add<'ctx>(&self, e: &Emit<'_, 'ctx>, x: &Val<'ctx>, y: &Val<'ctx>) -> Result<Val<'ctx>> {
        if self.field == Field::Pred {
            return Ok(Val::of_bool(e.or(x.to_bool(), y.to_bool())?));
        }
        scalar::binary(e, Binary::Add, x, y)?.ok_or_else(|| Error::Llvm("sums of no numbers".into()))
    }

    /// A sum as an element of the result.
    pub(super) fn finish<'ctx>(&self, e: &Emit<'_, 'ctx>, sum: Val<'ctx>) -> Result<Val<'ctx>> {
        if !self.saturating || !self.through.is_integer() || self.through.bits() == 64 {
            return scalar::convert(e, sum, self.result);
        }
        let x = sum.registers()[0];
        let bits = self.through.bits();
        let select = |predicate, x, limit: u64| {
            let limit = e.int(Prim::I64, limit);
            e.select(e.icmp(predicate, x, limit)?, limit, x)
        };
        let x = if self.through.is_signed_integer() {
            let most = (1i64 << (bits - 1)) - 1;
            let x = select(IntPredicate::SLT, x, (-most - 1).cast_unsigned())?;
            select(IntPredicate::SGT, x, most.cast_unsigned())?
        } else {
            select(IntPredicate::UGT, x, (1u64 << bits) - 1)?
        };
        scalar::convert(e, Val::of_registers(ElementType::S64, &[x], true), self.result)
    }
}

/// Refuses what changes the meaning of operands.
pub(super) fn check_precision(module: &Module, id: InstrId) -> std::result::Result<(), Unsupported> {
    match module.instr(id).attrs.precisions() {
        Some(p) if p.contains(&Precision::PackedNibble) => {
            Err(Unsupported::new(module, id, "operand_precision=packed_nibble"))
        }
        Some(_) | None => Ok(()),
    }
}
