//! Gathers and scatters of one window: slices at run-time indices, and updates in place.
//!
//! A gather clamps each component of its start index so that the window is inside, as `dynamic-slice` does. A scatter drops a window that
//! reaches outside, which `dynamic-update-slice` does not: there the window is written back as it was, or the index is known to be inside.
//! The combiner is applied once to each element of the window, in the type that it has, so it may be written out as instructions.

use hlo::attrs::{AttrKey, Attrs, Direction};
use hlo::{ElementType, InstrId, Module, Opcode};

use super::Fuel;
use super::calls::lanes;
use super::edit::{Edit, each_outside_folds, ints};
use super::facts::integer;

pub(super) fn run(module: &mut Module, fuel: &mut Fuel) -> u64 {
    each_outside_folds(module, fuel, |e| match e.at().opcode {
        Opcode::Gather => gather(e),
        Opcode::Scatter => scatter(e),
        _ => None,
    })
}

/// Where the one window of a gather or scatter begins: a scalar for each dimension of the operand.
struct Start {
    indices: Vec<InstrId>,
    ty: ElementType,
}

/// `None` if there are several windows. `map` says which dimension of the operand each component of the index vector is of.
fn start(e: &mut Edit<'_>, indices: InstrId, rank: usize, map: &[i64]) -> Option<Start> {
    let array = e.array(indices)?;
    let ty = array.element_type;
    if array.checked_elements()? != i64::try_from(map.len()).ok()? || !ty.is_integer() {
        return None;
    }
    let zero = e.scalar_bits(ty, 0);
    let mut starts = vec![zero; rank];
    if let Some((_, bits)) = super::facts::splat(e.module, indices) {
        let scalar = e.scalar_bits(ty, bits);
        for &d in map {
            *starts.get_mut(usize::try_from(d).ok()?)? = scalar;
        }
        return Some(Start { indices: starts, ty });
    }
    let n = map.len() as i64;
    let flat = if e.array(indices)?.rank() == 1 { indices } else { e.reshape(indices, &[n])? };
    for (k, &d) in (0i64..).zip(map) {
        let one = if n == 1 { flat } else { e.cut(flat, 0, k, k + 1)? };
        *starts.get_mut(usize::try_from(d).ok()?)? = e.reshape(one, &[])?;
    }
    Some(Start { indices: starts, ty })
}

fn dynamic_slice(e: &mut Edit<'_>, x: InstrId, start: &Start, sizes: &[i64]) -> Option<InstrId> {
    let operands: Vec<InstrId> = std::iter::once(x).chain(start.indices.iter().copied()).collect();
    e.add(Opcode::DynamicSlice, &operands, Attrs::new().with(AttrKey::DynamicSliceSizes, ints(sizes)))
}

fn gather(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x, indices] = e.operands()?;
    let (rank, dims) = (e.array(x)?.rank(), e.array(e.id())?.dims.clone());
    if e.array(x)?.element_type != e.array(e.id())?.element_type {
        return None;
    }
    let map = e.at().attrs.ints_or_empty(AttrKey::StartIndexMap).to_vec();
    let sizes = e.at().attrs.ints(AttrKey::SliceSizes)?.to_vec();
    if dims.iter().product::<i64>() != sizes.iter().product::<i64>() {
        return None;
    }
    let start = start(e, indices, rank, &map)?;
    let window = dynamic_slice(e, x, &start, &sizes)?;
    // Offset dimensions are in order, all others of one element.
    if sizes[..] == dims[..] { Some(window) } else { e.reshape(window, &dims) }
}

fn scatter(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x, indices, updates] = e.operands()?;
    let (dims, ty) = (e.array(x)?.dims.clone(), e.array(x)?.element_type);
    let update_dims = e.array(updates)?.dims.clone();
    if e.array(updates)?.element_type != ty || e.array(e.id())?.element_type != ty {
        return None;
    }
    if e.array(updates)?.checked_elements()? == 0 {
        return Some(x);
    }
    let attrs = &e.at().attrs;
    let combiner = attrs.computation(AttrKey::ToApply)?;
    let map = attrs.ints_or_empty(AttrKey::ScatterDimsToOperandDims).to_vec();
    let window = attrs.ints_or_empty(AttrKey::UpdateWindowDims).to_vec();
    let dropped =
        [attrs.ints_or_empty(AttrKey::InsertedWindowDims), attrs.ints_or_empty(AttrKey::InputBatchingDims)]
            .concat();
    // The window in the dimensions of the operand.
    let mut kept = window.iter().map(|&w| update_dims.get(usize::try_from(w).ok()?).copied());
    let sizes: Option<Vec<i64>> =
        (0i64..).zip(&dims).map(|(d, _)| if dropped.contains(&d) { Some(1) } else { kept.next()? }).collect();
    let sizes = sizes?;
    let scattered = (0i64..).zip(&update_dims).filter(|(u, _)| !window.contains(u)).map(|(_, &n)| n);
    if scattered.product::<i64>() != 1 {
        return None;
    }
    let start = start(e, indices, dims.len(), &map)?;
    let inside = inside(e, &start, &map, &dims, &sizes)?;
    if inside == Inside::Never {
        return Some(x);
    }
    let window = if update_dims[..] == sizes[..] { updates } else { e.reshape(updates, &sizes)? };
    let replaces = replaces(e.module, combiner)?;
    let mut new = window;
    let mut old = None;
    if !replaces || inside != Inside::Always {
        old = Some(dynamic_slice(e, x, &start, &sizes)?);
    }
    if let (false, Some(old)) = (replaces, old) {
        new = *lanes(e, combiner, &[old, window], &sizes)?.first()?;
    }
    if let (Inside::Asked(p), Some(old)) = (inside, old) {
        new = e.select(p, new, old)?;
    }
    let operands: Vec<InstrId> = [x, new].into_iter().chain(start.indices).collect();
    e.add(Opcode::DynamicUpdateSlice, &operands, Attrs::new())
}

/// Whether a combiner gives back the update as it is.
fn replaces(module: &Module, combiner: hlo::ComputationId) -> Option<bool> {
    let parameters = module.computation(combiner).parameters();
    (parameters.len() == 2).then(|| parameters.get(1) == Some(&Some(module.root(combiner))))
}

/// Whether a window lies inside of its operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Always,
    /// A scalar predicate says.
    Asked(InstrId),
    Never,
}

fn inside(e: &mut Edit<'_>, start: &Start, map: &[i64], dims: &[i64], sizes: &[i64]) -> Option<Inside> {
    let mut all = None;
    let both = |e: &mut Edit<'_>, p: InstrId, all: &mut Option<InstrId>| {
        *all = Some(match *all {
            Some(q) => e.binary(Opcode::And, q, p)?,
            None => p,
        });
        Some(())
    };
    for &d in map {
        let d = usize::try_from(d).ok()?;
        let (index, most) = (*start.indices.get(d)?, i128::from(dims.get(d)? - sizes.get(d)?));
        if let Some(at) = integer(e.module, index) {
            if !(0..=most).contains(&at) {
                return Some(Inside::Never);
            }
            continue;
        }
        let bits = start.ty.bits();
        let signed = start.ty.is_signed_integer();
        let largest = if signed { (1i128 << (bits - 1)) - 1 } else { (1i128 << bits) - 1 };
        if signed {
            let zero = e.scalar_bits(start.ty, 0);
            let p = e.compare(Direction::Ge, index, zero)?;
            both(e, p, &mut all)?;
        }
        if most < largest {
            let bound = e.scalar_bits(start.ty, u128::try_from(most).ok()?);
            let p = e.compare(Direction::Le, index, bound)?;
            both(e, p, &mut all)?;
        }
    }
    Some(all.map_or(Inside::Always, Inside::Asked))
}
