//! Instruction sets: which of this machine's are made use of, by generated code and by the runtime's own
//! loops.
//!
//! **Invariant:** they change how fast a program runs, not one bit of what it computes. (Libraries that
//! products and decompositions are handed to ask the processor by themselves.)

use crate::configuration;

/// An instruction set beyond AVX2, which generated code for x86-64 rests on, each with all before it. The
/// names are those of XLA's `xla_cpu_max_isa`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Isa {
    /// Vectors of 256 bits.
    Avx2,
    /// Vectors of 512 bits: AVX512F, BW, CD, DQ, VL.
    Avx512,
    /// Sums of products of bytes and of 16-bit integers.
    Avx512Vnni,
    /// Sums of products of `bf16`.
    Avx512Bf16,
}

impl Isa {
    /// All, from the smallest.
    pub const ALL: [Isa; 4] = [Isa::Avx2, Isa::Avx512, Isa::Avx512Vnni, Isa::Avx512Bf16];

    /// XLA's name.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Avx2 => "AVX2",
            Isa::Avx512 => "AVX512",
            Isa::Avx512Vnni => "AVX512_VNNI",
            Isa::Avx512Bf16 => "AVX512_BF16",
        }
    }

    /// By XLA's name, in letters of any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|isa| isa.name().eq_ignore_ascii_case(name))
    }

    /// Whether a processor with this and no more may have a feature, named as LLVM does.
    pub fn allows(self, feature: &str) -> bool {
        let least = match feature {
            "avx512bf16" | "avx512fp16" => Isa::Avx512Bf16,
            "avx512vnni" => Isa::Avx512Vnni,
            _ if feature.starts_with("avx512") || feature.starts_with("avx10") => Isa::Avx512,
            _ => Isa::Avx2,
        };
        self >= least
    }
}

/// What may be made use of, beyond the baseline that the crate is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// Vectors of 256 bits, multiply-adds and conversions of `f16`: AVX2, FMA, F16C. Missing only where a program
    /// is built for machines below the baseline.
    #[cfg(target_arch = "x86_64")]
    pub avx2: bool,
    /// Vectors of 512 bits: [`Isa::Avx512`].
    pub avx512: bool,
    /// Products of pairs of 16-bit integers.
    #[cfg(target_arch = "x86_64")]
    pub vnni: bool,
    /// Products of pairs of `bf16`.
    #[cfg(target_arch = "x86_64")]
    pub bf16: bool,
}

impl Features {
    /// Those of this thread's [`configuration`].
    #[inline]
    pub fn here() -> Features {
        configuration::current().features()
    }

    /// Those of this machine, up to `max_isa`.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn of_this_machine(max_isa: Option<Isa>) -> Features {
        let most = max_isa.unwrap_or(Isa::Avx512Bf16);
        let avx512 = most >= Isa::Avx512
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        Features {
            avx2,
            avx512,
            vnni: avx512 && most >= Isa::Avx512Vnni && is_x86_feature_detected!("avx512vnni"),
            bf16: avx512 && most >= Isa::Avx512Bf16 && is_x86_feature_detected!("avx512bf16"),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn of_this_machine(_max_isa: Option<Isa>) -> Features {
        Features { avx512: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_allows_what_those_before_it_do() {
        for isa in Isa::ALL {
            assert_eq!(Isa::from_name(&isa.name().to_lowercase()), Some(isa));
        }
        assert_eq!(Isa::from_name("AVX"), None);
        let allowed = |feature| Isa::ALL.map(|isa| isa.allows(feature));
        assert_eq!(allowed("avx2"), [true; 4]);
        assert_eq!(allowed("avx512f"), [false, true, true, true]);
        assert_eq!(allowed("avx512vbmi"), [false, true, true, true]);
        assert_eq!(allowed("avx512vnni"), [false, false, true, true]);
        assert_eq!(allowed("avx512bf16"), [false, false, false, true]);
    }
}
