//! A failure that a hunt found, and what makes two of them the same.

use std::path::{Path, PathBuf};

use super::source::Program;
use hlo_engines::engine::{Engine, devices};
use hlo_engines::mlir::output::text_of_hlo;
use hlo_system::exit::Failure;
use hlo_system::guard::guarded;
use hlo_triage::artifact::{self, Artifact, Signature};
use hlo_triage::differential::{Difference, Settings, Subject, differ, reference_run};

/// A failure, with the program.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which program of the sequence.
    pub number: u64,
    /// The program.
    pub program: Program,
    /// Its signature.
    pub signature: Signature,
    /// Options of the runs.
    pub settings: Settings,
    /// The result of the comparison.
    pub difference: Difference,
}

impl Finding {
    pub(super) fn new(
        number: u64,
        program: &Program,
        (reference, engine): (&str, &str),
        difference: Difference,
        settings: &Settings,
    ) -> Self {
        let signature = artifact::Finding::new(reference, engine, &difference, settings).signature;
        Self { number, program: program.clone(), signature, settings: *settings, difference }
    }

    /// The same failure of another program.
    #[must_use]
    pub fn with_program(&self, program: Program, reference: &dyn Engine, engine: &dyn Engine) -> Finding {
        let mut settings = self.settings;
        if let Ok(devices) = devices::stated(&program.module, None, None) {
            settings.run.devices = devices;
        }
        let subject =
            Subject { host: program.host.clone(), ..Subject::new(&program.module, &program.inputs) };
        let difference = differ(reference, engine, &subject, &settings);
        let mut finding =
            Finding::new(self.number, &program, (reference.name(), engine.name()), difference, &settings);
        finding.signature = self.signature.clone();
        finding
    }

    /// Writes it to a folder below `parent` ([`artifact::save`]). The reference runs again for its results.
    pub fn save(
        &self,
        parent: &Path,
        stem: &str,
        reference: &dyn Engine,
        origin: String,
    ) -> Result<PathBuf, Failure> {
        let program = &self.program;
        let subject =
            Subject { host: program.host.clone(), ..Subject::new(&program.module, &program.inputs) };
        let expected = guarded("running the reference", || {
            Ok(reference_run(reference, &subject, &self.settings).into_results().ok())
        });
        let expected = expected.ok().flatten();
        let mut finding = artifact::Finding::new(
            reference.name(),
            &self.signature.engine,
            &self.difference,
            &self.settings,
        );
        finding.origin = Some(origin);
        // A change may have made what StableHLO does not have.
        let stablehlo = program.is_stablehlo.then(|| text_of_hlo(&program.module).ok()).flatten();
        let artifact = Artifact {
            module: &program.module,
            text: None,
            inputs: &program.inputs,
            expected: expected.as_ref().map(|f| &f.results[..]),
            actual: self.difference.actual.as_ref().map(|f| &f.results[..]),
            finding: &finding,
            stablehlo: stablehlo.as_deref(),
        };
        artifact::save(parent, stem, &artifact)
    }
}
