//! Attributes of an instruction.

use hlo::diag::codes::parse as codes;
use hlo::diag::{Diagnostic, suggest::did_you_mean};
use hlo::{AttrKey, AttrKind, AttrValue, Attrs, ComputationId, InstrId, Opcode, Span};
use smallvec::SmallVec;

use super::{Lowering, Scope};
use crate::ast::{Attribute, AttributeValue, Reference, Slice, range};
use crate::cursor::{Cursor, Res, error, quote};

/// What the attributes of one instruction say.
pub(super) struct Lowered {
    pub(super) attrs: Attrs,
    pub(super) control_predecessors: Vec<InstrId>,
    /// All could be read.
    pub(super) complete: bool,
}

impl<'a> Lowering<'a> {
    /// The attributes of an instruction. Those that `opcode` does not take, but `also` does, are taken too.
    pub(super) fn attributes(
        &mut self,
        scope: &mut Scope<'a>,
        opcode: Opcode,
        also: &[AttrKey],
        attributes: &Slice,
    ) -> Lowered {
        let ast = self.ast;
        let mut out = Lowered { attrs: Attrs::new(), control_predecessors: Vec::new(), complete: true };
        let list = &ast.attributes[range(attributes)];
        let mut control = false;
        for (i, a) in list.iter().enumerate() {
            let text = self.slice(a.key);
            if text == "control-predecessors" {
                if std::mem::replace(&mut control, true) {
                    self.given_twice(list, i);
                }
                match self.predecessors(scope, a) {
                    Some(p) => out.control_predecessors = p,
                    None => out.complete = false,
                }
                continue;
            }
            let key = opcode.attr_key(text).or_else(|| also.iter().copied().find(|k| k.text() == text));
            let Some(key) = key else {
                self.unknown_attribute(opcode, a);
                out.complete = false;
                continue;
            };
            if out.attrs.get(key).is_some() {
                self.given_twice(list, i);
                out.complete = false;
                continue;
            }
            match self.value(key, a) {
                Some(value) => out.attrs.set(key, value),
                None => out.complete = false,
            }
        }
        out
    }

    /// Required attributes that are missing; `span` is where the instruction is.
    pub(super) fn check_required(
        &mut self,
        opcode: Opcode,
        attrs: &Attrs,
        given: &Slice,
        span: Span,
    ) -> bool {
        let mut complete = true;
        for slot in opcode.attrs().iter().filter(|s| s.required && attrs.get(s.key).is_none()) {
            if matches!(slot.key, AttrKey::ConstantValue | AttrKey::ParameterNumber) {
                continue;
            }
            complete = false;
            // Given, but wrong or mistyped: that was reported.
            let text = slot.key.text();
            let own = || opcode.attrs().iter().map(|s| s.key.text());
            let few = given.len() < 100;
            let meant =
                |key: &str| few && opcode.attr_key(key).is_none() && did_you_mean(key, own()) == Some(text);
            if self.ast.attributes[range(given)]
                .iter()
                .map(|a| self.slice(a.key))
                .any(|k| k == text || meant(k))
            {
                continue;
            }
            let required: Vec<&str> =
                opcode.attrs().iter().filter(|s| s.required).map(|s| s.key.text()).collect();
            let message = format!("{opcode} needs the attribute `{text}`");
            let d = Diagnostic::error(codes::MISSING_ATTRIBUTE, span, message)
                .label(format!("`{text}=` is missing"));
            let note = format!("required attributes of {opcode}: {}", required.join(", "));
            self.report(if required.len() > 1 { d.note(note) } else { d });
        }
        complete
    }

    fn given_twice(&mut self, list: &[Attribute], i: usize) {
        if self.enough() {
            return;
        }
        let key = self.slice(list[i].key);
        let first = list.iter().find(|a| self.slice(a.key) == key).map_or(Span::NONE, |a| a.key);
        let d = Diagnostic::error(codes::DUPLICATE_ATTRIBUTE, list[i].key, format!("`{key}` is given twice"));
        self.report(d.label("again").related(first, "first given here"));
    }

    fn unknown_attribute(&mut self, opcode: Opcode, a: &Attribute) {
        if self.enough() {
            return;
        }
        let key = self.slice(a.key);
        let own = opcode
            .attrs()
            .iter()
            .map(|s| s.key)
            .filter(|k| !matches!(k, AttrKey::ConstantValue | AttrKey::ParameterNumber));
        let known: Vec<&str> = own.map(AttrKey::text).collect();
        let common = hlo::attrs::COMMON.iter().map(|k| k.text()).chain(["control-predecessors"]);
        let near = did_you_mean(key, known.iter().copied().chain(common));
        let message = format!("{opcode} takes no attribute {}", quote(key));
        let label = near.map_or_else(|| "unknown here".to_owned(), |n| format!("did you mean `{n}`?"));
        let d = Diagnostic::error(codes::UNKNOWN_ATTRIBUTE, a.key, message).label(label);
        let note = if known.is_empty() {
            format!("{opcode} has no attributes of its own")
        } else {
            format!("attributes of {opcode}: {}", known.join(", "))
        };
        self.report(d.note(note));
    }

    fn value(&mut self, key: AttrKey, a: &Attribute) -> Option<AttrValue> {
        match &a.value {
            AttributeValue::Raw(span) => {
                let mut c = self.cursor(*span);
                match key.kind() {
                    AttrKind::Computation => {
                        let result = named(&mut c).and_then(|n| c.finish().map(|()| n));
                        let (name, span) = self.keep(result)?;
                        self.find_computation(name, span).map(AttrValue::Computation)
                    }
                    AttrKind::Computations => {
                        let mut names = Vec::new();
                        let result = c
                            .list(b'{', b'}', codes::EXPECTED_COMPUTATION, |c| {
                                names.push(named(c)?);
                                Ok(())
                            })
                            .and_then(|()| c.finish());
                        self.keep(result)?;
                        let found: Vec<Option<ComputationId>> =
                            names.into_iter().map(|(n, s)| self.find_computation(n, s)).collect();
                        let all: Option<Box<[_]>> = found.into_iter().collect();
                        all.map(AttrValue::Computations)
                    }
                    _ => {
                        let result = crate::attr::decode(&mut c, key).and_then(|v| c.finish().map(|()| v));
                        self.keep(result.map_err(|e| in_attribute(key.text(), e)))?
                    }
                }
            }
            AttributeValue::Computation(index) => {
                let id = self.ids[*index as usize];
                if key.kind() == AttrKind::Computation {
                    Some(AttrValue::Computation(id))
                } else {
                    self.no_computation_here(a)
                }
            }
            AttributeValue::List(list) => {
                if key.kind() != AttrKind::Computations {
                    return self.no_computation_here(a);
                }
                let ast = self.ast;
                let found: Vec<Option<ComputationId>> = ast.references[range(list)]
                    .iter()
                    .map(|r| match r {
                        Reference::Name(span) => {
                            self.find_computation(self.slice(*span).trim_start_matches('%'), *span)
                        }
                        Reference::Computation(index) => Some(self.ids[*index as usize]),
                    })
                    .collect();
                let all: Option<Box<[_]>> = found.into_iter().collect();
                all.map(AttrValue::Computations)
            }
        }
    }

    fn no_computation_here(&mut self, a: &Attribute) -> Option<AttrValue> {
        let key = self.slice(a.key);
        let message = format!("`{key}` takes no computation in braces");
        self.report(Diagnostic::error(codes::NO_NESTED_COMPUTATION, a.key, message).label("here"));
        None
    }

    fn find_computation(&mut self, name: &str, span: Span) -> Option<ComputationId> {
        if let Some(&index) = self.computations.get(name) {
            return Some(self.ids[index]);
        }
        if !self.truncated && !self.enough() {
            let message = format!("there is no computation {}", quote(name));
            let d = Diagnostic::error(codes::UNKNOWN_COMPUTATION, span, message);
            let near =
                if self.may_suggest() { did_you_mean(name, self.computations_in_order()) } else { None };
            let label =
                near.map_or_else(|| "not in this module".to_owned(), |n| format!("did you mean `{n}`?"));
            self.report(d.label(label));
        }
        None
    }

    /// Names of computations in the order of the text, so that suggestions do not depend on hashing. Few
    /// enough to look through them for an error.
    fn computations_in_order(&self) -> Vec<&'a str> {
        let names = self.ast.computations.iter().filter(|c| !c.name.is_none());
        names.take(10_000).map(|c| self.slice(c.name).trim_start_matches('%')).collect()
    }

    /// `{%a, %b}`; `None` if one is unknown.
    fn predecessors(&mut self, scope: &mut Scope<'a>, a: &Attribute) -> Option<Vec<InstrId>> {
        let AttributeValue::Raw(span) = a.value else {
            self.no_computation_here(a);
            return None;
        };
        let mut c = self.cursor(span);
        let mut names: SmallVec<[(&str, Span); 4]> = SmallVec::new();
        let result = c
            .list(b'{', b'}', codes::BAD_LIST, |c| {
                names.push(c.name(codes::EXPECTED_NAME, "the name of an instruction")?);
                Ok(())
            })
            .and_then(|()| c.finish());
        self.keep(result)?;
        let found: Vec<Option<InstrId>> = names.into_iter().map(|(n, s)| self.find(scope, n, s)).collect();
        found.into_iter().collect()
    }
}

/// The error with the attribute's name before its message, for where the span is not shown.
fn in_attribute(key: &str, mut e: Box<Diagnostic>) -> Box<Diagnostic> {
    e.message = format!("{key}: {}", e.message);
    e
}

fn named<'a>(c: &mut Cursor<'a>) -> Res<(&'a str, Span)> {
    if c.peek() == b'{' {
        let span = c.here();
        return Err(error(
            codes::EXPECTED_COMPUTATION,
            span,
            "a list where one computation belongs",
            "expected a name",
        ));
    }
    c.name(codes::EXPECTED_COMPUTATION, "the name of a computation")
}
