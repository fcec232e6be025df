//! Attributes and types of a file, read when they are first needed, each once.
//!
//! **No recursion:** what an entry refers to is put on a stack and read before it. An entry that is met again
//! while it is on that stack contains itself, which is an error. **Invariant:** an entry's parts are in the
//! tree before it is.

use hlo::Span;
use hlo::diag::Diagnostic;
use hlo::diag::codes::bytecode as codes;
use rustc_hash::FxHashMap;

use super::super::codes::{self as tables, Encoding};
use super::super::container::{Container, Entry};
use super::super::cursor::Fallible;
use super::super::decode::{Decoder, Limits, Progress, Reference};
use super::{builtin, shardy, vhlo};
use crate::ir::{AttrId, Attribute, LocId, Location, MAX_DEPTH, Module, NameId, Type, TypeId, storage_bits};
use crate::text;

/// How far an attribute is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    Unseen,
    Open,
    Attr(AttrId),
    Loc(LocId),
    /// An attribute of Shardy, as text without its mnemonic: an index into [`Entries::texts`].
    Shardy(u32),
}

/// How far a type is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TypeSlot {
    Unseen,
    Open,
    Done(TypeId),
}

struct Job<'a> {
    what: Reference,
    decoder: Option<Box<Decoder<'a>>>,
}

/// The dialects whose encodings are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    Builtin,
    Vhlo,
    Shardy,
    Chlo,
    Stablehlo,
}

/// A text of Shardy: its mnemonic and what follows.
#[derive(Debug)]
pub(super) struct ShardyText {
    pub(super) mnemonic: &'static str,
    pub(super) body: Box<str>,
}

/// The attributes and types of a file.
pub(super) struct Entries<'a, 'c> {
    pub(super) container: &'c Container<'a>,
    pub(super) module: Module,
    limits: Limits,
    attributes: Vec<Slot>,
    types: Vec<TypeSlot>,
    /// Texts of attributes of Shardy.
    pub(super) texts: Vec<ShardyText>,
    /// Bytes that texts may still take: they repeat what the file has once.
    text_budget: usize,
    resources: Vec<crate::ir::ResourceId>,
    /// Of each dialect, which encodings it has.
    families: Vec<Option<Family>>,
    /// Names by the index of their string attribute.
    names: FxHashMap<u32, NameId>,
    /// The one that a location in a file last used.
    last_name: Option<(u32, NameId)>,
    /// Kept between uses.
    stack: Vec<Job<'a>>,
    needed: Vec<Reference>,
}

const TOO_MUCH_TEXT: &str = "written out, attributes take more than 64 times the size of the file";

/// Bytes of text for each byte of the file.
const TEXT_PER_BYTE: usize = 64;
/// Bytes of text that any file may take.
const TEXT_AT_LEAST: usize = 1 << 20;

impl<'a, 'c> Entries<'a, 'c> {
    pub(super) fn new(container: &'c Container<'a>) -> Self {
        let bytes = container.entries.remaining();
        let mut module = Module::new();
        let resources = builtin::resources(container, &mut module);
        Self {
            container,
            module,
            limits: Limits {
                attributes: container.attributes.len(),
                types: container.types.len(),
                strings: container.strings.len(),
                resources: container.resources.len(),
            },
            attributes: vec![Slot::Unseen; container.attributes.len()],
            types: vec![TypeSlot::Unseen; container.types.len()],
            texts: Vec::new(),
            text_budget: bytes.saturating_mul(TEXT_PER_BYTE).saturating_add(TEXT_AT_LEAST),
            resources,
            families: container.dialects.iter().map(|dialect| family(dialect.name)).collect(),
            names: FxHashMap::default(),
            last_name: None,
            stack: Vec::new(),
            needed: Vec::new(),
        }
    }

    /// Takes bytes of text from the budget.
    pub(super) fn take_text(&mut self, decoder: &Decoder<'_>, bytes: usize) -> Fallible<()> {
        self.take_text_bytes(bytes, || decoder.error(TOO_MUCH_TEXT))
    }

    fn take_text_bytes(&mut self, bytes: usize, error: impl FnOnce() -> Box<Diagnostic>) -> Fallible<()> {
        self.text_budget = self.text_budget.checked_sub(bytes).ok_or_else(error)?;
        Ok(())
    }

    // ---- resolved entries

    /// An attribute. Read it before ([`Entries::resolve_attribute`]).
    pub(super) fn attribute(&mut self, index: u32) -> AttrId {
        match self.attributes[index as usize] {
            Slot::Attr(id) => id,
            Slot::Loc(loc) => self.module.attribute(Attribute::Location(loc)),
            Slot::Shardy(at) => {
                let ShardyText { mnemonic, body } = &self.texts[at as usize];
                let text = match body.starts_with('<') {
                    true => format!("sdy.{mnemonic}{body}"),
                    false => format!("sdy<{mnemonic}{body}>"),
                };
                self.module.attribute(Attribute::Opaque(text.into()))
            }
            Slot::Unseen | Slot::Open => unreachable!("invariant: parts of an entry are read before it"),
        }
    }

    pub(super) fn attributes(&mut self, list: &[u32]) -> Box<[AttrId]> {
        list.iter().map(|&a| self.attribute(a)).collect()
    }

    pub(super) fn slot(&self, index: u32) -> Slot {
        self.attributes[index as usize]
    }

    /// A type, read before.
    pub(super) fn ty(&self, index: u32) -> TypeId {
        match self.types[index as usize] {
            TypeSlot::Done(id) => id,
            TypeSlot::Unseen | TypeSlot::Open => {
                unreachable!("invariant: parts of an entry are read before it")
            }
        }
    }

    pub(super) fn types(&self, list: &[u32]) -> Box<[TypeId]> {
        list.iter().map(|&t| self.ty(t)).collect()
    }

    /// A location.
    pub(super) fn location(&self, decoder: &Decoder<'_>, index: u32) -> Fallible<LocId> {
        match self.attributes[index as usize] {
            Slot::Loc(loc) => Ok(loc),
            _ => Err(decoder.error(format!("attribute {index} is no location"))),
        }
    }

    /// The bytes of a string.
    pub(super) fn bytes(&self, string: u32) -> &'a [u8] {
        self.container.strings[string as usize]
    }

    /// A string attribute that is a name.
    pub(super) fn name_of(&mut self, decoder: &Decoder<'_>, index: u32) -> Fallible<NameId> {
        if let Some(&name) = self.names.get(&index) {
            return Ok(name);
        }
        let text = match self.attributes[index as usize] {
            Slot::Attr(id) => match self.module.get_attribute(id) {
                Attribute::String { text, ty: None } => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        let Some(text) = text else {
            return Err(decoder.error(format!("attribute {index} is no UTF-8 string, as names are")));
        };
        let name = self.module.name(&text);
        self.names.insert(index, name);
        Ok(name)
    }

    pub(super) fn resource(&self, index: u32) -> crate::ir::ResourceId {
        self.resources[index as usize]
    }

    // ---- reading

    /// The attribute at an index, which is in range.
    #[inline]
    pub(super) fn resolve_attribute(&mut self, index: usize) -> Fallible<Slot> {
        match self.attributes[index] {
            Slot::Unseen | Slot::Open => {
                self.resolve(Reference::Attr(index as u32))?;
                Ok(self.attributes[index])
            }
            slot => Ok(slot),
        }
    }

    /// The same of a location. Most are locations in files, one for each operation, and read here without
    /// ado; whatever is unusual about one is left to the reader of all entries.
    #[inline]
    pub(super) fn resolve_location(&mut self, index: usize) -> Fallible<Slot> {
        match self.attributes[index] {
            Slot::Unseen => {
                if let Some(location) = self.file_location(self.container.attributes[index]) {
                    self.attributes[index] = Slot::Loc(self.module.location(location));
                    return Ok(self.attributes[index]);
                }
                self.resolve_attribute(index)
            }
            _ => self.resolve_attribute(index),
        }
    }

    /// A location in a file whose name was read before.
    fn file_location(&mut self, entry: Entry) -> Option<Location> {
        if !entry.custom || self.families[entry.dialect as usize] != Some(Family::Builtin) {
            return None;
        }
        let mut cursor = self.container.entries.over(entry.start as usize, entry.end as usize);
        if cursor.varint().ok()? != super::super::codes::builtin::FILE_LINE_COLUMN.code {
            return None;
        }
        let file = u32::try_from(cursor.varint().ok()?).ok()?;
        let name = match self.last_name {
            Some((last, name)) if last == file => name,
            _ => *self.names.get(&file)?,
        };
        self.last_name = Some((file, name));
        let line = u32::try_from(cursor.varint().ok()?).ok()?;
        let column = u32::try_from(cursor.varint().ok()?).ok()?;
        cursor.is_empty().then_some(Location::File { file: name, start: (line, column), end: None })
    }

    /// The type at an index, which is in range.
    #[inline]
    pub(super) fn resolve_type(&mut self, index: usize) -> Fallible<TypeId> {
        match self.types[index] {
            TypeSlot::Done(id) => Ok(id),
            TypeSlot::Unseen | TypeSlot::Open => {
                self.resolve(Reference::Type(index as u32))?;
                Ok(self.ty(index as u32))
            }
        }
    }

    fn is_done(&self, what: Reference) -> bool {
        match what {
            Reference::Attr(i) => !matches!(self.attributes[i as usize], Slot::Unseen | Slot::Open),
            Reference::Type(i) => matches!(self.types[i as usize], TypeSlot::Done(_)),
        }
    }

    fn is_open(&self, what: Reference) -> bool {
        match what {
            Reference::Attr(i) => self.attributes[i as usize] == Slot::Open,
            Reference::Type(i) => self.types[i as usize] == TypeSlot::Open,
        }
    }

    fn entry(&self, what: Reference) -> Entry {
        match what {
            Reference::Attr(i) => self.container.attributes[i as usize],
            Reference::Type(i) => self.container.types[i as usize],
        }
    }

    /// Reads an entry and all that it refers to.
    fn resolve(&mut self, what: Reference) -> Fallible<()> {
        let (mut stack, mut needed) = (std::mem::take(&mut self.stack), std::mem::take(&mut self.needed));
        stack.push(Job { what, decoder: None });
        let result = self.resolve_all(&mut stack, &mut needed);
        stack.clear();
        (self.stack, self.needed) = (stack, needed);
        result
    }

    fn resolve_all(&mut self, stack: &mut Vec<Job<'a>>, needed: &mut Vec<Reference>) -> Fallible<()> {
        while let Some(job) = stack.last_mut() {
            let what = job.what;
            if self.is_done(what) {
                stack.pop();
                continue;
            }
            let entry = self.entry(what);
            if !entry.custom {
                stack.pop();
                self.read_text(what, entry)?;
                continue;
            }
            let mut decoder = match job.decoder.take() {
                Some(decoder) => decoder,
                None => Box::new(self.start(what, entry)?),
            };
            let module = &self.module;
            let types = &self.types;
            let progress = decoder.advance(self.limits, |ty| match types[ty as usize] {
                // What has no width is refused when the entry is built.
                TypeSlot::Done(id) => Some(storage_bits(module, id).unwrap_or(64)),
                TypeSlot::Unseen | TypeSlot::Open => None,
            })?;
            needed.clear();
            match progress {
                Progress::WidthOf(ty) => needed.push(Reference::Type(ty)),
                Progress::Complete => decoder.references(|reference| {
                    if !self.is_done(reference) {
                        needed.push(reference);
                    }
                }),
            }
            if needed.is_empty() {
                stack.pop();
                self.build(what, entry, &decoder)?;
                continue;
            }
            self.open(what);
            if let Some(&cycle) = needed.iter().find(|&&r| self.is_open(r)) {
                return Err(self.cycle(what, cycle));
            }
            job.decoder = Some(decoder);
            stack.extend(needed.drain(..).map(|what| Job { what, decoder: None }));
        }
        Ok(())
    }

    fn open(&mut self, what: Reference) {
        match what {
            Reference::Attr(i) => self.attributes[i as usize] = Slot::Open,
            Reference::Type(i) => self.types[i as usize] = TypeSlot::Open,
        }
    }

    #[cold]
    fn cycle(&self, from: Reference, to: Reference) -> Box<Diagnostic> {
        let name = |what| match what {
            Reference::Attr(i) => format!("attribute {i}"),
            Reference::Type(i) => format!("type {i}"),
        };
        let span = |what| {
            let entry = self.entry(what);
            Span::new(entry.start as usize, entry.end as usize)
        };
        let message = format!("{} contains itself", name(to));
        let mut error = self.container.entries.error_at(codes::CYCLE, span(to), message);
        error.related.push((span(from), format!("{} refers to it", name(from))));
        error
    }

    fn start(&self, what: Reference, entry: Entry) -> Fallible<Decoder<'a>> {
        let mut cursor = self.container.entries.over(entry.start as usize, entry.end as usize);
        let dialect = self.container.dialects[entry.dialect as usize].name;
        let family = self.families[entry.dialect as usize].ok_or_else(|| {
            let message = format!("the encodings of dialect {dialect} are not known");
            cursor.error_at(
                codes::UNKNOWN_DIALECT,
                Span::new(entry.start as usize, entry.end as usize),
                message,
            )
        })?;
        let start = cursor.offset();
        let code = cursor.varint()?;
        let table = table(family, what);
        let Some(encoding) = tables::find(table, code) else {
            let kind = match what {
                Reference::Attr(_) => "attribute",
                Reference::Type(_) => "type",
            };
            let message = format!("{code} is the code of no {kind} of dialect {dialect} that is known");
            return Err(cursor.error(codes::UNKNOWN_ENCODING, start, message));
        };
        Ok(Decoder { encoding, parts: Default::default(), cursor, start })
    }

    /// Puts an entry into the tree whose parts are there.
    fn build(&mut self, what: Reference, entry: Entry, decoder: &Decoder<'a>) -> Fallible<()> {
        let family = self.families[entry.dialect as usize]
            .expect("invariant: the decoder was made for a known dialect");
        match what {
            Reference::Attr(i) => {
                let slot = match family {
                    Family::Builtin => builtin::attribute(self, decoder)?,
                    Family::Vhlo => Slot::Attr(vhlo::attribute(self, decoder)?),
                    Family::Shardy => Slot::Shardy(shardy::attribute(self, decoder)?),
                    Family::Chlo => {
                        let name = self.module.name(&format!("chlo.{}", decoder.encoding.name));
                        let value = self.module.name(decoder.case(0));
                        Slot::Attr(self.module.attribute(Attribute::Enum { name, value }))
                    }
                    Family::Stablehlo => {
                        unreachable!(
                            "invariant: no attributes of this dialect are known, so no decoder was made"
                        )
                    }
                };
                let depth = match slot {
                    Slot::Attr(id) => self.module.attribute_depth(id),
                    Slot::Loc(id) => self.module.location_depth(id),
                    Slot::Shardy(_) | Slot::Unseen | Slot::Open => 0,
                };
                self.check_depth(depth, decoder)?;
                self.attributes[i as usize] = slot;
            }
            Reference::Type(i) => {
                let id = match family {
                    Family::Builtin => builtin::ty(self, decoder)?,
                    Family::Vhlo => vhlo::ty(self, decoder)?,
                    // Tokens, the one type that is in its table.
                    Family::Stablehlo => {
                        let name = self.module.name("stablehlo.token");
                        self.module.ty(Type::Dialect { name, parameters: Box::default() })
                    }
                    Family::Shardy | Family::Chlo => {
                        unreachable!("invariant: these dialects have no types, so no decoder was made")
                    }
                };
                self.check_depth(self.module.type_depth(id), decoder)?;
                self.types[i as usize] = TypeSlot::Done(id);
            }
        }
        Ok(())
    }

    fn check_depth(&self, depth: u32, decoder: &Decoder<'_>) -> Fallible<()> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("{} is nested more than {MAX_DEPTH} levels deep", decoder.encoding.name);
        let span = Span::new(decoder.start, decoder.cursor.end());
        Err(decoder.cursor.error_at(codes::TOO_DEEP, span, message))
    }

    /// An entry that is text: of a dialect that has no encoding of its own for it.
    fn read_text(&mut self, what: Reference, entry: Entry) -> Fallible<()> {
        let mut cursor = self.container.entries.over(entry.start as usize, entry.end as usize);
        let bytes = cursor.until_zero("the text of an attribute or type")?;
        cursor.finish(codes::BAD_ENTRY, "the text of an attribute or type")?;
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(cursor.error(
                codes::BAD_STRING,
                entry.start as usize,
                "the text of an attribute or type is not UTF-8",
            ));
        };
        self.take_text_bytes(text.len(), || {
            cursor.error(codes::TOO_LARGE, entry.start as usize, TOO_MUCH_TEXT)
        })?;
        let wrong = |error: Box<Diagnostic>| {
            let message = format!("the text `{text}` of an attribute or type: {}", error.message);
            cursor.error(codes::BAD_ENTRY, entry.start as usize, message)
        };
        match what {
            Reference::Attr(i) => {
                let id = text::parse_attribute(&mut self.module, text).map_err(wrong)?;
                self.attributes[i as usize] = match self.module.get_attribute(id) {
                    Attribute::Location(loc) => Slot::Loc(*loc),
                    _ => Slot::Attr(id),
                };
            }
            Reference::Type(i) => {
                let id = text::parse_type(&mut self.module, text).map_err(wrong)?;
                self.types[i as usize] = TypeSlot::Done(id);
            }
        }
        Ok(())
    }
}

fn family(dialect: &str) -> Option<Family> {
    Some(match dialect {
        "builtin" => Family::Builtin,
        "vhlo" => Family::Vhlo,
        "sdy" => Family::Shardy,
        "chlo" => Family::Chlo,
        "stablehlo" => Family::Stablehlo,
        _ => return None,
    })
}

fn table(family: Family, what: Reference) -> &'static [&'static Encoding] {
    match (family, what) {
        (Family::Builtin, Reference::Attr(_)) => tables::builtin::ATTRIBUTES,
        (Family::Builtin, Reference::Type(_)) => tables::builtin::TYPES,
        (Family::Vhlo, Reference::Attr(_)) => tables::vhlo::ATTRIBUTES,
        (Family::Vhlo, Reference::Type(_)) => tables::vhlo::TYPES,
        (Family::Shardy, Reference::Attr(_)) => tables::sdy::ATTRIBUTES,
        (Family::Chlo, Reference::Attr(_)) => tables::chlo::ATTRIBUTES,
        (Family::Stablehlo, Reference::Type(_)) => tables::stablehlo::TYPES,
        (Family::Shardy | Family::Chlo, Reference::Type(_)) | (Family::Stablehlo, Reference::Attr(_)) => &[],
    }
}
