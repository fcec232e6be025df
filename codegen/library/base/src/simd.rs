//! Hot loops for the vectors of the machine that runs them: the crate is compiled for the oldest machine that
//! is supported.

#[cfg(target_arch = "x86_64")]
use crate::isa::Features;

/// What is run for the widest vectors: a closure, or, if it is too large to be inlined where a closure would
/// be called, a type of its own.
pub trait Work {
    /// What it gives.
    type Out;

    /// To be marked `#[inline(always)]`, and so what it calls in hot loops.
    fn run(self) -> Self::Out;
}

impl<R, F: FnOnce() -> R> Work for F {
    type Out = R;

    #[inline(always)]
    fn run(self) -> R {
        self()
    }
}

/// Runs `work` with its body, and what is inlined into it, compiled for the widest vectors of this machine.
/// Results must not depend on it: nothing in this crate contracts or reassociates floating-point arithmetic
/// by itself.
#[cfg(target_arch = "x86_64")]
pub fn vectorized<W: Work>(work: W) -> W::Out {
    if Features::here().avx512 {
        // SAFETY: the machine has what the function was compiled for.
        return unsafe { wide(work) };
    }
    work.run()
}

/// Runs `work`: the crate is compiled for all vectors that such machines have.
#[cfg(not(target_arch = "x86_64"))]
pub fn vectorized<W: Work>(work: W) -> W::Out {
    work.run()
}

/// Multiversioning of one of several specializations: `work`, compiled for AVX-512, where the machine has it,
/// and `otherwise` elsewhere, so that the baseline's code is compiled once for all specializations.
#[cfg(target_arch = "x86_64")]
pub fn vectorized_or<W: Work>(work: W, otherwise: impl FnOnce() -> W::Out) -> W::Out {
    if Features::here().avx512 {
        // SAFETY: the machine has what the function was compiled for.
        return unsafe { wide(work) };
    }
    otherwise()
}

/// Runs `work`.
#[cfg(not(target_arch = "x86_64"))]
pub fn vectorized_or<W: Work>(work: W, _otherwise: impl FnOnce() -> W::Out) -> W::Out {
    work.run()
}

/// # Safety
/// The machine has AVX-512 F, BW, CD, DQ and VL.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn wide<W: Work>(work: W) -> W::Out {
    work.run()
}
