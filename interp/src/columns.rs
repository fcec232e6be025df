//! Elementwise expressions over columns of elements: this crate's arithmetic for whoever evaluates
//! expressions of an IR of their own.
//!
//! An [`Expression`] has registers, each a column of elements, and steps, each from some registers to one
//! that no other step writes: the same steps that computations applied to elements are made of here
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
    /// Without registers.
    pub fn new() -> Self {
        Self(Bytecode::empty())
    }

    /// A register that the caller fills.
    pub fn input(&mut self, ty: ElementType) -> Register {
        self.0.given(ty)
    }

    /// A register with the only element of a buffer in all lanes.
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

    /// The same numbers in another type, as `convert` gives them.
    pub fn converted(&mut self, from: Register, to: ElementType) -> Register {
        self.0.converted(from, to)
    }

    /// The same bits in a type of as many, as `bitcast-convert` gives them.
    pub fn reinterpreted(&mut self, from: Register, to: ElementType) -> Register {
        self.0.reinterpret(from, to)
    }

    /// The type of a register.
    pub fn element_type(&self, register: Register) -> ElementType {
        self.0.ty(register)
    }

    /// How many steps there are. Steps that are made later have higher numbers.
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
