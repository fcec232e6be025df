//! The header of the module: entry layout, aliasing, donors.

use rustc_hash::FxHashSet;

use super::{Verifier, count};
use crate::attrs::AliasKind;
use crate::diag::{Code, Diagnostic, codes};
use crate::shape::Shape;

pub(super) fn check(v: &mut Verifier<'_>) {
    entry_layout(v);
    aliases(v);
}

fn complain(v: &mut Verifier<'_>, code: Code, message: String) {
    let entry = v.module.computation(v.module.entry());
    v.diagnostics.push(Diagnostic::error(code, entry.span, message));
}

fn entry_layout(v: &mut Verifier<'_>) {
    let module = v.module;
    let (Some(layout), Some(actual)) =
        (&module.header.entry_computation_layout, module.program_shape(module.entry()))
    else {
        return;
    };
    if layout.parameters.len() != actual.parameters.len() {
        let message = format!(
            "entry_computation_layout has {}, the entry computation {}",
            count(layout.parameters.len(), "parameter"),
            actual.parameters.len()
        );
        complain(v, codes::ENTRY_LAYOUT, message);
    }
    for (n, (said, real)) in layout.parameters.iter().zip(&actual.parameters).enumerate() {
        if !said.compatible(real) {
            let message = format!("entry_computation_layout says that parameter {n} is {said}; it is {real}");
            complain(v, codes::ENTRY_LAYOUT, message);
        }
    }
    if !layout.result.compatible(&actual.result) {
        let message = format!(
            "entry_computation_layout says that the result is {}; it is {}",
            layout.result, actual.result
        );
        complain(v, codes::ENTRY_LAYOUT, message);
    }
}

fn is_array_or_buffer(shape: &Shape) -> bool {
    matches!(shape, Shape::Array(_) | Shape::Buffer(_))
}

fn aliases(v: &mut Verifier<'_>) {
    let module = v.module;
    let Some(program) = module.program_shape(module.entry()) else { return };
    let mut outputs = FxHashSet::default();
    let mut inputs = FxHashSet::default();
    let parameter = |n: i64| usize::try_from(n).ok().and_then(|n| program.parameters.get(n));
    for alias in &module.header.input_output_alias {
        let from = parameter(alias.parameter).and_then(|s| s.at(&alias.parameter_index));
        let to = program.result.at(&alias.output_index);
        let what = format!(
            "input_output_alias of result {:?} to parameter {} {:?}",
            alias.output_index.as_slice(),
            alias.parameter,
            alias.parameter_index.as_slice()
        );
        let (Some(from), Some(to)) = (from, to) else {
            let missing = if to.is_none() { "there is no such result" } else { "there is no such parameter" };
            complain(v, codes::INPUT_OUTPUT_ALIAS, format!("{what}: {missing}"));
            continue;
        };
        if !is_array_or_buffer(from) || !is_array_or_buffer(to) {
            complain(v, codes::INPUT_OUTPUT_ALIAS, format!("{what}: only arrays can alias"));
            continue;
        }
        if alias.kind == AliasKind::Must && !from.compatible(to) {
            complain(
                v,
                codes::INPUT_OUTPUT_ALIAS,
                format!("{what}: must alias, but the shapes {to} and {from} differ"),
            );
        }
        if !outputs.insert(alias.output_index.clone()) {
            complain(
                v,
                codes::INPUT_OUTPUT_ALIAS,
                format!("{what}: this result aliases a parameter already"),
            );
        }
        if !inputs.insert((alias.parameter, alias.parameter_index.clone())) {
            complain(v, codes::INPUT_OUTPUT_ALIAS, format!("{what}: this parameter is aliased already"));
        }
    }
    for donor in &module.header.buffer_donor {
        let what =
            format!("buffer_donor parameter {} {:?}", donor.parameter, donor.parameter_index.as_slice());
        match parameter(donor.parameter).and_then(|s| s.at(&donor.parameter_index)) {
            None => complain(v, codes::BUFFER_DONOR, format!("{what}: there is no such parameter")),
            Some(s) if !is_array_or_buffer(s) => {
                complain(v, codes::BUFFER_DONOR, format!("{what}: only arrays can be donated"));
            }
            Some(_) => {}
        }
        if !inputs.insert((donor.parameter, donor.parameter_index.clone())) {
            complain(v, codes::BUFFER_DONOR, format!("{what}: it is donated or aliased already"));
        }
    }
}
