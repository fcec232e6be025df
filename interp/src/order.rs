//! Whether a program says in which order it exchanges values with hosts.
//!
//! Two infeeds of a computation (or outfeeds, or host transfers in one direction over one channel; or what
//! calls them) must depend on one another, by tokens, values or control edges. XLA's documentation asks for
//! that; its verifier does not check it. In a scheduled module the text is the order.

use hlo::{AttrKey, ComputationId, InstrId, Module, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// An ordered stream of values to or from a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Channel {
    Infeed,
    Outfeed,
    Send(i64),
    Receive(i64),
}

type Channels = SmallVec<[Channel; 2]>;

/// For an instruction that uses a channel which an earlier one of its computation uses, and that does not
/// depend on it: that one.
pub(crate) fn unordered(module: &Module) -> FxHashMap<InstrId, InstrId> {
    let mut found = FxHashMap::default();
    if module.header.is_scheduled == Some(true) {
        return found;
    }
    let channels = channels(module);
    if channels.iter().all(|w| w.is_empty()) {
        return found;
    }
    for &c in module.computations() {
        let mut last: FxHashMap<Channel, InstrId> = FxHashMap::default();
        let mut positions: FxHashMap<InstrId, usize> = FxHashMap::default();
        for (position, id) in module.instructions(c).enumerate() {
            positions.insert(id, position);
            for channel in channels_of(module, id, &channels) {
                if let Some(before) = last.insert(channel, id)
                    && !depends(module, id, before, &positions)
                {
                    found.entry(id).or_insert(before);
                }
            }
        }
    }
    found
}

/// The channels that each computation (by index) uses, itself or through what it calls.
fn channels(module: &Module) -> Vec<Channels> {
    let mut channels = vec![Channels::new(); module.computation_capacity()];
    // Callees mostly come first in the text; until nothing changes, for those that do not.
    loop {
        let mut changed = false;
        for &c in module.computations() {
            let mut all: Channels =
                module.instructions(c).flat_map(|id| channels_of(module, id, &channels)).collect();
            all.sort_unstable();
            all.dedup();
            changed |= all != channels[c.index()];
            channels[c.index()] = all;
        }
        if !changed {
            return channels;
        }
    }
}

fn channels_of(module: &Module, id: InstrId, channels: &[Channels]) -> Channels {
    let instr = module.instr(id);
    let channel = instr.attrs.int(AttrKey::ChannelId).unwrap_or(0);
    let host = instr.attrs.bool(AttrKey::IsHostTransfer);
    let own = [
        (Opcode::Infeed, true, Channel::Infeed),
        (Opcode::Outfeed, true, Channel::Outfeed),
        (Opcode::Send, host, Channel::Send(channel)),
        (Opcode::Recv, host, Channel::Receive(channel)),
    ];
    let own = own
        .into_iter()
        .find(|&(opcode, uses, _)| instr.opcode == opcode && uses)
        .map(|(_, _, channel)| channel);
    let called = instr.attrs.called_computations();
    let mut all: Channels = own.into_iter().collect();
    all.extend(called.iter().flat_map(|c: &ComputationId| channels[c.index()].iter().copied()));
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether an instruction depends on an earlier one. `positions` has the instructions up to it.
fn depends(module: &Module, on: InstrId, before: InstrId, positions: &FxHashMap<InstrId, usize>) -> bool {
    let first = positions[&before];
    let mut seen: FxHashSet<InstrId> = FxHashSet::default();
    let mut work = vec![on];
    while let Some(id) = work.pop() {
        if id == before {
            return true;
        }
        let instr = module.instr(id);
        for &needed in instr.operands().iter().chain(&instr.control_predecessors) {
            // Instructions before it cannot depend on it.
            if positions.get(&needed).is_some_and(|&p| p >= first) && seen.insert(needed) {
                work.push(needed);
            }
        }
    }
    false
}
