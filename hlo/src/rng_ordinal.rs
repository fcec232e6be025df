//! The ordinals of `rng` and `rng-get-and-update-state` instructions.
//!
//! The numbers that one draws, and the state that it draws them from, depend on which of its opcode in its
//! module it is. That is its rank among these, in the order of the text, when it first gets a number, and
//! stays with it as [`AttrKey::RngOrdinal`] however a pass moves or copies it, so that a compiled program
//! draws the numbers of the text: copies share a state. XLA's texts have no such attribute: where rank and
//! ordinal differ, the ordinal stands as the frontend attribute [`NAME`], which XLA carries along.

use rustc_hash::FxHashMap;

use crate::attrs::{AttrKey, AttrValue, Attrs, FrontendAttributes, FrontendValue};
use crate::ids::InstrId;
use crate::module::Module;
use crate::opcode::Opcode;

/// The frontend attribute.
pub const NAME: &str = "rng_ordinal";

/// What has ordinals; each opcode counts its own.
pub(crate) const COUNTED: [Opcode; 2] = [Opcode::Rng, Opcode::RngGetAndUpdateState];

/// These instructions of a module in the order of the text, with their ranks.
fn ranked(module: &Module) -> Vec<(i64, InstrId)> {
    let of = |opcode: Opcode| {
        let all = module.computations().iter().flat_map(|&c| module.instructions(c));
        (0..).zip(all.filter(move |&id| module.instr(id).opcode == opcode))
    };
    COUNTED.into_iter().flat_map(of).collect()
}

/// Gives each of a module that was just read its ordinal: what its frontend attribute says, else its rank.
pub fn assign(module: &mut Module) {
    for (rank, id) in ranked(module) {
        let attrs = &mut module.instr_mut(id).attrs;
        let written = attrs.frontend_attributes().and_then(|f| f.get(NAME)).and_then(|n| n.parse().ok());
        if written.is_some() {
            set_frontend_attribute(attrs, None);
        }
        attrs.set(AttrKey::RngOrdinal, AttrValue::Int(written.map_or(rank, |n: u32| i64::from(n))));
    }
}

/// Those whose ordinal is not their rank.
pub(crate) fn moved(module: &Module) -> FxHashMap<InstrId, i64> {
    let ordinal = |id: InstrId| module.instr(id).attrs.int(AttrKey::RngOrdinal);
    ranked(module)
        .into_iter()
        .filter_map(|(rank, id)| Some((id, ordinal(id).filter(|&n| n != rank)?)))
        .collect()
}

/// The attributes with an ordinal as a frontend attribute.
pub(crate) fn written(attrs: &Attrs, ordinal: i64) -> Attrs {
    let mut attrs = attrs.clone();
    set_frontend_attribute(&mut attrs, Some(ordinal));
    attrs
}

fn set_frontend_attribute(attrs: &mut Attrs, ordinal: Option<i64>) {
    let mut entries = attrs.frontend_attributes().map(|f| f.entries.clone()).unwrap_or_default();
    entries.retain(|(name, _)| &**name != NAME);
    if let Some(n) = ordinal {
        entries.push((NAME.into(), FrontendValue::Str(n.to_string().into())));
    }
    if entries.is_empty() {
        attrs.remove(AttrKey::FrontendAttributes);
    } else {
        let value = FrontendAttributes { entries };
        attrs.set(AttrKey::FrontendAttributes, AttrValue::FrontendAttributes(Box::new(value)));
    }
}
