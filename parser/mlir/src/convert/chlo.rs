//! CHLO: the opcodes of HLO where there are such, else expressions.

use hlo::attrs::{AttrKey, AttrValue, Attrs, CompareType, Direction};
use hlo::{ElementType, InstrId, Opcode, Shape};

use super::cx::{Convert, Converter, list};
use crate::ir::{Attribute, OpId};

impl Converter<'_> {
    /// An operation of CHLO by its name.
    pub(super) fn chlo(&mut self, op: OpId, name: &str) -> Convert<()> {
        use Opcode as O;
        if let Some(binary) = name.strip_prefix("broadcast_") {
            return self.broadcast_operation(op, binary);
        }
        match name {
            "acos" => self.unary(op, O::Acos),
            "acosh" => self.unary(op, O::Acosh),
            "asin" => self.unary(op, O::Asin),
            "asinh" => self.unary(op, O::Asinh),
            "atanh" => self.unary(op, O::Atanh),
            "cosh" => self.unary(op, O::Cosh),
            "sinh" => self.unary(op, O::Sinh),
            "tan" => self.unary(op, O::Tan),
            "erf" => self.unary(op, O::Erf),
            "mulhi" => self.binary(op, O::Mulhi),
            "constant" => self.constant(op),
            "constant_like" => self.constant_like(op),
            "atan" => self.expression(op, Self::atan),
            "erfc" => self.widened(op, Self::erfc),
            "erf_inv" => self.expression(op, Self::erf_inv),
            "lgamma" => self.widened(op, Self::lgamma),
            "digamma" => self.widened(op, Self::digamma),
            "bessel_i1e" => self.widened(op, Self::bessel_i1e),
            "zeta" => self.widened2(op, Self::zeta),
            "polygamma" => self.widened2(op, Self::polygamma),
            "square" => self.expression(op, |c, x| c.mul(x, x)),
            "conj" => self.expression(op, Self::conj),
            "is_inf" => self.expression(op, |c, x| {
                let magnitude = c.op1(O::Abs, x);
                c.cmp_to(Direction::Eq, magnitude, f64::INFINITY)
            }),
            "is_pos_inf" => self.expression(op, |c, x| c.cmp_to(Direction::Eq, x, f64::INFINITY)),
            "is_neg_inf" => self.expression(op, |c, x| c.cmp_to(Direction::Eq, x, f64::NEG_INFINITY)),
            "next_after" => {
                let [x, y] = self.exactly(op)?;
                let id = self.next_after(x, y);
                self.bind_one(op, id)
            }
            "top_k" => self.top_k(op),
            "ragged_dot" => self.ragged_dot(op),
            "scan" => self.scan(op),
            _ => self.unsupported(op, "no operation of CHLO of this name has HLO"),
        }
    }

    /// An expression of one operand.
    fn expression(&mut self, op: OpId, f: impl FnOnce(&mut Self, InstrId) -> InstrId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let id = f(self, x);
        self.bind_one(op, id)
    }

    /// An expression that is computed in `f64` and rounded once to the type of the operand.
    fn widened(&mut self, op: OpId, f: impl FnOnce(&mut Self, InstrId) -> InstrId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let ty = self.type_of(x);
        if !ty.is_float() {
            return self.unsupported(op, format!("of elements of type {ty}"));
        }
        let wide = self.convert_to(x, ElementType::F64);
        let result = f(self, wide);
        let id = self.convert_to(result, ty);
        self.bind_one(op, id)
    }

    fn widened2(&mut self, op: OpId, f: impl FnOnce(&mut Self, InstrId, InstrId) -> InstrId) -> Convert<()> {
        let [x, y] = self.exactly(op)?;
        let ty = self.type_of(x);
        if !ty.is_float() {
            return self.unsupported(op, format!("of elements of type {ty}"));
        }
        let (x, y) = (self.convert_to(x, ElementType::F64), self.convert_to(y, ElementType::F64));
        let result = f(self, x, y);
        let id = self.convert_to(result, ty);
        self.bind_one(op, id)
    }

    fn constant_like(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let Some(value) = self.m.attr(op, "value") else { return self.structure(op, "has no `value`") };
        let scalar = match super::literal::literal(self.m, value) {
            Ok(literal) => self.literal(literal),
            Err(why) => return self.unsupported(op, why),
        };
        let dims = self.dims_of(x);
        let ty = self.type_of(scalar);
        let id = self.broadcast_value(scalar, Shape::array(ty, &dims), &[]);
        self.bind_one(op, id)
    }

    fn atan(&mut self, x: InstrId) -> InstrId {
        if self.type_of(x).is_complex() {
            // atan(z) = -i atanh(i z)
            let (re, im) = (self.real_part(x), self.imag_part(x));
            let minus = self.op1(Opcode::Negate, im);
            let rotated = self.plain(Opcode::Complex, self.shape_of(x), &[minus, re]);
            let r = self.op1(Opcode::Atanh, rotated);
            let (re, im) = (self.real_part(r), self.imag_part(r));
            let minus = self.op1(Opcode::Negate, re);
            return self.plain(Opcode::Complex, self.shape_of(x), &[im, minus]);
        }
        let one = self.like(x, 1.0);
        self.op2(Opcode::Atan2, x, one)
    }

    fn real_part(&mut self, x: InstrId) -> InstrId {
        let (ty, dims) = (self.type_of(x).real_part(), self.dims_of(x));
        self.plain(Opcode::Real, Shape::array(ty, &dims), &[x])
    }

    fn imag_part(&mut self, x: InstrId) -> InstrId {
        let (ty, dims) = (self.type_of(x).real_part(), self.dims_of(x));
        self.plain(Opcode::Imag, Shape::array(ty, &dims), &[x])
    }

    fn conj(&mut self, x: InstrId) -> InstrId {
        if !self.type_of(x).is_complex() {
            return x;
        }
        let (re, im) = (self.real_part(x), self.imag_part(x));
        let minus = self.op1(Opcode::Negate, im);
        self.plain(Opcode::Complex, self.shape_of(x), &[re, minus])
    }

    /// The next number of the type of `x` towards `y`.
    fn next_after(&mut self, x: InstrId, y: InstrId) -> InstrId {
        let ty = self.type_of(x);
        let bits = match ty.bits() {
            64 => ElementType::U64,
            32 => ElementType::U32,
            16 => ElementType::U16,
            _ => ElementType::U8,
        };
        let width = ty.bits();
        let dims = self.dims_of(x);
        let sign = 1u128 << (width - 1);
        let word = |c: &mut Self, n: u128| c.fill_bits(bits, &dims, n);
        let (xb, yb) = (self.bitcast_to(x, bits), self.bitcast_to(y, bits));
        let (sign_mask, magnitude_mask) = (word(self, sign), word(self, sign - 1));
        let x_magnitude = self.op2(Opcode::And, xb, magnitude_mask);
        let y_magnitude = self.op2(Opcode::And, yb, magnitude_mask);
        let x_sign = self.op2(Opcode::And, xb, sign_mask);
        let y_sign = self.op2(Opcode::And, yb, sign_mask);
        let (zero, one) = (word(self, 0), word(self, 1));
        // From zero on, the smallest number with the sign of `y`.
        let x_zero = self.cmp(Direction::Eq, x_magnitude, zero);
        let y_zero = self.cmp(Direction::Eq, y_magnitude, zero);
        let least = self.op2(Opcode::Or, y_sign, one);
        let from_zero = self.choose(y_zero, yb, least);
        let differ = self.cmp(Direction::Ne, x_sign, y_sign);
        let further = self.cmp(Direction::Gt, x_magnitude, y_magnitude);
        let down = self.op2(Opcode::Or, differ, further);
        let minus_one = word(self, (sign << 1) - 1);
        let step = self.choose(down, minus_one, one);
        let moved = self.add(xb, step);
        let result = self.choose(x_zero, from_zero, moved);
        let equal = self.cmp(Direction::Eq, x, y);
        let result = self.choose(equal, yb, result);
        let (x_nan, y_nan) = (self.cmp(Direction::Ne, x, x), self.cmp(Direction::Ne, y, y));
        let any = self.op2(Opcode::Or, x_nan, y_nan);
        let nan = self.fill(ty, &dims, f64::NAN);
        let nan = self.bitcast_to(nan, bits);
        let result = self.choose(any, nan, result);
        self.bitcast_to(result, ty)
    }

    pub(super) fn top_k(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let shapes = self.result_shapes(op)?;
        let (k, largest) = match self.attr(op, "k") {
            Some(_) => (self.int(op, "k")?, self.bool_or(op, "largest", true)?),
            // The custom call says the number by its result, and has the attributes of CHLO's operation in a
            // dictionary.
            None => {
                let last = shapes.first().and_then(Shape::as_array).and_then(|s| s.dims.last().copied());
                let largest = match self.attr(op, "mhlo.attributes") {
                    Some(Attribute::Dictionary(list)) => !list.iter().any(|a| {
                        self.m.text(a.name) == "largest"
                            && matches!(self.m.get_attribute(a.value), Attribute::Bool(false))
                    }),
                    Some(_) | None => true,
                };
                (last.unwrap_or(0), largest)
            }
        };
        self.top_k_of(op, x, k, largest)
    }

    /// The first `k` of each line of the last dimension, and their indices.
    pub(super) fn top_k_of(&mut self, op: OpId, x: InstrId, k: i64, largest: bool) -> Convert<()> {
        let attrs =
            Attrs::new().with(AttrKey::K, AttrValue::Int(k)).with(AttrKey::Largest, AttrValue::Bool(largest));
        let shape = Shape::tuple(self.result_shapes(op)?);
        let id = self.emit(Opcode::Topk, shape, &[x], attrs);
        self.bind_tuple(op, id)
    }

    fn ragged_dot(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 3] = self.exactly(op)?;
        let record = "ragged_dot_dimension_numbers";
        let part = |name| list(&self.part_ints(op, record, name));
        let mut attrs = Attrs::new()
            .with(AttrKey::LhsBatchDims, part("lhs_batching_dimensions"))
            .with(AttrKey::RhsBatchDims, part("rhs_batching_dimensions"))
            .with(AttrKey::LhsContractingDims, part("lhs_contracting_dimensions"))
            .with(AttrKey::RhsContractingDims, part("rhs_contracting_dimensions"))
            .with(AttrKey::LhsRaggedDims, part("lhs_ragged_dimensions"))
            .with(AttrKey::RhsGroupDims, part("rhs_group_dimensions"));
        self.precision(op, &mut attrs)?;
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::RaggedDot, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    fn scan(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let segments = self.ints_or(op, "operandSegmentSizes", Vec::new)?;
        let &[_, carries] = &segments[..] else { return self.structure(op, "has no `operandSegmentSizes`") };
        let mut attrs = Attrs::new()
            .with(AttrKey::Dimensions, list(&[self.int(op, "dimension")?]))
            .with(AttrKey::NumCarries, AttrValue::Int(carries))
            .with(AttrKey::ToApply, AttrValue::Computation(self.region(op, 0)?));
        if self.bool_or(op, "is_reverse", false)? {
            attrs.set(AttrKey::IsReverse, AttrValue::Bool(true));
        }
        let shape = self.packed_shape(op)?;
        let id = self.emit(Opcode::Scan, shape, &operands, attrs);
        self.bind_tuple(op, id)
    }

    // ---- operations that broadcast

    fn broadcast_operation(&mut self, op: OpId, name: &str) -> Convert<()> {
        use Opcode as O;
        let opcode = match name {
            "add" => O::Add,
            "and" => O::And,
            "atan2" => O::Atan2,
            "compare" => O::Compare,
            "complex" => O::Complex,
            "divide" => O::Divide,
            "maximum" => O::Maximum,
            "minimum" => O::Minimum,
            "multiply" => O::Multiply,
            "or" => O::Or,
            "power" => O::Power,
            "remainder" => O::Remainder,
            "select" => O::Select,
            "shift_left" => O::ShiftLeft,
            "shift_right_arithmetic" => O::ShiftRightArithmetic,
            "shift_right_logical" => O::ShiftRightLogical,
            "subtract" => O::Subtract,
            "xor" => O::Xor,
            "next_after" => O::Add,
            _ => return self.unsupported(op, "no operation of CHLO of this name has HLO"),
        };
        let operands = self.operands(op)?;
        let shape = self.result_shape(op)?;
        let Some(result) = shape.as_array() else {
            return self.structure(op, "has a result that is no tensor");
        };
        let dims = result.dims.to_vec();
        let given = self.ints_or(op, "broadcast_dimensions", Vec::new)?;
        let mut wide = Vec::new();
        for &x in &operands {
            let own = self.dims_of(x);
            if own == dims {
                wide.push(x);
                continue;
            }
            let mapping: Vec<i64> = if given.len() == own.len() && !given.is_empty() {
                given.clone()
            } else {
                ((dims.len() - own.len().min(dims.len())) as i64..dims.len() as i64).collect()
            };
            let fits = mapping.len() == own.len()
                && mapping.iter().zip(&own).enumerate().all(|(i, (&to, &size))| {
                    let target = usize::try_from(to).ok().and_then(|to| dims.get(to));
                    !mapping[..i].contains(&to) && target.is_some_and(|&t| size == 1 || size == t)
                });
            if !fits {
                return self.structure(op, "has an operand that does not broadcast to the result");
            }
            let ty = self.type_of(x);
            wide.push(self.broadcast_value(x, Shape::array(ty, &dims), &mapping));
        }
        if name == "next_after" {
            let id = self.next_after(wide[0], wide[1]);
            return self.bind_one(op, id);
        }
        let mut attrs = Attrs::new();
        if opcode == O::Compare {
            let Some(direction) = self.word(op, "comparison_direction").and_then(Direction::from_text) else {
                return self.structure(op, "has no `comparison_direction`");
            };
            attrs.set(AttrKey::Direction, AttrValue::Direction(direction));
            if self.word(op, "compare_type") == Some("TOTALORDER") {
                attrs.set(AttrKey::CompareType, AttrValue::CompareType(CompareType::TotalOrder));
            }
        }
        let id = self.emit(opcode, shape, &wide, attrs);
        self.bind_one(op, id)
    }
}
