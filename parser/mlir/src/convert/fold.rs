//! Small integer tensors whose values are known: what dynamic operations take their sizes from.

use rustc_hash::FxHashMap;

use super::regions::{is_constant, short};
use crate::ir::ints;
use crate::ir::{AttrId, Attribute, DYNAMIC, Module, OpId, Signedness, Type, TypeId, ValueId};

/// Values that are known, in row-major order.
pub(crate) type Known = FxHashMap<ValueId, Vec<i64>>;

/// The maximum number of elements of a tensor that is followed.
const MAX_ELEMENTS: i64 = 64;

/// The dimensions and element type of a small tensor of integers.
fn small(m: &Module, ty: TypeId) -> Option<(Vec<i64>, u32, bool)> {
    let Type::Tensor { dims, element, .. } = m.get_type(ty) else { return None };
    let (width, signed) = match m.get_type(*element) {
        Type::Index => (64, true),
        Type::Integer { width, sign } if *width <= 64 => {
            (*width, *sign != Signedness::Unsigned && *width > 1)
        }
        _ => return None,
    };
    let count = dims.iter().try_fold(1i64, |n, &d| if d < 0 { None } else { n.checked_mul(d) })?;
    (count <= MAX_ELEMENTS).then(|| (dims.to_vec(), width, signed))
}

/// An integer wrapped to that many bits.
fn wrap(n: i64, width: u32, signed: bool) -> i64 {
    if width >= 64 {
        return n;
    }
    let unused = 64 - width;
    if signed { n << unused >> unused } else { ((n as u64) << unused >> unused) as i64 }
}

/// Shapes of values whose types do not say them.
pub(crate) type Concrete = FxHashMap<ValueId, hlo::Shape>;

/// Adds the result of an operation, if it is known; forgets what it was when the same function was converted
/// before.
pub(crate) fn evaluate(m: &Module, op: OpId, known: &mut Known, concrete: &Concrete) {
    let [result] = *m.op(op).results else { return };
    let Some((dims, width, signed)) = small(m, m.value_type(result)) else { return };
    let values = result_of(m, op, &dims, known, concrete)
        .map(|values| values.into_iter().map(|n| wrap(n, width, signed)).collect::<Vec<i64>>());
    match values.filter(|v| v.len() as i64 == dims.iter().product::<i64>()) {
        Some(values) => known.insert(result, values),
        None => known.remove(&result),
    };
}

fn result_of(m: &Module, op: OpId, dims: &[i64], known: &Known, concrete: &Concrete) -> Option<Vec<i64>> {
    if is_constant(m, op) {
        let value = m.attr(op, "value")?;
        return match m.get_attribute(value) {
            Attribute::Integer { value, .. } => Some(vec![i64::try_from(*value).ok()?]),
            Attribute::Bool(b) => Some(vec![i64::from(*b)]),
            _ => ints(m, value),
        };
    }
    let operands = &m.op(op).operands;
    let get = |i: usize| operands.get(i).and_then(|v| known.get(v));
    let both = |f: fn(i64, i64) -> Option<i64>| -> Option<Vec<i64>> {
        get(0)?.iter().zip(get(1)?).map(|(&a, &b)| f(a, b)).collect()
    };
    let list = |name: &str| -> Option<Vec<i64>> { ints_of(m, m.attr(op, name)?) };
    match short(m.op_name(op)) {
        "get_dimension_size" => {
            let Attribute::Integer { value, .. } = m.get_attribute(m.attr(op, "dimension")?) else {
                return None;
            };
            let operand = *operands.first()?;
            let at = usize::try_from(*value).ok()?;
            if let Some(shape) = concrete.get(&operand) {
                return shape.as_array()?.dims.get(at).map(|&size| vec![size]);
            }
            let Type::Tensor { dims, .. } = m.get_type(m.value_type(operand)) else { return None };
            let size = *dims.get(at)?;
            (size != DYNAMIC).then(|| vec![size])
        }
        "add" => both(|a, b| Some(a.wrapping_add(b))),
        "subtract" => both(|a, b| Some(a.wrapping_sub(b))),
        "multiply" => both(|a, b| Some(a.wrapping_mul(b))),
        "divide" => both(i64::checked_div),
        "remainder" => both(i64::checked_rem),
        "maximum" => both(|a, b| Some(a.max(b))),
        "minimum" => both(|a, b| Some(a.min(b))),
        "and" => both(|a, b| Some(a & b)),
        "or" => both(|a, b| Some(a | b)),
        "xor" => both(|a, b| Some(a ^ b)),
        "negate" => get(0)?.iter().map(|&n| Some(n.wrapping_neg())).collect(),
        "sign" => get(0)?.iter().map(|&n| Some(n.signum())).collect(),
        "convert" | "reshape" | "cast" | "optimization_barrier" => get(0).cloned(),
        "compare" => {
            let Attribute::Enum { value, .. } = m.get_attribute(m.attr(op, "comparison_direction")?) else {
                return None;
            };
            let holds = |a: i64, b: i64| match m.text(*value) {
                "EQ" => Some(a == b),
                "NE" => Some(a != b),
                "LT" => Some(a < b),
                "LE" => Some(a <= b),
                "GT" => Some(a > b),
                "GE" => Some(a >= b),
                _ => None,
            };
            get(0)?.iter().zip(get(1)?).map(|(&a, &b)| holds(a, b).map(i64::from)).collect()
        }
        "select" => {
            let (p, a, b) = (get(0)?, get(1)?, get(2)?);
            let at = |i: usize| p.get(if p.len() == 1 { 0 } else { i });
            (0..a.len()).map(|i| Some(if *at(i)? != 0 { a[i] } else { *b.get(i)? })).collect()
        }
        // Along the first dimension: row-major order is that of the operands.
        "concatenate"
            if matches!(m.get_attribute(m.attr(op, "dimension")?), Attribute::Integer { value: 0, .. }) =>
        {
            let mut all = Vec::new();
            for i in 0..operands.len() {
                all.extend(get(i)?);
            }
            Some(all)
        }
        "broadcast_in_dim" | "broadcast" => {
            let x = get(0)?;
            let count = dims.iter().product::<i64>() as usize;
            match x.len() {
                1 => Some(vec![x[0]; count]),
                n if n == count => Some(x.clone()),
                _ => None,
            }
        }
        "slice" if dims.len() == 1 => {
            let x = get(0)?;
            let (start, limit, stride) = (
                *list("start_indices")?.first()?,
                *list("limit_indices")?.first()?,
                *list("strides")?.first()?,
            );
            let step = usize::try_from(stride).ok().filter(|&s| s > 0)?;
            let range = usize::try_from(start).ok()?..usize::try_from(limit).ok()?;
            Some(x.get(range)?.iter().step_by(step).copied().collect())
        }
        "iota" if dims.len() == 1 => Some((0..dims[0]).collect()),
        _ => None,
    }
}

fn ints_of(m: &Module, attribute: AttrId) -> Option<Vec<i64>> {
    ints(m, attribute)
}
