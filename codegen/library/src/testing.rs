//! Operations against the interpreter: the same bits (or numbers close by), for one to three threads.

use std::cell::Cell;

use hlo::elided::splitmix64;
use hlo::{
    Bits, Buffer, BufferOf, ElementType, InstrId, Literal, Module, Shape, TypeClass, with_buffer,
    with_element_type,
};
use hlo_interp::{Interpreter, Options, Value};
use hlo_library_base::pool::Pool;
use hlo_library_base::portable::Function;
use hlo_library_base::{Call, KernelFn};

use super::LibraryCall;

/// A module that must be right.
pub(super) fn parse(text: &str) -> Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let module = parsed.module.unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics));
    let said = hlo::verify::verify(&module);
    assert!(!said.has_errors(), "{said:?}\n{text}");
    module
}

/// Random numbers (SplitMix64).
pub(super) struct Random(Cell<u64>);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    pub(super) fn next(&self) -> u64 {
        let drawn = splitmix64(self.0.get());
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        drawn
    }

    pub(super) fn below(&self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// Elements: some of any bits, some few different ones, floats of ordinary size. `specials`: NaNs and
    /// infinities among them.
    pub(super) fn buffer(&self, ty: ElementType, n: usize, specials: bool) -> Buffer {
        with_element_type!(ty, T => self.elements::<T>(n, specials))
    }

    fn elements<T: BufferOf>(&self, n: usize, specials: bool) -> Buffer {
        let class = T::TYPE.class();
        let number = |bits: u64| -> u128 {
            // A number of ordinary size from few bits.
            let x = (bits % 41) as f64 / 4.0 - 5.0;
            with_element_type!(T::TYPE, U => bits_of_number::<U>(x, bits))
        };
        let wild = |bits: u64| u128::from(bits) | u128::from(self.next()) << 64;
        let element = || match (self.below(8), class) {
            (0..=3, _) => number(self.next()),
            (_, TypeClass::Float | TypeClass::Complex) if !specials => number(self.next()),
            (4, _) => number(self.next() % 3),
            (5, TypeClass::Float) if T::TYPE.bits() > 8 => {
                // NaNs of both signs and several payloads, infinities, zeros.
                let top = 1u128 << (T::TYPE.bits() - 1);
                let nan = with_element_type!(T::TYPE, U => bits_of_number::<U>(f64::NAN, 0));
                [nan, nan | top, nan | 1, nan | top | 3, 0, top][self.below(6) as usize]
            }
            (_, _) => wild(self.next()),
        };
        T::wrap((0..n).map(|_| T::from_bits(element())).collect())
    }
}

fn bits_of_number<T: BufferOf>(x: f64, bits: u64) -> u128 {
    match T::TYPE.class() {
        TypeClass::Pred => u128::from(bits & 1),
        TypeClass::Signed | TypeClass::Unsigned => bits as u128 % 11,
        TypeClass::Float => with_float_bits(T::TYPE, x),
        TypeClass::Complex => {
            let part = if T::TYPE == ElementType::C64 { ElementType::F32 } else { ElementType::F64 };
            with_float_bits(part, x) | with_float_bits(part, (bits % 7) as f64 - 3.0) << part.bits()
        }
    }
}

fn with_float_bits(ty: ElementType, x: f64) -> u128 {
    let one = hlo_arithmetic::scalar::convert::<f64, f64>(x);
    with_element_type!(ty, T => hlo_arithmetic::scalar::convert::<f64, T>(one).bits())
}

/// Arguments for a module's entry.
pub(super) fn arguments(module: &Module, random: &Random, specials: bool) -> Vec<Literal> {
    let parameters = module.computation(module.entry()).parameters().to_vec();
    let argument = |p: Option<InstrId>| {
        let shape = module.instr(p.unwrap()).shape.expect_array().clone();
        let buffer = random.buffer(shape.element_type, shape.elements(), specials);
        Literal::Array(hlo::ArrayLiteral { dims: shape.dims, buffer: buffer.into() })
    };
    parameters.into_iter().map(argument).collect()
}

/// What the interpreter gives, its arrays in order.
pub(super) fn interpreted(module: &Module, arguments: &[Literal]) -> Vec<Buffer> {
    let arguments = arguments.iter().cloned().map(Value::from_literal).collect();
    let result = Interpreter::new(module, Options::default()).run(arguments).unwrap();
    result.arrays().into_iter().map(|t| t.buffer().clone()).collect()
}

/// Memory aligned as the runtime's.
pub(super) struct Memory(Vec<Block>, usize);

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block(#[expect(dead_code, reason = "memory")] [u8; 64]);

impl Memory {
    pub(super) fn new(bytes: usize) -> Self {
        Self(vec![Block([0xA5; 64]); bytes.div_ceil(64) + 1], bytes)
    }

    pub(super) fn pointer(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    fn of(buffer: &Buffer) -> Self {
        let bytes = with_buffer!(buffer, v => bytes(v));
        let mut memory = Self::new(bytes.len());
        // SAFETY: as many bytes were allocated.
        unsafe { memory.pointer().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        memory
    }

    fn into_buffer(mut self, ty: ElementType) -> Buffer {
        fn elements<T: BufferOf>(memory: &mut Memory) -> Buffer {
            let n = memory.1 / size_of::<T>();
            // SAFETY: the operation wrote elements of the type.
            T::wrap(unsafe { std::slice::from_raw_parts(memory.pointer().cast::<T>(), n) }.to_vec())
        }
        with_element_type!(ty, T => elements::<T>(&mut self))
    }
}

fn bytes<T>(v: &[T]) -> &[u8] {
    // SAFETY: elements have no padding.
    unsafe { std::slice::from_raw_parts(v.as_ptr().cast(), size_of_val(v)) }
}

/// Runs the root of a module's entry natively on these threads.
pub(super) fn called(
    module: &Module,
    arguments: &[Literal],
    regions: &[KernelFn],
    threads: usize,
) -> Vec<Buffer> {
    let root = module.root(module.entry());
    let op = LibraryCall::of(module, root)
        .expect("an operation of this family")
        .unwrap_or_else(|e| panic!("{e:?}"));
    assert!(op.regions().len() <= regions.len(), "kernels needed: {:?}", op.regions());
    run(module, &op, arguments, regions, threads)
}

/// What an operation gives that stands for the root of a module's entry.
pub(super) fn run(
    module: &Module,
    op: &LibraryCall,
    arguments: &[Literal],
    regions: &[KernelFn],
    threads: usize,
) -> Vec<Buffer> {
    let root = module.root(module.entry());
    let mut memory = Vec::new();
    for &operand in module.instr(root).operands() {
        let mut upto = module.clone();
        upto.set_root(module.entry(), operand);
        memory.extend(interpreted(&upto, arguments).iter().map(Memory::of));
    }
    let given = memory.len();
    let types: Vec<ElementType> = module
        .instr(root)
        .shape
        .leaves()
        .into_iter()
        .map(|s: &Shape| s.expect_array().element_type)
        .collect();
    for leaf in module.instr(root).shape.leaves() {
        let shape = leaf.expect_array();
        memory.push(Memory::new(shape.elements() * shape.element_type.storage_bytes()));
    }
    let pointers: Vec<*mut u8> = memory.iter_mut().map(Memory::pointer).collect();
    let mut scratch = Memory::new(usize::try_from(op.scratch_bytes()).unwrap());
    let pool = std::sync::Arc::new(Pool::new(threads));
    let regions: Vec<Function> = regions.iter().map(|&f| Function::Machine(f)).collect();
    let call = Call {
        arguments: &pointers,
        scratch: scratch.pointer(),
        regions: &regions,
        epilogue: None,
        prepared: std::ptr::null(),
        pool: &pool,
    };
    // SAFETY: memory of the right sizes.
    unsafe { op.run(call) };
    memory.into_iter().skip(given).zip(types).map(|(m, ty)| m.into_buffer(ty)).collect()
}

/// Checks that the root of a module's entry gives the interpreter's bits (NaNs as NaNs unless `payloads`),
/// whatever the number of threads.
pub(super) fn check(text: &str, seed: u64, specials: bool, payloads: bool, regions: &[KernelFn]) {
    let module = parse(text);
    let arguments = arguments(&module, &Random::new(seed), specials);
    let expected = interpreted(&module, &arguments);
    for threads in 1..=3 {
        let got = called(&module, &arguments, regions, threads);
        assert_eq!(got.len(), expected.len());
        for (leaf, (got, expected)) in got.iter().zip(&expected).enumerate() {
            if let Some(at) = first_difference(got, expected, payloads) {
                let (g, e) = (
                    with_buffer!(got, v => format!("{:?}", v[at])),
                    with_buffer!(expected, v => format!("{:?}", v[at])),
                );
                panic!("leaf {leaf}, element {at}: {g}, not {e}; {threads} threads, seed {seed}\n{text}");
            }
        }
    }
}

fn first_difference(got: &Buffer, expected: &Buffer, payloads: bool) -> Option<usize> {
    fn of<T: BufferOf>(got: &[T], expected: &Buffer, payloads: bool) -> Option<usize> {
        let expected = T::slice(expected).unwrap();
        assert_eq!(got.len(), expected.len());
        // The text of a number shows its value, of a NaN nothing but that it is one.
        let alike = |a: T, b: T| !payloads && format!("{a:?}") == format!("{b:?}");
        let same = |a: T, b: T| a.bits() == b.bits() || alike(a, b);
        got.iter().zip(expected).position(|(&a, &b)| !same(a, b))
    }
    with_buffer!(got, v => of(v, expected, payloads))
}

/// Checks that the root of a module's entry gives numbers within `units` of rounding of the largest modulus
/// that occurs, the same for any number of threads.
pub(super) fn close(text: &str, seed: u64, units: f64) {
    close_with(text, seed, units, &[]);
}

/// [`close`], where zeros may have any sign.
pub(super) fn close_but_for_signs_of_zeros(text: &str, seed: u64, units: f64) {
    close_to(text, seed, units, &[], false);
}

/// [`close`] of an operation that applies computations.
pub(super) fn close_with(text: &str, seed: u64, units: f64, regions: &[KernelFn]) {
    close_to(text, seed, units, regions, true);
}

fn close_to(text: &str, seed: u64, units: f64, regions: &[KernelFn], signs: bool) {
    let module = parse(text);
    let arguments = arguments(&module, &Random::new(seed), false);
    let expected = interpreted(&module, &arguments);
    let one = called(&module, &arguments, regions, 1);
    for threads in 2..=3 {
        let several = called(&module, &arguments, regions, threads);
        assert!(
            one.iter().zip(&several).all(|(a, b)| first_difference(a, b, true).is_none()),
            "{threads} threads\n{text}"
        );
    }
    for (leaf, (got, expected)) in one.iter().zip(&expected).enumerate() {
        let (got_parts, expected_parts) = (parts(got), parts(expected));
        assert_eq!(got_parts.len(), expected_parts.len());
        let largest = expected_parts.iter().filter(|x| x.is_finite()).fold(1.0f64, |m, x| m.max(x.abs()));
        let unit = rounding(got.element_type()) * largest * units;
        for (i, (g, e)) in got_parts.iter().zip(&expected_parts).enumerate() {
            let same = g == e && (*g != 0.0 || g.is_sign_negative() == e.is_sign_negative());
            let near = (g - e).abs() <= unit && (*e != 0.0 || g != e || !signs);
            assert!(
                same || near || (g.is_nan() && e.is_nan()),
                "leaf {leaf}, part {i}: {g:e}, not {e:e}; seed {seed}\n{text}"
            );
        }
    }
}

/// The unit of rounding of a type's parts, relative.
fn rounding(ty: ElementType) -> f64 {
    match ty.real_part() {
        ElementType::F64 => f64::EPSILON,
        ElementType::F32 => f64::from(f32::EPSILON),
        ElementType::F16 => 1.0 / 1024.0,
        ElementType::BF16 => 1.0 / 128.0,
        _narrower => 0.25,
    }
}

/// All parts of all elements.
fn parts(buffer: &Buffer) -> Vec<f64> {
    fn of<T: BufferOf + hlo_arithmetic::scalar::Scalar>(v: &[T]) -> Vec<f64> {
        let number = |x: &T| match T::TYPE {
            ElementType::C64 => {
                let bits = x.bits();
                vec![f64::from(f32::from_bits(bits as u32)), f64::from(f32::from_bits((bits >> 32) as u32))]
            }
            ElementType::C128 => {
                vec![f64::from_bits(x.bits() as u64), f64::from_bits((x.bits() >> 64) as u64)]
            }
            _real => vec![hlo_arithmetic::scalar::convert::<T, f64>(*x)],
        };
        v.iter().flat_map(number).collect()
    }
    with_buffer!(buffer, v => of(v))
}

/// Checks that results are NaN where the interpreter's are, for operands with an infinity in the first half.
pub(super) fn check_not_finite(text: &str, seed: u64) {
    let module = parse(text);
    let mut arguments = arguments(&module, &Random::new(seed), false);
    let Literal::Array(array) = &mut arguments[0] else { panic!("no array") };
    array.buffer = with_buffer!(&*array.buffer, v => spoiled(v)).into();
    let expected = interpreted(&module, &arguments);
    let got = called(&module, &arguments, &[], 2);
    let nans = |b: &Buffer| parts(b).iter().map(|x| x.is_nan()).collect::<Vec<_>>();
    assert_eq!(nans(&got[0]), nans(&expected[0]), "{text}");
    assert!(nans(&got[0]).contains(&true) && nans(&got[0]).contains(&false), "{text}");
}

fn spoiled<T: BufferOf>(v: &[T]) -> Buffer {
    let mut v = v.to_vec();
    let part = T::TYPE.real_part();
    v[1] = T::from_bits(with_float_bits(part, f64::INFINITY));
    T::wrap(v)
}
