//! XLA:GPU asked to compile a program on the spot, on a machine without a GPU.
//!
//! A script that dumps what XLA makes of HLO files (`SCRIPT OUT FILE.hlo`) is run by Python with jax's CUDA plugin installed; `HLO_XLA_GPU_PYTHON` and
//! `HLO_XLA_GPU_SCRIPT` name both, and `CUDA` the folder of `ptxas` and libdevice that XLA compiles with.
//!
//! **Invariant:** nothing is started before script and `CUDA` are there; without them the platform is refused with what to install.

use std::env;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hlo::{Diagnostic, Module};
use hlo_interp::Devices;

use super::dump::Dump;
use super::{Compiled, LIBERTIES, unsupported};
use crate::engine::{Allowances, Engine, Executable, Outcome};
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::describe;
use hlo_system::process::{Launch, Tail};
use hlo_system::scratch::Scratch;

/// Where the script is beside a checkout.
const SCRIPT: &str = "../shared/peer/xla_gpu_dump.py";

/// What a person installs.
const SET_UP: &str = "\
xla-gpu has XLA compile the program, which needs (about 330 MB from PyPI; no GPU):
  python3.12 -m venv V && V/bin/pip install numpy ml_dtypes opt_einsum scipy
  V/bin/pip install --no-deps jax==0.11.2 jaxlib==0.11.2 jax-cuda13-pjrt==0.11.2 jax-cuda13-plugin==0.11.2
  bin/ptxas and nvvm/libdevice/libdevice.10.bc in a folder, from the wheels nvidia-cuda-nvcc and nvidia-nvvm
  export HLO_XLA_GPU_PYTHON=V/bin/python CUDA=FOLDER HLO_XLA_GPU_SCRIPT=xla_gpu_dump.py
A folder that XLA dumped elsewhere needs none of it: --platform xla-gpu:DIR";

/// The most bytes of the script's standard output that are kept.
const MOST_OUTPUT: usize = 16 << 10;

/// XLA's GPU compiler, run for each program.
#[derive(Debug)]
pub struct XlaGpuCompiler {
    python: PathBuf,
    script: PathBuf,
    cuda: PathBuf,
    timeout: Duration,
}

impl XlaGpuCompiler {
    /// The compiler, if what it needs is there. A compilation may take so long. Errors: [`Exit::Unsupported`], with what to install.
    pub fn new(timeout: Duration) -> Result<Self, Failure> {
        let lacking =
            |what: String| Failure::new(Exit::Unsupported, format!("platform `xla-gpu`: {what}\n{SET_UP}"));
        let script = env::var_os("HLO_XLA_GPU_SCRIPT").map_or_else(|| PathBuf::from(SCRIPT), PathBuf::from);
        if !script.is_file() {
            return Err(lacking(format!("there is no script {} (HLO_XLA_GPU_SCRIPT)", script.display())));
        }
        let Some(cuda) = env::var_os("CUDA").map(PathBuf::from) else {
            return Err(lacking("the environment variable CUDA names no folder of CUDA's tools".to_owned()));
        };
        if !cuda.join("bin/ptxas").is_file() {
            return Err(lacking(format!("there is no {}", cuda.join("bin/ptxas").display())));
        }
        let python =
            env::var_os("HLO_XLA_GPU_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
        Ok(Self { python, script, cuda, timeout })
    }

    fn dump(&self, module: &Module) -> Result<Dump, Outcome> {
        let lacks = |what: &str, e: &std::io::Error| Outcome::lacking(format!("{what}: {}", describe(e)));
        let folder = Scratch::new().map_err(|e| lacks("no folder for what XLA dumps (TMPDIR)", &e))?;
        let (file, out) = (folder.path().join("module.hlo"), folder.path().join("out"));
        let text = hlo::print::print_module(module, &hlo::print::PrintOptions::source(module));
        std::fs::write(&file, text).map_err(|e| lacks("the module cannot be written", &e))?;
        let start = || {
            let mut launch = Launch::new(&self.python, false, Some(folder.root().path()))?;
            let command = launch.command();
            command.arg(&self.script).arg(&out).arg(&file).env("CUDA", &self.cuda);
            // The script's variable for more of XLA's flags: values of all constants.
            command.env("XF", "--xla_dump_large_constants=true");
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut process = launch.start()?;
            let said = process.stdout().map(|from| Tail::last(from, MOST_OUTPUT)).transpose()?;
            let errors = process.stderr().map(|from| Tail::last(from, MOST_OUTPUT)).transpose()?;
            Ok((process, said, errors))
        };
        let started: std::io::Result<_> = start();
        let (mut process, said, errors) = started.map_err(|e| lacks("xla-gpu cannot be started", &e))?;
        let status = process.wait(self.timeout).map_err(|e| lacks("xla-gpu cannot be run", &e))?;
        let Some(status) = status else { return Err(Outcome::timed_out("xla-gpu", self.timeout)) };
        let said = said.map(Tail::text).unwrap_or_default();
        if !status.success() {
            let last = errors.map(Tail::last_lines).unwrap_or_default();
            return Err(Outcome::lacking(format!(
                "xla-gpu: {} ended with {status}: {last}",
                self.script.display()
            )));
        }
        Dump::read(&out.to_string_lossy()).map_err(|failure| match failure.exit {
            // Nothing was dumped: XLA refused the program, and the script said why.
            Exit::Usage => Outcome::Unsupported(unsupported(format!("XLA:GPU: {}", said.trim()))),
            Exit::Unsupported => Outcome::Unsupported(unsupported(failure.message)),
            Exit::Trap => Outcome::exhausted(failure.message),
            Exit::Ok | Exit::Differs | Exit::Parse | Exit::Verify | Exit::Internal => {
                Outcome::crashed(format!("what XLA:GPU dumped cannot be read: {}", failure.message))
            }
        })
    }
}

impl Engine for XlaGpuCompiler {
    fn name(&self) -> &str {
        "xla-gpu"
    }

    fn allowances(&self) -> Allowances {
        LIBERTIES
    }

    fn supports(&self, _module: &Module, devices: Devices) -> Result<(), Diagnostic> {
        match devices.count() {
            1 => Ok(()),
            _ => Err(unsupported("`xla-gpu` compiles programs of one device".to_owned())),
        }
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        Ok(Box::new(Compiled::new("xla-gpu", Arc::new(self.dump(module)?), module)))
    }
}
