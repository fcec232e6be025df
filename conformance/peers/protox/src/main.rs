//! Compares the protocol buffers that we write with the messages of XLA's own `hlo.proto`, compiled by protox.
//!
//! ```text
//! hlo-protox-peer PROTOS PROGRAMS...
//! ```
//!
//! `PROTOS` is the root of XLA's sources (`xla/service/hlo.proto` below it; `third_party/xla` of TensorFlow's), or a file of descriptors (`descriptors.py` writes those of TensorFlow's
//! wheel), `PROGRAMS` are files of HLO text or folders of them. Each program is written
//! as `HloModuleProto`, decoded by prost-reflect as protox says, and encoded again: there has to be no field that XLA's message does not have, and the bytes have to be the same. Entries of maps
//! have no order there: where one has several, bytes are compared after the entries of both are sorted. What was decoded is read by us again, as the same module.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hlo_proto::{Contents, Encoding, Kind, ReadOptions, WriteError};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MapKey, Value};

/// The files of a folder that end in `.hlo` or `.txt`.
fn programs(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut inside: Vec<PathBuf> = std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        inside.sort();
        inside.iter().for_each(|p| programs(p, found));
    } else if path.extension().is_some_and(|e| e == "hlo" || e == "txt") {
        found.push(path.to_owned());
    }
}

/// What a message has that its type does not say, and maps of several entries.
#[derive(Default)]
struct Seen {
    unknown: Vec<String>,
    maps: usize,
}

impl Seen {
    fn message(&mut self, message: &DynamicMessage) {
        let ty = message.descriptor();
        self.unknown.extend(message.unknown_fields().map(|f| format!("{}.{}", ty.full_name(), f.number())));
        for (_, value) in message.fields() {
            self.value(value);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Message(m) => self.message(m),
            Value::List(list) => list.iter().for_each(|v| self.value(v)),
            Value::Map(map) => {
                self.maps += usize::from(map.len() > 1);
                map.values().for_each(|v| self.value(v));
            }
            Value::Bool(_) | Value::I32(_) | Value::I64(_) | Value::U32(_) | Value::U64(_) | Value::F32(_) | Value::F64(_) | Value::String(_) | Value::Bytes(_) | Value::EnumNumber(_) => {}
        }
    }
}

/// The bytes of a message, with the entries of maps in the order of their keys.
fn canonical(message: &DynamicMessage) -> Vec<u8> {
    fn tagged(number: u32, body: &[u8], out: &mut Vec<u8>) {
        prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, out);
        prost::encoding::encode_varint(body.len() as u64, out);
        out.extend_from_slice(body);
    }
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(|(f, _)| f.number());
    let mut out = Vec::new();
    for (field, value) in fields {
        match value {
            Value::Message(m) => tagged(field.number(), &canonical(m), &mut out),
            Value::List(list) if list.iter().any(|v| v.as_message().is_some()) => {
                list.iter().filter_map(Value::as_message).for_each(|m| tagged(field.number(), &canonical(m), &mut out));
            }
            Value::Map(map) => {
                let mut entries: Vec<(&MapKey, &Value)> = map.iter().collect();
                entries.sort_by(|a, b| a.0.partial_cmp(b.0).unwrap_or(std::cmp::Ordering::Equal));
                let kind = field.kind();
                let Some(entry) = kind.as_message() else { continue };
                for (key, value) in entries {
                    let mut one = DynamicMessage::new(entry.clone());
                    one.set_field_by_number(1, key.clone().into());
                    one.set_field_by_number(2, value.clone());
                    tagged(field.number(), &canonical(&one), &mut out);
                }
            }
            other => {
                let mut one = DynamicMessage::new(message.descriptor());
                one.set_field(&field, other.clone());
                out.extend(one.encode_to_vec());
            }
        }
    }
    out
}

/// XLA's messages: of sources, or as a file has them.
fn descriptors(path: &Path) -> Result<DescriptorPool, String> {
    if path.is_dir() {
        let files = protox::compile(["xla/service/hlo.proto"], [path]).map_err(|e| e.to_string())?;
        return DescriptorPool::from_file_descriptor_set(files).map_err(|e| e.to_string());
    }
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    DescriptorPool::decode(&bytes[..]).map_err(|e| e.to_string())
}

/// What came of a program.
enum Outcome {
    Same,
    SameButMaps,
    NotWritten,
    Differs(String),
}

fn compare(text: &str, pool: &DescriptorPool) -> Outcome {
    let Some(module) = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default()).module else { return Outcome::NotWritten };
    let mut bytes = Vec::new();
    match hlo_proto::write(&Contents::of(&module), Kind::Module, Encoding::Binary, &mut bytes) {
        Ok(()) => {}
        Err(WriteError::Unsupported(_) | WriteError::Unreadable(_)) => return Outcome::NotWritten,
        Err(WriteError::Io(e)) => return Outcome::Differs(e.to_string()),
    }
    let Some(ty) = pool.get_message_by_name("xla.HloModuleProto") else { return Outcome::Differs("there is no xla.HloModuleProto".into()) };
    let message = match DynamicMessage::decode(ty.clone(), &bytes[..]) {
        Ok(message) => message,
        Err(e) => return Outcome::Differs(format!("it does not decode: {e}")),
    };
    let mut seen = Seen::default();
    seen.message(&message);
    if !seen.unknown.is_empty() {
        return Outcome::Differs(format!("fields that XLA does not have: {:?}", seen.unknown));
    }
    let theirs = message.encode_to_vec();
    let read = hlo_proto::read(&theirs, Kind::Module, Encoding::Binary, &ReadOptions::default()).document;
    match read.map(|document| hlo::equal::modules_equal(&module, &document.module)) {
        Some(Ok(())) => {}
        Some(Err(difference)) => return Outcome::Differs(format!("read back: {difference}")),
        None => return Outcome::Differs("what prost encodes is not read".into()),
    }
    if seen.maps == 0 {
        return if theirs == bytes { Outcome::Same } else { Outcome::Differs("other bytes".into()) };
    }
    // Both in one order: ours, which is that of the keys, has to be it already.
    if canonical(&message) == bytes { Outcome::SameButMaps } else { Outcome::Differs("other bytes, maps apart".into()) }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(root), paths) = (words.next(), words.collect::<Vec<_>>()) else {
        eprintln!("hlo-protox-peer PROTOS PROGRAMS...");
        return ExitCode::from(2);
    };
    let pool = descriptors(Path::new(&root));
    let pool = match pool {
        Ok(pool) => pool,
        Err(error) => {
            eprintln!("{root}: {error}");
            return ExitCode::from(2);
        }
    };
    let mut files = Vec::new();
    paths.iter().for_each(|p| programs(Path::new(p), &mut files));
    let (mut same, mut maps, mut not_written, mut differ) = (0, 0, 0, 0);
    for file in &files {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        match compare(&text, &pool) {
            Outcome::Same => same += 1,
            Outcome::SameButMaps => maps += 1,
            Outcome::NotWritten => not_written += 1,
            Outcome::Differs(how) => {
                differ += 1;
                println!("{}: {how}", file.display());
            }
        }
    }
    println!("{same} programs with the same bytes, {maps} with the same bytes once the entries of maps have an order, {not_written} that are no programs or have no proto, {differ} that differ");
    if differ > 0 || same + maps == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
