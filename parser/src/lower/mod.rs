//! From the syntax tree to the IR: names, opcodes, attributes, literals.
//!
//! Computations are lowered callees first, so that a left-out shape can be inferred from what is called; the
//! order of the text is kept in the module. An instruction that cannot be lowered makes its name known all
//! the same, and what uses it is lowered no further, without an error of its own: one mistake is one
//! diagnostic.

mod asynchronous;
mod attributes;
mod header;
mod instruction;
mod order;
mod tuple_select;

use std::sync::LazyLock;

use hlo::diag::Diagnostic;
use hlo::diag::codes::parse as codes;
use hlo::elided::ElidedConstants;
use hlo::{ComputationId, DeclaredSignature, Diagnostics, InstrId, Module, Opcode, Shape, Span, TextStyle};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ParseOptions;
use crate::ast::{Ast, Computation, OperandKind, range};
use crate::cursor::{Cursor, Res, keep, quote, show};

static OPCODES: LazyLock<FxHashMap<&'static str, Opcode>> =
    LazyLock::new(|| Opcode::ALL.iter().map(|&op| (op.name(), op)).collect());

/// What a name of an instruction stands for.
#[derive(Clone, Copy)]
struct Binding {
    /// `None` if it could not be lowered.
    id: Option<InstrId>,
    span: Span,
}

/// The computation that is being lowered.
struct Scope<'a> {
    computation: ComputationId,
    /// Its index in the tree.
    index: usize,
    names: FxHashMap<&'a str, Binding>,
    /// Elements of tuples that were taken by `#`.
    elements: FxHashMap<(InstrId, i64), InstrId>,
    /// By index in the tree, of instructions without names; dense from the computation's first.
    lowered: Vec<Option<InstrId>>,
    parameter_numbers: FxHashSet<i64>,
    root: Option<(InstrId, Span)>,
    /// A `ROOT` that could not be lowered.
    broken_root: bool,
    /// All names of the computation with their spans; built when one is not found.
    all: Option<FxHashMap<&'a str, Span>>,
}

struct Lowering<'a> {
    text: &'a str,
    ast: &'a Ast,
    depth: usize,
    module: Module,
    diagnostics: &'a mut Diagnostics,
    /// Decoded shapes by their text: dumps repeat the same few.
    shapes: FxHashMap<&'a str, Shape>,
    /// By index in the tree.
    ids: Vec<ComputationId>,
    /// Index in the tree by name.
    computations: FxHashMap<&'a str, usize>,
    /// The tree ends before the text does: names may be missing without fault.
    truncated: bool,
    /// Computations made for asynchronous operations, with the one that they go before.
    wrapped: Vec<(ComputationId, ComputationId)>,
    style: TextStyle,
    /// Number of constants whose values the text leaves out.
    elided: ElidedConstants,
    /// How many elements single values may still stand for.
    implied_left: usize,
    /// How many bytes values may still take.
    memory_left: u64,
    /// How many parameters of wrapped computations may still be made beyond those that the text shows.
    late_left: usize,
    /// Whether `/*index=5*/` stands before sixth operands; `None` until there is one.
    operand_indices: Option<bool>,
}

/// Lowers a tree. The module is complete only if no error was reported.
pub(crate) fn lower(
    text: &str,
    ast: &Ast,
    options: &ParseOptions,
    truncated: bool,
    diagnostics: &mut Diagnostics,
) -> Option<Module> {
    let name = ast.header.as_ref().map_or("_", |h| text[h.name.range()].trim_start_matches('%'));
    let mut module = Module::new(name);
    header::header(text, ast, options.nesting_limit, &mut module, diagnostics);
    if let Some(span) = ast.tables {
        let tables = keep(header::tables(text, span, options.nesting_limit), diagnostics);
        module.stack_tables = tables.unwrap_or_default();
    }
    let style = TextStyle {
        // A single instruction is given a module, whose name only a header can tell.
        header: ast.header.is_some() || ast.single,
        percent: false,
        operand_shapes: false,
        operand_indices: false,
        program_shape: false,
        layouts: true,
        name_after_brace: false,
        compact_gte: false,
        async_sugar: true,
        final_blank_line: text.ends_with("\n\n"),
    };
    module.reserve(ast.instructions.len());
    let mut lowering = Lowering {
        text,
        ast,
        depth: options.nesting_limit,
        module,
        diagnostics,
        shapes: FxHashMap::default(),
        ids: Vec::with_capacity(ast.computations.len()),
        computations: FxHashMap::default(),
        truncated,
        wrapped: Vec::new(),
        style,
        elided: ElidedConstants::default(),
        implied_left: crate::literal::MAX_IMPLIED,
        memory_left: options.memory_bytes,
        late_left: text.len(),
        operand_indices: None,
    };
    lowering.declare_computations();
    let entry = lowering.find_entry();
    for index in lowering.callees_first() {
        lowering.computation(index);
    }
    let Some(entry) = entry else {
        if !truncated {
            let span = Span::new(0, text.len().min(1));
            let message = "the text holds no computation";
            lowering
                .diagnostics
                .push(Diagnostic::error(codes::EMPTY_TEXT, span, message).label("nothing here"));
        }
        return None;
    };
    if let Some(d) = lowering.elided.warning() {
        lowering.report(d);
    }
    lowering.module.set_entry(lowering.ids[entry]);
    lowering.move_wrapped_before_users();
    let mut module = lowering.module;
    hlo::rng_ordinal::assign(&mut module);
    module.text_style = lowering.style;
    module.text_style.operand_indices = lowering.operand_indices.unwrap_or(lowering.style.percent);
    if ast.header.is_none() && !ast.single {
        module.name = format!("module_{}", module.computation(module.entry()).name).into();
    }
    Some(module)
}

impl<'a> Lowering<'a> {
    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.range()]
    }

    fn cursor(&self, span: Span) -> Cursor<'a> {
        let mut c = Cursor::new(self.text, span, self.depth);
        c.memory_left = self.memory_left;
        c
    }

    fn keep<T>(&mut self, result: Res<T>) -> Option<T> {
        keep(result, self.diagnostics)
    }

    /// So many errors were found that a further one is only counted. Checked before costly work for its text,
    /// so that a text full of errors takes no more than linear time.
    fn enough(&mut self) -> bool {
        let enough = self.diagnostics.error_count() >= Diagnostics::LIMIT;
        if enough {
            self.report(Diagnostic::error(codes::UNEXPECTED_TOKEN, Span::NONE, String::new()));
        }
        enough
    }

    /// Whether there are so few errors yet that similar names may be searched for.
    fn may_suggest(&self) -> bool {
        self.diagnostics.error_count() < 100
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// The shape that stands at `span`.
    fn shape(&mut self, span: Span) -> Option<Shape> {
        let text = self.slice(span);
        if let Some(shape) = self.shapes.get(text) {
            return Some(shape.clone());
        }
        let mut c = self.cursor(span);
        let result = crate::shape::shape(&mut c).and_then(|s| c.finish().map(|()| s));
        let shape = self.keep(result)?;
        self.shapes.insert(text, shape.clone());
        Some(shape)
    }

    /// Assigns each computation an id and a name.
    fn declare_computations(&mut self) {
        let ast = self.ast;
        for (index, c) in ast.computations.iter().enumerate() {
            if c.name.is_none() {
                continue;
            }
            let name = self.slice(c.name).trim_start_matches('%');
            if let Some(&first) = self.computations.get(name) {
                let message = format!("there are two computations `{name}`");
                let d = Diagnostic::error(codes::DUPLICATE_COMPUTATION, c.name, message).label("again");
                self.report(d.related(ast.computations[first].name, "the first one"));
            } else {
                self.computations.insert(name, index);
            }
        }
        let mut made: FxHashMap<String, ()> = FxHashMap::default();
        let mut count = 0;
        for c in &ast.computations {
            let (name, span): (hlo::Name, Span) = if c.name.is_none() {
                // A computation without a name: one that no other has, taken or not yet.
                let name = loop {
                    let name = if ast.single && count == 0 { "main".into() } else { format!("_.{count}") };
                    count += 1;
                    if !self.computations.contains_key(name.as_str())
                        && made.insert(name.clone(), ()).is_none()
                    {
                        break name;
                    }
                };
                (name.into(), Span { start: c.body.start, end: c.body.start + 1 })
            } else {
                let name = self.slice(c.name);
                (name.trim_start_matches('%').into(), c.name)
            };
            let id = self.module.add_computation(name, span);
            self.ids.push(id);
        }
    }

    /// The index of the entry computation.
    fn find_entry(&mut self) -> Option<usize> {
        let ast = self.ast;
        let mut marked = ast.computations.iter().enumerate().filter_map(|(i, c)| Some((i, c.entry?)));
        let first = marked.next();
        for (_, span) in marked {
            let d = Diagnostic::error(codes::SEVERAL_ENTRIES, span, "a second ENTRY").label("again");
            let first = first.expect("invariant: a second one follows a first").1;
            self.diagnostics.push(d.related(first, "the first one"));
        }
        // Computations inside attributes end before what they are inside of: the last one has a name.
        first.map(|f| f.0).or_else(|| ast.computations.len().checked_sub(1))
    }

    fn computation(&mut self, index: usize) {
        let ast = self.ast;
        let c = &ast.computations[index];
        let id = self.ids[index];
        self.computation_attributes(c, id);
        let instructions = range(&c.instructions);
        let mut scope = Scope {
            computation: id,
            index,
            names: FxHashMap::with_capacity_and_hasher(instructions.len(), rustc_hash::FxBuildHasher),
            elements: FxHashMap::default(),
            lowered: Vec::with_capacity(instructions.len()),
            parameter_numbers: FxHashSet::default(),
            root: None,
            broken_root: false,
            all: None,
        };
        let mut last = None;
        for i in &ast.instructions[instructions.clone()] {
            let lowered = self.instruction(&mut scope, i);
            scope.lowered.push(lowered);
            if let (false, Some(id)) = (i.broken, lowered) {
                last = Some(id);
            }
        }
        if let Some(i) = ast.instructions[instructions.clone()].first().filter(|i| !i.name.is_none()) {
            self.style.percent |= i.name.start > 0 && self.text.as_bytes()[i.name.start as usize - 1] == b'%';
        }
        if instructions.is_empty() {
            let span = if c.name.is_none() { c.body } else { c.name };
            let message = "computation without instructions";
            self.report(Diagnostic::error(codes::EMPTY_COMPUTATION, span, message).label("has no result"));
            return;
        }
        let root = scope.root.map(|r| r.0).or(if scope.broken_root { None } else { last });
        if let Some(root) = root {
            self.module.set_root(id, root);
        }
        if let Some(s) = &c.signature {
            self.signature(c, s, id, root);
        }
        if !c.name.is_none() {
            let comment = self.text[c.body.end as usize..].strip_prefix(" // ");
            let name = self.slice(c.name).trim_start_matches('%');
            self.style.name_after_brace |= comment.is_some_and(|t| t.starts_with(name));
        }
    }

    fn computation_attributes(&mut self, c: &Computation, id: ComputationId) {
        let ast = self.ast;
        let mut first: Option<Span> = None;
        for a in &ast.attributes[range(&c.attributes)] {
            let key = self.slice(a.key);
            if key != "execution_thread" {
                let message = format!("computations take no attribute `{key}`");
                let d = Diagnostic::error(codes::UNKNOWN_ATTRIBUTE, a.key, message);
                self.report(d.label("expected `execution_thread`"));
            } else if let Some(first) = first.replace(a.key) {
                let d =
                    Diagnostic::error(codes::DUPLICATE_ATTRIBUTE, a.key, "`execution_thread` is given twice");
                self.report(d.label("again").related(first, "first given here"));
            } else if let crate::ast::AttributeValue::Raw(value) = a.value {
                let mut c = self.cursor(value);
                let result = c.string(codes::BAD_STRING).and_then(|s| c.finish().map(|()| s));
                if let Some(thread) = self.keep(result) {
                    self.module.computation_mut(id).execution_thread = Some(thread.into());
                }
            }
        }
    }

    /// Reads the signature, which must give the root's shape.
    fn signature(
        &mut self,
        c: &Computation,
        s: &crate::ast::Signature,
        id: ComputationId,
        root: Option<InstrId>,
    ) {
        let ast = self.ast;
        self.style.program_shape = true;
        let mut parameters = Vec::with_capacity(s.parameters.len());
        for &(name, shape) in &ast.parameters[range(&s.parameters)] {
            if let Some(shape) = self.shape(shape) {
                parameters.push((self.slice(name).into(), shape));
            }
        }
        let Some(result) = self.shape(s.result) else { return };
        if let Some(root) = root {
            let actual = &self.module.instr(root).shape;
            if !actual.compatible(&result) {
                let name = self.slice(c.name);
                let message = format!(
                    "the signature of {} says {}, its root is {}",
                    quote(name),
                    show(&result),
                    show(actual)
                );
                let span = self.module.instr(root).span;
                let d = Diagnostic::error(codes::SIGNATURE_MISMATCH, s.result, message)
                    .label("not the root's shape");
                self.report(d.related(span, "the root"));
            }
        }
        self.module.computation_mut(id).declared = Some(DeclaredSignature { parameters, result }.into());
    }

    /// Moves the computations made for asynchronous operations to before those that use them.
    fn move_wrapped_before_users(&mut self) {
        if self.wrapped.is_empty() {
            return;
        }
        let mut before: FxHashMap<ComputationId, Vec<ComputationId>> = FxHashMap::default();
        let mut moved: FxHashSet<ComputationId> = FxHashSet::default();
        for &(wrapped, user) in &self.wrapped {
            before.entry(user).or_default().push(wrapped);
            moved.insert(wrapped);
        }
        let mut order = Vec::with_capacity(self.module.computations().len());
        for &c in self.module.computations() {
            if !moved.contains(&c) {
                order.extend(before.get(&c).into_iter().flatten());
                order.push(c);
            }
        }
        self.module.set_computation_order(order);
    }

    /// The instruction that an operand inside another's parentheses was lowered to.
    fn nested(&self, scope: &Scope<'a>, what: OperandKind) -> Option<InstrId> {
        let OperandKind::Nested(i) = what else { return None };
        let first = self.ast.computations[scope.index].instructions.start;
        scope.lowered.get((i - first) as usize).copied().flatten()
    }
}
