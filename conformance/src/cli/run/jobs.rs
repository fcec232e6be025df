//! What `hlo run` runs: a file, or the programs of the folder of a case or a finding.

use std::path::Path;

use super::Options;
use hlo_system::exit::Failure;
use hlo_triage::artifact;
use hlo_triage::case::{Case, Form};

/// One program and where its inputs and expected results come from.
pub(super) struct Job {
    pub(super) program: String,
    pub(super) inputs: Option<String>,
    pub(super) expected: Option<String>,
    pub(super) case: Option<Case>,
    /// Of a folder of a finding: how to repeat it.
    pub(super) finding: Option<artifact::Finding>,
}

/// Whether a path is a folder that is no case and no finding.
pub(super) fn is_folder_of_programs(path: &str) -> bool {
    let folder = Path::new(path);
    let own = ["module.hlo", "optimized.hlo"].iter().any(|name| folder.join(name).is_file());
    path != "-" && folder.is_dir() && !Case::is_at(folder) && !artifact::is_at(folder) && !own
}

/// The programs of a file or of the folder of a case or finding. Errors: usage, of any other folder.
pub(super) fn jobs(file: &str, options: &Options) -> Result<Vec<Job>, Failure> {
    let path = Path::new(file);
    if file == "-" || !path.is_dir() {
        let program = file.to_owned();
        return Ok(vec![Job {
            program,
            inputs: options.inputs.clone(),
            expected: options.expected.clone(),
            case: None,
            finding: None,
        }]);
    }
    let finding = if artifact::is_at(path) { artifact::finding(path)? } else { None };
    let case = if Case::is_at(path) { Some(Case::open(path)?) } else { None };
    let beside = |name: &str| {
        let p = path.join(name);
        p.is_file().then(|| p.to_string_lossy().into_owned())
    };
    let forms: &[&str] = match options.form {
        Form::Module => &["module.hlo"],
        Form::Optimized => &["optimized.hlo"],
        Form::Both => &["module.hlo", "optimized.hlo"],
    };
    let jobs: Vec<Job> = forms
        .iter()
        .filter_map(|f| beside(f))
        .map(|program| Job {
            program,
            inputs: options.inputs.clone().or_else(|| beside("inputs.npz")),
            // What is repeated is compared with the reference, not with what that gave then.
            expected: options
                .expected
                .clone()
                .or_else(|| if finding.is_some() { None } else { beside("expected.npz") }),
            case: case.clone(),
            finding: finding.clone(),
        })
        .collect();
    if jobs.is_empty() {
        return Err(Failure::usage(format!("{file}: is a folder without {}", forms.join(" or "))));
    }
    Ok(jobs)
}
