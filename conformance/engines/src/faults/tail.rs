//! What is left over where a loop takes several elements at a time.

use hlo::attrs::AttrKey;
use hlo::{InstrId, Opcode};

use super::edit::Edit;
use super::{Family, Needs, Row, row};

/// Elements of a vector.
const LANES: i64 = 8;
/// Elements of a vector in products.
const DOT_LANES: i64 = 4;

pub(super) const ROWS: &[Row] = &[
    row(
        "elementwise-tail-not-written",
        Family::VectorTail,
        "Arithmetic of two arrays, eight elements at a time in place of the first, leaves the elements after the last whole vector.",
        "https://github.com/llvm/llvm-project/issues/55167",
        &[Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Divide, Opcode::Maximum, Opcode::Minimum],
        elementwise_tail_not_written,
    )
    .needing(Needs::VECTOR_TAIL),
    row(
        "unary-tail-applied-twice",
        Family::VectorTail,
        "A function in place, eight elements at a time, ends with a vector that overlaps the one before, whose elements get it twice.",
        "https://github.com/jax-ml/jax/issues/9399",
        &[Opcode::Negate, Opcode::Not, Opcode::Exponential, Opcode::Cosine, Opcode::Log, Opcode::Sqrt],
        unary_tail_applied_twice,
    )
    .needing(Needs::VECTOR_TAIL),
    row(
        "reduce-tail-dropped",
        Family::VectorTail,
        "A `reduce` along the last dimension, eight elements at a time, leaves out the elements after the last whole vector.",
        "https://github.com/openxla/xla/issues/5544",
        &[Opcode::Reduce],
        reduce_tail_dropped,
    )
    .needing(Needs::VECTOR_TAIL),
    row(
        "dot-tail-dropped",
        Family::VectorTail,
        "A `dot` leaves out the products after the last four of its contracting dimension.",
        "https://github.com/llvm/llvm-project/pull/67812",
        &[Opcode::Dot],
        dot_tail_dropped,
    )
    .needing(Needs::VECTOR_TAIL),
    row(
        "transpose-tail-from-previous-tile",
        Family::VectorTail,
        "A `transpose` in tiles of eight fills the part of a tile at the end from the tile before.",
        "https://github.com/jax-ml/jax/pull/202",
        &[Opcode::Transpose],
        transpose_tail_from_previous_tile,
    )
    .needing(Needs::VECTOR_TAIL),
    row(
        "scan-carry-lost-between-blocks",
        Family::VectorTail,
        "A `scan` in blocks of eight begins each block with the initial carry.",
        "https://github.com/llvm/llvm-project/issues/59459",
        &[Opcode::Scan],
        scan_carry_lost_between_blocks,
    )
    .needing(Needs::VECTOR_TAIL),
];

/// The number of `n` elements that are in whole vectors; `None` if all are, or none.
fn whole(n: i64, lanes: i64) -> Option<i64> {
    (n > lanes && n % lanes != 0).then_some(n - n % lanes)
}

fn elementwise_tail_not_written(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.one_of(&[
        Opcode::Add,
        Opcode::Subtract,
        Opcode::Multiply,
        Opcode::Divide,
        Opcode::Maximum,
        Opcode::Minimum,
    ])?;
    let (a, b) = e.pair()?;
    let shape = e.result()?;
    e.array(a)?.same_dims(&shape).then_some(())?;
    let n = shape.checked_elements()?;
    let done = whole(n, LANES)?;
    let result = e.bin(opcode, a, b)?;
    let (result, before) = (e.flat(result)?, e.flat(a)?);
    let (written, left) = (e.cut(result, 0, 0, done)?, e.cut(before, 0, done, n)?);
    let all = e.concatenate(&[written, left], 0)?;
    e.reshape(all, &shape.dims)
}

fn unary_tail_applied_twice(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.one_of(&[
        Opcode::Negate,
        Opcode::Not,
        Opcode::Exponential,
        Opcode::Cosine,
        Opcode::Log,
        Opcode::Sqrt,
    ])?;
    let x = e.operand(0)?;
    let shape = e.result()?;
    e.array(x)?.same_dims(&shape).then_some(())?;
    let n = shape.checked_elements()?;
    let done = whole(n, LANES)?;
    let once = e.un(opcode, x)?;
    let once = e.flat(once)?;
    let overlap = e.cut(once, 0, n - LANES, done)?;
    let twice = e.un(opcode, overlap)?;
    let (head, tail) = (e.cut(once, 0, 0, n - LANES)?, e.cut(once, 0, done, n)?);
    let all = e.concatenate(&[head, twice, tail], 0)?;
    e.reshape(all, &shape.dims)
}

fn reduce_tail_dropped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Reduce)?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let shape = e.array(operands[0])?;
    let last = shape.rank().checked_sub(1)?;
    attrs.ints(AttrKey::Dimensions)?.contains(&(last as i64)).then_some(())?;
    let done = whole(shape.dims[last], LANES)?;
    let inputs = operands.len() / 2;
    for x in &mut operands[..inputs] {
        *x = e.cut(*x, last, 0, done)?;
    }
    e.again(&operands, attrs)
}

fn dot_tail_dropped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Dot)?;
    let (a, b) = e.pair()?;
    let attrs = e.attrs();
    let left = *attrs.ints(AttrKey::LhsContractingDims)?.last()? as usize;
    let right = *attrs.ints(AttrKey::RhsContractingDims)?.last()? as usize;
    let done = whole(e.array(a)?.dims[left], DOT_LANES)?;
    let (a, b) = (e.cut(a, left, 0, done)?, e.cut(b, right, 0, done)?);
    e.again(&[a, b], attrs)
}

fn transpose_tail_from_previous_tile(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Transpose)?;
    let permutation = e.me().attrs.ints(AttrKey::Dimensions)?;
    let last = permutation.len().checked_sub(1)?;
    (permutation[last] != last as i64).then_some(())?;
    let n = e.result()?.dims[last];
    let done = whole(n, LANES)?;
    let (operands, attrs) = (e.operands(), e.attrs());
    let right = e.again(&operands, attrs)?;
    let (tiles, wrong) = (e.cut(right, last, 0, done)?, e.cut(right, last, done - LANES, n - LANES)?);
    e.concatenate(&[tiles, wrong], last as i64)
}

fn scan_carry_lost_between_blocks(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Scan)?;
    (e.me().attrs.int(AttrKey::NumCarries)? == 1 && !e.me().attrs.bool(AttrKey::IsReverse)).then_some(())?;
    let (x, init) = e.pair()?;
    let attrs = e.attrs();
    let dim = *attrs.ints(AttrKey::Dimensions)?.first()?;
    let n = e.array(x)?.dims[dim as usize];
    (n > LANES).then_some(())?;
    let mut outputs = Vec::new();
    let mut carry = init;
    for start in (0..n).step_by(LANES as usize) {
        let block = e.cut(x, dim as usize, start, (start + LANES).min(n))?;
        let scanned = e.add(Opcode::Scan, &[block, init], attrs.clone())?;
        outputs.push(e.get(scanned, 0)?);
        carry = e.get(scanned, 1)?;
    }
    let output = e.concatenate(&outputs, dim)?;
    e.tuple(&[output, carry])
}
