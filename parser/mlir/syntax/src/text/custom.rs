//! Operations whose text is their own: functions, modules, constants, loops, reductions, Shardy's.

use hlo::Span;
use hlo::diag::Diagnostic;
use hlo::diag::codes::mlir;

use super::cursor::{Parse, Parser, Waiting};
use super::format;
use super::operation::{Argument, Operand, Rest, Results, Start, Step};
use super::token::Tok;
use crate::ir::{AttrId, Attribute, BlockId, LocId, NamedAttribute, NewOperation, OpId, Type, TypeId};

/// Operations that are commonly written without their dialect.
fn full_name(word: &str, dialect: &str) -> String {
    if word.contains('.') {
        return word.to_owned();
    }
    match word {
        "module" => "builtin.module".to_owned(),
        "unrealized_conversion_cast" => format!("builtin.{word}"),
        "func" => "func.func".to_owned(),
        "return" | "call" | "constant" if !dialect.is_empty() => format!("{dialect}.{word}"),
        _ => word.to_owned(),
    }
}

impl<'t> Parser<'t> {
    /// An operation that is not in quotes.
    pub(super) fn custom(
        &mut self,
        block: BlockId,
        dialect: &'static str,
        word: &str,
        span: Span,
        results: Results,
    ) -> Parse<Step> {
        let name = full_name(word, dialect);
        let id = self.m.name(&name);
        let op = self.m.add_operation(Some(block), NewOperation::new(id, span));
        match name.as_str() {
            "builtin.module" => return self.module(op),
            "func.func" => return self.function(op),
            "stablehlo.constant" | "mhlo.constant" | "chlo.constant" | "arith.constant" => {
                return self.constant(op, results);
            }
            "stablehlo.while" | "mhlo.while" => return self.while_loop(op, results),
            "stablehlo.reduce" | "mhlo.reduce" => return self.reduce(op, results, block),
            "chlo.scan" => return self.scan(op, results),
            "sdy.mesh" => return self.mesh(op),
            "sdy.sharding_constraint" => return self.sharding_constraint(op, results),
            "sdy.manual_computation" => return self.manual_computation(op, results),
            "stablehlo.composite" if self.is(Tok::Str) => {}
            _ => {}
        }
        match format::of(&name) {
            Some(items) => self.pretty(op, items, results),
            None => {
                let mut d = Diagnostic::error(
                    mlir::MLIR_UNKNOWN_OPERATION,
                    span,
                    format!("no pretty form of `{name}` is known"),
                )
                .label("no operation that is written so");
                if name.contains('.') {
                    d = d.note(format!("the generic form is read: `\"{name}\"(operands) : type`"));
                }
                Err(Box::new(d))
            }
        }
    }

    /// `module @name attributes {...} {`
    fn module(&mut self, op: OpId) -> Parse<Step> {
        if self.is(Tok::At) {
            let name = self.symbol()?;
            self.set_string(op, "sym_name", name)?;
        }
        if self.eat_word("attributes") {
            self.m.op_mut(op).attributes = self.dictionary()?.into();
        }
        let start = Start { op, arguments: &[], isolated: true, dialect: "" };
        self.begin_region(start, Rest::End { results: Vec::new(), types: Vec::new() })
    }

    fn set_string(&mut self, op: OpId, key: &str, name: crate::ir::NameId) -> Parse<()> {
        let text = self.m.text(name).into();
        let value = self.intern_attribute(Attribute::String { text, ty: None })?;
        self.set_property(op, key, value);
        Ok(())
    }

    /// `func.func private @name(%a: type {attributes}, ...) -> (type {attributes}) attributes {...} {`
    fn function(&mut self, op: OpId) -> Parse<Step> {
        if let Some(visibility) = ["public", "private", "nested"].into_iter().find(|w| self.is_word(w)) {
            self.advance();
            let name = self.m.name(visibility);
            self.set_string(op, "sym_visibility", name)?;
        }
        let name = self.symbol()?;
        self.set_string(op, "sym_name", name)?;
        let mut arguments: Vec<Argument> = Vec::new();
        let mut argument_attributes: Vec<Vec<NamedAttribute>> = Vec::new();
        let mut types: Vec<TypeId> = Vec::new();
        let mut locations = Vec::new();
        self.list(Tok::LParen, Tok::RParen, |p| {
            if p.is(Tok::Percent) {
                let argument = p.argument()?;
                types.push(argument.ty);
                arguments.push(argument);
            } else {
                // A declaration gives types alone.
                types.push(p.ty()?);
            }
            argument_attributes.push(p.optional_dictionary()?);
            p.skipped_location(arguments.len().saturating_sub(1), &mut locations)
        })?;
        let mut result_types = Vec::new();
        let mut result_attributes: Vec<Vec<NamedAttribute>> = Vec::new();
        if self.eat(Tok::Arrow) {
            if self.is(Tok::LParen) {
                self.list(Tok::LParen, Tok::RParen, |p| {
                    result_types.push(p.ty()?);
                    result_attributes.push(p.optional_dictionary()?);
                    Ok(())
                })?;
            } else {
                result_types.push(self.ty()?);
                result_attributes.push(Vec::new());
            }
        }
        let ty = self.intern(Type::Function { inputs: types.into(), results: result_types.into() })?;
        let ty = self.intern_attribute(Attribute::Type(ty))?;
        self.set_property(op, "function_type", ty);
        for (key, lists) in [("arg_attrs", argument_attributes), ("res_attrs", result_attributes)] {
            if lists.iter().any(|l| !l.is_empty()) {
                let mut parts = Vec::new();
                for mut list in lists {
                    list.sort_by(|a, b| self.m.text(a.name).cmp(self.m.text(b.name)));
                    parts.push(self.intern_attribute(Attribute::Dictionary(list.into()))?);
                }
                let value = self.intern_attribute(Attribute::Array(parts.into()))?;
                self.set_property(op, key, value);
            }
        }
        if self.eat_word("attributes") {
            self.m.op_mut(op).attributes = self.dictionary()?.into();
        }
        if !self.is(Tok::LBrace) {
            return self.complete(op, Vec::new(), Vec::new());
        }
        let start = Start { op, arguments: &arguments, isolated: true, dialect: "func" };
        let step = self.begin_region(start, Rest::End { results: Vec::new(), types: Vec::new() })?;
        self.argument_locations(op, locations)?;
        Ok(step)
    }

    /// Skips the location of argument `index` of a block that is not there yet, and keeps where it is.
    fn skipped_location(&mut self, index: usize, locations: &mut Vec<(usize, usize)>) -> Parse<()> {
        if self.is_word("loc") {
            locations.push((index, self.start));
            self.advance();
            self.raw_brackets()?;
        }
        Ok(())
    }

    /// Reads skipped locations, of arguments of the first block of an operation.
    fn argument_locations(&mut self, op: OpId, locations: Vec<(usize, usize)>) -> Parse<()> {
        let after = self.start;
        let values = match *self.m.op(op).regions {
            [region, ..] => match *self.m.region(region).blocks {
                [block, ..] => self.m.block(block).arguments.clone(),
                [] => Vec::new(),
            },
            [] => Vec::new(),
        };
        for (index, at) in locations {
            if let Some(&value) = values.get(index) {
                self.jump(at);
                self.trailing_location(Waiting::Value(value))?;
            }
        }
        self.jump(after);
        Ok(())
    }

    /// `{attributes} dense<...> : type`
    fn constant(&mut self, op: OpId, results: Results) -> Parse<Step> {
        // The older form has parentheses and a function type.
        if self.is(Tok::LParen) {
            self.advance();
            self.expect(Tok::RParen)?;
            if self.eat(Tok::Less) {
                self.m.op_mut(op).properties = self.dictionary()?.into();
                self.expect(Tok::Greater)?;
            }
            self.m.op_mut(op).attributes = self.optional_dictionary()?.into();
            self.expect(Tok::Colon)?;
            return self.typed_end(op, results, Vec::new());
        }
        self.m.op_mut(op).attributes = self.optional_dictionary()?.into();
        let span = self.span();
        let value = self.attribute()?;
        self.set_property(op, "value", value);
        let ty = match self.m.get_attribute(value) {
            Attribute::Elements { ty, .. }
            | Attribute::DenseResource { ty, .. }
            | Attribute::Strings { ty, .. }
            | Attribute::Integer { ty, .. }
            | Attribute::Float { ty, .. } => *ty,
            Attribute::Bool(_) => self.int_type(1),
            _ => return self.error_at(mlir::MLIR_BAD_ATTRIBUTE, span, "not the value of a constant"),
        };
        // A quantized constant is followed by its own type.
        let ty = if self.eat(Tok::Colon) { self.ty()? } else { ty };
        self.complete(op, results, vec![ty])
    }

    /// `(%a = %x, ...) : types attributes {...} cond {...} do {...}`
    fn while_loop(&mut self, op: OpId, results: Results) -> Parse<Step> {
        let start = self.start;
        let mut arguments = Vec::new();
        let mut operands: Vec<Operand> = Vec::new();
        let mut names = Vec::new();
        self.list(Tok::LParen, Tok::RParen, |p| {
            let span = p.span();
            let name = p.value_name()?;
            p.expect(Tok::Equal)?;
            operands.push(p.operand()?);
            names.push((name, span));
            Ok(())
        })?;
        let types = if operands.is_empty() {
            Vec::new()
        } else {
            self.expect(Tok::Colon)?;
            self.type_list()?
        };
        self.resolve_all(op, &operands, &types, self.since(start))?;
        for ((name, span), &ty) in names.into_iter().zip(&types) {
            arguments.push(Argument { name, ty, loc: LocId::UNKNOWN, span });
        }
        if self.eat_word("attributes") {
            self.m.op_mut(op).attributes = self.dictionary()?.into();
        }
        self.expect_word("cond")?;
        let begin = Start { op, arguments: &arguments.clone(), isolated: false, dialect: "" };
        self.begin_region(begin, Rest::WhileCondition { results, arguments, types })
    }

    /// `(%x init: %i), ... applies op across dimensions = [0] : type`, or with `reducer(...) {...}`
    fn reduce(&mut self, op: OpId, results: Results, _: BlockId) -> Parse<Step> {
        let mut operands: Vec<Operand> = Vec::new();
        let mut inits: Vec<Operand> = Vec::new();
        loop {
            self.expect(Tok::LParen)?;
            operands.push(self.operand()?);
            self.expect_word("init")?;
            self.expect(Tok::Colon)?;
            inits.push(self.operand()?);
            self.expect(Tok::RParen)?;
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        operands.extend(inits);
        let applies = if self.eat_word("applies") { Some((self.span(), self.word()?)) } else { None };
        self.expect_word("across")?;
        self.expect_word("dimensions")?;
        self.expect(Tok::Equal)?;
        let dimensions = self.ints()?;
        self.set_property(op, "dimensions", dimensions);
        self.m.op_mut(op).attributes = self.optional_dictionary()?.into();
        self.expect(Tok::Colon)?;
        let type_span = self.span();
        let ty = self.ty()?;
        let Some((inputs, outputs)) = self.function_parts(ty) else {
            return self.error_at(
                mlir::MLIR_BAD_TYPE,
                type_span,
                "not a function type, `(operands) -> results`",
            );
        };
        self.resolve_all(op, &operands, &inputs, self.since(type_span.start as usize))?;
        let Some((span, inner)) = applies else {
            self.expect_word("reducer")?;
            let (mut left, mut right) = (Vec::new(), Vec::new());
            let mut locations: Vec<(bool, usize, usize)> = Vec::new();
            while self.eat(Tok::LParen) {
                for side in 0..2 {
                    let argument = self.argument()?;
                    let list = if side == 0 { &mut left } else { &mut right };
                    list.push(argument);
                    if self.is_word("loc") {
                        locations.push((side == 1, list.len() - 1, self.start));
                        self.advance();
                        self.raw_brackets()?;
                    }
                    if side == 0 {
                        self.expect(Tok::Comma)?;
                    }
                }
                self.expect(Tok::RParen)?;
            }
            let pairs = left.len();
            left.extend(right);
            let begin = Start { op, arguments: &left, isolated: false, dialect: "" };
            let step = self.begin_region(begin, Rest::End { results, types: outputs })?;
            let after = self.start;
            let values =
                match self.m.op(op).regions.first().map(|&r| self.m.region(r).blocks.clone()).as_deref() {
                    Some([block, ..]) => self.m.block(*block).arguments.clone(),
                    _ => Vec::new(),
                };
            for (second, index, at) in locations {
                self.jump(at);
                self.trailing_location(Waiting::Value(values[index + if second { pairs } else { 0 }]))?;
            }
            self.jump(after);
            return Ok(step);
        };
        // The short form: a region of one operation on two scalars.
        let scalar = match inputs.first().map(|&t| self.m.get_type(t).clone()) {
            Some(Type::Tensor { element, .. }) => {
                self.intern(Type::Tensor { dims: [].into(), element, encoding: None })?
            }
            _ => return self.error_at(mlir::MLIR_BAD_TYPE, type_span, "a reduction of what is no tensor"),
        };
        let dialect = self.m.op_name(op).split('.').next().unwrap_or("stablehlo").to_owned();
        let inner = if inner.contains('.') { inner.to_owned() } else { format!("{dialect}.{inner}") };
        let region = self.m.add_region(op);
        let block = self.m.add_block(region, span);
        let a = self.m.add_argument(block, scalar, LocId::UNKNOWN, span);
        let b = self.m.add_argument(block, scalar, LocId::UNKNOWN, span);
        let inner = self.m.name(&inner);
        let mut new = NewOperation::new(inner, span);
        new.operands.extend([a, b]);
        new.result_types.push(scalar);
        let applied = self.m.add_operation(Some(block), new);
        let result = self.m.op(applied).results[0];
        let name = self.m.name(&format!("{dialect}.return"));
        let mut new = NewOperation::new(name, span);
        new.operands.push(result);
        self.m.add_operation(Some(block), new);
        self.complete(op, results, outputs)
    }

    /// `chlo.scan(%x) inits(%i) dimension = 0 {...} : type`
    fn scan(&mut self, op: OpId, results: Results) -> Parse<Step> {
        let mut operands = self.list(Tok::LParen, Tok::RParen, Self::operand)?;
        let inputs = operands.len();
        self.expect_word("inits")?;
        operands.extend(self.list(Tok::LParen, Tok::RParen, Self::operand)?);
        self.expect_word("dimension")?;
        self.expect(Tok::Equal)?;
        let dimension = self.int64()?;
        let dimension = self.int_attribute(dimension, 64)?;
        self.set_property(op, "dimension", dimension);
        if self.eat_word("attributes") {
            self.m.op_mut(op).attributes = self.dictionary()?.into();
        }
        let begin = Start { op, arguments: &[], isolated: false, dialect: "" };
        self.begin_region(begin, Rest::Scan { results, operands, inputs })
    }

    pub(super) fn scan_end(
        &mut self,
        op: OpId,
        results: Results,
        operands: Vec<Operand>,
        inputs: usize,
    ) -> Parse<Step> {
        self.expect(Tok::Colon)?;
        let start = self.start;
        let ty = self.ty()?;
        let Some((types, outputs)) = self.function_parts(ty) else {
            return self.error_at(mlir::MLIR_BAD_TYPE, self.since(start), "not a function type");
        };
        let carries = operands.len() - inputs;
        let Some(stacked) = outputs.len().checked_sub(carries) else {
            return self.error_at(
                mlir::MLIR_BAD_TYPE,
                self.since(start),
                "fewer results than carried values",
            );
        };
        for (key, parts) in
            [("operandSegmentSizes", [inputs, carries]), ("resultSegmentSizes", [stacked, carries])]
        {
            let element = self.int_type(32);
            let data = parts.iter().flat_map(|&n| (n as i32).to_le_bytes()).collect();
            let value = self.intern_attribute(Attribute::DenseArray { element, data })?;
            self.set_property(op, key, value);
        }
        self.resolve_all(op, &operands, &types, self.since(start))?;
        self.complete(op, results, outputs)
    }

    // ---- Shardy

    /// An attribute of Shardy as its operations write it, `<...>` or `[...]`, with the name that belongs to
    /// it.
    fn shardy(&mut self, name: &str) -> Parse<AttrId> {
        if self.is(Tok::Hash) {
            return self.attribute();
        }
        if !self.is(Tok::Less) && !self.is(Tok::LSquare) && !self.is(Tok::LBrace) {
            return self.expected("`<`");
        }
        let body = self.raw_brackets()?;
        // As the generic form has it, so that both are one attribute.
        let text = match body.as_bytes()[0] {
            b'<' => format!("sdy.{name}{body}"),
            b'{' => format!("sdy<{name}{body}>"),
            _ => format!("sdy.{name}<{body}>"),
        };
        self.intern_attribute(Attribute::Opaque(text.into()))
    }

    /// `sdy.mesh @mesh = <["x"=2]>`
    fn mesh(&mut self, op: OpId) -> Parse<Step> {
        let name = self.symbol()?;
        self.set_string(op, "sym_name", name)?;
        self.expect(Tok::Equal)?;
        let mesh = self.shardy("mesh")?;
        self.set_property(op, "mesh", mesh);
        self.m.op_mut(op).attributes = self.optional_dictionary()?.into();
        self.complete(op, Vec::new(), Vec::new())
    }

    /// `sdy.sharding_constraint %x <@mesh, [{}]> : type`
    fn sharding_constraint(&mut self, op: OpId, results: Results) -> Parse<Step> {
        let operand = self.operand()?;
        let sharding = self.shardy("sharding")?;
        self.set_property(op, "sharding", sharding);
        self.m.op_mut(op).attributes = self.optional_dictionary()?.into();
        self.expect(Tok::Colon)?;
        let start = self.start;
        let ty = self.ty()?;
        self.resolve_all(op, &[operand], &[ty], self.since(start))?;
        self.complete(op, results, vec![ty])
    }

    /// `sdy.manual_computation(%x) in_shardings=[...] out_shardings=[...] manual_axes={...} (%a: type) {...}
    /// {attributes} : type`
    fn manual_computation(&mut self, op: OpId, results: Results) -> Parse<Step> {
        let operands = self.list(Tok::LParen, Tok::RParen, Self::operand)?;
        for (key, name) in [
            ("in_shardings", "sharding_per_value"),
            ("out_shardings", "sharding_per_value"),
            ("manual_axes", "manual_axes"),
        ] {
            self.expect_word(key)?;
            self.expect(Tok::Equal)?;
            let value = self.shardy(name)?;
            self.set_property(op, key, value);
        }
        let (mut arguments, mut locations) = (Vec::new(), Vec::new());
        self.list(Tok::LParen, Tok::RParen, |p| {
            arguments.push(p.argument()?);
            p.skipped_location(arguments.len() - 1, &mut locations)
        })?;
        let begin = Start { op, arguments: &arguments, isolated: false, dialect: "" };
        let step = self.begin_region(begin, Rest::FunctionType { results, operands })?;
        self.argument_locations(op, locations)?;
        Ok(step)
    }
}
