//! Elements of attributes to literals.

use std::sync::Arc;

use hlo::literal::Bits;
use hlo::{ArrayLiteral, ArrayShape, Buffer, BufferOf, Dims, ElementType, Literal};

use crate::ir::{AttrId, Attribute, Module, ResourceData, Type, TypeId, element_bytes};

/// Why an attribute gives no literal.
pub(crate) type Why = String;

/// The literal that an attribute gives, all elements of a splat written out.
pub(crate) fn literal(m: &Module, attribute: AttrId) -> Result<ArrayLiteral, Why> {
    let (ty, splat, data) = match m.get_attribute(attribute) {
        Attribute::Elements { ty, splat, data } => (*ty, *splat, data.clone()),
        Attribute::DenseResource { ty, resource } => {
            let resource = m.get_resource(*resource);
            match &resource.data {
                ResourceData::Blob { data, .. } => {
                    let (dims, element) = tensor(m, *ty).ok_or("a resource of a type that is no tensor")?;
                    let count = count(&dims).ok_or("a resource of more elements than memory has")?;
                    let unpacked = crate::encode::from_packed(m, element, data, count).ok_or_else(|| {
                        format!(
                            "resource `{}` has {} bytes, not {count} elements",
                            m.text(resource.key),
                            data.len()
                        )
                    })?;
                    (*ty, unpacked.1, unpacked.0.into())
                }
                _ => return Err(format!("resource `{}` has no data", m.text(resource.key))),
            }
        }
        Attribute::Bool(b) => {
            let scalar = Literal::scalar(*b);
            return scalar.as_array().cloned().ok_or_else(|| "no array".to_owned());
        }
        Attribute::Integer { value, ty } => {
            let element =
                super::shapes::element_type(m, *ty).ok_or("a number of a type that HLO does not have")?;
            return Ok(filled(element, &[], *value as u128, 1));
        }
        Attribute::Float { bits, ty } => {
            let element =
                super::shapes::element_type(m, *ty).ok_or("a number of a type that HLO does not have")?;
            return Ok(filled(element, &[], u128::from(*bits), 1));
        }
        _ => return Err("the value is not given by elements".to_owned()),
    };
    let (dims, element) = tensor(m, ty).ok_or("elements of a type that is no tensor")?;
    let width = element_bytes(m, element).ok_or("elements that are no numbers")?;
    let element =
        super::shapes::element_type(m, element).ok_or("elements of a type that HLO does not have")?;
    let count = count(&dims).ok_or("more elements than memory has")?;
    if splat && count > MAX_SPLAT_ELEMENTS {
        return Err("too many equal elements to write out".to_owned());
    }
    let dims = Dims::from_slice(&dims);
    let buffer = hlo::with_element_type!(element, T => T::wrap(decode::<T>(&data, width, splat, count)));
    ArrayLiteral::new(dims, Arc::new(buffer)).ok_or_else(|| "elements that do not fit the type".to_owned())
}

/// The type of a value that the text leaves out: a resource that is nowhere given, as MLIR's printer has
/// `dense_resource<__elided__>` for what is large.
pub(crate) fn elided(m: &Module, attribute: AttrId) -> Option<ArrayShape> {
    let Attribute::DenseResource { ty, resource } = m.get_attribute(attribute) else { return None };
    let ResourceData::Missing = m.get_resource(*resource).data else { return None };
    let (dims, element) = tensor(m, *ty)?;
    count(&dims)?;
    Some(ArrayShape::new(super::shapes::element_type(m, element)?, &dims))
}

/// Elements above which a splat is not written out.
const MAX_SPLAT_ELEMENTS: usize = 1 << 16;

/// The element and the dimensions of a splat that is too large to write out.
pub(crate) fn large_splat(m: &Module, attribute: AttrId) -> Option<(ArrayLiteral, Vec<i64>)> {
    let Attribute::Elements { ty, splat: true, data } = m.get_attribute(attribute) else { return None };
    let (dims, element) = tensor(m, *ty)?;
    if count(&dims).is_some_and(|n| n <= MAX_SPLAT_ELEMENTS) {
        return None;
    }
    let mut bytes = [0; 16];
    bytes.get_mut(..data.len())?.copy_from_slice(data);
    let element = super::shapes::element_type(m, element)?;
    Some((filled(element, &[], u128::from_le_bytes(bytes), 1), dims))
}

fn tensor(m: &Module, ty: TypeId) -> Option<(Vec<i64>, TypeId)> {
    match m.get_type(ty) {
        Type::Tensor { dims, element, .. } => Some((dims.to_vec(), *element)),
        _ => None,
    }
}

fn count(dims: &[i64]) -> Option<usize> {
    const MAX_ELEMENTS: usize = 1 << 40;
    dims.iter()
        .try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?))
        .filter(|&n| n <= MAX_ELEMENTS)
}

fn decode<T: BufferOf>(data: &[u8], width: usize, splat: bool, count: usize) -> Vec<T> {
    let one = |chunk: &[u8]| {
        let mut bytes = [0; 16];
        bytes[..chunk.len()].copy_from_slice(chunk);
        <T as Bits>::from_bits(u128::from_le_bytes(bytes))
    };
    if splat && data.len() == width {
        return vec![one(data); count];
    }
    data.chunks_exact(width).map(one).collect()
}

/// `count` times the element with these bits.
pub(crate) fn filled(element: ElementType, dims: &[i64], bits: u128, count: usize) -> ArrayLiteral {
    let buffer: Buffer =
        hlo::with_element_type!(element, T => T::wrap(vec![<T as Bits>::from_bits(bits); count]));
    ArrayLiteral { dims: Dims::from_slice(dims), buffer: Arc::new(buffer) }
}

/// The bits of the nearest number of an element type.
pub(crate) fn number_bits(element: ElementType, x: f64) -> u128 {
    use ElementType as E;
    match element {
        E::Pred => u128::from(x != 0.0),
        E::S1
        | E::S2
        | E::S4
        | E::S8
        | E::S16
        | E::S32
        | E::S64
        | E::U1
        | E::U2
        | E::U4
        | E::U8
        | E::U16
        | E::U32
        | E::U64 => x as i128 as u128,
        E::F64 => x.to_bits().into(),
        E::F32 | E::C64 => (x as f32).to_bits().into(),
        E::C128 => x.to_bits().into(),
        E::F16 => hlo::half::f16::from_f64(x).to_bits().into(),
        E::BF16 => hlo::half::bf16::from_f64(x).to_bits().into(),
        E::F8E5M2
        | E::F8E4M3
        | E::F8E4M3FN
        | E::F8E4M3B11FNUZ
        | E::F8E3M4
        | E::F8E5M2FNUZ
        | E::F8E4M3FNUZ
        | E::F8E8M0FNU
        | E::F4E2M1FN
        | E::F6E3M2FN
        | E::F6E2M3FN => element.float_format().map_or(0, |f| f.encode(x).into()),
    }
}
