//! What executes kernels.

use std::sync::{Arc, Mutex, PoisonError};

use hlo_ptx::report::Cause;
use hlo_ptx::{Launch, Memory, Options};

/// A launch with the memory that it works on.
#[derive(Clone, Debug)]
pub struct Work {
    /// The kernel.
    pub kernel: String,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Variables of the module that the host writes before the launch.
    pub variables: Vec<(String, Arc<[u8]>)>,
    /// Memory before the launch, an allocation each.
    pub memory: Vec<Arc<[u8]>>,
    /// Arguments in order.
    pub arguments: Vec<Argument>,
}

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A number as its bytes.
    Number(Vec<u8>),
    /// The address of an offset in the memory of a number.
    Address(usize, u64),
}

impl Work {
    /// The arguments as bytes, where memory has these addresses.
    fn arguments(&self, address: impl Fn(usize) -> u64) -> Vec<Vec<u8>> {
        let one = |a: &Argument| match a {
            Argument::Number(bytes) => bytes.clone(),
            Argument::Address(memory, offset) => (address(*memory) + offset).to_le_bytes().to_vec(),
        };
        self.arguments.iter().map(one).collect()
    }
}

/// Why there is no result.
#[derive(Clone, PartialEq, Debug)]
pub enum Refusal {
    /// The text is refused, with the lines that are named.
    Text(String, Vec<u32>),
    /// It is not executed here.
    Unsupported(String),
    /// The kernel failed.
    Failed(String),
    /// The target is not usable any more.
    Broken(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Text(message, _)
            | Refusal::Unsupported(message)
            | Refusal::Failed(message)
            | Refusal::Broken(message) => f.write_str(message),
        }
    }
}

/// What executes kernels.
pub trait Target: Sync {
    /// A text whose kernels can be launched.
    ///
    /// # Errors
    /// The text is refused.
    fn load(&self, ptx: &str) -> Result<Box<dyn Module + '_>, Refusal>;
}

/// A text that a target took.
pub trait Module {
    /// Executes a launch, and gives the bytes of each memory afterwards.
    ///
    /// # Errors
    /// There is no result.
    fn run(&self, work: &Work) -> Result<Vec<Vec<u8>>, Refusal>;
}

/// The interpreter, which checks bounds and alignment alone here.
#[derive(Clone, Copy, Default, Debug)]
pub struct Interpreter;

struct Interpreted(hlo_ptx::ir::Module);

impl Target for Interpreter {
    fn load(&self, ptx: &str) -> Result<Box<dyn Module + '_>, Refusal> {
        match hlo_ptx::lower::module(ptx) {
            Ok(module) => Ok(Box::new(Interpreted(module))),
            Err(all) => {
                let lines = all.iter().map(|d| d.line).collect();
                Err(Refusal::Text(all.first().map(ToString::to_string).unwrap_or_default(), lines))
            }
        }
    }
}

impl Module for Interpreted {
    fn run(&self, work: &Work) -> Result<Vec<Vec<u8>>, Refusal> {
        let failed = |e: hlo_ptx::memory::MemoryError| Refusal::Failed(e.to_string());
        let mut memory = Memory::default();
        let loaded = memory.load(self.0.clone()).map_err(failed)?;
        for (name, bytes) in &work.variables {
            let Some((address, _)) = loaded.symbol(name) else {
                return Err(Refusal::Failed(format!("the module has no `{name}`")));
            };
            memory.write(address, bytes).map_err(failed)?;
        }
        let mut uploaded = Vec::new();
        for bytes in &work.memory {
            uploaded.push((memory.upload("memory", bytes).map_err(failed)?, bytes.len() as u64));
        }
        let arguments = work.arguments(|i| uploaded[i].0);
        let launch = Launch {
            grid: work.grid,
            block: work.block,
            shared_bytes: u64::from(work.shared_bytes),
            arguments,
        };
        match hlo_ptx::launch(&loaded, &work.kernel, &launch, &mut memory, &Options::fast()) {
            Ok(_) => uploaded
                .into_iter()
                .map(|(address, bytes)| memory.read(address, bytes).map(<[u8]>::to_vec).map_err(failed))
                .collect(),
            Err(failure) => Err(match failure.stop.fault.cause() {
                Cause::Unsupported => Refusal::Unsupported(failure.stop.message.clone()),
                Cause::Kernel | Cause::Fuel | Cause::Launch => Refusal::Failed(failure.to_string()),
            }),
        }
    }
}

/// A CUDA device.
pub struct Cuda {
    device: hlo_cuda::Device,
    /// Streams that nothing uses at the moment: their page-locked memory is used again.
    streams: Mutex<Vec<hlo_cuda::Stream>>,
}

impl Cuda {
    /// A device that is open.
    #[must_use]
    pub fn new(device: hlo_cuda::Device) -> Self {
        Cuda { device, streams: Mutex::new(Vec::new()) }
    }
}

struct Compiled<'d> {
    target: &'d Cuda,
    module: hlo_cuda::Module,
}

/// The lines that a log of the driver's compiler names.
fn lines_of(log: &str) -> Vec<u32> {
    let number = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    log.split("line ").skip(1).filter_map(number).collect()
}

impl From<hlo_cuda::Error> for Refusal {
    fn from(error: hlo_cuda::Error) -> Self {
        use hlo_cuda::Error as E;
        let message = error.to_string();
        match error {
            E::Compile { log, .. } => Refusal::Text(message, lines_of(&log)),
            E::Kernel { .. } | E::Timeout { .. } | E::Broken { .. } => Refusal::Broken(message),
            E::NoLibrary { .. }
            | E::MissingSymbols { .. }
            | E::OldDriver { .. }
            | E::NoDevice { .. }
            | E::NoSuchDevice { .. }
            | E::Unsupported { .. }
            | E::OutOfMemory { .. }
            | E::NoSuchSymbol { .. }
            | E::Launch { .. }
            | E::Range { .. }
            | E::Driver { .. } => Refusal::Failed(message),
        }
    }
}

impl Target for Cuda {
    fn load(&self, ptx: &str) -> Result<Box<dyn Module + '_>, Refusal> {
        Ok(Box::new(Compiled { target: self, module: self.device.module(ptx)? }))
    }
}

impl Module for Compiled<'_> {
    fn run(&self, work: &Work) -> Result<Vec<Vec<u8>>, Refusal> {
        let function = self.module.function(&work.kernel)?;
        let free = || self.target.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let last = free().pop();
        let stream = match last {
            Some(stream) => stream,
            None => self.target.device.stream()?,
        };
        for (name, bytes) in &work.variables {
            stream.write_variable(&self.module, name, bytes)?;
        }
        let buffers: Vec<hlo_cuda::Buffer> =
            work.memory.iter().map(|bytes| stream.upload(bytes)).collect::<hlo_cuda::Result<_>>()?;
        let arguments = work.arguments(|i| buffers[i].address());
        let launch = hlo_cuda::Launch {
            grid: work.grid,
            block: work.block,
            shared_bytes: work.shared_bytes,
            arguments,
        };
        stream.launch(&function, &launch)?;
        let results: hlo_cuda::Result<Vec<Vec<u8>>> = buffers.iter().map(|b| stream.download(b)).collect();
        drop(buffers);
        free().push(stream);
        Ok(results?)
    }
}
