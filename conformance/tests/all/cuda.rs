//! Kernels on CUDA devices, with the driver in C that `codegen/cuda/tests/stub` has instead of NVIDIA's: what
//! the commands print, and how they end.

use std::process::{Command, Output};

use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, out};
use crate::function;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("cuda/without a driver or a device commands end with 5", absent),
        function("cuda/kernels run on a device and are compared", kernels),
        function("cuda/the truth check runs on the interpreter itself", truth),
    ]
}

/// A driver of a mode of the stub, as the loader finds it. `None`: there is no C compiler.
fn driver(mode: u32) -> Option<Dir> {
    let folder = Dir::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/cuda/tests/stub/libcuda.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-w", &format!("-DMODE={mode}"), source, "-o"]);
    match cc.arg(folder.path("libcuda.so.1")).status() {
        Ok(status) => assert!(status.success(), "cc fails"),
        Err(e) => {
            eprintln!("NOTE: there is no cc ({e}): what needs a driver is SKIPPED");
            return None;
        }
    }
    Some(folder)
}

fn with(driver: &Dir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hlo"))
        .args(args)
        .env("LD_LIBRARY_PATH", driver.path(""))
        .output()
        .unwrap()
}

/// `add_one(address, count)`, as the stub executes it, too.
const PTX: &str = "\
.version 8.0
.target sm_90
.address_size 64
.visible .entry add_one(.param .u64 p, .param .u32 n) {
.reg .b32 %r<4>;
.reg .b64 %d<4>;
.reg .pred %q;
ld.param.u64 %d1, [p];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
setp.ge.u32 %q, %r2, %r1;
@%q ret;
mul.wide.u32 %d2, %r2, 4;
add.s64 %d1, %d1, %d2;
ld.global.u32 %r3, [%d1];
add.u32 %r3, %r3, 1;
st.global.u32 [%d1], %r3;
ret;
}
";

fn absent() {
    if cfg!(not(feature = "cuda")) {
        let o = hlo(&["ptx", "devices"]);
        ends(&o, 5);
        assert!(err(&o).contains("without CUDA"), "{}", err(&o));
        return;
    }
    let d = Dir::new();
    let file = d.file("k.ptx", PTX);
    for (mode, said) in [
        (1, "lacks cuGraphLaunch"),
        (2, "no CUDA-capable device is detected"),
        (3, "CUDA 11.8; CUDA 12.8 or newer is needed"),
        (10, "counts none"),
    ] {
        let Some(driver) = driver(mode) else { return };
        for args in [
            &["ptx", "devices"][..],
            &["ptx", "run", &file, "--args", "zeros:u32[1]", "u32=1", "--device", "cuda"],
            &["ptx", "compare", &file, "--args", "zeros:u32[1]", "u32=1"],
            &["ptx", "truth"],
        ] {
            let o = with(&driver, args);
            ends(&o, 5);
            assert!(err(&o).contains(said), "{args:?}: {}", err(&o));
        }
    }
}

fn kernels() {
    if cfg!(not(feature = "cuda")) {
        return;
    }
    let d = Dir::new();
    let file = d.file("k.ptx", PTX);
    let args = |what: &'static str| {
        ["ptx", what, &file, "--block", "8", "--args", "zeros:u32[5]", "u32=5"].map(str::to_owned).to_vec()
    };
    let run = |driver: &Dir, what: &'static str, more: &[&str]| {
        let mut all = args(what);
        all.extend(more.iter().map(|s| (*s).to_owned()));
        with(driver, &all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let Some(fine) = driver(0) else { return };
    let o = with(&fine, &["ptx", "devices"]);
    ends(&o, 0);
    assert!(out(&o).contains("cuda:1  Stub 1, sm_90, 132 multiprocessors, 80.0 GiB"), "{}", out(&o));
    let here = run(&fine, "run", &["--quiet"]);
    ends(&here, 0);
    let there = run(&fine, "run", &["--quiet", "--device", "cuda"]);
    ends(&there, 0);
    assert!(
        out(&here).contains("arg0 = u32[5]") && out(&here) == out(&there),
        "{}{}",
        out(&here),
        out(&there)
    );
    let o = run(&fine, "compare", &["--device", "cuda:1"]);
    ends(&o, 0);
    assert!(out(&o).contains("arg0: 20 bytes are equal"), "{}", out(&o));
    let o = run(&fine, "run", &["--device", "cuda:2"]);
    ends(&o, 5);
    assert!(err(&o).contains("there is no CUDA device 2: they are 0 to 1"), "{}", err(&o));
    ends(&run(&fine, "run", &["--device", "gpu"]), 2);

    let wrong = driver(12).unwrap();
    let o = run(&wrong, "compare", &[]);
    ends(&o, 1);
    let text = out(&o);
    assert!(
        text.contains("1 of 5 elements differ")
            && text.contains("[3]: interpreter 00000001, device 00000002"),
        "{text}"
    );
    for (mode, code, said) in [
        (4, 2, "kernel `add_one` cannot be launched: too many resources requested for launch"),
        (5, 6, "kernel `add_one` failed: an illegal memory access was encountered"),
        (6, 6, "did not finish in 1 s; the last kernel launched was `add_one`"),
        (7, 6, "CUDA is out of memory: 20 bytes asked for"),
        (8, 5, "does not compile the PTX of kernel `add_one`, line 4"),
    ] {
        let o = run(&driver(mode).unwrap(), "run", &["--device", "cuda", "--device-timeout", "1"]);
        ends(&o, code);
        assert!(err(&o).contains(said), "{}", err(&o));
    }
}

fn truth() {
    if cfg!(not(feature = "cuda")) {
        return;
    }
    let d = Dir::new();
    let report = d.path("report.json");
    let report = report.to_str().unwrap();
    let args = [
        "ptx",
        "truth",
        "--device",
        "interpreter",
        "--family",
        "barrier",
        "--family",
        "matrix",
        "--results",
        "512",
    ];
    let o = hlo(&[&args[..], &["--report", report]].concat());
    ends(&o, 0);
    assert!(out(&o).contains("barrier") && !out(&o).contains("integer"), "{}", out(&o));
    let text = std::fs::read_to_string(report).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["summary"][0]["family"], "barrier");
    assert_eq!(read["summary"][0]["wrong"], 0);
    ends(&hlo(&["ptx", "truth", "--device", "interpreter", "--family", "none"]), 2);
    ends(&hlo(&["ptx", "truth", "no/such/folder", "--device", "interpreter", "--family", "xla"]), 2);
}
