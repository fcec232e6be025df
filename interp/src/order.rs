//! Whether a program says in which order it exchanges values with hosts.
//!
//! Two infeeds of a computation (or outfeeds, or host transfers one way over one channel; or what calls them)
//! must depend on one another, by tokens, values or control edges. XLA's documentation asks for that; its
//! verifier does not check it. In a scheduled module the text is the order.

use hlo::{AttrKey, ComputationId, InstrId, Module, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// One way of values to or from a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Way {
    Infeed,
    Outfeed,
    Send(i64),
    Receive(i64),
}

type Ways = SmallVec<[Way; 2]>;

/// For an instruction that uses a way which an earlier one of its computation uses, and that does not depend
/// on it: that one.
pub(crate) fn unordered(module: &Module) -> FxHashMap<InstrId, InstrId> {
    let mut found = FxHashMap::default();
    if module.header.is_scheduled == Some(true) {
        return found;
    }
    let ways = ways(module);
    if ways.iter().all(|w| w.is_empty()) {
        return found;
    }
    for &c in module.computations() {
        let mut last: FxHashMap<Way, InstrId> = FxHashMap::default();
        let mut places: FxHashMap<InstrId, usize> = FxHashMap::default();
        for (place, id) in module.instructions(c).enumerate() {
            places.insert(id, place);
            for way in ways_of(module, id, &ways) {
                if let Some(before) = last.insert(way, id)
                    && !depends(module, id, before, &places)
                {
                    found.entry(id).or_insert(before);
                }
            }
        }
    }
    found
}

/// The ways that each computation (by index) uses, itself or through what it calls.
fn ways(module: &Module) -> Vec<Ways> {
    let mut ways = vec![Ways::new(); module.computation_capacity()];
    // Callees mostly come first in the text; until nothing changes, for those that do not.
    loop {
        let mut changed = false;
        for &c in module.computations() {
            let mut all: Ways = module.instructions(c).flat_map(|id| ways_of(module, id, &ways)).collect();
            all.sort_unstable();
            all.dedup();
            changed |= all != ways[c.index()];
            ways[c.index()] = all;
        }
        if !changed {
            return ways;
        }
    }
}

fn ways_of(module: &Module, id: InstrId, ways: &[Ways]) -> Ways {
    let instr = module.instr(id);
    let channel = instr.attrs.int(AttrKey::ChannelId).unwrap_or(0);
    let host = instr.attrs.bool(AttrKey::IsHostTransfer);
    let own = [
        (Opcode::Infeed, true, Way::Infeed),
        (Opcode::Outfeed, true, Way::Outfeed),
        (Opcode::Send, host, Way::Send(channel)),
        (Opcode::Recv, host, Way::Receive(channel)),
    ];
    let own =
        own.into_iter().find(|&(opcode, uses, _)| instr.opcode == opcode && uses).map(|(_, _, way)| way);
    let called = instr.attrs.called_computations();
    let mut all: Ways = own.into_iter().collect();
    all.extend(called.iter().flat_map(|c: &ComputationId| ways[c.index()].iter().copied()));
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether an instruction depends on an earlier one. `places` has the instructions up to it.
fn depends(module: &Module, on: InstrId, before: InstrId, places: &FxHashMap<InstrId, usize>) -> bool {
    let first = places[&before];
    let mut seen: FxHashSet<InstrId> = FxHashSet::default();
    let mut work = vec![on];
    while let Some(id) = work.pop() {
        if id == before {
            return true;
        }
        let instr = module.instr(id);
        for &needed in instr.operands().iter().chain(&instr.control_predecessors) {
            // What stands before it cannot depend on it.
            if places.get(&needed).is_some_and(|&p| p >= first) && seen.insert(needed) {
                work.push(needed);
            }
        }
    }
    false
}
