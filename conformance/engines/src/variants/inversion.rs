//! Triangular systems by the inverse of the matrix, as XLA's expansion solves those of one block: the matrix
//! is scaled to a unit diagonal by columns, inverted row by row, scaled back by rows, and multiplied by the
//! right-hand sides.
//!
//! Forward and back substitution read one triangle, and a right-hand side reaches only the unknowns that come
//! after it. A product with the whole inverse also multiplies its zeros, and `0 * inf` is NaN: an infinity or
//! a NaN on the right reaches every unknown.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction, Transpose};
use hlo::{ElementType, InstrId, Opcode, Shape};
use hlo_opt::passes::edit::{Edit, ints};

use super::expansions::MAX_ROWS;

/// A matrix or a batch of them.
struct Matrices {
    ty: ElementType,
    dims: Vec<i64>,
    /// The dimensions of rows and of columns.
    rows: usize,
    columns: usize,
}

impl Matrices {
    fn of(e: &Edit<'_>, x: InstrId) -> Option<Matrices> {
        let array = e.array(x)?;
        let (ty, dims) = (array.element_type, array.dims.to_vec());
        let columns = dims.len().checked_sub(1)?;
        Some(Matrices { ty, rows: columns.checked_sub(1)?, columns, dims })
    }

    fn index(&self, e: &mut Edit<'_>, dimension: usize) -> Option<InstrId> {
        let attrs = Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(dimension as i64));
        e.shaped(Opcode::Iota, Shape::array(ElementType::S32, &self.dims), &[], attrs)
    }

    fn filled(&self, e: &mut Edit<'_>, value: i32) -> Option<InstrId> {
        let value = e.scalar_bits(ElementType::S32, u128::from(value as u32));
        let value = e.convert(value, self.ty)?;
        e.fill_dims(value, &self.dims)
    }

    /// The product over the last dimension of `x` and the last but one of `y`.
    fn product(&self, e: &mut Edit<'_>, x: InstrId, y: InstrId) -> Option<InstrId> {
        let batch: Vec<i64> = (0..self.rows as i64).collect();
        let attrs = Attrs::new()
            .with(AttrKey::LhsContractingDims, ints(&[self.columns as i64]))
            .with(AttrKey::RhsContractingDims, ints(&[self.rows as i64]))
            .with(AttrKey::LhsBatchDims, ints(&batch))
            .with(AttrKey::RhsBatchDims, ints(&batch));
        let mut dims = self.dims.clone();
        dims[self.rows] = e.array(x)?.dims[self.rows];
        dims[self.columns] = e.array(y)?.dims[self.columns];
        e.shaped(Opcode::Dot, Shape::array(self.ty, &dims), &[x, y], attrs)
    }

    /// The diagonal at each element: that of its row or of its column.
    fn diagonal(&self, e: &mut Edit<'_>, a: InstrId, along: usize) -> Option<InstrId> {
        let mut parts = Vec::new();
        for j in 0..self.dims[self.rows] {
            let row = e.cut(a, self.rows, j, j + 1)?;
            parts.push(e.cut(row, self.columns, j, j + 1)?);
        }
        let line = e.concatenate(&parts, along as i64)?;
        let batch = &self.dims[..self.rows];
        let flat: Vec<i64> = batch.iter().copied().chain([self.dims[self.rows]]).collect();
        let line = e.reshape(line, &flat)?;
        let mapping: Vec<i64> = (0..self.rows as i64).chain([along as i64]).collect();
        e.broadcast(line, &self.dims, &mapping)
    }
}

/// The solution of a triangular system.
pub(super) fn solved(e: &mut Edit<'_>) -> Option<InstrId> {
    let [a, b] = e.operands()?;
    let m = Matrices::of(e, a)?;
    let n = m.dims[m.rows];
    let ty = m.ty;
    let floats = ty.is_complex() || ty.is_float() && ty != ElementType::F8E8M0FNU;
    if !floats || n == 0 || n > MAX_ROWS || m.dims.contains(&0) || e.array(b)?.element_type != ty {
        return None;
    }
    let attrs = e.at().attrs.clone();
    let lower = attrs.bool(AttrKey::Lower);
    let (row, column) = (m.index(e, m.rows)?, m.index(e, m.columns)?);
    let (zeros, ones, minus) = (m.filled(e, 0)?, m.filled(e, 1)?, m.filled(e, -1)?);
    let on_diagonal = e.compare(Direction::Eq, row, column)?;
    let within = e.compare(if lower { Direction::Ge } else { Direction::Le }, row, column)?;
    let mut a = e.select(within, a, zeros)?;
    if attrs.bool(AttrKey::UnitDiagonal) {
        a = e.select(on_diagonal, ones, a)?;
    }
    let of_columns = m.diagonal(e, a, m.columns)?;
    let scaled = e.binary(Opcode::Divide, a, of_columns)?;
    // Rows that are not inverted yet are those of the unit matrix with the sign that the product takes back.
    let order: Vec<i64> = if lower { (0..n).collect() } else { (0..n).rev().collect() };
    let at_row = |e: &mut Edit<'_>, j: i64| {
        let this = e.scalar_bits(ElementType::S32, u32::try_from(j).ok()?.into());
        let this = e.fill_dims(this, &m.dims)?;
        e.compare(Direction::Eq, row, this)
    };
    let first = at_row(e, order[0])?;
    let signs = e.select(first, ones, minus)?;
    let mut inverse = e.select(on_diagonal, signs, zeros)?;
    for &j in &order[1..] {
        let line = e.cut(scaled, m.rows, j, j + 1)?;
        let product = m.product(e, line, inverse)?;
        let update = e.unary(Opcode::Negate, product)?;
        let flat: Vec<i64> = m.dims[..m.rows].iter().copied().chain([n]).collect();
        let update = e.reshape(update, &flat)?;
        let mapping: Vec<i64> = (0..m.rows as i64).chain([m.columns as i64]).collect();
        let update = e.broadcast(update, &m.dims, &mapping)?;
        let here = at_row(e, j)?;
        inverse = e.select(here, update, inverse)?;
    }
    let of_rows = m.diagonal(e, a, m.rows)?;
    inverse = e.binary(Opcode::Divide, inverse, of_rows)?;
    let transpose = attrs.transpose().copied().unwrap_or(Transpose::No);
    if transpose != Transpose::No {
        let mut exchanged: Vec<i64> = (0..m.dims.len() as i64).collect();
        exchanged.swap(m.rows, m.columns);
        inverse = e.transpose(inverse, &exchanged)?;
        if transpose == Transpose::Adjoint && ty.is_complex() {
            let (re, im) = (e.unary(Opcode::Real, inverse)?, e.unary(Opcode::Imag, inverse)?);
            let im = e.unary(Opcode::Negate, im)?;
            inverse = e.binary(Opcode::Complex, re, im)?;
        }
    }
    if attrs.bool(AttrKey::LeftSide) { m.product(e, inverse, b) } else { m.product(e, b, inverse) }
}
