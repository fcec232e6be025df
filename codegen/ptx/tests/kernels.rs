//! Every kernel of the corpus whose buffers are small enough, alone, on plausible contents and a sample of
//! its blocks: nothing is reported. (`programs.rs` checks values.)
#![allow(clippy::print_stderr, reason = "a test says that it skips, and what it counted")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use hlo_ptx::{Launch, Memory, Options, launch, lower};
use support::{contents, corpus, leaves_of, shapes, thunks};

/// Buffers of a kernel together.
const MOST_BYTES: u64 = 24 << 20;

#[test]
fn no_kernel_is_reported() {
    let Some(gpu) = corpus("gpu") else { return };
    let (mut ran, mut skipped, mut reported) = (0, 0, Vec::new());
    let mut folders: Vec<std::path::PathBuf> = ["jax", "bench"]
        .iter()
        .flat_map(|g| std::fs::read_dir(gpu.join(g)).unwrap())
        .map(|f| f.unwrap().path())
        .collect();
    folders.sort();
    for folder in folders {
        let files: Vec<std::path::PathBuf> =
            std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
        let find = |end: &str| {
            files
                .iter()
                .find(|f| f.to_string_lossy().ends_with(end))
                .map(|f| std::fs::read_to_string(f).unwrap())
        };
        let (Some(list), Some(hlo)) = (find("thunk_sequence.txt"), find("after_optimizations.txt")) else {
            continue;
        };
        let shapes = shapes(&hlo);
        let modules: Vec<hlo_ptx::ir::Module> = files
            .iter()
            .filter(|f| f.extension().is_some_and(|e| e == "ptx"))
            .map(|f| lower::module(&std::fs::read_to_string(f).unwrap()).unwrap())
            .collect();
        for t in thunks(&list).iter().filter(|t| t.kind == "kCustomKernel") {
            let named = |n: &str| shapes.iter().find(|s| s.0.replace(['.', '-'], "_") == n);
            let mut name = t.name.clone();
            // `sort_0_6__1` is a launch of `sort_0`'s instruction; names end with numbers that the
            // instruction may lack.
            let mut found = named(&name);
            while found.is_none() {
                let Some(at) = name.rfind('_') else { break };
                name.truncate(at);
                found = named(&name);
            }
            let module = modules.iter().find(|m| m.kernel(&t.name).is_some());
            let (Some((_, (shape, _, operands))), Some(module)) = (found, module) else {
                skipped += 1;
                continue;
            };
            let mut buffers = Vec::new();
            for o in operands {
                let (base, index) =
                    o.split_once('#').map_or((o.as_str(), None), |(b, i)| (b, i.parse::<usize>().ok()));
                let Some((s, ..)) = shapes.get(base) else { continue };
                let all = leaves_of(s);
                buffers.extend(index.map_or(all.clone(), |i| all.get(i).cloned().into_iter().collect()));
            }
            buffers.extend(leaves_of(shape));
            let params = module.functions[module.kernel(&t.name).unwrap()].params.len();
            if buffers.len() > params {
                // Kernels in place have one buffer for operand and result.
                buffers.drain(..buffers.len() - params);
            }
            if buffers.len() != params || buffers.iter().map(|b| b.1).sum::<u64>() > MOST_BYTES {
                skipped += 1;
                continue;
            }
            let mut memory = Memory::default();
            let loaded = memory.load(module.clone()).unwrap();
            let arguments: Vec<u64> =
                buffers.iter().map(|(ty, n)| memory.upload(ty, &contents(ty, *n)).unwrap()).collect();
            let options = Options { blocks: 2, fuel: 30_000_000, ..Options::default() };
            ran += 1;
            match launch(
                &loaded,
                &t.name,
                &Launch::new(t.grid, t.block, t.shared, &arguments),
                &mut memory,
                &options,
            ) {
                Ok(o) => reported.extend(o.reports.iter().map(|r| format!("{}: {r}", folder.display()))),
                Err(f) => reported.push(format!("{}: {f}", folder.display())),
            }
        }
    }
    eprintln!("{ran} kernels ran, {skipped} skipped");
    reported.iter().take(20).for_each(|r| eprintln!("{r}"));
    assert!(reported.is_empty(), "{} reports", reported.len());
    assert!(ran >= 300, "{ran} kernels");
}
