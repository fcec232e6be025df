//! Fusions, calls, custom calls: who calls what, and how results alias operands.

use super::Verifier;
use crate::attrs::{AttrKey, AttrValue, OperandAlias};
use crate::diag::codes;
use crate::ids::InstrId;
use crate::module::Instruction;
use crate::opcode::Opcode;
use crate::shape::Shape;

pub(super) fn check(v: &mut Verifier<'_>) {
    v.for_each(|v, id, instr| {
        match instr.opcode {
            Opcode::Fusion => fusion(v, id, instr),
            Opcode::Call => composite(v, id, instr),
            Opcode::CustomCall => custom_call(v, id, instr),
            _ => {}
        }
        if let Some(aliases) = instr.attrs.operand_aliasing() {
            for alias in aliases {
                operand_alias(v, id, instr, alias);
            }
        }
        if v.options.execution_threads {
            threads(v, id, instr);
        }
    });
}

fn fusion(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    let module = v.module;
    let Some(c) = instr.attrs.computation(AttrKey::Calls) else { return };
    let callers = &v.callers[c.index()];
    if callers.len() > 1 && callers.iter().position(|&i| i == id) != Some(0) {
        let other = module.instr(callers[0]);
        let message =
            format!("its computation %{} is also called by %{}", module.computation(c).name, other.name);
        v.report(id, codes::FUSION_SHARED, message, |d| d.related(other.span, "also called here"));
    }
    let root = module.root(c);
    if !module.users(root).is_empty() {
        let message =
            format!("the root %{} of its computation is used inside of it", module.instr(root).name);
        v.error(id, codes::FUSION_ROOT_USED, message);
    }
    for inner in module.instructions(c) {
        let i = module.instr(inner);
        if inner != root
            && module.users(inner).is_empty()
            && !i.opcode.flags().side_effect
            && i.opcode != Opcode::Parameter
        {
            let message =
                format!("nothing in fused computation %{} uses this instruction", module.computation(c).name);
            v.report(inner, codes::FUSION_UNUSED, message, |d| d.related(instr.span, "the fusion"));
        }
    }
}

fn composite(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    if instr.attrs.operand_aliasing().is_some_and(|a| !a.is_empty()) {
        v.error(id, codes::OPERAND_ALIAS, "a call's result cannot alias its operands");
    }
    if !instr.attrs.bool(AttrKey::IsComposite) {
        return;
    }
    let Some(attributes) = instr.attrs.frontend_attributes() else {
        v.error(id, codes::COMPOSITE, "a composite needs frontend attributes that name it");
        return;
    };
    if attributes.get("composite.name").is_none_or(str::is_empty) {
        v.error(id, codes::COMPOSITE, "a composite needs the frontend attribute composite.name");
    }
    if attributes.get("composite.attributes").is_some_and(str::is_empty) {
        v.error(id, codes::COMPOSITE, "the frontend attribute composite.attributes is empty");
    }
    if let Some(version) = attributes.get("composite.version")
        && version.trim().parse::<u64>().is_err()
    {
        let message =
            format!("composite.version must be an integer that is not negative, and is `{version}`");
        v.error(id, codes::COMPOSITE, message);
    }
}

fn custom_call(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    let module = v.module;
    let target = instr.attrs.str(AttrKey::CustomCallTarget).unwrap_or("");
    if target == "GetRngSeed" {
        let is_u64 = instr.shape.is_scalar() && instr.shape.element_type() == Some(crate::ElementType::U64);
        if !instr.operands().is_empty() || !is_u64 {
            v.error(id, codes::CUSTOM_CALL, "GetRngSeed takes no operands and gives a u64 scalar");
        }
    }
    let Some(AttrValue::Shapes(constraints)) = instr.attrs.get(AttrKey::OperandLayoutConstraints) else {
        return;
    };
    if matches!(target, "LayoutConstraint" | "control_dep") {
        return;
    }
    if constraints.len() != instr.operands().len() {
        let message =
            format!("{} layout constraints for {} operands", constraints.len(), instr.operands().len());
        v.error(id, codes::CUSTOM_CALL, message);
        return;
    }
    for (n, (&operand, constraint)) in instr.operands().iter().zip(constraints.iter()).enumerate() {
        let shape = &module.instr(operand).shape;
        if !shape.compatible(constraint) {
            let message = format!("operand {n} is of shape {shape}, its layout constraint of {constraint}");
            v.error(id, codes::CUSTOM_CALL, message);
        }
    }
}

fn operand_alias(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction, alias: &OperandAlias) {
    let module = v.module;
    let operand = usize::try_from(alias.operand).ok().and_then(|n| instr.operands().get(n));
    let Some(&operand) = operand else {
        v.error(
            id,
            codes::OPERAND_ALIAS,
            format!("aliases operand {}, which it does not have", alias.operand),
        );
        return;
    };
    let shape = &module.instr(operand).shape;
    let (Some(from), Some(to)) = (shape.at(&alias.operand_index), instr.shape.at(&alias.output_index)) else {
        let message = format!(
            "aliases {:?} of its result to {:?} of operand {}, one of which does not exist",
            alias.output_index.as_slice(),
            alias.operand_index.as_slice(),
            alias.operand
        );
        v.error(id, codes::OPERAND_ALIAS, message);
        return;
    };
    let target = instr.attrs.str(AttrKey::CustomCallTarget);
    // What it aliases is its own business.
    let skip = instr
        .attrs
        .frontend_attributes()
        .is_some_and(|f| f.get("xla_skip_custom_call_alias_shape_check").is_some());
    if target.is_some() && skip {
        return;
    }
    // Pinning makes a buffer of an array, unpinning the array of a buffer: the array is the same.
    let fits = if matches!(target, Some("Pin" | "Unpin")) {
        contents(from).compatible(contents(to))
    } else {
        from.compatible(to)
    };
    if !fits {
        v.error(
            id,
            codes::OPERAND_ALIAS,
            format!("a result of shape {to} cannot alias an operand of shape {from}"),
        );
    }
}

/// What a buffer holds; any other shape itself.
fn contents(shape: &Shape) -> &Shape {
    match shape {
        Shape::Buffer(inner) => inner,
        Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque => shape,
    }
}

fn threads(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    let module = v.module;
    let own = &module.computation(instr.parent()).execution_thread;
    let wanted = match instr.opcode {
        Opcode::AsyncStart => instr.attrs.str(AttrKey::AsyncExecutionThread).map(Into::into),
        _ => own.clone(),
    };
    for c in instr.attrs.called_computations() {
        let thread = &module.computation(c).execution_thread;
        if thread.as_deref().unwrap_or("main") != wanted.as_deref().unwrap_or("main") {
            let message = format!(
                "computation %{} runs on thread `{}`, its caller expects `{}`",
                module.computation(c).name,
                thread.as_deref().unwrap_or("main"),
                wanted.as_deref().unwrap_or("main")
            );
            v.error(id, codes::EXECUTION_THREAD, message);
        }
    }
}
