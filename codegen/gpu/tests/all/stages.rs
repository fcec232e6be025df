//! The back end under the driver: what observers see, and what is derived again from a compilation.

use hlo::Module;
use hlo_codegen::compilation::Assemble;
use hlo_codegen::compile::{Backend, Stages, compile_watched};
use hlo_gpu::compilation::Compilation;
use hlo_gpu::compile::{Nvptx, Options, emission};
use hlo_gpu::program::Program;
use hlo_opt::buffers::Assigned;
use hlo_opt::passes::Steps;

use crate::support;

const TEXT: &str = "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\nENTRY e {\n  x = f32[8,40] parameter(0)\n  z = f32[] constant(0)\n  t = f32[40,8] transpose(x), dimensions={1,0}\n  r = f32[8] reduce(x, z), dimensions={1}, to_apply=add\n  ROOT p = (f32[40,8], f32[8]) tuple(t, r)\n}\n";

#[derive(Default)]
struct Seen {
    lowered_kernels: Option<usize>,
    ptx: Vec<String>,
    is_assigned: bool,
    llvm: Vec<[Option<String>; 3]>,
}

impl Steps for Seen {}

impl Stages<Compilation> for Seen {
    fn lowered(&mut self, compilation: &Compilation) {
        assert!(compilation.kernels().is_empty());
        self.lowered_kernels = Some(compilation.lowered().kernels.len());
    }

    fn emitted(&mut self, compilation: &Compilation) {
        self.ptx = compilation.ptx().iter().map(|text| text.to_string()).collect();
    }

    fn assigned(&mut self, _module: &Module, _assigned: &Assigned) {
        self.is_assigned = true;
    }

    fn wants_llvm(&self) -> [bool; 3] {
        [true; 3]
    }

    fn llvm(&mut self, unit: usize, texts: [Option<String>; 3]) {
        assert_eq!(unit, self.llvm.len());
        self.llvm.push(texts);
    }
}

#[test]
fn stages_are_seen() {
    let options = Options { threads: 1, ..Options::default() };
    let backend: &dyn Backend<Compilation = Compilation> = &Nvptx::new(&options).unwrap();
    let module = support::parse(TEXT);
    let mut seen = Seen::default();
    let pipeline = backend.pipeline();
    let compiled = compile_watched(&module, backend, options.driver(), &pipeline, &mut seen).unwrap();
    assert_eq!((&*compiled.target, seen.lowered_kernels, seen.is_assigned), ("sm_90", Some(2), true));
    assert!(compiled.times.iter().any(|(name, ..)| name == "emission"));
    let [[Some(emitted), Some(optimized), Some(assembly)]] = &seen.llvm[..] else {
        panic!("{:?}", seen.llvm)
    };
    assert!(emitted.contains("define ") && optimized.contains("define ") && emitted != optimized);
    assert_eq!(seen.ptx.join("\n"), *assembly);
    // Being observed changes nothing.
    let unseen = emission(&module, &options).unwrap().compilation;
    assert_eq!(unseen.ptx().join("\n"), *assembly);
}

/// As a program from a file is.
#[test]
fn what_is_lowered_again_has_the_same_plan() {
    let made = emission(&support::parse(TEXT), &Options::default()).unwrap().compilation;
    let again = Compilation::new(made.arch(), made.module().clone(), None).unwrap();
    let again = again.with_kernels(made.kernels().to_vec(), made.ptx().to_vec(), made.symbols().clone());
    let assembled =
        |compilation: Compilation| -> Program { compilation.assemble(true, &mut |_, _| {}).unwrap() };
    assert_eq!(assembled(made).plan, assembled(again).plan);
    // Kernels of another number are refused.
    let module = emission(&support::parse(TEXT), &Options::default()).unwrap().compilation.module().clone();
    let without = Compilation::new(hlo_gpu::arch::Arch::Sm90, module, None).unwrap();
    assert!(without.assemble(true, &mut |_, _| {}).is_err());
}
