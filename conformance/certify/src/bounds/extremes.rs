//! Folds by a maximum or a minimum, and by `and` or `or` of predicates: what is monotone and selects one of
//! its elements.
//!
//! The ends of the operands' intervals give the ends of the results'. Where denormal numbers are flushed, the
//! comparison may take all of them, and zeros, for equal, and what it selects is not flushed: a result that
//! may be one of them may be any of them.

use hlo::{ElementType, Opcode};
use hlo_execution::format::Format;
use hlo_interp::{Tensor, Value};

use super::Radii;
use super::interval::Interval;
use super::lexicographic;
use super::limits::Limits;
use super::number::{Numbers, tensor};
use super::operand::{Operand, operand};
use super::probe::{Probe, Regions, retyped};
use super::rules::{Case, Found, Mode};
use super::sums::{has_inexact_indices, is_index_operand, moved_shapes};

/// Folds by a monotone operation that selects: the ends of the operands' intervals give the ends of the
/// results'.
pub(super) fn bounds(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let unknown = || case.results.iter().map(|t| Radii::unknown(t.len())).collect();
    if has_inexact_indices(case, radii) {
        return (mode == Mode::Hard).then(unknown);
    }
    let complex = case.args.iter().any(|a| a.tensor.element_type().is_complex());
    if complex || case.opcode() == Opcode::SelectAndScatter {
        if radii.iter().all(Radii::is_zero) && !case.settings.allowances.flush_denormals {
            return Some(case.results.iter().map(|_| Radii::Zero).collect());
        }
        return lexicographic::bounds(case, radii, mode);
    }
    let operands: Vec<_> = case.args.iter().zip(radii).map(|(a, r)| operand(case, a, r)).collect();
    let probe = Probe::retyped(case.module, case.instr, &|t| t)?;
    let run = |high: bool| -> Option<Vec<Tensor>> {
        let args = operands.iter().map(|x| Value::Array(x.end(high)));
        let value = probe.run(case.settings, args.collect())?;
        Some(value.arrays().into_iter().cloned().collect())
    };
    let (mut low, mut high) = (run(false)?, run(true)?);
    if case.settings.allowances.flush_denormals && operands.iter().any(Operand::has_taken_for_zero) {
        let end = |high: bool| {
            folded(case, if high { Opcode::Maximum } else { Opcode::Minimum }, &|k| {
                operands[k].taken_for_zero(high)
            })
        };
        with_ties(&mut low, &mut high, [&end(false)?, &end(true)?]);
    }
    let touched =
        if operands.iter().any(Operand::has_unknown) { Some(touched(case, &operands)?) } else { None };
    let arrays = case.results.iter().enumerate();
    arrays
        .map(|(k, result)| {
            let radii = between(result, low.get(k)?, high.get(k)?, mode);
            let Some(touched) = &touched else { return Some(radii) };
            let touched = touched.get(k)?;
            Some(radii.mapped(result.len(), |i, r, limits| {
                if touched[i] > 0.0 { (f64::INFINITY, Limits::NONE) } else { (r, limits) }
            }))
        })
        .collect()
}

/// The radii of results of a monotone operation, from those at the ends of the operands' intervals.
pub(super) fn between(result: &Tensor, low: &Tensor, high: &Tensor, mode: Mode) -> Radii {
    let (v, low, high) = (Numbers::of(result), Numbers::of(low), Numbers::of(high));
    let format = Format::of(v.ty);
    let least = format.map_or(0.0, Format::min_positive);
    let each = |i: usize| {
        let (l, x, h) = (low.re[i], v.re[i], high.re[i]);
        let same =
            |a: f64| a.is_nan() && x.is_nan() || a == x && a.is_sign_negative() == x.is_sign_negative();
        if same(l) && same(h) {
            return 0.0;
        }
        if !(l.is_finite() && x.is_finite() && h.is_finite()) {
            return if mode == Mode::Soft && !x.is_finite() { 0.0 } else { f64::INFINITY };
        }
        (h - x).max(x - l).next_up().max(least)
    };
    let limits = |i: usize| {
        let numbers = v.im.is_none() && !v.re[i].is_nan() && format.is_some();
        if numbers { Limits::new(low.re[i], high.re[i]) } else { Limits::NONE }
    };
    let (each, limits) = (0..v.len()).map(|i| limits(i).narrow(v.re[i], each(i))).unzip();
    Radii::limited(each, limits)
}

/// What of results may be another element: `ties` are the least and the greatest elements that a comparison
/// that flushes treats as zero.
pub(super) fn with_ties(low: &mut [Tensor], high: &mut [Tensor], ties: [&[Tensor]; 2]) {
    let ends = low.iter_mut().zip(high).zip(ties[0].iter().zip(ties[1]));
    for ((low, high), (least, greatest)) in ends {
        let Some(format) = Format::of(low.element_type()) else { continue };
        let (mut l, mut h) = (Numbers::of(low).re, Numbers::of(high).re);
        let (least, greatest) = (Numbers::of(least).re, Numbers::of(greatest).re);
        for i in 0..l.len() {
            let result = Interval { low: l[i], high: h[i], unknown: false };
            if result.holds_zeros(format) {
                (l[i], h[i]) = (l[i].min(least[i]), h[i].max(greatest[i]));
            }
        }
        *low = tensor(low.element_type(), low.dims(), &l);
        *high = tensor(high.element_type(), high.dims(), &h);
    }
}

/// How many unknown elements each element of the result is computed from.
fn touched(case: &Case<'_>, operands: &[Operand<'_>]) -> Option<Vec<Vec<f64>>> {
    let flags = |k: usize| tensor(ElementType::F64, operands[k].tensor.dims(), &operands[k].unknown_flags());
    let sums = folded(case, Opcode::Add, &flags)?;
    Some(sums.iter().map(|t| Numbers::of(t).re).collect())
}

/// The instruction as a fold by another operation, of other operands, in f64; where elements go stays as it
/// is.
pub(super) fn folded(case: &Case<'_>, by: Opcode, operand: &dyn Fn(usize) -> Tensor) -> Option<Vec<Tensor>> {
    let shapes = moved_shapes(case, &|_| ElementType::F64);
    let result = retyped(&case.instr.shape, &|_| ElementType::F64);
    let regions = Regions::Fold(by, ElementType::F64);
    let probe = Probe::new(case.module, case.instr, &shapes, result, &regions)?;
    let args = case.args.iter().enumerate();
    let args = args.map(|(k, arg)| {
        Value::Array(if is_index_operand(case, k) { arg.tensor.clone() } else { operand(k) })
    });
    let value = probe.run(case.settings, args.collect())?;
    Some(value.arrays().into_iter().cloned().collect())
}
