//! Random bits: both algorithms, all types, odd and even dimensions, states.

use crate::support::{EXACT, check, check_on};
use hlo::{ElementType, TypeClass};
use hlo_gpu::arch::Arch;

#[test]
fn bits_and_states() {
    let types =
        ElementType::ALL.iter().filter(|t| !matches!(t.class(), TypeClass::Pred | TypeClass::Complex));
    for ty in types.map(|ty| ty.name()) {
        for dims in ["", "7", "3,5", "5,6,7", "0"] {
            for (algorithm, state) in [("rng_three_fry", 2), ("rng_philox", 3), ("rng_default", 2)] {
                let text = format!(
                    "HloModule m\nENTRY main {{\n  s = u64[{state}] parameter(0)\n  ROOT r = (u64[{state}], {ty}[{dims}]) rng-bit-generator(s), algorithm={algorithm}\n}}\n"
                );
                check(&text, EXACT);
            }
        }
    }
}

#[test]
fn carries_and_sizes() {
    // The counter is as great as it can be.
    let text = |algorithm: &str, state: &str, n: i64, dims: &str| {
        format!(
            "HloModule m\nENTRY main {{\n  s = u64[{n}] constant({state})\n  z = u64[{n}] parameter(0)\n  t = u64[{n}] or(s, z)\n  ROOT r = (u64[{n}], u32[{dims}]) rng-bit-generator(t), algorithm={algorithm}\n}}\n"
        )
    };
    let top = "18446744073709551600";
    check(&text("rng_philox", &format!("{{5, {top}, {top}}}"), 3, "1025"), EXACT);
    check(&text("rng_philox", &format!("{{5, {top}}}"), 2, "3000"), EXACT);
    check_on(&text("rng_three_fry", &format!("{{5, {top}}}"), 2, "33,31"), Arch::Sm80, EXACT, 3);
}
