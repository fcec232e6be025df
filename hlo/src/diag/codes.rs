//! The codes of all diagnostics, with the pages that `hlo explain` prints. One table a stage.

pub mod bytecode;
mod infer;
pub mod mlir;
pub mod parse;
mod run;
mod verify;

pub use infer::*;
pub use run::*;
pub use verify::*;

/// A row of the table.
#[derive(Debug)]
pub struct CodeInfo {
    /// `V0312`.
    pub code: &'static str,
    /// One line.
    pub title: &'static str,
    /// What it means, an example, and what to do. Plain text.
    pub page: &'static str,
}

/// The code of a diagnostic.
#[derive(Clone, Copy, Debug)]
pub struct Code(pub &'static CodeInfo);

impl Code {
    /// Its row.
    pub fn info(self) -> &'static CodeInfo {
        self.0
    }

    /// `V0312`.
    pub fn as_str(self) -> &'static str {
        self.0.code
    }

    /// The code with this text.
    pub fn find(text: &str) -> Option<Code> {
        all().find(|c| c.0.code.eq_ignore_ascii_case(text))
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        self.0.code == other.0.code
    }
}

impl Eq for Code {}

/// All codes, in order.
pub fn all() -> impl Iterator<Item = Code> {
    // The verifier's own codes stand before and after those of shape inference.
    let before = verify::TABLE.iter().take_while(|c| c.code < "V0100");
    let after = verify::TABLE.iter().skip_while(|c| c.code < "V0100");
    parse::TABLE
        .iter()
        .chain(mlir::TABLE)
        .chain(bytecode::TABLE)
        .chain(before)
        .chain(infer::TABLE)
        .chain(after)
        .chain(run::TABLE)
        .map(|&c| Code(c))
}

/// Declares codes: `NAME = "V0001" "title" "page",`.
macro_rules! codes {
    ($($name:ident = $code:literal $title:literal $page:literal,)*) => {
        $(
            #[doc = concat!($code, ": ", $title)]
            pub const $name: super::Code = super::Code(&super::CodeInfo { code: $code, title: $title, page: $page });
        )*
        pub(super) const TABLE: &[&super::CodeInfo] = &[$($name.0),*];
    };
}
use codes;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_sorted_and_explained() {
        let codes: Vec<&str> = all().map(Code::as_str).collect();
        for (a, b) in codes.iter().zip(&codes[1..]).filter(|(a, b)| a.as_bytes()[0] == b.as_bytes()[0]) {
            assert!(a < b, "{a} stands before {b}");
        }
        for c in all() {
            assert!(c.info().page.len() > 40, "{}: the page says too little", c.as_str());
        }
    }
}
