//! A fused expression, element by element, as a list of operations on symbolic indices.
//!
//! [`Expr::node`] asks for an instruction at an index; movement operations disappear into the indices of what they move, so what remains is loads,
//! counting, elementwise operations, and selections by where an index lies (padding, concatenation). Analyses (which dimensions can be
//! one, what is read, what it costs) and emission read the same expr. **Invariants:** an operation comes after its operands and after those
//! whose values its indices hold; equal instructions at equal indices are one operation; memory is read only where the guard of the load holds.

mod magnitude;
pub mod fold;
pub mod index;
mod analysis;
mod movement;
mod short_folds;
pub mod scatter;

use std::sync::Arc;

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, ElementType, InstrId, Module, Opcode, Shape};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use self::index::{Affine, Index, Space};
pub use magnitude::Magnitude;
use hlo_library::Unsupported;

/// A place in [`Expr::nodes`].
pub type NodeId = u32;

/// A set of conditions, a place in [`Expr::guards`]; 0 is no condition.
pub type GuardId = u32;

/// The guard that always holds.
pub const ALWAYS: GuardId = 0;

/// `low <= value < high`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Condition {
    /// What is looked at.
    pub value: Affine,
    /// Least.
    pub low: i64,
    /// One past the greatest.
    pub high: i64,
}

/// An operation.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the line of a variant says what its fields are")]
pub enum Op {
    /// An element of an array in memory, by its row-major number, read where the guard holds.
    Load { array: u32, at: Affine, guard: GuardId },
    /// An element of a constant.
    Constant { instr: InstrId, at: Affine },
    /// An index as a number of the node's type.
    Iota { value: Affine },
    /// An elementwise instruction.
    Elementwise { instr: InstrId, operands: SmallVec<[NodeId; 3]> },
    /// Another element type, as `convert`.
    Convert { operand: NodeId },
    /// An integer in whose order a float is what `cpu::scalar::extreme_key` says.
    Order { operand: NodeId, least: bool },
    /// The float of such an integer.
    Unorder { operand: NodeId, least: bool },
    /// The first where the guard holds, else the second.
    Select { guard: GuardId, yes: NodeId, no: NodeId },
    /// The bits as another type of the same width.
    Bits { operand: NodeId },
    /// The bits of narrower elements, low ones first, as one wider element.
    Pack { parts: Vec<NodeId> },
    /// The sum of the products of pairs, in order.
    Products { factors: Vec<NodeId> },
    /// The sum of two floats.
    Sum { terms: [NodeId; 2] },
    /// Some of the bits of a wider element.
    Unpack { whole: NodeId, part: Affine },
    /// A value that emission provides.
    Given { number: u32 },
}

/// An operation and the element type of its result.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// Its type.
    pub ty: ElementType,
}

/// An array in memory.
#[derive(Clone, Debug)]
pub struct Array {
    /// Its shape.
    pub shape: ArrayShape,
    /// Which argument of the kernel it is.
    pub argument: u32,
    /// Bytes in it before the first element.
    pub offset: u64,
    /// Whether it is written in loops where it is read.
    pub written: bool,
}

/// What an array leaf of an instruction is, if it is not computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// In memory: a place in [`Expr::arrays`].
    Array(u32),
    /// A node, the same at every index.
    Node(NodeId),
    /// A node at one index, a place in `places`.
    NodeAt(NodeId, u32),
}

/// An array leaf of an instruction at an index.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    frame: u32,
    instr: InstrId,
    leaf: u32,
    index: Index,
    guard: GuardId,
}

/// A computation that is being looked into: how its parameters are found.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Frame {
    /// The instruction that calls it and the frame that that is in; none of the outermost.
    caller: Option<(u32, InstrId)>,
    /// For `map`: the index of the element that it is applied to.
    at: Option<Index>,
}

/// The most nodes of an expression.
const MAX_NODES: usize = 200_000;

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr<'m> {
    /// Where the instructions are.
    pub module: &'m Module,
    /// Variables and what is made of them.
    pub space: Space,
    /// Operations, operands first.
    pub nodes: Vec<Node>,
    /// Sets of conditions.
    pub guards: Vec<SmallVec<[Condition; 2]>>,
    /// Arrays in memory.
    pub arrays: Vec<Array>,
    bound: FxHashMap<(u32, InstrId, u32), Bound>,
    known: FxHashMap<Key, NodeId>,
    frames: Vec<Frame>,
    missing: Vec<Key>,
    places: Vec<Index>,
}

/// The array shape of a leaf.
pub fn leaf_shape(shape: &Shape, leaf: u32) -> Option<&ArrayShape> {
    if let Shape::Array(a) = shape {
        return (leaf == 0).then_some(a);
    }
    array_leaves(shape).nth(leaf as usize)
}

/// The array leaves of a shape, in order.
pub fn array_leaves(shape: &Shape) -> impl Iterator<Item = &ArrayShape> {
    shape.leaves().into_iter().filter_map(Shape::as_array)
}

fn dims_of(module: &Module, id: InstrId) -> &[i64] {
    module.instr(id).shape.as_array().map_or(&[], |a| &a.dims)
}

impl<'m> Expr<'m> {
    /// An empty one.
    pub fn new(module: &'m Module) -> Self {
        Self {
            module,
            space: Space::default(),
            nodes: Vec::new(),
            guards: vec![SmallVec::new()],
            arrays: Vec::new(),
            bound: FxHashMap::default(),
            known: FxHashMap::default(),
            frames: vec![Frame { caller: None, at: None }],
            missing: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Says what a leaf of an instruction is.
    pub fn bind(&mut self, instr: InstrId, leaf: u32, what: Bound) {
        self.bound.insert((0, instr, leaf), what);
    }

    /// Says what node a leaf of an instruction is at one index, the only one at which it may be asked for.
    pub fn bind_at(&mut self, instr: InstrId, leaf: u32, node: NodeId, at: &[Affine]) {
        let place = self.places.iter().position(|p| p[..] == *at).unwrap_or_else(|| {
            self.places.push(at.into());
            self.places.len() - 1
        });
        self.bound.insert((0, instr, leaf), Bound::NodeAt(node, place as u32));
    }

    /// An array in memory.
    pub fn array(&mut self, shape: &ArrayShape, argument: u32) -> u32 {
        self.arrays.push(Array { shape: shape.clone(), argument, offset: 0, written: false });
        self.arrays.len() as u32 - 1
    }

    /// A value that emission provides.
    pub fn given(&mut self, number: u32, ty: ElementType) -> NodeId {
        self.push(Op::Given { number }, ty)
    }

    /// Adds an operation.
    pub fn push(&mut self, op: Op, ty: ElementType) -> NodeId {
        self.nodes.push(Node { op, ty });
        self.nodes.len() as u32 - 1
    }

    /// A node as another type.
    pub fn convert(&mut self, node: NodeId, ty: ElementType) -> NodeId {
        if self.nodes[node as usize].ty == ty {
            return node;
        }
        self.push(Op::Convert { operand: node }, ty)
    }

    /// The integer of a float, in a type of as many bits, for its greatest or least among others.
    pub fn order(&mut self, node: NodeId, ty: ElementType, least: bool) -> NodeId {
        self.push(Op::Order { operand: node, least }, ty)
    }

    /// The float of a type that [`Expr::order`] made an integer of.
    pub fn unorder(&mut self, node: NodeId, ty: ElementType, least: bool) -> NodeId {
        self.push(Op::Unorder { operand: node, least }, ty)
    }

    /// The node of an array leaf of an instruction (of the outermost computation) at an index.
    pub fn node(&mut self, instr: InstrId, leaf: u32, index: &[Affine]) -> Result<NodeId, Unsupported> {
        self.build(Key { frame: 0, instr, leaf, index: Index::from(index), guard: ALWAYS })
    }

    /// The nodes of the results of a computation of scalars applied to nodes.
    pub fn apply(
        &mut self,
        computation: hlo::ComputationId,
        arguments: &[NodeId],
    ) -> Result<Vec<NodeId>, Unsupported> {
        self.frames.push(Frame { caller: None, at: None });
        let frame = self.frames.len() as u32 - 1;
        let parameters = self.module.computation(computation).parameters();
        for (p, &argument) in parameters.iter().flatten().zip(arguments) {
            self.bound.insert((frame, *p, 0), Bound::Node(argument));
        }
        let root = self.module.root(computation);
        let n = array_leaves(&self.module.instr(root).shape).count() as u32;
        (0..n)
            .map(|leaf| self.build(Key { frame, instr: root, leaf, index: Index::new(), guard: ALWAYS }))
            .collect()
    }

    fn build(&mut self, key: Key) -> Result<NodeId, Unsupported> {
        let first = key.clone();
        let mut pending = vec![key];
        while let Some(key) = pending.last() {
            if self.known.contains_key(key) {
                pending.pop();
                continue;
            }
            let key = key.clone();
            self.missing.clear();
            match self.step(&key)? {
                Some(node) => {
                    self.known.insert(key, node);
                    pending.pop();
                }
                None => pending.append(&mut self.missing),
            }
            if self.nodes.len() + pending.len() > MAX_NODES {
                return Err(Unsupported::new(
                    self.module,
                    first.instr,
                    "a fused expression of too many operations",
                ));
            }
        }
        Ok(self.known[&first])
    }

    /// A guard with more conditions; `None` if it never holds.
    pub fn guard(&mut self, base: GuardId, more: &[Condition]) -> Option<GuardId> {
        let mut all = self.guards[base as usize].clone();
        for c in more {
            let (low, high) = self.space.range(&c.value);
            if high < c.low || low >= c.high {
                return None;
            }
            if (low < c.low || high >= c.high) && !all.contains(c) {
                all.push(c.clone());
            }
        }
        if let Some(i) = self.guards.iter().position(|g| *g == all) {
            return Some(i as u32);
        }
        self.guards.push(all);
        Some(self.guards.len() as u32 - 1)
    }

    fn get(&mut self, key: Key) -> Option<NodeId> {
        if let Some(&node) = self.known.get(&key) {
            return Some(node);
        }
        self.missing.push(key);
        None
    }

    /// All nodes, or none of them and what is missing asked for.
    fn get_all(&mut self, keys: impl IntoIterator<Item = Key>) -> Option<SmallVec<[NodeId; 3]>> {
        let found: Vec<Option<NodeId>> = keys.into_iter().map(|k| self.get(k)).collect();
        found.into_iter().collect()
    }

    /// A node of a type that a result must have; floats of other types (mixed precision) are converted.
    fn typed(&mut self, node: Option<NodeId>, ty: ElementType) -> Option<NodeId> {
        let node = node?;
        let is = self.nodes[node as usize].ty;
        Some(if is != ty && is.is_float() && ty.is_float() { self.convert(node, ty) } else { node })
    }

    fn frame(&mut self, frame: Frame) -> u32 {
        if let Some(i) = self.frames.iter().skip(1).position(|f| *f == frame && f.caller.is_some()) {
            return i as u32 + 1;
        }
        self.frames.push(frame);
        self.frames.len() as u32 - 1
    }

    /// The node of a key, or `None` if others were asked for that it needs.
    #[expect(clippy::too_many_lines, reason = "an arm an opcode")]
    fn step(&mut self, key: &Key) -> Result<Option<NodeId>, Unsupported> {
        let module = self.module;
        let id = key.instr;
        let instr = module.instr(id);
        let refuse = |reason: &str| Err(Unsupported::new(module, id, reason));
        let Some(shape) = leaf_shape(&instr.shape, key.leaf) else {
            return refuse("a value that is no array in a fused expression");
        };
        if shape.is_dynamic() {
            return refuse("dimensions of run-time sizes");
        }
        let ty = shape.element_type;
        match self.bound.get(&(key.frame, id, key.leaf)) {
            Some(&Bound::Node(node)) => return Ok(Some(node)),
            Some(&Bound::NodeAt(node, place)) if self.places[place as usize] == key.index => {
                return Ok(Some(node));
            }
            Some(&Bound::NodeAt(..)) => {
                return refuse("a reduction's result at another place than where it is made");
            }
            Some(&Bound::Array(array)) => {
                let at = self.space.linear(&key.index, &shape.dims);
                return Ok(Some(self.push(Op::Load { array, at, guard: key.guard }, ty)));
            }
            None => {}
        }
        let operands = instr.operands();
        let operand = |i: usize, index: Index| Key { instr: operands[i], leaf: 0, index, ..key.clone() };
        let dims = |i: usize| dims_of(module, operands[i]);
        let moved = |t: &mut Self, index: Index| {
            let node = t.get(operand(0, index));
            Ok(t.typed(node, ty))
        };
        if instr.opcode.is_elementwise() {
            let keys = operands.iter().map(|&o| {
                // Predicates of select and bounds of clamp may be scalars.
                let scalar = dims_of(module, o).is_empty();
                let index = if scalar { Index::new() } else { key.index.clone() };
                Key { instr: o, leaf: 0, index, ..key.clone() }
            });
            let Some(mut nodes) = self.get_all(keys) else { return Ok(None) };
            let keeps_types = matches!(
                instr.opcode,
                Opcode::Convert | Opcode::StochasticConvert | Opcode::Compare | Opcode::IsFinite
            );
            if !keeps_types {
                for node in &mut nodes {
                    *node = self.typed(Some(*node), ty).unwrap_or(*node);
                }
            }
            return Ok(Some(self.push(Op::Elementwise { instr: id, operands: nodes }, ty)));
        }
        match instr.opcode {
            Opcode::Parameter => {
                let Some((frame, caller)) = self.frames[key.frame as usize].caller else {
                    return refuse("a parameter that is not given");
                };
                let number = instr.parameter_number().and_then(|n| usize::try_from(n).ok());
                let Some(&of) = number.and_then(|n| module.instr(caller).operands().get(n)) else {
                    return refuse("a parameter that is not given");
                };
                let index = self.frames[key.frame as usize].at.clone().unwrap_or_else(|| key.index.clone());
                let node = self.get(Key { frame, instr: of, index, ..key.clone() });
                Ok(self.typed(node, ty))
            }
            Opcode::Constant => {
                let at = self.space.linear(&key.index, &shape.dims);
                Ok(Some(self.push(Op::Constant { instr: id, at }, ty)))
            }
            Opcode::Iota => {
                let d = instr.attrs.int(AttrKey::IotaDimension).and_then(|d| usize::try_from(d).ok());
                let Some(value) = d.and_then(|d| key.index.get(d)).cloned() else {
                    return refuse("a dimension that does not exist");
                };
                Ok(Some(self.push(Op::Iota { value }, ty)))
            }
            Opcode::Tuple => {
                let mut leaf = key.leaf;
                for &o in operands {
                    let n = array_leaves(&module.instr(o).shape).count() as u32;
                    if leaf < n {
                        return Ok(self.get(Key { instr: o, leaf, ..key.clone() }));
                    }
                    leaf -= n;
                }
                refuse("an element that does not exist")
            }
            Opcode::GetTupleElement => {
                let before = first_leaf(module, id);
                Ok(self.get(Key { instr: operands[0], leaf: key.leaf + before, ..key.clone() }))
            }
            Opcode::OptBarrier | Opcode::Domain | Opcode::AddDependency => {
                Ok(self.get(Key { instr: operands[0], ..key.clone() }))
            }
            Opcode::Copy => moved(self, key.index.clone()),
            Opcode::Call | Opcode::Fusion | Opcode::Map => {
                let attr = if instr.opcode == Opcode::Fusion { AttrKey::Calls } else { AttrKey::ToApply };
                let Some(callee) = instr.attrs.computation(attr) else { return refuse("nothing to call") };
                let map = instr.opcode == Opcode::Map;
                let at = map.then(|| key.index.clone());
                let frame = self.frame(Frame { caller: Some((key.frame, id)), at });
                let index = if map { Index::new() } else { key.index.clone() };
                let node = self.get(Key { frame, instr: module.root(callee), index, ..key.clone() });
                Ok(self.typed(node, ty))
            }
            Opcode::Broadcast => {
                let mapping = instr.attrs.ints_or_empty(AttrKey::Dimensions);
                let index = mapping.iter().zip(dims(0)).map(|(&d, &n)| match key.index.get(d as usize) {
                    Some(x) if n != 1 => x.clone(),
                    _ => Affine::default(),
                });
                moved(self, index.collect())
            }
            Opcode::Reshape => {
                let index = self.space.reshape(&key.index, &shape.dims, dims(0));
                moved(self, index)
            }
            Opcode::Bitcast => {
                let of = module.instr(operands[0]).shape.expect_array();
                if of.element_type != ty || of.elements() != shape.elements() {
                    return refuse("a bitcast between types");
                }
                let index = self.space.reshape(&key.index, &shape.dims, dims(0));
                moved(self, index)
            }
            Opcode::Transpose => {
                let permutation = instr.attrs.ints_or_empty(AttrKey::Dimensions);
                let mut index: Index = dims(0).iter().map(|_| Affine::default()).collect();
                for (x, &d) in key.index.iter().zip(permutation) {
                    index[d as usize] = x.clone();
                }
                moved(self, index)
            }
            Opcode::Slice => {
                let slices = instr.attrs.slices().unwrap_or(&[]);
                let index = key.index.iter().zip(slices).map(|(x, s)| x.times(s.stride).plus(s.start));
                moved(self, index.collect())
            }
            Opcode::Reverse => {
                let reversed = instr.attrs.ints_or_empty(AttrKey::Dimensions);
                let index = key.index.iter().enumerate().map(|(d, x)| {
                    if reversed.contains(&(d as i64)) {
                        x.times(-1).plus(shape.dims[d] - 1)
                    } else {
                        x.clone()
                    }
                });
                moved(self, index.collect())
            }
            Opcode::Dot => self.products(key, ty),
            Opcode::Reduce => self.few_terms(key, ty),
            Opcode::ReduceWindow => self.few_positions(key, ty),
            Opcode::Pad => self.pad(key, ty),
            Opcode::Concatenate => self.concatenate(key, ty),
            Opcode::DynamicSlice => {
                let Some(starts) = self.starts(key, 1, dims(0), &shape.dims) else { return Ok(None) };
                let index = key.index.iter().zip(&starts).map(|(x, s)| self.space.add(x, s)).collect();
                moved(self, index)
            }
            Opcode::DynamicUpdateSlice => {
                let window: SmallVec<[i64; 4]> = dims(1).into();
                let Some(starts) = self.starts(key, 2, &shape.dims, &window) else { return Ok(None) };
                let mut inside = Vec::new();
                let mut index = Index::new();
                for ((x, s), &n) in key.index.iter().zip(&starts).zip(&window) {
                    let value = self.space.add(x, &s.times(-1));
                    inside.push(Condition { value: value.clone(), low: 0, high: n });
                    index.push(value);
                }
                let Some(guard) = self.guard(key.guard, &inside).filter(|_| !window.contains(&0)) else {
                    return moved(self, key.index.clone());
                };
                let yes = self.get(Key { guard, ..operand(1, index) });
                let no = self.get(operand(0, key.index.clone()));
                Ok(self.selection(guard, yes, no, ty))
            }
            Opcode::Gather => self.gather(key, ty),
            Opcode::BitcastConvert => {
                let from = module.instr(operands[0]).shape.expect_array();
                let (wide, narrow) = (from.element_type.bits(), ty.bits());
                let rank = key.index.len();
                if wide == narrow {
                    let Some(operand) = self.get(operand(0, key.index.clone())) else { return Ok(None) };
                    Ok(Some(self.push(Op::Bits { operand }, ty)))
                } else if wide > narrow {
                    let Some((part, index)) = key.index.split_last() else {
                        return refuse("no dimension for parts");
                    };
                    let Some(whole) = self.get(operand(0, index.into())) else { return Ok(None) };
                    Ok(Some(self.push(Op::Unpack { whole, part: part.clone() }, ty)))
                } else {
                    let parts = from.dims.get(rank).copied().unwrap_or(0);
                    let keys = (0..parts).map(|p| {
                        let index = key.index.iter().cloned().chain([Affine::constant(p)]).collect();
                        operand(0, index)
                    });
                    let Some(parts) = self.get_all(keys.collect::<Vec<_>>()) else { return Ok(None) };
                    Ok(Some(self.push(Op::Pack { parts: parts.to_vec() }, ty)))
                }
            }
            other => refuse(&format!("{} in a fused expression", other.name())),
        }
    }

    /// The literal of a constant of the expr.
    pub fn literal(&self, instr: InstrId) -> Option<Arc<hlo::Literal>> {
        let instr = self.module.instr(instr);
        match instr.attrs.constant_value()? {
            hlo::ConstantValue::Given(literal) => Some(literal.clone()),
            hlo::ConstantValue::Elided => {
                hlo::elided::elided_literal(&instr.name, &instr.shape).map(Arc::new)
            }
        }
    }
}

/// The instruction that a leaf of a root is, through tuples.
pub fn leaf_root(module: &Module, root: InstrId, leaf: u32) -> (InstrId, u32) {
    let (mut at, mut leaf) = (root, leaf);
    while module.instr(at).opcode == Opcode::Tuple {
        let mut next = None;
        for &o in module.instr(at).operands() {
            let n = array_leaves(&module.instr(o).shape).count() as u32;
            if leaf < n {
                next = Some(o);
                break;
            }
            leaf -= n;
        }
        match next {
            Some(o) => at = o,
            None => break,
        }
    }
    (at, leaf)
}

/// Whether a leaf of an instruction is leaf `which` of a parameter, through tuples and their elements.
pub fn is_leaf_of(module: &Module, instr: InstrId, leaf: u32, parameter: InstrId, which: u32) -> bool {
    let (mut at, mut leaf) = (instr, leaf);
    loop {
        (at, leaf) = leaf_root(module, at, leaf);
        match module.instr(at).opcode {
            Opcode::GetTupleElement => {
                leaf += first_leaf(module, at);
                at = module.instr(at).operands()[0];
            }
            _ => return at == parameter && leaf == which,
        }
    }
}

/// The first leaf, among those of the operand, of a `get-tuple-element`.
pub fn first_leaf(module: &Module, id: InstrId) -> u32 {
    let instr = module.instr(id);
    let index = instr.attrs.int(AttrKey::Index).and_then(|i| usize::try_from(i).ok()).unwrap_or(0);
    let elements = instr.operands().first().and_then(|&o| module.instr(o).shape.as_tuple()).unwrap_or(&[]);
    elements.iter().take(index).map(|s| array_leaves(s).count() as u32).sum()
}
