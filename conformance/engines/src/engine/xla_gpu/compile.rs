//! XLA:GPU asked to compile a program on the spot, on a machine without a GPU.
//!
//! The script `conformance/peers/xla_gpu.py`, which this program carries, is run by a Python with jax's CUDA
//! plugin installed (`HLO_XLA_GPU_PYTHON`). It stays and compiles one program after the other;
//! `HLO_XLA_GPU_SCRIPT` names another script that answers alike.
//!
//! **Invariants:** nothing is started unless `HLO_XLA_GPU_PYTHON` names what to start; without it the
//! platform is refused with what to install. A compiler that crashed or took too long is ended, and the next
//! program gets another.

use std::env;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hlo::{Diagnostic, Module};
use hlo_interp::Devices;
use hlo_opt::passes::{Fuel, Pipeline};
use hlo_proto::{Contents, Encoding, Kind, WriteError};
use serde::Serialize;

use super::dump::Dump;
use super::forms;
use super::{Compiled, LIBERTIES, unsupported};
use crate::engine::server::{Server, said};
use crate::engine::{Allowances, Engine, Executable, Outcome};
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::describe;
use hlo_system::process::Launch;
use hlo_system::scratch::Scratch;

/// The default Python script.
const SCRIPT: &str = include_str!("../../../../peers/xla_gpu.py");

/// The packages to install.
const SET_UP: &str = "\
xla-gpu has XLA compile the program, which needs (about 330 MB from PyPI; no GPU):
  python3.12 -m venv V && V/bin/pip install numpy ml_dtypes opt_einsum scipy
  V/bin/pip install --no-deps jax==0.11.2 jaxlib==0.11.2 jax-cuda13-pjrt==0.11.2 jax-cuda13-plugin==0.11.2 \\
    nvidia-cuda-nvcc==13.* nvidia-nvvm==13.*
  export HLO_XLA_GPU_PYTHON=V/bin/python
A folder that XLA dumped elsewhere needs none of it: --platform xla-gpu:DIR";

/// XLA's GPU compiler.
#[derive(Debug)]
pub struct XlaGpuCompiler {
    python: PathBuf,
    /// A file instead of [`SCRIPT`].
    script: Option<PathBuf>,
    timeout: Duration,
    /// Those that wait for a program. There are as many as programs were compiled at once.
    idle: Mutex<Vec<Server>>,
}

/// The line that asks for a compilation.
#[derive(Serialize)]
struct Ask {
    /// The file of the program.
    module: String,
    /// The folder that XLA dumps to.
    out: String,
}

impl XlaGpuCompiler {
    /// The compiler, if what it needs is there. A compilation may take so long. Errors:
    /// [`Exit::Unsupported`], with what to install.
    pub fn new(timeout: Duration) -> Result<Self, Failure> {
        let lacking =
            |what: String| Failure::new(Exit::Unsupported, format!("platform `xla-gpu`: {what}\n{SET_UP}"));
        let python = env::var_os("HLO_XLA_GPU_PYTHON").map(PathBuf::from).ok_or_else(|| {
            lacking("the environment variable HLO_XLA_GPU_PYTHON names no Python with XLA:GPU".to_owned())
        })?;
        let script = env::var_os("HLO_XLA_GPU_SCRIPT").map(PathBuf::from);
        if let Some(script) = script.as_ref().filter(|s| !s.is_file()) {
            return Err(lacking(format!("there is no script {} (HLO_XLA_GPU_SCRIPT)", script.display())));
        }
        Ok(Self { python, script, timeout, idle: Mutex::default() })
    }

    fn dump(&self, module: &Module) -> Result<Dump, Outcome> {
        let lacks = |what: &str, e: &std::io::Error| Outcome::lacking(format!("{what}: {}", describe(e)));
        let folder = Scratch::new().map_err(|e| lacks("no folder for what XLA dumps (TMPDIR)", &e))?;
        let (file, out) = (folder.path().join("module.pb"), folder.path().join("out"));
        // As a message: XLA's parser reads `-0` as 0.
        let message = message(&without_fusions(module)?)?;
        std::fs::write(&file, message).map_err(|e| lacks("the module cannot be written", &e))?;
        let question = Ask { module: said(&file)?, out: said(&out)? };
        let root = folder.root();
        let launch = || {
            let mut launch = Launch::new(&self.python, true, Some(root.path()))?;
            match &self.script {
                Some(file) => launch.command().arg(file),
                None => launch.command().arg("-c").arg(SCRIPT),
            }
            .arg("--serve");
            Ok(launch)
        };
        let mut server = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let answer = Server::ask(&mut server, "xla-gpu", launch, root, &question, self.timeout);
        if let Some(server) = server {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(server);
        }
        answer.map_err(|outcome| match outcome {
            // What it lacks is said when it starts: packages of Python, tools.
            Outcome::Crashed(d) if d.message.contains("ModuleNotFoundError") => {
                Outcome::lacking(format!("{}\n{SET_UP}", d.message))
            }
            other => other,
        })?;
        Dump::read(&out.to_string_lossy()).map_err(|failure| match failure.exit {
            Exit::Unsupported => Outcome::Unsupported(unsupported(failure.message)),
            Exit::Trap => Outcome::exhausted(failure.message),
            Exit::Ok | Exit::Differs | Exit::Usage | Exit::Parse | Exit::Verify | Exit::Internal => {
                // The same failure has the same words, wherever the dump was.
                let why = failure.message.replace(&*out.to_string_lossy(), "{out}");
                Outcome::crashed(format!("what XLA:GPU dumped cannot be read: {why}"))
            }
        })
    }
}

/// The program without fusions: XLA reads programs as StableHLO, which has none, and makes its own.
fn without_fusions(module: &Module) -> Result<Module, Outcome> {
    let mut source = module.clone();
    let pipeline = Pipeline::declared(&["unfuse"]);
    let mut fuel = Fuel::UNLIMITED;
    pipeline.run(&mut source, &mut fuel).map_err(|broken| {
        let why = broken.diagnostics.into_iter().next().map(|d| d.message.clone()).unwrap_or_default();
        Outcome::defect(format!("what the pass {} made does not verify: {why}", broken.pass))
    })?;
    Ok(source)
}

/// The program as XLA's `HloModuleProto`.
fn message(module: &Module) -> Result<Vec<u8>, Outcome> {
    let mut bytes = Vec::new();
    let wrote = hlo_proto::write(&Contents::of(module), Kind::Module, Encoding::Binary, &mut bytes);
    wrote.map_err(|e| match e {
        WriteError::Unsupported(all) => {
            let why = all.into_iter().next().map(|d| d.message.clone()).unwrap_or_default();
            Outcome::Unsupported(unsupported(why))
        }
        WriteError::Unreadable(_) => Outcome::defect("a module is no message"),
        WriteError::Io(e) => Outcome::lacking(format!("the module cannot be written: {}", describe(&e))),
    })?;
    Ok(bytes)
}

impl Engine for XlaGpuCompiler {
    fn name(&self) -> &str {
        "xla-gpu"
    }

    fn allowances(&self) -> Allowances {
        LIBERTIES
    }

    fn supports(&self, _module: &Module, devices: Devices) -> Result<(), Diagnostic> {
        if devices.count() != 1 {
            return Err(unsupported("`xla-gpu` compiles programs of one device".to_owned()));
        }
        Ok(())
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        let dump = self.dump(module)?;
        // On its way through MLIR a program may become another one: `s1` becomes `pred`, random bits lose
        // their sign.
        forms::takes_and_gives_the_same(&dump, module).map_err(|_file| {
            let message = "what XLA:GPU compiled has other parameters or results than the program";
            Outcome::Unsupported(unsupported(message.to_owned()))
        })?;
        Ok(Box::new(Compiled::new("xla-gpu", Arc::new(dump), module)))
    }
}
