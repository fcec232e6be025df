//! HLO in the protocol buffers of XLA: `HloModuleProto`, `HloProto`, `HloSnapshot` and
//! `HloUnoptimizedSnapshot`, in binary and in the text format.
//!
//! Three layers: tables of messages (`schema`), messages of any kind with their two encodings (`message`,
//! `wire`, `text`), and what they mean (`read`, `write`: to and from the IR). From one form of protocol
//! buffers to another only the second is used, so that every field is kept, known or not. A module that is
//! read is what its text would give, and goes through the verifier as such.
//!
//! **What holds for any input, however broken:** no panic; errors that give the path of the field; memory
//! within [`ReadOptions::memory_bytes`]; nothing is written of what cannot be written whole.

#![forbid(unsafe_code)]

mod compare;
mod dictionary;
mod document;
mod message;
mod names;
mod node;
mod order;
mod path;
mod read;
mod schema;
mod sniff;
mod style;
mod tables;
mod text;
mod varint;
mod wire;
mod write;

pub use document::{Contents, Document, Found, WriteError, convert, read, write};
pub use sniff::sniff;

/// Which message a file holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// `HloModuleProto`: a program.
    Module,
    /// `HloProto`: a program, and perhaps how a compiler assigned its buffers.
    Proto,
    /// `HloSnapshot`: a program with arguments and result.
    Snapshot,
    /// `HloUnoptimizedSnapshot`: a program with arguments for each partition.
    UnoptimizedSnapshot,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Module, Kind::Proto, Kind::Snapshot, Kind::UnoptimizedSnapshot];

    /// The name of the message.
    pub fn message_name(self) -> &'static str {
        self.message_type().name
    }

    fn message_type(self) -> &'static schema::MessageType {
        match self {
            Kind::Module => &schema::modules::HLO_MODULE,
            Kind::Proto => &schema::modules::HLO,
            Kind::Snapshot => &schema::modules::HLO_SNAPSHOT,
            Kind::UnoptimizedSnapshot => &schema::modules::HLO_UNOPTIMIZED_SNAPSHOT,
        }
    }
}

/// How a message is encoded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Encoding {
    /// The binary one.
    Binary,
    /// The text format.
    Text,
}

/// Limits of reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadOptions {
    /// How deep messages may be nested.
    pub nesting_limit: usize,
    /// The maximum size of messages, module and values, in addition to the input, in bytes.
    pub memory_bytes: u64,
}

impl Default for ReadOptions {
    /// 500 levels, as for text; protocol buffers of XLA's own library have 100.
    fn default() -> Self {
        Self { nesting_limit: 500, memory_bytes: u64::MAX }
    }
}
