//! Complex numbers.

use hlo::{InstrId, Opcode};

use super::edit::Edit;
use super::{Family, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "complex-abs-overflows",
        Family::Elementwise,
        "The modulus of a complex number is `sqrt(re^2 + im^2)`, whose squares over- and underflow.",
        "https://github.com/llvm/llvm-project/pull/76316",
        &[Opcode::Abs],
        complex_abs_overflows,
    ),
    row(
        "complex-division-overflows",
        Family::Elementwise,
        "Complex division multiplies by the conjugate and divides by `re^2 + im^2`, which over- and underflows.",
        "https://github.com/jax-ml/jax/issues/23958",
        &[Opcode::Divide],
        complex_division_overflows,
    ),
    row(
        "complex-sqrt-wrong-branch",
        Family::Elementwise,
        "`sqrt` of a complex number below the real axis has a positive imaginary part.",
        "https://github.com/jax-ml/jax/issues/39110",
        &[Opcode::Sqrt],
        complex_sqrt_wrong_branch,
    ),
];

fn parts(e: &mut Edit<'_>, z: InstrId) -> Option<(InstrId, InstrId)> {
    e.complex(z)?;
    Some((e.un(Opcode::Real, z)?, e.un(Opcode::Imag, z)?))
}

fn complex_abs_overflows(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Abs)?;
    let (re, im) = parts(e, e.operand(0)?)?;
    let (a, b) = (e.bin(Opcode::Multiply, re, re)?, e.bin(Opcode::Multiply, im, im)?);
    let sum = e.bin(Opcode::Add, a, b)?;
    e.un(Opcode::Sqrt, sum)
}

fn complex_division_overflows(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Divide)?;
    let (z, w) = e.pair()?;
    let ((a, b), (c, d)) = (parts(e, z)?, parts(e, w)?);
    let product = |e: &mut Edit<'_>, x, y| e.bin(Opcode::Multiply, x, y);
    let (cc, dd) = (product(e, c, c)?, product(e, d, d)?);
    let size = e.bin(Opcode::Add, cc, dd)?;
    let (ac, bd, bc, ad) = (product(e, a, c)?, product(e, b, d)?, product(e, b, c)?, product(e, a, d)?);
    let (re, im) = (e.bin(Opcode::Add, ac, bd)?, e.bin(Opcode::Subtract, bc, ad)?);
    let (re, im) = (e.bin(Opcode::Divide, re, size)?, e.bin(Opcode::Divide, im, size)?);
    e.bin(Opcode::Complex, re, im)
}

fn complex_sqrt_wrong_branch(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Sqrt)?;
    let x = e.operand(0)?;
    e.complex(x)?;
    let root = e.un(Opcode::Sqrt, x)?;
    let (re, im) = parts(e, root)?;
    let im = e.un(Opcode::Abs, im)?;
    e.bin(Opcode::Complex, re, im)
}
