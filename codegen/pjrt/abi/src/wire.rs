//! The wire format of protocol buffers, for messages of which only some fields are read here.

use crate::failure::{Failure, Result};

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// Of a field with a varint.
    Number(u64),
    /// Of all others.
    Bytes(&'a [u8]),
}

/// The fields of a message, one after another.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Of a message.
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let split = usize::try_from(count).ok().and_then(|n| self.rest.split_at_checked(n));
        let (taken, rest) =
            split.ok_or_else(|| Failure::invalid("the message ends in the midst of a field"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next number, without a key.
    ///
    /// # Errors
    /// The bytes do not begin with a varint.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Failure::invalid("the message has a number of more than 64 bits"))
    }

    /// The next field, with its number.
    ///
    /// # Errors
    /// The remaining bytes are no field.
    pub fn field(&mut self) -> Result<Option<(u64, Value<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let count = self.varint()?;
                Value::Bytes(self.take(count)?)
            }
            5 => Value::Bytes(self.take(4)?),
            other => return Err(Failure::invalid(format!("the message has a field of wire type {other}"))),
        };
        Ok(Some((key >> 3, value)))
    }
}

/// All fields of a message.
///
/// # Errors
/// The bytes are no message.
pub fn fields(message: &[u8]) -> Result<Vec<(u64, Value<'_>)>> {
    let mut rest = Fields::new(message);
    let mut all = Vec::new();
    while let Some(field) = rest.field()? {
        all.push(field);
    }
    Ok(all)
}

/// Appends a field that is a message, text or bytes.
pub fn put(message: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(message, number << 3 | 2);
    put_varint(message, bytes.len() as u64);
    message.extend(bytes);
}

/// Appends a field that is a number.
pub fn put_number(message: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(message, number << 3);
    put_varint(message, value);
}

/// Appends a field of numbers.
pub fn put_packed(message: &mut Vec<u8>, number: u64, values: impl Iterator<Item = u64>) {
    let mut packed = Vec::new();
    values.for_each(|value| put_varint(&mut packed, value));
    put(message, number, &packed);
}

fn put_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_read() {
        let long = vec![7; 300];
        let mut message = Vec::new();
        put(&mut message, 1, b"abc");
        put(&mut message, 99, &long);
        assert_eq!(fields(&message).unwrap(), [(1, Value::Bytes(b"abc")), (99, Value::Bytes(&long))]);
        assert!(fields(&message[..message.len() - 1]).is_err());
        assert!(fields(&[0xff; 11]).is_err());
        assert!(fields(&[3]).is_err());
    }
}
