//! The HLO that an executable executes, and how it leads back to the program that it was made from; and the
//! interpreter on another form of a program.
//!
//! **Invariant:** an instruction of a form computes what the instruction of the source does that has its
//! name, in the computation of its computation's name, with the same shape but for layouts; one that finds
//! none such computes nothing that the source names.

use std::sync::Arc;

use hlo::diag::codes;
use hlo::{Diagnostic, InstrId, Module, Span};
use hlo_interp::{Devices, Observer};
use rustc_hash::FxHashMap;

use super::interpreter::interpret;
use super::{Allowances, Engine, Executable, Inputs, Outcome, RunOptions};

/// HLO that is executed.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    /// The program.
    pub module: &'a Module,
    /// It is the source itself.
    pub same: bool,
    /// By instruction, whether an observer sees its value; `None`: that of every one.
    pub seen: Option<&'a [bool]>,
}

impl<'a> Form<'a> {
    /// The program itself.
    pub fn same(module: &'a Module) -> Self {
        Self { module, same: true, seen: None }
    }

    /// Another form of the program.
    pub fn of(module: &'a Module) -> Self {
        Self { module, same: false, seen: None }
    }

    /// A program itself, of which the values of some instructions are seen.
    pub fn seen_at(module: &'a Module, seen: &'a [bool]) -> Self {
        Self { module, same: true, seen: Some(seen) }
    }

    /// For each instruction of the form (by [`InstrId::index`]) the one of `source` that computes the same.
    pub fn origins(&self, source: &Module) -> Vec<Option<InstrId>> {
        let mut origins = vec![None; self.module.instruction_capacity()];
        if self.same {
            let seen = |id: &InstrId| self.seen.is_none_or(|seen| seen[id.index()]);
            let all = self.module.computations().iter().flat_map(|&c| self.module.instructions(c));
            for id in all.filter(seen) {
                origins[id.index()] = Some(id);
            }
            return origins;
        }
        let mut known: FxHashMap<(&str, &str), InstrId> = FxHashMap::default();
        for &c in source.computations() {
            let name = &*source.computation(c).name;
            known.extend(source.instructions(c).map(|id| ((name, &*source.instr(id).name), id)));
        }
        for &c in self.module.computations() {
            let name = &*self.module.computation(c).name;
            for id in self.module.instructions(c) {
                let found = known.get(&(name, &*self.module.instr(id).name)).copied();
                let same_shape =
                    |s: &InstrId| source.instr(*s).shape.compatible(&self.module.instr(id).shape);
                origins[id.index()] = found.filter(same_shape);
            }
        }
        origins
    }
}

/// The interpreter on another form of whatever program it is given, such as what XLA made of it.
#[derive(Debug)]
pub struct FormEngine {
    name: String,
    module: Module,
}

impl FormEngine {
    /// Runs `module` instead of the program. `name` is for reports.
    pub fn new(name: String, module: Module) -> Self {
        Self { name, module }
    }
}

impl Engine for FormEngine {
    fn name(&self) -> &str {
        &self.name
    }

    /// Whoever made the form took the liberties.
    fn allowances(&self) -> Allowances {
        Allowances::LOOSE
    }

    fn knows_one_program(&self) -> bool {
        true
    }

    fn supports(&self, module: &Module, _devices: Devices) -> Result<(), Diagnostic> {
        let [here, there] = [module, &self.module].map(|m| m.program_shape(m.entry()));
        let leaves = |p: &Option<hlo::ProgramShape>| {
            p.as_ref().map(|p| {
                let leaves = p.parameters.iter().flat_map(|s| s.leaves()).cloned().collect::<Vec<_>>();
                (leaves, p.result.leaves().into_iter().cloned().collect::<Vec<_>>())
            })
        };
        let same = match (leaves(&here), leaves(&there)) {
            (Some((p, r)), Some((q, s))) => {
                let equal = |a: &[hlo::Shape], b: &[hlo::Shape]| {
                    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.compatible(b))
                };
                equal(&p, &q) && equal(&r, &s)
            }
            _ => false,
        };
        if same {
            return Ok(());
        }
        let message = format!("`{}` has other parameters or results than the program", self.name);
        Err(Diagnostic::error(codes::UNSUPPORTED_OPCODE, Span::NONE, message))
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        self.supports(module, Devices::ONE).map_err(Outcome::Unsupported)?;
        Ok(Box::new(Formed { module: &self.module }))
    }
}

/// Another form that the interpreter runs.
#[derive(Debug)]
struct Formed<'m> {
    module: &'m Module,
}

impl Executable for Formed<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        interpret(self.module, inputs, options, observer)
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(Form::of(self.module))
    }
}
