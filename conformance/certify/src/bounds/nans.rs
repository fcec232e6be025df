//! Bits of NaNs that were computed: which of their uses see what an engine may choose.
//!
//! IEEE 754 (6.2.3, 6.3) leaves sign and payload of a NaN result to the implementation: x86's arithmetic
//! gives a negative one, the reference the canonical one, which is positive. Few instructions look at them:
//! `bitcast-convert` to another type, comparisons by `TOTALORDER`, and what sorts by one (`sort`, `topk`).
//! NaNs that were given, in arguments or constants, and only moved keep their bits.
//!
//! **Invariant:** without the liberty (`nan-bits`) nothing changes here.

use hlo::attrs::Direction;
use hlo::{AttrKey, ComputationId, ElementType, Opcode, TypeClass, with_element_type};
use hlo_execution::element::{Number, nan_among};
use hlo_execution::format::Format;
use hlo_interp::custom_call::{Call, Meaning};

use super::limits::Limits;
use super::number::Numbers;
use super::rules::{Arg, Case, Kind, copies, kind, moves};
use super::{Leaf, Radii, Ranges, order};

/// Whether the elements of an instruction's results may be NaNs that it computed, or that were computed before
/// it moved them.
pub(super) fn computes(case: &Case<'_>) -> bool {
    match passes_on(case) {
        true => case.args.iter().any(|a| a.leaf.computed),
        false => true,
    }
}

/// Whether floats of the results are the operands', bit by bit.
fn passes_on(case: &Case<'_>) -> bool {
    moves(case.opcode())
        || copies(case)
        || matches!(kind(case.opcode()), Kind::Bits | Kind::Sort | Kind::Topk | Kind::Exchange)
}

/// Whether the computation of a map looks at bits of floats: of NaNs that it computes they are open, whatever
/// its operands are.
pub(super) fn are_seen_by_map(case: &Case<'_>) -> bool {
    let sees = |&c: &ComputationId| looks_at_bits(case, c);
    case.settings.allowances.nan_bits
        && case.opcode() == Opcode::Map
        && case.instr.attrs.called_computations().iter().any(sees)
}

fn looks_at_bits(case: &Case<'_>, computation: ComputationId) -> bool {
    case.module.instructions(computation).any(|id| {
        let instr = case.module.instr(id);
        match instr.opcode {
            Opcode::BitcastConvert => true,
            Opcode::Compare => instr.attrs.is_total_order(),
            _ => false,
        }
    })
}

fn calls_topk(case: &Case<'_>) -> bool {
    let meaning = Call { instruction: case.instr, module: case.module }.meaning();
    matches!(meaning, Meaning::TopK)
}

/// Which NaNs a comparator computes of whose bits it makes an order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Computed {
    /// Those that it converts, which it is given.
    Converted,
    /// Any.
    Any,
}

/// Of a sort (or the custom call `TopK`) whose comparator looks at bits of NaNs that it computes itself, which
/// these are.
fn seen_by_comparator(case: &Case<'_>) -> Option<Computed> {
    if !case.settings.allowances.nan_bits {
        return None;
    }
    let comparator = match case.opcode() {
        Opcode::Sort => case.instr.attrs.computation(AttrKey::ToApply)?,
        Opcode::CustomCall if calls_topk(case) => *case.instr.attrs.called_computations().first()?,
        _ => return None,
    };
    if order::compares_totally(case.module, comparator) || !looks_at_bits(case, comparator) {
        return None;
    }
    let mut found = None;
    for id in case.module.instructions(comparator) {
        let instr = case.module.instr(id);
        let float = instr.shape.element_type().is_some_and(|ty| Format::of(ty).is_some());
        match instr.opcode {
            _ if !float => {}
            Opcode::Parameter | Opcode::Constant | Opcode::Copy | Opcode::Select => {}
            Opcode::Convert | Opcode::ReducePrecision => found = found.or(Some(Computed::Converted)),
            _ => found = Some(Computed::Any),
        }
    }
    found
}

/// Widens the bounds of what depends on the bits of a NaN that was computed.
pub(super) fn beside(case: &Case<'_>, leaves: &mut [Leaf]) {
    if let Some(computed) = seen_by_comparator(case) {
        let Some(n) = case.args.first().map(|key| key.tensor.len()) else { return };
        let all: Vec<Numbers> = case.args.iter().map(|a| Numbers::of(a.tensor)).collect();
        let nan = |i: usize| all.iter().any(|x| x.re.get(i).is_some_and(|x| x.is_nan()));
        let open = (0..n).map(|i| computed == Computed::Any || nan(i)).collect();
        return lines(case, leaves, 0, open);
    }
    if !case.settings.allowances.nan_bits || !case.args.iter().any(|a| a.leaf.computed) {
        return;
    }
    let called = case.instr.attrs.called_computations();
    let by_bits = match case.opcode() {
        Opcode::BitcastConvert if !copies(case) => return patterns(case, leaves),
        Opcode::Compare if case.instr.attrs.is_total_order() => {
            return comparison(case, leaves);
        }
        Opcode::CustomCall => {
            calls_topk(case) && called.iter().all(|&c| order::compares_totally(case.module, c))
        }
        _ => order::is_total(case),
    };
    let key = order::key_operand(case);
    if let Some(arg) = case.args.get(key).filter(|_| by_bits) {
        lines(case, leaves, key, computed(arg));
    }
}

/// Of each element whether it is a NaN that was computed.
fn computed(arg: &Arg<'_>) -> Vec<bool> {
    let x = Numbers::of(arg.tensor);
    let is_nan = |i: usize| x.re[i].is_nan() || x.im.as_ref().is_some_and(|im| im[i].is_nan());
    (0..x.len()).map(|i| arg.leaf.computed && is_nan(i)).collect()
}

/// `bitcast-convert`: an integer as wide as the float is the pattern of some NaN; of other results nothing is
/// known.
fn patterns(case: &Case<'_>, leaves: &mut [Leaf]) {
    let ([arg], [result], [leaf]) = (&case.args[..], &case.results[..], leaves) else { return };
    let (from, to) = (arg.tensor.element_type(), result.element_type());
    let nans = computed(arg);
    if nans.is_empty() || result.is_empty() || !nans.contains(&true) {
        return;
    }
    let n = result.len();
    // Several elements become one, or one several.
    let open = |i: usize| match nans.len() >= n {
        true => nans[i * (nans.len() / n)..][..nans.len() / n].contains(&true),
        false => nans[i / (n / nans.len())],
    };
    let one_to_one = nans.len() == n && !from.is_complex() && to.is_integer() && from.bits() == to.bits();
    let ranges: Ranges = if one_to_one { nan_patterns(from, to) } else { Ranges::default() };
    let widened = |radii: &Radii| {
        let known = radii.ranges();
        let of = |i: usize| match open(i) {
            true => ranges.clone(),
            false => known.map_or_else(Ranges::default, |known| known[i].clone()),
        };
        let open = |i, r, limits| if open(i) { (f64::INFINITY, Limits::NONE) } else { (r, limits) };
        radii.mapped(n, open).in_ranges(Some((0..n).map(of).collect()))
    };
    leaf.bounds.soft = widened(&leaf.bounds.soft);
    leaf.bounds.hard = widened(&leaf.bounds.hard);
}

/// The patterns of NaNs of a real float type as integers of a type of the same width; of 64 bits to the
/// precision of f64.
fn nan_patterns(from: ElementType, to: ElementType) -> Ranges {
    let Some(format) = Format::of(from) else { return Ranges::default() };
    let bits = from.bits();
    let as_integer = |pattern: u128| match to.class() {
        TypeClass::Signed if pattern >> (bits - 1) != 0 => pattern as f64 - (1u128 << bits) as f64,
        _ => pattern as f64,
    };
    if bits <= 8 {
        let is_nan = |&pattern: &u128| {
            with_element_type!(from, T => {
                nan_among(<T as Number>::parts(<T as hlo::Bits>::from_bits(pattern)))
            })
        };
        return (0..1u128 << bits).filter(is_nan).map(|pattern| [as_integer(pattern); 2]).collect();
    }
    // The exponent is all ones, the significand is not zero.
    let sign = 1u128 << (bits - 1);
    let infinity = sign - (1 << (format.precision - 1));
    [[infinity + 1, sign - 1], [sign + infinity + 1, 2 * sign - 1]].map(|ends| ends.map(as_integer)).into()
}

/// `compare` by total order: open where one of both is such a NaN, but for whether a NaN equals a number, or
/// something itself.
fn comparison(case: &Case<'_>, leaves: &mut [Leaf]) {
    let ([a, b], [leaf]) = (&case.args[..], leaves) else { return };
    if a.from == b.from {
        return;
    }
    let equality = matches!(case.instr.attrs.direction(), Some(Direction::Eq | Direction::Ne));
    let (x, y) = (Numbers::of(a.tensor), Numbers::of(b.tensor));
    let (computed_x, computed_y) = (computed(a), computed(b));
    let is_open = |i: usize| {
        let decided = equality && x.re[i].is_nan() != y.re[i].is_nan();
        (computed_x[i] || computed_y[i]) && !decided
    };
    let n = x.len();
    if (0..n).any(is_open) {
        let of = |i, r: f64, limits| if is_open(i) { (r.max(1.0), Limits::NONE) } else { (r, limits) };
        leaf.bounds.hard = leaf.bounds.hard.mapped(n, of);
    }
}

/// What is sorted by bits: a line with such a NaN among its keys is open as a whole. `nans` are elements of the
/// operand `key`.
fn lines(case: &Case<'_>, leaves: &mut [Leaf], key: usize, nans: Vec<bool>) {
    let Some(key) = case.args.get(key) else { return };
    if !nans.contains(&true) {
        return;
    }
    let dim = match case.opcode() {
        Opcode::Sort => {
            case.instr.attrs.ints(AttrKey::Dimensions).and_then(|d| usize::try_from(*d.first()?).ok())
        }
        _ => key.tensor.rank().checked_sub(1),
    };
    let Some(dim) = dim else { return };
    let of_keys = order::lines(key.tensor, dim);
    for (leaf, t) in leaves.iter_mut().zip(&case.results) {
        let mut each: Vec<f64> = (0..t.len()).map(|i| leaf.bounds.hard.at(i)).collect();
        for (of_key, line) in of_keys.iter().zip(order::lines(t, dim)) {
            if of_key.iter().any(|&i| nans[i]) {
                line.iter().for_each(|&i| each[i] = f64::INFINITY);
            }
        }
        leaf.bounds.hard = Radii::new(each);
    }
}
