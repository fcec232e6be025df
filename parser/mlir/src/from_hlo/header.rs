//! What the header of a module, its parameters and its result say in addition to the operations.

use hlo::attrs::{AliasKind, AttrKey, Sharding};

use super::cx::Exporter;
use crate::ir::{AttrId, Attribute, NamedAttribute, OpId, ValueId};

impl Exporter<'_> {
    /// Name, devices and frontend attributes of the module.
    pub(super) fn module_attributes(&mut self) {
        let Some(top) = self.m.top() else { return };
        let name = self.string(&self.hlo.name);
        let key = self.m.name("sym_name");
        self.m.op_mut(top).properties.push(NamedAttribute { name: key, value: name });
        let header = &self.hlo.header;
        for (key, count) in
            [("mhlo.num_partitions", header.num_partitions), ("mhlo.num_replicas", header.replica_count)]
        {
            if let Some(n) = count {
                let value = self.int_of(n, 32);
                self.discardable(top, key, value);
            }
        }
        if let Some(f) = &header.frontend_attributes {
            let value = self.frontend(f);
            self.discardable(top, "mhlo.frontend_attributes", value);
        }
        if header.is_scheduled == Some(true) {
            self.left_out.insert("is_scheduled");
        }
    }

    fn dictionary(&mut self, mut list: Vec<(&str, AttrId)>) -> AttrId {
        list.sort_by_key(|e| e.0);
        let list =
            list.into_iter().map(|(name, value)| NamedAttribute { name: self.m.name(name), value }).collect();
        self.m.attribute(Attribute::Dictionary(list))
    }

    /// Shardings, frontend attributes, aliases and donations of the arguments and results of the entry
    /// function; the names and locations of the arguments.
    pub(super) fn entry_attributes(&mut self, function: OpId, arguments: &[ValueId]) {
        let entry = self.hlo.entry();
        let root = self.hlo.instr(self.hlo.root(entry));
        let mut lists: Vec<Vec<(&str, AttrId)>> = vec![Vec::new(); arguments.len()];
        let parameters = self.hlo.computation(entry).parameters();
        for (n, id) in parameters.iter().enumerate() {
            let Some(i) = id.map(|id| self.hlo.instr(id)) else { continue };
            let loc = self.location(i);
            let name = self.m.name(&i.name);
            let value = self.m.value_mut(arguments[n]);
            (value.loc, value.name) = (loc, Some(name));
            if let Some(sharding) = i.attrs.sharding() {
                let text = hlo::print::print_sharding(sharding);
                lists[n].push(("mhlo.sharding", self.string(&text)));
            }
            if let Some(f) = i.attrs.frontend_attributes() {
                lists[n].push(("mhlo.frontend_attributes", self.frontend(f)));
            }
            if i.attrs.get(AttrKey::ParameterReplication).is_some() {
                self.left_out.insert("parameter_replication");
            }
        }
        for alias in &self.hlo.header.input_output_alias {
            let argument = usize::try_from(alias.parameter).ok().and_then(|p| lists.get_mut(p));
            let output = match alias.output_index[..] {
                [] => Some(0),
                [n] => Some(n),
                [..] => None,
            };
            match (argument, output) {
                (Some(list), Some(n)) if alias.parameter_index.is_empty() && alias.kind == AliasKind::May => {
                    let ty = self
                        .m
                        .ty(crate::ir::Type::Integer { width: 32, sign: crate::ir::Signedness::Signless });
                    let value = self.m.attribute(Attribute::Integer { value: n.into(), ty });
                    list.push(("tf.aliasing_output", value));
                }
                _ => {
                    self.left_out.insert("aliases that must be kept, or of parts of tuples");
                }
            }
        }
        for donor in &self.hlo.header.buffer_donor {
            match usize::try_from(donor.parameter).ok().and_then(|p| lists.get_mut(p)) {
                Some(list) if donor.parameter_index.is_empty() => {
                    list.push(("jax.buffer_donor", self.m.attribute(Attribute::Bool(true))));
                }
                _ => {
                    self.left_out.insert("donated parts of tuples");
                }
            }
        }
        let mut properties = Vec::new();
        if lists.iter().any(|l| !l.is_empty()) {
            let parts = lists.into_iter().map(|l| self.dictionary(l)).collect();
            properties.push(("arg_attrs", self.array(parts)));
        }
        if let Some(Sharding::Tuple(parts)) = root.attrs.sharding()
            && root.shape.as_tuple().is_some_and(|t| t.len() == parts.len() && t.len() != 1)
        {
            let mut list = Vec::new();
            for part in parts {
                let text = hlo::print::print_sharding(part);
                let sharding = self.string(&text);
                list.push(self.dictionary(vec![("mhlo.sharding", sharding)]));
            }
            properties.push(("res_attrs", self.array(list)));
        }
        for (name, value) in properties {
            let name = self.m.name(name);
            self.m.op_mut(function).properties.push(NamedAttribute { name, value });
        }
        let mut sorted = std::mem::take(&mut self.m.op_mut(function).properties);
        sorted.to_mut().sort_by(|a, b| self.m.text(a.name).cmp(self.m.text(b.name)));
        self.m.op_mut(function).properties = sorted;
    }
}
