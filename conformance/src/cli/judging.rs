//! How results are judged: the options of all commands that compare an engine with the reference.

use clap::Args;
use hlo::Opcode;
use hlo::diag::suggest::did_you_mean;

use hlo_engines::engine::{self, Functions, spec::unknown};
use hlo_system::exit::Failure;
use hlo_triage::policy::{MostUndecided, Policy};

/// Options of judging.
#[derive(Args, Clone, Debug)]
pub(crate) struct JudgingOptions {
    /// Liberties besides those that the engine declares: contraction, ... (docs/harness.md), all; after
    /// `none`, only these
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide_short_help = true)]
    allow: Vec<String>,
    /// Whose elementary functions the engine has: xla-cpu, xla-gpu, iree, pytorch, any; `table`: those of
    /// strict numerics
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide_short_help = true)]
    functions: Vec<String>,
    /// How many ulp a function may be off, such as tanh=5
    #[arg(long, value_name = "FUNCTION=N", value_delimiter = ',', hide_short_help = true)]
    ulp: Vec<String>,
    /// NaNs must have the same bits too
    #[arg(long)]
    pub(crate) nan_bits: bool,
    /// How many elements that differ may stay undecided: a count, or a share such as 0.1%
    #[arg(long, value_name = "N", hide_short_help = true)]
    max_undecided: Option<MostUndecided>,
}

impl JudgingOptions {
    /// What the options say, in addition to what a finding recorded. Errors: wrong usage with "did you mean".
    pub(crate) fn policy(&self, recorded: Option<&Policy>) -> Result<Policy, Failure> {
        let mut policy = recorded.copied().unwrap_or_default();
        for name in &self.allow {
            if name == "none" {
                (policy.declared, policy.allow) = (false, engine::Allowances::STRICT);
            } else {
                policy.allow = policy.allow.or(engine::allowances(std::slice::from_ref(name))?);
            }
        }
        for name in &self.functions {
            let known = || Functions::names().into_iter().map(str::to_owned).collect::<Vec<_>>();
            let named =
                Functions::named(name).ok_or_else(|| unknown("library of functions", name, &known()))?;
            policy.functions = Some(policy.functions.unwrap_or(Functions::TABLE).or(named));
        }
        for given in &self.ulp {
            policy.ulps = number(policy.ulps, given)?;
        }
        policy.nan_bits |= self.nan_bits;
        policy.max_undecided = self.max_undecided.unwrap_or(policy.max_undecided);
        Ok(policy)
    }
}

/// Reads `tanh=5`.
fn number(ulps: Functions, given: &str) -> Result<Functions, Failure> {
    let wrong = |why: &str| Failure::usage(format!("--ulp {given}: {why}"));
    let (name, n) = given.split_once('=').ok_or_else(|| wrong("is not FUNCTION=N, such as tanh=5"))?;
    let n: u16 = n.parse().map_err(|_| wrong("the number of ulp is 0 to 65534"))?;
    let with = Opcode::from_name(name).and_then(|opcode| ulps.with(opcode, n));
    with.ok_or_else(|| {
        let hint = did_you_mean(name, Functions::opcodes().map(|o| o.name()));
        let hint = hint.map(|h| format!("; did you mean `{h}`?")).unwrap_or_default();
        wrong(&format!("there is no elementary function `{name}`{hint}"))
    })
}
