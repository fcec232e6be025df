//! Folds by other regions than sums, in other orders: of `reduce`, `reduce-window` and `scatter`, of any
//! number of operands.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Window, WindowDim};
use hlo::builder::ComputationBuilder;
use hlo::{InstrId, Module, Opcode, Shape};
use hlo_opt::passes::edit::{Edit, each};
use hlo_opt::passes::{Fuel, Pass};

use super::sums::{adds, longest, reversed_window};
use hlo_certify::bounds;

/// The order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Backwards: operands are reversed along the folded dimensions, updates along those of the index array.
    Reversed,
    /// Halves of what chooses among elements, and a fold of what these give.
    Halved,
    /// The combiner applied to the element and the accumulator instead of the accumulator and the element.
    Swapped,
    /// Column-major: of several folded dimensions (or those of a window) the first fastest, where the
    /// reference has the last.
    ByColumns,
    /// Windows of [`WINDOW_SIZE`] positions along each folded dimension, each from the initial value, and a
    /// fold of what these give: what XLA:CPU makes of longer folds. StableHLO's `reduce` may take the initial
    /// value any number of times; where bounds know what a region computes, they have it once, and this
    /// leaves the fold alone.
    Windows,
}

/// Positions of a window along a dimension: of XLA:CPU's `TreeReductionRewriter`.
const WINDOW_SIZE: i64 = 32;

/// Folds by other regions than sums in another order.
#[derive(Clone, Copy, Debug)]
pub struct Regions(pub How);

impl Pass for Regions {
    fn name(&self) -> &str {
        match self.0 {
            How::Reversed => "regions-reversed",
            How::Halved => "regions-halved",
            How::Swapped => "regions-swapped",
            How::ByColumns => "regions-by-columns",
            How::Windows => "regions-windows",
        }
    }

    fn doc(&self) -> &str {
        match self.0 {
            How::Reversed => "folds that are no sums from the last element to the first",
            How::Halved => "folds that choose among elements by halves",
            How::Swapped => "folds that are no sums by their regions with the operands exchanged",
            How::ByColumns => "folds that are no sums over several dimensions, the first fastest",
            How::Windows => {
                "folds of one operand that are no sums in windows of 32, and a fold of the windows"
            }
        }
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        match self.0 {
            How::Reversed => each(module, fuel, reversed),
            How::Halved => each(module, fuel, halved),
            How::Swapped => each(module, fuel, swapped),
            How::ByColumns => each(module, fuel, |e| by_columns(e, operands(e)?)),
            How::Windows => each(module, fuel, in_windows),
        }
    }
}

/// The operands of a fold that is no sum of floats, all of static shapes.
fn operands(e: &Edit<'_>) -> Option<Vec<InstrId>> {
    let region = e.at().attrs.computation(AttrKey::ToApply)?;
    let operands = e.at().operands().to_vec();
    let arrays = operands.iter().all(|&o| e.array(o).is_some_and(|a| !a.is_dynamic()));
    (arrays && adds(e, region).is_none()).then_some(operands)
}

fn reversed(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.at().opcode;
    if !matches!(opcode, Opcode::Reduce | Opcode::ReduceWindow | Opcode::Scatter) {
        return None;
    }
    let mut operands = operands(e)?;
    let attrs = e.at().attrs.clone();
    let n = operands.len() / 2;
    match opcode {
        Opcode::Reduce => {
            let dims = attrs.ints(AttrKey::Dimensions)?.to_vec();
            if dims.is_empty() {
                return None;
            }
            for x in &mut operands[..n] {
                *x = e.reverse(*x, &dims)?;
            }
            e.again(&operands)
        }
        Opcode::ReduceWindow => {
            let dims: Vec<i64> = (0..attrs.window()?.dims.len() as i64).collect();
            if dims.is_empty() {
                return None;
            }
            let window = reversed_window(e, &dims, operands[0])?;
            for x in &mut operands[..n] {
                *x = e.reverse(*x, &dims)?;
            }
            let attrs = attrs.with(AttrKey::Window, AttrValue::Window(Box::new(window)));
            let shape = e.at().shape.clone();
            let folded = e.shaped(Opcode::ReduceWindow, shape, &operands, attrs)?;
            let Shape::Tuple(parts) = e.instr(folded).shape.clone() else { return e.reverse(folded, &dims) };
            let mut results = Vec::new();
            for index in 0..parts.len() as i64 {
                let part = e.get(folded, index)?;
                results.push(e.reverse(part, &dims)?);
            }
            e.tuple(&results)
        }
        _ => {
            let window = attrs.ints_or_empty(AttrKey::UpdateWindowDims).to_vec();
            if !attrs.ints_or_empty(AttrKey::InputBatchingDims).is_empty() {
                return None;
            }
            let vector = attrs.int(AttrKey::IndexVectorDim)?;
            let rank = |e: &Edit<'_>, x: InstrId| e.array(x).map(|a| a.dims.len() as i64);
            let of_indices: Vec<i64> = (0..rank(e, operands[n])?).filter(|&d| d != vector).collect();
            let of_updates: Vec<i64> =
                (0..rank(e, operands[n + 1])?).filter(|d| !window.contains(d)).collect();
            if of_indices.is_empty() || of_indices.len() != of_updates.len() {
                return None;
            }
            operands[n] = e.reverse(operands[n], &of_indices)?;
            for x in &mut operands[n + 1..] {
                *x = e.reverse(*x, &of_updates)?;
            }
            e.again(&operands)
        }
    }
}

/// A fold by a computation that calls the region with its two halves of parameters exchanged, unless it folds a
/// function of elements (`acc + x * x`), which no compiler may apply to what is accumulated. Of a scatter
/// the first ones are always what is in the operand (XLA's operation semantics, "Scatter").
fn swapped(e: &mut Edit<'_>) -> Option<InstrId> {
    if !matches!(e.at().opcode, Opcode::Reduce | Opcode::ReduceWindow) {
        return None;
    }
    let operands = operands(e)?;
    let region = e.at().attrs.computation(AttrKey::ToApply)?;
    if !bounds::may_be_exchanged(e.module, region) {
        return None;
    }
    let parameters: Vec<InstrId> =
        e.module.computation(region).parameters().iter().copied().collect::<Option<_>>()?;
    let shapes: Vec<Shape> = parameters.iter().map(|&p| e.instr(p).shape.clone()).collect();
    let (accumulators, elements) = shapes.split_at(shapes.len() / 2);
    let mut b = ComputationBuilder::new(e.module, "swapped");
    // Parameters keep their positions, whose types are those of accumulators and of elements.
    let [first, second] =
        [accumulators, elements].map(|of| of.iter().map(|s| b.parameter("x", s.clone())).collect::<Vec<_>>());
    let built = if accumulators == elements { b.call(region, &[second, first].concat()).ok() } else { None };
    let computation = b.finish();
    e.before_caller(computation);
    built?;
    let attrs = e.at().attrs.clone().with(AttrKey::ToApply, AttrValue::Computation(computation));
    let (opcode, shape) = (e.at().opcode, e.at().shape.clone());
    e.shaped(opcode, shape, &operands, attrs)
}

/// A fold of the operands with their dimensions in the reverse order, and the result's put back.
pub(super) fn by_columns(e: &mut Edit<'_>, mut operands: Vec<InstrId>) -> Option<InstrId> {
    let opcode = e.at().opcode;
    if !matches!(opcode, Opcode::Reduce | Opcode::ReduceWindow) {
        return None;
    }
    let mut attrs = e.at().attrs.clone();
    let sizes = e.array(*operands.first()?)?.dims.to_vec();
    let rank = sizes.len() as i64;
    // Folded dimensions of more than one element: one alone has one order.
    let longer = match opcode {
        Opcode::Reduce => {
            let dims = attrs.ints(AttrKey::Dimensions)?.to_vec();
            let reversed: Vec<i64> = dims.iter().map(|d| rank - 1 - d).collect();
            attrs.set(AttrKey::Dimensions, hlo_opt::passes::edit::ints(&reversed));
            dims.iter().filter(|&&d| usize::try_from(d).is_ok_and(|d| sizes[d] > 1)).count()
        }
        _ => {
            let mut window = attrs.window()?.clone();
            window.dims.reverse();
            let longer = window.dims.iter().filter(|w| w.size > 1).count();
            attrs.set(AttrKey::Window, AttrValue::Window(Box::new(window)));
            longer
        }
    };
    if longer < 2 {
        return None;
    }
    let reversed: Vec<i64> = (0..rank).rev().collect();
    let count = operands.len() / 2;
    for x in &mut operands[..count] {
        *x = e.transpose(*x, &reversed)?;
    }
    let transposed = |shape: &Shape| {
        let array = shape.as_array()?;
        Some(Shape::array(array.element_type, &array.dims.iter().rev().copied().collect::<Vec<_>>()))
    };
    let back: Vec<i64> = (0..e.at().shape.leaves().first()?.as_array()?.dims.len() as i64).rev().collect();
    match e.at().shape.clone() {
        Shape::Tuple(parts) => {
            let shape = Shape::tuple(parts.iter().map(transposed).collect::<Option<Vec<_>>>()?);
            let folded = e.shaped(opcode, shape, &operands, attrs)?;
            let mut results = Vec::new();
            for index in 0..parts.len() as i64 {
                let part = e.get(folded, index)?;
                results.push(e.transpose(part, &back)?);
            }
            e.tuple(&results)
        }
        shape => {
            let folded = e.shaped(opcode, transposed(&shape)?, &operands, attrs)?;
            e.transpose(folded, &back)
        }
    }
}

/// A fold of one operand that nothing is known of, or that chooses, in windows from the initial value.
fn in_windows(e: &mut Edit<'_>) -> Option<InstrId> {
    let operands = operands(e)?;
    let region = e.at().attrs.computation(AttrKey::ToApply)?;
    if !bounds::chooses(e.module, region) && bounds::recognizes(e.module, region) {
        return None;
    }
    let [value, initial] = operands[..] else { return None };
    windows(e, value, initial, initial)
}

/// A `reduce` of one operand over a dimension of more than [`WINDOW_SIZE`] elements: a `reduce-window` from
/// `first` whose windows do not overlap, padded alike on both sides, and the `reduce` of its results from
/// `initial`.
pub(super) fn windows(e: &mut Edit<'_>, value: InstrId, first: InstrId, initial: InstrId) -> Option<InstrId> {
    if e.at().opcode != Opcode::Reduce {
        return None;
    }
    let attrs = e.at().attrs.clone();
    let folded = attrs.ints(AttrKey::Dimensions)?;
    let array = e.array(value)?.clone();
    let mut window = Window::default();
    let mut counts = Vec::new();
    for (d, &n) in array.dims.iter().enumerate() {
        let size = if folded.contains(&(d as i64)) { n.clamp(1, WINDOW_SIZE) } else { 1 };
        let count = n.div_euclid(size) + i64::from(n % size > 0);
        let padding = count * size - n;
        let pad_low = padding / 2;
        let dim =
            WindowDim { size, stride: size, pad_low, pad_high: padding - pad_low, ..Default::default() };
        window.dims.push(dim);
        counts.push(count);
    }
    if window.dims.iter().zip(&array.dims).all(|(w, &n)| w.size == 1 || w.size == n) {
        return None;
    }
    let mut over = Attrs::default();
    over.set(AttrKey::Window, AttrValue::Window(Box::new(window)));
    over.set(AttrKey::ToApply, AttrValue::Computation(attrs.computation(AttrKey::ToApply)?));
    let shape = Shape::array(array.element_type, &counts);
    let folds = e.shaped(Opcode::ReduceWindow, shape, &[value, first], over)?;
    let shape = e.at().shape.clone();
    e.shaped(Opcode::Reduce, shape, &[folds, initial], attrs)
}

/// Both halves of the longest dimension begin with the initial values: those are among what is chosen,
/// however often.
fn halved(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode != Opcode::Reduce {
        return None;
    }
    let operands = operands(e)?;
    let attrs = e.at().attrs.clone();
    if !bounds::chooses(e.module, attrs.computation(AttrKey::ToApply)?) {
        return None;
    }
    let (values, initial) = operands.split_at(operands.len() / 2);
    let sizes = e.array(values[0])?.dims.clone();
    let (d, n) = longest(attrs.ints(AttrKey::Dimensions)?, &sizes)?;
    let mut halves: Vec<Vec<InstrId>> = vec![Vec::new(); values.len()];
    for (start, limit) in [(0, n / 2), (n / 2, n)] {
        let mut parts = Vec::new();
        for &x in values {
            parts.push(e.cut(x, d, start, limit)?);
        }
        parts.extend(initial);
        let folded = e.again(&parts)?;
        for (k, of) in halves.iter_mut().enumerate() {
            let part = if matches!(e.instr(folded).shape, Shape::Tuple(_)) {
                e.get(folded, k as i64)?
            } else {
                folded
            };
            let mut dims = e.array(part)?.dims.to_vec();
            dims.insert(0, 1);
            of.push(e.reshape(part, &dims)?);
        }
    }
    let mut joined = Vec::new();
    // The second half first.
    for of in halves {
        joined.push(e.concatenate(&[of[1], of[0]], 0)?);
    }
    joined.extend(initial);
    let mut over: Attrs = attrs;
    over.set(AttrKey::Dimensions, hlo_opt::passes::edit::ints(&[0]));
    let shape = e.at().shape.clone();
    e.shaped(Opcode::Reduce, shape, &joined, over)
}
