//! Values that XLA's text writes without quotes.

/// Whether a text is one pair of braces that match, strings in double quotes aside: XLA's text has such
/// backend configurations and frontend attributes without quotes, and others in quotes; its protocol buffers
/// have both as plain strings.
pub(crate) fn is_dictionary(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'{') {
        return false;
    }
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        at += 1;
        match b {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at == bytes.len();
                }
            }
            b'"' => loop {
                match bytes.get(at) {
                    None => return false,
                    Some(b'"') => break at += 1,
                    Some(b'\\') => at += 2,
                    Some(_) => at += 1,
                }
            },
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_dictionary;

    #[test]
    fn braces_that_match() {
        assert!(is_dictionary(r#"{"a":{"b":"}"}}"#));
        assert!(is_dictionary("{}"));
        assert!(is_dictionary(r#"{"a\"}":1}"#));
        for text in ["", "a", "{", "{}}", "{} ", "{}{}", r#"{"a}"#, " {}", r#"{"\"#] {
            assert!(!is_dictionary(text), "{text}");
        }
    }
}
