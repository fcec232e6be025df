//! Planning: `rustfft`'s planner for the instructions that this crate is compiled for.
//!
//! **Invariant:** one family of algorithms is compiled a build. `rustfft` is generic, so each family is
//! instantiated here for two element types, and its own [`rustfft::FftPlanner`], which chooses on the machine
//! where it runs, instantiates all of them: a tenth of the time that this crate takes to compile, for code
//! that no machine with AVX reaches.

use std::sync::Arc;

use rustfft::{Fft as Transform, FftDirection, FftNum};

/// AVX and FMA are part of the baseline, so that no machine that runs this build needs others.
#[cfg(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma"))]
type Algorithms<T> = rustfft::FftPlannerAvx<T>;

/// Neon on AArch64; on x86-64 without AVX scalar code.
#[cfg(not(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma")))]
type Algorithms<T> = rustfft::FftPlanner<T>;

/// Plans transforms; what several have in common is computed once.
pub(super) struct Planner<T: FftNum>(Algorithms<T>);

impl<T: FftNum> Planner<T> {
    pub(super) fn new() -> Self {
        #[cfg(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma"))]
        let algorithms =
            Algorithms::new().expect("invariant: f32 or f64, on a machine with what this is compiled for");
        #[cfg(not(all(target_arch = "x86_64", target_feature = "avx", target_feature = "fma")))]
        let algorithms = Algorithms::new();
        Self(algorithms)
    }

    /// The transform of `n` points, unnormalized in both directions.
    pub(super) fn plan(&mut self, n: usize, inverse: bool) -> Arc<dyn Transform<T>> {
        self.0.plan_fft(n, if inverse { FftDirection::Inverse } else { FftDirection::Forward })
    }
}
