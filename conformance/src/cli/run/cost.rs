//! What `hlo run` says of a program's cost.

use hlo::Module;
use hlo::cost::module_cost;
use hlo_opt::passes::loops::trip_count;

use crate::cli::ui::Ui;
use hlo_system::phase::Phases;
use hlo_triage::report;

/// Operations on elements that take the interpreter a minute or more.
const MANY_OPERATIONS: u64 = 100_000_000_000;

/// Fewer take no time: of these no instruction is worth a name.
const FEW_OPERATIONS: u64 = 1_000_000;

/// Says what the program costs: before it runs where that is much, else once it takes long.
pub(super) fn estimate(module: &Module, phases: &Phases, ui: &Ui) {
    let cost = module_cost(module, &|id| trip_count(module, id));
    let operations = report::count(cost.operations);
    let mut text = format!("about {operations} operations on elements");
    if cost.unknown_loops {
        text.push_str(", with one iteration of each loop whose number of iterations is not known");
    }
    if let Some((id, most)) = cost.largest.filter(|_| cost.operations >= FEW_OPERATIONS) {
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
