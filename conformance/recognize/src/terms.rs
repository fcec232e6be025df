//! An expression under assumptions about its parameters: choices that these decide are made, and what they
//! make simple is simplified, so that the many ways to write a function come to few.
//!
//! Simplifications hold in real arithmetic with infinities, and those of sums, differences and products in
//! that of floats too. What a program asks of a number (a comparison, a selection) is answered where the
//! assumptions decide it, of what programs compute in floats: a difference of finite numbers may be infinite
//! and is no NaN.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use hlo::attrs::Direction;
use hlo::{ConstantValue, Opcode};
use hlo_execution::format::Format;
use hlo_interp::Tensor;

use crate::expression::{Expression, Origin};
use crate::rank;

/// What is assumed of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A finite number.
    Finite,
    /// A finite number above 0.
    Positive,
    /// This one.
    Exactly(f64),
}

/// What is assumed of the parameters of an expression.
#[derive(Clone, Debug)]
pub struct Assumptions {
    /// Of each parameter.
    pub kinds: Vec<Kind>,
    /// How two of them that are finite compare.
    pub order: Option<(usize, usize, Ordering)>,
}

/// A number, by the place in its [`Terms`].
pub type Id = usize;

/// How a number is computed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Term {
    /// A parameter.
    Parameter(usize),
    /// A number of this rank ([`rank::of_float`]).
    Constant(i64),
    /// A function of one number.
    Unary(Opcode, Id),
    /// A function of two numbers; the operands of those that commute are in order.
    Binary(Opcode, Id, Id),
}

/// Terms, each once. **Invariant:** operands come before what is computed from them.
#[derive(Clone, Debug)]
pub struct Terms {
    all: Vec<Term>,
    ids: BTreeMap<Term, Id>,
    assumptions: Assumptions,
}

/// The value of a node.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Held {
    Number(Id),
    /// Whether it is true, if that is decided.
    Truth(Option<bool>),
}

/// Of some nodes of an expression the terms that they are. `None`: one of them hangs on what is not assumed.
pub fn resolved(
    expression: &Expression<'_>,
    roots: &[usize],
    assumptions: Assumptions,
) -> Option<(Terms, Vec<Id>)> {
    let mut terms = Terms { all: Vec::new(), ids: BTreeMap::new(), assumptions };
    let matters = expression.reached(roots);
    let mut held: Vec<Option<Held>> = Vec::with_capacity(expression.nodes.len());
    for (n, matters) in matters.into_iter().enumerate() {
        let of = if matters { terms.node(expression, n, &held) } else { None };
        held.push(of);
    }
    let number = |&root: &usize| match held[root] {
        Some(Held::Number(id)) => Some(id),
        Some(Held::Truth(_)) | None => None,
    };
    let ids = roots.iter().map(number).collect::<Option<Vec<Id>>>()?;
    Some((terms, ids))
}

impl Terms {
    /// A term.
    pub fn at(&self, id: Id) -> Term {
        self.all[id]
    }

    /// All of them, operands first.
    pub fn all(&self) -> &[Term] {
        &self.all
    }

    fn intern(&mut self, term: Term) -> Id {
        if let Some(&id) = self.ids.get(&term) {
            return id;
        }
        self.all.push(term);
        self.ids.insert(term, self.all.len() - 1);
        self.all.len() - 1
    }

    /// A number that is known.
    pub fn constant(&mut self, x: f64) -> Id {
        self.intern(Term::Constant(rank::of_float(x)))
    }

    /// A parameter, or what it is assumed to be.
    pub fn parameter(&mut self, p: usize) -> Id {
        match (self.assumptions.kinds[p], self.assumptions.order) {
            (Kind::Exactly(x), _) => self.constant(x),
            (_, Some((a, b, Ordering::Equal))) if p == b => self.intern(Term::Parameter(a)),
            (_, _) => self.intern(Term::Parameter(p)),
        }
    }

    /// The number that a term is known to be.
    pub fn known(&self, id: Id) -> Option<f64> {
        match self.all[id] {
            Term::Constant(rank) => Some(rank::float(rank)),
            Term::Parameter(_) | Term::Unary(..) | Term::Binary(..) => None,
        }
    }

    /// Whether a term is a finite number whatever rounding does.
    fn is_finite(&self, id: Id) -> bool {
        match self.all[id] {
            Term::Parameter(_) => true,
            Term::Constant(rank) => rank::float(rank).is_finite(),
            Term::Unary(Opcode::Abs | Opcode::Negate, x) => self.is_finite(x),
            Term::Binary(Opcode::Maximum | Opcode::Minimum, x, y) => self.is_finite(x) && self.is_finite(y),
            Term::Unary(..) | Term::Binary(..) => false,
        }
    }

    /// Whether a term is a number or an infinity.
    fn is_ordered(&self, id: Id) -> bool {
        self.is_finite(id)
            || match self.all[id] {
                Term::Parameter(_) => true,
                Term::Constant(rank) => !rank::float(rank).is_nan(),
                Term::Unary(Opcode::Abs | Opcode::Negate | Opcode::Exponential, x) => self.is_ordered(x),
                Term::Binary(Opcode::Add | Opcode::Subtract | Opcode::Multiply, x, y) => {
                    self.is_finite(x) && self.is_finite(y)
                }
                Term::Binary(Opcode::Maximum | Opcode::Minimum, x, y) => {
                    self.is_ordered(x) && self.is_ordered(y)
                }
                Term::Unary(..) | Term::Binary(..) => false,
            }
    }

    /// Whether a term is above 0, whatever rounding does.
    fn is_positive(&self, id: Id) -> bool {
        match self.all[id] {
            Term::Parameter(p) => self.assumptions.kinds[p] == Kind::Positive,
            Term::Constant(rank) => rank::float(rank) > 0.0,
            Term::Binary(Opcode::Add | Opcode::Maximum | Opcode::Minimum, x, y) => {
                self.is_positive(x) && self.is_positive(y)
            }
            Term::Unary(..) | Term::Binary(..) => false,
        }
    }

    /// How two numbers compare, if that is decided.
    fn order(&self, x: Id, y: Id) -> Option<Ordering> {
        if x == y {
            return self.is_ordered(x).then_some(Ordering::Equal);
        }
        if let (Some(a), Some(b)) = (self.known(x), self.known(y)) {
            return a.partial_cmp(&b);
        }
        let beyond = |finite: Id, other: Id| match self.known(other) {
            Some(f64::INFINITY) if self.is_finite(finite) => Some(Ordering::Less),
            Some(f64::NEG_INFINITY) if self.is_finite(finite) => Some(Ordering::Greater),
            Some(0.0) if self.is_positive(finite) => Some(Ordering::Greater),
            Some(_) | None => None,
        };
        if let Some(found) = beyond(x, y).or_else(|| beyond(y, x).map(Ordering::reverse)) {
            return Some(found);
        }
        let (a, b, order) = self.assumptions.order?;
        match (self.all[x], self.all[y]) {
            (Term::Parameter(p), Term::Parameter(q)) if (p, q) == (a, b) => Some(order),
            (Term::Parameter(p), Term::Parameter(q)) if (p, q) == (b, a) => Some(order.reverse()),
            (_, _) => None,
        }
    }

    /// A function of one number, simplified.
    pub fn unary(&mut self, opcode: Opcode, x: Id) -> Id {
        match (opcode, self.all[x], self.known(x)) {
            (Opcode::Negate, _, Some(x)) => self.constant(-x),
            (Opcode::Negate, Term::Binary(Opcode::Subtract, a, b), _) => self.binary(Opcode::Subtract, b, a),
            (Opcode::Negate, Term::Unary(Opcode::Negate, a), _) => a,
            (Opcode::Abs, _, Some(x)) => self.constant(x.abs()),
            (Opcode::Abs, Term::Unary(Opcode::Abs, _), _) => x,
            (Opcode::Abs, Term::Binary(Opcode::Subtract, a, b), _) => match self.order(a, b) {
                Some(Ordering::Less) => self.binary(Opcode::Subtract, b, a),
                Some(Ordering::Equal | Ordering::Greater) => x,
                None => self.intern(Term::Unary(Opcode::Abs, x)),
            },
            (Opcode::Exponential, _, Some(0.0)) => self.constant(1.0),
            (Opcode::Exponential, _, Some(f64::NEG_INFINITY)) => self.constant(0.0),
            (Opcode::LogPlusOne, _, Some(0.0)) | (Opcode::Log, _, Some(1.0)) => self.constant(0.0),
            (Opcode::Log, _, Some(x)) if (1.0..=2.0).contains(&x) => {
                let less = self.constant(x - 1.0);
                self.unary(Opcode::LogPlusOne, less)
            }
            (Opcode::Log, Term::Binary(Opcode::Add, a, b), _) => match (self.known(a), self.known(b)) {
                (Some(1.0), _) => self.unary(Opcode::LogPlusOne, b),
                (_, Some(1.0)) => self.unary(Opcode::LogPlusOne, a),
                (_, _) => self.intern(Term::Unary(Opcode::Log, x)),
            },
            (_, _, _) => self.intern(Term::Unary(opcode, x)),
        }
    }

    /// A function of two numbers, simplified.
    pub fn binary(&mut self, opcode: Opcode, x: Id, y: Id) -> Id {
        let known = (self.known(x), self.known(y));
        let extreme = |greater: Ordering| match self.order(x, y) {
            Some(found) if found == greater => Some(x),
            Some(_) => Some(y),
            None => None,
        };
        let simple = match (opcode, known) {
            (Opcode::Add, (Some(a), Some(b))) => Some(self.constant(a + b)),
            (Opcode::Subtract, (Some(a), Some(b))) => Some(self.constant(a - b)),
            (Opcode::Multiply, (Some(a), Some(b))) => Some(self.constant(a * b)),
            (Opcode::Add, (Some(0.0), None)) | (Opcode::Multiply, (Some(1.0), None)) => Some(y),
            (Opcode::Add | Opcode::Subtract, (None, Some(0.0)))
            | (Opcode::Multiply | Opcode::Divide, (None, Some(1.0))) => Some(x),
            (Opcode::Multiply, (Some(0.0), None)) if self.is_finite(y) => Some(x),
            (Opcode::Multiply, (None, Some(0.0))) if self.is_finite(x) => Some(y),
            (Opcode::Add, (Some(a), None)) if a.is_infinite() && self.is_finite(y) => Some(x),
            (Opcode::Add | Opcode::Subtract, (None, Some(b))) if b.is_infinite() && self.is_finite(x) => {
                Some(self.constant(if opcode == Opcode::Add { b } else { -b }))
            }
            (Opcode::Subtract, (Some(a), None)) if a.is_infinite() && self.is_finite(y) => Some(x),
            (Opcode::Subtract, (None, None)) if x == y && self.is_finite(x) => Some(self.constant(0.0)),
            (Opcode::Divide, (None, None)) if x == y && self.is_positive(x) => Some(self.constant(1.0)),
            (Opcode::Divide, (Some(0.0), None)) if self.is_positive(y) => Some(x),
            (Opcode::Maximum, _) => extreme(Ordering::Greater),
            (Opcode::Minimum, _) => extreme(Ordering::Less),
            (_, _) => None,
        };
        if let Some(simple) = simple {
            return simple;
        }
        // The magnitude of a number has its square.
        if let (Opcode::Multiply, Term::Unary(Opcode::Abs, a), true) = (opcode, self.all[x], x == y) {
            return self.binary(Opcode::Multiply, a, a);
        }
        let commutes = matches!(opcode, Opcode::Add | Opcode::Multiply | Opcode::Maximum | Opcode::Minimum);
        let (x, y) = if commutes && x > y { (y, x) } else { (x, y) };
        self.intern(Term::Binary(opcode, x, y))
    }

    fn node(&mut self, expression: &Expression<'_>, n: usize, held: &[Option<Held>]) -> Option<Held> {
        let node = &expression.nodes[n];
        let id = match node.origin {
            Origin::Parameter(p) if Format::of(node.ty).is_some() || node.ty.is_integer() => {
                return Some(Held::Number(self.parameter(p)));
            }
            Origin::Parameter(_) => return Some(Held::Truth(None)),
            Origin::Instruction(id) => id,
        };
        let instr = expression.module.instr(id);
        let operand = |k: usize| node.operands.get(k).and_then(|&o| held[o]);
        let number = |k: usize| match operand(k) {
            Some(Held::Number(id)) => Some(id),
            Some(Held::Truth(_)) | None => None,
        };
        let truth = |k: usize| match operand(k) {
            Some(Held::Truth(is)) => is,
            Some(Held::Number(_)) | None => None,
        };
        let logical = node.ty == hlo::ElementType::Pred;
        let found = match instr.opcode {
            Opcode::Constant => {
                let ConstantValue::Given(literal) = instr.attrs.constant_value()? else { return None };
                let tensor = Tensor::from_literal(literal.as_array()?.clone());
                let rank = *rank::of_tensor(&tensor).first()?;
                if logical {
                    return Some(Held::Truth(Some(rank != 0)));
                }
                if Format::of(node.ty).is_some() {
                    if node.ty.is_complex() {
                        return None;
                    }
                    self.intern(Term::Constant(rank))
                } else {
                    let x = rank::integer(node.ty, rank);
                    if x.abs() >= 1 << f64::MANTISSA_DIGITS {
                        return None;
                    }
                    self.constant(x as f64)
                }
            }
            Opcode::Compare => {
                if instr.attrs.is_total_order() {
                    return Some(Held::Truth(None));
                }
                let direction = *instr.attrs.direction()?;
                let (Some(x), Some(y)) = (number(0), number(1)) else { return Some(Held::Truth(None)) };
                if [x, y].iter().any(|&x| self.known(x).is_some_and(f64::is_nan)) {
                    return Some(Held::Truth(Some(direction == Direction::Ne)));
                }
                return Some(Held::Truth(self.order(x, y).map(|order| holds(direction, order))));
            }
            Opcode::IsFinite => {
                let x = number(0)?;
                let is = match self.known(x) {
                    Some(x) => Some(x.is_finite()),
                    None => self.is_finite(x).then_some(true),
                };
                return Some(Held::Truth(is));
            }
            Opcode::And if logical => {
                let is = match (truth(0), truth(1)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    (_, _) => None,
                };
                return Some(Held::Truth(is));
            }
            Opcode::Or if logical => {
                let is = match (truth(0), truth(1)) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    (_, _) => None,
                };
                return Some(Held::Truth(is));
            }
            Opcode::Not if logical => return Some(Held::Truth(truth(0).map(|is| !is))),
            Opcode::Select => return operand(if truth(0)? { 1 } else { 2 }),
            // Only integers, which are exact in a float type that holds them: they are counts, which the
            // caller bounds.
            Opcode::Convert => {
                let from = expression.nodes[*node.operands.first()?].ty;
                let count = from.is_integer() && Format::of(node.ty).is_some_and(|f| f.precision >= 8);
                if !count {
                    return None;
                }
                number(0)?
            }
            Opcode::Power => {
                let (x, y) = (number(0)?, number(1)?);
                if self.known(y) != Some(2.0) {
                    return None;
                }
                self.binary(Opcode::Multiply, x, x)
            }
            Opcode::Negate
            | Opcode::Abs
            | Opcode::Exponential
            | Opcode::Log
            | Opcode::LogPlusOne
            | Opcode::Sqrt => {
                let x = number(0)?;
                self.unary(instr.opcode, x)
            }
            Opcode::Add
            | Opcode::Subtract
            | Opcode::Multiply
            | Opcode::Divide
            | Opcode::Maximum
            | Opcode::Minimum => {
                let (x, y) = (number(0)?, number(1)?);
                self.binary(instr.opcode, x, y)
            }
            _ => return None,
        };
        Some(Held::Number(found))
    }
}

/// Whether numbers that compare so are as a comparison asks.
fn holds(direction: Direction, order: Ordering) -> bool {
    match direction {
        Direction::Eq => order == Ordering::Equal,
        Direction::Ne => order != Ordering::Equal,
        Direction::Lt => order == Ordering::Less,
        Direction::Le => order != Ordering::Greater,
        Direction::Gt => order == Ordering::Greater,
        Direction::Ge => order != Ordering::Less,
    }
}
