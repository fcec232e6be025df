//! What the check dialect means: whether two results are as near as a check asks.

use hlo::literal::Bits;
use hlo::{ArrayLiteral, ElementType, with_buffer};

pub use crate::convert::{Check, CheckKind};

/// Whether `actual` passes a check against `expected`; otherwise which element does not, and why.
pub fn compare(kind: CheckKind, actual: &ArrayLiteral, expected: &ArrayLiteral) -> Result<(), String> {
    if actual.shape() != expected.shape() {
        return Err(format!("{} is compared with {}", actual.shape(), expected.shape()));
    }
    let ty = actual.buffer.element_type();
    let (a, b) = (numbers(actual), numbers(expected));
    for (i, (x, y)) in a.iter().zip(&b).enumerate() {
        let passes = x.iter().zip(y).all(|(x, y)| near(kind, ty.real_part(), *x, *y));
        if !passes {
            let index = index_of(&actual.dims, i);
            return Err(format!(
                "element {index:?} is {}, not {}{}",
                show(ty, x),
                show(ty, y),
                asked(kind, ty, x, y)
            ));
        }
    }
    Ok(())
}

/// A number of any type: its bits, and its value if it is a float.
#[derive(Clone, Copy, Debug)]
struct Number {
    bits: u128,
    value: Option<f64>,
}

/// The parts of each element: of complex ones two.
fn numbers(array: &ArrayLiteral) -> Vec<Vec<Number>> {
    let ty = array.buffer.element_type();
    let part = ty.real_part();
    let one = |bits: u128| Number { bits, value: float(part, bits) };
    with_buffer!(&*array.buffer, v => v
        .iter()
        .map(|&x| {
            let bits = Bits::bits(x);
            if ty.is_complex() {
                let width = part.bits();
                vec![one(bits & ((1 << width) - 1)), one(bits >> width)]
            } else {
                vec![one(bits)]
            }
        })
        .collect())
}

fn float(ty: ElementType, bits: u128) -> Option<f64> {
    match ty {
        ElementType::F64 => Some(f64::from_bits(bits as u64)),
        _ => ty.float_format().map(|f| f.decode(bits as u32)),
    }
}

fn near(kind: CheckKind, ty: ElementType, a: Number, b: Number) -> bool {
    let (Some(x), Some(y)) = (a.value, b.value) else { return a.bits == b.bits };
    let same = x == y || x.is_nan() && y.is_nan();
    match kind {
        CheckKind::Equal => same,
        CheckKind::Almost(tolerance) => same || x.is_finite() && y.is_finite() && (x - y).abs() <= tolerance,
        CheckKind::Close { min, max } => ulps(ty, a, b).is_some_and(|n| (min..=max).contains(&n)),
    }
}

/// Units in the last place between two floats, numbers counted; `None` between a NaN and a number.
fn ulps(ty: ElementType, a: Number, b: Number) -> Option<u64> {
    let (x, y) = (a.value?, b.value?);
    match (x.is_nan(), y.is_nan()) {
        (true, true) => return Some(0),
        (false, false) => {}
        (true, false) | (false, true) => return None,
    }
    // Numbers in the order of their values: the magnitude, with the sign.
    let ordinal = |n: Number| {
        let sign = 1i128 << (ty.bits() - 1);
        let magnitude = n.bits as i128 & (sign - 1);
        if n.bits as i128 & sign != 0 { -magnitude } else { magnitude }
    };
    u64::try_from((ordinal(a) - ordinal(b)).unsigned_abs()).ok()
}

fn index_of(dims: &[i64], flat: usize) -> Vec<usize> {
    let mut rest = flat;
    let mut index: Vec<usize> = dims
        .iter()
        .rev()
        .map(|&d| {
            let d = (d as usize).max(1);
            let i = rest % d;
            rest /= d;
            i
        })
        .collect();
    index.reverse();
    index
}

fn show(ty: ElementType, parts: &[Number]) -> String {
    let one = |n: &Number| match n.value {
        Some(x) if ty.real_part() == ElementType::F64 => format!("{x:?}"),
        Some(x) => format!("{:?}", x as f32),
        None => match ty.integer_limits() {
            Some((low, _)) if low < 0 => {
                let unused = 128 - ty.bits();
                format!("{}", (n.bits << unused) as i128 >> unused)
            }
            _ => format!("{}", n.bits),
        },
    };
    match parts {
        [one_part] => one(one_part),
        _ => format!("({})", parts.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

fn asked(kind: CheckKind, ty: ElementType, x: &[Number], y: &[Number]) -> String {
    match kind {
        CheckKind::Equal => String::new(),
        CheckKind::Almost(tolerance) => format!(" (tolerance {tolerance})"),
        CheckKind::Close { min, max } => {
            let apart = x
                .iter()
                .zip(y)
                .map(|(x, y)| ulps(ty.real_part(), *x, *y))
                .max_by_key(|n| n.unwrap_or(u64::MAX));
            let apart = match apart.flatten() {
                Some(n) => n.to_string(),
                None => "any number of".to_owned(),
            };
            if min == 0 {
                format!(": {apart} ulp apart, where {max} are allowed")
            } else {
                format!(": {apart} ulp apart, where {min} to {max} are asked for")
            }
        }
    }
}
