//! Two engines disagree about a program.

use std::sync::Arc;
use std::time::Duration;

use hlo::diag::{Diagnostic, codes};
use hlo_execution::run::Finished;
use hlo_interp::Devices;
use hlo_system::exit::Exit;

use crate::artifact;
use crate::differential::differ_within;
use crate::differential::{self, Settings, Subject, reference_run};
use crate::reduce::{Candidate, Kind, Oracle, Signature, Trouble};
use hlo_engines::engine::Engine;

/// Compares an engine with the reference.
#[derive(Clone)]
pub struct Differential {
    /// What is right.
    pub reference: Arc<dyn Engine>,
    /// What is tested.
    pub engine: Arc<dyn Engine>,
    /// How. Candidates that the reference cannot run within the limits here do not fail.
    pub settings: Settings,
    /// The most time for one run of the engine, and for judging it once more.
    pub time: Option<Duration>,
    /// What an engine could not be run for.
    pub trouble: Trouble,
}

impl std::fmt::Debug for Differential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} against {}", self.engine.name(), self.reference.name())
    }
}

impl Differential {
    /// The reference's results for a candidate. Error: why there are none, and the exit code of that.
    pub fn reference_results(&self, candidate: &Candidate) -> Result<Finished, (Exit, Diagnostic)> {
        let module = &candidate.module;
        let mut settings = self.settings;
        settings.run.devices =
            Devices::new(module.replica_count(), module.num_partitions()).unwrap_or(Devices::ONE);
        let subject = Subject::new(module, &candidate.inputs);
        reference_run(&*self.reference, &subject, &settings).into_results()
    }
}

/// The failure that a comparison found, if it is one.
fn kind(found: differential::Kind) -> Option<Kind> {
    match found {
        differential::Kind::Wrong => Some(Kind::Wrong),
        differential::Kind::Crash => Some(Kind::Crash),
        differential::Kind::Trap => Some(Kind::Trap),
        differential::Kind::Timeout => Some(Kind::Timeout),
        differential::Kind::Unsupported => Some(Kind::Unsupported),
        differential::Kind::Same
        | differential::Kind::Explained
        | differential::Kind::Undecided
        | differential::Kind::Exhausted
        | differential::Kind::NoReference => None,
    }
}

impl Oracle for Differential {
    fn check(&self, candidate: &Candidate) -> Option<Signature> {
        self.check_within(candidate, u64::MAX)
    }

    fn check_within(&self, candidate: &Candidate, fuel: u64) -> Option<Signature> {
        let module = &candidate.module;
        let mut settings = self.settings;
        settings.run.devices = Devices::new(module.replica_count(), module.num_partitions())?;
        let limit = &mut settings.run.limits.fuel;
        *limit = Some(limit.unwrap_or(u64::MAX).min(fuel));
        let subject = Subject::new(module, &candidate.inputs);
        let expected = reference_run(&*self.reference, &subject, &settings);
        let found = differ_within(self.time, &expected, &*self.engine, &subject, &settings);
        let lack = found.failure.as_ref().filter(|d| d.code == codes::ENVIRONMENT_FAILED);
        self.trouble.of(lack.map_or(Ok(()), |d| Err(d.message.clone())))?;
        // Of a wrong result the values say what is wrong; of other failures the code does.
        let kind = kind(found.kind)?;
        let code = found.failure.as_ref().filter(|_| kind != Kind::Wrong).map(artifact::code_of);
        let engine = format!("{} against {}", self.engine.name(), self.reference.name());
        Some(Signature { kind, opcode: found.blamed.map(|kind| kind.opcode), code, engine })
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.get()
    }
}
