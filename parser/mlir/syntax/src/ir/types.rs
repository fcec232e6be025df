//! Types and locations.

use super::Module;
use super::ids::{AttrId, LocId, NameId, TypeId};

/// A dimension whose size is not known, `?` in text.
pub const DYNAMIC: i64 = i64::MIN;

/// Signedness of an integer type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signedness {
    /// `i32`; StableHLO's signed integers, and predicates (`i1`).
    Signless,
    /// `si32`
    Signed,
    /// `ui32`
    Unsigned,
}

macro_rules! float_types {
    ($($(#[$doc:meta])* $variant:ident $text:literal $bits:literal,)*) => {
        /// Builtin float types.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum FloatType { $($(#[$doc])* $variant),* }

        impl FloatType {
            /// All of them.
            pub const ALL: &'static [FloatType] = &[$(FloatType::$variant),*];

            /// The name in text.
            pub const fn text(self) -> &'static str {
                match self { $(FloatType::$variant => $text),* }
            }

            /// Bits of a number.
            pub const fn bits(self) -> u32 {
                match self { $(FloatType::$variant => $bits),* }
            }

            /// The type with this name.
            pub fn from_text(text: &str) -> Option<Self> {
                Some(match text { $($text => FloatType::$variant,)* _ => return None })
            }
        }
    };
}

float_types! {
    /// IEEE half.
    F16 "f16" 16,
    /// Brain float.
    BF16 "bf16" 16,
    /// TensorFloat-32, 19 bits.
    TF32 "tf32" 19,
    /// IEEE single.
    F32 "f32" 32,
    /// IEEE double.
    F64 "f64" 64,
    /// x87 extended.
    F80 "f80" 80,
    /// IEEE quadruple.
    F128 "f128" 128,
    /// 8 bits, 5 of exponent.
    F8E5M2 "f8E5M2" 8,
    /// 8 bits, 4 of exponent, IEEE-like.
    F8E4M3 "f8E4M3" 8,
    /// 8 bits, 4 of exponent, without infinities.
    F8E4M3FN "f8E4M3FN" 8,
    /// 8 bits, 5 of exponent, one zero, without infinities.
    F8E5M2FNUZ "f8E5M2FNUZ" 8,
    /// 8 bits, 4 of exponent, one zero, without infinities.
    F8E4M3FNUZ "f8E4M3FNUZ" 8,
    /// 8 bits, 4 of exponent, bias 11, one zero, without infinities.
    F8E4M3B11FNUZ "f8E4M3B11FNUZ" 8,
    /// 8 bits, 3 of exponent.
    F8E3M4 "f8E3M4" 8,
    /// 4 bits.
    F4E2M1FN "f4E2M1FN" 4,
    /// 6 bits, 2 of exponent.
    F6E2M3FN "f6E2M3FN" 6,
    /// 6 bits, 3 of exponent.
    F6E3M2FN "f6E3M2FN" 6,
    /// A power of two in 8 bits.
    F8E8M0FNU "f8E8M0FNU" 8,
}

/// `!quant.uniform<...>`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QuantizedType {
    /// Whether the storage is signed.
    pub signed: bool,
    /// Bits of the storage.
    pub storage_bits: u32,
    /// The smallest storage value.
    pub storage_min: i64,
    /// The largest storage value.
    pub storage_max: i64,
    /// What it stands for.
    pub expressed: TypeId,
    /// Dimensions that are quantized by slices, with block sizes (0: one parameter for each index, as
    /// `quant.uniform<...:d>` has it for one dimension). Empty: one scale for the whole tensor.
    pub axes: Box<[(i32, i64)]>,
    /// Scales as bits of f64; one, or as many as slices.
    pub scales: Box<[u64]>,
    /// Zero points, as many as scales.
    pub zero_points: Box<[i64]>,
}

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// `none`
    None,
    /// `index`
    Index,
    /// `i32`, `ui8`, `si4`
    Integer {
        /// Bits.
        width: u32,
        /// `i`, `si` or `ui`.
        sign: Signedness,
    },
    /// `f32`
    Float(FloatType),
    /// `complex<f32>`
    Complex(TypeId),
    /// `vector<4xf32>`
    Vector {
        /// Sizes.
        dims: Box<[i64]>,
        /// Which are scalable, `[4]`; empty if none is.
        scalable: Box<[bool]>,
        /// Of what.
        element: TypeId,
    },
    /// `tensor<2x?xf32, encoding>`
    Tensor {
        /// Sizes; [`DYNAMIC`] ones are not known.
        dims: Box<[i64]>,
        /// Of what.
        element: TypeId,
        /// For instance bounds, `#stablehlo.bounds<?, 4>`.
        encoding: Option<AttrId>,
    },
    /// `tensor<*xf32>`
    UnrankedTensor(TypeId),
    /// `tuple<...>`
    Tuple(Box<[TypeId]>),
    /// `(i32) -> f32`
    Function {
        /// Parameters.
        inputs: Box<[TypeId]>,
        /// Results.
        results: Box<[TypeId]>,
    },
    /// `!stablehlo.token`, `!stablehlo.future<...>`, `!mhlo.async_bundle<...>`: a dialect's type over other
    /// types.
    Dialect {
        /// With the dialect, `stablehlo.token`.
        name: NameId,
        /// What stands in angle brackets.
        parameters: Box<[TypeId]>,
    },
    /// `!quant.uniform<...>`
    Quantized(Box<QuantizedType>),
    /// Any other type, with its text after the `!`; `memref<...>` and the like without one.
    Opaque(Box<str>),
}

/// Where in a source program something came from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Location {
    /// `unknown`
    Unknown,
    /// `"file.py":12:8` or `"file.py":12:8 to 13:2`
    File {
        /// The file.
        file: NameId,
        /// First line and column.
        start: (u32, u32),
        /// Last line and column, if given.
        end: Option<(u32, u32)>,
    },
    /// `"name"(child)`
    Name {
        /// The name.
        name: NameId,
        /// Where it is; [`Location::Unknown`] is not written.
        child: LocId,
    },
    /// `callsite(callee at caller)`
    CallSite {
        /// What was called.
        callee: LocId,
        /// From where.
        caller: LocId,
    },
    /// `fused<metadata>[...]`
    Fused {
        /// In angle brackets.
        metadata: Option<AttrId>,
        /// Of what.
        locations: Box<[LocId]>,
    },
}

pub(super) fn depth_of(ty: &Type, m: &Module) -> u32 {
    let deepest = |ids: &[TypeId]| ids.iter().map(|&t| m.type_depth(t)).max().unwrap_or(0);
    1 + match ty {
        Type::None | Type::Index | Type::Integer { .. } | Type::Float(_) | Type::Opaque(_) => 0,
        Type::Complex(t) | Type::Vector { element: t, .. } | Type::UnrankedTensor(t) => m.type_depth(*t),
        Type::Tensor { element, encoding, .. } => {
            m.type_depth(*element).max(encoding.map_or(0, |a| m.attribute_depth(a)))
        }
        Type::Tuple(parts) | Type::Dialect { parameters: parts, .. } => deepest(parts),
        Type::Function { inputs, results } => deepest(inputs).max(deepest(results)),
        Type::Quantized(q) => m.type_depth(q.expressed),
    }
}

pub(super) fn location_depth(location: &Location, m: &Module) -> u32 {
    1 + match location {
        Location::Unknown | Location::File { .. } => 0,
        Location::Name { child, .. } => m.location_depth(*child),
        Location::CallSite { callee, caller } => m.location_depth(*callee).max(m.location_depth(*caller)),
        Location::Fused { metadata, locations } => {
            let deepest = locations.iter().map(|&l| m.location_depth(l)).max().unwrap_or(0);
            deepest.max(metadata.map_or(0, |a| m.attribute_depth(a)))
        }
    }
}
