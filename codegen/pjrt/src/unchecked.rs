//! Check mode in builds without the feature `check`: refused when a client is made.

use std::convert::Infallible;
use std::path::PathBuf;

use hlo::ArrayLiteral;
use hlo_client::VerifiedModule;
use hlo_interp::Devices;

use crate::error::Result;

/// Arrays by device.
pub type Arrays = Vec<Vec<ArrayLiteral>>;

/// The reaction to a wrong result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "as in `check`")]
pub enum Action {
    #[default]
    Raise,
    Log,
}

/// Options of checking executions.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "as in `check`")]
pub struct Settings {
    pub every: u64,
    pub action: Action,
    pub save: Option<PathBuf>,
    pub log: Option<PathBuf>,
    pub test: fn() -> Option<String>,
}

/// Whether this build has check mode.
pub const IS_THERE: bool = false;

/// It is not known.
pub fn memory_there_is() -> Option<u64> {
    None
}

/// Reads `HLO_CHECK`.
pub fn sample(_text: &str) -> Option<u64> {
    Some(1)
}

/// The checks of one program, of which there are none.
#[derive(Debug)]
pub struct Checks(Infallible);

/// An execution: arrays by device.
#[derive(Debug)]
#[allow(missing_docs, reason = "as in `check`")]
pub struct Execution<'a> {
    pub source: &'a VerifiedModule,
    pub engine: &'a hlo_client::Client,
    pub devices: Devices,
    pub arguments: Arrays,
    pub results: Arrays,
}

impl Checks {
    /// No client has settings for them.
    pub fn new(_settings: Settings, _source: &VerifiedModule) -> Option<Self> {
        None
    }

    /// As in `check`.
    pub fn begin(&self, _program: &str) -> bool {
        match self.0 {}
    }

    /// As in `check`.
    ///
    /// # Errors
    /// None.
    pub fn judge(&self, _execution: &Execution<'_>) -> Result<()> {
        match self.0 {}
    }
}
