//! How a reduction combines two values.

use hlo::attrs::AttrKey;
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode};

use super::code::Code;
use crate::Unsupported;
use crate::cpu::llvm::{Emit, Error, IntPredicate, Prim, Result, Value};
use crate::cpu::scalar::{self, Val};
use crate::passes::reduce::operation;
use crate::tape::{NodeId, Tape};
use hlo::elementwise::{Binary, Kind, kind};

/// The combination of several accumulators with as many elements.
pub(super) enum Combine<'m> {
    /// A sum of floats, in any order, in a type of 32 bits or more.
    Sum,
    /// One operation of both; whether any order gives the same bits.
    Binary(Binary, bool),
    /// The index of the greater (or less) value: of a NaN before all others, then the lower one of equals. Any order gives the same. The value is not what
    /// the computation gives: of zeros with different signs that would be the last one.
    Extreme { least: bool },
    /// A computation, in the order of the elements.
    General { tape: Box<Tape<'m>>, results: Vec<NodeId> },
}

/// The operation of both parameters that a computation is.
pub(super) fn binary_root(module: &Module, computation: ComputationId) -> Option<(Binary, ElementType)> {
    let (opcode, ty) = operation(module, computation)?;
    let Some(Kind::Binary(op)) = kind(opcode) else { return None };
    Some((op, ty))
}

impl<'m> Combine<'m> {
    /// Of a reduction. `counted`: the second operand counts up along the order of the elements, and nobody reads
    /// the first result.
    pub(super) fn of(
        module: &'m Module,
        reduce: InstrId,
        counted: bool,
    ) -> std::result::Result<Self, Unsupported> {
        let instr = module.instr(reduce);
        if instr.opcode == Opcode::Dot {
            let whole = instr.shape.element_type().is_some_and(ElementType::is_integer);
            return Ok(if whole { Combine::Binary(Binary::Add, true) } else { Combine::Sum });
        }
        let Some(computation) = instr.attrs.computation(AttrKey::ToApply) else {
            return Err(Unsupported::new(module, reduce, "a reduction by nothing"));
        };
        if let Some((op, ty)) = binary_root(module, computation) {
            let float = ty.is_float() || ty.is_complex();
            return Ok(match op {
                Binary::Add if float => Combine::Sum,
                Binary::Add | Binary::Multiply | Binary::And | Binary::Or | Binary::Xor => {
                    Combine::Binary(op, !float)
                }
                Binary::Maximum | Binary::Minimum => Combine::Binary(op, !ty.is_complex()),
                other => Combine::Binary(other, false),
            });
        }
        if let Some(least) = super::argmax::recognize(module, computation).filter(|_| counted) {
            return Ok(Combine::Extreme { least });
        }
        Self::general(module, computation)
    }

    fn general(module: &'m Module, computation: ComputationId) -> std::result::Result<Self, Unsupported> {
        let mut tape = Tape::new(module);
        let mut given = Vec::new();
        for &p in module.computation(computation).parameters().iter().flatten() {
            let Some(shape) = module.instr(p).shape.as_array() else {
                return Err(Unsupported::new(module, p, "a computation of what is no array"));
            };
            given.push(tape.given(given.len() as u32, shape.element_type));
        }
        let results = tape.apply(computation, &given)?;
        Ok(Combine::General { tape: Box::new(tape), results })
    }

    /// Of a computation whose order matters, each step rounded.
    pub(super) fn literal(
        module: &'m Module,
        computation: ComputationId,
    ) -> std::result::Result<Self, Unsupported> {
        match binary_root(module, computation) {
            Some((op, _)) => Ok(Combine::Binary(op, false)),
            None => Self::general(module, computation),
        }
    }

    /// Whether elements may be combined in any order.
    pub(super) fn free(&self) -> bool {
        match self {
            Combine::Sum | Combine::Extreme { .. } => true,
            Combine::Binary(_, free) => *free,
            Combine::General { .. } => false,
        }
    }

    /// Whether an accumulator may be a value that was only moved. (That of an extreme has a value that nobody reads.)
    pub(super) fn moves(&self, accumulator: usize) -> bool {
        match self {
            Combine::Sum | Combine::Binary(..) | Combine::Extreme { .. } => false,
            Combine::General { tape, results } => tape.moves(results[accumulator]),
        }
    }

    /// The type in which a value of a type is accumulated.
    pub(super) fn accumulator(&self, ty: ElementType) -> ElementType {
        if matches!(self, Combine::Sum) && ty.bits() < 32 { ElementType::F32 } else { ty }
    }

    /// The signed integers whose order finds the greatest or the least (`true`) of floats of a type: fewer operations than for floats, of which a NaN
    /// is neither and zeros are different; floats of 16 bits need no wider ones besides.
    pub(super) fn order_of(&self, ty: ElementType) -> Option<(ElementType, bool)> {
        let least = match self {
            Combine::Binary(Binary::Maximum, true) => false,
            Combine::Binary(Binary::Minimum, true) => true,
            Combine::Binary(..) | Combine::Sum | Combine::Extreme { .. } | Combine::General { .. } => {
                return None;
            }
        };
        if ty.is_float() && ty.bits() == 16 {
            return Some((ElementType::S16, least));
        }
        // Other processors have instructions for it.
        (ty == ElementType::F32 && cfg!(target_arch = "x86_64")).then_some((ElementType::S32, least))
    }

    /// Whether combining a value with itself changes nothing: accumulators may begin with the initial value as often as there are any.
    pub(super) fn idempotent(&self, ty: ElementType) -> bool {
        match self {
            Combine::Sum | Combine::General { .. } => false,
            Combine::Extreme { .. } => true,
            Combine::Binary(op, _) => match op {
                Binary::Maximum | Binary::Minimum | Binary::And | Binary::Or => true,
                Binary::Add | Binary::Multiply => ty == ElementType::Pred,
                _ => false,
            },
        }
    }

    /// The value that changes nothing, on the lanes of `e`, of a free combination that is not idempotent.
    pub(super) fn neutral<'ctx>(&self, e: &Emit<'_, 'ctx>, ty: ElementType) -> Val<'ctx> {
        let bits = match self {
            Combine::Sum => {
                let part = ty.real_part().bits();
                let zero = 1u128 << (part - 1);
                if ty.is_complex() { zero | zero << part } else { zero }
            }
            Combine::Binary(Binary::Multiply, _) => 1,
            Combine::Binary(..) | Combine::Extreme { .. } | Combine::General { .. } => 0,
        };
        Val::of_bits(e, ty, bits)
    }

    /// Accumulators and elements that come after all that each lane of these holds.
    pub(super) fn next<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: Value<'ctx>,
        a: &[Val<'ctx>],
        b: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        match self {
            Combine::Extreme { least } => super::argmax::next(e, *least, a, b),
            Combine::Sum | Combine::Binary(..) | Combine::General { .. } => self.apply(e, arguments, a, b),
        }
    }

    /// Accumulators and elements, on the lanes of `e`, combined.
    pub(super) fn apply<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: Value<'ctx>,
        a: &[Val<'ctx>],
        b: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        match self {
            Combine::Sum => {
                let parts = a[0].registers().into_iter().zip(b[0].registers());
                let sums = parts.map(|(x, y)| e.fadd(x, y)).collect::<Result<Vec<_>>>()?;
                Ok(vec![Val::of_registers(a[0].ty(), &sums, false)])
            }
            Combine::Binary(op, _) => {
                let result = scalar::binary(e, *op, &a[0], &b[0])?;
                result.map(|x| vec![x]).ok_or_else(|| Error::Llvm("no such operation".into()))
            }
            Combine::Extreme { least } => super::argmax::combine(e, *least, a, b),
            Combine::General { tape, results } => {
                let mut code = Code::new(*e, tape, e.lanes, arguments)?;
                for (i, x) in a.iter().chain(b).enumerate() {
                    code.give(i as u32, *x, false);
                }
                let all = results.iter().map(|&r| code.value(r)?.settled_if(e, tape.moves(r)));
                all.collect()
            }
        }
    }
}

/// What loops carry, or memory holds, of an accumulator.
#[derive(Clone, Copy)]
pub(super) struct Carried {
    pub(super) ty: ElementType,
    /// Whether it may be a value that was only moved. What is carried is settled then.
    pub(super) moved: bool,
}

/// Values as registers that loops carry.
pub(super) fn registers<'ctx>(values: &[Val<'ctx>]) -> Vec<Value<'ctx>> {
    values.iter().flat_map(Val::registers).collect()
}

/// The values in registers, one kind after the other, repeated.
pub(super) fn values<'ctx>(kinds: &[Carried], registers: &[Value<'ctx>]) -> Vec<Val<'ctx>> {
    let mut rest = registers;
    let mut all = Vec::new();
    for &Carried { ty, moved } in kinds.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (mine, more) = rest.split_at(1 + usize::from(ty.is_complex()));
        all.push(Val::of_registers(ty, mine, moved));
        rest = more;
    }
    all
}

/// All lanes combined into one: halves with halves.
pub(super) fn across<'ctx>(
    combine: &Combine<'_>,
    e: &Emit<'_, 'ctx>,
    arguments: Value<'ctx>,
    x: &[Val<'ctx>],
) -> Result<Vec<Val<'ctx>>> {
    let mut all = x.to_vec();
    let mut lanes = e.lanes;
    while lanes > 1 {
        lanes /= 2;
        let half = |from: u32| -> Result<Vec<Val<'ctx>>> {
            let pick: Vec<u32> = (from..from + lanes).collect();
            let part = |r| match lanes {
                // What is known of all lanes.
                _ if e.lanes_of(r) == 1 => Ok(r),
                1 => e.extract(r, from),
                _more => e.shuffle(r, r, &pick),
            };
            all.iter().map(|v| v.map(part)).collect()
        };
        let (low, high) = (half(0)?, half(lanes)?);
        all = combine.apply(&e.with_lanes(lanes), arguments, &low, &high)?;
    }
    Ok(all)
}

/// A register as memory of an accumulator holds it: bits as bytes.
pub(super) fn widened<'ctx>(e: &Emit<'_, 'ctx>, register: Value<'ctx>) -> Result<Value<'ctx>> {
    match e.prim_of(register) {
        Prim::I1 => e.zext(register, Prim::I8),
        _ => Ok(register),
    }
}

/// A register from what [`widened`] made.
pub(super) fn narrowed<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    stored: Value<'ctx>,
) -> Result<Value<'ctx>> {
    if ty == ElementType::Pred {
        let zero = e.with_lanes(e.lanes_of(stored)).int(Prim::I8, 0);
        return e.icmp(IntPredicate::NE, stored, zero);
    }
    Ok(stored)
}
