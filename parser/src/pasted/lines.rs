//! What logs, terminals, diffs and quotations put before lines.

use std::ops::Range;

/// The lines of a text without their ends.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let range = start..start + line.trim_end_matches(['\n', '\r']).len();
        start += line.len();
        range
    })
}

/// Where a module's header starts in a line: `HloModule` and a name after which the line ends or goes on with
/// a comma.
pub(super) fn header_in(line: &str) -> Option<usize> {
    const WORD: &str = "HloModule";
    let at = line.find(WORD)?;
    let rest = &line[at + WORD.len()..];
    let name = rest.trim_start_matches([' ', '\t']);
    if name.len() == rest.len() || line[..at].contains("//") {
        return None;
    }
    let end = name.find(|c: char| !(c.is_alphanumeric() || "_.-%$<>[]".contains(c))).unwrap_or(name.len());
    let after = name[end..].trim_start();
    (end > 0 && (after.is_empty() || after.starts_with(',') || after.starts_with(['\\', '"']))).then_some(at)
}

/// The name in a header that starts at the beginning of a line.
pub(super) fn name_of(header: &str) -> &str {
    let name = header["HloModule".len()..].trim_start();
    name.split([',', ' ', '\t', '\r', '\n']).next().unwrap_or_default().trim_start_matches('%')
}

/// Where the entry computation starts in a line: `ENTRY`, and a brace at the end.
pub(super) fn entry_in(line: &str) -> Option<usize> {
    let at = line.find("ENTRY ")?;
    (line.trim_end().ends_with('{') && !line[..at].contains("//")).then_some(at)
}

/// Whether a line is one of HLO: of an instruction, of a computation's beginning or end, or of a header.
pub(super) fn is_hlo(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('}') || line.ends_with('{') || header_in(line) == Some(0) || {
        let definition = line.strip_prefix("ROOT ").unwrap_or(line).trim_start().split_once('=');
        definition.is_some_and(|(name, value)| {
            let name = name.trim_end().trim_start_matches('%');
            let named = !name.is_empty() && name.bytes().all(crate::token::is_name_byte);
            named && value.contains('(')
        })
    }
}

/// What stands before lines, where numbers are any numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Prefix {
    parts: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Digits,
    /// One or more, at most this many at the end.
    Blanks(usize),
    Byte(u8),
}

impl Prefix {
    /// Of the text before a header, if that is no prose: prefixes end in a bracket, a number or a mark.
    pub(super) fn of(text: &str) -> Option<Prefix> {
        const ENDS: &[u8] = b"])>:|\"'(Z+-";
        /// What pytest puts before the lines of a message.
        const OF_ERRORS: &str = "E";
        /// What container runtimes (CRI) put between the time and a line: the stream, and whether the line is
        /// whole.
        const OF_CONTAINERS: [&str; 4] = [" stdout F", " stderr F", " stdout P", " stderr P"];
        let trimmed = text.trim_end();
        let last = trimmed.bytes().last()?;
        let marked = trimmed == OF_ERRORS || OF_CONTAINERS.iter().any(|mark| trimmed.ends_with(mark));
        if !(last.is_ascii_digit() || ENDS.contains(&last) || marked) {
            return None;
        }
        let bytes = text.as_bytes();
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let run = |class: fn(u8) -> bool| bytes[at..].iter().take_while(|&&b| class(b)).count();
            let (digits, blanks) = (run(|b| b.is_ascii_digit()), run(|b| b == b' ' || b == b'\t'));
            let (part, length) = match (digits, blanks) {
                (0, 0) => (Part::Byte(bytes[at]), 1),
                (0, n) => (Part::Blanks(n), n),
                (n, _) => (Part::Digits, n),
            };
            parts.push(part);
            at += length;
        }
        Some(Prefix { parts })
    }

    /// How long it is before this line; `None` if the line has another one.
    pub(super) fn before(&self, line: &str) -> Option<usize> {
        let bytes = line.as_bytes();
        let mut at = 0;
        for (i, part) in self.parts.iter().enumerate() {
            let last = i + 1 == self.parts.len();
            let run = |class: fn(u8) -> bool| bytes[at..].iter().take_while(|&&b| class(b)).count();
            at += match *part {
                Part::Digits => Some(run(|b| b.is_ascii_digit())).filter(|&n| n > 0)?,
                // The line may have nothing after it; what follows is the indentation of the text.
                Part::Blanks(most) if last => run(|b| b == b' ' || b == b'\t').min(most),
                Part::Blanks(_) => {
                    let blanks = run(|b| b == b' ' || b == b'\t');
                    if blanks == 0 && i > 0 {
                        return None;
                    }
                    blanks
                }
                Part::Byte(b) => (bytes.get(at) == Some(&b)).then_some(1)?,
            };
        }
        line.is_char_boundary(at).then_some(at)
    }
}

/// Whether a line begins with the time and origin of a message, so that it is another message of the same
/// log.
pub(super) fn is_message(line: &str) -> bool {
    let digits = |text: &str, n: usize| text.len() > n && text.as_bytes()[..n].iter().all(u8::is_ascii_digit);
    let dated = digits(line, 4)
        && line.as_bytes()[4] == b'-'
        && line.get(5..).is_some_and(|rest| digits(rest, 2) && rest.as_bytes()[2] == b'-');
    dated || crate::log_prefix::prefix_len(line.as_bytes()) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_told_from_prose() {
        assert_eq!(header_in("HloModule jit_f, is_scheduled=true"), Some(0));
        assert_eq!(header_in("I1 x.cc:3] HloModule m"), Some(11));
        for prose in ["This HloModule is what fails:", "an HloModule dump:", "// HloModule m", "HloModule"] {
            assert_eq!(header_in(prose), None, "{prose}");
        }
        assert_eq!(name_of("HloModule jit_f, x=1"), "jit_f");
    }

    #[test]
    fn prefixes_hold_any_numbers() {
        let prefix = |text: &str| Prefix::of(text).unwrap();
        let glog = prefix("I0000 00:00:1700000.123 1234 hlo_pass.cc:44] ");
        assert_eq!(glog.before("I0000 00:00:1700001.9 1234 hlo_pass.cc:44]   a = f32[] b()"), Some(43));
        assert_eq!(glog.before("  a = f32[] b()"), None);
        assert_eq!(prefix("> ").before(">"), Some(1));
        assert_eq!(prefix("    1\t").before("   10\tROOT"), Some(6));
        assert_eq!(prefix("[rank0]: ").before("[rank12]:   x"), Some(10));
        assert_eq!(Prefix::of("The program is an "), None);
    }

    #[test]
    fn lines_of_hlo_are_recognized() {
        for line in ["  ROOT %a.1 = f32[2]{0} add(b, c)", "ENTRY e {", "}", "%f (p: f32[]) -> f32[] {"] {
            assert!(is_hlo(line), "{line}");
        }
        for line in ["I expected x = 3 here", "Thanks!", "", "Then (as I said) it fails"] {
            assert!(!is_hlo(line), "{line}");
        }
    }
}
