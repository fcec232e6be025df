//! Constants.

use hlo::literal::Bits;
use hlo::{ArrayLiteral, ConstantValue, ElementType, Instruction, Literal, with_buffer};

use super::cx::{Export, Exporter, Leaves};
use crate::ir::{AttrId, Attribute, TypeId, ValueId, element_bytes};

impl Exporter<'_> {
    pub(super) fn constant(&mut self, i: &Instruction) -> Export<Leaves> {
        let literal = match i.attrs.constant_value() {
            Some(ConstantValue::Given(literal)) => literal.clone(),
            Some(ConstantValue::Elided) => return self.refuse("its value is elided in the text"),
            None => return self.refuse("has no value"),
        };
        let mut leaves = Leaves::new();
        self.constants(&literal, &mut leaves)?;
        Ok(leaves)
    }

    fn constants(&mut self, literal: &Literal, leaves: &mut Leaves) -> Export<()> {
        match literal {
            Literal::Array(array) => leaves.push(self.array_constant(array)?),
            Literal::Tuple(parts) => {
                for part in parts {
                    self.constants(part, leaves)?;
                }
            }
            Literal::Token => leaves.push(self.token()?),
        }
        Ok(())
    }

    /// A token that waits for nothing.
    pub(super) fn token(&mut self) -> Export<ValueId> {
        let ty = self.token_type();
        self.one("stablehlo.create_token", &[], ty, &[])
    }

    pub(super) fn array_constant(&mut self, array: &ArrayLiteral) -> Export<ValueId> {
        let ty = self.tensor(array.buffer.element_type(), &array.dims)?;
        let value = self.elements(array, ty)?;
        self.one("stablehlo.constant", &[], ty, &[("value", value)])
    }

    fn elements(&mut self, array: &ArrayLiteral, ty: TypeId) -> Export<AttrId> {
        let element = array.buffer.element_type();
        let element_ty = self.element_type(element)?;
        let Some(width) = element_bytes(&self.m, element_ty) else {
            return self.refuse("has elements that are no numbers");
        };
        // Signed elements narrower than a byte are sign-extended, others zero-extended.
        let unused = if element.is_signed_integer() { 128 - element.bits() } else { 0 };
        let mut data: Vec<u8> = Vec::with_capacity(array.buffer.len() * width);
        with_buffer!(&*array.buffer, values => for &x in values {
            let bits = ((Bits::bits(x) << unused) as i128 >> unused) as u128;
            data.extend_from_slice(&bits.to_le_bytes()[..width]);
        });
        let splat = match data.split_at_checked(width) {
            Some((first, rest)) => rest.chunks_exact(width).all(|chunk| chunk == first),
            None => false,
        };
        if splat {
            data.truncate(width);
        }
        Ok(self.m.attribute(Attribute::Elements { ty, splat, data: data.into() }))
    }

    /// A scalar, or an array of one number.
    pub(super) fn fill(&mut self, element: ElementType, dims: &[i64], number: f64) -> Export<ValueId> {
        let bits = crate::convert::literal::number_bits(element, number);
        let ty = self.tensor(element, dims)?;
        let scalar = crate::convert::literal::filled(element, &[], bits, 1);
        let value = self.elements(&scalar, ty)?;
        self.one("stablehlo.constant", &[], ty, &[("value", value)])
    }

    /// A list of numbers of type `s32` or `s64`.
    pub(super) fn int_list(&mut self, values: &[i64]) -> Export<ValueId> {
        let buffer = hlo::Buffer::S64(values.to_vec());
        let dims = hlo::Dims::from_slice(&[values.len() as i64]);
        self.array_constant(&ArrayLiteral { dims, buffer: std::sync::Arc::new(buffer) })
    }
}
