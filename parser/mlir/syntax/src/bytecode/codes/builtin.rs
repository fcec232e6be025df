//! Encodings of the builtin dialect.

use super::Field::{
    Attr, Attrs, Blob, Count, Counts, Float, Integer, Pairs, Resource, SignedList, Text, Texts, Type, Types,
};
use super::encodings;

encodings! {
    /// Attributes.
    ATTRIBUTES:
    ARRAY 0 "array" 0 9 [Attrs],
    DICTIONARY 1 "dictionary" 0 9 [Pairs],
    STRING 2 "string" 0 9 [Text],
    TYPED_STRING 3 "string with a type" 0 9 [Text, Type],
    SYMBOL 4 "symbol" 0 9 [Attr],
    NESTED_SYMBOL 5 "nested symbol" 0 9 [Attr, Attrs],
    TYPE 6 "type" 0 9 [Type],
    UNIT 7 "unit" 0 9 [],
    INTEGER 8 "integer" 0 9 [Type, Integer],
    FLOAT 9 "float" 0 9 [Type, Float],
    CALL_SITE 10 "location of a call" 0 9 [Attr, Attr],
    FILE_LINE_COLUMN 11 "location in a file" 0 9 [Attr, Count, Count],
    FUSED 12 "fused location" 0 9 [Attrs],
    FUSED_WITH_METADATA 13 "fused location with metadata" 0 9 [Attrs, Attr],
    NAMED_LOCATION 14 "named location" 0 9 [Attr, Attr],
    UNKNOWN_LOCATION 15 "unknown location" 0 9 [],
    DENSE_RESOURCE 16 "dense_resource" 0 9 [Type, Resource],
    DENSE_ARRAY 17 "dense array" 0 9 [Type, Count, Blob],
    DENSE 18 "dense elements" 0 9 [Type, Blob],
    DENSE_STRINGS 19 "dense elements of strings" 0 9 [Type, Count, Texts],
    SPARSE 20 "sparse elements" 0 9 [Type, Attr, Attr],
    DISTINCT 21 "distinct attribute" 0 9 [Attr],
    FILE_RANGE 22 "range in a file" 1 9 [Attr, Counts],
}

encodings! {
    /// Types.
    TYPES:
    INTEGER_TYPE 0 "integer type" 0 9 [Count],
    INDEX 1 "index" 0 9 [],
    FUNCTION 2 "function type" 0 9 [Types, Types],
    BF16 3 "bf16" 0 9 [],
    F16 4 "f16" 0 9 [],
    F32 5 "f32" 0 9 [],
    F64 6 "f64" 0 9 [],
    F80 7 "f80" 0 9 [],
    F128 8 "f128" 0 9 [],
    COMPLEX 9 "complex" 0 9 [Type],
    MEMREF 10 "memref" 0 9 [SignedList, Type, Attr],
    MEMREF_IN_SPACE 11 "memref with a memory space" 0 9 [Attr, SignedList, Type, Attr],
    NONE 12 "none" 0 9 [],
    TENSOR 13 "tensor" 0 9 [SignedList, Type],
    ENCODED_TENSOR 14 "tensor with an encoding" 0 9 [Attr, SignedList, Type],
    TUPLE 15 "tuple" 0 9 [Types],
    UNRANKED_MEMREF 16 "unranked memref" 0 9 [Type],
    UNRANKED_MEMREF_IN_SPACE 17 "unranked memref with a memory space" 0 9 [Attr, Type],
    UNRANKED_TENSOR 18 "unranked tensor" 0 9 [Type],
    VECTOR 19 "vector" 0 9 [SignedList, Type],
    SCALABLE_VECTOR 20 "vector with scalable dimensions" 0 9 [Counts, SignedList, Type],
}
