//! Programs compiled for GPUs, in the interpreter of PTX against that of HLO: one binary, for LLVM is in it.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod arch;
mod convolution;
mod dot;
mod fft;
mod levels;
mod linalg;
mod loops;
mod one_device;
mod random;
mod reduce;
mod rows;
mod scatter;
mod sort;
mod stages;
mod support;
mod topk;
mod transpose;
mod windows;
