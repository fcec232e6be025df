//! Replica groups and source-target pairs.
//!
//! What the numbers mean: [`GroupMode`].

use super::Verifier;
use crate::attrs::collective::{GroupMode, group_mode};
use crate::attrs::{AttrKey, ReplicaGroups};
use crate::diag::codes;
use crate::ids::InstrId;
use crate::module::Instruction;
use crate::opcode::Opcode;
use crate::shape::Shape;

pub(super) fn check(v: &mut Verifier<'_>) {
    let mut constrained: Option<(InstrId, bool)> = None;
    v.for_each(|v, id, instr| {
        if !instr.opcode.flags().collective {
            return;
        }
        if instr.attrs.get(AttrKey::SourceTargetPairs).is_some() {
            source_target_pairs(v, id, instr);
        } else if instr.opcode.attrs().iter().any(|s| s.key == AttrKey::ReplicaGroups) {
            replica_groups(v, id, instr);
        }
        if matches!(instr.opcode, Opcode::AllReduce | Opcode::AllReduceStart) {
            if instr.attrs.int(AttrKey::ChannelId).is_some_and(|c| c < 1) {
                v.error(id, codes::CHANNEL_ID, "the channel id must be positive");
            }
            let constrain = instr.attrs.bool(AttrKey::ConstrainLayout);
            let (first, reference) = *constrained.get_or_insert((id, constrain));
            if reference != constrain {
                let span = v.module.instr(first).span;
                let message = "some all-reduces constrain their layout and others do not";
                v.report(id, codes::CONSTRAIN_LAYOUT, message, |d| d.related(span, "the first all-reduce"));
            }
        }
    });
}

fn replica_groups(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    let Some(mode) = group_mode(instr.opcode, &instr.attrs) else {
        v.error(id, codes::GROUP_MODE, "use_global_device_ids needs a channel_id");
        return;
    };
    let groups = match instr.attrs.replica_groups() {
        None => Vec::new(),
        Some(groups) => match groups.expand() {
            Some(lists) => lists,
            None => {
                let what = match groups {
                    ReplicaGroups::Lists(_) => "lists",
                    ReplicaGroups::Iota { .. } => "iota",
                    ReplicaGroups::Mesh(_) => "mesh axes",
                };
                v.error(
                    id,
                    codes::REPLICA_GROUPS,
                    format!("the numbers of the replica groups ({what}) do not fit together"),
                );
                return;
            }
        },
    };
    let (replicas, partitions) = (v.module.replica_count(), v.module.num_partitions());
    let expected = match mode {
        GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => replicas,
        GroupMode::CrossPartition => partitions,
        GroupMode::FlattenedId => replicas.saturating_mul(partitions),
    };
    if groups.is_empty() {
        if mode == GroupMode::FlattenedId {
            v.error(id, codes::REPLICA_GROUPS, "in flattened-id mode the replica groups must be given");
        }
        return;
    }
    if groups.iter().any(Vec::is_empty) {
        v.error(id, codes::REPLICA_GROUPS, "a replica group is empty");
        return;
    }
    if instr.opcode == Opcode::CollectiveBroadcast {
        // Its groups may leave devices out, which then get zeros.
        broadcast_groups(v, id, &groups);
        return;
    }
    let n: usize = groups.iter().map(Vec::len).sum();
    let mut seen = vec![false; n];
    for &replica in groups.iter().flatten() {
        match usize::try_from(replica).ok().and_then(|r| seen.get_mut(r)) {
            None => {
                v.error(
                    id,
                    codes::REPLICA_GROUPS,
                    format!("id {replica} in the replica groups is not in 0..{n}"),
                );
                return;
            }
            Some(true) => {
                v.error(id, codes::REPLICA_GROUPS, format!("id {replica} is twice in the replica groups"));
                return;
            }
            Some(s) => *s = true,
        }
    }
    if expected != 1 && n as i64 != expected {
        let message = format!(
            "in {} mode the replica groups must name {expected} participants, and name {n}",
            mode.name()
        );
        v.error(id, codes::REPLICA_GROUPS, message);
        return;
    }
    let uniform_needed = !matches!(instr.opcode, Opcode::AllReduce | Opcode::AllReduceStart);
    let size = groups[0].len();
    if uniform_needed && groups.iter().any(|g| g.len() != size) {
        v.error(id, codes::REPLICA_GROUPS, "the replica groups must all be of one size");
    }
}

/// No id may be negative or repeated.
fn broadcast_groups(v: &mut Verifier<'_>, id: InstrId, groups: &[Vec<i64>]) {
    let mut ids: Vec<i64> = groups.iter().flatten().copied().collect();
    ids.sort_unstable();
    if let Some(&first) = ids.first().filter(|&&i| i < 0) {
        v.error(id, codes::REPLICA_GROUPS, format!("id {first} in the replica groups is negative"));
    } else if let Some(twice) = ids.windows(2).find(|w| w[0] == w[1]) {
        v.error(id, codes::REPLICA_GROUPS, format!("id {} is twice in the replica groups", twice[0]));
    }
}

fn source_target_pairs(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    let Some(pairs) = instr.attrs.int_lists(AttrKey::SourceTargetPairs) else { return };
    let limit = match group_mode(instr.opcode, &instr.attrs) {
        Some(GroupMode::CrossReplica) => v.module.replica_count(),
        _ => v.module.num_partitions(),
    };
    // In the in-place form each device may send several slices.
    let tuple = |o: &InstrId| v.module.instr(*o).shape.as_tuple().map(<[Shape]>::to_vec);
    let allowed = match instr.operands() {
        [input, _, offsets, _] => {
            let offsets = tuple(offsets).unwrap_or_default();
            // Of a tuple of buffers, those of the first one.
            let first = offsets.first().and_then(Shape::as_tuple).filter(|_| tuple(input).is_some());
            first.map_or(offsets.len(), <[Shape]>::len).max(1)
        }
        _ => 1,
    };
    let mut counts: [rustc_hash::FxHashMap<i64, usize>; 2] = Default::default();
    for pair in pairs {
        let [source, target] = pair.as_slice() else {
            let message = format!("a source-target pair has {} numbers instead of two", pair.len());
            v.error(id, codes::SOURCE_TARGET, message);
            continue;
        };
        for (what, n, seen) in [("source", *source, 0), ("target", *target, 1)] {
            if n < 0 || limit > 1 && n >= limit {
                v.error(id, codes::SOURCE_TARGET, format!("{what} {n} is not in 0..{limit}"));
                continue;
            }
            let times = counts[seen].entry(n).or_insert(0);
            *times += 1;
            if *times == allowed + 1 {
                let message = if allowed == 1 {
                    format!("{what} {n} is in more than one pair")
                } else {
                    format!("{what} {n} is in more than {allowed} pairs")
                };
                v.error(id, codes::SOURCE_TARGET, message);
            }
        }
    }
}
