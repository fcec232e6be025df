//! Operations whose result's shape is an operand: where that is known they are the ones without it.

use hlo::diag::codes;
use hlo::{InstrId, Opcode};

use super::cx::{Convert, Converter};
use crate::ir::OpId;

impl Converter<'_> {
    /// A shape operand's values.
    fn known_operand(&self, op: OpId, index: usize) -> Option<Vec<i64>> {
        let value = self.operand_values(op).get(index)?;
        self.known.get(value).cloned()
    }

    /// The same, or that it must be known.
    fn constant_operand(&self, op: OpId, index: usize) -> Convert<Vec<i64>> {
        match self.known_operand(op, index) {
            Some(values) => Ok(values),
            None => {
                let message = format!("operand {index} says the shape, and is no constant");
                self.fail(codes::UNBOUNDED_SHAPE, op, message)
            }
        }
    }

    /// The declared result's sizes, which must be those that an operand says.
    fn agrees(&self, op: OpId, index: usize, number: &str) -> Convert<()> {
        let shape = self.result_shape(op)?;
        let declared = shape.as_array().map(|s| s.dims.to_vec()).unwrap_or_default();
        match self.known_operand(op, index) {
            Some(said) if said != declared => {
                let message = format!("the operand says {said:?}, the type of the result {declared:?}");
                self.constraint(op, number, message)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn dynamic(&mut self, op: OpId, name: &str) -> Convert<()> {
        let operands = self.operands(op)?;
        let Some(&x) = operands.first() else { return self.structure(op, "has no operand") };
        match name {
            "dynamic_broadcast_in_dim" => {
                self.agrees(op, 1, "C7")?;
                let mapping = self.ints(op, "broadcast_dimensions")?;
                self.broadcast_to(op, x, &mapping)
            }
            "dynamic_reshape" => {
                self.agrees(op, 1, "C4")?;
                let shape = self.result_shape(op)?;
                let id = self.plain(Opcode::Reshape, shape, &[x]);
                self.bind_one(op, id)
            }
            "dynamic_iota" => {
                self.agrees(op, 0, "C2")?;
                self.iota(op)
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
