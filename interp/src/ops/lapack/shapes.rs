//! Operands and results of a call: batches of matrices and vectors, and their layouts.

use hlo::literal::BufferOf;
use hlo::{ArrayShape, AttrKey, AttrValue, ElementType, Shape};
use hlo_matrices::Matrix;
use hlo_matrices::wide::Widened;

use super::config::Config;
use crate::custom_call::{Call, has_static_sizes};
use crate::error::{Result, RunError};
use crate::ops::common::{dims, results_of};
use crate::ops::{Args, Cx};
use crate::value::{Sizes, Tensor, Value, sizes};

/// A call that is being run, or checked.
pub(super) struct Job<'a> {
    call: &'a Call<'a>,
    operands: Vec<Operand>,
    /// The run; `None`: operands have no elements.
    cx: Option<&'a Cx<'a>>,
}

/// An operand.
enum Operand {
    Given(Tensor),
    /// Its type and sizes.
    Known(ElementType, Sizes),
}

impl Operand {
    fn element_type(&self) -> ElementType {
        match self {
            Operand::Given(tensor) => tensor.element_type(),
            Operand::Known(ty, _) => *ty,
        }
    }

    fn sizes(&self) -> Sizes {
        match self {
            Operand::Given(tensor) => tensor.sizes(),
            Operand::Known(_, sizes) => sizes.clone(),
        }
    }

    /// Its elements, none of one that is only known; `None`: they are of another type.
    fn elements<T: BufferOf>(&self) -> Option<&[T]> {
        match self {
            Operand::Given(tensor) => T::slice(tensor.buffer()),
            Operand::Known(ty, _) => (*ty == T::TYPE).then_some(&[]),
        }
    }
}

/// A batch of matrices.
pub(super) struct Matrices<'a, T> {
    elements: &'a [T],
    /// Number of rows.
    pub(super) rows: usize,
    /// Number of columns.
    pub(super) columns: usize,
}

/// A batch of vectors.
pub(super) struct Lines<'a, T> {
    elements: &'a [T],
    /// Number of elements of one.
    pub(super) len: usize,
}

impl<'a, T: Copy> Matrices<'a, T> {
    /// The elements of one, in row-major order.
    pub(super) fn slice(&self, i: usize) -> &'a [T] {
        let size = self.rows * self.columns;
        &self.elements[i * size..][..size]
    }
}

impl<T: Widened> Matrices<'_, T> {
    /// One of them, in wide arithmetic.
    pub(super) fn get(&self, i: usize) -> Matrix<T::Wide> {
        Matrix::widened(self.slice(i), self.rows, self.columns)
    }
}

impl<'a, T: Copy> Lines<'a, T> {
    /// The elements of one.
    pub(super) fn slice(&self, i: usize) -> &'a [T] {
        &self.elements[i * self.len..][..self.len]
    }
}

impl<T: Widened> Lines<'_, T> {
    /// One of them, in wide arithmetic.
    pub(super) fn get(&self, i: usize) -> Vec<T::Wide> {
        self.slice(i).iter().map(|x| x.widen()).collect()
    }
}

/// The dimensions of a result of one matrix of the batch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Core {
    /// A matrix.
    Matrix(usize, usize),
    /// A vector.
    Line(usize),
    /// One number.
    One,
}

impl<'a> Job<'a> {
    /// Of the operands of a call, which must be arrays.
    pub(super) fn new(cx: &'a Cx<'a>, call: &'a Call<'a>, args: Args) -> Result<Self> {
        let operands = args.into_iter().map(|value| match value {
            Value::Array(t) => Ok(Operand::Given(t)),
            Value::Tuple(_) | Value::Token | Value::Pending(_) => Err(no_array(call)),
        });
        Ok(Self { call, operands: operands.collect::<Result<_>>()?, cx: Some(cx) })
    }

    /// Of the shapes of a call alone; `None`: some sizes are known at run time alone.
    pub(super) fn of_shapes(call: &'a Call<'a>) -> Result<Option<Self>> {
        let arrays = call.operands().map(|shape| shape.as_array().ok_or_else(|| no_array(call)));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        if !call.operands().chain([&call.instruction.shape]).all(has_static_sizes) {
            return Ok(None);
        }
        let operands = arrays.iter().map(|a| Operand::Known(a.element_type, sizes(&a.dims))).collect();
        Ok(Some(Self { call, operands, cx: None }))
    }

    /// The settings, which must be exactly these.
    pub(super) fn config(&self, keys: &[&str]) -> Result<Config<'a>> {
        Config::new(self.call, keys)
    }

    /// The error that this form of the call is not supported.
    pub(super) fn unsupported<V>(&self, why: &str) -> Result<V> {
        Err(self.call.unsupported(why))
    }

    /// Checks the number of operands.
    pub(super) fn operands(&self, n: usize) -> Result<()> {
        if self.operands.len() == n {
            return Ok(());
        }
        self.unsupported(&format!("with {} operands instead of {n}", self.operands.len()))
    }

    /// The type of the elements of an operand.
    pub(super) fn element_type(&self, n: usize) -> Result<ElementType> {
        match self.operands.get(n) {
            Some(t) => Ok(t.element_type()),
            None => self.unsupported(&format!("without operand {n}")),
        }
    }

    /// Operand `n`, of `rank` dimensions in addition to those of the batch.
    fn operand<T: BufferOf>(&self, n: usize, rank: usize) -> Result<(&[T], Sizes, Sizes)> {
        let Some(operand) = self.operands.get(n) else {
            return self.unsupported(&format!("without operand {n}"));
        };
        let Some(elements) = operand.elements() else {
            return self.unsupported(&format!("with operand {n} of type {}", operand.element_type()));
        };
        let sizes = operand.sizes();
        let Some(at) = sizes.len().checked_sub(rank) else {
            return self.unsupported(&format!("with operand {n} of {} dimensions", sizes.len()));
        };
        let constraint = match self.call.instruction.attrs.get(AttrKey::OperandLayoutConstraints) {
            Some(AttrValue::Shapes(shapes)) => shapes.get(n),
            _ => None,
        };
        let own = self.call.operands().nth(n);
        if let Some(Shape::Array(shape)) = constraint.or(own)
            && !layout_fits(shape, rank)
        {
            return self.unsupported(&format!("with operand {n} in another layout than LAPACK's ({shape})"));
        }
        Ok((elements, sizes[..at].into(), sizes[at..].into()))
    }

    /// Operand `n` as matrices, and the dimensions of the batch.
    pub(super) fn matrices<T: BufferOf>(&self, n: usize) -> Result<(Matrices<'_, T>, Sizes)> {
        let (elements, batch, core) = self.operand(n, 2)?;
        Ok((Matrices { elements, rows: core[0], columns: core[1] }, batch))
    }

    /// Operand `n` as square matrices, and the dimensions of the batch.
    pub(super) fn square<T: BufferOf>(&self, n: usize) -> Result<(Matrices<'_, T>, Sizes)> {
        let (x, batch) = self.matrices(n)?;
        if x.rows != x.columns {
            return self.unsupported(&format!("of a matrix of {} by {}", x.rows, x.columns));
        }
        Ok((x, batch))
    }

    /// Operand `n` as matrices of a batch.
    pub(super) fn more_matrices<T: BufferOf>(&self, n: usize, batch: &Sizes) -> Result<Matrices<'_, T>> {
        let (x, own) = self.matrices(n)?;
        self.same_batch(n, &own, batch)?;
        Ok(x)
    }

    /// Operand `n` as vectors of a batch.
    pub(super) fn lines<T: BufferOf>(&self, n: usize, batch: &Sizes) -> Result<Lines<'_, T>> {
        let (elements, own, core) = self.operand(n, 1)?;
        self.same_batch(n, &own, batch)?;
        Ok(Lines { elements, len: core[0] })
    }

    fn same_batch(&self, n: usize, own: &Sizes, batch: &Sizes) -> Result<()> {
        if own == batch {
            return Ok(());
        }
        self.unsupported(&format!("with operand {n} of another batch"))
    }

    /// Checks that the results are those of the routine, and that there is memory for them and for working on
    /// them; returns the number of matrices. `None`: this is a check, which ends here.
    pub(super) fn expect(&self, batch: &Sizes, expected: &[(ElementType, Core)]) -> Result<Option<usize>> {
        let shape = &self.call.instruction.shape;
        let given: Vec<&Shape> = match shape {
            Shape::Array(_) => vec![shape],
            Shape::Tuple(t) => t.iter().collect(),
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => Vec::new(),
        };
        let fits = given.len() == expected.len()
            && given.iter().zip(expected).all(|(shape, &(ty, core))| {
                let Shape::Array(shape) = shape else { return false };
                let (mut sizes, rank) = (batch.clone(), core.sizes().len());
                sizes.extend(core.sizes());
                shape.element_type == ty
                    && shape.dims[..] == dims(&sizes)[..]
                    && (rank == 0 || layout_fits(shape, rank))
            });
        if !fits {
            return self.unsupported(&format!("with results of shape {shape}"));
        }
        let Some(cx) = self.cx else { return Ok(None) };
        // The wide numbers of a matrix take twice its size, and a routine holds few copies of them.
        const COPIES: u64 = 12;
        let count: usize = batch.iter().product();
        let bytes = expected.iter().map(|&(ty, core)| {
            let elements = core.sizes().iter().product::<usize>() as u64;
            elements.saturating_mul(count as u64).saturating_mul(ty.storage_bytes() as u64)
        });
        let bytes = bytes.fold(0u64, u64::saturating_add).saturating_mul(COPIES);
        cx.reserve::<u8>(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(Some(count))
    }

    /// Rows and columns that the shape of result `n` says.
    pub(super) fn sizes_of_result(&self, n: usize) -> Option<[usize; 2]> {
        let dims = &self.call.instruction.shape.as_tuple()?.get(n)?.as_array()?.dims;
        let [.., rows, columns] = dims[..] else { return None };
        Some([usize::try_from(rows).ok()?, usize::try_from(columns).ok()?])
    }

    /// A result.
    pub(super) fn result<T: BufferOf>(&self, batch: &Sizes, core: Core, elements: Vec<T>) -> Value {
        let mut sizes = batch.clone();
        sizes.extend(core.sizes());
        Tensor::from_vec(dims(&sizes), elements).into()
    }

    /// An operand as a result: what LAPACK overwrites with something unspecified.
    pub(super) fn untouched(&self, n: usize) -> Value {
        let given = match &self.operands[n] {
            Operand::Given(tensor) => Some(tensor.clone()),
            Operand::Known(..) => None,
        };
        given.expect("invariant: a check ends before results are made").into()
    }

    /// The results together.
    pub(super) fn results(&self, values: Vec<Value>) -> Value {
        results_of(&self.call.instruction.shape, values)
    }
}

impl Core {
    /// Number of elements.
    pub(super) fn len(self) -> usize {
        self.sizes().iter().product()
    }

    fn sizes(self) -> Sizes {
        match self {
            Core::Matrix(rows, columns) => [rows, columns].into_iter().collect(),
            Core::Line(len) => [len].into_iter().collect(),
            Core::One => Sizes::new(),
        }
    }
}

fn no_array(call: &Call<'_>) -> RunError {
    call.unsupported("with an operand that is no array")
}

/// Whether an array of batches has the layout that LAPACK expects: the batch row-major outside, matrices
/// column-major inside. An array without a layout does. Dimensions of size 1 may be anywhere.
fn layout_fits(shape: &ArrayShape, rank: usize) -> bool {
    let Some(layout) = &shape.layout else { return true };
    let last = shape.dims.len() as i64;
    let matrix = [last - 2, last - 1];
    let inner: &[i64] = if rank == 2 { &matrix } else { &matrix[1..] };
    let expected = inner.iter().copied().chain((0..last - inner.len() as i64).rev());
    let counts = |&d: &i64| usize::try_from(d).is_ok_and(|d| shape.dims.get(d).is_some_and(|&n| n != 1));
    shape.dims.contains(&0)
        || layout.minor_to_major.iter().copied().filter(counts).eq(expected.filter(counts))
}
