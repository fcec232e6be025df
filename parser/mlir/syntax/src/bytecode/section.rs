//! Kinds of sections of a bytecode file.

/// What a range of the file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Section {
    /// Before the first section: magic number, version, producer.
    Header,
    /// Text of all names and strings.
    Strings,
    /// Dialects and names of operations.
    Dialects,
    /// Encodings of attributes and types.
    Entries,
    /// Their lengths.
    EntryOffsets,
    /// Operations.
    Ir,
    /// Blobs.
    Resources,
    /// Keys and lengths of the blobs.
    ResourceOffsets,
    /// The version of a dialect.
    DialectVersion,
    /// Inherent attributes of operations.
    Properties,
}

impl Section {
    /// The largest id.
    pub(super) const LAST_ID: u8 = 8;

    /// The section with this id in the file.
    pub(super) fn from_id(id: u8) -> Option<Self> {
        Some(match id {
            0 => Self::Strings,
            1 => Self::Dialects,
            2 => Self::Entries,
            3 => Self::EntryOffsets,
            4 => Self::Ir,
            5 => Self::Resources,
            6 => Self::ResourceOffsets,
            7 => Self::DialectVersion,
            8 => Self::Properties,
            _ => return None,
        })
    }

    /// The id in the file; the header has none.
    pub(super) fn id(self) -> u8 {
        match self {
            Self::Header => u8::MAX,
            Self::Strings => 0,
            Self::Dialects => 1,
            Self::Entries => 2,
            Self::EntryOffsets => 3,
            Self::Ir => 4,
            Self::Resources => 5,
            Self::ResourceOffsets => 6,
            Self::DialectVersion => 7,
            Self::Properties => 8,
        }
    }

    /// For messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Strings => "string section",
            Self::Dialects => "dialect section",
            Self::Entries => "section of attributes and types",
            Self::EntryOffsets => "section of lengths of attributes and types",
            Self::Ir => "section of operations",
            Self::Resources => "section of resources",
            Self::ResourceOffsets => "section of lengths of resources",
            Self::DialectVersion => "version of a dialect",
            Self::Properties => "section of properties",
        }
    }
}
