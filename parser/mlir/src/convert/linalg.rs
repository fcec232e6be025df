//! Linear algebra, transforms, normalization.

use hlo::attrs::{AttrKey, AttrValue, Attrs, FftType, Transpose};
use hlo::{Opcode, Shape};

use super::cx::{Convert, Converter, list};
use crate::ir::OpId;

impl Converter<'_> {
    pub(super) fn cholesky(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 1] = self.exactly(op)?;
        let dims = self.dims_of(operands[0]);
        match dims[..] {
            [.., a, b] if a == b => {}
            [.., a, b] => return self.constraint(op, "C3", format!("matrices of {a} x {b}")),
            [..] => return self.constraint(op, "C2", format!("an operand of rank {}", dims.len())),
        }
        let lower = self.bool_or(op, "lower", false)?;
        let shape = self.result_shape(op)?;
        let attrs = Attrs::new().with(AttrKey::Lower, AttrValue::Bool(lower));
        let id = self.emit(Opcode::Cholesky, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn triangular_solve(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let transpose = match self.word(op, "transpose_a") {
            None | Some("TRANSPOSE_INVALID") => {
                return self.structure(op, "has no `transpose_a`");
            }
            Some(word) => match Transpose::from_text(word) {
                Some(transpose) => transpose,
                None => return self.structure(op, &format!("has an unknown `transpose_a` {word}")),
            },
        };
        let attrs = Attrs::new()
            .with(AttrKey::LeftSide, AttrValue::Bool(self.bool_or(op, "left_side", false)?))
            .with(AttrKey::Lower, AttrValue::Bool(self.bool_or(op, "lower", false)?))
            .with(AttrKey::UnitDiagonal, AttrValue::Bool(self.bool_or(op, "unit_diagonal", false)?))
            .with(AttrKey::TransposeA, AttrValue::Transpose(transpose));
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::TriangularSolve, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn fft(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 1] = self.exactly(op)?;
        let length = self.ints(op, "fft_length")?;
        let Some(kind) = self.word(op, "fft_type").and_then(FftType::from_text) else {
            return self.structure(op, "has no `fft_type`");
        };
        if !(1..=3).contains(&length.len()) {
            return self.constraint(op, "C3", format!("a transform of {} dimensions", length.len()));
        }
        if self.dims_of(operands[0]).len() < length.len() {
            return self.constraint(
                op,
                "C1",
                format!("a transform of {} dimensions of an operand of lower rank", length.len()),
            );
        }
        let attrs = Attrs::new()
            .with(AttrKey::FftType, AttrValue::FftType(kind))
            .with(AttrKey::FftLength, list(&length));
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Fft, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn batch_norm(&mut self, op: OpId, opcode: Opcode) -> Convert<()> {
        let operands = self.operands(op)?;
        if !opcode.arity().accepts(operands.len()) {
            return self.structure(op, &format!("has {} operands", operands.len()));
        }
        let Some(epsilon) = self.float(op, "epsilon") else { return self.structure(op, "has no `epsilon`") };
        let feature = self.int(op, "feature_index")?;
        let rank = self.dims_of(operands[0]).len() as i64;
        if !(0..rank).contains(&feature) {
            return self.constraint(op, "C1", format!("feature dimension {feature} of rank {rank}"));
        }
        let attrs = Attrs::new()
            .with(AttrKey::Epsilon, AttrValue::Float(epsilon))
            .with(AttrKey::FeatureIndex, AttrValue::Int(feature));
        let shapes = self.result_shapes(op)?;
        let shape = if shapes.len() == 1 { shapes[0].clone() } else { Shape::tuple(shapes) };
        let id = self.emit(opcode, shape, &operands, attrs);
        self.bind_tuple(op, id)
    }
}
