//! Attributes of Shardy as text, the form in which they travel through the tree.
//!
//! An entry becomes the text that stands after its mnemonic; entries around it put that into theirs.

use std::fmt::Write as _;

use super::super::codes::sdy as code;
use super::super::cursor::Fallible;
use super::super::decode::Decoder;
use super::entries::{Entries, ShardyText, Slot};
use crate::ir::{Attribute, Module};

/// The text of an attribute whose parts are read, as an index into the texts.
pub(super) fn attribute(e: &mut Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<u32> {
    let mut text = String::new();
    let mnemonic = write(e, d, &mut text)?;
    e.take_text(d, text.len() + 64)?;
    e.texts.push(ShardyText { mnemonic, body: text.into() });
    Ok(e.texts.len() as u32 - 1)
}

fn write(e: &Entries<'_, '_>, d: &Decoder<'_>, out: &mut String) -> Fallible<&'static str> {
    Ok(match d.encoding.code {
        c if c == code::MANUAL_AXES.code => {
            out.push('{');
            join(out, d.attrs(0), |out, &a| match e.slot(a) {
                Slot::Attr(id) => match e.module.get_attribute(id) {
                    Attribute::String { text, ty: None } => {
                        quote(out, text.as_bytes());
                        Ok(())
                    }
                    _ => Err(d.error(format!("attribute {a} is no string, as names of axes are"))),
                },
                _ => Err(d.error(format!("attribute {a} is no string, as names of axes are"))),
            })?;
            out.push('}');
            "manual_axes"
        }
        c if c == code::MESH_AXIS.code => {
            quote(out, e.bytes(d.text(0)));
            put(out, format_args!("={}", d.signed(1)));
            "mesh_axis"
        }
        c if c == code::MESH.code => {
            out.push_str("<[");
            parts(e, d, out, d.attrs(0), "mesh_axis")?;
            out.push(']');
            if !d.signed_list(1).is_empty() {
                out.push_str(", device_ids=[");
                numbers(out, d.signed_list(1));
                out.push(']');
            }
            out.push('>');
            "mesh"
        }
        c if c == code::SUB_AXIS.code => {
            put(out, format_args!("({}){}", d.signed(0), d.signed(1)));
            "sub_axis_info"
        }
        c if c == code::AXIS_REF.code => {
            quote(out, e.bytes(d.text(0)));
            if let Some(sub) = d.optional_attr(1) {
                out.push(':');
                part(e, d, out, sub, "sub_axis_info")?;
            }
            "axis_ref"
        }
        c if c == code::DIMENSION_SHARDING.code => {
            out.push('{');
            parts(e, d, out, d.attrs(0), "axis_ref")?;
            if d.number(1) == 0 {
                out.push_str(if d.attrs(0).is_empty() { "?" } else { ", ?" });
            }
            out.push('}');
            if let Some(priority) = d.optional_number(2) {
                put(out, format_args!("p{priority}"));
            }
            "dimension_sharding"
        }
        c if c == code::SHARDING.code
            || c == code::SHARDING_UNREDUCED.code
            || c == code::SHARDING_REDUCED_BY.code =>
        {
            sharding(e, d, out)?;
            "sharding"
        }
        c if c == code::SHARDING_PER_VALUE.code || c == code::SHARDING_PER_VALUE_UNREDUCED.code => {
            out.push_str("<[");
            parts(e, d, out, d.attrs(0), "sharding")?;
            out.push_str("]>");
            "sharding_per_value"
        }
        c if c == code::DIM_MAPPING.code => {
            d.signed_list(0).iter().for_each(|&f| factor(out, f));
            "dim_mapping"
        }
        c if c == code::TENSOR_MAPPING.code => {
            out.push('[');
            parts(e, d, out, d.attrs(0), "dim_mapping")?;
            out.push(']');
            "tensor_mapping"
        }
        c if c == code::OP_SHARDING_RULE.code => {
            rule(e, d, out)?;
            "op_sharding_rule"
        }
        c if c == code::AXIS_REF_LIST.code => {
            out.push('{');
            parts(e, d, out, d.attrs(0), "axis_ref")?;
            out.push('}');
            "axis_ref_list"
        }
        c if c == code::LIST_OF_AXIS_REF_LISTS.code => {
            out.push('[');
            parts(e, d, out, d.attrs(0), "axis_ref_list")?;
            out.push(']');
            "list_of_axis_ref_lists"
        }
        c if c == code::ALL_TO_ALL_PARAM.code => {
            out.push('{');
            parts(e, d, out, d.attrs(0), "axis_ref")?;
            put(out, format_args!("}}: {}->{}", d.signed(1), d.signed(2)));
            "all_to_all_param"
        }
        c if c == code::ALL_TO_ALL_PARAM_LIST.code => {
            out.push('[');
            parts(e, d, out, d.attrs(0), "all_to_all_param")?;
            out.push(']');
            "all_to_all_param_list"
        }
        _ => unreachable!("invariant: all codes of the table are above"),
    })
}

/// `<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced=max{"z"}>`
fn sharding(e: &Entries<'_, '_>, d: &Decoder<'_>, out: &mut String) -> Fallible<()> {
    out.push('<');
    let mesh = d.attr(0);
    match e.slot(mesh) {
        Slot::Shardy(at) if e.texts[at as usize].mnemonic == "mesh" => {
            out.push_str("mesh");
            out.push_str(&e.texts[at as usize].body);
        }
        Slot::Attr(id) => match e.module.get_attribute(id) {
            Attribute::Symbol { root, nested } if nested.is_empty() => symbol(out, &e.module, *root),
            _ => return Err(d.error(format!("attribute {mesh} is no mesh"))),
        },
        _ => return Err(d.error(format!("attribute {mesh} is no mesh"))),
    }
    out.push_str(", [");
    parts(e, d, out, d.attrs(1), "dimension_sharding")?;
    out.push(']');
    if !d.attrs(2).is_empty() {
        out.push_str(", replicated={");
        parts(e, d, out, d.attrs(2), "axis_ref")?;
        out.push('}');
    }
    if d.encoding.code != code::SHARDING.code && !d.attrs(3).is_empty() {
        out.push_str(", unreduced=");
        if d.encoding.code == code::SHARDING_REDUCED_BY.code {
            out.push_str(match d.signed(4) {
                0 => "",
                1 => "max",
                2 => "min",
                other => return Err(d.error(format!("{other} is no reduction"))),
            });
        }
        out.push('{');
        parts(e, d, out, d.attrs(3), "axis_ref")?;
        out.push('}');
    }
    out.push('>');
    Ok(())
}

/// `<([i, j])->([i, jk]) {i=8, j=2, k=2} reduction={j}, custom>`
fn rule(e: &Entries<'_, '_>, d: &Decoder<'_>, out: &mut String) -> Fallible<()> {
    out.push_str("<(");
    parts(e, d, out, d.attrs(1), "tensor_mapping")?;
    out.push_str(")->(");
    parts(e, d, out, d.attrs(2), "tensor_mapping")?;
    out.push(')');
    let sizes = d.signed_list(0);
    if !sizes.is_empty() {
        out.push_str(" {");
        for (at, size) in sizes.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            factor(out, at as i64);
            put(out, format_args!("={size}"));
        }
        out.push('}');
    }
    for (at, name) in
        [(3, "reduction"), (4, "need_replication"), (5, "permutation"), (6, "blocked_propagation")]
    {
        let factors = d.signed_list(at);
        if !factors.is_empty() {
            put(out, format_args!(" {name}={{"));
            join(out, factors, |out, &f| {
                factor(out, f);
                Ok(())
            })?;
            out.push('}');
        }
    }
    out.push_str(if d.number(7) != 0 { ", custom>" } else { ">" });
    Ok(())
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("invariant: a string takes all that is written to it");
}

fn join<T>(
    out: &mut String,
    list: &[T],
    mut each: impl FnMut(&mut String, &T) -> Fallible<()>,
) -> Fallible<()> {
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        each(out, item)?;
    }
    Ok(())
}

fn numbers(out: &mut String, list: &[i64]) {
    for (at, n) in list.iter().enumerate() {
        put(out, format_args!("{}{n}", if at > 0 { ", " } else { "" }));
    }
}

/// Entries of one kind, separated by commas.
fn parts(
    e: &Entries<'_, '_>,
    d: &Decoder<'_>,
    out: &mut String,
    list: &[u32],
    mnemonic: &'static str,
) -> Fallible<()> {
    join(out, list, |out, &a| part(e, d, out, a, mnemonic))
}

fn part(
    e: &Entries<'_, '_>,
    d: &Decoder<'_>,
    out: &mut String,
    index: u32,
    mnemonic: &'static str,
) -> Fallible<()> {
    match e.slot(index) {
        Slot::Shardy(at) if e.texts[at as usize].mnemonic == mnemonic => {
            let body = &e.texts[at as usize].body;
            if out.len().saturating_add(body.len()) > MAX_TEXT_BYTES {
                return Err(d.error(format!("written out, it takes more than {MAX_TEXT_BYTES} bytes")));
            }
            out.push_str(body);
            Ok(())
        }
        _ => Err(d.error(format!("attribute {index} is no {mnemonic} of Shardy"))),
    }
}

/// Bytes of the text of one attribute.
const MAX_TEXT_BYTES: usize = 1 << 24;

/// Factors are the letters from i to z, and then z_1, z_2 and so on.
fn factor(out: &mut String, index: i64) {
    const LETTERS: i64 = (b'z' - b'i') as i64 + 1;
    match index {
        0..LETTERS => out.push((b'i' + index as u8) as char),
        _ => put(out, format_args!("z_{}", index.wrapping_sub(LETTERS - 1))),
    }
}

/// A string in quotes, as MLIR writes it.
fn quote(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &b in bytes {
        match b {
            b'\\' => out.push_str("\\\\"),
            b'"' => out.push_str("\\22"),
            b' '..=b'~' => out.push(b as char),
            _ => put(out, format_args!("\\{b:02X}")),
        }
    }
    out.push('"');
}

/// `@name`, in quotes if it is not a plain one.
fn symbol(out: &mut String, m: &Module, name: crate::ir::NameId) {
    let text = m.text(name);
    out.push('@');
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.' | b'-'));
    match plain {
        true => out.push_str(text),
        false => quote(out, text.as_bytes()),
    }
}
