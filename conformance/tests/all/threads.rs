//! The number of threads changes no bit: the recorded programs and the filetests on 1, 2 and 8 threads.

use hlo_conformance::filetest;
use hlo_conformance::folder::find_cases;
use hlo_engines::engine::{Engine, Inputs, InterpreterEngine, Limits, RunOptions};
use hlo_engines::frontend::load;
use hlo_engines::inputs;
use hlo_interp::Accumulate;
use hlo_triage::case::Case;
use libtest_mimic::Trial;

use crate::generated::POOLS;
use crate::{crate_dir, failed, files_below};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("threads/corpus", || corpus().map_err(failed)),
        Trial::test("threads/filetests", || filetests().map_err(failed)),
    ]
}

fn corpus() -> Result<(), String> {
    let folder = crate_dir().join("corpus").to_string_lossy().into_owned();
    let mut compared = 0;
    for folder in find_cases(&[folder]).map_err(|f| f.message)? {
        let case = Case::open(&folder).map_err(|f| f.message)?;
        let devices = case.devices().map_err(|f| f.message)?;
        let path = folder.join("module.hlo").to_string_lossy().into_owned();
        let program = load(&path).map_err(|r| r.render(false))?;
        let mut npz = case.inputs(1 << 30).map_err(|f| f.message)?;
        let arrays = inputs::read(&program.module, &mut npz, devices).map_err(|f| f.message)?;
        for accumulate in [Accumulate::Exact, Accumulate::Region] {
            let limits = Limits { fuel: None, memory_bytes: 2 << 30 };
            let options = RunOptions { accumulate, limits, devices, ..RunOptions::default() };
            let results = POOLS.iter().map(|pool| {
                let inputs = Inputs::new(&program.module, &arrays).map_err(|f| f.message)?;
                let outcome = pool.install(|| InterpreterEngine.run(&program.module, inputs, &options));
                Ok(outcome.into_results().map(|f| f.results).map_err(|(_, d)| d.message))
            });
            let results = results.collect::<Result<Vec<_>, String>>()?;
            if results.iter().any(|r| *r != results[0]) {
                return Err(format!("{path}: other results on other numbers of threads, {accumulate:?}"));
            }
            compared += usize::from(results[0].is_ok());
        }
    }
    if compared == 0 { Err("there is no program to compare".into()) } else { Ok(()) }
}

/// What a filetest says of results, to the bit, holds on any number of threads.
fn filetests() -> Result<(), String> {
    let root = crate_dir().join("filetests");
    // Those below `verify/` do not run.
    for path in files_below(&root, "hlo").iter().filter(|p| !p.starts_with(root.join("verify"))) {
        let name = path.to_string_lossy();
        let text = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
        for pool in POOLS.iter() {
            let threads = pool.current_num_threads();
            pool.install(|| filetest::run_file(&name, &text, false))
                .map_err(|e| format!("on {threads} threads: {e}"))?;
        }
    }
    Ok(())
}
