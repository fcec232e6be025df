//! An applied computation on scalars as one expression: calls, fusions and tuples inlined.
//!
//! **Invariant:** operands of a node come before it.

use hlo::attrs::Ints;
use hlo::{
    AttrKey, AttrValue, ComputationId, ElementType, InstrId, Module, NewInstruction, Opcode, Shape, Span,
};

/// How deep calls may nest.
const MAX_DEPTH: usize = 32;

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A parameter of the computation.
    Parameter(usize),
    /// An elementwise instruction, or a constant.
    Instruction(InstrId),
}

/// A scalar of the expression.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub origin: Origin,
    /// The nodes that it is computed from.
    pub operands: Vec<usize>,
    /// Its type.
    pub ty: ElementType,
}

/// A computation on scalars, whose instructions are elementwise.
#[derive(Debug)]
pub struct Expression<'m> {
    /// Where its instructions are.
    pub module: &'m Module,
    /// All nodes, those of parameters first.
    pub nodes: Vec<Node>,
    /// Types of the parameters, whose nodes are the first ones.
    pub parameters: Vec<ElementType>,
    /// The nodes that are the results.
    pub results: Vec<usize>,
}

/// The value of an instruction.
#[derive(Clone, Debug)]
enum Held {
    Scalar(usize),
    Tuple(Vec<Held>),
}

impl<'m> Expression<'m> {
    /// `None` if something in the computation is no elementwise instruction on scalars.
    pub fn new(module: &'m Module, computation: ComputationId) -> Option<Expression<'m>> {
        let program = module.program_shape(computation)?;
        let parameters: Option<Vec<ElementType>> = program.parameters.iter().map(scalar_type).collect();
        let parameters = parameters?;
        let node = |(number, &ty)| Node { origin: Origin::Parameter(number), operands: Vec::new(), ty };
        let nodes = parameters.iter().enumerate().map(node).collect();
        let mut expression = Expression { module, nodes, parameters, results: Vec::new() };
        let arguments = (0..expression.parameters.len()).map(Held::Scalar).collect();
        let mut results = Vec::new();
        leaves(&expression.inlined(computation, arguments, 0)?, &mut results);
        expression.results = results;
        Some(expression)
    }

    /// The opcode of a node that is an instruction.
    pub fn opcode(&self, node: usize) -> Option<Opcode> {
        match self.nodes[node].origin {
            Origin::Parameter(_) => None,
            Origin::Instruction(id) => Some(self.module.instr(id).opcode),
        }
    }

    /// Which nodes some of them are computed from, they themselves included.
    pub fn reached(&self, roots: &[usize]) -> Vec<bool> {
        self.reached_from(roots, &[])
    }

    /// Which parameters some nodes are computed from.
    pub fn dependencies(&self, roots: &[usize]) -> Vec<usize> {
        let reached = self.reached(roots);
        (0..self.parameters.len()).filter(|&p| reached[p]).collect()
    }

    /// Which nodes some of them are computed from, they themselves included, if these are `given`.
    fn reached_from(&self, roots: &[usize], given: &[usize]) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        roots.iter().for_each(|&root| reached[root] = true);
        for (n, node) in self.nodes.iter().enumerate().rev() {
            if reached[n] && !given.contains(&n) {
                node.operands.iter().for_each(|&operand| reached[operand] = true);
            }
        }
        reached
    }

    /// A module that computes the tuple of some nodes from lists of `lanes` values for each of these others
    /// (parameters have the first nodes), in that order. `None` if they depend on more.
    pub fn lifted(&self, roots: &[usize], given: &[usize], lanes: i64) -> Option<Module> {
        let reached = self.reached_from(roots, given);
        let mut target = Module::new("region");
        let entry = target.add_computation("main".into(), Span::NONE);
        let mut copies: Vec<Option<InstrId>> = vec![None; self.nodes.len()];
        let list = |ty: ElementType| Shape::array(ty, &[lanes]);
        for (number, &g) in (0..).zip(given) {
            let new = NewInstruction::new(Opcode::Parameter, list(self.nodes[g].ty), &[])
                .attr(AttrKey::ParameterNumber, AttrValue::Int(number))
                .named(format!("p{number}"));
            copies[g] = Some(target.append(entry, new));
        }
        for (n, node) in self.nodes.iter().enumerate().filter(|&(n, _)| reached[n]) {
            if copies[n].is_some() {
                continue;
            }
            let Origin::Instruction(id) = node.origin else {
                copies[n]?;
                continue;
            };
            let instr = self.module.instr(id);
            let operands: Option<Vec<InstrId>> = node.operands.iter().map(|&o| copies[o]).collect();
            let new = if instr.opcode == Opcode::Constant {
                let scalar = NewInstruction {
                    attrs: instr.attrs.clone(),
                    ..NewInstruction::new(Opcode::Constant, Shape::scalar(node.ty), &[])
                };
                let name = target.unique_name("scalar");
                let scalar = target.append(entry, scalar.named(name));
                NewInstruction::new(Opcode::Broadcast, list(node.ty), &[scalar])
                    .attr(AttrKey::Dimensions, AttrValue::Ints(Ints::new()))
            } else {
                let attrs = instr.attrs.clone();
                NewInstruction { attrs, ..NewInstruction::new(instr.opcode, list(node.ty), &operands?) }
            };
            let name = target.unique_name(&instr.name);
            copies[n] = Some(target.append(entry, new.named(name)));
        }
        let results: Option<Vec<InstrId>> = roots.iter().map(|&root| copies[root]).collect();
        let shape = Shape::tuple(roots.iter().map(|&root| list(self.nodes[root].ty)));
        let root =
            target.append(entry, NewInstruction::new(Opcode::Tuple, shape, &results?).named("results"));
        target.set_root(entry, root);
        target.set_entry(entry);
        Some(target)
    }

    fn inlined(&mut self, computation: ComputationId, arguments: Vec<Held>, depth: usize) -> Option<Held> {
        if depth > MAX_DEPTH {
            return None;
        }
        let module = self.module;
        let mut known = rustc_hash::FxHashMap::<InstrId, Held>::default();
        for id in module.instructions(computation) {
            let instr = module.instr(id);
            if !instr.control_predecessors.is_empty() {
                return None;
            }
            let operands: Option<Vec<Held>> =
                instr.operands().iter().map(|o| known.get(o).cloned()).collect();
            let mut operands = operands?;
            let value = match instr.opcode {
                Opcode::Parameter => {
                    let number = instr.parameter_number().and_then(|n| usize::try_from(n).ok())?;
                    arguments.get(number)?.clone()
                }
                Opcode::Tuple => Held::Tuple(operands),
                Opcode::GetTupleElement => {
                    let index = instr.attrs.int(AttrKey::Index).and_then(|i| usize::try_from(i).ok())?;
                    match operands.pop()? {
                        Held::Tuple(mut parts) if index < parts.len() => parts.swap_remove(index),
                        Held::Tuple(_) | Held::Scalar(_) => return None,
                    }
                }
                Opcode::Call | Opcode::Fusion => {
                    let &[called] = &instr.attrs.called_computations()[..] else { return None };
                    self.inlined(called, operands, depth + 1)?
                }
                Opcode::OptBarrier => operands.pop()?,
                opcode => {
                    let ty = scalar_type(&instr.shape)?;
                    let operands: Option<Vec<usize>> = operands
                        .into_iter()
                        .map(|o| match o {
                            Held::Scalar(node) => Some(node),
                            Held::Tuple(_) => None,
                        })
                        .collect();
                    let operands = operands?;
                    let moves = matches!(
                        opcode,
                        Opcode::Copy
                            | Opcode::Reshape
                            | Opcode::Broadcast
                            | Opcode::Bitcast
                            | Opcode::Convert
                    );
                    match operands[..] {
                        [x] if moves && self.nodes[x].ty == ty => Held::Scalar(x),
                        _ if opcode == Opcode::Constant || opcode.is_elementwise() => {
                            self.nodes.push(Node { origin: Origin::Instruction(id), operands, ty });
                            Held::Scalar(self.nodes.len() - 1)
                        }
                        _ => return None,
                    }
                }
            };
            known.insert(id, value);
        }
        known.remove(&module.root(computation))
    }
}

fn scalar_type(shape: &Shape) -> Option<ElementType> {
    shape.as_array().filter(|a| a.dims.is_empty()).map(|a| a.element_type)
}

fn leaves(held: &Held, found: &mut Vec<usize>) {
    match held {
        Held::Scalar(node) => found.push(*node),
        Held::Tuple(parts) => parts.iter().for_each(|part| leaves(part, found)),
    }
}
