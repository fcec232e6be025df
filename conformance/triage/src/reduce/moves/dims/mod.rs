//! Smaller and fewer dimensions, through the whole program.
//!
//! Dimensions that must be equal form classes (`classes/`); a class gets a new size, or goes if its size is
//! 1; what depends on it follows (`solve.rs`), and shapes, attributes and values are made anew
//! (`rewrite.rs`).

mod classes;
mod indexing;
mod rewrite;
mod solve;

use hlo::{InstrId, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Edit;
use crate::reduce::Candidate;
use crate::reduce::search::Context;
use classes::{Change, Dims, Var};
use rewrite::{Keep, rewrite};

/// Makes shapes fit again after an attribute has changed: what `decide` says, and what follows.
pub(super) fn refit(c: &mut Candidate) -> bool {
    rewrite(c, |_| Some(Keep::First)).is_some()
}

/// The same, and windows change so that as many fit as before.
pub(super) fn refit_holding(c: &mut Candidate) -> bool {
    rewrite(c, |dims| {
        hold(dims)?;
        Some(Keep::First)
    })
    .is_some()
}

/// Keeps the sizes that windows give.
fn hold(dims: &mut Dims<'_>) -> Option<()> {
    for id in dims.instructions() {
        if dims.module.instr(id).opcode != Opcode::ReduceWindow {
            continue;
        }
        for (a, b) in dims.operand(id, 0).zip(dims.leaf(id, 0)) {
            if dims.class(a) != dims.class(b) && dims.change(b).is_none() {
                dims.set(b, Change::Size(dims.old_size(b)))?;
            }
        }
    }
    Some(())
}

/// Puts `new` in place of `old`, an array of the same rank and type whose sizes may differ: dimensions that
/// must be equal get the smaller size.
pub(super) fn put_resized(c: &mut Candidate, old: InstrId, new: InstrId) -> bool {
    if !c.alive(old) || !c.alive(new) || c.module.instr(old).parent() != c.module.instr(new).parent() {
        return false;
    }
    let (o, n) = (c.module.instr(old), c.module.instr(new));
    let (Some(a), Some(b)) = (o.shape.as_array(), n.shape.as_array()) else { return false };
    if a.element_type != b.element_type || a.rank() != b.rank() || a.dims == b.dims {
        return false;
    }
    c.replace(old, new);
    refit(c)
}

/// Classes whose size is not decided by an instruction that computes with sizes, largest first.
fn sources(dims: &Dims<'_>) -> Vec<Var> {
    let mut free: FxHashSet<Var> = FxHashSet::default();
    let mut computed: FxHashSet<Var> = FxHashSet::default();
    dims.for_each_var(|id, v| {
        let class = dims.class(v);
        match dims.module.instr(id).opcode {
            Opcode::Pad
            | Opcode::Concatenate
            | Opcode::ReduceWindow
            | Opcode::Convolution
            | Opcode::Reshape
            | Opcode::Slice => {
                // Tied to an operand's dimension, it is that one's.
                if dims.operand(id, 0).all(|a| dims.class(a) != class) {
                    computed.insert(class);
                }
            }
            _ => {
                free.insert(class);
            }
        }
    });
    dims.classes().into_iter().filter(|c| free.contains(c) && !computed.contains(c)).collect()
}

/// All dimensions at most 1, 2, 3, 4, 6, ... long.
pub(super) fn shrink_all(context: &Context<'_>) -> Vec<Edit> {
    let dims = Dims::new(&context.program.module);
    let largest = dims.classes().into_iter().map(|v| dims.old_size(v)).max().unwrap_or(0);
    let mut edits: Vec<Edit> = Vec::new();
    let mut most = 1;
    while most < largest && most <= 1 << 20 {
        edits.push(Box::new(move |c| {
            rewrite(c, |dims| {
                let mut any = false;
                for v in sources(dims) {
                    if dims.old_size(v) > most {
                        any |= dims.set(v, Change::Size(most)).is_some();
                    }
                }
                any.then_some(Keep::First)
            })
            .is_some()
        }));
        most = if most < 4 { most + 1 } else { most * 3 / 2 };
    }
    edits
}

/// A dimension by instruction, leaf and number.
type Dimension = (InstrId, usize, usize);

/// The first dimension of each class.
fn representatives(dims: &Dims<'_>) -> FxHashMap<Var, Dimension> {
    let mut representatives = FxHashMap::default();
    for id in dims.instructions() {
        for leaf in 0..dims.leaf_count(id) {
            for (d, v) in dims.leaf(id, leaf).enumerate() {
                representatives.entry(dims.class(v)).or_insert((id, leaf, d));
            }
        }
    }
    representatives
}

fn var(dims: &Dims<'_>, (id, leaf, d): Dimension) -> Option<Var> {
    if !dims.live.has(id) {
        return None;
    }
    let range = dims.leaf(id, leaf);
    (d < range.len()).then_some(range.start + d)
}

/// Each class of dimensions, made shorter: the largest first, by most first.
pub(super) fn shrink(context: &Context<'_>) -> Vec<Edit> {
    let dims = Dims::new(&context.program.module);
    let representatives = representatives(&dims);
    let mut classes = dims.classes();
    classes.sort_by_key(|&v| (std::cmp::Reverse(dims.old_size(v)), v));
    let windows = dims.instructions().iter().any(|&id| dims.module.instr(id).opcode == Opcode::ReduceWindow);
    let mut edits: Vec<Edit> = Vec::new();
    for class in classes {
        let n = dims.old_size(class);
        let Some(&dimension) = representatives.get(&class) else { continue };
        let mut sizes = vec![1, 2, 3, 4, n / 2, n - n / 4, n - 1];
        sizes.retain(|&s| s >= 1 && s < n);
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            for (keep, holding) in [(Keep::First, false), (Keep::Last, false), (Keep::First, windows)] {
                edits.push(Box::new(move |c| shrink_one(c, dimension, size, keep, holding)));
            }
        }
    }
    edits
}

fn shrink_one(c: &mut Candidate, dimension: Dimension, size: i64, keep: Keep, holding: bool) -> bool {
    let done = rewrite(c, |dims| {
        let v = var(dims, dimension)?;
        if dims.size(v) <= size {
            return None;
        }
        dims.set(v, Change::Size(size))?;
        if holding {
            hold(dims)?;
        }
        Some(keep)
    });
    done.is_some()
}

/// Each class of dimensions of size 1, dropped.
pub(super) fn drop(context: &Context<'_>) -> Vec<Edit> {
    let dims = Dims::new(&context.program.module);
    let representatives = representatives(&dims);
    let mut all: Vec<Dimension> = Vec::new();
    for class in dims.classes() {
        if dims.old_size(class) == 1
            && let Some(&dimension) = representatives.get(&class)
        {
            all.push(dimension);
        }
    }
    let mut edits: Vec<Edit> = Vec::new();
    let every = all.clone();
    // All that can go at once: those that cannot are left out one by one.
    edits.push(Box::new(move |c| drop_dimensions(c, &every)));
    for dimension in all {
        edits.push(Box::new(move |c| drop_dimensions(c, &[dimension])));
    }
    edits
}

fn drop_dimensions(c: &mut Candidate, dimensions: &[Dimension]) -> bool {
    let done = rewrite(c, |dims| {
        let vars: Vec<Var> = dimensions.iter().filter_map(|&p| var(dims, p)).collect();
        let mut any = false;
        for v in vars {
            any |= dims.size(v) == 1 && dims.set(v, Change::Drop).is_some();
        }
        any.then_some(Keep::First)
    });
    done.is_some()
}
