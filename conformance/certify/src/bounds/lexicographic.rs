//! Folds of complex numbers by a maximum or a minimum: by real parts, and by imaginary parts where those are
//! equal.
//!
//! The real part of a result is between the folds of the ends of real parts. Lexicographic order is not
//! continuous in the imaginary part: where real parts may be equal, or another one may be the extreme, it is
//! that of any candidate. Zeros of both signs are equal, and denormal numbers are equal to them where they are
//! flushed; what is selected is not flushed.

use hlo::{ElementType, Opcode};
use hlo_execution::format::Format;
use hlo_interp::Tensor;

use super::Radii;
use super::extremes::folded;
use super::number::{Numbers, tensor};
use super::rules::{Case, Found, Mode, folds_by};

/// Folds of complex numbers by a maximum or a minimum, in any order; those that are NaN are. Not of elements
/// that are selected, which may be others.
pub(super) fn bounds(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    if case.opcode() == Opcode::SelectAndScatter {
        return None;
    }
    let by = folds_by(case)?;
    let [result] = case.results[..] else { return None };
    let format = Format::of(result.element_type())?;
    let operands: Vec<Numbers> = case.args.iter().map(|a| Numbers::of(a.tensor)).collect();
    let flush = case.settings.allowances.flush_denormals;
    let is_zero = |x: f64| x == 0.0 || flush && x.abs() < format.flushes_below();
    // The fold of an f64 that is computed from each element: its parts and its radius.
    let fold = |by: Opcode, of: &dyn Fn(f64, f64, f64) -> f64| -> Option<Vec<f64>> {
        let operand = |k: usize| {
            let x = &operands[k];
            let each = (0..x.len()).map(|i| of(x.re[i], x.at(i).1, radii[k].at(i)));
            tensor(ElementType::F64, case.args[k].tensor.dims(), &each.collect::<Vec<f64>>())
        };
        folded(case, by, &operand)?.first().map(|t: &Tensor| Numbers::of(t).re)
    };
    let off = fold(Opcode::Maximum, &|_, _, r| if r.is_finite() { r } else { f64::INFINITY })?;
    if mode == Mode::Soft && off.iter().any(|&r| r > 0.0) {
        // Whichever is selected is off by no more than the one that is off the most.
        return Some(vec![Radii::new(off)]);
    }
    // What may be flushed may be 0.
    let low = fold(by, &|re, _, r| if is_zero(re - r) { (re - r).min(0.0) } else { re - r })?;
    let high = fold(by, &|re, _, r| if is_zero(re + r) { (re + r).max(0.0) } else { re + r })?;
    // The ends of a part over the elements whose real part, or whose imaginary part, is a zero.
    let ends = |pick: &dyn Fn(f64, f64) -> (f64, f64)| -> Option<[Vec<f64>; 2]> {
        let end = |by: Opcode, none: f64| {
            fold(by, &|re, im, _| {
                let (zero, part) = pick(re, im);
                if is_zero(zero) { part } else { none }
            })
        };
        Some([end(Opcode::Minimum, f64::INFINITY)?, end(Opcode::Maximum, -f64::INFINITY)?])
    };
    let re_of_zeros = ends(&|re, _| (re, re))?;
    let im_beside_zeros = ends(&|re, im| (re, im))?;
    let im_of_zeros = ends(&|_, im| (im, im))?;
    let im_of_all = [fold(Opcode::Minimum, &|_, im, r| im - r)?, fold(Opcode::Maximum, &|_, im, r| im + r)?];
    let unknown = |re: f64, im: f64, r: f64| r > 0.0 && !(re + im + r).is_finite();
    let unknown = fold(Opcode::Maximum, &|re, im, r| f64::from(u8::from(unknown(re, im, r))))?;
    let v = Numbers::of(result);
    let same = |a: f64, b: f64| a == b && a.is_sign_negative() == b.is_sign_negative();
    let distance = |x: f64, low: f64, high: f64| {
        if same(x, low) && same(x, high) {
            return 0.0;
        }
        let d = (high - x).max(x - low);
        if d.is_nan() { f64::INFINITY } else { d.next_up().max(format.min_positive()) }
    };
    let each = (0..v.len()).map(|i| {
        let (re, im) = v.at(i);
        if unknown[i] > 0.0 {
            return f64::INFINITY;
        }
        // A NaN that is certain stays one.
        if re.is_nan() || im.is_nan() {
            return 0.0;
        }
        let exact = off[i] == 0.0;
        let at = |ends: &[Vec<f64>; 2]| (ends[0][i], ends[1][i]);
        if exact && !is_zero(re) {
            // Candidates have this real part.
            let (low, high) = at(&im_of_zeros);
            return if is_zero(im) { distance(im, low.min(im), high.max(im)) } else { 0.0 };
        }
        let zeros = at(&re_of_zeros);
        let (mut low, mut high) = (low[i], high[i]);
        if low <= 0.0 && high >= 0.0 {
            (low, high) = (low.min(zeros.0), high.max(zeros.1));
        }
        // Of exact numbers the candidates are those whose real part is a zero.
        let of_im = at(if exact { &im_beside_zeros } else { &im_of_all });
        distance(re, low.min(re), high.max(re)).max(distance(im, of_im.0.min(im), of_im.1.max(im)))
    });
    Some(vec![Radii::new(each.collect())])
}
