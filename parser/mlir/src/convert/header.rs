//! What functions and the module say in addition to their operations: names, shardings, aliases, devices.

use hlo::attrs::misc::FrontendValue;
use hlo::attrs::{AliasEntry, AliasKind, AttrKey, AttrValue, BufferDonor, FrontendAttributes, Ints};
use hlo::{InstrId, Opcode, Shape};

use super::cx::{Convert, Converter};
use crate::ir::{Attribute, Module, NamedAttribute, OpId, Type};

/// The name of the HLO module.
pub(super) fn module_name(m: &Module) -> String {
    let name = m.top().and_then(|top| m.attr(top, "sym_name")).map(|a| m.get_attribute(a));
    match name {
        Some(Attribute::String { text, .. }) if !text.is_empty() => computation_name(text),
        _ => "main".to_owned(),
    }
}

/// A name that HLO text can have.
pub(super) fn computation_name(name: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' };
    let mut clean: String = name.chars().map(clean).collect();
    if !clean.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_') {
        clean.insert(0, '_');
    }
    clean
}

impl<'m> Converter<'m> {
    /// The dictionary of an argument or result.
    fn dictionary(&self, function: OpId, key: &str, index: usize) -> &'m [NamedAttribute] {
        let m = self.m;
        match m.attr(function, key).map(|a| m.get_attribute(a)) {
            Some(Attribute::Array(parts)) => match parts.get(index).map(|&p| m.get_attribute(p)) {
                Some(Attribute::Dictionary(list)) => list,
                _ => &[],
            },
            _ => &[],
        }
    }

    pub(super) fn argument_attributes(&mut self, function: OpId, index: usize, id: InstrId) -> Convert<()> {
        let list = self.dictionary(function, "arg_attrs", index);
        self.carried(function, list, id)
    }

    /// Shardings and frontend attributes of a list of attributes, given to an instruction.
    pub(super) fn carried(&mut self, op: OpId, list: &'m [NamedAttribute], id: InstrId) -> Convert<()> {
        let m = self.m;
        let mut frontend = match self.out.instr(id).attrs.get(AttrKey::FrontendAttributes) {
            Some(AttrValue::FrontendAttributes(f)) => (**f).clone(),
            _ => FrontendAttributes::default(),
        };
        for a in list {
            let value = m.get_attribute(a.value);
            match (m.text(a.name), value) {
                ("mhlo.sharding", Attribute::String { text, .. }) => {
                    if let Some(sharding) = self.sharding(op, text)? {
                        self.out.instr_mut(id).attrs.set(AttrKey::Sharding, sharding);
                    }
                }
                ("sdy.sharding", Attribute::Opaque(text)) => frontend
                    .entries
                    .push(("xla.sdy.sharding".into(), FrontendValue::Str(format!("#{text}").into()))),
                ("mhlo.frontend_attributes", Attribute::Dictionary(entries)) => {
                    for e in entries {
                        let text: Box<str> = match m.get_attribute(e.value) {
                            Attribute::String { text, .. } => text.clone(),
                            _ => crate::print::attribute_text(m, e.value).into(),
                        };
                        frontend.entries.push((m.text(e.name).into(), FrontendValue::Str(text)));
                    }
                }
                _ => {}
            }
        }
        if !frontend.entries.is_empty() {
            let value = AttrValue::FrontendAttributes(Box::new(frontend));
            self.out.instr_mut(id).attrs.set(AttrKey::FrontendAttributes, value);
        }
        Ok(())
    }

    /// The sharding in a string, HLO's own form.
    fn sharding(&self, op: OpId, text: &str) -> Convert<Option<AttrValue>> {
        if text.is_empty() {
            return Ok(None);
        }
        let braced = if text.starts_with('{') { text.to_owned() } else { format!("{{{text}}}") };
        match hlo_parser::parse_sharding(&braced) {
            Ok(sharding) => Ok(Some(AttrValue::Sharding(Box::new(sharding)))),
            Err(_) => self.unsupported(op, format!("sharding `{text}` is not one of HLO's")),
        }
    }

    /// Shardings of a function's results.
    pub(super) fn result_attributes(
        &mut self,
        function: OpId,
        results: &[InstrId],
        root: InstrId,
    ) -> Convert<()> {
        if let [only] = *results
            && only == root
        {
            let list = self.dictionary(function, "res_attrs", 0);
            // A parameter's sharding is that of the argument.
            if self.out.instr(root).opcode != Opcode::Parameter {
                return self.carried(function, list, root);
            }
        }
        Ok(())
    }

    /// The shardings of all results of a function, as text.
    pub(super) fn result_shardings(&self, function: OpId) -> Vec<Option<Box<str>>> {
        let m = self.m;
        let results = match m.attr(function, "function_type").map(|a| m.get_attribute(a)) {
            Some(Attribute::Type(ty)) => match m.get_type(*ty) {
                Type::Function { results, .. } => results.len(),
                _ => 0,
            },
            _ => 0,
        };
        let sharding = |index: usize| {
            self.dictionary(function, "res_attrs", index).iter().find_map(|a| {
                match (m.text(a.name), m.get_attribute(a.value)) {
                    ("sdy.sharding", Attribute::Opaque(text)) => Some(format!("#{text}").into()),
                    ("mhlo.sharding", Attribute::String { text, .. }) if text.starts_with('{') => {
                        Some(text.clone())
                    }
                    ("mhlo.sharding", Attribute::String { text, .. }) if !text.is_empty() => {
                        Some(format!("{{{text}}}").into())
                    }
                    _ => None,
                }
            })
        };
        (0..results).map(sharding).collect()
    }

    /// What an attribute, such as `mhlo.layout_mode`, says of each argument (`arg_attrs`) or result
    /// (`res_attrs`) of a function.
    pub(super) fn said_of_each(&self, function: OpId, key: &str, name: &str) -> Vec<Option<Box<str>>> {
        let m = self.m;
        let count = match m.attr(function, "function_type").map(|a| m.get_attribute(a)) {
            Some(Attribute::Type(ty)) => match m.get_type(*ty) {
                Type::Function { inputs, results } => match key {
                    "arg_attrs" => inputs.len(),
                    _ => results.len(),
                },
                _ => 0,
            },
            _ => 0,
        };
        let said = |index: usize| {
            let all = self.dictionary(function, key, index);
            match all.iter().find(|a| m.text(a.name) == name).map(|a| m.get_attribute(a.value)) {
                Some(Attribute::String { text, .. }) => Some(text.clone()),
                _ => None,
            }
        };
        (0..count).map(said).collect()
    }

    /// The header of the module.
    pub(super) fn header(&mut self, entry: OpId) -> Convert<()> {
        let m = self.m;
        let Some(top) = m.top() else { return Ok(()) };
        let positive = |n: i64| Some(n).filter(|&n| n > 1);
        let (partitions, replicas) =
            (self.int_or(top, "mhlo.num_partitions", 1)?, self.int_or(top, "mhlo.num_replicas", 1)?);
        let header = &mut self.out.header;
        header.num_partitions = positive(partitions).or(header.num_partitions);
        header.replica_count = positive(replicas).or(header.replica_count);
        if self.checking {
            return Ok(());
        }
        let arguments = self.out.computation(self.out.entry()).parameters().len();
        let root = self.out.root(self.out.entry());
        let results = match &self.out.instr(root).shape {
            Shape::Tuple(parts) => Some(parts.len()),
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => None,
        };
        for parameter in 0..arguments {
            for a in self.dictionary(entry, "arg_attrs", parameter) {
                match (m.text(a.name), m.get_attribute(a.value)) {
                    ("tf.aliasing_output", Attribute::Integer { value, .. }) => {
                        let output = i64::try_from(*value).unwrap_or(-1);
                        if output < 0 || output >= results.unwrap_or(1) as i64 {
                            return self.structure(entry, "`tf.aliasing_output` names no result");
                        }
                        let output_index =
                            if results.is_some() { Ints::from_slice(&[output]) } else { Ints::new() };
                        self.out.header.input_output_alias.push(AliasEntry {
                            output_index,
                            parameter: parameter as i64,
                            parameter_index: Ints::new(),
                            kind: AliasKind::May,
                            kind_written: true,
                        });
                    }
                    ("jax.buffer_donor", Attribute::Bool(true)) => self
                        .out
                        .header
                        .buffer_donor
                        .push(BufferDonor { parameter: parameter as i64, parameter_index: Ints::new() }),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Meshes of Shardy, which travel as frontend attributes of the module.
    pub(super) fn meshes(&mut self, top: OpId) {
        let m = self.m;
        let mut meshes = Vec::new();
        for &op in m.body(top) {
            if m.op_name(op) != "sdy.mesh" {
                continue;
            }
            if let (Some(name), Some(Attribute::Opaque(text))) =
                (self.string(op, "sym_name"), self.attr(op, "mesh"))
            {
                meshes.push(format!("{name} = #{text}"));
            }
        }
        if !meshes.is_empty() {
            let entries = vec![(
                hlo::shardy::MESHES.into(),
                FrontendValue::Raw(format!("{{{}}}", meshes.join(", ")).into()),
            )];
            self.out.header.frontend_attributes = Some(FrontendAttributes { entries });
        }
    }
}
