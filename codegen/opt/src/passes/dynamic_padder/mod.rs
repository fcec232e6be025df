//! Replaces arrays with run-time sizes by padded arrays and sizes (`xla/service/dynamic_padder.cc`), one
//! instruction at a time.
//!
//! An instruction that reads or computes arrays `T[<=N]` becomes instructions on arrays `T[N]` and `s32`
//! sizes; users of its result get `SliceToDynamic(padded, sizes...)`, and look through that when they are
//! rewritten. Other operands are decomposed by `PadToStatic`. So each application by itself preserves the
//! program, and an instruction without a rule stays.
//!
//! **Invariant:** the padding of an array has unspecified bits, and no rule lets them be observed: they are
//! masked where elements are combined (`reduce`, `dot`, `pad`, `sort`, growing) and left where they are not.
//! A size that may exceed its bound at run time is checked by an instruction of its own, which is an effect:
//! the program stops as before.

mod control;
mod folds;
mod masks;
mod rules;

use hlo::attrs::{AttrKey, AttrValue, Attrs, BackendConfig};
use hlo::{ArrayShape, ElementType, InstrId, Module, Opcode, Shape};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::calls::inline;
use super::edit::{Edit, Survey, sweep};
use super::{PassCx, facts};

/// For each dimension its size, an `s32`, if that is not the bound.
type Sizes = SmallVec<[Option<InstrId>; 6]>;

/// An array with run-time sizes, decomposed.
#[derive(Clone, Debug)]
struct View {
    /// Of static shape, the bounds.
    array: InstrId,
    sizes: Sizes,
}

impl View {
    fn is_static(&self) -> bool {
        self.sizes.iter().all(Option::is_none)
    }
}

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let Some(mut applied) = check_given(module, cx) else { return 0 };
    let mut done: FxHashSet<InstrId> = FxHashSet::default();
    // What a loop or branch needs is in its computations only after it was rewritten.
    loop {
        let before = applied;
        let survey = Survey::of(module);
        for id in needed(module, &survey) {
            if cx.fuel.is_empty() {
                return applied;
            }
            if module.is_removed(id)
                || survey.pinned.contains(&id)
                || done.contains(&id)
                || !concerned(module, id)
            {
                continue;
            }
            let mut e = Edit::before(module, &survey, id);
            match rewrite(&mut e) {
                Some(new) if e.may_stand_for(new) && cx.fuel.take() => {
                    e.finish(new);
                    // A library call that became unused.
                    if !module.is_removed(id) {
                        sweep(module, id, &survey);
                    }
                    done.insert(id);
                    applied += 1;
                }
                _ => e.abandon(),
            }
        }
        if applied == before {
            return applied;
        }
    }
}

/// Checks the sizes of the program's own `SliceToDynamic`s that may exceed their bounds at run time; from
/// then on they read a clamped size, which is within the bound by construction. `None`: some are where
/// nothing can be checked.
fn check_given(module: &mut Module, cx: &mut PassCx<'_>) -> Option<u64> {
    let mut applied = 0;
    let survey = Survey::of(module);
    let mut given = needed(module, &survey);
    given.retain(|id| !survey.pinned.contains(id) && unchecked(module, *id));
    if given.iter().any(|&id| module.instr(id).parent() != module.entry()) {
        return None;
    }
    for id in given {
        let mut e = Edit::before(module, &survey, id);
        match clamped(&mut e) {
            Some(new) if e.may_stand_for(new) && cx.fuel.take() => {
                e.finish(new);
                applied += 1;
            }
            _ => e.abandon(),
        }
    }
    Some(applied)
}

/// The size and bound of each dynamic dimension of a `SliceToDynamic` of whole bounds.
fn given_sizes(module: &Module, id: InstrId) -> Option<Vec<(usize, InstrId, i64)>> {
    let instr = module.instr(id);
    let (&array, given) = instr.operands().split_first()?;
    let (from, to) = (module.instr(array).shape.as_array()?, instr.shape.as_array()?);
    if from.dims != to.dims || given.len() != to.rank() {
        return None;
    }
    let mut sizes = Vec::new();
    for (d, &size) in given.iter().enumerate() {
        let scalar = module.instr(size).shape.as_array()?;
        if !to.is_dynamic_dim(d) {
            if facts::integer(module, size) != Some(i128::from(to.dims[d])) {
                return None;
            }
        } else if scalar.rank() == 0 && scalar.element_type == ElementType::S32 {
            sizes.push((d, size, to.dims[d]));
        } else {
            return None;
        }
    }
    Some(sizes)
}

/// Whether it is a `SliceToDynamic` that could be looked through, with a size that may exceed its bound at
/// run time.
fn unchecked(module: &Module, id: InstrId) -> bool {
    let given = is_call_of(module, id, "SliceToDynamic") && !is_check(module, id);
    let sizes = if given { given_sizes(module, id) } else { None };
    sizes.is_some_and(|sizes| sizes.iter().any(|&(_, size, bound)| !within(module, size, bound, 8)))
}

/// A `SliceToDynamic` of sizes within their bounds, after a check of each that may not be.
fn clamped(e: &mut Edit<'_>) -> Option<InstrId> {
    let sizes = given_sizes(e.module, e.id())?;
    let mut operands = e.at().operands().to_vec();
    for (d, size, bound) in sizes {
        if within(e.module, size, bound, 8) {
            continue;
        }
        check(e, size, bound, d)?;
        let (low, high) = (number(e, 0)?, number(e, bound)?);
        let shape = Shape::scalar(ElementType::S32);
        operands[d + 1] = e.shaped(Opcode::Clamp, shape, &[low, size, high], Attrs::new())?;
    }
    let (shape, attrs) = (e.at().shape.clone(), e.at().attrs.clone());
    e.shaped(Opcode::CustomCall, shape, &operands, attrs)
}

/// A check of a size, the last operand, that was made by [`check`].
pub fn is_check(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    is_call_of(module, id, "SliceToDynamic")
        && instr.attrs.bool(AttrKey::CustomCallHasSideEffect)
        && module.users(id).is_empty()
        && instr.shape.as_array().is_some_and(|a| instr.operands().len() == a.rank() + 1)
}

/// The instructions that a result or an effect needs, in order: others do not run, and their sizes may be
/// anything.
fn needed(module: &Module, survey: &Survey) -> Vec<InstrId> {
    let mut needed = Vec::new();
    let mut seen: FxHashSet<InstrId> = FxHashSet::default();
    for &c in module.computations() {
        let first = needed.len();
        let all: Vec<InstrId> = module.instructions(c).collect();
        for &id in all.iter().rev() {
            let used = || module.users(id).iter().any(|u| seen.contains(&u.user));
            if module.root(c) == id || !survey.effects.removable(module, id) || used() {
                seen.insert(id);
                needed.push(id);
            }
        }
        needed[first..].reverse();
    }
    needed
}

/// Whether an instruction reads or computes run-time sizes and is neither `PadToStatic` nor `SliceToDynamic`.
fn concerned(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let dynamic =
        |shape: &Shape| shape.leaves().iter().any(|s| s.as_array().is_some_and(ArrayShape::is_dynamic));
    let reads = instr.operands().iter().any(|&o| dynamic(&module.instr(o).shape));
    if is_call_of(module, id, "PadToStatic") {
        return reads && is_call_of(module, instr.operands()[0], "SliceToDynamic");
    }
    // For a static result it says at most that the size is the bound.
    let sets = instr.opcode == Opcode::SetDimensionSize;
    let makes = matches!(
        instr.opcode,
        Opcode::DynamicReshape | Opcode::While | Opcode::Conditional | Opcode::Call | Opcode::Fusion
    ) && dynamic(&instr.shape);
    let asks = instr.opcode == Opcode::GetDimensionSize;
    (reads || makes || sets || asks) && !is_call_of(module, id, "SliceToDynamic")
}

/// The first instruction with run-time sizes that has no rule.
pub fn left(module: &Module) -> Option<InstrId> {
    let hands_on = |id: InstrId| {
        let opcode = module.instr(id).opcode;
        matches!(opcode, Opcode::Tuple | Opcode::GetTupleElement | Opcode::GetDimensionSize)
            || is_call_of(module, id, "PadToStatic")
    };
    needed(module, &Survey::of(module)).into_iter().find(|&id| concerned(module, id) && !hands_on(id))
}

/// Whether an instruction is a custom call of `target`.
pub fn is_call_of(module: &Module, id: InstrId, target: &str) -> bool {
    let instr = module.instr(id);
    instr.opcode == Opcode::CustomCall && instr.attrs.str(AttrKey::CustomCallTarget) == Some(target)
}

fn rewrite(e: &mut Edit<'_>) -> Option<InstrId> {
    match e.at().opcode {
        Opcode::While => return control::while_loop(e),
        Opcode::Conditional => return control::conditional(e),
        Opcode::Call => {
            let (callee, operands) =
                (e.at().attrs.computation(AttrKey::ToApply)?, e.at().operands().to_vec());
            return inline(e, callee, &operands);
        }
        Opcode::Fusion => {
            let (callee, operands) = (e.at().attrs.computation(AttrKey::Calls)?, e.at().operands().to_vec());
            return inline(e, callee, &operands);
        }
        Opcode::Reduce if e.at().shape.as_tuple().is_some() => return folds::reductions(e),
        Opcode::Scatter => return rules::scatter(e),
        Opcode::GetTupleElement => return element(e),
        Opcode::GetDimensionSize => return size_of(e),
        Opcode::CustomCall if is_call_of(e.module, e.id(), "PadToStatic") => {
            // Termination: for any other operand [`view`] would return another `PadToStatic`, and the
            // rewriting would apply to that again.
            let (padded, shape) = (e.operand(0)?, e.instr(e.operand(0)?).shape.as_array()?.clone());
            let view = seen_through(e, padded, &shape)?;
            return padded_and_sizes(e, &view);
        }
        _ => {}
    }
    let mut view = rules::padded(e)?;
    // With mixed precision, what is padded gets the type of the result.
    let (given, declared) = (e.array(view.array)?.element_type, e.at().shape.element_type()?);
    if given != declared {
        if !given.is_float() || !declared.is_float() {
            return None;
        }
        view.array = e.convert(view.array, declared)?;
    }
    let shape = e.at().shape.as_array()?;
    let fits = e.array(view.array)?.dims == shape.dims
        && (0..shape.rank()).all(|d| shape.is_dynamic_dim(d) || view.sizes[d].is_none());
    if !fits {
        return None;
    }
    if e.at().shape.as_array()?.is_dynamic() {
        slice_to_dynamic(e, &view, e.at().shape.clone())
    } else {
        Some(view.array)
    }
}

/// The padded array and sizes of an array.
fn view(e: &mut Edit<'_>, id: InstrId) -> Option<View> {
    let shape = e.instr(id).shape.as_array()?.clone();
    if !shape.is_dynamic() {
        return Some(View { array: id, sizes: SmallVec::from_elem(None, shape.rank()) });
    }
    if let Some(view) = seen_through(e, id, &shape) {
        return Some(view);
    }
    let made = pad_to_static(e, id, &shape)?;
    let array = e.get(made, 0)?;
    let mut sizes = Sizes::new();
    for d in 0..shape.rank() {
        sizes.push(if shape.is_dynamic_dim(d) { Some(e.get(made, d as i64 + 1)?) } else { None });
    }
    Some(View { array, sizes })
}

/// The operands of a `SliceToDynamic` of whole bounds.
fn seen_through(e: &Edit<'_>, id: InstrId, shape: &ArrayShape) -> Option<View> {
    if !is_call_of(e.module, id, "SliceToDynamic") {
        return None;
    }
    let (&array, given) = e.instr(id).operands().split_first()?;
    if e.array(array)?.dims != shape.dims || given.len() != shape.rank() {
        return None;
    }
    let mut sizes = Sizes::new();
    for (d, &size) in given.iter().enumerate() {
        if shape.is_dynamic_dim(d) {
            let scalar = e.array(size)?;
            if scalar.rank() != 0 || scalar.element_type != ElementType::S32 {
                return None;
            }
            sizes.push(Some(size));
        } else {
            if facts::integer(e.module, size) != Some(i128::from(shape.dims[d])) {
                return None;
            }
            sizes.push(None);
        }
    }
    Some(View { array, sizes })
}

fn call(e: &mut Edit<'_>, target: &str, shape: Shape, operands: &[InstrId], effect: bool) -> Option<InstrId> {
    let mut attrs = Attrs::new().with(AttrKey::CustomCallTarget, AttrValue::Str(target.into()));
    if effect {
        attrs.set(AttrKey::CustomCallHasSideEffect, AttrValue::Bool(true));
    }
    e.shaped(Opcode::CustomCall, shape, operands, attrs)
}

/// The tuple of an array padded with zeros and its sizes.
fn pad_to_static(e: &mut Edit<'_>, id: InstrId, shape: &ArrayShape) -> Option<InstrId> {
    let padded = Shape::array(shape.element_type, &shape.dims);
    let sizes = (0..shape.rank()).map(|_| Shape::scalar(ElementType::S32));
    call(e, "PadToStatic", Shape::tuple(std::iter::once(padded).chain(sizes)), &[id], false)
}

/// An array with run-time sizes again.
fn slice_to_dynamic(e: &mut Edit<'_>, view: &View, shape: Shape) -> Option<InstrId> {
    let bounds = e.array(view.array)?.dims.clone();
    let mut operands = vec![view.array];
    for (&size, &bound) in view.sizes.iter().zip(&bounds) {
        operands.push(match size {
            Some(size) => size,
            None => number(e, bound)?,
        });
    }
    call(e, "SliceToDynamic", shape, &operands, false)
}

/// The decomposition by `PadToStatic`.
fn padded_and_sizes(e: &mut Edit<'_>, view: &View) -> Option<InstrId> {
    let bounds = e.array(view.array)?.dims.clone();
    let mut elements = vec![masks::zeros_behind(e, view)?];
    for (&size, &bound) in view.sizes.iter().zip(&bounds) {
        elements.push(match size {
            Some(size) => size,
            None => number(e, bound)?,
        });
    }
    e.tuple(&elements)
}

/// An element of a tuple that is built here: so that no tuple of run-time sizes is read.
fn element(e: &mut Edit<'_>) -> Option<InstrId> {
    let tuple = e.operand(0)?;
    let index = usize::try_from(e.at().attrs.int(AttrKey::Index)?).ok()?;
    if e.instr(tuple).opcode != Opcode::Tuple {
        return None;
    }
    e.instr(tuple).operands().get(index).copied()
}

/// Whether a size is set that the shape of the result does not show, and nothing computed from it does.
fn sets_unseen(module: &Module) -> bool {
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.any(|id| {
        let instr = module.instr(id);
        let unseen = |shape: &ArrayShape| {
            let &[dim] = instr.attrs.ints(AttrKey::Dimensions)? else { return None };
            let dim = usize::try_from(dim).ok()?;
            let size = facts::integer(module, *instr.operands().get(1)?);
            Some(!shape.is_dynamic_dim(dim) && size != Some(i128::from(*shape.dims.get(dim)?)))
        };
        instr.opcode == Opcode::SetDimensionSize && instr.shape.as_array().and_then(unseen) == Some(true)
    })
}

/// `get-dimension-size`.
fn size_of(e: &mut Edit<'_>) -> Option<InstrId> {
    if sets_unseen(e.module) {
        return None;
    }
    let &[dim] = e.at().attrs.ints(AttrKey::Dimensions)? else { return None };
    let view = view(e, e.operand(0)?)?;
    let dim = usize::try_from(dim).ok()?;
    match *view.sizes.get(dim)? {
        Some(size) => Some(size),
        None => {
            let bound = e.array(view.array)?.dims[dim];
            number(e, bound)
        }
    }
}

/// An `s32`.
fn number(e: &mut Edit<'_>, value: i64) -> Option<InstrId> {
    let value = i32::try_from(value).ok()?;
    Some(e.scalar_bits(ElementType::S32, u128::from(value.cast_unsigned())))
}

/// A given size of dimension `d` as an `s32` within the bound; the program stops if it is not.
fn checked_size(e: &mut Edit<'_>, size: InstrId, bound: i64, d: usize) -> Option<InstrId> {
    let scalar = e.array(size)?;
    if scalar.rank() != 0 || scalar.element_type != ElementType::S32 {
        return None;
    }
    if !within(e.module, size, bound, 8) {
        check(e, size, bound, d)?;
    }
    Some(size)
}

/// Stops the program if an `s32`, the size of dimension `d`, is not in `0..=bound`.
fn check(e: &mut Edit<'_>, size: InstrId, bound: i64, d: usize) -> Option<InstrId> {
    // Only the program itself can return its sizes for checking.
    if e.at().parent() != e.module.entry() {
        return None;
    }
    let flags = e.scalar_bits(ElementType::Pred, 0);
    let mut dims = vec![1; d];
    dims.push(bound);
    let flags = e.fill_dims(flags, &dims)?;
    let mut shape = ArrayShape::new(ElementType::Pred, &dims);
    shape.dynamic = 1 << d;
    let mut operands = vec![flags];
    for _ in 0..d {
        operands.push(number(e, 1)?);
    }
    operands.push(size);
    call(e, "SliceToDynamic", Shape::Array(shape), &operands, true)
}

/// Stops the program if dimension `d` of an array, whose size and bound these are, has fewer than `limit`
/// elements. The bound minus the size is what is checked.
fn must_reach(e: &mut Edit<'_>, d: usize, size: InstrId, bound: i64, limit: i64) -> Option<()> {
    let all = number(e, bound)?;
    let lacking = e.binary(Opcode::Subtract, all, size)?;
    let check = check(e, lacking, bound.checked_sub(limit).filter(|&n| n >= 0)?, 0)?;
    let says = format!("{} to {limit} of dimension {d}", e.at().opcode.name());
    let says = AttrValue::BackendConfig(Box::new(BackendConfig::Str(says.into())));
    e.module.instr_mut(check).attrs.set(AttrKey::BackendConfig, says);
    Some(())
}

/// Whether a size is in `0..=bound` whatever the inputs.
fn within(module: &Module, size: InstrId, bound: i64, depth: u32) -> bool {
    let instr = module.instr(size);
    let below = |id: InstrId| depth > 0 && within(module, id, bound, depth - 1);
    match instr.opcode {
        Opcode::Constant => {
            facts::integer(module, size).is_some_and(|n| (0..=i128::from(bound)).contains(&n))
        }
        Opcode::Clamp => below(instr.operands()[0]) && below(instr.operands()[2]),
        Opcode::Copy => below(instr.operands()[0]),
        Opcode::Select => below(instr.operands()[1]) && below(instr.operands()[2]),
        Opcode::GetTupleElement => {
            let tuple = instr.operands()[0];
            let index = instr.attrs.int(AttrKey::Index).and_then(|i| usize::try_from(i).ok());
            let padded =
                module.instr(tuple).shape.as_tuple().and_then(|t| t.first()).and_then(Shape::as_array);
            match (is_call_of(module, tuple, "PadToStatic"), index, padded) {
                (true, Some(index @ 1..), Some(padded)) => {
                    padded.dims.get(index - 1).is_some_and(|&n| n <= bound)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is the program's own size, neither computed from it nor a parameter.
    #[test]
    fn what_has_no_rule_is_named() {
        let text = "HloModule m\nENTRY e {\n  x = f32[1,<=8,2] parameter(0)\n  k = f32[3,2,2] parameter(1)\n  y = f32[1,<=8,2] add(x, x)\n  c = f32[1,<=6,2] convolution(y, k), window={size=3}, dim_labels=b0f_0io->b0f\n  n = f32[1,<=6,2] negate(c)\n  ROOT t = (f32[1,<=6,2], f32[1,<=8,2]) tuple(n, y)\n}\n";
        let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
        let mut module = parsed.module.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        assert!(run(&mut module, &mut PassCx::cpu(&mut crate::passes::Fuel::UNLIMITED.clone())) > 0);
        assert_eq!(left(&module).map(|id| &*module.instr(id).name), Some("c"));
    }
}
