//! Kinds of generated inputs: gentle ones, and extreme ones, on which overflow, underflow, infinities and
//! NaNs show.
//!
//! **Invariant:** an element depends only on the kind, its type, the random bits of its index, and whether
//! the program asks for numbers that are not negative. `docs/inputs.md` says the same in prose.

use std::fmt;

use hlo::ElementType;
use hlo::elided::splitmix64;
use serde::{Deserialize, Serialize};

use super::fill::int;
use hlo_execution::element::{Number, int_limits};
use hlo_execution::format::Format;

/// The distribution of generated inputs where the program leaves it open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// Numbers on which a program computes something ordinary
    #[default]
    Gentle,
    /// Finite floats up to the largest number, and integers of any bits
    Large,
    /// Denormal floats
    Tiny,
    /// Infinities, NaNs, zeros of both signs, and the ends of each range
    Special,
    /// Each element of one of these kinds
    Extreme,
}

impl InputKind {
    /// The kinds that are tried where gentle inputs show nothing.
    pub const AFTER_GENTLE: [InputKind; 3] = [InputKind::Large, InputKind::Special, InputKind::Extreme];

    /// The kind of the inputs of a hunted program, from random bits: three quarters are gentle.
    pub fn hunted(r: u64) -> InputKind {
        if r & 3 == 0 { InputKind::not_gentle(r >> 2) } else { InputKind::Gentle }
    }

    /// One of the others than gentle, from random bits.
    pub fn not_gentle(r: u64) -> InputKind {
        [InputKind::Large, InputKind::Tiny, InputKind::Special, InputKind::Extreme][(r & 3) as usize]
    }
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputKind::Gentle => "gentle",
            InputKind::Large => "large",
            InputKind::Tiny => "tiny",
            InputKind::Special => "special",
            InputKind::Extreme => "extreme",
        })
    }
}

/// An element of an extreme kind from the bits `r`; `None` where it is a gentle one. `nonnegative`: of the
/// large and tiny floats only those without a sign.
pub(super) fn element<T: Number>(kind: InputKind, nonnegative: bool, r: u64) -> Option<T> {
    let (kind, r) = match kind {
        InputKind::Extreme => {
            let kinds = [InputKind::Gentle, InputKind::Large, InputKind::Tiny, InputKind::Special];
            (kinds[(r & 3) as usize], splitmix64(r ^ 0xe7))
        }
        InputKind::Gentle | InputKind::Large | InputKind::Tiny | InputKind::Special => (kind, r),
    };
    if T::TYPE.is_float() || T::TYPE.is_complex() {
        let positive = nonnegative || T::TYPE == ElementType::F8E8M0FNU;
        let part = |r: u64| float(kind, T::TYPE.real_part(), positive, r);
        return Some(T::from_parts(part(r)?, part(splitmix64(r))?));
    }
    let (minimum, maximum) = int_limits(T::TYPE).unwrap_or((0, 1));
    match kind {
        InputKind::Large => Some(T::from_bits(u128::from(r))),
        InputKind::Special => {
            let ends = [0, 1, -1, minimum, maximum, minimum + 1, maximum - 1];
            Some(T::from_i128(ends[(r >> 32) as usize % ends.len()].clamp(minimum, maximum)))
        }
        InputKind::Gentle | InputKind::Tiny | InputKind::Extreme => None,
    }
}

/// A float of a real type, which [`Number::from_parts`] rounds.
fn float(kind: InputKind, ty: ElementType, positive: bool, r: u64) -> Option<f64> {
    let format = Format::of(ty)?;
    let sign = if r & 1 == 0 || positive { 1.0 } else { -1.0 };
    match kind {
        InputKind::Large => {
            let top = exponent(format.max);
            // Half of them next to the largest number, so that sums overflow; the squares of the others do.
            let e = if r >> 1 & 1 == 0 {
                top - (r >> 2 & 1) as i32
            } else {
                int(splitmix64(r ^ 0x5a5a), i128::from(top / 2), i128::from(top)) as i32
            };
            let magnitude = (1.0 + (r >> 18) as f64 / (1u64 << 46) as f64) * 2f64.powi(e);
            Some(sign * magnitude.min(format.max))
        }
        InputKind::Tiny => {
            let denormals = (format.min_normal() / format.min_positive()) as i128;
            let count = int(splitmix64(r ^ 0x5a5a), 1, denormals.max(1));
            Some(sign * count as f64 * format.min_positive())
        }
        InputKind::Special => {
            let numbers = [
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
                0.0,
                -0.0,
                format.max,
                -format.max,
                format.min_normal(),
                -format.min_normal(),
                format.min_positive(),
                -format.min_positive(),
                1.0,
                -1.0,
            ];
            Some(numbers[(r >> 32) as usize % numbers.len()])
        }
        InputKind::Gentle | InputKind::Extreme => None,
    }
}

/// The exponent of a normal number.
fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}
