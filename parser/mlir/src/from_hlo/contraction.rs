//! Sums of products: dot, convolution.

use hlo::Instruction;
use hlo::attrs::{AttrKey, DotAlgorithm, Precision, WindowDim};

use super::cx::PartOfWindow;
use super::cx::{Export, Exporter, Leaves, Part};
use crate::ir::{AttrId, Attribute, FloatType, NamedAttribute, Type};

impl Exporter<'_> {
    fn precision(&mut self, i: &Instruction) -> Export<Option<AttrId>> {
        let Some(precisions) = i.attrs.precisions() else { return Ok(None) };
        let mut words = Vec::new();
        for p in precisions {
            if *p == Precision::PackedNibble {
                return self.refuse("StableHLO has no precision `packed_nibble`");
            }
            words.push(self.word("precision", &p.text().to_ascii_uppercase()));
        }
        Ok(Some(self.array(words)))
    }

    /// Dimensions of a dot, each list left out if it is empty.
    fn sides<'a>(i: &'a Instruction) -> [(&'static str, Part<'a>); 4] {
        let part = |key| Part::Ints(i.attrs.ints_or_empty(key));
        [
            ("lhs_batching_dimensions", part(AttrKey::LhsBatchDims)),
            ("rhs_batching_dimensions", part(AttrKey::RhsBatchDims)),
            ("lhs_contracting_dimensions", part(AttrKey::LhsContractingDims)),
            ("rhs_contracting_dimensions", part(AttrKey::RhsContractingDims)),
        ]
    }

    pub(super) fn dot(&mut self, i: &Instruction) -> Export<Leaves> {
        if i.operands().len() != 2 {
            return self.refuse("StableHLO has no dot of sparse operands");
        }
        let operands = self.operands(i);
        let numbers = self.record("dot", &Self::sides(i));
        let mut properties = vec![("dot_dimension_numbers", numbers)];
        if let Some(precision) = self.precision(i)? {
            properties.push(("precision_config", precision));
        }
        if let Some(algorithm) = i.attrs.dot_algorithm()
            && let Some(algorithm) = self.algorithm(*algorithm)?
        {
            properties.push(("algorithm", algorithm));
        }
        self.whole("stablehlo.dot_general", &operands, &properties)
    }

    fn algorithm(&mut self, algorithm: DotAlgorithm) -> Export<Option<AttrId>> {
        use DotAlgorithm as A;
        use FloatType as F;
        let (operand, sum, parts, operations, fast) = match algorithm {
            A::Unset => return Ok(None),
            // Any of the types of 8 bits is meant.
            A::AnyF8AnyF8F32 => (F::F8E5M2, F::F32, 1, 1, false),
            A::AnyF8AnyF8F32FastAccum => (F::F8E5M2, F::F32, 1, 1, true),
            A::AnyF8AnyF8Any | A::AnyF8AnyF8AnyFastAccum => {
                return self.refuse(&format!("StableHLO has no algorithm `{}`", algorithm.text()));
            }
            A::F16F16F16 => (F::F16, F::F16, 1, 1, false),
            A::F16F16F32 => (F::F16, F::F32, 1, 1, false),
            A::Bf16Bf16Bf16 => (F::BF16, F::BF16, 1, 1, false),
            A::Bf16Bf16F32 => (F::BF16, F::F32, 1, 1, false),
            A::Bf16Bf16F32X3 => (F::BF16, F::F32, 1, 3, false),
            A::Bf16Bf16F32X6 => (F::BF16, F::F32, 1, 6, false),
            A::Bf16Bf16F32X9 => (F::BF16, F::F32, 1, 9, false),
            A::Tf32Tf32F32 => (F::TF32, F::F32, 1, 1, false),
            A::Tf32Tf32F32X3 => (F::TF32, F::F32, 1, 3, false),
            A::F32F32F32 => (F::F32, F::F32, 1, 1, false),
            A::F64F64F64 => (F::F64, F::F64, 1, 1, false),
        };
        let [operand, sum] = [operand, sum].map(|f| {
            let ty = self.m.ty(Type::Float(f));
            self.m.attribute(Attribute::Type(ty))
        });
        let fast = self.bool(fast);
        let parts = [
            ("lhs_precision_type", Part::Attribute(operand)),
            ("rhs_precision_type", Part::Attribute(operand)),
            ("accumulation_type", Part::Attribute(sum)),
            ("lhs_component_count", Part::Int(parts)),
            ("rhs_component_count", Part::Int(parts)),
            ("num_primitive_operations", Part::Int(operations)),
            ("allow_imprecise_accumulation", Part::Attribute(fast)),
        ];
        Ok(Some(self.record("dot_algorithm", &parts)))
    }

    pub(super) fn ragged_dot(&mut self, i: &Instruction) -> Export<Leaves> {
        if i.attrs.dot_algorithm().is_some_and(|a| *a != DotAlgorithm::Unset) {
            return self.refuse("CHLO's ragged dot has no algorithm");
        }
        let operands = self.operands(i);
        let mut parts = Self::sides(i).to_vec();
        parts.push(("lhs_ragged_dimensions", Part::Ints(i.attrs.ints_or_empty(AttrKey::LhsRaggedDims))));
        parts.push(("rhs_group_dimensions", Part::Ints(i.attrs.ints_or_empty(AttrKey::RhsGroupDims))));
        let mut parameters = Vec::new();
        for (name, part) in parts {
            if let Part::Ints(list @ [_, ..]) = part {
                parameters.push(NamedAttribute { name: self.m.name(name), value: self.ints(list) });
            }
        }
        let name = self.m.name("chlo.ragged_dot");
        let numbers = self.m.attribute(Attribute::Dialect { name, parameters: parameters.into() });
        let mut properties = vec![("ragged_dot_dimension_numbers", numbers)];
        if let Some(precision) = self.precision(i)? {
            properties.push(("precision_config", precision));
        }
        self.whole("chlo.ragged_dot", &operands, &properties)
    }

    pub(super) fn convolution(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let Some(labels) = i.attrs.conv_dims() else { return self.refuse("has no dimension labels") };
        if operands.len() != 2 || i.attrs.sparsity().is_some() {
            return self.refuse("StableHLO has no convolution of sparse operands");
        }
        if labels.unknown.iter().any(|u| !u.is_empty()) {
            return self.refuse("has dimensions without a label, `?`");
        }
        let numbers = self.record(
            "conv",
            &[
                ("input_batch_dimension", Part::Int(labels.input_batch)),
                ("input_feature_dimension", Part::Int(labels.input_feature)),
                ("input_spatial_dimensions", Part::Ints(&labels.input_spatial)),
                ("kernel_input_feature_dimension", Part::Int(labels.kernel_input_feature)),
                ("kernel_output_feature_dimension", Part::Int(labels.kernel_output_feature)),
                ("kernel_spatial_dimensions", Part::Ints(&labels.kernel_spatial)),
                ("output_batch_dimension", Part::Int(labels.output_batch)),
                ("output_feature_dimension", Part::Int(labels.output_feature)),
                ("output_spatial_dimensions", Part::Ints(&labels.output_spatial)),
            ],
        );
        let dims: Vec<WindowDim> = i.attrs.window().map(|w| w.dims.to_vec()).unwrap_or_default();
        let feature_groups = self.int(i.attrs.int(AttrKey::FeatureGroupCount).unwrap_or(1));
        let batch_groups = self.int(i.attrs.int(AttrKey::BatchGroupCount).unwrap_or(1));
        let mut properties = vec![
            ("dimension_numbers", numbers),
            ("feature_group_count", feature_groups),
            ("batch_group_count", batch_groups),
        ];
        if !dims.is_empty() {
            let pairs: Vec<Vec<i64>> = dims.iter().map(|d| vec![d.pad_low, d.pad_high]).collect();
            let lists: [(&str, PartOfWindow); 3] = [
                ("window_strides", |d| d.stride),
                ("lhs_dilation", |d| d.base_dilation),
                ("rhs_dilation", |d| d.window_dilation),
            ];
            for (name, of) in lists {
                let list: Vec<i64> = dims.iter().map(of).collect();
                properties.push((name, self.ints(&list)));
            }
            properties.push(("padding", self.rows(&pairs, 2)));
            let reversal: Vec<bool> = dims.iter().map(|d| d.reversal).collect();
            properties.push(("window_reversal", self.bools(&reversal)));
        }
        if let Some(precision) = self.precision(i)? {
            properties.push(("precision_config", precision));
        }
        if i.attrs.dot_algorithm().is_some_and(|a| *a != DotAlgorithm::Unset) {
            return self.refuse("StableHLO's convolution has no algorithm");
        }
        self.whole("stablehlo.convolution", &operands, &properties)
    }
}
