//! Random numbers.

use hlo::attrs::{AttrKey, AttrValue, Attrs, RngAlgorithm, RngDistribution};
use hlo::{Opcode, Shape};

use super::cx::{Convert, Converter};
use crate::ir::OpId;

impl Converter<'_> {
    pub(super) fn rng(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let [a, b, ..] = operands[..] else { return self.structure(op, "has not two operands") };
        let distribution = match self.word(op, "rng_distribution") {
            Some("UNIFORM") => RngDistribution::Uniform,
            Some("NORMAL") => RngDistribution::Normal,
            _ => return self.structure(op, "has no `rng_distribution`"),
        };
        let shape = self.result_shape(op)?;
        let attrs = Attrs::new().with(AttrKey::Distribution, AttrValue::RngDistribution(distribution));
        let id = self.emit(Opcode::Rng, shape, &[a, b], attrs);
        self.bind_one(op, id)
    }

    pub(super) fn rng_bit_generator(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 1] = self.exactly(op)?;
        let algorithm = match self.word(op, "rng_algorithm") {
            Some("DEFAULT") => RngAlgorithm::Default,
            Some("THREE_FRY") => RngAlgorithm::ThreeFry,
            Some("PHILOX") => RngAlgorithm::Philox,
            _ => return self.structure(op, "has no `rng_algorithm`"),
        };
        let shape = Shape::tuple(self.result_shapes(op)?);
        let attrs = Attrs::new().with(AttrKey::RngAlgorithm, AttrValue::RngAlgorithm(algorithm));
        let id = self.emit(Opcode::RngBitGenerator, shape, &operands, attrs);
        self.bind_tuple(op, id)
    }
}
