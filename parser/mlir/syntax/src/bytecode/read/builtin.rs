//! Attributes and types of the builtin dialect, into the tree.

use std::sync::Arc;

use super::super::codes::builtin as code;
use super::super::container::{Container, ResourceValue};
use super::super::cursor::Fallible;
use super::super::decode::Decoder;
use super::elements;
use super::entries::{Entries, Slot};
use crate::ir::{
    Attribute, DYNAMIC, FloatType, LocId, Location, Module, NameId, NamedAttribute, ResourceData, ResourceId,
    Signedness, Type, TypeId,
};

/// Puts the resources of dialects into the tree, in the order in which attributes name them.
pub(super) fn resources(container: &Container<'_>, module: &mut Module) -> Vec<ResourceId> {
    let mut ids = Vec::with_capacity(container.resources.len());
    for entry in &container.resources {
        let (owner, key) = (module.name(entry.owner), module.name(entry.key));
        let id = module.resource(owner, key);
        let data = match entry.value {
            ResourceValue::Missing => ResourceData::Missing,
            ResourceValue::Blob(alignment, data) => {
                ResourceData::Blob { alignment: alignment as u32, data: Arc::from(data) }
            }
            ResourceValue::Bool(b) => ResourceData::Bool(b),
            ResourceValue::Text(text) => ResourceData::Text(String::from_utf8_lossy(text).into()),
        };
        module.set_resource(id, data);
        ids.push(id);
    }
    ids
}

/// An attribute or location whose parts are in the tree.
pub(super) fn attribute(e: &mut Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<Slot> {
    let attribute = match d.encoding.code {
        c if c == code::ARRAY.code => Attribute::Array(e.attributes(d.attrs(0))),
        c if c == code::DICTIONARY.code => Attribute::Dictionary(dictionary(e, d, d.attrs(0))?),
        c if c == code::STRING.code => string(e.bytes(d.text(0)), None),
        c if c == code::TYPED_STRING.code => string(e.bytes(d.text(0)), Some(e.ty(d.ty(1)))),
        c if c == code::SYMBOL.code => {
            Attribute::Symbol { root: e.name_of(d, d.attr(0))?, nested: Box::default() }
        }
        c if c == code::NESTED_SYMBOL.code => {
            let root = e.name_of(d, d.attr(0))?;
            let nested = d.attrs(1).iter().map(|&a| flat_symbol(e, d, a)).collect::<Fallible<_>>()?;
            Attribute::Symbol { root, nested }
        }
        c if c == code::TYPE.code => Attribute::Type(e.ty(d.ty(0))),
        c if c == code::UNIT.code => Attribute::Unit,
        c if c == code::INTEGER.code => integer(e, d)?,
        c if c == code::FLOAT.code => float(e, d)?,
        c if c == code::CALL_SITE.code => {
            let (callee, caller) = (e.location(d, d.attr(0))?, e.location(d, d.attr(1))?);
            return Ok(Slot::Loc(e.module.location(Location::CallSite { callee, caller })));
        }
        c if c == code::FILE_LINE_COLUMN.code => {
            let file = e.name_of(d, d.attr(0))?;
            let start = (line(d, d.number(1))?, line(d, d.number(2))?);
            return Ok(Slot::Loc(e.module.location(Location::File { file, start, end: None })));
        }
        c if c == code::FUSED.code => return fused(e, d, false),
        c if c == code::FUSED_WITH_METADATA.code => return fused(e, d, true),
        c if c == code::NAMED_LOCATION.code => {
            let (name, child) = (e.name_of(d, d.attr(0))?, e.location(d, d.attr(1))?);
            return Ok(Slot::Loc(e.module.location(Location::Name { name, child })));
        }
        c if c == code::UNKNOWN_LOCATION.code => return Ok(Slot::Loc(LocId::UNKNOWN)),
        c if c == code::DENSE_RESOURCE.code => {
            Attribute::DenseResource { ty: e.ty(d.ty(0)), resource: e.resource(d.resource(1)) }
        }
        c if c == code::DENSE_ARRAY.code => elements::dense_array(e, d)?,
        c if c == code::DENSE.code => elements::dense(e, d)?,
        c if c == code::DENSE_STRINGS.code => elements::strings(e, d)?,
        c if c == code::SPARSE.code => Attribute::Sparse {
            ty: e.ty(d.ty(0)),
            indices: e.attribute(d.attr(1)),
            values: e.attribute(d.attr(2)),
        },
        c if c == code::DISTINCT.code => {
            return Err(d.error("attributes that are distinct from themselves have no place in the tree"));
        }
        c if c == code::FILE_RANGE.code => return file_range(e, d),
        _ => unreachable!("invariant: all codes of the table are above"),
    };
    Ok(Slot::Attr(e.module.attribute(attribute)))
}

/// A string, of bytes if they are not UTF-8.
pub(super) fn string(bytes: &[u8], ty: Option<TypeId>) -> Attribute {
    match std::str::from_utf8(bytes) {
        Ok(text) => Attribute::String { text: text.into(), ty },
        Err(_) => Attribute::Bytes(bytes.into()),
    }
}

/// Names and values one after the other, sorted by name as the tree has them.
pub(super) fn dictionary(
    e: &mut Entries<'_, '_>,
    d: &Decoder<'_>,
    pairs: &[u32],
) -> Fallible<Box<[NamedAttribute]>> {
    let mut list = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact(2) {
        let name = e.name_of(d, pair[0])?;
        list.push(NamedAttribute { name, value: e.attribute(pair[1]) });
    }
    list.sort_by(|a, b| e.module.text(a.name).cmp(e.module.text(b.name)));
    if let Some(twice) = list.windows(2).find(|w| w[0].name == w[1].name) {
        return Err(d.error(format!("{} is there twice", e.module.text(twice[0].name))));
    }
    Ok(list.into())
}

fn flat_symbol(e: &Entries<'_, '_>, d: &Decoder<'_>, index: u32) -> Fallible<NameId> {
    if let Slot::Attr(id) = e.slot(index)
        && let Attribute::Symbol { root, nested } = e.module.get_attribute(id)
        && nested.is_empty()
    {
        return Ok(*root);
    }
    Err(d.error(format!("attribute {index} is no symbol, as nested names are")))
}

/// An integer of the type in front of it.
pub(super) fn integer(e: &Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<Attribute> {
    let ty = e.ty(d.ty(0));
    let value = d.integer_value(1);
    let (width, sign) = match e.module.get_type(ty) {
        Type::Index => (64, Signedness::Signless),
        Type::Integer { width, sign } => (*width, *sign),
        _ => return Err(d.error("its type is none of integers")),
    };
    if width == 1 && sign == Signedness::Signless {
        return Ok(Attribute::Bool(value & 1 == 1));
    }
    Ok(Attribute::Integer { value: extended(value, width, sign != Signedness::Unsigned), ty })
}

/// The low `width` bits of a number, with or without sign.
fn extended(value: i128, width: u32, signed: bool) -> i128 {
    match 128u32.saturating_sub(width) {
        0 => value,
        128 => 0,
        unused if signed => value << unused >> unused,
        unused => ((value as u128) << unused >> unused) as i128,
    }
}

/// A float of the type in front of it.
pub(super) fn float(e: &Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<Attribute> {
    let ty = e.ty(d.ty(0));
    let Type::Float(float) = *e.module.get_type(ty) else {
        return Err(d.error("its type is none of floats"));
    };
    if float.bits() > 64 {
        return Err(d.error(format!("numbers of type {} cannot be read", float.text())));
    }
    Ok(Attribute::Float { bits: extended(d.integer_value(1), float.bits(), false) as u64, ty })
}

fn line(d: &Decoder<'_>, number: u64) -> Fallible<u32> {
    u32::try_from(number).map_err(|_| d.error(format!("line or column {number} does not fit 32 bits")))
}

fn fused(e: &mut Entries<'_, '_>, d: &Decoder<'_>, has_metadata: bool) -> Fallible<Slot> {
    let locations = d.attrs(0).iter().map(|&a| e.location(d, a)).collect::<Fallible<Box<[_]>>>()?;
    let metadata = has_metadata.then(|| e.attribute(d.attr(1)));
    Ok(Slot::Loc(e.module.location(Location::Fused { metadata, locations })))
}

/// Numbers after the file: none; the line; line and column; line, first and last column; or first line and
/// column and last line and column.
fn file_range(e: &mut Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<Slot> {
    let file = e.name_of(d, d.attr(0))?;
    let numbers = d.numbers(1).iter().map(|&n| line(d, n)).collect::<Fallible<Vec<u32>>>()?;
    let (start, end) = match *numbers {
        [] => ((0, 0), None),
        [line] => ((line, 0), None),
        [line, column] => ((line, column), None),
        [line, first, last] => ((line, first), Some((line, last))),
        [line, column, last_line, last_column] => ((line, column), Some((last_line, last_column))),
        _ => return Err(d.error(format!("{} numbers, and four at most are known", numbers.len()))),
    };
    Ok(Slot::Loc(e.module.location(Location::File { file, start, end })))
}

/// A type whose parts are in the tree.
pub(super) fn ty(e: &mut Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<TypeId> {
    let float = |f| Ok(Type::Float(f));
    let ty = match d.encoding.code {
        c if c == code::INTEGER_TYPE.code => integer_type(d),
        c if c == code::INDEX.code => Ok(Type::Index),
        c if c == code::FUNCTION.code => {
            Ok(Type::Function { inputs: e.types(d.types(0)), results: e.types(d.types(1)) })
        }
        c if c == code::BF16.code => float(FloatType::BF16),
        c if c == code::F16.code => float(FloatType::F16),
        c if c == code::F32.code => float(FloatType::F32),
        c if c == code::F64.code => float(FloatType::F64),
        c if c == code::F80.code => float(FloatType::F80),
        c if c == code::F128.code => float(FloatType::F128),
        c if c == code::COMPLEX.code => Ok(Type::Complex(e.ty(d.ty(0)))),
        c if c == code::MEMREF.code => memref(e, d, 0, None),
        c if c == code::MEMREF_IN_SPACE.code => memref(e, d, 1, Some(0)),
        c if c == code::NONE.code => Ok(Type::None),
        c if c == code::TENSOR.code => Ok(tensor(d, d.signed_list(0), e.ty(d.ty(1)), None)?),
        c if c == code::ENCODED_TENSOR.code => {
            let encoding = e.attribute(d.attr(0));
            Ok(tensor(d, d.signed_list(1), e.ty(d.ty(2)), Some(encoding))?)
        }
        c if c == code::TUPLE.code => Ok(Type::Tuple(e.types(d.types(0)))),
        c if c == code::UNRANKED_MEMREF.code || c == code::UNRANKED_MEMREF_IN_SPACE.code => {
            Err(d.error("memrefs without a rank cannot be read"))
        }
        c if c == code::UNRANKED_TENSOR.code => Ok(Type::UnrankedTensor(e.ty(d.ty(0)))),
        c if c == code::VECTOR.code => Ok(Type::Vector {
            dims: sizes(d, d.signed_list(0))?,
            scalable: Box::default(),
            element: e.ty(d.ty(1)),
        }),
        c if c == code::SCALABLE_VECTOR.code => {
            Err(d.error("vectors with scalable dimensions cannot be read"))
        }
        _ => unreachable!("invariant: all codes of the table are above"),
    }?;
    Ok(e.module.ty(ty))
}

/// The width of the widest integer type.
const MAX_INTEGER_BITS: u64 = (1 << 24) - 1;

fn integer_type(d: &Decoder<'_>) -> Fallible<Type> {
    let number = d.number(0);
    let sign = match number & 3 {
        0 => Signedness::Signless,
        1 => Signedness::Signed,
        2 => Signedness::Unsigned,
        other => return Err(d.error(format!("{other} is no signedness"))),
    };
    match number >> 2 {
        width @ 1..=MAX_INTEGER_BITS => Ok(Type::Integer { width: width as u32, sign }),
        width => Err(d.error(format!("integers have 1 to {MAX_INTEGER_BITS} bits, this one {width}"))),
    }
}

/// Sizes of dimensions, none negative but the one that stands for any.
pub(super) fn sizes(d: &Decoder<'_>, dims: &[i64]) -> Fallible<Box<[i64]>> {
    match dims.iter().find(|&&n| n < 0 && n != DYNAMIC) {
        Some(n) => Err(d.error(format!("a dimension of size {n}"))),
        None => Ok(dims.into()),
    }
}

pub(super) fn tensor(
    d: &Decoder<'_>,
    dims: &[i64],
    element: TypeId,
    encoding: Option<crate::ir::AttrId>,
) -> Fallible<Type> {
    Ok(Type::Tensor { dims: sizes(d, dims)?, element, encoding })
}

/// A memref as text, as the tree has it. The identity, the layout that any has, is not written.
fn memref(e: &mut Entries<'_, '_>, d: &Decoder<'_>, at: usize, space: Option<usize>) -> Fallible<Type> {
    let dims = sizes(d, d.signed_list(at))?;
    let element = e.ty(d.ty(at + 1));
    let layout = e.attribute(d.attr(at + 2));
    let names: Vec<String> = (0..dims.len()).map(|i| format!("d{i}")).collect();
    let identity = format!("affine_map<({0}) -> ({0})>", names.join(", "));
    let layout = match e.module.get_attribute(layout) {
        Attribute::Opaque(text) if **text == *identity => String::new(),
        Attribute::Opaque(text) => format!(", {text}"),
        _ => return Err(d.error("its layout is none of those known")),
    };
    let space = match space.map(|at| e.attribute(d.attr(at))) {
        None => String::new(),
        Some(id) => match e.module.get_attribute(id) {
            Attribute::Integer { value, ty } => format!(", {value} : {}", type_text(e, d, *ty)?),
            Attribute::String { text, ty: None } => format!(", {text:?}"),
            Attribute::Opaque(text) => format!(", #{text}"),
            _ => return Err(d.error("its memory space is none of those known")),
        },
    };
    let text = format!("{}{layout}{space}>", memref_start(e, d, &dims, element)?);
    e.take_text(d, text.len())?;
    Ok(Type::Opaque(text.into()))
}

/// `memref<2x?xf32`
pub(super) fn memref_start(
    e: &Entries<'_, '_>,
    d: &Decoder<'_>,
    dims: &[i64],
    element: TypeId,
) -> Fallible<String> {
    let mut text = String::from("memref<");
    for &n in dims {
        match n {
            DYNAMIC => text.push('?'),
            n => text.push_str(&n.to_string()),
        }
        text.push('x');
    }
    text.push_str(&type_text(e, d, element)?);
    Ok(text)
}

/// The text of a type of numbers.
fn type_text(e: &Entries<'_, '_>, d: &Decoder<'_>, ty: TypeId) -> Fallible<String> {
    Ok(match e.module.get_type(ty) {
        Type::Index => "index".to_owned(),
        Type::Integer { width, sign } => {
            let prefix = match sign {
                Signedness::Signless => "i",
                Signedness::Signed => "si",
                Signedness::Unsigned => "ui",
            };
            format!("{prefix}{width}")
        }
        Type::Float(f) => f.text().to_owned(),
        Type::Complex(part) => match e.module.get_type(*part) {
            Type::Float(f) => format!("complex<{}>", f.text()),
            _ => return Err(d.error("complex numbers of something that is no float")),
        },
        _ => return Err(d.error("elements that are no numbers")),
    })
}
