//! Scatters element by element: what no update goes to is the operand's, and where one goes the computation
//! is applied once, to the operand's element and to the update (XLA's operation semantics, "Scatter": the
//! first parameter is always what is in the operand). So these elements have no order, whatever those do that
//! several updates go to.

use std::sync::Arc;

use hlo::AttrKey;
use hlo_execution::format::Format;
use hlo_execution::verdict::same_buffers;
use hlo_recognize::expression::Expression;

use super::lifted::{Known, Lifted, leaf_at, taken};
use super::limits::Limits;
use super::number::Numbers;
use super::rules::{self, Case, Mode};
use super::terms::Terms;
use super::{Bounds, Radii, Ranges};

/// The most elements that the computation is applied to, times its instructions.
const BUDGET: usize = 4_000_000;

/// The bounds of the results of a scatter: of elements with several updates `found`, if they have some.
/// `None`: the others are not worked out.
pub(super) fn bounds(case: &Case<'_>, terms: &Terms, found: &[Option<Bounds>]) -> Option<Vec<Bounds>> {
    let computation = case.instr.attrs.computation(AttrKey::ToApply)?;
    let n = case.results.len();
    let results = terms.results();
    if case.args.len() != 2 * n + 1 || case.results.iter().any(|t| t.len() != results) {
        return None;
    }
    let one: Vec<usize> = (0..results).filter(|&r| terms.at(r).len() == 1).collect();
    let none = (0..results).any(|r| terms.at(r).is_empty());
    let work = one.len().checked_mul(case.module.computation(computation).len())?;
    if work > BUDGET || one.is_empty() && !none {
        return None;
    }
    let updates: Vec<usize> = one.iter().map(|&r| terms.at(r)[0] as usize).collect();
    let applied: Known = if one.is_empty() {
        (Vec::new(), Vec::new())
    } else {
        let args = case.args.iter().enumerate().filter(|&(k, _)| k != n).map(|(k, a)| {
            let at = if k < n { &one } else { &updates };
            (taken(a.tensor, at), Arc::new(leaf_at(&a.leaf, at)))
        });
        let applied = Lifted::new(case, computation).run(args.unzip())?;
        let reference = case.results.iter().map(|r| taken(r, &one));
        let same = applied.0.iter().zip(reference).all(|(t, r)| same_buffers(t.buffer(), r.buffer(), false));
        if applied.0.len() != n || !same {
            return None;
        }
        applied
    };
    let flushed = case.settings.allowances.flush_denormals && !only_moves(case);
    let all = case.results.iter().enumerate().map(|(k, result)| {
        let format = Format::of(result.element_type()).filter(|_| flushed);
        let operand = Numbers::of(case.args[k].tensor);
        // Who computes with the operand may flush what is not updated, too.
        let kept =
            |i: usize, r: f64| match format {
                Some(f) if operand.re[i] != 0.0 && operand.re[i].abs() < f.flushes_below() => {
                    if f.has_zero() { r.max(operand.re[i].abs()) } else { f64::INFINITY }
                }
                Some(_) | None => r,
            };
        let several = found.get(k).and_then(Option::as_ref);
        let radii = |mode: Mode| {
            let own = case.args[k].leaf.bounds.radii(mode);
            let open = several.map(|b| b.radii(mode));
            let (mut each, mut limits): (Vec<f64>, Vec<Limits>) = (0..results)
                .map(|i| match terms.at(i).len() {
                    0 => (kept(i, own.at(i)), own.limits(i)),
                    _ => open.map_or((f64::INFINITY, Limits::NONE), |r| (r.at(i), r.limits(i))),
                })
                .unzip();
            if let Some(leaf) = applied.1.get(k) {
                let new = leaf.bounds.radii(mode);
                one.iter().enumerate().for_each(|(j, &i)| (each[i], limits[i]) = (new.at(j), new.limits(j)));
            }
            Radii::limited(each, limits)
        };
        let found = rules::concluded(result, radii(Mode::Soft), radii(Mode::Hard));
        let found = match several.and_then(|b| b.hard.ranges()) {
            Some(ranges) => {
                let of = |i: usize| if terms.at(i).len() > 1 { ranges[i].clone() } else { Ranges::default() };
                Bounds { hard: found.hard.in_ranges(Some((0..results).map(of).collect())), ..found }
            }
            None => found,
        };
        Bounds { specials: several.map(|b| b.specials.clone()).unwrap_or_default(), ..found }
    });
    Some(all.collect())
}

/// Whether the applied computation only moves numbers about.
fn only_moves(case: &Case<'_>) -> bool {
    let expression = case.instr.attrs.computation(AttrKey::ToApply);
    let expression = expression.and_then(|c| Expression::new(case.module, c));
    expression.is_some_and(|e| (0..e.nodes.len()).all(|n| e.opcode(n).is_none_or(rules::moves)))
}
