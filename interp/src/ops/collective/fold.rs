//! Folding what participants contribute, element by element, in their order.
//!
//! An addition of floats is a sum (`--accumulate`): with `exact` the exact value of all terms, rounded once.
//! Everything else, and `--accumulate region`, is literal: `acc` begins with the first contribution, then
//! `acc = f(acc, next)`. One contribution alone is its own fold, bit for bit.

use std::sync::OnceLock;

use hlo::literal::{Buffer, BufferOf};
use hlo::num_complex::Complex;
use hlo::{AttrKey, ElementType, Opcode, Shape, TypeClass, with_buffer, with_element_type};
use hlo_arithmetic::kernels::reduce::Reduce;
use hlo_arithmetic::sum::Accumulate;
use hlo_threads::parallel;

use super::super::Cx;
use super::super::common::region;
use super::super::elementwise::convert;
use super::super::reduce::{complex_sum, fold, keep, restore, sum, typed};
use super::copied;
use crate::error::{Result, RunError};
use crate::region::{LANES, Region};
use crate::value::Tensor;

/// Elements that are brought together at a time.
const GATHERED: usize = 1 << 18;

/// The fold of each operand over the participants. What one operation folds is computed once for all that
/// share `shared`. Errors: memory, fuel, what the computation does; the same for every participant.
pub(super) fn folded(
    cx: &Cx<'_>,
    given: &[&[Tensor]],
    shared: Option<&OnceLock<Result<Vec<Tensor>, RunError>>>,
) -> Result<Vec<Tensor>> {
    let operands = given[0].len();
    if given.len() == 1 {
        return Ok(given[0].to_vec());
    }
    check_computation(cx, given[0])?;
    let region = region(cx, AttrKey::ToApply)?;
    let columns: Vec<Vec<&Tensor>> = (0..operands).map(|i| given.iter().map(|g| &g[i]).collect()).collect();
    if let Some((op, _)) = region.as_binary() {
        // Asked for by everybody, whoever computes it.
        for column in &columns {
            let rows = given.len().min(GATHERED / column[0].len().max(1) + 1) + 1;
            let gathered_bytes = column[0]
                .len()
                .saturating_mul(rows)
                .saturating_mul(16)
                .min(16 * GATHERED.max(2 * given.len()));
            cx.session.check_memory(cx.instr, Some(column[0].bytes().max(gathered_bytes as u64)))?;
        }
        let compute = || columns.iter().map(|column| by_operation(cx, op, &region, column)).collect();
        return match shared {
            None => compute(),
            Some(shared) => match shared.get_or_init(compute) {
                Ok(results) => results.iter().map(|x| copied(cx, x)).collect(),
                Err(e) => Err(e.clone()),
            },
        };
    }
    if region.parameters().len() == 2 {
        return columns.iter().map(|c| applied(cx, &region, &[c]).map(|mut x| x.swap_remove(0))).collect();
    }
    let columns: Vec<&[&Tensor]> = columns.iter().map(Vec::as_slice).collect();
    applied(cx, &region, &columns)
}

/// Refuses a computation that does not fold: of scalars, the results of the types of the accumulators; two
/// parameters, or two for each operand. The verifier, like XLA's, does not ask for this.
fn check_computation(cx: &Cx<'_>, operands: &[Tensor]) -> Result<()> {
    let shape = cx.attrs().computation(AttrKey::ToApply).and_then(|c| cx.module().program_shape(c));
    let shape = shape.ok_or_else(|| cx.unsupported("without a computation"))?;
    let scalar = |s: &Shape| s.as_array().filter(|a| a.dims.is_empty()).map(|a| a.element_type);
    let parameters: Option<Vec<ElementType>> = shape.parameters.iter().map(scalar).collect();
    let results: Option<Vec<ElementType>> = shape.result.leaves().into_iter().map(scalar).collect();
    let (Some(parameters), Some(results)) = (parameters, results) else {
        return Err(cx.unsupported("with a computation of anything but scalars"));
    };
    let k = results.len();
    let counts = parameters.len() == 2 * k && (k == 1 || k == operands.len());
    let class = |a: ElementType, b: ElementType| a == b || a.is_float() && b.is_float();
    let types = counts
        && parameters[..k] == results
        && parameters.iter().enumerate().all(|(i, &ty)| {
            let of = if k == 1 { operands } else { &operands[i % k..=i % k] };
            of.iter().all(|x| class(x.element_type(), ty))
        });
    if types {
        return Ok(());
    }
    let shown: Vec<&str> = parameters.iter().map(|ty| ty.name()).collect();
    Err(cx.unsupported(&format!(
        "with a computation of ({}) that does not fold its operands",
        shown.join(", ")
    )))
}

/// The fold of a column, in the type of the computation, by an operation that every number type has a loop
/// for.
fn by_operation(cx: &Cx<'_>, op: Opcode, region: &Region, column: &[&Tensor]) -> Result<Tensor> {
    let ty = region.parameters()[0];
    if column[0].element_type() != ty {
        let converted =
            column.iter().map(|x| convert(cx, (*x).clone(), ty)).collect::<Result<Vec<Tensor>>>()?;
        return by_operation(cx, op, region, &converted.iter().collect::<Vec<_>>());
    }
    let (n, len) = (column.len(), column[0].len());
    let block = (GATHERED / n).max(1);
    let mut out: Option<Buffer> = None;
    for first in (0..len).step_by(block) {
        let count = block.min(len - first);
        let view = Reduce { outer: 1, reduced: n, inner: count };
        let exact = op == Opcode::Add && cx.accumulate() == Accumulate::Exact;
        let result = match ty.class() {
            // -0 is the addend that changes nothing.
            TypeClass::Float if exact => {
                let rows = Tensor::new([n as i64, count as i64].as_slice(), gathered(column, first, count));
                sum(cx, view, rows, -0.0, ty, count)?
            }
            TypeClass::Complex if exact => {
                let rows = Tensor::new([n as i64, count as i64].as_slice(), gathered(column, first, count));
                let zero = Complex::new(-0.0, -0.0);
                if ty == ElementType::C64 {
                    complex_sum::<f32>(cx, view, &rows, zero, count)?
                } else {
                    complex_sum::<f64>(cx, view, &rows, zero, count)?
                }
            }
            TypeClass::Pred
            | TypeClass::Signed
            | TypeClass::Unsigned
            | TypeClass::Float
            | TypeClass::Complex => {
                let start = gathered(&column[..1], first, count);
                let rest = gathered(&column[1..], first, count);
                let view = Reduce { reduced: n - 1, ..view };
                let folded = with_buffer!(&rest, x => {
                    let start = BufferOf::unwrap(start).expect("invariant: contributions are of one type");
                    fold(op, view, x, start)
                });
                match folded {
                    Some(folded) => folded,
                    // The type has no such operation as a loop.
                    None => return applied(cx, region, &[column]).map(|mut x| x.swap_remove(0)),
                }
            }
        };
        match &mut out {
            None => {
                let mut result = result;
                with_buffer!(&mut result, v => v.reserve_exact(len - count));
                out = Some(result);
            }
            Some(out) => append(out, &result),
        }
    }
    Ok(Tensor::new(column[0].dims(), out.unwrap_or_else(|| Buffer::zeros(ty, 0))))
}

/// Elements `first..first + count` of each tensor, one after the other.
fn gathered(column: &[&Tensor], first: usize, count: usize) -> Buffer {
    fn of<T: BufferOf>(column: &[&Tensor], first: usize, count: usize) -> Buffer {
        let mut rows = Vec::with_capacity(column.len() * count);
        column.iter().for_each(|x| rows.extend_from_slice(&x.slice::<T>()[first..first + count]));
        T::wrap(rows)
    }
    with_element_type!(column[0].element_type(), T => of::<T>(column, first, count))
}

fn append(out: &mut Buffer, more: &Buffer) {
    fn of<T: BufferOf>(out: &mut Vec<T>, more: &Buffer) {
        out.extend_from_slice(T::slice(more).expect("invariant: blocks are of one type"));
    }
    with_buffer!(out, out => of(out, more));
}

/// The fold by any computation, columns in step: `f(acc..., next...)`.
fn applied(cx: &Cx<'_>, region: &Region, columns: &[&[&Tensor]]) -> Result<Vec<Tensor>> {
    let (k, n, len) = (columns.len(), columns[0].len(), columns[0][0].len());
    let mut typed_columns: Vec<Vec<Tensor>> = vec![Vec::with_capacity(k); n];
    for (j, row) in typed_columns.iter_mut().enumerate() {
        let operands = columns.iter().map(|c| c[j].clone()).collect();
        // The accumulator and the next element may be of different types.
        *row = typed(cx, region, operands, if j == 0 { 0 } else { k })?;
    }
    for column in columns {
        cx.session.check_memory(cx.instr, Some(column[0].bytes()))?;
    }
    let blocks: Vec<Result<Vec<Buffer>>> = parallel::collect(len.div_ceil(LANES), &|block| {
        let (first, count) = (block * LANES, LANES.min(len - block * LANES));
        let mut lanes = region.lanes(count);
        let mut accumulators: Vec<Buffer> =
            typed_columns[0].iter().map(|x| gathered(&[x], first, count)).collect();
        for row in &typed_columns[1..] {
            restore(&accumulators, &mut lanes, count);
            for (i, x) in row.iter().enumerate() {
                with_buffer!(x.buffer(), x => lanes.input(k + i)[..count].copy_from_slice(&x[first..first + count]));
            }
            region.eval(cx, &mut lanes, count)?;
            keep(&lanes, &mut accumulators, count);
        }
        Ok(accumulators)
    });
    let mut out: Vec<Option<Buffer>> = vec![None; k];
    for block in blocks {
        for (out, part) in out.iter_mut().zip(block?) {
            match out {
                None => *out = Some(part),
                Some(out) => append(out, &part),
            }
        }
    }
    let empty = |i: usize| Buffer::zeros(region.parameters()[i], 0);
    let whole = out.into_iter().enumerate().map(|(i, b)| (i, b.unwrap_or_else(|| empty(i))));
    Ok(whole.map(|(i, b)| Tensor::new(columns[i][0].dims(), b)).collect())
}
