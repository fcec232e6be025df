//! What is said about instructions without changing their value: sharding, original values, result accuracy.

use super::{Verifier, count};
use crate::attrs::{
    AttrKey, DeviceAssignment, NamedSharding, OriginalTree, OriginalValue, ResultAccuracy, Sharding,
    ShardingKind, TileSharding,
};
use crate::diag::codes;
use crate::ids::InstrId;
use crate::module::Instruction;
use crate::opcode::Opcode;
use crate::shape::Shape;

pub(super) fn check(v: &mut Verifier<'_>) {
    v.for_each(|v, id, instr| {
        // An outfeed's sharding is that of what it sends out, and of its token.
        if let Some(s) = instr.attrs.sharding().filter(|_| instr.opcode != Opcode::Outfeed) {
            sharding(v, id, s, &instr.shape);
        }
        if let Some(OriginalValue::Tree(tree)) = instr.attrs.original_value()
            && !same_structure(tree, &instr.shape)
        {
            let message = format!("its original value has another structure than its shape {}", instr.shape);
            v.error(id, codes::ORIGINAL_VALUE, message);
        }
        if let Some(accuracy) = instr.attrs.result_accuracy() {
            result_accuracy(v, id, instr, *accuracy);
        }
        consistent_sharding(v, id, instr);
    });
}

/// A loop and what it passes around, a conditional and its branches, must have equal shardings where they are
/// sharded.
fn consistent_sharding(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    let module = v.module;
    let mut group = vec![id];
    match instr.opcode {
        Opcode::While => {
            if let Some(body) = instr.attrs.computation(AttrKey::Body) {
                group.push(module.root(body));
                group.extend(module.computation(body).parameters().iter().flatten());
            }
            if let Some(condition) = instr.attrs.computation(AttrKey::Condition) {
                group.extend(module.computation(condition).parameters().iter().flatten());
            }
        }
        Opcode::Conditional => {
            group.extend(instr.attrs.called_computations().into_iter().map(|c| module.root(c)));
        }
        _ => return,
    }
    let sharded: Vec<InstrId> =
        group.into_iter().filter(|&i| module.instr(i).attrs.sharding().is_some()).collect();
    for &other in sharded.iter().skip(1) {
        if module.instr(other).attrs.sharding() != module.instr(sharded[0]).attrs.sharding() {
            let span = module.instr(other).span;
            let message = format!(
                "%{} and %{} are sharded differently",
                module.instr(sharded[0]).name,
                module.instr(other).name
            );
            v.report(id, codes::SHARDING, message, |d| d.related(span, "sharded differently"));
            return;
        }
    }
}

fn sharding(v: &mut Verifier<'_>, id: InstrId, s: &Sharding, shape: &Shape) {
    match s {
        Sharding::Tuple(elements) => {
            // One a leaf, tuples flattened; an empty tuple counts as one.
            let mut leaves = Vec::new();
            flat_leaves(shape, &mut leaves);
            if matches!(shape, Shape::Token) {
                // Of an outfeed: it says how the operand is divided.
            } else if !matches!(shape, Shape::Tuple(_)) {
                v.error(id, codes::SHARDING, format!("a tuple sharding for a value of shape {shape}"));
            } else if elements.len() != leaves.len().max(1) {
                let message = format!(
                    "{} for {}",
                    count(elements.len(), "sharding"),
                    count(leaves.len(), "tuple leaf")
                );
                v.error(id, codes::SHARDING, message);
            } else {
                for (e, leaf) in elements.iter().zip(leaves) {
                    sharding(v, id, e, leaf);
                }
            }
        }
        Sharding::Single(kind) => match &**kind {
            ShardingKind::Tile(t) => tile(v, id, t, shape),
            ShardingKind::Named(n) => named(v, id, n, shape),
        },
    }
}

fn flat_leaves<'s>(shape: &'s Shape, out: &mut Vec<&'s Shape>) {
    shape.for_each_leaf(&mut |s| out.push(s));
}

fn tile(v: &mut Verifier<'_>, id: InstrId, t: &TileSharding, shape: &Shape) {
    let dims = match &t.devices {
        DeviceAssignment::List { dims, .. } | DeviceAssignment::Iota { dims, .. } => dims,
        DeviceAssignment::Maximal(n) => {
            if *n < 0 {
                v.error(id, codes::SHARDING, format!("maximal device {n}"));
            }
            return;
        }
        DeviceAssignment::Replicated
        | DeviceAssignment::Manual
        | DeviceAssignment::Unknown
        | DeviceAssignment::Unreduced => return,
    };
    let Some(ids) = t.devices.device_ids() else {
        v.error(id, codes::SHARDING, "the iota of the device list does not fit together");
        return;
    };
    let tiles = dims.iter().try_fold(1i64, |n, &d| if d < 1 { None } else { n.checked_mul(d) });
    if tiles != Some(ids.len() as i64) {
        let message = format!("{} for tiles of {:?}", count(ids.len(), "device"), dims.as_slice());
        v.error(id, codes::SHARDING, message);
        return;
    }
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    if sorted.first().is_some_and(|&d| d < 0) || sorted.windows(2).any(|w| w[0] == w[1]) {
        v.error(id, codes::SHARDING, "a device is negative or listed twice");
    }
    let extra = usize::from(t.last_tile_dim_replicate) + t.last_tile_dims.len();
    if let Shape::Array(a) = shape
        && dims.len() != a.rank() + extra
    {
        let message = format!(
            "tiles have {} (of which {extra} are not of the data), the shape {a} has {}",
            count(dims.len(), "dimension"),
            a.rank()
        );
        v.error(id, codes::SHARDING, message);
    }
}

fn named(v: &mut Verifier<'_>, id: InstrId, n: &NamedSharding, shape: &Shape) {
    if n.mesh.maximal {
        return;
    }
    let known = |name: &str| n.mesh.axes.iter().any(|(a, _)| &**a == name);
    let dims = n.dims.as_deref().unwrap_or(&[]);
    let axes = dims.iter().flat_map(|d| &d.axes).chain(&n.replicated).chain(&n.unreduced).chain(&n.manual);
    for axis in axes {
        if !known(&axis.name) {
            v.error(id, codes::SHARDING, format!("the mesh has no axis '{}'", axis.name));
        }
    }
    if let (Shape::Array(a), Some(dims)) = (shape, &n.dims)
        && dims.len() != a.rank()
        && !dims.is_empty()
    {
        let message = format!("{} for the shape {a}", count(dims.len(), "sharded dimension"));
        v.error(id, codes::SHARDING, message);
    }
}

/// Whether a tree of names has the leaves of a shape.
fn same_structure(tree: &OriginalTree, shape: &Shape) -> bool {
    match (tree, shape) {
        (OriginalTree::Tuple(trees), Shape::Tuple(shapes)) => {
            trees.len() == shapes.len() && trees.iter().zip(shapes.iter()).all(|(t, s)| same_structure(t, s))
        }
        (OriginalTree::Leaf(_), Shape::Tuple(shapes)) => shapes.is_empty(),
        (OriginalTree::Leaf(_), Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => true,
        (OriginalTree::Tuple(_), Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => false,
    }
}

/// Opcodes whose accuracy can be asked for.
fn takes_accuracy(opcode: Opcode) -> bool {
    use Opcode::{
        Acos, Acosh, Asin, Asinh, Atanh, Cbrt, Cosh, Cosine, Erf, Exponential, ExponentialMinusOne, Log,
        LogPlusOne, Logistic, Rsqrt, Sine, Sinh, Sqrt, Tan, Tanh,
    };
    matches!(
        opcode,
        Acos | Acosh
            | Asin
            | Asinh
            | Atanh
            | Cbrt
            | Cosh
            | Cosine
            | Erf
            | Exponential
            | ExponentialMinusOne
            | Log
            | LogPlusOne
            | Logistic
            | Rsqrt
            | Sine
            | Sinh
            | Sqrt
            | Tan
            | Tanh
    )
}

fn result_accuracy(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction, accuracy: ResultAccuracy) {
    if accuracy != ResultAccuracy::Default && !takes_accuracy(instr.opcode) {
        v.error(id, codes::RESULT_ACCURACY, "takes no result_accuracy; it is for elementary functions");
    }
    if let ResultAccuracy::Tolerance { atol, rtol, ulps } = accuracy
        && (!(atol >= 0.0 && rtol >= 0.0) || ulps < 0)
    {
        v.error(id, codes::RESULT_ACCURACY, "a tolerance is negative");
    }
}
