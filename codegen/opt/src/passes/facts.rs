//! What is known about values without running: constants, NaNs, zeros.

use hlo::attrs::WindowDim;
use hlo::opcode::NumericRow;
use hlo::{ArrayShape, AttrKey, ConstantValue, ElementType, InstrId, Module, Opcode, TypeClass, with_buffer};

pub use hlo::facts::{dimension, literal, splat};

use crate::cost_model::CostModel;

/// How far facts are followed through operands.
const DEPTH: u32 = 8;

/// Whether it is a constant whose values follow from its name.
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

/// Where each dimension of more than one element of `from` is in `to`, if they differ by dimensions of one element alone.
pub(super) fn long_dims(from: &[i64], to: &[i64]) -> Option<Vec<Option<i64>>> {
    let mut long = (0i64..).zip(to).filter(|(_, d)| **d != 1);
    let mut places = Vec::with_capacity(from.len());
    for &d in from {
        places.push(match d {
            1 => None,
            d => Some(long.next().filter(|&(_, &there)| there == d)?.0),
        });
    }
    long.next().is_none().then_some(places)
}

/// Whether integers are the components of their index along a dimension: an `iota` that does not wrap, with or without dimensions of one element.
pub fn counts_along(module: &Module, id: InstrId, dim: usize) -> bool {
    let (mut id, mut dim) = (id, dim);
    for _ in 0..DEPTH {
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
                let places = long_dims(&array.dims, &of.dims).unwrap_or_default();
                let Some(&Some(at)) = places.get(dim) else { return false };
                (id, dim) = (instr.operands()[0], at as usize);
            }
            _ => return false,
        }
    }
    false
}

/// Bounds of integers, both inclusive.
pub fn bounds(module: &Module, id: InstrId) -> Option<(i128, i128)> {
    let mut id = id;
    let whole = module.instr(id).shape.element_type()?.integer_limits()?;
    if let Some(value) = integer(module, id) {
        return Some((value, value));
    }
    for _ in 0..DEPTH {
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

/// Whether an array of a float type holds one value, which is this number.
pub fn is_number(module: &Module, id: InstrId, number: f64) -> bool {
    splat(module, id).is_some_and(|(ty, bits)| float_bits(ty, number) == Some(bits))
}

/// The bits of a number in the types that this module knows by heart, if they hold it exactly.
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

/// The number that these bits are, of the types of [`float_bits`].
pub fn float_value(ty: ElementType, bits: u128) -> Option<f64> {
    match ty {
        ElementType::F64 => Some(f64::from_bits(bits as u64)),
        ElementType::F32 => Some(f64::from(f32::from_bits(bits as u32))),
        ElementType::BF16 => Some(hlo::half::bf16::from_bits(bits as u16).to_f64()),
        ElementType::F16 => Some(hlo::half::f16::from_bits(bits as u16).to_f64()),
        _ => None,
    }
}

/// f16, bf16, f32, f64: the types of which the rewritings of floats are made. (Narrower ones lack zeros, signs or NaNs in ways of their own.)
pub fn is_ieee(ty: ElementType) -> bool {
    matches!(ty, ElementType::F16 | ElementType::BF16 | ElementType::F32 | ElementType::F64)
}

/// The unsigned integers that the bits of a type of [`is_ieee`] are.
pub fn pattern_type(ty: ElementType) -> Option<ElementType> {
    match ty {
        ElementType::F16 | ElementType::BF16 => Some(ElementType::U16),
        ElementType::F32 => Some(ElementType::U32),
        ElementType::F64 => Some(ElementType::U64),
        _ => None,
    }
}

/// The signed integers that the bits of a type of [`is_ieee`] are.
pub fn signed_pattern_type(ty: ElementType) -> Option<ElementType> {
    match ty {
        ElementType::F16 | ElementType::BF16 => Some(ElementType::S16),
        ElementType::F32 => Some(ElementType::S32),
        ElementType::F64 => Some(ElementType::S64),
        _ => None,
    }
}

/// Whether a value of a type of [`is_ieee`] holds no NaN but the canonical one, because arithmetic made it (SEMANTICS.md, "The canonical NaN").
/// Then `x * 1` is `x`, bit for bit.
pub fn nan_is_canonical(module: &Module, id: InstrId) -> bool {
    canonical(module, id, DEPTH)
}

fn canonical(module: &Module, id: InstrId, depth: u32) -> bool {
    let instr = module.instr(id);
    let Some(ty) = instr.shape.element_type().filter(|&ty| is_ieee(ty)) else { return false };
    // An operand of another type is converted first, which makes NaNs canonical too.
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

/// The most elements of a row, or terms of a reduction, that are expressions and no loop.
pub const SHORT: i64 = CostModel::CPU.max_short_terms;

/// Along the innermost dimension, parts of fewer elements are too narrow for loops of their own, unless they are hardly more registers than the row.
pub const WIDE: i64 = CostModel::CPU.wide_elements;

/// The most columns of short rows that are computed at once.
pub const MOST_COLUMNS: i64 = CostModel::CPU.max_columns;

/// Lanes whose elements lie within so many registers full of them load these and pick.
pub const NEAR_REGISTERS: i64 = CostModel::CPU.near_registers;

/// The most columns of rows that are put together from several places, and rows of an array, that are computed side by side: four vectors of three, say.
pub const MOST_ASSEMBLED: i64 = CostModel::CPU.max_assembled;

/// So many parts of an array are loops of their own, if each has so many elements.
pub const MOST_PARTS: usize = CostModel::CPU.max_parts;
/// The fewest elements of such a part.
pub const PART: i64 = CostModel::CPU.part_elements;

/// Whether a concatenation puts something along rows that is narrower than what loops are divided for.
pub fn has_narrow_parts(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let (Some(result), Some(along)) = (fixed(module, id), dimension(instr)) else { return false };
    let inner = result.dims.iter().rposition(|&n| n != 1) <= Some(along);
    inner && instr.operands().iter().any(|&o| fixed(module, o).is_some_and(|a| a.dims[along] < WIDE))
}

/// Whether a concatenation is put together by copies of its parts, not by loops that may compute these: loops would decide for each element which part it is
/// from, or be very many. Where parts are large, and some are computed for it alone, they are computed where they belong; and few are read through by what
/// reads the whole.
pub fn is_assembled(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let (parts, Some(result)) = (instr.operands(), fixed(module, id)) else { return false };
    let (Some(along), Some(elements)) = (dimension(instr), result.checked_elements()) else { return false };
    if instr.opcode != Opcode::Concatenate || parts.iter().any(|&o| fixed(module, o).is_none()) {
        return false;
    }
    let narrow = has_narrow_parts(module, id);
    let computed = parts.iter().any(|&o| is_computed(module, o));
    if parts.len() as i64 > MOST_ASSEMBLED {
        let loops = parts.len() <= MOST_PARTS && elements / parts.len() as i64 >= PART && !narrow && computed;
        return !loops;
    }
    let row: i64 = result.dims[along..].iter().product();
    narrow && row > MOST_ASSEMBLED && !computed && !is_read_in_loops(module, id)
}

/// The shape of an array without dynamic dimensions.
fn fixed(module: &Module, id: InstrId) -> Option<&ArrayShape> {
    module.instr(id).shape.as_array().filter(|a| !a.is_dynamic())
}

/// Whether something is computed in the loops that read it, or is such a thing by another name.
fn is_computed(module: &Module, mut id: InstrId) -> bool {
    while let (Opcode::Reshape, &[of]) = (module.instr(id).opcode, module.instr(id).operands()) {
        id = of;
    }
    let opcode = module.instr(id).opcode;
    opcode.is_elementwise() || MOVES.contains(&opcode)
}

/// Whether what reads something, perhaps by another name, are loops.
fn is_read_in_loops(module: &Module, id: InstrId) -> bool {
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        for user in module.users(id) {
            let opcode = module.instr(user.user).opcode;
            if opcode == Opcode::Reshape {
                pending.push(user.user);
            } else if opcode.is_elementwise() || MOVES.contains(&opcode) || opcode == Opcode::Reduce {
                return true;
            }
        }
    }
    false
}

/// What moves elements in the loops that read it.
const MOVES: [Opcode; 8] = [
    Opcode::Broadcast,
    Opcode::Concatenate,
    Opcode::DynamicSlice,
    Opcode::Gather,
    Opcode::Pad,
    Opcode::Reverse,
    Opcode::Slice,
    Opcode::Transpose,
];

/// Both operands' shapes and the result's, if all are arrays without dynamic dimensions.
fn arrays(module: &Module, id: InstrId) -> Option<[&ArrayShape; 3]> {
    let &[lhs, rhs] = module.instr(id).operands() else { return None };
    Some([fixed(module, lhs)?, fixed(module, rhs)?, fixed(module, id)?])
}

/// Elements along some dimensions; `None` if there are no such, or too many.
fn elements_along(array: &ArrayShape, along: &[i64]) -> Option<i64> {
    let size = |d: i64| array.dims.get(usize::try_from(d).ok()?).copied();
    along.iter().try_fold(1i64, |n, &d| n.checked_mul(size(d)?))
}

/// The terms of each result of a reduction that is an expression of few elements, in order: of one operation, in the type of the operand and of the result.
/// `None` of other reductions.
pub fn few_terms(module: &Module, id: InstrId) -> Option<i64> {
    let instr = module.instr(id);
    if instr.opcode != Opcode::Reduce {
        return None;
    }
    let [x, init, result] = arrays(module, id)?;
    let along = instr.attrs.ints_or_empty(AttrKey::Dimensions);
    let terms = elements_along(x, along).filter(|terms| (1..=SHORT).contains(terms))?;
    let (op, ty) = super::reduce::operation(module, instr.attrs.computation(AttrKey::ToApply)?)?;
    (is_plain(op, ty) && [x, init, result].iter().all(|a| a.element_type == ty)).then_some(terms)
}

/// Whether a fold by an operation is an expression of the elements. Sums of narrow floats are rounded once, at the end: such a sum is one of `f32`.
fn is_plain(op: Opcode, ty: ElementType) -> bool {
    match ty.class() {
        TypeClass::Float if ty.bits() >= 32 || matches!(op, Opcode::Maximum | Opcode::Minimum) => true,
        TypeClass::Float => is_ieee(ty) && op == Opcode::Add,
        TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => true,
        TypeClass::Complex => false,
    }
}

/// The most positions of windows that are expressions: of those some apart, and of any.
const FEW_POSITIONS: i64 = CostModel::CPU.max_positions;
const FEWEST_POSITIONS: i64 = CostModel::CPU.max_any_positions;

/// Fewer elements leave lanes of a register empty.
const LANES: i64 = CostModel::CPU.min_lanes;

/// The positions of each window of a `reduce-window` that is an expression of few elements, in order: of one operation, in one type, where windows have little in
/// common. `None` of others: going through rows, axis by axis, is worth more.
pub fn few_positions(module: &Module, id: InstrId) -> Option<i64> {
    let instr = module.instr(id);
    if instr.opcode != Opcode::ReduceWindow {
        return None;
    }
    let [x, init, result] = arrays(module, id)?;
    let window = &instr.attrs.window()?.dims;
    let (op, ty) = super::reduce::operation(module, instr.attrs.computation(AttrKey::ToApply)?)?;
    let typed = is_plain(op, ty) && [x, init, result].iter().all(|a| a.element_type == ty);
    let dense = window.len() == x.rank() && window.iter().all(|w| w.base_dilation == 1 && !w.reversal);
    let product = |f: fn(&WindowDim) -> i64| window.iter().try_fold(1i64, |n, w| n.checked_mul(f(w)));
    let (positions, strides) = (product(|w| w.size)?, product(|w| w.stride)?);
    if !typed || !dense || !(1..=FEW_POSITIONS).contains(&positions) {
        return None;
    }
    let busy = window.iter().rposition(|w| *w != WindowDim { size: 1, ..WindowDim::default() })?;
    let line = result.dims[busy];
    let neighbours = result.dims[busy + 1..].iter().try_fold(1i64, |n, &d| n.checked_mul(d))?;
    let narrow = ty.is_float() && ty.bits() < 32;
    let pays = if window.iter().any(|w| w.size > 1 && w.stride > 1) {
        positions <= 2 * strides || neighbours < hlo_library::window::FEW_NEIGHBOURS || !ty.is_float()
    } else {
        // Few neighbours are one line with their axis; extremes of narrow floats are those of integers, in long lines.
        let short = neighbours == 1 && line <= LANES;
        positions <= FEWEST_POSITIONS
            && !(2..LANES).contains(&neighbours)
            && (short || op == Opcode::Add || !narrow)
    };
    pays.then_some(positions)
}

/// The most products of a `dot` that is computed as an expression of its operands' elements.
const FEW_PRODUCTS: i64 = CostModel::CPU.max_few_products;

/// The most of them in one element.
const FEW_TERMS: i64 = CostModel::CPU.max_small_k;

/// Shapes of a `dot`, and the products in an element of its result.
fn dot(module: &Module, id: InstrId) -> Option<([&ArrayShape; 3], i64)> {
    let instr = module.instr(id);
    if instr.opcode != Opcode::Dot {
        return None;
    }
    let shapes = arrays(module, id)?;
    let terms = elements_along(shapes[0], instr.attrs.ints_or_empty(AttrKey::LhsContractingDims))?;
    Some((shapes, terms))
}

/// So many elements take longer to fold than a kernel takes to start.
const MUCH: i64 = CostModel::CPU.much_elements;

/// Whether an instruction folds or contracts much, many elements for each result: with what follows it is no single loop, and it takes long.
pub fn folds_much(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let many = match instr.opcode {
        Opcode::Reduce => few_terms(module, id).is_none(),
        Opcode::Dot => dot(module, id).is_none_or(|(_, terms)| terms > FEW_TERMS),
        Opcode::ReduceWindow => few_positions(module, id).is_none(),
        Opcode::Convolution => true,
        _ => false,
    };
    let elements = |&o: &InstrId| module.instr(o).shape.as_array()?.checked_elements();
    many && instr.operands().iter().filter_map(elements).any(|n| n >= MUCH)
}

/// Whether each element of a `dot` is one product, of a type that holds the elements of both operands: an expression of theirs, however many there are.
pub fn is_product(module: &Module, id: InstrId) -> bool {
    let Some(([lhs, rhs, result], 1)) = dot(module, id) else { return false };
    let ty = result.element_type;
    let holds = |of: ElementType| {
        if is_ieee(ty) { is_ieee(of) && ty.holds(of) } else { ty == of && ty.is_integer() && ty.bits() >= 8 }
    };
    holds(lhs.element_type) && holds(rhs.element_type)
}

/// Whether a `dot` is of so few products that they are an expression, of a type that is added and multiplied in itself.
pub fn is_few_products(module: &Module, id: InstrId) -> bool {
    let few = |terms: i64| {
        let elements = module.instr(id).shape.as_array().and_then(ArrayShape::checked_elements);
        elements.is_some_and(|n| n.saturating_mul(terms) <= FEW_PRODUCTS)
    };
    few_products(module, id).is_some_and(few)
}

/// The products in each element of a `dot`, if they are few, of a type that is added and multiplied in itself or of floats of 16 bits.
pub fn few_products(module: &Module, id: InstrId) -> Option<i64> {
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
    (plain && of(lhs) && of(rhs) && (1..=FEW_TERMS).contains(&terms)).then_some(terms)
}

/// What one element of an elementwise operation costs, in simple vector operations.
pub fn element_flops(opcode: Opcode) -> f64 {
    match opcode.numeric_row() {
        NumericRow::Elementary(_) => 20.0,
        _ if matches!(opcode, Opcode::Divide | Opcode::Sqrt) => 6.0,
        _ if opcode == Opcode::Remainder => 20.0,
        _ => 1.0,
    }
}
