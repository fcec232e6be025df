//! Value ranges of `f32` nodes: bounds of the magnitude and of the exponent of the last bit, as far as
//! integers and constants determine them.
//!
//! They allow strength reduction of divisions by constants: where no product can over- or underflow, the
//! correctly rounded quotient is computed by multiplications (`scalar::quotient`) in half the time of a
//! division.

use hlo::{Bits, ElementType, Opcode, TypeClass, with_buffer};

use super::{Expr, NodeId, Op};

/// The range of a set of finite numbers.
#[derive(Clone, Copy, Debug)]
pub struct Magnitude {
    /// An upper bound of the absolute values.
    most: f64,
    /// All are multiples of two to this power.
    unit: i32,
}

/// Exponents within `-MAX_EXPONENT..MAX_EXPONENT` keep the products and residuals of the division exact where
/// they have to be.
const MAX_EXPONENT: i32 = 60;

/// Integers up to this bound are small: the quotient needs fewer steps.
const MAX_SMALL_INTEGER: f64 = 4096.0;

impl Magnitude {
    fn new(most: f64, unit: i32) -> Option<Self> {
        let known = Self { most, unit };
        (unit > -MAX_EXPONENT && most < f64::from(MAX_EXPONENT).exp2()).then_some(known)
    }

    /// The range of rounded results, where every nonzero exact value is at least two to the power `unit`.
    fn rounded(most: f64, unit: i32) -> Option<Self> {
        Self::new(most * (1.0 + f64::from(f32::EPSILON)), unit)
    }

    fn hull(self, other: Self) -> Option<Self> {
        Self::new(self.most.max(other.most), self.unit.min(other.unit))
    }
}

/// The binary exponent of a positive number.
fn exponent(x: f64) -> i32 {
    x.log2().floor() as i32
}

impl Expr<'_> {
    /// The range of each node, where one is known.
    pub fn magnitudes(&self) -> Vec<Option<Magnitude>> {
        let mut all = Vec::with_capacity(self.nodes.len());
        for n in 0..self.nodes.len() {
            let magnitude = self.magnitude(n as NodeId, &all);
            all.push(magnitude);
        }
        all
    }

    fn magnitude(&self, n: NodeId, all: &[Option<Magnitude>]) -> Option<Magnitude> {
        let node = &self.nodes[n as usize];
        match node.ty.class() {
            TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned if node.ty.bits() <= 32 => {
                return Magnitude::new(f64::from(node.ty.bits()).exp2(), 0);
            }
            TypeClass::Float if node.ty == ElementType::F32 => {}
            TypeClass::Pred
            | TypeClass::Signed
            | TypeClass::Unsigned
            | TypeClass::Float
            | TypeClass::Complex => return None,
        }
        let of = |n: NodeId| all[n as usize];
        let (instr, operands) = match &node.op {
            Op::Constant { .. } => return self.number(n).and_then(of_constant),
            Op::Convert { operand } => return of(*operand).and_then(|x| Magnitude::rounded(x.most, x.unit)),
            Op::Select { yes, no, .. } => return of(*yes)?.hull(of(*no)?),
            Op::Elementwise { instr, operands } => (*instr, operands),
            Op::Load { .. }
            | Op::Iota { .. }
            | Op::BitcastConvert { .. }
            | Op::ToOrderedInt { .. }
            | Op::FromOrderedInt { .. }
            | Op::Pack { .. }
            | Op::SumOfProducts { .. }
            | Op::Sum { .. }
            | Op::Unpack { .. }
            | Op::Given { .. } => return None,
        };
        let opcode = self.module.instr(instr).opcode;
        let x = of(operands[if opcode == Opcode::Select { 1 } else { 0 }])?;
        let other = |i: usize| operands.get(i).and_then(|&o| of(o));
        if opcode == Opcode::Convert {
            return Magnitude::rounded(x.most, x.unit);
        } else if matches!(opcode, Opcode::Negate | Opcode::Abs) {
            return Some(x);
        } else if matches!(opcode, Opcode::Maximum | Opcode::Minimum) {
            return x.hull(other(1)?);
        } else if matches!(opcode, Opcode::Select | Opcode::Clamp) {
            return x.hull(other(2)?)?.hull(if opcode == Opcode::Clamp { other(1)? } else { x });
        } else if matches!(opcode, Opcode::Add | Opcode::Subtract) {
            let y = other(1)?;
            return Magnitude::rounded(x.most + y.most, x.unit.min(y.unit));
        } else if opcode == Opcode::Multiply {
            let y = other(1)?;
            return Magnitude::rounded(x.most * y.most, x.unit + y.unit);
        } else if opcode == Opcode::Divide {
            let by = f64::from(self.number(operands[1])?.abs());
            let least = f64::from(x.unit).exp2() / by;
            // The exponent of the last bit of the smallest quotient, or of a quotient that rounds to a power
            // of two.
            return (by > 0.0 && least.is_finite() && least > 0.0)
                .then(|| Magnitude::rounded(x.most / by, exponent(least) - 24))?;
        }
        None
    }

    /// The value of a constant that is one `f32`.
    fn number(&self, n: NodeId) -> Option<f32> {
        let Op::Constant { instr, .. } = self.nodes[n as usize].op else { return None };
        let literal = self.literal(instr)?;
        let array = literal.as_array()?;
        if array.buffer.len() != 1 || array.buffer.element_type() != ElementType::F32 {
            return None;
        }
        with_buffer!(&*array.buffer, v => v.first().map(|&x| f32::from_bits(x.bits() as u32)))
    }

    /// The divisor of a division by a constant, if the dividend's range allows multiplication instead; and
    /// the largest dividend, if dividends are small nonnegative integers.
    pub fn constant_divisor(
        &self,
        n: NodeId,
        magnitudes: &mut Option<Vec<Option<Magnitude>>>,
    ) -> Option<(f32, Option<u16>)> {
        let node = &self.nodes[n as usize];
        let Op::Elementwise { instr, operands } = &node.op else { return None };
        let divides = self.module.instr(*instr).opcode == Opcode::Divide && node.ty == ElementType::F32;
        let by = self.number(*operands.get(1).filter(|_| divides)?)?;
        of_constant(by).filter(|x| x.most >= f64::from(-MAX_EXPONENT).exp2())?;
        let magnitudes = magnitudes.get_or_insert_with(|| self.magnitudes());
        let known = magnitudes[operands[0] as usize]?;
        Some((by, (known.unit >= 0 && known.most <= MAX_SMALL_INTEGER).then_some(known.most as u16)))
    }
}

fn of_constant(x: f32) -> Option<Magnitude> {
    if x == 0.0 {
        return Magnitude::new(0.0, 0);
    }
    let most = f64::from(x.abs());
    if !most.is_finite() {
        return None;
    }
    let bits = most.to_bits() | 1 << 52;
    let below = (bits & ((1 << 53) - 1)).trailing_zeros() as i32;
    Magnitude::new(most, exponent(most) - 52 + below)
}
