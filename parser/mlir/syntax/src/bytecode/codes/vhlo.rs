//! Encodings of VHLO, the versioned form of StableHLO.

use super::Field::{
    Attr, Attrs, Blob, Count, CountedAttr, Double, Doubles, Enum, Float, Integer, OptionalAttr, Pairs,
    Signed, SignedList, Text, Type, Types,
};
use super::{Enumeration, encodings};

macro_rules! enumerations {
    ($($name:ident $text:literal from $first:literal [$($case:literal)*],)*) => {
        $(
            #[doc = concat!("`", $text, "`")]
            pub(in crate::bytecode) const $name: &Enumeration =
                &Enumeration { name: $text, first: $first, cases: &[$($case),*] };
        )*
    };
}

enumerations! {
    COMPARISON_DIRECTIONS "comparison_direction" from 0 ["EQ" "NE" "GE" "GT" "LE" "LT"],
    COMPARISON_TYPES "comparison_type" from 0 ["NOTYPE" "FLOAT" "TOTALORDER" "SIGNED" "UNSIGNED"],
    API_VERSIONS "api_version" from 0 ["API_VERSION_UNSPECIFIED" "API_VERSION_ORIGINAL" "API_VERSION_STATUS_RETURNING"
        "API_VERSION_STATUS_RETURNING_UNIFIED" "API_VERSION_TYPED_FFI"],
    FFT_TYPES "fft_type" from 0 ["FFT" "IFFT" "RFFT" "IRFFT"],
    PRECISIONS "precision" from 0 ["DEFAULT" "HIGH" "HIGHEST"],
    RNG_ALGORITHMS "rng_algorithm" from 0 ["DEFAULT" "THREE_FRY" "PHILOX"],
    RNG_DISTRIBUTIONS "rng_distribution" from 1 ["UNIFORM" "NORMAL"],
    TRANSPOSES "transpose" from 0 ["TRANSPOSE_INVALID" "NO_TRANSPOSE" "TRANSPOSE" "ADJOINT"],
    ACCURACY_MODES "result_accuracy_mode" from 0 ["DEFAULT" "HIGHEST" "TOLERANCE"],
}

encodings! {
    /// Attributes.
    ATTRIBUTES:
    ARRAY 1 "array_v1" 0 9 [Attrs],
    BOOL 2 "bool_v1" 0 9 [Count],
    COMPARISON_DIRECTION 3 "comparison_direction_v1" 0 9 [Enum(COMPARISON_DIRECTIONS)],
    COMPARISON_TYPE 4 "comparison_type_v1" 0 9 [Enum(COMPARISON_TYPES)],
    API_VERSION 5 "api_version_v1" 0 9 [Enum(API_VERSIONS)],
    DICTIONARY 6 "dict_v1" 0 9 [Pairs],
    FFT_TYPE 7 "fft_type_v1" 0 9 [Enum(FFT_TYPES)],
    FLOAT 8 "float_v1" 0 9 [Type, Float],
    INTEGER 9 "integer_v1" 0 9 [Type, Integer],
    OUTPUT_OPERAND_ALIAS 10 "output_operand_alias_v1" 0 9 [SignedList, Signed, SignedList],
    PRECISION 11 "precision_v1" 0 9 [Enum(PRECISIONS)],
    RNG_ALGORITHM 12 "rng_algorithm_v1" 0 9 [Enum(RNG_ALGORITHMS)],
    RNG_DISTRIBUTION 13 "rng_distribution_v1" 0 9 [Enum(RNG_DISTRIBUTIONS)],
    STRING 14 "string_v1" 0 9 [Text],
    TENSOR 15 "tensor_v1" 0 9 [Type, Blob],
    TRANSPOSE 16 "transpose_v1" 0 9 [Enum(TRANSPOSES)],
    TYPE 17 "type_v1" 0 9 [Type],
    TYPE_EXTENSIONS 18 "type_extensions_v1" 0 9 [SignedList],
    RESULT_ACCURACY_MODE 19 "result_accuracy_mode_v1" 1 9 [Enum(ACCURACY_MODES)],
    RESULT_ACCURACY 20 "result_accuracy_v1" 1 9 [Double, Double, Signed, Attr],
    SUB_AXIS 21 "sub_axis_info_v1" 1 16 [Signed, Signed],
    AXIS_REF 22 "axis_ref_v1" 1 16 [Attr, CountedAttr],
    REPLICA_GROUP_MESH_AXES 23 "replica_group_mesh_axes_v1" 1 16 [Attr, Attr],
    MESH_AXIS 24 "mesh_axis_v1" 1 16 [Attr, Signed],
    MESH 25 "mesh_v1" 1 16 [Attr, OptionalAttr],
}

encodings! {
    /// Types.
    TYPES:
    BOOL_TYPE 0 "bool_v1" 0 9 [],
    COMPLEX 1 "complex_v1" 0 9 [Type],
    BF16 2 "bf16_v1" 0 9 [],
    F16 3 "f16_v1" 0 9 [],
    F32 4 "f32_v1" 0 9 [],
    F64 5 "f64_v1" 0 9 [],
    F8E4M3FN 6 "f8E4M3FN_v1" 0 9 [],
    F8E5M2 7 "f8E5M2_v1" 0 9 [],
    FUNCTION 8 "func_v1" 0 9 [Types, Types],
    INDEX 9 "index_v1" 0 9 [],
    I4 10 "i4_v1" 0 9 [],
    I8 11 "i8_v1" 0 9 [],
    I16 12 "i16_v1" 0 9 [],
    I32 13 "i32_v1" 0 9 [],
    I64 14 "i64_v1" 0 9 [],
    UI4 15 "ui4_v1" 0 9 [],
    UI8 16 "ui8_v1" 0 9 [],
    UI16 17 "ui16_v1" 0 9 [],
    UI32 18 "ui32_v1" 0 9 [],
    UI64 19 "ui64_v1" 0 9 [],
    TENSOR_TYPE 20 "tensor_v1" 0 9 [SignedList, Type],
    ENCODED_TENSOR 21 "tensor_v1 with an encoding" 0 9 [Attr, SignedList, Type],
    TOKEN 22 "token_v1" 0 9 [],
    TUPLE 23 "tuple_v1" 0 9 [Types],
    QUANTIZED 24 "quant_v1" 0 9 [Count, Type, Type, Double, Signed, Signed, Signed],
    UNRANKED_TENSOR 25 "unranked_tensor_v1" 0 9 [Type],
    WITNESS 26 "witness_v1" 0 9 [],
    F8E4M3FNUZ 27 "f8E4M3FNUZ_v1" 0 10 [],
    F8E5M2FNUZ 28 "f8E5M2FNUZ_v1" 0 10 [],
    F8E4M3B11FNUZ 29 "f8E4M3B11FNUZ_v1" 0 11 [],
    QUANTIZED_PER_AXIS 30 "quant_per_axis_v1" 0 18 [Count, Type, Type, Count, Signed, Signed, Doubles, SignedList],
    I2 31 "i2_v1" 1 2 [],
    UI2 32 "ui2_v1" 1 2 [],
    NONE 33 "none_v1" 1 6 [],
    TF32 34 "tf32_v1" 1 6 [],
    F8E4M3 35 "f8E4M3_v1" 1 7 [],
    F8E3M4 36 "f8E3M4_v1" 1 7 [],
    F4E2M1FN 37 "f4E2M1FN_v1" 1 8 [],
    F6E2M3FN 38 "f6E2M3FN_v1" 1 8 [],
    F6E3M2FN 39 "f6E3M2FN_v1" 1 8 [],
    F8E8M0FNU 40 "f8E8M0FNU_v1" 1 8 [],
    BUFFER 41 "buffer_v1" 1 13 [SignedList, Type],
    FUTURE 42 "future_v1" 1 15 [Types],
}
