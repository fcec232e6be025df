//! Compares the protocol buffers that we write with the messages of XLA's own `hlo.proto`, compiled by
//! protox.
//!
//! ```text
//! hlo-protox-peer PROTOS [--older] PROGRAMS...
//! ```
//!
//! `PROTOS` is the root of XLA's sources (`xla/service/hlo.proto` below it; `third_party/xla` of
//! TensorFlow's), or a file of descriptors (`descriptors.py` writes those of TensorFlow's wheel), `PROGRAMS`
//! are files of HLO text or folders of them. Each program is written as `HloModuleProto`, decoded by
//! prost-reflect as protox says, and encoded again: there has to be no field that XLA's message does not have
//! (but ours for what no field of XLA's holds, docs/formats.md; with `--older`, which is for sources that are
//! older than our tables, those are listed), and the bytes have to be the same. Entries of maps have no order
//! there: where one has several, bytes are compared after the entries of both are sorted. Zeros that a text
//! gives (`unit_diagonal=false`) are written by us, since a text without them is another one, and left out by
//! encoders. What was encoded is read by us.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hlo_proto::{Contents, Encoding, ReadOptions, WriteError};
use prost::Message;
use prost::encoding::WireType;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MapKey, MessageDescriptor, ReflectMessage, Value};

/// The files of a folder that end in `.hlo` or `.txt`.
fn programs(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut inside: Vec<PathBuf> =
            std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        inside.sort();
        inside.iter().for_each(|p| programs(p, found));
    } else if path.extension().is_some_and(|e| e == "hlo" || e == "txt") {
        found.push(path.to_owned());
    }
}

/// Our field for what no field of XLA's holds.
const OURS: u32 = 100_000;

/// What a message has that its type does not say.
#[derive(Default)]
struct Seen {
    unknown: BTreeSet<String>,
}

impl Seen {
    fn message(&mut self, message: &DynamicMessage) {
        let ty = message.descriptor();
        let unknown = message.unknown_fields().map(|f| f.number()).filter(|&n| n != OURS);
        self.unknown.extend(unknown.map(|n| format!("{}.{n}", ty.full_name())));
        for (_, value) in message.fields() {
            self.value(value);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Message(m) => self.message(m),
            Value::List(list) => list.iter().for_each(|v| self.value(v)),
            Value::Map(map) => {
                map.values().for_each(|v| self.value(v));
            }
            Value::Bool(_)
            | Value::I32(_)
            | Value::I64(_)
            | Value::U32(_)
            | Value::U64(_)
            | Value::F32(_)
            | Value::F64(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::EnumNumber(_) => {}
        }
    }
}

/// The bytes of a message, with the entries of maps in the order of their keys, and in them key and value
/// whatever they are, as Google's library writes them: prost leaves zeros out. (Maps of XLA's messages have
/// keys that are numbers or text, and values that are numbers, text or messages.)
fn canonical(message: &DynamicMessage) -> Vec<u8> {
    fn tagged(number: u32, body: &[u8], out: &mut Vec<u8>) {
        prost::encoding::encode_key(number, WireType::LengthDelimited, out);
        prost::encoding::encode_varint(body.len() as u64, out);
        out.extend_from_slice(body);
    }
    fn number(field: u32, value: u64, out: &mut Vec<u8>) {
        prost::encoding::encode_key(field, WireType::Varint, out);
        prost::encoding::encode_varint(value, out);
    }
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(|(f, _)| f.number());
    let mut out = Vec::new();
    for (field, value) in fields {
        match value {
            Value::Message(m) => tagged(field.number(), &canonical(m), &mut out),
            Value::List(list) if list.iter().any(|v| v.as_message().is_some()) => {
                list.iter()
                    .filter_map(Value::as_message)
                    .for_each(|m| tagged(field.number(), &canonical(m), &mut out));
            }
            Value::Map(map) => {
                let mut entries: Vec<(&MapKey, &Value)> = map.iter().collect();
                entries.sort_by(|a, b| a.0.partial_cmp(b.0).unwrap_or(std::cmp::Ordering::Equal));
                for (key, value) in entries {
                    let mut entry = Vec::new();
                    match key {
                        MapKey::String(key) => tagged(1, key.as_bytes(), &mut entry),
                        MapKey::I64(key) => number(1, key.cast_unsigned(), &mut entry),
                        MapKey::Bool(_) | MapKey::I32(_) | MapKey::U32(_) | MapKey::U64(_) => {}
                    }
                    match value {
                        Value::String(value) => tagged(2, value.as_bytes(), &mut entry),
                        Value::Message(value) => tagged(2, &canonical(value), &mut entry),
                        Value::I64(value) => number(2, value.cast_unsigned(), &mut entry),
                        Value::Bool(_)
                        | Value::I32(_)
                        | Value::U32(_)
                        | Value::U64(_)
                        | Value::F32(_)
                        | Value::F64(_)
                        | Value::Bytes(_)
                        | Value::EnumNumber(_)
                        | Value::List(_)
                        | Value::Map(_) => {}
                    }
                    tagged(field.number(), &entry, &mut out);
                }
            }
            other => {
                let mut one = DynamicMessage::new(message.descriptor());
                one.set_field(&field, other.clone());
                out.extend(one.encode_to_vec());
            }
        }
    }
    message.unknown_fields().for_each(|field| field.encode(&mut out));
    out
}

/// The bytes of a message of ours without numbers that are zero, which encoders leave out where a field has
/// no presence. `None`: they are no message.
fn without_zeros(ty: &MessageDescriptor, mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let before = bytes;
        let (number, wire) = prost::encoding::decode_key(&mut bytes).ok()?;
        let field = ty.get_field(number);
        match wire {
            WireType::Varint => {
                let value = prost::encoding::decode_varint(&mut bytes).ok()?;
                if value == 0
                    && field.is_some_and(|f| !f.supports_presence() && !f.is_list())
                    && !ty.is_map_entry()
                {
                    continue;
                }
            }
            WireType::ThirtyTwoBit => bytes = bytes.get(4..)?,
            WireType::SixtyFourBit => bytes = bytes.get(8..)?,
            WireType::LengthDelimited => {
                let length = usize::try_from(prost::encoding::decode_varint(&mut bytes).ok()?).ok()?;
                let (body, after) = bytes.split_at_checked(length)?;
                bytes = after;
                let kind = field.map(|f| f.kind());
                if let Some(inner) = kind.as_ref().and_then(Kind::as_message) {
                    let body = without_zeros(inner, body)?;
                    prost::encoding::encode_key(number, wire, &mut out);
                    prost::encoding::encode_varint(body.len() as u64, &mut out);
                    out.extend(body);
                    continue;
                }
            }
            WireType::StartGroup | WireType::EndGroup => return None,
        }
        out.extend_from_slice(&before[..before.len() - bytes.len()]);
    }
    Some(out)
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
    SameButZeros,
    NotWritten,
    Differs(String),
}

fn compare(text: &str, pool: &DescriptorPool, older: &mut Option<BTreeSet<String>>) -> Outcome {
    let Some(module) = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default()).module else {
        return Outcome::NotWritten;
    };
    let mut bytes = Vec::new();
    match hlo_proto::write(&Contents::of(&module), hlo_proto::Kind::Module, Encoding::Binary, &mut bytes) {
        Ok(()) => {}
        Err(WriteError::Unsupported(_) | WriteError::Unreadable(_)) => return Outcome::NotWritten,
        Err(WriteError::Io(e)) => return Outcome::Differs(e.to_string()),
    }
    let Some(ty) = pool.get_message_by_name("xla.HloModuleProto") else {
        return Outcome::Differs("there is no xla.HloModuleProto".into());
    };
    let message = match DynamicMessage::decode(ty.clone(), &bytes[..]) {
        Ok(message) => message,
        Err(e) => return Outcome::Differs(format!("it does not decode: {e}")),
    };
    let mut seen = Seen::default();
    seen.message(&message);
    if let Some(older) = older {
        older.extend(seen.unknown);
    } else if !seen.unknown.is_empty() {
        return Outcome::Differs(format!("fields that XLA does not have: {:?}", seen.unknown));
    }
    let theirs = message.encode_to_vec();
    let canonical = canonical(&message);
    let outcome = if theirs == bytes {
        Outcome::Same
    } else if canonical == bytes {
        Outcome::SameButMaps
    } else if without_zeros(&ty, &bytes).as_ref() == Some(&canonical) {
        return Outcome::SameButZeros;
    } else {
        let offset = canonical.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        return Outcome::Differs(format!(
            "other bytes from {offset} on: {} and {}",
            canonical.len(),
            bytes.len()
        ));
    };
    let read = hlo_proto::read(&theirs, hlo_proto::Kind::Module, Encoding::Binary, &ReadOptions::default());
    if read.document.is_some() { outcome } else { Outcome::Differs("what prost encodes is not read".into()) }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(root), mut paths) = (words.next(), words.collect::<Vec<_>>()) else {
        eprintln!("hlo-protox-peer PROTOS [--older] PROGRAMS...");
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
    let mut older = paths.iter().any(|p| p == "--older").then(BTreeSet::new);
    paths.retain(|p| p != "--older");
    let mut files = Vec::new();
    paths.iter().for_each(|p| programs(Path::new(p), &mut files));
    let (mut same, mut maps, mut zeros, mut not_written, mut differ) = (0, 0, 0, 0, 0);
    for file in &files {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        match compare(&text, &pool, &mut older) {
            Outcome::Same => same += 1,
            Outcome::SameButMaps => maps += 1,
            Outcome::SameButZeros => zeros += 1,
            Outcome::NotWritten => not_written += 1,
            Outcome::Differs(how) => {
                differ += 1;
                println!("{}: {how}", file.display());
            }
        }
    }
    if let Some(fields) = older.filter(|fields| !fields.is_empty()) {
        println!(
            "fields that are newer than these sources: {}",
            fields.into_iter().collect::<Vec<_>>().join(", ")
        );
    }
    println!(
        "{same} programs with the same bytes, {maps} once the entries of maps have an order, {zeros} but for zeros, {not_written} that are no programs or have no proto, {differ} that differ"
    );
    if differ > 0 || same + maps == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
