//! Watching a run of the interpreter: traces, statistics, and the value of one instruction.
//!
//! **Invariants:** watching changes no result; what is written of one device does not depend on the others or
//! on threads. Instructions of computations that are applied to elements (reducers, comparators) are not
//! watched one by one: they have as many values as there are elements.

pub mod diff;
pub mod stats;
pub mod stop;
pub mod summary;
pub mod trace;

use hlo_interp::Value;
use hlo_interp::observe::{Flow, Observer, Site};

/// Several observers as one. Stopping wins over going on.
#[derive(Debug, Default)]
pub struct Watchers {
    /// Times and counts; first, so that it does not time the others.
    pub stats: Option<stats::Stats>,
    /// Writes values.
    pub trace: Option<trace::Recorder>,
    /// Ends the run.
    pub stop: Option<stop::StopAt>,
}

impl Watchers {
    fn each(&self) -> impl Iterator<Item = &dyn Observer> {
        let stats = self.stats.as_ref().map(|o| o as &dyn Observer);
        let trace = self.trace.as_ref().map(|o| o as &dyn Observer);
        let stop = self.stop.as_ref().map(|o| o as &dyn Observer);
        [stats, trace, stop].into_iter().flatten()
    }
}

impl Observer for Watchers {
    fn enter(&self, site: &Site<'_>, operands: &[Value]) {
        if site.nesting == 0 {
            self.each().for_each(|o| o.enter(site, operands));
        }
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.nesting > 0 {
            return Flow::Continue;
        }
        self.each().fold(Flow::Continue, |flow, o| match (o.leave(site, result), flow) {
            (Flow::Continue, before) => before,
            (new @ (Flow::Replace(_) | Flow::Stop), _) => new,
        })
    }
}
