//! Where the time of a program goes: stages of its compilation, steps of its runs.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use hlo_triage::report;

/// Times of stages and steps, the longest first. The names of fields are stable: docs/compiler.md.
#[derive(Serialize)]
pub(super) struct Profile {
    /// The peak rates of this machine.
    pub(super) gb_per_s: f64,
    pub(super) gflop_per_s: f64,
    /// The microarchitecture that library calls are tuned for.
    pub(super) tuned_for: &'static str,
    pub(super) compile: Vec<Stage>,
    pub(super) steps: Vec<Step>,
}

/// A stage of compilation.
#[derive(Serialize)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) us: f64,
}

/// A step of a run. What a loop or branch holds is counted there.
#[derive(Serialize)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// Its strategy: docs/compiler.md has a line for each.
    pub(super) strategy: String,
    /// All its executions in a run together: the median over runs.
    pub(super) us: f64,
    pub(super) count: u64,
    pub(super) gb_per_s: f64,
    pub(super) gflop_per_s: f64,
    /// Of weights that were packed when the program was loaded.
    pub(super) packed_bytes: u64,
}

impl Step {
    /// Whether the time of other steps is in its own.
    fn holds_others(&self) -> bool {
        matches!(self.kind, "while" | "conditional")
    }
}

/// Steps shown as text; all are in JSON.
const MAX_SHOWN_STEPS: usize = 40;

impl Profile {
    /// As a table, with shares of the whole and of what the machine could do at most.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write_stages(&mut text);
        self.write_steps(&mut text);
        text.truncate(text.trim_end().len());
        text
    }

    fn write_stages(&self, text: &mut String) {
        let total: f64 = self.compile.iter().map(|s| s.us).sum();
        let _ = writeln!(text, "compilation {}", time(total));
        for Stage { name, us } in self.compile.iter().filter(|s| s.us * 100.0 > total) {
            let _ = writeln!(text, "  {:>9} {:5.1}%  {name}", time(*us), us / total * 100.0);
        }
    }

    fn write_steps(&self, text: &mut String) {
        let Self { gb_per_s: gb, gflop_per_s: gflop, tuned_for, .. } = self;
        let _ = writeln!(
            text,
            "steps of a run; this machine: {gb:.1} GB/s, {gflop:.0} GFLOP/s; library calls are tuned for {tuned_for}"
        );
        let packed: Vec<u64> = self.steps.iter().map(|s| s.packed_bytes).filter(|&bytes| bytes > 0).collect();
        if !packed.is_empty() {
            let (count, bytes) = (packed.len(), report::bytes(packed.iter().sum()));
            let _ =
                writeln!(text, "weights of {count} steps were packed when the program was loaded: {bytes}");
        }
        let all: f64 = self.steps.iter().filter(|s| !s.holds_others()).map(|s| s.us).sum();
        let _ = writeln!(text, "       time  share   count      GB/s  GFLOP/s  limit  step");
        for step in self.steps.iter().take(MAX_SHOWN_STEPS) {
            let _ = writeln!(
                text,
                "  {:>9} {:5.1}% {:7} {:9.2} {:8.2}  {}  {} {}{}",
                time(step.us),
                step.us / all.max(1e-3) * 100.0,
                step.count,
                step.gb_per_s,
                step.gflop_per_s,
                limit(step.gb_per_s / gb, step.gflop_per_s / gflop),
                step.kind,
                step.name,
                if step.strategy.is_empty() { String::new() } else { format!("  ({})", step.strategy) }
            );
        }
    }
}

/// The larger share of the peak rates of memory and arithmetic; `cache` above the rate of memory.
fn limit(bytes: f64, arithmetic: f64) -> String {
    if bytes > 1.0 && bytes >= arithmetic {
        return "cache".to_owned();
    }
    format!("{:4.0}%", bytes.max(arithmetic).min(1.0) * 100.0)
}

fn time(us: f64) -> String {
    report::time(Duration::from_secs_f64(us / 1e6))
}
