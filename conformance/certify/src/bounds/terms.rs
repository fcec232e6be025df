//! Which elements each element of a fold's result is computed from.

use hlo::{AttrKey, Opcode};

use super::folds;
use super::number::Numbers;
use super::rules::Case;

/// The most elements of all results together that are listed.
const MAX_TERMS: usize = 1 << 24;

/// Result by result elements of the operands.
pub(super) struct Terms {
    /// Where the elements of each result begin in `elements`, and where the last ones end.
    starts: Vec<usize>,
    elements: Vec<u32>,
}

impl Terms {
    /// Of `reduce`, `reduce-window` and `scatter`; of the others `None`, and where there are too many.
    pub(super) fn of(case: &Case<'_>) -> Option<Terms> {
        match case.opcode() {
            Opcode::Reduce => {
                let x = case.args.first()?.tensor;
                if x.len() > MAX_TERMS {
                    return None;
                }
                let sizes = x.sizes();
                let dims = case.instr.attrs.ints(AttrKey::Dimensions)?;
                let mut strides = vec![0; sizes.len()];
                let mut results = 1;
                for d in (0..sizes.len()).rev().filter(|&d| !dims.contains(&(d as i64))) {
                    strides[d] = results;
                    results *= sizes[d];
                }
                let to: Vec<Option<usize>> = positions(&sizes, &strides).into_iter().map(Some).collect();
                Some(Terms::to(&to, results))
            }
            Opcode::ReduceWindow => {
                let (steps, results) = folds::terms(case)?;
                let pairs = steps.iter().flat_map(|step| {
                    step.iter().enumerate().filter_map(|(result, element)| Some((result, (*element)?)))
                });
                Some(Terms::grouped(pairs, results))
            }
            Opcode::Scatter => {
                let to = targets(case)?;
                let results = case.results.first()?.len();
                (to.len() <= MAX_TERMS).then(|| Terms::to(&to, results))
            }
            _ => None,
        }
    }

    /// Of elements that each go to one result, or nowhere.
    fn to(to: &[Option<usize>], results: usize) -> Terms {
        Terms::grouped(to.iter().enumerate().filter_map(|(element, to)| Some(((*to)?, element))), results)
    }

    fn grouped(pairs: impl Iterator<Item = (usize, usize)> + Clone, results: usize) -> Terms {
        let mut starts = vec![0; results + 1];
        pairs.clone().for_each(|(result, _)| starts[result + 1] += 1);
        (0..results).for_each(|result| starts[result + 1] += starts[result]);
        let mut next = starts.clone();
        let mut elements = vec![0; starts[results]];
        for (result, element) in pairs {
            elements[next[result]] = element as u32;
            next[result] += 1;
        }
        Terms { starts, elements }
    }

    /// The elements of a result.
    pub(super) fn at(&self, result: usize) -> &[u32] {
        &self.elements[self.starts[result]..self.starts[result + 1]]
    }

    /// How many results there are.
    pub(super) fn results(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether no result has more than one element.
    pub(super) fn are_single(&self) -> bool {
        self.starts.windows(2).all(|ends| ends[1] - ends[0] <= 1)
    }
}

/// For each element of an array of these sizes the sum of its coordinates times these strides, in row-major
/// order.
fn positions(sizes: &[usize], strides: &[usize]) -> Vec<usize> {
    let mut all = vec![0];
    for (&size, &stride) in sizes.iter().zip(strides) {
        all = all.iter().flat_map(|&at| (0..size).map(move |i| at + i * stride)).collect();
    }
    all
}

/// For each update of a scatter where it goes in the operand; `None` where its window does not fit.
fn targets(case: &Case<'_>) -> Option<Vec<Option<usize>>> {
    let operands = case.args.len() / 2;
    let (operand, indices, updates) =
        (case.args.first()?.tensor, case.args.get(operands)?.tensor, case.args.get(operands + 1)?.tensor);
    let attrs = &case.instr.attrs;
    let list = |key: AttrKey| -> Option<Vec<usize>> {
        attrs.ints_or_empty(key).iter().map(|&d| usize::try_from(d).ok()).collect()
    };
    let window_dims = list(AttrKey::UpdateWindowDims)?;
    let (inserted, batching) = (list(AttrKey::InsertedWindowDims)?, list(AttrKey::InputBatchingDims)?);
    let to_operand = list(AttrKey::ScatterDimsToOperandDims)?;
    let index_batching = list(AttrKey::ScatterIndicesBatchingDims)?;
    let vector = usize::try_from(attrs.int(AttrKey::IndexVectorDim)?).ok()?;
    let (sizes, update_sizes, index_sizes) = (operand.sizes(), updates.sizes(), indices.sizes());
    let strides_of = |sizes: &[usize]| {
        let mut strides = vec![1; sizes.len()];
        (1..sizes.len()).rev().for_each(|d| strides[d - 1] = strides[d] * sizes[d]);
        strides
    };
    let (strides, index_strides) = (strides_of(&sizes), strides_of(&index_sizes));
    // Of each dimension of the updates how far a step goes in the operand, or in the index array.
    let mut within = vec![0; update_sizes.len()];
    let mut window = vec![1; sizes.len()];
    let kept = (0..sizes.len()).filter(|d| !inserted.contains(d) && !batching.contains(d));
    for (d, &from) in kept.zip(&window_dims) {
        *within.get_mut(from)? = strides[d];
        window[d] = *update_sizes.get(from)?;
    }
    let mut along = vec![0; update_sizes.len()];
    let index_dims = (0..index_sizes.len()).filter(|&d| d != vector);
    for (d, from) in index_dims.zip((0..update_sizes.len()).filter(|d| !window_dims.contains(d))) {
        along[from] = index_strides[d];
    }
    let (offsets, vectors) = (positions(&update_sizes, &within), positions(&update_sizes, &along));
    let values = Numbers::of(indices).re;
    let component = index_strides.get(vector).copied().unwrap_or(0);
    let base = |at: usize| -> Option<usize> {
        let mut base = 0;
        for (c, &d) in to_operand.iter().enumerate() {
            let start = *values.get(at + c * component)?;
            let last = sizes.get(d)?.checked_sub(window[d])?;
            if !(0.0..=last as f64).contains(&start) {
                return None;
            }
            base += start as usize * strides[d];
        }
        for (&d, &from) in batching.iter().zip(&index_batching) {
            base += at / index_strides.get(from)? % index_sizes.get(from)? * strides[d];
        }
        Some(base)
    };
    let fits = sizes.iter().zip(&window).all(|(size, window)| window <= size);
    let target = |(&offset, &at): (&usize, &usize)| base(at).filter(|_| fits).map(|base| base + offset);
    Some(offsets.iter().zip(&vectors).map(target).collect())
}
