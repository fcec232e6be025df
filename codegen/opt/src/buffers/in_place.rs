//! Which results may, or must, be written over which operands.
//!
//! A result that shares memory with an operand holds the same number of elements of the same width, and the
//! kernel reads each element of that operand before it writes the element at its offset, and never
//! afterwards. So the contract with the emission of kernels is: where [`Sharing::May`] is said here, unit by
//! unit, every load of an operand's element precedes the store of the result's element at the same offset,
//! and no element is computed twice (no overlapping tails). Results of the same dimensions are computed in
//! one loop: what all of them load at an offset precedes what any of them stores there, so each may share the
//! memory of any operand that they read at the same offset only; in row kernels, reductions of a row precede
//! all stores to the row. Where [`Sharing::Must`] is said, the kernel writes only the changed part of the
//! result, which already holds the operand. Library calls state their own pairs ([`LibraryCall::in_place`];
//! [`LibraryCall::of_scatter`] checks at run time whether operand and result share memory.)
//!
//! An output fusion has pairs only where its back end says so (`epilogue` of [`pairs`]): the contraction is
//! computed elsewhere than in the fusion's results, and the epilogue then keeps the contract above. What the
//! contraction reads, it reads while other elements are finished, and shares memory with nothing.

use hlo::attrs::{AttrKey, FusionKind};
use hlo::{ComputationId, InstrId, Instruction, Module, Opcode, Shape};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::values::array_leaves;
use crate::passes::facts::short_reduction_len;
use hlo_library::LibraryCall;

/// Whether a result shares the memory of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// It may, if the operand dies there.
    May,
    /// It does: the operand is copied first where it does not die there.
    Must,
}

/// An operand and a result that may share memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The operand's slot.
    pub slot: u32,
    /// Its array leaf.
    pub leaf: u32,
    /// The array leaf of the result.
    pub result: u32,
    /// May or must.
    pub sharing: Sharing,
}

/// A few pairs, most often none.
pub type Pairs = SmallVec<[Pair; 2]>;

/// All pairs of operand and result leaves of an instruction that may share memory. An instruction that has
/// none may read its operands in any order while it writes. `epilogue`: of an output fusion, whether its
/// epilogue may be written over what it reads. (`output_to_operand_aliasing` of library calls says how XLA's
/// are called, not ours.)
pub fn pairs(module: &Module, id: InstrId, epilogue: bool) -> Pairs {
    let instr = module.instr(id);
    match instr.opcode {
        Opcode::Fusion => fusion(module, instr, epilogue),
        Opcode::DynamicUpdateSlice => [must(0, 0)].into_iter().collect(),
        Opcode::Sort => {
            let pair = |k: usize| Pair { slot: k as u32, leaf: 0, result: k as u32, sharing: Sharing::May };
            LibraryCall::in_place(module, id).into_iter().map(pair).collect()
        }
        _ if instr.opcode.is_elementwise() => {
            let same = |&slot: &u32| same_offsets(module.instr(instr.operands()[slot as usize]), instr);
            let slots = 0..instr.operands().len() as u32;
            slots.filter(same).map(|slot| Pair { slot, leaf: 0, result: 0, sharing: Sharing::May }).collect()
        }
        _ => Pairs::new(),
    }
}

fn must(slot: u32, result: u32) -> Pair {
    Pair { slot, leaf: 0, result, sharing: Sharing::Must }
}

/// Row-major arrays with equal numbers of elements of the same width.
fn same_offsets(a: &Instruction, b: &Instruction) -> bool {
    match (&a.shape, &b.shape) {
        (Shape::Array(x), Shape::Array(y)) => {
            x.element_type.storage_bytes() == y.element_type.storage_bytes()
                && x.checked_elements().is_some()
                && x.checked_elements() == y.checked_elements()
        }
        _ => false,
    }
}

/// The roots of a fusion: of a tuple its elements.
fn roots(module: &Module, computation: ComputationId) -> SmallVec<[InstrId; 2]> {
    let root = module.root(computation);
    match module.instr(root).opcode {
        Opcode::Tuple => module.instr(root).operands().iter().copied().collect(),
        _ => std::iter::once(root).collect(),
    }
}

/// How an instruction of a fusion is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Not at all.
    Never,
    /// Only at the same offset, for elements of roots of one space; the first of these roots.
    Same(u32),
    /// Otherwise.
    Other,
}

impl Reading {
    fn and(self, other: Reading) -> Reading {
        match (self, other) {
            (Reading::Never, r) | (r, Reading::Never) => r,
            (Reading::Same(a), Reading::Same(b)) if a == b => self,
            (Reading::Same(_) | Reading::Other, Reading::Same(_) | Reading::Other) => Reading::Other,
        }
    }
}

/// Whether the result of an output fusion is to be written over an argument of the program that was donated
/// for it (`input_output_alias`), which its epilogue reads: a parameter that is updated by its gradient.
pub fn updates_donated(module: &Module, id: InstrId) -> bool {
    let entry = module.entry();
    let root = module.root(entry);
    let result = |index: &[i64]| match *index {
        [] => Some(root),
        [i] => usize::try_from(i).ok().and_then(|i| module.instr(root).operands().get(i)).copied(),
        _ => None,
    };
    let instr = module.instr(id);
    let donated = module.header.input_output_alias.iter().filter(|a| {
        a.parameter_index.is_empty()
            && result(&a.output_index) == Some(id)
            && module.instr(root).shape.as_array().is_some() == a.output_index.is_empty()
    });
    let slots: SmallVec<[u32; 2]> = donated
        .flat_map(|a| {
            let is_it = move |&(_, &o): &(u32, &InstrId)| {
                module.instr(o).parent() == entry && module.instr(o).parameter_number() == Some(a.parameter)
            };
            (0..).zip(instr.operands()).filter(is_it).map(|(slot, _)| slot)
        })
        .collect();
    !slots.is_empty() && fusion(module, instr, true).iter().any(|p| slots.contains(&p.slot))
}

fn fusion(module: &Module, instr: &Instruction, epilogue: bool) -> Pairs {
    let mut pairs = Pairs::new();
    let Some(c) = instr.attrs.computation(AttrKey::Calls) else { return pairs };
    let roots = roots(module, c);
    // Nested tuples and roots that are parts of others are not handled.
    if roots.iter().any(|&r| module.instr(r).shape.as_array().is_none()) {
        return pairs;
    }
    let kind = instr.attrs.fusion_kind().copied();
    let mut updated: SmallVec<[InstrId; 2]> = SmallVec::new();
    for (k, &root) in roots.iter().enumerate() {
        let opcode = module.instr(root).opcode;
        let in_place = match kind {
            Some(FusionKind::Loop) => opcode == Opcode::DynamicUpdateSlice,
            Some(FusionKind::Input) => opcode == Opcode::Scatter,
            _ => false,
        };
        if in_place && let Some((parameter, slot)) = updated_parameter(module, root) {
            updated.push(parameter);
            // The library's scatter copies what it does not find in place, on all threads.
            let copies = opcode == Opcode::Scatter && LibraryCall::of_scatter(module, root).is_some();
            let sharing = if copies { Sharing::May } else { Sharing::Must };
            pairs.push(Pair { sharing, ..must(slot, k as u32) });
        }
    }
    let by_element = match kind {
        Some(FusionKind::Loop | FusionKind::Custom) => true,
        Some(FusionKind::Output) => epilogue,
        Some(FusionKind::Input) | None => false,
    };
    if !by_element {
        return pairs;
    }
    let spaces = spaces(module, &roots);
    let readings = readings(module, c, &roots, &spaces, kind == Some(FusionKind::Custom));
    let parameters = module.computation(c).parameters();
    let many = parameters.len().saturating_mul(roots.len()) > MAX_SHARED_PAIRS;
    for (slot, &p) in parameters.iter().enumerate() {
        let Some(p) = p.filter(|p| !updated.contains(p)) else { continue };
        let Some(&Reading::Same(space)) = readings.get(&p) else { continue };
        let there = (0..).zip(&roots).zip(&spaces).filter(|&((k, &root), &of)| {
            of == Some(space) && (!many || k == space) && same_offsets(module.instr(p), module.instr(root))
        });
        pairs.extend(there.map(|((result, _), _)| Pair {
            slot: slot as u32,
            leaf: 0,
            result,
            sharing: Sharing::May,
        }));
    }
    pairs
}

/// With more pairs, only the first result of a space shares memory with operands.
const MAX_SHARED_PAIRS: usize = 1024;

/// For each root the first of those that are computed in the same loop: `None` for one that is a window of
/// its result.
fn spaces(module: &Module, roots: &[InstrId]) -> SmallVec<[Option<u32>; 2]> {
    let dims = |root: InstrId| {
        let instr = module.instr(root);
        let window = instr.opcode == Opcode::DynamicUpdateSlice;
        instr.shape.as_array().filter(|_| !window).map(|a| &a.dims)
    };
    let first = |&root: &InstrId| {
        let own = dims(root)?;
        roots.iter().position(|&other| dims(other) == Some(own)).map(|k| k as u32)
    };
    roots.iter().map(first).collect()
}

/// The parameter that a root `dynamic-update-slice` or `scatter` updates, if nothing else reads it.
fn updated_parameter(module: &Module, root: InstrId) -> Option<(InstrId, u32)> {
    let &target = module.instr(root).operands().first()?;
    let slot = module.instr(target).parameter_number()?;
    let alone = module.users(target).len() == 1 && array_leaves(&module.instr(target).shape) == 1;
    alone.then_some((target, u32::try_from(slot).ok()?))
}

/// How a fusion that computes its roots element by element, or row by row, reads what is in it.
fn readings(
    module: &Module,
    c: ComputationId,
    roots: &[InstrId],
    spaces: &[Option<u32>],
    rows: bool,
) -> FxHashMap<InstrId, Reading> {
    let mut readings: FxHashMap<InstrId, Reading> = FxHashMap::default();
    for (&root, space) in roots.iter().zip(spaces) {
        let r = readings.entry(root).or_insert(Reading::Never);
        *r = r.and(space.map_or(Reading::Other, Reading::Same));
    }
    let order: Vec<InstrId> = module.instructions(c).collect();
    for &id in order.iter().rev() {
        let own = readings.get(&id).copied().unwrap_or(Reading::Never);
        let instr = module.instr(id);
        for &o in instr.operands() {
            // The tuple of roots reads nothing.
            let reading = if own == Reading::Never {
                Reading::Never
            } else if rows && instr.opcode == Opcode::Reduce && short_reduction_len(module, id).is_none() {
                by_rows(module, roots, spaces, o, id).unwrap_or(Reading::Other)
            } else if is_elementwise_in(module.instr(o), instr) {
                own
            } else {
                Reading::Other
            };
            let r = readings.entry(o).or_insert(Reading::Never);
            *r = r.and(reading);
        }
    }
    readings
}

/// How a reduction in a row kernel reads what it reduces: before the row's results are stored, so the reads
/// count as if at the same offset. (An unrolled reduction is recomputed for every element.)
fn by_rows(
    module: &Module,
    roots: &[InstrId],
    spaces: &[Option<u32>],
    operand: InstrId,
    reduce: InstrId,
) -> Option<Reading> {
    let count = |id: InstrId| match &module.instr(id).shape {
        Shape::Tuple(parts) => parts.first().and_then(Shape::as_array),
        shape => shape.as_array(),
    };
    let count = |id: InstrId| count(id).and_then(|a| a.checked_elements());
    let all = count(operand).filter(|&all| count(reduce).is_some_and(|rows| rows < all))?;
    let space = roots.iter().zip(spaces).find(|&(&root, _)| count(root) == Some(all));
    space.and_then(|(_, &first)| first).map(Reading::Same)
}

/// Whether an element of an instruction depends on an operand's elements at the same row-major offset only.
fn is_elementwise_in(operand: &Instruction, instr: &Instruction) -> bool {
    let (Some(a), Some(b)) = (operand.shape.as_array(), instr.shape.as_array()) else { return false };
    match instr.opcode {
        Opcode::Reshape | Opcode::Copy => true,
        Opcode::BitcastConvert => a.dims == b.dims,
        opcode => opcode.is_elementwise() && a.dims == b.dims,
    }
}
