//! NaNs that no order of a fold loses: of a computation that gives a NaN whichever of its parameters is one,
//! the result is NaN where an element or the initial value is, in any order and with any brackets.

use hlo::{AttrKey, Opcode};
use hlo_execution::special::Special;
use hlo_recognize::expression::{Expression, Origin};

use super::number::Numbers;
use super::rules::{Arg, Case, Mode};
use super::special::Specials;
use super::{Bounds, Radii, folds};

/// The bounds of a fold of one operand by a computation that is not recognized: of its NaNs. `None`: nothing
/// is known of any element.
pub(super) fn bounds(case: &Case<'_>) -> Option<Vec<Bounds>> {
    let ([x, initial], [result]) = (&case.args[..], &case.results[..]) else { return None };
    if !passes_nans(case)? {
        return None;
    }
    let value = Numbers::of(result);
    let is_nan = |of: &Numbers, i: usize| of.at(i).0.is_nan() || of.at(i).1.is_nan();
    if !(0..value.len()).any(|i| is_nan(&value, i)) {
        return None;
    }
    let (steps, results) = folds::terms(case)?;
    if results != value.len() {
        return None;
    }
    let known = |arg: &Arg<'_>| -> Vec<bool> {
        let (of, radii) = (Numbers::of(arg.tensor), arg.leaf.bounds.radii(Mode::Hard));
        (0..of.len()).map(|i| is_nan(&of, i) && radii.at(i) == 0.0).collect()
    };
    let (elements, initial) = (known(x), known(initial).contains(&true));
    let nan = |i: usize| {
        let of_elements = || steps.iter().any(|step| step[i].is_some_and(|element| elements[element]));
        is_nan(&value, i) && (initial || of_elements())
    };
    let nans: Vec<bool> = (0..results).map(nan).collect();
    nans.contains(&true).then(|| {
        let radii = Radii::new(nans.iter().map(|&nan| if nan { 0.0 } else { f64::INFINITY }).collect());
        // Of a complex number either part may be it.
        let specials = nans.iter().map(|&nan| if nan { Special::ANY } else { Special::NONE });
        vec![Bounds { specials: Specials::new(specials.collect()), ..Bounds::of(radii.clone(), radii) }]
    })
}

/// Whether the applied computation gives a NaN where one of its two parameters is one, whatever the other.
fn passes_nans(case: &Case<'_>) -> Option<bool> {
    let expression = Expression::new(case.module, case.instr.attrs.computation(AttrKey::ToApply)?)?;
    let &[root] = &expression.results[..] else { return None };
    let ty = case.results.first()?.element_type();
    let strict = |parameter: usize| {
        let mut of: Vec<bool> = Vec::with_capacity(expression.nodes.len());
        for (n, node) in expression.nodes.iter().enumerate() {
            let passes = match node.origin {
                Origin::Parameter(p) => p == parameter,
                Origin::Instruction(_) => {
                    let strict = matches!(
                        expression.opcode(n),
                        Some(
                            Opcode::Add
                                | Opcode::Subtract
                                | Opcode::Multiply
                                | Opcode::Maximum
                                | Opcode::Minimum
                                | Opcode::Negate
                        )
                    );
                    strict && node.operands.iter().any(|&o| of[o])
                }
            };
            of.push(passes && node.ty == ty);
        }
        of[root]
    };
    Some(expression.parameters.len() == 2 && strict(0) && strict(1))
}
