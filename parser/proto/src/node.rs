//! Reading from a message: its fields with their defaults, and errors that give a field's path.

use hlo::attrs::Ints;
use hlo::diag::codes::{Code, proto::*};

use crate::message::{Message, Value};
use crate::path::Path;
use crate::schema::Type;
use crate::wire::{Res, error, narrowed};

/// A message and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'n> {
    pub(crate) m: &'n Message<'n>,
    pub(crate) path: &'n Path<'n>,
}

impl<'n> Node<'n> {
    pub(crate) fn new(m: &'n Message<'n>, path: &'n Path<'n>) -> Self {
        Self { m, path }
    }

    /// The name of a field.
    pub(crate) fn name(&self, number: u32) -> &'static str {
        self.m.ty.field(number).map_or("", |f| f.name)
    }

    /// An error about a field.
    pub(crate) fn error(
        &self,
        code: Code,
        number: u32,
        message: impl std::fmt::Display,
    ) -> Box<hlo::Diagnostic> {
        error(code, format!("{}: {message}", self.path.of(self.name(number))))
    }

    /// An error about the message as a whole.
    pub(crate) fn error_here(&self, code: Code, message: impl std::fmt::Display) -> Box<hlo::Diagnostic> {
        error(code, format!("{}: {message}", self.path))
    }

    /// That a field must be there.
    pub(crate) fn missing(&self, number: u32) -> Box<hlo::Diagnostic> {
        self.error(PROTO_MISSING_FIELD, number, "is not there")
    }

    /// Whether a field is there.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.m.get(number).is_some()
    }

    /// An integer, if it is there.
    pub(crate) fn given_int(&self, number: u32) -> Option<i64> {
        match self.m.get(number) {
            Some(Value::Number(v)) => Some(*v as i64),
            _ => None,
        }
    }

    /// An integer or enumerator; 0 if it is not there.
    pub(crate) fn int(&self, number: u32) -> i64 {
        self.given_int(number).unwrap_or(0)
    }

    /// An integer that says something if it is not 0.
    pub(crate) fn nonzero(&self, number: u32) -> Option<i64> {
        self.given_int(number).filter(|&v| v != 0)
    }

    pub(crate) fn bool(&self, number: u32) -> bool {
        self.int(number) != 0
    }

    pub(crate) fn float(&self, number: u32) -> f32 {
        f32::from_bits(self.int(number) as u32)
    }

    pub(crate) fn double(&self, number: u32) -> f64 {
        f64::from_bits(self.int(number) as u64)
    }

    /// A string; empty if it is not there.
    pub(crate) fn text(&self, number: u32) -> &'n str {
        match self.m.get(number) {
            Some(Value::Text(t)) => t,
            _ => "",
        }
    }

    /// A string that says something if it is not empty.
    pub(crate) fn given_text(&self, number: u32) -> Option<Box<str>> {
        let text = self.text(number);
        (!text.is_empty()).then(|| text.into())
    }

    /// Repeated strings.
    pub(crate) fn texts(&self, number: u32) -> Vec<Box<str>> {
        match self.m.get(number) {
            Some(Value::Texts(list)) => list.iter().map(|t| (&**t).into()).collect(),
            _ => Vec::new(),
        }
    }

    /// Bytes; none if the field is not there.
    pub(crate) fn bytes(&self, number: u32) -> &'n [u8] {
        match self.m.get(number) {
            Some(Value::Bytes(b)) => b,
            _ => &[],
        }
    }

    /// Repeated bytes.
    pub(crate) fn bytes_list(&self, number: u32) -> Vec<&'n [u8]> {
        match self.m.get(number) {
            Some(Value::BytesList(list)) => list.iter().map(|b| &**b).collect(),
            _ => Vec::new(),
        }
    }

    /// Repeated numbers as they are packed.
    pub(crate) fn packed(&self, number: u32) -> &'n [u8] {
        match self.m.get(number) {
            Some(Value::Packed(b)) => b,
            _ => &[],
        }
    }

    /// Repeated integers.
    pub(crate) fn int_list(&self, number: u32) -> Res<Vec<i64>> {
        let ty = self.m.ty.field(number).map_or(&Type::Int64, |f| &f.ty);
        let mut rest = self.packed(number);
        let mut out = Vec::new();
        while !rest.is_empty() {
            let value = prost::encoding::decode_varint(&mut rest)
                .map_err(|_| self.error(PROTO_MALFORMED, number, "a number does not end within ten bytes"))?;
            out.push(narrowed(ty, value) as i64);
        }
        Ok(out)
    }

    /// The same, as attributes hold them.
    pub(crate) fn ints(&self, number: u32) -> Res<Ints> {
        Ok(self.int_list(number)?.into())
    }

    /// Repeated booleans.
    pub(crate) fn bools(&self, number: u32) -> Res<Vec<bool>> {
        Ok(self.int_list(number)?.into_iter().map(|v| v != 0).collect())
    }

    /// What `read` makes of the message of a field, if it is there.
    pub(crate) fn child<T>(&self, number: u32, read: impl FnOnce(Node<'_>) -> T) -> Option<T> {
        let Some(Value::Message(m)) = self.m.get(number) else { return None };
        let path = self.path.field(self.name(number), None);
        Some(read(Node { m, path: &path }))
    }

    /// The same of a message that must be there.
    pub(crate) fn required<T>(&self, number: u32, read: impl FnOnce(Node<'_>) -> Res<T>) -> Res<T> {
        self.child(number, read).unwrap_or_else(|| Err(self.missing(number)))
    }

    /// What `read` makes of each of repeated messages.
    pub(crate) fn children<T>(&self, number: u32, mut read: impl FnMut(Node<'_>) -> Res<T>) -> Res<Vec<T>> {
        let Some(Value::Messages(list)) = self.m.get(number) else { return Ok(Vec::new()) };
        let name = self.name(number);
        let each = list.iter().enumerate();
        each.map(|(i, m)| read(Node { m, path: &self.path.field(name, Some(i)) })).collect()
    }

    /// How many values a repeated field of messages has.
    pub(crate) fn count(&self, number: u32) -> usize {
        match self.m.get(number) {
            Some(Value::Messages(list)) => list.len(),
            Some(Value::Encoded(list)) => list.len(),
            _ => 0,
        }
    }

    /// What a field's enumerator means.
    pub(crate) fn choice<T: Copy>(&self, number: u32, choices: &[(i32, T)]) -> Res<T> {
        let value = self.int(number);
        choices
            .iter()
            .find(|c| i64::from(c.0) == value)
            .map(|c| c.1)
            .ok_or_else(|| self.bad_enumerator(number, value))
    }

    /// That an enumerator has no meaning here.
    pub(crate) fn bad_enumerator(&self, number: u32, value: i64) -> Box<hlo::Diagnostic> {
        let known = match self.m.ty.field(number).map(|f| &f.ty) {
            Some(Type::Enum(e)) => e.name_of(value).map(|name| (e.name, name)),
            _ => None,
        };
        match known {
            Some((_, name)) => {
                self.error(PROTO_BAD_VALUE, number, format_args!("{name} has no meaning here"))
            }
            None => self.error(PROTO_BAD_VALUE, number, format_args!("there is no enumerator {value}")),
        }
    }
}
