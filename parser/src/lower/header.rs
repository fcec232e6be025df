//! The module's header line and the tables of source locations after it.

use hlo::attrs::{FileLocation, StackFrame, StackTables};
use hlo::diag::codes::parse as codes;
use hlo::diag::{Diagnostic, suggest::did_you_mean};
use hlo::{Diagnostics, Module, ProgramShape, Shape, Span};

use rustc_hash::FxHashMap;

use crate::ast::{Ast, AttributeValue, range};
use crate::attr::{alias, lists, metadata};
use crate::cursor::{Cursor, Res, error, keep};

const FIELDS: [&str; 12] = [
    "is_scheduled",
    "input_output_alias",
    "buffer_donor",
    "alias_passthrough_params",
    "entry_computation_layout",
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
    "replica_count",
    "num_partitions",
    "frontend_attributes",
    "origin_recovery_table",
    "debug_attributes",
];

/// Fills in what the header says.
pub(super) fn header(
    text: &str,
    ast: &Ast,
    depth: usize,
    module: &mut Module,
    diagnostics: &mut Diagnostics,
) {
    let Some(header) = &ast.header else { return };
    let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
    for a in &ast.attributes[range(&header.attributes)] {
        let key = &text[a.key.range()];
        if let Some(first) = seen.get(key) {
            let message = format!("`{key}` is given twice");
            let d = Diagnostic::error(codes::DUPLICATE_ATTRIBUTE, a.key, message).label("again");
            diagnostics.push(d.related(*first, "first given here"));
            continue;
        }
        seen.insert(key, a.key);
        let AttributeValue::Raw(value) = a.value else {
            let message = "the module's header calls no computation";
            diagnostics.push(Diagnostic::error(codes::NO_NESTED_COMPUTATION, a.key, message).label("here"));
            continue;
        };
        let mut c = Cursor::new(text, value, depth);
        let result =
            field(&mut c, key, value, module).and_then(|known| if known { c.finish() } else { Ok(()) });
        if keep(result, diagnostics).is_some() && !FIELDS.contains(&key) && module.header.custom.len() < 100 {
            let message = format!("unknown field `{key}` of the module's header");
            let d = Diagnostic::warning(codes::SUSPICIOUS_HEADER_FIELD, a.key, message);
            diagnostics.push(match did_you_mean(key, FIELDS) {
                Some(near) => d.label(format!("did you mean `{near}`?")),
                None => d.label("kept, and without effect"),
            });
        }
    }
}

/// Reads one field; `false` if it is not known and was kept verbatim.
fn field(c: &mut Cursor<'_>, key: &str, value: Span, module: &mut Module) -> Res<bool> {
    let verbatim: Box<str> = c.text()[value.range()].trim().into();
    let h = &mut module.header;
    match key {
        "is_scheduled" => h.is_scheduled = Some(c.bool()?),
        "input_output_alias" => h.input_output_alias = alias::input_output_alias(c)?,
        "buffer_donor" => h.buffer_donor = alias::buffer_donor(c)?,
        "alias_passthrough_params" => h.alias_passthrough_params = Some(c.bool()?),
        "entry_computation_layout" => h.entry_computation_layout = Some(entry_layout(c)?),
        "allow_spmd_sharding_propagation_to_parameters" => {
            h.spmd_propagation_to_parameters = Some(lists::flags(c)?);
        }
        "allow_spmd_sharding_propagation_to_output" => h.spmd_propagation_to_output = Some(lists::flags(c)?),
        "replica_count" => h.replica_count = Some(c.int()?),
        "num_partitions" => h.num_partitions = Some(c.int()?),
        "frontend_attributes" => h.frontend_attributes = Some(metadata::frontend_attributes(c)?),
        "origin_recovery_table" => {
            h.origin_recovery_table = Some(verbatim);
            return Ok(false);
        }
        "debug_attributes" => {
            h.debug_attributes = Some(verbatim);
            return Ok(false);
        }
        _ => {
            h.custom.push((key.into(), verbatim));
            return Ok(false);
        }
    }
    Ok(true)
}

/// `{(f32[2]{0}, s32[])->f32[2]{0}}`
fn entry_layout(c: &mut Cursor<'_>) -> Res<ProgramShape> {
    const CODE: hlo::diag::Code = codes::BAD_ENTRY_LAYOUT;
    c.expect(b'{', CODE)?;
    let mut parameters: Vec<Shape> = Vec::new();
    c.list(b'(', b')', CODE, |c| {
        parameters.push(crate::shape::shape(c)?);
        Ok(())
    })?;
    if !c.eat_str("->") {
        return Err(c.unexpected(CODE, "`->` and the result"));
    }
    let result = crate::shape::shape(c)?;
    c.expect(b'}', CODE)?;
    Ok(ProgramShape { parameters, result })
}

/// The tables of source locations.
pub(super) fn tables(text: &str, span: Span, depth: usize) -> Res<StackTables> {
    let mut c = Cursor::new(text, span, depth);
    let mut t = StackTables::default();
    while !c.at_end() {
        let table = c.here();
        match c.word() {
            "FileNames" => strings(&mut c, &mut t.file_names)?,
            "FunctionNames" => strings(&mut c, &mut t.function_names)?,
            "FileLocations" => {
                while row(&mut c, t.file_locations.len())? {
                    let keys =
                        ["file_name_id", "function_name_id", "line", "end_line", "column", "end_column"];
                    let [file_name_id, function_name_id, line, end_line, column, end_column] =
                        numbers(&mut c, keys)?;
                    t.file_locations.push(FileLocation {
                        file_name_id,
                        function_name_id,
                        line,
                        end_line,
                        column,
                        end_column,
                    });
                }
            }
            "StackFrames" => {
                while row(&mut c, t.stack_frames.len())? {
                    let [file_location_id, parent_frame_id] =
                        numbers(&mut c, ["file_location_id", "parent_frame_id"])?;
                    t.stack_frames.push(StackFrame { file_location_id, parent_frame_id });
                }
            }
            _ => return Err(error(codes::BAD_TABLE, table, "not a row of the table", "expected a number")),
        }
    }
    Ok(t)
}

/// The number of a row, if there is another one; `n` are before it.
fn row(c: &mut Cursor<'_>, n: usize) -> Res<bool> {
    if !c.peek().is_ascii_digit() {
        return Ok(false);
    }
    let start = c.pos();
    let id = c.int_or(codes::BAD_TABLE)?;
    if id != n as i64 + 1 {
        let message = format!("row {id} after row {n}");
        return Err(error(codes::BAD_TABLE, c.span_from(start), message, format!("expected {}", n + 1)));
    }
    Ok(true)
}

fn strings(c: &mut Cursor<'_>, table: &mut Vec<Box<str>>) -> Res<()> {
    while row(c, table.len())? {
        table.push(c.string(codes::BAD_TABLE)?.into());
    }
    Ok(())
}

/// `{a=1 b=2}` with exactly these keys, in any order.
fn numbers<const N: usize>(c: &mut Cursor<'_>, keys: [&str; N]) -> Res<[i64; N]> {
    const CODE: hlo::diag::Code = codes::BAD_TABLE;
    c.skip();
    let start = c.pos();
    let mut values = [None; N];
    c.expect(b'{', CODE)?;
    while !c.eat(b'}') {
        c.eat(b',');
        let (key, span) = c.key(CODE)?;
        let Some(i) = keys.iter().position(|k| *k == key) else {
            return Err(error(
                CODE,
                span,
                format!("unknown field `{key}`"),
                format!("expected {}", keys.join(", ")),
            ));
        };
        values[i] = Some(c.int_or(CODE)?);
    }
    let mut out = [0; N];
    for ((o, v), key) in out.iter_mut().zip(values).zip(keys) {
        *o =
            v.ok_or_else(|| error(CODE, c.span_from(start), format!("row without `{key}`"), "incomplete"))?;
    }
    Ok(out)
}
