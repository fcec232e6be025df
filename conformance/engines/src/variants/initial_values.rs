//! The initial value of a fold any number of times.
//!
//! StableHLO leaves open how many initial values stand among the elements that a `reduce` folds, and where
//! (specification, "reduce"; "reduce_window" is defined by it). With one that is the identity of the region
//! nothing shows; with another, XLA:CPU's results do. Bounds have it once, but for folds of one element: so
//! [`InitialValues::EachWindow`] and [`InitialValues::EachOperand`] are runs beside others and no variants.

use hlo::attrs::{AttrKey, AttrValue, Attrs, WindowDim};
use hlo::{InstrId, Module, Opcode, Shape};
use hlo_opt::passes::edit::{Edit, each, ints};
use hlo_opt::passes::{Fuel, Pass};

use super::regions::windows;

/// How often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitialValues {
    /// Not at all, where one element is folded: it is the result, converted to its type.
    None,
    /// Once in each window of 32 positions along the folded dimensions, and once in the fold of these
    /// (XLA:CPU's tree reduction).
    EachWindow,
    /// Once in the fold of each operand of a `concatenate` along a folded dimension (XLA's algebraic
    /// simplifier).
    EachOperand,
}

impl Pass for InitialValues {
    fn name(&self) -> &str {
        match self {
            InitialValues::None => "initial-values-none",
            InitialValues::EachWindow => "initial-values-each-window",
            InitialValues::EachOperand => "initial-values-each-operand",
        }
    }

    fn doc(&self) -> &str {
        match self {
            InitialValues::None => "folds of one element without their initial values",
            InitialValues::EachWindow => "folds of one operand in windows of 32, each from the initial value",
            InitialValues::EachOperand => {
                "folds of concatenations operand by operand, each from the initial value"
            }
        }
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        match self {
            InitialValues::None => each(module, fuel, copied),
            InitialValues::EachWindow => each(module, fuel, |e| {
                let [value, initial] = e.operands()?;
                let dynamic = |id: InstrId| e.array(id).is_none_or(hlo::ArrayShape::is_dynamic);
                if dynamic(value) || dynamic(initial) {
                    return None;
                }
                windows(e, value, initial, initial)
            }),
            InitialValues::EachOperand => each(module, fuel, by_operand),
        }
    }
}

/// The folds of the operands of a `concatenate` along a folded dimension, folded in their order.
fn by_operand(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode != Opcode::Reduce {
        return None;
    }
    let [value, initial] = e.operands()?;
    let concatenate = e.instr(value);
    if concatenate.opcode != Opcode::Concatenate || e.array(value)?.is_dynamic() {
        return None;
    }
    let joined = concatenate.attrs.ints(AttrKey::Dimensions)?.first()?;
    if !e.at().attrs.ints(AttrKey::Dimensions)?.contains(joined) {
        return None;
    }
    let parts = concatenate.operands().to_vec();
    let shape = e.at().shape.clone();
    let dims: Vec<i64> = (0..shape.as_array()?.dims.len() as i64).collect();
    let mut combine = Attrs::default();
    combine.set(AttrKey::Dimensions, ints(&dims));
    combine.set(AttrKey::ToApply, AttrValue::Computation(e.at().attrs.computation(AttrKey::ToApply)?));
    let (&first, rest) = parts.split_first()?;
    let mut folded = e.again(&[first, initial])?;
    for &part in rest {
        let next = e.again(&[part, initial])?;
        folded = e.shaped(Opcode::Map, shape.clone(), &[folded, next], combine.clone())?;
    }
    (!rest.is_empty()).then_some(folded)
}

/// The elements of a fold of one element each, in the type and shape of the result.
fn copied(e: &mut Edit<'_>) -> Option<InstrId> {
    let operands = e.at().operands().to_vec();
    let values = &operands[..operands.len() / 2];
    let arrays: Vec<_> = values.iter().map(|&x| e.array(x)).collect::<Option<_>>()?;
    let first = *arrays.first()?;
    let one = match e.at().opcode {
        Opcode::Reduce => {
            let folded = e.at().attrs.ints(AttrKey::Dimensions)?;
            folded.iter().all(|&d| usize::try_from(d).is_ok_and(|d| first.dims.get(d) == Some(&1)))
        }
        Opcode::ReduceWindow => {
            // Dilated or reversed, a window of one position is the same.
            let placed = |w: &WindowDim| (w.size, w.stride, w.pad_low, w.pad_high, w.base_dilation);
            e.at().attrs.window()?.dims.iter().all(|w| placed(w) == placed(&WindowDim::default()))
        }
        _ => return None,
    };
    if !one || arrays.iter().any(|a| a.is_dynamic()) {
        return None;
    }
    let shape = e.at().shape.clone();
    let mut copies = Vec::new();
    for (&x, shape) in values.iter().zip(shape.leaves()) {
        let array = shape.as_array()?;
        let converted = e.convert(x, array.element_type)?;
        copies.push(e.reshape(converted, &array.dims)?);
    }
    if matches!(shape, Shape::Tuple(_)) { e.tuple(&copies) } else { copies.first().copied() }
}
