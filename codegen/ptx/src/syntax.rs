//! The syntax tree of PTX text: what was written, with spans, and nothing of what it means.
//!
//! Invariant: printing a tree gives a text with the same tokens as the text that it was parsed from. So
//! numbers keep their spelling, and nothing is normalized here.

use crate::diag::Span;

/// A text borrowed from the source, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word<'a> {
    /// The text.
    pub text: &'a str,
    /// Where it is.
    pub span: Span,
}

/// A whole text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tree<'a> {
    /// Directives, variables and functions in their order.
    pub items: Vec<Item<'a>>,
}

/// What stands at the top level.
#[derive(Clone, PartialEq, Debug)]
pub enum Item<'a> {
    /// A directive of the module, with its arguments as tokens: `.version 9.0`, `.target sm_90a, debug`,
    /// `.file 1 "a.cu"`, `.section .debug_str { ... }`, `.alias f, g;`, `.pragma "x";`
    Directive(Directive<'a>),
    /// A variable.
    Variable(Variable<'a>),
    /// A kernel or function.
    Function(Box<Function<'a>>),
}

/// A directive with its tokens, from the dot to the last one.
#[derive(Clone, PartialEq, Debug)]
pub struct Directive<'a> {
    /// `.version`
    pub name: Word<'a>,
    /// What follows, token by token, a closing semicolon included.
    pub arguments: Vec<Word<'a>>,
}

/// Declared variables of one statement: linkage, space, attributes, type and names.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable<'a> {
    /// `.extern`, `.visible`, `.weak`, `.common`
    pub linkage: Option<Word<'a>>,
    /// `.global`, `.shared`, `.const`, `.local`, `.reg`, `.param`
    pub space: Word<'a>,
    /// What stands between the space and the names, in order: `.align 4`, `.v2`, `.b8`, `.ptr`,
    /// `.attribute(.managed)`
    pub attributes: Vec<Attribute<'a>>,
    /// The declared names.
    pub names: Vec<Declared<'a>>,
    /// The statement.
    pub span: Span,
}

/// A word of a declaration with its argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Attribute<'a> {
    /// `.u64`, `.v2`, `.ptr`, `.global`
    Plain(Word<'a>),
    /// `.align 8`
    Align(Word<'a>, Word<'a>),
    /// `.attribute(.managed)`: the tokens between the parentheses.
    List(Word<'a>, Vec<Word<'a>>),
}

/// A declared name.
#[derive(Clone, PartialEq, Debug)]
pub struct Declared<'a> {
    /// The name. `_` of a prototype's parameter declares none.
    pub name: Word<'a>,
    /// `%r<5>` declares `%r0` to `%r4`.
    pub count: Option<Word<'a>>,
    /// Dimensions of an array; `None` is an empty pair of brackets.
    pub dimensions: Vec<Option<Word<'a>>>,
    /// The initial value.
    pub initial: Option<Initial<'a>>,
}

/// An initial value.
#[derive(Clone, PartialEq, Debug)]
pub enum Initial<'a> {
    /// One element, by its tokens: `-1`, `generic(x)+4`, `0xFF(x)`
    Element(Vec<Word<'a>>),
    /// `{ ... }`
    List(Vec<Initial<'a>>),
}

/// A kernel or function.
#[derive(Clone, PartialEq, Debug)]
pub struct Function<'a> {
    /// `.visible`, `.extern`, `.weak`
    pub linkage: Option<Word<'a>>,
    /// `.entry` or `.func`
    pub kind: Word<'a>,
    /// Words between `.func` and the name: `.attribute(...)`
    pub attributes: Vec<Attribute<'a>>,
    /// The returned parameters of a `.func` that has them.
    pub returns: Option<Vec<Variable<'a>>>,
    /// The name.
    pub name: Word<'a>,
    /// The parameters; `None` where the text has no parentheses.
    pub parameters: Option<Vec<Variable<'a>>>,
    /// `.maxntid 128, 1, 1`, `.noreturn`
    pub directives: Vec<Directive<'a>>,
    /// The body; `None` of a declaration.
    pub body: Option<Vec<Statement<'a>>>,
    /// From the linkage to the end of the header.
    pub span: Span,
}

/// A statement of a body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement<'a> {
    /// `L1:`
    Label(Word<'a>),
    /// `.reg .b32 %r<4>;`
    Variable(Variable<'a>),
    /// `.loc 1 2 3`, `.pragma "nounroll";`
    Directive(Directive<'a>),
    /// `L1: .branchtargets A, B;` and `p: .callprototype (...) _ (...);`: the label, the directive's name,
    /// its tokens.
    Named(Word<'a>, Directive<'a>),
    /// `{ ... }`
    Block(Vec<Statement<'a>>),
    /// An instruction.
    Instruction(Instruction<'a>),
}

/// An instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction<'a> {
    /// `@%p1`, `@!%p1`: whether it is negated, and the register.
    pub guard: Option<(bool, Word<'a>)>,
    /// The first word of the opcode: `add`
    pub opcode: Word<'a>,
    /// The other words of the opcode without their dot: `rn`, `f32`
    pub modifiers: Vec<Word<'a>>,
    /// The operands, which commas separate.
    pub operands: Vec<Operand<'a>>,
    /// The whole instruction with its semicolon.
    pub span: Span,
}

/// An operand.
#[derive(Clone, PartialEq, Debug)]
pub struct Operand<'a> {
    /// What it is.
    pub kind: OperandKind<'a>,
    /// Where it is.
    pub span: Span,
}

/// What an operand is.
#[derive(Clone, PartialEq, Debug)]
pub enum OperandKind<'a> {
    /// A register, variable, label, function or `_`; with the component of a vector (`%tid.x`).
    Name(Word<'a>, Option<Word<'a>>),
    /// `!%p`
    Not(Word<'a>),
    /// A literal: the signs and complements before it, and the number.
    Number(Vec<Word<'a>>, Word<'a>),
    /// `x+4`: a name and a signed offset.
    Offset(Word<'a>, Vec<Word<'a>>, Word<'a>),
    /// `p|q`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `[a+4]`, `[tensor, {x, y}]`
    Address(Vec<Operand<'a>>),
    /// `(a, b)`
    List(Vec<Operand<'a>>),
}
