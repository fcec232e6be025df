//! Operations: the generic form, regions and blocks.
//!
//! **Invariant:** nothing here recurses on the nesting of regions. An operation whose region is being read is
//! a [`Frame`]; what is left of it to read when the region ends is in the frame's [`Rest`].

use hlo::Span;
use hlo::diag::Diagnostic;
use hlo::diag::codes::{self, mlir};
use rustc_hash::FxHashMap;

use super::cursor::{Parse, Parser, Waiting};
use super::scope::{Binding, Scope};
use super::token::Tok;
use crate::ir::{BlockId, LocId, NameId, NamedAttribute, NewOperation, OpId, RegionId, TypeId, ValueId};

/// Bytes of an operation with its results, in the tree.
const OPERATION_BYTES: u64 = 400;
/// Bytes of a value.
const VALUE_BYTES: u64 = 64;

/// An operand as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) name: NameId,
    pub(super) index: u32,
    pub(super) span: Span,
}

/// `%a, %b:2 =` before an operation.
pub(super) type Results = Vec<(NameId, u32, Span)>;

/// An argument of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    pub(super) name: NameId,
    pub(super) ty: TypeId,
    pub(super) loc: LocId,
    pub(super) span: Span,
}

/// What is left to read of an operation after a region.
pub(super) enum Rest {
    /// `, {region}...) {attributes} : type`
    Generic { results: Results, operands: Vec<Operand> },
    /// `do {region}`, then the location
    WhileCondition { results: Results, arguments: Vec<Argument>, types: Vec<TypeId> },
    /// The location, after results of these types.
    End { results: Results, types: Vec<TypeId> },
    /// `: type`, after `chlo.scan`.
    Scan { results: Results, operands: Vec<Operand>, inputs: usize },
    /// `: type`, after `sdy.manual_computation` and the like.
    FunctionType { results: Results, operands: Vec<Operand> },
    /// The implicit module around everything.
    Text,
}

/// An operation whose region is being read.
pub(super) struct Frame {
    pub(super) op: OpId,
    pub(super) rest: Rest,
    region: RegionId,
    block: Option<BlockId>,
    labels: FxHashMap<NameId, (BlockId, Option<Span>, Span)>,
    mark: usize,
    /// The names outside of a region that sees none of them.
    outside: Option<Scope>,
    /// Names without a dialect are of this one.
    dialect: &'static str,
    open: Span,
}

/// What reading an operation came to.
pub(super) enum Step {
    /// It is complete.
    Done,
    /// A region begins.
    Region(Box<Frame>),
}

/// How a region begins.
pub(super) struct Start<'a> {
    pub(super) op: OpId,
    pub(super) arguments: &'a [Argument],
    /// It sees no values of outside.
    pub(super) isolated: bool,
    pub(super) dialect: &'static str,
}

impl<'t> Parser<'t> {
    /// Reads operations to the end of the text; the module around them.
    pub(super) fn whole(&mut self) -> Parse<OpId> {
        let name = self.m.name("builtin.module");
        let top = self.m.add_operation(None, NewOperation::new(name, Span::new(self.start, self.text.len())));
        let region = self.m.add_region(top);
        let block = self.m.add_block(region, Span::new(self.start, self.text.len()));
        let mut frames = vec![Box::new(Frame {
            op: top,
            rest: Rest::Text,
            region,
            block: Some(block),
            labels: FxHashMap::default(),
            mark: 0,
            outside: None,
            dialect: "",
            open: self.span(),
        })];
        loop {
            let outermost = frames.len() == 1;
            let Some(frame) = frames.last_mut() else { break };
            let step = match self.tok {
                Tok::RBrace if !outermost => {
                    self.advance();
                    let Some(frame) = frames.pop() else { continue };
                    self.end_region(frame)?
                }
                Tok::End if outermost => break,
                Tok::End => {
                    return self.error_at(
                        codes::parse::UNCLOSED_BRACKET,
                        frame.open,
                        "a region without its closing brace",
                    );
                }
                Tok::Caret => {
                    self.label(frame)?;
                    Step::Done
                }
                Tok::Hash | Tok::Bang if outermost => {
                    self.alias()?;
                    Step::Done
                }
                Tok::MetadataStart if outermost => {
                    self.metadata()?;
                    Step::Done
                }
                _ => {
                    let block = match frame.block {
                        Some(block) => block,
                        None => {
                            let block = self.m.add_block(frame.region, self.span());
                            frame.block = Some(block);
                            block
                        }
                    };
                    let dialect = frame.dialect;
                    self.operation(block, dialect, &frame.labels)?
                }
            };
            if let Step::Region(frame) = step {
                self.take(OPERATION_BYTES)?;
                frames.push(frame);
            }
        }
        self.resolve_locations()?;
        // A text of one module is that module.
        if let [only] = *self.m.body(top)
            && self.m.op_name(only) == "builtin.module"
        {
            self.m.op_mut(only).parent = None;
            return Ok(only);
        }
        Ok(top)
    }

    /// `#name = attribute`, `!name = type`
    fn alias(&mut self) -> Parse<()> {
        let (is_type, name, span) = (self.is(Tok::Bang), &self.token()[1..], self.span());
        self.advance();
        self.expect(Tok::Equal)?;
        let known = if is_type {
            let ty = self.ty()?;
            self.type_aliases.insert(name, ty).is_some()
        } else {
            let attribute = self.attribute()?;
            self.attribute_aliases.insert(name, attribute).is_some()
        };
        if known {
            return self.error_at(
                mlir::MLIR_UNDEFINED_ALIAS,
                span,
                format!("alias `{name}` is defined twice"),
            );
        }
        Ok(())
    }

    // ---- regions and blocks

    /// Begins a region at its brace.
    pub(super) fn begin_region(&mut self, start: Start<'_>, rest: Rest) -> Parse<Step> {
        let open = self.span();
        self.expect(Tok::LBrace)?;
        let region = self.m.add_region(start.op);
        let outside = start.isolated.then(|| std::mem::take(&mut self.scope));
        let mark = self.scope.mark();
        let mut frame = Frame {
            op: start.op,
            rest,
            region,
            block: None,
            labels: FxHashMap::default(),
            mark,
            outside,
            dialect: start.dialect,
            open,
        };
        if !start.arguments.is_empty() {
            let block = self.m.add_block(region, open);
            frame.block = Some(block);
            for &argument in start.arguments {
                self.add_argument(block, argument)?;
            }
        }
        Ok(Step::Region(Box::new(frame)))
    }

    fn add_argument(&mut self, block: BlockId, argument: Argument) -> Parse<ValueId> {
        self.take(VALUE_BYTES)?;
        let value = self.m.add_argument(block, argument.ty, argument.loc, argument.span);
        self.bind(argument.name, value, 1, argument.span)?;
        Ok(value)
    }

    fn bind(&mut self, name: NameId, first: ValueId, count: u32, span: Span) -> Parse<()> {
        if let Some(old) = self.scope.bind(name, Binding { first, count, span }) {
            let message = format!("`%{}` is defined twice", self.m.text(name));
            let d = Diagnostic::error(mlir::MLIR_REDEFINED, span, message).related(old.span, "first here");
            return Err(Box::new(d));
        }
        for i in 0..count {
            self.m.value_mut(ValueId::from_index(first.index() + i as usize)).name = Some(name);
        }
        Ok(())
    }

    /// `%name: type loc(...)`, one argument.
    pub(super) fn argument(&mut self) -> Parse<Argument> {
        let span = self.span();
        let name = self.value_name()?;
        self.expect(Tok::Colon)?;
        let ty = self.ty()?;
        Ok(Argument { name, ty, loc: LocId::UNKNOWN, span })
    }

    /// `^name(%a: type, ...):`
    fn label(&mut self, frame: &mut Frame) -> Parse<()> {
        let span = self.span();
        let name = self.m.name(&self.token()[1..]);
        self.advance();
        self.take(OPERATION_BYTES)?;
        let block = match frame.labels.get_mut(&name) {
            Some((_, Some(first), _)) => {
                let message = format!("`^{}` is defined twice", self.m.text(name));
                let d = Diagnostic::error(mlir::MLIR_REDEFINED, span, message).related(*first, "first here");
                return Err(Box::new(d));
            }
            Some((block, defined, _)) => {
                *defined = Some(span);
                *block
            }
            None => {
                let block = self.m.add_block(frame.region, span);
                frame.labels.insert(name, (block, Some(span), span));
                block
            }
        };
        self.m.block_mut(block).label = Some(name);
        frame.block = Some(block);
        if self.is(Tok::LParen) {
            let arguments = self.list(Tok::LParen, Tok::RParen, |p| {
                let argument = p.argument()?;
                // The value exists before its location, which may be defined further down.
                let value = p.add_argument(block, argument)?;
                p.trailing_location(Waiting::Value(value))
            })?;
            drop(arguments);
        }
        self.expect(Tok::Colon)
    }

    /// After the closing brace of a region.
    fn end_region(&mut self, frame: Box<Frame>) -> Parse<Step> {
        let frame = *frame;
        if let Some((name, (_, _, used))) = frame.labels.iter().find(|(_, (_, defined, _))| defined.is_none())
        {
            let message = format!("no block `^{}`", self.m.text(*name));
            return self.error_at(mlir::MLIR_UNDEFINED_VALUE, *used, message);
        }
        self.scope.release(frame.mark);
        if let Some(outside) = frame.outside {
            self.scope = outside;
        }
        let op = frame.op;
        match frame.rest {
            Rest::Generic { results, operands } => {
                if self.eat(Tok::Comma) {
                    let start = Start { op, arguments: &[], isolated: self.isolates(op), dialect: "" };
                    return self.begin_region(start, Rest::Generic { results, operands });
                }
                self.expect(Tok::RParen)?;
                self.generic_end(op, results, operands)
            }
            Rest::WhileCondition { results, arguments, types } => {
                self.expect_word("do")?;
                let start = Start { op, arguments: &arguments, isolated: false, dialect: "" };
                self.begin_region(start, Rest::End { results, types })
            }
            Rest::End { results, types } => self.complete(op, results, types),
            Rest::Scan { results, operands, inputs } => self.scan_end(op, results, operands, inputs),
            Rest::FunctionType { results, operands } => {
                if self.is(Tok::LBrace) {
                    self.m.op_mut(op).attributes = self.dictionary()?.into();
                }
                self.expect(Tok::Colon)?;
                self.typed_end(op, results, operands)
            }
            Rest::Text => Ok(Step::Done),
        }
    }

    /// Whether the regions of an operation see no values of outside.
    fn isolates(&self, op: OpId) -> bool {
        matches!(self.m.op_name(op), "builtin.module" | "func.func")
    }

    // ---- operations

    /// One operation.
    fn operation(
        &mut self,
        block: BlockId,
        dialect: &'static str,
        labels: &FxHashMap<NameId, (BlockId, Option<Span>, Span)>,
    ) -> Parse<Step> {
        let start = self.start;
        let mut results: Results = Vec::new();
        if self.is(Tok::Percent) {
            loop {
                let span = self.span();
                let name = self.value_name()?;
                let count = if self.eat(Tok::Colon) {
                    let at = self.span();
                    match u32::try_from(self.int64()?) {
                        Ok(count @ 1..) => count,
                        _ => {
                            return self.error_at(
                                mlir::MLIR_SYNTAX,
                                at,
                                "a number of results that is not positive",
                            );
                        }
                    }
                } else {
                    1
                };
                results.push((name, count, span));
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
            self.expect(Tok::Equal)?;
        }
        self.take(OPERATION_BYTES)?;
        let span = self.span();
        match self.tok {
            Tok::Str => {
                let name = self.utf8()?;
                let name = self.m.name(&name);
                let op = self.m.add_operation(Some(block), NewOperation::new(name, span));
                self.generic(op, results, labels)
            }
            Tok::Word => {
                let word = self.token();
                self.advance();
                self.custom(block, dialect, word, span, results)
            }
            _ => {
                let _ = start;
                self.expected("an operation")
            }
        }
    }

    /// `(operands) [successors] <{properties}> ({regions}) {attributes} : type`
    fn generic(
        &mut self,
        op: OpId,
        results: Results,
        labels: &FxHashMap<NameId, (BlockId, Option<Span>, Span)>,
    ) -> Parse<Step> {
        let operands = self.list(Tok::LParen, Tok::RParen, Self::operand)?;
        if self.is(Tok::LSquare) {
            let successors = self.list(Tok::LSquare, Tok::RSquare, |p| {
                if !p.is(Tok::Caret) {
                    return p.expected("a block, `^name`");
                }
                let name = p.m.name(&p.token()[1..]);
                match labels.get(&name) {
                    Some((block, ..)) => {
                        p.advance();
                        Ok(*block)
                    }
                    None => {
                        p.error(codes::UNSUPPORTED_STABLEHLO, "branches to blocks that follow are not read")
                    }
                }
            })?;
            self.m.op_mut(op).successors = successors.into();
        }
        if self.eat(Tok::Less) {
            let properties = self.dictionary()?;
            self.expect(Tok::Greater)?;
            self.m.op_mut(op).properties = properties.into();
        }
        if self.is(Tok::LParen) {
            self.advance();
            let start = Start { op, arguments: &[], isolated: self.isolates(op), dialect: "" };
            return self.begin_region(start, Rest::Generic { results, operands });
        }
        self.generic_end(op, results, operands)
    }

    fn generic_end(&mut self, op: OpId, results: Results, operands: Vec<Operand>) -> Parse<Step> {
        let attributes = self.optional_dictionary()?;
        self.m.op_mut(op).attributes = attributes.into();
        self.expect(Tok::Colon)?;
        self.typed_end(op, results, operands)
    }

    /// A function type, which gives operands and results their types, and the location.
    pub(super) fn typed_end(&mut self, op: OpId, results: Results, operands: Vec<Operand>) -> Parse<Step> {
        let span = self.span();
        let ty = self.ty()?;
        let Some((inputs, outputs)) = self.function_parts(ty) else {
            return self.error_at(mlir::MLIR_BAD_TYPE, span, "not a function type, `(operands) -> results`");
        };
        self.resolve_all(op, &operands, &inputs, self.since(span.start as usize))?;
        self.complete(op, results, outputs)
    }

    /// Sets the operands of an operation.
    pub(super) fn resolve_all(
        &mut self,
        op: OpId,
        operands: &[Operand],
        types: &[TypeId],
        type_span: Span,
    ) -> Parse<()> {
        if operands.len() != types.len() {
            let message = format!("{} operands with {} types", operands.len(), types.len());
            return self.error_at(mlir::MLIR_TYPE_MISMATCH, type_span, message);
        }
        self.take(8 * operands.len() as u64)?;
        for (&operand, &ty) in operands.iter().zip(types) {
            let value = self.resolve(operand)?;
            let own = self.m.value_type(value);
            if own != ty {
                let message = format!(
                    "`%{}` has type {}, and is used as {}",
                    self.m.text(operand.name),
                    crate::print::type_text(&self.m, own),
                    crate::print::type_text(&self.m, ty)
                );
                let d = Diagnostic::error(mlir::MLIR_TYPE_MISMATCH, operand.span, message)
                    .related(self.m.value(value).span, "defined here")
                    .related(type_span, "used as this");
                return Err(Box::new(d));
            }
            self.m.op_mut(op).operands.push(value);
        }
        Ok(())
    }

    /// The value that an operand names.
    pub(super) fn resolve(&mut self, operand: Operand) -> Parse<ValueId> {
        let text = self.m.text(operand.name).to_owned();
        let Some(binding) = self.scope.find(operand.name) else {
            let message = format!("`%{text}` is not defined above");
            return self.error_at(mlir::MLIR_UNDEFINED_VALUE, operand.span, message);
        };
        if operand.index >= binding.count {
            let message = format!("`%{text}` has {} results, and no number {}", binding.count, operand.index);
            let d = Diagnostic::error(mlir::MLIR_UNDEFINED_VALUE, operand.span, message)
                .related(binding.span, "defined here");
            return Err(Box::new(d));
        }
        Ok(ValueId::from_index(binding.first.index() + operand.index as usize))
    }

    /// Sets the results of an operation and their names, and reads its location.
    pub(super) fn complete(&mut self, op: OpId, results: Results, types: Vec<TypeId>) -> Parse<Step> {
        self.take(VALUE_BYTES * types.len() as u64)?;
        let named: u64 = results.iter().map(|r| u64::from(r.1)).sum();
        if !results.is_empty() && named != types.len() as u64 {
            let message = format!("{named} names for {} results", types.len());
            let span = results[0].2;
            return self.error_at(mlir::MLIR_TYPE_MISMATCH, span, message);
        }
        let values = self.m.add_results(op, &types);
        self.trailing_location(Waiting::Op(op))?;
        let start = self.m.op(op).span.start as usize;
        let whole = self.since(start);
        if self.m.op(op).regions.is_empty() {
            self.m.op_mut(op).span = whole;
        }
        let mut next = 0usize;
        for (name, count, span) in results {
            let first = ValueId::from_index(values.index() + next);
            next += count as usize;
            for i in 0..count {
                self.m.value_mut(ValueId::from_index(first.index() + i as usize)).span = span;
            }
            self.bind(name, first, count, span)?;
        }
        Ok(Step::Done)
    }

    /// `%name`, the name.
    pub(super) fn value_name(&mut self) -> Parse<NameId> {
        if !self.is(Tok::Percent) {
            return self.expected("a value, `%name`");
        }
        let name = self.m.name(&self.token()[1..]);
        self.advance();
        Ok(name)
    }

    /// `%name`, `%name#1`
    pub(super) fn operand(&mut self) -> Parse<Operand> {
        let start = self.start;
        let name = self.value_name()?;
        let mut index = 0;
        if self.is(Tok::Hash)
            && self.start == self.before
            && self.token()[1..].bytes().all(|b| b.is_ascii_digit())
        {
            match self.token()[1..].parse() {
                Ok(n) => index = n,
                Err(_) => return self.expected("the number of a result"),
            }
            self.advance();
        }
        Ok(Operand { name, index, span: self.since(start) })
    }

    /// Operands separated by commas; none if none is there.
    pub(super) fn operands(&mut self) -> Parse<Vec<Operand>> {
        let mut operands = Vec::new();
        if self.is(Tok::Percent) {
            loop {
                operands.push(self.operand()?);
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
        }
        Ok(operands)
    }

    /// Adds an inherent attribute.
    pub(super) fn set_property(&mut self, op: OpId, name: &str, value: crate::ir::AttrId) {
        let name = self.m.name(name);
        self.m.op_mut(op).properties.push(NamedAttribute { name, value });
    }
}
