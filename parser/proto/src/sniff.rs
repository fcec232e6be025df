//! What a file holds, told by its content.

use prost::encoding::WireType;

use crate::wire::records;
use crate::{Encoding, Kind};

/// What kind of message the bytes are, and how encoded; `None` if they are none of HLO.
///
/// Binary messages are told by the fields at their start: a module has computations (number 3), which begin
/// with a name or an instruction. The key of that field is a control character, so that no text is taken for
/// a message. A file that was truncated is known by what is left of it.
pub fn sniff(bytes: &[u8]) -> Option<(Kind, Encoding)> {
    if let Some(kind) = binary(bytes) {
        return Some((kind, Encoding::Binary));
    }
    // Only the beginning matters; a character may be cut at its end.
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let head = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => std::str::from_utf8(&head[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    text(head, bytes).map(|kind| (kind, Encoding::Text))
}

/// So much of a text is looked at to tell what it is.
const HEAD_BYTES: usize = 1 << 16;
/// So many records of a message are looked at.
const MAX_RECORDS: usize = 100_000;

fn binary(bytes: &[u8]) -> Option<Kind> {
    if is_module(bytes) {
        return Some(Kind::Module);
    }
    let (number, wire, first) = records(bytes).next()?;
    if (number, wire) != (1, WireType::LengthDelimited) {
        return None;
    }
    if is_module(first) {
        let inputs = records(bytes).skip(1).take(MAX_RECORDS).any(|(number, wire, _)| {
            matches!((number, wire), (2, WireType::LengthDelimited) | (3, WireType::Varint))
        });
        return Some(if inputs { Kind::UnoptimizedSnapshot } else { Kind::Proto });
    }
    let (number, wire, inner) = records(first).next()?;
    ((number, wire) == (1, WireType::LengthDelimited) && is_module(inner)).then_some(Kind::Snapshot)
}

fn is_module(bytes: &[u8]) -> bool {
    for (number, wire, body) in records(bytes).take(MAX_RECORDS) {
        match (number, wire) {
            // Names.
            (1 | 2, WireType::LengthDelimited) if !body.iter().any(u8::is_ascii_control) => {}
            (3, WireType::LengthDelimited) => {
                let first = records(body).next();
                return first.is_some_and(|(number, wire, body)| match (number, wire) {
                    (1, WireType::LengthDelimited) => !body.iter().any(u8::is_ascii_control),
                    (2, WireType::LengthDelimited) => true,
                    _ => false,
                });
            }
            (1..=3, _) => return false,
            _ => {}
        }
    }
    false
}

fn text(head: &str, bytes: &[u8]) -> Option<Kind> {
    let mut rest = head.trim_start_matches('\u{feff}');
    loop {
        rest = rest.trim_start();
        let Some(comment) = rest.strip_prefix('#') else { break };
        let (line, after) = comment.split_once('\n')?;
        // `# proto-message: xla.HloSnapshot`
        if let Some(name) = line.trim_start().strip_prefix("proto-message:") {
            let name = name.trim();
            let name = name.strip_prefix("xla.").unwrap_or(name);
            if let Some(kind) = Kind::ALL.into_iter().find(|k| k.message_name() == name) {
                return Some(kind);
            }
        }
        rest = after;
    }
    let word: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let behind = rest[word.len()..].trim_start().chars().next()?;
    let module = crate::schema::modules::HLO_MODULE.field_named(&word).is_some();
    match (&*word, behind) {
        ("hlo", '{' | ':' | '<') => Some(Kind::Snapshot),
        ("hlo_module", '{' | ':' | '<') => {
            let inputs = ["\npartitions", "\nversion:"]
                .iter()
                .any(|w| memchr::memmem::find(bytes, w.as_bytes()).is_some());
            Some(if inputs { Kind::UnoptimizedSnapshot } else { Kind::Proto })
        }
        (_, '{' | ':' | '<') if module => Some(Kind::Module),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_by_its_first_field() {
        let is = |text: &str, kind| assert_eq!(sniff(text.as_bytes()), kind, "{text}");
        is("name: \"m\"\n", Some((Kind::Module, Encoding::Text)));
        is("# a comment\n\ncomputations {\n", Some((Kind::Module, Encoding::Text)));
        is("hlo_module {\n  name: \"m\"\n}\n", Some((Kind::Proto, Encoding::Text)));
        is("hlo_module {\n}\npartitions {\n}\n", Some((Kind::UnoptimizedSnapshot, Encoding::Text)));
        is("hlo { hlo_module { } }", Some((Kind::Snapshot, Encoding::Text)));
        is("# proto-message: xla.HloProto\nx", Some((Kind::Proto, Encoding::Text)));
        is("HloModule m\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n", None);
        is("\n\nHloModule m\n", None);
        is("name = f32[] parameter(0)", None);
        is("", None);
    }

    #[test]
    fn binary_messages_are_told_by_their_fields() {
        let computation = b"\x0a\x01e";
        let wrap = |number: u8, body: &[u8]| [&[number << 3 | 2, body.len() as u8], body].concat();
        let module = [wrap(1, b"m"), wrap(3, computation)].concat();
        assert_eq!(sniff(&module), Some((Kind::Module, Encoding::Binary)));
        let proto = wrap(1, &module);
        assert_eq!(sniff(&proto), Some((Kind::Proto, Encoding::Binary)));
        assert_eq!(sniff(&wrap(1, &proto)), Some((Kind::Snapshot, Encoding::Binary)));
        let inputs = [wrap(1, &module), wrap(2, b"")].concat();
        assert_eq!(sniff(&inputs), Some((Kind::UnoptimizedSnapshot, Encoding::Binary)));
        // Cut off in the computation.
        assert_eq!(sniff(&module[..module.len() - 1]), Some((Kind::Module, Encoding::Binary)));
        assert_eq!(sniff(b"PK\x03\x04"), None);
        assert_eq!(sniff(b"\x7fELF\x02\x01\x01"), None);
    }
}
