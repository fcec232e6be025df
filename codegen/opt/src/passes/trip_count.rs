//! Annotates loops with their trip count, in the backend configuration, as XLA's
//! `WhileLoopTripCountAnnotator` does: for back ends whose host would otherwise wait for every predicate.
//! Existing annotations are not trusted: they are replaced, or removed where the number is not known.

use hlo::attrs::{AttrKey, AttrValue, BackendConfig};
use hlo::{InstrId, Module, Opcode};

use super::PassCx;
use super::loops::trip_count;

/// The key of the annotation.
const KEY: &str = "\"known_trip_count\":{\"n\":\"";

fn configuration(module: &Module, id: InstrId) -> Option<&str> {
    match module.instr(id).attrs.get(AttrKey::BackendConfig) {
        Some(AttrValue::BackendConfig(config)) => Some(match &**config {
            BackendConfig::Str(text) | BackendConfig::Raw(text) => text,
        }),
        Some(_) | None => None,
    }
}

/// The trip count that [`run`] wrote.
pub fn known_trip_count(module: &Module, id: InstrId) -> Option<u64> {
    let text = configuration(module, id)?;
    let number = text.strip_prefix('{')?.strip_prefix(KEY)?.strip_suffix("\"}}")?;
    number.parse().ok()
}

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let all: Vec<InstrId> = module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
    let mut applied = 0;
    for id in all {
        if module.instr(id).opcode != Opcode::While {
            continue;
        }
        let known = trip_count(module, id);
        let claims = configuration(module, id).is_some_and(|text| text.contains("known_trip_count"));
        if known == known_trip_count(module, id) && (known.is_some() || !claims) || !cx.fuel.take() {
            continue;
        }
        applied += 1;
        let attrs = &mut module.instr_mut(id).attrs;
        match known {
            Some(n) => {
                let text = format!("{{{KEY}{n}\"}}}}");
                attrs.set(
                    AttrKey::BackendConfig,
                    AttrValue::BackendConfig(Box::new(BackendConfig::Raw(text.into()))),
                );
            }
            None => {
                attrs.remove(AttrKey::BackendConfig);
            }
        }
    }
    applied
}
