//! Shared libraries that programs with objects need, and objects for another processor. A test that needs a
//! tool which the machine lacks (C compiler, cross compiler, qemu, the run-time library) says so and skips.

use std::path::PathBuf;

use hlo_client::ahead::{Ahead, Options};
use hlo_client::{Client, CompileOptions};

use crate::ahead::{
    CONTROL, Dir, PLAIN, STATE, c, computed, has, library, made, options, ran, run_all, skipped,
};

/// A program of library calls: a contraction with an epilogue, a sort, a transform, functions of complex
/// numbers.
const CALLS: &str = "HloModule calls
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[40,32] parameter(0)  y = f32[32,20] parameter(1)  ex = f32[40,32] exponential(x)  ey = f32[32,20] exponential(y)
  d = f32[40,20] dot(ex, ey), lhs_contracting_dims={1}, rhs_contracting_dims={0}  l = f32[40,20] log(d)
  s = f32[40,32] sort(x), dimensions={1}, to_apply=less
  z = c64[40,32] complex(ex, x)  p = c64[40,32] power(z, z)  m = f32[40,32] abs(p)
  ROOT r = (f32[40,20], f32[40,32], f32[40,32]) tuple(l, s, m) }";

/// The shared libraries that a program asks for, but the loader, which comes with the C library.
fn needed(d: &Dir, program: &str) -> Vec<String> {
    let said = ran(d, "readelf", &["-d", program]);
    let names = said.lines().filter(|line| line.contains("(NEEDED)"));
    let names = names.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned()));
    names.filter(|name| !name.starts_with("ld-linux")).collect()
}

#[test]
fn programs_need_the_c_library_and_nothing_else() {
    if !has("cc") || !has("readelf") {
        return;
    }
    let d = Dir::new();
    let main = |name: &str| {
        format!(
            "#include \"{name}.h\"\nint main(void) {{ void *none[4] = {{0}}; return {name}_run(none, none, 0, 0) == HLO_AHEAD_MISSING ? 0 : 1; }}\n"
        )
    };
    d.object("plain", &made(PLAIN, "", &options("plain")));
    d.file("plain.c", main("plain"));
    c(&d, &["plain.c", "plain.o", "-o", "plain"]);
    ran(&d, "./plain", &[]);
    assert_eq!(needed(&d, "plain"), ["libc.so.6"]);
    let Some(library) = library() else { return };
    let library = library.to_str().unwrap();
    let calls = made(CALLS, "", &options("calls"));
    assert!(calls.object.library_calls.len() >= 2, "{:?}", calls.object.library_calls);
    d.object("calls", &calls);
    d.file("calls.c", main("calls"));
    // The mathematical functions of glibc are a file of their own.
    c(&d, &["calls.c", "calls.o", library, "-lm", "-o", "calls"]);
    ran(&d, "./calls", &[]);
    let found = needed(&d, "calls");
    assert!(found.iter().all(|name| ["libc.so.6", "libm.so.6"].contains(&name.as_str())), "{found:?}");
    // Nothing of the interface is missing, and nothing else is seen.
    let symbols = ran(&d, "nm", &["--defined-only", "--extern-only", "--format=posix", library]);
    let names: Vec<&str> = symbols.lines().filter_map(|line| line.split_once(' ')).map(|s| s.0).collect();
    assert!(names.contains(&"hlo_ahead_call") && names.contains(&"hlo_power_c64"), "{names:?}");
    let others: Vec<&&str> = names.iter().filter(|name| !name.starts_with("hlo_")).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// A defect of the library is a status, with the unwinder that it has in itself, too, and beside C++ with its
/// own.
#[test]
fn defects_of_the_library_are_a_status() {
    let Some(library) = library() else { return };
    if !has("cc") || !has("c++") {
        return;
    }
    let d = Dir::new();
    d.object("calls", &made(CALLS, "", &options("calls")));
    d.file("defect.c", r#"#include "calls.h"
struct model { uint64_t abi; void *state; const char *text; uint64_t length; };
int32_t hlo_ahead_prepare(struct model *);
int32_t hlo_ahead_call(struct model *, uint64_t, void *const *, uint64_t, void *, void *const *, uint64_t, void *, void *const *, const void *);
static const char text[] = "hlo-ahead 2\n1\ne\td\t0\nHloModule m\nENTRY e { x = f32[40,32] parameter(0)  y = f32[32,20] parameter(1)"
  "  ROOT d = f32[40,20] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n";
static const char broken[] = "hlo-ahead 2\n1\ne\td\t0\nHloModule m\n";
int defect(void) {
  struct model model = {2, 0, text, sizeof text - 1}, other = {1, 0, text, sizeof text - 1}, damaged = {2, 0, broken, sizeof broken - 1};
  if (hlo_ahead_prepare(&other) != HLO_AHEAD_OTHER_VERSION || hlo_ahead_prepare(&damaged) != HLO_AHEAD_DAMAGED) return 1;
  if (hlo_ahead_prepare(&model) != HLO_AHEAD_OK || hlo_ahead_call(&model, 7, 0, 0, 0, 0, 0, 0, 0, 0) != HLO_AHEAD_DAMAGED) return 2;
  /* No arguments, which is against its contract. */
  void *none[1] = {0};
  return hlo_ahead_call(&model, 0, none, 0, 0, none, 0, 0, 0, 0) == HLO_AHEAD_DEFECT ? 0 : 3;
}
"#);
    d.file("main.c", "int defect(void);\nint main(void) { return defect(); }\n");
    d.file("main.cc", "extern \"C\" int defect(void);\nint main() { try { throw 4; } catch (int n) { return defect() + (n - 4); } }\n");
    let library = library.to_str().unwrap();
    c(&d, &["main.c", "defect.c", library, "-lm", "-o", "in-c"]);
    ran(&d, "./in-c", &[]);
    c(&d, &["-c", "defect.c", "-o", "defect.o"]);
    ran(&d, "c++", &["main.cc", "defect.o", library, "-lm", "-o", "in-cpp"]);
    ran(&d, "./in-cpp", &[]);
}

/// The run-time library for aarch64, where `make test-ahead` has built it.
fn aarch64_library() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|p| p.parent()).unwrap();
    let name = profile.file_name().unwrap();
    let found = profile.parent()?.join("aarch64-unknown-linux-gnu").join(name).join("libhlo_ahead.a");
    if !found.exists() {
        skipped("there is no libhlo_ahead.a for aarch64: make test-ahead");
        return None;
    }
    Some(found)
}

#[test]
fn objects_for_aarch64_run_there() {
    let library = aarch64_library();
    let texts = [PLAIN, CONTROL, STATE, CALLS];
    let texts = &texts[..if library.is_some() { 4 } else { 3 }];
    let elsewhere: Vec<(String, Ahead)> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| {
            let to = Options { triple: "aarch64-linux-gnu".into(), ..options(&format!("p{n}")) };
            (to.entry.clone(), made(text, "", &to))
        })
        .collect();
    for (_, made) in &elsewhere {
        // ELF's machine: AArch64.
        assert_eq!(made.object.bytes[18..20], [183, 0]);
    }
    if !has("aarch64-linux-gnu-gcc") || !has("qemu-aarch64") {
        return;
    }
    let d = Dir::new();
    let there = run_all(&d, &elsewhere, "aarch64-linux-gnu-gcc", Some("qemu-aarch64"), library.as_deref());
    let here: Vec<u8> = texts
        .iter()
        .zip(&elsewhere)
        .flat_map(|(text, (_, made))| {
            let client = Client::interpreter(hlo_client::ClientOptions::default()).unwrap();
            computed(&client, text, &CompileOptions::default(), &made.object.arguments)
        })
        .collect();
    assert_eq!(there.len(), here.len());
    // Elementary functions are within a few units in the last place, sums in another order too; all else is
    // exact.
    for (n, (a, b)) in there.as_chunks::<4>().0.iter().zip(here.as_chunks::<4>().0).enumerate() {
        let (a, b) = (f32::from_le_bytes(*a), f32::from_le_bytes(*b));
        assert!(
            a == b || (a - b).abs() <= 1e-5 * b.abs() || (a.is_nan() && b.is_nan()),
            "{n}: {a} instead of {b}"
        );
    }
}
