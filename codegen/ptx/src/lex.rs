//! Tokens of PTX text. Comments and white space separate tokens and are dropped.
//!
//! Invariant: every byte of the text is in one token, in a comment, white space, or behind the diagnostic
//! that ends the scan.

use crate::diag::{Diagnostic, Span};

/// What a token is. Its text is the text at its span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An identifier: `[A-Za-z_$%][A-Za-z0-9_$]*`.
    Ident,
    /// A dot and the word behind it: `.global`, `.param::entry`.
    Dot,
    /// A literal of an integer or floating-point number, without sign.
    Number,
    /// A string in quotes.
    Str,
    /// One character of punctuation.
    Punct(u8),
}

/// A token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub span: Span,
}

impl Token {
    /// The text of the token in the text that it comes from.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> &'a str {
        &text[self.span.start as usize..self.span.end as usize]
    }
}

/// A text may have this many bytes. The largest kernels of XLA have some 10^5.
pub const MAX_TEXT_BYTES: usize = 256 << 20;

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$'
}

/// The tokens of `text`.
///
/// # Errors
/// A diagnostic at the first byte that begins no token, and for a comment or string without end.
pub fn tokens(text: &str) -> Result<Vec<Token>, Box<Diagnostic>> {
    let bytes = text.as_bytes();
    let fault = |start: usize, end: usize, code, message: String| {
        Err(Box::new(Diagnostic::new(text, Span { start: start as u32, end: end as u32 }, code, message)))
    };
    if bytes.len() > MAX_TEXT_BYTES {
        return fault(
            0,
            0,
            "X0003",
            format!("the text has {} bytes; the limit is {MAX_TEXT_BYTES}", bytes.len()),
        );
    }
    let mut out = Vec::with_capacity(bytes.len() / 4);
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let b = bytes[at];
        let kind = match b {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = text[at..].find('\n').map_or(bytes.len(), |n| at + n);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => match text[at + 2..].find("*/") {
                Some(n) => {
                    at += n + 4;
                    continue;
                }
                None => return fault(at, at + 2, "X0001", "a comment without end".into()),
            },
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' | b'%' => {
                at += 1;
                while at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
                Kind::Ident
            }
            b'.' if bytes.get(at + 1).is_some_and(|&b| is_word(b)) => {
                at += 1;
                while at < bytes.len() {
                    if is_word(bytes[at]) {
                        at += 1;
                    } else if bytes[at..].starts_with(b"::") && bytes.get(at + 2).is_some_and(|&b| is_word(b))
                    {
                        at += 2;
                    } else {
                        break;
                    }
                }
                Kind::Dot
            }
            b'0'..=b'9' => {
                let decimal = !(b == b'0'
                    && bytes
                        .get(at + 1)
                        .is_some_and(|b| matches!(b, b'x' | b'X' | b'f' | b'F' | b'd' | b'D' | b'b' | b'B')));
                at += 1;
                while at < bytes.len() {
                    let b = bytes[at];
                    let exponent_sign =
                        decimal && (b == b'+' || b == b'-') && matches!(bytes[at - 1], b'e' | b'E');
                    if b.is_ascii_alphanumeric() || (decimal && b == b'.') || exponent_sign {
                        at += 1;
                    } else {
                        break;
                    }
                }
                Kind::Number
            }
            b'"' => match text[at + 1..].find(['"', '\n']) {
                Some(n) if bytes[at + 1 + n] == b'"' => {
                    at += n + 2;
                    Kind::Str
                }
                _ => return fault(at, at + 1, "X0001", "a string without end".into()),
            },
            b',' | b';' | b':' | b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>' | b'=' | b'+'
            | b'-' | b'*' | b'/' | b'@' | b'!' | b'|' | b'&' | b'~' | b'^' | b'?' | b'.' => {
                at += 1;
                Kind::Punct(b)
            }
            0..=8 | 14..=31 | b'#' | b'\'' | b'\\' | b'`' | 127..=255 => {
                let c = text[at..].chars().next().unwrap_or('?');
                return fault(at, at + 1, "X0001", format!("{c:?} begins no token of PTX"));
            }
        };
        out.push(Token { kind, span: Span { start: start as u32, end: at as u32 } });
    }
    Ok(out)
}

/// The value of an integer literal as PTX writes them: decimal, `0x`, `0b`, octal with a leading 0, an
/// optional `U`. `None` where the spelling is none or the value does not fit in 64 bits.
#[must_use]
pub fn integer(spelling: &str) -> Option<u64> {
    let digits = spelling.strip_suffix(['U', 'u']).unwrap_or(spelling);
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16).ok()
    } else if let Some(binary) = digits.strip_prefix("0b").or_else(|| digits.strip_prefix("0B")) {
        u64::from_str_radix(binary, 2).ok()
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8).ok()
    } else if digits.bytes().all(|b| b.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}

/// The value of a floating-point literal: the bits and whether it is written as single precision (`0f`).
/// Decimal and `0d` literals are double precision.
#[must_use]
pub fn float(spelling: &str) -> Option<Float> {
    let lower = |p: &str, q: &str| spelling.strip_prefix(p).or_else(|| spelling.strip_prefix(q));
    if let Some(hex) = lower("0f", "0F") {
        (hex.len() == 8).then(|| u32::from_str_radix(hex, 16).ok().map(Float::Single))?
    } else if let Some(hex) = lower("0d", "0D") {
        (hex.len() == 16).then(|| u64::from_str_radix(hex, 16).ok().map(Float::Double))?
    } else if spelling.contains(['.', 'e', 'E'])
        && spelling.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b))
    {
        spelling.parse::<f64>().ok().map(|v| Float::Double(v.to_bits()))
    } else {
        None
    }
}

/// A floating-point literal by its bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Float {
    /// `0f3F800000`
    Single(u32),
    /// `0d3FF0000000000000`, `1.0`
    Double(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).unwrap().iter().map(|t| t.text(text)).collect()
    }

    #[test]
    fn opcodes_addresses_and_numbers() {
        assert_eq!(
            words("@!%p1 ld.param::entry.b64 %rd1, [f_param_0+-8]; // c\n/* d */ mov.f32 %f1,0f3F800000;"),
            [
                "@",
                "!",
                "%p1",
                "ld",
                ".param::entry",
                ".b64",
                "%rd1",
                ",",
                "[",
                "f_param_0",
                "+",
                "-",
                "8",
                "]",
                ";",
                "mov",
                ".f32",
                "%f1",
                ",",
                "0f3F800000",
                ";"
            ]
        );
        assert_eq!(words("1.5e-3 0x1E+4 .version 9.0"), ["1.5e-3", "0x1E", "+", "4", ".version", "9.0"]);
    }

    #[test]
    fn literals() {
        assert_eq!(integer("0x7770U"), Some(0x7770));
        assert_eq!(integer("017"), Some(15));
        assert_eq!(integer("0b101"), Some(5));
        assert_eq!(integer("18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer("18446744073709551616"), None);
        assert_eq!(integer("12ab"), None);
        assert_eq!(float("0f3F800000"), Some(Float::Single(0x3F80_0000)));
        assert_eq!(float("0d3FF0000000000000"), Some(Float::Double(0x3FF0_0000_0000_0000)));
        assert_eq!(float("1.5"), Some(Float::Double(0x3FF8_0000_0000_0000)));
        assert_eq!(float("0f3F8"), None);
    }

    #[test]
    fn faults() {
        assert_eq!(tokens("a\n #").unwrap_err().line, 2);
        assert_eq!(tokens("/* x").unwrap_err().code, "X0001");
        assert_eq!(tokens("\"x\n\"").unwrap_err().code, "X0001");
        assert_eq!(tokens("mov \u{e9}").unwrap_err().code, "X0001");
    }
}
