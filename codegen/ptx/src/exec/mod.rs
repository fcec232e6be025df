//! The interpreter: a grid of blocks of warps, 32 lanes at a time.
//!
//! A warp is a set of fragments: lanes that are at one instruction. A branch that separates lanes makes two
//! fragments and a join at the branch's immediate post-dominator, where they become one again; fragments that
//! wait (at a barrier, for other lanes) let the others go on, so that lanes of a warp make progress
//! independently, as they do from sm_70 on.
//!
//! Invariants: execution is deterministic: blocks in their order, warps and fragments in current, each for a
//! bounded number of instructions. No instruction of a verified module panics: whatever is not legal at run
//! time is a [`Report`].

mod alu;
mod barrier;
mod collective;
mod convert;
mod data;
mod integer;
mod matrix;
mod memory;
mod mma;
mod warp;

use crate::ir::{Constant, Module, Op};
use crate::memory::{Loaded, Memory, SharedLayout};
use crate::race::{Access, Shadow};
use crate::report::{Fault, Other, Report, Severity, Thread};
use barrier::Barrier;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
pub(crate) use warp::{Lanes, Warp};

/// What is checked, and limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Reads of memory that nothing wrote, and registers that decide something before they are written.
    pub check_initialized: bool,
    /// Data races.
    pub check_races: bool,
    /// Executed instructions of threads, at most.
    pub fuel: u64,
    /// Different reports, at most; those behind are counted only.
    pub max_reports: usize,
    /// Bytes that registers, local and shared memory of the blocks in flight may take.
    pub memory_limit: u64,
    /// Called again and again while kernels run, so that whoever cancels a run can unwind it.
    pub poll: Option<fn()>,
    /// Blocks that are run: the first ones of the grid, a sample of a large launch.
    pub blocks: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            check_initialized: true,
            check_races: true,
            fuel: 1 << 40,
            max_reports: 100,
            memory_limit: 1 << 32,
            poll: None,
            blocks: u64::MAX,
        }
    }
}

impl Options {
    /// Bounds and alignment alone are checked.
    #[must_use]
    pub fn fast() -> Self {
        Options { check_initialized: false, check_races: false, ..Options::default() }
    }
}

/// A launch.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u64,
    /// Arguments in order, as bytes.
    pub arguments: Vec<Vec<u8>>,
}

impl Launch {
    /// A launch whose arguments are 64-bit values, such as addresses.
    #[must_use]
    pub fn new(grid: [u32; 3], block: [u32; 3], shared_bytes: u64, arguments: &[u64]) -> Self {
        let arguments = arguments.iter().map(|a| a.to_le_bytes().to_vec()).collect();
        Launch { grid, block, shared_bytes, arguments }
    }
}

/// What a launch that ended did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What the checker found, in the order of execution.
    pub reports: Vec<Report>,
    /// Instructions of threads.
    pub thread_instructions: u64,
    /// Instructions of warps.
    pub warp_instructions: u64,
}

/// A launch that did not end: what stopped it, and what was found before.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{stop}")]
pub struct Failure {
    /// Why it stopped.
    pub stop: Box<Report>,
    /// What the checker found before.
    pub reports: Vec<Report>,
}

/// Ends the execution.
pub(crate) type Step<T> = Result<T, Box<Report>>;

/// What all threads of a launch share.
pub(crate) struct Machine<'m> {
    pub(crate) module: &'m Module,
    pub(crate) kernel: u32,
    pub(crate) launch: &'m Launch,
    pub(crate) options: &'m Options,
    pub(crate) memory: &'m mut Memory,
    pub(crate) params: Vec<u8>,
    pub(crate) constants: Vec<Lanes>,
    pub(crate) shared: SharedLayout,
    pub(crate) races: Vec<Shadow>,
    /// What releases at an address published: the clock of each block's releases.
    pub(crate) released: FxHashMap<u64, FxHashMap<u32, u32>>,
    pub(crate) reports: Vec<Report>,
    /// Races of a weak read with an atomic write, by block, warp and address of the reader: a
    /// compare-and-swap behind the read makes it harmless, because it finds out that the value changed.
    pub(crate) pending: BTreeMap<(u32, u32, u64), Report>,
    seen: FxHashMap<(Fault, u32, u32), usize>,
    pub(crate) thread_instructions: u64,
    pub(crate) warp_instructions: u64,
    pub(crate) last_allocation: usize,
}

/// A block in flight.
pub(crate) struct Block {
    pub(crate) index: u32,
    pub(crate) ctaid: [u32; 3],
    pub(crate) warps: Vec<Warp>,
    pub(crate) shared: Vec<u8>,
    pub(crate) shared_written: Vec<u8>,
    pub(crate) races: Shadow,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) mbarriers: FxHashMap<u64, barrier::Mbarrier>,
    /// For each warp the clocks of all warps that it knows of.
    pub(crate) clocks: Vec<Vec<u32>>,
    /// Releases of other blocks that this one acquired.
    pub(crate) acquired: FxHashMap<u32, u32>,
    /// Releases that relaxed operations of this block saw: a fence acquires them.
    pub(crate) observed: FxHashMap<u32, u32>,
    /// Releases of this block, counted from 1.
    pub(crate) release: u32,
    /// A fence was executed: relaxed operations order what was before it.
    pub(crate) fenced: bool,
}

/// Warp instructions of a block's time slice (round robin).
const BLOCK_SLICE: u64 = 1 << 16;
/// Blocks in flight at most; a device of 132 multiprocessors holds more.
const MAX_BLOCKS: usize = 264;

/// Runs a kernel.
///
/// # Errors
/// The report of what stopped it: an illegal access, threads that wait forever, fuel, an instruction that is
/// not executed.
pub fn launch(
    loaded: &Loaded,
    kernel: &str,
    launch: &Launch,
    memory: &mut Memory,
    options: &Options,
) -> Result<Outcome, Failure> {
    let module = &loaded.module;
    let stop = |message: String, line: u32| Failure {
        stop: Box::new(Report {
            fault: Fault::InvalidLaunch,
            severity: Severity::Error,
            message,
            kernel: kernel.to_owned(),
            line,
            source: module.lines.get((line as usize).wrapping_sub(1)).cloned().unwrap_or_default(),
            thread: Thread::default(),
            space: None,
            address: None,
            other: None,
            count: 1,
        }),
        reports: Vec::new(),
    };
    let Some(index) = module.kernel(kernel) else {
        let names: Vec<&str> = module.kernels().collect();
        return Err(stop(format!("no kernel `{kernel}`; the module has {}", names.join(", ")), 0));
    };
    let function = &module.functions[index];
    let line = function.line;
    if let Err(message) = check_launch(module, index, launch) {
        return Err(stop(message, line));
    }
    let shared = SharedLayout::new(module, index as u32, launch.shared_bytes);
    let mut params = vec![0_u8; function.param_bytes as usize];
    for (p, a) in function.params.iter().zip(&launch.arguments) {
        params[p.offset as usize..p.offset as usize + a.len()].copy_from_slice(a);
    }
    let constants = module.constants.iter().map(|&c: &Constant| [loaded.constant(c, &shared); 32]).collect();
    let races = (0..memory.allocations.len()).map(|_| Shadow::default()).collect();
    let mut machine = Machine {
        module,
        kernel: index as u32,
        launch,
        options,
        memory,
        params,
        constants,
        shared,
        races,
        released: FxHashMap::default(),
        reports: Vec::new(),
        pending: BTreeMap::new(),
        seen: FxHashMap::default(),
        thread_instructions: 0,
        warp_instructions: 0,
        last_allocation: 0,
    };
    let result = machine.run();
    for (_, report) in std::mem::take(&mut machine.pending) {
        machine.keep(report);
    }
    match result {
        Ok(()) => Ok(Outcome {
            reports: machine.reports,
            thread_instructions: machine.thread_instructions,
            warp_instructions: machine.warp_instructions,
        }),
        Err(stop) => Err(Failure { stop, reports: machine.reports }),
    }
}

/// Bytes of shared memory of a block, static and dynamic, by architecture (CUDA's table of compute
/// capabilities).
fn shared_limit(arch: u32) -> u64 {
    1024 * match arch {
        70 | 72 => 96,
        75 => 64,
        80 | 87 => 163,
        86 | 89 | 120 | 121 => 99,
        90..=110 => 227,
        _ => 48,
    }
}

/// Whether a launch fits a kernel, by its index, and the device, before anything runs.
///
/// # Errors
/// Why it does not.
pub fn check_launch(module: &Module, kernel: usize, launch: &Launch) -> Result<(), String> {
    let f = &module.functions[kernel];
    if module.address_bits != 64 {
        return Err("modules with 32-bit addresses are not executed".into());
    }
    let product = |d: [u32; 3]| d.iter().map(|&n| u128::from(n)).product::<u128>();
    let (threads, blocks) = (product(launch.block), product(launch.grid));
    if threads == 0 || blocks == 0 {
        return Err("a launch has at least one block and one thread".into());
    }
    let [x, y, z] = launch.block;
    if threads > 1024 || x > 1024 || y > 1024 || z > 64 {
        return Err(format!("a block of {x} x {y} x {z} threads; it has at most 1024, and at most 64 in z"));
    }
    let [x, y, z] = launch.grid;
    if blocks > u128::from(u32::MAX) || x > i32::MAX as u32 || y > 65535 || z > 65535 {
        return Err(format!("a grid of {x} x {y} x {z} blocks is beyond the limits"));
    }
    if let Some(required) = f.reqntid
        && required != launch.block
    {
        return Err(format!(
            "the kernel requires blocks of {required:?} threads, the launch has {:?}",
            launch.block
        ));
    }
    if let Some(most) = f.maxntid
        && threads > product(most)
    {
        return Err(format!(
            "the kernel allows blocks of {} threads, the launch has {threads}",
            product(most)
        ));
    }
    if f.params.len() != launch.arguments.len() {
        return Err(format!(
            "the kernel has {} parameters, the launch {}",
            f.params.len(),
            launch.arguments.len()
        ));
    }
    for (p, a) in f.params.iter().zip(&launch.arguments) {
        if p.bytes as usize != a.len() {
            return Err(format!("parameter `{}` has {} bytes, the argument {}", p.name, p.bytes, a.len()));
        }
    }
    let fixed = SharedLayout::new(module, kernel as u32, launch.shared_bytes).fixed_bytes;
    let most = shared_limit(module.arch);
    if fixed.saturating_add(launch.shared_bytes) > most {
        return Err(format!(
            "the kernel uses {fixed} bytes of static and {} bytes of dynamic shared memory; sm_{} has {most}",
            launch.shared_bytes, module.arch
        ));
    }
    Ok(())
}

impl<'m> Machine<'m> {
    fn run(&mut self) -> Step<()> {
        let [gx, gy, gz] = self.launch.grid;
        let total = (u64::from(gx) * u64::from(gy) * u64::from(gz)).min(self.options.blocks);
        let mut next = 0_u64;
        let mut blocks: Vec<Block> = Vec::new();
        let threads: u32 = self.launch.block.iter().product();
        let f = &self.module.functions[self.kernel as usize];
        let registers = u64::from(f.registers) * 260 + u64::from(f.predicates) * 8;
        let per_block = u64::from(threads.div_ceil(32)) * (registers + 32 * u64::from(f.frame_bytes))
            + 2 * self.shared.window;
        let resident = (self.options.memory_limit / per_block.max(1)).min(MAX_BLOCKS as u64) as usize;
        if resident == 0 {
            return Err(self.launch_fault(format!(
                "a block takes {per_block} bytes; the limit is {}",
                self.options.memory_limit
            )));
        }
        // Round robin: a block runs until it ends or its slice does; then the next starts or goes on.
        let mut current = 0;
        loop {
            if blocks.is_empty() && next == total {
                return Ok(());
            }
            if next < total && (blocks.is_empty() || (current >= blocks.len() && blocks.len() < resident)) {
                let (x, y, z) = (
                    next % u64::from(gx),
                    next / u64::from(gx) % u64::from(gy),
                    next / u64::from(gx) / u64::from(gy),
                );
                blocks.push(self.new_block(next as u32, [x as u32, y as u32, z as u32]));
                next += 1;
                current = blocks.len() - 1;
            }
            if current >= blocks.len() {
                current = 0;
            }
            if let Some(poll) = self.options.poll {
                poll();
            }
            if self.run_block(&mut blocks[current])? {
                blocks.remove(current);
            } else {
                current += 1;
            }
        }
    }

    fn new_block(&self, index: u32, ctaid: [u32; 3]) -> Block {
        let threads: u32 = self.launch.block.iter().product();
        let f = &self.module.functions[self.kernel as usize];
        let count = threads.div_ceil(32);
        let warps = (0..count).map(|w| Warp::new(w, threads, self.kernel, f)).collect();
        let window = self.shared.window as usize;
        Block {
            index,
            ctaid,
            warps,
            shared: vec![0; window],
            shared_written: vec![0; window],
            races: Shadow::default(),
            barriers: vec![Barrier::default(); 17],
            mbarriers: FxHashMap::default(),
            clocks: (0..count as usize)
                .map(|w| (0..count as usize).map(|v| u32::from(v == w)).collect())
                .collect(),
            acquired: FxHashMap::default(),
            observed: FxHashMap::default(),
            release: 1,
            fenced: false,
        }
    }

    /// Runs a block for its slice; `true`: it ended.
    fn run_block(&mut self, block: &mut Block) -> Step<bool> {
        let start = self.warp_instructions;
        loop {
            let mut ended = true;
            let mut progress = false;
            for w in 0..block.warps.len() {
                if block.warps[w].is_done() {
                    continue;
                }
                ended = false;
                let mut warp = std::mem::take(&mut block.warps[w]);
                let result = warp.run(self, block);
                block.warps[w] = warp;
                progress |= result?;
            }
            if ended {
                return Ok(true);
            }
            if !progress {
                return Err(self.deadlock(block));
            }
            if self.warp_instructions - start > BLOCK_SLICE {
                return Ok(false);
            }
        }
    }

    fn launch_fault(&self, message: String) -> Box<Report> {
        let f = &self.module.functions[self.kernel as usize];
        Box::new(self.report(Fault::InvalidLaunch, Severity::Error, message, f.line, Thread::default()))
    }

    pub(crate) fn source(&self, line: u32) -> String {
        self.module.lines.get((line as usize).wrapping_sub(1)).cloned().unwrap_or_default()
    }

    pub(crate) fn report(
        &self,
        fault: Fault,
        severity: Severity,
        message: String,
        line: u32,
        thread: Thread,
    ) -> Report {
        Report {
            fault,
            severity,
            message,
            kernel: self.module.functions[self.kernel as usize].name.clone(),
            line,
            source: self.source(line),
            thread,
            space: None,
            address: None,
            other: None,
            count: 1,
        }
    }

    /// Keeps a report that does not stop the kernel; those of the same lines are counted.
    pub(crate) fn keep(&mut self, report: Report) {
        let key = (report.fault, report.line, report.other.as_ref().map_or(0, |o| o.line));
        match self.seen.get(&key) {
            Some(&i) => {
                if let Some(r) = self.reports.get_mut(i) {
                    r.count += 1;
                }
            }
            None => {
                self.seen.insert(key, self.reports.len().min(self.options.max_reports));
                if self.reports.len() < self.options.max_reports {
                    self.reports.push(report);
                }
            }
        }
    }

    /// The thread of a lane.
    pub(crate) fn thread(&self, warp: u32, lane: u32, ctaid: [u32; 3]) -> Thread {
        let [x, y, _] = self.launch.block;
        let i = warp * 32 + lane;
        Thread { thread: [i % x, i / x % y, i / x / y], block: ctaid }
    }

    /// The other side of a race.
    pub(crate) fn other(&self, access: &Access, wrote: bool) -> Other {
        let [gx, gy, _] = self.launch.grid;
        let b = access.block;
        let ctaid = [b % gx, b / gx % gy, b / gx / gy];
        let lane = access.lanes.trailing_zeros().min(31);
        Other {
            thread: self.thread(u32::from(access.warp), lane, ctaid),
            line: access.line,
            source: self.source(access.line),
            wrote,
        }
    }

    /// Every thread of a block waits: says for whom.
    fn deadlock(&self, block: &Block) -> Box<Report> {
        let mut waiting = None;
        for warp in &block.warps {
            for f in &warp.fragments {
                waiting = waiting.or(Some((warp, f)));
            }
        }
        let Some((warp, f)) = waiting else { return self.launch_fault("a block without threads".into()) };
        let line = self.module.functions[f.function as usize].code[f.pc as usize].line;
        let op = &self.module.functions[f.function as usize].code[f.pc as usize].op;
        let lane = f.mask.trailing_zeros().min(31);
        let thread = self.thread(warp.index, lane, block.ctaid);
        let (fault, mut message) = match op {
            Op::Barrier { .. } => {
                (Fault::DivergentBlock, "Barrier error detected. Divergent thread(s) in block".to_owned())
            }
            _ => (Fault::InvalidMask, "Barrier error detected. Divergent thread(s) in warp".to_owned()),
        };
        for other in &block.warps {
            for g in &other.fragments {
                let code = &self.module.functions[g.function as usize].code[g.pc as usize];
                if code.line != line {
                    let thread = self.thread(other.index, g.mask.trailing_zeros().min(31), block.ctaid);
                    message += &format!("; {thread} waits at line {}: {}", code.line, self.source(code.line));
                    return Box::new(self.report(fault, Severity::Error, message, line, thread));
                }
            }
        }
        Box::new(self.report(fault, Severity::Error, message, line, thread))
    }
}
