//! Complex numbers. What has a formula is in [`super::functions`]; what has none is a call of the runtime
//! ([`hlo_codegen::runtime::functions`]), a lane at a time.

use hlo::attrs::Direction;
use hlo::{ElementType, Opcode};

use super::device;
use super::float::{negated, select};
use super::functions;
use super::value::{Computed, Val, register};
use crate::{Emit, Error, FloatPredicate, Prim, Result, Value};
use hlo::elementwise::{Binary, Function, Unary};
use hlo_codegen::runtime::functions::symbol;

/// What is computed by a function of its own, at least of some operands.
#[derive(Clone, Copy)]
pub(super) enum Operation {
    Function(Function),
    Sign,
    Binary(Binary),
}

impl Operation {
    pub(super) fn opcode(self) -> Opcode {
        match self {
            Operation::Function(f) => f.opcode(),
            Operation::Sign => Opcode::Sign,
            Operation::Binary(op) => op.opcode(),
        }
    }

    /// By a function of the device, of the parts of scalars.
    pub(super) fn on_device<'ctx>(
        self,
        e: &Emit<'_, 'ctx>,
        operands: &[Value<'ctx>],
    ) -> Result<[Value<'ctx>; 2]> {
        match (self, operands) {
            (Operation::Function(f), &[re, im]) => device::unary(e, f, [re, im]),
            (Operation::Sign, &[re, im]) => device::sign(e, [re, im]),
            (Operation::Binary(op), &[a, b, c, d]) => device::binary(e, op, [a, b, c, d]),
            (Operation::Function(_) | Operation::Sign | Operation::Binary(_), _) => {
                Err(Error::Llvm(format!("{} of {} parts", self.opcode(), operands.len())))
            }
        }
    }
}

/// A function of one operand; `None` if there is no such.
pub(super) fn function<'ctx>(e: &Emit<'_, 'ctx>, f: Function, x: &Val<'ctx>) -> Result<Option<Val<'ctx>>> {
    if f == Function::Erf {
        return Ok(None);
    }
    let (re, im) = x.pair();
    match functions::complex_unary(e, f, x.ty, [re, im])? {
        Some([re, im]) => Ok(Some(Val::complex(x.ty, re, im))),
        None => call(e, Operation::Function(f), x.ty, &[re, im]).map(Some),
    }
}

/// Other operations of one operand, `abs` with a real result; `None` if there is no such.
pub(super) fn unary<'ctx>(e: &Emit<'_, 'ctx>, op: Unary, x: &Val<'ctx>) -> Result<Option<Val<'ctx>>> {
    let (re, im) = x.pair();
    match op {
        Unary::Abs => Ok(Some(Val::arithmetic(x.ty.real_part(), functions::modulus(e, x.ty, [re, im])?))),
        Unary::Negate => {
            let (re, im) = (negated(e, x, re)?, negated(e, x, im)?);
            Ok(Some(Val { computed: x.computed, ..Val::complex(x.ty, re, im) }))
        }
        Unary::Sign => {
            let [re, im] = functions::complex_sign(e, x.ty, [re, im])?;
            Ok(Some(Val::complex(x.ty, re, im)))
        }
        Unary::Ceil
        | Unary::CountLeadingZeros
        | Unary::Floor
        | Unary::Not
        | Unary::Popcnt
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven => Ok(None),
    }
}

/// Operations of two operands; `None` if there is no such.
pub(super) fn binary<'ctx>(
    e: &Emit<'_, 'ctx>,
    op: Binary,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Option<Val<'ctx>>> {
    let ((a, b), (c, d)) = (x.pair(), y.pair());
    match op {
        Binary::Add => Ok(Some(Val::complex(x.ty, e.fadd(a, c)?, e.fadd(b, d)?))),
        Binary::Subtract => Ok(Some(Val::complex(x.ty, e.fsub(a, c)?, e.fsub(b, d)?))),
        Binary::Multiply => multiply(e, x, y).map(Some),
        Binary::Maximum => lexicographic(e, x, y, FloatPredicate::OLT).map(Some),
        Binary::Minimum => lexicographic(e, x, y, FloatPredicate::OGT).map(Some),
        Binary::Divide | Binary::Power | Binary::Atan2 => {
            match functions::complex_binary(e, op, x.ty, [a, b, c, d])? {
                Some([re, im]) => Ok(Some(Val::complex(x.ty, re, im))),
                None => call(e, Operation::Binary(op), x.ty, &[a, b, c, d]).map(Some),
            }
        }
        Binary::Remainder => {
            let nan = e.float(register(x.ty), f64::NAN);
            Ok(Some(Val::complex(x.ty, nan, nan)))
        }
        Binary::And
        | Binary::Mulhi
        | Binary::Or
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Xor => Ok(None),
    }
}

/// Fused products of the parts, and on lanes where the result is not finite what the interpreter's definition
/// gives: of `f32` parts in `f64`, where products are exact and nothing overflows (operands that are not
/// finite take the plain formula in `f32`), of `f64` parts by the runtime. Underflow needs no care: it is off
/// by no more than the last place of a subnormal number.
fn multiply<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>, y: &Val<'ctx>) -> Result<Val<'ctx>> {
    let ((a, b), (c, d)) = (x.pair(), y.pair());
    let re = e.fma(a, c, e.fneg(e.fmul(b, d)?)?)?;
    let im = e.fma(a, d, e.fmul(b, c)?)?;
    let zero = e.float(e.prim_of(a), 0.0);
    let probe = e.fadd(e.fmul(re, zero)?, e.fmul(im, zero)?)?;
    let odd = e.fcmp(FloatPredicate::UNO, probe, probe)?;
    let careful = || -> Result<Vec<Value<'ctx>>> {
        let exact = match x.ty {
            ElementType::C64 => e.outlined("careful_product", 2, &[a, b, c, d], careful_product)?,
            _ => call(e, Operation::Binary(Binary::Multiply), x.ty, &[a, b, c, d])?.registers(),
        };
        Ok(vec![e.select(odd, exact[0], re)?, e.select(odd, exact[1], im)?])
    };
    let parts = e.if_else(e.any(odd)?, careful, || Ok(vec![re, im]))?;
    Ok(Val::of_registers(x.ty, &parts, false))
}

/// `sum + x * y`, or `0 + x * y`: fused sums of real products, as contractions have them.
pub(super) fn multiply_add<'ctx>(
    e: &Emit<'_, 'ctx>,
    sum: Option<&Val<'ctx>>,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Val<'ctx>> {
    let ((a, b), (c, d)) = (x.pair(), y.pair());
    let zero = e.float(e.prim_of(a), 0.0);
    let first = |a, c, sum: Option<Value<'ctx>>| match sum {
        Some(sum) => e.fma(a, c, sum),
        None => e.fadd(e.fmul(a, c)?, zero),
    };
    let sum = sum.map(Val::pair);
    let re = e.fma(e.fneg(b)?, d, first(a, c, sum.map(|s| s.0))?)?;
    let im = e.fma(b, c, first(a, d, sum.map(|s| s.1))?)?;
    Ok(Val::complex(x.ty, re, im))
}

/// The product of `c64` numbers by way of `f64`.
fn careful_product<'ctx>(e: &Emit<'_, 'ctx>, parts: &[Value<'ctx>]) -> Result<Vec<Value<'ctx>>> {
    let &[a, b, c, d] = parts else { return Ok(Vec::new()) };
    let plain = |a, b, c, d| -> Result<[Value<'ctx>; 2]> {
        Ok([e.fsub(e.fmul(a, c)?, e.fmul(b, d)?)?, e.fadd(e.fmul(a, d)?, e.fmul(b, c)?)?])
    };
    let zero = e.float(e.prim_of(a), 0.0);
    // 0 if all are finite, otherwise NaN.
    let mut probe = e.fmul(a, zero)?;
    for part in [b, c, d] {
        probe = e.fadd(probe, e.fmul(part, zero)?)?;
    }
    let finite = e.fcmp(FloatPredicate::ORD, probe, probe)?;
    let wide = |v| e.fpext(v, Prim::F64);
    let exact = plain(wide(a)?, wide(b)?, wide(c)?, wide(d)?)?;
    let plain = plain(a, b, c, d)?;
    (0..2).map(|i| e.select(finite, e.fptrunc(exact[i], Prim::F32)?, plain[i])).collect()
}

/// `y` if `x` compares to it as the predicate says, by real parts and then imaginary ones, else `x`; NaN in
/// both parts if any part is one.
fn lexicographic<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
    second: FloatPredicate,
) -> Result<Val<'ctx>> {
    let ((a, b), (c, d)) = (x.pair(), y.pair());
    let (re, im) = (e.fcmp(second, a, c)?, e.fcmp(second, b, d)?);
    let tie = e.fcmp(FloatPredicate::OEQ, a, c)?;
    let chosen = select(e, e.or(re, e.and(tie, im)?)?, y, x)?;
    let any = e.or(e.fcmp(FloatPredicate::UNO, a, b)?, e.fcmp(FloatPredicate::UNO, c, d)?)?;
    let nan = e.float(register(x.ty), f64::NAN);
    select(e, any, &Val::complex(x.ty, nan, nan), &Val { computed: Computed::Everywhere, ..chosen })
}

/// `minimum(high, maximum(x, low))`.
pub(super) fn clamp<'ctx>(
    e: &Emit<'_, 'ctx>,
    low: &Val<'ctx>,
    x: &Val<'ctx>,
    high: &Val<'ctx>,
) -> Result<Val<'ctx>> {
    let above = lexicographic(e, x, low, FloatPredicate::OLT)?;
    lexicographic(e, &above, high, FloatPredicate::OGT)
}

/// Equality of both parts, or not; `None`: there is no order.
pub(super) fn compare<'ctx>(
    e: &Emit<'_, 'ctx>,
    direction: Direction,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Option<Value<'ctx>>> {
    let ((a, b), (c, d)) = (x.pair(), y.pair());
    match direction {
        Direction::Eq => {
            e.and(e.fcmp(FloatPredicate::OEQ, a, c)?, e.fcmp(FloatPredicate::OEQ, b, d)?).map(Some)
        }
        Direction::Ne => {
            e.or(e.fcmp(FloatPredicate::UNE, a, c)?, e.fcmp(FloatPredicate::UNE, b, d)?).map(Some)
        }
        Direction::Ge | Direction::Gt | Direction::Le | Direction::Lt => Ok(None),
    }
}

/// Calls a function of the runtime for each lane; it leaves both parts in memory. On a GPU the function is
/// the device's.
fn call<'ctx>(
    e: &Emit<'_, 'ctx>,
    operation: Operation,
    ty: ElementType,
    operands: &[Value<'ctx>],
) -> Result<Val<'ctx>> {
    let (prim, name) = (register(ty), symbol(operation.opcode(), ty.name()));
    let (one, pair) = (e.scalar(), e.with_lanes(2));
    let slot = if e.gpu { None } else { Some(e.stack(prim, 2)?.into()) };
    let (mut re, mut im) = (e.poison(prim), e.poison(prim));
    for lane in 0..e.lanes {
        let mut arguments = operands.iter().map(|&x| e.extract(x, lane)).collect::<Result<Vec<_>>>()?;
        let [first, second] = match slot {
            Some(slot) => {
                arguments.push(slot);
                one.external_call(&name, None, &arguments)?;
                let both = pair.load(prim, slot, 8)?;
                [pair.extract(both, 0)?, pair.extract(both, 1)?]
            }
            None => operation.on_device(&one, &arguments)?,
        };
        re = e.insert(re, first, lane)?;
        im = e.insert(im, second, lane)?;
    }
    Ok(Val::complex(ty, re, im))
}
