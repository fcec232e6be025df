//! Building the wrong instructions beside the one that they replace.
//!
//! **Invariants:** nothing is added that shape inference refuses; what was added is taken back unless it is
//! used in the end, so that a rewriting may give up at any point by returning `None`.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue, Direction, PaddingDim, SliceDim};
use hlo::builder::ComputationBuilder;
use hlo::infer::InferError;
use hlo::{
    ArrayLiteral, ArrayShape, Attrs, BufferOf, ComputationId, ConstantValue, Dims, ElementType, InstrId,
    Instruction, Literal, Module, NewInstruction, Opcode, Shape, with_element_type,
};
use rustc_hash::FxHashMap;

use hlo_execution::element::Number;

/// A rewriting of one instruction: returns the replacement. `None`: it does not apply.
pub(super) type Rewrite = fn(&mut Edit<'_>) -> Option<InstrId>;

/// The neighbourhood of an instruction that may be rewritten.
pub(super) struct Edit<'m> {
    module: &'m mut Module,
    /// The instruction.
    at: InstrId,
    /// New instructions go after this one.
    last: InstrId,
    added: Vec<InstrId>,
    computations: Vec<ComputationId>,
    fused: bool,
}

/// Integers as an attribute.
pub(super) fn ints(values: &[i64]) -> AttrValue {
    AttrValue::Ints(values.into())
}

impl<'m> Edit<'m> {
    pub(super) fn new(module: &'m mut Module, at: InstrId, fused: bool) -> Self {
        Self { module, at, last: at, added: Vec::new(), computations: Vec::new(), fused }
    }

    // ---- what is there

    /// The module.
    pub(super) fn module(&self) -> &Module {
        self.module
    }

    /// The instruction that may be rewritten.
    pub(super) fn at(&self) -> InstrId {
        self.at
    }

    /// The same, to look at.
    pub(super) fn me(&self) -> &Instruction {
        self.module.instr(self.at)
    }

    /// Any instruction.
    pub(super) fn instr(&self, id: InstrId) -> &Instruction {
        self.module.instr(id)
    }

    /// Its attributes, to change a copy of.
    pub(super) fn attrs(&self) -> Attrs {
        self.me().attrs.clone()
    }

    /// Its operands.
    pub(super) fn operands(&self) -> Vec<InstrId> {
        self.me().operands().to_vec()
    }

    /// Whether it is in the computation of a fusion.
    pub(super) fn in_fusion(&self) -> bool {
        self.fused
    }

    /// `Some` if it is of this opcode.
    pub(super) fn is(&self, opcode: Opcode) -> Option<()> {
        (self.me().opcode == opcode).then_some(())
    }

    /// Its opcode, if it is one of these.
    pub(super) fn one_of(&self, opcodes: &[Opcode]) -> Option<Opcode> {
        let opcode = self.me().opcode;
        opcodes.contains(&opcode).then_some(opcode)
    }

    /// One operand.
    pub(super) fn operand(&self, n: usize) -> Option<InstrId> {
        self.me().operands().get(n).copied()
    }

    /// Both operands.
    pub(super) fn pair(&self) -> Option<(InstrId, InstrId)> {
        if let [a, b] = *self.me().operands() { Some((a, b)) } else { None }
    }

    /// The operands of `id`, if it is of this opcode.
    pub(super) fn operands_of(&self, id: InstrId, opcode: Opcode) -> Option<Vec<InstrId>> {
        let instr = self.module.instr(id);
        (instr.opcode == opcode).then(|| instr.operands().to_vec())
    }

    /// The shape of a static array.
    pub(super) fn array(&self, id: InstrId) -> Option<ArrayShape> {
        self.module.instr(id).shape.as_array().filter(|a| !a.is_dynamic()).map(ArrayShape::without_layout)
    }

    /// The shape of the instruction, a static array.
    pub(super) fn result(&self) -> Option<ArrayShape> {
        self.array(self.at)
    }

    /// The element type of a static array.
    pub(super) fn ty(&self, id: InstrId) -> Option<ElementType> {
        Some(self.array(id)?.element_type)
    }

    /// A static array of floats.
    pub(super) fn float(&self, id: InstrId) -> Option<ElementType> {
        self.ty(id).filter(|ty| ty.is_float())
    }

    /// A static array of floats that have infinities and NaN: f16, bf16, f32, f64.
    pub(super) fn wide_float(&self, id: InstrId) -> Option<ElementType> {
        self.float(id).filter(|ty| ty.bits() >= 16)
    }

    /// A static array of complex numbers.
    pub(super) fn complex(&self, id: InstrId) -> Option<ElementType> {
        self.ty(id).filter(|ty| ty.is_complex())
    }

    /// A static array of integers.
    pub(super) fn integer(&self, id: InstrId) -> Option<ElementType> {
        self.ty(id).filter(|ty| ty.is_integer())
    }

    /// The constant behind broadcasts, reshapes and copies, if all its elements have these bits in common.
    pub(super) fn splat_value(&self, mut id: InstrId) -> Option<u128> {
        while matches!(self.instr(id).opcode, Opcode::Broadcast | Opcode::Reshape | Opcode::Copy) {
            id = self.instr(id).operands()[0];
        }
        let Some(ConstantValue::Given(literal)) = self.instr(id).attrs.constant_value() else { return None };
        let array = literal.as_array()?;
        hlo::with_buffer!(&*array.buffer, v => {
            let mut bits = v.iter().map(|&e| hlo::Bits::bits(e));
            let first = bits.next()?;
            bits.all(|b| b == first).then_some(first)
        })
    }

    /// Whether every element of a value is this number, as far as constants say.
    pub(super) fn is_splat(&self, id: InstrId, value: f64) -> bool {
        let Some(ty) = self.ty(id) else { return false };
        let wanted = with_element_type!(ty, T => hlo::Bits::bits(<T as Number>::from_parts(value, 0.0)));
        self.splat_value(id) == Some(wanted)
    }

    // ---- adding

    /// An instruction whose shape follows.
    pub(super) fn add(&mut self, opcode: Opcode, operands: &[InstrId], attrs: Attrs) -> Option<InstrId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&o| &self.module.instr(o).shape).collect();
        let shape = hlo::infer::infer(self.module, opcode, &shapes, &attrs).ok()?;
        Some(self.push(opcode, shape, operands, attrs))
    }

    /// An instruction of a given shape.
    pub(super) fn shaped(
        &mut self,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> Option<InstrId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&o| &self.module.instr(o).shape).collect();
        hlo::infer::check(self.module, opcode, &shapes, &attrs, &shape).ok()?;
        Some(self.push(opcode, shape, operands, attrs))
    }

    fn push(&mut self, opcode: Opcode, shape: Shape, operands: &[InstrId], attrs: Attrs) -> InstrId {
        let name = self.module.unique_name(opcode.name());
        let new = NewInstruction { name, attrs, ..NewInstruction::new(opcode, shape, operands) };
        let parent = self.me().parent();
        let id = self.module.insert_after(parent, Some(self.last), new);
        self.last = id;
        self.added.push(id);
        id
    }

    /// The instruction once more, with other operands and attributes, of the same shape.
    pub(super) fn again(&mut self, operands: &[InstrId], attrs: Attrs) -> Option<InstrId> {
        let (opcode, shape) = (self.me().opcode, self.me().shape.clone());
        self.shaped(opcode, shape, operands, attrs)
    }

    /// The instruction once more, with other attributes.
    pub(super) fn with_attr(&mut self, key: AttrKey, value: AttrValue) -> Option<InstrId> {
        let (operands, attrs) = (self.operands(), self.attrs().with(key, value));
        self.again(&operands, attrs)
    }

    pub(super) fn un(&mut self, opcode: Opcode, x: InstrId) -> Option<InstrId> {
        self.add(opcode, &[x], Attrs::new())
    }

    pub(super) fn bin(&mut self, opcode: Opcode, a: InstrId, b: InstrId) -> Option<InstrId> {
        self.add(opcode, &[a, b], Attrs::new())
    }

    pub(super) fn compare(&mut self, direction: Direction, a: InstrId, b: InstrId) -> Option<InstrId> {
        let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
        self.add(Opcode::Compare, &[a, b], attrs)
    }

    pub(super) fn select(&mut self, p: InstrId, a: InstrId, b: InstrId) -> Option<InstrId> {
        self.add(Opcode::Select, &[p, a, b], Attrs::new())
    }

    /// A predicate array: which elements of a float array are NaN.
    pub(super) fn is_nan(&mut self, x: InstrId) -> Option<InstrId> {
        self.compare(Direction::Ne, x, x)
    }

    pub(super) fn convert(&mut self, x: InstrId, ty: ElementType) -> Option<InstrId> {
        let shape = self.array(x)?.with_type(ty);
        self.shaped(Opcode::Convert, Shape::Array(shape), &[x], Attrs::new())
    }

    /// The same bits as a type of the same width.
    pub(super) fn bitcast(&mut self, x: InstrId, ty: ElementType) -> Option<InstrId> {
        let shape = self.array(x)?.with_type(ty);
        self.shaped(Opcode::BitcastConvert, Shape::Array(shape), &[x], Attrs::new())
    }

    pub(super) fn reshape(&mut self, x: InstrId, dims: &[i64]) -> Option<InstrId> {
        let ty = self.ty(x)?;
        self.shaped(Opcode::Reshape, Shape::array(ty, dims), &[x], Attrs::new())
    }

    /// All elements in one dimension.
    pub(super) fn flat(&mut self, x: InstrId) -> Option<InstrId> {
        let n = self.array(x)?.checked_elements()?;
        self.reshape(x, &[n])
    }

    pub(super) fn transpose(&mut self, x: InstrId, permutation: &[i64]) -> Option<InstrId> {
        self.add(Opcode::Transpose, &[x], Attrs::new().with(AttrKey::Dimensions, ints(permutation)))
    }

    pub(super) fn reverse(&mut self, x: InstrId, dims: &[i64]) -> Option<InstrId> {
        self.add(Opcode::Reverse, &[x], Attrs::new().with(AttrKey::Dimensions, ints(dims)))
    }

    pub(super) fn broadcast(&mut self, x: InstrId, dims: &[i64], mapping: &[i64]) -> Option<InstrId> {
        let ty = self.ty(x)?;
        let attrs = Attrs::new().with(AttrKey::Dimensions, ints(mapping));
        self.shaped(Opcode::Broadcast, Shape::array(ty, dims), &[x], attrs)
    }

    pub(super) fn slice(&mut self, x: InstrId, slices: &[SliceDim]) -> Option<InstrId> {
        let attrs = Attrs::new().with(AttrKey::Slice, AttrValue::Slices(slices.into()));
        self.add(Opcode::Slice, &[x], attrs)
    }

    /// Elements `start..limit` of one dimension.
    pub(super) fn cut(&mut self, x: InstrId, dim: usize, start: i64, limit: i64) -> Option<InstrId> {
        let mut slices: Vec<SliceDim> =
            self.array(x)?.dims.iter().map(|&d| SliceDim { start: 0, limit: d, stride: 1 }).collect();
        *slices.get_mut(dim)? = SliceDim { start, limit, stride: 1 };
        self.slice(x, &slices)
    }

    pub(super) fn pad(&mut self, x: InstrId, value: InstrId, padding: &[PaddingDim]) -> Option<InstrId> {
        let attrs = Attrs::new().with(AttrKey::Padding, AttrValue::Padding(padding.into()));
        self.add(Opcode::Pad, &[x, value], attrs)
    }

    pub(super) fn concatenate(&mut self, parts: &[InstrId], dim: i64) -> Option<InstrId> {
        self.add(Opcode::Concatenate, parts, Attrs::new().with(AttrKey::Dimensions, ints(&[dim])))
    }

    pub(super) fn tuple(&mut self, elements: &[InstrId]) -> Option<InstrId> {
        self.add(Opcode::Tuple, elements, Attrs::new())
    }

    pub(super) fn get(&mut self, tuple: InstrId, index: usize) -> Option<InstrId> {
        let attrs = Attrs::new().with(AttrKey::Index, AttrValue::Int(index as i64));
        self.add(Opcode::GetTupleElement, &[tuple], attrs)
    }

    // ---- constants

    pub(super) fn constant(&mut self, array: ArrayLiteral) -> InstrId {
        let shape = Shape::Array(array.shape());
        let value = AttrValue::Literal(ConstantValue::Given(Arc::new(Literal::Array(array))));
        self.push(Opcode::Constant, shape, &[], Attrs::new().with(AttrKey::ConstantValue, value))
    }

    /// A list of integers in an integer type, wrapped to it.
    pub(super) fn integers(&mut self, ty: ElementType, values: &[i128]) -> InstrId {
        let buffer = with_element_type!(ty, T => {
            <T as BufferOf>::wrap(values.iter().map(|&v| <T as Number>::from_i128(v)).collect())
        });
        self.constant(ArrayLiteral { dims: Dims::from_slice(&[values.len() as i64]), buffer: buffer.into() })
    }

    /// A scalar: of floats and complex numbers the nearest, of integers truncated and saturated.
    pub(super) fn scalar(&mut self, ty: ElementType, value: f64) -> InstrId {
        let buffer = with_element_type!(ty, T => {
            <T as BufferOf>::wrap(vec![<T as Number>::from_parts(value, 0.0)])
        });
        self.constant(ArrayLiteral { dims: Dims::new(), buffer: buffer.into() })
    }

    /// A scalar of an integer type, wrapped to it.
    pub(super) fn scalar_int(&mut self, ty: ElementType, value: i128) -> InstrId {
        let buffer =
            with_element_type!(ty, T => <T as BufferOf>::wrap(vec![<T as Number>::from_i128(value)]));
        self.constant(ArrayLiteral { dims: Dims::new(), buffer: buffer.into() })
    }

    /// A scalar broadcast to the dimensions of `like`.
    pub(super) fn spread(&mut self, scalar: InstrId, like: InstrId) -> Option<InstrId> {
        let dims = self.array(like)?.dims;
        if dims.is_empty() { Some(scalar) } else { self.broadcast(scalar, &dims, &[]) }
    }

    /// This number in the type and dimensions of `like`.
    pub(super) fn number(&mut self, like: InstrId, value: f64) -> Option<InstrId> {
        let ty = self.ty(like)?;
        let scalar = self.scalar(ty, value);
        self.spread(scalar, like)
    }

    /// This integer in the integer type and dimensions of `like`.
    pub(super) fn int(&mut self, like: InstrId, value: i128) -> Option<InstrId> {
        let ty = self.integer(like)?;
        let scalar = self.scalar_int(ty, value);
        self.spread(scalar, like)
    }

    // ---- computations

    /// A new computation.
    pub(super) fn region(
        &mut self,
        name: &str,
        build: impl FnOnce(&mut ComputationBuilder<'_>) -> Result<(), InferError>,
    ) -> Option<ComputationId> {
        let mut b = ComputationBuilder::new(self.module, name);
        let built = build(&mut b);
        let id = b.finish();
        self.computations.push(id);
        built.ok()?;
        // Callees come before callers.
        self.move_computation(id, None);
        Some(id)
    }

    /// A copy of a computation, each instruction as `change` leaves it. That gets the instruction that is
    /// copied, the copy, whose operands are copies, and all copies so far. `None` if a computation would be
    /// called twice that may not.
    pub(super) fn copy_of(
        &mut self,
        original: ComputationId,
        mut change: impl FnMut(InstrId, &mut NewInstruction, &FxHashMap<InstrId, InstrId>),
    ) -> Option<ComputationId> {
        let fuses = self.module.instructions(original).any(|id| self.instr(id).opcode == Opcode::Fusion);
        if fuses && callers(self.module, original) > 1 {
            return None;
        }
        let base = self.module.computation(original).name.clone();
        let name = self.module.unique_computation_name(&base);
        let span = self.module.computation(original).span;
        let copy = self.module.add_computation(name, span);
        self.computations.push(copy);
        let mut copies: FxHashMap<InstrId, InstrId> = FxHashMap::default();
        let ids: Vec<InstrId> = self.module.instructions(original).collect();
        for id in ids {
            let name = self.module.unique_name(&self.module.instr(id).name.clone());
            let instr = self.module.instr(id);
            if !instr.control_predecessors.is_empty() {
                return None;
            }
            let mut new = NewInstruction {
                opcode: instr.opcode,
                shape: instr.shape.clone(),
                name,
                operands: instr.operands().iter().map(|o| copies[o]).collect(),
                attrs: instr.attrs.clone(),
                span: instr.span,
            };
            change(id, &mut new, &copies);
            let shapes: Vec<&Shape> = new.operands.iter().map(|&o| &self.module.instr(o).shape).collect();
            hlo::infer::check(self.module, new.opcode, &shapes, &new.attrs, &new.shape).ok()?;
            copies.insert(id, self.module.append(copy, new));
        }
        let root = self.module.root(original);
        self.module.set_root(copy, copies[&root]);
        self.drop_unused(copy);
        self.move_computation(copy, Some(original));
        Some(copy)
    }

    /// A copy of a region whose root compares with another direction.
    pub(super) fn compared_with(
        &mut self,
        region: ComputationId,
        other: impl Fn(Direction) -> Direction,
    ) -> Option<ComputationId> {
        let compares = |m: &Module, id: InstrId| {
            m.instr(id).opcode == Opcode::Compare
                && m.instr(id).attrs.direction().is_some_and(|&d| other(d) != d)
        };
        self.module.instructions(region).any(|id| compares(self.module, id)).then_some(())?;
        self.copy_of(region, |_, new, _| {
            if new.opcode == Opcode::Compare
                && let Some(&d) = new.attrs.direction()
            {
                new.attrs.set(AttrKey::Direction, AttrValue::Direction(other(d)));
            }
        })
    }

    /// Moves the computation added last behind another one, or to the front.
    fn move_computation(&mut self, id: ComputationId, behind: Option<ComputationId>) {
        let mut order: Vec<ComputationId> =
            self.module.computations().iter().copied().filter(|&c| c != id).collect();
        let at = behind.and_then(|b| order.iter().position(|&c| c == b)).map_or(0, |i| i + 1);
        order.insert(at, id);
        self.module.set_computation_order(order);
    }

    /// The computation that an attribute names.
    pub(super) fn called(&self, key: AttrKey) -> Option<ComputationId> {
        self.me().attrs.computation(key)
    }

    /// The root of a computation of scalar parameters, if that applies one opcode to its first two
    /// parameters, in either order.
    pub(super) fn folds_with(&self, region: ComputationId) -> Option<Opcode> {
        let root = self.instr(self.module.root(region));
        let [a, b] = *root.operands() else { return None };
        let numbers = [a, b].map(|o| self.instr(o).parameter_number());
        (numbers == [Some(0), Some(1)] || numbers == [Some(1), Some(0)]).then_some(root.opcode)
    }

    fn drop_unused(&mut self, computation: ComputationId) {
        let ids: Vec<InstrId> = self.module.instructions(computation).collect();
        for id in ids.into_iter().rev() {
            drop_if_unused(self.module, id);
        }
    }

    // ---- the end

    /// Takes back everything that was added.
    pub(super) fn give_up(self) {
        for &id in self.added.iter().rev() {
            self.module.remove(id);
        }
        for &c in self.computations.iter().rev() {
            self.module.remove_computation(c);
        }
    }

    /// The replacement of the instruction as a new instruction: a copy of what was there before.
    pub(super) fn as_new(&mut self, id: InstrId) -> Option<InstrId> {
        if self.added.contains(&id) { Some(id) } else { self.un(Opcode::Copy, id) }
    }

    /// Replaces the instruction by `new`, with its name, span and layout. What nothing uses any more is
    /// removed.
    pub(super) fn settle(self, new: InstrId, users: &[hlo::Use], was_root: bool) {
        let module = self.module;
        let old = self.at;
        for u in users {
            module.set_operand(u.user, u.operand as usize, new);
        }
        let parent = module.instr(old).parent();
        if was_root {
            module.set_root(parent, new);
        }
        let before = module.instr(old).clone();
        let other = module.unique_name(&before.name);
        module.instr_mut(old).name = other;
        let instr = module.instr_mut(new);
        (instr.name, instr.span, instr.shape) = (before.name, before.span, before.shape);
        for &id in self.added.iter().rev() {
            drop_if_unused(module, id);
        }
        let mut pending = vec![old];
        while let Some(id) = pending.pop() {
            if module.is_removed(id) {
                continue;
            }
            let operands = module.instr(id).operands().to_vec();
            if drop_if_unused(module, id) {
                pending.extend(operands);
            }
        }
        // What was copied goes, so that fusions in it belong to the copy alone.
        if !self.computations.is_empty() {
            for c in before.attrs.called_computations() {
                if callers(module, c) == 0 {
                    module.remove_computation(c);
                }
            }
        }
    }
}

/// The number of instructions that call a computation.
fn callers(module: &Module, computation: ComputationId) -> usize {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.filter(|&id| module.instr(id).attrs.called_computations().contains(&computation)).count()
}

/// Removes an instruction that nothing needs.
fn drop_if_unused(module: &mut Module, id: InstrId) -> bool {
    if module.is_removed(id) {
        return false;
    }
    let instr = module.instr(id);
    let needed = !module.users(id).is_empty()
        || module.root(instr.parent()) == id
        || instr.opcode == Opcode::Parameter
        || instr.opcode.flags().side_effect
        || instr.opcode.flags().collective;
    if !needed {
        module.remove(id);
    }
    !needed
}

/// The other kind of comparison: with or without equality.
pub(super) fn other_strictness(direction: Direction) -> Direction {
    match direction {
        Direction::Lt => Direction::Le,
        Direction::Le => Direction::Lt,
        Direction::Gt => Direction::Ge,
        Direction::Ge => Direction::Gt,
        Direction::Eq => Direction::Eq,
        Direction::Ne => Direction::Ne,
    }
}

/// Whether a comparison is by the total order of floats.
pub(super) fn is_total(attrs: &Attrs) -> bool {
    attrs.is_total_order()
}

/// The signed type of the width of an unsigned one, or the other way round.
pub(super) fn other_sign(ty: ElementType) -> Option<ElementType> {
    const PAIRS: [(ElementType, ElementType); 7] = [
        (ElementType::S1, ElementType::U1),
        (ElementType::S2, ElementType::U2),
        (ElementType::S4, ElementType::U4),
        (ElementType::S8, ElementType::U8),
        (ElementType::S16, ElementType::U16),
        (ElementType::S32, ElementType::U32),
        (ElementType::S64, ElementType::U64),
    ];
    PAIRS.iter().find_map(|&(s, u)| {
        if ty == s {
            Some(u)
        } else if ty == u {
            Some(s)
        } else {
            None
        }
    })
}
