//! Other runs of the reference that an engine may do: with denormal numbers flushed, and rewritten as its
//! liberties permit.
//!
//! Bounds around the reference say what decisions may come to if they fall otherwise, and often that is
//! anything: the order of a fold, a comparison that depends on a rounding which excess precision leaves out,
//! a pole at a denormal number. A run that takes a liberty throughout decides as an engine does that takes
//! it, and has bounds of its own. It is a permitted run, so what it gives, or is within its soft bounds, is
//! explained.
//!
//! A compiler that has no kernel for an operation writes it out wherever it stands, and takes its other
//! liberties in what comes of that: so operations with several steps are written out alone and all together,
//! these also with excess precision, with reciprocals and with contraction.
//!
//! **Invariants:** a run takes liberties that are granted and no others; nothing is called wrong for what one
//! says; none is made before it is asked for.

use std::collections::VecDeque;

use hlo::{ArrayLiteral, Module};
use hlo_interp::Accumulate;
use hlo_opt::passes::{Fuel, Pass};

use crate::differential::{Settings, Subject};
use hlo_certify::bounds::{Bounds, Certified, certify_flushed, certify_within};
use hlo_engines::engine::{Allowances, Engine, InterpreterEngine, Limits, RunOptions};
use hlo_engines::variants::expansions::Expansion;
use hlo_engines::variants::flush::{FlushFolds, FlushRegions};
use hlo_engines::variants::initial_values::InitialValues;
use hlo_engines::variants::scales::{Scales, ScalesInScans};
use hlo_engines::variants::sums::normalize_products;
use hlo_engines::variants::{self, Variant};

/// Elements whose bounds are worked out in a run of a rewritten program: what takes more is left out.
const MAX_ELEMENTS: u64 = 1 << 20;

/// Instructions that are executed in a run without bounds, at most.
const MOST_INSTRUCTIONS: u64 = 1 << 16;

/// Rewritings that are done together, by their names.
const TOGETHER: [[Expansion; 4]; 2] = [
    [Expansion::Normalization, Expansion::Factorization, Expansion::Transform, Expansion::Selection],
    [Expansion::Normalization, Expansion::Factorization, Expansion::Transform, Expansion::SelectionByColumns],
];

/// The runs, one after the other.
pub(crate) struct Others<'a> {
    subject: &'a Subject<'a>,
    allowances: Allowances,
    /// The program for runs that round sums step by step, if it is not the program itself: products that would
    /// be rounded so in a narrower type than what is granted are in the type that is.
    normalized: Option<Module>,
    pending: VecDeque<Run>,
}

/// One of them.
struct Run {
    /// The module that is run; `None`: the program itself.
    module: Option<Module>,
    options: RunOptions,
    flushed: bool,
    /// The liberties of the bounds.
    allowances: Allowances,
    /// The maximum number of elements whose bounds are worked out.
    most: u64,
}

/// The same liberties without one of them, and none but functions. An engine need not take what it is
/// granted, and where a liberty leaves nothing known, bounds without it may say what it gives.
fn stricter(granted: Allowances) -> Vec<Allowances> {
    let mut all = vec![
        Allowances { flush_denormals: false, ..granted },
        Allowances { excess_precision: false, ..granted },
        Allowances { reciprocals: false, ..granted },
        Allowances { reorder_regions: false, ..granted },
        Allowances { functions: granted.functions, ..Allowances::STRICT },
    ];
    all.dedup();
    all.retain(|of| *of != granted);
    all
}

impl<'a> Others<'a> {
    pub(crate) fn new(subject: &'a Subject<'a>, settings: &Settings, allowances: Allowances) -> Self {
        let normalized = || {
            let mut module = subject.module.clone();
            let applied = normalize_products(&mut module);
            (applied > 0 && !hlo::verify::verify(&module).has_errors()).then_some(module)
        };
        let normalized = if allowances.narrow_products { None } else { normalized() };
        let mut others = Others { subject, allowances, normalized, pending: VecDeque::new() };
        if allowances.flush_denormals {
            others.flushed(None, settings.run);
            others.rewritten(&[&FlushFolds], &[], None, settings);
            others.rewritten(&[&FlushRegions], &[], None, settings);
            // What is computed in f32 flushes there.
            if allowances.narrow_accumulator {
                others.rewritten(&[&ScalesInScans], &[Some(&FlushRegions)], None, settings);
            }
        }
        if allowances.initial_values {
            let narrow = allowances.narrow_accumulator.then_some(Some(Accumulate::Region));
            for accumulate in [Some(None), narrow].into_iter().flatten() {
                others.rewritten(&[&InitialValues::EachWindow], &[], accumulate, settings);
                others.rewritten(&[&InitialValues::EachOperand], &[], accumulate, settings);
                let alone: [Option<&dyn Pass>; 1] = [Some(&InitialValues::None)];
                others.rewritten(&[&InitialValues::EachOperand], &alone, accumulate, settings);
            }
        }
        for allowances in stricter(allowances) {
            let own =
                Run { module: None, options: settings.run, flushed: false, allowances, most: MAX_ELEMENTS };
            others.pending.push_back(own);
        }
        // Sums literally, each step rounded in the type of the accumulator.
        if allowances.narrow_accumulator && settings.run.accumulate != Accumulate::Region {
            let options = RunOptions { accumulate: Accumulate::Region, ..settings.run };
            others.ask(others.normalized.clone(), options);
        }
        // Functions that are off by units in the last place are within bounds, and flushing has a run of its
        // own.
        let taken = |variant: &Variant| {
            // Products that they would accumulate in a narrower type are normalized first.
            let of = Allowances { narrow_products: false, ..variant.allowances };
            let ulps = variant.pass.name().starts_with("ulp-");
            !ulps && !of.flush_denormals && of.or(allowances) == allowances
        };
        let all: Vec<Variant> = variants::all().into_iter().filter(taken).collect();
        for variant in &all {
            others.rewritten(&[&*variant.pass], &[], variant.accumulate, settings);
        }
        let by_name = |name: &str| -> Option<&dyn Pass> {
            all.iter().find(|v| v.pass.name() == name).map(|v| &*v.pass)
        };
        let steps_of = |together: &[Expansion]| -> Vec<&dyn Pass> {
            together.iter().filter_map(|step| by_name(step.name())).collect()
        };
        let mut lists = TOGETHER.map(|together| steps_of(&together)).to_vec();
        // Where nothing is narrow, the same lists behind the widening would give the same programs again.
        let widening = by_name(Expansion::Widened.name()).filter(|pass| {
            let mut module = subject.module.clone();
            pass.run(&mut module, &mut { Fuel::UNLIMITED }) > 0
        });
        if let Some(widening) = widening {
            lists.extend(TOGETHER.map(|together| [vec![widening], steps_of(&together)].concat()));
        }
        let region = allowances.narrow_accumulator.then_some(Accumulate::Region);
        for steps in &lists {
            if steps.len() > 1 {
                others.rewritten(steps, &[], region, settings);
            }
            // Means divide by what repeats numbers.
            let [excess, reciprocals, fma] = ["excess", "reciprocals", "fma"].map(by_name);
            others.rewritten(steps, &[excess], region, settings);
            others.rewritten(steps, &[reciprocals], region, settings);
            others.rewritten(steps, &[reciprocals, excess], region, settings);
            others.rewritten(steps, &[fma], region, settings);
            others.rewritten(steps, &[reciprocals, fma], region, settings);
        }
        others
    }

    /// Asks for runs of the program after some rewritings and others besides, flushed and not, if at least
    /// one of the former applies and all of the latter do: `None` is one that is not granted.
    fn rewritten(
        &mut self,
        passes: &[&dyn Pass],
        besides: &[Option<&dyn Pass>],
        accumulate: Option<Accumulate>,
        settings: &Settings,
    ) {
        let accumulate = accumulate.unwrap_or(settings.run.accumulate);
        let normalized = self.normalized.as_ref().filter(|_| accumulate == Accumulate::Region);
        let mut module = normalized.unwrap_or(self.subject.module).clone();
        let mut run = |pass: &dyn Pass| pass.run(&mut module, &mut { Fuel::UNLIMITED });
        let applied: u64 = passes.iter().map(|&pass| run(pass)).sum();
        if applied == 0 || !besides.iter().all(|pass| pass.is_some_and(|pass| run(pass) > 0)) {
            return;
        }
        if hlo::verify::verify(&module).has_errors() {
            return;
        }
        self.ask(Some(module), RunOptions { accumulate, ..settings.run });
    }

    /// Asks for a run, and for the same with denormal numbers flushed.
    fn ask(&mut self, module: Option<Module>, options: RunOptions) {
        let again = self.allowances.flush_denormals.then(|| module.clone());
        let (allowances, most) = (self.allowances, MAX_ELEMENTS);
        self.pending.push_back(Run { module, options, flushed: false, allowances, most });
        if let Some(module) = again {
            self.flushed(module, options);
        }
    }

    /// Asks for a run with denormal numbers flushed. `f8e8m0fnu` has no zero: it is computed in f32 there.
    fn flushed(&mut self, module: Option<Module>, options: RunOptions) {
        let mut scaled = module.as_ref().unwrap_or(self.subject.module).clone();
        let applied = Scales.run(&mut scaled, &mut { Fuel::UNLIMITED });
        let module =
            if applied > 0 && !hlo::verify::verify(&scaled).has_errors() { Some(scaled) } else { module };
        // The program itself has been worked out already, however large it is.
        let most = if module.is_some() { MAX_ELEMENTS } else { u64::MAX };
        self.pending.push_back(Run { module, options, flushed: true, allowances: self.allowances, most });
    }
}

impl Others<'_> {
    /// What a run gives, if a small program: elements that have the same bits are explained by it, and no
    /// others.
    fn without_bounds(&self, module: &Module, options: &RunOptions) -> Option<Certified> {
        let instructions = || module.computations().iter().flat_map(|&c| module.instructions(c));
        let elements = |id: hlo::InstrId| -> u64 {
            let leaves = module.instr(id).shape.leaves();
            leaves.iter().filter_map(|leaf| leaf.as_array()?.checked_elements()).map(|n| n as u64).sum()
        };
        if instructions().map(elements).fold(0, u64::saturating_add) > MAX_ELEMENTS {
            return None;
        }
        let fuel = options.limits.fuel.unwrap_or(MOST_INSTRUCTIONS).min(MOST_INSTRUCTIONS);
        let limits = Limits { fuel: Some(fuel), ..options.limits };
        let inputs = self.subject.inputs().ok()?;
        let outcome = InterpreterEngine.run(module, inputs, &RunOptions { limits, ..*options });
        let results = outcome.into_results().ok()?.results;
        let exact = |of: Vec<ArrayLiteral>| of.into_iter().map(|a| (a, Bounds::default())).collect();
        Some(Certified { results: results.into_iter().map(exact).collect() })
    }
}

impl Iterator for Others<'_> {
    type Item = Certified;

    /// The next run that ends with results.
    fn next(&mut self) -> Option<Certified> {
        loop {
            let Run { module, options, flushed, allowances, most } = self.pending.pop_front()?;
            let module = module.as_ref().unwrap_or(self.subject.module);
            let Ok(inputs) = self.subject.inputs() else { continue };
            let run = if flushed {
                certify_flushed(module, inputs, &options, allowances, most)
            } else {
                certify_within(module, inputs, &options, allowances, &mut (), most)
            };
            match run {
                Ok(Some(certified)) => return Some(certified),
                // Bounds take more than that: what it gives is known without them.
                Ok(None) if !flushed => {
                    if let Some(certified) = self.without_bounds(module, &options) {
                        return Some(certified);
                    }
                }
                Ok(None) | Err(_) => {}
            }
        }
    }
}
