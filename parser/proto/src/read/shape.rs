//! Shapes and layouts.
//!
//! XLA gives every array a layout. Text may leave it out, which means the row-major one; such a layout is
//! written without the alignment of the padding, which XLA always writes, and so is told from one that the
//! text had.

use std::sync::Arc;

use hlo::diag::codes::{parse::*, proto::*};
use hlo::layout::{DimLevel, Layout, SplitConfig, TileDim};
use hlo::shape::MAX_RANK;
use hlo::{ArrayShape, Dims, ElementType, ProgramShape, Shape, UNBOUNDED};

use crate::node::Node;
use crate::schema::shapes::{layout as l, program_shape, shape as s, split_config, tile};
use crate::tables::{COMBINED_DIMENSION, DIM_LEVELS, primitive};
use crate::wire::Res;

/// The element type of a number of `PrimitiveType`.
pub(crate) fn element_type(number: i64) -> Option<ElementType> {
    ElementType::ALL.iter().copied().find(|ty| i64::from(ty.xla_number()) == number)
}

/// A shape.
pub(crate) fn shape(n: Node<'_>) -> Res<Shape> {
    match n.int(s::ELEMENT_TYPE) {
        primitive::TUPLE => Ok(Shape::Tuple(n.children(s::TUPLE_SHAPES, shape)?.into())),
        primitive::OPAQUE => Ok(Shape::Opaque),
        primitive::TOKEN => Ok(Shape::Token),
        primitive::BUFFER => {
            let mut inner = n.children(s::TUPLE_SHAPES, shape)?;
            match (inner.pop(), inner.is_empty()) {
                (Some(shape), true) => Ok(Shape::Buffer(Arc::new(shape))),
                _ => Err(n.error(PROTO_BAD_VALUE, s::TUPLE_SHAPES, "a buffer is of one shape")),
            }
        }
        number => match element_type(number) {
            Some(ty) => Ok(Shape::Array(array_shape(n, ty)?)),
            None if number == primitive::INVALID => Err(n.missing(s::ELEMENT_TYPE)),
            None => Err(n.bad_enumerator(s::ELEMENT_TYPE, number)),
        },
    }
}

fn array_shape(n: Node<'_>, element_type: ElementType) -> Res<ArrayShape> {
    let dims: Dims = n.int_list(s::DIMENSIONS)?.into();
    if dims.len() > MAX_RANK {
        let message = format!("{} dimensions; at most {MAX_RANK} are supported", dims.len());
        return Err(n.error(RANK_TOO_LARGE, s::DIMENSIONS, message));
    }
    if let Some(d) = dims.iter().find(|&&d| d < 0 && d != UNBOUNDED) {
        return Err(n.error(PROTO_BAD_VALUE, s::DIMENSIONS, format_args!("a dimension of size {d}")));
    }
    let flags = n.bools(s::IS_DYNAMIC_DIMENSION)?;
    if !flags.is_empty() && flags.len() != dims.len() {
        let message = format!("{} flags for {} dimensions", flags.len(), dims.len());
        return Err(n.error(PROTO_BAD_VALUE, s::IS_DYNAMIC_DIMENSION, message));
    }
    let unbounded = dims.iter().enumerate().filter(|d| *d.1 == UNBOUNDED).map(|d| d.0);
    let dynamic = flags
        .iter()
        .enumerate()
        .filter(|f| *f.1)
        .map(|f| f.0)
        .chain(unbounded)
        .fold(0, |mask, i| mask | 1u64 << i);
    let layout = n.child(s::LAYOUT, |n| layout(n, dims.len())).transpose()?.flatten();
    Ok(ArrayShape { element_type, dims, dynamic, layout: layout.map(Arc::new) })
}

/// A layout; `None` for one that says what its absence means.
fn layout(n: Node<'_>, rank: usize) -> Res<Option<Layout>> {
    let order = n.int_list(l::MINOR_TO_MAJOR)?;
    if order.len() != rank {
        let message = format!("{} dimensions in the layout of an array of rank {rank}", order.len());
        return Err(n.error(LAYOUT_RANK, l::MINOR_TO_MAJOR, message));
    }
    let alignment = n.int(l::TAIL_PADDING_ALIGNMENT_IN_ELEMENTS);
    let mut layout = Layout {
        minor_to_major: order.into(),
        dim_levels: dim_levels(n, rank)?,
        tiles: n.children(l::TILES, |n| {
            let size = |d| if d == COMBINED_DIMENSION { TileDim::Combine } else { TileDim::Size(d) };
            Ok(n.int_list(tile::DIMENSIONS)?.into_iter().map(size).collect())
        })?,
        tail_padding_alignment: Some(alignment).filter(|&a| a > 1),
        index_type: index_type(n, l::INDEX_PRIMITIVE_TYPE)?,
        pointer_type: index_type(n, l::POINTER_PRIMITIVE_TYPE)?,
        element_size_in_bits: n.nonzero(l::ELEMENT_SIZE_IN_BITS),
        memory_space: n.nonzero(l::MEMORY_SPACE),
        split_configs: n.children(l::SPLIT_CONFIGS, |n| {
            Ok(SplitConfig {
                dimension: n.int(split_config::DIMENSION),
                indices: n.int_list(split_config::SPLIT_INDICES)?,
            })
        })?,
        physical_shape: n.child(l::PHYSICAL_SHAPE, shape).transpose()?.map(Box::new),
        dynamic_shape_metadata_prefix_bytes: n.nonzero(l::DYNAMIC_SHAPE_METADATA_PREFIX_BYTES),
    };
    let order = std::mem::take(&mut layout.minor_to_major);
    let nothing_else = layout == Layout::default();
    layout.minor_to_major = order;
    let absent = nothing_else && layout.is_row_major() && (rank == 0 || alignment == 0);
    Ok((!absent).then_some(layout))
}

fn dim_levels(n: Node<'_>, rank: usize) -> Res<Vec<DimLevel>> {
    let kinds = n.int_list(l::DIM_LEVEL_TYPES)?;
    let (unique, ordered) = (n.bools(l::DIM_UNIQUE)?, n.bools(l::DIM_ORDERED)?);
    for (number, len) in
        [(l::DIM_LEVEL_TYPES, kinds.len()), (l::DIM_UNIQUE, unique.len()), (l::DIM_ORDERED, ordered.len())]
    {
        if len != 0 && len != rank {
            return Err(n.error(
                PROTO_BAD_VALUE,
                number,
                format_args!("{len} entries for {rank} dimensions"),
            ));
        }
    }
    let levels = kinds.iter().enumerate().map(|(i, &kind)| {
        let kind = DIM_LEVELS.iter().find(|k| i64::from(k.0) == kind).map(|k| k.1);
        Ok(DimLevel {
            kind: kind.ok_or_else(|| n.bad_enumerator(l::DIM_LEVEL_TYPES, kinds[i]))?,
            unique: unique.get(i).copied().unwrap_or(true),
            ordered: ordered.get(i).copied().unwrap_or(true),
        })
    });
    let levels = levels.collect::<Res<Vec<_>>>()?;
    // Versions of 2022 wrote these of dense arrays too.
    let dense = levels.iter().all(|l| l.kind == hlo::layout::DimLevelType::Dense && l.unique && l.ordered);
    Ok(if dense { Vec::new() } else { levels })
}

fn index_type(n: Node<'_>, number: u32) -> Res<Option<ElementType>> {
    match n.int(number) {
        primitive::INVALID => Ok(None),
        value => element_type(value).map(Some).ok_or_else(|| n.bad_enumerator(number, value)),
    }
}

/// Shapes of parameters and result.
pub(crate) fn program_shape(n: Node<'_>) -> Res<ProgramShape> {
    Ok(ProgramShape {
        parameters: n.children(program_shape::PARAMETERS, shape)?,
        result: n.required(program_shape::RESULT, shape)?,
    })
}
