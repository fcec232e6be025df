//! What describes an instruction without changing what it computes.

use std::borrow::Cow;

use hlo::attrs::{
    FrontendAttributes, FrontendValue, Metadata, OriginalTree, OriginalValue, ResultAccuracy, StackTables,
    Statistics,
};
use rustc_hash::FxHashMap;

use crate::message::{Message, Value};
use crate::schema::modules::{
    STACK_FRAME_INDEX, STACK_FRAME_INDEX_FILE_LOCATION, STACK_FRAME_INDEX_STACK_FRAME,
    stack_frame_index as tables, stack_frame_index_file_location as location,
    stack_frame_index_stack_frame as frame,
};
use crate::schema::operations::{
    RESULT_ACCURACY, RESULT_ACCURACY_TOLERANCE, result_accuracy as accuracy,
    result_accuracy_tolerance as tolerance,
};
use crate::schema::origins::{
    FRONTEND_ATTRIBUTES, FRONTEND_ATTRIBUTES_MAP_ENTRY, OP_METADATA, ORIGINAL_ARRAY, ORIGINAL_VALUE,
    ORIGINAL_VALUE_ELEMENT, PAYLOAD, STATISTIC, STATISTICS_VIZ, frontend_attributes as f,
    frontend_attributes_map_entry as entry, op_metadata as o, original_array, original_value as v,
    original_value_element as element, payload, statistic, statistics_viz,
};

/// The payloads of a module: each once, by number.
#[derive(Debug, Default)]
pub(crate) struct Payloads<'m> {
    pub(crate) list: Vec<Cow<'m, [u8]>>,
    numbers: FxHashMap<&'m str, i64>,
}

impl<'m> Payloads<'m> {
    fn number(&mut self, payload: &'m str) -> i64 {
        *self.numbers.entry(payload).or_insert_with(|| {
            self.list.push(Cow::Borrowed(payload.as_bytes()));
            self.list.len() as i64 - 1
        })
    }
}

/// Metadata, except unknown fields.
pub(crate) fn metadata<'m>(of: &'m Metadata, payloads: &mut Payloads<'m>) -> Message<'m> {
    // Exhaustive, so that a new field is not forgotten here.
    let Metadata {
        op_type,
        op_name,
        source_file,
        source_line,
        source_end_line,
        source_column,
        source_end_column,
        profile_type,
        deduplicated_name,
        scheduling_name,
        stack_frame_id,
        size_of_generated_code_in_bytes,
        size_of_memory_working_set_in_bytes,
        preserve_layout: _,
        payload,
        unknown: _,
    } = of;
    let mut m = Message::new(&OP_METADATA);
    for (number, text) in [
        (o::OP_TYPE, op_type),
        (o::OP_NAME, op_name),
        (o::SOURCE_FILE, source_file),
        (o::DEDUPLICATED_NAME, deduplicated_name),
        (o::SCHEDULING_NAME, scheduling_name),
    ] {
        m.text(number, text.as_deref().unwrap_or(""));
    }
    for (number, value) in [
        (o::SOURCE_LINE, source_line),
        (o::SOURCE_END_LINE, source_end_line),
        (o::SOURCE_COLUMN, source_column),
        (o::SOURCE_END_COLUMN, source_end_column),
        (o::STACK_FRAME_ID, stack_frame_id),
        (o::SIZE_OF_GENERATED_CODE_IN_BYTES, size_of_generated_code_in_bytes),
        (o::SIZE_OF_MEMORY_WORKING_SET_IN_BYTES, size_of_memory_working_set_in_bytes),
    ] {
        m.int(number, value.unwrap_or(0));
    }
    m.ints(o::PROFILE_TYPE, profile_type.iter().flatten().copied());
    if let Some(text) = payload {
        let mut inner = Message::new(&PAYLOAD);
        inner.put_int(payload::ID, payloads.number(text));
        m.message(o::METADATA_PAYLOAD, inner);
    }
    m
}

/// Frontend attributes, by key.
pub(crate) fn frontend_attributes(of: &FrontendAttributes) -> Message<'_> {
    let mut entries: Vec<(&str, &str)> = of
        .entries
        .iter()
        .map(|(key, value)| match value {
            FrontendValue::Str(s) | FrontendValue::Raw(s) => (&**key, &**s),
        })
        .collect();
    entries.sort_by_key(|e| e.0);
    let entries = entries.into_iter().map(|(key, value)| {
        let mut m = Message::new(&FRONTEND_ATTRIBUTES_MAP_ENTRY);
        // Entries of maps always have both.
        m.set(entry::KEY, Value::Text(key.into()));
        m.set(entry::VALUE, Value::Text(value.into()));
        m
    });
    let mut m = Message::new(&FRONTEND_ATTRIBUTES);
    m.messages(f::MAP, entries.collect());
    m
}

/// Statistics.
pub(crate) fn statistics(of: &Statistics) -> Message<'_> {
    let mut m = Message::new(&STATISTICS_VIZ);
    m.int(statistics_viz::STAT_INDEX_TO_VISUALIZE, of.visualizing_index);
    let each = of.values.iter().map(|(name, value)| {
        let mut m = Message::new(&STATISTIC);
        m.text(statistic::STAT_NAME, &**name);
        m.double(statistic::STAT_VAL, *value);
        m
    });
    m.messages(statistics_viz::STATISTICS, each.collect());
    m
}

/// Result accuracy.
pub(crate) fn result_accuracy<'m>(of: ResultAccuracy) -> Message<'m> {
    let mut m = Message::new(&RESULT_ACCURACY);
    match of {
        ResultAccuracy::Default => m.put_int(accuracy::MODE, 0),
        ResultAccuracy::Highest => m.put_int(accuracy::MODE, 1),
        ResultAccuracy::Tolerance { atol, rtol, ulps } => {
            let mut t = Message::new(&RESULT_ACCURACY_TOLERANCE);
            t.double(tolerance::ATOL, atol);
            t.double(tolerance::RTOL, rtol);
            t.int(tolerance::ULPS, ulps);
            m.message(accuracy::TOLERANCE, t);
        }
    }
    m
}

/// An original value: its leaves with their indices.
pub(crate) fn original_value(of: &OriginalValue) -> Message<'_> {
    let mut m = Message::new(&ORIGINAL_VALUE);
    match of {
        OriginalValue::SyntheticCall => m.bool(v::IS_SYNTHETIC_CALL, true),
        OriginalValue::Tree(tree) => {
            let mut elements = Vec::new();
            leaves(tree, &mut Vec::new(), &mut elements);
            m.messages(v::ELEMENTS, elements);
        }
    }
    m
}

fn leaves<'m>(tree: &'m OriginalTree, index: &mut Vec<i64>, out: &mut Vec<Message<'m>>) {
    match tree {
        OriginalTree::Tuple(parts) => {
            for (i, part) in parts.iter().enumerate() {
                index.push(i as i64);
                leaves(part, index, out);
                index.pop();
            }
        }
        OriginalTree::Leaf(array) => {
            let mut m = Message::new(&ORIGINAL_VALUE_ELEMENT);
            m.ints(element::SHAPE_INDEX, index.iter().copied());
            if let Some((name, index)) = array {
                let mut a = Message::new(&ORIGINAL_ARRAY);
                a.text(original_array::INSTRUCTION_NAME, &**name);
                a.ints(original_array::SHAPE_INDEX, index.iter().copied());
                m.message(element::ORIGINAL_ARRAY, a);
            }
            out.push(m);
        }
    }
}

/// The tables of source locations.
pub(crate) fn stack_tables(of: &StackTables) -> Message<'_> {
    let mut m = Message::new(&STACK_FRAME_INDEX);
    for (number, names) in
        [(tables::FILE_NAMES, &of.file_names), (tables::FUNCTION_NAMES, &of.function_names)]
    {
        if !names.is_empty() {
            m.set(number, Value::Texts(names.iter().map(|n| Cow::Borrowed(&**n)).collect()));
        }
    }
    let locations = of.file_locations.iter().map(|l| {
        let mut m = Message::new(&STACK_FRAME_INDEX_FILE_LOCATION);
        for (number, value) in [
            (location::FILE_NAME_ID, l.file_name_id),
            (location::FUNCTION_NAME_ID, l.function_name_id),
            (location::LINE, l.line),
            (location::COLUMN, l.column),
            (location::END_LINE, l.end_line),
            (location::END_COLUMN, l.end_column),
        ] {
            m.int(number, value);
        }
        m
    });
    m.messages(tables::FILE_LOCATIONS, locations.collect());
    let frames = of.stack_frames.iter().map(|f| {
        let mut m = Message::new(&STACK_FRAME_INDEX_STACK_FRAME);
        m.int(frame::FILE_LOCATION_ID, f.file_location_id);
        // Text counts one more: 1 stands for none.
        m.int(frame::PARENT_FRAME_ID, f.parent_frame_id.saturating_sub(1));
        m
    });
    m.messages(tables::STACK_FRAMES, frames.collect());
    m
}
