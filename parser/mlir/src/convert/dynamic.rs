//! Operations whose result's shape is an operand: where that is known they are the ones without it.

use hlo::attrs::SliceDim;
use hlo::diag::codes;
use hlo::{AttrKey, AttrValue, Attrs, ElementType, InstrId, Opcode, Shape, UNBOUNDED};

use super::cx::{Convert, Converter};
use crate::ir::OpId;

/// Sizes as a list, `?` of those that are not known.
pub(super) fn sizes(dims: &[i64]) -> String {
    let size = |&d: &i64| if d == UNBOUNDED { "?".to_owned() } else { d.to_string() };
    format!("[{}]", dims.iter().map(size).collect::<Vec<_>>().join(", "))
}

/// Whether known sizes are those that are declared, or those of dimensions that have no known size.
pub(super) fn refines(known: &[i64], declared: &[i64]) -> bool {
    let one = |(&known, &d): (&i64, &i64)| known == d || d == UNBOUNDED && known >= 0;
    known.len() == declared.len() && known.iter().zip(declared).all(one)
}

impl Converter<'_> {
    /// A shape operand's values.
    fn known_operand(&self, op: OpId, index: usize) -> Option<Vec<i64>> {
        let value = self.operand_values(op).get(index)?;
        self.known.get(value).cloned()
    }

    /// The same, or that it must be known.
    pub(super) fn constant_operand(&self, op: OpId, index: usize) -> Convert<Vec<i64>> {
        match self.known_operand(op, index) {
            Some(values) => Ok(values),
            None => {
                let message = format!("operand {index} says the shape, and is no constant");
                self.fail(codes::UNBOUNDED_SHAPE, op, message)
            }
        }
    }

    /// The shape of the result, whose sizes an operand says: they must fit the declared ones.
    fn said(&self, op: OpId, index: usize, number: &str) -> Convert<Shape> {
        let shape = self.result_shape(op)?;
        let Shape::Array(declared) = &shape else {
            return self.structure(op, "has a result that is no tensor");
        };
        let Some(said) = self.known_operand(op, index) else {
            self.bounded(&shape, op)?;
            return Ok(shape);
        };
        let fits = refines(&said, &declared.dims);
        if !fits && !declared.is_dynamic() || said.len() != declared.dims.len() {
            let message =
                format!("the operand says {said:?}, the type of the result {}", sizes(&declared.dims));
            return self.constraint(op, number, message);
        }
        if super::shapes::unbounded_dimension(&shape).is_none() {
            return Ok(shape);
        }
        Ok(Shape::array(declared.element_type, &said))
    }

    pub(super) fn dynamic(&mut self, op: OpId, name: &str) -> Convert<()> {
        let operands = self.operands(op)?;
        let Some(&x) = operands.first() else { return self.structure(op, "has no operand") };
        match name {
            "dynamic_broadcast_in_dim" => {
                let shape = self.said(op, 1, "C7")?;
                let mapping = self.ints(op, "broadcast_dimensions")?;
                self.broadcast_to(op, x, shape, &mapping)
            }
            "dynamic_reshape" => {
                let shape = self.said(op, 1, "C4")?;
                let bounded = shape.as_array().is_some_and(hlo::ArrayShape::is_dynamic);
                let id = match operands.get(1) {
                    // The sizes at run time are those that the operand says, within the bounds.
                    Some(&sizes) if bounded => {
                        let all: Vec<InstrId> = std::iter::once(x).chain(self.sizes_of(sizes)).collect();
                        self.plain(Opcode::DynamicReshape, shape, &all)
                    }
                    Some(_) | None => self.plain(Opcode::Reshape, shape, &[x]),
                };
                self.bind_one(op, id)
            }
            "dynamic_iota" => {
                let shape = self.said(op, 0, "C2")?;
                self.iota_of(op, shape)
            }
            "dynamic_pad" => {
                let parts: Convert<Vec<Vec<i64>>> = (2..5).map(|i| self.constant_operand(op, i)).collect();
                let parts = parts?;
                let &[x, value, ..] = &operands[..] else {
                    return self.structure(op, "has not five operands");
                };
                self.pad_with(op, [x, value], [&parts[0], &parts[1], &parts[2]])
            }
            "dynamic_gather" => {
                let sizes = self.constant_operand(op, 2)?;
                let &[x, indices, ..] = &operands[..] else {
                    return self.structure(op, "has not three operands");
                };
                self.gather_with(op, [x, indices], &sizes)
            }
            "dynamic_conv" => {
                let padding = self.constant_operand(op, 2)?;
                self.convolution(op, Some(padding))
            }
            "real_dynamic_slice" => self.real_dynamic_slice(op, x),
            _ => self.unsupported(op, "no operation of this name has HLO"),
        }
    }

    /// The elements of a list of sizes, one by one, as HLO takes them.
    fn sizes_of(&mut self, list: InstrId) -> Vec<InstrId> {
        let list = match self.out.instr(list).shape.element_type() {
            Some(ElementType::S32) => list,
            _ => {
                let shape = Shape::array(ElementType::S32, &self.dims_of(list));
                self.plain(Opcode::Convert, shape, &[list])
            }
        };
        let count = self.dims_of(list).first().copied().unwrap_or(0);
        (0..count)
            .map(|i| {
                let part = AttrValue::Slices([SliceDim { start: i, limit: i + 1, stride: 1 }].into());
                let attrs = Attrs::new().with(AttrKey::Slice, part);
                let one = self.emit(Opcode::Slice, Shape::array(ElementType::S32, &[1]), &[list], attrs);
                self.plain(Opcode::Reshape, Shape::array(ElementType::S32, &[]), &[one])
            })
            .collect()
    }

    fn real_dynamic_slice(&mut self, op: OpId, x: InstrId) -> Convert<()> {
        let parts: Vec<Option<Vec<i64>>> = (1..4).map(|i| self.known_operand(op, i)).collect();
        let [start, limit, strides] = &parts[..] else { return self.structure(op, "has not four operands") };
        match (start, limit, strides) {
            (Some(start), Some(limit), Some(strides)) => self.slice_with(op, x, [start, limit, strides]),
            _ => self.fail(codes::UNBOUNDED_SHAPE, op, "its bounds are no constants"),
        }
    }

    /// `tensor.cast`, between types that differ in what they say of sizes.
    pub(super) fn cast(&mut self, op: OpId) -> Convert<()> {
        self.same(op)
    }
}
