//! What changes no value: metadata, shardings, backend configurations, layouts, the fields of the header.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue, StackTables};
use hlo::{InstrId, ModuleHeader, Shape};

use super::Edit;
use crate::reduce::Candidate;
use crate::reduce::program::all_instructions;
use crate::reduce::search::Context;

/// Attributes that change nothing, not even whether a program verifies.
const HARMLESS: &[AttrKey] = &[
    AttrKey::Sharding,
    AttrKey::FrontendAttributes,
    AttrKey::ParameterReplication,
    AttrKey::ResultAccuracy,
    AttrKey::Origin,
    AttrKey::Statistics,
    AttrKey::Metadata,
    AttrKey::BackendConfig,
    AttrKey::OperandPrecision,
    AttrKey::DotAlgorithm,
    AttrKey::ConvKind,
    AttrKey::OutputToOperandAliasing,
    AttrKey::IsComposite,
    AttrKey::InferredDimension,
    AttrKey::ConstrainLayout,
    AttrKey::CollectiveMode,
    AttrKey::CrossProgramPrefetchIndex,
];

/// Attributes without which a program still means something.
const OPTIONAL: &[AttrKey] = &[
    AttrKey::SparsityConfig,
    AttrKey::IndicesAreSorted,
    AttrKey::UniqueIndices,
    AttrKey::IsStable,
    AttrKey::IsAssociative,
    AttrKey::FeatureGroupCount,
    AttrKey::BatchGroupCount,
];

/// All that changes nothing, in one edit.
pub(super) fn harmless(context: &Context<'_>) -> Vec<Edit> {
    let edits = annotations_of(context, HARMLESS, false);
    if edits.is_empty() {
        return edits;
    }
    vec![Box::new(move |c| {
        let mut applied = false;
        for edit in &edits {
            applied |= edit(c);
        }
        applied
    })]
}

/// Everything that may be left out.
pub(super) fn annotations(context: &Context<'_>) -> Vec<Edit> {
    let keys: Vec<AttrKey> = HARMLESS.iter().chain(OPTIONAL).copied().collect();
    annotations_of(context, &keys, true)
}

/// Header, attributes, layouts; where `ordering` is to be changed, dynamic dimensions and control edges too.
fn annotations_of(context: &Context<'_>, keys: &[AttrKey], ordering: bool) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits = header(&module.header);
    if module.stack_tables != StackTables::default() {
        edits.push(Box::new(|c| {
            c.module.stack_tables = StackTables::default();
            true
        }));
    }
    for id in all_instructions(module) {
        let i = module.instr(id);
        for &key in keys {
            if i.attrs.get(key).is_some() {
                edits.push(Box::new(move |c| {
                    c.alive(id) && c.module.instr_mut(id).attrs.remove(key).is_some()
                }));
            }
        }
        for slot in i.opcode.attrs().iter().filter(|slot| ordering && !slot.required) {
            let assumed = match i.attrs.get(slot.key) {
                Some(AttrValue::Ints(list)) => list.is_empty(),
                Some(AttrValue::Bool(b)) => !b && slot.key != AttrKey::Largest,
                _ => false,
            };
            if assumed {
                let key = slot.key;
                edits.push(Box::new(move |c| {
                    c.alive(id) && c.module.instr_mut(id).attrs.remove(key).is_some()
                }));
            }
        }
        if i.shape != i.shape.without_layout() {
            edits.push(Box::new(move |c| without_layout(c, id)));
        }
        if ordering && i.shape != static_shape(&i.shape) {
            edits.push(Box::new(move |c| {
                let alive = c.alive(id);
                if alive {
                    c.module.instr_mut(id).shape = static_shape(&c.module.instr(id).shape);
                }
                alive
            }));
        }
        if ordering && !i.control_predecessors.is_empty() {
            edits.push(Box::new(move |c| {
                c.alive(id) && !std::mem::take(&mut c.module.instr_mut(id).control_predecessors).is_empty()
            }));
        }
    }
    edits
}

fn without_layout(c: &mut Candidate, id: InstrId) -> bool {
    let alive = c.alive(id);
    if alive {
        let i = c.module.instr_mut(id);
        i.shape = i.shape.without_layout();
    }
    alive
}

/// With the bounds of dynamic dimensions as their sizes.
fn static_shape(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(a) => {
            let mut a = a.clone();
            a.dynamic = 0;
            Shape::Array(a)
        }
        Shape::Tuple(t) => Shape::tuple(t.iter().map(static_shape)),
        Shape::Buffer(inner) => Shape::Buffer(Arc::new(static_shape(inner))),
        Shape::Token => Shape::Token,
        Shape::Opaque => Shape::Opaque,
    }
}

/// Each field of the header, dropped.
fn header(h: &ModuleHeader) -> Vec<Edit> {
    type Field = (bool, fn(&mut ModuleHeader));
    let fields: [Field; 11] = [
        (h.is_scheduled.is_some(), |h| h.is_scheduled = None),
        (!h.input_output_alias.is_empty(), |h| h.input_output_alias.clear()),
        (!h.buffer_donor.is_empty(), |h| h.buffer_donor.clear()),
        (h.alias_passthrough_params.is_some(), |h| h.alias_passthrough_params = None),
        (h.entry_computation_layout.is_some(), |h| h.entry_computation_layout = None),
        (h.spmd_propagation_to_parameters.is_some(), |h| h.spmd_propagation_to_parameters = None),
        (h.spmd_propagation_to_output.is_some(), |h| h.spmd_propagation_to_output = None),
        (h.frontend_attributes.is_some(), |h| h.frontend_attributes = None),
        (h.origin_recovery_table.is_some(), |h| h.origin_recovery_table = None),
        (h.debug_attributes.is_some(), |h| h.debug_attributes = None),
        (!h.custom.is_empty(), |h| h.custom.clear()),
    ];
    let mut edits: Vec<Edit> = Vec::new();
    for (there, clear) in fields {
        if there {
            edits.push(Box::new(move |c| {
                clear(&mut c.module.header);
                true
            }));
        }
    }
    // What is assumed anyway.
    if h.replica_count.is_some_and(|n| n == 1) {
        edits.push(Box::new(|c| c.module.header.replica_count.take().is_some()));
    }
    if h.num_partitions.is_some_and(|n| n == 1) {
        edits.push(Box::new(|c| c.module.header.num_partitions.take().is_some()));
    }
    edits
}

/// Fewer devices: the first ones, with their inputs.
pub(super) fn devices(context: &Context<'_>) -> Vec<Edit> {
    let h = &context.program.module.header;
    let (r, p) = (h.replica_count.unwrap_or(1).max(1), h.num_partitions.unwrap_or(1).max(1));
    let mut counts = vec![(1, 1), (r, 1), (1, p), (r / 2, p), (r, p / 2), (r - 1, p), (r, p - 1)];
    counts.retain(|&(a, b)| a >= 1 && b >= 1 && a * b < r * p);
    let mut edits: Vec<Edit> = Vec::new();
    for (a, b) in counts {
        // Device (replica, partition) is number replica * partitions + partition.
        let kept: Vec<bool> = (0..r * p).map(|device| device / p < a && device % p < b).collect();
        edits.push(Box::new(move |c| keep_devices(c, (a, b), &kept)));
    }
    if r * p > 1 && r * p <= 64 {
        for only in 1..r * p {
            let kept: Vec<bool> = (0..r * p).map(|device| device == only).collect();
            edits.push(Box::new(move |c| keep_devices(c, (1, 1), &kept)));
        }
    }
    edits
}

fn keep_devices(c: &mut Candidate, (replicas, partitions): (i64, i64), kept: &[bool]) -> bool {
    let h = &mut c.module.header;
    h.replica_count = (replicas > 1).then_some(replicas);
    h.num_partitions = (partitions > 1).then_some(partitions);
    let mut kept = kept.iter();
    c.inputs.retain(|_| kept.next().copied().unwrap_or(false));
    true
}
