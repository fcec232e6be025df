//! Reductions, windows, scans and sorts.

use hlo::attrs::{AttrKey, AttrValue, CompareType, Direction, PaddingDim, Window};
use hlo::{ComputationId, InstrId, Opcode, Shape};

use super::edit::{Edit, is_total, other_strictness};
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "reduce-ignores-nan",
        Family::Reduction,
        "A `reduce` or `reduce-window` by maximum or minimum skips NaN.",
        "https://github.com/openxla/xla/issues/21461",
        &[Opcode::Reduce, Opcode::ReduceWindow],
        reduce_ignores_nan,
    ),
    row(
        "reduce-init-dropped",
        Family::Reduction,
        "A `reduce` begins with the identity of its operation instead of its initial value.",
        "https://github.com/jax-ml/jax/pull/1106",
        &[Opcode::Reduce],
        reduce_init_dropped,
    ),
    row(
        "reduce-init-applied-per-block",
        Family::Reduction,
        "A `reduce` in two blocks begins each with the initial value.",
        "https://github.com/jax-ml/jax/pull/5675",
        &[Opcode::Reduce],
        reduce_init_applied_per_block,
    ),
    row(
        "reduce-tie-to-last",
        Family::Reduction,
        "A `reduce` of several operands, such as an arg-max, prefers the later of equal elements (or the earlier).",
        "https://github.com/tensorflow/tensorflow/issues/118647",
        &[Opcode::Reduce],
        reduce_tie_to_last,
    ),
    row(
        "reduce-window-pads-with-zero",
        Family::Reduction,
        "A `reduce-window` takes padding for zeros instead of leaving it out.",
        "https://github.com/openxla/xla/pull/48875",
        &[Opcode::ReduceWindow],
        reduce_window_pads_with_zero,
    ),
    row(
        "reduce-window-base-dilation-ignored",
        Family::Reduction,
        "A `reduce-window` ignores base dilation.",
        "https://github.com/openxla/xla/issues/48714",
        &[Opcode::ReduceWindow],
        reduce_window_base_dilation_ignored,
    ),
    row(
        "reduce-window-off-by-one",
        Family::Reduction,
        "The windows of a padded `reduce-window` begin one element early.",
        "https://github.com/pytorch/xla/pull/2583",
        &[Opcode::ReduceWindow],
        reduce_window_off_by_one,
    ),
    row(
        "reduce-window-of-cropped-folds-padding",
        Family::Reduction,
        "A `pad` with cut edges is folded into the padding of a `reduce-window` by adding both up.",
        "https://github.com/openxla/xla/issues/48715",
        &[Opcode::ReduceWindow],
        reduce_window_of_cropped_folds_padding,
    )
    .needing(Needs::CHAIN),
    row(
        "select-and-scatter-tie-to-last",
        Family::Reduction,
        "A `select-and-scatter` takes the last of equal elements of a window (or the first).",
        "https://github.com/pytorch/xla/pull/8814",
        &[Opcode::SelectAndScatter],
        select_and_scatter_tie_to_last,
    ),
    row(
        "sort-not-stable",
        Family::Reduction,
        "A stable `sort` reverses the order of equal elements.",
        "https://github.com/jax-ml/jax/issues/2779",
        &[Opcode::Sort],
        sort_not_stable,
    ),
    row(
        "sort-by-partial-order",
        Family::Reduction,
        "A `sort` by the total order of floats compares by the partial one, so NaNs stop it from sorting what is around them.",
        "https://github.com/tensorflow/tensorflow/issues/119359",
        &[Opcode::Sort],
        sort_by_partial_order,
    ),
    row(
        "topk-ties-to-last",
        Family::Reduction,
        "`topk` prefers the later of equal elements.",
        "https://github.com/tensorflow/tensorflow/issues/117287",
        &[Opcode::Topk],
        topk_ties_to_last,
    ),
    row(
        "map-operands-swapped",
        Family::Control,
        "A `map` of two operands of one type is inlined with its parameters swapped.",
        "https://github.com/llvm/llvm-project/issues/56810",
        &[Opcode::Map],
        map_operands_swapped,
    ),
];

/// The operand, the initial value and the region of a reduction of one operand.
fn reduction(e: &Edit<'_>) -> Option<(InstrId, InstrId, ComputationId)> {
    e.one_of(&[Opcode::Reduce, Opcode::ReduceWindow])?;
    let (x, init) = e.pair()?;
    e.array(x)?;
    Some((x, init, e.called(AttrKey::ToApply)?))
}

fn reduce_ignores_nan(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, init, region) = reduction(e)?;
    let opcode = e.folds_with(region)?;
    matches!(opcode, Opcode::Maximum | Opcode::Minimum).then_some(())?;
    let ty = e.float(x)?;
    let region = e.region("skipping_nan", |b| {
        let (a, v) = (b.parameter("a", Shape::scalar(ty)), b.parameter("v", Shape::scalar(ty)));
        let both = b.binary(opcode, a, v)?;
        let (a_is_nan, v_is_nan) = (b.compare(Direction::Ne, a, a)?, b.compare(Direction::Ne, v, v)?);
        let kept = b.select(v_is_nan, a, both)?;
        b.select(a_is_nan, v, kept).map(drop)
    })?;
    let attrs = e.attrs().with(AttrKey::ToApply, AttrValue::Computation(region));
    e.again(&[x, init], attrs)
}

fn reduce_init_dropped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Reduce)?;
    let (x, init, region) = reduction(e)?;
    let opcode = e.folds_with(region)?;
    let ty = e.ty(init)?;
    let identity = if matches!(opcode, Opcode::Add | Opcode::Xor) || opcode == Opcode::Or && ty.is_integer() {
        0.0
    } else if opcode == Opcode::Multiply {
        1.0
    } else if opcode == Opcode::Maximum {
        f64::NEG_INFINITY
    } else if opcode == Opcode::Minimum {
        f64::INFINITY
    } else {
        return None;
    };
    (!e.is_splat(init, identity)).then_some(())?;
    let attrs = e.attrs();
    let identity = e.scalar(ty, identity);
    e.again(&[x, identity], attrs)
}

fn reduce_init_applied_per_block(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Reduce)?;
    let (x, init, region) = reduction(e)?;
    let opcode = e.folds_with(region)?;
    matches!(opcode, Opcode::Add | Opcode::Multiply | Opcode::Xor).then_some(())?;
    let attrs = e.attrs();
    let &dim = attrs.ints(AttrKey::Dimensions)?.last()?;
    let size = e.array(x)?.dims[dim as usize];
    (size >= 2).then_some(())?;
    let (low, high) = (e.cut(x, dim as usize, 0, size / 2)?, e.cut(x, dim as usize, size / 2, size)?);
    let low = e.add(Opcode::Reduce, &[low, init], attrs.clone())?;
    let high = e.add(Opcode::Reduce, &[high, init], attrs)?;
    e.bin(opcode, low, high)
}

fn reduce_tie_to_last(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Reduce)?;
    (e.operands().len() >= 4).then_some(())?;
    let region = e.called(AttrKey::ToApply)?;
    let other = e.compared_with(region, other_strictness)?;
    e.with_attr(AttrKey::ToApply, AttrValue::Computation(other))
}

fn window_of(e: &Edit<'_>) -> Option<Window> {
    e.me().attrs.window().cloned()
}

/// The number of positions that a window of `size` spans.
fn span(size: i64, dilation: i64) -> Option<i64> {
    if size == 0 { Some(0) } else { (size - 1).checked_mul(dilation)?.checked_add(1) }
}

/// The instruction again with another window, the high padding set so that the shape stays. `base` are the
/// sizes of the dimensions that the window moves over.
pub(super) fn with_window(e: &mut Edit<'_>, base: &[i64], window: &Window) -> Option<InstrId> {
    let before = window_of(e)?;
    let mut window = window.clone();
    for ((old, new), &d) in before.dims.iter().zip(&mut window.dims).zip(base) {
        let slack = |w: &hlo::attrs::WindowDim| {
            let all = span(d, w.base_dilation)?.checked_add(w.pad_low)?.checked_add(w.pad_high)?;
            all.checked_sub(span(w.size, w.window_dilation)?)
        };
        new.pad_high = new.pad_high.checked_add(slack(old)?.checked_sub(slack(new)?)?)?;
    }
    (window != before).then_some(())?;
    e.with_attr(AttrKey::Window, AttrValue::Window(Box::new(window)))
}

fn reduce_window_pads_with_zero(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::ReduceWindow)?;
    let (x, init, _) = reduction(e)?;
    let ty = e.ty(x)?;
    let mut window = window_of(e)?;
    let padding: Vec<PaddingDim> = window
        .dims
        .iter()
        .map(|w| PaddingDim { low: w.pad_low.max(0), high: w.pad_high.max(0), interior: 0 })
        .collect();
    (window.dims.iter().all(|w| w.base_dilation == 1) && padding.iter().any(|p| p.low > 0 || p.high > 0))
        .then_some(())?;
    for (w, p) in window.dims.iter_mut().zip(&padding) {
        (w.pad_low, w.pad_high) = (w.pad_low - p.low, w.pad_high - p.high);
    }
    let zero = e.scalar(ty, 0.0);
    let padded = e.pad(x, zero, &padding)?;
    let attrs = e.attrs().with(AttrKey::Window, AttrValue::Window(Box::new(window)));
    e.again(&[padded, init], attrs)
}

fn base_dims(e: &Edit<'_>) -> Option<Vec<i64>> {
    e.is(Opcode::ReduceWindow)?;
    Some(e.array(e.operand(0)?)?.dims.to_vec())
}

fn reduce_window_base_dilation_ignored(e: &mut Edit<'_>) -> Option<InstrId> {
    let (base, mut window) = (base_dims(e)?, window_of(e)?);
    window.dims.iter_mut().for_each(|w| w.base_dilation = 1);
    with_window(e, &base, &window)
}

fn reduce_window_off_by_one(e: &mut Edit<'_>) -> Option<InstrId> {
    let (base, mut window) = (base_dims(e)?, window_of(e)?);
    window.dims.iter_mut().filter(|w| w.pad_low > 0).for_each(|w| w.pad_low += 1);
    with_window(e, &base, &window)
}

fn reduce_window_of_cropped_folds_padding(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::ReduceWindow)?;
    let (padded, init, _) = reduction(e)?;
    let x = *e.operands_of(padded, Opcode::Pad)?.first()?;
    let padding = e.instr(padded).attrs.padding()?.to_vec();
    (padding.iter().all(|p| p.interior == 0) && padding.iter().any(|p| p.low < 0 || p.high < 0))
        .then_some(())?;
    let mut window = window_of(e)?;
    window.dims.iter().all(|w| w.base_dilation == 1).then_some(())?;
    for (w, p) in window.dims.iter_mut().zip(&padding) {
        w.pad_low = w.pad_low.checked_add(p.low)?;
        w.pad_high = w.pad_high.checked_add(p.high)?;
    }
    let attrs = e.attrs().with(AttrKey::Window, AttrValue::Window(Box::new(window)));
    e.again(&[x, init], attrs)
}

fn select_and_scatter_tie_to_last(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::SelectAndScatter)?;
    let other = e.compared_with(e.called(AttrKey::Select)?, other_strictness)?;
    e.with_attr(AttrKey::Select, AttrValue::Computation(other))
}

/// The results of a sort, or several operands joined: one array for each operand.
fn outputs(e: &mut Edit<'_>, id: InstrId, n: usize) -> Option<Vec<InstrId>> {
    if n == 1 { Some(vec![id]) } else { (0..n).map(|i| e.get(id, i)).collect() }
}

/// Arrays as the result of an instruction that has several, or the only one.
fn joined(e: &mut Edit<'_>, parts: &[InstrId]) -> Option<InstrId> {
    if let [one] = *parts { Some(one) } else { e.tuple(parts) }
}

fn sort_not_stable(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Sort)?;
    (e.me().attrs.bool(AttrKey::IsStable) && e.operands().len() > 1).then_some(())?;
    let attrs = e.attrs();
    let dims = attrs.ints(AttrKey::Dimensions)?.to_vec();
    let reversed: Vec<InstrId> = e.operands().iter().map(|&o| e.reverse(o, &dims)).collect::<Option<_>>()?;
    e.again(&reversed, attrs)
}

fn sort_by_partial_order(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Sort)?;
    let region = e.called(AttrKey::ToApply)?;
    let total = e.module().instructions(region).any(|id| is_total(&e.instr(id).attrs));
    total.then_some(())?;
    let other = e.copy_of(region, |_, new, _| {
        if is_total(&new.attrs) {
            new.attrs.set(AttrKey::CompareType, AttrValue::CompareType(CompareType::Float));
        }
    })?;
    e.with_attr(AttrKey::ToApply, AttrValue::Computation(other))
}

fn topk_ties_to_last(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Topk)?;
    let x = e.operand(0)?;
    let shape = e.array(x)?;
    let last = shape.rank() as i64 - 1;
    let size = shape.dims[last as usize];
    let (reversed, attrs) = (e.reverse(x, &[last])?, e.attrs());
    let top = e.again(&[reversed], attrs)?;
    let [values, indices] = *outputs(e, top, 2)? else { return None };
    let end = e.int(indices, i128::from(size - 1))?;
    let indices = e.bin(Opcode::Subtract, end, indices)?;
    joined(e, &[values, indices])
}

fn map_operands_swapped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Map)?;
    let (a, b) = e.pair()?;
    (a != b && e.ty(a)? == e.ty(b)?).then_some(())?;
    let attrs = e.attrs();
    e.again(&[b, a], attrs)
}
