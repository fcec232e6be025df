//! Literals as text, on one line (`xla/literal.cc`).
//!
//! `3`, `{1, 2}`, `{ { 1, 2 }, { 3, 4 } }`, `{ {1}, {2} }`, `( {1}, 2 )`; above rank 3 every brace but the
//! outermost and the innermost is followed by `/*iL=N*/`, the index within the enclosing level `L`.

use super::number::PushElement;
use super::shape::{ShapeStyle, write_array_shape};
use super::text::Text;
use crate::element_type::ElementType;
use crate::layout::Layout;
use crate::literal::{ArrayLiteral, ConstantValue, Literal};
use crate::shape::ArrayShape;

/// An array without elements may still have this many rows; beyond, it is written `{...}`, which says as
/// much.
const MAX_EMPTY_ROWS: i64 = 1 << 16;

/// Whether XLA, told to elide constants of more than `limit` elements, elides this one.
fn is_elided(literal: &Literal, limit: usize) -> bool {
    match literal {
        Literal::Array(a) => a.buffer.len() > limit,
        Literal::Tuple(_) | Literal::Token => true,
    }
}

/// Appends a constant's value; `elide` says above how many elements it is left out.
pub(crate) fn write_constant(out: &mut Text<'_>, value: &ConstantValue, elide: Option<usize>) {
    match value {
        ConstantValue::Given(literal) if !elide.is_some_and(|limit| is_elided(literal, limit)) => {
            write_literal(out, literal);
        }
        ConstantValue::Given(_) | ConstantValue::Elided => out.str("{...}"),
    }
}

/// Appends a literal.
pub(crate) fn write_literal(out: &mut Text<'_>, literal: &Literal) {
    match literal {
        Literal::Array(a) => write_array(out, a),
        Literal::Tuple(elements) => {
            out.str("( ");
            out.join(elements, ", ", write_literal);
            out.str(" )");
        }
        Literal::Token => out.str("token"),
    }
}

/// Appends a literal, every array preceded by its shape (`literal=` of custom calls).
pub(crate) fn write_literal_with_shape(out: &mut Text<'_>, literal: &Literal) {
    match literal {
        Literal::Array(a) => {
            let layout = Layout::row_major(a.dims.len());
            let shape = ArrayShape {
                layout: Some(layout.into()),
                ..ArrayShape::new(a.buffer.element_type(), &a.dims)
            };
            write_array_shape(out, &shape, ShapeStyle::WithLayout);
            out.byte(b' ');
            write_array(out, a);
        }
        Literal::Tuple(elements) => {
            out.str("( ");
            out.join(elements, ", ", write_literal_with_shape);
            out.str(" )");
        }
        Literal::Token => out.str("token"),
    }
}

fn write_array(out: &mut Text<'_>, array: &ArrayLiteral) {
    if array.dims.is_empty()
        && let crate::literal::Buffer::Pred(v) = &*array.buffer
    {
        out.bool(v.first().copied().unwrap_or(false));
        return;
    }
    if array.buffer.is_empty() {
        let rows = array.dims.iter().take_while(|&&d| d > 0).try_fold(1i64, |n, &d| n.checked_mul(d));
        if rows.is_none_or(|rows| rows > MAX_EMPTY_ROWS) {
            out.str("{...}");
            return;
        }
    }
    out.reserve(array.buffer.len() * typical_width(array.buffer.element_type()));
    crate::with_buffer!(&*array.buffer, v => write_elements(out, &array.dims, v));
}

/// Characters that an element takes, separator included, on average: a guess.
fn typical_width(ty: ElementType) -> usize {
    match ty.bits() {
        0..=8 => 4,
        9..=32 => 8,
        _ => 16,
    }
}

/// The elements in row-major order between braces. Depth is the rank; nothing recurses.
fn write_elements<T: PushElement>(out: &mut Text<'_>, dims: &[i64], elements: &[T]) {
    let Some((&row, outer)) = dims.split_last() else {
        // A scalar.
        elements.iter().for_each(|e| e.push(out));
        return;
    };
    let row_length = usize::try_from(row).unwrap_or(0);
    if outer.is_empty() {
        out.byte(b'{');
        write_row(out, elements);
        out.byte(b'}');
        return;
    }
    let (open, close) = if row_length > 1 { ("{ ", " }") } else { ("{", "}") };
    let comments = dims.len() > 3;
    // Index of the current row; the levels `0..depth` of braces are open.
    let mut index = vec![0i64; outer.len()];
    let mut depth = 0;
    let mut rest = elements;
    loop {
        // Open braces down to the row, unless a level on the way has no elements.
        let mut empty = false;
        while depth < outer.len() {
            if comments && depth > 0 {
                out.str("{ /*i");
                out.uint(depth as u64 - 1);
                out.byte(b'=');
                out.int(index[depth - 1]);
                out.str("*/");
                if outer[depth] > 0 {
                    out.byte(b' ');
                }
            } else {
                out.str("{ ");
            }
            depth += 1;
            if outer[depth - 1] <= 0 {
                empty = true;
                break;
            }
        }
        if !empty {
            let (this, after) = rest.split_at(row_length.min(rest.len()));
            rest = after;
            out.str(open);
            write_row(out, this);
            out.str(close);
        }
        // On to the next row: close every level that is complete.
        loop {
            if depth == 0 {
                return;
            }
            let level = depth - 1;
            index[level] += 1;
            if index[level] < outer[level] {
                out.str(", ");
                break;
            }
            index[level] = 0;
            out.str(" }");
            depth -= 1;
        }
        out.checkpoint();
    }
}

fn write_row<T: PushElement>(out: &mut Text<'_>, row: &[T]) {
    let mut elements = row.iter();
    if let Some(first) = elements.next() {
        first.push(out);
    }
    for chunk in elements.as_slice().chunks(4096) {
        for e in chunk {
            out.str(", ");
            e.push(out);
        }
        out.checkpoint();
    }
}
