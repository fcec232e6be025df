//! Several configurations in one process: each client compiles and runs under its own, with the same bits but
//! of sums, whose order depends on the width of vectors.

use std::num::NonZeroU32;

use hlo::{ArrayLiteral, BufferOf};
use hlo_client::backend::{Backend, Cpu};
use hlo_client::{Client, ClientOptions, CompileOptions, Configuration, Isa, artifact, tuning};

use crate::common::{arguments, arrays, compile};

/// A product whose right operand is packed when the program is loaded, its sorted rows, the sums of the rows
/// of its signs (exact in any order), and of the rows themselves.
const PROGRAM: &str = "HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f32[96,300] parameter(0)
  i = f32[300,130] iota(), iota_dimension=0
  c = f32[] constant(0.0625)
  cs = f32[300,130] broadcast(c), dimensions={}
  w = f32[300,130] multiply(i, cs)
  p = f32[96,130] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[] constant(0)
  g = f32[96,130] sign(p)
  n = f32[96] reduce(g, z), dimensions={1}, to_apply=add
  r = f32[96] reduce(p, z), dimensions={1}, to_apply=add
  s = f32[96,130] sort(p), dimensions={1}, to_apply=less
  ROOT t = (f32[96,130], f32[96,130], f32[96], f32[96]) tuple(p, s, n, r)
}";

fn configurations() -> [Configuration; 3] {
    let divided = NonZeroU32::new(4096).unwrap();
    [
        Configuration::default(),
        Configuration::new(Some(Isa::Avx2), tuning::by_name("avx2"), NonZeroU32::MIN),
        Configuration::new(None, tuning::by_name("golden-cove"), divided),
    ]
}

fn client(configuration: Configuration) -> Client {
    Client::cpu(ClientOptions { threads: 2, configuration, ..ClientOptions::default() }).unwrap()
}

#[test]
fn clients_of_different_configurations_agree() {
    let clients = configurations().map(client);
    let results = std::thread::scope(|scope| {
        let of_client = |client| {
            scope.spawn(move || {
                let executable = compile(client, PROGRAM);
                let arguments = arguments(client, &executable);
                let arguments: Vec<_> = arguments.iter().collect();
                let run = || arrays(&executable.execute(&arguments).unwrap());
                let first = run();
                assert!((0..20).all(|_| run() == first));
                first
            })
        };
        let running = clients.each_ref().map(of_client);
        running.map(|thread| thread.join().unwrap())
    });
    let [p, _, _, sums] = &results[0][..] else { panic!("four results") };
    for other in &results {
        assert_eq!(other[..3], results[0][..3]);
        for ((row, a), b) in elements(p).chunks(130).zip(elements(sums)).zip(elements(&other[3])) {
            // Two orders of the same sum, each within (n - 1) u of the sum of magnitudes.
            let magnitudes: f64 = row.iter().map(|x| f64::from(x.abs())).sum();
            let bound = 2.0 * 129.0 * f64::from(f32::EPSILON / 2.0) * magnitudes;
            assert!((f64::from(*a) - f64::from(*b)).abs() <= bound, "{a} and {b}");
        }
    }
}

fn elements(array: &ArrayLiteral) -> &[f32] {
    BufferOf::slice(&array.buffer).unwrap()
}

#[test]
fn programs_are_compiled_for_the_configuration_of_their_client() {
    let [whole, narrow, divided] = configurations();
    let target = |configuration| {
        let client = client(configuration);
        let program = client.parse(PROGRAM).unwrap();
        let bytes = client.compile_artifact(&program, &CompileOptions::default()).unwrap();
        artifact::info(&bytes).unwrap().target
    };
    if cfg!(target_arch = "x86_64") {
        assert!(target(narrow).ends_with("avx2"), "{}", target(narrow));
    }
    assert_eq!(target(whole), target(divided));
    // Programs of one are not found in a cache by another.
    let keys = [whole, narrow, divided].map(|c| Cpu::new(1, c).fingerprint());
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[2] != keys[0], "{keys:?}");
}
