//! From tokens to the syntax tree, by recursive descent.
//!
//! Invariant: recursion is bounded by [`MAX_NESTING`], so no text overflows the stack. A statement that does
//! not parse is reported and skipped up to its semicolon, so that one scan reports every fault.

use crate::diag::{Diagnostic, Sink, Span};
use crate::lex::{Kind, Token, tokens};
use crate::syntax::{
    Attribute, Declared, Directive, Function, Initial, Instruction, Item, Operand, OperandKind, Statement,
    Tree, Variable, Word,
};

/// Blocks, initial values and operands nest at most this deep.
pub const MAX_NESTING: usize = 64;

/// Parses a text into its syntax tree.
///
/// # Errors
/// Every fault of form that was found, in the order of the text.
pub fn parse(text: &str) -> Result<Tree<'_>, Vec<Diagnostic>> {
    let tokens = tokens(text).map_err(|d| vec![*d])?;
    let mut p = Parser { text, tokens, at: 0, depth: 0, sink: Sink::new(text) };
    let tree = p.tree();
    if p.sink.found.is_empty() { Ok(tree) } else { Err(p.sink.found) }
}

/// A fault that was reported; the caller recovers.
struct Reported;
type Parse<T> = Result<T, Reported>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    sink: Sink<'a>,
}

const LINKAGE: &[&str] = &[".extern", ".visible", ".weak", ".common"];
const SPACES: &[&str] = &[".global", ".shared", ".const", ".local", ".reg", ".param", ".sreg", ".tex"];
/// Directives of a function's header.
const FUNCTION_DIRECTIVES: &[&str] = &[
    ".maxntid",
    ".reqntid",
    ".minnctapersm",
    ".maxnctapersm",
    ".maxnreg",
    ".noreturn",
    ".pragma",
    ".explicitcluster",
    ".reqnctapercluster",
    ".maxclusterrank",
    ".blocksareclusters",
    ".abi_preserve",
    ".abi_preserve_control",
    ".unique",
];

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<(Kind, &'a str)> {
        self.tokens.get(self.at).map(|t| (t.kind, t.text(self.text)))
    }

    fn peek_text(&self) -> &'a str {
        self.peek().map_or("", |t| t.1)
    }

    fn text_at(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |t| t.text(self.text))
    }

    fn kind_at(&self, ahead: usize) -> Option<Kind> {
        self.tokens.get(self.at + ahead).map(|t| t.kind)
    }

    fn span(&self) -> Span {
        let end = self.text.len() as u32;
        self.tokens.get(self.at).map_or(Span { start: end, end }, |t| t.span)
    }

    fn since(&self, start: Span) -> Span {
        let end = if self.at == 0 { start.end } else { self.tokens[self.at - 1].span.end };
        Span { start: start.start, end: end.max(start.start) }
    }

    fn next(&mut self) -> Option<Word<'a>> {
        let t = self.tokens.get(self.at)?;
        self.at += 1;
        Some(Word { text: t.text(self.text), span: t.span })
    }

    fn fault<T>(&mut self, message: impl Into<String>) -> Parse<T> {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some((_, t)) => format!("`{}`", t.chars().take(40).collect::<String>()),
        };
        let message = format!("{}, found {found}", message.into());
        self.sink.report(self.span(), "X0002", message);
        Err(Reported)
    }

    fn eat(&mut self, punct: u8) -> bool {
        let hit = self.kind_at(0) == Some(Kind::Punct(punct));
        self.at += usize::from(hit);
        hit
    }

    fn expect(&mut self, punct: u8, what: &str) -> Parse<()> {
        if self.eat(punct) { Ok(()) } else { self.fault(format!("expected `{}` {what}", punct as char)) }
    }

    fn ident(&mut self, what: &str) -> Parse<Word<'a>> {
        match self.peek() {
            Some((Kind::Ident, text)) => {
                let span = self.span();
                self.at += 1;
                Ok(Word { text, span })
            }
            _ => self.fault(format!("expected {what}")),
        }
    }

    fn number(&mut self, what: &str) -> Parse<Word<'a>> {
        match self.peek() {
            Some((Kind::Number, text)) => {
                let span = self.span();
                self.at += 1;
                Ok(Word { text, span })
            }
            _ => self.fault(format!("expected {what}")),
        }
    }

    fn deeper(&mut self) -> Parse<()> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            self.sink.report(self.span(), "X0003", format!("nesting deeper than {MAX_NESTING}"));
            return Err(Reported);
        }
        Ok(())
    }

    /// Behind the next semicolon, or before the brace that closes the block.
    fn recover(&mut self) {
        while let Some((kind, _)) = self.peek() {
            match kind {
                Kind::Punct(b';') => {
                    self.at += 1;
                    return;
                }
                Kind::Punct(b'}') => return,
                Kind::Punct(_) | Kind::Ident | Kind::Dot | Kind::Number | Kind::Str => self.at += 1,
            }
        }
    }

    fn tree(&mut self) -> Tree<'a> {
        let mut tree = Tree::default();
        while self.at < self.tokens.len() && !self.sink.is_full() {
            let before = self.at;
            self.depth = 0;
            match self.item() {
                Ok(item) => tree.items.push(item),
                Err(Reported) => {
                    self.recover();
                    if self.at == before || self.peek_text() == "}" {
                        self.at += 1;
                    }
                }
            }
        }
        tree
    }

    fn item(&mut self) -> Parse<Item<'a>> {
        let start = self.span();
        let linkage = if LINKAGE.contains(&self.peek_text()) { self.next() } else { None };
        match self.peek_text() {
            ".entry" | ".func" => Ok(Item::Function(Box::new(self.function(linkage, start)?))),
            t if SPACES.contains(&t) => {
                let v = self.variable(linkage, start, true)?;
                self.expect(b';', "after the declaration")?;
                Ok(Item::Variable(v))
            }
            ".version" | ".target" | ".address_size" | ".file" | ".section" | ".alias" | ".pragma"
            | ".loc"
                if linkage.is_none() =>
            {
                Ok(Item::Directive(self.module_directive()?))
            }
            _ => self.fault("expected a directive, a variable or a function"),
        }
    }

    /// Directives without a semicolon end with their line in the grammar; here they end by their form.
    fn module_directive(&mut self) -> Parse<Directive<'a>> {
        let Some(name) = self.next() else { return self.fault("expected a directive") };
        let mut arguments = Vec::new();
        match name.text {
            ".version" | ".address_size" => arguments.push(self.number("a number")?),
            ".target" => {
                arguments.push(self.ident("a target")?);
                while self.peek_text() == "," {
                    arguments.extend(self.next());
                    arguments.push(self.ident("a target option")?);
                }
            }
            ".file" => {
                arguments.push(self.number("the number of a file")?);
                match self.peek() {
                    Some((Kind::Str, _)) => arguments.extend(self.next()),
                    _ => return self.fault("expected the name of a file"),
                }
                while self.peek_text() == "," {
                    arguments.extend(self.next());
                    arguments.push(self.number("a number")?);
                }
            }
            ".loc" => self.loc(&mut arguments)?,
            ".section" => {
                match self.peek() {
                    Some((Kind::Dot | Kind::Ident, _)) => arguments.extend(self.next()),
                    _ => return self.fault("expected the name of a section"),
                }
                if self.peek_text() != "{" {
                    return self.fault("expected `{` after the name of a section");
                }
                let mut depth = 0_usize;
                loop {
                    match self.peek_text() {
                        "" => return self.fault("expected `}` at the end of a section"),
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    arguments.extend(self.next());
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => self.until_semicolon(&mut arguments)?,
        }
        Ok(Directive { name, arguments })
    }

    fn loc(&mut self, arguments: &mut Vec<Word<'a>>) -> Parse<()> {
        for _ in 0..3 {
            arguments.push(self.number("a number of `.loc`")?);
        }
        while self.peek_text() == "," {
            arguments.extend(self.next());
            arguments.push(self.ident("`function_name` or `inlined_at`")?);
            while matches!(self.peek(), Some((Kind::Ident, t)) if !t.is_empty())
                || self.kind_at(0) == Some(Kind::Number)
            {
                // A name or number of the attribute; the next instruction begins a statement and is no
                // operand of it.
                if arguments.last().is_some_and(|w| w.text == "function_name" || w.text == "inlined_at")
                    || self.kind_at(0) == Some(Kind::Number)
                {
                    arguments.extend(self.next());
                    if self.peek_text() == "+" {
                        arguments.extend(self.next());
                    }
                } else {
                    break;
                }
            }
        }
        Ok(())
    }

    fn until_semicolon(&mut self, arguments: &mut Vec<Word<'a>>) -> Parse<()> {
        loop {
            match self.peek_text() {
                "" | "{" | "}" => return self.fault("expected `;`"),
                ";" => {
                    arguments.extend(self.next());
                    return Ok(());
                }
                _ => arguments.extend(self.next()),
            }
        }
    }

    fn attribute(&mut self) -> Parse<Option<Attribute<'a>>> {
        if self.kind_at(0) != Some(Kind::Dot) {
            return Ok(None);
        }
        let Some(word) = self.next() else { return Ok(None) };
        Ok(Some(match word.text {
            ".align" => Attribute::Align(word, self.number("an alignment")?),
            ".attribute" => {
                self.expect(b'(', "after `.attribute`")?;
                let mut words = Vec::new();
                while !matches!(self.peek_text(), ")" | "" | ";") {
                    words.extend(self.next());
                }
                self.expect(b')', "at the end of the attributes")?;
                Attribute::List(word, words)
            }
            _ => Attribute::Plain(word),
        }))
    }

    fn variable(&mut self, linkage: Option<Word<'a>>, start: Span, many: bool) -> Parse<Variable<'a>> {
        let Some(space) = self.next() else { return self.fault("expected a state space") };
        let mut attributes = Vec::new();
        while let Some(a) = self.attribute()? {
            attributes.push(a);
        }
        let mut names = vec![self.declared()?];
        while many && self.eat(b',') {
            names.push(self.declared()?);
        }
        Ok(Variable { linkage, space, attributes, names, span: self.since(start) })
    }

    fn declared(&mut self) -> Parse<Declared<'a>> {
        let name = self.ident("a name")?;
        let mut count = None;
        if self.eat(b'<') {
            count = Some(self.number("a number of registers")?);
            self.expect(b'>', "after the number of registers")?;
        }
        let mut dimensions = Vec::new();
        while self.eat(b'[') {
            if self.eat(b']') {
                dimensions.push(None);
            } else {
                dimensions.push(Some(self.number("a dimension")?));
                self.expect(b']', "after the dimension")?;
            }
        }
        let initial = if self.eat(b'=') { Some(self.initial()?) } else { None };
        Ok(Declared { name, count, dimensions, initial })
    }

    fn initial(&mut self) -> Parse<Initial<'a>> {
        if self.eat(b'{') {
            self.deeper()?;
            let mut list = Vec::new();
            if !self.eat(b'}') {
                loop {
                    list.push(self.initial()?);
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b'}', "at the end of the initial value")?;
            }
            self.depth -= 1;
            return Ok(Initial::List(list));
        }
        let mut words = Vec::new();
        let mut depth = 0_usize;
        loop {
            match self.peek_text() {
                "" | ";" | "{" | "}" | "[" | "]" => break,
                "," if depth == 0 => break,
                "(" => depth += 1,
                ")" if depth == 0 => break,
                ")" => depth -= 1,
                _ => {}
            }
            words.extend(self.next());
        }
        if words.is_empty() { self.fault("expected an initial value") } else { Ok(Initial::Element(words)) }
    }

    fn parameters(&mut self) -> Parse<Vec<Variable<'a>>> {
        self.expect(b'(', "before the parameters")?;
        let mut list = Vec::new();
        if !self.eat(b')') {
            loop {
                if !matches!(self.peek_text(), ".param" | ".reg") {
                    return self.fault("expected `.param` or `.reg`");
                }
                let start = self.span();
                list.push(self.variable(None, start, false)?);
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(b')', "after the parameters")?;
        }
        Ok(list)
    }

    fn function(&mut self, linkage: Option<Word<'a>>, start: Span) -> Parse<Function<'a>> {
        let Some(kind) = self.next() else { return self.fault("expected `.entry` or `.func`") };
        let mut attributes = Vec::new();
        while let Some(a) = self.attribute()? {
            attributes.push(a);
        }
        let returns = if self.peek_text() == "(" { Some(self.parameters()?) } else { None };
        let name = self.ident("the name of the function")?;
        let parameters = if self.peek_text() == "(" { Some(self.parameters()?) } else { None };
        let mut directives = Vec::new();
        while FUNCTION_DIRECTIVES.contains(&self.peek_text()) {
            let Some(name) = self.next() else { break };
            let mut arguments = Vec::new();
            loop {
                match self.peek() {
                    Some((Kind::Number | Kind::Str, _)) => arguments.extend(self.next()),
                    Some((_, ",")) => arguments.extend(self.next()),
                    Some((_, ";")) if !self.text_at(1).is_empty() && name.text == ".pragma" => {
                        arguments.extend(self.next());
                        break;
                    }
                    _ => break,
                }
            }
            directives.push(Directive { name, arguments });
        }
        let span = self.since(start);
        let body = if self.eat(b';') {
            None
        } else if self.peek_text() == "{" {
            Some(self.block()?)
        } else {
            return self.fault("expected a body or `;`");
        };
        Ok(Function { linkage, kind, attributes, returns, name, parameters, directives, body, span })
    }

    fn block(&mut self) -> Parse<Vec<Statement<'a>>> {
        self.expect(b'{', "before the block")?;
        self.deeper()?;
        let mut body = Vec::new();
        loop {
            if self.eat(b'}') {
                break;
            }
            if self.at >= self.tokens.len() || self.sink.is_full() {
                return self.fault("expected `}` at the end of the block");
            }
            let (before, depth) = (self.at, self.depth);
            match self.statement() {
                Ok(Some(s)) => body.push(s),
                Ok(None) => {}
                Err(Reported) => {
                    self.depth = depth;
                    self.recover();
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
        }
        self.depth -= 1;
        Ok(body)
    }

    fn statement(&mut self) -> Parse<Option<Statement<'a>>> {
        let start = self.span();
        match self.peek() {
            Some((Kind::Punct(b'{'), _)) => Ok(Some(Statement::Block(self.block()?))),
            Some((Kind::Ident, _)) if self.text_at(1) == ":" => {
                let label = self.ident("a label")?;
                self.at += 1;
                if matches!(self.peek_text(), ".branchtargets" | ".callprototype" | ".calltargets") {
                    let Some(name) = self.next() else { return self.fault("expected a directive") };
                    let mut arguments = Vec::new();
                    self.until_semicolon(&mut arguments)?;
                    return Ok(Some(Statement::Named(label, Directive { name, arguments })));
                }
                Ok(Some(Statement::Label(label)))
            }
            Some((Kind::Dot, t)) if SPACES.contains(&t) => {
                let v = self.variable(None, start, true)?;
                self.expect(b';', "after the declaration")?;
                Ok(Some(Statement::Variable(v)))
            }
            Some((Kind::Dot, ".loc" | ".pragma")) => Ok(Some(Statement::Directive(self.module_directive()?))),
            Some((Kind::Punct(b'@'), _) | (Kind::Ident, _)) => {
                Ok(Some(Statement::Instruction(self.instruction()?)))
            }
            Some((Kind::Punct(b';'), _)) => self.fault("expected a statement"),
            _ => self.fault("expected a label, a declaration or an instruction"),
        }
    }

    fn instruction(&mut self) -> Parse<Instruction<'a>> {
        let start = self.span();
        let guard = if self.eat(b'@') {
            let negated = self.eat(b'!');
            Some((negated, self.ident("a predicate")?))
        } else {
            None
        };
        let opcode = self.ident("an instruction")?;
        let mut modifiers = Vec::new();
        while self.kind_at(0) == Some(Kind::Dot) {
            let Some(w) = self.next() else { break };
            modifiers.push(Word { text: &w.text[1..], span: w.span });
        }
        let mut operands = Vec::new();
        if self.peek_text() != ";" {
            loop {
                operands.push(self.operand()?);
                // `call (r), f, (a)` has commas; nothing else follows an operand.
                if !self.eat(b',') {
                    break;
                }
            }
        }
        self.expect(b';', "after the instruction")?;
        Ok(Instruction { guard, opcode, modifiers, operands, span: self.since(start) })
    }

    fn list(&mut self, close: u8) -> Parse<Vec<Operand<'a>>> {
        self.at += 1;
        self.deeper()?;
        let mut list = Vec::new();
        if !self.eat(close) {
            loop {
                list.push(self.operand()?);
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(close, "at the end of the operand")?;
        }
        self.depth -= 1;
        Ok(list)
    }

    fn signs(&mut self) -> Vec<Word<'a>> {
        let mut signs = Vec::new();
        while matches!(self.peek_text(), "-" | "+" | "~") {
            signs.extend(self.next());
        }
        signs
    }

    fn operand(&mut self) -> Parse<Operand<'a>> {
        let start = self.span();
        let kind = match self.peek() {
            Some((Kind::Punct(b'{'), _)) => OperandKind::Vector(self.list(b'}')?),
            Some((Kind::Punct(b'['), _)) => OperandKind::Address(self.list(b']')?),
            Some((Kind::Punct(b'('), _)) => OperandKind::List(self.list(b')')?),
            Some((Kind::Punct(b'!'), _)) => {
                self.at += 1;
                OperandKind::Not(self.ident("a predicate")?)
            }
            Some((Kind::Punct(b'-' | b'+' | b'~') | Kind::Number, _)) => {
                let signs = self.signs();
                OperandKind::Number(signs, self.number("a number")?)
            }
            Some((Kind::Ident, _)) => {
                let name = self.ident("a name")?;
                match self.peek() {
                    Some((Kind::Dot, _)) => OperandKind::Name(name, self.next()),
                    Some((Kind::Punct(b'+' | b'-'), _)) => {
                        let signs = self.signs();
                        OperandKind::Offset(name, signs, self.number("an offset")?)
                    }
                    _ => OperandKind::Name(name, None),
                }
            }
            _ => return self.fault("expected an operand"),
        };
        let operand = Operand { kind, span: self.since(start) };
        if self.eat(b'|') {
            self.deeper()?;
            let second = self.operand()?;
            self.depth -= 1;
            return Ok(Operand {
                kind: OperandKind::Pair(Box::new(operand), Box::new(second)),
                span: self.since(start),
            });
        }
        Ok(operand)
    }
}
