//! Elementwise operations.

use hlo::attrs::{AttrKey, CompareType, ResultAccuracy};
use hlo::{ElementType, Instruction};

use super::cx::{Export, Exporter, Leaves, Part};
use crate::ir::{Attribute, FloatType, Type};

/// Operations that take an accuracy.
const WITH_ACCURACY: [&str; 12] = [
    "cbrt",
    "cosine",
    "exponential",
    "exponential_minus_one",
    "log",
    "log_plus_one",
    "logistic",
    "rsqrt",
    "sine",
    "sqrt",
    "tan",
    "tanh",
];

impl Exporter<'_> {
    /// An operation of the same name and operands.
    pub(super) fn elementwise(&mut self, i: &Instruction, name: &str) -> Export<Leaves> {
        let operands = self.operands(i);
        let mut properties = Vec::new();
        if let Some(accuracy) = i.attrs.result_accuracy() {
            if WITH_ACCURACY.contains(&name) {
                properties.push(("result_accuracy", self.accuracy(*accuracy)));
            } else {
                self.left_out.insert("result_accuracy");
            }
        }
        self.whole(&format!("stablehlo.{name}"), &operands, &properties)
    }

    fn accuracy(&mut self, accuracy: ResultAccuracy) -> crate::ir::AttrId {
        let (atol, rtol, ulps, mode) = match accuracy {
            ResultAccuracy::Default => (0.0, 0.0, 0, "DEFAULT"),
            ResultAccuracy::Highest => (0.0, 0.0, 0, "HIGHEST"),
            ResultAccuracy::Tolerance { atol, rtol, ulps } => (atol, rtol, ulps, "TOLERANCE"),
        };
        let [atol, rtol] = [atol, rtol].map(|x| self.f64_attribute(x));
        let mode = self.word("result_accuracy_mode", mode);
        let parts = [
            ("atol", Part::Attribute(atol)),
            ("rtol", Part::Attribute(rtol)),
            ("ulps", Part::Int(ulps)),
            ("mode", Part::Attribute(mode)),
        ];
        self.record("result_accuracy", &parts)
    }

    fn f64_attribute(&mut self, x: f64) -> crate::ir::AttrId {
        let ty = self.m.ty(Type::Float(FloatType::F64));
        self.m.attribute(Attribute::Float { bits: x.to_bits(), ty })
    }

    /// A call that stands for an operation of CHLO.
    pub(super) fn chlo_call(&mut self, i: &Instruction, target: &str) -> Export<Leaves> {
        let operands = self.operands(i);
        self.chlo_call_with(&operands, target, &[])
    }

    /// The same with attributes of the operation.
    pub(super) fn chlo_call_with(
        &mut self,
        operands: &[crate::ir::ValueId],
        target: &str,
        attributes: &[(&str, crate::ir::AttrId)],
    ) -> Export<Leaves> {
        let target = self.string(target);
        let op = self.whole_op("stablehlo.custom_call", operands, &[("call_target_name", target)])?;
        let named = attributes
            .iter()
            .map(|&(name, value)| crate::ir::NamedAttribute { name: self.m.name(name), value })
            .collect();
        let attributes = self.m.attribute(Attribute::Dictionary(named));
        self.discardable(op, "mhlo.attributes", attributes);
        let version = self.int(1);
        self.discardable(op, "mhlo.version", version);
        Ok(self.results_of(op))
    }

    pub(super) fn top_k(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let k = self.int(i.attrs.int(AttrKey::K).unwrap_or(0));
        let largest = self.bool(i.attrs.bool_or(AttrKey::Largest, true));
        self.chlo_call_with(&operands, "mhlo.topk", &[("k", k), ("largest", largest)])
    }

    pub(super) fn compare(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let Some(direction) = i.attrs.direction() else { return self.refuse("has no direction") };
        let direction = self.word("comparison_direction", direction.text());
        let element = self.operand_shape(i, 0).element_type();
        let kind = match i.attrs.compare_type() {
            Some(CompareType::TotalOrder) => CompareType::TotalOrder,
            Some(_) | None => match element {
                Some(e) if e.is_float() || e.is_complex() => CompareType::Float,
                Some(e) if e.is_unsigned_integer() || e == ElementType::Pred => CompareType::Unsigned,
                Some(_) | None => CompareType::Signed,
            },
        };
        let kind = self.word("comparison_type", kind.text());
        self.whole(
            "stablehlo.compare",
            &operands,
            &[("comparison_direction", direction), ("compare_type", kind)],
        )
    }

    pub(super) fn convert(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let (from, to) = (self.operand_shape(i, 0).element_type(), i.shape.element_type());
        // A predicate as one bit: only `bitcast-convert` asks for it, and StableHLO's has predicates of one
        // bit.
        let bit = |e: Option<ElementType>| matches!(e, Some(ElementType::Pred | ElementType::U1));
        if bit(from) && bit(to) {
            return Ok(operands);
        }
        self.whole("stablehlo.convert", &operands, &[])
    }

    /// `bitcast-convert`, in which a predicate is a byte, and in StableHLO a bit.
    pub(super) fn bitcast_convert(&mut self, i: &Instruction) -> Export<Leaves> {
        let x = self.operand(i, 0)?;
        let (Some(from), Some(to)) = (self.operand_shape(i, 0).as_array(), i.shape.as_array()) else {
            return self.refuse("is not of an array");
        };
        let (a, b) = (from.element_type, to.element_type);
        if a == b {
            return Ok([x].into());
        }
        let mut x = x;
        if a == ElementType::Pred {
            let bytes = self.array_type(&from.with_type(ElementType::U8))?;
            x = self.one("stablehlo.convert", &[x], bytes, &[])?;
            if b == ElementType::U8 {
                return Ok([x].into());
            }
        }
        if b == ElementType::Pred {
            // Its lowest bit counts.
            let bytes = self.array_type(&to.with_type(ElementType::U8))?;
            if a != ElementType::U8 {
                x = self.one("stablehlo.bitcast_convert", &[x], bytes, &[])?;
            }
            if to.is_dynamic() {
                return self.refuse("to predicates of run-time sizes");
            }
            let one = self.fill(ElementType::U8, &to.dims, 1.0)?;
            x = self.one("stablehlo.and", &[x, one], bytes, &[])?;
            return self.whole("stablehlo.convert", &[x], &[]);
        }
        if b == ElementType::U1 {
            let bits = self.array_type(&to.with_type(ElementType::Pred))?;
            return Ok([self.one("stablehlo.bitcast_convert", &[x], bits, &[])?].into());
        }
        self.whole("stablehlo.bitcast_convert", &[x], &[])
    }

    pub(super) fn reduce_precision(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let exponent = self.int_of(i.attrs.int(AttrKey::ExponentBits).unwrap_or(0), 32);
        let mantissa = self.int_of(i.attrs.int(AttrKey::MantissaBits).unwrap_or(0), 32);
        self.whole(
            "stablehlo.reduce_precision",
            &operands,
            &[("exponent_bits", exponent), ("mantissa_bits", mantissa)],
        )
    }
}
