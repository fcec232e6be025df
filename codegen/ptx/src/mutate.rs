//! Wrong kernels made of right ones: one instruction of a text changed as a compiler might get it wrong.
//!
//! Whoever checks kernels is measured with them: how many of the changes that alter a result are found?
//!
//! **Invariants:** a mutant differs from the original in one instruction, and has the same line numbers;
//! mutants are listed in the order of their instructions.

use std::ops::Range;

use crate::diag::{Diagnostic, Span};
use crate::lex;
use crate::parse::parse;
use crate::syntax::{Instruction, Item, Operand, OperandKind, Statement};

/// What is changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The relation of a comparison: `lt` becomes `le`.
    Comparison,
    /// A sum for a difference, an operand's sign, a minimum for a maximum.
    Sign,
    /// An address, an index or a stride that is one element or one power of two off.
    Offset,
    /// A guard negated, or dropped.
    Guard,
    /// The operands of a selection exchanged.
    Selection,
    /// A barrier dropped.
    Barrier,
    /// A shuffle's lane or the member mask of an instruction of a warp.
    Lane,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] =
        [Kind::Comparison, Kind::Sign, Kind::Offset, Kind::Guard, Kind::Selection, Kind::Barrier, Kind::Lane];

    /// A word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Comparison => "comparison",
            Kind::Sign => "sign",
            Kind::Offset => "offset",
            Kind::Guard => "guard",
            Kind::Selection => "selection",
            Kind::Barrier => "barrier",
            Kind::Lane => "lane",
        }
    }
}

/// One change of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutation {
    /// What is changed.
    pub kind: Kind,
    /// The line, from 1.
    pub line: usize,
    /// What is there.
    pub from: String,
    /// What comes there.
    pub to: String,
    /// Where `from` is in the text.
    at: Range<usize>,
}

impl Mutation {
    /// The changed text.
    pub fn apply(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.at.start], self.to, &text[self.at.end..])
    }
}

/// All changes that can be made in a text. Errors: it is no PTX.
pub fn mutations(text: &str) -> Result<Vec<Mutation>, Vec<Diagnostic>> {
    let tree = parse(text)?;
    let mut found = Finder { text, all: Vec::new() };
    for item in &tree.items {
        let Item::Function(function) = item else { continue };
        found.statements(function.body.as_deref().unwrap_or(&[]));
    }
    Ok(found.all)
}

struct Finder<'t> {
    text: &'t str,
    all: Vec<Mutation>,
}

impl Finder<'_> {
    fn statements(&mut self, body: &[Statement<'_>]) {
        for statement in body {
            match statement {
                Statement::Block(inner) => self.statements(inner),
                Statement::Instruction(i) => self.instruction(i),
                Statement::Label(_)
                | Statement::Variable(_)
                | Statement::Directive(_)
                | Statement::Named(..) => {}
            }
        }
    }

    fn change(&mut self, kind: Kind, at: Range<usize>, to: impl Into<String>) {
        let line = self.text[..at.start].matches('\n').count() + 1;
        self.all.push(Mutation { kind, line, from: self.text[at.clone()].to_owned(), to: to.into(), at });
    }

    fn instruction(&mut self, i: &Instruction<'_>) {
        if let Some((negated, register)) = &i.guard {
            let end = range(register.span).end;
            let start = range(i.span).start;
            let other = if *negated { "@" } else { "@!" };
            self.change(Kind::Guard, start..end, format!("{other}{}", register.text));
            self.change(Kind::Guard, start..end, "");
        }
        let opcode = range(i.opcode.span);
        let shows_lanes = i.modifiers.iter().any(|m| m.text == "sync");
        match i.opcode.text {
            "setp" | "set" => {
                for w in &i.modifiers {
                    if let Some(to) = relation(w.text) {
                        let of = range(w.span);
                        // Without its dot.
                        self.change(Kind::Comparison, of.end - w.text.len()..of.end, to);
                    }
                }
            }
            "add" => self.change(Kind::Sign, opcode, "sub"),
            "sub" => self.change(Kind::Sign, opcode, "add"),
            "min" => self.change(Kind::Sign, opcode, "max"),
            "max" => self.change(Kind::Sign, opcode, "min"),
            "neg" => self.change(Kind::Sign, opcode, "abs"),
            "selp" => {
                if let [_, a, b, _] = &i.operands[..] {
                    let (a, b) = (range(a.span), range(b.span));
                    let to = format!("{}, {}", &self.text[b.clone()], &self.text[a.clone()]);
                    if self.text[a.clone()] != self.text[b.clone()] {
                        self.change(Kind::Selection, a.start..b.end, to);
                    }
                }
            }
            "bar" | "barrier" => self.change(Kind::Barrier, range(i.span), ""),
            // Address arithmetic, and integer operations that stand in it.
            "mul" | "mad" | "shl" | "shr" | "bfe" => self.immediates(i, |n| Some(n ^ 1)),
            // Other instructions are not changed.
            _other => {}
        }
        if shows_lanes {
            self.immediates(i, lanes);
        }
        for operand in &i.operands {
            self.addresses(operand);
        }
        self.floats(i);
    }

    /// Each integer literal among the operands, as `to` changes it.
    fn immediates(&mut self, i: &Instruction<'_>, to: impl Fn(u64) -> Option<u64>) {
        let is_lane = i.modifiers.iter().any(|m| m.text == "sync");
        let kind = if is_lane { Kind::Lane } else { Kind::Offset };
        for operand in i.operands.iter().skip(1) {
            let OperandKind::Number(signs, number) = &operand.kind else { continue };
            let Some(n) = lex::integer(number.text) else { continue };
            let n = if signs.len() == 1 && signs[0].text == "-" { n.wrapping_neg() } else { n };
            if let Some(changed) = to(n) {
                self.change(kind, range(operand.span), format!("{}", changed as i64));
            }
        }
    }

    /// A memory operand, 4 bytes further.
    fn addresses(&mut self, operand: &Operand<'_>) {
        let OperandKind::Address(parts) = &operand.kind else { return };
        let [one] = &parts[..] else { return };
        match &one.kind {
            OperandKind::Name(..) => {
                let end = range(one.span).end;
                self.change(Kind::Offset, end..end, "+4");
            }
            OperandKind::Offset(_, signs, number) => {
                let Some(n) = lex::integer(number.text) else { return };
                if signs.len() == 1 && signs[0].text == "+" {
                    self.change(Kind::Offset, range(number.span), format!("{}", n.wrapping_add(4)));
                }
            }
            OperandKind::Not(_)
            | OperandKind::Number(..)
            | OperandKind::Pair(..)
            | OperandKind::Vector(_)
            | OperandKind::Address(_)
            | OperandKind::List(_) => {}
        }
    }

    /// The sign of each floating-point literal, such as `0f3F800000`, but of zeros.
    fn floats(&mut self, i: &Instruction<'_>) {
        for operand in &i.operands {
            let OperandKind::Number(_, number) = &operand.kind else { continue };
            let Some((prefix, digits)) = number.text.split_at_checked(2) else { continue };
            let is_float = matches!((prefix, digits.len()), ("0f" | "0F", 8) | ("0d" | "0D", 16));
            let Some(first) = digits.chars().next().and_then(|c| c.to_digit(16)).filter(|_| is_float) else {
                continue;
            };
            if digits.bytes().any(|b| b != b'0') {
                self.change(
                    Kind::Sign,
                    range(number.span),
                    format!("{prefix}{:X}{}", first ^ 8, &digits[1..]),
                );
            }
        }
    }
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

/// The relation beside one; `None`: the word is no relation, or has none beside it.
fn relation(word: &str) -> Option<&'static str> {
    Some(match word {
        "lt" => "le",
        "le" => "lt",
        "gt" => "ge",
        "ge" => "gt",
        "eq" => "ne",
        "ne" => "eq",
        "ltu" => "leu",
        "leu" => "ltu",
        "gtu" => "geu",
        "geu" => "gtu",
        "equ" => "neu",
        "neu" => "equ",
        "lo" => "ls",
        "ls" => "lo",
        "hi" => "hs",
        "hs" => "hi",
        "nan" => "num",
        "num" => "nan",
        _no_relation => return None,
    })
}

/// A lane or a member mask that is another one: distances double, masks lose their last lane.
fn lanes(n: u64) -> Option<u64> {
    match n as i64 {
        // The mask of all lanes.
        -1 | 0xFFFF_FFFF => Some(0x7FFF_FFFF),
        distance @ 1..=16 => Some(distance as u64 * 2 % 32),
        // Clamps and masks of some lanes stay.
        _other => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const TEXT: &str = "\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.b64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 8;
    @%p1 bra $done;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.b32 %r2, [%rd3+8];
    add.rn.f32 %r3, %r2, 0f3F800000;
    selp.b32 %r4, %r3, %r2, %p1;
    shfl.sync.down.b32 %r5, %r4, 2, 31, -1;
    bar.sync 0;
    st.global.b32 [%rd3], %r5;
$done:
    ret;
}
";

    #[test]
    fn every_kind_is_found_in_its_line() {
        let found = mutations(TEXT).unwrap();
        let listed: Vec<String> =
            found.iter().map(|m| format!("{} {}: {} -> {}", m.line, m.kind.name(), m.from, m.to)).collect();
        assert_eq!(
            listed,
            [
                "9 offset:  -> +4",
                "11 comparison: ge -> gt",
                "12 guard: @%p1 -> @!%p1",
                "12 guard: @%p1 -> ",
                "13 offset: 4 -> 5",
                "14 sign: add -> sub",
                "15 offset: 8 -> 12",
                "16 sign: add -> sub",
                "16 sign: 0f3F800000 -> 0fBF800000",
                "17 selection: %r3, %r2 -> %r2, %r3",
                "18 lane: 2 -> 4",
                "18 lane: -1 -> 2147483647",
                "19 barrier: bar.sync 0; -> ",
                "20 offset:  -> +4",
            ]
        );
        for m in &found {
            let changed = m.apply(TEXT);
            assert_eq!(changed.lines().count(), TEXT.lines().count());
            let differ = changed.lines().zip(TEXT.lines()).filter(|(a, b)| a != b).count();
            assert_eq!(differ, 1, "{m:?}");
        }
        assert!(mutations("nothing").is_err());
    }
}
