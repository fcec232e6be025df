//! What describes an instruction without changing what it computes.

use hlo::Shape;
use hlo::attrs::{
    BackendConfig, FileLocation, FrontendAttributes, FrontendValue, Ints, Metadata, OriginalTree,
    OriginalValue, ResultAccuracy, StackFrame, StackTables, Statistics,
};
use hlo::diag::codes::parse::*;

use crate::dictionary::is_dictionary;
use crate::node::Node;
use crate::schema::modules::{
    stack_frame_index as tables, stack_frame_index_file_location as location,
    stack_frame_index_stack_frame as frame,
};
use crate::schema::operations::{result_accuracy as accuracy, result_accuracy_tolerance as tolerance};
use crate::schema::origins::{
    frontend_attributes as f, frontend_attributes_map_entry as entry, op_metadata as o, original_array,
    original_value, original_value_element, payload, statistic, statistics_viz,
};
use crate::wire::Res;

/// Metadata; its payload stands in it, or is one of the module's.
pub(crate) fn metadata(n: Node<'_>, payloads: &[Box<str>]) -> Res<Metadata> {
    let types = n.int_list(o::PROFILE_TYPE)?;
    let payload = n.child(o::METADATA_PAYLOAD, |n| payload(n, payloads));
    Ok(Metadata {
        op_type: n.given_text(o::OP_TYPE),
        op_name: n.given_text(o::OP_NAME),
        source_file: n.given_text(o::SOURCE_FILE),
        source_line: n.nonzero(o::SOURCE_LINE),
        source_end_line: n.nonzero(o::SOURCE_END_LINE),
        source_column: n.nonzero(o::SOURCE_COLUMN),
        source_end_column: n.nonzero(o::SOURCE_END_COLUMN),
        profile_type: Some(types).filter(|t| !t.is_empty()),
        deduplicated_name: n.given_text(o::DEDUPLICATED_NAME),
        scheduling_name: n.given_text(o::SCHEDULING_NAME),
        stack_frame_id: n.nonzero(o::STACK_FRAME_ID),
        size_of_generated_code_in_bytes: n.nonzero(o::SIZE_OF_GENERATED_CODE_IN_BYTES),
        size_of_memory_working_set_in_bytes: n.nonzero(o::SIZE_OF_MEMORY_WORKING_SET_IN_BYTES),
        preserve_layout: None,
        payload: payload.transpose()?,
        unknown: Vec::new(),
    })
}

/// Bytes that stand in the message, or are among those of the module.
pub(crate) fn payload(n: Node<'_>, payloads: &[Box<str>]) -> Res<Box<str>> {
    let Some(id) = n.given_int(payload::ID) else { return Ok(string_of(n.bytes(payload::VALUE))) };
    let found = usize::try_from(id).ok().and_then(|id| payloads.get(id));
    let message = || format!("the module has {} payloads, and none of number {id}", payloads.len());
    found.cloned().ok_or_else(|| n.error(PROTO_BAD_ID, payload::ID, message()))
}

/// Bytes as text can hold them: what is not UTF-8 is replaced, as it is when text with such escapes is read.
pub(crate) fn string_of(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

/// Frontend attributes, by key: maps have no order.
pub(crate) fn frontend_attributes(n: Node<'_>) -> Res<FrontendAttributes> {
    let mut entries: Vec<(Box<str>, FrontendValue)> = n.children(f::MAP, |n| {
        let value: Box<str> = n.text(entry::VALUE).into();
        let value = if is_dictionary(&value) { FrontendValue::Raw(value) } else { FrontendValue::Str(value) };
        Ok((n.text(entry::KEY).into(), value))
    })?;
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    // Of a key that is there twice, the last one counts.
    entries.reverse();
    entries.dedup_by(|later, kept| later.0 == kept.0);
    entries.reverse();
    Ok(FrontendAttributes { entries })
}

/// A backend configuration.
pub(crate) fn backend_config(bytes: &[u8]) -> BackendConfig {
    let text = string_of(bytes);
    if is_dictionary(&text) { BackendConfig::Raw(text) } else { BackendConfig::Str(text) }
}

/// Statistics.
pub(crate) fn statistics(n: Node<'_>) -> Res<Statistics> {
    Ok(Statistics {
        visualizing_index: n.int(statistics_viz::STAT_INDEX_TO_VISUALIZE),
        values: n.children(statistics_viz::STATISTICS, |n| {
            Ok((n.text(statistic::STAT_NAME).into(), n.double(statistic::STAT_VAL)))
        })?,
    })
}

/// Result accuracy; `None` if it says nothing.
pub(crate) fn result_accuracy(n: Node<'_>) -> Res<Option<ResultAccuracy>> {
    let tolerance = n.child(accuracy::TOLERANCE, |n| ResultAccuracy::Tolerance {
        atol: n.double(tolerance::ATOL),
        rtol: n.double(tolerance::RTOL),
        ulps: n.int(tolerance::ULPS),
    });
    Ok(match (tolerance, n.given_int(accuracy::MODE)) {
        (Some(t), _) => Some(t),
        (None, None) => None,
        (None, Some(0)) => Some(ResultAccuracy::Default),
        (None, Some(1)) => Some(ResultAccuracy::Highest),
        (None, Some(mode)) => return Err(n.bad_enumerator(accuracy::MODE, mode)),
    })
}

/// The original value of an instruction: a list of leaves, as a tree of the form of the instruction's shape.
pub(crate) fn original_value(n: Node<'_>, shape: &Shape) -> Res<OriginalValue> {
    if n.bool(original_value::IS_SYNTHETIC_CALL) {
        return Ok(OriginalValue::SyntheticCall);
    }
    let mut tree = empty_tree(shape);
    n.children(original_value::ELEMENTS, |n| {
        let index = n.int_list(original_value_element::SHAPE_INDEX)?;
        let Some(leaf) = leaf_at(&mut tree, &index) else {
            let message = format!("{shape} has no leaf at {index:?}");
            return Err(n.error(PROTO_BAD_ID, original_value_element::SHAPE_INDEX, message));
        };
        let array = n.child(original_value_element::ORIGINAL_ARRAY, |n| -> Res<(Box<str>, Ints)> {
            Ok((n.text(original_array::INSTRUCTION_NAME).into(), n.ints(original_array::SHAPE_INDEX)?))
        });
        *leaf = array.transpose()?;
        Ok(())
    })?;
    Ok(OriginalValue::Tree(tree))
}

fn empty_tree(shape: &Shape) -> OriginalTree {
    match shape {
        Shape::Tuple(parts) => OriginalTree::Tuple(parts.iter().map(empty_tree).collect()),
        Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => OriginalTree::Leaf(None),
    }
}

fn leaf_at<'t>(tree: &'t mut OriginalTree, index: &[i64]) -> Option<&'t mut Option<(Box<str>, Ints)>> {
    match (tree, index) {
        (OriginalTree::Leaf(leaf), []) => Some(leaf),
        (OriginalTree::Tuple(parts), [first, rest @ ..]) => {
            leaf_at(parts.get_mut(usize::try_from(*first).ok()?)?, rest)
        }
        (OriginalTree::Leaf(_), [_, ..]) | (OriginalTree::Tuple(_), []) => None,
    }
}

/// The tables of source locations.
pub(crate) fn stack_tables(n: Node<'_>) -> Res<StackTables> {
    Ok(StackTables {
        file_names: n.texts(tables::FILE_NAMES),
        function_names: n.texts(tables::FUNCTION_NAMES),
        file_locations: n.children(tables::FILE_LOCATIONS, |n| {
            Ok(FileLocation {
                file_name_id: n.int(location::FILE_NAME_ID),
                function_name_id: n.int(location::FUNCTION_NAME_ID),
                line: n.int(location::LINE),
                end_line: n.int(location::END_LINE),
                column: n.int(location::COLUMN),
                end_column: n.int(location::END_COLUMN),
            })
        })?,
        stack_frames: n.children(tables::STACK_FRAMES, |n| {
            Ok(StackFrame {
                file_location_id: n.int(frame::FILE_LOCATION_ID),
                parent_frame_id: n.int(frame::PARENT_FRAME_ID),
            })
        })?,
    })
}
