//! Flush-to-zero: a second run of the reference, in which denormal operands and results of arithmetic are
//! zeros.
//!
//! Whether a denormal number is kept decides more than its own magnitude: the quotient by it, its logarithm,
//! its comparison with zero. Bounds of the reference have the number and zero in one interval, and of an
//! interval with a pole nothing is known. The bounds of the second run begin at the zero. The liberty permits
//! that run, so what is within its soft bounds is explained.
//!
//! [`Flushing::module`] has a `copy` of each operand of arithmetic that may be denormal. The run replaces
//! denormal numbers by zeros in these copies and in the results of arithmetic. Data movement keeps them, and
//! so do computations that are applied to elements; but what a fold compares, and updates that a scatter
//! computes with, are copies, too.
//!
//! **Invariant:** this run calls nothing wrong. It makes one permitted choice for every instruction; an
//! engine may make another for some.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use hlo::opcode::Family;
use hlo::{AttrKey, ComputationId, ElementType, InstrId, Instruction, Module, NewInstruction, Opcode};
use hlo_execution::format::Format;
use hlo_interp::{Tensor, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use super::limits::Limits;
use super::number::{Numbers, flushed};
use super::{Bounds, Leaf, Radii, Tree, elementwise};

/// A module whose run flushes, and where.
#[derive(Debug)]
pub(super) struct Flushing {
    /// The module with copies.
    pub(super) module: Module,
    /// Instructions whose values are flushed: copies of operands, and arithmetic.
    at: FxHashSet<InstrId>,
    /// Whether any number was.
    any: AtomicBool,
}

impl Flushing {
    /// `None`: the module has no arithmetic that flushes.
    pub(super) fn new(module: &Module) -> Option<Flushing> {
        let mut module = module.clone();
        let (mut at, mut copies) = (FxHashSet::default(), FxHashMap::default());
        let applied = applied(&module);
        let followed = module.computations().iter().copied().filter(|c| !applied.contains(c));
        let mut flushing: Vec<(InstrId, Range<usize>)> = Vec::new();
        for id in followed.flat_map(|c| module.instructions(c)) {
            let instr = module.instr(id);
            if flushes(&module, instr) {
                at.insert(id);
                flushing.push((id, 0..instr.operands().len()));
            } else if let Some(slots) = flushed_operands(&module, instr) {
                flushing.push((id, slots));
            }
        }
        let results = at.clone();
        for (id, slots) in flushing {
            for slot in slots {
                let operand = module.instr(id).operands()[slot];
                if results.contains(&operand) || !may_be_denormal(module.instr(operand)) {
                    continue;
                }
                let copy = *copies.entry(operand).or_insert_with(|| copied(&mut module, operand));
                module.set_operand(id, slot, copy);
                at.insert(copy);
            }
        }
        (!at.is_empty()).then(|| Flushing { module, at, any: AtomicBool::new(false) })
    }

    /// Whether the run has flushed some number to zero.
    pub(super) fn has_flushed(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Whether the value of an instruction is one that is flushed.
    pub(super) fn is_at(&self, id: InstrId) -> bool {
        self.at.contains(&id)
    }

    /// The value of an instruction with its denormal numbers flushed. `None`: it stays as it is.
    pub(super) fn value(&self, id: InstrId, value: &Value) -> Option<Value> {
        let flushed = if self.is_at(id) { value_flushed(value) } else { None };
        if flushed.is_some() {
            self.any.store(true, Ordering::Relaxed);
        }
        flushed
    }
}

/// Computations that are applied to elements, which no run shows, and what they call.
fn applied(module: &Module) -> FxHashSet<ComputationId> {
    let mut applied = FxHashSet::default();
    let mut pending: Vec<ComputationId> = Vec::new();
    for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
        let instr = module.instr(id);
        if !matches!(instr.opcode.family(), Family::Structure | Family::Control | Family::Async) {
            pending.extend(instr.attrs.called_computations());
        }
    }
    while let Some(c) = pending.pop() {
        if applied.insert(c) {
            pending
                .extend(module.instructions(c).flat_map(|id| module.instr(id).attrs.called_computations()));
        }
    }
    applied
}

/// The operands in which denormal numbers may count as zeros, of an instruction whose results are no
/// arithmetic: those of a fold whose region compares them, and the updates of a scatter that computes with
/// them.
fn flushed_operands(module: &Module, instr: &Instruction) -> Option<Range<usize>> {
    let region = instr.attrs.computation(AttrKey::ToApply)?;
    let count = instr.operands().len();
    let (of, taken) = match instr.opcode {
        Opcode::Scatter => (count / 2 + 1..count, gives_arithmetic(module, region)),
        Opcode::Reduce | Opcode::ReduceWindow => {
            let compares = module.instructions(region).any(|id| {
                let i = module.instr(id);
                i.opcode == Opcode::Compare && flushes(module, i)
            });
            let bits =
                module.instructions(region).any(|id| module.instr(id).opcode == Opcode::BitcastConvert);
            (0..count, compares && !bits)
        }
        _ => return None,
    };
    taken.then_some(of)
}

/// Whether an instruction is arithmetic in which denormal operands and results may count as zeros.
fn flushes(module: &Module, instr: &Instruction) -> bool {
    let of = |&id: &InstrId| module.instr(id).shape.element_type();
    let operand = instr.operands().first().and_then(of);
    let complex = operand.is_some_and(ElementType::is_complex);
    match instr.opcode.family() {
        Family::Elementwise => match instr.opcode {
            Opcode::Select | Opcode::ReducePrecision => false,
            // Of a complex number it is a root of a sum of squares.
            Opcode::Abs => complex,
            Opcode::Compare => !instr.attrs.is_total_order(),
            Opcode::Convert if operand == instr.shape.element_type() => false,
            opcode => operand.is_some_and(|ty| elementwise::flushes(opcode, ty)),
        },
        Family::Contraction | Family::Normalization | Family::Transform => true,
        Family::LinearAlgebra => true,
        // Updates may go nowhere, and what they overwrite is moved.
        Family::Region if instr.opcode == Opcode::Scatter => false,
        Family::Region => {
            let key =
                if instr.opcode == Opcode::SelectAndScatter { AttrKey::Scatter } else { AttrKey::ToApply };
            instr.attrs.computation(key).is_some_and(|c| gives_arithmetic(module, c))
        }
        Family::Bits
        | Family::Movement
        | Family::Sizes
        | Family::Order
        | Family::Random
        | Family::Structure
        | Family::Control
        | Family::Async
        | Family::Collective
        | Family::DeviceNumber
        | Family::Host
        | Family::CustomCall => false,
    }
}

/// Whether each result of an applied computation is one of arithmetic, and no operand that is handed on.
fn gives_arithmetic(module: &Module, computation: ComputationId) -> bool {
    let root = module.instr(module.root(computation));
    let arithmetic = |id: &InstrId| flushes(module, module.instr(*id));
    match root.opcode {
        Opcode::Tuple => !root.operands().is_empty() && root.operands().iter().all(arithmetic),
        _ => flushes(module, root),
    }
}

/// Whether a value is an array of a type whose denormal numbers processors flush: `bf16` is computed in f32
/// and has its exponents. Smaller types are computed in f32 too, but their denormal numbers are normal there.
fn may_be_denormal(instr: &Instruction) -> bool {
    instr.shape.element_type().is_some_and(has_flushed_numbers)
}

fn has_flushed_numbers(ty: ElementType) -> bool {
    let part = if ty.is_complex() { ty.real_part() } else { ty };
    matches!(part, ElementType::F32 | ElementType::F64 | ElementType::BF16)
}

fn copied(module: &mut Module, of: InstrId) -> InstrId {
    let (shape, computation) = (module.instr(of).shape.clone(), module.instr(of).parent());
    let name = module.unique_name("flushed");
    let copy = NewInstruction::new(Opcode::Copy, shape, &[of]).named(name);
    module.insert_after(computation, Some(of), copy)
}

fn value_flushed(value: &Value) -> Option<Value> {
    match value {
        Value::Array(t) => tensor_flushed(t).map(Value::Array),
        Value::Tuple(parts) => {
            let flushed: Vec<Option<Value>> = parts.iter().map(value_flushed).collect();
            let any = flushed.iter().any(Option::is_some);
            let each = flushed.into_iter().zip(parts.iter()).map(|(f, p)| f.unwrap_or_else(|| p.clone()));
            any.then(|| Value::Tuple(each.collect()))
        }
        Value::Token | Value::Pending(_) => None,
    }
}

fn tensor_flushed(t: &Tensor) -> Option<Tensor> {
    match t.element_type() {
        ElementType::F8E8M0FNU => scales_flushed(t),
        ty => has_flushed_numbers(ty).then(|| flushed(t))?,
    }
}

/// Results of arithmetic on `f8e8m0fnu`, which is computed in f32, where 2^-127 is denormal: NaN, since the
/// type has no zero.
fn scales_flushed(t: &Tensor) -> Option<Tensor> {
    let format = Format::of(ElementType::F8E8M0FNU)?;
    let flushed = |x: f64| if x < format.flushes_below() { f64::NAN } else { x };
    let v = Numbers::of(t).re;
    let any = v.iter().any(|&x| x < format.flushes_below());
    let each: Vec<f64> = v.into_iter().map(flushed).collect();
    any.then(|| super::number::tensor(ElementType::F8E8M0FNU, t.dims(), &each))
}

/// The bounds of the flushed value `to`, from those of `value`: an element that can only be denormal or zero
/// is that zero, with radius 0.
pub(super) fn bounds(value: &Value, to: &Value, tree: Tree) -> Tree {
    match (value, to, tree) {
        (Value::Array(from), Value::Array(to), Tree::Array(leaf)) => {
            let of = |radii: &Radii| radii_flushed(from, to, radii);
            let bounds = Bounds {
                soft: of(&leaf.bounds.soft),
                hard: of(&leaf.bounds.hard),
                specials: leaf.bounds.specials.clone(),
                open_rows: leaf.bounds.open_rows.clone(),
            };
            let relations = leaf.relations.clone().filter(|_| from.buffer() == to.buffer());
            Tree::Array(Leaf { bounds, relations, held: None, ..(*leaf).clone() }.into())
        }
        (Value::Tuple(from), Value::Tuple(to), Tree::Tuple(trees)) if trees.len() == from.len() => {
            let each = from.iter().zip(to.iter()).zip(trees.iter());
            Tree::Tuple(each.map(|((from, to), tree)| bounds(from, to, tree.clone())).collect())
        }
        (_, _, tree) => tree,
    }
}

fn radii_flushed(from: &Tensor, to: &Tensor, radii: &Radii) -> Radii {
    let Some(format) = Format::of(to.element_type()) else { return radii.clone() };
    if radii.is_zero() || matches!(radii, Radii::Unknown) || !has_flushed_numbers(to.element_type()) {
        return radii.clone();
    }
    let (from, to) = (Numbers::of(from), Numbers::of(to));
    radii.mapped(to.len(), |i, r, limits| {
        let alone = to.im.is_none() || to.at(i) == (0.0, 0.0);
        let (re, im) = (from.at(i).0 - to.at(i).0, from.at(i).1 - to.at(i).1);
        let reach = re.abs().max(im.abs()) + r;
        if alone && to.re[i] == 0.0 && reach < format.min_normal() {
            return (0.0, Limits::NONE);
        }
        // Infinities and NaNs are not flushed.
        if from.at(i) == to.at(i) || reach.is_nan() { (r, limits) } else { (reach, Limits::NONE) }
    })
}
