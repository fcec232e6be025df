//! Attributes as handlers see them.
//!
//! **Invariant:** every pointer points into memory that this owns and that neither moves nor changes.

use std::ffi::{c_int, c_void};
use std::ptr;

use hlo::Buffer;
use hlo_client::custom_call::{Attribute, Attributes};

use crate::abi::{
    ATTR_ARRAY, ATTR_DICTIONARY, ATTR_SCALAR, ATTR_STRING, XLA_FFI_Array, XLA_FFI_Attrs, XLA_FFI_ByteSpan,
    XLA_FFI_Scalar,
};

/// A dictionary.
#[derive(Debug)]
pub(crate) struct Encoded {
    attrs: XLA_FFI_Attrs,
    _types: Box<[c_int]>,
    _names: Box<[Box<XLA_FFI_ByteSpan>]>,
    _name_pointers: Box<[*mut XLA_FFI_ByteSpan]>,
    _values: Box<[*mut c_void]>,
    _owned: Vec<Owned>,
}

/// What a value is made of.
#[derive(Debug)]
#[expect(dead_code, reason = "it is read by pointers to it")]
enum Owned {
    Scalar(Box<XLA_FFI_Scalar>),
    Array(Box<XLA_FFI_Array>),
    Span(Box<XLA_FFI_ByteSpan>),
    Dictionary(Box<Encoded>),
    Elements(Buffer),
    Text(Box<[u8]>),
}

// SAFETY: the pointers point into its own memory, which nothing writes; handlers have promised to read it.
unsafe impl Send for Encoded {}
// SAFETY: as above.
unsafe impl Sync for Encoded {}

/// The number of an element type, which is that of XLA's `PrimitiveType`.
pub(crate) fn type_number(ty: hlo::ElementType) -> c_int {
    c_int::from(ty.xla_number())
}

fn span(bytes: &[u8]) -> Box<XLA_FFI_ByteSpan> {
    Box::new(XLA_FFI_ByteSpan { ptr: bytes.as_ptr().cast(), len: bytes.len() })
}

impl Encoded {
    pub(crate) fn new(attributes: &Attributes) -> Self {
        let mut owned = Vec::new();
        let (mut types, mut names, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (name, attribute) in attributes.iter() {
            let name: Box<[u8]> = name.as_bytes().into();
            names.push(span(&name));
            owned.push(Owned::Text(name));
            let (ty, value) = encode(attribute, &mut owned);
            types.push(ty);
            values.push(value);
        }
        let mut types: Box<[c_int]> = types.into();
        let mut names: Box<[Box<XLA_FFI_ByteSpan>]> = names.into();
        let mut name_pointers: Box<[*mut XLA_FFI_ByteSpan]> =
            names.iter_mut().map(|n| &raw mut **n).collect();
        let mut values: Box<[*mut c_void]> = values.into();
        let attrs = XLA_FFI_Attrs {
            struct_size: size_of::<XLA_FFI_Attrs>(),
            extension_start: ptr::null_mut(),
            size: types.len() as i64,
            types: types.as_mut_ptr(),
            names: name_pointers.as_mut_ptr(),
            attrs: values.as_mut_ptr(),
        };
        Self {
            attrs,
            _types: types,
            _names: names,
            _name_pointers: name_pointers,
            _values: values,
            _owned: owned,
        }
    }

    /// For a call frame.
    pub(crate) fn attrs(&self) -> XLA_FFI_Attrs {
        self.attrs
    }
}

fn elements(buffer: &Buffer, owned: &mut Vec<Owned>) -> *mut c_void {
    let copy = buffer.clone();
    let data = hlo_client::bytes_of(&copy).as_ptr().cast_mut().cast();
    owned.push(Owned::Elements(copy));
    data
}

/// As deep as dictionaries nest, which their reader bounds.
fn encode(attribute: &Attribute, owned: &mut Vec<Owned>) -> (c_int, *mut c_void) {
    match attribute {
        Attribute::Scalar(buffer) => {
            let value = elements(buffer, owned);
            let mut scalar = Box::new(XLA_FFI_Scalar { dtype: type_number(buffer.element_type()), value });
            let pointer = (&raw mut *scalar).cast();
            owned.push(Owned::Scalar(scalar));
            (ATTR_SCALAR, pointer)
        }
        Attribute::Array(buffer) => {
            let data = elements(buffer, owned);
            let dtype = type_number(buffer.element_type());
            let mut array = Box::new(XLA_FFI_Array { dtype, size: buffer.len(), data });
            let pointer = (&raw mut *array).cast();
            owned.push(Owned::Array(array));
            (ATTR_ARRAY, pointer)
        }
        Attribute::Text(text) => string(text, owned),
        Attribute::Function(name) => string(name.as_bytes(), owned),
        Attribute::Dictionary(attributes) => {
            let mut dictionary = Box::new(Encoded::new(attributes));
            let pointer = (&raw mut dictionary.attrs).cast();
            owned.push(Owned::Dictionary(dictionary));
            (ATTR_DICTIONARY, pointer)
        }
    }
}

fn string(text: &[u8], owned: &mut Vec<Owned>) -> (c_int, *mut c_void) {
    let text: Box<[u8]> = text.into();
    let mut span = span(&text);
    let pointer = (&raw mut *span).cast();
    owned.push(Owned::Text(text));
    owned.push(Owned::Span(span));
    (ATTR_STRING, pointer)
}
