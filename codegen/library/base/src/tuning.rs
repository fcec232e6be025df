//! Tuning: what is fastest depends on the microarchitecture, and is kept here, a row for each that was looked
//! at.
//!
//! **Invariants:** a row changes how work is partitioned and which of two ways is taken that the same bound
//! holds for; sums of `f32` and wider have the same bits with each. A machine that is not known is tuned as
//! the one that is nearest to it. A configuration may choose another row.

use crate::configuration;
use crate::isa::Features;

/// What is chosen for a microarchitecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// What it is called in profiles and on the command line.
    pub name: &'static str,
    /// For whom.
    pub what: &'static str,
    /// Terms of a block of a product of words of 4 bytes whose right operand is packed.
    pub depth: usize,
    /// Bytes of a packed right operand, or of a block of rows, that the second-level cache holds beside all else.
    pub near: usize,
    /// The maximum of rows with which a right operand beyond 1 MiB is multiplied in place: with more, packing
    /// it is a small part of the work.
    pub rows_in_place: usize,
    /// The maximum of rows with which one of them is read in place down its columns.
    pub rows_down: usize,
    /// Whether products of pairs of `bf16` (`vdpbf16ps`) are faster than those of what they are widened to.
    pub pairs_of_bf16: bool,
}

/// One multiply-add of 64 bytes a cycle, 1 MiB of second-level cache: tiles read it as fast as they multiply,
/// so blocks are long.
const ZEN4: Tuning = Tuning {
    name: "zen4",
    what: "AMD Zen 4",
    depth: 1024,
    near: 512 << 10,
    rows_in_place: 256,
    rows_down: 0,
    pairs_of_bf16: true,
};
/// Two of them, 48 KiB of first-level cache that is read twice as fast: with few words for each row, reading
/// the right operand in place is bound by loads (two a cycle), packed tiles are not.
const ZEN5: Tuning = Tuning {
    name: "zen5",
    what: "AMD Zen 5",
    depth: 1024,
    near: 512 << 10,
    rows_in_place: 48,
    rows_down: 0,
    pairs_of_bf16: true,
};
/// Two of them, but 14 cycles to the second-level cache (2 MiB): a panel of the right operand has to fit the
/// first-level cache. The instruction for pairs of `bf16` takes longer than widening them.
const GOLDEN_COVE: Tuning = Tuning {
    name: "golden-cove",
    what: "Intel Golden Cove and later (Sapphire, Emerald, Granite Rapids)",
    depth: 384,
    near: 1 << 20,
    rows_in_place: 256,
    rows_down: 0,
    pairs_of_bf16: false,
};
/// Those before with AVX-512: 1 MiB, and 1.25 MiB, of second-level cache.
const SKYLAKE_SERVER: Tuning = Tuning {
    name: "skylake-server",
    what: "Intel Skylake to Ice Lake with AVX-512",
    depth: 384,
    near: 512 << 10,
    rows_in_place: 256,
    rows_down: 0,
    pairs_of_bf16: true,
};
/// Vectors of 32 bytes, and a multiply-add takes as long to load as to compute; 256 KiB to 2 MiB of
/// second-level cache. For up to 64 rows it takes longer to pack a right operand than to read it where it is.
const AVX2: Tuning = Tuning {
    name: "avx2",
    what: "x86-64 without AVX-512",
    depth: 384,
    near: 256 << 10,
    rows_in_place: 8,
    rows_down: 64,
    pairs_of_bf16: false,
};
/// Vectors of 16 bytes; 512 KiB to 2 MiB of second-level cache.
const AARCH64: Tuning = Tuning {
    name: "aarch64",
    what: "64-bit Arm",
    depth: 1024,
    near: 512 << 10,
    rows_in_place: 256,
    rows_down: 0,
    pairs_of_bf16: false,
};

/// The row of a machine of this architecture with the baseline's vectors and no more.
pub(crate) const COMMON: Tuning = if cfg!(target_arch = "x86_64") { AVX2 } else { AARCH64 };

/// All rows.
pub const ALL: [Tuning; 6] = [ZEN4, ZEN5, GOLDEN_COVE, SKYLAKE_SERVER, AVX2, AARCH64];

/// The row of this name.
pub fn by_name(name: &str) -> Option<Tuning> {
    ALL.into_iter().find(|tuning| tuning.name.eq_ignore_ascii_case(name))
}

/// That of this thread's [`configuration`].
pub fn here() -> &'static Tuning {
    configuration::current().tuning()
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn of_this_machine(_features: Features) -> Tuning {
    AARCH64
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn of_this_machine(features: Features) -> Tuning {
    if !features.avx512 {
        return AVX2;
    }
    let (vendor, family, model) = processor();
    of_processor(&vendor, family, model)
}

/// Vendor, family and model, as `cpuid` says.
#[cfg(target_arch = "x86_64")]
fn processor() -> ([u8; 12], u32, u32) {
    use std::arch::x86_64::__cpuid;
    let (leaf, version) = (__cpuid(0), __cpuid(1).eax);
    let mut vendor = [0; 12];
    for (part, register) in vendor.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    let family = match (version >> 8) & 0xf {
        0xf => 0xf + ((version >> 20) & 0xff),
        family => family,
    };
    let model = ((version >> 12) & 0xf0) | ((version >> 4) & 0xf);
    (vendor, family, model)
}

/// For a processor with AVX-512.
#[cfg(target_arch = "x86_64")]
fn of_processor(vendor: &[u8; 12], family: u32, model: u32) -> Tuning {
    match (vendor, family, model) {
        // Zen 4: those of family 25 with AVX-512. Families after it are Zen 5 or later.
        (b"AuthenticAMD", 0x19, _) => ZEN4,
        (b"AuthenticAMD", _, _) => ZEN5,
        // Skylake, Cascade and Cooper Lake; Ice Lake, Rocket and Tiger Lake, Cannon Lake.
        (b"GenuineIntel", 6, 0x55 | 0x6a | 0x6c | 0x7d | 0x7e | 0x8c | 0x8d | 0xa7 | 0x66) => SKYLAKE_SERVER,
        (b"GenuineIntel", _, _) => GOLDEN_COVE,
        (_, _, _) => ZEN4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own() {
        for tuning in ALL {
            assert_eq!(by_name(&tuning.name.to_uppercase()), Some(tuning));
        }
        assert_eq!(by_name("zen"), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn processors_are_known() {
        let name = |vendor, family, model| of_processor(vendor, family, model).name;
        // Genoa, Turin, Emerald Rapids, Sapphire Rapids, Granite Rapids, Cascade Lake, Ice Lake.
        assert_eq!(name(b"AuthenticAMD", 25, 17), "zen4");
        assert_eq!(name(b"AuthenticAMD", 26, 2), "zen5");
        for model in [0xcf, 0x8f, 0xad] {
            assert_eq!(name(b"GenuineIntel", 6, model), "golden-cove");
        }
        for model in [0x55, 0x6a] {
            assert_eq!(name(b"GenuineIntel", 6, model), "skylake-server");
        }
    }
}
