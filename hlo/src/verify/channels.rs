//! Send and recv: channels, host transfers, deadlocks.

use rustc_hash::FxHashMap;

use super::Verifier;
use crate::attrs::AttrKey;
use crate::attrs::collective::send_recv_pairs;
use crate::diag::codes;
use crate::ids::{ComputationId, InstrId};
use crate::opcode::Opcode;

/// Frontend attribute of XLA's pipelined sends and receives.
const PIPELINE: &str = "_xla_send_recv_pipeline";

pub(super) fn check(v: &mut Verifier<'_>) {
    let mut host: FxHashMap<i64, InstrId> = FxHashMap::default();
    v.for_each(|v, id, instr| {
        let module = v.module;
        if !matches!(instr.opcode, Opcode::Send | Opcode::Recv) {
            return;
        }
        let Some(channel) = v.channel(id) else { return };
        for u in module.users(id) {
            let user = module.instr(u.user);
            if !matches!(user.opcode, Opcode::SendDone | Opcode::RecvDone) {
                continue;
            }
            if v.channel(u.user) != Some(channel) {
                let other = v.channel(u.user).map_or("none".to_owned(), |c| c.to_string());
                v.report(
                    u.user,
                    codes::CHANNEL_ID,
                    format!("its channel is {other}, that of its start is {channel}"),
                    |d| d.related(instr.span, "started here"),
                );
            }
            if user.attrs.bool(AttrKey::IsHostTransfer) != instr.attrs.bool(AttrKey::IsHostTransfer) {
                let message = "is_host_transfer differs from that of its start";
                v.report(u.user, codes::HOST_TRANSFER, message, |d| d.related(instr.span, "started here"));
            }
        }
        if instr.attrs.bool(AttrKey::IsHostTransfer) {
            match host.get(&channel) {
                None => {
                    host.insert(channel, id);
                }
                Some(&first) => {
                    let f = module.instr(first);
                    if f.opcode != instr.opcode || !f.shape.compatible(&instr.shape) {
                        let message =
                            format!("channel {channel} is used by another host transfer in another way");
                        v.report(id, codes::HOST_TRANSFER, message, |d| d.related(f.span, "the first use"));
                    }
                }
            }
        }
    });
    pairs(v);
    if v.options.deadlocks && v.module.header.is_scheduled == Some(true) {
        deadlocks(v);
    }
}

/// Nobody sends or receives twice in one instruction, and the pairs do not form a cycle of waiting devices.
fn pairs(v: &mut Verifier<'_>) {
    v.for_each(|v, id, instr| {
        if !matches!(instr.opcode, Opcode::Send | Opcode::Recv)
            || instr.attrs.bool(AttrKey::IsHostTransfer)
            || !v.options.deadlocks
            || instr.attrs.frontend_attributes().is_some_and(|a| a.get(PIPELINE).is_some())
        {
            return;
        }
        let Some(pairs) = send_recv_pairs(&instr.attrs) else { return };
        if let Some(problem) = conflict(&pairs) {
            v.error(id, codes::DEADLOCK, problem);
        }
    });
}

fn conflict(pairs: &[[i64; 2]]) -> Option<String> {
    let mut next: FxHashMap<i64, i64> = FxHashMap::default();
    let mut targets: FxHashMap<i64, ()> = FxHashMap::default();
    for &[s, t] in pairs {
        if next.insert(s, t).is_some() {
            return Some(format!("device {s} is the source of two pairs"));
        }
        if targets.insert(t, ()).is_some() {
            return Some(format!("device {t} is the target of two pairs"));
        }
    }
    for &[start, _] in pairs {
        let mut at = start;
        for _ in 0..pairs.len() {
            match next.get(&at) {
                Some(&t) if t == start => {
                    return Some(format!("the pairs form a cycle through device {start}"));
                }
                Some(&t) => at = t,
                None => break,
            }
        }
    }
    None
}

/// A scheduled program must not put another collective between a send and its recv, nor leave one without the
/// other: every device runs this schedule, so each would wait at that point for the other half.
fn deadlocks(v: &mut Verifier<'_>) {
    let entry = v.module.entry();
    let mut pending: Vec<InstrId> = Vec::new();
    let mut work: Vec<(ComputationId, Option<InstrId>)> = vec![(entry, v.module.instructions(entry).next())];
    // Called computations run where they are called; verified modules call without cycles.
    while let Some((c, at)) = work.pop() {
        let Some(id) = at else { continue };
        let module = v.module;
        let mut rest = module.instructions(c).skip_while(|&i| i != id);
        rest.next();
        work.push((c, rest.next()));
        let instr = module.instr(id);
        match instr.opcode {
            Opcode::Send | Opcode::Recv => {
                let host = instr.attrs.bool(AttrKey::IsHostTransfer);
                let piped = instr.attrs.frontend_attributes().is_some_and(|a| a.get(PIPELINE).is_some());
                let Some(pairs) = send_recv_pairs(&instr.attrs).filter(|_| !host && !piped) else { continue };
                let matching = pending.iter().position(|&p| {
                    let other = module.instr(p);
                    other.opcode != instr.opcode && send_recv_pairs(&other.attrs).as_ref() == Some(&pairs)
                });
                match matching {
                    Some(p) => {
                        pending.remove(p);
                    }
                    None => pending.push(id),
                }
            }
            Opcode::AllGather
            | Opcode::AllReduce
            | Opcode::AllToAll
            | Opcode::RaggedAllToAll
            | Opcode::CollectivePermute
            | Opcode::ReduceScatter
            | Opcode::CollectiveBroadcast => {
                if let Some(&p) = pending.first() {
                    let span = module.instr(p).span;
                    let message = format!(
                        "deadlock: %{} waits for its other half, which comes only after this collective",
                        module.instr(p).name
                    );
                    v.report(id, codes::DEADLOCK, message, |d| d.related(span, "waits here"));
                    return;
                }
            }
            _ => {
                for called in instr.attrs.called_computations() {
                    work.push((called, module.instructions(called).next()));
                }
            }
        }
    }
    for id in pending {
        v.error(id, codes::DEADLOCK, "deadlock: no matching send or recv has the same source-target pairs");
    }
}
