//! A compiled program that is run again and again on the same arrays, for commands that take its times.

use std::sync::Arc;
use std::time::Duration;

use hlo::ArrayLiteral;
use hlo_codegen::program::Program;
use hlo_codegen::runtime::arena::Block;
use hlo_codegen::runtime::executable::{Argument, Executable, Finished, LoadOptions, RunError, RunOptions};
use hlo_codegen::runtime::raw::bytes_of;
use hlo_engines::engine::cpu::{ended, machine, pool};
use hlo_interp::device::fleet::Fleet;
use hlo_interp::{Devices, Interpreter};
use hlo_system::exit::Failure;

/// Loads a program; its runs and loads are for one device.
pub(super) fn load(program: Program, memory_bytes: u64) -> Result<Executable, Failure> {
    let load = LoadOptions {
        memory_bytes,
        configuration: machine().configuration,
        ..LoadOptions::new(Arc::clone(pool()))
    };
    Executable::load(program, &load).map_err(|e| ended(e).failure())
}

/// A loaded program and its arguments, in memory of the runtime.
pub(super) struct Runs<'a> {
    executable: &'a Executable,
    arguments: Vec<Block>,
    /// Of handlers of libraries, which are given to an interpreter of whoever runs the program.
    interpreter: Option<Interpreter<'a>>,
}

impl<'a> Runs<'a> {
    /// Copies the arguments.
    pub(super) fn new(executable: &'a Executable, arrays: &[ArrayLiteral]) -> Result<Self, Failure> {
        let mut arguments = Vec::with_capacity(arrays.len());
        for array in arrays {
            let bytes = bytes_of(&array.buffer);
            let block = executable.store().take(bytes.len() as u64);
            let mut block: Block = block.map_err(|e| ended(e.into()).failure())?;
            block.bytes_mut().copy_from_slice(bytes);
            arguments.push(block);
        }
        let custom_calls = hlo_system::loaded::registry();
        let interpreted = executable.interpreted_module().filter(|_| !custom_calls.is_empty());
        let interpreter = interpreted.map(|module| {
            Interpreter::new(module, hlo_interp::Options { custom_calls, ..hlo_interp::Options::default() })
        });
        Ok(Self { executable, arguments, interpreter })
    }

    /// The times of steps in `runs` runs, each of which reuses the memory of the one before.
    pub(super) fn profiled(&self, runs: usize, how: &RunOptions<'_>) -> Result<Vec<Finished>, Failure> {
        let how = RunOptions { profile: true, ..*how };
        let times = |mut run: Finished| {
            run.results.clear();
            run
        };
        let all: Result<Vec<Finished>, _> = (0..runs).map(|_| self.once(&how).map(times)).collect();
        all.map_err(|e| ended(e).failure())
    }

    /// One run.
    pub(super) fn once(&self, how: &RunOptions<'_>) -> Result<Finished, RunError> {
        let mut arguments: Vec<Argument<'_>> =
            self.arguments.iter().map(|b| Argument::Borrowed(b.bytes())).collect();
        let Some(interpreter) = &self.interpreter else { return self.executable.run(&mut arguments, how) };
        let fleet = Fleet::new(Devices::ONE);
        let member = fleet.join(interpreter, 0);
        self.executable.run(&mut arguments, &RunOptions { member: Some(&member), ..*how })
    }
}

/// The median time of each step in some runs (at least one), and its number of executions in that run.
pub(super) fn medians(runs: &[Finished]) -> Vec<(Duration, u64)> {
    let steps = runs.first().map_or(0, |run| run.times.len());
    let of = |step: usize| {
        let mut times: Vec<_> = runs.iter().map(|run| (run.times[step].1, run.times[step].0)).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    (0..steps).map(of).collect()
}
