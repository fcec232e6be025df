//! The emission of combinations that are no computations of their own.

use hlo::ElementType;
use hlo::elementwise::Binary;

use super::{Val, extreme};
use crate::{Emit, Error, Result};
use hlo_opt::fusion::combine::Combine;

/// The value that changes nothing, on the lanes of `e`, of a free combination that is not idempotent.
pub fn neutral<'ctx>(e: &Emit<'_, 'ctx>, combine: &Combine<'_>, ty: ElementType) -> Val<'ctx> {
    let bits = match combine {
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

/// Accumulators and elements, on the lanes of `e`, combined; `None` of a computation.
pub fn combined<'ctx>(
    e: &Emit<'_, 'ctx>,
    combine: &Combine<'_>,
    a: &[Val<'ctx>],
    b: &[Val<'ctx>],
) -> Result<Option<Vec<Val<'ctx>>>> {
    match combine {
        Combine::Sum => {
            let parts = a[0].registers().into_iter().zip(b[0].registers());
            let sums = parts.map(|(x, y)| e.fadd(x, y)).collect::<Result<Vec<_>>>()?;
            Ok(Some(vec![Val::of_registers(a[0].ty(), &sums, false)]))
        }
        Combine::Binary(op, _) => {
            let result = super::binary(e, *op, &a[0], &b[0])?;
            result.map(|x| Some(vec![x])).ok_or_else(|| Error::Llvm("no such operation".into()))
        }
        Combine::Extreme { least } => extreme::combine(e, *least, a, b).map(Some),
        Combine::General { .. } => Ok(None),
    }
}

/// The same of elements that come after all that each lane of the accumulators holds.
pub fn combined_in_order<'ctx>(
    e: &Emit<'_, 'ctx>,
    combine: &Combine<'_>,
    a: &[Val<'ctx>],
    b: &[Val<'ctx>],
) -> Result<Option<Vec<Val<'ctx>>>> {
    match combine {
        Combine::Extreme { least } => extreme::next(e, *least, a, b).map(Some),
        Combine::Sum | Combine::Binary(..) | Combine::General { .. } => combined(e, combine, a, b),
    }
}
