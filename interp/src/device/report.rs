//! The error of a run in which all devices that have not ended wait for each other.

use hlo::diag::codes;
use hlo::{InstrId, Module};

use super::Devices;
use super::exchange::{Rendezvous, RendezvousKey, Status};
use crate::error::{ErrorKind, RunError};

/// Devices of which the report says what they wait for.
const SHOWN: usize = 32;

/// The wait-for graph: who waits for whom, and the state of those. At least one of the devices waits.
pub(super) fn deadlock(module: &Module, devices: Devices, statuses: &[Status]) -> RunError {
    let waiting: Vec<(u32, InstrId, &[std::sync::Arc<Rendezvous>])> = (0..)
        .zip(statuses)
        .filter_map(|(device, status)| match status {
            Status::Waiting { at, awaited } => Some((device, *at, awaited.as_slice())),
            Status::Running | Status::Finished | Status::Failed => None,
        })
        .collect();
    let doing = |device: u32| match &statuses[device as usize] {
        Status::Waiting { at, .. } => format!("which waits at %{}", module.instr(*at).name),
        Status::Finished => "which has finished".into(),
        Status::Failed => "which has failed".into(),
        Status::Running => "which runs".into(),
    };
    let mut related = Vec::new();
    for &(device, at, awaited) in waiting.iter().take(SHOWN) {
        for rendezvous in awaited {
            let absent: Vec<String> =
                rendezvous.absent().map(|d| format!("device {d}, {}", doing(d))).collect();
            if absent.is_empty() {
                continue;
            }
            let what = describe(module, at, rendezvous);
            let text = format!("device {device} waits here{what} for {}", absent.join("; "));
            related.push((module.instr(at).span, text));
        }
    }
    if waiting.len() > SHOWN {
        related.push((hlo::Span::NONE, format!("and {} more devices wait", waiting.len() - SHOWN)));
    }
    let (first, at, _) = waiting[0];
    let who = match (waiting.len(), statuses.len()) {
        (_, 1) => "the only device waits".to_owned(),
        (1, all) => format!("1 of {all} devices waits"),
        (n, all) => format!("{n} of {all} devices wait"),
    };
    let message = format!("deadlock: {who} for what never comes");
    let error = RunError::at(module.instr(at), ErrorKind::Trap, codes::DEADLOCKED, message);
    let mut error = error.on(devices, first);
    if let Some(among) = &mut error.among {
        among.related = related;
    }
    error
}

/// Of what kind of rendezvous a device waits for something: ` (for %start, time 2, devices 0, 1)`.
fn describe(module: &Module, at: InstrId, rendezvous: &Rendezvous) -> String {
    let mut parts = Vec::new();
    let execution = match &rendezvous.key {
        RendezvousKey::Group { instr, execution, .. } | RendezvousKey::Pair { instr, execution, .. } => {
            if *instr != at {
                parts.push(format!("for %{}", module.instr(*instr).name));
            }
            *execution
        }
        RendezvousKey::Transfer { channel, number, .. } => {
            parts.push(format!("channel {channel}"));
            *number
        }
    };
    if execution > 0 {
        parts.push(format!("time {}", execution + 1));
    }
    let members: Vec<String> = rendezvous.members.iter().take(16).map(u32::to_string).collect();
    let more = if rendezvous.members.len() > 16 { ", ..." } else { "" };
    parts.push(format!("devices {}{more}", members.join(", ")));
    format!(" ({})", parts.join(", "))
}
