//! The names of XLA's dumps: `module_0001.NAME.0002.PIPELINE.after_PASS.before_PASS.txt`,
//! `module_0001.NAME.before_optimizations.txt`, `module_0001.NAME.cpu_after_optimizations.txt`
//! (`xla/service/dump.cc`). A dump is written only where a pass changed something, and at the beginning of
//! each pipeline. Other files that XLA writes beside them (buffer assignments, LLVM IR, objects, graphs) have
//! other endings.

use std::cmp::Ordering;

/// The kind of a dump.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The program as it was given.
    Before,
    /// After a pass.
    Pass {
        /// Counts the dumps of the module.
        counter: u64,
        /// The pipeline.
        pipeline: String,
        /// The pass that ran, `pipeline-start` at the beginning.
        after: String,
        /// The pass that is next, if the name says.
        before: Option<String>,
    },
    /// The program as it is compiled.
    After,
}

/// A dump's name, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DumpName {
    /// Number of the module.
    pub number: u64,
    /// Name of the module; of an `after_optimizations` file with what the backend put behind it.
    pub module: String,
    /// Its kind.
    pub stage: Stage,
}

impl DumpName {
    /// Takes a file's name apart. `None`: it is no dump of a program.
    pub fn parse(file: &str) -> Option<DumpName> {
        let stem = file.strip_suffix(".txt").or_else(|| file.strip_suffix(".hlo"))?;
        let rest = stem.strip_prefix("module_").or_else(|| {
            // With --xla_dump_include_timestamp the time stands before it.
            let (time, rest) = stem.split_once('.')?;
            digits(time, 6).and_then(|_| rest.strip_prefix("module_"))
        })?;
        let (number, rest) = rest.split_once('.')?;
        let number = digits(number, 1)?;
        let (front, last) = rest.rsplit_once('.')?;
        if last == "before_optimizations" {
            return Some(DumpName { number, module: front.to_owned(), stage: Stage::Before });
        }
        if last.ends_with("after_optimizations") {
            return Some(DumpName { number, module: front.to_owned(), stage: Stage::After });
        }
        // The module's name may have dots and numbers of its own: the counter is the last such part before
        // the pass. Pipelines may be called `after_layout_assignment`.
        let (rest, before) = match rest.rsplit_once(".before_") {
            Some((rest, before)) => (rest, Some(before.to_owned())),
            None => (rest, None),
        };
        let (head, after) = rest.rsplit_once(".after_")?;
        let mut at = head.len();
        while let Some(dot) = head[..at].rfind('.') {
            let part = &head[dot + 1..];
            let (counter, pipeline) = part.split_once('.').unwrap_or((part, ""));
            if let Some(counter) = digits(counter, 4) {
                let stage =
                    Stage::Pass { counter, pipeline: pipeline.to_owned(), after: after.to_owned(), before };
                return Some(DumpName { number, module: head[..dot].to_owned(), stage });
            }
            at = dot;
        }
        None
    }

    /// The order in which they were written.
    pub fn order(&self, other: &DumpName) -> Ordering {
        let key = |n: &DumpName| match &n.stage {
            Stage::Before => (0, 0),
            Stage::Pass { counter, .. } => (1, *counter),
            Stage::After => (2, 0),
        };
        key(self).cmp(&key(other))
    }

    /// For people: `0033 fusion (HLO_passes_after_layout_assignment)`.
    pub fn label(&self) -> String {
        match &self.stage {
            Stage::Before => "before optimizations".to_owned(),
            Stage::Pass { counter, pipeline, after, .. } => format!("{counter:04} {after} ({pipeline})"),
            Stage::After => "after optimizations".to_owned(),
        }
    }

    /// The pass whose work it shows, as far as the name says. At the beginning of a pipeline, and at the end,
    /// the change was made by something between it and the dump before, of which there is none.
    pub fn pass(&self) -> Option<&str> {
        match &self.stage {
            Stage::Pass { after, .. } if after != "pipeline-start" => Some(after),
            Stage::Pass { .. } | Stage::Before | Stage::After => None,
        }
    }
}

/// A number of at least `least` digits.
fn digits(text: &str, least: usize) -> Option<u64> {
    (text.len() >= least && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}
