//! A message of any kind, as read or to be written.
//!
//! **Invariants:** fields are sorted by number, each number once, and each value is of the variant that
//! [`Value`] says for the field's type; what is not in the tables is kept as the bytes that stood in the
//! input. Bytes and packed numbers are slices of the input as long as nobody changes them, so that large
//! literals are copied once, into the literal.

use std::borrow::Cow;

use prost::encoding::encode_varint;

use crate::schema::MessageType;

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) ty: &'static MessageType,
    fields: Vec<(u32, Value<'a>)>,
    /// Records of unknown fields, keys included.
    pub(crate) unknown: Vec<Cow<'a, [u8]>>,
}

/// The value of a field.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    /// A number that stands once: integers, enumerators and booleans as on the wire (sign-extended to 64
    /// bits), floats as their bits.
    Number(u64),
    /// Repeated numbers in packed encoding.
    Packed(Cow<'a, [u8]>),
    /// `string`
    Text(Cow<'a, str>),
    /// Repeated `string`
    Texts(Vec<Cow<'a, str>>),
    /// `bytes`
    Bytes(Cow<'a, [u8]>),
    /// Repeated `bytes`
    BytesList(Vec<Cow<'a, [u8]>>),
    /// A message that stands once.
    Message(Box<Message<'a>>),
    /// Repeated messages.
    Messages(Vec<Message<'a>>),
    /// Repeated messages that are not decoded yet: bodies without keys and lengths.
    Encoded(Vec<&'a [u8]>),
}

impl Value<'_> {
    /// How many values stand there, packed numbers aside.
    pub(crate) fn count(&self) -> usize {
        match self {
            Value::Number(_) | Value::Packed(_) | Value::Text(_) | Value::Bytes(_) | Value::Message(_) => 1,
            Value::Texts(list) => list.len(),
            Value::BytesList(list) => list.len(),
            Value::Messages(list) => list.len(),
            Value::Encoded(list) => list.len(),
        }
    }
}

impl<'a> Message<'a> {
    /// An empty one.
    pub(crate) fn new(ty: &'static MessageType) -> Self {
        Self { ty, fields: Vec::new(), unknown: Vec::new() }
    }

    /// The same, without borrowing.
    pub(crate) fn into_owned(self) -> Message<'static> {
        fn all<T: ?Sized + ToOwned + 'static>(list: Vec<Cow<'_, T>>) -> Vec<Cow<'static, T>> {
            list.into_iter().map(|v| Cow::Owned(v.into_owned())).collect()
        }
        let fields = self.fields.into_iter().map(|(number, value)| {
            let value = match value {
                Value::Number(v) => Value::Number(v),
                Value::Packed(b) => Value::Packed(Cow::Owned(b.into_owned())),
                Value::Text(t) => Value::Text(Cow::Owned(t.into_owned())),
                Value::Texts(list) => Value::Texts(all(list)),
                Value::Bytes(b) => Value::Bytes(Cow::Owned(b.into_owned())),
                Value::BytesList(list) => Value::BytesList(all(list)),
                Value::Message(m) => Value::Message(Box::new(m.into_owned())),
                Value::Messages(list) => Value::Messages(list.into_iter().map(Message::into_owned).collect()),
                Value::Encoded(_) => unreachable!("invariant: only what is read is decoded late"),
            };
            (number, value)
        });
        Message { ty: self.ty, fields: fields.collect(), unknown: all(self.unknown) }
    }

    /// All fields that are there, by number.
    pub(crate) fn fields(&self) -> &[(u32, Value<'a>)] {
        &self.fields
    }

    /// The same, taken apart.
    pub(crate) fn into_fields(self) -> Vec<(u32, Value<'a>)> {
        self.fields
    }

    /// The value of a field.
    pub(crate) fn get(&self, number: u32) -> Option<&Value<'a>> {
        self.fields.binary_search_by_key(&number, |f| f.0).ok().map(|i| &self.fields[i].1)
    }

    /// The value of a field, to change it.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Value<'a>> {
        self.fields.binary_search_by_key(&number, |f| f.0).ok().map(|i| &mut self.fields[i].1)
    }

    /// Adds or replaces the value of a field.
    pub(crate) fn set(&mut self, number: u32, value: Value<'a>) {
        debug_assert!(self.ty.field(number).is_some(), "{} has no field {number}", self.ty.name);
        // Writers and encoders mostly go by number.
        match self.fields.last() {
            Some(last) if last.0 >= number => match self.fields.binary_search_by_key(&number, |f| f.0) {
                Ok(i) => self.fields[i].1 = value,
                Err(i) => self.fields.insert(i, (number, value)),
            },
            _ => self.fields.push((number, value)),
        }
    }

    /// Takes a field out.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Value<'a>> {
        self.fields.binary_search_by_key(&number, |f| f.0).ok().map(|i| self.fields.remove(i).1)
    }

    // ---- writing; what is 0 or empty is left out, as proto3 does, but by `put_*`

    /// An integer, boolean or enumerator.
    pub(crate) fn int(&mut self, number: u32, value: i64) {
        if value != 0 {
            self.put_int(number, value);
        }
    }

    /// The same, also if it is 0.
    pub(crate) fn put_int(&mut self, number: u32, value: i64) {
        self.set(number, Value::Number(value as u64));
    }

    /// A boolean.
    pub(crate) fn bool(&mut self, number: u32, value: bool) {
        self.int(number, i64::from(value));
    }

    /// A `double`.
    pub(crate) fn double(&mut self, number: u32, value: f64) {
        if value.to_bits() != 0 {
            self.set(number, Value::Number(value.to_bits()));
        }
    }

    /// A `float`.
    pub(crate) fn float(&mut self, number: u32, value: f32) {
        if value.to_bits() != 0 {
            self.set(number, Value::Number(u64::from(value.to_bits())));
        }
    }

    /// A string.
    pub(crate) fn text(&mut self, number: u32, value: impl Into<Cow<'a, str>>) {
        let value = value.into();
        if !value.is_empty() {
            self.set(number, Value::Text(value));
        }
    }

    /// Bytes.
    pub(crate) fn bytes(&mut self, number: u32, value: impl Into<Cow<'a, [u8]>>) {
        let value = value.into();
        if !value.is_empty() {
            self.set(number, Value::Bytes(value));
        }
    }

    /// Repeated integers.
    pub(crate) fn ints(&mut self, number: u32, values: impl IntoIterator<Item = i64>) {
        let mut packed = Vec::new();
        for v in values {
            encode_varint(v as u64, &mut packed);
        }
        self.packed(number, packed);
    }

    /// Repeated numbers, packed.
    pub(crate) fn packed(&mut self, number: u32, packed: impl Into<Cow<'a, [u8]>>) {
        let packed = packed.into();
        if !packed.is_empty() {
            self.set(number, Value::Packed(packed));
        }
    }

    /// A message, also if it is empty.
    pub(crate) fn message(&mut self, number: u32, value: Message<'a>) {
        self.set(number, Value::Message(Box::new(value)));
    }

    /// Repeated messages.
    pub(crate) fn messages(&mut self, number: u32, values: Vec<Message<'a>>) {
        if !values.is_empty() {
            self.set(number, Value::Messages(values));
        }
    }

    /// The message of a field, made if it is not there.
    pub(crate) fn child(&mut self, number: u32, ty: &'static MessageType) -> &mut Message<'a> {
        if self.get(number).is_none() {
            self.message(number, Message::new(ty));
        }
        match self.get_mut(number) {
            Some(Value::Message(m)) => m,
            _ => unreachable!("invariant: a field of messages holds a message"),
        }
    }
}
