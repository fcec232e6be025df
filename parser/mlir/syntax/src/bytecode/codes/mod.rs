//! How each kind of attribute and type is encoded, as data: one table a dialect, read by both decoder and
//! encoder.
//!
//! An entry is its kind's code and then its fields. A field is a number, a string, a blob, or the index of
//! another entry.

pub(super) mod builtin;
pub(super) mod chlo;
pub(super) mod sdy;
pub(super) mod stablehlo;
pub(super) mod vhlo;

use super::version::Version;

/// A field of an encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    /// An attribute.
    Attr,
    /// An attribute or none: the lowest bit of its index says whether it is there.
    OptionalAttr,
    /// An attribute or none: a number, 1 or 0, stands before it.
    CountedAttr,
    /// A type.
    Type,
    /// A list of attributes.
    Attrs,
    /// A list of types.
    Types,
    /// A list of pairs of attributes.
    Pairs,
    /// A string.
    Text,
    /// All that is left, as strings.
    Texts,
    /// An unsigned number.
    Count,
    /// An unsigned number or none: the lowest bit says whether it is there.
    OptionalCount,
    /// A signed number.
    Signed,
    /// A list of unsigned numbers.
    Counts,
    /// A list of signed numbers.
    SignedList,
    /// A byte, 0 or 1.
    Bool,
    /// Bytes.
    Blob,
    /// An integer of the width of the type that stands before it.
    Integer,
    /// A float of the type that stands before it.
    Float,
    /// A float of 64 bits.
    Double,
    /// A list of those.
    Doubles,
    /// The index of a resource.
    Resource,
    /// A number that is a case of an enumeration.
    Enum(&'static Enumeration),
}

/// An enumeration.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Enumeration {
    /// The name of StableHLO's attribute, `comparison_direction`.
    pub(super) name: &'static str,
    /// The number of the first case.
    pub(super) first: u64,
    /// The cases.
    pub(super) cases: &'static [&'static str],
}

impl Enumeration {
    /// The case of a number.
    pub(super) fn case(&self, number: u64) -> Option<&'static str> {
        self.cases.get(usize::try_from(number.checked_sub(self.first)?).ok()?).copied()
    }

    /// The number of a case.
    pub(super) fn number(&self, case: &str) -> Option<u64> {
        Some(self.first + self.cases.iter().position(|c| *c == case)? as u64)
    }
}

/// A kind of attribute or type.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Encoding {
    /// The number in the file.
    pub(super) code: u64,
    /// For messages.
    pub(super) name: &'static str,
    /// The version of VHLO that it came with.
    pub(super) since: Version,
    /// What follows the code.
    pub(super) fields: &'static [Field],
}

/// The encoding of a code. Tables have the code `i` at index `i` but for codes that were never used.
pub(super) fn find(table: &[&'static Encoding], code: u64) -> Option<&'static Encoding> {
    let at = usize::try_from(code).ok()?;
    table
        .get(at)
        .copied()
        .filter(|e| e.code == code)
        .or_else(|| table.iter().copied().find(|e| e.code == code))
}

/// Declares a table: `NAME code "text" since [fields],`; each row is a constant, too.
macro_rules! encodings {
    ($(#[$doc:meta])* $table:ident: $($name:ident $code:literal $text:literal $major:literal $minor:literal [$($field:expr),*],)*) => {
        $(
            #[doc = concat!("`", $text, "`")]
            pub(in crate::bytecode) const $name: &crate::bytecode::codes::Encoding = &crate::bytecode::codes::Encoding {
                code: $code,
                name: $text,
                since: crate::bytecode::version::Version::new($major, $minor, 0),
                fields: &[$($field),*],
            };
        )*
        $(#[$doc])*
        pub(in crate::bytecode) const $table: &[&crate::bytecode::codes::Encoding] = &[$($name),*];
    };
}
use encodings;
