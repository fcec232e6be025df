//! StableHLO programs: MLIR text to HLO.
//!
//! A text may have several modules, separated by lines `// -----`, and a module several functions. One
//! function becomes the program: `main`, the only one, or the one that is picked by name. Spans of the
//! program and of what is found are ranges of the text that was given.

pub mod output;

use hlo::diag::codes;
use hlo::{Diagnostic, Diagnostics, Module, Span};
use hlo_mlir::convert::{ConvertOptions, convert, functions};
use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::{ReadOptions, parse_part, split};
use hlo_parser::Pick;

use hlo_system::exit::Exit;

/// Whether a text is MLIR.
pub fn is_mlir(text: &str) -> bool {
    hlo_mlir::text::looks_like_mlir(text)
}

/// The result of reading a text with a choice among its modules and functions.
struct Chosen {
    module: hlo_mlir::ir::Module,
    function: Option<String>,
    /// Dimensions of arguments whose types do not say them: `--module 'f(f32[2,3])'`.
    argument_dims: Option<Vec<Option<Vec<i64>>>>,
}

fn choose(text: &str, pick: Option<&Pick>, options: &ReadOptions) -> Result<Chosen, Diagnostics> {
    let parts = split(text);
    let one = |part: Span, function: Option<String>| {
        parse_part(text, part, options).map(|module| Chosen { module, function, argument_dims: None })
    };
    let wrong = |message: String| -> Diagnostics {
        let span = parts.get(1).copied().unwrap_or(Span::new(0, 1));
        let span = Span::new(span.start as usize, span.start as usize + 1);
        Diagnostic::error(codes::parse::SEVERAL_MODULES, span, message).into()
    };
    match (pick, &parts[..]) {
        (None, []) => one(Span::new(0, text.len()), None),
        (None, [only]) => one(*only, None),
        (None, [..]) => Err(wrong(format!("the text has {} modules; --module picks one", parts.len()))),
        (Some(Pick::Number(n)), _) => match n.checked_sub(1).and_then(|i| parts.get(i)) {
            Some(&part) => one(part, None),
            None => Err(wrong(format!("there is no module {n}: the text has {}", parts.len()))),
        },
        (Some(Pick::Name(name)), _) => {
            let (name, argument_dims) = match name.split_once('(') {
                None => (&**name, None),
                Some((name, shapes)) => {
                    let list = hlo_parser::parse_shape_list(shapes.trim_end().trim_end_matches(')'));
                    let shapes =
                        list.map_err(|d| wrong(format!("`({shapes}` are no shapes: {}", d.message)))?;
                    let dims = |s: &hlo::Shape| s.as_array().map(|a| a.dims.to_vec());
                    (name.trim(), Some(shapes.iter().map(dims).collect()))
                }
            };
            for &part in &parts {
                let chosen = one(part, None)?;
                if functions(&chosen.module).iter().any(|f| f.1 == name) {
                    return Ok(Chosen { function: Some(name.to_owned()), argument_dims, ..chosen });
                }
                let top = chosen.module.top().and_then(|top| chosen.module.attr(top, "sym_name"));
                if let Some(hlo_mlir::ir::Attribute::String { text, .. }) =
                    top.map(|a| chosen.module.get_attribute(a))
                    && **text == *name
                {
                    return Ok(Chosen { argument_dims, ..chosen });
                }
            }
            Err(wrong(format!("the text has neither a module nor a function {name}")))
        }
    }
}

/// The program of an MLIR text.
pub fn parse(text: &str, pick: Option<&Pick>, memory_bytes: u64) -> (Option<Module>, Diagnostics) {
    let read = choose(text, pick, &ReadOptions { memory_bytes });
    let converted = read.and_then(|chosen| {
        let Chosen { module, function, argument_dims } = chosen;
        convert(&module, &ConvertOptions { function, argument_dims, checks: false })
    });
    match converted {
        Ok(converted) => (Some(converted.module), converted.warnings),
        Err(found) => (None, found),
    }
}

/// The module in MLIR bytecode, or in what `jax.export` serializes. `None`: the file is neither.
///
/// Errors: the file is damaged, with offsets in it.
pub(crate) fn tree_of_bytecode(file: &[u8]) -> Option<Result<hlo_mlir::ir::Module, Diagnostics>> {
    use hlo_mlir::bytecode::{export, is_bytecode, read};
    if is_bytecode(file) {
        Some(read(file))
    } else if export::is_export(file) {
        Some(export::read(file).and_then(|export| read(&file[export.artifact])))
    } else {
        None
    }
}

/// The program of a module that was read from bytecode, which has no text and so no spans.
pub(crate) fn program_of(tree: &hlo_mlir::ir::Module) -> Result<Module, Diagnostics> {
    let mut module = convert(tree, &ConvertOptions::default())?.module;
    let instructions: Vec<hlo::InstrId> =
        module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
    for id in instructions {
        module.instr_mut(id).span = Span::NONE;
    }
    for computation in module.computations().to_vec() {
        module.computation_mut(computation).span = Span::NONE;
    }
    Ok(module)
}

/// The text of a module that was read from bytecode: what is found is shown in it.
pub fn text_of(tree: &hlo_mlir::ir::Module) -> String {
    print(tree, &PrintOptions::default())
}

/// The names of the modules of a text; empty ones of those that have none.
pub fn module_names(text: &str) -> Vec<String> {
    split(text)
        .iter()
        .map(|part| {
            let after = text[part.range()].split_once("module @").map_or("", |m| m.1);
            after.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or("").to_owned()
        })
        .collect()
}

/// How a command ends that can do nothing else, by what was found.
pub fn exit_of(found: &Diagnostics) -> Option<Exit> {
    let first = found.iter().find(|d| d.severity == hlo::diag::Severity::Error)?;
    match first.code.as_str().as_bytes().first() {
        Some(b'U') => Some(Exit::Unsupported),
        Some(b'V') => Some(Exit::Verify),
        _ => None,
    }
}

/// Whether each module of a text prints to a text of the same module; where it does not, why.
pub fn prints_back(text: &str) -> Result<(), String> {
    for part in split(text) {
        let options = ReadOptions::default();
        let Ok(module) = parse_part(text, part, &options) else { return Err("cannot be parsed".to_owned()) };
        let once = print(&module, &PrintOptions::default());
        let Ok(again) = parse_part(&once, Span::new(0, once.len()), &options) else {
            return Err("what is printed cannot be parsed".to_owned());
        };
        if print(&again, &PrintOptions::default()) != once {
            return Err("what is printed reads back as another module".to_owned());
        }
    }
    Ok(())
}
