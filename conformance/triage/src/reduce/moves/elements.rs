//! Simpler values of inputs and constants.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ArrayLiteral, ConstantValue, InstrId, Literal};

use super::Edit;
use crate::reduce::Candidate;
use crate::reduce::program::{all_instructions, input_offsets};
use crate::reduce::search::Context;
use crate::reduce::values::{Scalar, cost, from_scalars, scalars};

/// Where an array of numbers is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ArraySource {
    /// An array among the inputs of a device.
    Input(usize, usize),
    /// A constant.
    Constant(InstrId),
}

fn sources(c: &Candidate) -> Vec<ArraySource> {
    let mut sources: Vec<ArraySource> = Vec::new();
    for (d, device) in c.inputs.iter().enumerate() {
        sources.extend((0..device.len()).map(|a| ArraySource::Input(d, a)));
    }
    sources.extend(
        all_instructions(&c.module)
            .filter(|&id| get(c, ArraySource::Constant(id)).is_some())
            .map(ArraySource::Constant),
    );
    sources
}

fn get(c: &Candidate, array: ArraySource) -> Option<&ArrayLiteral> {
    match array {
        ArraySource::Input(d, a) => c.inputs.get(d)?.get(a),
        ArraySource::Constant(id) if c.alive(id) => match c.module.instr(id).attrs.constant_value()? {
            ConstantValue::Given(literal) => literal.as_array(),
            ConstantValue::Elided => None,
        },
        ArraySource::Constant(_) => None,
    }
}

/// Sets the elements of an array; `false` if they are that already.
fn set(c: &mut Candidate, array: ArraySource, elements: &[Scalar]) -> bool {
    let Some(old) = get(c, array) else { return false };
    let new = from_scalars(old.buffer.element_type(), elements);
    if new.len() != old.buffer.len() || new == *old.buffer {
        return false;
    }
    match array {
        ArraySource::Input(d, a) => c.inputs[d][a].buffer = new.into(),
        ArraySource::Constant(id) => {
            let literal = Literal::Array(ArrayLiteral { dims: old.dims.clone(), buffer: new.into() });
            let value = AttrValue::Literal(ConstantValue::Given(Arc::new(literal)));
            c.module.instr_mut(id).attrs.set(AttrKey::ConstantValue, value);
        }
    }
    true
}

/// An element in place of another; the second argument is its position.
type Simpler = fn(Scalar, usize) -> Scalar;

/// `n` as an element of the kind of `of`.
fn number(of: Scalar, n: i128) -> Scalar {
    match of {
        Scalar::Int(_) => Scalar::Int(n),
        Scalar::Real(..) => Scalar::Real(n as f64, 0.0),
    }
}

fn map(of: Scalar, int: impl Fn(i128) -> i128, real: impl Fn(f64) -> f64) -> Scalar {
    match of {
        Scalar::Int(i) => Scalar::Int(int(i)),
        Scalar::Real(re, im) => Scalar::Real(real(re), real(im)),
    }
}

/// From the simplest. Small numbers that differ come before those that only look nicer.
const WHOLE: &[Simpler] = &[
    |x, _| number(x, 0),
    |x, _| number(x, 1),
    |x, i| number(x, i as i128),
    |x, i| number(x, i as i128 % 2),
    |x, i| number(x, 1 + i as i128),
    |x, i| number(x, i as i128 % 3),
    |x, _| number(x, 2),
    |x, _| map(x, |i| i.rem_euclid(2), |r| r.round().rem_euclid(2.0)),
    |x, _| map(x, |i| i % 10, |r| r.round() % 10.0),
    |x, _| map(x, |i| i / 2, f64::round),
    |x, _| map(x, |i| if i.abs() <= 8 { i - i.signum() } else { i - i / 4 }, |r| (r * 2.0).round() / 2.0),
    |x, _| map(x, i128::abs, f64::abs),
    |x, _| map(x, |i| i, |r| (r * 16.0).round() / 16.0),
    |x, _| map(x, |i| i, |r| f64::from(r as f32)),
    |x, _| map(x, |i| i, |r| if r.is_finite() { r } else { 1.0 }),
    |x, _| map(x, |i| i, |r| f64::from_bits(r.to_bits() & !((1 << 40) - 1))),
    |x, _| map(x, |i| i, |r| f64::from_bits(r.to_bits() & !((1 << 48) - 1))),
    |x, _| match x {
        Scalar::Int(i) => Scalar::Int(i),
        Scalar::Real(re, _) => Scalar::Real(re, 0.0),
    },
];

/// Each array, all of it made simpler.
pub(super) fn arrays(context: &Context<'_>) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    for array in at_best(context.program) {
        for simpler in WHOLE {
            edits.push(Box::new(move |c| {
                let Some(old) = get(c, array) else { return false };
                let new: Vec<Scalar> =
                    scalars(&old.buffer).into_iter().enumerate().map(|(i, x)| simpler(x, i)).collect();
                set(c, array, &new)
            }));
        }
        // Fewer different values.
        edits.push(Box::new(move |c| {
            let Some(old) = get(c, array) else { return false };
            let old = scalars(&old.buffer);
            let Some(&first) = old.first() else { return false };
            set(c, array, &vec![first; old.len()])
        }));
    }
    edits
}

/// The maximum number of elements that are looked at one by one.
const MAX_SINGLE_ELEMENTS: usize = 256;

/// Each element, made simpler.
pub(super) fn each(context: &Context<'_>) -> Vec<Edit> {
    let c = context.program;
    let mut edits: Vec<Edit> = Vec::new();
    for array in at_best(c) {
        let Some(literal) = get(c, array).filter(|a| a.buffer.len() <= MAX_SINGLE_ELEMENTS) else { continue };
        for (i, x) in scalars(&literal.buffer).into_iter().enumerate() {
            let mut seen: Vec<Scalar> = Vec::new();
            for simpler in WHOLE.iter().take(2).chain(&WHOLE[6..]) {
                let y = simpler(x, i);
                if cost(y) >= cost(x) || seen.contains(&y) {
                    continue;
                }
                seen.push(y);
                edits.push(Box::new(move |c| {
                    let Some(old) = get(c, array) else { return false };
                    let mut elements = scalars(&old.buffer);
                    // Not after a simpler one has been put there.
                    if elements.get(i).is_none_or(|&now| cost(y) >= cost(now)) {
                        return false;
                    }
                    elements[i] = y;
                    set(c, array, &elements)
                }));
            }
        }
    }
    edits
}

/// Arrays of a program that is not edited yet, but for those that need no simplification.
fn at_best(c: &Candidate) -> Vec<ArraySource> {
    debug_assert!(
        input_offsets(&c.module).len() == c.module.computation(c.module.entry()).parameters().len()
    );
    let hard =
        |p: &ArraySource| get(c, *p).is_some_and(|a| scalars(&a.buffer).into_iter().any(|x| cost(x) > 0));
    sources(c).into_iter().filter(hard).collect()
}
