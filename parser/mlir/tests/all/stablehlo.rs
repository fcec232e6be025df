//! StableHLO's own tests, where a checkout has them: `HLO_STABLEHLO` names the folder `stablehlo` of its
//! sources, or they are in `../shared/stablehlo`.

use std::path::{Path, PathBuf};

use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::{ReadOptions, parse_part, split};

pub(crate) fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("HLO_STABLEHLO").map(PathBuf::from);
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/stablehlo");
    named.or(Some(shared)).filter(|folder| folder.join("testdata").is_dir())
}

#[test]
fn every_test_program_reads_and_prints_to_the_same_module() {
    let Some(folder) = folder() else {
        println!("skipped: no StableHLO beside this checkout (HLO_STABLEHLO names its folder)");
        return;
    };
    let mut wrong = Vec::new();
    let mut modules = 0;
    for below in
        ["tests/interpret", "tests/interpret/chlo", "testdata", "testdata/quantized", "testdata/dynamic"]
    {
        let Ok(entries) = std::fs::read_dir(folder.join(below)) else { continue };
        for path in entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "mlir"))
        {
            let text = std::fs::read_to_string(&path).unwrap();
            for part in split(&text) {
                modules += 1;
                let module = match parse_part(&text, part, &ReadOptions::default()) {
                    Ok(module) => module,
                    Err(found) => {
                        wrong.push(hlo::diag::render_all(&found, &path.display().to_string(), &text, false));
                        continue;
                    }
                };
                let once = print(&module, &PrintOptions::default());
                let again = parse_part(&once, hlo::Span::new(0, once.len()), &ReadOptions::default());
                if again.map(|again| print(&again, &PrintOptions::default())).as_ref().ok() != Some(&once) {
                    wrong.push(format!("{}: prints to another module", path.display()));
                }
            }
        }
    }
    assert!(modules > 2000, "{modules} modules");
    assert!(wrong.is_empty(), "{} of {modules}:\n{}", wrong.len(), wrong.join("\n"));
}
