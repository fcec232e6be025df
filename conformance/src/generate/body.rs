//! A computation that grows, and where its instructions take operands from.

use hlo::builder::{Built, ComputationBuilder};
use hlo::{
    ArrayLiteral, ArrayShape, Attrs, ComputationId, ElementType, InstrId, Literal, Module, Opcode, Shape,
    TypeClass,
};

use super::{Generator, TYPES, values};

/// A computation that grows.
pub(super) struct Body {
    pub(super) id: ComputationId,
    /// Values that instructions may use.
    values: Vec<InstrId>,
    /// Whether new parameters may be added.
    open: bool,
}

/// Parameters of an entry computation.
const PARAMETERS: usize = 5;

impl Body {
    /// The entry computation, whose parameters come as they are wanted.
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

    /// Makes a value known to later instructions.
    pub(super) fn add(&mut self, id: InstrId) {
        self.values.push(id);
    }

    /// The values so far.
    pub(super) fn values(&self) -> &[InstrId] {
        &self.values
    }
}

impl Generator<'_> {
    /// A builder that goes on with a computation.
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
        let shapes: Vec<&Shape> = operands.iter().map(|&o| &self.module.instr(o).shape).collect();
        let shape = hlo::infer::infer(&self.module, opcode, &shapes, &attrs).ok()?;
        self.fits(&shape).then_some(())?;
        self.at(body).instr(opcode, operands, attrs).ok()
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
        self.at(body).instr_with_shape(opcode, shape, operands, attrs).ok()
    }

    /// Whether arrays of a shape are small enough.
    pub(super) fn fits(&self, shape: &Shape) -> bool {
        let limit = self.limits.elements;
        shape
            .leaves()
            .iter()
            .all(|leaf| leaf.as_array().is_none_or(|a| a.checked_elements().is_some_and(|n| n <= limit)))
    }

    /// The shape of an array value.
    pub(super) fn array(&self, id: InstrId) -> ArrayShape {
        self.module.instr(id).shape.expect_array().clone()
    }

    /// An element type; the earlier in [`TYPES`] the likelier.
    pub(super) fn element_type(&mut self) -> ElementType {
        let upto = if self.choices.chance(90) { TYPES.len() } else { 8 };
        self.choices.pick(&TYPES[..upto])
    }

    /// A size of a dimension: odd sizes and one often, zero now and then.
    pub(super) fn size(&mut self) -> i64 {
        self.choices.pick(&[3, 2, 4, 1, 5, 7, 8, 9, 13, 16, 17, 0, 33, 6])
    }

    /// Dimensions of at most so many elements in all.
    pub(super) fn dims(&mut self, rank: usize) -> Vec<i64> {
        let mut left = self.limits.elements.max(1);
        (0..rank)
            .map(|_| {
                let size = self.size().min(left);
                left /= size.max(1);
                size
            })
            .collect()
    }

    /// A new shape.
    pub(super) fn shape(&mut self) -> ArrayShape {
        let rank = self.choices.pick(&[2, 1, 3, 0, 2, 1, 4, 5]);
        let ty = self.element_type();
        ArrayShape::new(ty, &self.dims(rank))
    }

    /// A value of a class of types: from the pool if there is one, else new.
    pub(super) fn value(&mut self, body: &mut Body, accepts: impl Fn(&ArrayShape) -> bool) -> InstrId {
        let known: Vec<InstrId> = body
            .values()
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
        for _ in 0..16 {
            if accepts(&shape) {
                break;
            }
            shape = self.shape();
        }
        if !accepts(&shape) {
            let candidates =
                [ElementType::F32, ElementType::S32, ElementType::Pred, ElementType::C64, ElementType::U32];
            let dims: [&[i64]; 5] = [&[3, 2], &[3], &[], &[2, 3, 2], &[1, 3, 2, 2]];
            let found = candidates
                .iter()
                .flat_map(|&ty| dims.iter().map(move |d| ArrayShape::new(ty, d)))
                .find(|s| accepts(s));
            shape = found.unwrap_or(shape);
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
        let known: Vec<InstrId> = body
            .values()
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
    fn source(&mut self, body: &mut Body, shape: &ArrayShape) -> InstrId {
        let whole = Shape::Array(shape.clone());
        let parameters = self.module.computation(body.id).parameters().len();
        let id = if body.open && parameters < PARAMETERS && !self.choices.chance(64) {
            self.at(body).parameter("p", whole)
        } else if shape.rank() > 0 && self.choices.chance(128) {
            let scalar = ArrayShape::new(shape.element_type, &[]);
            let value = self.constant(body, &scalar);
            let broadcast = self.at(body).broadcast(value, &shape.dims, &[]);
            broadcast.expect("invariant: a scalar can be broadcast to any shape")
        } else if shape.rank() > 0 && iota_type(shape.element_type) && self.choices.chance(64) {
            let dimension = self.choices.below(shape.rank()) as i64;
            match self.at(body).iota(whole, dimension) {
                Ok(id) => id,
                Err(_) => self.constant(body, shape),
            }
        } else {
            self.constant(body, shape)
        };
        body.add(id);
        id
    }

    /// A constant.
    pub(super) fn constant(&mut self, body: &Body, shape: &ArrayShape) -> InstrId {
        let key = u64::from(self.choices.bits());
        let literal = values::edge_array(shape, key);
        self.at(body).constant(Literal::Array(literal))
    }

    /// A constant scalar of a small number.
    pub(super) fn number(&mut self, body: &Body, ty: ElementType, value: i64) -> InstrId {
        let buffer = hlo::with_element_type!(ty, T => {
            <T as hlo::BufferOf>::wrap(vec![<T as crate::element::Number>::from_i128(i128::from(value))])
        });
        self.at(body).constant(Literal::Array(ArrayLiteral { dims: hlo::Dims::new(), buffer }))
    }

    /// Adds an element of a tuple.
    pub(super) fn element(&mut self, body: &Body, tuple: InstrId, index: i64) -> Option<InstrId> {
        self.at(body).get(tuple, index).ok()
    }

    /// Takes a tuple apart: all elements but the last go to the pool, the last is the result.
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
    fn prune(&mut self, computation: ComputationId) {
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

/// What adding gave, as an option.
pub(super) fn built(built: Built) -> Option<InstrId> {
    built.ok()
}
