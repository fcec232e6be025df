//! Custom calls.

use hlo::attrs::{ApiVersion, AttrKey, AttrValue, Attrs, BackendConfig, Ints, OperandAlias, SliceDim};
use hlo::diag::codes;
use hlo::{ComputationId, InstrId, Layout, Opcode, Shape};

use super::cx::{Convert, Converter, list};
use super::dynamic::refines;
use crate::ir::{AttrId, Attribute, OpId};

/// Calls that stand for operations of CHLO, and what these are called there.
const OPERATIONS: [(&str, &str); 14] = [
    ("mhlo.acos", "acos"),
    ("mhlo.acosh", "acosh"),
    ("mhlo.asin", "asin"),
    ("mhlo.asinh", "asinh"),
    ("mhlo.atan", "atan"),
    ("mhlo.atanh", "atanh"),
    ("mhlo.cosh", "cosh"),
    ("mhlo.sinh", "sinh"),
    ("mhlo.erf", "erf"),
    ("mhlo.tan", "tan"),
    ("mhlo.topk", "top_k"),
    ("mhlo.mulhi", "mulhi"),
    ("mhlo.ragged_dot", "ragged_dot"),
    ("chlo.erf", "erf"),
];

/// The custom call by which JAX asks for the sharding of a value. Its `backend_config` is the address of a
/// function and that of its data; in HLO it has their bytes in hexadecimal digits.
pub const INSPECT_SHARDING: &str = "InspectSharding";

fn digits(bytes: &[u8]) -> Box<str> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

impl Converter<'_> {
    pub(super) fn custom_call(&mut self, op: OpId) -> Convert<()> {
        let Some(target) = self.string(op, "call_target_name") else {
            return self.structure(op, "has no `call_target_name`");
        };
        if let Some((_, name)) = OPERATIONS.iter().find(|(t, _)| *t == target) {
            return self.chlo(op, name);
        }
        if target == "shape_assertion" {
            return self.shape_assertion(op);
        }
        if target == "ApproxTopK" {
            let operands = self.operands(op)?;
            return self.approx_top_k_of(op, &operands[..operands.len() / 2], None);
        }
        if let Some(name) = target.strip_prefix("stablehlo.dynamic_") {
            let name = name.to_owned();
            return self.dynamic_call(op, &name);
        }
        let (operands, mut shapes) = self.arguments_and_results(op)?;
        let mut attrs = Attrs::new().with(AttrKey::CustomCallTarget, AttrValue::Str(target.into()));
        if self.bool_or(op, "has_side_effect", false)? {
            attrs.set(AttrKey::CustomCallHasSideEffect, AttrValue::Bool(true));
        }
        let version = match self.int_or(op, "api_version", 1)? {
            0 | 1 => None,
            2 => Some(ApiVersion::StatusReturning),
            3 => Some(ApiVersion::StatusReturningUnified),
            4 => Some(ApiVersion::TypedFfi),
            n => return self.structure(op, &format!("has an unknown `api_version` {n}")),
        };
        if let Some(version) = version {
            attrs.set(AttrKey::ApiVersion, AttrValue::ApiVersion(version));
        }
        // Later names win: `mhlo.backend_config` is how dictionaries travelled before.
        for key in ["backend_config", "mhlo.backend_config"] {
            let config = match self.attr(op, key) {
                None => continue,
                Some(Attribute::String { text, .. }) if text.is_empty() => continue,
                // Addresses, which no text holds.
                Some(Attribute::String { text, .. }) if target == INSPECT_SHARDING => {
                    BackendConfig::Str(digits(text.as_bytes()))
                }
                Some(Attribute::Bytes(bytes)) if target == INSPECT_SHARDING => {
                    BackendConfig::Str(digits(bytes))
                }
                Some(Attribute::String { text, .. }) => BackendConfig::Str(text.clone()),
                Some(Attribute::Dictionary(_)) => match self.m.attr(op, key) {
                    Some(a) => {
                        // A dictionary that travels so makes the call one of the typed interface: JAX says no
                        // version.
                        if key == "mhlo.backend_config" && version.is_none() {
                            let typed = AttrValue::ApiVersion(ApiVersion::TypedFfi);
                            attrs.set(AttrKey::ApiVersion, typed);
                        }
                        BackendConfig::Raw(self.dictionary_text(a).into())
                    }
                    None => continue,
                },
                Some(_) => {
                    return self.unsupported(op, format!("`{key}` is neither a string nor a dictionary"));
                }
            };
            attrs.set(AttrKey::BackendConfig, AttrValue::BackendConfig(Box::new(config)));
        }
        let computations = self.called_computations(op);
        if !computations.is_empty() {
            attrs.set(AttrKey::CalledComputations, AttrValue::Computations(computations.into()));
        }
        let aliases = self.output_aliases(op);
        if !aliases.is_empty() {
            attrs.set(AttrKey::OutputToOperandAliasing, AttrValue::OperandAliasing(aliases.into()));
        }
        if let (Some(of_operands), Some(of_results)) =
            (self.layouts(op, "operand_layouts"), self.layouts(op, "result_layouts"))
        {
            if of_operands.len() != operands.len() || of_results.len() != shapes.len() {
                return self.constraint(op, "C2", "layouts are not as many as operands and results");
            }
            let mut constraints = Vec::new();
            for (&operand, order) in operands.iter().zip(&of_operands) {
                constraints.push(with_layout(self.shape_of(operand), order));
            }
            attrs.set(AttrKey::OperandLayoutConstraints, AttrValue::Shapes(constraints.into()));
            shapes = shapes.into_iter().zip(&of_results).map(|(s, order)| with_layout(s, order)).collect();
        }
        let count = shapes.len();
        let shape = match &shapes[..] {
            [one] => one.clone(),
            _ => Shape::tuple(shapes),
        };
        let id = self.emit(Opcode::CustomCall, shape, &operands, attrs);
        let list = &self.m.op(op).attributes;
        self.carried(op, list, id)?;
        self.bind_first(op, id, count);
        Ok(())
    }

    /// The computations of the functions that a call names.
    pub(super) fn called_computations(&self, op: OpId) -> Vec<ComputationId> {
        let Some(Attribute::Array(parts)) = self.attr(op, "called_computations") else { return Vec::new() };
        let function = |&part: &AttrId| match self.m.get_attribute(part) {
            Attribute::Symbol { root, .. } => self.functions.get(self.m.text(*root)),
            _ => None,
        };
        parts.iter().filter_map(function).filter_map(|f| self.called.get(f).copied()).collect()
    }

    /// `ApproxTopK(inputs..., initial values...)`, which may miss some of the first `top_k` rows of a line:
    /// the first ones, all of them, stably sorted. `k`: how many, where no configuration says it.
    pub(super) fn approx_top_k_of(&mut self, op: OpId, inputs: &[InstrId], k: Option<i64>) -> Convert<()> {
        let (k, called) = (k.or_else(|| self.configured(op, "top_k")), self.called_computations(op));
        let (Some(k), Some(d), &[comparator], Some(&first)) =
            (k, self.configured(op, "reduction_dim"), &called[..], inputs.first())
        else {
            return self.unsupported(op, "without `top_k`, `reduction_dim` and one comparator");
        };
        let mut dims = self.dims_of(first);
        let wide: Vec<Shape> = inputs.iter().map(|&x| self.shape_of(x)).collect();
        let Some(size) = usize::try_from(d).ok().and_then(|d| dims.get_mut(d)) else {
            return self.structure(op, "has a `reduction_dim` that its inputs do not have");
        };
        *size = k.min(*size).max(0);
        let results = self.result_shapes(op)?;
        let fits = |s: &Shape| s.as_array().is_some_and(|s| refines(&dims, &s.dims));
        if results.len() != inputs.len() || !results.iter().all(fits) {
            return self.unsupported(op, "with other results than the first `top_k` elements");
        }
        let attrs = Attrs::new()
            .with(AttrKey::Dimensions, list(&[d]))
            .with(AttrKey::IsStable, AttrValue::Bool(true))
            .with(AttrKey::ToApply, AttrValue::Computation(comparator));
        let shape = if wide.len() == 1 { wide[0].clone() } else { Shape::tuple(wide) };
        let sorted = self.emit(Opcode::Sort, shape, inputs, attrs);
        let slices: Vec<SliceDim> =
            dims.iter().map(|&limit| SliceDim { start: 0, limit, stride: 1 }).collect();
        for (i, shape) in results.into_iter().enumerate() {
            let all = if inputs.len() == 1 { sorted } else { self.get(sorted, i) };
            let attrs = Attrs::new().with(AttrKey::Slice, AttrValue::Slices(slices.clone().into()));
            let part = self.emit(Opcode::Slice, shape, &[all], attrs);
            self.bind(op, i, part);
        }
        Ok(())
    }

    /// What JAX says of shapes that it does not know: once they are known, it holds or it does not.
    fn shape_assertion(&mut self, op: OpId) -> Convert<()> {
        let Some(holds) = self.operand_values(op).first().and_then(|v| self.known.get(v)) else {
            return self.fail(
                codes::UNBOUNDED_SHAPE,
                op,
                "what is asserted of shapes does not follow from them",
            );
        };
        if holds.first() == Some(&0) {
            let message =
                self.string(op, "error_message").unwrap_or("what is asserted of shapes does not hold");
            return self.fail(codes::STABLEHLO_CONSTRAINT, op, message);
        }
        Ok(())
    }

    /// `interpreter.run_parallel`: a call of its own, which a runner of tests implements. It calls the
    /// programs of the grid in row-major order, and after them what feeds it.
    pub(super) fn run_parallel(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let rows = match self.attr(op, "programs") {
            Some(Attribute::Array(rows)) => rows.len(),
            _ => return self.structure(op, "has no `programs`"),
        };
        let (programs, feeds) = (self.symbols(op, "programs"), self.symbols(op, "infeed"));
        let columns = programs.len().checked_div(rows).unwrap_or(0);
        let called: Option<Vec<hlo::ComputationId>> = programs
            .iter()
            .chain(&feeds)
            .map(|name| self.called.get(self.functions.get(name)?).copied())
            .collect();
        let Some(called) = called else { return self.structure(op, "names a function that is not there") };
        let config = format!("{rows} {columns}");
        // The collectives of the functions are verified for that many devices.
        self.out.header.replica_count = Some(rows as i64).filter(|&n| n > 1);
        self.out.header.num_partitions = Some(columns as i64).filter(|&n| n > 1);
        let attrs = Attrs::new()
            .with(AttrKey::CustomCallTarget, AttrValue::Str(crate::convert::RUN_PARALLEL.into()))
            .with(AttrKey::CustomCallHasSideEffect, AttrValue::Bool(true))
            .with(AttrKey::CalledComputations, AttrValue::Computations(called.into()))
            .with(
                AttrKey::BackendConfig,
                AttrValue::BackendConfig(Box::new(BackendConfig::Str(config.into()))),
            );
        let shape = Shape::tuple(self.result_shapes(op)?);
        let id = self.emit(Opcode::CustomCall, shape, &operands, attrs);
        for i in 0..self.m.op(op).results.len() {
            let part = self.get(id, i);
            self.bind(op, i, part);
        }
        Ok(())
    }

    /// A dictionary in HLO's form: that of MLIR.
    fn dictionary_text(&self, attribute: crate::ir::AttrId) -> String {
        crate::print::attribute_text(self.m, attribute)
    }

    fn layouts(&self, op: OpId, name: &str) -> Option<Vec<Vec<i64>>> {
        match self.attr(op, name)? {
            Attribute::Array(parts) => parts.iter().map(|&p| self.ints_of(p)).collect(),
            _ => None,
        }
    }

    fn output_aliases(&self, op: OpId) -> Vec<OperandAlias> {
        let Some(Attribute::Array(parts)) = self.attr(op, "output_operand_aliases") else {
            return Vec::new();
        };
        let mut aliases = Vec::new();
        for &part in parts {
            let Attribute::Dialect { parameters, .. } = self.m.get_attribute(part) else { continue };
            let find = |name: &str| parameters.iter().find(|p| self.m.text(p.name) == name).map(|p| p.value);
            let ints =
                |name: &str| -> Ints { find(name).and_then(|a| self.ints_of(a)).unwrap_or_default().into() };
            let operand = match find("operand_index").map(|a| self.m.get_attribute(a)) {
                Some(Attribute::Integer { value, .. }) => i64::try_from(*value).unwrap_or(-1),
                _ => continue,
            };
            aliases.push(OperandAlias {
                output_index: ints("output_tuple_indices"),
                operand,
                operand_index: ints("operand_tuple_indices"),
            });
        }
        aliases
    }
}

fn with_layout(shape: Shape, minor_to_major: &[i64]) -> Shape {
    match shape {
        Shape::Array(mut array) => {
            array.layout = Some(Layout::from_minor_to_major(minor_to_major.iter().copied()).into());
            Shape::Array(array)
        }
        other @ (Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => other,
    }
}
