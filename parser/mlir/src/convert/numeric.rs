//! Small expressions, of which operations without an opcode are made.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction};
use hlo::{ElementType, InstrId, Opcode, Shape};

use super::cx::{Converter, list};
use super::literal;

impl Converter<'_> {
    /// An array that is a number everywhere.
    pub(super) fn fill(&mut self, ty: ElementType, dims: &[i64], x: f64) -> InstrId {
        self.fill_bits(ty, dims, literal::number_bits(ty, x))
    }

    pub(super) fn fill_bits(&mut self, ty: ElementType, dims: &[i64], bits: u128) -> InstrId {
        let scalar = self.literal(literal::filled(ty, &[], bits, 1));
        if dims.is_empty() {
            return scalar;
        }
        let attrs = Attrs::new().with(AttrKey::Dimensions, list(&[]));
        self.emit(Opcode::Broadcast, Shape::array(ty, dims), &[scalar], attrs)
    }

    /// A number of the type and shape of another value.
    pub(super) fn like(&mut self, x: InstrId, number: f64) -> InstrId {
        let (ty, dims) = (self.type_of(x), self.dims_of(x));
        self.fill(ty, &dims, number)
    }

    /// An operation whose result has the type of its first operand.
    pub(super) fn op1(&mut self, opcode: Opcode, a: InstrId) -> InstrId {
        let shape = self.shape_of(a);
        self.plain(opcode, shape, &[a])
    }

    pub(super) fn op2(&mut self, opcode: Opcode, a: InstrId, b: InstrId) -> InstrId {
        let shape = self.shape_of(a);
        self.plain(opcode, shape, &[a, b])
    }

    pub(super) fn add(&mut self, a: InstrId, b: InstrId) -> InstrId {
        self.op2(Opcode::Add, a, b)
    }

    pub(super) fn sub(&mut self, a: InstrId, b: InstrId) -> InstrId {
        self.op2(Opcode::Subtract, a, b)
    }

    pub(super) fn mul(&mut self, a: InstrId, b: InstrId) -> InstrId {
        self.op2(Opcode::Multiply, a, b)
    }

    pub(super) fn div(&mut self, a: InstrId, b: InstrId) -> InstrId {
        self.op2(Opcode::Divide, a, b)
    }

    pub(super) fn choose(&mut self, predicate: InstrId, a: InstrId, b: InstrId) -> InstrId {
        let shape = self.shape_of(a);
        self.plain(Opcode::Select, shape, &[predicate, a, b])
    }

    pub(super) fn cmp(&mut self, direction: Direction, a: InstrId, b: InstrId) -> InstrId {
        let dims = self.dims_of(a);
        let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
        self.emit(Opcode::Compare, Shape::array(ElementType::Pred, &dims), &[a, b], attrs)
    }

    /// A comparison with a number.
    pub(super) fn cmp_to(&mut self, direction: Direction, a: InstrId, number: f64) -> InstrId {
        let b = self.like(a, number);
        self.cmp(direction, a, b)
    }

    pub(super) fn convert_to(&mut self, x: InstrId, ty: ElementType) -> InstrId {
        if self.type_of(x) == ty {
            return x;
        }
        let dims = self.dims_of(x);
        self.plain(Opcode::Convert, Shape::array(ty, &dims), &[x])
    }

    pub(super) fn bitcast_to(&mut self, x: InstrId, ty: ElementType) -> InstrId {
        let dims = self.dims_of(x);
        self.plain(Opcode::BitcastConvert, Shape::array(ty, &dims), &[x])
    }

    /// `c[0] x^n + c[1] x^(n-1) + ...`, by Horner's rule.
    pub(super) fn polynomial(&mut self, x: InstrId, coefficients: &[f64]) -> InstrId {
        let Some((&first, rest)) = coefficients.split_first() else { return self.like(x, 0.0) };
        let mut sum = self.like(x, first);
        for &c in rest {
            sum = self.mul(sum, x);
            let c = self.like(x, c);
            sum = self.add(sum, c);
        }
        sum
    }
}
