//! Custom calls that stand for HLO: annotations, functions of CHLO, `TopK`.

use hlo::attrs::{AttrKey, AttrValue, Direction};
use hlo::{Attrs, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::Body;

const ANNOTATIONS: &[&str] =
    &["Sharding", "MoveToHost", "MoveToDevice", "LayoutConstraint", "annotate_device_placement"];

const FUNCTIONS: &[&str] = &[
    "chlo.erf",
    "chlo.tan",
    "chlo.acos",
    "chlo.asinh",
    "chlo.sinh",
    "mhlo.cosh",
    "mhlo.asin",
    "mhlo.acosh",
    "mhlo.atanh",
];

fn call(
    g: &mut Generator<'_>,
    body: &Body,
    target: &str,
    shape: Shape,
    operands: &[InstrId],
    attrs: Attrs,
) -> Option<InstrId> {
    let attrs = attrs.with(AttrKey::CustomCallTarget, AttrValue::Str(target.into()));
    g.add_shaped(body, Opcode::CustomCall, shape, operands, attrs)
}

pub(super) fn custom_call(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    match g.choices.below(3) {
        0 => annotation(g, body),
        1 => {
            let x = g.value(body, |a| matches!(a.element_type, ElementType::F32 | ElementType::F64));
            let shape = g.array(x);
            if !matches!(shape.element_type, ElementType::F32 | ElementType::F64) {
                return annotation(g, body);
            }
            let target = g.choices.pick(FUNCTIONS);
            call(g, body, target, Shape::Array(shape.without_layout()), &[x], Attrs::new())
        }
        _ => top_k(g, body),
    }
}

fn annotation(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = Shape::Array(g.array(x).without_layout());
    let target = g.choices.pick(ANNOTATIONS);
    call(g, body, target, shape, &[x], Attrs::new())
}

/// The largest or smallest numbers of each line, by a comparator in total order.
fn top_k(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && !a.element_type.is_complex());
    let shape = g.array(x);
    if shape.element_type.is_complex() || shape.rank() == 0 {
        return annotation(g, body);
    }
    let mut dims = shape.dims.clone();
    let last = dims.last_mut()?;
    *last = g.choices.int(0, *last);
    let direction = g.choices.pick(&[Direction::Gt, Direction::Lt]);
    let order = super::reduction::comparator(g, direction, &[shape.element_type], true)?;
    let result =
        Shape::tuple([Shape::array(shape.element_type, &dims), Shape::array(ElementType::S32, &dims)]);
    let attrs = Attrs::new().with(AttrKey::CalledComputations, AttrValue::Computations(vec![order].into()));
    let id = call(g, body, "TopK", result, &[x], attrs)?;
    g.unpack(body, id)
}
