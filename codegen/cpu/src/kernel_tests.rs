//! Kernels of single requests, compiled and called by themselves: what tests of emission run. Arrays are
//! stored between guard pages of their own, so what is read or written outside of one ends the test.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    dead_code,
    reason = "a test fails by panicking"
)]

use std::time::Duration;

use hlo::elided::splitmix64;
use hlo::{
    ArrayLiteral, ArrayShape, Bits, Buffer, BufferOf, ElementType, Literal, Module, Shape, TypeClass,
    with_buffer, with_element_type,
};
use hlo_codegen::kernel::{Kernel, Progress, Request};
use hlo_codegen::runtime::object::{Code, externals};
use hlo_codegen::runtime::raw::bytes_of;
use hlo_interp::{Interpreter, Options, Value};
use hlo_library_base::KernelFn;
use hlo_llvm::{Level, Target, new_context};

use crate::Unit;

/// Some bytes, the last of which is the last before a page that cannot be touched.
pub(crate) struct Guarded {
    mapping: *mut u8,
    mapped: usize,
    start: *mut u8,
    bytes: usize,
}

/// The largest that a machine may have.
const PAGE: usize = if cfg!(target_arch = "aarch64") { 1 << 16 } else { 1 << 12 };

impl Guarded {
    pub(crate) fn new(bytes: usize) -> Self {
        let usable = bytes.next_multiple_of(64).next_multiple_of(PAGE);
        let mapped = usable + 2 * PAGE;
        let flags = rustix::mm::MapFlags::PRIVATE;
        let protection = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at no given address; the pages at its ends are within it.
        unsafe {
            let mapping =
                rustix::mm::mmap_anonymous(std::ptr::null_mut(), mapped, protection, flags).unwrap();
            let none = rustix::mm::MprotectFlags::empty();
            rustix::mm::mprotect(mapping, PAGE, none).unwrap();
            rustix::mm::mprotect(mapping.byte_add(PAGE + usable), PAGE, none).unwrap();
            let mapping = mapping.cast::<u8>();
            // Arrays are aligned to 64 bytes: their last bytes are as close to the page as that allows.
            let start = mapping.add(PAGE + usable - bytes.next_multiple_of(64));
            Self { mapping, mapped, start, bytes }
        }
    }

    fn of(buffer: &Buffer) -> Self {
        let bytes = bytes_of(buffer);
        let mut guarded = Self::new(bytes.len());
        guarded.slice_mut().copy_from_slice(bytes);
        guarded
    }

    fn slice_mut(&mut self) -> &mut [u8] {
        // SAFETY: as many bytes were mapped there, and this owns them.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }

    fn buffer(&mut self, ty: ElementType) -> Buffer {
        let bytes = self.slice_mut().chunks(ty.storage_bytes()).map(|c| {
            let mut wide = [0; 16];
            wide[..c.len()].copy_from_slice(c);
            u128::from_le_bytes(wide)
        });
        with_element_type!(ty, T => T::wrap(bytes.map(<T as Bits>::from_bits).collect()))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing else has its address any more.
        unsafe { rustix::mm::munmap(self.mapping.cast(), self.mapped).unwrap() };
    }
}

/// A compiled request.
pub(crate) struct Compiled {
    pub(crate) kernel: Kernel,
    code: Code,
    pub(crate) time: Duration,
}

pub(crate) fn parse(text: &str) -> Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let module = parsed.module.unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics));
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{found:?}\n{text}");
    module
}

pub(crate) fn targets() -> Vec<Target> {
    let mut all = Target::tested(Level::O1).unwrap();
    all[0] = all[0].at(Level::O2);
    all
}

pub(crate) fn compile(module: &Module, request: Request, target: &Target) -> Result<Compiled, String> {
    let context = new_context();
    let begin = cpu_time();
    let llvm = context.create_module("test");
    target.prepare(&llvm).unwrap();
    let builder = context.create_builder();
    let unit = Unit { context: &context, module: &llvm, builder: &builder, target, lines: None };
    let kernel = unit.emit(module, request, "kernel").map_err(|e| e.to_string())?;
    if std::env::var_os("HLO_SHOW_IR").is_some() {
        eprintln!("{}", llvm.print_to_string());
    }
    target.optimize(&llvm).map_err(|e| format!("{e}\n{}", llvm.print_to_string()))?;
    let object = target.object(&llvm).unwrap();
    let code = Code::load(&object, &externals).unwrap();
    Ok(Compiled { kernel, code, time: cpu_time() - begin })
}

impl Compiled {
    /// Calls all phases, in ranges of that many grains.
    pub(crate) fn call(&self, arguments: &[*mut u8], grains: u64) {
        let mut scratch = Guarded::new(self.kernel.scratch as usize);
        let mut arguments = arguments.to_vec();
        if self.kernel.scratch > 0 {
            // Anything may be in there.
            scratch.slice_mut().fill(0xa5);
            arguments.push(scratch.start);
        }
        for phase in &self.kernel.phases {
            // SAFETY: the symbol is of a kernel; the caller gives arguments as it has them.
            unsafe {
                let function = self.code.kernel(&phase.symbol).unwrap();
                if self.kernel.iterates {
                    iterate(function, &arguments, grains);
                    continue;
                }
                let mut begin = 0;
                while begin < phase.units {
                    let end = (begin + phase.grain.saturating_mul(grains)).min(phase.units);
                    function(arguments.as_ptr(), begin, end);
                    begin = end;
                }
            }
        }
    }
}

/// Runs all iterations of a loop, a given number per call.
unsafe fn iterate(function: KernelFn, arguments: &[*mut u8], iterations: u64) {
    let mut begin = 0u64;
    loop {
        let end = begin.saturating_add(iterations).min(u64::MAX >> 1);
        // SAFETY: the caller gives arguments as the kernel has them, scratch memory last.
        let progress = unsafe {
            function(arguments.as_ptr(), begin, end);
            arguments[arguments.len() - 1].cast::<Progress>().read()
        };
        assert!(progress.iterations >= begin && progress.iterations <= end, "{progress:?}");
        if progress.goes_on == 0 {
            return;
        }
        assert_eq!(progress.iterations, end);
        begin = end;
    }
}

/// An argument: any bits of narrow types, small numbers and some special ones of others.
pub(crate) fn argument(shape: &Shape, seed: u64, limit: Option<i64>) -> Literal {
    let Shape::Array(array) = shape else {
        let parts = shape.as_tuple().unwrap_or_default();
        return Literal::Tuple(
            parts.iter().enumerate().map(|(i, s)| argument(s, seed + 77 * i as u64, limit)).collect(),
        );
    };
    let ty = array.element_type;
    let value = |i: usize| -> u128 {
        let r = splitmix64(seed.wrapping_mul(0x9e37_79b9).wrapping_add(i as u64));
        let special = limit.is_none() && r.is_multiple_of(61);
        let small = (r >> 40) as i64 % 2001 - 1000;
        let float = small as f64 / 64.0;
        let part = |bits: u32| -> u128 {
            let specials = [f64::NAN, -0.0, f64::INFINITY, 1e-310];
            let float = if special { specials[(r >> 8) as usize % 4] } else { float };
            if bits == 32 { u128::from((float as f32).to_bits()) } else { u128::from(float.to_bits()) }
        };
        match ty.class() {
            TypeClass::Pred => u128::from(r >> 63),
            TypeClass::Float if ty.bits() >= 32 => part(ty.bits()),
            TypeClass::Complex => part(ty.bits() / 2) | part(ty.bits() / 2) << (ty.bits() / 2),
            TypeClass::Float => match ty {
                ElementType::BF16 => u128::from((float as f32).to_bits() >> 16),
                ElementType::F16 => u128::from(hlo::half::f16::from_f64(float).to_bits()),
                _ => u128::from(r >> 32),
            },
            TypeClass::Signed | TypeClass::Unsigned => match limit {
                Some(limit) => i128::from((r >> 33) as i64 % (limit + 4) - 2).cast_unsigned(),
                None => u128::from(r),
            },
        }
    };
    let n = array.elements();
    let buffer =
        with_element_type!(ty, T => T::wrap((0..n).map(|i| <T as Bits>::from_bits(value(i))).collect()));
    Literal::Array(ArrayLiteral { dims: array.dims.clone(), buffer: buffer.into() })
}

/// How far results may be from the interpreter's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Close {
    /// The same bits.
    Exact,
    /// Relative to the larger magnitude, or absolute for numbers below 1.
    Within(f64),
}

fn same(a: &Buffer, b: &Buffer, close: Close) -> Option<String> {
    with_buffer!(a, x => {
        let y = BufferOf::slice(b)?;
        for (i, (&p, &q)) in x.iter().zip(y).enumerate() {
            let bits = |v| Bits::bits(v);
            if bits(p) == bits(q) {
                continue;
            }
            if let Close::Within(bound) = close {
                let number = |v: u128| match a.element_type() {
                    ElementType::F32 => f64::from(f32::from_bits(v as u32)),
                    ElementType::F64 => f64::from_bits(v as u64),
                    ElementType::BF16 => f64::from(f32::from_bits((v as u32) << 16)),
                    ElementType::F16 => hlo::half::f16::from_bits(v as u16).to_f64(),
                    ElementType::C64 => f64::from(f32::from_bits(v as u32)) + f64::from(f32::from_bits((v >> 32) as u32)),
                    _ => 0.0,
                };
                let (p, q) = (number(bits(p)), number(bits(q)));
                if (p - q).abs() <= bound * p.abs().max(q.abs()).max(1.0) || p.is_nan() && q.is_nan() {
                    continue;
                }
            }
            return Some(format!("element {i} of {}: {p:?}, must be {q:?}", x.len()));
        }
        None
    })
}

/// The request that the root of the entry is.
fn request(module: &Module) -> Request {
    let root = module.root(module.entry());
    if module.instr(root).opcode == hlo::Opcode::While { Request::Loop(root) } else { Request::Fusion(root) }
}

/// Compiles the root of the entry, which must be a fusion of the entry's parameters, for all targets, and
/// compares with the interpreter.
pub(crate) fn check_with(text: &str, seed: u64, limit: Option<i64>, close: Close) {
    let module = parse(text);
    let root = module.root(module.entry());
    let parameters: Vec<Shape> = module
        .computation(module.entry())
        .parameters()
        .iter()
        .flatten()
        .map(|&p| module.instr(p).shape.clone())
        .collect();
    let literals: Vec<Literal> =
        parameters.iter().enumerate().map(|(i, s)| argument(s, seed + 1000 * i as u64, limit)).collect();
    let values = literals.iter().map(|l| Value::from_literal(l.clone())).collect();
    let expected = Interpreter::new(&module, Options::default()).run(values).unwrap().into_literal();
    for target in targets() {
        let compiled = compile(&module, request(&module), &target).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for grains in [1, 7, u64::MAX] {
            let mut inputs: Vec<Guarded> = Vec::new();
            for l in &literals {
                inputs.extend(l.arrays().iter().map(|a| Guarded::of(&a.buffer)));
            }
            let mut results: Vec<Guarded> = expected
                .arrays()
                .iter()
                .enumerate()
                .map(|(i, a)| match in_place(&module, root, i, &literals) {
                    Some(buffer) => Guarded::of(&buffer),
                    None => Guarded::new(a.buffer.len() * a.buffer.element_type().storage_bytes()),
                })
                .collect();
            let mut check = |inputs: &mut [Guarded], over: &[Option<usize>]| {
                let mut arguments: Vec<*mut u8> = inputs.iter().map(|g| g.start).collect();
                let address = |(r, &over): (&Guarded, &Option<usize>)| over.map_or(r.start, |o| arguments[o]);
                let addresses: Vec<*mut u8> = results.iter().zip(over).map(address).collect();
                arguments.extend(addresses);
                compiled.call(&arguments, grains);
                for (i, a) in expected.arrays().iter().enumerate() {
                    let at = over[i].map_or(&mut results[i], |o| &mut inputs[o]);
                    if let Some(difference) = same(&at.buffer(a.buffer.element_type()), &a.buffer, close) {
                        let target = target.cpu();
                        panic!("result {i} {difference} (grains {grains}, {target}, over {over:?})\n{text}");
                    }
                }
            };
            check(&mut inputs, &vec![None; expected.arrays().len()]);
            let over = over_operands(&module, root, expected.arrays().len());
            if over.iter().any(Option::is_some) {
                check(&mut inputs, &over);
            }
        }
    }
}

/// For each result the operand over which it may be written, if there is one that no other result has.
fn over_operands(module: &Module, root: hlo::InstrId, results: usize) -> Vec<Option<usize>> {
    let mut over = vec![None; results];
    for pair in hlo_opt::buffers::in_place::pairs(module, root, false) {
        let (slot, result) = (pair.slot as usize, pair.result as usize);
        let may = pair.sharing == hlo_opt::buffers::in_place::Sharing::May && pair.leaf == 0;
        let arrays =
            module.instr(root).operands().iter().all(|&o| module.instr(o).shape.as_array().is_some());
        if may && arrays && over[result].is_none() && !over.contains(&Some(slot)) {
            over[result] = Some(slot);
        }
    }
    over
}

/// The initial contents of a result that shares memory with an operand.
fn in_place(module: &Module, root: hlo::InstrId, leaf: usize, arguments: &[Literal]) -> Option<Buffer> {
    let computation = module.instr(root).attrs.computation(hlo::AttrKey::Calls)?;
    let mut at = module.root(computation);
    if module.instr(at).opcode == hlo::Opcode::Tuple {
        at = module.instr(at).operands()[leaf];
    }
    if !matches!(module.instr(at).opcode, hlo::Opcode::DynamicUpdateSlice | hlo::Opcode::Scatter) {
        return None;
    }
    let number = module.instr(module.instr(at).operands()[0]).parameter_number()?;
    arguments.get(usize::try_from(number).ok()?)?.as_array().map(|a| a.clone().into_buffer())
}

pub(crate) fn check(text: &str) {
    check_with(text, 1, None, Close::Exact);
}

/// What this thread has run for, so that others on the machine do not count.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split_whitespace().next().and_then(|x| x.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// Prints how long a request takes to compile and to run on this thread, and what it moves a second.
pub(crate) fn measure(name: &str, text: &str) {
    let module = parse(text);
    let target = Target::host(Level::O2).unwrap();
    compile(&module, request(&module), &target).unwrap();
    let compiled = compile(&module, request(&module), &target).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut all = Vec::new();
    for (i, &p) in module.computation(module.entry()).parameters().iter().flatten().enumerate() {
        for shape in module.instr(p).shape.leaves() {
            let array = shape.expect_array();
            let small = ArrayShape::new(array.element_type, &[(array.elements() as i64).min(1 << 16)]);
            let literal = argument(&small.into(), i as u64 * 1000, Some(90_000));
            let mut part = Guarded::of(&literal.arrays()[0].buffer);
            // The same numbers again and again: made quickly.
            let mut guarded = Guarded::new(array.elements() * array.element_type.storage_bytes());
            let bytes = part.slice_mut();
            guarded
                .slice_mut()
                .chunks_mut(bytes.len().max(1))
                .for_each(|c| c.copy_from_slice(&bytes[..c.len()]));
            all.push(guarded);
        }
    }
    for shape in module.instr(module.root(module.entry())).shape.leaves() {
        let array = shape.expect_array();
        all.push(Guarded::new(array.elements() * array.element_type.storage_bytes()));
    }
    let arguments: Vec<*mut u8> = all.iter().map(|g| g.start).collect();
    compiled.call(&arguments, u64::MAX);
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let begin = cpu_time();
        compiled.call(&arguments, u64::MAX);
        best = best.min(cpu_time() - begin);
    }
    let bytes: u64 = compiled.kernel.phases.iter().map(|p| p.bytes).sum();
    let rate = bytes as f64 / best.as_secs_f64() / 1e9;
    println!(
        "{name:12} compiled in {:6.2} ms, ran in {:9.1} us, {rate:6.2} GB/s",
        compiled.time.as_secs_f64() * 1e3,
        best.as_secs_f64() * 1e6
    );
}
