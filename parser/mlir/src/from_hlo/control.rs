//! Functions, calls, loops, branches, tuples, and what is started and done.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ComputationId, ElementType, InstrId, Instruction, Opcode, Shape, Span};

use super::cx::{Ending, Export, Exporter, Leaves, Work};
use crate::ir::{Attribute, LocId, NameId, Type, TypeId, ValueId};

impl Exporter<'_> {
    // ---- functions

    /// The function of a computation. With `interface` its arguments and results are those of the
    /// computation, without it their leaves.
    pub(super) fn function(&mut self, computation: ComputationId, interface: bool) -> Export<NameId> {
        if let Some(&name) = self.functions.get(&(computation, interface)) {
            return Ok(name);
        }
        let entry = computation == self.hlo.entry() && interface;
        let given = &*self.hlo.computation(computation).name;
        let base = if entry { "main" } else { given };
        let mut text = base.to_owned();
        let mut n = 0;
        while !self.function_names.insert(text.clone()) {
            text = format!("{base}_{n}");
            n += 1;
        }
        let name = self.m.name(&text);
        self.functions.insert((computation, interface), name);
        let Some(shape) = self.hlo.program_shape(computation) else { return self.refuse("calls nothing") };
        let mut inputs: Vec<TypeId> = Vec::new();
        for p in &shape.parameters {
            if interface {
                inputs.push(self.ty(p)?);
            } else {
                inputs.extend(self.leaf_types(p)?);
            }
        }
        let results =
            if interface { self.result_types(&shape.result)? } else { self.leaf_types(&shape.result)? };
        let ty = self.m.ty(Type::Function { inputs: inputs.clone().into(), results: results.into() });
        let ty = self.m.attribute(Attribute::Type(ty));
        let (sym_name, visibility) =
            (self.string(&text), self.string(if entry { "public" } else { "private" }));
        let properties = vec![("function_type", ty), ("sym_name", sym_name), ("sym_visibility", visibility)];
        let (outer, loc, last) = (self.block, self.loc, self.last);
        (self.block, self.loc) = (self.top, LocId::UNKNOWN);
        let op = self.op("func.func", &[], &[], &properties)?;
        let region = self.m.add_region(op);
        let block = self.m.add_block(region, Span::NONE);
        let mut arguments = Vec::new();
        for &ty in &inputs {
            arguments.push(self.m.add_argument(block, ty, LocId::UNKNOWN, Span::NONE));
        }
        self.block = block;
        let mut parameters = Vec::new();
        let mut flat = arguments.iter().copied();
        for (p, &argument) in shape.parameters.iter().zip(&arguments) {
            parameters.push(if interface {
                self.unpacked(argument, p)?
            } else {
                flat.by_ref().take(p.leaves().len()).collect()
            });
        }
        // Of leaves there may be fewer arguments than parameters.
        while parameters.len() < shape.parameters.len() {
            let p = &shape.parameters[parameters.len()];
            parameters.push(flat.by_ref().take(p.leaves().len()).collect());
        }
        (self.block, self.loc, self.last) = (outer, loc, last);
        if entry {
            self.entry_attributes(op, &arguments);
        }
        let ending = if interface { Ending::Interface } else { Ending::Function };
        self.work.push(Work { computation, block, parameters, ending });
        Ok(name)
    }

    /// The types of the results of a function whose root has a shape: of a tuple of several (or none) those
    /// of its elements.
    fn result_types(&mut self, root: &Shape) -> Export<Vec<TypeId>> {
        match root {
            Shape::Tuple(parts) if parts.len() != 1 => parts.iter().map(|p| self.ty(p)).collect(),
            Shape::Tuple(_) | Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                Ok(vec![self.ty(root)?])
            }
        }
    }

    /// The results of a function that keeps tuples.
    pub(super) fn results(&mut self, root: InstrId) -> Export<Leaves> {
        let shape = &self.hlo.instr(root).shape;
        let leaves = self.leaves(root);
        let mut leaves = leaves.iter().copied();
        match shape {
            Shape::Tuple(parts) if parts.len() != 1 => {
                parts.iter().map(|p| self.packed(&mut leaves, p)).collect()
            }
            Shape::Tuple(_) | Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                Ok([self.packed(&mut leaves, shape)?].into())
            }
        }
    }

    /// The value of a shape whose leaves come next.
    pub(super) fn packed(
        &mut self,
        leaves: &mut impl Iterator<Item = ValueId>,
        shape: &Shape,
    ) -> Export<ValueId> {
        match shape {
            Shape::Tuple(parts) => {
                let mut values = Vec::new();
                // Shapes are nested as deep as the parser lets them be.
                for part in parts.iter() {
                    values.push(self.packed_leaf(leaves, part)?);
                }
                let ty = self.ty(shape)?;
                self.one("stablehlo.tuple", &values, ty, &[])
            }
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => self.next_leaf(leaves),
        }
    }

    fn packed_leaf(&mut self, leaves: &mut dyn Iterator<Item = ValueId>, shape: &Shape) -> Export<ValueId> {
        self.packed(&mut &mut *leaves, shape)
    }

    fn next_leaf(&self, leaves: &mut impl Iterator<Item = ValueId>) -> Export<ValueId> {
        match leaves.next() {
            Some(value) => Ok(value),
            None => self.refuse("has fewer values than its shape says"),
        }
    }

    /// The leaves of a value.
    pub(super) fn unpacked(&mut self, value: ValueId, shape: &Shape) -> Export<Leaves> {
        let Shape::Tuple(parts) = shape else { return Ok([value].into()) };
        let mut leaves = Leaves::new();
        for (index, part) in parts.iter().enumerate() {
            let ty = self.ty(part)?;
            let index = self.int_of(index as i64, 32);
            let element = self.one("stablehlo.get_tuple_element", &[value], ty, &[("index", index)])?;
            leaves.extend(self.unpacked(element, part)?);
        }
        Ok(leaves)
    }

    // ---- calls

    pub(super) fn call(&mut self, i: &Instruction) -> Export<Leaves> {
        let computation = self.called(i, AttrKey::ToApply)?;
        if i.attrs.bool(AttrKey::IsComposite) {
            return self.composite(i, computation);
        }
        self.call_of(i, computation)
    }

    fn call_of(&mut self, i: &Instruction, computation: ComputationId) -> Export<Leaves> {
        let callee = self.function(computation, false)?;
        let callee = self.symbol(callee);
        let operands = self.operands(i);
        self.whole("func.call", &operands, &[("callee", callee)])
    }

    fn composite(&mut self, i: &Instruction, computation: ComputationId) -> Export<Leaves> {
        let callee = self.function(computation, false)?;
        let decomposition = self.symbol(callee);
        let said = |key: &str| i.attrs.frontend_attributes().and_then(|f| f.get(key));
        let name = self.string(said("composite.name").unwrap_or(&self.hlo.computation(computation).name));
        let version = said("composite.version").and_then(|v| v.parse().ok()).unwrap_or(0);
        let version = self.int_of(version, 32);
        let mut properties = vec![("name", name), ("decomposition", decomposition)];
        if let Some(text) = said("composite.attributes").filter(|t| *t != "{}") {
            match crate::text::parse_attribute(&mut self.m, text) {
                Ok(attributes) => properties.push(("composite_attributes", attributes)),
                Err(d) => {
                    return self.refuse(&format!("`composite.attributes` is no dictionary: {}", d.message));
                }
            }
        }
        if version != self.int_of(0, 32) {
            properties.push(("version", version));
        }
        let operands = self.operands(i);
        self.whole("stablehlo.composite", &operands, &properties)
    }

    /// A kernel is a call of its computation.
    pub(super) fn fusion(&mut self, i: &Instruction) -> Export<Leaves> {
        self.left_out.insert("fusions");
        let computation = self.called(i, AttrKey::Calls)?;
        self.call_of(i, computation)
    }

    // ---- loops and branches

    pub(super) fn while_loop(&mut self, i: &Instruction) -> Export<Leaves> {
        let (condition, body) = (self.called(i, AttrKey::Condition)?, self.called(i, AttrKey::Body)?);
        let operands = self.operands(i);
        let op = self.whole_op("stablehlo.while", &operands, &[])?;
        self.region(op, condition)?;
        self.region(op, body)?;
        Ok(self.results_of(op))
    }

    /// Branches use what they are given as values of outside.
    pub(super) fn conditional(&mut self, i: &Instruction) -> Export<Leaves> {
        let index = self.operand(i, 0)?;
        let branches: Vec<ComputationId> = match i.attrs.computations(AttrKey::BranchComputations) {
            Some(branches) => branches.to_vec(),
            None => {
                vec![self.called(i, AttrKey::TrueComputation)?, self.called(i, AttrKey::FalseComputation)?]
            }
        };
        let predicate = self.operand_shape(i, 0).element_type() == Some(ElementType::Pred);
        let name = if predicate { "stablehlo.if" } else { "stablehlo.case" };
        if predicate && branches.len() != 2 || branches.len() + 1 != i.operands().len() {
            return self.refuse("has another number of branches than its operands say");
        }
        let op = self.whole_op(name, &[index], &[])?;
        for (n, &computation) in branches.iter().enumerate() {
            let region = self.m.add_region(op);
            let block = self.m.add_block(region, Span::NONE);
            let parameters = vec![self.leaves(i.operands()[n + 1])];
            self.work.push(Work { computation, block, parameters, ending: Ending::Region });
        }
        Ok(self.results_of(op))
    }

    // ---- tuples

    /// The leaves of one element of a tuple.
    fn part(&self, i: &Instruction, index: usize) -> Export<Leaves> {
        let shape = self.operand_shape(i, 0);
        let (Some(parts), leaves) = (shape.as_tuple(), self.leaves(i.operands()[0])) else {
            return self.refuse("is not of a tuple");
        };
        let Some(part) = parts.get(index) else { return self.refuse(&format!("has no element {index}")) };
        let before: usize = parts[..index].iter().map(|p| p.leaves().len()).sum();
        match leaves.get(before..before + part.leaves().len()) {
            Some(leaves) => Ok(leaves.into()),
            None => self.refuse("is of a tuple with fewer values than its shape says"),
        }
    }

    pub(super) fn get_tuple_element(&mut self, i: &Instruction) -> Export<Leaves> {
        let index = i.attrs.int(AttrKey::Index).and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        self.part(i, index)
    }

    // ---- order

    pub(super) fn optimization_barrier(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        if operands.is_empty() {
            return Ok(operands);
        }
        self.whole("stablehlo.optimization_barrier", &operands, &[])
    }

    /// The operand behind a barrier with the token, after which it comes.
    pub(super) fn add_dependency(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let types: Vec<TypeId> = operands.iter().map(|&v| self.m.value_type(v)).collect();
        let op = self.op("stablehlo.optimization_barrier", &operands, &types, &[])?;
        let mut results = self.results_of(op);
        results.truncate(i.shape.leaves().len());
        Ok(results)
    }

    pub(super) fn after_all(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        if operands.is_empty() {
            return Ok([self.token()?].into());
        }
        self.whole("stablehlo.after_all", &operands, &[])
    }

    // ---- what is started and done

    /// Values of what only a runtime knows: zeros and tokens.
    pub(super) fn contexts(&mut self, shapes: &[Shape]) -> Export<Leaves> {
        let mut leaves = Leaves::new();
        for shape in shapes.iter().flat_map(Shape::leaves) {
            leaves.push(match shape {
                Shape::Array(array) => self.fill(array.element_type, &array.dims, 0.0)?,
                Shape::Token => self.token()?,
                Shape::Tuple(_) | Shape::Opaque | Shape::Buffer(_) => {
                    return self.refuse("has a context that StableHLO has no type for");
                }
            });
        }
        Ok(leaves)
    }

    /// The elements of the tuple that an operation is that only starts: at least two.
    pub(super) fn started<'i>(&self, i: &'i Instruction) -> Export<&'i [Shape]> {
        match i.shape.as_tuple() {
            Some(parts @ [_, _, ..]) => Ok(parts),
            Some(_) | None => self.refuse("has a shape that is not that of an operation that is started"),
        }
    }

    /// Operands, results, context.
    pub(super) fn async_start(&mut self, i: &Instruction) -> Export<Leaves> {
        self.left_out.insert("asynchronous execution");
        let computation = self.called(i, AttrKey::Calls)?;
        let parts = self.started(i)?;
        let operands = self.operands(i);
        if parts[0].leaves().len() != operands.len() {
            return self.refuse("takes operands later");
        }
        let callee = self.function(computation, false)?;
        let callee = self.symbol(callee);
        let types = self.leaf_types(&parts[1])?;
        let op = self.op("func.call", &operands, &types, &[("callee", callee)])?;
        let mut leaves = operands;
        leaves.extend(self.results_of(op));
        leaves.extend(self.contexts(&parts[2..])?);
        self.last = Some(op);
        Ok(leaves)
    }

    pub(super) fn async_update(&mut self, i: &Instruction) -> Export<Leaves> {
        if i.operands().len() != 1 {
            return self.refuse("takes operands later");
        }
        Ok(self.operands(i))
    }

    pub(super) fn async_done(&mut self, i: &Instruction) -> Export<Leaves> {
        self.part(i, 1)
    }

    /// The copy, the operand, context.
    pub(super) fn copy_start(&mut self, i: &Instruction) -> Export<Leaves> {
        let parts = self.started(i)?;
        let operand = self.operands(i);
        let mut leaves = operand.clone();
        leaves.extend(operand);
        leaves.extend(self.contexts(&parts[2..])?);
        self.last = None;
        Ok(leaves)
    }

    pub(super) fn first_part(&mut self, i: &Instruction) -> Export<Leaves> {
        if i.opcode == Opcode::AllReduceDone {
            return Ok(self.operands(i));
        }
        self.part(i, 0)
    }

    pub(super) fn second_part(&mut self, i: &Instruction) -> Export<Leaves> {
        self.part(i, 1)
    }

    /// The name that a frontend attribute gives, and whether there is one. Kept apart so that composites
    /// alone read it.
    pub(super) fn program(&mut self) -> Export<()> {
        self.module_attributes();
        self.function(self.hlo.entry(), true)?;
        Ok(())
    }

    /// A boolean that an attribute says, absent where it is false.
    pub(super) fn flag(&mut self, i: &Instruction, key: AttrKey) -> Option<crate::ir::AttrId> {
        matches!(i.attrs.get(key), Some(AttrValue::Bool(true))).then(|| self.unit())
    }
}
