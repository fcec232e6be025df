//! Tuples, tokens, constants, parameters, and the operations that call computations.
//!
//! These hand values on unchanged, so shapes match strictly: no mixed precision.

use std::ops::Range;

use super::InferError;
use super::cx::{Cx, Inferred, count, show};
use super::types::{Match, shapes_match};
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::ids::ComputationId;
use crate::literal::ConstantValue;
use crate::shape::{ArrayShape, ProgramShape, Shape};

/// `tuple`
pub(super) fn tuple(cx: &Cx) -> Inferred {
    Ok(Shape::tuple(cx.operands.iter().map(|s| s.without_layout())))
}

/// `get-tuple-element`
pub(super) fn get_tuple_element(cx: &Cx) -> Inferred {
    let elements = cx.tuple(0, 0)?;
    let index = cx.int(AttrKey::Index)?;
    let element = usize::try_from(index).ok().and_then(|i| elements.get(i));
    element.map(Shape::without_layout).ok_or_else(|| {
        cx.error(codes::TUPLE_INDEX, format!("index {index} is out of range"))
            .at(0, format!("this tuple has {}", count(elements.len(), "element")))
    })
}

/// `after-all`
pub(super) fn after_all(cx: &Cx) -> Inferred {
    (0..cx.operands.len()).try_for_each(|i| cx.token(i))?;
    Ok(Shape::Token)
}

/// `add-dependency`
pub(super) fn add_dependency(cx: &Cx) -> Inferred {
    cx.token(1)?;
    Ok(cx.operands[0].without_layout())
}

/// `parameter`: whatever is declared.
pub(super) fn parameter(cx: &Cx) -> Inferred {
    let number = cx.int(AttrKey::ParameterNumber)?;
    if number < 0 {
        return Err(cx.error(codes::PARAMETER_NUMBERS, format!("parameter number {number} is negative")));
    }
    Ok(cx.declared()?.without_layout())
}

/// `constant`: the shape of its literal; of an elided one what is declared.
pub(super) fn constant(cx: &Cx) -> Inferred {
    match cx.required(cx.attrs.constant_value(), AttrKey::ConstantValue)? {
        ConstantValue::Given(literal) => Ok(literal.shape()),
        ConstantValue::Elided => Ok(cx.declared()?.without_layout()),
    }
}

/// `custom-call`: whatever is declared.
pub(super) fn custom_call(cx: &Cx) -> Inferred {
    Ok(cx.declared()?.without_layout())
}

/// The name of a computation.
fn name(cx: &Cx, computation: ComputationId) -> String {
    cx.module.computation(computation).name.to_string()
}

/// The name of the computation that an attribute names.
pub(super) fn callee(cx: &Cx, key: AttrKey) -> String {
    cx.attrs.computation(key).map(|c| name(cx, c)).unwrap_or_default()
}

/// Fails if these operands are not what a computation takes.
fn arguments(cx: &Cx, which: Range<usize>, callee: &str, signature: &ProgramShape) -> Result<(), InferError> {
    if which.len() != signature.parameters.len() {
        return Err(cx
            .error(
                codes::CALL_ARITY,
                format!(
                    "{} for the {} of {callee}",
                    count(which.len(), "operand"),
                    count(signature.parameters.len(), "parameter")
                ),
            )
            .label(format!("must take {}", count(which.len(), "parameter"))));
    }
    for (i, (number, parameter)) in which.zip(&signature.parameters).enumerate() {
        let operand = cx.operands[number];
        if !shapes_match(operand, parameter, Match::Strict) {
            return Err(cx
                .error(
                    codes::CALL_PARAMETER,
                    format!(
                        "operand {number} has shape {}, parameter {i} of {callee} {}",
                        show(operand),
                        show(parameter)
                    ),
                )
                .at(number, format!("must be {}", show(parameter))));
        }
    }
    Ok(())
}

/// `call`, `fusion`: operands are the parameters, the result is the computation's.
pub(super) fn call(cx: &Cx, key: AttrKey) -> Inferred {
    let signature = cx.signature(key)?;
    arguments(cx, 0..cx.operands.len(), &callee(cx, key), &signature)?;
    Ok(signature.result.without_layout())
}

/// `while`: condition and body take the operand, the body gives it again.
pub(super) fn while_loop(cx: &Cx) -> Inferred {
    let value = cx.operands[0].without_layout();
    let expected = [
        (AttrKey::Condition, Shape::scalar(ElementType::Pred), codes::WHILE_CONDITION),
        (AttrKey::Body, value.clone(), codes::WHILE_BODY),
    ];
    for (key, expected, code) in expected {
        let signature = cx.signature(key)?;
        let callee = callee(cx, key);
        arguments(cx, 0..1, &callee, &signature)?;
        if !shapes_match(&signature.result, &expected, Match::Strict) {
            return Err(cx
                .error(code, format!("{} {callee} gives {}", key.text(), show(&signature.result)))
                .label(format!("must give {}", show(&expected))));
        }
    }
    Ok(value)
}

/// A dimension that is dynamic in one branch is dynamic in the result.
fn join_dynamic(a: &Shape, b: &Shape) -> Shape {
    match (a, b) {
        (Shape::Array(a), Shape::Array(b)) => {
            Shape::Array(ArrayShape { dynamic: a.dynamic | b.dynamic, ..a.without_layout() })
        }
        (Shape::Tuple(a), Shape::Tuple(b)) => {
            Shape::tuple(a.iter().zip(b.iter()).map(|(a, b)| join_dynamic(a, b)))
        }
        (Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => {
            a.without_layout()
        }
    }
}

/// `conditional`: a predicate or an index selects the branch; each branch takes its operand, all give the
/// same shape.
pub(super) fn conditional(cx: &Cx) -> Inferred {
    let ty = cx.scalar(0, "the branch index")?;
    if ty != ElementType::Pred && ty != ElementType::S32 {
        return Err(cx
            .error(codes::BRANCH_INDEX, format!("the branch index cannot be of type {ty}"))
            .at(0, format!("this is {ty}[]"))
            .label("must be pred or s32"));
    }
    let branches: Vec<ComputationId> = match cx.attrs.computations(AttrKey::BranchComputations) {
        Some(branches) => branches.to_vec(),
        None => {
            let of = |key| {
                cx.attrs
                    .computation(key)
                    .ok_or_else(|| cx.error(codes::MISSING_ATTRIBUTE, "branches are missing"))
            };
            vec![of(AttrKey::TrueComputation)?, of(AttrKey::FalseComputation)?]
        }
    };
    if ty == ElementType::Pred && branches.len() != 2 || branches.is_empty() {
        return Err(cx
            .error(
                codes::BRANCH_INDEX,
                format!("{} for a branch index of type {ty}", count(branches.len(), "branch computation")),
            )
            .label(if ty == ElementType::Pred { "must be 2" } else { "must be at least 1" }));
    }
    if cx.operands.len() != branches.len() + 1 {
        return Err(cx
            .error(
                codes::CALL_ARITY,
                format!(
                    "{} for {}",
                    count(cx.operands.len(), "operand"),
                    count(branches.len(), "branch computation")
                ),
            )
            .label(format!(
                "must be {}: the index and one for each branch",
                count(branches.len() + 1, "operand")
            )));
    }
    let mut result: Option<(String, Shape)> = None;
    for (i, &branch) in branches.iter().enumerate() {
        let signature = cx.signature_of(branch)?;
        let callee = name(cx, branch);
        arguments(cx, i + 1..i + 2, &callee, &signature)?;
        result = Some(match result {
            None => (callee, signature.result.without_layout()),
            Some((first, shape)) => {
                if !shapes_match(&shape, &signature.result, Match::Strict) {
                    return Err(cx.error(
                        codes::BRANCH_RESULT,
                        format!(
                            "{first} gives {}, but {callee} gives {}",
                            show(&shape),
                            show(&signature.result)
                        ),
                    ));
                }
                (first, join_dynamic(&shape, &signature.result))
            }
        });
    }
    Ok(result.expect("invariant: there is at least one branch").1)
}
