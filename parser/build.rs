//! Generates the LR(1) parser from `src/grammar.lalrpop`.

fn main() {
    lalrpop::Configuration::new()
        .emit_rerun_directives(true)
        .use_cargo_dir_conventions()
        .process()
        .expect("src/grammar.lalrpop is a valid grammar");
}
