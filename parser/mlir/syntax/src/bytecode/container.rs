//! The container: header, sections and the tables that operations refer to. Nothing of what attributes or
//! operations mean.
//!
//! Every table is read into ranges of the file; its memory is linear in the bytes that it was read from.

use hlo::Span;
use hlo::diag::Diagnostic;
use hlo::diag::codes::bytecode as codes;

use super::cursor::{Cursor, Fallible, SectionBytes};
use super::section::Section;

/// The first bytes of a file.
pub(super) const MAGIC: [u8; 4] = *b"ML\xEFR";

/// What versions of the format (not of a dialect) added.
pub(super) mod format {
    /// The newest that is known.
    pub(crate) const NEWEST: u64 = 6;
    /// Dialects may have versions.
    pub(crate) const DIALECT_VERSIONS: u64 = 1;
    /// Regions that use nothing from outside are sections.
    pub(crate) const REGION_SECTIONS: u64 = 2;
    /// The order of uses may be given.
    pub(crate) const USE_ORDERS: u64 = 3;
    /// Arguments of unknown location have none; the number of operation names stands before them.
    pub(crate) const UNKNOWN_ARGUMENT_LOCATIONS: u64 = 4;
    /// Inherent attributes are in a section of their own.
    pub(crate) const PROPERTIES: u64 = 5;
}

/// A dialect. Its version, if there is one, says nothing: what the names of operations and the codes of
/// attributes leave open has not changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect<'a> {
    /// Its name.
    pub(super) name: &'a str,
}

/// The name of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpName<'a> {
    /// Index of the dialect.
    pub(super) dialect: u32,
    /// The name within the dialect.
    pub(super) name: &'a str,
    /// Whether the writer knew the operation; `None` in old files, which do not say.
    pub(super) registered: Option<bool>,
    /// Where the table has it.
    pub(super) span: Span,
}

/// Where an attribute or type is encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// First byte in the file.
    pub(super) start: u32,
    /// One past the last.
    pub(super) end: u32,
    /// Index of its dialect.
    pub(super) dialect: u32,
    /// In the dialect's own encoding; as text otherwise.
    pub(super) custom: bool,
}

/// The value of a resource.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResourceValue<'a> {
    /// Declared only.
    Missing,
    /// Bytes and their alignment.
    Blob(u64, &'a [u8]),
    /// A boolean.
    Bool(bool),
    /// A string.
    Text(&'a [u8]),
}

/// A resource of a dialect (or an external one, which operations cannot refer to).
#[derive(Clone, Copy, Debug)]
pub(super) struct ResourceEntry<'a> {
    /// The name of its dialect.
    pub(super) owner: &'a str,
    /// Its key.
    pub(super) key: &'a str,
    /// What it holds.
    pub(super) value: ResourceValue<'a>,
}

/// A file, as far as its tables say what it holds.
#[derive(Debug)]
pub(super) struct Container<'a> {
    /// The version of the format.
    pub(super) version: u64,
    /// All strings, without their zero byte.
    pub(super) strings: Vec<&'a [u8]>,
    /// The dialects.
    pub(super) dialects: Vec<Dialect<'a>>,
    /// Names of operations.
    pub(super) op_names: Vec<OpName<'a>>,
    /// Attributes.
    pub(super) attributes: Vec<Entry>,
    /// Types.
    pub(super) types: Vec<Entry>,
    /// The section that attributes and types are in.
    pub(super) entries: Cursor<'a>,
    /// Resources of dialects, which attributes name by index.
    pub(super) resources: Vec<ResourceEntry<'a>>,
    /// Properties of operations.
    pub(super) properties: Vec<(u32, u32)>,
    /// The section that they are in.
    pub(super) property_bytes: Option<Cursor<'a>>,
    /// The operations.
    pub(super) ir: Cursor<'a>,
}

/// Version and producer of a file that starts as bytecode does.
pub(super) fn header<'a>(cursor: &mut Cursor<'a>) -> Fallible<(u64, &'a [u8])> {
    let magic = cursor.bytes(4).ok().filter(|magic| *magic == MAGIC);
    if magic.is_none() {
        let message = "MLIR bytecode starts with the bytes 4D 4C EF 52, this file does not";
        return Err(Cursor::error(cursor, codes::NOT_BYTECODE, 0, message));
    }
    let start = cursor.offset();
    let version = cursor.varint()?;
    if version > format::NEWEST {
        let message =
            format!("the bytecode is of version {version}, and the newest known is {}", format::NEWEST);
        return Err(cursor.error(codes::UNKNOWN_FORMAT, start, message));
    }
    Ok((version, cursor.until_zero("the producer")?))
}

impl<'a> Container<'a> {
    /// Reads the tables of a file.
    pub(super) fn open(file: &'a [u8]) -> Fallible<Self> {
        if file.len() as u64 >= u64::from(u32::MAX) {
            let message = format!("the file has {} bytes, and at most 2^32 - 2 can be read", file.len());
            return Err(Box::new(Diagnostic::error(codes::TOO_LARGE, Span::NONE, message)));
        }
        let mut cursor = Cursor::new(file);
        let (version, _) = header(&mut cursor)?;
        let mut sections: [Option<SectionBytes<'a>>; Section::LAST_ID as usize + 1] = [None; _];
        while !cursor.is_empty() {
            let found = cursor.section()?;
            let slot = &mut sections[usize::from(found.section.id())];
            if slot.is_some() {
                let message = format!("the {} is there twice", found.section.name());
                return Err(cursor.error(codes::BAD_SECTION, found.header, message));
            }
            *slot = Some(found);
        }
        let optional = |section: Section| sections[usize::from(section.id())].map(|s| s.cursor);
        let needed = |section: Section| {
            optional(section).ok_or_else(|| {
                let message = format!("the {} is missing", section.name());
                cursor.error_at(codes::BAD_SECTION, Span::new(cursor.offset(), cursor.offset()), message)
            })
        };

        let strings = read_strings(needed(Section::Strings)?)?;
        let (dialects, op_names) = read_dialects(needed(Section::Dialects)?, version, &strings)?;
        let entries = needed(Section::Entries)?;
        let (attributes, types) = read_entries(needed(Section::EntryOffsets)?, entries, dialects.len())?;
        let property_bytes = match version {
            format::PROPERTIES.. => Some(needed(Section::Properties)?),
            _ => None,
        };
        let properties = property_bytes.map(read_properties).transpose()?.unwrap_or_default();
        let resources = match (optional(Section::Resources), optional(Section::ResourceOffsets)) {
            (Some(values), Some(offsets)) => read_resources(offsets, values, &dialects, &strings)?,
            (None, None) => Vec::new(),
            (Some(one), None) | (None, Some(one)) => {
                let message = "of resources there are values without lengths, or lengths without values";
                return Err(one.error(codes::BAD_RESOURCE, one.offset(), message));
            }
        };
        let ir = needed(Section::Ir)?;
        Ok(Self {
            version,
            strings,
            dialects,
            op_names,
            attributes,
            types,
            entries,
            resources,
            properties,
            property_bytes,
            ir,
        })
    }
}

/// The string that an index in the file names.
pub(super) fn string<'a>(cursor: &mut Cursor<'a>, strings: &[&'a [u8]]) -> Fallible<&'a [u8]> {
    Ok(strings[cursor.index(strings.len(), "string")?])
}

/// The same for a name, which must be UTF-8.
fn name<'a>(cursor: &Cursor<'a>, start: usize, bytes: &'a [u8], what: &str) -> Fallible<&'a str> {
    std::str::from_utf8(bytes).map_err(|_| {
        let message = format!("{what} is not UTF-8: {}", bytes.escape_ascii());
        cursor.error(codes::BAD_STRING, start, message)
    })
}

fn named<'a>(cursor: &mut Cursor<'a>, strings: &[&'a [u8]], what: &str) -> Fallible<&'a str> {
    let start = cursor.offset();
    let bytes = string(cursor, strings)?;
    name(cursor, start, bytes, what)
}

/// Lengths stand before all text, the last one first.
fn read_strings(mut cursor: Cursor<'_>) -> Fallible<Vec<&[u8]>> {
    let file_end = cursor.end();
    let count = cursor.list("strings")?;
    let mut ranges = Vec::with_capacity(count);
    let mut end = file_end;
    for _ in 0..count {
        let start = cursor.offset();
        let length = cursor.varint()?;
        // The lengths themselves are before the text.
        let remaining = end.saturating_sub(cursor.offset());
        let bad = match length {
            0 => Some("a string has at least its zero byte, this one has no byte".to_owned()),
            _ if length > remaining as u64 => {
                Some(format!("a string of {length} bytes, but {remaining} are left"))
            }
            _ => None,
        };
        if let Some(message) = bad {
            return Err(cursor.error(codes::BAD_STRING, start, message));
        }
        ranges.push((end - length as usize, length as usize - 1));
        end -= length as usize;
    }
    match end.checked_sub(cursor.offset()) {
        Some(0) => {}
        Some(between) => {
            let message = format!("{between} bytes between the lengths of strings and their text");
            return Err(cursor.error_at(codes::BAD_STRING, Span::new(cursor.offset(), end), message));
        }
        None => {
            let message = "the lengths of strings reach into their text";
            return Err(cursor.error_at(codes::BAD_STRING, Span::new(end, cursor.offset()), message));
        }
    }
    ranges.reverse();
    ranges
        .into_iter()
        .map(|(start, length)| cursor.over(start, start + length).bytes(length as u64))
        .collect()
}

type DialectTables<'a> = (Vec<Dialect<'a>>, Vec<OpName<'a>>);

fn read_dialects<'a>(
    mut cursor: Cursor<'a>,
    version: u64,
    strings: &[&'a [u8]],
) -> Fallible<DialectTables<'a>> {
    let count = cursor.list("dialects")?;
    let mut dialects = Vec::with_capacity(count);
    for _ in 0..count {
        let start = cursor.offset();
        let (index, has_version) = match version {
            format::DIALECT_VERSIONS.. => cursor.flagged_index(strings.len(), "string")?,
            _ => (cursor.index(strings.len(), "string")?, false),
        };
        let name = name(&cursor, start, strings[index], "the name of a dialect")?;
        if has_version {
            let found = cursor.section()?;
            if found.section != Section::DialectVersion {
                let message =
                    format!("the version of dialect {name} should follow, not a {}", found.section.name());
                return Err(cursor.error(codes::BAD_SECTION, found.header, message));
            }
        }
        dialects.push(Dialect { name });
    }

    let mut op_names = Vec::new();
    if version >= format::UNKNOWN_ARGUMENT_LOCATIONS {
        op_names.reserve(cursor.list("names of operations")?);
    }
    while !cursor.is_empty() {
        let dialect = cursor.index(dialects.len(), "dialect")? as u32;
        for _ in 0..cursor.list("names of operations")? {
            let start = cursor.offset();
            let (index, registered) = match version {
                format::PROPERTIES.. => {
                    let (index, registered) = cursor.flagged_index(strings.len(), "string")?;
                    (index, Some(registered))
                }
                _ => (cursor.index(strings.len(), "string")?, None),
            };
            let name = name(&cursor, start, strings[index], "the name of an operation")?;
            op_names.push(OpName { dialect, name, registered, span: cursor.span_from(start) });
        }
    }
    Ok((dialects, op_names))
}

/// Attributes, then types; both in groups of one dialect.
fn read_entries(
    mut offsets: Cursor<'_>,
    entries: Cursor<'_>,
    dialects: usize,
) -> Fallible<(Vec<Entry>, Vec<Entry>)> {
    let attributes = offsets.list("attributes")?;
    let types = offsets.list("types")?;
    let mut at = entries.offset();
    let mut group = |count: usize, what: &str| -> Fallible<Vec<Entry>> {
        let mut table = Vec::with_capacity(count);
        while table.len() < count {
            let dialect = offsets.index(dialects, "dialect")? as u32;
            let start = offsets.offset();
            let n = offsets.varint()?;
            if n > (count - table.len()) as u64 {
                let message =
                    format!("a group of {n} {what}, but {} are left of {count}", count - table.len());
                return Err(offsets.error(codes::INDEX_OUT_OF_RANGE, start, message));
            }
            for _ in 0..n {
                let start = offsets.offset();
                let (length, custom) = offsets.flagged()?;
                if length > (entries.end() - at) as u64 {
                    let message = format!("an entry of {length} bytes, but {} are left", entries.end() - at);
                    return Err(offsets.error(codes::ENDS_EARLY, start, message));
                }
                let end = at + length as usize;
                table.push(Entry { start: at as u32, end: end as u32, dialect, custom });
                at = end;
            }
        }
        Ok(table)
    };
    let attributes = group(attributes, "attributes")?;
    let types = group(types, "types")?;
    offsets.finish(codes::BAD_SECTION, "the last length")?;
    Ok((attributes, types))
}

fn read_properties(mut cursor: Cursor<'_>) -> Fallible<Vec<(u32, u32)>> {
    let count = cursor.list("properties")?;
    let mut table = Vec::with_capacity(count);
    for _ in 0..count {
        let length = cursor.varint()?;
        let start = cursor.offset();
        cursor.bytes(length)?;
        table.push((start as u32, cursor.offset() as u32));
    }
    cursor.finish(codes::BAD_SECTION, "the last properties")?;
    Ok(table)
}

/// Kinds of resources: blob, boolean, string.
const RESOURCE_KINDS: u8 = 3;

fn read_resources<'a>(
    mut offsets: Cursor<'a>,
    mut values: Cursor<'a>,
    dialects: &[Dialect<'a>],
    strings: &[&'a [u8]],
) -> Fallible<Vec<ResourceEntry<'a>>> {
    let mut all = Vec::new();
    // External ones come first. No operation can name them.
    for _ in 0..offsets.list("groups of resources")? {
        let owner = named(&mut offsets, strings, "the owner of resources")?;
        read_resource_group(&mut offsets, &mut values, strings, owner, &mut Vec::new())?;
    }
    while !offsets.is_empty() {
        let owner = dialects[offsets.index(dialects.len(), "dialect")?].name;
        read_resource_group(&mut offsets, &mut values, strings, owner, &mut all)?;
    }
    Ok(all)
}

fn read_resource_group<'a>(
    offsets: &mut Cursor<'a>,
    values: &mut Cursor<'a>,
    strings: &[&'a [u8]],
    owner: &'a str,
    all: &mut Vec<ResourceEntry<'a>>,
) -> Fallible<()> {
    for _ in 0..offsets.list("resources")? {
        let key = named(offsets, strings, "the key of a resource")?;
        let length = offsets.varint()?;
        let kind_at = offsets.offset();
        let kind = offsets.byte()?;
        if kind >= RESOURCE_KINDS {
            let message = format!("kinds of resources are 0, 1 and 2, this one is {kind}");
            return Err(offsets.error(codes::BAD_RESOURCE, kind_at, message));
        }
        let start = values.offset();
        values.bytes(length)?;
        let mut cursor = values.over(start, values.offset());
        let value = match kind {
            _ if length == 0 => ResourceValue::Missing,
            0 => {
                let at = cursor.offset();
                let alignment = cursor.varint()?;
                let size = cursor.varint()?;
                cursor.align(alignment, at)?;
                ResourceValue::Blob(alignment, cursor.bytes(size)?)
            }
            1 => ResourceValue::Bool(cursor.byte()? != 0),
            _ => ResourceValue::Text(string(&mut cursor, strings)?),
        };
        cursor.finish(codes::BAD_RESOURCE, &format!("resource {key}"))?;
        all.push(ResourceEntry { owner, key, value });
    }
    Ok(())
}
