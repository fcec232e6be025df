//! Custom calls, which keep the tuples among their operands and results.

use hlo::attrs::{ApiVersion, AttrKey, AttrValue, BackendConfig};
use hlo::{Instruction, Shape};

use super::cx::{Export, Exporter, Leaves, Part};
use crate::ir::{AttrId, Attribute, Type};

impl Exporter<'_> {
    pub(super) fn custom_call(&mut self, i: &Instruction) -> Export<Leaves> {
        let Some(target) = i.attrs.str(AttrKey::CustomCallTarget) else {
            return self.refuse("has no target");
        };
        self.refuse_attribute(
            i,
            &[
                AttrKey::Window,
                AttrKey::DimLabels,
                AttrKey::PaddingType,
                AttrKey::Literal,
                AttrKey::OperandPrecision,
            ],
        )?;
        for key in [AttrKey::FeatureGroupCount, AttrKey::BatchGroupCount] {
            if i.attrs.int(key).is_some_and(|n| n != 1) {
                self.refuse_attribute(i, &[key])?;
            }
        }
        if i.attrs.get(AttrKey::Schedule).is_some() {
            self.left_out.insert("schedule");
        }
        let mut operands = Leaves::new();
        for &o in i.operands() {
            let leaves = self.leaves(o);
            let value = self.packed(&mut leaves.iter().copied(), &self.hlo.instr(o).shape)?;
            operands.push(value);
        }
        let target = self.string(target);
        let mut properties = vec![("call_target_name", target)];
        if i.attrs.bool(AttrKey::CustomCallHasSideEffect) {
            properties.push(("has_side_effect", self.bool(true)));
        }
        let version = match i.attrs.get(AttrKey::ApiVersion) {
            Some(AttrValue::ApiVersion(version)) => *version,
            _ => ApiVersion::Original,
        };
        let version = match version {
            ApiVersion::Unspecified => Some(0),
            ApiVersion::Original => None,
            ApiVersion::StatusReturning => Some(2),
            ApiVersion::StatusReturningUnified => Some(3),
            ApiVersion::TypedFfi => Some(4),
        };
        if let Some(n) = version {
            properties.push(("api_version", self.int_of(n, 32)));
        }
        match i.attrs.backend_config() {
            None => {}
            Some(BackendConfig::Raw(text)) if version == Some(4) => {
                match crate::text::parse_attribute(&mut self.m, text) {
                    Ok(dictionary) => properties.push(("backend_config", dictionary)),
                    Err(_) => return self.refuse("its `backend_config` is no dictionary of MLIR's"),
                }
            }
            Some(config) => properties.push(("backend_config", self.string(config.text()))),
        }
        let mut called = Vec::new();
        if let Some(one) = i.attrs.computation(AttrKey::ToApply) {
            called.push(one);
        }
        called.extend(i.attrs.computations(AttrKey::CalledComputations).unwrap_or_default());
        if !called.is_empty() {
            let mut symbols = Vec::new();
            for computation in called {
                let name = self.function(computation, true)?;
                symbols.push(self.symbol(name));
            }
            properties.push(("called_computations", self.array(symbols)));
        }
        let mut aliases = Vec::new();
        for alias in i.attrs.operand_aliasing().unwrap_or_default() {
            aliases.push(self.record(
                "output_operand_alias",
                &[
                    ("output_tuple_indices", Part::AllInts(&alias.output_index)),
                    ("operand_index", Part::Int(alias.operand)),
                    ("operand_tuple_indices", Part::AllInts(&alias.operand_index)),
                ],
            ));
        }
        if !aliases.is_empty() {
            properties.push(("output_operand_aliases", self.array(aliases)));
        }
        let shapes: Vec<Shape> = match &i.shape {
            Shape::Tuple(parts) if parts.len() != 1 => parts.to_vec(),
            whole => vec![whole.clone()],
        };
        if let Some(AttrValue::Shapes(constraints)) = i.attrs.get(AttrKey::OperandLayoutConstraints) {
            let (operand_layouts, result_layouts) = (self.layouts(constraints), self.layouts(&shapes));
            match (operand_layouts, result_layouts) {
                (Some(of_operands), Some(of_results)) => {
                    properties.extend([("operand_layouts", of_operands), ("result_layouts", of_results)]);
                }
                _ => {
                    self.left_out.insert("layouts of tuples of custom calls");
                }
            }
        }
        let mut types = Vec::new();
        for shape in &shapes {
            types.push(self.ty(shape)?);
        }
        let op = self.op("stablehlo.custom_call", &operands, &types, &properties)?;
        let mut leaves = Leaves::new();
        for (value, shape) in self.results_of(op).into_iter().zip(&shapes) {
            leaves.extend(self.unpacked(value, shape)?);
        }
        self.last = Some(op);
        Ok(leaves)
    }

    /// The order of the dimensions of arrays, minor to major; `None` if one is a tuple.
    fn layouts(&mut self, shapes: &[Shape]) -> Option<AttrId> {
        let mut lists = Vec::new();
        for shape in shapes {
            let order: Vec<i64> = match shape {
                Shape::Array(array) => match &array.layout {
                    Some(layout) => layout.minor_to_major.to_vec(),
                    None => (0..array.rank() as i64).rev().collect(),
                },
                Shape::Token => Vec::new(),
                Shape::Tuple(_) | Shape::Opaque | Shape::Buffer(_) => return None,
            };
            let index = self.m.ty(Type::Index);
            let ty = self.tensor_of(index, &[order.len() as i64]);
            let splat = order.len() == 1;
            let data: Vec<u8> = order.iter().flat_map(|n| n.to_le_bytes()).collect();
            lists.push(self.m.attribute(Attribute::Elements { ty, splat, data: data.into() }));
        }
        Some(self.array(lists))
    }
}
