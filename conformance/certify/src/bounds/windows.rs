//! `select-and-scatter` in any order: which element of a window is selected.
//!
//! StableHLO defines the selection as a `reduce_window` by `select`, and leaves the order of the elements
//! that a reduction combines to the implementation. An element that is kept against each other one of its
//! window, and that replaces each other one, is selected in any order and with any brackets: whichever it
//! meets, it goes on. That is so of the best by an order (`GE` and the like) that no other ties with. In
//! windows without such an element (ties, NaNs, computations that are no order) any element may be selected.
//!
//! Soft bounds take the reference's selection, as for any other decision.

use std::sync::Arc;

use hlo::{AttrKey, Opcode};
use hlo_interp::Tensor;

use super::lifted::{Lifted, taken};
use super::limits::Limits;
use super::rules::Case;
use super::{Bounds, Leaf, folds};

/// The most elements of all windows together that are looked at.
const MAX_WINDOW_ELEMENTS: usize = 1 << 26;

/// Makes the hard bounds of elements infinite that are in windows whose selection depends on the order, where
/// engines may choose it.
pub(super) fn reach(case: &Case<'_>, leaves: &mut [Leaf]) {
    if case.opcode() != Opcode::SelectAndScatter || !case.settings.allowances.reorder_regions {
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

/// Which elements of the operand are in windows whose selection depends on the order. `None`: it is not
/// worked out.
fn open(case: &Case<'_>) -> Option<Vec<bool>> {
    let x = case.args.first()?.tensor;
    let (steps, windows) = folds::selecting_windows(case, MAX_WINDOW_ELEMENTS)?;
    let mut select = Select(Lifted::new(case, case.instr.attrs.computation(AttrKey::Select)?));
    let mut selected: Vec<Option<usize>> = vec![None; windows];
    for step in &steps {
        let (lanes, kept, element) = pairs(step, &selected);
        let stays = select.run(x, &kept, &element)?;
        lanes
            .iter()
            .zip(&element)
            .zip(stays)
            .filter(|(_, stays)| !stays)
            .for_each(|((&lane, &to), _)| selected[lane] = Some(to));
        step.iter().zip(&mut selected).for_each(|(&element, selected)| *selected = selected.or(element));
    }
    let mut wins = vec![true; windows];
    for step in &steps {
        let (lanes, best, element) = pairs(step, &selected);
        let (kept, replaced) = (select.run(x, &best, &element)?, select.run(x, &element, &best)?);
        for ((&lane, (best, element)), (kept, stays)) in
            lanes.iter().zip(best.iter().zip(&element)).zip(kept.into_iter().zip(replaced))
        {
            wins[lane] &= best == element || kept && !stays;
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
    /// Whether the first of each pair is kept.
    fn run(&mut self, x: &Tensor, first: &[usize], second: &[usize]) -> Option<Vec<bool>> {
        if first.is_empty() {
            return Some(Vec::new());
        }
        let args = vec![taken(x, first), taken(x, second)];
        let exact = Arc::new(Leaf::default());
        let (values, _) = self.0.run((args, vec![exact.clone(), exact]))?;
        Some(values.first()?.slice::<bool>().to_vec())
    }
}
