//! Random numbers.

use hlo::attrs::{AttrKey, AttrValue, Attrs, RngAlgorithm, RngDistribution};
use hlo::{InstrId, Opcode, Shape};

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
        let [state] = self.exactly(op)?;
        let shapes = self.result_shapes(op)?;
        self.random_bits(op, state, shapes)
    }

    /// Random bits by the algorithm that is an attribute: the next state, and the output.
    pub(super) fn random_bits(&mut self, op: OpId, state: InstrId, shapes: Vec<Shape>) -> Convert<()> {
        let algorithm = match self.word(op, "rng_algorithm") {
            Some("DEFAULT") => RngAlgorithm::Default,
            Some("THREE_FRY") => RngAlgorithm::ThreeFry,
            Some("PHILOX") => RngAlgorithm::Philox,
            _ => return self.structure(op, "has no `rng_algorithm`"),
        };
        let shape = Shape::tuple(shapes);
        let attrs = Attrs::new().with(AttrKey::RngAlgorithm, AttrValue::RngAlgorithm(algorithm));
        let id = self.emit(Opcode::RngBitGenerator, shape, &[state], attrs);
        self.bind_tuple(op, id)
    }
}
