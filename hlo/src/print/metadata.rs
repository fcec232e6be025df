//! Metadata, original values and what else says where an instruction came from, as text.

use super::number::{push_f64, push_general};
use super::text::Text;
use crate::attrs::{
    BackendConfig, FrontendAttributes, FrontendValue, Metadata, OriginalTree, OriginalValue, ResultAccuracy,
    StackTables, Statistics,
};

/// Appends the fields of metadata, without braces, in the order of XLA (`xla/hlo/ir/hlo_op_metadata.cc`);
/// fields that today's XLA does not print come where older ones had them, or last.
pub(crate) fn write_metadata_fields(out: &mut Text<'_>, m: &Metadata) {
    let start = out.len();
    let key = |out: &mut Text<'_>, key: &str| {
        if out.len() > start {
            out.byte(b' ');
        }
        out.str(key);
    };
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
        preserve_layout,
        payload,
        unknown,
    } = m;
    for (name, value) in [("op_type=", op_type), ("op_name=", op_name), ("source_file=", source_file)] {
        if let Some(value) = value {
            key(out, name);
            out.quoted(value);
        }
    }
    for (name, value) in [
        ("source_line=", source_line),
        ("source_end_line=", source_end_line),
        ("source_column=", source_column),
        ("source_end_column=", source_end_column),
    ] {
        if let Some(value) = value {
            key(out, name);
            out.int(*value);
        }
    }
    if let Some(types) = profile_type {
        key(out, "profile_type=");
        out.braced_ints(types);
    }
    for (name, value) in [
        ("size_of_generated_code_in_bytes=", size_of_generated_code_in_bytes),
        ("size_of_memory_working_set_in_bytes=", size_of_memory_working_set_in_bytes),
    ] {
        if let Some(value) = value {
            key(out, name);
            out.int(*value);
        }
    }
    if let Some(name) = deduplicated_name {
        key(out, "deduplicated_name=");
        out.quoted(name);
    }
    if let Some(preserve) = preserve_layout {
        key(out, "preserve_layout=");
        out.bool(*preserve);
    }
    if let Some(name) = scheduling_name {
        key(out, "scheduling_name=");
        out.quoted(name);
    }
    if let Some(id) = stack_frame_id {
        key(out, "stack_frame_id=");
        out.int(*id);
    }
    if let Some(payload) = payload {
        key(out, "metadata_payload=");
        out.quoted(payload);
    }
    for (name, value) in unknown {
        key(out, name);
        out.byte(b'=');
        out.str(value);
    }
}

/// Appends `FileNames` to `StackFrames`, each after an empty line.
pub(crate) fn write_stack_tables(out: &mut Text<'_>, tables: &StackTables) {
    for (title, names) in
        [("\n\nFileNames\n", &tables.file_names), ("\nFunctionNames\n", &tables.function_names)]
    {
        out.str(title);
        for (i, name) in names.iter().enumerate() {
            out.uint(i as u64 + 1);
            out.byte(b' ');
            out.quoted(name);
            out.byte(b'\n');
        }
    }
    out.str("\nFileLocations\n");
    for (i, l) in tables.file_locations.iter().enumerate() {
        out.uint(i as u64 + 1);
        for (key, value) in [
            (" {file_name_id=", l.file_name_id),
            (" function_name_id=", l.function_name_id),
            (" line=", l.line),
            (" end_line=", l.end_line),
            (" column=", l.column),
            (" end_column=", l.end_column),
        ] {
            out.str(key);
            out.int(value);
        }
        out.str("}\n");
        out.checkpoint();
    }
    out.str("\nStackFrames\n");
    for (i, f) in tables.stack_frames.iter().enumerate() {
        out.uint(i as u64 + 1);
        out.str(" {file_location_id=");
        out.int(f.file_location_id);
        out.str(" parent_frame_id=");
        out.int(f.parent_frame_id);
        out.str("}\n");
        out.checkpoint();
    }
}

/// Appends frontend attributes with their braces, in their order.
pub(crate) fn write_frontend_attributes(out: &mut Text<'_>, attributes: &FrontendAttributes) {
    out.byte(b'{');
    out.join(&attributes.entries, ",", |out, (key, value)| {
        out.str(key);
        out.byte(b'=');
        match value {
            FrontendValue::Str(s) => out.quoted(s),
            FrontendValue::Raw(s) => out.str(s),
        }
    });
    out.byte(b'}');
}

/// Appends a backend configuration as it was given.
pub(crate) fn write_backend_config(out: &mut Text<'_>, config: &BackendConfig) {
    match config {
        BackendConfig::Str(s) => out.quoted(s),
        BackendConfig::Raw(s) => out.str(s),
    }
}

/// Appends an original value with the attribute's braces.
pub(crate) fn write_original_value(out: &mut Text<'_>, value: &OriginalValue) {
    out.byte(b'{');
    match value {
        OriginalValue::SyntheticCall => out.str("[synthetic_call]"),
        OriginalValue::Tree(tree) => write_original_tree(out, tree),
    }
    out.byte(b'}');
}

fn write_original_tree(out: &mut Text<'_>, tree: &OriginalTree) {
    match tree {
        OriginalTree::Tuple(elements) => {
            out.byte(b'(');
            out.join(elements, ", ", write_original_tree);
            out.byte(b')');
        }
        OriginalTree::Leaf(None) => out.str("{}"),
        OriginalTree::Leaf(Some((name, index))) => {
            out.str("{\"");
            out.str(name);
            out.byte(b'"');
            if !index.is_empty() {
                out.byte(b' ');
                out.braced_ints(index);
            }
            out.byte(b'}');
        }
    }
}

/// Appends statistics; values with 6 digits if `normalize`, else with as many as they need.
pub(crate) fn write_statistics(out: &mut Text<'_>, statistics: &Statistics, normalize: bool) {
    out.str("{visualizing_index=");
    out.int(statistics.visualizing_index);
    for (name, value) in &statistics.values {
        out.byte(b',');
        out.str(name);
        out.byte(b'=');
        write_float(out, *value, normalize);
    }
    out.byte(b'}');
}

/// Appends a floating-point attribute: with 6 digits if `normalize` (XLA's `StrCat`), else with as many as it
/// needs.
pub(crate) fn write_float(out: &mut Text<'_>, value: f64, normalize: bool) {
    if normalize {
        push_general(out, value, 6);
    } else {
        push_f64(out, value);
    }
}

/// Appends a result accuracy.
pub(crate) fn write_result_accuracy(out: &mut Text<'_>, accuracy: ResultAccuracy, normalize: bool) {
    match accuracy {
        ResultAccuracy::Default => out.str("{mode=default}"),
        ResultAccuracy::Highest => out.str("{mode=highest}"),
        ResultAccuracy::Tolerance { atol, rtol, ulps } => {
            out.str("{tolerance={atol=");
            write_float(out, atol, normalize);
            out.str(",rtol=");
            write_float(out, rtol, normalize);
            out.str(",ulps=");
            out.int(ulps);
            out.str("}}");
        }
    }
}
