//! Types to shapes.

use hlo::diag::codes;
use hlo::{ArrayShape, ElementType, Shape};

use super::cx::{Convert, Converter};
use crate::ir::{Attribute, DYNAMIC, FloatType, Module, OpId, Signedness, Type, TypeId};
use crate::print::type_text;

/// The element type of HLO that a type of numbers stands for.
pub(crate) fn element_type(m: &Module, ty: TypeId) -> Option<ElementType> {
    use ElementType as E;
    Some(match m.get_type(ty) {
        Type::Index => E::S64,
        Type::Integer { width: 1, sign: Signedness::Signless } => E::Pred,
        Type::Integer { width, sign: Signedness::Unsigned } => match width {
            1 => E::U1,
            2 => E::U2,
            4 => E::U4,
            8 => E::U8,
            16 => E::U16,
            32 => E::U32,
            64 => E::U64,
            _ => return None,
        },
        Type::Integer { width, .. } => match width {
            1 => E::S1,
            2 => E::S2,
            4 => E::S4,
            8 => E::S8,
            16 => E::S16,
            32 => E::S32,
            64 => E::S64,
            _ => return None,
        },
        Type::Float(f) => match f {
            FloatType::F16 => E::F16,
            FloatType::BF16 => E::BF16,
            FloatType::F32 => E::F32,
            FloatType::F64 => E::F64,
            FloatType::F8E5M2 => E::F8E5M2,
            FloatType::F8E4M3 => E::F8E4M3,
            FloatType::F8E4M3FN => E::F8E4M3FN,
            FloatType::F8E5M2FNUZ => E::F8E5M2FNUZ,
            FloatType::F8E4M3FNUZ => E::F8E4M3FNUZ,
            FloatType::F8E4M3B11FNUZ => E::F8E4M3B11FNUZ,
            FloatType::F8E3M4 => E::F8E3M4,
            FloatType::F4E2M1FN => E::F4E2M1FN,
            FloatType::F6E2M3FN => E::F6E2M3FN,
            FloatType::F6E3M2FN => E::F6E3M2FN,
            FloatType::F8E8M0FNU => E::F8E8M0FNU,
            FloatType::TF32 | FloatType::F80 | FloatType::F128 => return None,
        },
        Type::Complex(part) => element_type(m, *part)?.complex_of()?,
        Type::Quantized(q) => match (q.signed, q.storage_bits) {
            (true, 2) => E::S2,
            (true, 4) => E::S4,
            (true, 8) => E::S8,
            (true, 16) => E::S16,
            (true, 32) => E::S32,
            (false, 2) => E::U2,
            (false, 4) => E::U4,
            (false, 8) => E::U8,
            (false, 16) => E::U16,
            (false, 32) => E::U32,
            _ => return None,
        },
        Type::None
        | Type::Vector { .. }
        | Type::Tensor { .. }
        | Type::UnrankedTensor(_)
        | Type::Tuple(_)
        | Type::Function { .. }
        | Type::Dialect { .. }
        | Type::Opaque(_) => return None,
    })
}

/// The bounds in the encoding of a tensor; empty if it has none.
pub(crate) fn bounds(m: &Module, encoding: Option<crate::ir::AttrId>) -> Vec<i64> {
    match encoding.map(|e| m.get_attribute(e)) {
        Some(Attribute::Dialect { name, parameters }) if m.text(*name).ends_with(".bounds") => {
            match parameters.first().map(|p| m.get_attribute(p.value)) {
                Some(Attribute::DenseArray { data, .. }) => {
                    data.as_chunks::<8>().0.iter().map(|&b| i64::from_le_bytes(b)).collect()
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

impl Converter<'_> {
    /// The shape that a type stands for.
    pub(super) fn shape(&self, ty: TypeId, op: OpId) -> Convert<Shape> {
        match self.m.get_type(ty) {
            Type::Tensor { dims, element, encoding } => {
                let stands_for = match self.m.get_type(*element) {
                    Type::Quantized(q) if self.expressing && !self.storing => q.expressed,
                    _ => *element,
                };
                let Some(element) = element_type(self.m, stands_for) else {
                    let message = format!("elements of type {} have no HLO", type_text(self.m, *element));
                    return self.fail(codes::UNSUPPORTED_STABLEHLO, op, message);
                };
                if dims.len() > hlo::shape::MAX_RANK {
                    let message =
                        format!("a tensor of rank {}; the most is {}", dims.len(), hlo::shape::MAX_RANK);
                    return self.fail(codes::UNSUPPORTED_STABLEHLO, op, message);
                }
                let bounds = bounds(self.m, *encoding);
                let mut shape = ArrayShape::new(element, dims);
                for (i, &d) in dims.iter().enumerate() {
                    if d != DYNAMIC {
                        continue;
                    }
                    match bounds.get(i) {
                        Some(&bound) if bound >= 0 => {
                            shape.dims[i] = bound;
                            shape.dynamic |= 1 << i;
                        }
                        _ => {
                            let message = format!(
                                "dimension {i} of {} has no size that is known",
                                type_text(self.m, ty)
                            );
                            return self.fail(codes::UNBOUNDED_SHAPE, op, message);
                        }
                    }
                }
                Ok(Shape::Array(shape))
            }
            Type::Tuple(parts) => {
                let parts: Convert<Vec<Shape>> = parts.iter().map(|&t| self.shape(t, op)).collect();
                Ok(Shape::tuple(parts?))
            }
            Type::Dialect { name, .. } if self.m.text(*name).ends_with(".token") => Ok(Shape::Token),
            Type::Integer { .. } | Type::Float(_) | Type::Index if element_type(self.m, ty).is_some() => {
                Ok(element_type(self.m, ty).map_or(Shape::Token, Shape::scalar))
            }
            _ => {
                let message = format!("values of type {} have no HLO", type_text(self.m, ty));
                self.fail(codes::UNSUPPORTED_STABLEHLO, op, message)
            }
        }
    }

    /// The shapes of an operation's results.
    pub(super) fn result_shapes(&self, op: OpId) -> Convert<Vec<Shape>> {
        self.m.op(op).results.iter().map(|&r| self.shape(self.m.value_type(r), op)).collect()
    }

    /// The shape of the only result.
    pub(super) fn result_shape(&self, op: OpId) -> Convert<Shape> {
        match *self.m.op(op).results {
            [one] => self.shape(self.m.value_type(one), op),
            _ => self.structure(op, "has not one result"),
        }
    }

    /// The quantized element type of a value, if it has one.
    pub(super) fn quantized(&self, value: crate::ir::ValueId) -> Option<&crate::ir::QuantizedType> {
        match self.m.get_type(self.m.value_type(value)) {
            Type::Tensor { element, .. } => match self.m.get_type(*element) {
                Type::Quantized(q) => Some(q),
                _ => None,
            },
            _ => None,
        }
    }
}
