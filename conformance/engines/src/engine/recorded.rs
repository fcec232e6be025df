//! Results that were recorded, as an engine that knows one program on one set of inputs.

use std::sync::Arc;

use hlo::{ArrayLiteral, ArrayShape, Diagnostic, Module};
use hlo_interp::{Devices, Observer};
use rustc_hash::FxHashSet;

use super::{
    Allowances, Engine, Executable, Finished, Inputs, Outcome, RunOptions, array_name, not_observable,
};
use hlo_system::exit::Failure;
use hlo_system::npz::Npz;

/// The arrays of a program's result on one device, tuples flattened, tokens left out.
pub fn result_arrays(module: &Module) -> Vec<ArrayShape> {
    let shape = &module.instr(module.root(module.entry())).shape;
    shape.leaves().into_iter().filter_map(|l| l.as_array().cloned()).collect()
}

/// Reads `out0, out1, ...` (`dK.out0` of device K of several). Errors: arrays that are missing, of another
/// shape, or of no result.
pub fn read_results(
    module: &Module,
    npz: &mut Npz,
    devices: Devices,
) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
    let shapes = result_arrays(module);
    let count = devices.count() as usize;
    let mut of = |device: usize| -> Result<Vec<ArrayLiteral>, Failure> {
        let name = |i| array_name(count, device, "out", i);
        npz.arrays(shapes.iter().enumerate().map(|(i, s)| (name(i), s)))
    };
    let all = (0..count).map(&mut of).collect::<Result<Vec<_>, _>>()?;
    has_only_results(npz, count, shapes.len())?;
    Ok(all)
}

/// Refuses arrays beside those of that many results on each device.
pub fn has_only_results(npz: &Npz, devices: usize, results: usize) -> Result<(), Failure> {
    let all =
        (0..devices).flat_map(|device| (0..results).map(move |i| array_name(devices, device, "out", i)));
    let all: FxHashSet<String> = all.collect();
    npz.has_only(|name| all.contains(name), "result")
}

/// The results in an `.npz` file.
#[derive(Debug)]
pub struct RecordedEngine {
    name: String,
    path: String,
}

impl RecordedEngine {
    /// Those of this file, whoever made them.
    pub fn new(path: &str) -> Self {
        Self { name: format!("recorded:{path}"), path: path.to_owned() }
    }
}

impl Engine for RecordedEngine {
    fn name(&self) -> &str {
        &self.name
    }

    /// Nobody knows.
    fn allowances(&self) -> Allowances {
        Allowances::LOOSE
    }

    fn knows_one_program(&self) -> bool {
        true
    }

    fn supports(&self, _module: &Module, _devices: Devices) -> Result<(), Diagnostic> {
        Ok(())
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        Ok(Box::new(Recorded { engine: self, module }))
    }
}

struct Recorded<'m> {
    engine: &'m RecordedEngine,
    module: &'m Module,
}

impl Executable for Recorded<'_> {
    fn run(&self, _inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        if observer.is_some() {
            return not_observable(&self.engine.name);
        }
        let results = Npz::open(&self.engine.path, options.limits.memory_bytes)
            .and_then(|mut npz| read_results(self.module, &mut npz, options.devices));
        match results {
            Ok(results) => Outcome::Finished(Finished { results, ..Finished::default() }),
            Err(failure) => Outcome::before(failure),
        }
    }
}
