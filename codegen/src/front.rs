//! The front half of compilation, shared by all back ends: passes, fusion, scheduling.
//!
//! **Invariant:** the output is HLO that verifies, whose instructions run in their order in the text, and no
//! computation has two callers.

use hlo::{InstrId, Module, Opcode};

use crate::Unsupported;
use crate::error::CompileError;
use crate::run_time_sizes::{self, RunTimeSizes};
use hlo_opt::fusion;
use hlo_opt::passes::{self, Fuel, Pass, PassCx, Pipeline, Steps};

/// A verified module after the passes of a pipeline (which end with those of [`hlo_opt::fusion`]), scheduled;
/// and the adapter for arguments or results of run-time sizes. `verify`: after every pass. `steps` observes
/// every pass, `lap` every stage that has ended. Errors: forms that nothing implements, a pass that broke the
/// module.
pub fn fused_and_scheduled(
    module: &Module,
    pipeline: &Pipeline,
    verify: bool,
    steps: &mut dyn Steps,
    lap: &mut dyn FnMut(&str),
) -> Result<(Module, Option<RunTimeSizes>), CompileError> {
    passes::check_size(module)?;
    check_forms(module)?;
    let mut module = module.clone();
    let run_time_sizes = static_shapes(&mut module)?;
    let run = |pipeline: &Pipeline, module: &mut Module, steps: &mut dyn Steps| {
        let ran = pipeline.run_checked(module, &mut Fuel::UNLIMITED.clone(), steps, verify);
        ran.map(|_| ()).map_err(|broken| {
            let why = broken.diagnostics.into_iter().next().map(|d| d.message.clone()).unwrap_or_default();
            CompileError::Defect(format!("what the pass {} made does not verify: {why}", broken.pass))
        })
    };
    run(pipeline, &mut module, &mut Laps { steps, lap: &mut *lap })?;
    if !pipeline.ends_with(fusion::ORDER) {
        run(&Pipeline::declared(fusion::ORDER), &mut module, &mut ())?;
    }
    // From here on instructions run in the order of the text, so what control edges kept out of fusions may
    // be in fusions of its own.
    let all =
        |m: &Module| -> Vec<InstrId> { m.computations().iter().flat_map(|&c| m.instructions(c)).collect() };
    for id in all(&module) {
        module.instr_mut(id).control_predecessors.clear();
    }
    passes::annotate_shardings(&mut module);
    fusion::wrap(&mut module, &mut PassCx::cpu(&mut Fuel::UNLIMITED.clone()));
    let module = module.compact();
    lap("order");
    Ok((module, run_time_sizes))
}

/// Reports the end of each pass.
struct Laps<'a> {
    steps: &'a mut dyn Steps,
    lap: &'a mut dyn FnMut(&str),
}

impl Steps for Laps<'_> {
    fn before(&mut self, step: usize, pass: &dyn Pass, module: &Module) {
        self.steps.before(step, pass, module);
    }

    fn after(&mut self, step: usize, pass: &dyn Pass, module: &Module, applications: u64) {
        self.steps.after(step, pass, module, applications);
        (self.lap)(pass.name());
    }
}

/// Refuses forms that verify but that neither the compiler nor the interpreter implements.
fn check_forms(module: &Module) -> Result<(), Unsupported> {
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let rounds_to = |id: InstrId| module.instr(id).shape.element_type().filter(|ty| !ty.is_signed_integer());
    let refused = all.find_map(|id| {
        (module.instr(id).opcode == Opcode::StochasticConvert).then(|| Some((id, rounds_to(id)?))).flatten()
    });
    refused.map_or(Ok(()), |(id, ty)| Err(Unsupported::new(module, id, format!("to {ty}"))))
}

/// Replaces arrays with run-time sizes by padded arrays and sizes, if there are any. Errors: the first
/// instruction without a rule. Anything else that is left is refused by lowering.
fn static_shapes(module: &mut Module) -> Result<Option<RunTimeSizes>, Unsupported> {
    let asked = |id: InstrId| module.instr(id).opcode == Opcode::GetDimensionSize;
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    if !all.any(asked) && !passes::edit::has_run_time_sizes(module) {
        return Ok(None);
    }
    for pass in Pipeline::declared(&["dce", "dynamic-padder", "dce"]).passes() {
        pass.run(module, &mut Fuel::UNLIMITED.clone());
    }
    match (run_time_sizes::lift(module), passes::dynamic_padder::left(module)) {
        (None, Some(left)) => {
            let why = "there is no rule for an array whose size is known only at run time";
            Err(Unsupported::new(module, left, why))
        }
        (sizes, _) => Ok(sizes),
    }
}
