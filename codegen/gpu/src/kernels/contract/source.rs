//! The operands of tiled kernels: matrices of rows and terms, read in contiguous vectors.

use hlo::ElementType;
use hlo_llvm::{Emit, Prim, Result, Value};

use crate::code::ACCESS_BYTES;

use super::operand::{Operand, Steps, index_prim};

/// The dimension along which a matrix is contiguous, and the number of elements per access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Along {
    /// Terms of a row.
    Terms(i64),
    /// Rows of a term.
    Rows(i64),
}

impl Along {
    /// The number of elements that are read at once.
    pub(crate) fn width(self) -> i64 {
        match self {
            Along::Terms(n) | Along::Rows(n) => n,
        }
    }
}

/// A batch of matrices.
pub(crate) trait Source {
    /// The number of the kernel's argument.
    fn argument(&self) -> u32;
    /// Its element type in memory.
    fn ty(&self) -> ElementType;
    /// Its layout. **Invariant:** a vector of elements that begins at a multiple of its length is all inside
    /// or all outside of the matrix, contiguous in memory, and aligned to its size.
    fn along(&self) -> Along;
    /// The stride of terms if it is constant and no element is absent.
    fn term_stride(&self) -> Option<i64>;
    /// The state of a row of a matrix of the batch (both `i32`).
    fn row<'ctx>(&self, e: &Emit<'_, 'ctx>, batch: Value<'ctx>, row: Value<'ctx>)
    -> Result<Vec<Value<'ctx>>>;
    /// The offset, in elements, of a term (an `i32`) of a row, and whether it exists, if that depends.
    fn at<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        row: &[Value<'ctx>],
        term: Value<'ctx>,
    ) -> Result<(Value<'ctx>, Option<Value<'ctx>>)>;
}

/// The widest power of two up to what an access has, of which numbers are multiples.
pub(crate) fn width(bytes: i64, numbers: impl IntoIterator<Item = i64>) -> i64 {
    let mut width = (ACCESS_BYTES.cast_signed() / bytes).max(1);
    for number in numbers {
        while number % width != 0 {
            width /= 2;
        }
    }
    width
}

/// An operand in memory.
#[derive(Clone, Debug)]
pub(crate) struct Matrix<'a> {
    operand: &'a Operand,
    along: Along,
    prim: Prim,
}

impl<'a> Matrix<'a> {
    /// Of an operand.
    pub(crate) fn new(operand: &'a Operand) -> Self {
        let bytes = operand.ty.storage_bytes() as i64;
        let [batch, rows, terms] = [&operand.batch, &operand.rows, &operand.terms];
        let strides = |steps: &'a Steps| steps.dims().iter().map(|d| d.1);
        let outer = |steps: &'a Steps| {
            let dims = steps.dims();
            let outer = dims[..dims.len().saturating_sub(1)].iter().map(|d| d.1);
            outer.chain(dims.last().map(|d| d.0))
        };
        let inner = |steps: &Steps| steps.dims().last().map_or(i64::MAX, |d| d.1);
        let along = if inner(terms) == 1 {
            Along::Terms(width(bytes, strides(batch).chain(strides(rows)).chain(outer(terms))))
        } else if inner(rows) == 1 {
            Along::Rows(width(bytes, strides(batch).chain(strides(terms)).chain(outer(rows))))
        } else if inner(rows) < inner(terms) {
            Along::Rows(1)
        } else {
            Along::Terms(1)
        };
        Self { operand, along, prim: index_prim(operand.elements) }
    }
}

impl Source for Matrix<'_> {
    fn argument(&self) -> u32 {
        self.operand.argument
    }

    fn ty(&self) -> ElementType {
        self.operand.ty
    }

    fn along(&self) -> Along {
        self.along
    }

    fn term_stride(&self) -> Option<i64> {
        self.operand.terms.stride()
    }

    fn row<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        batch: Value<'ctx>,
        row: Value<'ctx>,
    ) -> Result<Vec<Value<'ctx>>> {
        let batch = self.operand.batch.offset(e, e.resize(batch, self.prim, false)?)?;
        let row = self.operand.rows.offset(e, e.resize(row, self.prim, false)?)?;
        Ok(vec![e.add(batch, row)?])
    }

    fn at<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        row: &[Value<'ctx>],
        term: Value<'ctx>,
    ) -> Result<(Value<'ctx>, Option<Value<'ctx>>)> {
        let term = self.operand.terms.offset(e, e.resize(term, self.prim, false)?)?;
        Ok((e.add(row[0], term)?, None))
    }
}
