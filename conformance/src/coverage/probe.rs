//! The smallest program of each pair.

use hlo::{ElementType, Opcode};

use hlo_generate::legal::Key;

const PROBES: &str = include_str!("../../coverage/probes.hlo");

/// The program in `coverage/probes.hlo` that uses an opcode on elements of this kind, legal or not.
pub fn probe(opcode: Opcode, key: Key) -> Option<String> {
    let body = PROBES.split("// ==== ").skip(1).find_map(|chunk| {
        let (opcodes, body) = chunk.split_once('\n')?;
        opcodes.split_whitespace().any(|o| o == opcode.name()).then_some(body)
    })?;
    let (from, to) = match key {
        Key::Nothing => (ElementType::Pred, ElementType::Pred),
        Key::On(ty) => (ty, ty),
        Key::FromTo(from, to) => (from, to),
    };
    let word = ElementType::from_name(&format!("u{}", from.bits())).unwrap_or(ElementType::U8);
    let complex = from.complex_of().unwrap_or(ElementType::C64);
    let fft = match from.complex_of() {
        Some(c) => (format!("{c}[3]"), "RFFT"),
        None => (format!("{from}[4]"), "FFT"),
    };
    let number = if from.is_complex() {
        "(1, 1)"
    } else if from == ElementType::S1 {
        "-1"
    } else {
        "1"
    };
    let (before, after) = bitcast_dims(from.bits(), to.bits());
    let text = format!("HloModule probe\n{body}")
        .replace("$OP", opcode.name())
        .replace("$T", from.name())
        .replace("$R", from.real_part().name())
        .replace("$C", complex.name())
        .replace("$W", word.name())
        .replace("$U", to.name())
        .replace("$B", &before)
        .replace("$A", &after)
        .replace("$F", &fft.0)
        .replace("$K", fft.1)
        .replace("$Z", number);
    Some(text)
}

/// Dimensions of four elements of one width, and of the same bits in elements of another.
fn bitcast_dims(from: u32, to: u32) -> (String, String) {
    let split = |wide: u32, narrow: u32| if wide.is_multiple_of(narrow) { wide / narrow } else { 1 };
    let dims = |n: u32| if n > 1 { format!("4,{n}") } else { "4".to_owned() };
    if from >= to { (dims(1), dims(split(from, to))) } else { (dims(split(to, from)), dims(1)) }
}
