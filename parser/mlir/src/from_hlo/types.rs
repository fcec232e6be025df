//! Shapes to types.

use hlo::{ArrayShape, ElementType, Shape, UNBOUNDED};

use super::cx::{Export, Exporter, Part};
use crate::ir::{DYNAMIC, FloatType, Signedness, Type, TypeId};

impl Exporter<'_> {
    /// `i64`
    pub(super) fn int_type(&mut self, width: u32) -> TypeId {
        self.m.ty(Type::Integer { width, sign: Signedness::Signless })
    }

    /// The type of the elements.
    pub(super) fn element_type(&mut self, element: ElementType) -> Export<TypeId> {
        use ElementType as E;
        let integer = |width, unsigned| Type::Integer {
            width,
            sign: if unsigned { Signedness::Unsigned } else { Signedness::Signless },
        };
        let ty = match element {
            E::Pred => integer(1, false),
            E::S2 => integer(2, false),
            E::S4 => integer(4, false),
            E::S8 => integer(8, false),
            E::S16 => integer(16, false),
            E::S32 => integer(32, false),
            E::S64 => integer(64, false),
            E::U2 => integer(2, true),
            E::U4 => integer(4, true),
            E::U8 => integer(8, true),
            E::U16 => integer(16, true),
            E::U32 => integer(32, true),
            E::U64 => integer(64, true),
            // `i1` is the predicate, and `ui1` is not a type of StableHLO's.
            E::S1 | E::U1 => return self.refuse(&format!("StableHLO has no elements of type {element}")),
            E::F16 => Type::Float(FloatType::F16),
            E::BF16 => Type::Float(FloatType::BF16),
            E::F32 => Type::Float(FloatType::F32),
            E::F64 => Type::Float(FloatType::F64),
            E::F8E5M2 => Type::Float(FloatType::F8E5M2),
            E::F8E4M3 => Type::Float(FloatType::F8E4M3),
            E::F8E4M3FN => Type::Float(FloatType::F8E4M3FN),
            E::F8E4M3B11FNUZ => Type::Float(FloatType::F8E4M3B11FNUZ),
            E::F8E3M4 => Type::Float(FloatType::F8E3M4),
            E::F8E5M2FNUZ => Type::Float(FloatType::F8E5M2FNUZ),
            E::F8E4M3FNUZ => Type::Float(FloatType::F8E4M3FNUZ),
            E::F8E8M0FNU => Type::Float(FloatType::F8E8M0FNU),
            E::F4E2M1FN => Type::Float(FloatType::F4E2M1FN),
            E::F6E3M2FN => Type::Float(FloatType::F6E3M2FN),
            E::F6E2M3FN => Type::Float(FloatType::F6E2M3FN),
            E::C64 | E::C128 => {
                let part = self.element_type(element.real_part())?;
                Type::Complex(part)
            }
        };
        Ok(self.m.ty(ty))
    }

    /// A tensor without dynamic dimensions.
    pub(super) fn tensor(&mut self, element: ElementType, dims: &[i64]) -> Export<TypeId> {
        let element = self.element_type(element)?;
        Ok(self.tensor_of(element, dims))
    }

    /// The same by the type of its elements.
    pub(super) fn tensor_of(&mut self, element: TypeId, dims: &[i64]) -> TypeId {
        self.m.ty(Type::Tensor { dims: dims.into(), element, encoding: None })
    }

    /// The tensor that an array is; bounds of dynamic dimensions are its encoding.
    pub(super) fn array_type(&mut self, array: &ArrayShape) -> Export<TypeId> {
        let element = self.element_type(array.element_type)?;
        if !array.is_dynamic() {
            return Ok(self.tensor_of(element, &array.dims));
        }
        let dynamic = |i: usize| array.is_dynamic_dim(i);
        let dims: Box<[i64]> =
            array.dims.iter().enumerate().map(|(i, &d)| if dynamic(i) { DYNAMIC } else { d }).collect();
        let bounds: Vec<i64> = array
            .dims
            .iter()
            .enumerate()
            .map(|(i, &d)| if dynamic(i) && d != UNBOUNDED { d } else { DYNAMIC })
            .collect();
        let encoding = bounds
            .iter()
            .any(|&b| b != DYNAMIC)
            .then(|| self.record("bounds", &[("bounds", Part::AllInts(&bounds))]));
        Ok(self.m.ty(Type::Tensor { dims, element, encoding }))
    }

    /// `!stablehlo.token`
    pub(super) fn token_type(&mut self) -> TypeId {
        let name = self.m.name("stablehlo.token");
        self.m.ty(Type::Dialect { name, parameters: [].into() })
    }

    /// The type of a value, tuples as such.
    pub(super) fn ty(&mut self, shape: &Shape) -> Export<TypeId> {
        match shape {
            Shape::Array(array) => self.array_type(array),
            Shape::Token => Ok(self.token_type()),
            Shape::Tuple(parts) => {
                let parts: Export<Vec<TypeId>> = parts.iter().map(|p| self.ty(p)).collect();
                let parts = parts?.into();
                Ok(self.m.ty(Type::Tuple(parts)))
            }
            Shape::Opaque => self.refuse("StableHLO has no opaque values"),
            Shape::Buffer(_) => self.refuse("StableHLO has no values that are buffers"),
        }
    }

    /// The types of the leaves of a value.
    pub(super) fn leaf_types(&mut self, shape: &Shape) -> Export<Vec<TypeId>> {
        shape.leaves().into_iter().map(|leaf| self.ty(leaf)).collect()
    }
}
