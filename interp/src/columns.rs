//! Elementwise expressions over columns of elements: this crate's arithmetic for evaluators of another IR.
//!
//! An [`Expression`] has registers, each a column of elements, and steps, each from some registers to one
//! that no other step writes: the bytecode that applied computations are compiled to here
//! ([`crate::Interpreter`]). **Invariant:** lane `i` of a register depends on lane `i` of the registers that
//! its step reads, and its bits are those that the interpreter gives for the instruction.

use hlo::elementwise::{Binary, Kind};
use hlo::{Attrs, Buffer, ElementType};

use crate::region::bytecode::Bytecode;

/// A column: an index into [`Expression::columns`].
pub type Register = usize;

/// An expression. Registers are made in the order in which they are computed.
#[derive(Debug)]
pub struct Expression(Bytecode);

impl Default for Expression {
    fn default() -> Self {
        Self::new()
    }
}

impl Expression {
    /// An expression without registers.
    pub fn new() -> Self {
        Self(Bytecode::empty())
    }

    /// An input register, which the caller fills.
    pub fn input(&mut self, ty: ElementType) -> Register {
        self.0.given(ty)
    }

    /// A constant register: the only element of a buffer in all lanes.
    pub fn constant(&mut self, element: Buffer) -> Register {
        self.0.constant(element)
    }

    /// An elementwise operation with these attributes and result type. `None`: there is none on these types.
    pub fn elementwise(
        &mut self,
        kind: Kind,
        attrs: &Attrs,
        to: ElementType,
        operands: &[Register],
    ) -> Option<Register> {
        self.0.elementwise(kind, attrs, to, operands)
    }

    /// An operation of two registers of its result's type.
    pub fn binary(&mut self, op: Binary, ty: ElementType, operands: [Register; 2]) -> Option<Register> {
        self.0.elementwise(Kind::Binary(op), &Attrs::default(), ty, &operands)
    }

    /// A conversion to another type, as `convert`.
    pub fn converted(&mut self, from: Register, to: ElementType) -> Register {
        self.0.converted(from, to)
    }

    /// A bitcast to a type of the same width, as `bitcast-convert`.
    pub fn reinterpreted(&mut self, from: Register, to: ElementType) -> Register {
        self.0.reinterpret(from, to)
    }

    /// The type of a register.
    pub fn element_type(&self, register: Register) -> ElementType {
        self.0.ty(register)
    }

    /// The number of steps. Steps that are added later have higher numbers.
    pub fn steps(&self) -> usize {
        self.0.steps()
    }

    /// Columns of that many lanes for all registers.
    pub fn columns(&self, lanes: usize) -> Vec<Buffer> {
        self.0.columns(lanes)
    }

    /// Computes the first `n` lanes of what these steps write.
    pub fn run(&self, steps: std::ops::Range<usize>, columns: &mut [Buffer], n: usize) {
        self.0.run_some(steps, columns, n);
    }
}
