//! What is known of each floating-point format.

use hlo::small_float::{FloatFormat, Specials};
use hlo::{ElementType, TypeClass, with_element_type};

use crate::element::Number;

/// `2^k` for any exponent that `f64` has, subnormals included.
#[inline]
pub fn power_of_two(k: i32) -> f64 {
    match k {
        1024.. => f64::INFINITY,
        -1022..1024 => f64::from_bits(((k + 1023) as u64) << 52),
        -1074..-1022 => f64::from_bits(1 << (k + 1074)),
        ..-1074 => 0.0,
    }
}

/// A real floating-point format: that of the type, or of the parts of a complex type.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Significant bits.
    pub precision: i32,
    /// Exponent of the least normal number.
    pub min_exponent: i32,
    /// The greatest number.
    pub max: f64,
    /// What is too large becomes the greatest number.
    pub saturates: bool,
}

impl Format {
    /// `None` of integers and predicates.
    pub fn of(ty: ElementType) -> Option<Format> {
        let part = match ty.class() {
            TypeClass::Float => ty,
            TypeClass::Complex => ty.real_part(),
            TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => return None,
        };
        Some(match part.float_format() {
            None => Format { precision: 53, min_exponent: -1022, max: f64::MAX, saturates: false },
            Some(of) => Format {
                precision: of.precision() as i32,
                // The least exponent field is that of zero, where there is one.
                min_exponent: i32::from(of.has_zero()) - of.bias,
                max: of.decode(of.max_bits()),
                saturates: of.specials == Specials::NumbersOnly,
            },
        })
    }

    /// The distance of neighbouring numbers at a magnitude (of the larger ones, at a power of two).
    #[inline]
    pub fn ulp(self, x: f64) -> f64 {
        if !x.is_finite() {
            return f64::INFINITY;
        }
        let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(self.min_exponent);
        power_of_two(exponent - self.precision + 1)
    }

    /// The unit roundoff, `2^-precision`: the bound on the relative error of a rounding to nearest.
    #[inline]
    pub fn unit_roundoff(self) -> f64 {
        power_of_two(-self.precision)
    }

    /// The least normal number.
    #[inline]
    pub fn min_normal(self) -> f64 {
        power_of_two(self.min_exponent)
    }

    /// Whether there is a zero: f8e8m0fnu has powers of two alone.
    #[inline]
    pub fn has_zero(self) -> bool {
        self.precision > 1
    }

    /// Numbers of a lesser magnitude may be flushed to zero, if denormal numbers are: those of types of a byte
    /// and less where they are denormal in f16, the narrowest type that they are computed in. Those of
    /// f8e8m0fnu are computed with in f32 (or bf16, whose exponents are the same), where the least of them,
    /// 2^-127, is denormal.
    #[inline]
    pub fn flushes_below(self) -> f64 {
        const F16_MIN_NORMAL_EXPONENT: i32 = -14;
        // bf16 has 8 bits.
        let of_a_byte = self.precision < 8;
        match self.has_zero() {
            false => power_of_two(-126),
            true if of_a_byte => self.min_normal().min(power_of_two(F16_MIN_NORMAL_EXPONENT)),
            true => self.min_normal(),
        }
    }

    /// The least number above zero.
    #[inline]
    pub fn min_positive(self) -> f64 {
        self.ulp(0.0)
    }
}

/// Whether what is too large for a type becomes infinite, neither a NaN nor the greatest number.
#[inline]
pub fn has_infinities(ty: ElementType) -> bool {
    let part = ty.real_part();
    part == ElementType::F64 || part.float_format().is_some_and(FloatFormat::has_infinity)
}

/// Each number rounded into a real type.
pub fn rounded(ty: ElementType, numbers: &[f64]) -> Vec<f64> {
    match ty {
        ElementType::F64 => numbers.to_vec(),
        ElementType::F32 => numbers.iter().map(|&x| f64::from(x as f32)).collect(),
        _ => with_element_type!(ty, T => {
            numbers.iter().map(|&x| <T as Number>::from_parts(x, 0.0).parts().0.value()).collect()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_of_the_types() {
        for &ty in ElementType::ALL {
            let Some(format) = Format::of(ty) else { continue };
            let part = ty.real_part();
            // Neighbours of 1, the least number and the greatest are where the format says.
            let near = rounded(part, &[1.0 + 1.5 * format.ulp(1.0), format.min_positive(), format.max, 2.0]);
            assert_eq!(
                near[0],
                if format.precision == 1 { 2.0 } else { 1.0 + 2.0 * format.ulp(1.0) },
                "{ty}"
            );
            assert_eq!(near[1], format.min_positive(), "{ty}");
            assert_eq!(near[2], format.max, "{ty}");
            assert_eq!(
                rounded(part, &[format.min_positive() * 0.25])[0],
                if format.precision == 1 { format.min_positive() } else { 0.0 }
            );
            let beyond = rounded(part, &[format.max + 2.0 * format.ulp(format.max)])[0];
            assert_eq!(beyond.is_finite(), format.saturates && part != ElementType::F64, "{ty}");
        }
        assert_eq!(Format::of(ElementType::F32).map(|f| f.ulp(1.5)), Some(f64::from(f32::EPSILON)));
        assert_eq!(Format::of(ElementType::S32).map(|f| f.precision), None);
        assert_eq!(power_of_two(-1074), f64::from_bits(1));
    }
}
