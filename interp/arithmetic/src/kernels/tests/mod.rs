//! Kernels against their definitions, term by term, with exact results from arbitrary-precision integers.

mod conv;
mod gemm;
mod sums;

use hlo::elided::splitmix64;
use std::fmt::Debug;

/// Runs `f` on pools of 1, 2 and 8 threads and on none, and requires the same result of all.
fn on_any_threads<T: PartialEq + Debug + Send>(f: impl Fn() -> T + Sync) -> T {
    let here = f();
    for threads in [1, 2, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        assert_eq!(pool.install(&f), here, "on {threads} threads");
    }
    here
}

/// A small deterministic generator (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        let drawn = splitmix64(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// Uniform in -1..1, with 53 random bits.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-52) - 1.0
    }

    fn units_f32(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit() as f32).collect()
    }

    fn units(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.unit()).collect()
    }
}

fn bits32(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn bits64(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}
