//! Results of types of a byte and less that are rounded twice: computed in f16 and then converted, as who
//! keeps excess precision may.
//!
//! Rounding to a type of precision `p` by way of one of at least `2 p + 2` is as if once for sums, products,
//! quotients and square roots (Figueroa, When is double rounding innocuous?, 1995). f16 has 11 bits: that is
//! too few for f8e3m4, which has 5, and for other functions in any type. Where the exact result is so near to
//! the middle of two numbers that f16 has that middle, ties go to the even one.
//!
//! What is a NaN in f16 becomes a zero in types without NaN, whose sign is the NaN's: IEEE 754 says nothing
//! of that. So a zero divided by anything is a zero in these types.
//!
//! The exact result is that of the same instruction in f64, which is far nearer to it than any middle in f16
//! that it is not.

use hlo::{ElementType, Opcode};
use hlo_execution::format::{Format, rounded};
use hlo_interp::Value;

use super::Radii;
use super::number::{Numbers, tensor};
use super::probe::{Probe, Regions, retyped};
use super::rules::{Case, Kind, Mode, kind};

/// Types with more bits of precision have f32 in between, which is wide enough for them.
const MAX_PRECISION: i32 = 5;

/// The radii of a result, of operands that are off by `radii`, if it may be rounded twice.
pub(super) fn widened(case: &Case<'_>, radii: &[Radii], found: Radii, mode: Mode) -> Radii {
    let ([result], Kind::Elementwise) = (&case.results[..], kind(case.opcode())) else { return found };
    let ty = result.element_type();
    let real = ty.is_float() && case.args.iter().all(|a| !a.tensor.element_type().is_complex());
    let Some(format) = Format::of(ty).filter(|f| real && f.has_zero() && f.precision <= MAX_PRECISION) else {
        return found;
    };
    let v = Numbers::of(result);
    if radii.iter().any(|r| !r.is_zero()) {
        // The ends of intervals are rounded once: by another rounding one unit further out at most.
        let divides = case.opcode() == Opcode::Divide && format.saturates;
        let numerator = divides.then(|| Numbers::of(case.args[0].tensor));
        return found.mapped(v.len(), |i, r, limits| {
            if numerator.as_ref().is_some_and(|x| x.re[i] == 0.0 && radii[0].at(i) == 0.0) {
                return (format.min_positive(), limits);
            }
            let wider = if r > 0.0 { format.ulp(v.re[i].abs() + r) } else { 0.0 };
            (r + wider, limits.wider(|end| 2.0 * format.ulp(end)))
        });
    }
    let Some((exact, twice)) = twice(case, ty) else { return Radii::unknown(v.len()) };
    found.mapped(v.len(), |i, r, limits| {
        // A NaN becomes a zero in a type that has none, and nothing says of which sign.
        if exact[i].is_nan() && v.re[i] == 0.0 {
            return (r.max(format.min_positive()), limits);
        }
        let apart = (twice[i] - v.re[i]).abs();
        match apart {
            _ if twice[i] == v.re[i] || v.re[i].is_nan() => (r, limits),
            apart if apart.is_finite() => (r.max(apart), limits),
            // Only one of them is too large for the type.
            _ => (if mode == Mode::Hard { f64::INFINITY } else { r }, limits),
        }
    })
}

/// The results in f64, and these rounded to f16 and then to the type. `None`: the instruction is not to be
/// had in f64.
fn twice(case: &Case<'_>, ty: ElementType) -> Option<(Vec<f64>, Vec<f64>)> {
    let wide = |ty: ElementType| if Format::of(ty).is_some() { ElementType::F64 } else { ty };
    let shapes: Vec<hlo::Shape> =
        case.args.iter().map(|a| retyped(&hlo::Shape::Array(a.tensor.shape()), &wide)).collect();
    let result = retyped(&hlo::Shape::Array(case.results[0].shape()), &wide);
    let probe = Probe::new(case.module, case.instr, &shapes, result, &Regions::Retyped(&wide))?;
    let args = case.args.iter().map(|a| {
        let to = wide(a.tensor.element_type());
        Value::Array(if to == a.tensor.element_type() {
            a.tensor.clone()
        } else {
            tensor(to, a.tensor.dims(), &Numbers::of(a.tensor).re)
        })
    });
    let value = probe.run(case.settings, args.collect())?;
    let exact = Numbers::of(value.as_array()?).re;
    let twice = rounded(ty, &rounded(ElementType::F16, &exact));
    Some((exact, twice))
}
