//! Shapes and layouts; what an absent layout is written as: see [`crate::read::shape`].

use hlo::layout::{Layout, TileDim};
use hlo::{ArrayShape, ProgramShape, Shape};

use crate::message::Message;
use crate::schema::shapes::{
    LAYOUT, PROGRAM_SHAPE, SHAPE, SPLIT_CONFIG, TILE, layout as l, program_shape, shape as s, split_config,
    tile,
};
use crate::tables::{COMBINED_DIMENSION, DIM_LEVELS, enumerator, primitive};

/// A shape.
pub(crate) fn shape<'m>(of: &Shape) -> Message<'m> {
    let mut m = Message::new(&SHAPE);
    match of {
        Shape::Array(a) => array_shape(a, &mut m),
        Shape::Tuple(parts) => {
            m.int(s::ELEMENT_TYPE, primitive::TUPLE);
            m.messages(s::TUPLE_SHAPES, parts.iter().map(shape).collect());
        }
        Shape::Token => m.int(s::ELEMENT_TYPE, primitive::TOKEN),
        Shape::Opaque => m.int(s::ELEMENT_TYPE, primitive::OPAQUE),
        Shape::Buffer(inner) => {
            m.int(s::ELEMENT_TYPE, primitive::BUFFER);
            m.messages(s::TUPLE_SHAPES, vec![shape(inner)]);
        }
    }
    m
}

fn array_shape(a: &ArrayShape, m: &mut Message<'_>) {
    m.int(s::ELEMENT_TYPE, a.element_type.xla_number().into());
    m.ints(s::DIMENSIONS, a.dims.iter().copied());
    match &a.layout {
        Some(given) => m.message(s::LAYOUT, layout(given)),
        None => {
            let mut default = Message::new(&LAYOUT);
            default.ints(l::MINOR_TO_MAJOR, (0..a.rank() as i64).rev());
            if a.rank() == 0 {
                default.int(l::TAIL_PADDING_ALIGNMENT_IN_ELEMENTS, 1);
            }
            m.message(s::LAYOUT, default);
        }
    }
    m.ints(s::IS_DYNAMIC_DIMENSION, (0..a.rank()).map(|i| i64::from(a.is_dynamic_dim(i))));
}

fn layout<'m>(of: &Layout) -> Message<'m> {
    // Exhaustive, so that a new field is not forgotten here.
    let Layout {
        minor_to_major,
        dim_levels,
        tiles,
        tail_padding_alignment,
        index_type,
        pointer_type,
        element_size_in_bits,
        memory_space,
        split_configs,
        physical_shape,
        dynamic_shape_metadata_prefix_bytes,
    } = of;
    let mut m = Message::new(&LAYOUT);
    m.ints(l::MINOR_TO_MAJOR, minor_to_major.iter().copied());
    let tile = |sizes: &Vec<TileDim>| {
        let mut m = Message::new(&TILE);
        let size = |d: &TileDim| match d {
            TileDim::Size(n) => *n,
            TileDim::Combine => COMBINED_DIMENSION,
        };
        m.ints(tile::DIMENSIONS, sizes.iter().map(size));
        m
    };
    m.messages(l::TILES, tiles.iter().map(tile).collect());
    m.int(l::ELEMENT_SIZE_IN_BITS, element_size_in_bits.unwrap_or(0));
    m.int(l::MEMORY_SPACE, memory_space.unwrap_or(0));
    m.ints(l::DIM_LEVEL_TYPES, dim_levels.iter().map(|d| enumerator(DIM_LEVELS, d.kind).unwrap_or(0)));
    if let Some(shape_in_memory) = physical_shape {
        m.message(l::PHYSICAL_SHAPE, shape(shape_in_memory));
    }
    for (number, ty) in [(l::INDEX_PRIMITIVE_TYPE, index_type), (l::POINTER_PRIMITIVE_TYPE, pointer_type)] {
        m.int(number, ty.map_or(primitive::INVALID, |ty| ty.xla_number().into()));
    }
    // Where all are unique, or ordered, XLA writes no list.
    if dim_levels.iter().any(|d| !d.unique) {
        m.ints(l::DIM_UNIQUE, dim_levels.iter().map(|d| i64::from(d.unique)));
    }
    if dim_levels.iter().any(|d| !d.ordered) {
        m.ints(l::DIM_ORDERED, dim_levels.iter().map(|d| i64::from(d.ordered)));
    }
    m.int(l::DYNAMIC_SHAPE_METADATA_PREFIX_BYTES, dynamic_shape_metadata_prefix_bytes.unwrap_or(0));
    m.int(l::TAIL_PADDING_ALIGNMENT_IN_ELEMENTS, tail_padding_alignment.unwrap_or(1));
    let split = |split: &hlo::layout::SplitConfig| {
        let mut m = Message::new(&SPLIT_CONFIG);
        m.int(split_config::DIMENSION, split.dimension);
        m.ints(split_config::SPLIT_INDICES, split.indices.iter().copied());
        m
    };
    m.messages(l::SPLIT_CONFIGS, split_configs.iter().map(split).collect());
    m
}

/// Shapes of parameters and result, and the parameters' names.
pub(crate) fn program_shape<'m>(of: &ProgramShape, names: Vec<std::borrow::Cow<'m, str>>) -> Message<'m> {
    let mut m = Message::new(&PROGRAM_SHAPE);
    m.messages(program_shape::PARAMETERS, of.parameters.iter().map(shape).collect());
    m.message(program_shape::RESULT, shape(&of.result));
    if !names.is_empty() {
        m.set(program_shape::PARAMETER_NAMES, crate::message::Value::Texts(names));
    }
    m
}
