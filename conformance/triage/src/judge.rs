//! Runs a program and checks its results against recorded ones.
//!
//! **Invariant:** a recorded value counts as different only after both ways to accumulate sums were tried,
//! because records rarely say which one made them.

use hlo::opcode::NumericRow;
use hlo::{ArrayLiteral, Diagnostic, Module};
use hlo_interp::Accumulate;

use crate::check::{Check, Verdict};
use crate::differential::{Difference, Settings, Subject, differ_from};
use crate::feeds::Feeds;
use hlo_engines::engine::{Engine, Finished, Inputs, InterpreterEngine, Outcome, RunOptions};
use hlo_system::exit::{Exit, Failure};

/// The outcome.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The run in the first mode.
    pub finished: Finished,
    /// One for each result, device by device: of the first mode in which it is right, else of the first mode.
    pub verdicts: Vec<Verdict>,
    /// The mode that each verdict is of.
    pub modes: Vec<Accumulate>,
    /// The outfeeds of the devices, in the first mode.
    pub fed_out: Vec<(String, ArrayLiteral)>,
}

impl Judged {
    /// All results are right.
    pub fn passes(&self) -> bool {
        self.verdicts.iter().all(|v| v.pass)
    }

    /// `exact`, `region`, or `mixed` if different results agreed in different modes.
    pub fn mode_name(&self) -> &'static str {
        let region = self.modes.iter().filter(|m| **m == Accumulate::Region).count();
        match region {
            0 => "exact",
            n if n == self.modes.len() => "region",
            _ => "mixed",
        }
    }

    /// The largest distance of any result in representable numbers; `None` if some distance is infinite.
    pub fn max_ulp(&self) -> Option<u64> {
        self.verdicts.iter().try_fold(0, |m: u64, v| Some(m.max(v.comparison.max_ulp?)))
    }

    /// Every result has the recorded bits.
    pub fn bit_exact(&self) -> bool {
        self.verdicts.iter().all(|v| v.comparison.bit_exact())
    }
}

/// Why there is nothing to judge.
#[derive(Clone, Debug)]
pub enum NoVerdict {
    /// The engine gave no results.
    Run(Exit, Box<Diagnostic>),
    /// Inputs or records do not fit the program.
    Failure(Failure),
}

/// The modes to try for a program: both if it has sums, else one.
pub fn modes(module: &Module) -> &'static [Accumulate] {
    let sums = module.computations().iter().flat_map(|&c| module.instructions(c)).any(|i| {
        matches!(
            module.instr(i).opcode.numeric_row(),
            NumericRow::Sum | NumericRow::Region | NumericRow::Opaque
        )
    });
    if sums { &[Accumulate::Exact, Accumulate::Region] } else { &[Accumulate::Exact] }
}

/// A program with its inputs and expectations.
pub struct Judge<'a> {
    /// The engine that runs it.
    pub engine: &'a dyn Engine,
    /// The program.
    pub module: &'a Module,
    /// For each device the arrays of its parameters.
    pub inputs: &'a [Vec<ArrayLiteral>],
    /// The feeds.
    pub feeds: &'a Feeds,
    /// For each device the recorded results.
    pub expected: &'a [Vec<ArrayLiteral>],
    /// One for each result of a device.
    pub checks: &'a [Check],
    /// Devices, limits and seed.
    pub options: RunOptions,
    /// Ways to accumulate, tried in this order.
    pub modes: &'a [Accumulate],
    /// NaNs must have the same bits too.
    pub nan_bits: bool,
}

impl Judge<'_> {
    /// Runs and checks.
    pub fn run(&self) -> Result<Judged, NoVerdict> {
        let Judge { engine, module, inputs, feeds, expected, checks, options, modes, nan_bits } = *self;
        let mut judged: Option<Judged> = None;
        for &mode in modes {
            let host = feeds.host(options.devices).map_err(NoVerdict::Failure)?;
            let arguments = Inputs::new(module, inputs).map_err(NoVerdict::Failure)?;
            let arguments = Inputs { host: host.clone(), ..arguments };
            let outcome =
                engine.run(module, arguments, &RunOptions { accumulate: mode, ..options }).into_results();
            let finished = match (outcome, &judged) {
                (Ok(f), _) => f,
                // The first mode ran: its verdicts stand.
                (Err(_), Some(_)) => break,
                (Err((exit, d)), None) => return Err(NoVerdict::Run(exit, Box::new(d))),
            };
            let wrong = |what: &str, given: usize, wanted: usize| {
                let message = format!("the program gives {given} results{what}, {wanted} are recorded");
                Err(NoVerdict::Failure(Failure::new(Exit::Differs, message)))
            };
            let n = checks.len();
            for (results, expected) in finished.results.iter().zip(expected) {
                if results.len() != expected.len() || results.len() != n {
                    return wrong("", results.len(), expected.len());
                }
            }
            if finished.results.len() != expected.len() {
                return wrong(" for its devices", finished.results.len() * n, expected.len() * n);
            }
            let check = |i: usize| {
                let (device, i) = (i / n, i % n);
                let all: Vec<&ArrayLiteral> = finished.results[device].iter().collect();
                checks[i].check(&expected[device][i], all[i], &inputs[device], &all, nan_bits)
            };
            let count = expected.len() * n;
            match &mut judged {
                None => {
                    let verdicts: Vec<Verdict> = (0..count).map(check).collect();
                    let (modes, fed_out) = (vec![mode; verdicts.len()], host.taken());
                    judged = Some(Judged { modes, verdicts, finished, fed_out });
                }
                Some(judged) => {
                    for i in 0..count {
                        if !judged.verdicts[i].pass {
                            let verdict = check(i);
                            if verdict.pass {
                                judged.verdicts[i] = verdict;
                                judged.modes[i] = mode;
                            }
                        }
                    }
                }
            }
            if judged.as_ref().is_some_and(Judged::passes) {
                break;
            }
        }
        judged.ok_or_else(|| NoVerdict::Failure(Failure::internal("no mode to run in")))
    }

    /// Of this project's compiler: how its results compare with the reference's, where those are what is
    /// recorded. They are what a compiler is held to then: to the bit where that is what HLO says, within
    /// what rounding explains elsewhere. `None`: the record decides.
    pub fn held_to_reference(&self, settings: &Settings) -> Option<Difference> {
        if !self.engine.is_compiler() {
            return None;
        }
        let reference = Judge { engine: &InterpreterEngine, ..*self }.run().ok()?;
        if !reference.passes() {
            return None;
        }
        let host = self.feeds.hosts(self.options.devices).ok()?;
        let subject = Subject { host, ..Subject::new(self.module, self.inputs) };
        Some(differ_from(&Outcome::Finished(reference.finished), self.engine, &subject, settings))
    }
}
