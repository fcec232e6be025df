//! A GPU as a device, through CUDA's driver.
//!
//! Sequences of launches, copies and fills become CUDA graphs: each is recorded once, and launched as one
//! from then on, with changed addresses updated in place (`hlo_cuda::policy`). **Invariant:** buffers of a
//! program are kept from run to run, so addresses change only where sizes do.

use std::sync::Arc;
use std::time::Duration;

use hlo_cuda::policy::{Cache, Policy};
use hlo_cuda::{
    Buffer, Driver, DriverGraphs, Error, Event, Function, Launch as CudaLaunch, Module, Step as GraphStep,
};
use hlo_opt::buffers::Slice;
use rustc_hash::FxHashMap;

use crate::program::{Action, Argument, Program, SequenceId, Step};
use crate::run::{Device, RunError};

/// When sequences become graphs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Graphs {
    /// Never.
    Off,
    /// Explicit graphs, updated where addresses change.
    #[default]
    Explicit,
}

impl std::str::FromStr for Graphs {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "off" => Ok(Graphs::Off),
            "explicit" => Ok(Graphs::Explicit),
            _ => Err(format!("\"{name}\" is neither off nor explicit")),
        }
    }
}

/// A GPU that programs run on.
#[derive(Clone)]
pub struct Gpu {
    device: hlo_cuda::Device,
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::OutOfMemory { .. } => RunError::OutOfMemory(message),
            Error::Timeout { .. } => RunError::TimedOut(message),
            Error::NoLibrary { .. }
            | Error::MissingSymbols { .. }
            | Error::OldDriver { .. }
            | Error::NoDevice { .. }
            | Error::NoSuchDevice { .. }
            | Error::Unsupported { .. } => RunError::Unsupported(message),
            Error::Compile { .. }
            | Error::NoSuchSymbol { .. }
            | Error::Launch { .. }
            | Error::Kernel { .. }
            | Error::Broken { .. }
            | Error::Range { .. }
            | Error::Driver { .. } => RunError::Kernel(message),
        }
    }
}

impl Gpu {
    /// Device `ordinal` of the driver. No run may take longer than `timeout`. Errors: there is no driver or
    /// no such device.
    pub fn open(ordinal: usize, timeout: Duration) -> Result<Self, RunError> {
        Ok(Self { device: Driver::load()?.open(ordinal, timeout)? })
    }

    /// Its name, and compute capability as `90`.
    pub fn describe(&self) -> (String, u32) {
        let info = self.device.info();
        (info.name.clone(), info.sm())
    }

    /// Loads a program: compiles its PTX.
    pub fn load(&self, program: Arc<Program>, graphs: Graphs) -> Result<Loaded, RunError> {
        let (major, minor) = program.arch.capability();
        let (name, sm) = self.describe();
        if major * 10 + minor > sm {
            let message = format!("the program is for {}, {name} is sm_{sm}", program.arch);
            return Err(RunError::Unsupported(message));
        }
        let modules =
            program.ptx.iter().map(|text| self.device.module(text)).collect::<Result<Vec<Module>, _>>()?;
        let mut functions = FxHashMap::default();
        for (symbol, &module) in &program.symbols {
            functions.insert(symbol.clone(), modules[module].function(symbol)?);
        }
        let stream = self.device.stream()?;
        let policy = match graphs {
            Graphs::Off => Policy { instances: 0, ..Policy::default() },
            Graphs::Explicit => Policy::default(),
        };
        Ok(Loaded {
            program,
            graphs: DriverGraphs { device: self.device.clone(), stream },
            cache: Cache::new(policy),
            functions,
            buffers: Vec::new(),
            steps: FxHashMap::default(),
        })
    }
}

/// A program on a GPU, with its memory.
pub struct Loaded {
    program: Arc<Program>,
    graphs: DriverGraphs,
    cache: Cache<SequenceId, DriverGraphs>,
    functions: FxHashMap<String, Function>,
    /// By allocation; `None`: it has no bytes.
    buffers: Vec<Option<Buffer>>,
    /// Steps by sequence, for the addresses of now.
    steps: FxHashMap<SequenceId, Vec<GraphStep>>,
}

impl Loaded {
    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// An event behind all that was asked for so far.
    pub fn record(&self) -> Result<Event, RunError> {
        Ok(self.graphs.stream.record()?)
    }

    /// Waits for all that was asked for.
    pub fn synchronize(&self) -> Result<(), RunError> {
        Ok(self.graphs.stream.synchronize()?)
    }

    fn address(&self, slice: Slice) -> u64 {
        let buffer = self.buffers.get(slice.allocation as usize).and_then(Option::as_ref);
        buffer.map_or(0, |b| b.address() + slice.offset)
    }

    fn lowered(&self, step: &Step) -> Result<Option<GraphStep>, RunError> {
        Ok(match &step.action {
            Action::Launch(launch) => {
                let function = self.functions.get(&launch.symbol);
                let function =
                    function.ok_or_else(|| RunError::Kernel(format!("no kernel `{}`", launch.symbol)))?;
                let arguments: Vec<u64> = launch
                    .arguments
                    .iter()
                    .map(|a| match a {
                        Argument::Slice(slice) => self.address(*slice),
                        Argument::Word(word) => *word,
                    })
                    .collect();
                let how = CudaLaunch::new(launch.grid, launch.block, launch.shared_bytes, &arguments);
                Some(GraphStep::Kernel(function.clone(), how))
            }
            Action::Copy { from, to } => {
                let bytes = from.bytes.min(to.bytes);
                (bytes > 0).then(|| GraphStep::Copy(self.address(*to), self.address(*from), bytes))
            }
            Action::Fill { to, byte } => {
                (to.bytes > 0).then(|| GraphStep::Fill(self.address(*to), to.bytes, *byte))
            }
            Action::While { .. } | Action::Conditional { .. } => {
                return Err(RunError::Unsupported("control flow in a sequence".into()));
            }
        })
    }
}

impl Device for Loaded {
    fn allocate(
        &mut self,
        index: usize,
        _name: &str,
        bytes: u64,
        contents: Option<&[u8]>,
    ) -> Result<(), RunError> {
        if self.buffers.len() <= index {
            self.buffers.resize_with(index + 1, || None);
        }
        if bytes == 0 {
            return Ok(());
        }
        if self.buffers[index].as_ref().is_none_or(|b| b.len() != bytes) {
            self.buffers[index] = Some(self.graphs.stream.allocate(bytes)?);
            self.steps.clear();
        }
        if let (Some(buffer), Some(contents)) = (&self.buffers[index], contents) {
            self.graphs.stream.write(buffer, 0, contents)?;
        }
        Ok(())
    }

    fn sequence(&mut self, id: SequenceId, steps: &[Step]) -> Result<(), RunError> {
        if !self.steps.contains_key(&id) {
            let mut lowered = Vec::with_capacity(steps.len());
            for step in steps {
                lowered.extend(self.lowered(step)?);
            }
            self.steps.insert(id, lowered);
        }
        self.cache.run(&mut self.graphs, &id, &self.steps[&id])?;
        Ok(())
    }

    fn read(&mut self, slice: Slice, _what: &str) -> Result<Vec<u8>, RunError> {
        let mut bytes =
            vec![0; usize::try_from(slice.bytes).map_err(|e| RunError::OutOfMemory(e.to_string()))?];
        if let Some(buffer) = self.buffers.get(slice.allocation as usize).and_then(Option::as_ref) {
            self.graphs.stream.read(buffer, slice.offset, &mut bytes)?;
        }
        Ok(bytes)
    }
}
