//! PTX text of a syntax tree, one statement a line.

use crate::syntax::{
    Attribute, Declared, Directive, Function, Initial, Instruction, Item, Operand, OperandKind, Statement,
    Tree, Variable, Word,
};

/// The text of a tree. Its tokens are those of the text that was parsed; comments and layout are not kept.
#[must_use]
pub fn print(tree: &Tree<'_>) -> String {
    let mut p = Printer { out: String::new(), depth: 0 };
    for item in &tree.items {
        match item {
            Item::Directive(d) => p.directive(d),
            Item::Variable(v) => {
                p.variable(v);
                p.out.push_str(";\n");
            }
            Item::Function(f) => p.function(f),
        }
    }
    p.out
}

struct Printer {
    out: String,
    depth: usize,
}

/// Whether a blank between two tokens is needed or usual.
fn separated(before: &str, after: &str) -> bool {
    let word = |s: &str, last: bool| {
        let c = if last { s.chars().next_back() } else { s.chars().next() };
        c.is_some_and(|c| c.is_ascii_alphanumeric() || "_$%.\"-".contains(c))
    };
    match after {
        "," | ";" | ")" | "]" | ":" => false,
        _ => {
            before == ","
                || (word(before, true) && word(after, false))
                || after == "{"
                || before == "{"
                || after == "}"
        }
    }
}

impl Printer {
    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.out.push('\t');
        }
    }

    fn words(&mut self, words: &[Word<'_>]) {
        for pair in words.windows(2) {
            self.out.push_str(pair[0].text);
            if separated(pair[0].text, pair[1].text) {
                self.out.push(' ');
            }
        }
        if let Some(last) = words.last() {
            self.out.push_str(last.text);
        }
    }

    fn directive(&mut self, d: &Directive<'_>) {
        self.indent();
        let mut all = vec![d.name];
        all.extend_from_slice(&d.arguments);
        self.words(&all);
        self.out.push('\n');
    }

    fn attribute(&mut self, a: &Attribute<'_>) {
        match a {
            Attribute::Plain(w) => self.out.push_str(w.text),
            Attribute::Align(w, n) => {
                self.out.push_str(w.text);
                self.out.push(' ');
                self.out.push_str(n.text);
            }
            Attribute::List(w, words) => {
                self.out.push_str(w.text);
                self.out.push('(');
                self.words(words);
                self.out.push(')');
            }
        }
        self.out.push(' ');
    }

    fn variable(&mut self, v: &Variable<'_>) {
        if let Some(l) = v.linkage {
            self.out.push_str(l.text);
            self.out.push(' ');
        }
        self.out.push_str(v.space.text);
        self.out.push(' ');
        for a in &v.attributes {
            self.attribute(a);
        }
        for (i, n) in v.names.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.declared(n);
        }
    }

    fn declared(&mut self, n: &Declared<'_>) {
        self.out.push_str(n.name.text);
        if let Some(count) = n.count {
            self.out.push('<');
            self.out.push_str(count.text);
            self.out.push('>');
        }
        for d in &n.dimensions {
            self.out.push('[');
            if let Some(d) = d {
                self.out.push_str(d.text);
            }
            self.out.push(']');
        }
        if let Some(initial) = &n.initial {
            self.out.push_str(" = ");
            self.initial(initial);
        }
    }

    fn initial(&mut self, initial: &Initial<'_>) {
        match initial {
            Initial::Element(words) => self.words(words),
            Initial::List(list) => {
                self.out.push('{');
                for (i, e) in list.iter().enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.initial(e);
                }
                self.out.push('}');
            }
        }
    }

    fn parameters(&mut self, list: &[Variable<'_>]) {
        self.out.push('(');
        for (i, v) in list.iter().enumerate() {
            self.out.push_str(if i == 0 { "\n\t" } else { ",\n\t" });
            self.variable(v);
        }
        self.out.push_str(if list.is_empty() { ")" } else { "\n)" });
    }

    fn function(&mut self, f: &Function<'_>) {
        self.out.push('\n');
        if let Some(l) = f.linkage {
            self.out.push_str(l.text);
            self.out.push(' ');
        }
        self.out.push_str(f.kind.text);
        self.out.push(' ');
        for a in &f.attributes {
            self.attribute(a);
        }
        if let Some(returns) = &f.returns {
            self.parameters(returns);
            self.out.push(' ');
        }
        self.out.push_str(f.name.text);
        if let Some(parameters) = &f.parameters {
            self.parameters(parameters);
        }
        self.out.push('\n');
        for d in &f.directives {
            self.directive(d);
        }
        match &f.body {
            None => self.out.push_str(";\n"),
            Some(body) => self.block(body),
        }
    }

    fn block(&mut self, body: &[Statement<'_>]) {
        self.indent();
        self.out.push_str("{\n");
        self.depth += 1;
        for s in body {
            self.statement(s);
        }
        self.depth -= 1;
        self.indent();
        self.out.push_str("}\n");
    }

    fn statement(&mut self, s: &Statement<'_>) {
        match s {
            Statement::Label(l) => {
                self.out.push_str(l.text);
                self.out.push_str(":\n");
            }
            Statement::Variable(v) => {
                self.indent();
                self.variable(v);
                self.out.push_str(";\n");
            }
            Statement::Directive(d) => self.directive(d),
            Statement::Named(l, d) => {
                self.out.push_str(l.text);
                self.out.push_str(": ");
                let mut all = vec![d.name];
                all.extend_from_slice(&d.arguments);
                self.words(&all);
                self.out.push('\n');
            }
            Statement::Block(body) => self.block(body),
            Statement::Instruction(i) => self.instruction(i),
        }
    }

    fn instruction(&mut self, i: &Instruction<'_>) {
        self.indent();
        if let Some((negated, p)) = i.guard {
            self.out.push_str(if negated { "@!" } else { "@" });
            self.out.push_str(p.text);
            self.out.push(' ');
        }
        self.out.push_str(i.opcode.text);
        for m in &i.modifiers {
            self.out.push('.');
            self.out.push_str(m.text);
        }
        if !i.operands.is_empty() {
            self.out.push(' ');
            self.operands(&i.operands);
        }
        self.out.push_str(";\n");
    }

    fn operands(&mut self, list: &[Operand<'_>]) {
        for (i, o) in list.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.operand(o);
        }
    }

    fn operand(&mut self, o: &Operand<'_>) {
        match &o.kind {
            OperandKind::Name(n, component) => {
                self.out.push_str(n.text);
                if let Some(c) = component {
                    self.out.push_str(c.text);
                }
            }
            OperandKind::Not(n) => {
                self.out.push('!');
                self.out.push_str(n.text);
            }
            OperandKind::Number(signs, n) => {
                signs.iter().for_each(|s| self.out.push_str(s.text));
                self.out.push_str(n.text);
            }
            OperandKind::Offset(n, signs, offset) => {
                self.out.push_str(n.text);
                signs.iter().for_each(|s| self.out.push_str(s.text));
                self.out.push_str(offset.text);
            }
            OperandKind::Pair(a, b) => {
                self.operand(a);
                self.out.push('|');
                self.operand(b);
            }
            OperandKind::Vector(list) => {
                self.out.push('{');
                self.operands(list);
                self.out.push('}');
            }
            OperandKind::Address(list) => {
                self.out.push('[');
                self.operands(list);
                self.out.push(']');
            }
            OperandKind::List(list) => {
                self.out.push('(');
                self.operands(list);
                self.out.push(')');
            }
        }
    }
}
