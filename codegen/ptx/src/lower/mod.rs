//! From the syntax tree to the verified module: names, types and forms are checked, and every instruction
//! becomes its typed [`Op`](crate::ir::Op).
//!
//! Invariant: a module is made only where nothing was reported. One pass reports every fault of the text.

mod arithmetic;
mod cfg;
mod data;
#[cfg(test)]
mod every_form;
mod function;
mod memory;
mod operand;
mod sync;
mod variable;

use rustc_hash::FxHashMap;

use crate::diag::{Diagnostic, Sink, Span};
use crate::ir::{Constant, Function, Module, Space, Src};
use crate::parse::parse;
use crate::syntax::{Directive, Item, Tree, Word};

/// A fault that was reported.
pub(crate) struct Reported;
pub(crate) type Check<T> = Result<T, Reported>;

/// What a name of the module means.
#[derive(Clone, Copy)]
pub(crate) enum Global {
    Variable(u32),
    Function(u32),
}

pub(crate) struct Lowering<'a> {
    pub(crate) sink: Sink<'a>,
    pub(crate) module: Module,
    pub(crate) names: FxHashMap<&'a str, Global>,
    constants: FxHashMap<Constant, u32>,
    lines: LineIndex,
}

/// Versions of the ISA that the grammar and the table know.
const VERSIONS: &[(u32, u32)] = &[
    // major, largest minor
    (1, 5),
    (2, 3),
    (3, 2),
    (4, 3),
    (5, 0),
    (6, 5),
    (7, 8),
    (8, 8),
    (9, 5),
];

const ARCHITECTURES: &[u32] = &[
    10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100,
    101, 103, 110, 120, 121,
];

/// Lines of a text by offset.
pub(crate) struct LineIndex(Vec<u32>);

impl LineIndex {
    fn new(text: &str) -> Self {
        let mut starts = vec![0];
        starts.extend(text.bytes().enumerate().filter(|b| b.1 == b'\n').map(|b| b.0 as u32 + 1));
        LineIndex(starts)
    }

    /// The line of an offset, counted from 1.
    pub(crate) fn line(&self, offset: u32) -> u32 {
        self.0.partition_point(|&s| s <= offset) as u32
    }
}

/// Parses and verifies a text.
///
/// # Errors
/// Every fault that was found, in the order of the text.
pub fn module(text: &str) -> Result<Module, Vec<Diagnostic>> {
    let tree = parse(text)?;
    verify(text, &tree)
}

/// Verifies a syntax tree of `text`.
///
/// # Errors
/// Every fault that was found, in the order of the text.
pub fn verify(text: &str, tree: &Tree<'_>) -> Result<Module, Vec<Diagnostic>> {
    let mut l = Lowering {
        sink: Sink::new(text),
        module: Module { lines: text.lines().map(|l| l.trim().to_owned()).collect(), ..Module::default() },
        names: FxHashMap::default(),
        constants: FxHashMap::default(),
        lines: LineIndex::new(text),
    };
    l.header(tree);
    l.declare(tree);
    for item in &tree.items {
        if let Item::Function(f) = item
            && !l.sink.is_full()
        {
            l.function(f);
        }
    }
    l.sink.found.sort_by_key(|d| d.span.start);
    if l.sink.found.is_empty() { Ok(l.module) } else { Err(l.sink.found) }
}

impl<'a> Lowering<'a> {
    pub(crate) fn fault<T>(
        &mut self,
        span: Span,
        code: &'static str,
        message: impl Into<String>,
    ) -> Check<T> {
        self.sink.report(span, code, message);
        Err(Reported)
    }

    pub(crate) fn line(&self, span: Span) -> u32 {
        self.lines.line(span.start)
    }

    pub(crate) fn constant(&mut self, c: Constant) -> Src {
        let next = self.module.constants.len() as u32;
        let index = *self.constants.entry(c).or_insert(next);
        if index == next {
            self.module.constants.push(c);
        }
        Src::Const(index)
    }

    pub(crate) fn value(&mut self, bits: u64) -> Src {
        self.constant(Constant::Value(bits))
    }

    fn header(&mut self, tree: &Tree<'a>) {
        let find = |name: &str| {
            tree.items.iter().find_map(|i| match i {
                Item::Directive(d) if d.name.text == name => Some(d.clone()),
                Item::Directive(_) | Item::Variable(_) | Item::Function(_) => None,
            })
        };
        self.module.address_bits = 64;
        match find(".version") {
            Some(d) => self.version(&d),
            None => self.sink.report(Span::default(), "X0004", "the text does not begin with `.version`"),
        }
        match find(".target") {
            Some(d) => self.target(&d),
            None => self.sink.report(Span::default(), "X0005", "the text has no `.target`"),
        }
        if let Some(d) = find(".address_size") {
            match d.arguments.first().map(|w| w.text) {
                Some("64") => {}
                Some("32") => self.module.address_bits = 32,
                _ => self.sink.report(d.name.span, "X0002", "an address has 32 or 64 bits"),
            }
        }
    }

    fn version(&mut self, d: &Directive<'a>) {
        let Some(w) = d.arguments.first() else { return };
        let parts =
            w.text.split_once('.').and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
        match parts {
            Some((major, minor)) if VERSIONS.iter().any(|v| v.0 == major && minor <= v.1) => {
                self.module.version = major * 10 + minor;
            }
            _ => self.sink.report(
                w.span,
                "X0004",
                format!("version `{}` of the PTX ISA is not known; known are 1.0 to 9.5", w.text),
            ),
        }
    }

    fn target(&mut self, d: &Directive<'a>) {
        for (i, w) in d.arguments.iter().step_by(2).enumerate() {
            if i > 0 {
                if !["debug", "texmode_unified", "texmode_independent", "map_f64_to_f32"].contains(&w.text) {
                    self.sink.report(w.span, "X0005", format!("`{}` is no option of `.target`", w.text));
                }
                continue;
            }
            let digits = w.text.strip_prefix("sm_").unwrap_or("");
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let (number, suffix) = digits.split_at(end);
            match number.parse::<u32>() {
                Ok(n) if ARCHITECTURES.contains(&n) && ["", "a", "f"].contains(&suffix) => {
                    self.module.arch = n;
                    suffix.clone_into(&mut self.module.arch_suffix);
                }
                _ => self.sink.report(w.span, "X0005", format!("the architecture `{}` is not known", w.text)),
            }
        }
    }

    /// Declares the names of the module, so that functions may use what stands behind them.
    fn declare(&mut self, tree: &Tree<'a>) {
        for item in &tree.items {
            match item {
                Item::Directive(d) => self.module_directive(d),
                Item::Variable(v) => {
                    // A reported fault; the other declarations are looked at all the same.
                    let _ = self.module_variable(v);
                }
                Item::Function(f) => {
                    let index = self.module.functions.len() as u32;
                    match self.names.get(f.name.text) {
                        Some(Global::Function(known)) => {
                            let known = *known as usize;
                            let defined = self.module.functions[known].is_defined;
                            if defined && f.body.is_some() {
                                self.sink.report(
                                    f.name.span,
                                    "X0105",
                                    format!("`{}` is defined twice", f.name.text),
                                );
                            } else if f.body.is_some() {
                                self.module.functions[known].is_defined = true;
                            }
                            continue;
                        }
                        Some(Global::Variable(_)) => {
                            self.sink.report(
                                f.name.span,
                                "X0105",
                                format!("`{}` is declared twice", f.name.text),
                            );
                            continue;
                        }
                        None => {}
                    }
                    self.names.insert(f.name.text, Global::Function(index));
                    let mut function = Function {
                        name: f.name.text.to_owned(),
                        is_kernel: f.kind.text == ".entry",
                        is_defined: f.body.is_some(),
                        line: self.line(f.span),
                        ..Function::default()
                    };
                    // Faults of parameters are reported where the function is lowered.
                    function.params =
                        self.parameters(f.parameters.as_deref().unwrap_or(&[]), false).unwrap_or_default();
                    function.returns =
                        self.parameters(f.returns.as_deref().unwrap_or(&[]), false).unwrap_or_default();
                    function.param_bytes =
                        function.params.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0);
                    self.header_directives(f, &mut function);
                    self.module.functions.push(function);
                }
            }
        }
    }

    fn module_directive(&mut self, d: &Directive<'a>) {
        if d.name.text == ".alias" {
            let names: Vec<&Word<'a>> =
                d.arguments.iter().filter(|w| w.text != "," && w.text != ";").collect();
            match names.as_slice() {
                [alias, of] => match self.names.get(of.text) {
                    Some(&g @ Global::Function(_)) => {
                        self.names.insert(alias.text, g);
                    }
                    _ => self.sink.report(
                        of.span,
                        "X0104",
                        format!("no function `{}` is declared before", of.text),
                    ),
                },
                _ => self.sink.report(d.name.span, "X0002", "`.alias` takes two names"),
            }
        }
    }
}

/// The space of a directive or modifier.
pub(crate) fn space_of(name: &str) -> Option<Space> {
    Some(match name {
        "global" => Space::Global,
        "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
        "local" => Space::Local,
        "const" => Space::Const,
        "param" | "param::entry" | "param::func" => Space::Param,
        _ => return None,
    })
}
