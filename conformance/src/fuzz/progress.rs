//! How far a hunt is, so that one that was ended goes on.
//!
//! **Invariant:** what is counted are exactly the programs that are done: those that were in hand when the
//! process was killed are run again, with the same result, because a program depends on its number alone.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Totals;
use hlo_system::exit::Failure;
use hlo_system::files::{read_beside, write_whole};
use hlo_triage::artifact::Signature;

/// The file of a hunt's state.
pub const FILE: &str = "hunt.json";

/// The progress of a hunt.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// So many programs of the shard are done, the first ones.
    pub below: u64,
    /// And these behind them.
    pub beyond: BTreeSet<u64>,
    /// The totals.
    pub totals: Totals,
}

impl Progress {
    /// Whether a program of the shard is done.
    pub(super) fn has(&self, k: u64) -> bool {
        k < self.below || self.beyond.contains(&k)
    }

    /// Counts a program of the shard.
    pub(super) fn add(&mut self, k: u64, counted: &Totals) {
        self.totals.add(counted);
        self.beyond.insert(k);
        while self.beyond.remove(&self.below) {
            self.below += 1;
        }
    }

    /// The number that are done.
    pub fn done(&self) -> u64 {
        self.below + self.beyond.len() as u64
    }
}

/// A finding that is on disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Saved {
    /// Which of the findings.
    pub n: usize,
    /// The number of the program.
    pub number: u64,
    /// Its signature.
    pub signature: Signature,
    /// Its folder, in that of the hunt.
    pub folder: String,
    /// Whether nothing is left to be done with it.
    #[serde(default)]
    pub is_done: bool,
}

/// The state of an unfinished hunt.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// The key of the hunt: a hunt with another key begins anew.
    pub identity: String,
    /// Its progress.
    pub progress: Progress,
    /// The findings.
    pub findings: Vec<Saved>,
}

impl State {
    /// The state of a hunt in its folder, if it is of this identity and was not over.
    pub fn read(folder: &Path, identity: &str) -> Option<State> {
        let state: State = serde_json::from_str(&read_beside(&folder.join(FILE)).ok()?).ok()?;
        (state.identity == identity).then_some(state)
    }

    /// Writes it. Errors: wrong usage, if that cannot be.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        write_whole(&folder.join(FILE), |file| {
            serde_json::to_writer(file, self).map_err(std::io::Error::from)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_known_in_any_order() {
        let mut progress = Progress::default();
        let one = Totals { programs: 1, ..Totals::default() };
        for k in [1, 0, 3, 5] {
            progress.add(k, &one);
        }
        assert_eq!((progress.below, progress.done(), progress.totals.programs), (2, 4, 4));
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6].map(|k| progress.has(k)),
            [true, true, false, true, false, true, false]
        );
        progress.add(2, &one);
        assert_eq!((progress.below, progress.beyond.len()), (4, 1));
    }
}
