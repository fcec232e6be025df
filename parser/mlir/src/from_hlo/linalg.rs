//! Linear algebra, transforms, normalization, random numbers.

use hlo::Instruction;
use hlo::attrs::{AttrKey, RngAlgorithm, RngDistribution};

use super::cx::{Export, Exporter, Leaves};
use crate::ir::{Attribute, FloatType, Type};

impl Exporter<'_> {
    pub(super) fn cholesky(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let lower = self.bool(i.attrs.bool(AttrKey::Lower));
        self.whole("stablehlo.cholesky", &operands, &[("lower", lower)])
    }

    pub(super) fn triangular_solve(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let flag = |key| i.attrs.bool(key);
        let transpose = i.attrs.transpose().map_or("NO_TRANSPOSE", |t| t.text());
        let transpose = self.word("transpose", transpose);
        let (left, lower) = (self.bool(flag(AttrKey::LeftSide)), self.bool(flag(AttrKey::Lower)));
        let unit = self.bool(flag(AttrKey::UnitDiagonal));
        self.whole(
            "stablehlo.triangular_solve",
            &operands,
            &[("left_side", left), ("lower", lower), ("unit_diagonal", unit), ("transpose_a", transpose)],
        )
    }

    pub(super) fn fft(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let Some(kind) = i.attrs.fft_type() else { return self.refuse("has no kind of transform") };
        let kind = self.word("fft_type", kind.text());
        let length = self.ints(i.attrs.ints_or_empty(AttrKey::FftLength));
        self.whole("stablehlo.fft", &operands, &[("fft_type", kind), ("fft_length", length)])
    }

    pub(super) fn batch_norm(&mut self, i: &Instruction, name: &str) -> Export<Leaves> {
        let operands = self.operands(i);
        let epsilon = i.attrs.float(AttrKey::Epsilon).unwrap_or(0.0);
        let rounded = epsilon as f32;
        if f64::from(rounded).to_bits() != epsilon.to_bits() {
            // StableHLO's is a float of 32 bits, as XLA's own is.
            self.left_out.insert("digits of epsilon beyond f32");
        }
        let ty = self.m.ty(Type::Float(FloatType::F32));
        let epsilon = self.m.attribute(Attribute::Float { bits: rounded.to_bits().into(), ty });
        let feature = self.int(i.attrs.int(AttrKey::FeatureIndex).unwrap_or(0));
        self.whole(name, &operands, &[("epsilon", epsilon), ("feature_index", feature)])
    }

    pub(super) fn rng(&mut self, i: &Instruction) -> Export<Leaves> {
        let mut operands = self.operands(i);
        let Some(array) = i.shape.as_array().filter(|_| operands.len() == 2) else {
            return self.refuse("is not of two operands");
        };
        if array.is_dynamic() {
            return self.refuse("is of run-time sizes");
        }
        let distribution = match i.attrs.get(AttrKey::Distribution) {
            Some(hlo::attrs::AttrValue::RngDistribution(RngDistribution::Normal)) => "NORMAL",
            _ => "UNIFORM",
        };
        let distribution = self.word("rng_distribution", distribution);
        let dims = array.dims.to_vec();
        operands.push(self.int_list(&dims)?);
        self.whole("stablehlo.rng", &operands, &[("rng_distribution", distribution)])
    }

    pub(super) fn rng_bit_generator(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let algorithm = match i.attrs.rng_algorithm() {
            Some(RngAlgorithm::ThreeFry) => "THREE_FRY",
            Some(RngAlgorithm::Philox) => "PHILOX",
            Some(RngAlgorithm::Default) | None => "DEFAULT",
        };
        let algorithm = self.word("rng_algorithm", algorithm);
        if i.shape.as_tuple().is_none_or(|t| t.len() != 2) {
            return self.refuse("gives no tuple of state and bits");
        }
        self.whole("stablehlo.rng_bit_generator", &operands, &[("rng_algorithm", algorithm)])
    }
}
