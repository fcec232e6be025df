//! Equality of modules, and a short name for what is equal.

use std::fmt;

use crate::attrs::{AttrKey, AttrValue, ResultAccuracy};
use crate::ids::{ComputationId, InstrId};
use crate::module::Module;
use crate::print::{Names, PrintOptions, print_instruction, write_module};
use crate::span::Span;

/// Where two modules differ, and how.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{location}: {what}: {left} and {right}")]
pub struct Difference {
    /// The computation, or computation and instruction, or the module.
    pub location: String,
    /// What differs there.
    pub what: &'static str,
    /// What the left module has.
    pub left: String,
    /// What the right module has.
    pub right: String,
    /// The span in the left module's text.
    pub left_span: Span,
    /// The span in the right module's text.
    pub right_span: Span,
}

/// Whether two modules are the same program, said the same way: names, header, tables, the order of
/// computations and instructions, shapes with their layouts, attributes, literals to the bit. Ids, spans,
/// tombstones, the declared signatures and the style of the text do not count.
///
/// # Errors
/// The first difference in the order of the text.
pub fn modules_equal(left: &Module, right: &Module) -> Result<(), Box<Difference>> {
    Comparison { left: Side::new(left), right: Side::new(right) }.run()
}

/// 128 bits of the module's canonical text (FNV-1a): equal for modules that differ in nothing but names
/// (other than those of elided constants, whose values they determine), metadata and style. It is the same on
/// every machine.
pub fn fingerprint(module: &Module) -> u128 {
    let options = PrintOptions {
        names: Names::Canonical,
        control_predecessors: true,
        backend_config: true,
        ..PrintOptions::SHORT_PARSABLE
    };
    let mut hash = Fnv1a128(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    write_module(module, &options, &mut hash).expect("invariant: hashing does not fail");
    hash.0
}

struct Fnv1a128(u128);

impl fmt::Write for Fnv1a128 {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for &b in s.as_bytes() {
            self.0 = (self.0 ^ u128::from(b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        Ok(())
    }
}

/// A module with the positions of its entities, which is what ids are compared by.
struct Side<'m> {
    module: &'m Module,
    computations: Vec<u32>,
    /// Computation and index in it.
    instructions: Vec<(u32, u32)>,
}

impl<'m> Side<'m> {
    fn new(module: &'m Module) -> Self {
        let mut computations = vec![u32::MAX; module.computation_capacity()];
        let mut instructions = vec![(u32::MAX, u32::MAX); module.instruction_capacity()];
        for (n, &c) in module.computations().iter().enumerate() {
            computations[c.index()] = n as u32;
            for (position, i) in module.instructions(c).enumerate() {
                instructions[i.index()] = (n as u32, position as u32);
            }
        }
        Self { module, computations, instructions }
    }

    fn at(&self, id: InstrId) -> (u32, u32) {
        self.instructions[id.index()]
    }

    fn number(&self, id: ComputationId) -> u32 {
        self.computations[id.index()]
    }
}

struct Comparison<'m> {
    left: Side<'m>,
    right: Side<'m>,
}

impl Comparison<'_> {
    fn run(&self) -> Result<(), Box<Difference>> {
        let (l, r) = (self.left.module, self.right.module);
        let differ = |what, left: String, right: String| {
            let location = format!("module {}", l.name);
            let (left_span, right_span) = (Span::NONE, Span::NONE);
            Err(Box::new(Difference { location, what, left, right, left_span, right_span }))
        };
        if l.name != r.name {
            return differ("name", l.name.to_string(), r.name.to_string());
        }
        if l.header != r.header {
            return differ("header", format!("{:?}", l.header), format!("{:?}", r.header));
        }
        if l.stack_tables != r.stack_tables {
            return differ("stack frame tables", "these".into(), "those".into());
        }
        let (lc, rc) = (l.computations(), r.computations());
        if lc.len() != rc.len() {
            return differ("number of computations", lc.len().to_string(), rc.len().to_string());
        }
        for (&a, &b) in lc.iter().zip(rc) {
            self.computations(a, b)?;
        }
        Ok(())
    }

    fn computations(&self, a: ComputationId, b: ComputationId) -> Result<(), Box<Difference>> {
        let (l, r) = (self.left.module, self.right.module);
        let (ca, cb) = (l.computation(a), r.computation(b));
        let differ = |what, left: String, right: String| {
            let location = format!("computation {}", ca.name);
            Err(Box::new(Difference { location, what, left, right, left_span: ca.span, right_span: cb.span }))
        };
        if ca.name != cb.name {
            return differ("name", ca.name.to_string(), cb.name.to_string());
        }
        if ca.execution_thread != cb.execution_thread {
            let thread = |t: &Option<Box<str>>| format!("{:?}", t.as_deref().unwrap_or("main"));
            return differ("execution thread", thread(&ca.execution_thread), thread(&cb.execution_thread));
        }
        let (ea, eb) = (l.entry_or_none() == Some(a), r.entry_or_none() == Some(b));
        if ea != eb {
            return differ("being the entry", ea.to_string(), eb.to_string());
        }
        let (mut ia, mut ib) = (l.instructions(a), r.instructions(b));
        loop {
            match (ia.next(), ib.next()) {
                (Some(x), Some(y)) => self.instructions(x, y)?,
                (None, None) => break,
                (Some(_), None) | (None, Some(_)) => {
                    return differ("number of instructions", ca.len().to_string(), cb.len().to_string());
                }
            }
        }
        let (ra, rb) = (ca.root(), cb.root());
        if ra.map(|i| self.left.at(i)) != rb.map(|i| self.right.at(i)) {
            let name =
                |m: &Module, i: Option<InstrId>| i.map_or("none".into(), |i| m.instr(i).name.to_string());
            return differ("root", name(l, ra), name(r, rb));
        }
        Ok(())
    }

    fn instructions(&self, a: InstrId, b: InstrId) -> Result<(), Box<Difference>> {
        let (l, r) = (self.left.module, self.right.module);
        let (x, y) = (l.instr(a), r.instr(b));
        let same_ids = |p: &[InstrId], q: &[InstrId]| {
            p.len() == q.len() && p.iter().zip(q).all(|(&p, &q)| self.left.at(p) == self.right.at(q))
        };
        let what = if x.name != y.name {
            "name"
        } else if x.opcode != y.opcode {
            "opcode"
        } else if x.shape != y.shape {
            "shape"
        } else if !same_ids(x.operands(), y.operands()) {
            "operands"
        } else if !same_ids(&x.control_predecessors, &y.control_predecessors) {
            "control predecessors"
        } else if x.attrs.iter().len() != y.attrs.iter().len() {
            "number of attributes"
        } else if let Some(key) = self.different_attr(a, b) {
            key.text()
        } else {
            return Ok(());
        };
        let options = PrintOptions::LONG;
        Err(Box::new(Difference {
            location: format!("instruction {} of {}", x.name, l.computation(x.parent()).name),
            what,
            left: print_instruction(l, a, &PrintOptions { normalize: false, ..options.eliding(100) }),
            right: print_instruction(r, b, &PrintOptions { normalize: false, ..options.eliding(100) }),
            left_span: x.span,
            right_span: y.span,
        }))
    }

    fn different_attr(&self, a: InstrId, b: InstrId) -> Option<AttrKey> {
        let (x, y) = (self.left.module.instr(a), self.right.module.instr(b));
        x.attrs
            .iter()
            .zip(y.attrs.iter())
            .find(|((key, v), (other, w))| key != other || !self.same_value(v, w))
            .map(|((key, _), _)| key)
    }

    /// Equal, floats to the bit and computations by position.
    fn same_value(&self, v: &AttrValue, w: &AttrValue) -> bool {
        let bits = |a: f64, b: f64| a.to_bits() == b.to_bits();
        match (v, w) {
            (AttrValue::Computation(c), AttrValue::Computation(d)) => {
                self.left.number(*c) == self.right.number(*d)
            }
            (AttrValue::Computations(c), AttrValue::Computations(d)) => {
                c.len() == d.len()
                    && c.iter().zip(d).all(|(&c, &d)| self.left.number(c) == self.right.number(d))
            }
            (AttrValue::Float(a), AttrValue::Float(b)) => bits(*a, *b),
            (AttrValue::Statistics(s), AttrValue::Statistics(t)) => {
                s.visualizing_index == t.visualizing_index
                    && s.values.len() == t.values.len()
                    && s.values.iter().zip(&t.values).all(|(a, b)| a.0 == b.0 && bits(a.1, b.1))
            }
            (
                AttrValue::ResultAccuracy(ResultAccuracy::Tolerance { atol: a, rtol: b, ulps: c }),
                AttrValue::ResultAccuracy(ResultAccuracy::Tolerance { atol: d, rtol: e, ulps: f }),
            ) => bits(*a, *d) && bits(*b, *e) && c == f,
            (v, w) => v == w,
        }
    }
}
