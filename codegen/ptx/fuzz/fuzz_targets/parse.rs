//! Any text: diagnostics or a module, and what parses prints back the same tokens.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(tree) = hlo_ptx::parse::parse(text) {
        let printed = hlo_ptx::print::print(&tree);
        let words = |t: &str| hlo_ptx::lex::tokens(t).unwrap().iter().map(|x| x.text(t).to_owned()).collect::<Vec<_>>();
        assert_eq!(words(text), words(&printed));
        let _ = hlo_ptx::lower::verify(text, &tree);
    }
});
