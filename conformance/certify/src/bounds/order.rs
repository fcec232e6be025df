//! `sort` and `topk`: where intervals of keys do not meet, elements stand where the reference has them.
//!
//! The kth key in order is between the kth of the lower ends and the kth of the upper ends. Which element has
//! a rank is decided if the interval of its key meets none before and none behind it; of exact keys that are
//! equal, the order is the reference's (stable).

use hlo::attrs::Direction;
use hlo::{AttrKey, ComputationId, ElementType, InstrId, Module, Opcode};
use hlo_execution::format::Format;
use hlo_interp::{Tensor, Value};

use super::Radii;
use super::number::Numbers;
use super::probe::{Probe, Regions, retyped};
use super::rules::{Case, Found, Mode};

const UNKNOWN: f64 = f64::INFINITY;

/// By what a comparator sorts.
struct Key {
    operand: usize,
    descending: bool,
}

/// `sort`.
pub(super) fn sort(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let dim = usize::try_from(*case.instr.attrs.ints(AttrKey::Dimensions)?.first()?).ok()?;
    let comparator = case.instr.attrs.computation(AttrKey::ToApply)?;
    let from = source_indices(case, comparator)?;
    let first = case.args.first()?.tensor;
    let same = case.args.iter().all(|a| a.tensor.dims() == first.dims());
    if !same || case.results.len() != case.args.len() {
        return None;
    }
    let moved = |k: usize| -> Radii { Radii::new(from.iter().map(|&i| radii[k].at(i)).collect()) };
    if mode == Mode::Soft {
        return Some((0..case.args.len()).map(moved).collect());
    }
    let unknown = || case.results.iter().map(|t| Radii::unknown(t.len())).collect();
    let Some(key) = key(case.module, comparator) else { return Some(unknown()) };
    let keys = Intervals::new(case, case.args[key.operand].tensor, &radii[key.operand]);
    let lines = lines(first, dim);
    let mut bounds: Vec<f64> = vec![0.0; first.len()];
    let mut decided = vec![true; first.len()];
    for line in lines {
        let order: Vec<usize> = line.iter().map(|&i| from[i]).collect();
        let found = keys.line(&order, key.descending);
        for (&i, (r, d)) in line.iter().zip(found) {
            (bounds[i], decided[i]) = (r, d);
        }
    }
    let payload = |k: usize| -> Radii {
        let each = from.iter().zip(&decided).map(|(&i, &d)| if d { radii[k].at(i) } else { UNKNOWN });
        Radii::new(each.collect())
    };
    let each =
        (0..case.args.len()).map(|k| if k == key.operand { Radii::new(bounds.clone()) } else { payload(k) });
    Some(each.collect())
}

/// `topk`: of the last dimension, by total order.
pub(super) fn topk(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    first_of_each(case, radii, mode, Some(case.instr.attrs.bool_or(AttrKey::Largest, true)))
}

/// The custom call `TopK`: the same by the order of its computation.
pub(super) fn topk_call(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let descending = match case.instr.attrs.called_computations().first() {
        None => Some(true),
        Some(&comparator) => key(case.module, comparator).filter(|k| k.operand == 0).map(|k| k.descending),
    };
    first_of_each(case, radii, mode, descending)
}

/// Whether elements are ordered by their bits, which no engine flushes: `topk`, and a sort by a comparison of
/// total order.
pub(super) fn is_total(case: &Case<'_>) -> bool {
    match case.opcode() {
        Opcode::Topk => true,
        Opcode::Sort => {
            let comparator = case.instr.attrs.computation(AttrKey::ToApply);
            comparator.is_some_and(|c| compares_totally(case.module, c))
        }
        _ => false,
    }
}

/// Whether a comparator is a comparison of its parameters by total order.
pub(super) fn compares_totally(module: &Module, comparator: ComputationId) -> bool {
    let root = module.instr(module.root(comparator));
    let parameter = |&o: &InstrId| module.instr(o).opcode == Opcode::Parameter;
    root.opcode == Opcode::Compare && root.attrs.is_total_order() && root.operands().iter().all(parameter)
}

/// Whether a sort's comparator is known to be a strict weak order of its operands: a comparison of bits, or of
/// keys without NaNs.
pub(super) fn is_strict_weak_order(case: &Case<'_>) -> bool {
    let key = || key(case.module, case.instr.attrs.computation(AttrKey::ToApply)?);
    let has_nans = |key: &Key| {
        let numbers = case.args.get(key.operand).map(|a| Numbers::of(a.tensor).re);
        numbers.is_none_or(|x| x.iter().any(|x| x.is_nan()))
    };
    is_total(case) || key().is_some_and(|key| !has_nans(&key))
}

/// The operand that a comparator compares: of one that is no comparison of its parameters, and of calls, the
/// first.
pub(super) fn key_operand(case: &Case<'_>) -> usize {
    let comparator = case.instr.attrs.computation(AttrKey::ToApply);
    comparator.and_then(|c| key(case.module, c)).map_or(0, |key| key.operand)
}

/// The first few of each line; `descending` is `None` for an order that is not known.
fn first_of_each(case: &Case<'_>, radii: &[Radii], mode: Mode, descending: Option<bool>) -> Found {
    let [values, indices] = case.results[..] else { return None };
    let x = case.args.first()?.tensor;
    let n = usize::try_from(*x.dims().last()?).ok()?;
    let k = usize::try_from(*values.dims().last()?).ok()?;
    let chosen = Numbers::of(indices);
    let rows = x.len().checked_div(n).unwrap_or(0);
    let at = |row: usize, j: usize| row * n + chosen.re[row * k + j] as usize;
    if chosen.re.iter().any(|&i| i < 0.0 || i >= n as f64) || rows * k != values.len() {
        return None;
    }
    if mode == Mode::Soft {
        let each =
            (0..rows).flat_map(|row| (0..k).map(move |j| (row, j))).map(|(row, j)| radii[0].at(at(row, j)));
        return Some(vec![Radii::new(each.collect()), Radii::Zero]);
    }
    let Some(descending) = descending else {
        return Some(vec![Radii::unknown(values.len()), Radii::unknown(indices.len())]);
    };
    let keys = Intervals::new(case, x, &radii[0]);
    let (mut bounds, mut which) = (Vec::new(), Vec::new());
    for row in 0..rows {
        // The chosen ones in their order, then the rest: whether one of those belongs before them is what
        // matters.
        let mut order: Vec<usize> = (0..k).map(|j| at(row, j)).collect();
        let mut is_chosen = vec![false; n];
        order.iter().for_each(|&i| is_chosen[i - row * n] = true);
        order.extend((0..n).filter(|&i| !is_chosen[i]).map(|i| row * n + i));
        let found = keys.line(&order, descending);
        for (r, d) in found.into_iter().take(k) {
            bounds.push(r);
            which.push(if d { 0.0 } else { UNKNOWN });
        }
    }
    Some(vec![Radii::new(bounds), Radii::new(which)])
}

/// The elements of each line along a dimension.
pub(super) fn lines(t: &Tensor, dim: usize) -> Vec<Vec<usize>> {
    let sizes = t.sizes();
    let n = sizes.get(dim).copied().unwrap_or(1);
    let inner: usize = sizes.iter().skip(dim + 1).product();
    let outer: usize = sizes.iter().take(dim).product();
    let line = |o: usize, i: usize| (0..n).map(|j| (o * n + j) * inner + i).collect();
    (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))).map(|(o, i)| line(o, i)).collect()
}

/// Keys, and how far they may be off.
struct Intervals {
    value: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    unknown: Vec<bool>,
    /// Comparisons may take it for zero.
    flushed: Vec<bool>,
}

impl Intervals {
    fn new(case: &Case<'_>, t: &Tensor, radii: &Radii) -> Intervals {
        let x = Numbers::of(t);
        // Integers that an f64 does not hold are compared exactly by nobody here.
        let coarse = Format::of(x.ty).is_none();
        let n = x.len();
        let unknown = (0..n).map(|i| {
            radii.at(i) > 0.0
                && (!radii.at(i).is_finite() || !x.re[i].is_finite() || coarse && x.re[i].abs() > 9e15)
        });
        let unknown = unknown.collect();
        let off = |i: usize| if radii.at(i).is_finite() { radii.at(i) } else { 0.0 };
        let mut low: Vec<f64> = (0..n).map(|i| x.re[i] - off(i)).collect();
        let mut high: Vec<f64> = (0..n).map(|i| x.re[i] + off(i)).collect();
        let mut flushed = vec![false; n];
        if let Some(format) =
            Format::of(x.ty).filter(|_| case.settings.allowances.flush_denormals && !is_total(case))
        {
            for i in (0..n).filter(|&i| x.re[i].abs() < format.flushes_below()) {
                flushed[i] = true;
                (low[i], high[i]) = (low[i].min(0.0), high[i].max(0.0));
            }
        }
        Intervals { value: x.re, low, high, unknown, flushed }
    }

    /// Of elements in the reference's order: the error bound of the key of each rank, and whether the element
    /// of that rank is decided.
    fn line(&self, order: &[usize], descending: bool) -> Vec<(f64, bool)> {
        let n = order.len();
        let exact = |i: usize| self.low[i] == self.high[i] || self.value[i].is_nan();
        if order.iter().all(|&i| exact(i) && !self.unknown[i]) {
            return vec![(0.0, true); n];
        }
        let nan = order.iter().any(|&i| self.value[i].is_nan());
        if order.iter().any(|&i| self.unknown[i]) || nan {
            // NaNs beside keys that are off: not worked out.
            return vec![(UNKNOWN, false); n];
        }
        // Ascending from here on.
        let sign = if descending { -1.0 } else { 1.0 };
        let ends =
            |i: usize| if descending { (-self.high[i], -self.low[i]) } else { (self.low[i], self.high[i]) };
        let mut lows: Vec<f64> = order.iter().map(|&i| ends(i).0).collect();
        let mut highs: Vec<f64> = order.iter().map(|&i| ends(i).1).collect();
        // The maximum of upper ends before each rank, and the minimum of lower ends behind it, of uncertain
        // and of all elements.
        let (mut before, mut before_all) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        let mut decided = vec![true; n];
        for (rank, &i) in order.iter().enumerate() {
            decided[rank] &= if exact(i) { before < lows[rank] } else { before_all < lows[rank] };
            before_all = before_all.max(highs[rank]);
            if !exact(i) {
                before = before.max(highs[rank]);
            }
        }
        let (mut behind, mut behind_all) = (f64::INFINITY, f64::INFINITY);
        for (rank, &i) in order.iter().enumerate().rev() {
            decided[rank] &= if exact(i) { behind > highs[rank] } else { behind_all > highs[rank] };
            behind_all = behind_all.min(lows[rank]);
            if !exact(i) {
                behind = behind.min(lows[rank]);
            }
        }
        // Those that are taken for zeros are equal: each may have the rank of any.
        let ties = order.iter().zip(lows.iter().zip(&highs)).filter(|&(&i, _)| self.flushed[i]);
        let ties = ties.fold((0.0f64, 0.0f64), |(low, high), (_, (l, h))| (low.min(*l), high.max(*h)));
        lows.sort_by(f64::total_cmp);
        highs.sort_by(f64::total_cmp);
        let key = |rank: usize| {
            let i = order[rank];
            if decided[rank] && exact(i) {
                return 0.0;
            }
            let (v, mut low, mut high) = (sign * self.value[i], lows[rank], highs[rank]);
            if low <= 0.0 && high >= 0.0 {
                (low, high) = (low.min(ties.0), high.max(ties.1));
            }
            (high - v).max(v - low).max(0.0).next_up()
        };
        (0..n).map(|rank| (key(rank), decided[rank])).collect()
    }
}

/// For each element of the results the index of the operands' element that it is.
fn source_indices(case: &Case<'_>, comparator: ComputationId) -> Option<Vec<usize>> {
    let first = case.args.first()?.tensor;
    let ids = u32::try_from(first.len()).ok()?;
    let same = |t: ElementType| t;
    let mut shapes: Vec<hlo::Shape> =
        case.instr.operands().iter().map(|&o| case.module.instr(o).shape.clone()).collect();
    let more = retyped(shapes.first()?, &|_| ElementType::U32);
    shapes.push(more);
    let result = hlo::Shape::tuple(shapes.iter().cloned());
    let mut probe = Probe::new(case.module, case.instr, &shapes, result, &Regions::Retyped(&same))?;
    let parameters = case.module.computation(comparator).parameters().len();
    probe.more_parameters(AttrKey::ToApply, parameters, [ElementType::U32; 2])?;
    let mut args: Vec<Value> = case.args.iter().map(|a| Value::Array(a.tensor.clone())).collect();
    args.push(Value::Array(Tensor::from_vec(first.dims(), (0..ids).collect::<Vec<u32>>())));
    let sorted = probe.run(case.settings, args)?;
    let ids = sorted.as_tuple()?.last()?.as_array()?.slice::<u32>().iter().map(|&i| i as usize).collect();
    Some(ids)
}

/// The key of a comparator that compares one pair of parameters, perhaps with all NaNs and both zeros made
/// one.
fn key(module: &Module, comparator: ComputationId) -> Option<Key> {
    let root = module.instr(module.root(comparator));
    if root.opcode != Opcode::Compare {
        return None;
    }
    let ascending = match root.attrs.direction()? {
        Direction::Lt => true,
        Direction::Gt => false,
        Direction::Eq | Direction::Ne | Direction::Ge | Direction::Le => return None,
    };
    let [a, b] = *root.operands() else { return None };
    let parameters = module.computation(comparator).parameters();
    let number = |id: InstrId| parameters.iter().position(|&p| p == Some(merged(module, id).unwrap_or(id)));
    let (left, right) = (number(a)?, number(b)?);
    (left / 2 == right / 2 && left != right)
        .then_some(Key { operand: left / 2, descending: ascending != (left < right) })
}

/// The parameter `x` of `select(x != x, nan, select(x == 0, 0, x))`: the same order.
fn merged(module: &Module, id: InstrId) -> Option<InstrId> {
    let [is_nan, nan, rest] = *module.instr(id).operands() else { return None };
    let [is_zero, zero, x] = *module.instr(rest).operands() else { return None };
    let constant = |id: InstrId| {
        let literal = match module.instr(id).attrs.constant_value()? {
            hlo::ConstantValue::Given(literal) => literal.as_array()?.clone(),
            hlo::ConstantValue::Elided => return None,
        };
        Numbers::of(&Tensor::from_literal(literal)).re.first().copied()
    };
    let compares = |id: InstrId, direction: Direction| {
        let instr = module.instr(id);
        (instr.opcode == Opcode::Compare && instr.attrs.direction() == Some(&direction))
            .then(|| instr.operands().to_vec())
    };
    let selects = [id, rest].iter().all(|&id| module.instr(id).opcode == Opcode::Select);
    let fits = selects
        && compares(is_nan, Direction::Ne)? == [x, x]
        && constant(nan)?.is_nan()
        && constant(zero)? == 0.0
        && matches!(compares(is_zero, Direction::Eq)?[..], [a, z] if a == x && constant(z)? == 0.0);
    fits.then_some(x)
}
