//! Fusions of every kind, with one result or several, nested, and with updates in place.

use hlo::attrs::{AttrKey, AttrValue, FusionKind, Ints, OperandAlias};
use hlo::{ArrayShape, Attrs, ComputationId, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::Body;

fn kind(g: &mut Generator<'_>, callee: ComputationId) -> Attrs {
    let kind = g.choices.pick(FusionKind::ALL);
    Attrs::new()
        .with(AttrKey::FusionKind, AttrValue::FusionKind(kind))
        .with(AttrKey::Calls, AttrValue::Computation(callee))
}

/// Anything that grows, in a fusion.
pub(super) fn fusion(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, shapes) = g.arguments(body);
    let callee = g.nested_apart("fused", &shapes, None)?;
    let attrs = kind(g, callee);
    let id = g.add(body, Opcode::Fusion, &values, attrs)?;
    g.unpack(body, id)
}

/// A fusion that ends in an update of a part of its first operand, whose buffer the result may take: what the
/// update is computed from may be that operand too.
pub(super) fn in_place(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    let sizes: Vec<i64> = shape.dims.iter().map(|&d| g.choices.int(d.min(1), d)).collect();
    let part = ArrayShape::new(shape.element_type, &sizes);
    let update = g.of_shape(body, &part);
    let start = g.of_shape(body, &ArrayShape::new(ElementType::S32, &[]));
    let parameters = [x, update, start].map(|v| Shape::Array(g.array(v).without_layout()));
    let inner = Body::with_parameters(&mut g.module, "update", &parameters);
    let [whole, new, at] = inner.values() else { return None };
    let (whole, mut new, at) = (*whole, *new, *at);
    let zero = g.number(&inner, ElementType::S32, 0);
    let mut starts = vec![at];
    starts.resize(sizes.len(), zero);
    if g.choices.chance(160) {
        // Old elements go into the new ones: from the same index, or from another one.
        let from = if g.choices.chance(128) { starts.clone() } else { vec![zero; sizes.len()] };
        let old = g.at(&inner).dynamic_slice(whole, &from, &sizes).ok()?;
        let opcode = g.choices.pick(&[Opcode::Add, Opcode::Maximum, Opcode::Subtract]);
        new = g.plain(&inner, opcode, &[old, new]).unwrap_or(new);
    }
    let mut root = g.at(&inner).dynamic_update_slice(whole, new, &starts).ok()?;
    let several = g.choices.chance(60);
    if several {
        let other = g.plain(&inner, Opcode::Copy, &[whole])?;
        root = g.at(&inner).tuple(&[root, other]).ok()?;
    }
    g.module.set_root(inner.id, root);
    g.prune(inner.id);
    let mut attrs = kind(g, inner.id);
    if g.choices.chance(100) {
        let output_index: Ints = if several { std::iter::once(0).collect() } else { Ints::new() };
        let alias = OperandAlias { output_index, operand: 0, operand_index: Ints::new() };
        attrs.set(AttrKey::OutputToOperandAliasing, AttrValue::OperandAliasing(vec![alias].into()));
    }
    let id = g.add(body, Opcode::Fusion, &[x, update, start], attrs)?;
    g.unpack(body, id)
}

/// One or two expressions of two values, with the same signature, in a computation that is fused or called.
pub(super) fn outlined(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = g.array(x).without_layout();
    let y = g.of_shape(body, &shape);
    let parameters = [Shape::Array(shape.clone()), Shape::Array(shape)];
    let mut inner = Body::with_parameters(&mut g.module, "outlined", &parameters);
    let [a, b] = inner.values() else { return None };
    let (a, b) = (*a, *b);
    let mut results = vec![g.freely(|g| expression(g, &mut inner, a, b))?];
    if g.choices.chance(100) {
        results.push(g.freely(|g| expression(g, &mut inner, b, a))?);
    }
    // The root is used by nothing.
    let root = match *results {
        [one] => g.plain(&inner, Opcode::Copy, &[one])?,
        _ => g.at(&inner).tuple(&results).ok()?,
    };
    g.module.set_root(inner.id, root);
    g.prune(inner.id);
    let id = if g.choices.chance(80) {
        g.at(body).call(inner.id, &[x, y]).ok()?
    } else {
        let attrs = kind(g, inner.id);
        g.add(body, Opcode::Fusion, &[x, y], attrs)?
    };
    g.unpack(body, id)
}

fn expression(g: &mut Generator<'_>, inner: &mut Body, a: InstrId, b: InstrId) -> Option<InstrId> {
    if g.choices.chance(100) {
        let opcode = g.choices.pick(&[Opcode::Subtract, Opcode::Divide, Opcode::Add, Opcode::Maximum]);
        return g.plain(inner, opcode, &[a, b]);
    }
    super::patterns::elementwise(g, inner, a, b)
}
