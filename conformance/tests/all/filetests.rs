//! Every file below `filetests/` (see `hlo_conformance::filetest`).

use std::fs;

use hlo_conformance::filetest::run_file;
use hlo_conformance::guard::on_deep_stack;
use libtest_mimic::Trial;

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
                let blessed = on_deep_stack(|| run_file(&name, &text, bless)).map_err(failed)?;
                match blessed {
                    Some(new) if bless => fs::write(&path, new).map_err(|e| failed(e.to_string())),
                    _ => Ok(()),
                }
            })
        })
        .collect()
}
