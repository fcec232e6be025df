//! Approximate instructions: the correctly rounded value, and the error that the ISA states as data.
//!
//! Hardware may return other bits: within [`Error`] of the value here. Whoever compares results asks
//! [`error_of`].

use crate::ir::{Float1, FloatType};

/// The error that the ISA states for an approximate instruction, or, where it states none or less than the
/// hardware has, the largest one measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Error {
    /// A maximum in units in the last place of the result.
    Ulp(f64),
    /// |result - value| / |value| is at most this.
    Relative(f64),
    /// |result - value| is at most this.
    Absolute(f64),
    /// Absolute for operands in the range, relative elsewhere: `(low, high, absolute, relative)`.
    AbsoluteWithin(f64, f64, f64, f64),
    /// Relative; of subnormal results, which are cut off, units in the last place: `(relative, ulp)`.
    RelativeOrUlp(f64, f64),
    /// The ISA states none.
    Unstated,
}

/// A row of [`ERRORS`].
pub struct Row {
    /// The instruction with its modifiers.
    pub instruction: &'static str,
    /// The stated error over the range.
    pub error: Error,
    /// The range of operands for which it is stated.
    pub range: &'static str,
    /// Where the error is from.
    pub source: Source,
}

/// Who says what an error is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The ISA.
    Isa,
    /// Measured on an H100 (sm_90, driver 580): the ISA states none, or a smaller one.
    H100,
}

/// The stated error of each approximate instruction. A trailing `.ftz` has no effect on the stated error.
pub const ERRORS: &[Row] = &[
    Row {
        instruction: "div.approx.f32",
        error: Error::Ulp(2.0),
        range: "|b| in [2^-126, 2^126]; above 0, or NaN of inf/b",
        source: Source::Isa,
    },
    Row { instruction: "div.full.f32", error: Error::Ulp(2.0), range: "all", source: Source::Isa },
    Row { instruction: "rcp.approx.f32", error: Error::Ulp(1.0), range: "all", source: Source::Isa },
    Row {
        instruction: "rcp.approx.ftz.f64",
        error: Error::Unstated,
        range: "a rough approximation of the upper 32 bits",
        source: Source::Isa,
    },
    Row {
        instruction: "sqrt.approx.f32",
        error: Error::Relative(1.192_092_895_507_812_5e-7),
        range: "x > 0 (2^-23)",
        source: Source::Isa,
    },
    Row {
        instruction: "rsqrt.approx.f32",
        error: Error::Relative(1.277_653_6e-7),
        range: "x > 0 (2^-22.9)",
        source: Source::Isa,
    },
    Row { instruction: "rsqrt.approx.f64", error: Error::Ulp(1.0), range: "all", source: Source::H100 },
    Row {
        instruction: "rsqrt.approx.ftz.f64",
        // 4.49e9 units in the last place.
        error: Error::Relative(1.022_0e-6),
        range: "the upper 32 bits (2^-19.9)",
        source: Source::H100,
    },
    Row {
        instruction: "sin.approx.f32",
        error: Error::Absolute(6.743_495_8e-7),
        range: "|x| <= 2 pi (2^-20.5); 2^-14.7 up to 100 pi",
        source: Source::Isa,
    },
    Row {
        instruction: "cos.approx.f32",
        error: Error::Absolute(6.743_495_8e-7),
        range: "|x| <= 2 pi (2^-20.5); 2^-14.7 up to 100 pi",
        source: Source::Isa,
    },
    Row {
        instruction: "lg2.approx.f32",
        error: Error::AbsoluteWithin(0.5, 2.0, 2.384_185_791_015_625e-7, 2.384_185_791_015_625e-7),
        range: "x > 0 (2^-22)",
        source: Source::Isa,
    },
    Row { instruction: "ex2.approx.f32", error: Error::Ulp(2.0), range: "all", source: Source::Isa },
    Row {
        instruction: "ex2.approx.f16",
        error: Error::RelativeOrUlp(0.001_046_653_8, 1.0),
        range: "normal results (2^-9.9); subnormal ones are cut off",
        source: Source::H100,
    },
    Row {
        instruction: "ex2.approx.bf16",
        error: Error::Relative(0.007_812_5),
        range: "all (2^-7)",
        source: Source::Isa,
    },
    Row {
        instruction: "tanh.approx.f32",
        error: Error::Relative(0.000_488_281_25),
        range: "all (2^-11)",
        source: Source::Isa,
    },
    Row {
        instruction: "tanh.approx.f16",
        error: Error::Absolute(0.000_492_701),
        range: "all (2^-10.987)",
        source: Source::Isa,
    },
    Row {
        instruction: "tanh.approx.bf16",
        error: Error::Absolute(0.003_907),
        range: "all (2^-7.9997; the ISA: 2^-8)",
        source: Source::H100,
    },
];

/// The stated error of an instruction, by its opcode with modifiers: `ex2.approx.ftz.f32`. `None`: it is not
/// approximate.
#[must_use]
pub fn error_of(instruction: &str) -> Option<Error> {
    let find = |name: &str| ERRORS.iter().find(|r| r.instruction == name).map(|r| r.error);
    let packed = instruction.replace("f16x2", "f16").replace("bf16x2", "bf16");
    find(&packed).or_else(|| find(&packed.replace(".ftz", "")))
}

/// The value of an approximate function of one operand, correctly rounded to the format. Bits in, bits out;
/// subnormals are the caller's.
pub(crate) fn evaluate(op: Float1, ty: FloatType, bits: u64) -> u64 {
    use super::{BF16, F16, F64, Overflow};
    use crate::ir::Round;
    match ty {
        FloatType::F32 => u64::from(canonical(single(op, f32::from_bits(bits as u32))).to_bits()),
        FloatType::F64 => double(op, bits),
        FloatType::F16 | FloatType::Bf16 => {
            let format = if ty == FloatType::F16 { F16 } else { BF16 };
            let x = f64::from_bits(F64.round(format.unpack(bits), Round::Nearest, Overflow::Ieee));
            // f64 has more than twice the bits of these formats, and no value of these functions lies near
            // enough to a midpoint of theirs for the first rounding to decide, but exact ones, which f64
            // holds.
            let y = match op {
                Float1::Ex2 => core_math::exp2(x),
                Float1::Tanh => core_math::tanh(x),
                _ => f64::NAN,
            };
            // Measured on an H100: `ex2.approx.f16` cuts subnormal results off.
            let is_cut = op == Float1::Ex2 && ty == FloatType::F16 && y < LEAST_NORMAL_F16;
            let round = if is_cut { Round::Zero } else { Round::Nearest };
            format.round(F64.unpack(y.to_bits()), round, Overflow::Ieee)
        }
    }
}

/// 2^-14.
const LEAST_NORMAL_F16: f64 = 6.103_515_625e-5;

/// The canonical NaN of f32 arithmetic.
pub(crate) fn canonical(x: f32) -> f32 {
    if x.is_nan() { f32::from_bits(0x7FFF_FFFF) } else { x }
}

fn single(op: Float1, x: f32) -> f32 {
    match op {
        Float1::Neg => -x,
        Float1::Abs => x.abs(),
        Float1::Rcp | Float1::RcpApprox | Float1::RcpApproxFtz64 => 1.0 / x,
        Float1::Sqrt | Float1::SqrtApprox => x.sqrt(),
        // The ISA: of -0 minus infinity; of negative numbers NaN.
        Float1::RsqrtApprox | Float1::RsqrtApproxFtz64 if x == 0.0 => f32::INFINITY.copysign(x),
        Float1::RsqrtApprox | Float1::RsqrtApproxFtz64 => core_math::rsqrtf(x),
        Float1::Sin => core_math::sinf(x),
        Float1::Cos => core_math::cosf(x),
        Float1::Lg2 => core_math::log2f(x),
        Float1::Ex2 => core_math::exp2f(x),
        Float1::Tanh => core_math::tanhf(x),
    }
}

fn double(op: Float1, bits: u64) -> u64 {
    const UPPER: u64 = 0xFFFF_FFFF_0000_0000;
    // NaNs: measured on an H100.
    const INVALID: u64 = 0xFFF8_0000_0000_0000;
    const UPPER_NAN: u64 = 0x7FFF_FFFF_0000_0000;
    let x = f64::from_bits(bits);
    // Only the upper halves of operand and result take part.
    let upper = f64::from_bits(bits & UPPER);
    let upper_of = |y: f64| if y.is_nan() { UPPER_NAN } else { y.to_bits() & UPPER };
    match op {
        Float1::RsqrtApprox if x == 0.0 => f64::INFINITY.copysign(x).to_bits(),
        Float1::RsqrtApprox if x.is_nan() => super::ops::quiet_f64(bits),
        Float1::RsqrtApprox if x < 0.0 => INVALID,
        Float1::RsqrtApprox => core_math::rsqrt(x).to_bits(),
        Float1::RsqrtApproxFtz64 if upper == 0.0 => f64::INFINITY.copysign(upper).to_bits(),
        Float1::RsqrtApproxFtz64 => upper_of(core_math::rsqrt(upper)),
        Float1::RcpApproxFtz64 => upper_of(1.0 / upper),
        Float1::Rcp | Float1::RcpApprox => (1.0 / x).to_bits(),
        Float1::Sqrt | Float1::SqrtApprox => x.sqrt().to_bits(),
        Float1::Neg => (-x).to_bits(),
        Float1::Abs => x.abs().to_bits(),
        Float1::Sin => core_math::sin(x).to_bits(),
        Float1::Cos => core_math::cos(x).to_bits(),
        Float1::Lg2 => core_math::log2(x).to_bits(),
        Float1::Ex2 => core_math::exp2(x).to_bits(),
        Float1::Tanh => core_math::tanh(x).to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_by_name() {
        assert_eq!(error_of("ex2.approx.ftz.f32"), Some(Error::Ulp(2.0)));
        assert_eq!(error_of("tanh.approx.bf16x2"), error_of("tanh.approx.bf16"));
        assert_eq!(error_of("add.rn.f32"), None);
    }

    #[test]
    fn special_values_by_the_isa() {
        let f = |op, x: f32| f32::from_bits(evaluate(op, FloatType::F32, u64::from(x.to_bits())) as u32);
        assert_eq!(f(Float1::Ex2, f32::NEG_INFINITY), 0.0);
        assert_eq!(f(Float1::Lg2, 0.0), f32::NEG_INFINITY);
        assert_eq!(f(Float1::RsqrtApprox, -0.0), f32::NEG_INFINITY);
        assert_eq!(f(Float1::RsqrtApprox, f32::INFINITY), 0.0);
        assert_eq!(f(Float1::RsqrtApprox, -1.0).to_bits(), 0x7FFF_FFFF);
        assert_eq!(f(Float1::Tanh, f32::INFINITY), 1.0);
        // exp2(0.5), rsqrt(2), sin(1), tanh(0.5), to nearest (arbitrary precision).
        assert_eq!(f(Float1::Ex2, 0.5).to_bits(), 0x3FB5_04F3);
        assert_eq!(f(Float1::RsqrtApprox, 2.0).to_bits(), 0x3F35_04F3);
        assert_eq!(f(Float1::Sin, 1.0).to_bits(), 0x3F57_6AA4);
        assert_eq!(f(Float1::Tanh, 0.5).to_bits(), 0x3EEC_9A9F);
    }
}
