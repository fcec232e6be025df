//! Sums of products: dot, convolution, einsum.

use hlo::attrs::{AttrKey, AttrValue, Attrs, ConvDims, DotAlgorithm, Precision};
use hlo::{InstrId, Opcode};

use super::cx::{Convert, Converter, list};
use crate::ir::{Attribute, OpId};
use crate::print::type_text;

impl Converter<'_> {
    /// `precision_config`, unless it is the default.
    pub(super) fn precision(&self, op: OpId, attrs: &mut Attrs) -> Convert<()> {
        let Some(Attribute::Array(parts)) = self.attr(op, "precision_config") else { return Ok(()) };
        let mut precisions = Vec::new();
        for &part in parts {
            let word = self.enum_word(self.m.get_attribute(part)).unwrap_or("DEFAULT");
            match Precision::from_text(&word.to_ascii_lowercase()) {
                Some(precision) => precisions.push(precision),
                None => return self.structure(op, &format!("has an unknown precision {word}")),
            }
        }
        if precisions.iter().any(|&p| p != Precision::Default) {
            attrs.set(AttrKey::OperandPrecision, AttrValue::Precisions(precisions.into()));
        }
        Ok(())
    }

    pub(super) fn dot(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let rank = self.dims_of(operands[0]).len() as i64;
        let mut attrs = Attrs::new()
            .with(AttrKey::LhsContractingDims, list(&[rank - 1]))
            .with(AttrKey::RhsContractingDims, list(&[0]));
        self.precision(op, &mut attrs)?;
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Dot, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn dot_general(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let record = "dot_dimension_numbers";
        if self.attr(op, record).is_none() {
            return self.structure(op, "has no `dot_dimension_numbers`");
        }
        let batch = [
            self.part_ints(op, record, "lhs_batching_dimensions"),
            self.part_ints(op, record, "rhs_batching_dimensions"),
        ];
        let contracting = [
            self.part_ints(op, record, "lhs_contracting_dimensions"),
            self.part_ints(op, record, "rhs_contracting_dimensions"),
        ];
        self.dot_rules(op, operands, &batch, &contracting)?;
        let mut attrs = Attrs::new()
            .with(AttrKey::LhsContractingDims, list(&contracting[0]))
            .with(AttrKey::RhsContractingDims, list(&contracting[1]));
        if !batch[0].is_empty() {
            attrs.set(AttrKey::LhsBatchDims, list(&batch[0]));
            attrs.set(AttrKey::RhsBatchDims, list(&batch[1]));
        }
        self.precision(op, &mut attrs)?;
        if let Some(algorithm) = self.dot_algorithm(op)? {
            attrs.set(AttrKey::DotAlgorithm, AttrValue::DotAlgorithm(algorithm));
        }
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Dot, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    fn dot_rules(
        &self,
        op: OpId,
        operands: [InstrId; 2],
        batch: &[Vec<i64>; 2],
        contracting: &[Vec<i64>; 2],
    ) -> Convert<()> {
        if batch[0].len() != batch[1].len() {
            return self.constraint(op, "C1", "the sides have different numbers of batching dimensions");
        }
        if contracting[0].len() != contracting[1].len() {
            return self.constraint(op, "C2", "the sides have different numbers of contracting dimensions");
        }
        let dims = operands.map(|x| self.dims_of(x));
        for side in 0..2 {
            let all: Vec<i64> = batch[side].iter().chain(&contracting[side]).copied().collect();
            for (i, d) in all.iter().enumerate() {
                if all[..i].contains(d) {
                    return self.constraint(op, ["C3", "C4"][side], format!("dimension {d} is named twice"));
                }
                if !(0..dims[side].len() as i64).contains(d) {
                    let number = match (side, i < batch[side].len()) {
                        (0, true) => "C5",
                        (0, false) => "C6",
                        (_, true) => "C7",
                        (_, false) => "C8",
                    };
                    let message = format!("dimension {d} of an operand of rank {}", dims[side].len());
                    return self.constraint(op, number, message);
                }
            }
        }
        for (number, lists) in [("C9", batch), ("C10", contracting)] {
            for (&a, &b) in lists[0].iter().zip(&lists[1]) {
                let (left, right) = (dims[0][a as usize], dims[1][b as usize]);
                if left != right {
                    let message = format!("dimensions {a} and {b} have different sizes, {left} and {right}");
                    return self.constraint(op, number, message);
                }
            }
        }
        Ok(())
    }

    fn dot_algorithm(&self, op: OpId) -> Convert<Option<DotAlgorithm>> {
        use DotAlgorithm as A;
        if self.attr(op, "algorithm").is_none() {
            return Ok(None);
        }
        let part = |name| self.part(op, "algorithm", name).map(|a| self.m.get_attribute(a));
        let ty = |name| match part(name) {
            Some(Attribute::Type(ty)) => type_text(self.m, *ty),
            _ => String::new(),
        };
        let int = |name| match part(name) {
            Some(Attribute::Integer { value, .. }) => *value,
            _ => 1,
        };
        let types = [ty("lhs_precision_type"), ty("rhs_precision_type"), ty("accumulation_type")];
        let types = types.each_ref().map(String::as_str);
        let parts = [int("lhs_component_count"), int("rhs_component_count"), int("num_primitive_operations")];
        let imprecise = matches!(part("allow_imprecise_accumulation"), Some(Attribute::Bool(true)));
        let f8 = |t: &str| t.starts_with("f8");
        Ok(Some(match (types, parts, imprecise) {
            ([a, b, "f32"], [1, 1, 1], false) if f8(a) && f8(b) => A::AnyF8AnyF8F32,
            ([a, b, "f32"], [1, 1, 1], true) if f8(a) && f8(b) => A::AnyF8AnyF8F32FastAccum,
            (["f16", "f16", "f16"], [1, 1, 1], false) => A::F16F16F16,
            (["f16", "f16", "f32"], [1, 1, 1], false) => A::F16F16F32,
            (["bf16", "bf16", "bf16"], [1, 1, 1], false) => A::Bf16Bf16Bf16,
            (["bf16", "bf16", "f32"], [1, 1, 1], false) => A::Bf16Bf16F32,
            (["bf16", "bf16", "f32"], [_, _, 3], false) => A::Bf16Bf16F32X3,
            (["bf16", "bf16", "f32"], [_, _, 6], false) => A::Bf16Bf16F32X6,
            (["bf16", "bf16", "f32"], [_, _, 9], false) => A::Bf16Bf16F32X9,
            (["tf32", "tf32", "f32"], [1, 1, 1], false) => A::Tf32Tf32F32,
            (["tf32", "tf32", "f32"], [_, _, 3], false) => A::Tf32Tf32F32X3,
            (["f32", "f32", "f32"], [1, 1, 1], false) => A::F32F32F32,
            (["f64", "f64", "f64"], [1, 1, 1], false) => A::F64F64F64,
            _ => return self.unsupported(op, "its algorithm is none of HLO's"),
        }))
    }

    /// A convolution; its padding may come from a constant operand.
    pub(super) fn convolution(&mut self, op: OpId, padding: Option<Vec<i64>>) -> Convert<()> {
        let operands = self.operands(op)?;
        let [lhs, rhs, ..] = operands[..] else { return self.structure(op, "has not two operands") };
        let operands = [lhs, rhs];
        let record = "dimension_numbers";
        if self.attr(op, record).is_none() {
            return self.structure(op, "has no `dimension_numbers`");
        }
        let int = |name| self.part_int(op, record, name);
        let ints = |name| self.part_ints(op, record, name).into();
        let labels = ConvDims {
            input_batch: int("input_batch_dimension"),
            input_feature: int("input_feature_dimension"),
            input_spatial: ints("input_spatial_dimensions"),
            kernel_input_feature: int("kernel_input_feature_dimension"),
            kernel_output_feature: int("kernel_output_feature_dimension"),
            kernel_spatial: ints("kernel_spatial_dimensions"),
            output_batch: int("output_batch_dimension"),
            output_feature: int("output_feature_dimension"),
            output_spatial: ints("output_spatial_dimensions"),
            ..ConvDims::default()
        };
        let kernel = self.dims_of(rhs);
        let mut sizes = Vec::new();
        for &d in &labels.kernel_spatial {
            match usize::try_from(d).ok().and_then(|d| kernel.get(d)) {
                Some(&size) => sizes.push(size),
                None => return self.constraint(op, "C18", format!("dimension {d} is none of the kernel's")),
            }
        }
        let n = sizes.len();
        let padding = match padding {
            Some(padding) => padding,
            None => self.ints_or(op, "padding", || vec![0; 2 * n])?,
        };
        let window = self.window(op, &sizes, &padding, ["window_strides", "lhs_dilation", "rhs_dilation"])?;
        self.positive(op, &window, [("C3", 1), ("C6", 2), ("C8", 3), ("C3", 1)])?;
        let mut attrs = Attrs::new()
            .with(AttrKey::Window, AttrValue::Window(Box::new(window)))
            .with(AttrKey::DimLabels, AttrValue::ConvDims(Box::new(labels)));
        for (name, key, number) in [
            ("feature_group_count", AttrKey::FeatureGroupCount, "C21"),
            ("batch_group_count", AttrKey::BatchGroupCount, "C22"),
        ] {
            let count = self.int_or(op, name, 1)?;
            if count < 1 {
                return self.constraint(op, number, format!("`{name}` is {count}"));
            }
            if count != 1 {
                attrs.set(key, AttrValue::Int(count));
            }
        }
        self.precision(op, &mut attrs)?;
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Convolution, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    /// Einsums of two operands whose labels are letters, each once a side.
    pub(super) fn einsum(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let config = self.string(op, "einsum_config").unwrap_or_default();
        let Some(((a, b), out)) = config.split_once("->").and_then(|(i, o)| Some((i.split_once(',')?, o)))
        else {
            return self.unsupported(op, format!("einsum `{config}`"));
        };
        let [a, b, out]: [Vec<u8>; 3] = [a, b, out].map(|s| s.trim().bytes().collect());
        let letters = [&a, &b, &out]
            .iter()
            .all(|s| s.iter().enumerate().all(|(i, l)| l.is_ascii_alphabetic() && !s[..i].contains(l)));
        let at = |s: &[u8], l: u8| s.iter().position(|&x| x == l).map(|i| i as i64);
        let kept = |s: &[u8], other: &[u8]| s.iter().all(|l| out.contains(l) || other.contains(l));
        if !letters
            || !kept(&a, &b)
            || !kept(&b, &a)
            || a.len() != self.dims_of(operands[0]).len()
            || b.len() != self.dims_of(operands[1]).len()
        {
            return self.unsupported(op, format!("einsum `{config}`"));
        }
        let shared = |wanted: bool| -> Vec<u8> {
            a.iter().copied().filter(|&l| b.contains(&l) && out.contains(&l) == wanted).collect()
        };
        let (batch, contracting) = (shared(true), shared(false));
        let positions = |s: &[u8], ls: &[u8]| -> Vec<i64> { ls.iter().filter_map(|&l| at(s, l)).collect() };
        let attrs = Attrs::new()
            .with(AttrKey::LhsBatchDims, list(&positions(&a, &batch)))
            .with(AttrKey::RhsBatchDims, list(&positions(&b, &batch)))
            .with(AttrKey::LhsContractingDims, list(&positions(&a, &contracting)))
            .with(AttrKey::RhsContractingDims, list(&positions(&b, &contracting)));
        let free = |s: &[u8]| -> Vec<u8> {
            s.iter().copied().filter(|l| !batch.contains(l) && !contracting.contains(l)).collect()
        };
        let order: Vec<u8> = batch.iter().copied().chain(free(&a)).chain(free(&b)).collect();
        let shape = self.result_shape(op)?;
        let Some(result) = shape.as_array().filter(|s| s.rank() == out.len() && order.len() == out.len())
        else {
            return self.structure(op, "has a result of another rank than its labels");
        };
        let dims: Vec<i64> =
            order.iter().filter_map(|&l| at(&out, l)).map(|i| result.dims[i as usize]).collect();
        let plain = hlo::Shape::array(result.element_type, &dims);
        let id = self.emit(Opcode::Dot, plain, &operands, attrs);
        let permutation: Vec<i64> = out.iter().filter_map(|&l| at(&order, l)).collect();
        let attrs = Attrs::new().with(AttrKey::Dimensions, list(&permutation));
        let id = self.emit(Opcode::Transpose, shape, &[id], attrs);
        self.bind_one(op, id)
    }
}
