//! Loop nests: kernel requests as functions over a range of units.
//!
//! ```text
//! Request --plan--> Expr (expression IR) + nests --describe--> Kernel (phases, units, cost)
//!                                                --emit-----> LLVM functions
//! ```
//!
//! **Invariants:** analysis creates no LLVM values; [`describe`] and [`emit`] plan identically, and what a
//! kernel computes depends neither on the range of units that it is called with nor on the target's vector
//! length, except for sums of floats, whose order does.

mod access;
mod code;
mod collapse;
mod columns;
mod compaction;
mod cost;
mod lanes;
mod nest;
mod ordered_rows;
mod partition;
mod prefetch;
mod reduce;
mod region;
mod roots;
mod row_blocks;
mod rows;
mod scatter;
mod short_rows;
mod sweep;
#[cfg(test)]
pub(crate) mod tests;
mod tile;
mod while_kernel;
mod widen;

use std::rc::Rc;

use hlo::attrs::{AttrKey, FusionKind};
use hlo::{InstrId, Module};
use hlo_codegen::kernel::{Kernel, Phase, Request, Strategy};
use hlo_library_base::Unsupported;
use hlo_llvm::{Emit, Result, Target, Value};
use hlo_opt::expr::Expr;

use super::Unit;

/// What a phase reads and writes, in bytes, and computes, in arithmetic operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Cost {
    bytes: u64,
    flops: u64,
}

/// A function whose body is being emitted.
struct Function<'a, 'ctx> {
    e: Emit<'a, 'ctx>,
    /// The pointer to the arguments, first and last unit.
    parameters: [Value<'ctx>; 3],
}

/// The plan of a request: its expressions and the phases that evaluate them.
struct Plan<'m> {
    expr: Expr<'m>,
    phases: Vec<Work<'m>>,
    scratch: u64,
}

/// A phase, by strategy.
enum Work<'m> {
    /// A loop nest that stores values.
    Nest(nest::Nest),
    /// A reduction.
    Reduce(Rc<reduce::Reduction<'m>>),
    /// Chained reductions over rows.
    Rows(rows::Chain<'m>),
    /// A scatter.
    Scatter(scatter::Scatter<'m>),
    /// A loop in one kernel.
    While(while_kernel::WhileKernel),
    /// The combination of a reduction's chunks.
    Combine(Rc<reduce::Reduction<'m>>),
}

impl<'m> Work<'m> {
    fn units(&self) -> (u64, u64) {
        match self {
            Work::Nest(n) => n.units(),
            Work::Rows(r) => r.units(),
            Work::While(_) => (u64::MAX >> 1, 1),
            Work::Scatter(s) => s.units(),
            Work::Reduce(r) => r.units(),
            Work::Combine(r) => r.finish_units(),
        }
    }

    fn strategy(&self) -> Strategy {
        match self {
            Work::Nest(n) => n.strategy(),
            Work::Rows(r) => r.strategy(),
            Work::While(_) => Strategy::SingleKernelLoop,
            Work::Scatter(_) => Strategy::Scatter,
            Work::Reduce(r) => r.strategy(),
            Work::Combine(_) => Strategy::CombineParts,
        }
    }

    /// Consecutive units that one thread should execute.
    fn run(&self) -> u64 {
        match self {
            Work::Reduce(r) => r.run(),
            Work::Nest(_) | Work::Rows(_) | Work::While(_) | Work::Scatter(_) | Work::Combine(_) => 1,
        }
    }

    fn cost(&self, expr: &Expr<'_>) -> Cost {
        match self {
            Work::Nest(n) => n.cost(expr),
            Work::Rows(r) => r.cost(expr),
            Work::While(w) => w.cost(expr),
            Work::Scatter(s) => s.cost(expr),
            Work::Reduce(r) => r.cost(expr),
            Work::Combine(r) => r.finish_cost(),
        }
    }

    fn emit(&self, f: &Function<'_, '_>, expr: &Expr<'m>, target: &Target) -> Result<()> {
        match self {
            Work::Nest(n) => n.emit(f, expr, target),
            Work::Rows(r) => r.emit(f, expr, target),
            Work::While(w) => w.emit(f, expr, target),
            Work::Scatter(s) => s.emit(f, expr, target),
            Work::Reduce(r) => r.emit(f, expr, target),
            Work::Combine(r) => r.emit_finish(f, expr, target),
        }
    }
}

fn plan(module: &Module, request: Request) -> std::result::Result<Plan<'_>, Unsupported> {
    if let Request::Fusion(id) = request
        && let Some(at) = scatter::root(module, id)
    {
        let (expr, copies, scatter) = scatter::fusion(module, at)?;
        let phases = copies.into_iter().map(Work::Nest).chain(scatter.map(Work::Scatter)).collect();
        return Ok(Plan { expr, phases, scratch: 0 });
    }
    let nests = match request {
        Request::Fusion(id) if reduces(module, id) => {
            let chain = module.instr(id).attrs.fusion_kind() == Some(&FusionKind::Custom);
            return if chain {
                rows(module, id).or_else(|_| separate_reductions(module, id))
            } else if short_rows::may_be_short_rows(module, id)
                && let Ok(short) = rows(module, id)
                && short.phases.iter().all(|p| matches!(p, Work::Rows(chain) if chain.is_short()))
            {
                Ok(short)
            } else {
                reduction(module, id)
                    .or_else(|_| rows(module, id))
                    .or_else(|_| separate_reductions(module, id))
            };
        }
        Request::Fusion(id) => nest::fusion(module, id)?,
        Request::Epilogue { fusion, hero } => nest::epilogue(module, fusion, hero)?,
        Request::Map(computation) => nest::map(module, computation)?,
        Request::Loop(id) => {
            let (expr, plan, scratch) = while_kernel::plan(module, id)?;
            return Ok(Plan { expr, phases: vec![Work::While(plan)], scratch });
        }
    };
    let (expr, nests) = nests;
    Ok(Plan { expr, phases: nests.into_iter().map(Work::Nest).collect(), scratch: 0 })
}

fn rows(module: &Module, id: InstrId) -> std::result::Result<Plan<'_>, Unsupported> {
    let (expr, chain) = rows::fusion(module, id)?;
    Ok(Plan { expr, phases: chain.into_iter().map(Work::Rows).collect(), scratch: 0 })
}

fn reduction(module: &Module, id: InstrId) -> std::result::Result<Plan<'_>, Unsupported> {
    let (expr, all, scratch) = reduce::fusion(module, id)?;
    let phases = all.into_iter().flat_map(phases_of).collect();
    Ok(Plan { expr, phases, scratch })
}

fn phases_of(r: reduce::Reduction<'_>) -> Vec<Work<'_>> {
    let r = Rc::new(r);
    let again = r.in_chunks().then(|| Work::Combine(r.clone()));
    [Work::Reduce(r)].into_iter().chain(again).collect()
}

fn separate_reductions(module: &Module, id: InstrId) -> std::result::Result<Plan<'_>, Unsupported> {
    let (expr, all, nests, scratch) = reduce::separate_reductions(module, id)?;
    let phases = all.into_iter().flat_map(phases_of).chain(nests.into_iter().map(Work::Nest)).collect();
    Ok(Plan { expr, phases, scratch })
}

/// Whether a fusion computes reductions.
fn reduces(module: &Module, id: InstrId) -> bool {
    let computation = module.instr(id).attrs.computation(AttrKey::Calls);
    computation.is_some_and(|c| !hlo_opt::fusion::folds::all(module, c).is_empty())
}

/// The instruction that a request is about.
pub fn subject(module: &Module, request: Request) -> InstrId {
    match request {
        Request::Fusion(id) | Request::Loop(id) => id,
        Request::Epilogue { fusion, .. } => fusion,
        Request::Map(computation) => module.root(computation),
    }
}

/// The kernel of a request. Its phases' symbols are `symbol`, `symbol.1`, ...; a kernel whose results have no
/// elements has no phase. For [`Request::Map`] the number of units is 0: it is the caller's number of
/// elements. Errors: what is not supported.
pub fn describe(module: &Module, request: Request, symbol: &str) -> std::result::Result<Kernel, Unsupported> {
    plan(module, request).map(|plan| plan.kernel(module, request, symbol))
}

/// Emits the functions of a kernel into a compilation unit: those that [`describe`] names; returns what that
/// returns.
pub fn emit(unit: &Unit<'_, '_>, module: &Module, request: Request, symbol: &str) -> Result<Kernel> {
    let plan = plan(module, request)?;
    let kernel = plan.kernel(module, request, symbol);
    let subject = module.instr(subject(module, request));
    for (work, phase) in plan.phases.iter().zip(&kernel.phases) {
        let (e, parameters) =
            Emit::kernel(unit.context, unit.module, unit.builder, unit.target, &phase.symbol)?;
        if let Some(lines) = unit.lines {
            lines.begin(e.function, &subject.name, subject.span);
        }
        let e = Emit { lines: unit.lines, ..e };
        work.emit(&Function { e, parameters }, &plan.expr, unit.target)?;
        if let Some(lines) = unit.lines {
            lines.end(e.function, subject.span);
        }
    }
    Ok(kernel)
}

impl Plan<'_> {
    fn kernel(&self, module: &Module, request: Request, symbol: &str) -> Kernel {
        let phases = self.phases.iter().enumerate().map(|(i, work)| {
            let (units, grain) = if matches!(request, Request::Map(_)) { (0, 1) } else { work.units() };
            let Cost { bytes, flops } = work.cost(&self.expr);
            let symbol = if i == 0 { symbol.to_owned() } else { format!("{symbol}.{i}") };
            Phase { symbol, strategy: work.strategy(), units, grain, run: work.run(), bytes, flops }
        });
        let name = module.instr(subject(module, request)).name.to_string();
        let iterates = matches!(self.phases[..], [Work::While(_)]);
        Kernel { name, phases: phases.collect(), scratch: self.scratch, iterates }
    }
}
