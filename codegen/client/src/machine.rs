//! The instruction sets of the machine that this runs on, asked without LLVM.

/// Makes the list of the features that the processor has, out of those that are named.
macro_rules! detect {
    ($detected:ident: $($name:tt)*) => {
        [$(($name, std::arch::$detected!($name))),*]
            .into_iter().filter(|&(_, has)| has).map(|(name, _)| name).collect()
    };
}

/// Features beyond the baseline that generated code may rest on, by name, as far as this machine has them.
#[cfg(target_arch = "x86_64")]
pub(crate) fn features() -> Vec<&'static str> {
    detect!(is_x86_feature_detected:
        "sse3" "ssse3" "sse4.1" "sse4.2" "sse4a" "popcnt" "avx" "avx2" "f16c" "fma" "bmi1" "bmi2" "lzcnt" "movbe" "adx" "aes"
        "pclmulqdq" "gfni" "vaes" "vpclmulqdq" "sha"
        "avx512f" "avx512cd" "avx512bw" "avx512dq" "avx512vl" "avx512ifma" "avx512vbmi" "avx512vbmi2" "avx512vnni"
        "avx512bitalg" "avx512vpopcntdq" "avx512vp2intersect" "avx512bf16" "avx512fp16" "avxvnni")
}

/// Features beyond the baseline that generated code may rest on, by name, as far as this machine has them.
#[cfg(target_arch = "aarch64")]
pub(crate) fn features() -> Vec<&'static str> {
    detect!(is_aarch64_feature_detected:
        "neon" "fp16" "bf16" "dotprod" "i8mm" "sve" "sve2" "lse" "rdm" "aes" "sha2" "crc")
}

/// Features beyond the baseline that generated code may rest on.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn features() -> Vec<&'static str> {
    Vec::new()
}

/// What code for a processor needs of the machine: all that this one has if it is "native", else what the
/// level promises.
pub(crate) fn needed(cpu: &str) -> Vec<&'static str> {
    let v4 = ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
    let v3 = ["avx2", "f16c", "fma", "bmi1", "bmi2", "lzcnt", "movbe", "popcnt"];
    let mut needed = features();
    match cpu {
        "x86-64-v4" => needed.retain(|f| v3.contains(f) || v4.contains(f)),
        "x86-64-v3" => needed.retain(|f| v3.contains(f)),
        _native => {}
    }
    needed
}
