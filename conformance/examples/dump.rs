use hlo::elided::splitmix64;
use hlo::print::{PrintOptions, print_module};
use hlo_conformance::engine::*;
use hlo_conformance::generate::*;
use hlo_conformance::npz;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (dir, from, to, n): (_, u64, u64, u64) =
        (&a[1], a[2].parse().unwrap(), a[3].parse().unwrap(), a[4].parse().unwrap());
    for seed in from..to {
        let bytes: Vec<u8> = (0..n).map(|i| splitmix64(seed << 20 | i) as u8).collect();
        let m =
            program(&bytes, hlo_conformance::generate::Limits { instructions: 5, elements: 60, nesting: 1 });
        let inputs = edge_inputs(&m, seed);
        let mut arrays = vec![];
        inputs.iter().for_each(|l| flatten(l.clone(), &mut arrays));
        let base = format!("{dir}/{seed:06}");
        std::fs::write(format!("{base}.hlo"), print_module(&m, &PrintOptions::source(&m))).unwrap();
        save(&format!("{base}.in.npz"), "arg", &arrays);
        for (name, acc) in
            [("exact", hlo_interp::Accumulate::Exact), ("region", hlo_interp::Accumulate::Region)]
        {
            if let Outcome::Finished(f) = InterpreterEngine.run(
                &m,
                inputs.clone(),
                &RunOptions { accumulate: acc, ..Default::default() },
            ) {
                save(&format!("{base}.{name}.npz"), "out", &f.results);
            }
        }
    }
}
fn save(path: &str, prefix: &str, arrays: &[hlo::ArrayLiteral]) {
    let named: Vec<(String, &hlo::ArrayLiteral)> =
        arrays.iter().enumerate().map(|(i, a)| (format!("{prefix}{i}"), a)).collect();
    npz::write(std::path::Path::new(path), &named).unwrap();
}
