//! An applied computation on lists of operands: what it is of each of them, with bounds.
//!
//! - **Lifted**: the computation with lists instead of its scalars, so that one run is that of all lanes
//!   (vectorization by if-conversion). A branch is a selection among what all branches give, since these have
//!   no effects: it falls as a selection does whose predicate is as uncertain as the branch.
//! - **One by one**: where it holds what cannot be lifted (loops, which end elsewhere in each lane, and
//!   operations on arrays), a run for each lane, within [`MAX_RUNS`].

use std::sync::Arc;

use hlo::attrs::{Direction, Ints};
use hlo::builder::ComputationBuilder;
use hlo::{
    AttrKey, AttrValue, BufferOf, ComputationId, ElementType, InstrId, Module, NewInstruction, Opcode, Shape,
    Span, with_buffer,
};
use hlo_execution::run::RunOptions;
use hlo_interp::device::host::NoHost;
use hlo_interp::{Devices, Tensor, Value};
use rustc_hash::FxHashMap;

use super::probe::{Regions, copied};
use super::rules::Case;
use super::{Bounds, Leaf, Radii, Settings, Tree, Watching, evaluate};

/// The most runs for single lanes, of all that an instruction applies.
const MAX_RUNS: usize = 1 << 16;

/// Arrays with their bounds.
pub(super) type Known = (Vec<Tensor>, Vec<Arc<Leaf>>);

/// The elements at these indices, as a list.
pub(super) fn taken(t: &Tensor, positions: &[usize]) -> Tensor {
    let buffer = with_buffer!(t.buffer(), v => BufferOf::wrap(positions.iter().map(|&i| v[i]).collect()));
    Tensor::new([positions.len() as i64].as_slice(), buffer)
}

pub(super) fn leaf_at(leaf: &Leaf, positions: &[usize]) -> Leaf {
    let at = |radii: &Radii| radii.taken(positions.iter().copied());
    let bounds = Bounds { soft: at(&leaf.bounds.soft), hard: at(&leaf.bounds.hard), ..Bounds::default() };
    leaf.with_bounds(bounds)
}

/// An applied computation, to be run on lists.
pub(super) struct Lifted<'a> {
    case: &'a Case<'a>,
    computation: ComputationId,
    /// How many runs for single lanes there may still be.
    left: usize,
}

impl<'a> Lifted<'a> {
    pub(super) fn new(case: &'a Case<'a>, computation: ComputationId) -> Lifted<'a> {
        Lifted { case, computation, left: MAX_RUNS }
    }

    /// The arrays of its result on lists of one length. `None`: not worked out.
    pub(super) fn run(&mut self, args: Known) -> Option<Known> {
        let lanes = args.0.first()?.len();
        let mut module = Module::new("lifted");
        match lift(self.case.module, &mut module, self.computation, lanes as i64, &mut FxHashMap::default()) {
            Some(entry) => {
                module.set_entry(entry);
                self.evaluated(&module, args)
            }
            None => self.one_by_one(lanes, &args),
        }
    }

    /// Runs a module that stands for the computation.
    fn evaluated(&self, module: &Module, args: Known) -> Option<Known> {
        let options = RunOptions { devices: Devices::ONE, seed: 0, ..self.case.settings.options };
        let settings = Settings { options, nested: true, ..self.case.settings.clone() };
        let trees = args.1.into_iter().map(Tree::Array).collect();
        let values = args.0.into_iter().map(Value::Array).collect();
        let (value, tree) =
            evaluate(module, vec![values], vec![trees], settings, Arc::new(NoHost), Watching::default())
                .ok()?
                .pop()?;
        let tensors = value.arrays().into_iter().cloned().collect();
        Some((tensors, tree.leaves().into_iter().cloned().collect()))
    }

    fn one_by_one(&mut self, lanes: usize, args: &Known) -> Option<Known> {
        self.left = self.left.checked_sub(lanes)?;
        if !hlo_interp::repeats(self.case.module, &[self.computation]) {
            return None;
        }
        let mut module = Module::new("applied");
        let same = Regions::Retyped(&|t| t);
        let entry =
            copied(self.case.module, &mut module, self.computation, &same, &mut FxHashMap::default())?;
        module.set_entry(entry);
        let each = (0..lanes).map(|lane| {
            let scalars = args.0.iter().map(|t| taken(t, &[lane]).reshaped([].as_slice()));
            let leaves = args.1.iter().map(|leaf| Arc::new(leaf_at(leaf, &[lane])));
            let (values, leaves) = self.evaluated(&module, (scalars.collect(), leaves.collect()))?;
            values.iter().all(|t| t.len() == 1).then_some((values, leaves))
        });
        let each: Vec<Known> = each.collect::<Option<_>>()?;
        let results = each.first()?.0.len();
        Some((0..results).map(|k| joined(each.iter().map(|(t, leaves)| (&t[k], &*leaves[k])))).unzip())
    }
}

/// Scalars as a list.
fn joined<'t>(lanes: impl Iterator<Item = (&'t Tensor, &'t Leaf)> + Clone) -> (Tensor, Arc<Leaf>) {
    fn of<'t, T: BufferOf>(_: &[T], lanes: impl Iterator<Item = &'t Tensor>) -> hlo::Buffer {
        let scalars = lanes.filter_map(|t| T::slice(t.buffer())?.first().copied());
        T::wrap(scalars.collect())
    }
    let tensors = lanes.clone().map(|(t, _)| t);
    let first = tensors.clone().next().expect("there are lanes");
    let buffer = with_buffer!(first.buffer(), v => of(v, tensors));
    let radii = |of: fn(&Bounds) -> &Radii| {
        let each = lanes.clone().map(|(_, leaf)| of(&leaf.bounds).at(0));
        Radii::limited(each.collect(), lanes.clone().map(|(_, leaf)| of(&leaf.bounds).limits(0)).collect())
    };
    let bounds = Bounds { soft: radii(|b| &b.soft), hard: radii(|b| &b.hard), ..Bounds::default() };
    let any = |of: fn(&Leaf) -> bool| lanes.clone().any(|(_, leaf)| of(leaf));
    let leaf = Leaf { computed: any(|leaf| leaf.computed), ..Leaf::new(bounds, any(|leaf| leaf.product)) };
    (Tensor::new([buffer.len() as i64].as_slice(), buffer), Arc::new(leaf))
}

fn lifted_shape(shape: &Shape, lanes: i64) -> Option<Shape> {
    Some(match shape {
        Shape::Array(a) if a.dims.is_empty() => Shape::array(a.element_type, &[lanes]),
        Shape::Tuple(parts) => {
            let parts: Option<Vec<Shape>> = parts.iter().map(|p| lifted_shape(p, lanes)).collect();
            Shape::tuple(parts?)
        }
        Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => return None,
    })
}

/// A copy of a computation whose scalars are lists. Only what works element by element.
fn lift(
    source: &Module,
    target: &mut Module,
    computation: ComputationId,
    lanes: i64,
    copies: &mut FxHashMap<ComputationId, ComputationId>,
) -> Option<ComputationId> {
    if let Some(&copy) = copies.get(&computation) {
        return Some(copy);
    }
    for id in source.instructions(computation) {
        let instr = source.instr(id);
        let plain = matches!(
            instr.opcode,
            Opcode::Parameter
                | Opcode::Constant
                | Opcode::Tuple
                | Opcode::GetTupleElement
                | Opcode::Copy
                | Opcode::Call
                | Opcode::Fusion
                | Opcode::Conditional
        );
        if !(plain || instr.opcode.is_elementwise()) || !instr.control_predecessors.is_empty() {
            return None;
        }
        for called in instr.attrs.called_computations() {
            lift(source, target, called, lanes, copies)?;
        }
    }
    let name = target.unique_computation_name("lifted");
    let copy = target.add_computation(name, Span::NONE);
    let mut instructions: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for id in source.instructions(computation) {
        let instr = source.instr(id);
        let shape = lifted_shape(&instr.shape, lanes)?;
        let operands: Option<Vec<InstrId>> =
            instr.operands().iter().map(|o| instructions.get(o).copied()).collect();
        let operands = operands?;
        let mut attrs = instr.attrs.clone();
        attrs.map_computations(|called| copies.get(&called).copied().unwrap_or(called));
        let new = match instr.opcode {
            Opcode::Conditional => {
                let branches = attrs.called_computations();
                let mut b = ComputationBuilder::resume(target, copy);
                instructions.insert(id, selected(&mut b, &branches, &operands, lanes)?);
                continue;
            }
            Opcode::Constant => {
                let scalar = NewInstruction {
                    attrs,
                    ..NewInstruction::new(Opcode::Constant, instr.shape.clone(), &[])
                };
                let name = target.unique_name(&format!("{}.scalar", instr.name));
                let scalar = target.append(copy, scalar.named(name));
                NewInstruction::new(Opcode::Broadcast, shape, &[scalar])
                    .attr(AttrKey::Dimensions, AttrValue::Ints(Ints::new()))
            }
            opcode => NewInstruction { attrs, ..NewInstruction::new(opcode, shape, &operands) },
        };
        let name = target.unique_name(&instr.name);
        instructions.insert(id, target.append(copy, new.named(name)));
    }
    target.set_root(copy, *instructions.get(&source.root(computation))?);
    copies.insert(computation, copy);
    Some(copy)
}

/// The result of a conditional lane by lane: all branches are computed, and the lane's one is selected.
fn selected(
    b: &mut ComputationBuilder<'_>,
    branches: &[ComputationId],
    operands: &[InstrId],
    lanes: i64,
) -> Option<InstrId> {
    let (&selector, operands) = operands.split_first()?;
    let predicate = b.shape(selector).element_type() == Some(ElementType::Pred);
    let results = branches.iter().zip(operands).map(|(&branch, &operand)| b.call(branch, &[operand]).ok());
    let results: Vec<InstrId> = results.collect::<Option<_>>()?;
    // An index that is out of range selects the last branch.
    let (&last, others) = results.split_last()?;
    let mut chosen = last;
    for (number, &result) in (0i32..).zip(others) {
        let selected = if predicate {
            selector
        } else {
            let number = b.scalar(number);
            let number = b.broadcast(number, &[lanes], &[]).ok()?;
            b.compare(Direction::Eq, selector, number).ok()?
        };
        chosen = choice(b, selected, result, chosen)?;
    }
    Some(chosen)
}

/// A selection of values that may be tuples.
fn choice(b: &mut ComputationBuilder<'_>, selected: InstrId, yes: InstrId, no: InstrId) -> Option<InstrId> {
    let Shape::Tuple(parts) = b.shape(yes) else { return b.select(selected, yes, no).ok() };
    let parts = (0..parts.len() as i64).map(|part| {
        let (yes, no) = (b.get(yes, part).ok()?, b.get(no, part).ok()?);
        choice(b, selected, yes, no)
    });
    let parts: Vec<InstrId> = parts.collect::<Option<_>>()?;
    b.tuple(&parts).ok()
}
