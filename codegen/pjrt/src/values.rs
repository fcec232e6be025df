//! Named values: options that callers give, and attributes that they are told.

use std::ffi::c_void;
use std::ptr;

use crate::api::numbers::named_value;
use crate::api::structs::PJRT_NamedValue;
use crate::border;
use crate::error::{Failure, Result};

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number.
    Int(i64),
    /// Numbers.
    Ints(Vec<i64>),
    /// A float.
    Float(f32),
    /// True or false.
    Bool(bool),
}

/// Values with names, as callers read them: an array of structs, which lives as long as this.
#[derive(Debug)]
pub struct NamedValues {
    structs: Box<[PJRT_NamedValue]>,
    /// What they point at.
    _values: Vec<(String, Value)>,
}

// SAFETY: the structs point at the values, which nobody changes.
unsafe impl Send for NamedValues {}
// SAFETY: the same.
unsafe impl Sync for NamedValues {}

impl NamedValues {
    /// Of names and values.
    pub fn new(values: Vec<(String, Value)>) -> Self {
        // The numbers of a union are its first bytes, which are the low ones of a pointer.
        let number = |n: u64| ptr::without_provenance::<c_void>(n as usize);
        let one = |(name, value): &(String, Value)| {
            let (r#type, value, value_size) = match value {
                Value::Text(text) => (named_value::STRING, text.as_ptr().cast::<c_void>(), text.len()),
                Value::Int(n) => (named_value::INT64, number(n.cast_unsigned()), 1),
                Value::Ints(n) => (named_value::INT64_LIST, n.as_ptr().cast(), n.len()),
                Value::Float(x) => (named_value::FLOAT, number(u64::from(x.to_bits())), 1),
                Value::Bool(b) => (named_value::BOOL, number(u64::from(*b)), 1),
            };
            PJRT_NamedValue {
                struct_size: size_of::<PJRT_NamedValue>(),
                extension_start: ptr::null_mut(),
                name: name.as_ptr().cast(),
                name_size: name.len(),
                r#type,
                value,
                value_size,
            }
        };
        let structs = values.iter().map(one).collect();
        Self { structs, _values: values }
    }

    /// The array.
    pub fn pointer(&self) -> *const PJRT_NamedValue {
        self.structs.as_ptr()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.structs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.structs.is_empty()
    }
}

/// The values that a caller gives.
pub fn read(from: *const PJRT_NamedValue, count: usize) -> Result<Vec<(String, Value)>> {
    if from.is_null() && count > 0 {
        return Err(Failure::invalid(format!("{count} named values, but no array of them")));
    }
    let one = |n: usize| {
        let given = border::pointed(from.wrapping_add(n))?;
        let name = border::text(given.name, given.name_size, "the name of a value")?;
        let number = given.value.addr() as u64;
        let value = match given.r#type {
            named_value::STRING => {
                Value::Text(border::text(given.value.cast(), given.value_size, "a named value")?)
            }
            named_value::INT64 => Value::Int(number.cast_signed()),
            named_value::INT64_LIST => {
                Value::Ints(border::elements(given.value.cast::<i64>(), given.value_size, "a named value")?)
            }
            named_value::FLOAT => Value::Float(f32::from_bits(number as u32)),
            named_value::BOOL => Value::Bool(number & 0xff != 0),
            other => {
                return Err(Failure::invalid(format!("the value `{name}` has the unknown type {other}")));
            }
        };
        Ok((name, value))
    };
    (0..count).map(one).collect()
}
