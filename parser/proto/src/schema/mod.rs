//! The messages as data: for each its name, and for each field its number, name and type.
//!
//! Names, numbers and types are facts about XLA's formats (`xla/service/hlo.proto`, `xla/xla_data.proto` of
//! openxla/xla), declared here once; the readers and writers of both encodings go by these tables, so that a
//! field that XLA adds is one row. **Invariant:** fields of a message are sorted by number. `make
//! test-proto-peer` compares the tables with the descriptors that jaxlib ships.

pub(crate) mod assignment;
pub(crate) mod devices;
pub(crate) mod modules;
pub(crate) mod operations;
pub(crate) mod origins;
pub(crate) mod shapes;
pub(crate) mod text_only;

/// A kind of message.
#[derive(Debug)]
pub(crate) struct MessageType {
    /// The name: in package `xla`, or with its package if that is another.
    pub(crate) name: &'static str,
    /// Its fields, by number.
    pub(crate) fields: &'static [Field],
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) ty: Type,
    pub(crate) repeated: bool,
}

/// The type of a field's values.
#[derive(Debug)]
pub(crate) enum Type {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Float,
    Double,
    String,
    Bytes,
    Enum(&'static EnumType),
    Message(&'static MessageType),
}

/// An enumeration.
#[derive(Debug)]
pub(crate) struct EnumType {
    /// The name in package `xla`.
    pub(crate) name: &'static str,
    /// Names and numbers of the enumerators.
    pub(crate) values: &'static [(&'static str, i32)],
}

impl MessageType {
    /// The field of a number.
    pub(crate) fn field(&self, number: u32) -> Option<&'static Field> {
        // Most messages have few fields, numbered without gaps.
        match self.fields.get((number as usize).wrapping_sub(1)) {
            Some(f) if f.number == number => Some(f),
            _ => self.fields.binary_search_by_key(&number, |f| f.number).ok().map(|i| &self.fields[i]),
        }
    }

    /// The field of a name.
    pub(crate) fn field_named(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| f.name == name)
    }
}

impl EnumType {
    /// The number of a name.
    pub(crate) fn number(&self, name: &str) -> Option<i32> {
        self.values.iter().find(|v| v.0 == name).map(|v| v.1)
    }

    /// The name of a number.
    pub(crate) fn name_of(&self, number: i64) -> Option<&'static str> {
        self.values.iter().find(|v| i64::from(v.1) == number).map(|v| v.0)
    }
}

macro_rules! is_repeated {
    (one) => {
        false
    };
    (many) => {
        true
    };
}

/// Declares messages: for each the static table, and a module of constants with the numbers of its fields.
macro_rules! messages {
    ($($table:ident $module:ident $name:literal {
        $($field:ident $constant:ident = $number:literal: $count:ident $ty:expr;)*
    })*) => {
        $(
            pub(crate) static $table: $crate::schema::MessageType = $crate::schema::MessageType {
                name: $name,
                fields: &[$($crate::schema::Field {
                    number: $number,
                    name: stringify!($field),
                    ty: $ty,
                    repeated: $crate::schema::is_repeated!($count),
                }),*],
            };
            #[allow(dead_code, reason = "a table: not every field has a meaning for a module")]
            pub(crate) mod $module {
                $(pub(crate) const $constant: u32 = $number;)*
            }
        )*
        #[cfg(test)]
        pub(super) const ALL: &[&$crate::schema::MessageType] = &[$(&$table),*];
    };
}
use messages;

macro_rules! enums {
    ($($table:ident $name:literal { $($value:ident = $number:literal,)* })*) => {
        $(
            pub(crate) static $table: $crate::schema::EnumType = $crate::schema::EnumType {
                name: $name,
                values: &[$((stringify!($value), $number)),*],
            };
        )*
    };
}
use {enums, is_repeated};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_sorted_and_unique() {
        let all = [
            assignment::ALL,
            devices::ALL,
            modules::ALL,
            operations::ALL,
            origins::ALL,
            shapes::ALL,
            text_only::ALL,
        ];
        for message in all.into_iter().flatten() {
            for pair in message.fields.windows(2) {
                assert!(pair[0].number < pair[1].number, "{}.{}", message.name, pair[1].name);
            }
            for field in message.fields {
                assert_eq!(message.field(field.number).map(|f| f.name), Some(field.name));
                assert_eq!(message.field_named(field.name).map(|f| f.number), Some(field.number));
            }
        }
    }
}
