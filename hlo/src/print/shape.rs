//! Shapes and layouts as text.

use crate::element_type::ElementType;
use crate::layout::{DimLevelType, Layout, TileDim};
use crate::shape::{ArrayShape, Shape, UNBOUNDED};

/// Whether layouts are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShapeStyle {
    /// `f32[2,3]{1,0}`
    WithLayout,
    /// `f32[2,3]`
    WithoutLayout,
}

/// Appends a shape.
pub fn write_shape(out: &mut String, shape: &Shape, style: ShapeStyle) {
    match shape {
        Shape::Array(a) => write_array_shape(out, a, style),
        Shape::Tuple(elements) => {
            out.push('(');
            for (i, e) in elements.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                    if i % 5 == 0 {
                        out.push_str("/*index=");
                        push_int(out, i as i64);
                        out.push_str("*/");
                    }
                }
                write_shape(out, e, style);
            }
            out.push(')');
        }
        Shape::Token => out.push_str("token[]"),
        Shape::Opaque => out.push_str("opaque[]"),
        Shape::Buffer(inner) => {
            out.push_str("b(");
            write_shape(out, inner, style);
            out.push(')');
        }
    }
}

/// Appends the shape of an array.
pub fn write_array_shape(out: &mut String, shape: &ArrayShape, style: ShapeStyle) {
    out.push_str(shape.element_type.name());
    out.push('[');
    for (i, &d) in shape.dims.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if d == UNBOUNDED {
            out.push('?');
            continue;
        }
        if shape.is_dynamic_dim(i) {
            out.push_str("<=");
        }
        push_int(out, d);
    }
    out.push(']');
    if let (ShapeStyle::WithLayout, Some(layout)) = (style, &shape.layout) {
        // XLA leaves out the empty layout of a scalar.
        if !(shape.dims.is_empty() && **layout == Layout::default()) {
            write_layout(out, layout);
        }
    }
}

/// Appends a layout with its braces.
pub fn write_layout(out: &mut String, layout: &Layout) {
    out.push('{');
    push_ints(out, &layout.minor_to_major);
    let mut colon = false;
    let mut section = |out: &mut String| {
        if !std::mem::replace(&mut colon, true) {
            out.push(':');
        }
    };
    if !layout.dim_levels.is_empty() {
        section(out);
        out.push_str("D(");
        for (i, level) in layout.dim_levels.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            out.push(match level.kind {
                DimLevelType::Dense => 'D',
                DimLevelType::Compressed => 'C',
                DimLevelType::Singleton => 'S',
                DimLevelType::LooseCompressed => 'H',
            });
            if !level.unique {
                out.push('+');
            }
            if !level.ordered {
                out.push('~');
            }
        }
        out.push(')');
    }
    if !layout.tiles.is_empty() {
        section(out);
        out.push('T');
        for tile in &layout.tiles {
            out.push('(');
            for (i, d) in tile.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                match d {
                    TileDim::Size(n) => push_int(out, *n),
                    TileDim::Combine => out.push('*'),
                }
            }
            out.push(')');
        }
    }
    if let Some(n) = layout.tail_padding_alignment {
        section(out);
        push_call(out, "L", n);
    }
    for (mark, ty) in [('#', layout.index_type), ('*', layout.pointer_type)] {
        if let Some(ty) = ty {
            section(out);
            out.push(mark);
            push_type(out, ty);
        }
    }
    if let Some(n) = layout.element_size_in_bits {
        section(out);
        push_call(out, "E", n);
    }
    if let Some(n) = layout.memory_space {
        section(out);
        push_call(out, "S", n);
    }
    for split in &layout.split_configs {
        section(out);
        out.push_str("SC(");
        push_int(out, split.dimension);
        out.push(':');
        push_ints(out, &split.indices);
        out.push(')');
    }
    if let Some(shape) = &layout.physical_shape {
        section(out);
        out.push_str("P(");
        write_shape(out, shape, ShapeStyle::WithLayout);
        out.push(')');
    }
    if let Some(n) = layout.dynamic_shape_metadata_prefix_bytes {
        section(out);
        push_call(out, "M", n);
    }
    out.push('}');
}

fn push_type(out: &mut String, ty: ElementType) {
    out.push('(');
    out.push_str(ty.name());
    out.push(')');
}

fn push_call(out: &mut String, name: &str, n: i64) {
    out.push_str(name);
    out.push('(');
    push_int(out, n);
    out.push(')');
}

/// Appends an integer. Digits are made by hand: printing a module is mostly this.
pub fn push_int(out: &mut String, n: i64) {
    let mut digits = [0u8; 20];
    let mut i = digits.len();
    let mut rest = n.unsigned_abs();
    loop {
        i -= 1;
        digits[i] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        out.push('-');
    }
    out.extend(digits[i..].iter().map(|&d| char::from(d)));
}

/// Appends integers, separated by commas.
pub fn push_ints(out: &mut String, ints: &[i64]) {
    for (i, &n) in ints.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        push_int(out, n);
    }
}
