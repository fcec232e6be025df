//! Errors of the lexer and of the grammar as diagnostics.

use hlo::Span;
use hlo::diag::Diagnostic;
use hlo::diag::codes::parse as codes;

use crate::ast::SyntaxError;
use crate::cursor::quote;
use crate::token::{LexError, LexErrorKind, Tok};

/// The diagnostic of a syntax error; `lex_errors` say what is wrong with tokens that are [`Tok::Bad`].
pub(crate) fn diagnose(text: &str, e: &SyntaxError, lex_errors: &[LexError]) -> Diagnostic {
    if e.found == Some(Tok::Bad) {
        let at = lex_errors.binary_search_by_key(&e.span.start, |l| l.token);
        if let Some(lex) = at.ok().map(|i| lex_errors[i]) {
            return lexical(text, lex);
        }
    }
    let expected = expected(&e.expected);
    let Some(found) = e.found else {
        // A caret on the last character of the text.
        let end = text.trim_end().len();
        let start = text[..end].char_indices().next_back().map_or(0, |c| c.0);
        let d = Diagnostic::error(
            codes::UNEXPECTED_TOKEN,
            Span::new(start, end),
            format!("expected {expected}, found the end of the text"),
        );
        return d.label("the text ends here");
    };
    let shown = &text[e.span.range()];
    let found = match found {
        Tok::Def => format!("the start of the instruction {}", quote(shown.trim_end_matches('=').trim_end())),
        Tok::Attr | Tok::AttrNested | Tok::AttrList => {
            format!("the attribute {}", quote(shown.split('=').next().unwrap_or("")))
        }
        Tok::Str => "a string".into(),
        Tok::Tables => "a table of source locations".into(),
        Tok::Shape => format!("the shape {}", quote(shown)),
        Tok::Module
        | Tok::Entry
        | Tok::Name
        | Tok::Ident
        | Tok::Param
        | Tok::Constant
        | Tok::Number
        | Tok::LParen
        | Tok::RParen
        | Tok::LBrace
        | Tok::RBrace
        | Tok::Comma
        | Tok::Arrow
        | Tok::Bad => quote(shown),
    };
    let message = format!("expected {expected}, found {found}");
    Diagnostic::error(codes::UNEXPECTED_TOKEN, e.span, message).label(format!("expected {expected}"))
}

fn lexical(text: &str, e: LexError) -> Diagnostic {
    let shown = &text[e.span.range()];
    match e.kind {
        LexErrorKind::Character => {
            let message = match shown.chars().next() {
                // What is invisible must be named: marks, joiners and spaces without width, too.
                Some(c) if c.is_control() || c.escape_debug().nth(1) == Some('u') => {
                    format!("character U+{:04X} in the text", u32::from(c))
                }
                Some(c) => format!("`{c}` is not part of HLO"),
                None => "character that is not part of HLO".into(),
            };
            Diagnostic::error(codes::BAD_CHARACTER, e.span, message).label("unexpected character")
        }
        LexErrorKind::Unclosed => {
            let close = match shown {
                "{" => "}",
                "[" => "]",
                _ => ")",
            };
            let message = format!("`{shown}` is never closed");
            Diagnostic::error(codes::UNCLOSED_BRACKET, e.span, message).label(format!("`{close}` is missing"))
        }
        LexErrorKind::Mismatched { open } => {
            let message = format!("`{shown}` does not close `{}`", &text[open.range()]);
            Diagnostic::error(codes::MISMATCHED_BRACKET, e.span, message)
                .label("another kind of bracket")
                .related(open, "opened here")
        }
        LexErrorKind::Unterminated => {
            let what = if shown == "/" { "comment" } else { "string" };
            Diagnostic::error(codes::UNTERMINATED, e.span, format!("{what} without an end"))
                .label("starts here")
        }
        LexErrorKind::NoComma => {
            let message = format!("{} without a comma before it", quote(shown));
            Diagnostic::error(codes::EXPECTED_COMMA, e.span, message)
                .label("expected `,` before an attribute, or a space before the `=` of an instruction")
        }
    }
}

/// Terminals of the grammar in words, the few that help most.
fn expected(terminals: &[String]) -> String {
    const WORDS: [(&str, &str); 18] = [
        ("(", "`(`"),
        (")", "`)`"),
        ("{", "`{`"),
        ("}", "`}`"),
        ("->", "`->`"),
        (",", "`,`"),
        ("name =", "an instruction"),
        ("shape", "a shape"),
        ("name", "a name"),
        ("%name", "a name"),
        ("constant(...)", "an opcode"),
        ("name:", "`name: shape`"),
        ("attribute", "`, attribute=`"),
        ("attribute{", "`, attribute=`"),
        ("attribute{{", "`, attribute=`"),
        ("HloModule", "`HloModule`"),
        ("ENTRY", "a computation"),
        ("tables", "a table"),
    ];
    let plain: Vec<&str> = terminals.iter().map(|t| t.trim_matches('"')).collect();
    let has = |t: &str| plain.contains(&t);
    let mut words: Vec<&str> = Vec::new();
    for (terminal, word) in WORDS {
        let word = match terminal {
            // Where an opcode may stand, a bare word is one; where an operand may stand, a name.
            "name" if has("constant(...)") && !has("%name") => "an opcode",
            "constant(...)" if has("%name") => continue,
            _ => word,
        };
        if has(terminal) && !words.contains(&word) {
            words.push(word);
        }
    }
    match words.as_slice() {
        [] => "the end of the text".into(),
        [one] => (*one).into(),
        [most @ .., last] => format!("{} or {last}", most[..most.len().min(4)].join(", ")),
    }
}
