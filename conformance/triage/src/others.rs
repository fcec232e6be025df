//! Other runs of the reference that an engine may do: with denormal numbers flushed, and rewritten as its liberties permit.
//!
//! Bounds around the reference say what decisions may come to if they fall otherwise, and often that is anything: the order of a fold, a comparison that hangs on a rounding which
//! excess precision leaves out, a pole at a denormal number. A run that takes a liberty throughout decides as an engine does that takes it,
//! and has bounds of its own. It is a permitted run, so what it gives, or is within its soft bounds, is explained.
//!
//! **Invariants:** a run takes liberties that are granted and no others; nothing is called wrong for what one says; none is made before it is asked for.

use std::collections::VecDeque;

use hlo::Module;
use hlo_opt::passes::Fuel;

use crate::differential::{Settings, Subject};
use hlo_certify::bounds::{Certified, certify_flushed, certify_within};
use hlo_engines::engine::{Allowances, RunOptions};
use hlo_engines::variants;

/// Elements whose bounds are worked out in a run of a rewritten program: what takes more is left out.
const MOST_ELEMENTS: u64 = 1 << 20;

/// The runs, one after the other.
pub(crate) struct Others<'a> {
    subject: &'a Subject<'a>,
    allowances: Allowances,
    pending: VecDeque<Run>,
}

/// One of them.
struct Run {
    /// What is run; `None`: the program itself.
    module: Option<Module>,
    options: RunOptions,
    flushed: bool,
}

impl<'a> Others<'a> {
    pub(crate) fn new(subject: &'a Subject<'a>, settings: &Settings, allowances: Allowances) -> Self {
        let mut pending = VecDeque::new();
        let own = Run { module: None, options: settings.run, flushed: true };
        pending.extend(allowances.flush_denormals.then_some(own));
        // Functions that are off by units in the last place are within bounds, and flushing has a run of its own.
        let taken = |of: Allowances| {
            of != Allowances::STRICT && !of.flush_denormals && of.or(allowances) == allowances
        };
        for variant in variants::all().into_iter().filter(|v| taken(v.allowances)) {
            let mut module = subject.module.clone();
            let mut fuel = Fuel::UNLIMITED;
            let applied = variant.pass.run(&mut module, &mut fuel);
            if applied == 0 || hlo::verify::verify(&module).has_errors() {
                continue;
            }
            let options = RunOptions {
                accumulate: variant.accumulate.unwrap_or(settings.run.accumulate),
                ..settings.run
            };
            let again = allowances.flush_denormals.then(|| Run {
                module: Some(module.clone()),
                options,
                flushed: true,
            });
            pending.push_back(Run { module: Some(module), options, flushed: false });
            pending.extend(again);
        }
        Others { subject, allowances, pending }
    }
}

impl Iterator for Others<'_> {
    type Item = Certified;

    /// The next run that ends with results.
    fn next(&mut self) -> Option<Certified> {
        loop {
            let Run { module, options, flushed } = self.pending.pop_front()?;
            // The program itself has been worked out already, however large it is.
            let most = if module.is_some() { MOST_ELEMENTS } else { u64::MAX };
            let module = module.as_ref().unwrap_or(self.subject.module);
            let Ok(inputs) = self.subject.inputs() else { continue };
            let run = if flushed {
                certify_flushed(module, inputs, &options, self.allowances, most)
            } else {
                certify_within(module, inputs, &options, self.allowances, &mut (), most)
            };
            if let Ok(Some(certified)) = run {
                return Some(certified);
            }
        }
    }
}
