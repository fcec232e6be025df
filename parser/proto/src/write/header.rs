//! What a module says in addition to its computations.

use std::borrow::Cow;

use hlo::attrs::{AliasKind, FrontendAttributes};
use hlo::{Module, ModuleHeader, ProgramShape, PropagationFlags};

use super::{origin, shape};
use crate::message::{Message, Value};
use crate::schema::modules::{
    HLO_BUFFER_DONOR, HLO_BUFFER_DONOR_BUFFER_DONOR_ENTRY, HLO_INPUT_OUTPUT_ALIAS,
    HLO_INPUT_OUTPUT_ALIAS_ALIAS_ENTRY, hlo_buffer_donor, hlo_buffer_donor_buffer_donor_entry as donor,
    hlo_input_output_alias as aliases, hlo_input_output_alias_alias_entry as alias, hlo_module as m,
};
use crate::schema::text_only::{FLAGS, HEADER_FIELD, MODULE_TEXT, flags, header_field, module_text as t};
use crate::style;
use crate::tables::alias_kind;

/// Puts the header of a module into its message.
pub(super) fn write<'m>(module: &'m Module, out: &mut Message<'m>) {
    // Exhaustive, so that a new field is not forgotten here. What XLA has no field for goes into `text`.
    let ModuleHeader {
        is_scheduled,
        input_output_alias,
        buffer_donor,
        alias_passthrough_params,
        entry_computation_layout,
        spmd_propagation_to_parameters,
        spmd_propagation_to_output,
        replica_count,
        num_partitions,
        frontend_attributes,
        origin_recovery_table,
        debug_attributes,
        custom,
    } = &module.header;
    let layout = match entry_computation_layout {
        Some(layout) => Some(Cow::Borrowed(layout)),
        None => module.program_shape(module.entry()).map(Cow::Owned),
    };
    if let Some(layout) = layout {
        let names = (0..layout.parameters.len()).map(|n| format!("p{n}").into()).collect();
        out.message(m::HOST_PROGRAM_SHAPE, shape::program_shape(&layout, names));
    }
    let entries = input_output_alias.iter().map(|a| {
        let mut m = Message::new(&HLO_INPUT_OUTPUT_ALIAS_ALIAS_ENTRY);
        m.ints(alias::OUTPUT_SHAPE_INDEX, a.output_index.iter().copied());
        m.int(alias::PARAMETER_NUMBER, a.parameter);
        m.ints(alias::PARAMETER_SHAPE_INDEX, a.parameter_index.iter().copied());
        let kind = match a.kind {
            AliasKind::Must => alias_kind::MUST,
            AliasKind::May if a.kind_written => alias_kind::MAY,
            // XLA reads it as the former.
            AliasKind::May => alias_kind::UNDEFINED,
        };
        m.int(alias::KIND, kind);
        m
    });
    let mut list = Message::new(&HLO_INPUT_OUTPUT_ALIAS);
    list.messages(aliases::ENTRIES, entries.collect());
    out.message(m::INPUT_OUTPUT_ALIAS, list);
    let donors = buffer_donor.iter().map(|d| {
        let mut m = Message::new(&HLO_BUFFER_DONOR_BUFFER_DONOR_ENTRY);
        m.int(donor::PARAMETER_NUMBER, d.parameter);
        m.ints(donor::PARAMETER_SHAPE_INDEX, d.parameter_index.iter().copied());
        m
    });
    let mut list = Message::new(&HLO_BUFFER_DONOR);
    list.messages(hlo_buffer_donor::ENTRIES, donors.collect());
    out.message(m::BUFFER_DONOR, list);
    if !module.stack_tables.is_empty() {
        out.message(m::STACK_FRAME_INDEX, origin::stack_tables(&module.stack_tables));
    }
    out.message(
        m::FRONTEND_ATTRIBUTES,
        match frontend_attributes {
            Some(attributes) => origin::frontend_attributes(attributes),
            None => origin::frontend_attributes(&FrontendAttributes::default()).into_owned(),
        },
    );

    let mut text = Message::new(&MODULE_TEXT);
    text.int(t::STYLE, style::bits(module.text_style));
    text.bool(t::NO_ENTRY_LAYOUT, entry_computation_layout.is_none());
    for (number, value) in [(t::REPLICA_COUNT, replica_count), (t::NUM_PARTITIONS, num_partitions)] {
        if let Some(value) = value {
            text.put_int(number, *value);
        }
    }
    if let Some(passthrough) = alias_passthrough_params {
        text.put_int(t::ALIAS_PASSTHROUGH_PARAMS, i64::from(*passthrough));
    }
    for (number, propagation) in [
        (t::SPMD_TO_PARAMETERS, spmd_propagation_to_parameters),
        (t::SPMD_TO_OUTPUT, spmd_propagation_to_output),
    ] {
        if let Some(propagation) = propagation {
            text.message(number, propagation_flags(propagation));
        }
    }
    if *is_scheduled == Some(false) {
        text.put_int(t::IS_SCHEDULED, 0);
    }
    let known = [("origin_recovery_table", origin_recovery_table), ("debug_attributes", debug_attributes)];
    let known = known.into_iter().filter_map(|(key, value)| Some((key, &**value.as_ref()?)));
    let fields = known.chain(custom.iter().map(|(key, value)| (&**key, &**value))).map(|(key, value)| {
        let mut m = Message::new(&HEADER_FIELD);
        m.text(header_field::KEY, key);
        m.text(header_field::VALUE, value);
        m
    });
    text.messages(t::FIELD, fields.collect());
    if !text.fields().is_empty() {
        out.message(m::HLO_REFERENCE_TEXT, text);
    }
}

fn propagation_flags<'m>(of: &PropagationFlags) -> Message<'m> {
    let mut m = Message::new(&FLAGS);
    match of {
        PropagationFlags::All(all) => m.put_int(flags::ALL, i64::from(*all)),
        PropagationFlags::Each(each) => m.ints(flags::EACH, each.iter().map(|&f| i64::from(f))),
    }
    m
}

/// The shapes of a computation, with the names of its parameters.
pub(super) fn signature<'m>(module: &'m Module, computation: hlo::ComputationId) -> Option<Message<'m>> {
    let of: ProgramShape = module.program_shape(computation)?;
    let parameters = module.computation(computation).parameters().iter().flatten();
    let names = parameters.map(|&p| Cow::Borrowed(&*module.instr(p).name)).collect();
    Some(shape::program_shape(&of, names))
}

/// The payloads of metadata.
pub(super) fn payloads<'m>(list: Vec<Cow<'m, [u8]>>, out: &mut Message<'m>) {
    if !list.is_empty() {
        out.set(m::PAYLOADS, Value::BytesList(list));
    }
}
