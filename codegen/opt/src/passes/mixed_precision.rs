//! Explicit conversions where the verifier allows mixed precision: later passes may then rely on the types of
//! an operation, for instance copy an operand byte by byte.
//!
//! The interpreter defines in which type an operation computes: that of the result where elements are
//! computed or selected, that of the first operand where they are moved, the computation's where one is
//! applied. Contractions read operands of several types directly. Instructions with control edges stay:
//! conversions go around them.

use hlo::attrs::{AttrKey, AttrValue, FftType};
use hlo::elementwise::{Kind, kind};
use hlo::{ElementType, InstrId, Module, NewInstruction, Opcode, Shape};

use super::PassCx;
use super::edit::{folds, has_run_time_sizes};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    if has_run_time_sizes(module) {
        return 0;
    }
    let folds = folds(module);
    let computations = module.computations().iter().filter(|c| !folds.contains(c));
    let all: Vec<InstrId> = computations.flat_map(|&c| module.instructions(c)).collect();
    let mut applied = 0;
    for id in all {
        let types = operand_types(module, id).unwrap_or_default().into_iter().enumerate();
        let slots: Vec<(usize, ElementType)> =
            types.filter(|&(slot, ty)| mixes(module, module.instr(id).operands()[slot], ty)).collect();
        if !slots.is_empty() {
            if !cx.fuel.take() {
                return applied;
            }
            for (slot, ty) in slots {
                convert_operand(module, id, slot, ty);
            }
            applied += 1;
        }
        let Some(types) = computed(module, id) else { continue };
        let declared = array_types(&module.instr(id).shape);
        if declared.len() != types.len() || declared == types {
            continue;
        }
        if !cx.fuel.take() {
            return applied;
        }
        convert_results(module, id, &types);
        applied += 1;
    }
    applied
}

/// The element types of all arrays inside.
fn array_types(shape: &Shape) -> Vec<ElementType> {
    shape.leaves().iter().filter_map(|s| s.element_type()).collect()
}

/// Whether a value is of another float type.
fn mixes(module: &Module, value: InstrId, ty: ElementType) -> bool {
    let is = module.instr(value).shape.element_type();
    is.is_some_and(|is| is != ty && is.is_float() && ty.is_float())
}

/// The types in which operands are taken, the first ones of all; `None` where they are taken as they are.
fn operand_types(module: &Module, id: InstrId) -> Option<Vec<ElementType>> {
    let instr = module.instr(id);
    let operands = instr.operands();
    let of = |&o: &InstrId| module.instr(o).shape.element_type();
    let result = instr.shape.element_type();
    let all = |ty: ElementType| {
        operands.iter().map(|o| Some(of(o).filter(|t| !t.is_float()).unwrap_or(ty))).collect()
    };
    if let Some(kind) = kind(instr.opcode) {
        return match kind {
            Kind::Function(_) | Kind::Unary(_) | Kind::Binary(_) | Kind::Clamp | Kind::Select => all(result?),
            Kind::Compare => all(operands.iter().filter_map(of).reduce(ElementType::holding)?),
            Kind::Convert if instr.opcode == Opcode::Copy => all(result?),
            Kind::Complex => all(result?.real_part()),
            Kind::Real
            | Kind::Imag
            | Kind::IsFinite
            | Kind::ReducePrecision
            | Kind::Convert
            | Kind::StochasticConvert => None,
        };
    }
    if instr.opcode == Opcode::Concatenate {
        return all(result?);
    }
    if matches!(instr.opcode, Opcode::DynamicUpdateSlice | Opcode::Pad) {
        return all(of(operands.first()?)?);
    }
    if !matches!(instr.opcode, Opcode::Map | Opcode::Reduce | Opcode::ReduceWindow) {
        return None;
    }
    // The computation of a reduction takes accumulators first, which begin as the initial values.
    let callee = module.computation(instr.attrs.computation(AttrKey::ToApply)?);
    let mut types: Vec<ElementType> =
        callee.parameters().iter().map(|p| of(p.as_ref()?)).collect::<Option<_>>()?;
    if instr.opcode != Opcode::Map {
        let half = types.len() / 2;
        types.rotate_left(half);
    }
    (types.len() == operands.len()).then_some(types)
}

/// The types of what an instruction computes, one per array, where its shape may say others.
fn computed(module: &Module, id: InstrId) -> Option<Vec<ElementType>> {
    let instr = module.instr(id);
    let leaves = |id: InstrId| Some(array_types(&module.instr(id).shape));
    let first = || leaves(*instr.operands().first()?);
    let real_part = |types: Vec<ElementType>| types.into_iter().map(ElementType::real_part).collect();
    match instr.opcode {
        Opcode::AddDependency
        | Opcode::Broadcast
        | Opcode::Cholesky
        // Of arrays, the operand is converted.
        | Opcode::Copy
        | Opcode::Domain
        | Opcode::DynamicSlice
        | Opcode::DynamicUpdateSlice
        | Opcode::Gather
        | Opcode::Pad
        | Opcode::ReducePrecision
        | Opcode::Reshape
        | Opcode::Reverse
        | Opcode::SelectAndScatter
        | Opcode::Slice
        | Opcode::Transpose
        | Opcode::TriangularSolve => first(),
        Opcode::Real | Opcode::Imag => first().map(real_part),
        Opcode::Fft if instr.attrs.fft_type() == Some(&FftType::Irfft) => first().map(real_part),
        Opcode::Map | Opcode::Reduce | Opcode::ReduceWindow => {
            leaves(module.root(instr.attrs.computation(AttrKey::ToApply)?))
        }
        // Scatters also take indices and updates, whose types are those of the operands.
        Opcode::Sort | Opcode::Scatter => {
            let arrays = array_types(&instr.shape).len();
            instr.operands().iter().take(arrays).map(|&o| module.instr(o).shape.element_type()).collect()
        }
        // The second array is of indices.
        Opcode::Topk => {
            let indices = instr.shape.leaves().get(1)?.element_type()?;
            Some(first()?.into_iter().chain([indices]).collect())
        }
        _ => None,
    }
}

/// Converts an operand to another type.
fn convert_operand(module: &mut Module, id: InstrId, slot: usize, ty: ElementType) {
    let operand = module.instr(id).operands()[slot];
    let Some(array) = module.instr(operand).shape.as_array() else { return };
    let shape = Shape::Array(array.with_type(ty).without_layout());
    let new = named(module, id, NewInstruction::new(Opcode::Convert, shape, &[operand]));
    let converted = module.insert_before(id, new);
    module.set_operand(id, slot, converted);
}

/// Gives an instruction the types that it computes, and converts for its users to the types that it had.
fn convert_results(module: &mut Module, id: InstrId, types: &[ElementType]) {
    let declared = module.instr(id).shape.clone();
    let users = module.users(id).to_vec();
    module.instr_mut(id).shape = retyped(&declared, &mut types.iter());
    let mut last = id;
    let new = converted(module, (id, &declared), &mut |module, new| {
        let (computation, new) = (module.instr(id).parent(), named(module, id, new));
        last = module.insert_after(computation, Some(last), new);
        last
    });
    for u in users {
        module.set_operand(u.user, u.operand as usize, new);
    }
    let parent = module.instr(id).parent();
    if module.root(parent) == id {
        module.set_root(parent, new);
    }
}

/// Converts each array of a value to the element type that it has in a shape; the value itself if none
/// differs. A tuple is rebuilt from its converted elements.
fn converted(
    module: &mut Module,
    (value, to): (InstrId, &Shape),
    add: &mut dyn FnMut(&mut Module, NewInstruction) -> InstrId,
) -> InstrId {
    let from = module.instr(value).shape.clone();
    match to {
        _ if from == *to => value,
        Shape::Tuple(shapes) => {
            let elements: Vec<InstrId> = shapes
                .iter()
                .zip(from.as_tuple().expect("invariant: only element types differ"))
                .enumerate()
                .map(|(index, (to, from))| {
                    let get = NewInstruction::new(Opcode::GetTupleElement, from.clone(), &[value])
                        .attr(AttrKey::Index, AttrValue::Int(index as i64));
                    let element = add(module, get);
                    converted(module, (element, to), add)
                })
                .collect();
            add(module, NewInstruction::new(Opcode::Tuple, to.clone(), &elements))
        }
        Shape::Array(_) => add(module, NewInstruction::new(Opcode::Convert, to.clone(), &[value])),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => value,
    }
}

/// Arrays of these types, one after the other.
fn retyped<'t>(shape: &Shape, types: &mut impl Iterator<Item = &'t ElementType>) -> Shape {
    match shape {
        Shape::Array(a) => Shape::Array(types.next().map_or_else(|| a.clone(), |&ty| a.with_type(ty))),
        Shape::Tuple(t) => Shape::tuple(t.iter().map(|s| retyped(s, types)).collect::<Vec<_>>()),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => shape.clone(),
    }
}

fn named(module: &mut Module, of: InstrId, new: NewInstruction) -> NewInstruction {
    NewInstruction { name: module.unique_name(new.opcode.name()), span: module.instr(of).span, ..new }
}
