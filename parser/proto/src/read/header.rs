//! What a module says in addition to its computations.

use hlo::attrs::{AliasEntry, AliasKind, BufferDonor};
use hlo::diag::codes::proto::*;
use hlo::{Diagnostic, Diagnostics, Module, PropagationFlags, Span};
use rustc_hash::FxHashMap;

use super::{origin, shape};
use crate::node::Node;
use crate::schema::devices::device_assignment;
use crate::schema::modules::{
    hlo_buffer_donor, hlo_buffer_donor_buffer_donor_entry as donor, hlo_input_output_alias as aliases,
    hlo_input_output_alias_alias_entry as alias, hlo_module as m, hlo_schedule,
    hlo_schedule_instruction_sequence as sequence, hlo_schedule_sequences_entry as entry,
};
use crate::schema::text_only::{flags, header_field, module_text as t};
use crate::style;
use crate::tables::alias_kind;
use crate::wire::Res;

/// Fields that say something of which text knows nothing.
const NOT_IN_TEXT: [u32; 8] = [
    m::CROSS_PROGRAM_PREFETCHES,
    m::IS_DYNAMIC,
    m::SPMD_OUTPUT_SHARDING,
    m::PROFILE_INFO,
    m::SPMD_PARAMETERS_SHARDINGS,
    m::USE_AUTO_SPMD_PARTITIONING,
    m::ORIGINAL_VALUE_RECOVERY_TABLE,
    m::DEVICE_TYPE,
];

/// Fills in the header of a module.
pub(super) fn read(n: Node<'_>, module: &mut Module, diagnostics: &mut Diagnostics) -> Res<()> {
    let dropped: Vec<&str> = NOT_IN_TEXT.into_iter().filter(|&f| n.has(f)).map(|f| n.name(f)).collect();
    if !dropped.is_empty() {
        let message =
            format!("what {} says is not part of a module as text, and left out", dropped.join(", "));
        diagnostics.push(Diagnostic::warning(PROTO_NOT_IN_TEXT, Span::NONE, message));
    }
    let h = &mut module.header;
    h.is_scheduled = n.has(m::SCHEDULE).then_some(true);
    h.input_output_alias = n
        .child(m::INPUT_OUTPUT_ALIAS, |n| n.children(aliases::ENTRIES, alias))
        .transpose()?
        .unwrap_or_default();
    let donors = |n: Node<'_>| {
        n.children(hlo_buffer_donor::ENTRIES, |n| {
            Ok(BufferDonor {
                parameter: n.int(donor::PARAMETER_NUMBER),
                parameter_index: n.ints(donor::PARAMETER_SHAPE_INDEX)?,
            })
        })
    };
    h.buffer_donor = n.child(m::BUFFER_DONOR, donors).transpose()?.unwrap_or_default();
    h.entry_computation_layout = n.child(m::HOST_PROGRAM_SHAPE, shape::program_shape).transpose()?;
    let attributes = n.child(m::FRONTEND_ATTRIBUTES, origin::frontend_attributes).transpose()?;
    h.frontend_attributes = attributes.filter(|a| !a.entries.is_empty());
    let count = |number| n.child(m::DEVICE_ASSIGNMENT, |n| n.int(number)).filter(|&c| c > 1);
    h.replica_count = count(device_assignment::REPLICA_COUNT);
    h.num_partitions = count(device_assignment::COMPUTATION_COUNT);
    module.stack_tables =
        n.child(m::STACK_FRAME_INDEX, origin::stack_tables).transpose()?.unwrap_or_default();
    n.child(m::HLO_REFERENCE_TEXT, |n| text(n, module)).unwrap_or(Ok(()))
}

fn alias(n: Node<'_>) -> Res<AliasEntry> {
    let kind = n.int(alias::KIND);
    Ok(AliasEntry {
        output_index: n.ints(alias::OUTPUT_SHAPE_INDEX)?,
        parameter: n.int(alias::PARAMETER_NUMBER),
        parameter_index: n.ints(alias::PARAMETER_SHAPE_INDEX)?,
        kind: match kind {
            alias_kind::UNDEFINED | alias_kind::MAY => AliasKind::May,
            alias_kind::MUST => AliasKind::Must,
            other => return Err(n.bad_enumerator(alias::KIND, other)),
        },
        kind_written: kind != alias_kind::UNDEFINED,
    })
}

/// What only text says, and was kept.
fn text(n: Node<'_>, module: &mut Module) -> Res<()> {
    let h = &mut module.header;
    if let Some(bits) = n.given_int(t::STYLE) {
        module.text_style = style::of_bits(bits);
    }
    if n.bool(t::NO_ENTRY_LAYOUT) {
        h.entry_computation_layout = None;
    }
    h.replica_count = n.given_int(t::REPLICA_COUNT).or(h.replica_count);
    h.num_partitions = n.given_int(t::NUM_PARTITIONS).or(h.num_partitions);
    h.alias_passthrough_params = n.given_int(t::ALIAS_PASSTHROUGH_PARAMS).map(|v| v != 0);
    h.is_scheduled = h.is_scheduled.or(n.given_int(t::IS_SCHEDULED).map(|v| v != 0));
    let propagation = |n: Node<'_>| match n.given_int(flags::ALL) {
        Some(all) => Ok(PropagationFlags::All(all != 0)),
        None => n.bools(flags::EACH).map(PropagationFlags::Each),
    };
    h.spmd_propagation_to_parameters = n.child(t::SPMD_TO_PARAMETERS, propagation).transpose()?;
    h.spmd_propagation_to_output = n.child(t::SPMD_TO_OUTPUT, propagation).transpose()?;
    n.children(t::FIELD, |n| {
        let (key, value): (Box<str>, Box<str>) =
            (n.text(header_field::KEY).into(), n.text(header_field::VALUE).into());
        match &*key {
            "origin_recovery_table" => h.origin_recovery_table = Some(value),
            "debug_attributes" => h.debug_attributes = Some(value),
            _ => h.custom.push((key, value)),
        }
        Ok(())
    })?;
    Ok(())
}

/// The order of instructions by computation.
pub(super) fn schedule(n: Node<'_>) -> Res<FxHashMap<i64, Vec<i64>>> {
    let read = |n: Node<'_>| {
        n.children(hlo_schedule::SEQUENCES, |n| {
            let ids = n.child(entry::VALUE, |n| n.int_list(sequence::INSTRUCTION_IDS)).transpose()?;
            Ok((n.int(entry::KEY), ids.unwrap_or_default()))
        })
    };
    Ok(n.child(m::SCHEDULE, read).transpose()?.unwrap_or_default().into_iter().collect())
}
