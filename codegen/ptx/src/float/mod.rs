//! Floating-point numbers of every format of the ISA, exactly: unpacking, arithmetic on exact values, and
//! rounding.
//!
//! Invariant: a [`Number`] is an exact value or one that a sticky bit stands in for below 64 significant
//! bits, so that each result is rounded once, correctly, to every format here. The host's arithmetic is used
//! only where IEEE 754 defines it (`fast` paths of f32 and f64 to nearest).

pub mod approximate;
mod format;
pub mod ops;

pub use format::{Format, Number, Overflow, Special};

/// IEEE half.
pub const F16: Format = Format { exponent: 5, fraction: 10, special: Special::Ieee };
/// bfloat16.
pub const BF16: Format = Format { exponent: 8, fraction: 7, special: Special::Ieee };
/// The significant bits of tf32, which are in the upper 19 bits of 32.
pub const TF32: Format = Format { exponent: 8, fraction: 10, special: Special::Ieee };
/// IEEE single.
pub const F32: Format = Format { exponent: 8, fraction: 23, special: Special::Ieee };
/// IEEE double.
pub const F64: Format = Format { exponent: 11, fraction: 52, special: Special::Ieee };
/// f8 with 4 exponent bits: no infinities, one NaN.
pub const E4M3: Format = Format { exponent: 4, fraction: 3, special: Special::NanOnly };
/// f8 with 5 exponent bits.
pub const E5M2: Format = Format { exponent: 5, fraction: 2, special: Special::Ieee };
/// f6 with 2 exponent bits: finite values only.
pub const E2M3: Format = Format { exponent: 2, fraction: 3, special: Special::Finite };
/// f6 with 3 exponent bits: finite values only.
pub const E3M2: Format = Format { exponent: 3, fraction: 2, special: Special::Finite };
/// f4: finite values only.
pub const E2M1: Format = Format { exponent: 2, fraction: 1, special: Special::Finite };
