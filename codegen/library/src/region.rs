//! Applied computations as expressions over scalars, so that well-known ones run as Rust code.

use hlo::attrs::Direction;
use hlo::{
    AttrKey, Bits, ComputationId, ConstantValue, ElementType, Instruction, Literal, Module, Opcode,
    with_buffer,
};
use rustc_hash::FxHashMap;

/// A value in a computation of scalars.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node {
    /// A parameter.
    Parameter(usize),
    /// A constant: type and bits.
    Constant(ElementType, u128),
    /// An elementwise operation with nothing but operands to it.
    Op(Opcode, ElementType, Vec<usize>),
    /// `compare`; the flag: by TOTALORDER.
    Compare(Direction, bool, usize, usize),
}

/// A computation of scalars in which equal expressions are one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Scalars {
    nodes: Vec<Node>,
    types: Vec<ElementType>,
    numbers: FxHashMap<Node, usize>,
    /// The results, the elements of a tuple in order.
    pub(super) results: Vec<usize>,
}

/// The maximum depth of nested calls.
const MAX_CALL_DEPTH: usize = 16;

/// The maximum of instructions of a computation.
const MAX_INSTRUCTIONS: usize = 256;

impl Scalars {
    /// The expressions of a computation; `None` if it is long or not all elementwise operations on scalars.
    pub(super) fn of(module: &Module, computation: ComputationId) -> Option<Scalars> {
        let mut scalars = Scalars::default();
        let program = module.program_shape(computation)?;
        let mut parameters = Vec::new();
        for (i, shape) in program.parameters.iter().enumerate() {
            let shape = shape.as_array().filter(|s| s.dims.is_empty())?;
            parameters.push(scalars.node(Node::Parameter(i), shape.element_type));
        }
        scalars.results = scalars.inline(module, computation, &parameters, MAX_CALL_DEPTH)?;
        Some(scalars)
    }

    fn node(&mut self, node: Node, ty: ElementType) -> usize {
        if let Some(&n) = self.numbers.get(&node) {
            return n;
        }
        let n = self.nodes.len();
        self.numbers.insert(node.clone(), n);
        self.nodes.push(node);
        self.types.push(ty);
        n
    }

    fn inline(
        &mut self,
        module: &Module,
        computation: ComputationId,
        parameters: &[usize],
        depth: usize,
    ) -> Option<Vec<usize>> {
        if module.computation(computation).len() > MAX_INSTRUCTIONS
            || self.nodes.len() > 16 * MAX_INSTRUCTIONS
        {
            return None;
        }
        let mut values: FxHashMap<hlo::InstrId, Vec<usize>> = FxHashMap::default();
        for id in module.instructions(computation) {
            let instr = module.instr(id);
            let mut operands = Vec::new();
            for o in instr.operands() {
                operands.push(values.get(o)?.clone());
            }
            let value = match instr.opcode {
                Opcode::Parameter => vec![*parameters.get(usize::try_from(instr.parameter_number()?).ok()?)?],
                Opcode::Tuple => operands.concat(),
                Opcode::Call | Opcode::Fusion => {
                    let key = if instr.opcode == Opcode::Call { AttrKey::ToApply } else { AttrKey::Calls };
                    let called = instr.attrs.computation(key)?;
                    self.inline(module, called, &operands.concat(), depth.checked_sub(1)?)?
                }
                Opcode::GetTupleElement => {
                    let index = usize::try_from(instr.attrs.int(AttrKey::Index)?).ok()?;
                    vec![*operands.first()?.get(index)?]
                }
                opcode => vec![self.scalar(instr, opcode, &operands)?],
            };
            values.insert(id, value);
        }
        values.remove(&module.root(computation))
    }

    /// An instruction whose result is a scalar.
    fn scalar(&mut self, instr: &Instruction, opcode: Opcode, operands: &[Vec<usize>]) -> Option<usize> {
        let shape = instr.shape.as_array().filter(|s| s.dims.is_empty())?;
        let mut flat = Vec::with_capacity(operands.len());
        for o in operands {
            let &[o] = &o[..] else { return None };
            flat.push(o);
        }
        let ty = shape.element_type;
        let node = match opcode {
            Opcode::Copy | Opcode::Reshape | Opcode::Broadcast | Opcode::Transpose => {
                return flat.first().copied();
            }
            Opcode::Convert if flat.first().is_some_and(|&x| self.types[x] == ty) => {
                return flat.first().copied();
            }
            Opcode::Constant => {
                let ConstantValue::Given(literal) = instr.attrs.constant_value()? else { return None };
                let Literal::Array(array) = &**literal else { return None };
                Node::Constant(ty, with_buffer!(&*array.buffer, v => v.first()?.bits()))
            }
            Opcode::Compare => {
                let &[a, b] = &flat[..] else { return None };
                let total = instr.attrs.is_total_order();
                Node::Compare(*instr.attrs.direction()?, total, a, b)
            }
            Opcode::ReducePrecision => return None,
            op if op.is_elementwise() => Node::Op(op, ty, flat),
            // What is not named here is not recognized.
            _unknown => return None,
        };
        Some(self.node(node, ty))
    }

    /// What a value is.
    pub(super) fn get(&self, node: usize) -> &Node {
        &self.nodes[node]
    }

    /// Its type.
    pub(super) fn element_type(&self, node: usize) -> ElementType {
        self.types[node]
    }

    /// The parameter that a value is.
    pub(super) fn parameter(&self, node: usize) -> Option<usize> {
        if let Node::Parameter(n) = self.nodes[node] { Some(n) } else { None }
    }

    /// The operands of a value that is this operation of two.
    pub(super) fn binary(&self, node: usize, op: Opcode) -> Option<(usize, usize)> {
        match &self.nodes[node] {
            Node::Op(o, _, operands) if *o == op => match operands[..] {
                [a, b] => Some((a, b)),
                _ => None,
            },
            Node::Op(..) | Node::Parameter(_) | Node::Constant(..) | Node::Compare(..) => None,
        }
    }

    /// If the only result is a commutative reducing operation of parameters 0 and 1 and nothing else: that
    /// operation.
    pub(super) fn reducer(&self) -> Option<Opcode> {
        let &[result] = &self.results[..] else { return None };
        let ops = [
            Opcode::Add,
            Opcode::Multiply,
            Opcode::Maximum,
            Opcode::Minimum,
            Opcode::And,
            Opcode::Or,
            Opcode::Xor,
        ];
        ops.into_iter().find(|&op| {
            self.binary(result, op).is_some_and(|(a, b)| {
                let pair = (self.parameter(a), self.parameter(b));
                pair == (Some(0), Some(1)) || pair == (Some(1), Some(0)) && op.commutes(self.types[result])
            })
        })
    }

    /// If the only result is a parameter: which.
    pub(super) fn selected(&self) -> Option<usize> {
        if let [result] = self.results[..] { self.parameter(result) } else { None }
    }
}
