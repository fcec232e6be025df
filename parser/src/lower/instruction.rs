//! One instruction.

use hlo::diag::codes::parse as codes;
use hlo::diag::{Diagnostic, suggest::did_you_mean};
use hlo::{
    AttrKey, AttrValue, Attrs, ConstantValue, InstrId, MAX_PARAMETERS, NewInstruction, Opcode, Shape, Span,
};
use smallvec::SmallVec;

use super::attributes::Lowered;
use super::{Binding, Lowering, OPCODES, Scope, tuple_select};
use crate::ast::{Instruction, Operand, OperandKind, range};
use crate::cursor::{quote, show};

/// What an opcode's text names.
#[derive(Clone, Copy)]
pub(super) enum Spelled {
    Plain(Opcode),
    /// `-start`, `-update` or `-done` after the opcode that runs.
    Asynchronous {
        step: Opcode,
        wrapped: Opcode,
    },
    /// `tuple-select`, which XLA had until 2022.
    TupleSelect,
}

/// What other dialects and libraries call operations.
const ALIASES: [(&str, &str); 27] = [
    ("neg", "negate"),
    ("mul", "multiply"),
    ("sub", "subtract"),
    ("div", "divide"),
    ("rem", "remainder"),
    ("mod", "remainder"),
    ("pow", "power"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("exp", "exponential"),
    ("expm1", "exponential-minus-one"),
    ("exponential_minus_one", "exponential-minus-one"),
    ("log1p", "log-plus-one"),
    ("log_plus_one", "log-plus-one"),
    ("sin", "sine"),
    ("cos", "cosine"),
    ("sigmoid", "logistic"),
    ("conv", "convolution"),
    ("matmul", "dot"),
    ("dot_general", "dot"),
    ("gte", "get-tuple-element"),
    ("get_tuple_element", "get-tuple-element"),
    ("broadcast_in_dim", "broadcast"),
    ("dynamic_slice", "dynamic-slice"),
    ("dynamic_update_slice", "dynamic-update-slice"),
    ("reduce_window", "reduce-window"),
    ("custom_call", "custom-call"),
];

/// The maximum number of nodes of a tuple's shape that was left out. Inferred shapes share their parts, so
/// that a few lines could make one that is too large to walk through.
const MAX_INFERRED: usize = 1 << 14;

impl<'a> Lowering<'a> {
    /// Lowers an instruction, and binds its name in any case.
    pub(super) fn instruction(&mut self, scope: &mut Scope<'a>, i: &Instruction) -> Option<InstrId> {
        let id = if i.broken { None } else { self.instruction_itself(scope, i) };
        if !i.name.is_none() {
            let name = self.slice(i.name);
            if let Some(first) = scope.names.get(name) {
                let message = format!("there are two instructions {} in this computation", quote(name));
                let d = Diagnostic::error(codes::DUPLICATE_INSTRUCTION, i.name, message).label("again");
                let first = first.span;
                self.report(d.related(first, "the first one"));
            } else {
                scope.names.insert(name, Binding { id, span: i.name });
            }
        }
        if i.root {
            if let Some((_, first)) = scope.root {
                let d = Diagnostic::error(codes::SEVERAL_ROOTS, i.name, "a second ROOT").label("again");
                self.report(d.related(first, "the first one"));
            }
            match id {
                Some(id) => scope.root = Some((id, i.name)),
                None => scope.broken_root = true,
            }
        }
        id
    }

    fn instruction_itself(&mut self, scope: &mut Scope<'a>, i: &Instruction) -> Option<InstrId> {
        let spelled = self.opcode(i.opcode);
        let shape = if i.shape.is_none() { None } else { Some(self.shape(i.shape)?) };
        let spelled = spelled?;
        let opcode = match spelled {
            Spelled::Plain(op) => {
                if op == Opcode::AsyncStart {
                    self.style.async_sugar = false;
                }
                op
            }
            Spelled::Asynchronous { step, wrapped } => {
                return self.asynchronous(scope, i, shape, step, wrapped);
            }
            Spelled::TupleSelect => return self.tuple_select(scope, i, shape),
        };
        // Everything of an instruction is looked at, so that all its errors show at once.
        let mut lowered = self.attributes(scope, opcode, &[], &i.attributes);
        let mut operands = Some(SmallVec::new());
        let mut complete = true;
        match opcode {
            Opcode::Parameter => match self.parameter_number(scope, i) {
                Some(n) => lowered.attrs.set(AttrKey::ParameterNumber, AttrValue::Int(n)),
                None => complete = false,
            },
            Opcode::Constant if i.literal.is_some() => {}
            _ => operands = self.operands(scope, i),
        }
        complete &= self.check_required(opcode, &lowered.attrs, &i.attributes, i.opcode);
        if opcode == Opcode::Constant {
            let value = self.constant(i, shape.as_ref());
            match value {
                Some(v) => lowered.attrs.set(AttrKey::ConstantValue, AttrValue::Literal(v)),
                None => complete = false,
            }
        }
        let operands = operands?;
        if !complete || !lowered.complete {
            return None;
        }
        let shape = match shape {
            Some(s) => s,
            None => self.inferred(i, opcode, &operands, &lowered.attrs)?,
        };
        if matches!(opcode, Opcode::AsyncUpdate | Opcode::AsyncDone) {
            self.check_inherited(i, &operands, &lowered.attrs)?;
        }
        Some(self.append(scope, i, opcode, shape, operands, lowered))
    }

    pub(super) fn append(
        &mut self,
        scope: &Scope<'a>,
        i: &Instruction,
        opcode: Opcode,
        shape: Shape,
        operands: SmallVec<[InstrId; 2]>,
        lowered: Lowered,
    ) -> InstrId {
        let name = if i.name.is_none() {
            let base =
                if self.ast.single && i.root { opcode.name().to_owned() } else { format!("{opcode}.anon") };
            self.module.unique_name(&base)
        } else {
            self.slice(i.name).into()
        };
        let new = NewInstruction { opcode, shape, name, operands, attrs: lowered.attrs, span: i.span };
        let id = self.module.append(scope.computation, new);
        if !lowered.control_predecessors.is_empty() {
            self.module.instr_mut(id).control_predecessors = lowered.control_predecessors;
        }
        id
    }

    fn opcode(&mut self, span: Span) -> Option<Spelled> {
        let text = self.slice(span);
        if let Some(&op) = OPCODES.get(text) {
            return Some(Spelled::Plain(op));
        }
        if text == tuple_select::NAME {
            return Some(Spelled::TupleSelect);
        }
        const STEPS: [(&str, Opcode); 3] =
            [("-start", Opcode::AsyncStart), ("-update", Opcode::AsyncUpdate), ("-done", Opcode::AsyncDone)];
        for (suffix, step) in STEPS {
            let Some(&wrapped) = text.strip_suffix(suffix).and_then(|t| OPCODES.get(t)) else { continue };
            let own = matches!(
                wrapped,
                Opcode::AllGather
                    | Opcode::AllReduce
                    | Opcode::CollectivePermute
                    | Opcode::Copy
                    | Opcode::Recv
                    | Opcode::Send
                    | Opcode::AsyncStart
                    | Opcode::AsyncUpdate
                    | Opcode::AsyncDone
            );
            if own {
                let message = format!("{wrapped} cannot be wrapped by `{suffix}`");
                let d = Diagnostic::error(codes::BAD_ASYNC, span, message);
                self.report(d.label("it has asynchronous forms of its own"));
                return None;
            }
            self.style.async_sugar = true;
            return Some(Spelled::Asynchronous { step, wrapped });
        }
        if self.enough() {
            return None;
        }
        let last = text.rsplit('.').next().unwrap_or(text);
        let alias = ALIASES.iter().find(|a| a.0 == last).map(|a| a.1);
        let near = alias
            .or_else(|| OPCODES.get(last).map(|o| o.name()))
            .or_else(|| did_you_mean(text, Opcode::ALL.iter().map(|o| o.name())));
        let label =
            near.map_or_else(|| "no operation has this name".to_owned(), |n| format!("did you mean `{n}`?"));
        self.report(
            Diagnostic::error(codes::UNKNOWN_OPCODE, span, format!("unknown opcode {}", quote(text)))
                .label(label),
        );
        None
    }

    fn parameter_number(&mut self, scope: &mut Scope<'a>, i: &Instruction) -> Option<i64> {
        let ast = self.ast;
        let operands = &ast.operands[range(&i.operands)];
        let &[Operand { shape: Span::NONE, what: OperandKind::Number(span) }] = operands else {
            let span = operands.first().map_or(i.opcode, |o| self.operand_span(o));
            let message = "`parameter` takes its number in the parentheses";
            self.report(
                Diagnostic::error(codes::BAD_PARAMETER_NUMBER, span, message).label("expected a number"),
            );
            return None;
        };
        let mut c = self.cursor(span);
        let result = c.int_or(codes::BAD_PARAMETER_NUMBER).and_then(|n| c.finish().map(|()| n));
        let n = self.keep(result)?;
        // Numbers are 0, 1, 2, ...: none is as large as the number of instructions.
        let most = ast.computations[scope.index].instructions.len().min(MAX_PARAMETERS);
        if usize::try_from(n).map_or(true, |n| n >= most) {
            let message = format!("parameter number {n} in a computation of {most} instructions");
            let d = Diagnostic::error(codes::BAD_PARAMETER_NUMBER, span, message);
            self.report(d.label(format!("expected 0 to {}", most.saturating_sub(1))));
            return None;
        }
        if !scope.parameter_numbers.insert(n) {
            let message = format!("the computation has two parameters {n}");
            let first =
                self.module.computation(scope.computation).parameters().get(n as usize).copied().flatten();
            let mut d = Diagnostic::error(codes::BAD_PARAMETER_NUMBER, span, message).label("again");
            if let Some(first) = first {
                d = d.related(self.module.instr(first).span, "the first one");
            }
            self.report(d);
            return None;
        }
        Some(n)
    }

    fn constant(&mut self, i: &Instruction, shape: Option<&Shape>) -> Option<ConstantValue> {
        let span = i.literal?;
        let Some(shape) = shape else {
            let message = "the shape of a constant cannot be inferred";
            let d = Diagnostic::error(codes::MISSING_SHAPE, i.opcode, message);
            self.report(d.label("write the shape before the opcode"));
            return None;
        };
        let mut c = self.cursor(span);
        c.implied_left = self.implied_left;
        let result = crate::literal::literal(&mut c, shape).and_then(|v| c.finish().map(|()| v));
        self.implied_left = c.implied_left;
        self.memory_left = c.memory_left;
        let value = self.keep(result)?;
        if let Some(span) = c.implied_zeros {
            let message = format!("one value for the elements of {}", show(shape));
            let d = Diagnostic::warning(codes::IMPLIED_ZEROS, span, message)
                .label("the first element; the others are 0");
            self.report(d);
        }
        if value == ConstantValue::Elided {
            if !self.elided.count() {
                return Some(value);
            }
            let name = if i.name.is_none() { "constant" } else { self.slice(i.name) };
            let message = format!("the text leaves out the value of {}", quote(name));
            let d = Diagnostic::warning(codes::ELIDED_CONSTANT, span, message).label("made up from the name");
            self.report(d);
        }
        Some(value)
    }

    /// The operands; `None` if one is not there, which was reported.
    pub(super) fn operands(
        &mut self,
        scope: &mut Scope<'a>,
        i: &Instruction,
    ) -> Option<SmallVec<[InstrId; 2]>> {
        let ast = self.ast;
        let mut out = SmallVec::new();
        let mut complete = true;
        if let (None, Some(sixth)) = (self.operand_indices, ast.operands[range(&i.operands)].get(5)) {
            let start = self.operand_span(sixth).start.min(sixth.shape.start) as usize;
            self.operand_indices = Some(self.text[..start].trim_end().ends_with("*/"));
        }
        for o in &ast.operands[range(&i.operands)] {
            match self.operand(scope, o) {
                Some(id) => out.push(id),
                None => complete = false,
            }
        }
        complete.then_some(out)
    }

    fn operand_span(&self, o: &Operand) -> Span {
        match o.what {
            OperandKind::Name(span) | OperandKind::Number(span) => span,
            OperandKind::Nested(i) => self.ast.instructions[i as usize].span,
            OperandKind::ShapeOnly => o.shape,
        }
    }

    fn operand(&mut self, scope: &mut Scope<'a>, o: &Operand) -> Option<InstrId> {
        let shape = if o.shape.is_none() {
            None
        } else {
            self.style.operand_shapes = true;
            Some(self.shape(o.shape)?)
        };
        let id = match o.what {
            OperandKind::Nested(_) => return self.nested(scope, o.what),
            OperandKind::Number(span) => {
                let message = format!("{} is not an operand", quote(self.slice(span)));
                let d = Diagnostic::error(codes::BAD_OPERAND, span, message);
                self.report(d.label("expected the name of an instruction"));
                return None;
            }
            OperandKind::ShapeOnly => {
                if self.manufactures(scope) {
                    let shape = shape?;
                    return Some(self.manufacture(scope, None, shape, o.shape));
                }
                let d = Diagnostic::error(
                    codes::BAD_OPERAND,
                    o.shape,
                    "a shape without a name is not an operand",
                );
                self.report(d.label("expected a name after it"));
                return None;
            }
            OperandKind::Name(span) => self.named_operand(scope, span, shape.as_ref(), o)?,
        };
        if let Some(written) = shape {
            let actual = &self.module.instr(id).shape;
            if !actual.compatible(&written) {
                let message = format!("the operand is {}, not {}", show(actual), show(&written));
                let d = Diagnostic::error(codes::OPERAND_SHAPE_MISMATCH, o.shape, message);
                let defined = self.module.instr(id).span;
                self.report(d.label("not the operand's shape").related(defined, "defined here"));
                return None;
            }
        }
        Some(id)
    }

    fn named_operand(
        &mut self,
        scope: &mut Scope<'a>,
        span: Span,
        shape: Option<&Shape>,
        o: &Operand,
    ) -> Option<InstrId> {
        let text = self.slice(span);
        let text = text.strip_prefix('%').unwrap_or(text);
        let (name, path) = match text.split_once('#') {
            Some((name, path)) => (name, Some(path)),
            None => (text, None),
        };
        if let Some(Binding { id, .. }) = scope.names.get(name) {
            let id = (*id)?;
            return match path {
                None => Some(id),
                Some(path) => self.elements(scope, id, path, span),
            };
        }
        if self.manufactures(scope) {
            let Some(shape) = shape else {
                let message = format!("the shape of the operand {} is not known", quote(name));
                let d = Diagnostic::error(codes::MISSING_SHAPE, span, message);
                self.report(d.label("write the shape before it: the text is a single instruction"));
                return None;
            };
            if path.is_none() {
                return Some(self.manufacture(scope, Some(name), shape.clone(), o.shape.to(span)));
            }
        }
        self.find(scope, name, span)
    }

    /// The element of a tuple that `#1#0` names. XLA names the instruction like the text, with `_` for `#`.
    fn elements(&mut self, scope: &mut Scope<'a>, id: InstrId, path: &str, span: Span) -> Option<InstrId> {
        self.style.compact_gte = true;
        let mut id = id;
        for part in path.split('#') {
            let index: i64 = part.parse().unwrap_or(i64::MAX);
            let of = self.module.instr(id);
            let element = of.shape.as_tuple().and_then(|t| t.get(usize::try_from(index).ok()?)).cloned();
            let Some(shape) = element else {
                let message =
                    format!("{} is {}, which has no element {part}", quote(&of.name), show(&of.shape));
                let defined = of.span;
                let d = Diagnostic::error(codes::BAD_TUPLE_INDEX, span, message).label("no such element");
                self.report(d.related(defined, "defined here"));
                return None;
            };
            id = match scope.elements.get(&(id, index)) {
                Some(&e) => e,
                None => {
                    let base = format!("{}_{index}", of.name);
                    let name = self.module.unique_name(&base);
                    let mut new = NewInstruction::new(Opcode::GetTupleElement, shape, &[id]).named(name);
                    new.attrs.set(AttrKey::Index, AttrValue::Int(index));
                    new.span = span;
                    let e = self.module.append(scope.computation, new);
                    scope.elements.insert((id, index), e);
                    e
                }
            };
        }
        Some(id)
    }

    /// Whether operands that do not exist become parameters: in a text that is one instruction, not in the
    /// computations of its attributes.
    fn manufactures(&self, scope: &Scope<'a>) -> bool {
        self.ast.single && scope.index + 1 == self.ast.computations.len()
    }

    /// A parameter for an operand of a text that is a single instruction.
    fn manufacture(
        &mut self,
        scope: &mut Scope<'a>,
        name: Option<&'a str>,
        shape: Shape,
        span: Span,
    ) -> InstrId {
        let n = self.module.computation(scope.computation).parameters().len() as i64;
        let mut new = NewInstruction::new(Opcode::Parameter, shape, &[]);
        new.name = match name {
            Some(name) => name.into(),
            None => self.module.unique_name(&format!("_{n}")),
        };
        new.attrs.set(AttrKey::ParameterNumber, AttrValue::Int(n));
        new.span = span;
        let id = self.module.append(scope.computation, new);
        if let Some(name) = name {
            scope.names.insert(name, Binding { id: Some(id), span });
        }
        id
    }

    /// The instruction of a name, which may be broken; reports one that does not exist.
    pub(super) fn find(&mut self, scope: &mut Scope<'a>, name: &str, span: Span) -> Option<InstrId> {
        if let Some(binding) = scope.names.get(name) {
            return binding.id;
        }
        if self.enough() {
            return None;
        }
        let ast = self.ast;
        let text = self.text;
        let instructions = &ast.instructions[range(&ast.computations[scope.index].instructions)];
        let names =
            || instructions.iter().filter(|i| !i.name.is_none()).map(|i| (&text[i.name.range()], i.name));
        let all = scope.all.get_or_insert_with(|| names().collect());
        if let Some(&later) = all.get(name) {
            let message = format!("{} is used before it is defined", quote(name));
            let d = Diagnostic::error(codes::USE_BEFORE_DEFINITION, span, message).label("used here");
            self.report(d.related(later, "defined here"));
            return None;
        }
        let message = format!("there is no instruction {} in this computation", quote(name));
        let near =
            if self.may_suggest() { did_you_mean(name, names().take(2000).map(|n| n.0)) } else { None };
        let label = near.map_or_else(|| "not defined".to_owned(), |n| format!("did you mean `{n}`?"));
        self.report(Diagnostic::error(codes::UNKNOWN_INSTRUCTION, span, message).label(label));
        None
    }

    fn inferred(
        &mut self,
        i: &Instruction,
        opcode: Opcode,
        operands: &[InstrId],
        attrs: &Attrs,
    ) -> Option<Shape> {
        let shapes: SmallVec<[&Shape; 4]> = operands.iter().map(|&o| &self.module.instr(o).shape).collect();
        if opcode == Opcode::Tuple && !self.bounded(&shapes) {
            let message = "the left-out shape of this tuple is too large or too deep";
            let d = Diagnostic::error(hlo::diag::codes::OUT_OF_MEMORY, i.opcode, message);
            drop(shapes);
            self.report(d.label("write the shape before the opcode"));
            return None;
        }
        let e = match hlo::infer::infer(&self.module, opcode, &shapes, attrs) {
            Ok(shape) => return Some(shape),
            Err(e) => e,
        };
        let d = if e.code == hlo::diag::codes::SHAPE_REQUIRED {
            let message = format!("the shape of {opcode} cannot be inferred");
            Diagnostic::error(codes::MISSING_SHAPE, i.opcode, message)
                .label("write the shape before the opcode")
        } else {
            let why = e.code.as_str();
            let d = e.diagnostic(&self.module, operands, i.opcode);
            Diagnostic { code: codes::CANNOT_INFER_SHAPE, ..d }
                .note(format!("the rule that is broken: {why}"))
        };
        drop(shapes);
        self.report(d);
        None
    }

    /// Whether a tuple of these has a shape that may be walked through, also recursively.
    fn bounded(&self, elements: &[&Shape]) -> bool {
        let mut open: Vec<(&Shape, usize)> = elements.iter().map(|&s| (s, 1)).collect();
        let mut seen = 0;
        while let Some((shape, depth)) = open.pop() {
            seen += 1;
            if seen > MAX_INFERRED || depth >= self.depth {
                return false;
            }
            if let Shape::Tuple(t) = shape {
                open.extend(t.iter().take(MAX_INFERRED).map(|s| (s, depth + 1)));
            }
        }
        true
    }
}
