//! Quotients that may be products with a reciprocal: `x / c` as `x * (1 / c)`, where `c` repeats numbers, so that fewer are divided by.
//!
//! With `q = x / c` and `u` the unit, the reciprocal is rounded, which moves the product by less than one unit in the last place of `q` (`u` relatively, and `q` is less than `1 / u`
//! halves of its unit); the product is rounded by half a unit, of the next binade perhaps, so it is less than two units from `q`. The reference is half a unit from `q`, and both are
//! numbers of the type: they are at most [`ULPS`] apart.
//!
//! That is so where the reciprocal is a normal number. Of divisors so large that it is denormal (or flushed) it is off by so much absolutely, times `x`; of divisors so small that it
//! overflows nothing is known of the product.

use hlo::{AttrKey, InstrId, Module, Opcode};
use rustc_hash::FxHashSet;

use super::Radii;
use super::limits::Limits;
use super::number::{Format, Numbers};
use super::rules::{Case, Mode};

/// How many units in the last place a product with the reciprocal is at most from the quotient, both rounded.
const ULPS: f64 = 2.0;

/// How many instructions are looked at before a divisor; one that is computed by more counts as one that repeats numbers.
const MOST_INSTRUCTIONS: usize = 64;

/// Whether an instruction is a division that may be such a product.
pub(super) fn applies(case: &Case<'_>) -> bool {
    case.settings.allowances.reciprocals
        && case.opcode() == Opcode::Divide
        && case.results.first().is_some_and(|t| Format::of(t.element_type()).is_some())
        && case.instr.operands().get(1).is_some_and(|&c| repeats(case.module, c, case.settings.nested))
}

/// Whether a value may repeat numbers, or be a constant once a compiler has folded it: computed from constants and broadcasts alone. What is handed to a
/// computation counts as what a caller has; `nested`: callers are not known.
fn repeats(module: &Module, divisor: InstrId, nested: bool) -> bool {
    let mut seen = FxHashSet::default();
    let mut pending = vec![divisor];
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        if seen.len() > MOST_INSTRUCTIONS {
            return true;
        }
        let instr = module.instr(id);
        match instr.opcode {
            Opcode::Constant | Opcode::Broadcast => {}
            Opcode::Parameter if nested => {}
            Opcode::Parameter if instr.parent() == module.entry() => return false,
            // Loops, branches and tuples are not followed.
            Opcode::Parameter => {
                let number = instr.parameter_number().and_then(|n| usize::try_from(n).ok());
                pending.extend(number.and_then(|n| only_passed(module, instr.parent(), n)));
            }
            Opcode::GetTupleElement | Opcode::Call | Opcode::Fusion | Opcode::While | Opcode::Conditional => {
            }
            _ if instr.operands().is_empty() => return false,
            _ => pending.extend(instr.operands()),
        }
    }
    true
}

/// The operand that a computation is called with, if there is one caller and it hands its operands on as they are.
fn only_passed(module: &Module, computation: hlo::ComputationId, number: usize) -> Option<InstrId> {
    let mut callers = module.computations().iter().flat_map(|&c| module.instructions(c)).filter(|&id| {
        let instr = module.instr(id);
        [AttrKey::Calls, AttrKey::ToApply]
            .iter()
            .any(|&key| instr.attrs.computation(key) == Some(computation))
            || instr.attrs.called_computations().contains(&computation)
    });
    let caller = module.instr(callers.next()?);
    let plain =
        matches!(caller.opcode, Opcode::Call | Opcode::Fusion | Opcode::Map) && callers.next().is_none();
    caller.operands().get(number).copied().filter(|_| plain)
}

/// The radii of quotients, of operands that are off by `radii`, with those of products in their place.
pub(super) fn widened(case: &Case<'_>, radii: &[Radii], quotients: Radii, mode: Mode) -> Radii {
    let ([x, c], [result]) = (&case.args[..], &case.results[..]) else { return quotients };
    let (Some(format), v) = (Format::of(result.element_type()), Numbers::of(result)) else {
        return quotients;
    };
    let (xs, cs) = (Numbers::of(x.tensor), Numbers::of(c.tensor));
    let operand = |of: &Numbers, k: usize, i: usize| {
        let i = if of.len() == 1 { 0 } else { i };
        let off = radii[k].at(i) * if of.im.is_some() { super::complex::SQRT_2 } else { 1.0 };
        Divided { size: of.modulus(i), off }
    };
    let product = Product {
        format,
        mode,
        flushed: case.settings.allowances.flush_denormals,
        ulps: if v.im.is_some() { complex_ulps(case) } else { ULPS },
        complex: v.im.is_some(),
    };
    quotients.mapped(v.len(), |i, r, limits| {
        let size = v.modulus(i);
        match product.apart(size, r, operand(&xs, 0, i), operand(&cs, 1, i)) {
            0.0 => (r, limits),
            apart => {
                let wider = if product.is_regular(operand(&cs, 1, i)) { limits } else { Limits::NONE };
                let wider = wider.wider(|end| 2.0 * (ULPS + 1.0) * format.ulp(end));
                ((r + apart).next_up(), wider)
            }
        }
    })
}

/// Units of the modulus: those of a quotient and of a product, and what the reciprocal is rounded by in addition.
fn complex_ulps(case: &Case<'_>) -> f64 {
    let ty = case.results[0].element_type();
    let of = |opcode| f64::from(case.settings.allowances.functions.ulps(opcode, ty));
    2.0 * (of(Opcode::Divide) + of(Opcode::Multiply) + ULPS)
}

/// An operand's magnitude, and how far off it is.
#[derive(Clone, Copy)]
struct Divided {
    size: f64,
    off: f64,
}

/// How products are computed.
struct Product {
    format: Format,
    mode: Mode,
    flushed: bool,
    ulps: f64,
    complex: bool,
}

impl Product {
    /// What a reciprocal may lose that is too small to be normal.
    fn lost(&self) -> f64 {
        if self.flushed { self.format.flushes_below() } else { self.format.least() }
    }

    /// Whether the reciprocals of all that a divisor may be are normal numbers.
    fn is_regular(&self, c: Divided) -> bool {
        let (least, most) = (c.size - c.off, c.size + c.off);
        // Reciprocals of complex numbers go by way of squares.
        let (low, high) = if self.complex {
            (2.0 * self.format.min_normal().sqrt(), self.format.max.sqrt() / 2.0)
        } else {
            (2.0 / self.format.max, 0.5 / self.format.flushes_below())
        };
        least > low && most < high
    }

    /// How much farther the product is off than a quotient of magnitude `v` that is off by `r`.
    fn apart(&self, v: f64, r: f64, x: Divided, c: Divided) -> f64 {
        const UNKNOWN: f64 = f64::INFINITY;
        let format = self.format;
        let zero = |of: Divided| of.size == 0.0 && of.off == 0.0;
        // NaNs are those of either, a quotient by 0 is the product with an infinity, and of 0 both are 0 where the reciprocal is a number.
        if v.is_nan() || r.is_infinite() || zero(c) && !zero(x) {
            return 0.0;
        }
        let regular = self.is_regular(c);
        if zero(x) && (regular || c.size.is_infinite() || c.size - c.off > 2.0 / format.max && !self.complex)
        {
            return 0.0;
        }
        if x.size.is_infinite() || c.size.is_infinite() {
            return if regular || x.size.is_finite() { 0.0 } else { UNKNOWN };
        }
        if v.is_infinite() {
            // Too large: the product may be just below that.
            return if self.mode == Mode::Hard { UNKNOWN } else { 0.0 };
        }
        let mut off = 0.0;
        if !regular {
            if self.complex || c.size - c.off <= 2.0 / format.max {
                return UNKNOWN;
            }
            off += (x.size + x.off) * self.lost() * (1.0 + 4.0 * f64::EPSILON);
        }
        let reached = v + r + off;
        off += self.ulps * format.ulp(reached + self.ulps * format.ulp(reached));
        if self.flushed && v - r - off < format.flushes_below() {
            off += 2.0 * format.flushes_below();
        }
        if self.mode == Mode::Hard && v + r + off > format.max && !format.saturates { UNKNOWN } else { off }
    }
}
