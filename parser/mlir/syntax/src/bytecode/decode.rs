//! Decoding one attribute or type into the fields that its table names. Nothing is resolved: fields refer to
//! other entries by index.

use smallvec::SmallVec;

use hlo::diag::codes::bytecode as codes;

use super::codes::{Encoding, Field};
use super::cursor::{Cursor, Fallible};

/// A field as it was read.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// An attribute.
    Attr(u32),
    /// An attribute or none.
    OptionalAttr(Option<u32>),
    /// A type.
    Type(u32),
    /// A list of attributes, or of pairs of them one after the other.
    Attrs(Vec<u32>),
    /// A list of types.
    Types(Vec<u32>),
    /// A string.
    Text(u32),
    /// Strings.
    Texts(Vec<u32>),
    /// A number.
    Number(u64),
    /// A number or none.
    OptionalNumber(Option<u64>),
    /// A signed number.
    Signed(i64),
    /// Numbers.
    Numbers(Vec<u64>),
    /// Signed numbers.
    SignedList(Vec<i64>),
    /// A blob, as a range of the file.
    Blob(u32, u32),
    /// An integer, sign-extended from 64 bits or of up to 128.
    Integer(i128),
    /// The case of an enumeration.
    Case(&'static str),
    /// A resource.
    Resource(u32),
}

/// How many entries of each kind there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Attributes.
    pub(super) attributes: usize,
    /// Types.
    pub(super) types: usize,
    /// Strings.
    pub(super) strings: usize,
    /// Resources.
    pub(super) resources: usize,
}

/// An attribute or a type, by its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reference {
    Attr(u32),
    Type(u32),
}

/// An entry that is being read.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    /// Its kind.
    pub(super) encoding: &'static Encoding,
    /// What was read.
    pub(super) parts: SmallVec<[Part; 3]>,
    /// Where reading stands.
    pub(super) cursor: Cursor<'a>,
    /// First byte of the entry.
    pub(super) start: usize,
}

/// What a decoder needs to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// Nothing: all fields are read.
    Complete,
    /// The width of this type's numbers.
    WidthOf(u32),
}

impl<'a> Decoder<'a> {
    /// Reads fields. Where the width of an integer or float depends on a type, `width` is asked for it; if it
    /// does not know, the decoder stops and can go on later.
    pub(super) fn advance(
        &mut self,
        limits: Limits,
        mut width: impl FnMut(u32) -> Option<u32>,
    ) -> Fallible<Progress> {
        while let Some(&field) = self.encoding.fields.get(self.parts.len()) {
            let part = match field {
                Field::Integer | Field::Float => {
                    let Some(Part::Type(ty)) = self.parts.last() else {
                        unreachable!("invariant: tables have a type before numbers of its width")
                    };
                    let Some(width) = width(*ty) else { return Ok(Progress::WidthOf(*ty)) };
                    Part::Integer(self.integer(width)?)
                }
                _ => self.part(field, limits)?,
            };
            self.parts.push(part);
        }
        self.cursor.finish(codes::BAD_ENTRY, &format!("the {}", self.encoding.name))?;
        Ok(Progress::Complete)
    }

    fn part(&mut self, field: Field, limits: Limits) -> Fallible<Part> {
        let c = &mut self.cursor;
        let attribute = |c: &mut Cursor<'_>| Ok(c.index(limits.attributes, "attribute")? as u32);
        Ok(match field {
            Field::Attr => Part::Attr(attribute(c)?),
            Field::OptionalAttr => {
                let start = c.offset();
                let (index, there) = c.flagged()?;
                Part::OptionalAttr(match there {
                    true => Some(c.check_index(index, limits.attributes, start, "attribute")? as u32),
                    false => None,
                })
            }
            Field::CountedAttr => {
                Part::OptionalAttr(if c.varint()? == 0 { None } else { Some(attribute(c)?) })
            }
            Field::Type => Part::Type(c.index(limits.types, "type")? as u32),
            Field::Attrs => {
                let n = c.list("attributes")?;
                Part::Attrs((0..n).map(|_| attribute(c)).collect::<Fallible<_>>()?)
            }
            Field::Types => {
                let n = c.list("types")?;
                Part::Types(
                    (0..n).map(|_| Ok(c.index(limits.types, "type")? as u32)).collect::<Fallible<_>>()?,
                )
            }
            Field::Pairs => {
                let n = c.list("pairs of attributes")?;
                Part::Attrs((0..2 * n).map(|_| attribute(c)).collect::<Fallible<_>>()?)
            }
            Field::Text => Part::Text(c.index(limits.strings, "string")? as u32),
            Field::Texts => {
                let mut texts = Vec::new();
                while !c.is_empty() {
                    texts.push(c.index(limits.strings, "string")? as u32);
                }
                Part::Texts(texts)
            }
            Field::Count => Part::Number(c.varint()?),
            Field::OptionalCount => {
                let (n, there) = c.flagged()?;
                Part::OptionalNumber(there.then_some(n))
            }
            Field::Signed => Part::Signed(c.signed()?),
            Field::Counts => {
                let n = c.list("numbers")?;
                Part::Numbers((0..n).map(|_| c.varint()).collect::<Fallible<_>>()?)
            }
            Field::SignedList => {
                let n = c.list("numbers")?;
                Part::SignedList((0..n).map(|_| c.signed()).collect::<Fallible<_>>()?)
            }
            Field::Bool => Part::Number(u64::from(c.byte()? != 0)),
            Field::Blob => {
                let length = c.varint()?;
                let start = c.offset();
                c.bytes(length)?;
                Part::Blob(start as u32, c.offset() as u32)
            }
            Field::Double => Part::Number(c.signed()? as u64),
            Field::Doubles => {
                let n = c.list("numbers")?;
                Part::Numbers((0..n).map(|_| Ok(c.signed()? as u64)).collect::<Fallible<_>>()?)
            }
            Field::Resource => Part::Resource(c.index(limits.resources, "resource")? as u32),
            Field::Enum(of) => {
                let start = c.offset();
                let number = c.varint()?;
                match of.case(number) {
                    Some(case) => Part::Case(case),
                    None => {
                        let message =
                            format!("{number} is no {}, which are {}", of.name, of.cases.join(", "));
                        return Err(c.error(codes::BAD_ENTRY, start, message));
                    }
                }
            }
            Field::Integer | Field::Float => unreachable!("invariant: read where the type is known"),
        })
    }

    /// Up to 8 bits are a byte, up to 64 a zigzag number, more a list of words in zigzag form.
    fn integer(&mut self, width: u32) -> Fallible<i128> {
        let c = &mut self.cursor;
        let start = c.offset();
        match width {
            0..=8 => Ok(i128::from(c.byte()?)),
            9..=64 => Ok(i128::from(c.signed()?)),
            65..=128 => {
                let n = c.list("words")?;
                let mut words = [0u64; 2];
                for at in 0..n {
                    let word = c.signed()? as u64;
                    match words.get_mut(at) {
                        Some(slot) => *slot = word,
                        None if word == 0 => {}
                        None => {
                            let message = format!("an integer of {width} bits has more than two words");
                            return Err(c.error(codes::BAD_ENTRY, start, message));
                        }
                    }
                }
                Ok((u128::from(words[1]) << 64 | u128::from(words[0])) as i128)
            }
            _ => {
                let message = format!("integers of up to 128 bits can be read, this one has {width}");
                Err(c.error(codes::BAD_ENTRY, start, message))
            }
        }
    }

    /// Calls `each` with each entry that a field refers to.
    pub(super) fn references(&self, mut each: impl FnMut(Reference)) {
        for part in &self.parts {
            match part {
                Part::Attr(a) | Part::OptionalAttr(Some(a)) => each(Reference::Attr(*a)),
                Part::Attrs(list) => list.iter().for_each(|&a| each(Reference::Attr(a))),
                Part::Type(t) => each(Reference::Type(*t)),
                Part::Types(list) => list.iter().for_each(|&t| each(Reference::Type(t))),
                Part::OptionalAttr(None)
                | Part::Text(_)
                | Part::Texts(_)
                | Part::Number(_)
                | Part::OptionalNumber(_)
                | Part::Signed(_)
                | Part::Numbers(_)
                | Part::SignedList(_)
                | Part::Blob(..)
                | Part::Integer(_)
                | Part::Case(_)
                | Part::Resource(_) => {}
            }
        }
    }

    // The entry of a table's row.

    pub(super) fn attr(&self, at: usize) -> u32 {
        match self.parts[at] {
            Part::Attr(a) => a,
            _ => unreachable!("invariant: the table has an attribute there"),
        }
    }

    pub(super) fn optional_attr(&self, at: usize) -> Option<u32> {
        match self.parts[at] {
            Part::OptionalAttr(a) => a,
            _ => unreachable!("invariant: the table has an optional attribute there"),
        }
    }

    pub(super) fn ty(&self, at: usize) -> u32 {
        match self.parts[at] {
            Part::Type(t) => t,
            _ => unreachable!("invariant: the table has a type there"),
        }
    }

    pub(super) fn attrs(&self, at: usize) -> &[u32] {
        match &self.parts[at] {
            Part::Attrs(list) => list,
            _ => unreachable!("invariant: the table has attributes there"),
        }
    }

    pub(super) fn types(&self, at: usize) -> &[u32] {
        match &self.parts[at] {
            Part::Types(list) => list,
            _ => unreachable!("invariant: the table has types there"),
        }
    }

    pub(super) fn text(&self, at: usize) -> u32 {
        match self.parts[at] {
            Part::Text(t) => t,
            _ => unreachable!("invariant: the table has a string there"),
        }
    }

    pub(super) fn texts(&self, at: usize) -> &[u32] {
        match &self.parts[at] {
            Part::Texts(list) => list,
            _ => unreachable!("invariant: the table has strings there"),
        }
    }

    pub(super) fn number(&self, at: usize) -> u64 {
        match self.parts[at] {
            Part::Number(n) => n,
            _ => unreachable!("invariant: the table has a number there"),
        }
    }

    pub(super) fn optional_number(&self, at: usize) -> Option<u64> {
        match self.parts[at] {
            Part::OptionalNumber(n) => n,
            _ => unreachable!("invariant: the table has an optional number there"),
        }
    }

    pub(super) fn signed(&self, at: usize) -> i64 {
        match self.parts[at] {
            Part::Signed(n) => n,
            _ => unreachable!("invariant: the table has a signed number there"),
        }
    }

    pub(super) fn numbers(&self, at: usize) -> &[u64] {
        match &self.parts[at] {
            Part::Numbers(list) => list,
            _ => unreachable!("invariant: the table has numbers there"),
        }
    }

    pub(super) fn signed_list(&self, at: usize) -> &[i64] {
        match &self.parts[at] {
            Part::SignedList(list) => list,
            _ => unreachable!("invariant: the table has signed numbers there"),
        }
    }

    pub(super) fn blob(&self, at: usize) -> (usize, usize) {
        match self.parts[at] {
            Part::Blob(start, end) => (start as usize, end as usize),
            _ => unreachable!("invariant: the table has a blob there"),
        }
    }

    pub(super) fn integer_value(&self, at: usize) -> i128 {
        match self.parts[at] {
            Part::Integer(n) => n,
            _ => unreachable!("invariant: the table has an integer there"),
        }
    }

    pub(super) fn case(&self, at: usize) -> &'static str {
        match self.parts[at] {
            Part::Case(case) => case,
            _ => unreachable!("invariant: the table has an enumeration there"),
        }
    }

    pub(super) fn resource(&self, at: usize) -> u32 {
        match self.parts[at] {
            Part::Resource(r) => r,
            _ => unreachable!("invariant: the table has a resource there"),
        }
    }

    /// An error about the entry.
    pub(super) fn error(&self, message: impl Into<String>) -> Box<hlo::diag::Diagnostic> {
        let span = hlo::Span::new(self.start, self.cursor.end());
        self.cursor.error_at(codes::BAD_ENTRY, span, format!("{}: {}", self.encoding.name, message.into()))
    }
}
