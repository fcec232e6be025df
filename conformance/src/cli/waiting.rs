//! Lines for people who wait: what a command is doing, once it has taken longer than [`FIRST_NOTICE_AFTER`].
//!
//! **Invariant:** lines go to standard error, at doubling intervals, so that a log of an hour holds a dozen
//! of them; nothing is written when quiet, nor after the work has ended.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ui::Ui;
use hlo_system::phase::{Phase, Phases};

/// When the first line comes.
const FIRST_NOTICE_AFTER: Duration = Duration::from_secs(2);
/// The most time between two lines: who waits sees that it goes on.
const MOST_BETWEEN: Duration = Duration::from_secs(16);
/// How much longer than its phase a command has to last for both to be told.
const TOLD_APART: Duration = Duration::from_secs(2);
/// When it is said what can be done about it.
const HINT_AFTER: Duration = Duration::from_secs(8);

/// Tells of the phases of a command while it lives.
pub(crate) struct Waiting {
    ended: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Begins. Without a thread for it nothing is told.
    pub(crate) fn new(ui: &Ui, phases: &Arc<Phases>) -> Waiting {
        if ui.quiet {
            return Waiting { ended: None, thread: None };
        }
        let (ended, end) = channel::<()>();
        let (ui, phases) = (*ui, phases.clone());
        let tell = move || {
            let start = Instant::now();
            let mut next = FIRST_NOTICE_AFTER;
            let mut hinted: Vec<&str> = Vec::new();
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(next.saturating_sub(start.elapsed()))
            {
                let Some((phase, spent)) = phases.current() else {
                    // Between phases: soon there is another one.
                    next = start.elapsed() + Duration::from_millis(100);
                    continue;
                };
                let total = start.elapsed();
                let mut line = format!("  ...      {}: {} s", phase.describe(), spent.as_secs());
                if total.saturating_sub(spent) >= TOLD_APART {
                    line.push_str(&format!(" of {} s", total.as_secs()));
                }
                let hint = hint(phase);
                if start.elapsed() >= HINT_AFTER && !hint.is_empty() && !hinted.contains(&hint) {
                    line.push_str(&format!("   ({hint})"));
                    hinted.push(hint);
                }
                // Before a program runs, what it costs explains nothing.
                let runs = !matches!(phase, Phase::Read | Phase::Inputs | Phase::Compile);
                if let Some(cost) = runs.then(|| phases.take_estimate()).flatten() {
                    line.push_str(&format!("   ({cost})"));
                }
                ui.raw_error(&format!("{line}\n"));
                next = following(start.elapsed());
            }
        };
        let thread = std::thread::Builder::new().name("hlo-waiting".into()).spawn(tell).ok();
        Waiting { ended: Some(ended), thread }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.ended.take());
        // The thread writes lines and ends: it has nothing to say of how.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// When a line is followed by the next one: after twice the time, but not much later.
fn following(elapsed: Duration) -> Duration {
    elapsed + elapsed.min(MOST_BETWEEN)
}

/// Advice for a phase that takes long.
fn hint(phase: Phase) -> &'static str {
    match phase {
        Phase::Read | Phase::Inputs | Phase::Compile | Phase::Alone => "",
        Phase::Passes => "`--fuel N` ends a program that does not end by itself, `--timeout` the command",
        Phase::Reference => {
            "`--reference-platform none` runs without a reference, `--fuel N` ends a program that does not end by itself"
        }
        Phase::Run => "`--fuel N` ends a program that does not end by itself",
        Phase::Bounds | Phase::Replay => {
            "`--reference-platform none` runs without judging, `--max-ulp N` compares without bounds"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_less_often_but_never_rarely() {
        let seconds = Duration::from_secs;
        for (elapsed, next) in [(2, 4), (8, 16), (16, 32), (32, 48), (1000, 1016)] {
            assert_eq!(following(seconds(elapsed)), seconds(next));
        }
    }
}
