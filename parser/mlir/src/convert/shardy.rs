//! Shardy's operations, as XLA has them once a module has left MLIR: custom calls with the attributes as
//! text.

use hlo::attrs::misc::FrontendValue;
use hlo::attrs::{AttrKey, AttrValue, Attrs, FrontendAttributes};
use hlo::shardy::MANUAL_AXES;
use hlo::{InstrId, Opcode, Shape};

use super::cx::{Convert, Converter};
use crate::ir::{Attribute, OpId};

pub(super) fn frontend(entries: Vec<(&str, String)>) -> AttrValue {
    let entries = entries.into_iter().map(|(k, v)| (k.into(), FrontendValue::Str(v.into()))).collect();
    AttrValue::FrontendAttributes(Box::new(FrontendAttributes { entries }))
}

/// The text of the shardings of values.
fn of_values<'t>(each: impl Iterator<Item = &'t str>) -> String {
    format!("#sdy.sharding_per_value<[{}]>", each.collect::<Vec<_>>().join(", "))
}

/// One shape, or a tuple of several.
fn packed(mut shapes: Vec<Shape>) -> Shape {
    match shapes.len() {
        1 => shapes.swap_remove(0),
        _ => Shape::tuple(shapes),
    }
}

impl Converter<'_> {
    /// The text of an attribute of Shardy.
    fn shardy_text(&self, op: OpId, name: &str) -> Convert<String> {
        match self.attr(op, name) {
            Some(Attribute::Opaque(text)) => Ok(format!("#{text}")),
            _ => self.structure(op, &format!("has no `{name}`")),
        }
    }

    fn shardy_call(
        &mut self,
        target: &str,
        shape: Shape,
        operands: &[InstrId],
        entries: Vec<(&str, String)>,
    ) -> InstrId {
        let mut attrs = Attrs::new()
            .with(AttrKey::CustomCallTarget, AttrValue::Str(target.into()))
            .with(AttrKey::FrontendAttributes, frontend(entries));
        if target != "Sharding" {
            attrs.set(AttrKey::CustomCallHasSideEffect, AttrValue::Bool(true));
        }
        self.emit(Opcode::CustomCall, shape, operands, attrs)
    }

    /// `sdy.sharding_constraint`, which changes no value.
    pub(super) fn sharding_constraint(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let sharding = self.shardy_text(op, "sharding")?;
        let one = sharding.trim_start_matches("#sdy.sharding");
        let entries = vec![("xla.sdy.sharding", format!("#sdy.sharding_per_value<[{one}]>"))];
        let shape = self.shape_of(x);
        let id = self.shardy_call("Sharding", shape, &[x], entries);
        self.bind_one(op, id)
    }

    /// `sdy.sharding_group`, which changes no value: its operand is partitioned as the others of the group
    /// are.
    pub(super) fn sharding_group(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        match self.attr(op, "group_id") {
            Some(Attribute::Integer { value, .. }) => {
                let group = i64::try_from(*value).unwrap_or(i64::MAX);
                self.sharding_groups.push((x, group));
                Ok(())
            }
            _ => self.structure(op, "has no `group_id`"),
        }
    }

    /// `sdy.manual_computation`: whole arrays to shards, a computation on these, shards to whole arrays.
    pub(super) fn manual_computation(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let body = self.region(op, 0)?;
        let axes = self.shardy_text(op, "manual_axes")?;
        let parameters = self.out.program_shape(body).map(|p| p.parameters).unwrap_or_default();
        if parameters.len() != operands.len() {
            return self.structure(op, "has not as many arguments as operands");
        }
        let shardings =
            self.shardings_of_values(op, &self.shardy_text(op, "in_shardings")?, operands.len())?;
        // Tokens are the same everywhere.
        let is_array = |shape: &Shape| shape.as_array().is_some();
        let arrays: Vec<usize> = (0..operands.len()).filter(|&i| is_array(&parameters[i])).collect();
        let mut local = operands.clone();
        if !arrays.is_empty() {
            let shapes: Vec<Shape> = arrays.iter().map(|&i| parameters[i].clone()).collect();
            let whole: Vec<InstrId> = arrays.iter().map(|&i| operands[i]).collect();
            let texts = arrays.iter().map(|&i| &*shardings[i].text);
            let entries = vec![("xla.sdy.in_shardings", of_values(texts)), (MANUAL_AXES, axes.clone())];
            let cut = self.shardy_call("xla.sdy.GlobalToLocalShape", packed(shapes), &whole, entries);
            for (n, &i) in arrays.iter().enumerate() {
                let part = if arrays.len() == 1 { cut } else { self.get(cut, n) };
                local[i] = match &shardings[i].unreduced {
                    Some(unreduced) => self.part_of(part, unreduced),
                    None => part,
                };
            }
        }
        let root = self.out.root(body);
        let attrs = Attrs::new()
            .with(AttrKey::ToApply, AttrValue::Computation(body))
            .with(AttrKey::FrontendAttributes, frontend(vec![("inlineable", "false".to_owned())]));
        let called = self.emit(Opcode::Call, self.shape_of(root), &local, attrs);
        let shapes = self.result_shapes(op)?;
        if shapes.is_empty() {
            return Ok(());
        }
        let mut parts: Vec<InstrId> = match shapes.len() {
            1 => vec![called],
            n => (0..n).map(|i| self.get(called, i)).collect(),
        };
        let shardings = self.shardings_of_values(op, &self.shardy_text(op, "out_shardings")?, parts.len())?;
        let arrays: Vec<usize> = (0..parts.len()).filter(|&i| is_array(&shapes[i])).collect();
        if !arrays.is_empty() {
            for &i in &arrays {
                if let Some(unreduced) = &shardings[i].unreduced {
                    parts[i] = self.reduced_over(parts[i], unreduced);
                }
            }
            let own: Vec<InstrId> = arrays.iter().map(|&i| parts[i]).collect();
            let whole: Vec<Shape> = arrays.iter().map(|&i| shapes[i].clone()).collect();
            let texts = arrays.iter().map(|&i| &*shardings[i].text);
            let entries = vec![(MANUAL_AXES, axes), ("xla.sdy.out_shardings", of_values(texts))];
            let joined = self.shardy_call("xla.sdy.LocalToGlobalShape", packed(whole), &own, entries);
            for (n, &i) in arrays.iter().enumerate() {
                parts[i] = if arrays.len() == 1 { joined } else { self.get(joined, n) };
            }
        }
        for (i, part) in parts.into_iter().enumerate() {
            self.bind(op, i, part);
        }
        Ok(())
    }
}
