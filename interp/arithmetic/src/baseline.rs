//! The instruction set that the programs are compiled for.
//!
//! Rust code and the C code of the elementary functions are built for a fixed baseline
//! (`.cargo/config.toml`), never for the building machine. It decides no bit of any result, only where the
//! program can run: **a machine below the baseline must be refused with a message before the first call, not
//! by an illegal instruction.**

/// The baseline, by the C compiler's name for it; absent if the build left it to the C compiler.
pub const BASELINE: Option<&str> = option_env!("TARGET_CPU");

/// Whether this machine has the baseline. Errors: the name of a feature that it lacks.
pub fn check() -> Result<(), &'static str> {
    #[cfg(target_arch = "x86_64")]
    if BASELINE == Some("x86-64-v3") || cfg!(target_feature = "avx2") {
        macro_rules! need {
            ($($feature:tt),*) => { $(if !std::arch::is_x86_feature_detected!($feature) { return Err($feature); })* };
        }
        need!("avx2", "fma", "bmi1", "bmi2", "lzcnt", "movbe", "f16c");
    }
    Ok(())
}
