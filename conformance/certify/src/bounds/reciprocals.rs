//! Quotients and roots that a compiler may compute otherwise, by the rules of real numbers:
//!
//! - `x / c` as `x * (1 / c)`, where `c` repeats numbers, so that fewer are divided by, or is a constant;
//! - `x / exp(y)` as `x * exp(-y)`, and the same of powers;
//! - `x / sqrt(y)` as `x * rsqrt(y)`, and the other way around;
//! - `(x / b) / c` as `x / (b * c)`, and `x / (b / c)` as `x * c / b`, where the products are normal numbers;
//! - `(x * b) * c`, `(x / b) * c` and `(x * b) / c` as `x` times one number, where `c` is a constant or
//!   repeats numbers;
//! - `log(sqrt(x))` as `0.5 * log(x)`, and `sqrt(x) * sqrt(x)` as `x`: what the root rounded is not lost there.
//!
//! With `q = x / c` and `u` the unit, the reciprocal is rounded, which moves the product by less than one
//! unit in the last place of `q` (a relative `u` of less than `1 / u` half units); the product is rounded by
//! half a unit, of the next binade perhaps, so it is less than two units from `q`. The reference is half a
//! unit from `q`, and both are numbers of the type: they are at most [`ULPS`] apart. That is so where the
//! reciprocal is a normal number. Where the divisor is so large that the reciprocal is denormal (or flushed),
//! its absolute error is multiplied by `x`; of divisors so small that it overflows nothing is known of the
//! product.
//!
//! Of the others each way has one rounding more than there are operations, each of a relative `u`, which is
//! at most a unit in the last place: those of the reference, and as many of the engine.

use hlo::{AttrKey, InstrId, Module, Opcode};
use hlo_execution::format::Format;
use hlo_interp::Tensor;
use rustc_hash::FxHashSet;

use super::Radii;
use super::limits::Limits;
use super::number::Numbers;
use super::rules::{Case, Mode, moves};

/// How many units in the last place a product with the reciprocal is at most from the quotient, both rounded.
const ULPS: f64 = 2.0;

/// The same of two quotients in one another: two roundings each way.
const REGROUPED_ULPS: f64 = 4.0;

/// How many instructions are looked at before a divisor; one that is computed by more counts as one that
/// repeats numbers.
const MAX_INSTRUCTIONS: usize = 64;

/// How a quotient may be computed.
#[derive(Clone, Copy, Default)]
struct Ways {
    /// By the reciprocal.
    reciprocal: bool,
    /// By a function of the negative exponent: it is not 0 where the divisor is infinite.
    function: bool,
    /// By the other root.
    root: bool,
    /// With the operands of another quotient or product.
    regrouped: bool,
    /// Of a product, the operand that may be multiplied with a factor of the other one.
    gathered: Option<usize>,
}

/// Whether an instruction is a division, or a multiplication, that may be computed otherwise.
pub(super) fn applies(case: &Case<'_>) -> bool {
    let w = ways(case);
    w.reciprocal || w.function || w.root || w.regrouped || w.gathered.is_some()
}

fn ways(case: &Case<'_>) -> Ways {
    let float = case.results.first().is_some_and(|t| Format::of(t.element_type()).is_some());
    let &[x, c] = case.instr.operands() else { return Ways::default() };
    let quotient = matches!(case.opcode(), Opcode::Divide | Opcode::Multiply);
    if !(case.settings.allowances.reciprocals && quotient && float) {
        return Ways::default();
    }
    let nested = case.settings.nested;
    // Of what callers hand to an applied computation nothing is known.
    let of = |id: InstrId| source(case.module, id, nested);
    let is = |opcode: Option<Opcode>, of: &[Opcode]| opcode.is_none_or(|opcode| of.contains(&opcode));
    let chain = [Opcode::Divide, Opcode::Multiply];
    if case.opcode() == Opcode::Multiply {
        let gathers = |by: InstrId, other: InstrId| repeats(case.module, by, false) && is(of(other), &chain);
        let gathered = if gathers(c, x) { Some(1) } else { gathers(x, c).then_some(0) };
        return Ways { gathered, ..Ways::default() };
    }
    let (x, divisor) = (of(x), of(c));
    let function = is(divisor, &[Opcode::Exponential, Opcode::Power]);
    Ways {
        reciprocal: function || repeats(case.module, c, nested),
        function,
        root: is(divisor, &[Opcode::Sqrt, Opcode::Rsqrt]),
        regrouped: is(x, &chain) || is(divisor, &[Opcode::Divide]),
        gathered: None,
    }
}

/// Whether an instruction is a logarithm of a root, or its square.
pub(super) fn undoes_root(case: &Case<'_>) -> bool {
    let operand = match (case.opcode(), case.instr.operands()) {
        (Opcode::Log, &[x]) => x,
        (Opcode::Multiply, &[x, y]) if x == y => x,
        (_, _) => return false,
    };
    let real = case.results.first().is_some_and(|t| t.element_type().is_float());
    case.settings.allowances.reciprocals
        && real
        && source(case.module, operand, case.settings.nested) == Some(Opcode::Sqrt)
}

/// Radii of a root that may not have been rounded.
pub(super) fn unrounded_root(root: &Tensor, radii: &Radii) -> Radii {
    let (Some(format), x) = (Format::of(root.element_type()), Numbers::of(root)) else {
        return radii.clone();
    };
    radii.mapped(x.len(), |i, r, limits| match x.re[i] {
        root if root.is_finite() && root > 0.0 => {
            ((r + format.ulp(root) / 2.0).next_up(), limits.wider(|x| format.ulp(x)))
        }
        // A root is 0 of 0 alone.
        _ => (r, limits),
    })
}

/// The opcode that computes a value, movements and calls aside. `None`: it is not known.
fn source(module: &Module, id: InstrId, nested: bool) -> Option<Opcode> {
    origin(module, id, nested).map(|id| module.instr(id).opcode)
}

/// The instruction that computes a value, movements and calls aside. `None`: it is not known; `nested`: nor
/// are callers.
pub(super) fn origin(module: &Module, mut id: InstrId, nested: bool) -> Option<InstrId> {
    for _ in 0..MAX_INSTRUCTIONS {
        let instr = module.instr(id);
        id = match instr.opcode {
            Opcode::Parameter if nested => return None,
            Opcode::Parameter if instr.parent() != module.entry() => {
                let number = instr.parameter_number().and_then(|n| usize::try_from(n).ok())?;
                only_passed(module, instr.parent(), number)?
            }
            opcode if moves(opcode) && instr.operands().len() == 1 => instr.operands()[0],
            _ => return Some(id),
        };
    }
    None
}

/// Whether a value may repeat numbers, or be a constant once a compiler has folded it: computed from
/// constants and broadcasts alone. What is handed to a computation counts as what a caller has; `nested`:
/// callers are not known.
fn repeats(module: &Module, divisor: InstrId, nested: bool) -> bool {
    let mut seen = FxHashSet::default();
    let mut pending = vec![divisor];
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        if seen.len() > MAX_INSTRUCTIONS {
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

/// The operand that a computation is called with, if there is one caller and it hands its operands on as they
/// are.
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

/// The radii of quotients whose operands are off by `radii`, products by reciprocals included.
pub(super) fn widened(case: &Case<'_>, radii: &[Radii], quotients: Radii, mode: Mode) -> Radii {
    let ([x, c], [result]) = (&case.args[..], &case.results[..]) else { return quotients };
    let (Some(format), v) = (Format::of(result.element_type()), Numbers::of(result)) else {
        return quotients;
    };
    let (xs, cs) = (Numbers::of(x.tensor), Numbers::of(c.tensor));
    let operand = |of: &Numbers, k: usize, i: usize| {
        let i = if of.len() == 1 { 0 } else { i };
        let off = radii[k].at(i) * if of.im.is_some() { hlo_perturbation::disc::SQRT_2 } else { 1.0 };
        Divided { size: of.modulus(i), off }
    };
    let product = Product {
        format,
        mode,
        flushed: case.settings.allowances.flush_denormals,
        ulps: units(case, v.im.is_some()),
        ways: ways(case),
        complex: v.im.is_some(),
    };
    quotients.mapped(v.len(), |i, r, limits| {
        let size = v.modulus(i);
        let operands = [operand(&xs, 0, i), operand(&cs, 1, i)];
        let apart = match product.ways.gathered {
            Some(k) => product.gathered(size, r, operands[k]),
            None => product.apart(size, r, operands[0], operands[1]),
        };
        match apart {
            0.0 => (r, limits),
            apart => {
                let regular = !product.ways.reciprocal || product.is_regular(operand(&cs, 1, i));
                let wider = if regular { limits } else { Limits::NONE };
                let wider = wider.wider(|end| 2.0 * (product.ulps + 1.0) * format.ulp(end));
                ((r + apart).next_up(), wider)
            }
        }
    })
}

/// How many units in the last place (of complex numbers, of the modulus) the other ways are off by, reference
/// and engine together.
fn units(case: &Case<'_>, complex: bool) -> f64 {
    let ty = case.results[0].element_type();
    let of = |opcode| f64::from(case.settings.allowances.functions.ulps(opcode, ty));
    let ways = ways(case);
    let mut units = 0.0;
    if ways.reciprocal {
        units += ULPS;
    }
    if ways.root {
        // Each of both functions and of what follows rounds; a unit of a function is two of the quotient at
        // most.
        units += 4.0 + 2.0 * of(Opcode::Rsqrt).max(of(Opcode::Sqrt));
    }
    if ways.regrouped || ways.gathered.is_some() {
        units += REGROUPED_ULPS;
    }
    if complex { 2.0 * (of(Opcode::Divide) + of(Opcode::Multiply) + units) } else { units }
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
    ways: Ways,
    complex: bool,
}

impl Product {
    /// What a reciprocal may lose that is too small to be normal.
    fn lost(&self) -> f64 {
        if self.flushed { self.format.flushes_below() } else { self.format.min_positive() }
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

    /// How much farther a product of magnitude `v` is off that is off by `r`, where `c` may be multiplied
    /// with a factor of the other operand first: that may be too small to be normal.
    fn gathered(&self, v: f64, r: f64, c: Divided) -> f64 {
        if v.is_nan() || r.is_infinite() || c.size.is_infinite() {
            return 0.0;
        }
        if v.is_infinite() {
            return if self.mode == Mode::Hard { f64::INFINITY } else { 0.0 };
        }
        let off = (c.size + c.off) * self.lost();
        self.rounded(v, r, off)
    }

    /// With the units of a way, of a number of magnitude `v` that is off by `r` and `off`.
    fn rounded(&self, v: f64, r: f64, mut off: f64) -> f64 {
        let format = self.format;
        let reached = v + r + off;
        off += self.ulps * format.ulp(reached + self.ulps * format.ulp(reached));
        if self.flushed && v - r - off < format.flushes_below() {
            off += 2.0 * format.flushes_below();
        }
        let overflows = self.mode == Mode::Hard && v + r + off > format.max && !format.saturates;
        if overflows { f64::INFINITY } else { off }
    }

    /// How much farther the product is off than a quotient of magnitude `v` that is off by `r`.
    fn apart(&self, v: f64, r: f64, x: Divided, c: Divided) -> f64 {
        const UNKNOWN: f64 = f64::INFINITY;
        let format = self.format;
        let zero = |of: Divided| of.size == 0.0 && of.off == 0.0;
        // NaNs are those of either, a quotient by 0 is the product with an infinity, and of 0 both are 0
        // where the reciprocal is a number.
        if v.is_nan() || r.is_infinite() || zero(c) && !zero(x) {
            return 0.0;
        }
        let regular = !self.ways.reciprocal || self.is_regular(c);
        if zero(x) && (regular || c.size.is_infinite() || c.size - c.off > 2.0 / format.max && !self.complex)
        {
            return 0.0;
        }
        if self.ways.function && c.size.is_infinite() && x.size.is_finite() {
            // A function that is too large has a reciprocal below the least normal number, and not 0.
            return 2.0 * (x.size + x.off) * format.min_normal();
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
        self.rounded(v, r, off)
    }
}
