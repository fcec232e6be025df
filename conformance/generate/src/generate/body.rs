//! A growing computation, and its pool of operands.

use hlo::builder::{Built, ComputationBuilder};
use hlo::{
    ArrayLiteral, ArrayShape, Attrs, BufferOf, ComputationId, Dims, ElementType, InstrId, Literal, Module,
    NewInstruction, Opcode, Shape, TypeClass,
};
use smallvec::SmallVec;

use super::{Generator, Limits, values};

/// Element types, the common ones first and more often.
const TYPES: &[ElementType] = &[
    ElementType::F32,
    ElementType::S32,
    ElementType::Pred,
    ElementType::F64,
    ElementType::BF16,
    ElementType::F16,
    ElementType::U32,
    ElementType::S64,
    ElementType::U8,
    ElementType::S8,
    ElementType::C64,
    ElementType::U64,
    ElementType::S16,
    ElementType::U16,
    ElementType::C128,
    ElementType::F8E5M2,
    ElementType::F8E4M3FN,
    ElementType::S4,
    ElementType::U4,
    ElementType::F8E4M3,
    ElementType::F8E4M3B11FNUZ,
    ElementType::F8E3M4,
    ElementType::F8E5M2FNUZ,
    ElementType::F8E4M3FNUZ,
    ElementType::F8E8M0FNU,
    ElementType::F4E2M1FN,
    ElementType::F6E3M2FN,
    ElementType::F6E2M3FN,
    ElementType::S2,
    ElementType::U2,
    ElementType::S1,
    ElementType::U1,
];

/// A computation that grows.
pub(super) struct Body {
    pub(super) id: ComputationId,
    /// The pool: values that instructions may use.
    values: Vec<InstrId>,
    /// Whether new parameters may be added.
    open: bool,
}

/// Parameters of an entry computation.
const MAX_PARAMETERS: usize = 6;

/// The number of latest values among which operands are looked for.
const RECENT_VALUES: usize = 32;

impl Body {
    /// The entry computation, which gets parameters on demand.
    pub(super) fn entry(module: &mut Module) -> Body {
        let id = ComputationBuilder::new(module, "main").finish();
        Body { id, values: Vec::new(), open: true }
    }

    /// A computation with these parameters.
    pub(super) fn with_parameters(module: &mut Module, name: &str, parameters: &[Shape]) -> Body {
        let mut b = ComputationBuilder::new(module, name);
        let values = parameters.iter().map(|shape| b.parameter("p", shape.clone())).collect();
        Body { id: b.finish(), values, open: false }
    }

    /// Adds a value to the pool.
    pub(super) fn add(&mut self, id: InstrId) {
        self.values.push(id);
    }

    /// The values so far.
    pub(super) fn values(&self) -> &[InstrId] {
        &self.values
    }

    /// The latest values.
    fn latest(&self) -> &[InstrId] {
        &self.values[self.values.len().saturating_sub(RECENT_VALUES)..]
    }

    /// Whether new parameters may be added.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }
}

impl Generator<'_> {
    /// A builder that continues a computation.
    pub(super) fn at(&mut self, body: &Body) -> ComputationBuilder<'_> {
        ComputationBuilder::resume(&mut self.module, body.id)
    }

    /// Adds an instruction whose shape follows; `None` if inference refuses it or the result is too large.
    pub(super) fn add(
        &mut self,
        body: &Body,
        opcode: Opcode,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> Option<InstrId> {
        let shape = {
            let shapes: SmallVec<[&Shape; 4]> =
                operands.iter().map(|&o| &self.module.instr(o).shape).collect();
            hlo::infer::infer(&self.module, opcode, &shapes, &attrs).ok()?
        };
        self.fits(&shape).then(|| self.push(body, opcode, shape, operands, attrs))
    }

    /// Adds an instruction of the shape that inference gave it.
    fn push(
        &mut self,
        body: &Body,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> InstrId {
        let name = self.module.unique_name(opcode.name());
        let new = NewInstruction { name, attrs, ..NewInstruction::new(opcode, shape, operands) };
        let id = self.module.append(body.id, new);
        self.module.set_root(body.id, id);
        id
    }

    /// Adds an instruction without attributes whose shape follows.
    pub(super) fn plain(&mut self, body: &Body, opcode: Opcode, operands: &[InstrId]) -> Option<InstrId> {
        self.add(body, opcode, operands, Attrs::new())
    }

    /// Adds an instruction of a shape; `None` if inference refuses it or the shape is too large.
    pub(super) fn add_shaped(
        &mut self,
        body: &Body,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> Option<InstrId> {
        self.fits(&shape).then_some(())?;
        {
            let shapes: SmallVec<[&Shape; 4]> =
                operands.iter().map(|&o| &self.module.instr(o).shape).collect();
            hlo::infer::check(&self.module, opcode, &shapes, &attrs, &shape).ok()?;
        }
        Some(self.push(body, opcode, shape, operands, attrs))
    }

    /// Whether arrays of a shape are small enough.
    pub(super) fn fits(&self, shape: &Shape) -> bool {
        let limit = self.limits.elements;
        let mut fits = true;
        shape.for_each_leaf(&mut |leaf| {
            fits &= leaf.as_array().is_none_or(|a| a.checked_elements().is_some_and(|n| n <= limit));
        });
        fits
    }

    /// The shape of an array value.
    pub(super) fn array(&self, id: InstrId) -> ArrayShape {
        self.module.instr(id).shape.expect_array().clone()
    }

    /// The element type that is aimed at, or a random one; the earlier in [`TYPES`] the likelier.
    pub(super) fn element_type(&mut self) -> ElementType {
        if let Some(ty) = self.want.and_then(|w| w.ty) {
            return ty;
        }
        let upto = if self.choices.chance(70) { TYPES.len() } else { 8 };
        self.choices.pick(&TYPES[..upto])
    }

    /// A size of a dimension: odd sizes and one often, zero now and then. In huge programs half of them are
    /// long: around blocks and tiles of kernels.
    pub(super) fn size(&mut self) -> i64 {
        const SIZES: &[i64] = &[3, 2, 4, 1, 5, 7, 8, 9, 6, 2, 3, 1, 4, 5, 0, 16];
        const LONG: &[i64] =
            &[96, 160, 128, 224, 255, 256, 257, 320, 100, 48, 512, 1000, 1024, 2049, 4096, 5000];
        if self.limits.elements > Limits::large().elements && self.choices.chance(50) {
            return self.choices.pick(LONG);
        }
        self.choices.pick(SIZES)
    }

    /// A size of a dimension that kernels partition into vectors: around the widths of those.
    fn minor_size(&mut self) -> i64 {
        const WIDE: &[i64] = &[8, 7, 9, 15, 16, 17, 31, 33, 32, 63, 65, 64, 127, 129, 11, 21];
        let wide = if self.limits.elements > Limits::large().elements { 40 } else { 80 };
        if self.choices.chance(wide) { self.choices.pick(WIDE) } else { self.size() }
    }

    /// Dimensions whose product is within the limit of elements; some are all equal.
    pub(super) fn dims(&mut self, rank: usize) -> Vec<i64> {
        let mut left = self.limits.elements.max(1);
        let mut dims = vec![0; rank];
        let alike = rank > 1 && self.choices.chance(40);
        for (i, d) in dims.iter_mut().rev().enumerate() {
            let size = if i == 0 && !alike { self.minor_size() } else { self.size() };
            *d = size.min(left);
            left /= (*d).max(1);
        }
        if alike {
            let mut side = dims[rank - 1];
            while side.checked_pow(rank as u32).is_none_or(|n| n > self.limits.elements) {
                side -= 1;
            }
            dims.fill(side);
        }
        dims
    }

    /// A new shape.
    pub(super) fn shape(&mut self) -> ArrayShape {
        let rank = self.choices.pick(&[2, 1, 3, 0, 2, 1, 4, 5]);
        let ty = self.element_type();
        ArrayShape::new(ty, &self.dims(rank))
    }

    /// A value of a class of types: from the pool if there is one, otherwise new.
    pub(super) fn value(&mut self, body: &mut Body, accepts: impl Fn(&ArrayShape) -> bool) -> InstrId {
        let wanted = self.want.and_then(|w| w.ty);
        let accepts = |a: &ArrayShape| wanted.is_none_or(|ty| ty == a.element_type) && accepts(a);
        let known: SmallVec<[InstrId; RECENT_VALUES]> = body
            .latest()
            .iter()
            .copied()
            .filter(|&id| {
                self.module.instr(id).shape.as_array().is_some_and(|a| !a.is_dynamic() && accepts(a))
            })
            .collect();
        // Late values more often, so that chains grow.
        if !known.is_empty() && !self.choices.chance(24) {
            let from = if self.choices.chance(128) { known.len().saturating_sub(4) } else { 0 };
            return self.choices.pick(&known[from..]);
        }
        let mut shape = self.shape();
        for _ in 0..8 {
            if accepts(&shape) {
                break;
            }
            shape = self.shape();
        }
        if !accepts(&shape) {
            use ElementType::{C64, F32, Pred, S32, U32};
            const DIMS: [&[i64]; 6] = [&[3, 2], &[3], &[], &[2, 3, 2], &[1, 3, 2, 2], &[2, 2]];
            let types = wanted.map_or([F32, S32, Pred, C64, U32], |ty| [ty; 5]);
            let mut all = types.iter().flat_map(|&ty| DIMS.iter().map(move |d| ArrayShape::new(ty, d)));
            shape = all.find(accepts).unwrap_or(shape);
        }
        self.source(body, &shape)
    }

    /// Any array value.
    pub(super) fn any(&mut self, body: &mut Body) -> InstrId {
        self.value(body, |_| true)
    }

    /// A value of a rank of at least `rank`.
    pub(super) fn ranked(&mut self, body: &mut Body, rank: usize) -> InstrId {
        self.value(body, |a| a.rank() >= rank)
    }

    /// A value of exactly this shape: from the pool, a parameter, a constant, a broadcast.
    pub(super) fn of_shape(&mut self, body: &mut Body, shape: &ArrayShape) -> InstrId {
        let known: SmallVec<[InstrId; RECENT_VALUES]> = body
            .latest()
            .iter()
            .copied()
            .filter(|&id| {
                let s = self.module.instr(id).shape.as_array();
                s.is_some_and(|a| {
                    !a.is_dynamic() && a.element_type == shape.element_type && a.same_dims(shape)
                })
            })
            .collect();
        if !known.is_empty() && !self.choices.chance(48) {
            return self.choices.pick(&known);
        }
        self.source(body, shape)
    }

    /// A new value of a shape.
    pub(super) fn source(&mut self, body: &mut Body, shape: &ArrayShape) -> InstrId {
        let id = self.new_value(body, shape);
        body.add(id);
        id
    }

    fn new_value(&mut self, body: &mut Body, shape: &ArrayShape) -> InstrId {
        let whole = Shape::Array(shape.clone());
        let parameters = self.module.computation(body.id).parameters().len();
        if body.open && parameters < MAX_PARAMETERS && !self.choices.chance(64) {
            return if self.choices.chance(10) {
                self.tuple_parameter(body, whole)
            } else {
                self.at(body).parameter("p", whole)
            };
        }
        if shape.rank() > 0 && self.choices.chance(128) {
            let scalar = ArrayShape::new(shape.element_type, &[]);
            let value = self.constant(body, &scalar);
            let broadcast = self.at(body).broadcast(value, &shape.dims, &[]);
            return broadcast.expect("invariant: a scalar can be broadcast to any shape");
        }
        if shape.rank() > 0 && iota_type(shape.element_type) && self.choices.chance(64) {
            let dimension = self.choices.below(shape.rank()) as i64;
            if let Ok(id) = self.at(body).iota(whole, dimension) {
                return id;
            }
        }
        self.constant(body, shape)
    }

    /// The second of a pair that is a parameter.
    fn tuple_parameter(&mut self, body: &mut Body, shape: Shape) -> InstrId {
        let other = self.freely(Self::shape);
        let pair = self.at(body).parameter("p", Shape::tuple([Shape::Array(other), shape]));
        let mut element = |i| self.at(body).get(pair, i).expect("invariant: a pair has two elements");
        let (first, second) = (element(0), element(1));
        body.add(first);
        second
    }

    /// A constant. Scalars are mostly numbers that simplifications know.
    pub(super) fn constant(&mut self, body: &Body, shape: &ArrayShape) -> InstrId {
        let known = shape.rank() == 0 && self.choices.chance(160);
        let key = u64::from(self.choices.bits());
        let literal = if known {
            values::known_scalar(shape.element_type, key)
        } else {
            values::constant_array(shape, key)
        };
        self.at(body).constant(Literal::Array(literal))
    }

    /// A constant scalar of a small number.
    pub(super) fn number(&mut self, body: &Body, ty: ElementType, value: i64) -> InstrId {
        self.at(body).constant(Literal::Array(values::number(ty, value as f64)))
    }

    /// Constant integers along one dimension.
    pub(super) fn numbers(&mut self, body: &Body, values: &[i32]) -> InstrId {
        let array = ArrayLiteral {
            dims: Dims::from_slice(&[values.len() as i64]),
            buffer: BufferOf::wrap(values.to_vec()).into(),
        };
        self.at(body).constant(Literal::Array(array))
    }

    /// Adds an element of a tuple.
    pub(super) fn element(&mut self, body: &Body, tuple: InstrId, index: i64) -> Option<InstrId> {
        self.at(body).get(tuple, index).ok()
    }

    /// Decomposes a tuple: all elements but the last go to the pool, the last is the result.
    pub(super) fn unpack(&mut self, body: &mut Body, tuple: InstrId) -> Option<InstrId> {
        let Some(n) = self.module.instr(tuple).shape.as_tuple().map(<[Shape]>::len) else {
            return Some(tuple);
        };
        let mut last = None;
        for i in 0..n as i64 {
            if let Some(previous) = last.replace(self.element(body, tuple, i)?) {
                body.add(previous);
            }
        }
        last
    }

    /// Ends a computation: its root is the tuple of every array that nothing uses.
    pub(super) fn finish(&mut self, mut body: Body) -> ComputationId {
        let module = &self.module;
        let mut unused: Vec<InstrId> = body
            .values()
            .iter()
            .copied()
            .filter(|&id| module.users(id).is_empty() && module.instr(id).shape.as_array().is_some())
            .filter(|&id| module.instr(id).opcode != Opcode::Parameter)
            .collect();
        unused.sort_unstable();
        unused.dedup();
        let root = match *unused {
            [] => self.any(&mut body),
            [only] => only,
            _ => self.at(&body).tuple(&unused).expect("invariant: anything can be in a tuple"),
        };
        self.module.set_root(body.id, root);
        self.prune(body.id);
        body.id
    }

    /// Removes what a family added before it gave up.
    pub(super) fn prune(&mut self, computation: ComputationId) {
        let order: Vec<InstrId> = self.module.instructions(computation).collect();
        for id in order.into_iter().rev() {
            let instr = self.module.instr(id);
            let needed = instr.opcode == Opcode::Parameter || self.module.root(computation) == id;
            if !needed && self.module.users(id).is_empty() {
                self.module.remove(id);
            }
        }
    }

    /// Ends a computation that must give exactly this shape.
    pub(super) fn finish_with(&mut self, mut body: Body, shape: &Shape) -> ComputationId {
        let root = match shape {
            Shape::Array(a) => self.of_shape(&mut body, a),
            Shape::Tuple(elements) => {
                let parts: Vec<InstrId> = elements
                    .iter()
                    .filter_map(Shape::as_array)
                    .map(|a| self.of_shape(&mut body, a))
                    .collect();
                self.at(&body).tuple(&parts).expect("invariant: anything can be in a tuple")
            }
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => self.any(&mut body),
        };
        self.module.set_root(body.id, root);
        self.prune(body.id);
        body.id
    }
}

/// The types that have an iota in every implementation.
fn iota_type(ty: ElementType) -> bool {
    match ty.class() {
        TypeClass::Signed | TypeClass::Unsigned | TypeClass::Float | TypeClass::Complex => true,
        TypeClass::Pred => false,
    }
}

/// Wraps a list of integers.
pub(super) fn ints(values: &[i64]) -> hlo::AttrValue {
    hlo::AttrValue::Ints(values.into())
}

/// The result of adding, as an option.
pub(super) fn built(built: Built) -> Option<InstrId> {
    built.ok()
}
