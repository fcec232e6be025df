//! Applied computations that are no sums: the computation on whole arrays ([`Lifted`]), certified like any
//! other, step by step.
//!
//! Of one element there is no order to choose, but for which of both operands it is.
//!
//! A fold of `n` elements into `m` results is `n` runs of the lifted computation on arrays of `m`. That is
//! only done within [`BUDGET`].

use std::sync::Arc;

use hlo::attrs::{Window, WindowDim};
use hlo::{AttrKey, BufferOf, ComputationId, Opcode, with_buffer};
use hlo_execution::element::{Number, Part};
use hlo_interp::Tensor;

use super::lifted::{Known, Lifted, leaf_at, taken};
use super::limits::Limits;
use super::number::Numbers;
use super::rules::{self, Arg, Case, Mode};
use super::{Bounds, Leaf, Radii};

/// The most runs of a lifted computation for an instruction, and the most elements in all of them.
const BUDGET: (usize, usize) = (600, 4_000_000);

/// The bounds of the results of `map`, and of folds by any computation; `None`: they are not worked out.
pub(super) fn applied(case: &Case<'_>) -> Option<Vec<Bounds>> {
    if case.settings.allowances.reorder_regions && case.opcode() != Opcode::Map {
        return None;
    }
    let computation = case.instr.attrs.computation(AttrKey::ToApply)?;
    let size = case.module.computation(computation).len();
    match case.opcode() {
        Opcode::Map => {
            let lanes = case.args.first().map_or(1, |a| a.tensor.len());
            if lanes.checked_mul(size)? > BUDGET.1 || case.args.iter().any(|a| a.tensor.len() != lanes) {
                return None;
            }
            let mut lifted = Lifted::new(case, computation);
            let (_, leaves) =
                lifted.run(case.args.iter().map(|a| (flat(a.tensor), a.leaf.clone())).unzip())?;
            Some(leaves.iter().map(|leaf| leaf.bounds.clone()).collect())
        }
        Opcode::Reduce => {
            let terms = reduced(case)?;
            fold(case, computation, &terms, size)
        }
        Opcode::ReduceWindow => {
            let terms = windows(case)?;
            fold(case, computation, &terms, size)
        }
        _ => None,
    }
}

/// Whether folds are of one element each.
pub(super) fn is_of_one(case: &Case<'_>) -> Option<bool> {
    let attrs = &case.instr.attrs;
    match case.opcode() {
        Opcode::Reduce => {
            let sizes = case.args.first()?.tensor.sizes();
            let one = |&d: &i64| usize::try_from(d).is_ok_and(|d| sizes.get(d) == Some(&1));
            Some(attrs.ints(AttrKey::Dimensions)?.iter().all(one))
        }
        Opcode::ReduceWindow => Some(attrs.window()?.dims.iter().all(|w| w.size == 1)),
        _ => None,
    }
}

/// The bounds of folds of one element each: the computation applied to the initial value and the element, or
/// the other way around; `None`: there are more.
pub(super) fn of_one(case: &Case<'_>) -> Option<Vec<Bounds>> {
    if !is_of_one(case)? {
        return None;
    }
    let (steps, n) = terms(case)?;
    let [step] = &steps[..] else { return None };
    let elements: Vec<usize> = step.iter().copied().collect::<Option<_>>()?;
    let k = case.args.len() / 2;
    if n == 0 || case.args.len() != 2 * k || case.results.iter().any(|t| t.len() != n) {
        return None;
    }
    let computation = case.instr.attrs.computation(AttrKey::ToApply)?;
    let at = |arg: &Arg<'_>, positions: &[usize]| {
        (taken(arg.tensor, positions), Arc::new(leaf_at(&arg.leaf, positions)))
    };
    let (values, initial) = case.args.split_at(k);
    let values: Vec<_> = values.iter().map(|a| at(a, &elements)).collect();
    let initial: Vec<_> = initial.iter().map(|a| at(a, &vec![0; n])).collect();
    let mut lifted = Lifted::new(case, computation);
    let mut run = |first: &[_], second: &[_]| lifted.run(first.iter().chain(second).cloned().unzip());
    let (given, swapped) = (run(&initial, &values)?, run(&values, &initial)?);
    if given.0.len() != k || swapped.0.len() != k {
        return None;
    }
    let both = given.0.iter().zip(&given.1).zip(swapped.0.iter().zip(&swapped.1));
    let bounds = both.zip(&case.results).map(|(((of_first, of_a), (of_second, of_b)), result)| {
        let (a, b) = (Numbers::of(of_first), Numbers::of(of_second));
        let radii = |mode: Mode| {
            let each = (0..n).map(|i| {
                // A radius around what the computation gives as one around the reference's result, which may be
                // another rounding of a sum.
                let around = |of: &Tensor, radii: &Radii| match (apart(of, result, i), radii.at(i)) {
                    (0.0, r) => r,
                    (apart, r) if (apart + r).is_nan() => f64::INFINITY,
                    (apart, r) => (apart + r).next_up(),
                };
                around(of_first, of_a.bounds.radii(mode)).max(around(of_second, of_b.bounds.radii(mode)))
            });
            let each: Vec<f64> = each.collect();
            // Of what is exact, one of both.
            let exact = |i: usize| [of_a, of_b].iter().all(|of| of.bounds.hard.at(i) == 0.0);
            let limits = (0..n).map(|i| {
                let known = a.im.is_none() && each[i] > 0.0 && exact(i);
                if known { Limits::either(a.re[i], b.re[i]) } else { Limits::NONE }
            });
            let limits = limits.collect();
            Radii::limited(each, limits)
        };
        rules::concluded(result, radii(Mode::Soft), radii(Mode::Hard))
    });
    Some(bounds.collect())
}

/// The distance of an element of two arrays of a type: 0 of the same bits and of NaNs. Integers that f64 does
/// not hold are told apart.
pub(super) fn apart(a: &Tensor, b: &Tensor, i: usize) -> f64 {
    fn of<T: Number>(v: &[T], b: &Tensor, i: usize) -> f64 {
        let part = |x: Part, y: Part| match (x, y) {
            (Part::Int(x), Part::Int(y)) if x == y => 0.0,
            (Part::Int(x), Part::Int(y)) => (x.abs_diff(y) as f64).next_up(),
            (x, y) => {
                let (x, y) = (x.value(), y.value());
                let same = x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
                if same { 0.0 } else { (x - y).abs().next_up() }
            }
        };
        let Some(w) = T::slice(b.buffer()) else { return f64::INFINITY };
        let ((re, im), (other, other_im)) = (v[i].parts(), w[i].parts());
        part(re, other) + im.zip(other_im).map_or(0.0, |(x, y)| part(x, y))
    }
    with_buffer!(a.buffer(), v => of(v, b, i))
}

/// Bounds of folds of one element, for results that have no bound otherwise.
pub(super) fn beside_one(case: &Case<'_>, leaves: &mut [Leaf]) {
    // Radii that are small beside the value are not worth another run; those of zeros are about their sign.
    let coarse = |r: f64, v: f64| r.is_infinite() || v != 0.0 && r > v / 64.0;
    let any = |leaf: &Leaf, t: &Tensor| {
        let v = Numbers::of(t);
        (0..t.len()).any(|i| coarse(leaf.bounds.hard.at(i), v.modulus(i)))
    };
    if is_of_one(case) != Some(true) || !leaves.iter().zip(&case.results).any(|(leaf, t)| any(leaf, t)) {
        return;
    }
    let Some(found) = of_one(case).filter(|found| found.len() == leaves.len()) else { return };
    for ((leaf, t), one) in leaves.iter_mut().zip(&case.results).zip(found) {
        let Bounds { soft, hard, .. } = &leaf.bounds;
        let v = Numbers::of(t);
        let narrowed = |of: &Radii, one: &Radii| {
            let ranges = of.ranges().cloned();
            let open = |i: usize| coarse(hard.at(i), v.modulus(i));
            let each = |i, r, limits| if open(i) { (one.at(i), one.limits(i)) } else { (r, limits) };
            of.mapped(t.len(), each).in_ranges(ranges)
        };
        let (soft, hard) = (narrowed(soft, &one.soft), narrowed(hard, &one.hard));
        leaf.bounds = Bounds { soft, hard, ..std::mem::take(&mut leaf.bounds) };
    }
}

fn flat(t: &Tensor) -> Tensor {
    t.clone().reshaped([t.len() as i64].as_slice())
}

/// For each element of the results the elements of the operands that it folds, in order.
struct Terms {
    /// Step by step, for each result an element, if there is one.
    steps: Vec<Vec<Option<usize>>>,
    results: usize,
}

fn allowed(steps: usize, results: usize, size: usize, budget: (usize, usize)) -> Option<()> {
    let work = steps.checked_mul(results)?.checked_mul(size)?;
    (steps <= budget.0 && work <= budget.1).then_some(())
}

/// Distances of neighbours along each dimension.
fn strides(sizes: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d];
    }
    strides
}

/// The coordinates of element `n` in an array of these sizes.
fn multi_index(mut n: usize, sizes: &[usize]) -> Vec<usize> {
    let mut at = vec![0; sizes.len()];
    for d in (0..sizes.len()).rev() {
        at[d] = n % sizes[d].max(1);
        n /= sizes[d].max(1);
    }
    at
}

fn reduced(case: &Case<'_>) -> Option<Terms> {
    let sizes = case.args.first()?.tensor.sizes();
    let dims: Vec<usize> =
        case.instr.attrs.ints(AttrKey::Dimensions)?.iter().filter_map(|&d| usize::try_from(d).ok()).collect();
    let kept: Vec<usize> = (0..sizes.len()).filter(|d| !dims.contains(d)).collect();
    let mut folded: Vec<usize> = dims.clone();
    folded.sort_unstable();
    let of = |dims: &[usize]| -> Vec<usize> { dims.iter().map(|&d| sizes[d]).collect() };
    let (kept_sizes, folded_sizes) = (of(&kept), of(&folded));
    let (results, steps) = (kept_sizes.iter().product::<usize>(), folded_sizes.iter().product::<usize>());
    allowed(steps, results, 1, BUDGET)?;
    let strides = strides(&sizes);
    let offset = |n: usize, dims: &[usize], sizes: &[usize]| -> usize {
        multi_index(n, sizes).iter().zip(dims).map(|(&i, &d)| i * strides[d]).sum()
    };
    let starts: Vec<usize> = (0..results).map(|o| offset(o, &kept, &kept_sizes)).collect();
    let steps = (0..steps).map(|s| {
        let along = offset(s, &folded, &folded_sizes);
        starts.iter().map(|&start| Some(start + along)).collect()
    });
    Some(Terms { steps: steps.collect(), results })
}

/// Step by step, for each result of `reduce` and `reduce-window` the element that it folds, if there is one;
/// and how many results there are.
pub(super) fn terms(case: &Case<'_>) -> Option<(Vec<Vec<Option<usize>>>, usize)> {
    let terms = match case.opcode() {
        Opcode::Reduce => reduced(case)?,
        Opcode::ReduceWindow => windows(case)?,
        _ => return None,
    };
    Some((terms.steps, terms.results))
}

fn windows(case: &Case<'_>) -> Option<Terms> {
    windows_of(case, &case.results.first()?.sizes(), BUDGET)
}

/// Step by step, for each window of `select-and-scatter` the element that is looked at, if there is one; and
/// how many windows there are.
pub(super) fn selecting_windows(case: &Case<'_>, most: usize) -> Option<(Vec<Vec<Option<usize>>>, usize)> {
    let windows = windows_of(case, &case.args.get(1)?.tensor.sizes(), (most, most))?;
    Some((windows.steps, windows.results))
}

/// Along one dimension, the index of the base area (of `size` elements) that a window position reads for a
/// result. `None`: it is padding, or a hole of the base dilation.
pub(super) fn window_element(w: &WindowDim, size: usize, result: usize, position: usize) -> Option<usize> {
    let [result, position] = [result, position].map(|i| i64::try_from(i).ok());
    let position = if w.reversal { (w.size - 1).checked_sub(position?)? } else { position? };
    let dilated = result?.checked_mul(w.stride)?.checked_sub(w.pad_low)?;
    let dilated = dilated.checked_add(position.checked_mul(w.window_dilation)?)?;
    if dilated < 0 || dilated % w.base_dilation != 0 {
        return None;
    }
    usize::try_from(dilated / w.base_dilation).ok().filter(|&i| i < size)
}

fn windows_of(case: &Case<'_>, result: &[usize], budget: (usize, usize)) -> Option<Terms> {
    let sizes = case.args.first()?.tensor.sizes();
    let window: &Window = case.instr.attrs.window()?;
    let extents: Vec<usize> =
        window.dims.iter().map(|d| usize::try_from(d.size).ok()).collect::<Option<_>>()?;
    if extents.len() != sizes.len() {
        return None;
    }
    let (results, steps) = (result.iter().product::<usize>(), extents.iter().product::<usize>());
    allowed(steps, results, 1, budget)?;
    let strides = strides(&sizes);
    let element = |at: &[usize], step: &[usize]| -> Option<usize> {
        let mut index = 0;
        for (d, w) in window.dims.iter().enumerate() {
            index += window_element(w, sizes[d], at[d], step[d])? * strides[d];
        }
        Some(index)
    };
    let indices: Vec<Vec<usize>> = (0..results).map(|o| multi_index(o, result)).collect();
    let steps = (0..steps).map(|s| {
        let step = multi_index(s, &extents);
        indices.iter().map(|at| element(at, &step)).collect()
    });
    Some(Terms { steps: steps.collect(), results })
}

/// Folds operands, the first half values, the second initial values.
fn fold(case: &Case<'_>, computation: ComputationId, terms: &Terms, size: usize) -> Option<Vec<Bounds>> {
    allowed(terms.steps.len(), terms.results, size, BUDGET)?;
    let k = case.args.len() / 2;
    if !case.args.len().is_multiple_of(2)
        || case.results.len() != k
        || case.results.iter().any(|t| t.len() != terms.results)
    {
        return None;
    }
    let mut lifted = Lifted::new(case, computation);
    let initial = case.args[k..].iter().map(|a| {
        let positions = vec![0; terms.results];
        (taken(a.tensor, &positions), Arc::new(leaf_at(&a.leaf, &positions)))
    });
    let mut accumulated: Known = initial.unzip();
    for step in &terms.steps {
        let lanes: Vec<usize> = (0..terms.results).filter(|&o| step[o].is_some()).collect();
        let elements: Vec<usize> = step.iter().flatten().copied().collect();
        if lanes.is_empty() {
            continue;
        }
        let mut args: Known = accumulated
            .0
            .iter()
            .zip(&accumulated.1)
            .map(|(t, leaf)| (taken(t, &lanes), Arc::new(leaf_at(leaf, &lanes))))
            .unzip();
        for a in &case.args[..k] {
            args.0.push(taken(a.tensor, &elements));
            args.1.push(Arc::new(leaf_at(&a.leaf, &elements)));
        }
        let (values, leaves) = lifted.run(args)?;
        if values.len() != k {
            return None;
        }
        if lanes.len() == terms.results {
            accumulated = (values, leaves);
            continue;
        }
        for j in 0..k {
            accumulated.0[j] = put(&accumulated.0[j], &lanes, &values[j])?;
            let (old, new) = (&accumulated.1[j].bounds, &leaves[j].bounds);
            let bounds = Bounds {
                soft: put_radii(&old.soft, &lanes, &new.soft, terms.results),
                hard: put_radii(&old.hard, &lanes, &new.hard, terms.results),
                ..Bounds::default()
            };
            accumulated.1[j] = Arc::new(Leaf::new(bounds, false));
        }
    }
    Some(accumulated.1.iter().map(|leaf| leaf.bounds.clone()).collect())
}

/// A list with other elements at these indices.
fn put(t: &Tensor, positions: &[usize], elements: &Tensor) -> Option<Tensor> {
    fn of<T: BufferOf>(v: &[T], positions: &[usize], new: &hlo::Buffer) -> Option<hlo::Buffer> {
        let new = T::slice(new)?;
        let mut v = v.to_vec();
        positions.iter().zip(new).for_each(|(&i, &x)| v[i] = x);
        Some(T::wrap(v))
    }
    let buffer = with_buffer!(t.buffer(), v => of(v, positions, elements.buffer()))?;
    Some(Tensor::new(t.dims(), buffer))
}

fn put_radii(old: &Radii, positions: &[usize], new: &Radii, n: usize) -> Radii {
    let mut each: Vec<f64> = (0..n).map(|i| old.at(i)).collect();
    let mut limits: Vec<Limits> = (0..n).map(|i| old.limits(i)).collect();
    positions.iter().enumerate().for_each(|(j, &i)| (each[i], limits[i]) = (new.at(j), new.limits(j)));
    Radii::limited(each, limits)
}
