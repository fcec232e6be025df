//! `select-and-scatter` in any order: which element of a window is selected.
//!
//! StableHLO defines the selection as a `reduce_window` by `select`, and leaves the order of the elements
//! that a reduction combines to the implementation. An element that is kept against each other one of its
//! window, and that replaces each other one, is selected in any order and with any brackets: whichever it
//! meets, it goes on. That is so of the best by an order (`GE` and the like) that no other ties with. In
//! windows without such an element (ties, NaNs, computations that are no order) any element may be selected.
//!
//! In the reference's order, too, a comparison of elements that are off may fall otherwise: where one of a
//! window may, any of its elements may be selected.
//!
//! Soft bounds take the reference's selection, as for any other decision.

use std::sync::Arc;

use hlo::{AttrKey, BufferOf, Opcode};

use super::lifted::{Lifted, leaf_at, taken};
use super::limits::Limits;
use super::rules::{Arg, Case};
use super::{Bounds, Leaf, folds};

/// The most elements of all windows together that are looked at.
const MAX_WINDOW_ELEMENTS: usize = 1 << 26;

/// Makes the hard bounds of elements infinite that are in windows whose selection depends on the order, where
/// engines may choose it, or on how far elements are off.
pub(super) fn reach(case: &Case<'_>, leaves: &mut [Leaf]) {
    let allowed = &case.settings.allowances;
    let exact = case.args.first().is_none_or(|a| a.leaf.bounds.is_exact());
    let decided = exact && !allowed.reorder_regions && !allowed.flush_denormals;
    if case.opcode() != Opcode::SelectAndScatter || decided {
        return;
    }
    let [leaf] = leaves else { return };
    let n = case.results.first().map_or(0, |t| t.len());
    let Some(open) = open(case) else {
        leaf.bounds = Bounds { soft: leaf.bounds.soft.clone(), ..Bounds::unknown(n) };
        return;
    };
    if open.contains(&true) {
        let of = |i: usize, r, limits| if open[i] { (f64::INFINITY, Limits::NONE) } else { (r, limits) };
        leaf.bounds.hard = leaf.bounds.hard.mapped(n, of);
    }
}

/// Which elements of the operand are in windows whose selection is open. `None`: it is not worked out.
fn open(case: &Case<'_>) -> Option<Vec<bool>> {
    let operand = case.args.first()?;
    let x = operand.tensor;
    let (steps, windows) = folds::selecting_windows(case, MAX_WINDOW_ELEMENTS)?;
    let mut select = Select(Lifted::new(case, case.instr.attrs.computation(AttrKey::Select)?));
    let mut selected: Vec<Option<usize>> = vec![None; windows];
    let mut wins = vec![true; windows];
    for step in &steps {
        let (lanes, kept, element) = pairs(step, &selected);
        let stays = select.run(operand, &kept, &element)?;
        for ((&lane, &to), (stays, certain)) in lanes.iter().zip(&element).zip(stays) {
            if !stays {
                selected[lane] = Some(to);
            }
            wins[lane] &= certain;
        }
        step.iter().zip(&mut selected).for_each(|(&element, selected)| *selected = selected.or(element));
    }
    if case.settings.allowances.reorder_regions {
        for step in &steps {
            let (lanes, best, element) = pairs(step, &selected);
            let kept = select.run(operand, &best, &element)?;
            let replaced = select.run(operand, &element, &best)?;
            for ((&lane, (best, element)), (kept, stays)) in
                lanes.iter().zip(best.iter().zip(&element)).zip(kept.into_iter().zip(replaced))
            {
                wins[lane] &= best == element || kept == (true, true) && stays == (false, true);
            }
        }
    }
    let mut open = vec![false; x.len()];
    for step in &steps {
        step.iter().zip(&wins).filter(|(_, wins)| !**wins).for_each(|(&element, _)| {
            if let Some(element) = element {
                open[element] = true;
            }
        });
    }
    Some(open)
}

/// Windows that have an element here and another one selected, with both.
fn pairs(step: &[Option<usize>], selected: &[Option<usize>]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let (mut lanes, mut kept, mut elements) = (Vec::new(), Vec::new(), Vec::new());
    for (lane, (&element, &selected)) in step.iter().zip(selected).enumerate() {
        if let (Some(element), Some(selected)) = (element, selected) {
            lanes.push(lane);
            kept.push(selected);
            elements.push(element);
        }
    }
    (lanes, kept, elements)
}

/// The computation that selects, on many pairs.
struct Select<'a>(Lifted<'a>);

impl Select<'_> {
    /// Whether the first of each pair is kept, and whether every engine keeps the same one.
    fn run(&mut self, x: &Arg<'_>, first: &[usize], second: &[usize]) -> Option<Vec<(bool, bool)>> {
        if first.is_empty() {
            return Some(Vec::new());
        }
        let args = [first, second].map(|of| (taken(x.tensor, of), Arc::new(leaf_at(&x.leaf, of))));
        let (values, leaves) = self.0.run(args.into_iter().unzip())?;
        // A run that was stopped, because bounds take too much effort, ends with any values.
        let (kept, leaf) = (bool::slice(values.first()?.buffer())?, leaves.first()?);
        Some(kept.iter().enumerate().map(|(i, &kept)| (kept, leaf.bounds.hard.at(i) == 0.0)).collect())
    }
}
