//! What no other pass fused, each instruction in a fusion of its own, so that lowering knows one form.

use hlo::attrs::FusionKind;
use hlo::{InstrId, Module};

use super::kinds::{Role, is_view, programs, role};
use super::outline::{Group, Outliner};
use crate::passes::Fuel;
use crate::passes::edit::{has_run_time_sizes, pinned};

pub(crate) fn run(module: &mut Module, fuel: &mut Fuel) -> u64 {
    if has_run_time_sizes(module) {
        return 0;
    }
    let pinned = pinned(module);
    let mut outliner = Outliner::default();
    let mut applied = 0;
    'all: for c in programs(module) {
        for id in module.instructions(c).collect::<Vec<_>>() {
            let kind = match role(module, id) {
                Role::Loop | Role::Update if !is_view(module, id) => FusionKind::Loop,
                Role::Reduce => FusionKind::Input,
                Role::Loop | Role::Update | Role::Scalar | Role::Outside => continue,
            };
            if pinned.contains(&id) {
                continue;
            }
            if !fuel.take() {
                break 'all;
            }
            // Scalar constants are part of the kernel.
            let mut members: Vec<InstrId> = Vec::new();
            for &o in module.instr(id).operands() {
                if role(module, o) == Role::Scalar && !members.contains(&o) && !pinned.contains(&o) {
                    members.push(o);
                }
            }
            members.push(id);
            outliner.outline(module, &Group { members, roots: vec![id], kind }, None);
            applied += 1;
        }
    }
    outliner.finish(module);
    applied
}
