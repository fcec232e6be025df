//! Passes: rewritings of a module, and the pipelines that run them.
//!
//! **Invariants:** what a pass leaves verifies if its input did; a pass asks [`Fuel::take`] before each
//! application, so that a run can end after any number of them and the first bad one can be found by
//! bisection; the instruction that replaces another takes its name and span ([`replace`]), so that results
//! and diagnostics lead back to the text.
//!
//! **Invariant** of the passes that are declared here ([`DECLARED`]): they keep every bit of every result,
//! whatever the inputs, in both modes of `--accumulate`: NaN payloads, signs of zero, denormals. Each
//! rewriting says why. Three facts are behind many of them:
//! - *Arithmetic canonicalizes NaNs, data movement keeps their bits.* So `x * 1` is `x` only where `x` cannot
//!   hold another NaN ([`facts::nan_is_canonical`]).
//! - *How a sum is rounded depends on the text of the computation that a reduction applies*, so nothing is
//!   rewritten in there ([`edit::Survey::folds`]).
//! - *Only `bitcast`, library calls and the entry's result observe layouts*, so a value replaces one with
//!   another layout only where none of these reads it ([`edit::layout_seen`]).
//!
//! Instructions with control edges are not rewritten, except that fusions become calls with the same edges.
//! In modules with run-time sizes only unused instructions are removed.

pub mod edit;
pub mod effects;
pub mod facts;
pub mod loops;

mod algebra;
mod async_call;
mod batch_norm;
mod broadcasts;
mod calls;
mod conditional;
mod constant_folding;
pub mod cse;
mod dce;
mod deduplicate;
mod degenerate_dims;
pub mod dump_names;
mod dynamic_index;
pub mod dynamic_padder;
pub mod fast_math;
mod flatten;
mod gather_scatter;
mod layout_normalization;
mod loop_state;
mod mixed_precision;
mod movement;
mod nans;
pub mod reduce;
mod reduce_order;
mod reshape;
mod shardings;
mod sort;
mod stacks;
mod transpose_folding;
pub mod trip_count;
mod tuples;
mod while_loop;
mod while_motion;
mod while_products;
mod windows;

pub use self::calls::check_size;
pub use self::shardings::annotate as annotate_shardings;

use std::fmt;

use hlo::diag::Diagnostics;
use hlo::{InstrId, Module};
use hlo_threads::cancel;
use rustc_hash::FxHashMap;

use crate::cost_model::CostModel;

/// A rewriting of modules.
pub trait Pass: fmt::Debug + Send + Sync {
    /// Its name, in XLA's style: `algebraic-simplifier`.
    fn name(&self) -> &str;

    /// One sentence that says what it does.
    fn doc(&self) -> &str;

    /// Rewrites the module wherever it applies while `fuel` lasts, with the costs of this machine's
    /// processor. Returns the number of applications.
    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64;

    /// The same with the costs of another target.
    fn run_for(&self, module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
        self.run(module, cx.fuel)
    }
}

/// The context of a pass.
#[derive(Debug)]
pub struct PassCx<'a> {
    /// The applications that are left.
    pub fuel: &'a mut Fuel,
    /// The costs of the target.
    pub cost: &'a CostModel,
}

impl<'a> PassCx<'a> {
    /// With the costs of this machine's processor.
    pub fn cpu(fuel: &'a mut Fuel) -> Self {
        Self { fuel, cost: &CostModel::CPU }
    }
}

/// A declared pass: a row of the list below.
#[derive(Clone, Copy)]
pub struct Declared {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    run: fn(&mut Module, &mut PassCx<'_>) -> u64,
}

/// All passes that keep every bit, by name. One row per pass: name, what it does, the function that does it.
pub const DECLARED: &[Declared] = &[
    Declared {
        name: "algebraic-simplifier",
        doc: "identities of arithmetic, logic and comparisons that keep every bit",
        run: algebra::run,
    },
    Declared {
        name: "async-to-call",
        doc: "calls in the place of asynchronous computations that nobody else takes part in",
        run: async_call::run,
    },
    Declared {
        name: "batch-norm-expander",
        doc: "the steps of batch normalizations, as the interpreter takes them",
        run: batch_norm::run,
    },
    Declared {
        name: "broadcast-simplifier",
        doc: "elementwise work on repeated values done once for each of them",
        run: broadcasts::run,
    },
    Declared {
        name: "call-inliner",
        doc: "the instructions of a called computation in the place of the call",
        run: calls::inline_calls,
    },
    Declared {
        name: "computation-deduplicator",
        doc: "one computation for several that say the same and are applied to elements",
        run: deduplicate::run,
    },
    Declared {
        name: "conditional-simplifier",
        doc: "a call of the only branch that a constant lets run",
        run: conditional::run,
    },
    Declared {
        name: "conditional-to-select",
        doc: "all branches and a selection, where they are cheap",
        run: conditional::selections,
    },
    Declared {
        name: "constant-folding",
        doc: "the value of small instructions on constants, as the interpreter gives it",
        run: constant_folding::run,
    },
    Declared { name: "cse", doc: "one instruction for several that compute the same", run: cse::run },
    Declared { name: "dce", doc: "without what nothing uses", run: dce::run },
    Declared {
        name: "degenerate-dimensions",
        doc: "elementwise work, broadcasts and reductions without dimensions of one element",
        run: degenerate_dims::run,
    },
    Declared {
        name: "dynamic-index-simplifier",
        doc: "slices at constant indices in the place of dynamic ones",
        run: dynamic_index::run,
    },
    Declared {
        name: "dynamic-padder",
        doc: "padded arrays and sizes in the place of arrays with run-time sizes",
        run: dynamic_padder::run,
    },
    Declared {
        name: "elided-constants",
        doc: "their values in the place of constants whose text was elided",
        run: layout_normalization::elided,
    },
    Declared {
        name: "flatten-call-graph",
        doc: "computations that control flow calls from several places, once for each",
        run: flatten::run,
    },
    Declared {
        name: "fusion-wrapper",
        doc: "a fusion around each instruction that a generated kernel computes",
        run: crate::fusion::wrap,
    },
    Declared {
        name: "gather-scatter-simplifier",
        doc: "slices and updates at run-time indices in the place of gathers and scatters of one window, slices in that of gathers of few known columns, choices in that of scatters of one element a row",
        run: gather_scatter::run,
    },
    Declared {
        name: "layout-normalization",
        doc: "reshapes and transpositions in the place of bitcasts, and no layouts",
        run: layout_normalization::run,
    },
    Declared {
        name: "loop-fusion",
        doc: "loops and reductions with their producers in one kernel, and loops that read the same in one",
        run: crate::fusion::fuse_loops,
    },
    Declared {
        name: "map-inliner",
        doc: "elementwise instructions in the place of a map",
        run: calls::inline_maps,
    },
    Declared {
        name: "mixed-precision",
        doc: "conversions where operands or results are floats of other types than what an operation computes in",
        run: mixed_precision::run,
    },
    Declared {
        name: "movement-simplifier",
        doc: "slices, concatenations, padding, broadcasts and reversals that do nothing or undo one another",
        run: movement::run,
    },
    Declared {
        name: "nan-canonicalizer",
        doc: "canonical NaNs after contractions, windows and scans, in programs that look at bits",
        run: nans::run,
    },
    Declared {
        name: "output-fusion",
        doc: "contractions with the elementwise work on their results in one kernel",
        run: crate::fusion::fuse_outputs,
    },
    Declared {
        name: "reduce-simplifier",
        doc: "reductions and windows of one element, dimensions of one element, two exact reductions in a row, stacks that are folded, windows over padding and over what is spread, and one behind the other",
        run: reduce::run,
    },
    Declared {
        name: "reshape-simplifier",
        doc: "reshapes, transpositions, copies, bitcasts and conversions that do nothing or undo one another",
        run: reshape::run,
    },
    Declared {
        name: "row-fusion",
        doc: "reductions of rows with what is made of them for each row in one kernel: softmax, normalizations",
        run: crate::fusion::fuse_rows,
    },
    Declared {
        name: "schedule",
        doc: "an order of instructions that needs little memory, if the module has not been scheduled",
        run: crate::schedule::run,
    },
    Declared {
        name: "sort-simplifier",
        doc: "sorts of lines of one element, without operands that nothing looks at, and of a few elements as networks",
        run: sort::run,
    },
    Declared {
        name: "thin-dot-transposer",
        doc: "small operands of contractions of few terms in the order in which lanes read them",
        run: crate::fusion::transpose_thin_dots,
    },
    Declared {
        name: "transpose-folding",
        doc: "transpositions and widening conversions into the contractions that read or follow them",
        run: transpose_folding::run,
    },
    Declared {
        name: "tuple-simplifier",
        doc: "elements of tuples that were just made, and tuples of all elements of a tuple",
        run: tuples::run,
    },
    Declared {
        name: "unfuse",
        doc: "the instructions of a fusion in its place, or a call of them where control edges, effects or layouts keep them together",
        run: calls::unfuse,
    },
    Declared {
        name: "while-loop-batched-dot",
        doc: "products of what each iteration takes from an array, for all of it at once before the loop, or for many iterations at a time",
        run: while_products::batch,
    },
    Declared {
        name: "while-loop-constant-sinking",
        doc: "constants in loops in the place of values that they carry",
        run: while_motion::sink,
    },
    Declared {
        name: "while-loop-invariant-code-motion",
        doc: "what is the same in every iteration computed once before the loop",
        run: while_motion::hoist,
    },
    Declared {
        name: "while-loop-simplifier",
        doc: "loops that never run or run once, and carried values that nothing looks at",
        run: while_loop::run,
    },
    Declared {
        name: "while-loop-trip-count-annotator",
        doc: "how many iterations a loop makes, in its backend configuration",
        run: trip_count::run,
    },
    Declared {
        name: "while-loop-unroller",
        doc: "the iterations of short loops of little work, one after the other",
        run: while_motion::unroll,
    },
    Declared {
        name: "zero-sized-elimination",
        doc: "constants in the place of arrays without elements",
        run: constant_folding::empty,
    },
];

/// Passes that change bits, for those who ask for them by `--fast-math`; not part of [`DECLARED`].
pub const FAST_MATH: &[Declared] = &[
    Declared {
        name: "decomposition-library",
        doc: "LAPACK's factorizations and decompositions by a library, whose rounding decides signs and pivots",
        run: fast_math::decompositions,
    },
    Declared {
        name: "reassociation",
        doc: "constants that are added or multiplied one after the other combined",
        run: fast_math::reassociate,
    },
    Declared {
        name: "reciprocal-division",
        doc: "products with reciprocals in the place of quotients by repeated values",
        run: fast_math::reciprocal,
    },
];

/// The default pipeline, in order. What was simplified is simplified again after passes that expose more; a
/// pass that would find nothing new does not run again ([`Pipeline::run`]).
pub const DEFAULT: &[&str] = &[
    "call-inliner",
    "map-inliner",
    "tuple-simplifier",
    "zero-sized-elimination",
    "batch-norm-expander",
    "computation-deduplicator",
    "gather-scatter-simplifier",
    "reduce-simplifier",
    "sort-simplifier",
    "dynamic-index-simplifier",
    "algebraic-simplifier",
    "reshape-simplifier",
    "movement-simplifier",
    "broadcast-simplifier",
    "constant-folding",
    "conditional-simplifier",
    "conditional-to-select",
    "while-loop-constant-sinking",
    "while-loop-simplifier",
    "while-loop-unroller",
    "call-inliner",
    "tuple-simplifier",
    "cse",
    "dce",
    "gather-scatter-simplifier",
    "reduce-simplifier",
    "sort-simplifier",
    "dynamic-index-simplifier",
    "algebraic-simplifier",
    "reshape-simplifier",
    "movement-simplifier",
    "broadcast-simplifier",
    "constant-folding",
    "while-loop-constant-sinking",
    "while-loop-batched-dot",
    "while-loop-invariant-code-motion",
    "while-loop-simplifier",
    "tuple-simplifier",
    "cse",
    "dce",
    "gather-scatter-simplifier",
    "reduce-simplifier",
    "sort-simplifier",
    "dynamic-index-simplifier",
    "algebraic-simplifier",
    "reshape-simplifier",
    "movement-simplifier",
    "broadcast-simplifier",
    "constant-folding",
    "tuple-simplifier",
    "cse",
    "dce",
];

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Pass for Declared {
    fn name(&self) -> &str {
        self.name
    }

    fn doc(&self) -> &str {
        self.doc
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        self.run_for(module, &mut PassCx::cpu(fuel))
    }

    fn run_for(&self, module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
        (self.run)(module, cx)
    }
}

/// All declared passes, by name.
pub fn all() -> Vec<Box<dyn Pass>> {
    DECLARED.iter().map(|&d| Box::new(d) as Box<dyn Pass>).collect()
}

/// The declared pass of a name, including those of [`FAST_MATH`].
pub fn by_name(name: &str) -> Option<Box<dyn Pass>> {
    DECLARED.iter().chain(FAST_MATH).find(|d| d.name == name).map(|&d| Box::new(d) as Box<dyn Pass>)
}

/// A budget of applications of passes, as LLVM's `opt-bisect-limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fuel {
    left: Option<u64>,
    taken: u64,
}

impl Fuel {
    /// Unlimited.
    pub const UNLIMITED: Fuel = Fuel { left: None, taken: 0 };

    /// For `n` applications.
    pub fn new(n: u64) -> Fuel {
        Fuel { left: Some(n), taken: 0 }
    }

    /// Takes one application. False: none is left, the rewriting must not be done.
    #[must_use]
    pub fn take(&mut self) -> bool {
        match &mut self.left {
            Some(0) => return false,
            Some(n) => *n -= 1,
            None => {}
        }
        self.taken += 1;
        true
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.left == Some(0)
    }

    /// How many were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

/// The statistics of a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassRun {
    /// Its name.
    pub pass: String,
    /// The number of its applications.
    pub applications: u64,
}

/// No pass has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPass(pub String);

impl fmt::Display for UnknownPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no pass `{}`", self.0)
    }
}

impl std::error::Error for UnknownPass {}

/// The verifier's findings on the module that a pass left.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The pass.
    pub pass: String,
    /// Its index in the pipeline.
    pub step: usize,
    /// What the verifier says.
    pub diagnostics: Diagnostics,
}

/// An observer of the steps of a pipeline: for timing and dumps.
pub trait Steps {
    /// The pass at index `step` is about to run.
    fn before(&mut self, step: usize, pass: &dyn Pass, module: &Module) {
        let _ = (step, pass, module);
    }

    /// The pass left this module, after that many applications.
    fn after(&mut self, step: usize, pass: &dyn Pass, module: &Module, applications: u64) {
        let _ = (step, pass, module, applications);
    }
}

/// Observes nothing.
impl Steps for () {}

/// A sequence of passes.
#[derive(Debug)]
pub struct Pipeline {
    passes: Vec<(Box<dyn Pass>, Option<u64>)>,
    verify: bool,
    cost: &'static CostModel,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self { passes: Vec::new(), verify: false, cost: &CostModel::CPU }
    }
}

impl Pipeline {
    /// The empty pipeline.
    pub fn new() -> Self {
        Self::default()
    }

    /// The passes of [`DEFAULT`].
    pub fn standard() -> Self {
        Self::declared(DEFAULT)
    }

    /// With passes of [`FAST_MATH`] appended, and what cleans up after them. Errors: the first unknown name.
    pub fn with_fast_math<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Result<Self, &'n str> {
        let mut pipeline = self;
        for name in names {
            let pass = FAST_MATH.iter().find(|d| d.name == name).ok_or(name)?;
            pipeline = pipeline.then(Box::new(*pass), None);
        }
        Ok(pipeline.followed_by(Self::declared(&["algebraic-simplifier", "constant-folding", "cse", "dce"])))
    }

    /// With another pass appended, applied at most `fuel` times.
    #[must_use]
    pub fn then(mut self, pass: Box<dyn Pass>, fuel: Option<u64>) -> Self {
        self.passes.push((pass, fuel));
        self
    }

    /// With all passes of another pipeline appended.
    #[must_use]
    pub fn followed_by(mut self, other: Pipeline) -> Self {
        self.passes.extend(other.passes);
        self.verify |= other.verify;
        self
    }

    /// For a target with these costs.
    #[must_use]
    pub fn with_cost(mut self, cost: &'static CostModel) -> Self {
        self.cost = cost;
        self
    }

    /// The passes of these names. Errors: the first unknown one.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, UnknownPass> {
        names.into_iter().try_fold(Self::new(), |pipeline, name| {
            let pass = by_name(name).ok_or_else(|| UnknownPass(name.to_owned()))?;
            Ok(pipeline.then(pass, None))
        })
    }

    /// The passes of a list that is declared here.
    pub fn declared(names: &[&str]) -> Self {
        Self::of(names.iter().copied())
            .expect("invariant: a test goes through the lists of passes that are declared")
    }

    /// With the verifier after every pass.
    #[must_use]
    pub fn verified(mut self) -> Self {
        self.verify = true;
        self
    }

    /// Whether it ends with these passes, without a limit on them.
    pub fn ends_with(&self, names: &[&str]) -> bool {
        let last = self.passes.iter().rev().map(|(pass, fuel)| fuel.is_none().then(|| pass.name()));
        self.passes.len() >= names.len()
            && names.iter().rev().map(|&name| Some(name)).eq(last.take(names.len()))
    }

    /// Limits each step whose pass has this name to `fuel` applications. Returns whether there is one.
    pub fn limit(&mut self, name: &str, fuel: u64) -> bool {
        let mut found = false;
        for (_, limit) in self.passes.iter_mut().filter(|(pass, _)| pass.name() == name) {
            *limit = Some(fuel);
            found = true;
        }
        found
    }

    /// The passes.
    pub fn passes(&self) -> impl ExactSizeIterator<Item = &dyn Pass> {
        self.passes.iter().map(|(pass, _)| &**pass)
    }

    /// Runs all passes, except those that found nothing the last time and would see the same module again;
    /// `fuel` is shared by all. Errors: the first pass whose module does not verify, if that is checked.
    pub fn run(&self, module: &mut Module, fuel: &mut Fuel) -> Result<Vec<PassRun>, Broken> {
        self.run_watched(module, fuel, &mut ())
    }

    /// The same, with an observer.
    pub fn run_watched(
        &self,
        module: &mut Module,
        fuel: &mut Fuel,
        steps: &mut dyn Steps,
    ) -> Result<Vec<PassRun>, Broken> {
        self.run_checked(module, fuel, steps, self.verify)
    }

    /// The same; the caller says whether the module is verified after every pass.
    pub fn run_checked(
        &self,
        module: &mut Module,
        fuel: &mut Fuel,
        steps: &mut dyn Steps,
        verify: bool,
    ) -> Result<Vec<PassRun>, Broken> {
        let mut ran = Vec::with_capacity(self.passes.len());
        // The number of applications when a pass last found nothing: it is skipped until there are more.
        let mut settled: FxHashMap<&str, u64> = FxHashMap::default();
        let mut applications = 0;
        for step in 0..self.passes.len() {
            let name = self.passes[step].0.name();
            if settled.get(name) == Some(&applications) {
                ran.push(PassRun { pass: name.to_owned(), applications: 0 });
                continue;
            }
            let run = self.step_checked(step, module, fuel, steps, verify)?;
            applications += run.applications;
            if run.applications == 0 {
                settled.insert(name, applications);
            }
            ran.push(run);
        }
        Ok(ran)
    }

    /// Runs the pass at index `step` alone. Errors: as [`Pipeline::run`].
    pub fn step(
        &self,
        step: usize,
        module: &mut Module,
        fuel: &mut Fuel,
        steps: &mut dyn Steps,
    ) -> Result<PassRun, Broken> {
        self.step_checked(step, module, fuel, steps, self.verify)
    }

    fn step_checked(
        &self,
        step: usize,
        module: &mut Module,
        fuel: &mut Fuel,
        steps: &mut dyn Steps,
        verify: bool,
    ) -> Result<PassRun, Broken> {
        cancel::poll();
        let (pass, limit) = &self.passes[step];
        // A pass draws on its own fuel and on the shared fuel.
        let limit = [*limit, fuel.left].into_iter().flatten().min();
        let mut own = limit.map_or(Fuel::UNLIMITED, Fuel::new);
        steps.before(step, &**pass, module);
        let applications = pass.run_for(module, &mut PassCx { fuel: &mut own, cost: self.cost });
        steps.after(step, &**pass, module, applications);
        debug_assert_eq!(applications, own.taken(), "{} counts otherwise than its fuel", pass.name());
        fuel.left = fuel.left.map(|n| n - own.taken());
        fuel.taken += own.taken();
        if verify {
            let diagnostics = hlo::verify::verify(module);
            if diagnostics.has_errors() {
                return Err(Broken { pass: pass.name().to_owned(), step, diagnostics });
            }
        }
        Ok(PassRun { pass: pass.name().to_owned(), applications })
    }
}

/// Replaces `old` by `new` in every operand and as root, with its name and span. `old` is removed unless
/// something keeps it (a parameter, a side effect).
pub fn replace(module: &mut Module, old: InstrId, new: InstrId) {
    if old == new {
        return;
    }
    module.replace_all_uses(old, new);
    let (name, span) = (module.instr(old).name.clone(), module.instr(old).span);
    let opcode = module.instr(old).opcode;
    let kept = opcode.flags().side_effect && !effects::is_pure_call(module, old);
    if kept || opcode == hlo::Opcode::Parameter {
        module.instr_mut(new).span = span;
        return;
    }
    module.remove(old);
    let new = module.instr_mut(new);
    (new.name, new.span) = (name, span);
}

/// Replaces `old` everywhere by what `make` builds from it, but not in what was built: the new instruction
/// takes name and span, and `old` another name. Nothing happens if `make` gives `None`.
pub fn wrap(
    module: &mut Module,
    old: InstrId,
    make: impl FnOnce(&mut Module) -> Option<InstrId>,
) -> Option<InstrId> {
    let users = module.users(old).to_vec();
    let parent = module.instr(old).parent();
    let was_root = module.root(parent) == old;
    let new = make(module)?;
    for u in users {
        module.set_operand(u.user, u.operand as usize, new);
    }
    if was_root {
        module.set_root(parent, new);
    }
    let (name, span) = (module.instr(old).name.clone(), module.instr(old).span);
    let other = module.unique_name(&name);
    module.instr_mut(old).name = other;
    let new_instr = module.instr_mut(new);
    (new_instr.name, new_instr.span) = (name, span);
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_the_default_is_made_of_them() {
        assert!(DECLARED.windows(2).all(|w| w[0].name < w[1].name));
        assert_eq!(Pipeline::standard().passes().len(), DEFAULT.len());
        assert!(by_name("nothing").is_none());
        assert_eq!(Pipeline::of(["dce", "no-pass"]).unwrap_err(), UnknownPass("no-pass".to_owned()));
    }
}
