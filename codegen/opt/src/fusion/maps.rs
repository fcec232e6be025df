//! The index maps by which a loop reads a value, and how many elements each of them reads.
//!
//! A value is one expression for each of its maps. Chains of slices and pads double the number of maps with
//! each step, so that a few dozen instructions can become thousands of expressions.
//!
//! **Invariant:** a value has each map once ([`super::index_map`]).

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Module, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use super::graph::flops;
use super::index_map::{Forms, HERE, Map};
use crate::passes::facts::{small_k, small_window_len};

/// With more maps of one value, an expression is too large.
const MAX_MAPS: f64 = 400.0;

/// The maps of a value in a loop, in order, and how many elements each reads.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Maps(SmallVec<[(Map, f64); 1]>);

impl Maps {
    /// The identity map, reading that many elements.
    pub(super) fn here(elements: f64) -> Maps {
        Maps(smallvec![(HERE, elements)])
    }

    pub(super) fn none() -> Maps {
        Maps(SmallVec::new())
    }

    /// Adds a map that reads that many elements; of a known one, the larger number counts.
    pub(super) fn look(&mut self, map: Map, elements: f64) {
        match self.0.binary_search_by_key(&map, |m| m.0) {
            Ok(at) => self.0[at].1 = self.0[at].1.max(elements),
            Err(at) => self.0.insert(at, (map, elements)),
        }
    }

    /// Adds all maps of another value.
    pub(super) fn include(&mut self, others: &Maps) {
        others.iter().for_each(|(map, elements)| self.look(map, elements));
    }

    /// Adds the maps by which an operand is read, given the maps `of` its user, which is an expression of the
    /// operand's elements: `terms` of them for each result of an unrolled reduction.
    pub(super) fn look_from(
        &mut self,
        forms: &mut Forms<'_>,
        user: InstrId,
        slot: usize,
        of: &Maps,
        terms: usize,
        alternates: bool,
    ) {
        let module = forms.module;
        let instr = module.instr(user);
        let single = count(module, instr.operands()[slot]) == 1.0;
        for &(map, w) in &of.0 {
            if instr.opcode.is_elementwise() {
                self.look(map, if single { w.min(1.0) } else { w });
            } else {
                for term in 0..terms {
                    let Some(look) = forms.through(user, slot, term, map, alternates) else { continue };
                    let read = match look.share {
                        Some(share) => w * share,
                        None => read(module, user, slot, w, alternates),
                    };
                    self.look(look.map, read);
                }
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Map, f64)> + '_ {
        self.0.iter().copied()
    }

    /// The number of maps.
    pub(super) fn count(&self) -> f64 {
        self.0.len() as f64
    }

    /// The number of elements read, by all maps.
    pub(super) fn elements(&self) -> f64 {
        self.0.iter().map(|m| m.1).sum()
    }
}

/// How many elements of an operand a non-elementwise instruction reads to compute `w` of its own. If the
/// source `alternates` from one element to the next, all operands are computed for each element.
fn read(module: &Module, user: InstrId, slot: usize, w: f64, alternates: bool) -> f64 {
    let instr = module.instr(user);
    let elements = count(module, instr.operands()[slot]);
    let share = (elements / count(module, user).max(1.0)).min(1.0);
    match instr.opcode {
        Opcode::Concatenate | Opcode::Pad if alternates => w,
        Opcode::Concatenate | Opcode::Pad => w * share,
        Opcode::DynamicSlice if slot > 0 => 1.0,
        // Updates are made in place.
        Opcode::DynamicUpdateSlice if slot == 1 => elements,
        Opcode::DynamicUpdateSlice => 1.0,
        Opcode::Gather if slot > 0 => {
            // An index serves all elements of a slice.
            let sizes = instr.attrs.ints_or_empty(AttrKey::SliceSizes);
            let last = sizes.last().map_or(1, |&s| s.max(1)) as f64;
            (w / last).max(elements.min(w))
        }
        Opcode::Broadcast if elements == 1.0 => 1.0,
        _ => w,
    }
}

/// How many elements of an operand one element of the result reads.
pub(super) fn terms(module: &Module, user: InstrId, slot: usize) -> f64 {
    let instr = module.instr(user);
    match instr.opcode {
        Opcode::Reduce if slot == 0 => {
            (count(module, instr.operands()[0]) / count(module, user).max(1.0)).max(1.0)
        }
        Opcode::ReduceWindow if slot == 0 => small_window_len(module, user).map_or(1.0, |terms| terms as f64),
        Opcode::Dot => small_k(module, user).map_or(1.0, |terms| terms as f64),
        _ => 1.0,
    }
}

/// The number of elements of an array; 0 for a tuple.
fn count(module: &Module, id: InstrId) -> f64 {
    let array = module.instr(id).shape.as_array();
    array.and_then(|a| a.checked_elements()).map_or(0.0, |n| n as f64)
}

/// Whether an instruction puts padding between the elements of its operand (interior padding).
pub(super) fn pads_between(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    instr.opcode == Opcode::Pad && instr.attrs.padding().unwrap_or(&[]).iter().any(|p| p.interior > 0)
}

/// The arithmetic of a computation as one expression for each element of its results, and that of all its
/// instructions evaluated once, in simple vector operations.
pub(super) fn again(module: &Module, c: ComputationId) -> (f64, f64) {
    let mut maps: FxHashMap<InstrId, Maps> = FxHashMap::default();
    let root = module.root(c);
    maps.insert(root, Maps::here(count(module, root)));
    for &result in module.instr(root).operands().iter().filter(|_| module.instr(root).opcode == Opcode::Tuple)
    {
        maps.entry(result).or_insert_with(Maps::none).include(&Maps::here(count(module, result)));
    }
    let (mut all, mut once) = (0.0, 0.0);
    let mut forms = Forms::new(module, false);
    let mut alternating: FxHashSet<InstrId> = FxHashSet::default();
    for id in module.instructions(c).collect::<Vec<_>>().into_iter().rev() {
        let Some(own) = maps.remove(&id) else { continue };
        let instr = module.instr(id);
        if own.count() > MAX_MAPS {
            return (f64::INFINITY, 1.0);
        }
        all += own.elements() * flops(module, id);
        once += count(module, id) * flops(module, id);
        let alternates = alternating.contains(&id) || pads_between(module, id);
        for (slot, &operand) in
            instr.operands().iter().enumerate().filter(|_| id != root || instr.opcode != Opcode::Tuple)
        {
            let terms = terms(module, id, slot).min(MAX_MAPS) as usize;
            if alternates {
                alternating.insert(operand);
            }
            let operand = maps.entry(operand).or_insert_with(Maps::none);
            operand.look_from(&mut forms, id, slot, &own, terms, alternates);
        }
    }
    (all, once)
}
