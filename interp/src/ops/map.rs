//! `map`: a computation applied to each element.

use hlo::literal::{Buffer, BufferOf};
use hlo::{AttrKey, with_element_type};

use super::{Args, Cx};
use crate::error::Result;
use crate::region::LANES;
use crate::value::{Tensor, Value};

/// `map`: element `i` of the result is the computation of the elements `i` of the operands.
pub(super) fn map(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let region = cx.region(AttrKey::ToApply)?;
    let operands = super::reduce::typed(cx, &region, args.into_iter().map(Value::into_array).collect(), 0)?;
    let n = operands[0].len();
    let ty = region.results()[0];
    with_element_type!(ty, T => cx.reserve::<T>(n))?;
    let mut out = Buffer::zeros(ty, n);
    let mut lanes = region.lanes(n);
    for start in (0..n).step_by(LANES) {
        let end = n.min(start + LANES);
        for (i, operand) in operands.iter().enumerate() {
            load(operand.buffer(), start..end, lanes.input_buffer(i));
        }
        region.eval(cx, &mut lanes, end - start)?;
        store(lanes.output_buffer(0), start..end, &mut out);
    }
    Ok(Tensor::new(operands[0].dims(), out).into())
}

/// Copies a range of a buffer to the beginning of a column of the same type.
fn load(x: &Buffer, range: std::ops::Range<usize>, column: &mut Buffer) {
    fn of<T: BufferOf>(x: &[T], column: &mut Buffer) {
        let column = T::slice_mut(column).expect("invariant: the verifier checked the types of a region");
        column[..x.len()].copy_from_slice(x);
    }
    hlo::with_buffer!(x, x => of(&x[range], column));
}

/// Copies the beginning of a column to a range of a buffer of the same type.
fn store(column: &Buffer, range: std::ops::Range<usize>, out: &mut Buffer) {
    fn of<T: BufferOf>(column: &Buffer, out: &mut [T]) {
        let column = T::slice(column).expect("invariant: the verifier checked the types of a region");
        out.copy_from_slice(&column[..out.len()]);
    }
    hlo::with_buffer!(out, out => of(column, &mut out[range]));
}
