//! Reductions to the greatest or least value and its index ([`hlo_opt::fusion::combine::Combine::Extreme`]).

use hlo::ElementType;
use hlo::attrs::Direction;

use crate::scalar::{self, Val};
use crate::{Emit, FloatPredicate, IntPredicate, Result, Value};

/// The combination: as the computation, but that of two NaNs the lower index decides, which is that of the
/// first in the order of the elements.
pub(super) fn combine<'ctx>(
    e: &Emit<'_, 'ctx>,
    least: bool,
    a: &[Val<'ctx>],
    b: &[Val<'ctx>],
) -> Result<Vec<Val<'ctx>>> {
    let signed = a[1].ty().is_signed_integer();
    let (i, j) = (a[1].registers()[0], b[1].registers()[0]);
    let before = scalar::compare_integers(e, Direction::Lt, signed, i, j)?;
    let [x, y] = comparable(e, a, b)?;
    let first = beyond(e, least, a[0].ty(), x, y)?;
    let equal = if a[0].ty().is_float() {
        let nan = |x: Value<'ctx>| e.fcmp(FloatPredicate::UNO, x, x);
        e.or(e.fcmp(FloatPredicate::OEQ, x, y)?, e.and(nan(x)?, nan(y)?)?)?
    } else {
        e.icmp(IntPredicate::EQ, x, y)?
    };
    chosen(e, e.or(first, e.and(equal, before)?)?, a, b)
}

/// The same where the second index comes after the first: only a strictly greater value replaces one.
pub(super) fn next<'ctx>(
    e: &Emit<'_, 'ctx>,
    least: bool,
    a: &[Val<'ctx>],
    b: &[Val<'ctx>],
) -> Result<Vec<Val<'ctx>>> {
    let [x, y] = comparable(e, a, b)?;
    chosen(e, beyond(e, least, a[0].ty(), y, x)?, b, a)
}

/// The values, in a type that is compared.
fn comparable<'ctx>(e: &Emit<'_, 'ctx>, a: &[Val<'ctx>], b: &[Val<'ctx>]) -> Result<[Value<'ctx>; 2]> {
    let wide = |x: &Val<'ctx>| match x.ty() {
        ty if ty.is_float() && ty.bits() < 32 => scalar::convert(e, *x, ElementType::F32),
        _ => Ok(*x),
    };
    Ok([wide(&a[0])?.registers()[0], wide(&b[0])?.registers()[0]])
}

/// Whether `x` is greater (or less) than `y`, or the only NaN of both.
fn beyond<'ctx>(
    e: &Emit<'_, 'ctx>,
    least: bool,
    ty: ElementType,
    x: Value<'ctx>,
    y: Value<'ctx>,
) -> Result<Value<'ctx>> {
    if ty.is_float() {
        // Not less or equal: greater, or one of them NaN.
        let beyond = e.fcmp(if least { FloatPredicate::ULT } else { FloatPredicate::UGT }, x, y)?;
        return e.and(beyond, e.fcmp(FloatPredicate::ORD, y, y)?);
    }
    let direction = if least { Direction::Lt } else { Direction::Gt };
    scalar::compare_integers(e, direction, ty.is_signed_integer(), x, y)
}

fn chosen<'ctx>(
    e: &Emit<'_, 'ctx>,
    first: Value<'ctx>,
    a: &[Val<'ctx>],
    b: &[Val<'ctx>],
) -> Result<Vec<Val<'ctx>>> {
    Ok(vec![scalar::select(e, first, &a[0], &b[0])?, scalar::select(e, first, &a[1], &b[1])?])
}
