//! The last touches: order of computations, layouts, aliases.

use std::sync::Arc;

use hlo::attrs::{AliasEntry, AliasKind, Ints};
use hlo::{ArrayShape, ComputationId, ElementType, InstrId, Layout, Module, NewInstruction, Opcode, Shape};

use super::Generator;
use super::movement::permutation;

impl Generator<'_> {
    /// Ends the program.
    pub(super) fn settle(&mut self) {
        order(&mut self.module);
        if self.choices.chance(24) {
            self.mix();
        }
        if self.choices.chance(40) {
            self.layouts();
        }
        if self.choices.chance(40) {
            self.aliases();
        }
    }

    /// Mixed precision: converts operands to floats of other types where the instruction, whose result stays
    /// as it is, allows it.
    fn mix(&mut self) {
        const OTHERS: &[ElementType] =
            &[ElementType::BF16, ElementType::F32, ElementType::F16, ElementType::F64, ElementType::F8E4M3FN];
        let computations = self.module.computations().iter();
        let all: Vec<InstrId> = computations.flat_map(|&c| self.module.instructions(c)).collect();
        for id in all {
            let instr = self.module.instr(id);
            if is_particular(instr.opcode) {
                continue;
            }
            let (opcode, attrs) = (instr.opcode, instr.attrs.clone());
            for slot in 0..instr.operands().len() {
                let operand = self.module.instr(id).operands()[slot];
                let Some(array) = self.module.instr(operand).shape.as_array().cloned() else { continue };
                if !array.element_type.is_float() || opcode == Opcode::Convert || !self.choices.chance(50) {
                    continue;
                }
                let other = Shape::Array(ArrayShape { element_type: self.choices.pick(OTHERS), ..array });
                let module = &self.module;
                let instr = module.instr(id);
                let mut shapes: Vec<&Shape> =
                    instr.operands().iter().map(|&o| &module.instr(o).shape).collect();
                shapes[slot] = &other;
                if hlo::infer::check(module, opcode, &shapes, &attrs, &instr.shape).is_ok() {
                    let name = self.module.unique_name("mixed");
                    let new =
                        NewInstruction { name, ..NewInstruction::new(Opcode::Convert, other, &[operand]) };
                    let converted = self.module.insert_before(id, new);
                    self.module.set_operand(id, slot, converted);
                }
            }
        }
    }

    /// Assigns arrays layouts other than the default one: parameters, copies, the root, and others now and
    /// then.
    fn layouts(&mut self) {
        let entry = self.module.entry();
        let root = self.module.root(entry);
        let order: Vec<InstrId> = self.module.instructions(entry).collect();
        for id in order {
            let instr = self.module.instr(id);
            let rank = instr.shape.as_array().map_or(0, |a| a.rank());
            // A bitcast reads memory: with another layout it would mean another program, or none.
            let reads = |o: Opcode| o == Opcode::Bitcast;
            let bitcast = reads(instr.opcode)
                || self.module.users(id).iter().any(|u| reads(self.module.instr(u.user).opcode));
            let likely = matches!(instr.opcode, Opcode::Parameter | Opcode::Copy) || id == root;
            if rank < 2 || bitcast || !self.choices.chance(if likely { 160 } else { 40 }) {
                continue;
            }
            let layout = Arc::new(Layout::from_minor_to_major(permutation(self, rank)));
            if let Shape::Array(a) = &mut self.module.instr_mut(id).shape {
                a.layout = Some(layout);
            }
        }
        if self.choices.chance(128) {
            self.module.header.entry_computation_layout = self.module.program_shape(entry);
        }
    }

    /// Lets results take the buffers of parameters of the same shape.
    fn aliases(&mut self) {
        let entry = self.module.entry();
        let Some(program) = self.module.program_shape(entry) else { return };
        let results: Vec<(Ints, &Shape)> = match &program.result {
            Shape::Tuple(t) => t.iter().zip(0..).map(|(s, i)| (std::iter::once(i).collect(), s)).collect(),
            one @ (Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => {
                vec![(Ints::new(), one)]
            }
        };
        let mut taken = vec![false; results.len()];
        for (parameter, shape) in program.parameters.iter().enumerate() {
            let fits = |(i, (_, s)): &(usize, &(Ints, &Shape))| {
                !taken[*i] && shape.as_array().is_some() && shape.compatible(s)
            };
            let Some((i, (index, _))) = results.iter().enumerate().find(fits) else { continue };
            if self.choices.chance(100) {
                continue;
            }
            taken[i] = true;
            let kind = if self.choices.chance(100) { AliasKind::Must } else { AliasKind::May };
            self.module.header.input_output_alias.push(AliasEntry {
                output_index: index.clone(),
                parameter: parameter as i64,
                parameter_index: Ints::new(),
                kind,
                kind_written: true,
            });
        }
    }
}

/// Whether an operand must be what began the operation, or of the type that the applied computation takes
/// (the interpreter refuses others).
fn is_particular(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::AllGatherDone
            | Opcode::AllReduceDone
            | Opcode::AsyncDone
            | Opcode::AsyncUpdate
            | Opcode::CollectivePermuteDone
            | Opcode::CopyDone
            | Opcode::RecvDone
            | Opcode::Scan
            | Opcode::Scatter
            | Opcode::SelectAndScatter
            | Opcode::SendDone
            | Opcode::Sort
    )
}

/// Removes computations that nothing calls (a family that gives up may leave some), and puts callees before
/// callers, as XLA's parser wants them.
pub fn order(module: &mut Module) {
    let mut order: Vec<ComputationId> = Vec::new();
    let mut placed = vec![false; module.computation_capacity()];
    // A computation is pushed twice: to see its callees, and then to be placed behind them.
    let mut pending = vec![(module.entry(), false)];
    while let Some((c, seen)) = pending.pop() {
        if placed[c.index()] {
            continue;
        }
        if seen {
            placed[c.index()] = true;
            order.push(c);
            continue;
        }
        pending.push((c, true));
        for id in module.instructions(c) {
            let called = module.instr(id).attrs.called_computations();
            pending.extend(called.into_iter().map(|callee| (callee, false)));
        }
    }
    let unreached: Vec<_> = module.computations().iter().copied().filter(|c| !placed[c.index()]).collect();
    unreached.into_iter().for_each(|c| module.remove_computation(c));
    module.set_computation_order(order);
}
