//! What `hlo run` says of a program's cost.

use hlo::Module;
use hlo::cost::module_cost;
use hlo_opt::passes::loops::trip_count;

use crate::cli::ui::Ui;
use hlo_system::phase::Phases;
use hlo_triage::report;

/// Operations on elements that take the interpreter a minute or more.
const MANY_OPERATIONS: u64 = 100_000_000_000;

/// Says what the program costs: before it runs where that is much, else once it takes long.
pub(super) fn estimate(module: &Module, phases: &Phases, ui: &Ui) {
    let cost = module_cost(module, &|id| trip_count(module, id));
    let operations = report::count(cost.operations);
    let unknown = if cost.unknown_loops { ", one iteration of loops whose number is not known" } else { "" };
    let mut text = format!("about {operations} operations on elements{unknown}");
    if let Some((id, most)) = cost.largest {
        let instr = module.instr(id);
        let share = most as f64 * 100.0 / cost.operations as f64;
        text.push_str(&format!("; {share:.0}% of them in %{}, a {}", instr.name, instr.opcode));
    }
    if cost.operations < MANY_OPERATIONS {
        phases.estimate(text);
    } else if !ui.quiet {
        ui.raw_error(&format!("  ...      this may take long: {text}\n"));
    }
}
