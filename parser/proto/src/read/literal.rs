//! Literals: the elements of an array in the order of its layout, in the field of its element type.

use hlo::diag::codes::{parse::*, proto::*};
use hlo::{ArrayLiteral, ArrayShape, Bits, Buffer, BufferOf, ElementType, Layout, Literal, Shape};

use super::shape::shape;
use crate::node::Node;
use crate::order::permuted;
use crate::schema::shapes::literal as l;
use crate::varint::{self, Wrong};
use crate::wire::Res;

/// A literal with its shape.
pub(crate) fn literal(n: Node<'_>) -> Res<(Shape, Literal)> {
    let shape = n.required(l::SHAPE, shape)?;
    let value = value(n, &shape)?;
    Ok((shape, value))
}

fn value(n: Node<'_>, of: &Shape) -> Res<Literal> {
    match of {
        Shape::Array(a) => array(n, a).map(Literal::Array),
        Shape::Token => Ok(Literal::Token),
        Shape::Tuple(shapes) => {
            let found = n.count(l::TUPLE_LITERALS);
            if found != shapes.len() {
                let message = format!("{found} literals in a tuple of {}", shapes.len());
                return Err(n.error(PROTO_BAD_VALUE, l::TUPLE_LITERALS, message));
            }
            let mut shapes = shapes.iter();
            let parts = n.children(l::TUPLE_LITERALS, |n| {
                let wanted = shapes.next().expect("invariant: as many shapes as literals");
                let given = n.required(l::SHAPE, shape)?;
                if !given.compatible(wanted) {
                    return Err(n.error(
                        PROTO_BAD_VALUE,
                        l::SHAPE,
                        format_args!("{given} in a tuple that has {wanted} there"),
                    ));
                }
                value(n, &given)
            })?;
            Ok(Literal::Tuple(parts))
        }
        Shape::Opaque | Shape::Buffer(_) => {
            Err(n.error(NO_LITERAL_TYPE, l::SHAPE, format_args!("there are no literals of {of}")))
        }
    }
}

fn array(n: Node<'_>, shape: &ArrayShape) -> Res<ArrayLiteral> {
    let Some(count) = shape.checked_elements().and_then(|c| usize::try_from(c).ok()) else {
        let message = format!("{shape} has no number of elements that memory could hold");
        return Err(n.error(LITERAL_TOO_LARGE, l::SHAPE, message));
    };
    if n.has(l::SPARSE_INDICES) {
        return Err(n.error(PROTO_BAD_VALUE, l::SPARSE_INDICES, "sparse literals are not supported"));
    }
    let mut buffer = elements(n, shape.element_type, count)?;
    if let Some(layout) = shape.layout.as_deref()
        && !layout.is_row_major()
    {
        check_order(n, layout)?;
        buffer =
            hlo::with_buffer!(&buffer, v => rewrap(permuted(v, &shape.dims, &layout.minor_to_major, false)));
    }
    let literal = ArrayLiteral::new(shape.dims.clone(), buffer);
    Ok(literal.expect("invariant: as many elements as the shape has"))
}

fn rewrap<T: BufferOf>(v: Vec<T>) -> Buffer {
    T::wrap(v)
}

fn check_order(n: Node<'_>, layout: &Layout) -> Res<()> {
    let mut seen = vec![false; layout.minor_to_major.len()];
    for &d in &layout.minor_to_major {
        let entry = usize::try_from(d).ok().and_then(|d| seen.get_mut(d)).filter(|s| !**s);
        *entry.ok_or_else(|| {
            n.error(PROTO_BAD_VALUE, l::SHAPE, "the layout is no order of the dimensions")
        })? = true;
    }
    Ok(())
}

/// The field of an element type.
pub(crate) fn field_of(ty: ElementType) -> u32 {
    match ty {
        ElementType::Pred => l::PREDS,
        ElementType::S1 => l::S1S,
        ElementType::S2 => l::S2S,
        ElementType::S4 => l::S4S,
        ElementType::S8 => l::S8S,
        ElementType::S16 => l::S16S,
        ElementType::S32 => l::S32S,
        ElementType::S64 => l::S64S,
        ElementType::U1 => l::U1S,
        ElementType::U2 => l::U2S,
        ElementType::U4 => l::U4S,
        ElementType::U8 => l::U8S,
        ElementType::U16 => l::U16S,
        ElementType::U32 => l::U32S,
        ElementType::U64 => l::U64S,
        ElementType::F16 => l::F16S,
        ElementType::BF16 => l::BF16S,
        ElementType::F32 => l::F32S,
        ElementType::F64 => l::F64S,
        ElementType::F8E5M2 => l::F8E5M2S,
        ElementType::F8E4M3 => l::F8E4M3S,
        ElementType::F8E4M3FN => l::F8E4M3FNS,
        ElementType::F8E4M3B11FNUZ => l::F8E4M3B11FNUZS,
        ElementType::F8E3M4 => l::F8E3M4S,
        ElementType::F8E5M2FNUZ => l::F8E5M2FNUZS,
        ElementType::F8E4M3FNUZ => l::F8E4M3FNUZS,
        ElementType::F8E8M0FNU => l::F8E8M0FNUS,
        ElementType::F4E2M1FN => l::F4E2M1FNS,
        ElementType::F6E3M2FN => l::F6E3M2FNS,
        ElementType::F6E2M3FN => l::F6E2M3FNS,
        ElementType::C64 => l::C64S,
        ElementType::C128 => l::C128S,
    }
}

fn elements(n: Node<'_>, ty: ElementType, count: usize) -> Res<Buffer> {
    let field = field_of(ty);
    let wrong = |found: usize, unit: &str| {
        n.error(PROTO_BAD_VALUE, field, format_args!("{found} {unit} for the {count} elements of the shape"))
    };
    // Fixed size on the wire: bytes, or packed floats.
    let fixed = |size: usize| {
        let bytes = match ty {
            ElementType::F32 | ElementType::F64 | ElementType::C64 | ElementType::C128 => n.packed(field),
            _ => n.bytes(field),
        };
        let expected = count.checked_mul(size);
        if expected == Some(bytes.len()) {
            Ok(bytes)
        } else {
            Err(wrong(bytes.len() / size.max(1), "elements"))
        }
    };
    Ok(match ty {
        ElementType::Pred => Buffer::Pred(varints(n, field, count, |v| v != 0)?),
        ElementType::S32 => Buffer::S32(varints(n, field, count, |v| v as i32)?),
        ElementType::S64 => Buffer::S64(varints(n, field, count, |v| v as i64)?),
        ElementType::U32 => Buffer::U32(varints(n, field, count, |v| v as u32)?),
        ElementType::U64 => Buffer::U64(varints(n, field, count, |v| v)?),
        ElementType::S8 => Buffer::S8(bytemuck::cast_slice(fixed(1)?).to_vec()),
        ElementType::U8 => Buffer::U8(fixed(1)?.to_vec()),
        ElementType::S16 => Buffer::S16(chunks(fixed(2)?, i16::from_le_bytes)),
        ElementType::U16 => Buffer::U16(chunks(fixed(2)?, u16::from_le_bytes)),
        ElementType::F16 => Buffer::F16(chunks(fixed(2)?, hlo::half::f16::from_le_bytes)),
        ElementType::BF16 => Buffer::BF16(chunks(fixed(2)?, hlo::half::bf16::from_le_bytes)),
        ElementType::F32 => Buffer::F32(chunks(fixed(4)?, f32::from_le_bytes)),
        ElementType::F64 => Buffer::F64(chunks(fixed(8)?, f64::from_le_bytes)),
        ElementType::C64 => {
            Buffer::C64(chunks(fixed(8)?, |b: [u8; 8]| Bits::from_bits(u64::from_le_bytes(b).into())))
        }
        ElementType::C128 => {
            Buffer::C128(chunks(fixed(16)?, |b: [u8; 16]| Bits::from_bits(u128::from_le_bytes(b))))
        }
        ElementType::S1
        | ElementType::S2
        | ElementType::S4
        | ElementType::U1
        | ElementType::U2
        | ElementType::U4
        | ElementType::F8E5M2
        | ElementType::F8E4M3
        | ElementType::F8E4M3FN
        | ElementType::F8E4M3B11FNUZ
        | ElementType::F8E3M4
        | ElementType::F8E5M2FNUZ
        | ElementType::F8E4M3FNUZ
        | ElementType::F8E8M0FNU
        | ElementType::F4E2M1FN
        | ElementType::F6E3M2FN
        | ElementType::F6E2M3FN => {
            let bytes = fixed(1)?;
            hlo::with_element_type!(ty, T => rewrap(bytes.iter().map(|&b| <T as Bits>::from_bits(b.into())).collect::<Vec<T>>()))
        }
    })
}

fn chunks<T, const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|c| read(*c)).collect()
}

/// Numbers of one to ten bytes each.
fn varints<T: Copy>(n: Node<'_>, field: u32, count: usize, make: impl Fn(u64) -> T) -> Res<Vec<T>> {
    varint::unpack(n.packed(field), count, make).map_err(|wrong| match wrong {
        Wrong::More => {
            n.error(PROTO_BAD_VALUE, field, format_args!("more elements than the {count} of the shape"))
        }
        Wrong::Fewer(found) => {
            n.error(PROTO_BAD_VALUE, field, format_args!("{found} elements for the {count} of the shape"))
        }
        Wrong::Endless => n.error(PROTO_MALFORMED, field, "a number does not end within ten bytes"),
    })
}
