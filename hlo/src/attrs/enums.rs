//! Attribute values that are one of a few words.

use crate::element_type::{ElementType, TypeClass};

macro_rules! text_enum {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
            #[allow(missing_docs, reason = "the variants are the words of the text format")]
            pub enum $name { $($variant),* }

            impl $name {
                /// All of them.
                pub const ALL: &'static [$name] = &[$($name::$variant),*];

                /// The word in text.
                pub const fn text(self) -> &'static str {
                    match self { $($name::$variant => $text),* }
                }

                /// The value of a word.
                pub fn from_text(text: &str) -> Option<Self> {
                    Some(match text { $($text => $name::$variant,)* _ => return None })
                }
            }
        )*
    };
}

text_enum! {
    /// Comparison direction.
    Direction { Eq = "EQ", Ne = "NE", Ge = "GE", Gt = "GT", Le = "LE", Lt = "LT", }
    /// Comparison type; absent, it follows from the element type.
    CompareType { Float = "FLOAT", TotalOrder = "TOTALORDER", Signed = "SIGNED", Unsigned = "UNSIGNED", }
    /// What kind of kernel a fusion was made for.
    FusionKind { Loop = "kLoop", Input = "kInput", Output = "kOutput", Custom = "kCustom", }
    /// Kind of Fourier transform.
    FftType { Fft = "FFT", Ifft = "IFFT", Rfft = "RFFT", Irfft = "IRFFT", }
    /// What a triangular solve does to its matrix.
    Transpose { No = "NO_TRANSPOSE", Transpose = "TRANSPOSE", Adjoint = "ADJOINT", }
    /// Distribution of `rng`.
    RngDistribution { Uniform = "rng_uniform", Normal = "rng_normal", }
    /// Algorithm of `rng-bit-generator`.
    RngAlgorithm { Default = "rng_default", ThreeFry = "rng_three_fry", Philox = "rng_philox", }
    /// Precision asked of a contraction's operand.
    Precision { Default = "default", High = "high", Highest = "highest", PackedNibble = "packed_nibble", }
    /// Algorithm asked of a contraction.
    DotAlgorithm {
        Unset = "dot_unset",
        AnyF8AnyF8F32 = "dot_any_f8_any_f8_f32",
        AnyF8AnyF8F32FastAccum = "dot_any_f8_any_f8_f32_fast_accum",
        AnyF8AnyF8Any = "dot_any_f8_any_f8_any",
        AnyF8AnyF8AnyFastAccum = "dot_any_f8_any_f8_any_fast_accum",
        F16F16F16 = "dot_f16_f16_f16",
        F16F16F32 = "dot_f16_f16_f32",
        Bf16Bf16Bf16 = "dot_bf16_bf16_bf16",
        Bf16Bf16F32 = "dot_bf16_bf16_f32",
        Bf16Bf16F32X3 = "dot_bf16_bf16_f32_x3",
        Bf16Bf16F32X6 = "dot_bf16_bf16_f32_x6",
        Bf16Bf16F32X9 = "dot_bf16_bf16_f32_x9",
        Tf32Tf32F32 = "dot_tf32_tf32_f32",
        Tf32Tf32F32X3 = "dot_tf32_tf32_f32_x3",
        F32F32F32 = "dot_f32_f32_f32",
        F64F64F64 = "dot_f64_f64_f64",
    }
    /// Padding scheme of a library convolution.
    PaddingType { Invalid = "PADDING_INVALID", Valid = "PADDING_VALID", Same = "PADDING_SAME", }
    /// When a custom call wants to be scheduled.
    Schedule { None = "SCHEDULE_NONE", Latest = "SCHEDULE_LATEST", Earliest = "SCHEDULE_EARLIEST", }
    /// Calling convention of a custom call.
    ApiVersion {
        Unspecified = "API_VERSION_UNSPECIFIED",
        Original = "API_VERSION_ORIGINAL",
        StatusReturning = "API_VERSION_STATUS_RETURNING",
        StatusReturningUnified = "API_VERSION_STATUS_RETURNING_UNIFIED",
        TypedFfi = "API_VERSION_TYPED_FFI",
    }
    /// What a convolution is to a training step.
    ConvKind { Unset = "unset", Fprop = "fprop", Wgrad = "wgrad", Dgrad = "dgrad", }
    /// `mode` of a collective; it changes nothing.
    CollectiveMode {
        CrossReplica = "cross_replica",
        CrossPartition = "cross_partition",
        CrossReplicaAndPartition = "cross_replica_and_partition",
        FlattenedId = "flattened_id",
    }
}

impl CompareType {
    /// The comparison type that an element type has if none is written.
    pub fn of(ty: ElementType) -> CompareType {
        match ty.class() {
            TypeClass::Float | TypeClass::Complex => CompareType::Float,
            TypeClass::Signed => CompareType::Signed,
            TypeClass::Unsigned | TypeClass::Pred => CompareType::Unsigned,
        }
    }
}
