//! The memory that parsing takes in addition to the text.
//!
//! **Invariant:** what is known to be large (tree and module, which grow with the instructions of the text;
//! the values of constants) is counted before it is allocated.

use hlo::Span;
use hlo::diag::{Diagnostic, codes};

use crate::token::Tok;

/// Bytes of an instruction: in the tree, where it may are in two tables at a time, and in the module with its
/// names and users.
const INSTRUCTION: u64 = 900;

/// Bytes of what a token may become a part of: an operand, an attribute, a parameter.
const TOKEN: u64 = 64;

/// An upper bound of what a token of that many bytes of text makes of tree and module. Values of constants
/// are counted where they are read.
pub(crate) fn of_token(tok: Tok, bytes: u64) -> u64 {
    match tok {
        Tok::Def => INSTRUCTION,
        // Values are kept, decoded or verbatim.
        Tok::Attr | Tok::Tables => TOKEN + 2 * bytes,
        Tok::Module
        | Tok::Entry
        | Tok::Name
        | Tok::Ident
        | Tok::Param
        | Tok::Shape
        | Tok::AttrNested
        | Tok::AttrList
        | Tok::Number
        | Tok::Str => TOKEN,
        Tok::Constant
        | Tok::LParen
        | Tok::RParen
        | Tok::LBrace
        | Tok::RBrace
        | Tok::Comma
        | Tok::Arrow
        | Tok::Bad => 0,
    }
}

/// That a text takes more memory than it may.
pub(crate) fn exhausted(at: Span, what: &str, wanted: u64, limit: u64) -> Diagnostic {
    let message = format!("{what} take {wanted} bytes, and {limit} are left for reading the text");
    Diagnostic::error(codes::OUT_OF_MEMORY, at, message).label("more memory than there is")
}
