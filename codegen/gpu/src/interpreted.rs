//! The PTX interpreter as a device: every access of every kernel is checked.
//!
//! **Invariants:** a launch sees its arrays in allocations of their own, although they are parts of larger
//! ones in the plan, so that an access past an array is out of bounds; slices that overlap share their bytes;
//! what nothing wrote is uninitialized, in results too.

use std::sync::Arc;

use hlo_opt::buffers::Slice;
use hlo_ptx::report::Cause;
use hlo_ptx::{Loaded, Memory, Options};

use crate::program::{Action, Argument, Launch, Program, SequenceId, Step};
use crate::run::{Device, RunError};

/// Programs whose PTX was parsed and verified.
#[derive(Debug)]
pub struct Modules {
    /// The variables of each text in memory.
    loaded: Vec<(Memory, Loaded)>,
}

impl Modules {
    /// Those of a program. Errors: PTX that does not verify.
    pub fn new(program: &Program) -> Result<Arc<Self>, RunError> {
        let mut loaded = Vec::new();
        for text in &program.ptx {
            let module = hlo_ptx::lower::module(text).map_err(|all| {
                let first = all.first().map(ToString::to_string).unwrap_or_default();
                RunError::Kernel(format!("the PTX does not verify: {first}"))
            })?;
            let mut memory = Memory::default();
            let module = memory.load(module).map_err(|e| RunError::OutOfMemory(e.to_string()))?;
            loaded.push((memory, module));
        }
        Ok(Arc::new(Self { loaded }))
    }
}

/// Statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Launches of kernels.
    pub launches: u64,
    /// Instructions, of all threads.
    pub thread_instructions: u64,
}

/// An allocation of the plan.
struct Block {
    name: String,
    bytes: Vec<u8>,
    /// For each byte: whether it was written.
    written: Vec<u8>,
}

/// A device that interprets.
pub struct Interpreted<'p> {
    program: &'p Program,
    modules: Arc<Modules>,
    options: Options,
    memory_bytes: u64,
    blocks: Vec<Block>,
    statistics: Statistics,
}

impl<'p> Interpreted<'p> {
    /// For one run of a program. `options` says what is checked; its fuel is that of the whole run.
    pub fn new(program: &'p Program, modules: Arc<Modules>, options: Options, memory_bytes: u64) -> Self {
        Self {
            program,
            modules,
            options,
            memory_bytes,
            blocks: Vec::new(),
            statistics: Statistics::default(),
        }
    }

    /// The counters so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn block(&self, slice: Slice) -> Result<&Block, RunError> {
        let block = self.blocks.get(slice.allocation as usize);
        let inside = |b: &&Block| slice.offset.saturating_add(slice.bytes) <= b.bytes.len() as u64;
        block.filter(inside).ok_or_else(|| RunError::Kernel("a slice outside of its allocation".into()))
    }
}

/// Slices of one allocation that overlap, as one.
struct Region {
    allocation: u32,
    begin: u64,
    end: u64,
    address: u64,
}

fn regions(arguments: &[Argument]) -> Vec<Region> {
    let slice = |a: &Argument| match a {
        Argument::Slice(slice) => Some(*slice),
        Argument::Word(_) => None,
    };
    let mut slices: Vec<Slice> = arguments.iter().filter_map(slice).collect();
    slices.sort_by_key(|s| (s.allocation, s.offset));
    let mut regions: Vec<Region> = Vec::new();
    for s in slices {
        match regions.last_mut() {
            Some(r) if r.allocation == s.allocation && (s.offset < r.end || s.offset == r.begin) => {
                r.end = r.end.max(s.offset + s.bytes);
            }
            Some(_) | None => regions.push(Region {
                allocation: s.allocation,
                begin: s.offset,
                end: s.offset + s.bytes,
                address: 0,
            }),
        }
    }
    regions
}

fn poll() {
    hlo_threads::cancel::poll();
}

impl Device for Interpreted<'_> {
    fn allocate(
        &mut self,
        index: usize,
        name: &str,
        bytes: u64,
        contents: Option<&[u8]>,
    ) -> Result<(), RunError> {
        let held: u64 = self.blocks.iter().map(|b| b.bytes.len() as u64).sum();
        if held.saturating_add(bytes) > self.memory_bytes {
            return Err(RunError::OutOfMemory(format!("{name} of {bytes} bytes does not fit")));
        }
        debug_assert_eq!(index, self.blocks.len(), "allocations come in order");
        let size = usize::try_from(bytes).map_err(|e| RunError::OutOfMemory(e.to_string()))?;
        let (mut data, mut written) = (vec![0; size], vec![0; size]);
        if let Some(contents) = contents {
            let n = contents.len().min(size);
            data[..n].copy_from_slice(&contents[..n]);
            written[..n].fill(1);
        }
        self.blocks.push(Block { name: name.to_owned(), bytes: data, written });
        Ok(())
    }

    fn sequence(&mut self, _id: SequenceId, steps: &[Step]) -> Result<(), RunError> {
        for step in steps {
            match &step.action {
                Action::Launch(launch) => self.launch(&step.name, launch)?,
                Action::Copy { from, to } => self.copy(*from, *to)?,
                Action::Fill { to, byte } => self.fill(*to, *byte)?,
                Action::While { .. } | Action::Conditional { .. } => {
                    return Err(RunError::Unsupported("control flow in a sequence".into()));
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, slice: Slice, what: &str) -> Result<Vec<u8>, RunError> {
        let block = self.block(slice)?;
        let range = slice.offset as usize..(slice.offset + slice.bytes) as usize;
        if let Some(at) = block.written[range.clone()].iter().position(|&w| w == 0) {
            return Err(RunError::Kernel(format!("nothing wrote byte {at} of {what}")));
        }
        Ok(block.bytes[range].to_vec())
    }
}

impl Interpreted<'_> {
    fn launch(&mut self, instruction: &str, launch: &Launch) -> Result<(), RunError> {
        let out_of_memory =
            |e: hlo_ptx::memory::MemoryError| RunError::OutOfMemory(format!("`{instruction}`: {e}"));
        let unknown = || RunError::Kernel(format!("`{instruction}`: no kernel function `{}`", launch.symbol));
        let module = *self.program.symbols.get(&launch.symbol).ok_or_else(unknown)?;
        let modules = Arc::clone(&self.modules);
        let (prototype, loaded) = modules.loaded.get(module).ok_or_else(unknown)?;
        let mut memory = prototype.clone();
        memory.set_limit(self.memory_bytes);
        let mut regions = regions(&launch.arguments);
        for r in &mut regions {
            let slice = Slice { allocation: r.allocation, offset: r.begin, bytes: r.end - r.begin };
            let block = self.block(slice)?;
            let range = r.begin as usize..r.end as usize;
            let name = format!("{} of `{instruction}`", block.name);
            r.address = memory.allocate(&name, r.end - r.begin).map_err(out_of_memory)?;
            // Runs of what was written.
            let written = &block.written[range.clone()];
            let bytes = &block.bytes[range];
            let mut at = 0;
            for run in written.chunk_by(|a, b| a == b) {
                if run[0] == 1 {
                    memory.write(r.address + at as u64, &bytes[at..at + run.len()]).map_err(out_of_memory)?;
                }
                at += run.len();
            }
        }
        let mut arguments = Vec::new();
        for a in &launch.arguments {
            arguments.push(match a {
                Argument::Word(word) => *word,
                Argument::Slice(s) => {
                    let inside = |r: &&Region| {
                        r.allocation == s.allocation && r.begin <= s.offset && s.offset + s.bytes <= r.end
                    };
                    let region = regions.iter().find(inside);
                    region.map_or(0, |r| r.address + (s.offset - r.begin))
                }
            });
        }
        let options = Options { poll: Some(poll), ..self.options.clone() };
        let how = hlo_ptx::Launch::new(launch.grid, launch.block, u64::from(launch.shared_bytes), &arguments);
        let outcome = hlo_ptx::launch(loaded, &launch.symbol, &how, &mut memory, &options);
        let said = |report: &dyn std::fmt::Display| format!("`{instruction}`: {report}");
        let outcome = outcome.map_err(|failure| match failure.stop.fault.cause() {
            Cause::Kernel | Cause::Launch => RunError::Kernel(said(&failure.stop)),
            Cause::Fuel => RunError::OutOfFuel(said(&failure.stop)),
            Cause::Unsupported => RunError::Unsupported(said(&failure.stop)),
        })?;
        if let Some(first) = outcome.reports.first() {
            return Err(RunError::Kernel(said(first)));
        }
        self.statistics.launches += 1;
        self.statistics.thread_instructions += outcome.thread_instructions;
        self.options.fuel = self.options.fuel.saturating_sub(outcome.thread_instructions);
        for r in &regions {
            let bytes = memory.read(r.address, r.end - r.begin).map_err(out_of_memory)?;
            let block = &mut self.blocks[r.allocation as usize];
            let range = r.begin as usize..r.end as usize;
            block.bytes[range.clone()].copy_from_slice(bytes);
            let written = memory.written_bytes(r.address, r.end - r.begin).map_err(out_of_memory)?;
            block.written[range].copy_from_slice(written);
        }
        Ok(())
    }

    fn copy(&mut self, from: Slice, to: Slice) -> Result<(), RunError> {
        self.block(to)?;
        let source = self.block(from)?;
        let range = from.offset as usize..(from.offset + from.bytes) as usize;
        let (bytes, written) = (source.bytes[range.clone()].to_vec(), source.written[range].to_vec());
        let range = to.offset as usize..(to.offset + to.bytes.min(from.bytes)) as usize;
        let block = &mut self.blocks[to.allocation as usize];
        block.bytes[range.clone()].copy_from_slice(&bytes[..range.len()]);
        block.written[range.clone()].copy_from_slice(&written[..range.len()]);
        Ok(())
    }

    fn fill(&mut self, to: Slice, byte: u8) -> Result<(), RunError> {
        self.block(to)?;
        let range = to.offset as usize..(to.offset + to.bytes) as usize;
        let block = &mut self.blocks[to.allocation as usize];
        block.bytes[range.clone()].fill(byte);
        block.written[range].fill(1);
        Ok(())
    }
}
