//! Scans by any computation: the computation on the slices, one after the other.
//!
//! A scan is ordered, and its computation is one of whole arrays. So it is what a module does that cuts the
//! inputs into slices, calls the computation on each with the carries of the call before, and puts the
//! outputs together; its bounds are that module's. Scans whose order an engine may choose (`is_associative`),
//! and running sums and products, have rules of their own.

use hlo::attrs::SliceDim;
use hlo::builder::ComputationBuilder;
use hlo::{AttrKey, InstrId, Module, Opcode, Shape};
use rustc_hash::FxHashMap;

use super::Bounds;
use super::probe::{Regions, copied};
use super::rules::{self, Case};

/// The most steps of a scan, and the most elements that its computation gives in all of them.
const BUDGET: (usize, usize) = (600, 4_000_000);

/// The bounds of the results. `None`: they are not worked out.
pub(super) fn step_by_step(case: &Case<'_>) -> Option<Vec<Bounds>> {
    let log_add_exp = |c| hlo::log_add_exp(case.module, c).is_some();
    let own = matches!(rules::folds_by(case), Some(Opcode::Add | Opcode::Multiply))
        || case.instr.attrs.computation(AttrKey::ToApply).is_some_and(log_add_exp);
    if case.opcode() != Opcode::Scan || own || case.instr.attrs.bool(AttrKey::IsAssociative) {
        return None;
    }
    let module = written_out(case)?;
    rules::stands_for(case, &module).filter(|found| found.len() == case.results.len())
}

fn written_out(case: &Case<'_>) -> Option<Module> {
    let attrs = &case.instr.attrs;
    let dimension = usize::try_from(*attrs.ints(AttrKey::Dimensions)?.first()?).ok()?;
    let carries = usize::try_from(attrs.int(AttrKey::NumCarries)?).ok()?;
    let computation = attrs.computation(AttrKey::ToApply)?;
    let inputs = case.args.len().checked_sub(carries)?;
    let outputs = case.results.len().checked_sub(carries)?;
    let steps = *case.args.first()?.tensor.sizes().get(dimension)?;
    let elements: usize = case.args.iter().map(|a| a.tensor.len()).sum();
    let carried: usize = case.args[inputs..].iter().map(|a| a.tensor.len()).sum();
    let work = (elements + carried * steps).checked_mul(case.module.computation(computation).len())?;
    if inputs == 0 || steps == 0 || steps > BUDGET.0 || work > BUDGET.1 {
        return None;
    }
    let mut module = Module::new("scan");
    let same = Regions::Retyped(&|ty| ty);
    let step = copied(case.module, &mut module, computation, &same, &mut FxHashMap::default())?;
    let mut b = ComputationBuilder::new(&mut module, "main");
    let mut parameters: Vec<InstrId> = Vec::new();
    for a in &case.args {
        parameters.push(b.parameter("p", Shape::Array(a.tensor.shape())));
    }
    let (sources, carried) = parameters.split_at(inputs);
    let mut carried = carried.to_vec();
    let mut stacked: Vec<Vec<InstrId>> = vec![Vec::new(); outputs];
    for at in 0..steps {
        let index = if attrs.bool(AttrKey::IsReverse) { steps - 1 - at } else { at } as i64;
        let mut operands = Vec::new();
        for (a, &x) in case.args.iter().zip(sources) {
            let mut dims = a.tensor.dims().to_vec();
            let mut slices: Vec<SliceDim> =
                dims.iter().map(|&n| SliceDim { start: 0, limit: n, stride: 1 }).collect();
            *slices.get_mut(dimension)? = SliceDim { start: index, limit: index + 1, stride: 1 };
            let one = b.slice(x, &slices).ok()?;
            dims.remove(dimension);
            operands.push(b.reshape(one, &dims).ok()?);
        }
        operands.extend(&carried);
        let called = b.call(step, &operands).ok()?;
        let pieces: Vec<InstrId> = match b.shape(called).as_tuple().map(<[Shape]>::len) {
            None => vec![called],
            Some(n) => (0..n as i64).map(|k| b.get(called, k).ok()).collect::<Option<_>>()?,
        };
        if pieces.len() != outputs + carries {
            return None;
        }
        carried = pieces[outputs..].to_vec();
        for (stack, &piece) in stacked.iter_mut().zip(&pieces) {
            stack.push(piece);
        }
    }
    let mut results = Vec::new();
    for (mut stack, t) in stacked.into_iter().zip(&case.results) {
        if attrs.bool(AttrKey::IsReverse) {
            stack.reverse();
        }
        let mut dims = t.dims().to_vec();
        *dims.get_mut(dimension)? = 1;
        let mut parts = Vec::new();
        for piece in stack {
            parts.push(b.reshape(piece, &dims).ok()?);
        }
        results.push(b.concatenate(&parts, i64::try_from(dimension).ok()?).ok()?);
    }
    results.extend(carried);
    b.tuple(&results).ok()?;
    let entry = b.finish();
    module.set_entry(entry);
    Some(module)
}
