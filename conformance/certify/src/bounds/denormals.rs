//! Functions of denormal numbers that may be flushed: what they give of the number, or of the zero of its
//! sign, and nothing between.
//!
//! An interval from zero to the number says little of a function that has a pole or a steep rise there. But
//! an engine flushes an operand or it does not: of operands that are known, there are as many values as ways
//! to flush them, each within the function's units in the last place, and a denormal result may be flushed
//! itself. These are the ranges ([`super::Radii::in_ranges`]) of the result: what is in one of them is
//! explained, an infinity or NaN that one of the ways gives too, and anything else is wrong.
//!
//! What chooses among its operands (a maximum, a clamp) may compare the zeros and give the numbers, and is
//! not looked at here; nor is what adds and multiplies, whose intervals are near enough, nor complex
//! arithmetic, whose formulas underflow on the way.

use hlo::opcode::Numeric;
use hlo::{Opcode, TypeClass};
use hlo_execution::format::Format;
use hlo_execution::special::Special;
use hlo_interp::{Tensor, Value};

use super::number::{Numbers, flushed, is_denormal};
use super::probe::Probe;
use super::rules::{Arg, Case, Kind, Mode, kind};
use super::special::Specials;
use super::{Leaf, Ranges, elementwise, plain, reciprocals};

/// The greatest number of operands: with each flushed or not there are 2^n results.
const MAX_OPERANDS: usize = 3;

/// The most elements of a result that are looked at.
const MAX_ELEMENTS: usize = 1 << 16;

/// Puts the ranges, and the infinities and NaNs, of an elementwise function of denormal numbers beside its
/// bounds.
pub(super) fn beside(case: &Case<'_>, leaves: &mut [Leaf]) {
    let ([leaf], [result]) = (leaves, &case.results[..]) else { return };
    if leaf.bounds.hard.is_zero() || !applies(case, result) {
        return;
    }
    let ty = result.element_type();
    let (Some(ways), Some(format)) = (ways(case), Format::of(ty)) else { return };
    // A narrow result may be rounded twice.
    let twice = case.settings.allowances.excess_precision && format.precision < 24;
    let ulps = case.ulps(ty) + f64::from(u8::from(twice));
    let mut specials: Vec<Special> = (0..result.len()).map(|i| leaf.bounds.specials.at(i)).collect();
    let open = |i: usize| leaf.bounds.hard.at(i) > 0.0 && flushes_somewhere(case, i);
    let of = |i: usize| -> Ranges {
        if !open(i) {
            return Ranges::default();
        }
        let mut ranges: Vec<[f64; 2]> = Vec::new();
        let mut add = |range: [f64; 2]| {
            if !ranges.contains(&range) {
                ranges.push(range);
            }
        };
        for way in &ways {
            let v = way.re[i];
            if v.is_nan() {
                continue;
            }
            let wider = match v.is_finite() && ulps > 0.0 {
                true => ulps * format.ulp(v.abs() + ulps * format.ulp(v)),
                false => 0.0,
            };
            let (mut low, mut high) = (v - wider, v + wider);
            // Beyond the greatest number there are infinities, or nothing.
            if low < -format.max {
                low = f64::NEG_INFINITY;
            }
            if high > format.max {
                high = f64::INFINITY;
            }
            add([low, high]);
            if low < format.flushes_below() && high > -format.flushes_below() {
                add([0.0, 0.0]);
            }
        }
        ranges.into_boxed_slice()
    };
    let ranges: Vec<Ranges> = (0..result.len()).map(of).collect();
    for (i, special) in specials.iter_mut().enumerate().filter(|(i, _)| open(*i)) {
        *special = ways.iter().fold(*special, |all, way| all.or(Special::of(way.re[i])));
    }
    leaf.bounds.specials = Specials::new(specials);
    let (soft, hard) = (std::mem::take(&mut leaf.bounds.soft), std::mem::take(&mut leaf.bounds.hard));
    leaf.bounds.soft = soft.in_ranges(Some(ranges.clone()));
    leaf.bounds.hard = hard.in_ranges(Some(ranges));
}

/// Whether an instruction is a function of real floats that is bounded here.
fn applies(case: &Case<'_>, result: &Tensor) -> bool {
    let float = |t: &Tensor| {
        t.element_type().class() == TypeClass::Float
            && Format::of(t.element_type()).is_some_and(Format::has_zero)
    };
    let n = result.len();
    let function = matches!(case.opcode(), Opcode::Divide | Opcode::Sqrt)
        || matches!(case.opcode().numeric(result.element_type()), Numeric::Ulp(_));
    case.settings.allowances.flush_denormals
        && kind(case.opcode()) == Kind::Elementwise
        && function
        && float(result)
        && n <= MAX_ELEMENTS
        && (1..=MAX_OPERANDS).contains(&case.args.len())
        && case.args.iter().all(|a| float(a.tensor) && (a.tensor.len() == n || a.tensor.len() == 1))
        && case.args.iter().all(|a| elementwise::flushes(case.opcode(), a.tensor.element_type()))
        && !reciprocals::applies(case)
}

fn at(arg: &Arg<'_>, i: usize) -> usize {
    if arg.tensor.len() == 1 { 0 } else { i }
}

/// Whether all operands of an element are known and one of them is denormal.
fn flushes_somewhere(case: &Case<'_>, i: usize) -> bool {
    let known = |a: &Arg<'_>| a.leaf.bounds.radii(Mode::Hard).at(at(a, i)) == 0.0;
    let denormal = |a: &Arg<'_>| {
        let format = Format::of(a.tensor.element_type());
        format.is_some_and(|format| is_denormal(plain::at(a.tensor, at(a, i)), format))
    };
    case.args.iter().all(known) && case.args.iter().any(denormal)
}

/// The results of the instruction with each choice of operands whose denormal numbers are flushed, the one
/// without any first. `None`: no operand has any, or it does not run.
fn ways(case: &Case<'_>) -> Option<Vec<Numbers>> {
    let flushed: Vec<Option<Tensor>> = case.args.iter().map(|a| flushed(a.tensor)).collect();
    let some: Vec<usize> = (0..flushed.len()).filter(|&k| flushed[k].is_some()).collect();
    if some.is_empty() {
        return None;
    }
    let probe = Probe::on(case)?;
    let choices = 0..1usize << some.len();
    let each = choices.map(|choice| {
        let args = case.args.iter().enumerate().map(|(k, a)| {
            let zero = some.iter().position(|&s| s == k).is_some_and(|bit| choice >> bit & 1 == 1);
            let of = flushed[k].as_ref().filter(|_| zero);
            Value::Array(of.unwrap_or(a.tensor).clone())
        });
        Some(Numbers::of(probe.run(case.settings, args.collect())?.as_array()?))
    });
    each.collect()
}
