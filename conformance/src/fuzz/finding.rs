//! A failure that a hunt found, and what makes two of them the same.

use hlo::Opcode;
use serde::{Deserialize, Serialize};

use super::source::Program;
use crate::differential::{Difference, Kind};

/// What makes two failures the same one: `hlo reduce` keeps it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Signature {
    /// Which engine failed.
    pub engine: String,
    /// How.
    pub kind: Kind,
    /// The opcode that diverges first, if that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub opcode: Option<String>,
    /// The code of the error, if there was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
}

impl Signature {
    /// Of a failure.
    pub fn of(engine: &str, difference: &Difference) -> Self {
        Self {
            engine: engine.to_owned(),
            kind: difference.kind,
            opcode: difference.blamed.map(Opcode::name).map(str::to_owned),
            code: difference.failure.as_ref().map(|d| d.code.as_str().to_owned()),
        }
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.kind.describe())?;
        if let Some(opcode) = &self.opcode {
            write!(f, ", {opcode}")?;
        }
        if let Some(code) = &self.code {
            write!(f, " ({code})")?;
        }
        write!(f, ", {}", self.engine)
    }
}

/// A failure, with the program.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which program of the sequence.
    pub number: u64,
    /// The program.
    pub program: Program,
    /// What makes it this failure.
    pub signature: Signature,
    /// What the comparison found.
    pub difference: Difference,
}

impl Finding {
    pub(super) fn new(number: u64, program: &Program, engine: &str, difference: Difference) -> Self {
        let signature = Signature::of(engine, &difference);
        Self { number, program: program.clone(), signature, difference }
    }
}
