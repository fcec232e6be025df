//! Functions, calls, loops, branches, tuples, and the regions that are computations.
//!
//! Conventions, which are those of XLA: a function has a parameter for each argument, and a tuple as its root
//! where it has not one result. A loop has one parameter, the value that it carries or a tuple of them; a
//! branch has one, of what it uses of outside. Values that regions use of outside become operands.

use hlo::attrs::misc::FrontendValue;
use hlo::attrs::{AttrKey, AttrValue, Attrs, FrontendAttributes};
use hlo::diag::Diagnostic;
use hlo::diag::codes;
use hlo::{ComputationId, ElementType, InstrId, Opcode, Shape};

use super::cx::{Convert, Converter};
use super::regions::short;
use super::{Check, header};
use crate::ir::{Attribute, BlockId, OpId, RegionId, ValueId};

/// What the last operation of a block hands on.
pub(super) const RETURNS: [&str; 5] =
    ["stablehlo.return", "mhlo.return", "func.return", "chlo.return", "sdy.return"];

impl<'m> Converter<'m> {
    /// The whole program, from a function on.
    pub(super) fn program(&mut self, entry: OpId, arguments: Option<&[Option<Vec<i64>>]>) -> Convert<()> {
        for function in self.call_order(entry)? {
            // Functions of shapes that are not known are converted where they are called.
            if function != entry && self.is_dynamic(function) {
                continue;
            }
            if function == entry {
                self.set_arguments(entry, arguments)?;
            }
            let computation = self.function(function, function == entry)?;
            self.called.insert(function, computation);
        }
        if let Some(&computation) = self.called.get(&entry) {
            self.out.set_entry(computation);
        }
        self.header(entry)
    }

    /// Whether types in a function have sizes that they do not say.
    fn is_dynamic(&self, function: OpId) -> bool {
        let unbounded = |v: &ValueId| super::shapes::is_unbounded(self.m, self.m.value_type(*v));
        self.arguments(function).iter().any(unbounded)
            || self.all_operations(function).iter().any(|&op| self.m.op(op).results.iter().any(unbounded))
    }

    /// The arguments of a function.
    fn arguments(&self, function: OpId) -> &'m [ValueId] {
        match self.m.op(function).regions.first().map(|&r| &self.m.region(r).blocks[..]) {
            Some([block, ..]) => &self.m.block(*block).arguments,
            _ => &[],
        }
    }

    /// Sets the dimensions of the arguments of the entry function to those that the caller says.
    fn set_arguments(&mut self, entry: OpId, dims: Option<&[Option<Vec<i64>>]>) -> Convert<()> {
        let Some(dims) = dims else { return Ok(()) };
        let arguments = self.arguments(entry);
        if dims.len() != arguments.len() {
            let message =
                format!("shapes of {} arguments are given, and it has {}", dims.len(), arguments.len());
            return self.structure(entry, &message);
        }
        for (i, (&argument, dims)) in arguments.iter().zip(dims).enumerate() {
            let (Some(dims), Shape::Array(mut shape)) =
                (dims, self.shape(self.m.value_type(argument), entry)?)
            else {
                continue;
            };
            let fits = dims.len() == shape.dims.len()
                && dims.iter().zip(&shape.dims).all(|(given, own)| given == own || *own == hlo::UNBOUNDED);
            if !fits {
                let message = format!("argument {i} is given dimensions {dims:?}, and is {shape}");
                return self.structure(entry, &message);
            }
            shape = hlo::ArrayShape::new(shape.element_type, dims);
            self.concrete.insert(argument, Shape::Array(shape));
        }
        Ok(())
    }

    /// Converts something while something else is being converted: a function that is called, a region.
    fn within<T>(&mut self, op: OpId, f: impl FnOnce(&mut Self) -> Convert<T>) -> Convert<T> {
        // Only programs whose shapes are not known come here; they may be nested arbitrarily deep.
        const MAX_NESTED: u32 = 64;
        if self.inside >= MAX_NESTED {
            return self.unsupported(
                op,
                format!("regions and functions of unknown shapes, {MAX_NESTED} levels deep"),
            );
        }
        self.inside += 1;
        let empty = super::cx::Body::new(self.body.computation);
        let outer = std::mem::replace(&mut self.body, empty);
        let result = f(self);
        self.body = outer;
        self.inside -= 1;
        result
    }

    /// The functions that a function needs, each after those that it calls itself.
    fn call_order(&self, entry: OpId) -> Convert<Vec<OpId>> {
        enum Step {
            Enter(OpId),
            Leave(OpId),
        }
        let mut order = Vec::new();
        let mut open = rustc_hash::FxHashSet::default();
        let mut done = rustc_hash::FxHashSet::default();
        let mut stack = vec![Step::Enter(entry)];
        while let Some(step) = stack.pop() {
            let function = match step {
                Step::Leave(function) => {
                    open.remove(&function);
                    if done.insert(function) {
                        order.push(function);
                    }
                    continue;
                }
                Step::Enter(function) if done.contains(&function) => continue,
                Step::Enter(function) => function,
            };
            open.insert(function);
            stack.push(Step::Leave(function));
            for op in self.all_operations(function) {
                for name in self.callees(op) {
                    let Some(&callee) = self.functions.get(name) else {
                        let message = format!("the module has no function @{name}");
                        if short(self.m.op_name(op)) == "composite" {
                            return self.constraint(op, "C2", message);
                        }
                        return self.fail(codes::STABLEHLO_FUNCTION, op, message);
                    };
                    if open.contains(&callee) {
                        let message = format!("@{name} is called in itself: HLO has no recursion");
                        return self.fail(codes::STABLEHLO_FUNCTION, op, message);
                    }
                    if !done.contains(&callee) {
                        stack.push(Step::Enter(callee));
                    }
                }
            }
        }
        Ok(order)
    }

    /// All operations of a function, those in regions too.
    fn all_operations(&self, function: OpId) -> Vec<OpId> {
        let mut all = Vec::new();
        let mut stack: Vec<RegionId> = self.m.op(function).regions.to_vec();
        while let Some(region) = stack.pop() {
            for &block in &self.m.region(region).blocks {
                for &op in &self.m.block(block).operations {
                    all.push(op);
                    stack.extend(self.m.op(op).regions.iter().copied());
                }
            }
        }
        all
    }

    /// The functions that an operation names.
    fn callees(&self, op: OpId) -> Vec<&'m str> {
        match self.m.op_name(op) {
            "func.call" => self.symbol(op, "callee").into_iter().collect(),
            "stablehlo.composite" | "mhlo.composite" => {
                self.symbol(op, "decomposition").into_iter().collect()
            }
            "stablehlo.custom_call" | "mhlo.custom_call" => self.symbols(op, "called_computations"),
            "interpreter.run_parallel" => {
                let mut names = self.symbols(op, "programs");
                names.extend(self.symbols(op, "infeed"));
                names
            }
            _ => Vec::new(),
        }
    }

    /// The symbols in an array, or in arrays in an array.
    pub(super) fn symbols(&self, op: OpId, name: &str) -> Vec<&'m str> {
        let mut found = Vec::new();
        let Some(Attribute::Array(rows)) = self.attr(op, name) else { return found };
        for &row in rows {
            match self.m.get_attribute(row) {
                Attribute::Symbol { root, .. } => found.push(self.m.text(*root)),
                Attribute::Array(parts) => {
                    found.extend(parts.iter().filter_map(|&p| match self.m.get_attribute(p) {
                        Attribute::Symbol { root, .. } => Some(self.m.text(*root)),
                        _ => None,
                    }))
                }
                _ => {}
            }
        }
        found
    }

    /// The only block of a region.
    pub(super) fn block(&self, region: RegionId, op: OpId) -> Convert<BlockId> {
        match *self.m.region(region).blocks {
            [block] => Ok(block),
            [] => self.structure(op, "has a region without a block"),
            [..] => self.unsupported(op, "branches between blocks have no HLO"),
        }
    }

    /// The computation of a function.
    fn function(&mut self, function: OpId, entry: bool) -> Convert<ComputationId> {
        let Some(&region) = self.m.op(function).regions.first() else {
            return self.fail(codes::STABLEHLO_FUNCTION, function, "the function has no body");
        };
        let dynamic = self.is_dynamic(function);
        self.prepare_regions(function, dynamic)?;
        let block = self.block(region, function)?;
        let name = self.string(function, "sym_name").unwrap_or("function");
        let base = header::computation_name(name);
        let span = self.m.op(function).span;
        let name = self.out.unique_computation_name(&base);
        let computation = self.out.add_computation(name, span);
        self.enter(computation);
        for (i, &argument) in self.m.block(block).arguments.iter().enumerate() {
            let shape = self.value_shape(argument, function)?;
            let id = self.parameter(i, shape, Some(argument));
            self.argument_attributes(function, i, id)?;
            self.define(argument, id);
        }
        let checking = entry && self.checking;
        let results = self.operations(block, function, checking)?;
        let root = if checking {
            let operands = self.check_operands(block)?;
            self.tuple(&operands)
        } else {
            self.packed(&results)
        };
        self.root(root, entry);
        if !checking {
            self.result_attributes(function, &results, root)?;
        }
        Ok(computation)
    }

    /// The operands of the checks of a block, in order, and the checks.
    fn check_operands(&mut self, block: BlockId) -> Convert<Vec<InstrId>> {
        let mut operands = Vec::new();
        for &op in &self.m.block(block).operations {
            let Some(kind) = self.check_kind(op)? else { continue };
            let (actual, expected) = match self.operand_values(op) {
                [expected] if self.m.op_name(op) == "check.expect_serialized_eq" => {
                    (self.probed(block, op)?, self.value(*expected, op)?)
                }
                [actual] => {
                    let Some(value) = self.m.attr(op, "value") else {
                        return self.structure(op, "has no `value`");
                    };
                    let actual = self.value(*actual, op)?;
                    self.body.op = Some(op);
                    (actual, self.elements(op, value)?)
                }
                // `check.eq` and the custom calls have what is right first.
                [first, second] => {
                    let (a, b) = (self.value(*first, op)?, self.value(*second, op)?);
                    if self.string(op, "call_target_name") == Some("check.eq") { (b, a) } else { (a, b) }
                }
                [..] => return self.structure(op, "compares two values"),
            };
            let at = operands.len();
            operands.extend([actual, expected]);
            self.checks.push(Check { kind, results: [at, at + 1], span: self.m.op(op).span });
        }
        Ok(operands)
    }

    /// What a probe of the block recorded, whose name a check says.
    fn probed(&mut self, block: BlockId, check: OpId) -> Convert<InstrId> {
        let id = self.string(check, "probe_id");
        let is_probe =
            |op: &OpId| self.m.op_name(*op) == "interpreter.probe" && self.string(*op, "probe_id") == id;
        let probes: Vec<OpId> = self.m.block(block).operations.iter().copied().filter(is_probe).collect();
        let iteration = usize::try_from(self.int_or(check, "iteration", 1)?).unwrap_or(0);
        match iteration.checked_sub(1).and_then(|i| probes.get(i)) {
            Some(&probe) => self.value(self.operand_values(probe)[0], probe),
            None => self.unsupported(check, "the probe is in a region, or is nowhere"),
        }
    }

    /// Begins a computation.
    fn enter(&mut self, computation: ComputationId) {
        self.body.computation = computation;
        self.body.values.clear();
        self.body.infeeds.clear();
        self.body.op = None;
    }

    pub(super) fn parameter(&mut self, number: usize, shape: Shape, value: Option<ValueId>) -> InstrId {
        let attrs = Attrs::new().with(AttrKey::ParameterNumber, AttrValue::Int(number as i64));
        let id = self.emit(Opcode::Parameter, shape, &[], attrs);
        if let Some(value) = value {
            let v = self.m.value(value);
            self.out.instr_mut(id).span = v.span;
            if let Some(metadata) = super::cx::metadata(self.m, v.loc) {
                let metadata = AttrValue::Metadata(Box::new(metadata));
                self.out.instr_mut(id).attrs.set(AttrKey::Metadata, metadata);
            }
            if let Some(name) = v.name {
                let name = header::computation_name(self.m.text(name));
                let first = name.bytes().next().unwrap_or(b'0');
                if first.is_ascii_alphabetic() || first == b'_' {
                    let unique = self.out.unique_name(&name);
                    self.out.instr_mut(id).name = unique;
                }
            }
        }
        id
    }

    /// Makes an instruction the root. A value that is another's name, or a parameter, is the root of a
    /// function through a copy or tuple only where it must.
    fn root(&mut self, root: InstrId, _entry: bool) {
        self.out.set_root(self.body.computation, root);
    }

    /// Converts the operations of a block; what its terminator hands on.
    fn operations(&mut self, block: BlockId, owner: OpId, checking: bool) -> Convert<Vec<InstrId>> {
        let operations = &self.m.block(block).operations;
        for (i, &op) in operations.iter().enumerate() {
            self.body.op = Some(op);
            if RETURNS.contains(&self.m.op_name(op)) {
                if i + 1 != operations.len() {
                    return self.structure(op, "operations follow it in its block");
                }
                return if checking { Ok(Vec::new()) } else { self.operands(op) };
            }
            self.operation(op)?;
            self.result_is_bounded(op)?;
            super::fold::evaluate(self.m, op, &mut self.known, &self.concrete);
        }
        if checking {
            return Ok(Vec::new());
        }
        self.structure(owner, "has a region that does not end with a return")
    }

    /// That the sizes of what an operation was converted to are known.
    fn result_is_bounded(&self, op: OpId) -> Convert<()> {
        for &result in &self.m.op(op).results {
            if let Some(shape) = self.concrete.get(&result) {
                self.bounded(shape, op)?;
            }
        }
        Ok(())
    }

    // ---- regions

    /// Converts the regions of an operation if that was not done yet: where shapes are not known before.
    pub(super) fn regions_of(&mut self, op: OpId) -> Convert<()> {
        let regions = &self.m.op(op).regions;
        if regions.iter().all(|r| self.regions.contains_key(r)) {
            return Ok(());
        }
        if short(self.m.op_name(op)) == "while" {
            for &region in regions {
                let block = self.block(region, op)?;
                let arguments = &self.m.block(block).arguments;
                for (&argument, &operand) in arguments.iter().zip(self.operand_values(op)) {
                    if let Some(shape) = self.concrete.get(&operand).cloned() {
                        self.concrete.insert(argument, shape);
                    }
                }
            }
        }
        self.within(op, |c| c.region_computations(op))
    }

    /// The computations of an operation's regions.
    pub(super) fn region_computations(&mut self, op: OpId) -> Convert<()> {
        let regions = self.m.op(op).regions.clone();
        let name = short(self.m.op_name(op));
        let captured = self.captures.get(&op).cloned().unwrap_or_default();
        for (i, &region) in regions.iter().enumerate() {
            let block = self.block(region, op)?;
            let base = match (name, i) {
                ("while", 0) => "condition".to_owned(),
                ("while", _) => "body".to_owned(),
                ("if", 0) => "true_branch".to_owned(),
                ("if", _) => "false_branch".to_owned(),
                ("case", i) => format!("branch_{i}"),
                _ => format!("{name}_region"),
            };
            let unique = self.out.unique_computation_name(&base);
            let computation = self.out.add_computation(unique, self.m.block(block).span);
            self.enter(computation);
            let arguments = self.m.block(block).arguments.clone();
            let results = if matches!(name, "while" | "if" | "case") {
                let state: Vec<ValueId> = arguments.iter().chain(&captured).copied().collect();
                let shapes: Convert<Vec<Shape>> = state.iter().map(|&v| self.value_shape(v, op)).collect();
                let shapes = shapes?;
                let shape = match &shapes[..] {
                    [one] => one.clone(),
                    _ => Shape::tuple(shapes.iter().cloned()),
                };
                let parameter =
                    self.parameter(0, shape, if state.len() == 1 { Some(state[0]) } else { None });
                let mut parts = Vec::new();
                for (i, &value) in state.iter().enumerate() {
                    let id = if state.len() == 1 { parameter } else { self.get(parameter, i) };
                    self.define(value, id);
                    parts.push(id);
                }
                let mut results = self.operations(block, op, false)?;
                if name == "while" && i == 1 {
                    // Captured values go around unchanged.
                    results.extend(&parts[arguments.len()..]);
                }
                results
            } else {
                for (i, &argument) in arguments.iter().enumerate() {
                    let shape = self.value_shape(argument, op)?;
                    let id = self.parameter(i, shape, Some(argument));
                    self.define(argument, id);
                }
                self.operations(block, op, false)?
            };
            let root = self.packed(&results);
            self.root(root, false);
            self.regions.insert(region, computation);
        }
        Ok(())
    }

    /// The computation of a region of an operation.
    pub(super) fn region(&self, op: OpId, index: usize) -> Convert<ComputationId> {
        let region = self.m.op(op).regions.get(index);
        match region.and_then(|r| self.regions.get(r)) {
            Some(&computation) => Ok(computation),
            None => self.structure(op, &format!("has no region {index}")),
        }
    }

    // ---- operations

    pub(super) fn while_loop(&mut self, op: OpId) -> Convert<()> {
        let count = self.operand_values(op).len();
        if self.m.op(op).results.len() != count {
            return self.constraint(
                op,
                "C3",
                format!("{} results of {count} operands", self.m.op(op).results.len()),
            );
        }
        let mut operands = self.operands(op)?;
        for value in self.captures.get(&op).cloned().unwrap_or_default() {
            operands.push(self.value(value, op)?);
        }
        let (condition, body) = (self.region(op, 0)?, self.region(op, 1)?);
        let init = self.packed(&operands);
        let shape = self.shape_of(init);
        let attrs = Attrs::new()
            .with(AttrKey::Condition, AttrValue::Computation(condition))
            .with(AttrKey::Body, AttrValue::Computation(body));
        let id = self.emit(Opcode::While, shape, &[init], attrs);
        if operands.len() == 1 {
            if count == 1 {
                self.bind(op, 0, id);
            }
            return Ok(());
        }
        for i in 0..count {
            let part = self.get(id, i);
            self.bind(op, i, part);
        }
        Ok(())
    }

    /// `if` and `case`.
    pub(super) fn branches(&mut self, op: OpId) -> Convert<()> {
        let [index] = self.exactly(op)?;
        let count = self.m.op(op).regions.len();
        if count == 0 {
            return self.constraint(op, "C1", "there is no branch");
        }
        let mut captured = Vec::new();
        for value in self.captures.get(&op).cloned().unwrap_or_default() {
            captured.push(self.value(value, op)?);
        }
        let argument = self.packed(&captured);
        let branches: Convert<Vec<ComputationId>> = (0..count).map(|i| self.region(op, i)).collect();
        let branches = branches?;
        let shapes = self.result_shapes(op)?;
        let shape = match branches.first() {
            // What the branches give, where the types do not say it.
            Some(&branch) => {
                let root = self.out.root(branch);
                self.shape_of(root)
            }
            None => Shape::tuple(shapes.iter().cloned()),
        };
        let attrs = if self.type_of(index) == ElementType::Pred {
            let &[yes, no] = &branches[..] else {
                return self.structure(op, "has not two branches");
            };
            Attrs::new()
                .with(AttrKey::TrueComputation, AttrValue::Computation(yes))
                .with(AttrKey::FalseComputation, AttrValue::Computation(no))
        } else {
            Attrs::new().with(AttrKey::BranchComputations, AttrValue::Computations(branches.into()))
        };
        let mut operands = vec![index];
        operands.extend(std::iter::repeat_n(argument, count));
        let id = self.emit(Opcode::Conditional, shape, &operands, attrs);
        self.bind_first(op, id, shapes.len());
        Ok(())
    }

    /// `async_start`: its body is done at once, and the future is the result.
    pub(super) fn async_start(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let computation = self.region(op, 0)?;
        self.callee_fits(op, computation, &operands)?;
        let root = self.out.root(computation);
        let shape = self.shape_of(root);
        let attrs = Attrs::new().with(AttrKey::ToApply, AttrValue::Computation(computation));
        let id = self.emit(Opcode::Call, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    /// `func.call` and `composite`.
    pub(super) fn call(&mut self, op: OpId, composite: bool) -> Convert<()> {
        let key = if composite { "decomposition" } else { "callee" };
        let Some(&callee) = self.symbol(op, key).and_then(|name| self.functions.get(name)) else {
            return self.structure(op, &format!("has no `{key}`"));
        };
        let computation = match self.called.get(&callee) {
            Some(&computation) => computation,
            None => self.specialized(op, callee)?,
        };
        let operands = self.operands(op)?;
        self.callee_fits(op, computation, &operands)?;
        let shapes = self.result_shapes(op)?;
        let root = self.out.root(computation);
        let shape = self.shape_of(root);
        if shape.as_tuple().map_or(1, <[Shape]>::len) != shapes.len() && shapes.len() != 1 {
            return self.structure(op, "has another number of results than the function");
        }
        let mut attrs = Attrs::new().with(AttrKey::ToApply, AttrValue::Computation(computation));
        if composite {
            attrs.set(AttrKey::IsComposite, AttrValue::Bool(true));
            let text = match self.m.attr(op, "composite_attributes") {
                Some(a) => crate::print::attribute_text(self.m, a),
                None => "{}".to_owned(),
            };
            let entry = |k: &str, v: String| (k.into(), FrontendValue::Str(v.into()));
            let entries = vec![
                entry("composite.attributes", text),
                entry("composite.name", self.string(op, "name").unwrap_or_default().to_owned()),
                entry("composite.version", self.int_or(op, "version", 0)?.to_string()),
            ];
            attrs.set(
                AttrKey::FrontendAttributes,
                AttrValue::FrontendAttributes(Box::new(FrontendAttributes { entries })),
            );
        }
        let id = self.emit(Opcode::Call, shape, &operands, attrs);
        self.bind_first(op, id, shapes.len());
        Ok(())
    }

    /// The computation of a function for the shapes and known values of the operands of one call.
    fn specialized(&mut self, op: OpId, callee: OpId) -> Convert<ComputationId> {
        // A function that calls another twice, which calls another twice: the calls double with each level.
        const MAX_SPECIALIZED: u32 = 4096;
        if self.specialized >= MAX_SPECIALIZED {
            return self.unsupported(
                op,
                format!("more than {MAX_SPECIALIZED} calls of functions of unknown shapes"),
            );
        }
        self.specialized += 1;
        for (&argument, &operand) in self.arguments(callee).iter().zip(self.operand_values(op)) {
            self.concrete.remove(&argument);
            self.known.remove(&argument);
            if let Some(&id) = self.body.values.get(&operand)
                && super::shapes::is_unbounded(self.m, self.m.value_type(argument))
            {
                let shape = self.shape_of(id);
                self.concrete.insert(argument, shape);
            }
            if let Some(values) = self.known.get(&operand).cloned() {
                self.known.insert(argument, values);
            }
        }
        for inner in self.all_operations(callee) {
            for region in &self.m.op(inner).regions {
                self.regions.remove(region);
            }
        }
        self.within(op, |c| c.function(callee, false))
    }

    fn callee_fits(&self, op: OpId, computation: ComputationId, operands: &[InstrId]) -> Convert<()> {
        let parameters = self.out.computation(computation).parameters();
        if parameters.len() != operands.len() {
            let message = format!("{} operands for {} arguments", operands.len(), parameters.len());
            return self.fail(codes::STABLEHLO_FUNCTION, op, message);
        }
        for (i, (parameter, &operand)) in parameters.iter().zip(operands).enumerate() {
            let fits =
                parameter.is_some_and(|p| self.out.instr(p).shape.compatible(&self.out.instr(operand).shape));
            if !fits {
                let d = Diagnostic::error(
                    codes::STABLEHLO_FUNCTION,
                    self.m.op(op).span,
                    format!("operand {i} has another type than the argument of the function"),
                );
                return Err(Box::new(d));
            }
        }
        Ok(())
    }

    pub(super) fn tuple_op(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let id = self.tuple(&operands);
        self.bind_one(op, id)
    }

    pub(super) fn get_tuple_element(&mut self, op: OpId) -> Convert<()> {
        let [tuple] = self.exactly(op)?;
        let index = self.int(op, "index")?;
        let count = self.shape_of(tuple).as_tuple().map_or(0, <[Shape]>::len);
        match usize::try_from(index) {
            Ok(index) if index < count => {
                let id = self.get(tuple, index);
                self.bind_one(op, id)
            }
            _ => self.constraint(op, "C1", format!("index {index} of a tuple of {count}")),
        }
    }

    pub(super) fn optimization_barrier(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        if operands.is_empty() {
            return Ok(());
        }
        let packed = self.packed(&operands);
        let shape = self.shape_of(packed);
        let id = self.plain(Opcode::OptBarrier, shape, &[packed]);
        if operands.len() == 1 {
            return self.bind_one(op, id);
        }
        self.bind_tuple(op, id)
    }
}
