//! The expression IR: the elements of a fusion as a DAG of operations on symbolic indices.
//!
//! [`Expr::node`] asks for an instruction at an index. Movement operations (slice, transpose, pad, gather,
//! ...) are composed into the indices of what they move, so what remains is loads, iota, elementwise
//! operations, and selections guarded by conditions on indices (padding, concatenation). Analyses (which
//! dimensions can be collapsed, what is read, what it costs) and emission of every back end read the same IR.
//!
//! **Invariants:** an operation comes after its operands and after the values in its indices; equal
//! instructions at equal indices are one node (hash consing); memory is read only where the guard of the load
//! holds.

mod analysis;
pub mod fold;
pub mod index;
mod magnitude;
mod movement;
pub mod scatter;
mod short_folds;

use std::sync::Arc;

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, ElementType, InstrId, Module, Opcode, Shape};
use hlo_library_base::Unsupported;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use self::index::{Affine, Index, Space};
pub use magnitude::Magnitude;

/// An index into [`Expr::nodes`].
pub type NodeId = u32;

/// A conjunction of conditions, an index into [`Expr::guards`]; 0 is the empty one.
pub type GuardId = u32;

/// The guard that always holds.
pub const ALWAYS: GuardId = 0;

/// A range check: `low <= value < high`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Condition {
    /// The index expression that is checked.
    pub value: Affine,
    /// The lower bound, inclusive.
    pub low: i64,
    /// The upper bound, exclusive.
    pub high: i64,
}

/// The operation of a node.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the line of a variant says what its fields are")]
pub enum Op {
    /// An element of an array in memory, by its row-major offset, read only where the guard holds.
    Load { array: u32, at: Affine, guard: GuardId },
    /// An element of a constant, by its row-major offset.
    Constant { instr: InstrId, at: Affine },
    /// An index as a number of the node's type.
    Iota { value: Affine },
    /// An elementwise instruction.
    Elementwise { instr: InstrId, operands: SmallVec<[NodeId; 3]> },
    /// Conversion to the node's element type, as HLO's `convert`.
    Convert { operand: NodeId },
    /// The signed integer key that orders as a float does (`scalar::extreme_key`), for a minimum or maximum.
    ToOrderedInt { operand: NodeId, least: bool },
    /// The float of such a key: the inverse of [`Op::ToOrderedInt`].
    FromOrderedInt { operand: NodeId, least: bool },
    /// `yes` where the guard holds, `no` elsewhere.
    Select { guard: GuardId, yes: NodeId, no: NodeId },
    /// The bits as another type of the same width.
    BitcastConvert { operand: NodeId },
    /// Several narrower elements as one wider element, the low bits first.
    Pack { parts: Vec<NodeId> },
    /// A sum of products: factors are pairs, summed in order.
    SumOfProducts { factors: Vec<NodeId> },
    /// The sum of two floats.
    Sum { terms: [NodeId; 2] },
    /// Part of the bits of a wider element.
    Unpack { whole: NodeId, part: Affine },
    /// An external value that emission provides: an accumulator, a parameter of a region.
    Given { number: u32 },
}

/// An operation and its element type.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// The element type of the result.
    pub ty: ElementType,
}

/// An array in memory.
#[derive(Clone, Debug)]
pub struct Array {
    /// Its shape.
    pub shape: ArrayShape,
    /// The number of the kernel's argument that holds it.
    pub argument: u32,
    /// Offset of the first element in that argument, in bytes.
    pub offset: u64,
    /// Whether the loops that read it also write it.
    pub written: bool,
}

/// What an array leaf of an instruction is bound to, instead of being computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// An array in memory: an index into [`Expr::arrays`].
    Array(u32),
    /// A node, the same at every index.
    Node(NodeId),
    /// A node that is valid at one index: an index into `indices`.
    NodeAt(NodeId, u32),
}

/// The key of a node: an array leaf of an instruction, at an index, under a guard.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    frame: u32,
    instr: InstrId,
    leaf: u32,
    index: Index,
    guard: GuardId,
}

/// An inlined call: how the parameters of its computation are resolved.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Frame {
    /// The calling instruction and its frame; `None` for the outermost computation.
    caller: Option<(u32, InstrId)>,
    /// For `map`: the index of the element that it is applied to.
    at: Option<Index>,
}

/// The maximum number of nodes of an expression.
const MAX_NODES: usize = 200_000;

/// An expression under construction, or complete: the DAG, its index space, and the arrays that it reads.
#[derive(Clone, Debug)]
pub struct Expr<'m> {
    /// The module of the instructions.
    pub module: &'m Module,
    /// Loop variables, and the atoms made of them.
    pub space: Space,
    /// Operations, operands first.
    pub nodes: Vec<Node>,
    /// Conjunctions of conditions, by [`GuardId`].
    pub guards: Vec<SmallVec<[Condition; 2]>>,
    /// Arrays in memory.
    pub arrays: Vec<Array>,
    bound: FxHashMap<(u32, InstrId, u32), Bound>,
    known: FxHashMap<Key, NodeId>,
    frames: Vec<Frame>,
    missing: Vec<Key>,
    indices: Vec<Index>,
}

/// The array shape of a leaf of a shape.
pub fn leaf_shape(shape: &Shape, leaf: u32) -> Option<&ArrayShape> {
    if let Shape::Array(a) = shape {
        return (leaf == 0).then_some(a);
    }
    array_leaves(shape).nth(leaf as usize)
}

/// The array leaves of a shape, depth first.
pub fn array_leaves(shape: &Shape) -> impl Iterator<Item = &ArrayShape> {
    shape.leaves().into_iter().filter_map(Shape::as_array)
}

fn dims_of(module: &Module, id: InstrId) -> &[i64] {
    module.instr(id).shape.as_array().map_or(&[], |a| &a.dims)
}

impl<'m> Expr<'m> {
    /// An empty expression.
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
            indices: Vec::new(),
        }
    }

    /// Binds a leaf of an instruction.
    pub fn bind(&mut self, instr: InstrId, leaf: u32, what: Bound) {
        self.bound.insert((0, instr, leaf), what);
    }

    /// Binds a leaf of an instruction to a node at one index, the only index at which it may then be asked
    /// for.
    pub fn bind_at(&mut self, instr: InstrId, leaf: u32, node: NodeId, at: &[Affine]) {
        let slot = self.indices.iter().position(|p| p[..] == *at).unwrap_or_else(|| {
            self.indices.push(at.into());
            self.indices.len() - 1
        });
        self.bound.insert((0, instr, leaf), Bound::NodeAt(node, slot as u32));
    }

    /// Adds an array in memory: argument `argument` of the kernel.
    pub fn array(&mut self, shape: &ArrayShape, argument: u32) -> u32 {
        self.arrays.push(Array { shape: shape.clone(), argument, offset: 0, written: false });
        self.arrays.len() as u32 - 1
    }

    /// Adds a value that emission provides ([`Op::Given`]).
    pub fn given(&mut self, number: u32, ty: ElementType) -> NodeId {
        self.push(Op::Given { number }, ty)
    }

    /// Adds a node.
    pub fn push(&mut self, op: Op, ty: ElementType) -> NodeId {
        self.nodes.push(Node { op, ty });
        self.nodes.len() as u32 - 1
    }

    /// A node converted to another type.
    pub fn convert(&mut self, node: NodeId, ty: ElementType) -> NodeId {
        if self.nodes[node as usize].ty == ty {
            return node;
        }
        self.push(Op::Convert { operand: node }, ty)
    }

    /// The order-preserving integer key of a float, in a type of the same width, for a minimum or maximum.
    pub fn ordered_key(&mut self, node: NodeId, ty: ElementType, least: bool) -> NodeId {
        self.push(Op::ToOrderedInt { operand: node, least }, ty)
    }

    /// The float of an integer key made by [`Expr::ordered_key`].
    pub fn float_of_key(&mut self, node: NodeId, ty: ElementType, least: bool) -> NodeId {
        self.push(Op::FromOrderedInt { operand: node, least }, ty)
    }

    /// The node of an array leaf of an instruction (of the outermost computation) at an index.
    pub fn node(&mut self, instr: InstrId, leaf: u32, index: &[Affine]) -> Result<NodeId, Unsupported> {
        self.build(Key { frame: 0, instr, leaf, index: Index::from(index), guard: ALWAYS })
    }

    /// The result nodes of a scalar computation applied to argument nodes.
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

    /// A guard with more conditions; `None` if it never holds. Conditions that always hold are dropped.
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

    /// All nodes, or `None` after the missing ones were requested.
    fn get_all(&mut self, keys: impl IntoIterator<Item = Key>) -> Option<SmallVec<[NodeId; 3]>> {
        let found: Vec<Option<NodeId>> = keys.into_iter().map(|k| self.get(k)).collect();
        found.into_iter().collect()
    }

    /// A node converted to the type that a result must have, if both are float types (mixed precision).
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

    /// Builds the node of a key, or requests the nodes that it needs first and returns `None`.
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
            Some(&Bound::NodeAt(node, slot)) if self.indices[slot as usize] == key.index => {
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
                // The predicate of a select and the bounds of a clamp may be scalars.
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
            Opcode::Reduce => self.short_reduction_len(key, ty),
            Opcode::ReduceWindow => self.small_window_len(key, ty),
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
                    Ok(Some(self.push(Op::BitcastConvert { operand }, ty)))
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

    /// The literal of a constant.
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

/// The instruction and leaf that a leaf of a root stands for, looking through tuples.
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

/// Whether a leaf of an instruction is leaf `which` of a parameter, looking through tuples and
/// get-tuple-element.
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

/// The leaf of the operand at which the result of a `get-tuple-element` begins.
pub fn first_leaf(module: &Module, id: InstrId) -> u32 {
    let instr = module.instr(id);
    let index = instr.attrs.int(AttrKey::Index).and_then(|i| usize::try_from(i).ok()).unwrap_or(0);
    let elements = instr.operands().first().and_then(|&o| module.instr(o).shape.as_tuple()).unwrap_or(&[]);
    elements.iter().take(index).map(|s| array_leaves(s).count() as u32).sum()
}
