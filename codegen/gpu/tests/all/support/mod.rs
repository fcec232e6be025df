//! Programs as text, compiled to PTX, interpreted, and compared with the interpreter of HLO.

pub(crate) mod faults;

use hlo::{ArrayLiteral, ArrayShape, Buffer, ElementType, Literal, Module, Shape};
use hlo_codegen::program::arrays;
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use hlo_gpu::arch::Arch;
use hlo_gpu::compile::{self, Options};
use hlo_gpu::interpreted::{Interpreted, Modules};
use hlo_gpu::program::Program;
use hlo_gpu::run::{self, Limits};
use hlo_library_base::memory::array_bytes;

/// How far a float may be from the reference, relative to the largest magnitude of the array it is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance(pub(crate) f64);

/// All bits.
pub(crate) const EXACT: Tolerance = Tolerance(0.0);

/// A program of this text. Panics if it is none.
pub(crate) fn parse(text: &str) -> Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let module = parsed.module.unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics));
    let problems = hlo::verify::verify(&module);
    assert!(problems.is_empty(), "{problems:?}\n{text}");
    module
}

/// Compiles a program.
pub(crate) fn compiled(module: &Module, arch: Arch) -> Program {
    compiled_with(module, &Options { arch, ..Options::default() })
}

/// Compiles a program as options say.
pub(crate) fn compiled_with(module: &Module, options: &Options) -> Program {
    let emission = compile::emission(module, options).unwrap_or_else(|e| panic!("{e}"));
    emission.assemble(true, &mut ()).unwrap_or_else(|e| panic!("{e}")).program
}

/// Numbers of a linear congruential generator.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// An array of small numbers: floats in [-2, 2], integers in [-8, 8] or [0, 16], all of those of a byte.
    pub(crate) fn array(&mut self, shape: &ArrayShape) -> ArrayLiteral {
        let n = shape.elements();
        let ty = shape.element_type;
        let mut float = || (self.next() % 4097) as f64 / 1024.0 - 2.0;
        let buffer = match ty {
            ElementType::F32 => Buffer::F32((0..n).map(|_| float() as f32).collect()),
            ElementType::F64 => Buffer::F64((0..n).map(|_| float()).collect()),
            ElementType::BF16 => Buffer::BF16((0..n).map(|_| hlo::half::bf16::from_f64(float())).collect()),
            ElementType::F16 => Buffer::F16((0..n).map(|_| hlo::half::f16::from_f64(float())).collect()),
            ElementType::S32 => Buffer::S32((0..n).map(|_| (self.next() % 17) as i32 - 8).collect()),
            ElementType::S8 => Buffer::S8((0..n).map(|_| self.next() as i8).collect()),
            ElementType::U8 => Buffer::U8((0..n).map(|_| self.next() as u8).collect()),
            ElementType::Pred => Buffer::Pred((0..n).map(|_| self.next().is_multiple_of(2)).collect()),
            other => {
                let bytes = usize::try_from(array_bytes(shape).unwrap()).unwrap();
                let bytes: Vec<u8> = (0..bytes).map(|_| self.next() as u8 & 15).collect();
                buffer_of(other, &bytes)
            }
        };
        ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() }
    }
}

/// Arguments for a program's parameters, all of them arrays.
pub(crate) fn arguments(module: &Module, seed: u64) -> Vec<Literal> {
    let mut numbers = Numbers(seed);
    let shape = module.program_shape(module.entry()).unwrap();
    let one = |s: &Shape| Literal::Array(numbers.array(s.expect_array()));
    shape.parameters.iter().map(one).collect()
}

/// Runs a program in the interpreter of PTX. Panics with what the checker reports.
pub(crate) fn interpreted(program: &Program, arguments: &[Literal]) -> Vec<ArrayLiteral> {
    let modules = Modules::new(program).unwrap_or_else(|e| panic!("{e}\n{}", program.ptx.join("\n")));
    let mut device = Interpreted::new(program, modules, hlo_ptx::Options::default(), 1 << 32);
    let arguments: Vec<&Literal> = arguments.iter().collect();
    run::execute(program, &mut device, &arguments, Limits::default())
        .unwrap_or_else(|e| panic!("{e}\n{}", program.ptx.join("\n")))
}

fn floats(buffer: &Buffer) -> Option<Vec<f64>> {
    Some(match buffer {
        Buffer::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
        Buffer::F64(v) => v.clone(),
        Buffer::BF16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Buffer::F16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Buffer::C64(v) => v.iter().flat_map(|x| [f64::from(x.re), f64::from(x.im)]).collect(),
        Buffer::C128(v) => v.iter().flat_map(|x| [x.re, x.im]).collect(),
        _ => return None,
    })
}

/// Panics if arrays differ: floats by more than a tolerance, others at all.
pub(crate) fn assert_close(got: &ArrayLiteral, expected: &ArrayLiteral, tolerance: Tolerance, what: &str) {
    assert_eq!(got.dims, expected.dims, "{what}");
    if bytes_of(&got.buffer) == bytes_of(&expected.buffer) {
        return;
    }
    let both = floats(&got.buffer).zip(floats(&expected.buffer));
    let Some((got, expected)) = both.filter(|_| tolerance.0 > 0.0) else {
        panic!("{what}: got {:?}\nexpected {:?}", got.buffer, expected.buffer);
    };
    let scale = expected.iter().filter(|x| x.is_finite()).fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    for (i, (a, b)) in got.iter().zip(&expected).enumerate() {
        let same = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance.0 * scale;
        assert!(same, "{what}: element {i} is {a}, expected {b} (scale {scale})");
    }
}

/// Compiles a program for an architecture, runs it on arguments of a seed, and compares with the interpreter.
/// Returns the program.
pub(crate) fn check_on(text: &str, arch: Arch, tolerance: Tolerance, seed: u64) -> Program {
    check_with(text, &Options { arch, ..Options::default() }, tolerance, seed)
}

/// [`check_on`] of a program that is compiled as options say.
pub(crate) fn check_with(text: &str, options: &Options, tolerance: Tolerance, seed: u64) -> Program {
    let module = parse(text);
    let arguments = arguments(&module, seed);
    let expected = hlo_interp::Interpreter::new(&module, hlo_interp::Options::default())
        .run(arguments.iter().cloned().map(hlo_interp::Value::from_literal).collect())
        .unwrap_or_else(|e| panic!("{e:?}"));
    let program = compiled_with(&module, options);
    let got = interpreted(&program, &arguments);
    let expected: Vec<ArrayLiteral> =
        expected.arrays().into_iter().map(hlo_interp::value::Tensor::to_literal).collect();
    assert_eq!(got.len(), expected.len());
    assert_eq!(arrays(&program.result).count(), got.len());
    for (i, (a, b)) in got.iter().zip(&expected).enumerate() {
        assert_close(a, b, tolerance, &format!("result {i} of\n{text}\n{}", program.ptx.join("\n")));
    }
    program
}

/// [`check_on`] an H100.
pub(crate) fn check(text: &str, tolerance: Tolerance) -> Program {
    check_on(text, Arch::Sm90, tolerance, 1)
}
