//! Sums in other orders: of `reduce`, `reduce-window`, `dot`, `ragged-dot`, `convolution`; cumulative `scan`s
//! are only widened.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction, Window};
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode, Shape, TypeClass};
use hlo_execution::allowances::normalized;
use hlo_opt::passes::edit::{Edit, each};
use hlo_opt::passes::{Fuel, Pass};

use super::regions;

/// The order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Backwards: operands are reversed along the summed dimensions.
    Reversed,
    /// Blocks of consecutive terms, then the sums of the blocks from the left.
    Blocked,
    /// Halves, and halves of those.
    Tree,
    /// As [`How::Tree`], of types narrower than f32 alone.
    NarrowTree,
    /// As written; only operands of products are not rounded to the result's type first.
    Literal,
    /// As [`How::Literal`], reductions in the order of [`regions::How::ByColumns`].
    LiteralByColumns,
    /// As [`How::Literal`], reductions in that of [`regions::How::Windows`].
    LiteralWindows,
}

/// Accumulates products of narrow types (`dot`, `ragged-dot`, `convolution`) in those that these are normalized to
/// ([`normalized`]), and rounds at the end. Returns how many.
pub fn normalize_products(module: &mut Module) -> u64 {
    each(module, &mut { Fuel::UNLIMITED }, |e| widen_product(e).or_else(|| normalize_product(e)))
}

/// Sums in another order.
#[derive(Clone, Copy, Debug)]
pub struct Sums(pub How);

impl Pass for Sums {
    fn name(&self) -> &str {
        match self.0 {
            How::Reversed => "reversed",
            How::Blocked => "blocked",
            How::Tree => "tree",
            How::NarrowTree => "pairwise-f32-accumulate",
            How::Literal => "region",
            How::LiteralByColumns => "region-by-columns",
            How::LiteralWindows => "region-windows",
        }
    }

    fn doc(&self) -> &str {
        match self.0 {
            How::Reversed => "sums from the last term to the first",
            How::Blocked => "sums in blocks, whose sums are added",
            How::Tree => "sums by halves",
            How::NarrowTree => "sums of types narrower than f32 by halves in f32",
            How::Literal => "sums literally, each step rounded in the type of the result",
            How::LiteralByColumns => "sums literally over several dimensions, the first fastest",
            How::LiteralWindows => "sums literally in windows of 32, and a sum of the windows",
        }
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let before = module.instruction_capacity();
        let mut applied = match self.0 {
            How::Literal | How::LiteralByColumns | How::LiteralWindows => each(module, fuel, widen_product),
            How::Reversed | How::Blocked | How::Tree | How::NarrowTree => {
                each(module, fuel, |e| widen_product(e).or_else(|| widen(e)))
            }
        };
        applied += match self.0 {
            How::Literal => 0,
            How::LiteralByColumns => each(module, fuel, |e| regions::by_columns(e, reduced(e)?)),
            How::LiteralWindows => each(module, fuel, |e| {
                let [value, initial] = reduced(e)?[..] else { return None };
                let ty = e.array(e.id())?.element_type;
                let first = nothing(e, ty);
                regions::windows(e, value, first, initial)
            }),
            How::Reversed => each(module, fuel, reversed),
            How::Blocked => each(module, fuel, |e| split(e, How::Blocked)),
            How::Tree => each(module, fuel, |e| split(e, How::Tree)),
            How::NarrowTree => each(module, fuel, |e| {
                // A widened sum is a new instruction.
                let is_narrow = is_product(e.at().opcode) && e.at().shape.element_type().is_some_and(narrow);
                if e.id().index() >= before || is_narrow { split(e, How::Tree) } else { None }
            }),
        };
        applied
    }
}

fn is_product(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Dot | Opcode::RaggedDot | Opcode::Convolution)
}

fn narrow(ty: ElementType) -> bool {
    ty.is_float() && ty.bits() < 32
}

/// Whether a computation adds its two parameters, numbers of one type.
pub(super) fn adds(e: &Edit<'_>, region: ComputationId) -> Option<ElementType> {
    let module = &*e.module;
    let root = module.instr(module.root(region));
    let ty = root.shape.element_type()?;
    let &[Some(a), Some(b)] = module.computation(region).parameters() else { return None };
    let both = root.operands() == [a, b] || root.operands() == [b, a];
    let typed = [a, b].iter().all(|&p| module.instr(p).shape.element_type() == Some(ty));
    (root.opcode == Opcode::Add && both && typed && (ty.is_float() || ty.is_complex())).then_some(ty)
}

/// The type of a `reduce` or `reduce-window` of one operand that is a sum of floats or complex numbers.
fn reduction(e: &Edit<'_>) -> Option<ElementType> {
    if !matches!(e.at().opcode, Opcode::Reduce | Opcode::ReduceWindow) {
        return None;
    }
    let ty = adds(e, e.at().attrs.computation(AttrKey::ToApply)?)?;
    let [x, init] = e.operands()?;
    let all = [&e.at().shape, &e.instr(x).shape, &e.instr(init).shape];
    (all.iter().all(|s| s.element_type() == Some(ty))).then_some(ty)
}

/// The operands of a sum by `reduce` or `reduce-window`, of static shapes.
fn reduced(e: &Edit<'_>) -> Option<Vec<InstrId>> {
    reduction(e)?;
    plain(e)?;
    Some(e.at().operands().to_vec())
}

/// A sum of a type narrower than f32, in f32 and rounded at the end.
pub fn widen(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode == Opcode::Scan {
        return widen_scan(e);
    }
    let ty = reduction(e).filter(|&ty| narrow(ty))?;
    let [x, init] = e.operands()?;
    let (x, init) = (e.convert(x, ElementType::F32)?, e.convert(init, ElementType::F32)?);
    let region = e.region(Opcode::Add, ElementType::F32)?;
    let mut attrs = e.at().attrs.clone();
    attrs.set(AttrKey::ToApply, AttrValue::Computation(region));
    let shape = Shape::Array(e.at().shape.as_array()?.with_type(ElementType::F32));
    let sum = e.shaped(e.at().opcode, shape, &[x, init], attrs)?;
    e.convert(sum, ty)
}

/// A running sum of a type narrower than f32: one input, one carry, and the sum as both results.
fn widen_scan(e: &mut Edit<'_>) -> Option<InstrId> {
    let region = e.at().attrs.computation(AttrKey::ToApply)?;
    let module = &*e.module;
    let root = module.instr(module.root(region));
    let (Opcode::Tuple, &[a, b]) = (root.opcode, root.operands()) else { return None };
    let sum = module.instr(a);
    let ty = sum.shape.element_type().filter(|&ty| narrow(ty))?;
    let slice = sum.shape.clone();
    let parameters = module.computation(region).parameters().to_vec();
    let is_sum = a == b
        && sum.opcode == Opcode::Add
        && parameters.len() == 2
        && sum.operands().iter().all(|&o| module.instr(o).opcode == Opcode::Parameter)
        && sum.operands()[0] != sum.operands()[1]
        && sum.operands().iter().all(|&o| module.instr(o).shape == slice);
    let [x, init] = e.operands()?;
    if !is_sum || [x, init].iter().any(|&o| e.instr(o).shape.element_type() != Some(ty)) {
        return None;
    }
    let (x, init) = (e.convert(x, ElementType::F32)?, e.convert(init, ElementType::F32)?);
    let wide = Shape::Array(slice.as_array()?.with_type(ElementType::F32));
    let mut b = hlo::builder::ComputationBuilder::new(e.module, "running_sum");
    let (p, q) = (b.parameter("x", wide.clone()), b.parameter("carry", wide));
    let built = b.binary(Opcode::Add, p, q).and_then(|s| b.tuple(&[s, s]));
    let computation = b.finish();
    e.first(computation);
    built.ok()?;
    let mut attrs = e.at().attrs.clone();
    attrs.set(AttrKey::ToApply, AttrValue::Computation(computation));
    let scan = e.add(Opcode::Scan, &[x, init], attrs)?;
    let (all, last) = (e.get(scan, 0)?, e.get(scan, 1)?);
    let (all, last) = (e.convert(all, ty)?, e.convert(last, ty)?);
    e.tuple(&[all, last])
}

/// A product of narrow floats that are normalized, in the type that they are normalized to.
fn normalize_product(e: &mut Edit<'_>) -> Option<InstrId> {
    if !is_product(e.at().opcode) || e.at().attrs.sparsity().is_some() {
        return None;
    }
    let ty = e.at().shape.element_type().filter(|&ty| narrow(ty) && normalized(ty) != ty)?;
    let shape = Shape::Array(e.at().shape.as_array()?.with_type(normalized(ty)));
    let (operands, attrs) = (e.at().operands().to_vec(), e.at().attrs.clone());
    let product = e.shaped(e.at().opcode, shape, &operands, attrs)?;
    e.convert(product, ty)
}

/// A product whose operands the literal definition would round to the result's type before it multiplies,
/// without that: in a type that holds them and the result, and rounded at the end.
pub fn widen_product(e: &mut Edit<'_>) -> Option<InstrId> {
    if !is_product(e.at().opcode) || e.at().attrs.sparsity().is_some() {
        return None;
    }
    let ty = e.at().shape.element_type()?;
    let mut operands: Vec<InstrId> = e.at().operands().to_vec();
    let types: Vec<ElementType> =
        operands.iter().take(2).filter_map(|&o| e.instr(o).shape.element_type()).collect();
    let floats = types.iter().all(|t| t.is_float());
    let of_doubles = ty == ElementType::F64 || types.contains(&ElementType::F64);
    let wide = if of_doubles { ElementType::F64 } else { ElementType::F32 };
    match ty.class() {
        TypeClass::Float if types.iter().all(|&t| t == ty || !t.is_float()) || ty == wide => return None,
        TypeClass::Float => {}
        // Sums of floats that are integers are given in f32.
        TypeClass::Signed | TypeClass::Unsigned if floats && wide == ElementType::F64 => {}
        TypeClass::Signed | TypeClass::Unsigned | TypeClass::Pred | TypeClass::Complex => return None,
    }
    if ty.is_float() {
        for o in operands.iter_mut().take(2) {
            if !e.instr(*o).shape.element_type()?.is_float() {
                *o = e.convert(*o, ty)?;
            }
        }
    }
    let shape = Shape::Array(e.at().shape.as_array()?.with_type(wide));
    let attrs = e.at().attrs.clone();
    let product = e.shaped(e.at().opcode, shape.clone(), &operands, attrs.clone())?;
    let rounded = if ty.is_float() { product } else { e.convert(product, ElementType::F32)? };
    let rounded = e.convert(rounded, ty)?;
    let ragged = attrs.ints_or_empty(AttrKey::LhsRaggedDims);
    let contracted = attrs.ints_or_empty(AttrKey::LhsContractingDims);
    if ty != ElementType::F8E8M0FNU || ragged.is_empty() || ragged.iter().any(|d| contracted.contains(d)) {
        return Some(rounded);
    }
    // What belongs to no group is zero bits, which are not the number 0 of a wider type: the least number of
    // this one. It is where a product of ones is 0.
    let mut ones = operands.clone();
    for o in ones.iter_mut().take(2) {
        let one = e.scalar_bits(ElementType::F32, u128::from(1f32.to_bits()));
        let one = e.convert(one, e.instr(*o).shape.element_type()?)?;
        *o = e.fill(one, *o)?;
    }
    let terms = e.shaped(e.at().opcode, shape, &ones, attrs)?;
    let none = e.scalar_bits(wide, 0);
    let none = e.fill(none, terms)?;
    let belongs_to_none = e.compare(Direction::Eq, terms, none)?;
    let zero = e.scalar_bits(ty, 0);
    let zero = e.fill(zero, rounded)?;
    e.select(belongs_to_none, zero, rounded)
}

/// A sum in the same type as its terms, of static shape: what [`reversed`] and [`split`] take apart.
fn plain(e: &Edit<'_>) -> Option<ElementType> {
    let ty = e.array(e.id())?.element_type;
    if e.at().operands().iter().any(|&o| e.array(o).is_none()) || e.at().attrs.sparsity().is_some() {
        return None;
    }
    match e.at().opcode {
        Opcode::Reduce | Opcode::ReduceWindow => reduction(e),
        Opcode::Dot | Opcode::Convolution if e.at().operands().len() == 2 => {
            (ty.is_float() || ty.is_complex()).then_some(ty)
        }
        _ => None,
    }
}

/// The window of the instruction. An absent one has no dimensions.
fn window(e: &Edit<'_>) -> Window {
    e.at().attrs.window().cloned().unwrap_or_default()
}

fn reversed(e: &mut Edit<'_>) -> Option<InstrId> {
    plain(e)?;
    let [a, b] = e.operands()?;
    let attrs = e.at().attrs.clone();
    match e.at().opcode {
        Opcode::Reduce => {
            let dims = attrs.ints(AttrKey::Dimensions)?.to_vec();
            if dims.is_empty() {
                return None;
            }
            let a = e.reverse(a, &dims)?;
            e.again(&[a, b])
        }
        Opcode::Dot => {
            let [left, right] = [AttrKey::LhsContractingDims, AttrKey::RhsContractingDims]
                .map(|k| attrs.ints_or_empty(k).to_vec());
            if left.is_empty() {
                return None;
            }
            let (a, b) = (e.reverse(a, &left)?, e.reverse(b, &right)?);
            e.again(&[a, b])
        }
        Opcode::ReduceWindow => {
            let dims: Vec<i64> = (0..window(e).dims.len() as i64).collect();
            let window = reversed_window(e, &dims, a)?;
            let a = e.reverse(a, &dims)?;
            let attrs = attrs.with(AttrKey::Window, AttrValue::Window(Box::new(window)));
            let shape = e.at().shape.clone();
            let sum = e.shaped(Opcode::ReduceWindow, shape, &[a, b], attrs)?;
            e.reverse(sum, &dims)
        }
        Opcode::Convolution => {
            let dims = attrs.conv_dims()?.clone();
            let window = reversed_window(e, &dims.input_spatial, a)?;
            let groups = [AttrKey::FeatureGroupCount, AttrKey::BatchGroupCount];
            let one = groups.iter().all(|&k| attrs.int(k).unwrap_or(1) == 1);
            let mut left = dims.input_spatial.to_vec();
            let mut right = dims.kernel_spatial.to_vec();
            if one {
                left.push(dims.input_feature);
                right.push(dims.kernel_input_feature);
            }
            if left.is_empty() {
                return None;
            }
            let (a, b) = (e.reverse(a, &left)?, e.reverse(b, &right)?);
            let attrs = attrs.with(AttrKey::Window, AttrValue::Window(Box::new(window)));
            let shape = e.at().shape.clone();
            let sum = e.shaped(Opcode::Convolution, shape, &[a, b], attrs)?;
            e.reverse(sum, &dims.output_spatial)
        }
        _ => None,
    }
}

/// The window that finds in the reversed operand what the instruction's finds in the operand, its results
/// reversed: what is left over at the end, because no more window fits there, is sliced off at the beginning.
pub(super) fn reversed_window(e: &Edit<'_>, dims: &[i64], x: InstrId) -> Option<Window> {
    let sizes = e.array(x)?.dims.clone();
    let mut window = window(e);
    for (w, &d) in window.dims.iter_mut().zip(dims) {
        let n = *sizes.get(usize::try_from(d).ok()?)?;
        let spread = if n == 0 { 0 } else { (n - 1).checked_mul(w.base_dilation)?.checked_add(1)? };
        let reach = (w.size - 1).checked_mul(w.window_dilation)?.checked_add(1)?;
        let slack = spread.checked_add(w.pad_low)?.checked_add(w.pad_high)?.checked_sub(reach)?;
        if slack < 0 || w.stride < 1 {
            return None;
        }
        (w.pad_low, w.pad_high) = (w.pad_high.checked_sub(slack % w.stride)?, w.pad_low);
    }
    Some(window)
}

/// The split point of a sum of `n` terms.
fn pieces(n: i64, how: How) -> Vec<(i64, i64)> {
    let block = match how {
        How::Blocked if n <= 8 => 2,
        How::Blocked => ((n + 15) / 16).max(4),
        How::Reversed
        | How::Tree
        | How::NarrowTree
        | How::Literal
        | How::LiteralByColumns
        | How::LiteralWindows => ((n + 15) / 16).max(1),
    };
    let mut at = 0;
    std::iter::from_fn(|| {
        (at < n).then(|| {
            let piece = (at, (at + block).min(n));
            at = piece.1;
            piece
        })
    })
    .collect()
}

/// Adds partial sums: from the left, or by halves.
fn joined(e: &mut Edit<'_>, mut parts: Vec<InstrId>, how: How) -> Option<InstrId> {
    if how == How::Blocked {
        let mut parts = parts.into_iter();
        let first = parts.next()?;
        return parts.try_fold(first, |sum, part| e.binary(Opcode::Add, sum, part));
    }
    while parts.len() > 1 {
        let mut next = Vec::new();
        for pair in parts.chunks(2) {
            next.push(if let &[a, b] = pair { e.binary(Opcode::Add, a, b)? } else { pair[0] });
        }
        parts = next;
    }
    parts.pop()
}

/// The sum of partial sums.
fn split(e: &mut Edit<'_>, how: How) -> Option<InstrId> {
    let ty = plain(e)?;
    let [a, b] = e.operands()?;
    let attrs = e.at().attrs.clone();
    // Partial sums are at least f32.
    let wide = if narrow(ty) { ElementType::F32 } else { ty };
    let shape = Shape::Array(e.array(e.id())?.with_type(wide));
    let mut parts = Vec::new();
    match e.at().opcode {
        Opcode::Reduce => {
            let sizes = e.array(a)?.dims.clone();
            let dims = attrs.ints(AttrKey::Dimensions)?;
            let (d, n) = longest(dims, &sizes)?;
            for (start, limit) in pieces(n, how) {
                let x = e.cut(a, d, start, limit)?;
                let init = if start == 0 { b } else { nothing(e, ty) };
                parts.push(e.again(&[x, init])?);
            }
        }
        Opcode::Dot => {
            let sizes = e.array(a)?.dims.clone();
            let left = attrs.ints_or_empty(AttrKey::LhsContractingDims);
            let right = attrs.ints_or_empty(AttrKey::RhsContractingDims);
            let (d, n) = longest(left, &sizes)?;
            let other = right.get(left.iter().position(|&l| l == d as i64)?)?;
            let other = usize::try_from(*other).ok()?;
            for (start, limit) in pieces(n, how) {
                let (x, y) = (e.cut(a, d, start, limit)?, e.cut(b, other, start, limit)?);
                parts.push(e.shaped(Opcode::Dot, shape.clone(), &[x, y], attrs.clone())?);
            }
        }
        Opcode::Convolution => {
            let dims = attrs.conv_dims()?.clone();
            let one = [AttrKey::FeatureGroupCount, AttrKey::BatchGroupCount]
                .iter()
                .all(|&k| attrs.int(k).unwrap_or(1) == 1);
            let feature = usize::try_from(dims.input_feature).ok()?;
            let n = *e.array(a)?.dims.get(feature)?;
            if one && n > 1 {
                let other = usize::try_from(dims.kernel_input_feature).ok()?;
                for (start, limit) in pieces(n, how) {
                    let (x, y) = (e.cut(a, feature, start, limit)?, e.cut(b, other, start, limit)?);
                    parts.push(e.shaped(Opcode::Convolution, shape.clone(), &[x, y], attrs.clone())?);
                }
            } else {
                let spatial = dims.kernel_spatial;
                for (w, start, limit) in windows(e, how)? {
                    let d = usize::try_from(*spatial.get(w)?).ok()?;
                    let y = e.cut(b, d, start, limit)?;
                    let attrs = narrowed(&attrs, w, start, limit)?;
                    parts.push(e.shaped(Opcode::Convolution, shape.clone(), &[a, y], attrs)?);
                }
            }
        }
        Opcode::ReduceWindow => {
            for (w, start, limit) in windows(e, how)? {
                let init = if start == 0 { b } else { nothing(e, ty) };
                let attrs = narrowed(&attrs, w, start, limit)?;
                parts.push(e.shaped(Opcode::ReduceWindow, shape.clone(), &[a, init], attrs)?);
            }
        }
        _ => return None,
    }
    if parts.len() < 2 {
        return None;
    }
    let sum = joined(e, parts, how)?;
    e.convert(sum, ty)
}

/// The longest of some dimensions, and its size, if that is more than one.
pub(super) fn longest(dims: &[i64], sizes: &[i64]) -> Option<(usize, i64)> {
    let sized = dims.iter().filter_map(|&d| {
        let d = usize::try_from(d).ok()?;
        Some((d, *sizes.get(d)?))
    });
    sized.max_by_key(|&(d, n)| (n, std::cmp::Reverse(d))).filter(|&(_, n)| n > 1)
}

/// The identity of addition: -0; of types without it, in which its bits are a NaN, 0.
fn nothing(e: &mut Edit<'_>, ty: ElementType) -> InstrId {
    let one_zero = matches!(
        ty,
        ElementType::F8E4M3FNUZ
            | ElementType::F8E5M2FNUZ
            | ElementType::F8E4M3B11FNUZ
            | ElementType::F8E8M0FNU
    );
    let sign = if one_zero { 0 } else { 1u128 << (ty.real_part().bits() - 1) };
    let bits = if ty.is_complex() { sign | sign << ty.real_part().bits() } else { sign };
    e.scalar_bits(ty, bits)
}

/// The dimension of the window with the most positions, and how they are cut.
fn windows(e: &Edit<'_>, how: How) -> Option<Vec<(usize, i64, i64)>> {
    let window = window(e);
    let sizes: Vec<i64> = window.dims.iter().map(|w| w.size).collect();
    let dims: Vec<i64> = (0..sizes.len() as i64).collect();
    let (w, n) = longest(&dims, &sizes)?;
    Some(pieces(n, how).into_iter().map(|(start, limit)| (w, start, limit)).collect())
}

/// The attributes with positions `start..limit` (of the kernel, if there is one) of a window dimension alone;
/// the padding moves so that results stay where they are.
fn narrowed(attrs: &Attrs, dim: usize, start: i64, limit: i64) -> Option<Attrs> {
    let mut window = attrs.window()?.clone();
    let w = window.dims.get_mut(dim)?;
    // A window that is read backwards meets the kernel's first position last.
    let (first, last) = if w.reversal { (w.size - limit, w.size - start) } else { (start, limit) };
    w.pad_low = w.pad_low.checked_sub(first.checked_mul(w.window_dilation)?)?;
    w.pad_high = w.pad_high.checked_sub((w.size - last).checked_mul(w.window_dilation)?)?;
    w.size = limit - start;
    let mut attrs = attrs.clone();
    attrs.set(AttrKey::Window, AttrValue::Window(Box::new(window)));
    Some(attrs)
}
