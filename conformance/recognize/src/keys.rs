//! Keys: functions of the operands on one side of an applied computation, which it compares with the same
//! function of those on the other, as `abs` in `select(abs(a) > abs(b), a, b)`.
//!
//! **Invariant:** a key is computed from its operands alone, by the same instructions on both sides, so that
//! numbers which are equal have equal keys.

use hlo::attrs::COMMON;
use hlo::{InstrId, Instruction};

use crate::expression::{Expression, Origin};

/// A function of one side that a computation has of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Its node of the accumulators.
    pub accumulator: usize,
    /// Its node of the elements.
    pub element: usize,
}

/// Which operands a node is computed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Neither,
    Accumulators,
    Elements,
    Both,
}

impl Side {
    fn or(self, other: Side) -> Side {
        match (self, other) {
            (Side::Neither, side) | (side, Side::Neither) => side,
            (one, other) if one == other => one,
            (_, _) => Side::Both,
        }
    }
}

/// What a node computes, whichever side it is on.
#[derive(PartialEq, Debug)]
enum Term {
    /// The operand of a component.
    Operand(usize),
    /// An instruction like this one on these terms.
    Instruction(InstrId, Vec<usize>),
}

/// All keys of a computation.
#[derive(Clone, Default, Debug)]
pub(crate) struct Keys {
    /// They themselves.
    pub(crate) all: Vec<Key>,
    /// Of each node which of them it computes, of either side.
    numbers: Vec<Option<usize>>,
}

impl Keys {
    /// Of a computation of as many accumulators as elements. `is_accumulator`: of a parameter's number.
    pub(crate) fn new(expression: &Expression<'_>, is_accumulator: impl Fn(usize) -> bool) -> Keys {
        let components = expression.parameters.len() / 2;
        let mut terms: Vec<Term> = Vec::new();
        let mut found: Vec<(usize, Side)> = Vec::with_capacity(expression.nodes.len());
        for node in &expression.nodes {
            let (term, side) = match node.origin {
                Origin::Parameter(p) => {
                    let side = if is_accumulator(p) { Side::Accumulators } else { Side::Elements };
                    (Term::Operand(p % components), side)
                }
                Origin::Instruction(id) => {
                    let operands = node.operands.iter().map(|&o| found[o].0).collect();
                    let side = node.operands.iter().fold(Side::Neither, |side, &o| side.or(found[o].1));
                    (Term::Instruction(id, operands), side)
                }
            };
            let number = terms.iter().position(|known| same(expression, known, &term));
            found.push((number.unwrap_or(terms.len()), side));
            if number.is_none() {
                terms.push(term);
            }
        }
        let mut keys = Keys { all: Vec::new(), numbers: vec![None; found.len()] };
        for (term, of) in terms.iter().enumerate() {
            if matches!(of, Term::Operand(_)) {
                continue;
            }
            let on = |side: Side| (0..found.len()).find(|&n| found[n] == (term, side));
            let (Some(accumulator), Some(element)) = (on(Side::Accumulators), on(Side::Elements)) else {
                continue;
            };
            if expression.nodes[element].ty.is_complex() {
                continue;
            }
            for (number, _) in keys.numbers.iter_mut().zip(&found).filter(|(_, f)| f.0 == term) {
                *number = Some(keys.all.len());
            }
            keys.all.push(Key { accumulator, element });
        }
        keys
    }

    /// The number of the key that a node computes.
    pub(crate) fn of_node(&self, node: usize) -> Option<usize> {
        self.numbers[node]
    }
}

fn same(expression: &Expression<'_>, a: &Term, b: &Term) -> bool {
    match (a, b) {
        (Term::Operand(a), Term::Operand(b)) => a == b,
        (Term::Instruction(i, a), Term::Instruction(j, b)) => a == b && alike(expression, *i, *j),
        (Term::Operand(_), Term::Instruction(..)) | (Term::Instruction(..), Term::Operand(_)) => false,
    }
}

/// Whether two instructions do the same with the same operands.
fn alike(expression: &Expression<'_>, a: InstrId, b: InstrId) -> bool {
    let (a, b) = (expression.module.instr(a), expression.module.instr(b));
    let attrs = |of: &Instruction| {
        let mut attrs = of.attrs.clone();
        COMMON.iter().for_each(|&key| {
            attrs.remove(key);
        });
        attrs
    };
    a.opcode == b.opcode && a.shape == b.shape && attrs(a) == attrs(b)
}
