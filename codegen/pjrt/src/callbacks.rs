//! Callbacks into Python that every device makes with its part of an array
//! (`jax.debug.callback(partitioned=True)`): a program of whole arrays is changed so that it runs on each
//! device, and hands its block of each operand to them.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Ints, Mesh};
use hlo::{ArrayShape, Buffer, ComputationId, InstrId, Layout, Module, Opcode, Shape};

use crate::emit;
use crate::propagate::{self, Axes, Known};

/// Callbacks with parts of arrays.
const PARTITIONED: &str = "xla_ffi_partitioned_python_cpu_callback";
/// Callbacks with whole arrays.
const WHOLE: &str = "xla_ffi_python_cpu_callback";

/// Changes a program for several partitions so that such callbacks get their device's parts. Whether it did:
/// not where the program also has callbacks with whole arrays, which every device would make.
pub(crate) fn partition(module: &mut Module) -> bool {
    let calls = partitioned(module);
    if calls.is_empty() {
        return false;
    }
    let entry = module.entry();
    let (known, meshes) = propagate::values(module);
    let partition = emit::partition_id(module, entry);
    for call in calls {
        for n in 0..module.instr(call).operands().len() {
            let x = module.instr(call).operands()[n];
            if let Some(Known::Array(cut)) = known.get(&x)
                && has_default_layout(module, call, n)
                && let Some(part) = part(module, x, partition, &meshes[cut.mesh], &cut.axes)
            {
                module.set_operand(call, n, part);
                set_layout(module, call, n, part);
            }
        }
        let last = module.instructions(entry).last();
        module.move_after(call, last);
    }
    true
}

/// The callbacks that [`partition`] changes.
pub(crate) fn partitioned(module: &Module) -> Vec<InstrId> {
    let is_one = |&id: &InstrId| calls(module, id, PARTITIONED) && module.users(id).is_empty();
    let found: Vec<InstrId> = module.instructions(module.entry()).filter(is_one).collect();
    let calls_whole = |&c: &ComputationId| module.instructions(c).any(|id| calls(module, id, WHOLE));
    if found.is_empty() || module.computations().iter().any(calls_whole) { Vec::new() } else { found }
}

fn calls(module: &Module, id: InstrId, target: &str) -> bool {
    let instr = module.instr(id);
    instr.opcode == Opcode::CustomCall && instr.attrs.str(AttrKey::CustomCallTarget) == Some(target)
}

/// Whether a call takes an operand in row-major order.
fn has_default_layout(module: &Module, call: InstrId, n: usize) -> bool {
    let layout = |shape: &Shape| shape.as_array().and_then(|array| array.layout.clone());
    match module.instr(call).attrs.get(AttrKey::OperandLayoutConstraints) {
        Some(AttrValue::Shapes(shapes)) => {
            shapes.get(n).and_then(layout).is_none_or(|layout| Layout::is_row_major(&layout))
        }
        _ => true,
    }
}

/// Says that a call takes an operand of this shape in row-major order, if it says so of any.
fn set_layout(module: &mut Module, call: InstrId, n: usize, operand: InstrId) {
    let Some(AttrValue::Shapes(shapes)) = module.instr(call).attrs.get(AttrKey::OperandLayoutConstraints)
    else {
        return;
    };
    let mut shapes = shapes.to_vec();
    if let (Some(shape), Some(array)) = (shapes.get_mut(n), module.instr(operand).shape.as_array()) {
        let layout = Layout::from_minor_to_major((0..array.rank() as i64).rev());
        *shape = Shape::Array(ArrayShape { layout: Some(layout.into()), ..array.clone() });
    }
    module.instr_mut(call).attrs.set(AttrKey::OperandLayoutConstraints, AttrValue::Shapes(shapes.into()));
}

/// This partition's block of an array; `None`: it has all of it, or blocks are not of one size.
fn part(module: &mut Module, x: InstrId, partition: InstrId, mesh: &Mesh, axes: &Axes) -> Option<InstrId> {
    let array = module.instr(x).shape.as_array()?.without_layout();
    let mut blocks = Vec::with_capacity(array.rank());
    for (d, &size) in array.dims.iter().enumerate() {
        let axes = axes.get(d).map_or(&[][..], Vec::as_slice);
        let sets = if axes.is_empty() { Vec::new() } else { mesh.groups_along(axes)? };
        let parts = sets.first().map_or(1, Vec::len) as i64;
        if parts < 1 || size % parts != 0 {
            return None;
        }
        blocks.push((size / parts, sets));
    }
    if blocks.iter().zip(&array.dims).all(|((block, _), size)| block == size) {
        return None;
    }
    let mut operands = vec![x];
    let entry = module.entry();
    for (block, sets) in &blocks {
        let starts = emit::block_starts(sets, *block)?;
        let starts = starts.into_iter().map(|start| i32::try_from(start).ok()).collect::<Option<_>>()?;
        operands.push(emit::looked_up(module, entry, Buffer::S32(starts), partition));
    }
    let sizes: Ints = blocks.iter().map(|(block, _)| *block).collect();
    let shape = Shape::array(array.element_type, &sizes);
    let attrs = Attrs::new().with(AttrKey::DynamicSliceSizes, AttrValue::Ints(sizes));
    Some(emit::instruction(module, entry, Opcode::DynamicSlice, shape, &operands, attrs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::print::{PrintOptions, print_module};

    fn program(target: &str) -> Module {
        let text = format!(
            "HloModule m, num_partitions=2, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[\"a\"=2]>}}}}
             ENTRY e {{
               x = f32[4,2] parameter(0), frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding<@mesh, [{{\\\"a\\\"}}, {{}}]>\"}}
               y = f32[4,2] sine(x)
               c = () custom-call(y), custom_call_target=\"{PARTITIONED}\", operand_layout_constraints={{f32[4,2]{{1,0}}}}, custom_call_has_side_effect=true
               d = () custom-call(y), custom_call_target=\"{target}\", custom_call_has_side_effect=true
               ROOT z = f32[4,2] negate(y)
             }}"
        );
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        parsed.module.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics))
    }

    #[test]
    fn each_device_hands_in_its_part() {
        let mut module = program("other");
        assert!(partition(&mut module));
        let found = hlo::verify::verify(&module);
        let text = print_module(&module, &PrintOptions::source(&module));
        assert!(!found.has_errors(), "{text}");
        assert!(crate::sharding::depends_on_device(&module));
        for part in [
            "s32[2] constant({0, 2})",
            "f32[2,2] dynamic-slice(",
            "operand_layout_constraints={f32[2,2]{1,0}}",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Another callback is of the whole array, once.
        assert!(!partition(&mut program(WHOLE)));
    }
}
