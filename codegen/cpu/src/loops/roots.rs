//! The nests of roots of the same dimensions: one element per iteration, or all columns of a short row,
//! vectorized over contiguous elements or across rows.

use hlo::{ArrayShape, ElementType, InstrId};
use hlo_library_base::Unsupported;
use hlo_opt::expr::index::{Affine, AtomId, Def, Index, components};
use hlo_opt::expr::{Expr, Op};
use hlo_opt::passes::facts::{MAX_INTERLEAVED_COLUMNS, MAX_UNROLLED_COLUMNS};

use super::collapse;
use super::nest::{Nest, Output, variables_of};

/// The minimum number of rows that are vectorized across: a register full of f32.
const MIN_ROWS: i64 = 16;

/// Collapsed dimensions are taken if their cost is at most this share of the other way's.
const MAX_COLLAPSED_COST: f64 = 0.75;

/// How short inner dimensions are iterated: the number of them that are unrolled as columns, and which of the
/// others are collapsed.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// The number of unrolled dimensions.
    pub(super) columns: usize,
    /// The first of the collapsed dimensions.
    pub(super) collapsed: Option<usize>,
}

/// A root of a computation.
pub(super) struct Root<'m> {
    /// The instruction, and its array leaf.
    pub(super) instr: InstrId,
    pub(super) leaf: u32,
    /// The array that it is stored in.
    pub(super) array: u32,
    /// The window of that array that is written, if not all.
    pub(super) window: Option<InstrId>,
    /// The shape of that array.
    pub(super) shape: &'m ArrayShape,
}

/// The maximum number of columns of complex numbers that are vectorized across rows.
const MAX_COMPLEX_COLUMNS: i64 = 7;

impl Root<'_> {
    /// The nest of roots of the same dimensions, or of as many elements in the same order, over a box of
    /// these; its variables are numbered from `first`.
    pub(super) fn nest(
        roots: &[Self],
        expr: &mut Expr<'_>,
        dims: &[i64],
        piece: &[(i64, i64)],
        first: u32,
    ) -> std::result::Result<Nest, Unsupported> {
        let variables = variables_of(expr, piece, first);
        Self::nest_of(roots, expr, dims, variables)
    }

    /// The same over variables of its own.
    fn nest_of(
        roots: &[Self],
        expr: &mut Expr<'_>,
        dims: &[i64],
        (index, vars): (Index, Vec<(u32, i64)>),
    ) -> std::result::Result<Nest, Unsupported> {
        let mut outputs = Vec::new();
        for root in roots {
            let (node, to) = match root.window {
                Some(update) => {
                    let starts = expr.window_starts(root.instr, 2, &root.shape.dims, dims)?;
                    let to: Index = index.iter().zip(&starts).map(|(x, s)| expr.space.add(x, s)).collect();
                    (expr.node(update, 0, &index)?, to)
                }
                None => {
                    let own = expr.space.reshape(&index, dims, &root.shape.dims);
                    (expr.node(root.instr, root.leaf, &own)?, own)
                }
            };
            let at = expr.space.linear(&to, &root.shape.dims);
            outputs.push(Output { node, array: root.array, at });
        }
        Ok(Nest::over(vars, outputs, dims, 1))
    }

    /// The inner dimensions (their number) that make rows so short that they are better unrolled and
    /// vectorized across rows, unless they collapse with the others. `assembled`: columns come from different
    /// sources, so that even longer rows are worth it; so they are where each column is a row of an array.
    pub(super) fn narrow(
        roots: &[Self],
        expr: &Expr<'_>,
        dims: &[i64],
        first: u32,
        assembled: bool,
    ) -> std::result::Result<Option<usize>, Unsupported> {
        let mut rows: Vec<(usize, i64)> = Vec::new();
        let mut size = 1i64;
        for (inner, &d) in (1..).zip(dims.iter().rev()) {
            size = size.saturating_mul(d);
            if size > MAX_INTERLEAVED_COLUMNS {
                break;
            }
            rows.push((inner, size));
        }
        // The longest rows first. There must be many of them.
        let many = |&(inner, size): &(usize, i64)| {
            let next = dims[..dims.len() - inner].iter().rev().find(|&&d| d != 1);
            size >= 2 && next.is_some_and(|&r| r >= MIN_ROWS)
        };
        rows.retain(many);
        // Parts of wide complex numbers would be loaded one by one.
        let plain = roots.iter().all(|r| r.window.is_none() && r.shape.element_type != ElementType::C128);
        // Otherwise rows whose length is a power of two are better one loop ([`collapse`]), and code of two
        // parts per column is long.
        if roots.iter().any(|r| r.shape.element_type.is_complex()) {
            rows.retain(|&(_, size)| size <= MAX_COMPLEX_COLUMNS && !size.unsigned_abs().is_power_of_two());
        }
        if rows.is_empty() || !plain {
            return Ok(None);
        }
        let mut trial = expr.clone();
        let whole: Vec<(i64, i64)> = dims.iter().map(|&n| (0, n)).collect();
        let mut nest = Self::nest(roots, &mut trial, dims, &whole, first)?;
        nest.join(&mut trial);
        if !assembled && !across_rows(&trial, &nest) {
            rows.retain(|&(_, size)| size <= MAX_UNROLLED_COLUMNS);
        }
        // The variables that are exactly these dimensions.
        let apart = |size: i64| {
            let products = nest.vars.iter().skip(1).rev().scan(1i64, |product, v| {
                *product = product.saturating_mul(v.1);
                Some(*product)
            });
            products.into_iter().any(|p| p == size)
        };
        Ok(rows.into_iter().rev().find(|&(_, size)| apart(size)).map(|(inner, _)| inner))
    }

    /// The nest of roots that computes all columns of a row in one iteration, over a piece of the outer
    /// dimensions: the inner ones are the row. From `collapsed` on, outer dimensions are collapsed into one
    /// variable.
    pub(super) fn columns(
        roots: &[Self],
        expr: &mut Expr<'_>,
        dims: &[i64],
        outer: &[(i64, i64)],
        first: u32,
        collapsed: Option<usize>,
    ) -> std::result::Result<Nest, Unsupported> {
        let rank = outer.len();
        let row = &dims[rank..];
        let mut all: Vec<Nest> = Vec::new();
        for column in 0..row.iter().product() {
            let ends = components(column, row).into_iter().map(|at| (at, at + 1));
            let piece: Vec<(i64, i64)> = outer.iter().copied().chain(ends).collect();
            let variables = match collapsed {
                Some(from) => collapse::variables_of(expr, &piece, first, from..rank),
                None => variables_of(expr, &piece, first),
            };
            all.push(Self::nest_of(roots, expr, dims, variables)?);
        }
        let outputs =
            (0..roots.len()).flat_map(|r| all.iter().map(move |nest| nest.outputs[r].clone())).collect();
        let columns = all.len();
        let vars = all.pop().map(|nest| nest.vars).unwrap_or_default();
        Ok(Nest::over(vars, outputs, dims, columns))
    }

    /// The best way with collapsed dimensions, if it is much cheaper than without, which unrolls that many
    /// columns or none.
    pub(super) fn collapsed(
        roots: &[Self],
        expr: &Expr<'_>,
        dims: &[i64],
        first: u32,
        columns: Option<usize>,
    ) -> std::result::Result<Option<Way>, Unsupported> {
        if roots.iter().any(|r| r.window.is_some()) || collapse::from(dims).is_none() {
            return Ok(None);
        }
        let complex = roots.iter().any(|r| r.shape.element_type.is_complex());
        let mut sizes = dims.iter().rev().scan(1i64, |size, &d| {
            *size = size.saturating_mul(d);
            Some(*size)
        });
        let few = sizes.by_ref().take_while(|&size| size <= MAX_UNROLLED_COLUMNS && !complex).count();
        let cost = |way: Way| -> std::result::Result<f64, Unsupported> {
            let mut trial = expr.clone();
            let outer: Vec<(i64, i64)> = dims[..dims.len() - way.columns].iter().map(|&n| (0, n)).collect();
            let mut nest = Self::columns(roots, &mut trial, dims, &outer, first, way.collapsed)?;
            nest.join(&mut trial);
            Ok(collapse::cost(&trial, &nest))
        };
        let mut best =
            (cost(Way { columns: columns.unwrap_or(0), collapsed: None })? * MAX_COLLAPSED_COST, None);
        for columns in 0..=few {
            let Some(from) = collapse::from(&dims[..dims.len() - columns]) else { continue };
            let way = Way { columns, collapsed: Some(from) };
            let cost = cost(way)?;
            if cost < best.0 {
                best = (cost, Some(way));
            }
        }
        Ok(best.1)
    }
}

/// Whether a nest reads an array that is contiguous along the last but one variable, and not along the
/// innermost.
fn across_rows(expr: &Expr<'_>, nest: &Nest) -> bool {
    let [.., (row, _), (column, _)] = nest.vars[..] else { return false };
    let factor = |at: &Affine, var: u32| {
        let of =
            |(atom, factor): &(AtomId, i64)| (expr.space.atom(*atom).def == Def::Var(var)).then_some(*factor);
        at.terms.iter().find_map(of).unwrap_or(0)
    };
    expr.reachable(nest.outputs.iter().map(|o| o.node)).into_iter().any(|n| {
        match &expr.nodes[n as usize].op {
            Op::Load { at, .. } => factor(at, row) == 1 && factor(at, column) > 1,
            _ => false,
        }
    })
}
