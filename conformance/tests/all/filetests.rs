//! Every file below `filetests/` (see `hlo_conformance::filetest`), but those below `filetests/verify/`:
//! these are broken programs, and what people see of their errors must be, byte for byte, the `.stderr`
//! beside each.
//!
//! `HLO_BLESS=1` rewrites goldens (read the diff); where CI is set that is refused.

use std::fs;
use std::path::Path;

use hlo_conformance::filetest::run_file;
use hlo_engines::frontend::parse_text;
use hlo_system::guard::on_deep_stack;
use libtest_mimic::{Failed, Trial};

use crate::{crate_dir, failed, files_below};

pub(crate) fn trials() -> Vec<Trial> {
    let root = crate_dir().join("filetests");
    let bless = std::env::var_os("HLO_BLESS").is_some();
    if bless && std::env::var_os("CI").is_some() {
        panic!("HLO_BLESS is refused where CI is set: goldens are blessed by people");
    }
    files_below(&root, "hlo")
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
            Trial::test(format!("filetest/{name}"), move || {
                let text = fs::read_to_string(&path).map_err(|e| failed(e.to_string()))?;
                if let Some(name) = name.strip_prefix("verify/") {
                    return rendered_errors(name, &path, &text, bless);
                }
                let blessed = on_deep_stack(|| run_file(&name, &text, bless)).map_err(failed)?;
                match blessed {
                    Some(new) if bless => fs::write(&path, new).map_err(|e| failed(e.to_string())),
                    _ => Ok(()),
                }
            })
        })
        .collect()
}

/// What is wrong with a program, that parsing finds or else verification, rendered.
fn rendered_errors(name: &str, path: &Path, text: &str, bless: bool) -> Result<(), Failed> {
    let (module, mut found) = parse_text(text);
    if let Some(module) = module
        && !found.has_errors()
    {
        found = hlo::verify::verify(&module);
    }
    if !found.has_errors() {
        return Err(failed("no error"));
    }
    let rendered = hlo::diag::render_all(&found, name, text, false);
    let golden = path.with_extension("stderr");
    if bless {
        return fs::write(&golden, &rendered).map_err(|e| failed(e.to_string()));
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    if rendered == expected {
        Ok(())
    } else {
        Err(failed(format!("expected\n{expected}\nfound\n{rendered}")))
    }
}
