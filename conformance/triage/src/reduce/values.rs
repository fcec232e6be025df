//! Arrays as moves see them: elements picked, replaced, converted, and how simple they are.

use hlo::{ArrayLiteral, Bits, Buffer, BufferOf, ElementType, with_buffer, with_element_type};

use hlo_execution::element::{Number, Part};

/// Calls `f` with the bits of each element.
pub(crate) fn for_each_bits(buffer: &Buffer, f: &mut dyn FnMut(u128)) {
    with_buffer!(buffer, v => v.iter().for_each(|x| f(x.bits())));
}

/// The elements at these positions.
pub(crate) fn take(buffer: &Buffer, positions: &[usize]) -> Buffer {
    with_buffer!(buffer, v => picked(v, positions))
}

fn picked<T: BufferOf>(v: &[T], positions: &[usize]) -> Buffer {
    T::wrap(positions.iter().map(|&i| v[i]).collect())
}

/// An element of any type: an integer, or two real parts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Scalar {
    /// Of an integer type or `pred`.
    Int(i128),
    /// Of a float or complex type.
    Real(f64, f64),
}

/// The elements, exact but for the payloads of NaNs.
pub(crate) fn scalars(buffer: &Buffer) -> Vec<Scalar> {
    with_buffer!(buffer, v => v.iter().map(|&x| scalar(x.parts())).collect())
}

fn scalar((re, im): (Part, Option<Part>)) -> Scalar {
    match re {
        Part::Int(i) => Scalar::Int(i),
        Part::Float { value, .. } => Scalar::Real(value, im.map_or(0.0, Part::value)),
    }
}

/// Elements of a type: integers wrap, floats round to the nearest.
pub(crate) fn from_scalars(ty: ElementType, elements: &[Scalar]) -> Buffer {
    with_element_type!(ty, T => wrapped::<T>(elements))
}

fn wrapped<T: Number>(elements: &[Scalar]) -> Buffer {
    T::wrap(
        elements
            .iter()
            .map(|&e| match e {
                Scalar::Int(i) => T::from_i128(i),
                Scalar::Real(re, im) => T::from_parts(re, im),
            })
            .collect(),
    )
}

/// The same elements in another type.
pub(crate) fn retyped(array: &ArrayLiteral, ty: ElementType) -> ArrayLiteral {
    if array.buffer.element_type() == ty {
        return array.clone();
    }
    ArrayLiteral { dims: array.dims.clone(), buffer: from_scalars(ty, &scalars(&array.buffer)).into() }
}

/// How hard an element is to read: 0 for zero, 1 for one, more for longer numbers.
pub(crate) fn cost(element: Scalar) -> u64 {
    fn of(x: f64) -> u64 {
        if x == 0.0 {
            return u64::from(x.is_sign_negative()) * 3;
        }
        if !x.is_finite() {
            return 6;
        }
        let sign = u64::from(x < 0.0);
        let x = x.abs();
        if x == 1.0 {
            return 1 + sign;
        }
        if x <= 9.0 && x == x.trunc() {
            return 2 + sign;
        }
        // Bits from the first to the last that is set, and how far off the number is.
        let bits = x.to_bits();
        let mantissa = bits & ((1 << 52) - 1);
        let length = if mantissa == 0 { 1 } else { 53 - u64::from(mantissa.trailing_zeros()) };
        let exponent = ((bits >> 52) as i64 - 1023).unsigned_abs();
        3 + sign + length + exponent / 4
    }
    match element {
        Scalar::Int(i) => of(i as f64),
        Scalar::Real(re, im) => of(re) + of(im),
    }
}

/// Row-major positions of a box within dimensions: `starts` and `sizes` for each.
pub(crate) fn box_positions(dims: &[i64], starts: &[i64], sizes: &[i64]) -> Vec<usize> {
    let mut positions = vec![0usize];
    for ((&dim, &start), &size) in dims.iter().zip(starts).zip(sizes) {
        let mut next = Vec::with_capacity(positions.len() * usize::try_from(size).unwrap_or(0));
        for p in positions {
            next.extend((start..start + size).map(|i| p * dim as usize + i as usize));
        }
        positions = next;
    }
    positions
}
