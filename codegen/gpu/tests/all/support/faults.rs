//! Faults that are put into the PTX of programs: the checker of the interpreter must find them.

use std::sync::Arc;

use hlo::Literal;
use hlo_gpu::interpreted::{Interpreted, Modules};
use hlo_gpu::program::Program;
use hlo_gpu::run::{self, Limits, RunError};

use crate::support;

/// What a run reports, if anything.
fn reported(program: &Program, arguments: &[Literal]) -> Option<RunError> {
    let modules = Modules::new(program).unwrap();
    let mut device = Interpreted::new(program, modules, hlo_ptx::Options::default(), 1 << 32);
    let arguments: Vec<&Literal> = arguments.iter().collect();
    run::execute(program, &mut device, &arguments, Limits::default()).err()
}

/// Panics unless the interpreter reports every barrier of a program that is left out.
pub(crate) fn assert_barriers_matter(text: &str) {
    let module = support::parse(text);
    let mut program = support::compiled(&module, hlo_gpu::arch::Arch::Sm90);
    let arguments = support::arguments(&module, 1);
    assert!(reported(&program, &arguments).is_none(), "{text}");
    let mut barriers = 0;
    for of in 0..program.ptx.len() {
        let whole = Arc::clone(&program.ptx[of]);
        let lines: Vec<&str> = whole.lines().collect();
        for (at, _) in
            lines.iter().enumerate().filter(|(_, line)| line.contains("bar.sync") || line.contains("barrier"))
        {
            let mut without = lines.clone();
            without.remove(at);
            program.ptx[of] = without.join("\n").into();
            let error = reported(&program, &arguments);
            assert!(matches!(error, Some(RunError::Kernel(_))), "line {at} of\n{whole}\n{error:?}");
            barriers += 1;
        }
        program.ptx[of] = whole;
    }
    assert!(barriers > 0, "{text}");
}
