//! The crate on a driver of its own, in C, that is wrong in one way each: nothing panics, nothing waits, and
//! errors say what is wrong.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "says what is skipped")]

use std::process::Command;
use std::time::{Duration, Instant};

use hlo_cuda::policy::{Cache, Policy, Run};
use hlo_cuda::{Device, Driver, DriverGraphs, Error, Graph, Launch, Step, Stream};

/// The modes of `stub/libcuda.c`.
#[derive(Clone, Copy)]
enum Mode {
    Fine,
    MissingSymbol,
    NoDevice,
    Old,
    RefusesLaunch,
    IllegalAddress,
    Endless,
    OutOfMemory,
    BadPtx,
    RefusesUpdate,
    NoneCounted,
    UnknownStatus,
}

const PTX: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry add_one(.param .u64 p, .param .u32 n) { ret; }\n.visible .entry nothing() { ret; }\n";

/// The driver of a mode. `None`: there is no C compiler.
fn driver(mode: Mode) -> Option<Result<Driver, Error>> {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libcuda.so.1");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stub/libcuda.c");
    let cc = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-w", &format!("-DMODE={}", mode as u32), source, "-o"])
        .arg(&library)
        .status();
    match cc {
        Ok(status) => assert!(status.success(), "cc fails"),
        Err(e) => {
            eprintln!("skipped: there is no cc: {e}");
            return None;
        }
    }
    // The library stays loaded when its file is gone.
    Some(Driver::load_from(&library))
}

fn device(mode: Mode, timeout: Duration) -> Option<Device> {
    Some(driver(mode)?.unwrap().open(0, timeout).unwrap())
}

const LONG: Duration = Duration::from_secs(60);

fn error<T>(result: Result<T, Error>) -> Error {
    match result {
        Ok(_) => panic!("no error"),
        Err(e) => e,
    }
}

/// A launch of `add_one` on a buffer of four.
fn add_one(device: &Device, stream: &Stream, buffer: u64, count: u32) -> Result<(), Error> {
    let function = device.module(PTX)?.function("add_one")?;
    stream.launch(&function, &launch(buffer, count))
}

fn launch(buffer: u64, count: u32) -> Launch {
    let arguments = vec![buffer.to_le_bytes().to_vec(), count.to_le_bytes().to_vec()];
    Launch { grid: [1, 1, 1], block: [count.max(1), 1, 1], shared_bytes: 0, arguments }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn what_is_missing_is_said() {
    let none = error(Driver::load_from("/nowhere/libcuda.so.1".as_ref()));
    assert!(none.is_absent() && none.to_string().contains("/nowhere/libcuda.so.1"), "{none}");
    for (mode, said) in [
        (Mode::MissingSymbol, "lacks cuGraphLaunch"),
        (Mode::NoDevice, "no CUDA-capable device"),
        (Mode::NoneCounted, "counts none"),
        (Mode::Old, "the CUDA driver is of CUDA 11.8; CUDA 12.8 or newer is needed"),
        (Mode::UnknownStatus, "cuInit: CUDA error 4321"),
    ] {
        let Some(found) = driver(mode) else { return };
        let e = error(found);
        assert!(e.to_string().contains(said), "{e}");
        assert_eq!(e.is_absent(), !said.starts_with("cuInit"), "{e}");
    }
    let Some(found) = driver(Mode::Fine) else { return };
    let e = error(found.unwrap().open(2, LONG));
    assert!(e.is_absent() && e.to_string().contains("they are 0 to 1"), "{e}");
}

#[test]
fn devices_are_listed() {
    let Some(found) = driver(Mode::Fine) else { return };
    let all = found.unwrap().devices().unwrap();
    assert_eq!((all.len(), &*all[1].name, all[1].sm(), all[0].multiprocessors), (2, "Stub 1", 90, 132));
    assert_eq!((all[0].shared_bytes_per_block_opt_in, all[0].memory_bytes), (232_448, 80 << 30));
}

#[test]
fn memory_kernels_and_modules() {
    let Some(device) = device(Mode::Fine, LONG) else { return };
    let stream = device.stream().unwrap();
    // Larger than a piece of a copy, and no multiple of it.
    let large: Vec<u8> = (0..9_000_001_u32).map(|i| (i % 251) as u8).collect();
    let buffer = stream.upload(&large).unwrap();
    assert_eq!(stream.download(&buffer).unwrap(), large);
    let other = stream.allocate(64).unwrap();
    stream.fill(&other, 0, 64, 7).unwrap();
    stream.copy((&other, 8), (&buffer, 3), 5).unwrap();
    let mut got = [0; 16];
    stream.read(&other, 4, &mut got).unwrap();
    assert_eq!(got, [7, 7, 7, 7, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7, 7, 7]);
    let e = error(stream.copy((&other, 60), (&buffer, 0), 5));
    assert_eq!(e, Error::Range { offset: 60, bytes: 5, length: 64 });
    assert!(stream.read(&other, u64::MAX, &mut [0; 2]).is_err());

    stream.write(&other, 0, &[1, 0, 0, 0, 2, 0, 0, 0, 0xFF, 0xFF, 0, 0]).unwrap();
    add_one(&device, &stream, other.address(), 3).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(words(&stream.download(&other).unwrap())[..3], [2, 3, 0x1_0000]);
    // The same text is one module.
    device.module(PTX).unwrap();
    assert_eq!(device.modules(), 1);
    let module = device.module(&format!("{PTX}\n")).unwrap();
    assert_eq!(device.modules(), 2);
    let function = module.function("add_one").unwrap();
    assert_eq!((function.parameters(), function.attributes().unwrap().registers), (&[8, 4][..], 24));
    assert_eq!(error(module.function("sub")), Error::NoSuchSymbol { name: "sub".to_owned() });
    stream.write_variable(&module, "variable", &[1, 2]).unwrap();
    assert!(matches!(error(stream.write_variable(&module, "variable", &[0; 17])), Error::Range { .. }));
    // Launches that fit neither kernel nor device.
    for (wrong, said) in [
        (Launch::new([1, 1, 1], [1, 1, 1], 0, &[1]), "it has 2 parameters, the launch 1"),
        (Launch::new([1, 1, 1], [1, 1, 1], 0, &[1, 2]), "parameter 1 has 4 bytes, the argument 8"),
        (Launch { grid: [0, 1, 1], ..launch(1, 1) }, "at least one block"),
        (
            Launch { shared_bytes: 300_000, ..launch(1, 1) },
            "300000 bytes of dynamic shared memory; the device has 232448",
        ),
    ] {
        let e = error(stream.launch(&function, &wrong));
        assert!(e.to_string().contains(said), "{e}");
    }
    let (first, second) = (stream.record().unwrap(), stream.record().unwrap());
    assert_eq!(second.milliseconds_since(&first).unwrap(), 1.5);
    stream.wait_for(&second).unwrap();
    assert!(second.is_done().unwrap() && device.broken().is_none());
    device.trim().unwrap();
}

#[test]
fn a_refused_launch_breaks_nothing() {
    let Some(device) = device(Mode::RefusesLaunch, LONG) else { return };
    let stream = device.stream().unwrap();
    let e = error(add_one(&device, &stream, 0, 4));
    assert!(matches!(&e, Error::Launch { kernel, .. } if kernel == "add_one"), "{e}");
    assert!(e.to_string().contains("too many resources requested for launch"), "{e}");
    stream.synchronize().unwrap();
}

/// The stub ends the process if anything is called after it reported the failure.
#[test]
fn after_an_illegal_address_every_call_is_an_error() {
    let Some(device) = device(Mode::IllegalAddress, LONG) else { return };
    let stream = device.stream().unwrap();
    let buffer = stream.upload(&[0; 16]).unwrap();
    let event = stream.record().unwrap();
    let graph = Graph::new(&device, &[]).unwrap();
    let module = device.module(PTX).unwrap();
    add_one(&device, &stream, buffer.address(), 4).unwrap();
    let e = error(stream.download(&buffer));
    assert!(matches!(&e, Error::Kernel { kernel, .. } if kernel == "add_one"), "{e}");
    assert!(e.to_string().contains("illegal memory access"), "{e}");
    assert!(device.broken().unwrap().contains("add_one"));
    let broken =
        |e: Error| assert!(matches!(&e, Error::Broken { cause } if cause.contains("add_one")), "{e}");
    broken(error(stream.synchronize()));
    broken(error(stream.upload(&[1])));
    broken(error(stream.read(&buffer, 0, &mut [0])));
    broken(error(add_one(&device, &stream, 0, 4)));
    broken(error(module.function("add_one")));
    broken(error(device.stream()));
    broken(error(device.module("other")));
    broken(error(event.synchronize()));
    broken(error(graph.instantiate()));
    broken(error(stream.capture(|_| Ok(()))));
    drop((buffer, event, module, stream, device));
}

/// The stub ends the process if anything is called that waits.
#[test]
fn an_endless_kernel_times_out() {
    let Some(device) = device(Mode::Endless, Duration::from_millis(200)) else { return };
    let stream = device.stream().unwrap();
    let buffer = stream.upload(&[0; 16]).unwrap();
    add_one(&device, &stream, buffer.address(), 4).unwrap();
    let start = Instant::now();
    let e = error(stream.synchronize());
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(matches!(&e, Error::Timeout { kernel, .. } if kernel == "add_one"), "{e}");
    assert!(matches!(error(stream.download(&buffer)), Error::Broken { .. }));
    drop((buffer, stream, device));
}

/// Nobody waited for the kernel: dropping everything does not, either.
#[test]
fn dropping_what_is_busy_does_not_wait() {
    let Some(device) = device(Mode::Endless, LONG) else { return };
    let stream = device.stream().unwrap();
    let buffer = stream.upload(&[0; 16]).unwrap();
    add_one(&device, &stream, buffer.address(), 4).unwrap();
    drop((buffer, stream, device));
}

#[test]
fn out_of_memory_says_how_much() {
    let Some(device) = device(Mode::OutOfMemory, LONG) else { return };
    let e = error(device.stream().unwrap().allocate(1 << 40));
    assert_eq!(e, Error::OutOfMemory { bytes: 1 << 40, free: Some(12345) });
    assert!(e.to_string().contains("1099511627776 bytes asked for, 12345 free"), "{e}");
}

#[test]
fn wrong_ptx_says_where() {
    let Some(device) = device(Mode::BadPtx, LONG) else { return };
    let e = error(device.module(PTX));
    let said = e.to_string();
    assert!(said.contains("kernel `add_one`, line 4") && said.contains("Unknown symbol 'x'"), "{said}");
    assert!(matches!(error(device.module("a\0b")), Error::Compile { .. }));
    assert_eq!(device.modules(), 0);
}

#[test]
fn graphs_do_their_steps_in_order_and_are_updated() {
    let Some(device) = device(Mode::Fine, LONG) else { return };
    let stream = device.stream().unwrap();
    let function = device.module(PTX).unwrap().function("add_one").unwrap();
    let (x, y, z) = (
        stream.upload(&[0; 16]).unwrap(),
        stream.upload(&[0; 16]).unwrap(),
        stream.upload(&[9; 16]).unwrap(),
    );
    let kernel = |b: u64| Step::Kernel(function.clone(), launch(b, 4));
    let steps = [
        Step::Fill(x.address(), 16, 0),
        kernel(x.address()),
        Step::Copy(y.address(), x.address(), 8),
        kernel(y.address()),
    ];
    let mut instance = Graph::new(&device, &steps).unwrap().instantiate().unwrap();
    instance.launch(&stream).unwrap();
    assert_eq!(words(&stream.download(&y).unwrap()), [2, 2, 1, 1]);
    // The last kernel works elsewhere from now on.
    assert!(instance.update(3, &kernel(z.address())).unwrap());
    assert!(instance.update(0, &Step::Fill(x.address(), 8, 0)).unwrap());
    assert!(!instance.update(0, &kernel(z.address())).unwrap(), "another kind of step");
    assert!(!instance.update(4, &kernel(z.address())).unwrap(), "no such step");
    instance.launch(&stream).unwrap();
    assert_eq!(words(&stream.download(&z).unwrap()), [0x0909_090A; 4]);
    assert_eq!(words(&stream.download(&x).unwrap()), [1, 1, 2, 2]);
    // What is captured does the same, and is not executed while it is.
    let graph = stream.capture(|s| {
        s.fill(&x, 0, 16, 1)?;
        s.launch(&function, &launch(x.address(), 2))
    });
    assert_eq!(words(&stream.download(&x).unwrap()), [1, 1, 2, 2]);
    let mut captured = graph.unwrap().instantiate().unwrap();
    captured.launch(&stream).unwrap();
    assert_eq!(words(&stream.download(&x).unwrap()), [0x0101_0102, 0x0101_0102, 0x0101_0101, 0x0101_0101]);
    let again = stream.capture(|s| {
        s.fill(&x, 0, 16, 2)?;
        s.launch(&function, &launch(x.address(), 1))
    });
    assert!(captured.update_from(again.unwrap()).unwrap());
    captured.launch(&stream).unwrap();
    assert_eq!(words(&stream.download(&x).unwrap()), [0x0202_0203, 0x0202_0202, 0x0202_0202, 0x0202_0202]);
    let e = error(stream.capture(|_| Err(Error::NoSuchSymbol { name: "k".to_owned() })));
    assert!(matches!(e, Error::NoSuchSymbol { .. }));
}

#[test]
fn the_policy_drives_the_driver() {
    for (mode, third) in [(Mode::Fine, Run::Launched(1)), (Mode::RefusesUpdate, Run::Replaced)] {
        let Some(device) = device(mode, LONG) else { return };
        let stream = device.stream().unwrap();
        let function = device.module(PTX).unwrap().function("add_one").unwrap();
        let (x, y) = (stream.upload(&[0; 16]).unwrap(), stream.upload(&[0; 16]).unwrap());
        let steps = |b: u64| {
            [
                Step::Kernel(function.clone(), launch(x.address(), 4)),
                Step::Kernel(function.clone(), launch(b, 4)),
            ]
        };
        let mut graphs = DriverGraphs { device: device.clone(), stream: stream.clone() };
        let mut cache: Cache<&str, DriverGraphs> = Cache::new(Policy::default());
        let mut run = |b: u64| cache.run(&mut graphs, &"program", &steps(b)).unwrap();
        assert_eq!((run(x.address()), run(x.address())), (Run::Direct, Run::Instantiated));
        assert_eq!(run(y.address()), third);
        assert_eq!(run(y.address()), Run::Launched(0));
        // Direct and instantiated twice each on x, then once on x and once on y, twice.
        assert_eq!(words(&stream.download(&x).unwrap()), [6; 4]);
        assert_eq!(words(&stream.download(&y).unwrap()), [2; 4]);
    }
}
