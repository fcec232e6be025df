//! PJRT plugins as engines: XLA's for the CPU or a GPU, a vendor's, or this project's own, through the C API
//! that frameworks use.
//!
//! The program goes to the plugin as an `HloModuleProto`, its results come back row-major. `pjrt:PLUGIN.so`
//! runs in this process; if the plugin aborts, so does the process: `child:pjrt:PLUGIN.so` runs each program
//! in a process of its own.
//!
//! **Invariant:** a plugin is loaded once a process, when a program is first compiled for it, and never
//! before a person named it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hlo::diag::codes;
use hlo::{ArrayLiteral, Diagnostic, Literal, Module, Shape, Span};
use hlo_interp::{Devices, Observer};
use hlo_pjrt_host::{Client, Code, Failure, Plugin};

use super::recorded::result_arrays;
use super::{
    Allowances, Compilation, Engine, Executable, Finished, Inputs, Outcome, RunOptions, flatten,
    not_observable,
};

/// A plugin by its file.
#[derive(Debug)]
pub struct PjrtEngine {
    name: String,
    path: String,
    client: OnceLock<Result<Arc<Client>, Failure>>,
}

impl PjrtEngine {
    /// The plugin in a shared library, which is loaded when it is needed.
    pub fn new(path: &str) -> Self {
        Self { name: format!("pjrt:{path}"), path: path.to_owned(), client: OnceLock::new() }
    }

    fn client(&self) -> Result<&Arc<Client>, Outcome> {
        let client = self.client.get_or_init(|| Client::new(Plugin::load(&self.path)?));
        client.as_ref().map_err(|error| match error.code {
            Code::NotFound | Code::FailedPrecondition => {
                Outcome::Unsupported(refusal(format!("the plugin cannot be used: {error}")))
            }
            _ => outcome(error),
        })
    }
}

fn refusal(message: String) -> Diagnostic {
    Diagnostic::error(codes::UNSUPPORTED_OPCODE, Span::NONE, message)
}

/// The outcome of a failure that a plugin reports.
fn outcome(error: &Failure) -> Outcome {
    match error.code {
        Code::Unimplemented | Code::InvalidArgument => Outcome::Unsupported(refusal(error.to_string())),
        Code::ResourceExhausted => Outcome::exhausted(error.to_string()),
        Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss
        | Code::Unauthenticated => Outcome::crashed(error.to_string()),
    }
}

/// How a program's parameters are given to a plugin, which accepts arrays alone: whether as the elements of
/// the one parameter, a tuple. `None`: they are no arrays.
fn is_tupled(parameters: &[Shape]) -> Option<bool> {
    let arrays = |shapes: &[Shape]| shapes.iter().all(|s| s.as_array().is_some());
    match parameters {
        [Shape::Tuple(parts)] if arrays(parts) => Some(true),
        parameters if arrays(parameters) => Some(false),
        _ => None,
    }
}

impl Engine for PjrtEngine {
    fn name(&self) -> &str {
        &self.name
    }

    /// Nobody knows what compiler it is.
    fn allowances(&self) -> Allowances {
        Allowances::LOOSE
    }

    fn supports(&self, module: &Module, devices: Devices) -> Result<(), Diagnostic> {
        let refuse = |what: &str| Err(refusal(format!("platform {} does not support {what}", self.name)));
        if devices.count() != 1 {
            return refuse("programs of several devices");
        }
        let Some(shape) = module.program_shape(module.entry()) else {
            return refuse("programs without a root");
        };
        if is_tupled(&shape.parameters).is_none() {
            return refuse("parameters that are tuples beside others, nested tuples or tokens");
        }
        let flat = match &shape.result {
            Shape::Tuple(parts) => parts.iter().all(|s| s.as_array().is_some()),
            other => other.as_array().is_some(),
        };
        if flat { Ok(()) } else { refuse("results that are nested tuples or tokens") }
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        self.supports(module, Devices::ONE).map_err(Outcome::Unsupported)?;
        let shape = module.program_shape(module.entry());
        let shape = shape.expect("invariant: a verified module has a root");
        let tupled = is_tupled(&shape.parameters).expect("invariant: what is supported has arrays");
        let client = self.client()?;
        let start = Instant::now();
        let executable = client.compile_hlo(module, tupled).map_err(|error| outcome(&error))?;
        Ok(Box::new(Compiled {
            engine: self,
            module,
            executable,
            client: Arc::clone(client),
            time: start.elapsed(),
        }))
    }
}

/// A program that a plugin compiled.
struct Compiled<'m> {
    engine: &'m PjrtEngine,
    module: &'m Module,
    executable: hlo_pjrt_host::Executable,
    client: Arc<Client>,
    time: Duration,
}

impl Executable for Compiled<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        if observer.is_some() {
            return not_observable(&self.engine.name);
        }
        if let Err(refused) = self.engine.supports(self.module, options.devices) {
            return Outcome::Unsupported(refused);
        }
        let mut arguments: Vec<ArrayLiteral> = Vec::new();
        let given: Vec<Literal> = inputs.arguments.into_iter().flatten().collect();
        given.into_iter().for_each(|literal| flatten(literal, &mut arguments));
        let start = Instant::now();
        let results = match self.executable.execute(&arguments.iter().collect::<Vec<_>>()) {
            Ok(results) => results,
            Err(error) => return outcome(&error),
        };
        let time = start.elapsed();
        let expected = result_arrays(self.module);
        let fit = results.len() == expected.len()
            && results
                .iter()
                .zip(&expected)
                .all(|(r, e)| r.dims == e.dims && r.buffer.element_type() == e.element_type);
        if !fit {
            let shapes: Vec<String> = results.iter().map(|r| r.shape().to_string()).collect();
            return Outcome::crashed(format!(
                "the engine gave other results than the program has: {}",
                shapes.join(", ")
            ));
        }
        let bytes = |arrays: &[ArrayLiteral]| arrays.iter().map(|a| a.buffer.bytes()).sum::<u64>();
        let platform = self.client.platform();
        let compiled = Compilation {
            machine: format!("PJRT platform {} {}", platform.name, platform.version),
            time: self.time,
            kernels: None,
            temporary_bytes: None,
            io_bytes: bytes(&arguments) + bytes(&results),
        };
        Outcome::Finished(Finished {
            results: vec![results],
            time,
            compiled: Some(Box::new(compiled)),
            ..Finished::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::parse_text;

    fn supported(text: &str) -> Result<(), Diagnostic> {
        let module = parse_text(text).0.unwrap();
        PjrtEngine::new("none.so").supports(&module, Devices::ONE)
    }

    #[test]
    fn plugins_take_and_give_arrays() {
        let sum = "HloModule m\nENTRY e { t = (f32[2], f32[2]) parameter(0)\n a = f32[2] get-tuple-element(t), index=0\n ROOT r = f32[2] negate(a) }";
        assert!(supported(sum).is_ok());
        let nested = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n t = (f32[2]) tuple(x)\n ROOT r = ((f32[2]), f32[2]) tuple(t, x) }";
        assert!(supported(nested).unwrap_err().message.contains("nested tuples"));
        let two = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n t = (f32[2]) parameter(1)\n ROOT r = f32[2] negate(x) }";
        assert!(supported(two).unwrap_err().message.contains("tuples beside others"));
    }

    #[test]
    fn a_file_that_is_no_plugin_is_unsupported() {
        let module =
            parse_text("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] negate(x) }")
                .0
                .unwrap();
        for path in ["/nonexistent/plugin.so", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")] {
            let engine = PjrtEngine::new(path);
            match engine.compile(&module) {
                Err(Outcome::Unsupported(d)) => assert!(d.message.contains(path), "{}", d.message),
                other => panic!("{:?}", other.err()),
            }
        }
    }
}
