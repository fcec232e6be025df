//! Contractions over buffers: products of matrices and convolutions, for all element types.
//!
//! The arithmetic is that of [`hlo_arithmetic::kernels`], whose kernels are generic; here they are compiled,
//! once for all callers. In a crate of its own, because these loops are worth optimizing in every profile, and
//! the operations around them are not.

#![forbid(unsafe_code)]

use hlo::Buffer;
use hlo::num_complex::Complex;
use hlo_arithmetic::kernels::conv::{self, ConvShape};
use hlo_arithmetic::kernels::gemm::{self, Gemm, View};
use hlo_arithmetic::kernels::{Integer, Real};
use hlo_arithmetic::sum::{Accumulate, Rounded};

/// Which sums of products of two operands are computed.
#[derive(Clone, Copy, Debug)]
pub enum Contraction<'a> {
    /// Products of matrices.
    Product(Product),
    /// Convolutions of operands in canonical order ([`conv`]).
    Convolution(&'a ConvShape),
}

/// A batch of products of matrices; strides, in elements, are those of (batch, row, column).
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Their extents.
    pub extents: Gemm,
    /// Strides of the left operand.
    pub lhs: [usize; 3],
    /// Strides of the right operand.
    pub rhs: [usize; 3],
}

impl Product {
    fn views<'a, T>(&self, lhs: &'a [T], rhs: &'a [T]) -> (View<'a, T>, View<'a, T>) {
        let view = |data, [batch, row, column]: [usize; 3]| View { data, batch, row, column };
        (view(lhs, self.lhs), view(rhs, self.rhs))
    }
}

impl Contraction<'_> {
    /// Whether integers saturate to the result type; they wrap otherwise.
    pub fn saturates(&self) -> bool {
        match self {
            Contraction::Product(_) => false,
            Contraction::Convolution(_) => true,
        }
    }

    /// Computes dense operands of one type into a dense result: integers of whole bytes into their own type,
    /// `f32` and `f64` into any floating-point type, complex numbers into their own type. Panics on other
    /// types, and on sizes that do not fit, which are bugs of the caller.
    pub fn run(&self, mode: Accumulate, lhs: &Buffer, rhs: &Buffer, out: &mut Buffer) {
        macro_rules! all {
            (integers: $($integer:ident)*; floats: $($float:ident)*;) => {
                match (lhs, rhs, out) {
                    $((Buffer::$integer(lhs), Buffer::$integer(rhs), Buffer::$integer(out)) => {
                        self.int(lhs, rhs, out);
                    })*
                    $((Buffer::F32(lhs), Buffer::F32(rhs), Buffer::$float(out)) => {
                        self.real(mode, lhs, rhs, out);
                    }
                    (Buffer::F64(lhs), Buffer::F64(rhs), Buffer::$float(out)) => {
                        self.real(mode, lhs, rhs, out);
                    })*
                    (Buffer::C64(lhs), Buffer::C64(rhs), Buffer::C64(out)) => {
                        self.complex(mode, lhs, rhs, out);
                    }
                    (Buffer::C128(lhs), Buffer::C128(rhs), Buffer::C128(out)) => {
                        self.complex(mode, lhs, rhs, out);
                    }
                    (lhs, rhs, out) => unreachable!(
                        "invariant: the caller converted {} and {} to a type whose sums are {}",
                        lhs.element_type(),
                        rhs.element_type(),
                        out.element_type(),
                    ),
                }
            };
        }
        all! {
            integers: S8 S16 S32 S64 U8 U16 U32 U64;
            floats: F16 BF16 F32 F64 F8E5M2 F8E4M3 F8E4M3FN F8E4M3B11FNUZ F8E3M4 F8E5M2FNUZ F8E4M3FNUZ
                F8E8M0FNU F4E2M1FN F6E3M2FN F6E2M3FN;
        }
    }

    fn real<T: Real, O: Rounded>(&self, mode: Accumulate, lhs: &[T], rhs: &[T], out: &mut [O]) {
        match self {
            Contraction::Product(product) => {
                let (lhs, rhs) = product.views(lhs, rhs);
                gemm::real(mode, product.extents, lhs, rhs, out);
            }
            Contraction::Convolution(shape) => conv::real(mode, shape, lhs, rhs, out),
        }
    }

    fn complex<T: Real, O: Rounded>(
        &self,
        mode: Accumulate,
        lhs: &[Complex<T>],
        rhs: &[Complex<T>],
        out: &mut [Complex<O>],
    ) {
        match self {
            Contraction::Product(product) => {
                let (lhs, rhs) = product.views(lhs, rhs);
                gemm::complex(mode, product.extents, lhs, rhs, out);
            }
            Contraction::Convolution(shape) => conv::complex(mode, shape, lhs, rhs, out),
        }
    }

    fn int<T: Integer>(&self, lhs: &[T], rhs: &[T], out: &mut [T]) {
        match self {
            Contraction::Product(product) => {
                let (lhs, rhs) = product.views(lhs, rhs);
                gemm::int(product.extents, lhs, rhs, out);
            }
            Contraction::Convolution(shape) => conv::int(shape, lhs, rhs, out),
        }
    }
}
