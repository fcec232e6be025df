//! Elements of arrays, in modes: those that break compilers (NaNs with payloads, infinities, zeros of both
//! signs, denormals, the ends of each range), and gentler ones on which a wrong element shows because nothing
//! has become NaN.
//!
//! **Invariant:** an element depends on the mode, the key, its index and the number of elements alone.

use hlo::elided::splitmix64;
use hlo::{
    ArrayLiteral, ArrayShape, BufferOf, ElementType, Literal, Module, Shape, TypeClass, with_element_type,
};

use hlo_engines::inputs::key;
use hlo_execution::element::Number;

/// The kind of elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Small integers, in floats too: sums and products of them are exact.
    Small,
    /// Small numbers with fractions of eighths.
    Eighths,
    /// Magnitudes about one, all bits of the fraction random.
    Moderate,
    /// No two equal, as far as the type has that many values: an element from a wrong index shows.
    Distinct,
    /// Ascending, with equal neighbours.
    Sorted,
    /// Two or three different numbers.
    Few,
    /// Special numbers among tame ones.
    Edge,
    /// Nothing but special numbers.
    Wild,
}

impl Mode {
    /// Mostly gentle.
    pub(super) fn of(r: u64) -> Mode {
        match r % 16 {
            0..3 => Mode::Small,
            3..6 => Mode::Eighths,
            6..9 => Mode::Moderate,
            9..12 => Mode::Distinct,
            12 => [Mode::Sorted, Mode::Few][(r >> 8) as usize & 1],
            13 => Mode::Few,
            14 => Mode::Edge,
            _ => {
                if r >> 8 & 3 == 0 {
                    Mode::Wild
                } else {
                    Mode::Edge
                }
            }
        }
    }
}

/// An element before it has a type.
enum Draw {
    Int(i128),
    Parts(f64, f64),
    Bits(u128),
}

fn typed<T: Number>(draw: Draw) -> T {
    match draw {
        Draw::Int(i) => T::from_i128(i),
        Draw::Parts(re, im) => T::from_parts(re, im),
        Draw::Bits(bits) => T::from_bits(bits),
    }
}

/// An array of a mode.
pub fn array(shape: &ArrayShape, mode: Mode, key: u64) -> ArrayLiteral {
    let (n, ty) = (shape.elements() as u64, shape.element_type);
    let draws = (0..n).map(|i| draw(ty, mode, splitmix64(key.wrapping_add(i)), (i, n), key));
    made(shape, draws)
}

fn made(shape: &ArrayShape, draws: impl Iterator<Item = Draw>) -> ArrayLiteral {
    let draws: &mut dyn Iterator<Item = Draw> = &mut { draws };
    let buffer =
        with_element_type!(shape.element_type, T => <T as BufferOf>::wrap(draws.map(typed::<T>).collect()));
    ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() }
}

/// A number of a type.
pub fn number(ty: ElementType, value: f64) -> ArrayLiteral {
    let draw = match ty.class() {
        TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => Draw::Int(value as i128),
        TypeClass::Float | TypeClass::Complex => Draw::Parts(value, 0.0),
    };
    made(&ArrayShape::new(ty, &[]), std::iter::once(draw))
}

/// A number that simplifications know: 0, 1, -1, powers of two, a half, the ends of the range.
pub(super) fn known_scalar(ty: ElementType, key: u64) -> ArrayLiteral {
    const NUMBERS: [f64; 16] =
        [0.0, 1.0, 2.0, -1.0, 3.0, 0.0, 1.0, 4.0, 0.5, 8.0, -2.0, 16.0, 0.25, 5.0, 7.0, -0.0];
    let r = splitmix64(key);
    if r & 15 == 0 {
        return array(&ArrayShape::new(ty, &[]), Mode::Edge, r);
    }
    number(ty, NUMBERS[(key & 15) as usize])
}

/// An array for a constant: mostly gentle.
pub(super) fn constant_array(shape: &ArrayShape, key: u64) -> ArrayLiteral {
    array(shape, Mode::of(splitmix64(!key)), key)
}

/// An array whose elements depend on `key` and their index alone: edges among tame numbers, or tame
/// throughout.
pub fn edge_array(shape: &ArrayShape, key: u64) -> ArrayLiteral {
    // Some arrays have moderate values throughout, so that long chains do not all end in NaN.
    array(shape, if key.is_multiple_of(3) { Mode::Eighths } else { Mode::Edge }, key)
}

fn draw(ty: ElementType, mode: Mode, r: u64, (i, n): (u64, u64), key: u64) -> Draw {
    match ty.class() {
        TypeClass::Pred => match mode {
            Mode::Sorted => Draw::Int(i128::from(i * 2 >= n)),
            Mode::Small
            | Mode::Eighths
            | Mode::Moderate
            | Mode::Distinct
            | Mode::Few
            | Mode::Edge
            | Mode::Wild => Draw::Int(i128::from(r & 1)),
        },
        TypeClass::Signed | TypeClass::Unsigned => integer(ty, mode, r, i, key),
        TypeClass::Float | TypeClass::Complex => {
            let positive = ty == ElementType::F8E8M0FNU;
            let part = |r: u64, i: u64| {
                let x = real(mode, r, (i, n), key);
                if positive && mode != Mode::Edge && mode != Mode::Wild { x.abs().max(0.25) } else { x }
            };
            // Any pattern of bits, NaN payloads among them.
            let any = match mode {
                Mode::Edge => r.is_multiple_of(80),
                Mode::Wild => r.is_multiple_of(4),
                Mode::Small | Mode::Eighths | Mode::Moderate | Mode::Distinct | Mode::Sorted | Mode::Few => {
                    false
                }
            };
            if any {
                return Draw::Bits(u128::from(splitmix64(r)) << 64 | u128::from(splitmix64(!r)));
            }
            Draw::Parts(part(r, i), part(splitmix64(r), n.wrapping_sub(i)))
        }
    }
}

/// The ends of the range of an integer type, one off, and those of the widths around.
fn integer_edge(ty: ElementType, r: u64) -> Draw {
    let top = 1u128 << (ty.bits() - 1);
    let bits = [0, 1, u128::MAX, top, top - 1, top + 1, u128::from(ty.bits()), u128::from(ty.bits()) - 1];
    Draw::Bits(bits[r as usize % 8])
}

fn integer(ty: ElementType, mode: Mode, r: u64, i: u64, key: u64) -> Draw {
    let low = if ty.is_signed_integer() { -4 } else { 0 };
    match mode {
        Mode::Small | Mode::Eighths => Draw::Int(i128::from(r % 11) + low),
        // Products of two overflow.
        Mode::Moderate => {
            let span = 1u64 << (ty.bits() * 3 / 4).max(1);
            Draw::Int(i128::from(r % span) + low.signum() * i128::from(span / 2))
        }
        // From one on, or about zero.
        Mode::Distinct => Draw::Int(i128::from(i) + if key & 1 == 0 { 1 } else { low * 4 }),
        Mode::Sorted => Draw::Int(i128::from(i / 2) + low),
        Mode::Few => Draw::Int(i128::from((key >> 8) % 5) + i128::from(r & 1)),
        Mode::Edge => match r & 15 {
            0 | 1 => integer_edge(ty, r >> 4),
            2 | 3 => Draw::Bits(u128::from(r) << 40 | u128::from(r >> 3)),
            _ => Draw::Int(i128::from((r >> 4) % 11) + low),
        },
        Mode::Wild => integer_edge(ty, r >> 4),
    }
}

fn real(mode: Mode, r: u64, (i, n): (u64, u64), key: u64) -> f64 {
    let tame = ((r % 65) as f64 - 32.0) / 8.0;
    match mode {
        Mode::Small => (r % 9) as f64 - 4.0,
        Mode::Eighths => tame,
        Mode::Moderate => {
            let x = (r >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            if x.abs() < 0.0625 { x + 0.125 } else { x * 2.0 }
        }
        // Away from zero, in halves: no two equal and none a multiple of its neighbour.
        Mode::Distinct => (i as f64 - (n / 2) as f64) * 0.5 + if key & 1 == 0 { 0.25 } else { 8.25 },
        Mode::Sorted => (i / 2) as f64 * 0.5 - 2.0,
        Mode::Few => [-1.5, 2.0, 0.5][(r % 3) as usize],
        Mode::Edge => match r >> 8 & 31 {
            0 | 1 => [0.0, -0.0, -0.0, -1.0][(r >> 16) as usize & 3],
            2 | 3 => [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX][(r >> 16) as usize & 3],
            4..7 => scaled(r),
            7..12 => tame + 2f64.powi(-12) * (r >> 32) as f64 / 2f64.powi(20),
            _ => tame,
        },
        Mode::Wild => match r >> 8 & 7 {
            0 => [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN][(r >> 16) as usize & 3],
            1 => [0.0, -0.0][(r >> 16) as usize & 1],
            2 => [f64::MAX, -f64::MAX, f64::MIN_POSITIVE, 5e-324][(r >> 16) as usize & 3],
            _ => scaled(r),
        },
    }
}

/// Near the smallest normal and the largest numbers of the types.
fn scaled(r: u64) -> f64 {
    let tame = ((r % 65) as f64 - 32.0) / 8.0;
    let s = (r >> 16) as i32 & 0xffff;
    let exponent = match (r >> 40) % 5 {
        0 => -150 + s % 30,
        1 => -26 + s % 16,
        2 => 14 + s % 3,
        3 => 100 + s % 30,
        _ => -1060 + s % 60,
    };
    2f64.powi(exponent) * tame
}

/// Values for every parameter of a program, in the order of [`hlo_engines::inputs::plan`]; tokens have none.
/// Parameters that hold opaque values have no literals: generated programs have none.
pub fn edge_inputs(module: &Module, seed: u64) -> Vec<Literal> {
    fn of(shape: &Shape, seed: u64, parameter: u64, leaf: &mut u64) -> Literal {
        match shape {
            Shape::Array(a) => {
                *leaf += 1;
                Literal::Array(edge_array(a, key(seed, 0, parameter, *leaf - 1)))
            }
            Shape::Tuple(t) => Literal::Tuple(t.iter().map(|s| of(s, seed, parameter, leaf)).collect()),
            Shape::Buffer(inner) => of(inner, seed, parameter, leaf),
            Shape::Token | Shape::Opaque => Literal::Token,
        }
    }
    let parameters = module.computation(module.entry()).parameters().iter().flatten();
    parameters.zip(0..).map(|(&p, number)| of(&module.instr(p).shape, seed, number, &mut 0)).collect()
}
