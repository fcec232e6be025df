//! Launches the kernels of one instruction on the values of its operands.
//!
//! **Invariants:** arrays that share memory in XLA's buffer assignment share it here, and nothing else does,
//! so that an access beyond an array is out of bounds although XLA has another array there; what no kernel
//! and no operand wrote is uninitialized; launches of an instruction see each other's writes, launches of
//! others do not, but through values.

use hlo::{InstrId, Module, Shape};
use hlo_interp::Value;
use hlo_ptx::ir::Space;
use hlo_ptx::memory::MemoryError;
use hlo_ptx::report::{Cause, Report};
use hlo_ptx::{Launch, Memory, Options};

use super::buffers::Slice;
use super::dump::{Argument, Dump, Kernel, Of, Ptx};
use super::layout;
use super::mirror::{Mirror, Mirrored, Variables};

/// Checks and limits of launches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Instructions of threads of one launch, at most.
    pub(super) fuel: u64,
    /// Bytes of device memory, and of the state of the threads in flight.
    pub(super) memory_bytes: u64,
}

/// Why there is no result, or why what is there does not count.
#[derive(Clone, Debug)]
pub(super) enum Failed {
    /// A kernel did what none may, or its result was not written.
    Kernel(String),
    /// It is not executed here.
    Unsupported(String),
    /// It took more instructions than it may.
    OutOfFuel(String),
    /// There is not enough memory.
    OutOfMemory(String),
}

/// Memory that arguments share.
struct Region {
    allocation: u64,
    start: u64,
    end: u64,
    address: u64,
}

/// The arguments of a launch in memory: for each its region and the offset there.
struct Placed {
    regions: Vec<Region>,
    of: Vec<(usize, u64)>,
}

fn assign_regions(arguments: &[Argument]) -> Placed {
    let mut regions: Vec<Region> = Vec::new();
    let mut slices: Vec<Option<Slice>> = arguments.iter().map(|a| a.slice).collect();
    // A slice of another size than the array is not this array's: it gets memory of its own.
    for (slice, a) in slices.iter_mut().zip(arguments) {
        if slice.is_some_and(|s| s.size != layout::device_bytes(&a.shape) as u64) {
            *slice = None;
        }
    }
    let mut sorted: Vec<Slice> = slices.iter().flatten().copied().collect();
    sorted.sort_by_key(|s| (s.allocation, s.offset));
    for s in sorted {
        match regions.last_mut() {
            Some(last) if last.allocation == s.allocation && s.offset < last.end => {
                last.end = last.end.max(s.end())
            }
            Some(_) | None => {
                regions.push(Region { allocation: s.allocation, start: s.offset, end: s.end(), address: 0 });
            }
        }
    }
    let mut of = Vec::new();
    for (slice, a) in slices.iter().zip(arguments) {
        let found = slice.and_then(|s| {
            let inside = |r: &Region| r.allocation == s.allocation && r.start <= s.offset && s.end() <= r.end;
            Some((regions.iter().position(inside)?, s.offset))
        });
        of.push(match found {
            Some((region, offset)) => (region, offset - regions[region].start),
            None => {
                let bytes = layout::device_bytes(&a.shape) as u64;
                regions.push(Region { allocation: u64::MAX, start: 0, end: bytes, address: 0 });
                (regions.len() - 1, 0)
            }
        });
    }
    Placed { regions, of }
}

/// The statistics of launches.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stats {
    /// Instructions of threads.
    pub(super) instructions: u64,
}

/// Launches the kernels of an instruction on its operands. Errors: what went wrong, naming instruction,
/// kernel and line.
pub(super) fn run(
    dump: &Dump,
    (module, id): (&Module, InstrId),
    kernel: &Kernel,
    operands: &[Value],
    limits: Limits,
    mirror: Option<&dyn Mirror>,
) -> Result<(Value, Stats), Failed> {
    let instr = module.instr(id);
    let unsupported = |why: String| Failed::Unsupported(format!("`{}`: {why}", instr.name));
    let memory_error = |e: MemoryError| Failed::OutOfMemory(format!("`{}`: {e}", instr.name));
    // The array of an operand.
    let array = |number: usize, leaf: usize| {
        let arrays = operands.get(number).map(Value::arrays).unwrap_or_default();
        arrays.get(leaf).copied().ok_or_else(|| unsupported(format!("operand {number} has no array {leaf}")))
    };
    let mut placed = assign_regions(&kernel.arguments);
    let is_result = |a: &Argument| a.of == Of::Result;
    // Memory of each PTX file begins as its variables; what is beside them is the same.
    let mut memory: Option<(usize, Memory)> = None;
    let mut stats = Stats::default();
    let mut kept: Vec<Contents> = Vec::new();
    for (number, launch) in &kernel.launches {
        let ptx = &dump.ptx[*number];
        let fresh = memory.as_ref().is_none_or(|(of, _)| of != number);
        if fresh {
            // What earlier launches left goes along to the module of the next one.
            if let Some((_, old)) = &memory {
                kept = contents(old, &placed).map_err(memory_error)?;
            }
            let mut new = ptx.memory.clone();
            new.set_limit(limits.memory_bytes);
            for (i, region) in placed.regions.iter_mut().enumerate() {
                let who = kernel.arguments.iter().zip(&placed.of).filter(|(_, (of, _))| *of == i);
                let name = who.map(|(a, _)| name(module, id, a)).collect::<Vec<_>>().join(", ");
                region.address = new.allocate(&name, region.end - region.start).map_err(memory_error)?;
            }
            if memory.is_none() {
                for (a, &(region, offset)) in kernel.arguments.iter().zip(&placed.of) {
                    let from = match a.of {
                        Of::Operand(number) => Some((number, a.leaf)),
                        Of::Result => kernel.begins_as.get(a.leaf).copied().flatten().map(|n| (n, 0)),
                    };
                    let Some((number, leaf)) = from else { continue };
                    let data = layout::to_device(array(number, leaf)?, &a.shape).map_err(unsupported)?;
                    new.write(placed.regions[region].address + offset, &data).map_err(memory_error)?;
                }
            } else {
                for (region, kept) in placed.regions.iter().zip(&kept) {
                    restore(&mut new, region.address, kept).map_err(memory_error)?;
                }
            }
            memory = Some((*number, new));
        }
        let Some((_, memory)) = &mut memory else { continue };
        let addresses: Vec<u64> =
            placed.of.iter().map(|&(region, offset)| placed.regions[region].address + offset).collect();
        let call = Launch::new(launch.grid, launch.block, launch.shared_bytes, &addresses);
        let options = Options {
            fuel: limits.fuel,
            memory_limit: limits.memory_bytes,
            poll: Some(hlo_threads::cancel::poll),
            ..Options::default()
        };
        let say = |report: &Report| {
            format!("kernel `{}` of `{}` ({}): {report}", launch.kernel, instr.name, ptx.file)
        };
        let copy = |memory: &Memory| -> Result<Vec<Vec<u8>>, MemoryError> {
            placed.regions.iter().map(|r| Ok(memory.read(r.address, r.end - r.start)?.to_vec())).collect()
        };
        let before =
            mirror.map(|_| Ok((copy(memory)?, variables(ptx, memory)?))).transpose().map_err(memory_error)?;
        match hlo_ptx::launch(&ptx.loaded, &launch.kernel, &call, memory, &options) {
            Ok(outcome) => {
                if let (Some(mirror), Some((before, variables))) = (mirror, before) {
                    let elements = kernel
                        .arguments
                        .iter()
                        .map(|a| (a.shape.element_type, layout::device_bytes(&a.shape)))
                        .collect();
                    mirror.launched(Mirrored {
                        file: &ptx.file,
                        ptx: &ptx.text,
                        instruction: &instr.name,
                        kernel: &launch.kernel,
                        grid: launch.grid,
                        block: launch.block,
                        shared_bytes: launch.shared_bytes,
                        arguments: placed.of.clone(),
                        elements,
                        variables,
                        before: before.into_iter().map(Into::into).collect(),
                        after: copy(memory).map_err(memory_error)?,
                    });
                }
                stats.instructions += outcome.thread_instructions;
                if let Some(first) = outcome.reports.first() {
                    let more = match outcome.reports.len() {
                        1 => String::new(),
                        n => format!("\n    and {} more", n - 1),
                    };
                    return Err(Failed::Kernel(format!("{}{more}", say(first))));
                }
            }
            Err(failure) => {
                let said = say(&failure.stop);
                return Err(match failure.stop.fault.cause() {
                    Cause::Unsupported => Failed::Unsupported(said),
                    Cause::Fuel => Failed::OutOfFuel(said),
                    Cause::Kernel | Cause::Launch => Failed::Kernel(said),
                });
            }
        }
    }
    let Some((_, memory)) = &memory else { return Err(unsupported("it launches no kernel".into())) };
    let mut results = Vec::new();
    for (a, &(region, offset)) in kernel.arguments.iter().zip(&placed.of).filter(|(a, _)| is_result(a)) {
        let (at, bytes) = (placed.regions[region].address + offset, layout::device_bytes(&a.shape) as u64);
        let written = memory.written(at, bytes).map_err(memory_error)?;
        if written < bytes {
            let kernels: Vec<&str> = kernel.launches.iter().map(|(_, l)| &*l.kernel).collect();
            return Err(Failed::Kernel(format!(
                "kernel `{}` of `{}` leaves {} of the {bytes} bytes of {} unwritten",
                kernels.join("`, `"),
                instr.name,
                bytes - written,
                name(module, id, a)
            )));
        }
        let data = memory.read(at, bytes).map_err(memory_error)?;
        results.push(layout::from_device(data, &a.shape).map_err(unsupported)?);
    }
    let mut results = results.into_iter();
    match value(&instr.shape, &mut results) {
        Some(value) => Ok((value, stats)),
        None => Err(unsupported(format!("a result of {} is more than arrays", instr.shape))),
    }
}

/// The variables of a module with what they hold.
fn variables(ptx: &Ptx, memory: &Memory) -> Result<Variables, MemoryError> {
    let module = &ptx.loaded.module;
    let held =
        module.variables.iter().filter(|v| matches!(v.space, Space::Global | Space::Const) && v.bytes > 0);
    held.filter_map(|v| Some((v, ptx.loaded.symbol(&v.name)?)))
        .map(|(v, (address, bytes))| Ok((v.name.clone(), memory.read(address, bytes)?.into())))
        .collect()
}

/// The contents of a region.
struct Contents {
    bytes: Vec<u8>,
    /// Which of them were written.
    written: Vec<bool>,
}

/// The contents of each region.
fn contents(memory: &Memory, placed: &Placed) -> Result<Vec<Contents>, MemoryError> {
    let one = |r: &Region| {
        let bytes = memory.read(r.address, r.end - r.start)?.to_vec();
        let written = (r.address..r.address + (r.end - r.start)).map(|at| Ok(memory.written(at, 1)? == 1));
        Ok(Contents { bytes, written: written.collect::<Result<_, _>>()? })
    };
    placed.regions.iter().map(one).collect()
}

fn restore(
    memory: &mut Memory,
    address: u64,
    Contents { bytes, written }: &Contents,
) -> Result<(), MemoryError> {
    let mut at = 0;
    for run in written.chunk_by(|a, b| a == b) {
        if run[0] {
            memory.write(address + at as u64, &bytes[at..at + run.len()])?;
        }
        at += run.len();
    }
    Ok(())
}

/// The name of an argument in reports.
fn name(module: &Module, id: InstrId, a: &Argument) -> String {
    let instr = module.instr(id);
    match a.of {
        Of::Operand(number) => {
            let operand = &module.instr(instr.operands()[number]).name;
            format!("operand {number} (`{operand}`)")
        }
        Of::Result if instr.shape.as_array().is_some() => "the result".to_owned(),
        Of::Result => format!("result {}", a.leaf),
    }
}

/// The value of a shape with these arrays. `None`: it has other leaves, or more.
fn value(shape: &Shape, arrays: &mut impl Iterator<Item = hlo_interp::Tensor>) -> Option<Value> {
    match shape {
        Shape::Array(_) => arrays.next().map(Value::from),
        Shape::Tuple(parts) => {
            let parts: Option<Vec<Value>> = parts.iter().map(|s| value(s, arrays)).collect();
            parts.map(Value::tuple)
        }
        Shape::Token | Shape::Buffer(_) | Shape::Opaque => None,
    }
}
