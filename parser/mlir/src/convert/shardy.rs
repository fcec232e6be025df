//! Shardy's operations, as XLA has them once a module has left MLIR: custom calls with the attributes as
//! text.

use hlo::attrs::misc::FrontendValue;
use hlo::attrs::{AttrKey, AttrValue, Attrs, FrontendAttributes};
use hlo::{InstrId, Opcode, Shape};

use super::cx::{Convert, Converter};
use crate::ir::{Attribute, OpId};

fn frontend(entries: Vec<(&str, String)>) -> AttrValue {
    let entries = entries.into_iter().map(|(k, v)| (k.into(), FrontendValue::Str(v.into()))).collect();
    AttrValue::FrontendAttributes(Box::new(FrontendAttributes { entries }))
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

    /// `sdy.manual_computation`: whole arrays to shards, a computation on these, shards to whole arrays.
    pub(super) fn manual_computation(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let body = self.region(op, 0)?;
        let axes = self.shardy_text(op, "manual_axes")?;
        let parameters = self.out.program_shape(body).map(|p| p.parameters).unwrap_or_default();
        if parameters.len() != operands.len() {
            return self.structure(op, "has not as many arguments as operands");
        }
        let mut local = Vec::new();
        if !operands.is_empty() {
            let entries = vec![
                ("xla.sdy.in_shardings", self.shardy_text(op, "in_shardings")?),
                ("xla.sdy.manual_axes", axes.clone()),
            ];
            let shape = match &parameters[..] {
                [one] => one.clone(),
                _ => Shape::tuple(parameters.iter().cloned()),
            };
            let cut = self.shardy_call("xla.sdy.GlobalToLocalShape", shape, &operands, entries);
            local = match operands.len() {
                1 => vec![cut],
                n => (0..n).map(|i| self.get(cut, i)).collect(),
            };
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
        let parts: Vec<InstrId> = match shapes.len() {
            1 => vec![called],
            n => (0..n).map(|i| self.get(called, i)).collect(),
        };
        let entries = vec![
            ("xla.sdy.manual_axes", axes),
            ("xla.sdy.out_shardings", self.shardy_text(op, "out_shardings")?),
        ];
        let shape = self.packed_shape(op)?;
        let joined = self.shardy_call("xla.sdy.LocalToGlobalShape", shape, &parts, entries);
        if shapes.len() == 1 {
            return self.bind_one(op, joined);
        }
        self.bind_tuple(op, joined)
    }
}
