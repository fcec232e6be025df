//! Run-time sizes in loop state and through branches: arrays are passed padded to their bounds, with their
//! sizes at the end of a flat tuple.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::builder::ComputationBuilder;
use hlo::{ArrayShape, Attrs, ComputationId, ElementType, InstrId, Module, Opcode, Shape};

use super::{Sizes, View, slice_to_dynamic, view};
use crate::passes::calls::inline;
use crate::passes::edit::{Edit, Survey};

/// How a value is passed.
enum Form {
    /// Unchanged.
    Plain(Shape),
    /// As a tuple of the padded array and its sizes.
    Array(ArrayShape),
    /// As a flat tuple of the padded elements, and all their sizes.
    Tuple(Vec<ArrayShape>),
}

impl Form {
    /// `None`: there are run-time sizes in nested tuples.
    fn of(shape: &Shape) -> Option<Form> {
        let dynamic = |s: &Shape| s.as_array().is_some_and(ArrayShape::is_dynamic);
        if !shape.leaves().into_iter().any(dynamic) {
            return Some(Form::Plain(shape.clone()));
        }
        if let Some(array) = shape.as_array() {
            return Some(Form::Array(array.without_layout()));
        }
        let elements = shape.as_tuple()?.iter().map(|s| s.as_array().map(ArrayShape::without_layout));
        Some(Form::Tuple(elements.collect::<Option<_>>()?))
    }

    fn elements(&self) -> &[ArrayShape] {
        match self {
            Form::Plain(_) => &[],
            Form::Array(array) => std::slice::from_ref(array),
            Form::Tuple(elements) => elements,
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self, Form::Plain(_))
    }

    /// The shape that is passed.
    fn padded(&self) -> Shape {
        if let Form::Plain(shape) = self {
            return shape.clone();
        }
        let elements = self.elements();
        let bounded = elements.iter().map(|e| Shape::array(e.element_type, &e.dims));
        let sizes: u32 = elements.iter().map(|e| e.dynamic.count_ones()).sum();
        Shape::tuple(bounded.chain((0..sizes).map(|_| Shape::scalar(ElementType::S32))).collect::<Vec<_>>())
    }

    /// A value decomposed into its passed form.
    fn apart(&self, e: &mut Edit<'_>, value: InstrId) -> Option<InstrId> {
        if self.is_plain() {
            return Some(value);
        }
        let (mut parts, mut sizes) = (Vec::new(), Vec::new());
        for i in 0..self.elements().len() {
            let element = match (self, e.instr(value).opcode) {
                (Form::Array(_), _) => value,
                (_, Opcode::Tuple) => e.instr(value).operands()[i],
                _ => e.get(value, i as i64)?,
            };
            let view = view(e, element)?;
            parts.push(view.array);
            sizes.extend(view.sizes.into_iter().flatten());
        }
        parts.extend(sizes);
        e.tuple(&parts)
    }

    /// The value reassembled from its passed form.
    fn whole(&self, e: &mut Edit<'_>, parts: InstrId) -> Option<InstrId> {
        let elements = self.elements();
        let mut next = elements.len() as i64;
        let mut all = Vec::new();
        for (i, shape) in elements.iter().enumerate() {
            let array = e.get(parts, i as i64)?;
            let mut sizes = Sizes::new();
            for d in 0..shape.rank() {
                sizes.push(if shape.is_dynamic_dim(d) {
                    next += 1;
                    Some(e.get(parts, next - 1)?)
                } else {
                    None
                });
            }
            let view = View { array, sizes };
            all.push(match shape.is_dynamic() {
                true => slice_to_dynamic(e, &view, Shape::Array(shape.clone()))?,
                false => array,
            });
        }
        match self {
            Form::Plain(_) => Some(parts),
            Form::Array(_) => all.first().copied(),
            Form::Tuple(_) => e.tuple(&all),
        }
    }
}

/// A computation that wraps `inner`, with argument and result in their passed forms.
fn around(
    module: &mut Module,
    survey: &Survey,
    inner: ComputationId,
    parameter: &Form,
    result: &Form,
) -> Option<ComputationId> {
    let mut b = ComputationBuilder::new(module, "padded");
    let given = b.parameter("state", parameter.padded());
    let end = b.tuple(&[given]).ok()?;
    let outer = b.finish();
    let called = {
        let mut e = Edit::before(module, survey, end);
        let value = parameter.whole(&mut e, given)?;
        let attrs = Attrs::new().with(AttrKey::ToApply, AttrValue::Computation(inner));
        e.add(Opcode::Call, &[value], attrs)?
    };
    // The result stays, though nothing uses it yet.
    module.set_root(outer, called);
    let mut e = Edit::before(module, survey, called);
    let operands = e.at().operands().to_vec();
    let body = inline(&mut e, inner, &operands)?;
    e.finish(body);
    let root = result.apart(&mut Edit::before(module, survey, end), body)?;
    module.set_root(outer, root);
    module.remove(end);
    Some(outer)
}

/// The same, recorded as made here, and put before its caller.
fn wrapped(e: &mut Edit<'_>, inner: ComputationId, parameter: &Form, result: &Form) -> Option<ComputationId> {
    let survey = e.survey();
    let outer = around(e.module, survey, inner, parameter, result)?;
    e.before_caller(outer);
    Some(outer)
}

pub(super) fn while_loop(e: &mut Edit<'_>) -> Option<InstrId> {
    let [init] = e.operands()?;
    let state = Form::of(&e.at().shape).filter(|f| !f.is_plain())?;
    let attrs = e.at().attrs.clone();
    let (condition, body) = (attrs.computation(AttrKey::Condition)?, attrs.computation(AttrKey::Body)?);
    let flag = Form::Plain(e.instr(e.module.root(condition)).shape.clone());
    let init = state.apart(e, init)?;
    let condition = wrapped(e, condition, &state, &flag)?;
    let body = wrapped(e, body, &state, &state)?;
    let attrs = attrs
        .with(AttrKey::Condition, AttrValue::Computation(condition))
        .with(AttrKey::Body, AttrValue::Computation(body));
    let parts = e.shaped(Opcode::While, state.padded(), &[init], attrs)?;
    state.whole(e, parts)
}

pub(super) fn conditional(e: &mut Edit<'_>) -> Option<InstrId> {
    let result = Form::of(&e.at().shape)?;
    let mut attrs = e.at().attrs.clone();
    let (&selector, given) = e.at().operands().split_first()?;
    let (given, branches) = (given.to_vec(), attrs.called_computations());
    if given.len() != branches.len() {
        return None;
    }
    let mut operands = vec![selector];
    let mut made = Vec::new();
    for (&operand, &branch) in given.iter().zip(&branches) {
        let form = Form::of(&e.instr(operand).shape)?;
        operands.push(form.apart(e, operand)?);
        made.push(wrapped(e, branch, &form, &result)?);
    }
    let mut next = made.into_iter();
    attrs.map_computations(|c| next.next().unwrap_or(c));
    let parts = e.shaped(Opcode::Conditional, result.padded(), &operands, attrs)?;
    result.whole(e, parts)
}
