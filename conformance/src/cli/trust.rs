//! What folders say, and what of it is done without being asked: findings are mailed around.
//!
//! **Invariant:** no program is started because a file says so: an engine that starts one is named on the
//! command line, or `--trust` is, and then what is run is printed first.

use std::path::Path;

use clap::Args;

use super::ui::Ui;
use hlo_engines::engine::spec::stays_inside;
use hlo_system::exit::Failure;
use hlo_triage::artifact::FINDING;

/// Whether folders are trusted.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TrustOption {
    /// Start the programs that a finding names as its engines
    #[arg(long, hide_short_help = true)]
    trust: bool,
}

impl TrustOption {
    /// Allows engines that a folder names. Errors: one of them starts a program that is not trusted.
    pub(crate) fn confirm(self, folder: &Path, engines: &[&str], ui: &Ui) -> Result<(), Failure> {
        let started: Vec<&str> = engines.iter().copied().filter(|name| !stays_inside(name)).collect();
        if started.is_empty() {
            return Ok(());
        }
        let at = folder.join(FINDING);
        let at = at.display();
        if self.trust {
            started.iter().for_each(|name| ui.note(format!("{at} is trusted: it runs `{name}`")));
            return Ok(());
        }
        let list = started.join("`, `");
        Err(Failure::usage(format!(
            "{at} names what would start a program or read other files: `{list}`\n\
             if it may, name it yourself, or say --trust"
        )))
    }
}
