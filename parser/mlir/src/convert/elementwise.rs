//! Constants and elementwise operations.

use hlo::attrs::{AttrKey, AttrValue, Attrs, CompareType, Direction, ResultAccuracy};
use hlo::diag::Diagnostic;
use hlo::diag::codes::parse::ELIDED_CONSTANT;
use hlo::{ConstantValue, ElementType, InstrId, Opcode, Shape};

use super::cx::{Convert, Converter};
use super::literal;
use crate::ir::{AttrId, Attribute, OpId, Type};

impl Converter<'_> {
    pub(super) fn constant(&mut self, op: OpId) -> Convert<()> {
        let Some(value) = self.m.attr(op, "value") else { return self.structure(op, "has no `value`") };
        let id = self.elements(op, value)?;
        let shape = self.result_shape(op)?;
        let fits = shape.as_array().is_some_and(|s| s.dims[..] == self.dims_of(id)[..]);
        if !fits {
            return self.constraint(op, "C1", "the value has another type than the result");
        }
        self.bind_one(op, id)
    }

    /// The constant that an attribute gives; of many equal elements the broadcast of one.
    pub(super) fn elements(&mut self, op: OpId, value: AttrId) -> Convert<InstrId> {
        if let Some((scalar, dims)) = literal::large_splat(self.m, value) {
            let ty = scalar.buffer.element_type();
            let scalar = self.literal(scalar);
            return Ok(self.broadcast_value(scalar, Shape::array(ty, &dims), &[]));
        }
        if let Some(shape) = literal::elided(self.m, value) {
            if self.elided.count() {
                let message = "the text leaves out the value of this constant";
                let d = Diagnostic::warning(ELIDED_CONSTANT, self.m.op(op).span, message);
                self.warnings.push(d.label("made up from the name"));
            }
            let elided = AttrValue::Literal(ConstantValue::Elided);
            let attrs = Attrs::new().with(AttrKey::ConstantValue, elided);
            return Ok(self.emit(Opcode::Constant, Shape::Array(shape), &[], attrs));
        }
        match literal::literal(self.m, value) {
            Ok(literal) => Ok(self.literal(literal)),
            Err(why) => self.unsupported(op, why),
        }
    }

    /// An operation of any number of operands without attributes, whose result has the declared type.
    pub(super) fn unary(&mut self, op: OpId, opcode: Opcode) -> Convert<()> {
        let operands = self.operands(op)?;
        if !opcode.arity().accepts(operands.len()) {
            return self.structure(op, &format!("has {} operands", operands.len()));
        }
        let mut shape = self.result_shape(op)?;
        // What the operand says of dynamic dimensions holds for the result.
        if let (Some(first), Shape::Array(own)) = (operands.first(), &mut shape)
            && let Shape::Array(of_operand) = self.shape_of(*first)
            && opcode.is_elementwise()
            && of_operand.dims == own.dims
        {
            own.dynamic |= of_operand.dynamic;
        }
        let mut attrs = Attrs::new();
        if let Some(accuracy) = self.accuracy(op) {
            attrs.set(AttrKey::ResultAccuracy, AttrValue::ResultAccuracy(accuracy));
        }
        let id = self.emit(opcode, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    /// `#stablehlo.result_accuracy<...>`, unless it is the default.
    fn accuracy(&self, op: OpId) -> Option<ResultAccuracy> {
        self.attr(op, "result_accuracy")?;
        let number =
            |name: &str| match self.part(op, "result_accuracy", name).map(|a| self.m.get_attribute(a)) {
                Some(Attribute::Float { bits, ty }) => match self.m.get_type(*ty) {
                    Type::Float(f) => crate::encode::float_value(*f, *bits).unwrap_or(0.0),
                    _ => 0.0,
                },
                Some(Attribute::Integer { value, .. }) => *value as f64,
                _ => 0.0,
            };
        let mode = self.part(op, "result_accuracy", "mode").map(|a| self.m.get_attribute(a));
        match mode.and_then(|a| self.enum_word(a)) {
            Some("HIGHEST") => Some(ResultAccuracy::Highest),
            Some("TOLERANCE") => Some(ResultAccuracy::Tolerance {
                atol: number("atol"),
                rtol: number("rtol"),
                ulps: self.part_int(op, "result_accuracy", "ulps"),
            }),
            _ => None,
        }
    }

    pub(super) fn binary(&mut self, op: OpId, opcode: Opcode) -> Convert<()> {
        // Predicates add and multiply as truth values.
        let [a, _] = self.exactly(op)?;
        let predicate = self.type_of(a) == ElementType::Pred;
        let opcode = match opcode {
            Opcode::Add | Opcode::Maximum if predicate => Opcode::Or,
            Opcode::Multiply | Opcode::Minimum if predicate => Opcode::And,
            other => other,
        };
        self.unary(op, opcode)
    }

    /// `real` and `imag`, which are of real numbers too.
    pub(super) fn part_of_complex(&mut self, op: OpId, opcode: Opcode) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let ty = self.type_of(x);
        if ty.is_complex() {
            return self.unary(op, opcode);
        }
        if opcode == Opcode::Real {
            return self.bind_one(op, x);
        }
        let dims = self.dims_of(x);
        let zeros = self.fill(ty, &dims, 0.0);
        self.bind_one(op, zeros)
    }

    /// `convert`: of a complex number to a real one its real part, whatever the imaginary one is.
    pub(super) fn convert(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let shape = self.result_shape(op)?;
        let (from, to) = (self.type_of(x), shape.element_type());
        if from.is_complex() && to.is_some_and(|to| !to.is_complex()) {
            let dims = self.dims_of(x);
            let real = self.plain(Opcode::Real, Shape::array(from.real_part(), &dims), &[x]);
            let id = self.plain(Opcode::Convert, shape, &[real]);
            return self.bind_one(op, id);
        }
        self.unary(op, Opcode::Convert)
    }

    /// `bitcast_convert`, in which a predicate is one bit and not, as in HLO, a byte.
    pub(super) fn bitcast_convert(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let shape = self.result_shape(op)?;
        let (from, to) = (self.type_of(x), shape.element_type());
        if from == ElementType::Pred && to != Some(ElementType::Pred) {
            let bits = self.convert_to(x, ElementType::U1);
            let id = self.plain(Opcode::BitcastConvert, shape, &[bits]);
            return self.bind_one(op, id);
        }
        if let Shape::Array(array) = &shape
            && array.element_type == ElementType::Pred
            && from != ElementType::Pred
        {
            let bits = Shape::Array(array.with_type(ElementType::U1));
            let bits = self.plain(Opcode::BitcastConvert, bits, &[x]);
            let id = self.convert_to(bits, ElementType::Pred);
            return self.bind_one(op, id);
        }
        self.unary(op, Opcode::BitcastConvert)
    }

    /// `cbrt`, of complex numbers by a power.
    pub(super) fn cbrt(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        if !self.type_of(x).is_complex() {
            return self.unary(op, Opcode::Cbrt);
        }
        let third = self.like(x, 1.0 / 3.0);
        let id = self.op2(Opcode::Power, x, third);
        self.bind_one(op, id)
    }

    pub(super) fn compare(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let Some(direction) = self.word(op, "comparison_direction").and_then(Direction::from_text) else {
            return self.structure(op, "has no `comparison_direction`");
        };
        let ty = self.type_of(operands[0]);
        let mut attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
        match self.word(op, "compare_type") {
            None | Some("NOTYPE") => {}
            Some(word) => {
                let Some(kind) = CompareType::from_text(word) else {
                    return self.structure(op, &format!("has an unknown `compare_type` {word}"));
                };
                let fits = match kind {
                    CompareType::Float | CompareType::TotalOrder => {
                        ty.is_float() || kind == CompareType::Float && ty.is_complex()
                    }
                    CompareType::Signed => ty.is_signed_integer(),
                    CompareType::Unsigned => ty.is_unsigned_integer() || ty == ElementType::Pred,
                };
                if !fits {
                    return self.constraint(
                        op,
                        "C3",
                        format!("`compare_type` {word} of elements of type {ty}"),
                    );
                }
                if kind == CompareType::TotalOrder {
                    attrs.set(AttrKey::CompareType, AttrValue::CompareType(kind));
                }
            }
        }
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Compare, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn clamp(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 3] = self.exactly(op)?;
        let dims = self.dims_of(operands[1]);
        for (number, bound) in [("C1", operands[0]), ("C2", operands[2])] {
            let own = self.dims_of(bound);
            if !own.is_empty() && own != dims {
                return self.constraint(
                    op,
                    number,
                    "a bound has neither rank 0 nor the shape of the operand",
                );
            }
        }
        let shape = self.result_shape(op)?;
        let id = self.plain(Opcode::Clamp, shape, &operands);
        self.bind_one(op, id)
    }

    pub(super) fn select(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 3] = self.exactly(op)?;
        let (predicate, dims) = (self.dims_of(operands[0]), self.dims_of(operands[1]));
        if !predicate.is_empty() && predicate != dims {
            return self.constraint(
                op,
                "C1",
                "the predicate has neither rank 0 nor the shape of the operands",
            );
        }
        let shape = self.result_shape(op)?;
        let id = self.plain(Opcode::Select, shape, &operands);
        self.bind_one(op, id)
    }

    pub(super) fn reduce_precision(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 1] = self.exactly(op)?;
        let (exponent, mantissa) = (self.int(op, "exponent_bits")?, self.int(op, "mantissa_bits")?);
        if exponent < 1 {
            return self.constraint(op, "C2", format!("{exponent} bits of exponent"));
        }
        if mantissa < 0 {
            return self.constraint(op, "C3", format!("{mantissa} bits of mantissa"));
        }
        let attrs = Attrs::new()
            .with(AttrKey::ExponentBits, AttrValue::Int(exponent))
            .with(AttrKey::MantissaBits, AttrValue::Int(mantissa));
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::ReducePrecision, shape, &operands, attrs);
        self.bind_one(op, id)
    }
}
