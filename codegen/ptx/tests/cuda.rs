//! What nvcc makes of common CUDA kernels (`data/cuda.cu`), run with all checks against values computed here.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo_ptx::{Failure, Launch, Loaded, Memory, Options, Outcome, launch, lower};

const TEXT: &str = include_str!("data/cuda.ptx");

struct Device {
    memory: Memory,
    loaded: Loaded,
}

fn device() -> Device {
    let mut memory = Memory::default();
    let module = lower::module(TEXT).unwrap_or_else(|d| panic!("{}", d[0]));
    let loaded = memory.load(module).unwrap();
    Device { memory, loaded }
}

fn bytes<T: Copy, const N: usize>(v: &[T], f: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    v.iter().flat_map(|&x| f(x)).collect()
}

impl Device {
    fn u32s(&mut self, v: &[u32]) -> u64 {
        self.memory.upload("u32s", &bytes(v, u32::to_le_bytes)).unwrap()
    }

    fn f32s(&mut self, v: &[f32]) -> u64 {
        self.memory.upload("f32s", &bytes(v, f32::to_le_bytes)).unwrap()
    }

    fn try_run(
        &mut self,
        kernel: &str,
        grid: u32,
        block: [u32; 3],
        arguments: &[Vec<u8>],
    ) -> Result<Outcome, Failure> {
        let call = Launch { grid: [grid, 1, 1], block, shared_bytes: 0, arguments: arguments.to_vec() };
        launch(&self.loaded, kernel, &call, &mut self.memory, &Options::default())
    }

    fn run(&mut self, kernel: &str, grid: u32, block: u32, arguments: &[u64]) {
        let arguments: Vec<Vec<u8>> = arguments.iter().map(|a| a.to_le_bytes().to_vec()).collect();
        self.run_with(kernel, grid, [block, 1, 1], &arguments);
    }

    fn run_with(&mut self, kernel: &str, grid: u32, block: [u32; 3], arguments: &[Vec<u8>]) {
        let o = self.try_run(kernel, grid, block, arguments).unwrap_or_else(|f| panic!("{kernel}: {f}"));
        assert!(o.reports.is_empty(), "{kernel}: {}", o.reports[0]);
    }

    fn get_u32(&self, at: u64, n: u64) -> Vec<u32> {
        self.memory
            .read(at, 4 * n)
            .unwrap()
            .chunks(4)
            .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
            .collect()
    }

    fn get_f32(&self, at: u64, n: u64) -> Vec<f32> {
        self.get_u32(at, n).into_iter().map(f32::from_bits).collect()
    }
}

fn p(v: u64) -> Vec<u8> {
    v.to_le_bytes().to_vec()
}

fn i(v: u32) -> Vec<u8> {
    v.to_le_bytes().to_vec()
}

#[test]
fn saxpy_with_a_guard() {
    let mut d = device();
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let (a, b) = (d.f32s(&x), d.f32s(&vec![1.0; 100]));
    d.run_with("saxpy", 4, [32, 1, 1], &[i(100), 2f32.to_le_bytes().to_vec(), p(a), p(b)]);
    assert_eq!(d.get_f32(b, 100), x.iter().map(|x| 2.0 * x + 1.0).collect::<Vec<_>>());
}

#[test]
fn reductions_in_shared_memory_warps_and_the_last_block() {
    let mut d = device();
    let x: Vec<f32> = (0..1000).map(|i| (i % 17) as f32).collect();
    let sum: f32 = x.iter().sum();
    let (a, out) = (d.f32s(&x), d.f32s(&[0.0]));
    d.run_with("reduce", 3, [256, 1, 1], &[p(a), p(out), i(1000)]);
    assert_eq!(d.get_f32(out, 1), [sum]);

    let out = d.f32s(&[0.0; 8]);
    d.run("wreduce", 1, 256, &[a, out]);
    assert_eq!(d.get_f32(out, 8)[1], x[32..64].iter().sum::<f32>());

    // Blocks hand their parts over by a fence and an atomic counter: ordered, so no race.
    let (part, count, out) = (d.f32s(&[0.0; 8]), d.u32s(&[0]), d.f32s(&[0.0]));
    d.run("lastblock", 8, 32, &[a, part, count, out]);
    assert_eq!(d.get_f32(out, 1), [x[..256].iter().sum::<f32>()]);
}

#[test]
fn histogram_scan_and_matmul() {
    let mut d = device();
    let data: Vec<u8> = (0..5000_u32).map(|i| (i * i % 251) as u8).collect();
    let (a, h) = (d.memory.upload("data", &data).unwrap(), d.u32s(&[0; 256]));
    d.run_with("hist", 1, [256, 1, 1], &[p(a), i(5000), p(h)]);
    let mut want = vec![0; 256];
    data.iter().for_each(|&b| want[usize::from(b)] += 1);
    assert_eq!(d.get_u32(h, 256), want);

    let x = d.u32s(&(0..64).collect::<Vec<_>>());
    d.run("scan", 1, 64, &[x]);
    assert_eq!(d.get_u32(x, 64), (0..64).map(|i| i * (i + 1) / 2).collect::<Vec<_>>());

    let n = 32;
    let m: Vec<f32> = (0..n * n).map(|i| (i % 7) as f32).collect();
    let (a, b, c) = (d.f32s(&m), d.f32s(&m), d.f32s(&vec![0.0; n * n]));
    let call = Launch {
        grid: [2, 2, 1],
        block: [16, 16, 1],
        shared_bytes: 0,
        arguments: vec![p(a), p(b), p(c), i(n as u32)],
    };
    let o = launch(&d.loaded, "matmul", &call, &mut d.memory, &Options::default()).unwrap();
    assert!(o.reports.is_empty(), "{}", o.reports[0]);
    let want: Vec<f32> =
        (0..n * n).map(|i| (0..n).map(|k| m[i / n * n + k] * m[k * n + i % n]).sum()).collect();
    assert_eq!(d.get_f32(c, (n * n) as u64), want);
}

#[test]
fn halves_and_bf16() {
    use half::{bf16, f16};
    let mut d = device();
    let (x, y): (Vec<f32>, Vec<f32>) =
        ((0..64).map(|i| i as f32 * 0.37).collect(), (0..64).map(|i| 5.0 - i as f32 * 0.11).collect());
    let h = |v: &[f32]| bytes(v, |x| f16::from_f32(x).to_le_bytes());
    let (a, b, c) = (
        d.memory.upload("a", &h(&x)).unwrap(),
        d.memory.upload("b", &h(&y)).unwrap(),
        d.memory.allocate("c", 128).unwrap(),
    );
    d.run("halfs", 1, 32, &[a, b, c]);
    let got: Vec<f16> =
        d.memory.read(c, 128).unwrap().chunks(2).map(|b| f16::from_le_bytes(b.try_into().unwrap())).collect();
    for (n, g) in got.iter().enumerate() {
        let (x, y) = (f16::from_f32(x[n]).to_f64(), f16::from_f32(y[n]).to_f64());
        assert_eq!(*g, f16::from_f64(x * y + x.max(y)), "{n}");
    }
    let h = |v: &[f32]| bytes(v, |x| bf16::from_f32(x).to_le_bytes());
    let (a, b) = (d.memory.upload("a", &h(&x)).unwrap(), d.memory.upload("b", &h(&y)).unwrap());
    let (c, f) = (d.memory.allocate("c", 128).unwrap(), d.memory.allocate("f", 128).unwrap());
    d.run("bfs", 1, 32, &[a, b, c, f]);
    let got: Vec<bf16> = d
        .memory
        .read(c, 128)
        .unwrap()
        .chunks(2)
        .map(|b| bf16::from_le_bytes(b.try_into().unwrap()))
        .collect();
    for (n, g) in got.iter().enumerate() {
        let (x, y) = (bf16::from_f32(x[n]), bf16::from_f32(y[n]));
        assert_eq!(*g, bf16::from_f64(bf16::from_f64(x.to_f64() * y.to_f64()).to_f64() + x.to_f64()), "{n}");
    }
    assert_eq!(d.get_f32(f, 32)[3], bf16::from_f32(x[6]).to_f32());
}

#[test]
fn votes_and_integers() {
    let mut d = device();
    let x: Vec<u32> = (0..32).map(|i| i % 5).collect();
    let a = d.u32s(&x);
    d.run("votes", 1, 32, &[a]);
    let ballot = (0..32).filter(|&l| x[l] > 3).fold(0_u32, |m, l| m | 1 << l);
    let sum: u32 = x.iter().sum();
    let want: Vec<u32> = x
        .iter()
        .map(|&v| {
            let same = (0..32).filter(|&l| x[l] == v).fold(0_u32, |m, l| m | 1 << l);
            let bits = ballot.count_ones() + ballot.leading_zeros() + ballot.trailing_zeros() + 1;
            // Not all are non-zero: __all_sync is 0.
            ballot
                .wrapping_add(same)
                .wrapping_add(sum)
                .wrapping_add(bits)
                .wrapping_add(ballot.reverse_bits())
                .wrapping_add(u32::MAX)
        })
        .collect();
    assert_eq!(d.get_u32(a, 32), want);

    let s: Vec<i64> = (0..32).map(|i| (i - 16) * 1_000_000_007_123).collect();
    let u: Vec<u64> = (0..32).map(|i| 0xFEDC_BA98_7654_3210_u64.wrapping_mul(i + 1)).collect();
    let (a, b) = (
        d.memory.upload("s", &bytes(&s, i64::to_le_bytes)).unwrap(),
        d.memory.upload("u", &bytes(&u, u64::to_le_bytes)).unwrap(),
    );
    d.run("i64", 1, 32, &[a, b]);
    let want = bytes(&s, |v| (v / 3 + v % 7).to_le_bytes());
    assert_eq!(d.memory.read(a, 256).unwrap(), want);
    let want =
        bytes(&u, |v| (((u128::from(v) * u128::from(v)) >> 64) as u64).wrapping_add(v / 10).to_le_bytes());
    assert_eq!(d.memory.read(b, 256).unwrap(), want);
}

#[test]
fn calls_recursion_tables_and_switches() {
    let mut d = device();
    let x = d.u32s(&(0..32).map(|i| i % 11).collect::<Vec<_>>());
    d.run("recurse", 1, 32, &[x]);
    assert_eq!(
        d.get_u32(x, 32),
        (0..32).map(|i| [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55][i % 11]).collect::<Vec<u32>>()
    );

    let x = d.u32s(&(0..32).collect::<Vec<_>>());
    d.run("indirect", 1, 32, &[x]);
    assert_eq!(d.get_u32(x, 32), (0..32).map(|i| if i & 1 == 0 { i + 1 } else { i * 2 }).collect::<Vec<_>>());

    let x = d.u32s(&(0..32).map(|i| i % 9).collect::<Vec<_>>());
    d.run("sw", 1, 32, &[x]);
    let f = |v: u32| match v {
        0 => 7,
        1 => 8,
        2 => 2 ^ 99,
        3 => 24,
        4 => 4_u32.wrapping_neg(),
        5 => 1005,
        6 => 36,
        _ => 0,
    };
    assert_eq!(d.get_u32(x, 32), (0..32).map(|i| f(i % 9)).collect::<Vec<_>>());
}

#[test]
fn constants_structures_locals_and_doubles() {
    let mut d = device();
    let x = d.f32s(&[0.0, 1.0, 2.0, -1.5]);
    d.run("cpoly", 1, 4, &[x]);
    // nvcc contracts to fma; these are exact.
    assert_eq!(d.get_f32(x, 4), [1.0, 10.0, 49.0, -8.75]);

    // struct Big { int a[8]; double d; char c; }: 48 bytes.
    let mut big = vec![0_u8; 48];
    for i in 0..8_u8 {
        big[usize::from(i) * 4] = i * 3;
    }
    big[32..40].copy_from_slice(&100.9_f64.to_le_bytes());
    big[40] = 5;
    let x = d.u32s(&[0; 16]);
    d.run_with("bystruct", 1, [16, 1, 1], &[big, p(x)]);
    assert_eq!(d.get_u32(x, 16), (0..16).map(|t| (t & 7) * 3 + 105).collect::<Vec<_>>());

    let x = d.u32s(&[(0..16).map(|i| i + 1).collect::<Vec<_>>(), vec![0; 16]].concat());
    d.run("local", 1, 16, &[x]);
    let all: u32 = (0..16).map(|i| (i + 1) * i).sum();
    assert_eq!(d.get_u32(x + 64, 16), vec![all; 16]);

    let v = [0.1_f64, 1.5, -2.7, 1e6];
    let x = d.memory.upload("x", &bytes(&v, f64::to_le_bytes)).unwrap();
    d.run("lambda64", 1, 4, &[x]);
    let got: Vec<f64> =
        d.memory.read(x, 32).unwrap().chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    for (v, g) in v.iter().zip(got) {
        let want = (v + 1.0)
            + v.mul_add(*v, 1.0)
            + v.floor()
            + v.round_ties_even()
            + v / 3.0
            + f64::from(*v as i32)
            + f64::from(*v as f32);
        assert!((g - want).abs() <= 1e-12 * want.abs(), "{v}: {g} {want}");
    }
}

#[test]
fn asynchronous_copies_and_locks() {
    let mut d = device();
    let x: Vec<u32> = (0..512).collect();
    let (a, out) = (d.u32s(&x), d.memory.allocate("out", 2048).unwrap());
    d.run("pipe", 1, 64, &[a, out]);
    let want: Vec<u32> =
        (0..128).flat_map(|t| (0..4).map(move |k| (t / 64 * 64 + 63 - t % 64) * 4 + k)).collect();
    assert_eq!(d.get_u32(out, 512), want);

    let (lock, n) = (d.u32s(&[0]), d.u32s(&[0]));
    d.run("sem", 20, 32, &[lock, n]);
    assert_eq!((d.get_u32(lock, 1), d.get_u32(n, 1)), (vec![0], vec![20]));
}

#[test]
fn bytes_and_video_instructions() {
    let mut d = device();
    let c: Vec<u8> = (0..128_u32).map(|i| (i * 37 + 200) as u8).collect();
    let u: Vec<u32> = (0..32).map(|i| 0x9ABC_DEF0_u32.wrapping_mul(i * 2 + 1)).collect();
    let (a, b) = (d.memory.upload("a", &c).unwrap(), d.memory.allocate("b", 128).unwrap());
    let (s, ua, v) = (d.memory.allocate("s", 64).unwrap(), d.u32s(&u), d.memory.allocate("v", 128).unwrap());
    d.run("bytes", 1, 32, &[a, b, s, ua, v]);
    for t in 0..32 {
        let q: Vec<i32> = c[4 * t..4 * t + 4].iter().map(|&b| i32::from(b as i8)).collect();
        let want = [q[0] + 1, q[1] >> 1, q[2] * q[3], q[3]].map(|v| v as u8);
        assert_eq!(d.memory.read(b + 4 * t as u64, 4).unwrap(), want, "{t}");
        assert_eq!(d.memory.read(s + 2 * t as u64, 2).unwrap(), ((q[0] * q[1]) as i16).to_le_bytes());
        let x = u[t];
        let halves = ((x & 0xFFFF).wrapping_mul(2) & 0xFFFF) | (x >> 16).wrapping_mul(2) << 16;
        // __byte_perm(x, 7, 0x4321): bytes 1, 2, 3 of x and 0 of 7.
        let perm = x >> 8 | 7 << 24;
        let dot: i32 =
            x.to_le_bytes().iter().map(|&b| i32::from(b as i8) * i32::from(b as i8)).sum::<i32>() + 3;
        // __funnelshift_l(lo, hi, shift)
        let wide = (5_u64 << 32 | u64::from(x)) << (x & 31);
        let want = halves.wrapping_add(perm).wrapping_add(dot as u32).wrapping_add((wide >> 32) as u32);
        assert_eq!(d.get_u32(v, 32)[t], want, "{t}");
    }
}
