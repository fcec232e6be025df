//! `gather` and `scatter`.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ArrayShape, Attrs, ComputationId, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::{Body, ints};
use super::movement::{permutation, subset};

/// The roles of an operand's dimensions in a gather or scatter.
struct Roles {
    /// Dimensions that index vectors index, in the order of their components.
    indexed: Vec<i64>,
    /// Dimensions that the windows lack.
    collapsed: Vec<i64>,
    /// Dimensions that go along with dimensions of the indices.
    batching: Vec<i64>,
    /// Sizes of windows, in dimensions of the operand.
    window: Vec<i64>,
    /// Dimensions of the indices.
    indices: Vec<i64>,
    /// Which dimension of the indices holds the vectors.
    vector_dim: i64,
    /// Dimensions of the indices for those in `batching`.
    indices_batching: Vec<i64>,
}

fn roles(g: &mut Generator<'_>, shape: &ArrayShape) -> Roles {
    let rank = shape.rank();
    let batching: Vec<i64> =
        if rank > 1 && g.choices.chance(60) { vec![g.choices.below(rank) as i64] } else { Vec::new() };
    let free: Vec<i64> = (0..rank as i64).filter(|d| !batching.contains(d)).collect();
    let order = permutation(g, free.len());
    let wanted = 1 + g.choices.below(free.len());
    let indexed: Vec<i64> = order.iter().take(wanted).map(|&i| free[i as usize]).collect();
    let collapsed: Vec<i64> = indexed.iter().copied().filter(|_| g.choices.chance(128)).collect();
    let window: Vec<i64> = (0..rank as i64)
        .map(|d| {
            let size = shape.dims[d as usize];
            if collapsed.contains(&d) || batching.contains(&d) {
                size.min(1)
            } else if indexed.contains(&d) {
                g.choices.int(size.min(1), size)
            } else {
                size
            }
        })
        .collect();
    let mut indices: Vec<i64> = (0..g.choices.below(3)).map(|_| g.choices.int(1, 4)).collect();
    let mut indices_batching = Vec::new();
    if let [b] = *batching {
        let at = g.choices.below(indices.len() + 1);
        indices.insert(at, shape.dims[b as usize]);
        indices_batching.push(at as i64);
    }
    let mut vector_dim = g.choices.below(indices.len() + 1) as i64;
    if indexed.len() == 1 && g.choices.chance(60) {
        vector_dim = indices.len() as i64;
    } else {
        indices.insert(vector_dim as usize, indexed.len() as i64);
        indices_batching.iter_mut().filter(|d| **d >= vector_dim).for_each(|d| *d += 1);
    }
    let mut collapsed = collapsed;
    collapsed.sort_unstable();
    Roles { indexed, collapsed, batching, window, indices, vector_dim, indices_batching }
}

fn indices(g: &mut Generator<'_>, body: &mut Body, dims: &[i64]) -> InstrId {
    let ty = g.choices.pick(&[
        ElementType::S32,
        ElementType::S64,
        ElementType::U32,
        ElementType::S8,
        ElementType::U8,
    ]);
    g.of_shape(body, &ArrayShape::new(ty, dims))
}

pub(super) fn gather(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let roles = roles(g, &g.array(x));
    let start = indices(g, body, &roles.indices);
    let batch_rank = roles.indices.len() - usize::from((roles.vector_dim as usize) < roles.indices.len());
    let window_rank = roles.window.len() - roles.collapsed.len() - roles.batching.len();
    let offset = window_dims(g, batch_rank + window_rank, window_rank);
    let attrs = Attrs::new()
        .with(AttrKey::OffsetDims, ints(&offset))
        .with(AttrKey::CollapsedSliceDims, ints(&roles.collapsed))
        .with(AttrKey::StartIndexMap, ints(&roles.indexed))
        .with(AttrKey::OperandBatchingDims, ints(&roles.batching))
        .with(AttrKey::StartIndicesBatchingDims, ints(&roles.indices_batching))
        .with(AttrKey::IndexVectorDim, AttrValue::Int(roles.vector_dim))
        .with(AttrKey::SliceSizes, ints(&roles.window));
    g.add(body, Opcode::Gather, &[x, start], attrs)
}

/// `n` of `0..rank`, ascending.
fn window_dims(g: &mut Generator<'_>, rank: usize, n: usize) -> Vec<i64> {
    let mut chosen = subset(g, rank);
    chosen.truncate(n);
    let mut rest = (0..rank as i64).rev();
    while chosen.len() < n {
        match rest.next() {
            Some(d) if !chosen.contains(&d) => chosen.push(d),
            Some(_) => {}
            None => break,
        }
    }
    chosen.sort_unstable();
    chosen
}

pub(super) fn scatter(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    let roles = roles(g, &shape);
    let start = indices(g, body, &roles.indices);
    let batch: Vec<i64> = (0..roles.indices.len())
        .filter(|&d| d as i64 != roles.vector_dim)
        .map(|d| roles.indices[d])
        .collect();
    let windows: Vec<i64> = (0..shape.rank() as i64)
        .filter(|d| !roles.collapsed.contains(d) && !roles.batching.contains(d))
        .map(|d| roles.window[d as usize])
        .collect();
    let window_at = window_dims(g, batch.len() + windows.len(), windows.len());
    let (mut batch, mut windows) = (batch.into_iter(), windows.into_iter());
    let dims: Vec<i64> = (0..(batch.len() + windows.len()) as i64)
        .filter_map(|d| if window_at.contains(&d) { windows.next() } else { batch.next() })
        .collect();
    let operands = if g.choices.chance(30) { 2 } else { 1 };
    let mut inputs = vec![x];
    for _ in 1..operands {
        let ty = g.freely(Generator::element_type);
        inputs.push(g.of_shape(body, &shape.with_type(ty)));
    }
    let types: Vec<ElementType> = inputs.iter().map(|&i| g.array(i).element_type).collect();
    let updates: Vec<InstrId> =
        types.iter().map(|&ty| g.of_shape(body, &ArrayShape::new(ty, &dims))).collect();
    let region = match *types {
        // The update replaces the element.
        [ty] if g.choices.chance(70) => second(g, ty),
        _ => g.reducer(&types)?,
    };
    let mut all = inputs;
    all.push(start);
    all.extend(updates);
    let attrs = Attrs::new()
        .with(AttrKey::UpdateWindowDims, ints(&window_at))
        .with(AttrKey::InsertedWindowDims, ints(&roles.collapsed))
        .with(AttrKey::ScatterDimsToOperandDims, ints(&roles.indexed))
        .with(AttrKey::InputBatchingDims, ints(&roles.batching))
        .with(AttrKey::ScatterIndicesBatchingDims, ints(&roles.indices_batching))
        .with(AttrKey::IndexVectorDim, AttrValue::Int(roles.vector_dim))
        .with(AttrKey::ToApply, AttrValue::Computation(region));
    let id = g.add(body, Opcode::Scatter, &all, attrs)?;
    g.unpack(body, id)
}

/// The second of two scalars.
pub(super) fn second(g: &mut Generator<'_>, ty: ElementType) -> ComputationId {
    let pair = [Shape::scalar(ty), Shape::scalar(ty)];
    Body::with_parameters(&mut g.module, "second", &pair).id
}
