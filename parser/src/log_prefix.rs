//! Prefixes that logging puts before the lines of a dump: `I0521 12:04:45.883509 1509 service.cc:186] `.

use std::borrow::Cow;

/// The length of the log prefix of a line; 0 if it has none.
pub(crate) fn prefix_len(line: &[u8]) -> usize {
    fn digits(line: &[u8], at: usize, least: usize, most: usize) -> Option<usize> {
        let n = line[at..].iter().take(most).take_while(|b| b.is_ascii_digit()).count();
        (n >= least).then_some(at + n)
    }
    fn byte(line: &[u8], at: usize, b: u8) -> Option<usize> {
        (line.get(at) == Some(&b)).then_some(at + 1)
    }
    fn parse(line: &[u8]) -> Option<usize> {
        if !matches!(line.first()?, b'I' | b'W' | b'E' | b'F') {
            return None;
        }
        // Month and day; some loggers put the year before them.
        let at = digits(line, 1, 4, 8)?;
        let at = byte(line, at, b' ')?;
        let at = byte(line, digits(line, at, 2, 2)?, b':')?;
        let at = byte(line, digits(line, at, 2, 2)?, b':')?;
        let at = byte(line, digits(line, at, 2, 2)?, b'.')?;
        let at = digits(line, at, 1, 9)?;
        let blanks = line[at..].iter().take_while(|&&b| b == b' ').count();
        let at = digits(line, at + blanks, 1, 20)?;
        let at = byte(line, at, b' ')?;
        let file = line[at..].iter().take_while(|&&b| b != b':' && b != b' ').count();
        let at = byte(line, at + file, b':')?;
        let at = byte(line, digits(line, at, 1, 9)?, b']')?;
        Some(at + usize::from(line.get(at) == Some(&b' ')))
    }
    parse(line).unwrap_or(0)
}

/// Lines with their ends.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

/// Whether the text looks as if it came out of a log: its first line that is not blank has a prefix.
fn logged(text: &str) -> bool {
    lines(text).find(|l| !l.trim().is_empty()).is_some_and(|l| prefix_len(l.as_bytes()) > 0)
}

/// The text without the log prefixes of its lines.
pub fn strip_log_prefixes(text: &str) -> Cow<'_, str> {
    if !logged(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(lines(text).map(|l| &l[prefix_len(l.as_bytes())..]).collect())
}

/// The text with blanks instead of log prefixes, so that offsets stay what they are.
pub(crate) fn mask_log_prefixes(text: &str) -> Cow<'_, str> {
    if !logged(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in lines(text) {
        let n = prefix_len(line.as_bytes());
        out.extend(std::iter::repeat_n(' ', n));
        out.push_str(&line[n..]);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_stripped_or_masked() {
        let text = "I0521 12:04:45.883509    1509 service.cc:186] HloModule m\n\
                    I0521 12:04:45.883512 1509 a/b.cc:7] \n\
                    I0521 12:04:45.883512 1509 a/b.cc:7]   x = f32[] parameter(0)\n";
        assert_eq!(strip_log_prefixes(text), "HloModule m\n\n  x = f32[] parameter(0)\n");
        let masked = mask_log_prefixes(text);
        assert_eq!(masked.len(), text.len());
        assert_eq!(masked.find("HloModule"), text.find("HloModule"));
        assert_eq!(strip_log_prefixes("HloModule I0521\n"), "HloModule I0521\n");
    }
}
