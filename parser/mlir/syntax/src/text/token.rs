//! MLIR text to tokens.
//!
//! **Invariant:** a token is a kind and a byte range; what stands in it (numbers, escapes, dimensions) is
//! decoded by who asks. Dimensions (`2x3xf32`) are no tokens: the parser scans them from the text, because
//! `x3xf32` would be a word.

use logos::Logos;

/// Kinds of tokens.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Debug)]
#[logos(skip r"[ \t\r\n]+")]
#[logos(skip(r"//[^\r\n]*", allow_greedy = true))]
pub(crate) enum Tok {
    /// `stablehlo.add`, `dense`
    #[regex(r"[A-Za-z_][A-Za-z0-9_$.]*")]
    Word,
    /// `%0`, `%arg0`
    #[regex(r"%([0-9]+|[A-Za-z$._\-][A-Za-z0-9$._\-]*)")]
    Percent,
    /// `^bb0`
    #[regex(r"\^([0-9]+|[A-Za-z$._\-][A-Za-z0-9$._\-]*)")]
    Caret,
    /// `@main`, `@"a name"`
    #[regex(r"@([0-9]+|[A-Za-z$._\-][A-Za-z0-9$._\-]*)")]
    #[regex(r#"@"([^"\\]|\\.)*""#)]
    At,
    /// `#loc`, `#stablehlo.gather`, `#1` after a value
    #[regex(r"#([0-9]+|[A-Za-z$._][A-Za-z0-9$._\-]*)")]
    Hash,
    /// `!stablehlo.token`
    #[regex(r"!([0-9]+|[A-Za-z$._][A-Za-z0-9$._\-]*)")]
    Bang,
    /// `12`, `0x1F`
    #[regex(r"[0-9]+")]
    #[regex(r"0x[0-9A-Fa-f]+")]
    Int,
    /// `1.5e3`
    #[regex(r"[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?")]
    Float,
    /// `"text"`
    #[regex(r#""([^"\\]|\\.)*""#)]
    Str,
    /// `->`
    #[token("->")]
    Arrow,
    /// `{-#`
    #[token("{-#")]
    MetadataStart,
    /// `#-}`
    #[token("#-}")]
    MetadataEnd,
    /// `(`
    #[token("(")]
    LParen,
    /// `)`
    #[token(")")]
    RParen,
    /// `[`
    #[token("[")]
    LSquare,
    /// `]`
    #[token("]")]
    RSquare,
    /// `{`
    #[token("{")]
    LBrace,
    /// `}`
    #[token("}")]
    RBrace,
    /// `<`
    #[token("<")]
    Less,
    /// `>`
    #[token(">")]
    Greater,
    /// `,`
    #[token(",")]
    Comma,
    /// `:`
    #[token(":")]
    Colon,
    /// `::`
    #[token("::")]
    Colons,
    /// `=`
    #[token("=")]
    Equal,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `*`
    #[token("*")]
    Star,
    /// `?`
    #[token("?")]
    Question,
    /// `/`
    #[token("/")]
    Slash,
    /// `|`
    #[token("|")]
    Bar,
    /// Nothing that begins a token.
    Bad,
    /// The end.
    End,
}

impl Tok {
    /// For messages.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Tok::Word => "a word",
            Tok::Percent => "a value, `%name`",
            Tok::Caret => "a block, `^name`",
            Tok::At => "a symbol, `@name`",
            Tok::Hash => "an attribute, `#name`",
            Tok::Bang => "a type, `!name`",
            Tok::Int => "an integer",
            Tok::Float => "a float",
            Tok::Str => "a string",
            Tok::Arrow => "`->`",
            Tok::MetadataStart => "`{-#`",
            Tok::MetadataEnd => "`#-}`",
            Tok::LParen => "`(`",
            Tok::RParen => "`)`",
            Tok::LSquare => "`[`",
            Tok::RSquare => "`]`",
            Tok::LBrace => "`{`",
            Tok::RBrace => "`}`",
            Tok::Less => "`<`",
            Tok::Greater => "`>`",
            Tok::Comma => "`,`",
            Tok::Colon => "`:`",
            Tok::Colons => "`::`",
            Tok::Equal => "`=`",
            Tok::Plus => "`+`",
            Tok::Minus => "`-`",
            Tok::Star => "`*`",
            Tok::Question => "`?`",
            Tok::Slash => "`/`",
            Tok::Bar => "`|`",
            Tok::Bad => "a character that begins no token",
            Tok::End => "the end of the text",
        }
    }
}
