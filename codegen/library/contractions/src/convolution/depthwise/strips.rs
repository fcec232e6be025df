//! Vectors of channels: several positions along the last axis, which have the same taps, at a time.

#[cfg(target_arch = "x86_64")]
use super::WIDTH;
use super::element::Element;

/// Positions along the last axis that have the same taps.
pub(super) struct Strip<'a, E> {
    pub(super) lhs: *const E,
    pub(super) rhs: *const f32,
    pub(super) out: *mut E,
    /// Their taps: offsets in the input and in the kernel.
    pub(super) taps: &'a [(isize, isize)],
    pub(super) count: usize,
    pub(super) step: isize,
    pub(super) result_step: isize,
    /// Features of all groups.
    pub(super) features: usize,
    /// Channels and features of a group.
    pub(super) group: [usize; 2],
    pub(super) kernel_channel_stride: isize,
}

impl<E: Element> Strip<'_, E> {
    /// # Safety
    /// What taps say is there, and so is the result.
    pub(super) unsafe fn plain(&self) {
        let [channels, features] = self.group;
        for position in 0..self.count as isize {
            for feature in 0..self.features {
                let mut sum = 0f32;
                // SAFETY: the caller's.
                unsafe {
                    for &(input, kernel) in self.taps {
                        for channel in 0..channels {
                            let from = self.lhs.offset(input + position * self.step);
                            let x = *from.add(feature / features * channels + channel);
                            let kernel = kernel + channel as isize * self.kernel_channel_stride;
                            sum = x.f32().mul_add(*self.rhs.offset(kernel).add(feature), sum);
                        }
                    }
                    *self.out.offset(position * self.result_step).add(feature) = E::of(sum);
                }
            }
        }
    }

    /// Blocks of positions outside, vectors of features inside: the elements that the windows of a block read
    /// stay in the first-level cache, and are read in memory order. `GROUPED`: a group has several channels
    /// or features.
    ///
    /// # Safety
    /// As of [`Self::plain`]; the machine has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) unsafe fn wide<const GROUPED: bool>(&self) {
        let mut position = 0;
        while position < self.count {
            // SAFETY: as the caller says; `match` takes no more positions than are left.
            position += unsafe {
                match self.count - position {
                    8.. => self.block::<GROUPED, 8>(position),
                    4.. => self.block::<GROUPED, 4>(position),
                    2.. => self.block::<GROUPED, 2>(position),
                    _one => self.block::<GROUPED, 1>(position),
                }
            };
        }
    }

    /// Computes all features of `P` positions, and returns `P`.
    ///
    /// # Safety
    /// As of [`Self::wide`]; the positions are there.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    unsafe fn block<const GROUPED: bool, const P: usize>(&self, position: usize) -> usize {
        use std::arch::x86_64::*;
        let [channels, features] = if GROUPED { self.group } else { [1, 1] };
        // Which channel of those that a vector of features sees each feature's first one is.
        let first: [i32; WIDTH] = std::array::from_fn(|lane| (lane / features * channels) as i32);
        // SAFETY: the caller's; masked lanes are not touched.
        unsafe {
            let first = _mm512_loadu_epi32(first.as_ptr());
            let lhs = self.lhs.offset(position as isize * self.step);
            let out = self.out.offset(position as isize * self.result_step);
            for feature in (0..self.features).step_by(WIDTH) {
                let n = (self.features - feature).min(WIDTH);
                let mask = ((1u32 << n) - 1) as __mmask16;
                let seen = ((1u32 << (n / features * channels)) - 1) as __mmask16;
                let (lhs, rhs) = (lhs.add(feature / features * channels), self.rhs.add(feature));
                let mut sums = [_mm512_setzero_ps(); P];
                for &(input, kernel) in self.taps {
                    let from = lhs.offset(input);
                    for channel in 0..channels {
                        let kernel = kernel + channel as isize * self.kernel_channel_stride;
                        let w = _mm512_maskz_loadu_ps(mask, rhs.offset(kernel));
                        let indices = _mm512_add_epi32(first, _mm512_set1_epi32(channel as i32));
                        for p in 0..P {
                            let mut x = E::load(seen, from.offset(p as isize * self.step));
                            if GROUPED {
                                x = _mm512_permutexvar_ps(indices, x);
                            }
                            sums[p] = _mm512_fmadd_ps(x, w, sums[p]);
                        }
                    }
                }
                for p in 0..P {
                    E::store(out.add(feature).offset(p as isize * self.result_step), mask, sums[p]);
                }
            }
        }
        P
    }

    /// As [`Self::wide`], by AVX2.
    ///
    /// # Safety
    /// As of [`Self::plain`]; groups have at most [`NARROW_WIDTH`] features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn narrow<const GROUPED: bool>(&self) {
        let mut position = 0;
        while position < self.count {
            // SAFETY: as the caller says; `match` takes no more positions than are left.
            position += unsafe {
                match self.count - position {
                    8.. => self.narrow_block::<GROUPED, 8>(position),
                    4.. => self.narrow_block::<GROUPED, 4>(position),
                    2.. => self.narrow_block::<GROUPED, 2>(position),
                    _one => self.narrow_block::<GROUPED, 1>(position),
                }
            };
        }
    }

    /// As [`Self::block`].
    ///
    /// # Safety
    /// As of [`Self::narrow`]; the positions are there.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn narrow_block<const GROUPED: bool, const P: usize>(&self, position: usize) -> usize {
        for feature in (0..self.features).step_by(NARROW_WIDTH) {
            let n = (self.features - feature).min(NARROW_WIDTH);
            // SAFETY: the caller's.
            unsafe {
                if n == NARROW_WIDTH {
                    self.narrow_features::<GROUPED, P, true>(position, feature, n);
                } else {
                    self.narrow_features::<GROUPED, P, false>(position, feature, n);
                }
            }
        }
        P
    }

    /// `n` features of `P` positions; `WHOLE`: a vector of them.
    ///
    /// # Safety
    /// As of [`Self::narrow`]; they are there.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn narrow_features<const GROUPED: bool, const P: usize, const WHOLE: bool>(
        &self,
        position: usize,
        feature: usize,
        n: usize,
    ) {
        use std::arch::x86_64::*;
        let [channels, features] = if GROUPED { self.group } else { [1, 1] };
        // Which channel of those that a vector of features sees each feature's first one is, and how many.
        let first: [i32; NARROW_WIDTH] = std::array::from_fn(|lane| (lane / features * channels) as i32);
        let seen = n / features * channels;
        // SAFETY: the caller's; lanes that are not there are not touched.
        unsafe {
            let first = _mm256_loadu_si256(first.as_ptr().cast());
            let lhs = self.lhs.offset(position as isize * self.step).add(feature / features * channels);
            let rhs = self.rhs.add(feature);
            let mut sums = [_mm256_setzero_ps(); P];
            for &(input, kernel) in self.taps {
                let from = lhs.offset(input);
                for channel in 0..channels {
                    let kernel = rhs.offset(kernel + channel as isize * self.kernel_channel_stride);
                    let w = if WHOLE { _mm256_loadu_ps(kernel) } else { f32::load_some(kernel, 0, n) };
                    let indices = _mm256_add_epi32(first, _mm256_set1_epi32(channel as i32));
                    for p in 0..P {
                        let from = from.offset(p as isize * self.step);
                        let mut x = if WHOLE && (!GROUPED || seen == NARROW_WIDTH) {
                            E::load_eight(from)
                        } else {
                            E::load_some(from, 0, seen)
                        };
                        if GROUPED {
                            x = _mm256_permutevar8x32_ps(x, indices);
                        }
                        sums[p] = _mm256_fmadd_ps(x, w, sums[p]);
                    }
                }
            }
            for p in 0..P {
                let to = self.out.offset((position + p) as isize * self.result_step).add(feature);
                if WHOLE {
                    E::store_eight(to, sums[p]);
                } else {
                    E::store_some(to, sums[p], n, 1);
                }
            }
        }
    }
}

/// Elements of a vector of AVX2.
#[cfg(target_arch = "x86_64")]
pub(super) const NARROW_WIDTH: usize = 8;
