//! Removes from a program what identifies its author: names, metadata, and constants on request.
//!
//! **Invariants:** the program computes the same as before, unless constants are replaced; no text of its
//! author's stays but targets and configurations of custom calls, names of mesh axes and threads.

use hlo::ModuleHeader;
use hlo::attrs::{Sharding, ShardingKind};
use hlo::elided::elided_literal;
use hlo::{AttrKey, AttrValue, ConstantValue, InstrId, Module, Opcode};
use rustc_hash::FxHashMap;

/// The parts to remove.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Anonymize {
    /// Names and metadata
    Names,
    /// The values of constants of more than one element too
    Constants,
}

/// Attributes that say nothing about what is computed.
const SILENT: &[AttrKey] = &[
    AttrKey::Metadata,
    AttrKey::FrontendAttributes,
    AttrKey::Origin,
    AttrKey::Statistics,
    AttrKey::InfeedConfig,
    AttrKey::OutfeedConfig,
];

/// Takes it out. Names become `OPCODE.N`, `computation.N` and `main`, in the order of the program.
pub fn anonymize(module: &mut Module, what: Anonymize) {
    module.name = "module".into();
    module.stack_tables = hlo::attrs::StackTables::default();
    let header = std::mem::take(&mut module.header);
    module.header = ModuleHeader {
        frontend_attributes: None,
        origin_recovery_table: None,
        debug_attributes: None,
        custom: Vec::new(),
        ..header
    };
    let entry = module.entry();
    let mut counts: FxHashMap<Opcode, usize> = FxHashMap::default();
    for (n, c) in module.computations().to_vec().into_iter().enumerate() {
        let computation = module.computation_mut(c);
        computation.name =
            if c == entry { "main".into() } else { format!("computation.{n}").as_str().into() };
        computation.declared = None;
        let ids: Vec<InstrId> = module.instructions(c).collect();
        for id in ids {
            let opcode = module.instr(id).opcode;
            let count = counts.entry(opcode).or_default();
            *count += 1;
            let name = format!("{}.{count}", opcode.name());
            instruction(module, id, name, what);
        }
    }
}

fn instruction(module: &mut Module, id: InstrId, name: String, what: Anonymize) {
    let instr = module.instr_mut(id);
    for key in SILENT {
        instr.attrs.remove(*key);
    }
    // What a custom call is told decides what it computes; elsewhere it is a compiler's note.
    if instr.opcode != Opcode::CustomCall {
        instr.attrs.remove(AttrKey::BackendConfig);
    }
    if let Some(AttrValue::Sharding(sharding)) = instr.attrs.get_mut(AttrKey::Sharding) {
        strip(sharding);
    }
    if what == Anonymize::Constants
        && let Some(ConstantValue::Given(literal)) = instr.attrs.constant_value()
        // Numbers of iterations, identities of reductions: without these a program is another one.
        && literal.arrays().iter().any(|a| a.buffer.len() > 1)
        && let Some(made) = elided_literal(&name, &instr.shape)
    {
        instr.attrs.set(AttrKey::ConstantValue, AttrValue::Literal(ConstantValue::Given(made.into())));
    }
    instr.name = name.as_str().into();
}

fn strip(sharding: &mut Sharding) {
    match sharding {
        // Tuples of shardings are not nested: the depth is that of a leaf list.
        Sharding::Tuple(parts) => parts.iter_mut().for_each(strip),
        Sharding::Single(kind) => match &mut **kind {
            ShardingKind::Tile(tile) => tile.metadata.clear(),
            ShardingKind::Named(named) => named.metadata.clear(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::print::{PrintOptions, print_module};
    use hlo_engines::frontend::parse_text;

    const SECRET: &str = "HloModule secret_model, frontend_attributes={owner=\"secret\"}
FileNames
1 \"/home/secret/model.py\"

secret_add { secret_x = f32[] parameter(0)  secret_y = f32[] parameter(1)  ROOT secret_s = f32[] add(secret_x, secret_y) }
ENTRY secret_main { secret_p = f32[3] parameter(0), sharding={replicated metadata={op_name=\"secret\"}}
  secret_z = f32[] constant(0), metadata={op_name=\"secret/zero\" source_file=\"/home/secret/model.py\"}
  secret_w = f32[3] constant({1, 2, 3}), frontend_attributes={note=\"secret\"}
  secret_m = f32[3] multiply(secret_p, secret_w), backend_config=\"secret\"
  ROOT secret_r = f32[] reduce(secret_m, secret_z), dimensions={0}, to_apply=secret_add }";

    fn text(what: Anonymize) -> String {
        let mut module = parse_text(SECRET).0.unwrap();
        anonymize(&mut module, what);
        assert!(!hlo::verify::verify(&module).has_errors());
        let text = print_module(&module, &PrintOptions::source(&module));
        assert!(parse_text(&text).0.is_some(), "{text}");
        text
    }

    #[test]
    fn nothing_of_the_author_stays() {
        let named = text(Anonymize::Names);
        assert!(!named.contains("secret"), "{named}");
        assert!(named.contains("multiply.1 = f32[3]") && named.contains("{1, 2, 3}"), "{named}");
        let all = text(Anonymize::Constants);
        assert!(!all.contains("{1, 2, 3}") && all.contains("constant(0)"), "{all}");
    }
}
