//! Which enumerator each word of the text is.

use hlo::attrs::{
    ApiVersion, ConvKind, DotAlgorithm, FftType, PaddingType, Precision, RngAlgorithm, RngDistribution,
    Schedule, SubgroupType, Transpose,
};
use hlo::layout::DimLevelType;

/// Enumerators and what they mean. A word that is in none has no enumerator.
pub(crate) type Choices<T> = [(i32, T)];

/// The enumerator of a value.
pub(crate) fn enumerator<T: Copy + PartialEq>(choices: &Choices<T>, value: T) -> Option<i64> {
    choices.iter().find(|c| c.1 == value).map(|c| i64::from(c.0))
}

pub(crate) const FFT_TYPES: &Choices<FftType> =
    &[(0, FftType::Fft), (1, FftType::Ifft), (2, FftType::Rfft), (3, FftType::Irfft)];
pub(crate) const TRANSPOSES: &Choices<Transpose> =
    &[(1, Transpose::No), (2, Transpose::Transpose), (3, Transpose::Adjoint)];
pub(crate) const DISTRIBUTIONS: &Choices<RngDistribution> =
    &[(1, RngDistribution::Uniform), (2, RngDistribution::Normal)];
pub(crate) const RNG_ALGORITHMS: &Choices<RngAlgorithm> =
    &[(0, RngAlgorithm::Default), (1, RngAlgorithm::ThreeFry), (2, RngAlgorithm::Philox)];
pub(crate) const PRECISIONS: &Choices<Precision> =
    &[(0, Precision::Default), (1, Precision::High), (2, Precision::Highest), (3, Precision::PackedNibble)];
pub(crate) const DOT_ALGORITHMS: &Choices<DotAlgorithm> = &[
    (0, DotAlgorithm::Unset),
    (1, DotAlgorithm::AnyF8AnyF8F32),
    (2, DotAlgorithm::AnyF8AnyF8F32FastAccum),
    (3, DotAlgorithm::F16F16F16),
    (4, DotAlgorithm::F16F16F32),
    (5, DotAlgorithm::Bf16Bf16Bf16),
    (6, DotAlgorithm::Bf16Bf16F32),
    (7, DotAlgorithm::Bf16Bf16F32X3),
    (8, DotAlgorithm::Bf16Bf16F32X6),
    (9, DotAlgorithm::Tf32Tf32F32),
    (10, DotAlgorithm::Tf32Tf32F32X3),
    (11, DotAlgorithm::F32F32F32),
    (12, DotAlgorithm::F64F64F64),
    (13, DotAlgorithm::Bf16Bf16F32X9),
];
pub(crate) const PADDING_TYPES: &Choices<PaddingType> =
    &[(0, PaddingType::Invalid), (1, PaddingType::Valid), (2, PaddingType::Same)];
pub(crate) const SCHEDULES: &Choices<Schedule> =
    &[(0, Schedule::None), (1, Schedule::Latest), (2, Schedule::Earliest)];
pub(crate) const API_VERSIONS: &Choices<ApiVersion> = &[
    (0, ApiVersion::Unspecified),
    (1, ApiVersion::Original),
    (2, ApiVersion::StatusReturning),
    (3, ApiVersion::StatusReturningUnified),
    (4, ApiVersion::TypedFfi),
];
pub(crate) const CONV_KINDS: &Choices<ConvKind> =
    &[(0, ConvKind::Unset), (1, ConvKind::Fprop), (2, ConvKind::Dgrad), (3, ConvKind::Wgrad)];
pub(crate) const DIM_LEVELS: &Choices<DimLevelType> = &[
    (0, DimLevelType::Dense),
    (1, DimLevelType::Compressed),
    (2, DimLevelType::Singleton),
    (3, DimLevelType::LooseCompressed),
];
pub(crate) const SUBGROUPS: &Choices<SubgroupType> = &[
    (0, SubgroupType::Replicated),
    (1, SubgroupType::Maximal),
    (4, SubgroupType::Manual),
    (6, SubgroupType::Unreduced),
];

/// `OpSharding.Type`
pub(crate) mod sharding_type {
    pub(crate) const REPLICATED: i64 = 0;
    pub(crate) const MAXIMAL: i64 = 1;
    pub(crate) const TUPLE: i64 = 2;
    pub(crate) const OTHER: i64 = 3;
    pub(crate) const MANUAL: i64 = 4;
    pub(crate) const UNKNOWN: i64 = 5;
    pub(crate) const UNREDUCED: i64 = 6;
}

/// `PrimitiveType` of what is no array.
pub(crate) mod primitive {
    pub(crate) const INVALID: i64 = 0;
    pub(crate) const TUPLE: i64 = 13;
    pub(crate) const OPAQUE: i64 = 14;
    pub(crate) const TOKEN: i64 = 17;
    pub(crate) const BUFFER: i64 = 34;
}

/// `TriState`
pub(crate) mod tri_state {
    pub(crate) const TRUE: i64 = 1;
    pub(crate) const FALSE: i64 = 2;
}

/// `Kind` of an alias.
pub(crate) mod alias_kind {
    pub(crate) const UNDEFINED: i64 = 0;
    pub(crate) const MAY: i64 = 1;
    pub(crate) const MUST: i64 = 2;
}

/// The dimension of a tile that is combined with the next more minor one.
pub(crate) const COMBINED_DIMENSION: i64 = i64::MIN;

/// Instructions are numbered in their computation; the number of the computation stands above these bits.
pub(crate) const LOCAL_ID_BITS: u32 = 32;
