//! Simplification of `reduce-window`.
//!
//! - Padding with values that do not affect the window's fold is folded into the window's padding and
//!   dilation: an element that changes no result may be absent. Sums of floats are not affected by -0; nor by
//!   +0 if the initial value is +0, as then no partial sum is -0.
//! - A window that covers all of some dimensions, and one element of the others, is a reduction.
//! - Small windows by any computation that is not one operation are unrolled into elementwise instructions,
//!   one array per window position.
//! - Adjacent, non-overlapping windows are a reduction of the dimensions that a reshape splits.
//! - Along dimensions where neither window nor operand vary all results are the same: they are computed once.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction, PaddingDim, SliceDim, Window, WindowDim};
use hlo::{ElementType, InstrId, Opcode, Shape};

use super::calls::{expanded, lanes};
use super::edit::{Edit, ints};
use super::facts::{float_bits, is_ieee, small_window_len, splat};
use super::reduce::{identity, inputs, is_exact, operation, result};

/// The maximum number of instructions that a window may be unrolled into, roughly.
const MAX_WINDOWED: usize = 160;

/// A window over one array by one operation, if nothing else decides what its elements are.
fn parts(e: &Edit<'_>) -> Option<(InstrId, InstrId, Vec<WindowDim>)> {
    let [x, init] = e.operands()?;
    let (ty, out) = (e.array(x)?.element_type, e.array(e.id())?.element_type);
    let window = e.at().attrs.window()?.dims.to_vec();
    let fits = window.len() == e.array(x)?.rank() && e.array(init)?.element_type == ty && out == ty;
    (fits && !window.iter().any(|w| w.reversal)).then_some((x, init, window))
}

/// A window over a padded array.
pub(super) fn padded(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, init, window) = parts(e)?;
    let pad = e.instr(x);
    let (Opcode::Pad, &[inside, value]) = (pad.opcode, pad.operands()) else { return None };
    let padding: Vec<PaddingDim> = pad.attrs.padding()?.to_vec();
    let (opcode, ty) = operation(e.module, e.at().attrs.computation(AttrKey::ToApply)?)?;
    let typed = [x, inside].iter().all(|&i| e.array(i).is_some_and(|a| a.element_type == ty));
    if !typed || e.array(inside)?.dims.contains(&0) {
        return None;
    }
    let (_, bits) = splat(e.module, value)?;
    let begins = splat(e.module, init).map(|(_, bits)| bits);
    let minus = 1u128 << (ty.bits() - 1);
    let unseen = if is_ieee(ty) {
        // A NaN as the initial value keeps its bits only if nothing is combined with it.
        let begins =
            begins.filter(|&b| float_bits(ty, f64::INFINITY).is_some_and(|inf| b & !minus <= inf))?;
        match opcode {
            Opcode::Add => [0, minus].contains(&begins) && (bits == minus || bits == 0 && begins == 0),
            Opcode::Maximum | Opcode::Minimum => identity(opcode, ty) == Some(bits) || begins == bits,
            _ => false,
        }
    } else {
        let again = matches!(opcode, Opcode::Maximum | Opcode::Minimum | Opcode::And | Opcode::Or);
        is_exact(opcode, ty) && (identity(opcode, ty) == Some(bits) || again && begins == Some(bits))
    };
    if !unseen {
        return None;
    }
    let dims = window.iter().zip(&padding).map(|(w, p)| {
        let more = |edge: i64| edge.checked_mul(w.base_dilation).filter(|_| edge >= 0);
        Some(WindowDim {
            pad_low: w.pad_low.checked_add(more(p.low)?)?,
            pad_high: w.pad_high.checked_add(more(p.high)?)?,
            base_dilation: w.base_dilation.checked_mul(p.interior.checked_add(1)?)?,
            ..*w
        })
    });
    let dims = dims.collect::<Option<_>>()?;
    let (attrs, shape) = (with_window(e, dims), e.at().shape.clone());
    e.shaped(Opcode::ReduceWindow, shape, &[inside, init], attrs)
}

/// A window that covers whole dimensions.
pub(super) fn whole(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, init, window) = parts(e)?;
    let callee = e.at().attrs.computation(AttrKey::ToApply)?;
    operation(e.module, callee).filter(|(opcode, ty)| opcode.commutes(*ty))?;
    let dims = e.array(x)?.dims.clone();
    let all = |w: &WindowDim, n: i64| {
        n > 1 && *w == WindowDim { size: n, stride: w.stride, ..WindowDim::default() }
    };
    let (mut reduced, mut kept) = (Vec::new(), Vec::new());
    for (d, (w, &n)) in (0..).zip(window.iter().zip(dims.iter())) {
        if all(w, n) {
            reduced.push(d);
        } else if *w == (WindowDim { size: 1, ..WindowDim::default() }) {
            kept.push(n);
        } else {
            return None;
        }
    }
    if reduced.is_empty() {
        return None;
    }
    let reduction = reduce(e, [x, init], &reduced, &kept)?;
    let out = e.array(e.id())?.dims.clone();
    e.reshape(reduction, &out)
}

/// The reduction of some dimensions by the computation of the windows.
fn reduce(e: &mut Edit<'_>, [x, init]: [InstrId; 2], along: &[i64], out: &[i64]) -> Option<InstrId> {
    let callee = e.at().attrs.computation(AttrKey::ToApply)?;
    let attrs = Attrs::new()
        .with(AttrKey::Dimensions, ints(along))
        .with(AttrKey::ToApply, AttrValue::Computation(callee));
    let shape = Shape::array(e.array(x)?.element_type, out);
    e.shaped(Opcode::Reduce, shape, &[x, init], attrs)
}

/// Adjacent, non-overlapping windows: as reductions their loops run along the windows and fuse; the library's
/// window kernel folds window by window.
pub(super) fn tiles(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, init, window) = parts(e)?;
    let callee = e.at().attrs.computation(AttrKey::ToApply)?;
    operation(e.module, callee).filter(|(opcode, ty)| opcode.commutes(*ty))?;
    let out = e.array(e.id())?.dims.clone();
    let tile = |w: &WindowDim| *w == WindowDim { size: w.size, stride: w.size, ..WindowDim::default() };
    let expression = small_window_len(e.module, e.id()).is_some();
    if expression || !window.iter().all(tile) || window.iter().all(|w| w.size == 1) || out.contains(&0) {
        return None;
    }
    let (mut cut, mut split, mut reduced) = (Vec::new(), Vec::new(), Vec::new());
    for (w, &n) in window.iter().zip(out.iter()) {
        cut.push(SliceDim { start: 0, limit: n.checked_mul(w.size)?, stride: 1 });
        split.push(n);
        if w.size > 1 {
            reduced.push(split.len() as i64);
            split.push(w.size);
        }
    }
    let x = e.slice(x, &cut)?;
    let x = e.reshape(x, &split)?;
    reduce(e, [x, init], &reduced, &out)
}

/// Small windows by a computation that is no single operation (the maximum and its index, say): unrolled into
/// elementwise instructions, one array for each window position.
pub(super) fn unrolled(e: &mut Edit<'_>) -> Option<InstrId> {
    let (arrays, inits) = inputs(e)?;
    let callee = e.at().attrs.computation(AttrKey::ToApply)?;
    let dims = e.array(*arrays.first()?)?.dims.clone();
    let out = e.at().shape.leaves().first()?.as_array()?.dims.clone();
    let window = e.at().attrs.window()?.dims.clone();
    let positions = window.iter().try_fold(1i64, |n, w| n.checked_mul(w.size))?;
    let work = (expanded(e.module, callee, MAX_WINDOWED) as i64).saturating_mul(positions);
    let dense = window.iter().all(|w| w.base_dilation == 1 && !w.reversal);
    let alone = arrays.len() == 1 && operation(e.module, callee).is_some();
    if alone
        || !dense
        || positions == 0
        || work > MAX_WINDOWED as i64
        || out.contains(&0)
        || window.len() != dims.len()
    {
        return None;
    }
    // Elements outside of the array are padded, and not used.
    let more: Vec<PaddingDim> = window
        .iter()
        .map(|w| PaddingDim { low: w.pad_low.max(0), high: w.pad_high.max(0), interior: 0 })
        .collect();
    let padded = more.iter().any(|p| p.low != 0 || p.high != 0);
    let mut sources = Vec::with_capacity(arrays.len());
    let mut folded = Vec::with_capacity(arrays.len());
    for (&x, &init) in arrays.iter().zip(&inits) {
        sources.push(if padded { e.pad(x, init, &more)? } else { x });
        folded.push(e.fill_dims(init, &out)?);
    }
    let mut at = vec![0i64; window.len()];
    for _ in 0..positions {
        let (mut slices, mut there) = (Vec::with_capacity(at.len()), None);
        for (d, (w, &k)) in window.iter().zip(&at).enumerate() {
            // Output o reads element `first + o * stride`.
            let first = k.checked_mul(w.window_dilation)?.checked_sub(w.pad_low)?;
            let start = first.checked_add(more[d].low)?;
            let limit = (out[d] - 1).checked_mul(w.stride)?.checked_add(start)?.checked_add(1)?;
            slices.push(SliceDim { start, limit, stride: w.stride });
            let last = first.checked_add((out[d] - 1).checked_mul(w.stride)?)?;
            if first < 0 || last >= dims[d] {
                // The first output at or after an element.
                let behind = |n: i64| n.max(0).unsigned_abs().div_ceil(w.stride.unsigned_abs()).cast_signed();
                let range = behind(first.checked_neg()?)..behind(dims[d].checked_sub(first)?);
                let inside = within(e, &out, d, range)?;
                there = Some(match there {
                    Some(there) => e.binary(Opcode::And, there, inside)?,
                    None => inside,
                });
            }
        }
        let mut operands = folded.clone();
        for &x in &sources {
            operands.push(e.slice(x, &slices)?);
        }
        let next = lanes(e, callee, &operands, &out)?;
        for (folded, next) in folded.iter_mut().zip(next) {
            *folded = match there {
                Some(there) => e.select(there, next, *folded)?,
                None => next,
            };
        }
        for (k, w) in at.iter_mut().zip(&window).rev() {
            *k += 1;
            if *k < w.size {
                break;
            }
            *k = 0;
        }
    }
    result(e, &folded)
}

/// Whether an index of a dimension is in a range.
fn within(e: &mut Edit<'_>, dims: &[i64], dim: usize, range: std::ops::Range<i64>) -> Option<InstrId> {
    let shape = Shape::array(ElementType::S64, dims);
    let attrs = Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(dim as i64));
    let index = e.shaped(Opcode::Iota, shape, &[], attrs)?;
    let mut bound = |n: i64, direction| {
        let n = e.constant(hlo::Literal::scalar(n));
        let n = e.fill_dims(n, dims)?;
        e.compare(direction, index, n)
    };
    match (range.start > 0, range.end < dims[dim]) {
        (true, false) => bound(range.start, Direction::Ge),
        (false, _) => bound(range.end, Direction::Lt),
        (true, true) => {
            let (low, high) = (bound(range.start, Direction::Ge)?, bound(range.end, Direction::Lt)?);
            e.binary(Opcode::And, low, high)
        }
    }
}

/// A window over an array that is constant along a dimension.
pub(super) fn spread(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, init, window) = parts(e)?;
    let broadcast = e.instr(x);
    let (Opcode::Broadcast, &[y]) = (broadcast.opcode, broadcast.operands()) else { return None };
    let mapping = broadcast.attrs.ints(AttrKey::Dimensions)?.to_vec();
    let (dims, out) = (e.array(x)?.dims.clone(), e.array(e.id())?.clone());
    let whole = |w: &WindowDim| *w == WindowDim { size: 1, ..WindowDim::default() };
    let kept: Vec<usize> =
        (0..dims.len()).filter(|&d| mapping.contains(&(d as i64)) || !whole(&window[d])).collect();
    if kept.len() == dims.len() || dims.contains(&0) {
        return None;
    }
    let pick = |dims: &[i64]| -> Vec<i64> { kept.iter().map(|&d| dims[d]).collect() };
    let position = |d: i64| kept.iter().position(|&k| k as i64 == d).map(|at| at as i64);
    let mapping: Vec<i64> = mapping.into_iter().map(position).collect::<Option<_>>()?;
    let (smaller, result) = (pick(&dims), pick(&out.dims));
    let less = e.broadcast(y, &smaller, &mapping)?;
    let attrs = with_window(e, kept.iter().map(|&d| window[d]).collect());
    let shape = Shape::array(out.element_type, &result);
    let once = e.shaped(Opcode::ReduceWindow, shape, &[less, init], attrs)?;
    let kept: Vec<i64> = kept.iter().map(|&d| d as i64).collect();
    e.broadcast(once, &out.dims, &kept)
}

/// The attributes with another window.
fn with_window(e: &Edit<'_>, dims: Vec<WindowDim>) -> hlo::attrs::Attrs {
    let window = Window { dims: dims.into() };
    e.at().attrs.clone().with(AttrKey::Window, AttrValue::Window(Box::new(window)))
}
