//! Idioms of JAX programs: argument reductions, cumulative sums, softmax, normalization, attention, pooling
//! and its gradient, indexing with negative numbers, quantization, rotations of bits.

use hlo::attrs::{AttrKey, AttrValue, Direction, PaddingDim, SliceDim, Window, WindowDim};
use hlo::builder::{ComputationBuilder, scalar_region};
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Literal, Opcode, Shape};

use super::body::{Body, ints};
use super::elementwise::filled;
use super::{Family, Generator, values};

const IDIOMS: &[Family] = &[
    softmax,
    normalized,
    arg_reduce,
    cumulative,
    taken,
    scattered,
    attention,
    pooled,
    biased_dot,
    biased_convolution,
    quantized,
    rotated_bits,
    sorted_by,
    rolled,
    masked,
    differences,
    outer,
    spread_out,
    halves,
    window_mean,
];

pub(super) fn idiom(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let make = g.choices.pick(IDIOMS);
    make(g, body)
}

/// The float types that most idioms are written in.
fn common(ty: ElementType) -> bool {
    matches!(ty, ElementType::F32 | ElementType::F64 | ElementType::BF16 | ElementType::F16)
}

/// A value of one of those types and a rank of at least one.
fn floats(g: &mut Generator<'_>, body: &mut Body) -> Option<(InstrId, ArrayShape)> {
    let x = g.value(body, |a| a.rank() >= 1 && common(a.element_type));
    let shape = g.array(x).without_layout();
    common(shape.element_type).then_some((x, shape))
}

/// A constant scalar.
fn scalar(g: &mut Generator<'_>, body: &Body, ty: ElementType, value: f64) -> InstrId {
    g.at(body).constant(Literal::Array(values::number(ty, value)))
}

/// A splat.
fn everywhere(g: &mut Generator<'_>, body: &Body, shape: &ArrayShape, value: f64) -> Option<InstrId> {
    let one = scalar(g, body, shape.element_type, value);
    g.at(body).broadcast(one, &shape.dims, &[]).ok()
}

/// The fold of a dimension by an opcode, from a value on.
fn folded(
    g: &mut Generator<'_>,
    body: &Body,
    x: InstrId,
    opcode: Opcode,
    from: f64,
    dimension: usize,
) -> Option<InstrId> {
    let ty = g.array(x).element_type;
    let init = scalar(g, body, ty, from);
    let region = scalar_region(&mut g.module, opcode.name(), opcode, ty).ok()?;
    g.at(body).reduce(x, init, &[dimension as i64], region).ok()
}

/// A reduced value broadcast back along the reduced dimension.
fn back(
    g: &mut Generator<'_>,
    body: &Body,
    x: InstrId,
    shape: &ArrayShape,
    dimension: usize,
) -> Option<InstrId> {
    let mapping: Vec<i64> = (0..shape.rank() as i64).filter(|&d| d != dimension as i64).collect();
    g.at(body).broadcast(x, &shape.dims, &mapping).ok()
}

fn exp_of_shifted(g: &mut Generator<'_>, body: &Body, x: InstrId, d: usize) -> Option<(InstrId, InstrId)> {
    let shape = g.array(x).without_layout();
    let most = folded(g, body, x, Opcode::Maximum, f64::NEG_INFINITY, d)?;
    let most = back(g, body, most, &shape, d)?;
    let shifted = g.plain(body, Opcode::Subtract, &[x, most])?;
    let powers = g.plain(body, Opcode::Exponential, &[shifted])?;
    Some((powers, shifted))
}

/// Softmax, or its logarithm.
fn softmax(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (x, shape) = floats(g, body)?;
    let d = g.choices.below(shape.rank());
    let (powers, shifted) = exp_of_shifted(g, body, x, d)?;
    let sum = folded(g, body, powers, Opcode::Add, 0.0, d)?;
    if g.choices.chance(80) {
        let log = g.plain(body, Opcode::Log, &[sum])?;
        let log = back(g, body, log, &shape, d)?;
        return g.plain(body, Opcode::Subtract, &[shifted, log]);
    }
    let sum = back(g, body, sum, &shape, d)?;
    g.plain(body, Opcode::Divide, &[powers, sum])
}

/// Normalization: mean and variance removed.
fn normalized(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (x, shape) = floats(g, body)?;
    let d = g.choices.below(shape.rank());
    let count = everywhere(g, body, &shape, shape.dims[d].max(1) as f64)?;
    let mean = |g: &mut Generator<'_>, v: InstrId| {
        let sum = folded(g, body, v, Opcode::Add, 0.0, d)?;
        let sum = back(g, body, sum, &shape, d)?;
        g.plain(body, Opcode::Divide, &[sum, count])
    };
    let average = mean(g, x)?;
    let centred = g.plain(body, Opcode::Subtract, &[x, average])?;
    let squares = g.plain(body, Opcode::Multiply, &[centred, centred])?;
    let variance = mean(g, squares)?;
    let epsilon = everywhere(g, body, &shape, 0.0078125)?;
    let variance = g.plain(body, Opcode::Add, &[variance, epsilon])?;
    let scale = g.plain(body, Opcode::Rsqrt, &[variance])?;
    g.plain(body, Opcode::Multiply, &[centred, scale])
}

/// The index of the largest or smallest element (argmax, argmin): the first of equal ones, a NaN before all.
fn arg_reduce(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && !a.element_type.is_complex());
    let shape = g.array(x);
    let (ty, at) = (shape.element_type, ElementType::S32);
    (!ty.is_complex() && shape.rank() > 0).then_some(())?;
    let d = g.choices.below(shape.rank());
    let direction = g.choices.pick(&[Direction::Gt, Direction::Lt]);
    let mut b = ComputationBuilder::new(&mut g.module, "arg");
    let [v, i, w, j] =
        [("v", ty), ("i", at), ("w", ty), ("j", at)].map(|(n, t)| b.parameter(n, Shape::scalar(t)));
    let mut better = b.compare(direction, v, w).ok()?;
    if ty.is_float() {
        let nan = b.compare(Direction::Ne, v, v).ok()?;
        better = b.binary(Opcode::Or, better, nan).ok()?;
    }
    let equal = b.compare(Direction::Eq, v, w).ok()?;
    let before = b.compare(Direction::Lt, i, j).ok()?;
    let tie = b.binary(Opcode::And, equal, before).ok()?;
    let index = b.binary(Opcode::Or, better, tie).ok()?;
    let value = b.select(better, v, w).ok()?;
    let index = b.select(index, i, j).ok()?;
    b.tuple(&[value, index]).ok()?;
    let region = b.finish();
    let indices = g.at(body).iota(Shape::array(at, &shape.dims), d as i64).ok()?;
    let least = direction == Direction::Gt;
    let worst = if ty.is_float() {
        scalar(g, body, ty, if least { f64::NEG_INFINITY } else { f64::INFINITY })
    } else {
        g.number(body, ty, 0)
    };
    let zero = g.number(body, at, 0);
    let attrs = Attrs::new()
        .with(AttrKey::Dimensions, ints(&[d as i64]))
        .with(AttrKey::ToApply, AttrValue::Computation(region));
    let id = g.add(body, Opcode::Reduce, &[x, indices, worst, zero], attrs)?;
    g.unpack(body, id)
}

/// Cumulative sums, products or maxima, from one end or the other: a window as long as the dimension.
fn cumulative(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && a.dims.iter().all(|&d| d > 0));
    let shape = g.array(x);
    let d = g.choices.below(shape.rank());
    let n = *shape.dims.get(d)?;
    (n > 0).then_some(())?;
    let mut window = Window { dims: shape.dims.iter().map(|_| WindowDim::default()).collect() };
    let w = &mut window.dims[d];
    w.size = n;
    if g.choices.chance(80) {
        w.pad_high = n - 1
    } else {
        w.pad_low = n - 1
    }
    let opcode = g.choices.pick(&[Opcode::Add, Opcode::Maximum, Opcode::Multiply, Opcode::Minimum]);
    let region = scalar_region(&mut g.module, opcode.name(), opcode, shape.element_type).ok()?;
    let init = g.number(body, shape.element_type, i64::from(opcode == Opcode::Multiply));
    let attrs = Attrs::new()
        .with(AttrKey::Window, AttrValue::Window(Box::new(window)))
        .with(AttrKey::ToApply, AttrValue::Computation(region));
    g.add(body, Opcode::ReduceWindow, &[x, init], attrs)
}

/// Indices of which the negative ones count from the end, as vectors of one component.
fn wrapped_indices(g: &mut Generator<'_>, body: &mut Body, rows: i64) -> Option<(InstrId, i64)> {
    let n = g.choices.int(1, 6);
    let i = g.of_shape(body, &ArrayShape::new(ElementType::S32, &[n]));
    let zero = filled(g, body, ElementType::S32, 0, &[n])?;
    let count = filled(g, body, ElementType::S32, rows, &[n])?;
    let negative = g.at(body).compare(Direction::Lt, i, zero).ok()?;
    let up = g.plain(body, Opcode::Add, &[i, count])?;
    let i = g.at(body).select(negative, up, i).ok()?;
    Some((g.at(body).reshape(i, &[n, 1]).ok()?, n))
}

/// `x[i]`
fn taken(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && a.dims[0] > 0);
    let shape = g.array(x);
    let rows = *shape.dims.first().filter(|&&d| d > 0)?;
    let (i, _) = wrapped_indices(g, body, rows)?;
    let mut sizes = shape.dims.to_vec();
    sizes[0] = 1;
    let offset: Vec<i64> = (1..shape.rank() as i64).collect();
    let attrs = Attrs::new()
        .with(AttrKey::OffsetDims, ints(&offset))
        .with(AttrKey::CollapsedSliceDims, ints(&[0]))
        .with(AttrKey::StartIndexMap, ints(&[0]))
        .with(AttrKey::IndexVectorDim, AttrValue::Int(1))
        .with(AttrKey::SliceSizes, ints(&sizes));
    g.add(body, Opcode::Gather, &[x, i], attrs)
}

/// `x.at[i].add(u)`, and its like.
fn scattered(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && a.dims[0] > 0);
    let shape = g.array(x);
    let rows = *shape.dims.first().filter(|&&d| d > 0)?;
    let (i, n) = wrapped_indices(g, body, rows)?;
    let mut dims = shape.dims.to_vec();
    dims[0] = n;
    let update = ArrayShape::new(shape.element_type, &dims);
    g.fits(&Shape::Array(update.clone())).then_some(())?;
    let update = g.of_shape(body, &update);
    let region = if g.choices.chance(90) {
        super::indexing::second(g, shape.element_type)
    } else {
        g.reducer(&[shape.element_type])?
    };
    let windows: Vec<i64> = (1..shape.rank() as i64).collect();
    let attrs = Attrs::new()
        .with(AttrKey::UpdateWindowDims, ints(&windows))
        .with(AttrKey::InsertedWindowDims, ints(&[0]))
        .with(AttrKey::ScatterDimsToOperandDims, ints(&[0]))
        .with(AttrKey::IndexVectorDim, AttrValue::Int(1))
        .with(AttrKey::ToApply, AttrValue::Computation(region));
    g.add(body, Opcode::Scatter, &[x, i, update], attrs)
}

/// Softmax of scaled and masked products of queries and keys, times values.
fn attention(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let ty = g.choices.pick(&[ElementType::F32, ElementType::BF16, ElementType::F64]);
    let (batch, queries, keys, width) =
        (g.choices.int(1, 2), g.choices.int(1, 4), g.choices.int(1, 5), g.choices.int(1, 4));
    let [q, k, v] = [[batch, queries, width], [batch, keys, width], [batch, keys, width]]
        .map(|dims| g.of_shape(body, &ArrayShape::new(ty, &dims)));
    let scores = g.at(body).dot(q, k, [&[2], &[2]], [&[0], &[0]]).ok()?;
    let shape = g.array(scores);
    let scale = everywhere(g, body, &shape, 0.5)?;
    let mut scores = g.plain(body, Opcode::Multiply, &[scores, scale])?;
    if g.choices.chance(128) {
        let whole = Shape::array(ElementType::S32, &shape.dims);
        let row = g.at(body).iota(whole.clone(), 1).ok()?;
        let column = g.at(body).iota(whole, 2).ok()?;
        let seen = g.at(body).compare(Direction::Ge, row, column).ok()?;
        let hidden = everywhere(g, body, &shape, f64::NEG_INFINITY)?;
        scores = g.at(body).select(seen, scores, hidden).ok()?;
    }
    let (powers, _) = exp_of_shifted(g, body, scores, 2)?;
    let sum = folded(g, body, powers, Opcode::Add, 0.0, 2)?;
    let sum = back(g, body, sum, &shape, 2)?;
    let weights = g.plain(body, Opcode::Divide, &[powers, sum])?;
    g.at(body).dot(weights, v, [&[2], &[1]], [&[0], &[0]]).ok()
}

/// Pooling of maxima, and its gradient.
fn pooled(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let ty = g.choices.pick(&[ElementType::F32, ElementType::BF16, ElementType::S32]);
    let (h, w) = (g.choices.int(3, 6), g.choices.int(2, 5));
    let x = g.of_shape(body, &ArrayShape::new(ty, &[1, h, w, 1]));
    let stride = g.choices.int(1, 3);
    let padded = i64::from(g.choices.chance(100));
    let dim = |size| WindowDim { size, stride, pad_low: padded, pad_high: 0, ..WindowDim::default() };
    let window =
        Window { dims: [WindowDim::default(), dim(2), dim(2), WindowDim::default()].into_iter().collect() };
    let init = if ty.is_float() { scalar(g, body, ty, f64::NEG_INFINITY) } else { g.number(body, ty, -100) };
    let most = scalar_region(&mut g.module, "max", Opcode::Maximum, ty).ok()?;
    let window = AttrValue::Window(Box::new(window));
    let attrs = Attrs::new()
        .with(AttrKey::Window, window.clone())
        .with(AttrKey::ToApply, AttrValue::Computation(most));
    let out = g.add(body, Opcode::ReduceWindow, &[x, init], attrs)?;
    if g.choices.chance(100) {
        return Some(out);
    }
    let shape = g.array(out);
    let gradient = g.of_shape(body, &shape);
    let select = hlo::builder::comparator(&mut g.module, "ge", Direction::Ge, &[ty]).ok()?;
    let add = scalar_region(&mut g.module, "add", Opcode::Add, ty).ok()?;
    let zero = g.number(body, ty, 0);
    let attrs = Attrs::new()
        .with(AttrKey::Window, window)
        .with(AttrKey::Select, AttrValue::Computation(select))
        .with(AttrKey::Scatter, AttrValue::Computation(add));
    g.add(body, Opcode::SelectAndScatter, &[x, gradient, zero], attrs)
}

/// A layer: product, bias, activation; one of the factors transposed before.
fn biased_dot(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() == 2);
    let shape = g.array(x);
    let (&[_, k], ty) = (&shape.dims[..], shape.element_type) else { return None };
    let n = g.choices.int(1, 9);
    let transposed = g.choices.chance(128);
    let weights = if transposed { ArrayShape::new(ty, &[n, k]) } else { ArrayShape::new(ty, &[k, n]) };
    g.fits(&Shape::Array(weights.clone())).then_some(())?;
    let mut w = g.of_shape(body, &weights);
    if transposed {
        w = g.at(body).transpose(w, &[1, 0]).ok()?;
    }
    let product = g.at(body).dot(x, w, [&[1], &[0]], [&[], &[]]).ok()?;
    let result = g.array(product).without_layout();
    g.fits(&Shape::Array(result.clone())).then_some(())?;
    let offset = g.of_shape(body, &ArrayShape::new(result.element_type, &[n]));
    let offset = g.at(body).broadcast(offset, &result.dims, &[1]).ok()?;
    let y = g.plain(body, Opcode::Add, &[product, offset])?;
    let zero = filled(g, body, result.element_type, 0, &result.dims)?;
    let bent = g.choices.pick(&[Opcode::Maximum, Opcode::Tanh, Opcode::Logistic, Opcode::Maximum]);
    let made =
        if bent == Opcode::Maximum { g.plain(body, bent, &[y, zero]) } else { g.plain(body, bent, &[y]) };
    made.or(Some(y))
}

/// A convolution, a bias and a ReLU; the image padded before.
fn biased_convolution(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let conv = super::contraction::convolution(g, body)?;
    let shape = g.array(conv).without_layout();
    let ty = shape.element_type;
    let d = g.choices.below(shape.rank());
    let offset = g.of_shape(body, &ArrayShape::new(ty, &[shape.dims[d]]));
    let offset = g.at(body).broadcast(offset, &shape.dims, &[d as i64]).ok()?;
    let y = g.plain(body, Opcode::Add, &[conv, offset])?;
    let zero = filled(g, body, ty, 0, &shape.dims)?;
    g.plain(body, Opcode::Maximum, &[y, zero])
}

/// Quantization to narrow integers, and back.
fn quantized(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (x, shape) = floats(g, body)?;
    let scale = everywhere(g, body, &shape, 0.125)?;
    let steps = g.plain(body, Opcode::Divide, &[x, scale])?;
    let round = g.choices.pick(&[Opcode::RoundNearestEven, Opcode::RoundNearestAfz, Opcode::Floor]);
    let steps = g.plain(body, round, &[steps])?;
    let (low, high) =
        (scalar(g, body, shape.element_type, -128.0), scalar(g, body, shape.element_type, 127.0));
    let steps = g.plain(body, Opcode::Clamp, &[low, steps, high])?;
    let narrow = g.choices.pick(&[ElementType::S8, ElementType::U8, ElementType::S4]);
    let codes = g.at(body).convert(steps, narrow).ok()?;
    body.add(codes);
    let again = g.at(body).convert(codes, shape.element_type).ok()?;
    g.plain(body, Opcode::Multiply, &[again, scale])
}

/// A round of a counter-based generator: add, rotate, xor.
fn rotated_bits(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.element_type.is_integer());
    let shape = g.array(x).without_layout();
    let ty = shape.element_type;
    ty.is_integer().then_some(())?;
    let y = g.of_shape(body, &shape);
    let sum = g.plain(body, Opcode::Add, &[x, y])?;
    let by = g.choices.int(0, i64::from(ty.bits()));
    let left = filled(g, body, ty, by, &shape.dims)?;
    let right = filled(g, body, ty, i64::from(ty.bits()) - by, &shape.dims)?;
    let up = g.plain(body, Opcode::ShiftLeft, &[y, left])?;
    let down = g.plain(body, Opcode::ShiftRightLogical, &[y, right])?;
    let rotated = g.plain(body, Opcode::Or, &[up, down])?;
    g.plain(body, Opcode::Xor, &[sum, rotated])
}

/// argsort, and other elements gathered in that order.
fn sorted_by(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && !a.element_type.is_complex());
    let shape = g.array(x);
    (shape.rank() >= 1 && !shape.element_type.is_complex()).then_some(())?;
    let d = g.choices.below(shape.rank()) as i64;
    let indices = g.at(body).iota(Shape::array(ElementType::S32, &shape.dims), d).ok()?;
    let direction = g.choices.pick(&[Direction::Lt, Direction::Gt]);
    let types = [shape.element_type, ElementType::S32];
    let order = super::reduction::comparator(g, direction, &types, true)?;
    let id = g.at(body).sort(&[x, indices], d, order, true).ok()?;
    g.unpack(body, id)
}

/// Slices joined in another order: a roll.
fn rolled(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    let d = g.choices.below(shape.rank());
    let n = shape.dims[d];
    let at = g.choices.int(0, n);
    let part = |g: &mut Generator<'_>, from: i64, to: i64| {
        let mut slices: Vec<SliceDim> =
            shape.dims.iter().map(|&d| SliceDim { start: 0, limit: d, stride: 1 }).collect();
        slices[d] = SliceDim { start: from, limit: to, stride: 1 };
        g.at(body).slice(x, &slices).ok()
    };
    let (first, second) = (part(g, 0, at)?, part(g, at, n)?);
    let parts = if g.choices.chance(60) { [first, second] } else { [second, first] };
    g.at(body).concatenate(&parts, d as i64).ok()
}

/// Elements on one side of a diagonal.
fn masked(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 2);
    let shape = g.array(x).without_layout();
    let whole = Shape::array(ElementType::S32, &shape.dims);
    let rank = shape.rank() as i64;
    let row = g.at(body).iota(whole.clone(), rank - 2).ok()?;
    let column = g.at(body).iota(whole, rank - 1).ok()?;
    let offset = g.choices.int(-1, 1);
    let offset = filled(g, body, ElementType::S32, offset, &shape.dims)?;
    let row = g.plain(body, Opcode::Add, &[row, offset])?;
    let direction = g.choices.pick(&[Direction::Ge, Direction::Lt, Direction::Eq]);
    let seen = g.at(body).compare(direction, row, column).ok()?;
    let zero = filled(g, body, shape.element_type, 0, &shape.dims)?;
    g.at(body).select(seen, x, zero).ok()
}

/// Differences of neighbours, or every second element minus the next.
fn differences(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && a.dims[0] >= 2);
    let shape = g.array(x);
    let n = *shape.dims.first().filter(|&&n| n >= 2)?;
    let stride = g.choices.int(1, 2);
    let part = |g: &mut Generator<'_>, start: i64, limit: i64| {
        let mut slices: Vec<SliceDim> =
            shape.dims.iter().map(|&d| SliceDim { start: 0, limit: d, stride: 1 }).collect();
        slices[0] = SliceDim { start, limit, stride };
        g.at(body).slice(x, &slices).ok()
    };
    let (a, b) = (part(g, 1, n)?, part(g, 0, n - 1)?);
    let opcode = g.choices.pick(&[Opcode::Subtract, Opcode::Maximum, Opcode::Add]);
    g.plain(body, opcode, &[a, b])
}

/// All pairs: every element of one with every element of another.
fn outer(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() == 1);
    let shape = g.array(x);
    let &[m] = &shape.dims[..] else { return None };
    let n = g.choices.int(1, 9);
    let dims = [m, n];
    g.fits(&Shape::array(shape.element_type, &dims)).then_some(())?;
    let y = g.of_shape(body, &ArrayShape::new(shape.element_type, &[n]));
    let a = g.at(body).broadcast(x, &dims, &[0]).ok()?;
    let b = g.at(body).broadcast(y, &dims, &[1]).ok()?;
    let opcode = g.choices.pick(&[Opcode::Multiply, Opcode::Add, Opcode::Subtract, Opcode::Maximum]);
    g.plain(body, opcode, &[a, b])
}

/// Padded between the elements, and taken apart again.
fn spread_out(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    let value = g.of_shape(body, &ArrayShape::new(shape.element_type, &[]));
    let interior = g.choices.int(1, 2);
    let padding = vec![PaddingDim { low: 0, high: 0, interior }; shape.rank()];
    let attrs = Attrs::new().with(AttrKey::Padding, AttrValue::Padding(padding.into()));
    let spread = g.add(body, Opcode::Pad, &[x, value], attrs)?;
    let wide = g.array(spread);
    let start = g.choices.int(0, 1);
    let slices: Vec<SliceDim> =
        wide.dims.iter().map(|&d| SliceDim { start: start.min(d), limit: d, stride: interior + 1 }).collect();
    g.at(body).slice(spread, &slices).ok()
}

/// Halves exchanged and negated, as in rotary embeddings.
fn halves(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.dims.last().is_some_and(|d| d % 2 == 0));
    let shape = g.array(x);
    let last = *shape.dims.last().filter(|d| *d % 2 == 0)?;
    let d = shape.rank() - 1;
    let part = |g: &mut Generator<'_>, from: i64, to: i64| {
        let mut slices: Vec<SliceDim> =
            shape.dims.iter().map(|&d| SliceDim { start: 0, limit: d, stride: 1 }).collect();
        slices[d] = SliceDim { start: from, limit: to, stride: 1 };
        g.at(body).slice(x, &slices).ok()
    };
    let (a, b) = (part(g, 0, last / 2)?, part(g, last / 2, last)?);
    let b = g.plain(body, Opcode::Negate, &[b]).unwrap_or(b);
    let rotated = g.at(body).concatenate(&[b, a], d as i64).ok()?;
    g.plain(body, Opcode::Add, &[x, rotated])
}

/// Means of windows: sums over how many elements each has.
fn window_mean(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (x, shape) = floats(g, body)?;
    let dims = shape.dims.iter().map(|&d| WindowDim {
        size: g.choices.int(1, d.clamp(1, 3)),
        stride: 1,
        pad_low: 1,
        pad_high: 1,
        ..WindowDim::default()
    });
    let window = AttrValue::Window(Box::new(Window { dims: dims.collect() }));
    let add = scalar_region(&mut g.module, "add", Opcode::Add, shape.element_type).ok()?;
    let zero = g.number(body, shape.element_type, 0);
    let attrs =
        Attrs::new().with(AttrKey::Window, window).with(AttrKey::ToApply, AttrValue::Computation(add));
    let sums = g.add(body, Opcode::ReduceWindow, &[x, zero], attrs.clone())?;
    let ones = everywhere(g, body, &shape, 1.0)?;
    let counts = g.add(body, Opcode::ReduceWindow, &[ones, zero], attrs)?;
    g.plain(body, Opcode::Divide, &[sums, counts])
}
