//! How far the elementary functions of other compilers are from the correctly rounded result, in ulp.
//! Measured by conformance/peers/functions.py; tables and method: docs/functions.md.
//!
//! A budget is the largest error seen, rounded up: the larger of one more ulp and a quarter more. Regions
//! where a compiler's error has no bound are not in it; docs/functions.md lists them.

use hlo::Opcode;

/// One function: ulp in f32, in f64, in f16 and bf16, and by the modulus in c64 and c128. 0: no more than the
/// table of opcodes grants.
pub(super) struct Row {
    pub(super) opcode: Opcode,
    pub(super) f32: u16,
    pub(super) f64: u16,
    pub(super) half: u16,
    pub(super) complex: u16,
}

/// jaxlib 0.10.2 on x86-64 with AVX-512.
pub(super) const XLA_CPU: &[Row] = &[
    Row { opcode: Opcode::Acosh, f32: 5, f64: 4, half: 4, complex: 7 },
    Row { opcode: Opcode::Asin, f32: 0, f64: 0, half: 0, complex: 7 },
    Row { opcode: Opcode::Asinh, f32: 4, f64: 4, half: 3, complex: 7 },
    Row { opcode: Opcode::Atanh, f32: 4, f64: 162, half: 3, complex: 7 },
    Row { opcode: Opcode::Cbrt, f32: 19, f64: 148, half: 3, complex: 0 },
    Row { opcode: Opcode::Cosh, f32: 30, f64: 620, half: 0, complex: 10 },
    Row { opcode: Opcode::Cosine, f32: 0, f64: 0, half: 0, complex: 39 },
    Row { opcode: Opcode::Erf, f32: 9, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Exponential, f32: 8, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::ExponentialMinusOne, f32: 8, f64: 5, half: 3, complex: 9 },
    Row { opcode: Opcode::Log, f32: 0, f64: 0, half: 0, complex: 160 },
    Row { opcode: Opcode::LogPlusOne, f32: 0, f64: 162, half: 3, complex: 162 },
    Row { opcode: Opcode::Logistic, f32: 0, f64: 0, half: 3, complex: 10 },
    Row { opcode: Opcode::Power, f32: 0, f64: 0, half: 0, complex: 22 },
    Row { opcode: Opcode::Rsqrt, f32: 0, f64: 0, half: 0, complex: 7 },
    Row { opcode: Opcode::Sine, f32: 0, f64: 0, half: 0, complex: 20 },
    Row { opcode: Opcode::Sinh, f32: 30, f64: 620, half: 0, complex: 20 },
    Row { opcode: Opcode::Tan, f32: 0, f64: 0, half: 3, complex: 9 },
    Row { opcode: Opcode::Tanh, f32: 7, f64: 9, half: 0, complex: 9 },
];

/// NVIDIA's documented errors of libdevice and of approximate instructions; `tanh`, `erf` and `logistic` from
/// the PTX that jaxlib 0.11.2 emits. Not measured on a GPU.
pub(super) const XLA_GPU: &[Row] = &[
    Row { opcode: Opcode::Acosh, f32: 5, f64: 4, half: 0, complex: 0 },
    Row { opcode: Opcode::Asinh, f32: 4, f64: 4, half: 0, complex: 0 },
    Row { opcode: Opcode::Atanh, f32: 4, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Divide, f32: 3, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Erf, f32: 9, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Logistic, f32: 5, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Sinh, f32: 4, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Sqrt, f32: 2, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Tanh, f32: 9, f64: 0, half: 0, complex: 0 },
];

/// iree-base-compiler 3.13.0, llvm-cpu, on x86-64 with AVX-512.
pub(super) const IREE: &[Row] = &[
    Row { opcode: Opcode::Acos, f32: 52, f64: 0, half: 0, complex: 53 },
    Row { opcode: Opcode::Acosh, f32: 4, f64: 4, half: 3, complex: 53 },
    Row { opcode: Opcode::Asin, f32: 52, f64: 0, half: 0, complex: 53 },
    Row { opcode: Opcode::Asinh, f32: 4, f64: 20, half: 0, complex: 53 },
    Row { opcode: Opcode::Atan2, f32: 52, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Atanh, f32: 4, f64: 12, half: 0, complex: 53 },
    Row { opcode: Opcode::Cbrt, f32: 15, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Cosh, f32: 30, f64: 620, half: 0, complex: 20 },
    Row { opcode: Opcode::Cosine, f32: 25, f64: 0, half: 0, complex: 20 },
    Row { opcode: Opcode::Erf, f32: 8, f64: 4, half: 0, complex: 0 },
    Row { opcode: Opcode::Exponential, f32: 8, f64: 0, half: 0, complex: 20 },
    Row { opcode: Opcode::ExponentialMinusOne, f32: 8, f64: 20, half: 0, complex: 0 },
    Row { opcode: Opcode::Log, f32: 0, f64: 0, half: 0, complex: 53 },
    Row { opcode: Opcode::LogPlusOne, f32: 0, f64: 39, half: 0, complex: 53 },
    Row { opcode: Opcode::Logistic, f32: 0, f64: 0, half: 3, complex: 20 },
    Row { opcode: Opcode::Power, f32: 203, f64: 1449, half: 22, complex: 0 },
    Row { opcode: Opcode::Rsqrt, f32: 0, f64: 0, half: 0, complex: 29 },
    Row { opcode: Opcode::Sine, f32: 29, f64: 0, half: 0, complex: 0 },
    Row { opcode: Opcode::Sinh, f32: 30, f64: 620, half: 0, complex: 0 },
    Row { opcode: Opcode::Sqrt, f32: 0, f64: 0, half: 0, complex: 29 },
    Row { opcode: Opcode::Tan, f32: 44, f64: 0, half: 3, complex: 0 },
    Row { opcode: Opcode::Tanh, f32: 7, f64: 0, half: 0, complex: 0 },
];

/// torch 2.15.0, eager, on x86-64 with AVX-512.
pub(super) const PYTORCH: &[Row] = &[
    Row { opcode: Opcode::Acos, f32: 0, f64: 0, half: 0, complex: 8 },
    Row { opcode: Opcode::Asin, f32: 0, f64: 0, half: 0, complex: 8 },
    Row { opcode: Opcode::Asinh, f32: 0, f64: 0, half: 0, complex: 7 },
    Row { opcode: Opcode::Atanh, f32: 0, f64: 0, half: 0, complex: 8 },
    Row { opcode: Opcode::Erf, f32: 0, f64: 0, half: 7, complex: 0 },
    Row { opcode: Opcode::LogPlusOne, f32: 0, f64: 0, half: 0, complex: 8 },
    Row { opcode: Opcode::Logistic, f32: 0, f64: 0, half: 0, complex: 7 },
    Row { opcode: Opcode::Power, f32: 0, f64: 0, half: 0, complex: 24 },
    Row { opcode: Opcode::Sqrt, f32: 2, f64: 2, half: 0, complex: 0 },
    Row { opcode: Opcode::Tan, f32: 0, f64: 0, half: 0, complex: 9 },
    Row { opcode: Opcode::Tanh, f32: 0, f64: 0, half: 0, complex: 8 },
];
