//! Building computations in code: tests, passes and the program generator write HLO with this.
//!
//! Each method adds one instruction at the end of the computation and gives its id. Shapes are inferred,
//! names are the opcode's made unique, and an instruction that would not verify is not added: the error says
//! why.
//!
//! ```
//! use hlo::builder::{ComputationBuilder, scalar_region};
//! use hlo::{ElementType, Module, Opcode, Shape};
//!
//! # fn main() -> Result<(), hlo::infer::InferError> {
//! let mut module = Module::new("sum_of_squares");
//! let add = scalar_region(&mut module, "add", Opcode::Add, ElementType::F32)?;
//! let mut b = ComputationBuilder::new(&mut module, "main");
//! let x = b.parameter("x", Shape::array(ElementType::F32, &[4]));
//! let square = b.binary(Opcode::Multiply, x, x)?;
//! let zero = b.scalar(0f32);
//! b.reduce(square, zero, &[0], add)?;
//! let main = b.finish();
//! module.set_entry(main);
//! assert_eq!(module.instr(module.root(main)).shape, Shape::scalar(ElementType::F32));
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use crate::attrs::{AttrKey, AttrValue, Attrs, Direction, PaddingDim, SliceDim};
use crate::element_type::ElementType;
use crate::ids::{ComputationId, InstrId};
use crate::infer::{self, InferError};
use crate::literal::{BufferOf, ConstantValue, Literal};
use crate::module::{Module, Name, NewInstruction};
use crate::opcode::Opcode;
use crate::shape::Shape;
use crate::span::Span;

/// What adding an instruction gives.
pub type Built = Result<InstrId, InferError>;

/// A computation under construction. The instruction added last is its root until
/// [`ComputationBuilder::set_root`] names another.
#[derive(Debug)]
pub struct ComputationBuilder<'m> {
    module: &'m mut Module,
    computation: ComputationId,
    parameters: i64,
}

fn ints(values: &[i64]) -> AttrValue {
    AttrValue::Ints(values.into())
}

impl<'m> ComputationBuilder<'m> {
    /// An empty computation of this name, made unique, at the end of the module.
    pub fn new(module: &'m mut Module, name: &str) -> Self {
        let name = module.unique_computation_name(name);
        let computation = module.add_computation(name, Span::NONE);
        Self { module, computation, parameters: 0 }
    }

    /// Goes on with a computation that already has instructions.
    pub fn resume(module: &'m mut Module, computation: ComputationId) -> Self {
        let parameters = module.computation(computation).parameters().len() as i64;
        Self { module, computation, parameters }
    }

    /// The module.
    pub fn module(&self) -> &Module {
        self.module
    }

    /// The computation.
    pub fn id(&self) -> ComputationId {
        self.computation
    }

    /// The shape of an instruction.
    pub fn shape(&self, id: InstrId) -> &Shape {
        &self.module.instr(id).shape
    }

    fn add(
        &mut self,
        name: &str,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> InstrId {
        let name: Name = self.module.unique_name(name);
        let new = NewInstruction { name, attrs, ..NewInstruction::new(opcode, shape, operands) };
        let id = self.module.append(self.computation, new);
        self.module.set_root(self.computation, id);
        id
    }

    /// The shape that an instruction would have.
    pub fn infer(&self, opcode: Opcode, operands: &[InstrId], attrs: &Attrs) -> Result<Shape, InferError> {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| &self.module.instr(id).shape).collect();
        infer::infer(self.module, opcode, &shapes, attrs)
    }

    /// Begins another computation of the same module.
    pub fn nested(&mut self, name: &str) -> ComputationBuilder<'_> {
        ComputationBuilder::new(self.module, name)
    }

    /// A computation of its own, of two scalars of a type, that applies a binary opcode: see
    /// [`scalar_region`].
    pub fn scalar_region(&mut self, opcode: Opcode, ty: ElementType) -> Result<ComputationId, InferError> {
        scalar_region(self.module, opcode.name(), opcode, ty)
    }

    /// Any instruction whose shape follows from its operands and attributes.
    pub fn instr(&mut self, opcode: Opcode, operands: &[InstrId], attrs: Attrs) -> Built {
        let shape = self.infer(opcode, operands, &attrs)?;
        Ok(self.add(opcode.name(), opcode, shape, operands, attrs))
    }

    /// Any instruction, with the shape that it shall have.
    pub fn instr_with_shape(
        &mut self,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> Built {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| &self.module.instr(id).shape).collect();
        infer::check(self.module, opcode, &shapes, &attrs, &shape)?;
        Ok(self.add(opcode.name(), opcode, shape, operands, attrs))
    }

    // ---- sources

    /// The next parameter.
    pub fn parameter(&mut self, name: &str, shape: Shape) -> InstrId {
        let attrs = Attrs::new().with(AttrKey::ParameterNumber, AttrValue::Int(self.parameters));
        self.parameters += 1;
        self.add(name, Opcode::Parameter, shape, &[], attrs)
    }

    /// A constant.
    pub fn constant(&mut self, literal: Literal) -> InstrId {
        let shape = literal.shape();
        let value = AttrValue::Literal(ConstantValue::Given(Arc::new(literal)));
        let attrs = Attrs::new().with(AttrKey::ConstantValue, value);
        self.add(Opcode::Constant.name(), Opcode::Constant, shape, &[], attrs)
    }

    /// A scalar constant; the Rust type says the element type.
    pub fn scalar<T: BufferOf>(&mut self, value: T) -> InstrId {
        self.constant(Literal::scalar(value))
    }

    /// Counts along `dimension`.
    pub fn iota(&mut self, shape: Shape, dimension: i64) -> Built {
        let attrs = Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(dimension));
        self.instr_with_shape(Opcode::Iota, shape, &[], attrs)
    }

    // ---- elementwise

    /// An operation on one operand, without attributes.
    pub fn unary(&mut self, opcode: Opcode, x: InstrId) -> Built {
        self.instr(opcode, &[x], Attrs::new())
    }

    /// An operation on two operands, without attributes.
    pub fn binary(&mut self, opcode: Opcode, a: InstrId, b: InstrId) -> Built {
        self.instr(opcode, &[a, b], Attrs::new())
    }

    /// `a direction b`
    pub fn compare(&mut self, direction: Direction, a: InstrId, b: InstrId) -> Built {
        let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
        self.instr(Opcode::Compare, &[a, b], attrs)
    }

    /// `a` where the predicate holds, else `b`.
    pub fn select(&mut self, predicate: InstrId, a: InstrId, b: InstrId) -> Built {
        self.instr(Opcode::Select, &[predicate, a, b], Attrs::new())
    }

    /// Conversion to another element type.
    pub fn convert(&mut self, x: InstrId, ty: ElementType) -> Built {
        let shape = self.retyped(x, ty);
        self.instr_with_shape(Opcode::Convert, shape, &[x], Attrs::new())
    }

    /// The shape of `x` with another element type; of what is no array, unchanged, for inference to refuse.
    fn retyped(&self, x: InstrId, ty: ElementType) -> Shape {
        match self.shape(x) {
            Shape::Array(a) => Shape::Array(a.with_type(ty).without_layout()),
            other @ (Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => other.clone(),
        }
    }

    /// An array of these dimensions and the element type of `x`.
    fn reshaped(&self, x: InstrId, dims: &[i64]) -> Shape {
        match self.shape(x) {
            Shape::Array(a) => Shape::array(a.element_type, dims),
            other @ (Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => other.clone(),
        }
    }

    // ---- data movement

    /// Repeats `x` in an array of dimensions `dims`; dimension `i` of `x` becomes dimension `mapping[i]`.
    pub fn broadcast(&mut self, x: InstrId, dims: &[i64], mapping: &[i64]) -> Built {
        let shape = self.reshaped(x, dims);
        let attrs = Attrs::new().with(AttrKey::Dimensions, ints(mapping));
        self.instr_with_shape(Opcode::Broadcast, shape, &[x], attrs)
    }

    /// The same elements in other dimensions.
    pub fn reshape(&mut self, x: InstrId, dims: &[i64]) -> Built {
        let shape = self.reshaped(x, dims);
        self.instr_with_shape(Opcode::Reshape, shape, &[x], Attrs::new())
    }

    /// Dimension `i` of the result is dimension `permutation[i]` of `x`.
    pub fn transpose(&mut self, x: InstrId, permutation: &[i64]) -> Built {
        self.instr(Opcode::Transpose, &[x], Attrs::new().with(AttrKey::Dimensions, ints(permutation)))
    }

    /// Reverses dimensions.
    pub fn reverse(&mut self, x: InstrId, dims: &[i64]) -> Built {
        self.instr(Opcode::Reverse, &[x], Attrs::new().with(AttrKey::Dimensions, ints(dims)))
    }

    /// A strided box.
    pub fn slice(&mut self, x: InstrId, slices: &[SliceDim]) -> Built {
        self.instr(Opcode::Slice, &[x], Attrs::new().with(AttrKey::Slice, AttrValue::Slices(slices.into())))
    }

    /// A box of these sizes that starts at computed indices.
    pub fn dynamic_slice(&mut self, x: InstrId, starts: &[InstrId], sizes: &[i64]) -> Built {
        let operands: Vec<InstrId> = std::iter::once(x).chain(starts.iter().copied()).collect();
        let attrs = Attrs::new().with(AttrKey::DynamicSliceSizes, ints(sizes));
        self.instr(Opcode::DynamicSlice, &operands, attrs)
    }

    /// `x` with `update` written at computed indices.
    pub fn dynamic_update_slice(&mut self, x: InstrId, update: InstrId, starts: &[InstrId]) -> Built {
        let operands: Vec<InstrId> = [x, update].into_iter().chain(starts.iter().copied()).collect();
        self.instr(Opcode::DynamicUpdateSlice, &operands, Attrs::new())
    }

    /// Adds or cuts elements.
    pub fn pad(&mut self, x: InstrId, value: InstrId, padding: &[PaddingDim]) -> Built {
        let attrs = Attrs::new().with(AttrKey::Padding, AttrValue::Padding(padding.into()));
        self.instr(Opcode::Pad, &[x, value], attrs)
    }

    /// Joins along a dimension.
    pub fn concatenate(&mut self, parts: &[InstrId], dimension: i64) -> Built {
        self.instr(Opcode::Concatenate, parts, Attrs::new().with(AttrKey::Dimensions, ints(&[dimension])))
    }

    // ---- contractions and reductions

    /// Sums of products over the contracting dimensions, for each index of the batch dimensions; `[left,
    /// right]` each.
    pub fn dot(&mut self, a: InstrId, b: InstrId, contracting: [&[i64]; 2], batch: [&[i64]; 2]) -> Built {
        let attrs = Attrs::new()
            .with(AttrKey::LhsContractingDims, ints(contracting[0]))
            .with(AttrKey::RhsContractingDims, ints(contracting[1]))
            .with(AttrKey::LhsBatchDims, ints(batch[0]))
            .with(AttrKey::RhsBatchDims, ints(batch[1]));
        self.instr(Opcode::Dot, &[a, b], attrs)
    }

    /// Folds dimensions of one array by a computation of two scalars.
    pub fn reduce(&mut self, x: InstrId, init: InstrId, dims: &[i64], to_apply: ComputationId) -> Built {
        let attrs = Attrs::new()
            .with(AttrKey::Dimensions, ints(dims))
            .with(AttrKey::ToApply, AttrValue::Computation(to_apply));
        self.instr(Opcode::Reduce, &[x, init], attrs)
    }

    /// Sorts along a dimension by a comparator; all operands by the same permutation.
    pub fn sort(
        &mut self,
        operands: &[InstrId],
        dimension: i64,
        comparator: ComputationId,
        stable: bool,
    ) -> Built {
        let attrs = Attrs::new()
            .with(AttrKey::Dimensions, ints(&[dimension]))
            .with(AttrKey::IsStable, AttrValue::Bool(stable))
            .with(AttrKey::ToApply, AttrValue::Computation(comparator));
        self.instr(Opcode::Sort, operands, attrs)
    }

    // ---- structure

    /// A tuple.
    pub fn tuple(&mut self, elements: &[InstrId]) -> Built {
        self.instr(Opcode::Tuple, elements, Attrs::new())
    }

    /// An element of a tuple.
    pub fn get(&mut self, tuple: InstrId, index: i64) -> Built {
        self.instr(
            Opcode::GetTupleElement,
            &[tuple],
            Attrs::new().with(AttrKey::Index, AttrValue::Int(index)),
        )
    }

    /// Calls a computation.
    pub fn call(&mut self, to_apply: ComputationId, operands: &[InstrId]) -> Built {
        let attrs = Attrs::new().with(AttrKey::ToApply, AttrValue::Computation(to_apply));
        self.instr(Opcode::Call, operands, attrs)
    }

    /// Repeats a body while a condition holds.
    pub fn while_loop(&mut self, init: InstrId, condition: ComputationId, body: ComputationId) -> Built {
        let attrs = Attrs::new()
            .with(AttrKey::Condition, AttrValue::Computation(condition))
            .with(AttrKey::Body, AttrValue::Computation(body));
        self.instr(Opcode::While, &[init], attrs)
    }

    /// Runs the branch that an s32 index, or a predicate (first branch if true), selects; an operand for each
    /// branch.
    pub fn conditional(&mut self, index: InstrId, branches: &[ComputationId], operands: &[InstrId]) -> Built {
        let predicate = self.shape(index).element_type() == Some(ElementType::Pred);
        let attrs = if let (true, &[yes, no]) = (predicate, branches) {
            Attrs::new()
                .with(AttrKey::TrueComputation, AttrValue::Computation(yes))
                .with(AttrKey::FalseComputation, AttrValue::Computation(no))
        } else {
            Attrs::new().with(AttrKey::BranchComputations, AttrValue::Computations(branches.into()))
        };
        let operands: Vec<InstrId> = std::iter::once(index).chain(operands.iter().copied()).collect();
        self.instr(Opcode::Conditional, &operands, attrs)
    }

    // ---- the end

    /// Makes an instruction the root.
    pub fn set_root(&mut self, root: InstrId) {
        self.module.set_root(self.computation, root);
    }

    /// The finished computation; its root is the last instruction or what [`ComputationBuilder::set_root`]
    /// named.
    pub fn finish(self) -> ComputationId {
        self.computation
    }
}

/// A computation of two scalars of a type that applies a binary opcode, as `reduce` wants it.
pub fn scalar_region(
    module: &mut Module,
    name: &str,
    opcode: Opcode,
    ty: ElementType,
) -> Result<ComputationId, InferError> {
    let mut b = ComputationBuilder::new(module, name);
    let (x, y) = (b.parameter("x", Shape::scalar(ty)), b.parameter("y", Shape::scalar(ty)));
    b.binary(opcode, x, y)?;
    Ok(b.finish())
}

/// A comparator of the first of several pairs of scalars, as `sort` wants it.
pub fn comparator(
    module: &mut Module,
    name: &str,
    direction: Direction,
    types: &[ElementType],
) -> Result<ComputationId, InferError> {
    let mut b = ComputationBuilder::new(module, name);
    let mut first = Vec::new();
    for &ty in types {
        first.push(b.parameter("a", Shape::scalar(ty)));
        first.push(b.parameter("b", Shape::scalar(ty)));
    }
    if let [x, y, ..] = *first {
        b.compare(direction, x, y)?;
    }
    Ok(b.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_a_loop_that_counts() {
        let mut m = Module::new("count");
        let state = Shape::scalar(ElementType::S32);
        let mut b = ComputationBuilder::new(&mut m, "condition");
        let x = b.parameter("x", state.clone());
        let ten = b.scalar(10i32);
        b.compare(Direction::Lt, x, ten).unwrap();
        let condition = b.finish();
        let mut b = ComputationBuilder::new(&mut m, "body");
        let x = b.parameter("x", state);
        let one = b.scalar(1i32);
        b.binary(Opcode::Add, x, one).unwrap();
        let body = b.finish();
        let mut b = ComputationBuilder::new(&mut m, "main");
        let zero = b.scalar(0i32);
        let result = b.while_loop(zero, condition, body).unwrap();
        let main = b.finish();
        assert_eq!(m.root(main), result);
        assert_eq!(&*m.instr(m.root(body)).name, "add");
        assert_eq!(
            &*m.instr(m.computation(body).parameters()[0].unwrap()).name,
            "x.1",
            "names are unique in the module"
        );
    }

    #[test]
    fn refuses_what_does_not_fit_and_adds_nothing() {
        let mut m = Module::new("m");
        let mut b = ComputationBuilder::new(&mut m, "main");
        let x = b.parameter("x", Shape::array(ElementType::F32, &[2, 3]));
        let e = b.dot(x, x, [&[1], &[0]], [&[], &[]]).unwrap_err();
        assert_eq!(e.code, crate::diag::codes::CONTRACTING_SIZES);
        let square = b.dot(x, x, [&[1], &[1]], [&[], &[]]).unwrap();
        assert_eq!(*b.shape(square), Shape::array(ElementType::F32, &[2, 2]));
        let main = b.finish();
        assert_eq!(m.computation(main).len(), 2);
    }

    #[test]
    fn broadcasts_and_sorts() {
        let mut m = Module::new("m");
        let less = comparator(&mut m, "less", Direction::Lt, &[ElementType::F32, ElementType::S32]).unwrap();
        let mut b = ComputationBuilder::new(&mut m, "main");
        let x = b.parameter("x", Shape::array(ElementType::F32, &[3]));
        let wide = b.broadcast(x, &[2, 3], &[1]).unwrap();
        let i = b.iota(Shape::array(ElementType::S32, &[2, 3]), 1).unwrap();
        let sorted = b.sort(&[wide, i], 1, less, true).unwrap();
        assert_eq!(b.shape(sorted).to_string(), "(f32[2,3], s32[2,3])");
        let keys = b.get(sorted, 0).unwrap();
        assert_eq!(*b.shape(keys), Shape::array(ElementType::F32, &[2, 3]));
    }
}
