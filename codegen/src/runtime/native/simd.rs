//! Hot loops for the vectors of the machine that runs them: the crate is compiled for the oldest machine that is supported.

#[cfg(target_arch = "x86_64")]
use crate::isa::Features;

/// Calls `f` with its body, and what is inlined into it, compiled for the widest vectors of this machine. Results must not depend on it: nothing in this crate
/// contracts or reassociates floating-point arithmetic by itself.
#[cfg(target_arch = "x86_64")]
pub(super) fn vectorized<R>(f: impl FnOnce() -> R) -> R {
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    fn wide<R>(f: impl FnOnce() -> R) -> R {
        f()
    }
    if Features::here().avx512 {
        // SAFETY: the machine has what the function was compiled for.
        return unsafe { wide(f) };
    }
    f()
}

/// Calls `f`: the crate is compiled for all vectors that such machines have.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn vectorized<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Work too large to be inlined where it is a closure.
pub(super) trait Work {
    /// To be marked `#[inline(always)]`, and so what it calls in hot loops.
    fn run(self);
}

/// As [`vectorized`].
#[cfg(target_arch = "x86_64")]
pub(super) fn run_vectorized(work: impl Work) {
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    fn wide(work: impl Work) {
        work.run();
    }
    if Features::here().avx512 {
        // SAFETY: the machine has what the function was compiled for.
        return unsafe { wide(work) };
    }
    work.run();
}

/// Runs it: the crate is compiled for all vectors that such machines have.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run_vectorized(work: impl Work) {
    work.run();
}
