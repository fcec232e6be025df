//! Names as text can say them.

use std::borrow::Cow;

/// A name of letters, digits, `_`, `.` and `-` that does not start with a digit or sign: others become `_`,
/// as XLA does it.
pub(crate) fn sanitized(name: &str) -> Cow<'_, str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let starts = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    match name.as_bytes() {
        [first, rest @ ..] if starts(*first) && rest.iter().all(|&b| plain(b)) => Cow::Borrowed(name),
        [] => Cow::Borrowed(""),
        [first, ..] => {
            let mut out = String::with_capacity(name.len() + 1);
            if !starts(*first) {
                out.push('_');
            }
            let kept = name.chars().skip(usize::from(!starts(*first) && !plain(*first)));
            out.extend(kept.map(|c| if u8::try_from(c).is_ok_and(plain) { c } else { '_' }));
            Cow::Owned(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sanitized;

    #[test]
    fn names_that_text_can_say() {
        for (name, expected) in [
            ("add.1", "add.1"),
            ("", ""),
            ("1x", "_1x"),
            ("a b", "a_b"),
            ("%a", "_a"),
            ("\u{e9}t", "_t"),
            ("-", "_-"),
        ] {
            assert_eq!(sanitized(name), expected, "{name}");
        }
    }
}
