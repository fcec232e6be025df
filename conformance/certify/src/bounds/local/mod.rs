//! One execution of an instruction on operands that are the reference's to the bit: what a replay asks of
//! everything that differs.
//!
//! The interpreter needs not run again for that: operands and results are known from the run that was
//! recorded.
//!
//! - **A fusion of what works row by row** ([`rows`]): its instructions are evaluated in intervals of f32,
//!   some rows at a time, so that nothing in between leaves the cache.
//! - **Products** ([`products`]): a sum of products may be off by a multiple of the sum of their magnitudes,
//!   which is no less than the magnitude of their sum. Only elements that are off by more need the
//!   magnitudes.
//! - **Any other instruction**: the rule that finds its bounds, on these operands.
//! - **Any other fusion, a call, a loop, a branch**: a run with bounds of it alone, if it depends on its
//!   operands only.
//!
//! **Invariants:** what is explained here is explained by the bounds of the run with bounds too: intervals
//! are no wider than what radii make of them, but for a few units in the last place of f64. Nothing is called
//! undecided or wrong on account of intervals: what they do not explain is left to the rules. Engines that
//! take liberties are judged by the rules alone.

mod fold;
mod products;
mod program;
mod rows;
mod windows;

use std::sync::Arc;

use hlo::opcode::Family;
use hlo::{AttrKey, ElementType, InstrId, Module, Opcode};
use hlo_execution::allowances::Allowances;
use hlo_execution::element::Number;
use hlo_execution::functions::Functions;
use hlo_execution::run::RunOptions;
use hlo_execution::verdict::{error_of, same_buffers};
use hlo_interp::device::host::NoHost;
use hlo_interp::{Accumulate, Devices, Tensor, Value};
use rustc_hash::FxHashMap;

use super::account::Account;
use super::probe::Probe;
use super::rules::{self, Arg, Case, Kind, kind};
use super::{Bounds, Leaf, Settings, Watching, devices, evaluate, exact_tree};
use program::Program;

/// What the executions of a program's instructions may differ by.
pub struct Local<'m> {
    module: &'m Module,
    settings: Settings,
    programs: FxHashMap<InstrId, Option<Arc<Program>>>,
    /// Instructions that call, as programs of their own; `None`: they depend on more than their operands.
    calls: FxHashMap<InstrId, Option<Arc<Probe>>>,
    nan_bits: bool,
}

/// What is known of an execution.
#[derive(Debug)]
pub enum Known {
    /// All that differs is explained by rounding.
    Explained(Worst),
    /// The bounds of the arrays of its result.
    Bounds(Vec<Bounds>),
    /// Nothing: the run with bounds has to say.
    Nothing,
}

/// The worst of what is explained.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Worst {
    /// The largest distance in representable numbers; `None`: there is one without a number.
    pub ulp: Option<u64>,
    /// The largest error as a multiple of its bound.
    pub ratio: f64,
}

impl Worst {
    const NONE: Worst = Worst { ulp: Some(0), ratio: 0.0 };

    fn or(self, other: Worst) -> Worst {
        let ulp = self.ulp.zip(other.ulp).map(|(a, b)| a.max(b));
        Worst { ulp, ratio: self.ratio.max(other.ratio) }
    }

    /// Of one element that is off by `error`, where `bound` is allowed.
    fn of<T: Number>(expected: T, actual: T, error: f64, bound: f64) -> Worst {
        let (_, ulp) = error_of(expected.parts().0, actual.parts().0);
        Worst { ulp, ratio: error / bound }
    }
}

impl<'m> Local<'m> {
    /// Of a program's instructions; `None`: bounds live on behind the reference's values, where an engine
    /// takes liberties.
    pub fn new(
        module: &'m Module,
        options: &RunOptions,
        allowances: Allowances,
        nan_bits: bool,
    ) -> Option<Local<'m>> {
        if (Allowances { functions: Functions::TABLE, ..allowances }) != Allowances::STRICT
            || options.accumulate != Accumulate::Exact
        {
            return None;
        }
        // What is judged by itself neither meets others nor depends on the device that it is on.
        let account = account(options);
        let options = RunOptions { devices: Devices::ONE, ..*options };
        let settings = Settings { allowances, options, account, nested: true };
        let (programs, calls) = (FxHashMap::default(), FxHashMap::default());
        Some(Local { module, settings, programs, calls, nan_bits })
    }

    /// What is known of an execution of an instruction on these operands, with the reference's result and an
    /// engine's.
    pub fn judge(&mut self, id: InstrId, operands: &[Value], expected: &Value, actual: &Value) -> Known {
        let instr = self.module.instr(id);
        if operands.len() != instr.operands().len() {
            return Known::Nothing;
        }
        let (results, given) = (expected.arrays(), actual.arrays());
        let fit = |(a, b): (&&Tensor, &&Tensor)| a.dims() == b.dims() && a.element_type() == b.element_type();
        if results.len() != given.len() || !results.iter().zip(&given).all(fit) {
            return Known::Nothing;
        }
        // What one instruction takes too much memory for says nothing of others.
        self.settings.account = account(&self.settings.options);
        let differs: Vec<bool> = results
            .iter()
            .zip(&given)
            .map(|(a, b)| !same_buffers(a.buffer(), b.buffer(), self.nan_bits))
            .collect();
        let worst = if matches!(instr.opcode, Opcode::Dot | Opcode::Convolution) {
            products::explained(self, id, operands, &results, &given)
        } else {
            self.explained(id, operands, &results, &given, &differs)
        };
        match worst {
            Some(worst) => Known::Explained(worst),
            None => {
                let alone = self.bounds(id, operands, &results);
                alone.or_else(|| self.called(id, operands, &results)).map_or(Known::Nothing, Known::Bounds)
            }
        }
    }

    /// The bounds of an instruction that calls computations: a run with bounds of it alone. `None`: that is
    /// not another execution of the same.
    fn called(&mut self, id: InstrId, operands: &[Value], results: &[&Tensor]) -> Option<Vec<Bounds>> {
        let module = self.module;
        let call = self.calls.entry(id).or_insert_with(|| {
            let instr = module.instr(id);
            let calls =
                matches!(instr.opcode, Opcode::Fusion | Opcode::Call | Opcode::While | Opcode::Conditional);
            let alone = calls && depends_on_operands_alone(module, id);
            Probe::retyped(module, instr, &|ty| ty).filter(|_| alone).map(Arc::new)
        });
        let call = call.clone()?;
        let trees = operands.iter().map(exact_tree).collect();
        let (settings, host) = (self.settings.clone(), Arc::new(NoHost));
        let (program, arguments) = (call.instruction().0, vec![operands.to_vec()]);
        let ended = evaluate(program, arguments, vec![trees], settings, host, Watching::default());
        let (value, tree) = ended.ok()?.pop()?;
        let (found, bounds) = (value.arrays(), tree.arrays());
        let same = |(a, b): (&&Tensor, &&Tensor)| same_buffers(a.buffer(), b.buffer(), true);
        let again = found.len() == results.len() && found.iter().zip(results).all(same);
        (again && bounds.len() == results.len()).then(|| bounds.into_iter().cloned().collect())
    }

    /// The worst of what differs, if intervals explain it all.
    fn explained(
        &mut self,
        id: InstrId,
        operands: &[Value],
        expected: &[&Tensor],
        actual: &[&Tensor],
        differs: &[bool],
    ) -> Option<Worst> {
        let float = |t: &&Tensor| t.element_type() == ElementType::F32;
        if !differs.iter().zip(expected).all(|(&differs, t)| !differs || float(t)) {
            return None;
        }
        let (module, settings) = (self.module, &self.settings);
        let program = self.programs.entry(id);
        let program = program.or_insert_with(|| Program::new(module, id, settings).map(Arc::new)).clone()?;
        rows::explained(&program, module, settings, operands, (expected, actual, differs), self.nan_bits)
    }

    /// The bounds that rules find for an instruction that calls nothing.
    fn bounds(&self, id: InstrId, operands: &[Value], results: &[&Tensor]) -> Option<Vec<Bounds>> {
        let instr = self.module.instr(id);
        let alone = match kind(instr.opcode) {
            Kind::Movement(_)
            | Kind::Elementwise
            | Kind::Bits
            | Kind::Sum
            | Kind::Region
            | Kind::Sort
            | Kind::Topk
            | Kind::Fft
            | Kind::Cholesky
            | Kind::TriangularSolve
            | Kind::BatchNorm => true,
            Kind::Exchange
            | Kind::CollectiveFold
            | Kind::Random
            | Kind::Opaque
            | Kind::CustomCall
            | Kind::Structure => false,
        };
        if !alone || instr.opcode.flags().collective || devices::synchronous(self.module, instr).is_some() {
            return None;
        }
        let leaf = Arc::new(Leaf::default());
        let mut args = Vec::new();
        for (value, &from) in operands.iter().zip(instr.operands()) {
            args.extend(value.arrays().into_iter().map(|tensor| Arg { tensor, leaf: leaf.clone(), from }));
        }
        let (module, settings) = (self.module, &self.settings);
        let case = Case { module, instr, settings, args, results: results.to_vec() };
        let found = rules::bounds(&case);
        if self.settings.account.has_ended() || found.len() != results.len() {
            return None;
        }
        Some(found.into_iter().map(|leaf| leaf.bounds).collect())
    }
}

/// Where bounds are counted: beside what the replay keeps, of the reference a quarter of the memory and of the
/// engine as much.
fn account(options: &RunOptions) -> Arc<Account> {
    Arc::new(Account::new(options.memory_budget(options.limits.memory_bytes / 2), 1))
}

/// Whether everything that an instruction calls depends on its operands alone, and is executed once wherever
/// it stands.
fn depends_on_operands_alone(module: &Module, id: InstrId) -> bool {
    let mut seen = Vec::new();
    let mut todo = module.instr(id).attrs.called_computations().to_vec();
    while let Some(computation) = todo.pop() {
        if seen.contains(&computation) {
            continue;
        }
        seen.push(computation);
        for id in module.instructions(computation) {
            let instr = module.instr(id);
            let other = instr.opcode.flags().side_effect
                || instr.opcode.flags().collective
                || devices::synchronous(module, instr).is_some()
                || matches!(
                    kind(instr.opcode),
                    Kind::Exchange | Kind::CollectiveFold | Kind::Random | Kind::CustomCall
                )
                || instr.opcode.family() == Family::DeviceNumber
                || matches!(instr.opcode, Opcode::AsyncStart | Opcode::AsyncUpdate | Opcode::AsyncDone);
            if other {
                return false;
            }
            todo.extend(instr.attrs.called_computations());
        }
    }
    true
}

/// Whether an instruction gives the elements of its operands, or what is no operand's; or is a fusion of such
/// instructions and of integers that are computed.
pub fn only_passes_on(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    match instr.attrs.computation(AttrKey::Calls).filter(|_| instr.opcode == Opcode::Fusion) {
        None => passes_on(instr.opcode),
        Some(called) => module.instructions(called).all(|id| {
            let opcode = module.instr(id).opcode;
            let whole = |id: InstrId| {
                let ty = module.instr(id).shape.element_type();
                ty.is_some_and(|ty| ty.is_integer() || ty == ElementType::Pred)
            };
            let computed = matches!(kind(opcode), Kind::Elementwise)
                && whole(id)
                && module.instr(id).operands().iter().all(|&o| whole(o));
            computed || opcode == Opcode::Parameter || passes_on(opcode)
        }),
    }
}

/// Whether an opcode gives the elements of its operands, or what is no operand's.
fn passes_on(opcode: Opcode) -> bool {
    matches!(kind(opcode), Kind::Movement(_))
        || matches!(
            opcode,
            Opcode::Constant
                | Opcode::PartitionId
                | Opcode::ReplicaId
                | Opcode::GetTupleElement
                | Opcode::Tuple
                | Opcode::Bitcast
                | Opcode::OptBarrier
                | Opcode::Domain
                | Opcode::AddDependency
                | Opcode::AfterAll
        )
}
