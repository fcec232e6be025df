//! Shapes and layouts as text.

use super::text::Text;
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
pub(crate) fn write_shape(out: &mut Text<'_>, shape: &Shape, style: ShapeStyle) {
    match shape {
        Shape::Array(a) => write_array_shape(out, a, style),
        Shape::Tuple(elements) => {
            out.byte(b'(');
            out.indexed_list(elements, |out, e| write_shape(out, e, style));
            out.byte(b')');
        }
        Shape::Token => out.str("token[]"),
        Shape::Opaque => out.str("opaque[]"),
        Shape::Buffer(inner) => {
            out.str("b(");
            write_shape(out, inner, style);
            out.byte(b')');
        }
    }
}

/// Appends the shape of an array.
pub(crate) fn write_array_shape(out: &mut Text<'_>, shape: &ArrayShape, style: ShapeStyle) {
    out.str(shape.element_type.name());
    out.byte(b'[');
    for (i, &d) in shape.dims.iter().enumerate() {
        if i > 0 {
            out.byte(b',');
        }
        if d == UNBOUNDED {
            out.byte(b'?');
            continue;
        }
        if shape.is_dynamic_dim(i) {
            out.str("<=");
        }
        out.int(d);
    }
    out.byte(b']');
    if let (ShapeStyle::WithLayout, Some(layout)) = (style, &shape.layout) {
        // XLA leaves out the empty layout of a scalar.
        if !(shape.dims.is_empty() && **layout == Layout::default()) {
            write_layout(out, layout);
        }
    }
}

/// Appends a layout with its braces.
pub(crate) fn write_layout(out: &mut Text<'_>, layout: &Layout) {
    out.byte(b'{');
    out.ints(&layout.minor_to_major);
    let mut colon = false;
    let mut section = |out: &mut Text<'_>| {
        if !std::mem::replace(&mut colon, true) {
            out.byte(b':');
        }
    };
    if !layout.dim_levels.is_empty() {
        section(out);
        out.str("D(");
        for (i, level) in layout.dim_levels.iter().enumerate() {
            if i > 0 {
                out.byte(b',');
            }
            out.byte(match level.kind {
                DimLevelType::Dense => b'D',
                DimLevelType::Compressed => b'C',
                DimLevelType::Singleton => b'S',
                DimLevelType::LooseCompressed => b'H',
            });
            if !level.unique {
                out.byte(b'+');
            }
            if !level.ordered {
                out.byte(b'~');
            }
        }
        out.byte(b')');
    }
    if !layout.tiles.is_empty() {
        section(out);
        out.byte(b'T');
        for tile in &layout.tiles {
            out.byte(b'(');
            for (i, d) in tile.iter().enumerate() {
                if i > 0 {
                    out.byte(b',');
                }
                match d {
                    TileDim::Size(n) => out.int(*n),
                    TileDim::Combine => out.byte(b'*'),
                }
            }
            out.byte(b')');
        }
    }
    if let Some(n) = layout.tail_padding_alignment {
        section(out);
        push_call(out, "L", n);
    }
    for (mark, ty) in [(b'#', layout.index_type), (b'*', layout.pointer_type)] {
        if let Some(ty) = ty {
            section(out);
            out.byte(mark);
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
        out.str("SC(");
        out.int(split.dimension);
        out.byte(b':');
        out.ints(&split.indices);
        out.byte(b')');
    }
    if let Some(shape) = &layout.physical_shape {
        section(out);
        out.str("P(");
        write_shape(out, shape, ShapeStyle::WithLayout);
        out.byte(b')');
    }
    if let Some(n) = layout.dynamic_shape_metadata_prefix_bytes {
        section(out);
        push_call(out, "M", n);
    }
    out.byte(b'}');
}

fn push_type(out: &mut Text<'_>, ty: ElementType) {
    out.byte(b'(');
    out.str(ty.name());
    out.byte(b')');
}

fn push_call(out: &mut Text<'_>, name: &str, n: i64) {
    out.str(name);
    out.byte(b'(');
    out.int(n);
    out.byte(b')');
}
