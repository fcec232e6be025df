//! Numbers to the bytes of attributes, and back.

use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU,
};

use crate::ir::{FloatType, Module, Signedness, Type, TypeId, element_bytes, storage_bits};

/// The bits of the nearest number of a type; `None` for types whose numbers are not read.
pub fn float_bits(ty: FloatType, x: f64) -> Option<u64> {
    Some(match ty {
        FloatType::F64 => x.to_bits(),
        FloatType::F32 => u64::from((x as f32).to_bits()),
        FloatType::F16 => u64::from(hlo::half::f16::from_f64(x).to_bits()),
        FloatType::BF16 => u64::from(hlo::half::bf16::from_f64(x).to_bits()),
        FloatType::F8E5M2 => F8E5M2::from_f64(x).to_bits().into(),
        FloatType::F8E4M3 => F8E4M3::from_f64(x).to_bits().into(),
        FloatType::F8E4M3FN => F8E4M3FN::from_f64(x).to_bits().into(),
        FloatType::F8E5M2FNUZ => F8E5M2FNUZ::from_f64(x).to_bits().into(),
        FloatType::F8E4M3FNUZ => F8E4M3FNUZ::from_f64(x).to_bits().into(),
        FloatType::F8E4M3B11FNUZ => F8E4M3B11FNUZ::from_f64(x).to_bits().into(),
        FloatType::F8E3M4 => F8E3M4::from_f64(x).to_bits().into(),
        FloatType::F4E2M1FN => F4E2M1FN::from_f64(x).to_bits().into(),
        FloatType::F6E2M3FN => F6E2M3FN::from_f64(x).to_bits().into(),
        FloatType::F6E3M2FN => F6E3M2FN::from_f64(x).to_bits().into(),
        FloatType::F8E8M0FNU => F8E8M0FNU::from_f64(x).to_bits().into(),
        FloatType::TF32 | FloatType::F80 | FloatType::F128 => return None,
    })
}

/// The number with these bits; `None` for types whose numbers are not read.
pub fn float_value(ty: FloatType, bits: u64) -> Option<f64> {
    let byte = bits as u8;
    Some(match ty {
        FloatType::F64 => f64::from_bits(bits),
        FloatType::F32 => f32::from_bits(bits as u32).into(),
        FloatType::F16 => hlo::half::f16::from_bits(bits as u16).to_f64(),
        FloatType::BF16 => hlo::half::bf16::from_bits(bits as u16).to_f64(),
        FloatType::F8E5M2 => F8E5M2::from_bits(byte).to_f64(),
        FloatType::F8E4M3 => F8E4M3::from_bits(byte).to_f64(),
        FloatType::F8E4M3FN => F8E4M3FN::from_bits(byte).to_f64(),
        FloatType::F8E5M2FNUZ => F8E5M2FNUZ::from_bits(byte).to_f64(),
        FloatType::F8E4M3FNUZ => F8E4M3FNUZ::from_bits(byte).to_f64(),
        FloatType::F8E4M3B11FNUZ => F8E4M3B11FNUZ::from_bits(byte).to_f64(),
        FloatType::F8E3M4 => F8E3M4::from_bits(byte).to_f64(),
        FloatType::F4E2M1FN => F4E2M1FN::from_bits(byte).to_f64(),
        FloatType::F6E2M3FN => F6E2M3FN::from_bits(byte).to_f64(),
        FloatType::F6E3M2FN => F6E3M2FN::from_bits(byte).to_f64(),
        FloatType::F8E8M0FNU => F8E8M0FNU::from_bits(byte).to_f64(),
        FloatType::TF32 | FloatType::F80 | FloatType::F128 => return None,
    })
}

/// An integer as a type of integers keeps it: signless types take `255 : i8` as -1, as MLIR does; `None` if
/// it does not fit.
pub fn wrapped(m: &Module, ty: TypeId, value: i128) -> Option<i128> {
    let (width, sign) = match m.get_type(ty) {
        Type::Index => (64, Signedness::Signless),
        Type::Integer { width, sign } => (*width, *sign),
        _ => return None,
    };
    if width >= 127 { Some(value) } else { wrapped_to(width, sign, value) }
}

/// The same of a width below 127 bits.
fn wrapped_to(width: u32, sign: Signedness, value: i128) -> Option<i128> {
    let whole = 1i128 << width;
    let (low, high) = match sign {
        Signedness::Signless => (-whole / 2, whole - 1),
        Signedness::Signed => (-whole / 2, whole / 2 - 1),
        Signedness::Unsigned => (0, whole - 1),
    };
    if value < low || value > high {
        return None;
    }
    let negative = sign != Signedness::Unsigned && value >= whole / 2;
    Some(if negative { value - whole } else { value })
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Bool,
    Integer { width: u32, sign: Signedness },
    Float(FloatType),
}

/// Encodes numbers given as text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoder {
    kind: Kind,
    complex: bool,
    /// Of a part, if the numbers are complex.
    bytes: usize,
}

impl Encoder {
    /// `None` if the elements are no numbers.
    pub(crate) fn new(m: &Module, element: TypeId) -> Option<Self> {
        let (part, complex) = match m.get_type(element) {
            Type::Complex(part) => (*part, true),
            _ => (element, false),
        };
        let kind = match m.get_type(part) {
            Type::Integer { width: 1, .. } => Kind::Bool,
            Type::Integer { width, sign } if *width <= 64 => Kind::Integer { width: *width, sign: *sign },
            Type::Index => Kind::Integer { width: 64, sign: Signedness::Signless },
            Type::Float(f) if float_bits(*f, 0.0).is_some() => Kind::Float(*f),
            _ => return None,
        };
        Some(Self { kind, complex, bytes: element_bytes(m, part)? })
    }

    pub(crate) fn is_complex(&self) -> bool {
        self.complex
    }

    /// Adds a number (or a part of a complex one).
    pub(crate) fn push(&mut self, out: &mut Vec<u8>, negative: bool, text: &str) -> Result<(), String> {
        let hex = text.strip_prefix("0x");
        let bits: u64 = match self.kind {
            Kind::Bool => match text {
                "true" => 1,
                "false" => 0,
                "0" => 0,
                "1" => 1,
                _ => return Err(format!("`{text}` is neither `true` nor `false`")),
            },
            Kind::Integer { width, sign } => {
                let value = match hex {
                    Some(hex) => i128::from_str_radix(hex, 16).ok(),
                    None => text.parse::<i128>().ok(),
                };
                let Some(value) = value else { return Err(format!("`{text}` is no integer")) };
                let value = if negative { -value } else { value };
                let wrapped = wrapped_to(width, sign, value);
                wrapped.ok_or_else(|| format!("{value} does not fit {width} bits"))? as u64
            }
            Kind::Float(ty) => match hex {
                Some(hex) => match u64::from_str_radix(hex, 16) {
                    Ok(bits) if ty.bits() == 64 || bits < 1 << ty.bits() => bits,
                    _ => return Err(format!("`{text}` is not the bits of a number of {} bits", ty.bits())),
                },
                None => {
                    let value: f64 = match text.parse() {
                        Ok(value) if text.as_bytes()[0].is_ascii_digit() => value,
                        _ => return Err(format!("`{text}` is no number")),
                    };
                    float_bits(ty, if negative { -value } else { value }).unwrap_or(0)
                }
            },
        };
        if self.bytes <= 8 {
            out.extend_from_slice(&bits.to_le_bytes()[..self.bytes]);
        } else {
            out.extend_from_slice(&u128::from(bits).to_le_bytes()[..self.bytes]);
        }
        Ok(())
    }
}

/// Elements from the bytes that MLIR writes for them, one or `count`: `i1` packed into bits, other types
/// narrower than a byte a byte each. The bytes as the tree has them, and whether it is one for all.
pub fn from_packed(m: &Module, element: TypeId, bytes: &[u8], count: usize) -> Option<(Vec<u8>, bool)> {
    let width = element_bytes(m, element)?;
    let bits = storage_bits(m, element)?;
    if bits == 1 {
        // One byte of all ones or none is a splat.
        if bytes.len() == 1 && count != 8 && (bytes[0] == 0xff || bytes[0] == 0) && count > 8 {
            return Some((vec![bytes[0] & 1], true));
        }
        if bytes.len() == count && count != 1 && count.div_ceil(8) != count {
            return Some((bytes.iter().map(|b| b & 1).collect(), false));
        }
        if bytes.len() != count.div_ceil(8) {
            return None;
        }
        let data: Vec<u8> = (0..count).map(|i| bytes[i / 8] >> (i % 8) & 1).collect();
        return Some((data, count == 1));
    }
    let splat = bytes.len() == width;
    if !splat && bytes.len() != count.checked_mul(width)? {
        return None;
    }
    let mut data = bytes.to_vec();
    if bits < 8 {
        let unsigned =
            matches!(m.get_type(element), Type::Float(_) | Type::Integer { sign: Signedness::Unsigned, .. });
        for b in &mut data {
            let unused = 8 - bits;
            *b = if unsigned { *b << unused >> unused } else { ((*b << unused) as i8 >> unused) as u8 };
        }
    }
    Some((data, splat))
}
