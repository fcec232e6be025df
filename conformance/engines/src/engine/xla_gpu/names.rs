//! Which slice of memory an instruction's value is in, by the buffer assignment.
//!
//! The assignment has the values that instructions define. Other instructions (`get-tuple-element`, `tuple`,
//! `bitcast`, parameters of branches and of asynchronous computations) are names of them: those are followed
//! to the definition.

use hlo::{AttrKey, InstrId, Module, Opcode};
use rustc_hash::FxHashMap;

use super::buffers::{Assignment, Slice};

/// The maximum number of names that one value has in a row.
const MAX_STEPS: usize = 10_000;

/// Values of a module by the names that a buffer assignment knows.
#[derive(Debug)]
pub(super) struct Names<'a> {
    module: &'a Module,
    slices: &'a Assignment,
    /// Of computations that get their operands as they are, by [`hlo::ComputationId::index`]: the operand
    /// that each parameter is.
    passed: FxHashMap<usize, Vec<InstrId>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(module: &'a Module, slices: &'a Assignment) -> Self {
        let mut passed = FxHashMap::default();
        for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
            let instr = module.instr(id);
            let called = instr.attrs.called_computations();
            match instr.opcode {
                Opcode::Call | Opcode::AsyncStart => {
                    if let Some(called) = called.first() {
                        passed.insert(called.index(), instr.operands().to_vec());
                    }
                }
                Opcode::Conditional => {
                    for (called, &operand) in called.iter().zip(instr.operands().iter().skip(1)) {
                        passed.insert(called.index(), vec![operand]);
                    }
                }
                _other => {}
            }
        }
        Self { module, slices, passed }
    }

    /// The slice of an array of an instruction's value; `None`: the assignment does not say.
    pub(super) fn slice(&self, id: InstrId, index: &[usize]) -> Option<Slice> {
        let (mut id, mut index) = (id, index.to_vec());
        for _ in 0..MAX_STEPS {
            if let Some(&slice) = self.slices.get(&self.name(id, &index)) {
                return Some(slice);
            }
            let instr = self.module.instr(id);
            let operand = instr.operands().first().copied();
            match instr.opcode {
                Opcode::GetTupleElement => {
                    index.insert(0, usize::try_from(instr.attrs.int(AttrKey::Index)?).ok()?);
                    id = operand?;
                }
                Opcode::Tuple => {
                    if index.is_empty() {
                        return None;
                    }
                    id = *instr.operands().get(index.remove(0))?;
                }
                Opcode::Bitcast | Opcode::OptBarrier | Opcode::AddDependency | Opcode::Domain => {
                    id = operand?
                }
                Opcode::AsyncDone => {
                    let start = self.module.instr(operand?);
                    id = self.module.root(*start.attrs.called_computations().first()?);
                }
                Opcode::Call => id = self.module.root(*instr.attrs.called_computations().first()?),
                Opcode::Parameter => {
                    let number = usize::try_from(instr.parameter_number()?).ok()?;
                    id = *self.passed.get(&instr.parent().index())?.get(number)?;
                }
                _defines => return None,
            }
        }
        None
    }

    fn name(&self, id: InstrId, index: &[usize]) -> String {
        let name = &self.module.instr(id).name;
        if index.is_empty() {
            return name.to_string();
        }
        let index: Vec<String> = index.iter().map(usize::to_string).collect();
        format!("{name}{{{}}}", index.join(","))
    }
}
