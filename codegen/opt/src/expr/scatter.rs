//! Scatters in the expression IR: where each update goes, and its value.

use hlo::InstrId;
use hlo::attrs::AttrKey;
use hlo_library_base::Unsupported;

use super::index::{Affine, Index};
use super::{ALWAYS, Condition, Expr, GuardId, NodeId, dims_of};

/// A scatter, update by update. The updates of an element come in the order of the index vectors, whose
/// variables (`batch`) are outermost.
#[derive(Clone, Debug)]
pub struct Scattered {
    /// Variables of the index vectors and their sizes, outermost first.
    pub batch: Vec<(u32, i64)>,
    /// Variables of the window and their sizes, in the order of `update_window_dims`.
    pub window: Vec<(u32, i64)>,
    /// The update values, one per operand.
    pub updates: Vec<NodeId>,
    /// The row-major offset of the element that an update goes to.
    pub at: Affine,
    /// Holds where the window is within the operand's bounds.
    pub inside: GuardId,
    /// The row of dimension 0 that an index vector selects and the number of rows, if it selects single rows.
    pub rows: Option<(Affine, i64)>,
}

impl Expr<'_> {
    /// The updates of a scatter, element by element. `None` if no update is within bounds.
    pub fn scattered(&mut self, scatter: InstrId) -> Result<Option<Scattered>, Unsupported> {
        let module = self.module;
        let instr = module.instr(scatter);
        let (operands, rest) = instr.operands().split_at(instr.operands().len() / 2);
        let (indices, updates) = (rest[0], &rest[1..]);
        let (dims, update_dims) = (dims_of(module, operands[0]), dims_of(module, updates[0]));
        if dims.contains(&0) || update_dims.contains(&0) {
            return Ok(None);
        }
        let a = &instr.attrs;
        let window_dims = a.ints_or_empty(AttrKey::UpdateWindowDims);
        let (inserted, batching) =
            (a.ints_or_empty(AttrKey::InsertedWindowDims), a.ints_or_empty(AttrKey::InputBatchingDims));
        let indices_batching = a.ints_or_empty(AttrKey::ScatterIndicesBatchingDims);
        let vector = a.int(AttrKey::IndexVectorDim).unwrap_or(0);
        let map = a.ints_or_empty(AttrKey::ScatterDimsToOperandDims);
        let index: Index = (0..).zip(update_dims).map(|(number, &n)| self.space.var(number, n)).collect();
        let vars = (0u32..).zip(update_dims.iter().copied()).filter(|v| v.1 != 1);
        let is_window = |d: usize| window_dims.contains(&(d as i64));
        let batch_index: Index =
            index.iter().enumerate().filter(|(d, _)| !is_window(*d)).map(|(_, x)| x.clone()).collect();
        let starts = self.index_vector(indices, &batch_index, vector, map)?;
        let mut offsets = window_dims
            .iter()
            .filter_map(|&d| Some((index.get(d as usize)?.clone(), update_dims[d as usize])));
        let (mut to, mut inside, mut rows) = (Index::new(), Vec::new(), None);
        for (d, &n) in dims.iter().enumerate() {
            let dim = d as i64;
            if let Some(b) = batching.iter().position(|&x| x == dim) {
                let s = indices_batching.get(b).copied().unwrap_or(0);
                let dim = usize::try_from(if s > vector { s - 1 } else { s }).unwrap_or(0);
                to.push(batch_index.get(dim).cloned().unwrap_or_default());
                continue;
            }
            let (offset, window) = if inserted.contains(&dim) {
                (Affine::default(), 1)
            } else {
                offsets.next().unwrap_or((Affine::default(), 1))
            };
            if window > n {
                return Ok(None);
            }
            let mut at = offset;
            if let Some(&(_, node)) = starts.iter().find(|s| s.0 == dim) {
                // The range is extended by one on either side, which stands for everything out of bounds.
                let start = self.space.value(node, -1, n - window + 1);
                inside.push(Condition { value: start.clone(), low: 0, high: n - window + 1 });
                if d == 0 && window == 1 {
                    rows = Some((start.clone(), n));
                }
                at = self.space.add(&start, &at);
            }
            to.push(at);
        }
        let at = self.space.linear(&to, dims);
        let Some(inside) = self.guard(ALWAYS, &inside) else { return Ok(None) };
        let updates = updates.iter().map(|&u| self.node(u, 0, &index)).collect::<Result<Vec<_>, _>>()?;
        let (mut window, batch): (Vec<_>, Vec<_>) = vars.partition(|v| is_window(v.0 as usize));
        window.sort_by_key(|v| window_dims.iter().position(|&d| d == i64::from(v.0)));
        Ok(Some(Scattered { batch, window, updates, at, inside, rows }))
    }
}
