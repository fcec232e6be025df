//! Sorts and scans by CUB (`xla/stream_executor/cuda/cub_sort_kernel_cuda.h`, `cub_scan_kernel_cuda.h`).

use hlo::attrs::{CompareType, Direction};
use hlo::{AttrKey, AttrValue, Attrs, ComputationId, ElementType, Literal, Opcode, Shape};

use super::Refusal;
use super::body::{Body, Built};

/// `xla.gpu.ext.cub_sort_*`: operands keys and perhaps values; the last dimension is sorted, stably. Keys of
/// floats are in the order of their bits, -NaN first and +NaN last, but -0 equals +0. The last result is
/// scratch.
pub(super) fn sort(body: &mut Body<'_>) -> Built {
    let descending = body.config.flag("descending");
    let operands = body.operands.clone();
    if !(1..=2).contains(&operands.len()) {
        return Err(Refusal(format!("with {} operands", operands.len())));
    }
    let types = operands.iter().map(|&x| body.ty(x)).collect::<Result<Vec<_>, _>>()?;
    let last = body.dims(operands[0])?.len() as i64 - 1;
    if types[0].is_complex() || last < 0 {
        return Err(Refusal(format!("of {}", body.shape(operands[0]).without_layout())));
    }
    let comparator = comparator(body, &types, descending)?;
    let attrs = Attrs::new()
        .with(AttrKey::Dimensions, AttrValue::Ints([last][..].into()))
        .with(AttrKey::IsStable, AttrValue::Bool(true))
        .with(AttrKey::ToApply, AttrValue::Computation(comparator));
    let sorted = body.instr(Opcode::Sort, &operands, attrs)?;
    let parts = match operands.len() {
        1 => vec![sorted],
        _ => vec![body.get(sorted, 0)?, body.get(sorted, 1)?],
    };
    body.results(&parts)
}

fn comparator(
    body: &mut Body<'_>,
    types: &[ElementType],
    descending: bool,
) -> Result<ComputationId, Refusal> {
    let direction = if descending { Direction::Gt } else { Direction::Lt };
    let mut b = body.nested("order");
    let mut keys = Vec::new();
    for &ty in types {
        for name in ["a", "b"] {
            keys.push(b.parameter(name, Shape::scalar(ty)));
        }
    }
    keys.truncate(2);
    let ty = types[0];
    let mut attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
    if ty.is_float() {
        let zero = b.constant(Literal::scalar(0f64));
        let zero = b.convert(zero, ty)?;
        for key in &mut keys {
            let is_zero = b.compare(Direction::Eq, *key, zero)?;
            *key = b.select(is_zero, zero, *key)?;
        }
        attrs.set(AttrKey::CompareType, AttrValue::CompareType(CompareType::TotalOrder));
    }
    b.instr(Opcode::Compare, &keys, attrs)?;
    Ok(b.finish())
}

/// `xla.gpu.ext.cub_scan*`: running sums of the operand as an array of `column_length` times `row_length`
/// times `vector_length` elements along its middle dimension. The last result is scratch.
pub(super) fn scan(body: &mut Body<'_>) -> Built {
    // `CubScanKind::kSum`.
    if !matches!(body.config.word("kind", "0"), "1" | "kSum") {
        return Err(Refusal(format!("of kind {}", body.config.word("kind", "0"))));
    }
    let lengths = ["column_length", "row_length", "vector_length"];
    let lengths = lengths.map(|key| body.config.int(key));
    let [columns, rows, vectors] = lengths;
    let x = body.operand(0)?;
    let (dims, ty) = (body.dims(x)?, body.ty(x)?);
    let view = body.reshape(x, &[columns?, rows?, vectors?])?;
    let (outer, inner) = match body.dims(view)?[..] {
        [outer, _, inner] => (outer, inner),
        _ => return Err(Refusal("of such lengths".into())),
    };
    let reverse = body.config.flag("is_reverse");
    let slice = Shape::array(ty, &[outer, inner]);
    let mut b = body.nested("step");
    let (element, carry) = (b.parameter("element", slice.clone()), b.parameter("carry", slice));
    let sum = b.binary(Opcode::Add, element, carry)?;
    b.tuple(&[sum, sum])?;
    let step = b.finish();
    let zero = body.scalar(0.0, ty)?;
    let zero = body.broadcast(zero, &[outer, inner], &[])?;
    let attrs = Attrs::new()
        .with(AttrKey::Dimensions, AttrValue::Ints([1][..].into()))
        .with(AttrKey::NumCarries, AttrValue::Int(1))
        .with(AttrKey::IsReverse, AttrValue::Bool(reverse))
        .with(AttrKey::ToApply, AttrValue::Computation(step));
    let scanned = body.instr(Opcode::Scan, &[view, zero], attrs)?;
    let sums = body.get(scanned, 0)?;
    let sums = body.reshape(sums, &dims)?;
    body.results(&[sums])
}
