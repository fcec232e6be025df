//! The syntax tree: tables (arenas) with spans.
//!
//! The grammar's actions append to tables through a [`Builder`]; nothing owns anything else, so that
//! building, walking and dropping need no stack. An instruction inside another one's operands, and a
//! computation inside an attribute, are entries of the same tables that stand before the entry that refers to
//! them.

use std::ops::Range;

use hlo::Span;
use lalrpop_util::{ErrorRecovery, ParseError};

use crate::token::Tok;

/// An index range of one of the tables.
pub(crate) type Slice = Range<u32>;

/// The tree.
#[derive(Debug, Default)]
pub(crate) struct Ast {
    /// The header, if there is one.
    pub(crate) header: Option<Header>,
    /// The tables of source locations, raw.
    pub(crate) tables: Option<Span>,
    /// Computations in the order in which they end: those inside attributes before those that they are inside
    /// of.
    pub(crate) computations: Vec<Computation>,
    /// Instructions, those of one computation together.
    pub(crate) instructions: Vec<Instruction>,
    /// Operands, those of one instruction together.
    pub(crate) operands: Vec<Operand>,
    /// Attributes, those of one owner together.
    pub(crate) attributes: Vec<Attribute>,
    /// Parameters of signatures, those of one signature together.
    pub(crate) parameters: Vec<(Span, Span)>,
    /// What the lists of [`AttributeValue::List`] hold.
    pub(crate) references: Vec<Reference>,
    /// The text is one instruction and no module.
    pub(crate) single: bool,
}

/// `HloModule name, ...`
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) name: Span,
    pub(crate) attributes: Slice,
}

#[derive(Debug)]
pub(crate) struct Computation {
    /// `ENTRY`.
    pub(crate) entry: Option<Span>,
    /// [`Span::NONE`] inside an attribute.
    pub(crate) name: Span,
    pub(crate) signature: Option<Signature>,
    pub(crate) instructions: Slice,
    pub(crate) attributes: Slice,
    /// From brace to brace.
    pub(crate) body: Span,
}

/// `(a: f32[]) -> f32[]`
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) parameters: Slice,
    pub(crate) result: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    /// `ROOT`.
    pub(crate) root: bool,
    /// Without `%`; [`Span::NONE`] for one without a name.
    pub(crate) name: Span,
    /// [`Span::NONE`] if it is to be inferred.
    pub(crate) shape: Span,
    pub(crate) opcode: Span,
    pub(crate) operands: Slice,
    /// What is in the parentheses of a `constant`.
    pub(crate) literal: Option<Span>,
    pub(crate) attributes: Slice,
    /// From the name to the opcode.
    pub(crate) span: Span,
    /// It could not be read: only its name counts.
    pub(crate) broken: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    /// [`Span::NONE`] if not written.
    pub(crate) shape: Span,
    pub(crate) what: OperandKind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum OperandKind {
    /// A name, with `%` and `#` as written.
    Name(Span),
    /// The instruction at this index.
    Nested(u32),
    /// A number.
    Number(Span),
    /// Only a shape.
    ShapeOnly,
}

#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) key: Span,
    pub(crate) value: AttributeValue,
}

#[derive(Clone, Debug)]
pub(crate) enum AttributeValue {
    /// Text.
    Raw(Span),
    /// The computation at this index.
    Computation(u32),
    /// Some of [`Ast::references`].
    List(Slice),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Reference {
    Name(Span),
    Computation(u32),
}

/// What the grammar passes from a call to its instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) opcode: Span,
    pub(crate) operands: u32,
    pub(crate) literal: Option<Span>,
}

/// A syntax error, from the LR automaton.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) span: Span,
    /// `None` at the end of the text.
    pub(crate) found: Option<Tok>,
    /// Terminals of the grammar.
    pub(crate) expected: Vec<String>,
}

/// Heights of the builder's stacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    text: Span,
    operands: usize,
    attributes: usize,
    references: usize,
    bodies: usize,
    instructions: usize,
}

/// Receives what the grammar recognizes. Lists whose elements can contain lists are gathered on stacks and
/// moved to the tables when they are complete, so that each ends up contiguous.
pub(crate) struct Builder<'s> {
    text: &'s str,
    pub(crate) ast: Ast,
    pub(crate) errors: Vec<SyntaxError>,
    operands: Vec<Operand>,
    attributes: Vec<Attribute>,
    references: Vec<Reference>,
    instructions: Vec<Instruction>,
    bodies: Vec<usize>,
}

fn move_tail<T>(stack: &mut Vec<T>, n: usize, table: &mut Vec<T>) -> Slice {
    let start = table.len() as u32;
    table.extend(stack.drain(stack.len() - n..));
    start..table.len() as u32
}

/// The span of a token.
pub(crate) fn at(start: u32, end: u32) -> Span {
    Span { start, end }
}

impl<'s> Builder<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        // Instructions are rarely shorter than this; the tables then hardly ever move.
        let n = text.len() / 160;
        let mut ast = Ast::default();
        ast.instructions.reserve(n);
        ast.operands.reserve(n * 2);
        ast.attributes.reserve(n * 2);
        Self {
            text,
            ast,
            errors: Vec::new(),
            operands: Vec::new(),
            attributes: Vec::new(),
            references: Vec::new(),
            instructions: Vec::new(),
            bodies: Vec::new(),
        }
    }

    pub(crate) fn header(&mut self, name: Span, attributes: u32) {
        let attributes = move_tail(&mut self.attributes, attributes as usize, &mut self.ast.attributes);
        self.ast.header = Some(Header { name, attributes });
    }

    pub(crate) fn tables(&mut self, span: Span) {
        self.ast.tables = Some(span);
    }

    pub(crate) fn open_body(&mut self) {
        self.bodies.push(self.instructions.len());
    }

    /// The instructions since the matching [`Builder::open_body`] become a computation; its index.
    pub(crate) fn close_body(&mut self, body: Span) -> u32 {
        let start = self.bodies.pop().expect("invariant: the grammar opens a body before it closes one");
        let n = self.instructions.len() - start;
        let first = self.ast.instructions.len() as u32;
        for instruction in &self.instructions[start..] {
            // Nested instructions were numbered from the start of the body.
            for o in &mut self.ast.operands[range(&instruction.operands)] {
                if let OperandKind::Nested(i) = &mut o.what {
                    *i = *i - start as u32 + first;
                }
            }
        }
        let instructions = move_tail(&mut self.instructions, n, &mut self.ast.instructions);
        self.ast.computations.push(Computation {
            entry: None,
            name: Span::NONE,
            signature: None,
            instructions,
            attributes: 0..0,
            body,
        });
        self.ast.computations.len() as u32 - 1
    }

    pub(crate) fn computation(
        &mut self,
        entry: Option<Span>,
        name: Span,
        signature: Option<Signature>,
        body: u32,
        attributes: u32,
    ) {
        let attributes = move_tail(&mut self.attributes, attributes as usize, &mut self.ast.attributes);
        let c = &mut self.ast.computations[body as usize];
        (c.entry, c.name, c.signature, c.attributes) = (entry, name, signature, attributes);
    }

    pub(crate) fn parameter(&mut self, name: Span, shape: Span) {
        self.ast.parameters.push((name, shape));
    }

    pub(crate) fn signature(&mut self, parameters: u32, result: Span) -> Signature {
        let end = self.ast.parameters.len() as u32;
        Signature { parameters: end - parameters..end, result }
    }

    /// An instruction begins: what was gathered before belongs to others.
    pub(crate) fn begin(&mut self, text: Span) -> Frame {
        Frame {
            text,
            operands: self.operands.len(),
            attributes: self.attributes.len(),
            references: self.references.len(),
            bodies: self.bodies.len(),
            instructions: self.instructions.len(),
        }
    }

    /// `ROOT`? and the name in the text of a [`Tok::Def`].
    fn name_of(&self, def: Span) -> (bool, Span) {
        let text = &self.text[def.range()];
        let bytes = text.as_bytes();
        let root = bytes.starts_with(b"ROOT") && bytes.get(4).is_some_and(u8::is_ascii_whitespace);
        let mut start = if root { 4 } else { 0 };
        while matches!(bytes[start], b' ' | b'\t' | b'\r' | b'\n' | b'%') {
            start += 1;
        }
        let mut end = start;
        while crate::token::is_name_byte(bytes[end]) {
            end += 1;
        }
        (root, at(def.start + start as u32, def.start + end as u32))
    }

    pub(crate) fn instruction(&mut self, frame: Frame, shape: Span, call: Call, attributes: u32) {
        let (root, name) = self.name_of(frame.text);
        let attributes = move_tail(&mut self.attributes, attributes as usize, &mut self.ast.attributes);
        self.push_instruction(root, name, shape, call, attributes, at(name.start, call.opcode.end));
    }

    /// The only instruction of a text, without a name.
    pub(crate) fn unnamed(&mut self, shape: Span, call: Call, attributes: u32) {
        let attributes = move_tail(&mut self.attributes, attributes as usize, &mut self.ast.attributes);
        self.push_instruction(true, Span::NONE, shape, call, attributes, shape.to(call.opcode));
    }

    pub(crate) fn single(&mut self) {
        self.ast.single = true;
        self.bodies.push(0);
        let all = Span::new(0, self.text.len());
        self.close_body(all);
    }

    fn push_instruction(
        &mut self,
        root: bool,
        name: Span,
        shape: Span,
        call: Call,
        attributes: Slice,
        span: Span,
    ) {
        let operands = move_tail(&mut self.operands, call.operands as usize, &mut self.ast.operands);
        self.instructions.push(Instruction {
            root,
            name,
            shape,
            opcode: call.opcode,
            operands,
            literal: call.literal,
            attributes,
            span,
            broken: false,
        });
    }

    /// An instruction that cannot be read: its parts are dropped, its name stays known.
    pub(crate) fn broken(&mut self, frame: Frame, error: ErrorRecovery<u32, Tok, ()>) {
        self.operands.truncate(frame.operands);
        self.attributes.truncate(frame.attributes);
        self.references.truncate(frame.references);
        self.bodies.truncate(frame.bodies);
        self.instructions.truncate(frame.instructions);
        self.error(error.error);
        let (root, name) = self.name_of(frame.text);
        self.instructions.push(Instruction {
            root,
            name,
            shape: Span::NONE,
            opcode: Span::NONE,
            operands: 0..0,
            literal: None,
            attributes: 0..0,
            span: name,
            broken: true,
        });
    }

    pub(crate) fn error(&mut self, error: ParseError<u32, Tok, ()>) {
        let (span, found, expected) = match error {
            ParseError::UnrecognizedToken { token: (l, t, r), expected } => (at(l, r), Some(t), expected),
            ParseError::ExtraToken { token: (l, t, r) } => (at(l, r), Some(t), Vec::new()),
            ParseError::UnrecognizedEof { location, expected } => (at(location, location), None, expected),
            ParseError::InvalidToken { location } => (at(location, location), None, Vec::new()),
            ParseError::User { error: () } => return,
        };
        if self.errors.len() < hlo::Diagnostics::LIMIT {
            self.errors.push(SyntaxError { span, found, expected });
        }
    }

    pub(crate) fn operand(&mut self, shape: Span, what: OperandKind) {
        self.operands.push(Operand { shape, what });
    }

    /// An instruction written inline as an operand.
    pub(crate) fn nested(&mut self, shape: Span, call: Call) {
        self.push_instruction(false, Span::NONE, shape, call, 0..0, shape.to(call.opcode));
        self.operand(Span::NONE, OperandKind::Nested(self.instructions.len() as u32 - 1));
    }

    pub(crate) fn constant(&mut self, span: Span) -> Call {
        let open = memchr::memchr(b'(', &self.text.as_bytes()[span.range()])
            .expect("invariant: the lexer saw the parenthesis") as u32;
        Call {
            opcode: at(span.start, span.start + "constant".len() as u32),
            operands: 0,
            literal: Some(at(span.start + open + 1, span.end - 1)),
        }
    }

    /// `key=value`, or `key=` before a value that the grammar reads.
    fn key(&self, span: Span) -> (Span, Span) {
        let equals = memchr::memchr(b'=', &self.text.as_bytes()[span.range()])
            .expect("invariant: the lexer saw the equals sign") as u32;
        (at(span.start, span.start + equals), at(span.start + equals + 1, span.end))
    }

    pub(crate) fn attribute(&mut self, span: Span) {
        let (key, value) = self.key(span);
        self.attributes.push(Attribute { key, value: AttributeValue::Raw(value) });
    }

    pub(crate) fn attribute_computation(&mut self, span: Span, computation: u32) {
        let key = self.key(span).0;
        self.attributes.push(Attribute { key, value: AttributeValue::Computation(computation) });
    }

    pub(crate) fn attribute_list(&mut self, span: Span, references: u32) {
        let key = self.key(span).0;
        let list = move_tail(&mut self.references, references as usize, &mut self.ast.references);
        self.attributes.push(Attribute { key, value: AttributeValue::List(list) });
    }

    pub(crate) fn reference(&mut self, reference: Reference) {
        self.references.push(reference);
    }

    pub(crate) fn finish(self) -> (Ast, Vec<SyntaxError>) {
        (self.ast, self.errors)
    }
}

/// A table range for slicing.
pub(crate) fn range(slice: &Slice) -> Range<usize> {
    slice.start as usize..slice.end as usize
}
