//! Shapes, layouts and literals.

use super::Type::*;
use super::{enums, messages};

enums! {
    DIM_LEVEL_TYPE "DimLevelType" { DIM_DENSE = 0, DIM_COMPRESSED = 1, DIM_SINGLETON = 2, DIM_LOOSE_COMPRESSED = 3, }
    PRIMITIVE_TYPE "PrimitiveType" { PRIMITIVE_TYPE_INVALID = 0, PRED = 1, S1 = 30, S2 = 26, S4 = 21, S8 = 2, S16 = 3, S32 = 4, S64 = 5, U1 = 31, U2 = 27, U4 = 22, U8 = 6, U16 = 7, U32 = 8, U64 = 9, F16 = 10, F32 = 11, BF16 = 16, F64 = 12, F8E5M2 = 19, F8E4M3 = 28, F8E4M3FN = 20, F8E4M3B11FNUZ = 23, F8E3M4 = 29, F8E5M2FNUZ = 24, F8E4M3FNUZ = 25, F4E2M1FN = 32, F8E8M0FNU = 33, F6E3M2FN = 35, F6E2M3FN = 36, C64 = 15, C128 = 18, TUPLE = 13, OPAQUE_TYPE = 14, TOKEN = 17, BUFFER = 34, }
}

messages! {
    SHAPE shape "ShapeProto" {
        element_type ELEMENT_TYPE = 2: one Enum(&PRIMITIVE_TYPE);
        dimensions DIMENSIONS = 3: many Int64;
        tuple_shapes TUPLE_SHAPES = 4: many Message(&SHAPE);
        layout LAYOUT = 5: one Message(&LAYOUT);
        is_dynamic_dimension IS_DYNAMIC_DIMENSION = 6: many Bool;
    }
    LAYOUT layout "LayoutProto" {
        minor_to_major MINOR_TO_MAJOR = 1: many Int64;
        tiles TILES = 6: many Message(&TILE);
        element_size_in_bits ELEMENT_SIZE_IN_BITS = 7: one Int64;
        memory_space MEMORY_SPACE = 8: one Int64;
        dim_level_types DIM_LEVEL_TYPES = 9: many Enum(&DIM_LEVEL_TYPE);
        physical_shape PHYSICAL_SHAPE = 10: one Message(&SHAPE);
        index_primitive_type INDEX_PRIMITIVE_TYPE = 11: one Enum(&PRIMITIVE_TYPE);
        pointer_primitive_type POINTER_PRIMITIVE_TYPE = 12: one Enum(&PRIMITIVE_TYPE);
        dim_unique DIM_UNIQUE = 13: many Bool;
        dim_ordered DIM_ORDERED = 14: many Bool;
        dynamic_shape_metadata_prefix_bytes DYNAMIC_SHAPE_METADATA_PREFIX_BYTES = 15: one Int64;
        tail_padding_alignment_in_elements TAIL_PADDING_ALIGNMENT_IN_ELEMENTS = 16: one Int64;
        split_configs SPLIT_CONFIGS = 17: many Message(&SPLIT_CONFIG);
    }
    TILE tile "TileProto" {
        dimensions DIMENSIONS = 1: many Int64;
    }
    SPLIT_CONFIG split_config "SplitConfigProto" {
        dimension DIMENSION = 1: one Int64;
        split_indices SPLIT_INDICES = 2: many Int64;
    }
    LITERAL literal "LiteralProto" {
        shape SHAPE = 1: one Message(&SHAPE);
        preds PREDS = 2: many Bool;
        u8s U8S = 3: one Bytes;
        s32s S32S = 4: many Int32;
        s64s S64S = 5: many Int64;
        u32s U32S = 6: many Uint32;
        u64s U64S = 7: many Uint64;
        f32s F32S = 8: many Float;
        f64s F64S = 9: many Double;
        tuple_literals TUPLE_LITERALS = 10: many Message(&LITERAL);
        f16s F16S = 11: one Bytes;
        c64s C64S = 12: many Float;
        bf16s BF16S = 13: one Bytes;
        sparse_indices SPARSE_INDICES = 14: many Int64;
        s8s S8S = 15: one Bytes;
        u16s U16S = 16: one Bytes;
        s16s S16S = 17: one Bytes;
        c128s C128S = 18: many Double;
        f8e5m2s F8E5M2S = 19: one Bytes;
        f8e4m3fns F8E4M3FNS = 20: one Bytes;
        s4s S4S = 21: one Bytes;
        u4s U4S = 22: one Bytes;
        f8e4m3b11fnuzs F8E4M3B11FNUZS = 23: one Bytes;
        f8e5m2fnuzs F8E5M2FNUZS = 24: one Bytes;
        f8e4m3fnuzs F8E4M3FNUZS = 25: one Bytes;
        s2s S2S = 26: one Bytes;
        u2s U2S = 27: one Bytes;
        f8e4m3s F8E4M3S = 28: one Bytes;
        f8e3m4s F8E3M4S = 29: one Bytes;
        s1s S1S = 30: one Bytes;
        u1s U1S = 31: one Bytes;
        f4e2m1fns F4E2M1FNS = 32: one Bytes;
        f8e8m0fnus F8E8M0FNUS = 33: one Bytes;
        dynamic_sizes DYNAMIC_SIZES = 34: many Int32;
        f6e3m2fns F6E3M2FNS = 35: one Bytes;
        f6e2m3fns F6E2M3FNS = 36: one Bytes;
    }
    PROGRAM_SHAPE program_shape "ProgramShapeProto" {
        parameters PARAMETERS = 1: many Message(&SHAPE);
        result RESULT = 2: one Message(&SHAPE);
        parameter_names PARAMETER_NAMES = 3: many String;
    }
}
