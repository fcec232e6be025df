//! The tables of a file that is being written: strings, dialects, names of operations, entries and
//! properties, each thing once.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::container::format;
use super::super::section::Section;
use super::emit::Emitter;

/// A table of things without repetition.
#[derive(Debug)]
struct Unique<T> {
    items: Vec<T>,
    index: FxHashMap<T, u32>,
}

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self { items: Vec::new(), index: FxHashMap::default() }
    }
}

impl<T: Hash + Eq + Clone> Unique<T> {
    fn add(&mut self, item: T) -> u32 {
        let next = self.items.len() as u32;
        let at = *self.index.entry(item.clone()).or_insert(next);
        if at == next {
            self.items.push(item);
        }
        at
    }
}

/// The bytes of a constant.
#[derive(Clone, Debug)]
pub(super) enum Blob {
    /// As the tree has them.
    Shared(Arc<[u8]>),
    /// Made for the file.
    Own(Box<[u8]>),
}

impl Blob {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Blob::Shared(data) => data,
            Blob::Own(data) => data,
        }
    }
}

/// An attribute or type.
#[derive(Clone, Debug)]
struct Entry {
    dialect: u32,
    custom: bool,
    bytes: Box<[u8]>,
    /// What follows the bytes.
    blob: Option<Blob>,
}

/// Attributes or types.
#[derive(Default, Debug)]
struct EntryTable {
    entries: Vec<Entry>,
    /// Those without a blob.
    index: FxHashMap<(u32, bool, Box<[u8]>), u32>,
}

impl EntryTable {
    fn add(&mut self, entry: Entry) -> u32 {
        let next = self.entries.len() as u32;
        if entry.blob.is_some() {
            self.entries.push(entry);
            return next;
        }
        let key = (entry.dialect, entry.custom, entry.bytes.clone());
        let at = *self.index.entry(key).or_insert(next);
        if at == next {
            self.entries.push(entry);
        }
        at
    }

    /// Lengths, in groups of one dialect.
    fn lengths(&self, out: &mut Emitter) {
        for group in self.entries.chunk_by(|a, b| a.dialect == b.dialect) {
            out.varint(group[0].dialect.into());
            out.varint(group.len() as u64);
            for entry in group {
                let blob = entry.blob.as_ref().map_or(0, |blob| blob.bytes().len());
                out.flagged((entry.bytes.len() + blob) as u64, entry.custom);
            }
        }
    }

    fn size(&self) -> usize {
        let blob = |e: &Entry| e.blob.as_ref().map_or(0, |blob| blob.bytes().len());
        self.entries.iter().map(|e| e.bytes.len() + blob(e)).sum()
    }

    fn contents(&self, out: &mut Emitter) {
        for entry in &self.entries {
            out.bytes.extend_from_slice(&entry.bytes);
            if let Some(blob) = &entry.blob {
                out.bytes.extend_from_slice(blob.bytes());
            }
        }
    }
}

/// All tables.
#[derive(Debug)]
pub(super) struct Tables {
    /// The version of the bytecode format.
    format: u64,
    strings: Unique<Box<[u8]>>,
    dialects: Unique<u32>,
    op_names: Unique<(u32, u32)>,
    attributes: EntryTable,
    types: EntryTable,
    properties: Unique<Box<[u8]>>,
}

/// Which table an entry is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    Attributes,
    Types,
}

impl Tables {
    pub(super) fn new(format: u64) -> Self {
        Self {
            format,
            strings: Unique::default(),
            dialects: Unique::default(),
            op_names: Unique::default(),
            attributes: EntryTable::default(),
            types: EntryTable::default(),
            properties: Unique::default(),
        }
    }

    pub(super) fn format(&self) -> u64 {
        self.format
    }

    pub(super) fn string(&mut self, bytes: &[u8]) -> u32 {
        match self.strings.index.get(bytes) {
            Some(&at) => at,
            None => self.strings.add(bytes.into()),
        }
    }

    pub(super) fn dialect(&mut self, name: &str) -> u32 {
        let name = self.string(name.as_bytes());
        self.dialects.add(name)
    }

    /// The name of an operation, with its dialect: `vhlo.add_v1`.
    pub(super) fn op_name(&mut self, name: &str) -> u32 {
        let (dialect, rest) = name.split_once('.').unwrap_or((name, ""));
        let (dialect, rest) = (self.dialect(dialect), self.string(rest.as_bytes()));
        self.op_names.add((dialect, rest))
    }

    pub(super) fn entry(
        &mut self,
        of: Of,
        dialect: &str,
        custom: bool,
        bytes: Vec<u8>,
        blob: Option<Blob>,
    ) -> u32 {
        let entry = Entry { dialect: self.dialect(dialect), custom, bytes: bytes.into(), blob };
        match of {
            Of::Attributes => self.attributes.add(entry),
            Of::Types => self.types.add(entry),
        }
    }

    pub(super) fn properties(&mut self, bytes: Vec<u8>) -> u32 {
        self.properties.add(bytes.into())
    }

    /// The whole file, with its operations.
    pub(super) fn file(&self, producer: &str, ir: &[u8]) -> Vec<u8> {
        let entries = self.attributes.size() + self.types.size();
        let mut out = Emitter { bytes: Vec::with_capacity(entries + ir.len() + (1 << 12)) };
        out.bytes.extend_from_slice(&super::super::container::MAGIC);
        out.varint(self.format);
        out.bytes.extend_from_slice(producer.as_bytes());
        out.byte(0);
        out.section(Section::Dialects, &self.dialect_section());
        let mut lengths = Emitter::default();
        lengths.varint(self.attributes.entries.len() as u64);
        lengths.varint(self.types.entries.len() as u64);
        self.attributes.lengths(&mut lengths);
        self.types.lengths(&mut lengths);
        out.section(Section::EntryOffsets, &lengths.bytes);
        out.section_header(Section::Entries, entries);
        self.attributes.contents(&mut out);
        self.types.contents(&mut out);
        out.section(Section::Ir, ir);
        out.section(Section::Strings, &self.string_section());
        if self.format >= format::PROPERTIES {
            let mut properties = Emitter::default();
            properties.varint(self.properties.items.len() as u64);
            for item in &self.properties.items {
                properties.varint(item.len() as u64);
                properties.bytes.extend_from_slice(item);
            }
            out.section(Section::Properties, &properties.bytes);
        }
        out.bytes
    }

    fn dialect_section(&self) -> Vec<u8> {
        let mut out = Emitter::default();
        out.varint(self.dialects.items.len() as u64);
        for &name in &self.dialects.items {
            match self.format {
                format::DIALECT_VERSIONS.. => out.flagged(name.into(), false),
                _ => out.varint(name.into()),
            }
        }
        if self.format >= format::UNKNOWN_ARGUMENT_LOCATIONS {
            out.varint(self.op_names.items.len() as u64);
        }
        for group in self.op_names.items.chunk_by(|a, b| a.0 == b.0) {
            out.varint(group[0].0.into());
            out.varint(group.len() as u64);
            for &(_, name) in group {
                match self.format {
                    format::PROPERTIES.. => out.flagged(name.into(), true),
                    _ => out.varint(name.into()),
                }
            }
        }
        out.bytes
    }

    /// Lengths with a zero byte each, the last string first, and then the strings.
    fn string_section(&self) -> Vec<u8> {
        let mut out = Emitter::default();
        out.varint(self.strings.items.len() as u64);
        for item in self.strings.items.iter().rev() {
            out.varint(item.len() as u64 + 1);
        }
        for item in &self.strings.items {
            out.bytes.extend_from_slice(item);
            out.byte(0);
        }
        out.bytes
    }
}
