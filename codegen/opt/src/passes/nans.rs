//! Canonicalizes NaNs of operations that the runtime computes by the processor's arithmetic (contractions,
//! transforms, systems of equations, and windows and scans of arithmetic): these leave NaNs of any sign and
//! payload, which is observable where a program reads bits. Only in such programs anything is added; values
//! do not change, for of these operations the canonical NaN is the only one (SEMANTICS.md, "The canonical
//! NaN"). What only moves some elements keeps their bits, and is not touched. There signs are flipped and
//! cleared on bits: kernels leave the sign of a NaN unspecified until bits are observed.

use hlo::attrs::Direction;
use hlo::{AttrKey, ElementType, InstrId, Module, Opcode, Shape};

use super::PassCx;
use super::edit::{Edit, each};
use super::facts::{is_ieee, pattern_type};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    if !all.any(|id| looks_at_bits(module, id)) {
        return 0;
    }
    each(module, cx.fuel, |e| {
        if matches!(e.at().opcode, Opcode::Negate | Opcode::Abs) {
            return on_bits(e);
        }
        let shapes = e.at().shape.leaves().iter().filter_map(|s| s.element_type()).collect::<Vec<_>>();
        if !leaves_any(e.module, e.id())
            || !shapes.iter().any(|&ty| is_ieee(ty.real_part()))
            || done(e.module, e.id())
        {
            return None;
        }
        let operands = e.at().operands().to_vec();
        let again = e.again(&operands)?;
        let Shape::Tuple(parts) = e.at().shape.clone() else { return canonical(e, again) };
        let mut all = Vec::with_capacity(parts.len());
        for i in 0..parts.len() {
            let part = e.get(again, i as i64)?;
            all.push(canonical(e, part)?);
        }
        e.tuple(&all)
    })
}

/// Whether an instruction, or each element of a tuple, is arithmetic: its NaNs are canonical.
fn is_arithmetic(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    match instr.opcode {
        Opcode::Tuple => instr.operands().iter().all(|&o| is_arithmetic(module, o)),
        Opcode::Convert | Opcode::Copy => is_arithmetic(module, instr.operands()[0]),
        // Not a dispatch: what is not known to be arithmetic may move something.
        opcode => matches!(
            opcode,
            Opcode::Add
                | Opcode::Divide
                | Opcode::Maximum
                | Opcode::Minimum
                | Opcode::Multiply
                | Opcode::Power
                | Opcode::Remainder
                | Opcode::Subtract
        ),
    }
}

/// Whether the processor's arithmetic computes all elements of the result.
fn leaves_any(module: &Module, id: InstrId) -> bool {
    let arithmetic = |key| {
        let callee = module.instr(id).attrs.computation(key);
        callee.is_some_and(|c| is_arithmetic(module, module.root(c)))
    };
    // Not a dispatch: for others the compiler keeps track itself.
    match module.instr(id).opcode {
        Opcode::Cholesky
        | Opcode::Convolution
        | Opcode::Dot
        | Opcode::Fft
        | Opcode::RaggedDot
        | Opcode::ScaledDot
        | Opcode::TriangularSolve => true,
        Opcode::ReduceWindow | Opcode::Scan => arithmetic(AttrKey::ToApply),
        Opcode::SelectAndScatter => arithmetic(AttrKey::Scatter),
        _other => false,
    }
}

/// A change of the sign bit, done on bits unless the operand was handled before.
fn on_bits(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let ty = e.array(x)?.element_type;
    let given = matches!(e.instr(x).opcode, Opcode::Parameter | Opcode::Constant);
    if given || e.array(e.id())?.element_type != ty {
        return None;
    }
    if !ty.is_complex() {
        return sign_on_bits(e, x, ty);
    }
    let (re, im) = (e.unary(Opcode::Real, x)?, e.unary(Opcode::Imag, x)?);
    let (re, im) = (sign_on_bits(e, re, ty.real_part())?, sign_on_bits(e, im, ty.real_part())?);
    e.binary(Opcode::Complex, re, im)
}

/// The sign bit of floats flipped or cleared, as the edited instruction does it.
fn sign_on_bits(e: &mut Edit<'_>, x: InstrId, ty: ElementType) -> Option<InstrId> {
    let bits = pattern_type(ty)?;
    let sign = 1u128 << (bits.bits() - 1);
    let (opcode, mask) = match e.at().opcode {
        Opcode::Negate => (Opcode::Xor, sign),
        _ => (Opcode::And, sign - 1),
    };
    let raw = e.bits_as(x, bits)?;
    let mask = e.scalar_bits(bits, mask);
    let mask = e.fill(mask, raw)?;
    let changed = e.binary(opcode, raw, mask)?;
    e.bits_as(changed, ty)
}

/// Whether an instruction distinguishes NaNs.
fn looks_at_bits(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let of = instr.operands().first().and_then(|&o| module.instr(o).shape.element_type());
    of.is_some_and(|ty| is_ieee(ty.real_part()))
        && match instr.opcode {
            Opcode::BitcastConvert | Opcode::Bitcast => instr.shape.element_type() != of,
            // By the total order.
            Opcode::Topk => true,
            Opcode::Compare => instr.attrs.is_total_order(),
            _ => false,
        }
}

/// Whether every array of the result is only read to canonicalize its NaNs: compared with itself, selected,
/// taken out of a tuple.
fn done(module: &Module, id: InstrId) -> bool {
    let only = |id: InstrId| {
        module.users(id).iter().all(|u| {
            let user = module.instr(u.user);
            match user.opcode {
                Opcode::Compare => user.operands() == [id, id],
                Opcode::Select => u.operand == 2 && module.instr(user.operands()[0]).operands() == [id, id],
                Opcode::Real | Opcode::Imag => true,
                _ => false,
            }
        })
    };
    let mut parts =
        module.users(id).iter().filter(|u| module.instr(u.user).opcode == Opcode::GetTupleElement);
    if module.root(module.instr(id).parent()) == id {
        return false;
    }
    match module.instr(id).shape {
        Shape::Tuple(_) => parts.all(|u| only(u.user)),
        Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => only(id),
    }
}

/// `x`, with every NaN canonical.
fn canonical(e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
    let Some(ty) = e.array(x).map(|a| a.element_type).filter(|ty| is_ieee(ty.real_part())) else {
        return Some(x);
    };
    if ty.is_complex() {
        let (re, im) = (e.unary(Opcode::Real, x)?, e.unary(Opcode::Imag, x)?);
        let (re, im) = (canonical(e, re)?, canonical(e, im)?);
        return e.binary(Opcode::Complex, re, im);
    }
    let bits = match ty {
        ElementType::F64 => u128::from(f64::NAN.to_bits()),
        ElementType::F32 => u128::from(f32::NAN.to_bits()),
        ElementType::F16 => 0x7e00,
        ElementType::BF16 => 0x7fc0,
        _ => return Some(x),
    };
    let nan = e.scalar_bits(ty, bits);
    let nan = e.fill(nan, x)?;
    let differs = e.compare(Direction::Ne, x, x)?;
    e.select(differs, nan, x)
}
