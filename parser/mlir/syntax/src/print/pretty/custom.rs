//! Operations that no table says: modules, functions, constants, loops, reductions, Shardy's.

use std::fmt::Write as _;

use super::super::names::is_while;
use super::super::{Printer, Todo};
use crate::ir::{Attribute, NameId, NamedAttribute, OpId, Type, TypeId, ValueId};

/// Operations of two scalars by which a reduction is written in short.
const SHORT_REDUCERS: [&str; 7] = ["add", "and", "maximum", "minimum", "multiply", "or", "xor"];

/// The properties of `sdy.manual_computation`.
const MANUAL: [&str; 3] = ["in_shardings", "manual_axes", "out_shardings"];

impl Printer<'_> {
    /// The text of an attribute that must be a string.
    fn text_of(&self, op: OpId, name: &str) -> Option<&str> {
        match self.m.get_attribute(self.m.attr(op, name)?) {
            Attribute::String { text, ty: None } => Some(text),
            _ => None,
        }
    }

    /// The properties and attributes but those of these names, together, by name.
    fn others(&self, op: OpId, but: &[&str]) -> Vec<NamedAttribute> {
        let o = self.m.op(op);
        let mut list: Vec<NamedAttribute> = o
            .properties
            .iter()
            .chain(&o.attributes)
            .filter(|a| !but.contains(&self.m.text(a.name)))
            .copied()
            .collect();
        list.sort_by(|a, b| self.m.text(a.name).cmp(self.m.text(b.name)));
        list
    }

    fn optional_dictionary(&mut self, before: &str, list: &[NamedAttribute]) {
        if !list.is_empty() {
            self.out.push_str(before);
            self.dictionary(list);
        }
    }

    /// The block of a region that has one.
    fn only_block(&self, op: OpId, region: usize) -> Option<crate::ir::BlockId> {
        match *self.m.region(*self.m.op(op).regions.get(region)?).blocks {
            [block] => Some(block),
            [..] => None,
        }
    }

    pub(super) fn module(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        let m = self.m;
        let o = m.op(op);
        let Some(block) = self.only_block(op, 0).filter(|_| o.regions.len() == 1) else { return false };
        if o.properties.iter().any(|p| m.text(p.name) != "sym_name") || !m.block(block).arguments.is_empty() {
            return false;
        }
        self.out.push_str("module");
        if let Some(name) = m.attr(op, "sym_name") {
            let Attribute::String { text, ty: None } = m.get_attribute(name) else { return false };
            if text.is_empty() {
                return false;
            }
            self.out.push(' ');
            self.at_name(text);
        }
        let others = self.others(op, &["sym_name"]);
        self.optional_dictionary(" attributes ", &others);
        self.out.push_str(" {\n");
        stack.push(Todo::End(op, depth));
        stack.push(Todo::Block(block, 0, depth + 1));
        true
    }

    pub(super) fn function(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        const OWN: [&str; 5] = ["sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"];
        let m = self.m;
        let o = m.op(op);
        if o.properties.iter().any(|p| !OWN.contains(&m.text(p.name))) || !o.operands.is_empty() {
            return false;
        }
        let (inputs, results) = match m.attr(op, "function_type").map(|a| m.get_attribute(a)) {
            Some(Attribute::Type(ty)) => match m.get_type(*ty) {
                Type::Function { inputs, results } => (&**inputs, &**results),
                _ => return false,
            },
            _ => return false,
        };
        let Some(name) = self.text_of(op, "sym_name") else { return false };
        let name = name.to_owned();
        self.out.push_str("func.func ");
        match (m.attr(op, "sym_visibility"), self.text_of(op, "sym_visibility")) {
            (None, _) => {}
            (Some(_), Some(word @ ("public" | "private" | "nested"))) => {
                let word = word.to_owned();
                let _ = write!(self.out, "{word} ");
            }
            (Some(_), _) => return false,
        }
        self.at_name(&name);
        let lists = |key: &str, count: usize| -> Option<Vec<&[NamedAttribute]>> {
            let Some(attribute) = m.attr(op, key) else { return Some(vec![&[]; count]) };
            let Attribute::Array(parts) = m.get_attribute(attribute) else { return None };
            let lists: Option<Vec<&[NamedAttribute]>> = parts
                .iter()
                .map(|&p| match m.get_attribute(p) {
                    Attribute::Dictionary(list) => Some(&**list),
                    _ => None,
                })
                .collect();
            lists.filter(|l| l.len() == count && l.iter().any(|d| !d.is_empty()))
        };
        let (Some(of_arguments), Some(of_results)) =
            (lists("arg_attrs", inputs.len()), lists("res_attrs", results.len()))
        else {
            return false;
        };
        let (block, arguments) = match (&o.regions[..], self.only_block(op, 0)) {
            ([_], Some(block)) => (Some(block), &m.block(block).arguments[..]),
            ([], _) => (None, &[][..]),
            ([region], None) if m.region(*region).blocks.is_empty() => (None, &[][..]),
            ([..], _) => return false,
        };
        if block.is_some()
            && (arguments.len() != inputs.len()
                || arguments.iter().zip(inputs).any(|(&a, &t)| m.value_type(a) != t))
        {
            return false;
        }
        self.out.push('(');
        for (n, &ty) in inputs.iter().enumerate() {
            self.out.push_str(if n > 0 { ", " } else { "" });
            if let Some(&argument) = arguments.get(n) {
                self.value(argument);
                self.out.push_str(": ");
            }
            self.ty(ty);
            self.optional_dictionary(" ", of_arguments[n]);
            if let Some(&argument) = arguments.get(n) {
                self.trailing_location(m.value(argument).loc);
            }
        }
        self.out.push(')');
        if !results.is_empty() {
            self.out.push_str(" -> ");
            let bare = results.len() == 1
                && of_results[0].is_empty()
                && !matches!(m.get_type(results[0]), Type::Function { .. });
            self.out.push_str(if bare { "" } else { "(" });
            for (n, &ty) in results.iter().enumerate() {
                self.out.push_str(if n > 0 { ", " } else { "" });
                self.ty(ty);
                self.optional_dictionary(" ", of_results[n]);
            }
            self.out.push_str(if bare { "" } else { ")" });
        }
        let others = self.others(op, &OWN);
        self.optional_dictionary(" attributes ", &others);
        match block {
            Some(block) => {
                self.out.push_str(" {\n");
                stack.push(Todo::End(op, depth));
                stack.push(Todo::Block(block, 0, depth + 1));
                true
            }
            // A declaration has its region, empty, only in the generic form.
            None => o.regions.is_empty() && self.end(op),
        }
    }

    pub(super) fn constant(&mut self, op: OpId) -> bool {
        let m = self.m;
        let o = m.op(op);
        let (Some(value), &[result]) = (m.attr(op, "value"), &o.results[..]) else { return false };
        let ty = match m.get_attribute(value) {
            Attribute::Elements { ty, .. }
            | Attribute::DenseResource { ty, .. }
            | Attribute::Integer { ty, .. }
            | Attribute::Float { ty, .. } => *ty,
            _ => return false,
        };
        if !o.operands.is_empty() || !o.regions.is_empty() {
            return false;
        }
        self.out.push_str(m.op_name(op));
        let others = self.others(op, &["value"]);
        self.optional_dictionary(" ", &others);
        self.out.push(' ');
        self.attribute(value);
        let own = m.value_type(result);
        if own != ty {
            self.out.push_str(" : ");
            self.ty(own);
        }
        self.end(op)
    }

    pub(super) fn while_loop(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        let m = self.m;
        let o = m.op(op);
        let (Some(condition), Some(body)) = (self.only_block(op, 0), self.only_block(op, 1)) else {
            return false;
        };
        let types: Vec<TypeId> = o.operands.iter().map(|&v| m.value_type(v)).collect();
        let same = |values: &[ValueId]| {
            values.len() == types.len() && values.iter().zip(&types).all(|(&v, &t)| m.value_type(v) == t)
        };
        let (of_condition, of_body) = (&m.block(condition).arguments, &m.block(body).arguments);
        if o.regions.len() != 2 || !same(of_condition) || !same(of_body) || !same(&o.results) {
            return false;
        }
        // Both regions see the arguments by one name.
        for (&a, &b) in of_condition.iter().zip(of_body) {
            if m.value(a).loc != crate::ir::LocId::UNKNOWN && self.options.locations {
                return false;
            }
            self.name_as(b, a);
        }
        let _ = write!(self.out, "{}(", m.op_name(op));
        for (n, (&argument, &operand)) in of_condition.iter().zip(&o.operands).enumerate() {
            self.out.push_str(if n > 0 { ", " } else { "" });
            self.value(argument);
            self.out.push_str(" = ");
            self.value(operand);
        }
        self.out.push(')');
        if !types.is_empty() {
            self.out.push_str(" : ");
            self.types(&types);
        }
        let others = self.others(op, &[]);
        self.optional_dictionary(" attributes ", &others);
        self.out.push('\n');
        self.indent(depth);
        self.out.push_str("cond {\n");
        stack.push(Todo::Do(op, body, depth));
        stack.push(Todo::Block(condition, 0, depth + 1));
        true
    }

    pub(super) fn reduce(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        let m = self.m;
        let o = m.op(op);
        let Some(block) = self.only_block(op, 0).filter(|_| o.regions.len() == 1) else { return false };
        let Some(dimensions) = self.i64s(op, "dimensions") else { return false };
        let count = o.operands.len() / 2;
        let arguments = &m.block(block).arguments;
        if count == 0 || o.operands.len() != 2 * count || arguments.len() != 2 * count {
            return false;
        }
        let _ = write!(self.out, "{}(", m.op_name(op));
        for n in 0..count {
            self.out.push_str(if n > 0 { ", (" } else { "" });
            self.value(o.operands[n]);
            self.out.push_str(" init: ");
            self.value(o.operands[count + n]);
            self.out.push(')');
        }
        let short = if count == 1 { self.short_reducer(op, block) } else { None };
        if let Some(name) = short {
            let _ = write!(self.out, " applies {}", m.text(name));
        }
        self.out.push_str(" across dimensions = ");
        self.bracketed(&dimensions);
        let others = self.others(op, &["dimensions"]);
        self.optional_dictionary(" ", &others);
        self.out.push_str(" : ");
        let inputs: Vec<TypeId> = o.operands.iter().map(|&v| m.value_type(v)).collect();
        let results: Vec<TypeId> = o.results.iter().map(|&v| m.value_type(v)).collect();
        self.function_type(&inputs, &results);
        if short.is_some() {
            return self.end(op);
        }
        self.out.push('\n');
        self.indent(depth);
        self.out.push_str(" reducer");
        for n in 0..count {
            self.out.push('(');
            for (side, argument) in [arguments[n], arguments[count + n]].into_iter().enumerate() {
                self.out.push_str(if side > 0 { ", " } else { "" });
                self.value(argument);
                self.out.push_str(": ");
                self.ty(m.value_type(argument));
                self.trailing_location(m.value(argument).loc);
            }
            self.out.push_str(") ");
        }
        self.out.push_str(" {\n");
        stack.push(Todo::End(op, depth));
        stack.push(Todo::Block(block, 0, depth + 1));
        true
    }

    /// The operation that a region applies to its two scalars, if it does nothing else.
    fn short_reducer(&self, op: OpId, block: crate::ir::BlockId) -> Option<NameId> {
        let m = self.m;
        let b = m.block(block);
        let (&[x, y], &[applied, end]) = (&b.arguments[..], &b.operations[..]) else { return None };
        let (applied_op, end_op) = (m.op(applied), m.op(end));
        let (dialect, name) = m.op_name(applied).split_once('.')?;
        let own = m.op_name(op).split('.').next()?;
        let element = match m.get_type(m.value_type(m.op(op).operands[0])) {
            Type::Tensor { element, .. } => *element,
            _ => return None,
        };
        let scalar = |ty: TypeId| matches!(m.get_type(ty), Type::Tensor { dims, element: e, encoding: None } if dims.is_empty() && *e == element);
        let &[result] = &applied_op.results[..] else { return None };
        let plain = |o: &crate::ir::Operation| o.properties.is_empty() && o.attributes.is_empty();
        let unknown = crate::ir::LocId::UNKNOWN;
        let no_locations = !self.options.locations
            || [applied_op.loc, end_op.loc, m.value(x).loc, m.value(y).loc].iter().all(|&l| l == unknown);
        (dialect == own
            && SHORT_REDUCERS.contains(&name)
            && applied_op.operands[..] == [x, y]
            && end_op.operands[..] == [result]
            && m.op_name(end).strip_prefix(dialect) == Some(".return")
            && plain(applied_op)
            && plain(end_op)
            && no_locations
            && [x, y, result].iter().all(|&v| scalar(m.value_type(v))))
        .then_some(applied_op.name)
    }

    /// The text of an attribute of Shardy after its name.
    fn shardy(&self, op: OpId, key: &str, name: &str) -> Option<String> {
        match self.m.get_attribute(self.m.attr(op, key)?) {
            Attribute::Opaque(text) => {
                text.strip_prefix(name).filter(|t| t.starts_with('<')).map(str::to_owned)
            }
            _ => None,
        }
    }

    pub(super) fn mesh(&mut self, op: OpId) -> bool {
        let (Some(name), Some(mesh)) = (self.text_of(op, "sym_name"), self.shardy(op, "mesh", "sdy.mesh"))
        else {
            return false;
        };
        let name = name.to_owned();
        self.out.push_str("sdy.mesh ");
        self.at_name(&name);
        let _ = write!(self.out, " = {mesh}");
        let others = self.others(op, &["sym_name", "mesh"]);
        self.optional_dictionary(" ", &others);
        self.m.op(op).results.is_empty() && self.end(op)
    }

    pub(super) fn sharding_constraint(&mut self, op: OpId) -> bool {
        let o = self.m.op(op);
        let Some(sharding) = self.shardy(op, "sharding", "sdy.sharding") else { return false };
        let (&[x], &[result]) = (&o.operands[..], &o.results[..]) else { return false };
        if self.m.value_type(x) != self.m.value_type(result) {
            return false;
        }
        self.out.push_str("sdy.sharding_constraint ");
        self.value(x);
        let _ = write!(self.out, " {sharding}");
        let others = self.others(op, &["sharding"]);
        self.optional_dictionary(" ", &others);
        self.out.push_str(" : ");
        self.ty(self.m.value_type(x));
        self.end(op)
    }

    pub(super) fn manual_computation(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        let m = self.m;
        let o = m.op(op);
        let Some(block) = self.only_block(op, 0).filter(|_| o.regions.len() == 1) else { return false };
        if o.properties.iter().any(|p| !MANUAL.contains(&m.text(p.name))) {
            return false;
        }
        let text = |key: &str, before: &str, after: &str| match m.get_attribute(m.attr(op, key)?) {
            Attribute::Opaque(text) => text.strip_prefix(before)?.strip_suffix(after).map(str::to_owned),
            _ => None,
        };
        let shardings = |key: &str| text(key, "sdy.sharding_per_value<", ">").filter(|t| t.starts_with('['));
        let axes = text("manual_axes", "sdy<manual_axes", ">").filter(|t| t.starts_with('{'));
        let (Some(inputs), Some(outputs), Some(axes)) =
            (shardings("in_shardings"), shardings("out_shardings"), axes)
        else {
            return false;
        };
        self.out.push_str("sdy.manual_computation(");
        self.list_of(&o.operands);
        let _ = write!(self.out, ") in_shardings={inputs} out_shardings={outputs} manual_axes={axes} (");
        for (n, &argument) in m.block(block).arguments.iter().enumerate() {
            self.out.push_str(if n > 0 { ", " } else { "" });
            self.value(argument);
            self.out.push_str(": ");
            self.ty(m.value_type(argument));
            self.trailing_location(m.value(argument).loc);
        }
        self.out.push_str(") {\n");
        stack.push(Todo::End(op, depth));
        stack.push(Todo::Block(block, 0, depth + 1));
        true
    }

    /// What follows the region of an operation that is written in a form of its own.
    pub(in crate::print) fn after_region(&mut self, op: OpId) {
        let m = self.m;
        if m.op_name(op) != "sdy.manual_computation" {
            return;
        }
        self.optional_dictionary(" ", &self.others(op, &MANUAL));
        let o = m.op(op);
        let types = |values: &[ValueId]| values.iter().map(|&v| m.value_type(v)).collect::<Vec<TypeId>>();
        self.out.push_str(" : ");
        self.function_type(&types(&o.operands), &types(&o.results));
    }

    /// The middle of a loop.
    pub(in crate::print) fn loop_body(
        &mut self,
        op: OpId,
        body: crate::ir::BlockId,
        depth: usize,
        stack: &mut Vec<Todo>,
    ) {
        debug_assert!(is_while(self.m, op));
        self.indent(depth);
        self.out.push_str("} do {\n");
        stack.push(Todo::End(op, depth));
        stack.push(Todo::Block(body, 0, depth + 1));
    }
}
