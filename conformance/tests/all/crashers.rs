//! Every file in `crashers/` must end in an error with a span or in a program that verifies, prints and runs
//! within limits.

use hlo::print::{PrintOptions, print_module};
use hlo_engines::engine::{self, Engine, Inputs, InterpreterEngine, Limits, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_engines::inputs;
use hlo_system::guard::{guarded, on_deep_stack};
use libtest_mimic::Trial;

use crate::{crate_dir, failed};

pub(crate) fn trials() -> Vec<Trial> {
    let mut paths: Vec<_> = std::fs::read_dir(crate_dir().join("crashers"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.is_file() && p.extension().is_none_or(|e| e != "md"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Trial::test(format!("crasher/{name}"), move || {
                let bytes = std::fs::read(&path).map_err(|e| failed(e.to_string()))?;
                survive(&String::from_utf8_lossy(&bytes)).map_err(failed)
            })
        })
        .collect()
}

/// Takes a text through all stages under tight limits. Errors: a panic anywhere, or a rejection without an
/// error.
pub(crate) fn survive(text: &str) -> Result<(), String> {
    on_deep_stack(|| {
        guarded("trying a crasher", || {
            let (module, found) = parse_text(text);
            let Some(module) = module else {
                return Ok(if found.has_errors() {
                    Ok(())
                } else {
                    Err("rejected without an error".to_owned())
                });
            };
            print_module(&module, &PrintOptions::source(&module));
            print_module(&module, &PrintOptions::CANONICAL);
            if hlo::verify::verify(&module).has_errors() {
                return Ok(Ok(()));
            }
            let limits = Limits { fuel: Some(10_000), memory_bytes: 64 << 20 };
            let made = inputs::plan(&module, None)
                .and_then(|p| {
                    let devices = engine::devices::stated(&module, None, None)?;
                    Ok((devices, inputs::generate(&p, 0, devices, limits.memory_bytes)?))
                })
                .and_then(|(devices, a)| Ok((devices, Inputs::new(&module, &a)?)));
            if let Ok((devices, arguments)) = made {
                // Any outcome will do but a panic.
                let _ = InterpreterEngine.run(
                    &module,
                    arguments,
                    &RunOptions { limits, devices, ..RunOptions::default() },
                );
            }
            Ok(Ok(()))
        })
    })
    .map_err(|f| f.message)?
}
