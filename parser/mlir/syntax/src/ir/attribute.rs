//! Attributes and resources.
//!
//! Attributes of dialects are [`Attribute::Dialect`] where StableHLO's operations need their parts, and
//! [`Attribute::Opaque`] otherwise, with the body as the dialect writes it: Shardy's (`#sdy.sharding<...>`)
//! travel as text through HLO, too.

use std::sync::Arc;

use super::Module;
use super::ids::{AttrId, LocId, NameId, ResourceId, TypeId};

/// An attribute with its name, `dimension = 0 : i64`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NamedAttribute {
    /// The name.
    pub name: NameId,
    /// The value.
    pub value: AttrId,
}

/// Attributes of an operation. Copies share one list until one is changed: most operations of a module have
/// none, or the same as another.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Attributes(Option<Arc<Vec<NamedAttribute>>>);

impl Attributes {
    /// The list, to change it.
    pub fn to_mut(&mut self) -> &mut Vec<NamedAttribute> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Adds one at the end.
    pub fn push(&mut self, attribute: NamedAttribute) {
        self.to_mut().push(attribute);
    }
}

impl std::ops::Deref for Attributes {
    type Target = [NamedAttribute];

    fn deref(&self) -> &[NamedAttribute] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl From<Vec<NamedAttribute>> for Attributes {
    fn from(list: Vec<NamedAttribute>) -> Self {
        Self((!list.is_empty()).then(|| Arc::new(list)))
    }
}

impl<'a> IntoIterator for &'a Attributes {
    type Item = &'a NamedAttribute;
    type IntoIter = std::slice::Iter<'a, NamedAttribute>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An attribute.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Attribute {
    /// `unit`, or a name without a value.
    Unit,
    /// `true`, `false`
    Bool(bool),
    /// `1 : i64`; `i1` is [`Attribute::Bool`].
    Integer {
        /// The number, sign-extended where the type is signless or signed.
        value: i128,
        /// Its type.
        ty: TypeId,
    },
    /// `1.5 : f32`
    Float {
        /// The bits of the number in its own type.
        bits: u64,
        /// Its type.
        ty: TypeId,
    },
    /// `"text"`, or `"text" : type`
    String {
        /// The bytes, unescaped; those that are not UTF-8 as [`Attribute::Bytes`].
        text: Box<str>,
        /// Its type, if it has one.
        ty: Option<TypeId>,
    },
    /// A string that is not UTF-8.
    Bytes(Box<[u8]>),
    /// `[...]`
    Array(Box<[AttrId]>),
    /// `{...}`, sorted by the text of the names
    Dictionary(Box<[NamedAttribute]>),
    /// A type.
    Type(TypeId),
    /// `@root::@nested`
    Symbol {
        /// The first name.
        root: NameId,
        /// The others.
        nested: Box<[NameId]>,
    },
    /// `dense<...> : tensor<...>` of integers, floats or complex numbers.
    Elements {
        /// The tensor (or vector) type.
        ty: TypeId,
        /// One element stands for all.
        splat: bool,
        /// The elements in row-major order, little-endian, each in [`element_bytes`](super::element_bytes)
        /// bytes (sub-byte types and `i1` a byte each, sign- or zero-extended as the type says). One element
        /// if `splat`.
        data: Arc<[u8]>,
    },
    /// `dense<...>` of strings.
    Strings {
        /// The tensor type.
        ty: TypeId,
        /// The elements; one if all are equal.
        texts: Box<[Box<str>]>,
    },
    /// `array<i64: 1, 2>`
    DenseArray {
        /// Of what.
        element: TypeId,
        /// The elements, as those of [`Attribute::Elements`].
        data: Box<[u8]>,
    },
    /// `dense_resource<key> : tensor<...>`
    DenseResource {
        /// The tensor type.
        ty: TypeId,
        /// The data.
        resource: ResourceId,
    },
    /// `sparse<indices, values> : tensor<...>`
    Sparse {
        /// The tensor type.
        ty: TypeId,
        /// Positions.
        indices: AttrId,
        /// Elements there.
        values: AttrId,
    },
    /// `loc(...)` as an attribute.
    Location(LocId),
    /// `#stablehlo<comparison_direction LT>` and other enumerations.
    Enum {
        /// With the dialect, `stablehlo.comparison_direction`.
        name: NameId,
        /// The value as text has it, `LT`.
        value: NameId,
    },
    /// `#stablehlo.gather<...>` and other records. The names of the parameters are those of the dialect's
    /// declaration, in its order; parameters with their default value are absent. Lists of integers are
    /// [`Attribute::DenseArray`] of `i64`, integers `i64`.
    Dialect {
        /// With the dialect, `stablehlo.gather`.
        name: NameId,
        /// Parameters.
        parameters: Box<[NamedAttribute]>,
    },
    /// Any other attribute, with its text after the `#` (`sdy.sharding<@mesh, [{"x"}]>`); `affine_map<...>`
    /// and the like without one.
    Opaque(Box<str>),
}

/// A blob of the resource section.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Whose: `builtin` for `dense_resource`.
    pub dialect: NameId,
    /// Its key.
    pub key: NameId,
    /// What it holds.
    pub data: ResourceData,
}

/// The data of a resource.
#[derive(Clone, Debug)]
pub enum ResourceData {
    /// It is referred to and nowhere given.
    Missing,
    /// Bytes, as elements are stored in memory, and their alignment.
    Blob {
        /// In bytes.
        alignment: u32,
        /// The bytes.
        data: Arc<[u8]>,
    },
    /// `true` or `false`.
    Bool(bool),
    /// A string.
    Text(Box<str>),
}

pub(super) fn depth_of(attribute: &Attribute, m: &Module) -> u32 {
    let named = |list: &[NamedAttribute]| list.iter().map(|a| m.attribute_depth(a.value)).max().unwrap_or(0);
    1 + match attribute {
        Attribute::Unit
        | Attribute::Bool(_)
        | Attribute::Bytes(_)
        | Attribute::Symbol { .. }
        | Attribute::Enum { .. }
        | Attribute::Opaque(_) => 0,
        Attribute::String { ty, .. } => ty.map_or(0, |t| m.type_depth(t)),
        Attribute::Integer { ty, .. }
        | Attribute::Float { ty, .. }
        | Attribute::Elements { ty, .. }
        | Attribute::Strings { ty, .. }
        | Attribute::DenseArray { element: ty, .. }
        | Attribute::DenseResource { ty, .. }
        | Attribute::Type(ty) => m.type_depth(*ty),
        Attribute::Array(parts) => parts.iter().map(|&a| m.attribute_depth(a)).max().unwrap_or(0),
        Attribute::Dictionary(parts) | Attribute::Dialect { parameters: parts, .. } => named(parts),
        Attribute::Sparse { indices, values, .. } => {
            m.attribute_depth(*indices).max(m.attribute_depth(*values))
        }
        Attribute::Location(loc) => m.location_depth(*loc),
    }
}
