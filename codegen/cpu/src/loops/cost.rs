//! The cost of kernels: bytes read and written, operations. For the number of threads that they are worth,
//! and for profiles.

use super::Cost;
use hlo_opt::expr::{Expr, NodeId, Op};

/// The cost of a nest that computes nodes `elements` times and stores them: every array that is read counts
/// once, and no more than what is read of it.
pub(super) fn of(expr: &Expr<'_>, outputs: impl Iterator<Item = (NodeId, u32)>, elements: u64) -> Cost {
    let (mut nodes, mut written) = (Vec::new(), 0u64);
    for (node, array) in outputs {
        nodes.push(node);
        let ty = expr.arrays[array as usize].shape.element_type;
        written = written.saturating_add(elements.saturating_mul(ty.storage_bytes() as u64));
    }
    let cost = read(expr, nodes.into_iter(), elements);
    Cost { bytes: cost.bytes.saturating_add(written), ..cost }
}

/// The cost of evaluating nodes that many times.
pub(super) fn read(expr: &Expr<'_>, nodes: impl Iterator<Item = NodeId>, elements: u64) -> Cost {
    let mut cost = Cost::default();
    let mut arrays = rustc_hash::FxHashMap::default();
    for n in expr.reachable(nodes) {
        cost.flops = cost.flops.saturating_add(elements.saturating_mul(expr.flops(n)));
        if let Op::Load { array, .. } = &expr.nodes[n as usize].op {
            *arrays.entry(*array).or_insert(0u64) += elements;
        }
    }
    for (array, read) in arrays {
        let shape = &expr.arrays[array as usize].shape;
        let whole = shape.checked_elements().map_or(u64::MAX, i64::unsigned_abs);
        let bytes = read.min(whole).saturating_mul(shape.element_type.storage_bytes() as u64);
        cost.bytes = cost.bytes.saturating_add(bytes);
    }
    cost
}
