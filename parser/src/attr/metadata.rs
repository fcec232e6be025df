//! What describes an instruction without changing what it computes.

use hlo::attrs::{
    BackendConfig, FrontendAttributes, FrontendValue, Metadata, OriginalTree, OriginalValue, Statistics,
};
use hlo::diag::codes::parse as codes;

use super::lists::shape_index;
use crate::cursor::{Cursor, Res, error};

/// `{op_name="..." source_line=1}`: fields separated by blanks or commas.
pub(crate) fn metadata(c: &mut Cursor<'_>) -> Res<Metadata> {
    const CODE: hlo::diag::Code = codes::BAD_METADATA;
    let mut m = Metadata::default();
    c.expect(b'{', CODE)?;
    while !c.eat(b'}') {
        c.eat(b',');
        let (key, span) = c.key(CODE)?;
        let text = match key {
            "op_type" => Some(&mut m.op_type),
            "op_name" => Some(&mut m.op_name),
            "source_file" => Some(&mut m.source_file),
            "deduplicated_name" => Some(&mut m.deduplicated_name),
            "scheduling_name" => Some(&mut m.scheduling_name),
            "metadata_payload" => Some(&mut m.payload),
            _ => None,
        };
        if let Some(field) = text {
            let value = c.string(CODE)?;
            if field.replace(value.into()).is_some() {
                return Err(error(CODE, span, format!("`{key}` is given twice"), "again"));
            }
            continue;
        }
        let number = match key {
            "source_line" => Some(&mut m.source_line),
            "source_end_line" => Some(&mut m.source_end_line),
            "source_column" => Some(&mut m.source_column),
            "source_end_column" => Some(&mut m.source_end_column),
            "stack_frame_id" => Some(&mut m.stack_frame_id),
            "size_of_generated_code_in_bytes" => Some(&mut m.size_of_generated_code_in_bytes),
            "size_of_memory_working_set_in_bytes" => Some(&mut m.size_of_memory_working_set_in_bytes),
            _ => None,
        };
        if let Some(field) = number {
            if field.replace(c.int_or(CODE)?).is_some() {
                return Err(error(CODE, span, format!("`{key}` is given twice"), "again"));
            }
            continue;
        }
        match key {
            "profile_type" => m.profile_type = Some(c.ints(b'{', b'}', CODE)?),
            "preserve_layout" => m.preserve_layout = Some(c.bool()?),
            _ => {
                let value = raw(c)?;
                m.unknown.push((key.into(), value.into()));
            }
        }
    }
    Ok(m)
}

/// The text of a value that is not understood: a string with its quotes, a group in braces, or a word.
fn raw<'a>(c: &mut Cursor<'a>) -> Res<&'a str> {
    match c.peek() {
        b'{' => c.group(codes::BAD_METADATA),
        b'"' | b'\'' => {
            let start = c.pos();
            c.string(codes::BAD_METADATA)?;
            Ok(&c.text()[start..c.pos()])
        }
        _ => {
            let start = c.pos();
            let n = c
                .rest()
                .iter()
                .take_while(|b| !matches!(b, b' ' | b',' | b'}' | b'\n' | b'\t' | b'\r'))
                .count();
            if n == 0 {
                return Err(c.unexpected(codes::BAD_METADATA, "a value"));
            }
            c.bump(n);
            Ok(&c.text()[start..c.pos()])
        }
    }
}

/// One `{...}`, or several in braces.
pub(crate) fn metadata_list(c: &mut Cursor<'_>) -> Res<Vec<Metadata>> {
    let mut ahead = c.clone();
    if ahead.eat(b'{') && ahead.peek() == b'{' {
        let mut all = Vec::new();
        c.list(b'{', b'}', codes::BAD_METADATA, |c| {
            all.push(metadata(c)?);
            Ok(())
        })?;
        return Ok(all);
    }
    Ok(vec![metadata(c)?])
}

/// `{a="x",b={...}}`
pub(crate) fn frontend_attributes(c: &mut Cursor<'_>) -> Res<FrontendAttributes> {
    const CODE: hlo::diag::Code = codes::BAD_FRONTEND_ATTRIBUTES;
    let mut entries = Vec::new();
    c.list(b'{', b'}', CODE, |c| {
        let (key, _) = c.key(CODE)?;
        let value = match c.peek() {
            b'"' | b'\'' => FrontendValue::Str(c.string(CODE)?.into()),
            b'{' => FrontendValue::Raw(c.group(CODE)?.into()),
            _ => return Err(c.unexpected(CODE, "a string, or text in braces")),
        };
        entries.push((key.into(), value));
        Ok(())
    })?;
    Ok(FrontendAttributes { entries })
}

/// A string, or text in braces.
pub(crate) fn backend_config(c: &mut Cursor<'_>) -> Res<BackendConfig> {
    match c.peek() {
        b'"' | b'\'' => Ok(BackendConfig::Str(c.string(codes::BAD_BACKEND_CONFIG)?.into())),
        b'{' => Ok(BackendConfig::Raw(c.group(codes::BAD_BACKEND_CONFIG)?.into())),
        _ => Err(c.unexpected(codes::BAD_BACKEND_CONFIG, "a string, or text in braces")),
    }
}

/// `{{"name" {0}}}`, `{({"a"}, {"b"})}`, `{[synthetic_call]}`
pub(crate) fn original_value(c: &mut Cursor<'_>) -> Res<OriginalValue> {
    const CODE: hlo::diag::Code = codes::BAD_ORIGIN;
    c.expect(b'{', CODE)?;
    let value = if c.eat(b'[') {
        if !c.eat_str("synthetic_call") {
            return Err(c.unexpected(CODE, "`synthetic_call`"));
        }
        c.expect(b']', CODE)?;
        OriginalValue::SyntheticCall
    } else {
        OriginalValue::Tree(original_tree(c)?)
    };
    c.expect(b'}', CODE)?;
    Ok(value)
}

fn original_tree(c: &mut Cursor<'_>) -> Res<OriginalTree> {
    const CODE: hlo::diag::Code = codes::BAD_ORIGIN;
    match c.peek() {
        b'(' => {
            c.enter()?;
            let mut elements = Vec::new();
            c.list(b'(', b')', CODE, |c| {
                elements.push(original_tree(c)?);
                Ok(())
            })?;
            c.depth += 1;
            Ok(OriginalTree::Tuple(elements))
        }
        b'{' => {
            c.bump(1);
            let leaf = if matches!(c.peek(), b'"' | b'\'') {
                let name = c.string(CODE)?.into();
                let index = if c.peek() == b'{' { shape_index(c, CODE)? } else { Default::default() };
                Some((name, index))
            } else {
                None
            };
            c.expect(b'}', CODE)?;
            Ok(OriginalTree::Leaf(leaf))
        }
        _ => Err(c.unexpected(CODE, "`{\"name\" {index}}`, or a tree in parentheses")),
    }
}

/// `{visualizing_index=0,name=1.5}`
pub(crate) fn statistics(c: &mut Cursor<'_>) -> Res<Statistics> {
    const CODE: hlo::diag::Code = codes::BAD_STATISTICS;
    let mut statistics = Statistics::default();
    let mut first = true;
    c.list(b'{', b'}', CODE, |c| {
        let (key, span) = c.key(CODE)?;
        if std::mem::take(&mut first) {
            if key != "visualizing_index" {
                return Err(error(
                    CODE,
                    span,
                    format!("statistics that start with `{key}`"),
                    "expected `visualizing_index=`",
                ));
            }
            statistics.visualizing_index = c.int_or(CODE)?;
        } else {
            statistics.values.push((key.into(), c.float()?));
        }
        Ok(())
    })?;
    Ok(statistics)
}
