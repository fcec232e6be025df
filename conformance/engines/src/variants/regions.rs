//! Folds by other regions than sums, in other orders: of `reduce`, `reduce-window` and `scatter`, of any number of operands.

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::{InstrId, Module, Opcode, Shape};
use hlo_opt::passes::edit::{Edit, each};
use hlo_opt::passes::{Fuel, Pass};

use super::sums::{adds, longest, turned};
use hlo_certify::bounds;

/// The order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Backwards: operands are reversed along the folded dimensions, updates along those of the index array.
    Reversed,
    /// Halves of what chooses among elements, and a fold of what these give.
    Halved,
}

/// Folds by other regions than sums in another order.
#[derive(Clone, Copy, Debug)]
pub struct Regions(pub How);

impl Pass for Regions {
    fn name(&self) -> &str {
        match self.0 {
            How::Reversed => "regions-reversed",
            How::Halved => "regions-halved",
        }
    }

    fn doc(&self) -> &str {
        match self.0 {
            How::Reversed => "folds that are no sums from the last element to the first",
            How::Halved => "folds that choose among elements by halves",
        }
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        match self.0 {
            How::Reversed => each(module, fuel, reversed),
            How::Halved => each(module, fuel, halved),
        }
    }
}

/// The operands of a fold that is no sum of floats, all of static shapes.
fn operands(e: &Edit<'_>) -> Option<Vec<InstrId>> {
    let region = e.at().attrs.computation(AttrKey::ToApply)?;
    let operands = e.at().operands().to_vec();
    let arrays = operands.iter().all(|&o| e.array(o).is_some_and(|a| !a.is_dynamic()));
    (arrays && adds(e, region).is_none()).then_some(operands)
}

fn reversed(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.at().opcode;
    if !matches!(opcode, Opcode::Reduce | Opcode::ReduceWindow | Opcode::Scatter) {
        return None;
    }
    let mut operands = operands(e)?;
    let attrs = e.at().attrs.clone();
    let n = operands.len() / 2;
    match opcode {
        Opcode::Reduce => {
            let dims = attrs.ints(AttrKey::Dimensions)?.to_vec();
            if dims.is_empty() {
                return None;
            }
            for x in &mut operands[..n] {
                *x = e.reverse(*x, &dims)?;
            }
            e.again(&operands)
        }
        Opcode::ReduceWindow => {
            let dims: Vec<i64> = (0..attrs.window()?.dims.len() as i64).collect();
            if dims.is_empty() {
                return None;
            }
            let window = turned(e, &dims, operands[0])?;
            for x in &mut operands[..n] {
                *x = e.reverse(*x, &dims)?;
            }
            let attrs = attrs.with(AttrKey::Window, AttrValue::Window(Box::new(window)));
            let shape = e.at().shape.clone();
            let folded = e.shaped(Opcode::ReduceWindow, shape, &operands, attrs)?;
            let Shape::Tuple(parts) = e.instr(folded).shape.clone() else { return e.reverse(folded, &dims) };
            let mut results = Vec::new();
            for index in 0..parts.len() as i64 {
                let part = e.get(folded, index)?;
                results.push(e.reverse(part, &dims)?);
            }
            e.tuple(&results)
        }
        _ => {
            let window = attrs.ints_or_empty(AttrKey::UpdateWindowDims).to_vec();
            if !attrs.ints_or_empty(AttrKey::InputBatchingDims).is_empty() {
                return None;
            }
            let vector = attrs.int(AttrKey::IndexVectorDim)?;
            let rank = |e: &Edit<'_>, x: InstrId| e.array(x).map(|a| a.dims.len() as i64);
            let of_indices: Vec<i64> = (0..rank(e, operands[n])?).filter(|&d| d != vector).collect();
            let of_updates: Vec<i64> =
                (0..rank(e, operands[n + 1])?).filter(|d| !window.contains(d)).collect();
            if of_indices.is_empty() || of_indices.len() != of_updates.len() {
                return None;
            }
            operands[n] = e.reverse(operands[n], &of_indices)?;
            for x in &mut operands[n + 1..] {
                *x = e.reverse(*x, &of_updates)?;
            }
            e.again(&operands)
        }
    }
}

/// Both halves of the longest dimension begin with the initial values: those are among what is chosen, however often.
fn halved(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode != Opcode::Reduce {
        return None;
    }
    let operands = operands(e)?;
    let attrs = e.at().attrs.clone();
    if !bounds::chooses(e.module, attrs.computation(AttrKey::ToApply)?) {
        return None;
    }
    let (values, initial) = operands.split_at(operands.len() / 2);
    let sizes = e.array(values[0])?.dims.clone();
    let (d, n) = longest(attrs.ints(AttrKey::Dimensions)?, &sizes)?;
    let mut halves: Vec<Vec<InstrId>> = vec![Vec::new(); values.len()];
    for (start, limit) in [(0, n / 2), (n / 2, n)] {
        let mut parts = Vec::new();
        for &x in values {
            parts.push(e.cut(x, d, start, limit)?);
        }
        parts.extend(initial);
        let folded = e.again(&parts)?;
        for (k, of) in halves.iter_mut().enumerate() {
            let part = if matches!(e.instr(folded).shape, Shape::Tuple(_)) {
                e.get(folded, k as i64)?
            } else {
                folded
            };
            let mut dims = e.array(part)?.dims.to_vec();
            dims.insert(0, 1);
            of.push(e.reshape(part, &dims)?);
        }
    }
    let mut joined = Vec::new();
    // The second half first.
    for of in halves {
        joined.push(e.concatenate(&[of[1], of[0]], 0)?);
    }
    joined.extend(initial);
    let mut over: Attrs = attrs;
    over.set(AttrKey::Dimensions, hlo_opt::passes::edit::ints(&[0]));
    let shape = e.at().shape.clone();
    e.shaped(Opcode::Reduce, shape, &joined, over)
}
