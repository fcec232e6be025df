//! Elements that break compilers: NaNs with payloads, infinities, zeros of both signs, denormals, the ends of each range,
//! and among them small numbers on which most operations do something.

use hlo::elided::splitmix64;
use hlo::{
    ArrayLiteral, ArrayShape, BufferOf, ElementType, Literal, Module, Shape, TypeClass, with_element_type,
};

use crate::element::Number;
use crate::inputs::key;

/// An array whose elements depend on `key` and their index alone.
pub fn edge_array(shape: &ArrayShape, key: u64) -> ArrayLiteral {
    let n = shape.elements();
    let ty = shape.element_type;
    // A few arrays are tame throughout, so that long chains do not all end in NaN.
    let wild = !key.is_multiple_of(3);
    let buffer = with_element_type!(ty, T => {
        <T as BufferOf>::wrap((0..n as u64).map(|i| element::<T>(ty, splitmix64(key.wrapping_add(i)), wild)).collect())
    });
    ArrayLiteral { dims: shape.dims.clone(), buffer }
}

fn element<T: Number>(ty: ElementType, r: u64, wild: bool) -> T {
    let (kind, r) = (r & 15, r >> 4);
    match ty.class() {
        TypeClass::Pred => T::from_i128(i128::from(r & 1)),
        TypeClass::Signed | TypeClass::Unsigned => match kind {
            // The ends of the range, and one off.
            0 | 1 if wild => T::from_bits(
                [0, 1, u128::MAX, 1 << (ty.bits() - 1), (1 << (ty.bits() - 1)) - 1][r as usize % 5],
            ),
            2 | 3 if wild => T::from_bits(u128::from(r) << 40 | u128::from(r)),
            _ => T::from_i128(i128::from(r % 11) - if ty.is_signed_integer() { 4 } else { 0 }),
        },
        TypeClass::Float | TypeClass::Complex => {
            let part = |r: u64| -> f64 {
                let tame = ((r % 65) as f64 - 32.0) / 8.0;
                if !wild {
                    return tame;
                }
                match r >> 8 & 31 {
                    0 => [0.0, -0.0, 1.0, -1.0][(r >> 16) as usize & 3],
                    1 => [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX][(r >> 16) as usize & 3],
                    // Near the least normal and the greatest numbers of the narrower types.
                    2 => 2f64.powi(-150 + (r >> 16) as i32 % 30) * tame,
                    3 => 2f64.powi(-26 + (r >> 16) as i32 % 16) * tame,
                    4 => 2f64.powi(14 + (r >> 16) as i32 % 3) * tame,
                    5 => 2f64.powi(100 + (r >> 16) as i32 % 30) * tame,
                    6 => 2f64.powi(-1060 + (r >> 16) as i32 % 60) * tame,
                    7..12 => tame + 2f64.powi(-12) * (r >> 32) as f64 / 2f64.powi(20),
                    _ => tame,
                }
            };
            // Any pattern of bits, NaN payloads among them.
            if wild && kind == 0 && r.is_multiple_of(5) {
                return T::from_bits(u128::from(splitmix64(r)) << 64 | u128::from(splitmix64(!r)));
            }
            T::from_parts(part(r), part(splitmix64(r)))
        }
    }
}

/// Values for every parameter of a program, in the order of [`crate::inputs::plan`]; tokens have none. Parameters that hold
/// opaque values have no literals: generated programs have none.
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
