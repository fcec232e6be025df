//! Writing the HLO that a library call stands for.

use hlo::attrs::Direction;
use hlo::builder::ComputationBuilder;
use hlo::{AttrKey, AttrValue, Attrs, ElementType, InstrId, Module, Opcode, Shape};
use hlo_arithmetic::scalar::Float;

use super::super::common::with_float;
use super::Refusal;
use super::config::Json;
use crate::custom_call::Call;

/// A value of the computation, or why there is none.
pub(super) type Built = Result<InstrId, Refusal>;

/// The computation that a call stands for, while it is written. Its parameters are the call's operands.
pub(super) struct Body<'a> {
    pub(super) call: Call<'a>,
    pub(super) operands: Vec<InstrId>,
    /// The whole `backend_config`.
    pub(super) config: Json,
    builder: ComputationBuilder<'a>,
}

impl<'a> Body<'a> {
    /// Nothing but the parameters.
    pub(super) fn new(call: Call<'a>, module: &'a mut Module) -> Result<Self, Refusal> {
        let mut builder = ComputationBuilder::new(module, "library");
        let shapes = call.instruction.operands().iter().map(|&o| call.module.instr(o).shape.without_layout());
        let operands = shapes.map(|shape| builder.parameter("p", shape)).collect();
        // What is no object is for those to read who know it.
        let text = call.backend_config().trim();
        let config = if text.starts_with('{') { Json::parse(text)? } else { Json::Word(text.into()) };
        Ok(Self { call, operands, config, builder })
    }

    /// The finished computation.
    pub(super) fn finish(mut self, root: InstrId) -> hlo::ComputationId {
        self.builder.set_root(root);
        self.builder.finish()
    }

    /// An operand.
    pub(super) fn operand(&self, n: usize) -> Built {
        let count = self.operands.len();
        self.operands.get(n).copied().ok_or_else(|| Refusal(format!("with {count} operands")))
    }

    /// The shape of a value.
    pub(super) fn shape(&self, x: InstrId) -> &Shape {
        self.builder.shape(x)
    }

    /// Dimensions of a value that is an array.
    pub(super) fn dims(&self, x: InstrId) -> Result<hlo::Dims, Refusal> {
        let array = self.shape(x).as_array();
        array.map(|a| a.dims.clone()).ok_or_else(|| Refusal("of anything but arrays".into()))
    }

    /// Element type of a value that is an array.
    pub(super) fn ty(&self, x: InstrId) -> Result<ElementType, Refusal> {
        self.shape(x).element_type().ok_or_else(|| Refusal("of anything but arrays".into()))
    }

    /// The shape that result `n` must have: the call's own if that is an array.
    pub(super) fn result(&self, n: usize) -> Result<&'a hlo::ArrayShape, Refusal> {
        let shape = match &self.call.instruction.shape {
            Shape::Tuple(parts) => parts.get(n),
            other @ (Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => {
                (n == 0).then_some(other)
            }
        };
        let array = shape.and_then(Shape::as_array);
        array.ok_or_else(|| Refusal(format!("without an array for result {n}")))
    }

    /// The call's result made of its first parts; further ones that are bytes are scratch space, which is
    /// zeros.
    pub(super) fn results(&mut self, parts: &[InstrId]) -> Built {
        match (&self.call.instruction.shape, parts) {
            (Shape::Tuple(shapes), _) => {
                let mut all = parts.to_vec();
                for shape in shapes.iter().skip(parts.len()) {
                    let scratch = shape
                        .as_array()
                        .filter(|a| matches!(a.element_type, ElementType::U8 | ElementType::S8));
                    let scratch = scratch.ok_or_else(|| Refusal(format!("with a result {shape}")))?;
                    let zero = self.scalar(0.0, scratch.element_type)?;
                    all.push(self.builder.broadcast(zero, &scratch.dims, &[])?);
                }
                Ok(self.builder.tuple(&all)?)
            }
            (_, &[one]) => Ok(one),
            (shape, _) => Err(Refusal(format!("with a result {}", shape.without_layout()))),
        }
    }

    /// Begins a computation that the body applies.
    pub(super) fn nested(&mut self, name: &str) -> ComputationBuilder<'_> {
        self.builder.nested(name)
    }

    /// An element of a tuple.
    pub(super) fn get(&mut self, tuple: InstrId, index: i64) -> Built {
        Ok(self.builder.get(tuple, index)?)
    }

    /// Any instruction.
    pub(super) fn instr(&mut self, opcode: Opcode, operands: &[InstrId], attrs: Attrs) -> Built {
        Ok(self.builder.instr(opcode, operands, attrs)?)
    }

    /// Any instruction of a given shape.
    pub(super) fn shaped(
        &mut self,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> Built {
        Ok(self.builder.instr_with_shape(opcode, shape, operands, attrs)?)
    }

    /// An operation on one value.
    pub(super) fn unary(&mut self, opcode: Opcode, x: InstrId) -> Built {
        Ok(self.builder.unary(opcode, x)?)
    }

    /// An operation on two values; a scalar is repeated to the shape of the other.
    pub(super) fn binary(&mut self, opcode: Opcode, a: InstrId, b: InstrId) -> Built {
        let (a, b) = match (self.shape(a).is_scalar(), self.shape(b).is_scalar()) {
            (true, false) => (self.like(a, b)?, b),
            (false, true) => (a, self.like(b, a)?),
            (true, true) | (false, false) => (a, b),
        };
        Ok(self.builder.binary(opcode, a, b)?)
    }

    /// `x opcode number`, the number rounded to the type of `x`.
    pub(super) fn with(&mut self, opcode: Opcode, x: InstrId, number: f64) -> Built {
        let ty = self.ty(x)?;
        let number = self.scalar(number, ty)?;
        self.binary(opcode, x, number)
    }

    pub(super) fn add(&mut self, a: InstrId, b: InstrId) -> Built {
        self.binary(Opcode::Add, a, b)
    }

    pub(super) fn multiply(&mut self, a: InstrId, b: InstrId) -> Built {
        self.binary(Opcode::Multiply, a, b)
    }

    /// A number rounded to a type.
    pub(super) fn scalar(&mut self, number: f64, ty: ElementType) -> Built {
        let exact = self.builder.scalar(number);
        self.convert(exact, ty)
    }

    /// Conversion, where there is something to convert.
    pub(super) fn convert(&mut self, x: InstrId, ty: ElementType) -> Built {
        if self.ty(x)? == ty {
            return Ok(x);
        }
        Ok(self.builder.convert(x, ty)?)
    }

    /// A scalar repeated to the dimensions of another value.
    pub(super) fn like(&mut self, scalar: InstrId, other: InstrId) -> Built {
        let dims = self.dims(other)?;
        self.broadcast(scalar, &dims, &[])
    }

    /// Repeats `x` in an array of dimensions `dims`; dimension `i` of `x` becomes dimension `mapping[i]`.
    pub(super) fn broadcast(&mut self, x: InstrId, dims: &[i64], mapping: &[i64]) -> Built {
        Ok(self.builder.broadcast(x, dims, mapping)?)
    }

    /// `x` in the dimensions of another value: those of size 1 are repeated, missing ones are leading.
    pub(super) fn stretch(&mut self, x: InstrId, like: InstrId) -> Built {
        let dims = self.dims(like)?;
        self.stretch_to(x, &dims)
    }

    /// The same with the dimensions given.
    pub(super) fn stretch_to(&mut self, x: InstrId, dims: &[i64]) -> Built {
        let have = self.dims(x)?;
        if have[..] == *dims {
            return Ok(x);
        }
        let missing = dims.len().checked_sub(have.len());
        let missing = missing.ok_or_else(|| Refusal(format!("of dimensions {have:?} for {dims:?}")))?;
        let kept = (0..have.len()).filter(|&d| have[d] != 1);
        let kept: Vec<usize> = kept.collect();
        let sizes: Vec<i64> = kept.iter().map(|&d| have[d]).collect();
        let mapping: Vec<i64> = kept.iter().map(|&d| (d + missing) as i64).collect();
        let x = if sizes.len() == have.len() { x } else { self.reshape(x, &sizes)? };
        self.broadcast(x, dims, &mapping)
    }

    pub(super) fn reshape(&mut self, x: InstrId, dims: &[i64]) -> Built {
        Ok(self.builder.reshape(x, dims)?)
    }

    pub(super) fn transpose(&mut self, x: InstrId, permutation: &[i64]) -> Built {
        Ok(self.builder.transpose(x, permutation)?)
    }

    pub(super) fn compare(&mut self, direction: Direction, a: InstrId, b: InstrId) -> Built {
        Ok(self.builder.compare(direction, a, b)?)
    }

    pub(super) fn select(&mut self, predicate: InstrId, a: InstrId, b: InstrId) -> Built {
        Ok(self.builder.select(predicate, a, b)?)
    }

    pub(super) fn iota(&mut self, ty: ElementType, dims: &[i64], along: i64) -> Built {
        Ok(self.builder.iota(Shape::array(ty, dims), along)?)
    }

    /// Folds dimensions by a binary opcode.
    pub(super) fn reduce(&mut self, opcode: Opcode, x: InstrId, init: f64, dims: &[i64]) -> Built {
        let ty = self.ty(x)?;
        let init = self.scalar(init, ty)?;
        let region = self.builder.scalar_region(opcode, ty)?;
        Ok(self.builder.reduce(x, init, dims, region)?)
    }

    /// `a` where `x` is greater than 0, `b` elsewhere (so for NaN).
    pub(super) fn where_positive(&mut self, x: InstrId, a: InstrId, b: InstrId) -> Built {
        let ty = self.ty(x)?;
        let zero = self.scalar(0.0, ty)?;
        let zero = self.like(zero, x)?;
        let positive = self.compare(Direction::Gt, x, zero)?;
        self.select(positive, a, b)
    }

    /// The shape that an instruction would have.
    pub(super) fn infer(
        &self,
        opcode: Opcode,
        operands: &[InstrId],
        attrs: &Attrs,
    ) -> Result<Shape, Refusal> {
        Ok(self.builder.infer(opcode, operands, attrs)?)
    }

    /// `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, in this order.
    pub(super) fn gelu_tanh(&mut self, x: InstrId) -> Built {
        let square = self.multiply(x, x)?;
        let cube = self.multiply(square, x)?;
        let cube = self.with(Opcode::Multiply, cube, 0.044715)?;
        let inner = self.add(x, cube)?;
        let inner = self.with(Opcode::Multiply, inner, (2.0 / std::f64::consts::PI).sqrt())?;
        let tanh = self.unary(Opcode::Tanh, inner)?;
        let factor = self.with(Opcode::Add, tanh, 1.0)?;
        let half = self.with(Opcode::Multiply, x, 0.5)?;
        self.multiply(half, factor)
    }

    /// `x / 2 (1 + erf(x / sqrt(2)))`, in this order.
    pub(super) fn gelu_erf(&mut self, x: InstrId) -> Built {
        let inner = self.with(Opcode::Multiply, x, std::f64::consts::FRAC_1_SQRT_2)?;
        let erf = self.unary(Opcode::Erf, inner)?;
        let factor = self.with(Opcode::Add, erf, 1.0)?;
        let half = self.with(Opcode::Multiply, x, 0.5)?;
        self.multiply(half, factor)
    }

    /// Clamps to the finite values of a float type.
    pub(super) fn clamp_to(&mut self, x: InstrId, ty: ElementType) -> Built {
        let largest = largest(ty)?;
        let from = self.ty(x)?;
        let (low, high) = (self.scalar(-largest, from)?, self.scalar(largest, from)?);
        self.instr(Opcode::Clamp, &[low, x, high], Attrs::new())
    }

    /// Sums of products, in a type of its own.
    pub(super) fn dot(
        &mut self,
        a: InstrId,
        b: InstrId,
        contracting: [&[i64]; 2],
        batch: [&[i64]; 2],
        ty: ElementType,
    ) -> Built {
        let ints = |values: &[i64]| AttrValue::Ints(values.into());
        let attrs = Attrs::new()
            .with(AttrKey::LhsContractingDims, ints(contracting[0]))
            .with(AttrKey::RhsContractingDims, ints(contracting[1]))
            .with(AttrKey::LhsBatchDims, ints(batch[0]))
            .with(AttrKey::RhsBatchDims, ints(batch[1]));
        let shape = self.builder.infer(Opcode::Dot, &[a, b], &attrs)?;
        let shape = retyped(shape, ty);
        self.shaped(Opcode::Dot, shape, &[a, b], attrs)
    }
}

/// The largest number of a float type.
pub(super) fn largest(ty: ElementType) -> Result<f64, Refusal> {
    Ok(with_float!(ty, T => T::MAX.to_f64(), return Err(Refusal(format!("of {ty}")))))
}

/// An array shape with another element type.
pub(super) fn retyped(shape: Shape, ty: ElementType) -> Shape {
    match shape {
        Shape::Array(a) => Shape::Array(a.with_type(ty)),
        other @ (Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => other,
    }
}

/// The type in which a library computes what it gives in `ty`: `f32` for narrower floats, `s32` for narrower
/// integers.
pub(super) fn compute_type(ty: ElementType) -> ElementType {
    if ty.is_float() && ty.bits() < 32 {
        return ElementType::F32;
    }
    if ty.is_integer() && ty.bits() < 32 {
        return ElementType::S32;
    }
    ty
}
