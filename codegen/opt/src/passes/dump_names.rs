//! Names of dumps after passes, as XLA's are (`xla/service/dump.cc`): which passes are dumped, in which
//! order, and between which others.

use hlo::print::file_name;

use super::Pass;

/// The names of the dumps of one run of a pipeline.
#[derive(Debug, Default)]
pub struct DumpNames {
    /// The pipeline's passes.
    passes: Vec<String>,
    /// Dumps so far.
    count: u32,
}

impl DumpNames {
    /// Of a pipeline of passes of these names.
    pub fn new(passes: impl IntoIterator<Item = String>) -> Self {
        Self { passes: passes.into_iter().collect(), count: 0 }
    }

    /// The name of the dump before the pass at index `step`, if there is one: of what the pipeline starts
    /// with. `wants` says whether the dump after a pass of a name is wanted.
    pub fn before(&mut self, step: usize, pass: &dyn Pass, wants: impl Fn(&str) -> bool) -> Option<String> {
        const START: &str = "pipeline-start";
        (step == 0 && wants(START)).then(|| self.name(START, pass.name()))
    }

    /// The name of the dump after the pass at index `step`, if there is one: it has changed something.
    pub fn after(
        &mut self,
        step: usize,
        pass: &dyn Pass,
        applications: u64,
        wants: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let next = self.passes.get(step + 1).map_or("pipeline-end", String::as_str).to_owned();
        (applications > 0 && wants(pass.name())).then(|| self.name(pass.name(), &next))
    }

    fn name(&mut self, after: &str, before: &str) -> String {
        let name =
            format!("{:04}.passes.after_{}.before_{}", self.count, file_name(after), file_name(before));
        self.count += 1;
        name
    }
}
