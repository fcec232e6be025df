//! Literals. **Invariant:** elements that stand in memory as they stand in the message are borrowed, not
//! copied.

use std::borrow::Cow;
use std::sync::Arc;

use bytemuck::cast_slice;
use hlo::half::slice::HalfFloatSliceExt;
use hlo::{ArrayLiteral, ArrayShape, Bits, Buffer, Layout, Literal, Shape};

use super::shape::shape;
use crate::message::Message;
use crate::order::permuted;
use crate::read::literal::field_of;
use crate::schema::shapes::{LITERAL, literal as l};
use crate::varint;

/// A literal with row-major layouts, as XLA writes arguments and results.
pub(crate) fn plain(value: &Literal) -> Message<'_> {
    literal(value, &with_layouts(value.shape()))
}

fn with_layouts(shape: Shape) -> Shape {
    match shape {
        Shape::Array(a) => {
            let layout = Some(Arc::new(Layout::row_major(a.rank())));
            Shape::Array(ArrayShape { layout, ..a })
        }
        Shape::Tuple(parts) => Shape::tuple(parts.iter().cloned().map(with_layouts)),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => shape,
    }
}

/// A literal of a shape, whose layouts give the order of elements.
pub(crate) fn literal<'m>(value: &'m Literal, of: &Shape) -> Message<'m> {
    let mut m = Message::new(&LITERAL);
    m.message(l::SHAPE, shape(of));
    match value {
        Literal::Array(a) => array(a, of.as_array(), &mut m),
        Literal::Tuple(parts) => {
            let shapes = of.as_tuple().unwrap_or(&[]);
            // A literal that does not fit its shape is for the verifier to refuse.
            let shape_of = |i: usize, part: &Literal| shapes.get(i).cloned().unwrap_or_else(|| part.shape());
            let parts = parts.iter().enumerate().map(|(i, part)| literal(part, &shape_of(i, part)));
            m.messages(l::TUPLE_LITERALS, parts.collect());
        }
        Literal::Token => {}
    }
    m
}

fn array<'m>(a: &'m ArrayLiteral, shape: Option<&ArrayShape>, m: &mut Message<'m>) {
    let layout = shape.filter(|s| s.dims == a.dims).and_then(|s| s.layout.as_deref());
    match layout.filter(|l| !l.is_row_major() && is_order(&l.minor_to_major, a.dims.len())) {
        None => elements(&a.buffer, m),
        Some(layout) => {
            let moved =
                hlo::with_buffer!(&*a.buffer, v => wrap(permuted(v, &a.dims, &layout.minor_to_major, true)));
            // The copy does not live as long as the message.
            let mut copy = Message::new(&LITERAL);
            elements(&moved, &mut copy);
            for (number, value) in copy.into_owned().into_fields() {
                m.set(number, value);
            }
        }
    }
}

fn wrap<T: hlo::BufferOf>(v: Vec<T>) -> Buffer {
    T::wrap(v)
}

fn is_order(minor_to_major: &[i64], rank: usize) -> bool {
    let mut seen = vec![false; rank];
    let each_once = minor_to_major.iter().all(|&d| {
        usize::try_from(d).ok().and_then(|d| seen.get_mut(d)).is_some_and(|s| !std::mem::replace(s, true))
    });
    each_once && minor_to_major.len() == rank
}

fn elements<'m>(buffer: &'m Buffer, m: &mut Message<'m>) {
    let field = field_of(buffer.element_type());
    match buffer {
        Buffer::Pred(v) => m.packed(field, cast_slice::<bool, u8>(v)),
        Buffer::S32(v) => m.packed(field, varint::pack(v, |x| i64::from(x) as u64)),
        Buffer::S64(v) => m.packed(field, varint::pack(v, |x| x as u64)),
        Buffer::U32(v) => m.packed(field, varint::pack(v, u64::from)),
        Buffer::U64(v) => m.packed(field, varint::pack(v, |x| x)),
        Buffer::S8(v) => m.bytes(field, cast_slice::<i8, u8>(v)),
        Buffer::U8(v) => m.bytes(field, &v[..]),
        Buffer::S16(v) => m.bytes(field, little_endian(v, cast_slice)),
        Buffer::U16(v) => m.bytes(field, little_endian(v, cast_slice)),
        Buffer::F16(v) => m.bytes(field, little_endian(v, |v| cast_slice(v.reinterpret_cast()))),
        Buffer::BF16(v) => m.bytes(field, little_endian(v, |v| cast_slice(v.reinterpret_cast()))),
        Buffer::F32(v) => m.packed(field, little_endian(v, cast_slice)),
        Buffer::F64(v) => m.packed(field, little_endian(v, cast_slice)),
        Buffer::C64(v) => {
            m.packed(field, v.iter().flat_map(|x| (x.bits() as u64).to_le_bytes()).collect::<Vec<u8>>())
        }
        Buffer::C128(v) => {
            m.packed(field, v.iter().flat_map(|x| x.bits().to_le_bytes()).collect::<Vec<u8>>())
        }
        Buffer::S1(_)
        | Buffer::S2(_)
        | Buffer::S4(_)
        | Buffer::U1(_)
        | Buffer::U2(_)
        | Buffer::U4(_)
        | Buffer::F8E5M2(_)
        | Buffer::F8E4M3(_)
        | Buffer::F8E4M3FN(_)
        | Buffer::F8E4M3B11FNUZ(_)
        | Buffer::F8E3M4(_)
        | Buffer::F8E5M2FNUZ(_)
        | Buffer::F8E4M3FNUZ(_)
        | Buffer::F8E8M0FNU(_)
        | Buffer::F4E2M1FN(_)
        | Buffer::F6E3M2FN(_)
        | Buffer::F6E2M3FN(_) => {
            m.bytes(
                field,
                hlo::with_buffer!(buffer, v => v.iter().map(|x| x.bits() as u8).collect::<Vec<u8>>()),
            );
        }
    }
}

/// Elements in little-endian memory order.
fn little_endian<'m, T: Bits>(v: &'m [T], bytes: impl Fn(&'m [T]) -> &'m [u8]) -> Cow<'m, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytes(v));
    }
    let size = size_of::<T>();
    v.iter().flat_map(|x| x.bits().to_le_bytes().into_iter().take(size)).collect::<Vec<u8>>().into()
}
