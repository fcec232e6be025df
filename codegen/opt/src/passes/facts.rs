//! Facts about values and instructions that hold without running: constants, NaNs, index patterns, and which
//! folds, windows and contractions are unrolled into expressions.

use hlo::attrs::WindowDim;
use hlo::opcode::NumericRow;
use hlo::{ArrayShape, AttrKey, ConstantValue, ElementType, InstrId, Module, Opcode, TypeClass, with_buffer};

pub use hlo::facts::{dimension, literal, splat};

use crate::cost_model::CostModel;

/// The maximum depth to which facts are followed through operands.
const MAX_DEPTH: u32 = 8;

/// Whether it is a constant whose text was elided (its values follow from its name).
pub fn is_elided(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    instr.opcode == Opcode::Constant && matches!(instr.attrs.constant_value(), Some(ConstantValue::Elided))
}

/// The value of an array of one integer or predicate.
pub fn integer(module: &Module, id: InstrId) -> Option<i128> {
    let (ty, bits) = splat(module, id)?;
    signed(ty, bits)
}

/// The values of a constant array of integers or predicates.
pub(super) fn integers(module: &Module, id: InstrId) -> Option<Vec<i128>> {
    let literal = literal(module, id)?;
    let array = literal.as_array()?;
    let ty = array.buffer.element_type();
    with_buffer!(&*array.buffer, v => v.iter().map(|x| signed(ty, hlo::Bits::bits(*x))).collect())
}

/// The integer of these bits.
fn signed(ty: ElementType, bits: u128) -> Option<i128> {
    Some(match ty.class() {
        TypeClass::Pred | TypeClass::Unsigned => i128::try_from(bits).ok()?,
        TypeClass::Signed => {
            let shift = 128 - ty.bits();
            (bits << shift).cast_signed() >> shift
        }
        TypeClass::Float | TypeClass::Complex => return None,
    })
}

/// The dimension of `to` that each dimension of `from` with more than one element is, if they differ by
/// dimensions of size 1 alone.
pub(super) fn long_dims(from: &[i64], to: &[i64]) -> Option<Vec<Option<i64>>> {
    let mut long = (0i64..).zip(to).filter(|(_, d)| **d != 1);
    let mut dim_map = Vec::with_capacity(from.len());
    for &d in from {
        dim_map.push(match d {
            1 => None,
            d => Some(long.next().filter(|&(_, &there)| there == d)?.0),
        });
    }
    long.next().is_none().then_some(dim_map)
}

/// Whether the integers are their own index along a dimension: an `iota` that does not wrap, up to dimensions
/// of size 1.
pub fn counts_along(module: &Module, id: InstrId, dim: usize) -> bool {
    let (mut id, mut dim) = (id, dim);
    for _ in 0..MAX_DEPTH {
        let instr = module.instr(id);
        let Some(array) = instr.shape.as_array() else { return false };
        let Some(&n) = array.dims.get(dim) else { return false };
        match instr.opcode {
            Opcode::Iota => {
                let along = instr.attrs.int(AttrKey::IotaDimension);
                let fits =
                    array.element_type.integer_limits().is_some_and(|(_, most)| i128::from(n) - 1 <= most);
                return fits && along.and_then(|d| usize::try_from(d).ok()) == Some(dim);
            }
            Opcode::Reshape => {
                let Some(of) = module.instr(instr.operands()[0]).shape.as_array() else { return false };
                let dim_map = long_dims(&array.dims, &of.dims).unwrap_or_default();
                let Some(&Some(at)) = dim_map.get(dim) else { return false };
                (id, dim) = (instr.operands()[0], at as usize);
            }
            _ => return false,
        }
    }
    false
}

/// The range of integers, both bounds inclusive.
pub fn bounds(module: &Module, id: InstrId) -> Option<(i128, i128)> {
    let mut id = id;
    let whole = module.instr(id).shape.element_type()?.integer_limits()?;
    if let Some(value) = integer(module, id) {
        return Some((value, value));
    }
    for _ in 0..MAX_DEPTH {
        let instr = module.instr(id);
        match instr.opcode {
            Opcode::Iota => {
                let d = usize::try_from(instr.attrs.int(AttrKey::IotaDimension)?).ok()?;
                let last = i128::from(*instr.shape.as_array()?.dims.get(d)?) - 1;
                return Some(if last <= whole.1 { (0, last.max(0)) } else { whole });
            }
            Opcode::Reshape
            | Opcode::Broadcast
            | Opcode::Transpose
            | Opcode::Slice
            | Opcode::Reverse
            | Opcode::Copy => {
                let of = *instr.operands().first()?;
                if module.instr(of).shape.element_type() != instr.shape.element_type() {
                    return Some(whole);
                }
                id = of;
            }
            _ => return Some(whole),
        }
    }
    Some(whole)
}

/// Whether a float array is a splat of this number.
pub fn is_number(module: &Module, id: InstrId, number: f64) -> bool {
    splat(module, id).is_some_and(|(ty, bits)| float_bits(ty, number) == Some(bits))
}

/// The bits of a number in the types of [`is_ieee`], if they represent it exactly.
pub fn float_bits(ty: ElementType, number: f64) -> Option<u128> {
    match ty {
        ElementType::F64 => Some(u128::from(number.to_bits())),
        ElementType::F32 => {
            let x = number as f32;
            (f64::from(x).to_bits() == number.to_bits()).then(|| u128::from(x.to_bits()))
        }
        ElementType::BF16 => {
            let x = hlo::half::bf16::from_f64(number);
            (x.to_f64().to_bits() == number.to_bits()).then(|| u128::from(x.to_bits()))
        }
        ElementType::F16 => {
            let x = hlo::half::f16::from_f64(number);
            (x.to_f64().to_bits() == number.to_bits()).then(|| u128::from(x.to_bits()))
        }
        _ => None,
    }
}

/// The number of these bits, in the types of [`float_bits`].
pub fn float_value(ty: ElementType, bits: u128) -> Option<f64> {
    match ty {
        ElementType::F64 => Some(f64::from_bits(bits as u64)),
        ElementType::F32 => Some(f64::from(f32::from_bits(bits as u32))),
        ElementType::BF16 => Some(hlo::half::bf16::from_bits(bits as u16).to_f64()),
        ElementType::F16 => Some(hlo::half::f16::from_bits(bits as u16).to_f64()),
        _ => None,
    }
}

/// f16, bf16, f32, f64: the types whose rewritings are proved. (Narrower ones lack zeros, signs or NaNs in
/// ways of their own.)
pub fn is_ieee(ty: ElementType) -> bool {
    matches!(ty, ElementType::F16 | ElementType::BF16 | ElementType::F32 | ElementType::F64)
}

/// The unsigned integer type as wide as a type of [`is_ieee`].
pub fn pattern_type(ty: ElementType) -> Option<ElementType> {
    match ty {
        ElementType::F16 | ElementType::BF16 => Some(ElementType::U16),
        ElementType::F32 => Some(ElementType::U32),
        ElementType::F64 => Some(ElementType::U64),
        _ => None,
    }
}

/// The signed integer type as wide as a type of [`is_ieee`].
pub fn signed_pattern_type(ty: ElementType) -> Option<ElementType> {
    match ty {
        ElementType::F16 | ElementType::BF16 => Some(ElementType::S16),
        ElementType::F32 => Some(ElementType::S32),
        ElementType::F64 => Some(ElementType::S64),
        _ => None,
    }
}

/// Whether a value of a type of [`is_ieee`] holds no NaN but the canonical one, because arithmetic computed
/// it (SEMANTICS.md, "The canonical NaN"). Then `x * 1` is `x`, bit for bit.
pub fn nan_is_canonical(module: &Module, id: InstrId) -> bool {
    canonical(module, id, MAX_DEPTH)
}

fn canonical(module: &Module, id: InstrId, depth: u32) -> bool {
    let instr = module.instr(id);
    let Some(ty) = instr.shape.element_type().filter(|&ty| is_ieee(ty)) else { return false };
    // An operand of another type is converted first, which canonicalizes NaNs, too.
    match instr.opcode {
        Opcode::Add
        | Opcode::Subtract
        | Opcode::Multiply
        | Opcode::Divide
        | Opcode::Remainder
        | Opcode::Maximum
        | Opcode::Minimum
        | Opcode::Clamp
        | Opcode::Power
        | Opcode::Atan2
        | Opcode::Sign
        | Opcode::Sqrt
        | Opcode::Exponential
        | Opcode::ExponentialMinusOne
        | Opcode::Log
        | Opcode::LogPlusOne
        | Opcode::Logistic
        | Opcode::Tanh
        | Opcode::Tan
        | Opcode::Sine
        | Opcode::Cosine
        | Opcode::Rsqrt
        | Opcode::Cbrt
        | Opcode::Erf => true,
        Opcode::Convert => {
            let from = instr.operands().first().and_then(|&o| module.instr(o).shape.element_type());
            from.is_some_and(|from| from != ty) || follow(module, id, depth)
        }
        Opcode::Broadcast
        | Opcode::Reshape
        | Opcode::Transpose
        | Opcode::Slice
        | Opcode::Reverse
        | Opcode::Concatenate
        | Opcode::Pad => follow(module, id, depth),
        Opcode::Constant => {
            splat(module, id).and_then(|(ty, bits)| float_value(ty, bits)).is_some_and(|x| !x.is_nan())
        }
        _ => false,
    }
}

fn follow(module: &Module, id: InstrId, depth: u32) -> bool {
    depth > 0 && module.instr(id).operands().iter().all(|&o| canonical(module, o, depth - 1))
}

/// The maximum length of a reduction (or row) that is unrolled into an expression.
pub const MAX_SHORT_REDUCTION_LEN: i64 = CostModel::CPU.max_short_reduction_len;

/// The minimum width of a part, along the innermost dimension, that gets a loop of its own, unless separate
/// loops take hardly more registers than the row.
pub const MIN_PART_WIDTH: i64 = CostModel::CPU.min_part_width_elements;

/// The maximum number of columns of short rows that are unrolled.
pub const MAX_UNROLLED_COLUMNS: i64 = CostModel::CPU.max_unrolled_columns;

/// Lanes whose elements are within this many registers are loaded as whole registers and shuffled.
pub const MAX_SHUFFLE_REGISTERS: i64 = CostModel::CPU.max_shuffle_registers;

/// The maximum number of columns from several sources, or of rows of an array, that are computed in one
/// iteration and interleaved: four vectors of three, say.
pub const MAX_INTERLEAVED_COLUMNS: i64 = CostModel::CPU.max_interleaved_columns;

/// The maximum number of parts of an array that get loops of their own, if each has [`MIN_PART_ELEMENTS`].
pub const MAX_CONCAT_PARTS: usize = CostModel::CPU.max_concat_parts;
/// The minimum size of such a part.
pub const MIN_PART_ELEMENTS: i64 = CostModel::CPU.min_part_elements;

/// Whether a concatenation along the innermost dimension has parts that are too narrow for loops of their
/// own.
pub fn has_narrow_concat_parts(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let (Some(result), Some(along)) = (static_shape(module, id), dimension(instr)) else { return false };
    let inner = result.dims.iter().rposition(|&n| n != 1) <= Some(along);
    inner
        && instr
            .operands()
            .iter()
            .any(|&o| static_shape(module, o).is_some_and(|a| a.dims[along] < MIN_PART_WIDTH))
}

/// Whether a concatenation copies its parts instead of being computed by loops, which would select the part
/// for each element, or be too many. Large parts of which some have no other user are computed in place; a
/// few parts are read directly by the users of the concatenation.
pub fn is_concat_by_copy(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let (parts, Some(result)) = (instr.operands(), static_shape(module, id)) else { return false };
    let (Some(along), Some(elements)) = (dimension(instr), result.checked_elements()) else { return false };
    if instr.opcode != Opcode::Concatenate || parts.iter().any(|&o| static_shape(module, o).is_none()) {
        return false;
    }
    let narrow = has_narrow_concat_parts(module, id);
    let computed = parts.iter().any(|&o| is_computed(module, o));
    if parts.len() as i64 > MAX_INTERLEAVED_COLUMNS {
        let loops = parts.len() <= MAX_CONCAT_PARTS
            && elements / parts.len() as i64 >= MIN_PART_ELEMENTS
            && !narrow
            && computed;
        return !loops;
    }
    let row: i64 = result.dims[along..].iter().product();
    narrow && row > MAX_INTERLEAVED_COLUMNS && !computed && !is_read_in_loops(module, id)
}

/// The shape of an array without dynamic dimensions.
fn static_shape(module: &Module, id: InstrId) -> Option<&ArrayShape> {
    module.instr(id).shape.as_array().filter(|a| !a.is_dynamic())
}

/// Whether a value, looking through reshapes, is computed in the loops that read it.
fn is_computed(module: &Module, mut id: InstrId) -> bool {
    while let (Opcode::Reshape, &[of]) = (module.instr(id).opcode, module.instr(id).operands()) {
        id = of;
    }
    let opcode = module.instr(id).opcode;
    opcode.is_elementwise() || MOVEMENT_OPCODES.contains(&opcode)
}

/// Whether a reader of a value, looking through reshapes, is a loop.
fn is_read_in_loops(module: &Module, id: InstrId) -> bool {
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        for user in module.users(id) {
            let opcode = module.instr(user.user).opcode;
            if opcode == Opcode::Reshape {
                pending.push(user.user);
            } else if opcode.is_elementwise()
                || MOVEMENT_OPCODES.contains(&opcode)
                || opcode == Opcode::Reduce
            {
                return true;
            }
        }
    }
    false
}

/// Movement operations that are evaluated in the loops that read them.
const MOVEMENT_OPCODES: [Opcode; 8] = [
    Opcode::Broadcast,
    Opcode::Concatenate,
    Opcode::DynamicSlice,
    Opcode::Gather,
    Opcode::Pad,
    Opcode::Reverse,
    Opcode::Slice,
    Opcode::Transpose,
];

/// The shapes of both operands and of the result, if all are arrays without dynamic dimensions.
fn static_shapes(module: &Module, id: InstrId) -> Option<[&ArrayShape; 3]> {
    let &[lhs, rhs] = module.instr(id).operands() else { return None };
    Some([static_shape(module, lhs)?, static_shape(module, rhs)?, static_shape(module, id)?])
}

/// The number of elements along some dimensions; `None` if they do not exist, or the product overflows.
fn elements_along(array: &ArrayShape, along: &[i64]) -> Option<i64> {
    let size = |d: i64| array.dims.get(usize::try_from(d).ok()?).copied();
    along.iter().try_fold(1i64, |n, &d| n.checked_mul(size(d)?))
}

/// The number of terms of each result of a `reduce` that is short enough to be unrolled into an expression:
/// by one operation, in the type of operand and result. `None` for other reductions.
pub fn short_reduction_len(module: &Module, id: InstrId) -> Option<i64> {
    let instr = module.instr(id);
    if instr.opcode != Opcode::Reduce {
        return None;
    }
    let [x, init, result] = static_shapes(module, id)?;
    let along = instr.attrs.ints_or_empty(AttrKey::Dimensions);
    let terms = elements_along(x, along).filter(|terms| (1..=MAX_SHORT_REDUCTION_LEN).contains(terms))?;
    let (op, ty) = super::reduce::operation(module, instr.attrs.computation(AttrKey::ToApply)?)?;
    (is_unrollable_fold(op, ty) && [x, init, result].iter().all(|a| a.element_type == ty)).then_some(terms)
}

/// Whether a fold by an operation can be unrolled. Sums of narrow floats are rounded once, at the end: such a
/// sum is accumulated in `f32`.
fn is_unrollable_fold(op: Opcode, ty: ElementType) -> bool {
    match ty.class() {
        TypeClass::Float if ty.bits() >= 32 || matches!(op, Opcode::Maximum | Opcode::Minimum) => true,
        TypeClass::Float => is_ieee(ty) && op == Opcode::Add,
        TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => true,
        TypeClass::Complex => false,
    }
}

/// The maximum number of elements of windows that are unrolled: of strided ones, and of any.
const MAX_STRIDED_WINDOW_LEN: i64 = CostModel::CPU.max_strided_window_len;
const MAX_WINDOW_LEN: i64 = CostModel::CPU.max_window_len;

/// Fewer elements leave vector lanes empty.
const MIN_LANES: i64 = CostModel::CPU.min_lanes;

/// The number of elements of each window of a `reduce-window` that is unrolled into an expression: by one
/// operation, in one type, where windows overlap little. `None` for others: the row-wise window kernel, axis
/// by axis, is faster.
pub fn small_window_len(module: &Module, id: InstrId) -> Option<i64> {
    let instr = module.instr(id);
    if instr.opcode != Opcode::ReduceWindow {
        return None;
    }
    let [x, init, result] = static_shapes(module, id)?;
    let window = &instr.attrs.window()?.dims;
    let (op, ty) = super::reduce::operation(module, instr.attrs.computation(AttrKey::ToApply)?)?;
    let typed = is_unrollable_fold(op, ty) && [x, init, result].iter().all(|a| a.element_type == ty);
    let dense = window.len() == x.rank() && window.iter().all(|w| w.base_dilation == 1 && !w.reversal);
    let product = |f: fn(&WindowDim) -> i64| window.iter().try_fold(1i64, |n, w| n.checked_mul(f(w)));
    let (positions, strides) = (product(|w| w.size)?, product(|w| w.stride)?);
    if !typed || !dense || !(1..=MAX_STRIDED_WINDOW_LEN).contains(&positions) {
        return None;
    }
    let busy = window.iter().rposition(|w| *w != WindowDim { size: 1, ..WindowDim::default() })?;
    let line = result.dims[busy];
    let neighbours = result.dims[busy + 1..].iter().try_fold(1i64, |n, &d| n.checked_mul(d))?;
    let narrow = ty.is_float() && ty.bits() < 32;
    let pays = if window.iter().any(|w| w.size > 1 && w.stride > 1) {
        positions <= 2 * strides || neighbours < hlo_library::window::FEW_NEIGHBOURS || !ty.is_float()
    } else {
        // A few contiguous elements form one line with their axis; minima and maxima of narrow floats are
        // faster as integers, on long lines.
        let short = neighbours == 1 && line <= MIN_LANES;
        positions <= MAX_WINDOW_LEN
            && !(2..MIN_LANES).contains(&neighbours)
            && (short || op == Opcode::Add || !narrow)
    };
    pays.then_some(positions)
}

/// The maximum number of products in all of a `dot` that is always unrolled.
const MAX_TINY_DOT_PRODUCTS: i64 = CostModel::CPU.max_tiny_dot_products;

/// The maximum number of products in one element (K).
const MAX_SMALL_K: i64 = CostModel::CPU.max_small_k;

/// The shapes of a `dot`, and K.
fn dot(module: &Module, id: InstrId) -> Option<([&ArrayShape; 3], i64)> {
    let instr = module.instr(id);
    if instr.opcode != Opcode::Dot {
        return None;
    }
    let shapes = static_shapes(module, id)?;
    let terms = elements_along(shapes[0], instr.attrs.ints_or_empty(AttrKey::LhsContractingDims))?;
    Some((shapes, terms))
}

/// Folding at least this many elements takes longer than launching a kernel.
const HEAVY_FOLD_ELEMENTS: i64 = CostModel::CPU.heavy_fold_elements;

/// Whether an instruction is a large fold or contraction, many elements for each result: with what follows it
/// is no single loop, and it takes long.
pub fn is_heavy_fold(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let many = match instr.opcode {
        Opcode::Reduce => short_reduction_len(module, id).is_none(),
        Opcode::Dot => dot(module, id).is_none_or(|(_, terms)| terms > MAX_SMALL_K),
        Opcode::ReduceWindow => small_window_len(module, id).is_none(),
        Opcode::Convolution => true,
        _ => false,
    };
    let elements = |&o: &InstrId| module.instr(o).shape.as_array()?.checked_elements();
    many && instr.operands().iter().filter_map(elements).any(|n| n >= HEAVY_FOLD_ELEMENTS)
}

/// Whether a `dot` has K = 1 (an outer product), in a type that represents the elements of both operands:
/// unrolled whatever its size.
pub fn is_product(module: &Module, id: InstrId) -> bool {
    let Some(([lhs, rhs, result], 1)) = dot(module, id) else { return false };
    let ty = result.element_type;
    let holds = |of: ElementType| {
        if is_ieee(ty) { is_ieee(of) && ty.holds(of) } else { ty == of && ty.is_integer() && ty.bits() >= 8 }
    };
    holds(lhs.element_type) && holds(rhs.element_type)
}

/// Whether a `dot` is so small that it is always unrolled, in a type that is added and multiplied in itself.
pub fn is_tiny_dot(module: &Module, id: InstrId) -> bool {
    let few = |terms: i64| {
        let elements = module.instr(id).shape.as_array().and_then(ArrayShape::checked_elements);
        elements.is_some_and(|n| n.saturating_mul(terms) <= MAX_TINY_DOT_PRODUCTS)
    };
    small_k(module, id).is_some_and(few)
}

/// K of a `dot` if it is small enough to be unrolled, in a type that is added and multiplied in itself, or of
/// 16-bit floats.
pub fn small_k(module: &Module, id: InstrId) -> Option<i64> {
    let ([lhs, rhs, result], terms) = dot(module, id)?;
    let ty = result.element_type;
    let half = |ty: ElementType| matches!(ty, ElementType::BF16 | ElementType::F16);
    let plain = match ty.class() {
        TypeClass::Float => ty.bits() >= 32 || half(ty),
        TypeClass::Signed | TypeClass::Unsigned => ty.bits() >= 8,
        TypeClass::Complex => true,
        TypeClass::Pred => false,
    };
    let of = |operand: &ArrayShape| {
        operand.element_type == ty || ty == ElementType::F32 && half(operand.element_type)
    };
    (plain && of(lhs) && of(rhs) && (1..=MAX_SMALL_K).contains(&terms)).then_some(terms)
}

/// The cost per element of an elementwise operation, in simple vector operations.
pub fn element_flops(opcode: Opcode) -> f64 {
    match opcode.numeric_row() {
        NumericRow::Elementary(_) => 20.0,
        _ if matches!(opcode, Opcode::Divide | Opcode::Sqrt) => 6.0,
        _ if opcode == Opcode::Remainder => 20.0,
        _ => 1.0,
    }
}
