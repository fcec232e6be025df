//! The machine's limits (roofline), measured: bandwidth and arithmetic that profiles are compared with.

use std::time::{Duration, Instant};

use hlo_library_base::pool::Pool;

use super::arena::{Memory, OutOfMemory};

/// Limits of all threads of a pool together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// Memory bandwidth, bytes read and written per second: of arrays larger than any cache, with
    /// non-temporal stores.
    pub bytes_per_second: f64,
    /// `f32` operations per second: independent fused multiply-adds, which count as two.
    pub flops_per_second: f64,
}

/// The size of each of the two arrays of the memory test: several times the caches.
const ARRAY_BYTES: usize = 256 << 20;

impl Limits {
    /// Measures for about a third of a second.
    pub fn measure(pool: &Pool) -> Result<Self, OutOfMemory> {
        Ok(Self { bytes_per_second: stream(pool)?, flops_per_second: arithmetic(pool) })
    }
}

/// The best of several runs.
fn best(mut run: impl FnMut()) -> Duration {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..6).map(|_| time(&mut run)).min().unwrap_or(Duration::MAX)
}

fn stream(pool: &Pool) -> Result<f64, OutOfMemory> {
    let mut from = Memory::new(ARRAY_BYTES as u64)?;
    let mut to = Memory::new(ARRAY_BYTES as u64)?;
    // Memory that was never written is one page of zeros, which caches hold.
    from.bytes_mut().fill(1);
    let (from, to) = (from.bytes_mut().as_mut_ptr() as usize, to.bytes_mut().as_mut_ptr() as usize);
    let chunks = pool.threads() * 16;
    let time = best(|| {
        pool.run(chunks, &|chunk| {
            let at = |chunk: usize| ARRAY_BYTES / chunks * chunk;
            let (begin, end) = (at(chunk), at(chunk + 1));
            // SAFETY: parts of the two arrays, which are alive and of this length, each of one thread.
            unsafe { copy(from as *const u8, to as *mut u8, begin, end) };
        });
    });
    Ok(2.0 * ARRAY_BYTES as f64 / time.as_secs_f64())
}

/// # Safety
/// Both are valid from `begin` to `end`, and do not overlap.
unsafe fn copy(from: *const u8, to: *mut u8, begin: usize, end: usize) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has what it needs, and the rest is the caller's.
        return unsafe { copy_wide(from, to, begin, end) };
    }
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(from.add(begin), to.add(begin), end - begin) };
}

/// # Safety
/// As of [`copy`]; the arrays are aligned to 64 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn copy_wide(from: *const u8, to: *mut u8, begin: usize, end: usize) {
    use std::arch::x86_64::{_mm_sfence, _mm512_load_si512, _mm512_stream_si512};
    let mut at = begin.next_multiple_of(64);
    while at + 64 <= end {
        // SAFETY: inside of the caller's range, and aligned.
        unsafe { _mm512_stream_si512(to.add(at).cast(), _mm512_load_si512(from.add(at).cast())) };
        at += 64;
    }
    _mm_sfence();
}

fn arithmetic(pool: &Pool) -> f64 {
    const ROUNDS: u64 = 1 << 17;
    let chunks = pool.threads() * 16;
    let mut flops = 0;
    let time = best(|| {
        let each = std::sync::atomic::AtomicU64::new(0);
        pool.run(chunks, &|_| {
            each.store(multiply_add(ROUNDS), std::sync::atomic::Ordering::Relaxed);
        });
        flops = each.into_inner() * chunks as u64;
    });
    flops as f64 / time.as_secs_f64()
}

/// Does that many rounds of multiply-adds on registers alone; gives the number of operations.
fn multiply_add(rounds: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has it.
        return unsafe { multiply_add_512(rounds) };
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has it.
        return unsafe { multiply_add_256(rounds) };
    }
    let mut sums = [1.0_f32; 32];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = sum.mul_add(0.999, 0.001);
        }
    }
    std::hint::black_box(sums);
    2 * 32 * rounds
}

/// # Safety
/// The processor has AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn multiply_add_512(rounds: u64) -> u64 {
    use std::arch::x86_64::{_mm512_fmadd_ps, _mm512_set1_ps};
    let (a, b) = (_mm512_set1_ps(0.999), _mm512_set1_ps(0.001));
    // As many as cover the latency of the units that there are.
    let mut sums = [a; 16];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, a, b);
        }
    }
    std::hint::black_box(sums);
    2 * 16 * 16 * rounds
}

/// # Safety
/// The processor has FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,fma")]
unsafe fn multiply_add_256(rounds: u64) -> u64 {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_set1_ps};
    let (a, b) = (_mm256_set1_ps(0.999), _mm256_set1_ps(0.001));
    let mut sums = [a; 12];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, a, b);
        }
    }
    std::hint::black_box(sums);
    2 * 8 * 12 * rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_does_something() {
        let limits = Limits::measure(&Pool::new(2)).unwrap();
        assert!(limits.bytes_per_second > 1e8 && limits.flops_per_second > 1e7, "{limits:?}");
    }
}
