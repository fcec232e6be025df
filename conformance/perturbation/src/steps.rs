//! What one step of a fold is off by, of exact operands within ranges: intervals of what each term of the
//! computation is exactly, and how far it is off by the roundings of the terms below it (Higham, Accuracy and
//! Stability of Numerical Algorithms, section 2.2 and lemma 3.1).

use std::collections::BTreeSet;

use hlo::Opcode;
use hlo_execution::format::Format;
use hlo_recognize::rank;
use hlo_recognize::terms::{Id, Term, Terms};

/// What steps of arithmetic in a type round.
#[derive(Clone, Copy, Debug)]
pub struct Rounding {
    /// The type's.
    pub format: Format,
    /// The relative error of a rounding.
    pub unit: f64,
    /// What a result that is too small for units, or flushed, is off by.
    pub small: f64,
}

/// A term in some range, and its computed value.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The least exact value.
    pub low: f64,
    /// The greatest exact value.
    pub high: f64,
    /// The computed value is within this times the exact one, and `absolute`.
    pub relative: f64,
    /// See `relative`.
    pub absolute: f64,
    /// A sum of counts, which is exact.
    pub count: bool,
}

impl Range {
    /// An operand that is exact.
    pub fn exact(low: f64, high: f64) -> Range {
        Range { low, high, relative: 0.0, absolute: 0.0, count: false }
    }

    /// A count.
    pub fn count(low: f64, high: f64) -> Range {
        Range { count: true, ..Range::exact(low, high) }
    }

    fn magnitude(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    fn is_exact(self) -> bool {
        self.relative == 0.0 && self.absolute == 0.0
    }

    /// How far off the computed value is at most.
    pub fn off(self) -> f64 {
        self.relative * self.magnitude() + self.absolute
    }

    fn rounded(self, unit: f64, small: f64) -> Range {
        let relative = self.relative + unit * (1.0 + self.relative);
        Range { relative, absolute: self.absolute * (1.0 + unit) + small, ..self }
    }
}

/// Which terms are not negative, exactly and as they are computed, whatever roundings do: sums of such, and
/// products and quotients in which each of the others is there twice.
pub fn positive(terms: &Terms, parameter: &dyn Fn(usize) -> bool) -> Vec<bool> {
    // Of each term the factors that decide its sign.
    let mut signs: Vec<BTreeSet<Id>> = Vec::new();
    for (id, &term) in terms.all().iter().enumerate() {
        let of = |id: Id| signs[id].is_empty();
        let own = BTreeSet::from([id]);
        let factors = match term {
            Term::Parameter(p) if parameter(p) => BTreeSet::new(),
            Term::Constant(rank) if rank::float(rank) >= 0.0 => BTreeSet::new(),
            Term::Binary(Opcode::Add, x, y) if of(x) && of(y) => BTreeSet::new(),
            Term::Binary(Opcode::Multiply | Opcode::Divide, x, y) => &signs[x] ^ &signs[y],
            Term::Parameter(_) | Term::Constant(_) | Term::Unary(..) | Term::Binary(..) => own,
        };
        signs.push(factors);
    }
    signs.iter().map(BTreeSet::is_empty).collect()
}

/// The ranges of all terms, where those of parameters are given. `None`: a divisor may be zero, what is
/// computed may overflow, or a term is no sum, difference, product or quotient.
pub fn ranges(
    terms: &Terms,
    positive: &[bool],
    parameter: &dyn Fn(usize) -> Option<Range>,
    rounding: Rounding,
    quotient: f64,
) -> Option<Vec<Range>> {
    let mut all: Vec<Range> = Vec::with_capacity(terms.all().len());
    let Rounding { unit, small, format } = rounding;
    // What this computes is rounded.
    let unit = unit + 4.0 * f64::EPSILON;
    for &term in terms.all() {
        let of = |id: Id| all[id];
        let range = match term {
            Term::Parameter(p) => parameter(p)?,
            Term::Constant(rank) => Range::exact(rank::float(rank), rank::float(rank)),
            Term::Unary(Opcode::Negate, x) => {
                let x = of(x);
                Range { low: -x.high, high: -x.low, count: false, ..x }
            }
            Term::Binary(opcode @ (Opcode::Add | Opcode::Subtract), x, y) => {
                let (a, mut b) = (of(x), of(y));
                if opcode == Opcode::Subtract {
                    b = Range { low: -b.high, high: -b.low, count: false, ..b };
                }
                let cancels = opcode == Opcode::Subtract || !(positive[x] && positive[y]);
                sum(a, b, cancels, unit, small)
            }
            Term::Binary(Opcode::Multiply, x, y) => product(of(x), of(y), unit, small),
            Term::Binary(Opcode::Divide, x, y) => divided(of(x), of(y), quotient * unit, small)?,
            Term::Unary(..) | Term::Binary(..) => return None,
        };
        let range = if positive[all.len()] { Range { low: range.low.max(0.0), ..range } } else { range };
        let most = range.magnitude() + range.off();
        if most.is_nan() || most >= format.max * (1.0 - 4.0 * unit) {
            return None;
        }
        all.push(range);
    }
    Some(all)
}

fn sum(a: Range, b: Range, cancels: bool, unit: f64, small: f64) -> Range {
    let (low, high) = (a.low + b.low, a.high + b.high);
    if a.count && b.count && !cancels {
        return Range::count(low, high);
    }
    let exact = a.is_exact() && b.is_exact();
    let (relative, absolute) = if exact || !cancels {
        (a.relative.max(b.relative), a.absolute + b.absolute)
    } else {
        (0.0, a.off() + b.off())
    };
    Range { low, high, relative, absolute, count: false }.rounded(unit, small)
}

fn product(a: Range, b: Range, unit: f64, small: f64) -> Range {
    let ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high];
    let (low, high) = ends.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
        let x = if x.is_nan() { f64::INFINITY } else { x };
        (low.min(x), high.max(x))
    });
    let relative = (1.0 + a.relative) * (1.0 + b.relative) - 1.0;
    let cross = a.absolute * b.magnitude() * (1.0 + b.relative)
        + b.absolute * a.magnitude() * (1.0 + a.relative)
        + a.absolute * b.absolute;
    Range { low, high, relative, absolute: cross, count: false }.rounded(unit, small)
}

fn divided(a: Range, b: Range, unit: f64, small: f64) -> Option<Range> {
    if b.low <= 0.0 {
        return None;
    }
    let of_divisor = b.relative + b.absolute / b.low;
    if of_divisor.is_nan() || of_divisor >= 0.25 {
        return None;
    }
    let ends = [a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high];
    let (low, high) =
        ends.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let relative = (1.0 + a.relative) / (1.0 - of_divisor) - 1.0;
    let absolute = a.absolute / (b.low * (1.0 - of_divisor));
    let range = Range { low, high, relative, absolute, count: false };
    Some(range.rounded(unit, small))
}
