//! Comparison of a device's results with the interpreter's.

use hlo_ptx::float::approximate::{Error, error_of};
use hlo_ptx::types::{Class, Type};
use serde::Serialize;

use crate::case::{Array, Case, Judge, element};
use crate::families::matrix;
use crate::operands::{elements, layout};

/// A result that is not what it has to be.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// The array and the element.
    pub element: String,
    /// The operands of the element.
    pub operands: Vec<String>,
    /// The device's bits.
    pub device: String,
    /// The interpreter's.
    pub interpreter: String,
    /// More of it: errors of approximations.
    pub note: String,
}

/// What comparing one case gave.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Verdict {
    /// Results.
    pub results: u64,
    /// Those with equal bits.
    pub equal: u64,
    /// Those that are not what they have to be.
    pub wrong: u64,
    /// Of `wrong`, those where both are NaN with other bits.
    pub nan_bits: u64,
    /// Approximations with other bits within the stated error.
    pub within: u64,
    /// Approximations where no error is stated.
    pub unstated: u64,
    /// The largest error of an approximation where one is stated, in units in the last element.
    pub largest_ulp: Option<f64>,
    /// The largest error where none is stated.
    pub largest_unstated_ulp: Option<f64>,
    /// The operands of the largest error.
    pub largest_at: String,
    /// The first results that are not what they have to be.
    pub first: Vec<Difference>,
}

/// How many differences of a case are kept.
const KEPT: usize = 8;

/// Compares the outputs of a case.
#[must_use]
pub fn compare(case: &Case, arrays: &[Array], device: &[Vec<u8>], interpreter: &[Vec<u8>]) -> Verdict {
    let mut v = Verdict::default();
    for (slot, array) in arrays.iter().enumerate().filter(|(_, a)| a.is_output) {
        let (width, count) = (array.width, array.len());
        for index in 0..count {
            let (d, i) = (element(&device[slot], width, index), element(&interpreter[slot], width, index));
            v.results += 1;
            let operands = || operands(case, arrays, slot, index);
            let wrong = |v: &mut Verdict, note: String| {
                v.wrong += 1;
                if v.first.len() < KEPT {
                    v.first.push(Difference {
                        element: format!("{}[{index}]", array.name),
                        operands: operands(),
                        device: format!("{d:#x}"),
                        interpreter: format!("{i:#x}"),
                        note,
                    });
                }
            };
            match &case.judge {
                Judge::Approximate(instruction, ty) => {
                    if d == i {
                        v.equal += 1;
                    }
                    let operand = |n: usize| {
                        arrays.iter().filter(|a| !a.is_output).nth(n).map_or(0, |a| a.element(index))
                    };
                    match approximate(instruction, *ty, [operand(0), operand(1)], d, i) {
                        Approximation::Stated { ulp, is_within } => {
                            if v.largest_ulp.is_none_or(|l| ulp > l) && ulp.is_finite() {
                                v.largest_ulp = Some(ulp);
                                v.largest_at = operands().join(" ");
                            }
                            if !is_within {
                                wrong(&mut v, format!("{ulp:.3} ulp"));
                            } else if d != i {
                                v.within += 1;
                            }
                        }
                        Approximation::Unstated { ulp } => {
                            v.unstated += 1;
                            if v.largest_unstated_ulp.is_none_or(|l| ulp > l) && ulp.is_finite() {
                                v.largest_unstated_ulp = Some(ulp);
                            }
                        }
                        Approximation::Special => {
                            if d != i {
                                v.nan_bits += u64::from(both_nan(*ty, d, i));
                                wrong(&mut v, "a special value".to_owned());
                            }
                        }
                    }
                }
                Judge::Bits | Judge::Product(_) => {
                    if d == i {
                        v.equal += 1;
                    } else {
                        v.nan_bits += u64::from(both_nan(array.ty, d, i));
                        wrong(&mut v, String::new());
                    }
                }
            }
        }
    }
    v
}

/// The operands of an output.
fn operands(case: &Case, arrays: &[Array], slot: usize, index: usize) -> Vec<String> {
    if let Judge::Product(shape) = &case.judge {
        return matrix::describe(shape, arrays, index);
    }
    let count = arrays[slot].len();
    let before = |a: &&Array| a.len() == count && (!a.is_output || a.bytes.iter().any(|&b| b != 0xA5));
    arrays.iter().filter(before).map(|a| format!("{}={:#x}", a.name, a.element(index))).collect()
}

/// Whether both values differ only in elements that are NaN in both.
fn both_nan(ty: Type, a: u64, b: u64) -> bool {
    if ty.class() != Class::Float {
        return false;
    }
    let (count, bits) = elements(ty);
    let mask = u64::MAX >> (64 - bits);
    (0..count).all(|i| {
        let (x, y) = (a >> (i * bits) & mask, b >> (i * bits) & mask);
        x == y || decode(ty, x).is_nan() && decode(ty, y).is_nan()
    })
}

/// The value of bits of an element.
#[must_use]
pub fn decode(ty: Type, bits: u64) -> f64 {
    if ty == Type::F64 {
        return f64::from_bits(bits);
    }
    let Some((e, f)) = layout(ty) else { return 0.0 };
    let (field, fraction) = ((bits >> f) & ((1 << e) - 1), bits & ((1 << f) - 1));
    let sign = if bits >> (e + f) & 1 == 1 { -1.0 } else { 1.0 };
    let bias = (1_i32 << (e - 1)) - 1;
    let magnitude = if field == (1 << e) - 1 {
        if fraction == 0 { f64::INFINITY } else { f64::NAN }
    } else if field == 0 {
        fraction as f64 * 2_f64.powi(1 - bias - f as i32)
    } else {
        (fraction | 1 << f) as f64 * 2_f64.powi(field as i32 - bias - f as i32)
    };
    sign * magnitude
}

/// A unit in the last element at a value.
fn ulp(ty: Type, value: f64) -> f64 {
    let (e, f) = layout(ty).unwrap_or((8, 23));
    let least = 2 - (1_i32 << (e - 1));
    let exponent =
        if value == 0.0 { least } else { ((value.abs().to_bits() >> 52) as i32 - 1023).max(least) };
    // Below 2^-1022 in two steps.
    let at = exponent - f as i32;
    if at < -1000 { 2_f64.powi(at + 500) * 2_f64.powi(-500) } else { 2_f64.powi(at) }
}

/// What an approximate result is worth.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Approximation {
    /// An error is stated.
    Stated { ulp: f64, is_within: bool },
    /// None is stated.
    Unstated { ulp: f64 },
    /// The result is NaN, an infinity of a pole, or a zero: bits count.
    Special,
}

/// Judges each element of an approximate result, and gives the worst.
fn approximate(
    instruction: &str,
    ty: Type,
    operands: [u64; 2],
    device: u64,
    interpreter: u64,
) -> Approximation {
    let (count, bits) = elements(ty);
    let mask = u64::MAX >> (64 - bits);
    let part = |v: u64, i: u32| v >> (i * bits) & mask;
    let rank = |a: &Approximation| match a {
        Approximation::Stated { ulp, is_within: false } => (3, *ulp),
        Approximation::Special => (2, 0.0),
        Approximation::Stated { ulp, is_within: true } => (1, *ulp),
        Approximation::Unstated { ulp } => (0, *ulp),
    };
    let mut worst: Option<Approximation> = None;
    for i in 0..count {
        let (d, x) = (part(device, i), part(interpreter, i));
        let this = one(instruction, ty, operands.map(|o| part(o, i)), d);
        // A special element that is equal says nothing of the whole.
        let this = match this {
            Approximation::Special if d == x && count > 1 => {
                Approximation::Stated { ulp: 0.0, is_within: true }
            }
            other => other,
        };
        if worst.as_ref().is_none_or(|w| rank(&this) > rank(w)) {
            worst = Some(this);
        }
    }
    worst.unwrap_or(Approximation::Special)
}

fn one(instruction: &str, ty: Type, [a, b]: [u64; 2], device: u64) -> Approximation {
    let (e, _) = layout(ty).unwrap_or((8, 23));
    let ftz = instruction.contains(".ftz");
    let least_normal = 2_f64.powi(2 - (1 << (e - 1)));
    let flush = |x: f64| if ftz && x.abs() < least_normal { 0.0_f64.copysign(x) } else { x };
    let (x, y) = (flush(decode(ty, a)), flush(decode(ty, b)));
    let opcode = instruction.split('.').next().unwrap_or("");
    let exact = match opcode {
        "ex2" => x.exp2(),
        "lg2" => x.log2(),
        "rcp" => 1.0 / x,
        "sqrt" => x.sqrt(),
        "rsqrt" => 1.0 / x.sqrt(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tanh" => x.tanh(),
        _ => x / y,
    };
    let got = decode(ty, device);
    if exact.is_nan() || got.is_nan() || exact == 0.0 || exact.is_infinite() || x.is_infinite() {
        return Approximation::Special;
    }
    // Where the division is stated.
    let is_div_approx = instruction.starts_with("div.approx");
    if is_div_approx && y.abs() > 2_f64.powi(126) {
        return Approximation::Special;
    }
    // An infinity stands for the number behind the largest.
    let beyond = 2_f64.powi(1 << (e - 1).min(10));
    let clipped = |v: f64| if ty != Type::F64 && v.abs() > beyond { beyond.copysign(v) } else { v };
    let (got, exact) = (clipped(got), clipped(exact));
    let distance = (got - exact).abs();
    let unit = ulp(ty, exact);
    let in_ulps = distance / unit;
    let is_flushed = ftz
        && got == 0.0
        && exact.abs() < least_normal * 1.000_001
        && got.is_sign_negative() == exact.is_sign_negative();
    let unstated = Approximation::Unstated { ulp: in_ulps };
    let allowed = match error_of(instruction) {
        Some(Error::Ulp(_)) if is_div_approx && y.abs() < 2_f64.powi(-126) => return unstated,
        Some(Error::Ulp(n)) => n * unit,
        Some(Error::Relative(r)) => (r * exact.abs()).max(unit / 2.0),
        Some(Error::Absolute(most)) => match opcode {
            "sin" | "cos" => match x.abs() {
                v if v <= 2.0 * std::f64::consts::PI => most,
                v if v <= 100.0 * std::f64::consts::PI => 2_f64.powf(-14.7),
                _ => return unstated,
            },
            _ => most.max(unit / 2.0),
        },
        Some(Error::AbsoluteWithin(low, high, absolute, relative)) => {
            if x > low && x < high {
                absolute.max(unit / 2.0)
            } else {
                (relative * exact.abs()).max(unit / 2.0)
            }
        }
        Some(Error::RelativeOrUlp(relative, ulps)) => {
            if exact.abs() < least_normal {
                ulps * unit
            } else {
                (relative * exact.abs()).max(unit / 2.0)
            }
        }
        // A flushed result says nothing of the error.
        Some(Error::Unstated) | None if is_flushed => return Approximation::Unstated { ulp: 0.0 },
        Some(Error::Unstated) | None => return unstated,
    };
    // Behind the smallest normal number, but for results that could round to it, `.ftz` leaves zero alone.
    if ftz && exact.abs() < least_normal * 0.999_999 && !is_flushed {
        return Approximation::Stated { ulp: in_ulps, is_within: false };
    }
    if is_flushed {
        return Approximation::Stated { ulp: 0.0, is_within: true };
    }
    Approximation::Stated { ulp: in_ulps, is_within: distance <= allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_formats() {
        assert_eq!(decode(Type::F32, 0x3FC0_0000), 1.5);
        assert_eq!(decode(Type::F16, 0x8001), -(2_f64.powi(-24)));
        assert_eq!(decode(Type::Bf16, 0x7F80), f64::INFINITY);
        assert!(decode(Type::F16, 0x7FFF).is_nan());
        assert_eq!((ulp(Type::F32, 1.0), ulp(Type::F32, 0.0)), (2_f64.powi(-23), 2_f64.powi(-149)));
        assert_eq!(ulp(Type::F64, 1.0), f64::EPSILON);
    }

    #[test]
    fn approximations_are_judged_by_the_stated_error() {
        let f = |x: f32| u64::from(x.to_bits());
        let of = |d: u64| one("ex2.approx.f32", Type::F32, [f(0.5), 0], d);
        // 2^0.5 is 0x3FB504F3 and a third of an ulp.
        let within = |a| matches!(a, Approximation::Stated { is_within: true, .. });
        assert!(within(of(0x3FB5_04F3)) && within(of(0x3FB5_04F5)) && !within(of(0x3FB5_04F6)));
        assert_eq!(one("lg2.approx.f32", Type::F32, [f(-1.0), 0], 0x7FFF_FFFF), Approximation::Special);
        // Flushed results and operands.
        assert!(within(one("ex2.approx.ftz.f32", Type::F32, [f(-130.0), 0], 0)));
        assert!(!within(one("ex2.approx.f32", Type::F32, [f(-130.0), 0], 0)));
        assert!(matches!(
            one("sin.approx.f32", Type::F32, [f(1e6), 0], f(0.5)),
            Approximation::Unstated { .. }
        ));
        assert!(!within(one("sin.approx.f32", Type::F32, [f(1.0), 0], f(0.842))));
    }
}
