//! Which dimension plays which part in a gather or scatter.

use hlo::attrs::AttrKey;
use hlo::{InstrId, Module};

/// Pairs of dimensions that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Roles {
    /// Of the operand, and of the result or the updates.
    pub(super) windows: Vec<(usize, usize)>,
    /// Of the indices, and of the result or the updates.
    pub(super) batches: Vec<(usize, usize)>,
    /// Of the operand, and of the indices.
    pub(super) batching: Vec<(usize, usize)>,
}

fn list(module: &Module, id: InstrId, key: AttrKey) -> Option<Vec<usize>> {
    module.instr(id).attrs.ints_or_empty(key).iter().map(|&d| usize::try_from(d).ok()).collect()
}

/// `window` are dimensions of the array (result, updates) that windows lie along, `gone` those of the operand
/// that have none there.
fn roles(
    module: &Module,
    id: InstrId,
    (operand, indices, array): (usize, usize, usize),
    window: &[usize],
    gone: &[usize],
    batching: Vec<(usize, usize)>,
) -> Option<Roles> {
    let vector = usize::try_from(module.instr(id).attrs.int(AttrKey::IndexVectorDim)?).ok()?;
    let kept: Vec<usize> =
        (0..operand).filter(|d| !gone.contains(d) && batching.iter().all(|b| b.0 != *d)).collect();
    let scattered: Vec<usize> = (0..array).filter(|d| !window.contains(d)).collect();
    let index_dims: Vec<usize> = (0..indices).filter(|&d| d != vector).collect();
    let fits = kept.len() == window.len()
        && index_dims.len() == scattered.len()
        && window.iter().all(|&d| d < array)
        && batching.iter().all(|&(o, i)| o < operand && i < indices);
    fits.then(|| Roles {
        windows: kept.into_iter().zip(window.iter().copied()).collect(),
        batches: index_dims.into_iter().zip(scattered).collect(),
        batching,
    })
}

fn rank(module: &Module, id: InstrId) -> Option<usize> {
    module.instr(id).shape.as_array().map(hlo::ArrayShape::rank)
}

/// The parts in a gather.
pub(super) fn gather(module: &Module, id: InstrId) -> Option<Roles> {
    let operands = module.instr(id).operands();
    let ranks = (rank(module, operands[0])?, rank(module, operands[1])?, rank(module, id)?);
    let batching = list(module, id, AttrKey::OperandBatchingDims)?;
    let batching = batching.into_iter().zip(list(module, id, AttrKey::StartIndicesBatchingDims)?).collect();
    let (window, gone) =
        (list(module, id, AttrKey::OffsetDims)?, list(module, id, AttrKey::CollapsedSliceDims)?);
    roles(module, id, ranks, &window, &gone, batching)
}

/// The parts in a scatter; all operands have the same.
pub(super) fn scatter(module: &Module, id: InstrId) -> Option<Roles> {
    let operands = module.instr(id).operands();
    let n = operands.len() / 2;
    let ranks = (rank(module, operands[0])?, rank(module, operands[n])?, rank(module, operands[n + 1])?);
    let batching = list(module, id, AttrKey::InputBatchingDims)?;
    let batching = batching.into_iter().zip(list(module, id, AttrKey::ScatterIndicesBatchingDims)?).collect();
    let (window, gone) =
        (list(module, id, AttrKey::UpdateWindowDims)?, list(module, id, AttrKey::InsertedWindowDims)?);
    roles(module, id, ranks, &window, &gone, batching)
}
