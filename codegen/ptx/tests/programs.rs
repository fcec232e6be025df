//! XLA:GPU's kernels of JAX programs, run with all checks: their results are those that XLA:CPU recorded, and
//! nothing is reported.
#![allow(clippy::print_stderr, reason = "a test says that it skips, and what it counted")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use hlo_ptx::Options;
use support::{Ran, arrays, check, corpus, program};

#[test]
fn programs_of_kernels_compute_the_recorded_results() {
    let (Some(gpu), Some(jax)) = (corpus("gpu/jax"), corpus("jax")) else { return };
    let (mut right, mut other, mut wrong, mut reported) = (0, Vec::new(), Vec::new(), Vec::new());
    let mut names: Vec<String> =
        std::fs::read_dir(&gpu).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    for name in names {
        let Some(p) = program(&gpu.join(&name)) else { continue };
        let inputs = arrays(&jax.join(&name).join("inputs.npz"));
        let expected = arrays(&jax.join(&name).join("expected.npz"));
        let inputs: Vec<Vec<u8>> = (0..inputs.len()).map(|i| inputs[&format!("arg{i}")].clone()).collect();
        let options = Options { fuel: 200_000_000, ..Options::default() };
        match p.run(&inputs, &options, &|t| t.to_owned()) {
            Ran::Other(why) => other.push(format!("{name}: {why}")),
            Ran::Failed(why) => wrong.push(format!("{name}: {why}")),
            Ran::Results(results, outcomes) => {
                for o in &outcomes {
                    reported.extend(o.reports.iter().map(|r| format!("{name}: {r}")));
                }
                let case = std::fs::read_to_string(jax.join(&name).join("case.json")).unwrap();
                let case: serde_json::Value = serde_json::from_str(&case).unwrap();
                let mut fine = Ok(());
                for (i, got) in results.iter().enumerate() {
                    let want = &expected[&format!("out{i}")];
                    fine = fine.and_then(|()| check(&case["results"][i], got, want));
                }
                match fine {
                    Ok(()) => right += 1,
                    Err(why) => wrong.push(format!("{name}: {why}")),
                }
            }
        }
    }
    eprintln!(
        "{right} right, {} of other kinds, {} wrong, {} reports",
        other.len(),
        wrong.len(),
        reported.len()
    );
    other.iter().for_each(|o| eprintln!("other: {o}"));
    wrong.iter().for_each(|o| eprintln!("wrong: {o}"));
    reported.iter().for_each(|o| eprintln!("reported: {o}"));
    assert!(reported.is_empty());
    assert!(wrong.is_empty());
    // Of 299 programs; the others have loops and branches of the host, library calls, or nothing to launch.
    assert!(right >= 255, "{right} programs");
}
