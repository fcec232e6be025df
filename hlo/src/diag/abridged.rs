//! Texts of diagnostics of bounded length: a program may have lists, names and strings of megabytes, and a
//! message that repeats them helps nobody.

/// The maximum number of bytes of a message, a label or a note. Shorter ones stay as they are.
pub const MAX_TEXT_BYTES: usize = 4096;

/// Items of a list that are kept where a text is too long.
const KEPT_ITEMS: usize = 16;

/// The text, or if it is too long its beginning: of each list the first items and how many more there are,
/// and of what is still too long so many bytes.
pub(super) fn abridged(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let mut short = with_short_lists(&text);
    if short.len() > MAX_TEXT_BYTES {
        let kept = short.floor_char_boundary(MAX_TEXT_BYTES - 64);
        let more = short.len() - kept;
        short.truncate(kept);
        short.push_str(&format!("... {more} more bytes"));
    }
    short
}

fn with_short_lists(text: &str) -> String {
    let mut out = String::with_capacity(MAX_TEXT_BYTES);
    // For each bracket that is open how many items of its list came before, and above which depth something
    // is left out.
    let mut items: Vec<usize> = vec![0];
    let mut hidden: Option<usize> = None;
    let end = |out: &mut String, items: usize| {
        if items >= KEPT_ITEMS {
            out.push_str(&format!(" ... {} more", items + 1 - KEPT_ITEMS));
        }
    };
    for c in text.chars() {
        match c {
            '[' | '(' | '{' => {
                items.push(0);
                if hidden.is_none() {
                    out.push(c);
                }
            }
            ']' | ')' | '}' if items.len() > 1 => {
                let depth = items.len();
                let count = items.pop().unwrap_or_default();
                if hidden == Some(depth) {
                    hidden = None;
                    end(&mut out, count);
                }
                if hidden.is_none() {
                    out.push(c);
                }
            }
            ',' => {
                let depth = items.len();
                let count = items.last_mut().map_or(0, |n| {
                    *n += 1;
                    *n
                });
                if hidden.is_none() {
                    out.push(c);
                    if count == KEPT_ITEMS {
                        hidden = Some(depth);
                    }
                }
            }
            _ => {
                if hidden.is_none() {
                    out.push(c);
                }
            }
        }
    }
    if let Some(depth) = hidden {
        end(&mut out, items.get(depth - 1).copied().unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_with_a_count() {
        let short = "f32[1,1] is not f32[2]".to_owned();
        assert_eq!(abridged(short.clone()), short);
        let ones = vec!["1"; 1_000_000].join(",");
        let sixteen = "1,".repeat(16);
        let text = abridged(format!("operand 0 is f32[{ones}]{{0}}, not (f32[2], s32[{ones}])"));
        let cut = format!("[{sixteen} ... 999984 more]");
        assert_eq!(text, format!("operand 0 is f32{cut}{{0}}, not (f32[2], s32{cut})"));
        // A list without brackets, and one that is never closed.
        assert_eq!(abridged(ones.clone()), format!("{sixteen} ... 999984 more"));
        assert_eq!(abridged(format!("(a, {ones}")), format!("(a, {} ... 999985 more", "1,".repeat(15)));
        // What is in an item that is left out is left out.
        let tuples = vec!["(f32[], s32[])"; 1000].join(", ");
        let first = vec!["(f32[], s32[])"; 16].join(", ");
        assert_eq!(abridged(format!("({tuples}) x")), format!("({first}, ... 984 more) x"));
    }

    #[test]
    fn other_texts_are_cut_between_characters() {
        let text = abridged(format!("no instruction {}", "\u{e9}".repeat(1 << 20)));
        assert!(text.len() <= MAX_TEXT_BYTES && text.starts_with("no instruction \u{e9}"), "{text}");
        let kept = text.chars().filter(|&c| c == '\u{e9}').count();
        assert!(text.ends_with(&format!("... {} more bytes", 2 * ((1 << 20) - kept))), "{text}");
        for brackets in ["(".repeat(1 << 20), ")".repeat(1 << 20), ",".repeat(1 << 20)] {
            assert!(abridged(brackets).len() <= MAX_TEXT_BYTES);
        }
    }
}
