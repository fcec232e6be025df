//! Attributes, types and locations of the tree as entries of a file: in VHLO's form, or in that of the
//! builtin dialect for operations of other dialects.
//!
//! Each is written once. Types and attributes are at most [`MAX_DEPTH`](crate::ir::MAX_DEPTH) levels deep, so
//! that walking them may recurse.

use std::sync::Arc;

use hlo::diag::Code;
use hlo::diag::codes::bytecode as codes;

use super::super::codes::{Encoding, Enumeration, builtin, vhlo};
use super::super::read::{file_bytes, shape};
use super::super::version::Version;
use super::emit::Emitter;
use super::tables::{Blob, Of, Tables};
use crate::ir::{
    AttrId, Attribute, LocId, Location, Module, ResourceData, Signedness, Type, TypeId, storage_bits,
};

/// That something cannot be written, and why.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) code: Code,
    pub(super) message: String,
}

pub(super) type Fallible<T> = Result<T, Refused>;

/// That there is no form of something.
pub(super) fn no_form<T>(message: impl Into<String>) -> Fallible<T> {
    Err(Refused { code: codes::NO_PORTABLE_FORM, message: message.into() })
}

/// That the target version lacks something.
pub(super) fn too_new<T>(what: impl std::fmt::Display, since: Version, target: Version) -> Fallible<T> {
    let message = format!("{what} came with version {since}, and the target is {target}");
    Err(Refused { code: codes::NOT_IN_TARGET, message })
}

/// The first version whose readers take attributes and operations of other dialects.
pub(super) const OTHER_DIALECTS: Version = Version::new(1, 11, 0);

/// Which form something is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    Vhlo,
    Builtin,
}

/// What was written already, by id.
#[derive(Debug)]
pub(super) struct Memo(Vec<u32>);

impl Memo {
    const NONE: u32 = u32::MAX;

    fn new(count: usize) -> Self {
        Self(vec![Self::NONE; count])
    }

    pub(super) fn get(&self, at: usize) -> Option<u32> {
        self.0.get(at).copied().filter(|&index| index != Self::NONE)
    }

    pub(super) fn set(&mut self, at: usize, index: u32) {
        self.0[at] = index;
    }
}

/// The entries of a file.
pub(super) struct Entries<'m> {
    pub(super) m: &'m Module,
    pub(super) target: Version,
    pub(super) tables: Tables,
    attributes: [Memo; 2],
    pub(super) types: [Memo; 2],
    locations: Memo,
}

impl<'m> Entries<'m> {
    pub(super) fn new(m: &'m Module, target: Version) -> Self {
        let attributes = || Memo::new(m.attribute_count());
        let types = || Memo::new(m.type_count());
        Self {
            m,
            target,
            tables: Tables::new(target.format()),
            attributes: [attributes(), attributes()],
            types: [types(), types()],
            locations: Memo::new(m.location_count()),
        }
    }

    /// Begins an entry of VHLO; its version is checked.
    pub(super) fn begin(&self, encoding: &Encoding) -> Fallible<Emitter> {
        if encoding.since > self.target {
            return too_new(format!("vhlo.{}", encoding.name), encoding.since, self.target);
        }
        Ok(begin(encoding))
    }

    pub(super) fn vhlo(&mut self, of: Of, e: Emitter) -> u32 {
        self.tables.entry(of, "vhlo", true, e.bytes, None)
    }

    pub(super) fn builtin(&mut self, of: Of, e: Emitter) -> u32 {
        self.tables.entry(of, "builtin", true, e.bytes, None)
    }

    // ---- attributes

    /// An attribute in the form of a dialect.
    pub(super) fn attribute(&mut self, dialect: Dialect, id: AttrId) -> Fallible<u32> {
        if let Some(index) = self.attributes[dialect as usize].get(id.index()) {
            return Ok(index);
        }
        let index = match dialect {
            Dialect::Vhlo => self.vhlo_attribute(id)?,
            Dialect::Builtin => self.builtin_attribute(id)?,
        };
        self.attributes[dialect as usize].set(id.index(), index);
        Ok(index)
    }

    fn list(&mut self, dialect: Dialect, ids: &[AttrId]) -> Fallible<Vec<u32>> {
        ids.iter().map(|&id| self.attribute(dialect, id)).collect()
    }

    fn vhlo_attribute(&mut self, id: AttrId) -> Fallible<u32> {
        let m = self.m;
        match m.get_attribute(id) {
            Attribute::Unit => {
                if self.target < OTHER_DIALECTS {
                    return too_new("an attribute without a value", OTHER_DIALECTS, self.target);
                }
                self.attribute(Dialect::Builtin, id)
            }
            Attribute::Bool(value) => self.boolean(*value),
            Attribute::Integer { value, ty } => {
                let (width, _) = self.integer_type(*ty)?;
                if !matches!(width, 4 | 8 | 16 | 32 | 64) {
                    return no_form(format!(
                        "an attribute that is an integer of {width} bits has no form in VHLO"
                    ));
                }
                let ty = self.ty(Dialect::Vhlo, *ty)?;
                let mut e = self.begin(vhlo::INTEGER)?;
                e.varint(ty.into());
                integer(&mut e, *value, width);
                Ok(self.vhlo(Of::Attributes, e))
            }
            Attribute::Float { bits, ty } => {
                let width = self.float_width(*ty)?;
                let ty = self.ty(Dialect::Vhlo, *ty)?;
                let mut e = self.begin(vhlo::FLOAT)?;
                e.varint(ty.into());
                integer(&mut e, (*bits).into(), width);
                Ok(self.vhlo(Of::Attributes, e))
            }
            Attribute::String { text, ty: None } => self.string(text.as_bytes()),
            Attribute::String { ty: Some(_), .. } => no_form("a string with a type has no form in VHLO"),
            Attribute::Bytes(bytes) => self.string(bytes),
            Attribute::Array(list) => {
                let list = self.list(Dialect::Vhlo, list)?;
                self.array(&list)
            }
            Attribute::Dictionary(list) => {
                let mut pairs = Vec::with_capacity(list.len());
                for item in list {
                    let name = self.string(m.text(item.name).as_bytes())?;
                    pairs.push((name, self.attribute(Dialect::Vhlo, item.value)?));
                }
                self.dictionary(&pairs)
            }
            Attribute::Type(ty) => {
                let ty = self.ty(Dialect::Vhlo, *ty)?;
                self.type_attribute(ty)
            }
            Attribute::Symbol { root, nested } if nested.is_empty() => self.string(m.text(*root).as_bytes()),
            Attribute::Symbol { .. } => no_form("a nested symbol has no form in VHLO"),
            Attribute::Elements { ty, splat, data } => {
                let blob = self.elements(*ty, *splat, data)?;
                self.tensor(*ty, blob)
            }
            Attribute::DenseArray { element, data } => self.dense_array(*element, data, id),
            Attribute::DenseResource { ty, resource } => match &m.get_resource(*resource).data {
                ResourceData::Blob { data, .. } => {
                    let data = data.clone();
                    self.tensor(*ty, Blob::Shared(data))
                }
                ResourceData::Missing | ResourceData::Bool(_) | ResourceData::Text(_) => no_form(format!(
                    "the data of resource {} is not there",
                    m.text(m.get_resource(*resource).key)
                )),
            },
            Attribute::Enum { name, value } => self.enumeration(m.text(*name), m.text(*value), id),
            Attribute::Dialect { name, parameters } => self.record(m.text(*name), parameters),
            Attribute::Strings { .. }
            | Attribute::Sparse { .. }
            | Attribute::Location(_)
            | Attribute::Opaque(_) => {
                if self.target < OTHER_DIALECTS {
                    return too_new("an attribute of another dialect", OTHER_DIALECTS, self.target);
                }
                self.attribute(Dialect::Builtin, id)
            }
        }
    }

    pub(super) fn boolean(&mut self, value: bool) -> Fallible<u32> {
        let mut e = self.begin(vhlo::BOOL)?;
        e.varint(value.into());
        Ok(self.vhlo(Of::Attributes, e))
    }

    pub(super) fn string(&mut self, bytes: &[u8]) -> Fallible<u32> {
        let text = self.tables.string(bytes);
        let mut e = self.begin(vhlo::STRING)?;
        e.varint(text.into());
        Ok(self.vhlo(Of::Attributes, e))
    }

    pub(super) fn array(&mut self, list: &[u32]) -> Fallible<u32> {
        let mut e = self.begin(vhlo::ARRAY)?;
        indices(&mut e, list);
        Ok(self.vhlo(Of::Attributes, e))
    }

    pub(super) fn dictionary(&mut self, pairs: &[(u32, u32)]) -> Fallible<u32> {
        let mut e = self.begin(vhlo::DICTIONARY)?;
        e.varint(pairs.len() as u64);
        for &(name, value) in pairs {
            e.varint(name.into());
            e.varint(value.into());
        }
        Ok(self.vhlo(Of::Attributes, e))
    }

    fn type_attribute(&mut self, ty: u32) -> Fallible<u32> {
        let mut e = self.begin(vhlo::TYPE)?;
        e.varint(ty.into());
        Ok(self.vhlo(Of::Attributes, e))
    }

    /// The type `none` as an attribute.
    pub(super) fn none(&mut self) -> Fallible<u32> {
        let e = self.begin(vhlo::NONE)?;
        let ty = self.vhlo(Of::Types, e);
        self.type_attribute(ty)
    }

    /// An `i64`.
    pub(super) fn int64(&mut self, value: i64) -> Fallible<u32> {
        let ty = self.plain(vhlo::I64)?;
        let mut e = self.begin(vhlo::INTEGER)?;
        e.varint(ty.into());
        e.signed(value);
        Ok(self.vhlo(Of::Attributes, e))
    }

    /// A tensor of `i64` from numbers.
    pub(super) fn integers(&mut self, dims: &[i64], values: &[i64]) -> Fallible<u32> {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.small_tensor(vhlo::I64, dims, &data)
    }

    /// A tensor of booleans that are all false.
    pub(super) fn all_false(&mut self, count: i64) -> Fallible<u32> {
        let data = vec![0; (count as u64).div_ceil(8) as usize];
        self.small_tensor(vhlo::BOOL_TYPE, &[count], &data)
    }

    fn small_tensor(&mut self, element: &Encoding, dims: &[i64], data: &[u8]) -> Fallible<u32> {
        let element = self.plain(element)?;
        let ty = self.tensor_type(dims, element)?;
        let mut e = self.begin(vhlo::TENSOR)?;
        e.varint(ty.into());
        e.varint(data.len() as u64);
        e.bytes.extend_from_slice(data);
        Ok(self.vhlo(Of::Attributes, e))
    }

    /// A type of VHLO without parts.
    pub(super) fn plain(&mut self, encoding: &Encoding) -> Fallible<u32> {
        let e = self.begin(encoding)?;
        Ok(self.vhlo(Of::Types, e))
    }

    pub(super) fn tensor_type(&mut self, dims: &[i64], element: u32) -> Fallible<u32> {
        let mut e = self.begin(vhlo::TENSOR_TYPE)?;
        sizes(&mut e, dims);
        e.varint(element.into());
        Ok(self.vhlo(Of::Types, e))
    }

    fn tensor(&mut self, ty: TypeId, blob: Blob) -> Fallible<u32> {
        let ty = self.ty(Dialect::Vhlo, ty)?;
        let mut e = self.begin(vhlo::TENSOR)?;
        e.varint(ty.into());
        e.varint(blob.bytes().len() as u64);
        Ok(self.tables.entry(Of::Attributes, "vhlo", true, e.bytes, Some(blob)))
    }

    /// An array of `i64` or `i1` as a tensor; VHLO has no others.
    fn dense_array(&mut self, element: TypeId, data: &[u8], id: AttrId) -> Fallible<u32> {
        let signless = |width| Type::Integer { width, sign: Signedness::Signless };
        match self.m.get_type(element) {
            t if *t == signless(64) => self.small_tensor(vhlo::I64, &[data.len() as i64 / 8], data),
            t if *t == signless(1) => self.small_tensor(vhlo::BOOL_TYPE, &[data.len() as i64], &packed(data)),
            _ if self.target < OTHER_DIALECTS => {
                too_new("an array of other numbers than i64 and i1", OTHER_DIALECTS, self.target)
            }
            _ => self.attribute(Dialect::Builtin, id),
        }
    }

    /// The bytes of elements in a file.
    fn elements(&self, ty: TypeId, splat: bool, data: &Arc<[u8]>) -> Fallible<Blob> {
        let Some((element, count)) = shape(self.m, ty) else {
            return no_form("a constant of a type whose sizes are not known");
        };
        let Some(bits) = storage_bits(self.m, element) else {
            return no_form("a constant of something that is no number");
        };
        if bits == 1 {
            return Ok(Blob::Own(match splat && count > 1 {
                // A byte of ones, so that it is not taken for the first of up to eight elements.
                true => [if data.first() == Some(&1) { 0xFF } else { 0 }].into(),
                false => packed(data).into(),
            }));
        }
        let Some(width) = file_bytes(self.m, element) else {
            return no_form("a constant of something that is no number");
        };
        let parts = if matches!(self.m.get_type(element), Type::Complex(_)) { 2 } else { 1 };
        let elements = if splat { 1 } else { count };
        let tree_width = data.len().checked_div(elements * parts).unwrap_or(width / parts);
        let width = width / parts;
        if data.len() != elements * parts * tree_width || tree_width < width {
            return no_form("a constant whose data does not fit its type");
        }
        Ok(if tree_width != width {
            Blob::Own(data.chunks_exact(tree_width).flat_map(|part| &part[..width]).copied().collect())
        } else if bits < 8 {
            Blob::Own(data.iter().map(|b| b & ((1 << bits) - 1)).collect())
        } else {
            Blob::Shared(data.clone())
        })
    }

    fn enumeration(&mut self, name: &str, case: &str, id: AttrId) -> Fallible<u32> {
        let all = [
            (vhlo::COMPARISON_DIRECTION, vhlo::COMPARISON_DIRECTIONS),
            (vhlo::COMPARISON_TYPE, vhlo::COMPARISON_TYPES),
            (vhlo::FFT_TYPE, vhlo::FFT_TYPES),
            (vhlo::PRECISION, vhlo::PRECISIONS),
            (vhlo::RNG_ALGORITHM, vhlo::RNG_ALGORITHMS),
            (vhlo::RNG_DISTRIBUTION, vhlo::RNG_DISTRIBUTIONS),
            (vhlo::TRANSPOSE, vhlo::TRANSPOSES),
            (vhlo::RESULT_ACCURACY_MODE, vhlo::ACCURACY_MODES),
        ];
        let known = name.strip_prefix("stablehlo.");
        match all.iter().find(|(_, of)| Some(of.name) == known) {
            Some((encoding, of)) => self.case(encoding, of, case),
            None if known.is_none() && self.target >= OTHER_DIALECTS => self.attribute(Dialect::Builtin, id),
            None => no_form(format!("#{name} is no enumeration of VHLO")),
        }
    }

    pub(super) fn case(&mut self, encoding: &Encoding, of: &Enumeration, case: &str) -> Fallible<u32> {
        let Some(number) = of.number(case) else {
            return no_form(format!("{case} is no {}, which are {}", of.name, of.cases.join(", ")));
        };
        let mut e = self.begin(encoding)?;
        e.varint(number);
        Ok(self.vhlo(Of::Attributes, e))
    }

    fn builtin_attribute(&mut self, id: AttrId) -> Fallible<u32> {
        let m = self.m;
        let e = match m.get_attribute(id) {
            Attribute::Unit => begin(builtin::UNIT),
            Attribute::Bool(value) => {
                let mut e = begin(builtin::INTEGER);
                e.varint(self.builtin_integer_type(1, Signedness::Signless).into());
                e.byte((*value).into());
                e
            }
            Attribute::Integer { value, ty } => {
                let (width, _) = self.integer_type(*ty)?;
                let ty = self.ty(Dialect::Builtin, *ty)?;
                let mut e = begin(builtin::INTEGER);
                e.varint(ty.into());
                integer(&mut e, *value, width);
                e
            }
            Attribute::Float { bits, ty } => {
                let width = self.float_width(*ty)?;
                let ty = self.ty(Dialect::Builtin, *ty)?;
                let mut e = begin(builtin::FLOAT);
                e.varint(ty.into());
                integer(&mut e, (*bits).into(), width);
                e
            }
            Attribute::String { text, ty: None } => return Ok(self.builtin_string(text.as_bytes())),
            Attribute::Bytes(bytes) => return Ok(self.builtin_string(bytes)),
            Attribute::String { text, ty: Some(ty) } => {
                let ty = self.ty(Dialect::Builtin, *ty)?;
                let mut e = begin(builtin::TYPED_STRING);
                e.varint(self.tables.string(text.as_bytes()).into());
                e.varint(ty.into());
                e
            }
            Attribute::Array(list) => {
                let list = self.list(Dialect::Builtin, list)?;
                let mut e = begin(builtin::ARRAY);
                indices(&mut e, &list);
                e
            }
            Attribute::Dictionary(list) => {
                let pairs = list
                    .iter()
                    .map(|item| Ok((m.text(item.name), self.attribute(Dialect::Builtin, item.value)?)))
                    .collect::<Fallible<Vec<_>>>()?;
                return Ok(self.builtin_dictionary(&pairs));
            }
            Attribute::Type(ty) => {
                let ty = self.ty(Dialect::Builtin, *ty)?;
                let mut e = begin(builtin::TYPE);
                e.varint(ty.into());
                e
            }
            Attribute::Symbol { root, nested } => {
                let root = self.builtin_string(m.text(*root).as_bytes());
                let nested: Vec<u32> = nested
                    .iter()
                    .map(|&name| {
                        let mut e = begin(builtin::SYMBOL);
                        e.varint(self.builtin_string(m.text(name).as_bytes()).into());
                        self.builtin(Of::Attributes, e)
                    })
                    .collect();
                let mut e = begin(if nested.is_empty() { builtin::SYMBOL } else { builtin::NESTED_SYMBOL });
                e.varint(root.into());
                if !nested.is_empty() {
                    indices(&mut e, &nested);
                }
                e
            }
            Attribute::Elements { ty, splat, data } => {
                let blob = self.elements(*ty, *splat, data)?;
                let ty = self.ty(Dialect::Builtin, *ty)?;
                let mut e = begin(builtin::DENSE);
                e.varint(ty.into());
                e.varint(blob.bytes().len() as u64);
                return Ok(self.tables.entry(Of::Attributes, "builtin", true, e.bytes, Some(blob)));
            }
            Attribute::DenseArray { element, data } => {
                let width = file_bytes(m, *element).unwrap_or(1);
                let ty = self.ty(Dialect::Builtin, *element)?;
                let mut e = begin(builtin::DENSE_ARRAY);
                e.varint(ty.into());
                e.varint((data.len() / width) as u64);
                e.varint(data.len() as u64);
                e.bytes.extend_from_slice(data);
                e
            }
            Attribute::Location(loc) => return Ok(self.location(*loc)),
            Attribute::Opaque(text) => return Ok(self.text_attribute(text)),
            Attribute::Strings { ty, texts } => {
                let ty = self.ty(Dialect::Builtin, *ty)?;
                let mut e = begin(builtin::DENSE_STRINGS);
                e.varint(ty.into());
                e.varint((texts.len() == 1).into());
                texts.iter().for_each(|text| e.varint(self.tables.string(text.as_bytes()).into()));
                e
            }
            Attribute::Enum { name, value } => {
                let (name, value) = (m.text(*name), m.text(*value));
                let (dialect, name) = name.split_once('.').unwrap_or((name, ""));
                return Ok(self.text_attribute(&format!("{dialect}<{name} {value}>")));
            }
            Attribute::Dialect { name, .. } => {
                return no_form(format!("#{} has no form outside of operations of StableHLO", m.text(*name)));
            }
            Attribute::DenseResource { .. } | Attribute::Sparse { .. } => {
                return no_form("dense_resource and sparse attributes have no form outside of constants");
            }
        };
        Ok(self.builtin(Of::Attributes, e))
    }

    pub(super) fn builtin_string(&mut self, bytes: &[u8]) -> u32 {
        let mut e = begin(builtin::STRING);
        e.varint(self.tables.string(bytes).into());
        self.builtin(Of::Attributes, e)
    }

    /// A dictionary of names and attributes that are written already.
    pub(super) fn builtin_dictionary(&mut self, pairs: &[(&str, u32)]) -> u32 {
        let mut sorted: Vec<(&str, u32)> = pairs.to_vec();
        sorted.sort_unstable();
        let mut e = begin(builtin::DICTIONARY);
        e.varint(sorted.len() as u64);
        for (name, value) in sorted {
            let name = self.builtin_string(name.as_bytes());
            e.varint(name.into());
            e.varint(value.into());
        }
        self.builtin(Of::Attributes, e)
    }

    /// An attribute of a dialect as text, which every reader takes.
    fn text_attribute(&mut self, text: &str) -> u32 {
        let builtin = ["affine_map", "affine_set", "strided", "distinct", "opaque", "sparse"];
        let name = &text[..text.find(['.', '<', '[', ' ']).unwrap_or(text.len())];
        let (dialect, prefix) = if builtin.contains(&name) { ("builtin", "") } else { (name, "#") };
        let bytes = format!("{prefix}{text}\0").into_bytes();
        self.tables.entry(Of::Attributes, dialect, false, bytes, None)
    }

    // ---- locations

    /// A location. What the target does not have is written as far as it has it.
    pub(super) fn location(&mut self, id: LocId) -> u32 {
        if let Some(index) = self.locations.get(id.index()) {
            return index;
        }
        let m = self.m;
        let e = match m.get_location(id) {
            Location::Unknown => begin(builtin::UNKNOWN_LOCATION),
            Location::File { file, start, end } => {
                let file = self.builtin_string(m.text(*file).as_bytes());
                match end {
                    Some(end) if self.target >= builtin::FILE_RANGE.since => {
                        let mut e = begin(builtin::FILE_RANGE);
                        e.varint(file.into());
                        let numbers = [start.0, start.1, end.0, end.1];
                        e.varint(numbers.len() as u64);
                        numbers.into_iter().for_each(|n| e.varint(n.into()));
                        e
                    }
                    _ => {
                        let mut e = begin(builtin::FILE_LINE_COLUMN);
                        e.varint(file.into());
                        e.varint(start.0.into());
                        e.varint(start.1.into());
                        e
                    }
                }
            }
            Location::Name { name, child } => {
                let name = self.builtin_string(m.text(*name).as_bytes());
                let child = self.location(*child);
                let mut e = begin(builtin::NAMED_LOCATION);
                e.varint(name.into());
                e.varint(child.into());
                e
            }
            Location::CallSite { callee, caller } => {
                let (callee, caller) = (self.location(*callee), self.location(*caller));
                let mut e = begin(builtin::CALL_SITE);
                e.varint(callee.into());
                e.varint(caller.into());
                e
            }
            Location::Fused { metadata, locations } => {
                let locations: Vec<u32> = locations.iter().map(|&l| self.location(l)).collect();
                // Metadata is for people: what has no form is left out.
                let metadata = metadata.and_then(|a| self.attribute(Dialect::Builtin, a).ok());
                let mut e =
                    begin(if metadata.is_some() { builtin::FUSED_WITH_METADATA } else { builtin::FUSED });
                indices(&mut e, &locations);
                metadata.into_iter().for_each(|a| e.varint(a.into()));
                e
            }
        };
        let index = self.builtin(Of::Attributes, e);
        self.locations.set(id.index(), index);
        index
    }
}

pub(super) fn begin(encoding: &Encoding) -> Emitter {
    let mut e = Emitter::default();
    e.varint(encoding.code);
    e
}

pub(super) fn indices(e: &mut Emitter, list: &[u32]) {
    e.varint(list.len() as u64);
    list.iter().for_each(|&index| e.varint(index.into()));
}

pub(super) fn signed_list(e: &mut Emitter, list: &[i64]) {
    e.varint(list.len() as u64);
    list.iter().for_each(|&n| e.signed(n));
}

pub(super) fn sizes(e: &mut Emitter, dims: &[i64]) {
    signed_list(e, dims);
}

/// A number of a known width: a byte up to 8 bits, else its bits without sign, in zigzag form.
fn integer(e: &mut Emitter, value: i128, width: u32) {
    let bits = value as u64 & (u64::MAX >> (64 - width.min(64)));
    match width {
        ..=8 => e.byte(bits as u8),
        _ => e.signed(bits as i64),
    }
}

/// Booleans, a byte each, as bits.
fn packed(data: &[u8]) -> Vec<u8> {
    data.chunks(8)
        .map(|part| part.iter().enumerate().fold(0, |byte, (at, &bit)| byte | u8::from(bit != 0) << at))
        .collect()
}

/// The numbers of a list of integers.
pub(super) fn integers_of(m: &Module, id: AttrId) -> Option<Vec<i64>> {
    let numbers = |data: &[u8]| {
        data.chunks_exact(8)
            .map(|part| i64::from_le_bytes(part.try_into().expect("invariant: chunks of 8 bytes")))
            .collect()
    };
    let is_i64 = |ty| *m.get_type(ty) == Type::Integer { width: 64, sign: Signedness::Signless };
    match m.get_attribute(id) {
        Attribute::DenseArray { element, data } if is_i64(*element) => Some(numbers(data)),
        Attribute::Elements { ty, splat, data } => match shape(m, *ty) {
            Some((element, count)) if is_i64(element) && count <= MAX_LIST => {
                let list: Vec<i64> = numbers(data);
                Some(if *splat { list.repeat(count) } else { list })
            }
            _ => None,
        },
        Attribute::Array(list) => list.iter().map(|&item| integer_of(m, item)).collect(),
        _ => None,
    }
}

/// The longest list of integers that an attribute other than a constant has.
const MAX_LIST: usize = 1 << 16;

/// The number of an integer.
pub(super) fn integer_of(m: &Module, id: AttrId) -> Option<i64> {
    match m.get_attribute(id) {
        Attribute::Integer { value, .. } => i64::try_from(*value).ok(),
        _ => None,
    }
}
