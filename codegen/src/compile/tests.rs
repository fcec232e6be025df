//! The driver with a back end that is none for the host: what it compiles to is a list of names.

use std::sync::atomic::{AtomicBool, Ordering};

use hlo::builder::ComputationBuilder;
use hlo::{ElementType, InstrId, Opcode, Shape};
use hlo_opt::buffers::Questions;
use hlo_opt::passes::Pass;
use hlo_threads::cancel::CancellationToken;

use super::*;
use crate::compilation::{AssembleError, assign};

/// A module that is lowered, and what its kernels are called.
#[derive(Debug)]
struct Named {
    module: Module,
    fallback: bool,
    kernels: Vec<String>,
}

/// Kernels, whether there was a fallback, and whether buffers were checked.
type Listed = (Vec<String>, bool, bool);

impl Assemble for Named {
    type Program = Listed;

    fn assemble(
        self,
        verify: bool,
        assigned: &mut dyn FnMut(&Module, &Assigned),
    ) -> Result<Listed, AssembleError> {
        let (scratch, never) = (|_: InstrId| 0, |_: InstrId| false);
        let questions = Questions { scratch: &scratch, whole: &never, epilogue_in_place: &never };
        assign(&self.module, &questions, verify, assigned)?;
        Ok((self.kernels, self.fallback, verify))
    }
}

/// Executes fusions alone.
#[derive(Debug, Default)]
struct Namer {
    /// Is cancelled when something was lowered.
    token: Option<CancellationToken>,
    emits: AtomicBool,
}

impl Backend for Namer {
    type Compilation = Named;

    fn describe(&self) -> String {
        "names".to_owned()
    }

    fn pipeline(&self) -> Pipeline {
        Pipeline::cpu(2)
    }

    fn lower(
        &self,
        module: Module,
        _run_time_sizes: Option<RunTimeSizes>,
        fallback: bool,
    ) -> Result<Named, CompileError> {
        if let Some(token) = &self.token {
            token.cancel();
        }
        Ok(Named { module, fallback, kernels: Vec::new() })
    }

    fn emit(&self, lowered: Named, stages: &mut dyn Stages<Named>) -> Result<Named, CompileError> {
        self.emits.store(true, Ordering::Relaxed);
        stages.llvm(0, [None, None, Some("names".to_owned())]);
        let module = &lowered.module;
        let fusions =
            module.instructions(module.entry()).filter(|&i| module.instr(i).opcode == Opcode::Fusion);
        let kernels = fusions.map(|i| module.instr(i).name.to_string()).collect();
        Ok(Named { kernels, ..lowered })
    }
}

/// What was seen, in order.
#[derive(Default)]
struct Seen(Vec<String>);

impl Steps for Seen {
    fn before(&mut self, _step: usize, pass: &dyn Pass, _module: &Module) {
        self.0.push(format!("before {}", pass.name()));
    }

    fn after(&mut self, _step: usize, pass: &dyn Pass, _module: &Module, _applications: u64) {
        self.0.push(format!("after {}", pass.name()));
    }
}

impl Stages<Named> for Seen {
    fn lowered(&mut self, compilation: &Named) {
        self.0.push(format!("lowered with {} kernels", compilation.kernels.len()));
    }

    fn emitted(&mut self, compilation: &Named) {
        self.0.push(format!("emitted with {} kernels", compilation.kernels.len()));
    }

    fn assigned(&mut self, _module: &Module, assigned: &Assigned) {
        self.0.push(format!("assigned {} allocations", assigned.assignment.allocations.len()));
    }

    fn llvm(&mut self, unit: usize, texts: [Option<String>; 3]) {
        self.0.push(format!("unit {unit}: {}", texts.into_iter().flatten().collect::<String>()));
    }
}

/// `x * x`.
fn square() -> Module {
    let mut module = Module::new("square");
    let mut b = ComputationBuilder::new(&mut module, "main");
    let x = b.parameter("x", Shape::array(ElementType::F32, &[4]));
    b.binary(Opcode::Multiply, x, x).expect("shapes fit");
    let main = b.finish();
    module.set_entry(main);
    module
}

#[test]
fn a_compilation_of_its_own_is_driven_as_the_hosts() {
    let backend: &dyn Backend<Compilation = Named> = &Namer::default();
    let mut seen = Seen::default();
    let options = DriverOptions { fallback: true, ..DriverOptions::default() };
    let compiled = compile_watched(&square(), backend, options, &backend.pipeline(), &mut seen);
    let Compiled { program: (kernels, fallback, verify), target, times } = compiled.expect("it compiles");
    assert_eq!((kernels.len(), fallback, verify, &*target), (1, true, options.verify, "names"));
    let (passes, stages) = seen.0.split_at(seen.0.len() - 4);
    let expected =
        ["lowered with 0 kernels", "unit 0: names", "emitted with 1 kernels", "assigned 2 allocations"];
    assert_eq!(stages, expected);
    let ended: Vec<&str> = passes.iter().filter_map(|seen| seen.strip_prefix("after ")).collect();
    assert!(!ended.is_empty());
    let names: Vec<&str> = times.iter().map(|(name, ..)| &**name).collect();
    let around = (["target"].as_slice(), ["order", "lowering", "emission", "buffers", "plan"].as_slice());
    assert_eq!(names, [around.0, &ended, around.1].concat());
}

#[test]
fn a_cancelled_compilation_ends_between_stages() {
    let token = CancellationToken::new();
    let backend = Namer { token: Some(token.clone()), ..Namer::default() };
    let ended = token.run(|| compile(&square(), &backend, DriverOptions::default()).map(|_| ()));
    assert!(ended.is_err(), "{ended:?}");
    assert!(!backend.emits.into_inner());
}
