//! Transforms: all kinds, types, ranks, lengths of any factors, in shared memory and beyond.

use crate::support::{Tolerance, check_on};
use hlo_gpu::arch::Arch;

fn fft(kind: &str, wide: bool, outer: &str, lengths: &[i64]) -> String {
    let (real, complex) = if wide { ("f64", "c128") } else { ("f32", "c64") };
    let join = |l: &[i64]| l.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let mut half = lengths.to_vec();
    *half.last_mut().unwrap() = half.last().unwrap() / 2 + 1;
    let (x, r) = match kind {
        "RFFT" => (format!("{real}[{outer}{}]", join(lengths)), format!("{complex}[{outer}{}]", join(&half))),
        "IRFFT" => {
            (format!("{complex}[{outer}{}]", join(&half)), format!("{real}[{outer}{}]", join(lengths)))
        }
        _ => {
            let s = format!("{complex}[{outer}{}]", join(lengths));
            (s.clone(), s)
        }
    };
    // Complex numbers of real and imaginary parts that are parameters.
    let parts = x.replace(complex, real);
    let make = if kind == "RFFT" {
        format!("  x = {x} parameter(0)\n")
    } else {
        format!("  a = {parts} parameter(0)\n  b = {parts} parameter(1)\n  x = {x} complex(a, b)\n")
    };
    format!(
        "HloModule m\nENTRY e {{\n{make}  ROOT f = {r} fft(x), fft_type={kind}, fft_length={{{}}}\n}}\n",
        join(lengths)
    )
}

fn check(kind: &str, wide: bool, outer: &str, lengths: &[i64]) {
    // Sums of n terms by passes of at most 8 or of a prime factor.
    let n: i64 = lengths.iter().product();
    let error = (n as f64).sqrt().max(8.0);
    let tolerance = Tolerance(error * if wide { 1e-16 * 2.0 } else { 6e-8 });
    let arch = if n % 2 == 0 { Arch::Sm90 } else { Arch::Sm80 };
    check_on(&fft(kind, wide, outer, lengths), arch, tolerance, 1);
}

#[test]
fn lengths() {
    for n in [1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 30, 31, 33, 64, 77, 105, 128, 1000, 1024, 2048] {
        check("FFT", false, "2,", &[n]);
    }
    for kind in ["IFFT", "RFFT", "IRFFT"] {
        for n in [1, 2, 3, 6, 8, 31, 36, 256, 1023] {
            check(kind, false, "3,", &[n]);
            check(kind, true, "", &[n]);
        }
    }
}

#[test]
fn beyond_shared_memory() {
    for n in [2049, 3000, 4096] {
        check("FFT", false, "", &[n]);
    }
    check("RFFT", false, "2,", &[4096]);
    check("IRFFT", false, "", &[2100]);
    check("IFFT", true, "", &[1025]);
}

#[test]
fn ranks() {
    for kind in ["FFT", "IFFT", "RFFT", "IRFFT"] {
        check(kind, false, "2,", &[5, 6]);
        check(kind, false, "", &[3, 4, 7]);
        check(kind, true, "", &[16, 33]);
    }
    check("IRFFT", false, "", &[2, 2200]);
    check("RFFT", false, "", &[2200, 2]);
}
